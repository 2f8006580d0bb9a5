"""Matrix products: few and many rows, a right operand by rows or by columns, and other libraries.

What is compared with is PyTorch's `mm`, which calls MKL or oneDNN as it is built and for its dtype, BLAS
(SciPy's OpenBLAS, float32), and oneDNN's float32 product by way of PyTorch's `linear`.  One contender is our
own: the same product in an executor whose right operand is packed once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import aclnn
from aclnn.benchmark.cells import DTYPES
from aclnn.benchmark.peers import Torch

Call = Callable[[], Any]
Made = dict[str, np.ndarray]

SHAPES = (
    (1, 1024, 1024), (4, 1024, 1024), (16, 1024, 1024), (128, 1024, 1024), (512, 1024, 1024),
    (1, 4096, 1024), (16, 4096, 1024), (512, 256, 4096),
)  # fmt: skip
QUICK_SHAPES = ((1, 256, 256), (16, 256, 256))
LAYOUTS = ("rows", "columns")


@dataclass(frozen=True, slots=True)
class ProductCell:
    """One measurement: [m, k] times [k, n], the latter by rows or by columns."""

    shape: tuple[int, int, int]
    layout: str
    dtype: str

    @property
    def operator(self) -> str:
        return f"product, B by {self.layout}"

    @property
    def title(self) -> str:
        return f"{self.operator} {self.dtype}, {self.regime}"

    @property
    def regime(self) -> str:
        return " x ".join(map(str, self.shape))

    @property
    def place(self) -> dict[str, Any]:
        """Columns that identify the cell in a report."""
        m, _, n = self.shape
        return {
            "operator": self.operator,
            "dtype": self.dtype,
            "regime": self.regime,
            "layout": "",
            "elements": m * n,
            "workspace_bytes": 0,
        }

    @property
    def nbytes(self) -> int:
        """Bytes that any implementation has to read and write once."""
        m, k, n = self.shape
        return (m * k + k * n + m * n) * DTYPES[self.dtype].itemsize


def select(
    *,
    shapes: Sequence[Sequence[int]] = SHAPES,
    layouts: Sequence[str] = LAYOUTS,
    dtypes: Sequence[str] = tuple(DTYPES),
) -> list[ProductCell]:
    """The cells that are asked for, in the order in which they are measured.

    Examples
    --------
    >>> [cell.operator for cell in select(shapes=[(1, 8, 8)], dtypes=["float16"])]
    ['product, B by rows', 'product, B by columns']
    """
    return [
        ProductCell((m, k, n), layout, dtype)
        for layout in layouts
        for dtype in dtypes
        for m, k, n in shapes
    ]


def build(cell: ProductCell, seed: int = 0) -> Made:
    """Normal numbers for a cell's operands, and memory for the result."""
    rng = np.random.default_rng(seed)
    m, k, n = cell.shape
    dtype = DTYPES[cell.dtype]
    a = rng.standard_normal((m, k), np.float32).astype(dtype)
    b = rng.standard_normal((k, n) if cell.layout == "rows" else (n, k), np.float32).astype(dtype)
    return {"a": a, "b": b if cell.layout == "rows" else b.T, "out": np.empty((m, n), dtype)}


def ours(cell: ProductCell, made: Made) -> Call:
    """Our call, which returns the result."""
    return partial(aclnn.mm, made["a"], made["b"], out=made["out"])


def packed(cell: ProductCell, made: Made) -> Call:
    """A run of an executor whose right operand is packed once."""
    product = aclnn.compile(_product, packed="b")
    return product.executor(made["a"], made["b"], out=made["out"]).run


def _product(a: Any, b: Any) -> Any:
    return aclnn.mm(a, b)


def theirs(cell: ProductCell, made: Made) -> Call:
    """PyTorch's product, of the same operands, into memory of its own."""
    torch = importlib.import_module("torch")
    a, b = _tensors(cell, made)
    out = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    return partial(torch.mm, a, b, out=out)


def others(cell: ProductCell, made: Made, keys: Sequence[str]) -> Mapping[str, Call]:
    """Calls of the contenders other than PyTorch's `mm`, as far as their libraries are among the peers."""
    found = {"packed": packed(cell, made)}
    if cell.dtype != "float32":
        return found
    if "blas" in keys:
        found["blas"] = _blas(cell, made)
    if "torch" in keys and _has_onednn():
        linear = importlib.import_module("torch").ops.mkldnn._linear_pointwise
        a, b = _tensors(cell, made)
        found["onednn"] = partial(linear, a, b.T, None, "none", [], "")
    return found


def _tensors(cell: ProductCell, made: Made) -> tuple[Any, Any]:
    b = made["b"]
    by_columns = cell.layout == "columns"
    tensor = Torch.tensor(b.T if by_columns else b)
    return Torch.tensor(made["a"]), tensor.T if by_columns else tensor


def _blas(cell: ProductCell, made: Made) -> Call:
    """Its matrices lie by columns: as such ours are transposed, and so is their product."""
    gemm = importlib.import_module("scipy.linalg.blas").sgemm
    out = np.empty_like(made["out"])
    by_columns = cell.layout == "columns"
    right = made["b"] if by_columns else made["b"].T
    product = partial(
        gemm, 1.0, right, made["a"].T, beta=0.0, c=out.T, overwrite_c=True, trans_a=by_columns
    )
    return lambda: product().T


def _has_onednn() -> bool:
    torch = importlib.import_module("torch")
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
