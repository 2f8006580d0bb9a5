"""The functional layer's fast path: arrays in, arrays out.

A call on NumPy arrays reads their headers, finds the plan, and runs it.  Everything else an
array may be (a DLPack exporter, a byte-swapped or misaligned array) is turned into such arrays
first, by `aclnn.calls.arrays`.
"""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

import sys

from aclnn.calls._arguments cimport function_t, new_function, take_arguments
from aclnn.calls._executor cimport aclOpExecutor, new_executor
from aclnn.calls._operand cimport new_output, read_array, read_or_refuse, take_absent
from aclnn.planning._plan cimport (
    INHERIT,
    MAX_SCALARS,
    MAX_TENSORS,
    MOST_INPUTS,
    OperatorHandle,
    Plan,
    find_plan,
    plain,
    request_t,
    run_with_own_workspace,
)

from aclnn.acl.arguments import as_int, as_real, as_truth, shown
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import invalid
from aclnn.acl.rounding import as_float_once
from aclnn.calls import arrays

cdef double EXACT = 2.0**53  # up to here doubles hold all integers

cdef enum:
    # Where the arguments of a call go: operands in the kernels' order, numbers, then switches.
    FIRST = 0
    OUT = FIRST + MOST_INPUTS
    NUMBERS = OUT + 1
    SWITCHES = NUMBERS + MAX_SCALARS
    SLOTS = SWITCHES + 4


