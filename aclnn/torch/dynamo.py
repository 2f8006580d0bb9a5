"""The backend of ``torch.compile``: parts of a graph as executors, the rest as PyTorch has it.

AOTAutograd makes graphs of ATen's operators that write nothing, one forward and one backward, and takes care of
views, writes and gradients. Here parts of these graphs become executors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch.fx import GraphModule

from aclnn.acl.arguments import did_you_mean
from aclnn.acl.errors import invalid
from aclnn.torch.checking import Checked
from aclnn.torch.choice import Rules
from aclnn.torch.drawing import draw_apart
from aclnn.torch.effects import sort
from aclnn.torch.folding import fold
from aclnn.torch.freezing import Frozen, freeze
from aclnn.torch.partitions import Part
from aclnn.torch.private import (
    BoxedCodeGen,
    BypassCache,
    GraphPickler,
    LazyGraphModule,
    OutputCode,
    SerializableCompiler,
    aot_autograd,
    compile_lock,
    default_partition,
    functorch_config,
    fuse_by_partitions,
    make_boxed_func,
    min_cut_rematerialization_partition,
)
from aclnn.torch.shapes import Specialized, has_symbols
from aclnn.torch.speed import Speed
from aclnn.torch.support import Choice, Everything, Support, partitions_of
from aclnn.torch.view_sinking import sink_views

PREFIX = "aclnn_part_"
TAKE = ("default", "all")
WORTH_KEEPING = 100  # calls of a graph, whose tracing takes longer than to look for what is kept
TRAINED = 3  # times as long does it take to trace a graph with its gradients


class Observer(Protocol):
    """Receives what becomes of graphs."""

    def add_frozen(self, graph: Frozen) -> None:
        """Add a graph whose weights are frozen."""

    def add_folded(self, count: int) -> None:
        """Add nodes of a graph that are gone, as constants or without effect."""

    def add_graph(self, graph: GraphModule, support: Support, parts: list[Any]) -> None:
        """A graph, before its parts become executors."""

    def add_executor(self, number: int, part: Part | Checked) -> None:
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
        ``"default"`` leaves to PyTorch what it is known to do faster, which follows from the graph alone,
        ``"all"`` takes all that executors can do. `tune`: whether calls are measured on this machine
        instead, and what was found is kept. `check`: whether PyTorch runs what executors do as well, with a warning
        that names the first node whose results differ. And `freeze`: whether copies of the weights of linear layers are laid
        out for products once, where no gradients are wanted. They follow what changes weights but for writes that
        PyTorch does not count, through ``weight.data`` or NumPy.

    Returns
    -------
    callable

    Raises
    ------
    AclnnError
        If `take` is neither, or another of these is no bool.
    """
    return compiled_graph(graph_module, example_inputs, Options.of(options.get("options")))


class Options(NamedTuple):
    """Options of a graph's compilation: what is taken, whether that is measured, whether weights are frozen and
    executors checked, and the options of `aclnn.compile`."""

    take: str
    tune: bool
    freeze: bool
    check: bool
    planning: dict[str, Any]

    @classmethod
    def of(cls, arguments: Mapping[str, Any] | None) -> Options:
        """From what users give."""
        planning = dict(arguments or {})
        take = planning.pop("take", TAKE[0])
        if take not in TAKE:
            raise invalid(
                f"take is {take!r}, must be one of {', '.join(map(repr, TAKE))}{did_you_mean(take, TAKE)}"
            )
        switches = {}
        for name in ("tune", "freeze", "check"):
            switches[name] = planning.pop(name, False)
            if not isinstance(switches[name], bool):
                raise invalid(f"{name} is {switches[name]!r}, must be a bool")
        return cls(take=take, planning=planning, **switches)


def compiled_graph(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    options: Options,
    observe: Observer | None = None,
) -> Any:
    """Compile a graph for `backend`; `observe` gets each graph, its support and its parts."""
    places: list[int] = []
    if options.freeze and not torch.is_grad_enabled():
        places, example_inputs = freeze(graph_module, example_inputs)
    if observe is None and keeps(graph_module):
        made = _kept(graph_module, example_inputs, options)
    else:
        compiler = Compiler(options, observe)
        made = _functional(compiler, compiler)(graph_module, example_inputs)
    if not places:
        return made
    frozen = Frozen(made, places)
    if observe is not None:
        observe.add_frozen(frozen)
    return frozen


def _functional(forward: Any, backward: Any) -> Any:
    """AOTAutograd with compilers of its graphs."""
    return aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        partition_fn=forward_and_backward,
        keep_inference_input_mutations=True,
    )


