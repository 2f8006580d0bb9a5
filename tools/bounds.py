"""Compute the bounds of errors that rounding tests rest on, from the operations of each formula.

    python tools/bounds.py            the table
    python tools/bounds.py --check    fail where a stated bound is less than the computed one, or needlessly looser

A formula is run on numbers that carry, beside the exact value, a bound of how far a float may be from it: every
operation adds half a unit in its last place (2^-24 of the result), and hands on what its operands were off. The
formulas are those of `aclnn/kernels/activations.pxd` themselves, whose text is Python but for types; the functions below
them, and formulas by hand (elu, logit and gradients), are written once more here, operation by operation as in
`simd/*.h`, with the coefficients and tables of these headers, whose distance from the function is computed with 40
digits. Arguments are all numbers of half precision, so that nothing lies between them, and floats of every magnitude.
Gradients are factors, of which any number is rounded alike: they are 1. The bound of GELU is none: it has no other
arguments than all halves, and the test suite computes each.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import mpmath
import numpy as np
from scipy import special

KERNELS = Path(__file__).parent.parent / "aclnn" / "kernels"
sys.path.insert(0, str(Path(__file__).parent))
from make_kernels import load_records  # noqa: E402

UNIT = 2.0**-24  # half a unit in the last place of a float, relative
PAIR_UNIT = 2.0**-45
LN2 = math.log(2)
GUARD = 1 + 2.0**-20  # for what the bounds themselves are rounded by


class Bounded:
    """A number and how far what stands for it may be from it; arrays of both."""

    def __init__(self, value: Any, off: Any = 0.0, unit: float = UNIT):
        self.value = np.asarray(value, float)
        self.off = np.broadcast_to(np.asarray(off, float), self.value.shape)
        self.unit = unit

    def rounded(self, value: Any, off: Any) -> Bounded:
        """The result of an operation: rounded once more."""
        return Bounded(value, (off + self.unit * (np.abs(value) + off)) * GUARD, self.unit)

    def exactly(self, value: Any) -> Bounded:
        return Bounded(value, 0.0, self.unit)

    def __add__(self, other: Bounded) -> Bounded:
        return self.rounded(self.value + other.value, self.off + other.off)

    def __sub__(self, other: Bounded) -> Bounded:
        return self + -other

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.off, self.unit)

    def __mul__(self, other: Bounded) -> Bounded:
        return self.rounded(*self.product(other))

    def product(self, other: Bounded) -> tuple[Any, Any]:
        off = np.abs(self.value) * other.off + np.abs(other.value) * self.off + self.off * other.off
        return self.value * other.value, off

    def times_plus(self, other: Bounded, addend: Bounded) -> Bounded:
        """A fused multiply-add."""
        value, off = self.product(other)
        return self.rounded(value + addend.value, off + addend.off)

    def apart(self, relative: Any, value: Any) -> Bounded:
        """`value`, of which so much, and what the argument was off where that is a summand, may be missing."""
        return Bounded(value, np.abs(value) * relative * GUARD, self.unit)

    def where(self, chosen: Any, other: Bounded) -> Bounded:
        off = np.where(chosen, self.off, other.off)
        return Bounded(np.where(chosen, self.value, other.value), off, self.unit)

    @property
    def relative(self) -> Any:
        with np.errstate(all="ignore"):
            return np.where(self.value == 0, 0.0, self.off / np.abs(self.value))


# --- Coefficients and tables of the headers -------------------------------------------------------


@cache
def text(name: str) -> str:
    return (KERNELS / name).read_text(encoding="utf-8")


FLOAT = r"-?0x1?\.?[0-9a-f.]*p[+-]?\d+f?|-?0x[01]\.?[0-9a-f]*p[+-]?\d+"


def floats(source: str) -> list[float]:
    return [
        float.fromhex(word.removesuffix("f"))
        for word in re.findall(r"-?0x[01][.0-9a-f]*p[+-]?\d+", source)
    ]


def body(header: str, function: str) -> str:
    """The text of a function."""
    found = re.search(rf"INLINED \w+ {function}\(.*?\n}}\n", text(header), re.DOTALL)
    assert found, f"{header} has no {function}"
    return found[0]


def arm(source: str, lanes: int) -> str:
    """What of a text counts with so many lanes."""
    parts = re.search(r"#if LANES == 16\n(.*?)#else\n(.*?)#endif", source, re.DOTALL)
    return source if not parts else parts[1 if lanes == 16 else 2]


@cache
def table(name: str) -> list[float]:
    found = re.search(
        rf"static const float {name}\[\d+\] = {{(.*?)}};", text("simd/tables.h"), re.DOTALL
    )
    assert found, name
    return floats(found[1])


@cache
def entries_of(name: str, steps: int) -> list[float]:
    """A table of 2^(j/steps), of bits or floats."""
    found = re.search(
        rf"static const (\w+) {name}\[\d+\] = {{(.*?)}};", text("simd/tables.h"), re.DOTALL
    )
    assert found, name
    if found[1] == "float":
        return floats(found[2])
    words = [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", found[2])]
    bits = [(word + j * (2**23 // steps)) % 2**32 for j, word in enumerate(words)]
    return [float(np.uint32(one).view(np.float32)) for one in bits]


@cache
def powers(name: str, steps: int) -> float:
    """How far its entries are from that, relative."""
    entries = entries_of(name, steps)
    return max(abs(entry / 2 ** (j / steps) - 1) for j, entry in enumerate(entries))


def misfit(
    polynomial: Callable[[Any], Any],
    function: Callable[[Any], Any],
    high: float,
    low: float | None = None,
) -> float:
    """The largest distance of two functions up to `high`: at 400 points, and half the way to the next ones."""
    low = -high if low is None else low
    with mpmath.workdps(40):
        step = (mpmath.mpf(high) - low) / 400
        points = [low + step * k for k in range(401)]
        apart = [abs(polynomial(x) - function(x)) for x in points]
    rise = max(abs(a - b) for a, b in itertools.pairwise(apart))
    return float(max(apart) + rise)


class Lanes(NamedTuple):
    """What differs between vectors of sixteen and of eight floats."""

    count: int

    @property
    def steps(self) -> int:
        return 16 if self.count == 16 else 8

    @property
    def near_steps(self) -> int:
        return 32 if self.count == 16 else 8

    @property
    def estimate(self) -> float:
        """Of a reciprocal: the instruction's, or a quotient's."""
        return 2.0**-14 if self.count == 16 else UNIT


LANES = Lanes(16)


# --- Exponentials ---------------------------------------------------------------------------------


@cache
def near_rest_misfit(lanes: Lanes) -> float:
    """Of e^r - 1 in `exp_near_rest`."""
    c = floats(arm(body("simd/exp.h", "exp_near_rest"), lanes.count))
    reach = LN2 / (2 * lanes.near_steps) * 1.001

    def rest(r: Any) -> Any:
        return r * (r * c[0] + c[1]) if lanes.count == 16 else r * (r * (r * c[0] + c[1]) + 1)

    return misfit(rest, mpmath.expm1, reach)


@cache
def tail_misfit(lanes: Lanes, long: bool) -> float:
    """Of (e^r - 1 - r) / r^2 in `exp_tail_vec` or `exp_long_tail`."""
    function = "exp_long_tail" if long or lanes.count == 8 else "exp_tail_vec"
    source = body("simd/exp.h", function)
    c = floats(source if function == "exp_long_tail" else arm(source, 16))
    reach = LN2 / (2 * lanes.steps) * 1.001 + 2.0**-12

    def rest(r: Any) -> Any:
        return r * c[0] + c[1] if function == "exp_tail_vec" else r * (r * c[0] + c[1]) + 0.5

    def exact(r: Any) -> Any:
        return (mpmath.expm1(r) - r) / r**2 if r else mpmath.mpf(1) / 2

    return misfit(rest, exact, reach)


NEAR_OFF = abs(float.fromhex("0x1.62e43p-1") - LN2)


def octaves(y: Any, steps: int) -> Any:
    return np.rint(y / LN2 * steps) / steps


def exp_near(y: Bounded) -> Bounded:
    """`exp_near_rest` of what is left, times a power of the table."""
    n = octaves(y.value, LANES.near_steps)
    left = y.value - n * LN2
    r = y.rounded(left, y.off + np.abs(n) * NEAR_OFF)
    inner = UNIT * (1 + np.abs(left))  # of the polynomial over r
    rest_off = r.off * 1.02 + near_rest_misfit(LANES) + np.abs(left) * (inner + UNIT)
    near = powers(
        "EXP_NEAR_POWERS" if LANES.count == 16 else "EXP_WIDE_NEAR_POWER_BITS", LANES.near_steps
    )
    return y.apart(near + rest_off * 1.02 + UNIT, np.exp(y.value))


def exp_pair(y: Bounded, long: bool = False) -> Bounded:
    """In two parts: the powers are exact to what the shifts hold."""
    n = octaves(y.value, LANES.steps)
    left = y.value - n * LN2
    r_off = np.abs(n) * 2.0**-40 + 2.0**-37 * (n != 0) + UNIT * np.abs(left) * (not long) + y.off
    rest_off = r_off + left**2 * (tail_misfit(LANES, long) + 2 * UNIT)
    return y.apart(rest_off * 1.05 + 2.0**-46, np.exp(y.value))


def octave_rest(y: Bounded) -> tuple[Bounded, Bounded]:
    """2^octaves, to which shifts are added, and e^r - 1, as `vf_expm1` has them."""
    n = octaves(y.value, LANES.steps)
    left = y.value - n * LN2
    r = y.rounded(left, y.off + np.abs(n) * 2.0**-40 + 2.0**-37 * (n != 0))
    off = r.off * 1.05 + left**2 * (tail_misfit(LANES, True) + 2 * UNIT)
    return y.exactly(2.0**n), y.rounded(np.expm1(left), off)


# --- The functions over vectors -------------------------------------------------------------------


def vf_inverse(b: Bounded) -> Bounded:
    near = LANES.estimate**2 + UNIT if LANES.count == 16 else UNIT
    with np.errstate(all="ignore"):
        value = 1 / b.value
    return b.apart(near + b.relative, value)


def vf_quotient(a: Bounded, b: Bounded) -> Bounded:
    return a * vf_inverse(b)


def vf_exp_minus(x: Bounded) -> Bounded:
    return exp_near(-x)


def vf_decay(x: Bounded) -> Bounded:
    return vf_exp_minus(Bounded(np.abs(x.value), x.off, x.unit))


def vf_expm1(y: Bounded) -> Bounded:
    power, rest = octave_rest(y)
    less = Bounded(
        power.value - 1,
        np.where((power.value >= 0.5) & (power.value <= 2), 0, UNIT * np.abs(power.value - 1)),
    )
    _, off = power.product(rest)
    return y.rounded(np.expm1(y.value), off + less.off)


@cache
def atanh_misfit() -> float:
    """Of 2 artanh(u) - 2u, over u^3, in `vf_atanh_rest`."""
    c = floats(body("simd/log.h", "vf_atanh_rest"))

    def rest(u: Any) -> Any:
        return c[2] + u * u * (c[1] + u * u * c[0])

    def exact(u: Any) -> Any:
        return (2 * mpmath.atanh(u) - 2 * u) / u**3

    return misfit(rest, exact, 0.2, 0.001)


def atanh_rest(u: Bounded, addend: Bounded) -> Bounded:
    """2 artanh(u) + addend - 2u."""
    cube = np.abs(u.value) ** 3
    off = cube * (atanh_misfit() + UNIT * 4 * 0.72) + 2 * u.value**2 * u.off
    rest = 2 * np.arctanh(u.value) - 2 * u.value
    return u.rounded(rest + addend.value, off + addend.off)


def vf_log1p(q: Bounded) -> Bounded:
    far = q.value > 0.41421357
    above = Bounded(q.value - far, q.off)  # exact
    u = vf_quotient(above, q + Bounded(np.where(far, 3.0, 2.0)))
    twice = Bounded(2 * u.value, 2 * u.off)
    near = abs(float.fromhex("0x1.62e43p-1") - LN2)
    return atanh_rest(u, twice.where(~far, twice + Bounded(np.full_like(u.value, LN2), near)))


def log_parts(x: Any) -> tuple[Any, Any]:
    bits = np.asarray(x, np.float32).view(np.int32)
    e = (bits - 0x3F3504F3) >> 23
    return x / 2.0**e, e.astype(float)


def vf_log(x: Bounded) -> Bounded:
    m, e = log_parts(x.value)
    u = vf_quotient(Bounded(m - 1), Bounded(m) + Bounded(np.ones_like(m)))
    octave = Bounded(np.full_like(m, LN2), NEAR_OFF)
    return atanh_rest(u, Bounded(e).times_plus(octave, Bounded(2 * u.value, 2 * u.off)))


def pair_log(x: Bounded) -> Bounded:
    m, e = log_parts(np.asarray(x.value, np.float32))
    m = x.value / 2.0**e
    u = pair_div(Bounded(m - 1, 0, PAIR_UNIT), Bounded(m + 1, 0, PAIR_UNIT))
    cube = np.abs(u.value) ** 3
    off = (
        2 * u.off
        + cube * (atanh_misfit() + UNIT * 4 * 0.72)
        + UNIT * cube * 0.7
        + np.abs(e) * 2.0**-45
    )
    exact = np.log1p(x.value - 1)
    return Bounded(exact, (off + x.relative + PAIR_UNIT * np.abs(exact)) * GUARD, PAIR_UNIT)


def vf_log_of_sum(x: Bounded) -> Bounded:
    r = pair_log(
        Bounded(
            1 + x.value, PAIR_UNIT * np.abs(1 + x.value) * (np.abs(x.value) > 2.0**-20), PAIR_UNIT
        )
    )
    value = np.log1p(x.value)
    return Bounded(value, r.off + UNIT * np.abs(value))


def vf_rsqrt(x: Bounded) -> Bounded:
    estimate = 2.0**-14 if LANES.count == 16 else 1.5 * 2.0**-12
    rest = 5 / 16 * (2 * estimate) ** 3
    return x.apart(1.5 * UNIT * (1 + 8 * estimate) + rest, 1 / np.sqrt(x.value))


def vf_exp2(x: Bounded) -> Bounded:
    n = np.rint(x.value * LANES.near_steps) / LANES.near_steps
    left = (x.value - n) * LN2
    rest_off = near_rest_misfit(LANES) + np.abs(left) * (UNIT * (1 + np.abs(left)) + 2 * UNIT)
    near = powers(
        "EXP_NEAR_POWERS" if LANES.count == 16 else "EXP_WIDE_NEAR_POWER_BITS", LANES.near_steps
    )
    return x.apart(near + rest_off * 1.02 + UNIT, np.exp2(x.value))


def vf_swish_slope(t: Bounded) -> Bounded:
    """The numerator is 1 + e^-t (1 + t), with e^-t in two parts; 1 + t is exact where it is small."""
    e = exp_pair(-t, long=True)
    one = np.ones_like(t.value)
    total = t + Bounded(one)
    total = total.where(np.abs(t.value + 1) > 0.5, Bounded(t.value + 1, t.off))
    bend_value, bend_off = e.product(total)
    inner = UNIT * np.abs(
        1 + bend_value
    )  # the sum with the high part is rounded, and that with the low one
    bend = Bounded(1 + bend_value, bend_off + 2 * inner)
    inverse = vf_inverse(Bounded(one) + Bounded(e.value, e.off + UNIT * e.value))
    return bend * inverse * inverse


@cache
def sine_misfit() -> float:
    c = floats(body("simd/sine.h", "sine_rest"))

    def sine(r: Any) -> Any:
        s = r * r
        return r + r * s * (c[3] + s * (c[2] + s * (c[1] + s * c[0])))

    return misfit(sine, mpmath.sin, math.pi / 2 * 1.0001)


def vf_sine(x: Bounded, turn: int) -> Bounded:
    exact = np.sin(x.value) if turn == 0 else np.cos(x.value)
    half_turns = np.rint(x.value / math.pi - 0.5 * turn)
    quarters = 2 * half_turns + turn
    left = x.value - quarters * math.pi / 2
    # The first difference is exact; the others are rounded, where any quarter is taken off.
    off = (quarters != 0) * (2 * UNIT * np.abs(left) + np.abs(quarters) * 2.0**-71)
    size = np.abs(left)
    rest = np.abs(
        size - np.sin(size)
    )  # r times what is added to 1, of which a square and the series are rounded
    series = off * np.abs(np.cos(left)) + off**2 + 2 * UNIT * np.abs(exact) + 3.5 * UNIT * rest
    series = series + np.minimum(sine_misfit(), size**3 * 2.0**-24)
    return Bounded(exact, series * GUARD)


@cache
def erf_misfit() -> tuple[np.ndarray, np.ndarray]:
    """Of each center: how far the polynomial is off, and that of erf(z)/z around 0."""
    source = re.search(r"ERF_SHAPES\[9\]\[16\] = {(.*?)\n};", text("simd/tables.h"), re.DOTALL)
    assert source
    rows = np.array(floats(source[1])).reshape(9, 16)
    step, found = 33 / 128, []
    for number in range(16):
        c = rows[:, number]
        center = number * step

        def shape(z: Any, c: Any = c) -> Any:
            rest = mpmath.mpf(c[8])
            for k in (7, 6, 5, 4):
                rest = rest * z + c[k]
            return mpmath.mpf(c[0]) + (mpmath.mpf(c[2]) + rest * z) * z

        high = 3.96 - center if number == 15 else step / 2
        low = 0.0 if number == 0 else -step / 2
        found.append(misfit(shape, lambda z, center=center: mpmath.erf(center + z), high, low))
    return np.array(found), rows


def vf_erf(x: Bounded) -> Bounded:
    off, rows = erf_misfit()
    size = np.minimum(np.abs(x.value), float(np.float32(3.96)))
    number = np.rint(size / (33 / 128)).astype(int)
    z = size - number * (33 / 128)
    constant, factor = rows[0][number], rows[2][number]
    slope = np.abs(factor) + np.abs(rows[4][number] * z) * 1.2
    value = special.erf(x.value)
    error = (
        off[number]
        + np.abs(z) * UNIT * (slope + 3 * np.abs(rows[4][number] * z))
        + UNIT * np.abs(value)
    )
    # Around 0 the constant is 0, and all is a multiple of z.
    near = number == 0
    relative = np.abs(z) * 2.0**-24.5
    error = np.where(
        near,
        np.minimum(off[0], relative) + np.abs(z) * UNIT * slope * 1.1 + UNIT * np.abs(value),
        error,
    )
    return Bounded(value, (error + 0 * constant) * GUARD)


# --- In pairs -------------------------------------------------------------------------------------


def pair_div(a: Bounded, b: Bounded) -> Bounded:
    near = LANES.estimate**2 * 1.01 + PAIR_UNIT
    with np.errstate(all="ignore"):
        value = a.value / b.value
    return Bounded(value, np.abs(value) * (near + a.relative + b.relative) * GUARD, PAIR_UNIT)


# --- The formulas, whose text is Python but for types ---------------------------------------------


def as_python(source: str) -> str:
    """Functions of a `.pxd` as Python."""
    found = []
    pattern = re.compile(
        r"^cdef inline [\w ]+? (\w+)\(([^)]*)\) noexcept nogil:\n((?:    [^\n]*\n|\n)*)",
        re.MULTILINE,
    )
    for name, parameters, lines in pattern.findall(source):
        names = [part.split()[-1].lstrip("*") for part in " ".join(parameters.split()).split(",")]
        lines = re.sub(
            r"^( +)cdef \w+ (\w+(?:, \w+)*|\w+\[\d\])$", r"\1pass", lines, flags=re.MULTILINE
        )
        lines = re.sub(r"^( +)cdef \w+ ", r"\1", lines, flags=re.MULTILINE)
        lines = re.sub(r"<\w+>", "", lines)
        found.append(f"def {name}({', '.join(names)}):\n{lines}")
    return "\n".join(found)


def constant(value: float, like: Bounded) -> Bounded:
    """A number in the form that another has."""
    near = float(np.float32(value))
    off = abs(value - near)
    if like.unit != UNIT:
        off = abs(value - near - float(np.float32(value - near)))
    return Bounded(np.full_like(like.value, value), off, like.unit)


def functions_over(pairs: bool) -> dict[str, Any]:
    """What formulas are made of, over vectors or pairs of them."""
    unit = PAIR_UNIT if pairs else UNIT
    prefix = "pair_" if pairs else "vf_"

    def named(function: Callable[..., Bounded]) -> Callable[..., Bounded]:
        return lambda *given: function(*given)

    def plain(x: Bounded) -> Bounded:
        return Bounded(x.value, x.off, unit)

    def choose(test: Callable[[Any, Any], Any]) -> Callable[..., Bounded]:
        return lambda x, bound, yes, no: yes.where(test(x.value, bound), no)

    def decay(x: Bounded) -> Bounded:
        return exp_minus(Bounded(np.abs(x.value), x.off, unit))

    def exp_minus(x: Bounded) -> Bounded:
        return exp_pair(-x) if pairs else exp_near(-x)

    def long(x: Bounded) -> Bounded:
        return exp_pair(-x, long=True) if pairs else exp_near(-x)

    def unknown(name: str) -> Callable[..., Bounded]:
        def refuse(*given: Any) -> Bounded:
            raise NotImplementedError(f"{prefix}{name}")

        return refuse

    def times(c: float, a: Bounded) -> Bounded:
        exact = Bounded(c * a.value, abs(c) * a.off, a.unit)
        return exact if math.frexp(abs(c))[0] == 0.5 else constant(c, a) * a

    def product(c: float, x: Bounded) -> Bounded:
        """In two parts, the second of which is rounded once more as it is taken from what is left of the first."""
        t = c * x.value
        return Bounded(t, np.abs(t) * 2.0**-45 + UNIT * LN2 / 16, x.unit)

    def left_open(known: Any, r: Bounded) -> Bounded:
        return Bounded(r.value, np.where(known, r.off, np.inf), unit)

    def absolute(x: Bounded) -> Bounded:
        return Bounded(np.abs(x.value), x.off, unit)

    return {
        "num": "pair_t" if pairs else "vecf",
        "vector_num": "pair_t" if pairs else "vecf",
        "double": "double", "vecf": "vecf", "pair_t": "pair_t",
        "INFINITY": math.inf, "NAN": math.nan,
        "constant": lambda like, c: constant(c, like),
        "neg": lambda a: -a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "add_less": lambda a, b: a + b,
        "add_all": lambda x, c: Bounded(x.value + c, UNIT * np.abs(x.value + c) + 2.0**-48, unit) if not pairs else x + constant(c, x),
        "mul": lambda a, b: a * b,
        "squared": lambda a: a * a,
        "less_product": lambda c, a, b: (-a).times_plus(b, c),
        "times": times,
        "exp_minus_product": lambda c, x: exp_near(-product(c, x)),
        "decay_of_product": lambda c, x: exp_minus(absolute(product(c, x))),
        "plus": lambda c, a: constant(c, a) + a,
        "div": pair_div if pairs else vf_quotient,
        "where_negative": lambda x, yes, no: yes.where(x.value < 0, no),
        "where_above": choose(lambda x, bound: x > bound),
        "where_at_most": choose(lambda x, bound: x <= bound),
        "bounded": lambda x, low, high: Bounded(np.clip(x.value, low, high), x.off, unit),
        "where_product_above": lambda c, x, bound, yes, no: yes.where(c * x.value > bound, no),
        "signed_as": lambda size, x: Bounded(np.copysign(size.value, x.value), size.off, unit),
        "zero_as": lambda r, x: r,
        "least": lambda x: Bounded(-np.minimum(np.abs(x.value), 75), np.where(np.abs(x.value) > 75, 0, x.off), unit),
        "exp_less_one": vf_expm1 if not pairs else unknown("expm1"),
        "log_one_more": vf_log1p if not pairs else unknown("log1p"),
        "decay": decay,
        "decay_long": lambda x: long(absolute(x)),
        "exp_minus": exp_minus,
        "exp_minus_long": long,
        "exp2_of": named(vf_exp2),
        "swish_slope": named(vf_swish_slope),
        "at_nan": lambda x, r, elsewhere: elsewhere,
        "at_minus_infinity": lambda x, r, elsewhere: elsewhere,
        "log_of": named(vf_log),
        "log_of_sum": named(vf_log_of_sum),
        "rsqrt_of": named(vf_rsqrt),
        "within": lambda x, low, high, r: left_open((x.value >= low) & (x.value <= high), r),
        "unless_below": lambda x, low, r: left_open(x.value >= low, r),
        "sine_of": vf_sine,
        "erf_of": named(vf_erf),
        "plain": plain,
    }  # fmt: skip


DEFINITION = re.compile(r"#define (\w+) (\S+)")


@cache
def formulas(pairs: bool, lanes: int) -> dict[str, Any]:
    scope = functions_over(pairs)
    source = text("activations.pxd")
    for name, value in DEFINITION.findall(source):
        scope[name] = float.fromhex(value) if "0x" in value else float(value)
    exec(as_python(source), scope)
    return scope


# --- Arguments, and what is found ------------------------------------------------------------------


@cache
def halves(dtype: str) -> np.ndarray:
    """All finite numbers of a dtype but 0, as doubles."""
    kind = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    with np.errstate(invalid="ignore"):
        x = np.arange(2**16, dtype=np.uint16).view(kind).astype(np.float64)
    return x[np.isfinite(x) & (x != 0)]


SMALL = {
    "bfloat16": 2.0**-120,
    "float16": 2.0**-26,
}  # what is less is left to doubles, or rounded to 0


class Found(NamedTuple):
    """The bound of a formula's relative error, and where it is reached."""

    error: float
    at: float


