"""CANN's functions on executors: how many runs they last for, and other memory for tensors."""

from aclnn.acl._lists cimport aclTensorList
from aclnn.acl._tensor cimport aclTensor
from aclnn.execution._bindings cimport is_absent
from aclnn.execution._executor cimport aclOpExecutor

from aclnn.acl import errors
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import ACLNN_ERR_INNER, ACLNN_ERR_INNER_NULLPTR, ACLNN_SUCCESS
from aclnn.acl.docstring_templates import describe
from aclnn.acl.errors import AclnnError, invalid

cdef int OK = int(ACLNN_SUCCESS)
cdef int INNER = int(ACLNN_ERR_INNER)
cdef int INNER_NULLPTR = int(ACLNN_ERR_INNER_NULLPTR)

cdef enum:
    INPUTS = 1
    OUTPUTS = 2


def aclSetAclOpExecutorRepeatable(executor):
    """Let an executor run more than once.

    Parameters
    ----------
    executor : aclOpExecutor
        From phase one, not run yet.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_INNER_NULLPTR (561103) for an executor that is null or
        destroyed and for anything but an executor; ACLNN_ERR_INNER (561000) for one that was used.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> def tensor(array):
    ...     return aclnn.aclCreateTensor(array.shape, aclnn.ACL_FLOAT, None, 0,
    ...                                  aclnn.ACL_FORMAT_ND, array.shape, array)
    >>> x, out = np.float32([-1, 2]), np.empty(2, np.float32)
    >>> slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    >>> size, executor, status = aclnn.aclnnLeakyReluGetWorkspaceSize(tensor(x), slope, tensor(out))
    >>> aclnn.aclSetAclOpExecutorRepeatable(executor)
    0
    >>> [aclnn.aclnnLeakyRelu(None, size, executor, None) for _ in range(3)]
    [0, 0, 0]
    >>> aclnn.aclDestroyAclOpExecutor(executor)
    0
    """
    if problem := executor_problem(executor):
        return errors.fail(INNER_NULLPTR, f"aclSetAclOpExecutorRepeatable: {problem}")
    if (<aclOpExecutor>executor).spent:
        return errors.fail(INNER, "aclSetAclOpExecutorRepeatable: executor was used already")
    (<aclOpExecutor>executor).repeatable = True
    return OK


def aclDestroyAclOpExecutor(executor):
    """Destroy an executor; queued runs continue.

    Parameters
    ----------
    executor : aclOpExecutor
        From phase one or `aclnn.executor`.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_INNER_NULLPTR (561103) for an executor that is null or
        destroyed and for anything but an executor.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> def tensor(array):
    ...     return aclnn.aclCreateTensor(array.shape, aclnn.ACL_FLOAT, None, 0,
    ...                                  aclnn.ACL_FORMAT_ND, array.shape, array)
    >>> x, out = np.float32([-1, 2]), np.empty(2, np.float32)
    >>> slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    >>> size, executor, status = aclnn.aclnnLeakyReluGetWorkspaceSize(tensor(x), slope, tensor(out))
    >>> aclnn.aclDestroyAclOpExecutor(executor), aclnn.aclDestroyAclOpExecutor(executor)
    (0, 561103)
    """
    if problem := executor_problem(executor):
        return errors.fail(INNER_NULLPTR, f"aclDestroyAclOpExecutor: {problem}")
    (<aclOpExecutor>executor).destroy()
    return OK


# --- Other memory for tensors ---------------------------------------------------------------------

