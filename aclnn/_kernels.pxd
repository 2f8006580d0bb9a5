"""Conversions of elements, which kernels of other modules take from `_kernels`."""

from aclnn.kernels.element cimport load_fn, store_fn


cdef load_fn load_of(int isa, str dtype, str computed) except NULL
cdef store_fn store_of(int isa, str dtype, str computed) except NULL
