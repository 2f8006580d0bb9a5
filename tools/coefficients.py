"""Make `simd/tables.h` and `double_tables.h` of `aclnn/kernels/`, print the polynomials of the other headers and how they fit.

Every polynomial interpolates its function at Chebyshev nodes, computed with 60 digits, and is then
rounded to the type it is evaluated in: ``python tools/coefficients.py``.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mpmath import (
    atanh,
    cos,
    erf,
    erfc,
    exp,
    expm1,
    findroot,
    log,
    lu_solve,
    matrix,
    mp,
    mpf,
    nstr,
    pi,
    sin,
    sqrt,
)

KERNELS = Path(__file__).parent.parent / "aclnn" / "kernels"
TABLES = KERNELS / "simd" / "tables.h"
DOUBLE_TABLES = KERNELS / "double_tables.h"

mp.dps = 60


def mills(t):
    """Mills' ratio of the normal distribution, Phi(-t) / phi(t) (Abramowitz & Stegun 26.2)."""
    return sqrt(pi / 2) * exp(t * t / 2) * erfc(t / sqrt(2))


ROOT = findroot(lambda t: mills(t) - t, mpf("0.75"))


def over_root(function, root, t):
    """function(t) / (root - t)."""
    beside = t if abs(t - root) > mpf(10) ** -20 else root + mpf(10) ** -20
    return function(beside) / (root - beside)


def slope(t):
    """S in GELU'(-t) = phi(t) (t0 - t) S(t)."""
    return over_root(lambda t: mills(t) - t, ROOT, t)


CUBIC = mpf("0.044715")


def tanh_exponent(t):
    """2w, w = sqrt(2/pi) (t + 0.044715 t^3)."""
    return sqrt(8 / pi) * (t + CUBIC * t**3)


def tanh_share(t):
    """1 - (1 + tanh(w))/2 over e^(-2w): GELU with tanh is -t times both at -t."""
    return 1 / (1 + exp(-tanh_exponent(t)))


def tanh_bend(t):
    """The derivative of GELU with tanh at -t, over e^(-2w) and the share's square."""
    return 1 + exp(-tanh_exponent(t)) - sqrt(8 / pi) * (t + 3 * CUBIC * t**3)


TANH_ROOT = findroot(tanh_bend, mpf("0.75"))


def tanh_slope(t):
    """S in the derivative of GELU with tanh at -t, e^(-2w) (t0 - t) S(t)."""
    return tanh_share(t) ** 2 * over_root(tanh_bend, TANH_ROOT, t)


