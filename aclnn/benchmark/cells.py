"""The benchmark matrix: operators, operands and ways to call them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.errors import AclnnError, AclnnTypeError
from aclnn.api.executor import executor
from aclnn.benchmark.chains import CHAINS, NAMED, RANDOM
from aclnn.compiler.settings import get_soc_version
from aclnn.execution._executor import aclOpExecutor
from aclnn.kernels import records
from aclnn.kernels.record import Record
from aclnn.operators import REGISTRY
from aclnn.operators.checks import TensorSpec

DTYPES = {name: dtypes.NUMPY[dtypes.of_name(name)] for name in ("float32", "float16", "bfloat16")}


def record_of(name: str) -> Record | None:
    """The record of the kernel that a pointwise operator is by default; None of others.

    >>> record_of("gelu").name
    'gelu'
    """
    operator = REGISTRY.get(name)
    formula = operator.formula if operator is not None else None
    if operator is not None and callable(formula):
        formula = formula({one.role: one.default for one in operator.switches})
    return records()[formula] if isinstance(formula, str) else None


# Those that other libraries can compile, and of these those of a gradient and an input.
OPERATORS = tuple(
    [name for name in REGISTRY if (found := record_of(name)) is not None and found.expression]
)
LAYOUT_OPERATORS = tuple(
    [
        name
        for name in OPERATORS
        if (found := record_of(name)) is not None and found.inputs[0].name == "g"
    ]
)
PRODUCTS = ("matmul",)  # of square matrices, which have the elements of the output each
CHAIN_COLUMNS = 1024  # of a row of a chain's operands
MIXED = (("float16", "float32"), ("float32", "bfloat16"))

# Spelled so that NumPy arrays, PyTorch tensors and JAX arrays all understand.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "": lambda base: base,
    "transposed": lambda base: base.T,
    "strided": lambda base: base[..., ::2],
}


@dataclass(frozen=True, slots=True)
class Regime:
    """A column of the matrix: how operators are called, on how many elements.

    Attributes
    ----------
    name : str
        What ``--regimes`` calls it.
    elements : int
        Elements of the output.
    form : {'call', 'phases', 'run'}
        A functional call with ``out=``; phase one and phase two; an executor's ``run()``.
    layout : str
        Empty for contiguous operands of one dtype.
    """

    name: str
    elements: int
    form: str = "call"
    layout: str = ""


LAYOUTS = ("mixed", "broadcast-row", "broadcast-column", "transposed", "strided")
LAYOUT_ELEMENTS = 1 << 22
REGIMES = (
    Regime("call16", 16),
    Regime("phases16", 16, "phases"),
    Regime("run16", 16, "run"),
    Regime("4096", 4096),
    Regime("256Ki", 1 << 18),
    Regime("1Mi", 1 << 20),
    Regime("16Mi", 1 << 24),
    *(Regime(name, LAYOUT_ELEMENTS, layout=name) for name in LAYOUTS),
)
QUICK = ("call16", "phases16", "run16", "4096", "256Ki")


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: a contiguous array, looked at through a view."""

    dtype: str
    shape: tuple[int, ...]
    view: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement: an operator in a regime, and its operands."""

    operator: str
    regime: Regime
    inputs: tuple[Operand, ...]
    out: Operand

    @property
    def dtype(self) -> str:
        """The dtypes in words.

        >>> [cell.dtype for cell in select(["elu_backward"], regimes=["mixed"])]
        ['float16→float32', 'float32→bfloat16']
        """
        arguments = "+".join(dict.fromkeys(operand.dtype for operand in self.inputs))
        mixed = "+" in arguments
        return (
            arguments if mixed or arguments == self.out.dtype else f"{arguments}→{self.out.dtype}"
        )

    @property
    def title(self) -> str:
        return f"{self.operator} {self.dtype} {self.regime.name}"


@dataclass(frozen=True, slots=True)
class Memory:
    """A cell's arrays: the contiguous bases, the inputs as views of them, the output."""

    bases: tuple[np.ndarray, ...]
    inputs: tuple[np.ndarray, ...]
    out: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that any implementation has to read and write once."""
        return sum(array.nbytes for array in (*self.inputs, self.out))


def measurable() -> list[str]:
    """The operators that cells can be made of: all operands are arrays of one shape, all options have
    defaults; and products and chains.
    """
    plain = [
        name
        for name, operator in REGISTRY.items()
        if operator.functional and name not in PRODUCTS and _is_plain(name)
    ]
    return [*plain, *PRODUCTS, *CHAINS]


def groups() -> dict[str, tuple[str, ...]]:
    """Operators that are measured together, by the name of the group.

    >>> "silu" in groups()["pointwise"], groups()["products"]
    (True, ('matmul',))
    """
    single = [name for name in measurable() if name in REGISTRY and name not in PRODUCTS]
    pointwise = [name for name in single if _is_pointwise(name)]
    return {
        "pointwise": tuple(pointwise),
        "products": PRODUCTS,
        "chains": tuple(NAMED),
        "random": tuple(RANDOM),
    }


@cache
def _is_pointwise(name: str) -> bool:
    """Whether all that its plan computes is."""
    nodes = _tried(name, "float32").graph.nodes
    domains = {node.domain for node in nodes if node.kind == "Compute"}
    return domains == {"point"}


@cache
def _takes(name: str, dtype: str) -> bool:
    """Whether all its operands may have this dtype: `shrink` takes no bfloat16."""
    if name not in REGISTRY:
        return True
    try:
        _tried(name, dtype)
    except AclnnTypeError:
        return False
    except AclnnError:
        return True  # of other shapes
    return True


@cache
def _is_plain(name: str) -> bool:
    operator = REGISTRY[name]
    if any(operator.is_required(a.role) for a in operator.attributes) or operator.lists:
        return False
    if len(operator.outputs) > 1 or operator.name == operator.in_place:
        return False
    try:
        _tried(name, "float32")
    except AclnnError:
        return False
    return True


def _tried(name: str, dtype: str) -> aclOpExecutor:
    """An executor of an operator whose operands are of one shape and dtype."""
    ones = np.ones(2, DTYPES[dtype])
    return executor(name, *[ones] * len(REGISTRY[name].inputs), out=np.empty_like(ones))


def select(
    operators: Sequence[str] = OPERATORS,
    *,
    dtypes: Sequence[str] = tuple(DTYPES),
    regimes: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    layout_elements: int = LAYOUT_ELEMENTS,
) -> list[Cell]:
    """The cells of the matrix that are asked for, in the order in which they are measured.

    Parameters
    ----------
    operators, dtypes : sequence of str
        Cells of other operators, or with an operand of another dtype, are left out.
    regimes : sequence of str, optional
        Names of `REGIMES`; ``layout`` stands for all layouts.
    sizes : sequence of int, optional
        Elements; a size that no regime has gets a column of its own.
    layout_elements : int
        Elements of the cells that are about layouts, rounded down to a square.

    Examples
    --------
    >>> [cell.title for cell in select(["leaky_relu"], dtypes=["float16"], sizes=[16, 50])]
    ['leaky_relu float16 call16', 'leaky_relu float16 phases16', 'leaky_relu float16 run16', 'leaky_relu float16 50']
    """
    side = math.isqrt(layout_elements)
    columns = [
        Regime(r.name, side * side, layout=r.layout) if r.layout else r
        for r in REGIMES
        if regimes is None or r.name in regimes or (r.layout and "layout" in regimes)
    ]
    if sizes is not None:
        known = {r.elements for r in columns if r.form == "call"}
        columns = [r for r in columns if r.elements in sizes]
        columns += [Regime(str(n), n) for n in sizes if n not in known]
    return [
        cell
        for regime in sorted(columns, key=lambda r: (bool(r.layout), r.elements))
        for operator in operators
        for cell in _cells(operator, regime)
        if {operand.dtype for operand in (*cell.inputs, cell.out)} <= set(dtypes)
        and _takes(cell.operator, cell.out.dtype)
    ]


def _chain_cells(name: str, regime: Regime) -> Iterator[Cell]:
    """The cells of a chain, which has no layouts and no C-shaped form."""
    if regime.layout or regime.form == "phases":
        return
    chain, columns = CHAINS[name], math.gcd(regime.elements, CHAIN_COLUMNS)
    for dtype in DTYPES:
        whole = Operand(dtype, (regime.elements // columns, columns))
        row = Operand(dtype, (1, columns))
        inputs = tuple([row if one in chain.broadcast else whole for one in chain.inputs])
        yield Cell(name, regime, inputs, whole)


def _product_cells(name: str, regime: Regime) -> Iterator[Cell]:
    if regime.layout or regime.form != "call":
        return
    side = math.isqrt(regime.elements)
    for dtype in DTYPES:
        one = Operand(dtype, (side, side))
        yield Cell(name, regime, (one, one), one)


def _cells(operator: str, regime: Regime) -> Iterator[Cell]:
    if operator in CHAINS:
        yield from _chain_cells(operator, regime)
        return
    if operator in PRODUCTS:
        yield from _product_cells(operator, regime)
        return
    if not regime.layout:
        shape = (regime.elements,)
        for dtype in DTYPES:
            one = Operand(dtype, shape)
            yield Cell(operator, regime, (one,) * len(REGISTRY[operator].inputs), one)
        return
    if operator in LAYOUT_OPERATORS:
        for inputs, out in _laid_out(operator, regime.layout, math.isqrt(regime.elements)):
            yield Cell(operator, regime, inputs, out)


def _laid_out(
    operator: str, layout: str, side: int
) -> Iterator[tuple[tuple[Operand, ...], Operand]]:
    """Operands (gradient, input) and output of an operator's cells of one layout."""
    square = (side, side)
    if layout == "mixed":
        for first, second in MIXED:
            inputs, out = (Operand(first, square), Operand(second, square)), "float32"
            if not _accepted(operator, inputs, out):  # its output alone may be of another dtype
                inputs, out = (Operand(first, square),) * 2, second
            yield inputs, Operand(out, square)
        return
    for dtype in DTYPES:
        whole, wide = Operand(dtype, square), Operand(dtype, (side, 2 * side), "strided")
        inputs = {
            "broadcast-row": (Operand(dtype, (1, side)), whole),
            "broadcast-column": (Operand(dtype, (side, 1)), whole),
            "transposed": (whole, Operand(dtype, square, "transposed")),
            "strided": (wide, wide),
        }[layout]
        if not layout.startswith("broadcast") or _accepted(operator, inputs, dtype):
            yield inputs, whole


