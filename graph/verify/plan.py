"""Whether a plan is right, whoever made it; nothing here is shared with planners."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..loops.tiling import ALIGNMENT

if TYPE_CHECKING:
    from ..planner.lifetimes import SpareMemory
    from ..planner.plan import Buffer, WorkspacePlan


class PlanError(ValueError):
    """A plan is wrong; raised by `validate`.

    >>> issubclass(PlanError, ValueError)
    True
    """


def validate(plan: WorkspacePlan) -> WorkspacePlan:
    """Return a valid plan of any origin, raise `PlanError` for any other.

    No two buffers in use at one step may share a byte, unless one takes the other's place over;
    every buffer has a unique name and a step, is aligned, large enough and inside the
    workspace, or inside an output that is not written before the buffer's last step; no space is
    asked for nothing.

    Parameters
    ----------
    plan : WorkspacePlan

    Returns
    -------
    WorkspacePlan
        The same one.

    Raises
    ------
    PlanError
        Names the buffers and their faults.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from aclnn.graph import Lifetime, plan_lifetimes
    >>> plan = validate(plan_lifetimes([Lifetime("a", 0, 2, 100)]))
    >>> validate(replace(plan, size=64))
    Traceback (most recent call last):
    ...
    aclnn.graph.verify.plan.PlanError: a: does not fit into its offset range or into the workspace
    """
    by_name: dict[str, Buffer] = {}
    spare = {memory.output: memory for memory in plan.spare}
    for a in plan.buffers:
        if not 0 <= a.first <= a.last:
            raise PlanError(f"{a.name}: its steps, {a.first} to {a.last}, are none")
        if a.offset < 0 or a.offset % ALIGNMENT:
            raise PlanError(f"{a.name}: offset {a.offset} is not a multiple of {ALIGNMENT}")
        if a.nbytes > a.padded:
            raise PlanError(f"{a.name}: does not fit into its offset range or into the workspace")
        if a.output:
            _check_in_output(a, spare.get(a.output))
        elif a.offset + a.padded > plan.size:
            raise PlanError(f"{a.name}: does not fit into its offset range or into the workspace")
        if a.name in by_name:
            raise PlanError(f"{a.name}: every buffer has a unique name")
        by_name[a.name] = a
    for memory in [one for one in plan.spare if one.only_heir]:
        here = [a for a in plan.buffers if a.output == memory.output]
        heir = by_name.get(memory.heir)
        if any(heir is None or _owner(a, by_name) != _owner(heir, by_name) for a in here):
            raise PlanError(f"{memory.output}: holds others than {memory.heir}, but is an input")
    for output in dict.fromkeys([a.output for a in plan.buffers]):
        here = [a for a in plan.buffers if a.output == output]
        _check_disjoint(here, [_owner(a, by_name) for a in here])
    if plan.size and all(a.output for a in plan.buffers):
        raise PlanError("asks for space without buffers")
    return plan


def _check_in_output(a: Buffer, memory: SpareMemory | None) -> None:
    """It is in the output's memory, and is over before that is written, or written over it."""
    if memory is None:
        raise PlanError(f"{a.name}: {a.output} is no output whose memory is spare")
    if a.offset + a.padded > memory.nbytes:
        raise PlanError(f"{a.name}: does not fit into the {memory.nbytes} bytes of {a.output}")
    if a.parts:
        raise PlanError(f"{a.name}: tiles are in the workspace, not in {a.output}")
    is_heir = a.name == memory.heir and a.offset == 0
    if a.last >= memory.until + is_heir:
        raise PlanError(f"{a.name}: {a.output} is written at step {memory.until}, before its end")


def _owner(buffer: Buffer, by_name: dict[str, Buffer]) -> str:
    """The buffer whose place this one takes over in the end, often its own."""
    at, seen = buffer, {buffer.name}
    while at.same_as:
        if at.same_as not in by_name or at.same_as in seen:
            raise PlanError(
                f"{at.name}: shares the bytes of {at.same_as}, which has no bytes itself"
            )
        at = by_name[at.same_as]
        seen.add(at.name)
    if (at.offset, at.output) != (buffer.offset, buffer.output):
        raise PlanError(f"{buffer.name}: is not at the offset of {at.name}")
    return at.name


def _check_disjoint(buffers: Sequence[Buffer], owners: Sequence[str]) -> None:
    """Go through the steps with the places in use; a new one is compared with its neighbours."""
    pieces = [
        (b, owner, *one) for b, owner in zip(buffers, owners, strict=True) for one in _used(b)
    ]
    events = [(piece[2], 1, k) for k, piece in enumerate(pieces)]
    events += [(piece[3], 0, k) for k, piece in enumerate(pieces)]
    offsets: list[int] = []  # in use, ascending
    users: list[list[tuple[Buffer, int]]] = []  # with their ends; several where they have one owner
    owner_at: list[str] = []
    for _, begins, k in sorted(events):
        b, owner, _, _, start, end = pieces[k]
        at = bisect_left(offsets, start)
        taken = at < len(offsets) and offsets[at] == start
        if not begins:
            users[at].remove((b, end))
            if not users[at]:
                del offsets[at], users[at], owner_at[at]
            continue
        if taken and owner_at[at] != owner:
            raise _overlap(users[at][0][0], b)
        if not taken:
            offsets.insert(at, start)
            users.insert(at, [])
            owner_at.insert(at, owner)
        users[at].append((b, end))
        if at and (before := max(users[at - 1], key=_end)) and before[1] > start:
            raise _overlap(before[0], b)
        if at + 1 < len(offsets) and offsets[at + 1] < end:
            raise _overlap(users[at + 1][0][0], b)


def _used(buffer: Buffer) -> Iterator[tuple[int, int, int, int]]:
    """Steps, from one until before another, and bytes of the memory that are in use then."""
    if not buffer.nbytes:
        return
    first, everything = buffer.first, (buffer.offset, buffer.offset + buffer.nbytes)
    for gap in sorted(buffer.gaps, key=lambda one: one.lower):
        if not first <= gap.lower < gap.upper <= buffer.last + 1:
            raise PlanError(f"{buffer.name}: its gap from step {gap.lower} is outside its steps")
        if first < gap.lower:
            yield first, gap.lower, *everything
        if gap.window:
            begin, end = gap.window
            yield gap.lower, gap.upper, buffer.offset + begin, buffer.offset + end
        first = gap.upper
    if first <= buffer.last:
        yield first, buffer.last + 1, *everything


def _end(user: tuple[Buffer, int]) -> int:
    return user[1]


def _overlap(a: Buffer, b: Buffer) -> PlanError:
    return PlanError(f"{a.name} and {b.name} are in use together and overlap")
