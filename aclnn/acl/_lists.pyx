"""Arrays of numbers and lists of tensors and scalars, as parameters of C-shaped functions."""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from aclnn.acl import errors
from aclnn.acl._tensor cimport aclScalar, aclTensor
from aclnn.acl._frames import boundary
from aclnn.acl._tensor import refuse_destroyed
from aclnn.acl.arguments import as_int, as_kind, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
)
from aclnn.acl.errors import AclnnError
from aclnn.acl.rounding import nearest_float32

cdef int OK = 0
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)

# What only this module has: its objects are made by its functions, and by nothing else.
cdef object _OURS = object()


# --- What is given --------------------------------------------------------------------------------

cdef tuple entries_of(str name, object given):
    """Entries of any sequence."""
    if given is None:
        raise AclnnError(NULLPTR, f"{name} is null, must be a sequence")
    if isinstance(given, (str, bytes, bytearray)):
        raise AclnnError(INVALID, f"{name} is {shown(given)}, must be a sequence")
    try:
        return tuple(given)
    except Exception:
        raise AclnnError(
            INVALID, f"{name} is {type(given).__name__}, must be a sequence") from None


def whole_number(name, value):
    """
    >>> whole_number("value[0]", 7)
    7
    """
    number = as_int(value)
    if number is None:
        raise AclnnError(INVALID, f"{name} is {shown(value)}, must be an int")
    if not -(2**63) <= number < 2**63:
        raise AclnnError(INVALID, f"{name} is {shown(number)}, INT64 holds -2^63 to 2^63 - 1")
    return number


def real_number(name, value):
    """
    >>> real_number("value[0]", 0.1) == 0.1
    False
    """
    try:
        as_kind("float", value)
        return nearest_float32(value)
    except Exception:  # whatever its __float__ raises
        raise AclnnError(INVALID, f"{name} is {shown(value)}, must be a number") from None


def truth(name, value):
    """
    >>> truth("value[0]", 1)
    True
    """
    try:
        return as_kind("bool", value)
    except Exception:
        raise AclnnError(INVALID, f"{name} is {shown(value)}, must be a bool") from None


cdef object not_destroyed(str name, object item, type kind, bint destroyed):
    if item is None:
        raise AclnnError(NULLPTR, f"{name} is null, must be an {kind.__name__}")
    if destroyed:
        raise AclnnError(NULLPTR, f"{name} is destroyed, must be an {kind.__name__} in use")
    return item


cdef object tensor_item(str name, object item):
    if item is not None and not isinstance(item, aclTensor):
        raise AclnnError(INVALID, f"{name} is {type(item).__name__}, must be an aclTensor")
    return not_destroyed(name, item, aclTensor, item is not None and (<aclTensor>item).destroyed)


cdef object scalar_item(str name, object item):
    if item is not None and not isinstance(item, aclScalar):
        raise AclnnError(INVALID, f"{name} is {type(item).__name__}, must be an aclScalar")
    return not_destroyed(name, item, aclScalar, item is not None and (<aclScalar>item).destroyed)


cdef object refused(str function, object error):
    """None, and the message of why nothing was made."""
    errors.fail(getattr(error, "status", INNER), f"{function}: {error}")
    return None


cdef int refuse(str function, str name, object given, type kind, bint destroyed) except -1:
    """The status of an object that cannot be used; 0 for one that can."""
    if given is None:
        return errors.fail(NULLPTR, f"{function}: {name} is null")
    if not isinstance(given, kind):
        return errors.fail(
            INVALID, f"{function}: {name} is {type(given).__name__}, must be an {kind.__name__}")
    if destroyed:
        return errors.fail(NULLPTR, f"{function}: {name} is destroyed")
    return OK


cdef str listed(str kind, bint destroyed, object values):
    return f"<{kind}, destroyed>" if destroyed else f"<{kind} {list(values)}>"


cdef void *room(Py_ssize_t size, size_t itemsize) except NULL:
    cdef void *memory = malloc(max(size, 1) * itemsize)
    if memory == NULL:
        raise MemoryError
    return memory


# --- Arrays of ints -------------------------------------------------------------------------------

