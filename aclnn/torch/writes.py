"""Writes into a graph's inputs: of a functional graph, copies at its end.

AOTAutograd lets a cache that is written be a value of its own, which is copied into the input at last. A part that
computes the value and copies it writes in place. It may be the one that reads the input last: so all that reads
it has to be in the same part.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.folding import seen_by_callers

COPY = torch.ops.aten.copy_.default


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
