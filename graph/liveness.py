"""Liveness: when the intermediates of a graph are needed, and for how many bytes."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Graph, Node, Value
from .loops import loop_nest
from .numbers import positive_number
from .planner.lifetimes import Lifetime, TilePart
from .planner.strategies import default
from .tiling import DEFAULT_TILING, Tiling, pad


def graph_lifetimes(
    graph: Graph, *, threads: int = 1, tiling: Tiling | None = None
) -> tuple[Lifetime, ...]:
    """Lifetimes of a graph's intermediates, in the order in which they are made.

    The tiles of one tile loop are one entry: `threads` times what a thread needs.  Every loop
    gives a thread the same space, so that one stride leads from thread to thread everywhere.

    Parameters
    ----------
    graph : Graph
        As built, or after passes.
    threads : int
        How many threads there are tiles for.
    tiling : Tiling, optional
        How large tiles are.

    Returns
    -------
    tuple of Lifetime

    Raises
    ------
    ValueError
        When `threads` is no whole number, or less than 1.

    Examples
    --------
    >>> from aclnn.graph import DType, GraphBuilder, run_passes
    >>> b, f16, f32 = GraphBuilder(), DType("float16", 2), DType("float32", 4)
    >>> x, out = b.input("x", (4, 8), f16), b.output("out", (4, 8), f32)
    >>> b.view_copy(b.compute("relu", [b.cast(x, f32)], (4, 8), f32), out)
    >>> whole = run_passes(b.build(), "materialized").graph
    >>> [(life.name, life.first, life.last, life.nbytes) for life in graph_lifetimes(whole)]
    [('x_cast', 0, 1, 128)]
    """
    steps, threads = graph.steps(), positive_number(threads, "threads")
    tiles = [_tile_parts(graph, step, tiling or DEFAULT_TILING) for step in steps]
    per_thread = max((size for size, _ in tiles), default=0)
    step_of = {node.output: index for index, step in enumerate(steps) for node in step}
    readers = graph.readers()
    found = []
    for index, step in enumerate(steps):
        if tiles[index][0]:
            what = _tile_words(graph, tiles[index][1], threads)
            found.append(_scratch(step, index, per_thread * threads, tiles[index][1], what))
        for node in step:
            value = graph.value(node.output)
            if value.storage == "workspace":
                reading = readers.get(value.id, ())
                last = max([index, *(step_of[reader.output] for reader in reading)])
                found.append(_lifetime(value, index, last, node, reading))
    return tuple(found)


def _lifetime(
    value: Value, first: int, last: int, writer: Node, readers: Sequence[Node]
) -> Lifetime:
    consumers = tuple(reader.name for reader in readers)
    return Lifetime(
        value.name, first, last + 1, value.nbytes, writer.name, consumers, contents=str(value)
    )


def _scratch(
    step: tuple[Node, ...], index: int, nbytes: int, parts: tuple[TilePart, ...], contents: str
) -> Lifetime:
    """The lifetime of a loop's tiles, those of all threads together."""
    made = {part.value for part in parts}
    writers = [node.name for node in step if node.output in made]
    readers = [node.name for node in step if made.intersection(node.inputs)]
    name = "+".join(part.name for part in parts) + ".tiles"
    made_by = "+".join(writers)
    return Lifetime(name, index, index + 1, nbytes, made_by, tuple(readers), parts, contents)


def _tile_words(graph: Graph, parts: tuple[TilePart, ...], threads: int) -> str:
    """What the tiles of a loop hold, such as ``2 x (float32[1024])``."""
    dtypes = ((graph.value(part.value).dtype, part.nbytes) for part in parts)
    tiles = ", ".join(f"{dtype.name}[{nbytes // dtype.itemsize}]" for dtype, nbytes in dtypes)
    return f"{threads} x ({tiles})"


def _tile_parts(
    graph: Graph, step: tuple[Node, ...], tiling: Tiling
) -> tuple[int, tuple[TilePart, ...]]:
    """Bytes that a thread needs for the tiles of a step, and where each tile lies in them."""
    if not any(graph.value(node.output).storage == "tile" for node in step):
        return 0, ()
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
