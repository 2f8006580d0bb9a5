# What row-wise kernels are made of, from what knows nothing of the others on:
#
# vecd          eight doubles, and elements of each dtype as such (`vecd.h`)
# sums          sums and maxima along rows, in one order for all layouts
# walk          how tiles are walked; arguments of a pass over a row
# blocks        operands' blocks: in place, or staged as dense ones
# vecw          sixteen floats: two registers as one (`vecw.h`)
# tile          a tile by panels, passes and blocks
# softmax, norm, reduce    the passes of the kernels
# whole         sums of integers
