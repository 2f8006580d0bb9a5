"""The runtime below the Python layer: memory, streams and events in C, which programs in C share.

The headers in `aclnn/acl/runtime/` have all that needs no interpreter; the classes here show it to
Python. `table` is a capsule of its functions for programs in C (`runtime_table.h`, made of
`aclnn.acl.prototypes`). A stream's thread takes the interpreter's lock for work that was queued
from Python, while that runs.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset, strlen

import atexit
import os

from aclnn import deferred

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8(object) except NULL
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    ctypedef struct PyThreadState
    PyThreadState *PyEval_SaveThread() noexcept nogil
    void PyEval_RestoreThread(PyThreadState *) noexcept nogil
    int look_for_signals "PyErr_CheckSignals"() noexcept nogil
    PyObject *PyErr_Occurred() noexcept
    bint PyBool_Check(object) noexcept
    bint PyLong_Check(object) noexcept

cdef extern from "entries.h" nogil:
    int rt_holds_lock, rt_watched
    void *(*rt_unlock)() noexcept nogil
    int (*rt_relock)(void *) noexcept nogil
    ctypedef struct rt_text:
        char *bytes
        size_t length
    ctypedef struct rt_thread:
        rt_text message, failure
        int status, last_error
    ctypedef struct rt_cause:
        rt_text first, latest
    ctypedef struct rt_object:
        int in_python
        uint64_t handle
    ctypedef struct rt_block:
        int is_host, n_parts
        uint64_t address, nbytes, reach
        int64_t made_at
        rt_block **parts
    ctypedef struct rt_stream:
        rt_object base
        int number, flags, redirected, closed, in_python
    ctypedef struct rt_event:
        rt_object base
        int number, closed
        uint32_t flags
        void *signal
    ctypedef struct rt_range
    ctypedef int (*rt_function)(void *) noexcept nogil
    ctypedef void (*rt_destructor)(void *) noexcept nogil
    enum:
        RT_SUCCESS
        RT_UNINITIALIZE
        RT_INVALID_HANDLE
        RT_RUNTIME_ERROR
        RT_STREAM
        RT_EVENT
        RT_MODEL
        RT_GROUP
    int rt_python_ended, rt_captures, rt_device, rt_counted_devices
    rt_stream *rt_works_for
    int (*rt_python)(const char *, const char *, const uint64_t *, uint64_t *) noexcept nogil
    void (*rt_thread_leaves)() noexcept nogil
    const void *rt_table_pointer "(&rt_table)"

    void rt_load()
    void rt_begin_anew()
    rt_thread *rt_this_thread()
    rt_cause *rt_cause_of(rt_thread *, const char *, size_t)
    void rt_set_message(const char *, size_t)
    int rt_note_failure(int, const char *, size_t)
    int rt_fail(int, const char *, ...)
    int rt_next_number()
    int64_t rt_clock()
    int64_t rt_until(int64_t)

    rt_block *rt_find(uint64_t, uint64_t)
    void rt_block_hold(rt_block *)
    void rt_block_drop(rt_block *)
    int rt_block_lives(rt_block *)
    void rt_block_use(rt_block *)
    void rt_block_end_use(rt_block *)
    int rt_block_serves(rt_block *)
    int rt_go_outside(int)
    int rt_is_ours(uint64_t)

    uint64_t rt_open(rt_object *, int)
    rt_object *rt_get(uint64_t, int)
    rt_object *rt_close(uint64_t, int)
    void rt_put(rt_object *)

    rt_stream *rt_new_stream(uint32_t)
    int rt_queue(rt_stream *, const char *, rt_function, void *, rt_destructor)
    int rt_wait_done(rt_stream *, int64_t)
    int rt_wait_end(rt_stream *, int64_t)
    int rt_is_idle(rt_stream *)
    char *rt_take_failure(rt_stream *)
    int rt_close_stream(rt_stream *, int)

    rt_event *rt_new_event(uint32_t)
    int rt_close_event(rt_event *)
    int rt_record(const char *, rt_event *, rt_stream *)
    int rt_await(const char *, rt_stream *, rt_event *, int64_t)
    int rt_reset(const char *, rt_event *, rt_stream *)
    int rt_has_happened(rt_event *, int64_t)
    int64_t rt_time_of(const char *, const char *, rt_event *)
    void rt_run_mark(void *)
    void rt_run_reset(void *)
    void rt_set_latest(rt_event *, void *)

    enum:
        RT_IN_PYTHON
    int rt_bad_flags(const char *, int64_t)
    int rt_life_state "rt_life.state"
    int rt_life_count "rt_life.count"
    size_t rt_aclDataTypeSize(int)
    float rt_aclFloat16ToFloat(unsigned short)
    unsigned short rt_aclFloatToFloat16(float)
    void rt_aclAppLog(int, const char *, const char *, uint32_t, const char *, ...)

cdef extern from "runtime_bindings.h":
    ctypedef struct rt_binding:
        const char *name
        const char *kinds
        const char *names
        int (*call)(const uint64_t *given, uint64_t *made) noexcept
    rt_binding rt_bindings[1]
    size_t rt_bindings_size "sizeof(rt_bindings)"

cdef extern from "entries.h":
    void *(*rt_object_of)(void *) noexcept
    void *(*rt_handle_of)(void *) noexcept

cdef extern from "stack.h" nogil:
    bint stack_is_short(size_t)

cdef enum:
    STACK = 64 << 10  # bytes that a call of the interpreter takes at most
    INTERNAL_ERROR = 507000
    SLICE = 20_000_000  # nanoseconds after which a wait looks whether signals have come
    KEEP_LOCK_BELOW = 16384  # bytes that are copied with the interpreter's lock


# --- The calling thread ---------------------------------------------------------------------------

cdef object decoded(rt_text *text):
    if text.bytes == NULL:
        return None
    return PyUnicode_DecodeUTF8(text.bytes, <Py_ssize_t>text.length, b"surrogatepass")


def set_message(str text not None):
    """Keep a text for this thread's next `aclGetRecentErrMsg`."""
    cdef bytes encoded = text.encode("utf-8", "surrogatepass")
    rt_set_message(encoded, len(encoded))


