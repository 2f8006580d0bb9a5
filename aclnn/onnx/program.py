"""Graphs of models as plans: pieces whose sizes are known, and what runs between them.

A graph is one piece as long as its sizes follow from the shapes of its inputs. Where a value decides them,
tracing is cut: the value is computed by the piece before, and is a constant of the one after; a node whose
results have sizes that nobody knows ahead runs between two pieces. Pieces are kept for values met before.
"""

from __future__ import annotations

import inspect
import keyword
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.arguments import shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.graph.names import Names
from aclnn.onnx import control
from aclnn.onnx.evaluation import (
    RANDOM,
    Evaluation,
    array_of,
    attributes_of,
    body_of,
    broken_rule,
    called,
    has_body,
    inferred,
    model_of,
    said,
    step_of,
    text_of,
    titled,
)
from aclnn.onnx.forms import OF_SHAPES
from aclnn.onnx.microsoft import form_of
from aclnn.onnx.narrow import ON_ARRAYS, Carried, is_narrow, narrow_results, on_arrays, wanted_dtype
from aclnn.onnx.numpy_forms import by_numpy
from aclnn.onnx.patterns import Match, Structure, found_in, result_of
from aclnn.onnx.pieces import PATTERNS
from aclnn.onnx.rules import check_rules, misfit
from aclnn.onnx.schemas import STANDARD, result_dtypes
from aclnn.onnx.selection import CHOOSING
from aclnn.onnx.steps import BrokenRuleError, NeededError, Step
from aclnn.tracing.array import TracedArray
from aclnn.tracing.compiled import Compiled
from aclnn.tracing.compiled import compile as compiled
from aclnn.tracing.opaque import call

# What ONNX's reference does not take of constants though the standard has it.
OWN_ON_CONSTANTS = ("GatherElements",)
# Dtypes that hold all values of others: what a form does not take is computed in them.
WIDER: dict[str, np.dtype] = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), np.dtype(np.int32)),
    **dict.fromkeys(("int32", "uint32"), np.dtype(np.int64)),
    **dict.fromkeys(("float16", "bfloat16"), np.dtype(np.float32)),
}
MOST_PIECES = 64  # that one graph keeps
MOST_ASKED = 64  # elements of a value that may say how large something is
MOST_KNOWN = 4096  # elements of a value that is a constant of a plan


class CutError(Exception):
    """A place where tracing cannot go on: before a node that runs by itself, or needs values.

    Attributes
    ----------
    at : int
        The node's place in the graph.
    names : tuple of str
        Values that have to be constants; none where the node runs by itself.
    """

    def __init__(self, at: int, names: Sequence[str] = ()):
        super().__init__(f"node {at}, values {', '.join(names)}")
        self.at, self.names = at, tuple(names)


