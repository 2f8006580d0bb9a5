"""NumPy arrays as operands: their descriptions, and allocation of outputs."""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t

from aclnn.acl._buffer cimport is_masked
from aclnn.acl._tensor_spec cimport ABSENT, FORMAT_ND, MAX_DIMS, operand_t, same_layout, spec_at
from aclnn.compiler._compiled_call cimport CompiledCall
from aclnn.compiler._settings cimport settings_word
from aclnn.execution._tensors cimport is_tensor, new_tensor, read_tensor

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import invalid
from aclnn.execution.array_specs import ArraySpec

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    bint PyArray_ISBEHAVED_RO(cnp.ndarray array)

cdef object _BFLOAT16 = dtypes.NUMPY[aclDataType.ACL_BF16]
cdef int BFLOAT16_NUMBER = _BFLOAT16.num
cdef enum:
    ACL_BF16 = 27
    NO_DTYPE = -1
    FEW_ARRAYS = 16
    WORDS = 2 + 2 * MAX_DIMS  # of the key of an array, at most

# CANN's number for each of NumPy's own type numbers.
cdef int[32] ACL_NUMBER
ACL_NUMBER[:] = [NO_DTYPE] * 32
for _acl, _kind in dtypes.NUMPY.items():
    if _kind.num < 32:
        ACL_NUMBER[_kind.num] = _acl
ACL_NUMBER[np.dtype("longlong").num] = aclDataType.ACL_INT64
ACL_NUMBER[np.dtype("ulonglong").num] = aclDataType.ACL_UINT64
cdef dict _DTYPE_OF = {int(acl): kind for acl, kind in dtypes.NUMPY.items()}


cdef object dtype_of(int acl):
    """NumPy's dtype for CANN's number."""
    return _DTYPE_OF[acl]


cdef int acl_number(object array) noexcept:
    cdef int number = cnp.PyArray_TYPE(array)
    if number == BFLOAT16_NUMBER:
        return ACL_BF16
    return ACL_NUMBER[number] if 0 <= number < 32 else NO_DTYPE


cdef bint read_array(object value, operand_t *operand) noexcept:
    """Take an array's header; False for what is none or has memory that kernels cannot read."""
    cdef int axis
    cdef cnp.npy_intp size, stride
    cdef cnp.ndarray array
    if not cnp.PyArray_CheckExact(value) and not is_unmasked_subclass(value):
        return False
    array = <cnp.ndarray>value
    operand.dtype = acl_number(array)
    operand.ndim = cnp.PyArray_NDIM(array)
    if operand.dtype == NO_DTYPE or operand.ndim > MAX_DIMS:
        return False
    if not PyArray_ISBEHAVED_RO(array):
        return False
    size = cnp.PyArray_ITEMSIZE(array)
    operand.data = <char *>cnp.PyArray_DATA(array)
    operand.format = FORMAT_ND
    operand.writable = cnp.PyArray_ISWRITEABLE(array)
    for axis in range(operand.ndim):
        stride = cnp.PyArray_STRIDE(array, axis)
        if stride != size:
            if stride % size:
                return False
            stride //= size
        else:
            stride = 1
        operand.shape[axis] = cnp.PyArray_DIM(array, axis)
        operand.strides[axis] = stride
    return True


cdef bint is_unmasked_subclass(object value) noexcept:
    return cnp.PyArray_Check(value) and not is_masked(value)


def reads(array):
    """Whether kernels can work on the array's own memory."""
    cdef operand_t operand
    return read_array(array, &operand)


@cython.final
@cython.freelist(8)
cdef class Headers:
    """Descriptions of arrays, which are read once for each call.

    Attributes
    ----------
    key : bytes
        That a plan is found by: descriptions, which arrays are the same memory, and what the
        process is set to.
    arrays : sequence of array
        Kept alive with their memory.
    """

    def __dealloc__(self):
        PyMem_Free(self.operands)

    def specs(self):
        """The descriptions in Python, without memory."""
        cdef Py_ssize_t index
        found = []
        for index in range(self.count):
            found.append(spec_at(&self.operands[index], NULL, None))
        return found

    cdef bytes packed(self):
        """The key."""
        cdef int64_t few[FEW_ARRAYS * WORDS + 1]
        cdef bytes room
        if self.count <= FEW_ARRAYS:
            return PyBytes_FromStringAndSize(
                <char *>few, self.write_key(few) * <Py_ssize_t>sizeof(int64_t))
        room = PyBytes_FromStringAndSize(
            NULL, (self.count * WORDS + 1) * <Py_ssize_t>sizeof(int64_t))
        return room[:self.write_key(<int64_t *>PyBytes_AS_STRING(room)) * sizeof(int64_t)]

    cdef Py_ssize_t write_key(self, int64_t *key) noexcept:
        """Write the key; gives how many words it takes."""
        cdef Py_ssize_t n = 1, index, other
        cdef int axis
        cdef const operand_t *one
        key[0] = settings_word()
        for index in range(self.count):
            one = &self.operands[index]
            key[n] = one.dtype | <int64_t>one.ndim << 8 | <int64_t>one.writable << 16
            n += 1
            for axis in range(one.ndim):
                key[n], key[n + 1] = one.shape[axis], one.strides[axis]
                n += 2
            for other in range(index):
                if self.operands[other].data == one.data and fits(&self.operands[other], one):
                    key[n] = -1 - other
                    n += 1
                    break
        return n


