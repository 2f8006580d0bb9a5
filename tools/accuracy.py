"""Print the tables of accuracy: pointwise operators, row-wise operators, matrix products
and attention.

Run from the repository's root after `make test`: ``.venv/bin/python tools/accuracy.py``, with
the names of operators for their rows only, with ``--write`` to put them into `docs/numbers.md`, and
each operator's worst into `aclnn/operators/accuracy.json`, which ``aclnn ops`` shows.

Pointwise: results in half precision are compared with the correctly rounded ones, for all 65,536
inputs, with other operands that are ones, random, and the smallest there are; float32 at a million
points and, where `tests/support/oracle.py` has the formula, beside those where the error is large, with a
float64 reference, and with 120 digits where that is in doubt. ``--every`` looks at all float32 numbers
from 2^-20 to 128 besides, which takes minutes for each row. Rows are compared with references in
extended precision, products with those in float64.
"""

import argparse
import importlib.util
import itertools
import json
import sys
from pathlib import Path

import ml_dtypes
import mpmath
import numpy as np

import aclnn
from aclnn.acl import dtypes
from aclnn.cli.ops import dtypes_on
from aclnn.operators import REGISTRY

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
import oracle
import wide
from references import ADDENDS, EXTENDED, PRODUCTS, ROWS, attention, numbers
from wide import WIDE

ROOT = Path(__file__).parent.parent
for path in sorted(
    (ROOT / "tests" / "operators").glob("test_*.py")
):  # with references of their own
    if "@references.rows_of(" in path.read_text(encoding="utf-8"):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
PAGE = ROOT / "docs" / "numbers.md"
DATA = ROOT / "aclnn" / "operators" / "accuracy.json"
HALVES = [np.dtype(kind) for kind in (np.float16, ml_dtypes.bfloat16)]
DTYPES = [np.dtype(np.float32), *HALVES]
HEADERS = {
    "pointwise": """\
| operator | options | float32, max ULP | float16, misrounded | bfloat16, misrounded |
| --- | --- | --- | --- | --- |""",
    "rows": """\
| operator | result | float32, max ULP | float16, max ULP | bfloat16, max ULP |
| --- | --- | --- | --- | --- |""",
    "products": """\
| operator | K | float32 | float16 | bfloat16 |
| --- | --- | --- | --- | --- |""",
    "attention": """\
| operator | keys | float32 | float16 | bfloat16 |
| --- | --- | --- | --- | --- |""",
}

# What the numbers of a table are, for each dtype.
MEASURES = {
    "pointwise": ("ulp", "misrounded", "misrounded"),
    "rows": ("ulp", "ulp", "ulp"),
    "products": ("of_bound", "of_bound", "of_bound"),
    "attention": ("of_bound", "of_bound", "of_bound"),
}


# --- Pointwise operators whose formula is in tests/support/oracle.py --------------------------------------


def misrounded(name, options, kind):
    """How many of the 16-bit results are not the exact value rounded once."""
    x = oracle.every(kind)
    if not oracle.JUDGES[name].takes_gradient:
        return len(oracle.misrounded(name, options, getattr(aclnn, name)(x, **options), x))
    wrong = 0
    for g in oracle.half_gradients(kind).values():
        actual = getattr(aclnn, name)(g, x, **options)
        wrong += len(oracle.misrounded(name, options, actual, g, x))
    return wrong


def every_number(domain):
    """The float32 numbers from 2^-20 to 128 and their negatives, or those below 1, a part at a time."""
    first, last = (
        np.array([2**-20, 128 if domain == "line" else 1], np.float32).view(np.uint32).tolist()
    )
    for start in range(first, last, 2**20):
        positive = np.arange(start, min(start + 2**20, last), dtype=np.uint32).view(np.float32)
        yield positive
        if domain == "line":
            yield -positive


def largest_errors(name, options, every):
    """Errors of float32, the largest of each part of the points."""
    judge = oracle.JUDGES[name]
    for gradient in (1.0, "hard") if judge.takes_gradient else (None,):
        yield oracle.largest_error(name, options, oracle.float32_points(judge.domain), gradient)
        for x in every_number(judge.domain) if every else ():
            points = oracle.judged_points(name, options, x, gradient)
            yield oracle.error_and_distances(name, options, points)[0]


def judged(name, options, every):
    taken = dtypes_on(REGISTRY[name], "Ascend910B")
    codes = [dtypes.of_numpy(kind).name.removeprefix("ACL_") for kind in HALVES]
    halves = [
        misrounded(name, options, kind) if code in taken else "-"
        for kind, code in zip(HALVES, codes, strict=True)
    ]
    return f"{max(largest_errors(name, options, every)).ulp:.3f}", *halves


