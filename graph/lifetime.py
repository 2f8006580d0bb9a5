"""Lifetimes: when each intermediate is needed, and for how many bytes.

Steps are numbered from 0; lifetimes are half-open, ``[lower, upper)``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .ir import Graph, Node
from .loops import Tiling, loop_nest, pad


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Something that needs `nbytes` from step `lower` until before step `upper`.

    >>> Lifetime("a", 0, 2, 100).overlaps(Lifetime("b", 2, 3, 50))
    False
    """

    name: str
    lower: int
    upper: int
    nbytes: int
    producer: str = ""
    consumers: tuple[str, ...] = ()
    parts: tuple[TilePart, ...] = ()

    def __post_init__(self) -> None:
        if self.lower >= self.upper or self.nbytes < 0:
            raise ValueError(f"{self.name}: an empty lifetime or a negative size")

    @property
    def first(self) -> int:
        """The step that makes it."""
        return self.lower

    @property
    def last(self) -> int:
        """The last step that reads it (or the one that makes it)."""
        return self.upper - 1

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both are needed at some step."""
        return self.lower < other.upper and other.lower < self.upper


@dataclass(frozen=True, slots=True)
class TilePart:
    """A tile within the scratch that each thread has for a tile loop."""

    name: str
    value: int
    offset: int
    nbytes: int


def graph_lifetimes(
    graph: Graph, *, threads: int = 1, tiling: Tiling | None = None
) -> tuple[Lifetime, ...]:
    """Lifetimes of a graph's intermediates, in the order in which they are made.

    The tiles of one tile loop are one entry: `threads` times what a thread needs.  Every loop
    gives a thread the same space, so that one stride leads from thread to thread everywhere.
    """
    steps = graph.steps()
    tiles = [_tile_parts(graph, step, tiling or Tiling()) for step in steps]
    per_thread = max((size for size, _ in tiles), default=0)
    found = []
    for index, step in enumerate(steps):
        if tiles[index][0]:
            found.append(_scratch(step, index, per_thread * threads, tiles[index][1]))
        for node in step:
            if graph.value(node.output).storage == "workspace":
                found.append(_lifetime(graph, steps, index, node))
    return tuple(found)


def scratch_per_thread(lifetimes: Iterable[Lifetime], threads: int) -> int:
    """Bytes of tiles that each thread has."""
    return max((life.nbytes // threads for life in lifetimes if life.parts), default=0)


def _lifetime(graph: Graph, steps: Sequence[tuple[Node, ...]], index: int, node: Node) -> Lifetime:
    value = graph.value(node.output)
    last, readers = index, []
    for later, step in enumerate(steps):
        for other in step:
            if any(graph.root(id).id == value.id for id in other.inputs):
                readers.append(other.name)
                last = max(last, later)
    return Lifetime(value.name, index, last + 1, value.nbytes, node.name, tuple(readers))


def _scratch(
    step: tuple[Node, ...], index: int, nbytes: int, parts: tuple[TilePart, ...]
) -> Lifetime:
    made = {part.value for part in parts}
    writers = [node.name for node in step if node.output in made]
    readers = [node.name for node in step if made.intersection(node.inputs)]
    name = "+".join(part.name for part in parts) + ".tiles"
    return Lifetime(name, index, index + 1, nbytes, "+".join(writers), tuple(readers), parts)


def _tile_parts(
    graph: Graph, step: tuple[Node, ...], tiling: Tiling
) -> tuple[int, tuple[TilePart, ...]]:
    """Bytes that a thread needs for the tiles of a step, and where each tile lies in them."""
    if not any(graph.value(node.output).storage == "tile" for node in step):
        return 0, ()
    from .plan import default

    nest = loop_nest(graph, step, tiling)
    lives, ids = [], []
    for at, node in enumerate(step):
        value = graph.value(node.output)
        if value.storage != "tile":
            continue
        last = max((i for i, other in enumerate(step) if value.id in other.inputs), default=at)
        nbytes = nest.tile_rows * nest.tile_cols * value.dtype.itemsize
        lives.append(Lifetime(value.name, at, last + 1, nbytes))
        ids.append(value.id)
    packed = default(lives)
    parts = tuple(
        TilePart(life.name, id, offset, life.nbytes)
        for life, id, offset in zip(lives, ids, packed.offsets, strict=True)
    )
    return pad(packed.size), parts


# --- MiniMalloc's CSV -------------------------------------------------------------------------


def lifetimes_to_csv(lifetimes: Iterable[Lifetime]) -> str:
    r"""Lifetimes as MiniMalloc reads them.

    >>> lifetimes_to_csv([Lifetime("a", 0, 2, 100)])
    'id,lower,upper,size\na,0,2,100\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "lower", "upper", "size"])
    writer.writerows([life.name, life.lower, life.upper, life.nbytes] for life in lifetimes)
    return out.getvalue()


def lifetimes_from_csv(text: str) -> tuple[Lifetime, ...]:
    r"""The lifetimes in a MiniMalloc problem; other columns are ignored.

    >>> lifetimes_from_csv("id,lower,upper,size\na,0,2,100\n")[0].upper
    2
    """
    rows = csv.DictReader(io.StringIO(text))
    missing = {"id", "lower", "upper", "size"} - set(rows.fieldnames or ())
    if missing:
        raise ValueError(f"columns missing: {', '.join(sorted(missing))}")
    return tuple(
        Lifetime(row["id"], int(row["lower"]), int(row["upper"]), int(row["size"])) for row in rows
    )
