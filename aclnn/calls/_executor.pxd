from aclnn.acl._tensor cimport aclTensor
from aclnn.planning._plan cimport (
    MAX_SCALARS,
    MAX_TENSORS,
    OperatorHandle,
    Plan,
    item_size,
    operand_t,
    request_t,
)

cdef class aclOpExecutor:
    cdef readonly Plan planned     # what phase one made, and told the workspace's size of
    cdef readonly Plan latest      # what the latest run used; None before the first
    cdef aclOpExecutor original    # the executor that a snapshot was taken of
    cdef OperatorHandle handle
    cdef readonly str origin       # the C-shaped function or functional name it was made by
    cdef tuple names               # operand names in that function's spelling, output last
    cdef list bound                # aclTensor or ndarray per operand, output last; None: no data
    cdef object result             # what run() gives back, in the caller's kind of array
    cdef object keep               # whatever the arrays' memory hangs on
    cdef double scalars[MAX_SCALARS]
    cdef double exact_scalars[MAX_SCALARS]
    cdef object scalar_texts, switches
    cdef request_t request
    cdef readonly bint repeatable, spent, destroyed
    cdef object __weakref__
    cdef bint from_tensors
    cdef unsigned int versions[MAX_TENSORS]  # of tensors, when phase one read them

    cdef tuple bind(self, object arrays, char **addresses)
    cdef object fitting(self, int slot, object given, object planned_for, operand_t *found)
    cdef int refuse_destroyed(self) except -1
    cdef aclOpExecutor snapshot(self, object held)
    cdef const double *scalar_values(self)
    cdef object addresses_now(self, char **addresses)
    cdef int check_tensor(self, aclTensor tensor, int index) except -1
    cdef Plan plan_shown(self)
    cdef int show_next(self) except -1
    cdef Plan plan_for(self, char **addresses)
    cdef int execute(self, char **addresses, char *workspace, object result) except -1
cdef aclOpExecutor new_executor()

cdef inline char *address_of(aclTensor tensor) noexcept:
    return tensor.storage + tensor.offset * item_size(tensor.dtype) if tensor.storage else NULL
