"""Forward and backward graphs of a function, with what the one keeps for the other.

Autograd's calls are recorded together with the function's own. Calls that depend on gradients of results are the
backward graph, and elementwise ones that they alone read; values of the others that it reads are kept by the
forward graph, but for views, which are made again of what they show.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule

from aclnn.torch.counterparts import is_pointwise, view_of
from aclnn.torch.expansion import expanded

aten = torch.ops.aten
_BY_NUMBER = (aten.pow.Tensor_Scalar, aten.mul.Scalar, aten.mul.Tensor)


class Joint(NamedTuple):
    """Two graphs of one function.

    Attributes
    ----------
    forward : GraphModule
        From the inputs to the results, followed by what it keeps.
    backward : GraphModule
        From the inputs that it reads, what was kept, and the gradients of results to those of inputs.
    read : tuple of int
        The inputs that the backward graph reads.
    """

    forward: GraphModule
    backward: GraphModule
    read: tuple[int, ...]


def gradient_graph(
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    needed: Sequence[bool],
    given: Sequence[bool],
    grads: Sequence[torch.Tensor],
) -> tuple[GraphModule, int]:
    """The calls of a function and of its gradient, and how many results it has.

    The graph takes the inputs and the gradients of the results that have one, and gives the results and the
    gradients of the inputs that are needed, None where an input has no influence.
    """
    count = len(inputs)
    several = 0

    def both(*tensors: torch.Tensor) -> Any:
        nonlocal several
        own = [one.detach() for one in tensors[:count]]
        wanted = [one.requires_grad_() for one, n in zip(own, needed, strict=True) if n]
        with torch.enable_grad():
            made = function(*own)
        results = [made] if isinstance(made, torch.Tensor) else list(made)
        several = len(results)
        read = itertools.compress(results, given)
        pairs = [p for p in zip(read, tensors[count:], strict=True) if p[0].requires_grad]
        found = torch.autograd.grad(
            [y for y, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True
        )
        return [*results, *found]

    graph = expanded(both, [*inputs, *grads])
    for node in list(graph.graph.nodes):
        if node.target is aten.detach.default or _gives_its_operand(node):
            node.replace_all_uses_with(node.args[0])
    graph.graph.eliminate_dead_code()
    return graph, several


def _gives_its_operand(node: Node) -> bool:
    """Whether a call is a first power or a product with 1, as derivatives of squares have them; none of results,
    which are no inputs."""
    if node.target not in _BY_NUMBER or type(node.args[1]) not in (int, float) or node.args[1] != 1:
        return False
    if any(user.op == "output" for user in node.users):
        return False
    made, operand = node.meta["val"], node.args[0].meta["val"]
    return made.dtype == operand.dtype and made.stride() == operand.stride()


def divided(graph: GraphModule, n_inputs: int, n_results: int) -> Joint:
    """Divide what `gradient_graph` gives into forward and backward.

    Parameters
    ----------
    graph : GraphModule
    n_inputs : int
        How many of its inputs are the function's; the others are gradients of results.
    n_results : int
    """
    nodes = list(graph.graph.nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    (outputs,) = nodes[-1].args
    results, gradients = list(outputs[:n_results]), list(outputs[n_results:])
    late = set(places[n_inputs:])
    for node in nodes:
        if not late.isdisjoint(node.all_input_nodes) and node.op != "output":
            late.add(node)
    _delay(nodes, late, results)
    kept = _kept_for([n for n in nodes if n in late or n in gradients], late)
    inputs = places[:n_inputs]
    read = tuple([n for n, place in enumerate(inputs) if place in kept])
    values = [node for node in nodes if node in kept and node.op != "placeholder"]
    forward = _part_of(graph, inputs, [*results, *values])
    backward = _part_of(graph, [*[inputs[n] for n in read], *values, *places[n_inputs:]], gradients)
    return Joint(forward, backward, read)


def _delay(nodes: Sequence[Node], late: set[Node], results: Sequence[Any]) -> None:
    """Make elementwise calls late that late ones alone read, where no more is kept then.

    They run in the loops of what reads them: of a square's derivative x is kept, and not 2 * x as well.
    """
    early = set(results)
    for node in reversed(nodes):
        if node in early or not early.isdisjoint(node.users):
            early.add(node)
    for node in reversed(nodes):
        if node in early or node in late or not node.users or not late.issuperset(node.users):
            continue
        if _is_remade(node):
            late.add(node)
            continue
        if node.op != "call_function" or not is_pointwise(node.target):
            continue
        more = [
            one
            for one in node.all_input_nodes
            if one.op == "call_function" and late.isdisjoint(one.users)
        ]
        if sum(map(_size_of, more)) <= _size_of(node):
            late.add(node)


def _size_of(node: Node) -> int:
    """Bytes of a value."""
    value = node.meta["val"]
    return int(value.numel() * value.element_size())


def _kept_for(readers: Sequence[Node], late: set[Node]) -> set[Node]:
    """The inputs and early values that late nodes read, directly or by views."""
    kept: set[Node] = set()
    left = [
        source
        for node in readers
        for source in ([node] if node not in late else node.all_input_nodes)
    ]
    seen: set[Node] = set()
    while left:
        node = left.pop()
        if node in late or node in seen or node.op == "get_attr":
            continue
        seen.add(node)
        if _is_remade(node):
            left += node.all_input_nodes
        else:
            kept.add(node)
    return kept


def _is_remade(node: Node) -> bool:
    """Whether the backward graph makes a value again: a view, or what depends on nothing."""
    if node.op != "call_function":
        return False
    return view_of(node.target) is not None or not node.all_input_nodes


def _part_of(owner: GraphModule, inputs: Sequence[Node], outputs: Sequence[Any]) -> GraphModule:
    """The nodes between these inputs and outputs as a graph of its own."""
    graph = Graph()
    known: dict[Node, Node] = {}
    for place, node in enumerate(inputs):
        known[node] = graph.placeholder(f"arg{place}_1")
        known[node].meta = dict(node.meta)
    needed: set[Node] = set()
    left = [one for one in outputs if isinstance(one, Node)]
    while left:
        node = left.pop()
        if node not in needed and node not in known:
            needed.add(node)
            left += node.all_input_nodes
    for node in owner.graph.nodes:
        if node in needed:
            known[node] = graph.node_copy(node, known.__getitem__)
    graph.output(tuple([known[one] if isinstance(one, Node) else one for one in outputs]))
    return _LazyGraphModule(owner, graph)
