"""Bounds that rounding tests rest on, and float32 results beside their forms in double."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).parents[2] / "tools"
# Every so-manieth float32 number.
STEP = 2**18


def tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


bounds, exhaustive = tool("bounds"), tool("exhaustive")


def test_stated_bounds_are_what_is_computed_or_a_little_more():
    stated = bounds.stated_bounds()
    wrong = {
        (name, dtype): (stated[name][dtype], worst.error)
        for name, found in bounds.worst_bounds().items()
        for dtype, worst in found.items()
        if not bounds.is_fair(stated[name][dtype], worst.error)
    }
    assert wrong == {}


def test_bounds_follow_the_operations():
    """A sum that cancels, a product, a fused one: none is less off than what it is made of says."""
    a, b = bounds.Bounded([1.0], 1e-7), bounds.Bounded([-0.75], 1e-7)
    assert (a + b).off >= 2e-7 + 2.0**-24 * 0.25
    assert (a * b).off >= 1.75e-7 + 2.0**-24 * 0.75
    assert a.times_plus(b, a).off >= 2.75e-7
    assert bounds.vf_exp_minus(a).relative >= 1e-7


def test_bounds_of_wrong_coefficients_are_larger(monkeypatch):
    """What is read of the headers counts."""
    before = bounds.near_rest_misfit(bounds.Lanes(16))
    bounds.near_rest_misfit.cache_clear()
    text = bounds.text("simd/exp.h").replace("0x1.00007cp-1f", "0x1.10007cp-1f")
    monkeypatch.setattr(bounds, "text", lambda name: text)
    assert bounds.near_rest_misfit(bounds.Lanes(16)) > 10 * before
    bounds.near_rest_misfit.cache_clear()


@pytest.mark.parametrize("formula", exhaustive.formulas())
def test_float32_results_are_near_forms_in_double(formula):
    found = exhaustive.worst_of(exhaustive.isa.available(), formula, STEP)
    for level, worst in found.items():
        assert worst.off <= 1, (level, worst)
    points = [*exhaustive.random_points(40), *[one.at for one in found.values()]]
    off = exhaustive.double_is_off(exhaustive.isa.available()[-1], formula, points)
    assert off is None or off <= exhaustive.DOUBLE_OFF


def test_the_comparison_notices_one_wrong_result(monkeypatch):
    run = exhaustive.Kernel.run

    def broken(self, x, out):
        run(self, x, out)
        if out.dtype == np.float32:
            out[x == 1] = np.nextafter(out[x == 1], np.float32(9))

    monkeypatch.setattr(exhaustive.Kernel, "run", broken)
    level = exhaustive.isa.available()[-1]
    assert exhaustive.worst_of([level], "sqrt", STEP) == {level: (1.0, 1.0)}
