"""Matrix products: against exact sums, in any layout; what is refused, and when."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from cases import each
from row_calls import bits, call, layouts, plan, status
from setups import fresh

import aclnn

BF16 = ml_dtypes.bfloat16
FLOATS = (np.float32, np.float16, BF16)
HALF_ULP = {np.float32: 2.0**-24, np.float16: 2.0**-11, BF16: 2.0**-8}
SUCCESS, NULLPTR, INVALID = 0, 161001, 161002


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def on():
    """Sets the product until the test ends."""
    before = aclnn.get_soc_version()
    yield aclnn.set_soc_version
    aclnn.set_soc_version(before)


def random(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def assert_product(found, a, b, added=0.0, alpha=1.0):
    """Within k * 2^-24 of the product of magnitudes, and rounded once."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    want = alpha * np.matmul(a, b) + added
    size = abs(alpha) * np.matmul(np.abs(a), np.abs(b)) + np.abs(added)
    assert found.shape == want.shape
    bound = (a.shape[-1] + 2) * 2.0**-24 * size + HALF_ULP[found.dtype.type] * np.abs(want)
    assert (np.abs(found.astype(np.float64) - want) <= bound * 1.001).all()


SHAPES = [
    ((70, 65), (65, 33)), ((65,), (65, 33)), ((70, 65), (65,)), ((65,), (65,)),
    ((3, 1, 7, 65), (2, 65, 5)), ((65,), (4, 65, 5)), ((4, 5, 65), (65,)),
    ((2, 1, 3, 1, 7, 9), (1, 2, 1, 2, 9, 4)), ((1, 65), (65, 1)), ((6, 3, 4), (4, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul(left, right, dtype, rng):
    a, b = random(rng, left, dtype), random(rng, right, dtype)
    found = aclnn.matmul(a, b)
    assert found.dtype == dtype
    assert_product(found, a, b)
    for one, other in zip(layouts(a), layouts(b), strict=True):
        wide = np.zeros([2 * n for n in found.shape], dtype)
        out = wide[(..., *[slice(None, None, 2)] * found.ndim)]
        assert_product(aclnn.matmul(one, other, out=out), a, b)


def test_transposed_operands_are_not_copied(rng):
    a, b, out = random(rng, (300, 200)), random(rng, (250, 300)), np.empty((250, 200), np.float32)
    for executor in (
        aclnn.executor("mm", a.T, b.T, out=out.T),
        aclnn.executor("bmm", a.T[None], b.T[None]),
        aclnn.executor("addmm", out.T[0, :], a.T, b.T),
    ):
        assert all(buffer.parts for buffer in executor.plan.buffers)  # what threads pack in


def test_mixed_dtypes_and_other_outputs(rng, on):
    a, b = random(rng, (20, 30), np.float16), random(rng, (30, 10), np.float32)
    assert_product(aclnn.matmul(a, b), a, b)
    half = np.empty((20, 10), np.float16)
    aclnn.matmul(a, b, out=half)
    assert bits(half) == bits(aclnn.matmul(a, b).astype(np.float16))
    # A product of halves is rounded to one first on products that do not mix dtypes.
    single, b = np.empty((20, 10), np.float32), b.astype(np.float16)
    for name in ("aclnnMm", "aclnnMatmul"):
        call(name, a, b, single, 0)
        assert_product(single, a, b)
        assert bits(single) != bits(aclnn.matmul(a, b).astype(np.float32))
    on("Ascend910")
    call("aclnnMatmul", a, b, single, 0)
    assert bits(single) == bits(aclnn.matmul(a, b).astype(np.float32))
    assert status("aclnnMm", a, b, single, 0) == INVALID


def test_float16_as_cube_math(rng):
    a, b = random(rng, (20, 30)), random(rng, (30, 10))
    found = aclnn.mm(a, b, cube_math_type=2)
    assert_product(found, a.astype(np.float16), b.astype(np.float16))
    assert bits(found) != bits(aclnn.mm(a, b))
    for same in (0, 1, 3, 4):
        assert bits(aclnn.mm(a, b, cube_math_type=same)) == bits(aclnn.mm(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(40, 30), (30,), (1, 30), (40, 1), (1,)])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 3), (2, 0)])
