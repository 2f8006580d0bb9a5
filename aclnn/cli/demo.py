"""Run six functions, of every family of operators, through both phases, and check every result.

The generated data mixes dtypes, broadcasts and strides; results are compared with float64 references that
share no code with the kernels. For one operator the executor's graph, its workspace plan and its
timings are shown.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np

import aclnn
from aclnn.acl import socs
from aclnn.acl.errors import invalid
from aclnn.api import c_shaped
from aclnn.cli.ops import dtypes_on
from aclnn.cli.values import natural
from aclnn.operators import ENTRIES, Entry

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class Case:
    """One call of the demonstration.

    `call` are the C-shaped function's arguments with arrays and numbers in place of tensors and
    scalars.
    """

    function: str
    what: str
    call: tuple[Any, ...]

    @property
    def entry(self) -> Entry:
        return ENTRIES[self.function][1]

    @property
    def out(self) -> np.ndarray:
        (out,) = (value for kind, value in self._by_kind() if kind in ("output", "inout"))
        return out

    def expected(self) -> np.ndarray:
        """The result in float64, of inputs that the call has not changed yet."""
        arguments = (_widened(value) for kind, value in self._by_kind() if kind != "output")
        return FORMULAS[self.function](*arguments)

    def _by_kind(self) -> Iterator[tuple[str, Any]]:
        kinds = (parameter.kind for parameter in self.entry.parameters)
        return zip(kinds, self.call, strict=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case; the time is that of a first call, planning included."""

    function: str
    what: str
    elements: int
    workspace: int
    microseconds: float
    max_ulp: float
    passed: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--seed", type=natural, default=0, help="of the generated data (default 0)")


def run(options: argparse.Namespace) -> int:
    outcomes = [run_case(case) for case in cases_here(np.random.default_rng(options.seed))]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=2))
        return 1 if failed else 0
    _print_table(outcomes)
    if len(outcomes) < len(FORMULAS):
        print(f"\n{aclnn.get_soc_version()} lacks the others")
    _show_one()
    if failed:
        print(f"{len(failed)} of {len(outcomes)} results are wrong", file=sys.stderr)
        return 1
    print(f"\nall {len(outcomes)} results agree with the reference")
    return 0


def _print_table(outcomes: Sequence[Outcome]) -> None:
    print(
        f"aclnn-cpu {aclnn.__version__}: {len(outcomes)} functions through both phases, checked "
        "against float64\n"
    )
    print(
        f"{'function':23} {'operands':39} {'elements':>9} {'workspace':>9} {'first µs':>8} {'ULP':>4}"
    )
    for o in outcomes:
        mark = "ok" if o.passed else "WRONG"
        print(
            f"{o.function:23} {o.what:39} {o.elements:>9,} {o.workspace:>9,} "
            f"{o.microseconds:>8.0f} {o.max_ulp:>4.2f} {mark}"
        )
    print(
        "\nfirst µs: both phases of a first call, planning included; aclnn bench measures the others\n"
        "ULP: the largest error, in units in the last place"
    )


def cases_here(rng: np.random.Generator) -> list[Case]:
    """The cases whose operators the product has."""
    soc = aclnn.get_soc_version()
    found = [case for case in cases(rng) if dtypes_on(ENTRIES[case.function][0], soc)]
    if not found:
        raise invalid(f"{soc} has none of these operators: choose another SoC version")
    return found


def short_float() -> np.dtype:
    """bfloat16, on products that have it."""
    return BFLOAT16 if socs.supports_bfloat16(aclnn.get_soc_version()) else np.dtype(np.float16)


