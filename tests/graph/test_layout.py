"""Pictures of graphs tell the truth: no edge crosses a box, no frame holds a stranger or overlaps."""

import re

import pytest
from aclnn.graph import GraphBuilder
from aclnn.graph.views.repeats import folded
from cases import some
from graph_tools import F32
from pictures import Picture, assert_true, inside, random_graph, touched, wide_graph


def assert_frames_hold_their_nodes(picture, graph, small):
    """Frames of loops and repeats have their nodes in them, and no others."""
    shown = {node.name: node for node in small.graph.nodes}
    nodes = {names: [shown[n] for n in names if n in shown] for names in picture.boxes}
    for frame, title in zip(picture.frames, picture.titles, strict=True):
        held = {
            node.name for names, box in picture.boxes.items() if inside(box, frame)
            for node in nodes[names]
        }  # fmt: skip
        if title.startswith("tile loop"):
            number = int(title.split()[-1])
            assert held == {n.name for n in shown.values() if n.attr("loop") == number}
        elif "times the same" in title:
            (number,) = {small.member[name] for name in held}
            assert held == {name for name, of in small.member.items() if of == number}
        else:
            assert held, "an empty frame"


def assert_edges_end_where_they_end(picture, graph):
    """Every edge connects who makes a value, or the value, with who reads it."""
    for names, points in picture.edges:
        begin, end = touched(picture, points[0]), touched(picture, points[-1])
        value = graph.named(names[-1])
        makers = {n.name for n in graph.writers().get(graph.root(value.id).id, ())}
        readers = {n.name for n in graph.readers().get(graph.root(value.id).id, ())}
        assert {*begin} & {*makers, *names}
        assert {*end} & {*readers, *names}


@pytest.mark.parametrize("part", range(10))
def test_random_graphs_are_drawn_as_they_are(part):
    for seed in some(range(50 * part, 50 * part + 30), 14, part):
        graph = random_graph(seed)
        picture = Picture(graph.to_svg(whole=seed % 7 == 0))
        assert_true(picture)
        small = folded(graph, whole=seed % 7 == 0)
        assert_frames_hold_their_nodes(picture, graph, small)
        assert_edges_end_where_they_end(picture, small.graph)


def test_wide_graphs_have_rows_behind_what_they_read():
    """Ranks that are divided into rows, with what only begins or ends there next to its reader."""
    for seed in some(range(60), 30, "wide"):
        graph = wide_graph(seed)
        picture = Picture(graph.to_svg(whole=True))
        assert_true(picture)
        assert_edges_end_where_they_end(picture, graph)
        for _, points in picture.edges:
            assert points[0][1] < points[-1][1], "an edge leads up"


def test_random_graphs_have_what_is_tested():
    """Loops, repeats, functions, operators, parts and weights come often enough."""
    titles, lines, n = [], 0, 0
    for seed in range(0, 500, 10):
        text = random_graph(seed).to_svg()
        titles += Picture(text).titles
        lines += text.count(">▪ ")
        n += "both" in text
    for words, least in (("tile loop", 20), ("times the same", 3), ("m.py", 20), ("operator", 3)):
        assert sum(words in title for title in titles) >= least, words
    assert lines > 40
    assert n > 5


def test_the_innermost_of_modules_around_the_same_nodes_has_the_frame():
    b = GraphBuilder()
    x = b.input("x", (8, 8), F32)
    for n in range(2):
        b.origin = ("m", "m/encoder", "m/encoder/layer.0", f"/m/encoder/layer.0/{n}: MatMul")
        x = b.compute("matmul", [x, b.input("w", (8, 8), F32)], (8, 8), F32, domain="opaque")
    b.origin = ()
    b.view_copy(x, b.output("out", (8, 8), F32))
    assert Picture(b.build().to_svg()).titles == ["m/encoder/layer.0"]


def test_frames_count_where_pictures_stay_within_three_screens():
    """Modules in modules, whose frames take as much room as their boxes."""
    b = GraphBuilder()
    x = b.input("x", (8, 8), F32)
    for n in range(27):
        path = [f"m/layer.{n // 6}", f"m/layer.{n // 6}/a", f"m/layer.{n // 6}/a/self"]
        b.origin = (*path[: 1 + n // 2 % 3], f"{n}: MatMul")
        x = b.compute("matmul", [x], (8, 8), F32, domain="opaque")
    b.origin = ()
    b.view_copy(x, b.output("out", (8, 8), F32))
    (height,) = re.findall(r'viewBox="0 0 \S+ (\S+)"', b.build().to_svg())
    assert float(height) <= 3100
