"""The plain loops of a formula, by what they compute in."""

cdef enum:
    MOST_INPUTS = 4     # of a formula
    MOST_FORMULAS = 256

# Inputs and results are dense runs of what is computed in. `params`: the node's numbers come first.
ctypedef void (*loop_fn)(const void *const *inputs, void *results, ptrdiff_t n,
                         const void *params) noexcept nogil


cdef struct formula_loops_t:
    int n_inputs
    bint exact             # in whatever type
    loop_fn in_float       # for float32 results; NULL: the double form serves every dtype
    loop_fn in_half        # in float, for results and inputs of one half-precision dtype; or NULL
    loop_fn in_double      # the precise form, for what is rounded once more
    loop_fn in_float64     # for float64 results, where these are rounded otherwise
    loop_fn in_whole       # or NULL
    loop_fn in_complex     # or NULL