class Graph:
    """The nodes of a graph of a model, in their order.

    Parameters
    ----------
    proto : onnx.GraphProto
    opsets : mapping of str to int
        Versions of domains.
    constants : mapping of str to array
        What is known without inputs, that of outer graphs included.
    inputs : sequence of str
    fallback : bool
        Whether nodes without kernel and body run by other means.
    patterns : bool
        Whether nodes that make up one operator become one.
    """

    def __init__(
        self,
        proto: Any,
        opsets: Mapping[str, int],
        constants: Mapping[str, np.ndarray],
        inputs: Sequence[str],
        fallback: bool,
        patterns: bool = True,
    ):
        self.name = text_of(proto.name) or "model"
        self.nodes = list(proto.node)
        self.opsets = dict(opsets)
        self.constants = dict(constants)
        self.inputs = tuple(inputs)
        self.outputs = tuple([one.name for one in proto.output])
        self.fallback, self.patterns = fallback, patterns
        self.reads = [tuple(dict.fromkeys(names_read(node))) for node in self.nodes]
        self._structure = Structure(self.nodes, self.reads, self.outputs, self.constants)
        found = found_in(self._structure, PATTERNS) if patterns else []
        self.matches = {one.head: one for one in found}
        self._within: dict[int, dict[int, Match]] = {}
        self.joined: dict[int, Match] = {}  # those that were one node when they were last planned
        self.ways: dict[int, str] = {}  # how each node was done when it was last planned
        self.evaluations: dict[int, list[Evaluation]] = {}
        self.seconds_alone: dict[int, float] = {}  # of nodes that run between plans

    def matches_within(self, match: Match) -> dict[int, Match]:
        """Patterns of the nodes of one that did not suit, by the places of their last nodes."""
        if match.head not in self._within:
            rest = PATTERNS[PATTERNS.index(match.pattern) + 1 :]
            found = found_in(self._structure, rest, {match.head, *match.inner})
            self._within[match.head] = {one.head: one for one in found}
        return self._within[match.head]

    def opset(self, node: Any) -> int:
        return self.opsets.get("" if node.domain in STANDARD else node.domain, 1)

    def opsets_with(self, node: Any, opset: int) -> dict[str, int]:
        """The versions of domains for a node in a version of its own."""
        return {**self.opsets, "" if node.domain in STANDARD else node.domain: opset}

    def live(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """The values that nodes from one place to another read of others, and those they make for others."""
        made: dict[str, None] = {}
        read: dict[str, None] = {}
        for index in range(start, stop):
            read |= dict.fromkeys([name for name in self.reads[index] if name not in made])
            made |= dict.fromkeys([name for name in self.nodes[index].output if name])
        later = {*self.outputs}
        for names in self.reads[stop:]:
            later.update(names)
        if stop == len(self.nodes):
            read |= dict.fromkeys([one for one in self.outputs if one not in made])
        return [*read], [name for name in made if name in later]


def names_read(node: Any) -> Iterator[str]:
    """The values that a node reads, its graphs' of outer ones included."""
    yield from [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            own = {one.name for one in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                yield from [name for name in names_read(inner) if name not in own]
                own.update(inner.output)
            yield from [one.name for one in graph.output if one.name not in own]


class Piece:
    """Nodes of a graph from one place to another, as a function of traced arrays."""

    __aclnn_constant__ = True  # nobody binds its arrays anew

    def __init__(
        self,
        graph: Graph,
        places: tuple[int, int],
        inputs: Sequence[str],
        outputs: Sequence[str],
        known: Mapping[str, np.ndarray],
    ):
        self.graph, self.places, self.known = graph, places, dict(known)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.__name__ = graph.name
        fresh = Names()
        self.parameters = {name: fresh.fresh(identifier(name)) for name in self.inputs}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, kind) for name in self.parameters.values()]
        )
        self.__aclnn_results__ = self.outputs

    def __call__(self, *arrays: Any) -> Any:
        """Record the nodes on traced arrays."""
        values: dict[str, Any] = {"": None, **self.graph.constants, **self.known}
        values |= zip(self.inputs, arrays, strict=True)
        anchor = next((one for one in arrays if isinstance(one, TracedArray)), None)
        tracing = _Recorder(self.graph, anchor)
        tracing.name_constants(self.graph.constants)
        start, stop = self.places
        matches = {
            head: one
            for head, one in self.graph.matches.items()
            if head < stop and start <= min([head, *one.inner])
        }
        self._record(tracing, values, range(start, stop), matches)
        found = [values[name] for name in self.outputs]
        for one in found:
            if isinstance(one, Carried):  # whoever reads it needs its own dtype
                raise CutError(one.place)
        return found[0] if len(found) == 1 else tuple(found)

    def _record(
        self, tracing: _Recorder, values: dict[str, Any], places: Sequence[int],
        matches: Mapping[int, Match],
    ) -> None:  # fmt: skip
        """Record nodes, patterns as one where they suit, else as the smaller ones that they have."""
        waiting = {index for one in matches.values() for index in one.inner}
        for index in places:
            if index in waiting:
                continue
            if index not in matches:
                tracing.record(index, values)
                continue
            match = matches[index]
            if tracing.joined(match, values):
                continue
            left = [one for one in match.inner if one in waiting]
            waiting.difference_update(left)
            within, every = self.graph.matches_within(match), {*left, index}
            rest = {head: one for head, one in within.items() if {head, *one.inner} <= every}
            self._record(tracing, values, [*left, index], rest)


