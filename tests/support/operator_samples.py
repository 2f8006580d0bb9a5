"""PyTorch's own samples of its operators, through the backend of torch.compile beside eager calls.

    python tests/support/operator_samples.py --dtypes float32 bfloat16 --slice 0/8 --table samples.json

`op_db` lists operators with samples of their arguments, for each dtype that they take. Every sample is run evaluated,
trained, in place, and on views of memory that the function writes into afterwards. Values, layouts, gradients and
what is written have to be those of eager calls, within PyTorch's own tolerances. What AOTAutograd alone fails with,
and what eager calls refuse or give otherwise each time, is counted apart.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import torch
from torch.fx import Graph, GraphModule
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

WAYS = ("evaluated", "trained", "in place", "views")
SEED = 7
TOGETHER, FEW = 24, 4  # calls in one graph, and pieces of those that fail
WIDER = dict.fromkeys(
    (torch.float16, torch.bfloat16, torch.float32, torch.float64), torch.float64
) | dict.fromkeys((torch.complex64, torch.complex128), torch.complex128)
NO_VALUES = ("empty", "new_empty")  # what operators give is whatever memory holds


class Taken:
    """Counts the executors of graphs."""

    def __init__(self):
        self.executors = 0

    def add_frozen(self, graph):
        pass

    def add_folded(self, count):
        pass

    def add_graph(self, graph, support, parts):
        pass

    def add_executor(self, number, part):
        self.executors += 1


class Call:
    """A sample as a function of its tensors, in one of the ways.

    Attributes
    ----------
    tensors : list of tensor
        Those that it is called with.
    """

    def __init__(self, op, sample, way):
        self.way = way
        self.has_values = not op.name.startswith(NO_VALUES)
        self._call = op.inplace_variant if way == "in place" else op.op
        given = (sample.input, sample.args, sample.kwargs)
        self._leaves, self._tree = tree_flatten(given)
        self._places = [n for n, one in enumerate(self._leaves) if isinstance(one, torch.Tensor)]
        self.tensors = [self._leaves[n].detach() for n in self._places]
        self.tracked = [self._leaves[n].requires_grad for n in self._places]
        if way == "views":
            self.tensors = [
                one.transpose(0, -1).clone() if one.ndim else one for one in self.tensors
            ]

    def inputs(self):
        """Tensors to call it with, of memory of their own."""
        if self.way != "trained":
            return [one.clone() for one in self.tensors]
        pairs = zip(self.tensors, self.tracked, strict=True)
        return [one.clone().requires_grad_(tracked) for one, tracked in pairs]

    def __call__(self, *tensors):
        given = list(tensors)
        if self.way == "views":
            given = [one.transpose(0, -1) if one.ndim else one for one in tensors]
        elif self.way == "in place":
            given[0] = given[0] * 1
        leaves = list(self._leaves)
        for place, one in zip(self._places, given, strict=True):
            leaves[place] = one
        first, args, named = tree_unflatten(leaves, self._tree)
        made = self._call(first, *args, **named)
        results = [one for one in tree_leaves(made) if isinstance(one, torch.Tensor)]
        if self.way == "in place":
            results += given[:1]
        if self.way == "views" and tensors and tensors[0].dtype != torch.bool:
            tensors[0].mul_(2)  # results that are views change with it
            results += [given[0].clone()]
        return tuple(results)


class Several:
    """Calls of one way as one function, which takes less time to compile than each does."""

    has_values = True

    def __init__(self, calls):
        self.calls = calls
        self.way = calls[0].way
        self.tensors = [one for call in calls for one in call.tensors]

    def inputs(self):
        """Tensors to call them with."""
        return [one for call in self.calls for one in call.inputs()]

    def __call__(self, *tensors):
        left, made = list(tensors), []
        for call in self.calls:
            count = len(call.tensors)
            given, left = left[:count], left[count:]
            made += call(*given)
        return tuple(made)


def strides_of(tensor):
    """The strides that something depends on: PyTorch's fake tensors have others for sizes of 1."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride if size > 1 and tensor.numel() else 0 for size, stride in pairs]


