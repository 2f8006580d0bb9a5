"""Rules and values that operators do not share with their families: lists, ranks, formats, empties."""

import importlib

import ml_dtypes
import numpy as np
import pytest
from cases import each
from row_calls import call, ints, plan

import aclnn
from aclnn import aclDataType as T
from aclnn import aclFormat as F
from aclnn.acl import dtypes
from aclnn.api.c_shaped import tensor

BF16 = ml_dtypes.bfloat16
OK, NULLPTR, INVALID = 0, 161001, 161002
INF, NAN = np.inf, np.nan
A2 = "Ascend910B"


@pytest.fixture
def on():
    """Sets the product until the test ends."""
    before = aclnn.get_soc_version()
    yield aclnn.set_soc_version
    aclnn.set_soc_version(before)


def of(dtype, shape=(2, 3), format=F.ACL_FORMAT_ND):
    """A description without memory; `dtype` is CANN's or NumPy's."""
    if not isinstance(dtype, T):
        dtype = dtypes.of_numpy(np.dtype(dtype))
    made = aclnn.aclCreateTensor(shape, dtype, None, 0, format, shape, None)
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def sliced(shape, dtype=np.float32):
    """One of that shape whose elements have gaps between them."""
    memory = np.zeros((*shape, 2), dtype)
    return tensor(memory[..., 0])


def number(value, dtype=T.ACL_FLOAT):
    return aclnn.aclCreateScalar(value, dtype)


def status(name, *arguments):
    """Of phase one, with the message where it fails."""
    found = plan(name, *arguments)[2]
    message = aclnn.aclGetRecentErrMsg()
    return (found, "") if found == OK else (found, message.partition("\n")[0])


def assert_taken(name, *arguments):
    assert status(name, *arguments) == (OK, ""), (name, arguments)


def assert_refused(words, name, *arguments, wanted=INVALID):
    found, message = status(name, *arguments)
    assert found == wanted, (name, arguments)
    assert words in message


def assert_same(found, want):
    """Whatever the dtype, NaNs included."""
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))


# --- Values -----------------------------------------------------------------------------------------


@each("dtype", [np.float32, np.float16, BF16])
def test_a_null_beta_is_1(dtype):
    x, g = np.array([-3, -0.5, 0, 1, 4], dtype), np.array([1, 2, 3, -4, 0.5], dtype)
    for name, given in (("aclnnSwish", (x,)), ("aclnnSwishBackward", (g, x))):
        found, want = np.empty_like(x), np.empty_like(x)
        call(name, *given, None, found)
        call(name, *given, number(1.0), want)
        np.testing.assert_array_equal(found, want)


def test_a_null_beta_in_functional_forms_and_executors():
    x, g = np.float32([-3, 0.5, 4]), np.float32([1, 2, 3])
    want, slope = aclnn.silu(x), aclnn.silu_backward(g, x)
    np.testing.assert_array_equal(aclnn.swish(x, None), want)
    np.testing.assert_array_equal(aclnn.swish_backward(g, x, beta=None), slope)
    np.testing.assert_array_equal(aclnn.executor("swish", x, None).run(), want)
    out = np.empty_like(x)
    np.testing.assert_array_equal(aclnn.executor("aclnnSwish", x, None, out).run(), want)


SUMS = [
    ([INF, 1, 2], [0.5, 0.25, 0.25], [NAN, -INF, -INF]),
    ([-INF, 1, 2], [0.5, 0.25, 0.25], [NAN, INF, INF]),
    ([3e38, 3e38, 3e38], [1, 1, 1], [-INF, -INF, -INF]),
    ([-3e38, -3e38, -3e38], [1, 1, 1], [INF, INF, INF]),
    ([3e38, 3e38, 3e38], [1, 1, 0], [-INF, -INF, NAN]),
    ([1, 2, 3], [INF, 1, -1], [-INF, -INF, INF]),
    ([1, 0, 3], [1, INF, 1], [NAN, NAN, NAN]),
    ([1, NAN, 3], [1, 1, 1], [NAN, NAN, NAN]),
]


@each("g, y, want", SUMS)
@each("dtype", [np.float32, BF16])
def test_infinite_sums_of_softmaxs_gradient(g, y, want, dtype):
    for count in (1, 7, 700):  # rows that fit a chunk, and those of many chunks
        wide = [np.array(v, dtype).repeat(count) for v in (g, y, want)]
        if count > 1 and max(map(abs, g)) == 3e38 and 0 in y:
            continue  # sums of more elements are others
        found = aclnn.softmax_backward(wide[0], wide[1], 0)
        assert_same(found, wide[2])
    beside = [np.stack([np.array(v, dtype)] * 20, axis=1) for v in (g, y, want)]
    assert_same(aclnn.softmax_backward(beside[0], beside[1], 0), beside[2])


@each("dtype", [np.float32, np.float16, BF16])
@each("count", [1, 9, 700])
def test_an_infinite_logarithm_of_softmax(dtype, count):
    """Its exponential is infinite, which a sum of 0 makes no number."""
    g = np.array([1, -1, 0] * count, dtype)
    y = np.array([INF, 0, -INF] * count, dtype)
    want = np.array([NAN, -1, 0] * count, dtype)
    assert_same(aclnn.log_softmax_backward(g, y, 0), want)
    g[0] = 2
    want = np.array([-INF, -2, 0] * count, dtype)
    want[0::3], want[1::3] = -INF, -2
    assert_same(aclnn.log_softmax_backward(g, y, 0), want)