def take_message():
    """The message of this thread's most recent failure; reading clears it."""
    cdef rt_thread *own = rt_this_thread()
    if own == NULL or own.message.bytes == NULL:
        return None
    return taken(&own.message)


def note_failure(int status, str text not None):
    """Set the message and remember the failure; gives the status."""
    cdef bytes encoded = text.encode("utf-8", "surrogatepass")
    return rt_note_failure(status, encoded, len(encoded))


def latest_failure():
    """Status and message of this thread's most recent failure, or None."""
    cdef rt_thread *own = rt_this_thread()
    if own == NULL or own.failure.bytes == NULL:
        return None
    return own.status, decoded(&own.failure)


cdef object taken(rt_text *text):
    found = decoded(text)
    free(text.bytes)
    text.bytes = NULL
    return found


def take_causes(str maker not None):
    """The first and the latest failure of a function that makes objects; asking clears them."""
    cdef bytes name = maker.encode()
    cdef rt_cause *cause = rt_cause_of(rt_this_thread(), name, len(name))
    if cause == NULL:
        return None, None
    return taken(&cause.first), taken(&cause.latest)


def next_number():
    """A number for a stream, an event or a model."""
    return rt_next_number()


def watch():
    """Report waits for streams and events to the Python layer from now on."""
    global rt_watched
    rt_watched = 1


def set_captures(int count):
    """Note how many captures are under way."""
    global rt_captures
    rt_captures = count


# --- Memory ---------------------------------------------------------------------------------------

