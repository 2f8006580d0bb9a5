"""What a compute kernel has to know: how it reads, computes, rounds and writes."""

from libc.string cimport memcpy

from aclnn.kernels.cast cimport cast_state
from aclnn.kernels.element cimport load_fn, store_fn, unaligned_double, unaligned_float
from aclnn.kernels.lane cimport UNKNOWN, facts_fn, facts_t, kind_t, lane_loop, mark_fn

ctypedef void (*float_loop)(const unaligned_float *, const unaligned_float *, unaligned_float *,
                            ptrdiff_t, const double *) noexcept nogil
ctypedef void (*double_loop)(const unaligned_double *, const unaligned_double *, unaligned_double *,
                             ptrdiff_t, const double *) noexcept nogil


cdef struct compute_state:
    int n_inputs
    bint dense_input[2]      # in the compute type already: may be read in place
    ptrdiff_t sizes[3]       # of elements; the output's is the last
    bint dense_result
    int result_size
    load_fn loads[2]         # to the compute type
    store_fn store           # from it
    cast_state cast          # of rounded results to the output's dtype, often the same
    void *loop               # a float_loop or a double_loop
    # The rest is for lanes; `lanes` is NULL where there are none.
    lane_loop lanes          # for inputs as they are, or as floats they were converted to
    bint all_alike           # inputs have the result's dtype, and are read as they are
    ptrdiff_t read_size      # of an element as they read it: the result's, or a float's
    bint stores              # its loop can store the output's dtype
    kind_t kind              # of the inputs, as they are read
    kind_t rounded           # of results
    kind_t stored            # of the output, if its loop can store it
    facts_fn prepare         # what a loop wants to know of the scalars beforehand; may be NULL
    mark_fn mark             # tells which elements are suspect; NULL: none ever is
    void *exact              # the double form, for suspect and doubtful elements
    store_fn store_exact     # from double


cdef inline void prepare_facts(facts_t *facts, const double *scalars, const compute_state *state,
                               ptrdiff_t n) noexcept nogil:
    """The scalars, and what loops by lanes want to know of them, for so many elements."""
    memcpy(facts.p, scalars, sizeof(facts.p))
    facts.zeros = UNKNOWN
    if state.prepare != NULL:
        state.prepare(facts, n, state.kind)
