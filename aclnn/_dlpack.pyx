"""DLPack both ways, bfloat16 included, which NumPy's own reader does not know.

The structures are those of the DLPack specification, version 1.
"""

cimport numpy as cnp
from cpython.pycapsule cimport (
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_New,
    PyCapsule_SetName,
)
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import ml_dtypes
import numpy as np

cnp.import_array()

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct { int32_t device_type, device_id; } DLDevice;
    typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
    typedef struct {
        void *data; DLDevice device; int32_t ndim; DLDataType dtype;
        int64_t *shape; int64_t *strides; uint64_t byte_offset;
    } DLTensor;
    typedef struct DLManagedTensor {
        DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *);
    } DLManagedTensor;
    typedef struct { uint32_t major, minor; } DLPackVersion;
    typedef struct DLManagedTensorVersioned {
        DLPackVersion version; void *manager_ctx;
        void (*deleter)(struct DLManagedTensorVersioned *);
        uint64_t flags; DLTensor dl_tensor;
    } DLManagedTensorVersioned;
    """
    ctypedef struct DLDevice:
        int32_t device_type
        int32_t device_id
    ctypedef struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct DLTensor:
        void *data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct DLManagedTensor:
        DLTensor dl_tensor
        void *manager_ctx
        void (*deleter)(DLManagedTensor *) noexcept
    ctypedef struct DLPackVersion:
        uint32_t major
        uint32_t minor
    ctypedef struct DLManagedTensorVersioned:
        DLPackVersion version
        void *manager_ctx
        void (*deleter)(DLManagedTensorVersioned *) noexcept
        uint64_t flags
        DLTensor dl_tensor

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(void *subtype, cnp.dtype descr, int nd, cnp.npy_intp *dims,
                                cnp.npy_intp *strides, void *data, int flags, PyObject *obj)

cdef enum:
    CPU = 1
    READ_ONLY = 1
    BFLOAT16 = 4

cdef const char *PLAIN = "dltensor"
cdef const char *PLAIN_USED = "used_dltensor"
cdef const char *VERSIONED = "dltensor_versioned"
cdef const char *VERSIONED_USED = "used_dltensor_versioned"

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_DTYPES = {
    (_CODES[np.dtype(name).kind], np.dtype(name).itemsize * 8): np.dtype(name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64", "complex64", "complex128", "bool")
}
_DTYPES[BFLOAT16, 16] = np.dtype(ml_dtypes.bfloat16)


cdef class Borrowed:
    """Memory of somebody else's tensor; given back when the last array on it is gone."""

    cdef DLManagedTensor *plain
    cdef DLManagedTensorVersioned *versioned

    def __dealloc__(self):
        if self.plain != NULL and self.plain.deleter != NULL:
            self.plain.deleter(self.plain)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


def from_dlpack(exporter):
    """See a tensor of another library as a NumPy array, without copying.

    Parameters
    ----------
    exporter : object
        Has ``__dlpack__``, on the CPU.

    Returns
    -------
    ndarray
        Of the same memory, dtype (ml_dtypes.bfloat16 for bfloat16) and strides; read-only where
        the exporter says so.

    Raises
    ------
    BufferError
        If the tensor is not on the CPU or of a dtype that NumPy has no counterpart for.
    """
    try:
        capsule = exporter.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = exporter.__dlpack__()
    return _take(capsule)


cdef object _take(object capsule):
    cdef Borrowed owner = Borrowed.__new__(Borrowed)
    cdef DLManagedTensor *plain
    cdef DLManagedTensorVersioned *versioned
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned *>PyCapsule_GetPointer(capsule, VERSIONED)
        if versioned.version.major > 1:
            raise BufferError(f"DLPack version {versioned.version.major} is not known")
        array = _array_on(&versioned.dl_tensor, owner, versioned.flags & READ_ONLY)
        PyCapsule_SetName(capsule, VERSIONED_USED)
        owner.versioned = versioned
        return array
    if PyCapsule_IsValid(capsule, PLAIN):
        plain = <DLManagedTensor *>PyCapsule_GetPointer(capsule, PLAIN)
        array = _array_on(&plain.dl_tensor, owner, False)
        PyCapsule_SetName(capsule, PLAIN_USED)
        owner.plain = plain
        return array
    raise BufferError(f"__dlpack__ gave {type(capsule).__name__}, no DLPack capsule that is unused")


