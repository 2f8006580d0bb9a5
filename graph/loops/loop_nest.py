"""Loop nests: the shape, strides and tiles that the nodes of one step run over.

Dimensions of all operands are reordered, flipped and merged together, so that a dense operand
of any rank becomes one long row and a transpose becomes two dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import GraphError
from ..ir import Graph, Node, Value
from ..strides import broadcast_strides
from .tiling import ALIGNMENT, Tiling, count_tiles, pad

TRANSPOSE_ASPECT = 4  # columns for each row of a tile whose operands are transposed to each other


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Loops over `shape`, cut into tiles along the last two dimensions.

    `operands` are the values as the loops walk them: views of this shape. `ops` holds for every node of
    the step the places of its operands, the output's last.
    """

    shape: tuple[int, ...]
    tile_rows: int
    tile_cols: int
    operands: tuple[Value, ...]
    ops: tuple[tuple[int, ...], ...]

    @property
    def n_tiles(self) -> int:
        """Number of tiles, those at the edges included."""
        return count_tiles(self.shape, self.tile_rows, self.tile_cols)


def loop_nest(graph: Graph, step: tuple[Node, ...], tiling: Tiling) -> LoopNest:
    """The loops of a step.

    Operands in memory decide about dimensions and tiles; tiles of the loop itself are dense and
    follow.

    >>> from aclnn.graph import DType, GraphBuilder, run_passes
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (8, 6, 4), f32), b.output("out", (8, 6, 4), f32)
    >>> b.view_copy(b.compute("relu", [x], (8, 6, 4), f32), out)
    >>> graph = run_passes(b.build()).graph
    >>> loop_nest(graph, graph.steps()[0], Tiling()).shape
    (1, 192)
    """
    # Workspaces are planned with the tiles that schedules are made of.
    names = tuple([node.name for node in step])
    return graph.once(("loop nest", names, tiling), lambda: _loop_nest(graph, step, tiling))


def _loop_nest(graph: Graph, step: tuple[Node, ...], tiling: Tiling) -> LoopNest:
    for node in step:
        if node.domain == "opaque":
            raise GraphError(node.name, "an opaque node has no tile loop")
    keys, ops = _operand_keys(graph, step)
    memory = [key for key in keys if graph.value(key[0]).storage != "tile"]
    items = [graph.value(id).dtype.itemsize for id, _ in memory]
    columns = [
        tuple([s * item for s in strides]) for (_, strides), item in zip(memory, items, strict=True)
    ]
    sizes, axis = _iteration(graph, step)
    # An empty value is never scheduled; it is planned as if it had an element.
    shape = tuple([max(1, size) for size in sizes])
    lead = memory.index(_lead_key(graph, step, memory))
    slot = _tile_bytes(graph, step) if len(memory) < len(keys) else 0
    area = tiling.area(slot) if slot else tiling.elements
    if axis is None:
        dims, starts = collapse(shape, columns, lead)
        dims, transposed = _with_row_dim(dims, items, area)
        rows, cols = _tile_sizes(dims, transposed, tiling, area)
    else:
        dims, starts = _around_axis(shape, columns, lead, axis)
        dims, rows, cols = _whole_rows(dims, items, tiling, tiling.row_area(slot) if slot else area)
    loops = tuple([size for size, _ in dims])
    walked = {
        key: _walked(graph.value(key[0]), loops, [strides[i] for _, strides in dims], start)
        for i, (key, start) in enumerate(zip(memory, starts, strict=True))
    }
    operands = tuple([walked.get(key) or _tile(graph.value(key[0]), loops, cols) for key in keys])
    return LoopNest(loops, rows, cols, operands, ops)


Key = tuple[int, tuple[int, ...]]  # id of a value, element strides that it is read with
Dim = tuple[int, tuple[int, ...]]  # size, byte stride of every operand


