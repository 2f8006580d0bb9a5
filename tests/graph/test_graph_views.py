"""Views name what there is, and are valid in their formats."""

import io
import itertools
import json
import pickle
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from html import escape
from typing import Annotated
from xml.dom import minidom

import jsonschema
import pytest
from aclnn.graph import (
    DType,
    Graph,
    GraphBuilder,
    Kernel,
    Lifetime,
    PassResult,
    Schedule,
    WorkspacePlan,
    compile,
    plan_lifetimes,
    plan_workspace,
    run_passes,
)
from aclnn.graph.constraints import Amount, Length, OneOf
from aclnn.graph.runtime import abi
from aclnn.graph.views import json as documents
from aclnn.graph.views.schema import Document, schema_of
from aclnn.graph.views.tables import cut_apart
from graph_tools import (
    LARGE,
    as_built,
    assert_damage_is_refused,
    changed,
    numbers_in,
    of_all_kinds,
    wasteful,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from schemas import SCHEMAS, VALIDATORS, validated


@given(as_built(in_place=True))
@settings(max_examples=40)
def test_every_view_names_every_node(graph):
    for _, after, _ in run_passes(graph):
        names = [node.name for node in after.nodes]
        picture = after.to_svg()
        ElementTree.fromstring(picture)
        for text in (after.to_text(), after.to_dot(), picture):
            assert all(name in text for name in names)
        validated(after.to_json(), "graph")
        assert Graph.from_json(after.to_json(indent=2)) == after
        assert after.to_dot().count("{") == after.to_dot().count("}")


def test_pictures_stand_alone():
    picture = wasteful().to_svg()
    for word in ("<script", "href", "url(", "@import", "<foreignObject"):
        assert word not in picture
    assert "light-dark(" in picture
    assert picture in wasteful()._repr_html_()


def test_pictures_of_graphs_say_where_values_lie_and_what_moves():
    graph = run_passes(wasteful(), "materialized").graph
    plan = plan_workspace(graph)
    picture = graph.to_svg(plan)
    for buffer in plan.buffers:
        assert f" at {buffer.offset}</text>" in picture
    for node in graph.nodes:
        moved = f"reads {graph.bytes_read(node):,} bytes, writes {graph.bytes_written(node):,}"
        assert moved in picture
    assert " at " not in re.sub("<title>.*?</title>", "", graph.to_svg(), flags=re.DOTALL)


def test_names_are_escaped():
    b, t = GraphBuilder(), DType("float32", 4)
    x, out = b.input('<a&"b\\', (2,), t), b.output("out", (2,), t)
    b.view_copy(b.compute("f<T>", [x], (2,), t), out)
    graph = b.build()
    ElementTree.fromstring(graph.to_svg())
    assert '<a&\\"b\\\\' in graph.to_dot()


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ("\x00", "�"), ("\x1b[1m", "�[1m"), ("\ud800", "�"), ("\ufffe", "�"),
        ("\x7f", "\x7f"), ("🐍", "🐍"),
    ],
)  # fmt: skip
def test_pictures_are_xml_whatever_names_hold(odd, shown):
    b, t = GraphBuilder(), DType("float32", 4)
    x, out = b.input(f"x{odd}", (4, 1), t, note=odd), b.output("out", (4, 8), t)
    wide = b.broadcast_to(x, (4, 8))
    b.view_copy(b.compute(f"f{odd}", [b.compute("g", [wide], (4, 8), t)], (4, 8), t, a=odd), out)
    passes = run_passes(b.build())
    graph = run_passes(b.build(), "materialized").graph
    plan = plan_workspace(graph)
    for picture in (graph.to_svg(plan), plan.to_svg(), passes.to_svg()):
        assert f"x{shown}" in minidom.parseString(picture.encode("utf-8")).toxml()


@pytest.mark.parametrize(
    "read",
    [Graph.from_json, WorkspacePlan.from_json, Schedule.from_json, PassResult.from_json],
)
def test_foreign_documents_are_refused(read):
    for text in ('{"schema": "other/1"}', "[]", "3"):
        with pytest.raises(ValueError, match="expected a document of schema"):
            read(text)


def test_documents_with_a_field_that_does_not_fit_are_refused():
    passes = run_passes(wasteful(), "materialized")
    plan = plan_workspace(passes.graph)
    schedule = compile(passes.graph, plan, lambda node: Kernel(fn=0, state=0, name="k"))
    for thing in (passes.graph, plan, schedule, passes):
        document = json.loads(thing.to_json())
        if thing is passes:
            del document["nodes"]  # it follows from the rest
        assert_damage_is_refused(type(thing).from_json, document)


