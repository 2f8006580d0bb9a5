from aclnn.acl._tensor cimport aclTensor
from aclnn.compiler._compiled_call cimport (
    FEW,
    MANY,
    OperatorHandle,
    CompiledCall,
    item_size,
    operand_t,
    request_t,
)

cdef class aclOpExecutor:
    cdef readonly CompiledCall planned     # what phase one made, and told the workspace's size of
    cdef readonly CompiledCall latest      # what the latest run used; None before the first
    cdef aclOpExecutor original    # the executor that a snapshot was taken of
    cdef OperatorHandle handle
    cdef readonly str origin       # the C-shaped function or functional name it was made by
    cdef tuple names               # operand names in that function's spelling, outputs last
    cdef tuple order               # operands in the order of its signature, inputs and outputs
    cdef list bound                # aclTensor or ndarray per operand, outputs last; None: no data
    cdef object result             # what run() gives back, in the caller's kind of array
    cdef object keep               # whatever the arrays' memory hangs on
    cdef object scalar_texts, switches
    cdef request_t request
    cdef readonly bint repeatable, spent, destroyed
    cdef object __weakref__
    cdef bint from_tensors
    cdef operand_t few_operands[FEW]
    cdef unsigned int few_versions[FEW]
    cdef unsigned int *versions    # of tensors, when phase one read them
    cdef bytes room                # where operands and versions lie that are not few

    cdef int make_room(self, int n_inputs, int n_outputs) except -1
    cdef tuple bind(self, object arrays, char **addresses)
    cdef object result_with(self, int number, object given)
    cdef object fitting(self, int slot, object given, object planned_for, operand_t *found)
    cdef bint is_absent(self, int slot) noexcept
    cdef int refuse_destroyed(self) except -1
    cdef aclOpExecutor snapshot(self, object held)
    cdef object addresses_now(self, char **addresses)
    cdef int check_tensor(self, aclTensor tensor, int index) except -1
    cdef CompiledCall plan_shown(self)
    cdef int show_next(self) except -1
    cdef CompiledCall plan_for(self, char **addresses)
    cdef int execute(self, char **addresses, char *workspace, object result) except -1
cdef aclOpExecutor new_executor()

cdef inline char *address_of(aclTensor tensor) noexcept:
    return tensor.storage + tensor.offset * item_size(tensor.dtype) if tensor.storage else NULL
