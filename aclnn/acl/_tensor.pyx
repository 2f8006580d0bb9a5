"""aclTensor and aclScalar: descriptions of memory that they do not own."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t

from aclnn.acl._tensor_spec cimport bytes_of
from aclnn.acl.numbers cimport numbers_of
from aclnn.acl.objects cimport (
    ACLNN_MOST_ELEMENTS,
    ACLNN_SCALAR,
    ACLNN_TENSOR,
    aclnn_copy_tensor,
    aclnn_describe_anew,
    aclnn_elements_declared,
    aclnn_elements_needed,
    aclnn_fits_memory,
    aclnn_fits_storage,
    aclnn_hold,
    aclnn_new_tensor,
    aclnn_release,
    aclnn_row_major,
)

import math
import operator
from decimal import Decimal
from numbers import Real

import numpy as np

from aclnn.acl import _runtime, dtypes, errors, memory
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

cdef extern from "scalars.h" nogil:
    const char *ACLNN_RUNTIME_TABLE_NAME
    ctypedef struct runtime_t "aclnn_runtime_table":
        void (*drop_memory)(void *block) noexcept nogil
    bint aclnn_read_scalar(c_scalar *scalar, int dtype, const void *value)

cdef const runtime_t *runtime = <const runtime_t *>PyCapsule_GetPointer(
    _runtime.table, ACLNN_RUNTIME_TABLE_NAME)
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
        if self.c != NULL:
            aclnn_release(self.c, runtime.drop_memory)

    def __repr__(self):
        if self.destroyed:
            return "<aclTensor, destroyed>"
        return (f"<aclTensor {dtypes.name(self.dtype)}{list(self.dims())}, strides "
                f"{self.steps()}, offset {self.offset}>")

    @property
    def dtype(self):
        """CANN's number of the elements' type."""
        return self.c.dtype

    @property
    def format(self):
        """CANN's number of the format."""
        return self.c.format

    @property
    def ndim(self):
        """Number of dimensions."""
        return self.c.ndim

    @property
    def offset(self):
        """The first element, counted from the start of the storage."""
        return self.c.offset

    @property
    def writable(self):
        """Whether the memory may be written."""
        return bool(self.c.writable)

    @property
    def storage_shape(self):
        """Shape of the storage, which reaches as far as the view.

        Programs in C declare less of memory that is long enough.
        """
        cdef int64_t needed = aclnn_elements_needed(self.c)
        if self.c.storage != NULL and aclnn_elements_declared(self.c) < needed:
            return (needed,)
        return numbers_of(self.c.storage_shape, self.c.storage_ndim)

    def dims(self):
        """The view's shape.

        Returns
        -------
        tuple of int
        """
        return numbers_of(self.c.shape, self.c.ndim)

    def steps(self):
        """The view's strides.

        Returns
        -------
        tuple of int
            In elements, one for each dimension.
        """
        return numbers_of(self.c.strides, self.c.ndim)

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
        cdef aclTensor other = holder(aclnn_copy_tensor(self.c))
        other.attach(data, "addr")
        return other

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclTensor", self.destroyed)
        if self.device:
            raise wrong_kind("a tensor of device memory cannot be pickled: copy it to the host by "
                             "aclrtMemcpy, and pickle a tensor of the copy")
        data = None
        if self.c.storage != NULL:
            data = PyBytes_FromStringAndSize(self.c.storage, self.bytes_needed())
        return tensor_of_bytes, (
            self.dims(), self.dtype, self.steps(), self.offset, self.format, self.storage_shape,
            data, self.writable)

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
        self.owner, self.device = owner, device
        self.c.storage, self.c.writable = address, writable
        return 0

    cdef int follow(self) except -1:
        """Have the owner be that of the memory which a program in C has given the tensor."""
        if not self.is_foreign or self.owned == self.c.storage:
            return 0
        _before = self.owner  # its destructor may run anything: it goes when the rest is there
        self.owned = self.c.storage
        self.owner = memory.owner_of(<size_t>self.owned) if self.owned != NULL else None
        self.device = self.owner is not None
        return 0

    cdef void let_go(self):
        """Destroyed, it keeps no memory alive; runs that go on keep what they need themselves."""
        _before = self.owner  # its destructor may run anything: it goes when the rest is done
        self.destroyed = True
        self.owner, self.c.storage, self.device = None, NULL, False

    cdef int refuse_reach(self) except -1:
        """Refuse a view that reaches further than any memory, or than the declared storage."""
        if not aclnn_fits_memory(self.c):
            raise AclnnError(
                INVALID,
                f"viewDims {self.dims()} with stride {self.steps()} exceed any memory")
        if not aclnn_fits_storage(self.c):
            raise AclnnError(
                INVALID, f"the view reaches element {aclnn_elements_needed(self.c) - 1}, but the "
                f"storage of shape {self.storage_shape} has {aclnn_elements_declared(self.c)} "
                f"elements (viewDims {self.dims()}, stride {self.steps()}, offset {self.offset})")
        return 0

    def bytes_needed(self):
        """The bytes that the view needs of its storage.

        Returns
        -------
        int
            Bytes from the start of the storage to the end of the last element; 0 for an empty view.
        """
        return bytes_of(self.c.dtype, aclnn_elements_needed(self.c))


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


cdef aclTensor holder(c_tensor *made):
    """The object of a description that nothing else holds; NULL where memory was short."""
    cdef aclTensor tensor
    if made == NULL:
        raise MemoryError
    tensor = aclTensor.__new__(aclTensor, _OURS)
    tensor.c = made
    return tensor


