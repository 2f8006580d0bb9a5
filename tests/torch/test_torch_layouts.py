"""Results of functional forms lie in memory as those of PyTorch's own operators, for every layout of operands."""

import pytest
from cases import each

import aclnn

torch = pytest.importorskip("torch")
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    pytest.skip("PyTorch before 2.10", allow_module_level=True)
from torch.utils._pytree import tree_map_only  # noqa: E402

import aclnn.torch  # noqa: E402

aten, functional = torch.ops.aten, torch.nn.functional
DTYPE = torch.float32


def tensor(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1


def channels_last(x):
    return x.contiguous(memory_format=torch.channels_last)


def layouts():
    x = tensor(4, 6, 4, 6)
    twice = torch.cat([x, x], 2)
    return {
        "in order": x,
        "channels last": channels_last(x),
        "channels last, sliced": channels_last(twice)[:, :, ::2],
        "transposed": x.transpose(1, 3),
        "permuted": x.permute(2, 3, 0, 1),
        "sliced": twice[:, :, ::2],
        "channels expanded": x[:, :1].expand(4, 6, 4, 6),
        "batch expanded": x[:1].expand(4, 6, 4, 6),
        "one channel": channels_last(x[:, :1]),
        "three dimensions, transposed": x[0].mT,
        "two dimensions, transposed": x[0, 0, :, :3].mT,
        "volumes, channels last": x[:, :, None]
        .repeat(1, 1, 3, 1, 1)
        .contiguous(memory_format=torch.channels_last_3d),
    }


LAYOUTS = layouts()


def alone(x):
    return [(x,)]


def pairs(x):
    """With itself, with the same in another layout, and with one of fewer dimensions."""
    dense = x.contiguous()
    return [(x, x), (x, dense), (dense, x), (x, x.select(0, 0)), (x.select(0, 0), x)]


def gradients(*options):
    return lambda x: [(a, b, *options) for a, b in pairs(x)[:3]]


def along(x):
    """Along the first dimension, the second and the last."""
    return [(x, dim) for dim in (0, 1, -1)]


def reductions(*options):
    return lambda x: [(x, [dim], *options, keep) for dim in (0, 1, -1) for keep in (False, True)]


def lists(x):
    dense = x.contiguous()
    return [(several, dim) for several in ([x, x], [x, dense]) for dim in (0, 1, -1)]


def halves(x):
    return [(x, dim) for dim in (0, 1, -1) if x.shape[dim] % 2 == 0]


def gradients_of_halves(x):
    found = [(functional.glu(*given), *given) for given in halves(x)]
    return found + [(g.contiguous(), *rest) for g, *rest in found]


def with_channels(count):
    return lambda x: [(x, *[tensor(x.shape[1])] * count)]


def groups(x):
    return [(x, 2)] if x.shape[1] % 2 == 0 else []


def groups_of_images(x):
    if x.shape[1] % 2 or not any(
        x.is_contiguous(memory_format=form)
        for form in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
        if x.ndim == {torch.channels_last: 4, torch.channels_last_3d: 5}.get(form, x.ndim)
    ):
        return []  # PyTorch refuses it
    return [(x, None, None, x.shape[0], x.shape[1], x[0, 0].numel(), 2, 1e-5)]


def matrices(x):
    return [(x, x.mT), (x, tensor(x.shape[-1])), (x.contiguous(), x.mT.contiguous())]


def of_rank(rank, *makers):
    return lambda x: [make(x) for make in makers] if x.ndim == rank else []


def same(*names, module=torch):
    """Operators that PyTorch has under the same names."""
    return {name: getattr(module, name) for name in names}


ROUNDED = {
    "div_mod": (
        lambda x: [(x, x, mode) for mode in ("trunc", "floor")],
        lambda a, b, mode: torch.div(a, b, rounding_mode=mode),
    )
}
CALLS = {
    name: (arguments, peer)
    for arguments, peers in (
        (
            alone,
            same(
                "neg", "abs", "floor", "ceil", "trunc", "frac", "round", "sign", "square", "exp", "isfinite",
                "isinf", "isposinf", "isneginf", "sqrt", "rsqrt", "reciprocal", "exp2", "expm1",
                "log", "log2", "log10", "log1p", "sin", "cos", "erf", "erfinv", "relu", "sigmoid",
                "tanh", "logical_not", "logit", "tril", "triu", "max", "min",
            )
            | same(
                "silu", "mish", "selu", "celu", "elu", "hardswish", "hardsigmoid", "hardtanh",
                "hardshrink", "softshrink", "softplus", "leaky_relu", "gelu", module=functional,
            )
            | {
                "log_sigmoid": functional.logsigmoid,
                "log_sigmoid_forward": lambda x: aten.log_sigmoid_forward(x)[0],
            },
        ),
        (
            pairs,
            same(
                "add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum",
                "logical_and", "logical_or", "logical_xor", "pow", "rsub", "heaviside",
                "floor_divide", "remainder", "fmod",
            ),
        ),
        (
            gradients(),
            same(
                "sigmoid_backward", "tanh_backward", "silu_backward", "mish_backward",
                "hardswish_backward", "hardsigmoid_backward", "gelu_backward", module=aten,
            ),
        ),
        (gradients(-1.0, 1.0), same("hardtanh_backward", module=aten)),
        (
            gradients(0.5),
            same("threshold_backward", "softshrink_backward", "hardshrink_backward", module=aten),
        ),
        (
            gradients(0.5),
            {"leaky_relu_backward": lambda g, x, s: aten.leaky_relu_backward(g, x, s, False)},
        ),
        (
            gradients(),
            {"elu_backward": lambda g, x: aten.elu_backward(g, 1.0, 1.0, 1.0, False, x)},
        ),
        (
            lambda x: [(a, b, x) for a, b in pairs(x)[:3]],
            same("log_sigmoid_backward", module=aten),
        ),
        (gradients(1.0, 20.0), same("softplus_backward", module=aten)),
        (gradients(1e-3), same("logit_backward", module=aten)),
        (along, same("softmax", "log_softmax", module=functional)),
        (along, same("cumsum")),
        (reductions(), same("sum", "mean", "amax", "amin", "any", "all")),
        (lambda x: [(one[0], one[1][0], one[2]) for one in reductions()(x)], {"arg_max": torch.argmax, "argmin": torch.argmin, "prod": torch.prod}),
        (
            reductions(0),
            {"var": lambda x, dim, n, keep: torch.var(x, dim, correction=n, keepdim=keep)},
        ),
        (lambda x: [(x, list(range(x.ndim)))], same("std", "std_mean", "var_mean")),
        (reductions(), same("logsumexp")),
        (lambda x: [(x,)], same("aminmax")),
        (lists, same("cat", "stack")),
        (halves, same("glu", module=functional)),
        (gradients_of_halves, same("glu_backward", module=aten)),
        (matrices, same("matmul")),
        (of_rank(2, lambda x: (x, x.mT)), same("mm")),
        (of_rank(3, lambda x: (x, x.mT)), same("bmm")),
        (of_rank(2, lambda x: (x, tensor(x.shape[1]))), same("mv")),
        (of_rank(2, lambda x: ((x @ x.mT).t(), x, x.mT), lambda x: (tensor(1), x, x.mT)), same("addmm")),
        (of_rank(2, lambda x: (tensor(x.shape[0]), x, tensor(x.shape[1]))), same("addmv")),
        (of_rank(3, lambda x: ((x @ x.mT).mT, x, x.mT)), same("baddbmm")),
        (of_rank(3, lambda x: (x[0] @ x[0].mT, x, x.mT)), same("addbmm")),
        (of_rank(3, lambda x: (x, tensor(3, x.shape[1], 2))), same("conv1d")),
        (of_rank(4, lambda x: (x, tensor(3, x.shape[1], 2, 2))), same("conv2d")),
        (of_rank(3, lambda x: (x, tensor(x.shape[1], 3, 2))), same("conv_transpose1d")),
        (of_rank(4, lambda x: (x, tensor(x.shape[1], 3, 2, 2))), same("conv_transpose2d")),
        (of_rank(4, lambda x: (x, tensor(3, x.shape[1], 2, 2), None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)), same("convolution")),
        (groups, same("group_norm", module=functional)),
        (groups_of_images, same("native_group_norm")),
        (with_channels(2), same("batch_norm", module=functional)),
    )
    for name, peer in peers.items()
}  # fmt: skip
CALLS |= ROUNDED | {
    "softmax_backward": (
        lambda x: [(x, x.contiguous(), d) for d in (0, 1, -1)],
        lambda g, y, dim: aten._softmax_backward_data(g, y, dim, DTYPE),
    ),
    "log_softmax_backward": (
        lambda x: [(x.contiguous(), x, d) for d in (0, 1, -1)],
        lambda g, y, dim: aten._log_softmax_backward_data(g, y, dim, DTYPE),
    ),
    "native_batch_norm": (
        lambda x: [(x, *[tensor(x.shape[1])] * 4, False, 0.1, 1e-5)],
        torch.native_batch_norm,
    ),
    "prelu_backward": (
        lambda x: [(x, x.contiguous(), tensor(1)), (x.contiguous(), x, tensor(1))],
        lambda g, x, w: aten._prelu_kernel_backward(g, x, w.reshape([1] * x.ndim))[:1],
    ),
    "prelu": (lambda x: [(x, tensor(1)), (x, tensor(x.shape[1]))], functional.prelu),
    "fill": (lambda x: [(x, 1.0)], torch.fill),
    "clamp": (lambda x: [(x, 0.2, 0.4)], torch.clamp),
    "clamp_min": (lambda x: [(x, 0.4)], torch.clamp_min),
    "clamp_max": (lambda x: [(x, 0.4)], torch.clamp_max),
    "bitwise_not": (lambda x: [(x > 0.5,)], torch.bitwise_not),
    **{
        name: (
            lambda x: [(a > 0.5, b > 0.4) for a, b in pairs(x)],
            getattr(torch, name),
        )
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    },
    "threshold": (lambda x: [(x, 0.2, 0.4)], functional.threshold),
    "where": (lambda x: [(a > 0.5, b, a) for a, b in pairs(x)[:3]], torch.where),
    "masked_fill": (lambda x: [(a, b > 0.5, 1.0) for a, b in pairs(x)[:3]], torch.masked_fill),
    "addcmul": (lambda x: [(a, b, a) for a, b in pairs(x)[:3]], torch.addcmul),
    "lerp": (lambda x: [(a, b, a) for a, b in pairs(x)[:3]], torch.lerp),
    "cast": (lambda x: [(x, aclnn.ACL_FLOAT16)], lambda x, dtype: x.half()),
    "index_select": (lambda x: [(x, d, torch.tensor([0, 0])) for d in (0, 1, -1)], torch.index_select),
    "gather": (lambda x: [(x, d, (x * 0).long()) for d in (0, 1, -1)], torch.gather),
    "index_copy": (
        lambda x: [(x, d, torch.tensor([0]), x.narrow(d, 0, 1)) for d in (0, 1, -1)],
        torch.index_copy,
    ),
    "embedding": (lambda x: [(tensor(3, 4).t(), (x * 0).long())], lambda w, i: functional.embedding(i, w)),
    "repeat": (lambda x: [(x, [2] * x.ndim)], lambda x, counts: x.repeat(counts)),
    "constant_pad_nd": (lambda x: [(x, [1, 2, -1, 0])], lambda x, pad: aten.constant_pad_nd(x, pad)),
    "layer_norm": (lambda x: [(x, [x.shape[-1]]), (x, list(x.shape[1:]))], functional.layer_norm),
    "native_layer_norm": (
        lambda x: [(x, [x.shape[-1]], None, None, 1e-5)],
        torch.native_layer_norm,
    ),
    "rms_norm": (lambda x: [(x, [x.shape[-1]])], functional.rms_norm),
}  # fmt: skip


def strides_of(given):
    """Strides of dimensions with more than one element; those of others say nothing."""
    return [(n, s) for n, s in zip(given.shape, given.stride(), strict=True) if n != 1]


def several(made):
    return list(made) if isinstance(made, tuple | list) else [made]


def without_memory(one):
    return torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="meta")


