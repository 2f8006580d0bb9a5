"""Print the polynomial coefficients of `aclnn/vector_math.h`, and how well each fits.

Every polynomial interpolates its function at Chebyshev nodes, computed with 60 digits, and is then
rounded to the type it is evaluated in: ``python benchmarks/coefficients.py``.
"""

import numpy as np
from mpmath import atanh, cos, erfc, exp, findroot, log, lu_solve, matrix, mp, mpf, nstr, pi, sqrt

mp.dps = 60


def mills(t):
    """Mills' ratio of the normal distribution, Phi(-t) / phi(t) (Abramowitz & Stegun 26.2)."""
    return sqrt(pi / 2) * exp(t * t / 2) * erfc(t / sqrt(2))


ROOT = findroot(lambda t: mills(t) - t, mpf("0.75"))


def slope(t):
    """S in GELU'(-t) = phi(t) (t0 - t) S(t)."""
    beside = t if abs(t - ROOT) > mpf(10) ** -20 else ROOT + mpf(10) ** -20
    return (mills(beside) - beside) / (ROOT - beside)


def tail(r):
    """(e^r - 1 - r) / r^2."""
    return (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -8 else mpf(1) / 2 + r / 6 + r * r / 24


def interpolate(function, degree, low, high):
    """Coefficients of the polynomial through the Chebyshev nodes of [low, high], constant first."""
    nodes = [
        (low + high) / 2 + (high - low) / 2 * cos(pi * (2 * j + 1) / (2 * (degree + 1)))
        for j in range(degree + 1)
    ]
    powers = matrix(degree + 1, degree + 1)
    values = matrix(degree + 1, 1)
    for row, node in enumerate(nodes):
        values[row] = function(node)
        for column in range(degree + 1):
            powers[row, column] = node**column
    return list(lu_solve(powers, values))


def evaluate(coefficients, x):
    result = mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + mpf(float(coefficient))
    return result


HALF_LN2 = log(2) / 2
POLYNOMIALS = {
    # name: function, degree, interval, type, and what the error is relative to
    "exp_tail": (tail, 9, -HALF_LN2 * mpf("1.01"), HALF_LN2 * mpf("1.01"), np.float64),
    "exp_short": (exp, 6, -HALF_LN2 * mpf("1.001"), HALF_LN2 * mpf("1.001"), np.float64),
    "exp_f32, exp_pair_f32": (tail, 4, -HALF_LN2 * mpf("1.001"), HALF_LN2 * mpf("1.001"), np.float32),
    "gelu_slope_factor": (
        lambda u: slope(4 * (1 + u) / (1 - u)), 18, mpf(-1), mpf(36) / 44, np.float64,
    ),
    "mills_factor": (
        lambda u: mills(4 * (1 + u) / (1 - u)) * (4 * (1 + u) / (1 - u) + 4),
        20, mpf(-1), mpf(36) / 44, np.float64,
    ),
    "gelu_slope_short": (
        lambda u: slope((1 / u - 1) * 4) / sqrt(2 * pi), 9, mpf(1) / 6, mpf(1), np.float64,
    ),
    "gelu_slope_f32": (
        lambda u: slope((1 / u - 1) * 4) / sqrt(2 * pi), 7, 1 / mpf("5.5"), mpf(1), np.float32,
    ),
    "log_f64": (
        lambda z: (atanh(sqrt(z)) / sqrt(z) - 1) / z, 7, mpf(10) ** -30, mpf("0.0297"), np.float64,
    ),
}  # fmt: skip


def main():
    """Print name, degree, largest relative error on the interval, and the coefficients."""
    print(f"root of GELU' at -{nstr(ROOT, 30)}")
    for name, (function, degree, low, high, kind) in POLYNOMIALS.items():
        rounded = [kind(float(c)) for c in interpolate(function, degree, low, high)]
        points = [low + (high - low) * (j + mpf("0.5")) / 300 for j in range(300)]
        error = max(abs(evaluate(rounded, x) / function(x) - 1) for x in points)
        print(f"\n{name}: degree {degree}, error 2^{nstr(log(error, 2), 4)}")
        for coefficient in rounded:
            print(f"    {float(coefficient).hex()}")


if __name__ == "__main__":
    main()