def _iteration(graph: Graph, step: tuple[Node, ...]) -> tuple[tuple[int, ...], int | None]:
    """The shape of the loops, and the axis that some kernel gets as a whole."""
    for node in step:
        shape, axis = graph.iteration(node)
        if axis is not None:
            return shape, axis
    return graph.iteration(step[-1])


def _tile_bytes(graph: Graph, step: tuple[Node, ...]) -> int:
    """Bytes that an element takes in all tiles that are in use at once."""
    last = {id: at for at, node in enumerate(step) for id in node.inputs}
    live = peak = 0
    for at, node in enumerate(step):
        tiles = [v for v in map(graph.value, node.outputs) if v.storage == "tile"]
        live += sum([value.dtype.itemsize for value in tiles])
        peak = max(peak, live)
        dying = [id for id in dict.fromkeys(node.inputs) if last[id] == at]
        for value in map(graph.value, dying):
            live -= value.dtype.itemsize if value.storage == "tile" else 0
    return peak


def _operand_keys(graph: Graph, step: tuple[Node, ...]) -> tuple[list[Key], tuple]:
    """Distinct (value, strides) pairs of a step, and every node's places among them."""
    places: dict[Key, int] = {}
    ops = []
    for node in step:
        shape = graph.iteration(node)[0]
        found = []
        for id in node.operands:
            value = graph.value(id)
            strides = value.strides
            if value.shape != shape:
                strides = broadcast_strides(value.shape, strides, shape)
            found.append(places.setdefault((id, strides), len(places)))
        ops.append(tuple(found))
    return list(places), tuple(ops)


def _lead_key(graph: Graph, step: tuple[Node, ...], memory: list[Key]) -> Key:
    """The operand whose layout decides the order of the loops: an output of the graph if any."""
    written = {id for node in step for id in node.outputs}
    outside = [key for key in memory if key[0] in written]
    for key in outside:
        value = graph.value(key[0])
        if value.storage in ("output", "part") and 0 not in key[1]:
            return key
    return max(outside, key=lambda key: graph.value(key[0]).size)


def _around_axis(
    shape: tuple[int, ...], columns: Sequence[Sequence[int]], lead: int, axis: int
) -> tuple[list[Dim], list[int]]:
    """Dimensions with the axis as the innermost, which neither merges nor turns around."""
    index = len(shape) + axis
    own = (shape[index], tuple([column[index] for column in columns]))
    rest = [(*column[:index], *column[index + 1 :]) for column in columns]
    dims, starts = collapse((*shape[:index], *shape[index + 1 :]), rest, lead)
    return [*dims, own], starts


