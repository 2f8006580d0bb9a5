"""Compare functions of one argument on all 2^32 float32 numbers with their forms in double.

    python tools/exhaustive.py exp gelu          these formulas, on each instruction set that was built
    python tools/exhaustive.py --isa v4          all of them, on one
    python tools/exhaustive.py --sample 65536    every so-manieth number: what the tests run
    python tools/exhaustive.py exp --write       with their rows in docs/numbers.md

Forms in double are compared with 60 digits themselves, at random points and where float32 is farthest off. The
comparison is a function in C, which takes a nanosecond for a number; a formula takes 10 to 60 s.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np

from aclnn import isa

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import oracle  # noqa: E402

PAGE = ROOT / "docs" / "numbers.md"
HEADER = "| formula | numbers | v4 | v3 | generic | farthest off at |\n| --- | --- | --- | --- | --- | --- |"
ALL, CHUNK = 2**32, 2**20
# What a form in double may be off, in units of float32: some are rounded to odd beside 0, where float64 is not taken.
DOUBLE_OFF = 0.004
COMPARISON = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
/* The largest distance of r from the exact d in units in the last place of a float, and where it is. */
double farthest(const float *r, const double *d, long n, long *place) {
    double worst = -1;
    for (long i = 0; i < n; i++) {
        uint64_t bits;
        double size = fabs(d[i]), power, off;
        memcpy(&bits, &size, 8);
        bits &= 0x7ff0000000000000ull;
        memcpy(&power, &bits, 8);
        power = power < 0x1p-126 ? 0x1p-126 : power;
        off = fabs(r[i] - d[i]) * 0x1p23 / power;
        off = (float)d[i] == r[i] && off > 0.5 ? 0.5 : off; /* beyond the largest float */
        off = r[i] == (float)d[i] && isinf(r[i]) ? 0 : off;
        off = isnan(d[i]) && isnan(r[i]) ? 0 : off;
        off = isnan(off) ? 1e9 : off;
        if (off > worst) worst = off, *place = i;
    }
    return worst;
}
"""
# Numbers of nodes, where formulas take some.
NUMBERS: dict[str, tuple[float, ...]] = {
    "adds": (0.3, 1.0), "subs": (0.3, 1.0), "rsubs": (0.3, 1.0), "muls": (0.3,), "divs": (0.3,), "clamp": (-0.5, 3.0),
    "threshold": (0.25, -2.0), "leaky_relu": (0.01,), "hardshrink": (0.5,), "softshrink": (0.5,), "shrink": (0.5, 0.25),
    "rrelu_with_noise": (0.125, 0.333), "elu": (1.0, 1.0, 1.0), "celu": (1.3,), "swish": (1.3,), "softplus": (1.3, 20.0),
    "logit": (-1.0,), "pows": (2.5,), "rpows": (1.5,),
}  # fmt: skip
# With many digits, where `tests/support/oracle.py` has no function of the same name and no options.
EXACT: dict[str, Callable[..., Any]] = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.mpf(2) ** x, "expm1": mpmath.expm1, "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2), "log10": mpmath.log10, "log1p": mpmath.log1p, "sin": mpmath.sin,
    "cos": mpmath.cos, "erf": mpmath.erf, "rsqrt": lambda x: 1 / mpmath.sqrt(x), "sqrt": mpmath.sqrt,
    "reciprocal": lambda x: 1 / x, "square": lambda x: x * x, "tanh": mpmath.tanh, "gelu_tanh": lambda x: digits("gelu", x, approximate="tanh"),
    "swish": lambda x, beta: digits("swish", x, beta=beta),
    "softplus": lambda x, beta, threshold: digits("softplus", x, beta=beta, threshold=threshold),
    "celu": lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x / alpha),
    "pows": lambda x, exponent: x**exponent, "rpows": lambda x, base: mpmath.mpf(base) ** x,
    "elu": lambda x, *_: x if x > 0 else mpmath.expm1(x), "logit": lambda x, eps: mpmath.log(x / (1 - x)),
}  # fmt: skip
WITHOUT_DIGITS = (
    "selu",
    "hardsigmoid",
    "mish",
    "silu",
    "sigmoid",
    "log_sigmoid",
    "gelu",
    "fast_gelu",
    "hardswish",
)


class Worst(NamedTuple):
    """The largest distance in units in the last place, and where it is."""

    off: float
    at: float


def digits(name: str, x: Any, **options: Any) -> Any:
    return oracle.JUDGES[name].formula(oracle.Digits, x, **options)


def built() -> list[str]:
    return [one for one in isa.available() if importlib.util.find_spec(f"aclnn._kernels_{one}")]


def formulas() -> list[str]:
    """Those of one argument whose results are real numbers in float32 and float64."""
    kernels = isa.kernels()
    found = []
    for name in kernels.formula_names():
        try:
            kernels.compute_kernel(name, ("float64",), "float64")
        except ValueError:
            continue
        found.append(name)
    return found