def tail(r):
    """(e^r - 1 - r) / r^2."""
    return (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -8 else mpf(1) / 2 + r / 6 + r * r / 24


def interpolate(function, degree, low, high, through_0=False):
    """Coefficients of the polynomial through the Chebyshev nodes of [low, high], constant first;
    `through_0`: 0 at 0, in the place of the node next to that."""
    nodes = [
        (low + high) / 2 + (high - low) / 2 * cos(pi * (2 * j + 1) / (2 * (degree + 1)))
        for j in range(degree + 1)
    ]
    if through_0:
        nodes.remove(min(nodes, key=abs))
        rest = polynomial_through(nodes, lambda z: function(z) / z)
        return [mpf(0), *rest]
    return polynomial_through(nodes, function)


def polynomial_through(nodes, function):
    degree = len(nodes) - 1
    powers = matrix(degree + 1, degree + 1)
    values = matrix(degree + 1, 1)
    for row, node in enumerate(nodes):
        values[row] = function(node)
        for column in range(degree + 1):
            powers[row, column] = node**column
    return list(lu_solve(powers, values))


def erfinv_factor(w):
    """erfinv(x) / x for w = -ln(1 - x^2), by Halley's steps on what is left of 1."""
    x = sqrt(-expm1(-w))
    left, y = exp(-w) / (1 + x), sqrt(w) * mpf("0.88")
    for _ in range(60):
        step = (erfc(y) - left) * sqrt(pi) / 2 * exp(y * y)
        y += step / (1 + y * step)
    return y / x


def rational_through(function, above, below, low, high):
    """Numerator and denominator of these degrees through Chebyshev nodes, the constant below 1."""
    count = above + below + 1
    powers, values = matrix(count, count), matrix(count, 1)
    for row in range(count):
        node = (low + high) / 2 + (high - low) / 2 * cos(pi * (2 * row + 1) / (2 * count))
        values[row] = function(node)
        for column in range(above + 1):
            powers[row, column] = node**column
        for column in range(below):
            powers[row, above + 1 + column] = -values[row] * node ** (column + 1)
    found = list(lu_solve(powers, values))
    return found[: above + 1], [mpf(1), *found[above + 1 :]]


def print_rational(name, function, above, below, low, high):
    parts = rational_through(function, above, below, low, high)
    points = [low + (high - low) * (j + mpf("0.5")) / 300 for j in range(300)]
    error = max(
        abs(evaluate(parts[0], x) / evaluate(parts[1], x) / function(x) - 1) for x in points
    )
    print(f"\n{name}: degrees {above} and {below}, error 2^{nstr(log(error, 2), 4)}")
    for part in parts:
        for coefficient in reversed(part):
            print(f"    {float(coefficient).hex()}")


def evaluate(coefficients, x):
    result = mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + mpf(float(coefficient))
    return result


def reach(steps, left_out=2.0**-12):
    """The largest exponent that remains when steps in an octave are taken off, and what they left out."""
    return log(2) / (2 * steps) * mpf("1.001") + left_out


def grown(r):
    """(e^r - 1) / r."""
    return (exp(r) - 1) / r if abs(r) > mpf(10) ** -15 else 1 + r / 2


def near_grown():
    """c1 and c2 of e^r - 1 = r (c1 + c2 r), exact at the zeros of Chebyshev's third polynomial."""
    node = reach(32, 0) * cos(pi / 6)
    up, down = grown(node), grown(-node)
    return (up + down) / 2, (up - down) / (2 * node)


def atanh_rest(square):
    """(2 atanh(u) - 2u) / u^3 for u^2."""
    u = sqrt(square)
    return 2 * (atanh(u) - u) / u**3


def sine_rest(square):
    """(sin(r)/r - 1) / r^2 for r^2."""
    r = sqrt(square)
    return (sin(r) / r - 1) / square


def cosine_rest(square):
    """(cos(r) - 1 + r^2/2) / r^4 for r^2."""
    return (cos(sqrt(square)) - 1 + square / 2) / square**2


def log_rest(r):
    """(ln(1 + r) - r + r^2/2) / r^3."""
    return (log(1 + r) - r + r * r / 2) / r**3 if abs(r) > mpf(10) ** -12 else mpf(1) / 3 - r / 4


def most_exact_at_0(function, degree, high):
    """The polynomial on [0, high] that is multiplied by its variable: nodes of Chebyshev's polynomial
    of the next degree, stretched until its first zero is at 0."""
    count = degree + 2
    zeros = [cos(pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    first = min(zeros)
    nodes = [high * (zero - first) / (1 - first) for zero in zeros if zero != first]
    return polynomial_through(nodes, function)


SINES = {
    # name: function, degree, up to which r^2
    "sine_rest": (sine_rest, 3, mpf("2.468")),
    "pair_sine, sine": (sine_rest, 3, mpf("0.63")),
    "pair_sine, cosine": (cosine_rest, 2, mpf("0.63")),
}


def rounded_down(value):
    near = np.float32(float(value))
    return mpf(float(near if near <= value else np.nextafter(near, np.float32(0))))


def print_sines():
    """The parts of pi/2, and the polynomials of sine.h."""
    parts = [rounded_down(pi / 2)]
    parts.append(rounded_down(pi / 2 - parts[0]))
    parts.append(rounded_down(pi / 2 - parts[0] - parts[1]))
    print("pi/2:", *(hex_float(part) for part in parts))
    for name, (function, degree, high) in SINES.items():
        print(f"{name}:", *(hex_float(c) for c in most_exact_at_0(function, degree, high)))


HALF_LN2 = log(2) / 2
NEAR_0, EIGHTH_SQUARED = mpf(10) ** -20, mpf("0.6169")  # (pi/4)^2
LOG_REACH = mpf(2) ** -8 * mpf("1.01")
# From 0.11 on: below, less of the result depends on it. Up to what differences of bits leave of odds.
ODDS_SQUARES = mpf("0.012"), mpf("0.0402")
POLYNOMIALS = {
    # name: function, degree, interval, type, and what the error is relative to
    "exp_rest, 16 steps": (grown, 2, -reach(16), reach(16), np.float32),
    "exp_rest, 8 steps": (grown, 3, -reach(8), reach(8), np.float32),
    "exp_near_rest, 8 steps": (grown, 2, -reach(8, 0), reach(8, 0), np.float32),
    "atanh_rest": (atanh_rest, 2, *ODDS_SQUARES, np.float32),
    "exp_tail": (tail, 9, -HALF_LN2 * mpf("1.01"), HALF_LN2 * mpf("1.01"), np.float64),
    "gelu_slope_factor": (
        lambda u: slope(4 * (1 + u) / (1 - u)), 18, mpf(-1), mpf(36) / 44, np.float64,
    ),
    "mills_factor": (
        lambda u: mills(4 * (1 + u) / (1 - u)) * (4 * (1 + u) / (1 - u) + 4),
        20, mpf(-1), mpf(36) / 44, np.float64,
    ),
    "atanh_tail": (
        lambda z: (atanh(sqrt(z)) / sqrt(z) - 1) / z, 7, mpf(10) ** -30, mpf("0.0297"), np.float64,
    ),
    "log_rest": (log_rest, 6, -LOG_REACH, LOG_REACH, np.float64),
    "sine_tail": (sine_rest, 6, NEAR_0, EIGHTH_SQUARED, np.float64),
    "cosine_tail": (cosine_rest, 6, NEAR_0, EIGHTH_SQUARED, np.float64),
    "erf_tail": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, 12, NEAR_0, mpf(1), np.float64),
}  # fmt: skip


# --- Tables for vectors ---------------------------------------------------------------------------

LN2, LN2_NEAR = mpf(float.fromhex("0x1.62ep-1")), mpf(float.fromhex("0x1.62e43p-1"))
LACK, LACK_NEAR = (log(2) / short - 1 for short in (LN2, LN2_NEAR))
TABLE_HEAD = """\
/* Tables for `simd/exp.h` and `simd/gelu.h`; `tools/coefficients.py` makes them.
 *
 * EXP_POWERS: 2^(j/16) to twelve bits; EXP_SHIFTS: the logarithm of what the rounding left out;
 * GELU_SHIFTS: what that adds to t^2. EXP_NEAR_POWERS: 2^(j/32) to 24 bits. WIDE: the same of
 * 2^(j/8). BITS of 2^(j/n) are less j n-ths of an octave.
 *
 * The others describe factors of phi(t), over sqrt(2 pi): SLOPE, S of GELU'(-t) = phi(t) (t0 - t) S(t),
 * and MILLS, Mills' ratio M of GELU(-t) = -t phi(t) M(t). They do on each of 32 intervals of t that the
 * low five bits of (bits of place) >> 20 number, place = 1 + t, or, WIDE, 8 that the low three bits of
 * (bits of place) >> 21 number, place = 7 + 7/4 t, as many as a register of eight looks up at once; the
 * shapes of MILLS_WIDE: 16 that the low four bits of (bits of place) >> 21 number, place = 1 + 5/4 t.
 * SHAPES: lead (1 + z times a polynomial in z), z = t - center, of SLOPE_WIDE over place; at the center
 * the factor is the lead. NEAR_SHAPES: a polynomial in t, place = 1 + 9/8 t, WIDE in z of
 * GELU_WIDE_CENTERS. Both are times e^(t^2 lack / 2), which
 * is what an exponential lacks whose ln(2) is 1 / (1 + lack) of the true one. LEADS of the 32 are 0
 * from 12 on: there a power may be less than floats can be.
 *
 * ERF_SHAPES: erf(center + z), centers every 33/128; the constant and the factor of z in two parts each.
 *
 * TANH: factors of e^(-2w) in the form with tanh, for t up to 9; place = 1 + 13/8 t, z = t - center,
 * lead (1 + a polynomial in z) and 32 intervals, WIDE 16. SLOPE: S of the derivative at -t, e^(-2w) (t0 - t) S(t); SHARE: 1 / (1 + e^(-2w)).
 */
#ifndef ACLNN_SIMD_TABLES_H
#define ACLNN_SIMD_TABLES_H

#include <stdint.h>

"""


LEAD_BITS = 12  # of leads and powers: their products are exact
LEADS_TRIED = 25  # how near rounded coefficients come is a matter of luck
LEADS_REACHED = 150  # of which those are tried where rounded centers come nearest


def to_bits(value, count):
    """The nearest number of `count` significant bits."""
    mantissa, exponent = math.frexp(float(value))
    return math.ldexp(round(mantissa * 2**count), exponent - count)


def power_bits(powers):
    """The bits of 2^(j/n), less j/n of an exponent's: an integer that counts steps adds them."""
    step = 2**23 // len(powers)
    return [
        f"{(int(np.float32(float(power)).view(np.uint32)) - j * step) % 2**32:#x}u"
        for j, power in enumerate(powers)
    ]


def octave(steps):
    return [mpf(2) ** (mpf(j) / steps) for j in range(steps)]


def exponentials(name, steps, near_steps):
    """The tables of powers and shifts."""
    exact = octave(steps)
    powers = [to_bits(power, LEAD_BITS) for power in exact]
    shifts = [log(p / mpf(q)) for p, q in zip(exact, powers, strict=True)]
    near = octave(near_steps)
    as_numbers = [("POWERS", powers), ("NEAR_POWERS", near)]
    as_bits = [("POWER_BITS", powers)]
    if name:
        as_numbers, as_bits = [], [*as_bits, ("NEAR_POWER_BITS", near)]
    return [
        *(table(f"EXP_{name}{kind}", [hex_float(p) for p in row]) for kind, row in as_numbers),
        *(table(f"EXP_{name}{kind}", power_bits(row), "uint32_t") for kind, row in as_bits),
        table(f"EXP_{name}SHIFTS", [hex_float(s) for s in shifts]),
        table(f"GELU_{name}SHIFTS", [hex_float(-2 * s / (1 + LACK)) for s in shifts]),
    ]


def hex_float(value):
    mantissa, exponent = float(np.float32(value)).hex().split("p")
    whole, _, digits = mantissa.partition(".")
    digits = digits.rstrip("0")
    return f"{whole}.{digits}p{exponent}f" if digits else f"{whole}p{exponent}f"


def lines(words, indent):
    return "".join(f"{indent}{', '.join(words[at : at + 4])},\n" for at in range(0, len(words), 4))


def table(name, words, kind="float"):
    return f"static const {kind} {name}[{len(words)}] = {{\n{lines(words, '    ')}}};\n"


def tables(name, rows):
    body = "".join(f"    {{\n{lines(row, '        ')}    }},\n" for row in rows)
    return f"static const float {name}[{len(rows)}][{len(rows[0])}] = {{\n{body}}};\n"


def rounded(value):
    return mpf(float(np.float32(float(value))))


@dataclass(frozen=True)
class Factor:
    """What an exponential is multiplied by, as a function of t up to `last`, and how much less than 0
    the exponent is. Leads at t = 0 are at most `most`. Where it is `steep`, it reaches many a lead in
    every interval: that becomes the center, and its shape needs no constant."""

    name: str
    function: Callable
    exponent: Callable
    last: int
    most: float
    steep: bool

    def lacking(self, lack=LACK):
        """With what an exponential lacks whose ln(2) is short."""
        return lambda t: self.function(t) * exp(lack * self.exponent(t))


# What is taken from x itself is at most half of it: then the difference and what rounding takes from it
# are exact.
MOST = {mills: 0.5, tanh_share: 0.5}


def of_phi(factor, last=12):
    """A factor of phi(t) as one of e^(-t^2/2)."""
    name, most = factor.__name__.upper(), MOST.get(factor, math.inf)
    return Factor(name, lambda t: factor(t) / sqrt(2 * pi), lambda t: t * t / 2, last, most, True)


def of_tanh(factor, last=9):
    name, most = factor.__name__.upper(), MOST.get(factor, math.inf)
    return Factor(name, factor, tanh_exponent, last, most, False)


@dataclass(frozen=True)
class Cut:
    """Intervals of t, which the low bits of (bits of place) >> some number: octaves of
    place = offset + scale t, each cut evenly."""

    per_octave: int
    octaves: int
    offset: mpf
    scale: mpf

    def place(self, t):
        return self.offset + self.scale * t

    def intervals(self):
        """Where each begins and ends, in the order of their numbers."""
        found = {}
        for octave, part in itertools.product(range(self.octaves + 3), range(self.per_octave)):
            ends = (mpf(2) ** octave * (1 + mpf(part + k) / self.per_octave) for k in (0, 1))
            low, high = ((end - self.offset) / self.scale for end in ends)
            number = (127 + octave) % self.octaves * self.per_octave + part
            if low >= 0:
                found.setdefault(number, (low, high))
        return [found[number] for number in sorted(found)]


@dataclass(frozen=True)
class Direct:
    """z = t, where a polynomial needs few digits."""

    cut: Cut

    def center(self, low, high):
        return mpf(0)

    def z(self, t, center):
        return t - center

    def t(self, z, center):
        return center + z


class Centered(Direct):
    """z = t - center, for intervals that are short."""

    def center(self, low, high):
        return rounded((low + high) / 2)


class Stretched(Direct):
    """z = (t - center) / place, in which S is a shorter polynomial, for intervals that are long."""

    def center(self, low, high):
        """The one whose z are as far from 0 at both ends."""
        first, last = self.cut.place(low), self.cut.place(high)
        return rounded((2 * first * last / (first + last) - self.cut.offset) / self.cut.scale)

    def z(self, t, center):
        return (t - center) / self.cut.place(t)

    def t(self, z, center):
        return (center + self.cut.offset * z) / (1 - self.cut.scale * z)


MANY = Cut(8, 4, offset=mpf(1), scale=mpf(1))
MANY_NEAR = Cut(8, 4, offset=mpf(1), scale=mpf(9) / 8)
FEW = Cut(4, 2, offset=mpf(7), scale=mpf(7) / 4)
MORE = Cut(4, 4, offset=mpf(1), scale=mpf(5) / 4)
MANY_TANH = Cut(8, 4, offset=mpf(1), scale=mpf(13) / 8)
MORE_TANH = Cut(4, 4, offset=mpf(1), scale=mpf(13) / 8)


def misfit(function, polynomial, low, high, last):
    """The largest relative error of what a polynomial says of a function up to `last`."""
    points = [low + (high - low) * step / 40 for step in range(41)]
    return max(abs(polynomial(t) / function(t) - 1) for t in points if t <= last or t == low)


def centers(variable):
    return [variable.center(low, high) for low, high in variable.cut.intervals()]


def shapes(factor, variable, degree):
    """Leads, centers and coefficients (constant first, if any) of every interval, and the largest
    error."""
    found = [best_fit(factor, variable, degree, i) for i in variable.cut.intervals()]
    errors, leads, middles, rows = zip(*found, strict=True)
    return leads, middles, columns(rows), max(errors)


def steps_from_0(count):
    """0, 1, -1, 2, -2 ..."""
    return [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(count)]


def best_fit(factor, variable, degree, interval):
    """What an interval's shape is off, lead, center and coefficients: of those tried the best."""
    if interval[0] >= factor.last:
        return mpf(0), mpf(0), variable.center(*interval), [mpf(0)] * (degree + (not factor.steep))
    tried = candidates(factor, variable, interval)
    fits = (fit(factor, variable, degree, interval, lead, center) for lead, center in tried)
    return min(fits, key=lambda found: found[0])


def candidates(factor, variable, interval):
    """Leads, and the center for each."""
    shape, middle = factor.lacking(), variable.center(*interval)
    nearest = to_bits(shape(middle), LEAD_BITS)
    last_bit = math.ldexp(1, math.frexp(nearest)[1] - LEAD_BITS)
    steps = steps_from_0(LEADS_REACHED if factor.steep else LEADS_TRIED)
    leads = [mpf(nearest + step * last_bit) for step in steps]
    if interval[0] == 0:
        leads = [lead for lead in leads if lead <= factor.most]
    if not factor.steep:
        return [(lead, middle) for lead in leads or [mpf(factor.most)]]
    inner = [middle + (end - middle) / 2 for end in interval]
    least, most = sorted(map(shape, inner))
    reached = [
        (lead, rounded(findroot(lambda t, lead=lead: shape(t) - lead, inner, solver="anderson")))
        for lead in leads
        if least < lead < most
    ]
    # A center is a float: there the factor is a little off the lead.
    return sorted(reached, key=lambda pair: abs(shape(pair[1]) / pair[0] - 1))[:LEADS_TRIED]


def fit(factor, variable, degree, interval, lead, center):
    """What an interval's shape is off, lead, center and coefficients."""
    shape = factor.lacking()
    ends = [variable.z(t, center) for t in interval]

    def relative(z):
        return shape(variable.t(z, center)) / lead - 1

    row = interpolate(relative, degree, *ends, through_0=factor.steep)
    row = [rounded(c) for c in row]

    def fitted(t):
        return lead * (1 + evaluate(row, variable.z(t, center)))

    error = misfit(shape, fitted, *interval, factor.last)
    return error, lead, center, row[1:] if factor.steep else row


def near_shapes(factor, variable, degree):
    """Coefficients of the factor itself, and the largest error.

    Coefficients are rounded from the highest down, and those that remain are fitted again.
    """
    shape = factor.lacking(LACK_NEAR)
    rows, worst = [], mpf(0)
    for low, high in variable.cut.intervals():
        center, row = variable.center(low, high), []
        for left in range(degree, -1, -1):

            def rest(z, center=center, row=row, left=left):
                return shape(variable.t(z, center)) - evaluate(row, z) * z ** (left + 1)

            ends = variable.z(low, center), variable.z(high, center)
            row = [rounded(interpolate(rest, left, *ends)[left]), *row]

        def fitted(t, center=center, row=row):
            return evaluate(row, variable.z(t, center))

        worst = max(worst, misfit(shape, fitted, low, high, factor.last))
        rows.append(row)
    return columns(rows), worst


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def shape_tables(factor, kind, variable, degree):
    name = f"{factor.name}_{kind}"
    leads, middles, rows, worst = shapes(factor, variable, degree)
    print(f"{name}SHAPES: degree {degree}, error 2^{nstr(log(worst, 2), 4)}")
    of_its_own = [table(f"{name}CENTERS", [hex_float(c) for c in middles])] if factor.steep else []
    return [
        *of_its_own,
        table(f"{name}LEADS", [hex_float(c) for c in leads]),
        tables(f"{name}SHAPES", [[hex_float(c) for c in row] for row in rows]),
    ]


def near_tables(factor, kind, variable, degree):
    name = f"{factor.name}_{kind}"
    rows, worst = near_shapes(factor, variable, degree)
    print(f"{name}NEAR_SHAPES: degree {degree}, error 2^{nstr(log(worst, 2), 4)}")
    return [tables(f"{name}NEAR_SHAPES", [[hex_float(c) for c in row] for row in rows])]


ERF_STEP, ERF_LAST, ERF_DEGREE = mpf(33) / 128, mpf("3.96"), 6


def erf_shape(number):
    """The polynomial around one center; around 0, where erf(z)/z counts, it has no constant."""
    center = number * ERF_STEP
    if number == 0:
        row = interpolate(lambda z: erf(z) / z, ERF_DEGREE - 1, mpf(10) ** -20, ERF_STEP / 2)
        return [mpf(0), *row]
    high = ERF_LAST - center if number == 15 else ERF_STEP / 2
    return interpolate(lambda z: erf(center + z), ERF_DEGREE, -ERF_STEP / 2, high)


def erf_table():
    rows = []
    for number in range(16):
        constant, factor, *rest = erf_shape(number)
        pairs = [(c, c - rounded(c)) for c in (constant, factor)]
        rows.append([*pairs[0], *pairs[1], *rest])
    return tables("ERF_SHAPES", [[hex_float(c) for c in column] for column in columns(rows)])


def write_tables():
    """Write the header; print how well the shapes fit."""
    parts = [*exponentials("", 16, 32), *exponentials("WIDE_", 8, 8), erf_table()]
    for name, variable in (
        ("WIDE_", Stretched(FEW)),
        ("TANH_", Centered(MANY_TANH)),
        ("TANH_WIDE_", Centered(MORE_TANH)),
    ):
        parts.append(table(f"GELU_{name}CENTERS", [hex_float(c) for c in centers(variable)]))
    for function, kind, variable, degree, near_variable, near_degree in (
        (slope, "", Centered(MANY), 4, Direct(MANY_NEAR), 3),
        (mills, "", Centered(MANY), 5, Direct(MANY_NEAR), 4),
        (slope, "WIDE_", Stretched(FEW), 4, Stretched(FEW), 4),
        (mills, "WIDE_", Centered(MORE), 7, Stretched(FEW), 5),
    ):
        parts += shape_tables(of_phi(function), kind, variable, degree)
        parts += near_tables(of_phi(function), kind, near_variable, near_degree)
    for function, kind, variable, degree in (
        (tanh_slope, "", Centered(MANY_TANH), 5),
        (tanh_share, "", Centered(MANY_TANH), 4),
        (tanh_slope, "WIDE_", Centered(MORE_TANH), 6),
        (tanh_share, "WIDE_", Centered(MORE_TANH), 6),
    ):
        parts += shape_tables(of_tanh(function), kind, variable, degree)
    TABLES.write_text(TABLE_HEAD + "".join(parts) + "\n#endif\n", encoding="utf-8")


# --- Tables for doubles ---------------------------------------------------------------------------

ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of the double nearest to the root of 1/2
PARTS, ANGLE_WORDS = 128, 21
DOUBLE_HEAD = """\
/* Tables for `double_math.h`; `tools/coefficients.py` makes them.
 *
 * LOG_PARTS: of each of 128 parts of an octave, from the root of 1/2 on, about 1 / center, and its logarithm with the sign
 * changed: to 42 digits behind the point, so that whole multiples of ln(2) of as many are added to it exactly, and the rest.
 * QUARTERS_DIGITS: the digits of 2/pi behind the point, behind a word of none.
 */
#ifndef ACLNN_DOUBLE_TABLES_H
#define ACLNN_DOUBLE_TABLES_H

#include <stdint.h>

"""


def double_of_bits(bits):
    return mpf(float(np.uint64(bits).view(np.float64)))


def log_part(number):
    """Of one part of an octave; of the one that 1 lies in, the logarithm is 0."""
    low, high = (double_of_bits(ROOT_HALF_BITS + (number + k) * 2**52 // PARTS) for k in (0, 1))
    if low <= 1 < high:
        return mpf(1), mpf(0), mpf(0)
    inverse = mpf(float(2 / (low + high)))
    exact = -log(inverse)
    head = mpf(round(exact * 2**42)) / 2**42
    return inverse, head, exact - head


def write_double_tables():
    rows = "".join(
        "    { " + ", ".join(float(value).hex() for value in log_part(number)) + " },\n"
        for number in range(PARTS)
    )
    mp.dps = 500
    digits = int(2 / pi * mpf(2) ** (64 * (ANGLE_WORDS - 1)))
    mp.dps = 60
    words = [f"{digits >> 64 * k & 2**64 - 1:#018x}u" for k in reversed(range(ANGLE_WORDS))]
    parts = [
        f"static const double LOG_PARTS[{PARTS}][3] = {{\n{rows}}};\n",
        table("QUARTERS_DIGITS", words, "uint64_t"),
    ]
    DOUBLE_TABLES.write_text(DOUBLE_HEAD + "".join(parts) + "\n#endif\n", encoding="utf-8")


def main():
    """Print name, degree, largest relative error on the interval, and the coefficients."""
    write_tables()
    write_double_tables()
    print(f"root of GELU' at -{nstr(ROOT, 30)}, with tanh at -{nstr(TANH_ROOT, 30)}")
    print(f"ln(2) lacks {float(LACK).hex()}")
    print("exp_near_rest, 32 steps:", *(float(np.float32(float(c))).hex() for c in near_grown()))
    for name, (function, degree, low, high, kind) in POLYNOMIALS.items():
        rounded = [kind(float(c)) for c in interpolate(function, degree, low, high)]
        points = [low + (high - low) * (j + mpf("0.5")) / 300 for j in range(300)]
        error = max(abs(evaluate(rounded, x) / function(x) - 1) for x in points)
        print(f"\n{name}: degree {degree}, error 2^{nstr(log(error, 2), 4)}")
        for coefficient in rounded:
            print(f"    {float(coefficient).hex()}")
    print_sines()
    print_rational("erfinv_factor", erfinv_factor, 10, 10, mpf(0), mpf(17))


if __name__ == "__main__":
    main()
