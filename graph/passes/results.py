"""Steps on results: pointwise nodes become part of the opaque node that makes what they read.

An opaque node whose kernel runs pointwise kernels on its results, while the caches hold them, says so by the
attribute `finishes`: names of the dtypes that these may read and write. What it took in is its attribute
`then` (`graph/result_steps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..attrs import freeze_attrs
from ..ir import DType, Graph, Node, Value
from ..result_steps import ResultStep, steps_of
from ..rewriter import Rewriter
from ..strides import contiguous_strides
from .notes import Note, Notes

MOST_STEPS = 8
MOST_EXTRAS = 8  # operands that only steps read
MOST_READS = 4  # operands of a step


def fold_results(graph: Graph) -> tuple[Graph, Notes]:
    """Let opaque nodes take in the pointwise nodes that alone read their results."""
    if not any(node.attr("finishes") for node in graph.nodes):
        return graph, ()
    readers = graph.readers()
    notes: list[Note] = []
    nodes: dict[str, Node] = {}
    makers: dict[int, str] = {}  # of results that may be taken further
    for node in graph.nodes:
        host = _host(graph, node, nodes, makers, readers)
        if host is not None:
            makers.pop(host.output)
            del nodes[host.name]
            notes.append(
                Note(node.name, f"becomes part of {host.name}", "nothing else reads its result")
            )
            node = _joined(graph, host, node)
        nodes[node.name] = node
        if node.attr("finishes"):
            makers[node.output] = node.name
    if not notes:
        return graph, ()
    return Rewriter(graph).rebuilt(nodes.values()), tuple(notes)


def _host(
    graph: Graph,
    node: Node,
    nodes: dict[str, Node],
    makers: dict[int, str],
    readers: dict[int, tuple[Node, ...]],
) -> Node | None:
    """The node that takes one in."""
    if not _is_step(graph, node):
        return None
    for id in node.inputs:
        if id not in makers or readers[id] != (node,) or graph.value(id).storage != "workspace":
            continue
        host = nodes[makers[id]]
        if _takes(graph, host, node):
            return host
    return None


def _is_step(graph: Graph, node: Node) -> bool:
    if node.kind not in ("Compute", "Cast") or node.domain != "point" or node.attr("own"):
        return False
    out = graph.root(node.output)
    return len(node.outputs) == 1 and len(node.inputs) <= MOST_READS and out.alias_of is None


def _takes(graph: Graph, host: Node, node: Node) -> bool:
    made, out = graph.value(host.output), graph.value(node.output)
    finishes = host.attr("finishes")
    values = [*map(graph.value, node.inputs), out, made]
    extras = [id for id in node.inputs if id != made.id and id not in host.inputs]
    used = len(host.inputs) - host.attr("reads_itself", len(host.inputs)) + len(extras)
    return (
        made.size > 0
        and len(steps_of(host)) < MOST_STEPS
        and used <= MOST_EXTRAS
        and all(value.shape == made.shape and value.dtype.name in finishes for value in values)
        and not {graph.root(id).id for id in host.inputs} & {graph.root(out.id).id}
        # Through a view a step would read elements that are not made yet.
        and graph.root(made.id).id not in {graph.root(id).id for id in extras}
    )


def _joined(graph: Graph, host: Node, node: Node) -> Node:
    """The host with one more step, which writes what the node wrote."""
    made, out, steps = graph.value(host.output), graph.value(node.output), steps_of(host)
    own = host.attr("reads_itself", len(host.inputs))
    inputs, places = list(host.inputs), []
    for id in node.inputs:
        if id == made.id:
            places.append(-1 - len(steps))
            continue
        if id not in inputs[own:]:
            inputs.append(id)
        places.append(inputs.index(id, own))
    params = tuple(node.attr("params", ()))
    step = ResultStep(
        node.name,
        node.kind,
        node.attr("kernel", ""),
        node.attr("result_dtype") or "",
        node.attr("reads") or "",
        out.dtype.name,
        out.dtype.itemsize,
        len(params),
        tuple(places),
    )
    attrs = dict(host.attrs) | {
        "then": (*steps, step),
        "reads_itself": own,
        "sums": host.attr("sums", (made.dtype.name, made.dtype.itemsize)),
        "params": (*host.attr("params", ()), *params),
        # Results may be summed up where they are written: then steps read the operands afterwards.
        "in_place": [index for index in host.attr("in_place", ()) if index < own],
    }
    return replace(host, inputs=tuple(inputs), outputs=node.outputs, attrs=freeze_attrs(attrs))


# --- Back -----------------------------------------------------------------------------------------


def unfold_results(graph: Graph) -> Graph:
    """The graph with every step on results as a node of its own.

    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4, 4), f32), b.output("out", (4, 4), f32)
    >>> options = {"domain": "opaque", "finishes": ("float32",)}
    >>> made = b.compute("mm", [x, x], (4, 4), f32, **options)
    >>> b.view_copy(b.compute("relu", [made], (4, 4), f32), out)
    >>> folded, notes = fold_results(b.build())
    >>> print(*notes)
    relu: becomes part of mm, nothing else reads its result
    >>> [node.name for node in unfold_results(folded).nodes]
    ['mm', 'relu', 'out_view_copy']
    """
    if not any(node.attr("then") for node in graph.nodes):
        return graph
    draft = Rewriter(graph)
    nodes = [one for node in graph.nodes for one in _unfolded(graph, draft, node)]
    return draft.rebuilt(nodes)


def _unfolded(graph: Graph, draft: Rewriter, node: Node) -> Iterator[Node]:
    steps = steps_of(node)
    if not steps:
        yield node
        return
    out, own = graph.value(node.output), node.attr("reads_itself")
    params = node.attr("params", ())
    first = len(params) - sum(step.numbers for step in steps)
    made = [_intermediate(draft, out, node.name, DType(*node.attr("sums")))]
    kept = {key: value for key, value in node.attrs if key not in ("then", "reads_itself", "sums")}
    attrs = freeze_attrs(_without_nothing(kept | {"params": params[:first]}))
    yield replace(node, inputs=node.inputs[:own], outputs=(made[0].id,), attrs=attrs)
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        dtype = DType(step.dtype, step.itemsize)
        made.append(out if last else _intermediate(draft, out, step.name, dtype))
        inputs = tuple([node.inputs[i] if i >= 0 else made[-1 - i].id for i in step.inputs])
        options = {
            "kernel": step.kernel,
            "result_dtype": step.result_dtype,
            "reads": step.reads,
            "params": params[first : first + step.numbers],
            "origin": node.origin,
        }
        first += step.numbers
        yield Node(
            step.name, step.kind, inputs, (made[-1].id,), freeze_attrs(_without_nothing(options))
        )


def _without_nothing(attrs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if value not in ("", ())}


def _intermediate(draft: Rewriter, like: Value, name: str, dtype: DType) -> Value:
    return draft.add(
        replace(
            like,
            name=name,
            dtype=dtype,
            strides=contiguous_strides(like.shape),
            offset=0,
            storage="workspace",
            alias_of=None,
            note="",
        )
    )
