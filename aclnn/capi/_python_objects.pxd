from aclnn.capi.abi cimport argument_t, c_bools, c_ints, c_scalar, c_tensor, c_tensors

cdef object python_argument(char tag, const argument_t *given)
cdef object python_tensor(const c_tensor *given)
cdef object python_tensor_at(const c_tensor *given, char *storage)
cdef object python_memory(const void *address, Py_ssize_t size)
cdef int tell_shape(object tensor, const c_tensor *given) except -1
