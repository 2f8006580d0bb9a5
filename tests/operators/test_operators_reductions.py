"""Extremes, their places, products, norms and truth values along dimensions, against NumPy's."""

import math

import numpy as np
import pytest
from calls import BF16, BOOL, FLOATS, WHOLE, empty, numbers, refused, run, scalar, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

NULLPTR, INVALID = 161001, 161002
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.each_instruction_set,
]


def cube(dtype, seed=0):
    x = numbers(dtype, 4 * 5 * 6, seed).reshape(4, 5, 6)
    if dtype.kind not in "iub":
        x[1, 2, 3:5] = np.nan
        x[0, 0, 0] = -np.inf
    x[2, :, 1] = x[2, 0, 1]  # equal elements
    return x


def equal(found, wanted):
    """NaNs of bfloat16 equal each other as those of float64 do."""
    kind = np.float64 if found.dtype == BF16 else found.dtype
    np.testing.assert_array_equal(found.astype(kind), np.asarray(wanted).astype(kind))


def first_place(x, axis, largest):
    """The first NaN, else the first extreme."""
    x = np.moveaxis(x, axis, -1)
    found = np.empty(x.shape[:-1], np.int64)
    for place in np.ndindex(found.shape):
        line = list(x[place])
        nans = [n for n, one in enumerate(line) if one != one]
        found[place] = nans[0] if nans else line.index((max if largest else min)(line))
    return found


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("axis", [0, 1, -1])
def test_extremes_and_their_places(dtype, axis):
    x = cube(dtype)
    for largest, name in ((True, "max_dim"), (False, "min_dim")):
        wanted = first_place(x, axis, largest)
        values, places = getattr(aclnn, name)(x, axis)
        np.testing.assert_array_equal(places, wanted)
        taken = np.take_along_axis(x, np.expand_dims(wanted, axis), axis)
        equal(values, taken.squeeze(axis))
        kept = getattr(aclnn, name)(x, axis, True)
        equal(kept[0], taken)
    np.testing.assert_array_equal(aclnn.argmin(x, axis), first_place(x, axis, False))
    equal(aclnn.amin(x, axis), np.min(x, axis))
    out = np.empty(aclnn.argmin(x, axis).shape, np.int32)
    run("aclnnArgMin", tensor(x), axis, False, tensor(out))
    np.testing.assert_array_equal(out, aclnn.argmin(x, axis))


def test_the_smallest_of_all():
    for dtype in [*FLOATS, *WHOLE, BOOL]:
        x = cube(dtype)
        equal(aclnn.min(x), x.min())
        equal(aclnn.amin(x, (0, 2)), x.min((0, 2)))
    least = np.int64([[-(2**63), 5], [2**63 - 1, 7]])
    np.testing.assert_array_equal(aclnn.amin(least, 1), [-(2**63), 7])
    assert aclnn.min(least) == -(2**63)
    assert aclnn.argmin(least, 0).tolist() == [0, 0]
    out = np.empty(1, np.float16)
    run("aclnnMin", tensor(np.float32([3, 2])), tensor(out))
    assert out[0] == 2
    values, places = np.empty(2, np.float32), np.empty(2, np.int32)
    run(
        "aclnnMinDim",
        tensor(np.float32([[1, 2], [4, 3]])),
        1,
        False,
        tensor(values),
        tensor(places),
    )
    assert (values.tolist(), places.tolist()) == ([1, 3], [0, 1])
    given = np.float32(3).reshape(())
    assert [one.item() for one in aclnn.max_dim(given, 0)] == [3, 0]