class _Recorder:
    """Nodes while they are recorded in one trace."""

    def __init__(self, graph: Graph, anchor: TracedArray | None):
        self.graph, self.anchor = graph, anchor
        self.trace = None if anchor is None else anchor.trace
        self.place = 0

    def name_constants(self, arrays: Mapping[str, Any]) -> None:
        if self.trace is not None:
            for name, array in arrays.items():
                if isinstance(array, np.ndarray):
                    self.trace.name(array, identifier(name))

    def joined(self, match: Match, values: dict[str, Any]) -> bool:
        """Record nodes that are a pattern as one; false where its pieces have to do."""
        graph, head = self.graph, self.graph.nodes[match.head]
        self.begin(match.head)
        graph.joined.pop(match.head, None)
        result = result_of(
            match, graph.nodes, values, graph.opset(head),
            lambda array, name: self.name_constants({name: array}),
        )  # fmt: skip
        if result is None:
            return False
        for index in (*match.inner, match.head):
            graph.evaluations.pop(index, None)
            graph.ways[index] = "kernel"
        graph.joined[match.head] = match
        values[head.output[0]] = result
        return True

    def begin(self, index: int) -> None:
        self.place = index
        if self.trace is not None:
            lines = _lines_of(self.graph.nodes[index])
            self.trace.recording.origin = partial(tuple, lines)

    def record(self, index: int, values: dict[str, Any]) -> None:
        """Record a node of the graph."""
        node = self.graph.nodes[index]
        self.begin(index)
        self.graph.evaluations.pop(index, None)
        try:
            results = self.results_of(node, values, self.graph.opset(node))
        except NeededError as needed:
            raise CutError(index, [node.input[one] for one in needed.places]) from None
        self.name_constants(dict(zip(node.output, results, strict=False)))
        values |= zip(node.output, results, strict=False)

    def results_of(self, node: Any, values: Mapping[str, Any], opset: int) -> Sequence[Any]:
        """The results of a node; an error names it."""
        try:
            results = self.computed(node, values, opset)
            _check_results(results, node, self.place)
            return results
        except (MemoryError, CutError, NeededError):
            raise
        except AclnnError as error:
            words = error.message
        except (
            Exception
        ) as error:  # of forms, NumPy and ONNX's reference, which raise what they like
            inputs = tuple([values[name] for name in node.input])
            raise misfit(self.step_of(node, inputs, opset), error, node.domain) from None
        raise invalid(words if words.startswith(titled(node)) else f"{titled(node)}: {words}")

    def computed(self, node: Any, values: Mapping[str, Any], opset: int) -> Sequence[Any]:
        """The results of a node: known at once, by its form, its body, or other means."""
        inputs = tuple([values[name] for name in node.input])
        is_standard = node.domain in STANDARD
        if node.op_type in control.CONTROL and is_standard:
            return self.controlled(node, values, opset)
        is_known = not any(isinstance(one, TracedArray | Carried) for one in inputs)
        is_fixed = node.op_type not in RANDOM or self.anchor is None
        if is_known and is_fixed and node.op_type not in OWN_ON_CONSTANTS:
            self.done("folded")
            return _evaluated(node, inputs, self.graph.opsets_with(node, opset))
        if is_standard and node.op_type in CHOOSING and not self.is_chosen(node, inputs):
            raise CutError(self.place)
        narrow = self.narrow(node, inputs, opset)
        if narrow is not None:
            self.done("kernel")
            return narrow
        failed: AclnnError | None = None
        is_shape = is_standard and node.op_type in OF_SHAPES
        if is_shape or form_of(node.domain, node.op_type) is not None:
            try:
                results = self.formed(node, inputs, opset)
            except BrokenRuleError:
                raise
            except AclnnError as error:
                failed = error
            else:
                self.done("kernel")
                return results
        return self.otherwise(node, inputs, opset, failed)

    def is_chosen(self, node: Any, inputs: Sequence[Any]) -> bool:
        """Whether the values that say how many elements a node gives are known."""
        return node.op_type == "Compress" and not isinstance(inputs[1], TracedArray)

    def narrow(self, node: Any, inputs: tuple[Any, ...], opset: int) -> Sequence[Any] | None:
        """The results where a node makes or reads numbers of few bits; None where it does not."""
        is_read = any(isinstance(one, Carried) for one in inputs)
        if not is_read and node.op_type not in ON_ARRAYS:
            return None
        step = self.step_of(node, inputs, opset)
        is_made = node.domain in STANDARD and is_narrow(wanted_dtype(step) or np.float32)
        is_stored = node.op_type == "DequantizeLinear" and is_narrow(inputs[0].dtype)
        if not (is_read or is_made or is_stored):
            return None
        if node.op_type in OF_SHAPES and node.domain in STANDARD:
            return None
        if node.domain in STANDARD:
            moved = form_of(node.domain, node.op_type)
            assert moved is not None or not is_made
            found = narrow_results(step, self.place, moved) if moved is not None else None
            if found is not None:
                return found
        if is_read:
            raise CutError(min([one.place for one in inputs if isinstance(one, Carried)]))
        return None

    def step_of(self, node: Any, inputs: tuple[Any, ...], opset: int) -> Step:
        n_outputs = len([name for name in node.output if name])
        return Step(
            node.op_type, called(node), opset, inputs, attributes_of(node), n_outputs, self.anchor
        )

    def done(self, way: str) -> None:
        """Note how the node of the graph was done: of its parts the farthest from a kernel counts."""
        before = self.graph.ways.get(self.place)
        if way == "fallback" or before not in ("body", "control", "fallback"):
            self.graph.ways[self.place] = way

    def formed(self, node: Any, inputs: tuple[Any, ...], opset: int) -> Sequence[Any]:
        step = self.step_of(node, inputs, opset)
        if node.op_type in OF_SHAPES and node.domain in STANDARD:
            return [np.asarray(OF_SHAPES[node.op_type](step), np.int64)]
        made = _formed(form_of(node.domain, node.op_type), step)
        kinds = [None if one is None else np.dtype(one.dtype) for one in inputs]
        requested = result_dtypes(node.domain, node.op_type, opset, kinds, len(made))
        return [_as(one, dtype) for one, dtype in zip(made, requested, strict=True)]

    # --- Bodies and other means -----------------------------------------------------------------------

    def otherwise(
        self, node: Any, inputs: tuple[Any, ...], opset: int, failed: AclnnError | None
    ) -> Sequence[Any]:
        """The results by the standard's function body, or by another runtime as a step of the plan."""
        known = {
            name: np.asarray(one)
            for name, one in zip(node.input, inputs, strict=True)
            if name and not isinstance(one, TracedArray)
        }
        arguments = {
            name: one
            for name, one in zip(node.input, inputs, strict=True)
            if name and isinstance(one, TracedArray)
        }
        described = {name: (np.dtype(one.dtype), one.shape) for name, one in arguments.items()}
        model = model_of(node, self.graph.opsets_with(node, opset), known, described)
        if failed is not None and broken_rule(model):
            raise failed
        if has_body("" if node.domain in STANDARD else node.domain, node.op_type, opset):
            found = self.by_body(model, {**known, **arguments}, opset)
            if found is not None:
                return found
        if not self.graph.fallback:
            raise failed or invalid(f"{titled(node)}: no operator stands for it")
        return self.by_step(node, model, arguments, failed)

    def by_body(self, model: Any, inputs: Mapping[str, Any], opset: int) -> Sequence[Any] | None:
        """The results by the standard's function body; None where it does not lead to an end here."""
        nodes = body_of(model)
        if nodes is None:
            return None
        before = self.graph.ways.get(self.place)
        versions = {one.domain: one.version for one in model.opset_import}
        values: dict[str, Any] = {"": None, **inputs}
        self.graph.ways[self.place] = "body"
        try:
            for inner in nodes:
                results = self.results_of(inner, values, versions.get(inner.domain, opset))
                values |= zip(inner.output, results, strict=False)
        except (CutError, NeededError, AclnnError):
            self.graph.ways.pop(self.place)
            if before is not None:
                self.graph.ways[self.place] = before
            return None
        return [values[name] if name else None for name in model.graph.node[0].output]

    def by_step(
        self, node: Any, model: Any, arguments: Mapping[str, TracedArray], failed: AclnnError | None
    ) -> Sequence[Any]:
        """The results by ONNX Runtime or the reference, as steps of the plan."""
        if failed is not None and not failed.message.startswith(titled(node)):
            failed = AclnnError(failed.status, f"{titled(node)}: {failed.message}")
        evaluation = Evaluation(model, failed)
        try:
            kinds = inferred(model)
        except Exception as error:  # of C++: the node breaks rules, or nobody knows its operator
            kinds = evaluation.described()
            if any(kind is None for kind in kinds):
                raise failed or error from None
        if any(kind is None for kind in kinds):
            kinds = [one or other for one, other in zip(kinds, evaluation.described(), strict=True)]
        if any(kind is None for kind in kinds):
            self.ask(node, arguments)
        if not all(kind is not None and dtypes.is_known(kind[0]) for kind in kinds):
            raise CutError(self.place)
        self.done("fallback")
        self.graph.evaluations.setdefault(self.place, []).append(evaluation)
        operands = list(arguments.values())
        if not operands:
            assert self.anchor is not None
            operands = [self.anchor]
        made = iter(
            _stepped(node, evaluation, operands, len(arguments), [one for one in kinds if one])
        )
        return [next(made) if name else None for name in node.output]

    def ask(self, node: Any, arguments: Mapping[str, TracedArray]) -> None:
        """Ask for the integers and numbers that sizes of results may follow from."""
        requested = [
            index
            for index, name in enumerate(node.input)
            if name in arguments
            and arguments[name].size <= MOST_ASKED
            and (arguments[name].ndim == 0 or np.dtype(arguments[name].dtype).kind in "iu")
        ]
        if requested:
            raise NeededError(requested)

    # --- Branches and loops -----------------------------------------------------------------------------

    def controlled(self, node: Any, values: Mapping[str, Any], opset: int) -> Sequence[Any]:
        """The results of branches and loops that are known while planning, as part of the plan."""
        self.done("control")
        inputs = [values[name] for name in node.input]
        if self.anchor is None:
            raise CutError(self.place)
        try:
            if node.op_type == "If":
                if isinstance(inputs[0], TracedArray):
                    raise NeededError([0])
                branch = control.branch_of(node, inputs[0])
                return self.inner(branch, [], values, opset)
            run = lambda graph, value: self.inner(graph, value, values, opset)  # noqa: E731
            if node.op_type == "Loop":
                if any(isinstance(one, TracedArray) for one in inputs[:2]):
                    raise NeededError(
                        [n for n, one in enumerate(inputs[:2]) if isinstance(one, TracedArray)]
                    )
                if inputs[0] is None or np.asarray(inputs[0]).max() > control.MOST_UNROLLED:
                    raise CutError(self.place)
                known = partial(self.known_truth, node)
                return control.run_loop(node, inputs, run, known, self.stacked)
            attributes = attributes_of(node)
            if opset < 9 or self.longest(inputs) > control.MOST_UNROLLED:
                raise CutError(self.place)
            return control.run_scan(node, inputs, attributes.get, run, self.stacked)
        except NeededError:
            if self.is_own(node):
                raise
            raise CutError(self.place) from None
        except AclnnError:
            if self.graph.fallback:
                raise CutError(self.place) from None
            raise

    def is_own(self, node: Any) -> bool:
        """Whether a node is the graph's own at this place, and no part of another."""
        return node is self.graph.nodes[self.place]

    def longest(self, inputs: Sequence[Any]) -> int:
        return max([max(one.shape, default=0) for one in inputs if one is not None], default=0)

    def inner(
        self, graph: Any, arguments: Sequence[Any], outer: Mapping[str, Any], opset: int
    ) -> list[Any]:
        """The results of a graph of a node, recorded; what it reads of outer ones is there."""
        values = {**outer, **initializers(graph)}
        values |= zip([one.name for one in graph.input], arguments, strict=True)
        try:
            for inner in graph.node:
                results = self.results_of(inner, values, opset)
                values |= zip(inner.output, results, strict=False)
        except NeededError:
            raise CutError(self.place) from None
        return [values[one.name] for one in graph.output]

    def known_truth(self, node: Any, condition: Any) -> bool:
        if isinstance(condition, TracedArray):
            raise CutError(self.place)
        return control.truth_of(node, condition)

    def stacked(self, rows: Sequence[Any], kind: Any, axis: int) -> Any:
        if any(isinstance(one, Carried) for one in rows):
            raise CutError(self.place)
        if not any(isinstance(one, TracedArray) for one in rows):
            return control.stacked_arrays(rows, kind, axis)
        return np.stack(rows, axis)


