"""Phase two: checks before a run, the workspace, and the run, immediate or on a stream."""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from aclnn.acl cimport _captures
from aclnn.execution._executor cimport aclOpExecutor
from aclnn.execution._workspace cimport WorkspaceHold, refuse_shared
from aclnn.acl._tensor_spec cimport FORMAT_ND, operand_t, spec_at
from aclnn.compiler._compiled_call cimport run_was_submitted
from aclnn.compiler._plan_cache cimport OperatorHandle
from aclnn.compiler._request cimport MANY, NUMBER_FORMS, number_facts

from time import monotonic_ns

from aclnn.acl import capture as captures, memory, stream as streams
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
    ACLNN_SUCCESS,
)
from aclnn.acl.errors import AclnnError
from aclnn.compiler._settings import limit_of_thread, limit_thread
from aclnn.graph.runtime import _scheduler

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef int OK = int(ACLNN_SUCCESS)
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)


cdef object run_phase_two(OperatorHandle handle, str name, object workspace,
                          object workspaceSize, object executor_or_none, object stream):
    """Run ``aclnnXxx``, whose name is `name`; its status."""
    cdef aclOpExecutor executor
    cdef char *addresses[MANY]
    cdef bint was_spent
    if executor_or_none is None:
        raise AclnnError(NULLPTR, "executor is null")
    if not isinstance(executor_or_none, aclOpExecutor):
        raise AclnnError(
            INVALID, f"executor is {type(executor_or_none).__name__}, must be an aclOpExecutor")
    executor = <aclOpExecutor>executor_or_none
    was_spent = executor.spent
    if not executor.repeatable and executor.origin == name:
        executor.spent = True  # whatever comes of it
    hold = hold_workspace(workspace, workspaceSize, executor.planned.workspace_size)
    if executor.destroyed:
        raise AclnnError(INNER, "executor is destroyed")
    if not executor.from_tensors:
        executor.make_outputs()
    held = executor.addresses_now(addresses)
    check_life(handle, name, executor, was_spent)
    if hold is not None:
        refuse_shared(executor.planned, executor.names, addresses, hold.address)
    return launch(executor, addresses, held, hold, stream)


cdef Py_ssize_t stated_bytes(object value) except -1:
    """`workspaceSize` as a number; more than any memory has counts as the largest there is."""
    cdef int overflow = 0
    cdef long long stated = -1
    whole = value if type(value) is int else as_int(value)
    if whole is not None:
        stated = PyLong_AsLongLongAndOverflow(whole, &overflow)
    if overflow > 0:
        return PY_SSIZE_T_MAX
    if stated < 0:
        raise AclnnError(
            INVALID, f"workspaceSize is {shown(value)}, must be an int that is not negative")
    return stated


cdef WorkspaceHold hold_workspace(object workspace, object given_size, Py_ssize_t needed):
    """The workspace, checked; `None` where none is needed."""
    cdef Py_ssize_t size = stated_bytes(given_size)
    if workspace is None and (needed or size):
        raise AclnnError(
            NULLPTR, f"workspace is null, workspaceSize is {shown(as_int(given_size))}, "
            f"{needed} bytes are needed")
    if size < needed:
        raise AclnnError(
            INVALID, f"workspaceSize is {shown(as_int(given_size))}, at least {needed} "
            "bytes are needed")
    return WorkspaceHold(workspace, needed) if needed else None


cdef int check_life(OperatorHandle handle, str name, aclOpExecutor executor,
                    bint was_spent) except -1:
    if was_spent:
        raise AclnnError(
            INNER, "executor was used already; aclSetAclOpExecutorRepeatable makes it last")
    if executor.handle is not handle or (
            executor.from_tensors and executor.origin != name):
        maker = (f"{executor.origin}GetWorkspaceSize" if executor.from_tensors
                 else f"aclnn.executor({executor.origin!r})")
        raise AclnnError(INNER, f"executor was made by {maker}")
    return 0


cdef object launch(aclOpExecutor executor, char **addresses, object held, WorkspaceHold hold,
                   object stream):
    """Run now on the default stream, else hand over the work, and what is held, to a thread."""
    cdef Job job
    if stream is None:
        if _captures.active and (status := captures.refuse_default_stream(executor.origin)):
            return status
        try:
            executor.execute(addresses, hold.address if hold is not None else NULL)
            if not executor.from_tensors:
                executor.tell_written()
            elif executor.handle.operator.measured:
                executor.tell_shapes()
        finally:
            if hold is not None:
                hold.release()
        return OK
    job = Job.__new__(Job)
    job.executor, job.held, job.hold = executor.snapshot(), held, hold
    job.submitted = monotonic_ns()
    job.omp_threads, job.thread_limit = _scheduler.omp_threads(), limit_of_thread()
    memcpy(job.addresses, addresses, sizeof(job.addresses))
    return streams.submit(stream, job, executor.origin)


