"""A call as the plan cache sees it: descriptions of its operands, and its numbers."""

from libc.stdint cimport int64_t

from aclnn.graph.runtime.kernel_abi cimport kernel_number

from aclnn.acl._tensor_spec cimport ABSENT, extent, operand_t, overlap

from aclnn.acl.constants import aclDataType

cdef bint[256] IS_INTEGER
IS_INTEGER[:] = [False] * 256
for _dtype in aclDataType:
    if _dtype >= 0:
        IS_INTEGER[<int>_dtype] = "INT" in _dtype.name


cdef void put_number(request_t *request, int index, double value, int dtype) noexcept nogil:
    """Take a number that a float64 holds, in every form that kernels may ask for."""
    cdef int64_t whole = 0
    cdef bint fits = -9.2e18 < value < 9.2e18
    if fits:
        whole = <int64_t>value
    put_forms(request, index, fp_rounded(value), value, whole, dtype,
              fits and <double>whole == value)


cdef void put_absent(request_t *request, int index) noexcept nogil:
    """Take that there is no number: for kernels it is -1, CANN's way of saying so."""
    put_number(request, index, -1.0, 0)  # of float32, which matters to none
    request.facts[index] |= IS_ABSENT


cdef void put_whole(request_t *request, int index, double rounded, int64_t value,
                    int dtype) noexcept nogil:
    """Take an integer, and what it is when rounded to float32 once."""
    put_forms(request, index, rounded, <double>value, value, dtype, True)


cdef void put_forms(request_t *request, int index, double rounded, double exact, int64_t whole,
                    int dtype, bint is_whole) noexcept nogil:
    cdef kernel_number *forms = &request.numbers[NUMBER_FORMS * index]
    forms[<int>ROUNDED].real = rounded
    forms[<int>EXACT].real = exact
    forms[<int>WHOLE].whole = whole
    request.facts[index] = <unsigned short>(
        (NEGATIVE if rounded < 0 else 0) | (IS_ZERO if exact == 0 else 0)
        | (IS_ONE if exact == 1 else 0) | (IS_NAN if exact != exact else 0)
        | (IS_WHOLE if is_whole else 0) | dtype << 8)


cdef int facts_of(const request_t *request, int index) noexcept nogil:
    """All facts of a number, that one among them which depends on the number before it."""
    return request.facts[index] | (IS_BELOW if index and is_below(request, index) else 0)


cdef inline bint is_below(const request_t *request, int index) noexcept nogil:
    """Integers are compared as such if the number before is one."""
    cdef const kernel_number *before = &request.numbers[NUMBER_FORMS * (index - 1)]
    cdef const kernel_number *own = &request.numbers[NUMBER_FORMS * index]
    if IS_INTEGER[request.facts[index - 1] >> 8]:
        return own[<int>WHOLE].whole < before[<int>WHOLE].whole
    return own[<int>EXACT].real < before[<int>EXACT].real


cdef list overlaps_of(const request_t *request):
    """Overlaps of each input with each output, in a row for each output."""
    cdef int64_t low, high
    cdef int index, out
    cdef const operand_t *target
    rows = []
    for out in range(request.n_outputs):
        target = &request.operands[request.n_inputs + out]
        row = []
        known = target.ndim != ABSENT and target.data != NULL
        if known:
            extent(target, &low, &high)
        for index in range(request.n_inputs):
            row.append(<int>overlap(&request.operands[index], target, low, high) if known else 0)
        rows.append(row)
    return rows


cdef list number_facts(const request_t *request):
    """Facts about each number for rules: its dtype, `NumberFact`, and its value, which is an
    integer where it is of such a dtype."""
    cdef int index, dtype
    cdef const kernel_number *forms
    cdef object value
    found = []
    for index in range(request.n_numbers):
        forms, dtype = &request.numbers[NUMBER_FORMS * index], request.facts[index] >> 8
        value = forms[<int>EXACT].real
        if IS_INTEGER[dtype] and request.facts[index] & IS_WHOLE:
            value = forms[<int>WHOLE].whole
        found.append((dtype, facts_of(request, index) & 0xFF, value))
    return found
