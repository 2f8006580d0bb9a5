"""Which nodes of a graph become part of executors, and why the others do not."""

from __future__ import annotations

import copy
import operator as python
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from aclnn.acl.errors import AclnnError
from aclnn.operators.checks import MAX_DIMS, TensorSpec
from aclnn.torch.counterparts import counterpart, form_of, is_own, view_of
from aclnn.torch.expansion import (
    REASON,
    expansion_of,
    forget_expansion,
    of_alike,
    value_of,
)
from aclnn.torch.schemas import acl_dtype, torch_dtype
from aclnn.torch.speed import Speed
from aclnn.torch.writes import COPY, updates_of, writes_in, writes_of
from aclnn.tracing.array import TracedArray
from aclnn.tracing.trace import Trace

aten = torch.ops.aten
MOST_TENSORS = 800  # of a part: executors take 1,024, some of which are made on the way


class Support(OperatorSupportBase):
    """Says of every node whether an executor does it; `reasons` holds why not, by node.

    Parameters
    ----------
    graph_module : GraphModule
    speed : Speed, optional
        Measured times that decide what is taken; without it all that can be is.
    """

    def __init__(self, graph_module: GraphModule, speed: Speed | None = None):
        self.speed = speed
        self.reasons: dict[Node, str] = {}
        self._taken: dict[Node, bool] = {}
        self.writes = writes_of(graph_module)  # which follow what computes their values
        self._updates = updates_of(self.writes)
        for node in graph_module.graph.nodes:
            if node.op in ("call_function", "call_method"):
                self._look_at(node)

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return self._taken.get(node, False)

    def _look_at(self, node: Node) -> None:
        if _is_one_of_several(node):
            self._taken[node] = self._taken.get(node.args[0], False)
            return
        if node.target is COPY:
            self.reasons[node] = "it writes into what others read, or what they give"
            return
        reason = reason_against(node, None if node in self._updates else self.speed)
        self._taken[node] = reason is None
        if reason is not None:
            self.reasons[node] = reason


def partitions_of(graph_module: GraphModule, support: Support) -> list[Any]:
    """The parts of a graph that become executors, by PyTorch's own partitioner.

    Views at the border stay outside, and parts that gain nothing; `support` hears why.
    """
    partitioner = CapabilityBasedPartitioner(
        graph_module, support, allows_single_node_partition=True, non_compute_ops=[]
    )
    found = []
    with _subscripts_apart(graph_module):
        proposed = partitioner.propose_partitions()
    order = {node: place for place, node in enumerate(graph_module.graph.nodes)}
    for partition in _small_enough(proposed, order):
        nodes = _without_border(list(partition.nodes))
        writes = writes_in(nodes, support.writes)
        nodes += writes
        if not (writes or pays(nodes, support.speed)):  # PyTorch would copy what it writes
            for node in nodes:
                support.reasons.setdefault(node, "alone it takes as long as in PyTorch")
            continue
        partition.nodes = {node: partition.nodes.get(node) for node in nodes}
        found.append(partition)
    for partition in found:
        _show_outside(sorted(partition.nodes, key=order.__getitem__))
    return found


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
    while half < len(nodes) and _is_one_of_several(nodes[half]):  # stays with what makes it
        half += 1
    if half == len(nodes):
        return [nodes]
    return [*_pieces(nodes[:half]), *_pieces(nodes[half:])]


@contextmanager
def _subscripts_apart(graph_module: GraphModule) -> Iterator[None]:
    """Call subscripts of tensors otherwise than those of tuples.

    The partitioner moves each subscript to the part of what it is of, and for ever to and fro if it
    is of two nodes: a tensor, and another one that is its index.
    """
    nodes = [
        node
        for node in graph_module.graph.nodes
        if node.target is python.getitem and isinstance(value_of(node.args[0]), torch.Tensor)
    ]
    for node in nodes:
        node.target = _subscript
    try:
        yield
    finally:
        for node in nodes:
            node.target = python.getitem