# --- Formulas by hand: those of half precision ----------------------------------------------------


def elu_half(x: Bounded) -> Bounded:
    """The factor is rounded, and what is multiplied by it."""
    grown = vf_expm1(Bounded(np.minimum(x.value, 0.0)))
    product = grown.apart(2 * UNIT + grown.relative, grown.value)
    return product.where(x.value < 0, x.apart(UNIT, x.value))


def elu_backward_half(x: Bounded) -> Bounded:
    """The slope joins the table: it is rounded, and each entry; ln(2) has two parts."""
    y = Bounded(np.minimum(x.value, 0.0))
    n = octaves(y.value, LANES.near_steps)
    left = y.value - n * LN2
    rest_off = near_rest_misfit(LANES) + np.abs(left) * (UNIT * (1 + np.abs(left)) + 2 * UNIT)
    near = powers(
        "EXP_NEAR_POWERS" if LANES.count == 16 else "EXP_WIDE_NEAR_POWER_BITS", LANES.near_steps
    )
    slope = y.apart(near + 2 * UNIT + rest_off * 1.02 + UNIT, np.exp(y.value))
    return slope.apart(slope.relative + UNIT, slope.value)  # the product with the gradient


def rounded_off(value: Any) -> Any:
    """What a float takes of a value that doubles hold."""
    return np.abs(np.asarray(value, np.float32).astype(float) - value)


