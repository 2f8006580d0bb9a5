"""Tiles: how large they are, how many, and what their bytes are padded to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..constraints import Positive
from ..numbers import positive_number

ALIGNMENT = 64  # bytes: a cache line, and a register of the widest instruction set


def pad(nbytes: int, alignment: int = ALIGNMENT) -> int:
    """Round up to a multiple of `alignment`.

    >>> pad(1), pad(64), pad(65)
    (64, 64, 128)
    """
    return -(-nbytes // alignment) * alignment


# Bytes of an element of all tiles together up to which tiles are as large as they may be: a chain of two tiles
# of float32 in the first-level cache took 1.1 times as long where they filled it.
TILE_ITEM = 4
ROW_TILES = 4  # times as large are tiles of whole rows


@dataclass(frozen=True, slots=True)
class Tiling:
    """Size of tiles, in elements.

    Attributes
    ----------
    elements : int
        Of a tile when no intermediate lives in tiles.
    scratch_elements : int
        Of a tile when some does, so that tiles stay in the first-level cache; fewer, where many
        tiles are in use together.
    scratch_bytes : int
        That the tiles of a thread may take where rows cannot be cut: nodes that would need more
        are not fused.
    transpose : int
        Rows of the tiles of steps that have operands transposed to each other, and a quarter of
        their columns.

    Examples
    --------
    >>> Tiling(elements=1024)
    Tiling(elements=1024, scratch_elements=4096, scratch_bytes=131072, transpose=64)
    """

    elements: Positive = 16384
    scratch_elements: Positive = 4096
    scratch_bytes: Positive = 128 * 1024
    transpose: Positive = 64

    def area(self, slot: int) -> int:
        """Elements of a tile when an intermediate lives in tiles.

        Parameters
        ----------
        slot : int
            Bytes that the tiles in use together take for each element.

        Returns
        -------
        int
        """
        most = max(1, self.scratch_elements // 8, self.scratch_elements * TILE_ITEM // slot)
        return min(self.scratch_elements, most)

    def row_area(self, slot: int) -> int:
        """The same of a tile of whole rows, which is larger.

        What kernels do once for a tile, such as reading a weight, costs more than reading a tile from
        the second-level cache: chains took 0.87 to 1.0 of the time.

        Parameters
        ----------
        slot : int

        Returns
        -------
        int

        Examples
        --------
        >>> DEFAULT_TILING.area(4), DEFAULT_TILING.row_area(4)
        (4096, 16384)
        """
        return min(self.elements, ROW_TILES * self.area(slot))

    def __post_init__(self) -> None:
        for one in fields(self):
            count = positive_number(getattr(self, one.name), f"tiling: {one.name}")
            object.__setattr__(self, one.name, count)


DEFAULT_TILING = Tiling()


def count_tiles(shape: Sequence[int], tile_rows: int, tile_cols: int) -> int:
    """Number of tiles that loops are cut into, those at the edges included.

    >>> count_tiles((3, 5, 8), 2, 4)
    18
    """
    *outer, rows, cols = shape
    return math.prod(outer) * -(-rows // tile_rows) * -(-cols // tile_cols)
