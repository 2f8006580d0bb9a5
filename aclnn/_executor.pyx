"""Executors: a plan, the memory it is bound to, and the two phases of the C-shaped layer."""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from aclnn._arguments cimport (
    MAX_PARAMETERS,
    function_t,
    new_function,
    signature_t,
    take_arguments,
)
from aclnn._plan cimport (
    INHERIT,
    find_plan,
    item_size,
    operand_t,
    overlaps_as_planned,
    plain,
    run_plan,
    run_with_own_workspace,
    signs_of,
)
from aclnn._tensor cimport aclScalar, aclTensor

import sys
from time import monotonic_ns

import numpy as np

from aclnn import errors, memory, stream as streams
from aclnn._tensor import mentions_objects
from aclnn.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_INNER_NULLPTR,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
    ACLNN_SUCCESS,
)
from aclnn.errors import AclnnError, shown

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef int OK = int(ACLNN_SUCCESS)
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)
cdef int INNER_NULLPTR = int(ACLNN_ERR_INNER_NULLPTR)

cdef enum:
    INPUT, OUTPUT, INOUT, SCALAR, FLOAT, SWITCH

cdef dict KINDS = {
    "input": INPUT, "output": OUTPUT, "inout": INOUT, "scalar": SCALAR, "float": FLOAT,
    "bool": SWITCH, "int": SWITCH, "str": SWITCH,
}
cdef tuple RUN_PARAMETERS = tuple(
    [sys.intern(name) for name in ("workspace", "workspaceSize", "executor", "stream")])


