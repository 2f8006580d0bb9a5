"""Run a model in ONNX on arrays of files, with times and the peak of memory."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.acl.arguments import did_you_mean, shown
from aclnn.acl.errors import invalid
from aclnn.cli.show import progress
from aclnn.cli.values import natural


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a file in ONNX")
    add_inputs(parser)
    parser.add_argument(
        "--output", action="append", default=[], metavar="NAME=FILE.npy",
        help="write an output into a file",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=natural, default=1, metavar="N", help="times to run it (default 1)"
    )
    parser.add_argument("--threads", type=natural, default=None, help="threads that it may use")
    parser.add_argument("--report", action="store_true", help="print what computes each node")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy",
        help="an input from a file; others are made up where their shapes are known",
    )  # fmt: skip
    parser.add_argument(
        "--model-dim", action="append", default=[], metavar="NAME=SIZE",
        help="the size of a dimension that has a name, of inputs that are made up",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from aclnn.onnx.reading import from_onnx  # which other commands do without

    outputs = pairs("--output", options.output)
    value = pairs("--input", options.input)
    begin = time.perf_counter()
    with progress(f"reading {options.model}"):
        model = from_onnx(options.model, threads=options.threads, fallback="allow")
    read = time.perf_counter() - begin
    unknown = [name for name in outputs if name not in model.outputs]
    if unknown:
        raise invalid(
            f"{model.name} has no output {shown(unknown[0])}; those there are: "
            f"{', '.join(model.outputs)}{did_you_mean(unknown[0], model.outputs)}"
        )
    arrays = arrays_for(model, value, options.model_dim)
    times = []
    with progress(f"running {model.name}"):
        for _ in range(max(options.repeat, 1)):
            begin = time.perf_counter()
            made = model.run(arrays)
            times.append(time.perf_counter() - begin)
    results = made if isinstance(made, tuple) else (made,)
    for name, one in zip(model.outputs, results, strict=True):
        print(f"{name}: {one.dtype}{list(one.shape)}")
        if name in outputs:
            np.save(outputs[name], one)
    later = ""
    if times[1:]:
        later = f", then {np.median(times[1:]) * 1e3:.3g} ms (median of {len(times) - 1})"
    print(f"read in {read:.3g} s, first run {times[0] * 1e3:.3g} ms{later}{_peak()}")
    if options.report:
        print(model.report())
    return 0


def _peak() -> str:
    """The most memory that the process has had, where the system says so."""
    try:
        import resource
    except ImportError:
        return ""
    unit = 1 if sys.platform == "darwin" else 1024
    return f", peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20:.0f} MiB"


def pairs(option: str, arguments: Sequence[str]) -> dict[str, str]:
    """Names and what they are given, of NAME=VALUE."""
    found: dict[str, str] = {}
    for one in arguments:
        name, sign, value = one.rpartition("=")
        if not sign or not name or not value:
            raise invalid(f"{option} is {shown(one)}, must be NAME=VALUE")
        if name in found:
            raise invalid(f"{option} {name} is given twice")
        found[name] = value
    return found


def arrays_for(model: Any, arguments: dict[str, str], dims: Sequence[str]) -> dict[str, np.ndarray]:
    """The inputs of a model: those in files, and others made up of what the model declares."""
    unknown = [name for name in arguments if name not in model.inputs]
    if unknown:
        raise invalid(
            f"{model.name} has no input {shown(unknown[0])}; those there are: "
            f"{', '.join(model.inputs)}{did_you_mean(unknown[0], model.inputs)}"
        )
    sizes: dict[str, int] = {}
    for name, text in pairs("--model-dim", dims).items():
        if not text.isdecimal():
            raise invalid(f"--model-dim {name} is {shown(text)}, must be a size")
        sizes[name] = int(text)
    arrays = {name: _loaded(path) for name, path in arguments.items()}
    for name, (_, shape) in model.inputs.items():
        if name in arrays and shape is not None and len(shape) == arrays[name].ndim:
            pairs_of_sizes = zip(shape, arrays[name].shape, strict=True)
            sizes.update({one: size for one, size in pairs_of_sizes if isinstance(one, str)})
    rng = np.random.default_rng(0)
    for name, (dtype, shape) in model.inputs.items():
        if name in arrays or name in model.optional_inputs:
            continue
        lacking = [one for one in shape or () if isinstance(one, str) and one not in sizes]
        if shape is None or dtype is None or dtype.kind == "O" or lacking:
            ways = f" or --model-dim {lacking[0]}=SIZE" if lacking else ""
            raise invalid(f"{name} is needed: give --input {name}=FILE.npy{ways}")
        size = [sizes[one] if isinstance(one, str) else one for one in shape]
        made = rng.standard_normal(size) if dtype.kind not in "iub" else np.ones(size)
        arrays[name] = np.asarray(made).astype(dtype)
    return arrays


def _loaded(path: str) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise invalid(f"{Path(path)} is no .npy file: {error}") from None
    if not isinstance(found, np.ndarray):
        raise invalid(f"{Path(path)} has several arrays, must be a .npy file")
    return found
