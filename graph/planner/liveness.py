"""Liveness: when the intermediates of a graph are needed, and for how many bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ..ir import Graph, Node, Value
from ..loops.loop_nest import loop_nest
from ..loops.tiling import ALIGNMENT, DEFAULT_TILING, Tiling, pad
from ..numbers import positive_number
from ..strides import is_dense, same_layout
from .lifetimes import Lifetime, SpareMemory, TilePart
from .strategies import default

ScratchOf = Callable[[Node, int, int], int]
ThreadsOf = Callable[[Sequence[Node], int, int], int]


def graph_lifetimes(
    graph: Graph,
    *,
    threads: int = 1,
    tiling: Tiling | None = None,
    scratch_of: ScratchOf | None = None,
    threads_of: ThreadsOf | None = None,
) -> tuple[Lifetime, ...]:
    """Lifetimes of a graph's intermediates, in the order of their producers.

    The tiles of one tile loop are one entry: what a thread needs, for each that the loop can use.
    One stride leads from thread to thread in every loop: the space of the loop that needs most.

    Parameters
    ----------
    graph : Graph
        As built, or after passes.
    threads : int
        Number of threads that tiles are for.
    tiling : Tiling, optional
        Sizes of tiles.
    scratch_of : callable, optional
        Gives for a node, and rows and columns of its tiles, the bytes of memory of its own that
        its kernel needs on each thread.
    threads_of : callable, optional
        Gives for the nodes of a step, its elements and how many tiles it has, how many of
        `threads` a run uses; all of them by default. Elements and tiles of an opaque node, whose
        kernel alone knows them, are 0.

    Returns
    -------
    tuple of Lifetime

    Raises
    ------
    ValueError
        When `threads` is not an integer, or less than 1.

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
    tiles = [_tile_parts(graph, step, tiling or DEFAULT_TILING, scratch_of) for step in steps]
    per_thread = max([size for size, _ in tiles], default=0)
    # Kernels want their memory aligned, and a workspace may begin anywhere.
    has_own = any(part.value < 0 for _, parts in tiles for part in parts)
    slack = ALIGNMENT - 1 if has_own else 0
    step_of = _step_of(steps)
    readers = graph.readers()
    heirs = _in_place_results(graph, steps, step_of, readers)
    found: list[Lifetime] = []
    planned: set[int] = set()
    for index, step in enumerate(steps):
        if tiles[index][0]:
            used = _threads_used(graph, step, threads, tiling or DEFAULT_TILING, threads_of)
            what = _tile_words(graph, tiles[index][1], used)
            nbytes = per_thread * (used - 1) + tiles[index][0] + slack
            found.append(_scratch(step, index, nbytes, tiles[index][1], what))
        for node in step:
            for id in node.outputs:
                value = graph.root(id)
                if value.storage != "workspace" or value.id in planned:
                    continue
                planned.add(value.id)
                reading = readers.get(value.id, ())
                writing = graph.writers()[value.id]
                at = sorted({step_of[one.name] for one in (*reading, *writing)})
                heir = heirs.get(value.id, "")
                found.append(_lifetime(value, index, at, node, reading, heir))
    return tuple(found)


def spare_memory(
    graph: Graph, outputs: Collection[str], outputs_apart: bool = False
) -> tuple[SpareMemory, ...]:
    """Memory of named outputs that intermediates may use.

    Such an output overlaps no input, or is one.  Outputs may overlap each other, so none of them is in use
    when the first is written, unless `outputs_apart` says that none does.

    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (100,), f32), b.output("out", (100,), f32)
    >>> b.view_copy(b.compute("g", [b.compute("f", [x], (100,), f32)], (100,), f32), out)
    >>> spare_memory(b.build(), ["out"])
    (SpareMemory(output='out', nbytes=400, until=2, heir='g'),)
    """
    steps = graph.steps()
    step_of, writers = _step_of(steps), graph.writers()
    roots = dict.fromkeys([graph.root(id).id for id in graph.outputs])
    begins = {id: min([step_of[one.name] for one in writers[id]]) for id in roots}
    first = min(begins.values(), default=0)
    found = []
    for value in map(graph.value, graph.outputs):
        if value.name in outputs and (heir := _begins_over_input(graph, steps, step_of, value)):
            until = begins[value.id]
            found.append(SpareMemory(value.name, value.nbytes, until, heir, only_heir=True))
        until = begins[graph.root(value.id).id] if outputs_apart else first
        if value.name in outputs and until and _is_one_stretch(value):
            alone = outputs_apart or len(roots) == 1
            heir = _operand_below(graph, step_of, value) if alone else ""
            found.append(SpareMemory(value.name, value.nbytes, until, heir))
    return tuple(found)


