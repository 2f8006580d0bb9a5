"""Workspaces: the caller's, held for a run; lent by a pool; or an executor's own."""

from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)

from libc.stdlib cimport free

from aclnn.compiler._compiled_call cimport CompiledCall

from _thread import allocate_lock

import numpy as np

from aclnn.acl import _dlpack, memory
from aclnn.acl._buffer import mentions_objects
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError, invalid

cdef extern from "stdlib.h" nogil:
    void *aligned_alloc(size_t alignment, size_t size) noexcept

cdef extern from "sys/mman.h" nogil:
    void *MAP_FAILED
    int PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS
    void *mmap(
        void *address, size_t size, int protection, int flags, int file, long offset) noexcept
    int munmap(void *address, size_t size) noexcept

cdef enum:
    WORKSPACE_ALIGNMENT = 64
    # From here on pages are the system's: malloc would keep them for each thread that once ran.
    OWN_PAGES_FROM = 256 << 10

cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)


cdef int refuse_shared(CompiledCall plan, tuple names, char **addresses, char *workspace) except -1:
    """Intermediates must not replace what is still to be read, nor results."""
    cdef char *end = workspace + plan.workspace_size
    cdef char *at
    cdef int index
    for index in range(plan.n_inputs + plan.n_outputs):
        at = addresses[index]
        if at + plan.low[index] < end and workspace < at + plan.high[index]:
            raise AclnnError(
                INVALID, f"workspace shares memory with {names[index]}, must lie apart "
                "from all operands")
    return 0


class WorkspacePool:
    """A bounded pool of workspaces, shared by threads and executors.

    Parameters
    ----------
    max_bytes : int
        The most that all workspaces together may take. A run waits until enough is free.

    Attributes
    ----------
    max_bytes : int
        The bound.
    allocated : int
        Bytes of all allocated workspaces.
    lent : int
        Bytes of the workspaces in use.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> pool = aclnn.WorkspacePool(max_bytes=1 << 20)
    >>> x = np.linspace(-3, 3, 4096, dtype=np.float32).reshape(64, 64)
    >>> ex = aclnn.executor("gelu", x, materialize=True)
    >>> y = ex.run(workspace=pool)
    >>> pool.lent, pool.allocated >= ex.workspace_size
    (0, True)
    """

    @boundary
    def __init__(self, max_bytes):
        number = as_int(max_bytes)
        if number is None or number < 1:
            raise invalid(f"max_bytes is {shown(max_bytes)}, must be an int of at least 1")
        self.max_bytes = number
        self.allocated = self.lent = 0
        self._free = []  # sorted by size
        self._lock = allocate_lock()
        self._waiting = []  # a locked lock for each thread that waits

    def __repr__(self):
        return (f"<WorkspacePool: {self.lent} of {self.allocated} bytes are lent, at most "
                f"{self.max_bytes}>")

    def __reduce__(self):
        return WorkspacePool, (self.max_bytes,)

    def lend(self, nbytes):
        """Lend a workspace for as long as a ``with`` statement runs.

        Parameters
        ----------
        nbytes : int
            Its size in bytes.

        Returns
        -------
        context manager
            Yields an array of at least that many bytes.

        Raises
        ------
        AclnnError
            If that is more than the pool may have.
        """
        number = as_int(nbytes)
        if number is None or not 0 <= number <= self.max_bytes:
            raise invalid(f"a workspace of {shown(nbytes)} bytes is asked of a pool that has at "
                          f"most {self.max_bytes}")
        return Loan(self, number)

    def clear(self):
        """Free all workspaces that are not in use."""
        self._lock.acquire()
        try:
            for one in self._free:
                self.allocated -= one.nbytes
            self._free.clear()
        finally:
            self._lock.release()

    def _borrow(self, nbytes):
        """A workspace, once there is one; what signals' handlers raise leaves all as it was.

        Handlers run only where this waits for a lock: it is compiled, and calls nothing in Python.
        """
        while True:
            self._lock.acquire()
            try:
                lent = self._take(nbytes)
                if lent is not None:
                    return lent
                turn = allocate_lock()
                turn.acquire()
                self._waiting.append(turn)
            finally:
                self._lock.release()
            turn.acquire()

    def _give_back(self, lent):
        """End a loan, whatever handlers raise meanwhile."""
        interrupt = self._lock_surely()
        try:
            self.lent -= lent.nbytes
            self._keep(lent)
            for turn in self._waiting:
                turn.release()
            self._waiting.clear()
        finally:
            self._lock.release()
        if interrupt is not None:
            raise interrupt

    def _lock_surely(self):
        """Lock; what handlers raised while this waited, or None."""
        interrupt = None
        while True:
            try:
                self._lock.acquire()
                return interrupt
            except BaseException as error:
                interrupt = error

    def _take(self, nbytes):
        """The smallest workspace that is large enough, or a new one; None if others have too much.
        """
        found = None
        for index, one in enumerate(self._free):
            if one.nbytes >= nbytes:
                found = self._free.pop(index)
                break
        while found is None and self.allocated + nbytes > self.max_bytes and self._free:
            self.allocated -= self._free.pop().nbytes
        if found is None and self.allocated + nbytes > self.max_bytes:
            return None
        if found is None:
            found = np.empty(nbytes, np.uint8)
            self.allocated += nbytes
        self.lent += found.nbytes
        return found

    def _keep(self, workspace):
        index = 0
        while index < len(self._free) and self._free[index].nbytes < workspace.nbytes:
            index += 1
        self._free.insert(index, workspace)


cdef class Loan:
    """A workspace of a pool, for a ``with`` statement.

    Compiled, as the pool: between taking the memory and the statement's body no handler runs.
    """

    cdef object pool, lent
    cdef object nbytes

    def __init__(self, pool not None, nbytes):
        self.pool, self.nbytes = pool, nbytes

    def __enter__(self):
        if self.lent is not None:
            raise RuntimeError("a workspace is lent to one with statement at a time")
        self.lent = self.pool._borrow(self.nbytes)
        return self.lent

    def __exit__(self, *_):
        lent, self.lent = self.lent, None
        if lent is not None:
            self.pool._give_back(lent)

    def __del__(self):
        self.__exit__()


cdef object with_buffer(workspace):
    """The workspace, or an array of its bytes, where it exports its memory in another way."""
    if PyObject_CheckBuffer(workspace):
        return workspace
    array = _dlpack.array_of(workspace, True)
    if array is None or not array.flags.forc:
        return workspace
    return array.ravel("K").view(np.uint8)


cdef class WorkspaceHold:
    """The caller's workspace, held for one run."""

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


cdef class OwnWorkspace:
    """A workspace that an executor has for its runs."""

    def __cinit__(self, Py_ssize_t size):
        cdef Py_ssize_t whole_lines = (size + WORKSPACE_ALIGNMENT - 1) & -WORKSPACE_ALIGNMENT
        cdef void *pages
        if size >= OWN_PAGES_FROM:
            pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            if pages != MAP_FAILED:
                self.address, self.mapped = <char *>pages, size
        else:
            self.address = <char *>aligned_alloc(WORKSPACE_ALIGNMENT, whole_lines)
        if self.address == NULL:
            raise MemoryError(f"no memory for a workspace of {size} bytes")

    def __dealloc__(self):
        if self.mapped:
            munmap(self.address, self.mapped)
        else:
            free(self.address)
