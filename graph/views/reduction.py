"""Views of proposals to make plans smaller."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .json import plain
from .tables import Sheet, make, to_rich, to_text
from .text import human_bytes

if TYPE_CHECKING:
    from ..planner.reduction import Reduction

SCHEMA = "aclnn.reduction/1"


def reduction_to_text(made: Reduction, wide: bool = False) -> str:
    return to_text(reduction_sheet(made), wide=wide)


def reduction_to_rich(made: Reduction, wide: bool = False) -> Any:
    return to_rich(reduction_sheet(made), wide=wide)


def reduction_sheet(made: Reduction) -> Sheet:
    """A line of each change, what it costs below it, and how near the order is to the best."""
    plan = made.plan
    parts: list[Any] = [f"workspace {plan.size} bytes ({human_bytes(plan.size)})"]
    rows = [
        [index, one.kind, one.name, one.saves, f"{one.saves / plan.size:.1%}"]
        for index, one in enumerate(made.changes, 1)
    ]
    if rows:
        headers = ["", "change", "buffer", "saves", "share"]
        parts.append(make(headers, rows, ",saves,share", "buffer"))
    for index, one in enumerate(made.changes, 1):
        parts += [f"{index}: {one.words}", f"   costs: {one.costs}"]
    if not rows:
        parts.append("no change of one buffer at the peak makes it smaller")
    return (*parts, *_order_lines(made))


def _order_lines(made: Reduction) -> list[str]:
    peak, bound = made.order_peak, made.order_bound
    if peak <= bound:
        return [f"order of steps: {peak} bytes live at once; no order has less"]
    share = peak / bound - 1 if bound else 0
    return [f"order of steps: {peak} bytes live at once, {share:.1%} above the bound {bound}"]


def reduction_data(made: Reduction) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schema": SCHEMA,
        "size": made.plan.size,
        "changes": plain(made.changes),
        "order": {
            "peak": made.order_peak,
            "bound": made.order_bound,
        },
    }


def reduction_to_json(made: Reduction, indent: int | None = None) -> str:
    return json.dumps(reduction_data(made), indent=indent)
