"""The backend of ``torch.compile``: parts of a graph as executors, the rest as PyTorch has it.

Dynamo's graph is taken where nothing but its own values is written in place, and no mode is switched: what
PyTorch keeps runs as it would without a compiler, and costs no more. Other graphs are first made functional by
AOTAutograd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from aclnn.acl.arguments import did_you_mean
from aclnn.acl.errors import invalid
from aclnn.torch.applied import bind_graphs, holds_applied
from aclnn.torch.expansion import flattened, is_functional, value_of
from aclnn.torch.folding import fold
from aclnn.torch.freezing import Frozen, freeze
from aclnn.torch.parts import Part
from aclnn.torch.shapes import Specialized, has_symbols
from aclnn.torch.sinking import sink_views
from aclnn.torch.speed import Speed
from aclnn.torch.support import Support, is_tracked, partitions_of
from aclnn.torch.writes import move_to_end, write_into_new_values

PREFIX = "aclnn_part_"
TAKE = ("measured", "all")


class Observer(Protocol):
    """Receives what becomes of graphs."""

    def add_frozen(self, graph: Frozen) -> None:
        """Add a graph whose weights are frozen."""

    def add_folded(self, count: int) -> None:
        """Add nodes of a graph that are gone, as constants or without effect."""

    def add_graph(self, graph: GraphModule, support: Support, parts: list[Any]) -> None:
        """A graph, before its parts become executors."""

    def add_executor(self, number: int, part: Part) -> None:
        """Add the fate of a part of the graph that was added last."""


def backend(graph_module: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """Compile a graph: ``torch.compile(model, backend="aclnn")``.

    Parameters
    ----------
    graph_module : GraphModule
        From Dynamo.
    example_inputs : sequence of tensor
    **options
        Those of `aclnn.compile`, from ``torch.compile(..., options={"threads": 1})``. Besides `take`:
        ``"measured"`` leaves to PyTorch what it does faster on this machine, ``"all"`` takes all that
        executors can do. And `freeze`: whether copies of the weights of linear layers are laid out for
        products once, where no gradients are wanted. They follow what changes weights but for writes that
        PyTorch does not count, through ``weight.data`` or NumPy.

    Returns
    -------
    callable

    Raises
    ------
    AclnnError
        If `take` is neither, or `freeze` is no bool.
    """
    return compiled_graph(graph_module, example_inputs, Options.of(options.get("options")))


class Options(NamedTuple):
    """Options of a graph's compilation: what is taken, whether weights are frozen, and the options of
    `aclnn.compile`."""

    take: str
    freeze: bool
    planning: dict[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Options:
        """From what users give."""
        planning = dict(given or {})
        take = planning.pop("take", TAKE[0])
        if take not in TAKE:
            raise invalid(
                f"take is {take!r}, must be one of {', '.join(map(repr, TAKE))}{did_you_mean(take, TAKE)}"
            )
        freeze = planning.pop("freeze", False)
        if not isinstance(freeze, bool):
            raise invalid(f"freeze is {freeze!r}, must be a bool")
        return cls(take, freeze, planning)


def compiled_graph(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    options: Options,
    observe: Observer | None = None,
) -> Any:
    """Compile a graph for `backend`; `observe` gets each graph, its support and its parts."""
    if options.freeze and not torch.is_grad_enabled():
        places, example_inputs = freeze(graph_module, example_inputs)
        made = compiled_graph(graph_module, example_inputs, options._replace(freeze=False), observe)
        if not places:
            return made
        frozen = Frozen(made, places)
        if observe is not None:
            observe.add_frozen(frozen)
        return frozen
    if has_symbols(graph_module):
        return Specialized(
            graph_module, lambda graph, inputs: compiled_graph(graph, inputs, options, observe)
        )

    def compile_graph(graph: GraphModule) -> Callable[..., Any]:
        folded = fold(graph)
        if observe is not None:
            observe.add_folded(folded)
        return code_of(with_executors(graph, options, observe))

    bind_graphs(graph_module)
    write_into_new_values(graph_module)
    if is_functional(graph_module):
        return compile_graph(graph_module)
    functional = aot_autograd(
        fw_compiler=lambda graph, inputs: make_boxed_func(compile_graph(graph)),
        keep_inference_input_mutations=True,
    )
    return functional(graph_module, example_inputs)


def code_of(graph: GraphModule) -> Callable[..., Any]:
    """A graph's code, without what a module's call does besides: that takes as long as a kernel."""
    graph.recompile()
    _LazyGraphModule.force_recompile(graph)
    return graph.forward


def with_executors(
    graph: GraphModule, options: Options, observe: Observer | None = None
) -> GraphModule:
    """The graph with calls of executors in the place of the parts that they do."""
    speed = Speed() if options.take == "measured" else None
    support = Support(graph, speed)
    parts = partitions_of(graph, support)
    if speed is not None:
        speed.save()
    if observe is not None:
        observe.add_graph(graph, support, parts)
    if not parts:
        return graph
    fused = fuse_by_partitions(graph, [part.nodes for part in parts], prefix=PREFIX)
    move_to_end(fused)
    for node in list(fused.graph.nodes):
        if node.op == "call_module" and str(node.target).startswith(PREFIX):
            _replace(fused, node, options, observe)
    fused.graph.lint()
    return fused


def _replace(graph: GraphModule, node: Any, options: Options, observe: Observer | None) -> None:
    """Call the executor instead of the module that stands for it."""
    name = str(node.target)
    inputs = [one.meta.get("val", one.meta.get("example_value")) for one in node.args]
    own = getattr(graph, name)
    module = flattened(own, inputs)
    sink_views(module.graph)

    def compile_graph(graph: GraphModule, is_new: bool) -> Callable[..., Any]:
        return code_of(with_executors(graph, options, observe if is_new else None))

    differentiated = own if holds_applied(own) else None
    (results,) = own.graph.output_node().args
    several = [results] if isinstance(results, Node) else results
    tracked = [is_tracked(value_of(one)) for one in several]
    part = Part(module, name, inputs, options.planning, compile_graph, differentiated, tracked)
    if observe is not None:
        observe.add_executor(int(name.removeprefix(PREFIX)), part)
    with graph.graph.inserting_before(node):
        call = graph.graph.call_function(part, node.args)
    call.meta = dict(node.meta)
    node.replace_all_uses_with(call)
    graph.graph.erase_node(node)
    delattr(graph, name)