cdef str TENSOR = """Bind other memory to {what}.

    Parameters
    ----------
    executor : aclOpExecutor
        From phase one.
    index : int
        Which {which}. An in-place tensor is input and output in one{counted}.
    tensor : aclTensor
        Any tensor that is not destroyed; the operand's shape, strides and dtype remain those of
        phase one.
    addr : buffer, int or None
        Anything that `aclCreateTensor` takes as `tensorData`; None leaves the operand without data.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_INNER_NULLPTR (561103) for an executor or tensor that is null,
        destroyed or of another type; ACLNN_ERR_PARAM_INVALID (161002) for an index out of range,
        for memory that does not fit or is read-only where an output goes, and for an executor
        made by `aclnn.executor`; ACLNN_ERR_INNER (561000) if memory ran out.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> def tensor(array):
    ...     return aclnn.aclCreateTensor(array.shape, aclnn.ACL_FLOAT, None, 0,
    ...                                  aclnn.ACL_FORMAT_ND, array.shape, array)
    >>> x, out = np.float32([-1, 2]), np.empty(2, np.float32)
    >>> slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    >>> size, executor, status = aclnn.aclnnLeakyReluGetWorkspaceSize(tensor(x), slope, tensor(out))
    >>> other = {other}
    >>> aclnn.{name}(executor, {index}, tensor({given}), other)
    0
    >>> aclnn.{older}(executor, {index}, tensor({given}), other)  # the older spelling
    0
    >>> aclnn.aclnnLeakyRelu(None, size, executor, None)
    0
    >>> {shown}
    array({result}, dtype=float32)
    """

cdef str LIST = """Bind other memory to one tensor of a list{what}.

    Parameters
    ----------
    executor : aclOpExecutor
        From phase one.
    irIndex : int
        Which tensor or list of tensors{which}, in the order of the signature. A list counts once.
    relativeIndex : int
        Which tensor of that list, from 0.
    tensors : aclTensorList
        Any list that is not destroyed; shapes, strides and dtypes remain those of phase one.
    addr : buffer, int or None
        Anything that `aclCreateTensor` takes as `tensorData`; None leaves the operand without data.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_INNER_NULLPTR (561103) for an executor or a list that is null,
        destroyed or of another type; ACLNN_ERR_PARAM_INVALID (161002) for an index out of range or
        of an operand that is not a list, for memory that does not fit, and for an executor made by
        `aclnn.executor`; ACLNN_ERR_INNER (561000) if memory ran out.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> def tensor(array):
    ...     return aclnn.aclCreateTensor(array.shape, aclnn.ACL_FLOAT, None, 0,
    ...                                  aclnn.ACL_FORMAT_ND, array.shape, array)
    """

cdef str OF_INPUTS = """>>> a, b, out = np.float32([1, 2]), np.float32([3]), np.empty(3, np.float32)
    >>> both = aclnn.aclCreateTensorList([tensor(a), tensor(b)])
    >>> size, executor, status = aclnn.aclnnCatGetWorkspaceSize(both, 0, tensor(out))
    >>> aclnn.{name}(executor, 0, 1, both, np.float32([7]))
    0
    >>> aclnn.{older}(executor, 0, 1, both, np.float32([8]))  # the older spelling
    0
    >>> aclnn.aclnnCat(None, size, executor, None)
    0
    >>> out
    array([1., 2., 8.], dtype=float32)
    """

cdef str OF_OUTPUTS = """>>> x, a, b, c = np.float32([1, 2, 3, 4]), *np.zeros((3, 2), np.float32)
    >>> both = aclnn.aclCreateTensorList([tensor(a), tensor(b)])
    >>> size, executor, status = aclnn.aclnnSplitTensorGetWorkspaceSize(tensor(x), 2, 0, both)
    >>> aclnn.{name}(executor, 0, 1, both, c)
    0
    >>> aclnn.{older}(executor, 0, 0, both, a)  # the older spelling
    0
    >>> aclnn.aclnnSplitTensor(None, size, executor, None)
    0
    >>> a, b, c
    (array([1., 2.], dtype=float32), array([0., 0.], dtype=float32), array([3., 4.], dtype=float32))
    """


def aclSetInputTensorAddr(executor, index, tensor, addr):
    return set_address("aclSetInputTensorAddr", INPUTS, executor, (index,), tensor, addr)


def aclSetOutputTensorAddr(executor, index, tensor, addr):
    return set_address("aclSetOutputTensorAddr", OUTPUTS, executor, (index,), tensor, addr)


