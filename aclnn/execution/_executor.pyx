"""Executors: a compiled call and the memory it is bound to."""

cimport cython
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from aclnn.acl._frames cimport fastcall_t, strip_error
from aclnn.acl._tensor cimport aclTensor
from aclnn.execution._fastcall cimport (
    METH_FASTCALL,
    METH_KEYWORDS,
    PyDescr_NewMethod,
    PyMethodDef,
    PyTuple_GET_ITEM,
    PyTuple_GET_SIZE,
)
from aclnn.execution._operand cimport (
    Headers,
    dtype_of,
    fits,
    new_output,
    read_array,
    read_or_refuse,
    spec_of,
    words_of,
)
from aclnn.execution._tensors cimport (
    is_tensor,
    library_of_tensors,
    makes_tensors,
    read_tensor,
    tell_written as count_change,
)
from aclnn.execution._workspace cimport OwnWorkspace, WorkspaceHold, refuse_shared
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from graph.runtime.abi cimport kernel_number

from aclnn.acl._tensor_spec cimport ABSENT, extent, operand_t
from aclnn.compiler._compiled_call cimport (
    all_apart,
    overlaps_as_planned,
    run_plan,
    run_with_own_workspace,
)
from aclnn.compiler._plan_cache cimport find_plan
from aclnn.compiler._request cimport (
    EXACT,
    INHERIT,
    IS_BELOW,
    MAX_NUMBERS,
    NUMBER_FORMS,
    facts_of,
    overlaps_of,
)

from collections.abc import Mapping
from importlib import import_module

from numpy import copyto, empty, ndarray, uint8

from aclnn.acl import memory
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import did_you_mean, parameter_meant, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
)
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.execution import arrays as interchange
from aclnn.execution._operand import describe, read_headers
from aclnn.execution._workspace import WorkspacePool
from aclnn.graph.brief import counted

cdef enum:
    SPARE_REQUESTS = 8
    NUMBERS_OF_RUN = -1  # in the place of an output's slot

cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)


cdef class ArrayForm:
    """Facts about the caller of an executor of arrays; immutable, as snapshots share it."""


cdef ArrayForm OF_TENSORS = ArrayForm()  # which know nothing


cdef ArrayForm with_numbers(ArrayForm form, bytes numbers):
    """The same facts with other numbers."""
    cdef ArrayForm made = ArrayForm()
    made.kind, made.nest, made.ties, made.form = form.kind, form.nest, form.ties, form.form
    made.description, made.replan, made.words = form.description, form.replan, form.words
    made.roles, made.overwritten, made.takes = form.roles, form.overwritten, form.takes
    made.places = form.places
    made.numbers = numbers
    return made


# How many are being made now: collecting garbage meanwhile may run a destructor, or another thread,
# that makes one too. An argument that only this module has would take a tuple for each call.
cdef int making = 0


cdef aclOpExecutor new_executor():
    """An empty executor: there is no other way to make one."""
    global making
    making += 1
    try:
        return aclOpExecutor.__new__(aclOpExecutor)
    finally:
        making -= 1


cdef const char *RUN_DOC = b"""run($self, /, *arrays, out=None, workspace=None, **named)
--

Run now, on this thread.

Parameters
----------
*arrays
    Inputs to bind from now on, in order.
out : array, optional
    Array for the result of this run, or a sequence with one for each result.
workspace : buffer or WorkspacePool, optional
    At least `workspace_size` bytes for this run; by default the executor has its own.
**named
    Inputs to bind from now on, by name: arrays of the planned dtype, shape and strides. Outputs by
    name, for this run. Numbers by name, from now on, unless the plan depends on them.

Returns
-------
array or None
    `out`, or the output that the executor was created with, or a new array of the caller's kind;
    None for an executor of a C-shaped function, which writes to the tensor that it got.

Raises
------
AclnnError
    If the executor is spent or destroyed, an operand has no data, or an array does not
    fit the plan.
"""


cdef object call_run(object given, PyObject *const *values, Py_ssize_t n_values, PyObject *names):
    """Call ``executor.run(...)``, with `values` by position, then those with `names`."""
    cdef aclOpExecutor executor = <aclOpExecutor>given
    if n_values == 0 and names == NULL and executor.runs_as_bound():
        return executor.run_bound()
    return call_run_given(executor, values, n_values, names)


cdef PyObject *run_called(PyObject *given, PyObject *const *values, Py_ssize_t n_values,
                          PyObject *names) noexcept:
    """`call_run`, whose errors end at the caller's line."""
    cdef PyObject *result = (<fastcall_t>call_run)(given, values, n_values, names)
    if result == NULL:
        strip_error()
    return result


cdef object call_run_given(aclOpExecutor executor, PyObject *const *values, Py_ssize_t n_values,
                           PyObject *names):
    cdef Py_ssize_t k
    cdef object out = None, workspace = None
    cdef dict named = {}
    cdef list arrays = []
    for k in range(n_values):
        arrays.append(<object>values[k])
    for k in range(0 if names == NULL else PyTuple_GET_SIZE(names)):
        name, value = <object>PyTuple_GET_ITEM(names, k), <object>values[n_values + k]
        if name == "out":
            out = value
        elif name == "workspace":
            workspace = value
        else:
            named[name] = value
    return executor.run_given(tuple(arrays), named, out, workspace)


# Runs take less time than a tuple and a dictionary of arguments.
cdef PyMethodDef run_method
run_method.ml_name = b"run"
run_method.ml_meth = <void *>run_called
run_method.ml_flags = METH_FASTCALL | METH_KEYWORDS
run_method.ml_doc = RUN_DOC


