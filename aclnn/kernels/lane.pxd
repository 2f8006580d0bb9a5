"""What loops by lanes take and find, and which formulas have them."""

from libc.stdint cimport uint16_t

from aclnn.kernels.element cimport unaligned_float

cdef extern from "lane_params.h" nogil:
    enum:
        PARAMS_NUMBERS
    ctypedef enum zeros_t:
        UNKNOWN
    ctypedef struct params_t:
        double p[PARAMS_NUMBERS]
    ctypedef struct hints_t:
        zeros_t zeros
        int outside

cdef extern from "lane_abi.h" nogil:
    int LANES
    int SUSPECTS
    int DOUBTS
    int STAGED
    int PREFETCH_A
    int PREFETCH_B
    int PREFETCH_OUT
    int PREFETCH_FAR
    ctypedef enum kind_t:
        SINGLE
        HALF
        BFLOAT
    ctypedef struct span_t:
        const char *a
        const char *b
        char *out
        ptrdiff_t n
        const params_t *params
        hints_t *hints
        uint16_t *doubts
        int stream
        char *staging
        char *staged_target
        int prefetch
        kind_t stored

    enum:
        DOUBTS_TOGETHER
    int list_doubts(const uint16_t *, int, int *) noexcept
    ptrdiff_t doubted(const span_t *, int, int, int) noexcept

ctypedef int (*lane_loop)(const span_t *) noexcept nogil

cdef extern from "lane_abi.h" nogil:
    ctypedef struct lane_loops_t:
        lane_loop single
        lane_loop half
        lane_loop bfloat
        lane_loop to_half
        lane_loop to_bfloat

cdef extern from "lane_formulas.h" nogil:
    ctypedef void (*prepare_fn)(params_t *, kind_t) noexcept
    ctypedef void (*mark_fn)(const unaligned_float *, const unaligned_float *,
                             const unaligned_float *, uint16_t *, ptrdiff_t,
                             const double *) noexcept
    ctypedef struct lane_form_t:
        const lane_loops_t *loops   # NULL where the formula has no such form, or the build no lanes
        prepare_fn prepare          # what the loops make of a node's numbers; may be NULL
        mark_fn mark                # tells which elements are suspect; NULL: none ever is
        mark_fn mark_singles        # the same for float32 results; NULL: `mark` does
    lane_form_t lane_form_of(const char *) noexcept
