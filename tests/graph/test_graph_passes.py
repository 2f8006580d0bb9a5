"""Passes keep graphs well formed and keep what they mean, and say what they did."""

from dataclasses import replace
from functools import partial

import pytest
from aclnn.graph import FUSED, GraphBuilder, GraphError, check, plan_workspace, run_passes
from aclnn.graph.passes.elide import elide
from aclnn.graph.passes.fold import fold_strides
from graph_tools import F16, F32, as_built, at, fresh_memory, indices, interpret
from hypothesis import given


def result(graph):
    """The elements of the output, as words: a NaN is like another."""
    memory = fresh_memory(graph)
    interpret(graph, memory)
    out = graph.value(graph.outputs[0])
    return [repr(memory["out"][at(out.strides, index)]) for index in indices(out.shape)]


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@given(graph=as_built(in_place=True))
def test_every_pass_keeps_rules_and_meaning(pipeline, graph):
    expected = result(graph)
    for _, after, _ in run_passes(graph, pipeline):
        check(after)
        assert result(after) == expected


@given(as_built())
def test_passes_have_nothing_left_to_do_the_second_time(graph):
    once = run_passes(graph, FUSED[:4]).graph
    assert run_passes(once, FUSED[:4]).graph == once


@given(as_built())
def test_materialized_keeps_whole_tensors(graph):
    after = run_passes(graph, "materialized").graph
    assert all(len(step) == 1 for step in after.steps())
    assert {value.storage for value in after.values} <= {"input", "output", "workspace"}


@given(as_built(any_dtype=True, narrowing=False))
def test_fused_needs_no_workspace_but_forced_copies(graph):
    after = run_passes(graph).graph
    forced = {node.output for node in after.nodes if node.is_forced_copy}
    assert {
        value.id for value in after.values if value.storage == "workspace" and not value.is_view
    } == forced
    assert len(after.steps()) == len(forced) + 1


def elementwise(
    x_shape=(4, 8),
    x_strides=None,
    x_dtype=F32,
    out_strides=None,
    out_dtype=F32,
    shape=(4, 8),
    reason=None,
    alias=False,
):
    b = GraphBuilder()
    x = b.input("x", x_shape, x_dtype, strides=x_strides)
    out = b.output("out", shape, out_dtype, strides=out_strides, alias_of=x if alias else None)
    wide = b.broadcast_to(b.cast(b.contiguous(x, reason=reason), F32), shape)
    b.view_copy(b.cast(b.compute("relu", [wide], shape, F32), out_dtype), out)
    return b.build()


def test_a_plain_call_becomes_one_node():
    done = run_passes(elementwise())
    assert [node.name for node in done.graph.nodes] == ["relu"]
    assert [str(note) for note in done[1].notes] == [
        "x_contiguous: elided, already contiguous",
        "x_cast: elided, already float32",
        "x_broadcast: elided, already has the shape",
        "relu_cast: elided, already float32",
        "out_view_copy: elided, out is contiguous, so relu writes it directly",
    ]
    assert done.as_built == elementwise()


def test_strides_and_casts_fold_into_the_consumer():
    done = run_passes(elementwise((4, 1), (3, 1), F16, out_strides=(1, 4)))
    (node,) = done.graph.nodes
    (read,) = map(done.graph.value, node.inputs)
    assert (read.strides, read.dtype, read.storage) == ((3, 0), F16, "input")
    assert done.graph.value(node.output).strides == (1, 4)
    notes = {note.node: note for note in done.notes}
    assert notes["x_contiguous"].why == "read with strides (3, 1)"
    assert notes["x_broadcast"].why == "stride 0 along dim 1"
    assert notes["x_cast"].why == "float16 becomes float32 in the load of relu"
    assert notes["out_view_copy"].action == "folded"


