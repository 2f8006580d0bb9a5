# Fast paths over vectors: what they are handed, their loops and the formulas.
