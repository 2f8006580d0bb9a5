"""Comparison of executors with PyTorch: the first node whose results differ."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from aclnn.differences import LIMIT, distance
from aclnn.torch.counterparts import view_of
from aclnn.torch.effects import is_write
from aclnn.torch.graphs import value_of
from aclnn.torch.partitions import Part, modules_of
from aclnn.torch.private import tree_leaves

AT_ONCE = 500  # results of nodes that one executor gives


class Difference(NamedTuple):
    """Distance of a node's result from PyTorch's, in units in the last place of the largest element."""

    node: str
    operator: str
    ulp: float
    modules: tuple[str, ...]

    def __str__(self) -> str:
        where = f" in {' / '.join(self.modules)}" if self.modules else ""
        return f"{self.node} ({self.operator}){where}: {self.ulp:.3g} ULP"


class Checked:
    """A part that PyTorch runs as well, each time, and whose results are compared.

    The first call compares every node's results, later ones those of the part, and every node's where they differ.

    Attributes
    ----------
    nodes : list of Difference
        Of the call that compared nodes last.
    largest : float
        The largest difference of any result of the part, so far.
    """

    def __init__(self, part: Part, module: GraphModule):
        self.__name__ = part.__name__
        self.nodes: list[Difference] = []
        self.largest = 0.0
        self._part = part
        self._module = module

    @property
    def workspace_size(self) -> int:
        """Bytes for intermediates."""
        return self._part.workspace_size

    @property
    def first(self) -> Difference | None:
        """The first node that differs."""
        return next((one for one in self.nodes if not one.ulp <= LIMIT), None)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        before = [list(map(_copied, tensors)) for _ in range(2)]
        with torch.no_grad():
            requested = Interpreter(self._module).run(*before[0])  # which writes into these copies
        made = self._part(*tensors)
        far = [
            _distance(one, other)
            for one, other in zip(
                tree_leaves((made, list(tensors))), tree_leaves((requested, before[0])), strict=True
            )
        ]
        worst = max(far, default=0.0)
        if not self.nodes or not worst <= LIMIT:
            self.nodes = list(_differences(self._module, before[1], self.__name__))
        self.largest = max(self.largest, worst)
        if not worst <= LIMIT:
            self._warn(worst)
        return made

    def _warn(self, worst: float) -> None:
        first = self.first
        named = "no node alone does" if first is None else f"the first that differs is {first}"
        warnings.warn(
            f"{self.__name__} differs from PyTorch by {worst:.3g} ULP: {named}",
            RuntimeWarning,
            stacklevel=3,
        )


def _differences(module: GraphModule, inputs: Sequence[Any], name: str) -> Iterator[Difference]:
    """Each node's, in their order."""
    requested = _Values(module)
    with torch.no_grad():
        requested.run(*map(_copied, inputs))
    nodes = [node for node in module.graph.nodes if _is_compared(node)]
    for some in _pieces(nodes):
        made = _part_of(module, some, name)(*map(_copied, inputs))
        for node, one in zip(some, made, strict=True):
            far = _distance(one, requested.found[node])
            yield Difference(
                node.name, str(node.target).removesuffix(".default"), far, tuple(modules_of(node))
            )


def _pieces(nodes: list[Node]) -> Iterator[list[Node]]:
    for first in range(0, len(nodes), AT_ONCE):
        yield nodes[first : first + AT_ONCE]


def _is_compared(node: Node) -> bool:
    """Whether a node computes one tensor, or names one of several."""
    if node.op != "call_function" or is_write(node) or view_of(node.target) is not None:
        return False
    return isinstance(value_of(node), torch.Tensor)


def _part_of(module: GraphModule, nodes: Sequence[Node], name: str) -> Part:
    """A part that gives the results of nodes, and writes nothing."""
    graph = Graph()
    known: dict[Node, Node] = {}
    for node in module.graph.nodes:
        if node.op != "output" and not is_write(node):
            known[node] = graph.node_copy(node, known.__getitem__)
    graph.output(tuple([known[node] for node in nodes]))
    graph.eliminate_dead_code()
    return Part(GraphModule(module, graph), f"{name}_checked", {})


class _Values(Interpreter):
    """Runs a graph and keeps what its nodes give."""

    def __init__(self, module: GraphModule):
        super().__init__(module, garbage_collect_values=False)
        self.found: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        made = super().run_node(n)
        self.found[n] = made
        return made


def _copied(value: Any) -> Any:
    """A copy in memory of its own, of the same layout."""
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        return copy.copy_(value) if 0 not in value.stride() else value.clone()


def _distance(one: Any, other: Any) -> float:
    if not isinstance(one, torch.Tensor):
        return 0.0
    with torch.no_grad():
        pair = [value.detach().contiguous() for value in (one, other)]
    if pair[0].dtype != pair[1].dtype:
        return float("inf")
    if pair[0].dtype == torch.bfloat16:
        import ml_dtypes

        return distance(
            *[value.view(torch.int16).numpy().view(ml_dtypes.bfloat16) for value in pair]
        )
    return distance(*[value.numpy() for value in pair])
