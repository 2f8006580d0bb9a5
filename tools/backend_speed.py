"""Measure which of PyTorch's operators executors do faster: what the backend of torch.compile goes by.

    python tools/backend_speed.py            # prints a table
    python tools/backend_speed.py --write    # and updates aclnn/torch/speed.json

Each operator that a form stands for (`aclnn/torch/counterparts.py`) runs as the backend would run it, one
node in one executor, and as PyTorch runs it: in turns, in one thread, float32, of rows of 64 to 1,024
elements. What counts is the least time of each; the file has both in µs, one for each size, and the table
their quotients.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.fx import Interpreter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as nn
from torch.utils._pytree import tree_flatten, tree_unflatten

import aclnn
from aclnn.torch.counterparts import counterpart
from aclnn.torch.expansion import expanded
from aclnn.torch.parts import Part
from aclnn.torch.speed import PRODUCTS, SIZES

TARGET = Path(__file__).parent.parent / "aclnn" / "torch" / "speed.json"
SHAPES = ((4, 64), (64, 256), (256, 1024))
assert tuple(map(math.prod, SHAPES)) == SIZES
SECONDS = 0.05  # that each of the two runs at least, for each shape

# Functions whose ATen operators, and those of their gradients, are measured.
OF_NUMBERS = """
    celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu selu silu
    softplus softshrink
"""
OF_POSITIVE = "exp2 log log10 log1p log2 reciprocal rsqrt sqrt"
OF_ANY = "cos erf exp expm1 floor neg sigmoid sin tanh tril triu"


def of_positive(function: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    return lambda x: function(x.abs() + 0.1)


FUNCTIONS: list[Callable[[torch.Tensor], Any]] = [
    *[getattr(nn, name) for name in OF_NUMBERS.split()],
    *[getattr(torch, name) for name in OF_ANY.split()],
    *[of_positive(getattr(torch, name)) for name in OF_POSITIVE.split()],
    lambda x: nn.gelu(x, approximate="tanh"),
    lambda x: torch.logit(x.sigmoid(), 1e-6),
    lambda x: nn.threshold(x, 0.5, 0.0),
    lambda x: x - x * x,
    lambda x: x / (x + 1),
    lambda x: 1 - x,
    lambda x: x**2,
    lambda x: torch.maximum(x, 1 - x),
    lambda x: torch.minimum(x, 1 - x),
    lambda x: torch.where(x > 0.5, x, 1 - x),
    lambda x: (x <= 0.5) == (x < x * x),
    lambda x: (x >= 0.5) != (x > x * x),
    lambda x: x.clamp(0.2, 0.8),
    lambda x: x.masked_fill(x > 0.5, 0.0),
    lambda x: torch.addcmul(x, x, x),
    lambda x: torch.lerp(x, 1 - x, x),
    lambda x: x.half().float(),
    lambda x: x.clone(),
    lambda x: torch.cat([x, x], -1),
    lambda x: nn.pad(x, (1, 1)),
    lambda x: x.repeat(2, 1),
    lambda x: nn.embedding(torch.arange(x.shape[0]), x),
    lambda x: x.index_select(0, torch.arange(x.shape[0])),
    lambda x: x.gather(1, torch.zeros(x.shape, dtype=torch.long)),
    lambda x: torch.softmax(x, -1),
    lambda x: torch.log_softmax(x, -1),
    lambda x: x.sum(-1),
    lambda x: x.mean(-1),
    lambda x: x.amax(-1),
    lambda x: x.cumsum(-1),
    lambda x: nn.layer_norm(x, x.shape[-1:], x[0], x[0]),
    lambda x: nn.group_norm(x[None].contiguous(), 1, x[:, 0].contiguous(), x[:, 0].contiguous()),
]

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


class Calls(Interpreter):
    """Runs a graph, and keeps the calls that have a counterpart."""

    def __init__(self, graph: torch.fx.GraphModule):
        super().__init__(graph)
        self.found: list[tuple[str, Call]] = []

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        known = counterpart(target)
        if known is not None and known[0] not in PRODUCTS:
            self.found.append((known[0], (target, args, kwargs)))
        return super().call_function(target, args, kwargs)


def calls_of(function: Callable[[torch.Tensor], Any], shape: tuple[int, ...]) -> dict[str, Call]:
    """Calls of ATen's operators that a function and its gradient make, by the names of forms."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator).requires_grad_()

    def with_gradient(x: torch.Tensor) -> Any:
        made = function(x)
        if not made.requires_grad:
            return made
        return torch.autograd.grad(made, x, torch.full_like(made, 0.5))

    recorder = Calls(make_fx(with_gradient)(x))
    with torch.no_grad():
        recorder.run(x)
    return dict(recorder.found)


def as_functions(call: Call) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A call as the backend makes it, and as PyTorch does."""
    target, args, named = call
    leaves, spec = tree_flatten((args, named))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[n].detach() for n in places]

    def run(*given: torch.Tensor) -> Any:
        own = list(leaves)
        for place, one in zip(places, given, strict=True):
            own[place] = one
        args, named = tree_unflatten(own, spec)
        return target(*args, **named)

    part = Part(expanded(run, tensors), "measured", tensors, {}, lambda graph: graph)
    part.run(*tensors)  # planned
    own_args, own_named = tree_unflatten(leaves, spec)
    return (lambda: part.run(*tensors)), (lambda: target(*own_args, **own_named))


def times(ours: Callable[[], Any], theirs: Callable[[], Any]) -> list[float]:
    """The least time of a call of each, in turns, in µs."""
    start = time.perf_counter()
    theirs()
    once = max(time.perf_counter() - start, 1e-7)
    count = max(1, min(200, int(5e-4 / once)))
    least = [math.inf, math.inf]
    rounds = max(10, int(SECONDS / (once * count)))
    for _ in range(rounds):
        for which, function in enumerate((ours, theirs)):
            start = time.perf_counter()
            for _ in range(count):
                function()
            least[which] = min(least[which], time.perf_counter() - start)
    return [one / count * 1e6 for one in least]


def dispatch() -> float:
    """What a call of an operator of ``torch.ops`` takes longer than one of ``torch``, in µs: graphs of Dynamo
    have the latter."""
    x = torch.ones(16)
    through_ops, plain = times(lambda: torch.ops.aten.neg.default(x), lambda: torch.neg(x))
    return through_ops - plain


def measured() -> dict[str, tuple[list[float], list[float]]]:
    """Times by name, ours and PyTorch's, one for each shape."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    besides = dispatch()
    for function in FUNCTIONS:
        of_shapes = [calls_of(function, shape) for shape in SHAPES]
        for name in {*of_shapes[0]} - {*found}:
            try:
                pairs = [as_functions(calls[name]) for calls in of_shapes]
            except (aclnn.AclnnError, NotImplementedError, TypeError, ValueError) as error:
                print(f"{name}: left out, {str(error).splitlines()[0]}")
                continue
            each = [times(*pair) for pair in pairs]
            found[name] = [a for a, _ in each], [b - besides for _, b in each]
            print(
                f"{name:28}",
                *[f"{a / b:5.2f}" for a, b in zip(*found[name], strict=True)],
                flush=True,
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"update {TARGET.name}")
    given = parser.parse_args()
    torch.set_num_threads(1)
    aclnn.set_num_threads(1)
    found = measured()
    if given.write:
        rounded = {n: [[round(t, 2) for t in each] for each in found[n]] for n in sorted(found)}
        lines = [f'  "{name}": {pair}' for name, pair in rounded.items()]
        TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
