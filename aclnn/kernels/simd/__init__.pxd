# Fast paths over vectors; each only knows those above it.
#
# vector      operations on vectors (`simd.h`)
# loop_args   what a loop is called with, and what it reports
# track       range tracking, which finds exceptional cases
# convert     loads, conversions, rounding with a test, stores
# operands    prefetches, and operands that cross cache lines
# loops       the loops, whatever the formula
# elu, ...    the loops of a family of formulas; a header of the same name holds the formulas
# scalar      what has a fast path without vectors