# --- Other pointwise operators, in extended precision ---------------------------------------------


def in_extended(call, reference, count):
    """The largest error in float32, and how many halves are misrounded, for each dtype."""
    halves = [misrounded_halves(call, reference, count, kind) for kind in HALVES]
    return f"{error_of_singles(call, reference, count):.3f}", *halves


def error_of_singles(call, reference, count):
    x = oracle.float32_points("line")
    rng = np.random.default_rng(5)
    others = [
        (rng.standard_normal(len(x)) * 2.0 ** rng.integers(-6, 7, len(x))).astype(np.float32)
        for _ in range(count - 1)
    ]
    operands = around(x, others)
    with np.errstate(all="ignore"):
        found, want = call(*operands), reference(np, *[v.astype(WIDE) for v in operands])
    near = np.isfinite(found) & np.isfinite(want) & (np.abs(want) >= 2.0**-126)
    return float(wide.ulps(found[near], want[near]))


def around(x, others):
    """The operands of a call: a gradient stands before `x`, a second factor behind it."""
    return [*others[1:], x, *others[:1]]


def misrounded_halves(call, reference, count, kind):
    """How many results are wrong, with each of three kinds of other operands; all are finite."""
    wrong, every = 0, oracle.every(kind)
    for other in oracle.half_gradients(kind).values() if count > 1 else [every]:
        operands = around(every, [other, other[::-1]][: count - 1])
        with np.errstate(invalid="ignore"):  # of signaling NaNs
            finite = np.all([np.isfinite(v.astype(np.float32)) for v in operands], 0)
        operands = [v[finite] for v in operands]
        with np.errstate(all="ignore"):
            found = call(*operands).astype(np.float32)
            want = rounded(reference, operands, kind).astype(np.float32)
        wrong += int(np.sum((found != want) & ~(np.isnan(found) & np.isnan(want))))
    return wrong


def rounded(reference, operands, kind):
    """The exact results rounded once: in extended precision, with mpmath where that is in doubt."""
    exact = reference(np, *[v.astype(WIDE) for v in operands]).astype(np.float64)
    result, low, high = (
        oracle.round_to_odd(exact * factor).astype(kind) for factor in (1, 1 - 2**-45, 1 + 2**-45)
    )
    doubt = (low.view(np.uint16) != high.view(np.uint16)) & np.isfinite(exact)
    for index in np.flatnonzero(doubt):
        with mpmath.workdps(oracle.DIGITS):
            value = reference(mpmath, *[mpmath.mpf(float(v[index])) for v in operands])
            result[index] = oracle.rounded_exactly(value, kind)
    return result


# --- Row-wise operators ---------------------------------------------------------------------------


SHAPES = [((3000, 8), -1), ((2000, 100), -1), ((300, 1000), -1), ((20, 20000), -1)]
COLUMNS = [((100, 300, 7), 1), ((1000, 300), 0)]  # norms have trailing dimensions only


def rows_of(name):
    """The rows of an operator, one for each result."""
    shapes = SHAPES if "norm" in name else SHAPES + COLUMNS
    errors = {}
    for kind in DTYPES:
        for shape, axis in shapes:
            for role, (found, want, most) in ROWS[name](kind, shape, axis).items():
                # What cancels does so in float64, of which 2^-40 of the largest addend is left.
                left = np.abs(want) > 2.0**-40 * float(most)
                kept = errors.setdefault(role, dict.fromkeys(DTYPES, 0.0))
                kept[kind] = max(kept[kind], float(wide.ulps(found[left], want[left])))
    for role, kept in errors.items():
        cells = [f"{kept[kind]:.4f}" for kind in DTYPES]
        yield f"| {name} | {role} | {' | '.join(cells)} |"


# --- Matrix products ------------------------------------------------------------------------------

HALF_ULP = {24: 2.0**-24, 11: 2.0**-11, 8: 2.0**-8}
K = (1, 16, 256, 4096)


def product(name, kind, k):
    """The largest error, as a part of what is promised."""
    a, b, added = numbers(kind, (67, k), (k, 45), (67, 45), seed=k)
    exact, size = (
        a.astype(float) @ b.astype(float),
        np.abs(a.astype(float)) @ np.abs(b).astype(float),
    )
    if name in ADDENDS:
        found = ADDENDS[name](added, a, b)
        exact, size = exact + added.astype(float), size + np.abs(added).astype(float)
    else:
        found = PRODUCTS[name](a, b)
    rounding = HALF_ULP[wide.DIGITS[kind.type]] * np.abs(exact)
    return float(np.max(np.abs(found.astype(float) - exact) / (k * 2.0**-24 * size + rounding)))


