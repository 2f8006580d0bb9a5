"""Draw the activations and put the table of `docs/activations.md` into that page.

Run as `make accuracy` without OPERATORS, after `tools/accuracy.py --write`, whose numbers the table repeats. The picture
shows each function and its gradient, and below them the largest error of float32 results in ULP for each of
120 parts of the axis.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import accuracy
import numpy as np
import oracle
import references
from aclnn.graph.views import svg

import aclnn
from aclnn.cli.ops import accuracies, accuracy_in_words
from aclnn.operators import REGISTRY

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "activations.md"
LIST = PAGE.with_suffix(".toml")
PICTURE = ROOT / "docs" / "pictures" / "activations.svg"
TABLE = re.compile(r"(?<=<!-- measured -->\n\n)(?:\|.*\n)*")


@dataclass(frozen=True)
class Curve:
    """An operator along the axis."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    case: str = ""  # of the operator in `references.EXTENDED`, where no judge has the formula
    others: Mapping[str, float] = field(default_factory=dict)  # what other operands are there

    @property
    def told(self) -> str:
        """Its options in words."""
        others = {role: value for role, value in self.others.items() if role != "grad_output"}
        return oracle.words({**self.options, **others}) or self.case

    def computed(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Results in float32, and what they should be; of gradients, for a gradient of 1."""
        if judge := oracle.JUDGES.get(self.name):
            operands = [np.ones_like(x), x] if judge.takes_gradient else [x]
            exact = judge.arrays(*(v.astype(np.float64) for v in operands), **self.options)
            return getattr(aclnn, self.name)(*operands, **self.options), exact
        call, reference, _ = references.EXTENDED[self.name, self.case]
        operands = accuracy.around(x, [np.full_like(x, value) for value in self.others.values()])
        with np.errstate(all="ignore"):
            exact = reference(np, *[v.astype(references.WIDE) for v in operands])
            return call(*operands), exact.astype(np.float64)


@dataclass(frozen=True)
class Shown:
    """A function and its gradient, where there is one."""

    function: Curve
    gradient: Curve | None = None
    from_result: bool = False  # whether the gradient is one of the function's result
    ends: tuple[float, float] = (-6.0, 6.0)

    @property
    def told(self) -> str:
        """Its options, and which gradient it is where its name does not say so."""
        usual = self.gradient is None or self.gradient.name == f"{self.function.name}_backward"
        other = [] if usual else [self.gradient.name]
        return ", ".join([*filter(None, [self.function.told]), *other])

    @property
    def curves(self) -> list[tuple[str, Curve]]:
        """With the classes of their lines; the one in front comes last."""
        found = [("f", self.function)]
        return [*found, ("g", self.gradient)] if self.gradient else found

    def at(self, curve: Curve, x: np.ndarray) -> np.ndarray:
        """What a curve is computed of at a place of the axis."""
        if curve is self.gradient and self.from_result:
            return self.function.computed(x)[0]
        return x


def read(entry: dict[str, Any]) -> Shown:
    """An entry of the list; a gradient has those options of the function that it takes."""
    function = Curve(**entry["function"])
    given = entry.get("gradient")
    if given is None:
        return Shown(function, None, **_rest(entry))
    known = aclnn_options(given["name"])
    options = {role: value for role, value in function.options.items() if role in known}
    return Shown(function, Curve(**{"options": options, **given}), **_rest(entry))


def _rest(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("function", "gradient")}


def aclnn_options(name: str) -> list[str]:
    return [one.role for one in REGISTRY[name].attributes]


FAMILY = tuple([read(entry) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["shown"]])


# --- The picture ----------------------------------------------------------------------------------

COLUMNS = 4
WIDTH, HEIGHT = 246, 244  # of a cell
LEFT, RIGHT = 26, 240  # of its panels
UPPER, LOWER = (22, 142), (152, 208)
TOP = 64
BINS = 120
SAMPLES = 400_000
MOST_ULP = 1.0
RULES = svg.rules_for("""
.d{fill:#59636e|#9198a1;font:10px ui-monospace,monospace}
.f,.g{fill:none;stroke-width:1.6;stroke-linejoin:round}.f{stroke:#1f6fb4|#58a6e8}
.g{stroke:#c9570f|#f0883e}.error{stroke-width:1.2}.frame{fill:none;stroke:#d1d9e0|#3d444d}
.half{stroke:#d1d9e0|#3d444d;stroke-dasharray:3 3}
""")


class Scale(NamedTuple):
    """Where numbers lie in a picture."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)


def picture() -> str:
    """All of the family, in the order in which the page lists it."""
    rows = -(-len(FAMILY) // COLUMNS)
    body = [*legend()]
    for number, one in enumerate(FAMILY):
        row, column = divmod(number, COLUMNS)
        body.append(f'<g transform="translate({column * WIDTH + 4} {TOP + row * HEIGHT})">')
        body += [*functions(one), *errors(one), "</g>"]
    title = "Activations, their gradients, and the errors of both in ULP"
    return svg.document(COLUMNS * WIDTH + 8, TOP + rows * HEIGHT, title, body, rules=RULES) + "\n"


def legend() -> Iterator[str]:
    for x, kind, words in ((30, "f", "function"), (140, "g", "its gradient")):
        yield f'<path class="{kind}" d="M{x} 22h22"/>'
        yield svg.words_at(x + 28, 26, words)
    below = "below each: the largest error of float32 results in ULP, from 0 to 1, and half a ULP dashed"
    yield svg.words_at(30, 44, below, "s")


def functions(one: Shown) -> Iterator[str]:
    """The panel of the function and its gradient."""
    x = np.linspace(*one.ends, 241, dtype=np.float32)
    values = [(kind, curve.computed(one.at(curve, x))[0]) for kind, curve in one.curves]
    low, high = value_range([y for _, y in values])
    across, up = Scale(*one.ends, LEFT, RIGHT), Scale(low, high, UPPER[1], UPPER[0])
    yield svg.words_at(LEFT, 5, one.function.name, "t b")
    yield svg.words_at(LEFT, 18, one.told, "d")
    yield frame(UPPER)
    for place in ticks(low, high):
        y = up(place)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>'
        yield svg.words_at(LEFT - 4, y + 3, f"{place:g}", "d", "end")
    if one.ends[0] < 0:
        yield f'<path class="grid" d="M{across(0):.1f} {UPPER[0]}V{UPPER[1]}"/>'
    for kind, y in values:
        inside = np.isfinite(y) & (y >= low) & (y <= high)
        # Where a curve leaves the panel, it goes on to the border.
        y = np.clip(np.where(np.isnan(y), 0, y), low, high)
        near = inside | np.r_[False, inside[:-1]] | np.r_[inside[1:], False]
        yield line(kind, [(across(a), up(b)) for a, b in zip(x[near], y[near], strict=True)])


def value_range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    """What a panel shows: all that is there, but no more than from -6 to 6."""
    found = np.concatenate(values)
    found = found[np.isfinite(found)]
    low, high = max(float(found.min()), -6.0), min(float(found.max()), 6.0)
    room = 0.06 * (high - low)
    return low - room, high + room


def ticks(low: float, high: float) -> list[float]:
    step = next(step for step in (0.5, 1, 2, 3, 4) if (high - low) / step <= 5.5)
    return [step * n for n in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def frame(panel: tuple[int, int]) -> str:
    top, bottom = panel
    return (
        f'<rect class="frame" x="{LEFT}" y="{top}" width="{RIGHT - LEFT}" height="{bottom - top}"/>'
    )


def errors(one: Shown) -> Iterator[str]:
    """The panel of their errors, below."""
    rng = np.random.default_rng(7)
    low, high = one.ends
    x = np.sort(rng.uniform(low, high, SAMPLES).astype(np.float32))
    x = x[(x > low) & (x < high)]
    part = np.minimum((x - low) / (high - low) * BINS, BINS - 1).astype(int)
    across, up = Scale(0, BINS, LEFT, RIGHT), Scale(0, MOST_ULP, LOWER[1], LOWER[0])
    yield frame(LOWER)
    yield f'<path class="half" d="M{LEFT} {up(0.5):.1f}H{RIGHT}"/>'
    for value in (0.5, 0):
        yield svg.words_at(LEFT - 4, up(value) + 3, f"{value:g}", "d", "end")
    for place in (low, (low + high) / 2, high):
        at = Scale(low, high, LEFT, RIGHT)(place)
        side = "middle" if place < high else "end"
        yield svg.words_at(at, LOWER[1] + 12, f"{place:g}", "d", side)
    for kind, curve in one.curves:
        found = oracle.ulp_distance(*curve.computed(one.at(curve, x)))
        worst = np.zeros(BINS)
        np.maximum.at(worst, part, np.minimum(found, MOST_ULP))
        points = [(across(n + 0.5), up(value)) for n, value in enumerate(worst)]
        yield line(f"{kind} error", points)


def line(kind: str, points: Sequence[tuple[float, float]]) -> str:
    """A line through points, but for those that eyes would not miss."""
    places = np.array(points)
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in places[[*needed(places, 0, len(places) - 1)]])
    return f'<polyline class="{kind}" points="{text}"/>'


def needed(places: np.ndarray, first: int, last: int) -> list[int]:
    """Between two points: those, and where the straight line between them would be off."""
    (x0, y0), (x1, y1) = places[first], places[last]
    between = places[first + 1 : last]
    off = np.abs(y0 + (between[:, 0] - x0) * (y1 - y0) / (x1 - x0) - between[:, 1])
    if not len(off) or off.max() < 0.15:
        return [first, last]
    middle = first + 1 + int(off.argmax())
    return [*needed(places, first, middle), *needed(places, middle, last)[1:]]


# --- The table ------------------------------------------------------------------------------------


def table() -> str:
    """A row for each operator and choice of options."""
    heads = ["operator", "options", "float32", "half precision"]
    lines = [heads, ["---"] * len(heads)]
    seen = set()
    for curve in (curve for one in FAMILY for _, curve in one.curves):
        if (curve.name, curve.told) in seen:
            continue
        seen.add((curve.name, curve.told))
        lines.append([f"`{curve.name}`", curve.told, *accuracy_of(curve.name)])
    return "".join(f"| {' | '.join(words)} |\n" for words in lines)


def accuracy_of(name: str) -> tuple[str, str]:
    """What the tables of `docs/numbers.md` say, of float32 and of half precision."""
    measured = {dtype: accuracy_in_words(one) for dtype, one in accuracies()[name].items()}
    halves = dict.fromkeys(words for dtype, words in measured.items() if dtype != "float32")
    return measured["float32"], ", ".join(halves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--picture", action="store_true", help="only draw the picture")
    arguments = parser.parse_args()
    PICTURE.write_text(picture(), encoding="utf-8")
    if arguments.picture:
        return
    made = table()
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: made, page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