cdef class EntryHandle:
    """A C-shaped function pair as phase one walks through it: a slot for every parameter."""

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

    def __init__(self, OperatorHandle handle, entry):
        operator = handle.operator
        self.handle = handle
        self.entry = entry
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
        self.parameter_names = tuple([sys.intern(p.name) for p in entry.parameters])
        take_all(&self.plan_function.signature, self.n_parameters)
        take_all(&self.run_function.signature, len(RUN_PARAMETERS))
        switch_roles = [attribute.role for attribute in operator.switches]
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
        self.c_texts = tuple([text.encode() for text in (
            self.plan_name, plan_doc, self.name, run_doc)])
        plan_name, plan_doc_text, run_name, run_doc_text = self.c_texts
        return (
            new_function(&self.plan_function, self, module, plan_name, plan_doc_text,
                         <void *>call_phase_one),
            new_function(&self.run_function, self, module, run_name, run_doc_text,
                         <void *>call_phase_two),
        )

    def __reduce__(self):
        from aclnn import entries

        return entries.entry, (self.name,)

    def __getattr__(self, name):
        """Functions are pickled as attributes of what they belong to."""
        from aclnn import entries

        if name not in (self.name, self.plan_name):
            raise AttributeError(name)
        return entries.FUNCTIONS[name]

    cdef object plan(self, PyObject **arguments):
        """Phase one: ``(workspaceSize, executor, status)``."""
        cdef aclOpExecutor executor
        cdef long long began = monotonic_ns() if settings_verbose else 0
        try:
            executor = self.read(arguments)
            executor.planned = find_plan(
                self.handle, &executor.request, self.names, executor.scalar_texts,
                executor.switches,
            )
            if settings_verbose:
                _report("plan", self.name, executor, monotonic_ns() - began, OK)
            return executor.planned.workspace_size, executor, OK
        except AclnnError as error:
            status = errors.fail(error.status, self.explained(error, self.as_tuple(arguments)))
        except MemoryError as error:
            status = errors.fail(INNER, f"{self.plan_name}: {error}")
        if settings_verbose:
            _report("plan", self.name, None, monotonic_ns() - began, status)
        return 0, None, status

    cdef tuple as_tuple(self, PyObject **arguments):
        return tuple([<object>arguments[index] for index in range(self.n_parameters)])

    def explained(self, error, arguments):
        from aclnn import diagnosis

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
        executor.request.materialize = INHERIT
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
        """Ranks no plan can have still go through the rules: an earlier one may decide, and one of
        them most likely knows a lower rank."""
        from aclnn import planning, product

        operands = [describe_tensor(tensor) for tensor in executor.bound]
        signs = signs_of(&executor.request, self.handle.n_scalars)
        asked = planning.Request(self.handle.operator, operands, signs, executor.scalar_texts,
                                 executor.switches, self.names)
        planning.check_call(asked, product.get_soc_version())
        raise AclnnError(INVALID, f"tensors have more than {MAX_DIMS} dimensions")

    cdef int refuse_null(self, PyObject **arguments) except -1:
        cdef int index, kind
        for index in range(self.n_parameters):
            kind, value = self.kinds[index], <object>arguments[index]
            if kind == FLOAT or (kind == SWITCH and self.switch_kinds[index] != "str"):
                continue
            if value is None:
                raise AclnnError(NULLPTR, f"{self.entry.parameters[index].name} is null")
            if kind == SWITCH:
                continue
            if kind == SCALAR:
                if not isinstance(value, aclScalar):
                    self.refuse(index, type(value).__name__, "an aclScalar")
                if (<aclScalar>value).destroyed:
                    raise AclnnError(
                        NULLPTR, f"{self.entry.parameters[index].name} is a destroyed aclScalar")
            else:
                if not isinstance(value, aclTensor):
                    self.refuse(index, type(value).__name__, "an aclTensor")
                if (<aclTensor>value).destroyed:
                    raise AclnnError(
                        NULLPTR, f"{self.entry.parameters[index].name} is a destroyed aclTensor")
        return 0

    def refuse(self, index, what, wanted):
        raise AclnnError(INVALID, f"{self.entry.parameters[index].name} is {what}, must be {wanted}")

    cdef object read_switch(self, int index, object value):
        kind = self.switch_kinds[index]
        if kind == "bool":
            whole = errors.as_int(value)
            if isinstance(value, (bool, np.bool_)) or whole is not None:
                return bool(value if whole is None else whole)
            self.refuse(index, shown(value), "a bool")
        if kind == "int":
            whole = errors.as_int(value)
            if whole is None:
                self.refuse(index, shown(value), "an int")
            choices = self.choices[index]
            return choices[whole] if 0 <= whole < len(choices) else whole
        if kind == "str":
            if isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            if not isinstance(value, str):
                self.refuse(index, shown(value), "a str")
        return plain(value)

    cdef int read_scalar(self, aclOpExecutor executor, int index, int slot, aclScalar value) except -1:
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
            executor.exact_scalars[slot] = value if type(value) is float else errors.as_real(value)
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
            status = run_phase_two(self, workspace, workspaceSize, executor, stream)
        except AclnnError as error:
            status = errors.fail(error.status, f"{self.name}: {error}")
        except MemoryError as error:
            status = errors.fail(INNER, f"{self.name}: {error}")
        if settings_verbose:
            _report("run", self.name, executor, 0, status)
        return status


cdef void take_all(signature_t *signature, int n_parameters) noexcept:
    """Every parameter has to be given, and goes where it stands."""
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
        tuple([tensor.shape[axis] for axis in range(tensor.ndim)]),
        tuple([tensor.strides[axis] for axis in range(tensor.ndim)]),
        tensor.format,
        tensor.writable or tensor.storage == NULL,
    )


cdef inline char *address_of(aclTensor tensor) noexcept:
    return tensor.storage + tensor.offset * item_size(tensor.dtype) if tensor.storage else NULL


cdef void read_operand(aclTensor tensor, operand_t *operand) noexcept:
    """A tensor's description and present address, for ranks that plans can have."""
    operand.data = address_of(tensor)
    operand.dtype = tensor.dtype
    operand.format = tensor.format
    operand.ndim = min(tensor.ndim, MAX_DIMS)
    operand.writable = tensor.writable or tensor.storage == NULL
    memcpy(operand.shape, tensor.shape, operand.ndim * sizeof(int64_t))
    memcpy(operand.strides, tensor.strides, operand.ndim * sizeof(int64_t))


