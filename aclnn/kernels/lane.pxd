"""What loops by lanes take and find, and which formulas have them."""

from libc.stdint cimport uint16_t

from aclnn.kernels.element cimport unaligned_float
from aclnn.kernels.tile cimport TILE_SCALARS

cdef extern from "lane_facts.h" nogil:
    ctypedef enum zeros_t:
        UNKNOWN
    ctypedef struct facts_t:
        double p[TILE_SCALARS]
        zeros_t zeros

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
        facts_t *facts
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
    ctypedef void (*facts_fn)(facts_t *, ptrdiff_t, kind_t) noexcept
    ctypedef void (*mark_fn)(const unaligned_float *, const unaligned_float *,
                             const unaligned_float *, uint16_t *, ptrdiff_t,
                             const double *) noexcept
    ctypedef struct lane_form_t:
        const lane_loops_t *loops   # NULL where the formula has no such form, or the build no lanes
        facts_fn prepare            # what the loops want to know of the scalars; may be NULL
        mark_fn mark                # tells which elements are suspect; NULL: none ever is
        mark_fn mark_singles        # the same for float32 results; NULL: `mark` does
    lane_form_t lane_form_of(const char *) noexcept