def test_gradients_of_swish_with_a_null_beta():
    torch = pytest.importorskip("torch")
    import aclnn.torch  # noqa: F401  registers the operators

    x = torch.linspace(-4, 4, 9, requires_grad=True)
    (found,) = torch.autograd.grad(torch.ops.aclnn.swish(x, None).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(found.sum(), x)
    wanted = torch.nn.functional.silu(x)
    (want,) = torch.autograd.grad(wanted.sum(), x, create_graph=True)
    (twice,) = torch.autograd.grad(want.sum(), x)
    torch.testing.assert_close(found, want)
    torch.testing.assert_close(second, twice)


# --- Ranks ------------------------------------------------------------------------------------------

DEEP = (2, 1, 2, 1, 2, 1, 2, 1, 2, 1)


def deep(dtype=np.float32, shape=DEEP, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


OF_ANY_RANK = {
    "aclnnSelu": (lambda x: (tensor(x),), "selu", 1),
    "aclnnSeluBackward": (lambda x: (tensor(x), tensor(x)), "selu_backward", 2),
    "aclnnLogSigmoid": (lambda x: (tensor(x),), "log_sigmoid", 1),
    "aclnnHardswish": (lambda x: (tensor(x),), "hardswish", 1),
}


@each("name", OF_ANY_RANK)
@each("shape", [DEEP, (1,) * 20, (2,) * 10, (1,) * 9 + (0,)])
def test_no_limit_of_dimensions(name, shape):
    given, form, count = OF_ANY_RANK[name]
    x = deep(shape=shape)
    out = np.empty_like(x)
    call(name, *given(x), tensor(out))
    want = getattr(aclnn, form)(*[x.reshape(-1)] * count).reshape(shape)
    assert_same(out, want)
    assert_same(getattr(aclnn, form)(*[x] * count), want)
    inplace = f"aclnnInplace{name.removeprefix('aclnn')}"
    if hasattr(aclnn, inplace):
        call(inplace, tensor(x))
        assert_same(x, want)


def test_shrink_and_log_sigmoid_of_any_rank():
    x, out = deep(), np.empty(DEEP, np.float32)
    call("aclnnShrink", x, number(0.5), number(0.25), out)
    assert_same(out, aclnn.shrink(x.reshape(-1), 0.5, 0.25).reshape(DEEP))
    for buffer in (None, np.int8([]), np.zeros((2,) * 12, np.int8), x):
        call("aclnnLogSigmoidForward", x, out, buffer)
        assert_same(out, aclnn.log_sigmoid(x))
        if buffer is not None:
            call("aclnnLogSigmoidBackward", x, x, buffer, out)
            flat = x.reshape(-1)
            assert_same(out, aclnn.log_sigmoid_backward(flat, flat, flat[:1]).reshape(DEEP))


@each("rank", [9, 20, 32])
def test_random_slopes_up_to_32_dimensions(rank):
    """Without training noise is not looked at, but for its dtype and how many dimensions it has."""
    shape = (1,) * (rank - 1) + (5,)
    x, out, numbers = deep(shape=shape), np.empty(shape, np.float32), (number(0.25), number(0.5))
    want = aclnn.rrelu_with_noise(x.reshape(-1), x.reshape(-1), 0.25, 0.5).reshape(shape)
    for kind in (shape, (7, 3), (0,), (1,) * 31 + (2,)):
        noise = np.zeros(kind, np.float32)
        call("aclnnRReluWithNoise", x, noise, *numbers, False, 0, 0, out)
        assert_same(out, want)
        again = x.copy()
        call("aclnnInplaceRReluWithNoise", again, noise, *numbers, False, 0, 0)
        assert_same(again, want)
    flat = x.reshape(-1)
    call("aclnnRReluWithNoise", flat, np.zeros(shape, np.float32), *numbers, False, 0, 0, flat)
    assert_same(flat, want.reshape(-1))
    many = of(T.ACL_FLOAT, (1,) * 33)
    for given in ((many, x, many), (x, many, x)):
        arguments = (*given[:2], *numbers, False, 0, 0, given[2])
        assert_refused("at most 32", "aclnnRReluWithNoise", *arguments)


def test_any_rank_where_all_tensors_are_contiguous():
    x, end, weight = deep(seed=1), deep(seed=2), deep(seed=3)[:1, ..., :1, :]
    out, flat = np.empty(DEEP, np.float32), (2, 8, 2)
    call("aclnnLerp", x, end, np.ascontiguousarray(weight), out)
    want = aclnn.lerp(x.reshape(flat), end.reshape(flat), weight.reshape(1, 8, 1))
    assert_same(out, want.reshape(DEEP))
    call("aclnnLerps", x, end, number(0.75), out)
    assert_same(out, aclnn.lerp(x.reshape(-1), end.reshape(-1), 0.75).reshape(DEEP))
    again = x.copy()
    call("aclnnInplaceLerps", again, end, number(0.75))
    assert_same(again, out)
    truth = np.empty(DEEP, bool)
    call("aclnnLogicalNot", np.sign(x), truth)
    assert not truth.any()
    one, few, many = np.ones((1,), np.float32), sliced((2, 2)), sliced(DEEP)
    assert_refused("10 dimensions", "aclnnLerp", many, x, x, out)
    assert_refused("10 dimensions", "aclnnLerp", x, x, x, sliced(DEEP))
    assert_refused("10 dimensions", "aclnnLerps", x, many, number(1.0), out)
    assert_refused("10 dimensions", "aclnnInplaceLerp", many, x, x)
    assert_refused("10 dimensions", "aclnnLogicalNot", x, sliced(DEEP, bool))
    assert_refused("10 dimensions", "aclnnLogicalNot", many, truth)
    assert_taken("aclnnLerp", few, one, one, few)


# --- Empties ----------------------------------------------------------------------------------------


def does_nothing(name, *arguments):
    """Both phases succeed, without a workspace and without writing."""
    size, _, found = plan(name, *arguments)
    assert (size, found) == (0, OK), aclnn.aclGetRecentErrMsg()
    outputs = [one for one in arguments if isinstance(one, np.ndarray) and one.size]
    before = [one.copy() for one in outputs]
    call(name, *arguments)
    for one, was in zip(outputs, before, strict=True):
        np.testing.assert_array_equal(one, was)


def test_empties_that_are_looked_at_no_further(on):
    nothing, odd = np.zeros((0, 3), np.int8), np.full(5, 7, np.int64)
    deep_one, words = np.zeros((1,) * 9 + (0,), np.complex64), np.full((2,) * 9, 7.0)
    for first, second in ((nothing, odd), (odd, nothing), (deep_one, words), (words, deep_one)):
        for name in ("aclnnLeTensor", "aclnnNeTensor"):
            does_nothing(name, first, second, odd)
            does_nothing(name, first, second, words)
        does_nothing("aclnnInplaceLeTensor", first, second)
        does_nothing("aclnnLogSoftmaxBackward", first, second, 77, odd)
    assert_refused("is null", "aclnnLeTensor", nothing, nothing, None, wanted=NULLPTR)
    for name in ("Lt", "Gt", "Ge", "Eq"):
        assert_refused("", f"aclnn{name}Tensor", nothing, odd, odd)
    on("Ascend950")
    assert_refused("INT8", "aclnnLogSoftmaxBackward", nothing, nothing, 77, odd)
    does_nothing("aclnnLeTensor", nothing, odd, odd)


def test_functional_forms_check_empties_in_full():
    nothing, odd = np.zeros((0, 3), np.float32), np.zeros(5, np.float32)
    for form in (aclnn.le, aclnn.ne):
        with pytest.raises(aclnn.AclnnError, match="broadcast"):
            form(nothing, odd)
        assert form(nothing, odd[:3]).shape == (0, 3)
    with pytest.raises(aclnn.AclnnError, match="dtype"):
        aclnn.log_softmax_backward(nothing.astype(np.int8), nothing.astype(np.int8), 0)
    with pytest.raises(aclnn.AclnnError, match="largest"):
        aclnn.max(nothing)
    with pytest.raises(aclnn.AclnnError, match="largest"):
        aclnn.arg_max(nothing, 0)


def test_the_largest_of_nothing():
    nothing, one, out = np.zeros((0, 3), np.float32), np.ones((2, 3), np.float32), np.int64([7, 7])
    does_nothing("aclnnArgMax", nothing, 0, False, out)
    does_nothing("aclnnArgMax", one, 0, False, np.int64([]))
    assert_refused("INT8", "aclnnArgMax", nothing, 0, False, np.int8([7]))
    assert_refused("FLOAT", "aclnnArgMax", nothing.astype(np.complex64), 0, False, out)
    assert_refused("dim", "aclnnArgMax", nothing, 2, False, out)
    assert_refused("9 dimensions", "aclnnArgMax", np.zeros((0,) * 9, np.float32), 0, False, out)
    assert_refused("must have", "aclnnArgMax", one, 0, False, out)
    does_nothing("aclnnMax", nothing, np.float32([7, 7]))
    does_nothing("aclnnMax", one, np.zeros((2, 0), np.float32))
    assert_refused("dtype", "aclnnMax", nothing, np.int8([7]))
    assert_refused("9 dimensions", "aclnnMax", np.zeros((0,) * 9, np.float32), np.float32([7]))
    assert_refused("must have", "aclnnMax", one, np.float32([7, 7]))
    assert_refused("largest", "aclnnAmax", nothing, aclnn.aclCreateIntArray([0]), False, one[0])


def test_splits_of_nothing():
    def listed(*shapes, dtype=np.float32):
        return aclnn.aclCreateTensorList([tensor(np.full(s, 7, dtype)) for s in shapes])

    nothing = np.zeros((0, 3), np.float32)
    for shapes in (((2, 2),), ((0, 3), (5,)), ((1,) * 8, (0,), (3,))):
        does_nothing("aclnnSplitTensor", nothing, 2, 0, listed(*shapes))
        does_nothing("aclnnSplitTensor", nothing, 2, 1, listed(*shapes))
    does_nothing("aclnnSplitTensor", nothing, 0, 0, listed((2, 2)))
    for words, given in (
        ("dtype", (nothing, 2, 0, listed((2, 2), dtype=np.int8))),
        ("9 dimensions", (np.zeros((0,) * 9, np.float32), 2, 0, listed((2, 2)))),
        ("dim", (nothing, 2, 2, listed((2, 2)))),
        ("positive", (nothing, 0, 1, listed((2, 2)))),
        ("pieces", (np.ones((2, 3), np.float32), 2, 1, listed((2, 2)))),
    ):
        assert_refused(words, "aclnnSplitTensor", *given)


def test_triangles_of_nothing():
    for shape in ((0,), (0, 3), (2, 0), (1,) * 8 + (0,), (3, 0, 2)):
        nothing = np.zeros(shape, np.float32)
        does_nothing("aclnnTriu", nothing, 1, nothing.copy())
        does_nothing("aclnnInplaceTriu", nothing, 1)
        assert_refused("must have", "aclnnTriu", nothing, 1, np.zeros(0, np.float32)[None, None])
    nothing = np.zeros(0, np.float32)
    assert_refused("1 dimensions", "aclnnTril", nothing, 0, nothing)
    assert_refused("9 dimensions", "aclnnTril", *[np.zeros((0,) * 9, np.float32), 0] * 1, nothing)
    assert_refused("1 dimensions", "aclnnTriu", np.ones(2, np.float32), 0, np.ones(2, np.float32))


@each("m, n, k", [(0, 3, 2), (3, 0, 2), (0, 0, 0)])
def test_empty_products_into_any_empty_output(m, n, k):
    a, b, one = np.ones((m, k), np.float32), np.ones((k, n), np.float32), number(1.0)
    c = np.ones((m, n), np.float32)
    for shape in ((m, n), (0,), (4, 0), (0, 5, 6)):
        out = np.zeros(shape, np.float32)
        does_nothing("aclnnAddmm", c, a, b, one, one, out, 0)
        does_nothing("aclnnGemm", a, b, c, 1.0, 1.0, 0, 0, out, 0)
    out = np.zeros((1, 1), np.float32)
    assert_refused("out has shape", "aclnnAddmm", c, a, b, one, one, out, 0)
    assert_refused("out has shape", "aclnnGemm", a, b, c, 1.0, 1.0, 0, 0, out, 0)
    assert_refused("out has shape", "aclnnMm", a, b, np.zeros((0, 5, 6), np.float32), 0)


# --- Formats ----------------------------------------------------------------------------------------

ND, NCHW, NZ = F.ACL_FORMAT_ND, F.ACL_FORMAT_NCHW, F.ACL_FORMAT_FRACTAL_NZ
SQUARE = (3, 3)


def formatted(*formats, shape=SQUARE, dtype=T.ACL_FLOAT):
    return [of(dtype, shape, format) for format in formats]


def unary(name, *more):
    """A call by the formats of self and out; `more` comes between them."""
    return lambda x, y: (name, *formatted(x), *more, *formatted(y))


def _listed(x, y):
    return ("aclnnCat", aclnn.aclCreateTensorList(formatted(x, x)), 0, of(T.ACL_FLOAT, (6, 3), y))


ALIKE_AND_PLAIN = [unary("aclnnAbs"), unary("aclnnTriu", 0), _listed]
ALIKE = [unary("aclnnTril", 0), unary("aclnnReciprocal")]
PLAIN = [
    unary("aclnnDiv", of(T.ACL_FLOAT, SQUARE)),
    unary("aclnnDivs", number(2.0)),
    unary("aclnnDivMod", of(T.ACL_FLOAT, SQUARE), 1),
    unary("aclnnDivMods", number(2.0), 1),
    unary("aclnnAddcmul", *formatted(ND, ND), number(2.0)),
    unary("aclnnIndexSelect", 0, of(T.ACL_INT64, (3,))),
    unary("aclnnFloor"),
]


def test_formats():
    for alike, plain, made in (
        *[(True, True, one) for one in ALIKE_AND_PLAIN],
        *[(True, False, one) for one in ALIKE],
        *[(False, True, one) for one in PLAIN],
    ):
        for x, y in ((ND, ND), (NCHW, NCHW), (ND, NCHW), (NCHW, ND), (NZ, NZ), (NZ, ND), (ND, NZ)):
            private = plain and NZ in (x, y)
            if private or (alike and x != y):
                assert_refused("format", *made(x, y))
            else:
                assert_taken(*made(x, y))
    for name in ("aclnnInplaceAddcmul",):
        assert_refused("FRACTAL_NZ", name, *formatted(ND, ND, NZ), number(1.0))
    for name in ("aclnnInplaceDiv", "aclnnInplaceDivMod"):
        mode = (1,) if name.endswith("Mod") else ()
        assert_refused("FRACTAL_NZ", name, *formatted(ND, NZ), *mode)


def test_where_formats_are_checked():
    """After dtypes, before shapes; of divisions after both."""
    odd, complex_one = of(T.ACL_FLOAT, (5,), NZ), of(T.ACL_COMPLEX128, SQUARE, NZ)
    for name, more in (("Abs", ()), ("Floor", ()), ("Triu", (0,)), ("IndexSelect", (7, odd))):
        if name in ("Abs", "Floor"):
            assert_refused("dtype", f"aclnn{name}", complex_one, odd)
        if name == "IndexSelect":
            more = (7, of(T.ACL_INT64, (3,)))
        assert_refused("format", f"aclnn{name}", *formatted(NZ), *more, odd)
    assert_refused("broadcast", "aclnnDiv", *formatted(NZ), odd, odd)
    assert_refused("cannot be cast", "aclnnDiv", *formatted(NZ, NZ), of(T.ACL_INT8, SQUARE, NZ))
    assert_refused("format", "aclnnDiv", *formatted(NZ, NZ, NZ))
    listed = aclnn.aclCreateTensorList(formatted(ND, NZ))
    assert_refused("tensors[1] has the private format", "aclnnCat", listed, 9, odd)
    listed = aclnn.aclCreateTensorList(formatted(ND, NCHW))
    assert_refused("tensors[1] has format", "aclnnCat", listed, 9, of(T.ACL_FLOAT, (5,)))


def test_formats_of_padding():
    def call_of(x, y):
        return ("aclnnConstantPadNd", *formatted(x), ints(0, 0), number(1.0), *formatted(y))

    for x, y, taken in ((ND, NCHW, True), (ND, NZ, True), (NCHW, NCHW, True), (NCHW, ND, False)):
        if taken:
            assert_taken(*call_of(x, y))
        else:
            assert_refused("format", *call_of(x, y))


def test_blocks_in_products():
    def batch(shape, format=ND):
        return of(T.ACL_FLOAT, shape, format)

    for k, n in ((1, 4), (4, 1), (1, 1), (4, 5)):
        given = batch((2, 3, k)), batch((2, k, n), NZ), batch((2, 3, n)), 1
        if 1 in (k, n):
            assert_refused("FRACTAL_NZ", "aclnnBatchMatMul", *given)
        else:
            assert_taken("aclnnBatchMatMul", *given)
        assert_taken("aclnnBatchMatMul", given[0], batch((2, k, n)), given[2], 1)
    for name in ("aclnnMm", "aclnnMatmul"):
        assert_taken(name, *formatted(ND, NZ, ND), 1)
        assert_refused("FRACTAL_NZ", name, *formatted(NZ, ND, ND), 1)
    a, b = deep(shape=(4, 5)), deep(shape=(5, 6), seed=1)
    blocks = aclnn.aclCreateTensor((5, 6), T.ACL_FLOAT, None, 0, NZ, (5, 6), b)
    out = np.empty((4, 6), np.float32)
    call("aclnnMm", a, blocks, out, 1)
    assert_same(out, aclnn.mm(a, b))


# --- dtypes -----------------------------------------------------------------------------------------

EVERY = tuple(dtypes.NUMPY)
FP3 = (T.ACL_FLOAT, T.ACL_FLOAT16, T.ACL_BF16)
SIGNED = (T.ACL_INT8, T.ACL_INT16, T.ACL_INT32, T.ACL_INT64)
UNSIGNED = (T.ACL_UINT16, T.ACL_UINT32, T.ACL_UINT64)
REAL = (*FP3, T.ACL_DOUBLE, *SIGNED, T.ACL_UINT8, T.ACL_BOOL)
COMPLEX = (T.ACL_COMPLEX64, T.ACL_COMPLEX128)


def assert_lists(accepted, made):
    """Of all dtypes a call takes those and no others; `made` gives the call of a dtype."""
    found = {dtype for dtype in EVERY if status(*made(dtype))[0] == OK}
    assert found == set(accepted)
    for dtype in set(EVERY) - found:
        assert status(*made(dtype))[0] == INVALID


def alike(name, *more):
    return lambda dtype: (name, of(dtype), *more, of(dtype))


def single(name):
    return lambda dtype: (name, of(dtype))


def test_lists_of_dtypes(on):
    expanded = {*FP3, T.ACL_UINT8, T.ACL_INT8, T.ACL_INT32, T.ACL_INT64, T.ACL_BOOL}
    index = of(T.ACL_INT64, (2, 3))
    assert_lists(set(REAL), alike("aclnnAbs"))
    assert_lists({*REAL, *UNSIGNED} - {T.ACL_BOOL}, alike("aclnnFloor"))
    assert_lists(expanded, alike("aclnnExpand", ints(2, 3)))
    assert_lists(set(EVERY) - {*COMPLEX}, alike("aclnnGather", 0, index))
    assert_lists({*REAL}, single("aclnnInplaceOne"))
    assert_lists({*REAL, T.ACL_UINT16, *COMPLEX}, single("aclnnInplaceZero"))
    assert_lists({*REAL, *COMPLEX} - {T.ACL_BOOL, *SIGNED, T.ACL_UINT8}, alike("aclnnReciprocal"))
    erf = {*FP3, T.ACL_DOUBLE, T.ACL_BOOL, T.ACL_INT64}
    assert_lists(erf, lambda dtype: ("aclnnErf", of(dtype), of(T.ACL_DOUBLE)))
    for name in ("And", "Or", "Xor"):

        def made(dtype, name=name):
            return (f"aclnnLogical{name}", of(dtype), of(dtype), of(T.ACL_BOOL))

        assert_lists({*REAL, *COMPLEX}, made)
    assert_lists({*REAL}, lambda dtype: ("aclnnLogicalNot", of(dtype), of(T.ACL_BOOL)))
    assert_lists(set(), alike("aclnnSquare"))
    on("Ascend950")
    assert_lists({*FP3, T.ACL_INT64, T.ACL_INT32}, alike("aclnnSquare"))
    assert_refused("must have that of self", "aclnnSquare", of(T.ACL_FLOAT16), of(T.ACL_FLOAT))
    on("Ascend910")
    assert_refused("does not exist on Ascend910", "aclnnSquare", of(T.ACL_FLOAT), of(T.ACL_FLOAT))
    assert_refused("BF16", "aclnnFloor", of(T.ACL_BF16), of(T.ACL_BF16))


def test_functional_forms_take_what_numpys_functions_do():
    """Where CANN's lists are narrower, and rules of products too."""
    for dtype in (np.float64, np.complex64, np.int8):
        x = np.array([1, 2, 3], dtype)
        np.testing.assert_array_equal(aclnn.square(x), x * x)
        np.testing.assert_array_equal(aclnn.expand(x, (2, 3)), np.stack([x, x]))
        np.testing.assert_array_equal(aclnn.gather(x, 0, np.int64([2, 0])), x[[2, 0]])
        np.testing.assert_array_equal(aclnn.one_(x.copy()), np.ones(3, dtype))
    both = aclnn.cat([np.complex128([1j]), np.float64([2])])
    np.testing.assert_array_equal(both, [1j, 2])


def test_dtypes_of_outputs(on):
    for name, given, wanted in (
        ("aclnnAbs", T.ACL_FLOAT16, T.ACL_FLOAT16),
        ("aclnnAbs", T.ACL_COMPLEX64, T.ACL_FLOAT),
        ("aclnnFloor", T.ACL_INT32, T.ACL_INT32),
        ("aclnnFloor", T.ACL_FLOAT16, T.ACL_FLOAT16),
    ):
        found = {dtype for dtype in EVERY if status(name, of(given), of(dtype))[0] == OK}
        assert found == {wanted}, name
    assert_refused("COMPLEX128", "aclnnAbs", of(T.ACL_COMPLEX128), of(T.ACL_DOUBLE))
    half, single_one = of(T.ACL_FLOAT16), of(T.ACL_FLOAT)
    for dtype in EVERY:
        given = half, half, number(1.0), of(dtype)
        found = status("aclnnLerps", *given)[0]
        assert found == (OK if dtype in (*FP3, T.ACL_DOUBLE) else INVALID)
        found = status("aclnnLerp", half, half, half, of(dtype))[0]
        assert found == (OK if dtype == T.ACL_FLOAT16 else INVALID)
    for pair in ((single_one, half), (half, single_one)):
        assert_refused("dtype", "aclnnLerp", half, *pair, half)
        assert_refused("dtype", "aclnnLerps", *pair, number(1.0), half)
    x, out = np.float32([1, 2]), np.zeros(2)
    call("aclnnLerps", x, x + 1, number(0.5), out)
    assert out.tolist() == [1.5, 2.5]


def test_dtypes_of_hard_sigmoids_gradient():
    for one in EVERY:
        for other in (T.ACL_FLOAT, T.ACL_FLOAT16, T.ACL_BF16):
            taken = one in FP3
            for pair in ((one, other), (other, one)):
                given = [of(dtype) for dtype in pair]
                found = status("aclnnHardsigmoidBackward", *given, of(T.ACL_FLOAT))[0]
                assert found == (OK if taken else INVALID)
    with pytest.raises(aclnn.AclnnError, match="int32"):
        aclnn.hardsigmoid_backward(np.float16([1]), np.int32([1]))


@each("dtype", [np.complex64, np.complex128])
def test_complex_reciprocals(dtype):
    x = np.array([1 + 2j, -0.5j, 3, -4 + 1e-3j], dtype)
    out = np.empty_like(x)
    call("aclnnReciprocal", x, out)
    tolerance = 1e-6 if dtype == np.complex64 else 1e-14
    np.testing.assert_allclose(out, 1 / x, rtol=tolerance)
    np.testing.assert_array_equal(aclnn.reciprocal(x), out)
    call("aclnnInplaceReciprocal", x)
    np.testing.assert_array_equal(x, out)
    torch = pytest.importorskip("torch")
    at = importlib.import_module("aclnn.torch")
    z = torch.tensor(out, requires_grad=True)
    (found,) = torch.autograd.grad(at.reciprocal(z).abs().sum(), z)
    (want,) = torch.autograd.grad(torch.reciprocal(z).abs().sum(), z)
    torch.testing.assert_close(found, want)


def test_sizes_of_complex_numbers():
    x = np.complex64([3 + 4j, -5, 1e30 + 1e30j, 1e-30j, np.inf + 1j, complex(np.nan, np.inf)])
    out = np.empty(6, np.float32)
    call("aclnnAbs", x, out)
    np.testing.assert_array_equal(out, np.float32(np.abs(x.astype(np.complex128))))
    found = aclnn.abs(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, out)
    many = np.random.default_rng(1).standard_normal((100, 66)).astype(np.float32).view(np.complex64)
    want = np.abs(many.T.astype(np.complex128)).astype(np.float32)
    np.testing.assert_allclose(aclnn.abs(many.T), want, rtol=1.2e-7)


@each("left", [np.complex64, np.complex128, np.float32, np.int64, bool])
@each("right", [np.complex64, np.complex128])
def test_truth_of_complex_numbers(left, right):
    a = np.array([0, 0, 1, 1, 0, 1, 0, 0]).astype(left)
    if np.dtype(left).kind == "c":
        a[-2:] = [2j, -1e-30j]
    b = np.array([0, 1, 0, 1, 2j, 2j, 0, -1e-30j], right)
    for name, form in (("And", "logical_and"), ("Or", "logical_or"), ("Xor", "logical_xor")):
        want, out = getattr(np, form)(a, b), np.zeros(8, bool)
        call(f"aclnnLogical{name}", a, b, out)
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(getattr(aclnn, form)(b, a), getattr(np, form)(b, a))


def test_filling_other_dtypes():
    for dtype in (np.uint16, np.complex64, np.complex128):
        x = np.ones(DEEP, dtype)
        call("aclnnInplaceZero", x)
        assert not x.any()
    many = aclnn.aclCreateTensor((1,) * 20, T.ACL_FLOAT, None, 0, ND, (1,) * 20, np.float32([5]))
    call("aclnnInplaceZero", many)
    assert_refused("dimensions", "aclnnInplaceOne", many)


def test_concatenations_of_complex_numbers():
    def given(*kinds, out):
        listed = aclnn.aclCreateTensorList([of(kind) for kind in kinds])
        return ("aclnnCat", listed, 0, of(out, (2 * len(kinds), 3)))

    for kinds in (
        (T.ACL_COMPLEX128,),
        (T.ACL_COMPLEX64, T.ACL_DOUBLE),
        (T.ACL_FLOAT, T.ACL_COMPLEX128),
    ):
        assert_refused("COMPLEX128", *given(*kinds, out=T.ACL_COMPLEX128))
    assert_taken(*given(T.ACL_DOUBLE, T.ACL_DOUBLE, out=T.ACL_DOUBLE))
    assert_taken(*given(T.ACL_COMPLEX64, T.ACL_FLOAT, out=T.ACL_COMPLEX64))
    assert_taken(*given(T.ACL_COMPLEX64, T.ACL_FLOAT, out=T.ACL_COMPLEX128))


BIG = np.uint64([0, 1, 2**63 - 1, 2**63, 2**64 - 1])


def test_large_unsigned_numbers_are_compared_on_950(on):
    rows, columns = np.repeat(BIG[:, None], 5, axis=1), np.repeat(BIG[None], 5, axis=0)
    out = np.zeros((5, 5), bool)
    for name in ("Le", "Ne", "Eq"):
        arguments = f"aclnn{name}Tensor", rows, columns, out
        assert_refused("UINT64", *arguments)
        on("Ascend950")
        call(*arguments)
        np.testing.assert_array_equal(
            out,
            getattr(np, {"Le": "less_equal", "Ne": "not_equal", "Eq": "equal"}[name])(
                rows, columns
            ),
        )
        truth = np.zeros(5, bool)
        call(f"aclnn{name}Scalar", BIG, number(1, T.ACL_INT64), truth)
        want = {"Le": BIG <= 1, "Ne": BIG != 1, "Eq": BIG == 1}[name]
        np.testing.assert_array_equal(truth, want)
        on(A2)
    on("Ascend950")
    for name in ("Lt", "Ge", "Gt"):
        assert_refused("UINT64", f"aclnn{name}Tensor", rows, columns, out)


def test_tensors_without_dimensions_count_as_numbers_on_950(on):
    """Beside one with dimensions; their dtype matters only if its kind is higher."""
    tenth = np.float32([0.1, 0.2])
    cases = [
        (tenth, np.array(0.1), True),  # 0.1 is rounded to float32
        (np.float16([0.1, 2]), np.array(0.1, np.float32), True),
        (np.int32([2, 3]), np.array(2.5), False),
        (np.int8([44, 3]), np.array(300, np.int64), True),  # 300 wraps to 44
        (np.array([True, False]), np.array(1, np.int8), True),
        (np.float32([0.1, 2]), np.array(0.1 + 0j), True),
        (BIG[:2], np.array(0, np.int32), True),
    ]
    for wide, one, equal in cases:
        out = np.zeros(2, bool)
        on("Ascend950")
        for pair in ((wide, one), (one, wide)):
            call("aclnnEqTensor", *pair, out)
            assert out[0] == equal, (wide, one)
            call("aclnnNeTensor", *pair, out)
            assert out[0] != equal
        on(A2)
        if wide.dtype != np.uint64:
            promoted = np.equal(wide[:1].astype(complex), one.astype(complex))
            call("aclnnEqTensor", wide, one, out)
            assert out[0] == promoted[0]
    on("Ascend950")
    call("aclnnLeTensor", tenth, np.array(0.1), out)
    assert out.tolist() == [True, False]
    assert_refused("promote", "aclnnEqTensor", BIG, np.int32([1] * 5), np.zeros(5, bool))
    single_one = np.array(0.1), np.array(0.1, np.float32), np.zeros((), bool)
    call("aclnnEqTensor", *single_one)
    assert not single_one[2], "both are without dimensions"


# --- Sums -------------------------------------------------------------------------------------------


@each("out", REAL)
def test_elements_are_cast_before_they_are_summed(out):
    kind = dtypes.NUMPY[out]
    for given in (
        np.float32([1.75, -2.75, 3.5]),
        np.int32([2, -300, 7]),
        np.array([1, 1, 0], bool),
    ):
        result = np.zeros((), kind)
        call("aclnnReduceSum", given, ints(0), False, out, result)
        cast = aclnn.cast(given, kind.name)
        want = (
            cast.any() if out == T.ACL_BOOL else aclnn.cast(cast.astype(np.int64).sum(), kind.name)
        )
        if kind.kind not in "iub":
            want = given.astype(np.float64).sum().astype(kind)
        assert result == want, given
        assert aclnn.sum(given, 0, dtype=kind.name) == want


def test_any_true():
    x = np.zeros((3, 400, 2), np.float32)
    x[0, 7, 1], x[1, 0, 0] = 1e-30, -2
    for dims in ((0,), (1,), (0, 2), ()):
        want = np.any(x, axis=dims or None)
        out = np.zeros(want.shape, bool)
        call("aclnnReduceSum", x, ints(*dims), False, T.ACL_BOOL, out)
        np.testing.assert_array_equal(out, want)


def test_dtypes_and_shapes_of_sums():
    x, whole = np.ones((2, 3), np.float32), ints()
    assert_refused("must be FLOAT", "aclnnReduceSum", x, whole, False, T.ACL_FLOAT, np.zeros(()))
    assert_refused("COMPLEX64", "aclnnReduceSum", x, whole, False, T.ACL_COMPLEX64, np.zeros(()))
    for shape in ((), (1,), (1, 1), (1,) * 8):
        out = np.zeros(shape, np.float32)
        call("aclnnReduceSum", x, whole, False, T.ACL_FLOAT, out)
        assert out.reshape(()) == 6
        call("aclnnReduceSum", x, whole, True, T.ACL_FLOAT, out)
    assert_refused("shape", "aclnnReduceSum", x, whole, False, T.ACL_FLOAT, np.float32([0, 0]))
    assert_refused("shape", "aclnnReduceSum", x, ints(0), False, T.ACL_FLOAT, x[:1])
    for shape in ((), (4, 5), (2, 3, 2)):
        out = np.full(shape, 7, np.float32)
        call("aclnnReduceSum", np.zeros((0, 3), np.float32), ints(1), False, T.ACL_FLOAT, out)
        assert not out.any()
        out = np.full((*shape, 2), 7, np.float32)[..., 0]
        call("aclnnReduceSum", np.zeros((0, 3), np.float32), ints(1), False, T.ACL_FLOAT, out)
        assert not out.any()
    with pytest.raises(aclnn.AclnnError, match="must have"):
        aclnn.sum(np.zeros((0, 3), np.float32), 1, out=np.zeros((4, 5), np.float32))


def test_variances_over_all_dimensions():
    x, out = deep(shape=(3, 4)), np.zeros((), np.float32)
    for dims in (None, ints()):
        call("aclnnVar", x, dims, True, False, out)
        assert out == aclnn.var(x)
        call("aclnnVarCorrection", x, dims, 0, False, out)
        assert out == aclnn.var(x, correction=0)
        kept = np.zeros((1, 1), np.float32)
        call("aclnnVar", x, dims, True, True, kept)
        assert kept == aclnn.var(x)


# --- Indices and padding ----------------------------------------------------------------------------


def test_indices_without_dimensions():
    x = deep(shape=(2, 3))
    for name in ("aclnnGatherV2", "aclnnIndexSelect"):
        out = np.zeros((2, 1), np.float32)
        call(name, x, 1, np.array(2), out)
        np.testing.assert_array_equal(out, x[:, 2:])
        assert_refused("must have (2, 1)", name, x, 1, np.array(2), np.zeros(2, np.float32))
        one, single_out = np.array(7, np.float32), np.zeros((), np.float32)
        for index in (np.array(0), np.int64([0])):
            call(name, one, 0, index, single_out)
            assert single_out == 7
            assert_refused("must have ()", name, one, 0, index, np.zeros(1, np.float32))
        two = np.int64([0, 0])
        if name == "aclnnIndexSelect":
            assert_refused("one for", name, one, 0, two, single_out)
            continue
        single_out[()] = 0
        call(name, one, 0, two, single_out)
        assert single_out == 7
        assert_refused("is empty", name, one, 0, two[:0], single_out)
        with pytest.raises(aclnn.AclnnError, match="an index is 1, must be from -1 to 0"):
            aclnn.gather_v2(one, 0, np.int64([0, 1]))
    assert aclnn.index_select(x, 1, np.array(2)).shape == (2, 1), "as PyTorch's"
    assert aclnn.gather_v2(x, 1, np.array(2)).shape == (2,), "as NumPy's take"


@each("dtype", [np.int8, np.float16, np.float32, np.int64, np.complex128])
@each("kind", [np.int32, np.int64])
@each("axis", [0, 1])
def test_gathers_count_from_the_end_too(dtype, kind, axis):
    x = np.arange(35).reshape(5, 7).astype(dtype)
    rng = np.random.default_rng(2)
    size = x.shape[axis]
    index = rng.integers(-size, size, (5, 7)).astype(kind)
    want = np.take_along_axis(x, index.astype(np.int64), axis)
    np.testing.assert_array_equal(aclnn.gather(x, axis, index), want)
    narrow = index[:, :1] if axis == 0 else index[:1]
    wide = np.broadcast_to(narrow, index.shape)
    want = np.take_along_axis(x, wide.astype(np.int64), axis)
    np.testing.assert_array_equal(aclnn.gather(x, axis, wide), want)
    for bad in (size, -size - 1):
        index[3, 2] = bad
        with pytest.raises(aclnn.AclnnError, match=f"{bad}, must be from {-size} to {size - 1}"):
            aclnn.gather(x, axis, index)
    chosen = np.array([-2, -1, 0, 1, -size, size - 1], kind)
    out = np.zeros(np.take(x, chosen, axis).shape, dtype)
    call("aclnnGatherV2", x, axis, chosen, out)
    np.testing.assert_array_equal(out, np.take(x, chosen, axis))
    with pytest.raises(aclnn.AclnnError, match="an index is -1, must be from 0"):
        aclnn.index_select(x, axis, np.int64([-1]))


def test_gradients_of_gathers_from_the_end():
    torch = pytest.importorskip("torch")
    at = importlib.import_module("aclnn.torch")
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    index = torch.tensor([[-1, 0], [2, -3]])
    (found,) = torch.autograd.grad(at.gather(x, 1, index).pow(2).sum(), x)
    (want,) = torch.autograd.grad(torch.gather(x, 1, index % 3).pow(2).sum(), x)
    torch.testing.assert_close(found, want)
    (found,) = torch.autograd.grad(at.gather_v2(x, 1, index).pow(2).sum(), x)
    (want,) = torch.autograd.grad(x[:, index].pow(2).sum(), x)
    torch.testing.assert_close(found, want)


@each(
    "shape, pad, taken",
    [
        ((2, 3), (-3, 0), True),
        ((2, 3), (-3, 0, -2, 0), True),
        ((2, 3), (-3, 0, 0, 1), False),
        ((2, 0), (0, 0), True),
        ((2, 0), (1, 0), True),
        ((2, 0), (1, 0, 1, 0), True),
        ((0, 3), (1, 0), True),  # which pad does not name
        ((0, 3), (1, 0, 0, 0), False),
        ((2, 0), (0, 0, 1, 0), False),
    ],
)
def test_padding_that_leaves_nothing(shape, pad, taken):
    x = of(T.ACL_FLOAT, shape)
    sizes = list(shape)
    for place in range(len(pad) // 2):
        sizes[-1 - place] += pad[2 * place] + pad[2 * place + 1]
    given = "aclnnConstantPadNd", x, ints(*pad), number(1.0), of(T.ACL_FLOAT, tuple(sizes))
    if taken:
        assert_taken(*given)
    else:
        assert_refused("leaves nothing", *given)


# --- Products ---------------------------------------------------------------------------------------

HALVES_AND_SINGLE = (np.float32, np.float16, BF16)
ONE = number(1.0)


def matrices(*kinds, seed=5, batch=()):
    """(4, 30) and (30, 6), and (4, 6) to add."""
    shapes = (*batch, 4, 30), (*batch, 30, 6), (*batch, 4, 6)
    return [
        deep(kind, shape, seed + n)
        for n, (kind, shape) in enumerate(zip(kinds, shapes, strict=False))
    ]


def in_float32(*arrays):
    return [a.astype(np.float32) for a in arrays]


def rounded_to(out, *given):
    """Of float32 sums: halves of one kind are rounded to it first, unless the output is float32."""
    *arrays, product = given
    kinds = {a.dtype for a in arrays}
    (own,) = kinds if len(kinds) == 1 else (np.dtype(np.float32),)
    return product.astype(np.float32 if out == np.float32 else own).astype(out)


def near(found, want, out):
    """Within a unit in the last place: float32 sums of other shapes may differ in their last bits."""
    assert found.dtype == want.dtype == out
    a, b = found.astype(np.float64), want.astype(np.float64)
    step = {np.float32: 2.0**-18, np.float16: 2.0**-10, BF16: 2.0**-7}[out]
    np.testing.assert_allclose(a, b, rtol=step, atol=step / 4)


@each("soc", ["Ascend910B", "Ascend910_93", "Ascend950"])
@each("left", HALVES_AND_SINGLE)
@each("right", HALVES_AND_SINGLE)
@each("kind", HALVES_AND_SINGLE)
def test_products_of_any_mixture(soc, left, right, kind):
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(soc)
    try:
        a, b = matrices(left, right)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        out, batched = np.empty((4, 6), kind), np.empty((1, 4, 6), kind)
        want = rounded_to(kind, a, b, exact)
        for name in ("aclnnMm", "aclnnMatmul"):
            call(name, a, b, out, 0)
            near(out, want, kind)
        call("aclnnBatchMatMul", a[None], b[None], batched, 0)
        near(batched[0], want, kind)
        single = np.empty((4, 6), np.float32)
        call("aclnnMm", *in_float32(a, b), single, 0)
        call("aclnnMm", a, b, out, 0)
        if left != right or kind == np.float32:
            assert_same(out, single.astype(kind))  # the float32 sums, rounded once
    finally:
        aclnn.set_soc_version(before)


@each("added", HALVES_AND_SINGLE)
@each("kind", HALVES_AND_SINGLE)
@each("left, right", [(np.float16, np.float16), (np.float16, BF16), (BF16, np.float32)])
def test_added_products_of_any_mixture(added, kind, left, right):
    a, b, c = matrices(left, right, added)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    want, out = rounded_to(kind, a, b, c, exact), np.empty((4, 6), kind)
    call("aclnnAddmm", c, a, b, ONE, ONE, out, 0)
    near(out, want, kind)
    call("aclnnGemm", a, b, c, 1.0, 1.0, 0, 0, out, 0)
    near(out, want, kind)
    call("aclnnAddbmm", c, a[None], b[None], ONE, ONE, out, 0)
    near(out, want, kind)
    batched = np.empty((1, 4, 6), kind)
    call("aclnnBaddbmm", c[None], a[None], b[None], ONE, ONE, batched, 0)
    near(batched[0], want, kind)
    call("aclnnAddmv", c[:, 0].copy(), a, b[:, 0].copy(), ONE, ONE, out[:, 0], 0)
    near(out[:, 0], want[:, 0], kind)


def test_products_on_products_that_mix_nothing(on):
    half, single_one = np.zeros((2, 2), np.float16), np.zeros((2, 2), np.float32)
    on("Ascend910")
    assert_refused("promoted dtype", "aclnnMm", half, half, single_one, 0)
    assert_refused("promoted dtype", "aclnnMm", half, single_one, half, 1)
    assert_taken("aclnnMm", half, single_one, single_one, 1)
    assert_refused("BF16", "aclnnMm", half.astype(BF16), half, half, 0)


def test_rounding_inputs_to_float16():
    a, b = matrices(np.float32, np.float32)
    halves = [v.astype(np.float16) for v in (a, b)]
    exact = halves[0].astype(np.float64) @ halves[1].astype(np.float64)
    out, plain = np.empty((4, 6), np.float32), np.empty((4, 6), np.float32)
    for left, right in ((np.float32, np.float32), (np.float16, np.float32), (np.float16, BF16)):
        x, y = a.astype(left), b.astype(right)
        want = x.astype(np.float16).astype(np.float64) @ y.astype(np.float16).astype(np.float64)
        call("aclnnMm", x, y, out, 2)
        near(out, want.astype(np.float32), np.float32)
    near(aclnn.mm(a, b, cube_math_type=2), exact.astype(np.float32), np.float32)
    brain = [v.astype(BF16) for v in (a * 2.0**40, b)]  # beyond float16
    for name in ("aclnnMm", "aclnnMatmul"):
        call(name, *brain, out, 2)
        call(name, *brain, plain, 0)
        assert_same(out, plain)
        assert np.isfinite(out).all()


@each("soc", ["Ascend910B", "Ascend910_93", "Ascend950", "Ascend910", "Ascend310P"])
@each("kind", [np.float32, np.float16])
@each("chosen", [-1, 0, 1, 2, 3, 4, 5])
def test_cube_math_types(soc, kind, chosen):
    a, b, c = (of(kind, shape) for shape in ((4, 30), (30, 6), (4, 6)))
    batches = [of(kind, (2, *shape)) for shape in ((4, 30), (30, 6), (4, 6))]
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(soc)
    wanted = OK if 0 <= chosen <= 4 else INVALID
    if soc in ("Ascend910", "Ascend310P") and kind == np.float32 and chosen not in (1, 2):
        wanted = INVALID
    vector, sums = of(kind, (30,)), of(kind, (4,))
    try:
        for given in (
            ("aclnnMm", a, b, c, chosen),
            ("aclnnMatmul", a, b, c, chosen),
            ("aclnnBatchMatMul", *batches, chosen),
            ("aclnnAddmm", c, a, b, ONE, ONE, c, chosen),
            ("aclnnBaddbmm", batches[2], *batches[:2], ONE, ONE, batches[2], chosen),
            ("aclnnAddbmm", c, *batches[:2], ONE, ONE, c, chosen),
            ("aclnnMv", a, vector, sums, chosen),
            ("aclnnAddmv", sums, a, vector, ONE, ONE, sums, chosen),
            ("aclnnGemm", a, b, c, 1.0, 1.0, 0, 0, c, chosen),
        ):
            assert status(*given)[0] == wanted, given[0]
    finally:
        aclnn.set_soc_version(before)


def test_matrices_and_vectors_have_one_dtype():
    for left, right, out in (
        (np.float16, np.float32, np.float32),
        (np.float32, np.float32, np.float16),
        (np.float16, np.float16, np.float32),
        (BF16, np.float16, np.float16),
    ):
        assert_refused("dtype", "aclnnMv", of(left, (2, 3)), of(right, (3,)), of(out, (2,)), 0)
    assert_taken("aclnnMv", *[of(np.float16, s) for s in ((2, 3), (3,), (2,))], 0)
    found = np.ones(2, np.float32)
    call("aclnnMv", np.zeros((2, 0), np.float16), np.zeros(0, np.float32), found, 0)
    assert not found.any()


def test_outputs_of_matmul_need_as_many_elements():
    a, b = matrices(np.float32, np.float32)
    row, column = a[0].copy(), b[:, 0].copy()
    dot, wide = np.empty((1,), np.float32), np.empty((1, 6), np.float32)
    call("aclnnMatmul", row, column, dot, 0)
    assert dot[0] == aclnn.matmul(row, column)
    call("aclnnMatmul", row, b, wide, 0)
    assert_same(wide[0], aclnn.matmul(row, b))
    many = np.empty((2, 3, 8), np.float32)[..., ::2]
    call("aclnnMatmul", a, b, many, 0)
    assert_same(np.ascontiguousarray(many).reshape(4, 6), aclnn.matmul(a, b))
    assert_refused("shape", "aclnnMatmul", a, b, np.empty(25, np.float32), 0)
    assert_refused("shape", "aclnnMm", a, b, np.empty(24, np.float32), 0)
    with pytest.raises(aclnn.AclnnError, match="shape"):
        aclnn.matmul(row, b, out=wide)


def test_batches_of_one():
    a, b = matrices(np.float32, np.float32, batch=(3,))
    c, batched = np.ones((4, 6), np.float32), np.ones((3, 4, 6), np.float32)
    out = np.empty((4, 6), np.float32)
    for x, y in ((a, b), (a[:1], b), (a, b[:1]), (a[:1], b[:1])):
        call("aclnnAddbmm", c, x, y, ONE, ONE, out, 0)
        want = (x.astype(np.float64) @ y).sum(0) + 1
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    assert_refused("batches differ", "aclnnAddbmm", c, a, b[:2], ONE, ONE, out, 0)
    call("aclnnBaddbmm", batched, a, b[:1], ONE, ONE, batched, 0)
    np.testing.assert_allclose(batched, a.astype(np.float64) @ b[:1] + 1, rtol=1e-4, atol=1e-4)
    assert_refused("batches differ", "aclnnBaddbmm", batched, a[:1], b, ONE, ONE, batched, 0)


WHOLE = [np.dtype(kind) for kind in ("i8", "i4", "i2", "i1", "u1")]
VECTORS = (
    *FP3,
    T.ACL_DOUBLE,
    T.ACL_INT64,
    T.ACL_INT32,
    T.ACL_INT16,
    T.ACL_INT8,
    T.ACL_UINT8,
    T.ACL_BOOL,
)


def addmv(c, m, v, alpha, beta, out):
    call("aclnnAddmv", c, m, v, alpha, beta, out, 0)
    return out


@each("kind", [*WHOLE, np.dtype(np.float64)])
@each("alpha, beta", [(1, 1), (3, 1), (1, -2), (0, 5), (2, 0)])
def test_addmv_of_other_numbers(kind, alpha, beta):
    rng = np.random.default_rng(3)
    if kind.kind == "f":
        c, m, v = rng.standard_normal(5), rng.standard_normal((5, 70)), rng.standard_normal(70)
    else:
        info = np.iinfo(kind)
        c, m, v = (rng.integers(info.min, info.max, s, kind) for s in (5, (5, 70), 70))
    given = [
        number(n, dtypes.of_numpy(kind)) if n >= 0 else number(n, T.ACL_INT8) for n in (alpha, beta)
    ]
    wide = [x.astype(np.float64 if kind.kind == "f" else np.int64) for x in (c, m, v)]
    want = beta * wide[0] + alpha * (wide[1] @ wide[2])
    promoted = kind if beta >= 0 or kind.kind == "f" else np.promote_types(kind, np.int8)
    found = addmv(c, m, v, *given, np.empty(5, promoted))
    if kind.kind == "f":
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, want.astype(promoted))
    for strided in (m.T.copy().T, np.repeat(m, 2, axis=1)[:, ::2]):
        again = addmv(c[:1], strided, v, *given, np.empty(5, promoted))
        want = addmv(c[:1], m, v, *given, np.empty(5, promoted))
        np.testing.assert_allclose(again, want, rtol=1e-12 if kind.kind == "f" else 0)


def test_addmv_of_truth_values():
    m = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1]], bool)
    v, c = np.array([1, 0, 1], bool), np.array([0, 0, 1, 1], bool)
    for alpha in (True, False):
        for beta in (True, False):
            numbers = [number(n, T.ACL_BOOL) for n in (alpha, beta)]
            found = addmv(c, m, v, *numbers, np.zeros(4, bool))
            want = ((m & v).any(1) & alpha) | (c & beta)
            np.testing.assert_array_equal(found, want)
    assert addmv(c, m, v, number(1.0), number(1.0), np.zeros(4, bool)).tolist() == [
        False,
        True,
        True,
        True,
    ]
    many = np.ones((2, 512), bool)  # 512 truths, which a byte would lose
    found = addmv(np.zeros(2, bool), many, many[0], ONE, ONE, np.zeros(2, bool))
    assert found.all()


