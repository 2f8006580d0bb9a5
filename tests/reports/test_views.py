"""What executors, and what they hold, show of themselves."""

import xml.etree.ElementTree as ElementTree

import pytest
from aclnn.graph import PassResult, WorkspacePlan
from setups import small_executor

import aclnn


def test_onnx_models_are_valid():
    onnx = pytest.importorskip("onnx")
    for ex in (small_executor(), small_executor(materialize=True)):
        for graph in (ex.graph, ex.graph_as_built):
            model = onnx.load_from_string(graph.to_onnx(ex.plan))
            onnx.checker.check_model(model)
            assert [n.op_type for n in model.graph.node] == [n.kind for n in graph.nodes]
    facts = {a.name for node in model.graph.node for a in node.attribute}
    assert {"kernel", "reads", "writes", "strides", "nbytes"} <= facts


def test_plans_know_their_offsets_in_onnx():
    onnx = pytest.importorskip("onnx")
    ex = small_executor(materialize=True)
    model = onnx.load_from_string(ex.graph.to_onnx(ex.plan))
    offsets = {
        node.output[0]: attribute.i
        for node in model.graph.node for attribute in node.attribute
        if attribute.name == "plan_offset"
    }  # fmt: skip
    assert offsets == {b.name: b.offset for b in ex.plan.buffers}


def test_budgets():
    ex = small_executor(materialize=True)
    assert ex.plan.check(ex.workspace_size).size == ex.workspace_size
    with pytest.raises(aclnn.AclnnError, match=str(ex.workspace_size - 1)):
        ex.plan.check(ex.workspace_size - 1)
    with pytest.raises(aclnn.AclnnError, match="budget is None, must be an integer"):
        ex.plan.check(None)


def test_an_executors_plan_reads_back_as_one():
    plan = small_executor(materialize=True).plan
    again = type(plan).from_json(plan.to_json())
    assert again == plan
    with pytest.raises(aclnn.AclnnError):
        again.check(plan.size - 1)


def test_executors_graphs_plans_and_passes_draw_themselves():
    for ex in (small_executor(), small_executor(materialize=True)):
        for thing in (ex, ex.graph, ex.graph_as_built, ex.plan, ex.passes, ex.passes[0].graph):
            part = thing._repr_html_()
            assert part.startswith('<div class="aclnn-view ')
            assert "<script" not in part
            assert "<svg" in part
            ElementTree.fromstring(part)
        assert ex.graph.to_svg(ex.plan) in ex._repr_html_()


def test_passes_of_executors_are_a_tuple():
    ex = small_executor()
    assert isinstance(ex.passes, tuple)
    assert ex.passes[0].name == "tidy"
    assert ex.passes.as_built is ex.graph_as_built
    assert ex.passes[-1].graph == ex.passes.graph == ex.graph
    assert PassResult.from_json(ex.passes.to_json()) == ex.passes


def test_plans_of_executors_read_back_as_equals():
    plan = small_executor(materialize=True).plan
    again = WorkspacePlan.from_json(plan.to_json())
    assert again == plan
    assert plan == again
    assert hash(again) == hash(plan)
    assert again != small_executor().plan
    assert plan != plan.to_json()


def test_onnx_nodes_carry_what_they_move():
    onnx = pytest.importorskip("onnx")
    ex = small_executor(materialize=True)
    model = onnx.load_from_string(ex.graph.to_onnx(ex.plan))
    for made, node in zip(model.graph.node, ex.graph.nodes, strict=True):
        facts = {a.name: onnx.helper.get_attribute_value(a) for a in made.attribute}
        assert facts["bytes_read"] == ex.graph.bytes_read(node)
        assert facts["bytes_written"] == ex.graph.bytes_written(node)
        assert len(facts["read_strides"]) == len(made.input)
        if "plan_offset" in facts:
            buffer = ex.plan.buffer(made.output[0])
            assert facts["plan_bytes"] == buffer.padded
            assert facts["plan_first_step"] == buffer.first
            assert facts["plan_last_step"] == buffer.last
    known = {prop.key: prop.value for prop in model.metadata_props}
    assert known["workspace_peak_bytes"] == str(ex.plan.peak_bytes)
