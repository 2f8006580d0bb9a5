"""Measure what `docs/pytorch.md` says of calls on tensors and of models, beside PyTorch.

    python tools/make_pytorch.py calls [OPERATOR …]      # 16 elements: ours over PyTorch's, worst first
    python tools/make_pytorch.py swaps                   # an MLP with our activations
    python tools/make_pytorch.py models [--inductor] [MODEL …]
    python tools/make_pytorch.py calls swaps models --write    # and puts all of it into the page

Times are the least of many rounds, in which ours and PyTorch's take turns.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytorch_swaps
import torch

import aclnn
import aclnn.torch as at

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import pytorch_calls  # noqa: E402

PAGE = ROOT / "docs" / "pytorch.md"


def least(calls: list[pytorch_calls.Call], seconds: float) -> list[float]:
    """The least time of each, in seconds a call, in turns so short that some are not interrupted."""
    for call in calls:  # the first one makes a plan
        call()
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


def quotients(
    made: Iterator[tuple[str, pytorch_calls.Call, pytorch_calls.Call]], wanted: list[str]
) -> dict[str, float]:
    found = {}
    for name, ours, theirs in made:
        if not wanted or name in wanted:
            a, b = least([ours, theirs], 0.1)
            found[name] = a / b
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def table_of_calls(wanted: list[str]) -> str:
    lines = []
    for title, made in (
        ("", pytorch_calls.calls()),
        (", with `out=`", pytorch_calls.calls_with_out()),
    ):
        found = quotients(made, wanted)
        mean = sum(found.values()) / len(found)
        geometric = math.prod(found.values()) ** (1 / len(found))
        worst = ", ".join(f"`{name}` {one:.2f}" for name, one in list(found.items())[:8])
        lines.append(
            f"Of {len(found)} calls on 16 elements{title}: {mean:.2f} of PyTorch's time on average "
            f"({geometric:.2f} as a geometric mean); the dearest are {worst}."
        )
    return "\n\n".join(lines)


# --- Activations ---------------------------------------------------------------------------------


def table_of_swaps() -> str:
    batches = pytorch_swaps.BATCHES
    heads = [f"{what}, {batch}" for what in ("inference", "training") for batch in batches]
    rows = [f"| activation | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]
    for name in pytorch_swaps.ACTIVATIONS:
        cells = []
        for made in (pytorch_swaps.inference, pytorch_swaps.step):
            for batch in batches:
                both = [made(model, batch) for model in pytorch_swaps.networks(name)]
                ours, theirs = least(both, 2.0)
                cells.append(f"{ours / theirs:.2f}")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


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
    sys.path.insert(0, str(ROOT / "tests" / "support"))
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
    parser.add_argument(
        "what", nargs="+", help="calls, swaps, models, and names of operators or models"
    )
    parser.add_argument("--inductor", action="store_true", help="compile models with it as well")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    given = parser.parse_args()
    torch.set_num_threads(1)
    aclnn.set_num_threads(1)
    names = [one for one in given.what if one not in ("calls", "swaps", "models")]
    text = PAGE.read_text()
    for what in given.what:
        if what == "calls":
            made = table_of_calls(names)
        elif what == "swaps":
            made = table_of_swaps()
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
