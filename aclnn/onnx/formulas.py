"""What kernels compute, in ONNX's operators.

Of pointwise kernels their records say so. Of others, a line is ``kernel(operands; numbers) if condition -> results: body``. Numbers are inputs after the
operands, or attributes; a condition asks about them, the dtype that is computed in, and which of the
optional operands are `present`, and the `rank` of the result; the first line that fits counts. A body
that is one operator stands for itself, any other becomes a function. An operand with an exclamation mark is
taken along one dimension. Of a kernel of rows `axes` has the
axis that it reduces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from aclnn.kernels import records
from aclnn.kernels.record import Record

TEXT = """
softmax(x; axis): Softmax(x, axis=axis)
log_softmax(x; axis): LogSoftmax(x, axis=axis)
softmax_backward(g, y; axes): y * (g - ReduceSum(g * y, axes))
log_softmax_backward(g, y; axes): g - Exp(y) * ReduceSum(g, axes)
sum(x; axes): ReduceSum(x, axes)
mean(x; axes): ReduceMean(x, axes)
amax(x; axes): ReduceMax(x, axes)
most(x; axes): ReduceMax(x, axes)
place(x; axis): ArgMax(x, axis=axis)
cumsum(x; axes): CumSum(x, axes)
tril(x; diagonal): Trilu(x, diagonal, upper=0)
triu(x; diagonal): Trilu(x, diagonal)
moments(x; eps, axes) -> m, r: m = ReduceMean(x, axes); d = x - m; \
 r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps))
layer_norm(x, w!, b!; eps, axis) if {"weight", "bias"} <= present and dtype == "float32" -> y, m, r: \
 y, m, r = LayerNormalization(x, w, b, axis=axis, epsilon=eps)
layer_norm(x, w, b; eps, axes) if {"weight", "bias"} <= present -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); \
 y = d * r * w + b
layer_norm(x, w!; eps, axis) if "weight" in present and dtype == "float32" -> y, m, r: \
 y, m, r = LayerNormalization(x, w, axis=axis, epsilon=eps)
layer_norm(x, w; eps, axes) if "weight" in present -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); \
 y = d * r * w
layer_norm(x, b; eps, axes) if "bias" in present -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); \
 y = d * r + b
layer_norm(x; eps, axes) -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); y = d * r
layer_norm_backward_input(g, x, m, r, w; axes) if "weight" in present: \
 d = g * w; h = (x - m) * r; r * (d - ReduceMean(d, axes) - h * ReduceMean(d * h, axes))
layer_norm_backward_input(g, x, m, r; axes): \
 h = (x - m) * r; r * (g - ReduceMean(g, axes) - h * ReduceMean(g * h, axes))
layer_norm_backward_params(g, x, m, r; axes) if {"dweight", "dbias"} <= present -> w, b: \
 w = ReduceSum(g * (x - m) * r, axes); b = ReduceSum(g, axes)
layer_norm_backward_params(g, x, m, r; axes) if "dweight" in present: \
 ReduceSum(g * (x - m) * r, axes)
layer_norm_backward_params(g; axes): ReduceSum(g, axes)
rms_norm(x, w; eps, axes) if "gamma" in present -> y, r: \
 r = Reciprocal(Sqrt(ReduceMean(x * x, axes) + eps)); y = x * r * w
rms_norm(x; eps, axes) -> y, r: r = Reciprocal(Sqrt(ReduceMean(x * x, axes) + eps)); y = x * r
rms_norm_backward_input(g, x, r, w; axes) if "gamma" in present: \
 d = g * w; r * (d - x * r * r * ReduceMean(d * x, axes))
