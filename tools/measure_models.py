"""Measure whole models beside ONNX Runtime, PyTorch and its inductor.

    python tools/measure_models.py blocks [--threads N]     # four blocks of a transformer, from ONNX
    python tools/measure_models.py decode [--threads N]     # a token of a Llama-like layer with its cache
    python tools/measure_models.py architectures [NAME …] [--part 1/4] [--trained] [--sizes 64] [--shapes 4x32]
    python tools/measure_models.py table --json FILE        # what architectures has written, for the page about speed

Ratios are the other's time over ours, medians of rounds in which all take turns. Every library may use
the same number of threads. Results are compared before they are timed. Blocks and decoding have a process for each
contender: threads of one that wait for work would take the processors of the next. What `--json` has of architectures
already is not measured again, so that a run can be stopped and go on.
"""

from __future__ import annotations

import argparse
import os
import sys


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("blocks", "decode", "architectures", "table"))
    parser.add_argument("names", nargs="*", help="architectures of transformers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.01, help="seconds of a round of each")
    parser.add_argument("--sizes", nargs="*", help="blocks: as 1x16; architectures: widths")
    parser.add_argument("--shapes", nargs="*", help="architectures: batches and lengths, as 2x64")
    parser.add_argument("--without", nargs="*", default=[], help="contenders that are left out")
    parser.add_argument("--part", default="1/1", help="one of several runs over architectures")
    parser.add_argument("--trained", action="store_true", help="a step of training as well")
    parser.add_argument("--check", action="store_true", help="compare results, measure nothing")
    parser.add_argument("--json", help="append results to a file, a line each")
    return parser.parse_args()


GIVEN = parsed() if __name__ == "__main__" else None
if GIVEN is not None:  # before libraries read it
    for name in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = str(GIVEN.threads)

import copy  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import math  # noqa: E402
import multiprocessing  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterable  # noqa: E402
from functools import partial  # noqa: E402
from statistics import median  # noqa: E402
from typing import Any  # noqa: E402

import measured_models as models  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import aclnn  # noqa: E402
import aclnn.torch  # noqa: E402
from aclnn.benchmark.measure import alternate, looped  # noqa: E402

Call = Callable[[], Any]
SETTLE = 3e-3  # seconds in which threads of the contender before go to sleep
CLOSE = 1e-4  # of the largest number, between results


def timed(calls: dict[str, Call], given: argparse.Namespace) -> dict[str, float]:
    """Seconds of a call of each."""
    settle = SETTLE if given.threads > 1 else 0.0
    timers = {name: looped(call) for name, call in calls.items()}
    return {k: s.median for k, s in alternate(timers, given.rounds, given.budget, settle).items()}


class Contender:
    """A call that a process of its own makes and times.

    Libraries start their threads there: this process has none but its own.
    """

    def __init__(self, make: Callable[[], Call], given: argparse.Namespace):
        context = multiprocessing.get_context("fork")
        self._here, there = context.Pipe()
        self._process = context.Process(target=self._serve, args=(make, there, given), daemon=True)
        self._process.start()
        self.result = self._received()

    @staticmethod
    def _serve(make: Callable[[], Call], there: Any, given: argparse.Namespace) -> None:
        torch.set_num_threads(given.threads)
        aclnn.set_num_threads(given.threads)
        if given.threads == 1:  # all on one processor, whose caches each warms anew
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        try:
            with torch.no_grad():
                call = make()
                there.send(as_float32(call()))
                timer = looped(call)
                while there.recv():
                    call()
                    there.send(alternate({"": timer}, 1, given.budget, 0.0)[""].median)
        except Exception as error:
            there.send(error)

    def seconds(self) -> float:
        """The time of a call, in one round."""
        self._here.send(True)
        return self._received()

    def _received(self) -> Any:
        found = self._here.recv()
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        self._here.send(False)
        self._process.join()


def timed_apart(
    makers: dict[str, Callable[[], Call]], wanted: Any, close: float, given: argparse.Namespace
) -> dict[str, float]:
    """Seconds of the call that each maker gives, in processes that take turns; results are compared."""
    contenders = {name: Contender(make, given) for name, make in makers.items()}
    for name, one in contenders.items():
        if far(one.result, wanted) > close:
            raise ValueError(f"{name} gives something else: {far(one.result, wanted)}")
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(given.rounds):
        for name, one in contenders.items():
            found[name].append(one.seconds())
    for one in contenders.values():
        one.end()
    return {name: median(each) for name, each in found.items()}


def as_float32(result: Any) -> np.ndarray:
    return result.float().numpy() if isinstance(result, torch.Tensor) else result.astype(np.float32)


def far(one: Any, other: Any) -> float:
    """The largest difference beside the largest number."""
    a, b = (torch.as_tensor(x).detach().double() for x in (one, other))
    if a.shape != b.shape:
        raise ValueError(f"results have shapes {tuple(a.shape)} and {tuple(b.shape)}")
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-30)) if b.numel() else 0.0