cdef object run_phase_two(EntryHandle entry, object workspace, object workspaceSize,
                          object executor_or_none, object stream):
    cdef aclOpExecutor executor
    cdef char *addresses[MAX_TENSORS]
    cdef bint was_spent
    if executor_or_none is None:
        raise AclnnError(NULLPTR, "executor is null")
    if not isinstance(executor_or_none, aclOpExecutor):
        raise AclnnError(
            INVALID, f"executor is {type(executor_or_none).__name__}, must be an aclOpExecutor")
    executor = <aclOpExecutor>executor_or_none
    was_spent = executor.spent
    if not executor.repeatable and executor.origin == entry.name:
        executor.spent = True  # whatever comes of it
    hold = hold_workspace(workspace, workspaceSize, executor.planned.workspace_size)
    if executor.destroyed:
        raise AclnnError(INNER, "executor is destroyed")
    held = executor.addresses_now(addresses)
    check_life(entry, executor, was_spent)
    return launch(executor, addresses, held, hold, stream)


cdef Py_ssize_t stated_bytes(object given) except -1:
    """`workspaceSize` as a number; more than any memory has counts as the largest there is."""
    cdef int overflow = 0
    cdef long long stated = -1
    whole = given if type(given) is int else errors.as_int(given)
    if whole is not None:
        stated = PyLong_AsLongLongAndOverflow(whole, &overflow)
    if overflow > 0:
        return PY_SSIZE_T_MAX
    if stated < 0:
        raise AclnnError(
            INVALID, f"workspaceSize is {shown(given)}, must be an int that is not negative")
    return stated


cdef WorkspaceHold hold_workspace(object workspace, object given_size, Py_ssize_t needed):
    """The workspace, checked; `None` where none is needed."""
    cdef Py_ssize_t size = stated_bytes(given_size)
    if workspace is None and (needed or size):
        raise AclnnError(
            NULLPTR, f"workspace is null, workspaceSize is {shown(errors.as_int(given_size))}, "
            f"{needed} bytes are needed")
    if size < needed:
        raise AclnnError(
            INVALID, f"workspaceSize is {shown(errors.as_int(given_size))}, at least {needed} bytes "
            "are needed")
    return WorkspaceHold(workspace, needed) if needed else None


cdef int check_life(EntryHandle entry, aclOpExecutor executor, bint was_spent) except -1:
    if was_spent:
        raise AclnnError(
            INNER, "executor was used already; aclSetAclOpExecutorRepeatable makes it last")
    if executor.handle is not entry.handle or (
            executor.from_tensors and executor.origin != entry.name):
        maker = (f"{executor.origin}GetWorkspaceSize" if executor.from_tensors
                 else f"aclnn.executor({executor.origin!r})")
        raise AclnnError(INNER, f"executor was made by {maker}")
    return 0


cdef object launch(aclOpExecutor executor, char **addresses, object held, WorkspaceHold hold,
                   object stream):
    """Run now on the default stream, else hand the work, and what is held, to the stream's thread."""
    cdef Job job
    if stream is None:
        try:
            executor.execute(addresses, hold.address if hold is not None else NULL)
        finally:
            if hold is not None:
                hold.release()
        return OK
    job = Job.__new__(Job)
    job.executor, job.hold = executor.snapshot(held), hold
    memcpy(job.addresses, addresses, sizeof(job.addresses))
    return streams.submit(stream, job, executor.origin)


