"""The interface of opaque kernels, and the memory that states of kernels lie in."""

from libc.stdint cimport int64_t

cdef extern from "kernel_abi.h":
    ctypedef union kernel_number:
        double real
        int64_t whole
    ctypedef struct array_view:
        char *data
        int ndim
        const ptrdiff_t *shape
        const ptrdiff_t *strides
    ctypedef struct call_context:
        int threads
        int64_t detail
    ctypedef int (*call_kernel)(const array_view *, const void *, const void *, void *, ptrdiff_t,
                                ptrdiff_t, call_context *) noexcept nogil


cdef class State:
    cdef void *data


cdef object refer_to(str name, tuple inputs, tuple outputs, call_kernel fn, const void *state,
                     size_t state_size, double cost, Py_ssize_t parts, Py_ssize_t scratch,
                     dict failures)
cdef object checked_by(object kernel, call_kernel check, tuple places)
