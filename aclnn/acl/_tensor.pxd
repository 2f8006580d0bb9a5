from libc.stdint cimport int64_t

from aclnn.acl._tensor_spec cimport MAX_DIMS, bytes_before, operand_t
from aclnn.acl.objects cimport c_scalar, c_tensor

cdef class aclTensor:
    cdef c_tensor *c         # held: its description, and where its storage is
    cdef readonly object owner           # keeps the storage alive
    cdef readonly bint destroyed, device
    cdef bint is_foreign     # whether it is a program's in C, which may give it other memory
    cdef char *owned         # the storage that `owner` is of, where it is
    cdef object __weakref__

    cdef int attach(self, object data, str name=*) except -1
    cdef void let_go(self)
    cdef int follow(self) except -1
    cdef int refuse_reach(self) except -1

cdef class aclScalar:
    cdef c_scalar c
    cdef readonly bint destroyed
    cdef object __weakref__

cdef aclTensor tensor_of(c_tensor *given)
cdef aclTensor held_tensor(c_tensor *given)
cdef aclTensor tensor_elsewhere(const c_tensor *given, char *storage)
cdef aclScalar scalar_of(const c_scalar *given)


cdef inline char *address_of(const c_tensor *tensor) noexcept nogil:
    """The address of a view's first element; NULL where it has no data."""
    if tensor.offset == 0 or tensor.storage == NULL:
        return tensor.storage
    return tensor.storage + bytes_before(tensor.dtype, tensor.offset)


cdef inline void take_view(const c_tensor *value, operand_t *operand) noexcept nogil:
    """A tensor's description and present address, for as many dimensions as plans can have."""
    cdef int axis
    operand.data = address_of(value)
    operand.dtype, operand.format = value.dtype, value.format
    operand.ndim = min(value.ndim, <int>MAX_DIMS)
    operand.writable = value.writable or value.storage == NULL
    for axis in range(operand.ndim):
        operand.shape[axis] = value.shape[axis]
        operand.strides[axis] = value.strides[axis]