def _accepted(operator: str, inputs: Sequence[Operand], out: str) -> bool:
    """Whether an operator takes such operands, for a whole output of a dtype."""
    declared = REGISTRY[operator]
    arguments = [*inputs, Operand(out, inputs[-1].shape)]
    specs = [TensorSpec(dtypes.of_name(one.dtype), one.shape, ()) for one in arguments]
    tensors = dict(zip((*declared.inputs, "out"), specs, strict=True))
    return declared.accepts(tensors, get_soc_version())


def build(cell: Cell, seed: int = 0) -> Memory:
    """Make a cell's arrays: inputs drawn evenly from the operator's domain, an output of NaN.

    >>> (cell,) = select(["gelu_backward"], dtypes=["float32"], regimes=["strided"], layout_elements=16)
    >>> memory = build(cell)
    >>> memory.bases[0].shape, memory.inputs[0].shape, memory.out.shape
    ((4, 8), (4, 4), (4, 4))
    """
    rng = np.random.default_rng(seed)
    low, high = (CHAINS.get(cell.operator) or REGISTRY[cell.operator]).domain
    bases = tuple(
        (low + (high - low) * rng.random(operand.shape, np.float32)).astype(DTYPES[operand.dtype])
        for operand in cell.inputs
    )
    inputs = tuple(VIEWS[o.view](base) for o, base in zip(cell.inputs, bases, strict=True))
    return Memory(bases, inputs, np.full(cell.out.shape, np.nan, DTYPES[cell.out.dtype]))
