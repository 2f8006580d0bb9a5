"""Print the table of largest errors and misrounded halves, operator by operator and dtype by dtype.

Run from the repository's root after `make test`: ``.venv/bin/python benchmarks/accuracy.py``, with
the names of operators for their rows only.  Halves are compared with the exact value rounded once,
over all 65,536 inputs, with gradient 1 and with random gradients; float32 with a float64 reference,
and with 120 digits where that is in doubt.
"""

import argparse
import sys
from pathlib import Path

import mpmath
import numpy as np

import aclnn

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import oracle
import test_numbers as numbers


def misrounded(name, options, has_gradient, kind):
    """How many of the halves differ from the correctly rounded result."""
    x = numbers.every(kind)
    wrong = 0
    for random in (False, True) if has_gradient else (False,):
        rng = np.random.default_rng(11)
        g = rng.standard_normal(65536) if random else np.ones(65536)
        operands = [g.astype(kind), x] if has_gradient else [x]
        with np.errstate(all="ignore"):
            actual = getattr(aclnn, name)(*operands, **options).astype(np.float32)
            gradient = operands[0] if has_gradient else None
            exact = numbers.correctly_rounded(name, options, gradient, x, kind).astype(np.float32)
            finite = np.isfinite(x.astype(np.float32))
        same = (actual == exact) | (np.isnan(actual) & np.isnan(exact))
        wrong += int(np.sum(~same & finite))
    return wrong


def max_ulp(name, options, has_gradient):
    """The largest error over the sample of the tests, in units of float32's last place."""
    x = numbers.float32_points("unit" if "logit" in name else "line")
    g = (1 + np.arange(len(x)) % 7 / 8).astype(np.float32)
    operands = [g, x] if has_gradient else [x]
    actual = getattr(aclnn, name)(*operands, **options)
    with np.errstate(all="ignore"):
        exact = oracle.REFERENCES[name](*(v.astype(np.float64) for v in operands), **options)
    distance = oracle.ulp_distance(actual, exact)
    order = np.argsort(distance)
    largest = float(distance[order[-301]]) if len(order) > 300 else 0.0
    doubt = [index for index in order[-300:] if distance[index] > 0]
    with mpmath.workdps(numbers.DIGITS):
        for index in doubt:
            if not np.isfinite(actual[index]):
                continue
            value = numbers.exact_in_mpmath(
                name, options, float(g[index]) if has_gradient else 1.0, float(x[index])
            )
            error = abs(mpmath.mpf(float(actual[index])) - value) / numbers.unit(value)
            largest = max(largest, float(error))
    return largest


def main():
    known = dict.fromkeys(name for name, _, _ in numbers.CASES)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="by default all")
    wanted = parser.parse_args().operators or known
    for name in set(wanted) - set(known):
        parser.error(f"no operator {name}; there are {', '.join(known)}")
    print("| operator | options | float32, max ULP | float16, misrounded | bfloat16, misrounded |")
    print("| --- | --- | --- | --- | --- |")
    for name, options, has_gradient in numbers.CASES:
        if name not in wanted:
            continue
        words = ", ".join(f"{key}={value}" for key, value in options.items())
        halves = [misrounded(name, options, has_gradient, k) for k in numbers.HALVES.values()]
        print(
            f"| {name} | {words} | {max_ulp(name, options, has_gradient):.3f} | {halves[0]} | {halves[1]} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