cdef int mark_written(object array) except -1:
    """Tell the library of an array that its elements were changed, where it wants to know."""
    if array is None or isinstance(array, ndarray):
        return 0
    if is_tensor(array):
        return count_change(array)
    interchange.mark_written(array)
    return 0


cdef bint differ_in_dtype(const operand_t *found, const operand_t *planned) noexcept:
    """Whether an array would fit if it were converted."""
    cdef operand_t converted = found[0]
    converted.dtype = planned.dtype
    return found.dtype != planned.dtype and fits(&converted, planned)


cdef extern from *:
    """
    static ternaryfunc aclnn_call_executor;

    static void aclnn_call_by_way_of(PyObject *type, ternaryfunc called) {
      aclnn_call_executor = ((PyTypeObject *)type)->tp_call;
      ((PyTypeObject *)type)->tp_call = called;
      PyType_Modified((PyTypeObject *)type);
    }
    """
    ctypedef PyObject *(*ternaryfunc)(PyObject *, PyObject *, PyObject *) noexcept
    ternaryfunc aclnn_call_executor
    void aclnn_call_by_way_of(object type, ternaryfunc called)


cdef PyObject *executor_called(PyObject *executor, PyObject *arrays, PyObject *named) noexcept:
    """`executor(...)`, whose errors end at the caller's line."""
    cdef PyObject *result = aclnn_call_executor(executor, arrays, named)
    if result == NULL:
        strip_error()
    return result


cdef object new_method(object kind, PyMethodDef *definition):
    return PyDescr_NewMethod(<PyTypeObject *>kind, definition)


# Requests of executors that are gone. In the executor itself they would be cleared for each call of
# phase one, which takes longer than to fill them.
cdef request_t *spare_requests[SPARE_REQUESTS]
cdef int n_spare_requests = 0


cdef request_t *new_request(int room) except NULL:
    """A request with room for the descriptions and versions of so many operands, at least `FEW`."""
    global n_spare_requests
    cdef request_t *request
    if room == FEW and n_spare_requests:
        n_spare_requests -= 1
        return spare_requests[n_spare_requests]
    request = <request_t *>malloc(
        sizeof(request_t) + room * (sizeof(operand_t) + sizeof(unsigned int)))
    if request == NULL:
        raise MemoryError
    request.operands = <operand_t *>(request + 1)
    return request


cdef void copy_request(const request_t *request, request_t *copy) noexcept:
    """Copy all but the operands."""
    cdef operand_t *operands = copy.operands
    copy[0] = request[0]
    copy.operands = operands


cdef void give_back(request_t *request) noexcept:
    global n_spare_requests
    if request.n_inputs + request.n_outputs > FEW or n_spare_requests == SPARE_REQUESTS:
        free(request)
        return
    spare_requests[n_spare_requests] = request
    n_spare_requests += 1


