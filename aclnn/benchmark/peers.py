"""Adapters for other libraries: the same operator on the same memory.

An adapter has a key, a title, whether it writes into the cell's output, and

- ``version()``: the installed version, or None where the library is not there;
- ``threads(n)``: use so many threads from now on;
- ``prepare(cell, memory)``: the call of a cell without arguments, which gives back its result, or
  None for what the library does not have.

Every adapter writes into the cell's output, except that of JAX, which has no such thing: its calls
include making the output. Compiling is never included.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import metadata
from typing import Any, Protocol

import ml_dtypes
import numpy as np

import aclnn
from aclnn.benchmark.cells import DTYPES, PRODUCTS, VIEWS, Cell, Memory
from aclnn.benchmark.chains import CHAINS

Call = Callable[[], Any]

# numba wakes its threads for whatever it is told to: below, telling it would make it slower.
THREADED_ELEMENTS = 1 << 15

# The operators for the libraries that compile expressions. Numbers have names, because a bare one
# is a double to some of these libraries, and what is slow then would not be their fault.
EXPRESSIONS = {
    "leaky_relu": "where(x > ZERO, x, x * SLOPE)",
    "hardshrink_backward": "where((x > HALF) | (x < -HALF), g, ZERO)",
    "elu_backward": "where(x > ZERO, g, g * exp(x))",
    "logit_backward": "where((x < ZERO) | (x > ONE), NAN, g / (x * (ONE - x)))",
    "gelu_backward": (
        "g * (HALF + HALF * erf(x * INV_SQRT2) + x * INV_SQRT2PI * exp(x * x * -HALF))"
    ),
}
CONSTANTS = {
    "ZERO": 0.0,
    "ONE": 1.0,
    "HALF": 0.5,
    "SLOPE": 0.01,
    "NAN": float("nan"),
    "INV_SQRT2": 0.7071067811865476,
    "INV_SQRT2PI": 0.3989422804014327,
}


class Peer(Protocol):
    """What every adapter has."""

    key: str
    title: str
    writes_out: bool

    def version(self) -> str | None: ...
    def threads(self, n: int) -> None: ...
    def prepare(self, cell: Cell, memory: Memory) -> Call | None: ...


def _installed(module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    return metadata.version(module)


def _names(cell: Cell) -> tuple[str, ...]:
    """What an operator's inputs are called in its expression."""
    return ("x",) if len(cell.inputs) == 1 else ("g", "x")


def _aten() -> Any:
    return importlib.import_module("torch").ops.aten


def _torch_gelu_backward(g: Any, x: Any, out: Any) -> Call:
    """It broadcasts nothing: a gradient of another shape has to be copied out first."""
    form = partial(_aten().gelu_backward.grad_input, approximate="none", grad_input=out)
    if g.shape == out.shape:
        return partial(form, g, x)
    return lambda: form(g.expand(out.shape).contiguous(), x)


def _torch_gradient(name: str, *numbers: float) -> Callable[..., Call]:
    """Of a gradient and an input or result."""
    return lambda g, x, out: partial(
        getattr(_aten(), name).grad_input, g, x, *numbers, grad_input=out
    )


def _torch_comparison(name: str) -> Callable[..., Call]:
    return lambda x, y, out: partial(getattr(_aten(), name).Tensor_out, x, y, out=out)


