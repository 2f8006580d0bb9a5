"""Measure what `docs/pytorch.md` says of calls on tensors and of models, beside PyTorch.

    python tools/make_pytorch.py calls [OPERATOR …]      # 16 elements: ours over PyTorch's, worst first
    python tools/make_pytorch.py models [--inductor] [MODEL …]
    python tools/make_pytorch.py calls models --write    # and puts both into the page

Times are the least of many rounds, in which ours and PyTorch's take turns.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as nn

import aclnn
import aclnn.torch as at

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "pytorch.md"
Call = Callable[[], Any]


def least(calls: list[Call], seconds: float) -> list[float]:
    """The least time of each, in seconds a call, in turns so short that some are not interrupted."""
    start = time.perf_counter()
    for call in calls:
        call()
    once = max(time.perf_counter() - start, 1e-7)
    count = max(1, int(5e-4 / once))
    found = [math.inf] * len(calls)
    for _ in range(max(25, int(seconds / (count * once)))):
        for which, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(count):
                call()
            found[which] = min(found[which], (time.perf_counter() - start) / count)
    return found


# --- Calls ---------------------------------------------------------------------------------------

ONE = (
    "abs cos erf exp exp2 expm1 floor log log10 log1p log2 logit neg reciprocal rsqrt sigmoid sin \
sqrt square tanh tril triu logical_not erfinv max"
)
TWO = "add sub mul div maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor pow \
heaviside rsub"
OF_NN = "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu mish relu selu silu \
softplus softshrink"
IN_PLACE = "abs cos exp neg relu sigmoid sqrt tanh erf floor log rsqrt"


def cases() -> Iterator[tuple[str, Call, Call]]:
    """A name, our call and PyTorch's, on 16 elements."""
    x, y = torch.rand(16) * 0.8 + 0.1, torch.rand(16) * 0.8 + 0.1
    rows, weight, truth = x.reshape(4, 4), torch.rand(4), x > 0.5
    index = torch.tensor([0, 3, 1])
    square = torch.rand(1, 4, 4)
    taken: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        **{name: (getattr(torch, name), (x,)) for name in ONE.split()},
        **{name: (getattr(torch, name), (x, y)) for name in TWO.split()},
        **{name: (getattr(nn, name), (x,)) for name in OF_NN.split()},
        "log_sigmoid": (nn.logsigmoid, (x,)),
        "glu": (nn.glu, (x,)),
        "prelu": (nn.prelu, (x, torch.rand(1))),
        "threshold": (nn.threshold, (x, 0.5, 0.0)),
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
        "batch_norm": (nn.batch_norm, (square, weight, weight, weight, weight)),
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
    }
    for name, (theirs, args) in taken.items():
        ours = getattr(aclnn, name)
        yield name, *bound(ours, theirs, args)
    yield "embedding", *bound(aclnn.embedding, nn.embedding, (rows, index), swapped=True)
    for name in (f"{one}_" for one in IN_PLACE.split()):
        z = torch.rand(16)
        yield name, *bound(getattr(aclnn, name), getattr(torch, name), (z,))
    gradients = {
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
    }
    aten = torch.ops.aten
    for name, numbers in gradients.items():
        yield name, *bound(getattr(aclnn, name), getattr(aten, name), (x, y, *numbers))
    yield (
        "softmax_backward",
        lambda: aclnn.softmax_backward(rows, rows, 1),
        lambda: aten._softmax_backward_data(rows, rows, 1, torch.float32),
    )


def bound(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    args: tuple[Any, ...],
    swapped: bool = False,
) -> tuple[Call, Call]:
    their_args = args[::-1] if swapped else args
    return (lambda: ours(*args)), (lambda: theirs(*their_args))


# With `out=`: names of functions that both have, of one and of two tensors.
WITH_OUT = (
    "add sub mul div maximum minimum pow",
    "exp log sqrt rsqrt sigmoid tanh neg abs sin erf",
)


def cases_with_out() -> Iterator[tuple[str, Call, Call]]:
    x, y, out = torch.rand(16) + 0.1, torch.rand(16), torch.empty(16)
    rows, made = x.reshape(4, 4), torch.empty(4, 4)
    for names, args in zip(WITH_OUT, ((x, y), (x,)), strict=True):
        for name in names.split():
            ours, theirs = getattr(aclnn, name), getattr(torch, name)
            yield (
                name,
                lambda f=ours, args=args: f(*args, out=out),
                lambda f=theirs, args=args: f(*args, out=out),
            )
    yield (
        "softmax",
        lambda: aclnn.softmax(rows, 1, out=made),
        lambda: torch.softmax(rows, 1, out=made),
    )
    yield (
        "log_softmax",
        lambda: aclnn.log_softmax(rows, 1, out=made),
        lambda: torch.ops.aten._log_softmax.out(rows, 1, False, out=made),
    )
    yield "mm", lambda: aclnn.mm(rows, rows, out=made), lambda: torch.mm(rows, rows, out=made)
    yield (
        "gelu",
        lambda: aclnn.gelu(x, out=out),
        lambda: torch.ops.aten.gelu.out(x, out=out),
    )
    yield (
        "leaky_relu",
        lambda: aclnn.leaky_relu(x, out=out),
        lambda: torch.ops.aten.leaky_relu.out(x, out=out),
    )
    yield (
        "cat",
        lambda: aclnn.cat([x, y], out=torch.empty(32)),
        lambda: torch.cat([x, y], out=torch.empty(32)),
    )


