"""Pictures and tables of large graphs: what repeats is there once, and boxes are coloured."""

import re
import time
import xml.etree.ElementTree as ElementTree
from html import unescape

import numpy as np
import pytest
from aclnn.graph import GraphBuilder, Lifetime, plan_lifetimes, run_passes
from aclnn.graph.views.heat import Heat
from aclnn.graph.views.repeats import Repeat, folded, repeats
from aclnn.graph.views.svg import marked
from aclnn.graph.views.time_axis import TimeAxis
from graph_tools import F32

import aclnn


def network(layers, odd=None, tail=3):
    """Layers of five nodes with weights and a residual, of which one may be linked in another way."""
    b = GraphBuilder()
    x, mask = b.input("x", (8, 64), F32), b.input("mask", (8, 64), F32)
    out = b.output("out", (8, 64), F32)
    for number in range(layers):
        w = [b.input(f"w{number}_{part}", (64, 64), F32) for part in "ab"]
        h = b.compute("norm", [x], (8, 64), F32, domain="row", axis=-1, name=f"norm{number}")
        h = b.compute("product", [h, w[0]], (8, 64), F32, domain="opaque", name=f"up{number}")
        h = b.compute("relu", [h, mask], (8, 64), F32, name=f"relu{number}")
        h = b.compute("product", [h, w[1]], (8, 64), F32, domain="opaque", name=f"down{number}")
        first = h if number == odd else x
        x = b.compute("add", [first, h], (8, 64), F32, name=f"add{number}")
    for _ in range(tail):
        x = b.compute("tail", [x], (8, 64), F32, domain="opaque")
    b.view_copy(x, out)
    return b.build()


# --- Repeats --------------------------------------------------------------------------------------


def test_layers_are_found_and_stand_for_each_other():
    small = folded(network(60))
    assert small.repeats == (Repeat(0, 5, 60),)
    assert small.carried == (("add0",),)
    kept = [node.name for node in small.graph.nodes]
    assert kept == ["norm0", "up0", "relu0", "down0", "add0", "tail", "tail_2", "tail_3",
                    "out_view_copy"]  # fmt: skip
    assert small.names("w0_a") == tuple(f"w{n}_a" for n in range(60))
    assert small.names("mask") == ("mask",)
    assert [small.graph.value(id).name for id in small.graph.inputs] == [
        "x",
        "mask",
        "w0_a",
        "w0_b",
    ]
    tail = small.graph.nodes[5]
    assert [small.graph.value(id).name for id in tail.inputs] == ["add0"]


def test_a_layer_that_is_linked_otherwise_is_no_repetition():
    """Node for node it is of the same kinds."""
    found = repeats(network(60, odd=40))
    assert found == [Repeat(0, 5, 40), Repeat(205, 5, 19)]
    for one in found:
        assert not one.start <= 200 < one.end


def test_stacks_of_two_kinds_are_two_repeats():
    b = GraphBuilder()
    x, out = b.input("x", (64,), F32), b.output("out", (64,), F32)
    for kernels in (("f", "g", "f", "h"), ("k", "l", "m")):
        for _ in range(20):
            for kernel in kernels:
                x = b.compute(kernel, [x], (64,), F32, domain="opaque")
    b.view_copy(x, out)
    assert repeats(b.build()) == [Repeat(0, 4, 20), Repeat(80, 3, 20)]


def test_small_graphs_are_shown_as_they_are():
    graph = network(8)
    assert folded(graph).graph is graph
    assert "8 times" not in graph.to_svg()


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
def test_views_of_a_network_are_small(pipeline):
    passed = run_passes(network(60), pipeline)
    for graph in (passed.as_built, passed.graph):
        nodes = {node.name for node in graph.nodes}
        begin = time.process_time()
        picture, text, dot = graph.to_svg(), graph.to_text(), graph.to_dot()
        assert time.process_time() - begin < 2
        assert picture.count("<rect") < 60
        assert len(picture) < 60_000
        assert nodes <= {*" ".join(re.findall('data-names="([^"]*)"', picture)).split()}
        assert re.search(r"(59|60) times the same 5 nodes, each reads \w+", picture)
        assert len(text.splitlines()) < 60
        assert re.search(" x(59|60)  ", text)
        assert "times the same 5 nodes" in text
        assert len(dot.splitlines()) < 80
        assert dot.count("{") == dot.count("}")
        assert "times the same 5 nodes" in dot


def test_frames_of_repeats_are_inside_the_picture():
    root = ElementTree.fromstring(network(60).to_svg(heat="bytes"))
    (frame,) = [
        r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") == "again"
    ]
    left, top, width, height = (float(frame.get(key)) for key in ("x", "y", "width", "height"))
    assert left > 0
    assert top > 0
    assert left + width < float(root.get("width"))
    assert top + height < float(root.get("height"))


