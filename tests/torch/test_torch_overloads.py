"""Overloads of ATen's operators that the backend takes: as eager calls, over dtypes, layouts and gradients."""

import pytest

torch = pytest.importorskip("torch")

from aclnn.torch.dynamo import Options, compiled_graph  # noqa: E402
from aclnn.torch.explanation import Explanation  # noqa: E402

F = torch.nn.functional
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int32, torch.int64)
ROWS = torch.tensor([2, 0, 1])
CLASSES = torch.tensor([3, 1, 0, 1, 2, 3])
EACH = torch.tensor([[0, 2, 1, 0], [1, 0, 2, 2]])


def _image(x):
    return x.reshape(1, 2, 3, 4)


# Name: function of a tensor of 6 x 4, and its dtypes.
CALLS = {
    "all.dim": (lambda x: (x > 0).all(1, True), FLOATS),
    "all.dims": (lambda x: (x > 0).all((0, 1)), FLOATS[:1]),
    "any.dim": (lambda x: (x > 0).any(0), FLOATS),
    "any.dims": (lambda x: (x > 0).any((0, 1), keepdim=True), FLOATS[:1]),
    "argmax": (lambda x: x.argmax(1), FLOATS),
    "bitwise_and.Scalar_Tensor": (lambda x: torch.bitwise_and(6, x), INTEGERS),
    "bitwise_or.Scalar_Tensor": (lambda x: torch.bitwise_or(6, x), INTEGERS),
    "bitwise_xor.Scalar_Tensor": (lambda x: torch.bitwise_xor(6, x), INTEGERS),
    "clamp.Tensor": (lambda x: x.clamp(x.roll(1), x.roll(2) + 1), FLOATS),
    "clamp_max.Tensor": (lambda x: x.clamp_max(x.roll(1, 0)), FLOATS),
    "clamp_min.Tensor": (lambda x: x.clamp_min(x.roll(1, 0)), FLOATS),
    "cumsum": (lambda x: x.cumsum(0), FLOATS),
    "div.Scalar_mode": (lambda x: torch.div(x, 2, rounding_mode="floor"), (*FLOATS, *INTEGERS)),
    "div.Tensor_mode": (
        lambda x: torch.div(x, x.roll(1, 0).abs() + 1, rounding_mode="trunc"),
        (FLOATS[0], *INTEGERS),
    ),
    "dot": (lambda x: x[0].dot(x[1]), FLOATS[:1]),
    "gather_nd": (lambda x: x[ROWS, ROWS + 1], FLOATS),
    "index": (lambda x: x[ROWS], FLOATS),
    "index, columns": (lambda x: x[:, ROWS], FLOATS),
    "index, columns by a matrix": (lambda x: x[:, EACH - 1].sin() + x[:, EACH], FLOATS),
    "index, negative": (lambda x: x[ROWS - 3, ROWS - 3], FLOATS),
    "index, a row from the end": (lambda x: x[ROWS - 3], FLOATS),
    "index, a column from the end": (lambda x: x[:, ROWS - 3], FLOATS),
    "index_put, from the end": (lambda x: x.index_put((ROWS - 3,), x[3:] * 2), FLOATS),
    "index_fill": (lambda x: x.index_fill(1, ROWS, 2.5), FLOATS),
    "index_put": (lambda x: x.index_put((ROWS,), x[3:] * 2), FLOATS),
    "index_put, added": (lambda x: x.index_put((ROWS,), x[3:] * 2, accumulate=True), FLOATS),
    "isnan": (lambda x: torch.isnan(x / x), FLOATS),
    "lerp.Scalar": (lambda x: torch.lerp(x, x.roll(1), 0.25), FLOATS[:1]),
    "masked_fill.Tensor": (lambda x: x.masked_fill(x > 0, torch.full((), 3.0)), FLOATS),
    "max.dim": (lambda x: x.max(1), FLOATS),
    "max.other": (lambda x: torch.max(x, x.roll(1)), FLOATS),
    "min.dim": (lambda x: x.min(0, True), FLOATS),
    "min.other": (lambda x: torch.min(x, x.roll(1)), FLOATS),
    "norm.dim": (lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, 2, [1], True), FLOATS[:1]),
    "linalg_vector_norm": (lambda x: torch.linalg.vector_norm(x, 1, 0), FLOATS[:1]),
    "pow.Scalar": (lambda x: torch.pow(2, x), FLOATS[:1]),
    "pow.Tensor_Scalar": (lambda x: (x.abs() + 0.5) ** 1.7, FLOATS[:1]),
    "pow.Tensor_Tensor": (lambda x: (x.abs() + 0.5) ** x.roll(1), FLOATS[:1]),
    "prod.dim": (lambda x: x.prod(1), FLOATS[:1]),
    "remainder.Scalar_Tensor": (lambda x: torch.remainder(7, x.abs() + 2), INTEGERS),
    "repeat": (lambda x: x.repeat(2, 1), FLOATS),
    "roll": (lambda x: x.roll((1, 2), (0, 1)), FLOATS),
    "round": (lambda x: x.round(), FLOATS),
    "scatter.src": (lambda x: x.scatter(0, EACH, x[:2] * 2), FLOATS),
    "scatter.value": (lambda x: x.scatter(0, EACH, 1.5), FLOATS),
    "scatter.reduce": (lambda x: x.scatter(0, EACH, x * 2, reduce="add"), FLOATS[:1]),
    "scatter_add": (lambda x: x.scatter_add(0, EACH, x[:2] * 2), FLOATS[:1]),
    "select_backward": (
        lambda x: torch.ops.aten.select_backward(x, [6, 3, 4], 1, 2), FLOATS
    ),
    "slice_backward": (
        lambda x: torch.ops.aten.slice_backward(x, [9, 4], 0, 2, 8, 1), FLOATS
    ),
    "slice_backward, with gaps": (
        lambda x: torch.ops.aten.slice_backward(x, [6, 11], 1, 2, 10, 2)
        + torch.ops.aten.slice_backward(x, [6, 11], 1, 1, 11, 3),
        FLOATS,
    ),
    "embedding_dense_backward": (
        lambda x: torch.ops.aten.embedding_dense_backward(x, EACH[:, :3].reshape(-1), 5, -1, False)
        + torch.ops.aten.embedding_dense_backward(x, EACH[:, :3].reshape(-1), 5, 1, False),
        FLOATS[:1],
    ),
    "nll_loss": (
        lambda x: [
            F.nll_loss(x, CLASSES, weight, reduction=reduction, ignore_index=1)
            for reduction in ("none", "mean", "sum")
            for weight in (None, x[0].detach().abs())
        ],
        FLOATS[:1],
    ),
    "nll_loss of a row": (lambda x: F.nll_loss(x[1], CLASSES[0]), FLOATS[:1]),
    "safe_softmax": (
        lambda x: torch.ops.aten._safe_softmax(
            torch.where((x > 1) | (x < -1), -torch.inf, x).index_fill(0, ROWS[:1], -torch.inf), 1
        ),
        FLOATS,
    ),
    "std.correction": (lambda x: x.std(1, correction=0), FLOATS[:1]),
    "std_mean": (lambda x: torch.std_mean(x, 0, keepdim=True), FLOATS[:1]),
    "tensor": (lambda x: x / torch.tensor(2.5) + torch.tensor(3), FLOATS[:1]),
    "subscript of a list": (lambda x: x[..., [-2]] * x[:, [1]] + x[[-1]], FLOATS),
    "sort.stable": (lambda x: x.sort(dim=1, stable=True), FLOATS),
    "sum": (lambda x: x.sum(), FLOATS[:1]),
    "sum of few": (lambda x: x.reshape(2, 3, 4).sum(0, True) + x.reshape(3, 2, 4).sum(1).sum(0), FLOATS),
    "sum of integers": (lambda x: x.sum(0), INTEGERS),
    "var.correction": (lambda x: x.var(1, correction=0), FLOATS[:1]),
    "var_mean": (lambda x: torch.var_mean(x, 1), FLOATS[:1]),
    "unsafe_split": (lambda x: torch.unsafe_split(x * 2, 2), FLOATS[:1]),
    "linalg_solve_triangular": (
        lambda x: torch.linalg.solve_triangular(x[:4] + 4 * torch.eye(4), x[:4], upper=True),
        FLOATS[:1],
    ),
    "avg_pool2d": (lambda x: F.avg_pool2d(_image(x), 2, 1, 1), FLOATS[:1]),
    "avg_pool2d, windows that overlap": (
        lambda x: F.avg_pool2d(_image(x), 3, 1, 1, count_include_pad=False)[..., :2]
        + F.avg_pool2d(_image(x), (2, 3), (1, 2), 1, ceil_mode=True)[:, :, 1:, :2]
        + F.avg_pool2d(_image(x), 2, 1, 1, divisor_override=3)[:, :, 1:, :2],
        FLOATS[:1],
    ),
    "max_pool2d": (lambda x: F.max_pool2d(_image(x), 2, 1), FLOATS[:1]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(_image(x), (3, 2)), FLOATS[:1]),
    "adaptive_avg_pool2d, windows of several sizes": (
        lambda x: F.adaptive_avg_pool2d(_image(x), (2, 5)), FLOATS[:1]
    ),
    "upsample_nearest2d": (lambda x: F.interpolate(_image(x), scale_factor=2), FLOATS),
    "upsample_nearest2d, size": (lambda x: F.interpolate(_image(x), size=(5, 7)), FLOATS[:1]),
    "upsample_bilinear2d": (
        lambda x: F.interpolate(_image(x), scale_factor=2, mode="bilinear"), FLOATS[:1]
    ),
    "im2col": (lambda x: F.unfold(_image(x), 2), FLOATS[:1]),
    "reflection_pad1d": (lambda x: F.pad(x, (1, 2), mode="reflect"), FLOATS),
    "constant_pad_nd": (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), FLOATS),
    "batch_norm of rows": (lambda x: F.batch_norm(x, None, None, x[0], x[1], True), FLOATS[:1]),
    "instance_norm": (lambda x: F.instance_norm(_image(x)), FLOATS[:1]),
    "conv2d": (lambda x: F.conv2d(_image(x), x[:4].reshape(2, 2, 2, 2), padding=1), FLOATS[:1]),
    "conv_transpose2d": (
        lambda x: F.conv_transpose2d(_image(x), x[:4].reshape(2, 2, 2, 2)), FLOATS[:1]
    ),
}  # fmt: skip
CLOSE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def given(dtype):
    numbers = torch.arange(24).mul(5).remainder(17).sub(8).reshape(6, 4)
    return numbers.to(dtype) if dtype in INTEGERS else (numbers / 4 + 0.1).to(dtype)