@pytest.mark.parametrize(
    "value", [{"float": "x"}, {"float": 1}, {}, {"a": "nan"}, [[{"float": []}]]]
)
def test_attributes_that_do_not_fit_are_refused(value):
    document = json.loads(wasteful().to_json())
    document["nodes"][0]["attrs"] = {"why": value}
    with pytest.raises(ValueError, match=re.escape("nodes[0].attrs.why is {")):
        Graph.from_json(json.dumps(document))
    document["nodes"][0]["attrs"] = [value]
    with pytest.raises(ValueError, match=re.escape("nodes[0].attrs is [")):
        Graph.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "", "[NaN"], ids=lambda text: text[:5])
def test_texts_that_are_no_documents_are_refused(text):
    with pytest.raises(ValueError, match=r"too deep|Expect"):
        Graph.from_json(text)


def test_attributes_read_back_whatever_they_are():
    b, t = GraphBuilder(), DType("float32", 4)
    x, out = b.input("x", (2,), t), b.output("out", (2,), t)
    attrs = {"a": float("nan"), "b": -float("inf"), "c": (1, (2.5, "z")), "d": None, "e": True}
    b.view_copy(b.compute("f", [x], (2,), t, **attrs), out)
    assert Graph.from_json(b.build().to_json()) == b.build()


@pytest.mark.parametrize("name", ["graph", "passes", "plan", "plan_diff", "schedule"])
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name] == getattr(documents, f"{name.upper()}_SCHEMA")


def without_descriptions(rule):
    """Paths of the properties of a schema that are not described."""
    for name, inner in rule.get("properties", {}).items():
        if not inner.get("description"):
            yield name
        for one in (inner, inner.get("items", {}), *inner.get("oneOf", ())):
            yield from (f"{name}.{path}" for path in without_descriptions(one or {}))


@pytest.mark.parametrize("name", ["graph", "passes", "plan", "plan_diff", "profile", "schedule"])
def test_schemas_describe_every_field(name):
    """By the docstring of the class that has the field."""
    assert list(without_descriptions(SCHEMAS[name])) == []


@dataclass(frozen=True)
class Reading:
    """Temperatures of a day.

    Attributes
    ----------
    place : str
        Where they
        were read.
    degrees : tuple of float
        Hour by hour.
    station : DType or None
        Who read them.
    """

    place: Annotated[str, OneOf(("roof", "cellar"))]
    degrees: Annotated[tuple[Amount, ...], Length(1, 24)]
    station: DType | None
    kept: object = field(default=None, compare=False)


def test_schemas_follow_from_dataclasses():
    schema = schema_of(Document("weather.reading/1", "Reading", Reading, {}), {})
    assert (schema["$id"], schema["description"]) == (
        "urn:weather:reading:1",
        "Temperatures of a day.",
    )
    assert schema["required"] == ["schema", "place", "degrees", "station"]
    assert schema["properties"]["place"]["description"] == "Where they were read."
    good = {"schema": "weather.reading/1", "place": "roof", "degrees": [1.5, 2], "station": None}
    judge = jsonschema.Draft202012Validator(schema)
    judge.validate(good)
    judge.validate(good | {"station": {"name": "int8", "itemsize": 1}})
    for wrong in (
        {"place": "moon"}, {"degrees": []}, {"degrees": [-1]}, {"degrees": [1] * 25},
        {"station": {"name": "int8", "itemsize": 0}}, {"station": 3}, {"kept": None},
    ):  # fmt: skip
        assert not judge.is_valid(good | wrong), wrong
    assert not judge.is_valid({key: good[key] for key in ("schema", "place", "degrees")})


@settings(max_examples=30, deadline=None)
@given(as_built(in_place=True), st.sampled_from(["fused", "materialized"]), st.integers(1, 3))
def test_documents_fit_their_schemas_and_read_back(graph, pipeline, threads):
    passes = run_passes(graph, pipeline)
    plan = plan_workspace(passes.graph, threads=threads)
    schedule = compile(passes.graph, plan, lambda node: Kernel(fn=0, state=0, name="k"))
    for thing, name in (
        (graph, "graph"), (passes, "passes"), (plan, "plan"), (schedule, "schedule"),
    ):  # fmt: skip
        text = thing.to_json()
        validated(text, name)
        again = type(thing).from_json(text)
        assert again == thing
        assert again.to_json() == text
    assert PassResult.from_json(passes.to_json()).as_built == graph
    other = plan_workspace(passes.graph, "naive")
    validated(plan.diff(other).to_json(), "plan_diff")


