"""Parts of graphs as compiled functions of tensors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from aclnn.execution._prepared_call import PreparedCall, prepares
from aclnn.torch.counterparts import form_of
from aclnn.torch.effects import is_in_place, is_write
from aclnn.torch.graphs import MODULES, value_of
from aclnn.tracing.array import TracedArray
from aclnn.tracing.compiled import compile as compiled

_MODEL = re.compile(r"""^L\[['"]\w+['"]\]""")  # what a path of modules begins with
_PLACE = re.compile(r"""\[['"]?(\w+)['"]?\]""")  # such as `layers[0]` has


class Part:
    """A graph of ATen's operators that runs as an executor, one for each description of its inputs.

    Parameters
    ----------
    module : GraphModule
    name : str
    options : dict
        Of `aclnn.compile`.

    Attributes
    ----------
    compiled : Compiled
        The function of arrays.
    is_one : bool
        Whether it gives one result rather than a tuple.
    """

    def __init__(self, module: GraphModule, name: str, options: dict[str, Any]):
        self.__name__ = name
        nodes = list(module.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._steps = [node for node in nodes if node.op == "call_function"]
        (output,) = [node.args[0] for node in nodes if node.op == "output"]
        arguments = [output] if isinstance(output, Node) else list(output)
        self.is_one = isinstance(output, Node)
        writes = [node for node in self._steps if is_write(node)]
        place_of = self._inputs.index
        # Both what a write gives and the value that is there alone are inputs then.
        written = {one: place_of(one.args[0]) for one in writes}
        written |= {one.args[1]: written[one] for one in writes if is_in_place(one)}
        self._in_place = [written.get(node) for node in arguments]  # inputs that results are
        self._outputs = [node for node in arguments if node not in written]
        self._made_is_one = self.is_one and bool(self._outputs)
        self._written = sorted({place_of(one.args[0]) for one in writes})
        self._orders = [_order_of(value_of(node)) for node in self._outputs]
        self._in_order = not any(self._orders)
        self.compiled = compiled(self._function(name), **options)
        # Dimensions of size 1 have strides, too, which nobody reads but who asks for them.
        self._strides = [_strides_besides(value_of(node)) for node in self._outputs]
        self._is_plain = not written and not any(self._strides)
        self._prepared: PreparedCall | None = None

    @property
    def workspace_size(self) -> int:
        """Bytes for intermediates: the most that one of its plans needs."""
        return max(self.compiled.workspace_sizes(), default=0)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """The results; AOTAutograd calls it where nothing is recorded for gradients."""
        if self._prepared is not None:
            made = self._prepared.run(tensors)
            if made is not NotImplemented:
                return made if self._is_plain else self._finished(made, tensors)
        if any(one.is_conj() or one.is_neg() for one in tensors):
            return self._run_resolved(tensors)
        return self._run(tensors)

    def _run_resolved(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The results for tensors of which some show numbers conjugated or negated, as gradients of a result may."""
        resolved = [one.resolve_conj().resolve_neg() for one in tensors]
        made = self._run(resolved)
        for index in self._written:
            if resolved[index] is not tensors[index]:
                tensors[index].copy_(resolved[index])
        own = {id(one): value for one, value in zip(resolved, tensors, strict=True)}
        if self.is_one:
            return own.get(id(made), made)
        return tuple([own.get(id(one), one) for one in made])

    def _run(self, tensors: Sequence[torch.Tensor]) -> Any:
        made = self.compiled(*tensors)
        for index in self._written:
            if not tensors[index].is_inference():
                torch.autograd.graph.increment_version(tensors[index])
        if prepares(torch):
            executor = self.compiled.executor_of(*tensors)
            self._prepared = PreparedCall(executor, len(tensors), self._orders, self._made_is_one)
        if not self._in_order and self._made_is_one:
            made = _laid_out(made, self._orders[0])
        elif not self._in_order:
            made = tuple([_laid_out(*pair) for pair in zip(made, self._orders, strict=True)])
        return made if self._is_plain else self._finished(made, tensors)

    def _finished(self, made: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """The results as the graph has them: with all strides, and inputs in the place of values that were written
        into them."""
        several = [made] if self._made_is_one else list(made or ())
        own = iter([
            one if strides is None else one.as_strided(one.shape, strides)
            for one, strides in zip(several, self._strides, strict=True)
        ])  # fmt: skip
        results = [next(own) if index is None else tensors[index] for index in self._in_place]
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
        is_written = False
        for node in self._steps:
            if is_write(node) and not is_written:  # no node follows that reads the input
                self._keep(values)
                is_written = True
            for trace in traces[:1]:
                trace.recording.origin = functools.partial(tuple, modules_of(node))
            args, named = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = form_of(node.target)(*args, **named)
        return [values[node] for node in self._outputs]

    def _keep(self, values: dict[Node, Any]) -> None:
        """Let what is given, or written, be memory of its own where it shows an input that is about to change."""
        written = [node.args[1] for node in self._steps if is_write(node)]
        for node in {*self._outputs, *written}:
            if values[node].place is not None:
                values[node] = values[node].copy()


def modules_of(node: Node) -> list[str]:
    """The modules that called for a node, the outermost first, without the model itself."""
    found = []
    for path, kind in (node.meta.get(MODULES) or {}).values():
        name = _PLACE.sub(r".\1", _MODEL.sub("", str(path))).strip(".")
        if name:
            found.append(f"{name}: {getattr(kind, '__name__', str(kind).rpartition('.')[2])}")
    return found


def _order_of(value: torch.Tensor) -> tuple[int, ...] | None:
    """The dimensions of a result as they lie in memory, the farthest first; None if in order."""
    if value.is_contiguous():
        return None
    return tuple(sorted(range(value.ndim), key=lambda axis: (-int(value.stride(axis)), axis)))


def _strides_besides(value: torch.Tensor) -> tuple[int, ...] | None:
    """The strides of a result whose layout differs from that of a plan: sizes of 1 may have any."""
    dense, step = [0] * value.ndim, 1
    for axis in reversed(_order_of(value) or range(value.ndim)):
        dense[axis] = step
        step *= int(value.shape[axis])
    sizes, strides = value.shape, value.stride()
    made = tuple([strides[n] if size == 1 else dense[n] for n, size in enumerate(sizes)])
    return None if made == tuple(dense) or not value.numel() else made


def _laid_out(tensor: Any, order: tuple[int, ...] | None) -> Any:
    if order is None:
        return tensor
    return tensor.permute([order.index(axis) for axis in range(len(order))])
