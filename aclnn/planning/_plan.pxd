from libc.stdint cimport int64_t

from graph.abi cimport (
    SCHEDULE_NUMBERS as MAX_SCALARS,
    kernel_number,
    schedule_event,
    schedule_run_fn,
    schedule_t,
)

cdef enum:
    MOST_INPUTS = 2  # that kernels and functional forms have places for
    MAX_DIMS = 8
    MAX_TENSORS = 4
    ABSENT = -1  # ndim of an output that is still to be made
    INHERIT = -1  # as the process is set to
    UNSEEN = 0x7FFF  # number of switches that no plan had yet

cdef enum Overlap:
    APART = 0  # no byte in common, as far as the extents tell
    SAME = 1  # the same elements at the same addresses: safe in place
    CROSSING = 2  # bytes in common in another way: the input must be copied first

cdef struct operand_t:
    char *data
    int dtype
    int format
    int ndim
    bint writable
    int64_t shape[MAX_DIMS]
    int64_t strides[MAX_DIMS]  # elements

cdef struct request_t:
    # One call as the plan cache sees it; inputs in the kernels' order, the output last.
    int operator_id
    int n_inputs
    int switches       # bits, see OperatorHandle
    int scalar_signs   # two bits each: negative, not convertible
    int materialize    # 0, 1 or INHERIT
    int strategy       # place in aclnn.graph.planners.STRATEGIES, or INHERIT
    operand_t operands[MAX_TENSORS]
    const double *numbers  # the scalars, for messages; NULL where these have other texts

cdef class Plan:
    cdef readonly object operator, call
    cdef readonly object graph_as_built, passes, graph, workspace, schedule
    cdef readonly object packed
    cdef readonly Py_ssize_t workspace_size
    cdef readonly int64_t elements
    cdef readonly tuple out_shape
    cdef const schedule_t *steps
    cdef int n_inputs, out_ndim, out_dtype
    cdef int64_t out_dims[MAX_DIMS]
    cdef int overlaps
    cdef bint scalars_as_double
    cdef int64_t low[MAX_TENSORS]   # bytes from an operand's address to its lowest byte, <= 0
    cdef int64_t high[MAX_TENSORS]  # ... and to the one past its highest
    cdef bint same_layout[MAX_TENSORS]
    cdef unsigned long last_used
    cdef _describe(self, tensors)

cdef class OperatorHandle:
    cdef readonly object operator
    cdef readonly int id, n_inputs, n_scalars
    cdef readonly dict switch_codes
    cdef readonly tuple scalar_roles
    cdef bytes last_key
    cdef Plan last_plan
    cdef int switch_code(self, object values) except -1
    cdef int learn_switches(self, object values) except -1

cdef object plain(object value)
cdef int item_size(int dtype) noexcept nogil
cdef list signs_of(const request_t *request, int n_scalars)
cdef bint same_layout(const operand_t *a, const operand_t *b) noexcept nogil
cdef void extent(const operand_t *operand, int64_t *low, int64_t *high) noexcept nogil
cdef Plan find_plan(OperatorHandle handle, request_t *request, object names, object scalar_texts,
                    object switches)
cdef bint overlaps_as_planned(Plan plan, char **addresses) noexcept nogil
cdef int run_plan(Plan plan, char **addresses, char *workspace, const double *scalars) except -1
cdef int run_with_own_workspace(Plan plan, char **addresses, const double *scalars) except -1