def _subscript(tensor: Any, key: Any) -> Any:
    return tensor[key]


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
    made = node.args[0] if _is_one_of_several(node) else node
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
            forget_expansion(user)


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


def pays(nodes: list[Node], speed: Speed | None) -> bool:
    """Whether an executor of these nodes is faster than PyTorch's own kernels one by one."""
    calls = [one for node in nodes for one in expansion_of(node) or () if _computes(one)]
    if speed is None or any(is_own(one.target) for one in calls):
        return bool(calls)
    tracked = any(is_tracked(value_of(node)) for node in nodes)
    return speed.pays(calls, sum(map(is_view, nodes)), tracked)


def is_tracked(value: Any) -> bool:
    """Whether gradients of a value are wanted, or of one of several."""
    several = value if isinstance(value, tuple | list) else [value]
    return any(isinstance(one, torch.Tensor) and one.requires_grad for one in several)


def _computes(call: Node) -> bool:
    """Whether a call does more than show an operand in another way."""
    return view_of(call.target) is None and counterpart(call.target) is not None


def _is_one_of_several(node: Node) -> bool:
    if node.target is not python.getitem or type(node.args[1]) is not int:
        return False
    return isinstance(value_of(node.args[0]), tuple | list)


def is_view(node: Node) -> bool:
    """Whether a node only shows an operand in another way, or one of several views."""
    if _is_one_of_several(node):
        return is_view(node.args[0])
    found = expansion_of(node)
    if found is None:
        return False
    targets = [one.target for one in found if one.target is not python.getitem]
    return all(view_of(target) is not None for target in targets)


def reason_against(node: Node, speed: Speed | None) -> str | None:
    """Why an executor does not do a node; None if it does."""
    if isinstance(value_of(node), tuple | list) and not all(map(_is_one_of_several, node.users)):
        return "its results cannot be distinguished"
    found = expansion_of(node)
    if found is None:
        return "what it calls is not known"
    if not found:  # it gives what it is given, as dropout does where nothing is trained
        return _reason_against_tensor(value_of(node))
    tracked = is_tracked(value_of(node))
    for one in found:
        reason = _known_reason(one) or _reason_of_speed(one, speed, tracked)
        if reason is not None:
            return reason
    return None


def _known_reason(call: Node) -> str | None:
    """Known reason against a call, looked up where nodes that are alike share their calls."""
    if REASON not in call.meta:
        call.meta[REASON] = of_alike(call, REASON, lambda: _reason_against_call(call))
    return call.meta[REASON]


def _reason_against_call(call: Node) -> str | None:
    """Why no executor can do a call of one of ATen's operators."""
    if call.target is python.getitem:
        return None
    if view_of(call.target) is None and counterpart(call.target) is None:
        return "no operator of ours does it"
    for value in [call, *call.all_input_nodes]:
        for tensor in _tensors_of(value):
            if reason := _reason_against_tensor(tensor):
                return reason
    return _reason_of_trial(call)


def _reason_of_speed(call: Node, speed: Speed | None, tracked: bool) -> str | None:
    """Why an executor should not do a call that it can do."""
    if speed is None or not _computes(call) or is_own(call.target):
        return None
    cost = speed.is_slower(call, tracked)
    if cost is None:
        return None
    return f"PyTorch's kernel is faster: {cost.theirs:.3g} µs, ours {cost.ours:.3g}"


def _tensors_of(node: Node) -> list[Any]:
    value = value_of(node)
    return list(value) if isinstance(value, tuple | list) else [value]


def _reason_against_tensor(value: Any) -> str | None:
    if not isinstance(value, torch.Tensor):
        return "it works on something that is no tensor"
    if value.device.type != "cpu":
        return f"it is on {value.device.type}, not the CPU"
    if value.layout is not torch.strided or value.ndim > MAX_DIMS:
        return "its layout is not one of strides, or it has too many dimensions"
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
    wanted = _tensors_of(node)
    several = list(made) if isinstance(made, tuple) else [made]
    for one, tensor in zip(several, wanted, strict=True):
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
