"""Arrays of numbers and lists of tensors and scalars, as parameters of C-shaped functions."""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from aclnn.acl import errors
from aclnn.acl._tensor cimport aclScalar, aclTensor
from aclnn.acl.objects cimport (
    ACLNN_BOOLS,
    ACLNN_FLOATS,
    ACLNN_INTS,
    ACLNN_SCALARS,
    ACLNN_TENSORS,
    aclnn_free_collection,
    aclnn_new_collection,
    c_floats,
    c_scalar,
    c_scalars,
    c_tensor,
    c_tensors,
)
from aclnn.acl._frames import boundary
from aclnn.acl._tensor import refuse_destroyed
from aclnn.acl.arguments import as_int, as_kind, shown
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
)
from aclnn.acl.docstring_templates import describe
from aclnn.acl.errors import AclnnError
from aclnn.acl.rounding import nearest_float32

cdef int OK = 0
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)

# What only this module has: its objects are made by its functions, and by nothing else.
cdef object _OURS = object()


# --- What is given --------------------------------------------------------------------------------

cdef tuple entries_of(str name, object value):
    """Entries of any sequence."""
    if value is None:
        raise AclnnError(NULLPTR, f"{name} is null, must be a sequence")
    if isinstance(value, (str, bytes, bytearray)):
        raise AclnnError(INVALID, f"{name} is {shown(value)}, must be a sequence")
    try:
        return tuple(value)
    except Exception:
        raise AclnnError(
            INVALID, f"{name} is {type(value).__name__}, must be a sequence") from None


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


def tensor_item(str name not None, item):
    return item_of(name, item, aclTensor)


def scalar_item(str name not None, item):
    return item_of(name, item, aclScalar)


cdef object item_of(str name, object item, type kind):
    if item is not None and not isinstance(item, kind):
        raise AclnnError(INVALID, f"{name} is {type(item).__name__}, must be an {kind.__name__}")
    if item is None:
        raise AclnnError(NULLPTR, f"{name} is null, must be an {kind.__name__}")
    if item.destroyed:
        raise AclnnError(NULLPTR, f"{name} is destroyed, must be an {kind.__name__} in use")
    return item


cdef c_collection *room(unsigned magic, Py_ssize_t size, size_t item) except NULL:
    cdef c_collection *made = <c_collection *>aclnn_new_collection(magic, size, item)
    if made == NULL:
        raise MemoryError
    return made


cdef class Collection:
    """Base class of arrays of numbers and lists of tensors and scalars."""

    def __cinit__(self, made_by=None):
        if made_by is not _OURS:  # nothing of it would be there
            kind = type(self).__name__
            raise TypeError(f"objects of {kind} are made by {creation(kind)}()")

    def __dealloc__(self):
        if self.head != NULL:
            aclnn_free_collection(self.head)

    @property
    def size(self):
        """Number of items."""
        return self.head.size

    def __repr__(self):
        kind = type(self).__name__
        return f"<{kind}, destroyed>" if self.destroyed else f"<{kind} {list(self._contents())}>"

    @boundary
    def __reduce__(self):
        kind = type(self).__name__
        refuse_destroyed(kind, self.destroyed)
        return globals()[creation(kind)], (self._contents(),)

    cdef int take(self, tuple found) except -1:
        """Keep what was found in a caller's sequence."""
        return 0


cdef str creation(str kind):
    """The function that makes objects of a kind."""
    return f"aclCreate{kind[3:]}"


# --- What their functions do ----------------------------------------------------------------------

cdef object created(Collection made, object value, object item):
    """`made` with the items that a caller gave; None, with a message, if one is refused."""
    cdef list found = []
    try:
        arguments = entries_of("value", value)
        for one in arguments:
            found.append(item(f"value[{len(found)}]", one))
        made.take(tuple(found))
    except (AclnnError, MemoryError) as error:
        function = creation(type(made).__name__)
        errors.fail(getattr(error, "status", INNER), f"{function}: {error}")
        return None
    return made


cdef int refused(str verb, str name, object value, type kind) except -1:
    """The status of an object that cannot be used, with a message; 0 for one that can."""
    if isinstance(value, kind) and not (<Collection>value).destroyed:
        return OK
    function = f"acl{verb.format(kind.__name__[3:])}"
    if value is None:
        return errors.fail(NULLPTR, f"{function}: {name} is null")
    if not isinstance(value, kind):
        return errors.fail(
            INVALID, f"{function}: {name} is {type(value).__name__}, must be an {kind.__name__}")
    return errors.fail(NULLPTR, f"{function}: {name} is destroyed")


cdef int destroyed(str name, object value, type kind) except -1:
    """The status of destroying an object."""
    if value is None:
        return OK
    cdef int status = refused("Destroy{}", name, value, kind)
    if status == OK:
        (<Collection>value).destroyed = True
    return status


