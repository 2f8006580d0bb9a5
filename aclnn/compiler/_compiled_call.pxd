from libc.stdint cimport int64_t, uint64_t

from graph.runtime.abi cimport (
    PROGRAM_NO_MEMORY,
    kernel_number,
    program_event,
    program_failure,
    program_run_fn,
    program_t,
)

from aclnn.acl._tensor_spec cimport TensorSpec, operand_t

cdef enum:
    MAX_NUMBERS = 8   # arguments of an operator that are numbers and reach kernels at run time
    NUMBER_FORMS = 3  # of each: rounded to float32, as it is, and whole
    FEW = 4           # operands that calls and executors have room for without asking for memory
    SEVERAL = 34      # operands that a functional call has room for: 16 inputs and outputs each
    MANY = 256        # operands that any call may have, those of lists included
    INHERIT = -1      # as the process is set to
    UNSEEN = 0x7FFF   # number of switches that no plan had yet
    NEEDS_LOCK = -1000000  # what `run_unlocked` gives where nothing ran

cdef enum NumberForm:
    ROUNDED = 0
    EXACT = 1
    WHOLE = 2

cdef enum NumberFact:
    # What a plan may depend on of a number, besides its dtype.
    NEGATIVE = 1
    NOT_REAL = 2   # does not convert to a float
    IS_ZERO = 4
    IS_ONE = 8
    IS_NAN = 16
    IS_WHOLE = 32
    IS_ABSENT = 64  # none was given, where that is possible
    IS_BELOW = 128  # less than the number before it; known only once both are there
    SIGN_FACTS = 67  # what plans of most operators depend on

cdef struct request_t:
    # One call as the plan cache sees it; inputs in the operator's order, then outputs.
    int operator_id
    int n_inputs
    int n_outputs
    int switches       # number of their values, see OperatorHandle
    int materialize    # 0, 1 or INHERIT
    int strategy       # place in aclnn.graph.planner.STRATEGIES, or INHERIT
    bint makes_absent  # whether outputs that are absent are made, or not wanted
    int n_numbers
    unsigned short facts[MAX_NUMBERS]  # NumberFact, and from the eighth bit on the dtype
    kernel_number numbers[MAX_NUMBERS * NUMBER_FORMS]
    operand_t *operands

cdef struct thread_limits_t:
    int openmp
    int own

cdef struct pair_t:
    # An input and an output. Their bytes meet where the distance of their addresses, less `below`,
    # is less than `reach`, both without a sign.
    int input, output
    int64_t below
    uint64_t reach

cdef class CompiledCall:
    cdef readonly object operator, call
    cdef readonly object graph_as_built, passes, graph, workspace, schedule
    cdef readonly object packed
    cdef readonly Py_ssize_t workspace_size
    cdef readonly int64_t elements  # of the largest operand or loop; 0 where nothing runs
    cdef public int own_threads     # that runs may use; 0: as the process is set to
    cdef readonly tuple out_shapes
    cdef const program_t *steps
    cdef int n_inputs, n_outputs
    cdef operand_t *operands        # without addresses
    cdef int *slots                 # operands that the steps take; NULL where they take all
    cdef int n_arguments            # how many these are
    cdef bint has_long_calls        # opaque kernels that are worth several threads
    cdef int64_t *low               # bytes from an operand's address to its lowest byte, <= 0
    cdef int64_t *high              # ... and to the one past its highest
    cdef unsigned char *overlaps    # of each input with each output, in turn
    cdef pair_t *pairs              # of those that could meet
    cdef int n_pairs
    cdef unsigned long last_used
    cdef int _describe(self, tensors, overlaps) except -1
    cdef int _take(self, int index, TensorSpec spec) except -1
    cdef int _pair(self, int index, int at, int planned) except -1
    cdef int _mark_in_place(self, arguments) except -1
    cdef int _leave_out(self, arguments) except -1

cdef class OperatorHandle:
    cdef readonly object operator
    cdef readonly int id, n_inputs, n_outputs, n_scalars
    cdef readonly bint is_variadic  # some input is a list of tensors
    cdef readonly bint makes_list   # the output is one
    cdef readonly dict switch_codes
    cdef readonly tuple scalar_roles
    cdef unsigned short fact_masks[MAX_NUMBERS]
    cdef readonly bint keyed_by_numbers  # plans depend on the numbers themselves
    cdef bytes last_key
    cdef CompiledCall last_plan
    cdef int switch_code(self, object values) except -1
    cdef int learn_switches(self, object values) except -1

cdef extern from "fp_environment.h" nogil:
    double fp_rounded(double) noexcept

cdef int64_t settings_word() noexcept nogil
cdef object plain(object value)
cdef inline void put_real(OperatorHandle handle, request_t *request, int index, double value,
                          int dtype) noexcept nogil:
    """Take a number that a float64 holds, with the facts that the operator's plans depend on."""
    if handle.fact_masks[index] == SIGN_FACTS:
        put_sign(request, index, value, dtype)
    else:
        put_number(request, index, value, dtype)

cdef inline void put_sign(request_t *request, int index, double value, int dtype) noexcept nogil:
    """Take a number of which no plan depends on more than the sign; else as `put_number`."""
    cdef kernel_number *forms = &request.numbers[NUMBER_FORMS * index]
    cdef double rounded = fp_rounded(value)
    forms[<int>ROUNDED].real = rounded
    forms[<int>EXACT].real = value
    forms[<int>WHOLE].whole = <int64_t>value if -9.2e18 < value < 9.2e18 else 0
    request.facts[index] = <unsigned short>((NEGATIVE if rounded < 0 else 0) | dtype << 8)

cdef void put_number(request_t *request, int index, double value, int dtype) noexcept nogil
cdef void put_absent(request_t *request, int index) noexcept nogil
cdef void put_whole(request_t *request, int index, double rounded, int64_t value,
                    int dtype) noexcept nogil
cdef list overlaps_of(const request_t *request)
cdef int facts_of(const request_t *request, int index) noexcept nogil
cdef list number_facts(const request_t *request)
cdef CompiledCall find_plan(OperatorHandle handle, request_t *request, object names,
                            object scalar_texts, object switches)
cdef bint all_apart(CompiledCall plan, char **addresses) noexcept nogil
cdef bint overlaps_as_planned(CompiledCall plan, char **addresses) noexcept nogil
cdef void run_was_submitted(int64_t nanoseconds) noexcept
cdef int run_plan(CompiledCall plan, char **addresses, char *workspace,
                  const kernel_number *numbers) except -1
cdef int run_with_own_workspace(CompiledCall plan, char **addresses,
                                const kernel_number *numbers) except -1
cdef Py_ssize_t most_key_words(const request_t *request) noexcept nogil
cdef Py_ssize_t call_key(OperatorHandle handle, const request_t *request,
                         int64_t *key) noexcept nogil
cdef bint plans_are_kept() noexcept nogil
cdef unsigned long plans_forgotten() noexcept nogil
cdef thread_limits_t limits_now() noexcept nogil
cdef bint runs_are_observed() noexcept nogil
cdef void apply_limits(thread_limits_t limits) noexcept nogil
cdef int run_unlocked(CompiledCall plan, char **addresses, char *workspace,
                      const kernel_number *numbers, program_failure *failure) noexcept nogil
cdef int refuse_failed(CompiledCall plan, int failed, const program_failure *failure) except -1