def test_addmm(dtype, shape, beta, alpha, rng):
    c, a, b = (random(rng, s, dtype) for s in (shape, (40, 50), (50, 30)))
    added = beta * np.broadcast_to(c.astype(np.float64), (40, 30))
    assert_product(aclnn.addmm(c, a, b, beta=beta, alpha=alpha), a, b, added, alpha)


def test_a_beta_of_zero_ignores_what_is_added(rng):
    a, b = random(rng, (4, 5)), random(rng, (5, 6))
    assert_product(aclnn.addmm(np.full(6, np.nan, np.float32), a, b, beta=0), a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_addmm_in_place(dtype, rng):
    c, a, b = (random(rng, s, dtype) for s in ((80, 70), (80, 50), (50, 70)))
    want = bits(aclnn.addmm(c, a, b, beta=2))
    for memory in (c.copy(), np.asfortranarray(c)):
        assert aclnn.executor("addmm", memory, a, b, out=memory).graph.nodes[0].kind == "Compute"
        aclnn.addmm_(memory, a, b, beta=2)
        assert_product(memory, a, b, 2 * c.astype(np.float64))
    memory = c.copy()
    two, one = (aclnn.aclCreateScalar(n, aclnn.ACL_FLOAT) for n in (2.0, 1.0))
    call("aclnnInplaceAddmm", memory, a, b, two, one, 1)
    assert bits(memory) == want


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 40, 30), (40, 30), (30,), (3, 1, 1)])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 3), (2, 0)])
def test_baddbmm(dtype, shape, beta, alpha, rng):
    c, a, b = (random(rng, s, dtype) for s in (shape, (3, 40, 50), (3, 50, 30)))
    added = beta * np.broadcast_to(c.astype(np.float64), (3, 40, 30))
    assert_product(aclnn.baddbmm(c, a, b, beta=beta, alpha=alpha), a, b, added, alpha)
    for one, other in zip(layouts(a), layouts(b), strict=True):
        assert_product(aclnn.baddbmm(c, one, other, beta=beta, alpha=alpha), a, b, added, alpha)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(40, 30), (30,), (40, 1)])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 3)])
def test_addbmm(dtype, shape, beta, alpha, rng):
    """The sum of all products is rounded once: it is one product of longer rows."""
    c, a, b = (random(rng, s, dtype) for s in (shape, (3, 40, 50), (3, 50, 30)))
    added = beta * np.broadcast_to(c.astype(np.float64), (40, 30))
    rows, columns = a.transpose(1, 0, 2).reshape(40, 150), b.reshape(150, 30)
    found = aclnn.addbmm(c, a, b, beta=beta, alpha=alpha)
    assert_product(found, rows, columns, added, alpha)
    for one, other in zip(layouts(a), layouts(b), strict=True):
        found = aclnn.addbmm(c, one, other, beta=beta, alpha=alpha)
        assert_product(found, rows, columns, added, alpha)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [40, 1])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 3)])
def test_products_with_vectors(dtype, size, beta, alpha, rng):
    c, a, v = (random(rng, s, dtype) for s in (size, (40, 50), 50))
    assert_product(aclnn.mv(a, v), a, v)
    added = beta * np.broadcast_to(c.astype(np.float64), 40)
    assert_product(aclnn.addmv(c, a, v, beta=beta, alpha=alpha), a, v, added, alpha)
    out = np.zeros(80, dtype)[::2]
    for one, other in zip(layouts(a), [v[::-1].copy()[::-1]] * 3, strict=True):
        aclnn.addmv(c, one, other, beta=beta, alpha=alpha, out=out)
        assert_product(out, a, v, added, alpha)