def test_dtypes_of_addmv():
    def given(mat, vec, out, alpha=ONE, beta=ONE, added=None):
        return (
            "aclnnAddmv",
            of(added or mat, (2,)),
            of(mat, (2, 3)),
            of(vec, (3,)),
            alpha,
            beta,
            of(out, (2,)),
            0,
        )

    for mat in EVERY:
        assert status(*given(mat, mat, mat))[0] == (OK if mat in VECTORS else INVALID), mat
    assert_taken(*given(T.ACL_INT8, T.ACL_UINT8, T.ACL_INT16))
    assert_taken(*given(T.ACL_INT32, T.ACL_FLOAT16, T.ACL_FLOAT16))
    assert_taken(*given(T.ACL_FLOAT16, T.ACL_FLOAT16, T.ACL_FLOAT16, number(0.5), number(2.0)))
    assert_taken(*given(T.ACL_INT32, T.ACL_INT32, T.ACL_INT32, number(1.0), number(1.0)))
    assert_refused("cast", *given(T.ACL_INT32, T.ACL_INT32, T.ACL_INT32, number(0.5)))
    assert_refused("cast", *given(T.ACL_INT32, T.ACL_INT32, T.ACL_INT32, ONE, number(2.0)))
    assert_taken(*given(T.ACL_INT32, T.ACL_INT32, T.ACL_FLOAT, number(0.5)))
    assert_refused("cast", *given(T.ACL_INT32, T.ACL_FLOAT, T.ACL_INT32))
    assert_refused("cast", *given(T.ACL_INT32, T.ACL_INT32, T.ACL_BOOL))
    assert_refused("COMPLEX64", *given(T.ACL_INT32, T.ACL_INT32, T.ACL_COMPLEX64))
    assert_refused(
        "COMPLEX64", *given(T.ACL_FLOAT, T.ACL_FLOAT, T.ACL_FLOAT, number(1j, T.ACL_COMPLEX64))
    )
    x, m = np.int32([1, 2]), np.int32([[1, 2], [3, 4]])
    out = addmv(x, m, x, number(0.5), ONE, np.zeros(2, np.float32))
    assert out.tolist() == [3.5, 7.5]
    found = aclnn.addmv(x, m, x, alpha=3, beta=2)
    assert (found.dtype, found.tolist()) == (np.int32, [17, 37])
    assert aclnn.addmv(x, m, x, alpha=0.5).tolist() == [3.5, 7.5]


