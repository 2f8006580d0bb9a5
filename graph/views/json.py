"""JSON documents of graphs, passes, plans and schedules, all of which read back as equal objects.

Every document names its schema and version, `aclnn.graph/2` and so on; the schemas are the JSON
Schema files in `aclnn/graph/views/schemas`, and the constants of this module.  What follows from
the rest of a document (bytes of traffic, a plan's summary) is there for readers and ignored when
it is read back.  Numbers that JSON lacks are written as ``{"float": "nan"}``, those that a run is
given as ``{"argument": 0, "kind": "real"}``.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from ..attrs import ARGUMENT_KINDS, Argument, Attrs, freeze_attrs
from ..verify.graph import check
from ..verify.plan import validate
from ..verify.schedule import check_schedule

if TYPE_CHECKING:
    from ..ir import Graph, Node
    from ..lower.schedule import Schedule
    from ..passes.pipeline import PassResult
    from ..planner.plan import WorkspacePlan
    from .diff import PlanDiff

GRAPH = "aclnn.graph/2"
PASSES = "aclnn.passes/2"
PLAN = "aclnn.plan/2"
PLAN_DIFF = "aclnn.plan-diff/1"
SCHEDULE = "aclnn.schedule/3"


def load_schema(folder: Path, name: str) -> dict[str, Any]:
    """A JSON Schema that lies in `folder`."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


SCHEMAS = Path(__file__).parent / "schemas"
GRAPH_SCHEMA = load_schema(SCHEMAS, "graph")
PASSES_SCHEMA = load_schema(SCHEMAS, "passes")
PLAN_SCHEMA = load_schema(SCHEMAS, "plan")
PLAN_DIFF_SCHEMA = load_schema(SCHEMAS, "plan_diff")
SCHEDULE_SCHEMA = load_schema(SCHEMAS, "schedule")
# Documents that lie in others: their schemas, and what else must hold.  Classes go by their names:
# each hands itself over to be read, and this module needs none of them.
_DOCUMENTS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "Graph": (GRAPH_SCHEMA, check),
    "WorkspacePlan": (PLAN_SCHEMA, validate),
    "Schedule": (SCHEDULE_SCHEMA, check_schedule),
}


_LEAVES = frozenset({int, str, bool, NoneType})


def plain(value: Any) -> Any:
    """JSON's form of a dataclass, a tuple, a number."""
    if type(value) in _LEAVES:
        return value
    if isinstance(value, Argument):
        return {"argument": value.place, "kind": value.kind}
    if is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in _field_names(value.__class__)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


# --- From documents ---------------------------------------------------------------------------

LARGEST_INTEGER = 2**63 - 1  # that other readers of a document have room for
_FLOATS = ("nan", "inf", "-inf")
_ARGUMENT_RULE = {"properties": {"argument": {"minimum": 0}, "kind": {"enum": ARGUMENT_KINDS}}}
_WORDS = {
    int: "an integer",
    bool: "true or false",
    str: "a string",
    list: "a list",
    dict: "an object",
}
_hints = cache(get_type_hints)


def read_document(text: str, kind: type, schema: dict[str, Any]) -> Any:
    """The `kind` that the document in `text` describes; ValueError names the field that does not fit."""
    try:
        return read(kind, checked_document(json.loads(text), schema))
    except RecursionError:
        raise ValueError("lists lie in one another too deep to be read") from None


def checked_document(document: Any, schema: dict[str, Any], where: str = "") -> dict[str, Any]:
    """`document` itself, when it is of this schema and its numbers and words are among those allowed."""
    name = schema["properties"]["schema"]["const"]
    found = document.get("schema") if isinstance(document, dict) else None
    if found != name:
        place = f"{where}: " if where else ""
        raise ValueError(
            f"{place}expected a document of schema {name!r}, got {reprlib.repr(found)}"
        )
    _check_ranges(document, schema, where)
    return document


def _check_ranges(data: Any, rule: dict[str, Any], where: str) -> None:
    """Refuse what a schema does not allow, but for types, which `read` tells apart."""
    broken = ""
    if isinstance(data, str) and data not in rule.get("enum", (data,)):
        broken = f"one of {', '.join(rule['enum'])}"
    is_number = isinstance(data, (int, float))
    if is_number and "minimum" in rule and not data >= rule["minimum"]:  # as NaN is not
        broken = f"at least {rule['minimum']}"
    elif is_number and "maximum" in rule and not data <= rule["maximum"]:
        broken = f"at most {rule['maximum']}"
    if broken:
        raise ValueError(f"{where} is {reprlib.repr(data)}, must be {broken}")
    if isinstance(data, list):
        rules = chain(rule.get("prefixItems", ()), repeat(rule.get("items") or {}))
        for place, (item, inner) in enumerate(zip(data, rules, strict=False)):
            _check_ranges(item, inner, f"{where}[{place}]")
    if isinstance(data, dict):
        for key, inner in rule.get("properties", {}).items():
            if key in data:
                _check_ranges(data[key], inner, f"{where}.{key}" if where else key)


