"""Calls on 16 elements that `make_pytorch.py` measures: ours, and PyTorch's of the same name.

Every functional form is here whose name PyTorch has too, as a function, of `torch.nn.functional`, of tensors
or of its dispatcher. What PyTorch gives as a view (`permute`, `split`) is compared with its copying form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as nn

import aclnn

Call = Callable[[], Any]
Pair = tuple[
    Callable[..., Any], tuple[Any, ...]
]  # PyTorch's function, and what both are called with

ONE = (
    "abs cos erf exp exp2 expm1 floor log log10 log1p log2 logit neg reciprocal rsqrt sigmoid sin \
sqrt square tanh logical_not erfinv max"
)
TWO = "add sub mul div maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor pow \
heaviside rsub"
OF_NN = "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu mish relu selu silu \
softplus softshrink"
IN_PLACE = (
    "abs cos exp neg relu sigmoid sqrt tanh erf floor log rsqrt square reciprocal exp2 expm1 \
log2 log10 log1p sin erfinv logical_not zero"
)
IN_PLACE_OF_TWO = "add sub mul div eq ne lt le gt ge logical_and logical_or logical_xor pow copy"
IN_PLACE_OF_NN = "elu leaky_relu hardtanh hardswish hardsigmoid mish selu celu"
aten = torch.ops.aten


def calls() -> Iterator[tuple[str, Call, Call]]:
    """A name, our call and PyTorch's."""
    x = torch.rand(16) * 0.8 + 0.1
    rows, index = x.reshape(4, 4), torch.tensor([0, 3, 1])
    for made in (alike(), in_place(), gradients(), copies()):
        for name, (theirs, args) in made.items():
            yield name, *bound(getattr(aclnn, name), theirs, args)
    yield "embedding", lambda: aclnn.embedding(rows, index), lambda: nn.embedding(index, rows)
    yield (
        "softmax_backward",
        lambda: aclnn.softmax_backward(rows, rows, 1),
        lambda: aten._softmax_backward_data(rows, rows, 1, torch.float32),
    )
    yield (
        "log_softmax_backward",
        lambda: aclnn.log_softmax_backward(rows, rows, 1),
        lambda: aten._log_softmax_backward_data(rows, rows, 1, torch.float32),
    )
    yield (
        "elu_backward",
        lambda: aclnn.elu_backward(x, x),
        lambda: aten.elu_backward(x, 1.0, 1.0, 1.0, False, x),
    )


def bound(
    ours: Callable[..., Any], theirs: Callable[..., Any], args: tuple[Any, ...], **named: Any
) -> tuple[Call, Call]:
    return called(ours, args, named), called(theirs, args, named)


