from libc.stdint cimport int64_t

from aclnn.compiler._compiled_call cimport CompiledCall
from aclnn.compiler._request cimport (
    MAX_NUMBERS,
    SIGN_FACTS,
    put_number,
    put_sign,
    request_t,
)

cdef enum:
    UNSEEN = 0x7FFF   # number of switches that no plan had yet

cdef class OperatorHandle:
    cdef readonly object operator
    cdef readonly int id, n_inputs, n_outputs, n_scalars
    cdef readonly bint is_variadic  # some input is a list of tensors
    cdef readonly bint ends_lists   # None marks where one ends, as other inputs follow
    cdef readonly bint makes_list   # the output is one
    cdef readonly dict switch_codes
    cdef readonly tuple scalar_roles
    cdef unsigned short fact_masks[MAX_NUMBERS]
    cdef readonly bint keyed_by_numbers  # plans depend on the numbers themselves
    cdef bytes last_key
    cdef CompiledCall last_plan
    cdef int switch_code(self, object values) except -1
    cdef int learn_switches(self, object values) except -1

cdef inline void put_real(OperatorHandle handle, request_t *request, int index, double value,
                          int dtype) noexcept nogil:
    """Take a number that a float64 holds, with the facts that the operator's plans depend on."""
    if handle.fact_masks[index] == SIGN_FACTS:
        put_sign(request, index, value, dtype)
    else:
        put_number(request, index, value, dtype)

cdef object plain(object value)
cdef CompiledCall find_plan(OperatorHandle handle, request_t *request, object names,
                            object scalar_texts, object switches)
cdef Py_ssize_t most_key_words(const request_t *request) noexcept nogil
cdef Py_ssize_t call_key(OperatorHandle handle, const request_t *request,
                         int64_t *key) noexcept nogil
cdef bint plans_are_kept() noexcept nogil
cdef unsigned long plans_forgotten() noexcept nogil
