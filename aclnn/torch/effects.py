"""Effects of a graph: random numbers that it draws, and what it copies into its inputs.

Parts are moved, and so are the nodes between them. What has an effect keeps its place among its like, and inputs are
written after everything that reads them: for as long as parts are looked for, nodes have operands that say so.

AOTAutograd lets a cache that is written be a value of its own, which is copied into the input at last. A part that
computes the value and copies it writes in place, if all that reads the input is in this part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.graphs import is_one_of_several
from aclnn.torch.private import OperatorBase, OpOverload, sort_nodes

COPY = torch.ops.aten.copy_.default
AFTER = "aclnn_after"  # the operand, and a place in `meta`
COPIES = "aclnn_copies"  # in `meta` of a write, whether its value is memory of its own as well


def is_write(node: Node) -> bool:
    """Whether a node copies a value into an input of its graph."""
    return node.target is COPY and node.args[0].op == "placeholder"


def has_effect(node: Node) -> bool:
    """Whether a node does more than compute a value of its operands: it draws numbers, or writes, or nobody knows."""
    if node.op != "call_function" or not isinstance(node.target, OperatorBase):
        return False
    if not isinstance(node.target, OpOverload):
        return True
    is_random = torch.Tag.nondeterministic_seeded in node.target.tags
    return is_random or node.target._schema.is_mutable


def note_order(graph_module: GraphModule) -> None:
    """Let nodes with effects know which place they have."""
    for index, node in enumerate(filter(has_effect, graph_module.graph.nodes)):
        node.meta[AFTER] = index


@contextmanager
def kept_order(graph_module: GraphModule) -> Iterator[None]:
    """Let nodes with effects depend on those before them, and writes on what reads the inputs.

    The graph may be sorted meanwhile, but for that it stays as it is.
    """
    effects = sorted(filter(has_effect, graph_module.graph.nodes), key=lambda one: one.meta[AFTER])
    before: list[Node] = []
    for node in effects:
        if is_write(node):
            after = list(readers_of(node.args[0]) - {node})
        else:
            after, before = before, [node]
        node.kwargs = {**node.kwargs, AFTER: list(map(_read_after, after))}
    yield
    for node in graph_module.graph.nodes:
        if AFTER in node.kwargs:
            node.kwargs = {name: one for name, one in node.kwargs.items() if name != AFTER}


def _read_after(node: Node) -> Node:
    """Operand that says that a node comes after another one: the first of several results.

    PyTorch's partitioner keeps results together with what gives them where nothing else reads that.
    """
    return next(filter(is_one_of_several, node.users), node)


def sort(graph_module: GraphModule) -> None:
    """Sort nodes by what they depend on, order included."""
    with kept_order(graph_module):
        sort_nodes(graph_module)


def readers_of(index: Node) -> set[Node]:
    """The nodes that read a value, or a view of it."""
    found: set[Node] = set()
    left = [index]
    while left:
        for user in left.pop().users:
            if user not in found and user.op != "output":
                found.add(user)
                left += [user] if may_be_view(user) else []
    return found


def may_be_view(node: Node) -> bool:
    """Whether what a node gives may show one of its operands."""
    if node.op != "call_function":
        return False  # parts give memory of their own
    if is_one_of_several(node):
        return True
    if not isinstance(node.target, OpOverload):
        return isinstance(node.target, OperatorBase)
    return any(one.alias_info for one in node.target._schema.returns)


def seen_by_callers(graph_module: GraphModule) -> set[Node]:
    """Results of a graph, and the nodes of which they may be views."""
    found: set[Node] = set()
    left = list(graph_module.graph.output_node().all_input_nodes)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes[:1] if node.target is COPY else shown_by(node)
    return found


def shown_by(node: Node) -> list[Node]:
    """The operands that what a node gives may show."""
    return node.all_input_nodes if may_be_view(node) else []


def writes_of(graph_module: GraphModule) -> list[Node]:
    """The nodes that write into inputs, what parts can do.

    What is handed out besides has to be memory of its own, which they know.
    """
    found = [node for node in graph_module.graph.nodes if is_write(node)]
    handed_out = seen_by_callers(graph_module) if found else set()
    for node in found:
        node.meta[COPIES] = node.args[1] in handed_out
    return found


def is_in_place(write: Node) -> bool:
    """Whether a value that is written into an input is nowhere else."""
    return not write.meta.get(COPIES)


def updates_of(writes: Collection[Node]) -> set[Node]:
    """The writes, and what changes an input's own elements for them: in place neither costs what it does alone."""
    values = {node.args[1]: node.args[0] for node in writes if is_in_place(node)}
    found = {value for value, target in values.items() if target in value.all_input_nodes}
    return found | set(writes)


def writes_in(nodes: Collection[Node], writes: Collection[Node]) -> list[Node]:
    """The writes that a part can do: it computes the value, and is all that reads the input or its views."""
    own = set(nodes)
    return [
        node
        for node in writes
        if node.args[1] in own and own.issuperset(readers_of(node.args[0]) - {node})
    ]
