"""`aclnn plan --check`: traces of memory, and plans of any origin."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from aclnn.acl.errors import invalid
from aclnn.cli import show
from aclnn.graph import (
    TraceEvent,
    TraceFault,
    WorkspacePlan,
    check_capacity,
    check_trace,
    lifetimes_from_csv,
    plan_lifetimes,
    trace_from_csv,
)
from aclnn.graph.planner.recorded import plan_in_json


def run(options: argparse.Namespace, plan: WorkspacePlan | None) -> int:
    """Print the faults of the file; 1 where there are some."""
    name = options.check
    try:
        text = Path(name).read_text(encoding="utf-8")
        if _is_trace(text):
            events = trace_from_csv(text)
            return _tell(options, events, check_trace(events, plan))
        found = plan_in_json(text) if text.lstrip().startswith("{") else _placed(text)
        if options.capacity is not None:
            check_capacity(found.lifetimes, options.capacity)
            if found.size > options.capacity:
                top = max(found.buffers, key=lambda one: one.end)
                raise ValueError(
                    f"the capacity is {options.capacity} bytes, but {top.name} ends at {top.end}"
                )
    except (ValueError, RecursionError) as error:
        raise invalid(f"{name}: {error}") from None
    if options.json:
        print(json.dumps({"size": found.size, "buffers": len(found.buffers), "faults": []}))
    else:
        print(f"no faults: {len(found.buffers)} buffers in {found.size} bytes")
    return 0


def _is_trace(text: str) -> bool:
    header = text.partition("\n")[0]
    return "action" in [word.strip() for word in header.split(",")]


def _placed(text: str) -> WorkspacePlan:
    """The plan of a CSV file in which every row has its offset; MiniMalloc's rules hold or are refused."""
    lives = lifetimes_from_csv(text)
    for index, life in enumerate(lives, 1):
        if life.offset is None:
            raise ValueError(f"row {index}: {life.name} has no offset")
    return plan_lifetimes(lives)


def _tell(
    options: argparse.Namespace, events: tuple[TraceEvent, ...], faults: tuple[TraceFault, ...]
) -> int:
    streams = len({event.stream for event in events if event.stream})
    with show.until_pipe_closes():
        if options.json:
            listed = [
                {"kind": one.kind, "rows": one.rows, "message": one.message} for one in faults
            ]
            print(json.dumps({"events": len(events), "streams": streams, "faults": listed}))
        elif faults:
            print("\n".join(map(str, faults)))
        else:
            print(f"no faults: {len(events)} events on {streams} streams")
    return 1 if faults else 0
