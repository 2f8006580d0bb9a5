"""aclTensor and aclScalar: descriptions of memory that they do not own."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from aclnn.acl.numbers cimport numbers_of

import math
import operator
from decimal import Decimal
from numbers import Real

import numpy as np

from aclnn.acl import dtypes, errors, memory
from aclnn.acl._buffer import memory_of
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, as_member, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
    aclDataType,
    aclFormat,
)
from aclnn.acl.errors import AclnnError, wrong_kind
from aclnn.acl.rounding import as_double, nearest_bfloat16, nearest_float16, nearest_float32

cdef int OK = 0
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)
MOST_ELEMENTS = 2**62  # of a tensor, and what sizes, strides and offsets may be


# What only this module has: tensors and scalars are made by its functions, and by nothing else.
cdef object _OURS = object()


@cython.final
cdef class aclTensor:
    """A view of memory with CANN's shape, strides, offset, dtype and format.

    Created by `aclCreateTensor`. Strides and offset count elements. A tensor keeps its memory
    alive, but does not own it. Pickles hold the storage's bytes as far as the view reaches, so that
    tensors of one array have separate memory afterwards; device memory cannot be pickled.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> tensor
    <aclTensor float32[2, 3], strides (1, 2), offset 4>
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("tensors are made by aclCreateTensor()")

    def __dealloc__(self):
        free(self.shape)

    def __repr__(self):
        if self.destroyed:
            return "<aclTensor, destroyed>"
        return (f"<aclTensor {dtypes.name(self.dtype)}{list(self.dims())}, strides "
                f"{self.steps()}, offset {self.offset}>")

    def dims(self):
        """The view's shape.

        Returns
        -------
        tuple of int
        """
        return numbers_of(self.shape, self.ndim)

    def steps(self):
        """The view's strides.

        Returns
        -------
        tuple of int
            In elements, one for each dimension.
        """
        return numbers_of(self.strides, self.ndim)

    @boundary
    def with_data(self, data):
        """The same view of other memory.

        Parameters
        ----------
        data : buffer, int or None
            Anything that `aclCreateTensor` takes as `tensorData`.

        Returns
        -------
        aclTensor
            A new tensor; this one does not change.

        Raises
        ------
        AclnnError
            With status ACLNN_ERR_PARAM_INVALID (161002), if the view does not fit the memory.
        """
        cdef aclTensor other = make_tensor(self.dims(), self.dtype, self.steps(), self.offset,
                                           self.format, self.storage_shape, None)
        other.attach(data, "addr")
        other.version = self.version
        return other

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclTensor", self.destroyed)
        if self.device:
            raise wrong_kind("a tensor of device memory cannot be pickled: copy it to the host by "
                             "aclrtMemcpy, and pickle a tensor of the copy")
        data = None
        if self.storage != NULL:
            data = PyBytes_FromStringAndSize(self.storage, self.bytes_needed())
        return tensor_of_bytes, (
            self.dims(), self.dtype, self.steps(), self.offset, self.format, self.storage_shape,
            data, bool(self.writable))

    cdef int attach(self, object data, str name="tensorData") except -1:
        """Point at memory; what is wrong with it is said before anything changes."""
        cdef char *address = NULL
        cdef int64_t nbytes = 0
        cdef bint writable = False, device = False
        owner = None
        needed = self.bytes_needed()
        number = as_int(data)
        if number is not None:
            owner = memory.resolve(number, needed, name)
            address = <char *><size_t>number
            nbytes, writable, device = needed, True, True
        elif data is not None:
            owner, start, nbytes, writable = memory_of(data, name)
            address = <char *><size_t>start
        if data is not None and nbytes < needed:
            raise AclnnError(
                INVALID, f"{name} has {nbytes} bytes, but the view of shape {self.dims()}, "
                f"strides {self.steps()} and offset {self.offset} in {dtypes.name(self.dtype)} "
                f"reaches {needed} bytes")
        _before = self.owner  # its destructor may run anything: it goes when the rest is there
        self.owner, self.storage = owner, address
        self.writable, self.device = writable, device
        return 0

    cdef int reshape(self, const int64_t *shape, int ndim) except -1:
        """Take the shape that a run has found, of elements without gaps; no new description.

        A dimension that is the only one keeps its stride.
        """
        cdef int64_t *made
        cdef int64_t step = self.strides[0] if ndim == 1 and self.ndim == 1 else 1
        cdef int axis
        made = <int64_t *>malloc(2 * max(1, ndim) * sizeof(int64_t))
        if made == NULL:
            raise MemoryError
        for axis in range(ndim - 1, -1, -1):
            made[axis] = shape[axis]
            made[ndim + axis] = step
            step *= shape[axis]
        free(self.shape)
        self.shape, self.strides, self.ndim = made, made + ndim, ndim
        if self.reshaped is not None:
            self.reshaped(self.dims())
        return 0

    cdef void let_go(self):
        """Destroyed, it keeps no memory alive; runs that go on keep what they need themselves."""
        _before = self.owner  # its destructor may run anything: it goes when the rest is done
        self.destroyed = True
        self.owner, self.storage, self.device = None, NULL, False

    def bytes_needed(self):
        """The bytes that the view needs of its storage.

        Returns
        -------
        int
            Bytes from the start of the storage to the end of the last element; 0 for an empty view.
        """
        elements = elements_needed(self.dims(), self.steps(), self.offset)
        return dtypes.storage_size(self.dtype, elements)


