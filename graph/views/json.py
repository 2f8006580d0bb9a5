"""JSON documents of graphs, passes, plans and schedules, all of which read back as equal objects.

Every document names its schema and version, `aclnn.graph/1` and so on; the schemas are the JSON
Schema files in `aclnn/graph/views/schemas`, and the constants of this module.  What follows from
the rest of a document (bytes of traffic, a plan's summary) is there for readers and ignored when
it is read back.  Numbers that JSON lacks are written as ``{"float": "nan"}``.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ..ir import DType, Graph, Node, Value, check, freeze_attrs
from ..lifetime import TilePart
from ..loops import Tiling
from ..passes import Note, PassResult, PassStep
from ..plan import Buffer, WorkspacePlan
from ..schedule import Op, Operand, Schedule, Step
from .diff import PlanDiff

GRAPH = "aclnn.graph/1"
PASSES = "aclnn.passes/1"
PLAN = "aclnn.plan/1"
PLAN_DIFF = "aclnn.plan-diff/1"
SCHEDULE = "aclnn.schedule/1"


def load_schema(folder: Path, name: str) -> dict[str, Any]:
    """A JSON Schema that lies in `folder`."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


_FOLDER = Path(__file__).parent / "schemas"
GRAPH_SCHEMA = load_schema(_FOLDER, "graph")
PASSES_SCHEMA = load_schema(_FOLDER, "passes")
PLAN_SCHEMA = load_schema(_FOLDER, "plan")
PLAN_DIFF_SCHEMA = load_schema(_FOLDER, "plan_diff")
SCHEDULE_SCHEMA = load_schema(_FOLDER, "schedule")


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, (tuple, list)):
        return [_encoded(item) for item in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["float"])
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    return value


def read_document(text: str, schema: str) -> dict[str, Any]:
    """The document in `text`; ValueError when it is of another schema."""
    return checked_document(json.loads(text), schema)


def checked_document(document: Any, schema: str) -> dict[str, Any]:
    """`document` itself, when it is of this schema."""
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise ValueError(f"expected a document of schema {schema!r}, got {found!r}")
    return document


def _only(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    """The entries of `data` that are fields of a dataclass; the rest follows from them."""
    return {one.name: data[one.name] for one in fields(kind) if one.name in data}


# --- Graph ------------------------------------------------------------------------------------


def graph_data(graph: Graph) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schema": GRAPH,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "values": [asdict(value) for value in graph.values],
        "nodes": [_node_data(graph, node) for node in graph.nodes],
    }


def _node_data(graph: Graph, node: Node) -> dict[str, Any]:
    return asdict(node) | {
        "attrs": {key: _encoded(value) for key, value in node.attrs},
        "bytes_read": graph.bytes_read(node),
        "bytes_written": graph.bytes_written(node),
    }


def graph_of(document: Any) -> Graph:
    """The graph of a document as plain data."""
    document = checked_document(document, GRAPH)
    values = tuple(
        Value(
            **value
            | {
                "shape": tuple(value["shape"]),
                "strides": tuple(value["strides"]),
                "dtype": DType(**value["dtype"]),
            }
        )
        for value in document["values"]
    )
    nodes = tuple(
        Node(
            **_only(Node, node)
            | {
                "inputs": tuple(node["inputs"]),
                "attrs": freeze_attrs({key: _decoded(v) for key, v in node["attrs"].items()}),
            }
        )
        for node in document["nodes"]
    )
    return check(Graph(nodes, values, tuple(document["inputs"]), tuple(document["outputs"])))


def graph_to_json(graph: Graph, indent: int | None = None) -> str:
    return json.dumps(graph_data(graph), indent=indent, allow_nan=False)


def graph_from_json(text: str) -> Graph:
    return graph_of(json.loads(text))


# --- Passes -----------------------------------------------------------------------------------


def passes_data(passes: PassResult) -> dict[str, Any]:
    """The document as plain data."""
    from .passes import node_names, node_row

    stages = ["as built", *(step.name for step in passes), "as scheduled"]
    return {
        "schema": PASSES,
        "as_built": graph_data(passes.as_built),
        "passes": [
            {
                "name": step.name,
                "notes": [asdict(note) for note in step.notes],
                "graph": graph_data(step.graph),
            }
            for step in passes
        ],
        "nodes": [
            {"name": name, "stages": dict(zip(stages, node_row(passes, name)[1:], strict=True))}
            for name in node_names(passes)
        ],
    }


def passes_to_json(passes: PassResult, indent: int | None = None) -> str:
    return json.dumps(passes_data(passes), indent=indent, allow_nan=False)


def passes_from_json(text: str) -> PassResult:
    document = read_document(text, PASSES)
    steps = (
        PassStep(one["name"], graph_of(one["graph"]), tuple(Note(**note) for note in one["notes"]))
        for one in document["passes"]
    )
    return PassResult(graph_of(document["as_built"]), steps)


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
    return {"schema": PLAN} | asdict(plan) | {"summary": summary}


def plan_of(document: Any) -> WorkspacePlan:
    """The plan of a document as plain data."""
    document = checked_document(document, PLAN)
    buffers = tuple(
        Buffer(
            **buffer
            | {
                "shared_with": tuple(buffer["shared_with"]),
                "consumers": tuple(buffer["consumers"]),
                "parts": tuple(TilePart(**part) for part in buffer["parts"]),
            }
        )
        for buffer in document["buffers"]
    )
    changed = {
        "buffers": buffers,
        "steps": tuple(document["steps"]),
        "tiling": Tiling(**document["tiling"]),
    }
    return WorkspacePlan(**_only(WorkspacePlan, document) | changed)


def plan_to_json(plan: WorkspacePlan, indent: int | None = None) -> str:
    return json.dumps(plan_data(plan), indent=indent)


def plan_from_json(text: str) -> WorkspacePlan:
    return plan_of(json.loads(text))


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
            asdict(step) | {"bytes_read": step.bytes_read, "bytes_written": step.bytes_written}
            for step in schedule.steps
        ],
    }


def schedule_of(document: Any) -> Schedule:
    """The schedule of a document as plain data."""
    document = checked_document(document, SCHEDULE)
    changed = {
        "arguments": tuple(document["arguments"]),
        "steps": tuple(_step_of(step) for step in document["steps"]),
    }
    return Schedule(**_only(Schedule, document) | changed)


def _step_of(data: dict[str, Any]) -> Step:
    operands = tuple(Operand(**o | {"strides": tuple(o["strides"])}) for o in data["operands"])
    ops = tuple(Op(**op | {"operands": tuple(op["operands"])}) for op in data["ops"])
    changed = {"shape": tuple(data["shape"]), "operands": operands, "ops": ops}
    return Step(**_only(Step, data) | changed)


def schedule_to_json(schedule: Schedule, indent: int | None = None) -> str:
    return json.dumps(schedule_data(schedule), indent=indent)


def schedule_from_json(text: str) -> Schedule:
    return schedule_of(json.loads(text))
