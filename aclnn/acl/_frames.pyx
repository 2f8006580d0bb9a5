"""Tracebacks that end at the caller's line.

What a caller got wrong is raised deep inside, and none of that is of interest: on its way out of a
public function an `AclnnError` loses the frames of this package. What a caller's own function
raises, one that is traced or a step of a plan, loses the package's frames around it. Other
exceptions are defects and keep theirs. A frame cannot leave itself out: each exception that passes
through one adds it. So the last step out of the package is a function in C, which adds none.
"""

from cpython.object cimport PyObject

import functools
from types import MethodType

cdef extern from *:
    """
    /* The exception that is set, or NULL; it is cleared. */
    static PyObject *aclnn_take_error(void) {
    #if PY_VERSION_HEX >= 0x030C0000
      return PyErr_GetRaisedException();
    #else
      PyObject *kind, *value, *trace;
      PyErr_Fetch(&kind, &value, &trace);
      PyErr_NormalizeException(&kind, &value, &trace);
      if (trace != NULL) PyException_SetTraceback(value, trace);
      Py_XDECREF(kind);
      Py_XDECREF(trace);
      return value;
    #endif
    }

    static void aclnn_put_error(PyObject *value) {
    #if PY_VERSION_HEX >= 0x030C0000
      PyErr_SetRaisedException(Py_NewRef(value));
    #else
      PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(value)), Py_NewRef(value),
                    PyException_GetTraceback(value));
    #endif
    }

    /* Let instances be called by `called`, a vectorcallfunc at `offset` in them. */
    static void aclnn_call_by(PyObject *type, Py_ssize_t offset) {
      PyTypeObject *kind = (PyTypeObject *)type;
      kind->tp_vectorcall_offset = offset;
      kind->tp_call = PyVectorcall_Call;
      kind->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
      PyType_Modified(kind);
    }
    """
    object aclnn_take_error()
    void aclnn_put_error(object value)
    void aclnn_call_by(object type, Py_ssize_t offset)

cdef extern from "Python.h":
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *) noexcept


cdef object take_error():
    """The exception that was raised, as if it had been caught."""
    return aclnn_take_error()


cdef void put_error(object error) noexcept:
    """Raise an exception with the traceback that it has."""
    aclnn_put_error(error)


cdef void strip_error() noexcept:
    """Take the package's frames from the exception that was raised, if it is the caller's."""
    error = aclnn_take_error()
    if isinstance(error, mistakes()):
        leave_out(error)
    else:
        leave_out_around(error)
    aclnn_put_error(error)


cdef type mistakes():
    """Exception types of callers' mistakes; imported late: the package begins with this module."""
    from aclnn.acl.errors import AclnnError

    return AclnnError


def leave_out(error):
    """Take the package's own frames, and those of others between them, from a traceback.

    Examples
    --------
    >>> from aclnn.acl.arguments import as_truth
    >>> try:
    ...     as_truth("x", "yes")
    ... except ValueError as error:
    ...     leave_out(error)
    ...     print(error.__traceback__)
    None
    """
    found = []
    trace = error.__traceback__
    while trace is not None:
        if not is_own(trace.tb_frame):
            found.append(trace)
        trace = trace.tb_next
    following = None
    for trace in reversed(found):
        trace.tb_next = following
        following = trace
    error.__traceback__ = following


cdef bint is_own(frame):
    return library_of(frame) in ("aclnn", "torch", "importlib")


cdef object library_of(frame):
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else None


# Modules and names of the functions that call what users wrote.
cdef set callers = set()


def calls_back(function=None, *, within=None):
    """Mark a function as one that calls what users wrote: what that raises is theirs.

    Parameters
    ----------
    function : callable, optional
        In Python; a decorator's argument.
    within : tuple of (str, str), optional
        Module and name, as tracebacks have it, of one in Cython.

    Examples
    --------
    >>> @calls_back
    ... def call(function):
    ...     return function()
    >>> call(int)
    0
    """
    callers.add((function.__module__, function.__name__) if within is None else within)
    return function


cdef int leave_out_around(error) except -1:
    """Take the package's frames from around what a user's function raised, if one did."""
    last = None
    trace = error.__traceback__ if isinstance(error, Exception) else None
    while trace is not None:
        if library_of(trace.tb_frame) == "aclnn":
            last = trace
        trace = trace.tb_next
    if last is None:
        return 0
    frame = last.tb_frame
    if (frame.f_globals["__name__"], frame.f_code.co_name) in callers:
        error.__traceback__ = last.tb_next
    return 0


cdef class Boundary:
    """A public function in Python, whose errors end at the caller's line; see `boundary`."""

    cdef vectorcallfunc called
    cdef object function
    cdef object kind  # or a tuple of them
    cdef dict __dict__

    def __init__(self, function, kind):
        self.called = call_function
        self.function = function
        self.kind = kind
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self):
        return repr(self.function)

    def __reduce__(self):
        return self.__qualname__  # it is found where it can be imported from


cdef PyObject *call_function(PyObject *function, PyObject *const *values, size_t n_values,
                             PyObject *names) noexcept:
    cdef Boundary boundary = <Boundary>function
    cdef PyObject *result = PyObject_Vectorcall(
        <PyObject *>boundary.function, values, n_values, names)
    if result == NULL:
        error = aclnn_take_error()
        if type(error) is TypeError:
            error = explained(boundary.function, error)
        if isinstance(error, (boundary.kind, mistakes())):
            leave_out(error)
        else:
            leave_out_around(error)
        aclnn_put_error(error)
    return result


cdef object explained(function, error):
    """The error of a call with a keyword that the function does not take, with what it does take;
    any other error as it is."""
    called, found, rest = str(error).partition("() got an unexpected keyword argument '")
    if not found or called not in (function.__name__, function.__qualname__):
        return error
    try:
        return unknown_keyword(function, rest.partition("'")[0])
    except Exception:  # a function without signature: Python's own words do
        return error


cdef object unknown_keyword(function, str word):
    import inspect

    from aclnn.acl.arguments import did_you_mean
    from aclnn.acl.errors import wrong_kind

    known = []
    for name in inspect.signature(function).parameters:
        if name != "self":
            known.append(name)
    meant = did_you_mean(word, known) or f"; it takes {', '.join(known)}"
    return wrong_kind(
        f"{function.__name__}() got an unexpected keyword argument {word!r}{meant}")


def place_of_call(Boundary one not None):
    return <Py_ssize_t>(<char *>&one.called - <char *><PyObject *>one)


aclnn_call_by(Boundary, place_of_call(Boundary(leave_out, AttributeError)))


def boundary(function=None, *, kind=None):
    """Let errors of a public function in Python end at the line of its caller.

    Parameters
    ----------
    function : callable
    kind : type or tuple of types, optional
        Of the exceptions that are the caller's mistakes, besides `AclnnError`.

    Examples
    --------
    >>> @boundary
    ... def half(x):
    ...     return x / 2
    >>> half(3), half.__name__
    (1.5, 'half')
    """
    if function is None:
        return functools.partial(boundary, kind=kind)
    return Boundary(function, mistakes() if kind is None else kind)
