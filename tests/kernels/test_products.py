"""Matrix products: against exact sums, in any layout, by any number of threads at once."""

import itertools
import math
import threading
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from cases import each
from guarded_memory import watched
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn import isa

DTYPES = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}  # fmt: skip
HALF_ULP = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}
BORDERS = [1, 2, 3, 16, 63, 64, 65, 112, 113, 130, 257]
LAYOUTS = ("rows", "columns", "gaps", "backwards", "broadcast")


def operand(rng, shape, dtype, layout):
    """An array of random elements that lie in memory as `layout` says."""
    *batch, rows, cols = shape
    if layout == "broadcast":
        return np.broadcast_to(random(rng, (rows, cols), dtype), shape)
    if layout == "columns":
        return random(rng, (*batch, cols, rows), dtype).swapaxes(-1, -2)
    if layout == "gaps":
        return random(rng, (*batch, 2 * rows, 3 * cols), dtype)[..., ::2, ::3]
    found = random(rng, shape, dtype)
    return found[..., ::-1, ::-1] if layout == "backwards" else found


def random(rng, shape, dtype):
    return rng.standard_normal(shape).astype(DTYPES[dtype])


def view(array):
    return array.__array_interface__["data"][0], array.shape, array.strides


def kernel_of(operands, scaled=False, **options):
    *inputs, out = operands
    return isa.product_kernels().product_kernel(
        tuple(x.dtype.name for x in inputs), (out.dtype.name,), batch_shape=out.shape[:-2],
        m=out.shape[-2], n=out.shape[-1], k=inputs[0].shape[-1],
        strides=[x.strides for x in operands], scaled=scaled, **options,
    )  # fmt: skip


def multiply(*operands, numbers=(), chunks=1, **options):
    ref = kernel_of(operands, bool(numbers), **options)
    assert isa.product_kernels().run(ref, [view(x) for x in operands], numbers, chunks) == 0
    return operands[-1]


def exact(a, b):
    """The product, and the bound of its error where it is computed in float32, in float64."""
    wide, other = a.astype(np.float64), b.astype(np.float64)
    return wide @ other, np.abs(wide) @ np.abs(other)


def assert_near(out, a, b, c=None, alpha=1.0, beta=1.0, inner=2.0**-24):
    """Within k * 2^-24 of the sum of magnitudes, then rounded once."""
    want, magnitude = exact(a, b)
    want, magnitude = alpha * want, abs(alpha) * magnitude
    if c is not None and beta:
        want = want + beta * c.astype(np.float64)
        magnitude = magnitude + abs(beta) * np.abs(c.astype(np.float64))
    bound = magnitude * (a.shape[-1] + 3) * inner + np.abs(want) * HALF_ULP[out.dtype.name] + 1e-7
    assert (np.abs(out.astype(np.float64) - want) <= bound).all()


sizes = st.sampled_from(BORDERS)
layouts = st.sampled_from(LAYOUTS)
dtypes = st.sampled_from(["float32", "float16", "bfloat16"])


@settings(deadline=None, max_examples=150)
@given(
    st.tuples(sizes, sizes, sizes), st.sampled_from([(), (1,), (3,), (2, 3)]), st.data(),
    st.integers(1, 5),
)  # fmt: skip
def test_products_of_any_layout_and_dtype(mnk, batch, data, chunks):
    m, n, k = mnk
    rng = np.random.default_rng(m * n + k)
    a = operand(rng, (*batch, m, k), data.draw(dtypes), data.draw(layouts))
    b = operand(rng, (*batch, k, n), data.draw(dtypes), data.draw(layouts))
    out = operand(rng, (*batch, m, n), data.draw(dtypes), data.draw(st.sampled_from(LAYOUTS[:4])))
    out[...] = np.nan
    assert_near(multiply(a, b, out, chunks=chunks), a, b)