def _stepped(
    node: Any, evaluation: Evaluation, operands: Sequence[Any], n_given: int,
    kinds: Sequence[tuple[np.dtype, tuple[int, ...]]],
) -> list[Any]:  # fmt: skip
    """The results of a node that another runtime computes: one step, and one that takes each apart."""

    def results(views: Sequence[Any]) -> list[np.ndarray]:
        found = evaluation(
            [np.ascontiguousarray(one).reshape(one.shape) for one in views[:n_given]]
        )
        arrays = [np.asarray(one) for one in found]
        for array, (dtype, shape) in zip(arrays, kinds, strict=True):
            if array.shape != shape or array.dtype != dtype:
                raise invalid(
                    f"{titled(node)}: {evaluation.by} gives {array.dtype}{list(array.shape)}, planned "
                    f"are {dtype}{list(shape)}"
                )
        return arrays

    if len(kinds) == 1:
        ((dtype, shape),) = kinds

        def alone(*views: Any, out: Any) -> None:
            out[...] = results(views)[0]

        alone.__name__ = node.op_type.lower()
        return [call(alone, *operands, shape=shape, dtype=dtype)]
    sizes = [int(np.prod(shape)) * dtype.itemsize for dtype, shape in kinds]
    ends = [*accumulate(sizes)]

    def together(*views: Any, out: Any) -> None:
        for array, end, size in zip(results(views), ends, sizes, strict=True):
            out[end - size : end] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    together.__name__ = node.op_type.lower()
    whole = call(together, *operands, shape=(ends[-1],), dtype=np.uint8)
    made = []
    for (dtype, shape), end, size in zip(kinds, ends, sizes, strict=True):
        made.append(call(_Part(end - size, end), whole, shape=shape, dtype=dtype))
    return made


