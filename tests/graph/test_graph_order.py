"""Steps run in an order in which little is live at once, and a plan is optimal for that order."""

from __future__ import annotations

import itertools
import random

import pytest
from aclnn.graph import GraphBuilder, check, plan_workspace, run_passes, validate
from aclnn.graph.passes import fuse as fusing
from aclnn.graph.planner.liveness import graph_lifetimes
from graph_tools import F32, LARGE_GRAPHS, alive, fresh_memory, interpret
from setups import examples

SIZE = 256  # bytes of every intermediate here


def as_given(graph, monkeypatch):
    """The fused graph in the order in which loops were formed."""
    with monkeypatch.context() as patched:
        patched.setattr(
            fusing, "ordered_for_peak", lambda graph, groups, after: ([*groups], 0, 0)
        )  # fmt: skip
        return run_passes(graph).graph


def random_calls(draw, count):
    """Opaque nodes that read one or two of the values before them; a few results are outputs."""
    b = GraphBuilder()
    values = [b.input("x", (64,), F32)]
    for _ in range(count):
        reads = draw.sample(values, min(len(values), draw.randint(1, 2)))
        values.append(b.compute("f", reads, (64,), F32, domain="opaque", at=len(values)))
    wanted = {values[-1], *draw.sample(values[1:], draw.randint(0, 2))}
    for value in sorted(wanted):
        b.view_copy(value, b.output("out", (64,), F32))
    return b.build()


def results(graph):
    memory = fresh_memory(graph)
    interpret(graph, memory)
    return [sorted(memory[graph.value(id).name].items()) for id in graph.outputs]


def test_orders_keep_what_graphs_mean_and_never_need_more(monkeypatch):
    lower = 0
    for seed in range(examples(400)):
        graph = random_calls(random.Random(seed), random.Random(seed).randint(2, 14))
        before, after = as_given(graph, monkeypatch), check(run_passes(graph).graph)
        assert sorted(n.name for n in after.nodes) == sorted(n.name for n in before.nodes)
        assert results(after) == results(before) == results(graph)
        sizes = [plan_workspace(one).lower_bound for one in (before, after)]
        assert sizes[1] <= sizes[0]
        lower += sizes[1] < sizes[0]
    assert lower > examples(30)


def smallest_peak(graph):
    """By trying all orders of nodes that run after what they read."""
    needs = {
        node.name: {
            other.name for other in graph.nodes for id in other.outputs
            if graph.root(id).id in {graph.root(read).id for read in node.inputs}
        }
        for node in graph.nodes
    }  # fmt: skip
    best = None
    for order in itertools.permutations(graph.nodes):
        seen = set()
        for node in order:
            if not needs[node.name] <= seen:
                break
            seen.add(node.name)
        else:
            peak = peak_of(graph, order)
            best = peak if best is None else min(best, peak)
    return best


def peak_of(graph, order):
    last = {graph.root(id).id: at for at, node in enumerate(order) for id in node.operands}
    live, peak = set(), 0
    for at, node in enumerate(order):
        live |= {id for id in node.outputs if graph.value(id).storage == "workspace"}
        peak = max(peak, SIZE * len(live))
        live = {id for id in live if last[id] > at}
    return peak


def test_orders_are_nearly_always_the_best_of_all():
    best = 0
    for seed in range(60):
        graph = run_passes(random_calls(random.Random(seed), 6)).graph
        found = peak_of(graph, graph.nodes)
        least = smallest_peak(graph)
        assert found >= least
        best += found == least
    assert best >= 57


def test_results_are_used_before_more_are_made():
    """64 results that are added up two by two: never more than one for each level, and a pair."""
    graph = alive(128, domain="opaque")
    passes = run_passes(graph)
    plan = validate(plan_workspace(passes.graph))
    assert plan.size == plan.lower_bound == 8 * SIZE
    (note,) = [note for note in passes.notes if note.action == "runs earlier"]
    assert (
        note.why
        == f"intermediates take {8 * SIZE} bytes at once, {65 * SIZE} in the order of the graph"
    )


@pytest.mark.parametrize("attrs", [{}, {"domain": "opaque"}], ids=("point", "opaque"))
@pytest.mark.parametrize("make", LARGE_GRAPHS)
def test_no_loop_is_lost(make, attrs, monkeypatch):
    graph = make(600, **attrs)
    before, after = as_given(graph, monkeypatch), check(run_passes(graph).graph)
    steps = [sorted(len(step) for step in one.steps()) for one in (before, after)]
    assert steps[0] == steps[1]


def test_nodes_with_effects_keep_their_order():
    b, effects = GraphBuilder(), {"domain": "opaque", "effects": True}
    x, out = b.input("x", (64,), F32), b.output("out", (64,), F32)
    made = [b.compute("f", [x], (64,), F32, **effects) for _ in range(4)]
    one, two = (b.compute("g", made[i : i + 2], (64,), F32, **effects) for i in (0, 2))
    b.view_copy(b.compute("h", [one, two], (64,), F32, **effects), out)
    graph = run_passes(b.build()).graph
    names = [node.name for node in graph.nodes]
    assert names == ["f", "f_2", "f_3", "f_4", "g", "g_2", "h"]


# --- A network --------------------------------------------------------------------------------


def network(layers=3, rows=64, width=64):
    """x + relu(x @ w + b), layer after layer."""
    b = GraphBuilder()
    shape = (rows, width)
    x, out = b.input("x", shape, F32), b.output("out", shape, F32)
    for _ in range(layers):
        weights, bias = b.constant("w", (width, width), F32), b.constant("b", (width,), F32)
        product = b.compute("mm", [x, weights], shape, F32, domain="opaque")
        added = b.compute("add", [product, b.broadcast_to(bias, shape)], shape, F32)
        x = b.compute("add", [b.compute("relu", [added], shape, F32), x], shape, F32)
    b.view_copy(x, out)
    return run_passes(b.build()).graph


def test_a_network_with_residuals_gets_its_optimum():
    """Each layer is a product and a loop. While a product is made, its input is live as well: two
    tensors, and no more, since a loop writes its result over the input or the product. In the loops
    of the last two layers tiles are live besides.
    """
    graph = network()
    assert [step[0].attr("kernel") for step in graph.steps()] == ["mm", "add"] * 3
    plan = validate(plan_workspace(graph))
    tensor = 64 * 64 * 4
    tiles = plan.scratch_per_thread
    assert tiles > 0
    assert plan.size == plan.lower_bound == 2 * tensor + tiles
    assert plan.proof == "optimal"
    heirs = [buffer.name for buffer in plan.buffers if buffer.same_as]
    assert len(heirs) == 2  # the last loop writes the output


def test_a_network_needs_one_tensor_beside_its_output():
    """Of each two tensors that are live one lies in the output, the last product until it is written
    over."""
    plan = validate(plan_workspace(network(), spare_outputs=["out"]))
    tensor = 64 * 64 * 4
    assert plan.size == plan.lower_bound == tensor + plan.scratch_per_thread
    assert plan.proof == "optimal"
    by_tensor = [buffer for buffer in plan.buffers if not buffer.parts]
    assert {buffer.nbytes for buffer in by_tensor} == {tensor}
    for number in range(1, 6):
        live = [b.output for b in by_tensor if b.first <= number <= b.last and not b.same_as]
        assert live.count("out") <= 1
    assert len(graph_lifetimes(network())) == len(plan.buffers)