@settings(deadline=None, max_examples=100)
@given(
    st.tuples(sizes, sizes, sizes), st.sampled_from([(), (3,)]), st.data(),
    st.sampled_from([1.0, -0.5, 0.0]), st.sampled_from([1.0, 2.5, 0.0]), dtypes,
)  # fmt: skip
def test_what_is_added(mnk, batch, data, alpha, beta, dtype):
    m, n, k = mnk
    rng = np.random.default_rng(m + n + k)
    a = operand(rng, (*batch, m, k), dtype, data.draw(layouts))
    b = operand(rng, (*batch, k, n), dtype, data.draw(layouts))
    shape = data.draw(st.sampled_from([(*batch, m, n), (m, n), (1, n), (m, 1), (1, 1)]))
    c = np.broadcast_to(random(rng, shape, data.draw(dtypes)), (*batch, m, n))
    if beta == 0:
        c = np.full_like(c, np.nan)
    out = np.full((*batch, m, n), np.nan, DTYPES[dtype])
    multiply(a, b, c, out, numbers=(alpha, beta))
    assert_near(out, a, b, c, alpha, beta)


@each("dtype", ["float32", "float16"])
@each("batch", [(), (4,)])
def test_the_output_may_be_what_is_added(dtype, batch):
    rng = np.random.default_rng(1)
    a, b = random(rng, (*batch, 70, 130), dtype), random(rng, (*batch, 130, 90), dtype)
    c = random(rng, (*batch, 70, 90), dtype)
    out = c.copy()
    multiply(a, b, out, out, numbers=(2.0, 0.5), chunks=3)
    assert_near(out, a, b, c, 2.0, 0.5)


@each(("m", "n"), [(1, 300), (300, 1), (1, 1), (300, 200)])
@each("dtype", ["float32", "float64", "bfloat16"])
def test_an_output_of_nans_is_forgotten(m, n, dtype):
    """A beta of 0 is no factor: what the output held before does not count."""
    rng = np.random.default_rng(2)
    a, b = random(rng, (m, 40), dtype), random(rng, (40, n), dtype)
    out = np.full((m, n), np.nan, DTYPES[dtype])
    assert_near(multiply(a, b, out), a, b)
    out[...] = np.nan
    assert_near(multiply(a, b, np.full_like(out, np.nan), out, numbers=(1.0, 0.0)), a, b)


@each("dtype", ["float32", "float16"])
def test_sums_of_nothing(dtype):
    a, b = np.empty((5, 0), DTYPES[dtype]), np.empty((0, 3), DTYPES[dtype])
    c, out = np.full((5, 3), 2, DTYPES[dtype]), np.full((5, 3), np.nan, DTYPES[dtype])
    assert (multiply(a, b, out) == 0).all()
    assert (multiply(a, b, c, out, numbers=(1.0, 1.5)) == 3).all()


@each("layouts", [*itertools.product(LAYOUTS, LAYOUTS, LAYOUTS[:4])])
@each("batch", [(), (2,)])
def test_float64_is_computed_in_float64(layouts, batch):
    rng = np.random.default_rng(3)
    a = operand(rng, (*batch, 30, 150), "float64", layouts[0])
    b = operand(rng, (*batch, 150, 70), "float64", layouts[1])
    out = operand(rng, (*batch, 30, 70), "float64", layouts[2])
    multiply(a, b, out)
    want, magnitude = exact(a, b)
    assert (np.abs(out - want) <= magnitude * 300 * 2.0**-53).all()


@each("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once(dtype):
    """Sums that float32 holds exactly: the result is the half nearest to the exact one."""
    rng = np.random.default_rng(4)
    a = rng.integers(-16, 17, (50, 200)).astype(DTYPES[dtype])
    b = (rng.integers(-16, 17, (200, 40)) / 64).astype(DTYPES[dtype])
    c = rng.integers(-8, 9, (1, 40)).astype(DTYPES[dtype])
    out = np.empty((50, 40), DTYPES[dtype])
    multiply(a, b, np.broadcast_to(c, out.shape), out)
    want = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    assert (want != want.astype(np.float32).astype(DTYPES[dtype])).any()  # some are rounded
    np.testing.assert_array_equal(out, want.astype(np.float32).astype(DTYPES[dtype]))


def test_float32_against_fractions():
    rng = np.random.default_rng(5)
    a, b = random(rng, (3, 500), "float32"), random(rng, (500, 2), "float32")
    out = multiply(a, b, np.empty((3, 2), np.float32))
    for i, j in itertools.product(range(3), range(2)):
        terms = [
            Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j], strict=True)
        ]
        assert abs(Fraction(float(out[i, j])) - sum(terms)) <= sum(map(abs, terms)) * 500 / 2**24


