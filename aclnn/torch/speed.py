"""Costs of nodes, here and in PyTorch, measured on this machine: what the backend goes by.

A call of one of ATen's operators is measured when a graph first has it: as a part of one node and as PyTorch runs
it, in turns, for the shapes that it has there. Calls of similar shapes share a measurement, and later processes read
it (`aclnn.measurements`). Where one of the two is faster by far for another size, that is known for this size, too, and
nothing is measured. In a chain a node costs less than alone, since it shares the part's call.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from aclnn.compiler import settings
from aclnn.measurements import Measurements
from aclnn.torch.counterparts import chosen_among, is_pointwise
from aclnn.torch.graphs import alone, graph_of, value_of, values_of
from aclnn.torch.private import disable_current_modes

STEP = 0.1  # µs that a node in a part takes at least
VIEW = 1.0  # µs that PyTorch takes for a view; a part takes nothing
SMALL = 4096  # elements, up to which calls cost more than what they compute: nothing is measured
SLOWER_FROM = 1.1  # of PyTorch's time: from there a node stays with PyTorch
SLOWER_IN_CHAINS = (
    2.0  # for what is computed where its operands are, which a call alone does not show
)
LARGE = 1 << 18  # bytes of an operand of which there are copies, which calls take in turns
MOST_COPIES, ALL_COPIES = 16, 1 << 26  # how many, and their bytes
AGAIN = 2  # how often what seems slower is measured again
CLEARLY = 1.4  # of the other's time: from there the faster one is the same for similar sizes
ALIKE = 4  # how many times as large the sizes of a similar call may be, or its elements
ROUNDS, SECONDS = 5, 2e-3  # that both sides of a measurement take at least
STRIDE = 7919  # between indices of one after the other, a prime

Call = Callable[[], Any]
_SHAPE = re.compile(r"(?:(?<=\d)|(?<=bool))\[([\d,]+)\]")  # as dtypes have behind their names


class Cost(NamedTuple):
    """µs of a node in a chain, and of PyTorch's call."""

    ours: float
    theirs: float


class Speed:
    """Costs of nodes under the numbers of threads that are set."""

    def __init__(self, measure: Callable[[Node], tuple[float, float]] | None = None) -> None:
        facts = {
            "torch": torch.__version__,
            "threads": settings.get_num_threads(),
            "threads of torch": torch.get_num_threads(),
        }
        self._kept = Measurements("torch", facts)
        self._measure = measure or measured
        self._found: dict[str, tuple[float, ...]] = {}  # of calls of this graph, which repeat
        self.call = Cost(*self._times("a part's call", _smallest_call))

    def cost_of(self, node: Node) -> Cost:
        """The cost of a call of one of ATen's operators."""
        values = [value for one in (*node.all_input_nodes, node) for value in values_of(one)]
        sizes = [one.numel() for one in values if isinstance(one, torch.Tensor)]
        if max(sizes, default=0) < SMALL:
            return Cost(STEP, self.call.theirs)
        what = description_of(node)
        if what not in self._found:
            known = self._kept.get(what) or self._times_of_similar(what)
            self._found[what] = known or self._times(what, lambda: self._measured_surely(node))
        ours, theirs = self._found[what]
        return Cost(max(ours - self.call.ours, STEP), theirs)

    def _measured_surely(self, node: Node) -> tuple[float, float]:
        """The least times of a call; once more if it seems slow here, as it is where others are busy."""
        found = self._measure(node)
        for _ in range(AGAIN):
            if found[0] < SLOWER_FROM * found[1]:
                break
            ours, theirs = self._measure(node)
            found = min(found[0], ours), min(found[1], theirs)
        return found

    def _times_of_similar(self, what: str) -> tuple[float, ...] | None:
        """The times of a call that differs in sizes alone and has clearly a faster side, for these sizes."""
        kind, sizes, elements = _parts_of(what)
        nearest = None
        for known, times in self._similar(kind):
            _, others, count = _parts_of(known)
            far = max(map(_quotient, (elements, *sizes), (count, *others)))
            if far <= ALIKE and _quotient(*times) >= CLEARLY and (not nearest or far < nearest[0]):
                nearest = far, tuple([time * elements / count for time in times])
        return nearest[1] if nearest else None

    def _similar(self, kind: str) -> list[tuple[str, tuple[float, ...]]]:
        """Measured calls of one kind."""
        return [
            (what, times)
            for what, times in self._kept.items()
            if len(times) == 2 and _parts_of(what)[0] == kind
        ]

    def _times(self, what: str, measure: Callable[[], tuple[float, float]]) -> tuple[float, ...]:
        found = self._kept.get(what)
        if found is None or len(found) != 2:
            found = measure()
            self._kept.put(what, found)
        return found

    def save(self) -> None:
        """Keep what was measured for other processes."""
        self._kept.save()

    def reason_against(self, node: Node) -> str | None:
        """The cost of a node that PyTorch does faster, be it in a chain: to leave it divides a part, which costs one
        more call."""
        cost = self.cost_of(node)
        factor = SLOWER_IN_CHAINS if is_pointwise(node.target) else SLOWER_FROM
        if cost.ours < max(factor * cost.theirs, cost.theirs + self.call.ours):
            return None
        return f"PyTorch's kernel is faster: {cost.theirs:.3g} µs, ours {cost.ours:.3g}"

    def pays(self, calls: Sequence[Node], n_views: int) -> bool:
        """Whether a part that makes these calls, and views between them, is faster than PyTorch."""
        costs = list(map(self.cost_of, calls))
        ours = sum(cost.ours for cost in costs)
        theirs = VIEW * n_views + sum(cost.theirs for cost in costs)
        return bool(costs) and self.call.ours + ours <= theirs


