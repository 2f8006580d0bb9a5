"""Elements that are true, and those that indices name, against NumPy and PyTorch."""

import numpy as np
import pytest
from calls import BF16, NULLPTR, OK, empty, refused, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

INVALID, NO_ROOM = 161002, 161002
DTYPES = ["f4", "f2", BF16, "f8", "i1", "u1", "i2", "i4", "i8", "?"]


def both_phases(name, *arguments, stream=None):
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    workspace = np.empty(size, np.uint8) if size else None
    return getattr(aclnn, name)(workspace, size, executor, stream)


def shape_of(given):
    return tuple(aclnn.aclGetViewShape(given)[0])


def some(dtype, shape=(3, 4, 5)):
    rng = np.random.default_rng(0)
    return np.where(rng.random(shape) > 0.5, rng.integers(-2, 3, shape), 0).astype(dtype)


# --- Sizes that data decide -----------------------------------------------------------------------


@named("dtype", DTYPES, ids=str)
def test_places_of_what_is_not_zero(dtype):
    x = some(dtype)
    if x.dtype.kind in "fV":
        x[0, 0, :2] = np.nan, -0.0
    for one in (x, x[:, ::2], x.T, x[0, 0], np.zeros((2, 3), x.dtype)):
        wanted = np.argwhere(one != 0)
        count, rank = wanted.shape
        for name, shape, places in (
            ("aclnnNonzero", (one.size, rank), wanted),
            ("aclnnNonzeroV2", (rank, one.size), wanted.T),
        ):
            out = np.full(shape, -7)
            given = tensor(out)
            assert both_phases(name, tensor(one), given) == OK
            assert shape_of(given) == places.shape
            np.testing.assert_array_equal(out.ravel()[: count * rank], places.ravel())
            assert (out.ravel()[count * rank :] == -7).all()
        found, size = aclnn.nonzero_padded(one)
        assert tuple(size) == wanted.shape
        np.testing.assert_array_equal(found[:count], wanted)
        assert not found[count:].any()
        by_dims, size = aclnn.nonzero_by_dims(one)
        assert tuple(size) == wanted.T.shape
        np.testing.assert_array_equal(by_dims.ravel()[: count * rank], wanted.T.ravel())


def test_shapes_after_a_stream_and_a_second_run():
    x = np.float32([1, 0, 2, 0])
    out = np.zeros((4, 1), np.int64)
    stream, _ = aclnn.aclrtCreateStream()
    given = tensor(out)
    size, executor, _ = aclnn.aclnnNonzeroGetWorkspaceSize(tensor(x), given)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    for value, count in ((0, 2), (5, 4)):
        x[1::2] = value
        assert aclnn.aclnnNonzero(None, size, executor, stream) == OK
        aclnn.aclrtSynchronizeStream(stream)
        assert shape_of(given) == (count, 1)
    aclnn.aclrtDestroyStream(stream)


@named("dtype", DTYPES, ids=str)
def test_elements_where_a_mask_is_true(dtype):
    x = some(dtype) + some("f4").astype(dtype)
    for one, mask in (
        (x, x > 0),
        (x.T, (x > 0).T),
        (x[:, ::2], some("u1", (3, 1, 5))),
        (x, np.zeros((4, 5), bool)),
        (x[0, 0, 0], np.ones((2, 1), bool)),
    ):
        shape = np.broadcast_shapes(np.shape(one), mask.shape)
        wanted = np.broadcast_to(one, shape)[np.broadcast_to(mask, shape) != 0]
        for kind in (x.dtype, np.float32):
            room = np.full(2 * np.prod(shape, dtype=int), 9).astype(kind)[::2]
            given = tensor(room)
            assert (
                both_phases("aclnnMaskedSelect", tensor(np.asarray(one)), tensor(mask), given) == OK
            )
            assert shape_of(given) == wanted.shape
            np.testing.assert_array_equal(room[: wanted.size], wanted.astype(kind))
            assert (room[wanted.size :] == np.array(9).astype(kind)).all()
        found, size = aclnn.masked_select_padded(np.asarray(one), mask)
        assert (size.tolist(), found.dtype) == ([wanted.size], x.dtype)
        np.testing.assert_array_equal(found[: wanted.size], wanted)


def test_a_result_without_room_is_not_written():
    x = np.ones((2, 3), np.float32)
    out = np.full((3, 2), -7)
    given = tensor(out)
    size, executor, _ = aclnn.aclnnNonzeroGetWorkspaceSize(tensor(x), given)
    assert aclnn.aclnnNonzero(None, size, executor, None) != OK
    assert "no room" in aclnn.aclGetRecentErrMsg()
    assert (out == -7).all()


