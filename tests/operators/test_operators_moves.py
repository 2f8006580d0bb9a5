"""Embedding and gathers, pieces, margins, triangles, fills, and reductions, against NumPy and PyTorch."""

import itertools

import ml_dtypes
import numpy as np
import pytest
import references
import wide
from calls import (
    BF16,
    BOOL,
    COMPLEX,
    FLOATS,
    REAL,
    empty,
    numbers,
    refused,
    run,
    scalar,
    tensor,
)
from cases import each as named

import aclnn
from aclnn import aclDataType as T

OK, NULLPTR, INVALID = 0, 161001, 161002
ALL = [*REAL, *COMPLEX]
same = np.testing.assert_array_equal


def filled(dtype, shape, seed=0):
    return numbers(dtype, int(np.prod(shape)), seed).reshape(shape)


def layouts(x):
    """The same numbers row-major, turned around, with gaps, and with the dimensions backwards."""
    yield x
    yield np.ascontiguousarray(x[::-1])[::-1]
    wide_one = np.zeros([2 * n for n in x.shape], x.dtype)
    view = wide_one[tuple(slice(None, None, 2) for _ in x.shape)]
    view[...] = x
    yield view
    yield np.asfortranarray(x)


# --- Indices --------------------------------------------------------------------------------------


@named("dtype", ALL, ids=str)
@named("kind", [np.int32, np.int64])
def test_embedding(dtype, kind):
    rng = np.random.default_rng(0)
    for table in layouts(filled(dtype, (10, 7))):
        for shape in ((), (4,), (3, 2, 5)):
            index = rng.integers(0, 10, shape).astype(kind)
            found = aclnn.embedding(table, index)
            same(found.view(np.uint8), np.ascontiguousarray(table[index]).view(np.uint8))


@named("dtype", [np.dtype(np.float32), np.dtype(np.int8), BF16, BOOL, COMPLEX[1]], ids=str)
@named("dim", [0, 1, 2, -1, -3])
def test_slices_put_where_indices_say(dtype, dim):
    rng = np.random.default_rng(1)
    for x in layouts(filled(dtype, (4, 5, 6))):
        size = x.shape[dim]
        for index in (rng.permutation(size)[:3], np.int32([3]), np.array([1, 2, 1]), np.int64([])):
            source = np.take(x, (index + 1) % size, dim)
            wanted = x.copy()
            np.moveaxis(wanted, dim, 0)[index] = np.moveaxis(source, dim, 0)
            same(aclnn.index_copy(x, dim, index, source), wanted)
            own = x.copy()
            assert aclnn.index_copy_(own, dim, index, source) is own
            same(own, wanted)


def test_slices_put_where_no_index_is_right():
    x, source = np.zeros((3, 2), np.float32), np.ones((1, 2), np.float32)
    for bad in (3, -1, 2**40):
        with pytest.raises(aclnn.AclnnError, match=f"an index is {bad}"):
            aclnn.index_copy_(x, 0, np.int64([bad]), source)
        assert not x.any()
    with pytest.raises(aclnn.AclnnError, match="source has shape"):
        aclnn.index_copy(x, 0, np.int64([0, 1]), source)
    with pytest.raises(aclnn.AclnnError, match="source has dtype"):
        aclnn.index_copy(x, 0, np.int64([0]), source.astype(np.float16))
    with pytest.raises(aclnn.AclnnError, match="index has 2 dimensions"):
        aclnn.index_copy(x, 0, np.int64([[0]]), source)
    same(aclnn.index_copy(np.float32(1.0), 0, np.int64(0), np.float32(2.0)), np.float32(2.0))


@named("dtype", [np.dtype(np.float32), BF16, BOOL, COMPLEX[1]], ids=str)
@named("dim", [0, 1, 2, -1, -3])
def test_slices_by_their_indices(dtype, dim):
    rng = np.random.default_rng(1)
    for x in layouts(filled(dtype, (4, 5, 6))):
        for index in (
            rng.integers(0, 4, 9),
            np.int32([3]),
            np.int64(2),
            rng.integers(0, 4, 18)[::-2],
        ):
            wanted = np.take(x, np.atleast_1d(index), dim)
            if index.ndim == 1:
                same(aclnn.index_select(x, dim, index), wanted)
            same(aclnn.gather_v2(x, dim, index), np.take(x, index, dim))
        two = rng.integers(0, 4, (2, 3)).T
        same(aclnn.gather_v2(x, dim, two), np.take(x, two, dim))