@cython.final
cdef class aclIntArray:
    """An array of 64-bit integers; created by `aclCreateIntArray`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateIntArray([2, -1])
    <aclIntArray [2, -1]>
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("arrays of ints are made by aclCreateIntArray()")

    def __dealloc__(self):
        free(self.values)

    def __repr__(self):
        return listed("aclIntArray", self.destroyed, self.numbers())

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclIntArray", self.destroyed)
        return aclCreateIntArray, (self.numbers(),)

    def numbers(self):
        """The values.

        Returns
        -------
        tuple of int
        """
        return tuple(self.values[i] for i in range(self.size))


def aclCreateIntArray(value):
    """Store ints as an array.

    Parameters
    ----------
    value : sequence of int
        Python's or NumPy's integers of at most 64 bits, but no bools.

    Returns
    -------
    aclIntArray or None
        None, with a message, for anything but a sequence of ints of 64 bits.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateIntArray([2, -1])
    <aclIntArray [2, -1]>
    >>> aclnn.aclCreateIntArray([2**63]) is None
    True
    """
    cdef aclIntArray made = aclIntArray.__new__(aclIntArray, _OURS)
    cdef Py_ssize_t i
    try:
        given = entries_of("value", value)
        numbers = tuple(whole_number(f"value[{i}]", one) for i, one in enumerate(given))
        made.values = <int64_t *>room(len(numbers), sizeof(int64_t))
    except (AclnnError, MemoryError) as error:
        return refused("aclCreateIntArray", error)
    for i, number in enumerate(numbers):
        made.values[i] = number
    made.size = len(numbers)
    return made


cdef int refuse_ints(str function, object array) except -1:
    return refuse(function, "array", array, aclIntArray,
                  isinstance(array, aclIntArray) and (<aclIntArray>array).destroyed)


def aclDestroyIntArray(array):
    """Destroy an array of ints.

    Parameters
    ----------
    array : aclIntArray or None
        None, a null pointer, succeeds. Executors keep the values of their arrays.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for an array that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclIntArray.

    Examples
    --------
    >>> import aclnn
    >>> array = aclnn.aclCreateIntArray([2, -1])
    >>> aclnn.aclDestroyIntArray(array), aclnn.aclDestroyIntArray(array)
    (0, 161001)
    """
    if array is None:
        return OK
    if (status := refuse_ints("aclDestroyIntArray", array)) != OK:
        return status
    (<aclIntArray>array).destroyed = True
    return OK


def aclGetIntArraySize(array):
    """Get the number of values in an array.

    Parameters
    ----------
    array : aclIntArray

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed array;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclIntArray.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclGetIntArraySize(aclnn.aclCreateIntArray([2, -1]))
    (2, 0)
    """
    status = refuse_ints("aclGetIntArraySize", array)
    return ((<aclIntArray>array).size if status == OK else 0), status


# --- Arrays of floats -----------------------------------------------------------------------------

@cython.final
cdef class aclFloatArray:
    """An array of float32 numbers; created by `aclCreateFloatArray`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateFloatArray([0.5, 2])
    <aclFloatArray [0.5, 2.0]>
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("arrays of floats are made by aclCreateFloatArray()")

    def __dealloc__(self):
        free(self.values)

    def __repr__(self):
        return listed("aclFloatArray", self.destroyed, self.numbers())

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclFloatArray", self.destroyed)
        return aclCreateFloatArray, (self.numbers(),)

    def numbers(self):
        """The values.

        Returns
        -------
        tuple of float
        """
        return tuple(self.values[i] for i in range(self.size))


def aclCreateFloatArray(value):
    """Store floats as an array.

    Parameters
    ----------
    value : sequence of float
        Real numbers of any kind, rounded once to float32.

    Returns
    -------
    aclFloatArray or None
        None, with a message, for anything but a sequence of real numbers.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateFloatArray([0.5, 2])
    <aclFloatArray [0.5, 2.0]>
    >>> aclnn.aclCreateFloatArray(["1"]) is None
    True
    """
    cdef aclFloatArray made = aclFloatArray.__new__(aclFloatArray, _OURS)
    cdef Py_ssize_t i
    try:
        given = entries_of("value", value)
        numbers = tuple(real_number(f"value[{i}]", one) for i, one in enumerate(given))
        made.values = <float *>room(len(numbers), sizeof(float))
    except (AclnnError, MemoryError) as error:
        return refused("aclCreateFloatArray", error)
    for i, number in enumerate(numbers):
        made.values[i] = number
    made.size = len(numbers)
    return made


cdef int refuse_floats(str function, object array) except -1:
    return refuse(function, "array", array, aclFloatArray,
                  isinstance(array, aclFloatArray) and (<aclFloatArray>array).destroyed)


def aclDestroyFloatArray(array):
    """Destroy an array of floats.

    Parameters
    ----------
    array : aclFloatArray or None
        None, a null pointer, succeeds. Executors keep the values of their arrays.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for an array that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclFloatArray.

    Examples
    --------
    >>> import aclnn
    >>> array = aclnn.aclCreateFloatArray([0.5, 2])
    >>> aclnn.aclDestroyFloatArray(array), aclnn.aclDestroyFloatArray(array)
    (0, 161001)
    """
    if array is None:
        return OK
    if (status := refuse_floats("aclDestroyFloatArray", array)) != OK:
        return status
    (<aclFloatArray>array).destroyed = True
    return OK