@cache
def comparison() -> Any:
    """The function in C, compiled for this machine."""
    folder = tempfile.mkdtemp()
    source, library = Path(folder, "compare.c"), Path(folder, "compare.so")
    source.write_text(COMPARISON)
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    subprocess.run([*compiler, *flags, str(source), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).farthest
    function.restype = ctypes.c_double
    return function


class Runner:
    """A formula's kernels for one instruction set, in float32 and in double."""

    def __init__(self, level: str, formula: str):
        self.kernels = importlib.import_module(f"aclnn._kernels_{level}")
        self.numbers = tuple(np.float32(NUMBERS.get(formula, ())).tolist())  # as plans give them
        self.single = self.kernels.compute_kernel(formula, ("float32",), "float32")
        self.double = self.kernels.compute_kernel(formula, ("float64",), "float64")

    def run(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wide = x.astype(np.float64)
        results = np.empty_like(x), np.empty_like(wide)
        for ref, given, out in zip((self.single, self.double), (x, wide), results, strict=True):
            place = (given.ctypes.data, 0, given.itemsize), (out.ctypes.data, 0, out.itemsize)
            self.kernels.run(ref, [place[0]], place[1], 1, x.size, self.numbers)
        return results

    def farthest(self, x: np.ndarray) -> Worst:
        single, double = self.run(x)
        place = ctypes.c_long(0)
        pointers = single.ctypes.data_as(ctypes.c_void_p), double.ctypes.data_as(ctypes.c_void_p)
        off = comparison()(*pointers, ctypes.c_long(x.size), ctypes.byref(place))
        return Worst(float(off), float(x[place.value]))


def chunks(step: int) -> Iterator[np.ndarray]:
    """All float32 numbers, or every `step`-th, a chunk at a time."""
    count = ALL // step
    for begin in range(0, count, CHUNK):
        numbers = np.arange(begin, min(begin + CHUNK, count), dtype=np.uint64) * np.uint64(step)
        yield numbers.astype(np.uint32).view(np.float32)


def worst_of(level: str, formula: str, step: int = 1) -> Worst:
    """The float32 result of a formula that is farthest from its form in double."""
    runner, worst = Runner(level, formula), Worst(-1.0, 0.0)
    for x in chunks(step):
        with np.errstate(all="ignore"):
            found = runner.farthest(x)
        worst = max(worst, found, key=lambda one: one.off)
    return worst


def double_is_off(level: str, formula: str, points: Sequence[float]) -> float | None:
    """How far the form in double is from the exact value, in units of float32; None: no reference."""
    exact = EXACT.get(formula) or (
        (lambda x: digits(formula, x)) if formula in WITHOUT_DIGITS else None
    )
    if exact is None:
        return None
    runner, worst = Runner(level, formula), 0.0
    x = np.float32(points)
    with np.errstate(all="ignore"):
        _, double = runner.run(x)
    with mpmath.workdps(60):
        for one, found in zip(x.tolist(), double.tolist(), strict=True):
            if not (np.isfinite(found) and np.isfinite(one)) or abs(found) > 3.4e38 or one == 0:
                continue
            wanted = exact(mpmath.mpf(one), *runner.numbers)
            unit = mpmath.mpf(2) ** (max(mpmath.frexp(mpmath.mpf(found))[1] - 1, -126) - 23)
            worst = max(worst, float(abs(mpmath.mpf(found) - wanted) / unit))
    return worst


def random_points(count: int = 300) -> list[float]:
    rng = np.random.default_rng(29)
    return [
        *(rng.normal(size=count) * 3),
        *(10.0 ** rng.uniform(-30, 30, count)),
        *(-(10.0 ** rng.uniform(-30, 30, count))),
    ]


def row(formula: str, found: dict[str, Worst]) -> str:
    levels = [f"{found[one].off:.4f}" if one in found else "" for one in ("v4", "v3", "generic")]
    farthest = max(found.values(), key=lambda one: one.off)
    numbers = ", ".join(map(str, NUMBERS.get(formula, ())))
    return f"| {formula} | {numbers} | {' | '.join(levels)} | {farthest.at:.9g} |"


def write(rows: dict[str, str]) -> None:
    """Put rows into the table of the page; those of other formulas stay."""
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index(HEADER) + len(HEADER) + 1
    end = text.index("\n\n", begin) + 1
    old = {line.split(" | ")[0].removeprefix("| "): line for line in text[begin:end].splitlines()}
    merged = old | rows
    lines = "".join(f"{merged[name]}\n" for name in sorted(merged))
    PAGE.write_text(text[:begin] + lines + text[end:], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("formulas", nargs="*")
    parser.add_argument("--isa", nargs="+", default=built(), choices=built())
    parser.add_argument("--sample", type=int, default=1, metavar="STEP")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows, failed = {}, []
    for formula in given.formulas or formulas():
        begin, found = time.perf_counter(), {}
        for level in given.isa:
            found[level] = worst_of(level, formula, given.sample)
        points = [*random_points(), *(one.at for one in found.values())]
        double = double_is_off(given.isa[-1], formula, points)
        rows[formula] = row(formula, found)
        checked = "" if double is None else f"; double {double:.1e} off"
        print(f"{rows[formula]}  {time.perf_counter() - begin:.0f} s{checked}", flush=True)
        if max(one.off for one in found.values()) > 1 or (double or 0) > DOUBLE_OFF:
            failed.append(formula)
    if given.write:
        write(rows)
    if failed:
        print("farther off than a unit in the last place:", ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