def test_rstd_without_trailing_ones():
    x, gamma, y = (
        deep(shape=(2, 1, 3, 4)),
        np.ones(4, np.float32),
        np.empty((2, 1, 3, 4), np.float32),
    )
    want, rstd = aclnn.native_rms_norm(x, gamma)
    for shape in ((2, 1, 3), (2, 1, 3, 1)):
        out = np.empty(shape, np.float32)
        call("aclnnRmsNorm", x, gamma, 1e-6, y, out)
        assert_same(out, rstd.reshape(shape))
        assert_same(y, want)
    two = np.ones((3, 4), np.float32)
    want, rstd = aclnn.native_rms_norm(x, two)
    for shape in ((2,), (2, 1), (2, 1, 1), (2, 1, 1, 1)):
        out = np.empty(shape, np.float32)
        call("aclnnRmsNorm", x, two, 1e-6, y, out)
        assert_same(out, rstd.reshape(shape))
    for shape in ((1, 2), (), (2, 1, 1, 1, 1), (2, 1, 3), (1,)):
        bad = of(np.float32, shape)
        assert_refused("shape", "aclnnRmsNorm", x, two, 1e-6, y, bad, wanted=561002)


_NONE = np.zeros((3, 0), np.float16)
_WIDE, _NARROW = np.zeros((1, 1, 2, 4), np.float16), np.zeros((1, 1, 2, 0), np.float16)