def test_the_result_cast_folds_into_the_store():
    done = run_passes(elementwise(out_dtype=F16))
    (node,) = done.graph.nodes
    assert (node.name, node.attr("result_dtype")) == ("relu", "float32")
    assert done.graph.value(node.output).dtype == F16
    notes = {note.node: note for note in done.notes}
    assert notes["relu_cast"].action == "folded"
    assert notes["relu_cast"].why == "float32 becomes float16 in the store of relu"


def test_only_the_first_of_two_casts_folds_however_often_passes_run():
    """Another would take the place of the dtype that results are rounded to first."""
    b = GraphBuilder()
    x, out = b.input("x", (8,), F32), b.output("out", (8,), F32)
    b.view_copy(b.cast(b.cast(b.compute("f", [x], (8,), F32), F16), F32), out)
    once = run_passes(b.build(), FUSED[:4]).graph
    again = run_passes(once, FUSED[:4]).graph
    for graph in (once, again):
        assert [(n.kind, n.attr("result_dtype")) for n in graph.nodes] == [
            ("Compute", "float32"),
            ("Cast", None),
        ]


def test_a_result_with_two_readers_is_cast_by_a_node():
    b = GraphBuilder()
    x, half = b.input("x", (8,), F32), b.output("half", (8,), F16)
    out = b.output("out", (8,), F32)
    once = b.compute("f", [x], (8,), F32)
    b.view_copy(b.cast(once, F16), half)
    b.view_copy(b.compute("g", [once], (8,), F32), out)
    graph = run_passes(b.build()).graph
    assert [node.kind for node in graph.nodes] == ["Compute", "Cast", "Compute"]


def test_a_chain_is_fused_and_the_intermediate_is_a_tile():
    b = GraphBuilder()
    x, out = b.input("x", (8,), F32), b.output("out", (8,), F32)
    b.view_copy(b.compute("g", [b.compute("f", [x], (8,), F32)], (8,), F32), out)
    graph = run_passes(b.build()).graph
    assert [node.attr("loop") for node in graph.nodes] == [1, 1]
    assert graph.named("f").storage == "tile"


def test_a_forced_copy_stays_and_comes_first():
    done = run_passes(elementwise(reason="overlap"))
    assert [node.name for node in done.graph.nodes] == ["x_contiguous", "relu"]
    assert [len(step) for step in done.graph.steps()] == [1, 1]
    assert "before any output is written" in str(done.notes[-2])
    whole = run_passes(elementwise(reason="overlap"), "materialized").graph
    assert whole.nodes[0].is_forced_copy


def test_a_forced_copy_alone_does_not_write_the_output():
    b = GraphBuilder()
    x, out = b.input("x", (4,), F32), b.output("out", (4,), F32)
    b.view_copy(b.contiguous(x, reason="overlap"), out)
    assert len(run_passes(b.build()).graph.nodes) == 2


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@pytest.mark.parametrize("dtype", [F32, F16], ids=str)
def test_what_is_made_before_a_forced_copy_writes_no_output(pipeline, dtype):
    b = GraphBuilder()
    x, one, two = b.input("x", (4,), F32), b.output("one", (4,), dtype), b.output("two", (4,), F32)
    early = b.compute("f", [x], (4,), F32)
    copy = b.contiguous(x, reason="overlap")
    b.view_copy(b.cast(early, dtype), one)
    b.view_copy(b.compute("g", [copy], (4,), F32), two)
    after = run_passes(b.build(), pipeline).graph
    first = next(at for at, node in enumerate(after.nodes) if node.output in after.outputs)
    assert any(node.is_forced_copy for node in after.nodes[:first])


