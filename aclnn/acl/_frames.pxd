"""Errors on their way to the caller."""

from cpython.object cimport PyObject

# A function in C as CPython calls it: NULL with an exception set, or a new reference.
ctypedef PyObject *(*fastcall_t)(PyObject *self, PyObject *const *values, Py_ssize_t n_values,
                                 PyObject *names) noexcept

cdef object take_error()
cdef void put_error(object error) noexcept
cdef void strip_error() noexcept
