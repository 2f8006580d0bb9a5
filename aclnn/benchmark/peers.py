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

import ast
import ctypes
import importlib
import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np

import aclnn
from aclnn.benchmark import standard
from aclnn.benchmark.cells import DTYPES, PRODUCTS, VIEWS, Cell, Memory, record_of
from aclnn.benchmark.chains import CHAINS
from aclnn.operators import REGISTRY, Operator

Call = Callable[[], Any]

# numba wakes its threads whatever limit it has: below, setting one would make it slower.
THREADED_ELEMENTS = 1 << 15

# What the text of an expression calls numbers: a bare one is a double to some of the libraries that compile
# it, and what is slow then would not be their fault.
NUMBER = "NUMBER"


@dataclass(frozen=True, slots=True)
class Expression:
    """Expression from a kernel's record, for libraries that compile expressions.

    Attributes
    ----------
    text : str
        Of names of inputs, numbers and functions.
    inputs : tuple of str
    numbers : mapping of str to float
    """

    text: str
    inputs: tuple[str, ...]
    numbers: Mapping[str, float]


@cache
def expression_of(name: str) -> Expression | None:
    """The expression of an operator with its options' defaults; None where its kernel has none.

    >>> expression_of("leaky_relu")
    Expression(text='where(x > NUMBER_0, x, x * slope)', inputs=('x',), numbers={'slope': 0.01, 'NUMBER_0': 0.0})
    """
    record = record_of(name)
    if record is None or not record.expression:
        return None
    numbers = {
        parameter: float(one.default)
        for parameter, one in zip(record.parameters, REGISTRY[name].scalars, strict=True)
        if isinstance(one.default, int | float)
    }
    named = _NamedNumbers(numbers)
    tree = named.visit(ast.parse(record.expression, mode="eval"))
    names = dict(zip(REGISTRY[name].kernel_operands, record.inputs, strict=True))
    inputs = tuple([names[role].name for role in REGISTRY[name].inputs])
    return Expression(ast.unparse(tree), inputs, named.numbers)


def _known(name: str) -> Expression:
    found = expression_of(name)
    assert found is not None
    return found


class _NamedNumbers(ast.NodeTransformer):
    """Gives each number of an expression a name."""

    def __init__(self, numbers: Mapping[str, float]):
        self.numbers = dict(numbers)
        self._names: dict[float, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == "nan":
            self.numbers[node.id] = math.nan
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.operand, ast.Constant):
            return self.named(-node.operand.value)  # type: ignore[operator]
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.named(node.value)

    def named(self, value: Any) -> ast.Name:
        """The name of a number."""
        self._names.setdefault(float(value), f"{NUMBER}_{len(self._names)}")
        name = self._names[float(value)]
        self.numbers[name] = float(value)
        return ast.Name(name, ast.Load())


class Peer(Protocol):
    """Interface of every adapter."""

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


def _aten() -> Any:
    return importlib.import_module("torch").ops.aten


@cache
def torch_form(name: str) -> Callable[..., Call] | None:
    """Makes PyTorch's call of inputs and ``out``, which computes the same; None: it has none.

    It is what the declaration says, or ATen's operator of that name.  Forms that PyTorch generates make a
    tensor of their own first, and do not count.
    """
    operator = REGISTRY.get(name)
    if operator is None:
        return None
    if operator.torch:
        return _declared(operator)
    packet = getattr(_aten(), name, None)
    forms = [getattr(packet, one) for one in packet.overloads()] if packet is not None else []
    return next(filter(None, [_with_out(operator, form) for form in forms]), None)


def _declared(operator: Operator) -> Callable[..., Call]:
    """Call that an expression describes; inner calls are made once."""
    call = ast.parse(operator.torch, mode="eval").body
    assert isinstance(call, ast.Call)
    made = ast.Call(ast.Name("partial", ast.Load()), [call.func, *call.args], call.keywords)
    text = f"lambda {', '.join(operator.inputs)}, out: {ast.unparse(made)}"
    return eval(text, {"partial": partial, **_aten_names(text)})