def aclSetTensorAddr(executor, index, tensor, addr):
    return set_address("aclSetTensorAddr", INPUTS | OUTPUTS, executor, (index,), tensor, addr)


def aclSetDynamicInputTensorAddr(executor, irIndex, relativeIndex, tensors, addr):
    return set_address("aclSetDynamicInputTensorAddr", INPUTS, executor,
                       (irIndex, relativeIndex), tensors, addr)


def aclSetDynamicOutputTensorAddr(executor, irIndex, relativeIndex, tensors, addr):
    return set_address("aclSetDynamicOutputTensorAddr", OUTPUTS, executor,
                       (irIndex, relativeIndex), tensors, addr)


def aclSetDynamicTensorAddr(executor, irIndex, relativeIndex, tensors, addr):
    return set_address("aclSetDynamicTensorAddr", INPUTS | OUTPUTS, executor,
                       (irIndex, relativeIndex), tensors, addr)


describe(
    aclSetInputTensorAddr, TENSOR, older="AclSetInputTensorAddr", index=0, given="x", counted="",
    what="the `index`-th tensor input, counted in signature order", which="tensor input, from 0",
    other="np.float32([-4, 8])", shown="out", result="[-2.,  8.]")
describe(
    aclSetOutputTensorAddr, TENSOR, older="AclSetOutputTensorAddr", index=0, given="out",
    counted="", what="the `index`-th tensor output, counted in signature order",
    which="tensor output, from 0",
    other="np.empty(2, np.float32)", shown="other", result="[-0.5,  2. ]")
describe(
    aclSetTensorAddr, TENSOR, older="AclSetTensorAddr", index=1, given="out",
    counted=", and counts once", what="the `index`-th tensor",
    which="tensor, from 0: inputs in signature order, then outputs",
    other="np.empty(2, np.float32)", shown="other", result="[-0.5,  2. ]")
describe(
    aclSetDynamicInputTensorAddr, LIST + OF_INPUTS, older="AclSetDynamicInputTensorAddr",
    what=" of inputs", which=" among the inputs, from 0")
describe(
    aclSetDynamicOutputTensorAddr, LIST + OF_OUTPUTS, older="AclSetDynamicOutputTensorAddr",
    what=" of outputs", which=" among the outputs, from 0")
describe(
    aclSetDynamicTensorAddr, LIST + OF_INPUTS, older="AclSetDynamicTensorAddr",
    what="", which=", from 0: inputs, then outputs")


# CANN's older spelling.
AclSetInputTensorAddr = aclSetInputTensorAddr
AclSetOutputTensorAddr = aclSetOutputTensorAddr
AclSetTensorAddr = aclSetTensorAddr
AclSetDynamicInputTensorAddr = aclSetDynamicInputTensorAddr
AclSetDynamicOutputTensorAddr = aclSetDynamicOutputTensorAddr
AclSetDynamicTensorAddr = aclSetDynamicTensorAddr


cdef object executor_problem(object executor):
    if executor is None:
        return "executor is null"
    if not isinstance(executor, aclOpExecutor):
        return f"executor is {type(executor).__name__}, must be an aclOpExecutor"
    if (<aclOpExecutor>executor).destroyed:
        return "executor is destroyed"
    return None


cdef object set_address(str function, int roles, object executor, tuple index, object value,
                        object addr):
    """Bind memory to the tensor at a place: its index, or that of a list and its own in there.

    Operands of these `roles` count. `value` is the tensor or the list that CANN's functions take.
    """
    try:
        refuse_null(executor, value, aclTensor if len(index) == 1 else aclTensorList)
        refuse_arrays(<aclOpExecutor>executor)
        bind_slots(<aclOpExecutor>executor, slots_at(<aclOpExecutor>executor, roles, index), addr)
    except AclnnError as error:
        return errors.fail(error.status, f"{function}: {error}")
    except MemoryError as error:
        return errors.fail(INNER, f"{function}: {error}")
    return OK