@cython.final
@cython.freelist(8)  # each call of phase one makes one, which is soon done with
cdef class aclOpExecutor:
    """A planned call, bound to memory.

    Created by ``aclnnXxxGetWorkspaceSize`` and by `aclnn.executor`; never directly.

    Attributes
    ----------
    workspace_size : int
        Bytes of workspace that the plan needs; 0 when every intermediate was planned away.
    own_workspaces : int
        How many workspaces runs have allocated so far: none if each run gets one, or needs none.
        The executor keeps one, so runs that do not overlap allocate one.
    graph : aclnn.graph.Graph
        The op-graph as scheduled.
    graph_as_built : aclnn.graph.Graph
        The op-graph as built.
    passes : tuple
        The passes in between: name, graph afterwards, notes.
    plan : aclnn.graph.WorkspacePlan
        Offsets of intermediates in the workspace.
    schedule : aclnn.graph.Schedule
        The steps that run.

    Notes
    -----
    Executors may be shared by threads as long as they run it with different memory; two runs into
    the same output race, as they would with any other writer.

    Memory that is bound later may lie so that an input crosses the output. Such a run is planned
    anew, with a workspace of its own, and the attributes show the plan of the run that began last.
    Phase two goes on asking for the workspace that phase one announced.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> x = np.array([-2.0, 3.0], np.float32)
    >>> with aclnn.executor("leaky_relu", x, negative_slope=0.5) as ex:
    ...     ex.run()
    array([-1.,  3.], dtype=float32)
    """

    def __cinit__(self):
        if not making:  # nothing of it would be there
            raise TypeError("executors are made by aclnn.executor() and aclnnXxxGetWorkspaceSize()")
        self.arrays = OF_TENSORS

    @property
    def workspace_size(self):
        return self.plan_shown().workspace_size

    @property
    def graph(self):
        return self.plan_shown().graph

    @property
    def graph_as_built(self):
        return self.plan_shown().graph_as_built

    @property
    def passes(self):
        return self.plan_shown().passes

    @property
    def plan(self):
        return self.plan_shown().workspace

    @property
    def schedule(self):
        return self.plan_shown().schedule

    @property
    def operator(self):
        return self.planned.operator

    @property
    def operand_names(self):
        return self.names

    @property
    def inputs(self):
        """The inputs by name: shape, strides in bytes, and dtype of each."""
        return self.specs(0, self.request.n_inputs)

    @property
    def outputs(self):
        """The outputs by name: shape, strides in bytes, and dtype of each."""
        return self.specs(self.request.n_inputs, self.request.n_inputs + self.request.n_outputs)

    @property
    def options(self):
        """Options of the plan: product, threads, strategy, and the operator's options."""
        cdef CompiledCall plan = self.planned
        cdef int index
        found = {
            "soc": plan.call.soc,
            "threads": plan.schedule.max_threads,
            "strategy": plan.workspace.strategy,
            "materialize": plan.materialized,
        }
        for role, value in plan.call.switches.items():
            found[self.word_for(role)] = value
        if self.handle is not None:
            for index, role in enumerate(self.handle.scalar_roles):
                number = self.request.numbers[NUMBER_FORMS * index + <int>EXACT].real
                found[self.word_for(role)] = number
        return found

    cdef dict specs(self, int first, int end):
        """Descriptions of operands that are there, by name."""
        cdef int slot
        cdef tuple ties = self.arrays.ties
        found = {}
        for slot in range(first, end):
            tied = ties is not None and slot >= self.request.n_inputs
            if not self.is_absent(slot) and not (
                    tied and ties[slot - self.request.n_inputs] >= 0):
                found[self.names[slot]] = spec_of(&self.request.operands[slot])
        return found

    def __call__(self, *arrays, out=None, workspace=None, **named):
        return self.run_given(arrays, named, out, workspace)

    run = new_method(aclOpExecutor, &run_method)

    cdef object run_given(self, tuple arrays, dict named, object out, object workspace):
        """Run on other arrays, into other outputs, or with a workspace of the caller's."""
        cdef char *addresses[MANY]
        cdef dict outs = None
        cdef list results = None
        cdef bytes numbers = None
        if self.destroyed or self.spent:
            raise AclnnError(INNER, f"{self.origin}: executor is "
                             + ("destroyed" if self.destroyed else "spent"))
        if self.from_tensors:
            if arrays or named or out is not None:
                self.refuse_arrays()
            held = self.addresses_now(addresses)
            if not self.repeatable:
                self.spent = True
            self.run_in(addresses, workspace)
            return None
        if arrays or named or out is not None:
            outs = self.sort_arguments(arrays, named, out)
            numbers = outs.pop(NUMBERS_OF_RUN, None)
        # From here on other threads may bind, destroy or free: this run holds what it needs.
        held = self.bind(named, addresses) if named else self.addresses_now(addresses)
        results = self.place_outputs(held, outs, addresses, self.arrays.kind)
        self.refuse_unbound(addresses)
        self.run_in(addresses, workspace, numbers, held)
        return self.handed_back(results, out)

    cdef object run_with(self, Headers inputs, object out, object kind, Headers held,
                         bytes numbers):
        """Run on other arrays, of the planned descriptions, without binding them.

        `inputs` are the first ones, `held` the next; outputs that are made become arrays of the
        library `kind`.
        """
        cdef char *addresses[MANY]
        cdef Py_ssize_t index, place = inputs.count
        cdef list bound = self.bound
        cdef dict outs = None if out is None else self.sort_arguments((), {}, out)
        for index in range(self.request.n_inputs):
            addresses[index] = self.request.operands[index].data
        for index in range(inputs.count):
            addresses[index] = inputs.operands[index].data
        if inputs.has_tensors:
            kind = library_of_tensors()
        if held is not None:
            for index in range(held.count):
                addresses[place] = held.operands[index].data
                place += 1
        for place in range(place, self.request.n_inputs):
            if bound[place] is None:
                raise invalid(f"{self.origin}: {self.names[place]} has no array")
        for index in range(self.request.n_outputs):
            addresses[self.request.n_inputs + index] = NULL
        results = self.place_outputs(bound, outs, addresses, kind)
        if self.planned.packs:
            others = () if held is None else held.arrays
            given = list(inputs.arrays) + list(others)
            bound = given + list(bound[len(given):])
        self.execute(addresses, NULL, numbers, bound)
        return self.handed_back(results, out)

    @boundary
    def rebind(self, arrays):
        """Bind other arrays, which later runs use.

        Parameters
        ----------
        arrays : dict of str to array
            By operand name: arrays of the dtype, shape and strides that were planned. Operands
            that are not named keep theirs.

        Raises
        ------
        AclnnError
            If there is no operand of that name, an array does not fit the plan, the output is
            read-only, the executor is destroyed, or it was made by a C-shaped function. Nothing
            is bound then.
        """
        cdef char *addresses[MANY]
        if not isinstance(arrays, Mapping):
            raise wrong_kind(f"{self.origin}: rebind takes a dict of arrays by name, not "
                             f"{shown(arrays)}")
        self.bind(arrays, addresses)
        self.rebound = True

    @boundary
    def __reduce__(self):
        if self.arrays.description is None:
            raise wrong_kind(
                f"{self.origin}: an executor of tensors cannot be pickled; one that is made of "
                "arrays can, by aclnn.executor() or a compiled function")
        make, description = self.arrays.description(self)
        if self.arrays.kind is None:
            return make, description
        return made_for, (self.arrays.kind.__name__, make, description)

    @boundary
    def profile(self, repeat=100, warmup=3):
        """Time every step. A one-shot executor is spent afterwards.

        Parameters
        ----------
        repeat : int
            Number of timed runs, at least 1.
        warmup : int
            Number of runs before these, which are not timed.

        Returns
        -------
        Profile
            The profile of the `repeat` runs, with times in nanoseconds.

        Raises
        ------
        AclnnError
            If `repeat` or `warmup` is no such number, or the executor is spent or destroyed.
        """
        cdef aclOpExecutor runs
        from aclnn.reports import profiling

        profiling.check_runs(repeat, warmup)
        # What others bind or run meanwhile is not what is timed.
        runs = self.snapshot()
        runs.from_tensors, runs.repeatable = self.from_tensors, True
        runs.make_outputs()
        runs.spent, runs.destroyed = self.spent, self.destroyed
        self.spent |= not self.repeatable
        return profiling.profile_executor(runs, repeat=repeat, warmup=warmup)

    @boundary
    def to_html(self):
        """The report, one self-contained page: graph, plan, passes and profile.

        The profile runs the executor, which writes its output. The report has none if a run would
        spend the executor or change an input.

        Returns
        -------
        str
            A page in HTML that needs no network and no other files.

        Raises
        ------
        ModuleNotFoundError
            If jinja2 is not installed; the message says how to.
        """
        from aclnn.reports import report

        self.show_next()
        return report.to_html(self)

    @boundary
    def to_onnx(self, as_built=False):
        """Make a model in ONNX that computes the same, with the standard's operators.

        What the standard has no operator for is a function made of its operators. Steps in Python
        and complex numbers are nodes that only viewers understand.

        Parameters
        ----------
        as_built : bool
            Whether of the graph before its passes. Otherwise the nodes' metadata say where their
            results lie in the plan, and the model's what the plan needs.

        Returns
        -------
        bytes
            The serialised model. Its inputs are those of the executor; arrays that a compiled
            function reaches besides its arguments, such as a model's weights, are initializers.

        Raises
        ------
        ModuleNotFoundError
            If onnx is not installed; the message says how to.
        """
        from aclnn.onnx import writing

        return writing.executor_to_onnx(self, as_built)

    def _reached(self):
        """The arrays that a compiled function reaches outside its arguments, by place."""
        if self.arrays.takes is None:
            return {}
        found = {}
        for place in range(self.arrays.takes.n_arrays, self.request.n_inputs):
            if self.bound[place] is not None and not self.is_written(place):
                found[place] = interchange.as_ndarray(self.bound[place], self.names[place])
        return found

    def _repr_html_(self):
        from aclnn.reports import notebook

        return notebook.executor_html(self)

    def destroy(self):
        """Release all arrays and tensors; queued runs keep theirs.

        Running or binding the executor afterwards is an error; destroying it again is not.
        """
        self.destroyed = True
        self.bound = [None] * len(self.bound)
        self.given = [None] * self.request.n_outputs
        self.spare = None

    def __dealloc__(self):
        if self.request != NULL:
            give_back(self.request)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.destroy()

    def __repr__(self):
        state = "destroyed" if self.destroyed else "spent" if self.spent else "ready"
        return (f"<aclOpExecutor {self.origin}: {counted(len(self.graph.nodes), 'node')}, "
                f"workspace {self.workspace_size} bytes, {state}>")

    cdef int make_room(self, int n_inputs, int n_outputs) except -1:
        """Have a request with room for the descriptions of so many operands."""
        cdef int count = n_inputs + n_outputs
        if count > MANY:
            raise invalid(f"{self.origin}: {count} tensors, at most {MANY} are possible")
        self.request = new_request(max(count, FEW))
        self.request.n_inputs, self.request.n_outputs = n_inputs, n_outputs
        self.request.operator_id = self.request.switches = self.request.n_numbers = 0
        self.request.materialize = self.request.strategy = INHERIT
        self.request.makes_absent = False
        self.versions = <unsigned int *>(self.request.operands + max(count, FEW))
        return 0

    cdef bint is_absent(self, int slot) noexcept:
        """Whether an operand is one that may be null, and is."""
        return self.request.operands[slot].ndim == ABSENT

    cdef int show_next(self) except -1:
        """Show the plan of the next run, if there can be one: other memory may have been bound."""
        cdef char *addresses[MANY]
        if self.destroyed or self.spent:
            return 0
        try:
            _held = self.addresses_now(addresses)
            self.latest = self.plan_for(addresses)
        except AclnnError:  # the next run raises it as well
            pass
        return 0

    cdef CompiledCall plan_shown(self):
        """The plan that the latest run used, or of the next one where other memory was bound."""
        if self.rebound:
            self.rebound = False
            self.show_next()
        return self.planned if self.latest is None else self.latest

    cdef dict sort_arguments(self, tuple arrays, dict named, object out):
        """Leave in `named` the inputs to bind; gives the outputs of this run by their slot."""
        cdef int slot, n_inputs = self.request.n_inputs
        cdef dict outs = {}
        if (self.arrays.nest is None and self.arrays.overwritten is None and self.gives_one()
                and not arrays and not named):
            return {n_inputs: out}
        if self.arrays.takes is not None and (named or read_headers(arrays, True) is None):
            outs[NUMBERS_OF_RUN] = self.sorted_by_function(arrays, named)
        elif arrays:
            if len(arrays) > n_inputs:
                raise invalid(f"{self.origin}: takes {n_inputs} arrays, {len(arrays)} were given")
            for slot, one in enumerate(arrays):
                if self.arrays.places is not None:
                    slot = self.arrays.places[slot]
                if self.names[slot] in named:
                    raise invalid(f"{self.origin}: {self.names[slot]} is given twice")
                named[self.names[slot]] = one
        if self.arrays.form is not None and named:
            self.take_numbers(named)
        for name in tuple(named):
            slot = self.slot_of(name)
            if slot >= n_inputs:
                outs[slot] = named.pop(name)
        if out is None:
            return outs
        if self.arrays.overwritten is not None:
            raise wrong_kind(
                f"{self.origin} takes no out: {self.names[n_inputs]} is written in place")
        given = self.outputs_given(out)
        for slot, one in enumerate(given, n_inputs):
            if one is not None:
                outs[slot] = one
        return outs

    cdef bytes sorted_by_function(self, tuple arrays, dict named):
        """Leave in `named` arrays by name for what a compiled function takes; gives the numbers."""
        found, numbers = self.arrays.takes(arrays, named, self.names)
        named.clear()
        named.update(found)
        if numbers is not None:
            self.arrays = with_numbers(self.arrays, numbers)
        return numbers

    cdef object outputs_given(self, object out):
        """The arrays of `out` in the order of the outputs, None where there is none."""
        cdef int place
        if self.arrays.nest is not None:
            given = self.arrays.nest.flat_outputs(out)
            if self.arrays.ties is None:
                return given
            rest = iter(given)
            found = []
            for place in range(self.request.n_outputs):
                found.append(None if self.arrays.ties[place] >= 0 else next(rest))
            return found
        if self.gives_one():
            return (out,)
        if not isinstance(out, (tuple, list)) or len(out) != self.request.n_outputs:
            raise invalid(f"{self.origin}: out must be a tuple of {self.request.n_outputs} arrays")
        return out

    cdef int take_numbers(self, dict named) except -1:
        """Take the numbers that are given by name, if the plan holds for them too."""
        cdef int index
        roles = self.handle.scalar_roles
        given = {}
        for role in roles:
            word = self.word_for(role)
            if word in named or role in named:
                given[role] = named.pop(word if word in named else role)
        if not given:
            return 0
        values = []
        for index, role in enumerate(roles):
            values.append(given[role] if role in given
                          else self.request.numbers[NUMBER_FORMS * index + <int>EXACT].real)
        dtypes = []
        for index in range(self.request.n_inputs):
            dtypes.append(self.request.operands[index].dtype)
        facts, forms, _ = self.described(values, dtypes)
        for index, role in enumerate(roles):
            dtype, bits, _ = facts[index]
            mask = self.handle.fact_masks[index]
            if role not in given:
                mask &= IS_BELOW
            if ((bits | dtype << 8) & mask != facts_of(self.request, index) & mask
                    or role in given and self.handle.keyed_by_numbers):
                raise invalid(f"{self.origin}: {self.word_for(role)} is {values[index]!r}, which "
                              "shapes the plan: make another executor for it")
        for index, role in enumerate(roles):
            if role in given:
                rounded, exact, whole = forms[index]
                self.request.numbers[NUMBER_FORMS * index].real = rounded
                self.request.numbers[NUMBER_FORMS * index + 1].real = exact
                self.request.numbers[NUMBER_FORMS * index + 2].whole = whole
        return 0

    cdef object described(self, list values, list dtypes):
        """Numbers as plans know them; `described` of the form, in the caller's words."""
        try:
            return self.arrays.form.described(values, None, dtypes)
        except AclnnError as error:  # about one number, with which it begins
            role, space, rest = error.message.partition(" ")
            raise type(error)(
                error.status, f"{self.origin}: {self.word_for(role)}{space}{rest}") from None

    cdef object word_for(self, object role):
        """The caller's name of an operand or an option."""
        return role if self.arrays.words is None else self.arrays.words.get(role, role)

    cdef int slot_of(self, object name) except -1:
        if name in self.names:
            return self.names.index(name)
        if self.arrays.roles is not None and name in self.arrays.roles:
            return self.arrays.roles.index(name)
        meant = parameter_meant(name, self.names) if isinstance(name, str) else None
        if meant is not None:
            return self.names.index(meant)
        known = list(self.names)
        if self.arrays.form is not None:
            for role in self.handle.scalar_roles:
                known.append(self.word_for(role))
        raise invalid(f"{self.origin}: no operand is called {shown(name)}, they are "
                      f"{', '.join(dict.fromkeys(self.names))}{did_you_mean(name, known)}")

    cdef int refuse_arrays(self) except -1:
        raise invalid(
            f"{self.origin}: bind other memory with aclSetTensorAddr; arrays by name are for "
            "executors made by aclnn.executor()")

    cdef list bind(self, object arrays, char **addresses):
        """Bind other arrays of the planned description.

        Returns what is bound then, with the addresses of all operands. All of it is of one moment,
        whatever other threads bind.
        """
        cdef operand_t found
        cdef char *places[MANY]
        cdef int slot, n_inputs = self.request.n_inputs
        self.refuse_destroyed()
        if self.from_tensors:
            self.refuse_arrays()
        slots = {}
        for name, given in arrays.items():
            slot = self.slot_of(name)
            slots[slot] = self.fitting(slot, given, &found), given
            places[slot] = found.data
        # Nothing below lets another thread run: what is replaced is let go of at the end.
        self.refuse_destroyed()
        _before = self.bound, self.given
        bound, outputs = list(self.bound), list(self.given)
        for slot in range(len(self.names)):
            if slot in slots:
                bound[slot], given = slots[slot]
                self.request.operands[slot].data = places[slot]
                if slot >= n_inputs:
                    outputs[slot - n_inputs] = given
        self.follow_inputs(slots, bound, outputs)
        for slot in range(len(self.names)):
            addresses[slot] = self.request.operands[slot].data
        self.bound, self.given = bound, outputs
        for one in self.planned.packs:
            if one.source in slots:
                one.forget(<size_t>addresses[<int>one.source])
        return bound

    cdef int follow_inputs(self, dict slots, list bound, list outputs) except -1:
        """Have outputs that take the place of inputs follow those that are bound anew."""
        cdef int place, slot, taken
        if self.arrays.overwritten is None:
            return 0
        for place in range(self.request.n_outputs):
            slot, taken = self.request.n_inputs + place, self.arrays.overwritten[place]
            if taken in slots:
                bound[slot], outputs[place] = slots[taken]
                self.request.operands[slot].data = self.request.operands[taken].data
        return 0

    cdef bint is_written(self, int slot):
        """Whether runs write an operand."""
        cdef tuple ties = self.arrays.ties, overwritten = self.arrays.overwritten
        return (slot >= self.request.n_inputs or (ties is not None and slot in ties)
                or (overwritten is not None and slot in overwritten))

    cdef bint runs_as_bound(self) noexcept:
        """Whether a run of the arrays that are bound gives back one that the caller made."""
        return (not (self.destroyed or self.spent or self.from_tensors)
                and self.gives_one() and self.arrays.nest is None
                and self.arrays.ties is None
                and <object>PyList_GET_ITEM(self.bound, self.request.n_inputs) is not None)

    cdef bint gives_one(self) noexcept:
        """Whether there is one output, and it is no list of one."""
        return self.request.n_outputs == 1 and not (self.handle is not None
                                                    and self.handle.makes_list)

    cdef object run_bound(self):
        """Run on what is bound, into the one output: what most runs are."""
        cdef char *addresses[MANY]
        held = self.take_addresses(addresses)  # keeps it alive as long as the run goes on
        result = <object>PyList_GET_ITEM(self.given, 0)
        self.refuse_unbound(addresses)
        self.execute(addresses, NULL, None, held)
        if type(result) is not ndarray and result is not None and not isinstance(result, ndarray):
            mark_written(result)
        return result

    cdef list place_outputs(self, list bound, dict outs, char **addresses, object kind):
        """Find or make what a run writes; gives what it hands back, by output."""
        cdef operand_t found
        cdef bint tensors
        cdef int place, slot, first = self.request.n_inputs
        cdef list results = [], copies = []
        cdef list given = self.given
        for place in range(self.request.n_outputs):
            slot = first + place
            if self.arrays.ties is not None and self.arrays.ties[place] >= 0:
                addresses[slot] = addresses[<int>self.arrays.ties[place]]
                results.append(None)
            elif outs is not None and slot in outs and self.lies_otherwise(slot, outs[slot]):
                array = laid_out_as_planned(&self.request.operands[slot])
                read_array(array, &found)
                addresses[slot] = found.data
                copies.append((outs[slot], array))
                results.append(outs[slot])
            elif outs is not None and slot in outs:
                array = self.fitting(slot, outs[slot], &found)
                addresses[slot] = found.data
                bound = bound + [array]
                results.append(outs[slot])
            elif self.is_absent(slot) or bound[slot] is not None:
                results.append(given[place])
            else:
                tensors = makes_tensors(kind)
                array = new_output(self.planned, place, &found, tensors)
                addresses[slot] = found.data
                results.append(array if tensors else interchange.handed_to(kind, array))
                bound = bound + [array]
        results.append((bound, copies))  # keeps all of it alive as long as the run goes on
        return results

    cdef bint lies_otherwise(self, int slot, object given) except -1:
        """Whether an output for a compiled function is as planned but for where elements lie."""
        cdef operand_t found
        cdef const operand_t *planned = &self.request.operands[slot]
        cdef int axis
        if self.arrays.takes is None:
            return False
        if not (read_array(given, &found) or read_tensor(given, &found)):
            return False
        if found.dtype != planned.dtype or found.ndim != planned.ndim or fits(&found, planned):
            return False
        for axis in range(found.ndim):
            if found.shape[axis] != planned.shape[axis]:
                return False
            if found.strides[axis] == 0 and found.shape[axis] > 1:
                return False
        return found.writable

    cdef object handed_back(self, list results, object out):
        """Results of a run: one output, a tuple, or as a function nests them; `out` if given."""
        _bound, copies = results.pop()
        for target, made in copies:
            copyto(interchange.as_ndarray(target, "out"), made)
        for result in results:
            mark_written(result)
        if out is not None:
            return out
        if self.arrays.nest is not None:
            return self.arrays.nest.built(results)
        return results[0] if self.gives_one() else tuple(results)

    cdef int make_outputs(self) except -1:
        """Have an array for every output that runs would make."""
        cdef operand_t found
        cdef int place
        bound = list(self.bound)
        if self.from_tensors or self.destroyed:
            return 0
        for place in range(self.request.n_outputs):
            slot = self.request.n_inputs + place
            if bound[slot] is None and not self.is_absent(slot):
                bound[slot] = new_output(self.planned, place, &found, False)
                self.request.operands[slot].data = found.data
        self.bound = bound
        return 0

    cdef int tell_written(self) except -1:
        """Tell other libraries that a run wrote their arrays."""
        for one in self.given or ():
            mark_written(one)
        return 0

    cdef int refuse_unbound(self, char **addresses) except -1:
        """Refuse to run where an operand has no memory: an executor that was unpickled has none."""
        cdef int slot
        for slot in range(self.request.n_inputs):
            if addresses[slot] == NULL and not self.is_absent(slot):
                raise invalid(
                    f"{self.origin}: {self.names[slot]} has no array: give one to the run")
        return 0

    cdef object fitting(self, int slot, object given, operand_t *found):
        """The operand as an array, if it is of the planned description."""
        cdef const operand_t *planned
        name, array = self.names[slot], given
        planned = &self.request.operands[slot]
        if not read_array(given, found):
            called = f"{self.origin}: {name}"
            if slot < self.request.n_inputs and isinstance(given, (list, tuple)):
                array = interchange.from_list(given, called, dtype_of(planned.dtype))
            else:
                array = interchange.as_ndarray(given, called)
            read_or_refuse(called, array, found)
        if not fits(found, planned):
            message = (f"{self.origin}: {name} is {describe(array)}, but the plan is for "
                       f"{words_of(planned)}")
            if differ_in_dtype(found, planned):
                converted = interchange.conversion(name, given, planned.dtype)
                raise wrong_kind(f"{message}; convert with {converted}")
            raise invalid(message)
        if not found.writable and self.is_written(slot):
            raise invalid(f"{self.origin}: {name} is read-only")
        return array

    cdef int refuse_destroyed(self) except -1:
        if self.destroyed:
            raise AclnnError(INNER, f"{self.origin}: executor is destroyed")
        return 0

    cdef aclOpExecutor snapshot(self):
        """The executor as it is now: a queued run must not see what is bound later."""
        cdef aclOpExecutor twin = new_executor()
        twin.planned, twin.handle, twin.origin = self.planned, self.handle, self.origin
        twin.names, twin.bound = self.names, self.bound
        twin.given, twin.arrays = self.given, self.arrays
        twin.latest, twin.original = self.latest, self
        twin.switches, twin.scalar_texts = self.switches, self.scalar_texts
        cdef int count = self.request.n_inputs + self.request.n_outputs
        twin.order = self.order
        twin.make_room(self.request.n_inputs, self.request.n_outputs)
        copy_request(self.request, twin.request)
        memcpy(twin.request.operands, self.request.operands, count * sizeof(operand_t))
        memcpy(twin.versions, self.versions, count * sizeof(unsigned int))
        return twin

    cdef list take_addresses(self, char **addresses):
        """Addresses of arrays at this moment, and the list that keeps them alive."""
        cdef int index
        for index in range(self.request.n_inputs + self.request.n_outputs):
            addresses[index] = self.request.operands[index].data
        return self.bound

    cdef object addresses_now(self, char **addresses):
        """Addresses of the operands at this moment; refuses missing and freed memory.

        The list returned keeps them alive: another thread may bind, describe or destroy meanwhile.
        Lists of what is bound are replaced, never changed.
        """
        cdef int index, count = self.request.n_inputs + self.request.n_outputs
        cdef list held, bound = self.bound
        cdef aclTensor tensor
        if not self.from_tensors:
            return self.take_addresses(addresses)
        for index in range(count):
            if self.is_absent(index):
                continue
            tensor = <aclTensor>PyList_GET_ITEM(bound, index)
            if tensor.device and not memory.is_alive(tensor.owner):
                raise AclnnError(INVALID, f"{self.names[index]} is in memory that was freed")
        held = [None] * count
        for index in range(count):  # nothing in here lets another thread run
            addresses[index] = NULL
            if self.is_absent(index):
                continue
            tensor = <aclTensor>PyList_GET_ITEM(bound, index)
            if tensor.destroyed or tensor.version != self.versions[index] or tensor.storage == NULL:
                self.check_tensor(tensor, index)
            addresses[index] = address_of(tensor)
            held[index] = tensor.owner
            if index >= self.request.n_inputs and not tensor.writable and self.planned.elements:
                raise AclnnError(
                    INVALID, f"{self.names[index]} is read-only, but is the output")
        return held

    cdef int check_tensor(self, aclTensor tensor, int index) except -1:
        if tensor.destroyed:
            raise AclnnError(NULLPTR, f"{self.names[index]} is a destroyed aclTensor")
        if tensor.version != self.versions[index]:
            raise AclnnError(
                INVALID, f"{self.names[index]} was described anew by aclInitTensor after phase "
                "one, which planned for what it was")
        if tensor.storage == NULL and self.planned.elements:
            raise AclnnError(NULLPTR, f"{self.names[index]} has no data")
        return 0

    cdef int run_in(self, char **addresses, object workspace, bytes numbers=None,
                    list held=None) except -1:
        """Run with a workspace of the caller's, if there is one."""
        cdef WorkspaceHold hold
        if workspace is None or self.planned.workspace_size == 0:
            self.execute(addresses, NULL, numbers, held)
            return 0
        if isinstance(workspace, WorkspacePool):
            with workspace.lend(self.planned.workspace_size) as lent:
                return self.run_in(addresses, lent, numbers, held)
        hold = WorkspaceHold(workspace, self.planned.workspace_size)
        try:
            refuse_shared(self.planned, self.names, addresses, hold.address)
            self.execute(addresses, hold.address, numbers, held)
        finally:
            hold.release()
        return 0

    cdef int execute(self, char **addresses, char *workspace, bytes numbers=None,
                     list held=None) except -1:
        """Run on these addresses, of arrays that are held, with numbers of the run's own if given.

        A run that is planned again, or given no workspace, has one of its own.
        """
        cdef CompiledCall plan = self.planned
        cdef kernel_number own[MAX_NUMBERS * NUMBER_FORMS]
        cdef const kernel_number *values = own
        cdef bytes kept = self.arrays.numbers if numbers is None else numbers
        cdef int index
        if not all_apart(plan, addresses) and not overlaps_as_planned(plan, addresses):
            plan = self.plan_anew(addresses)
        _packed = None  # keeps packed forms alive
        if plan.packs:
            _packed = place_packed(plan, addresses, self.bound if held is None else held)
        self.rebound = False
        if self.latest is not plan:
            self.latest = plan
        if self.original is not None:
            self.original.latest = plan
        if kept is None:  # others may be given while this run goes on
            for index in range(NUMBER_FORMS * self.request.n_numbers):
                own[index] = self.request.numbers[index]
        else:
            values = <const kernel_number *>PyBytes_AS_STRING(kept)
        if plan is not self.planned:
            self.own_workspaces += plan.workspace_size > 0
            run_with_own_workspace(plan, addresses, values)
        elif workspace == NULL and plan.workspace_size:
            self.run_spare(addresses, values)
        else:
            run_plan(plan, addresses, workspace, values)
        return 0

    cdef int tell_shapes(self) except -1:
        """Give tensors whose size data decide the shape that a run has found."""
        cdef int first = self.request.n_inputs, slot
        cdef aclTensor found
        if self.planned.elements == 0:
            return 0
        operator = self.handle.operator
        for role, (shape, _) in operator.measured.items():
            slot = first + operator.outputs.index(shape)
            found = <aclTensor>self.bound[slot]
            (<aclTensor>self.bound[first + operator.outputs.index(role)]).reshape(
                <const int64_t *>found.storage, <int>found.shape[0])
        return 0

    cdef int run_spare(self, char **addresses, const kernel_number *numbers) except -1:
        """Run with the executor's workspace, or one more where another run has that."""
        cdef OwnWorkspace spare = self.spare
        self.spare = None
        if spare is None:
            self.own_workspaces += 1
            spare = OwnWorkspace(self.planned.workspace_size)
        run_plan(self.planned, addresses, spare.address, numbers)
        if not self.destroyed:
            self.spare = spare
        return 0

    cdef int pack_bound(self) except -1:
        """Pack what is bound, and read in that form."""
        cdef int source
        for one in self.planned.packs:
            source = one.source
            if self.bound[source] is not None and self.request.operands[source].data != NULL:
                one.form_of(<size_t>self.request.operands[source].data,
                            owner_of(self.bound[source]))
        return 0

    cdef CompiledCall plan_for(self, char **addresses):
        """The plan for these addresses, another one if inputs overlap the output in another way."""
        if overlaps_as_planned(self.planned, addresses):
            return self.planned
        return self.plan_anew(addresses)

    cdef CompiledCall plan_anew(self, char **addresses):
        """A plan for inputs that overlap the output in another way than was planned for."""
        cdef aclOpExecutor twin
        cdef int index
        twin = self.snapshot()
        for index in range(self.request.n_inputs + self.request.n_outputs):
            twin.request.operands[index].data = addresses[index]
        if self.arrays.replan is not None:
            return self.arrays.replan(overlaps_of(twin.request))
        return find_plan(self.handle, twin.request, self.planned.call.names, self.scalar_texts,
                         self.switches)