def _with_out(operator: Operator, form: Any) -> Callable[..., Call] | None:
    """A form of ATen's with `out`, if it takes as many tensors, and options that are known."""
    torch = importlib.import_module("torch")
    outs = [one.name for one in form._schema.arguments if one.is_out]
    rest = [one for one in form._schema.arguments if not one.is_out]
    tensors = [one.name for one in rest if str(one.type) == "Tensor"]
    if len(outs) != 1 or len(tensors) != len(operator.inputs) or torch.Tag.generated in form.tags:
        return None
    known = {one.name: one.default_value for one in rest if one.has_default_value()}
    known |= {one.role: one.default for one in operator.attributes}
    if not {one.name for one in rest} <= {*tensors, *known}:
        return None

    def make(*operands: Any, out: Any) -> Call:
        arguments = known | dict(zip(tensors, operands, strict=True)) | {outs[0]: out}
        by_place = [arguments[one.name] for one in rest if not one.kwarg_only]
        by_name = [one.name for one in rest if one.kwarg_only] + outs
        return partial(form, *by_place, **{name: arguments[name] for name in by_name})

    return make


def _aten_names(text: str) -> dict[str, Any]:
    """The operators of ATen's that an expression calls, by name."""
    return {
        name: getattr(_aten(), name)
        for name in re.findall(r"\w+(?=[.(])", text)
        if hasattr(_aten(), name)
    }


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
        forms, between = partial(getattr, aclnn), partial(np.empty_like, memory.out)
        return CHAINS[cell.operator].into(forms, memory.inputs, between, memory.out)


class Torch:
    """PyTorch: the operators' own ``out`` forms."""

    key, title, writes_out = "torch", "PyTorch", True

    def version(self) -> str | None:
        return _installed("torch")

    def threads(self, n: int) -> None:
        importlib.import_module("torch").set_num_threads(n)

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        form = torch_form(cell.operator)
        if form is None and cell.operator not in CHAINS:
            return None
        torch = importlib.import_module("torch")
        tensors = [
            VIEWS[operand.view](self.tensor(base))
            for operand, base in zip(cell.inputs, memory.bases, strict=True)
        ]
        out = self.tensor(memory.out)
        if form is None:
            between = partial(torch.empty_like, out)
            return CHAINS[cell.operator].into(_calling, tensors, between, out)
        call = form(*tensors, out=out)
        return call if _broadcasts(call) else _with_copies(form, tensors, out)

    @staticmethod
    def tensor(array: np.ndarray) -> Any:
        torch = importlib.import_module("torch")
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)


def _calling(name: str) -> Callable[..., Any]:
    """A function of operands and ``out``: PyTorch's of that name."""
    form = torch_form(name)
    if form is None:
        return getattr(_aten(), name).out
    return lambda *operands, out: form(*operands, out=out)()


def _broadcasts(call: Call) -> bool:
    try:
        call()
    except RuntimeError:
        return False
    return True


def _with_copies(form: Callable[..., Call], tensors: Sequence[Any], out: Any) -> Call:
    """A call of what broadcasts nothing: operands of another shape have to be copied out first."""
    return lambda: form(
        *[one if one.shape == out.shape else one.expand(out.shape).contiguous() for one in tensors],
        out=out,
    )()


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
        if cell.operator in CHAINS:
            return self._chain(cell, memory)
        expression = expression_of(cell.operator)
        if expression is None:
            return None
        jax = importlib.import_module("jax")
        views = tuple(operand.view for operand in cell.inputs)
        compiled = _jax_compiled(cell.operator, views, cell.out.dtype)
        arrays = [jax.device_put(base, jax.devices("cpu")[0]) for base in memory.bases]
        return lambda: compiled(*arrays).block_until_ready()

    @staticmethod
    def _chain(cell: Cell, memory: Memory) -> Call:
        jax = importlib.import_module("jax")
        compiled = _jax_chain(cell.operator)
        arrays = [jax.device_put(base, jax.devices("cpu")[0]) for base in memory.bases]
        return lambda: compiled(*arrays).block_until_ready()


@cache
def _jax_chain(name: str) -> Callable[..., Any]:
    """A chain in the operands' dtype."""
    jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
    functions = {one: getattr(jnp, one) for one in standard.FUNCTIONS if hasattr(jnp, one)}
    functions |= {"erf": jax.scipy.special.erf}
    return jax.jit(lambda *arrays: standard.compute(name, functions, arrays))