@named("dim", [None, 0, (1,), (0, 2), (0, 1, 2)])
def test_truth_values(dim):
    for dtype in [*FLOATS, *WHOLE, BOOL]:
        x = cube(dtype)
        x[0] = 0
        x[1, 1] = 1
        axis = dim if dim is None or isinstance(dim, int) else tuple(dim)
        for name in ("any", "all"):
            found = getattr(aclnn, name)(x, dim)
            assert found.dtype == (np.uint8 if dtype == np.uint8 else np.bool_)
            np.testing.assert_array_equal(
                found.astype(bool), getattr(np, name)(x.astype(bool), axis)
            )
    assert aclnn.all(np.empty((0, 2), np.float32)).item()
    assert not aclnn.any(np.empty((0, 2), np.float32)).item()
    out = np.empty(2, np.uint8)
    run(
        "aclnnAll",
        tensor(np.float32([[1, 0], [2, 3]])),
        aclnn.aclCreateIntArray([1]),
        False,
        tensor(out),
    )
    assert out.tolist() == [0, 1]


@named("dtype", [*FLOATS, *WHOLE, BOOL], ids=str)
def test_products(dtype):
    x = numbers(dtype, 300, 3).reshape(3, 4, 25)
    if dtype.kind not in "iub":
        x = (1 + np.abs(x.astype(np.float64)) % 0.5).astype(dtype)
    for axis in (0, 1, 2):
        found = aclnn.prod(x, axis)
        wide = np.float64 if dtype.kind not in "iub" else np.int64
        wanted = np.prod(x.astype(wide), axis, dtype=wide)
        if dtype == np.float64:
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
        else:
            same = wanted.astype(found.dtype)
            close = np.spacing(np.abs(same)) if found.dtype == np.float32 else 0
            assert (np.abs(found.astype(np.float64) - same.astype(np.float64)) <= close).all()
        assert found.dtype == (np.int64 if dtype.kind in "iub" else dtype)
    flat = aclnn.prod(x[:, :, :2])
    assert flat.shape == ()
    assert aclnn.prod(x[:0]).item() == 1
    asked = aclnn.prod(np.float32([1.5, 2.5]), dtype="int32")
    assert (asked.dtype, asked.item()) == (np.int32, 2)
    out = np.empty(1, np.float32)
    run("aclnnProd", tensor(np.float32([2, 3])), T.ACL_FLOAT, tensor(out))
    assert out[0] == 6


@named("p", [2, 1, 0, math.inf, -math.inf, 3, 0.5, -1, 2**31])
def test_norms(p):
    x = numbers(np.dtype(np.float32), 240, 4).reshape(4, 5, 12)
    for dim in ((1,), (0, 2), (-1,), None):
        axis = dim if dim is None else tuple(dim)
        size = np.abs(x.astype(np.float64))
        if abs(p) >= 2**31 - 1:
            wanted = size.max(axis) if p > 0 else size.min(axis)
        elif p == 0:
            wanted = (size != 0).sum(axis)
        else:
            wanted = (size**p).sum(axis) ** (1 / p)
        for name in ("norm", "linalg_vector_norm"):
            np.testing.assert_allclose(getattr(aclnn, name)(x, p, dim), wanted, rtol=1.3e-7)
    half = x.astype(np.float16)
    exact = aclnn.linalg_vector_norm(half.astype(np.float64), p, (2,)).astype(np.float16)
    np.testing.assert_array_equal(aclnn.norm(half, p, (2,)), exact)
    assert aclnn.norm(x[:0], p).item() == 0
    with_nan = x[0].copy()
    with_nan[0, 0] = np.nan
    assert np.isnan(aclnn.norm(with_nan, p).item()) == (p != 0)


