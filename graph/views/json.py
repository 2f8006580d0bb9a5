"""JSON documents of graphs, passes, plans and schedules, all of which read back as equal objects.

Every document names its schema and version, `aclnn.graph/2` and so on.  The JSON Schemas, which the
constants of this module and the files in `aclnn/graph/views/schemas` are, follow from the dataclasses that
documents hold (`schema.py`).  What follows from the rest of a document (bytes of traffic, a plan's
summary) is there for readers and ignored when it is read back.  Numbers that JSON lacks are written as
``{"float": "nan"}``, those that a run is given as ``{"argument": 0, "kind": "real"}``.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from itertools import chain, repeat
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from ..attrs import ARGUMENT_KINDS, Argument, Attrs, freeze_attrs
from ..constraints import Count, Share
from ..ir import Graph, Node
from ..lower.schedule import Schedule, Step
from ..passes.pipeline import PassResult, PassStep
from ..planner.plan import WorkspacePlan
from ..verify.graph import check
from ..verify.plan import validate
from ..verify.schedule import check_schedule
from .diff import DiffRecord, PlanDiff
from .passes import node_rows
from .schema import NOT_A_NUMBER, Document, optional_fields, schema_of, written_fields

# --- Documents and their schemas --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Traffic:
    """Bytes that a node or step moves.

    Attributes
    ----------
    bytes_read : int
        Bytes read from memory, every element of an operand counted once; tiles do not count.
    bytes_written : int
        Bytes written to memory.
    """

    bytes_read: Count
    bytes_written: Count


@dataclass(frozen=True, slots=True)
class _Summary:
    """Numbers of a plan that follow from the rest; not needed for reading back.

    Attributes
    ----------
    gap : int
        size - lower_bound.
    peak_step : int
        The first step at which most bytes are alive.
    peak_bytes : int
        Padded bytes alive at the peak.
    fragmentation : float
        Share of the workspace that is not in use at the peak.
    must_shrink : tuple of str
        Buffers alive at the peak, largest first: only these can lower it.
    """

    gap: Count
    peak_step: int
    peak_bytes: Count
    fragmentation: Share
    must_shrink: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _PlanSummary:
    """Part of a plan document besides the plan.

    Attributes
    ----------
    summary : object
        Numbers that follow from the rest; not needed for reading back.
    """

    summary: _Summary


@dataclass(frozen=True, slots=True)
class _Passes:
    """The graph as built and after each pass, with what each did and why.

    Attributes
    ----------
    as_built : Graph
        The graph before the first pass.
    passes : tuple of PassStep
        In the order in which they ran.
    """

    as_built: Graph
    passes: tuple[PassStep, ...]


@dataclass(frozen=True, slots=True)
class _NodeStages:
    """Fate of one node; not needed for reading back.

    Attributes
    ----------
    name : str
        Name of the node.
    stages : dict of str to str
        As built, after each pass, as scheduled: in words.
    """

    name: str
    stages: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Stages:
    """Part of a document of passes besides the graphs.

    Attributes
    ----------
    nodes : tuple of object
        Every node, side by side.
    """

    nodes: tuple[_NodeStages, ...]


GRAPH_DOCUMENT = Document("aclnn.graph/2", "Graph", Graph, {Node: _Traffic})
PLAN_DOCUMENT = Document(
    "aclnn.plan/2", "Workspace plan", WorkspacePlan, {WorkspacePlan: _PlanSummary}
)
SCHEDULE_DOCUMENT = Document("aclnn.schedule/4", "Schedule", Schedule, {Step: _Traffic})
PASSES_DOCUMENT = Document("aclnn.passes/2", "Passes", _Passes, {_Passes: _Stages})
PLAN_DIFF_DOCUMENT = Document(
    "aclnn.plan-diff/1", "Difference of two workspace plans", DiffRecord, {}
)
# Documents that others refer to.
EMBEDDED = {one.kind: one for one in (GRAPH_DOCUMENT, PLAN_DOCUMENT, SCHEDULE_DOCUMENT)}

GRAPH_SCHEMA = schema_of(GRAPH_DOCUMENT, {})
PLAN_SCHEMA = schema_of(PLAN_DOCUMENT, {})
SCHEDULE_SCHEMA = schema_of(SCHEDULE_DOCUMENT, {})
PASSES_SCHEMA = schema_of(PASSES_DOCUMENT, EMBEDDED)
PLAN_DIFF_SCHEMA = schema_of(PLAN_DIFF_DOCUMENT, {})
# Schemas of documents inside others, and what else must hold.
_VERIFIED: dict[type, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    Graph: (GRAPH_SCHEMA, check),
    WorkspacePlan: (PLAN_SCHEMA, validate),
    Schedule: (SCHEDULE_SCHEMA, check_schedule),
}
# By the names of the files that the build writes.
SCHEMAS_BY_NAME = {
    "graph": GRAPH_SCHEMA,
    "passes": PASSES_SCHEMA,
    "plan": PLAN_SCHEMA,
    "plan_diff": PLAN_DIFF_SCHEMA,
    "schedule": SCHEDULE_SCHEMA,
}
SCHEMAS = Path(__file__).parent / "schemas"


def load_schema(folder: Path, name: str) -> dict[str, Any]:
    """A JSON Schema of another program's format, by the name of its file in `folder`."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