cdef class Allocation:
    """A stretch of device memory, or of the host's that devices reach, alive until it is freed.

    Each look-up makes an object; those of the same stretch are equal. They keep its bytes, not its
    life. Memory that is mapped piece by piece is one stretch for whoever crosses its borders.
    """

    cdef rt_block *block
    cdef object __weakref__

    def __dealloc__(self):
        if self.block != NULL:
            rt_block_drop(self.block)

    @property
    def address(self):
        return self.block.address

    @property
    def nbytes(self):
        return self.block.nbytes

    @property
    def end(self):
        """The end of what may be touched, with the slack that programs in C get."""
        return self.block.address + self.block.reach

    @property
    def alive(self):
        return bool(rt_block_lives(self.block))

    @property
    def serves(self):
        """Whether queued work still finds its bytes, freed for everybody else or not."""
        return bool(rt_block_serves(self.block))

    @property
    def is_host(self):
        return bool(self.block.is_host)

    @property
    def made_at(self):
        """When, by the monotonic clock: captures tell by it what was made inside them."""
        return self.block.made_at

    def __eq__(self, other):
        return isinstance(other, Allocation) and are_same((<Allocation>other).block, self.block)

    def __hash__(self):
        return hash(<size_t>(self.block if self.block.n_parts == 0 else self.block.parts[0]) >> 4)

    def __reduce__(self):
        raise TypeError("an allocation cannot be copied or pickled: its address is this process's")


cdef bint are_same(rt_block *one, rt_block *other) noexcept:
    """Whether two blocks are one, or made of the same ones."""
    cdef int k
    if one.n_parts == 0 or one.n_parts != other.n_parts:
        return one == other
    for k in range(one.n_parts):
        if one.parts[k] != other.parts[k]:
            return False
    return True


cdef Allocation shown(rt_block *block):
    cdef Allocation one = Allocation.__new__(Allocation)
    one.block = block
    return one


def find(uint64_t address, uint64_t nbytes=0):
    """The live allocation that has so many bytes at an address; one that has fewer, or ends there.

    None without one.
    """
    cdef rt_block *block = rt_find(address, nbytes)
    return None if block == NULL else shown(block)


def is_ours(uint64_t address):
    """Whether an address is one that the runtime gives out, live or freed."""
    return bool(rt_is_ours(address))


def move(size_t dst, size_t src, size_t nbytes):
    """Copy bytes, which may overlap."""
    if nbytes < KEEP_LOCK_BELOW:
        if nbytes:
            memmove(<void *>dst, <void *>src, nbytes)
        return
    with nogil:
        memmove(<void *>dst, <void *>src, nbytes)


def fill(size_t address, int value, size_t nbytes):
    """Set bytes to a value."""
    if not nbytes:
        return
    with nogil:
        memset(<void *>address, value, nbytes)


def store_text(size_t address, size_t room, str text not None):
    """Write a text with a zero byte behind it, as much of it as there is room for."""
    cdef bytes encoded = text.encode("utf-8", "replace")[:room - 1]
    memmove(<void *>address, <const char *>encoded, len(encoded))
    (<char *>address)[len(encoded)] = 0


# --- Work that needs the interpreter --------------------------------------------------------------

ctypedef struct python_job:
    PyObject *job
    int n_blocks  # that it uses
    rt_block *blocks[1]


cdef int run_python(void *value) noexcept nogil:
    """Run what was queued from Python, on a stream's thread."""
    cdef python_job *one = <python_job *>value
    cdef int status
    if rt_python_ended:
        return rt_fail(RT_UNINITIALIZE, b"the interpreter has ended")
    if rt_works_for != NULL:
        rt_works_for.in_python = 1
    rt_go_outside(True)
    keep_thread_state()
    with gil:
        status = run_job(<object>one.job)
        Py_DECREF(<object>one.job)
        one.job = NULL
    rt_go_outside(False)
    if rt_works_for != NULL:
        rt_works_for.in_python = 0
    return status


cdef void drop_python(void *value) noexcept nogil:
    """Let go of work that ran, or never will, and of the memory that it used."""
    cdef python_job *one = <python_job *>value
    cdef int k
    for k in range(one.n_blocks):
        rt_block_end_use(one.blocks[k])
        rt_block_drop(one.blocks[k])
    if one.job != NULL and not rt_python_ended:
        with gil:
            Py_DECREF(<object>one.job)
    free(one)


cdef list used_by(job):
    """Allocations that work uses, of those that it names as its owners."""
    cdef list found = []
    owners = getattr(job, "owners", None)
    if owners is not None:
        for _, owner in owners():
            if isinstance(owner, Allocation):
                found.append(owner)
    return found