@pytest.mark.parametrize(
    ("name", "operands", "options", "status", "words"),
    [
        ("dynamic_quant", (_NONE,), {}, 161002, "input has shape (3, 0)"),
        ("dynamic_quant_asymmetric", (_NONE,), {}, 161002, "input has shape (3, 0)"),
        ("dequant_swiglu_quant", (_NONE,), {"quant_mode": "dynamic"}, 161002, "x has shape (3, 0)"),
        ("add_rms_norm_dynamic_quant", (_NONE, _NONE, _NONE[0]), {}, 561002, "gamma has shape (0,)"),
        (
            "fused_infer_attention_score", (_WIDE, _WIDE, _NARROW),
            {"input_layout": "BNSD", "softmax_lse_flag": True}, 161002, "value has shape (1, 1, 2, 0)",
        ),
        (
            "fused_infer_attention_score_v2", (_WIDE, _WIDE, _NARROW),
            {"input_layout": "BNSD", "return_softmax_lse": True}, 161002, "value has shape (1, 1, 2, 0)",
        ),
        ("fusion_attention", (_WIDE, _WIDE, _NARROW, 1, "BNSD"), {}, 161002, "value has shape (1, 1, 2, 0)"),
        (
            "one_hot", (np.array([1]), 3),
            {"on_value": np.zeros(0, np.float32), "off_value": np.ones(1, np.float32)},
            161002, "on_value has shape (0,)",
        ),
    ],
)  # fmt: skip
def test_statistics_of_nothing_are_refused(name, operands, options, status, words):
    with pytest.raises(aclnn.AclnnError) as caught:
        getattr(aclnn, name)(*operands, **options)
    assert caught.value.status == status
    assert words in caught.value.message


def test_no_rows_give_empty_results():
    none = np.zeros((0, 4), np.float16)
    y, scale = aclnn.dynamic_quant(none)
    assert (y.shape, scale.shape) == ((0, 4), (0,))
    out, _ = aclnn.fused_infer_attention_score(_WIDE, _WIDE, _NARROW, input_layout="BNSD")
    assert out.shape == _NARROW.shape
