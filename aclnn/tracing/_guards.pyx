"""Looking up again what a compiled function reaches besides its arguments.

The guards of a function are a list of nodes. Each says how its object is reached from that of an
earlier node, and what it has to be for a plan to hold: the same object, an equal value, an object
of the same type, a list of the same length, an array of the same description. No code of the user's
runs meanwhile: attributes are those that the instance or its class has.
"""

from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_Size
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from aclnn.acl._tensor_spec cimport item_size, operand_t
from aclnn.execution._operand cimport Headers, fits, new_headers, read_array
from aclnn.execution._tensors cimport read_tensor

import numpy as np

from aclnn.execution import arrays as interchange
from aclnn.tracing.nesting import is_array

cdef extern from "Python.h":
    object PyObject_GenericGetAttr(object, object)
    PyObject *PyFunction_GetClosure(object) except NULL
    PyObject *PyCell_GET(PyObject *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)

cdef enum:
    # How an object is reached from that of its parent, or from nowhere.
    C_FIXED
    C_OWNER      # an object among the arguments
    C_GLOBAL     # a name in a dict that is kept
    C_CELL       # what a function closes over
    C_ATTRIBUTE  # of an instance
    C_MEMBER     # of a class or a module
    C_ITEM       # of a list or tuple
    C_VALUE      # of a dict
    # What it has to be.
    C_IDENTICAL       # this object, which is not kept alive
    C_EQUAL      # a value of this type and these bits
    C_KIND       # an object of this type
    C_SEQUENCE   # of this type and length
    C_MAPPING    # of this type and with these keys
    C_ALIAS      # what another node found
    C_ARRAY      # an array of a description
    C_ABSENT

FIXED, OWNER, GLOBAL, CELL = C_FIXED, C_OWNER, C_GLOBAL, C_CELL
ATTRIBUTE, MEMBER, ITEM, VALUE = C_ATTRIBUTE, C_MEMBER, C_ITEM, C_VALUE
IDENTICAL, EQUAL, KIND, SEQUENCE = C_IDENTICAL, C_EQUAL, C_KIND, C_SEQUENCE
MAPPING, ALIAS, ARRAY, ABSENT = C_MAPPING, C_ALIAS, C_ARRAY, C_ABSENT

cdef object MISSING = object()
cdef uint64_t PRIME = 0x9E3779B185EBCA87

cdef struct node_t:
    int parent
    int access
    int role
    operand_t *operand  # of arrays; freed with the table
    bint by_contents    # an array that became no input: its elements count
    uint64_t contents


