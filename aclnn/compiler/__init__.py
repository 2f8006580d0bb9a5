"""Phase one: from the description of a call to a compiled call, and their cache."""
