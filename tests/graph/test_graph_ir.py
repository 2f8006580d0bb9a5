"""Values, nodes, graphs: what is well formed, what is equal."""

import json
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import pytest
from aclnn.graph import Graph, GraphBuilder, GraphError, Node, check, is_contiguous
from graph_tools import F16, F32, as_built
from hypothesis import given


def chain(shape=(2, 3)):
    b = GraphBuilder()
    x, out = b.input("x", (2, 1), F16), b.output("out", shape, F32)
    wide = b.broadcast_to(b.cast(b.contiguous(x), F32), shape)
    b.view_copy(b.compute("relu", [wide], shape, F32, slope=0.5), out)
    return b.build()


def test_nothing_can_change():
    graph = chain()
    for thing, name in ((graph, "nodes"), (graph.nodes[0], "kind"), (graph.values[0], "shape")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, None)


def test_graphs_compare_and_hash_by_content():
    assert chain() == chain()
    assert hash(chain()) == hash(chain())
    other = chain().nodes[3].with_attrs(slope=0.25)
    assert replace(chain(), nodes=(*chain().nodes[:3], other, chain().nodes[4])) != chain()


def test_a_graph_survives_pickling():
    assert pickle.loads(pickle.dumps(chain())) == chain()


def test_nan_attributes_do_not_break_equality():
    one, two = (Node("n", "Compute", (), (0,)).with_attrs(eps=float("nan")) for _ in range(2))
    assert one == two
    assert math.isnan(one.attr("eps"))


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), (), True),
        ((3,), (1,), True),
        ((3,), (-1,), False),
        ((1, 3), (50, 1), True),
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), False),
        ((0, 3), (7, 7), True),
        ((1,), (0,), True),
    ],
)
def test_contiguity_ignores_sizes_of_one(shape, strides, expected):
    assert is_contiguous(shape, strides) is expected


def swapped(at, **changes):
    """The chain with fields of node number `at` replaced."""
    nodes = list(chain().nodes)
    nodes[at] = replace(nodes[at], **changes)
    return replace(chain(), nodes=tuple(nodes))


def without(at):
    nodes = chain().nodes
    return replace(chain(), nodes=nodes[:at] + nodes[at + 1 :])


X, OUT, CONTIGUOUS, CAST, BROADCAST, RELU = range(6)  # ids of the chain's values


@pytest.mark.parametrize(
    ("graph", "name", "rule"),
    [
        (without(0), "x_cast", "x_contiguous is made before use"),
        (without(4), "out", "an output is made by a node"),
        (swapped(0, kind="Magic"), "x_contiguous", "kind is one of"),
        (swapped(0, inputs=(99,)), "x_contiguous", "value 99 exists"),
        (swapped(0, inputs=(X, X)), "x_contiguous", "Contiguous reads one value"),
        (swapped(1, outputs=(CONTIGUOUS,)), "x_cast", "x_contiguous is made once"),
        (swapped(1, kind="Contiguous"), "x_cast", "Contiguous keeps the dtype"),
        (swapped(2, kind="Contiguous"), "x_broadcast", "Contiguous keeps the shape"),
        (swapped(2, inputs=(X,)), "x_broadcast", "BroadcastTo keeps the dtype"),
        (swapped(3, inputs=(CAST,)), "relu", "operands of a pointwise node have the shape"),
        (swapped(3, kind="ViewCopy"), "relu", "ViewCopy writes an output"),
        (swapped(2, outputs=(X,)), "x_broadcast", "x is made once"),
        (swapped(2, name="x_cast"), "x_cast", "every node has a unique name"),
    ],
)
def test_every_rule_names_the_node_and_itself(graph, name, rule):
    with pytest.raises(GraphError) as caught:
        check(graph)
    assert caught.value.node == name
    assert rule in caught.value.rule
    assert str(caught.value) == f"{name}: {caught.value.rule}"


def test_a_value_does_not_broadcast_downwards():
    b = GraphBuilder()
    x = b.input("x", (2, 3), F32)
    b.broadcast_to(x, (2, 1))
    with pytest.raises(GraphError, match=r"x_broadcast: .* does not broadcast"):
        b.build()


def test_values_are_checked():
    graph = chain()

    def with_value(**changes):
        values = list(graph.values)
        values[0] = replace(values[0], **changes)
        return replace(graph, values=tuple(values))

    for changes, rule in (
        ({"strides": (1,)}, "as many strides as dimensions"),
        ({"storage": "attic"}, "storage is one of"),
        ({"shape": (-1, 2)}, "no negative dimension"),
        ({"name": "out"}, "unique name"),
        ({"storage": "constant"}, "storage is 'input'"),
    ):
        with pytest.raises(GraphError, match=rule):
            check(with_value(**changes))


def test_a_view_must_stay_inside():
    from aclnn.graph import Value

    graph = chain()
    view = Value(50, "view", (3,), (1,), F16, "input", alias_of=graph.inputs[0])
    with pytest.raises(GraphError, match="a view stays inside x"):
        check(replace(graph, values=(*graph.values, view)))
    check(replace(graph, values=(*graph.values, replace(view, shape=(2,)))))