def products_of(name):
    for k in K:
        cells = [f"{product(name, kind, k):.2g}" for kind in DTYPES]
        yield f"| {name} | {k} | {' | '.join(cells)} |"


# --- Attention ------------------------------------------------------------------------------------

ATTENTION = ("scaled_dot_product_attention",)


def attended(kind, keys):
    """The largest error, as a part of what is promised, of heads of two sizes."""
    worst = 0.0
    for size in (64, 128):
        q, k, v = numbers(kind, (1, 4, 67, size), *[(1, 4, keys, size)] * 2, seed=keys)
        found = aclnn.scaled_dot_product_attention(q, k, v)
        exact, _, bound = attention(q, k, v)
        rounding = HALF_ULP[wide.DIGITS[kind.type]] * np.abs(exact)
        error = np.abs(found.astype(float) - exact) / (bound + rounding)
        worst = max(worst, float(np.max(error)))
    return worst


def attention_of(name):
    for keys in K:
        cells = [f"{attended(kind, keys):.2g}" for kind in DTYPES]
        yield f"| {name} | {keys} | {' | '.join(cells)} |"


# --- Tables ---------------------------------------------------------------------------------------


def pointwise(wanted, every):
    for name, judge in oracle.JUDGES.items():
        for options in judge.cases if name in wanted else ():
            cells = judged(name, options, every)
            yield f"| {name} | {oracle.words(options)} | {' | '.join(map(str, cells))} |"
    for (name, options), case in EXTENDED.items():
        if name in wanted:
            yield f"| {name} | {options} | {' | '.join(map(str, in_extended(*case)))} |"


def measured(wanted, every):
    """Table by table, the rows of the operators that are wanted."""
    yield "pointwise", pointwise(wanted, every)
    yield "rows", (row for name in ROWS if name in wanted for row in rows_of(name))
    yield "products", (row for name in MATRICES if name in wanted for row in products_of(name))
    yield "attention", (row for name in ATTENTION if name in wanted for row in attention_of(name))


MATRICES = (*PRODUCTS, *ADDENDS)
OPERATORS = [*oracle.JUDGES, *dict.fromkeys(name for name, _ in EXTENDED), *ROWS, *MATRICES]
OPERATORS += ATTENTION


def replaced(page, header, rows):
    """The page with these rows in the place of those that its table has for the same operators."""
    before, header, after = page.partition(f"{header}\n")
    lines = after.splitlines(keepends=True)
    table = list(itertools.takewhile(lambda line: line.startswith("|"), lines))
    known = {}
    for row in [*table, *(f"{row}\n" for row in rows)]:
        known[tuple(cell.strip() for cell in row.split("|")[1:3])] = row
    ordered = sorted(known, key=lambda case: OPERATORS.index(case[0]))
    return "".join([before, header, *[known[case] for case in ordered], *lines[len(table) :]])


def rows_in(page, header):
    """The cells of a table of the page, row by row."""
    lines = page.partition(f"{header}\n")[2].splitlines()
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines):
        yield [cell.strip() for cell in line.split("|")[1:-1]]


def worst_of(page):
    """By operator and dtype, the largest number that the page's tables have, and what it is."""
    worst = {}
    for table, header in HEADERS.items():
        for name, _, *cells in rows_in(page, header):
            for kind, measure, cell in zip(DTYPES, MEASURES[table], cells, strict=True):
                if cell == "-":  # the operator does not take the dtype
                    continue
                known = worst.setdefault(name, {}).setdefault(kind.name, {measure: 0})
                known[measure] = max(known[measure], json.loads(cell))
    return worst


def as_json(worst):
    """A line for each operator."""
    lines = [f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in sorted(worst.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="by default all")
    parser.add_argument("--every", action="store_true", help="look at every number in float32")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"put the rows into {PAGE.name}, the worst into {DATA.name}",
    )
    arguments = parser.parse_args()
    wanted = arguments.operators or OPERATORS
    for name in set(wanted) - set(OPERATORS):
        parser.error(
            f"{name} has no reference: a judge in tests/support/oracle.py, or a line in `ROWS` or `EXTENDED` of "
            f"tests/support/references.py, or a function under `rows_of` in its tests; exact ones are named in the text of {PAGE.name}"
        )
    for table, rows in measured(wanted, arguments.every):
        made = []
        for row in rows:
            if not made:
                print(HEADERS[table])
            made.append(row)
            print(row, flush=True)
        if arguments.write:
            page = replaced(PAGE.read_text(encoding="utf-8"), HEADERS[table], made)
            PAGE.write_text(page, encoding="utf-8")
            DATA.write_text(as_json(worst_of(page)), encoding="utf-8")


if __name__ == "__main__":
    main()
