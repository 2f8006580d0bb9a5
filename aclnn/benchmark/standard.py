"""Chains as operators of ONNX's standard, for libraries that compile expressions.

The kernels of a chain's calls and their numbers are those of its graph; what each computes is in its record. So no
peer has functions of its own by the names of ours: `EXPRESSIONS` has the operators of the standard once, in
arithmetic, for everything that has arithmetic: arrays, numexpr's nodes, or text in C (`CText`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

import aclnn
from aclnn.benchmark.chains import CHAINS
from aclnn.graph import Node
from aclnn.onnx.formulas import Formula, Number, formulas

# Operators by their operands and attributes, in arithmetic, `where` and the functions of `FUNCTIONS`.
EXPRESSIONS = {
    "Abs(x)": "absolute(x)",
    "Add(x, y)": "x + y",
    "Celu(x, alpha)": "where(x > 0, x, alpha * (exp(where(x > 0, 0, x) / alpha) - 1))",
    "Clip(x, low, high)": "where(x < low, low, where(x > high, high, x))",
    "Cos(x)": "cos(x)",
    "Div(x, y)": "x / y",
    "Elu(x, alpha)": "where(x > 0, x, alpha * (exp(where(x > 0, 0, x)) - 1))",
    "Erf(x)": "erf(x)",
    "Exp(x)": "exp(x)",
    "Floor(x)": "floor(x)",
    "Gelu(x)": "0.5 * x * (1 + erf(x * 0.7071067811865476))",
    "Greater(x, y)": "x > y",
    "HardSigmoid(x, alpha, beta)": "where(alpha * x + beta < 0, 0, where(alpha * x + beta > 1, 1, alpha * x + beta))",
    "HardSwish(x)": "x * where(x < -3, 0, where(x > 3, 1, x / 6 + 0.5))",
    "LeakyRelu(x, alpha)": "where(x > 0, x, alpha * x)",
    "Less(x, y)": "x < y",
    "Max(x, y)": "where(x > y, x, y)",
    "Min(x, y)": "where(x < y, x, y)",
    "Mish(x)": "x * tanh(log1p(exp(x)))",
    "Mul(x, y)": "x * y",
    "Neg(x)": "-x",
    "Pow(x, y)": "power(x, y)",
    "Relu(x)": "where(x > 0, x, 0)",
    "Selu(x)": "1.0507009873554805 * where(x > 0, x, 1.6732632423543772 * (exp(where(x > 0, 0, x)) - 1))",
    "Shrink(x, lambd, bias)": "where(absolute(x) > lambd, where(x > 0, x - bias, x + bias), 0)",
    "Sigmoid(x)": "1 / (1 + exp(-x))",
    "Sin(x)": "sin(x)",
    "Softplus(x)": "log1p(exp(x))",
    "Sub(x, y)": "x - y",
    "Tanh(x)": "tanh(x)",
    "Where(c, x, y)": "where(c, x, y)",
}
FUNCTIONS = ("where", "absolute", "exp", "log1p", "sin", "cos", "tanh", "erf", "floor", "power")


@dataclass(frozen=True, slots=True)
class Step:
    """One operator: its operands are names of values or numbers."""

    operator: str
    operands: tuple[str | float, ...]
    attributes: tuple[tuple[str, float], ...]
    result: str


@cache
def steps_of(chain: str) -> tuple[Step, ...]:
    """The operators of a chain in order; inputs have the names of the chain, the last result is its own.

    >>> [(step.operator, step.operands, step.attributes) for step in steps_of("shrink_chain")][1]
    ('Shrink', ('0',), (('lambd', 0.5), ('bias', 0.0)))
    >>> [step.operator for step in steps_of("silu_gate")]
    ['Sigmoid', 'Mul', 'Mul']
    """
    shapes = [
        (1, 1) if name in CHAINS[chain].broadcast else (2, 1) for name in CHAINS[chain].inputs
    ]
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    graph = aclnn.compile(CHAINS[chain]).executor(*arrays).graph_as_built
    names = dict(
        zip([graph.root(one).id for one in graph.inputs], CHAINS[chain].inputs, strict=True)
    )
    steps: list[Step] = []
    for node in graph.nodes:
        operands = [names[graph.root(one).id] for one in node.inputs]
        made = operands[0]
        if node.kind == "Compute":
            steps += _steps_of_node(node, operands, len(steps))
            made = steps[-1].result
        names[graph.root(node.output).id] = made
    return tuple(steps)


def _steps_of_node(node: Node, operands: Sequence[str], first: int) -> list[Step]:
    formula, values = _formula_of(node)
    values |= dict(zip(formula.operands, operands, strict=True))
    steps = []
    for index, one in enumerate(formula.body):
        attributes = tuple(
            [(key, values[v.name] if isinstance(v, Number) else v) for key, v in one.attributes]
        )
        value = tuple([values[x] if isinstance(x, str) else x for x in one.inputs])
        steps.append(Step(one.operator, value, attributes, str(first + index)))
        values |= dict.fromkeys(one.outputs, steps[-1].result)
    return steps


def _formula_of(node: Node) -> tuple[Formula, dict[str, Any]]:
    """The first body of its kernel that counts, and its numbers by name."""
    for one in formulas()[str(node.attr("kernel"))]:
        numbers = dict(zip(one.numbers, node.attr("params", ()), strict=True))
        if one.holds({**numbers, "dtype": "float32"}):
            return one, numbers
    raise LookupError(f"the record of {node.attr('kernel')} has no body for {node.attr('params')}")


# --- In arithmetic ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """An operator as an expression: the names that it takes, its code, and the functions in it."""

    taken: tuple[str, ...]
    code: CodeType
    functions: frozenset[str]


class _WrappedNumbers(ast.NodeTransformer):
    """Makes each number of an expression a call: what it is depends on who computes."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Call(ast.Name("number", ast.Load()), [node], [])


