# What the kernels of matrix products are made of, from what knows nothing of the others on:
#
# microkernel  tiles of results in registers, panels of operands, tiles rounded to the output
# product      one call's product: its matrices, and how it is cut
# blocks       loops over blocks that caches hold, panels and tiles