def test_in_place_is_allowed_for_the_same_layout():
    note = run_passes(elementwise(alias=True)).notes[-1]
    assert str(note) == "relu: writes out in place of input 0, safe: same address and layout"


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@pytest.mark.parametrize("again", ["x", "view", ""])
def test_an_opaque_node_never_writes_over_what_it_reads_at_another_place(pipeline, again):
    b = GraphBuilder()
    x, out = b.input("x", (4,), F32), b.output("out", (4,), F32, alias_of=0)
    other = {
        "x": lambda: x,
        "view": lambda: b.view(x, (4,), (1,)),
        "": lambda: b.input("y", (4,), F32),
    }
    read = [x, other[again]()]
    options = {"domain": "opaque", "in_place": (0,), "reads_strided": True}
    b.view_copy(b.compute("put", read, (4,), F32, **options), out)
    graph = run_passes(b.build(), pipeline).graph
    assert any(node.is_forced_copy for node in graph.nodes) == bool(again)


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@pytest.mark.parametrize(
    "build",
    [
        lambda: elementwise((4, 4), (1, 4), shape=(4, 4), alias=True),
        lambda: elementwise(x_dtype=F16, alias=True),
        lambda: elementwise((4, 1), (8, 1), alias=True),
    ],
    ids=["transposed", "wider", "broadcast"],
)
def test_in_place_with_another_layout_never_reads_what_was_overwritten(pipeline, build):
    graph = run_passes(build(), pipeline).graph
    out = graph.value(graph.outputs[0])
    for step in graph.steps():
        if any(node.output == out.id for node in step):
            reads = {graph.root(id).id for node in step for id in node.inputs}
            assert out.alias_of not in reads


def test_a_copy_is_read_as_it_is_where_its_shape_is_read():
    graph = run_passes(elementwise((4, 4), (1, 4), shape=(4, 4), alias=True)).graph
    assert [value.name for value in graph.values] == ["x", "out", "x_copy"]
    wide = run_passes(elementwise((4, 1), (8, 1), alias=True)).graph
    assert [value.name for value in wide.values] == ["x", "out", "x_copy", "x_copy_load"]


def test_a_later_reader_makes_a_copy_necessary():
    b = GraphBuilder()
    x = b.input("x", (4,), F32)
    one, two = b.output("one", (4,), F32, alias_of=x), b.output("two", (4,), F32)
    b.view_copy(b.compute("f", [x], (4,), F32), one)
    b.view_copy(b.compute("g", [one, x], (4,), F32), two)
    done = run_passes(b.build())
    assert done.notes[-1].action == "added"
    assert done.graph.nodes[0].is_forced_copy
    assert all(done.graph.inputs[0] not in node.inputs for node in done.graph.nodes[1:])


def test_an_input_is_overwritten_only_when_all_have_read_it():
    b = GraphBuilder()
    x = b.input("x", (4,), F32)
    one, two = b.output("one", (4,), F32, alias_of=x), b.output("two", (4,), F32)
    b.view_copy(b.compute("f", [x], (4,), F32), one)
    b.view_copy(b.compute("g", [x], (4,), F32), two)
    done = run_passes(b.build())
    assert [node.name for node in done.graph.nodes] == ["g", "f"]


def test_what_passes_add_takes_no_name_that_a_node_has():
    """The node x_copy writes `one` itself: nothing else is called x_copy but it."""
    b = GraphBuilder()
    x = b.input("x", (4, 4), F32, strides=(1, 4))
    one, two = b.output("one", (4, 4), F32), b.output("two", (4, 4), F32, alias_of=x)
    b.view_copy(b.compute("f", [x], (4, 4), F32, name="x_copy"), one)
    b.view_copy(b.compute("g", [x], (4, 4), F32), two)
    graph = run_passes(b.build()).graph
    assert [node.name for node in graph.nodes] == ["x_copy_2", "x_copy", "g"]


def test_a_result_that_nobody_needs_is_not_computed():
    b = GraphBuilder()
    x, out = b.input("x", (8,), F32), b.output("out", (4,), F32)
    y = b.input("y", (4,), F32)
    b.compute("g", [b.compute("f", [x], (8,), F32)], (8,), F32)
    b.compute("print", [x], (8,), F32, domain="opaque", effects=True)
    b.view_copy(b.compute("h", [y], (4,), F32), out)
    done = run_passes(b.build())
    assert [node.name for node in done.graph.nodes] == ["print", "h"]
    assert [str(note) for note in done[0].notes] == [
        "f: removed, nothing needs its result",
        "g: removed, nothing needs its result",
    ]


