"""CPython's functions and methods in C that are called without a tuple of arguments."""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        const char *ml_name
        void *ml_meth
        int ml_flags
        const char *ml_doc
    int METH_FASTCALL
    int METH_KEYWORDS
    object PyCFunction_NewEx(PyMethodDef *definition, object self, object module)
    object PyDescr_NewMethod(PyTypeObject *kind, PyMethodDef *definition)
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t index)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items)
