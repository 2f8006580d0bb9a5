"""Phase one: from a call's description to its plan, and the cache of plans."""