def _is_one_stretch(value: Value) -> bool:
    """Whether an output is a stretch of memory of its own, from its first element on."""
    return value.alias_of is None and _is_stretch(value)


def _is_stretch(value: Value) -> bool:
    if value.size == 0:
        return False
    pairs = zip(value.shape, value.strides, strict=True)
    ascending = all(size == 1 or stride > 0 for size, stride in pairs)
    return ascending and is_dense(value.shape, value.strides)


def _operand_below(graph: Graph, step_of: Mapping[str, int], out: Value) -> str:
    """The intermediate that an output is written over as it is read for the last time."""
    writers = graph.writers()[out.id]
    if len(writers) > 1 or writers[0].outputs != (out.id,):
        return ""
    step = graph.steps()[step_of[writers[0].name]]
    for node, dead in _dead_operands(graph, step, step_of, graph.readers()):
        if node is writers[0]:
            return next((value.name for value in dead if same_layout(value, out)), "")
    return ""


def _begins_over_input(
    graph: Graph, steps: Sequence[tuple[Node, ...]], step_of: Mapping[str, int], out: Value
) -> str:
    """The intermediate that an output in place of an input is written over, if that may lie there, too.

    It is the input with something written into it, by a node that may write its result over the input.
    """
    if out.alias_of is None or not _is_stretch(out):
        return ""
    others = [one for one in map(graph.value, graph.outputs) if one.alias_of == out.alias_of]
    heir = _operand_below(graph, step_of, out) if len(others) == 1 else ""
    if not heir:
        return ""
    readers = graph.readers()
    below = _in_place_results(graph, steps, step_of, readers)
    ids = {value.name: value.id for value in graph.values}
    first = ids[heir]
    while first in below:
        first = ids[below[first]]
    makers = tuple(graph.writers()[first])
    last = readers.get(out.alias_of, ())[-1:]
    is_over = last == makers and out.alias_of in makers[0].overwritable
    if not is_over or not _only_whole(graph, last, out.alias_of):
        return ""
    return heir if same_layout(graph.value(out.alias_of), graph.value(first)) else ""


def _step_of(steps: Sequence[tuple[Node, ...]]) -> dict[str, int]:
    return {node.name: index for index, step in enumerate(steps) for node in step}


def _in_place_results(
    graph: Graph,
    steps: Sequence[tuple[Node, ...]],
    step_of: Mapping[str, int],
    readers: Mapping[int, tuple[Node, ...]],
) -> dict[int, str]:
    """Results that take the place of an operand that dies: what they replace, by id."""
    found: dict[int, str] = {}
    for step in steps:
        for node, dead in _dead_operands(graph, step, step_of, readers):
            result = graph.value(node.output)
            if result.storage != "workspace" or result.is_view or len(node.outputs) > 1:
                continue
            match = next((value for value in dead if same_layout(value, result)), None)
            if match is not None:
                found[result.id] = match.name
                dead.remove(match)
    return found


def _dead_operands(
    graph: Graph,
    step: tuple[Node, ...],
    step_of: Mapping[str, int],
    readers: Mapping[int, tuple[Node, ...]],
) -> Iterator[tuple[Node, list[Value]]]:
    """For each node of a step the intermediates that it may write a result of their layout over.

    They were read by the node itself, these come first, or by earlier ones of the loop, which have
    read what its tile covers; nobody reads them afterwards.  What is taken is to be removed.  Opaque
    nodes say over which operands they may write.
    """
    writers = graph.writers()
    dead: list[Value] = []
    for node in step:
        own = []
        over = node.overwritable if node.domain == "opaque" else node.inputs
        for value in [graph.value(id) for id in dict.fromkeys(over)]:
            if value.storage != "workspace" or value.is_view or not value.size:
                continue
            reading, makers = readers[value.id], writers[value.id]
            dies = reading[-1] is node  # of nodes in the order in which they run
            early = len(makers) == 1 and step_of[makers[0].name] < step_of[node.name]
            here = [one for one in reading if step_of[one.name] == step_of[node.name]]
            if dies and early and _only_whole(graph, here, value.id):
                own.append(value)
        dead[:0] = own
        yield node, dead