@cython.internal
cdef class Job:
    """A queued run: what it needs stays alive and unchanged until it is done."""

    cdef aclOpExecutor executor
    cdef WorkspaceHold hold
    cdef char *addresses[MAX_TENSORS]

    def __call__(self):
        cdef char *workspace = self.hold.address if self.hold is not None else NULL
        try:
            self.executor.execute(self.addresses, workspace)
        except (AclnnError, MemoryError) as error:
            return INNER, f"{self.executor.origin}: {error}"
        finally:
            if self.hold is not None:
                self.hold.release()
        return OK


@cython.internal
cdef class WorkspaceHold:
    """The caller's workspace, held for one run."""

    cdef char *address
    cdef Py_buffer view
    cdef bint exported
    cdef object owner

    def __init__(self, workspace, Py_ssize_t needed):
        self.exported = False
        number = errors.as_int(workspace)
        if number is not None:
            self.owner = memory.resolve(number, needed, "workspace")
            self.address = <char *><size_t>number
            return
        try:
            has_objects = getattr(getattr(workspace, "dtype", None), "hasobject", False)
            if not has_objects:
                PyObject_GetBuffer(
                    workspace, &self.view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)
        except Exception as error:  # whatever the object raises
            raise AclnnError(
                INVALID, f"workspace is {type(workspace).__name__}, must be a writable contiguous "
                f"buffer or an address from aclrtMalloc: {error}") from None
        if has_objects:
            raise AclnnError(
                INVALID, "workspace is an array of Python objects, must be plain memory: what runs "
                "would overwrite references")
        self.exported = True
        if self.view.format != NULL and mentions_objects(self.view.format):
            self.release()
            raise AclnnError(
                INVALID, "workspace holds references to Python objects, must be plain memory")
        self.address = <char *>self.view.buf
        if self.view.len < needed:
            length = self.view.len
            self.release()
            raise AclnnError(
                INVALID, f"workspace has {length} bytes, at least {needed} are needed")

    cdef int release(self) except -1:
        if self.exported:
            self.exported = False
            PyBuffer_Release(&self.view)
        self.owner = None
        return 0

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.view)


# What only this module has: nobody else can make an executor.
cdef object _OURS = object()


cdef aclOpExecutor new_executor():
    return aclOpExecutor.__new__(aclOpExecutor, _OURS)