def test_what_functions_of_unknown_size_refuse():
    good = [empty((2, 3)), empty((6, 2), T.ACL_INT64)]
    for place in range(2):
        alone = [None if k == place else one for k, one in enumerate(good)]
        assert refused("aclnnNonzero", *alone)[0] == NULLPTR
    for bad in (
        [empty((2, 3), T.ACL_COMPLEX64), good[1]],
        [good[0], empty((6, 2), T.ACL_INT32)],
        [good[0], aclnn.tensor(np.zeros((2, 6), np.int64).T)],
    ):
        assert refused("aclnnNonzero", *bad)[0] == INVALID
    masked = [empty((2, 3)), empty((3,), T.ACL_BOOL), empty((6,))]
    for place, bad in (
        (1, empty((3,), T.ACL_INT32)),
        (1, empty((4,), T.ACL_BOOL)),
        (2, empty((5,))),
        (2, empty((6, 1))),
        (0, empty((2, 3), T.ACL_COMPLEX64)),
    ):
        changed = [bad if k == place else one for k, one in enumerate(masked)]
        assert refused("aclnnMaskedSelect", *changed)[0] == INVALID
    nothing = [empty((0, 3)), empty((0, 2), T.ACL_INT64)]
    assert aclnn.aclnnNonzeroGetWorkspaceSize(*nothing)[2] == OK


# --- Indices of several dimensions ----------------------------------------------------------------

ROW, COLUMN = np.int64([0, 2, -1]), np.int32([[1], [0]])
MASK, WIDE = np.bool_([1, 0, 1, 1]), some("?", (4, 5))
CASES = [
    *(
        [ROW],
        [None, ROW],
        [None, None, ROW],
        [ROW, ROW],
        [ROW, None, ROW],
        [None, ROW, COLUMN],
        [COLUMN, None, ROW],
    ),
    *([ROW, COLUMN, COLUMN], [None, MASK], [None, WIDE], [MASK[:3]], [ROW[:1], WIDE], [None]),
    *([np.int64(1)], [np.int64(1), None, ROW], [np.zeros((2, 0), np.int64)]),
]
each_case = named("indices", CASES, ids=str)


def key(indices):
    return tuple([slice(None) if one is None else one for one in indices])


def listed(indices):
    return aclnn.aclCreateTensorList(
        [tensor(np.empty(0, np.int64) if one is None else np.asarray(one)) for one in indices]
    )


def in_c(indices):
    """Whether a C-shaped call can say so: an empty index stands for none."""
    return all(one is None or np.size(one) for one in indices)


@each_case
@named("dtype", ["f4", "f2", "i1", "f8", "?"])
def test_indices_choose_as_numpys(indices, dtype):
    base = some(dtype)
    for x in (base, np.asfortranarray(base), np.repeat(base, 2, 2)[..., ::2]):
        wanted = x[key(indices)]
        found = aclnn.index(x, indices)
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
        if in_c(indices):
            out = np.zeros(wanted.shape[::-1], dtype).T
            assert both_phases("aclnnIndex", tensor(x), listed(indices), tensor(out)) == OK
            np.testing.assert_array_equal(out, wanted)


def put(x, indices, values, adds):
    """NumPy's way; of sums in float64, as it adds in order, too."""
    found = x.copy()
    if not adds:
        found[key(indices)] = values
        return found
    wide = found.astype(bool if x.dtype == bool else float)
    (np.logical_or if x.dtype == bool else np.add).at(wide, key(indices), values)
    return wide.astype(x.dtype)


@each_case
@named("dtype", ["f4", "f2", "i1", "?"])
@named("adds", [False, True])
def test_values_are_put_as_numpys(indices, dtype, adds):
    x = some(dtype)
    shape = x[key(indices)].shape
    for values in (
        some(dtype, shape),
        some("i1", shape[-1:]).astype(dtype),
        np.array(2).astype(dtype),
    ):
        chosen = any(one is not None for one in indices)  # else nothing is written
        wanted = put(x, indices, values, adds) if chosen else x
        np.testing.assert_array_equal(aclnn.index_put(x, indices, values, adds), wanted)
        own = x.copy()
        assert aclnn.index_put_(own, indices, values, accumulate=adds) is own
        np.testing.assert_array_equal(own, wanted)
        if not in_c(indices) or (
            values.ndim == 0 and len(indices) > 1 and WIDE is indices[1] and indices[0] is not None
        ):
            continue  # a mask together with other indices, and a value that does not tell how many it chooses
        own = np.asfortranarray(x)
        arguments = (tensor(own), listed(indices), tensor(values), adds, False)
        assert both_phases("aclnnIndexPutImpl", *arguments) == OK
        np.testing.assert_array_equal(own, wanted)


