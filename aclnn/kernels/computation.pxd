"""Facts for a compute kernel: how it reads, computes, rounds and writes."""

from aclnn.kernels.cast cimport cast_state
from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.formula_loops cimport MOST_INPUTS, loop_fn
from aclnn.kernels.simd.loop_args cimport classify_fn, elem_type, prepare_fn, simd_loop


cdef struct compute_state:
    int n_inputs
    int number_size                  # of what is computed in
    bint dense_input[MOST_INPUTS]    # has this type already: may be read in place
    ptrdiff_t sizes[MOST_INPUTS + 1]  # of elements; the output's is the last
    bint dense_result
    int result_size
    load_fn loads[MOST_INPUTS]       # to what is computed in, from what an input is converted to
    store_fn store                   # from what is computed in
    cast_state cast                  # of rounded results to the output's dtype, often the same
    loop_fn loop
    # The rest is for fast paths.
    simd_loop simd           # NULL: there is none; inputs as they are, or converted to float32
    bint all_alike           # inputs have the result's dtype, and are read as they are
    ptrdiff_t read_size      # of an element as they read it: the result's, or a float's
    elem_type read_type      # of the inputs, as they are read
    elem_type rounded        # of results
    prepare_fn prepare       # what a loop makes of the numbers beforehand; may be NULL
    classify_fn classify     # marks exceptional results; NULL: there never are any
    loop_fn exact            # the double form, for results that are recomputed
    store_fn store_exact     # from double
    # The rest is for inputs that are converted to another dtype first.
    bint converted[MOST_INPUTS]
    cast_state casts[MOST_INPUTS]