def test_equal_nodes_are_merged():
    b = GraphBuilder()
    x, out = b.input("x", (8,), F32), b.output("out", (8,), F32)
    one, two = (b.compute("f", [x], (8,), F32, params=(0.5,)) for _ in range(2))
    other = b.compute("f", [x], (8,), F32, params=(0.25,))
    b.view_copy(b.compute("g", [one, two, other], (8,), F32), out)
    done = run_passes(b.build())
    assert [node.name for node in done.graph.nodes] == ["f", "f_3", "g"]
    assert str(done[0].notes[0]) == "f_2: merged, f computes the same"


def test_a_long_chain_is_one_loop_with_two_tile_slots():
    b = GraphBuilder()
    x, out = b.input("x", (1 << 16,), F32), b.output("out", (1 << 16,), F32)
    value = x
    for _ in range(100):
        value = b.compute("f", [value], (1 << 16,), F32)
    b.view_copy(value, out)
    graph = run_passes(b.build()).graph
    (step,) = graph.steps()
    assert len(step) == 100
    (buffer,) = plan_workspace(graph).buffers
    assert len({part.offset for part in buffer.parts}) == 2
    assert buffer.nbytes == 2 * 2048 * 4


def test_interleaved_chains_are_a_loop_each():
    b = GraphBuilder()
    chains = [b.input(name, (64,), F32) for name in "xy"]
    outs = [b.output(name, (64,), F32) for name in ("a", "b")]
    for _ in range(3):
        chains = [b.compute("f", [value], (64,), F32) for value in chains]
    for value, out in zip(chains, outs, strict=True):
        b.view_copy(value, out)
    graph = run_passes(b.build()).graph
    assert [[node.name for node in step] for step in graph.steps()] == [
        ["f", "f_3", "f_5"], ["f_2", "f_4", "f_6"],
    ]  # fmt: skip


def test_what_an_opaque_node_makes_joins_no_loop_that_it_waits_for():
    b = GraphBuilder()
    x, out = b.input("x", (8, 8), F32), b.output("out", (8, 8), F32)
    early = b.compute("f", [x], (8, 8), F32)
    product = b.compute("matmul", [early, early], (8, 8), F32, domain="opaque")
    late = b.compute("g", [early, product], (8, 8), F32)
    b.view_copy(late, out)
    graph = run_passes(b.build()).graph
    assert [node.name for node in graph.nodes] == ["f", "matmul", "g"]
    assert graph.named("f").storage == graph.named("matmul").storage == "workspace"


def test_row_wise_nodes_share_a_loop_with_pointwise_ones_around_them():
    b = GraphBuilder()
    x, out = b.input("x", (32, 64), F32), b.output("out", (32, 64), F32)
    scaled = b.compute("scale", [x], (32, 64), F32)
    soft = b.compute("softmax", [scaled], (32, 64), F32, domain="row", axis=-1)
    b.view_copy(b.compute("mask", [soft], (32, 64), F32), out)
    (step,) = run_passes(b.build()).graph.steps()
    assert [node.name for node in step] == ["scale", "softmax", "mask"]


def test_rows_that_no_cache_holds_are_not_shared():
    b = GraphBuilder()
    x, out = b.input("x", (2, 1 << 16), F32), b.output("out", (2, 1 << 16), F32)
    scaled = b.compute("scale", [x], (2, 1 << 16), F32)
    b.view_copy(b.compute("softmax", [scaled], (2, 1 << 16), F32, domain="row", axis=-1), out)
    assert len(run_passes(b.build()).graph.steps()) == 2


