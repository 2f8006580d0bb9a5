"""Compare functions of one argument on all 2^32 float32 numbers with their forms in double.

    python tools/exhaustive.py exp gelu          these formulas, on each instruction set that was built
    python tools/exhaustive.py --isa v4          all of them, on one
    python tools/exhaustive.py --sample 65536    every so-manieth number: what the tests run
    python tools/exhaustive.py exp --write       with their rows in docs/numbers.md

Forms in double are compared with 60 digits themselves, at random points and where float32 is farthest off. The
comparison is a function in C. Numbers go through in chunks that stay in cache, and the form in double is computed once
for all instruction sets: a formula takes 8 to 190 s of CPU for two of them.
"""

from __future__ import annotations

import argparse
import ctypes
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
ALL, CHUNK = 2**32, 2**15  # operands and results of a chunk stay in the second-level cache
# What a form in double may be off, in units of float32: some are rounded to odd beside 0, where float64 is not taken.
DOUBLE_OFF = 0.004
COMPARISON = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
/* Float32 numbers by their bits, from `begin` on, every `step`-th, in both types. */
void numbers(uint32_t begin, uint32_t step, long n, float *x, double *wide) {
    for (long i = 0; i < n; i++) {
        uint32_t bits = begin + (uint32_t)i * step;
        memcpy(&x[i], &bits, 4);
        wide[i] = x[i];
    }
}
/* The bits of the distance of r from the exact d in units in the last place of a float; they are in its order. */
static int64_t distance(float r, double d) {
    int64_t bits;
    double size = fabs(d), power, off;
    memcpy(&bits, &size, 8);
    bits &= 0x7ff0000000000000ll;
    memcpy(&power, &bits, 8);
    power = power < 0x1p-126 ? 0x1p-126 : power;
    off = fabs(r - d) * 0x1p23 / power;
    off = (float)d == r && off > 0.5 ? 0.5 : off; /* beyond the largest float */
    off = r == (float)d && fabsf(r) > 0x1.fffffep127f ? 0 : off;
    off = d != d && r != r ? 0 : off;
    off = off != off ? 1e9 : off;
    memcpy(&bits, &off, 8);
    return bits;
}
/* The largest distance, and where it is if that is farther than `known`. */
double farthest(const float *r, const double *d, long n, double known, long *place) {
    int64_t most = 0, off;
    double worst;
    for (long i = 0; i < n; i++) {
        off = distance(r[i], d[i]);
        most = off > most ? off : most;
    }
    memcpy(&worst, &most, 8);
    if (worst <= known) return worst;
    for (*place = 0; distance(r[*place], d[*place]) != most;) ++*place;
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
def comparison() -> ctypes.CDLL:
    """The functions in C, compiled for this machine."""
    folder = tempfile.mkdtemp()
    source, library = Path(folder, "compare.c"), Path(folder, "compare.so")
    source.write_text(COMPARISON)
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    subprocess.run([*compiler, *flags, str(source), "-o", str(library)], check=True)
    found = ctypes.CDLL(str(library))
    found.farthest.restype = ctypes.c_double
    return found


class Kernel:
    """A formula's kernel of one dtype, for one instruction set."""

    def __init__(self, level: str, formula: str, dtype: str):
        self.library = isa.kernels(level)
        self.numbers = tuple(np.float32(NUMBERS.get(formula, ())).tolist())  # as plans give them
        self.ref = self.library.compute_kernel(formula, (dtype,), dtype)

    def run(self, x: np.ndarray, out: np.ndarray) -> None:
        given, made = (x.ctypes.data, 0, x.itemsize), (out.ctypes.data, 0, out.itemsize)
        self.library.run(self.ref, [given], made, 1, x.size, self.numbers)


def farthest(r: np.ndarray, exact: np.ndarray, x: np.ndarray, known: Worst) -> Worst:
    place = ctypes.c_long(0)
    pointers = r.ctypes.data_as(ctypes.c_void_p), exact.ctypes.data_as(ctypes.c_void_p)
    size, most = ctypes.c_long(r.size), ctypes.c_double(known.off)
    off = comparison().farthest(*pointers, size, most, ctypes.byref(place))
    return Worst(off, float(x[place.value])) if off > known.off else known


def chunks(step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All float32 numbers, or every `step`-th, a chunk at a time, and the same as double."""
    count = ALL // step
    x, wide = np.empty(min(CHUNK, count), np.float32), np.empty(min(CHUNK, count))
    pointers = x.ctypes.data_as(ctypes.c_void_p), wide.ctypes.data_as(ctypes.c_void_p)
    for begin in range(0, count, CHUNK):
        size = min(CHUNK, count - begin)
        first = ctypes.c_uint32(begin * step)
        comparison().numbers(first, step, ctypes.c_long(size), *pointers)
        yield x[:size], wide[:size]


def worst_of(levels: Sequence[str], formula: str, step: int = 1) -> dict[str, Worst]:
    """The float32 results of each instruction set that are farthest from the form in double.

    That is computed once, by the one whose vectors are longest.
    """
    double = Kernel(max(levels), formula, "float64")
    kernels = {level: Kernel(level, formula, "float32") for level in levels}
    found = dict.fromkeys(levels, Worst(-1.0, 0.0))
    exact, results = np.empty(CHUNK), np.empty(CHUNK, np.float32)
    for x, wide in chunks(step):
        double.run(wide, exact[: x.size])
        for level, kernel in kernels.items():
            kernel.run(x, results[: x.size])
            found[level] = farthest(results[: x.size], exact, x, found[level])
    return found


def double_is_off(level: str, formula: str, points: Sequence[float]) -> float | None:
    """How far the form in double is from the exact value, in units of float32; None: no reference."""
    exact = EXACT.get(formula) or (
        (lambda x: digits(formula, x)) if formula in WITHOUT_DIGITS else None
    )
    if exact is None:
        return None
    runner, worst = Kernel(level, formula, "float64"), 0.0
    x = np.float32(points)
    wide = x.astype(np.float64)
    double = np.empty_like(wide)
    runner.run(wide, double)
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
    end = begin
    while text[end] == "|":
        end = text.index("\n", end) + 1
    old = {line.split(" | ")[0].removeprefix("| "): line for line in text[begin:end].splitlines()}
    merged = old | rows
    lines = "".join(f"{merged[name]}\n" for name in sorted(merged))
    PAGE.write_text(text[:begin] + lines + text[end:], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("formulas", nargs="*")
    parser.add_argument("--isa", nargs="+", default=isa.available(), choices=isa.available())
    parser.add_argument("--sample", type=int, default=1, metavar="STEP")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows, failed = {}, []
    for formula in given.formulas or formulas():
        begin = time.process_time()
        found = worst_of(given.isa, formula, given.sample)
        points = [*random_points(), *(one.at for one in found.values())]
        double = double_is_off(given.isa[-1], formula, points)
        rows[formula] = row(formula, found)
        checked = "" if double is None else f"; double {double:.1e} off"
        print(f"{rows[formula]}  {time.process_time() - begin:.0f} s{checked}", flush=True)
        if max(one.off for one in found.values()) > 1 or (double or 0) > DOUBLE_OFF:
            failed.append(formula)
    if given.write:
        write(rows)
    if failed:
        print("farther off than a unit in the last place:", ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