@given(as_built())
def test_documents_hold_what_follows_from_the_rest(graph):
    passes = run_passes(graph, "materialized")
    plan = plan_workspace(passes.graph)
    nodes = json.loads(passes.graph.to_json())["nodes"]
    for node, data in zip(passes.graph.nodes, nodes, strict=True):
        assert data["bytes_read"] == passes.graph.bytes_read(node)
        assert data["bytes_written"] == passes.graph.value(node.output).nbytes
    summary = json.loads(plan.to_json())["summary"]
    assert summary["gap"] == plan.size - plan.lower_bound
    # A result that takes the place of an operand has the same bytes.
    taken = [{(b.offset, b.end) for b in plan.live_at(t)} for t in range(len(plan.steps))]
    assert summary["peak_bytes"] == max(sum(end - begin for begin, end in at) for at in taken)
    assert summary["must_shrink"] == [buffer.name for buffer in plan.must_shrink]
    assert plan.size == 0 or summary["fragmentation"] == 1 - plan.peak_bytes / plan.size


def test_the_schema_explains_every_flag_and_base():
    step = SCHEMAS["schedule"]["properties"]["steps"]["items"]["properties"]
    flags = step["ops"]["items"]["properties"]["flags"]["description"]
    assert all(f"{vars(abi)[name]}: " in flags for name in vars(abi) if name.startswith("TILE_"))
    base = step["operands"]["items"]["properties"]["base"]["description"]
    assert all(f"{number}: " in base for number in (abi.WORKSPACE, abi.SCRATCH))


def test_schemas_refuse_what_is_wrong():
    document = json.loads(wasteful_plan().to_json())
    for change in ({"size": -1}, {"proof": "certain"}, {"extra": 1}, {"buffers": [{}]}):
        with pytest.raises(jsonschema.ValidationError):
            VALIDATORS["plan"].validate(document | change)


def everything_shown(thing):
    """All that can be made of a graph, plan or schedule."""
    more = {
        Graph: ("to_svg", "to_dot"),
        WorkspacePlan: ("to_svg", "to_memory_snapshot"),
        Schedule: (),
    }
    for view in ("to_text", "to_json", *more[type(thing)]):
        getattr(thing, view)()


@pytest.mark.parametrize("kind", [Graph, WorkspacePlan, Schedule])
@given(data=st.data())
def test_numbers_are_refused_or_can_be_shown(kind, data):
    """Whatever integer a document has: a ValueError, or an object that nothing fails on."""
    graph = run_passes(wasteful()).graph
    plan = plan_workspace(graph)
    made = {
        Graph: graph,
        WorkspacePlan: plan,
        Schedule: compile(graph, plan, lambda _: Kernel(fn=0, state=0)),
    }[kind]
    document = json.loads(made.to_json())
    path = data.draw(st.sampled_from(list(numbers_in(document))))
    value = data.draw(st.integers(-3, 40) | LARGE)
    try:
        read_back = kind.from_json(json.dumps(changed(document, path, value)))
    except ValueError:
        return
    everything_shown(read_back)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"size": -5}, "size is -5, must be at least 0"),
     ({"size": 10**400}, "must fit into 64 bits"),
     ({"proof": "maybe"}, "proof is 'maybe', must be one of optimal, feasible"),
     ({"threads": 0}, "threads is 0, must be at least 1"),
     ({"size": 64}, "does not fit into its offset range or into the workspace"),
     ({"first": 3, "last": 1}, "its steps, 3 to 1, are none"),
     ({"name": "twin"}, "twin: every buffer has a unique name")],
)  # fmt: skip
def test_plans_that_cannot_be_are_refused(change, words):
    document = json.loads(wasteful_plan().to_json())
    where = [document] if change.keys() <= document.keys() else document["buffers"][:2]
    for one in where:
        one |= change
    with pytest.raises(ValueError, match=re.escape(words)):
        WorkspacePlan.from_json(json.dumps(document))


