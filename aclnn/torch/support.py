"""Which nodes of a graph become part of executors, and why the others do not."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.fx import GraphModule, Node

from aclnn.acl.errors import AclnnError
from aclnn.operators.checks import MAX_DIMS, TensorSpec
from aclnn.torch.counterparts import counterpart, form_of, is_own, view_of
from aclnn.torch.effects import (
    COPY,
    is_in_place,
    kept_order,
    note_order,
    updates_of,
    writes_in,
    writes_of,
)
from aclnn.torch.graphs import is_one_of_several, key_of, value_of, values_of
from aclnn.torch.private import CapabilityBasedPartitioner, OperatorSupportBase
from aclnn.torch.schemas import acl_dtype, torch_dtype
from aclnn.tracing.array import TracedArray
from aclnn.tracing.recording import Trace

aten = torch.ops.aten
MOST_TENSORS = 3200  # of a part: executors take 4,096, some of which are made on the way


class Choice(Protocol):
    """Says what executors should do of what they can."""

    def reason_against(self, node: Node) -> str | None:
        """Why a call should stay with PyTorch, be it in a chain."""

    def pays(self, calls: Sequence[Node], n_views: int) -> bool:
        """Whether a part that makes these calls, and views between them, is faster than PyTorch."""


class Everything:
    """Takes all that executors can do."""

    def reason_against(self, node: Node) -> str | None:
        """Nothing is against it."""
        return None

    def pays(self, calls: Sequence[Node], n_views: int) -> bool:
        """Whether there is a call."""
        return bool(calls)


class Support(OperatorSupportBase):
    """Says of every node whether an executor does it; `reasons` holds why not, by node.

    Parameters
    ----------
    graph_module : GraphModule
        Of ATen's operators.
    choice : Choice
    known : dict
        Reasons against calls, or None, which graphs share: layers repeat.
    """

    def __init__(
        self, graph_module: GraphModule, choice: Choice, known: dict[Any, str | None]
    ) -> None:
        self.choice = choice
        self.reasons: dict[Node, str] = {}
        self._known = known
        self._taken: dict[Node, bool] = {}
        self.writes = writes_of(graph_module)  # which follow what computes their values
        self._updates = updates_of(self.writes)
        for node in graph_module.graph.nodes:
            if node.op == "call_function":
                self._look_at(node)

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return self._taken.get(node, False)

    def _look_at(self, node: Node) -> None:
        if is_one_of_several(node):
            self._taken[node] = self._taken.get(node.args[0], False)
            return
        reason = self._reason_against(node)
        self._taken[node] = reason is None
        if reason is not None:
            self.reasons[node] = reason

    def _reason_against(self, node: Node) -> str | None:
        """Why an executor does not do a node; None if it does."""
        if node.target is COPY:
            return "it writes into what others read"
        reason = self._known_reason(node)
        if reason is not None or node in self._updates or not _computes(node):
            return reason
        return None if is_own(node.target) else self.choice.reason_against(node)

    def _known_reason(self, node: Node) -> str | None:
        """Why no executor can do a call, which is looked up where one like it was looked at."""
        if isinstance(value_of(node), tuple | list) and not all(map(is_one_of_several, node.users)):
            return "its results cannot be distinguished"
        if _orders_equal_elements(node):
            return "the order of equal elements is PyTorch's own"
        key = key_of(node)
        if key is None:
            return reason_against_call(node)
        if key not in self._known:
            self._known[key] = reason_against_call(node)
        return self._known[key]


def _orders_equal_elements(node: Node) -> bool:
    """Whether a node gives indices of a sort that need not be stable: eager calls have an order of their own."""
    if node.target is aten.argsort.default:
        return True
    if node.target is aten.sort.stable:
        unstable = node.kwargs.get("stable") is not True
    else:
        unstable = node.target is aten.sort.default
    return unstable and any(one.args[1] == 1 for one in node.users)


def partitions_of(graph_module: GraphModule, support: Support) -> list[Any]:
    """The parts of a graph that become executors, by PyTorch's own partitioner.

    Views at the border stay outside, and parts that gain nothing; `support` hears why.
    """
    note_order(graph_module)
    with kept_order(graph_module):  # it looks at what depends on what when it is made
        partitioner = CapabilityBasedPartitioner(
            graph_module, support, allows_single_node_partition=True, non_compute_ops=[]
        )
        proposed = partitioner.propose_partitions()
    found = []
    order = {node: index for index, node in enumerate(graph_module.graph.nodes)}
    for partition in _small_enough(proposed, order):
        nodes = _without_border(list(partition.nodes))
        writes = writes_in(nodes, support.writes)
        nodes += writes
        if _reads_nothing(nodes):
            for node in nodes:
                support.reasons.setdefault(node, "it reads no tensor")
            continue
        # PyTorch would copy what a part writes in place.
        if not (any(map(is_in_place, writes)) or _pays(nodes, support.choice)):
            for node in nodes:
                support.reasons.setdefault(node, "alone it takes as long as in PyTorch")
            continue
        partition.nodes = {node: partition.nodes.get(node) for node in nodes}
        found.append(partition)
    for partition in found:
        _show_outside(sorted(partition.nodes, key=order.__getitem__))
    return found


def _reads_nothing(nodes: list[Node]) -> bool:
    """Whether a part would be called with nothing, which says by no tensor that it gives tensors."""
    return {one for node in nodes for one in node.all_input_nodes} <= set(nodes)


def _small_enough(proposed: Sequence[Any], order: Mapping[Node, int]) -> Iterator[Any]:
    """Parts of at most as many tensors as an executor takes; larger ones in pieces, one after the other."""
    for partition in proposed:
        nodes = sorted(partition.nodes, key=order.__getitem__)
        for piece in _pieces(nodes):
            made = copy.copy(partition)
            made.nodes = {node: partition.nodes.get(node) for node in piece}
            yield made


def _pieces(nodes: list[Node]) -> list[list[Node]]:
    """Halves of nodes, in their order, until what crosses their borders is not too much."""
    own = set(nodes)
    inputs = {one for node in nodes for one in node.all_input_nodes} - own
    outputs = [node for node in nodes if not own.issuperset(node.users)]
    if len(inputs) + len(outputs) <= MOST_TENSORS:
        return [nodes]
    half = len(nodes) // 2
    while half < len(nodes) and is_one_of_several(nodes[half]):  # stays with what makes it
        half += 1
    if half == len(nodes):
        return [nodes]
    return [*_pieces(nodes[:half]), *_pieces(nodes[half:])]


def _without_border(nodes: list[Node]) -> list[Node]:
    """A part without the views that it is better off without.

    One that it hands out shows what is in memory outside, and would be copied; so would one of a part
    of a result. Others are free inside.
    """
    kept, changed = set(nodes), True
    while changed:
        border = {node for node in kept if is_view(node) and _is_border(node, kept)}
        changed = bool(border)
        kept -= border
    return [node for node in nodes if node in kept]


def _is_border(node: Node, kept: set[Node]) -> bool:
    """Whether a view is at the border: several that one node gives are so together."""
    made = node.args[0] if is_one_of_several(node) else node
    users = _readers_of(made)
    if kept.isdisjoint(made.all_input_nodes):  # it shows an input
        return not kept.issuperset(users)
    return kept.isdisjoint(users) and not _is_whole_result(node, kept)


def _readers_of(node: Node) -> set[Node]:
    """Readers of a node's result, or of one of several."""
    if not isinstance(value_of(node), tuple | list):
        return set(node.users)
    return {user for one in node.users for user in one.users}