@named("dtype", [np.dtype(np.float32), BF16, BOOL, COMPLEX[1]], ids=str)
@named("dim", [0, 1, 2, -1])
def test_gather(dtype, dim):
    rng = np.random.default_rng(2)
    for x in layouts(filled(dtype, (4, 5, 6))):
        for shape in ((4, 5, 6), (2, 3, 1), (1, 1, 3), (3, 4, 5)):
            index = rng.integers(0, 4, shape)
            places = list(np.indices(shape))
            places[dim] = index
            wanted = x[tuple(places)]
            for one in (index, np.asfortranarray(index.astype(np.int32))):
                same(aclnn.gather(x, dim, one), wanted)
    more = rng.integers(0, 4, (4, 5, 9)) if dim in (2, -1) else rng.integers(0, 4, (4, 5, 6))
    assert aclnn.gather(x, dim, more).shape == more.shape


@pytest.mark.parametrize("threads", [1, 2])
def test_many_indices_on_threads(threads, threads_as_before):
    aclnn.set_num_threads(threads)
    rng = np.random.default_rng(3)
    table, index = filled(FLOATS[0], (1000, 300)), rng.integers(0, 1000, (20, 400))
    same(aclnn.embedding(table, index), table[index])
    places = rng.integers(0, 300, (1000, 300))
    same(aclnn.gather(table, 1, places), np.take_along_axis(table, places, 1))


@pytest.fixture
def threads_as_before():
    before = aclnn.get_num_threads()
    yield
    aclnn.set_num_threads(before)


@named("bad", [-1, 5, 2**31 - 1, -(2**31), 2**62, -(2**63)])
@named("place", [0, 3, -1])
def test_indices_out_of_range(bad, place):
    """Of a table in the middle of memory that must not be read: it would be found in no page."""
    table = np.ones((5, 4), np.float32)
    kind = np.int64 if abs(bad) > 2**31 - 1 else np.int32
    index = np.zeros(6, kind)
    index[place] = bad
    out = np.zeros((6, 4), np.float32)
    calls = {
        "embedding": lambda: aclnn.embedding(table, index, out=out),
        "index_select": lambda: aclnn.index_select(table, 0, index, out=out),
        "gather_v2": lambda: aclnn.gather_v2(table, 0, index),
        "gather": lambda: aclnn.gather(table, 0, index[:, None]),
    }
    for name, call in calls.items():
        # Those of gathers count from the end where they are negative.
        first = -5 if "gather" in name else 0
        if bad == -1 and first:
            continue
        with pytest.raises(aclnn.AclnnError) as caught:
            call()
        assert caught.value.status == INVALID
        assert caught.value.message == f"{name}: an index is {bad}, must be from {first} to 4"
    index[place] = 4
    same(aclnn.embedding(table, index), table[index])


def test_indices_out_of_range_on_threads_and_streams(threads_as_before):
    aclnn.set_num_threads(2)
    table, index = np.ones((100, 300), np.float32), np.zeros(4000, np.int64)
    index[3999] = 100
    with pytest.raises(aclnn.AclnnError, match="an index is 100, must be from 0 to 99"):
        aclnn.embedding(table, index)
    out = np.zeros((4000, 300), np.float32)
    made = [tensor(one) for one in (table, index, out)]
    size, executor, status = aclnn.aclnnEmbeddingGetWorkspaceSize(*made)
    assert status == OK
    assert (
        aclnn.aclnnEmbedding(np.empty(size, np.uint8) if size else None, size, executor, None)
        == INVALID
    )
    stream, _ = aclnn.aclrtCreateStream()
    _, executor, _ = aclnn.aclnnEmbeddingGetWorkspaceSize(*made)
    assert aclnn.aclnnEmbedding(None, 0, executor, stream) == OK
    assert aclnn.aclrtSynchronizeStream(stream) != OK
    aclnn.aclrtDestroyStream(stream)


def test_traced_gathers():
    table, index = filled(FLOATS[0], (9, 4)), np.int64([[1, 8], [0, 3]])

    @aclnn.compile
    def looked_up(table, index):
        return aclnn.silu(aclnn.embedding(table, index)) + 1

    same(looked_up(table, index), aclnn.silu(table[index]) + np.float32(1))
    with pytest.raises(aclnn.AclnnError, match="an index is 9"):
        looked_up(table, index + 1)


