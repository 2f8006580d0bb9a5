"""Kernels' formulas in ONNX's operators, from their records (`aclnn/kernels/record.py`).

The first body that fits counts. A body that is one operator stands for itself, any other becomes a function.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from aclnn.kernels import records
from aclnn.kernels.record import Record

_OPERATORS: dict[type, str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
    ast.BitAnd: "And", ast.BitOr: "Or", ast.BitXor: "Xor", ast.USub: "Neg", ast.Lt: "Less",
    ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal",
}  # fmt: skip
_TRUTHS = frozenset(
    ["And", "Or", "Xor", "Not", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]
)
# What bodies may take besides operands and parameters: whole numbers.
PLACES = ("axis", "axes", "diagonal", "ignored")
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
    """Formula of a kernel.

    Attributes
    ----------
    name : str
        Of the function.
    operands, roles : tuple of str
        Their roles are those of the record, or ``flat``: along one dimension.
    optional : tuple of str
        Those of the operands that others need not have.
    numbers, results : tuple of str
    condition : str
        When it holds; empty: always.
    body : tuple of Instruction
    needed : frozenset of str
        The numbers that its condition and its body name: those of a node that has others are not given.
    """

    name: str
    operands: tuple[str, ...]
    roles: tuple[str, ...]
    optional: frozenset[str]
    numbers: tuple[str, ...]
    results: tuple[str, ...]
    condition: str
    body: tuple[Instruction, ...]
    needed: frozenset[str]

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

    def holds(self, known: Mapping[str, Any]) -> bool:
        """Whether its condition does, of what is known of a node by name."""
        if not self.needed <= known.keys():
            return False
        return not self.condition or eval(self.condition, {"__builtins__": {}}, dict(known))


@cache
def formulas() -> dict[str, tuple[Formula, ...]]:
    """The bodies of each kernel, by its name."""
    return {
        record.name: tuple([_formula(record, n) for n in range(len(record.onnx))])
        for record in records().values()
        if record.onnx
    }


def formula_for(
    kernel: str,
    n_operands: int,
    arguments: Sequence[Any],
    places: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> tuple[Formula, dict[str, Any]] | None:
    """The first body of a kernel that fits a node, and the node's numbers by name; None if none does.

    Parameters
    ----------
    kernel : str
    n_operands : int
    arguments : sequence of numbers
        The node's parameters: all that the record names, the first of them, or none.
    places : mapping
        What `PLACES` names.
    facts : mapping
        `dtype`, `present` and `rank`, as `OnnxBody.when` has them.

    Examples
    --------
    >>> facts = {"dtype": "float32", "present": set(), "rank": 3}
    >>> formula_for("matmul", 3, (), {}, facts)[0].body[-1].operator
    'Add'
    """
    known = {**facts, "given": len(arguments)}
    for one in formulas().get(kernel, ()):
        own = [name for name in one.numbers if name not in PLACES]
        if len(one.operands) != n_operands or (arguments and len(own) > len(arguments)):
            continue
        if one.optional != facts["present"] & {*one.operands}:
            continue
        named = {**dict(zip(own, arguments, strict=False)), **places}
        if one.holds(named | known):
            return one, named
    return None


def _formula(record: Record, number: int) -> Formula:
    said = record.onnx[number]
    body = _Body()
    results = tuple([one.name for one in record.outputs])
    tree = ast.parse(said.text)
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            named = [one.id for one in ast.walk(statement.targets[0]) if isinstance(one, ast.Name)]
            body.made(statement.value, *named)
        else:
            assert isinstance(statement, ast.Expr)
            body.made(statement.value, "result")
            results = ("result",)
    taken = said.takes.split() or [one.name for one in record.inputs]
    operands = [one for one in record.inputs if one.name in taken]
    used = _names_in(tree)
    return Formula(
        name=f"{record.name}_{number + 1}" if number else record.name,
        operands=tuple([one.name for one in operands]),
        roles=tuple(["flat" if one.name in said.flat else one.role for one in operands]),
        optional=frozenset([one.name for one in operands if one.optional]),
        numbers=(*record.parameters, *[name for name in PLACES if name in used]),
        results=results,
        condition=said.when,
        body=tuple(body.instructions),
        needed=(used | _names_in(ast.parse(said.when))) & {*record.parameters},
    )


def _names_in(tree: ast.AST) -> frozenset[str]:
    return frozenset([one.id for one in ast.walk(tree) if isinstance(one, ast.Name)])


class _Body:
    """Instructions that were made of expressions."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []

    def made(self, part: ast.expr, *names: str) -> str | float:
        """Result of an expression: the name of a result, an operand, or a number."""
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
