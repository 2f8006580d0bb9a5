"""Two plans side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..brief import counted
from .notebook import sheet_html, view
from .tables import Sheet, make, to_rich, to_text

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

TOTALS = (
    "size", "lower_bound", "gap", "naive_size", "bucket_size", "peak_bytes", "fragmentation",
    "strategy", "proof",
)  # fmt: skip
CHANGES = ("added", "removed", "moved", "resized", "lifetime_changed")


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
        return str.__new__(cls, to_text(bare._sheet()))

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
        return to_rich(self._sheet())

    def _repr_html_(self) -> str:
        return view(sheet_html(self._sheet()))

    def to_json(self, indent: int | None = None) -> str:
        """A document of the schema `aclnn.graph.views.json.PLAN_DIFF_SCHEMA`."""
        from .json import plan_diff_data

        return json.dumps(plan_diff_data(self), indent=indent)

    def as_data(self) -> dict[str, Any]:
        """The numbers of both plans, and the buffers that differ."""
        old, new = _by_name(self.before), _by_name(self.after)
        return {
            "before": {key: getattr(self.before, key) for key in TOTALS},
            "after": {key: getattr(self.after, key) for key in TOTALS},
            "buffers": [
                {
                    "name": name,
                    "changes": changes,
                    "before": _place_data(old.get(name)),
                    "after": _place_data(new.get(name)),
                }
                for name, changes in self._all_changes().items()
            ],
        }

    def _sheet(self) -> Sheet:
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
        told = ", ".join(one for one in found if not one.startswith("0 ")) or "same buffers"
        return f"<PlanDiff: {self.before.size} to {counted(self.after.size, 'byte')}, {told}>"

    def __str__(self) -> str:
        return self.to_text()


def _by_name(plan: WorkspacePlan) -> dict[str, Buffer]:
    return {buffer.name: buffer for buffer in plan.buffers}


def _place_data(buffer: Buffer | None) -> dict[str, int | str] | None:
    if buffer is None:
        return None
    keys = ("output", "offset", "nbytes", "padded", "first", "last")
    return {key: getattr(buffer, key) for key in keys}


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
