"""DLPack import and export, including bfloat16, which NumPy lacks.

The structures are those of the DLPack specification, version 1.
"""

cimport numpy as cnp
from cpython.pycapsule cimport (
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_SetName,
)
from cpython.ref cimport Py_INCREF, PyObject
from libc.stdint cimport int64_t

from aclnn.acl.dlpack_abi cimport DLManagedTensor, DLManagedTensorVersioned, DLTensor
from aclnn.acl.numbers cimport numbers_of

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType

cnp.import_array()

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
_BFLOAT16 = dtypes.NUMPY[aclDataType.ACL_BF16]
_DTYPES = {
    (BFLOAT16 if kind == _BFLOAT16 else _CODES[kind.kind], kind.itemsize * 8): kind
    for kind in dtypes.NUMPY.values()
}
MOST_BYTES = 2**62  # of a tensor


cdef class Borrowed:
    """Memory of somebody else's tensor; given back when the last array on it is gone."""

    cdef DLManagedTensor *plain
    cdef DLManagedTensorVersioned *versioned

    def __dealloc__(self):
        if self.plain != NULL and self.plain.deleter != NULL:
            self.plain.deleter(self.plain)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


def from_dlpack(exporter, bint any_dtype=False):
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
    if getattr(exporter, "is_neg", bool)():
        raise BufferError("its values are those in memory negated, which DLPack cannot say; "
                          "use resolve_neg()")
    try:
        capsule = exporter.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = exporter.__dlpack__()
    can_say = PyCapsule_IsValid(capsule, VERSIONED)
    array = _take(capsule, any_dtype)
    if not can_say and _numpy_may_not_write(exporter):
        array.flags.writeable = False
    return array


def array_of(exporter, bint any_dtype=False):
    """View the memory of an object as an array, by DLPack or NumPy's interface, without copying.

    Returns
    -------
    ndarray or None
        None if `exporter` has neither. What the last one raises is raised.
    """
    cdef bint numpy_too = hasattr(exporter, "__array_interface__")
    if hasattr(exporter, "__dlpack__"):
        try:
            return from_dlpack(exporter, any_dtype)
        except Exception:  # whatever it raises
            if not numpy_too:
                raise
    return np.asarray(exporter) if numpy_too else None


cdef bint _numpy_may_not_write(exporter):
    """Whether NumPy may only read it (JAX's arrays): capsules without a version cannot say so."""
    try:
        return hasattr(exporter, "__array__") and not np.asarray(exporter).flags.writeable
    except Exception:  # whatever its __array__ raises
        return False


cdef object _take(object capsule, bint any_dtype):
    cdef Borrowed owner = Borrowed.__new__(Borrowed)
    cdef DLManagedTensor *plain
    cdef DLManagedTensorVersioned *versioned
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned *>PyCapsule_GetPointer(capsule, VERSIONED)
        if versioned.version.major > 1:
            raise BufferError(f"DLPack version {versioned.version.major} is not known")
        array = _array_on(&versioned.dl_tensor, owner, versioned.flags & READ_ONLY, any_dtype)
        PyCapsule_SetName(capsule, VERSIONED_USED)
        owner.versioned = versioned
        return array
    if PyCapsule_IsValid(capsule, PLAIN):
        plain = <DLManagedTensor *>PyCapsule_GetPointer(capsule, PLAIN)
        array = _array_on(&plain.dl_tensor, owner, False, any_dtype)
        PyCapsule_SetName(capsule, PLAIN_USED)
        owner.plain = plain
        return array
    raise BufferError(f"__dlpack__ gave {type(capsule).__name__}, no DLPack capsule that is unused")


cdef object _array_on(DLTensor *tensor, Borrowed owner, bint read_only, bint any_dtype):
    cdef cnp.npy_intp shape[64]
    cdef cnp.npy_intp strides[64]
    cdef int axis
    if tensor.device.device_type != CPU:
        raise BufferError(f"the tensor is on device type {tensor.device.device_type}, not the CPU")
    dtype = _DTYPES.get((tensor.dtype.code, tensor.dtype.bits))
    if dtype is None and any_dtype and tensor.dtype.bits and tensor.dtype.bits % 8 == 0:
        dtype = np.dtype(f"V{tensor.dtype.bits // 8}")
    if dtype is None or tensor.dtype.lanes != 1:
        raise BufferError(
            f"dtype code {tensor.dtype.code} of {tensor.dtype.bits} bits has no NumPy counterpart")
    if not 0 <= tensor.ndim <= 64 or (tensor.ndim and tensor.shape == NULL):
        raise BufferError(f"the tensor has {tensor.ndim} dimensions or no shape")
    count = 1
    for axis in range(tensor.ndim):
        count *= <object>tensor.shape[axis]
    if count * dtype.itemsize > MOST_BYTES:
        raise BufferError("the tensor is larger than any memory")
    if tensor.data == NULL or count == 0:
        if count != 0:
            raise BufferError("the tensor has elements, but no data")
        return np.empty(numbers_of(tensor.shape, tensor.ndim), dtype)
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


cdef class DLPackExporter:
    """A NumPy array that other libraries can take over, whatever its dtype.

    >>> import numpy as np
    >>> from aclnn.acl._dlpack import from_dlpack, to_dlpack
    >>> from_dlpack(to_dlpack(np.arange(3)))
    array([0, 1, 2])
    """

    cdef cnp.ndarray array

    def __init__(self, cnp.ndarray array not None):
        self.array = array

    def __dlpack_device__(self):
        return (CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef object array = self.array
        if stream is not None:
            raise BufferError("stream must be None for memory of the CPU")
        if _dtype_code(array.dtype) is None:
            raise BufferError(f"dtype {array.dtype} has no DLPack counterpart")
        known = array.view(np.uint16) if array.dtype == _BFLOAT16 else array
        capsule = known.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
        if known is not array:
            _tensor_of(capsule).dtype.code = BFLOAT16
        return capsule


cdef object _dtype_code(dtype):
    if dtype == _BFLOAT16:
        return BFLOAT16
    code = _CODES.get(dtype.kind)
    known = dtype.isnative and (code, dtype.itemsize * 8) in _DTYPES
    return code if known else None


cdef DLTensor *_tensor_of(object capsule) except NULL:
    if PyCapsule_IsValid(capsule, VERSIONED):
        return &(<DLManagedTensorVersioned *>PyCapsule_GetPointer(capsule, VERSIONED)).dl_tensor
    return &(<DLManagedTensor *>PyCapsule_GetPointer(capsule, PLAIN)).dl_tensor


def to_dlpack(array):
    """Something with ``__dlpack__`` that hands over `array` without copying."""
    return DLPackExporter(array)
