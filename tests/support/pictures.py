"""Graphs drawn at random, and pictures of graphs as geometry: whether they tell the truth."""

import random
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import numpy as np
from aclnn.graph import GraphBuilder, run_passes
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


def wide_graph(seed):
    """Few ranks of many nodes, whose rows have to be divided, read across ranks and by nobody."""
    draw = random.Random(seed)
    b = GraphBuilder()
    ranks = [[b.input("x", (8, 8), F32)]]
    for _ in range(draw.randint(2, 4)):
        before, made = [value for rank in ranks for value in rank], []
        for _ in range(draw.randint(6, 14)):
            read = draw.sample(before, min(len(before), draw.randint(1, 3)))
            if draw.random() < 0.3:
                read = []
            read += draw.sample(made, min(len(made), draw.random() < 0.1))
            b.call = draw.choice(("", "an_operator_with_a_long_name")) and f"wide#{b.n_nodes}"
            made.append(b.compute("a_kernel_with_a_long_name", read, (8, 8), F32, domain="opaque"))
        ranks.append(made)
    b.call = ""
    b.view_copy(ranks[-1][0], b.output("out", (8, 8), F32))
    return b.build()


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
                    self.boxes[tuple(part.get("data-names", "").split())] = corners(found)
            elif part.tag == SVG + "g" and (found := part.find(SVG + "path")) is not None:
                self.edges.append((part.get("data-names").split(), points_of(found.get("d"))))
            elif part.tag == SVG + "rect" and kinds & FRAMES:
                self.frames.append(corners(part))
            elif part.tag == SVG + "text" and "over" in kinds:
                self.titles.append(part.text)


def corners(rect):
    x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
    return x, y, x + w, y + h


def points_of(path):
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


def inside(box, around, room=NEAR):
    return (
        around[0] - room <= box[0] and around[1] - room <= box[1]
        and box[2] <= around[2] + room and box[3] <= around[3] + room
    )  # fmt: skip


def apart(a, b):
    return a[2] <= b[0] + NEAR or b[2] <= a[0] + NEAR or a[3] <= b[1] + NEAR or b[3] <= a[1] + NEAR


def crosses(points, boxes):
    """Whether one of the points lies in one of the boxes, not on its border."""
    if not len(boxes):
        return False
    left, top, right, bottom = np.asarray(boxes).T[:, :, None]
    x, y = points.T
    in_one = (x > left + NEAR) & (x < right - NEAR) & (y > top + NEAR) & (y < bottom - NEAR)
    return in_one.any()


def touched(picture, point):
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
        assert apart(a, b), "boxes overlap"
    for frame in picture.frames:
        for box in picture.boxes.values():
            assert inside(box, frame) or apart(box, frame), "a frame cuts a box"
    for a, b in combinations(picture.frames, 2):
        assert apart(a, b) or inside(a, b) or inside(b, a), "frames overlap"
    for _, points in picture.edges:
        assert not crosses(points, [*picture.boxes.values()]), "an edge crosses a box"
        ends = [picture.boxes[touched(picture, points[at])] for at in (0, -1)]
        strange = [f for f in picture.frames if not any(inside(end, f) for end in ends)]
        assert not crosses(points, strange), "an edge crosses a frame of strangers"
