"""NumPy's functions in compiled functions: its results, or a reason with the line."""

import copy
import io
import math
import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest
from cases import each

import aclnn

RNG = np.random.default_rng(3)
FLOATS = [np.float32, np.float16, np.float64]

MOVES = {
    "tril": lambda x: (np.tril(x), np.tril(x, 1), np.tril(x, k=-1)),
    "triu": lambda x: (np.triu(x), np.triu(x, -1)),
    "repeat": lambda x: (np.repeat(x, 3), np.repeat(x, 2, axis=1), x.repeat(2, 0), x.repeat(0, -1)),
    "tile": lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 3, 1)), np.tile(x, (2,))),
    "pad": lambda x: (np.pad(x, 1), np.pad(x, ((1, 2), (0, 1), (3, 0))), np.pad(x, (2, 0), constant_values=7)),
    "split": lambda x: (*np.split(x, 2), *np.split(x, [1, 3], axis=1), *np.split(x, 5, -1)),
    "array_split": lambda x: (*np.array_split(x, 3), *np.array_split(x, 4, axis=2)),
    "hsplit": lambda x: (*np.hsplit(x, 3), *np.vsplit(x, 2), *np.dsplit(x, 5)),
    "take": lambda x: (np.take(x, 3), np.take(x, -1, axis=1), x.take(2, 2)),
    "flip": lambda x: (np.flip(x), np.flip(x, 0), np.fliplr(x), np.flipud(x), np.flip(x, (0, -1))),
    "roll": lambda x: (np.roll(x, 2), np.roll(x, -1, axis=1), np.roll(x, 7, axis=2), np.roll(x, 0, 0)),
    "stack": lambda x: (np.stack([x, x]), np.stack([x, x * 1], axis=-1), np.vstack([x, x]), np.hstack([x, x])),
    "concatenate": lambda x: (np.concatenate([x, x], axis=-1), np.concatenate([x, x], axis=None)),
    "expand_dims": lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (1, -1)), np.squeeze(x[:1])),
    "moveaxis": lambda x: (np.moveaxis(x, 0, -1), np.moveaxis(x, (0, 1), (1, 0)), np.swapaxes(x, 0, 2)),
    "transpose": lambda x: (np.transpose(x), np.transpose(x, (1, 0, 2)), np.matrix_transpose(x)),
    "reshape": lambda x: (np.reshape(x, (3, -1)), np.ravel(x.T), np.broadcast_to(x[:1], (4, 3, 5))),
    "like": lambda x: (np.zeros_like(x), np.ones_like(x, dtype=np.int32), np.full_like(x, 2.5), np.copy(x)),
    "where": lambda x: (np.where(x > 0, x, 0.1), np.where(x, 1, x), np.where(x > 0, 1, 2.5), np.where(x > 0, 3, 4)),
    "clip": lambda x: (np.clip(x, -0.1, 0.1), x.clip(0), np.clip(x, None, 0.3), np.clip(x, x * 0, x * 2), np.clip(x, 0.5, -0.5), np.clip(x, np.nan, 1)),
    "argmax": lambda x: (np.argmax(x), np.argmax(x, 0), x.argmax(-1), np.argmax(x, axis=1, keepdims=True), np.argmax(x, keepdims=True)),
    "astype": lambda x: (np.astype(x, np.float64), x.astype("float32")),
}  # fmt: skip


def compared(function, *arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*[x.copy() for x in arrays])
    found = aclnn.compile(function)(*arrays)
    pairs = list(zip(found, expected, strict=True))
    for place, (one, wanted) in enumerate(pairs):
        assert (one.dtype, one.shape) == (np.asarray(wanted).dtype, np.shape(wanted)), place
    return pairs


@pytest.mark.parametrize("name", MOVES)
@each("dtype", [*FLOATS, ml_dtypes.bfloat16, np.int8, np.int64, np.bool_])
def test_functions_that_move_elements_are_numpys(name, dtype):
    if name in ("clip", "like", "where") and dtype in (
        np.bool_,
        ml_dtypes.bfloat16,
        np.int8,
        np.int64,
    ):
        return
    x = (RNG.standard_normal((4, 3, 5)) * 3).astype(dtype)
    for one, wanted in compared(MOVES[name], x):
        np.testing.assert_array_equal(one, wanted)
    for one, wanted in compared(MOVES[name], x[::-1, :, ::-1]):
        np.testing.assert_array_equal(one, wanted)