def _show_outside(nodes: list[Node]) -> None:
    """Let what is outside of a part have views of its own: the part would hand out copies."""
    kept = set(nodes)
    for node in reversed(nodes):
        outside = [user for user in node.users if user not in kept]
        if not outside or not is_view(node) or _is_whole_result(node, kept):
            continue
        with node.graph.inserting_after(node):
            own = node.graph.node_copy(node)
        for user in outside:
            user.replace_input_with(node, own)


def _is_whole_result(view: Node, kept: set[Node]) -> bool:
    """Whether a view shows all of what a part computes, and nobody else reads that: the result is then
    computed with the view's strides."""
    while is_view(view):
        (source, *others) = view.all_input_nodes
        if others or source not in kept or len(source.users) > 1:
            return False
        shown, seen = value_of(view), value_of(source)
        if not isinstance(shown, torch.Tensor) or not isinstance(seen, torch.Tensor):
            return False
        if shown.numel() != seen.numel():
            return False
        view = source
    return True


def _pays(nodes: list[Node], choice: Choice) -> bool:
    """Whether an executor of these nodes is faster than PyTorch's own kernels one by one."""
    calls = [node for node in nodes if _computes(node)]
    if any(is_own(one.target) for one in calls):
        return True
    return choice.pays(calls, sum(map(is_view, nodes)))