def cases(rng: np.random.Generator) -> list[Case]:
    """Six functions on operands of mixed dtypes, broadcast and strided."""
    short = short_float()

    def normal(*shape: int, dtype: Any = np.float32, spread: float = 2.0) -> np.ndarray:
        return (rng.standard_normal(shape) * spread).astype(dtype)

    def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
        return np.zeros(shape, dtype)

    probabilities = rng.uniform(0.01, 0.99, (64, 768)).astype(np.float32)
    return [
        Case(
            "aclnnEluBackward", f"{short}[512,768], result float64",
            (normal(512, 768, dtype=short), 1.5, 1.0, 1.0, False,
             normal(512, 768, dtype=short), zeros(512, 768, dtype=np.float64)),
        ),
        Case(
            "aclnnLeakyRelu", "float16[256,1024] read transposed",
            (normal(1024, 256, dtype=np.float16).T, 0.01, zeros(256, 1024, dtype=np.float16)),
        ),
        Case(
            "aclnnInplaceLeakyRelu", "float32[100000], every second element",
            (normal(200_000)[::2], 0.1),
        ),
        Case(
            "aclnnHardshrinkBackward", "float16[32,1,256], float32[128,1]",
            (normal(32, 1, 256, dtype=np.float16), normal(128, 1), 0.5, zeros(32, 128, 256)),
        ),
        Case(
            "aclnnGeluBackward", "float16[64,1,1024], float32[1,128,1024]",
            (normal(64, 1, 1024, dtype=np.float16), normal(1, 128, 1024), zeros(64, 128, 1024)),
        ),
        Case(
            "aclnnLogitGrad", "float32[64,768], transposed output",
            (probabilities, normal(64, 768), -1.0, zeros(768, 64).T),
        ),
    ]  # fmt: skip


def _leaky_relu(x: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, x, x * slope)


def _gelu_backward(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return g * (0.5 * _erfc(-x / math.sqrt(2)) + x * density)


# What the functions compute, of their arguments but for the output.
FORMULAS: dict[str, Callable[..., np.ndarray]] = {
    "aclnnEluBackward": lambda g, alpha, scale, input_scale, _is_result, x: g * np.where(
        x <= 0, input_scale * alpha * scale * np.exp(input_scale * np.minimum(x, 0)), scale
    ),
    "aclnnLeakyRelu": _leaky_relu,
    "aclnnInplaceLeakyRelu": _leaky_relu,
    "aclnnHardshrinkBackward": lambda g, x, lambd: np.where(abs(x) > lambd, g, 0),
    "aclnnGeluBackward": _gelu_backward,
    "aclnnLogitGrad": lambda x, dy, _eps: dy / (x * (1 - x)),
}  # fmt: skip


def run_case(case: Case) -> Outcome:
    """Both phases of one call, its time, and how far its result is from the reference."""
    out, expected = case.out, case.expected()
    arguments = c_shaped.arguments(case.entry, case.call)
    phase_one = getattr(aclnn, f"{case.function}GetWorkspaceSize")
    begin = time.perf_counter()
    size, executor, status = phase_one(*arguments)
    c_shaped.check(status)
    workspace = np.empty(size, np.uint8) if size else None
    status = getattr(aclnn, case.function)(workspace, size, executor, None)
    elapsed = time.perf_counter() - begin
    c_shaped.check(status)
    dtype = _rounded_to(case)
    ulp = max_ulp(out, expected, dtype)
    passed = ulp <= 1.0 and np.array_equal(out, out.astype(dtype))
    return Outcome(case.function, case.what, out.size, size, elapsed * 1e6, ulp, passed)


def _rounded_to(case: Case) -> np.dtype:
    """The dtype that has the result: a cast to a wider output comes after the rounding."""
    return case.call[0].dtype if case.out.dtype == np.float64 else case.out.dtype


def _widened(value: Any) -> Any:
    """An argument as it reaches the kernels (scalars are float32), in float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64)
    return float(np.float32(value)) if isinstance(value, float) else value


def max_ulp(actual: np.ndarray, exact: np.ndarray, dtype: np.dtype) -> float:
    """The largest distance to the exact value, in units of the last place of `dtype`.

    The exact value is not rounded for it: `astype` goes from float64 to bfloat16 by way of float32,
    and what is rounded twice may be off by a whole unit.
    """
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        exponent = np.frexp(exact)[1] - 1
    index = np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant)
    return float(np.max(np.abs(actual.astype(np.float64) - exact) / index))


def _show_one() -> None:
    rng = np.random.default_rng(1)
    short = short_float()
    x = rng.standard_normal((256, 1024)).astype(short).T
    g = rng.standard_normal((1024, 256)).astype(short)
    out = np.empty((1024, 256), np.float32)
    call = f"elu_backward, {short} and a transposed input, float32 output"
    ex = aclnn.executor("elu_backward", g, x, out=out)
    print(f"\n{call}, as scheduled\n\n{ex.graph.to_text()}\n\n{ex.plan.to_text()}\n")
    print(ex.profile(repeat=20).to_text())
    kept = aclnn.executor("elu_backward", g, x, out=out, materialize=True)
    print(f"\nthe same with every intermediate in the workspace\n\n{kept.plan.to_text()}")
    print("\naclnn inspect gelu --input f32[64] --view passes shows what passes make of a graph")
