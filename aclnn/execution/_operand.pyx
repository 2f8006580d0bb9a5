"""NumPy arrays as operands: their headers as plans know them, and new arrays for outputs."""

cimport numpy as cnp

from aclnn.acl._buffer cimport is_masked
from aclnn.compiler._compiled_call cimport ABSENT, MAX_DIMS, CompiledCall, operand_t, same_layout

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import invalid

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    bint PyArray_ISBEHAVED_RO(cnp.ndarray array)

cdef object _BFLOAT16 = dtypes.NUMPY[aclDataType.ACL_BF16]
cdef int BFLOAT16_NUMBER = _BFLOAT16.num
cdef enum:
    ACL_BF16 = 27
    NO_DTYPE = -1

# CANN's number for each of NumPy's own type numbers.
cdef int[32] ACL_NUMBER
ACL_NUMBER[:] = [NO_DTYPE] * 32
for _acl, _kind in dtypes.NUMPY.items():
    if _kind.num < 32:
        ACL_NUMBER[_kind.num] = _acl
ACL_NUMBER[np.dtype("longlong").num] = aclDataType.ACL_INT64
ACL_NUMBER[np.dtype("ulonglong").num] = aclDataType.ACL_UINT64
cdef dict _DTYPE_OF = {int(acl): kind for acl, kind in dtypes.NUMPY.items()}


cdef int acl_number(object array) noexcept:
    cdef int number = cnp.PyArray_TYPE(array)
    if number == BFLOAT16_NUMBER:
        return ACL_BF16
    return ACL_NUMBER[number] if 0 <= number < 32 else NO_DTYPE


cdef bint read_array(object given, operand_t *operand) noexcept:
    """Take an array's header; False for what is none or has memory that kernels cannot read."""
    cdef int axis
    cdef cnp.npy_intp size, stride
    cdef cnp.ndarray array
    if not cnp.PyArray_CheckExact(given) and not is_unmasked_subclass(given):
        return False
    array = <cnp.ndarray>given
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


cdef bint is_unmasked_subclass(object given) noexcept:
    return cnp.PyArray_Check(given) and not is_masked(given)


def reads(array):
    """Whether kernels can work on the array's own memory."""
    cdef operand_t operand
    return read_array(array, &operand)


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


cdef object new_output(CompiledCall plan, int number, operand_t *operand):
    """An array for one of a plan's results, whose description the operand gets; None for one that
    the options leave out."""
    cdef operand_t *planned = &plan.operands[plan.n_inputs + number]
    operand[0] = planned[0]
    if planned.ndim == ABSENT:
        return None
    operand.format, operand.writable = FORMAT_ND, True
    if planned.dtype == ACL_BF16:
        out = np.empty(plan.out_shapes[number], _BFLOAT16)
    else:
        out = cnp.PyArray_EMPTY(planned.ndim, <cnp.npy_intp *>planned.shape,
                                (<object>_DTYPE_OF[planned.dtype]).num, 0)
    operand.data = <char *>cnp.PyArray_DATA(out)
    return out