cdef class Job:
    """A queued run: what it needs stays alive and unchanged until it is done.

    Device memory that was freed before its turn came is still there, unless its addresses were
    taken away.
    """

    cdef aclOpExecutor executor
    cdef list held  # what the operands' memory hangs on
    cdef WorkspaceHold hold
    cdef char *addresses[MANY]
    cdef int64_t submitted  # when, for profiles
    cdef int omp_threads, thread_limit  # OpenMP's and our own, of the thread that queued it

    def __call__(self):
        cdef char *workspace = self.hold.address if self.hold is not None else NULL
        try:
            self.refuse_lost()
            _scheduler.limit_omp_threads(self.omp_threads)
            limit_thread(self.thread_limit)
            run_was_submitted(self.submitted)
            self.executor.execute(self.addresses, workspace)
            self.executor.tell_written()
            if self.executor.original.from_tensors and self.executor.handle.operator.measured:
                self.executor.tell_shapes()
        except (AclnnError, MemoryError) as error:
            return INNER, f"{self.executor.origin}: {error}"
        finally:
            run_was_submitted(0)
            if self.hold is not None:
                self.hold.release()
        return OK

    # What captures ask of the work that they record.

    kind = "KERNEL"

    @property
    def name(self):
        return self.executor.origin

    def replay(self):
        """Run once more, without a look at whether the memory lives; the workspace stays held."""
        cdef char *workspace = self.hold.address if self.hold is not None else NULL
        self.executor.execute(self.addresses, workspace)

    @property
    def scratch(self):
        """Address, bytes and owner of the workspace; 0, 0 and None without one."""
        if self.hold is None:
            return 0, 0, None
        owner = <object>self.hold.view.obj if self.hold.exported else self.hold.owner
        return <size_t>self.hold.address, self.executor.planned.workspace_size, owner

    def owners(self):
        """Owners of the memory of each operand and the workspace, by name."""
        found = list(zip(self.executor.names, self.held))
        if self.hold is not None:
            found.append(("workspace", self.hold.owner))
        return found

    def operands(self):
        """Name and description of each operand, inputs first; None where it is null.

        Captures compare places: formats, and whether phase one might have written, do not count.
        """
        cdef operand_t operand
        cdef int index
        found = []
        for index in range(self.executor.request.n_inputs + self.executor.request.n_outputs):
            operand = self.executor.request.operands[index]
            operand.format, operand.writable = FORMAT_ND, True
            spec = spec_at(&operand, self.addresses[index], self.held[index])
            found.append(None if spec is None else (self.executor.names[index], spec))
        return found

    def numbers(self):
        """The facts of each number, and its forms: rounded to float32, as it is, and whole."""
        cdef int index
        forms = []
        for index in range(self.executor.request.n_numbers):
            forms.append((
                self.executor.request.numbers[NUMBER_FORMS * index].real,
                self.executor.request.numbers[NUMBER_FORMS * index + 1].real,
                self.executor.request.numbers[NUMBER_FORMS * index + 2].whole))
        return number_facts(self.executor.request), forms

    def call(self):
        """The operator, how many of the operands are inputs, the switches and the result's plan."""
        return (self.executor.handle.operator, self.executor.request.n_inputs,
                self.executor.switches, self.executor.planned)

    def frozen(self):
        """The call as a line: what is read and written where, and with which numbers."""
        cdef list parts = []
        for operand in self.operands():
            if operand is not None:
                name, spec = operand
                parts.append(
                    f"{name}={spec.address:#x} {spec.dtype.name[4:]}{list(spec.shape)}")
        _, forms = self.numbers()
        for attribute, (_, value, _) in zip(self.executor.handle.operator.scalars, forms):
            parts.append(f"{attribute.role}={value:g}")
        if self.hold is not None:
            parts.append(f"workspace={<size_t>self.hold.address:#x}")
        return f"{self.executor.origin}({', '.join(parts)})"

    cdef int refuse_lost(self) except -1:
        owners = list(self.held)
        owners.append(None if self.hold is None else self.hold.owner)
        for name, owner in zip((*self.executor.names, "workspace"), owners):
            if not memory.serves(owner):
                raise AclnnError(INVALID, f"{name} is in memory that was freed")
        return 0
