"""Views of the sum of a model's memory: a table of kinds, who lives at the peak, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..planner.footprint import KINDS
from .json import plain, plan_data
from .tables import Sheet, make, to_rich, to_text
from .text import human_bytes

if TYPE_CHECKING:
    from ..planner.footprint import Entry, Footprint
    from ..planner.plan import WorkspacePlan

SCHEMA = "aclnn.footprint/1"
MOST_LIVE = 10  # buffers at the peak that are listed
MOST_ENTRIES = 3  # of a kind that are named


def footprint_to_text(made: Footprint, wide: bool = False) -> str:
    return to_text(footprint_sheet(made, wide), wide=wide)


def footprint_to_rich(made: Footprint, wide: bool = False) -> Any:
    return to_rich(footprint_sheet(made, wide), wide=wide)


def footprint_sheet(made: Footprint, wide: bool = False) -> Sheet:
    """A row for each kind, the total, assumptions, and a table of buffers at the peak."""
    total = max(made.total, 1)
    rows = []
    for kind in KINDS:
        own = [entry for entry in made.entries if entry.kind == kind]
        nbytes = made.of_kind(kind)
        if nbytes or own:
            share = f"{nbytes / total:.1%}"
            rows.append([kind, nbytes, human_bytes(nbytes), share, _names(own, wide)])
    rows.append(["total", made.total, human_bytes(made.total), "100.0%", _peak_words(made.plan)])
    table = make(["memory", "bytes", "", "share", "of"], rows, "bytes,share", "memory")
    return (table, *_assumptions(made), *peak_parts(made.plan, wide))


def _names(entries: list[Entry], wide: bool) -> str:
    largest = sorted(entries, key=lambda one: -one.nbytes)
    shown = largest if wide else largest[:MOST_ENTRIES]
    more = f" and {len(largest) - len(shown)} more" if len(largest) > len(shown) else ""
    return ", ".join(one.name for one in shown) + more


def _peak_words(plan: WorkspacePlan) -> str:
    at = plan.peak_step
    if not plan.buffers:
        return "no intermediates"
    return f"peak at step {at}" + (f", {plan.steps[at]}" if at < len(plan.steps) else "")


def _assumptions(made: Footprint) -> list[str]:
    found = dict.fromkeys(
        f"assumed: {one.kind} {one.assumed}" for one in made.entries if one.assumed
    )
    return list(found)


def peak_parts(plan: WorkspacePlan, wide: bool = False) -> list[Any]:
    """A table of buffers that are live at the peak, largest first."""
    live = plan.must_shrink
    if not live:
        return []
    shown = live if wide else live[:MOST_LIVE]
    rows = [
        [
            one.name,
            one.contents or "-",
            f"{one.first}-{one.last}",
            one.padded,
            human_bytes(one.padded),
        ]
        for one in shown
    ]
    left = len(live) - len(shown)
    more = [f"and {left} more, {sum(one.padded for one in live[MOST_LIVE:])} bytes"] if left else []
    headers = ["live at the peak", "contents", "steps", "bytes", ""]
    return [make(headers, rows, "bytes", "live at the peak"), *more]


def footprint_data(made: Footprint) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schema": SCHEMA,
        "name": made.name,
        "total": made.total,
        "kinds": {kind: made.of_kind(kind) for kind in KINDS},
        "entries": [plain(entry) for entry in made.entries],
        "peak_step": made.plan.peak_step,
        "plan": plan_data(made.plan),
    }


def footprint_to_json(made: Footprint, indent: int | None = None) -> str:
    return json.dumps(footprint_data(made), indent=indent)
