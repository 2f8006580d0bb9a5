"""Print the table of largest errors and misrounded halves, operator by operator and dtype by dtype.

Run from the repository's root after `make test`: ``.venv/bin/python tools/accuracy.py``, with
the names of operators for their rows only, with ``--write`` to put them into `docs/numbers.md`.

Halves are compared with the exact value rounded once, over all 65,536 inputs, with gradient 1, with
random gradients and with the smallest ones; float32 at a million points and beside those where the
error is large, with a float64 reference, and with 120 digits where that is in doubt. ``--every``
looks at all float32 numbers from 2^-20 to 128 besides, which takes minutes for each row.
"""

import argparse
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import aclnn

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import oracle

CASES = [(name, options) for name, judge in oracle.JUDGES.items() for options in judge.cases]
PAGE = Path(__file__).parent.parent / "docs" / "numbers.md"
HEADER = """\
| operator | options | float32, max ULP | float16, misrounded | bfloat16, misrounded |
| --- | --- | --- | --- | --- |"""


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


def replaced(page, rows):
    """The page with these rows in the place of those it has for the same operators and options."""
    before, header, after = page.partition(f"{HEADER}\n")
    table, blank, rest = after.partition("\n\n")
    known = {}
    for row in [*table.splitlines(), *rows]:
        name, options = (cell.strip() for cell in row.split("|")[1:3])
        known[name, options] = row
    cases = [(name, oracle.words(options)) for name, options in CASES]
    ordered = [known[case] for case in cases if case in known]
    return "".join([before, header, "\n".join(ordered), blank, rest])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="by default all")
    parser.add_argument("--every", action="store_true", help="look at every number in float32")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.name}")
    arguments = parser.parse_args()
    wanted = arguments.operators or oracle.JUDGES
    for name in set(wanted) - set(oracle.JUDGES):
        parser.error(f"no operator {name}; there are {', '.join(oracle.JUDGES)}")
    print(HEADER)
    rows = []
    for name, options in CASES:
        if name not in wanted:
            continue
        halves = [misrounded(name, options, np.dtype(k)) for k in (np.float16, ml_dtypes.bfloat16)]
        ulp = max(largest_errors(name, options, arguments.every)).ulp
        rows.append(f"| {name} | {oracle.words(options)} | {ulp:.3f} | {halves[0]} | {halves[1]} |")
        print(rows[-1], flush=True)
    if arguments.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