cdef class Guards:
    """The nodes of one trace.

    Parameters
    ----------
    nodes : sequence of tuple
        Parent, way and key; role and what is expected. An expected object of role `IDENTICAL` is a
        weak reference, or a function that gives it; an array stands for its description.

    Examples
    --------
    >>> import numpy as np
    >>> scope = {"w": np.zeros(3), "n": 2}
    >>> nodes = [
    ...     (-1, GLOBAL, (scope, "w"), ARRAY, scope["w"]), (-1, GLOBAL, (scope, "n"), EQUAL, 2)]
    >>> guards = Guards(nodes)
    >>> guards.bind([(0, 0)])
    >>> guards.differing(())
    -1
    >>> scope["w"] = np.ones(3)
    >>> guards.look_up(()).arrays
    [array([1., 1., 1.])]
    >>> scope["n"] = 3
    >>> guards.differing(()), guards.look_up(())
    (1, None)
    """

    cdef node_t *nodes
    cdef readonly Py_ssize_t count
    cdef list keys, expected
    cdef list inputs  # the nodes of arrays that are inputs of the plan
    cdef readonly list offsets  # in bytes, of each input from its node's first element

    def __cinit__(self, nodes not None):
        cdef Py_ssize_t index
        cdef operand_t read
        self.count = len(nodes)
        self.keys, self.expected = [], []
        self.inputs, self.offsets = [], []
        self.nodes = <node_t *>calloc(max(1, self.count), sizeof(node_t))
        if self.nodes == NULL:
            raise MemoryError
        for index, (parent, access, key, role, expected) in enumerate(nodes):
            self.nodes[index].parent, self.nodes[index].access = parent, access
            self.nodes[index].role = role
            if role == C_ARRAY:
                seen_as(expected, &read)
                self.nodes[index].operand = <operand_t *>calloc(1, sizeof(operand_t))
                if self.nodes[index].operand == NULL:
                    raise MemoryError
                memcpy(self.nodes[index].operand, &read, sizeof(operand_t))
                expected = None
            self.keys.append(key)
            self.expected.append(expected)

    def __dealloc__(self):
        cdef Py_ssize_t index
        if self.nodes == NULL:
            return
        for index in range(self.count):
            free(self.nodes[index].operand)
        free(self.nodes)

    def bind(self, inputs not None):
        """Have the arrays of nodes become inputs of a plan: pairs of node and offset in bytes."""
        for node, offset in inputs:
            self.inputs.append(node)
            self.offsets.append(offset)

    def watch(self, Py_ssize_t index, array not None):
        """Let the elements of an array count, for it became no input."""
        self.nodes[index].by_contents = True
        self.nodes[index].contents = of_elements(array)

    def look_up(self, owners not None):
        """Headers of the arrays that are there now, for each input, from its offset on; None where
        the plan does not hold."""
        cdef list found = [None] * self.count
        cdef bytes room = PyBytes_FromStringAndSize(
            NULL, self.count * <Py_ssize_t>sizeof(operand_t))
        cdef operand_t *seen = <operand_t *>PyBytes_AS_STRING(room)
        cdef list arrays = []
        cdef Headers headers
        cdef Py_ssize_t position
        if self.check(owners, found, seen) >= 0:
            return None
        headers = new_headers(arrays, len(self.inputs))
        for position, index in enumerate(self.inputs):
            arrays.append(found[index])
            headers.operands[position] = seen[<Py_ssize_t>index]
            headers.operands[position].data += <Py_ssize_t>self.offsets[position]
        return headers

    def failing(self, owners not None):
        """All nodes that are not as expected, with those that are reached from them."""
        cdef list found = [None] * self.count
        cdef Py_ssize_t index
        cdef set failed = set()
        cdef operand_t seen
        for index in range(self.count):
            if self.nodes[index].parent not in failed:
                one = self.reached(index, owners, found)
                if self.holds(index, one, found, &seen):
                    continue
            failed.add(index)
        return failed

    def differing(self, owners not None):
        """The first node that is not as expected, or -1."""
        return self.check(owners, [None] * self.count, NULL)

    cdef Py_ssize_t check(self, owners, list found, operand_t *seen) except -2:
        """The first node that is not as expected, or -1; `seen` gets the headers of arrays."""
        cdef operand_t one_seen
        cdef Py_ssize_t index
        for index in range(self.count):
            one = self.reached(index, owners, found)
            if not self.holds(index, one, found, &one_seen if seen == NULL else &seen[index]):
                return index
        return -1

    cdef object reached(self, Py_ssize_t index, owners, list found):
        """The object of a node; MISSING where there is none."""
        cdef node_t *node = &self.nodes[index]
        cdef PyObject *inner = NULL
        key = <object>PyList_GET_ITEM(self.keys, index)
        parent = <object>PyList_GET_ITEM(found, node.parent) if node.parent >= 0 else None
        if node.access == C_ATTRIBUTE:
            try:
                return PyObject_GenericGetAttr(parent, key)
            except AttributeError:
                return MISSING
        if node.access == C_GLOBAL:
            inner = PyDict_GetItemWithError((<tuple>key)[0], (<tuple>key)[1])
        elif node.access == C_CELL:
            inner = PyCell_GET(PyTuple_GET_ITEM(PyFunction_GetClosure(parent), key))
        elif node.access == C_VALUE:
            inner = PyDict_GetItemWithError(parent, key)
        elif node.access == C_ITEM:
            try:
                return parent[<Py_ssize_t>key]
            except IndexError:  # another thread made it shorter meanwhile
                return MISSING
        elif node.access == C_OWNER:
            return owners[key]
        elif node.access == C_MEMBER:
            return getattr(parent, key, MISSING)
        else:
            return key
        return MISSING if inner == NULL else <object>inner

    cdef bint holds(self, Py_ssize_t index, object one, list found, operand_t *seen) except -1:
        """Whether an object is what the plan is for; keeps it, and the header of an array."""
        cdef node_t *node = &self.nodes[index]
        expected = <object>PyList_GET_ITEM(self.expected, index)
        if one is MISSING:
            return node.role == C_ABSENT
        if node.role == C_ARRAY:
            if not read_array(one, seen) and not read_tensor(one, seen):
                if hasattr(type(one), "__aclnn_function__") or not is_array(one):
                    return False
                one = interchange.as_ndarray(one, "array")
                if not read_array(one, seen):
                    return False
            found[index] = one
            return (fits(seen, node.operand) and seen.writable == node.operand.writable
                    and (not node.by_contents or of_elements(one) == node.contents))
        found[index] = one
        if node.role == C_EQUAL:
            return one is expected or (type(one) is type(expected) and equal(one, expected))
        if node.role == C_KIND:
            return type(one) is expected
        if node.role == C_IDENTICAL:
            return one is expected()
        if node.role == C_ALIAS:
            return one is <object>PyList_GET_ITEM(found, expected)
        if node.role == C_SEQUENCE:
            return type(one) is expected[0] and len(one) == <Py_ssize_t>expected[1]
        if node.role == C_MAPPING:
            return type(one) is expected[0] and has_keys(one, expected[1])
        return False