@each("dtype", ["float32", "float16", "bfloat16"])
@each(("m", "n"), [(3, 70), (1, 70), (70, 1)])
def test_nan_and_infinity_reach_their_row_and_column(dtype, m, n):
    a, b = np.ones((m, 130), DTYPES[dtype]), np.ones((130, n), DTYPES[dtype])
    a[0, 120], b[5, -1] = np.inf, np.nan
    out = multiply(a, b, np.empty((m, n), DTYPES[dtype])).astype(np.float64)
    assert np.isnan(out[:, -1]).all()
    assert (out[0, :-1] == math.inf).all()
    assert (out[1:, :-1] == 130).all()


@each("dtype", ["float32", "float64"])
def test_inputs_may_be_rounded_to_float16_first(dtype):
    rng = np.random.default_rng(6)
    a, b = random(rng, (20, 30), dtype), random(rng, (30, 10), dtype)
    out = np.empty((20, 10), DTYPES[dtype])
    multiply(a, b, out, round_inputs_to_half=True)
    halves = [x.astype(np.float16) for x in (a, b)]
    assert_near(out, *halves)
    with pytest.raises(AssertionError):
        assert_near(out, a, b)


@each("dtype", ["float32", "float16"])
@each("shape", [(3, 4, 200, 90, 130), (1, 1, 300, 300, 300), (1, 1, 513, 64, 120)])
def test_bits_do_not_depend_on_chunks(dtype, shape):
    *batch, m, n, k = shape
    rng = np.random.default_rng(7)
    a, b = random(rng, (*batch, m, k), dtype), random(rng, (*batch, k, n), dtype)
    once = multiply(a, b, np.empty((*batch, m, n), DTYPES[dtype]))
    for chunks in (2, 3, 7, 50):
        again = np.full_like(once, np.nan)
        multiply(a, b, again, chunks=chunks)
        np.testing.assert_array_equal(again, once)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def laid_out(rng, array):
    """The same elements somewhere else in memory, at any address and with any strides."""
    layout = rng.choice(["rows", "columns", "gaps", "backwards", "padded"])
    *batch, rows, cols = array.shape
    if layout == "columns":
        found = moved(rng, (*batch, cols, rows), array.dtype).swapaxes(-1, -2)
    elif layout == "gaps":
        found = moved(rng, (*batch, 2 * rows, 3 * cols), array.dtype)[..., ::2, ::3]
    elif layout == "backwards":
        found = moved(rng, array.shape, array.dtype)[..., ::-1, ::-1]
    elif layout == "padded":
        found = moved(rng, (*batch, rows, cols + 5), array.dtype)[..., :cols]
    else:
        found = moved(rng, array.shape, array.dtype)
    found[...] = array
    return found


def moved(rng, shape, dtype):
    """Memory that begins at any element."""
    size, start = math.prod(shape), int(rng.integers(0, 17))
    return np.empty(size + start, dtype)[start:].reshape(shape)


def spread(rng, shape, dtype):
    """Elements of many magnitudes, some of which no dot product of bfloat16 may see."""
    found = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape)
    if rng.random() < 0.3:
        found = np.where(rng.random(shape) < 0.05, found * 2.0**-120, found)
    return found.astype(DTYPES[dtype])


def test_a_result_has_the_same_bits_whatever_is_computed_with_it():
    """Rows and columns alone, in batches, in chunks, transposed, in any layout: k alone counts."""
    rng = np.random.default_rng(21)
    for _ in range(150):
        dtypes = [str(rng.choice(["float32", "float16", "bfloat16"])) for _ in range(3)]
        if rng.random() < 0.3:
            dtypes[:2] = ["bfloat16"] * 2
        m, n = (int(rng.choice([1, 2, 5, 13, 14, 15, 17, 33, 70, 260])) for _ in range(2))
        k = int(rng.choice([1, 2, 7, 255, 256, 257, 300, 513]))
        a, b = spread(rng, (m, k), dtypes[0]), spread(rng, (k, n), dtypes[1])
        whole = multiply(a, b, np.empty((m, n), DTYPES[dtypes[2]]))
        rows = np.sort(rng.choice(m, int(rng.integers(1, m + 1)), replace=False))
        cols = np.sort(rng.choice(n, int(rng.integers(1, n + 1)), replace=False))
        part = laid_out(rng, a[rows]), laid_out(rng, b[:, cols])
        out = laid_out(rng, np.zeros((len(rows), len(cols)), whole.dtype))
        chunks = int(rng.integers(1, 9))
        if rng.random() < 0.5:
            multiply(*part, out, chunks=chunks)
        else:
            multiply(part[1].T, part[0].T, out.T, chunks=chunks)
        np.testing.assert_array_equal(bits(out), bits(whole[np.ix_(rows, cols)]))
        count = int(rng.integers(1, 4))
        batch = np.empty((count, m, n), whole.dtype)
        multiply(np.broadcast_to(a, (count, m, k)), np.stack([b] * count), batch, chunks=chunks)
        np.testing.assert_array_equal(bits(batch), np.stack([bits(whole)] * count))