cdef int refuse_null(object executor, object value, object kind) except -1:
    if problem := executor_problem(executor):
        raise AclnnError(INNER_NULLPTR, problem)
    if not isinstance(value, kind) or value.destroyed:
        name = "tensor" if kind is aclTensor else "tensors"
        raise AclnnError(INNER_NULLPTR, f"{name} is null, destroyed or no {kind.__name__}")
    return 0


def slots_bound_by(str function not None, aclOpExecutor executor not None,
                   tuple index not None):
    """The operands whose memory one of the functions above binds; raises `AclnnError` for none.

    `function` is its name, `index` an index, or that of a list and one within.
    """
    cdef int roles = (INPUTS if "Input" in function else OUTPUTS if "Output" in function
                      else INPUTS | OUTPUTS)
    return slots_at(executor, roles, index)


def bind_to(aclOpExecutor executor not None, slots not None, addr):
    """Bind memory to operands; raises `AclnnError`, and binds nothing, where it does not fit."""
    bind_slots(executor, slots, addr)


cdef object slots_at(aclOpExecutor executor, int roles, tuple position):
    """The operands that the tensor at a place stands for."""
    if len(position) == 1:
        slots = operand_slots(executor, roles)
        return slots[place_of("index", position[0], len(slots))]
    parameters = parameter_slots(executor, roles)
    index = place_of("irIndex", position[0], len(parameters))
    name, listed = parameters[index]
    if name is not None:
        raise invalid(f"irIndex is {index}, which is {name}: no list of tensors")
    return listed[place_of("relativeIndex", position[1], len(listed))]


cdef int refuse_arrays(aclOpExecutor executor) except -1:
    if not executor.from_tensors:
        raise invalid("executor was made by aclnn.executor(), which binds arrays: "
                      "executor.run(...) takes others by name")
    return 0


cdef object place_of(str name, object index, Py_ssize_t count):
    position = as_int(index)
    if position is None or not 0 <= position < count:
        raise invalid(f"{name} is {shown(index)}, must be from 0 to {count - 1}")
    return position


cdef list parameter_slots(aclOpExecutor executor, int roles):
    """The name of each tensor of the signature, or for a list None and the slots of its tensors."""
    parameters, lists = [], {}
    for found in operand_slots(executor, roles):
        name = executor.names[found[0]]
        if name.endswith("]"):  # of a list, as out[0]
            key = name.rpartition("[")[0]
        else:
            parameters.append((name, None))
            continue
        if key not in lists:
            lists[key] = []
            parameters.append((None, lists[key]))
        lists[key].append(found)
    return parameters


cdef int bind_slots(aclOpExecutor executor, object slots, object addr) except -1:
    """Bind memory to an operand, which is input and output in one in place."""
    # Reading `addr` may run anything, which may destroy the executor.
    cdef list planned_for = executor.bound
    if executor.destroyed:
        raise AclnnError(INNER_NULLPTR, "executor is destroyed")
    new = {}
    for slot in slots:
        if is_absent(executor, slot):
            raise invalid(f"{executor.names[slot]} was null at phase one")
        new[slot] = (<aclTensor>planned_for[slot]).with_data(addr)
    for slot, tensor in new.items():
        written = slot >= executor.request.n_inputs
        if written and not tensor.writable and tensor.bytes_needed():
            raise invalid(f"addr is read-only, but {executor.names[slot]} is the output")
    # Nothing below runs anything: what is replaced goes at the end.
    if executor.destroyed:
        raise AclnnError(INNER_NULLPTR, "executor is destroyed")
    before = executor.bound
    after = list(before)
    for slot, tensor in new.items():
        after[slot] = tensor
    executor.bound = after
    executor.rebound = True
    return 0


cdef list operand_slots(aclOpExecutor executor, int roles):
    """The operands each index stands for; an in-place tensor is input and output in one."""
    cdef int first_output = executor.request.n_inputs
    slots = []
    for found in executor.order:
        requested = False
        for slot in found:
            requested = requested or roles & (INPUTS if slot < first_output else OUTPUTS)
        if requested:
            slots.append(list(found))
    return slots