def logit_half(x: Bounded) -> Bounded:
    """Sums are exact where there are no octaves, and of most halves elsewhere."""
    z = x.value
    rest = np.asarray(1 - z, np.float32).astype(float)
    ratio = np.float32(z).view(np.int32) - np.float32(rest).view(np.int32)
    k = ((ratio + 0x400000) >> 23).astype(float)
    w = z / 2.0**k
    sums = Bounded(w + (1 - z), rounded_off(1 - z) + rounded_off(w + rest))
    less = Bounded(w - (1 - z), rounded_off(1 - z) + rounded_off(w - rest))
    exact = less.value / sums.value
    near = LANES.estimate**2 * 1.01 + UNIT
    u = Bounded(exact, np.abs(exact) * (near + sums.relative) + less.off / sums.value)
    octave = Bounded(np.full_like(z, LN2), NEAR_OFF)
    # Their product is exact but for what the constant lacks, and rounded with 2u.
    found = atanh_rest(u, Bounded(k).times_plus(octave, Bounded(2 * u.value, 2 * u.off)))
    return Bounded(special.logit(z), found.off)


def logit_backward_half(x: Bounded) -> Bounded:
    rest = Bounded(np.ones_like(x.value)) - x
    product = x * rest
    return product.apart(product.relative + UNIT, 1 / product.value)