def test_numbers_of_addmv_come_in_their_order(rng):
    c, a, v, out = (random(rng, s) for s in (40, (40, 50), 50, 40))
    alpha, beta = (aclnn.aclCreateScalar(n, aclnn.ACL_FLOAT) for n in (2.0, 0.5))
    call("aclnnAddmv", c, a, v, alpha, beta, out, 1)
    assert_product(out, a, v, 0.5 * c.astype(np.float64), 2.0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm(dtype, turned, rng):
    a, b, c = (random(rng, s, dtype) for s in ((40, 50), (50, 30), (40, 30)))
    given = [np.ascontiguousarray(m.T) if t else m for m, t in zip((a, b), turned, strict=True)]
    options = {"trans_a": turned[0], "trans_b": turned[1]}
    added = 0.5 * c.astype(np.float64)
    assert_product(aclnn.gemm(*given, c, -2, 0.5, **options), a, b, added, -2)
    plan = aclnn.executor("gemm", *given, c, -2, 0.5, **options).plan
    assert all(buffer.parts for buffer in plan.buffers)  # what threads pack in: no copies
    out = np.empty_like(c)
    call("aclnnGemm", *given, c, -2.0, 0.5, *turned, out, 1)
    assert_product(out, a, b, added, -2)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("baddbmm", ((3, 8, 7), (3, 8, 5), (3, 5, 7))),
        ("addbmm", ((8, 7), (3, 8, 5), (3, 5, 7))),
        ("addmv", ((8,), (8, 5), (5,))),
    ],
)
def test_addends_in_place(name, shapes, rng):
    c, a, b = (random(rng, s) for s in shapes)
    want = getattr(aclnn, name)(c, a, b, beta=2)
    for memory in (c.copy(), np.copy(c, order="F")):
        assert getattr(aclnn, f"{name}_")(memory, a, b, beta=2) is memory
        np.testing.assert_allclose(memory, want, 1e-5)
    if name != "addmv":
        memory, entry = c.copy(), f"aclnnInplace{name.capitalize()}"
        two, one = (aclnn.aclCreateScalar(n, aclnn.ACL_FLOAT) for n in (2.0, 1.0))
        call(entry, memory, a, b, two, one, 1)
        np.testing.assert_allclose(memory, want, 1e-5)


def test_outputs_that_cross_operands(rng):
    memory = random(rng, (9, 8))
    a, b = memory[:8].copy(), random(rng, (8, 8))
    aclnn.mm(memory[:8], b, out=memory[1:])
    assert_product(memory[1:], a, b)
    square = a.copy()
    aclnn.mm(square, square, out=square)
    assert_product(square, a, a)


def test_nothing_to_sum_up():
    a, b = np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32)
    assert aclnn.matmul(a, b).tolist() == [[0, 0]] * 3
    assert aclnn.addmm(np.ones(2, np.float32), a, b, beta=3).tolist() == [[3, 3]] * 3
    assert aclnn.matmul(a.T, np.zeros((3, 2), np.float32)).shape == (0, 2)
    assert aclnn.matmul(a[0], b[:, 0]) == 0