def with_views(*aliases):
    """The chain's document with views of x, number 50 and so on; each entry is what it views."""
    document = json.loads(chain().to_json())
    view = document["values"][X] | {"storage": "input"}
    document["values"] += [
        view | {"id": 50 + i, "name": f"view {i}", "alias_of": alias}
        for i, alias in enumerate(aliases)
    ]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("aliases", "rule"),
    [
        ((50,), "view 0: views form a cycle: 50 -> 50"),
        ((51, 50), "view 0: views form a cycle: 50 -> 51 -> 50"),
        ((51, 52, 51), "view 0: views form a cycle: 50 -> 51 -> 52 -> 51"),
        ((51, 99), "view 1: a view is of a value of the graph"),
    ],
    ids=["itself", "each other", "a circle", "nothing"],
)
def test_every_view_leads_to_memory(aliases, rule):
    with pytest.raises(GraphError, match=rule):
        Graph.from_json(with_views(*aliases))


def test_views_of_views_lead_to_memory():
    graph = Graph.from_json(with_views(51, 52, X))
    assert graph.root(50) == graph.value(X)


def test_readers_of_a_view_read_what_owns_its_bytes():
    graph = Graph.from_json(with_views(51, X))
    reader = replace(graph.nodes[0], inputs=(50,))
    names = {id: [node.name for node in nodes] for id, nodes in graph.readers().items()}
    assert names == {X: ["x_contiguous"], CONTIGUOUS: ["x_cast"], CAST: ["x_broadcast"],
                     BROADCAST: ["relu"], RELU: ["out_view_copy"]}  # fmt: skip
    often = replace(reader, inputs=(X, 50, 51))
    assert graph.readers([often, reader]) == {X: (often, reader)}


def test_a_circle_of_views_that_nobody_checked_has_no_root():
    circle = tuple(replace(chain().values[X], id=i, alias_of=1 - i) for i in range(2))
    with pytest.raises(GraphError, match="views form a cycle: 0 -> 1 -> 0"):
        Graph((), circle, (), ()).root(0)


def test_who_asks_for_a_value_that_is_not_there_is_told_which_are():
    graph, empty = chain(), GraphBuilder().build()
    gaps = replace(graph, values=graph.values[:2] + graph.values[4:])
    for ask, words in (
        (lambda: graph.value(7), "no value has id 7, ids are 0 to 5"),
        (lambda: graph.root("x"), "no value has id 'x', ids are 0 to 5"),
        (lambda: graph.memory_bytes(-1), "no value has id -1, ids are 0 to 5"),
        (lambda: gaps.value(2), "no value has id 2, ids are 0 to 1, 4 to 5"),
        (lambda: empty.value(0), "no value has id 0, there are no values"),
        (
            lambda: graph.named("y"),
            "no value is called 'y', there are x, out, x_contiguous, x_cast",
        ),
        (lambda: empty.named("y"), "no value is called 'y', there are none"),
    ):
        with pytest.raises(KeyError) as caught:
            ask()
        assert caught.value.args[0].startswith(words)


def test_the_builder_refuses_values_that_are_not_there_at_once():
    b = GraphBuilder()
    x, out = b.input("x", (2,), F32), b.output("out", (2,), F32)
    for refused in (
        lambda: b.compute("f", [x, 99], (2,), F32),
        lambda: b.view_copy(99, out),
        lambda: b.view_copy(x, 99),
        lambda: b.output("other", (2,), F32, alias_of=99),
        lambda: b.broadcast_to(99, (2,)),
    ):
        with pytest.raises(GraphError, match="value 99: there are 2 values so far"):
            refused()
    b.view_copy(b.compute("f", [x], (2,), F32), out)
    assert [node.name for node in b.build().nodes] == ["f", "out_view_copy"]


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(GraphError("relu", "is made before use")))
    assert (error.node, error.rule) == ("relu", "is made before use")


def test_a_loop_makes_more_than_tiles():
    graph = swapped(3, attrs=(("loop", 1),))
    values = (*graph.values[:RELU], replace(graph.values[RELU], storage="tile"))
    graph = replace(graph, nodes=graph.nodes[:4], values=(*values[:OUT], *values[CONTIGUOUS:]))
    with pytest.raises(GraphError, match="relu: a tile loop makes more than tiles"):
        check(replace(graph, outputs=()))


def test_forced_copies_come_before_all_output():
    b = GraphBuilder()
    x, one, two = b.input("x", (2,), F32), b.output("one", (2,), F32), b.output("two", (2,), F32)
    b.view_copy(x, one)
    b.view_copy(b.contiguous(x, reason="overlap"), two)
    with pytest.raises(GraphError, match="forced copies precede all output"):
        b.build()


@given(as_built())
def test_what_the_builder_makes_is_well_formed(graph):
    assert check(graph) is graph
    assert Graph.from_json(graph.to_json()) == graph


def test_the_graph_loads_nothing_else_of_the_package_and_no_numpy():
    code = (
        "import sys, aclnn.graph as g; b = g.GraphBuilder(); t = g.DType('float32', 4); "
        "x, o = b.input('x', (4,), t), b.output('o', (4,), t); "
        "b.view_copy(b.compute('f', [x], (4,), t), o); graph = g.run_passes(b.build()).graph; "
        "g.plan_workspace(graph).to_svg(); graph.to_svg(); graph.to_dot(); "
        "bad = [m for m in sys.modules if m.split('.')[0] in ('numpy', 'ml_dtypes') "
        "or 'kernels' in m or 'operators' in m or m.startswith('aclnn.') "
        "and not m.startswith(('aclnn.graph', 'aclnn._version', 'aclnn.deferred')) "
        "and m not in ('aclnn.acl', 'aclnn.acl._frames')]; print(bad); sys.exit(bool(bad))"
    )  # the frames are left out of tracebacks of misspelt names, by the package itself
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
