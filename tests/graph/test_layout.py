"""Pictures of graphs tell the truth: no edge crosses a box, no frame holds a stranger or overlaps."""

import random
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import numpy as np
import pytest
from aclnn.graph import GraphBuilder, run_passes
from aclnn.graph.views.repeats import folded
from graph_tools import F32

SVG = "{http://www.w3.org/2000/svg}"
BOXES, FRAMES = {"box", "arg", "out", "copy"}, {"loop", "again", "func"}
NEAR = 0.11  # pixels: numbers have one digit behind the point


def random_graph(seed):
    """A graph of functions in functions, operators of several nodes, weights, parts and loops."""
    draw = random.Random(seed)
    b, made = GraphBuilder(), []
    made += [b.input(f"x{n}", (8, 8), F32) for n in range(draw.randint(1, 3))]
    mask = b.input("mask", (8, 8), F32)
    several = draw.random() < 0.2  # layers, which repeat

    def node(calls):
        read = draw.sample(made[-6:], min(len(made[-6:]), draw.randint(1, 2)))
        for beside in ("w", "c", "mask"):
            if draw.random() < 0.2:
                weight = {"w": lambda: b.input("w", (8, 8), F32), "mask": lambda: mask}
                read.append(weight.get(beside, lambda: b.constant("c", (8, 8), F32))())
        domain = draw.choice(("point", "point", "row", "opaque"))
        along = {"domain": domain, "axis": -1} if domain == "row" else {"domain": domain}
        b.call = f"operator#{calls}" if draw.random() < 0.7 else ""
        made.append(b.compute(draw.choice("fgh"), read, (8, 8), F32, **along))

    def function(depth, lines):
        for _ in range(draw.randint(1, 5)):
            b.origin = (*lines, f"m.py:{draw.randint(1, 9)}: line")
            if depth < 3 and draw.random() < 0.4:
                function(depth + 1, b.origin)
            elif draw.random() < 0.1:
                both = b.buffer("both", (2, 8, 8), F32)
                for part in range(2):
                    b.view_copy(draw.choice(made), b.view(both, (8, 8), (8, 1), 64 * part))
                made.append(b.view(both, (8, 8), (8, 1), 64 * draw.randint(0, 1)))
            else:
                node(b.n_nodes)

    def layer():
        x = made[-1]
        for n in range(6):
            b.origin = ("m.py:1: for", f"m.py:{n // 3 + 2}: layer")
            w = b.input("w", (8, 8), F32)
            b.call = f"product#{b.n_nodes}"
            h = b.compute("product", [made[-1], w], (8, 8), F32, domain="opaque")
            made.append(b.compute("add", [h, x], (8, 8), F32))

    if several:
        for _ in range(draw.randint(5, 7)):
            layer()
    function(0, ())
    b.origin, b.call = (), ""
    for n in range(draw.randint(1, 2)):
        b.view_copy(draw.choice(made[-3:]), b.output(f"out{n}", (8, 8), F32))
    return run_passes(b.build(), draw.choice(("fused", "materialized"))).graph


class Picture:
    """What a picture shows, as geometry: corners of boxes and frames, points along edges."""

    def __init__(self, text):
        root = ElementTree.fromstring(text)
        self.boxes, self.frames, self.edges = {}, [], []
        self.titles = []
        for part in root.iter():
            kinds = set((part.get("class") or "").split())
            if part.tag == SVG + "g" and (found := part.find(SVG + "rect")) is not None:
                if set(found.get("class").split()) & BOXES:
                    self.boxes[tuple(part.get("data-names", "").split())] = _corners(found)
            elif part.tag == SVG + "g" and (found := part.find(SVG + "path")) is not None:
                self.edges.append((part.get("data-names").split(), _points(found.get("d"))))
            elif part.tag == SVG + "rect" and kinds & FRAMES:
                self.frames.append(_corners(part))
            elif part.tag == SVG + "text" and "over" in kinds:
                self.titles.append(part.text)


