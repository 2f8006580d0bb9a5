"""Loop nests: the shape, strides and tiles that the nodes of one step run over.

Dimensions of all operands are reordered, flipped and merged together, so that a dense operand
of any rank becomes one long row and a transpose becomes two dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import GraphError
from ..ir import Graph, Node, Value
from ..lower.tiling import ALIGNMENT, Tiling, count_tiles, pad
from ..strides import broadcast_strides

TRANSPOSE_ASPECT = 4  # columns for each row of a tile whose operands are transposed to each other


@dataclass(frozen=True, slots=True)
class NestOperand:
    """A value as a loop nest walks it; `start` and `strides` in bytes."""

    value: int
    start: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Loops over `shape`, cut into tiles along the last two dimensions.

    `ops` holds for every node of the step the places of its operands, the output's last.
    """

    shape: tuple[int, ...]
    tile_rows: int
    tile_cols: int
    operands: tuple[NestOperand, ...]
    ops: tuple[tuple[int, ...], ...]

    @property
    def n_tiles(self) -> int:
        """Number of tiles, those at the edges included."""
        return count_tiles(self.shape, self.tile_rows, self.tile_cols)


def loop_nest(graph: Graph, step: tuple[Node, ...], tiling: Tiling) -> LoopNest:
    """The loops of a step.

    What lies in memory decides about dimensions and tiles; tiles of the loop itself are dense and
    follow.

    >>> from aclnn.graph import DType, GraphBuilder, run_passes
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (8, 6, 4), f32), b.output("out", (8, 6, 4), f32)
    >>> b.view_copy(b.compute("relu", [x], (8, 6, 4), f32), out)
    >>> graph = run_passes(b.build()).graph
    >>> loop_nest(graph, graph.steps()[0], Tiling()).shape
    (1, 192)
    """
    for node in step:
        if not node.is_elementwise:
            raise GraphError(node.name, "a node that is not elementwise has no tile loop")
    keys, ops = _operand_keys(graph, step)
    memory = [key for key in keys if graph.value(key[0]).storage != "tile"]
    items = [graph.value(id).dtype.itemsize for id, _ in memory]
    columns = [
        tuple(s * item for s in strides) for (_, strides), item in zip(memory, items, strict=True)
    ]
    # An empty value is never scheduled; it is planned as if it had an element.
    shape = tuple(max(1, size) for size in graph.value(step[-1].output).shape)
    dims, starts = collapse(shape, columns, memory.index(_lead_key(graph, step, memory)))
    area = tiling.scratch_elements if len(memory) < len(keys) else tiling.elements
    dims, transposed = _with_row_dim(dims, items, area)
    rows, cols = _tile(dims, transposed, tiling, area)
    walked = {
        key: NestOperand(key[0], start, tuple(strides[i] for _, strides in dims))
        for i, (key, start) in enumerate(zip(memory, starts, strict=True))
    }
    operands = tuple(
        walked.get(key) or _tile_operand(graph.value(key[0]), len(dims), cols) for key in keys
    )
    return LoopNest(tuple(size for size, _ in dims), rows, cols, operands, ops)


Key = tuple[int, tuple[int, ...]]  # id of a value, element strides that it is read with
Dim = tuple[int, tuple[int, ...]]  # size, byte stride of every operand


def _operand_keys(graph: Graph, step: tuple[Node, ...]) -> tuple[list[Key], tuple]:
    """Distinct (value, strides) pairs of a step, and every node's places among them."""
    keys: list[Key] = []
    ops = []
    for node in step:
        shape = graph.value(node.output).shape
        places = []
        for id in (*node.inputs, node.output):
            value = graph.value(id)
            key = (id, broadcast_strides(value.shape, value.strides, shape))
            if key not in keys:
                keys.append(key)
            places.append(keys.index(key))
        ops.append(tuple(places))
    return keys, tuple(ops)


def _lead_key(graph: Graph, step: tuple[Node, ...], memory: list[Key]) -> Key:
    """The operand whose layout decides the order of the loops: an output of the graph if any."""
    written = [node.output for node in step]
    outside = [key for key in memory if key[0] in written]
    for key in outside:
        if graph.value(key[0]).storage == "output":
            return key
    return outside[-1]


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
        For every operand where the first element visited lies, from its element [0, ..., 0].

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
    wanted = -(-area // cols)  # rows that fill a tile
    row = max(range(len(votes)), key=lambda i: (votes[i], min(dims[i][0], wanted), i))
    return [*dims[:row], *dims[row + 1 : -1], dims[row], dims[-1]], any(votes)


def _tile(dims: list[Dim], transposed: bool, tiling: Tiling, area: int) -> tuple[int, int]:
    """Rows and columns of a tile of about `area` elements, or of those for a transpose."""
    rows, cols = dims[-2][0], dims[-1][0]
    if transposed:
        area = TRANSPOSE_ASPECT * tiling.transpose**2
        tile_cols = min(cols, TRANSPOSE_ASPECT * tiling.transpose)
        return min(rows, area // tile_cols), tile_cols
    tile_cols = _even_share(cols, area)
    return _even_share(rows, max(1, area // tile_cols)), tile_cols


def _even_share(size: int, limit: int) -> int:
    """How long pieces of `size` are, at most `limit`: equal ones, whole cache lines if long."""
    if size <= limit:
        return size
    pieces = -(-size // limit)
    pieces += pieces % 2  # so that two, and often more, threads get the same
    share = -(-size // pieces)
    return min(limit, pad(share)) if share >= 4 * ALIGNMENT else share


def _tile_operand(value: Value, ndim: int, cols: int) -> NestOperand:
    """A tile of the loop itself: dense rows, each behind the other."""
    item = value.dtype.itemsize
    return NestOperand(value.id, 0, (0,) * (ndim - 2) + (cols * item, item))