def test_the_checks_of_indices():
    table, index = empty((5, 4)), empty((3,), T.ACL_INT64)
    out = empty((3, 4))
    assert refused("aclnnEmbedding", None, index, out)[0] == NULLPTR
    assert "indices has dtype FLOAT" in refused("aclnnEmbedding", table, empty((3,)), out)[1]
    assert "out has dtype" in refused("aclnnEmbedding", table, index, empty((3, 4), T.ACL_INT8))[1]
    assert "must have 2" in refused("aclnnEmbedding", empty((5,)), index, out)[1]
    assert "out has shape" in refused("aclnnEmbedding", table, index, empty((3, 5)))[1]
    assert "no elements" in refused("aclnnEmbedding", empty((0, 4)), index, out)[1]
    assert "dim is 2" in refused("aclnnIndexSelect", table, 2, index, out)[1]
    two = empty((3, 1), T.ACL_INT64)
    assert "must have 0 to 1" in refused("aclnnIndexSelect", table, 0, two, out)[1]
    assert "as many as self" in refused("aclnnGather", table, 0, index, empty((3,)))[1]
    wide_one = empty((5, 5), T.ACL_INT64)
    assert "larger than that of" in refused("aclnnGather", table, 0, wide_one, empty((5, 5)))[1]
    assert refused("aclnnGather", table, 0, two, empty((3, 2)))[0] == INVALID
    assert aclnn.embedding(np.ones((0, 4), np.float32), np.zeros(0, np.int64)).shape == (0, 4)


# --- Pieces, repetitions, margins, stacks, triangles ----------------------------------------------


# One of each size: elements of one size are moved by the same kernels, so that of other dtypes some
# of the ways show as much.
OF_EACH_SIZE = [next(d for d in ALL if d.itemsize == size) for size in (1, 2, 4, 8, 16)]


def ways(dtype, *choices):
    """All combinations, or for a dtype that is not of each size every seventh."""
    every = list(itertools.product(*choices))
    return every if dtype in OF_EACH_SIZE else every[::7]


@named("dtype", ALL, ids=str)
def test_slice(dtype):
    for x in layouts(filled(dtype, (7, 5))):
        for dim, start, end, step in ways(
            dtype, (0, 1, -1), (0, 2, -3, 9), (2**63 - 1, 4, -1, 0), (1, 2, 9)
        ):
            chosen = [slice(None)] * 2
            chosen[dim] = slice(start, end, step)
            same(aclnn.slice(x, dim, start, end, step), x[tuple(chosen)])
    out = np.zeros((3, 5), dtype)
    run("aclnnSlice", tensor(x), 0, 1, 7, 2, tensor(out))
    same(out, x[1:7:2])


def test_the_checks_of_slice():
    x = empty((7, 5))
    assert "step is 0" in refused("aclnnSlice", x, 0, 0, 5, 0, x)[1]
    assert "dim is 2" in refused("aclnnSlice", x, 2, 0, 5, 0, x)[1]
    assert "has no dimensions" in refused("aclnnSlice", empty(()), 0, 0, 5, 1, empty(()))[1]
    assert "out has shape" in refused("aclnnSlice", x, 0, 0, 5, 1, x)[1]


@named("dtype", ALL, ids=str)
def test_split(dtype):
    """Into as many results as there are pieces; empty ones count."""
    for x in layouts(filled(dtype, (7, 6))):
        for dim, size in itertools.product((0, 1, -1), (1, 2, 3, 7, 9)):
            found = aclnn.split(x, size, dim)
            wanted = np.split(x, range(size, x.shape[dim], size), dim)
            assert isinstance(found, tuple)
            assert len(found) == len(wanted)
            for one, other in zip(found, wanted, strict=True):
                same(one, other)
        found = aclnn.split_with_sizes(x, (3, 0, 4))
        for one, other in zip(found, np.split(x, [3, 3]), strict=True):
            same(one, other)
    assert len(aclnn.split(np.arange(200), 1)) == 200


def test_split_into_given_tensors():
    x = filled(FLOATS[0], (5, 6))
    wanted = np.split(x, [2, 4])

    def room():
        return [np.zeros((2, 6), np.float32), np.zeros((2, 12), np.float32)[:, ::2], x[:1] * 0]

    out = tuple(room())
    assert aclnn.split(x, 2, out=out) is out
    for one, other in zip(out, wanted, strict=True):
        same(one, other)
    for name, given in (
        ("aclnnSplitTensor", 2),
        ("aclnnSplitWithSize", aclnn.aclCreateIntArray([2, 2, 1])),
    ):
        out = room()
        run(name, tensor(x), given, 0, aclnn.aclCreateTensorList([tensor(one) for one in out]))
        for one, other in zip(out, wanted, strict=True):
            same(one, other)
    store = np.arange(12, dtype=np.float32)
    aclnn.split(store[:6], 2, out=(store[1:3], store[7:9], store[3:5]))
    same(store, [0, 0, 1, 4, 5, 5, 6, 2, 3, 9, 10, 11])