def test_sums_take_terms_in_order_by_pieces():
    """Float32: what a loop of fused multiply-adds gives, in exact arithmetic rounded once a term."""
    if isa.name() == "generic":
        pytest.skip("without fused multiply-add")
    rng = np.random.default_rng(22)
    for k in (1, 5, 256, 257, 700):
        a, b = random(rng, (2, k), "float32"), random(rng, (k, 3), "float32")
        found = multiply(a, b, np.empty((2, 3), np.float32))
        for i, j in itertools.product(range(2), range(3)):
            total = None
            for begin in range(0, k, 256):
                piece = np.float32(0)
                for x, y in zip(a[i, begin : begin + 256], b[begin : begin + 256, j], strict=True):
                    piece = nearest(
                        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(piece))
                    )
                total = piece if total is None else np.float32(total + piece)
            assert found[i, j] == total


def nearest(exact):
    """The float32 nearest to a fraction, ties to even."""
    guess = np.float32(float(exact))
    around = [
        guess,
        np.nextafter(guess, np.float32(np.inf)),
        np.nextafter(guess, np.float32(-np.inf)),
    ]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


def test_numbers_below_the_normal_ones_count():
    """Also where dot products of bfloat16 would take them for 0."""
    dtype = ml_dtypes.bfloat16
    a, b = np.zeros((20, 40), dtype), np.ones((40, 30), dtype)
    a[3, 7], b[7, :] = 2.0**-130, 2.0**120
    a[4, :2], b[0, :], b[1, :] = 2.0**-70, 2.0**-60, 2.0**-61
    out = multiply(a, b, np.empty((20, 30), np.float32))
    assert (out[3] == 2.0**-10).all()
    assert (out[4] == 2.0**-130 + 2.0**-131).all()


@each("dtype", ["float32", "float16", "bfloat16"])
@each("layout", ["rows", "columns", "gaps"])
def test_memory_around_the_output_is_left_alone(dtype, layout):
    rng = np.random.default_rng(8)
    a, b = random(rng, (3, 65, 113), dtype), random(rng, (3, 113, 67), dtype)
    memory = np.full((3, 200, 300), 77, DTYPES[dtype])
    step = 2 if layout == "gaps" else 1
    inside = (slice(None), slice(7, 7 + 65 * step, step), slice(9, 9 + 67 * step, step))
    if layout == "columns":
        memory, inside = memory.swapaxes(1, 2), (slice(None), slice(9, 74), slice(7, 74))
    assert_near(multiply(a, b, memory[inside], chunks=2), a, b)
    rest = np.ones(memory.shape, bool)
    rest[inside] = False
    assert (memory[rest] == 77).all()


@each("dtype", ["float32", "float16"])
def test_many_threads_at_once_with_data_of_their_own(dtype):
    failures, start = [], threading.Barrier(6)

    def work(seed):
        rng = np.random.default_rng(seed)
        a, b = random(rng, (2, 150, 140), dtype), random(rng, (2, 140, 160), dtype)
        out = np.empty((2, 150, 160), DTYPES[dtype])
        start.wait(30)
        for _ in range(10):
            out[...] = np.nan
            try:
                assert_near(multiply(a, b, out, chunks=2), a, b)
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures


