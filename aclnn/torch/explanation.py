"""Explanations of the backend: the nodes that it takes, and why it leaves the others."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.checking import Checked
from aclnn.torch.counterparts import view_of
from aclnn.torch.dynamo import Options, compiled_graph
from aclnn.torch.effects import has_effect
from aclnn.torch.freezing import Frozen
from aclnn.torch.graphs import alone, is_one_of_several, key_of
from aclnn.torch.partitions import Part
from aclnn.torch.private import OpOverload, tree_leaves
from aclnn.torch.speed import cost_alone
from aclnn.torch.support import Support

WIDTH = 100  # of lines that list the nodes of an executor


class NodeCost(NamedTuple):
    """Times of a node alone, in µs: here, which is NaN where PyTorch does it, and by PyTorch.

    In an executor it takes less than alone, since it shares the call.
    """

    name: str
    executor: int | None
    ours: float
    theirs: float


@dataclass
class Explanation:
    """Fate of the nodes of a model.

    Attributes
    ----------
    taken : int
        How many nodes executors do.
    folded : int
        How many nodes nobody does: they give the same at each call, or what they are given.
    left : list of (str, str)
        A node that PyTorch does, and the reason why.
    parts : list of tuple of str
        The operators of each executor.
    workspaces : list of int
        The bytes that each executor needs for its intermediates.
    costs : list of NodeCost
        What each node of the graphs takes, here and by PyTorch, measured when it is asked for first.
    differences : list of float
        How far each executor was from PyTorch, in units in the last place, with ``{"check": True}``.
    """

    taken: int = 0
    left: list[tuple[str, str]] = field(default_factory=list)
    parts: list[tuple[str, ...]] = field(default_factory=list)
    _made: dict[int, Part | Checked] = field(default_factory=dict)
    folded: int = 0
    _frozen: list[Frozen] = field(default_factory=list)
    _first: int = 0  # the number of the first executor of the graph that was added last
    _calls: list[tuple[str, int | None, Any]] = field(
        default_factory=list
    )  # and graphs of one node
    _alone: dict[Any, GraphModule] = field(default_factory=dict)  # calls that repeat share one
    _costs: list[NodeCost] | None = None

    @property
    def workspaces(self) -> list[int]:
        """Bytes that each executor needs for its intermediates."""
        made = [self._made.get(number) for number in range(len(self.parts))]
        return [0 if part is None else part.workspace_size for part in made]

    @property
    def costs(self) -> list[NodeCost]:
        """Times of nodes; `print` shows them from then on."""
        if self._costs is None:
            known: dict[int, tuple[float, float]] = {}
            for _, number, module in self._calls:
                if id(module) not in known:
                    known[id(module)] = cost_alone(module, number is not None)
            self._costs = [
                NodeCost(name, number, *known[id(module)]) for name, number, module in self._calls
            ]
        return self._costs

    @property
    def differences(self) -> list[float]:
        """Largest difference of each executor from PyTorch, in units in the last place."""
        made = [self._made.get(number) for number in range(len(self.parts))]
        return [one.largest for one in made if isinstance(one, Checked)]

    @property
    def frozen(self) -> int:
        """Bytes of weights that are laid out once, with ``{"freeze": True}``."""
        return sum(one.size for one in self._frozen)

    def add_frozen(self, graph: Frozen) -> None:
        """Keep a graph whose weights are frozen."""
        self._frozen.append(graph)

    def add_folded(self, count: int) -> None:
        """Count nodes of a graph that are gone."""
        self.folded += count

    def add_executor(self, number: int, part: Part | Checked) -> None:
        """Keep what became of a part of the graph that was added last."""
        self._made[self._first + number] = part

    def add_graph(self, graph: GraphModule, support: Support, parts: Sequence[Any]) -> None:
        """Count the nodes of a graph."""
        self._first = len(self.parts)
        owners = {node: n for n, part in enumerate(parts, self._first) for node in part.nodes}
        taken = owners.keys()
        self.taken += len(taken)
        for part in parts:
            names = [_name(node) for node in part.nodes]
            self.parts.append(tuple([name for name in names if name != "getitem"]))
        for node in graph.graph.nodes:
            if node.op == "call_function":
                self._add_call(node, owners.get(node))
            if node.op == "call_function" and node not in taken:
                reason = support.reasons.get(node, "a view, which takes no executor")
                self.left.append((_name(node), reason))

    def _add_call(self, node: Node, number: int | None) -> None:
        """Keep a call apart from its graph, which changes."""
        if is_one_of_several(node) or view_of(node.target) is not None or has_effect(node):
            return
        key = key_of(node)
        if key is None or key not in self._alone:
            self._alone[key] = alone(node)
        self._calls.append((_name(node), number, self._alone[key]))

    def __str__(self) -> str:
        parts = _counted(len(self.parts), "executor")
        lines = [f"{_counted(self.taken, 'node')} in {parts}, {len(self.left)} left to PyTorch"]
        if self.folded:
            lines[0] += f", {self.folded} folded"
        if self.frozen:
            lines.append(f"  frozen weights: {self.frozen:,} bytes")
        counted = Counter(zip(self.parts, self.workspaces, strict=True))
        for (part, size), n in counted.items():
            room = f"; workspace {size:,} bytes" if size else ""
            line = f"executor: {', '.join(part)}{room}{_times(n)}"
            lines.append(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    "))
        if self.differences:
            lines.append(f"  differences from PyTorch: at most {max(self.differences):.3g} ULP")
        if self._costs is not None:
            lines += _lines_of_costs(self._costs)
        reasons = Counter((name, reason) for name, reason in self.left)
        width = max((len(name) for name, _ in reasons), default=0)
        lines += [f"  {name:{width}}  {reason}{_times(n)}" for (name, reason), n in reasons.items()]
        return "\n".join(lines)

    __repr__ = __str__


def _lines_of_costs(costs: list[NodeCost]) -> list[str]:
    counted = Counter(one._replace(executor=None) for one in costs if one.executor is not None)
    return [
        f"  {one.name}: {one.ours:.3g} µs, PyTorch's kernel {one.theirs:.3g}{_times(n)}"
        for one, n in counted.most_common()
    ]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _times(count: int) -> str:
    return "" if count == 1 else f" (x{count})"


def explain(
    model: Any, *inputs: Any, options: Mapping[str, Any] | None = None, **named: Any
) -> Explanation:
    """Compile a model for inputs, and tell what the backend takes.

    Parameters
    ----------
    model : callable
        A module, or a function of tensors.
    *inputs, **named
        What it is called with. Where something requires grad, the backward graph counts too.
    options : mapping, optional
        As for ``torch.compile(backend="aclnn")``: ``{"take": "all"}`` takes all that executors can do.

    Returns
    -------
    Explanation
        Prints as a table.

    Examples
    --------
    >>> import torch
    >>> import aclnn.torch
    >>> model = torch.nn.Sequential(torch.nn.GELU(), torch.nn.Softmax2d(), torch.nn.PixelShuffle(2))
    >>> found = aclnn.torch.explain(model, torch.ones(1, 4, 2, 2), options={"take": "all"})
    >>> found.taken, found.left
    (2, [('pixel_shuffle', 'no operator of ours does it')])
    """
    found, value = Explanation(), Options.of(options)

    def explaining(graph: GraphModule, example_inputs: Sequence[Any]) -> Any:
        return compiled_graph(graph, example_inputs, value, found)

    result = torch.compile(_anew(model), backend=explaining, dynamic=False)(*inputs, **named)
    tensors = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
    tracked = [one for one in tensors if one.requires_grad]
    leaves = _leaves(model, inputs)
    if tracked and leaves:
        torch.autograd.grad([one.sum() for one in tracked], leaves, allow_unused=True)
    return found


def _anew(model: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls a model, of code that nobody has compiled.

    Dynamo counts compilations by code, which all modules share: it compiles no further ones once it has had enough.
    """

    def call(*inputs: Any, **named: Any) -> Any:
        return model(*inputs, **named)

    call.__code__ = call.__code__.replace()
    return call


def _leaves(model: Any, inputs: Sequence[Any]) -> list[torch.Tensor]:
    own = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    arguments = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)]
    return [one for one in (*own, *arguments) if one.requires_grad]


def _name(node: Any) -> str:
    target = node.target
    if isinstance(target, OpOverload):
        return target._opname
    return str(getattr(target, "__name__", target))
