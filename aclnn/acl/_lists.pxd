from libc.stdint cimport int64_t

# `values`, `items` and `size` are what kernels and calls read; all stay as they were made until the
# object is gone, `destroyed` says that callers may not use it any more.
cdef class Collection:
    cdef readonly Py_ssize_t size
    cdef readonly bint destroyed
    cdef object __weakref__

    cdef int take(self, tuple found) except -1

cdef class aclIntArray(Collection):
    cdef int64_t *values

cdef class aclFloatArray(Collection):
    cdef float *values

cdef class aclBoolArray(Collection):
    cdef bint *values

cdef class aclTensorList(Collection):
    cdef readonly tuple items            # of aclTensor

cdef class aclScalarList(Collection):
    cdef readonly tuple items            # of aclScalar
