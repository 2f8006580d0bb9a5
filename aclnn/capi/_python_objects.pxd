from aclnn.capi.abi cimport argument_t

cdef object python_argument(char tag, const argument_t *given)
cdef object python_memory(const void *address, Py_ssize_t size)
