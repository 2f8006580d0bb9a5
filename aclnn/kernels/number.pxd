"""The types of numbers that formulas and products compute in."""

from libc.stdint cimport int64_t

ctypedef fused real:
    float
    double

ctypedef fused number:
    float
    double
    int64_t
