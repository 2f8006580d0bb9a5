"""PyTorch's tensors as operands, read and made through DLPack's C exchange interface.

The interface calls no Python: reading a tensor takes about as long as reading an array. PyTorch has
it from 2.10 on; without it tensors take the way of all other arrays (`aclnn.execution.arrays`), as
those do that are more than memory: subclasses, negated views, and tensors that are to be
differentiated.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

from aclnn.acl.numbers cimport numbers_of
from aclnn.acl.dlpack_abi cimport DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor
from aclnn.acl._tensor_spec cimport ABSENT, FORMAT_ND, MAX_DIMS, item_size, operand_t

import ctypes
import sys
from types import GetSetDescriptorType, MethodDescriptorType

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType

cdef extern from "Python.h":
    ctypedef struct PyGetSetDef:
        PyObject *(*get)(PyObject *, void *) noexcept
        void *closure
    ctypedef struct PyGetSetDescrObject:
        PyGetSetDef *d_getset
    ctypedef struct PyMethodDef:
        PyObject *(*ml_meth)(PyObject *, PyObject *) noexcept
        int ml_flags
    ctypedef struct PyMethodDescrObject:
        PyMethodDef *d_method
    int METH_NOARGS
    void PyErr_Clear()
    PyObject *Py_TYPE(object given)
    PyObject *Py_True
    void Py_XDECREF(PyObject *)

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <stdlib.h>

    /* Memory of large results, kept when they are gone: what the system takes back, it fills with
       zeros page by page when it is wanted again, which takes longer than to compute gradients of
       few rows. What was kept longest goes first. Nobody waits: where another thread looks, memory
       is fresh. */
    #define KEPT_FROM ((size_t)1 << 16)
    #define KEPT_IN_ALL ((size_t)1 << 26)
    #define KEPT_BLOCKS 256

    static struct {
        pthread_mutex_t lock;
        struct { void *memory; size_t size; } blocks[KEPT_BLOCKS]; /* the oldest first */
        int count;
        size_t in_all;
    } kept = {PTHREAD_MUTEX_INITIALIZER};

    static void *kept_remove(int place) {
        void *memory = kept.blocks[place].memory;
        kept.in_all -= kept.blocks[place].size;
        kept.count--;
        for (int next = place; next < kept.count; next++) kept.blocks[next] = kept.blocks[next + 1];
        return memory;
    }

    static void *result_memory(size_t size) {
        void *found = NULL;
        if (size >= KEPT_FROM && !pthread_mutex_trylock(&kept.lock)) {
            for (int place = kept.count - 1; place >= 0 && !found; place--)
                if (kept.blocks[place].size == size) found = kept_remove(place);
            pthread_mutex_unlock(&kept.lock);
        }
        return found ? found : malloc(size);
    }

    static void keep_result_memory(void *memory, size_t size) {
        if (size < KEPT_FROM || size > KEPT_IN_ALL || pthread_mutex_trylock(&kept.lock)) {
            free(memory);
            return;
        }
        while (kept.count == KEPT_BLOCKS || kept.in_all + size > KEPT_IN_ALL) free(kept_remove(0));
        kept.blocks[kept.count].memory = memory;
        kept.blocks[kept.count++].size = size;
        kept.in_all += size;
        pthread_mutex_unlock(&kept.lock);
    }
    """
    void *result_memory(size_t size)
    void keep_result_memory(void *memory, size_t size)

# What PyTorch's library in C++ says of a tensor; of a `bool` only the lowest byte counts.
ctypedef unsigned char (*asked_fn)(const void *) noexcept
ctypedef void (*told_fn)(const void *) noexcept

cdef enum:
    CPU = 1
    ALIGNMENT = 64  # of results: a cache line
    CODES = 7       # of DLPack's dtypes: the first ones
    WIDTHS = 4      # of elements that are read here: 1, 2, 4, 8 bytes
    MOST_DTYPES = 32
    UNKNOWN = -1

cdef const char *CAPSULE = "dlpack_exchange_api"

CODES_OF_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
# CANN's number for each of DLPack's dtypes, by code and the logarithm of its
# bytes, and the way back. Complex tensors may be conjugated: they are not read here.
cdef int[CODES][WIDTHS] ACL_OF
cdef int[MOST_DTYPES] CODE_OF
for _code in range(CODES):
    for _width in range(WIDTHS):
        ACL_OF[_code][_width] = UNKNOWN
