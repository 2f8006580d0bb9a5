"""Objects of programs in C as objects in Python, for calls that are not known yet, and messages."""

from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t

from aclnn.acl._tensor cimport aclTensor, tensor_at
from aclnn.acl._tensor_spec cimport MAX_DIMS
from aclnn.capi.abi cimport (
    ACLNN_BOOLS,
    ACLNN_INTS,
    ACLNN_RUNTIME_TABLE_NAME,
    ACLNN_SCALAR,
    ACLNN_TENSOR,
    ACLNN_TENSORS,
    aclnn_hold,
    aclnn_release,
    aclnn_reshape,
    argument_t,
    c_bools,
    c_ints,
    c_scalar,
    c_tensor,
    c_tensors,
    runtime_t,
)

from aclnn.acl import _runtime, memory
from aclnn.acl._lists import (
    aclCreateBoolArray,
    aclCreateIntArray,
    aclCreateTensorList,
    aclDestroyBoolArray,
    aclDestroyIntArray,
    aclDestroyTensorList,
)
from aclnn.acl._tensor import aclCreateScalar, aclDestroyScalar, aclDestroyTensor
from aclnn.acl.constants import aclDataType, aclFormat

cdef extern from "Python.h":
    enum:
        PyBUF_WRITE


cdef const runtime_t *runtime = <const runtime_t *>PyCapsule_GetPointer(
    _runtime.table, ACLNN_RUNTIME_TABLE_NAME)


cdef tuple sizes(const long long *values, int count):
    cdef int k
    found = []
    for k in range(count):
        found.append(values[k])
    return tuple(found)


cdef object python_tensor_at(const c_tensor *given, char *storage):
    """A tensor's description, of memory at another address."""
    return tensor_at(sizes(<const long long *>given.shape, given.ndim), given.dtype,
                     sizes(<const long long *>given.strides, given.ndim), given.offset,
                     given.format, sizes(<const long long *>given.storage_shape,
                                         given.storage_ndim), storage)


cdef object python_tensor(const c_tensor *given):
    """A tensor; what is no tensor any more is a destroyed one, null is None."""
    if given == NULL:
        return None
    if given.magic == ACLNN_TENSOR:
        return python_tensor_at(given, given.storage)
    made = tensor_at((), int(aclDataType.ACL_FLOAT), (), 0, int(aclFormat.ACL_FORMAT_ND), (), NULL)
    aclDestroyTensor(made)
    return made


cdef object python_scalar(const c_scalar *given):
    if given == NULL:
        return None
    if given.magic != ACLNN_SCALAR:
        made = aclCreateScalar(0, aclDataType.ACL_FLOAT)
        aclDestroyScalar(made)
        return made
    if not given.is_real:
        value = complex(given.exact, given.imaginary)
    elif given.is_whole:
        value = bool(given.whole) if given.dtype == aclDataType.ACL_BOOL else given.whole
    elif given.dtype == aclDataType.ACL_UINT64:
        value = (<const uint64_t *>given.bytes)[0]
    else:
        value = given.exact
    return aclCreateScalar(value, given.dtype)


cdef object python_ints(const c_ints *given):
    cdef uint64_t k
    if given == NULL:
        return None
    values = []
    if given.magic == ACLNN_INTS:
        for k in range(given.size):
            values.append(given.values[k])
    made = aclCreateIntArray(values)
    if given.magic != ACLNN_INTS:
        aclDestroyIntArray(made)
    return made


cdef object python_bools(const c_bools *given):
    cdef uint64_t k
    if given == NULL:
        return None
    values = []
    if given.magic == ACLNN_BOOLS:
        for k in range(given.size):
            values.append(bool(given.values[k]))
    made = aclCreateBoolArray(values)
    if given.magic != ACLNN_BOOLS:
        aclDestroyBoolArray(made)
    return made


cdef object python_tensors(const c_tensors *given):
    cdef uint64_t k
    if given == NULL:
        return None
    items = []
    if given.magic == ACLNN_TENSORS:
        for k in range(given.size):
            items.append(python_tensor(given.items[k]))
    made = aclCreateTensorList(items)
    if given.magic != ACLNN_TENSORS:
        aclDestroyTensorList(made)
    return made


cdef object python_argument(char tag, const argument_t *given):
    """An argument by the letter of its type: see `aclnn_argument`."""
    if tag == b"T":
        return python_tensor(given.tensor)
    if tag == b"S":
        return python_scalar(given.scalar)
    if tag == b"I":
        return python_ints(given.ints)
    if tag == b"B":
        return python_bools(given.bools)
    if tag == b"L":
        return python_tensors(given.tensors)
    if tag == b"f":
        return given.real
    if tag == b"b":
        return given.whole != 0
    if tag == b"u":
        return <uint64_t>given.whole
    if tag == b"s":
        return None if given.text == NULL else given.text.decode("utf-8", "replace")
    return given.whole


cdef class _Twin:
    """Gives a tensor of C the shape that a run has found for its twin in Python."""

    cdef c_tensor *tensor

    def __dealloc__(self):
        if self.tensor != NULL:
            aclnn_release(self.tensor, runtime.drop_memory)

    def __call__(self, dims):
        cdef int64_t shape[MAX_DIMS]
        cdef int axis
        for axis in range(len(dims)):
            shape[axis] = dims[axis]
        if aclnn_reshape(self.tensor, shape, <int>len(dims)):
            raise MemoryError


cdef int tell_shape(object tensor, const c_tensor *given) except -1:
    """Have a tensor of C take the shapes that runs find for its twin in Python."""
    cdef _Twin twin = _Twin.__new__(_Twin)
    twin.tensor = <c_tensor *>given
    aclnn_hold(twin.tensor)
    (<aclTensor>tensor).reshaped = twin
    return 0


cdef object python_memory(const void *address, Py_ssize_t size):
    """Memory as functions in Python take it: an address of the runtime's, else a view of it."""
    if address == NULL:
        return None
    if memory.owner_of(<size_t>address) is not None:
        return <size_t>address
    return PyMemoryView_FromMemory(<char *>address, size, PyBUF_WRITE)
