"""Large graphs: passes, plans, schedules and views take a time that grows with their size."""

import re
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import pairwise

import cases
import pytest
from aclnn.graph import (
    Graph,
    GraphBuilder,
    Kernel,
    PassResult,
    Schedule,
    WorkspacePlan,
    check,
    compile,
    run_passes,
)
from aclnn.graph.passes.fuse import _Fusion
from graph_tools import F32, LARGE_GRAPHS, alive, chain, layered, planned, updates, wide

NODES = 3_000
DOMAINS = ({}, {"domain": "opaque"})
MOST_BYTES = 15_000_000
LIMIT = 5  # seconds of the processor for each view: generous, to notice what is quadratic and not what is slow


def kernel_of(_):
    return Kernel(fn=1, state=1, cost=0.3, name="k")


def scheduled(graph):
    plan = planned(graph)
    return plan, compile(graph, plan, kernel_of)


def lines_run(call):
    """How many lines of Python, turns of comprehensions among them, a call runs."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def sizes(count):
    """How many nodes there are, and twice as many."""
    few = count if cases.EVERY else count // 2
    return few, 2 * few


def built_and_scheduled(make, count, attrs):
    graph = make(count, **attrs)
    scheduled(run_passes(check(graph)).graph)


@pytest.mark.parametrize("attrs", DOMAINS, ids=("point", "opaque"))
@pytest.mark.parametrize("make", LARGE_GRAPHS)
def test_twice_the_nodes_are_twice_the_work(make, attrs):
    few, many = (
        lines_run(partial(built_and_scheduled, make, count, attrs)) for count in sizes(400)
    )
    assert many < 2.4 * few


def views_of(graph, plan, schedule):
    """All views, by name, as functions without arguments."""
    moved = tuple(replace(buffer, offset=buffer.offset + 64) for buffer in plan.buffers)
    diff = plan.diff(replace(plan, buffers=moved, size=plan.size + 64))
    things = {"graph": graph, "plan": plan, "schedule": schedule, "diff": diff}
    for name, thing in things.items():
        for view in ("to_text", "to_rich", "to_json", "to_svg", "to_dot", "to_memory_snapshot"):
            if hasattr(thing, view):
                yield f"{name}.{view}", getattr(thing, view)
    yield "graph.to_svg(plan)", lambda: graph.to_svg(plan)


def assert_fast_and_small(name, view):
    start = time.process_time()
    made = view()
    assert time.process_time() - start < LIMIT, name
    if isinstance(made, str):
        assert len(made.encode("utf-8", "replace")) < MOST_BYTES, name


def test_views_of_large_graphs_are_fast_and_small():
    graph = run_passes(layered(NODES, domain="opaque"), "materialized").graph
    for name, view in views_of(graph, *scheduled(graph)):
        assert_fast_and_small(name, view)


def test_passes_of_large_graphs_are_fast_and_small():
    passes = run_passes(layered(NODES))
    for view in ("to_text", "side_by_side", "to_svg", "to_json"):
        assert_fast_and_small(view, getattr(passes, view))


@pytest.mark.parametrize("make", LARGE_GRAPHS)
def test_twice_the_nodes_are_twice_the_words(make):
    def work(count):
        passes = run_passes(make(count, domain="opaque"))
        plan, schedule = scheduled(passes.graph)
        views = dict(views_of(passes.graph, plan, schedule))
        views |= {f"passes.{name}": getattr(passes, name) for name in ("side_by_side", "to_json")}
        return {name: lines_run(view) for name, view in views.items()}

    few, many = work(120), work(240)
    # What is collapsed or cut short may take less; a little is the same for any size.
    assert {name: n for name, n in many.items() if n > 2.5 * few[name] + 2000} == {}


def test_onnx_models_of_large_graphs_are_valid():
    onnx = pytest.importorskip("onnx")
    for make in LARGE_GRAPHS:
        graph = run_passes(make(1000)).graph
        onnx.checker.check_model(onnx.load_from_string(graph.to_onnx(planned(graph))))


def size_of(picture):
    root = ElementTree.fromstring(picture)
    return float(root.get("width")), float(root.get("height"))


@pytest.mark.parametrize("count", [20, 300, 3000])
@pytest.mark.parametrize("make", [chain, layered, alive, updates])
def test_pictures_of_plans_fit_on_a_screen(make, count):
    picture = planned(run_passes(make(count, domain="opaque"), "materialized").graph).to_svg()
    width, height = size_of(picture)
    assert width <= 1600
    assert height < 2000
    for box in re.findall(r'<rect[^>]* width="([^"]*)"', picture):
        assert box == "100%" or float(box) >= 0
    numbers = [float(x) for x in re.findall(r'<text x="([^"]*)" y="360\.0"[^>]*class="s"', picture)]
    assert len(numbers) >= 1
    assert all(b - a >= 14 for a, b in pairwise(numbers))


@pytest.mark.parametrize("attrs", DOMAINS, ids=("point", "opaque"))
@pytest.mark.parametrize("make", LARGE_GRAPHS)
def test_pictures_of_graphs_have_a_bounded_width_and_number_of_boxes(make, attrs):
    graph = run_passes(make(3000, **attrs)).graph
    picture = graph.to_svg()
    assert size_of(picture)[0] < 1600 + 2 * 24 + 400
    assert picture.count("<rect") < 2000
    names = " ".join(re.findall('data-names="([^"]*)"', picture)).split()
    assert {node.name for node in graph.nodes} <= {*names}


def boxes_of(graph):
    """The lines of each box of a picture, top to bottom."""
    found = re.findall(r"<g data-names=[^>]*><title>[^<]*</title>(<rect.*?)</g>", graph.to_svg())
    return [[*map(unescape, re.findall(">([^<]+)</text>", box))] for box in found]


def test_long_loops_are_one_box_that_lists_its_nodes():
    (box,) = [lines for lines in boxes_of(run_passes(chain(300)).graph) if "loop" in lines[0]]
    assert box == ["299 nodes of tile loop 1", "f", "f_2", "f_3", "f_4", "f_5", "+294 more"]
    short = boxes_of(run_passes(chain(6)).graph)
    assert [lines[0] for lines in short] == ["x", "f", "f_2", "f_3", "f_4", "f_5 > out", "out"]


def test_long_chains_are_one_box():
    boxes = boxes_of(run_passes(chain(300, domain="opaque")).graph)
    assert [lines[0] for lines in boxes] == ["x", "299 nodes", "out"]


def test_neighbours_that_are_alike_are_one_box():
    boxes = boxes_of(run_passes(wide(300, domain="opaque")).graph)
    assert [lines[0] for lines in boxes] == ["x", "150 nodes", "out"]


def test_large_documents_read_back():
    passes = run_passes(layered(1000), "materialized")
    plan, schedule = scheduled(passes.graph)
    for thing, kind in (
        (passes.graph, Graph), (passes, PassResult), (plan, WorkspacePlan), (schedule, Schedule),
    ):  # fmt: skip
        assert kind.from_json(thing.to_json()) == thing


def test_many_readers_of_one_value_share_loops():
    """Each loop takes as many of the nodes that read a value as it has room for."""
    assert len(run_passes(wide(2000)).graph.steps()) == 16


def test_what_many_nodes_write_and_many_read_has_few_edges():

    b = GraphBuilder()
    x, both = b.input("x", (4,), F32), b.buffer("both", (100, 4), F32)
    for row in range(100):
        b.view_copy(x, b.view(both, (4,), (1,), 4 * row))
    for row in range(100):
        out = b.output("out", (4,), F32)
        b.view_copy(b.compute("f", [b.view(both, (4,), (1,), 4 * row)], (4,), F32), out)
    assert sum(map(len, _Fusion(b.build()).after)) < 500


def test_results_that_replace_inputs_are_looked_at_once():
    few, many = (
        lines_run(partial(run_passes, updates(count), "materialized")) for count in sizes(200)
    )
    assert many < 2.3 * few


def test_readers_between_writers_are_drawn():
    """What is written further after it was read goes round, and is drawn all the same."""

    b = GraphBuilder()
    x, out = b.input("x", (4,), F32), b.output("out", (4,), F32)
    both = b.buffer("both", (2, 4), F32)
    upper, lower = (b.view(both, (4,), (1,), at) for at in (0, 4))
    b.view_copy(x, upper)
    b.view_copy(b.compute("f", [upper], (4,), F32), lower)
    b.view_copy(b.compute("g", [lower], (4,), F32), out)
    graph = b.build()
    assert graph.to_svg().count('class="edge"') == len(re.findall("->", graph.to_dot())) == 8