cdef class FunctionalHandle:
    """One functional form: its operator, the order of its operands, and their names.

    Parameters
    ----------
    handle : OperatorHandle
    name : str
    parameters : sequence of str
        Of the function, in order, inputs first.
    n_positional : int
        How many may be given by position.
    find : callable
        Finds the handle by `name`: pickles hold these two. Importable by its own name.
    """

    cdef readonly OperatorHandle handle
    cdef readonly str name
    cdef readonly dict names
    cdef tuple operand_names
    cdef object default_switches
    cdef tuple scalar_defaults
    cdef tuple parameter_names
    cdef int default_code
    cdef bint in_place
    cdef double[MAX_SCALARS] default_numbers
    cdef function_t own_function
    cdef bytes c_name, c_doc
    cdef object find  # by name
    cdef object made  # the function, once there is one

    def __init__(self, OperatorHandle handle, str name, parameters, int n_positional, find):
        operator = handle.operator
        self.handle = handle
        self.name = name
        self.find = find
        self.in_place = name == operator.in_place
        roles = (*operator.inputs, "out", *(a.role for a in operator.attributes))
        self.names = {role: role for role in roles}
        if self.in_place:
            self.names["out"] = operator.inputs[0]
        self.operand_names = (*operator.kernel_operands, "out")
        self.scalar_defaults = tuple(a.default for a in operator.scalars)
        self.default_switches = tuple(a.default for a in operator.switches)
        self.default_code = handle.learn_switches(self.default_switches) if operator.switches else 0
        if len(operator.switches) > SLOTS - SWITCHES:
            raise ValueError(f"{name} has {len(operator.switches)} switches, at most "
                             f"{SLOTS - SWITCHES} are possible")
        self.own_function.signature.n_positional = n_positional
        self.own_function.signature.n_required = len(operator.inputs)
        self.parameter_names = tuple(sys.intern(parameter) for parameter in parameters)
        places = self.places_of(operator)
        for index, parameter in enumerate(self.parameter_names):
            self.own_function.signature.slots[<int>index] = places[parameter]
        for index in range(MAX_SCALARS):
            self.default_numbers[<int>index] = 0.0
        for index, default in enumerate(self.scalar_defaults):
            self.default_numbers[<int>index] = number(self, index, default, NULL)

    @staticmethod
    def places_of(operator):
        """The slot of every parameter."""
        places = {"out": OUT}
        places |= {role: FIRST + k for k, role in enumerate(operator.kernel_operands)}
        places |= {a.role: NUMBERS + k for k, a in enumerate(operator.scalars)}
        return places | {a.role: SWITCHES + k for k, a in enumerate(operator.switches)}

    def function(self, str module, str doc):
        """The form as a function that is called without a frame or a dictionary of its own.

        Parameters
        ----------
        module : str
            Where it can be imported from.
        doc : str
            Its docstring, after a line with its signature, one of two hyphens, and an empty one.
        """
        self.c_name, self.c_doc = self.name.encode(), doc.encode()
        self.made = new_function(&self.own_function, self, module, self.c_name, self.c_doc,
                                 <void *>call_with_names)
        return self.made

    def __reduce__(self):
        return self.find, (self.name,)

    def __getattr__(self, name):
        """Functions are pickled as attributes of what they belong to."""
        if name != self.name or self.made is None:
            raise AttributeError(name)
        return self.made

    cdef object call_slots(self, PyObject **given):
        cdef request_t request
        cdef double scalars[MAX_SCALARS]
        cdef char *addresses[MAX_TENSORS]
        cdef Plan plan
        cdef int index, n_inputs = self.handle.n_inputs
        cdef object out = None if given[OUT] == NULL else <object>given[OUT]
        cdef object switches = self.switches_of(given)
        cdef list _kept = plain_numbers(self, given)
        for index in range(n_inputs):
            if given[index] == NULL or not read_array(<object>given[index],
                                                      &request.operands[index]):
                return self.call_foreign(given, out, switches)
        if out is None:
            take_absent(&request.operands[n_inputs])
        elif not read_array(out, &request.operands[n_inputs]):
            return self.call_foreign(given, out, switches)
        for index in range(MAX_SCALARS):
            scalars[index] = self.default_numbers[index]
            if index < self.handle.n_scalars and given[NUMBERS + index] != NULL:
                scalars[index] = number(self, index, <object>given[NUMBERS + index], &request)
        self.read_options(&request, scalars, switches)
        plan = find_plan(self.handle, &request, self.names, None,
                         self.default_switches if switches is None else switches)
        if out is None:
            out = new_output(plan, &request.operands[n_inputs])
        for index in range(n_inputs + 1):
            addresses[index] = request.operands[index].data
        run_with_own_workspace(plan, addresses, scalars)
        return out

    cdef object switches_of(self, PyObject **given):
        """The switches as a tuple; `None` if none of them was given."""
        cdef int index, n_given = 0
        for index in range(SWITCHES, SLOTS):
            n_given += given[index] != NULL
        if n_given == 0:
            return None
        found = []
        for index, attribute in enumerate(self.handle.operator.switches):
            value = attribute.default
            if given[SWITCHES + index] != NULL:
                value = <object>given[SWITCHES + index]
            found.append(as_switch(self, attribute, value))
        return tuple(found)

    def call(self, operands, out, numbers, switches):
        """Run on arrays that kernels can read, operands in the kernels' order."""
        cdef PyObject *given[SLOTS]
        cdef int first, index
        memset(given, 0, sizeof(given))
        given[OUT] = <PyObject *>out
        for first, values in ((FIRST, operands), (NUMBERS, numbers), (SWITCHES, switches or ())):
            for index in range(len(values)):
                given[first + index] = <PyObject *>values[index]
        return self.call_slots(given)

    cdef int read_options(self, request_t *request, const double *scalars,
                          object switches) except -1:
        cdef int index
        request.operator_id = self.handle.id
        request.n_inputs = self.handle.n_inputs
        request.scalar_signs = 0
        request.materialize = request.strategy = INHERIT
        request.numbers = scalars
        for index in range(self.handle.n_scalars):
            request.scalar_signs |= (<float>scalars[index] < 0) << 2 * index
        if switches is None:
            request.switches = self.default_code
        else:
            request.switches = self.handle.switch_code(switches)
        return 0

    cdef object call_foreign(self, PyObject **given, object out, object switches):
        """Run a call with an operand whose memory kernels cannot read as it is."""
        cdef int index
        operands, numbers = [], []
        for index in range(self.handle.n_inputs):
            operands.append(None if given[index] == NULL else <object>given[index])
        for index in range(self.handle.n_scalars):
            numbers.append(self.scalar_defaults[index] if given[NUMBERS + index] == NULL
                           else <object>given[NUMBERS + index])
        return arrays.call_foreign(self, tuple(operands), out, tuple(numbers), switches)

    def bind(self, operands, out, numbers, switches, arrays_of_caller, materialize=None,
             strategy=None):
        """An executor for these arrays, planned and bound; see `aclnn.executor`."""
        cdef aclOpExecutor executor = new_executor()
        cdef int n_inputs = self.handle.n_inputs
        cdef int index
        exact = []
        for index, value in enumerate(numbers):
            exact.append(plain_number(self, index, value))
        for index, array in enumerate(operands):
            read_or_refuse(self.operand_names[index], array, &executor.request.operands[index])
        if out is None:
            take_absent(&executor.request.operands[n_inputs])
        else:
            read_or_refuse("out", out, &executor.request.operands[n_inputs])
        for index in range(MAX_SCALARS):
            executor.exact_scalars[index] = 0.0 if index >= len(exact) else number(
                self, index, exact[index], &executor.request)
        if switches is not None:
            plain_switches = []
            for attribute, value in zip(self.handle.operator.switches, switches):
                plain_switches.append(as_switch(self, attribute, value))
            switches = tuple(plain_switches)
        self.read_options(&executor.request, executor.exact_scalars, switches)
        if materialize is not None:
            executor.request.materialize = bool(materialize)
        if strategy is not None:
            executor.request.strategy = strategy
        memcpy(executor.scalars, executor.exact_scalars, sizeof(executor.scalars))
        executor.handle, executor.origin = self.handle, self.name
        executor.names = self.operand_names
        executor.switches = self.default_switches if switches is None else switches
        executor.planned = find_plan(self.handle, &executor.request, self.names, None,
                                     executor.switches)
        if out is None:
            out = new_output(executor.planned, &executor.request.operands[n_inputs])
            read_array(out, &executor.request.operands[n_inputs])
        executor.bound = list((*operands, out))
        *inputs, given = arrays_of_caller
        executor.result = arrays.like_inputs(inputs, out) if given is None else given
        executor.repeatable = True
        return executor