@cython.final
@cython.freelist(8)  # each call of phase one makes one, which is soon done with
cdef class aclOpExecutor:
    """A planned call, bound to memory.

    Made by ``aclnnXxxGetWorkspaceSize`` and by `aclnn.executor`; never directly.

    Attributes
    ----------
    workspace_size : int
        Bytes of workspace that the plan needs; 0 when every intermediate was planned away.
    graph, graph_as_built : aclnn.graph.Graph
        The op-graph as scheduled and as built.
    passes : tuple
        What turned one into the other: name, graph after it, notes.
    plan : aclnn.graph.WorkspacePlan
        Where intermediates lie in the workspace.
    schedule : aclnn.graph.Schedule
        The steps that run.

    Notes
    -----
    Executors may be shared by threads as long as they run it with different memory; two runs into
    the same output race, as they would with any other writer.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> x = np.array([-2.0, 3.0], np.float32)
    >>> with aclnn.executor("leaky_relu", x, negative_slope=0.5) as ex:
    ...     ex.run()
    array([-1.,  3.], dtype=float32)
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("executors are made by aclnn.executor() and aclnnXxxGetWorkspaceSize()")

    @property
    def workspace_size(self):
        return self.planned.workspace_size

    @property
    def graph(self):
        return self.planned.graph

    @property
    def graph_as_built(self):
        return self.planned.graph_as_built

    @property
    def passes(self):
        return self.planned.passes

    @property
    def plan(self):
        return self.planned.workspace

    @property
    def schedule(self):
        return self.planned.schedule

    @property
    def operator(self):
        return self.planned.operator

    @property
    def operand_names(self):
        return self.names

    def run(self, **arrays):
        """Run now, on this thread and with a workspace of its own.

        Parameters
        ----------
        **arrays
            Operands to bind from now on, by name: arrays of the dtype, shape and strides that
            were planned.

        Returns
        -------
        array or None
            The output in the caller's kind; None for an executor of the C-shaped functions, whose
            output is a tensor that was given to it.

        Raises
        ------
        AclnnError
            If the executor is spent or destroyed, an operand has no data, or an array does not
            fit the plan.
        """
        cdef char *addresses[MAX_TENSORS]
        if self.destroyed or self.spent:
            raise AclnnError(INNER, f"{self.origin}: executor is "
                             + ("destroyed" if self.destroyed else "spent"))
        # From here on other threads may bind, destroy or free: this run holds what it needs.
        if arrays:
            from aclnn import _functional

            held, result, places = _functional.rebind(self, arrays)
            memcpy(addresses, <const char *>places, len(places))
        else:
            held, result = self.addresses_now(addresses), self.result
        if self.from_tensors and not self.repeatable:
            self.spent = True
        self.execute(addresses, NULL)
        return result

    def rebind(self, arrays):
        """Bind other arrays of the planned description, by name."""
        from aclnn import _functional

        _functional.rebind(self, arrays)

    def profile(self, repeat=100, warmup=3):
        """Time every step; see `aclnn.Profile`. An executor for one run is spent afterwards."""
        cdef aclOpExecutor runs = self
        from aclnn import profiling

        if not (self.repeatable or self.spent or self.destroyed):
            runs = self.snapshot(self.keep)
            runs.from_tensors, runs.repeatable = self.from_tensors, True
            self.spent = True
        return profiling.profile_executor(runs, repeat=repeat, warmup=warmup)

    def to_html(self):
        """A report that is one file: graph, plan, passes and profile."""
        from aclnn import report

        return report.to_html(self)

    def _repr_svg_(self):
        return self.graph.to_svg(self.plan)

    def destroy(self):
        """Let go of everything; using the executor afterwards is an error."""
        self.destroyed = True
        self.bound = [None] * len(self.bound)
        self.result = self.keep = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.destroy()

    def __repr__(self):
        state = "destroyed" if self.destroyed else "spent" if self.spent else "ready"
        return (f"<aclOpExecutor {self.origin}: {len(self.graph.nodes)} nodes, "
                f"workspace {self.workspace_size} bytes, {state}>")

    cdef aclOpExecutor snapshot(self, object held):
        """The executor as it is now: a queued run must not see what is bound later."""
        cdef aclOpExecutor twin = new_executor()
        twin.planned, twin.handle, twin.origin = self.planned, self.handle, self.origin
        twin.names, twin.bound, twin.keep = self.names, self.bound, held
        twin.switches, twin.scalar_texts = self.switches, self.scalar_texts
        memcpy(twin.scalars, self.scalars, sizeof(self.scalars))
        memcpy(twin.exact_scalars, self.exact_scalars, sizeof(self.exact_scalars))
        memcpy(twin.versions, self.versions, sizeof(self.versions))
        twin.request = self.request
        if self.request.numbers != NULL:
            twin.request.numbers = twin.exact_scalars
        return twin

    cdef object addresses_now(self, char **addresses):
        """Where the operands are at this moment; refuses missing and freed memory.

        What is returned keeps them there: another thread may bind, describe or destroy meanwhile.
        Lists of what is bound are replaced, never changed.
        """
        cdef int index, last = len(self.names) - 1
        cdef list held, bound = self.bound
        cdef aclTensor tensor
        if not self.from_tensors:
            for index in range(last + 1):
                addresses[index] = self.request.operands[index].data
            return bound
        for index in range(last + 1):
            tensor = <aclTensor>bound[index]
            if tensor.device and not memory.is_alive(tensor.owner):
                raise AclnnError(INVALID, f"{self.names[index]} lies in memory that was freed")
        held = [None] * (last + 1)
        for index in range(last + 1):  # nothing in here lets another thread run
            tensor = <aclTensor>bound[index]
            self.check_tensor(tensor, index)
            addresses[index] = address_of(tensor)
            held[index] = tensor.owner
        if not tensor.writable and self.planned.elements:
            raise AclnnError(INVALID, f"{self.names[last]} is read-only, but is the output")
        return held

    cdef int check_tensor(self, aclTensor tensor, int index) except -1:
        if tensor.destroyed:
            raise AclnnError(NULLPTR, f"{self.names[index]} is a destroyed aclTensor")
        if tensor.version != self.versions[index]:
            raise AclnnError(
                INVALID, f"{self.names[index]} was described anew by aclInitTensor after phase one, "
                "which planned for what it was")
        if tensor.storage == NULL and self.planned.elements:
            raise AclnnError(NULLPTR, f"{self.names[index]} has no data")
        return 0

    cdef int execute(self, char **addresses, char *workspace) except -1:
        """Run on these addresses, planning anew where inputs overlap the output in another way.

        Without a workspace, and where that is not what the plan is for, with one of the run's own.
        """
        cdef request_t request
        cdef Plan plan = self.planned
        cdef int index
        if overlaps_as_planned(plan, addresses):
            if workspace == NULL:
                return run_with_own_workspace(plan, addresses, self.scalar_values())
            return run_plan(plan, addresses, workspace, self.scalar_values())
        memcpy(&request, &self.request, sizeof(request_t))
        for index in range(len(self.names)):
            request.operands[index].data = addresses[index]
        names = {role: name for role, name in zip(
            (*self.handle.operator.kernel_operands, "out"), self.names)}
        plan = find_plan(self.handle, &request, names, self.scalar_texts, self.switches)
        return run_with_own_workspace(plan, addresses, self.scalar_values())

    cdef const double *scalar_values(self):
        if self.planned.scalars_as_double:
            return &self.exact_scalars[0]
        return &self.scalars[0]


def aclSetAclOpExecutorRepeatable(executor):
    """Let an executor run more than once.

    Returns
    -------
    int
        ACLNN_SUCCESS; 561103 for a null or destroyed executor; 561000 for a spent one.

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
    if problem := helper_problem(executor):
        return errors.fail(INNER_NULLPTR, f"aclSetAclOpExecutorRepeatable: {problem}")
    if (<aclOpExecutor>executor).spent:
        return errors.fail(INNER, "aclSetAclOpExecutorRepeatable: executor was used already")
    (<aclOpExecutor>executor).repeatable = True
    return OK