def tensor_of_bytes(dims, dtype, strides, offset, format, storage_shape, data, writable):
    """A tensor that was pickled, whose memory is its own.

    Parameters
    ----------
    dims, dtype, strides, offset, format, storage_shape
        As `aclCreateTensor` takes them.
    data : bytes or None
        The storage as far as the view reaches.
    writable : bool
    """
    owned = bytearray(data) if writable and data is not None else data
    return make_tensor(dims, dtype, strides, offset, format, storage_shape, owned)


def refuse_destroyed(str kind not None, bint destroyed):
    """Refuse to pickle what was destroyed."""
    if destroyed:
        raise wrong_kind(f"an {kind} that was destroyed cannot be pickled")


def elements_needed(dims, strides, offset):
    """Elements from the start of the storage to the last of the view; 0 for an empty one.

    >>> elements_needed((2, 3), (3, 1), 4), elements_needed((0, 3), (3, 1), 4)
    (10, 0)
    """
    if any(size == 0 for size in dims):
        return 0
    return offset + sum((size - 1) * step for size, step in zip(dims, strides)) + 1


cdef aclTensor make_tensor(object viewDims, object dataType, object stride, object offset,
                           object format, object storageDims, object tensorData):
    cdef aclTensor made
    cdef int axis
    dims = sizes("viewDims", viewDims)
    dtype = as_member("dataType", dataType, aclDataType)
    layout = as_member("format", format, aclFormat)
    storage_dims = sizes("storageDims", storageDims)
    strides = row_major(dims) if stride is None else sizes("stride", stride)
    if len(strides) != len(dims):
        raise AclnnError(
            INVALID, f"stride has {len(strides)} entries, but viewDims has {len(dims)}")
    start = whole("offset", offset)
    room = 1
    for size in storage_dims:
        room = min(room * size, MOST_ELEMENTS + 1)
    needed = elements_needed(dims, strides, start)
    if needed * 16 > MOST_ELEMENTS:
        raise AclnnError(INVALID, f"viewDims {dims} with stride {strides} exceed any memory")
    if needed > room:
        raise AclnnError(
            INVALID, f"the view reaches element {needed - 1}, but the storage of shape "
            f"{storage_dims} has {room} elements (viewDims {dims}, stride {strides}, "
            f"offset {start})")
    made = aclTensor.__new__(aclTensor, _OURS)
    made.dtype, made.format, made.ndim = dtype, layout, len(dims)
    made.offset, made.storage_shape = start, storage_dims
    made.shape = <int64_t *>malloc(max(1, 2 * made.ndim) * sizeof(int64_t))
    if made.shape == NULL:
        raise MemoryError
    made.strides = made.shape + made.ndim
    for axis in range(made.ndim):
        made.shape[axis] = dims[axis]
        made.strides[axis] = strides[axis]
    made.attach(tensorData)
    return made