# The gradient of GELU in half precision has no argument but all halves, and polynomials whose terms cancel: its floats are computed here as
# vectors compute them, operation by operation, so that what they are off is known and needs no bound.


def single(x: Any) -> np.ndarray:
    return np.asarray(x, np.float32)


def fma(a: Any, b: Any, c: Any) -> np.ndarray:
    """Of floats, whose products doubles hold."""
    return single(np.asarray(a, float) * np.asarray(b, float) + np.asarray(c, float))


def gelu_parts(name: str, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Power, factor and e^(-r/2) - 1 of `gelu_f16_parts`."""
    steps, square = LANES.near_steps, single(t * t)
    magic = single(1.5 * 2**23 / steps)
    n = single(fma(square, single(float.fromhex("0x1.715476p+0")) * single(-0.5), magic) - magic)
    r = fma(n, single(2 * float.fromhex("0x1.62e43p-1")), square)
    step = np.rint(n.astype(float) * steps).astype(int)
    entries = single(
        entries_of("EXP_NEAR_POWERS" if LANES.count == 16 else "EXP_WIDE_NEAR_POWER_BITS", steps)
    )
    power = np.ldexp(entries[step % steps], step // steps)
    c = [single(one) for one in floats(arm(body("simd/exp.h", "exp_near_rest"), LANES.count))]
    scale = single(-0.5)
    if LANES.count == 16:
        rest = single(r * fma(r, c[0] * scale * scale, c[1] * scale))
    else:
        inner = fma(r, c[0] * scale * scale * scale, c[1] * scale * scale)
        rest = single(r * fma(r, inner, scale))
    return power, near_shape(name, t), rest


def near_shape(name: str, t: np.ndarray) -> np.ndarray:
    """A factor of phi, from the table of its interval."""
    wide = LANES.count == 8
    rows = single(shapes(f"{name}_{'WIDE_' if wide else ''}NEAR_SHAPES"))
    scale, first, shift = (1.75, 7.0, 21) if wide else (1.125, 1.0, 20)
    place = fma(t, scale, first)
    number = place.view(np.int32) >> shift & (rows.shape[1] - 1)
    z = single(t - single(table("GELU_WIDE_CENTERS"))[number]) / place if wide else t
    total = rows[-1][number]
    for row in rows[-2::-1]:
        total = fma(total, z, row[number])
    return total


@cache
def shapes(name: str) -> np.ndarray:
    found = re.search(rf"{name}\[(\d+)\]\[(\d+)\] = {{(.*?)\n}};", text("simd/tables.h"), re.DOTALL)
    assert found, name
    return np.array(floats(found[3])).reshape(int(found[1]), int(found[2]))


ROOT = 0.75179152469356445  # of the gradient, on the left


def gelu_backward_half(x: Bounded) -> Bounded:
    t = single(np.abs(x.value))
    power, factor, rest = gelu_parts("SLOPE", t)
    near = single(single(float.fromhex("0x1.80eaep-1")) - t)
    near = single(near + single(float.fromhex("-0x1.cd01fep-22")))
    lead = single(single(near * power) * factor)
    tail = fma(lead, rest, lead)
    found = np.where(x.value > 0, single(1 - tail), tail).astype(float)
    with mpmath.workdps(30):
        beside = [slope_of_gelu(mpmath.mpf(one)) for one in x.value[np.abs(x.value + ROOT) < 0.01]]
    exact = special.ndtr(x.value) + x.value * np.exp(-(x.value**2) / 2) / math.sqrt(2 * math.pi)
    far = x.value < -1  # where the parts cancel
    exact[far] = [float(slope_of_gelu(mpmath.mpf(one))) for one in x.value[far]]
    exact[np.abs(x.value + ROOT) < 0.01] = np.array(beside, float)
    return Bounded(
        exact, np.abs(found - exact) * GUARD + UNIT * np.abs(exact)
    )  # the product with the gradient


def slope_of_gelu(x: Any) -> Any:
    return mpmath.ncdf(x) + x * mpmath.npdf(x)


class HandForm(NamedTuple):
    """A formula over halves that is written by hand, and where its bound is stated."""

    formula: Callable[[Bounded], Bounded]
    header: str
    domain: str
    arguments: Callable[[np.ndarray], np.ndarray]


BY_HAND = {
    "elu": HandForm(elu_half, "simd/elu.h", "ELU_DOMAIN", lambda x: x),
    "elu_backward": HandForm(elu_backward_half, "simd/elu.h", "ELU_BACKWARD_DOMAIN", lambda x: x[x > -80]),
    "logit": HandForm(logit_half, "simd/logit.h", "LOGIT_DOMAIN", lambda x: x[(x > 2.0**-126) & (x < 1) & (x != 0.5)]),
    "logit_backward": HandForm(logit_backward_half, "simd/logit.h", "LOGIT_BACKWARD_DOMAIN", lambda x: x[(x != 0) & (x != 1)]),
    "gelu_backward": HandForm(
        gelu_backward_half, "simd/gelu.h", "GELU_BACKWARD_DOMAIN",
        lambda x: x[(np.abs(x) < 12) & (np.abs(x + ROOT) > 2.0**-19)],
    ),
}  # fmt: skip


def stated_by_hand(form: HandForm) -> float:
    found = re.search(rf"{form.domain} = {{[^}}]*?\.rel_error = ([^,}} ]+)", text(form.header))
    assert found, form.domain
    word = found[1].removesuffix("f")
    return float.fromhex(word) if "0x" in word else float(word)


def bound_by_hand(form: HandForm, dtype: str, lanes: int) -> Found:
    global LANES
    LANES = Lanes(lanes)
    x = form.arguments(halves(dtype))
    with np.errstate(all="ignore"):
        r = form.formula(Bounded(x))
        relative = r.relative
    known = np.isfinite(relative) & (np.abs(r.value) > SMALL[dtype]) & (np.abs(r.value) < 1e38)
    relative = np.where(known, relative, 0)
    place = int(relative.argmax())
    return Found(float(relative[place]), float(x[place]))


# --- Arguments ------------------------------------------------------------------------------------


# Numbers of nodes, of which every product is rounded; and the arguments that vectors are trusted with, where others are left to doubles.
NUMBERS: dict[str, list[tuple[float, ...]]] = {
    "swish": [(1.3,), (-0.7,)], "swish_backward": [(1.3,), (-0.7,)],
    "softplus": [(1.3, 20.0), (0.7, 3.0)], "softplus_backward": [(1.3, 20.0), (0.7, 3.0)],
    "rrelu_with_noise": [(0.125, 1 / 3), (-0.7, 0.1)], "celu": [(1.3,), (0.7,)], "clipped_swiglu": [(1.7, 7.0, 1.0)],
}  # fmt: skip
LIMITS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: np.abs(x) <= 87, "rsqrt": lambda x: x >= 2.0**-126,
    "exp2": lambda x: (x >= -125) & (x <= 127),
    "expm1": lambda x: np.abs(x) <= 87,
    "log": lambda x: x >= 2.0**-126, "log2": lambda x: x >= 2.0**-126, "log10": lambda x: x >= 2.0**-126,
    "log1p": lambda x: (x > -1) & (x < 3e38),
    "sin": lambda x: np.abs(x) <= 65536, "cos": lambda x: np.abs(x) <= 65536,
    "sigmoid_backward": lambda x: np.abs(x) < 1e18, "tanh_backward": lambda x: np.abs(x) < 1e18,
}  # fmt: skip


def arguments(formula: str, dtype: str) -> Iterator[tuple[np.ndarray, tuple[float, ...]]]:
    x = np.concatenate([halves(dtype), others(dtype)])
    x = x[LIMITS[formula](x)] if formula in LIMITS else x
    for numbers in NUMBERS.get(formula, [()]):
        yield x, numbers


@cache
def others(dtype: str) -> np.ndarray:
    """Floats that are no halves, of every magnitude: operands of results in half precision may be float32."""
    rng = np.random.default_rng(23)
    low, high = (-24.0, 16.0) if dtype == "float16" else (-120.0, 120.0)
    spread = [2.0 ** rng.uniform(low, high, 20_000), 2.0 ** rng.uniform(-10, 7, 30_000)]
    size = np.concatenate(spread).astype(np.float32).astype(float)
    return size * rng.choice([-1.0, 1.0], size.size)


def bound(record: Any, dtype: str, lanes: int) -> Found:
    """The largest error before results are rounded to half precision."""
    global LANES
    LANES = Lanes(lanes)
    form, worst = record.vectors, Found(0.0, 0.0)
    scope = formulas(form.in_pairs, lanes)
    for x, numbers in arguments(record.name, dtype):
        unit = PAIR_UNIT if form.in_pairs else UNIT
        operand = Bounded(x, 0.0, unit)
        ones = Bounded(np.ones_like(x), 0.0, unit)
        given = [ones, operand] if len(record.inputs) == 2 else [operand]
        with np.errstate(all="ignore"):
            r = scope[record.name](*given, numbers)
            off = r.off + (UNIT * (np.abs(r.value) + r.off) if form.in_pairs else 0)
            relative = off / np.abs(r.value)
            known = np.isfinite(relative) & (np.abs(r.value) > SMALL[dtype])
            known &= np.abs(r.value) < (1e38 if dtype == "bfloat16" else 65536)
            if form.root:
                root = eval(form.root, {"p": numbers})
                known &= np.abs(x - root) > abs(eval(form.gap, {"p": numbers}))
            if form.decay:
                known &= x * eval(form.decay, {"p": numbers}) > -75
        relative = np.where(known, relative, 0)
        place = int(relative.argmax())
        if relative[place] > worst.error:
            worst = Found(float(relative[place]), float(x[place]))
    return worst


def computed_bounds() -> dict[str, dict[tuple[str, int], Found]]:
    """Of each formula that has a rounding test: bounds by dtype and number of lanes."""
    found = {}
    for record in load_records().values():
        if record.domain == "point" and record.vectors and not record.halves:
            found[record.name] = {
                (dtype, lanes): bound(record, dtype, lanes)
                for dtype in ("float16", "bfloat16")
                for lanes in (16, 8)
            }
    for name, form in BY_HAND.items():
        found[name] = {
            (dtype, lanes): bound_by_hand(form, dtype, lanes)
            for dtype in ("float16", "bfloat16")
            for lanes in (16, 8)
        }
    return found


def stated_bounds() -> dict[str, dict[str, float]]:
    of_records = {
        one.name: {dtype: one.vectors.bound(dtype) for dtype in ("float16", "bfloat16")}
        for one in load_records().values()
        if one.domain == "point" and one.vectors
    }
    by_hand = {
        name: dict.fromkeys(("float16", "bfloat16"), stated_by_hand(form))
        for name, form in BY_HAND.items()
    }
    return of_records | by_hand


def worst_bounds() -> dict[str, dict[str, Found]]:
    """Those of either number of lanes, by formula and dtype."""
    return {
        name: {
            dtype: max((found[dtype, lanes] for lanes in (16, 8)), key=lambda one: one.error)
            for dtype in ("float16", "bfloat16")
        }
        for name, found in computed_bounds().items()
    }


def is_fair(stated: float, computed: float) -> bool:
    """Neither less than the computed bound nor needlessly looser than that, or than the least that tests tell."""
    return computed <= stated and (stated <= LOOSE * computed or stated <= LEAST)


LOOSE, LEAST = 4, 2.384e-7


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stated, wrong = stated_bounds(), []
    print(f"{'formula':24} dtype       stated  computed, at")
    for name, found in worst_bounds().items():
        for dtype, worst in found.items():
            print(
                f"{name:24} {dtype:9} {stated[name][dtype]:9.3g} {worst.error:9.3g}, {worst.at:.7g}"
            )
            if not is_fair(stated[name][dtype], worst.error):
                wrong.append(f"{name} of {dtype}")
    if wrong:
        print("not between the computed bound and four times that:", ", ".join(wrong))
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