def test_traced_splits():
    x = filled(FLOATS[0], (5, 6))

    @aclnn.compile
    def sums(x):
        a, b, c = aclnn.split(x, 2, 1)
        (whole,) = aclnn.split_with_sizes(x, (6,), 1)
        return a * b + c, whole

    found, whole = sums(x)
    same(found, x[:, :2] * x[:, 2:4] + x[:, 4:])
    same(whole, x)


def test_the_checks_of_split():
    x, listed = empty((5, 6)), aclnn.aclCreateTensorList
    pair, ints = listed([empty((3, 6)), empty((2, 6))]), aclnn.aclCreateIntArray
    assert refused("aclnnSplitTensor", x, 3, 0, None)[0] == NULLPTR
    assert "out is empty" in refused("aclnnSplitTensor", x, 3, 0, listed([]))[1]
    assert "splitSections is 0" in refused("aclnnSplitTensor", x, 0, 0, pair)[1]
    assert "dim is 2" in refused("aclnnSplitTensor", x, 3, 2, pair)[1]
    assert "2 tensors for results, but 3 pieces" in refused("aclnnSplitTensor", x, 2, 0, pair)[1]
    assert "out[0] has shape (3, 6)" in refused("aclnnSplitTensor", x, 4, 0, pair)[1]
    wrong = listed([empty((3, 6)), empty((2, 6), T.ACL_INT8)])
    assert "out[1] has dtype INT8" in refused("aclnnSplitTensor", x, 3, 0, wrong)[1]
    for bad in ([2, 2], [-1, 6], []):
        assert "splitSize is" in refused("aclnnSplitWithSize", x, ints(bad), 0, pair)[1]


@named("dtype", ALL, ids=str)
def test_expand_and_repeat(dtype):
    for x in layouts(filled(dtype, (3, 1, 2))):
        for size in ((3, 4, 2), (2, -1, 3, -1), (3, 1, 2), (0, 3, 1, 2), (-1, 0, -1)):
            kept = [n if n != -1 else m for n, m in zip(size[-3:], x.shape, strict=True)]
            same(aclnn.expand(x, size), np.broadcast_to(x, (*size[:-3], *kept)))
        for repeats in ((2, 3, 4), (1, 1, 1), (2, 1, 3, 2), (1, 2, 1), (2, 0, 1), (3, 1, 1)):
            same(aclnn.repeat(x, repeats), np.tile(x, repeats))
    out = np.zeros((6, 4, 4), dtype)[::-1]
    aclnn.repeat(x, (2, 4, 2), out=out)
    same(out, np.tile(x, (2, 4, 2)))
    same(aclnn.repeat(dtype.type(1), (2, 2)), np.ones((2, 2), dtype))


def test_the_checks_of_expand_and_repeat():
    x = empty((3, 1, 2))
    sizes = aclnn.aclCreateIntArray
    for bad in ([2, 1, 2], [1, 2], [-1, 3, 1, 2], [3, -2, 2], [1] * 9):
        assert "size" in refused("aclnnExpand", x, sizes(bad), x)[1]
    for bad in ([2, 2], [1, -1, 1], [1] * 9):
        assert "repeats" in refused("aclnnRepeat", x, sizes(bad), x)[1]


