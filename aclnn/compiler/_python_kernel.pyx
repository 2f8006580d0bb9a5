"""Kernels that are Python functions: steps of a plan that take the interpreter's lock."""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stddef cimport ptrdiff_t

cimport numpy as cnp

from graph.runtime.abi cimport array_view, call_context, call_kernel

from aclnn.acl._frames import calls_back
from aclnn.compiler._compiled_call import note_failure

cnp.import_array()

cdef enum:
    FAILED = 1
    MOST_DIMS = 32

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject *kind, cnp.dtype descr, int nd,
                                const cnp.npy_intp *dims, const cnp.npy_intp *strides, void *data,
                                int flags, PyObject *given)
    int NPY_ARRAY_WRITEABLE


cdef class PythonKernel:
    """A function as the kernel of an opaque node: called with views of its operands.

    What it raises ends the run, whose caller gets it.

    Parameters
    ----------
    function : callable
        Called as ``function(*inputs, out=output)``.
    dtypes : sequence of numpy.dtype
        Of the inputs, then the output.
    name : str

    Attributes
    ----------
    fn, state : int
        Addresses of a `call_kernel` and of what it is called with.
    itemsizes : tuple of int
        Bytes of an element of each operand.
    """

    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly object function
    cdef tuple dtypes

    def __cinit__(self, function not None, dtypes not None, str name not None):
        self.function, self.dtypes, self.name = function, tuple(dtypes), name
        sizes = []
        for one in self.dtypes:
            sizes.append(one.itemsize)
        self.itemsizes = tuple(sizes)

    @property
    def fn(self):
        return <size_t><call_kernel>call_function

    @property
    def state(self):
        return <size_t><void *>self

    cdef int call(self, const array_view *views) except -1:
        cdef int k, last = len(self.dtypes) - 1
        operands = []
        for k in range(last):
            operands.append(array_of(&views[k], self.dtypes[k], False))
        self.function(*operands, out=array_of(&views[last], self.dtypes[last], True))
        return 0


calls_back(within=(__name__, f"{__name__}.PythonKernel.call"))


cdef object array_of(const array_view *view, cnp.dtype kind, bint writable):
    """The memory of an operand as an array."""
    Py_INCREF(kind)  # which the array takes
    return PyArray_NewFromDescr(
        <PyTypeObject *>cnp.ndarray, kind, view.ndim, <const cnp.npy_intp *>view.shape,
        <const cnp.npy_intp *>view.strides, view.data, NPY_ARRAY_WRITEABLE if writable else 0, NULL)


cdef int call_function(const array_view *views, const void *state, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    with gil:
        try:
            (<PythonKernel>state).call(views)
            return 0
        except BaseException as error:
            note_failure(error)
            return FAILED