def _computes(call: Node) -> bool:
    """Whether a call does more than show an operand in another way."""
    return view_of(call.target) is None and counterpart(call.target) is not None


def is_view(node: Node) -> bool:
    """Whether a node only shows an operand in another way, or one of several views."""
    return is_view(node.args[0]) if is_one_of_several(node) else view_of(node.target) is not None


def reason_against_call(node: Node) -> str | None:
    """Why no executor can do a call of one of ATen's operators."""
    if view_of(node.target) is None and counterpart(node.target) is None:
        return "no operator of ours does it"
    for one in [node, *node.all_input_nodes]:
        for tensor in values_of(one):
            if tensor is None and one is node:
                continue  # a gradient that is not wanted
            if reason := _reason_against_tensor(tensor):
                return reason
    return _reason_of_trial(node)


def _reason_against_tensor(value: Any) -> str | None:
    if not isinstance(value, torch.Tensor):
        return "it works on something that is no tensor"
    if value.device.type != "cpu":
        return f"it is on {value.device.type}, not the CPU"
    if value.layout is not torch.strided or value.ndim > MAX_DIMS:
        return "its layout is not one of strides, or it has too many dimensions"
    if value.is_neg() or value.is_conj():
        return "it shows numbers negated or conjugated"
    if not all(isinstance(size, int) for size in value.shape):
        return "its shape depends on data"
    try:
        acl_dtype(value.dtype)
    except KeyError:
        return f"no operator takes {value.dtype}"
    return None


def _reason_of_trial(node: Node) -> str | None:
    """Record the node alone, and compare its results with what PyTorch expects."""
    try:
        made = traced_alone(node)
    except (AclnnError, NotImplementedError, TypeError, ValueError) as error:
        return str(error).split("\n")[0]
    requested = values_of(node)
    several = list(made) if isinstance(made, tuple) else [made]
    if len(several) != len(requested):
        return f"it would give {len(several)} results, not {len(requested)}"
    for one, tensor in zip(several, requested, strict=True):
        if tensor is None:
            continue
        if not isinstance(one, TracedArray) and node.target is not aten.scalar_tensor.default:
            return "it gives what is no array"
        if one.shape != tuple(tensor.shape):
            return f"its result would have shape {one.shape}, not {tuple(tensor.shape)}"
        dtype = torch_dtype(acl_dtype(tensor.dtype))
        if one.dtype.name != str(dtype).removeprefix("torch."):
            return f"its result would be {one.dtype}, not {dtype}"
    return None


def traced_alone(node: Node) -> Any:
    """The results of one node on arrays that stand for its inputs."""
    trace = Trace("node", TracedArray, traced_alone)

    def stand_in(source: Node) -> Any:
        return TracedArray(trace.argument(source.name, spec_of_tensor(value_of(source))))

    args = torch.fx.map_arg(node.args, stand_in)
    return form_of(node.target)(*args, **torch.fx.map_arg(node.kwargs, stand_in))


def spec_of_tensor(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(acl_dtype(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()))