@named("dtype", [*REAL, COMPLEX[0]], ids=str)
def test_margins(dtype):
    value = 1 if dtype == BOOL else 3
    for x in layouts(filled(dtype, (3, 4, 5))):
        for pad in ((1, 2), (0, 0), (1, 0, 0, 2), (1, 1, 1, 1, 1, 1), (0, 0, 0, 0, 2, 0)):
            pairs = [(0, 0)] * (3 - len(pad) // 2) + [*zip(pad[::2], pad[1::2], strict=True)][::-1]
            same(aclnn.constant_pad_nd(x, pad, value), np.pad(x, pairs, constant_values=value))
        same(aclnn.constant_pad_nd(x, (-1, 2, 0, -1), value)[:, :, -2:], np.full((3, 3, 2), value))
        same(aclnn.constant_pad_nd(x, (-1, 2, 0, -1), value)[:, :, :-2], x[:, :3, 1:])
        same(aclnn.constant_pad_nd(x, (-2, -2, 0, 0, -1, -1)), x[1:-1, :, 2:-2])
    same(aclnn.constant_pad_nd(x[:0], (1, 0, 0, 0, 2, 0), value), np.full((2, 4, 6), value, dtype))


def test_the_checks_of_margins():
    x, value, pad = empty((3, 4)), scalar(0.0), aclnn.aclCreateIntArray
    for bad in ([1], [0] * 6, [-3, -3]):
        assert "pad is" in refused("aclnnConstantPadNd", x, pad(bad), value, x)[1]
    assert "out has shape" in refused("aclnnConstantPadNd", x, pad([1, 1]), value, x)[1]
    assert refused("aclnnConstantPadNd", x, pad([0, 0]), None, x)[0] == NULLPTR


@named("dim", [0, 1, 2, -1, -3])
def test_stack(dim):
    a, b = filled(FLOATS[0], (3, 4)), filled(FLOATS[1], (3, 4))
    found = aclnn.stack([a, b, a[::-1]], dim)
    assert found.dtype == np.float32
    same(found, np.stack([a, b.astype(np.float32), a[::-1]], dim))
    out = np.zeros((7, 3, 4), np.float64)[:3] if dim in (0, -3) else None
    if out is not None:
        run("aclnnStack", aclnn.aclCreateTensorList([tensor(a)] * 3), dim, tensor(out))
        same(out, np.stack([a] * 3, dim))
    same(aclnn.stack([np.int8(1), np.int8(2)]), [1, 2])


def test_the_checks_of_stack():
    listed = aclnn.aclCreateTensorList
    x, y = empty((3, 4)), empty((4, 3))
    assert "is empty" in refused("aclnnStack", listed([]), 0, x)[1]
    assert "tensors[1] has shape (4, 3)" in refused("aclnnStack", listed([x, y]), 0, x)[1]
    assert "dim is 3" in refused("aclnnStack", listed([x, x]), 3, x)[1]
    assert "8 dimensions" in refused("aclnnStack", listed([empty((1,) * 8)]), 0, x)[1]


@named("dtype", ALL, ids=str)
def test_triangles(dtype):
    diagonals = (-7, -2, -1, 0, 1, 3, 9, 2**62, -(2**62)) if dtype in OF_EACH_SIZE else (-2, 1)
    for shape in ((4, 6), (6, 4), (2, 3, 5, 5), (1, 1)):
        for x in layouts(filled(dtype, shape)):
            for diagonal in diagonals:
                far = int(np.clip(diagonal, -9, 9))
                same(aclnn.tril(x, diagonal), np.tril(x, far))
                same(aclnn.triu(x, diagonal), np.triu(x, far))
            given = np.asfortranarray(x)
            assert aclnn.tril_(given, 1) is given
            same(given, np.tril(x, 1))
            given = x.copy()
            run("aclnnInplaceTriu", tensor(given), -1)
            same(given, np.triu(x, -1))
    assert "at least 2" in refused("aclnnTril", empty((3,)), 0, empty((3,)))[1]


# --- Fills ----------------------------------------------------------------------------------------


@named("dtype", ALL, ids=str)
def test_fills(dtype):
    for value in (0, 3, 1) if dtype != BOOL else (0, 1):
        given = filled(dtype, (3, 8))[:, ::2]
        same(aclnn.fill(given, value), np.full((3, 4), value, dtype))
        run("aclnnInplaceFillScalar", tensor(given), scalar(value, T.ACL_INT64))
        same(given, np.full((3, 4), value, dtype))
    assert aclnn.one_(given) is given
    same(given, np.ones((3, 4), dtype))
    run("aclnnInplaceZero", tensor(given))
    same(given, np.zeros((3, 4), dtype))
    if dtype.kind != "c":
        run("aclnnInplaceOne", tensor(given))
        same(given, np.ones((3, 4), dtype))


def test_fills_convert_the_number():
    same(aclnn.fill(np.int32([1]), 2.75), [2])
    same(aclnn.fill(np.array([False]), 0.25), [True])
    given = np.complex64([1, 2])
    run("aclnnInplaceFillScalar", tensor(given), scalar(1 + 2j, T.ACL_COMPLEX64))
    same(given, [1 + 2j] * 2)
    status, message = refused("aclnnInplaceFillScalar", empty(), scalar(1j, T.ACL_COMPLEX64))
    assert (status, "cannot hold" in message) == (INVALID, True)
    assert refused("aclnnInplaceFillScalar", empty(), None)[0] == NULLPTR


@named("dtype", ALL, ids=str)
def test_masked_fill(dtype):
    x, value = filled(dtype, (3, 4)), 1
    for mask in (np.arange(12).reshape(3, 4) % 3 == 0, np.array([True, False, True, False])):
        wanted = np.where(mask, dtype.type(value), x)
        same(aclnn.masked_fill(x, mask, value), wanted)
        given = np.asfortranarray(x)
        run("aclnnInplaceMaskedFillScalar", tensor(given), tensor(mask), scalar(1.0))
        same(given, wanted)
    assert aclnn.masked_fill(x, np.ones((2, 1, 1), bool), 1).shape == (2, 3, 4)


def test_masked_fill_keeps_bits():
    x = np.array([0x7F800001, 0xFFC12345, 0x3F800000], np.uint32).view(np.float32)
    found = aclnn.masked_fill(x, np.array([False, False, True]), -np.inf)
    same(found.view(np.uint32), [0x7F800001, 0xFFC12345, 0xFF800000])
    mask = empty(dtype=T.ACL_BOOL)
    assert (
        "mask has dtype" in refused("aclnnInplaceMaskedFillScalar", empty(), empty(), scalar(1))[1]
    )
    small = empty((1, 3))
    assert "shape" in refused("aclnnInplaceMaskedFillScalar", small, mask, scalar(1))[1]


# --- Reductions -----------------------------------------------------------------------------------

AXES = [None, (0,), (1,), (2,), (-1, 0), (0, 1), (1, 2), (0, 1, 2), ()]


def axes_of(dim):
    return dim or (0, 1, 2)


@named("dtype", FLOATS, ids=str)
@named("dim", AXES, ids=str)
@named("keepdim", [False, True])
def test_means_and_variances(dtype, dim, keepdim):
    for x in layouts(filled(dtype, (3, 50, 4)) / dtype.type(64)):
        exact = x.astype(wide.WIDE)
        axes, keeps = axes_of(dim), {"keepdims": keepdim}
        bound = 0.501 if dtype.itemsize == 2 else 1.0
        if dtype == np.float64:  # in which means of inner dimensions are rounded, too
            bound = 8.0 if dim == (-1, 0) else 3.0
        for found, want in (
            (aclnn.mean(x, dim, keepdim), exact.mean(axes, **keeps)),
            (aclnn.var(x, dim, True, keepdim), exact.var(axes, ddof=1, **keeps)),
            (aclnn.var(x, dim, False, keepdim), exact.var(axes, ddof=0, **keeps)),
            (aclnn.var(x, dim, keepdim=keepdim, correction=2), exact.var(axes, ddof=2, **keeps)),
        ):
            assert (found.dtype, found.shape) == (dtype, want.shape)
            assert wide.ulps(np.asarray(found), np.asarray(want)) <= bound


def test_means_and_variances_of_what_is_large():
    """Where the mean is far from 0, what is left of squares is small."""
    x = (1e4 + np.random.default_rng(0).standard_normal((20, 1000)) * 1e-1).astype(np.float32)
    assert wide.ulps(aclnn.var(x, (1,)), x.astype(wide.WIDE).var(1, ddof=1)) <= 1
    x[0, 0] = np.inf
    assert np.isnan(aclnn.var(x, (1,))[0])
    assert np.isinf(aclnn.mean(x, (1,))[0])


def test_means_and_variances_of_few():
    """As PyTorch has them."""
    torch = pytest.importorskip("torch")
    for values, correction in (
        ([1.0], 1),
        ([1.0, 2.0], 2),
        ([1.0, 1.0], 2),
        ([3.0, 4.0], 5),
        ([], 1),
    ):
        x = np.float32(values)
        with (
            pytest.warns(UserWarning, match="degrees")
            if correction >= len(x)
            else pytest.MonkeyPatch.context()
        ):
            want = torch.var(torch.tensor(x), correction=correction).numpy()
        same(aclnn.var(x, correction=correction), want)
    assert np.isnan(aclnn.mean(np.float32([])))
    same(aclnn.mean(np.zeros((0, 2), np.float32), (0,)), [np.nan] * 2)
    assert aclnn.mean(np.zeros((0, 2), np.float32), (1,)).shape == (0,)


def test_means_of_integers():
    x = np.int32([[1, 2], [3, 5]])
    same(aclnn.mean(x, (1,), dtype="float32"), [1.5, 4])
    with pytest.raises(aclnn.AclnnError, match="must be floating"):
        aclnn.mean(x)
    out = np.zeros(2, np.float16)
    run("aclnnMean", tensor(x), aclnn.aclCreateIntArray([1]), False, T.ACL_FLOAT, tensor(out))
    same(out, [1.5, 4])
    for dtype, code in ((np.int64, T.ACL_INT64), (np.int32, T.ACL_INT32)):
        out, y = np.zeros(2, dtype), np.array([[-1, 2, -4, -1], [3, 5, 2, 1]])
        run("aclnnMean", tensor(y), aclnn.aclCreateIntArray([1]), False, code, tensor(out))
        same(out, [-1, 2])  # -4/4 and 11/4, toward zero
        run("aclnnMean", tensor(y[:, :3]), aclnn.aclCreateIntArray([1]), False, code, tensor(out))
        same(out, [-1, 3])
        run("aclnnMean", tensor(y[:, 1:3]), aclnn.aclCreateIntArray([1]), False, code, tensor(out))
        same(out, [-1, 3])
        nothing = tensor(np.zeros((2, 0), np.int64))
        run("aclnnMean", nothing, aclnn.aclCreateIntArray([1]), False, code, tensor(out))
        same(out, [0, 0])
    out = np.zeros((2, 1), np.float32)
    dims = aclnn.aclCreateIntArray([1])
    run("aclnnVarCorrection", tensor(x.astype(np.float32)), dims, 0, True, tensor(out))
    same(out, [[0.25], [1]])
    run("aclnnVar", tensor(x.astype(np.float32)), dims, True, True, tensor(out))
    same(out, [[0.5], [2]])


@named("dtype", REAL, ids=str)
@named("dim", AXES, ids=str)
@named("keepdim", [False, True])
def test_largest_elements(dtype, dim, keepdim):
    for x in layouts(filled(dtype, (3, 50, 4))):
        found = aclnn.amax(x, dim, keepdim)
        assert found.dtype == dtype
        same(found, x.max(axes_of(dim), keepdims=keepdim))
        if dim is None:
            same(aclnn.max(x), x.max())


@named("dtype", [one for one in REAL if one != BOOL], ids=str)
@named("dim", [None, 0, 1, 2, -1])
@named("keepdim", [False, True])
def test_places_of_largest_elements(dtype, dim, keepdim):
    for x in layouts(filled(dtype, (3, 300, 4))):
        x[0, 1] = x[2, 1]  # of equal ones the first
        found = aclnn.arg_max(x, dim, keepdim)
        assert found.dtype == np.int64
        plain = x.astype(np.float32) if dtype == BF16 else x
        same(found, np.argmax(plain, dim, keepdims=keepdim))
    if dim is not None:
        out = np.zeros(found.shape, np.int32)
        run("aclnnArgMax", tensor(x), dim, keepdim, tensor(out))
        same(out, found)


def test_nans_are_the_largest():
    for kind in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64):
        x = np.array([[1, np.nan, 3, np.nan], [4, 5, -np.inf, np.inf], [-np.inf] * 4], kind)
        same(aclnn.arg_max(x, 1), [1, 3, 0])
        same(aclnn.amax(x, (1,)).astype(float), [np.nan, np.inf, -np.inf])