cdef int run_job(job) noexcept:
    """A job gives ACL_SUCCESS or ``(status, message)``; what it raises is a failure too."""
    try:
        outcome = job()
        if isinstance(outcome, tuple):
            set_message(str(outcome[1]))
            return RT_RUNTIME_ERROR
        return RT_SUCCESS
    except BaseException as error:  # nothing may end the thread: who synchronises would hang
        try:
            set_message(f"{type(error).__name__}: {error}")
        except BaseException:
            set_message(type(error).__name__)
        return RT_RUNTIME_ERROR


cdef extern from *:
    """
    /* A thread that C made has to have a state to take the interpreter's lock: that of a stream
     * keeps one until it ends. A fork must not come while the interpreter's list of states is
     * locked: CPython 3.11 would wait for that in the child. */
    static __thread PyThreadState *aclnn_kept;
    static void aclnn_keep_thread_state(void) {
        if (rt_works_for == NULL || PyGILState_GetThisThreadState() != NULL) return;
        pthread_mutex_lock(&rt_fork_lock);
        aclnn_kept = PyThreadState_New(PyInterpreterState_Main());
        pthread_mutex_unlock(&rt_fork_lock);
    }
    static void aclnn_thread_leaves(void) {
        if (aclnn_kept == NULL || rt_python_ended) return;
        PyEval_RestoreThread(aclnn_kept);
        PyThreadState_Clear(aclnn_kept);
        PyThreadState_DeleteCurrent();
        aclnn_kept = NULL;
    }
    """
    void keep_thread_state "aclnn_keep_thread_state"() nogil
    void thread_leaves "aclnn_thread_leaves"() noexcept nogil


# --- Streams --------------------------------------------------------------------------------------

cdef object text_of(char *text):
    """A failure's message, which is freed; None without one."""
    if text == NULL:
        return None
    try:
        return PyUnicode_DecodeUTF8(text, <Py_ssize_t>strlen(text), b"surrogatepass")
    finally:
        free(text)


cdef int64_t end_of_slice(int64_t until) noexcept:
    cdef int64_t soon = rt_clock() + SLICE
    return soon if until < 0 or soon < until else until


cdef bint is_over(int64_t until) noexcept:
    return until >= 0 and rt_clock() >= until


cdef int64_t end_of(seconds) except? -2:
    """A time of the clock so many seconds from now; -1, for ever, for None."""
    return -1 if seconds is None else rt_until(<int64_t>(float(seconds) * 1e9))


