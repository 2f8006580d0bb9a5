"""What the tests of the graph share: strategies, and an interpreter that knows no passes."""

from __future__ import annotations

import itertools
import json
import math
import random
import struct
from collections.abc import Sequence

import pytest
from aclnn.graph import (
    Argument,
    Buffer,
    DType,
    Graph,
    GraphBuilder,
    Node,
    WorkspacePlan,
    graph_lifetimes,
)
from aclnn.graph.loops.tiling import pad
from aclnn.graph.planner.plan import step_name
from hypothesis import strategies as st

F64 = DType("float64", 8)
F32 = DType("float32", 4)
F16 = DType("float16", 2)
I32 = DType("int32", 4)
I16 = DType("int16", 2)
BOOL = DType("bool", 1)
DTYPES = {dtype.name: dtype for dtype in (F64, F32, F16, I32, I16, BOOL)}
CODES = {"float64": "d", "float32": "f", "float16": "e", "int32": "i", "int16": "h", "bool": "?"}


def rounded(value: float, dtype: DType) -> float:
    """`value` as the dtype stores it; integers are cut off, and stay at the ends of their range."""
    code = CODES[dtype.name]
    if dtype.name.startswith("int"):
        most = 2 ** (8 * dtype.itemsize - 1) - 1
        return 0 if math.isnan(value) else int(max(-most - 1, min(most, value)))
    try:
        return struct.unpack(code, struct.pack(code, float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def computed(node: Node, numbers: Sequence[float], out: DType) -> float:
    """An element of a node's result: Compute adds its operands and 1 in double precision.

    Operands become what the node reads, and results what they are rounded to, where it says so.
    """
    if node.kind != "Compute":
        return rounded(numbers[0], out)
    if node.attr("reads"):
        numbers = [rounded(number, DTYPES[node.attr("reads")]) for number in numbers]
    total = sum(numbers, 1.0)
    if node.attr("result_dtype"):
        total = rounded(total, DTYPES[node.attr("result_dtype")])
    return rounded(total, out)


def indices(shape):
    return itertools.product(*map(range, shape))


def at(strides, index):
    return sum(s * i for s, i in zip(strides, index, strict=True))


def interpret(graph: Graph, memory: dict[str, dict[int, float]]) -> None:
    """Run a graph on memories that map element offsets to numbers, one per argument name.

    Node by node, each reading all its operands before it writes.  Arguments at the same address
    share one dict.
    """
    memory = dict(memory)
    for node in graph.nodes:
        out = graph.value(node.output)
        results = {}
        for index in indices(out.shape):
            operands = []
            for id in node.inputs:
                value = graph.value(id)
                tail = index[len(index) - len(value.shape) :]
                place = [i if n > 1 else 0 for i, n in zip(tail, value.shape, strict=True)]
                operands.append(memory[graph.root(id).name][at(value.strides, place)])
            results[at(out.strides, index)] = computed(node, operands, out.dtype)
        memory.setdefault(out.name, {}).update(results)


@st.composite
def layouts(draw, shape):
    """Strides of a view of `shape` in which no two elements share a place."""
    strides, step = [0] * len(shape), draw(st.integers(1, 2))
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = step * draw(st.sampled_from((1, 1, 1, -1)))
        step *= max(1, shape[axis]) * draw(st.sampled_from((1, 1, 2)))
    return tuple(strides)


@st.composite
def operands(draw, shape):
    """A shape that broadcasts to `shape`, and strides for it."""
    kept = draw(st.integers(0, len(shape)))
    own = tuple(n if draw(st.booleans()) else 1 for n in shape[len(shape) - kept :])
    if draw(st.booleans()):
        own = shape
    return own, draw(layouts(own))


shapes = st.lists(st.integers(1, 5), max_size=4).map(tuple)


def converted(draw, b, value, narrowing):
    """A value after some casts, of which any may lose something."""
    if narrowing:
        for dtype in draw(st.lists(st.sampled_from((*DTYPES.values(),)), max_size=3)):
            value = b.cast(value, dtype)
    return value


@st.composite
def as_built(draw, in_place=False, any_dtype=None, narrowing=True):
    """Graphs as operators build them, with every node present."""
    shape = draw(shapes)
    b = GraphBuilder()
    work = draw(st.sampled_from((F32, F64, F16, I32) if narrowing else (F32, F64)))
    dtypes = (F16, F32, F64, I16, I32) if narrowing else (F16, F32)
    arguments, views = [], []
    for name in "gx"[: draw(st.integers(1, 2))]:
        own, strides = draw(operands(shape))
        dtype = draw(st.sampled_from(dtypes))
        value = b.input(name, own, dtype, strides=strides)
        arguments.append((value, own, strides, dtype))
        forced = "overlap" if draw(st.integers(0, 5)) == 0 else None
        whole = converted(draw, b, b.contiguous(value, reason=forced), narrowing)
        views.append(b.broadcast_to(b.cast(whole, work), shape))
    dtype, strides, alias = draw(st.sampled_from(dtypes)), draw(layouts(shape)), None
    value, own, same, item = draw(st.sampled_from(arguments))
    if in_place and draw(st.booleans()):
        alias, dtype = value, item
        strides = same if own == shape and draw(st.booleans()) else strides
    out = b.output("out", shape, dtype, strides=strides, alias_of=alias)
    casts = {"converts": draw(st.booleans()) if any_dtype is None else any_dtype}
    if draw(st.booleans()):
        casts["reads"] = work.name
    result = b.compute("sum", views, shape, work, **casts)
    for _ in range(draw(st.integers(0, 2))):
        result = b.cast(converted(draw, b, result, narrowing), work)
        result = b.compute("sum", [result, draw(st.sampled_from(views))], shape, work, **casts)
    b.view_copy(b.cast(converted(draw, b, result, narrowing), dtype), out)
    return b.build()


def fresh_memory(graph: Graph) -> dict[str, dict[int, float]]:
    """Numbers for all arguments; aliases share their memory."""
    memory: dict[str, dict[int, float]] = {}
    for id in graph.inputs:
        value = graph.value(id)
        # Thirds, and numbers beyond the range of narrow dtypes: each conversion shows.
        memory[value.name] = {
            at(value.strides, index): rounded((7 * n % 23 - 6) / 3 * 10 ** (n % 7), value.dtype)
            for n, index in enumerate(indices(value.shape))
        }
    for id in graph.outputs:
        value = graph.value(id)
        shared = value.alias_of is not None
        memory[value.name] = memory[graph.value(value.alias_of).name] if shared else {}
    return memory


OF_EVERY_TYPE = (None, True, 1.5, "x", 7, [0.5], {"x": 1})
NOT_READ = ("schema", "attrs", "float", "bytes_read", "bytes_written", "summary")


def damages(document, path="", whole=None):
    """Texts of a document with one field missing or of another type, and what its name is."""
    whole = document if whole is None else whole
    # Of a list the ends: what lies between is read as they are.
    ends = sorted({0, 1, len(document) - 2, len(document) - 1} & {*range(len(document))})
    for key in list(document) if isinstance(document, dict) else ends:
        if key in NOT_READ:
            continue
        was = document[key]
        name = f"{path}[{key}]" if isinstance(document, list) else f"{path}.{key}".lstrip(".")
        if isinstance(was, (dict, list)):
            yield from damages(was, name, whole)
        others = [one for one in OF_EVERY_TYPE if type(one) is not type(was)]
        if path.endswith("params"):  # any number will do
            others = [one for one in others if type(one) not in (int, float)]
        if key in ("alias_of", "schedule", "submitted"):  # which may be null
            others = [one for one in others if one not in (None, 7)]
        for document[key] in others:
            yield json.dumps(whole), name
        if isinstance(document, dict):
            del document[key]
            yield json.dumps(whole), f"{name} is missing"
        document[key] = was


def assert_damage_is_refused(read, document):
    """Fields that do not fit are named by the error, and there are some."""
    count = 0
    for text, words in damages(document):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            read(text)
        assert str(caught.value).startswith(words)
        count += 1
    assert count > 50


def numbers_in(document, path=()):
    """The ways to all integers of a document, to those in lists too."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in parts:
        if isinstance(value, (dict, list)):
            yield from numbers_in(value, (*path, key))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield (*path, key)


LARGE = st.builds(
    lambda power, sign, more: sign * 2**power + more,
    st.integers(0, 70),
    st.sampled_from((-1, 1)),
    st.integers(-1, 1),
)


def changed(document, path, value):
    """The document itself, one of its fields replaced; `path` leads to it."""
    *way, last = path
    place = document
    for key in way:
        place = place[key]
    place[last] = value
    return document


# --- Large graphs -----------------------------------------------------------------------------


def chain(count: int, **attrs) -> Graph:
    """`count` nodes, each reading the one before it."""
    b = GraphBuilder()
    x, out = b.input("x", (64,), F32), b.output("out", (64,), F32)
    for _ in range(count - 1):
        x = b.compute("f", [x], (64,), F32, **attrs)
    b.view_copy(x, out)
    return b.build()


def wide(count: int, **attrs) -> Graph:
    """Half of `count` nodes read the input, the others copy their results to parts of the output."""
    b, half = GraphBuilder(), count // 2
    x, out = b.input("x", (64,), F32), b.output("out", (half, 64), F32)
    for row in range(half):
        part = b.view(out, (64,), (1,), 64 * row)
        b.view_copy(b.compute("f", [x], (64,), F32, at=row, **attrs), part)
    return b.build()


def layered(count: int, width: int = 100, seed: int = 1, **attrs) -> Graph:
    """Layers of `width` nodes, each reading two of the layer before it; the last are added up.

    Each node reads the one above it, so that all are needed.
    """
    b, draw = GraphBuilder(), random.Random(seed)
    x, out = b.input("x", (64,), F32), b.output("out", (64,), F32)
    layer = [x] * width
    for _ in range(max(1, count // width - 1)):
        layer = [
            b.compute("f", [above, draw.choice(layer)], (64,), F32, at=at, **attrs)
            for at, above in enumerate(layer)
        ]
    b.view_copy(_added(b, layer, attrs), out)
    return b.build()


def alive(count: int, **attrs) -> Graph:
    """Half of `count` nodes read the input; only then the others add up all results."""
    b = GraphBuilder()
    x, out = b.input("x", (64,), F32), b.output("out", (64,), F32)
    made = [b.compute("f", [x], (64,), F32, at=at, **attrs) for at in range(count // 2)]
    b.view_copy(_added(b, made, attrs), out)
    return b.build()


def updates(count: int, **attrs) -> Graph:
    """Half of `count` nodes update an input, the others store the results in its place."""
    b = GraphBuilder()
    step = b.input("step", (64,), F32)
    for _ in range(count // 2):
        x = b.input("x", (64,), F32)
        out = b.output("out", (64,), F32, alias_of=x)
        b.view_copy(b.compute("f", [x, step], (64,), F32, **attrs), out)
    return b.build()


def _added(b: GraphBuilder, values: list[int], attrs: dict) -> int:
    """The sum of values, two at a time, in a balanced tree."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        odd = values[len(values) // 2 * 2 :]
        values = [b.compute("add", pair, (64,), F32, **attrs) for pair in pairs] + odd
    return values[0]


LARGE_GRAPHS = (chain, wide, layered, alive, updates)


def planned(graph: Graph) -> WorkspacePlan:
    """A plan with a place of its own for every intermediate, made without a planner."""
    lives = graph_lifetimes(graph)
    ends = [*itertools.accumulate((pad(life.nbytes) for life in lives), initial=0)]
    buffers = [
        Buffer(
            life.name, begin, life.nbytes, end - begin, life.first, life.last,
            producer=life.producer, consumers=life.consumers, parts=life.parts,
            contents=life.contents,
        )
        for life, (begin, end) in zip(lives, itertools.pairwise(ends), strict=True)
    ]  # fmt: skip
    return WorkspacePlan(
        size=ends[-1], lower_bound=0, naive_size=ends[-1], bucket_size=ends[-1],
        buffers=tuple(buffers), strategy="planned", proof="feasible",
        steps=tuple(map(step_name, graph.steps())),
        scratch_per_thread=max((life.nbytes for life in lives if life.parts), default=0),
    )  # fmt: skip


def of_all_kinds() -> Graph:
    """A graph with a node of each domain, several outputs, parts, constants and numbers of a run."""
    b = GraphBuilder()
    x, out = b.input("x", (4, 8), F32), b.output("out", (4, 12), F32)
    scale = b.constant("scale", (1, 8), F32)
    params = (0.5, 3, float("inf"), Argument(1), Argument(0, "whole"))
    y, mean = b.compute_all(
        "norm", [x, scale], [((4, 8), F32), ((4, 1), F32)], domain="row", axis=-1, params=params
    )
    both = b.buffer("both", (2, 4, 8), F32)
    b.view_copy(y, b.view(both, (4, 8), (8, 1), 0, name="upper"))
    b.view_copy(b.compute("f", [y], (4, 8), F32), b.view(both, (4, 8), (8, 1), 32, name="lower"))
    attrs = {"domain": "opaque", "params": params}
    halves = b.compute_all("split", [both, mean], [((4, 8), F32), ((4, 4), F32)], **attrs)
    b.view_copy(halves[0], b.view(out, (4, 8), (12, 1), name="left"))
    b.view_copy(halves[1], b.view(out, (4, 4), (12, 1), 8, name="right"))
    return b.build()


def wasteful():
    b = GraphBuilder()
    x, out = b.input("x", (64, 1), F16, strides=(2, 1)), b.output("out", (64, 64), F16)
    wide = b.broadcast_to(b.cast(b.contiguous(x), F32), (64, 64))
    b.view_copy(b.cast(b.compute("relu", [wide], (64, 64), F32), F16), out)
    return b.build()
