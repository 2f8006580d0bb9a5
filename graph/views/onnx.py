"""A graph as an ONNX model: for viewers of such models, not for running.

Nodes belong to the domain `aclnn.graph` and have their kind as operator type; their attributes, the
names of the values they read, and, where a plan is given, the place of their result in the
workspace are ONNX attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .extras import need

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
        element = _ELEMENTS.get(value.dtype.name, value.dtype.name.upper())
        number = getattr(onnx.TensorProto, element, onnx.TensorProto.UINT8)
        return helper.make_tensor_value_info(value.name, number, list(value.shape))

    nodes = [
        helper.make_node(
            node.kind,
            [graph.root(id).name for id in node.inputs],
            [graph.value(node.output).name],
            name=node.name,
            domain=DOMAIN,
            **_attributes(graph, node, plan),
        )
        for node in graph.nodes
    ]
    inner = [graph.value(n.output) for n in graph.nodes if n.output not in graph.outputs]
    made = helper.make_graph(
        nodes,
        "executor",
        [info(graph.value(id)) for id in graph.inputs],
        [info(graph.value(id)) for id in graph.outputs],
        value_info=[info(value) for value in inner],
    )
    imports = [helper.make_opsetid(DOMAIN, 1), helper.make_opsetid("", 17)]
    model = helper.make_model(made, producer_name=DOMAIN, opset_imports=imports, ir_version=8)
    if plan is not None:
        helper.set_model_props(model, _plan_facts(plan))
    return model.SerializeToString()


def _attributes(graph: Graph, node: Node, plan: WorkspacePlan | None) -> dict[str, Any]:
    out = graph.value(node.output)
    found: dict[str, Any] = {key: _plain(value) for key, value in node.attrs}
    sources = [graph.value(id) for id in node.inputs]
    found["reads"] = [str(value) for value in sources]
    found["read_names"] = [value.name for value in sources]
    found["read_strides"] = [",".join(map(str, value.strides)) for value in sources]
    found["bytes_read"] = graph.bytes_read(node)
    found["bytes_written"] = graph.bytes_written(node)
    found["writes"] = str(out)
    found["storage"] = out.storage
    found["nbytes"] = out.nbytes
    if out.strides:
        found["strides"] = list(out.strides)
    buffer = _buffer_of(out, plan)
    if buffer is not None:
        found |= {
            "plan_offset": buffer.offset,
            "plan_bytes": buffer.padded,
            "plan_padding": buffer.padded - buffer.nbytes,
            "plan_first_step": buffer.first,
            "plan_last_step": buffer.last,
            "plan_shares_with": buffer.sharing,
        }
    return found


def _buffer_of(value: Value, plan: WorkspacePlan | None) -> Buffer | None:
    """The buffer that holds a value: its own, or the one of the tiles of its loop."""
    for buffer in plan.buffers if plan else ():
        if buffer.name == value.name or any(part.name == value.name for part in buffer.parts):
            return buffer
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float | str) else str(value)


def _plan_facts(plan: WorkspacePlan) -> dict[str, str]:
    names = ["size", "lower_bound", "gap", "naive_size", "bucket_size", "strategy", "proof"]
    names += ["peak_step", "peak_bytes", "fragmentation"]
    return {f"workspace_{name}": str(getattr(plan, name)) for name in names}
