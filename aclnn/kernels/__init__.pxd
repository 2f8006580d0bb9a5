# What kernels are made of, from what knows nothing of the others on:
#
# tile          a tile, its blocks, and where they lie
# formulas      the operators, a number at a time
# element       elements of all dtypes: loads, stores, copies
# lane          what loops by lanes offer: `simd/abi.h`, `simd/formulas.h`
# cast          casts and copies of tiles
# computation   what a compute kernel has to know
# doubt         elements that lanes leave open
# staging       results that go past the cache, until their doubts are settled
# lane_block    blocks by lanes
# loop_block    blocks by plain loops
# transposed    tiles with transposed operands
#
# Their functions are inline because Cython lets files of this kind have no others.