@each("dtype", ["float32", "float16"])
def test_chunks_of_one_product_run_side_by_side(dtype):
    rng = np.random.default_rng(9)
    a, b = random(rng, (8, 100, 130), dtype), random(rng, (8, 130, 90), dtype)
    out = np.full((8, 100, 90), np.nan, DTYPES[dtype])
    ref = kernel_of((a, b, out))
    chunks = ref.chunks(4)
    assert chunks == 4
    views, statuses = [view(x) for x in (a, b, out)], []
    threads = [
        threading.Thread(
            target=lambda c=c: statuses.append(isa.product_kernels().run(ref, views, (), chunks, c))
        )
        for c in range(chunks)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert statuses == [0] * chunks
    assert_near(out, a, b)


def test_how_work_is_cut():
    kernel = isa.product_kernels().product_kernel
    one = kernel(("float32", "float32"), ("float32",), m=2048, n=2048, k=2048)
    assert one.chunks(1) == 1
    assert 8 <= one.chunks(8) <= 32  # threads take what busy ones leave
    assert 0 < one.scratch < 2**20
    assert one.cost > 0
    batch = kernel(("float32", "float32"), ("float32",), batch_shape=(64,), m=128, n=128, k=64)
    assert batch.chunks(1) == 1
    assert batch.chunks(8) >= 8
    row = kernel(("float32", "float32"), ("float32",), m=1, n=4096, k=4096)
    assert row.chunks(2) >= 2
    half = kernel(("float16", "float16"), ("float16",), m=1024, n=1024, k=1024)
    assert half.chunks(8) >= 8
    assert kernel(("float16", "float16"), ("float16",), m=8, n=8, k=8).chunks(8) == 1
    assert half.itemsizes == (2, 2, 2)
    assert (half.prepare, half.params_size) == (0, 0)
    assert half.name == "matmul[float16,float16->float16]"


def test_arrays_that_are_not_those_of_the_plan_fail():
    a, out = np.ones((60, 400), np.float32), np.zeros((60, 60), np.float32)
    ref = kernel_of((a, a.T, out))
    assert isa.product_kernels().run(ref, [view(a), view(a.T[::2]), view(out)]) != 0
    gaps = np.zeros((120, 120), np.float32)[::2, ::2]
    # Sums would wait in more scratch than there is.
    assert isa.product_kernels().run(ref, [view(a), view(a.T), view(gaps)]) != 0
    assert (out == 0).all()
    assert (gaps == 0).all()


@each("dtype", list(DTYPES))
@each("size", [1, 3, 9, 17, 70])
def test_elements_are_converted_with_each_instruction_set(dtype, size):
    """They lie apart; nothing before, behind or between results is written."""
    rng = np.random.default_rng(size)
    a, b = (operand(rng, (size, size), dtype, "gaps") for _ in range(2))
    step = 2 * np.dtype(DTYPES[dtype]).itemsize
    strides = [a.strides, b.strides, (size * step, step)]
    for name in isa.available():
        module = isa.product_kernels(name)
        ref = module.product_kernel((dtype,) * 2, (dtype,), m=size, n=size, k=size, strides=strides)
        with watched(size * size * step) as memory:
            before = memory.copy()
            out = np.ndarray((size, size), DTYPES[dtype], memory, 0, strides[2])
            assert module.run(ref, [view(a), view(b), view(out)]) == 0
            between = np.arange(memory.size) % step >= step // 2
            assert (memory[between] == before[between]).all()
            assert_near(out, a, b, inner=2.0**-53 if dtype == "float64" else 2.0**-24)


@each("dtypes", [("int32", "float32"), ("float32", "bool"), ("complex64",) * 2])
def test_other_dtypes_are_refused(dtypes):
    with pytest.raises(ValueError, match="no product is computed in"):
        isa.product_kernels().product_kernel(dtypes, ("float32",), m=2, n=2, k=2)


@each("dtype", ["float32", "float16", "bfloat16"])
@each("rows", [1, 3, 4])
def test_few_rows_by_columns_wherever_these_begin(dtype, rows):
    """Of columns a multiple of 2 KiB apart, which lie alike in lines: bits are those by rows."""
    rng, apart = np.random.default_rng(rows), 4096 // np.dtype(DTYPES[dtype]).itemsize
    for k, first in itertools.product((5, 40, 700), range(0, 64, 3)):
        memory = random(rng, (45, apart), dtype).ravel()
        columns = np.lib.stride_tricks.as_strided(
            memory[first:], (k, 43), (memory.itemsize, apart * memory.itemsize)
        )
        a, outs = random(rng, (rows, k), dtype), np.empty((2, rows, 43), DTYPES[dtype])
        multiply(a, columns, outs[0])
        multiply(a, np.ascontiguousarray(columns), outs[1])
        assert outs[0].tobytes() == outs[1].tobytes(), (k, first)
