from aclnn.acl._tensor_spec cimport operand_t

cdef bint read_tensor(object given, operand_t *operand) noexcept
cdef bint read_tracked(object given, operand_t *operand, bint *tracked) noexcept
cdef bint records_plainly() noexcept
cdef object new_tensor(operand_t *operand)
cdef bint lies_otherwise(const operand_t *operands, const int *slots, int n_slots) noexcept
cdef void lay_out_alike(const operand_t *operands, const int *slots, int n_slots,
                        operand_t *out) noexcept
cdef bint have_channels_last(const operand_t *operands, int n_inputs) noexcept
cdef void lay_out_channels_last(operand_t *out) noexcept
cdef void stack_channels_last(const operand_t *first, int dim, operand_t *out) noexcept
cdef int tell_written(object given) except -1
cdef bint is_tensor(object given) noexcept
cdef object library_of_tensors()
cdef bint makes_tensors(object library) noexcept
