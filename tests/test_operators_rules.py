"""Rules and values that operators do not share with their families: lists, ranks, formats, empties."""

import ml_dtypes
import numpy as np
import pytest
from cases import each
from test_operators_rows import call, plan

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
