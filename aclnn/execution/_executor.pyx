"""Executors: a compiled call and the memory it is bound to."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t

from aclnn.graph.runtime.kernel_abi cimport kernel_number

from aclnn.acl._frames cimport fastcall_t, strip_error
from aclnn.acl._tensor cimport aclTensor
from aclnn.acl.objects cimport aclnn_reshape, c_tensor
from aclnn.compiler._compiled_call cimport (
    all_apart,
    overlaps_as_planned,
    run_plan,
    run_with_own_workspace,
)
from aclnn.compiler._plan_cache cimport find_plan
from aclnn.compiler._request cimport EXACT, MANY, MAX_NUMBERS, NUMBER_FORMS, overlaps_of
from aclnn.execution._bindings cimport (
    NUMBERS_OF_RUN,
    OF_TENSORS,
    gives_one,
    has_unbound,
    take_addresses,
)
from aclnn.execution._fastcall cimport (
    METH_FASTCALL,
    METH_KEYWORDS,
    PyDescr_NewMethod,
    PyMethodDef,
    PyTuple_GET_ITEM,
    PyTuple_GET_SIZE,
)
from aclnn.execution._operand cimport Headers
from aclnn.execution._tensors cimport is_tensor, library_of_tensors, tell_written as count_change
from aclnn.execution._workspace cimport OwnWorkspace, WorkspaceHold, refuse_shared

from collections.abc import Mapping
from importlib import import_module

from numpy import copyto, ndarray

from aclnn.acl._frames import boundary
from aclnn.acl.arguments import shown
from aclnn.acl.constants import ACLNN_ERR_INNER
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.execution import arrays as interchange
from aclnn.execution._workspace import WorkspacePool
from aclnn.graph.summaries import counted

cdef int INNER = int(ACLNN_ERR_INNER)


cdef aclOpExecutor new_executor():
    """An empty executor: there is no other way to make one."""
    cdef aclOpExecutor made = aclOpExecutor.__new__(aclOpExecutor)
    made.arrays = OF_TENSORS
    return made


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


cdef object call_run(object value, PyObject *const *values, Py_ssize_t n_values, PyObject *names):
    """Call ``executor.run(...)``, with `values` by position, then those with `names`."""
    cdef aclOpExecutor executor = <aclOpExecutor>value
    if n_values == 0 and names == NULL and executor.runs_as_bound():
        return executor.run_bound()
    return call_run_given(executor, values, n_values, names)


cdef PyObject *run_called(PyObject *value, PyObject *const *values, Py_ssize_t n_values,
                          PyObject *names) noexcept:
    """`call_run`, whose errors end at the caller's line."""
    cdef PyObject *result = (<fastcall_t>call_run)(value, values, n_values, names)
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


cdef extern from *:
    """
    static ternaryfunc aclnn_call_executor;

    /* Executors add no fields: they end as their base class does. */
    static void aclnn_fill_slots(PyObject *given, ternaryfunc called, newfunc made) {
      PyTypeObject *type = (PyTypeObject *)given;
      aclnn_call_executor = type->tp_call;
      type->tp_call = called;
      type->tp_new = made;
      type->tp_dealloc = type->tp_base->tp_dealloc;
      PyType_Modified(type);
    }
    """
    ctypedef PyObject *(*ternaryfunc)(PyObject *, PyObject *, PyObject *) noexcept
    ctypedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *) noexcept
    ternaryfunc aclnn_call_executor
    void aclnn_fill_slots(object type, ternaryfunc called, newfunc made)


cdef object refuse_new(PyTypeObject *kind, PyObject *values, PyObject *named):
    """Refuse an executor that is made by its class: nothing of it would be there."""
    raise TypeError("executors are made by aclnn.executor() and aclnnXxxGetWorkspaceSize()")


cdef PyObject *executor_called(PyObject *executor, PyObject *arrays, PyObject *named) noexcept:
    """`executor(...)`, whose errors end at the caller's line."""
    cdef PyObject *result = aclnn_call_executor(executor, arrays, named)
    if result == NULL:
        strip_error()
    return result


cdef object new_method(object kind, PyMethodDef *definition):
    return PyDescr_NewMethod(<PyTypeObject *>kind, definition)


