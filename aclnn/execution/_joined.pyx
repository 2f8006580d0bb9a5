"""Executors of several calls that were joined to one plan: made, and run on other arrays."""

from libc.stdint cimport int64_t
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from aclnn.acl._tensor_spec cimport extent, operand_t
from aclnn.compiler._compiled_call cimport CompiledCall
from aclnn.compiler._request cimport MANY, NUMBER_FORMS
from aclnn.execution._bindings cimport ArrayForm
from aclnn.execution._executor cimport aclOpExecutor, new_executor
from aclnn.execution._operand cimport Headers, fits, read_array
from aclnn.execution._tensors cimport read_tensor
from aclnn.graph.runtime.kernel_abi cimport kernel_number


def join_executor(CompiledCall plan not None, replan, str origin not None, arrays not None,
                  numbers=(), nest=None, ties=None, kind=None, given=None, description=None,
                  takes=None, names=None):
    """An executor of calls that were joined to one plan, bound to arrays.

    Parameters
    ----------
    plan : CompiledCall
    replan : callable
        Gives a plan for other overlaps of inputs with outputs: a row for each output.
    origin : str
        What messages call it.
    arrays : sequence of array or None
        Inputs, then outputs, as they were planned. None for an output that each run makes, or an
        input that is still to be given.
    numbers : sequence of (float, float, int), or bytes
        That kernels read at run time: rounded to float32, as they are, and whole; or packed.
    nest : object, optional
        How outputs are handed back and taken: `built`, `flat_outputs`, `flat_inputs`.
    ties : tuple of int, optional
        For each output the place of the input whose memory it is, or -1.
    kind : module, optional
        The library whose kind of array outputs get that are made; by default NumPy's.
    given : sequence, optional
        What stands for each output in the result; by default the arrays.
    description : callable, optional
        Gives for the executor what pickles hold.
    takes : callable, optional
        Sorts what a run is given, by position, by name and among which names: gives arrays by name,
        and packed numbers or None.
    names : sequence of str, optional
        Of all operands, tensors of lists one by one; by default those of joined calls.

    Raises
    ------
    ValueError
        Where there is not an array and a name for each operand of the plan.
    """
    cdef aclOpExecutor executor = new_executor()
    cdef int index
    cdef operand_t found
    executor.planned, executor.origin = plan, origin
    executor.names = ((*plan.operator.inputs, *plan.operator.outputs) if names is None
                      else tuple(names))
    if not plan.n_inputs + plan.n_outputs == len(arrays) == len(executor.names):
        raise ValueError(f"{origin}: {len(arrays)} arrays with {len(executor.names)} names for "
                         f"{plan.n_inputs} inputs and {plan.n_outputs} outputs")
    executor.order = ()
    executor.make_room(plan.n_inputs, plan.n_outputs)
    for index in range(len(arrays)):
        executor.request.operands[index] = plan.operands[index]
    executor.bound = list(arrays)
    executor.given = executor.bound[plan.n_inputs:] if given is None else list(given)
    executor.arrays = ArrayForm()
    executor.arrays.nest, executor.arrays.ties, executor.arrays.kind = nest, ties, kind
    executor.arrays.description, executor.arrays.replan = description, replan
    executor.arrays.numbers = numbers if isinstance(numbers, bytes) else pack_numbers(numbers)
    executor.arrays.takes = takes
    for index, array in enumerate(arrays):
        if array is not None:
            executor.fitting(index, array, &found)
            executor.request.operands[index] = found
    executor.repeatable = True
    executor.pack_bound()
    return executor


def run_on(aclOpExecutor executor not None, Headers inputs not None, out, kind, Headers held=None,
           numbers=None, workspace=None):
    """Run on other arrays, of the planned descriptions, without binding them.

    `inputs` are the first ones, then `held`; outputs that are made become arrays of the library
    `kind`; `numbers` are packed; `workspace` is as for a run of an executor.
    """
    return executor.run_with(inputs, out, kind, held, numbers, workspace)


def takes_outputs(aclOpExecutor executor not None, outs not None):
    """Whether arrays for the first outputs lie as planned, or are refused whatever the layout."""
    cdef operand_t found
    cdef const operand_t *planned
    cdef int index, axis
    for index, one in enumerate(outs):
        planned = &executor.request.operands[executor.request.n_inputs + index]
        if not read_array(one, &found) and not read_tensor(one, &found):
            continue
        if found.dtype != planned.dtype or found.ndim != planned.ndim or fits(&found, planned):
            continue
        for axis in range(found.ndim):
            if found.shape[axis] != planned.shape[axis]:
                break
        else:
            return False
    return True


def outputs_that_meet(outs not None):
    """Pairs of places of arrays whose extents in memory meet; exact for none.

    Parameters
    ----------
    outs : sequence of array

    Returns
    -------
    list of tuple of int
    """
    cdef operand_t found
    cdef const char *begins[MANY]
    cdef const char *ends[MANY]
    cdef int64_t low, high
    cdef int index, other, count = min(len(outs), MANY)
    pairs = []
    for index in range(count):
        one = outs[index]
        begins[index] = ends[index] = NULL
        if not read_array(one, &found) and not read_tensor(one, &found):
            continue
        extent(&found, &low, &high)
        begins[index], ends[index] = found.data + low, found.data + high
        for other in range(index):
            if begins[other] < ends[index] and begins[index] < ends[other]:
                pairs.append((other, index))
    return pairs


def pack_numbers(numbers not None):
    """Numbers as kernels read them: each in three forms, or a float."""
    cdef bytes room = PyBytes_FromStringAndSize(
        NULL, NUMBER_FORMS * len(numbers) * <Py_ssize_t>sizeof(kernel_number))
    cdef kernel_number *forms = <kernel_number *>PyBytes_AS_STRING(room)
    for one in numbers:
        if type(one) is float:
            put_float(one, forms)
            forms += NUMBER_FORMS
            continue
        rounded, exact, whole = one
        forms[0].real, forms[1].real, forms[2].whole = rounded, exact, whole
        forms += NUMBER_FORMS
    return room


cdef void put_float(double value, kernel_number *forms) noexcept:
    forms[0].real, forms[1].real = <double><float>value, value
    forms[2].whole = <int64_t>value if -9.2e18 < value < 9.2e18 else 0
