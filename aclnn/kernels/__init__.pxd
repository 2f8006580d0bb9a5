# What kernels are made of, from what knows nothing of the others on:
#
# tile, element        a tile's blocks, and elements of all dtypes
# formulas             the operators, a number at a time
# lane                 what loops by lanes offer: `lane_abi.h`, `lane_formulas.h`
# cast, computation    what a kernel has to know; casts
# doubt                elements that lanes leave open
# lane_block           blocks by lanes
# loop_block           blocks by plain loops
# transposed           tiles with operands that lie across