@cython.final
cdef class aclOpExecutor(Bindings):
    """A planned call, bound to memory.

    Created by ``aclnnXxxGetWorkspaceSize`` and by `aclnn.executor`; never directly.

    Attributes
    ----------
    workspace_size : int
        Bytes of workspace that the plan needs; 0 when every intermediate was planned away.
    own_workspaces : int
        Number of workspaces that runs have allocated: 0 if each run gets one, or needs none.
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
    again, with a separate workspace, and the attributes show the plan of the run that began last.
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
                         bytes numbers, object workspace):
        """Run on other arrays, of the planned descriptions, without binding them.

        `inputs` are the first ones, `held` the next; outputs that are made become arrays of the
        library `kind`.
        """
        cdef char *addresses[MANY]
        cdef Py_ssize_t index, position = inputs.count
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
                addresses[position] = held.operands[index].data
                position += 1
        for position in range(position, self.request.n_inputs):
            if bound[position] is None:
                raise invalid(f"{self.origin}: {self.names[position]} has no array")
        for index in range(self.request.n_outputs):
            addresses[self.request.n_inputs + index] = NULL
        results = self.place_outputs(bound, outs, addresses, kind)
        if self.planned.packs:
            others = () if held is None else held.arrays
            arguments = list(inputs.arrays) + list(others)
            bound = arguments + list(bound[len(arguments):])
        self.run_in(addresses, workspace, numbers, bound)
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

        A node without an operator in the standard becomes a function of the standard's operators.
        Steps in Python and complex numbers are nodes that only viewers understand.

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
        for index in range(self.arrays.takes.n_arrays, self.request.n_inputs):
            if self.bound[index] is not None and not self.is_written(index):
                found[index] = interchange.as_ndarray(self.bound[index], self.names[index])
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

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.destroy()

    def __repr__(self):
        state = "destroyed" if self.destroyed else "spent" if self.spent else "ready"
        return (f"<aclOpExecutor {self.origin}: {counted(len(self.graph.nodes), 'node')}, "
                f"workspace {self.workspace_size} bytes, {state}>")

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

    cdef bint runs_as_bound(self) noexcept:
        """Whether a run of the arrays that are bound gives back one that the caller made."""
        return (not (self.destroyed or self.spent or self.from_tensors)
                and gives_one(self) and self.arrays.nest is None
                and self.arrays.ties is None
                and <object>PyList_GET_ITEM(self.bound, self.request.n_inputs) is not None)

    cdef object run_bound(self):
        """Run on what is bound, into the one output: what most runs are."""
        cdef char *addresses[MANY]
        held = take_addresses(self, addresses)  # keeps it alive as long as the run goes on
        result = <object>PyList_GET_ITEM(self.given, 0)
        if has_unbound(self, addresses):
            self.refuse_unbound(addresses)
        self.execute(addresses, NULL, None, held)
        if type(result) is not ndarray and result is not None and not isinstance(result, ndarray):
            mark_written(result)
        return result

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
        return results[0] if gives_one(self) else tuple(results)

    cdef int tell_written(self) except -1:
        """Tell other libraries that a run wrote their arrays."""
        for one in self.given or ():
            mark_written(one)
        return 0

    cdef aclOpExecutor snapshot(self):
        """The executor as it is now: a queued run must not see what is bound later."""
        cdef aclOpExecutor other = new_executor()
        self.copy_to(other)
        other.latest, other.original = self.latest, self
        return other

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
        cdef const c_tensor *found
        if self.planned.elements == 0:
            return 0
        operator = self.handle.operator
        for role, (shape, _) in operator.measured.items():
            slot = first + operator.outputs.index(shape)
            found = (<aclTensor>self.bound[slot]).c
            if aclnn_reshape((<aclTensor>self.bound[first + operator.outputs.index(role)]).c,
                             <const int64_t *>found.storage, <int>found.shape[0]):
                raise MemoryError
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
        cdef aclOpExecutor other
        cdef int index
        other = self.snapshot()
        for index in range(self.request.n_inputs + self.request.n_outputs):
            other.request.operands[index].data = addresses[index]
        if self.arrays.replan is not None:
            return self.arrays.replan(overlaps_of(other.request))
        return find_plan(self.handle, other.request, self.planned.call.names, self.scalar_texts,
                         self.switches)


cdef list place_packed(CompiledCall plan, char **addresses, list held):
    """Put the addresses of packed forms behind those of operands; gives what keeps them alive."""
    cdef int index, count = plan.n_inputs + plan.n_outputs
    found = []
    for index in range(len(plan.packs)):
        one = plan.packs[index]
        form = one.form_of(<size_t>addresses[<int>one.source], owner_of(held[one.source]))
        addresses[count + index] = <char *><size_t>form[0]
        found.append(form)
    return found


cdef object owner_of(object value):
    """An array that keeps the memory of an operand, whatever becomes of the object."""
    return value if type(value) is ndarray else interchange.as_ndarray(value, "operand")


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


aclnn_fill_slots(aclOpExecutor, executor_called, <newfunc>refuse_new)
