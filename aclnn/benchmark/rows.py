"""Row-wise operators: along which axis, on how long rows, compared with PyTorch's own.

Of these operators no two have the same operands, so each has a function that makes a call of ours and
one of PyTorch's, on the same memory where both can write into it.  Operands have as many elements in
every cell, so that a figure says what an element costs.
"""

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

AXES = ("last", "first", "middle")
LENGTHS = (64, 256, 1024, 4096, 16384, 65536)
QUICK_LENGTHS = (64, 1024)
ELEMENTS = 1 << 18
ADJACENT = 64  # adjacent rows, where the axis is in the middle
EPS = 1e-5


@dataclass(frozen=True, slots=True)
class Form:
    """An operator's calls.

    Attributes
    ----------
    ours : callable
        Makes our call from arrays by name, and the axis.
    theirs : callable
        Makes PyTorch's from tensors of the same memory, torch itself and the axis.
    operands : tuple of str
        Those that have the shape of rows, or `gamma` and `beta`, which have one element a column.
    along : tuple of str
        The axes that it takes.
    moved : int
        Operands and results of that shape: what is to be read and written.
    """

    ours: Callable[[Made, int], Call]
    theirs: Callable[[Any, Any, int], Call]
    operands: tuple[str, ...]
    along: tuple[str, ...] = AXES
    moved: int = 2


