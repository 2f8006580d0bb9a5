"""Two plans side by side."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from ..constraints import Count, OneOf, Share
from ..summaries import counted
from ..view_methods import view_of
from .tables import Sheet, make, to_rich, to_text

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

CHANGES = ("added", "removed", "moved", "resized", "lifetime_changed")


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of a plan.

    Attributes
    ----------
    size : int
        Bytes.
    lower_bound : int
        Bytes.
    gap : int
        Bytes.
    naive_size : int
        Bytes.
    bucket_size : int
        Bytes.
    peak_bytes : int
        Bytes.
    fragmentation : float
        Share of the workspace that is not in use at the peak.
    strategy : str
        Name of the planner.
    proof : str
        optimal or feasible.
    """

    size: Count
    lower_bound: Count
    gap: Count
    naive_size: Count
    bucket_size: Count
    peak_bytes: Count
    fragmentation: Share
    strategy: str
    proof: str


@dataclass(frozen=True, slots=True)
class Place:
    """Place and lifetime of a buffer.

    Attributes
    ----------
    output : str
        The output whose memory it is in; empty: the workspace.
    offset : int
        Bytes.
    nbytes : int
        Bytes that it needs.
    padded : int
        Bytes that it is given.
    first : int
        First step.
    last : int
        Last step.
    """

    output: str
    offset: Count
    nbytes: Count
    padded: Count
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class BufferChange:
    """A buffer that differs.

    Attributes
    ----------
    name : str
        Its name.
    changes : tuple of str
        Its differences.
    before : Place or None
        null where the first plan has no such buffer.
    after : Place or None
        null where the second plan has no such buffer.
    """

    name: str
    changes: tuple[Annotated[str, OneOf(CHANGES)], ...]
    before: Place | None
    after: Place | None


@dataclass(frozen=True, slots=True)
class DiffRecord:
    """Changes from one plan to another.

    Attributes
    ----------
    size_change : int
        Bytes that the second needs more.
    before : Totals
        Numbers of the first plan.
    after : Totals
        Numbers of the second plan.
    buffers : tuple of BufferChange
        Those that differ.
    """

    size_change: int
    before: Totals
    after: Totals
    buffers: tuple[BufferChange, ...]


TOTALS = tuple(one.name for one in fields(Totals))


@dataclass(frozen=True, slots=True)
class PlanDiff(str):
    """Changes from plan `before` to plan `after`: a text, falsy when nothing differs.

    Attributes
    ----------
    added, removed : tuple of str
        Names of buffers in one plan only.
    moved, resized, lifetime_changed : tuple of str
        Names of buffers with another offset, another size, another lifetime.
    """

    before: WorkspacePlan
    after: WorkspacePlan
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    resized: tuple[str, ...]
    lifetime_changed: tuple[str, ...]

    def __new__(cls, *fields: Any) -> PlanDiff:
        bare = str.__new__(cls)
        bare.__init__(*fields)  # type: ignore[misc]
        return str.__new__(cls, to_text(bare.sheet()))

    def __getnewargs__(self) -> Any:
        return tuple(getattr(self, one.name) for one in fields(self))

    @property
    def size_change(self) -> int:
        """Bytes that `after` needs more than `before`."""
        return self.after.size - self.before.size

    def __bool__(self) -> bool:
        return any(getattr(self, kind) for kind in CHANGES) or self.size_change != 0

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of all buffers that differ, in the order of the plans."""
        return tuple(self._all_changes())

    def changes(self, name: str) -> tuple[str, ...]:
        """Changes of a buffer, in words."""
        return tuple(kind for kind in CHANGES if name in getattr(self, kind))

    def _all_changes(self) -> dict[str, list[str]]:
        """Changes of each buffer that differs, in the order of the plans."""
        found: dict[str, list[str]] = {}
        for kind in CHANGES:
            for name in getattr(self, kind):
                found.setdefault(name, []).append(kind)
        names = dict.fromkeys(b.name for plan in (self.before, self.after) for b in plan.buffers)
        return {name: found[name] for name in names if name in found}

    def to_text(self) -> str:
        """A table of the numbers and of the buffers that differ."""
        return str.__str__(self)

    def to_rich(self) -> Any:
        """The same table for `rich.print`."""
        return to_rich(self.sheet())

    def _repr_html_(self) -> str:
        return view_of(PlanDiff, "html")(self)

    def to_json(self, indent: int | None = None) -> str:
        """A document of the schema `aclnn.graph.views.json.PLAN_DIFF_SCHEMA`."""
        return view_of(PlanDiff, "json")(self, indent)

    def record(self) -> DiffRecord:
        """The numbers of both plans, and the buffers that differ."""
        old, new = _by_name(self.before), _by_name(self.after)
        changed = [
            BufferChange(
                name, tuple(changes), _part(Place, old.get(name)), _part(Place, new.get(name))
            )
            for name, changes in self._all_changes().items()
        ]
        totals = _part(Totals, self.before), _part(Totals, self.after)
        return DiffRecord(self.size_change, *totals, tuple(changed))

    def sheet(self) -> Sheet:
        """The table."""
        rows: list[list[object]] = []
        for key in TOTALS:
            a, b = getattr(self.before, key), getattr(self.after, key)
            if isinstance(a, float):
                rows.append([key, f"{a:.1%}", f"{b:.1%}", f"{b - a:+.1%}"])
            else:
                differs = "" if a == b else "differs"
                rows.append([key, a, b, f"{b - a:+d}" if isinstance(a, int) else differs])
        old, new = _by_name(self.before), _by_name(self.after)
        rows += [
            [name, _place(old.get(name)), _place(new.get(name)), ", ".join(changes)]
            for name, changes in self._all_changes().items()
        ]
        return (make(["", "before", "after", "change"], rows),)

    def __repr__(self) -> str:
        found = [f"{len(getattr(self, kind))} {kind.replace('_', ' ')}" for kind in CHANGES]
        counts = ", ".join(one for one in found if not one.startswith("0 ")) or "same buffers"
        return f"<PlanDiff: {self.before.size} to {counted(self.after.size, 'byte')}, {counts}>"

    def __str__(self) -> str:
        return self.to_text()


def _by_name(plan: WorkspacePlan) -> dict[str, Buffer]:
    return {buffer.name: buffer for buffer in plan.buffers}


def _part(kind: Any, one: object) -> Any:
    """The fields of a dataclass, taken from an object that has them; None for None."""
    return None if one is None else kind(*(getattr(one, name.name) for name in fields(kind)))


def _place(buffer: Buffer | None) -> str:
    if buffer is None:
        return "-"
    where = f" of {buffer.output}" if buffer.output else ""
    return f"[{buffer.offset}, {buffer.end}){where} in steps {buffer.first}..{buffer.last}"


def plan_diff(before: WorkspacePlan, after: WorkspacePlan) -> PlanDiff:
    """Compare two plans, buffer by buffer, by name."""
    old, new = _by_name(before), _by_name(after)
    both = [name for name in old if name in new]

    def differing(*fields: str) -> tuple[str, ...]:
        return tuple(
            name
            for name in both
            if any(getattr(old[name], key) != getattr(new[name], key) for key in fields)
        )

    return PlanDiff(
        before,
        after,
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
        differing("offset", "output"),
        differing("nbytes", "padded"),
        differing("first", "last"),
    )