class _Part:
    """One of several results that lie in the memory of a step."""

    __name__ = "part"

    def __init__(self, begin: int, end: int):
        self._begin, self._end = begin, end

    def __call__(self, whole: np.ndarray, out: np.ndarray) -> None:
        out[...] = whole[self._begin : self._end].copy().view(out.dtype).reshape(out.shape)


def _formed(form: Any, step: Step) -> tuple[Any, ...]:
    """The results of a form; where it does not take a dtype, in one that holds all its values."""
    try:
        made = form(step)
    except AclnnError:
        wide = tuple(
            [
                None if one is None else _as(one, WIDER.get(np.dtype(one.dtype).name))
                for one in step.inputs
            ]
        )
        try:
            made = form(replace(step, inputs=wide))
        except AclnnError as error:
            try:
                made = by_numpy(step)
            except NeededError:
                raise
            except Exception:  # of NumPy: inputs that do not fit, of which the form's error tells
                raise error from None
            if made is None:
                raise
    return made if isinstance(made, tuple) else (made,)


def _as(array: Any, dtype: np.dtype | None) -> Any:
    """An array in a dtype; None leaves it as it is."""
    if array is None or dtype is None or array.dtype == dtype:
        return array
    return array.astype(dtype)


def _check_results(results: Sequence[Any], node: Any, index: int) -> None:
    if len(results) < len(node.output):
        raise invalid(f"{len(node.output)} outputs are named, {len(results)} are given")
    for one in results:
        if one is not None and not isinstance(one, TracedArray | Carried | np.ndarray | np.generic):
            raise (
                CutError(index)
                if isinstance(one, list)
                else invalid(f"it gives {shown(one)}, which is no array")
            )


