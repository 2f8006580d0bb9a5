"""The interface of opaque kernels, and what every one of them is made into."""

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


cdef class KernelReference:
    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly size_t fn
    cdef readonly double cost
    cdef readonly Py_ssize_t scratch
    cdef Py_ssize_t parts
    cdef dict failures
    cdef void *kept


cdef KernelReference refer_to(str name, tuple inputs, tuple outputs, call_kernel fn,
                              const void *state, size_t state_size, double cost, Py_ssize_t parts,
                              Py_ssize_t scratch, dict failures)