@cache
def _forms() -> dict[str, _Form]:
    found = {}
    for head, text in EXPRESSIONS.items():
        operator, _, rest = head.partition("(")
        tree = ast.parse(text, mode="eval")
        used = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)} & {*FUNCTIONS}
        whole = ast.fix_missing_locations(_WrappedNumbers().visit(tree))
        code = compile(whole, operator, "eval")
        found[operator] = _Form(tuple(re.findall(r"\w+", rest)), code, frozenset(used))
    return found


def can_compute(chain: str, functions: Mapping[str, Any]) -> bool:
    """Whether these functions are all that a chain needs.

    >>> can_compute("shrink_chain", C_FUNCTIONS), can_compute("silu_gate", C_FUNCTIONS)
    (True, False)
    """
    forms = [_forms()[step.operator] for step in steps_of(chain)]
    return all(form.functions <= {*functions} for form in forms)


def compute(
    chain: str,
    functions: Mapping[str, Callable[..., Any]],
    operands: Sequence[Any],
    number: Callable[[float], Any] = float,
    keep: Callable[[str, Any], Any] = lambda name, value: value,
) -> Any:
    """The result of a chain by arithmetic and functions.

    Parameters
    ----------
    chain : str
    functions : mapping
        Those of `FUNCTIONS` that there are, by name.
    operands : sequence
        Of the chain's inputs: whatever has arithmetic.
    number : callable
        What stands for a number.
    keep : callable
        What stands for a result, of its name and value.

    Examples
    --------
    >>> compute("relu_residual", {"where": np.where}, [np.float32([1, -3]), np.float32([1, 1])])
    array([ 3., -3.], dtype=float32)
    """
    values: dict[str, Any] = dict(zip(CHAINS[chain].inputs, operands, strict=True))
    steps = steps_of(chain)
    for step in steps:
        form = _forms()[step.operator]
        argument = [values[one] if isinstance(one, str) else number(one) for one in step.operands]
        scope = dict(zip(form.taken, argument, strict=False))
        scope |= {key: number(value) for key, value in step.attributes}
        value = eval(form.code, {**functions, **scope, "number": number})
        values[step.result] = keep(step.result, value)
    return values[steps[-1].result]


# --- As text in C -----------------------------------------------------------------------------------


class CText:
    """An expression in C, which arithmetic makes longer.

    >>> str(-(CText("x") + CText("1.f")) < CText("y"))
    '((-(x + 1.f)) < y)'
    """

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __neg__(self) -> CText:
        return CText(f"(-{self.text})")

    def __add__(self, other: CText) -> CText:
        if other.text == ZERO:
            return self  # as by hand
        return CText(f"({self.text} + {other.text})")

    def __sub__(self, other: CText) -> CText:
        if other.text == ZERO:
            return self
        return CText(f"({self.text} - {other.text})")

    def __mul__(self, other: CText) -> CText:
        return CText(f"({self.text} * {other.text})")

    def __truediv__(self, other: CText) -> CText:
        return CText(f"({self.text} / {other.text})")

    def __lt__(self, other: CText) -> CText:
        return CText(f"({self.text} < {other.text})")

    def __gt__(self, other: CText) -> CText:
        return CText(f"({self.text} > {other.text})")

    @staticmethod
    def where(condition: CText, yes: CText, no: CText) -> CText:
        if yes.text == no.text:
            return yes
        return CText(f"({condition.text} ? {yes.text} : {no.text})")

    def __abs__(self) -> CText:
        return CText(f"__builtin_fabsf({self.text})")

    @staticmethod
    def number(value: float) -> CText:
        """
        >>> str(CText.number(0.5))
        '0x1.0000000000000p-1f'
        """
        return CText(f"{float(np.float32(value)).hex()}f")


ZERO = CText.number(0).text
C_FUNCTIONS: dict[str, Callable[..., Any]] = {"where": CText.where, "absolute": abs}


def c_statements(chain: str, operands: Sequence[str]) -> str:
    """The body of a loop over a chain's elements, in C; the last statement returns the result.

    >>> print(c_statements("relu_residual", ["x[i]", "y[i]"]))
    const float t0 = (x[i] + y[i]);
    const float t1 = ((t0 > 0x0.0p+0f) ? t0 : 0x0.0p+0f);
    const float t2 = (t1 + x[i]);
    return t2;
    """
    lines = []

    def keep(name: str, value: CText) -> CText:
        lines.append(f"const float t{name} = {value};")
        return CText(f"t{name}")

    argument = [CText(one) for one in operands]
    last = compute(chain, C_FUNCTIONS, argument, CText.number, keep)
    return "\n".join([*lines, f"return {last};"])