@dataclass(frozen=True, slots=True)
class RowCell:
    """One measurement: an operator along an axis, on rows of so many elements."""

    operator: str
    along: str
    length: int
    dtype: str

    @property
    def title(self) -> str:
        return f"{self.operator} {self.dtype} along the {self.along} axis, rows of {self.length}"

    @property
    def shape(self) -> tuple[int, ...]:
        rows = max(1, ELEMENTS // self.length)
        if self.along == "last":
            return rows, self.length
        if self.along == "first":
            return self.length, rows
        adjacent = min(rows, ADJACENT)
        return rows // adjacent, self.length, adjacent

    @property
    def axis(self) -> int:
        return {"last": -1, "first": 0, "middle": 1}[self.along]

    @property
    def place(self) -> dict[str, Any]:
        """Columns that identify the cell in a report."""
        return {
            "operator": f"{self.operator}, {self.along} axis",
            "dtype": self.dtype,
            "regime": f"rows of {self.length}",
            "layout": "",
            "elements": ELEMENTS,
            "workspace_bytes": 0,
        }

    @property
    def nbytes(self) -> int:
        """Bytes that any implementation has to read and write once."""
        return FORMS[self.operator].moved * ELEMENTS * DTYPES[self.dtype].itemsize


def select(
    operators: Sequence[str] | None = None,
    *,
    axes: Sequence[str] = AXES,
    lengths: Sequence[int] = LENGTHS,
    dtypes: Sequence[str] = tuple(DTYPES),
) -> list[RowCell]:
    """The cells that are asked for, in the order in which they are measured.

    Parameters
    ----------
    operators : sequence of str, optional
        Names in `FORMS`; all by default.
    axes, lengths, dtypes : sequence
        Cells with others are left out.

    Examples
    --------
    >>> [cell.shape for cell in select(["softmax"], lengths=[1024], dtypes=["float16"])]
    [(256, 1024), (1024, 256), (4, 1024, 64)]
    """
    return [
        RowCell(name, along, length, dtype)
        for name in (operators or FORMS)
        for along in FORMS[name].along
        if along in axes
        for dtype in dtypes
        for length in lengths
    ]


def build(cell: RowCell, seed: int = 0) -> Made:
    """Normal numbers for a cell's operands, and memory for what it writes."""
    rng = np.random.default_rng(seed)
    form, dtype = FORMS[cell.operator], DTYPES[cell.dtype]
    made = {}
    for name in form.operands:
        shape = (cell.length,) if name in ("gamma", "beta") else cell.shape
        made[name] = rng.standard_normal(shape, np.float32).astype(dtype)
    if "y" in made:
        result = getattr(aclnn, cell.operator.removesuffix("_backward"))
        made["y"] = result(made["y"], cell.axis)
    made["out"] = np.empty(cell.shape, dtype)
    return made


def ours(cell: RowCell, made: Made) -> Call:
    """Our call; it returns what it computes, or several results, of which the first is compared.

    >>> (cell,) = select(["softmax"], axes=["first"], lengths=[64], dtypes=["float32"])
    >>> np.allclose(ours(cell, build(cell))().sum(0), 1)
    True
    """
    return FORMS[cell.operator].ours(made, cell.axis)


def theirs(cell: RowCell, made: Made) -> Call:
    """PyTorch's, of the same operands, into memory of its own."""
    torch = importlib.import_module("torch")
    tensors = {name: Torch.tensor(array) for name, array in made.items()}
    tensors["out"] = torch.empty_like(tensors["out"])
    return FORMS[cell.operator].theirs(tensors, torch, cell.axis)


def first_result(result: Any) -> np.ndarray:
    """As float32, whatever the library that made it."""
    while isinstance(result, tuple):
        result = result[0]
    if hasattr(result, "detach"):
        result = result.detach().float().numpy()
    return np.asarray(result).astype(np.float32).reshape(-1)


# --- Calls --------------------------------------------------------------------------------------


def _plain(name: str) -> Form:
    """Softmax and its like."""
    return Form(
        lambda made, axis: partial(getattr(aclnn, name), made["x"], axis, out=made["out"]),
        lambda arguments, torch, axis: partial(
            getattr(torch.ops.aten, f"_{name}").out,
            arguments["x"],
            axis,
            False,
            out=arguments["out"],
        ),
        ("x",),
    )


def _plain_gradient(name: str, output: str) -> Form:
    def theirs(arguments: Any, torch: Any, axis: int) -> Call:
        form = getattr(torch.ops.aten, f"_{name}_data").out
        operands = (arguments["grad"], arguments["y"], axis, arguments["grad"].dtype)
        return partial(form, *operands, **{output: arguments["out"]})

    return Form(
        lambda made, axis: partial(
            getattr(aclnn, name), made["grad"], made["y"], axis, out=made["out"]
        ),
        theirs,
        ("grad", "y"),
        moved=3,
    )


def _reduction(name: str, counterpart: str = "", moved: int = 1) -> Form:
    return Form(
        lambda made, axis: partial(getattr(aclnn, name), made["x"], axis),
        lambda arguments, torch, axis: partial(
            getattr(torch, counterpart or name), arguments["x"], axis
        ),
        ("x",),
        moved=moved,
    )


def _layer_norm(made: Made, axis: int) -> Call:
    shape = made["gamma"].shape
    return partial(aclnn.native_layer_norm, made["x"], shape, made["gamma"], made["beta"], EPS)


def _layer_norm_gradient(made: Made, axis: int) -> Call:
    shape = made["gamma"].shape
    _, mean, rstd = _layer_norm(made, axis)()
    operands = (made["grad"], made["x"], shape, mean, rstd, made["gamma"], made["beta"])
    return partial(aclnn.native_layer_norm_backward, *operands)


def _torch_layer_norm(arguments: Any, torch: Any, axis: int) -> Call:
    shape = tuple(arguments["gamma"].shape)
    form = torch.ops.aten.native_layer_norm
    return partial(form, arguments["x"], shape, arguments["gamma"], arguments["beta"], EPS)


def _torch_layer_norm_gradient(arguments: Any, torch: Any, axis: int) -> Call:
    shape = tuple(arguments["gamma"].shape)
    _, mean, rstd = _torch_layer_norm(arguments, torch, axis)()
    operands = (
        arguments["grad"],
        arguments["x"],
        shape,
        mean,
        rstd,
        arguments["gamma"],
        arguments["beta"],
    )
    return partial(torch.ops.aten.native_layer_norm_backward, *operands, [True] * 3)


def _rms_norm_gradient(made: Made, axis: int) -> Call:
    _, rstd = aclnn.native_rms_norm(made["x"], made["gamma"], EPS)
    return partial(aclnn.rms_norm_backward, made["grad"], made["x"], made["gamma"], rstd)


def _torch_rms_norm(arguments: Any, torch: Any, axis: int) -> Call:
    shape = tuple(arguments["gamma"].shape)
    return partial(torch.nn.functional.rms_norm, arguments["x"], shape, arguments["gamma"], EPS)


def _torch_rms_norm_gradient(arguments: Any, torch: Any, axis: int) -> Call:
    """PyTorch has it only as what autograd records."""
    leaves = [arguments[name].clone().requires_grad_() for name in ("x", "gamma")]
    made = _torch_rms_norm({"x": leaves[0], "gamma": leaves[1]}, torch, axis)()
    return partial(torch.autograd.grad, made, leaves, arguments["grad"], retain_graph=True)


def _torch_swiglu(arguments: Any, torch: Any, axis: int) -> Call:
    first, second = arguments["x"].chunk(2, -1)
    return lambda: torch.nn.functional.silu(first) * second


def _geglu(approximate: int) -> Form:
    """PyTorch's calls: the second half's GELU, and a product."""

    def theirs(arguments: Any, torch: Any, axis: int) -> Call:
        first, second = arguments["x"].chunk(2, -1)
        gelu = torch.nn.functional.gelu
        name = "tanh" if approximate else "none"
        return lambda: first * gelu(second, approximate=name)

    return Form(
        lambda made, axis: partial(aclnn.geglu, made["x"], -1, approximate),
        theirs,
        ("x",),
        ("last",),
    )


FORMS = {
    "softmax": _plain("softmax"),
    "log_softmax": _plain("log_softmax"),
    "softmax_backward": _plain_gradient("softmax_backward", "grad_input"),
    "log_softmax_backward": _plain_gradient("log_softmax_backward", "out"),
    "native_layer_norm": Form(_layer_norm, _torch_layer_norm, ("x", "gamma", "beta"), ("last",)),
    "native_layer_norm_backward": Form(
        _layer_norm_gradient, _torch_layer_norm_gradient,
        ("grad", "x", "gamma", "beta"), ("last",), 3,
    ),
    "rms_norm": Form(
        lambda made, axis: partial(
            aclnn.rms_norm, made["x"], made["gamma"].shape, made["gamma"], EPS
        ),
        _torch_rms_norm, ("x", "gamma"), ("last",),
    ),
    "rms_norm_backward": Form(
        _rms_norm_gradient, _torch_rms_norm_gradient, ("grad", "x", "gamma"), ("last",), 3
    ),
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "amax": _reduction("amax"),
    "var": _reduction("var"),
    "arg_max": _reduction("arg_max", "argmax"),
    "cumsum": _reduction("cumsum", moved=2),
    "swiglu": Form(
        lambda made, axis: partial(aclnn.swiglu, made["x"], -1), _torch_swiglu, ("x",), ("last",)
    ),
    "geglu": _geglu(0),
    "geglu_tanh": _geglu(1),
}  # fmt: skip