# --- What is measured -----------------------------------------------------------------------------


def description_of(node: Node) -> str:
    """A call in words: shapes are rounded up, so that similar ones share a measurement.

    Sizes become the next of 1, 2, 3, 4, 6, 8, 12, 16 and so on.
    """

    def described(argument: Any) -> str:
        if isinstance(argument, Node):
            return _words_of(value_of(argument))
        if isinstance(argument, list | tuple):
            return f"[{', '.join(map(described, argument))}]"
        return str(rounded(argument) if type(argument) is int else argument)

    named = [f"{name}={described(one)}" for name, one in node.kwargs.items() if one is not None]
    return f"{node.target}({', '.join([*map(described, node.args), *named])})"


@functools.lru_cache(4096)
def _parts_of(what: str) -> tuple[str, tuple[int, ...], int]:
    """A description without sizes, the sizes, and how many elements operands have.

    >>> _parts_of("mm(float32[2,8], float32[8,3] strides 10)")
    ('mm(float32[#,#], float32[#,#] strides 10)', (2, 8, 8, 3), 40)
    """
    shapes = [tuple(map(int, one.split(","))) for one in _SHAPE.findall(what)]
    kind = _SHAPE.sub(lambda found: "[" + ",".join("#" * (found[1].count(",") + 1)) + "]", what)
    return kind, tuple(itertools.chain(*shapes)), sum(map(math.prod, shapes)) or 1


def _quotient(one: float, other: float) -> float:
    """Quotient of the larger by the smaller."""
    least, most = sorted((one, other))
    return most / least if least > 0 else (math.inf if most else 1)


def rounded(size: int) -> int:
    """A size that similar ones share.

    >>> [rounded(n) for n in (3, 5, 7, 100, 1000, -1)]
    [3, 6, 8, 128, 1024, -1]
    """
    if size <= 4:
        return size
    power = 1 << (size - 1).bit_length()
    return power * 3 // 4 if size <= power * 3 // 4 else power


def _words_of(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    sizes = ",".join(str(rounded(n)) for n in value.shape)
    order = "" if value.is_contiguous() else f" strides {_order_of(value)}"
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}[{sizes}]{order}"


def _order_of(value: torch.Tensor) -> str:
    """The dimensions by their strides, and those that repeat."""
    strides = value.stride()
    order = sorted(range(value.ndim), key=lambda axis: (-strides[axis], axis))
    return "".join(f"{axis}{'' if strides[axis] else 'x'}" for axis in order)