cdef class Stream:
    """A queue of work, and the thread that does it.

    Parameters
    ----------
    handle : int
        Of a stream that a program in C made; 0 makes one, which ends with this object.
    flags : int
        Hints, of `aclrtStreamFlag`.
    """

    cdef rt_stream *stream
    cdef bint owns
    cdef object taker  # of the work, instead of the stream
    cdef object __weakref__

    def __cinit__(self, uint64_t handle=0, uint32_t flags=0):
        if handle:
            self.stream = <rt_stream *>rt_get(handle, RT_STREAM)
            if self.stream == NULL:
                raise ValueError("the handle is not live")
            self.stream.base.in_python = 1
            return
        self.stream = rt_new_stream(flags)
        if self.stream == NULL:
            raise MemoryError
        rt_get(self.stream.base.handle, RT_STREAM)
        self.owns = True

    def __dealloc__(self):
        if self.stream == NULL:
            return
        if self.owns:
            rt_close_stream(self.stream, 0)
        rt_put(&self.stream.base)

    @property
    def own_handle(self):
        """The number by which programs in C know it."""
        return self.stream.base.handle

    @property
    def number(self):
        return self.stream.number

    @property
    def flags(self):
        return self.stream.flags

    @property
    def destroyed(self):
        return bool(self.stream.closed)

    @property
    def redirect(self):
        """The capture or the update that takes the stream's work instead; None without one."""
        return self.taker

    @redirect.setter
    def redirect(self, taker):
        self.taker = taker
        self.stream.redirected = taker is not None

    def queue(self, job, str function not None):
        """Queue work for a function; a status, with a message where it is not ACL_SUCCESS."""
        cdef const char *name = PyUnicode_AsUTF8(function)
        cdef list used = used_by(job)
        cdef python_job *one = <python_job *>malloc(
            sizeof(python_job) + len(used) * sizeof(rt_block *))
        cdef Allocation owner
        if one == NULL:
            raise MemoryError
        one.n_blocks = 0
        for owner in used:
            rt_block_hold(owner.block)
            rt_block_use(owner.block)
            one.blocks[one.n_blocks] = owner.block
            one.n_blocks += 1
        Py_INCREF(job)
        one.job = <PyObject *>job
        return rt_queue(self.stream, name, run_python, one, drop_python)

    def submit(self, job):
        """Queue work; False when the stream is destroyed."""
        return self.queue(job, "stream") != RT_INVALID_HANDLE

    def is_idle(self):
        """Whether all work has been done that it was given."""
        return bool(rt_is_idle(self.stream))

    def wait(self, seconds=None):
        """Wait for all work queued so far; whether it was done in time. Signals are heard."""
        cdef int64_t until = end_of(seconds), slice_ends
        cdef bint done = rt_is_idle(self.stream)
        while not done:
            slice_ends = end_of_slice(until)
            with nogil:
                done = rt_wait_done(self.stream, slice_ends)
            PyErr_CheckSignals()
            if not done and is_over(until):
                return False
        return True

    def synchronize(self):
        """Wait for all work queued so far; the message of the first failure since the last time."""
        self.wait()
        return self.take_failure()

    def join(self, seconds=None):
        """Wait until the thread of a closed stream has ended; whether it did in time."""
        cdef int64_t until = end_of(seconds), slice_ends
        cdef bint ended = False
        while not ended:
            slice_ends = end_of_slice(until)
            with nogil:
                ended = rt_wait_end(self.stream, slice_ends)
            PyErr_CheckSignals()
            if not ended and is_over(until):
                return False
        return True

    def take_failure(self):
        """The message of the first failure since the last time, or None."""
        return text_of(rt_take_failure(self.stream))

    def close(self, bint at_once=False):
        """Take no more work and let the thread end after the last; False when closed before."""
        return bool(rt_close_stream(self.stream, at_once))

    def __reduce__(self):
        raise TypeError("a stream cannot be copied or pickled: its thread is one")


# --- Events ---------------------------------------------------------------------------------------

cdef rt_stream *under(Stream stream) noexcept:
    return NULL if stream is None else stream.stream