def test_the_checks_of_reductions():
    x, out = empty((3, 4)), empty((3,))
    dims = aclnn.aclCreateIntArray
    assert "twice" in refused("aclnnAmax", x, dims([1, -1]), False, out)[1]
    assert "dim has 2" in refused("aclnnMean", x, dims([2]), False, T.ACL_FLOAT, out)[1]
    assert (
        "self has dtype INT32"
        in refused("aclnnVar", empty(dtype=T.ACL_INT32), dims([1]), True, False, out)[1]
    )
    assert "out has shape" in refused("aclnnVar", x, dims([1]), True, True, out)[1]
    assert "has 2, must" in refused("aclnnArgMax", x, 2, False, empty((3,), T.ACL_INT64))[1]
    assert "INT32 or INT64" in refused("aclnnArgMax", x, 1, False, out)[1]
    assert "without an element" in refused("aclnnAmax", empty((0,)), dims([0]), False, empty(()))[1]
    assert aclnn.amax(np.zeros((0, 3), np.float32), (1,)).shape == (0,)


@references.rows_of("cumsum")
def running_sums(kind, shape, axis):
    (x,) = references.numbers(kind, shape)
    return {"": (aclnn.cumsum(x, axis), np.cumsum(x.astype(wide.WIDE), axis), np.abs(x).max())}


