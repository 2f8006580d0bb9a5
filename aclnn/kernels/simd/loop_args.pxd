"""Arguments and results of a fast path over vectors (`loop_args.h`, `params.h`)."""

from libc.stdint cimport uint16_t

from aclnn.kernels.unaligned cimport unaligned_float

cdef extern from "simd/params.h" nogil:
    enum:
        PARAMS_NUMBERS
        PARAMS_BYTES
    ctypedef enum zeros_t:
        ZEROS_UNKNOWN
        NO_ZEROS
        SOME_ZEROS
    ctypedef struct params_t:
        double p[PARAMS_NUMBERS]
        char own[PARAMS_BYTES]
    ctypedef struct hints_t:
        zeros_t zeros
        int outside

cdef extern from "simd/loop_args.h" nogil:
    enum:
        LANES
        EXCEPTIONAL
        HARD_TO_ROUND
        INTERLEAVED
        STAGED
        OUT_OF_DOMAIN
        HAS_ZEROS
        PREFETCH_A
        PREFETCH_B
        PREFETCH_OUT
        PREFETCH_FAR
        PREFETCH_C
        MASKS_TOGETHER
    ctypedef enum elem_type:
        F32
        F16
        BF16
    ctypedef struct loop_args:
        const char *a
        const char *b
        const char *c
        char *out
        ptrdiff_t n
        const params_t *params
        hints_t *hints
        uint16_t *hard
        bint stream
        char *staging
        char *staged_target
        int prefetch
    int list_hard(const uint16_t *, int, int *) noexcept
    ptrdiff_t hard_element(const loop_args *, int, int, int) noexcept

# Returns EXCEPTIONAL, HARD_TO_ROUND and the like: what of its results has to be recomputed.
ctypedef int (*simd_loop)(const loop_args *) noexcept nogil
# Prepares the parameters from the node's numbers, which they hold already, for elements of the type
# that all operands have; F32 where they differ.
ctypedef void (*prepare_fn)(params_t *, elem_type) noexcept nogil
# Marks the results that are exceptional.
ctypedef void (*classify_fn)(const unaligned_float *a, const unaligned_float *b,
                             const unaligned_float *r, uint16_t *exceptional, ptrdiff_t n,
                             const double *p) noexcept nogil


cdef struct simd_path_t:
    # The loops of a formula; any may be NULL.
    simd_loop f32            # operands and results have this type
    simd_loop f16
    simd_loop bf16
    simd_loop to_f16         # operands are float32
    simd_loop to_bf16
    prepare_fn prepare       # NULL: the loops take the numbers as they are
    classify_fn classify     # NULL: no result is ever exceptional
    classify_fn classify_f32  # for float32 results, if another one
