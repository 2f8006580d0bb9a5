"""Measure models from ONNX files beside ONNX Runtime.

    python tools/measure_onnx.py [NAME ...] [--threads N] [--rounds N] [--folder DIR] [--json FILE]

Models are made with random weights (`onnx_models.py`) and kept in a folder. Columns are the time of a call in
milliseconds, ONNX Runtime's time over ours (medians, and least times, of rounds in which both take turns in one process),
the same ratio of the time from file to first result and of the peak memory, each in a process of its own. With one
thread times are the processor's, which other processes disturb less.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

Call = Callable[[], Any]
FAR = 1e-3  # of the largest number, between results; of integers, which round differently, ten times as much


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", default="build/onnx")
    parser.add_argument("--json", help="append rows to a file")
    parser.add_argument(
        "--part", choices=("make", "turns", "ours", "theirs"), help="what one process does"
    )
    return parser.parse_args()


def ours(path: Path, given: dict[str, Any], threads: int) -> Call:
    import aclnn

    aclnn.set_num_threads(threads)
    model = aclnn.from_onnx(path)
    return lambda: (
        model(**given) if all(key.isidentifier() for key in given) else model(*given.values())
    )


def theirs(path: Path, given: dict[str, Any], threads: int) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return lambda: session.run(None, given)


def far(one: Any, other: Any) -> float:
    """The largest difference beside the largest number."""
    import numpy as np

    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if a.shape != b.shape:
        return float("inf")
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) if b.size else 0.0


def turns(path: Path, given: dict[str, Any], args: argparse.Namespace) -> dict[str, float]:
    """Times of calls that take turns, after their results were compared."""
    clock = time.process_time if args.threads == 1 else time.perf_counter
    calls = [ours(path, given, args.threads), theirs(path, given, args.threads)]
    first, second = (call() for call in calls)
    first = list(first) if isinstance(first, (tuple, list)) else [first]
    differ = max(far(a, b) for a, b in zip(first, second, strict=True))
    found: list[list[float]] = [[], []]
    for _ in range(args.rounds):
        for call, times in zip(calls, found, strict=True):
            # The other one's threads wait for further work on the CPUs, for some milliseconds.
            time.sleep(0.05 if args.threads > 1 else 0)
            begin = clock()
            call()
            times.append(clock() - begin)
    return {
        "ms": median(found[0]) * 1e3, "ratio": median(found[1]) / median(found[0]),
        "least": min(found[1]) / min(found[0]), "differ": differ,
    }  # fmt: skip


def alone(path: Path, given: dict[str, Any], args: argparse.Namespace) -> dict[str, float]:
    """The time from file to first result, and the peak of this process."""
    clock = time.process_time if args.threads == 1 else time.perf_counter
    importlib.import_module("aclnn.onnx" if args.part == "ours" else "onnxruntime")
    begin = clock()
    make = ours if args.part == "ours" else theirs
    make(path, given, args.threads)()
    return {"first": clock() - begin, "peak": peak()}


def peak() -> int:
    """The most kilobytes that this process had, without those of the process that it was forked from."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise OSError("the peak of a process is read from /proc")


def run_part(args: argparse.Namespace) -> None:
    (name,) = args.names
    path = path_of(name, args)
    if args.part == "make":
        import onnx_models
        import torch

        torch.manual_seed(0)
        content, given = onnx_models.MODELS[name]()
        path.write_bytes(content)
        path.with_suffix(".inputs").write_bytes(pickle.dumps(given))
        return
    given = pickle.loads(path.with_suffix(".inputs").read_bytes())
    print(
        json.dumps(turns(path, given, args) if args.part == "turns" else alone(path, given, args))
    )


def path_of(name: str, args: argparse.Namespace) -> Path:
    return Path(args.folder, name.replace("/", "-").replace(" ", "_").replace(",", "") + ".onnx")


def asked(name: str, part: str, args: argparse.Namespace) -> dict[str, float]:
    """What a process of its own finds out."""
    threads = str(args.threads)
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    command = [sys.executable, __file__, name, "--part", part, "--threads", threads]
    command += ["--rounds", str(args.rounds), "--folder", args.folder]
    done = subprocess.run(command, env=os.environ | limits, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}, {part}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.strip().splitlines()[-1]) if part != "make" else {}


def main() -> None:
    args = parsed()
    if args.part:
        run_part(args)
        return
    import onnx_models

    Path(args.folder).mkdir(parents=True, exist_ok=True)
    rows = []
    print(
        "| model | ms | ratio | least times | first result | peak |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name in args.names or onnx_models.MODELS:
        try:
            if not path_of(name, args).with_suffix(".inputs").exists():
                asked(name, "make", args)
            row, one, other = (asked(name, part, args) for part in ("turns", "ours", "theirs"))
        except RuntimeError as error:
            print(f"| {name} | {error} |", flush=True)
            continue
        row |= {"first": other["first"] / one["first"], "peak": other["peak"] / one["peak"]}
        cells = [f"{row[key]:.2f}" for key in ("ms", "ratio", "least", "first", "peak")]
        note = f" (results differ by {row['differ']:.0e})" if row["differ"] > FAR else ""
        print(f"| {name}{note} | {' | '.join(cells)} |", flush=True)
        rows.append(row)
        if args.json:
            with open(args.json, "a") as file:
                file.write(json.dumps({"model": name, "threads": args.threads, **row}) + "\n")
    if rows:
        means = [
            geometric_mean([row[key] for row in rows])
            for key in ("ratio", "least", "first", "peak")
        ]
        print(f"| geometric mean | | {' | '.join(f'{one:.2f}' for one in means)} |")


if __name__ == "__main__":
    main()