def compiled(model: torch.nn.Module, backend: str, **options: Any) -> Any:
    """A model through a backend, planned for each shape."""
    own = copy.deepcopy(model)
    if not options:
        return torch.compile(own, backend=backend, dynamic=False)
    return torch.compile(own, backend=backend, dynamic=False, options=options)


def report(given: argparse.Namespace, **row: Any) -> None:
    """Print a row, and append it to the file."""
    shown = [f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()]
    print("  ".join(shown), flush=True)
    if given.json:
        with open(given.json, "a") as file:
            file.write(json.dumps({"threads": given.threads, **row}) + "\n")


def ratios(seconds: dict[str, float], ours: str) -> dict[str, float]:
    return {name: one / seconds[ours] for name, one in seconds.items() if name != ours}


# --- Blocks -----------------------------------------------------------------------------------------


def session(content: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])


def measure_blocks(given: argparse.Namespace) -> None:
    model = models.blocks()
    like = torch.randn(2, 3, models.WIDTH)
    written = {
        "torchscript": models.exported(model, like, False),
        "dynamo": models.exported(model, like, True),
    }
    options = {
        "inductor": ("inductor", {}),
        "backend": ("aclnn", {}),
        "backend, all": ("aclnn", {"take": "all"}),
        "backend, frozen": ("aclnn", {"freeze": True}),
    }
    for batch, length in models.SIZES:
        if given.sizes and f"{batch}x{length}" not in given.sizes:
            continue
        x = torch.randn(batch, length, models.WIDTH)
        makers: dict[str, Callable[[], Call]] = {"eager": lambda x=x: lambda: model(x)}
        for name, (backend, chosen) in options.items():
            makers[name] = partial(called, model, backend, chosen, x)
        for exporter, content in written.items():
            makers[exporter] = partial(of_ours, content, x.numpy())
            makers[f"run {exporter}"] = partial(run_of_ours, content, x.numpy())
            makers[f"ort {exporter}"] = partial(of_session, content, given.threads, x.numpy())
        makers = {name: make for name, make in makers.items() if name not in given.without}
        seconds = timed_apart(makers, model(x), CLOSE, given)
        aclnn.set_num_threads(given.threads)
        planned = aclnn.from_onnx(written["dynamo"]).executor(x.numpy()).plan.size
        aclnn.set_num_threads(1)
        report(
            given, what="blocks", size=f"{batch}x{length}", ms=seconds["dynamo"] * 1e3,
            **ratios(seconds, "dynamo"), workspace=planned, peak=peak_of(partial(model, x)),
        )  # fmt: skip


def called(model: torch.nn.Module, backend: str, options: dict[str, Any], *given: Any) -> Call:
    """A call of a model through a backend."""
    return partial(compiled(model, backend, **options), *given)


def of_ours(content: bytes, array: np.ndarray) -> Call:
    return partial(aclnn.from_onnx(content), array)


def run_of_ours(content: bytes, array: np.ndarray) -> Call:
    return aclnn.from_onnx(content).executor(array).run


def of_session(content: bytes, threads: int, array: np.ndarray) -> Call:
    theirs = session(content, threads)
    (key,) = [one.name for one in theirs.get_inputs()]
    return lambda: theirs.run(None, {key: array})[0]


