"""The description of a tensor: dtype, shape, strides and memory.

Readers of arguments fill an `operand_t`; the plan cache, plans and runs compare and copy it.
`TensorSpec` is the same description in Python, for rules, recordings and captures.
"""

cimport cython
from libc.stdint cimport int64_t

from math import prod

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType

# Bytes per element by CANN's number, for code without the interpreter's lock.
ITEM_SIZES[:] = [0] * 64
ITEM_BITS[:] = [0] * 64
for _dtype in aclDataType:
    if _dtype >= 0:
        ITEM_SIZES[<int>_dtype] = dtypes.item_size(_dtype)
        ITEM_BITS[<int>_dtype] = dtypes.item_bits(_dtype)
cdef dict DTYPES = {int(dtype): dtype for dtype in aclDataType}


@cython.final
cdef class TensorSpec:
    """Description of a tensor.

    Parameters
    ----------
    dtype : aclDataType
    shape, strides : tuple of int
        In elements.
    format : int
        CANN's number.
    writable : bool
    address : int
        Of the first element; 0 for a description without memory.
    owner : object
        What keeps the memory; descriptions compare without it.

    Examples
    --------
    >>> spec = TensorSpec(aclDataType.ACL_FLOAT, (2, 3), (3, 1))
    >>> spec.size, spec.itemsize, spec.changed(shape=(6,), strides=(1,))
    (6, 4, TensorSpec(dtype=<aclDataType.ACL_FLOAT: 0>, shape=(6,), strides=(1,)))
    """

    def __init__(self, dtype not None, tuple shape not None, tuple strides not None, int format=2,
                 bint writable=True, size_t address=0, owner=None):
        self.dtype, self.shape, self.strides, self.owner = dtype, shape, strides, owner
        self.operand.dtype, self.operand.format = dtype, format
        self.operand.writable, self.operand.data = writable, <char *>address
        try:
            put_layout(&self.operand, shape, strides)
        except OverflowError:  # a rule says so of what a call would make
            self.operand.ndim = UNDESCRIBED

    @property
    def format(self):
        """CANN's number of the memory's format."""
        return self.operand.format

    @property
    def writable(self):
        """Whether the memory may be written."""
        return bool(self.operand.writable)

    @property
    def address(self):
        """Address of the first element; 0 where there is no memory."""
        return <size_t>self.operand.data

    @property
    def size(self):
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self):
        """Bytes of an element."""
        return item_size(self.operand.dtype)

    @property
    def nbytes(self):
        """Bytes of the elements, without gaps."""
        return bytes_of(self.operand.dtype, prod(self.shape))

    @property
    def pair_axis(self):
        """The axis along which two elements of four bits share a byte, None where there is none.

        That is the last one whose elements are adjacent, an even number of them, while all others
        lie in bytes of their own.
        """
        cdef int axis, other
        if ITEM_BITS[self.operand.dtype] != 4 or self.operand.ndim < 0:
            return None
        for axis in range(self.operand.ndim - 1, -1, -1):
            if self.operand.strides[axis] != 1 or self.operand.shape[axis] % 2:
                continue
            for other in range(self.operand.ndim):
                if (other != axis and self.operand.shape[other] > 1
                        and self.operand.strides[other] % 2):
                    break
            else:
                return axis
        return None

    def in_bytes(self):
        """The same memory as elements of full bytes: of four bits, pairs of them as UINT8.

        None where elements begin inside a byte.

        >>> TensorSpec(aclDataType.ACL_INT4, (3, 8), (8, 1)).in_bytes()
        TensorSpec(dtype=<aclDataType.ACL_UINT8: 4>, shape=(3, 4), strides=(4, 1))
        """
        if ITEM_BITS[self.operand.dtype] % 8 == 0:
            return self
        axis = self.pair_axis
        if axis is None:
            return None
        shape, strides = [], []
        for index in range(len(self.shape)):
            shape.append(self.shape[index] // (2 if index == axis else 1))
            strides.append(1 if index == axis else self.strides[index] // 2)
        return self.changed(aclDataType.ACL_UINT8, tuple(shape), tuple(strides))

    @property
    def low(self):
        """Address of the lowest byte that an element has."""
        cdef int64_t low, high
        extent(&self.operand, &low, &high)
        return <Py_ssize_t>(self.operand.data + low)

    @property
    def high(self):
        """Address behind the highest byte that an element has."""
        cdef int64_t low, high
        extent(&self.operand, &low, &high)
        return <Py_ssize_t>(self.operand.data + high)

    @property
    def is_empty(self):
        """Whether there is no element."""
        return 0 in self.shape

    @property
    def fills(self):
        """Whether it has every byte of its extent, where no two elements share any."""
        return self.nbytes == self.high - self.low

    def same_place(self, TensorSpec other not None):
        """Whether element by element both lie at the same addresses."""
        return self.operand.data == other.operand.data and same_layout(
            &self.operand, &other.operand)

    def has(self, TensorSpec other not None):
        """Whether writing this leaves nothing of the other."""
        if self.fills and self.low <= other.low and other.high <= self.high:
            return True
        return self.same_place(other)

    def overlap(self, TensorSpec out not None):
        """The overlap of an input with an output: one of `DISJOINT`, `IDENTICAL` and `PARTIAL`."""
        cdef int64_t low, high
        if out.operand.data == NULL or 0 in self.shape or 0 in out.shape:
            return <int>DISJOINT
        extent(&out.operand, &low, &high)
        return <int>overlap(&self.operand, &out.operand, low, high)

    def changed(self, dtype=None, tuple shape=None, tuple strides=None, format=None):
        """The description with another dtype, shape, strides or format."""
        return TensorSpec(
            self.dtype if dtype is None else dtype, self.shape if shape is None else shape,
            self.strides if strides is None else strides,
            self.operand.format if format is None else format,
            self.operand.writable, <size_t>self.operand.data, self.owner)

    def without_memory(self):
        """The description alone, without address and owner."""
        return TensorSpec(self.dtype, self.shape, self.strides, self.operand.format,
                          self.operand.writable)

    def __eq__(self, other):
        cdef TensorSpec one
        if type(other) is not TensorSpec:
            return NotImplemented
        one = other
        return (self.dtype == one.dtype and self.shape == one.shape
                and self.strides == one.strides
                and self.operand.format == one.operand.format
                and self.operand.writable == one.operand.writable
                and self.operand.data == one.operand.data)

    def __hash__(self):
        return hash((self.dtype, self.shape, self.strides, <size_t>self.operand.data))

    def __repr__(self):
        rest = "" if self.operand.format == FORMAT_ND else f", format={self.operand.format}"
        rest += "" if self.operand.writable else ", writable=False"
        rest += f", address={<size_t>self.operand.data:#x}" if self.operand.data != NULL else ""
        return (f"TensorSpec(dtype={self.dtype!r}, shape={self.shape}, "
                f"strides={self.strides}{rest})")

    def __reduce__(self):
        return TensorSpec, (self.dtype, self.shape, self.strides, self.format, self.writable)


cdef int put_layout(operand_t *operand, tuple shape, tuple strides) except -1:
    """Take shape and strides, which rules may leave out."""
    cdef int axis
    if len(shape) > MAX_DIMS or len(strides) != len(shape):
        operand.ndim = UNDESCRIBED
        return 0
    operand.ndim = <int>len(shape)
    for axis in range(operand.ndim):
        operand.shape[axis], operand.strides[axis] = shape[axis], strides[axis]
    return 0


cdef object spec_at(const operand_t *operand, char *address, object owner):
    """The description of an operand in Python, of memory at an address; None for what is absent."""
    cdef TensorSpec made
    cdef int axis
    if operand.ndim == ABSENT:
        return None
    shape, strides = [], []
    for axis in range(operand.ndim):
        shape.append(operand.shape[axis])
        strides.append(operand.strides[axis])
    made = TensorSpec.__new__(TensorSpec)
    made.operand = operand[0]
    made.operand.data = address
    made.dtype, made.owner = DTYPES[operand.dtype], owner
    made.shape, made.strides = tuple(shape), tuple(strides)
    return made
