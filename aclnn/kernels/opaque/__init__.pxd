# Kernels that get their operands as a whole, with any strides; all have one rank.
#
# walk      what a kernel is called with, its state, and walks over dimensions
# gather    elements and pieces by indices
# triangle  lower and upper triangles
# along     running sums, maxima and their places along an axis
