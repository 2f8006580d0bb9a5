"""Opaque kernels: bodies that get their operands as a whole, and records of the kernels."""