rms_norm_backward_input(g, x, r; axes): r * (g - x * r * r * ReduceMean(g * x, axes))
rms_norm_backward_gamma(g, x, r; axes): ReduceSum(g * x * r, axes)
matmul(a, b): MatMul(a, b)
matmul(a, b; alpha, beta): alpha * MatMul(a, b)
matmul(a, b, c; alpha, beta) if rank == 2: Gemm(a, b, c, alpha=alpha, beta=beta)
matmul(a, b, c; alpha, beta) if alpha == 1 and beta == 1: c + MatMul(a, b)
matmul(a, b, c; alpha, beta): beta * c + alpha * MatMul(a, b)
gather(table, index; axis): GatherElements(table, index, axis=axis)
"""

_LINE = re.compile(
    r"(?P<kernel>\w+)\((?P<operands>[^;)]*)(;(?P<numbers>[^)]*))?\)"
    r"( if (?P<condition>.*?))?( -> (?P<results>[\w, ]+))?:(?= )(?P<body>.*)"
)
_OPERATORS: dict[type, str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
    ast.BitAnd: "And", ast.BitOr: "Or", ast.BitXor: "Xor", ast.USub: "Neg", ast.Lt: "Less",
    ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal",
}  # fmt: skip
_TRUTHS = frozenset(
    ["And", "Or", "Xor", "Not", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]
)
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


@dataclass(frozen=True, slots=True)
class Instruction:
    """An operator of a body. Inputs are names, or numbers of the type of the first operand."""

    operator: str
    inputs: tuple[str | float, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()  # a name stands for a number of the node


@dataclass(frozen=True, slots=True)
class Formula:
    """What a kernel computes.

    Attributes
    ----------
    name : str
        Of the function.
    operands, numbers, results : tuple of str
    truths, flat : frozenset of str
        Operands that are taken as truth values, and those that have one dimension.
    condition : str
        When it holds; empty: always.
    body : tuple of Instruction
    """

    name: str
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    results: tuple[str, ...]
    truths: frozenset[str]
    flat: frozenset[str]
    condition: str
    body: tuple[Instruction, ...]

    @property
    def is_standard(self) -> bool:
        """Whether it is one operator of the standard, on operands and numbers as they are."""
        if len(self.body) != 1:
            return False
        return not any(isinstance(one, float) for one in self.body[0].inputs)

    @property
    def is_truth(self) -> bool:
        """Whether it gives a truth value."""
        return self.body[-1].operator in _TRUTHS

    def holds(
        self, numbers: Mapping[str, Any], dtype: str, present: Collection[str], rank: int
    ) -> bool:
        known = {**numbers, "dtype": dtype, "present": set(present), "rank": rank}
        return not self.condition or eval(self.condition, {"__builtins__": {}}, known)


@cache
def formulas() -> dict[str, tuple[Formula, ...]]:
    """The lines of each kernel, by its name."""
    found = {
        record.name: tuple([_of_record(record, n) for n in range(len(record.onnx))])
        for record in records().values()
        if record.onnx
    }
    for line in filter(None, TEXT.replace("\\\n", "").split("\n")):
        read = _LINE.fullmatch(line)
        assert read is not None, line
        before = found.get(read["kernel"], ())
        found[read["kernel"]] = (*before, _formula(read, len(before)))
    return found


def _of_record(record: Record, number: int) -> Formula:
    said = record.onnx[number]
    body, results = _instructions(said.text)
    truths = [one.name for one in record.inputs if one.role in ("truth", "mask")]
    return Formula(
        f"{record.name}_{number + 1}" if number else record.name,
        tuple([one.name for one in record.inputs]),
        record.parameters,
        results,
        frozenset(truths),
        frozenset(),
        said.when,
        body,
    )


def _formula(line: re.Match[str], number: int) -> Formula:
    operands, numbers = _names(line["operands"]), _names(line["numbers"] or "")
    body, results = _instructions(line["body"].strip())
    return Formula(
        f"{line['kernel']}_{number + 1}" if number else line["kernel"],
        tuple([name.rstrip("!") for name in operands]),
        numbers,
        results or _names(line["results"] or ""),
        frozenset(),
        frozenset([name[:-1] for name in operands if name.endswith("!")]),
        (line["condition"] or "").strip(),
        body,
    )


def _instructions(text: str) -> tuple[tuple[Instruction, ...], tuple[str, ...]]:
    """Those of a body, and the name of its result, if that is an expression."""
    body, results = _Body(), tuple[str, ...]()
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            named = [one.id for one in ast.walk(statement.targets[0]) if isinstance(one, ast.Name)]
            body.made(statement.value, *named)
        else:
            assert isinstance(statement, ast.Expr)
            body.made(statement.value, "result")
            results = ("result",)
    return tuple(body.instructions), results


def _names(words: str) -> tuple[str, ...]:
    return tuple([word.strip() for word in words.split(",") if word.strip()])


class _Body:
    """Instructions that were made of expressions."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []

    def made(self, part: ast.expr, *names: str) -> str | float:
        """What an expression gives: the name of a result, an operand, or a number."""
        if isinstance(part, ast.Name):
            return _NUMBERS.get(part.id, part.id)
        if isinstance(part, ast.Constant):
            return float(part.value)  # type: ignore[arg-type]
        if isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant):
            return -float(part.operand.value)  # type: ignore[arg-type]
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.NotEq):
            same = self._add("Equal", [part.left, part.comparators[0]], ())
            return self._append("Not", (same,), names)
        return self._add(*_parts(part), names, getattr(part, "keywords", ()))

    def _add(self, operator: str, parts: Any, names: Any, keywords: Any = ()) -> str:
        inputs = tuple([self.made(part) for part in parts])
        attributes = tuple([(one.arg, _attribute(one.value)) for one in keywords])
        return self._append(operator, inputs, names, attributes)

    def _append(self, operator: str, inputs: Any, names: Any, attributes: Any = ()) -> str:
        outputs = tuple(names) or (f"t{len(self.instructions)}",)
        self.instructions.append(Instruction(operator, inputs, outputs, attributes))
        return outputs[0]


def _parts(part: ast.expr) -> tuple[str, list[ast.expr]]:
    """The operator of an expression, and what it takes."""
    if isinstance(part, ast.BinOp):
        return _OPERATORS[type(part.op)], [part.left, part.right]
    if isinstance(part, ast.UnaryOp):
        return _OPERATORS[type(part.op)], [part.operand]
    if isinstance(part, ast.Compare):
        return _OPERATORS[type(part.ops[0])], [part.left, part.comparators[0]]
    assert isinstance(part, ast.Call), ast.dump(part)
    assert isinstance(part.func, ast.Name)
    return part.func.id, part.args


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the node, as the value of an attribute."""

    name: str


def _attribute(part: ast.expr) -> Any:
    return Number(part.id) if isinstance(part, ast.Name) else ast.literal_eval(part)