def called(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Call:
    """A call as programs write it: to pass on a tuple and a dictionary has a cost of its own."""
    names = [f"a{place}" for place in range(len(args))]
    given = ", ".join([*names, *[f"{one}={one}" for one in named]])
    made = eval(f"lambda {', '.join(['f', *names, *named])}: lambda: f({given})")
    return made(function, *args, **named)  # type: ignore[no-any-return]


def alike() -> dict[str, Pair]:
    """Functions that make their results and take the same arguments."""
    x, y = torch.rand(16) * 0.8 + 0.1, torch.rand(16) * 0.8 + 0.1
    rows, weight, truth = x.reshape(4, 4), torch.rand(4), x > 0.5
    index = torch.tensor([0, 3, 1])
    square = torch.rand(1, 4, 4)
    return {
        **{name: (getattr(torch, name), (x,)) for name in ONE.split()},
        **{name: (getattr(torch, name), (x, y)) for name in TWO.split()},
        **{name: (getattr(nn, name), (x,)) for name in OF_NN.split()},
        "log_sigmoid": (nn.logsigmoid, (x,)),
        "log_sigmoid_forward": (aten.log_sigmoid_forward, (x,)),
        "glu": (nn.glu, (x,)),
        "prelu": (nn.prelu, (x, torch.rand(1))),
        "threshold": (nn.threshold, (x, 0.5, 0.0)),
        "rrelu_with_noise": (torch._C._nn.rrelu_with_noise, (x, y)),
        "tril": (torch.tril, (rows,)),
        "triu": (torch.triu, (rows,)),
        "clamp": (torch.clamp, (x, 0.2, 0.8)),
        "where": (torch.where, (truth, x, y)),
        "masked_fill": (torch.masked_fill, (x, truth, 0.5)),
        "fill": (torch.fill, (x, 0.5)),
        "addcmul": (torch.addcmul, (x, y, y)),
        "lerp": (torch.lerp, (x, y, y)),
        "softmax": (torch.softmax, (rows, 1)),
        "log_softmax": (torch.log_softmax, (rows, 1)),
        "sum": (torch.sum, (rows, 1)),
        "mean": (torch.mean, (rows, 1)),
        "var": (torch.var, (rows, 1)),
        "amax": (torch.amax, (rows, 1)),
        "arg_max": (torch.argmax, (rows, 1)),
        "cumsum": (torch.cumsum, (rows, 1)),
        "layer_norm": (nn.layer_norm, (rows, (4,), weight, weight)),
        "native_layer_norm": (torch.native_layer_norm, (rows, (4,), weight, weight, 1e-5)),
        "rms_norm": (nn.rms_norm, (rows, (4,), weight)),
        "group_norm": (nn.group_norm, (square, 2, weight, weight)),
        "native_group_norm": (torch.native_group_norm, (square, weight, weight, 1, 4, 4, 2, 1e-5)),
        "batch_norm": (nn.batch_norm, (square, weight, weight, weight, weight)),
        "native_batch_norm": (
            torch.native_batch_norm,
            (square, weight, weight, weight, weight, False, 0.1, 1e-5),
        ),
        "mm": (torch.mm, (rows, rows)),
        "matmul": (torch.matmul, (rows, rows)),
        "bmm": (torch.bmm, (square, square)),
        "addmm": (torch.addmm, (weight, rows, rows)),
        "baddbmm": (torch.baddbmm, (square, square, square)),
        "addbmm": (torch.addbmm, (rows, square, square)),
        "mv": (torch.mv, (rows, weight)),
        "addmv": (torch.addmv, (weight, rows, weight)),
        "cat": (torch.cat, ([x, y],)),
        "stack": (torch.stack, ([x, y],)),
        "constant_pad_nd": (torch.constant_pad_nd, (x, [1, 1])),
        "index_select": (torch.index_select, (x, 0, index)),
        "gather": (torch.gather, (x, 0, index)),
        "repeat": (torch.Tensor.repeat, (rows, (2, 1))),
    }


def copies() -> dict[str, Pair]:
    """What PyTorch's own functions of the same name give a view for."""
    rows = torch.rand(4, 4)
    return {
        "permute": (torch.permute_copy, (rows, (1, 0))),
        "expand": (torch.expand_copy, (rows, (2, 4, 4))),
        "slice": (torch.slice_copy, (rows, 0, 1, 3, 1)),
        "split": (torch.split_copy, (rows, 2)),
        "split_with_sizes": (torch.split_with_sizes_copy, (rows, (1, 3))),
    }


def in_place() -> dict[str, Pair]:
    x, y, z = torch.rand(16), torch.rand(16), torch.rand(4)
    rows, square, truth = torch.rand(4, 4), torch.rand(1, 4, 4), torch.rand(16) > 0.5
    tensor, of_nn = torch.Tensor, torch._C._nn
    numbers: dict[str, tuple[Any, ...]] = {
        "clamp": (x, 0.2, 0.8),
        "fill": (x, 0.5),
        "masked_fill": (x, truth, 0.5),
        "addcmul": (x, y, y),
        "lerp": (x, y, y),
        "tril": (rows,),
        "triu": (rows,),
        "addmm": (rows, rows, rows),
        "baddbmm": (square, square, square),
        "addbmm": (rows, square, square),
        "addmv": (z, rows, z),
    }
    of_tensors = {
        **{name: (torch.rand(16),) for name in IN_PLACE.split()},
        **{name: (torch.rand(16), y) for name in IN_PLACE_OF_TWO.split()},
        **numbers,
    }
    return {
        **{f"{name}_": (getattr(tensor, f"{name}_"), args) for name, args in of_tensors.items()},
        **{
            f"{name}_": (getattr(of_nn, f"{name}_", None) or getattr(torch, f"{name}_"), (y,))
            for name in IN_PLACE_OF_NN.split()
        },
        "threshold_": (torch.threshold_, (y, 0.5, 0.0)),
        "rrelu_with_noise_": (of_nn.rrelu_with_noise_, (x, y)),
    }


def gradients() -> dict[str, Pair]:
    x, y = torch.rand(16), torch.rand(16)
    rows, weight, one = x.reshape(4, 4), torch.rand(4), torch.rand(4, 1)
    numbers: dict[str, tuple[Any, ...]] = {
        "gelu_backward": (),
        "hardsigmoid_backward": (),
        "hardswish_backward": (),
        "sigmoid_backward": (),
        "silu_backward": (),
        "tanh_backward": (),
        "mish_backward": (),
        "logit_backward": (),
        "hardshrink_backward": (0.5,),
        "softshrink_backward": (0.5,),
        "threshold_backward": (0.5,),
        "softplus_backward": (1.0, 20.0),
        "hardtanh_backward": (-1.0, 1.0),
        "log_sigmoid_backward": (y,),
    }
    return {
        **{name: (getattr(aten, name), (x, y, *more)) for name, more in numbers.items()},
        "glu_backward": (aten.glu_backward, (x[:8], y, 0)),
        "native_layer_norm_backward": (
            aten.native_layer_norm_backward,
            (rows, rows, (4,), one, one, weight, weight, (True, True, True)),
        ),
    }


# Functions whose `out=` are those of PyTorch's dispatcher, or of its module in C.
OUT_ELSEWHERE: dict[str, Callable[..., Any]] = {
    "elu": torch._C._nn.elu,
    "gelu": torch._C._nn.gelu,
    "glu": torch._C._nn.glu,
    "hardsigmoid": torch._C._nn.hardsigmoid,
    "hardswish": torch._C._nn.hardswish,
    "hardtanh": torch._C._nn.hardtanh,
    "leaky_relu": torch._C._nn.leaky_relu,
    "mish": torch._C._nn.mish,
    "silu": torch._C._nn.silu,
    "softplus": torch._C._nn.softplus,
    "softshrink": torch._C._nn.softshrink,
    "log_sigmoid": torch._C._nn.log_sigmoid,
}


def calls_with_out() -> Iterator[tuple[str, Call, Call]]:
    """As `calls`, of the functions of one result that have `out=` in PyTorch."""
    for name, (usual, args) in (alike() | copies()).items():
        theirs = OUT_ELSEWHERE.get(name, usual)
        made = usual(*args)
        if not isinstance(made, torch.Tensor):
            continue
        out = torch.empty_like(made)
        try:
            theirs(*args, out=out)
        except (TypeError, RuntimeError):  # it has none
            continue
        yield name, *bound(getattr(aclnn, name), theirs, args, out=out)
