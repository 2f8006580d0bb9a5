"""Documents for Model Explorer fit its format, and hold what graph, plan and profile say."""

import json

import numpy as np
import pytest
from aclnn.graph import plan_workspace, run_passes
from aclnn.graph.views.heat import Heat
from graph_tools import of_all_kinds, wasteful
from schemas import VALIDATORS, validated

import aclnn


def graph_in(text):
    (graph,) = validated(text, "model_explorer")["graphs"]
    return graph


def facts(pairs):
    return {pair["key"]: pair["value"] for pair in pairs}


@pytest.mark.parametrize("make", [wasteful, of_all_kinds])
@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
def test_every_node_and_edge_is_there(make, pipeline):
    graph = run_passes(make(), pipeline).graph
    plan = plan_workspace(graph)
    made = graph_in(graph.to_model_explorer(plan))
    nodes = {node["id"]: node for node in made["nodes"]}
    assert len(nodes) == len(made["nodes"])
    assert {node.name for node in graph.nodes} <= nodes.keys()
    for node in made["nodes"]:
        for edge in node["incomingEdges"]:
            source = nodes[edge["sourceNodeId"]]
            assert int(edge["sourceNodeOutputId"]) < len(source["outputsMetadata"])
    for node in graph.nodes:
        shown = nodes[node.name]
        assert len(shown["incomingEdges"]) == len(node.inputs)
        for id, edge in zip(node.inputs, shown["incomingEdges"], strict=True):
            root = graph.root(id)
            source = nodes[edge["sourceNodeId"]]
            made_by = [n.name for n in graph.writers().get(root.id, ())]
            assert source["label"] == root.name or source["id"] in made_by
        for id, told in zip(node.outputs, shown["outputsMetadata"], strict=True):
            value = graph.value(id)
            assert facts(told["attrs"])["tensor_name"] == value.name
            assert facts(told["attrs"])["shape"].startswith(value.dtype.name)
        loop = node.attr("loop")
        assert shown["namespace"].endswith(f"tile loop {loop}") == (loop is not None)
        assert facts(shown["attrs"])["bytes read"] == f"{graph.bytes_read(node):,}"
    size = made["groupNodeAttributes"][""]["workspace"]
    assert size == f"{plan.size} bytes"


def test_node_data_are_bytes_offsets_and_what_is_given():
    graph = run_passes(wasteful(), "materialized").graph
    plan = plan_workspace(graph)
    heat = Heat("time", {node.name: 7.5 for node in graph.nodes}, str)
    made = graph.to_model_explorer_data(plan, heat)
    found = {
        name: {node: one["value"] for node, one in validated(text, "model_explorer_data")["graph"]["results"].items()}
        for name, text in made.items()
    }  # fmt: skip
    assert found["bytes"] == {
        node.name: graph.bytes_read(node) + graph.bytes_written(node) for node in graph.nodes
    }
    assert found["time"] == dict(heat.amounts)
    assert found["offset"] == {buffer.producer: buffer.offset for buffer in plan.buffers}
    assert found["offset"]
    assert list(graph.to_model_explorer_data()) == ["bytes"]


def test_groups_are_namespaces_and_operators_are_labels():
    @aclnn.compile
    def gated(x, layers):
        for up, down in layers:
            x = aclnn.swiglu(x @ up) @ down
        return x

    x = np.ones((4, 8), np.float32)
    weights = [(np.ones((8, 16), np.float32), np.ones((8, 8), np.float32))] * 20
    executor = gated.executor(x, weights)
    nodes = {n["id"]: n for n in graph_in(executor.graph.to_model_explorer(executor.plan))["nodes"]}
    labels = [nodes[node.name]["label"] for node in executor.graph.nodes]
    assert labels.count("swiglu") >= 20
    spaces = {nodes[node.name]["namespace"] for node in executor.graph.nodes}
    assert any(space.startswith("repeat 7 of ") for space in spaces)
    assert all("test_model_explorer.py:" in space for space in spaces)
    seen = executor.profile(repeat=2)
    shown = graph_in(seen.to_model_explorer())["nodes"]
    assert sum("time" in facts(node["attrs"]) for node in shown) == len(executor.graph.nodes)
    times = validated(seen.to_model_explorer_data()["time"], "model_explorer_data")
    assert times["graph"]["results"].keys() == {node.name for node in executor.graph.nodes}


def test_schemas_refuse_what_model_explorer_does_not_read():
    document = json.loads(wasteful().to_model_explorer())
    document["graphs"][0]["nodes"][0]["attrs"] = [{"key": "a", "value": 3}]
    assert not VALIDATORS["model_explorer"].is_valid(document)
    data = json.loads(wasteful().to_model_explorer_data()["bytes"])
    data["graph"]["results"]["x"] = {"value": "much"}
    assert not VALIDATORS["model_explorer_data"].is_valid(data)
