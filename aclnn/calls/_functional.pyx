"""The functional layer's fast path: arrays in, arrays out.

A call on NumPy arrays reads their headers, finds the plan, and runs it.  Everything else an
array may be (a DLPack exporter, a byte-swapped or misaligned array) is turned into such arrays
first, by `aclnn.calls.arrays`.
"""

cimport numpy as cnp
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

import sys

from aclnn.calls._arguments cimport function_t, new_function, take_arguments
from aclnn.calls._executor cimport aclOpExecutor, new_executor
from aclnn.planning._plan cimport (
    ABSENT,
    INHERIT,
    MAX_DIMS,
    MAX_SCALARS,
    MAX_TENSORS,
    MOST_INPUTS,
    OperatorHandle,
    Plan,
    find_plan,
    operand_t,
    plain,
    request_t,
    run_with_own_workspace,
    same_layout,
)

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.arguments import as_int, as_real, as_truth, shown
from aclnn.acl.constants import ACLNN_ERR_INNER, aclDataType
from aclnn.acl.errors import AclnnError, invalid
from aclnn.acl.rounding import as_float_once

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    bint PyArray_ISBEHAVED_RO(cnp.ndarray array)

cdef double EXACT = 2.0**53  # up to here doubles hold all integers

cdef object _BFLOAT16 = dtypes.NUMPY[aclDataType.ACL_BF16]
cdef int BFLOAT16_NUMBER = _BFLOAT16.num
cdef enum:
    FORMAT_ND = 2
    ACL_BF16 = 27
    NO_DTYPE = -1
    # Where the arguments of a call go: operands in the kernels' order, numbers, then switches.
    FIRST = 0
    OUT = FIRST + MOST_INPUTS
    NUMBERS = OUT + 1
    SWITCHES = NUMBERS + MAX_SCALARS
    SLOTS = SWITCHES + 4

# CANN's number for each of NumPy's own type numbers.
cdef int[32] ACL_NUMBER
ACL_NUMBER[:] = [NO_DTYPE] * 32
for _acl, _kind in dtypes.NUMPY.items():
    if _kind.num < 32:
        ACL_NUMBER[_kind.num] = _acl
ACL_NUMBER[np.dtype("longlong").num] = aclDataType.ACL_INT64
ACL_NUMBER[np.dtype("ulonglong").num] = aclDataType.ACL_UINT64
cdef dict _DTYPE_OF = {int(acl): kind for acl, kind in dtypes.NUMPY.items()}


cdef int acl_number(object array) noexcept:
    cdef int number = cnp.PyArray_TYPE(array)
    if number == BFLOAT16_NUMBER:
        return ACL_BF16
    return ACL_NUMBER[number] if 0 <= number < 32 else NO_DTYPE


cdef bint read_array(object array, operand_t *operand) noexcept:
    """Take an array's header; False where its memory is not what kernels can read."""
    cdef int axis
    cdef cnp.npy_intp size, stride
    operand.dtype = acl_number(array)
    operand.ndim = cnp.PyArray_NDIM(array)
    if operand.dtype == NO_DTYPE or operand.ndim > MAX_DIMS:
        return False
    if not PyArray_ISBEHAVED_RO(<cnp.ndarray>array):
        return False
    size = cnp.PyArray_ITEMSIZE(<cnp.ndarray>array)
    operand.data = <char *>cnp.PyArray_DATA(array)
    operand.format = FORMAT_ND
    operand.writable = cnp.PyArray_ISWRITEABLE(array)
    for axis in range(operand.ndim):
        stride = cnp.PyArray_STRIDE(array, axis)
        if stride != size:
            if stride % size:
                return False
            stride //= size
        else:
            stride = 1
        operand.shape[axis] = cnp.PyArray_DIM(array, axis)
        operand.strides[axis] = stride
    return True


def reads(array):
    """Whether kernels can work on the array's own memory."""
    cdef operand_t operand
    return read_array(array, &operand)


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

    def __init__(self, OperatorHandle handle, str name, parameters, int n_positional):
        operator = handle.operator
        self.handle = handle
        self.name = name
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
        return new_function(&self.own_function, self, module, self.c_name, self.c_doc,
                            <void *>call_with_names)

    def __reduce__(self):
        from aclnn.calls import functional

        return functional.form, (self.name,)

    def __getattr__(self, name):
        """Functions are pickled as attributes of what they belong to."""
        from aclnn.calls import functional

        if name != self.name:
            raise AttributeError(name)
        return functional.FUNCTIONS[name]

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
            if given[index] == NULL or not (cnp.PyArray_Check(<object>given[index]) and read_array(
                    <object>given[index], &request.operands[index])):
                return self.call_foreign(given, out, switches)
        if out is None:
            take_absent(&request.operands[n_inputs])
        elif not (cnp.PyArray_Check(out) and read_array(out, &request.operands[n_inputs])):
            return self.call_foreign(given, out, switches)
        for index in range(MAX_SCALARS):
            scalars[index] = self.default_numbers[index]
            if index < self.handle.n_scalars and given[NUMBERS + index] != NULL:
                scalars[index] = number(self, index, <object>given[NUMBERS + index], &request)
        self.read_options(&request, scalars, switches)
        plan = find_plan(self.handle, &request, self.names, None,
                         self.default_switches if switches is None else switches)
        if out is None:
            out = new_output(plan)
            request.operands[n_inputs].data = <char *>cnp.PyArray_DATA(out)
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
        from aclnn.calls import arrays

        operands = tuple([
            None if given[index] == NULL else <object>given[index]
            for index in range(self.handle.n_inputs)])
        numbers = tuple([
            self.scalar_defaults[index] if given[NUMBERS + index] == NULL
            else <object>given[NUMBERS + index]
            for index in range(self.handle.n_scalars)])
        return arrays.call_foreign(self, operands, out, numbers, switches)

    def bind(self, operands, out, numbers, switches, arrays_of_caller, materialize=None,
             strategy=None):
        """An executor for these arrays, planned and bound; see `aclnn.executor`."""
        cdef aclOpExecutor executor = new_executor()
        cdef int n_inputs = self.handle.n_inputs
        cdef int index
        numbers = [plain_number(self, index, value) for index, value in enumerate(numbers)]
        for index, array in enumerate(operands):
            if not read_array(array, &executor.request.operands[index]):
                refuse_layout(self.operand_names[index], array)
        if out is None:
            take_absent(&executor.request.operands[n_inputs])
        elif not read_array(out, &executor.request.operands[n_inputs]):
            refuse_layout("out", out)
        for index in range(MAX_SCALARS):
            executor.exact_scalars[index] = 0.0 if index >= len(numbers) else number(
                self, index, numbers[index], &executor.request)
        if switches is not None:
            switches = tuple([
                as_switch(self, attribute, value)
                for attribute, value in zip(self.handle.operator.switches, switches)])
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
            out = new_output(executor.planned)
            read_array(out, &executor.request.operands[n_inputs])
        executor.bound = [*operands, out]
        executor.result = in_callers_kind(arrays_of_caller, out)
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
        kept = [value] if kept is None else [*kept, value]
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