def test_charts_of_very_long_lives_stay_small():
    plan = plan_lifetimes([Lifetime("a", 0, 10**12, 100), Lifetime("b", 5, 6, 100)])
    picture = plan.to_svg()
    assert len(picture) < 400_000
    assert float(ElementTree.fromstring(picture).get("viewBox").split()[2]) < 60_000


def test_traffic_counts_every_element_once_and_tiles_never():
    f32 = DType("float32", 4)
    b = GraphBuilder()
    row, out = b.input("row", (1, 8), f32), b.output("out", (4, 8), f32)
    wide = b.broadcast_to(row, (4, 8))
    first = b.compute("f", [wide, wide], (4, 8), f32)
    b.view_copy(b.compute("g", [first, wide], (4, 8), f32), out)
    whole = run_passes(b.build(), "materialized").graph
    fused = run_passes(b.build()).graph

    def traffic(graph):
        return [(n.name, graph.bytes_read(n), graph.bytes_written(n)) for n in graph.nodes]

    assert traffic(whole) == [("row_broadcast", 32, 128), ("f", 128, 128), ("g", 256, 128)]
    assert traffic(fused) == [("f", 32, 0), ("g", 32, 128)]


def table_text(view, width=400):
    console = rich_console().Console(width=width, color_system=None)
    with console.capture() as caught:
        console.print(view)
    return caught.get()


def rich_console():
    pytest.importorskip("rich")
    import rich.console

    return rich.console


def words_of(text):
    return sorted(text.replace("─", " ").split())


@given(as_built(in_place=True))
@settings(max_examples=10)
def test_rich_tables_say_what_the_text_says(graph):
    passes = run_passes(graph, "materialized")
    plan = plan_workspace(passes.graph)
    schedule = compile(passes.graph, plan, lambda node: Kernel(fn=0, state=0, name="k"))
    diff = plan.diff(plan_workspace(passes.graph, "naive"))
    for one in (passes.graph, plan, schedule):
        assert words_of(table_text(one.to_rich(wide=True))) == words_of(one.to_text(wide=True))
    assert words_of(table_text(diff.to_rich())) == words_of(diff.to_text())
    text = passes.graph.to_text(plan, wide=True)
    assert words_of(table_text(passes.graph.to_rich(plan, wide=True))) == words_of(text)


def test_names_are_no_markup():
    f32 = DType("float32", 4)
    b = GraphBuilder()
    x, out = b.input("[bold]x[/bold]", (2,), f32), b.output("out", (2,), f32)
    b.view_copy(b.compute("f", [x], (2,), f32), out)
    assert "[bold]x[/bold]" in table_text(b.build().to_rich())


def test_a_missing_package_is_named(monkeypatch):
    for name in [*(name for name in sys.modules if name.startswith("rich.")), "rich"]:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(ModuleNotFoundError, match=r"rich tables need .* 'aclnn-cpu\[rich\]'"):
        wasteful().to_rich()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"ONNX models need .* 'aclnn-cpu\[onnx\]'"):
        run_passes(small_graph()).graph.to_onnx()


def small_graph():
    f16, f32 = DType("float16", 2), DType("float32", 4)
    b = GraphBuilder()
    x, out = b.input("x", (4, 1), f16, strides=(3, 1)), b.output("out", (4, 8), f32)
    wide = b.broadcast_to(b.cast(b.contiguous(x), f32), (4, 8))
    b.view_copy(b.cast(b.compute("relu", [wide], (4, 8), f32), f32), out)
    return b.build()


def test_passes_side_by_side():
    passes = run_passes(small_graph())
    names = [step.name for step in passes]
    rows = {one["name"]: one["stages"] for one in validated(passes.to_json(), "passes")["nodes"]}
    assert list(rows["x_cast"]) == ["as built", *names, "as scheduled"]
    assert rows["x_contiguous"]["as built"] == (
        "Contiguous float16(4,1) strides (3,1) -> float16(4,1)"
    )
    assert rows["x_contiguous"]["fold_strides"] == "folded: read with strides (3, 1)"
    assert rows["x_broadcast"]["fold_strides"] == "folded: stride 0 along dim 1"
    assert rows["x_broadcast"]["fold_casts"] == ""
    assert rows["relu_cast"]["elide"] == "elided: already float32"
    assert rows["relu"]["as scheduled"] == "step 0, tile loop 1"
    assert rows["relu"]["fold_casts"] == "its operands change"
    text = passes.side_by_side()
    heads = text.splitlines()[0].split("  ")
    changed = [name for name in names if any(row[name] not in ("", "=") for row in rows.values())]
    assert [head.strip() for head in heads if head.strip()] == [
        "node", "as built", *changed, "as scheduled",
    ]  # fmt: skip
    assert max(map(len, text.splitlines())) <= 100
    assert all(node.name in text for node in passes.as_built.nodes)