def aclGetFloatArraySize(array):
    """Get the number of values in an array.

    Parameters
    ----------
    array : aclFloatArray

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed array;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclFloatArray.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclGetFloatArraySize(aclnn.aclCreateFloatArray([0.5, 2]))
    (2, 0)
    """
    status = refuse_floats("aclGetFloatArraySize", array)
    return ((<aclFloatArray>array).size if status == OK else 0), status


# --- Arrays of bools ------------------------------------------------------------------------------

@cython.final
cdef class aclBoolArray:
    """An array of truth values; created by `aclCreateBoolArray`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateBoolArray([True, 0])
    <aclBoolArray [True, False]>
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("arrays of bools are made by aclCreateBoolArray()")

    def __dealloc__(self):
        free(self.values)

    def __repr__(self):
        return listed("aclBoolArray", self.destroyed, self.numbers())

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclBoolArray", self.destroyed)
        return aclCreateBoolArray, (self.numbers(),)

    def numbers(self):
        """The values.

        Returns
        -------
        tuple of bool
        """
        return tuple(bool(self.values[i]) for i in range(self.size))


def aclCreateBoolArray(value):
    """Store bools as an array.

    Parameters
    ----------
    value : sequence of bool
        Python's or NumPy's, or ints.

    Returns
    -------
    aclBoolArray or None
        None, with a message, for anything but a sequence of bools or ints.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateBoolArray([True, 0])
    <aclBoolArray [True, False]>
    >>> aclnn.aclCreateBoolArray(["no"]) is None
    True
    """
    cdef aclBoolArray made = aclBoolArray.__new__(aclBoolArray, _OURS)
    cdef Py_ssize_t i
    try:
        given = entries_of("value", value)
        numbers = tuple(truth(f"value[{i}]", one) for i, one in enumerate(given))
        made.values = <bint *>room(len(numbers), sizeof(bint))
    except (AclnnError, MemoryError) as error:
        return refused("aclCreateBoolArray", error)
    for i, number in enumerate(numbers):
        made.values[i] = number
    made.size = len(numbers)
    return made


cdef int refuse_bools(str function, object array) except -1:
    return refuse(function, "array", array, aclBoolArray,
                  isinstance(array, aclBoolArray) and (<aclBoolArray>array).destroyed)


def aclDestroyBoolArray(array):
    """Destroy an array of bools.

    Parameters
    ----------
    array : aclBoolArray or None
        None, a null pointer, succeeds. Executors keep the values of their arrays.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for an array that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclBoolArray.

    Examples
    --------
    >>> import aclnn
    >>> array = aclnn.aclCreateBoolArray([True, 0])
    >>> aclnn.aclDestroyBoolArray(array), aclnn.aclDestroyBoolArray(array)
    (0, 161001)
    """
    if array is None:
        return OK
    if (status := refuse_bools("aclDestroyBoolArray", array)) != OK:
        return status
    (<aclBoolArray>array).destroyed = True
    return OK


def aclGetBoolArraySize(array):
    """Get the number of values in an array.

    Parameters
    ----------
    array : aclBoolArray

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed array;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclBoolArray.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclGetBoolArraySize(aclnn.aclCreateBoolArray([True, 0]))
    (2, 0)
    """
    status = refuse_bools("aclGetBoolArraySize", array)
    return ((<aclBoolArray>array).size if status == OK else 0), status


# --- Lists of tensors -----------------------------------------------------------------------------

@cython.final
cdef class aclTensorList:
    """A list of tensors, which it keeps alive; created by `aclCreateTensorList`.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (2,), None)
    >>> aclnn.aclCreateTensorList([tensor])
    <aclTensorList [<aclTensor float32[2], strides (1,), offset 0>]>
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("lists of tensors are made by aclCreateTensorList()")

    def __repr__(self):
        return listed("aclTensorList", self.destroyed, self.items)

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclTensorList", self.destroyed)
        return aclCreateTensorList, (list(self.items),)


def aclCreateTensorList(value):
    """Create a list of tensors.

    Parameters
    ----------
    value : sequence of aclTensor
        The list owns them: they are destroyed with it.

    Returns
    -------
    aclTensorList or None
        None, with a message, unless it is a sequence, and for entries that are null, destroyed or
        no aclTensor.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (2,), None)
    >>> aclnn.aclCreateTensorList([tensor])
    <aclTensorList [<aclTensor float32[2], strides (1,), offset 0>]>
    >>> aclnn.aclCreateTensorList([None]) is None
    True
    """
    cdef aclTensorList made = aclTensorList.__new__(aclTensorList, _OURS)
    try:
        given = entries_of("value", value)
        made.items = tuple(tensor_item(f"value[{i}]", one) for i, one in enumerate(given))
    except (AclnnError, MemoryError) as error:
        return refused("aclCreateTensorList", error)
    made.size = len(made.items)
    return made