def read(kind: Any, data: Any, where: str = "") -> Any:
    """Plain data as what an annotation says: dataclasses from objects, tuples from lists.

    `where` is the field that holds the data.
    """
    inner = get_args(kind)
    if NoneType in inner:
        return None if data is None else read(inner[0], data, where)
    if kind == Attrs:  # in documents an object, whose values are of any type
        items = _of_type(dict, data, where).items()
        return freeze_attrs({key: _decoded(value, f"{where}.{key}") for key, value in items})
    if get_origin(kind) is UnionType:
        return _param(data, where)
    if get_origin(kind) is tuple:
        return _tuple(inner, _of_type(list, data, where), where)
    return _object(kind, data, where) if is_dataclass(kind) else _of_type(kind, data, where)


def _tuple(kinds: tuple[Any, ...], items: list[Any], where: str) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(items)
    if len(kinds) != len(items):
        raise ValueError(f"{where} has {len(items)} items, must have {len(kinds)}")
    pairs = zip(kinds, items, strict=True)
    return tuple(read(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(pairs))


def _object(kind: Any, data: Any, where: str) -> Any:
    """A dataclass; what else an object has follows from its fields, or is of a later version."""
    schema, sound = _DOCUMENTS.get(kind.__name__, (None, None))
    if schema is not None:
        checked_document(data, schema, where)
    made, hints = {}, _hints(kind)
    for one in fields(kind):
        if not one.compare:  # what is not in documents
            continue
        path = f"{where}.{one.name}" if where else one.name
        if one.name not in _of_type(dict, data, where):
            raise ValueError(f"{path} is missing")
        made[one.name] = read(hints[one.name], data[one.name], path)
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
    if len(value) != 1 or found not in _FLOATS:
        raise ValueError(f"{where} is {reprlib.repr(value)}, must be a number, string or list")
    return float(found)


def _argument(value: dict[str, Any], where: str) -> Argument:
    for field in ("argument", "kind"):
        if field not in value:
            raise ValueError(f"{where}.{field} is missing")
    _check_ranges(value, _ARGUMENT_RULE, where)
    place = _of_type(int, value["argument"], f"{where}.argument")
    return Argument(place, _of_type(str, value["kind"], f"{where}.kind"))


# --- Graph ------------------------------------------------------------------------------------


def graph_data(graph: Graph) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schema": GRAPH,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "values": plain(graph.values),
        "nodes": [_node_data(graph, node) for node in graph.nodes],
    }


def _node_data(graph: Graph, node: Node) -> dict[str, Any]:
    return plain(node) | {
        "attrs": {key: plain(value) for key, value in node.attrs},
        "bytes_read": graph.bytes_read(node),
        "bytes_written": graph.bytes_written(node),
    }


def graph_to_json(graph: Graph, indent: int | None = None) -> str:
    return json.dumps(graph_data(graph), indent=indent, allow_nan=False)


# --- Passes -----------------------------------------------------------------------------------


def passes_data(passes: PassResult) -> dict[str, Any]:
    """The document as plain data."""
    from .passes import node_rows

    stages = ["as built", *(step.name for step in passes), "as scheduled"]
    return {
        "schema": PASSES,
        "as_built": graph_data(passes.as_built),
        "passes": [
            {
                "name": step.name,
                "notes": plain(step.notes),
                "graph": graph_data(step.graph),
            }
            for step in passes
        ],
        "nodes": [
            {"name": name, "stages": dict(zip(stages, words, strict=True))}
            for name, *words in node_rows(passes)
        ],
    }


def passes_to_json(passes: PassResult, indent: int | None = None) -> str:
    return json.dumps(passes_data(passes), indent=indent, allow_nan=False)


# --- Plan -------------------------------------------------------------------------------------


def plan_data(plan: WorkspacePlan) -> dict[str, Any]:
    """The document as plain data."""
    summary = {
        "gap": plan.gap,
        "peak_step": plan.peak_step,
        "peak_bytes": plan.peak_bytes,
        "fragmentation": plan.fragmentation,
        "must_shrink": [buffer.name for buffer in plan.must_shrink],
    }
    return {"schema": PLAN} | plain(plan) | {"summary": summary}


def plan_to_json(plan: WorkspacePlan, indent: int | None = None) -> str:
    return json.dumps(plan_data(plan), indent=indent)


def plan_diff_data(diff: PlanDiff) -> dict[str, Any]:
    """The document as plain data."""
    return {"schema": PLAN_DIFF, "size_change": diff.size_change} | diff.as_data()


# --- Schedule ---------------------------------------------------------------------------------


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """The document as plain data; kernels are code and stay behind."""
    return {
        "schema": SCHEDULE,
        "arguments": schedule.arguments,
        "workspace_size": schedule.workspace_size,
        "scratch_offset": schedule.scratch_offset,
        "scratch_per_thread": schedule.scratch_per_thread,
        "max_threads": schedule.max_threads,
        "steps": [
            plain(step) | {"bytes_read": step.bytes_read, "bytes_written": step.bytes_written}
            for step in schedule.steps
        ],
    }


def schedule_to_json(schedule: Schedule, indent: int | None = None) -> str:
    return json.dumps(schedule_data(schedule), indent=indent)
