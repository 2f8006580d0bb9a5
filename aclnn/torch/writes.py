"""Writes of a graph: into its own values, and into its inputs.

What a graph writes into a value of its own, as `ReLU(inplace=True)` does, may as well be a new value. Writes into
inputs are, in a functional graph, copies at its end.

AOTAutograd lets a cache that is written be a value of its own, which is copied into the input at last. A part that
computes the value and copies it writes in place. It may be the one that reads the input last: so all that reads
it has to be in the same part.
"""

from __future__ import annotations

import inspect
import operator as python
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.expansion import CALLED, expansion_of, forget_expansion, value_of
from aclnn.torch.folding import may_be_view, seen_by_callers

COPY = torch.ops.aten.copy_.default
_OPERATORS = {
    python.iadd: python.add,
    python.isub: python.sub,
    python.imul: python.mul,
    python.itruediv: python.truediv,
}
_POINTWISE = frozenset(
    [
        "abs",
        "add",
        "addcdiv",
        "addcmul",
        "celu",
        "clamp",
        "div",
        "elu",
        "exp",
        "hardtanh",
        "leaky_relu",
        "log",
        "masked_fill",
        "mul",
        "neg",
        "pow",
        "reciprocal",
        "relu",
        "rsqrt",
        "rsub",
        "selu",
        "sigmoid",
        "sqrt",
        "square",
        "sub",
        "tanh",
        "threshold",
        "tril",
        "triu",
    ]
)

# --- Values of the graph --------------------------------------------------------------------------


def write_into_new_values(graph_module: GraphModule) -> None:
    """Replace writes into values that the graph made itself by calls that give new ones."""
    order = {node: place for place, node in enumerate(graph_module.graph.nodes)}
    for node in graph_module.graph.nodes:
        call = _call_that_makes(node) if node.op in CALLED and node.args else None
        if call is None or not _is_own(node.args[0], node, order):
            continue
        written = node.args[0]
        before = node.target, node.args, node.kwargs
        node.target, node.args, node.kwargs = call
        forget_expansion(node)
        if not _gives_what_was_written(node, written):
            node.target, node.args, node.kwargs = before
            forget_expansion(node)
            continue
        for user in [one for one in written.users if order[one] > order[node]]:
            user.replace_input_with(written, node)
            forget_expansion(user)


Made = tuple[Any, tuple[Any, ...], Mapping[str, Any]]


def _call_that_makes(node: Node) -> Made | None:
    """The call that gives what a node writes; None for a node that writes nothing, or in another way."""
    if node.target in _OPERATORS:
        return _OPERATORS[node.target], node.args, node.kwargs
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if name.endswith("_") and name[:-1] in _POINTWISE:
        if node.op == "call_method":
            return name[:-1], node.args, node.kwargs
        form = getattr(torch, name[:-1], None)
        return None if form is None else (form, node.args, node.kwargs)
    if (
        node.op != "call_function"
        or getattr(node.target, "__module__", "") != "torch.nn.functional"
    ):
        return None
    try:
        given = inspect.signature(node.target).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):
        return None
    if not given.arguments.get("inplace"):
        return None
    given.arguments["inplace"] = False
    return node.target, given.args, given.kwargs


def _is_own(written: Any, node: Node, order: Mapping[Node, int]) -> bool:
    """Whether a value is the graph's, and nothing shows it that was made before it is written."""
    if not isinstance(written, Node) or written.op not in CALLED or not _is_new(written):
        return False
    if not isinstance(value_of(written), torch.Tensor):
        return False
    earlier = [user for user in written.users if order[user] < order[node]]
    return not any(map(may_be_view, earlier))


def _is_new(node: Node) -> bool:
    """Whether what a node gives is memory of its own, and none of its operands."""
    found = expansion_of(node)
    if not found:
        return False
    result = found[-1] if found[0] is node else found[0].graph.output_node().args[0]
    while isinstance(result, Node) and isinstance(result.target, torch._ops.OpOverload):
        schema = result.target._schema
        if not any(one.alias_info for one in schema.returns):
            return True
        if result is node or schema.is_mutable:
            return False
        result = result.args[0]  # what a view shows
    return False


def _gives_what_was_written(node: Node, written: Node) -> bool:
    """Whether a call gives a new tensor of the dtype and the shape of what it is to be written into."""
    found = expansion_of(node)
    if not found:
        return False
    calls = [one.target for one in found if isinstance(one.target, torch._ops.OpOverload)]
    if any(call._schema.is_mutable for call in calls):
        return False
    made, wanted = value_of(found[-1]), value_of(written)
    if not isinstance(made, torch.Tensor):
        return False
    return made.dtype == wanted.dtype and made.shape == wanted.shape


# --- Inputs ---------------------------------------------------------------------------------------


def is_write(node: Node) -> bool:
    """Whether a node copies a value into an input of its graph."""
    return node.target is COPY and node.args[0].op == "placeholder"


def writes_of(graph_module: GraphModule) -> list[Node]:
    """The nodes that write into inputs.

    What is handed out besides has to be memory of its own, and is left out.
    """
    found = [node for node in graph_module.graph.nodes if is_write(node)]
    if not found:
        return []
    handed_out = seen_by_callers(graph_module)
    return [node for node in found if node.args[1] not in handed_out]


def updates_of(writes: Collection[Node]) -> set[Node]:
    """The writes, and what changes an input's own elements for them: in place neither costs what it does alone."""
    values = {node.args[1]: node.args[0] for node in writes}
    found = {value for value, target in values.items() if target in value.all_input_nodes}
    return found | set(writes)


def writes_in(nodes: Collection[Node], writes: Collection[Node]) -> list[Node]:
    """The writes that a part can do: it computes the value, and is all that reads the input."""
    own = set(nodes)
    return [
        node
        for node in writes
        if node.args[1] in own and own.issuperset(set(node.args[0].users) - {node})
    ]


def move_to_end(graph_module: GraphModule) -> None:
    """Let the writes that are nodes of a graph come last, as they did before parts were put together."""
    output = graph_module.graph.output_node()
    for node in list(graph_module.graph.nodes):
        if is_write(node):
            output.prepend(node)