cdef object size_of(str name, object value, type kind):
    cdef int status = refused("Get{}Size", name, value, kind)
    return ((<Collection>value).head.size if status == OK else 0), status


cdef str DESTROY_ARRAY = """Destroy an array of {of}.

    Parameters
    ----------
    array : {kind} or None
        None, a null pointer, succeeds. Executors keep the values of their arrays.

    Returns
    -------
    int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for an array that was destroyed before;
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an {kind}.

    Examples
    --------
    >>> import aclnn
    >>> array = aclnn.{create}({example})
    >>> aclnn.{name}(array), aclnn.{name}(array)
    (0, 161001)
    """

cdef str SIZE = """Get the number of {of} in {what}.

    Parameters
    ----------
    {parameter} : {kind}

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed {parameter};
        ACLNN_ERR_PARAM_INVALID (161002) for anything but an {kind}.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.{name}(aclnn.{create}({example}))
    ({count}, 0)
    """


# --- Arrays of ints ------------------------------------------------------------------------------

@cython.final
cdef class aclIntArray(Collection):
    """An array of 64-bit integers; created by `aclCreateIntArray`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateIntArray([2, -1])
    <aclIntArray [2, -1]>
    """

    def numbers(self):
        """The values.

        Returns
        -------
        tuple of int
        """
        return ints_of(<c_ints *>self.head)

    _contents = numbers

    cdef int take(self, tuple found) except -1:
        cdef Py_ssize_t i
        self.head = room(ACLNN_INTS, len(found), sizeof(int64_t))
        for i in range(len(found)):
            (<c_ints *>self.head).values[i] = found[i]
        return 0


cdef tuple ints_of(const c_ints *value):
    """The values of an array, however it was made."""
    cdef uint64_t k
    found = []
    for k in range(value.size):
        found.append(value.values[k])
    return tuple(found)


cdef aclIntArray int_array_of(const c_ints *value):
    """An array like that of a program in C; a destroyed one for what is no array any more."""
    cdef aclIntArray made = aclIntArray.__new__(aclIntArray, _OURS)
    fill(made, value, ACLNN_INTS, sizeof(int64_t))
    return made


cdef int fill(Collection made, const void *value, unsigned magic, size_t item) except -1:
    """Take the items of an array in C, if it still is one."""
    cdef const c_collection *found = <const c_collection *>value
    cdef uint64_t size = found.size if found.magic == magic else 0
    made.destroyed = found.magic != magic
    made.head = room(magic, size, item)
    memcpy(made.head + 1, found + 1, size * item)
    return 0


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
    return created(aclIntArray.__new__(aclIntArray, _OURS), value, whole_number)


def aclDestroyIntArray(array):
    return destroyed("array", array, aclIntArray)


def aclGetIntArraySize(array):
    return size_of("array", array, aclIntArray)


describe(
    aclDestroyIntArray, DESTROY_ARRAY, of="ints", kind="aclIntArray", create="aclCreateIntArray",
    example="[2, -1]")
describe(
    aclGetIntArraySize, SIZE, of="values", what="an array", parameter="array", kind="aclIntArray",
    create="aclCreateIntArray", example="[2, -1]", count=2)


# --- Arrays of floats ----------------------------------------------------------------------------

@cython.final
cdef class aclFloatArray(Collection):
    """An array of float32 numbers; created by `aclCreateFloatArray`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateFloatArray([0.5, 2])
    <aclFloatArray [0.5, 2.0]>
    """

    def numbers(self):
        """The values.

        Returns
        -------
        tuple of float
        """
        cdef const c_floats *value = <c_floats *>self.head
        return tuple(value.values[i] for i in range(value.size))

    _contents = numbers

    cdef int take(self, tuple found) except -1:
        cdef Py_ssize_t i
        self.head = room(ACLNN_FLOATS, len(found), sizeof(float))
        for i in range(len(found)):
            (<c_floats *>self.head).values[i] = found[i]
        return 0


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
    return created(aclFloatArray.__new__(aclFloatArray, _OURS), value, real_number)


def aclDestroyFloatArray(array):
    return destroyed("array", array, aclFloatArray)


def aclGetFloatArraySize(array):
    return size_of("array", array, aclFloatArray)


describe(
    aclDestroyFloatArray, DESTROY_ARRAY, of="floats", kind="aclFloatArray",
    create="aclCreateFloatArray", example="[0.5, 2]")
describe(
    aclGetFloatArraySize, SIZE, of="values", what="an array", parameter="array",
    kind="aclFloatArray", create="aclCreateFloatArray", example="[0.5, 2]", count=2)


# --- Arrays of bools -----------------------------------------------------------------------------

