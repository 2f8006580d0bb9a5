"""JSON documents of graphs, plans and schedules; graphs and plans read back into equal objects.

Every document names its schema and version, `aclnn.graph/1` and so on.  The schemas themselves
are the JSON Schema dictionaries of this module: `GRAPH_SCHEMA`, `PLAN_SCHEMA`,
`SCHEDULE_SCHEMA`.  Numbers that JSON lacks are written as ``{"float": "nan"}``.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from ..ir import DType, Graph, Node, Value, check, freeze_attrs
from ..lifetime import TilePart
from ..loops import Tiling
from ..plan import Buffer, WorkspacePlan
from ..schedule import Schedule

GRAPH = "aclnn.graph/1"
PLAN = "aclnn.plan/1"
SCHEDULE = "aclnn.schedule/1"


def _object(**properties: Any) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _array(items: dict) -> dict:
    return {"type": "array", "items": items}


_INT = {"type": "integer"}
_SIZE = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_INTS = _array(_INT)
_TEXTS = _array(_TEXT)
_DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}

GRAPH_SCHEMA = _DIALECT | _object(
    schema={"const": GRAPH},
    inputs=_INTS,
    outputs=_INTS,
    values=_array(
        _object(
            id=_INT,
            name=_TEXT,
            shape=_array(_SIZE),
            strides=_INTS,
            dtype=_object(name=_TEXT, itemsize=_SIZE),
            storage={"enum": ["input", "output", "workspace", "tile", "constant"]},
            alias_of={"type": ["integer", "null"]},
            note=_TEXT,
        )
    ),
    nodes=_array(
        _object(name=_TEXT, kind=_TEXT, inputs=_INTS, output=_INT, attrs={"type": "object"})
    ),
)

PLAN_SCHEMA = _DIALECT | _object(
    schema={"const": PLAN},
    size=_SIZE,
    lower_bound=_SIZE,
    naive_size=_SIZE,
    bucket_size=_SIZE,
    strategy=_TEXT,
    proof={"enum": ["optimal", "feasible"]},
    steps=_TEXTS,
    threads=_SIZE,
    tiling=_object(elements=_SIZE, scratch_elements=_SIZE, transpose=_SIZE),
    scratch_per_thread=_SIZE,
    buffers=_array(
        _object(
            name=_TEXT,
            offset=_SIZE,
            nbytes=_SIZE,
            padded=_SIZE,
            first=_INT,
            last=_INT,
            shared_with=_TEXTS,
            producer=_TEXT,
            consumers=_TEXTS,
            parts=_array(_object(name=_TEXT, value=_INT, offset=_SIZE, nbytes=_SIZE)),
        )
    ),
)

SCHEDULE_SCHEMA = _DIALECT | _object(
    schema={"const": SCHEDULE},
    arguments=_TEXTS,
    workspace_size=_SIZE,
    scratch_offset=_SIZE,
    scratch_per_thread=_SIZE,
    max_threads=_SIZE,
    steps=_array(
        _object(
            name=_TEXT,
            shape=_array(_SIZE),
            tile_rows=_SIZE,
            tile_cols=_SIZE,
            n_tiles=_SIZE,
            parallel_from=_SIZE,
            bytes_read=_SIZE,
            bytes_written=_SIZE,
            operands=_array(
                _object(
                    name=_TEXT, base=_INT, offset=_INT, strides=_INTS, dtype=_TEXT, nbytes=_SIZE
                )
            ),
            ops=_array(_object(node=_TEXT, kind=_TEXT, kernel=_TEXT, operands=_INTS, flags=_INT)),
        )
    ),
)


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


def _document(text: str, schema: str) -> dict:
    document = json.loads(text)
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise ValueError(f"expected a document of schema {schema!r}, got {found!r}")
    return document


def graph_to_json(graph: Graph, indent: int | None = None) -> str:
    document = {
        "schema": GRAPH,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "values": [asdict(value) for value in graph.values],
        "nodes": [
            asdict(node) | {"attrs": {key: _encoded(value) for key, value in node.attrs}}
            for node in graph.nodes
        ],
    }
    return json.dumps(document, indent=indent, allow_nan=False)


def graph_from_json(text: str) -> Graph:
    document = _document(text, GRAPH)
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
            **node
            | {
                "inputs": tuple(node["inputs"]),
                "attrs": freeze_attrs({key: _decoded(v) for key, v in node["attrs"].items()}),
            }
        )
        for node in document["nodes"]
    )
    return check(Graph(nodes, values, tuple(document["inputs"]), tuple(document["outputs"])))


def plan_to_json(plan: WorkspacePlan, indent: int | None = None) -> str:
    return json.dumps({"schema": PLAN} | asdict(plan), indent=indent)


def plan_from_json(text: str) -> WorkspacePlan:
    document = _document(text, PLAN)
    del document["schema"]
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
    return WorkspacePlan(**document | changed)


def schedule_to_json(schedule: Schedule, indent: int | None = None) -> str:
    document = {
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
    return json.dumps(document, indent=indent)
