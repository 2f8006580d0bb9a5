"""Functions of doubles: their errors on each instruction set, and that none is the C library's."""

import re
import shutil
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest

import aclnn
from aclnn import isa

LEVELS = isa.available()
POSITIVE = 1e-308, 1e308
# Of each formula: the function with many digits, where arguments come from, and units in the last place that results
# are off at most.
FUNCTIONS = {
    "exp": (mpmath.exp, (-745, 709.7), 1.0),
    "exp2": (lambda x: mpmath.mpf(2) ** x, (-1074, 1023.9), 0.9),
    "expm1": (mpmath.expm1, (-40, 709.7), 1.3),
    "log": (mpmath.log, POSITIVE, 0.6),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), POSITIVE, 0.6),
    "log10": (mpmath.log10, POSITIVE, 0.6),
    "log1p": (mpmath.log1p, (-1 + 1e-16, 1e17), 0.6),
    "sin": (mpmath.sin, (-1e308, 1e308), 0.7),
    "cos": (mpmath.cos, (-1e308, 1e308), 0.7),
    "erf": (mpmath.erf, (-6, 6), 1.2),
}
# Memory, threads and Python; of the C library's functions of numbers only one that is exact in all of them.
ALLOWED = re.compile(
    r"mem(cpy|set|move|cmp)|fmod|malloc|calloc|free|strrchr|strlen|sched_yield|pthread_\w+|"
    r"_?Py\w+|_ITM_\w+|__(gmon_start|register_atfork|cxa_finalize|stack_chk_fail|tls_get_addr)\w*"
)


def computed(level, formula, *arguments):
    """Results in double of the kernels for one instruction set."""
    kernels = isa.kernels(level)
    arrays = [np.ascontiguousarray(one, np.float64) for one in arguments]
    out = np.empty_like(arrays[0])
    ref = kernels.compute_kernel(formula, ("float64",) * len(arrays), "float64")
    places = [(one.ctypes.data, 0, 8) for one in (*arrays, out)]
    kernels.run(ref, places[:-1], places[-1], 1, out.size)
    return out


def points(low, high, count=150):
    """Evenly spread, near 0, near 1, and of every magnitude."""
    rng = np.random.default_rng(7)
    size = np.log10(max(abs(low), high))
    found = [
        rng.uniform(max(low, -1e3), min(high, 1e3), count),
        rng.choice([-1, 1], count) * 10.0 ** rng.uniform(-300 if high < 1e300 else 0, size, count),
        10.0 ** rng.uniform(-20, 0, count),
        1 + rng.normal(size=count) * 10.0 ** rng.uniform(-15, 0, count),
        np.arange(1, count) * (np.pi / 2),
    ]
    x = np.concatenate(found)
    return x[(x > low) & (x < high)]


def units_off(found, wanted):
    """The largest error in units in the last place; results without a wanted number are not finite."""
    worst = 0.0
    for one, exact in zip(found.tolist(), wanted, strict=True):
        _, exponent = mpmath.frexp(exact)
        unit = mpmath.mpf(2) ** (max(exponent, -1021) - 53)
        worst = max(worst, float(abs(mpmath.mpf(one) - exact) / unit))
    return worst


@pytest.mark.parametrize("formula", FUNCTIONS)
def test_doubles_are_near_exact_results(formula):
    function, (low, high), bound = FUNCTIONS[formula]
    x = points(low, high)
    with mpmath.workprec(160):
        wanted = [function(mpmath.mpf(one)) for one in x.tolist()]
        for level in LEVELS:
            more = 0.0 if level != "generic" else 0.2  # without a fused multiply-add
            assert units_off(computed(level, formula, x), wanted) <= bound + more, level


def test_powers_of_doubles_are_near_exact_results():
    rng = np.random.default_rng(11)
    a = np.concatenate([10.0 ** rng.uniform(-300, 300, 200), 1 + rng.normal(size=200) / 1000])
    b = np.concatenate([rng.uniform(-1, 1, 200), rng.uniform(-6e5, 6e5, 200)])
    with mpmath.workprec(200):
        wanted = [mpmath.mpf(x) ** mpmath.mpf(y) for x, y in zip(a, b, strict=True)]
        normal = np.array([1e-300 < one < 1e300 for one in wanted])
        wanted = [one for one, kept in zip(wanted, normal, strict=True) if kept]
        for level in LEVELS:
            assert units_off(computed(level, "pow", a[normal], b[normal]), wanted) <= 0.95, level


