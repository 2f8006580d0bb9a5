from libc.stdint cimport int64_t

# `values` and `size` are what kernels and calls read; all stay as they were made until the object
# is gone, `destroyed` says that callers may not use it any more.
cdef class aclIntArray:
    cdef int64_t *values
    cdef readonly Py_ssize_t size
    cdef readonly bint destroyed
    cdef object __weakref__

cdef class aclFloatArray:
    cdef float *values
    cdef readonly Py_ssize_t size
    cdef readonly bint destroyed
    cdef object __weakref__

cdef class aclBoolArray:
    cdef bint *values
    cdef readonly Py_ssize_t size
    cdef readonly bint destroyed
    cdef object __weakref__

cdef class aclTensorList:
    cdef readonly tuple items            # of aclTensor
    cdef readonly Py_ssize_t size
    cdef readonly bint destroyed
    cdef object __weakref__

cdef class aclScalarList:
    cdef readonly tuple items            # of aclScalar
    cdef readonly Py_ssize_t size
    cdef readonly bint destroyed
    cdef object __weakref__