@named("dtype", REAL, ids=str)
@named("dim", [0, 1, -1])
def test_running_sums(dtype, dim):
    for x in layouts(filled(dtype, (3, 700, 2))):
        found = aclnn.cumsum(x, dim)
        if dtype in FLOATS:
            bound = 0.501 if dtype.itemsize == 2 else 1.0
            want = np.cumsum(x.astype(wide.WIDE), dim)
            clear = np.abs(want) > np.abs(x.astype(float)).max() * 2.0**-30
            assert found.dtype == dtype
            assert wide.ulps(found[clear], want[clear]) <= bound
        else:
            assert found.dtype == np.int64
            same(found, np.cumsum(x.astype(np.int64), dim))
    half = aclnn.cumsum(
        x, dim, dtype="float32" if dtype in FLOATS else dtype.name if dtype != BOOL else "int8"
    )
    assert half.dtype == (np.float32 if dtype in FLOATS else np.int8 if dtype == BOOL else dtype)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_lines_along_axes_on_threads(axis, threads_as_before):
    """However lines are divided, and whether they are walked one by one or beside each other."""
    x = filled(FLOATS[0], (3, 700, 601))
    found = {}
    for threads in (1, 2):
        aclnn.set_num_threads(threads)
        for layout in (x, np.asfortranarray(x), x[:, ::-1]):
            whole = (layout * 64).astype(np.int32)
            results = (
                aclnn.cumsum(layout, axis),
                aclnn.arg_max(layout, axis),
                aclnn.amax(whole, (axis,)),
            )
            same(results[1], np.argmax(layout, axis))
            same(results[2], whole.max(axis))
            key = layout.tobytes()
            for one, other in zip(results, found.setdefault(key, results), strict=True):
                same(one, other)
    same(aclnn.cumsum(x, axis), np.cumsum(x.astype(wide.WIDE), axis).astype(np.float32))