@pytest.mark.parametrize("layout", LAYOUTS)
@each("name", sorted(CALLS))
def test_results_lie_as_pytorchs(layout, name):
    arguments, peer = CALLS[name]
    for given in arguments(LAYOUTS[layout]):
        wanted = [strides_of(one) for one in several(peer(*given))]
        made = [strides_of(one) for one in several(getattr(aclnn, name)(*given))]
        assert made[: len(wanted)] == wanted
        fakes = tree_map_only(torch.Tensor, without_memory, given)
        fake = several(getattr(torch.ops.aclnn, name)(*fakes))
        assert [strides_of(one) for one in fake] == made


def test_every_operator_that_pytorch_has_is_compared():
    """Those that are left have no counterpart, or one whose result is a view."""
    ours = {n for n in aclnn.torch.__dir__() if not n.endswith("_")}
    public = {n for n in ours if callable(getattr(torch, n, getattr(functional, n, None)))}
    views = {"permute", "slice", "split", "split_with_sizes", "expand"}
    # Of these results are dense here, whatever PyTorch's kernels make them.
    dense = {
        *("scaled_dot_product_attention", "sort", "argsort", "topk", "max_dim", "min_dim"),
        *("scatter", "scatter_add", "index_add", "index_fill", "repeat_interleave", "roll"),
        *("avg_pool2d", "max_pool2d", "max_pool2d_with_indices", "adaptive_avg_pool2d"),
        *("one_hot", "arange", "linspace", "norm", "round", "conv3d", "triangular_solve"),
        *("nll_loss", "index_put", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div"),
    }
    assert public - CALLS.keys() - views - dense == set()