cdef aclTensor make_tensor(object viewDims, object dataType, object stride, object offset,
                           object format, object storageDims, object tensorData):
    cdef aclTensor made
    cdef c_tensor *c
    dims = sizes("viewDims", viewDims)
    dtype = as_member("dataType", dataType, aclDataType)
    layout = as_member("format", format, aclFormat)
    storage_dims = sizes("storageDims", storageDims)
    strides = None if stride is None else sizes("stride", stride)
    if strides is not None and len(strides) != len(dims):
        raise AclnnError(
            INVALID, f"stride has {len(strides)} entries, but viewDims has {len(dims)}")
    start = whole("offset", offset)
    made = holder(aclnn_new_tensor(len(dims), len(storage_dims)))
    c = made.c
    c.dtype, c.format, c.offset = dtype, layout, start
    put_numbers(c.shape, dims)
    put_numbers(c.storage_shape, storage_dims)
    if strides is None:
        aclnn_row_major(c.shape, c.ndim, c.strides)
    else:
        put_numbers(c.strides, strides)
    made.refuse_reach()
    made.attach(tensorData)
    return made


cdef int put_numbers(int64_t *position, tuple numbers) except -1:
    cdef Py_ssize_t index
    for index in range(len(numbers)):
        position[index] = numbers[index]
    return 0


def refuse_description(viewDims, dataType, stride, offset, format, storageDims, tensorData):
    """Raise `AclnnError` for what cannot describe a tensor."""
    make_tensor(viewDims, dataType, stride, offset, format, storageDims, tensorData)


cdef aclTensor tensor_of(c_tensor *value):
    """A tensor of a program in C, which it stays; a destroyed one for what is no tensor any more.

    Its memory is the runtime's, or the program's own, and reaches far enough, whatever storage was
    declared.
    """
    cdef aclTensor found
    if value.magic != ACLNN_TENSOR:
        found = make_tensor((), aclDataType.ACL_FLOAT, (), 0, aclFormat.ACL_FORMAT_ND, (), None)
        found.destroyed = True
        return found
    return held_tensor(value)


cdef aclTensor held_tensor(c_tensor *value):
    """A tensor that an executor holds, whether or not its program in C has destroyed it."""
    cdef aclTensor found = holder(value)
    aclnn_hold(value)
    found.is_foreign = True
    found.follow()
    return found


cdef aclTensor tensor_elsewhere(const c_tensor *value, char *storage):
    """A view like that of a program in C, of memory at another address."""
    cdef aclTensor made = holder(aclnn_copy_tensor(value))
    made.c.storage, made.is_foreign = storage, True
    made.follow()
    return made


def sizes(name, value):
    """A tuple of ints that are not negative, from any sequence of ints."""
    if isinstance(value, (str, bytes)):
        raise AclnnError(INVALID, f"{name} is {shown(value)}, must be a sequence of ints")
    try:
        entries = tuple(value)
    except Exception:
        kind = "null" if value is None else type(value).__name__
        raise AclnnError(NULLPTR if value is None else INVALID,
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
    if not 0 <= found <= ACLNN_MOST_ELEMENTS:
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
    _before = old.owner
    if aclnn_describe_anew(old.c, new.c):
        return errors.fail(INNER, "aclInitTensor: memory is short")
    old.owner, old.device = new.owner, new.device
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
    return (<size_t>(<aclTensor>tensor).c.storage if status == OK else 0), status


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

    @property
    def dtype(self):
        """CANN's number of the number's type."""
        return self.c.dtype

    @property
    def value(self):
        """As it is stored: a bool, an int, a float or a complex number."""
        if not self.c.is_real:
            return complex(self.c.exact, self.c.imaginary)
        if self.c.is_whole:
            return bool(self.c.whole) if self.c.dtype == aclDataType.ACL_BOOL else self.c.whole
        if self.c.dtype == aclDataType.ACL_UINT64:
            return (<const uint64_t *>self.c.bytes)[0]
        return self.c.exact

    @property
    def is_real(self):
        """Whether the type is no complex one."""
        return bool(self.c.is_real)

    @property
    def as_float(self):
        """The nearest float32 of a real number."""
        return self.c.rounded

    @property
    def as_double(self):
        """The nearest float64 of a real number."""
        return self.c.exact if self.c.is_real else 0.0

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
    cdef bytes stored
    try:
        dtype = aclDataType(as_member("dataType", dataType, aclDataType))
        stored = np.asarray(stored_value(value, dtype), dtypes.NUMPY[dtype]).tobytes()
    except (AclnnError, ArithmeticError, TypeError, ValueError) as error:
        errors.fail(getattr(error, "status", INVALID), f"aclCreateScalar: {error}")
        return None
    except Exception:  # whatever its __float__ raises
        errors.fail(INVALID, f"aclCreateScalar: value is {shown(value)}, must be a number")
        return None
    aclnn_read_scalar(&made.c, dtype, PyBytes_AS_STRING(stored))
    return made


cdef aclScalar scalar_of(const c_scalar *value):
    """A scalar like that of a program in C; a destroyed one for what is no scalar any more."""
    cdef aclScalar made = aclScalar.__new__(aclScalar, _OURS)
    if value.magic == ACLNN_SCALAR:
        made.c = value[0]
    made.destroyed = value.magic != ACLNN_SCALAR
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
