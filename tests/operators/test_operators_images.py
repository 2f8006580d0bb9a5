"""Windows of images, other sizes and margins, against loops over their elements."""

import contextlib
import itertools
import math

import numpy as np
import pytest
from calls import BF16, OK, empty, refused, run, tensor
from cases import each as named
from guarded_memory import watched

import aclnn
from aclnn import aclDataType as T

pytestmark = pytest.mark.each_instruction_set

NULLPTR, INVALID = 161001, 161002
FLOATS = [np.dtype(np.float32), np.dtype(np.float16), BF16, np.dtype(np.float64)]


def images(shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).integers(-40, 40, shape) / 8).astype(dtype)


def count_of(length, size, step, margin, ceil):
    """Windows that begin within the image or the margin before it."""
    count = (math.ceil if ceil else math.floor)((length + 2 * margin - size) / step) + 1
    return count - 1 if ceil and (count - 1) * step >= length + margin else count


def windows(plane, size, step, margin, ceil):
    """For each window: its place in the result, its elements, how many there are with the margin."""
    counts = [
        count_of(n, *one, ceil) for n, *one in zip(plane.shape, size, step, margin, strict=True)
    ]
    for place in itertools.product(*map(range, counts)):
        slices, whole = [], 1
        for i, n, k, s, p in zip(place, plane.shape, size, step, margin, strict=True):
            first, last = i * s - p, min(i * s - p + k, n + p)
            whole *= last - first
            slices.append(slice(max(first, 0), max(min(last, n), 0)))
        yield counts, place, slices, whole


def pooled(x, find, size, step, margin, ceil):
    planes = x.reshape(-1, *x.shape[-2:])
    made = []
    for plane in planes:
        result = None
        for counts, place, slices, whole in windows(plane, size, step, margin, ceil):
            result = np.empty(counts) if result is None else result
            result[place] = find(plane, slices, whole)
        made.append(result)
    return np.array(made).reshape(*x.shape[:-2], *made[0].shape)


CASES = [
    ((2, 2), (2, 2), (0, 0), False),
    ((3, 2), (2, 1), (1, 1), False),
    ((3, 3), (2, 3), (1, 0), True),
    ((2, 4), (3, 1), (1, 2), True),
    ((1, 1), (1, 1), (0, 0), False),
]


@named("dtype", FLOATS, ids=str)
def test_means_of_windows(dtype):
    x = images((2, 3, 7, 6), dtype)
    for (size, step, margin, ceil), counted in itertools.product(CASES, [True, False, 3]):

        def mean(plane, slices, whole, counted=counted):
            part = plane[tuple(slices)].astype(np.float64)
            divisor = counted if counted > 1 else whole if counted else part.size
            return part.sum() / divisor if part.size else 0

        wanted = pooled(x, mean, size, step, margin, ceil).astype(dtype)
        options = (size, step, margin, ceil, bool(counted), 3 if counted == 3 else 0)
        np.testing.assert_array_equal(aclnn.avg_pool2d(x, *options), wanted)
    one = x[0]
    out = np.empty((3, 3, 3), dtype)
    if dtype != np.float64:
        lists = [aclnn.aclCreateIntArray(numbers) for numbers in ([2], [], [0])]
        run("aclnnAvgPool2d", tensor(one), *lists, False, True, 0, 0, tensor(out))
        np.testing.assert_array_equal(out, aclnn.avg_pool2d(one, 2))


def last_nan_or_first_largest(plane, slices):
    part = plane[tuple(slices)].astype(np.float64)
    if not part.size:
        return -math.inf, None
    flat = part.ravel()
    nans = np.flatnonzero(np.isnan(flat))
    at = nans[-1] if nans.size else flat.argmax()
    row, column = np.unravel_index(at, part.shape)
    return flat[at], (row + slices[0].start) * plane.shape[1] + column + slices[1].start


