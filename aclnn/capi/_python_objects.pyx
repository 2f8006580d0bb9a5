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


cdef object python_tensors(const c_tensors *given):
    """A list; what is none any more is a destroyed one."""
    cdef uint64_t k
    items = []
    if given.magic == ACLNN_TENSORS:
        for k in range(given.size):
            items.append(tensor_of(given.items[k]))
    return tensor_list_of(tuple(items), given.magic == ACLNN_TENSORS)


cdef object python_argument(char tag, const argument_t *given):
    """An argument by the letter of its type: see `aclnn_argument`. Null is None."""
    if tag in b"TSIBLs" and given.pointer == NULL:
        return None
    if tag == b"T":
        return tensor_of(<c_tensor *>given.tensor)
    if tag == b"S":
        return scalar_of(given.scalar)
    if tag == b"I":
        return int_array_of(given.ints)
    if tag == b"B":
        return bool_array_of(given.bools)
    if tag == b"L":
        return python_tensors(given.tensors)
    if tag == b"f":
        return given.real
    if tag == b"b":
        return given.whole != 0
    if tag == b"u":
        return <uint64_t>given.whole
    if tag == b"s":
        return given.text.decode("utf-8", "replace")
    return given.whole


cdef object python_memory(const void *address, Py_ssize_t size):
    """Memory as functions in Python take it: an address of the runtime's, else a view of it."""
    if address == NULL:
        return None
    if memory.owner_of(<size_t>address) is not None:
        return <size_t>address
    return PyMemoryView_FromMemory(<char *>address, size, PyBUF_WRITE)