def _evaluated(node: Any, inputs: Sequence[Any], opsets: Mapping[str, int]) -> Sequence[Any]:
    """Results of ONNX's reference for a node whose inputs are all known."""
    if node.op_type == "Constant" and node.domain in STANDARD:
        value = attributes_of(node).get("value")
        if value is not None and len(node.attribute) == 1:  # the reference takes a while to load
            return [array_of(value)]
    domain = "" if node.domain in STANDARD else node.domain
    check_rules(step_of(node, opsets.get(domain, 1), inputs), domain)
    from onnx.reference import ReferenceEvaluator

    known = {name: np.asarray(x) for name, x in zip(node.input, inputs, strict=True) if name}
    described = {name: (one.dtype, one.shape) for name, one in known.items()}
    model = model_of(node, opsets, {}, described)
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(None, known)
    except Exception as error:
        # ONNX Runtime, which may end the process at nodes that break rules, gets none of these.
        if words := broken_rule(model):
            raise RuntimeError(words) from error
        evaluation = Evaluation(model)
        if evaluation.by == "reference":
            raise
        found = evaluation([*known.values()])
    left = iter(found)
    return [next(left) if name else None for name in node.output]


def initializers(graph: Any) -> dict[str, np.ndarray]:
    """The constants of a graph by their names."""
    found = {}
    for one in graph.initializer:
        try:
            found[one.name] = array_of(one)
        except Exception as error:  # whatever is wrong with its bytes
            raise invalid(f"initializer {shown(one.name)}: {said(error)}") from None
    return found


def line_of(node: Any) -> str:
    """The line of reports for a node."""
    return f"{called(node)}: {node.op_type}"


def _lines_of(node: Any) -> list[str]:
    """Modules that hold a node, the outermost first, where its name is a path, and the node."""
    name = called(node)
    parts = name.split("/")[1:-1] if name.startswith("/") else []
    modules = [*accumulate(parts, lambda before, part: f"{before}/{part}")]
    return [*modules, line_of(node)]


def identifier(name: str) -> str:
    """A name of ONNX's as one of Python's.

    >>> identifier("input.1"), identifier("/layers.0/weight"), identifier("0"), identifier("in")
    ('input_1', 'layers_0_weight', 'x0', 'in_')
    """
    words = re.sub(r"\W+", "_", text_of(name)).strip("_") or "x"
    words = f"x{words}" if words[0].isdigit() else words
    return f"{words}_" if keyword.iskeyword(words) else words


# --- Runs -------------------------------------------------------------------------------------------