def test_parts_of_an_output_are_written_where_they_belong():
    b = GraphBuilder()
    x, y = b.input("x", (2, 3), F32, strides=(1, 2)), b.input("y", (2, 2), F32)
    out = b.output("out", (2, 5), F32, strides=(1, 2))
    both = b.buffer("both", (2, 5), F32)
    b.view_copy(x, b.view(both, (2, 3), (5, 1), 0))
    b.view_copy(b.compute("f", [y], (2, 2), F32), b.view(both, (2, 2), (5, 1), 3))
    b.view_copy(both, out)
    graph = run_passes(b.build()).graph
    assert {v.storage for v in graph.values} == {"input", "output", "part"}
    parts = [graph.value(node.output) for node in graph.nodes]
    assert [(v.shape, v.strides, v.offset) for v in parts] == [
        ((2, 3), (1, 2), 0), ((2, 2), (1, 2), 6),
    ]  # fmt: skip


def test_a_narrowing_cast_is_no_part_of_a_load():
    """Unless the kernel converts what it reads to that dtype."""
    for reads, kinds in ((None, ["Cast", "Compute"]), ("float16", ["Compute"])):
        b = GraphBuilder()
        x, out = b.input("x", (8,), F32), b.output("out", (8,), F32)
        b.view_copy(b.compute("f", [b.cast(x, F16)], (8,), F32, reads=reads), out)
        assert [node.kind for node in run_passes(b.build()).graph.nodes] == kinds


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
def test_a_view_of_a_view_outlives_it(pipeline):
    graph = elementwise(shape=(8, 4), x_shape=(8, 4))
    x = graph.value(graph.inputs[0])
    turned = replace(x, id=50, name="turned", shape=(4, 8), strides=(1, 4), alias_of=x.id)
    again = replace(x, id=51, name="again", alias_of=turned.id)
    nodes = (replace(graph.nodes[0], inputs=(again.id,)), *graph.nodes[1:])
    graph = check(replace(graph, nodes=nodes, values=(*graph.values, turned, again)))
    after = run_passes(graph, pipeline).graph
    assert {after.root(id).id for node in after.nodes for id in node.inputs} == {x.id}
    assert result(after) == result(graph)


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@pytest.mark.parametrize("dtype", [F32, F16], ids=str)
def test_an_output_that_is_read_is_written_all_the_same(pipeline, dtype):
    b = GraphBuilder()
    x = b.input("x", (4,), F32)
    one, two = b.output("one", (4,), F32), b.output("two", (4,), dtype)
    b.view_copy(b.compute("f", [x], (4,), F32), one)
    b.view_copy(b.cast(one, dtype), two)
    after = run_passes(b.build(), pipeline).graph
    assert {after.value(node.output).name for node in after.nodes} >= {"one", "two"}


def test_opaque_nodes_are_left_alone():
    b = GraphBuilder()
    x = b.input("x", (8, 4), F16, strides=(1, 8))
    out = b.output("out", (8, 8), F32, strides=(1, 8))
    rows = b.cast(b.contiguous(x), F32)
    b.view_copy(b.compute("gram", [rows], (8, 8), F32, domain="opaque"), out)
    after = run_passes(b.build()).graph
    gram = next(node for node in after.nodes if node.kind == "Compute")
    assert after.value(gram.inputs[0]).is_contiguous
    assert after.value(gram.output).is_contiguous
    assert gram.attr("loop") is None
    assert after.value(gram.inputs[0]).storage == "workspace"


def test_casts_stay_where_the_kernel_wants_them():
    b = GraphBuilder()
    x, out = b.input("x", (8,), F16), b.output("out", (8,), F32)
    b.view_copy(b.compute("f", [b.cast(x, F32)], (8,), F32, converts=False), out)
    after = run_passes(b.build()).graph
    assert [node.kind for node in after.nodes] == ["Cast", "Compute"]
    assert after.named("x_cast").storage == "tile"


