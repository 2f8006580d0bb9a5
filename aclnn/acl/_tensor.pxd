from libc.stdint cimport int64_t

cdef class aclTensor:
    cdef readonly int dtype, format, ndim
    cdef int64_t *shape      # ndim sizes, then ndim strides: one allocation
    cdef int64_t *strides    # elements
    cdef readonly int64_t offset         # elements
    cdef readonly tuple storage_shape
    cdef char *storage       # NULL: no data yet
    cdef readonly object owner           # keeps the storage alive
    cdef readonly bint writable, destroyed, device
    cdef unsigned int version            # counts descriptions, see aclInitTensor
    cdef object reshaped     # called with the shape that a run has found, if it is not None
    cdef object __weakref__

    cdef int attach(self, object data, str name=*) except -1
    cdef void let_go(self)
    cdef int reshape(self, const int64_t *shape, int ndim) except -1

cdef class aclScalar:
    cdef readonly int dtype
    cdef readonly object value           # as stored, a Python number
    cdef readonly bint is_real, destroyed
    cdef readonly double as_float        # nearest float32, held in a double
    cdef readonly double as_double
    cdef readonly bint is_whole
    cdef readonly long long as_whole     # where it is whole
    cdef object __weakref__

cdef aclTensor tensor_at(object dims, int dtype, object strides, int64_t offset, int format,
                         object storage_dims, char *address)
