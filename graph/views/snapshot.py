"""The planned arena as a PyTorch memory snapshot, for the viewer that people know.

Write it with ``pickle.dump(plan.to_memory_snapshot(), file)`` and drop the file on the memory
viewer: the workspace is one segment, and so is each output that holds intermediates; every
buffer is an allocation at its planned address, one step lasts one microsecond of the time axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..planner.lifetimes import Lifetime, Piece
from .text import MOST_NAMED

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

BASE = 0x7F00_0000_0000  # where the arena is shown to lie; addresses of 0 look like no address


SPACING = 1 << 40  # from the arena to the first output, and from each to the next


def plan_to_snapshot(plan: WorkspacePlan) -> dict[str, Any]:
    spans = _spans(plan)
    return {
        "segments": [_segment(address, size) for address, size in spans.values()],
        "device_traces": [_events(plan, spans)],
        "external_annotations": [],
        "allocator_settings": {"strategy": plan.strategy},
    }


def _spans(plan: WorkspacePlan) -> dict[str, tuple[int, int]]:
    """Address and bytes of the arena, which has no name, and of outputs by theirs."""
    used = {buffer.output for buffer in plan.buffers}
    found = {"": (BASE, plan.size)} if plan.size else {}
    for index, memory in enumerate(plan.spare, 1):
        if memory.output in used:
            found[memory.output] = (BASE + index * SPACING, memory.nbytes)
    return found


def _segment(address: int, size: int) -> dict[str, Any]:
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "allocated_size": 0,
        "active_size": 0,
        "requested_size": 0,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [_block(address, size)],
    }


def _block(address: int, size: int) -> dict[str, Any]:
    inactive = {"requested_size": 0, "state": "inactive", "frames": []}
    return {"address": address, "size": size, **inactive}


def _events(plan: WorkspacePlan, spans: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Events step by step: what is over is freed before what begins is allocated."""
    timed: list[tuple[int, int, dict[str, Any]]] = []
    for buffer in plan.buffers:
        if buffer.output not in spans or not buffer.padded:  # a viewer knows blocks by address
            continue
        frames, start = _frames(plan, buffer), spans[buffer.output][0] + buffer.offset
        for first, over, begin, end in _pieces(buffer):
            index = {"addr": start + begin, "size": end - begin, "stream": 0}
            timed.append((first, 1, _event("alloc", index, frames, first)))
            timed.append((over, 0, _event("free_requested", index, frames, over)))
            timed.append((over, 0, _event("free_completed", index, frames, over)))
    start = min([first for first, _, _ in timed], default=0)
    segments = [{"addr": at, "size": size, "stream": 0} for at, size in spans.values()]
    events = [_event("segment_alloc", segment, [], start) for segment in segments]
    return events + [event for _, _, event in sorted(timed, key=lambda item: item[:2])]


def _pieces(buffer: Buffer) -> list[Piece]:
    """An allocation for each stretch of steps without gaps, and for what stays in use in a gap."""
    life = Lifetime("", buffer.first, buffer.last + 1, buffer.padded, gaps=buffer.gaps)
    return life.pieces()


def _event(action: str, index: dict, frames: list, step: int) -> dict[str, Any]:
    return {"action": action, **index, "frames": frames, "time_us": step, "device": 0}


def _frames(plan: WorkspacePlan, buffer: Buffer) -> list[dict[str, Any]]:
    """The viewer's stack of an allocation: what it is, who makes it, who reads it."""
    step = plan.steps[buffer.first] if 0 <= buffer.first < len(plan.steps) else ""
    what = f"{buffer.contents or 'buffer'}, {buffer.nbytes} bytes at offset {buffer.offset}"
    more = buffer.shared_count - len(buffer.shared_with)
    shared = [*buffer.shared_with, *([f"{more} more"] if more > 0 else [])]
    padding = f", padded to {buffer.padded}" if buffer.padded != buffer.nbytes else ""
    where = buffer.output or "workspace"
    return [
        _frame(buffer.name, buffer.producer or step, buffer.first),
        _frame(what + padding, where, buffer.offset),
        *(_frame(f"read by {name}", "until step", buffer.last) for name in _some(buffer.consumers)),
        *(_frame(f"shares space with {name}", where, 0) for name in shared),
    ]


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    left = len(names) - MOST_NAMED
    return names if left <= 0 else (*names[:MOST_NAMED], f"{left} more")


def _frame(name: str, file: str, line: int) -> dict[str, Any]:
    return {"name": name, "filename": file, "line": line}
