"""Access to the memory of Python objects through the buffer and array interfaces."""

from cpython.buffer cimport (
    PyBUF_FULL_RO,
    PyBuffer_IsContiguous,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.type cimport PyType_IsSubtype

import re
import sys

import numpy as np

from aclnn.acl import _dlpack
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError, NoMemoryError

cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)


cdef class Storage:
    """Memory of a buffer object, held as long as a tensor looks at it."""

    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, value):
        PyObject_GetBuffer(value, &self.view, PyBUF_FULL_RO)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


def memory_of(data, name):
    """Memory of an object: its owner, address, length, and whether it is writable.

    A buffer's length is that from its first byte to the end of its last element, gaps included; no
    element may lie before the first. Raises `NoMemoryError` for what has no memory to show.
    """
    cdef Storage held
    if isinstance(data, Unreadable):
        raise NoMemoryError(data.no_memory())
    if issubclass(type(data), np.ndarray):  # `__class__` may tell anything
        refuse_mask(data, name)
        # By its own header, whatever attributes a subclass defines; the view keeps what it is of,
        # but that may be less than all of `data`.
        array, keep = np.asarray(data), data
    else:
        try:
            held = Storage(data)
        except Exception:  # no buffer, or whatever its __buffer__ raises
            array = foreign_array(data, name)
        else:
            refuse_objects(held.view.format != NULL and mentions_objects(held.view.format), name)
            if PyBuffer_IsContiguous(&held.view, b"A"):
                return held, <size_t>held.view.buf, held.view.len, not held.view.readonly
            array = foreign_array(data, name)
        keep = array
    refuse_objects(array.dtype.hasobject, name)
    if array.size and any(step < 0 for step in array.strides):
        raise AclnnError(
            INVALID, f"{name} has negative strides: no storage begins at its first element")
    reach = sum((size - 1) * step for size, step in zip(array.shape, array.strides))
    length = reach + array.itemsize if array.size else 0
    return keep, array.ctypes.data, length, array.flags.writeable


def refuse_mask(array, name):
    """Refuse masked arrays: masked elements must not silently be taken for values."""
    if is_masked(array):
        raise AclnnError(
            INVALID, f"{name} is a masked array, and masks are not known here: give its "
            ".filled(...) or its .data")


cdef bint is_masked(object array):
    """Whether it is a masked array; asks its type alone, which runs nothing.

    No such array is there before the module that has them, which NumPy loads when it is needed.
    """
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return isinstance(masked, type) and PyType_IsSubtype(type(array), masked)


def mentions_objects(bytes format not None):
    """Whether a buffer's format has references to objects; names of fields stand between colons.

    >>> mentions_objects(b"T{O:self:}"), mentions_objects(b"T{(4)<f:Offset:}")
    (True, False)
    """
    return b"O" in re.sub(rb":[^:]*:", b"", format)


def refuse_objects(bint found, name):
    """Bytes of references to Python objects must not be written."""
    if found:
        raise AclnnError(INVALID, f"{name} holds references to Python objects")


def foreign_array(data, name):
    try:
        array = np.asarray(data) if isinstance(data, memoryview) else _dlpack.array_of(data, True)
    except Exception as error:
        raise AclnnError(INVALID, f"{name} cannot be read: {error}") from None
    if array is not None:
        return array
    raise AclnnError(
        INVALID, f"{name} is {type(data).__name__}, must be None, a buffer, an object with "
        "__array_interface__ or __dlpack__, or an address from aclrtMalloc")


cdef class Unreadable:
    """Object without memory to show, which says so to users of the buffer protocol.

    Subclasses have a method `no_memory`, which gives the exception.
    """

    def __getbuffer__(self, Py_buffer *view, int flags):
        view.obj = None
        raise self.no_memory()
