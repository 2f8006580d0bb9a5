"""Phase two: the checks before a run, the workspace, and the run itself, now or on a stream."""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from aclnn.execution._executor cimport aclOpExecutor
from aclnn.compiler._compiled_call cimport MANY, OperatorHandle, CompiledCall, run_was_submitted

from time import monotonic_ns

import numpy as np

from aclnn.acl import _dlpack, memory, stream as streams
from aclnn.acl._buffer import mentions_objects
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
    ACLNN_SUCCESS,
)
from aclnn.acl.errors import AclnnError
from aclnn.graph.runtime import _scheduler

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef int OK = int(ACLNN_SUCCESS)
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)


cdef object run_phase_two(OperatorHandle handle, str name, object workspace,
                          object workspaceSize, object executor_or_none, object stream):
    """What a call of ``aclnnXxx``, whose name is `name`, does; its status."""
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
    held = executor.addresses_now(addresses)
    check_life(handle, name, executor, was_spent)
    if hold is not None:
        refuse_shared(executor, addresses, hold.address)
    return launch(executor, addresses, held, hold, stream)


cdef Py_ssize_t stated_bytes(object given) except -1:
    """`workspaceSize` as a number; more than any memory has counts as the largest there is."""
    cdef int overflow = 0
    cdef long long stated = -1
    whole = given if type(given) is int else as_int(given)
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


cdef int refuse_shared(aclOpExecutor executor, char **addresses, char *workspace) except -1:
    """Intermediates must not replace what is still to be read, nor results."""
    cdef CompiledCall plan = executor.planned
    cdef char *end = workspace + plan.workspace_size
    cdef char *at
    cdef int index
    for index in range(plan.n_inputs + plan.n_outputs):
        at = addresses[index]
        if at + plan.low[index] < end and workspace < at + plan.high[index]:
            raise AclnnError(
                INVALID, f"workspace shares memory with {executor.names[index]}, must lie apart "
                "from all operands")
    return 0


cdef object launch(aclOpExecutor executor, char **addresses, object held, WorkspaceHold hold,
                   object stream):
    """Run now on the default stream, else hand over the work, and what is held, to a thread."""
    cdef Job job
    if stream is None:
        try:
            executor.execute(addresses, hold.address if hold is not None else NULL,
                             executor.result)
        finally:
            if hold is not None:
                hold.release()
        return OK
    job = Job.__new__(Job)
    job.executor, job.hold = executor.snapshot(held), hold
    job.submitted = monotonic_ns()
    job.omp_threads = _scheduler.omp_threads()
    memcpy(job.addresses, addresses, sizeof(job.addresses))
    return streams.submit(stream, job, executor.origin)


@cython.internal
cdef class Job:
    """A queued run: what it needs stays alive and unchanged until it is done.

    Device memory that was freed before its turn came is still there, but no longer the caller's.
    """

    cdef aclOpExecutor executor
    cdef WorkspaceHold hold
    cdef char *addresses[MANY]
    cdef int64_t submitted  # when, for profiles
    cdef int omp_threads  # OpenMP's limit for the thread that queued it

    def __call__(self):
        cdef char *workspace = self.hold.address if self.hold is not None else NULL
        try:
            self.refuse_freed()
            _scheduler.limit_omp_threads(self.omp_threads)
            run_was_submitted(self.submitted)
            self.executor.execute(self.addresses, workspace, self.executor.result)
        except (AclnnError, MemoryError) as error:
            return INNER, f"{self.executor.origin}: {error}"
        finally:
            run_was_submitted(0)
            if self.hold is not None:
                self.hold.release()
        return OK

    cdef int refuse_freed(self) except -1:
        owners = list(self.executor.keep)
        owners.append(None if self.hold is None else self.hold.owner)
        for name, owner in zip((*self.executor.names, "workspace"), owners):
            if not memory.is_alive(owner):
                raise AclnnError(INVALID, f"{name} lies in memory that was freed")
        return 0


cdef object with_buffer(workspace):
    """The workspace, or an array of its bytes, where it exports its memory in another way."""
    if PyObject_CheckBuffer(workspace):
        return workspace
    array = _dlpack.array_of(workspace, True)
    if array is None or not array.flags.forc:
        return workspace
    return array.ravel("K").view(np.uint8)


@cython.internal
cdef class WorkspaceHold:
    """The caller's workspace, held for one run."""

    cdef char *address
    cdef Py_buffer view
    cdef bint exported
    cdef object owner

    def __init__(self, workspace, Py_ssize_t needed):
        self.exported = False
        number = as_int(workspace)
        if number is not None:
            self.owner = memory.resolve(number, needed, "workspace")
            self.address = <char *><size_t>number
            return
        try:
            has_objects = getattr(getattr(workspace, "dtype", None), "hasobject", False)
            if not has_objects:
                PyObject_GetBuffer(
                    with_buffer(workspace), &self.view,
                    PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)
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
            raise AclnnError(
                INVALID, "workspace holds references to Python objects, must be plain memory")
        self.address = <char *>self.view.buf
        if self.view.len < needed:
            raise AclnnError(
                INVALID, f"workspace has {self.view.len} bytes, at least {needed} are needed")

    cdef int release(self) except -1:
        if self.exported:
            self.exported = False
            PyBuffer_Release(&self.view)
        self.owner = None
        return 0

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.view)