def test_what_passes_add_is_shown_where_it_runs():
    f32 = DType("float32", 4)
    b = GraphBuilder()
    x = b.input("x", (4, 4), f32, strides=(1, 4))
    out = b.output("out", (4, 4), f32, alias_of=x)
    b.view_copy(b.compute("f", [b.contiguous(x)], (4, 4), f32), out)
    rows = {
        one["name"]: one["stages"] for one in json.loads(run_passes(b.build()).to_json())["nodes"]
    }
    assert rows["x_copy"]["as built"] == ""
    assert rows["x_copy"]["in_place"].startswith("added: ")
    assert rows["x_copy"]["as scheduled"] == "step 0"


@given(as_built(in_place=True))
def test_passes_are_a_tuple_that_shows_itself(graph):
    passes = run_passes(graph)
    assert isinstance(passes, tuple)
    assert passes == tuple(passes)
    again = pickle.loads(pickle.dumps(passes))
    assert (again, again.as_built) == (passes, passes.as_built)
    picture = passes.to_svg()
    root = ElementTree.fromstring(picture)
    inner = root.findall("{http://www.w3.org/2000/svg}svg")
    assert 1 <= len(inner) <= 1 + len(passes)
    assert picture in passes._repr_html_()
    assert "<script" not in picture
    drawn = " ".join(re.findall("<text[^>]*>([^<]*)</text>", picture)).split()
    assert "scheduled" in drawn
    for note in passes.notes:
        assert escape(str(note)) in " ".join(drawn)
    # What is drawn side by side stays side by side.
    edges = [(float(one.get("x")), float(one.get("width"))) for one in inner]
    assert all(x + width <= later for (x, width), (later, _) in itertools.pairwise(edges))


def test_dot_names_what_is_read():
    graph = run_passes(small_graph(), "materialized").graph
    plan = plan_workspace(graph)
    text = graph.to_dot(plan)
    for buffer in plan.buffers:
        assert f"workspace offset {buffer.offset}" in text
    assert "reads 8 B, writes 8 B" in text  # the contiguous node
    assert '[label="x\\nfloat16(4,1)\\nstrides (3,1)"]' in text
    assert "workspace offset" not in graph.to_dot()


def test_text_has_offsets_where_a_plan_is_given():
    graph = run_passes(small_graph(), "materialized").graph
    plan = plan_workspace(graph)
    lines = graph.to_text(plan).splitlines()
    assert "offset" in lines[0]
    assert "offset" not in graph.to_text().splitlines()[0]
    place = lines[0].index("offset") + len("offset")
    for buffer in plan.buffers:
        (line,) = [row for row in lines if f" {buffer.producer} " in row[:30] and "<" not in row]
        assert line[:place].split()[-1] == str(buffer.offset)


def test_snapshots_name_what_they_hold():
    graph = run_passes(small_graph(), "materialized").graph
    plan = plan_workspace(graph)
    frames = {
        event["frames"][0]["name"]: event["frames"]
        for event in plan.to_memory_snapshot()["device_traces"][0]
        if event["action"] == "alloc"
    }
    assert set(frames) == {buffer.name for buffer in plan.buffers}
    for buffer in plan.buffers:
        words = " ".join(f"{frame['name']} {frame['filename']}" for frame in frames[buffer.name])
        for word in (buffer.producer, buffer.contents, str(buffer.offset), str(buffer.nbytes)):
            assert word in words
        assert all(f"read by {name}" in words for name in buffer.consumers)
        assert all(f"shares space with {name}" in words for name in buffer.shared_with)


def wasteful_plan():
    return plan_workspace(run_passes(wasteful(), "materialized").graph)


