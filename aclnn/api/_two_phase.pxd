from cpython.object cimport PyObject

from aclnn.acl._lists cimport aclTensorList
from aclnn.acl._tensor cimport aclScalar, aclTensor
from aclnn.acl.objects cimport c_scalar
from aclnn.api._arguments cimport MAX_PARAMETERS, function_t
from aclnn.compiler._plan_cache cimport OperatorHandle
from aclnn.compiler._request cimport request_t
from aclnn.execution._executor cimport aclOpExecutor

cdef enum:
    INPUT, OUTPUT, INOUT, LIST, OUTPUTS, SCALAR, FLOAT, SWITCH
    SINGLE, ARRAY, ABSENT_ONE, LATER, IGNORED, ZERO
    ACL_DOUBLE = 11

cdef class EntryHandle:
    cdef readonly OperatorHandle handle
    cdef readonly object entry
    cdef readonly str name
    cdef readonly dict names
    cdef str plan_name
    cdef tuple operand_names
    cdef frozenset unread  # names of inputs that no operator looks at
    cdef tuple own_order  # of operands, where none is a list
    cdef int n_parameters
    cdef bint has_arrays  # whether some input is an aclIntArray
    cdef int place        # among the operator's pairs, from 1
    cdef int kinds[MAX_PARAMETERS]
    cdef int slots[MAX_PARAMETERS]    # of outputs, their number among them
    cdef bint nullable[MAX_PARAMETERS]
    cdef tuple objects  # the type of each parameter that is an object
    cdef request_t defaults  # the numbers that the pair does not take
    cdef tuple fixed_switches
    cdef bint shares_kind[MAX_PARAMETERS]  # the fixed switch and what is given here
    cdef int fixed_code
    cdef tuple switch_kinds, choices
    cdef tuple parameter_names
    cdef function_t plan_function, run_function
    cdef tuple c_texts
    cdef object find  # by name
    cdef dict made    # the functions by name, once there are any

    cdef object plan(self, PyObject **arguments)
    cdef int check_arrays(self, aclOpExecutor executor, PyObject **arguments) except -1
    cdef int make_room_for_shapes(self, aclOpExecutor executor) except -1
    cdef int read_unlike(self, aclOpExecutor executor, int index, int slot,
                         object value) except -1
    cdef tuple as_tuple(self, PyObject **arguments)
    cdef int plan_failed(self, object error, tuple arguments) except -1
    cdef int find_plan_for(self, aclOpExecutor executor) except -1
    cdef aclOpExecutor begin(self, int n_inputs, int n_outputs)
    cdef int finish(self, aclOpExecutor executor, object switches, tuple starts) except -1
    cdef aclOpExecutor read_in_c(self, const request_t *request, PyObject **arguments)
    cdef aclOpExecutor read(self, PyObject **arguments)
    cdef tuple starts_of(self, PyObject **arguments)
    cdef int count_outputs(self, PyObject **arguments) except -1
    cdef int name_outputs_of(self, aclOpExecutor executor) except -1
    cdef void take_defaults(self, request_t *request) noexcept nogil
    cdef int name_lists(self, aclOpExecutor executor, tuple starts) except -1
    cdef int read_tensors(self, aclOpExecutor executor, int kind, int slot,
                          object value) except -1
    cdef int refuse_rank(self, aclOpExecutor executor) except -1
    cdef int merge_dims(self, aclOpExecutor executor) except -1
    cdef int refuse_null(self, PyObject **arguments) except -1
    cdef bint is_alive(self, int index, object value) noexcept
    cdef int refuse_dead(self, int index, aclTensorList listed) except -1
    cdef object read_switch(self, int index, object value)
    cdef int read_scalar(self, aclOpExecutor executor, int index, int slot,
                         aclScalar value) except -1
    cdef int keep_text(self, aclOpExecutor executor, int slot, object scalar) except -1
    cdef int read_float(self, aclOpExecutor executor, int index, int slot, object value) except -1
    cdef int read_tensor(self, aclOpExecutor executor, int slot, aclTensor value) except -1
    cdef object run(self, workspace, workspaceSize, executor, stream)
    cdef object failed(self, int status, error, executor, stream)

cdef bint has_call_hook() noexcept nogil
cdef void take_scalar(OperatorHandle handle, const c_scalar *given, request_t *request,
                      int slot) noexcept nogil