def measured(node: Node) -> tuple[float, float]:
    """µs of a call as a part of its own, and as PyTorch makes it."""
    with torch.no_grad(), torch.inference_mode(False), disable_current_modes():
        return least(*_both(node))


def cost_alone(module: GraphModule, is_taken: bool) -> tuple[float, float]:
    """µs of the call of a graph of one node, here, if executors do it, and by PyTorch; NaN if that is not known."""
    node = next(one for one in module.graph.nodes if one.op == "call_function")
    if is_taken:
        return measured(node)
    try:
        with torch.no_grad(), torch.inference_mode(False), disable_current_modes():
            inputs = [example(value_of(one))[0] for one in node.all_input_nodes]
            return math.nan, least(lambda: None, lambda: module.forward(*inputs))[1]
    except (
        RuntimeError,
        TypeError,
        IndexError,
        AttributeError,
    ):  # its operands are not all that counts
        return math.nan, math.nan


def _both(node: Node) -> tuple[Call, Call]:
    from aclnn.torch.partitions import Part

    module = alone(node)
    part, run = Part(module, "measured", {}), module.forward
    sources = node.all_input_nodes
    copies = [example(value_of(source), _bound_of(node, source)) for source in sources]
    turns = itertools.cycle(zip(*map(_repeated, copies), strict=False))
    return (lambda: part(*next(turns))), (lambda: run(*next(turns)))


def _repeated(copies: list[torch.Tensor]) -> list[torch.Tensor]:
    return copies * (MOST_COPIES // len(copies))


def _bound_of(node: Node, source: Node) -> int:
    """Number of elements that an operand's indices choose among; 1, which any size allows, where it is not known."""
    if value_of(source).dtype not in (torch.int32, torch.int64):
        return 1
    arguments = torch.fx.map_arg(node.args, lambda one: one if one is source else value_of(one))
    return min(chosen_among(node.target, arguments, source), default=1)


def example(value: torch.Tensor, bound: int = 1) -> list[torch.Tensor]:
    """Real tensors of the layout of a fake one; indices are below a bound, each as often as the others.

    Of what is large there are several: a model's weights come from memory, not from the nearest cache, since it has
    read others meanwhile.
    """
    reach = [(n - 1) * stride for n, stride in zip(value.shape, value.stride(), strict=True)]
    size = sum(reach) + 1 if value.numel() else 0
    flat = torch.empty(size, dtype=value.dtype)
    filled = flat.uniform_(0.1, 0.9) if value.is_floating_point() else flat.zero_()
    if bound > 1:
        filled = torch.arange(size).mul_(STRIDE).remainder_(bound).to(value.dtype)
    count = 1
    while size * value.element_size() >= LARGE and count < MOST_COPIES:
        if 2 * count * size * value.element_size() > ALL_COPIES:
            break
        count *= 2
    copies = [filled, *[filled.clone() for _ in range(count - 1)]]
    return [one.as_strided(value.shape, value.stride()) for one in copies]


def least(ours: Call, theirs: Call) -> tuple[float, float]:
    """The least time of a call of each, in turns, in µs."""
    for call in (ours, theirs):  # the first one plans
        call()
    once = max(_seconds(ours, 1), _seconds(theirs, 1), 1e-7)
    count = max(1, min(100, int(SECONDS / ROUNDS / once)))
    best = [math.inf, math.inf]
    for _ in range(ROUNDS if once < SECONDS * 10 else 2):
        for which, call in enumerate((ours, theirs)):
            best[which] = min(best[which], _seconds(call, count))
    return best[0] * 1e6, best[1] * 1e6


def _seconds(call: Call, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def _smallest_call() -> tuple[float, float]:
    """Costs of a part, whatever it computes, and of PyTorch's own call."""
    from aclnn.torch.partitions import Part

    with torch.no_grad(), torch.inference_mode(False), disable_current_modes():
        x = torch.ones(16)
        part = Part(graph_of(torch.neg, [x]), "measured", {})
        return least(lambda: part(x), lambda: torch.neg(x))