cdef bint has_keys(object argument, tuple keys) except -1:
    """Whether a dict has these keys in this order."""
    cdef Py_ssize_t position = 0, index = 0
    cdef PyObject *key
    cdef PyObject *value
    if PyDict_Size(argument) != len(keys):
        return False
    while PyDict_Next(argument, &position, &key, &value):
        expected = keys[index]
        if <object>key is not expected and not (
                type(<object>key) is type(expected) and <object>key == expected):
            return False
        index += 1
    return True


cdef bint equal(object one, object other) except -1:
    """Whether values of a type are the same bits."""
    cdef double a, b
    if type(one) is float:
        a, b = one, other
        return memcmp(&a, &b, sizeof(double)) == 0
    if type(one) is tuple:
        if len(one) != len(other):
            return False
        for left, right in zip(one, other):
            if type(left) is not type(right) or not equal(left, right):
                return False
        return True
    if type(one) is complex:
        return equal(one.real, other.real) and equal(one.imag, other.imag)
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return one == other


cdef int seen_as(object array, operand_t *operand) except -1:
    if not read_array(array, operand) and not read_tensor(array, operand):
        if not read_array(interchange.as_ndarray(array, "array"), operand):
            raise ValueError("an array that kernels do not read has no description")
    return 0


def fingerprint(array):
    """A number that differs where elements do.

    >>> import numpy as np
    >>> a = np.arange(40.)
    >>> fingerprint(a) == fingerprint(a.copy()), fingerprint(a) == fingerprint(a + 1e-9)
    (True, False)
    """
    return of_elements(array)


cdef uint64_t of_elements(object array) except? 0:
    cdef operand_t seen
    cdef Py_ssize_t size = item_size_of(array, &seen)
    cdef int axis
    if size < 0:
        array = np.ascontiguousarray(interchange.as_ndarray(array, "array"))
        size = item_size_of(array, &seen)
        if size < 0:
            return hash(array.tobytes()) & <uint64_t>-1
    for axis in range(seen.ndim):
        size *= seen.shape[axis]
    return of_bytes(<const unsigned char *>seen.data, size)


cdef Py_ssize_t item_size_of(object array, operand_t *seen) noexcept:
    """The bytes of an element of an array that is row-major; -1 for any other."""
    cdef Py_ssize_t step = 1
    cdef int axis
    if not read_array(array, seen) and not read_tensor(array, seen):
        return -1
    for axis in reversed(range(seen.ndim)):
        if seen.shape[axis] != 1 and seen.strides[axis] != step:
            return -1
        step *= seen.shape[axis]
    return item_size(seen.dtype)


cdef uint64_t of_bytes(const unsigned char *raw, Py_ssize_t size) noexcept nogil:
    cdef uint64_t lanes[4]
    cdef uint64_t words[4]
    cdef Py_ssize_t at = 0
    cdef int lane
    for lane in range(4):
        lanes[lane] = PRIME * <uint64_t>(lane + 1)
    while at + 32 <= size:
        memcpy(words, raw + at, 32)
        for lane in range(4):
            lanes[lane] = mixed(lanes[lane] ^ words[lane])
        at += 32
    while at < size:
        lanes[0] = mixed(lanes[0] ^ raw[at])
        at += 1
    for lane in range(1, 4):
        lanes[0] = mixed(lanes[0] ^ lanes[lane])
    return lanes[0] ^ <uint64_t>size


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    """Every bit of a word in most others: injective."""
    word *= PRIME
    return word ^ (word >> 29)
