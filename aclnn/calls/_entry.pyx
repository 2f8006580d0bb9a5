"""The C-shaped function pairs: what phase one makes of a call, and the two phases as functions."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from aclnn.acl._tensor cimport aclScalar, aclTensor
from aclnn.acl.numbers cimport numbers_of
from aclnn.calls._arguments cimport (
    MAX_PARAMETERS,
    function_t,
    new_function,
    signature_t,
    take_arguments,
)
from aclnn.calls._executor cimport aclOpExecutor, address_of, new_executor
from aclnn.calls._phase_two cimport run_phase_two
from aclnn.planning._plan cimport (
    INHERIT,
    MAX_DIMS,
    OperatorHandle,
    find_plan,
    operand_t,
    signs_of,
)

import sys
from time import monotonic_ns

from aclnn.acl import errors
from aclnn.acl.arguments import as_kind, as_real, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
    ACLNN_SUCCESS,
)
from aclnn.acl.errors import AclnnError

cdef int OK = int(ACLNN_SUCCESS)
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)

cdef enum:
    INPUT, OUTPUT, INOUT, SCALAR, FLOAT, SWITCH

cdef dict KINDS = {
    "input": INPUT, "output": OUTPUT, "inout": INOUT, "scalar": SCALAR, "float": FLOAT,
    "bool": SWITCH, "int": SWITCH, "str": SWITCH,
}
cdef tuple RUN_PARAMETERS = tuple(
    map(sys.intern, ("workspace", "workspaceSize", "executor", "stream")))


cdef class EntryHandle:
    """A C-shaped function pair as phase one walks through it: a slot for every parameter.

    Parameters
    ----------
    handle : OperatorHandle
    entry : Entry
        The declaration of the pair.
    find : callable
        Finds the handle by the entry's name: pickles hold these two. Importable by its own name.
    """

    cdef readonly OperatorHandle handle
    cdef readonly object entry
    cdef readonly str name
    cdef readonly dict names
    cdef str plan_name
    cdef tuple operand_names
    cdef int n_parameters
    cdef int kinds[MAX_PARAMETERS]
    cdef int slots[MAX_PARAMETERS]
    cdef tuple fixed_switches
    cdef bint shares_kind[MAX_PARAMETERS]  # the fixed switch and what is given here
    cdef int fixed_code
    cdef tuple switch_kinds, choices
    cdef tuple parameter_names
    cdef function_t plan_function, run_function
    cdef tuple c_texts
    cdef object find  # by name
    cdef dict made    # the functions by name, once there are any

    def __init__(self, OperatorHandle handle, entry, find):
        operator = handle.operator
        self.handle = handle
        self.entry = entry
        self.find = find
        self.made = {}
        self.name = entry.name
        self.plan_name = f"{entry.name}GetWorkspaceSize"
        self.names = {p.role: p.name for p in entry.parameters}
        if "out" not in self.names:
            self.names["out"] = next(p.name for p in entry.parameters if p.kind == "inout")
        self.operand_names = tuple(
            self.names[role] for role in (*operator.kernel_operands, "out")
        )
        self.n_parameters = len(entry.parameters)
        if self.n_parameters > MAX_PARAMETERS:
            raise ValueError(f"{entry.name} has {self.n_parameters} parameters, at most "
                             f"{MAX_PARAMETERS} are possible")
        self.parameter_names = tuple(sys.intern(p.name) for p in entry.parameters)
        take_all(&self.plan_function.signature, self.n_parameters)
        take_all(&self.run_function.signature, len(RUN_PARAMETERS))
        switch_roles = tuple(attribute.role for attribute in operator.switches)
        fixed = dict(entry.fixed)
        self.fixed_switches = tuple(
            fixed.get(attribute.role, attribute.default) for attribute in operator.switches
        )
        self.fixed_code = handle.learn_switches(self.fixed_switches) if operator.switches else 0
        self.switch_kinds = tuple(p.kind for p in entry.parameters)
        choices = {attribute.role: attribute.choices for attribute in operator.attributes}
        self.choices = tuple(choices.get(p.role, ()) for p in entry.parameters)
        for index, parameter in enumerate(entry.parameters):
            self.kinds[index] = KINDS[parameter.kind]
            if parameter.kind in ("input", "inout"):
                self.slots[index] = operator.kernel_operands.index(parameter.role)
            elif parameter.kind == "output":
                self.slots[index] = handle.n_inputs
            elif parameter.kind in ("scalar", "float"):
                self.slots[index] = handle.scalar_roles.index(parameter.role)
            else:
                self.slots[index] = switch_roles.index(parameter.role)
                fixed_one = self.fixed_switches[self.slots[index]]
                self.shares_kind[index] = type(fixed_one).__name__ == parameter.kind

    def functions(self, str module, str plan_doc, str run_doc):
        """Both phases as functions that are called without a frame of their own.

        Parameters
        ----------
        module : str
            Where they can be imported from.
        plan_doc, run_doc : str
            Their docstrings, each after a line with its signature, and one of two hyphens, and an
            empty one.
        """
        self.c_texts = tuple(map(str.encode, (
            self.plan_name, plan_doc, self.name, run_doc)))
        plan_name, plan_doc_text, run_name, run_doc_text = self.c_texts
        plan = new_function(&self.plan_function, self, module, plan_name, plan_doc_text,
                            <void *>call_phase_one)
        run = new_function(&self.run_function, self, module, run_name, run_doc_text,
                           <void *>call_phase_two)
        self.made = {self.plan_name: plan, self.name: run}
        return plan, run

    def __reduce__(self):
        return self.find, (self.name,)

    def __getattr__(self, name):
        """Functions are pickled as attributes of what they belong to."""
        if name not in self.made:
            raise AttributeError(name)
        return self.made[name]

    cdef object plan(self, PyObject **arguments):
        """Phase one: ``(workspaceSize, executor, status)``."""
        cdef aclOpExecutor executor
        cdef long long began = monotonic_ns() if _has_hook else 0
        try:
            executor = self.read(arguments)
            executor.planned = find_plan(
                self.handle, &executor.request, self.names, executor.scalar_texts,
                executor.switches,
            )
            if _has_hook:
                _hook("plan", self.name, executor, monotonic_ns() - began, OK)
            return executor.planned.workspace_size, executor, OK
        except AclnnError as error:
            status = errors.fail(error.status, self.explained(error, self.as_tuple(arguments)))
        except MemoryError as error:
            status = errors.fail(INNER, f"{self.plan_name}: {error}")
        if _has_hook:
            _hook("plan", self.name, None, monotonic_ns() - began, status)
        return 0, None, status

    cdef tuple as_tuple(self, PyObject **arguments):
        cdef list found = []
        cdef int index
        for index in range(self.n_parameters):
            found.append(<object>arguments[index])
        return tuple(found)

    def explained(self, error, arguments):
        from aclnn.calls import diagnosis

        return diagnosis.failed_phase_one(self, error, arguments)

    cdef aclOpExecutor read(self, PyObject **arguments):
        """Check for null arguments and take the call apart."""
        cdef aclOpExecutor executor = new_executor()
        cdef int index, kind, slot
        cdef bint deep = False
        cdef object switches = None
        executor.handle = self.handle
        executor.origin = self.name
        executor.names = self.operand_names
        executor.from_tensors = True
        executor.bound = [None] * (self.handle.n_inputs + 1)
        executor.request.operator_id = self.handle.id
        executor.request.n_inputs = self.handle.n_inputs
        executor.request.materialize = executor.request.strategy = INHERIT
        self.refuse_null(arguments)
        for index in range(self.n_parameters):
            kind, slot, value = self.kinds[index], self.slots[index], <object>arguments[index]
            if kind == SWITCH:
                if value is self.fixed_switches[slot] and self.shares_kind[index]:
                    continue
                if switches is None:
                    switches = list(self.fixed_switches)
                switches[slot] = self.read_switch(index, value)
            elif kind == SCALAR:
                self.read_scalar(executor, index, slot, value)
            elif kind == FLOAT:
                self.read_float(executor, index, slot, value)
            else:
                deep |= (<aclTensor>value).ndim > MAX_DIMS
                self.read_tensor(executor, slot, <aclTensor>value)
                if kind == INOUT:
                    self.read_tensor(executor, self.handle.n_inputs, <aclTensor>value)
        if switches is None:
            executor.switches = self.fixed_switches
            executor.request.switches = self.fixed_code
        else:
            executor.switches = tuple(switches)
            executor.request.switches = self.handle.switch_code(executor.switches)
        if deep:
            self.refuse_rank(executor)
        return executor

    def refuse_rank(self, aclOpExecutor executor):
        """Check the rules for tensors of more dimensions than plans can have: an earlier one may be
        broken too, and most operators have a rule about dimensions."""
        from aclnn.planning import phase_one, settings

        operands = []
        for tensor in executor.bound:
            operands.append(describe_tensor(tensor))
        signs = signs_of(&executor.request, self.handle.n_scalars)
        asked = phase_one.Request(self.handle.operator, operands, signs, executor.scalar_texts,
                                  executor.switches, self.names)
        phase_one.check_call(asked, settings.get_soc_version())
        raise AclnnError(INVALID, f"tensors have more than {MAX_DIMS} dimensions")

    cdef int refuse_null(self, PyObject **arguments) except -1:
        """Null arguments come first, whatever else is wrong."""
        cdef int index, kind, foreign = -1
        cdef bint known, gone
        for index in range(self.n_parameters):
            kind, value = self.kinds[index], <object>arguments[index]
            if kind == FLOAT or (kind == SWITCH and self.switch_kinds[index] != "str"):
                continue
            if value is None:
                raise AclnnError(NULLPTR, f"{self.entry.parameters[index].name} is null")
            if kind == SWITCH:
                continue
            if kind == SCALAR:
                known = isinstance(value, aclScalar)
                gone = known and (<aclScalar>value).destroyed
            else:
                known = isinstance(value, aclTensor)
                gone = known and (<aclTensor>value).destroyed
            if gone:
                raise AclnnError(NULLPTR, f"{self.entry.parameters[index].name} is a destroyed "
                                 f"{type(value).__name__}")
            if not known and foreign < 0:
                foreign = index
        if foreign >= 0:
            self.refuse(foreign, type(<object>arguments[foreign]).__name__,
                        "an aclScalar" if self.kinds[foreign] == SCALAR else "an aclTensor")
        return 0

    def refuse(self, index, what, wanted):
        name = self.entry.parameters[index].name
        raise AclnnError(INVALID, f"{name} is {what}, must be {wanted}")

    cdef object read_switch(self, int index, object value):
        kind = self.switch_kinds[index]
        try:
            found = as_kind(kind, value)
        except TypeError:
            self.refuse(index, shown(value), f"{'an' if kind == 'int' else 'a'} {kind}")
        if kind != "int":
            return found
        choices = self.choices[index]
        return choices[found] if 0 <= found < len(choices) else found

    cdef int read_scalar(self, aclOpExecutor executor, int index, int slot,
                         aclScalar value) except -1:
        cdef int signs = 0
        if not value.is_real:
            signs = 2
        else:
            executor.scalars[slot] = value.as_float
            executor.exact_scalars[slot] = value.as_double
            signs = value.as_float < 0
        executor.request.scalar_signs |= signs << 2 * slot
        if signs:
            if executor.scalar_texts is None:
                executor.scalar_texts = {}
            executor.scalar_texts[self.handle.scalar_roles[slot]] = repr(value)
        return 0

    cdef int read_float(self, aclOpExecutor executor, int index, int slot, object value) except -1:
        try:
            executor.exact_scalars[slot] = value if type(value) is float else as_real(value)
        except Exception:  # whatever its __float__ raises
            name = self.entry.parameters[index].name
            raise AclnnError(INVALID, f"{name} is {shown(value)}, must be a real number") from None
        executor.scalars[slot] = executor.exact_scalars[slot]
        executor.request.scalar_signs |= (<float>executor.exact_scalars[slot] < 0) << 2 * slot
        return 0

    cdef int read_tensor(self, aclOpExecutor executor, int slot, aclTensor value) except -1:
        executor.bound[slot] = value
        executor.versions[slot] = value.version
        read_operand(value, &executor.request.operands[slot])
        return 0

    cdef object run(self, workspace, workspaceSize, executor, stream):
        """Phase two: check, then run at once or queue on the stream."""
        try:
            status = run_phase_two(
                self.handle, self.name, workspace, workspaceSize, executor, stream)
        except AclnnError as error:
            status = errors.fail(error.status, f"{self.name}: {error}")
        except MemoryError as error:
            status = errors.fail(INNER, f"{self.name}: {error}")
        if _has_hook:
            _hook("run", self.name, executor, 0, status)
        return status


cdef void take_all(signature_t *signature, int n_parameters) noexcept:
    """Require all parameters, each of which fills the slot of its position."""
    cdef int index
    signature.n_positional = signature.n_required = n_parameters
    for index in range(n_parameters):
        signature.slots[index] = index


cdef object call_phase_one(object form, PyObject *const *values, Py_ssize_t n_values,
                           PyObject *names):
    """What a call of ``aclnnXxxGetWorkspaceSize`` does."""
    cdef EntryHandle entry = <EntryHandle>form
    cdef PyObject *given[MAX_PARAMETERS]
    memset(given, 0, sizeof(given))
    take_arguments(entry.plan_name, entry.parameter_names, &entry.plan_function.signature,
                   values, n_values, names, given)
    return entry.plan(given)


cdef object call_phase_two(object form, PyObject *const *values, Py_ssize_t n_values,
                           PyObject *names):
    """What a call of ``aclnnXxx`` does."""
    cdef EntryHandle entry = <EntryHandle>form
    cdef PyObject *given[MAX_PARAMETERS]
    memset(given, 0, sizeof(given))
    take_arguments(entry.name, RUN_PARAMETERS, &entry.run_function.signature, values, n_values,
                   names, given)
    return entry.run(<object>given[0], <object>given[1], <object>given[2], <object>given[3])


cdef object describe_tensor(aclTensor tensor):
    return (
        tensor.dtype,
        numbers_of(tensor.shape, tensor.ndim),
        numbers_of(tensor.strides, tensor.ndim),
        tensor.format,
        tensor.writable or tensor.storage == NULL,
    )


cdef void read_operand(aclTensor tensor, operand_t *operand) noexcept:
    """A tensor's description and present address, for ranks that plans can have."""
    operand.data = address_of(tensor)
    operand.dtype = tensor.dtype
    operand.format = tensor.format
    operand.ndim = min(tensor.ndim, MAX_DIMS)
    operand.writable = tensor.writable or tensor.storage == NULL
    memcpy(operand.shape, tensor.shape, operand.ndim * sizeof(int64_t))
    memcpy(operand.strides, tensor.strides, operand.ndim * sizeof(int64_t))


cdef bint _has_hook = False


def set_call_hook(hook):
    """Have ``hook(what, name, executor, nanoseconds, status)`` called after both phases.

    `what` is "plan" or "run", `executor` None where phase one failed.
    """
    global _has_hook, _hook
    _has_hook = hook is not None
    _hook = hook


_hook = None
