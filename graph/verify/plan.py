"""Whether a plan is right, whoever made it; nothing here is shared with planners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tiling import ALIGNMENT

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan


class PlanError(ValueError):
    """A plan is wrong; raised by `validate`.

    >>> issubclass(PlanError, ValueError)
    True
    """


def validate(plan: WorkspacePlan) -> WorkspacePlan:
    """Return a plan that is right, whoever made it, raise `PlanError` for any other.

    No two buffers in use at one step may share a byte; every buffer has a name of its own and a
    step, is aligned, large enough and inside the workspace; no space is asked for nothing.

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
        Naming the buffers, and what is wrong with them.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from aclnn.graph import Lifetime, plan_lifetimes
    >>> plan = validate(plan_lifetimes([Lifetime("a", 0, 2, 100)]))
    >>> validate(replace(plan, size=64))
    Traceback (most recent call last):
    ...
    aclnn.graph.verify.plan.PlanError: a: does not fit into its place or into the workspace
    """
    names: set[str] = set()
    for a in plan.buffers:
        if not 0 <= a.first <= a.last:
            raise PlanError(f"{a.name}: its steps, {a.first} to {a.last}, are none")
        if a.offset < 0 or a.offset % ALIGNMENT:
            raise PlanError(f"{a.name}: offset {a.offset} is not a multiple of {ALIGNMENT}")
        if a.nbytes > a.padded or a.offset + a.padded > plan.size:
            raise PlanError(f"{a.name}: does not fit into its place or into the workspace")
        if a.name in names:
            raise PlanError(f"{a.name}: every buffer has a name of its own")
        names.add(a.name)
    live: list[Buffer] = []
    for b in sorted(plan.buffers, key=lambda buffer: buffer.first):
        live = [a for a in live if a.last >= b.first]
        for a in live:
            if a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes:
                raise PlanError(f"{a.name} and {b.name} are in use together and overlap")
        live.append(b)
    if not plan.buffers and plan.size:
        raise PlanError("asks for space without buffers")
    return plan