cdef list place_packed(CompiledCall plan, char **addresses, list held):
    """Put the addresses of packed forms behind those of operands; gives what keeps them alive."""
    cdef int place, count = plan.n_inputs + plan.n_outputs
    found = []
    for place in range(len(plan.packs)):
        one = plan.packs[place]
        form = one.form_of(<size_t>addresses[<int>one.source], owner_of(held[one.source]))
        addresses[count + place] = <char *><size_t>form[0]
        found.append(form)
    return found


cdef object owner_of(object given):
    """An array that keeps the memory of an operand, whatever becomes of the object."""
    return given if type(given) is ndarray else interchange.as_ndarray(given, "operand")


def join_executor(CompiledCall plan not None, replan, str origin not None, arrays not None,
                  numbers=(), nest=None, ties=None, kind=None, given=None, description=None,
                  takes=None):
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
    """
    cdef aclOpExecutor executor = new_executor()
    cdef int index
    cdef operand_t found
    executor.planned, executor.origin = plan, origin
    executor.names = (*plan.operator.inputs, *plan.operator.outputs)
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
           numbers=None):
    """Run on other arrays, of the planned descriptions, without binding them.

    `inputs` are the first ones, then `held`; outputs that are made become arrays of the library
    `kind`; `numbers` are packed.
    """
    return executor.run_with(inputs, out, kind, held, numbers)


cdef object laid_out_as_planned(const operand_t *planned):
    """A new array with the strides that a plan writes, gaps and backward axes included."""
    spec = spec_of(planned)
    if 0 in spec.shape:
        return empty(spec.shape, spec.dtype)
    cdef Py_ssize_t reach, before = 0, behind = spec.dtype.itemsize
    for size, stride in zip(spec.shape, spec.strides, strict=True):
        reach = (size - 1) * stride
        if reach < 0:
            before -= reach
        else:
            behind += reach
    return ndarray(spec.shape, spec.dtype, empty(before + behind, uint8), before, spec.strides)


def takes_outputs(aclOpExecutor executor not None, outs not None):
    """Whether arrays for the first outputs lie as planned, or are refused whatever the layout."""
    cdef operand_t found
    cdef const operand_t *planned
    cdef int place, axis
    for place, one in enumerate(outs):
        planned = &executor.request.operands[executor.request.n_inputs + place]
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
    cdef int place, other, count = min(len(outs), MANY)
    pairs = []
    for place in range(count):
        one = outs[place]
        begins[place] = ends[place] = NULL
        if not read_array(one, &found) and not read_tensor(one, &found):
            continue
        extent(&found, &low, &high)
        begins[place], ends[place] = found.data + low, found.data + high
        for other in range(place):
            if begins[other] < ends[place] and begins[place] < ends[other]:
                pairs.append((other, place))
    return pairs


def made_for(str library not None, make, description):
    """An executor that was pickled, whose results are arrays of a library."""
    cdef aclOpExecutor executor = make(*description)
    executor.arrays.kind = import_module(library)
    return executor


def unbind(aclOpExecutor executor not None):
    """Let go of all arrays: runs have to be given inputs, and make their outputs."""
    cdef int slot
    cdef int count = executor.request.n_inputs + executor.request.n_outputs
    executor.bound, executor.given = [None] * count, [None] * executor.request.n_outputs
    for slot in range(count):
        executor.request.operands[slot].data = NULL


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


aclnn_call_by_way_of(aclOpExecutor, executor_called)