def _whole_rows(
    dims: list[Dim], items: list[int], tiling: Tiling, area: int
) -> tuple[list[Dim], int, int]:
    """Tiles of whole rows; several where rows lie side by side, so that they share lines."""
    *outer, inner = dims
    cols = inner[0]
    votes = [
        sum([abs(own) == item for own, item in zip(strides, items, strict=True)])
        for _, strides in outer
    ]
    row = max(range(len(outer)), key=lambda i: (votes[i], i))
    adjacent = votes[row] and any(
        abs(step) > item for step, item in zip(inner[1], items, strict=True)
    )
    rows = max(tiling.transpose if adjacent else 1, area // cols)
    dims = [*outer[:row], *outer[row + 1 :], outer[row], inner]
    return dims, _even_share(outer[row][0], rows), cols


def collapse(
    shape: Sequence[int], columns: Sequence[Sequence[int]], lead: int = -1
) -> tuple[list[Dim], list[int]]:
    """Reorder, flip and merge dimensions for all operands together.

    Parameters
    ----------
    shape : sequence of int
    columns : sequence of sequence of int
        For every operand its strides, in any unit.
    lead : int
        The operand (usually the output) that ends up with non-negative, descending strides.

    Returns
    -------
    dims : list of (size, strides of every operand)
        Outermost first; at least one.
    starts : list of int
        For every operand the first element visited, counted from its element [0, ..., 0].

    Examples
    --------
    A dense operand and a row that is repeated for each of its rows do not merge:

    >>> collapse((2, 1, 3), [(12, 12, 4), (0, 0, 4)], 0)
    ([(2, (12, 0)), (3, (4, 4))], [0, 0])

    Two dense operands become one row, reversed ones too:

    >>> collapse((2, 3), [(-3, -1), (-3, -1)])
    ([(6, (1, 1))], [-5, -5])
    """
    starts = [0] * len(columns)
    dims: list[Dim] = []
    for axis, size in enumerate(shape):
        strides = tuple(column[axis] for column in columns)
        if size == 1:
            continue
        if strides[lead] < 0:
            starts = [start + (size - 1) * s for start, s in zip(starts, strides, strict=True)]
            strides = tuple(-s for s in strides)
        dims.append((size, strides))
    dims.sort(key=lambda dim: -dim[1][lead])
    merged: list[Dim] = []
    for size, strides in dims:
        if merged and all(o == s * size for o, s in zip(merged[-1][1], strides, strict=True)):
            merged[-1] = (merged[-1][0] * size, strides)
        else:
            merged.append((size, strides))
    return merged or [(1, (0,) * len(columns))], starts


def _with_row_dim(dims: list[Dim], items: list[int], area: int) -> tuple[list[Dim], bool]:
    """Give the nest at least two dimensions, with the best one for rows last but one.

    Where operands have their unit stride in another dimension than the innermost, that one is
    the row dimension: a kernel can then transpose within a tile.  Tells whether it is so.
    Otherwise it is the innermost one of those that fill a tile best.
    """
    if len(dims) == 1:
        return [(1, (0,) * len(items)), *dims], False
    cols, inner = dims[-1]
    # How many operands have their unit stride in a dimension, and not in the innermost one.
    votes = [
        sum(
            abs(own) == item and abs(innermost) > item
            for own, innermost, item in zip(strides, inner, items, strict=True)
        )
        for _, strides in dims[:-1]
    ]
    requested = -(-area // cols)  # rows that fill a tile
    row = max(range(len(votes)), key=lambda i: (votes[i], min(dims[i][0], requested), i))
    return [*dims[:row], *dims[row + 1 : -1], dims[row], dims[-1]], any(votes)


def _tile_sizes(dims: list[Dim], transposed: bool, tiling: Tiling, area: int) -> tuple[int, int]:
    """Rows and columns of a tile of about `area` elements, or of those for a transpose."""
    rows, cols = dims[-2][0], dims[-1][0]
    if transposed:
        area = TRANSPOSE_ASPECT * tiling.transpose**2
        tile_cols = min(cols, TRANSPOSE_ASPECT * tiling.transpose)
        return min(rows, area // tile_cols), tile_cols
    tile_cols = _even_share(cols, area)
    return _even_share(rows, max(1, area // tile_cols)), tile_cols


def _even_share(size: int, limit: int) -> int:
    """Length of pieces of `size`, at most `limit`: equal ones, whole cache lines if long."""
    if size <= limit:
        return size
    pieces = -(-size // limit)
    pieces += pieces % 2  # so that two, and often more, threads get the same
    share = -(-size // pieces)
    return min(limit, pad(share)) if share >= 4 * ALIGNMENT else share


def _walked(value: Value, loops: tuple[int, ...], strides: list[int], start: int) -> Value:
    """A value as loops walk it, with strides and a start in bytes."""
    item = value.dtype.itemsize
    return Value(
        value.id,
        value.name,
        loops,
        tuple([stride // item for stride in strides]),
        value.dtype,
        value.storage,
        value.alias_of,
        value.note,
        value.offset + start // item,
    )


def _tile(value: Value, loops: tuple[int, ...], cols: int) -> Value:
    """A tile of the loop itself: dense rows, each after the other."""
    strides = (*[0] * (len(loops) - 2), cols, 1)
    return Value(value.id, value.name, loops, strides, value.dtype, value.storage)