def outcome(call, function):
    """What a run shows: layouts, and values of results, gradients and inputs."""
    inputs = call.inputs()
    torch.manual_seed(SEED)
    with torch.set_grad_enabled(call.way == "trained"):
        results = list(function(*inputs))
    gradients = []
    if call.way == "trained":
        tracked = [one for one in results if one.requires_grad]
        leaves = [one for one in inputs if one.requires_grad]
        weights = [
            torch.linspace(0.5, 1.5, one.numel()).reshape(one.shape).to(one.dtype)
            for one in tracked
        ]
        if tracked and leaves:
            gradients = torch.autograd.grad(tracked, leaves, weights, allow_unused=True)
    gradients = [
        torch.zeros_like(leaf) if one is None else one
        for one, leaf in zip(gradients, [one for one in inputs if one.requires_grad], strict=False)
    ]
    values = [one.detach() for one in (*results, *gradients, *inputs)]
    layouts = [(one.shape, strides_of(one), one.dtype) for one in results]
    return layouts, values if call.has_values else []


def graph_of(call):
    """The graph that Dynamo would hand over: one call of the function."""
    graph = Graph()
    places = [graph.placeholder(f"x{n}") for n in range(len(call.tensors))]
    owner = torch.nn.Module()
    owner.call = torch.nn.Module()
    owner.call.forward = call
    made = graph.call_module("call", tuple(places))
    graph.output(made)
    return GraphModule(owner, graph)


def compiled(call, take):
    """The call by the backend, and a count of executors."""
    from aclnn.torch.dynamo import Options, compiled_graph

    taken = Taken()
    with torch.set_grad_enabled(call.way == "trained"):
        made = compiled_graph(graph_of(call), call.inputs(), Options.of({"take": take}), taken)
    return made, taken


def by_pytorch(call):
    """The call by AOTAutograd with a compiler that changes nothing."""
    from functorch.compile import nop
    from torch._dynamo.backends.common import aot_autograd

    compile_graph = aot_autograd(fw_compiler=nop, keep_inference_input_mutations=True)
    with torch.set_grad_enabled(call.way == "trained"):
        return compile_graph(graph_of(call), call.inputs())


def difference(found, wanted, exact=None):
    """What differs of two outcomes; None if nothing does.

    Numbers may be as far from those in double precision as twice the eager ones.
    """
    if found[0] != wanted[0]:
        return f"layouts {found[0]} for {wanted[0]}"
    for n, (one, other) in enumerate(zip(found[1], wanted[1], strict=True)):
        try:
            torch.testing.assert_close(one, other, equal_nan=True, check_stride=False)
        except AssertionError as error:
            if exact is None or not _is_as_near(one, other, exact[1][n]):
                return f"tensor {n}: " + " ".join(str(error).split())[:300]
    return None


def _is_as_near(one, other, exact):
    if one.dtype not in WIDER or one.shape != exact.shape:
        return False
    far, eager = ((value.to(exact.dtype) - exact).abs() for value in (one, other))
    least = torch.finfo(one.dtype).eps * exact.abs()
    return bool(((far <= 2 * eager.max() + 2 * least) | (one.to(exact.dtype) == exact)).all())


def in_double(call):
    """The outcome of a call in double precision; None if there is none."""
    widened = object.__new__(Call)
    widened.__dict__ = dict(call.__dict__)
    widened.tensors = [one.to(WIDER.get(one.dtype, one.dtype)) for one in call.tensors]
    widened._leaves = tree_map_only(torch.dtype, lambda one: WIDER.get(one, one), call._leaves)
    try:
        return outcome(widened, widened)
    except Exception:
        return None


def check(call, take):
    """A word on the fate of a call, and what there is to say of it."""
    try:
        wanted = outcome(call, call)
        again = outcome(call, call)
    except Exception as error:
        return "refused by eager calls", str(error)
    if difference(again, wanted) is not None:
        return "not the same twice", ""
    text = taken = None
    try:
        made, taken = compiled(call, take)
        for _ in range(2):  # the first call plans, the second is prepared
            found = outcome(call, made)
            text = text or difference(found, wanted)
        if text is not None:
            text = difference(found, wanted, in_double(call))
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if text is None:
        return ("taken" if taken.executors else "left"), ""
    try:
        is_theirs = difference(outcome(call, by_pytorch(call)), wanted) is not None
    except Exception:
        is_theirs = True
    return ("fails with AOTAutograd alone", text) if is_theirs else ("failed", text)