cdef object in_callers_kind(object arrays_of_caller, object out):
    """The output as the caller knows it: the object given, or the inputs' kind of array."""
    from aclnn.calls import arrays as interchange

    *inputs, given = arrays_of_caller
    if given is not None:
        return given
    foreign = [array for array in inputs if not isinstance(array, np.ndarray)]
    return interchange.like(foreign[0], out) if foreign else out


cdef inline void take_absent(operand_t *out) noexcept:
    """An output that is still to be made."""
    out.ndim, out.dtype, out.format, out.writable = ABSENT, 0, FORMAT_ND, True


cdef object new_output(Plan plan):
    if plan.out_dtype == ACL_BF16:
        return np.empty(plan.out_shape, _BFLOAT16)
    return cnp.PyArray_EMPTY(plan.out_ndim, <cnp.npy_intp *>plan.out_dims,
                             (<object>_DTYPE_OF[plan.out_dtype]).num, 0)


def refuse_layout(name, array):
    raise invalid(
        f"{name} is an array of dtype {array.dtype} with {array.ndim} dimensions and strides "
        f"{array.strides}; executors need a native, aligned array of a known dtype with at most "
        f"{MAX_DIMS} dimensions")


def rebind(aclOpExecutor executor, arrays):
    """Bind other arrays of the planned description to an executor.

    Returns what is bound then, the output in the caller's kind, and the addresses of all operands
    as bytes. All of it is of one moment, whatever other threads bind.
    """
    cdef operand_t found[MAX_TENSORS]
    cdef char *addresses[MAX_TENSORS]
    cdef int slot
    planned_for = executor.bound
    refuse_destroyed(executor)
    if executor.from_tensors:
        raise invalid(
            f"{executor.origin}: bind other memory with aclSetTensorAddr; arrays by name are for "
            "executors made by aclnn.executor()")
    slots = {}
    for name, given in arrays.items():
        if name not in executor.names:
            raise invalid(
                f"{executor.origin}: no operand is called {name!r}, "
                f"they are {', '.join(executor.names)}")
        slot = executor.names.index(name)
        slots[slot] = fitting_array(executor, slot, given, planned_for[slot], &found[slot]), given
    # Nothing below lets another thread run: what is replaced is let go of at the end.
    refuse_destroyed(executor)
    _before = executor.bound, executor.result
    bound = list(executor.bound)
    for slot in range(len(executor.names)):
        if slot in slots:
            bound[slot], given = slots[slot]
            executor.request.operands[slot].data = found[slot].data
            if slot == len(executor.names) - 1:
                executor.result = given
        addresses[slot] = executor.request.operands[slot].data
    executor.bound = bound
    return bound, executor.result, (<char *>addresses)[:len(executor.names) * sizeof(char *)]


cdef object fitting_array(aclOpExecutor executor, int slot, object given, object planned_for,
                          operand_t *found):
    """What is given for an operand as an array, if it is of the planned description."""
    from aclnn.calls import arrays as interchange

    name = executor.names[slot]
    array = interchange.as_ndarray(given, name)
    if not read_array(array, found):
        refuse_layout(name, array)
    if not fits(found, &executor.request.operands[slot]):
        raise invalid(
            f"{executor.origin}: {name} is {describe(array)}, but the plan is for "
            f"{describe(planned_for)}")
    if slot == len(executor.names) - 1 and not found.writable:
        raise invalid(f"{executor.origin}: {name} is read-only")
    return array


cdef int refuse_destroyed(aclOpExecutor executor) except -1:
    if executor.destroyed:
        raise AclnnError(ACLNN_ERR_INNER, f"{executor.origin}: executor is destroyed")
    return 0


def describe(array):
    """
    >>> describe(np.zeros((2, 3), np.float16))
    'float16[2, 3] with strides (3, 1)'
    """
    strides = tuple(stride // max(1, array.itemsize) for stride in array.strides)
    return f"{array.dtype}{list(array.shape)} with strides {strides}"


cdef bint fits(const operand_t *found, const operand_t *planned) noexcept:
    """Whether the description is the planned one."""
    return found.dtype == planned.dtype and same_layout(found, planned)