def peak_of(call: Call) -> int:
    """The most bytes that PyTorch's allocator has given out at once, during a call of eager operators."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as found:
        call()
    now = most = 0
    for event in found.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


# --- Decoding ---------------------------------------------------------------------------------------


def measure_decode(given: argparse.Namespace) -> None:
    options = {
        "inductor": ("inductor", {}),
        "backend": ("aclnn", {}),
        "backend, all": ("aclnn", {"take": "all"}),
        "backend, frozen": ("aclnn", {"freeze": True}),
    }
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(1, 1, models.WIDE).to(dtype)
        at = torch.tensor([models.ROOM - 5])
        eager = models.decoder(dtype)
        makers: dict[str, Callable[[], Call]] = {"eager": partial(partial, eager, x, at)}
        for name, (backend, chosen) in options.items():
            makers[name] = partial(called, eager, backend, chosen, x, at)
        makers["ours"] = partial(numpy_step, eager, x, at)
        makers = {name: make for name, make in makers.items() if name not in given.without}
        close = CLOSE if dtype == torch.float32 else 3e-2
        seconds = timed_apart(makers, eager(x, at).float(), close, given)
        report(
            given, what="decode", dtype=str(dtype).removeprefix("torch."), ms=seconds["ours"] * 1e3,
            **ratios(seconds, "ours"),
        )  # fmt: skip


def numpy_step(model: Any, x: torch.Tensor, at: torch.Tensor) -> Call:
    """The same layer from NumPy, as `aclnn.compile` plans it."""
    size, heads = models.SIZE, models.WIDE // models.SIZE

    def rotated(part: Any, turn: Any) -> Any:
        first, second = part[..., : size // 2], part[..., size // 2 :]
        return part * turn[0] + np.concatenate([-second, first], -1) * turn[1]

    @aclnn.compile
    def step(x: Any, position: Any, w: Any, turns: Any, keys: Any, values: Any) -> Any:
        own = aclnn.rms_norm(x, models.WIDE, w["before"], 1e-6) @ w["qkv"].T
        q, k, v = np.split(own.reshape(3 * heads, 1, size), 3)
        turn = turns[position]
        keys[:, position] = rotated(k, turn)[:, 0]
        values[:, position] = v[:, 0]
        seen = np.arange(models.ROOM) <= position
        made = aclnn.scaled_dot_product_attention(
            rotated(q, turn)[None], keys[None], values[None], seen[None]
        )
        x = x + made.reshape(1, models.WIDE) @ w["out"].T
        gate, up = np.split(aclnn.rms_norm(x, models.WIDE, w["after"], 1e-6) @ w["gate"].T, 2, -1)
        return x + (aclnn.silu(gate) * up) @ w["down"].T

    def array(tensor: torch.Tensor) -> np.ndarray:
        if tensor.dtype != torch.bfloat16:
            return tensor.detach().numpy()
        import ml_dtypes

        return tensor.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)

    named = ("before", "after", "qkv", "out", "gate", "down")
    weights = {name: array(getattr(model, name).weight) for name in named}
    turns = array(torch.stack([model.cos, model.sin], 1))
    caches = array(model.keys[0].clone()), array(model.values[0].clone())
    position, row = np.int64(int(at)), array(x[0])
    return lambda: step(row, position, weights, turns, *caches)[None]


# --- Architectures ----------------------------------------------------------------------------------


def measure_architectures(given: argparse.Namespace) -> None:
    names = given.names or models.ARCHITECTURES
    done = {case_of(row) for row in rows_of(given.json) if "failed" not in row}
    part, parts = map(int, given.part.split("/"))
    found: list[float] = []
    for name in names[part - 1 :: parts]:
        for width in map(int, given.sizes or models.WIDTHS):
            model = models.architecture(name, width)
            for batch, length in models.SHAPES:
                if given.shapes and f"{batch}x{length}" not in given.shapes:
                    continue
                inputs = models.inputs_of(name, batch, length)
                for trained in (False, True)[: 1 + given.trained]:
                    row = {"width": width, "shape": f"{batch}x{length}", "trained": trained}
                    if case_of({"what": name, "threads": given.threads, **row}) in done:
                        continue
                    try:
                        measured = measure_one(model, inputs, trained, given)
                    except Exception as error:
                        words = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
                        report(given, what=name, **row, failed=words)
                        continue
                    if "ratio" in measured:
                        found.append(measured["ratio"])
                    report(given, what=name, **row, **measured)
    if found:
        slower = sum(one < 0.97 for one in found)
        print(
            f"{len(found)} cases, median {median(found):.2f}, least {min(found):.2f}, {slower} slower"
        )


def case_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([row.get(key) for key in ("what", "width", "shape", "trained", "threads")])


def size_of(shape: str) -> int:
    """Tokens of a shape such as 4x32."""
    return math.prod(map(int, shape.split("x")))


def rows_of(path: str | None) -> list[dict[str, Any]]:
    """The rows of a file that `report` has written; none where there is no file."""
    if path is None or not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def write_table(given: argparse.Namespace) -> None:
    """Print medians of ratios by width and shape, with the least, as Markdown; tell what differs or failed."""
    rows = {case_of(row): row for row in rows_of(given.json) if "width" in row}
    for threads in sorted({row["threads"] for row in rows.values()}):
        own = [row for row in rows.values() if row["threads"] == threads]
        print(f"## Architectures, {threads} thread{'s' if threads > 1 else ''}\n")
        print("| width, batch x length | evaluated | least | trained, a step | least |")
        print("| --- | --- | --- | --- | --- |")
        for width in sorted({row["width"] for row in own}):
            for shape in sorted({row["shape"] for row in own}, key=size_of):
                cells = [f"{width}, {shape.replace('x', ' × ')}"]
                for trained in (False, True):
                    cells += summary([
                        row for row in own
                        if (row["width"], row["shape"], row["trained"]) == (width, shape, trained)
                    ])  # fmt: skip
                print(f"| {' | '.join(cells)} |")
        print()
    measured = list(rows.values())
    failed = [row for row in measured if "failed" in row]
    for key in ("outputs", "gradients"):
        print(
            f"{key} differ by at most {max([row.get(key, 0) for row in measured], default=0):.1e}"
        )
    print(
        f"{len(measured)} cases of {len({row['what'] for row in measured})} architectures, {len(failed)} failed"
    )
    for row in failed:
        print(f"  {case_of(row)}: {row['failed']}")


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """The median of ratios and how many are below 1; the least three, with their names."""
    found = sorted([(row["ratio"], row["what"]) for row in rows if "ratio" in row])
    if not found:
        return ["", ""]
    below = sum(ratio < 1 for ratio, _ in found)
    middle = f"{median([ratio for ratio, _ in found]):.2f} ({below} of {len(found)} below 1)"
    return [middle, ", ".join([f"{name} {ratio:.2f}" for ratio, name in found[:3]])]


def measure_one(
    model: torch.nn.Module, inputs: dict[str, Any], trained: bool, given: argparse.Namespace
) -> dict[str, Any]:
    torch._dynamo.reset()
    model.zero_grad()
    other = copy.deepcopy(model)
    made = torch.compile(other, backend="aclnn", dynamic=False)
    with torch.set_grad_enabled(trained):
        outputs = [tensors_of(one(**inputs)) for one in (made, model)]
        apart = max_far(*outputs)
        row: dict[str, Any] = {"outputs": apart}
        if trained:
            for each in outputs:
                sum_of(each).backward()
            pairs = zip(other.parameters(), model.parameters(), strict=True)
            row["gradients"] = far_gradients([(a.grad, b.grad) for a, b in pairs])
            calls = {name: step_of(one, inputs) for name, one in (("ours", made), ("eager", model))}
        else:
            calls = {"ours": lambda: made(**inputs), "eager": lambda: model(**inputs)}
        if given.check:
            return row
        seconds = timed(calls, given)
    return {**row, "ms": seconds["ours"] * 1e3, "ratio": seconds["eager"] / seconds["ours"]}


def step_of(model: Any, inputs: dict[str, Any]) -> Call:
    def step() -> None:
        model.zero_grad()
        sum_of(tensors_of(model(**inputs))).backward()

    return step


def sum_of(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    return sum(one.square().sum() for one in tensors if one.requires_grad)  # type: ignore[return-value]


def max_far(ours: list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    return max(far(a, b) for a, b in zip(ours, wanted, strict=True) if a.is_floating_point())


def far_gradients(pairs: list[tuple[Any, Any]]) -> float:
    """The norm of all differences beside that of all gradients."""
    if any((a is None) is not (b is None) for a, b in pairs):
        raise ValueError("a gradient is missing")
    both = [pair for pair in pairs if pair[0] is not None]
    apart = math.hypot(*[float((a - b).double().norm()) for a, b in both])
    return apart / math.hypot(*[float(b.double().norm()) for _, b in both])


def tensors_of(output: Any) -> list[torch.Tensor]:
    """All tensors of an output, in order."""
    leaves = torch.utils._pytree.tree_leaves(dict(output) if isinstance(output, dict) else output)
    return [one for one in leaves if isinstance(one, torch.Tensor)]


MEASURES = {
    "blocks": measure_blocks, "decode": measure_decode, "architectures": measure_architectures,
    "table": write_table,
}  # fmt: skip


def main(given: argparse.Namespace) -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    threads = given.threads if given.what == "architectures" else 1  # contenders have more
    if given.what == "architectures" and threads == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(threads)
    aclnn.set_num_threads(threads)
    torch._dynamo.config.recompile_limit = 64
    with torch.no_grad() if given.what != "architectures" else torch.enable_grad():
        MEASURES[given.what](given)


if __name__ == "__main__":
    assert GIVEN is not None
    sys.exit(main(GIVEN))