@cython.final
cdef class aclBoolArray(Collection):
    """An array of truth values; created by `aclCreateBoolArray`.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclCreateBoolArray([True, 0])
    <aclBoolArray [True, False]>
    """

    def numbers(self):
        """The values.

        Returns
        -------
        tuple of bool
        """
        return bools_of(<c_bools *>self.head)

    _contents = numbers

    cdef int take(self, tuple found) except -1:
        cdef Py_ssize_t i
        self.head = room(ACLNN_BOOLS, len(found), sizeof(unsigned char))
        for i in range(len(found)):
            (<c_bools *>self.head).values[i] = found[i]
        return 0


cdef tuple bools_of(const c_bools *value):
    """The values of an array, however it was made."""
    cdef uint64_t k
    found = []
    for k in range(value.size):
        found.append(value.values[k] != 0)
    return tuple(found)


cdef aclBoolArray bool_array_of(const c_bools *value):
    """An array like that of a program in C; a destroyed one for what is no array any more."""
    cdef aclBoolArray made = aclBoolArray.__new__(aclBoolArray, _OURS)
    fill(made, value, ACLNN_BOOLS, sizeof(unsigned char))
    return made


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
    return created(aclBoolArray.__new__(aclBoolArray, _OURS), value, truth)


def aclDestroyBoolArray(array):
    return destroyed("array", array, aclBoolArray)


def aclGetBoolArraySize(array):
    return size_of("array", array, aclBoolArray)


describe(
    aclDestroyBoolArray, DESTROY_ARRAY, of="bools", kind="aclBoolArray",
    create="aclCreateBoolArray", example="[True, 0]")
describe(
    aclGetBoolArraySize, SIZE, of="values", what="an array", parameter="array",
    kind="aclBoolArray", create="aclCreateBoolArray", example="[True, 0]", count=2)


# --- Lists of tensors ----------------------------------------------------------------------------

@cython.final
cdef class aclTensorList(Collection):
    """A list of tensors, which it keeps alive; created by `aclCreateTensorList`.

    Examples
    --------
    >>> import aclnn
    >>> tensor = aclnn.aclCreateTensor(
    ...     (2,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (2,), None)
    >>> aclnn.aclCreateTensorList([tensor])
    <aclTensorList [<aclTensor float32[2], strides (1,), offset 0>]>
    """

    def _contents(self):
        return list(self.items)

    cdef int take(self, tuple found) except -1:
        cdef Py_ssize_t i
        self.head = room(ACLNN_TENSORS, len(found), sizeof(c_tensor *))
        for i in range(len(found)):
            (<c_tensors *>self.head).items[i] = (<aclTensor>found[i]).c
        self.items = found
        return 0


cdef aclTensorList tensor_list_of(tuple items, bint is_alive):
    """A list of tensors of a program in C, or a destroyed one."""
    cdef aclTensorList made = aclTensorList.__new__(aclTensorList, _OURS)
    made.take(items)
    made.destroyed = not is_alive
    return made


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
    return created(aclTensorList.__new__(aclTensorList, _OURS), value, tensor_item)


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
    cdef int status = destroyed("list", list, aclTensorList)
    if list is None or status != OK:
        return status
    cdef aclTensorList found = <aclTensorList>list
    # Its tensors are let go of at the end, when all is as it will be: destructors run anything.
    _before, found.items = found.items, ()
    for item in _before:
        (<aclTensor>item).let_go()
    return OK


def aclGetTensorListSize(list):
    return size_of("list", list, aclTensorList)


describe(
    aclGetTensorListSize, SIZE, of="tensors", what="a list", parameter="list",
    kind="aclTensorList", create="aclCreateTensorList", example="[]", count=0)


# --- Lists of scalars ----------------------------------------------------------------------------

@cython.final
cdef class aclScalarList(Collection):
    """A list of scalars, which it keeps alive; created by `aclCreateScalarList`.

    Examples
    --------
    >>> import aclnn
    >>> scalar = aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)
    >>> aclnn.aclCreateScalarList([scalar, scalar])
    <aclScalarList [2.0 (float32), 2.0 (float32)]>
    """

    def _contents(self):
        return list(self.items)

    cdef int take(self, tuple found) except -1:
        cdef Py_ssize_t i
        self.head = room(ACLNN_SCALARS, len(found), sizeof(c_scalar *))
        for i in range(len(found)):
            (<c_scalars *>self.head).items[i] = &(<aclScalar>found[i]).c
        self.items = found
        return 0


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
    return created(aclScalarList.__new__(aclScalarList, _OURS), value, scalar_item)


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
    cdef int status = destroyed("list", list, aclScalarList)
    if list is None or status != OK:
        return status
    cdef aclScalarList found = <aclScalarList>list
    # Its scalars are let go of at the end, when all is as it will be: destructors run anything.
    _before, found.items = found.items, ()
    for item in _before:
        (<aclScalar>item).destroyed = True
    return OK


def aclGetScalarListSize(list):
    return size_of("list", list, aclScalarList)


describe(
    aclGetScalarListSize, SIZE, of="scalars", what="a list", parameter="list",
    kind="aclScalarList", create="aclCreateScalarList", example="[]", count=0)