@cache
def _jax_compiled(name: str, views: tuple[str, ...], dtype: str) -> Callable[..., Any]:
    expression = _known(name)
    jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
    functions = {"where": jnp.where, "exp": jnp.exp, "erf": jax.scipy.special.erf}
    text = f"lambda {', '.join(expression.inputs)}: {expression.text}"
    formula = eval(text, {**expression.numbers, **functions})

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
        if cell.operator in CHAINS and _all_float32(cell):
            return self._chain(cell, memory)
        expression = expression_of(cell.operator)
        if expression is None or "erf(" in expression.text or not _all_float32(cell):
            return None
        numexpr = importlib.import_module("numexpr")
        nodes = importlib.import_module("numexpr.expressions")
        # Constants as nodes: numexpr takes numbers in the text for doubles.
        names = {
            **{name: nodes.VariableNode(name, "float") for name in expression.inputs},
            **{
                name: nodes.ConstantNode(np.float32(value))
                for name, value in expression.numbers.items()
            },
        }
        tree = eval(expression.text, {**nodes.functions, **names})
        compiled = numexpr.NumExpr(tree, [(name, float) for name in expression.inputs])
        return partial(
            compiled, *memory.inputs, out=memory.out, order="K", casting="safe", ex_uses_vml=False
        )

    @staticmethod
    def _chain(cell: Cell, memory: Memory) -> Call | None:
        """None where it lacks a function."""
        numexpr = importlib.import_module("numexpr")
        nodes = importlib.import_module("numexpr.expressions")
        functions = {
            **nodes.functions,
            "absolute": nodes.functions["abs"],
            "power": lambda x, y: x**y,
        }
        if not standard.can_compute(cell.operator, functions):
            return None
        inputs = CHAINS[cell.operator].inputs
        variables = [nodes.VariableNode(name, "float") for name in inputs]
        # Constants as nodes: numexpr takes numbers for doubles.
        tree = standard.compute(
            cell.operator,
            functions,
            variables,
            number=lambda value: nodes.ConstantNode(np.float32(value)),
        )
        compiled = numexpr.NumExpr(tree, [(name, float) for name in inputs])
        return partial(
            compiled, *memory.inputs, out=memory.out, order="K", casting="safe", ex_uses_vml=False
        )


class Inductor:
    """PyTorch's compiler: a chain as one function, into an output that is there.

    Its operands and output are PyTorch's own memory: of what does not begin with a line it makes copies.
    """

    key, title, writes_out = "inductor", "inductor", False

    def version(self) -> str | None:
        return _installed("torch")

    def threads(self, n: int) -> None:
        importlib.import_module("torch").set_num_threads(n)

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        if cell.operator not in CHAINS:
            return None
        torch = importlib.import_module("torch")
        tensors = [Torch.tensor(base).clone() for base in (*memory.bases, memory.out)]
        # What was compiled for another number of threads, or another dtype, is compiled again.
        torch.compiler.reset()
        chain, out = CHAINS[cell.operator], tensors[-1]
        result = (
            out.view(torch.int16).numpy().view(memory.out.dtype) if out.element_size() == 2 else out
        )

        def compute(*arguments: Any) -> None:
            _aten().copy_(arguments[-1], chain.by(partial(getattr, _aten()), arguments[:-1]))

        compiled = torch.compile(compute, dynamic=False)

        def call() -> Any:
            with torch.inference_mode():
                compiled(*tensors)
            return result

        return call


