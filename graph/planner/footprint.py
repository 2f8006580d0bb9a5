"""The memory of a whole model: weights, inputs, outputs, caches, workspace, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..view_methods import Tabled
from .plan import BudgetError, WorkspacePlan

KINDS = (
    "weights",
    "packed weights",
    "caches",
    "inputs",
    "outputs",
    "workspace",
    "scratch",
    "kernel workspace",
    "runtime",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that takes memory.

    Attributes
    ----------
    kind : str
        One of weights, packed weights, caches, inputs, outputs, workspace, scratch, kernel workspace and
        runtime.
    name : str
    nbytes : int
    assumed : str
        The assumption behind the number, if it does not follow from the model.

    Examples
    --------
    >>> Entry("weights", "w", 4096).nbytes
    4096
    """

    kind: str
    name: str
    nbytes: int
    assumed: str = ""


@dataclass(frozen=True, slots=True)
class Footprint(Tabled):
    """The sum of a model's memory, at its peak.

    All but the workspace is there all the time, so the peak is that of the workspace's plan.

    Attributes
    ----------
    name : str
        Of the model.
    entries : tuple of Entry
    plan : WorkspacePlan
        Of intermediates.

    Examples
    --------
    >>> from .lifetimes import Lifetime
    >>> from .plan import plan_lifetimes
    >>> plan = plan_lifetimes([Lifetime("a", 0, 2, 100)])
    >>> made: Footprint = footprint_of("model", [Entry("weights", "w", 4096)], plan)
    >>> made.total, made.of_kind("workspace")
    (4224, 128)
    """

    name: str
    entries: tuple[Entry, ...]
    plan: WorkspacePlan

    @property
    def total(self) -> int:
        """Bytes of everything, at the peak."""
        return sum(entry.nbytes for entry in self.entries)

    def of_kind(self, kind: str) -> int:
        """Bytes of one kind.

        Parameters
        ----------
        kind : str

        Returns
        -------
        int
        """
        return sum(entry.nbytes for entry in self.entries if entry.kind == kind)

    def check(self, capacity: int) -> Footprint:
        """Return this sum, raise `BudgetError` when it exceeds a capacity.

        Parameters
        ----------
        capacity : int
            Bytes.

        Returns
        -------
        Footprint

        Raises
        ------
        BudgetError
            With the kinds that take most, the step at the peak, and the largest buffers there.
        """
        if self.total <= capacity:
            return self
        kinds = sorted(KINDS, key=lambda kind: -self.of_kind(kind))
        most = ", ".join(f"{kind} {self.of_kind(kind)}" for kind in kinds[:3] if self.of_kind(kind))
        at = self.plan.peak_step
        step = f"step {at}" + (f", {self.plan.steps[at]}" if at < len(self.plan.steps) else "")
        live = ", ".join(f"{one.name} ({one.padded} bytes)" for one in self.plan.must_shrink[:6])
        raise BudgetError(
            f"{self.name} needs {self.total} bytes, {self.total - capacity} over the capacity of "
            f"{capacity}: {most}; the peak is {step}, where are live: {live or 'no intermediates'}"
        )


def footprint_of(name: str, entries: Iterable[Entry], plan: WorkspacePlan) -> Footprint:
    """The sum of permanent memory and a plan of intermediates.

    Parameters
    ----------
    name : str
    entries : iterable of Entry
    plan : WorkspacePlan

    Returns
    -------
    Footprint

    Raises
    ------
    ValueError
        For an unknown kind, or a negative number of bytes.

    Examples
    --------
    >>> from .plan import plan_lifetimes
    >>> footprint_of("model", [], plan_lifetimes([])).total
    0
    """
    found = list(entries)
    for entry in found:
        if entry.kind not in KINDS or entry.nbytes < 0:
            raise ValueError(f"{entry.name}: no kind {entry.kind!r} with {entry.nbytes} bytes")
    scratch = plan.size - plan.workspace_without_scratch
    found.append(Entry("workspace", "intermediates", plan.size - scratch))
    if scratch:
        found.append(Entry("scratch", "of kernels, at the peak", scratch, "of kernels on this CPU"))
    found += [Entry("packed weights", one.name, one.nbytes) for one in plan.packed]
    return Footprint(name, tuple(sorted(found, key=lambda one: KINDS.index(one.kind))), plan)
