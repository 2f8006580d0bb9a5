"""Pickles of tensors, scalars and lists: descriptions and the bytes that they need."""

import copy
import ctypes
import pickle
import traceback

import numpy as np
import pytest

import aclnn

FACTS = ("dtype", "format", "ndim", "offset", "storage_shape", "writable", "device")


def again(one):
    return pickle.loads(pickle.dumps(one))


def values(tensor):
    """The elements of a float32 tensor."""
    address, status = aclnn.aclGetRawTensorAddr(tensor)
    assert status == aclnn.ACLNN_SUCCESS
    memory = (ctypes.c_char * tensor.bytes_needed()).from_address(address)
    strides = [4 * step for step in tensor.steps()]
    return np.ndarray(tensor.dims(), np.float32, memory, 4 * tensor.offset, strides)


@pytest.mark.parametrize(("dims", "strides", "offset"), [
    ((2, 3), (3, 1), 0), ((2, 3), (1, 2), 4), ((3,), (0,), 2), ((), (), 5), ((0, 3), (3, 1), 0),
])  # fmt: skip
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_tensors_keep_description_and_elements(dims, strides, offset, protocol):
    memory = np.arange(20, dtype=np.float32)
    tensor = aclnn.aclCreateTensor(
        dims, aclnn.ACL_FLOAT, strides, offset, aclnn.ACL_FORMAT_NCHW, (4, 5), memory
    )
    copied = pickle.loads(pickle.dumps(tensor, protocol))
    assert (copied.dims(), copied.steps()) == (dims, strides)
    assert [getattr(copied, one) for one in FACTS] == [getattr(tensor, one) for one in FACTS]
    if 0 not in dims:
        wanted = np.ndarray(dims, np.float32, memory, 4 * offset, [4 * one for one in strides])
        np.testing.assert_array_equal(values(copied), wanted)


def test_copies_have_memory_of_their_own_and_run():
    x = np.linspace(-3, 3, 6, dtype=np.float32)
    source, target = again(aclnn.tensor(x)), again(aclnn.tensor(np.empty_like(x)))
    wanted = aclnn.gelu(x)
    x[:] = 0
    size, executor, status = aclnn.aclnnGeluGetWorkspaceSize(source, target)
    assert (size, status) == (0, aclnn.ACLNN_SUCCESS)
    assert aclnn.aclnnGelu(None, 0, executor, None) == aclnn.ACLNN_SUCCESS
    np.testing.assert_array_equal(values(target), wanted)
    assert copy.deepcopy(target).owner is not target.owner


def test_read_only_memory_and_none_stay_so():
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    assert not again(aclnn.tensor(x)).writable
    empty = aclnn.aclCreateTensor((3,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (3,), None)
    assert again(empty).owner is None


def test_scalars_and_lists_are_as_before():
    for number, dtype in ((0.1, aclnn.ACL_FLOAT16), (2**62, aclnn.ACL_INT64), (True, aclnn.ACL_BOOL),
                          (1 + 2j, aclnn.ACL_COMPLEX64), (float("inf"), aclnn.ACL_DOUBLE)):  # fmt: skip
        scalar = aclnn.aclCreateScalar(number, dtype)
        copied = again(scalar)
        assert (copied.value, copied.dtype) == (scalar.value, scalar.dtype)
    assert again(aclnn.aclCreateIntArray([1, -2])).numbers() == (1, -2)
    assert again(aclnn.aclCreateFloatArray([0.5])).numbers() == (0.5,)
    assert again(aclnn.aclCreateBoolArray([True, False])).numbers() == (True, False)
    tensors = aclnn.aclCreateTensorList([aclnn.tensor(np.float32([1, 2]))])
    assert repr(again(tensors)) == repr(tensors)
    scalars = aclnn.aclCreateScalarList([aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)])
    assert repr(again(scalars)) == repr(scalars)


def on_device():
    address, status = aclnn.aclrtMalloc(64, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    assert status == aclnn.ACL_SUCCESS
    return aclnn.aclCreateTensor((3,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (3,), address)


def destroyed():
    tensor = aclnn.tensor(np.ones(3, np.float32))
    aclnn.aclDestroyTensor(tensor)
    return tensor


def of_tensors():
    tensor = aclnn.tensor(np.ones(3, np.float32))
    return aclnn.aclnnGeluGetWorkspaceSize(tensor, aclnn.tensor(np.ones(3, np.float32)))[1]


@pytest.mark.parametrize(("make", "words"), [
    (on_device, "a tensor of device memory cannot be pickled: copy it to the host by aclrtMemcpy"),
    (destroyed, "an aclTensor that was destroyed cannot be pickled"),
    (of_tensors, "aclnnGelu: an executor of tensors cannot be pickled; one that is made of arrays"),
])  # fmt: skip
def test_what_cannot_be_pickled_says_what_to_do(make, words):
    one = make()
    with pytest.raises(TypeError) as caught:
        pickle.dumps(one)
    assert str(caught.value).startswith(words)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.filename for frame in frames] == [__file__]