def _only_whole(graph: Graph, reading: Iterable[Node], id: int) -> bool:
    """Whether a value is read as it is, never through a view."""
    return all(one == id for node in reading for one in node.inputs if graph.root(one).id == id)


def _lifetime(
    value: Value,
    first: int,
    used: Sequence[int],
    writer: Node,
    readers: Sequence[Node],
    same_as: str,
) -> Lifetime:
    consumers = tuple([reader.name for reader in readers])
    return Lifetime(
        value.name,
        first,
        used[-1] + 1,
        value.nbytes,
        writer.name,
        consumers,
        contents=str(value),
        same_as=same_as,
        uses=tuple(used) if len(used) > 2 else (),
    )


def _scratch(
    step: tuple[Node, ...], index: int, nbytes: int, parts: tuple[TilePart, ...], contents: str
) -> Lifetime:
    """The lifetime of a loop's tiles, those of all threads together."""
    made = {part.value for part in parts}
    writers = [node.name for node in step if made.intersection(node.outputs)]
    readers = [node.name for node in step if made.intersection(node.inputs)]
    name = "+".join([part.name for part in parts[:4]])
    name += f"+{len(parts) - 4}" if len(parts) > 4 else ""
    made_by = "+".join(writers) or step[0].name
    return Lifetime(
        f"{name}.tiles", index, index + 1, nbytes, made_by, tuple(readers), parts, contents
    )


def _tile_words(graph: Graph, parts: tuple[TilePart, ...], threads: int) -> str:
    """Contents of a loop's tiles, such as ``2 x (float32[1024])``."""
    tiles = []
    for part in parts:
        if part.value < 0:
            tiles.append(f"{part.nbytes} bytes")
            continue
        dtype = graph.value(part.value).dtype
        tiles.append(f"{dtype.name}[{part.nbytes // dtype.itemsize}]")
    return f"{threads} x ({', '.join(tiles)})"


def _threads_used(
    graph: Graph,
    step: tuple[Node, ...],
    threads: int,
    tiling: Tiling,
    threads_of: ThreadsOf | None,
) -> int:
    """Number of threads that run tiles of a step at once."""
    if threads_of is None:
        return threads
    if step[0].domain == "opaque":
        return threads_of(step, 0, 0)
    nest = loop_nest(graph, step, tiling)
    return threads_of(step, math.prod(nest.shape), nest.n_tiles)


def _tile_parts(
    graph: Graph, step: tuple[Node, ...], tiling: Tiling, scratch_of: ScratchOf | None
) -> tuple[int, tuple[TilePart, ...]]:
    """Bytes that a thread needs for the tiles of a step, and the offset of each tile in them."""
    inner = [id for node in step for id in node.outputs if graph.value(id).storage == "tile"]
    if not inner and scratch_of is None:
        return 0, ()
    rows = cols = 1
    if step[0].domain != "opaque":
        nest = loop_nest(graph, step, tiling)
        rows, cols = nest.tile_rows, nest.tile_cols
    lives, ids = [], []
    last = {id: at for at, node in enumerate(step) for id in node.inputs}
    for at, node in enumerate(step):
        own = scratch_of(node, rows, cols) if scratch_of else 0
        if own:
            lives.append(Lifetime(scratch_name(node), at, at + 1, own))
            ids.append(-1)
        for value in map(graph.value, node.outputs):
            if value.storage == "tile":
                nbytes = rows * cols * value.dtype.itemsize
                lives.append(Lifetime(value.name, at, last.get(value.id, at) + 1, nbytes))
                ids.append(value.id)
    if not lives:
        return 0, ()
    packed = default(lives)
    parts = tuple(
        [
            TilePart(life.name, id, offset, life.nbytes)
            for life, id, offset in zip(lives, ids, packed.offsets, strict=True)
        ]
    )
    return pad(packed.size), parts


def scratch_name(node: Node) -> str:
    """Name of the memory that a node's kernel has for itself.

    >>> scratch_name(Node("norm", "Compute", (0,), (1,)))
    'norm.scratch'
    """
    return f"{node.name}.scratch"
