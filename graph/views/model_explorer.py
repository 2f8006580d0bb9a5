"""Graphs and quantities of their nodes as Model Explorer reads them: JSON of its own.

Groups are namespaces: repeated sequences, lines of functions, calls of operators, tile loops.
Everything is there once more in the attributes of nodes, as the program shows them next to the graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .dot import gathered
from .groups import common_start
from .heat import Heat, heats_of, traffic
from .json import SCHEMAS, load_schema
from .onnx import buffers_by_name
from .repeats import repeats
from .text import (
    arguments,
    attr_words,
    dims,
    human_bytes,
    kind_words,
    places,
    step_numbers,
    storage_words,
)

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..planner.plan import WorkspacePlan

GRAPH_ID = "graph"
MODEL_EXPLORER_SCHEMA = load_schema(SCHEMAS, "model_explorer")
# From the least to the most, as in pictures.
GRADIENT = [{"stop": 0, "bgColor": "#f6f8fa"}, {"stop": 1, "bgColor": "#ff9e4a"}]


def graph_to_model_explorer(
    graph: Graph, plan: WorkspacePlan | None = None, heat: object = None
) -> str:
    heats = heats_of(heat, lambda: traffic(graph))
    own = [*arguments(graph), *gathered(graph)]
    names = {value.id: f"{value.name} ({value.storage})" for value in own}
    spaces, steps = _namespaces(graph), step_numbers(graph)
    readers = graph.readers()
    inside = {value.id: _around(graph, value, spaces, readers.get(value.id, ())) for value in own}
    nodes = [_value_node(graph, value, (names[value.id], inside[value.id]), plan) for value in own]
    nodes += [
        _node(graph, node, names, (spaces[node.name], steps[node.name]), plan, heats)
        for node in graph.nodes
    ]
    facts = {"nodes": str(len(graph.nodes)), "steps": str(len(graph.steps()))}
    if plan is not None:
        facts |= {"workspace": f"{plan.size} bytes", "strategy": plan.strategy, "proof": plan.proof}
    made = {"id": GRAPH_ID, "nodes": nodes, "groupNodeAttributes": {"": facts}}
    return json.dumps({"label": "aclnn", "graphs": [made]})


def model_explorer_data(
    graph: Graph, plan: WorkspacePlan | None = None, heat: object = None
) -> dict[str, str]:
    """A document of node data for each quantity, by its name."""
    heats = (traffic(graph), *heats_of(heat, lambda: traffic(graph)))
    numbers = {one.name: dict(one.amounts) for one in heats}
    if plan is not None:
        numbers["offset"] = dict(_offsets(graph, plan))
    return {name: _data(name, found) for name, found in numbers.items()}


def _data(name: str, amounts: Mapping[str, float]) -> str:
    results = {node: {"value": amount} for node, amount in amounts.items()}
    return json.dumps({GRAPH_ID: {"name": name, "results": results, "gradient": GRADIENT}})


def _offsets(graph: Graph, plan: WorkspacePlan) -> Iterator[tuple[str, int]]:
    """Offset of a node's first result in the workspace, for those that are there."""
    buffers = buffers_by_name(plan)
    for node in graph.nodes:
        value, root = graph.value(node.output), graph.root(node.output)
        buffer = buffers.get(root.name)
        if buffer is not None and not buffer.output:
            yield node.name, buffer.offset + value.offset * value.dtype.itemsize


def _namespaces(graph: Graph) -> dict[str, str]:
    """The groups around each node, the outermost first."""
    layers: dict[str, str] = {}
    for one in repeats(graph):
        for number in range(one.count):
            first = one.start + number * one.period
            layers |= {
                node.name: f"repeat {number + 1} of {one.count}"
                for node in graph.nodes[first : first + one.period]
            }
    found = {}
    for node in graph.nodes:
        loop = node.attr("loop")
        parts = [layers.get(node.name, ""), *node.origin, node.attr("call", "")]
        parts.append("" if loop is None else f"tile loop {loop}")
        found[node.name] = "/".join(part.replace("/", "\u2215") for part in parts if part)
    return found


def _around(graph: Graph, value: Value, spaces: Mapping[str, str], readers: Sequence[Node]) -> str:
    """The innermost group of all that read and write a value, but for what a run gives back."""
    if value.storage == "output":
        return ""
    near = [*readers, *graph.writers().get(value.id, ())]
    paths = [spaces[node.name].split("/") for node in near]
    return "/".join(common_start(paths))


def _node(
    graph: Graph,
    node: Node,
    names: Mapping[int, str],
    where: tuple[str, int],
    plan: WorkspacePlan | None,
    heats: Sequence[Heat],
) -> dict[str, Any]:
    space, step = where
    facts = {
        "name": node.name,
        "kind": kind_words(node),
        "step": str(step),
        "bytes read": f"{graph.bytes_read(node):,}",
        "bytes written": f"{graph.bytes_written(node):,}",
        "attributes": attr_words(node),
        "source": " > ".join(node.origin),
    }
    facts |= {heat.name: heat.label([node.name]) for heat in heats if node.name in heat.amounts}
    edges = []
    for index, id in enumerate(node.inputs):
        root = graph.root(id)
        if (source := _source(graph, root.id, names)) is not None:
            edges.append(_edge(*source, index))
    label = node.attr("call", "").partition("#")[0] or node.attr("kernel") or node.kind
    return {
        "id": node.name,
        "label": label,
        "namespace": space,
        "attrs": _pairs(facts),
        "incomingEdges": edges,
        "inputsMetadata": [
            {"id": str(index), "attrs": _pairs({"__tensor_tag": graph.value(id).name})}
            for index, id in enumerate(node.inputs)
        ],
        "outputsMetadata": [
            {"id": str(index), "attrs": _pairs(_value_facts(graph, graph.value(id), plan))}
            for index, id in enumerate(node.outputs)
        ],
    }


def _source(graph: Graph, root: int, names: Mapping[int, str]) -> tuple[str, int] | None:
    """Source of a value: its own node, or a result of the node that writes it."""
    if root in names:
        return names[root], 0
    for node in graph.writers().get(root, ()):
        for index, id in enumerate(node.outputs):
            if graph.root(id).id == root:
                return node.name, index
    return None


def _value_node(
    graph: Graph, value: Value, called: tuple[str, str], plan: WorkspacePlan | None
) -> dict[str, Any]:
    """An argument, or what one or several nodes write in parts."""
    edges = [
        _edge(node.name, index, number)
        for number, node in enumerate(graph.writers().get(value.id, ()))
        for index, id in enumerate(node.outputs)
        if graph.root(id).id == value.id
    ]
    return {
        "id": called[0],
        "label": value.name,
        "namespace": called[1],
        "attrs": _pairs({"storage": storage_words(graph, value)}),
        "incomingEdges": edges,
        "outputsMetadata": [{"id": "0", "attrs": _pairs(_value_facts(graph, value, plan))}],
    }


def _edge(source: str, output: int, index: int) -> dict[str, str]:
    return {
        "sourceNodeId": source,
        "sourceNodeOutputId": str(output),
        "targetNodeInputId": str(index),
    }


def _value_facts(graph: Graph, value: Value, plan: WorkspacePlan | None) -> dict[str, str]:
    return {
        "__tensor_tag": value.name,
        "tensor_name": value.name,
        "shape": f"{value.dtype.name}{dims(value.shape)}",
        "strides": dims(value.strides),
        "size": human_bytes(value.nbytes),
        "storage": storage_words(graph, value),
        "offset": places(plan).of(graph, value),
    }


def _pairs(facts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in facts.items() if value]
