"""A graph as an ONNX model: for viewers of such models, not for running, as no kernel is known here.

Nodes belong to the domain `aclnn.graph` and have their kind as operator type; their attributes, the
names of the values they read, and, where a plan is given, the place of their result in the
workspace are ONNX attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..extras import need
from ..names import Names
from .repeats import arguments
from .text import attr_value_words, storage_words

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..planner.plan import Buffer, WorkspacePlan

DOMAIN = "aclnn.graph"
_ELEMENTS = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
}


def graph_to_onnx(graph: Graph, plan: WorkspacePlan | None = None) -> bytes:
    """The serialised model; needs the package onnx."""
    onnx = need("onnx", "ONNX models")
    helper = onnx.helper

    def info(value: Value) -> Any:
        element = element_type(onnx, value.dtype.name)
        return helper.make_tensor_value_info(value.name, element, list(value.shape))

    buffers = buffers_by_name(plan)
    made = helper.make_graph(
        [_made(helper, graph, entry, buffers) for entry in _entries(graph)],
        "executor",
        [info(value) for value in arguments(graph)],
        [info(graph.value(id)) for id in graph.outputs],
        value_info=[
            info(graph.value(id))
            for node in graph.nodes
            for id in node.outputs
            if graph.value(id).storage != "output"
        ],
    )
    imports = [helper.make_opsetid(DOMAIN, 1), helper.make_opsetid("", 17)]
    model = helper.make_model(made, producer_name=DOMAIN, opset_imports=imports, ir_version=8)
    if plan is not None:
        helper.set_model_props(model, plan_facts(plan))
    return model.SerializeToString()


def element_type(onnx: Any, dtype: str) -> int:
    """ONNX's number of a dtype; that of a byte where it has none."""
    element = _ELEMENTS.get(dtype, dtype.upper())
    return getattr(onnx.TensorProto, element, onnx.TensorProto.UINT8)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A node of the model; without `node` it gathers the parts of a value that were written."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: Node | None = None


def _entries(graph: Graph) -> Iterator[_Entry]:
    """The nodes of the model.

    In ONNX a tensor is made once, and as a whole: where parts of a value were written, a node of
    kind Parts gathers them before the value is read, and at the end.
    """
    left = Counter(graph.root(id).id for node in graph.nodes for id in node.outputs)
    names = Names([value.name for value in graph.values])
    latest: dict[int, str] = {}
    pending: dict[int, list[str]] = {}

    def gathered(root: int) -> Iterator[_Entry]:
        parts = (*([latest[root]] if root in latest else []), *pending.pop(root))
        name = graph.value(root).name
        latest[root] = names.fresh(name) if left[root] else name
        yield _Entry(parts, (latest[root],))

    for node in graph.nodes:
        read = [graph.root(id).id for id in node.inputs]
        for root in dict.fromkeys(read):
            yield from gathered(root) if root in pending else ()
        reads = tuple([latest.get(root, graph.value(root).name) for root in read])
        yield _Entry(reads, tuple([graph.value(id).name for id in node.outputs]), node)
        for id in node.outputs:
            root = graph.root(id).id
            left[root] -= 1
            if id != root:
                pending.setdefault(root, []).append(graph.value(id).name)
    for root in list(pending):
        yield from gathered(root)


def _made(helper: Any, graph: Graph, entry: _Entry, buffers: dict[str, Buffer]) -> Any:
    if entry.node is None:
        return helper.make_node("Parts", entry.inputs, entry.outputs, domain=DOMAIN)
    name = entry.node.name
    made = helper.make_node(entry.node.kind, entry.inputs, entry.outputs, name=name, domain=DOMAIN)
    # Not as keywords: a node may have attributes such as domain.
    facts = _attributes(graph, entry.node, buffers)
    made.attribute.extend(
        helper.make_attribute(key, fact) for key, fact in sorted(facts.items()) if fact != []
    )
    return made


def _attributes(graph: Graph, node: Node, buffers: dict[str, Buffer]) -> dict[str, Any]:
    found: dict[str, Any] = {key: _plain(value) for key, value in node.attrs}
    sources = [graph.value(id) for id in node.inputs]
    found["reads"] = [str(value) for value in sources]
    found["read_names"] = [value.name for value in sources]
    found["read_strides"] = [",".join(map(str, value.strides)) for value in sources]
    found["bytes_read"] = graph.bytes_read(node)
    found["bytes_written"] = graph.bytes_written(node)
    for index, value in enumerate(map(graph.value, node.outputs)):
        tail = f"_{index}" if index else ""
        facts = _facts_of_result(graph, value, buffers)
        found |= {f"{key}{tail}": fact for key, fact in facts.items()}
    return found


def facts_of(graph: Graph, node: Node, buffers: dict[str, Buffer]) -> dict[str, str]:
    """Facts about a node, as the metadata of a node of another kind."""
    found = {"node": node.name, **_attributes(graph, node, buffers)}
    return {
        key: ", ".join(map(str, fact)) if isinstance(fact, list | tuple) else str(fact)
        for key, fact in found.items()
    }


def _facts_of_result(graph: Graph, out: Value, buffers: dict[str, Buffer]) -> dict[str, Any]:
    """Facts about a result, which several results of a node have by number."""
    found: dict[str, Any] = {
        "writes": str(out),
        "storage": out.storage,
        "nbytes": out.nbytes,
        "place": storage_words(graph, out),
    }
    if out.strides:
        found["strides"] = list(out.strides)
    buffer = buffers.get(out.name) or buffers.get(graph.root(out.id).name)
    if buffer is None:
        return found
    return found | {
        "plan_offset": buffer.offset,
        **({"plan_output": buffer.output} if buffer.output else {}),
        "plan_bytes": buffer.padded,
        "plan_padding": buffer.padded - buffer.nbytes,
        "plan_first_step": buffer.first,
        "plan_last_step": buffer.last,
        "plan_shares_with": buffer.sharing,
    }


def buffers_by_name(plan: WorkspacePlan | None) -> dict[str, Buffer]:
    """The buffers that hold values: their own, or those of the tiles of their loops."""
    buffers = plan.buffers if plan else ()
    tiles = {part.name: buffer for buffer in buffers for part in buffer.parts}
    return tiles | {buffer.name: buffer for buffer in buffers}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float | str) else attr_value_words(value)


def plan_facts(plan: WorkspacePlan) -> dict[str, str]:
    names = ["size", "lower_bound", "gap", "naive_size", "bucket_size", "strategy", "proof"]
    names += ["peak_step", "peak_bytes", "fragmentation"]
    return {f"workspace_{name}": str(getattr(plan, name)) for name in names}
