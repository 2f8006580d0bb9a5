"""Declarations of `kernel_abi.h`: what kernels take."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t

cdef extern from "kernel_abi.h" nogil:
    enum:
        TILE_STREAM
        TILE_PREFETCH_NEAR
        TILE_PREFETCH_FAR
        TILE_SAWTOOTH
    ctypedef struct tile_view:
        char *data
        ptrdiff_t row_stride
        ptrdiff_t col_stride
    ctypedef union kernel_number:
        double real
        int64_t whole
    ctypedef struct array_view:
        char *data
        int ndim
        const ptrdiff_t *shape
        const ptrdiff_t *strides
    # `noexcept` matters: a kernel that could raise would need the GIL after every call.
    ctypedef void (*tile_kernel)(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                                 const void *state, const void *params, void *scratch,
                                 int flags) noexcept nogil
    ctypedef void (*prepare_kernel)(void *params, const void *state,
                                    const kernel_number *numbers, int n_numbers) noexcept nogil
    ctypedef struct call_context:
        int threads
        int64_t detail
    ctypedef int (*call_kernel)(const array_view *views, const void *state, const void *params,
                                void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                                call_context *context) noexcept nogil
