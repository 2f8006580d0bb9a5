"""Patterns: nodes that exporters write in pieces, computed as one by a form.

A pattern is written as an expression of the standard's operators. Lower-case names are values, capitals are
constants of one element, numbers are constants that have this value. `Add` and `Mul` take their operands in
either order; an operator whose name ends in an underscore may be missing, so may a value whose name does.
`name := Operator(...)` gives a node a name by which its attributes are read.

Patterns are found once, from the names of the graph's values. Whether shapes and constants suit is known when
a plan is made: the form then gives a result, or raises UnsuitedError, which leaves the pieces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from aclnn.onnx.evaluation import attributes_of, called
from aclnn.onnx.schemas import STANDARD
from aclnn.tracing.array import TracedArray

COMMUTATIVE = frozenset(["Add", "Mul"])
# Nodes that may have readers outside of a pattern: they are then computed for those.
SHARED = frozenset(["Cast", "DequantizeLinear"])
FLOATS = (1, 10, 16)  # the standard's numbers of float32, float16 and bfloat16
LARGEST_NUMBER = 1  # elements of a constant that a pattern takes as a number
_OPERATORS = re.compile(r"(\w+)\(")
MOST_WAYS = 16  # of reading one pattern at one node

Form = Callable[["Found"], Any]


class UnsuitedError(Exception):
    """Values that a form does not take: the pieces stay."""


class Found(NamedTuple):
    """A pattern at its place, while a plan is made.

    Attributes
    ----------
    values : mapping of str to array
        Those that the pattern names; None for what is missing.
    nodes : mapping of str to onnx.NodeProto
        Those that the pattern names.
    opset : int
        The version of the standard.
    names : mapping of str to str
        The model's names of values.
    call : callable
        Gives an array that a form makes of a constant a name of the model.
    """

    values: Mapping[str, Any]
    nodes: Mapping[str, Any]
    opset: int
    names: Mapping[str, str]
    call: Callable[[Any, str], None]

    def number(self, name: str) -> float:
        """The value of a constant of one element."""
        return float(np.asarray(self.values[name]).reshape(-1)[0])

    def attributes(self, name: str) -> dict[str, Any]:
        return attributes_of(self.nodes[name]) if name in self.nodes else {}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Nodes that are one.

    Attributes
    ----------
    name : str
    text : str
        The expression of the nodes.
    form : callable
        Computes the result; raises UnsuitedError where values do not suit.
    constants : frozenset of str
        Names of values that have to be constants of the model.
    """

    name: str
    text: str
    form: Form
    constants: frozenset[str] = frozenset()

    @property
    def tree(self) -> ast.expr:
        return _parsed(self.text)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a pattern: values by the pattern's names, nodes by theirs, and numbers to check."""

    values: Mapping[str, str]
    nodes: Mapping[str, int]
    numbers: tuple[tuple[str, float], ...]
    places: frozenset[int]


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern in a graph: its last node, those before it, and the ways to read it."""

    pattern: Pattern
    head: int
    inner: tuple[int, ...]
    readings: tuple[Reading, ...]


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@cache
def _certain(text: str) -> frozenset[str]:
    """The operators that a pattern cannot be without, read without parsing it.

    >>> sorted(_certain("o := Cast_(Mul(x, Sigmoid(Mul(x, B))))"))
    ['Mul', 'Sigmoid']
    """
    return frozenset([one for one in _OPERATORS.findall(text) if not one.endswith("_")])


@cache
def _needed(text: str) -> tuple[str, frozenset[str]]:
    """The last operator of a pattern, and those that this cannot but read of."""
    tree = _parsed(text)
    tree = tree.value if isinstance(tree, ast.NamedExpr) else tree
    assert isinstance(tree, ast.Call)
    first = [one.value if isinstance(one, ast.NamedExpr) else one for one in tree.args]
    read = [_kind(one) for one in first if isinstance(one, ast.Call)]
    return _kind(tree), frozenset([one for one in read if not one.endswith("_")])


def _kind(part: ast.Call) -> str:
    assert isinstance(part.func, ast.Name)
    return part.func.id


class Structure:
    """The nodes that make and that read each value of a graph.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
    reads : sequence of sequence of str
        What each node reads.
    outputs : sequence of str
    constants : mapping of str to array
    """

    def __init__(
        self, nodes: Sequence[Any], reads: Sequence[Sequence[str]], outputs: Sequence[str],
        constants: Mapping[str, Any],
    ):  # fmt: skip
        self.nodes, self.outputs = nodes, frozenset(outputs)
        self.makers = {name: n for n, one in enumerate(nodes) for name in one.output if name}
        self.readers: dict[str, set[int]] = {}
        for index, names in enumerate(reads):
            for name in names:
                self.readers.setdefault(name, set()).add(index)
        self._constants = constants
        self._found: dict[str, Any] = {}  # constants by the names that were asked for

    def constant(self, name: str) -> Any:
        """A value of the file, as it is there or is a constant node's; None for what is computed."""
        if name not in self._found:
            self._found[name] = self._constant(name)
        return self._found[name]

    def _constant(self, name: str) -> Any:
        seen: set[str] = set()
        while (node := self.maker(name, ("Identity",))) is not None and name not in seen:
            seen.add(name)  # exporters write constants that are used twice like this
            name = next(iter(node.input), "")
        if name in self._constants:
            return self._constants[name]
        node = self.maker(name, ("Constant",))
        if node is None:
            return None
        value = next(iter(_known(node).values()), None)
        if value is not None and hasattr(value, "raw_data"):  # a message
            import onnx

            try:
                return onnx.numpy_helper.to_array(value)
            except Exception:  # broken, which is said when it is computed
                return None
        return np.asarray(value) if isinstance(value, int | float) else None

    def maker(self, name: str, kinds: Sequence[str]) -> Any:
        """The node that makes a value, if it is of these operators."""
        index = self.makers.get(name)
        if index is None:
            return None
        node = self.nodes[index]
        is_one = node.op_type in kinds and node.domain in STANDARD and node.output[0] == name
        return node if is_one else None

    def kinds_read(self, index: int) -> set[str]:
        """The operators whose results a node reads."""
        makers = [self.makers.get(name) for name in self.nodes[index].input]
        return {self.nodes[one].op_type for one in makers if one is not None}

    def is_inner(self, index: int, places: frozenset[int]) -> bool:
        """Whether the results of a node are read by nodes at these places alone."""
        return all(
            name not in self.outputs and self.readers.get(name, set()) <= places
            for name in self.nodes[index].output
            if name
        )

    def may_be_inner(self, index: int, places: frozenset[int]) -> bool:
        """Whether a node may be part of a pattern, or be computed for it and for others."""
        node = self.nodes[index]
        is_first = all(self.makers.get(name) not in places for name in node.input)
        return self.is_inner(index, places) or (is_first and node.op_type in SHARED)

    def readings(self, part: ast.expr, name: str, so_far: Reading) -> Iterator[Reading]:
        """The ways in which a value is what a part of a pattern says."""
        if isinstance(part, ast.Name):
            yield from self._bound(part.id, name, so_far)
        elif isinstance(part, ast.Constant):
            known = self.constant(name)
            if known is None or _is_number(known, float(part.value)):  # type: ignore[arg-type]
                number = (name, float(part.value))  # type: ignore[arg-type]
                yield replace(so_far, numbers=(*so_far.numbers, number))
        elif isinstance(part, ast.NamedExpr):
            for one in self.readings(part.value, name, so_far):
                assert isinstance(part.value, ast.Call)
                kind = part.value.func.id.rstrip("_")  # type: ignore[attr-defined]
                is_there = self.maker(name, (kind,)) is not None
                named = {part.target.id: self.makers[name]} if is_there else {}
                yield replace(one, nodes={**one.nodes, **named})
        else:
            assert isinstance(part, ast.Call)
            yield from self._called(part, name, so_far)

    def _bound(self, key: str, name: str, so_far: Reading) -> Iterator[Reading]:
        if so_far.values.get(key, name) != name or (not name and not key.endswith("_")):
            return
        if key.isupper():
            known = self.constant(name)
            if known is not None and np.asarray(known).size > LARGEST_NUMBER:
                return
        yield replace(so_far, values={**so_far.values, key: name})

    def _called(self, part: ast.Call, name: str, so_far: Reading) -> Iterator[Reading]:
        assert isinstance(part.func, ast.Name)
        kind = part.func.id.rstrip("_")
        node = self.maker(name, (kind,))
        is_optional = part.func.id.endswith("_")
        if node is None or (is_optional and not _keeps_numbers(node)):
            if is_optional:
                yield from self.readings(part.args[0], name, so_far)
            return
        arguments = [*node.input]
        arguments += [""] * (len(part.args) - len(arguments))
        if len(arguments) > len(part.args) and any(arguments[len(part.args) :]):
            return
        arguments = arguments[: len(part.args)]
        orders = (
            [arguments, arguments[::-1]]
            if kind in COMMUTATIVE and len(arguments) == 2
            else [arguments]
        )
        here = replace(so_far, places=so_far.places | {self.makers[name]})
        for order in orders:
            yield from self._all(part.args, order, here)

    def _all(
        self, parts: Sequence[ast.expr], names: Sequence[str], so_far: Reading
    ) -> Iterator[Reading]:
        if not parts:
            yield so_far
            return
        for one in self.readings(parts[0], names[0], so_far):
            yield from self._all(parts[1:], names[1:], one)


