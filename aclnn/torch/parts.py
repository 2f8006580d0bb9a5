"""Parts of graphs as compiled functions of tensors, with gradients."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from aclnn.execution._prepared_call import PreparedCall, prepares
from aclnn.torch.counterparts import form_of
from aclnn.torch.expansion import MODULES
from aclnn.torch.joint import divided, gradient_graph
from aclnn.torch.writes import is_write
from aclnn.tracing.array import TracedArray
from aclnn.tracing.compiled import compile as compiled

_MODEL = re.compile(r"""^L\[['"]\w+['"]\]""")  # what a path of modules begins with
_PLACE = re.compile(r"""\[['"]?(\w+)['"]?\]""")  # such as `layers[0]` has

# Compiles a graph; the flag says whether nothing in it was seen before.
Compile = Callable[[GraphModule, bool], Callable[..., Any]]


class Part:
    """A graph of ATen's operators that runs as an executor, one for each description of its inputs.

    Parameters
    ----------
    module : GraphModule
    name : str
    inputs : sequence of tensor
        Fake ones.
    options : dict
        Of `aclnn.compile`.
    compile_graph : callable
        Compiles the graphs of its gradients.
    differentiated : GraphModule, optional
        What has the gradients: the same graph before functions with gradients of their own became ATen's operators.
    tracked : sequence of bool, optional
        Which of the results depend on inputs by what has a gradient; all, where nothing is said.

    Attributes
    ----------
    compiled : Compiled
        The function of arrays.
    is_one : bool
        Whether it gives one result rather than a tuple.
    """

    def __init__(
        self,
        module: GraphModule,
        name: str,
        inputs: Sequence[Any],
        options: dict[str, Any],
        compile_graph: Compile,
        differentiated: GraphModule | None = None,
        tracked: Sequence[bool] = (),
    ):
        self.__name__ = name
        self._differentiated = differentiated or module
        self._like = inputs
        self._compile = compile_graph
        nodes = list(module.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._steps = [node for node in nodes if node.op == "call_function"]
        (output,) = [node.args[0] for node in nodes if node.op == "output"]
        given = [output] if isinstance(output, Node) else list(output)
        self.is_one = isinstance(output, Node)
        written = self._inputs_written()
        self._in_place = [written.get(node) for node in given]  # inputs that results are
        self._outputs = [node for node in given if node not in written]
        tracked = tracked or [True] * len(given)
        self.tracked = tuple(
            [
                is_tracked
                for node, is_tracked in zip(given, tracked, strict=True)
                if node not in written
            ]
        )
        self._made_is_one = self.is_one and bool(self._outputs)
        self._written = sorted(written.values())
        self._orders = [_order_of(node) for node in self._outputs]
        self._in_order = not any(self._orders)
        self.compiled = compiled(self._function(name), **options)
        self._prepared: PreparedCall | None = None
        self._trained: dict[tuple[bool, ...], Trained] = {}
        self._backwards: dict[Any, Callable[..., Any]] = {}

    def _inputs_written(self) -> dict[Node, int]:
        """The values that are written into inputs, and into which."""
        return {
            node.args[1]: self._inputs.index(node.args[0]) for node in self._steps if is_write(node)
        }

    @property
    def workspace_size(self) -> int:
        """Bytes for intermediates: the most that one of its plans needs."""
        return max(self.compiled.workspace_sizes(), default=0)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        if self._prepared is not None:
            made = self._prepared.run(tensors)  # of tensors whose gradients nobody wants
            if made is not NotImplemented:
                return made if not self._written else self._with_inputs(made, tensors)
        if torch.is_grad_enabled() and self._is_tracked(tensors):
            return _Differentiable.apply(self, *tensors)
        return self._run(tensors)

    def _is_tracked(self, tensors: Sequence[torch.Tensor]) -> bool:
        return any(self.tracked) and any(one.requires_grad for one in tensors)

    def run(self, *tensors: torch.Tensor) -> Any:
        """The results; nothing is recorded for gradients."""
        if self._prepared is not None:
            made = self._prepared.run(tensors)
            if made is not NotImplemented:
                return made if not self._written else self._with_inputs(made, tensors)
        return self._run(tensors)

    def _run(self, tensors: Sequence[torch.Tensor]) -> Any:
        made = self.compiled(*tensors)
        for place in self._written:
            torch.autograd.graph.increment_version(tensors[place])
        if prepares(torch):
            executor = self.compiled.executor_of(*tensors)
            self._prepared = PreparedCall(executor, len(tensors), self._orders, self._made_is_one)
        if not self._in_order and self._made_is_one:
            made = _laid_out(made, self._orders[0])
        elif not self._in_order:
            made = tuple([_laid_out(*pair) for pair in zip(made, self._orders, strict=True)])
        return made if not self._written else self._with_inputs(made, tensors)

    def _with_inputs(self, made: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """The results with inputs in the place of values that were written into them."""
        if self._made_is_one:
            return made
        own = iter(made or ())
        results = [next(own) if place is None else tensors[place] for place in self._in_place]
        return results[0] if self.is_one else tuple(results)

    def _function(self, name: str) -> Callable[..., Any]:
        def run(*arrays: Any) -> Any:
            made = [
                one if order is None else one.transpose(*order)
                for one, order in zip(self._interpreted(arrays), self._orders, strict=True)
            ]
            return made[0] if self._made_is_one else tuple(made) or None

        run.__name__ = run.__qualname__ = name
        run.__aclnn_constant__ = True  # type: ignore[attr-defined]  # reaches no array but its own
        return run

    def _interpreted(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the part on traced arrays, which record it."""
        values: dict[Node, Any] = dict(zip(self._inputs, arrays, strict=True))
        traces = [one.trace for one in arrays if isinstance(one, TracedArray)]
        for node in self._steps:
            for trace in traces[:1]:
                trace.recording.origin = functools.partial(tuple, _modules(node))
            args, named = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = form_of(node.target)(*args, **named)
        return [values[node] for node in self._outputs]

    def trained(self, needed: tuple[bool, ...]) -> Trained:
        """Runs of which gradients are wanted, of those inputs that are `needed`."""
        if needed not in self._trained:
            given = self.tracked
            graph, count = gradient_graph(
                self._differentiated,
                self._example_inputs(),
                needed,
                given,
                self._example_grads(given),
            )
            joint = divided(graph, len(needed), count)
            forward = self._compile(joint.forward, False)
            backward = self._compile(joint.backward, True)
            self._trained[needed] = Trained(forward, backward, joint.read, count)
        return self._trained[needed]

    def backward(self, needed: tuple[bool, ...], given: tuple[bool, ...]) -> Callable[..., Any]:
        """Gives gradients of inputs, those that are needed, from the inputs and the gradients of those
        outputs that have one; None for an input that these do not depend on."""
        key = needed, given
        if key not in self._backwards:
            graph, count = gradient_graph(
                self._differentiated,
                self._example_inputs(),
                needed,
                given,
                self._example_grads(given),
            )
            (outputs,) = graph.graph.output_node().args
            graph.graph.output_node().args = (tuple(outputs[count:]),)
            graph.graph.eliminate_dead_code()
            self._backwards[key] = self._compile(graph, True)
        return self._backwards[key]

    def _example_inputs(self) -> list[torch.Tensor]:
        return [one.detach() for one in self._like]

    def as_expected(self, grads: Sequence[torch.Tensor | None]) -> tuple[Any, ...]:
        """Gradients that lie as graphs were made for, whoever computed them."""
        found = []
        for one, strides in zip(grads, self._grad_strides, strict=True):
            if one is not None and one.stride() != strides:
                one = torch.empty_strided(one.shape, strides, dtype=one.dtype).copy_(one)
            found.append(one)
        return tuple(found)

    @functools.cached_property
    def _grad_strides(self) -> list[tuple[int, ...]]:
        return [one.stride() for one in self._example_grads([True] * len(self._outputs))]

    def _example_grads(self, given: Sequence[bool]) -> list[torch.Tensor]:
        values = itertools.compress([node.meta["val"] for node in self._outputs], given)
        return [torch.empty_like(one).detach() for one in values]


class Trained(NamedTuple):
    """A part whose gradients are wanted: graphs, and what the backward one takes of the inputs.

    `forward` gives the results, as many as `n_results`, and what `backward` takes after the inputs that it
    reads and before the gradients.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    read: tuple[int, ...]
    n_results: int


class _Differentiable(torch.autograd.Function):
    """One run of a part of which gradients are wanted."""

    @staticmethod
    def forward(ctx: Any, part: Part, *tensors: torch.Tensor) -> Any:
        needed = tuple(ctx.needs_input_grad[1:])
        trained = part.trained(needed)
        made = trained.forward(*tensors)
        ctx.part, ctx.trained = part, trained
        ctx.set_materialize_grads(False)  # an output that nobody reads gives no gradient, not zeros
        ctx.save_for_backward(*tensors, *made[trained.n_results :])
        results = zip(made[: trained.n_results], part.tracked, strict=True)
        ctx.mark_non_differentiable(*[one for one, is_tracked in results if not is_tracked])
        return made[0] if part.is_one else tuple(made[: trained.n_results])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        needed = tuple(ctx.needs_input_grad[1:])
        given = tuple([one is not None for one in grads])
        if not any(given):
            return None, *[None] * len(needed)
        grads = ctx.part.as_expected(grads)
        tensors, kept = ctx.saved_tensors[: len(needed)], ctx.saved_tensors[len(needed) :]
        if given == ctx.part.tracked:
            own = itertools.compress(grads, given)
            read = [tensors[n] for n in ctx.trained.read]
            found = ctx.trained.backward(*read, *kept, *own)
        else:  # what depends on the others is computed anew, without them
            own = itertools.compress(grads, given)
            found = ctx.part.backward(needed, given)(*tensors, *own)
        made = iter(found)
        return None, *[next(made) if one else None for one in needed]


def _modules(node: Node) -> list[str]:
    """The modules that called for a node, the outermost first, without the model itself."""
    found = []
    for path, kind in (node.meta.get(MODULES) or {}).values():
        name = _PLACE.sub(r".\1", _MODEL.sub("", str(path))).strip(".")
        if name:
            found.append(f"{name}: {getattr(kind, '__name__', str(kind).rpartition('.')[2])}")
    return found


def _order_of(node: Node) -> tuple[int, ...] | None:
    """The dimensions of a result as they lie in memory, the farthest first; None if in order."""
    value = node.meta["val"]
    if value.is_contiguous():
        return None
    return tuple(sorted(range(value.ndim), key=lambda axis: (-int(value.stride(axis)), axis)))


def _laid_out(tensor: Any, order: tuple[int, ...] | None) -> Any:
    if order is None:
        return tensor
    return tensor.permute([order.index(axis) for axis in range(len(order))])