_SELU = (1.6732632423543772848, 1.0507009873554804934)
# Whose `out` form takes what ours does, with the same defaults.
TORCH_NAMESAKES = (
    *("add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "floor", "square", "sqrt"),
    *("rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos"),
    *("erf", "logical_and", "logical_or", "logical_xor", "logical_not"),
    *("sigmoid", "tanh", "silu", "mish", "softplus", "log_sigmoid", "hardswish"),
    *("hardsigmoid", "hardtanh", "softshrink", "heaviside", "erfinv", "celu"),
)
TORCH_FORMS: dict[str, Callable[..., Call]] = {
    "leaky_relu": lambda x, out: partial(_aten().leaky_relu.out, x, 0.01, out=out),
    "leaky_relu_backward": lambda g, x, out: partial(
        _aten().leaky_relu_backward.grad_input, g, x, 0.01, False, grad_input=out
    ),
    "hardshrink": lambda x, out: partial(_aten().hardshrink.out, x, 0.5, out=out),
    "elu": lambda x, out: partial(_aten().elu.out, x, 1.0, 1.0, 1.0, out=out),
    "gelu": lambda x, out: partial(_aten().gelu.out, x, approximate="none", out=out),
    "logit": lambda x, out: partial(_aten().logit.out, x, None, out=out),
    "hardshrink_backward": lambda g, x, out: partial(
        _aten().hardshrink_backward.grad_input, g, x, 0.5, grad_input=out
    ),
    "elu_backward": lambda g, x, out: partial(
        _aten().elu_backward.grad_input, g, 1.0, 1.0, 1.0, False, x, grad_input=out
    ),
    "logit_backward": lambda g, x, out: partial(
        _aten().logit_backward.grad_input, g, x, None, grad_input=out
    ),
    "gelu_backward": _torch_gelu_backward,
    # Its own `out` form makes another tensor first.
    "relu": lambda x, out: partial(_aten().clamp_min.out, x, 0.0, out=out),
    "selu": lambda x, out: partial(_aten().elu.out, x, *_SELU, 1.0, out=out),
    "selu_backward": lambda g, y, out: partial(
        _aten().elu_backward.grad_input, g, *_SELU, 1.0, True, y, grad_input=out
    ),
    **{
        f"{name}_backward": _torch_gradient(f"{name}_backward", *numbers)
        for name, numbers in {
            "sigmoid": (),
            "tanh": (),
            "silu": (),
            "hardsigmoid": (),
            "hardtanh": (-1.0, 1.0),
            "softshrink": (0.5,),
            "softplus": (1.0, 20.0),
        }.items()
    },
    **{name: _torch_comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "pow": lambda x, y, out: partial(_aten().pow.Tensor_Tensor_out, x, y, out=out),
    "addcmul": lambda x, a, b, out: partial(_aten().addcmul.out, x, a, b, out=out),
    "lerp": lambda x, y, weight, out: partial(_aten().lerp.Tensor_out, x, y, weight, out=out),
    "matmul": lambda a, b, out: partial(_aten().mm.out, a, b, out=out),
    "hardswish_backward_v2": lambda g, x, out: partial(
        _aten().hardswish_backward.out, g, x, out=out
    ),
    # Its buffer is what its forward function leaves there, which ours does without.
    "log_sigmoid_backward": lambda g, x, _, out: partial(
        _aten().log_sigmoid_backward.grad_input,
        g,
        x,
        _aten().log_sigmoid_forward(x)[1],
        grad_input=out,
    ),
}


def _torch_form(name: str) -> Callable[..., Any]:
    """A function of operands and ``out``."""
    if name in TORCH_FORMS:
        return lambda *operands, out: TORCH_FORMS[name](*operands, out)()
    return getattr(_aten(), name).out


class OneByOne:
    """This package itself: the calls of a chain one by one, two memories in turn."""

    key, title, writes_out = "single", "one by one", True

    def version(self) -> str | None:
        return aclnn.__version__

    def threads(self, n: int) -> None:
        """Ours are set already."""

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        if cell.operator not in CHAINS:
            return None
        between = np.empty_like(memory.out)
        forms = partial(getattr, aclnn)
        return CHAINS[cell.operator].into(forms, memory.inputs, between, memory.out)


class Torch:
    """PyTorch: the operators' own ``out`` forms."""

    key, title, writes_out = "torch", "PyTorch", True

    def version(self) -> str | None:
        return _installed("torch")

    def threads(self, n: int) -> None:
        importlib.import_module("torch").set_num_threads(n)

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        form = self._form(cell.operator)
        if form is None and cell.operator not in CHAINS:
            return None
        torch = importlib.import_module("torch")
        tensors = [
            VIEWS[operand.view](self.tensor(base))
            for operand, base in zip(cell.inputs, memory.bases, strict=True)
        ]
        out = self.tensor(memory.out)
        if form is None:
            return CHAINS[cell.operator].into(_torch_form, tensors, torch.empty_like(out), out)
        return form(*tensors, out)

    @staticmethod
    def _form(name: str) -> Callable[..., Call] | None:
        if name not in TORCH_NAMESAKES:
            return TORCH_FORMS.get(name)
        return lambda *operands: partial(
            getattr(_aten(), name).out, *operands[:-1], out=operands[-1]
        )

    @staticmethod
    def tensor(array: np.ndarray) -> Any:
        torch = importlib.import_module("torch")
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)


class Jax:
    """JAX on the CPU: compiled expressions, in float32 for halves; a new output in every call."""

    key, title, writes_out = "jax", "JAX", False

    def __init__(self) -> None:
        self._fixed: int | None = None

    def version(self) -> str | None:
        return _installed("jax")

    def threads(self, n: int) -> None:
        """JAX takes its threads when its CPU client is made, once for the life of a process."""
        if self._fixed == n:
            return
        if self._fixed is not None:
            raise RuntimeError(f"JAX has {self._fixed} threads already")
        if "jax" in sys.modules:
            raise RuntimeError("JAX has threads already")
        self._fixed = n
        before = os.environ.get("NPROC")
        os.environ["NPROC"] = str(n)
        try:
            importlib.import_module("jax").devices("cpu")
        finally:
            os.environ.pop("NPROC")
            os.environ |= {"NPROC": before} if before is not None else {}

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        expression = EXPRESSIONS.get(cell.operator)
        if expression is None:
            return None
        jax = importlib.import_module("jax")
        views = tuple(operand.view for operand in cell.inputs)
        compiled = _jax_compiled(expression, _names(cell), views, cell.out.dtype)
        arrays = [jax.device_put(base, jax.devices("cpu")[0]) for base in memory.bases]
        return lambda: compiled(*arrays).block_until_ready()


@cache
def _jax_compiled(
    expression: str, inputs: tuple[str, ...], views: tuple[str, ...], dtype: str
) -> Callable[..., Any]:
    jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
    functions = {"where": jnp.where, "exp": jnp.exp, "erf": jax.scipy.special.erf}
    formula = eval(f"lambda {', '.join(inputs)}: {expression}", {**CONSTANTS, **functions})

    def compute(*bases: Any) -> Any:
        looked_at = (VIEWS[view](base) for view, base in zip(views, bases, strict=True))
        return formula(*(operand.astype(jnp.float32) for operand in looked_at)).astype(
            DTYPES[dtype]
        )

    return jax.jit(compute)


class Numexpr:
    """numexpr: expressions compiled beforehand, in float32, which is all it has below float64."""

    key, title, writes_out = "numexpr", "numexpr", True

    def version(self) -> str | None:
        return _installed("numexpr")

    def threads(self, n: int) -> None:
        importlib.import_module("numexpr").set_num_threads(n)

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        expression = EXPRESSIONS.get(cell.operator)
        if expression is None or "erf(" in expression or not _all_float32(cell):
            return None
        numexpr = importlib.import_module("numexpr")
        nodes = importlib.import_module("numexpr.expressions")
        # Constants as nodes: numexpr takes numbers in the text for doubles.
        names = {
            **{name: nodes.VariableNode(name, "float") for name in _names(cell)},
            **{name: nodes.ConstantNode(np.float32(value)) for name, value in CONSTANTS.items()},
        }
        tree = eval(expression, {**nodes.functions, **names})
        compiled = numexpr.NumExpr(tree, [(name, float) for name in _names(cell)])
        return partial(
            compiled, *memory.inputs, out=memory.out, order="K", casting="safe", ex_uses_vml=False
        )


class Numba:
    """numba: a compiled loop over contiguous operands, a compiled ufunc for others; float32."""

    key, title, writes_out = "numba", "numba", True

    def __init__(self) -> None:
        self._threads = 1

    def version(self) -> str | None:
        return _installed("numba")

    def threads(self, n: int) -> None:
        importlib.import_module("numba").set_num_threads(n)
        self._threads = n

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        expression = EXPRESSIONS.get(cell.operator)
        if expression is None or not _all_float32(cell):
            return None
        make = _numba_ufunc if cell.regime.layout else _numba_loop
        parallel = self._threads > 1 and cell.regime.elements >= THREADED_ELEMENTS
        return partial(make(expression, _names(cell), parallel), *memory.inputs, memory.out)


@cache
def _numba_ufunc(expression: str, inputs: tuple[str, ...], parallel: bool) -> Any:
    numba = importlib.import_module("numba")
    formula = eval(f"lambda {', '.join(inputs)}: {expression}", _numba_names(numba))
    signature = f"float32({', '.join(['float32'] * len(inputs))})"
    return numba.vectorize([signature], target="parallel" if parallel else "cpu")(formula)


@cache
def _numba_loop(expression: str, inputs: tuple[str, ...], parallel: bool) -> Any:
    numba = importlib.import_module("numba")
    source = (
        f"def loop({', '.join(f'{name}s' for name in inputs)}, out):\n"
        f"    for i in {'prange' if parallel else 'range'}(out.size):\n"
        f"        {'; '.join(f'{name} = {name}s[i]' for name in inputs)}\n"
        f"        out[i] = {expression}\n"
    )
    scope: dict[str, Any] = {}
    exec(source, _numba_names(numba), scope)
    # NumPy's division: without it, every quotient is checked for a divisor of zero.
    return numba.njit(parallel=parallel, error_model="numpy")(scope["loop"])


def _numba_names(numba: Any) -> dict[str, Any]:
    """What an expression's names stand for."""
    constants = {name: np.float32(value) for name, value in CONSTANTS.items()}
    functions = {"where": numba.njit(_choose), "exp": math.exp, "erf": math.erf}
    return {**constants, **functions, "prange": numba.prange}


def _choose(condition: Any, first: Any, second: Any) -> Any:
    return first if condition else second


def _all_float32(cell: Cell) -> bool:
    return {operand.dtype for operand in (*cell.inputs, cell.out)} == {"float32"}


class Blas:
    """The BLAS that our products call, called directly: SciPy's, in float32."""

    key, title, writes_out = "blas", "BLAS", True

    def version(self) -> str | None:
        return _installed("scipy")

    def threads(self, n: int) -> None:
        """Its threads belong to the process, and are counted by threadpoolctl."""
        importlib.import_module("scipy.linalg.blas")
        importlib.import_module("threadpoolctl").threadpool_limits(n, user_api="blas")

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        if cell.operator not in PRODUCTS or not _all_float32(cell):
            return None
        a, b = memory.inputs
        gemm = importlib.import_module("scipy.linalg.blas").sgemm
        # Its matrices lie by columns: as such, ours are transposed, and so is their product.
        return partial(gemm, 1.0, b.T, a.T, beta=0.0, c=memory.out.T, overwrite_c=True)


PEERS: tuple[Peer, ...] = (OneByOne(), Torch(), Blas(), Jax(), Numexpr(), Numba())
TITLES = {peer.key: peer.title for peer in PEERS}
