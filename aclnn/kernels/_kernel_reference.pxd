"""The interface of opaque kernels, and the memory that states of kernels lie in."""

from aclnn.graph.runtime.kernel_abi cimport call_kernel


cdef class State:
    cdef void *data


cdef object refer_to(str name, tuple inputs, tuple outputs, call_kernel fn, const void *state,
                     size_t state_size, double cost, Py_ssize_t parts, Py_ssize_t scratch,
                     dict failures)
cdef object checked_by(object kernel, call_kernel check, tuple places)