class Runner:
    """Runs a graph: one piece as far as its sizes are known, else several with values between them."""

    def __init__(self, graph: Graph, options: Mapping[str, Any]):
        self.graph = graph
        self.pieces: OrderedDict[Any, Compiled[Any, Any]] = OrderedDict()
        self._options = dict(options)
        self._needed: dict[int, set[str]] = {}
        self._alone: set[int] = set()
        self._inner: dict[tuple[int, int], Runner] = {}
        self._evaluations: dict[Any, Evaluation] = {}
        self._lock = threading.RLock()

    @property
    def is_cut(self) -> bool:
        """Whether values are known to decide sizes somewhere."""
        return bool(self._needed or self._alone)

    def note(self, cut: CutError) -> None:
        """Remember where tracing was cut."""
        if not cut.names:
            if cut.at in self._alone:
                raise invalid(f"{titled(self.graph.nodes[cut.at])}: it cannot be run by itself")
            self._alone.add(cut.at)
            return
        known = self._needed.setdefault(cut.at, set())
        if known.issuperset(cut.names):
            raise invalid(
                f"{titled(self.graph.nodes[cut.at])}: it needs the values of {', '.join(cut.names)}"
            )
        known.update(cut.names)

    def run(self, values: Mapping[str, Any], workspace: Any = None) -> list[Any]:
        """The outputs, of what is given by names."""
        graph, at = self.graph, 0
        found = dict(values)
        while at < len(graph.nodes):
            at = self._advance(at, found, workspace)
        return [found[name] if name in found else graph.constants[name] for name in graph.outputs]

    def _advance(self, at: int, found: dict[str, Any], workspace: Any) -> int:
        """Run what comes at a place; gives the next one."""
        if at in self._alone:
            begin = time.perf_counter()
            self._run_alone(at, found)
            spent = self.graph.seconds_alone
            spent[at] = spent.get(at, 0.0) + time.perf_counter() - begin
            return at + 1
        stop = self._stop(at, found)
        if stop == at:
            return at
        try:
            with self._lock:
                piece, inputs = self._piece(at, stop, found)
            results = piece(*inputs, workspace=workspace) if piece is not None else ()
        except CutError as cut:
            self.note(cut)
            return at
        if piece is not None:
            names = piece._function.outputs  # type: ignore[attr-defined]
            found |= zip(names, results if isinstance(results, tuple) else (results,), strict=True)
        return stop

    def _stop(self, at: int, found: Mapping[str, Any]) -> int:
        """The place up to which a piece goes."""
        cuts = [index for index, names in self._needed.items() if not names <= found.keys()]
        stops = [index for index in (*cuts, *self._alone) if index > at]
        stop = min(stops, default=len(self.graph.nodes))
        for index in range(at, stop):
            arguments = [found[name] for name in self.graph.reads[index] if name in found]
            if not all(_is_traceable(one) for one in arguments):
                self._alone.add(index)
                return index
        return stop

    def _piece(
        self, at: int, stop: int, found: Mapping[str, Any]
    ) -> tuple[Compiled[Any, Any] | None, list[Any]]:
        reads, made = self.graph.live(at, stop)
        needed = {one for n, names in self._needed.items() if at <= n < stop for one in names}
        known = {
            name: np.asarray(found[name]) for name in reads if name in found and name in needed
        }
        for name, one in known.items():
            if one.size > MOST_KNOWN:
                raise invalid(
                    f"{titled(self.graph.nodes[at])}: {name} decides what is planned, but has "
                    f"{one.size} elements"
                )
        inputs = [name for name in reads if name in found and name not in known]
        values = [(name, one.dtype.str, one.shape, one.tobytes()) for name, one in known.items()]
        key = (at, stop, tuple(inputs), tuple(values))
        if not made:
            return None, []
        if key not in self.pieces:
            piece = Piece(self.graph, (at, stop), inputs, made, known)
            self.pieces[key] = compiled(piece, **self._options)
            self.pieces[key].expect_many()  # values decide sizes, which nobody can keep the same
            while len(self.pieces) > MOST_PIECES:
                self.pieces.popitem(last=False)
        self.pieces.move_to_end(key)
        return self.pieces[key], [found[name] for name in inputs]

    def _run_alone(self, at: int, found: dict[str, Any]) -> None:
        """Run a node by itself on arrays."""
        graph, node = self.graph, self.graph.nodes[at]
        values = {"": None, **graph.constants, **found}
        inputs = [values[name] for name in node.input]
        if node.op_type in control.CONTROL and node.domain in STANDARD:
            graph.ways[at] = "control"
            try:
                results = self._run_control(at, inputs, found)
            except (AclnnError, MemoryError, CutError):
                raise
            except Exception as error:  # of a body that does not fit its node
                raise misfit(step_of(node, graph.opset(node), inputs), error, node.domain) from None
        else:
            results = self._evaluated(at, inputs)
        found |= {name: one for name, one in zip(node.output, results, strict=False) if name}

    def _run_control(self, at: int, inputs: list[Any], found: Mapping[str, Any]) -> Sequence[Any]:
        node = self.graph.nodes[at]

        def run(graph: Any, arguments: Sequence[Any]) -> list[Any]:
            names = [one.name for one in graph.input]
            return self._runner_of(at, graph).run(
                {**found, **dict(zip(names, arguments, strict=True))}
            )

        if node.op_type == "If":
            return run(control.branch_of(node, inputs[0]), [])
        if node.op_type == "Loop":
            return control.run_loop(
                node, inputs, run, partial(control.truth_of, node), control.stacked_arrays
            )
        if self.graph.opset(node) < 9:
            return self._evaluated(at, inputs)
        return control.run_scan(node, inputs, attributes_of(node).get, run, control.stacked_arrays)

    def _runner_of(self, at: int, proto: Any) -> Runner:
        """The runner of a branch or a body, which keeps its plans, too."""
        key = (
            at,
            next(n for n, one in enumerate(self.graph.nodes[at].attribute) if one.g == proto),
        )
        if key not in self._inner:
            constants = {**self.graph.constants, **initializers(proto)}
            names = [one.name for one in proto.input]
            outer = self.graph
            graph = Graph(proto, outer.opsets, constants, names, outer.fallback, outer.patterns)
            self._inner[key] = Runner(graph, self._options)
        return self._inner[key]

    def _evaluated(self, at: int, inputs: Sequence[Any]) -> list[Any]:
        graph, node = self.graph, self.graph.nodes[at]
        if node.domain in STANDARD:
            found = self._on_arrays(node, inputs)
            if found is not None:
                graph.ways[at] = "kernel"
                return found
        if not graph.fallback:
            raise invalid(f"{titled(node)}: no operator stands for it")
        graph.ways[at] = "fallback"
        arrays = {
            name: one if isinstance(one, list) else np.asarray(one)
            for name, one in zip(node.input, inputs, strict=True)
            if name and one is not None
        }
        key = (at, *[_kind_of(one) for one in arrays.values()])
        if key not in self._evaluations:
            self._evaluations[key] = self._evaluation(node, arrays)
            graph.evaluations.setdefault(at, []).append(self._evaluations[key])
        left = iter(self._evaluations[key](list(arrays.values())))
        return [next(left) if name else None for name in node.output]

    def _on_arrays(self, node: Any, inputs: Sequence[Any]) -> list[Any] | None:
        """The results of operators that run between plans by NumPy; None for others."""
        step = step_of(node, self.graph.opset(node), inputs)
        form = CHOOSING.get(node.op_type, on_arrays)
        try:
            found = form(step)
        except AclnnError:
            raise
        except Exception as error:  # of NumPy: inputs that fit no rule
            raise misfit(step, error) from None
        return None if found is None else list(found[: len(node.output)])

    def _evaluation(self, node: Any, arrays: Mapping[str, Any]) -> Evaluation:
        plain = {n: (x.dtype, x.shape) for n, x in arrays.items() if not isinstance(x, list)}
        model = model_of(node, self.graph.opsets, {}, plain)
        import onnx

        for name, one in arrays.items():
            if isinstance(one, list):
                model.graph.input.append(onnx.ValueInfoProto(name=name))
        order = {name: n for n, name in enumerate(arrays)}
        infos = sorted(model.graph.input, key=lambda info: order[info.name])
        del model.graph.input[:]
        model.graph.input.extend(infos)
        return Evaluation(model)

    def executor(self, values: Mapping[str, Any], out: Any) -> Any:
        """An executor of the whole graph, bound to arrays; None where that takes several plans."""
        found = dict(values)
        while True:
            if 0 in self._alone:
                return None
            stop = self._stop(0, found)
            if stop < len(self.graph.nodes):
                return None
            piece, inputs = self._piece(0, stop, found)
            if piece is None:
                return None
            try:
                return piece.executor(*inputs, out=out)
            except CutError as cut:
                self.note(cut)

    def why(self) -> str:
        """The nodes that keep the graph from being one plan, in a line."""
        found = [f"{titled(self.graph.nodes[at])} runs by itself" for at in sorted(self._alone)]
        found += [
            f"{titled(self.graph.nodes[at])} depends on the values of {', '.join(sorted(names))}"
            for at, names in sorted(self._needed.items())
        ]
        return ", ".join(found[:4]) or "nothing of it is planned"

    def every_piece(self) -> Iterator[Compiled[Any, Any]]:
        """The pieces that were planned, those of branches and bodies included."""
        yield from self.pieces.values()
        for one in self._inner.values():
            yield from one.every_piece()

    def ways(self) -> Counter[str]:
        return Counter(self.graph.ways.values())


def _kind_of(one: Any) -> Any:
    return "list" if isinstance(one, list) else (one.dtype, one.shape)


def _is_traceable(one: Any) -> bool:
    """Whether a value is an array that plans may read."""
    return one is None or (hasattr(one, "dtype") and dtypes.is_known(np.dtype(one.dtype)))
