"""What the backend does with a model: the nodes that it takes, and why it leaves the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from aclnn.torch.backend import _boxed, with_executors
from aclnn.torch.support import Support, partitions_of


@dataclass
class Explanation:
    """What became of the nodes of a model.

    Attributes
    ----------
    taken : int
        How many nodes executors do.
    left : list of (str, str)
        A node that PyTorch does, and the reason.
    parts : list of tuple of str
        The operators of each executor.
    """

    taken: int = 0
    left: list[tuple[str, str]] = field(default_factory=list)
    parts: list[tuple[str, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.taken} nodes in {len(self.parts)} executors, {len(self.left)} left to PyTorch"
        ]
        counted = Counter(self.parts)
        lines += [f"  executor: {', '.join(part)}{_times(n)}" for part, n in counted.items()]
        reasons = Counter((name, reason) for name, reason in self.left)
        width = max((len(name) for name, _ in reasons), default=0)
        lines += [f"  {name:{width}}  {reason}{_times(n)}" for (name, reason), n in reasons.items()]
        return "\n".join(lines)

    __repr__ = __str__


def _times(count: int) -> str:
    return "" if count == 1 else f" (x{count})"


def explain(model: Any, *inputs: Any, **named: Any) -> Explanation:
    """Compile a model for inputs, and tell what the backend takes.

    Parameters
    ----------
    model : callable
        A module, or a function of tensors.
    *inputs, **named
        What it is called with. Where something requires grad, the backward graph counts too.

    Returns
    -------
    Explanation
        Prints as a table.

    Examples
    --------
    >>> import torch
    >>> import aclnn.torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())
    >>> with torch.no_grad():
    ...     print(aclnn.torch.explain(model, torch.ones(2, 4)))
    1 nodes in 1 executors, 2 left to PyTorch
      executor: gelu
      t      PyTorch does what it is given to
      addmm  PyTorch's kernel is faster
    """
    found = Explanation()

    def compile_graph(graph: GraphModule, example_inputs: Sequence[Any]) -> Any:
        _count(graph, found)
        return _boxed(with_executors(graph, {}).forward)

    def explaining(graph: GraphModule, example_inputs: Sequence[Any]) -> Any:
        return aot_autograd(fw_compiler=compile_graph)(graph, example_inputs)

    torch._dynamo.reset()
    result = torch.compile(model, backend=explaining)(*inputs, **named)
    tensors = [x for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
    tracked = [one for one in tensors if one.requires_grad]
    if tracked:
        torch.autograd.grad(
            [one.sum() for one in tracked], _leaves(model, inputs), allow_unused=True
        )
    return found


def _leaves(model: Any, inputs: Sequence[Any]) -> list[torch.Tensor]:
    own = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    given = [x for x in torch.utils._pytree.tree_leaves(inputs) if isinstance(x, torch.Tensor)]
    return [one for one in (*own, *given) if one.requires_grad]


def _count(graph: GraphModule, found: Explanation) -> None:
    support = Support(graph)
    parts = partitions_of(graph, support)
    taken = {node for part in parts for node in part.nodes}
    found.taken += len(taken)
    for part in parts:
        found.parts.append(tuple([_name(node) for node in part.nodes if _name(node) != "getitem"]))
    for node in graph.graph.nodes:
        if node.op == "call_function" and node not in taken:
            reason = support.reasons.get(node, "PyTorch does what it is given to")
            found.left.append((_name(node), reason))


def _name(node: Any) -> str:
    target = node.target
    return target._opname if isinstance(target, torch._ops.OpOverload) else target.__name__
