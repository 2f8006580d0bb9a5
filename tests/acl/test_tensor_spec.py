"""The description of a tensor in Python: memory and overlaps as NumPy sees them."""

import pickle

import numpy as np
import pytest

from aclnn.acl import dtypes
from aclnn.acl._tensor_spec import TensorSpec
from aclnn.acl.constants import aclDataType

DISJOINT, IDENTICAL, PARTIAL = range(3)
MEMORY = np.zeros(64, np.float32)
VIEWS = [
    MEMORY[:8], MEMORY[4:12], MEMORY[8:16], MEMORY[7::-1], MEMORY[:16:2], MEMORY[1:17:2],
    MEMORY[:32].reshape(4, 8), MEMORY[:32].reshape(8, 4).T, MEMORY[40:48].reshape(1, 8), MEMORY[5:5],
    np.broadcast_to(MEMORY[3:4], (8,)), MEMORY[:8].view(np.int32), MEMORY[:8].view(np.int16),
]  # fmt: skip


def spec_of(array):
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return TensorSpec(
        dtypes.of_numpy(array.dtype), array.shape, strides, address=array.ctypes.data, owner=array
    )


def bounds(array):
    if array.size == 0:
        return array.ctypes.data, array.ctypes.data
    ends = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low = array.ctypes.data + sum(min(end, 0) for end in ends)
    return low, array.ctypes.data + sum(max(end, 0) for end in ends) + array.itemsize


@pytest.mark.parametrize("array", VIEWS)
def test_extents_are_those_of_the_array(array):
    spec = spec_of(array)
    assert (spec.low, spec.high) == bounds(array)
    assert (spec.size, spec.itemsize, spec.nbytes) == (array.size, array.itemsize, array.nbytes)
    assert spec.is_empty == (array.size == 0)


@pytest.mark.parametrize("array", VIEWS)
def test_overlaps_are_as_numpy_bounds_them(array):
    for other in VIEWS:
        found = spec_of(array).overlap(spec_of(other))
        assert (found == DISJOINT) == (not np.may_share_memory(array, other))
        if found == IDENTICAL:
            assert (array.ctypes.data, array.shape) == (other.ctypes.data, other.shape)
        elif array is other and array.size:
            pytest.fail("an array overlaps itself exactly")


def test_a_description_without_memory_overlaps_nothing():
    spec = spec_of(MEMORY[:8])
    assert spec.overlap(spec.without_memory()) == spec.without_memory().overlap(spec) == DISJOINT


def test_descriptions_compare_by_all_but_the_owner():
    one, other = spec_of(MEMORY[:8]), spec_of(MEMORY[:8])
    assert one == other
    assert hash(one) == hash(other)
    assert one != spec_of(MEMORY[1:9])
    assert one != one.changed(dtype=aclDataType.ACL_INT32)
    assert one != one.without_memory()
    assert one.changed(shape=(2, 4), strides=(4, 1)).shape == (2, 4)


def test_pickles_hold_no_memory():
    spec = TensorSpec(aclDataType.ACL_BF16, (2, 3), (1, 2), 1, writable=False)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(spec_of(MEMORY))).address == 0


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((1,) * 9, (1,) * 9), ((2**62, 4, 2**62), (2**64, 2**62, 1)), ((3,), ())],
)
def test_rules_see_what_no_plan_can_have(shape, strides):
    spec = TensorSpec(aclDataType.ACL_FLOAT, shape, strides)
    assert (spec.shape, spec.strides) == (shape, strides)
    assert spec.size == np.prod(np.array(shape, object))