cdef class Event:
    """A mark in a stream's work.

    Parameters
    ----------
    handle : int
        Of an event that a program in C made; 0 makes one, which ends with this object.
    flags : int
        Of `aclrtEventFlag`.
    """

    cdef rt_event *event
    cdef bint owns
    cdef public object captured_by  # the latest capture that recorded it
    cdef public int captured_at  # the task that did
    cdef object __weakref__

    def __cinit__(self, uint64_t handle=0, uint32_t flags=0):
        if handle:
            self.event = <rt_event *>rt_get(handle, RT_EVENT)
            if self.event == NULL:
                raise ValueError("the handle is not live")
            self.event.base.in_python = 1
            return
        self.event = rt_new_event(flags)
        if self.event == NULL:
            raise MemoryError
        rt_get(self.event.base.handle, RT_EVENT)
        self.owns = True

    def __dealloc__(self):
        if self.event == NULL:
            return
        if self.owns:
            rt_close_event(self.event)
        rt_put(&self.event.base)

    @property
    def own_handle(self):
        """The number by which programs in C know it."""
        return self.event.base.handle

    @property
    def number(self):
        return self.event.number

    @property
    def flags(self):
        return self.event.flags

    @property
    def destroyed(self):
        return bool(self.event.closed)

    @property
    def external(self):
        """Whether runs of models and streams outside of captures share it."""
        return self.event.signal != NULL

    def close(self):
        """Take no more calls; False when closed before."""
        return bool(rt_close_event(self.event))

    def record(self, str function not None, Stream stream=None):
        """Record it behind the work that a stream (None: the default one) was given; a status."""
        return rt_record(PyUnicode_AsUTF8(function), self.event, under(stream))

    def hold_up(self, str function not None, Stream stream not None, seconds=None):
        """Let a stream wait for it, for so many seconds at most; a status."""
        cdef int64_t limit = -1 if seconds is None else <int64_t>(float(seconds) * 1e9)
        return rt_await(PyUnicode_AsUTF8(function), stream.stream, self.event, limit)

    def reset(self, str function not None, Stream stream=None):
        """Let it count as not recorded, behind the work that a stream was given; a status."""
        return rt_reset(PyUnicode_AsUTF8(function), self.event, under(stream))

    def forget(self):
        """Let it count as not recorded from now on."""
        if self.event.signal != NULL:
            rt_run_reset(self.event.signal)
        else:
            rt_set_latest(self.event, NULL)

    def has_happened(self):
        """Whether its latest recording has; without one it has, unless it is external."""
        return bool(rt_has_happened(self.event, 0))

    def wait(self, seconds=None):
        """Wait until it has happened; whether it did in time. Signals are heard."""
        cdef int64_t until = end_of(seconds), slice_ends
        cdef bint happened = rt_has_happened(self.event, 0)
        while not happened:
            slice_ends = end_of_slice(until)
            with nogil:
                happened = rt_has_happened(self.event, slice_ends)
            PyErr_CheckSignals()
            if not happened and is_over(until):
                return False
        return True

    def time_of(self, str function not None, str name not None):
        """When its latest recording happened, in nanoseconds; 0, with a message, if it has not."""
        return rt_time_of(PyUnicode_AsUTF8(function), PyUnicode_AsUTF8(name), self.event)

    def __reduce__(self):
        raise TypeError("an event cannot be copied or pickled: it is of this process")


def bad_flags(str function not None, int64_t flags):
    """A status: whether an event can have such flags."""
    return rt_bad_flags(PyUnicode_AsUTF8(function), flags)


# --- Calls of programs in C that the Python layer serves ------------------------------------------

cdef class Handle:
    """A number by which programs in C know a model ('m') or a task group ('g') of Python's."""

    cdef rt_object *object_
    cdef int kind

    def __cinit__(self, str kind not None):
        self.object_ = <rt_object *>malloc(64)
        self.kind = RT_MODEL if kind == "m" else RT_GROUP
        if self.object_ == NULL:
            raise MemoryError
        memset(self.object_, 0, 64)
        if not rt_open(self.object_, self.kind):
            free(self.object_)
            self.object_ = NULL
            raise MemoryError

    def __dealloc__(self):
        cdef rt_object *held
        if self.object_ != NULL:
            held = rt_close(self.object_.handle, self.kind)
            if held != NULL:
                rt_put(held)

    @property
    def value(self):
        return self.object_.handle


cdef dict names = {}  # text of C that is never freed


def lasting(str text not None):
    """The address of a text in C that stays."""
    if text not in names:
        names[text] = text.encode()
    return <size_t><char *>(<bytes>names[text])


cdef object python_layer():
    """The module that serves these calls."""
    return deferred.load("calls of C")


cdef int ask_python(const char *name, const char *kinds, const uint64_t *arguments,
                    uint64_t *results) noexcept nogil:
    global rt_holds_lock
    cdef int held = rt_holds_lock, status
    if rt_python_ended:
        return rt_fail(RT_UNINITIALIZE, b"%s: the interpreter has ended", name)
    if stack_is_short(STACK):
        return rt_fail(INTERNAL_ERROR, b"%s: the thread has less than %d KiB left of its stack, "
                       b"which the interpreter needs", name, STACK >> 10)
    rt_holds_lock = 0  # what runs there may let go of it
    with gil:
        status = asked(name, kinds, arguments, results)
    rt_holds_lock = held
    return status