for _acl, _kind in dtypes.NUMPY.items():
    _code = 4 if _acl == aclDataType.ACL_BF16 else CODES_OF_KINDS[_kind.kind]
    CODE_OF[<int>_acl] = _code
    if _kind.kind != "c":
        ACL_OF[<int>_code][<int>(_kind.itemsize.bit_length() - 1)] = _acl

# What is known of PyTorch once one of its tensors was seen: for as long as the process runs.
cdef DLPackExchangeAPI *_api = NULL
cdef PyObject *_tensor_type = NULL
cdef PyObject *_parameter_type = NULL
cdef object _torch = None
cdef object _kept = None
# What `requires_grad` and `is_neg` of a tensor call: attributes take four times as long.
cdef PyGetSetDef *_requires_grad = NULL
cdef PyMethodDef *_is_negated = NULL
cdef object _records_gradients = None
cdef object _transformation = None  # the innermost one of `torch.func`
cdef object _count_write = None
# The same as functions of its library, which neither look for overrides nor release the lock of the
# interpreter: a tenth of the time. NULL where the library or its objects are others than expected.
cdef asked_fn _has_gradient = NULL   # of a TensorImpl
cdef asked_fn _has_negation = NULL   # of a Tensor, as are the others
cdef asked_fn _is_inference = NULL
cdef told_fn _bump_version = NULL
# The variables of PyTorch's forward mode, and the level that it has outside of it.
cdef dict _forward_mode = {}
cdef object _OUTSIDE = -1


cdef bint is_tensor(object value) noexcept:
    """Whether it is a tensor, or a parameter, and of no other type; False without the interface."""
    if Py_TYPE(value) == _tensor_type or Py_TYPE(value) == _parameter_type:
        return True
    return _tensor_type == NULL and learn(type(value))


cdef bint learn(kind) noexcept:
    """Look up PyTorch's interface if this is the type of its tensors."""
    global _api, _tensor_type, _parameter_type
    global _torch, _kept, _requires_grad, _is_negated, _records_gradients, _count_write
    global _forward_mode, _transformation
    try:
        torch = sys.modules.get("torch")
        if torch is None or kind not in (torch.Tensor, torch.nn.Parameter):
            return False
        capsule = torch.Tensor.__dlpack_c_exchange_api__
        if not PyCapsule_IsValid(capsule, CAPSULE):
            return False
        api = <DLPackExchangeAPI *>PyCapsule_GetPointer(capsule, CAPSULE)
        if api.version.major != 1:
            return False
        base = torch._C.TensorBase
        if type(base.requires_grad) is not GetSetDescriptorType:
            return False
        if type(base.is_neg) is not MethodDescriptorType:
            return False
        _requires_grad = (<PyGetSetDescrObject *><PyObject *>base.requires_grad).d_getset
        _is_negated = (<PyMethodDescrObject *><PyObject *>base.is_neg).d_method
        if _is_negated.ml_flags != METH_NOARGS:
            return False
        _records_gradients = torch.is_grad_enabled
        _transformation = torch._C._functorch.peek_interpreter_stack
        _count_write = torch._C._increment_version
        _forward_mode = vars(torch.autograd.forward_ad)
        _kept = capsule, torch.Tensor, torch.nn.Parameter
        _torch = torch
    except Exception:  # an older PyTorch, or one that is only half imported
        return False
    find_functions(torch)
    _api = api
    _parameter_type = <PyObject *>_kept[2]
    _tensor_type = <PyObject *>_kept[1]
    return True


cdef void find_functions(torch) noexcept:
    """Look up PyTorch's functions in C++, by names that say what they take, and try them."""
    global _has_gradient, _has_negation, _is_inference, _bump_version
    try:
        if not begins_with_tensor(torch.empty(0)):
            return
        library = ctypes.CDLL(torch._C.__file__)
        _has_gradient = <asked_fn><size_t>address(library._ZNK3c1010TensorImpl13requires_gradEv)
        _has_negation = <asked_fn><size_t>address(library._ZN2at6native6is_negERKNS_6TensorE)
        _is_inference = <asked_fn><size_t>address(
            library._ZN2at6native12is_inferenceERKNS_6TensorE)
        _bump_version = <told_fn><size_t>address(
            library._ZN5torch8autograd4impl12bump_versionERKN2at6TensorE)
        if say_what_python_says(torch):
            return
    except Exception:  # of another version, or without symbols
        pass
    _has_gradient = _has_negation = _is_inference = NULL
    _bump_version = NULL