# --- To documents -----------------------------------------------------------------------------

_LEAVES = frozenset({int, str, bool, NoneType})


def plain(value: Any) -> Any:
    """JSON's form of a dataclass, a tuple, a number."""
    if type(value) in _LEAVES:
        return value
    if isinstance(value, Argument):
        return {"argument": value.place, "kind": value.kind}
    if is_dataclass(value):
        return _plain_fields(value)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _plain_fields(value: Any) -> dict[str, Any]:
    kind = value.__class__
    found = {name: getattr(value, name) for name in _field_names(kind)}
    for name, usual in optional_fields(kind).items():
        if found[name] == usual:
            del found[name]
    return {name: plain(one) for name, one in found.items()}


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(written_fields(kind))


# --- From documents ---------------------------------------------------------------------------

LARGEST_INTEGER = 2**63 - 1  # that other readers of a document have room for
_ARGUMENT_RULE = {"properties": {"argument": {"minimum": 0}, "kind": {"enum": ARGUMENT_KINDS}}}
_WORDS = {
    int: "an integer",
    bool: "true or false",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def read_document(text: str, kind: type, schema: dict[str, Any]) -> Any:
    """The `kind` that the document in `text` describes; ValueError names the field that does not fit."""
    try:
        return read(kind, checked_document(json.loads(text), schema))
    except RecursionError:
        raise ValueError("lists are nested too deeply to be read") from None


def checked_document(document: Any, schema: dict[str, Any], where: str = "") -> dict[str, Any]:
    """`document` itself, when it is of this schema and its numbers and words are among those allowed."""
    name = schema["properties"]["schema"]["const"]
    found = document.get("schema") if isinstance(document, dict) else None
    if found != name:
        index = f"{where}: " if where else ""
        raise ValueError(
            f"{index}expected a document of schema {name!r}, got {reprlib.repr(found)}"
        )
    _refuse_misfit(document, _ranges_of(name, schema), where)
    return document


def _refuse_misfit(data: Any, ranges: _Ranges | None, where: str) -> None:
    if (misfit := _misfit(data, ranges)) is None:
        return
    path, found, words = misfit
    index = where + path if where else path.removeprefix(".")
    raise ValueError(f"{index} is {reprlib.repr(found)}, must be {words}")


class _Ranges(NamedTuple):
    """Limits of a schema on numbers and words; types are checked by `read`."""

    words: tuple[str, ...] | None
    least: float
    most: float
    firsts: tuple[_Ranges | None, ...]
    items: _Ranges | None
    inside: tuple[tuple[str, _Ranges], ...]


_KNOWN_RANGES: dict[str, _Ranges | None] = {}


def _ranges_of(name: str, schema: dict[str, Any]) -> _Ranges | None:
    """Limits of the schema of this name, gathered once."""
    if name not in _KNOWN_RANGES:
        _KNOWN_RANGES[name] = _ranges(schema)
    return _KNOWN_RANGES[name]


def _ranges(rule: dict[str, Any]) -> _Ranges | None:
    """Limits of a rule; None where everything is allowed."""
    inside = {key: _ranges(inner) for key, inner in rule.get("properties", {}).items()}
    found = _Ranges(
        words=tuple(rule["enum"]) if "enum" in rule else None,
        least=rule.get("minimum", -math.inf),
        most=rule.get("maximum", math.inf),
        firsts=tuple(map(_ranges, rule.get("prefixItems", ()))),
        items=_ranges(rule["items"]) if rule.get("items") else None,
        inside=tuple((key, inner) for key, inner in inside.items() if inner is not None),
    )
    numbers = "minimum" in rule or "maximum" in rule
    any_inside = any(found.firsts) or found.items is not None or found.inside
    return found if found.words is not None or numbers or any_inside else None


def _misfit(data: Any, ranges: _Ranges | None) -> tuple[str, Any, str] | None:
    """First value in `data` that is not allowed: its path, the value, and the rule in words."""
    if ranges is None:
        return None
    if isinstance(data, (int, float)):
        return _number_misfit(data, ranges)
    if isinstance(data, str):
        if ranges.words is None or data in ranges.words:
            return None
        return "", data, f"one of {', '.join(ranges.words)}"
    if isinstance(data, list) and (ranges.firsts or ranges.items):
        for index, (item, inner) in enumerate(
            zip(data, chain(ranges.firsts, repeat(ranges.items)), strict=False)
        ):
            if (found := _misfit(item, inner)) is not None:
                return f"[{index}]{found[0]}", *found[1:]
    if isinstance(data, dict):
        for key, inner in ranges.inside:
            if key in data and (found := _misfit(data[key], inner)) is not None:
                return f".{key}{found[0]}", *found[1:]
    return None


def _number_misfit(data: float, ranges: _Ranges) -> tuple[str, Any, str] | None:
    # As NaN is in no range.
    if ranges.least > -math.inf and not data >= ranges.least:
        return "", data, f"at least {ranges.least}"
    if ranges.most < math.inf and not data <= ranges.most:
        return "", data, f"at most {ranges.most}"
    return None


_Reader = Callable[[Any, str], Any]


def read(kind: Any, data: Any, where: str = "") -> Any:
    """Plain data as what an annotation says: dataclasses from objects, tuples from lists.

    `where` is the field that holds the data.
    """
    return _reader(kind)(data, where)


@cache
def _reader(kind: Any) -> _Reader:
    """Function that reads data of a kind, made once per kind."""
    inner = get_args(kind)
    if NoneType in inner:
        present = _reader(inner[0])
        return lambda data, where: None if data is None else present(data, where)
    if kind == Attrs:
        return _attrs
    if get_origin(kind) is UnionType:
        return _param
    if get_origin(kind) is tuple:
        return partial(_tuple, inner)
    return partial(_object if is_dataclass(kind) else _of_type, kind)


def _attrs(data: Any, where: str) -> Attrs:
    """In documents an object, whose values are of any type."""
    items = _of_type(dict, data, where).items()
    return freeze_attrs({key: _decoded(value, f"{where}.{key}") for key, value in items})


def _tuple(kinds: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    items = _of_type(list, data, where)
    if kinds[-1] is Ellipsis:
        if _all_fit(kinds[0], items):
            return tuple(items)
        kinds = kinds[:1] * len(items)
    if len(kinds) != len(items):
        raise ValueError(f"{where} has {len(items)} items, must have {len(kinds)}")
    pairs = zip(kinds, items, strict=True)
    return tuple([_reader(kind)(item, f"{where}[{i}]") for i, (kind, item) in enumerate(pairs)])


def _all_fit(kind: Any, items: list[Any]) -> bool:
    """Whether items are read as they are: all are words, or all are integers of 64 bits."""
    if kind is str:
        return all(type(item) is str for item in items)
    if kind is not int or not all(type(item) is int for item in items):
        return False
    return not items or (min(items) >= -LARGEST_INTEGER and max(items) <= LARGEST_INTEGER)


@cache
def _field_readers(kind: Any) -> tuple[tuple[str, _Reader, bool], ...]:
    """The fields that documents have of a dataclass: names, what reads them, and who may be left out."""
    hints, optional = get_type_hints(kind), optional_fields(kind)
    return tuple(
        (one.name, _reader(hints[one.name]), one.name in optional)
        for one in fields(kind)
        if one.compare
    )


def _object(kind: Any, data: Any, where: str) -> Any:
    """A dataclass; what else an object has follows from its fields, or is of a later version."""
    schema, sound = _VERIFIED.get(kind, (None, None))
    if schema is not None:
        checked_document(data, schema, where)
    present, made = _of_type(dict, data, where), {}
    for name, reader, optional in _field_readers(kind):
        path = f"{where}.{name}" if where else name
        if name in present:
            made[name] = reader(present[name], path)
        elif not optional:
            raise ValueError(f"{path} is missing")
    return sound(kind(**made)) if sound else kind(**made)


def _of_type(kind: type, data: Any, where: str) -> Any:
    if type(data) is not kind:  # a bool is no number here
        raise ValueError(f"{where} is {reprlib.repr(data)}, must be {_WORDS[kind]}")
    if isinstance(data, int) and not -LARGEST_INTEGER <= data <= LARGEST_INTEGER:
        raise ValueError(f"{where} is {reprlib.repr(data)}, must fit into 64 bits")
    return data


def _decoded(value: Any, where: str) -> Any:
    """An attribute's value, which may be a number that JSON lacks."""
    if isinstance(value, list):
        return tuple(_decoded(item, where) for item in value)
    return _of_object(value, where) if isinstance(value, dict) else value


def _param(data: Any, where: str) -> float | int | Argument:
    """A number that a kernel takes."""
    if isinstance(data, dict):
        return _of_object(data, where)
    if type(data) not in (int, float):
        raise ValueError(f"{where} is {reprlib.repr(data)}, must be a number or an argument")
    return data if isinstance(data, float) else _of_type(int, data, where)


def _of_object(value: dict[str, Any], where: str) -> float | Argument:
    """A number that JSON lacks, or one that a run is given."""
    if value.keys() & {"argument", "kind"}:
        return _argument(value, where)
    found = value.get("float")
    if len(value) != 1 or found not in NOT_A_NUMBER:
        raise ValueError(f"{where} is {reprlib.repr(value)}, must be a number, string or list")
    return float(found)


def _argument(value: dict[str, Any], where: str) -> Argument:
    for field in ("argument", "kind"):
        if field not in value:
            raise ValueError(f"{where}.{field} is missing")
    _refuse_misfit(value, _ranges_of("argument", _ARGUMENT_RULE), where)
    index = _of_type(int, value["argument"], f"{where}.argument")
    return Argument(index, _of_type(str, value["kind"], f"{where}.kind"))


# --- Graph ------------------------------------------------------------------------------------


def graph_data(graph: Graph) -> dict[str, Any]:
    """The document as plain data."""
    found = {"schema": GRAPH_DOCUMENT.name} | plain(graph)
    for node, data in zip(graph.nodes, found["nodes"], strict=True):
        data["attrs"] = {key: plain(value) for key, value in node.attrs}
        data |= plain(_Traffic(graph.bytes_read(node), graph.bytes_written(node)))
    return found


def graph_to_json(graph: Graph, indent: int | None = None) -> str:
    return json.dumps(graph_data(graph), indent=indent, allow_nan=False)


def graph_from_json(text: str) -> Graph:
    return read_document(text, Graph, GRAPH_SCHEMA)


# --- Passes -----------------------------------------------------------------------------------


def passes_data(passes: PassResult) -> dict[str, Any]:
    """The document as plain data."""
    stages = ["as built", *(step.name for step in passes), "as scheduled"]
    rows = [
        _NodeStages(name, dict(zip(stages, words, strict=True)))
        for name, *words in node_rows(passes)
    ]
    return {
        "schema": PASSES_DOCUMENT.name,
        "as_built": graph_data(passes.as_built),
        "passes": [
            {"name": step.name, "notes": plain(step.notes), "graph": graph_data(step.graph)}
            for step in passes
        ],
        **plain(_Stages(tuple(rows))),
    }


def passes_to_json(passes: PassResult, indent: int | None = None) -> str:
    return json.dumps(passes_data(passes), indent=indent, allow_nan=False)


def passes_from_json(text: str) -> PassResult:
    found = read_document(text, _Passes, PASSES_SCHEMA)
    return PassResult(found.as_built, found.passes)


# --- Plan -------------------------------------------------------------------------------------


def plan_data(plan: WorkspacePlan) -> dict[str, Any]:
    """The document as plain data."""
    largest = tuple(buffer.name for buffer in plan.must_shrink)
    numbers = _Summary(plan.gap, plan.peak_step, plan.peak_bytes, plan.fragmentation, largest)
    return {"schema": PLAN_DOCUMENT.name} | plain(plan) | plain(_PlanSummary(numbers))


def plan_to_json(plan: WorkspacePlan, indent: int | None = None) -> str:
    return json.dumps(plan_data(plan), indent=indent)


def plan_from_json(text: str) -> WorkspacePlan:
    return read_document(text, WorkspacePlan, PLAN_SCHEMA)


def plan_diff_data(diff: PlanDiff) -> dict[str, Any]:
    """The document as plain data."""
    return {"schema": PLAN_DIFF_DOCUMENT.name} | plain(diff.record())


def plan_diff_to_json(diff: PlanDiff, indent: int | None = None) -> str:
    return json.dumps(plan_diff_data(diff), indent=indent)


# --- Schedule ---------------------------------------------------------------------------------


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """The document as plain data; kernels are code and stay behind."""
    found = {"schema": SCHEDULE_DOCUMENT.name} | plain(schedule)
    for step, data in zip(schedule.steps, found["steps"], strict=True):
        data |= plain(_Traffic(step.bytes_read, step.bytes_written))
    return found


def schedule_to_json(schedule: Schedule, indent: int | None = None) -> str:
    return json.dumps(schedule_data(schedule), indent=indent)


def schedule_from_json(text: str) -> Schedule:
    return read_document(text, Schedule, SCHEDULE_SCHEMA)