cdef int asked(const char *name, const char *kinds, const uint64_t *arguments,
               uint64_t *results) noexcept:
    cdef int index
    cdef list args = []
    try:
        from_c = python_layer()
        for index in range(<int>strlen(kinds)):
            args.append(argument(from_c, kinds[index], arguments[index]))
        outcome = from_c.call(name.decode(), args)
        if not isinstance(outcome, tuple):
            return outcome
        for index in range(len(outcome) - 1):
            if results != NULL:
                results[index] = as_number(from_c, outcome[index])
        return outcome[len(outcome) - 1]
    except BaseException as error:
        try:
            return note_failure(
                INTERNAL_ERROR, f"{name.decode()}: {type(error).__name__}: {error}")
        except BaseException:
            return INTERNAL_ERROR


cdef object argument(from_c, char kind, uint64_t value):
    if kind == b"i":
        return <int64_t>value
    if kind == b"p":
        return value
    if kind == b"t":
        return (<const char *><size_t>value).decode("utf-8", "replace")
    return from_c.object_of(value)


cdef uint64_t as_number(from_c, value) except? 0:
    if value is None:
        return 0
    if isinstance(value, int):
        return <uint64_t><int64_t>value if value < 0 else <uint64_t>value
    return from_c.handle_of(value)


cdef void *object_of(void *handle) noexcept:
    try:
        from_c = python_layer()
        found = from_c.object_of(<size_t>handle)
        if found is None or isinstance(found, int):
            return NULL
        Py_INCREF(found)
        return <void *>found
    except BaseException:
        return NULL


cdef void *handle_of(void *value) noexcept:
    try:
        from_c = python_layer()
        return <void *><size_t>from_c.handle_of(<object>value)
    except BaseException:
        return NULL


def call_now(size_t function, size_t argument):
    """Call a function of C with its argument."""
    with nogil:
        (<void (*)(void *) noexcept nogil>function)(<void *>argument)


# --- Functions of C, for Python -------------------------------------------------------------------

cdef enum:
    MOST_NUMBERS = 8
    NO_HANDLE = 15  # which no object has
    MOST_INT = 0x7fffffff

IN_PYTHON = RT_IN_PYTHON  # the status of a call that captures may record, which C leaves to Python
cdef dict bindings = {}
# What is passed in the place of a value that is no number for a parameter: what C refuses.
cdef dict refused = {
    "timeout": 0, "size": 0, "alignment": 3, "context": NO_HANDLE, "handle": NO_HANDLE,
}