@named("index", [[3], [-4]])
def test_indices_that_are_not_there(index):
    x, out = np.ones((3, 2), np.float32), np.full((1, 2), 7, np.float32)
    indices = listed([np.int64(index)])
    assert both_phases("aclnnIndex", tensor(x), indices, tensor(out)) != OK
    assert "an index is" in aclnn.aclGetRecentErrMsg()
    with pytest.raises(aclnn.AclnnError, match="an index is"):
        aclnn.index_put_(x, [np.int64([0, *index])], np.float32(5).reshape(1))
    assert (x == 1).all()


def test_masks_of_another_count_than_the_result():
    x, out = np.float32([1, 2, 3]), np.full(2, 7, np.float32)
    indices = listed([np.bool_([1, 1, 1])])
    assert both_phases("aclnnIndex", tensor(x), indices, tensor(out)) != OK
    assert "3 elements are true" in aclnn.aclGetRecentErrMsg()
    assert (out == 7).all()


def test_what_index_refuses():
    x, out = empty((3, 4)), empty((2, 4))
    for indices, bad in (
        ([empty((2,), T.ACL_FLOAT)], out),
        ([empty((2,), T.ACL_INT64)], empty((2, 4), T.ACL_FLOAT16)),
        ([empty((2,), T.ACL_INT64)], empty((3, 4))),
        ([empty((2,), T.ACL_INT64)] * 3, empty((2,))),
        ([empty((2,), T.ACL_INT64), empty((3,), T.ACL_INT64)], empty((3,))),
        ([empty((4,), T.ACL_BOOL)], out),
    ):
        given = aclnn.aclCreateTensorList(indices)
        assert refused("aclnnIndex", x, given, bad)[0] == INVALID
        values = empty((5,), T.ACL_FLOAT)
        assert refused("aclnnIndexPutImpl", x, given, values, False, False)[0] == INVALID
    good = aclnn.aclCreateTensorList([empty((2,), T.ACL_INT64)])
    for place in range(3):
        alone = [None if k == place else one for k, one in enumerate((x, good, out))]
        assert refused("aclnnIndex", *alone)[0] == NULLPTR
        assert refused("aclnnIndexPutImpl", *alone, False, False)[0] == NULLPTR


@named("shapes", [((0, 10), (5, 10)), ((3, 10), (5, 0)), ((3, 0), (4, 4))])
def test_index_does_nothing_where_nothing_is(shapes):
    """Of an empty tensor, or into one, of whatever shape: only what is before shapes is looked at."""
    x, out = np.ones(shapes[0], np.float32), np.full(shapes[1], 7, np.float32)
    index = np.full(5, 99)
    assert both_phases("aclnnIndex", tensor(x), listed([index]), tensor(out)) == OK
    assert (out == 7).all()
    other = tensor(out.astype(np.float16))
    assert refused("aclnnIndex", tensor(x), listed([index]), other)[0] == INVALID
    many = listed([index] * 3)
    assert refused("aclnnIndex", tensor(x), many, tensor(out))[0] == INVALID


def test_index_refuses_private_formats():
    private = aclnn.ACL_FORMAT_FRACTAL_NZ
    x, out, index = empty((3, 4)), empty((2, 4)), empty((2,), T.ACL_INT64)
    blocks = empty((3, 4), format=private), empty((2,), T.ACL_INT64, private)
    given = aclnn.aclCreateTensorList
    for call in (
        (blocks[0], given([index]), out),
        (x, given([blocks[1]]), out),
        (x, given([index, blocks[1]]), empty((2,))),
        (x, given([index]), empty((2, 4), format=private)),
    ):
        status, words = refused("aclnnIndex", *call)
        assert (status, "private format" in words) == (INVALID, True)


def test_gradients_of_indices_are_pytorchs():
    torch = pytest.importorskip("torch")
    import aclnn.torch

    index = torch.tensor([0, 2, 0])
    ours, theirs = (torch.arange(12.0).reshape(3, 4).requires_grad_() for _ in range(2))
    values = [torch.arange(12.0).reshape(3, 4).requires_grad_() for _ in range(2)]
    found = aclnn.index(ours, [index]).square() + aclnn.index_put(ours, [index], values[0], True)
    wanted = theirs[index].square() + theirs.index_put((index,), values[1], True)
    torch.testing.assert_close(found, wanted)
    for one in (found, wanted):
        (one * torch.arange(4.0)).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(values[0].grad, values[1].grad)