def aclDestroyAclOpExecutor(executor):
    """Destroy an executor.

    Returns
    -------
    int
        ACLNN_SUCCESS; 561103 for a null or destroyed executor.

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
    if problem := helper_problem(executor):
        return errors.fail(INNER_NULLPTR, f"aclDestroyAclOpExecutor: {problem}")
    (<aclOpExecutor>executor).destroy()
    return OK


def aclSetInputTensorAddr(executor, index, tensor, addr):
    """Bind other memory to the `index`-th tensor input, counted in signature order.

    Parameters
    ----------
    executor : aclOpExecutor
    index : int
    tensor : aclTensor
        The tensor that describes the operand.
    addr : buffer, int or None
        Anything that `aclCreateTensor` takes as `tensorData`.

    Returns
    -------
    int
        ACLNN_SUCCESS; 561103 for a null executor or tensor; 161002 for an index or memory that
        does not fit.

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
    >>> other = np.float32([-4, 8])
    >>> aclnn.aclSetInputTensorAddr(executor, 0, tensor(x), other)
    0
    >>> aclnn.aclnnLeakyRelu(None, size, executor, None)
    0
    >>> out
    array([-2.,  8.], dtype=float32)
    """
    return set_address(executor, index, tensor, addr, "aclSetInputTensorAddr", True, False)


def aclSetOutputTensorAddr(executor, index, tensor, addr):
    """Bind other memory to the `index`-th tensor output; see `aclSetInputTensorAddr`.

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
    >>> other = np.empty(2, np.float32)
    >>> aclnn.aclSetOutputTensorAddr(executor, 0, tensor(out), other)
    0
    >>> aclnn.aclnnLeakyRelu(None, size, executor, None)
    0
    >>> other
    array([-0.5,  2. ], dtype=float32)
    """
    return set_address(executor, index, tensor, addr, "aclSetOutputTensorAddr", False, True)


def aclSetTensorAddr(executor, index, tensor, addr):
    """Bind other memory to the `index`-th tensor, inputs first; see `aclSetInputTensorAddr`.

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
    >>> other = np.empty(2, np.float32)
    >>> aclnn.aclSetTensorAddr(executor, 1, tensor(out), other)
    0
    >>> aclnn.aclnnLeakyRelu(None, size, executor, None)
    0
    >>> other
    array([-0.5,  2. ], dtype=float32)
    """
    return set_address(executor, index, tensor, addr, "aclSetTensorAddr", True, True)


cdef object helper_problem(object executor):
    if executor is None:
        return "executor is null"
    if not isinstance(executor, aclOpExecutor):
        return f"executor is {type(executor).__name__}, must be an aclOpExecutor"
    if (<aclOpExecutor>executor).destroyed:
        return "executor is destroyed"
    return None


cdef object set_address(object executor, object index, object tensor, object addr, str function,
                        bint inputs, bint outputs):
    cdef aclOpExecutor found
    if problem := helper_problem(executor):
        return errors.fail(INNER_NULLPTR, f"{function}: {problem}")
    if not isinstance(tensor, aclTensor) or (<aclTensor>tensor).destroyed:
        return errors.fail(INNER_NULLPTR, f"{function}: tensor is null, destroyed or no aclTensor")
    found = <aclOpExecutor>executor
    if not found.from_tensors:
        return errors.fail(
            INVALID, f"{function}: executor was made by aclnn.executor(), which binds arrays: "
            "executor.run(...) takes others by name")
    slots = operand_slots(found, inputs, outputs)
    place = errors.as_int(index)
    if place is None or not 0 <= place < len(slots):
        return errors.fail(
            INVALID, f"{function}: index is {shown(index)}, must be from 0 to {len(slots) - 1}")
    try:
        new = {slot: (<aclTensor>found.bound[slot]).with_data(addr) for slot in slots[place]}
    except AclnnError as error:
        return errors.fail(error.status, f"{function}: {error}")
    output = new.get(found.handle.n_inputs)
    if output is not None and not output.writable and output.bytes_needed():
        return errors.fail(
            INVALID, f"{function}: addr is read-only, but {found.names[-1]} is the output")
    # Asking `addr` may have run anything. Nothing below does: what is replaced goes at the end.
    if found.destroyed:
        return errors.fail(INNER_NULLPTR, f"{function}: executor is destroyed")
    before = found.bound
    found.bound = [new.get(slot, tensor) for slot, tensor in enumerate(before)]
    return OK


cdef list operand_slots(aclOpExecutor executor, bint inputs, bint outputs):
    """The operands each index stands for; an in-place tensor is input and output in one."""
    last = len(executor.names) - 1
    shared = [slot for slot in range(last) if executor.names[slot] == executor.names[last]]
    slots = []
    if inputs:
        slots += [[slot, last] if slot in shared else [slot] for slot in range(last)]
    if outputs and not (inputs and shared):
        slots.append([*shared, last])
    return slots


cdef bint settings_verbose = False


def set_verbose(hook):
    """Have ``hook(what, name, executor, nanoseconds, status)`` called after both phases.

    `what` is "plan" or "run", `executor` None where phase one failed.
    """
    global settings_verbose, _report
    settings_verbose = hook is not None
    _report = hook


_report = None