cdef bint say_what_python_says(torch) except -1:
    """Whether the functions are what their names say, for tensors of which the answers differ."""
    with torch.inference_mode(False):
        plain = torch.zeros(1)
        tracked, negated = torch.zeros(1, requires_grad=True), torch._neg_view(plain)
    with torch.inference_mode():
        inference = torch.zeros(1)
    for one in (plain, tracked, negated, inference):
        if (_has_gradient(implementation_of(<PyObject *>one)) != one.requires_grad
                or _has_negation(tensor_of(<PyObject *>one)) != one.is_neg()
                or _is_inference(tensor_of(<PyObject *>one)) != one.is_inference()):
            return False
    before = plain._version
    _bump_version(tensor_of(<PyObject *>plain))
    return plain._version == before + 1


cdef bint begins_with_tensor(object probe) except -1:
    """Whether Python's object begins with the one of C++, a pointer to what it calls `_cdata`."""
    return implementation_of(<PyObject *>probe) == <const void *><size_t>probe._cdata


cdef object address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


cdef inline const void *tensor_of(PyObject *value) noexcept:
    """The object of C++ that Python's has."""
    return <const char *>value + sizeof(PyObject)


cdef inline const void *implementation_of(PyObject *value) noexcept:
    return (<const void *const *>tensor_of(value))[0]


cdef object library_of_tensors():
    """PyTorch, where one of its tensors was read."""
    return _torch


cdef bint makes_tensors(object library) noexcept:
    """Whether `library` is PyTorch, and `new_tensor` makes what it wants."""
    if library is None:
        return False
    return library is _torch or (_torch is None and learn(getattr(library, "Tensor", None)))


cdef bint read_tensor(object value, operand_t *operand) noexcept:
    """Take a tensor's description; False for what is none, or is more than readable memory."""
    if not describe_tensor(value, operand):
        return False
    return not (requires_gradient(<PyObject *>value) and records_gradients())


cdef bint read_tracked(object value, operand_t *operand, bint *tracked) noexcept:
    """As `read_tensor`, but for gradients: `tracked` becomes true where one is wanted."""
    if not describe_tensor(value, operand):
        return False
    tracked[0] |= requires_gradient(<PyObject *>value)
    return True


cdef bint describe_tensor(object value, operand_t *operand) noexcept:
    """Take the description of a tensor whose elements are those in memory."""
    cdef DLTensor found
    cdef int axis, width
    if not is_tensor(value):
        return False
    if _api.tensor_from_object(<void *>value, &found) != 0:
        PyErr_Clear()
        return False
    if found.device.device_type != CPU or found.ndim > MAX_DIMS or found.dtype.lanes != 1:
        return False
    width = log_of_bytes(found.dtype.bits)
    if found.dtype.code >= CODES or width < 0:
        return False
    operand.dtype = ACL_OF[found.dtype.code][width]
    operand.data = <char *>found.data + found.byte_offset
    if operand.dtype == UNKNOWN or <size_t>operand.data & ((<size_t>1 << width) - 1):
        return False
    operand.ndim, operand.format, operand.writable = found.ndim, FORMAT_ND, True
    for axis in range(found.ndim):
        operand.shape[axis], operand.strides[axis] = found.shape[axis], found.strides[axis]
    if found.data == NULL and not is_empty(operand):  # zeros that PyTorch has no memory for
        return False
    # A small integer: there is one object of each.
    if PyDict_GetItem(_forward_mode, "_current_level") != <PyObject *>_OUTSIDE:
        return False
    return not is_negated(<PyObject *>value)


cdef inline int log_of_bytes(int bits) noexcept:
    if bits == 32:
        return 2
    if bits == 64:
        return 3
    if bits == 16:
        return 1
    return 0 if bits == 8 else -1


cdef inline bint requires_gradient(PyObject *tensor) noexcept:
    if _has_gradient != NULL:
        return _has_gradient(implementation_of(tensor))
    return is_true(_requires_grad.get(tensor, _requires_grad.closure))