def refuse_description(viewDims, dataType, stride, offset, format, storageDims, tensorData):
    """Raise `AclnnError` for what cannot describe a tensor."""
    make_tensor(viewDims, dataType, stride, offset, format, storageDims, tensorData)


cdef aclTensor tensor_at(object dims, int dtype, object strides, int64_t offset, int format,
                         object storage_dims, char *address):
    """A tensor of a program in C: its memory is the runtime's, or the program's own, and reaches
    far enough, whatever storage was declared."""
    cdef aclTensor made
    needed = elements_needed(dims, strides, offset)
    if address != NULL and math.prod(storage_dims) < needed:
        storage_dims = (needed,)
    made = make_tensor(dims, dtype, strides, offset, format, storage_dims, None)
    made.owner = memory.owner_of(<size_t>address) if address != NULL else None
    made.storage, made.writable, made.device = address, True, made.owner is not None
    return made


def row_major(dims):
    """
    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(dims):
        strides.append(step)
        step = min(step * max(size, 1), MOST_ELEMENTS)
    return tuple(reversed(strides))


def sizes(name, given):
    """A tuple of ints that are not negative, from any sequence of ints."""
    if isinstance(given, (str, bytes)):
        raise AclnnError(INVALID, f"{name} is {shown(given)}, must be a sequence of ints")
    try:
        entries = tuple(given)
    except Exception:
        kind = "null" if given is None else type(given).__name__
        raise AclnnError(NULLPTR if given is None else INVALID,
                         f"{name} is {kind}, must be a sequence of ints") from None
    found = []
    for index, entry in enumerate(entries):
        found.append(whole(f"{name}[{index}]", entry))
    return tuple(found)


def whole(name, value):
    try:
        if isinstance(value, bool):
            raise TypeError
        found = int.__int__(operator.index(value))
    except Exception:
        raise AclnnError(INVALID, f"{name} is {shown(value)}, must be an int") from None
    if not 0 <= found <= MOST_ELEMENTS:
        raise AclnnError(INVALID, f"{name} is {shown(found)}, must not be negative nor above 2^62")
    return found


def aclCreateTensor(viewDims, dataType, stride, offset, format, storageDims, tensorData):
    """Describe memory as a tensor.

    Parameters
    ----------
    viewDims : sequence of int
        The view's shape; empty for one element.
    dataType : aclDataType
        The type of an element; any member.
    stride : sequence of int or None
        Strides in elements, not negative; None for row-major.
    offset : int
        The first element, counted from the start of the storage.
    format : aclFormat
        Any member; a private format is treated as its plain storage.
    storageDims : sequence of int
        Shape of the storage.
    tensorData : buffer, int or None
        A buffer or anything with ``__array_interface__`` or ``__dlpack__``, whose bytes are the
        storage; an address from `aclrtMalloc`; or None, for a tensor without data as yet.

    Returns
    -------
    aclTensor or None
        None, with a message, for a view that reaches outside its storage or the memory given, for
        negative numbers, for strides and sizes of unequal number, for addresses that are not
        live, and for arguments of other kinds.

    Examples
    --------
    >>> import numpy as np, aclnn
    >>> x = np.zeros((2, 3), np.float32)
    >>> aclnn.aclCreateTensor((2, 3), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (2, 3), x)
    <aclTensor float32[2, 3], strides (3, 1), offset 0>
    >>> aclnn.aclCreateTensor((9,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (6,), x) is None
    True
    """
    try:
        return make_tensor(viewDims, dataType, stride, offset, format, storageDims, tensorData)
    except (AclnnError, MemoryError) as error:
        errors.fail(getattr(error, "status", INNER), f"aclCreateTensor: {error}")
        return None


def aclInitTensor(tensor, viewDims, dataType, stride, offset, format, storageDims, tensorData):
    """Change a tensor's description. Executors that were planned for the old one refuse to run.

    Parameters
    ----------
    tensor : aclTensor
        Unchanged on failure.
    viewDims, dataType, stride, offset, format, storageDims, tensorData
        As for `aclCreateTensor`.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor and for a description that
        `aclCreateTensor` would refuse; ACLNN_ERR_INNER (561000) if memory ran out.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclInitTensor(
    ...     tensor, (4,), aclnn.ACL_DOUBLE, None, 0, aclnn.ACL_FORMAT_ND, (4,), None)
    0
    >>> tensor
    <aclTensor float64[4], strides (1,), offset 0>
    """
    cdef aclTensor old, new
    if (status := refuse_tensor("aclInitTensor", tensor)) != OK:
        return status
    old = <aclTensor>tensor
    try:
        new = make_tensor(viewDims, dataType, stride, offset, format, storageDims, tensorData)
    except (AclnnError, MemoryError) as error:
        status = INNER if isinstance(error, MemoryError) else INVALID
        return errors.fail(status, f"aclInitTensor: {error}")
    # What was there is let go of at the end, when all is as it will be: destructors run anything.
    _before = old.owner, old.storage_shape
    old.version += 1  # executors that planned for what it was find out
    old.shape, new.shape = new.shape, old.shape
    old.strides = new.strides
    old.dtype, old.format, old.ndim, old.offset = new.dtype, new.format, new.ndim, new.offset
    old.storage_shape, old.storage = new.storage_shape, new.storage
    old.owner, old.writable, old.device = new.owner, new.writable, new.device
    return OK


cdef int refuse_tensor(str function, object tensor) except -1:
    if tensor is None:
        return errors.fail(NULLPTR, f"{function}: tensor is null")
    if not isinstance(tensor, aclTensor):
        return errors.fail(
            INVALID, f"{function}: tensor is {type(tensor).__name__}, must be an aclTensor")
    if (<aclTensor>tensor).destroyed:
        return errors.fail(NULLPTR, f"{function}: tensor is destroyed")
    return OK


def aclDestroyTensor(tensor):
    """Destroy a tensor and release its memory.

    Parameters
    ----------
    tensor : aclTensor or None
        None, a null pointer, succeeds. Runs that are queued keep the tensor's memory.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a tensor that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclDestroyTensor(tensor), aclnn.aclDestroyTensor(None)
    (0, 0)
    """
    if tensor is None:
        return OK
    if (status := refuse_tensor("aclDestroyTensor", tensor)) != OK:
        return status
    (<aclTensor>tensor).let_go()
    return OK


def aclGetViewShape(tensor):
    """Get the shape of a tensor's view.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    dims : list of int or None
        A size for each dimension; None on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetViewShape(tensor)
    ([2, 3], 0)
    """
    status = refuse_tensor("aclGetViewShape", tensor)
    return (list((<aclTensor>tensor).dims()) if status == OK else None), status


def aclGetStorageShape(tensor):
    """Get the shape of a tensor's storage.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    dims : list of int or None
        `storageDims` as it was given; None on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetStorageShape(tensor)
    ([20], 0)
    """
    status = refuse_tensor("aclGetStorageShape", tensor)
    return (list((<aclTensor>tensor).storage_shape) if status == OK else None), status


def aclGetViewStrides(tensor):
    """Get the strides of a tensor's view.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    strides : list of int or None
        In elements, one for each dimension; None on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetViewStrides(tensor)
    ([1, 2], 0)
    """
    status = refuse_tensor("aclGetViewStrides", tensor)
    return (list((<aclTensor>tensor).steps()) if status == OK else None), status


def aclGetViewOffset(tensor):
    """Get the offset of a tensor's view in its storage.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    offset : int
        In elements from the start of the storage; 0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetViewOffset(tensor)
    (4, 0)
    """
    status = refuse_tensor("aclGetViewOffset", tensor)
    return ((<aclTensor>tensor).offset if status == OK else 0), status


def aclGetFormat(tensor):
    """Get a tensor's format.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    format : aclFormat or None
        As it was given; None on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetFormat(tensor)
    (<aclFormat.ACL_FORMAT_ND: 2>, 0)
    """
    status = refuse_tensor("aclGetFormat", tensor)
    return (aclFormat((<aclTensor>tensor).format) if status == OK else None), status


def aclGetDataType(tensor):
    """Get a tensor's dtype.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    dataType : aclDataType or None
        As it was given; None on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetDataType(tensor)
    (<aclDataType.ACL_FLOAT: 0>, 0)
    """
    status = refuse_tensor("aclGetDataType", tensor)
    return (aclDataType((<aclTensor>tensor).dtype) if status == OK else None), status


def aclGetRawTensorAddr(tensor):
    """Get the address of a tensor's storage.

    Parameters
    ----------
    tensor : aclTensor

    Returns
    -------
    address : int
        Of the storage's first byte; 0 for a tensor without data, and on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2, 3), aclnn.ACL_FLOAT, (1, 2), 4, aclnn.ACL_FORMAT_ND, (20,), None)
    >>> aclnn.aclGetRawTensorAddr(tensor)
    (0, 0)
    """
    status = refuse_tensor("aclGetRawTensorAddr", tensor)
    return (<size_t>(<aclTensor>tensor).storage if status == OK else 0), status


def aclSetRawTensorAddr(tensor, addr):
    """Make a tensor a view of other memory.

    Parameters
    ----------
    tensor : aclTensor
        On failure it keeps its memory.
    addr : buffer, int or None
        Anything that `aclCreateTensor` takes as `tensorData`; None leaves it without data.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed tensor;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a tensor and for memory that the view does
        not fit; ACLNN_ERR_INNER (561000) if memory ran out.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> x = np.zeros(4, np.float32)
    >>> tensor = aclnn.aclCreateTensor(
    ...     (4,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (4,), None)
    >>> aclnn.aclSetRawTensorAddr(tensor, x)
    0
    >>> aclnn.aclGetRawTensorAddr(tensor) == (x.ctypes.data, 0)
    True
    """
    if (status := refuse_tensor("aclSetRawTensorAddr", tensor)) != OK:
        return status
    try:
        (<aclTensor>tensor).attach(addr, "addr")
    except (AclnnError, MemoryError) as error:
        return errors.fail(getattr(error, "status", INNER), f"aclSetRawTensorAddr: {error}")
    return OK


_INTEGER_RANGES = {
    aclDataType.ACL_INT8: (-(2**7), 2**7 - 1), aclDataType.ACL_INT16: (-(2**15), 2**15 - 1),
    aclDataType.ACL_INT32: (-(2**31), 2**31 - 1), aclDataType.ACL_INT64: (-(2**63), 2**63 - 1),
    aclDataType.ACL_UINT8: (0, 2**8 - 1), aclDataType.ACL_UINT16: (0, 2**16 - 1),
    aclDataType.ACL_UINT32: (0, 2**32 - 1), aclDataType.ACL_UINT64: (0, 2**64 - 1),
}


@cython.final
cdef class aclScalar:
    """A number of one of CANN's types; created by `aclCreateScalar`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)
    2.0 (float32)
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:
            raise TypeError("scalars are made by aclCreateScalar()")

    def __repr__(self):
        if self.destroyed:
            return "<aclScalar, destroyed>"
        return f"{self.value} ({dtypes.name(self.dtype)})"

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclScalar", self.destroyed)
        return aclCreateScalar, (self.value, self.dtype)


def aclCreateScalar(value, dataType):
    """Store a number in one of CANN's types.

    Parameters
    ----------
    value : number
        Of any kind: bool, int, float, complex, a NumPy scalar, a fraction, a decimal.
    dataType : aclDataType
        FLOAT, FLOAT16, BF16, DOUBLE, an integer type, BOOL, COMPLEX64 or COMPLEX128.

    Returns
    -------
    aclScalar or None
        None, with a message, for any other type and for a value that it cannot hold.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateScalar(0.01, aclnn.ACL_FLOAT16)
    0.01000213623046875 (float16)
    """
    cdef aclScalar made = aclScalar.__new__(aclScalar, _OURS)
    try:
        made.dtype = as_member("dataType", dataType, aclDataType)
        stored = stored_value(value, aclDataType(made.dtype))
    except (AclnnError, ArithmeticError, TypeError, ValueError) as error:
        errors.fail(getattr(error, "status", INVALID), f"aclCreateScalar: {error}")
        return None
    except Exception:  # whatever its __float__ raises
        errors.fail(INVALID, f"aclCreateScalar: value is {shown(value)}, must be a number")
        return None
    made.value = stored
    made.is_real = not isinstance(stored, complex)
    if made.is_real:
        made.as_double = stored
        made.as_float = nearest_float32(stored)
        made.is_whole = isinstance(stored, int) and -(2**63) <= stored < 2**63
        made.as_whole = stored if made.is_whole else 0
    return made


def stored_value(value, dtype):
    """`value` as a Python number that `dtype` holds exactly."""
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = None if value is np.ma.masked else value.item()
    if not isinstance(value, (Real, Decimal, complex)):
        raise AclnnError(
            NULLPTR if value is None else INVALID,
            f"value is {'null' if value is None else shown(value)}, must be a number")
    if dtype in (aclDataType.ACL_COMPLEX64, aclDataType.ACL_COMPLEX128):
        return stored_complex(value, dtype)
    if isinstance(value, complex):
        raise AclnnError(
            INVALID, f"value is {shown(value)}, which {dtypes.name(dtype)} cannot hold")
    if dtype == aclDataType.ACL_BOOL:
        return bool(value)
    if dtype in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[dtype]
        if not (math.isfinite(as_double(value)) and low <= int(value) <= high):
            raise AclnnError(
                INVALID, f"value is {shown(value)}, {dtypes.name(dtype)} holds {low} to {high}")
        return int(value)
    if dtype == aclDataType.ACL_DOUBLE:
        return as_double(value)
    if dtype == aclDataType.ACL_FLOAT:
        return nearest_float32(value)
    if dtype == aclDataType.ACL_FLOAT16:
        return nearest_float16(value)
    if dtype == aclDataType.ACL_BF16:
        return nearest_bfloat16(value)
    raise AclnnError(INVALID, f"dataType is {dtype.name}, which no scalar can have")


def stored_complex(value, dtype):
    wide = value if isinstance(value, complex) else complex(as_double(value))
    if dtype == aclDataType.ACL_COMPLEX128:
        return wide
    real = value if not isinstance(value, complex) else wide.real
    return complex(nearest_float32(real), nearest_float32(wide.imag))


def aclDestroyScalar(scalar):
    """Destroy a scalar.

    Parameters
    ----------
    scalar : aclScalar or None
        None, a null pointer, succeeds. Executors keep the values of their scalars.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a scalar that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but a scalar.

    Examples
    --------
    >>> import aclnn
    >>> scalar = aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)
    >>> aclnn.aclDestroyScalar(scalar), aclnn.aclDestroyScalar(None)
    (0, 0)
    """
    if scalar is None:
        return OK
    if not isinstance(scalar, aclScalar):
        return errors.fail(
            INVALID, f"aclDestroyScalar: scalar is {type(scalar).__name__}, must be an aclScalar")
    if (<aclScalar>scalar).destroyed:
        return errors.fail(NULLPTR, "aclDestroyScalar: scalar is destroyed")
    (<aclScalar>scalar).destroyed = True
    return OK