def _keeps_numbers(node: Any) -> bool:
    """Whether an operator that may be missing is a cast between dtypes that kernels compute alike."""
    return node.op_type != "Cast" or _known(node).get("to") in FLOATS


def _known(node: Any) -> dict[str, Any]:
    """Attributes of a node; none where they are broken, which is said when it is computed."""
    try:
        return attributes_of(node)
    except Exception:  # of protobuf and ONNX's helpers
        return {}


def _is_number(value: Any, requested: float) -> bool:
    """Whether a constant is a number, as far as its dtype can say."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iufV":
        return False
    found = float(array.reshape(-1)[0])
    precision = 1e-6 if array.dtype.itemsize >= 4 else 2.0**-8
    return abs(found - requested) <= precision * abs(requested)


def found_in(
    structure: Structure, patterns: Sequence[Pattern], among: Collection[int] | None = None
) -> list[Match]:
    """The patterns of a graph; those that come first in the list count, and the last nodes of a graph.

    Parameters
    ----------
    structure : Structure
    patterns : sequence of Pattern
    among : collection of int, optional
        The only nodes that count.
    """
    taken: set[int] = set()
    found = []
    places = range(len(structure.nodes)) if among is None else sorted(among)
    there = {structure.nodes[index].op_type for index in places}
    heads: dict[str, list[int]] = {}
    for index in reversed(places):
        heads.setdefault(structure.nodes[index].op_type, []).append(index)
    makers = {index: structure.kinds_read(index) for index in places}
    for pattern in patterns:
        if not _certain(pattern.text) <= there:
            continue
        head_kind, first = _needed(pattern.text)
        for head in heads[head_kind]:
            if head in taken or not first <= makers[head]:
                continue
            match = _match(structure, pattern, head)
            if match is None or taken.intersection(match.inner):
                continue
            if among is not None and not set(match.inner) <= set(among):
                continue
            shared = {n for n in match.inner if structure.nodes[n].op_type in SHARED}
            taken.update({head, *match.inner} - shared)
            found.append(match)
    return found


def _match(structure: Structure, pattern: Pattern, head: int) -> Match | None:
    (first, *_) = structure.nodes[head].output or [""]
    start = Reading({}, {}, (), frozenset())
    readings: list[Reading] = []
    for one in structure.readings(pattern.tree, first, start):
        if not all(structure.constant(one.values[name]) is not None for name in pattern.constants):
            continue
        if not all(structure.may_be_inner(n, one.places) for n in one.places - {head}):
            continue
        if not readings or readings[0].places == one.places:
            readings.append(one)
        if len(readings) == MOST_WAYS:
            break
    if not readings:
        return None
    places = readings[0].places
    inner = sorted([n for n in places - {head} if structure.is_inner(n, places)])
    return Match(pattern, head, tuple(inner), tuple(readings))


def result_of(
    match: Match, nodes: Sequence[Any], values: Mapping[str, Any], opset: int,
    call: Callable[[Any, str], None],
) -> Any:  # fmt: skip
    """The result of a pattern where values suit; None leaves the pieces."""
    for reading in match.readings:
        named = {key: values.get(name) for key, name in reading.values.items()}
        if not _suits(reading, named, values):
            continue
        of_names = {key: nodes[index] for key, index in reading.nodes.items()}
        found = Found(named, of_names, opset, reading.values, call)
        try:
            result = match.pattern.form(found)
        except Exception:  # of forms, at shapes or dtypes that they do not take; the pieces may
            continue
        return result
    return None


def _suits(reading: Reading, named: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether numbers are those of the pattern, constants are numbers, and something is no constant."""
    if not any(isinstance(one, TracedArray) for one in named.values()):
        return False
    if not all(
        isinstance(one, np.ndarray | np.generic | TracedArray) or (one is None and key[-1] == "_")
        for key, one in named.items()
    ):
        return False
    numbers = [values.get(name) for name, _ in reading.numbers]
    if any(one is None or isinstance(one, TracedArray) for one in numbers):
        return False
    if not all(
        _is_number(one, requested)
        for one, (_, requested) in zip(numbers, reading.numbers, strict=True)
    ):
        return False
    return all(
        not isinstance(one, TracedArray) and np.asarray(one).size == LARGEST_NUMBER
        for key, one in named.items()
        if key.isupper()
    )


def nodes_of(match: Match, nodes: Sequence[Any]) -> tuple[str, ...]:
    """The names of a pattern's nodes in the file."""
    return tuple([called(nodes[index]) for index in (*match.inner, match.head)])
