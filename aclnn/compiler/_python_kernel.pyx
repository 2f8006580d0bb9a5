"""Kernels that are Python functions: steps of a plan that take the interpreter's lock."""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stddef cimport ptrdiff_t

cimport numpy as cnp

import ctypes

import numpy as np

from aclnn.graph.runtime.kernel_abi cimport array_view, call_context, call_kernel

from aclnn.acl._frames import calls_back
from aclnn.compiler._compiled_call import note_failure
from aclnn.graph.runtime.kernel import Kernel

cnp.import_array()

cdef enum:
    FAILED = 1
    MOST_DIMS = 32

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject *kind, cnp.dtype descr, int nd,
                                const cnp.npy_intp *dims, const cnp.npy_intp *strides, void *data,
                                int flags, PyObject *given)
    int NPY_ARRAY_WRITEABLE


# How builds of OpenBLAS name their functions: wheels have a prefix, 64-bit integers a suffix.
PREFIXES = ("scipy_openblas_", "openblas_")
SUFFIXES = ("", "64_", "_64", "_64_")


cdef class BlasThreads:
    """Number of threads of NumPy's BLAS, which functions that are steps may call.

    OpenBLAS has one number for the process: while steps run that may use fewer threads, it is the
    least of theirs, then again what it was. MKL has a number for each thread. Any other BLAS goes
    by its own environment variables. No code of Python's runs in here: nothing comes in between.
    """

    cdef int (*number)() noexcept nogil
    cdef void (*set_number)(int) noexcept nogil
    cdef int (*set_for_thread)(int) noexcept nogil  # gives what it was, 0 for the process's
    cdef list bound            # by steps that run
    cdef int own, now          # what it was before, and what it is while there are any

    def __cinit__(self, library not None):
        self.bound = []
        for prefix in PREFIXES:
            for suffix in SUFFIXES:
                get = address_of(library, f"{prefix}get_num_threads{suffix}")
                put = address_of(library, f"{prefix}set_num_threads{suffix}")
                if get and put:
                    self.number = <int (*)() noexcept nogil><size_t>get
                    self.set_number = <void (*)(int) noexcept nogil><size_t>put
                    return
        get = address_of(library, "MKL_Get_Max_Threads")
        put = address_of(library, "MKL_Set_Num_Threads_Local")
        if get and put:
            self.number = <int (*)() noexcept nogil><size_t>get
            self.set_for_thread = <int (*)(int) noexcept nogil><size_t>put

    cdef int bind(self, int threads) except -1:
        """Use at most so many threads from now on; what `release` takes."""
        if self.number == NULL:
            return 0
        if self.set_for_thread != NULL:
            return self.set_for_thread(min(threads, self.number()))
        if not self.bound:
            self.own = self.now = self.number()
        self.bound.append(threads)
        self.set_least()
        return threads

    cdef int release(self, int bound) except -1:
        if self.number == NULL:
            return 0
        if self.set_for_thread != NULL:
            self.set_for_thread(bound)
            return 0
        self.bound.remove(bound)
        if self.number() == self.now:  # what somebody else has set meanwhile stays
            self.set_least()
        return 0

    cdef int set_least(self) except -1:
        cdef int least = self.own
        for one in self.bound:
            least = min(least, <int>one)
        if least != self.now:
            self.set_number(least)
            self.now = least
        return 0


cdef object address_of(library, str name):
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value


# The library is loaded: symbols are those of what it links to, too.
cdef BlasThreads numpy_blas = BlasThreads(ctypes.CDLL(np.linalg._umath_linalg.__file__))


cdef class Step:
    """A function, and the dtypes of its operands."""

    cdef object function
    cdef tuple dtypes

    cdef int call(self, const array_view *views, int threads) except -1:
        cdef int bound, k, last = len(self.dtypes) - 1
        operands = []
        for k in range(last):
            operands.append(array_of(&views[k], self.dtypes[k], False))
        out = array_of(&views[last], self.dtypes[last], True)
        bound = numpy_blas.bind(threads)
        try:
            self.function(*operands, out=out)
        finally:
            numpy_blas.release(bound)
        return 0


calls_back(within=(__name__, f"{__name__}.Step.call"))


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
            (<Step>state).call(views, context.threads)
            return 0
        except BaseException as error:
            note_failure(error)
            return FAILED


def python_kernel(function not None, dtypes not None, str name not None):
    """A function as the kernel of an opaque node: called with views of its operands.

    What it raises ends the run, whose caller gets it. NumPy's BLAS uses no more threads meanwhile
    than the run may.

    Parameters
    ----------
    function : callable
        Called as ``function(*inputs, out=output)``.
    dtypes : sequence of numpy.dtype
        Of the inputs, then the output.
    name : str

    Returns
    -------
    Kernel
        Its cost is not known, and taken for long; its `form` is the function.
    """
    cdef Step step = Step.__new__(Step)
    step.function, step.dtypes = function, tuple(dtypes)
    sizes = []
    for one in step.dtypes:
        sizes.append(one.itemsize)
    return Kernel(
        fn=<size_t><call_kernel>call_function,
        state=<size_t><void *>step,
        name=name,
        itemsizes=tuple(sizes),
        cost=float("inf"),
        owner=step,
        form=function,
    )
