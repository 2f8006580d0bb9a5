"""Dtypes, shapes and places, as functions read them that make kernels of nodes."""

from aclnn.kernels.element cimport load_fn, store_fn


cdef load_fn reader(str dtype, str computed) except NULL
cdef store_fn writer(str dtype, str computed) except NULL
cdef object size_of(tuple shape)
cdef object lines_of(tuple shape, int axis)
cdef dict places_of(tuple operands, tuple present, Py_ssize_t count)