def test_matmul_checks_in_order(on):
    def zeros(*shape, dtype=np.float32):
        return np.zeros(shape, dtype)

    def refused(name, *arguments):
        assert status(name, *arguments) == INVALID
        return aclnn.aclGetRecentErrMsg().partition("\n")[0]

    x, out = zeros(2, 2), zeros(2, 2)
    assert status("aclnnMatmul", x, None, out, 9) == NULLPTR
    assert "DOUBLE" in refused("aclnnMatmul", x.astype(np.float64), x, out, 9)
    brain, half = x.astype(BF16), x.astype(np.float16)
    assert "INT8" in refused("aclnnMatmul", brain, half, out.astype(np.int8), 9)
    assert "cubeMathType is 9" in refused("aclnnMatmul", zeros(), x, out, 9)
    assert "cubeMathType is 5" in refused("aclnnBatchMatMul", x[None], x[None], x[None], 5)
    assert "self has 0 dimensions" in refused("aclnnMatmul", zeros(), x, out, 0)
    assert "mat2 has 7 dimensions" in refused("aclnnMatmul", x, zeros(*[1] * 7), out, 0)
    assert "rows of 2 elements" in refused("aclnnMatmul", x, zeros(3, 2), zeros(1), 0)
    assert "do not broadcast" in refused("aclnnMatmul", zeros(2, 2, 2), zeros(3, 2, 2), out, 0)
    assert "must have (2, 2)" in refused("aclnnMatmul", x, x, zeros(2, 3), 0)
    assert "self has 3 dimensions, must have 2" in refused("aclnnMm", x[None], x, out, 0)
    on("Ascend910")
    assert "multiplies FLOAT only with 1 or 2" in refused("aclnnMatmul", x, x, out, 0)
    assert status("aclnnMatmul", x, x, out, 1) == SUCCESS


def test_addmm_checks_in_order():
    x = np.zeros((2, 2), np.float32)
    one, odd = aclnn.aclCreateScalar(1.0, aclnn.ACL_FLOAT), aclnn.aclCreateScalar(1j, 16)
    assert status("aclnnAddmm", x, x, x, None, odd, x, 9) == NULLPTR
    assert status("aclnnAddmm", x, x, x, one, odd, x, 9) == INVALID
    assert "cannot be converted to FLOAT" in aclnn.aclGetRecentErrMsg()
    for added, words in (
        (x[None], "self has 3 dimensions"),
        (x[:, :1][[0, 1, 0]], "does not broadcast"),
    ):
        assert status("aclnnAddmm", added, x, x, one, one, x[:1], 0) == INVALID
        assert words in aclnn.aclGetRecentErrMsg()
    assert status("aclnnAddmm", x, x, x, one, one, x[:1], 0) == INVALID
    assert "out has shape (1, 2)" in aclnn.aclGetRecentErrMsg()
    assert plan("aclnnAddmm", x, x, x, one, one, x, 0)[2] == SUCCESS


def test_other_products_check_in_order():
    def zeros(*shape):
        return np.zeros(shape, np.float32)

    one = aclnn.aclCreateScalar(1.0, aclnn.ACL_FLOAT)
    x, batch, v, half = zeros(2, 2), zeros(3, 2, 2), zeros(2), np.zeros((2, 2), np.float16)
    for name, given, wanted, words in (
        ("aclnnBaddbmm", (batch, batch, None, one, one, batch, 9), NULLPTR, "batch2 is null"),
        ("aclnnBaddbmm", (batch, batch, x, one, one, batch, 9), INVALID, "cubeMathType is 9"),
        ("aclnnBaddbmm", (batch, batch, x, one, one, batch, 4), INVALID, "batch2 has 2 dimensions"),
        ("aclnnBaddbmm", (batch, batch, batch[:2], one, one, batch, 0), INVALID, "batches differ"),
        ("aclnnBaddbmm", (batch, batch, batch[:, :1], one, one, x, 0), INVALID, "rows of 2"),
        ("aclnnBaddbmm", (zeros(3, 1, 3), batch, batch, one, one, x, 0), INVALID, "not broadcast"),
        ("aclnnBaddbmm", (batch, batch, batch, one, one, x, 0), INVALID, "must have (3, 2, 2)"),
        ("aclnnAddbmm", (batch, batch, batch, one, one, x, 0), INVALID, "self has 3 dimensions"),
        ("aclnnAddbmm", (x, batch, batch, one, one, batch, 0), INVALID, "must have (2, 2)"),
        ("aclnnMv", (x, x, v, 0), INVALID, "vec has 2 dimensions"),
        ("aclnnMv", (x, zeros(3), v, 0), INVALID, "rows of 2"),
        ("aclnnMv", (x, v, x, 0), INVALID, "must have (2,)"),
        ("aclnnAddmv", (x, x, v, one, one, v, 0), INVALID, "self has 2 dimensions"),
        ("aclnnAddmv", (zeros(3), x, v, one, one, v, 0), INVALID, "does not broadcast"),
        ("aclnnGemm", (x, half, x, 1.0, 1.0, 0, 0, x, 9), INVALID, "cubeMathType is 9"),
        ("aclnnGemm", (x, v, x, 1.0, 1.0, 0, 0, x, 0), INVALID, "B has 1 dimensions"),
        ("aclnnGemm", (zeros(2, 3), x, x, 1.0, 1.0, 0, 0, x, 0), INVALID, "rows of 3"),
        ("aclnnGemm", (zeros(2, 3), x, x, 1.0, 1.0, 1, 0, x, 0), INVALID, "C has shape (2, 2)"),
    ):
        assert status(name, *given) == wanted, (name, words)
        assert words in aclnn.aclGetRecentErrMsg()
    assert status("aclnnBaddbmm", batch, batch, batch, one, one, batch, 2) == SUCCESS


