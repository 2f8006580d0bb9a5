"""Attention: heads of two sizes, few and many queries over few and many keys, compared with PyTorch's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import aclnn
from aclnn.benchmark.cells import DTYPES
from aclnn.benchmark.peers import Torch

Call = Callable[[], Any]
Made = dict[str, np.ndarray]

HEADS = 8
SIZES = (64, 128)  # of a head
QUERIES = (1, 16, 128, 1024)
KEYS = (128, 1024, 4096)
QUICK_KEYS = (128,)


@dataclass(frozen=True, slots=True)
class AttentionCell:
    """One measurement: so many queries over so many keys."""

    size: int
    queries: int
    keys: int
    causal: bool
    dtype: str

    @property
    def operator(self) -> str:
        return f"attention, {HEADS} heads of {self.size}{', causal' if self.causal else ''}"

    @property
    def title(self) -> str:
        return f"{self.operator} {self.dtype}, {self.queries} queries over {self.keys} keys"

    @property
    def place(self) -> dict[str, Any]:
        """Columns that identify the cell in a report."""
        return {
            "operator": self.operator,
            "dtype": self.dtype,
            "regime": f"{self.queries} x {self.keys}",
            "layout": "",
            "elements": HEADS * self.queries * self.size,
            "workspace_bytes": 0,
        }

    @property
    def nbytes(self) -> int:
        """Bytes that any implementation has to read and write once."""
        rows = 2 * (self.queries + self.keys)
        return HEADS * self.size * rows * DTYPES[self.dtype].itemsize


def select(
    *,
    sizes: Sequence[int] = SIZES,
    queries: Sequence[int] = QUERIES,
    keys: Sequence[int] = KEYS,
    dtypes: Sequence[str] = tuple(DTYPES),
) -> list[AttentionCell]:
    """The cells that are asked for, in the order in which they are measured.

    Examples
    --------
    >>> [cell.queries for cell in select(sizes=[64], keys=[128], dtypes=["float32"])]
    [1, 16, 128, 1024, 1, 16, 128, 1024]
    """
    return [
        AttentionCell(size, count, length, causal, dtype)
        for size in sizes
        for causal in (False, True)
        for dtype in dtypes
        for length in keys
        for count in queries
    ]


def build(cell: AttentionCell, seed: int = 0) -> Made:
    """Normal numbers for a cell's operands, and memory for the result."""
    rng = np.random.default_rng(seed)
    rows = {"query": cell.queries, "key": cell.keys, "value": cell.keys}
    made = {
        name: rng.standard_normal((1, HEADS, count, cell.size), np.float32).astype(
            DTYPES[cell.dtype]
        )
        for name, count in rows.items()
    }
    return made | {"out": np.empty_like(made["query"])}


def ours(cell: AttentionCell, made: Made) -> Call:
    """Our call, which returns the result."""
    form = aclnn.scaled_dot_product_attention
    operands = (made["query"], made["key"], made["value"])
    return partial(form, *operands, is_causal=cell.causal, out=made["out"])


def theirs(cell: AttentionCell, made: Made) -> Call:
    """PyTorch's, of the same operands, into memory of its own."""
    form = importlib.import_module("torch").nn.functional.scaled_dot_product_attention
    operands = [Torch.tensor(made[name]) for name in ("query", "key", "value")]
    return partial(form, *operands, is_causal=cell.causal)