def test_plan_summaries_are_complete():
    plan = wasteful_plan()
    text = plan.to_text()
    live = sorted(plan.must_shrink, key=lambda b: -b.padded)
    for words in (
        f"workspace {plan.size} bytes", f"strategy {plan.strategy}, {plan.proof}",
        f"lower bound {plan.lower_bound}", f"gap {plan.size - plan.lower_bound}",
        f"naive {plan.naive_size}", f"bucket {plan.bucket_size}",
        f"peak at step {plan.peak_step}", f"fragmentation {1 - plan.peak_bytes / plan.size:.1%}",
        f"to lower the peak, shrink: {live[0].name} (",
    ):  # fmt: skip
        assert words in text
    assert all(buffer.contents in text for buffer in plan.buffers)


# --- Nodes of all kinds -----------------------------------------------------------------------


def scheduled_of_all_kinds(pipeline):
    passes = run_passes(of_all_kinds(), pipeline)
    own = lambda node, rows, cols: 100 * (node.name == "norm")  # noqa: E731
    plan = plan_workspace(passes.graph, scratch_of=own)
    return passes, plan, compile(passes.graph, plan, lambda _: Kernel(fn=0, state=0))


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
def test_documents_of_all_kinds_of_nodes_read_back(pipeline):
    passes, plan, schedule = scheduled_of_all_kinds(pipeline)
    for thing, name in (
        (passes.as_built, "graph"), (passes.graph, "graph"), (passes, "passes"), (plan, "plan"),
        (schedule, "schedule"),
    ):  # fmt: skip
        validated(thing.to_json(), name)
        assert type(thing).from_json(thing.to_json()) == thing
    assert_damage_is_refused(Schedule.from_json, json.loads(schedule.to_json()))
    document = json.loads(schedule.to_json())
    params = [0.5, 3, {"float": "inf"}, {"argument": 1, "kind": "real"}]
    params.append({"argument": 0, "kind": "whole"})
    op = document["steps"][0]["ops"][0]
    assert (op["outputs"], op["params"], op["scratch"]) == (2, params, 0)
    assert json.loads(passes.graph.to_json())["nodes"][0]["attrs"]["params"] == params


@pytest.mark.parametrize(
    ("param", "words"),
    [({"argument": -1, "kind": "real"}, ".argument is -1, must be at least 0"),
     ({"argument": 0, "kind": "odd"}, ".kind is 'odd', must be one of real, whole"),
     ({"argument": True, "kind": "real"}, ".argument is True, must be an integer"),
     ({"argument": 0}, ".kind is missing"),
     ("x", " is 'x', must be a number or an argument")],
)  # fmt: skip
def test_params_that_do_not_fit_are_refused(param, words):
    document = json.loads(scheduled_of_all_kinds("fused")[2].to_json())
    document["steps"][0]["ops"][0]["params"] = [param]
    with pytest.raises(ValueError, match=re.escape(f"steps[0].ops[0].params[0]{words}")):
        Schedule.from_json(json.dumps(document))


def test_tables_show_all_results_parts_and_domains():
    passes, plan, schedule = scheduled_of_all_kinds("fused")
    text = passes.graph.to_text(plan, wide=True)
    rows = [line.split() for line in text.splitlines()]
    (first,) = [row for row in rows if "split" in row and "opaque" in row]
    assert first[:6] == ["1", "split", ">", "left", "Compute,", "opaque"]
    (second,) = [row for row in rows if row[:2] == [">", "right"]]
    assert second[-5:] == ["part", "of", "out", "at", "8"]
    for words in ("Compute, row-wise along axis -1", "part of both at 32", "> norm_1", " constant"):
        assert words in text
    (lower,) = [row for row in rows if "lower" in row]
    start = plan.buffer("both").offset
    assert str(start + 32 * 4) in lower
    assert "params=(0.5, 3, inf, real argument 1, whole argument 0)" in text
    steps = schedule.to_text(wide=True)
    assert (
        "(#0, #1; 0.5, 3, inf, real argument 1, whole argument 0) -> #2, #3, memory of its" in steps
    )
    assert "  called once, up to 1 thread" in steps
    assert "(2,4,8)" in steps


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
def test_pictures_show_all_results_parts_and_writers(pipeline):
    graph = scheduled_of_all_kinds(pipeline)[0].graph
    both = graph.named("both").id
    dot = graph.to_dot()
    assert len(re.findall(rf"n\d+ -> v{both} ", dot)) == 2
    for picture in (dot, graph.to_svg()):
        for words in ("norm_1", "part of out at 8", "opaque", "row-wise along axis -1", "scale"):
            assert words in picture
    edges = re.findall(r'<g data-names="([^"]*)"><path class="edge"', graph.to_svg())
    assert {"both upper", "both lower", "out left", "out right"} <= set(edges)