def quotients(made: Iterator[tuple[str, Call, Call]], wanted: list[str]) -> dict[str, float]:
    found = {}
    for name, ours, theirs in made:
        if not wanted or name in wanted:
            a, b = least([ours, theirs], 0.1)
            found[name] = a / b
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def table_of_calls(wanted: list[str]) -> str:
    lines = []
    for title, made in (("", cases()), (", with `out=`", cases_with_out())):
        found = quotients(made, wanted)
        mean = sum(found.values()) / len(found)
        geometric = math.prod(found.values()) ** (1 / len(found))
        worst = ", ".join(f"`{name}` {one:.2f}" for name, one in list(found.items())[:8])
        lines.append(
            f"Of {len(found)} calls on 16 elements{title}: {mean:.2f} of PyTorch's time on average "
            f"({geometric:.2f} as a geometric mean); the dearest are {worst}."
        )
    return "\n\n".join(lines)


# --- Models --------------------------------------------------------------------------------------


def row_of_model(name: str, inductor: bool) -> str:
    import architectures

    model, given = architectures.made(name)
    with torch.no_grad():
        found = at.explain(model, **given)
        wanted = architectures.result_of(model(**given))
    nodes = found.taken + len(found.left)
    backends = ["aclnn", "eager"] + ["inductor"] * inductor
    times = {backend: beside_eager(model, given, backend) for backend in backends}
    torch._dynamo.reset()
    own = copy.deepcopy(model)
    made = architectures.result_of(torch.compile(own, backend="aclnn")(**given))
    direction = torch.randn(wanted.shape)
    for one in (made, architectures.result_of(model(**given))):
        (one * direction).sum().backward()
    far = float((made.detach() - wanted).abs().max() / wanted.abs().max())
    cells = [
        name,
        f"{found.taken} of {nodes} in {len(found.parts)}",
        f"{far:.0e}",
        f"{distance_of_gradients(own, model):.0e}",
        f"{min(eager for eager, _ in times.values()) * 1e3:.2f} ms",
        *[f"{ours / eager:.2f}" for eager, ours in times.values()],
        *["-"] * (not inductor),
        f"{max(found.workspaces, default=0):,} B",
    ]
    return f"| {' | '.join(cells)} |"


def beside_eager(model: Any, given: dict[str, Any], backend: str) -> list[float]:
    """The time of eager calls, and through a backend.

    Dynamo would look through the graphs of other backends first, had it not forgotten them.
    """
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(copy.deepcopy(model), backend=backend)
        compiled(**given)
        return least([lambda: model(**given), lambda: compiled(**given)], 2.0)


def distance_of_gradients(one: torch.nn.Module, other: torch.nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    both = [(a.grad, b.grad) for a, b in pairs if b.grad is not None]
    apart = torch.stack([(a - b).norm() for a, b in both]).norm()
    return float(apart / torch.stack([b.norm() for _, b in both]).norm())


HEAD = """\
| model | nodes taken, executors | outputs | gradients | eager | backend | Dynamo alone | inductor | workspace |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def table_of_models(wanted: list[str], inductor: bool) -> str:
    sys.path.insert(0, str(ROOT / "tests"))
    import architectures

    rows = [HEAD]
    for name in wanted or architectures.ARCHITECTURES:
        torch._dynamo.reset()
        rows.append(row_of_model(name, inductor))
        print(rows[-1], flush=True)
    return "\n".join(rows)


# --- The page ------------------------------------------------------------------------------------


def put_between(text: str, name: str, made: str) -> str:
    """A page with what was made between the marks of that name."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = text.partition(start)
    return f"{before}{start}{made}\n{end}{rest.partition(end)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="+", help="calls, models, and names of operators or models")
    parser.add_argument("--inductor", action="store_true", help="compile models with it as well")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    given = parser.parse_args()
    torch.set_num_threads(1)
    aclnn.set_num_threads(1)
    names = [one for one in given.what if one not in ("calls", "models")]
    text = PAGE.read_text()
    for what in given.what:
        if what == "calls":
            made = table_of_calls(names)
        elif what == "models":
            made = table_of_models(names, given.inductor)
        else:
            continue
        print(made)
        text = put_between(text, what, made)
    if given.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
