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
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np

import aclnn
from aclnn.cli.values import natural
from aclnn.operators import REGISTRY

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class Case:
    """One call of the demonstration.

    `call` are the C-shaped function's arguments with arrays and numbers in place of tensors and
    scalars; `expected` the float64 result.
    """

    function: str
    what: str
    call: tuple[Any, ...]
    output: int
    expected: Callable[..., np.ndarray]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case; the time is that of a first call, which has to be planned."""

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
    outcomes = [run_case(case) for case in cases(np.random.default_rng(options.seed))]
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=2))
        return 1 if failed else 0
    print(
        f"aclnn-cpu {aclnn.__version__}: {len(outcomes)} functions, of every family of the "
        f"{len(REGISTRY)} operators, through both phases, checked against float64\n"
    )
    print(
        f"{'function':23} {'operands':48} {'elements':>9} {'workspace':>9} {'first µs':>9} {'max ULP':>8}"
    )
    for o in outcomes:
        mark = "ok" if o.passed else "WRONG"
        print(
            f"{o.function:23} {o.what:48} {o.elements:>9,} {o.workspace:>9,} "
            f"{o.microseconds:>9.1f} {o.max_ulp:>8.3f} {mark}"
        )
    print(
        "\nfirst µs: both phases of a first call, planning included; aclnn bench measures the others"
    )
    _show_one()
    if failed:
        print(f"{len(failed)} of {len(outcomes)} results are wrong", file=sys.stderr)
        return 1
    print(f"\nall {len(outcomes)} results agree with the reference")
    return 0


def cases(rng: np.random.Generator) -> list[Case]:
    """Six functions on operands of mixed dtypes, broadcast and strided."""

    def normal(*shape: int, dtype: Any = np.float32, spread: float = 2.0) -> np.ndarray:
        return (rng.standard_normal(shape) * spread).astype(dtype)

    probabilities = rng.uniform(0.01, 0.99, (64, 768)).astype(np.float32)
    strided_out = np.zeros((768, 64), np.float32).T
    return [
        Case(
            "aclnnEluBackward",
            "bfloat16[512,768], result float64",
            (normal(512, 768, dtype=BFLOAT16), 1.5, 1.0, 1.0, False,
             normal(512, 768, dtype=BFLOAT16), np.zeros((512, 768))),
            6,
            lambda g, a, s, k, _is_result, x: np.where(
                x <= 0, g * k * a * s * np.exp(k * np.minimum(x, 0)), g * s
            ),
        ),
        Case(
            "aclnnLeakyRelu",
            "float16[256,1024] read transposed",
            (normal(1024, 256, dtype=np.float16).T, 0.01, np.zeros((256, 1024), np.float16)),
            2,
            lambda x, slope: np.where(x > 0, x, x * slope),
        ),
        Case(
            "aclnnInplaceLeakyRelu",
            "float32[100000], every second element",
            (normal(200_000)[::2], 0.1),
            0,
            lambda x, slope: np.where(x > 0, x, x * slope),
        ),
        Case(
            "aclnnHardshrinkBackward",
            "float16[32,1,256] with float32[128,1]",
            (normal(32, 1, 256, dtype=np.float16), normal(128, 1), 0.5,
             np.zeros((32, 128, 256), np.float32)),
            3,
            lambda g, x, lambd: np.where((x > lambd) | (x < -lambd), g, 0),
        ),
        Case(
            "aclnnGeluBackward",
            "float16[64,1,1024] with float32[1,128,1024]",
            (normal(64, 1, 1024, dtype=np.float16), normal(1, 128, 1024),
             np.zeros((64, 128, 1024), np.float32)),
            2,
            lambda g, x: g * (0.5 * _erfc(-x / math.sqrt(2))
                              + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
        ),
        Case(
            "aclnnLogitGrad",
            "float32[64,768] into a transposed output",
            (probabilities, normal(64, 768), -1.0, strided_out),
            3,
            lambda x, dy, _eps: dy / (x * (1 - x)),
        ),
    ]  # fmt: skip


def run_case(case: Case) -> Outcome:
    """Both phases of one call, its time, and how far its result is from the reference."""
    out = case.call[case.output]
    wide = [
        a.astype(np.float64) if isinstance(a, np.ndarray) else _as_float32(a)
        for index, a in enumerate(case.call)
        if index != case.output or case.output == 0
    ]
    expected = case.expected(*wide)
    arguments = _c_arguments(case)
    phase_one = getattr(aclnn, f"{case.function}GetWorkspaceSize")
    begin = time.perf_counter()
    size, executor, status = phase_one(*arguments)
    _expect_success(case.function, status)
    workspace = np.empty(size, np.uint8) if size else None
    status = getattr(aclnn, case.function)(workspace, size, executor, None)
    elapsed = time.perf_counter() - begin
    _expect_success(case.function, status)
    dtype = _rounded_to(case)
    ulp = max_ulp(out, expected, dtype)
    passed = ulp <= 1.0 and np.array_equal(out, out.astype(dtype))
    return Outcome(case.function, case.what, out.size, size, elapsed * 1e6, ulp, passed)


def _rounded_to(case: Case) -> np.dtype:
    """The dtype that has the result: a cast to a wider output comes after the rounding."""
    first, out = case.call[0], case.call[case.output]
    return first.dtype if out.dtype == np.float64 else out.dtype


def _c_arguments(case: Case) -> list[Any]:
    from aclnn.operators import ENTRIES

    _, entry = ENTRIES[case.function]
    made = []
    for parameter, value in zip(entry.parameters, case.call, strict=True):
        if parameter.is_tensor:
            made.append(tensor_of(value))
        elif parameter.kind == "scalar":
            made.append(aclnn.aclCreateScalar(value, aclnn.ACL_FLOAT))
        else:
            made.append(value)
    return made


def tensor_of(array: np.ndarray) -> Any:
    """An aclTensor that looks at a NumPy array's memory."""
    from aclnn import dtypes

    memory = array if array.base is None else array.base
    offset = (array.ctypes.data - memory.ctypes.data) // array.itemsize
    strides = [stride // array.itemsize for stride in array.strides]
    made = aclnn.aclCreateTensor(
        array.shape, dtypes.of_numpy(array.dtype), strides, offset, aclnn.ACL_FORMAT_ND,
        memory.shape, memory,
    )  # fmt: skip
    if made is None:
        first, *_ = aclnn.aclGetRecentErrMsg().splitlines()
        raise aclnn.AclnnError(aclnn.ACLNN_ERR_PARAM_INVALID, first)
    return made


def _as_float32(value: Any) -> Any:
    return float(np.float32(value)) if isinstance(value, float) else value


def _expect_success(function: str, status: int) -> None:
    if status != aclnn.ACLNN_SUCCESS:
        first, *_ = (
            aclnn.aclGetRecentErrMsg().splitlines()
        )  # what follows explains a program's call
        raise aclnn.AclnnError(status, first)


def max_ulp(actual: np.ndarray, exact: np.ndarray, dtype: np.dtype) -> float:
    """The largest distance to the exact value, in units of the last place of `dtype`.

    The exact value is not rounded for it: `astype` goes from float64 to bfloat16 by way of float32,
    and what is rounded twice may be off by a whole unit.
    """
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        exponent = np.frexp(exact)[1] - 1
    place = np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant)
    return float(np.max(np.abs(actual.astype(np.float64) - exact) / place))


def _show_one() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((256, 1024)).astype(BFLOAT16).T
    g = rng.standard_normal((1024, 256)).astype(BFLOAT16)
    out = np.empty((1024, 256), np.float32)
    for title, options in (
        ("as scheduled", {}),
        ("with every intermediate kept", {"materialize": True}),
    ):
        ex = aclnn.executor("elu_backward", g, x, out=out, **options)
        print(f"\nelu_backward, bfloat16 and a transposed input, float32 output, {title}\n")
        if not options:
            print("graph as built\n\n" + ex.graph_as_built.to_text() + "\n\ngraph as scheduled\n")
        print(ex.graph.to_text())
        print("\nworkspace plan\n\n" + ex.plan.to_text())
        print("\ntimings\n\n" + ex.profile(repeat=20).to_text())
