from libc.stdint cimport int64_t

from aclnn.acl._tensor_spec cimport ABSENT, FORMAT_ND, operand_t
from aclnn.compiler._compiled_call cimport CompiledCall

cdef class Headers:
    cdef operand_t *operands
    cdef Py_ssize_t count
    cdef bint has_tensors         # whether one is a tensor of PyTorch's
    cdef readonly object arrays
    cdef readonly bytes key
    cdef bytes packed(self)
    cdef Py_ssize_t write_key(self, int64_t *key) noexcept

cdef Headers new_headers(object arrays, Py_ssize_t count)
cdef bint read_array(object given, operand_t *operand) noexcept
cdef int read_or_refuse(object name, object array, operand_t *operand) except -1
cdef object words_of(const operand_t *operand)
cdef object spec_of(const operand_t *operand)
cdef void describe_output(CompiledCall plan, int number, operand_t *operand) noexcept
cdef object new_output(CompiledCall plan, int number, operand_t *operand, bint as_tensor)
cdef object dtype_of(int acl)
cdef bint fits(const operand_t *found, const operand_t *planned) noexcept


cdef inline void take_absent(operand_t *out) noexcept:
    """An output that is still to be made."""
    out.ndim, out.dtype, out.format, out.writable = ABSENT, 0, FORMAT_ND, True