def _corners(rect):
    x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
    return x, y, x + w, y + h


def _points(path):
    """Points along a path of lines and curves, close enough to meet whatever is crossed."""
    points, here = [], None
    for letter, numbers in re.findall(r"([MLC])([^MLC]*)", path):
        found = np.array([float(n) for n in re.findall(r"-?[\d.]+", numbers)]).reshape(-1, 2)
        if letter != "M":
            t = np.linspace(0, 1, 9)[:, None]
            control = [here, *found]
            while len(control) > 1:  # de Casteljau's points
                control = [a * (1 - t) + b * t for a, b in pairwise(control)]
            points.append(control[0])
        here = found[-1]
    return np.concatenate(points)


def _inside(box, around, room=NEAR):
    return (
        around[0] - room <= box[0] and around[1] - room <= box[1]
        and box[2] <= around[2] + room and box[3] <= around[3] + room
    )  # fmt: skip


def _apart(a, b):
    return a[2] <= b[0] + NEAR or b[2] <= a[0] + NEAR or a[3] <= b[1] + NEAR or b[3] <= a[1] + NEAR


def _within(points, box):
    """Which of the points lie in a box, not on its border."""
    left, top, right, bottom = box
    x, y = points.T
    return (x > left + NEAR) & (x < right - NEAR) & (y > top + NEAR) & (y < bottom - NEAR)


def _touched(picture, point):
    """The box on whose upper or lower side a point is."""
    x, y = point
    found = [
        names
        for names, (left, top, right, bottom) in picture.boxes.items()
        if left - NEAR <= x <= right + NEAR and min(abs(y - top), abs(y - bottom)) <= NEAR
    ]
    assert len(found) == 1
    return found[0]


def assert_true(picture):
    """Nothing in the picture is where it misleads."""
    for a, b in combinations(picture.boxes.values(), 2):
        assert _apart(a, b), "boxes overlap"
    for frame in picture.frames:
        for box in picture.boxes.values():
            assert _inside(box, frame) or _apart(box, frame), "a frame cuts a box"
    for a, b in combinations(picture.frames, 2):
        assert _apart(a, b) or _inside(a, b) or _inside(b, a), "frames overlap"
    for _, points in picture.edges:
        for box in picture.boxes.values():
            assert not _within(points, box).any(), "an edge crosses a box"
        ends = [picture.boxes[_touched(picture, points[at])] for at in (0, -1)]
        for frame in picture.frames:
            if not any(_inside(end, frame) for end in ends):
                assert not _within(points, frame).any(), "an edge crosses a frame of strangers"


def assert_frames_hold_their_nodes(picture, graph, small):
    """Frames of loops and repeats have their nodes in them, and no others."""
    shown = {node.name: node for node in small.graph.nodes}
    nodes = {names: [shown[n] for n in names if n in shown] for names in picture.boxes}
    for frame, title in zip(picture.frames, picture.titles, strict=True):
        held = {
            node.name for names, box in picture.boxes.items() if _inside(box, frame)
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
        begin, end = _touched(picture, points[0]), _touched(picture, points[-1])
        value = graph.named(names[-1])
        makers = {n.name for n in graph.writers().get(graph.root(value.id).id, ())}
        readers = {n.name for n in graph.readers().get(graph.root(value.id).id, ())}
        assert {*begin} & {*makers, *names}
        assert {*end} & {*readers, *names}


@pytest.mark.parametrize("part", range(10))
def test_random_graphs_are_drawn_as_they_are(part):
    for seed in range(50 * part, 50 * part + 50):
        graph = random_graph(seed)
        picture = Picture(graph.to_svg(whole=seed % 7 == 0))
        assert_true(picture)
        small = folded(graph, whole=seed % 7 == 0)
        assert_frames_hold_their_nodes(picture, graph, small)
        assert_edges_end_where_they_end(picture, small.graph)


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