def test_every_node_is_there_when_asked_for():
    graph = run_passes(network(60)).graph
    for made in (graph.to_svg(whole=True), graph.to_text(whole=True), graph.to_dot(whole=True)):
        assert "times the same" not in made
        assert {node.name for node in graph.nodes} <= {*re.findall(r"\w+", made)}
    assert graph.to_svg(whole=True).count("<rect") > len(graph.nodes)


def test_steps_keep_their_numbers_where_some_are_left_out():
    graph = run_passes(network(60), "materialized").graph
    numbers = dict(re.findall(r"^(\d+)(?: x60)? +(\S+)", graph.to_text(), re.MULTILINE))
    last = len(graph.steps()) - 1
    assert numbers["0"] == "norm0"
    assert f"{last}" in numbers


def test_many_nodes_of_few_lines_are_a_box_for_each_line():
    b = GraphBuilder()
    x, out = b.input("x", (64,), F32), b.output("out", (363,), F32)
    for place in range(300):  # no two shapes alike, so that nothing repeats
        b.origin = ("model.py:1: outer", f"model.py:{place // 30 + 2}: inner")
        x = b.compute(f"f{place}", [x], (64 + place,), F32, domain="opaque")
        if place % 7 == 0:
            b.compute("side", [x], (64,), F32, domain="opaque", effects=True)
    b.origin = ()
    b.view_copy(x, out)
    picture = b.build().to_svg()
    assert picture.count('class="edge"') < 40
    for line in range(2, 12):
        assert f">model.py:{line}: inner</text>" in picture


# --- Colours --------------------------------------------------------------------------------------


def test_boxes_are_coloured_by_what_they_move():
    graph = run_passes(network(60)).graph
    picture = graph.to_svg(heat="bytes")
    assert 'class="aclnn-svg by-bytes"' in picture
    boxes = dict(
        re.findall(r'<g data-names="(\S+)[^"]*" class="hot (bytes\d)"><title>Compute', picture)
    )
    assert boxes["up0"] == "bytes4"  # of all layers together
    assert boxes["tail"] == "bytes0"
    layers = {*folded(graph).names("up0")}
    moved = [graph.bytes_read(n) + graph.bytes_written(n) for n in graph.nodes if n.name in layers]
    assert len(moved) >= 59
    assert f"bytes {sum(moved) / 2**20:.4g} MiB" in picture
    assert "by-bytes" not in re.sub("<style>.*?</style>", "", graph.to_svg(), flags=re.DOTALL)


def test_any_quantity_may_colour_and_has_a_legend():
    graph = network(2)
    heat = Heat("time", {"up0": 3000, "down1": 1000}, lambda ns: f"{ns / 1000:g} µs")
    picture = graph.to_svg(heat=[heat, Heat("bytes", {"up0": 5}, str)])
    assert "time, 4 µs in all" in picture
    assert "time 3 µs, 75%" in picture
    assert "bytes 5, 100%" in picture
    assert re.findall(r'data-names="up0" class="([^"]*)"', picture) == ["hot time4 bytes4"]
    assert re.findall(r'data-names="down1" class="([^"]*)"', picture) == ["hot time3 bytes0"]
    for bad in ("speed", [1], 3):
        with pytest.raises(TypeError, match="heat is"):
            graph.to_svg(heat=bad)
    with pytest.raises(ValueError, match="name is 'a b'"):
        Heat("a b", {}, str)


# --- The time axis of plans -----------------------------------------------------------------------


def spots(picture):
    """Left and right end of each buffer's box, by its first name."""
    found = re.findall(r'<g data-names="([^" ]+)[^>]*><title>[^<]*</title><rect x="([^"]*)" y="[^"]*" '
                       r'width="([^"]*)"', picture)  # fmt: skip
    return {name: (float(x) - 1, float(x) + float(width) + 1) for name, x, width in found}


def test_steps_at_which_nothing_changes_take_less_room():
    plan = plan_lifetimes(
        [Lifetime("long", 0, 1_000_000, 64), Lifetime("a", 0, 2, 64), Lifetime("b", 999_998, 1_000_000, 64)]
    )  # fmt: skip
    places = spots(plan.to_svg())
    width = places["long"][1] - places["long"][0]
    assert places["a"][1] - places["a"][0] == pytest.approx(width * 2 / 7, abs=1)
    assert places["b"][0] - places["a"][1] == pytest.approx(width * 3 / 7, abs=1)
    assert "2…999997" in plan.to_svg()
    few = plan_lifetimes([Lifetime("a", 0, 2, 64), Lifetime("long", 0, 9, 64)])
    even = spots(few.to_svg(whole=True))
    assert even["a"][1] - even["a"][0] == pytest.approx(
        (even["long"][1] - even["long"][0]) * 2 / 9, abs=1
    )
    assert "…" not in few.to_svg(whole=True)


