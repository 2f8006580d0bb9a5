"""Two plans side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .text import table

if TYPE_CHECKING:
    from ..plan import Buffer, WorkspacePlan


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """What changes from plan `before` to plan `after`; falsy when nothing does.

    Attributes
    ----------
    added, removed : tuple of str
        Names of buffers in one plan only.
    moved, resized, relived : tuple of str
        Names of buffers with another offset, another size, another lifetime.
    """

    before: WorkspacePlan
    after: WorkspacePlan
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    resized: tuple[str, ...]
    relived: tuple[str, ...]

    @property
    def size_change(self) -> int:
        """Bytes that `after` needs more than `before`."""
        return self.after.size - self.before.size

    def __bool__(self) -> bool:
        names = (self.added, self.removed, self.moved, self.resized, self.relived)
        return any(names) or self.size_change != 0

    def to_text(self) -> str:
        """A table of the numbers and of the buffers that differ."""
        keys = ["size", "lower_bound", "naive_size", "bucket_size", "strategy", "proof"]
        pairs = [(getattr(self.before, key), getattr(self.after, key)) for key in keys]
        rows: list[list[object]] = [
            [key, a, b, f"{b - a:+d}" if isinstance(a, int) else ("" if a == b else "differs")]
            for key, (a, b) in zip(keys, pairs, strict=True)
        ]
        changed = {*self.added, *self.removed, *self.moved, *self.resized, *self.relived}
        old = {buffer.name: buffer for buffer in self.before.buffers}
        new = {buffer.name: buffer for buffer in self.after.buffers}
        rows += [
            [name, _place(old.get(name)), _place(new.get(name)), self._words(name)]
            for name in [*old, *(name for name in new if name not in old)]
            if name in changed
        ]
        return table(["", "before", "after", "change"], rows)

    def _words(self, name: str) -> str:
        kinds = ("added", "removed", "moved", "resized", "relived")
        return ", ".join(kind for kind in kinds if name in getattr(self, kind))

    def __str__(self) -> str:
        return self.to_text()


def _place(buffer: Buffer | None) -> str:
    if buffer is None:
        return "-"
    return f"[{buffer.offset}, {buffer.end}) in steps {buffer.first}..{buffer.last}"


def plan_diff(before: WorkspacePlan, after: WorkspacePlan) -> PlanDiff:
    old = {buffer.name: buffer for buffer in before.buffers}
    new = {buffer.name: buffer for buffer in after.buffers}
    both = [name for name in old if name in new]

    def differing(*fields: str) -> tuple[str, ...]:
        return tuple(
            name
            for name in both
            if any(getattr(old[name], key) != getattr(new[name], key) for key in fields)
        )

    return PlanDiff(
        before=before,
        after=after,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        moved=differing("offset"),
        resized=differing("nbytes", "padded"),
        relived=differing("first", "last"),
    )