SUMS = {
    "cumsum": lambda x: (np.cumsum(x), np.cumsum(x, 1), x.cumsum(-1), np.cumsum(x, axis=0, dtype=np.float64)),
    "sum": lambda x: (np.sum(x), x.sum(1), np.sum(x, axis=(0, 2), keepdims=True), np.add.reduce(x), x.sum(dtype=np.float64)),
    "mean": lambda x: (np.mean(x), x.mean(0), np.mean(x, (1, 2))),
    "var": lambda x: (np.var(x), x.var(1, ddof=1), np.std(x), np.std(x, axis=0), x.std(-1)),
    "max": lambda x: (np.max(x), x.max(1), np.amax(x, axis=(0, 2), keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
@each("dtype", [*FLOATS, np.int8, np.uint8, np.int32, np.int64, np.bool_])
def test_reductions_have_numpys_dtypes(name, dtype):
    x = (RNG.standard_normal((4, 3, 5)) * 3).astype(dtype)
    exact = np.dtype(dtype).kind in "biu" and name in ("cumsum", "sum", "max")
    for one, wanted in compared(SUMS[name], x):
        if exact:
            np.testing.assert_array_equal(one, wanted)
        rtol = 2e-2 if one.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(one.astype(float), wanted.astype(float), rtol=rtol, atol=rtol)


def test_products_are_numpys():
    def products(a, b, v):
        return (
            np.dot(a, b),
            a.dot(v),
            np.dot(v, v),
            np.inner(v, v),
            np.inner(a, a),
            np.outer(v, v),
            np.dot(v[0], a),
        )

    a, b, v = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 5), (4,)))
    for one, wanted in compared(products, a, b, v):
        np.testing.assert_allclose(one, wanted, rtol=1e-5)


def test_indices_count_from_the_end_too():
    def choices(x, i, j):
        places = np.argmax(x, axis=1, keepdims=True)
        return np.take(x, i, axis=1), np.take(x, i), x.take(j, 0), np.take_along_axis(x, places, 1)

    x = RNG.standard_normal((4, 6)).astype(np.float32)
    for kind in (np.int64, np.int32, np.int8, np.uint8):
        i = np.array([[0, 5], [3, 1]]).astype(kind)
        j = np.array([0, 3, 1]).astype(kind)
        if np.dtype(kind).kind == "i":
            i, j = i - kind(6), j - kind(4)
        for one, wanted in compared(choices, x, i, j):
            np.testing.assert_array_equal(one, wanted)
    with pytest.raises(aclnn.AclnnError):
        aclnn.compile(choices)(x, np.array([[6]]), j)


def test_parts_of_a_split_are_views():
    def f(x):
        first, second = np.split(x, 2)
        first += 1
        second[...] = first
        return x * 1

    for one, wanted in zip(
        aclnn.compile(f)(np.ones((4, 2), np.float32)), f(np.ones((4, 2), np.float32)), strict=True
    ):
        np.testing.assert_array_equal(one, wanted)


REFUSED = {
    "repeats": (lambda x: np.repeat(x, [1, 2, 3]), "one integer"),
    "padding": (lambda x: np.pad(x, 1, mode="edge"), "constant"),
    "negative padding": (lambda x: np.pad(x, -1), "negative"),
    "unequal": (lambda x: np.split(x, 2), "equal division"),
    "a vector": (lambda x: np.tril(x[0]), "fewer than 2"),
    "batches": (lambda x: np.dot(x, np.stack([x, x])), "np.dot of 2 and 3"),
    "dot of a number": (lambda x: x.dot(2), r"np.dot of a number .* \* multiplies"),
    "inner of a number": (lambda x: np.inner(x, 2.5), r"np.dot of a number .* \* multiplies"),
    "an axis": (lambda x: np.cumsum(x, 2), "out of bounds"),
    "no axis": (lambda x: np.concatenate([x, x], axis=5), "out of bounds"),
    "an option": (lambda x: np.sum(x, where=x > 0), "where"),
    "a mode": (lambda x: np.take(x, 1, mode="wrap"), "wrap"),
    "real indices": (lambda x: np.take(x, x), "integers"),
    "a sort": (lambda x: np.sort(x), "np.sort has no counterpart"),
    "a method": (lambda x: x.argsort(), "argsort"),
    "memory": (lambda x: np.asarray(x), "the memory"),
    "a copy of memory": (lambda x: np.array([x, x]), "the memory"),
    "a memoryview": (lambda x: memoryview(x), "the memory"),
    "a buffer": (lambda x: np.frombuffer(x), "the memory"),
    "bytes": (lambda x: x.tobytes(), "the memory"),
    "more bytes": (lambda x: bytes(x), "the memory"),
    "a file": (lambda x: io.BytesIO().write(x), "the memory"),
    "data": (lambda x: x.data, "data"),
    "an interface": (lambda x: x.__array_interface__, "the memory"),
    "dlpack": (lambda x: np.from_dlpack(x), "the memory"),
    "a device": (lambda x: x.__dlpack_device__(), "the memory"),
    "an item of another array": (lambda x: np.zeros((3, 3)).__setitem__(0, x), "the memory"),
    "a pickle": (lambda x: pickle.dumps(x), "a pickle"),
    "a float": (lambda x: float(x), "a number"),
    "a root": (lambda x: math.sqrt(x), "a number"),
    "a rounded number": (lambda x: round(x), "a number"),
    "a text": (lambda x: f"{x:.2f}", "a number"),
    "an order": (lambda x: sorted(x), "truth value"),
}  # fmt: skip


@each("name", list(REFUSED))
def test_what_cannot_be_recorded_names_the_line(name):
    function, words = REFUSED[name]
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        aclnn.compile(function)(np.ones((3, 3), np.float32))
    assert f"test_numpy_functions.py:{function.__code__.co_firstlineno}" in str(caught.value)


def test_copies_are_copies():
    def f(x):
        first, second = copy.copy(x), copy.deepcopy(x)
        first += 1
        second *= 3
        return first, second, x * 1

    for one, wanted in compared(f, np.ones(3, np.float32)):
        np.testing.assert_array_equal(one, wanted)