def test_norms_in_both_phases_and_checks():
    x, out = np.float32([[3, 4]]), np.empty((1, 1), np.float32)
    one = aclnn.aclCreateIntArray([1])
    run("aclnnNorm", tensor(x), scalar(2.0, T.ACL_FLOAT), one, True, tensor(out))
    assert out[0, 0] == 5
    wide = np.empty(1, np.float32)
    run(
        "aclnnLinalgVectorNorm",
        tensor(x.astype(np.float16)),
        scalar(1, T.ACL_INT64),
        one,
        False,
        T.ACL_FLOAT,
        tensor(wide),
    )
    assert wide[0] == 7
    two = scalar(2.0, T.ACL_FLOAT)
    assert refused("aclnnNorm", empty(), None, one, False, empty((2,)))[0] == NULLPTR
    assert (
        refused("aclnnNorm", empty(), two, aclnn.aclCreateIntArray([2]), False, empty((2,)))[0]
        == INVALID
    )
    assert (
        "must be"
        in refused("aclnnLinalgVectorNorm", empty(), two, one, False, T.ACL_FLOAT16, empty((2,)))[1]
    )
    assert (
        refused("aclnnAmin", empty((0, 2)), aclnn.aclCreateIntArray([0]), False, empty((2,)))[0]
        == INVALID
    )
    assert refused("aclnnMaxDim", empty(), 1, False, empty((2,)), empty((2,)))[0] == INVALID
    assert refused("aclnnProd", empty(), T.ACL_FLOAT16, empty((1,)))[0] == INVALID


def test_threads_and_strides_change_no_bit():
    x = numbers(np.dtype(np.float32), 64 * 1000, 5).reshape(64, 1000)
    for call in (
        lambda x: aclnn.prod(x, 1),
        lambda x: aclnn.norm(x, 2, 1),
        lambda x: aclnn.norm(x, 3, 1),
    ):
        found, before = [], aclnn.get_num_threads()
        for threads in (1, 3):
            aclnn.set_num_threads(threads)
            found += [call(x), call(np.asfortranarray(x)), call(x[::-1])[::-1], call(x[5:6])]
        aclnn.set_num_threads(before)
        for other in found[1:]:
            wanted = found[0][5:6] if len(other) == 1 else found[0]
            np.testing.assert_array_equal(other, wanted)


LONE = {
    "Max": ((), np.max, None),
    "Min": ((), np.min, None),
    "Mean": ((aclnn.aclCreateIntArray([0]), False, T.ACL_FLOAT), np.mean, None),
    "ArgMax": ((0, False), np.argmax, np.int64),
    "ArgMin": ((0, False), np.argmin, np.int64),
    "Any": ((aclnn.aclCreateIntArray([0]), False), np.any, np.bool_),
    "All": ((aclnn.aclCreateIntArray([0]), False), np.all, np.bool_),
    "ReduceSum": ((aclnn.aclCreateIntArray([0]), False, T.ACL_FLOAT), np.sum, None),
    "Prod": ((T.ACL_FLOAT,), np.prod, None),
}


@named("name", LONE)
@named("shape", [(), (1,)])
def test_results_without_dimensions_may_have_one(name, shape):
    """One of one element, in C-shaped calls."""
    options, function, dtype = LONE[name]
    x = np.float32([3, -2, 0, 4.5])
    out = np.zeros(shape, dtype or np.float32)
    run(f"aclnn{name}", tensor(x), *options, tensor(out))
    assert out.tolist() == np.full(shape, function(x)).tolist()
    status, message = refused(f"aclnn{name}", tensor(x), *options, tensor(np.zeros(2, out.dtype)))
    assert status == 161002
    assert "has shape (2,)" in message


@named("name", ["MaxDim", "MinDim"])
@named("shapes", [((1,), (1,)), ((1,), ()), ((), (1,)), ((), ())])
def test_extremes_without_dimensions_may_have_one(name, shapes):
    x = np.float32([3, -2, 0, 4.5])
    out, places = np.zeros(shapes[0], np.float32), np.zeros(shapes[1], np.int64)
    for input_ in (x, np.float32(7)):
        run(f"aclnn{name}", tensor(input_), 0, False, tensor(out), tensor(places))
        place = (np.argmax if name == "MaxDim" else np.argmin)(input_)
        assert out.reshape(()) == input_.reshape(-1)[place]
        assert places.reshape(()) == place
    for wrong in ((2,), (1, 1)):
        long = tensor(np.zeros(wrong, np.int64))
        assert refused(f"aclnn{name}", tensor(x), 0, False, tensor(out), long)[0] == 161002
