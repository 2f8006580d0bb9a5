"""Quantities that colour the boxes of pictures, with a legend: bytes, times, whatever is counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .svg import PICTURE, rules_for
from .text import human_bytes, xml_words

if TYPE_CHECKING:
    from ..ir import Graph
    from ..planner.plan import WorkspacePlan

LEVELS = (0.03, 0.1, 0.25, 0.5, 1.0)  # parts of the largest amount at which colours end
_NAME = re.compile("[a-z]+")


@dataclass(frozen=True, slots=True)
class Heat:
    """An amount for each node (or, in pictures of plans, for each buffer), by name.

    Attributes
    ----------
    name : str
        What is counted, a word of small letters: ``bytes``, ``time``.
    amounts : dict of str to float
    words : callable
        An amount as people write it.

    Examples
    --------
    >>> Heat("bytes", {"a": 1024, "b": 1024}, human_bytes).label(["a", "b"])
    '2 KiB, 100%'
    """

    name: str
    amounts: Mapping[str, float]
    words: Callable[[float], str]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name is {self.name!r}, must be a word of small letters")

    @property
    def total(self) -> float:
        return sum(self.amounts.values())

    def of(self, names: Iterable[str]) -> float:
        """The amount of all names together."""
        return sum(self.amounts.get(name, 0) for name in names)

    def label(self, names: Iterable[str]) -> str:
        """The amount of names in words, with their part of the total."""
        amount = self.of(names)
        return f"{self.words(amount)}, {amount / (self.total or 1):.0%}"


def level_of(amount: float, most: float) -> int:
    """Which colour a box has, of `len(LEVELS)`.

    >>> [level_of(amount, 100) for amount in (0, 3, 4, 50, 100)]
    [0, 0, 1, 3, 4]
    """
    return next((n for n, end in enumerate(LEVELS) if amount <= end * most), len(LEVELS) - 1)


def heats_of(heat: object, by_bytes: Callable[[], Heat]) -> tuple[Heat, ...]:
    """Quantities that a picture is coloured by: none, bytes, one, or several to choose from."""
    if heat is None:
        return ()
    if heat == "bytes":
        return (by_bytes(),)
    found = (heat,) if isinstance(heat, Heat) else heat
    if not isinstance(found, Sequence) or not all(isinstance(one, Heat) for one in found):
        raise TypeError(f"heat is {heat!r}, must be 'bytes', a Heat or several")
    return tuple(found)


def traffic(graph: Graph) -> Heat:
    """The bytes that each node reads and writes in memory."""
    moved = {node.name: graph.bytes_read(node) + graph.bytes_written(node) for node in graph.nodes}
    return Heat("bytes", moved, human_bytes)  # type: ignore[arg-type]


def sizes(plan: WorkspacePlan) -> Heat:
    """The bytes of each buffer."""
    return Heat("bytes", {buffer.name: buffer.padded for buffer in plan.buffers}, human_bytes)  # type: ignore[arg-type]


class Scale:
    """The colours of one picture: what is largest in it has the strongest."""

    def __init__(self, heats: Sequence[Heat], boxes: Iterable[Sequence[str]]):
        groups = list(boxes)
        self.heats = heats
        self.most = [max([*map(heat.of, groups), 0.0]) for heat in heats]

    def style(self, names: Sequence[str]) -> str:
        """The classes of a box that stands for these names."""
        found = [
            f"{heat.name}{level_of(heat.of(names), most)}"
            for heat, most in zip(self.heats, self.most, strict=True)
        ]
        return " ".join(["hot", *found]) if found else ""

    def labels(self, names: Sequence[str]) -> list[str]:
        """A line on each quantity."""
        return [f"{heat.name} {heat.label(names)}" for heat in self.heats]

    @property
    def root(self) -> str:
        """The class of the picture: which of the quantities is shown."""
        return f"by-{self.heats[0].name}" if self.heats else ""

    @property
    def rules(self) -> str:
        """The style sheet: of several quantities one is seen at a time."""
        if not self.heats:
            return ""
        names = [heat.name for heat in self.heats]
        return rules_of(names)

    def legend(self, x: float, y: float) -> str:
        """Swatches and where they end, for each quantity."""
        return "".join(
            f'<g class="only-{heat.name}">{_swatches(heat, most, x, y)}</g>'
            for heat, most in zip(self.heats, self.most, strict=True)
        )


SWATCH = 88  # width, with room for an amount
LEGEND_WIDTH = SWATCH * len(LEVELS)
LEGEND_HEIGHT = 40


def _swatches(heat: Heat, most: float, x: float, y: float) -> str:
    words = f"{heat.name}, {heat.words(heat.total)} in all; a box has up to"
    parts = [f'<text x="{x:.1f}" y="{y:.1f}" class="s">{xml_words(words)}</text>']
    for level, end in enumerate(LEVELS):
        left = x + level * SWATCH
        parts.append(
            f'<g class="hot {heat.name}{level}"><rect x="{left:.1f}" y="{y + 8:.1f}" width="{SWATCH - 4}" '
            f'height="20" rx="3" class="box"/><text x="{left + SWATCH / 2 - 2:.1f}" y="{y + 22:.1f}" '
            f'text-anchor="middle" class="s">{xml_words(heat.words(end * most))}</text></g>'
        )
    return "".join(parts)


# On light pages, and on dark ones.
COLOURS = (
    "#f6f8fa|#151b23",
    "#fff4d6|#33280f",
    "#ffe2a8|#523b12",
    "#ffc46b|#704a10",
    "#ff9e4a|#8f4a0c",
)


def rules_of(names: Sequence[str]) -> str:
    """The style sheet of pictures that are coloured by one of these quantities at a time."""
    hidden = ",".join(f".only-{name}" for name in names)
    seen = ",".join(f".{PICTURE}.by-{name} .only-{name}" for name in names)
    levels = "".join(
        f"{','.join(f'.by-{n} .{n}{level}>rect:not(.hit)' for n in names)}{{fill:{colours}}}"
        for level, colours in enumerate(COLOURS)
    )
    coloured = rules_for(f".hot .s{{fill:#24292f|#e6edf3}}{levels}").replace(
        f"{PICTURE} .by-", f"{PICTURE}.by-"
    )
    return f"{rules_for(f'{hidden}{{display:none}}')}{seen}{{display:inline}}{coloured}"