# --- Arguments ----------------------------------------------------------------------------------

cdef object call_with_names(object form, PyObject *const *values, Py_ssize_t n_values,
                            PyObject *names):
    """What a call of a form's function does: `values` by position, then those with `names`."""
    cdef FunctionalHandle handle = <FunctionalHandle>form
    cdef PyObject *given[SLOTS]
    memset(given, 0, sizeof(given))
    take_arguments(handle.name, handle.parameter_names, &handle.own_function.signature, values,
                   n_values, names, given)
    if handle.in_place:
        given[OUT] = given[FIRST]
    return handle.call_slots(given)


cdef double number(FunctionalHandle handle, int index, object value,
                   const request_t *request) except? -1.0:
    """An option as a double; None stands for -1, CANN's way of saying that there is none."""
    if type(value) is float:
        return <double>value
    if value is None and index < handle.handle.n_scalars:
        if handle.scalar_defaults[index] is None:
            return -1.0
    cdef int overflow = 0
    cdef long long whole
    if type(value) is int:
        whole = PyLong_AsLongLongAndOverflow(value, &overflow)
        return whole if -EXACT <= whole <= EXACT and not overflow else large_integer(
            handle, value, request)
    raise not_real(handle, index, value)


cdef object not_real(FunctionalHandle handle, int index, object value):
    role = handle.handle.scalar_roles[index]
    return invalid(f"{handle.name}: {role} is {shown(value)}, must be a real number")


cdef list plain_numbers(FunctionalHandle handle, PyObject **given):
    """Replace options that are no floats or ints by such; the list returned keeps these alive.

    Converting may run anything, and is therefore done before arrays are looked at.
    """
    cdef int index
    cdef list kept = None
    for index in range(handle.handle.n_scalars):
        if given[NUMBERS + index] == NULL:
            continue
        value = <object>given[NUMBERS + index]
        if value is None or type(value) is float or type(value) is int:
            continue
        value = plain_number(handle, index, value)
        kept = [] if kept is None else kept
        kept.append(value)
        given[NUMBERS + index] = <PyObject *>value
    return kept


cdef object plain_number(FunctionalHandle handle, int index, object value):
    if value is None or type(value) is float:
        return value
    try:
        whole = as_int(value)
        return as_real(value) if whole is None else whole
    except Exception:  # whatever its __float__ raises
        raise not_real(handle, index, value) from None


cdef double large_integer(FunctionalHandle handle, object value,
                          const request_t *request) except? -1.0:
    """An integer beyond what doubles hold exactly, rounded once, to the type it is computed in."""
    cdef int index
    if handle.handle.operator.scalars_as_double:
        for index in range(handle.handle.n_inputs):
            if request.operands[index].dtype == aclDataType.ACL_DOUBLE:
                return as_real(value)
    return as_float_once(value)


cdef object as_switch(FunctionalHandle handle, object attribute, object value):
    """A switch as Python reads it."""
    if attribute.kind != "bool":
        if not isinstance(value, str):
            choices = " or ".join(map(repr, attribute.choices))
            raise invalid(f"{handle.name}: {attribute.role} is {shown(value)}, must be {choices}")
        return plain(value)
    return as_truth(f"{handle.name}: {attribute.role}", value)