def test_ends_of_functions_of_doubles():
    inf, nan, tiny = np.inf, np.nan, 5e-324
    x = np.float64([0.0, -0.0, inf, -inf, nan, tiny, -tiny, 1.0, 710.0, -746.0])
    wanted = {
        "exp": [1, 1, inf, 0, nan, 1, 1, np.e, inf, 0],
        "exp2": [1, 1, inf, 0, nan, 1, 1, 2, 2.0**710, 2.0**-746],
        "expm1": [0.0, -0.0, inf, -1, nan, tiny, -tiny, np.e - 1, inf, -1],
        "log": [-inf, -inf, inf, nan, nan, -744.4400719213812, nan, 0, np.log(710), nan],
        "log2": [-inf, -inf, inf, nan, nan, -1074, nan, 0, np.log2(710), nan],
        "log10": [-inf, -inf, inf, nan, nan, -323.3062153431158, nan, 0, np.log10(710), nan],
        "log1p": [0.0, -0.0, inf, nan, nan, tiny, -tiny, np.log(2), np.log(711), nan],
        "sin": [0.0, -0.0, nan, nan, nan, tiny, -tiny, np.sin(1), np.sin(710), -np.sin(746)],
        "cos": [1, 1, nan, nan, nan, 1, 1, np.cos(1), np.cos(710), np.cos(746)],
        "erf": [0.0, -0.0, 1, -1, nan, tiny, -tiny, 0.8427007929497149, 1, -1],
    }
    for level in LEVELS:
        for formula, ends in wanted.items():
            found, ends = computed(level, formula, x), np.float64(ends)
            np.testing.assert_allclose(
                found, ends, rtol=5e-16, atol=0, err_msg=f"{level} {formula}"
            )
            zero = ends == 0
            np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(ends[zero]))


def test_powers_at_the_ends():
    """Those of IEEE 754, of which NumPy has the C library's."""
    ends = [0.0, 1.0, 2.0, 0.5, 3.0, np.inf, 5e-324, 1e308, 2.0**52 + 1, 2.0**53 + 2, 1.5, np.nan]
    a, b = np.meshgrid([*ends, *np.negative(ends)], [*ends, *np.negative(ends)])
    with np.errstate(all="ignore"):
        wanted = np.power(a.ravel(), b.ravel())
    for level in LEVELS:
        found = computed(level, "pow", a.ravel(), b.ravel())
        np.testing.assert_allclose(found, wanted, rtol=5e-16, atol=0)
        known = wanted == wanted
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


def test_lengths_of_complex_numbers():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 300)) * 10.0 ** rng.uniform(-300, 300, 300)
    kernels = isa.kernels(LEVELS[-1])
    z, out = x + 1j * y, np.empty_like(x)
    ref = kernels.compute_kernel("abs", ("complex128",), "float64", reads="complex128")
    kernels.run(ref, [(z.ctypes.data, 0, 16)], (out.ctypes.data, 0, 8), 1, out.size)
    with mpmath.workprec(160):
        wanted = [
            mpmath.sqrt(mpmath.mpf(a) ** 2 + mpmath.mpf(b) ** 2) for a, b in zip(x, y, strict=True)
        ]
        assert units_off(out, wanted) <= 0.6


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_kernels_call_no_function_of_the_c_library_but_for_memory():
    """`fma`, of x86-64 without the instruction, is rounded correctly wherever it is."""
    folder = Path(aclnn.__file__).parent
    modules = [*folder.glob("_kernels*.so"), *folder.glob("kernels/_*.so")]
    assert len(modules) >= 16
    for module in modules:
        told = subprocess.run(
            ["nm", "-D", "--undefined-only", str(module)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = [line.split()[-1].partition("@")[0] for line in told.splitlines()]
        assert names
        foreign = [name for name in names if not ALLOWED.fullmatch(name) and name != "fma"]
        assert foreign == [], module.name