class LoopInC:
    """One loop in C over a chain in float32, compiled here for this CPU.

    Only chains of arithmetic and choices have one: the C library's functions would make it a loop of calls.
    """

    key, title, writes_out = "c", "loop in C", True

    def __init__(self) -> None:
        self._threads = 1

    def version(self) -> str | None:
        """The compiler's; None where there is none."""
        compiler = _compiler()
        if compiler is None:
            return None
        done = subprocess.run(
            [*compiler, "-dumpversion"], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def threads(self, n: int) -> None:
        self._threads = n

    def prepare(self, cell: Cell, memory: Memory) -> Call | None:
        if cell.operator not in CHAINS or not _all_float32(cell):
            return None
        if not standard.can_compute(cell.operator, standard.C_FUNCTIONS):
            return None
        loop, columns = _loop_in_c(cell.operator), memory.out.shape[-1]
        arguments = [array.ctypes.data for array in (*memory.inputs, memory.out)]
        return lambda: loop(*arguments, memory.out.size // columns, columns, self._threads)


LOOP_IN_C = """
#include <stddef.h>
static inline float chain({values}) {{
{statements}
}}
static void part({pointers}, float *restrict out, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t columns) {{
    for (ptrdiff_t row = begin; row < end; row++)
        for (ptrdiff_t i = 0; i < columns; i++) out[row * columns + i] = chain({elements});
}}
void loop({pointers}, float *restrict out, ptrdiff_t rows, ptrdiff_t columns, int threads) {{
    if (threads == 1) {{
        part({names}, out, 0, rows, columns);
        return;
    }}
    #pragma omp parallel for num_threads(threads)
    for (int k = 0; k < threads; k++)
        part({names}, out, rows * k / threads, rows * (k + 1) / threads, columns);
}}
"""


def _compiler() -> list[str] | None:
    named = os.environ.get("CC", "cc").split()
    return named if shutil.which(named[0]) else None


def _c_source(name: str) -> str:
    """The loop of a chain."""
    chain = CHAINS[name]
    elements = [
        f"{one}[i]" if one in chain.broadcast else f"{one}[row * columns + i]"
        for one in chain.inputs
    ]
    return LOOP_IN_C.format(
        values=", ".join([f"float {one}" for one in chain.inputs]),
        statements=standard.c_statements(name, chain.inputs),
        pointers=", ".join([f"const float *restrict {one}" for one in chain.inputs]),
        elements=", ".join(elements),
        names=", ".join(chain.inputs),
    )


@cache
def _loop_in_c(name: str) -> Any:
    compiler = _compiler()
    if compiler is None:
        raise RuntimeError("a loop in C takes a compiler: install one, or name it in CC")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "loop.c"), Path(folder, "loop.so")
        source.write_text(_c_source(name), encoding="utf-8")
        flags = ["-O3", "-march=native", "-mprefer-vector-width=512", "-fno-trapping-math"]
        command = [*compiler, *flags, "-fopenmp", "-shared", "-fPIC", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the loop in C was not compiled: {done.stderr.strip()}")
        loop = ctypes.CDLL(str(made)).loop
    pointers = [ctypes.c_void_p] * (len(CHAINS[name].inputs) + 1)
    loop.argtypes = [*pointers, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_int]
    return loop


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
        expression = expression_of(cell.operator)
        if expression is None or not _all_float32(cell):
            return None
        make = _numba_ufunc if cell.regime.layout else _numba_loop
        parallel = self._threads > 1 and cell.regime.elements >= THREADED_ELEMENTS
        return partial(make(cell.operator, parallel), *memory.inputs, memory.out)


@cache
def _numba_ufunc(name: str, parallel: bool) -> Any:
    numba, expression = importlib.import_module("numba"), _known(name)
    text = f"lambda {', '.join(expression.inputs)}: {expression.text}"
    formula = eval(text, _numba_names(numba, expression))
    signature = f"float32({', '.join(['float32'] * len(expression.inputs))})"
    return numba.vectorize([signature], target="parallel" if parallel else "cpu")(formula)


@cache
def _numba_loop(name: str, parallel: bool) -> Any:
    numba, expression = importlib.import_module("numba"), _known(name)
    inputs = expression.inputs
    source = (
        f"def loop({', '.join(f'{name}s' for name in inputs)}, out):\n"
        f"    for i in {'prange' if parallel else 'range'}(out.size):\n"
        f"        {'; '.join(f'{name} = {name}s[i]' for name in inputs)}\n"
        f"        out[i] = {expression.text}\n"
    )
    scope: dict[str, Any] = {}
    exec(source, _numba_names(numba, expression), scope)
    # NumPy's division: without it, every quotient is checked for a divisor of zero.
    return numba.njit(parallel=parallel, error_model="numpy")(scope["loop"])


def _numba_names(numba: Any, expression: Expression) -> dict[str, Any]:
    """Objects that an expression's names stand for."""
    constants = {name: np.float32(value) for name, value in expression.numbers.items()}
    functions = {"where": numba.njit(_choose), "exp": math.exp, "erf": math.erf}
    return {**constants, **functions, "prange": numba.prange}


def _choose(condition: Any, first: Any, second: Any) -> Any:
    return first if condition else second


def _all_float32(cell: Cell) -> bool:
    return {operand.dtype for operand in (*cell.inputs, cell.out)} == {"float32"}


class Blas:
    """SciPy's BLAS, in float32."""

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


PEERS: tuple[Peer, ...] = (
    OneByOne(),
    Torch(),
    Inductor(),
    LoopInC(),
    Blas(),
    Jax(),
    Numexpr(),
    Numba(),
)
# Those of `aclnn.benchmark.products` that are no peers of their own come last.
TITLES = {peer.key: peer.title for peer in PEERS} | {
    "onednn": "oneDNN",
    "packed": "The packed form",
}