@named("dtype", FLOATS, ids=str)
@named("shape", [(1, 9), (2, 70), (3, 8), (7, 65), (8, 16), (9, 1), (41, 23), (70, 100)], ids=str)
def test_running_sums_have_one_order_however_lines_lie(shape, dtype):
    """In lanes, one line alone, lines beside each other, elements apart: the same bits."""
    x = filled(dtype, shape)
    x[0, shape[1] // 2 :: 7] = np.inf
    x[-1, shape[1] // 3 :: 5] = -np.inf
    apart = np.zeros((shape[0], 2 * shape[1]), dtype)[:, ::2]
    apart[...] = x
    with np.errstate(invalid="ignore"):
        want = np.cumsum(x.astype(float), 1)
    found = [aclnn.cumsum(layout, 1) for layout in (x, np.asfortranarray(x), apart)]
    endless = ~np.isfinite(want)
    same(found[0][endless].astype(float), want[endless])
    for one in found:
        assert np.ascontiguousarray(one).tobytes() == found[0].tobytes()


@named("dtype", FLOATS, ids=str)
@named("shape", [(1, 9), (2, 70), (5, 8), (7, 65), (33, 16), (9, 1), (41, 23), (70, 100)], ids=str)
def test_products_and_norms_have_one_order_however_lines_lie(shape, dtype):
    """Of elements, each eighth belongs to one part; parts are combined from the first one on."""
    rows, cols = shape
    x = (1 + filled(dtype, shape).astype(float) / 16).astype(dtype)
    x[0, cols // 2] = np.nan
    x[-1, 0], x[-1, -1] = -np.inf, np.inf
    apart = np.zeros((rows, 2 * cols), dtype)[:, ::2]
    apart[...] = x
    product, squares = np.ones((rows, 8)), np.zeros((rows, 8))
    for i in range(cols):
        product[:, i % 8] *= x[:, i].astype(float)
        squares[:, i % 8] += x[:, i].astype(float) ** 2
    totals, sums = product[:, 0].copy(), squares[:, 0].copy()
    for k in range(1, 8):
        totals *= product[:, k]
        sums += squares[:, k]
    with np.errstate(over="ignore"):
        want = [made.astype(dtype).astype(float) for made in (totals, np.sqrt(sums))]
    for layout in (x, np.asfortranarray(x), apart):
        product, norm = aclnn.prod(layout, 1), aclnn.linalg_vector_norm(layout, 2.0, (1,))
        same(product.astype(float), want[0])
        same(norm.astype(float), want[1])


@named("dtype", FLOATS, ids=str)
@named("cols", [31, 64, 200, 513, 1100])
def test_a_nan_anywhere_is_the_largest(cols, dtype):
    x = filled(dtype, (cols, cols))
    np.fill_diagonal(x, np.nan)
    assert np.isnan(aclnn.amax(x, (1,)).astype(float)).all()
    x = filled(dtype, (9, cols))
    want = x.astype(float).max(1)
    x[4, cols // 2] = want[4] = np.nan
    same(aclnn.amax(x, (1,)).astype(float), want)


def test_running_sums_of_what_cancels_and_of_infinities():
    x = np.float64([1e16, 1, -1e16, 1e300, -1e300, 3])
    same(aclnn.cumsum(x, 0), [1e16, 1e16, 1, 1e300, 1, 4])
    x = np.float32([1, np.inf, 2, -np.inf, 1])
    same(aclnn.cumsum(x, 0), [1, np.inf, np.inf, np.nan, np.nan])
    same(aclnn.cumsum(np.float32(2), 0), 2)
    given = np.arange(5, dtype=np.float32)
    same(aclnn.cumsum(given, 0, out=given), [0, 1, 3, 6, 10])
    assert "dim is 1" in refused("aclnnCumsum", empty((3,)), 1, T.ACL_FLOAT, empty((3,)))[1]