cdef inline bint is_negated(PyObject *tensor) noexcept:
    if _has_negation != NULL:
        return _has_negation(tensor_of(tensor))
    return is_true(_is_negated.ml_meth(tensor, NULL))


cdef inline bint is_true(PyObject *answer) noexcept:
    """Whether PyTorch answers True, or with an exception."""
    if answer == NULL:
        PyErr_Clear()
        return True
    Py_XDECREF(answer)
    return answer == Py_True


cdef bint records_gradients() noexcept:
    try:
        return _records_gradients()
    except Exception:  # whatever a mode of PyTorch's raises
        return True


cdef bint records_plainly() noexcept:
    """Whether calls are recorded for gradients, and no function is being transformed."""
    try:
        return _records_gradients() and _transformation() is None
    except Exception:  # as above
        return False


cdef int tell_written(object value) except -1:
    """Have PyTorch count a change of a tensor, so that it refuses gradients of what was there."""
    cdef const void *tensor = tensor_of(<PyObject *>value)
    if _bump_version == NULL:
        _count_write((value,))
    elif not _is_inference(tensor):  # which has no count
        _bump_version(tensor)
    return 0


# --- Making them ----------------------------------------------------------------------------------

cdef object new_tensor(operand_t *operand):
    """A tensor of the description, whose strides leave no gaps; the operand gets its address.

    Its memory is this package's: PyTorch's own way of allocating what it is then handed makes two
    tensors of it, and takes most of a call.
    """
    cdef DLManagedTensorVersioned *made = new_memory(operand)
    cdef void *tensor = NULL
    if made == NULL:
        shape = numbers_of(operand.shape, operand.ndim)
        raise MemoryError(f"no memory for a result of shape {shape}")
    operand.data = <char *>made.dl_tensor.data
    if _api.object_from_managed(made, &tensor) != 0:
        raise_current()
    result = <object><PyObject *>tensor
    Py_DECREF(result)  # the pointer came with a reference
    return result


cdef DLManagedTensorVersioned *new_memory(operand_t *operand) noexcept:
    """Memory for a tensor, behind what describes it; NULL where there is none."""
    cdef DLManagedTensorVersioned *made
    cdef DLTensor *described
    cdef int axis
    cdef size_t nbytes = item_size(operand.dtype)
    for axis in range(operand.ndim):  # plans have refused what 64 bits cannot count
        nbytes *= <size_t>operand.shape[axis]
    nbytes += sizeof(DLManagedTensorVersioned) + ALIGNMENT
    made = <DLManagedTensorVersioned *>result_memory(nbytes)
    if made == NULL:
        return NULL
    made.version, made.flags = _api.version, 0
    made.manager_ctx, made.deleter = <void *>nbytes, give_back
    described = &made.dl_tensor
    described.data = <void *>((<size_t>(made + 1) + ALIGNMENT - 1) & ~<size_t>(ALIGNMENT - 1))
    described.device.device_type, described.device.device_id = CPU, 0
    described.ndim, described.shape, described.strides = (
        operand.ndim, operand.shape, operand.strides)
    described.dtype.code = CODE_OF[operand.dtype]
    described.dtype.bits = 8 * item_size(operand.dtype)
    described.dtype.lanes, described.byte_offset = 1, 0
    return made


cdef void give_back(DLManagedTensorVersioned *made) noexcept nogil:
    """Called by PyTorch, on any thread, when nothing has the memory any more."""
    keep_result_memory(made, <size_t>made.manager_ctx)


cdef int raise_current() except -1:
    """Raise what the interface has set."""
    return -1


# --- Layouts --------------------------------------------------------------------------------------

cdef bint lies_otherwise(const operand_t *operands, const int *slots, int n_slots) noexcept:
    """Whether one of some inputs is not dense in the order of its dimensions."""
    cdef int index, axis
    cdef int64_t dense
    cdef const operand_t *one
    cdef bint all_empty = True
    for index in range(n_slots):
        all_empty &= is_empty(&operands[slots[index]])
    if all_empty:
        return False
    for index in range(n_slots):
        dense, one = 1, &operands[slots[index]]
        for axis in range(one.ndim - 1, -1, -1):
            if one.shape[axis] != 1 and one.strides[axis] != dense:
                return True
            dense *= one.shape[axis]
    return False