cdef int refuse_tensors(str function, object found) except -1:
    return refuse(function, "list", found, aclTensorList,
                  isinstance(found, aclTensorList) and (<aclTensorList>found).destroyed)


def aclDestroyTensorList(list):
    """Destroy a list of tensors, and its tensors.

    Parameters
    ----------
    list : aclTensorList or None
        None, a null pointer, succeeds. Runs that are queued keep the tensors' memory.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a list that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclTensorList.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (2,), None)
    >>> found = aclnn.aclCreateTensorList([tensor])
    >>> aclnn.aclDestroyTensorList(found)
    0
    >>> aclnn.aclDestroyTensor(tensor)
    161001
    """
    cdef aclTensorList found
    if list is None:
        return OK
    if (status := refuse_tensors("aclDestroyTensorList", list)) != OK:
        return status
    found = <aclTensorList>list
    found.destroyed = True
    # Its tensors are let go of at the end, when all is as it will be: destructors run anything.
    _before, found.items = found.items, ()
    for item in _before:
        (<aclTensor>item).let_go()
    return OK


def aclGetTensorListSize(list):
    """Get the number of tensors in a list.

    Parameters
    ----------
    list : aclTensorList

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed list;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclTensorList.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclGetTensorListSize(aclnn.aclCreateTensorList([]))
    (0, 0)
    """
    status = refuse_tensors("aclGetTensorListSize", list)
    return ((<aclTensorList>list).size if status == OK else 0), status


# --- Lists of scalars -----------------------------------------------------------------------------

@cython.final
cdef class aclScalarList:
    """A list of scalars, which it keeps alive; created by `aclCreateScalarList`.

    Examples
    --------
    >>> import aclnn
    >>> scalar = aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)
    >>> aclnn.aclCreateScalarList([scalar, scalar])
    <aclScalarList [2.0 (float32), 2.0 (float32)]>
    """

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            raise TypeError("lists of scalars are made by aclCreateScalarList()")

    def __repr__(self):
        return listed("aclScalarList", self.destroyed, self.items)

    @boundary
    def __reduce__(self):
        refuse_destroyed("aclScalarList", self.destroyed)
        return aclCreateScalarList, (list(self.items),)


def aclCreateScalarList(value):
    """Create a list of scalars.

    Parameters
    ----------
    value : sequence of aclScalar
        The list owns them: they are destroyed with it.

    Returns
    -------
    aclScalarList or None
        None, with a message, unless it is a sequence, and for entries that are null, destroyed or
        no aclScalar.

    Examples
    --------
    >>> import aclnn
    >>> scalar = aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)
    >>> aclnn.aclCreateScalarList([scalar, scalar])
    <aclScalarList [2.0 (float32), 2.0 (float32)]>
    >>> aclnn.aclCreateScalarList([None]) is None
    True
    """
    cdef aclScalarList made = aclScalarList.__new__(aclScalarList, _OURS)
    try:
        given = entries_of("value", value)
        made.items = tuple(scalar_item(f"value[{i}]", one) for i, one in enumerate(given))
    except (AclnnError, MemoryError) as error:
        return refused("aclCreateScalarList", error)
    made.size = len(made.items)
    return made


cdef int refuse_scalars(str function, object found) except -1:
    return refuse(function, "list", found, aclScalarList,
                  isinstance(found, aclScalarList) and (<aclScalarList>found).destroyed)


def aclDestroyScalarList(list):
    """Destroy a list of scalars, and its scalars.

    Parameters
    ----------
    list : aclScalarList or None
        None, a null pointer, succeeds. Executors keep the values of their scalars.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a list that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclScalarList.

    Examples
    --------
    >>> import aclnn
    >>> scalar = aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)
    >>> found = aclnn.aclCreateScalarList([scalar])
    >>> aclnn.aclDestroyScalarList(found)
    0
    >>> aclnn.aclDestroyScalar(scalar)
    161001
    """
    cdef aclScalarList found
    if list is None:
        return OK
    if (status := refuse_scalars("aclDestroyScalarList", list)) != OK:
        return status
    found = <aclScalarList>list
    found.destroyed = True
    # Its scalars are let go of at the end, when all is as it will be: destructors run anything.
    _before, found.items = found.items, ()
    for item in _before:
        (<aclScalar>item).destroyed = True
    return OK


def aclGetScalarListSize(list):
    """Get the number of scalars in a list.

    Parameters
    ----------
    list : aclScalarList

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed list;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an aclScalarList.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclGetScalarListSize(aclnn.aclCreateScalarList([]))
    (0, 0)
    """
    status = refuse_scalars("aclGetScalarListSize", list)
    return ((<aclScalarList>list).size if status == OK else 0), status