cdef class Binding:
    """A function of C that takes and gives numbers (`runtime_bindings.h`)."""

    cdef const rt_binding *of
    cdef int n_given, n_made
    cdef tuple names

    def __cinit__(self, str name not None):
        cdef size_t k
        cdef bytes requested = name.encode()
        for k in range(rt_bindings_size // sizeof(rt_binding)):
            if rt_bindings[k].name == requested:
                self.of = &rt_bindings[k]
        if self.of == NULL:
            raise LookupError(f"no function {name} of C takes and gives numbers alone")
        self.names = tuple(self.of.names.decode().split())
        self.n_given = len(self.names)
        self.n_made = <int>strlen(self.of.kinds) - self.n_given - 1

    cdef object run(self, str name, tuple values):
        global rt_holds_lock
        cdef uint64_t value[MOST_NUMBERS]
        cdef uint64_t made[MOST_NUMBERS]
        cdef int k, status, held = rt_holds_lock, odd = -1
        if len(values) != self.n_given:
            raise TypeError(f"{name} takes {self.n_given} values, {len(values)} given")
        for k in range(self.n_given):
            if not put_number(self.of.kinds[k], values[k], self.names[k], &value[k]) and odd < 0:
                odd = k
        rt_holds_lock = 1
        status = self.of.call(value, made)
        rt_holds_lock = held
        if PyErr_Occurred() != NULL:  # a signal's handler has raised
            raise_what_is_set()
        if odd >= 0 and status != RT_SUCCESS:
            status = python_layer().explain(name, self.names[odd], values[odd], status)
        if self.n_made == 0:
            return status
        if self.n_made == 1:
            return self.result(made, 0), status
        found = []
        for k in range(self.n_made):
            found.append(self.result(made, k))
        found.append(status)
        return tuple(found)

    cdef object result(self, const uint64_t *made, int k):
        return made[k] if self.of.kinds[self.n_given + 1 + k] == b"n" else <int64_t>made[k]


cdef bint put_number(char kind, value, str name, uint64_t *number) except -1:
    """An argument as a number of its kind; False, with one that C refuses, where it is none."""
    cdef int over = 0
    cdef long long found
    if kind == b"s" or kind == b"e":
        return put_handle(kind, value, number)
    if not PyLong_Check(value) or PyBool_Check(value):
        value = python_layer().number_of(value)
    if value is not None:
        found = PyLong_AsLongLongAndOverflow(value, &over)
        number[0] = <uint64_t>found
        if kind == b"i":
            if over == 0 and -MOST_INT - 1 <= found <= MOST_INT:
                return True
        elif over == 0 and 0 <= found and (kind == b"n" or found <= 0xffffffff):
            return True
        elif over > 0 and kind == b"n" and value <= 0xffffffffffffffff:
            number[0] = value
            return True
        if value > 0:  # more than C has
            number[0] = MOST_INT if kind == b"i" else 0xffffffff if kind == b"u" else <uint64_t>-1
            return False
    number[0] = refused.get(name, 1) if kind == b"n" else <uint64_t><int64_t>refused.get(name, -1)
    return False


cdef bint put_handle(char kind, value, uint64_t *number) noexcept:
    cdef rt_object *of = NULL
    number[0] = 0
    if value is None:
        return True
    if kind == b"s" and isinstance(value, Stream) and not (<Stream>value).stream.closed:
        of = &(<Stream>value).stream.base
    elif kind == b"e" and isinstance(value, Event) and not (<Event>value).event.closed:
        of = &(<Event>value).event.base
    number[0] = NO_HANDLE if of == NULL else of.handle
    return of != NULL


cdef int raise_what_is_set() except -1:
    return -1


def call(str name not None, *values):
    """Call a function of C: its results, and its status.

    Values are those of the prototype, in its order, without those that C writes to, texts and
    structures; statuses and messages are C's.
    """
    cdef Binding one = bindings.get(name)
    if one is None:
        one = bindings[name] = Binding(name)
    return one.run(name, values)


cdef void *let_lock_go() noexcept nogil:
    """Let other threads use the interpreter while this one waits."""
    return <void *>PyEval_SaveThread()


cdef int take_lock_again(void *kept) noexcept nogil:
    """Not 0 where a signal's handler has raised meanwhile, or does now."""
    PyEval_RestoreThread(<PyThreadState *>kept)
    return look_for_signals()


def exchange_life(life=(0, 0)):
    """Set whether aclInit and aclFinalize were called, and how often; what was before.

    For tests: every program begins with ``(0, 0)``.
    """
    global rt_life_state, rt_life_count
    before = rt_life_state, rt_life_count
    rt_life_state, rt_life_count = life
    return before


def exchange_devices(int count=0):
    """Set how many devices there are, 0: as the environment says; what was before.

    For tests; this thread chooses the first.
    """
    global rt_counted_devices, rt_device
    before, rt_counted_devices, rt_device = rt_counted_devices, count, 0
    return before


def type_size(int dtype):
    """Bytes of an element."""
    return rt_aclDataTypeSize(dtype)


def half_to_float(int value):
    """A half of 16 bits as a number; see aclFloat16ToFloat."""
    return rt_aclFloat16ToFloat(<unsigned short>value)


def float_to_half(float value):
    """A number as the bits of a half; see aclFloatToFloat16."""
    return rt_aclFloatToFloat16(value)


def app_log(int level, bytes function not None, bytes file not None, int line,
            bytes text not None):
    """Write a line to standard error, if ACLNN_VERBOSE asks for lines."""
    rt_aclAppLog(level, function, file, line, b"%s", <const char *>text)


def _after_fork():
    rt_begin_anew()


def _interpreter_ends():
    global rt_python_ended
    rt_python_ended = 1


rt_load()
rt_python = ask_python
rt_unlock = let_lock_go
rt_relock = take_lock_again
rt_object_of = object_of
rt_handle_of = handle_of
rt_thread_leaves = thread_leaves
atexit.register(_interpreter_ends)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
table = PyCapsule_New(<void *>rt_table_pointer, b"aclnn.acl._runtime.table", NULL)
