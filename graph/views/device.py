"""Views of plans of several memories: tables, a picture of each memory, JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .json import plain, plan_data
from .plan_svg import plan_to_svg
from .svg import LINE, MARGIN, document, without_rules, words_at
from .tables import Sheet, make, to_rich, to_text
from .text import human_bytes, plan_sheet

if TYPE_CHECKING:
    from ..planner.memories import DevicePlan, Memory

SCHEMA = "aclnn.device-plan/1"
MOST_MOVES = 20  # rows of the table of copies
_SIZE = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')


def device_to_text(device: DevicePlan, wide: bool = False) -> str:
    return to_text(device_sheet(device, wide), wide=wide)


def device_to_rich(device: DevicePlan, wide: bool = False) -> Any:
    return to_rich(device_sheet(device, wide), wide=wide)


def time_words(seconds: float) -> str:
    """Seconds with a unit that keeps the number short.

    >>> time_words(0), time_words(2.5e-6), time_words(0.25), time_words(3e-10)
    ('0 s', '2.5 µs', '250 ms', '0.3 ns')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds == 0 or seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def device_sheet(device: DevicePlan, wide: bool = False) -> Sheet:
    """A row for each memory, then the buffers of each, the copies between them, and what it costs."""
    rows = [
        [
            memory.name,
            memory.size,
            plan.size,
            f"{plan.size / memory.size:.1%}",
            len(plan.buffers),
            f"{memory.bandwidth / 1e9:g} GB/s",
            memory.alignment,
        ]
        for memory, plan in zip(device.memories, device.plans, strict=True)
    ]
    headers = ["memory", "bytes", "planned", "used", "buffers", "bandwidth", "alignment"]
    right = ",".join(headers[1:])
    parts: list[Any] = [make(headers, rows, right, "memory")]
    for memory, plan in zip(device.memories, device.plans, strict=True):
        if plan.buffers:
            parts += [f"{memory.name}:", *plan_sheet(plan)]
    return (*parts, *_move_parts(device, wide), *cost_lines(device))


def _move_parts(device: DevicePlan, wide: bool) -> list[Any]:
    if not device.moves:
        return []
    shown = device.moves if wide else device.moves[:MOST_MOVES]
    rows = [
        [one.name, one.step, one.source, one.target, one.nbytes, time_words(one.seconds)]
        for one in shown
    ]
    headers = ["copied", "before step", "from", "to", "bytes", "takes"]
    left = len(device.moves) - len(shown)
    more = [f"copies that are not shown: {left} (--wide)"] if left else []
    return [make(headers, rows, "before step,bytes,takes", "copied"), *more]


def cost_lines(device: DevicePlan) -> list[str]:
    """Time of traffic and copies, and of the same in the slowest memory alone."""
    slowest = device.memories[-1]
    moved = sum(one.nbytes for one in device.moves)
    taken = sum(one.seconds for one in device.moves)
    return [
        f"reads, writes and copies take {time_words(device.seconds)}; with everything in "
        f"{slowest.name} {time_words(device.slow_seconds)}",
        f"copies: {len(device.moves)}, {moved} bytes ({human_bytes(moved)}), {time_words(taken)}",
    ]


def device_data(device: DevicePlan) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schema": SCHEMA,
        "memories": [
            {**plain(memory), "plan": plan_data(plan)}
            for memory, plan in zip(device.memories, device.plans, strict=True)
        ],
        "moves": plain(device.moves),
        "seconds": device.seconds,
        "slow_seconds": device.slow_seconds,
    }


def device_to_json(device: DevicePlan, indent: int | None = None) -> str:
    return json.dumps(device_data(device), indent=indent)


def device_to_svg(device: DevicePlan) -> str:
    """The memories' pictures one below the other, each under its name."""
    y, wide, body = float(MARGIN), 0.0, []
    for memory, plan in zip(device.memories, device.plans, strict=True):
        picture = without_rules(plan_to_svg(plan))
        size = _SIZE.search(picture)
        assert size is not None
        body.append(words_at(MARGIN, y + LINE, _title(memory), "t b"))
        body.append(picture.replace("<svg ", f'<svg x="0" y="{y + LINE + 8:.0f}" ', 1))
        y += LINE + 8 + float(size[2])
        wide = max(wide, float(size[1]))
    for line in cost_lines(device):
        body.append(words_at(MARGIN, y + LINE, line))
        y += LINE + 4
    return document(max(wide, 560), y + MARGIN, "memories", body)


def _title(memory: Memory) -> str:
    size = human_bytes(memory.size)
    return f"{memory.name}: {size}, {memory.bandwidth / 1e9:g} GB/s, alignment {memory.alignment}"