def layers(count):
    """A plan of layers of three buffers, each of which hands one to the next, and one before them."""
    lives = [Lifetime("first", 0, 2, 256)]
    for n in range(count):
        t = 1 + 4 * n
        lives += [Lifetime(f"a{n}", t, t + 2, 128), Lifetime(f"b{n}", t + 1, t + 3, 512),
                  Lifetime(f"c{n}", t + 2, t + 6, 128)]  # fmt: skip
    return plan_lifetimes(lives, steps=[f"s{n}" for n in range(4 * count + 3)])


def test_steps_that_come_again_are_drawn_once():
    picture = layers(80).to_svg()
    ((times, steps),) = re.findall(r"(\d+) times the same (\d+) steps", picture)
    assert int(times) * int(steps) > 280
    assert picture.count("<rect") < 40
    assert len(picture) < 25_000
    names = " ".join(re.findall('data-names="([^"]*)"', picture)).split()
    assert {f"{kind}{n}" for kind in "abc" for n in range(80)} <= {*names}
    assert "again as" in picture
    whole = layers(80).to_svg(whole=True)
    assert "times the same" not in whole
    assert whole.count("<rect") > 240


def test_what_lives_into_the_steps_left_out_is_drawn_up_to_them():
    plan = layers(80)
    axis, last = TimeAxis(plan), {b.name: b for b in plan.buffers}
    (one,) = axis.again
    places = spots(plan.to_svg())
    for name, (left, right) in places.items():
        assert right > left, name
        assert axis.has(last[name])
    inside = [b for b in plan.buffers if b.first < one.first + one.steps <= b.last]
    assert inside  # each layer hands something on
    gap = axis.at(one.end) - axis.at(one.first + one.steps)
    assert gap == 3
    for buffer in inside:
        assert axis.at(one.first + one.steps) < axis.at(buffer.last + 1) <= axis.at(one.end)


def test_the_peak_is_marked_where_it_is_shown():
    plan = layers(80)
    axis = TimeAxis(plan)
    assert axis.is_shown(axis.shown(plan.peak_step))
    (left, width), = re.findall(r'<rect x="([^"]*)" y="0.0" width="([^"]*)" [^>]*class="peak"', plan.to_svg())  # fmt: skip
    ends = [end for spot in spots(plan.to_svg()).values() for end in spot]
    assert min(ends) - 1 <= float(left) <= max(ends)
    assert float(width) > 1


def test_buffers_are_coloured_by_their_bytes():
    picture = layers(3).to_svg(heat="bytes")
    styles = dict(re.findall(r'<g data-names="(\S+)[^"]*" class="hot (bytes\d)"', picture))
    assert styles["b0"] == "bytes4"
    assert styles["a0"] == styles["c2"] == "bytes2"
    assert "a box has up to" in picture


# --- Programs of all kinds ------------------------------------------------------------------------


def with_outputs_of_layers(x, ws):
    made = []
    for w in ws:
        made.append(aclnn.cat([w, x], 0))
        x = aclnn.softmax(x + aclnn.sum(made[-1], (0,), True), -1)
    return x, made


def in_place(x, ws):
    for w in ws:
        w += x
        aclnn.relu(w, out=w)
        x = aclnn.silu(x) * w[:, ::-1]
    return x


def with_links_further_back(x, ws):
    before = [x]
    for w in ws:
        before.append(aclnn.tanh(before[-1] + before[-min(3, len(before))] * w))
    return before[-1]


def forward_and_backward(x, ws):
    seen = []
    for w in ws:
        seen.append(x)
        x = aclnn.gelu(x * w)
    for x_before, w in zip(reversed(seen), reversed(ws), strict=True):
        x = aclnn.gelu_backward(x, x_before * w) * w
    return x


PROGRAMS = (with_outputs_of_layers, in_place, with_links_further_back, forward_and_backward)


@pytest.mark.parametrize("materialize", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_folded_is_a_graph_of_the_same_names(program, materialize):
    x, ws = np.ones((4, 8), np.float32), tuple(np.ones((4, 8), np.float32) for _ in range(30))
    executor = aclnn.compile(program, materialize=materialize).executor(x, ws)
    for graph in (executor.graph_as_built, *(step.graph for step in executor.passes)):
        small = folded(graph)
        assert_runs(small.graph)
        shown = {name for node in small.graph.nodes for name in small.names(node.name)}
        assert shown == {node.name for node in graph.nodes}
        picture = graph.to_svg(heat="bytes")
        ElementTree.fromstring(picture)
        marks = " ".join(re.findall('data-names="([^"]*)"', picture)).split(" ")
        assert {marked(name) for name in shown} <= {*map(unescape, marks)}
        assert picture.count("<rect") < 130
        assert "->" in graph.to_dot()
        assert len(graph.to_text(wide=True).splitlines()) < 220
    assert folded(executor.graph_as_built).repeats


def assert_runs(graph):
    """Everything that a node reads is an argument, or was written before."""
    written = {value.id for value in graph.values if value.storage in ("input", "constant")}
    for node in graph.nodes:
        for id in node.inputs:
            assert graph.root(id).id in written, (node.name, graph.value(id).name)
        written |= {graph.root(id).id for id in node.outputs}