cdef Headers new_headers(object arrays, Py_ssize_t count):
    """Room for the descriptions of so many arrays."""
    cdef Headers made = Headers.__new__(Headers)
    made.operands = <operand_t *>PyMem_Malloc(max(1, count) * sizeof(operand_t))
    if made.operands == NULL:
        raise MemoryError
    made.arrays, made.count = arrays, count
    return made


def read_headers(arrays not None, bint plain=False):
    """Descriptions of arrays.

    Parameters
    ----------
    arrays : sequence of array
    plain : bool
        Whether to give None where one is no NumPy array that kernels can read, instead of refusing.

    Examples
    --------
    >>> a, b = np.zeros(2), np.zeros(2)
    >>> read_headers([a, b]).key == read_headers([b, a]).key
    True
    >>> read_headers([a, b]).key == read_headers([a, a]).key
    False
    >>> read_headers([a, 1.0], plain=True)
    """
    cdef Headers made = new_headers(arrays, len(arrays))
    cdef int index
    for index, array in enumerate(arrays):
        if plain and not cnp.PyArray_CheckExact(array):
            if not read_tensor(array, &made.operands[index]):
                return None
            made.has_tensors = True
        elif not read_array(array, &made.operands[index]):
            if plain:
                return None
            read_or_refuse(f"argument {index}", array, &made.operands[index])
    made.key = made.packed()
    return made


def call_key(tuple args not None, dict named not None):
    """The key of a call with arrays, floats, and perhaps another object in the first place.

    Returns
    -------
    tuple or None
        Key, headers of the arrays, floats, and the object or None; None for any other call.

    Examples
    --------
    >>> key, headers, floats, first = call_key(("self", np.zeros(2), 1.5), {})
    >>> len(headers.arrays), floats, first
    (1, [1.5], 'self')
    >>> call_key((np.zeros(2), "text"), {})
    """
    cdef list arrays = [], floats = []
    cdef object first = None
    cdef int64_t kinds = 1
    cdef Py_ssize_t index
    if len(args) + len(named) > 40:
        return None
    for index, one in enumerate(args + tuple(named.values()) if named else args):
        kinds <<= 1
        if type(one) is float:
            kinds |= 1
            floats.append(one)
        elif index == 0 and args and not cnp.PyArray_CheckExact(one) and not is_tensor(one):
            first = one
        else:
            arrays.append(one)
    headers = read_headers(arrays, True)
    if headers is None:
        return None
    key = id(first), kinds, headers.key, tuple(named) if named else None
    return key, headers, floats, first


cdef int read_or_refuse(object name, object array, operand_t *operand) except -1:
    """Take the header of an array that an executor is to be bound to."""
    if not read_array(array, operand):
        raise invalid(
            f"{name} is an array of dtype {array.dtype} with {array.ndim} dimensions and strides "
            f"{array.strides}; executors need a native, aligned array of a known dtype with at "
            f"most {MAX_DIMS} dimensions")
    return 0


cdef bint fits(const operand_t *found, const operand_t *planned) noexcept:
    """Whether the description is the planned one."""
    return found.dtype == planned.dtype and same_layout(found, planned)


def describe(array):
    """
    >>> describe(np.zeros((2, 3), np.float16))
    'float16[2, 3] with strides (3, 1)'
    """
    strides = tuple(stride // max(1, array.itemsize) for stride in array.strides)
    return f"{array.dtype}{list(array.shape)} with strides {strides}"


cdef object words_of(const operand_t *operand):
    """Words of `describe` for an array with this description."""
    cdef int axis
    shape, strides = [], []
    for axis in range(operand.ndim):
        shape.append(operand.shape[axis])
        strides.append(operand.strides[axis])
    return f"{_DTYPE_OF[operand.dtype]}{shape} with strides {tuple(strides)}"


cdef object spec_of(const operand_t *operand):
    """Shape, strides in bytes and dtype of an operand."""
    cdef int axis
    kind = _DTYPE_OF[operand.dtype]
    shape, strides = [], []
    for axis in range(operand.ndim):
        shape.append(operand.shape[axis])
        strides.append(operand.strides[axis] * kind.itemsize)
    return ArraySpec(tuple(shape), tuple(strides), kind)


cdef void describe_output(CompiledCall plan, int number, operand_t *operand) noexcept:
    """Take the description of a result that runs make; it is absent where options leave it out."""
    operand[0] = plan.operands[plan.n_inputs + number]
    operand.format, operand.writable, operand.data = FORMAT_ND, True, NULL


cdef object new_output(CompiledCall plan, int number, operand_t *operand, bint as_tensor):
    """An array, or a tensor, for one of a plan's results, whose description the operand gets; None
    for one that the options leave out."""
    cdef operand_t *planned = &plan.operands[plan.n_inputs + number]
    describe_output(plan, number, operand)
    if planned.ndim == ABSENT:
        return None
    if as_tensor:
        return new_tensor(operand)
    if planned.dtype == ACL_BF16:
        out = np.empty(plan.out_shapes[number], _BFLOAT16)
    else:
        out = cnp.PyArray_EMPTY(planned.ndim, <cnp.npy_intp *>planned.shape,
                                (<object>_DTYPE_OF[planned.dtype]).num, 0)
    operand.data = <char *>cnp.PyArray_DATA(out)
    return out