WITHOUT_SCIPY = """
import sys
sys.modules["scipy"] = None
import numpy as np
import aclnn
x = np.ones((2, 2), np.float32)
print(aclnn.matmul(x, x)[0, 0], "scipy" in [m.partition(".")[0] for m in sys.modules if sys.modules[m]])
"""


def test_products_do_without_scipy():
    found = fresh(WITHOUT_SCIPY)
    assert found.stdout == "2.0 False\n", found.stderr


def scaled_forms(dtype, rows, inner, columns, bad, beta):
    """Every product with an addend, of operands that are not finite."""
    a, b = np.ones((rows, inner), dtype), np.ones((inner, columns), dtype)
    a[:1, :1] = b[-1:, -1:] = bad
    c = np.full((rows, columns), -0.0 if bad != bad else 3, dtype)
    expected = (beta * c.astype(np.float32)).astype(dtype)
    if beta == 0:
        expected, c = np.zeros_like(c), np.full_like(c, np.nan)
    return expected, {
        "addmm": lambda s: aclnn.addmm(c, a, b, **s),
        "addmm of a row": lambda s: aclnn.addmm(c[0], a, b, **s),
        "addmm by columns": lambda s: aclnn.addmm(c, a, b, **s, out=np.empty_like(c.T).T),
        "addmm_": lambda s: aclnn.addmm_(c.copy(), a, b, **s),
        "gemm": lambda s: aclnn.gemm(a, b, c, s["alpha"], s["beta"]),
        "baddbmm": lambda s: aclnn.baddbmm(c[None], a[None], b[None], **s)[0],
        "addbmm": lambda s: aclnn.addbmm(c, np.stack([a, a]), np.stack([b, b]), **s),
        "addmv": lambda s: aclnn.addmv(c[:, 0], a, b[:, 0], **s)[:, None],
    }


@each(
    "rows, inner, columns", [(1, 3, 4), (1, 40, 1), (5, 3, 1), (5, 3, 4), (40, 65, 66), (3, 0, 2)]
)
def test_without_alpha_no_product_is_computed(rows, inner, columns):
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for bad, beta in itertools.product((np.inf, np.nan), (1.0, 2.0, 0.0, -1.5)):
            expected, forms = scaled_forms(dtype, rows, inner, columns, bad, beta)
            for alpha in (0.0, -0.0):
                for name, form in forms.items():
                    found = form({"alpha": alpha, "beta": beta})
                    wanted = expected[:, : found.shape[1]]
                    np.testing.assert_array_equal(found.astype("f4"), wanted.astype("f4"), name)
                    signs = np.signbit(found.astype("f4")), np.signbit(wanted.astype("f4"))
                    np.testing.assert_array_equal(*signs, name)