def test_onnx_models_gather_parts():
    onnx = pytest.importorskip("onnx")
    passes, plan, _ = scheduled_of_all_kinds("fused")
    model = onnx.load_from_string(passes.graph.to_onnx(plan))
    onnx.checker.check_model(model)
    parts = {node.output[0]: [*node.input] for node in model.graph.node if node.op_type == "Parts"}
    assert parts == {"both": ["upper", "lower"], "out": ["left", "right"]}
    (split,) = [node for node in model.graph.node if node.name == "split"]
    facts = {a.name: onnx.helper.get_attribute_value(a) for a in split.attribute}
    assert [*split.output] == ["left", "right"]
    assert (facts["domain"], facts["place"], facts["place_1"]) == (
        b"opaque", b"part of out at 0", b"part of out at 8",
    )  # fmt: skip


def test_rows_of_passes_have_all_results():
    stages = json.loads(run_passes(of_all_kinds()).to_json())["nodes"][0]["stages"]
    assert stages["as built"] == (
        "Compute, row-wise along axis -1 float32(4,8), float32(1,8) -> float32(4,8), float32(4,1)"
    )


F32 = DType("float32", 4)


def layers_of_different_kinds(count):
    """A graph in which hardly anything repeats, with weights whose long names differ in the middle."""
    b = GraphBuilder()
    x, out = b.input("tokens", (4, 131072, 1), F32), b.output("out", (4, 131072, 1), F32)
    for k in range(count):
        name = f"encoder.layer.{k}.attention.self.query.projection.weight"
        weight = b.input(name, (4, 131072, 1), F32)
        x = b.compute(f"kernel_{k}", [x, weight], (4, 131072, 1), F32)
    b.view_copy(x, out)
    return b.build()


@pytest.mark.parametrize("whole", [False, True])
def test_text_of_large_graphs_keeps_shapes_and_what_names_differ_in(whole):
    passes = run_passes(layers_of_different_kinds(60))
    plan = plan_workspace(passes.graph)
    text = passes.graph.to_text(plan, whole=whole)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    rows = [line for line in lines if "(4,131072,1)" in line]
    read = [line.split("<")[1] for line in lines if "<" in line and "float32" in line]
    assert len(read) >= (60 if whole else 8)
    assert all(any(f".{k}." in one for one in read) for k in range(10, 60 if whole else 4))
    assert not re.search(r"\(4,\S*…", text)
    assert len([row for row in rows if row.split()[1] == "input"]) == (61 if whole else 1)
    assert ("weights and constants: 60, 120 MiB" in text) == (not whole)
    wide = passes.graph.to_text(plan, wide=True)
    assert "encoder.layer.59.attention.self.query.projection.weight" in wide


def test_names_that_cannot_be_told_apart_in_a_line_are_broken_into_several():
    names = [f"{'a' * 40}{k:02}{'b' * 20}{j:02}{'a' * 40}" for k in range(12) for j in range(12)]
    made = cut_apart(names, 20)
    assert len(set(made.values())) == len(names)
    assert max(len(line) for one in made.values() for line in one.split("\n")) <= 20


def test_names_cannot_command_a_terminal():
    evil = "a\x1b]0;pwned\x07\x9b2J\r\u202e"
    b = GraphBuilder()
    x, out = b.input(evil, (4,), F32), b.output("out", (4,), F32)
    b.view_copy(b.compute("f", [x], (4,), F32, name=evil + "f"), out)
    passes = run_passes(b.build())
    plan = plan_lifetimes([Lifetime(evil, 0, 2, 64), Lifetime("b", 1, 3, 64)])
    graph = passes.graph
    texts = [str(graph), graph.to_text(wide=True), passes.side_by_side(), plan.to_text(),
             plan.to_text(wide=True), repr(plan.buffers[0]), *map(repr, (*graph.nodes, *graph.values)),
             plan.diff(plan_lifetimes([Lifetime(evil, 0, 2, 128)])).to_text()]  # fmt: skip
    for text in texts:
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert r"a\x1b]0;pwned\x07" in plan.to_text()
    rich = pytest.importorskip("rich.console")
    console = rich.Console(file=io.StringIO(), width=200)
    console.print(plan.to_rich())
    assert "\x1b]0" not in console.file.getvalue()