cdef bint is_empty(const operand_t *operand) noexcept:
    cdef int axis
    for axis in range(operand.ndim):
        if operand.shape[axis] == 0:
            return True
    return False


cdef void lay_out_alike(const operand_t *operands, const int *slots, int n_slots,
                        operand_t *out) noexcept:
    """Give the result of a pointwise operator the strides that PyTorch gives it.

    Its dimensions are in the order that some inputs have in memory, the first ones deciding, as in
    PyTorch's TensorIterator.
    """
    cdef int order[MAX_DIMS]  # the dimension whose elements lie nearest comes first
    cdef int index, lower, found
    cdef int64_t dense = 1
    for index in range(out.ndim):
        order[index] = out.ndim - 1 - index
    for index in range(1, out.ndim):
        for lower in range(index - 1, -1, -1):
            found = compared(operands, slots, n_slots, out, order[lower], order[lower + 1])
            if found < 0:
                break
            if found > 0:
                order[lower], order[lower + 1] = order[lower + 1], order[lower]
    for index in range(out.ndim):
        out.strides[order[index]] = dense
        dense *= max(out.shape[order[index]], 1)


cdef int compared(const operand_t *operands, const int *slots, int n_slots, const operand_t *out,
                  int a, int b) noexcept:
    """Below 0 where dimension `a` has the smaller stride, above 0 where `b` has."""
    cdef int index
    cdef int64_t at_a, at_b
    for index in range(n_slots):
        at_a = stride_along(&operands[slots[index]], out, a)
        at_b = stride_along(&operands[slots[index]], out, b)
        if at_a == 0 or at_b == 0:
            continue
        if at_a != at_b:
            return -1 if at_a < at_b else 1
        if out.shape[a] > out.shape[b]:
            return 1
    return 0


cdef inline int64_t stride_along(const operand_t *operand, const operand_t *out, int axis) noexcept:
    """The stride along a dimension of the result; 0 where the operand repeats its elements."""
    cdef int own = axis - (out.ndim - operand.ndim)
    if operand.ndim == ABSENT or own < 0:
        return 0
    return 0 if operand.shape[own] == 1 and out.shape[axis] != 1 else operand.strides[own]


cdef bint have_channels_last(const operand_t *operands, int n_inputs) noexcept:
    """Whether all inputs are images, or volumes, whose channels lie nearest in memory."""
    cdef int index
    for index in range(n_inputs):
        if not has_channels_last(&operands[index]):
            return False
    return True


cdef bint has_channels_last(const operand_t *one) noexcept:
    """As PyTorch sees it: strides grow from the channels over the last dimension to the first.

    Those of dimensions of one element count too: channels of one element come last where the
    batch has another stride than they have.
    """
    cdef int index, axis
    cdef int64_t least = 0
    if one.ndim not in (4, 5) or one.strides[1] == 0:
        return False
    for index in range(one.ndim):
        axis = axis_from_channels(one.ndim, index)
        if one.shape[axis] == 0 or one.strides[axis] < least:
            return False
        if axis == 0 and least == one.strides[1]:
            return False
        least = one.strides[axis] * max(one.shape[axis], 1)
    return True


cdef void lay_out_channels_last(operand_t *out) noexcept:
    """Give a result strides with its channels nearest in memory, without gaps."""
    cdef int index, axis
    cdef int64_t dense = 1
    for index in range(out.ndim):
        axis = axis_from_channels(out.ndim, index)
        out.strides[axis] = dense
        dense *= max(out.shape[axis], 1)


cdef void stack_channels_last(const operand_t *first, int dim, operand_t *out) noexcept:
    """As if tensors with their channels last were joined along a dimension, which is then cut into
    two. At the end, where they have no such dimension, a stack stays dense."""
    cdef int index, axis
    cdef int64_t dense = 1
    if dim >= first.ndim:
        return
    for index in range(first.ndim):
        axis = axis_from_channels(first.ndim, index)
        out.strides[axis if axis < dim else axis + 1] = dense
        dense *= max(first.shape[axis], 1)
        if axis == dim:
            out.strides[dim] = dense
            dense *= max(out.shape[dim], 1)


cdef inline int axis_from_channels(int ndim, int index) noexcept:
    """The dimensions in the order 1, last to 2, 0."""
    if index == 0:
        return 1
    return 0 if index == ndim - 1 else ndim - index