@named("dtype", FLOATS, ids=str)
def test_maxima_of_windows_and_their_places(dtype):
    x = images((2, 2, 7, 6), dtype)
    x[0, 0, 2, 1:4] = np.nan
    x[0, 1, :4] = -np.inf
    for size, step, margin, ceil in CASES:
        if any(p > k // 2 for p, k in zip(margin, size, strict=True)):
            continue
        found = [
            pooled(x, lambda plane, slices, whole, n=n: last_nan_or_first_largest(plane, slices)[n],
                   size, step, margin, ceil)
            for n in (0, 1)
        ]  # fmt: skip
        values, places = aclnn.max_pool2d_with_indices(x, size, step, margin, 1, ceil)
        np.testing.assert_array_equal(values.astype(np.float64), found[0])
        np.testing.assert_array_equal(places, found[1])
        alone = aclnn.max_pool2d(x, size, step, margin, 1, int(ceil))
        np.testing.assert_array_equal(alone.astype(np.float64), found[0])


def test_windows_may_be_far_larger_than_images():
    x = images((1, 3, 5, 6))
    for size in (21, 2**20 + 1, 2**24 + 1):
        margin = size // 2
        places = [slice(max(0, i - margin), min(6, i - margin + size)) for i in range(6)]
        wanted = [x[..., place].max(-1) for place in places]
        made = aclnn.max_pool2d(x, (1, size), (1, 1), (0, margin))
        assert np.array_equal(made, np.stack(wanted, -1))
        wanted = [x[..., place].astype(float).sum(-1) / size for place in places]
        made = aclnn.avg_pool2d(x, (1, size), (1, 1), (0, margin))
        np.testing.assert_allclose(made, np.stack(wanted, -1), rtol=1e-6)


def test_maxima_in_both_phases():
    """No strides stand for 1, and margins are four."""
    x, out = images((1, 1, 3, 3)), np.empty((1, 1, 3, 2), np.float32)
    lists = [aclnn.aclCreateIntArray(n) for n in ([2, 2], [])]
    more = [aclnn.aclCreateIntArray(n) for n in ([1, 0, 0, 0], [1, 1])]
    run("aclnnMaxPool", tensor(x), *lists, 0, *more, 0, tensor(out))
    padded = np.pad(x[0, 0], ((1, 0), (0, 0)), constant_values=-np.inf)
    wanted = [[padded[i : i + 2, j : j + 2].max() for j in range(2)] for i in range(3)]
    np.testing.assert_array_equal(out[0, 0], wanted)
    places = np.empty((1, 1, 1, 1), np.int32)
    out = np.empty((1, 1, 1, 1), np.float32)
    two = aclnn.aclCreateIntArray([2, 2])
    zero, one = aclnn.aclCreateIntArray([0]), aclnn.aclCreateIntArray([1])
    run(
        "aclnnMaxPool2dWithIndices",
        tensor(x),
        two,
        two,
        zero,
        one,
        False,
        tensor(out),
        tensor(places),
    )
    assert x.ravel()[places[0, 0, 0, 0]] == out[0, 0, 0, 0] == x[0, 0, :2, :2].max()


@named("dtype", FLOATS, ids=str)
@named("size", [(1, 1), (3, 2), (7, 6), (9, 13)])
def test_adaptive_means(dtype, size):
    x = images((2, 7, 6), dtype)
    wanted = np.empty((2, *size))
    for i, j in itertools.product(*map(range, size)):
        bounds = [
            (k * n // o, -(-(k + 1) * n // o)) for k, n, o in zip((i, j), (7, 6), size, strict=True)
        ]
        part = x[:, slice(*bounds[0]), slice(*bounds[1])].astype(np.float64)
        wanted[:, i, j] = part.reshape(2, -1).sum(1) / part[0].size
    np.testing.assert_array_equal(aclnn.adaptive_avg_pool2d(x, size), wanted.astype(dtype))


@named("dtype", [*FLOATS, np.dtype(np.uint8)], ids=str)
@named("size", [(1, 1), (3, 2), (5, 4), (10, 8), (13, 17)])
def test_nearest_elements(dtype, size):
    x = np.abs(images((2, 2, 5, 4), np.float32)).astype(dtype)
    rows, columns = (
        [min(int(np.floor(np.float32(i) * np.float32(n / o))), n - 1) for i in range(o)]
        for n, o in zip((5, 4), size, strict=True)
    )
    wanted = x[:, :, rows][:, :, :, columns]
    np.testing.assert_array_equal(aclnn.upsample_nearest2d(x, size), wanted)
    turned = np.ascontiguousarray(x.transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(aclnn.upsample_nearest2d(turned, size), wanted)


def weights(length, made, corners):
    """A row for each result, of how much of each element it is."""
    found = np.zeros((made, length))
    scale = length / made if not corners else (length - 1) / (made - 1) if made > 1 else 0
    for i in range(made):
        x = i * scale if corners else max(0.0, (i + 0.5) * scale - 0.5)
        first = min(int(x), length - 1)
        found[i, first] += 1 - (x - first)
        found[i, min(first + 1, length - 1)] += x - first
    return found


@named("dtype", FLOATS, ids=str)
@named("corners", [False, True])
def test_elements_between_others(dtype, corners):
    x = images((2, 2, 5, 4), dtype)
    for size in ((1, 1), (3, 2), (5, 4), (10, 8), (13, 17)):
        rows, columns = weights(5, size[0], corners), weights(4, size[1], corners)
        wanted = np.einsum("ir,ncrs,js->ncij", rows, x.astype(np.float64), columns)
        found = aclnn.upsample_bilinear2d(x, size, corners).astype(np.float64)
        digits = 2.0 ** -{"float32": 23, "float16": 10, "bfloat16": 7, "float64": 40}[dtype.name]
        np.testing.assert_allclose(found, wanted, rtol=digits, atol=digits / 64)


def test_columns_of_windows():
    for dtype in (*FLOATS, np.dtype(np.int8), np.dtype(np.complex64)):
        x = images((2, 3, 5, 6)).astype(dtype)
        for size, apart, margin, step in (
            ((2, 2), (1, 1), (0, 0), (1, 1)),
            ((3, 2), (2, 1), (1, 2), (2, 1)),
            ((1, 3), (1, 2), (0, 1), (3, 2)),
        ):
            padded = np.pad(x, ((0, 0), (0, 0), *[(p, p) for p in margin]))
            counts = [
                (n - d * (k - 1) - 1) // s + 1
                for n, k, d, s in zip(padded.shape[2:], size, apart, step, strict=True)
            ]
            rows = [
                padded[:, c, i * apart[0] :: step[0], j * apart[1] :: step[1]][
                    :, : counts[0], : counts[1]
                ]
                for c, i, j in itertools.product(range(3), range(size[0]), range(size[1]))
            ]
            wanted = np.stack(rows, 1).reshape(2, -1, counts[0] * counts[1])
            np.testing.assert_array_equal(aclnn.im2col(x, size, apart, margin, step), wanted)
    out = np.empty((12, 20), np.float32)
    lists = [aclnn.aclCreateIntArray(n) for n in ([2, 2], [1, 1], [0, 0], [1, 1])]
    run("aclnnIm2col", tensor(images((3, 5, 6), np.float16)), *lists, tensor(out))
    np.testing.assert_array_equal(out, aclnn.im2col(images((3, 5, 6)), (2, 2)))


@named("pads", [(0, 0), (2, 3), (0, 1), (-1, 2), (3, -2), (-1, -1)])
def test_reflected_margins(pads):
    for dtype in (np.float32, np.int64, np.complex128, np.bool_):
        x = images((2, 3, 4)).astype(dtype)
        cut = x[:, :, max(-pads[0], 0) : 4 + min(pads[1], 0)]
        whole = np.pad(x, ((0, 0), (0, 0), (max(pads[0], 0), max(pads[1], 0))), "reflect")
        wanted = whole[:, :, max(-pads[0], 0) : whole.shape[2] + min(pads[1], 0)]
        found = aclnn.reflection_pad1d(x[:, :, ::1], pads)
        np.testing.assert_array_equal(found, wanted)
        assert found.shape[2] == 4 + sum(pads) == cut.shape[2] + max(pads[0], 0) + max(pads[1], 0)


def test_threads_and_strides_change_no_bit():
    x = images((3, 4, 40, 37))
    views = [x, x[:, :, ::-1, ::-1][:, :, ::-1, ::-1], np.asfortranarray(x)]
    for call in (
        lambda x: aclnn.avg_pool2d(x, 3, 2, 1),
        lambda x: aclnn.max_pool2d_with_indices(x, 3, 2, 1)[1],
        lambda x: aclnn.adaptive_avg_pool2d(x, 7),
        lambda x: aclnn.upsample_bilinear2d(x, (55, 80), False),
        lambda x: aclnn.upsample_nearest2d(x, (55, 80)),
    ):
        before = aclnn.get_num_threads()
        found = []
        for threads in (1, 3):
            aclnn.set_num_threads(threads)
            found += [call(view) for view in views]
        aclnn.set_num_threads(before)
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


def test_checks_of_images():
    x = empty((1, 2, 4, 4))
    two, none, zero = (aclnn.aclCreateIntArray(n) for n in ([2, 2], [], [0, 0]))
    half = empty((1, 2, 2, 2))
    pool = ("aclnnAvgPool2d", x, two, none, zero, False, True, 0)
    assert refused("aclnnAvgPool2d", x, None, none, zero, False, True, 0, 0, half)[0] == NULLPTR
    assert "out has shape" in refused(*pool, 0, x)[1]
    assert "from 0 to 4" in refused(*pool, 5, half)[1]
    nhwc = empty((1, 2, 4, 4), format=aclnn.ACL_FORMAT_NHWC)
    assert "format" in refused("aclnnAvgPool2d", nhwc, *pool[2:], 0, half)[1]
    wide = aclnn.aclCreateIntArray([2, 2])
    assert (
        "at most half" in refused("aclnnAvgPool2d", x, two, none, wide, False, True, 0, 0, half)[1]
    )
    assert refused("aclnnMaxPool", x, two, two, 1, zero, none, 0, half)[0] == INVALID
    bfloat = empty((1, 2, 4, 4), T.ACL_BF16)
    assert refused("aclnnMaxPool", bfloat, two, two, 0, zero, none, 0, bfloat)[0] == INVALID
    assert (
        refused("aclnnMaxPool2dWithIndices", x, two, two, zero, wide, False, half, half)[0]
        == INVALID
    )
    assert refused("aclnnUpsampleNearest2d", empty((2, 4, 4)), two, half)[0] == INVALID
    assert "out has shape" in refused("aclnnUpsampleNearest2d", x, two, x)[1]
    out = empty((1, 2, 2, 2))
    assert refused("aclnnUpsampleBilinear2d", x, two, False, -1.0, 0.0, out)[0] == INVALID
    assert (
        refused(
            "aclnnReflectionPad1d", empty((2, 3)), aclnn.aclCreateIntArray([3, 0]), empty((2, 6))
        )[0]
        == INVALID
    )
    with pytest.raises(aclnn.AclnnError, match="no window"):
        aclnn.im2col(np.zeros((1, 2, 2), np.float32), (3, 3))
    assert OK == 0


@named("dtype", FLOATS)
@named("width", [1, 2, 3, 7, 8, 9, 33])
def test_kernels_keep_to_their_scratch_and_results(dtype, width):
    """Rows shorter and longer than vectors; one thread, so that the memory is of the workspace."""
    x = images((1, 2, 3, width), dtype, width)
    calls = [
        ("max_pool2d_with_indices", 1, 1), ("avg_pool2d", 1, 1), ("adaptive_avg_pool2d", (2, 5)),
        ("upsample_nearest2d", (5, 2 * width + 1)), ("upsample_bilinear2d", (4, 2 * width + 1), True),
    ]  # fmt: skip
    for name, *options in calls:
        wanted = getattr(aclnn, name)(x, *options)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        with aclnn.num_threads(1), contextlib.ExitStack() as stack:
            ex = aclnn.executor(name, x, *options)
            with watched(ex.workspace_size) as workspace:
                found = ex.run(workspace=workspace)
            outs = [
                stack.enter_context(watched(one.nbytes)).view(one.dtype).reshape(one.shape)
                for one in wanted
            ]
            getattr(aclnn, name)(x, *options, out=tuple(outs) if len(outs) > 1 else outs[0])
            for one, own, given in zip(
                wanted, found if isinstance(found, tuple) else (found,), outs, strict=True
            ):
                assert one.tobytes() == np.asarray(own).tobytes() == given.tobytes()
