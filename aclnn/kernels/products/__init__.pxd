# What the kernels of matrix products are made of, from what knows nothing of the others on:
#
# blas       the routines that products call, and what they can read
# product    one call's product: its matrices, and how it is cut
# whole      products whose operands BLAS reads and writes where they lie
# panels     products of all other operands, by panels that are converted to float or double