def test_casts_stay_where_the_kernel_gives_one_dtype():
    b = GraphBuilder()
    x, out = b.input("x", (8,), F32), b.output("out", (8,), F16)
    b.view_copy(b.cast(b.compute("f", [x], (8,), F32, converts=False), F16), out)
    after = run_passes(b.build()).graph
    assert [node.kind for node in after.nodes] == ["Compute", "Cast"]
    assert after.named("f").storage == "tile"


def test_a_broadcast_result_is_not_read_from_another_tile():
    """The cast of a row, if it stays, has a loop of its own: other tiles read all of it."""
    b = GraphBuilder()
    x, out = b.input("x", (8,), F16), b.output("out", (4, 8), F32)
    wide = b.broadcast_to(b.cast(x, F32), (4, 8))
    b.view_copy(b.compute("f", [wide], (4, 8), F32, converts=False), out)
    after = run_passes(b.build()).graph
    assert [len(step) for step in after.steps()] == [1, 1]
    assert after.named("x_cast").storage == "workspace"


def test_passes_are_plain_functions():
    graph = elementwise()
    for run in FUSED:
        after, notes = run(graph)
        assert all(note.node and note.action and note.why for note in notes)
        graph = after


def test_a_pass_of_your_own_is_whatever_can_be_called():
    class Nothing:
        def __call__(self, graph):
            return graph, ()

    done = run_passes(elementwise(), [elide, partial(fold_strides), Nothing()])
    assert [step.name for step in done] == ["elide", "partial", "Nothing"]
    assert done.graph == run_passes(elementwise(), FUSED[1:3]).graph
    assert "Nothing" in done.to_text()


def test_a_pass_of_your_own_that_breaks_a_rule_is_refused():
    with pytest.raises(GraphError, match="out: an output is made by a node"):
        run_passes(elementwise(), [lambda graph: (replace(graph, nodes=()), ())])


def test_the_report_names_every_pass():
    text = run_passes(elementwise()).to_text()
    assert [line.split()[0] for line in text.splitlines() if line[0] != " "] == [
        run.__name__ for run in FUSED
    ]


def test_casts_into_parts_of_an_output_are_kept():
    """Nobody reads what they write, which is the result."""
    builder = GraphBuilder()
    halves = [builder.input(name, (4,), F16) for name in ("x", "y")]
    out = builder.output("out", (2, 4), F32)
    for row, half in enumerate(halves):
        builder.view_copy(builder.cast(half, F32), builder.view(out, (4,), (1,), 4 * row))
    after = run_passes(builder.build()).graph
    assert [node.kind for node in after.nodes] == ["Cast", "Cast"]
    check(after)


# --- Rematerialization ------------------------------------------------------------------------


def calls_with_a_broadcast(layers=3):
    """Layers that scale, each by the same row, with other calls between."""
    b = GraphBuilder()
    x, row = b.input("x", (64, 64), F32), b.input("row", (64,), F32)
    out = b.output("out", (64, 64), F32)
    for layer in range(layers):
        wide = b.broadcast_to(row, (64, 64), call=f"mul#{layer}")
        x = b.compute("mul", [x, wide], (64, 64), F32, call=f"mul#{layer}")
        x = b.compute("exp", [x], (64, 64), F32, call=f"exp#{layer}")
    b.view_copy(x, out)
    return b.build()


def test_materialized_broadcasts_are_not_kept_while_other_calls_run():
    graph = run_passes(calls_with_a_broadcast(), "materialized", verify=True).graph
    broadcasts = [node for node in graph.nodes if node.kind == "BroadcastTo"]
    assert [node.attr("call") for node in broadcasts] == ["mul#0", "mul#1", "mul#2"]
    readers = graph.readers()
    assert [[one.name for one in readers[node.output]] for node in broadcasts] == [
        ["mul"], ["mul_2"], ["mul_3"],
    ]  # fmt: skip
    lives = {b.name: (b.first, b.last) for b in plan_workspace(graph).buffers}
    assert all(lives[node.name][1] - lives[node.name][0] == 1 for node in broadcasts)