def keeps(graph_module: GraphModule) -> bool:
    """Whether PyTorch keeps what AOTAutograd makes of a graph for other processes: if it is asked to, does so for
    compilers besides its own, and the graph is worth it. Its key needs inductor's modules, whose import takes a second.
    """
    if None in (SerializableCompiler, OutputCode, GraphPickler, BypassCache):
        return False
    if not hasattr(functorch_config, "bundled_autograd_cache"):
        return False
    if torch.compiler.config.force_disable_caches or not functorch_config.enable_autograd_cache:
        return False
    nodes = graph_module.graph.nodes
    calls = sum(node.op in ("call_function", "call_method", "call_module") for node in nodes)
    if torch.is_grad_enabled():
        calls *= TRAINED
    return calls >= WORTH_KEEPING or functorch_config.force_autograd_cache


def _kept(graph_module: GraphModule, example_inputs: Sequence[Any], options: Options) -> Any:
    """Compile a graph that PyTorch may have kept."""
    from aclnn.torch.caching import cached, kept  # needs what not all versions of PyTorch have

    compiler = Compiler(options)
    with cached(graph_module, options):
        return _functional(kept(compiler), kept(compiler))(graph_module, example_inputs)


def forward_and_backward(graph: GraphModule, inputs: Sequence[Any], **facts: Any) -> Any:
    """Divide a graph of a function and its gradients, so that as little as possible is kept for the backward one.

    AOTAutograd copies inputs that are written later and that gradients need. The partitioner that computes values
    again would keep such an input instead of the copy, so that others divide these graphs.
    """
    copied = [one for one in graph.graph.nodes if one.target is torch.ops.aten.clone.default]
    if any(one.args[0].op == "placeholder" for one in copied):
        return default_partition(graph, inputs, **facts)
    return min_cut_rematerialization_partition(graph, inputs, **facts)


class Compiler:
    """Compiles the graphs of ATen's operators that AOTAutograd makes of one of Dynamo's."""

    def __init__(self, options: Options, observe: Observer | None = None):
        self._options = options
        self._observe = observe
        self._known: dict[Any, str | None] = {}  # reasons against calls

    def __reduce__(self) -> Any:
        return Compiler, (self._options,)

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> Any:
        if has_symbols(graph_module):
            return boxed(Specialized(graph_module, self._compiled))
        return self._compiled(graph_module)

    def _compiled(self, graph_module: GraphModule) -> Callable[..., Any]:
        with compile_lock:  # which gradients' graphs are not compiled under
            draw_apart(graph_module)
            folded = fold(graph_module)
            if self._observe is not None:
                self._observe.add_folded(folded)
            return code_of(self._with_executors(graph_module))

    def _with_executors(self, graph: GraphModule) -> GraphModule:
        """The graph with calls of executors in the place of the parts that they do."""
        choice = self._choice()
        support = Support(graph, choice, self._known)
        parts = partitions_of(graph, support)
        if isinstance(choice, Speed):
            choice.save()
        if self._observe is not None:
            self._observe.add_graph(graph, support, parts)
        if not parts:
            return graph
        fused = fuse_by_partitions(graph, [part.nodes for part in parts], prefix=PREFIX)
        sort(fused)
        for node in list(fused.graph.nodes):
            if node.op == "call_module" and str(node.target).startswith(PREFIX):
                self._replace(fused, node)
        fused.graph.lint()
        return fused

    def _choice(self) -> Choice:
        if self._options.take == "all":
            return Everything()
        return Speed() if self._options.tune else Rules()

    def _replace(self, graph: GraphModule, node: Any) -> None:
        """Call the executor instead of the module that stands for it."""
        name = str(node.target)
        module = getattr(graph, name)
        sink_views(module.graph)
        part: Any = Part(module, name, self._options.planning)
        if self._options.check:
            part = Checked(part, module)
        if self._observe is not None:
            self._observe.add_executor(int(name.removeprefix(PREFIX)), part)
        with graph.graph.inserting_before(node):
            call = graph.graph.call_function(part, node.args)
        call.meta = dict(node.meta)
        node.replace_all_uses_with(call)
        graph.graph.erase_node(node)
        delattr(graph, name)


def code_of(graph: GraphModule) -> Callable[..., Any]:
    """A graph's code, which takes its arguments in a list and lets go of them as it goes on, without what a module's
    call does besides: that takes as long as a kernel."""
    if BoxedCodeGen is not None:
        graph.graph.set_codegen(BoxedCodeGen())
    graph.recompile()
    LazyGraphModule.force_recompile(graph)  # or each call goes through the module's
    return make_boxed_func(graph.forward) if BoxedCodeGen is None else boxed(graph.forward)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A function that AOTAutograd knows to take its arguments in a list."""

    def call(inputs: list[Any]) -> Any:
        return run(inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
