"""Views of curves: a table with bars, a picture, JSON."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from .svg import CHAR, LINE, MARGIN, document, hover, rect, words_at
from .tables import Sheet, make, to_rich, to_text
from .text import human_bytes

if TYPE_CHECKING:
    from ..planner.ranges import Curve

SCHEMA = "aclnn.curve/1"
BAR = 32  # characters of the longest bar
LEFT, WIDTH, HEIGHT = 92, 640, 280


def curve_to_text(curve: Curve, wide: bool = False) -> str:
    return to_text(curve_sheet(curve), wide=wide)


def curve_to_rich(curve: Curve, wide: bool = False) -> Any:
    return to_rich(curve_sheet(curve), wide=wide)


def curve_sheet(curve: Curve) -> Sheet:
    """A row for each size that was planned, then the worst and the largest that fits."""
    most = max(curve.worst[1], 1)
    rows = [
        [
            size,
            nbytes,
            human_bytes(nbytes),
            "█" * math.ceil(BAR * nbytes / most),
            _fits(curve, nbytes),
        ]
        for size, nbytes in curve.points
    ]
    headers = [curve.name, "bytes", "", "size", "fits"]
    if curve.capacity is None:
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    return (make(headers, rows, f"{curve.name},bytes"), *curve_lines(curve))


def _fits(curve: Curve, nbytes: int) -> str:
    return "yes" if curve.capacity is None or nbytes <= curve.capacity else "no"


def curve_lines(curve: Curve) -> list[str]:
    """Lines that sum a curve up."""
    size, nbytes = curve.worst
    lines = [f"worst: {curve.name}={size} with {nbytes} bytes ({human_bytes(nbytes)})"]
    if curve.capacity is None:
        return lines
    room = f"{curve.capacity} bytes ({human_bytes(curve.capacity)})"
    if curve.largest is None:
        least = curve.points[0][0]
        return [*lines, f"nothing fits {room}: not even {curve.name}={least}"]
    known = dict(curve.points)
    lines.append(
        f"largest that fits {room}: {curve.name}={curve.largest} with {known[curve.largest]}"
    )
    if curve.largest + 1 in known:
        lines.append(f"{curve.name}={curve.largest + 1} needs {known[curve.largest + 1]}")
    return lines


def curve_data(curve: Curve) -> dict[str, Any]:
    """The document as plain data."""
    size, nbytes = curve.worst
    return {
        "schema": SCHEMA,
        "name": curve.name,
        "points": [{"size": size, "bytes": nbytes} for size, nbytes in curve.points],
        "worst": {"size": size, "bytes": nbytes},
        "capacity": curve.capacity,
        "largest": curve.largest,
    }


def curve_to_json(curve: Curve, indent: int | None = None) -> str:
    return json.dumps(curve_data(curve), indent=indent)


def curve_to_svg(curve: Curve) -> str:
    """Bytes over sizes, both from 0; a line for the capacity."""
    sizes = [size for size, _ in curve.points]
    most = max(curve.worst[1], curve.capacity or 0, 1) * 1.05

    def x(size: float) -> float:
        return LEFT + WIDTH * size / max(sizes)

    def y(nbytes: float) -> float:
        return MARGIN + HEIGHT * (1 - nbytes / most)

    body = []
    for quarter in range(5):
        nbytes = most * quarter / 4
        ends = f'x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(nbytes):.1f}" y2="{y(nbytes):.1f}"'
        body.append(f'<line class="grid" {ends}/>')
        body.append(words_at(LEFT - 8, y(nbytes) + 4, human_bytes(int(nbytes)), "s", "end"))
    line = "L".join(f"{x(size):.1f},{y(nbytes):.1f}" for size, nbytes in curve.points)
    body.append(f'<path class="again" d="M{line}"/>')
    free = 0.0
    for size, nbytes in curve.points:
        dot = rect(x(size) - 3, y(nbytes) - 3, 6, 6, "arg", 3)
        body.append(hover(f"{curve.name}={size}: {nbytes:,} bytes", dot))
        half = len(str(size)) * CHAR / 2
        if x(size) - half >= free:
            free = x(size) + half + CHAR
            body.append(words_at(x(size), MARGIN + HEIGHT + LINE, str(size), "s", "middle"))
    if curve.capacity is not None:
        height = y(curve.capacity)
        ends = f'x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{height:.1f}" y2="{height:.1f}"'
        body.append(f'<line class="bound" stroke-width="2" {ends}/>')
        body.append(words_at(LEFT + 8, height - 5, "capacity", "s bt"))
    foot = MARGIN + HEIGHT + 2 * LINE + 8
    lines = curve_lines(curve)
    body += [words_at(LEFT, foot + 18 * index, words) for index, words in enumerate(lines)]
    width = max(LEFT + WIDTH, *(LEFT + len(words) * CHAR for words in lines)) + MARGIN
    return document(width, foot + 18 * len(lines), f"bytes by {curve.name}", body)
