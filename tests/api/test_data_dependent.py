"""Functional forms whose results have the size that data decide, beside NumPy's and PyTorch's."""

import ml_dtypes
import numpy as np
import pytest
from cases import each

import aclnn

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int64, np.uint8, bool)
SHAPES = ((), (0,), (5,), (3, 0), (4, 7), (2, 3, 5), (1, 1, 2, 3, 2))


def sparse(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, shape)
    return np.asarray(values, np.float64).astype(dtype)


@each("dtype", DTYPES)
@each("shape", SHAPES)
def test_nonzero_is_numpys(shape, dtype):
    x = sparse(shape, dtype)
    found = aclnn.nonzero(x)
    assert found.dtype == np.int64
    expected = np.argwhere(x.astype(bool))
    assert found.shape == expected.shape
    assert (found == expected).all()
    of_each = aclnn.nonzero(x, as_tuple=True)
    wanted = np.nonzero(np.atleast_1d(x).astype(bool))
    assert len(of_each) == len(wanted)
    assert all((a == b).all() and a.shape == b.shape for a, b in zip(of_each, wanted, strict=True))


@each("dtype", DTYPES)
@each("shape", SHAPES)
def test_masked_select_is_numpys(shape, dtype):
    x, mask = sparse(shape, dtype), sparse(shape, bool, 1)
    found = aclnn.masked_select(x, mask)
    assert found.dtype == x.dtype
    assert found.tobytes() == np.atleast_1d(x)[np.atleast_1d(mask)].tobytes()


def test_masks_broadcast():
    x, mask = sparse((4, 7), np.float32), sparse((4, 1), bool, 1)
    expected = x[np.broadcast_to(mask, x.shape)]
    assert aclnn.masked_select(x, mask).tobytes() == expected.tobytes()


def test_results_have_no_more_memory_than_they_need():
    x = np.zeros(1000, np.float32)
    x[17] = 1
    for found in (
        aclnn.nonzero(x),
        *aclnn.nonzero(x, as_tuple=True),
        aclnn.masked_select(x, x > 0),
    ):
        assert found.size == 1
        assert found.base is None or found.base.size == 1, "a view of more"


def test_tensors_of_pytorch_give_tensors():
    torch = pytest.importorskip("torch")
    for shape in SHAPES:
        x = torch.from_numpy(sparse(shape, np.float32))
        assert torch.equal(aclnn.nonzero(x), torch.nonzero(x))
        pairs = zip(aclnn.nonzero(x, as_tuple=True), torch.nonzero(x, as_tuple=True), strict=True)
        assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
        assert torch.equal(aclnn.masked_select(x, x > 1), torch.masked_select(x, x > 1))


def test_what_is_no_array_is_refused():
    with pytest.raises(aclnn.AclnnError, match="must be an array"):
        aclnn.nonzero("text")
    with pytest.raises(aclnn.AclnnError, match="do not broadcast"):
        aclnn.masked_select(np.ones((2, 2), np.float32), np.bool_([True, False, True]))
    with pytest.raises(aclnn.AclnnError, match="traced array"):
        aclnn.compile(aclnn.nonzero)(np.ones(3, np.float32))
