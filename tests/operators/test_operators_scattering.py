"""What indices combine, put, take, count and repeat, against loops of NumPy's."""

import itertools

import numpy as np
import pytest
from calls import BF16, BOOL, COMPLEX, FLOATS, WHOLE, empty, refused, run, scalar, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

NULLPTR, INVALID, RUNTIME = 161001, 161002, 361001
SHAPES = [
    ((4, 5, 6), (3, 5, 4)),
    ((7,), (9,)),
    ((5, 3), (4, 3)),
    ((2, 3, 4), (2, 5, 3)),
    ((6, 50), (6, 70)),
]
COMBINED = {
    "replace": lambda old, new: new,
    "add": lambda old, new: old + new,
    "multiply": lambda old, new: old * new,
}


def small(shape, dtype, seed=0):
    found = np.random.default_rng(seed).integers(-3, 4, shape)
    return (found % 2 if dtype == BOOL else abs(found) if dtype == np.uint8 else found).astype(
        dtype
    )


def scattered(x, axis, index, source, reduce):
    """Element by element, sums of half precision in float32."""
    halves = x.dtype.itemsize == 2 and x.dtype.kind not in "iu" and reduce != "replace"
    made = x.astype(np.float32) if halves else x.copy()
    for place in np.ndindex(index.shape):
        target = list(place)
        target[axis] = index[place]
        new = source[place]
        new = np.float32(new) if halves else new
        made[tuple(target)] = COMBINED[reduce](made[tuple(target)], new)
    return made.astype(x.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@named("dtype", [*FLOATS, *WHOLE, BOOL, COMPLEX[0]], ids=str)
@named("reduce", COMBINED)
def test_scattered_elements(dtype, reduce):
    if dtype.kind == "c" and reduce != "replace":
        with pytest.raises(aclnn.AclnnError, match="replaced"):
            aclnn.scatter(small(3, dtype), 0, np.int64([0]), small(1, dtype), reduce=reduce)
        return
    for (shape, chosen), kind in itertools.product(SHAPES, (np.int64, np.int32)):
        x = small(shape, dtype)
        for axis in range(len(shape)):
            if any(a > b for k, (a, b) in enumerate(zip(chosen, shape, strict=True)) if k != axis):
                continue
            index = np.random.default_rng(axis).integers(0, shape[axis], chosen).astype(kind)
            source = small([n + 1 for n in chosen], dtype, 5)[tuple([slice(n) for n in chosen])]
            wanted = scattered(x, axis, index, source, reduce)
            found = aclnn.scatter(x, axis, index, source, reduce=reduce)
            np.testing.assert_array_equal(found, wanted)
            turned = np.asfortranarray(x)
            np.testing.assert_array_equal(
                aclnn.scatter(turned, axis, index, source, reduce=reduce), wanted
            )
            given = x.copy()
            assert aclnn.scatter_(given, axis, index, source, reduce=reduce) is given
            np.testing.assert_array_equal(given, wanted)
            whole = np.broadcast_to(dtype.type(1), chosen)
            by_number = aclnn.scatter(x, axis, index, 1, reduce=reduce)
            np.testing.assert_array_equal(by_number, scattered(x, axis, index, whole, reduce))
            if reduce == "add":
                np.testing.assert_array_equal(aclnn.scatter_add(x, axis, index, source), wanted)


def test_scattered_sums_are_in_order_and_rounded_once():
    source = np.float16([2048, 1, 1, 1, -2048])
    index = np.zeros(5, np.int64)
    assert aclnn.scatter_add(np.zeros(1, np.float16), 0, index, source)[0] == 3
    x = np.random.default_rng(0).standard_normal((3, 5000)).astype(np.float32)
    index = np.random.default_rng(1).integers(0, 40, x.shape)
    wanted = np.zeros((3, 40), np.float32)
    for place in np.ndindex(x.shape):
        wanted[place[0], index[place]] += x[place]
    before = aclnn.get_num_threads()
    for threads in (1, 3):
        aclnn.set_num_threads(threads)
        found = aclnn.scatter_add(np.zeros((3, 40), np.float32), 1, index, x)
        np.testing.assert_array_equal(found, wanted)
        across = aclnn.scatter_add(np.zeros((40, 3), np.float32), 0, index.T, x.T)
        np.testing.assert_array_equal(across, wanted.T)
    aclnn.set_num_threads(before)


def test_scatters_in_both_phases():
    x, index, source = np.float32([1, 2, 3]), np.int64([2, 0]), np.float32([7, 8])
    for name, more, wanted in (
        ("aclnnScatter", (tensor(source), 0), [8, 2, 7]),
        ("aclnnScatter", (tensor(source), 1), [9, 2, 10]),
        ("aclnnScatter", (tensor(source), 2), [8, 2, 21]),
        ("aclnnScatter", (tensor(source), 9), [8, 2, 7]),
        ("aclnnScatterValue", (scalar(5, T.ACL_INT64), 0), [5, 2, 5]),
        ("aclnnScatterAdd", (tensor(source),), [9, 2, 10]),
    ):
        out = np.empty(3, np.float32)
        run(name, tensor(x), 0, tensor(index), *more, tensor(out))
        np.testing.assert_array_equal(out, wanted)
    given = x.copy()
    run("aclnnInplaceScatter", tensor(given), -1, tensor(index), tensor(source), 1)
    np.testing.assert_array_equal(given, [9, 2, 10])
    empties = aclnn.scatter(x, 0, np.empty(0, np.int64), source)
    np.testing.assert_array_equal(empties, x)


@named("bad", [3, -1])
def test_indices_out_of_range_write_nothing(bad):
    x, index = np.float32([1, 2, 3]), np.int64([0, bad])
    for call in (
        lambda x: aclnn.scatter_(x, 0, index, np.float32([7, 8])),
        lambda x: aclnn.scatter_(x, 0, index, 7),
        lambda x: aclnn.scatter_add_(x, 0, index, np.float32([7, 8])),
        lambda x: aclnn.index_add_(x, 0, index, np.float32([7, 8])),
        lambda x: aclnn.scatter_nd_update_(x, index[:, None], np.float32([7, 8])),
        lambda x: aclnn.index_fill_(x, 0, index - 3 * (bad < 0), 7),
    ):
        given = x.copy()
        with pytest.raises(aclnn.AclnnError, match="an index is"):
            call(given)
        np.testing.assert_array_equal(given, x)
    with pytest.raises(aclnn.AclnnError, match=str(bad)):
        aclnn.gather_nd(x, index[:, None])


@named("dtype", [*FLOATS, *WHOLE, BOOL], ids=str)
def test_slices_that_are_added_or_filled(dtype):
    x = small((4, 5, 6), dtype)
    for axis in (0, 1, -1):
        index = np.int32([2, 0, 2, 3])
        shape = list(x.shape)
        shape[axis] = 4
        source = small(shape, dtype, 3)
        places = np.broadcast_to(
            np.expand_dims(index, [k for k in range(3) if k != axis % 3]), shape
        )
        for alpha in (1, 2):
            scaled = (source.astype(np.float32) * alpha).astype(dtype) if dtype != BOOL else source
            wanted = scattered(x, axis, places, scaled, "add")
            found = aclnn.index_add(x, axis, index, source, alpha=alpha)
            np.testing.assert_array_equal(found, wanted)
        whole = np.broadcast_to(dtype.type(1), shape)
        wanted = scattered(x, axis, places, whole, "replace")
        np.testing.assert_array_equal(aclnn.index_fill(x, axis, index, 1), wanted)
        size = x.shape[axis]
        np.testing.assert_array_equal(aclnn.index_fill(x, axis, index - size, 1), wanted)
    given = np.float32([1, 2, 3])
    numbers = aclnn.aclCreateIntArray([-1, 0, -1])
    run("aclnnInplaceIndexFillTensor", tensor(given), 0, numbers, scalar(5.0, T.ACL_FLOAT))
    np.testing.assert_array_equal(given, [5, 2, 5])
    out = np.empty(3, np.float32)
    run(
        "aclnnIndexAdd",
        tensor(given),
        0,
        tensor(np.int64([1, 1])),
        tensor(given[:2]),
        scalar(2.0, T.ACL_FLOAT),
        tensor(out),
    )
    np.testing.assert_array_equal(out, [5, 2 + 10 + 4, 5])
    beyond = refused(
        "aclnnIndexFillTensor",
        tensor(given),
        0,
        aclnn.aclCreateIntArray([3]),
        scalar(5.0, T.ACL_FLOAT),
        tensor(out),
    )
    assert (beyond[0], "from -3 to 2" in beyond[1]) == (INVALID, True)


@named("dtype", [*FLOATS, *WHOLE, BOOL, *COMPLEX], ids=str)
def test_pieces_by_rows_of_indices(dtype):
    x = small((4, 5, 6), dtype)
    rng = np.random.default_rng(2)
    for count, lead in itertools.product((1, 2, 3), ((7,), (3, 2))):
        rows = np.stack([rng.integers(0, n, lead) for n in x.shape[:count]], -1)
        taken = x[tuple(np.moveaxis(rows, -1, 0))]
        np.testing.assert_array_equal(aclnn.gather_nd(x, rows), taken)
        below = (rows - x.shape[:count]).astype(np.int32)
        np.testing.assert_array_equal(aclnn.gather_nd(x, below, True), taken)
        updates = small(taken.shape, dtype, 9)
        wanted = x.copy()
        for place in np.ndindex(lead):
            wanted[tuple(rows[place])] = updates[place]
        for given in (x.copy(), np.asfortranarray(x)):
            assert aclnn.scatter_nd_update_(given, rows, updates) is given
            np.testing.assert_array_equal(given, wanted)
    given = np.float32([1, 2, 3])
    run("aclnnScatterNdUpdate", tensor(given), tensor(np.int32([[2]])), tensor(np.float32([9])))
    np.testing.assert_array_equal(given, [1, 2, 9])


def test_one_number_for_each_index():
    index = np.int64([[1, 0], [3, -1], [2, 4]])
    for axis in (-1, 0, 1, 2):
        at = axis % 3
        wanted = np.moveaxis(index[..., None] == np.arange(4), -1, at)
        np.testing.assert_array_equal(aclnn.one_hot(index, 4, axis=axis), wanted.astype(np.int64))
        on, off = np.float16([5]), np.float16([-1])
        found = aclnn.one_hot(index.astype(np.int32), 4, axis=axis, on_value=on, off_value=off)
        np.testing.assert_array_equal(found, np.where(wanted, on, off))
    out = np.empty((2, 3), np.int32)
    run(
        "aclnnOneHot",
        tensor(np.int64([2, 7])),
        3,
        tensor(np.int32([1])),
        tensor(np.int32([0])),
        -1,
        tensor(out),
    )
    np.testing.assert_array_equal(out, [[0, 0, 1], [0, 0, 0]])
    one = empty((1,))
    assert (
        refused("aclnnOneHot", empty(dtype=T.ACL_INT64), -1, one, one, -1, empty((2, 3, 1)))[0]
        == INVALID
    )
    assert (
        refused("aclnnOneHot", empty(dtype=T.ACL_INT64), 2, None, one, -1, empty((2, 3, 2)))[0]
        == NULLPTR
    )


@named("dtype", [np.dtype(np.float32), BF16, np.dtype(np.int8), COMPLEX[1]], ids=str)
def test_repetitions_and_cyclic_shifts(dtype):
    x = small((3, 4, 5), dtype)
    for repeats, dim in itertools.product((0, 1, 3), (None, 0, 1, -1)):
        wanted = np.repeat(x, repeats, dim)
        np.testing.assert_array_equal(aclnn.repeat_interleave(x, repeats, dim), wanted)
    for shifts, dims in (
        ((2,), ()),
        ((2,), (1,)),
        ((1, -2), (0, 2)),
        ((7, 3), (1, 1)),
        (-4, ()),
        (9, 0),
    ):
        axis = None if dims == () else dims
        np.testing.assert_array_equal(aclnn.roll(x, shifts, dims), np.roll(x, shifts, axis))
        np.testing.assert_array_equal(aclnn.roll(x.T, shifts, dims), np.roll(x.T, shifts, axis))


def test_repetitions_and_shifts_in_both_phases():
    x, out = np.float32([[1, 2]]), np.empty((1, 4), np.float32)
    run("aclnnRepeatInterleaveIntWithDim", tensor(x), 2, 1, 4, tensor(out))
    np.testing.assert_array_equal(out, [[1, 1, 2, 2]])
    flat = np.empty(4, np.float32)
    run("aclnnRepeatInterleaveInt", tensor(x), 2, 4, tensor(flat))
    np.testing.assert_array_equal(flat, [1, 1, 2, 2])
    assert (
        "must be 4"
        in refused("aclnnRepeatInterleaveIntWithDim", tensor(x), 2, 1, 5, tensor(out))[1]
    )
    made = np.empty((1, 2), np.float32)
    run(
        "aclnnRoll",
        tensor(x),
        aclnn.aclCreateIntArray([1]),
        aclnn.aclCreateIntArray([1]),
        tensor(made),
    )
    np.testing.assert_array_equal(made, [[2, 1]])
    two = aclnn.aclCreateIntArray([1, 1])
    assert (
        refused("aclnnRoll", tensor(x), two, aclnn.aclCreateIntArray([1]), tensor(made))[0]
        == INVALID
    )
    assert (
        refused(
            "aclnnRoll",
            tensor(x),
            aclnn.aclCreateIntArray([1]),
            aclnn.aclCreateIntArray([2]),
            tensor(made),
        )[0]
        == INVALID
    )


def test_checks_of_scatters():
    x, index = empty((2, 3)), empty((2, 2), T.ACL_INT64)
    assert refused("aclnnScatter", x, 0, None, x, 0, x)[0] == NULLPTR
    assert refused("aclnnScatter", x, 0, x, x, 0, x)[0] == INVALID
    assert refused("aclnnScatter", x, 2, index, x, 0, x)[0] == INVALID
    assert (
        "larger"
        in refused("aclnnScatter", x, 0, empty((2, 4), T.ACL_INT64), empty((2, 4)), 0, x)[1]
    )
    assert "larger" in refused("aclnnScatter", x, 1, empty((2, 4), T.ACL_INT64), x, 0, x)[1]
    assert refused("aclnnIndexAdd", x, 0, index, x, scalar(1.0, T.ACL_FLOAT), x)[0] == INVALID
    assert refused("aclnnGatherNd", x, empty((2, 3), T.ACL_INT64), False, empty((2,)))[0] == INVALID
    assert RUNTIME == 361001


@named("dtype", [*FLOATS, *WHOLE, BOOL], ids=str)
def test_repetitions_by_a_tensor(dtype):
    x = small((3, 4, 2), dtype, 3)
    for kind, dim in itertools.product((np.int32, np.int64), (None, 0, 1, -1)):
        size = x.size if dim is None else x.shape[dim]
        for counts in (np.arange(size)[::-1] % 4, np.array([2]), np.array(3)):
            repeats = counts.astype(kind)
            wanted = np.repeat(x, repeats.reshape(-1), dim)
            total = wanted.shape[dim or 0]
            found = aclnn.repeat_interleave_tensor(x, repeats, dim, output_size=total)
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == dtype
            turned = np.asfortranarray(x)
            again = aclnn.repeat_interleave_tensor(turned, repeats, dim, output_size=total)
            np.testing.assert_array_equal(again, wanted)


def test_repetitions_by_a_tensor_in_both_phases():
    x, repeats = np.float32([[1, 2], [3, 4]]), np.int64([0, 3])
    out = np.empty((3, 2), np.float32)
    run("aclnnRepeatInterleaveWithDim", tensor(x), tensor(repeats), 0, 3, tensor(out))
    np.testing.assert_array_equal(out, [[3, 4]] * 3)
    flat, each = np.empty(7, np.float32), np.int64([1, 0, 4, 2])
    run("aclnnRepeatInterleave", tensor(x), tensor(each), 7, tensor(flat))
    np.testing.assert_array_equal(flat, [1, 3, 3, 3, 3, 4, 4])


@named(
    ("repeats", "size", "words"),
    [([1, 2], 4, "add up to 3"), ([3, 2], 4, "add up to 5"), ([-1, 5], 4, "must add up to 4")],
)
def test_repetitions_that_do_not_add_up(repeats, size, words):
    with pytest.raises(aclnn.AclnnError, match=words):
        aclnn.repeat_interleave_tensor(np.float32([1, 2]), np.int64(repeats), output_size=size)


@named(
    ("changed", "words"),
    [
        ({"repeats": empty((3,), T.ACL_INT64)}, "3 elements"),
        ({"repeats": empty((1, 2), T.ACL_INT64)}, "dimensions"),
        ({"repeats": empty((2,))}, "dtype"),
        ({"dim": 2}, "dim is 2"),
        ({"outputSize": -1}, "-1"),
        ({"out": empty((2, 3))}, "shape"),
        ({"out": empty((4, 3), T.ACL_FLOAT16)}, "dtype"),
    ],
)
def test_repetitions_by_a_tensor_that_are_refused(changed, words):
    given = {"self": empty(), "repeats": empty((2,), T.ACL_INT64), "dim": 0, "outputSize": 4}
    given |= {"out": empty((4, 3))}
    status, message = refused("aclnnRepeatInterleaveWithDim", *(given | changed).values())
    assert status == INVALID
    assert words in message
