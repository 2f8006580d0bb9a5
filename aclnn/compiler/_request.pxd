from libc.stdint cimport int64_t

from aclnn.graph.runtime.kernel_abi cimport kernel_number

from aclnn.acl._tensor_spec cimport operand_t

cdef enum:
    MAX_NUMBERS = 8   # arguments of an operator that are numbers and reach kernels at run time
    NUMBER_FORMS = 3  # of each: rounded to float32, as it is, and whole
    FEW = 4           # operands that calls and executors have room for without asking for memory
    SEVERAL = 34      # operands that a functional call has room for: 16 inputs and outputs each
    MANY = 4096       # operands that any call may have, those of lists included
    INHERIT = -1      # as the process is set to

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
    int pair           # of the operator's C-shaped functions, from 1; 0: the functional form
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

cdef extern from "fp_environment.h" nogil:
    double fp_rounded(double) noexcept

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
cdef int facts_of(const request_t *request, int index) noexcept nogil
cdef list number_facts(const request_t *request)
cdef list overlaps_of(const request_t *request)
