"""What loops by lanes take and find, and which formulas have them."""

from libc.stdint cimport uint16_t

from aclnn.kernels.element cimport unaligned_float

cdef extern from "simd/params.h" nogil:
    enum:
        PARAMS_NUMBERS
    ctypedef enum zeros_t:
        ZEROS_UNKNOWN
    ctypedef struct params_t:
        double p[PARAMS_NUMBERS]
    ctypedef struct hints_t:
        zeros_t zeros
        int outside

cdef extern from "simd/loop_args.h" nogil:
    int LANES
    int EXCEPTIONAL
    int HARD_TO_ROUND
    int STAGED
    int PREFETCH_A
    int PREFETCH_B
    int PREFETCH_OUT
    int PREFETCH_FAR
    ctypedef enum elem_type:
        F32
        F16
        BF16
    ctypedef struct loop_args:
        const char *a
        const char *b
        char *out
        ptrdiff_t n
        const params_t *params
        hints_t *hints
        uint16_t *hard
        int stream
        char *staging
        char *staged_target
        int prefetch
        elem_type stored

    enum:
        MASKS_TOGETHER
    int list_hard(const uint16_t *, int, int *) noexcept
    ptrdiff_t hard_element(const loop_args *, int, int, int) noexcept

ctypedef int (*simd_loop)(const loop_args *) noexcept nogil

cdef extern from "simd/loop_args.h" nogil:
    ctypedef struct simd_loops_t:
        simd_loop f32
        simd_loop f16
        simd_loop bf16
        simd_loop to_f16
        simd_loop to_bf16

cdef extern from "simd/paths.h" nogil:
    ctypedef void (*prepare_fn)(params_t *, elem_type) noexcept
    ctypedef void (*classify_fn)(const unaligned_float *, const unaligned_float *,
                             const unaligned_float *, uint16_t *, ptrdiff_t,
                             const double *) noexcept
    ctypedef struct simd_path_t:
        const simd_loops_t *loops   # NULL where the formula has no such form, or the build no lanes
        prepare_fn prepare          # what the loops make of a node's numbers; may be NULL
        classify_fn classify                # tells which elements are suspect; NULL: none ever is
        classify_fn classify_f32        # the same for float32 results; NULL: `mark` does
    simd_path_t simd_path_of(const char *) noexcept