def compare(name, found, wanted, dtype):
    pairs = zip(*map(torch.utils._pytree.tree_leaves, (found, wanted)), strict=True)
    for one, other in pairs:
        assert one.dtype == other.dtype, name
        near = CLOSE.get(dtype, 0)
        torch.testing.assert_close(
            one, other, rtol=near, atol=near, equal_nan=True, msg=lambda text: f"{name}: {text}"
        )


@pytest.mark.filterwarnings("ignore:The reduce argument")
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_overloads_are_taken_and_give_what_eager_calls_give(dtype):
    calls = {name: function for name, (function, dtypes) in CALLS.items() if dtype in dtypes}

    def every(x):
        return [function(x) for function in calls.values()]

    found = Explanation()

    def explaining(graph, inputs):
        return compiled_graph(graph, inputs, Options.of({"take": "all"}), found)

    x = given(dtype)
    torch._dynamo.reset()
    made = torch.compile(every, backend=explaining, dynamic=False)
    with torch.no_grad():
        for one in (x, x.T.contiguous().T):
            for name, ours, wanted in zip(calls, made(one), every(one), strict=True):
                compare(name, ours, wanted, dtype)
    assert not [(name, why) for name, why in found.left if not why.startswith("a view")]


DIFFERENTIABLE = [
    "clamp.Tensor", "cumsum", "dot", "gather_nd", "index", "index, columns", "index_put", "lerp.Scalar",
    "max.dim", "min.other", "linalg_vector_norm", "pow.Scalar", "pow.Tensor_Tensor", "prod.dim", "repeat", "roll",
    "scatter.src", "scatter_add", "sum", "sum of few", "var.correction", "var_mean", "avg_pool2d", "avg_pool2d, windows that overlap", "max_pool2d",
    "adaptive_avg_pool2d", "adaptive_avg_pool2d, windows of several sizes", "upsample_nearest2d", "slice_backward, with gaps", "nll_loss", "safe_softmax",
    "std.correction", "std_mean", "tensor", "subscript of a list", "im2col", "constant_pad_nd", "conv2d",
    "batch_norm of rows", "instance_norm", "index, columns by a matrix",
]  # fmt: skip


def test_gradients_are_those_of_eager_calls():
    calls = {name: CALLS[name][0] for name in DIFFERENTIABLE}

    def every(x):
        made = [torch.utils._pytree.tree_leaves(function(x)) for function in calls.values()]
        return [one for several in made for one in several if one.is_floating_point()]

    torch._dynamo.reset()
    options = {"take": "all"}
    found = Explanation()
    made = torch.compile(
        every,
        backend=lambda *graph: compiled_graph(*graph, Options.of(options), found),
        dynamic=False,
    )
    x = given(torch.float32).requires_grad_()
    for place, pair in enumerate(zip(made(x), every(x), strict=True)):
        weights = torch.linspace(-1, 1, pair[0].numel()).reshape(pair[0].shape)
        grads = [torch.autograd.grad(one, x, weights, retain_graph=True)[0] for one in pair]
        assert torch.allclose(*grads, rtol=1e-5, atol=1e-5), place
    left = {name for name, _ in found.left}
    assert left.isdisjoint({"native_batch_norm_backward", "avg_pool2d_backward"})
