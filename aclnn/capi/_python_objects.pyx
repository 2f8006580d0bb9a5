"""Objects of programs in C as objects in Python, for calls that are not known yet, and messages."""

from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint64_t

from aclnn.acl._lists cimport bool_array_of, int_array_of, tensor_list_of
from aclnn.acl._tensor cimport scalar_of, tensor_of
from aclnn.acl.objects cimport ACLNN_TENSORS, c_tensor, c_tensors
from aclnn.capi.abi cimport argument_t

from aclnn.acl import memory

cdef extern from "Python.h":
    enum:
        PyBUF_WRITE


cdef object python_tensors(const c_tensors *value):
    """A list; what is none any more is a destroyed one."""
    cdef uint64_t k
    items = []
    if value.magic == ACLNN_TENSORS:
        for k in range(value.size):
            items.append(tensor_of(value.items[k]))
    return tensor_list_of(tuple(items), value.magic == ACLNN_TENSORS)


cdef object python_argument(char tag, const argument_t *value):
    """An argument by the letter of its type: see `aclnn_argument`. Null is None."""
    if tag in b"TSIBLs" and value.pointer == NULL:
        return None
    if tag == b"T":
        return tensor_of(<c_tensor *>value.tensor)
    if tag == b"S":
        return scalar_of(value.scalar)
    if tag == b"I":
        return int_array_of(value.ints)
    if tag == b"B":
        return bool_array_of(value.bools)
    if tag == b"L":
        return python_tensors(value.tensors)
    if tag == b"f":
        return value.real
    if tag == b"b":
        return value.whole != 0
    if tag == b"u":
        return <uint64_t>value.whole
    if tag == b"s":
        return value.text.decode("utf-8", "replace")
    return value.whole


cdef object python_memory(const void *address, Py_ssize_t size):
    """Memory as functions in Python take it: an address of the runtime's, else a view of it."""
    if address == NULL:
        return None
    if memory.owner_of(<size_t>address) is not None:
        return <size_t>address
    return PyMemoryView_FromMemory(<char *>address, size, PyBUF_WRITE)
