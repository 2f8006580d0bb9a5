"""Time the operators against PyTorch, in the same run, alternating; prints ratios of medians.

Both sides write into an output that is there already. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np

import aclnn
from aclnn import isa
from aclnn.operators import REGISTRY, Operator

DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
DEFAULT_OPERATORS = (
    "leaky_relu", "hardshrink_backward", "elu_backward", "logit_backward", "gelu_backward",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--operators", nargs="+", default=DEFAULT_OPERATORS, choices=REGISTRY)
    parser.add_argument("--sizes", nargs="+", type=int, default=[16, 4096, 1 << 18, 1 << 24])
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9, help="medians of so many (default 9)")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")


def run(options: argparse.Namespace) -> int:
    before = aclnn.get_num_threads()
    aclnn.set_num_threads(options.threads)
    try:
        rows = list(_rows(options))
    finally:
        aclnn.set_num_threads(before)
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if ratios:
        print(
            f"geometric mean of {len(ratios)} ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}"
        )
    if options.json:
        facts = {"isa": isa.name(), "threads": options.threads, "rows": rows}
        with open(options.json, "w") as file:
            json.dump(facts, file, indent=2)
    return 0


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    torch = _peer(options.threads)
    print(f"{isa.name()}, threads {options.threads}; times in µs; stream: a copy of as many bytes")
    print(
        f"{'operator':20} {'dtype':9} {'elements':>10} {'aclnn':>10} {'PyTorch':>10} {'ratio':>6} {'GB/s':>6} {'of stream':>9}"
    )
    for size in options.sizes:
        for dtype in options.dtypes:
            for name in options.operators:
                row = measure(REGISTRY[name], dtype, size, options.rounds, torch)
                shown = f"{row['torch_us']:10.2f} {row['ratio']:6.2f}" if row["ratio"] else " " * 17
                print(
                    f"{name:20} {dtype:9} {size:10,} {row['aclnn_us']:10.2f} {shown} "
                    f"{row['gigabytes_per_second']:6.1f} {row['of_stream']:9.0%}",
                    flush=True,
                )
                yield row


def measure(operator: Operator, dtype: str, size: int, rounds: int, torch: Any) -> dict[str, Any]:
    """One cell: medians of alternating rounds."""
    rng = np.random.default_rng(size)
    low, high = operator.domain
    operands = [
        rng.uniform(low, high, size).astype(np.float32).astype(DTYPES[dtype])
        for _ in operator.inputs
    ]
    out = np.empty_like(operands[0])
    ours = getattr(aclnn, operator.name)
    calls: list[Callable[[], Any]] = [lambda: ours(*operands, out=out)]
    if torch is not None and operator.name in TORCH:
        calls.append(_torch_call(torch, operator, operands, dtype))
    calls.append(_stream(sum(a.nbytes for a in operands) + out.nbytes))
    times = alternate(calls, rounds, max(1, min(2000, 2_000_000 // size)))
    moved = sum(a.nbytes for a in operands) + out.nbytes
    peer = times[1] if len(calls) == 3 else None
    return {
        "operator": operator.name,
        "dtype": dtype,
        "elements": size,
        "aclnn_us": times[0] * 1e6,
        "torch_us": peer * 1e6 if peer else None,
        "ratio": peer / times[0] if peer else None,
        "gigabytes_per_second": moved / times[0] / 1e9,
        "of_stream": times[-1] / times[0],
    }


def alternate(calls: list[Callable[[], Any]], rounds: int, repeat: int) -> list[float]:
    """Median seconds of each call, measured in turn so that a drifting machine is fair to all."""
    for call in calls:
        call()
    seen: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, seen, strict=True):
            begin = time.perf_counter()
            for _ in range(repeat):
                call()
            times.append((time.perf_counter() - begin) / repeat)
    return [median(times) for times in seen]


def _stream(nbytes: int) -> Callable[[], None]:
    """A copy that moves `nbytes` in all, with stores that bypass the cache."""
    half = max(nbytes // 2, 64)
    source, target = np.zeros(half, np.uint8), np.zeros(half, np.uint8)
    copy = isa.kernels().stream_copy
    return lambda: copy(target.ctypes.data, source.ctypes.data, half)


def _peer(threads: int) -> Any:
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return None
    torch.set_num_threads(threads)
    return torch


# How PyTorch spells the same call, into an output.
TORCH: dict[str, Callable[[Any, list[Any], Any], Callable[[], Any]]] = {
    "leaky_relu": lambda ops, a, out: lambda: ops.leaky_relu.out(a[0], 0.01, out=out),
    "elu_backward": lambda ops, a, out: (
        lambda: ops.elu_backward.grad_input(a[0], 1.0, 1.0, 1.0, False, a[1], grad_input=out)
    ),
    "hardshrink_backward": lambda ops, a, out: (
        lambda: ops.hardshrink_backward.grad_input(a[0], a[1], 0.5, grad_input=out)
    ),
    "logit_backward": lambda ops, a, out: (
        lambda: ops.logit_backward.grad_input(a[0], a[1], None, grad_input=out)
    ),
    "gelu_backward": lambda ops, a, out: (
        lambda: ops.gelu_backward.grad_input(a[0], a[1], approximate="none", grad_input=out)
    ),
}


def _torch_call(
    torch: Any, operator: Operator, operands: list[np.ndarray], dtype: str
) -> Callable[[], Any]:
    kind = getattr(torch, dtype)
    tensors = [torch.from_numpy(a.astype(np.float32)).to(kind) for a in operands]
    return TORCH[operator.name](torch.ops.aten, tensors, torch.empty_like(tensors[0]))
