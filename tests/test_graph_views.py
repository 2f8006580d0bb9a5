"""Views name what there is, are valid in their formats, and hold examples that run."""

import doctest
import importlib
import json
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest
from aclnn.graph import Graph, WorkspacePlan, run_passes
from aclnn.graph.views.json import GRAPH_SCHEMA
from graph_tools import as_built
from hypothesis import given

MODULES = ["ir", "passes", "lifetime", "loops", "planners", "plan", "schedule", "views.text"]


@pytest.mark.parametrize("name", ["", *(f".{module}" for module in MODULES)])
def test_examples(name):
    module = importlib.import_module(f"aclnn.graph{name}")
    assert doctest.testmod(module).failed == 0


@given(as_built(in_place=True))
def test_every_view_names_every_node(graph):
    for _, after, _ in run_passes(graph):
        names = [node.name for node in after.nodes]
        picture = after.to_svg()
        ElementTree.fromstring(picture)
        for text in (after.to_text(), after.to_dot(), picture):
            assert all(name in text for name in names)
        jsonschema.validate(json.loads(after.to_json()), GRAPH_SCHEMA)
        assert Graph.from_json(after.to_json(indent=2)) == after
        assert after.to_dot().count("{") == after.to_dot().count("}")


def test_pictures_stand_alone():
    from test_graph_plan import wasteful

    picture = wasteful().to_svg()
    for word in ("<script", "href", "url(", "@import", "<foreignObject"):
        assert word not in picture
    assert "prefers-color-scheme:dark" in picture
    assert wasteful()._repr_svg_() == picture


def test_names_are_escaped():
    from aclnn.graph import DType, GraphBuilder

    b, t = GraphBuilder(), DType("float32", 4)
    x, out = b.input('<a&"b\\', (2,), t), b.output("out", (2,), t)
    b.view_copy(b.compute("f<T>", [x], (2,), t), out)
    graph = b.build()
    ElementTree.fromstring(graph.to_svg())
    assert '<a&\\"b\\\\' in graph.to_dot()


@pytest.mark.parametrize("read", [Graph.from_json, WorkspacePlan.from_json])
def test_foreign_documents_are_refused(read):
    for text in ('{"schema": "other/1"}', "[]", "3"):
        with pytest.raises(ValueError, match="expected a document of schema"):
            read(text)


def test_attributes_read_back_whatever_they_are():
    from aclnn.graph import DType, GraphBuilder

    b, t = GraphBuilder(), DType("float32", 4)
    x, out = b.input("x", (2,), t), b.output("out", (2,), t)
    attrs = {"a": float("nan"), "b": -float("inf"), "c": (1, (2.5, "z")), "d": None, "e": True}
    b.view_copy(b.compute("f", [x], (2,), t, **attrs), out)
    assert Graph.from_json(b.build().to_json()) == b.build()