def calls_of(op, dtype, ways=WAYS):
    """The calls of an operator's samples of a dtype: way, number and call."""
    trains = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = enumerate(op.sample_inputs("cpu", dtype, requires_grad=trains))
    for number, sample in samples:
        for way in ways:
            if way == "trained" and not trains:
                continue
            if way == "in place" and (op.inplace_variant is None or sample.broadcasts_input):
                continue
            call = Call(op, sample, way)
            if all(one.layout is torch.strided for one in call.tensors):
                yield way, number, call


def by_way(op, dtype, most, ways=WAYS):
    """Calls of the first samples of an operator, by their ways."""
    found = defaultdict(list)
    for way, number, call in calls_of(op, dtype, ways):
        if number < most:
            call.number = number
            found[way].append(call)
    return found


def operators():
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def title(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--dtypes", nargs="*", help="names of dtypes; all that there are by default"
    )
    parser.add_argument("--slice", default="0/1")
    parser.add_argument("--first", type=int, default=0, help="operator to begin with")
    parser.add_argument("--ops", nargs="*", help="names of operators")
    parser.add_argument("--takes", nargs="*", default=["all", "default"])
    parser.add_argument("--ways", nargs="*", default=WAYS)
    parser.add_argument("--most", type=int, default=1 << 30, help="samples of a dtype")
    parser.add_argument(
        "--quick", action="store_true", help="few samples of what executors do nothing of"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--table", type=Path, help="file for the counts by operator, as JSON")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    place, count = map(int, given.slice.split("/"))
    end = time.monotonic() + given.seconds
    table = defaultdict(Counter)
    for op in operators()[given.first :][place::count]:
        if given.ops and title(op) not in given.ops and op.name not in given.ops:
            continue
        if time.monotonic() > end:
            break
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            name = str(dtype).removeprefix("torch.")
            if given.dtypes and name not in given.dtypes:
                continue
            _check_all(op, dtype, name, given, table[f"{title(op)} {name}"])
        if given.table:
            given.table.write_text(json.dumps(table, indent=0))
    total = sum(table.values(), Counter())
    print(f"slice {given.slice}: {dict(total)}", flush=True)


def check_together(calls, take):
    """The number of executors if all calls give what eager ones do; None otherwise."""
    several = Several(calls)
    try:
        wanted = outcome(several, several)
        made, taken = compiled(several, take)
        for _ in range(2):  # the first call plans, the second is prepared
            if difference(outcome(several, made), wanted) is not None:
                return None
    except Exception:
        return None
    return taken.executors


def checked(calls, take):
    """Pairs of calls and their fates, and what there is to say; many at once, and fewer where one fails."""
    if len(calls) == 1:
        return [(calls[0], *check(calls[0], take))]
    executors = check_together(calls, take)
    if executors is not None:
        return [(call, "taken" if executors else "left", "") for call in calls]
    size = 1 if len(calls) <= FEW else -(-len(calls) // FEW)
    pieces = [calls[n : n + size] for n in range(0, len(calls), size)]
    return [one for piece in pieces for one in checked(piece, take)]


def _check_all(op, dtype, name, given, counts):
    try:
        several = by_way(op, dtype, given.most, given.ways)
    except Exception as error:
        print(f"{title(op)} {name}: no samples: {error}", flush=True)
        return
    fates = set()
    for way, take in itertools.product(several, given.takes):
        calls = several[way]
        if given.quick and fates and fates.isdisjoint(("taken", "failed")):
            calls = calls[:FEW]  # no executor did any until here
        for first in range(0, len(calls), TOGETHER):
            for call, fate, text in checked(calls[first : first + TOGETHER], take):
                fates.add(fate)
                counts[fate] += 1
                if fate == "failed":
                    where = f"{title(op)} {name} {way} {call.number} {take}"
                    print(f"{where}: {text}", flush=True)


if __name__ == "__main__":
    main()
