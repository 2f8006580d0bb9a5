# What kernels are made of; each only knows those above it.
#
# tile           a tile, its blocks, and where they are
# number         the types that formulas and products compute in
# unaligned      elements at any address
# exactly        what formulas are made of: products to odd, the one NaN
# formulas       the operators, on single numbers
# formula_loops  what the plain loops over them are called with
# element        elements of all dtypes: loads, stores, copies
# simd           fast paths over vectors: `simd/loops.pxd`, and a formula's family each
# cast           casts and copies of tiles
# computation    what a compute kernel has to know
# recompute      results that a fast path leaves to the double form
# staging        results that bypass the cache, until those are recomputed
# simd_block     blocks computed by a fast path
# loop_block     blocks computed by plain loops
# transposed     tiles with transposed operands
#
# Modules in Python hold the records of kernels (`record.py`), a family each.
# Functions of these files are inline because Cython lets files of this kind have no others.