cdef object _array_on(DLTensor *tensor, Borrowed owner, bint read_only):
    cdef cnp.npy_intp shape[64]
    cdef cnp.npy_intp strides[64]
    cdef int axis
    if tensor.device.device_type != CPU:
        raise BufferError(f"the tensor is on device type {tensor.device.device_type}, not the CPU")
    dtype = _DTYPES.get((tensor.dtype.code, tensor.dtype.bits))
    if dtype is None or tensor.dtype.lanes != 1:
        raise BufferError(
            f"dtype code {tensor.dtype.code} of {tensor.dtype.bits} bits has no NumPy counterpart")
    if not 0 <= tensor.ndim <= 64:
        raise BufferError(f"the tensor has {tensor.ndim} dimensions")
    step = dtype.itemsize
    for axis in reversed(range(tensor.ndim)):
        shape[axis] = tensor.shape[axis]
        if tensor.strides != NULL:
            strides[axis] = tensor.strides[axis] * <int64_t>dtype.itemsize
        else:
            strides[axis] = step
            step *= max(tensor.shape[axis], 1)
    Py_INCREF(dtype)  # the call takes over a reference
    array = PyArray_NewFromDescr(
        <void *>np.ndarray, dtype, tensor.ndim, shape, strides,
        <char *>tensor.data + tensor.byte_offset,
        0 if read_only else cnp.NPY_ARRAY_WRITEABLE, NULL)
    cnp.PyArray_UpdateFlags(array, cnp.NPY_ARRAY_UPDATE_ALL)
    cnp.set_array_base(array, owner)
    return array


cdef void _release(DLManagedTensor *managed) noexcept with gil:
    Py_DECREF(<object>managed.manager_ctx)
    free(managed.dl_tensor.shape)
    free(managed)


cdef void _drop_unused(object capsule) noexcept:
    cdef DLManagedTensor *managed
    if PyCapsule_IsValid(capsule, PLAIN):
        managed = <DLManagedTensor *>PyCapsule_GetPointer(capsule, PLAIN)
        managed.deleter(managed)


cdef class DLPackExporter:
    """A NumPy array that other libraries can take over, whatever its dtype.

    >>> import numpy as np
    >>> from aclnn._dlpack import from_dlpack, to_dlpack
    >>> from_dlpack(to_dlpack(np.arange(3)))
    array([0, 1, 2])
    """

    cdef object array

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef DLManagedTensor *managed
        cdef int axis, ndim = self.array.ndim
        dtype = self.array.dtype
        if dtype == ml_dtypes.bfloat16:
            code = BFLOAT16
        elif dtype.kind in _CODES and dtype.isnative:
            code = _CODES[dtype.kind]
        else:
            raise BufferError(f"dtype {dtype} has no DLPack counterpart")
        managed = <DLManagedTensor *>malloc(sizeof(DLManagedTensor))
        if managed == NULL:
            raise MemoryError
        managed.dl_tensor.shape = <int64_t *>malloc((2 * ndim + 1) * sizeof(int64_t))
        if managed.dl_tensor.shape == NULL:
            free(managed)
            raise MemoryError
        managed.dl_tensor.strides = managed.dl_tensor.shape + ndim
        for axis in range(ndim):
            managed.dl_tensor.shape[axis] = self.array.shape[axis]
            managed.dl_tensor.strides[axis] = self.array.strides[axis] // dtype.itemsize
        managed.dl_tensor.data = cnp.PyArray_DATA(self.array)
        managed.dl_tensor.device = DLDevice(CPU, 0)
        managed.dl_tensor.ndim = ndim
        managed.dl_tensor.dtype = DLDataType(code, dtype.itemsize * 8, 1)
        managed.dl_tensor.byte_offset = 0
        Py_INCREF(self.array)
        managed.manager_ctx = <void *>self.array
        managed.deleter = _release
        return PyCapsule_New(managed, PLAIN, <void (*)(object) noexcept>_drop_unused)


def to_dlpack(array):
    """Something with ``__dlpack__`` that hands over `array` without copying."""
    return DLPackExporter(array)
