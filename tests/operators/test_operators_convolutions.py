"""Convolutions: against sums in float64, in any geometry, layout, batch and by any number of threads."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from calls import refused, run, tensor
from cases import each
from guarded_memory import watched

import aclnn

pytestmark = pytest.mark.each_instruction_set

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
HALF_ULP = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def reference(x, w, b, stride, padding, dilation, transposed, extra, groups):
    """A sum over taps, in float64: each adds, or is added to, places that lie a stride apart."""
    x, w, axes = x.astype(np.float64), w.astype(np.float64), x.ndim - 2
    rows = w.shape[1] * groups if transposed else w.shape[0]
    sizes = x.shape[2:]
    kernel, reach = w.shape[2:], [d * (k - 1) for d, k in zip(dilation, w.shape[2:], strict=False)]
    if transposed:
        out = [
            (n - 1) * s - 2 * p + r + e + 1
            for n, s, p, r, e in zip(sizes, stride, padding, reach, extra, strict=False)
        ]
        whole = np.zeros(
            (
                x.shape[0],
                rows,
                *[
                    n + 2 * p + max(s, d)
                    for n, p, s, d in zip(out, padding, stride, dilation, strict=False)
                ],
            )
        )
    else:
        out = [
            (n + 2 * p - r - 1) // s + 1
            for n, s, p, r in zip(sizes, stride, padding, reach, strict=False)
        ]
        whole = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
        made = np.zeros((x.shape[0], rows, *out))
    parts = np.arange(rows).reshape(groups, -1), np.arange(x.shape[1]).reshape(groups, -1)
    for tap in itertools.product(*map(range, kernel)):
        counts = sizes if transposed else out
        at = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(tap, dilation, counts, stride, strict=False)
        )
        for to, channels in zip(*parts, strict=False):
            if transposed:
                whole[(slice(None), to, *at)] += np.einsum(
                    "nc...,co->no...", x[:, channels], w[(channels, slice(None), *tap)]
                )
            else:
                made[:, to] += np.einsum(
                    "nc...,oc->no...",
                    whole[(slice(None), channels, *at)],
                    w[(to, slice(None), *tap)],
                )
    if transposed:
        made = whole[
            (
                slice(None),
                slice(None),
                *[slice(p, p + n) for p, n in zip(padding, out, strict=False)],
            )
        ]
    return made + (0 if b is None else b.astype(np.float64).reshape(-1, *(1,) * axes))


def assert_near(got, *given):
    x, w, b, *geometry = given
    want = reference(*given)
    magnitude = reference(np.abs(x), np.abs(w), None if b is None else np.abs(b), *geometry)
    terms = w[0].size + 3 if not geometry[3] else w.shape[0] * w[0, 0].size + 3
    bound = magnitude * terms * 2.0**-24 + np.abs(want) * HALF_ULP[got.dtype.name] + 1e-7
    assert got.shape == want.shape
    assert (np.abs(got.astype(np.float64) - want) <= bound).all()


def random_call(rng, dtype):
    """Operands and options of a convolution whose result is not empty."""
    while True:
        axes, transposed, groups = (
            rng.integers(1, 4),
            bool(rng.integers(2)),
            rng.choice([1, 1, 2, 3]),
        )
        channels, rows = rng.choice([1, 2, 3, 17]), rng.choice([1, 3, 5, 33])
        kernel, stride, dilation = (rng.integers(1, most, axes) for most in (4, 4, 3))
        padding, sizes = rng.integers(0, 3, axes), rng.integers(3, 12, axes)
        extra = [
            rng.integers(0, max(s, d)) if transposed else 0
            for s, d in zip(stride, dilation, strict=False)
        ]
        reach = dilation * (kernel - 1) + 1
        out = (
            (sizes - 1) * stride - 2 * padding + reach + extra
            if transposed
            else sizes + 2 * padding - reach + 1
        )
        if out.min() > 0:
            break
    x = rng.standard_normal((rng.integers(1, 7), channels * groups, *sizes)).astype(dtype)
    first = (channels * groups, rows) if transposed else (rows * groups, channels)
    w = rng.standard_normal((*first, *kernel)).astype(dtype)
    b = rng.standard_normal(rows * groups).astype(dtype) if rng.integers(2) else None
    lists = [tuple(map(int, one)) for one in (stride, padding, dilation)]
    return x, w, b, *lists, transposed, tuple(map(int, extra)), int(groups)


@each("dtype", DTYPES)
def test_any_geometry(dtype):
    rng = np.random.default_rng(1)
    for _ in range(60):
        given = random_call(rng, dtype)
        assert_near(aclnn.convolution(*given), *given)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


@each("dtype", DTYPES)
def test_bits_depend_on_no_batch_layout_or_threads(dtype):
    rng = np.random.default_rng(2)
    shapes = (
        ((7, 40, 9, 9), (50, 40, 3, 3), 1),
        ((5, 8, 12, 12), (8, 1, 3, 3), 8),
        ((3, 6, 9, 9), (6, 5, 3, 2), 1),
    )
    for shape, kernel, groups in shapes:
        transposed = kernel[0] == shape[1] and groups == 1
        x, w = (rng.standard_normal(one).astype(dtype) for one in (shape, kernel))
        options = {"stride": (2, 1), "padding": (1, 1), "transposed": transposed, "groups": groups}
        whole = bits(aclnn.convolution(x, w, **options))
        for threads in (1, 2, 5):
            with aclnn.num_threads(threads):
                np.testing.assert_array_equal(bits(aclnn.convolution(x, w, **options)), whole)
        np.testing.assert_array_equal(bits(aclnn.convolution(x[1:2], w, **options)), whole[1:2])
        apart = np.ascontiguousarray(x.transpose(2, 3, 0, 1)).transpose(2, 3, 0, 1)
        np.testing.assert_array_equal(bits(aclnn.convolution(apart, w, **options)), whole)
        out = np.zeros((*whole.shape[:2], whole.shape[3], whole.shape[2]), dtype).swapaxes(2, 3)
        aclnn.convolution(x, w, **options, out=out)
        np.testing.assert_array_equal(bits(out), whole)


def test_a_convolution_has_the_bits_of_a_product():
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((2, 30, 40), (50, 30, 9)))
    columns = np.lib.stride_tricks.sliding_window_view(x, 9, 2).swapaxes(2, 3).reshape(2, 270, 32)
    np.testing.assert_array_equal(aclnn.conv1d(x, w), aclnn.matmul(w.reshape(50, 270), columns))
    ones = rng.standard_normal((50, 30, 1)).astype(np.float32)
    np.testing.assert_array_equal(aclnn.conv1d(x, ones), aclnn.matmul(ones[..., 0], x))


@each("dtype", DTYPES)
def test_a_channel_by_itself_has_the_bits_of_a_row_among_others(dtype):
    rng = np.random.default_rng(9)
    for _ in range(40):
        axes, channels = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        kernel, stride, gaps = (tuple(map(int, rng.integers(1, most, axes))) for most in (4, 4, 3))
        padding = tuple(map(int, rng.integers(0, 3, axes)))
        sizes = rng.integers(5, (400, 40, 12)[axes - 1], axes)
        x = rng.standard_normal((2, channels, *sizes)).astype(dtype)
        w = rng.standard_normal((channels, 1, *kernel)).astype(dtype)
        b = rng.standard_normal(channels).astype(dtype) if rng.integers(2) else None
        if rng.integers(3) == 0:
            x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
        options = (stride, padding, gaps, False, (0,) * axes, channels)
        twice = [None if one is None else np.repeat(one, 2, axis=0) for one in (w, b)]
        alone = aclnn.convolution(x, w, b, *options)
        beside = aclnn.convolution(x, *twice, *options)
        assert alone.tobytes() == np.ascontiguousarray(beside[:, ::2]).tobytes()
        assert_near(alone, x, w, b, stride, padding, gaps, False, (0,) * axes, channels)


def chains(y, z):
    """What may follow a convolution, by its result and an operand of that shape."""
    return {
        "relu": lambda: aclnn.relu(y),
        "clamp": lambda: aclnn.clamp(y, 0.0, 0.75),
        "add": lambda: aclnn.add(y, z),
        "scaled": lambda: aclnn.add(z, y, alpha=0.3),
        "add, relu": lambda: aclnn.relu(aclnn.add(y, z, alpha=-1.7)),
        "added, clamp": lambda: aclnn.clamp(z + y, -0.5, 0.5),
        "silu": lambda: aclnn.silu(y),
        "hardswish": lambda: aclnn.hardswish(y),
        "added, silu": lambda: aclnn.silu(y + z),
        "hardswish, add": lambda: aclnn.hardswish(y) + z,
        "relu, mul": lambda: aclnn.relu(y) * z,
        "twice": lambda: y + y,
    }


def followed(name, x, w, b, options, z):
    return chains(aclnn.convolution(x, w, b, *options), z)[name]()


@each("packed", (False, True))
def test_what_follows_is_part_of_the_convolution(packed):
    """Steps that were taken in, and packed weights, give the bits of calls one by one."""
    rng = np.random.default_rng(12)
    for number in range(60):
        x, w, b, *options = random_call(rng, np.float32)
        if number % 3 == 0:  # of one element: a product with the image where it lies
            x = rng.standard_normal((2, 19, 7, 9)).astype(np.float32)
            w = rng.standard_normal((33, 19, 1, 1)).astype(np.float32)
            b, options = rng.standard_normal(33).astype(np.float32), ()
        elif number % 3 == 1:  # several pieces of sums, and of panels
            x = rng.standard_normal((2, 40, 13, 11)).astype(np.float32)
            w = rng.standard_normal((50, 40, 3, 3)).astype(np.float32)
            b, options = None, ((1, 2), (1, 1))
        if rng.integers(2):
            x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf])
        made = aclnn.convolution(x, w, b, *options)
        z = rng.standard_normal(made.shape).astype(np.float32)
        name = rng.choice([*chains(made, z)])
        wanted = chains(made, z)[name]()

        def chain(x, w, b, z, name=name, options=options):
            return followed(name, x, w, b, options, z)

        for threads in (1, 3):
            planned = aclnn.compile(chain, threads=threads, packed=("w",) if packed else False)
            if number % 3 == 0 or max(w.shape[2:]) > 1:
                assert len(planned.executor(x, w, b, z).schedule.steps) == 1, name
            found = planned(x, w, b, z)
            np.testing.assert_array_equal(found, wanted, name)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted), name)
            apart = np.zeros((*made.shape[:1], 2 * made.shape[1], *made.shape[2:]), np.float32)
            planned(x, w, b, z, out=apart[:, ::2])
            np.testing.assert_array_equal(apart[:, ::2], wanted, name)


def test_packed_weights_are_shown_and_may_be_any_rows():
    rng = np.random.default_rng(13)
    x = rng.standard_normal((3, 12, 6, 7)).astype(np.float32)
    wide = rng.standard_normal((40, 6, 3, 3)).astype(np.float32)
    planned = aclnn.compile(lambda x, w: aclnn.conv2d(x, w, groups=2), packed=("w",))
    (memory,) = planned.executor(x, wide).plan.packed
    assert (memory.name, memory.operand) == ("w packed", "w")
    for w in (wide, wide[::2], wide[::-1]):
        np.testing.assert_array_equal(planned(x, w), aclnn.conv2d(x, w.copy(), groups=2))


@each("transposed", (False, True))
def test_weights_of_any_strides(transposed):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 6, 7, 8)).astype(np.float32)
    w = rng.standard_normal((2, 3, 12, 6)).astype(np.float32)
    for turned in (
        w.transpose(3, 2, 0, 1),
        w.transpose(3, 2, 1, 0)[:, ::2],
        w.transpose(3, 2, 0, 1)[..., ::-1],
    ):
        one = turned[:, :6]
        found = bits(aclnn.convolution(x, one, transposed=transposed))
        wanted = bits(aclnn.convolution(x, one.copy(), transposed=transposed))
        np.testing.assert_array_equal(found, wanted)


def test_large_images_go_in_bands():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 20, 400, 300)).astype(np.float32)
    w = rng.standard_normal((5, 20, 3, 3)).astype(np.float32)
    whole = aclnn.conv2d(x, w, padding=(1, 1))
    np.testing.assert_array_equal(
        aclnn.conv2d(x[:, :, 90:150], w)[:, :, 1:], whole[:, :, 92:149, 1:-1]
    )


@each("dtype", DTYPES)
def test_nothing_is_written_outside_the_workspace(dtype):
    rng = np.random.default_rng(6)
    shapes = [
        ((1, 320, 64, 64), (4, 320, 3, 3), False, 1),
        ((1, 128, 64, 64), (3, 128, 3, 3), False, 1),
        ((2, 2, 14, 29, 9), (4, 2, 7, 3, 7), False, 1),
        ((1, 300, 9, 70), (300, 3, 2, 2), True, 1),
        ((2, 600, 5, 41), (4, 300, 1, 1), False, 2),
    ]
    for _ in range(12):
        groups, channels, rows = (int(rng.integers(1, most)) for most in (4, 200, 6))
        taps = [int(n) for n in rng.integers(1, 4, 2)]
        sizes = [int(n) for n in rng.integers(3, 40, 2)]
        shapes.append(
            ((1, groups * channels, *sizes), (groups * rows, channels, *taps), False, groups)
        )
    for shape, kernel, transposed, groups in shapes:
        x, w = (rng.standard_normal(one).astype(dtype) for one in (shape, kernel))
        rows = kernel[1] if transposed else kernel[0]
        bias = rng.standard_normal(rows).astype(dtype) if rng.integers(4) else None
        with aclnn.num_threads(1):  # the others' memory is not of the workspace
            ex = aclnn.executor("convolution", x, w, bias, transposed=transposed, groups=groups)
            with watched(ex.workspace_size) as workspace:
                found = ex.run(workspace=workspace)
        expected = aclnn.convolution(x, w, bias, transposed=transposed, groups=groups)
        assert np.asarray(found).tobytes() == expected.tobytes()


def test_margins_that_differ():
    x, w = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3), np.ones((1, 1, 2, 2), np.float32)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)])
    np.testing.assert_array_equal(aclnn.conv2d(x, w, padding=(1, 0, 0, 2)), aclnn.conv2d(padded, w))


def test_what_is_refused():
    x, w = np.ones((1, 4, 5, 5), np.float32), np.ones((2, 4, 3, 3), np.float32)
    refusals = (
        ({"groups": 3}, "channels differ"),
        ({"stride": (0, 1)}, "stride is"),
        ({"padding": (-1, 0)}, "padding is"),
        ({"dilation": (3, 3)}, "fewer than the kernel"),
        ({"stride": (1, 1, 1)}, "stride has 3 numbers"),
    )
    for options, words in refusals:
        with pytest.raises(aclnn.AclnnError, match=words):
            aclnn.conv2d(x, w, **options)
    with pytest.raises(aclnn.AclnnError, match="bias has shape"):
        aclnn.conv2d(x, w, np.ones(3, np.float32))
    with pytest.raises(aclnn.AclnnError, match="kernel must not be empty"):
        aclnn.conv2d(x, w[..., :0])


def test_formats_of_the_c_interface():
    x, w = np.ones((1, 1, 4), np.float32), np.ones((1, 1, 2), np.float32)
    out = np.zeros((1, 1, 3), np.float32)
    lists = [aclnn.aclCreateIntArray((n,)) for n in (1, 0, 1)]
    for form, good in (
        (aclnn.ACL_FORMAT_NCL, True),
        (aclnn.ACL_FORMAT_ND, True),
        (aclnn.ACL_FORMAT_NCHW, False),
    ):
        given = [aclnn.tensor(one, format=form) for one in (x, w, out)]
        size, executor, status = aclnn.aclnnConvolutionGetWorkspaceSize(
            given[0], given[1], None, *lists, False, lists[1], 1, given[2], 0
        )
        assert (status == aclnn.ACLNN_SUCCESS) is good
        if good:
            space = aclnn.aclrtMalloc(size, 0)[0] if size else None
            assert aclnn.aclnnConvolution(space, size, executor, None) == aclnn.ACLNN_SUCCESS
            np.testing.assert_array_equal(out, [[[2, 2, 2]]])


def test_gradients_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    for transposed in (False, True):
        x, w, b = (
            torch.tensor(rng.standard_normal(s)).float() for s in ((2, 4, 6, 7), (4, 2, 3, 2), (4,))
        )
        found = []
        for form in (aclnn.convolution, torch.convolution):
            given = [one.clone().requires_grad_() for one in (x, w, b)]
            form(*given, (2, 1), (1, 0), (1, 2), transposed, (0, 0), 2).square().sum().backward()
            found.append([one.grad for one in given])
        for ours, theirs in zip(*found, strict=False):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@each("dtype", DTYPES)
def test_transposed_forms_multiply_by_no_zeros_around_the_input(dtype):
    """Each result is a sum of products with elements that there are, and of nothing else."""
    x, w = np.ones((1, 1, 3), dtype), np.array([[[2, np.inf]]], dtype)
    np.testing.assert_array_equal(aclnn.conv_transpose1d(x, w)[0, 0], [2, np.inf, np.inf, np.inf])
    rng = np.random.default_rng(12)
    for _ in range(60):
        x, w, b, *geometry = random_call(rng, dtype)
        if not geometry[3]:
            continue
        w.flat[rng.integers(w.size, size=2)] = np.inf, rng.choice([-np.inf, np.nan, 1])
        with np.errstate(invalid="ignore"):
            wanted = reference(x, w, b, *geometry)
        found = aclnn.convolution(x, w, b, *geometry).astype(np.float64)
        special = ~np.isfinite(wanted)
        np.testing.assert_array_equal(found[special], wanted[special])
        finite = np.where(np.isfinite(w), w, 0).astype(dtype)
        near = aclnn.convolution(x, finite, b, *geometry).astype(np.float64)
        rtol = 2 * HALF_ULP[np.dtype(dtype).name]
        np.testing.assert_allclose(found[~special], near[~special], rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2])
def test_transposed_forms_are_adjoints(dims):
    """<conv(x), y> = <x, conv_transpose(y)>, for conv_transpose1d and conv_transpose2d."""
    rng = np.random.default_rng(dims)
    x = rng.standard_normal((2, 6, *(9, 7)[:dims])).astype(np.float32)
    w = rng.standard_normal((4, 3, *(3, 2)[:dims])).astype(np.float32)
    options = {"stride": 2, "padding": 1, "groups": 2}
    made = getattr(aclnn, f"conv{dims}d")(x, w, **options)
    y = rng.standard_normal(made.shape).astype(np.float32)
    sizes = [(made.shape[2 + k] - 1) * 2 - 2 + w.shape[2 + k] for k in range(dims)]
    extra = [x.shape[2 + k] - sizes[k] for k in range(dims)]
    back = getattr(aclnn, f"conv_transpose{dims}d")(y, w, output_padding=extra, **options)
    assert back.shape == x.shape
    one, other = (np.vdot(a.astype(np.float64), b) for a, b in ((made, y), (x, back)))
    assert one == pytest.approx(other, rel=1e-5)


# --- Gradients ------------------------------------------------------------------------------------


def slopes(g, x, w, stride, padding, dilation, transposed, extra, groups):
    """Gradients of input and weight, tap by tap, in float64."""
    if transposed:  # result and input of the convolution of which it is the transpose change places
        _, of_weight = slopes(x, g, w, stride, padding, dilation, False, extra, groups)
        ones = [None, stride, padding, dilation, False, None, groups]
        return reference(g, w, *ones)[tuple([slice(n) for n in x.shape])], of_weight
    pads = [(p, p + s) for p, s in zip(padding, stride, strict=True)]
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads])
    of_padded, of_weight = np.zeros_like(padded), np.zeros(w.shape)
    rows, columns = w.shape[0] // groups, w.shape[1]
    for tap, n in itertools.product(np.ndindex(*w.shape[2:]), range(groups)):
        own, theirs = slice(n * rows, (n + 1) * rows), slice(n * columns, (n + 1) * columns)
        steps = zip(tap, dilation, g.shape[2:], stride, strict=True)
        at = (
            slice(None),
            theirs,
            *[slice(k * d, k * d + (m - 1) * s + 1, s) for k, d, m, s in steps],
        )
        part, taps = g[:, own].astype(np.float64), (own, slice(None), *tap)
        weights = w[taps].astype(np.float64)
        of_padded[at] += np.einsum("no...,oc->nc...", part, weights)
        of_weight[taps] = np.tensordot(part, padded[at], ([0, *range(2, g.ndim)],) * 2)
    inside = [slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True)]
    return of_padded[(slice(None), slice(None), *inside)], of_weight


@each("dtype", DTYPES)
def test_gradients_of_any_geometry(dtype):
    rng = np.random.default_rng(11)
    for _ in range(40):
        x, w, _, *geometry = random_call(rng, dtype)
        g = rng.standard_normal(aclnn.convolution(x, w, None, *geometry).shape).astype(dtype)
        found = aclnn.convolution_backward(g, x, w, g.shape[1:2], *geometry)
        sums = g.astype(np.float64).sum((0, *range(2, g.ndim)))
        magnitudes = (
            *slopes(*map(np.abs, (g, x, w)), *geometry),
            np.abs(g.astype(np.float64)).sum((0, *range(2, g.ndim))),
        )
        terms = max(g.size // g.shape[1], w.size) + 3
        for one, want, magnitude in zip(
            found, (*slopes(g, x, w, *geometry), sums), magnitudes, strict=True
        ):
            bound = magnitude * terms * 2.0**-24 + np.abs(want) * HALF_ULP[one.dtype.name] + 1e-7
            assert (one.dtype, one.shape) == (np.dtype(dtype), want.shape)
            assert (np.abs(one.astype(np.float64) - want) <= bound).all()


@each("dtype", DTYPES)
def test_gradients_multiply_by_no_zeros_around_those_of_results(dtype):
    """Weights that are not finite reach what they were multiplied with, and nothing else."""
    rng = np.random.default_rng(13)
    for _ in range(60):
        x, w, _, *geometry = random_call(rng, dtype)
        if geometry[3]:
            continue
        g = rng.standard_normal(aclnn.convolution(x, w, None, *geometry).shape).astype(dtype)
        rest = (g.shape[1:2], *geometry, (True, False, False))
        w.flat[rng.integers(w.size, size=2)] = np.inf, rng.choice([-np.inf, np.nan, 1])
        with np.errstate(invalid="ignore"):
            wanted, _ = slopes(g, x, w, *geometry)
        found = aclnn.convolution_backward(g, x, w, *rest)[0].astype(np.float64)
        special = ~np.isfinite(wanted)
        np.testing.assert_array_equal(found[special], wanted[special])
        finite = np.where(np.isfinite(w), w, 0).astype(dtype)
        near = aclnn.convolution_backward(g, x, finite, *rest)[0].astype(np.float64)
        rtol = 2 * HALF_ULP[np.dtype(dtype).name]
        np.testing.assert_allclose(found[~special], near[~special], rtol=rtol, atol=1e-4)


@each("groups, channels", [(1, 300), (1, 3), (8, 8)])
def test_gradients_of_weights_have_the_same_bits_on_threads(groups, channels):
    """Of more windows than are multiplied at a time."""
    rng = np.random.default_rng(12)
    x, w = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((3, channels, 30, 31), (56, channels // groups, 3, 3))
    )
    g = rng.standard_normal((3, 56, 15, 16)).astype(np.float32)
    options = {"stride": (2, 2), "padding": (1, 1), "groups": groups}
    whole = aclnn.convolution_backward(g, x, w, None, **options)
    want = slopes(g, x, w, (2, 2), (1, 1), (1, 1), False, (0, 0), groups)[1]
    np.testing.assert_allclose(whole[1], want, 1e-4, 1e-3)
    for threads in (1, 2, 5, 9):
        with aclnn.num_threads(threads):
            for one, other in zip(
                aclnn.convolution_backward(g, np.asfortranarray(x), w, None, **options),
                whole,
                strict=True,
            ):
                np.testing.assert_array_equal(bits(one), bits(other))


@each("mask", list(itertools.product((False, True), repeat=3)))
def test_gradients_that_a_mask_asks_for(mask):
    rng = np.random.default_rng(13)
    x, w, g = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((2, 3, 5, 6), (4, 3, 2, 2), (2, 4, 4, 5))
    )
    every = aclnn.convolution_backward(g, x, w, (4,))
    some = aclnn.convolution_backward(g, x, w, (4,), output_mask=mask)
    for wanted, one, other in zip(mask, some, every, strict=True):
        assert (one is not None) == wanted
        assert one is None or (one == other).all()
    made = [np.zeros_like(one) for one in every]
    numbers = [aclnn.aclCreateIntArray([n, n]) for n in (1, 0, 1, 0)]
    flags = aclnn.aclCreateBoolArray(list(mask))
    outs = [tensor(one) if wanted else None for one, wanted in zip(made, mask, strict=True)]
    given = (
        *map(tensor, (g, x, w)),
        aclnn.aclCreateIntArray([4]),
        *numbers[:3],
        False,
        numbers[3],
        1,
        flags,
        0,
    )
    run("aclnnConvolutionBackward", *given, *outs)
    for wanted, one, other in zip(mask, made, every, strict=True):
        assert (one == (other if wanted else 0)).all()
    if any(mask):
        missing = [None if place == mask.index(True) else one for place, one in enumerate(outs)]
        assert refused("aclnnConvolutionBackward", *given, *missing)[0] == 161001


def test_gradients_with_margins_that_differ():
    rng = np.random.default_rng(14)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 7, 6), (4, 3, 3, 2)))
    before, after = (0, 2), (1, 1)
    g = rng.standard_normal(aclnn.convolution(x, w, None, (1, 1), (0, 1, 2, 1)).shape).astype(
        np.float32
    )
    found = aclnn.convolution_backward(g, x, w, (4,), (1, 1), (0, 1, 2, 1))
    padded = np.pad(x, [(0, 0), (0, 0), (0, 1), (2, 1)])
    want = aclnn.convolution_backward(g, padded, w, (4,))
    np.testing.assert_allclose(
        found[0], want[0][:, :, before[0] : -after[0], before[1] : -after[1]], 1e-5, 1e-5
    )
    np.testing.assert_allclose(found[1], want[1], 1e-5, 1e-5)


@each(
    "changes, words",
    [
        ({"bias_sizes": (5,)}, "bias_sizes is"),
        ({"output_mask": (True, True)}, "output_mask has 2 elements"),
        ({"grad_output": (2, 4, 5, 5)}, "grad_output has shape"),
        ({"grad_output": (2, 4, 4)}, "grad_output has 3 dimensions"),
        ({"weight": (4, 2, 2, 2)}, "channels differ"),
        ({"groups": 2}, "channels differ"),
        ({"stride": (0, 1)}, "stride is"),
        ({"input": (2, 3, 1, 6)}, "fewer than the kernel"),
    ],
)
def test_what_gradients_refuse(changes, words):
    shapes = {"grad_output": (2, 4, 4, 5), "input": (2, 3, 5, 6), "weight": (4, 3, 2, 2)}
    operands = {
        role: np.zeros(changes.get(role, shape), np.float32) for role, shape in shapes.items()
    }
    options = {"bias_sizes": (4,)} | {k: v for k, v in changes.items() if k not in shapes}
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        aclnn.convolution_backward(**operands, **options)
    assert caught.value.status == 161002


def test_second_gradients_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(3)
    given = [
        torch.randn(shape, generator=generator, requires_grad=True)
        for shape in ((2, 4, 6, 5), (6, 2, 3, 3), (6,))
    ]

    def second(form, *options):
        first = torch.autograd.grad(form(*given, *options).pow(3).sum(), given, create_graph=True)
        return torch.autograd.grad(sum(one.pow(2).sum() for one in first), given)

    ours = second(aclnn.conv2d, (2, 1), (1, 1), (1, 1), 2)
    for one, want in zip(ours, second(torch.conv2d, (2, 1), (1, 1), (1, 1), 2), strict=True):
        torch.testing.assert_close(one, want, rtol=1e-4, atol=1e-3)


def test_nothing_is_written_past_the_results():
    """Results narrower than a vector, of each way to compute a channel by itself."""
    rng = np.random.default_rng(7)
    kernels = [(3, 3), (2, 3), (5, 5), (1, 1), (1, 3)]
    cases = itertools.product(kernels, (1, 2), (0, 1), (1, 2, 3, 4, 5, 9), (1, 2, 3, 7, 9), (1, 3))
    for kernel, step, padding, rows, cols, groups in cases:
        size = [
            (out - 1) * step + taps - 2 * padding
            for out, taps in zip((rows, cols), kernel, strict=True)
        ]
        if min(size) < 1:
            continue
        x = rng.standard_normal((2, groups, *size)).astype(np.float32)
        w = rng.standard_normal((groups, 1, *kernel)).astype(np.float32)
        b = rng.standard_normal(groups).astype(np.float32)
        geometry = {"stride": (step, step), "padding": (padding, padding), "dilation": (1, 1)}
        wanted = reference(x, w, b, *geometry.values(), False, (0, 0), groups)
        with watched(wanted.size * 4) as memory:
            out = memory.view(np.float32).reshape(wanted.shape)
            aclnn.conv2d(x, w, b, **geometry, groups=groups, out=out)
            found = out.copy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_images_with_steps_of_two_are_laid_out_with_their_margins():
    """Rows of any length, windows that begin at even and odd places, and no byte behind scratch or results."""
    rng = np.random.default_rng(43)
    for number in range(250):
        taps, step = int(rng.integers(1, 8)), int(rng.integers(1, 3))
        groups, channels, rows = ((3, 1, 1), (1, 2, 3), (1, 3, 9), (2, 1, 2))[number % 4]
        padding = int(rng.integers(0, taps + 1))
        size = [max(1, int(n)) for n in rng.integers(taps - 2 * padding, 44, 2)]
        if min(size) + 2 * padding < taps:
            continue
        x = rng.standard_normal((2, groups * channels, *size)).astype(np.float32)
        w = rng.standard_normal((groups * rows, channels, taps, taps)).astype(np.float32)
        geometry = (step, step), (padding, padding), (1, 1)
        wanted = reference(x, w, None, *geometry, False, (0, 0), groups)
        with aclnn.num_threads(1):
            ex = aclnn.executor("convolution", x, w, None, *geometry, groups=groups)
            with watched(ex.workspace_size) as workspace, watched(wanted.size * 4) as memory:
                out = memory.view(np.float32).reshape(wanted.shape)
                ex.run(workspace=workspace, out=out)
                found = out.copy()
        np.testing.assert_allclose(
            found, wanted, rtol=2e-5, atol=2e-5 * max(1, np.abs(wanted).max(initial=0))
        )


def test_columns_of_few_terms_are_multiplied_several_tiles_at_a_time():
    """Packed and not, of all sizes of the last tile, beside sums in double precision."""
    rng = np.random.default_rng(44)
    for number in range(120):
        channels, rows = int(rng.integers(1, 90)), int(rng.integers(5, 40))
        taps, step = int(rng.choice([1, 1, 3])), int(rng.integers(1, 3))
        size = [int(n) for n in rng.integers(3, 30, 2)]
        x = rng.standard_normal((1, channels, *size)).astype(np.float32)
        w = rng.standard_normal((rows, channels, taps, taps)).astype(np.float32)
        b = rng.standard_normal(rows).astype(np.float32) if number % 3 else None
        options = ((step, step), (taps // 2, taps // 2), (1, 1), False, (0, 0), 1)
        wanted = reference(x, w, b, *options)
        for packed in (False, ("w",)):
            planned = aclnn.compile(
                lambda x, w, b, options=options: aclnn.convolution(x, w, b, *options),
                threads=1, packed=packed,
            )  # fmt: skip
            with watched(wanted.size * 4) as memory:
                out = memory.view(np.float32).reshape(wanted.shape)
                planned(x, w, b, out=out)
                found = out.copy()
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())


@each("name", ("silu", "hardswish"))
def test_smooth_activations_have_the_bits_of_single_calls(name):
    """Of all sizes of tiles and of channels by themselves, where exponentials end, and no byte behind results."""
    rng = np.random.default_rng(31)
    activation = getattr(aclnn, name)
    for number in range(60):
        groups = int(rng.integers(1, 9)) if number % 2 else 1
        channels, rows = (1, 1) if number % 2 else map(int, rng.integers(1, 40, 2))
        kernel, step = int(rng.choice([1, 3, 5])), int(rng.integers(1, 3))
        height, width = map(int, rng.integers(kernel, 24, 2))
        x = rng.standard_normal((1, groups * channels, height, width)).astype(np.float32)
        w = rng.standard_normal((groups * rows, channels, kernel, kernel)).astype(np.float32)
        x *= np.float32(
            rng.choice([1e-44, 1e-20, 1, 30, 1000])
        )  # the first gives less than normal numbers
        if number % 5 == 0:
            x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf])
        b = rng.standard_normal(groups * rows).astype(np.float32) if number % 3 else None
        options = ((step, step), (kernel // 2, kernel // 2), (1, 1), False, (0, 0), groups)

        def chain(x, w, b, options=options):
            return activation(aclnn.convolution(x, w, b, *options))

        wanted = activation(aclnn.convolution(x, w, b, *options))
        for packed in (False, ("w",)):
            planned = aclnn.compile(chain, threads=1, packed=packed)
            with watched(wanted.size * 4) as memory:
                out = memory.view(np.float32).reshape(wanted.shape)
                planned(x, w, b, out=out)
                found = out.copy()
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@each("rows, channels", ((5, 3), (13, 70), (24, 300), (31, 600)))
def test_columns_that_are_left_over_have_the_bits_of_others(rows, channels):
    """Of one and several pieces of sums: a result is the same, however many positions are beside it."""
    rng = np.random.default_rng(45)
    x = rng.standard_normal((2, channels, 1, 40)).astype(np.float32)
    w = rng.standard_normal((rows, channels, 1, 1)).astype(np.float32)
    b = rng.standard_normal(rows).astype(np.float32)
    z = rng.standard_normal((2, rows, 1, 40)).astype(np.float32)
    wanted = reference(x, w, b, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    chains_of_calls = {
        "alone": lambda x, w, b, z: aclnn.convolution(x, w, b),
        "added": lambda x, w, b, z: aclnn.add(aclnn.convolution(x, w, b), z, alpha=0.5),
        "bounded": lambda x, w, b, z: aclnn.relu(aclnn.convolution(x, w, b) + z),
        "smooth": lambda x, w, b, z: aclnn.silu(aclnn.convolution(x, w, b)),
    }
    for name, chain in chains_of_calls.items():
        whole = chain(x, w, b, z)
        for cols, packed in itertools.product((*range(1, 20), 32, 33, 34, 35), (False, ("w",))):
            some, added = x[..., :cols].copy(), z[..., :cols].copy()
            planned = aclnn.compile(chain, threads=1, packed=packed)
            with watched(2 * rows * cols * 4) as memory:
                out = memory.view(np.float32).reshape(2, rows, 1, cols)
                planned(some, w, b, added, out=out)
                found = out.copy()
            np.testing.assert_array_equal(found, whole[..., :cols], name)
            if name == "alone":
                np.testing.assert_allclose(
                    found, wanted[..., :cols], rtol=2e-5, atol=2e-5 * np.abs(wanted).max()
                )


@each("taps, step", ((3, 1), (3, 2), (5, 1), (5, 2), (7, 1)))
def test_channels_by_themselves_of_any_height(taps, step):
    """Rows of results are summed up several at a time: any number of them, in narrow and wide images."""
    rng = np.random.default_rng(46)
    for rows, cols in itertools.product((*range(1, 10), 13, 14, 15, 22), (1, 2, 7, 8, 9, 17)):
        batch, groups, padding = int(rng.integers(1, 4)), int(rng.integers(1, 5)), taps // 2
        size = [(n - 1) * step + 1 for n in (rows, cols)]
        x = rng.standard_normal((batch, groups, *size)).astype(np.float32)
        w = rng.standard_normal((groups, 1, taps, taps)).astype(np.float32)
        options = ((step, step), (padding, padding), (1, 1), False, (0, 0), groups)
        wanted = reference(x, w, None, *options)
        assert wanted.shape[2:] == (rows, cols)
        with watched(wanted.size * 4) as memory:
            out = memory.view(np.float32).reshape(wanted.shape)
            aclnn.convolution(x, w, None, *options, out=out)
            found = out.copy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())


@each("name", ("silu", "hardswish"))
def test_activations_of_several_channels_at_a_time(name):
    """Results of channels by themselves that lie side by side, and others; on threads, too."""
    rng = np.random.default_rng(47)
    activation = getattr(aclnn, name)
    for groups, size in ((1, 3), (45, 7), (70, 9), (9, 23)):
        x = rng.standard_normal((3, groups, size, size)).astype(np.float32)
        x.flat[rng.integers(x.size, size=3)] = np.nan, np.inf, 1e-40
        w = rng.standard_normal((groups, 1, 3, 3)).astype(np.float32)
        options = ((1, 1), (1, 1), (1, 1), False, (0, 0), groups)
        wanted = activation(aclnn.convolution(x, w, None, *options))
        apart = np.zeros((3, 2 * groups, size, size), np.float32)

        def chain(x, w, options=options):
            return activation(aclnn.convolution(x, w, None, *options))

        for threads in (1, 2):
            planned = aclnn.compile(chain, threads=threads)
            with watched(wanted.size * 4) as memory:
                out = memory.view(np.float32).reshape(wanted.shape)
                planned(x, w, out=out)
                found = out.copy()
            np.testing.assert_array_equal(found, wanted)
            planned(x, w, out=apart[:, ::2])
            np.testing.assert_array_equal(apart[:, ::2], wanted)
            assert not apart[:, 1::2].any()


@each("low, high", ((0, 6), (np.nan, 6), (0, np.nan), (2, -2), (-np.inf, 0.5)))
def test_bounds_of_results_are_those_of_single_calls(low, high):
    """Bounds that are no numbers, or that cross, of products and of channels by themselves."""
    rng = np.random.default_rng(48)
    for groups, channels, rows in ((1, 6, 13), (5, 1, 1)):
        x = rng.standard_normal((1, groups * channels, 9, 11)).astype(np.float32)
        x.flat[rng.integers(x.size, size=2)] = np.nan, -0.0
        w = rng.standard_normal((groups * rows, channels, 3, 3)).astype(np.float32)
        options = ((1, 1), (1, 1), (1, 1), False, (0, 0), groups)
        wanted = aclnn.clamp(aclnn.convolution(x, w, None, *options), low, high)
        planned = aclnn.compile(
            lambda x, w, options=options: aclnn.clamp(
                aclnn.convolution(x, w, None, *options), low, high
            )
        )
        found = planned(x, w)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
        assert np.isnan(found).all() == (np.isnan(low) or np.isnan(high))


@each("width", (1, 2, 3, 5, 7, 8, 9, 10, 14, 17, 33))
def test_columns_of_several_rows_of_any_width(width):
    """A register's positions lie in one row of the image or in many; no byte behind scratch or results."""
    rng = np.random.default_rng(49)
    for height, channels, rows, step in (
        (1, 3, 5, 1),
        (4, 30, 7, 1),
        (9, 40, 13, 2),
        (13, 5, 24, 1),
    ):
        size = [(n - 1) * step + 1 for n in (height, width)]
        x = rng.standard_normal((2, channels, *size)).astype(np.float32)
        w = rng.standard_normal((rows, channels, 3, 3)).astype(np.float32)
        options = ((step, step), (1, 1), (1, 1), False, (0, 0), 1)
        wanted = reference(x, w, None, *options)
        assert wanted.shape[2:] == (height, width)
        with aclnn.num_threads(1):
            ex = aclnn.executor("convolution", x, w, None, *options)
            with watched(ex.workspace_size) as workspace, watched(wanted.size * 4) as memory:
                out = memory.view(np.float32).reshape(wanted.shape)
                ex.run(workspace=workspace, out=out)
                found = out.copy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())
