"""Graphs that AOTAutograd finds again in another process, in the cache that PyTorch has for its own compiler.

PyTorch keeps a graph, and what it knows of views, writes and gradients, under a key of the program, its inputs, settings
and its own version. A process that finds it skips tracing and the division into forward and backward graphs, which take
most of the first call. What is kept depends on no machine: each process makes its own executors of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from aclnn._version import __version__
from aclnn.torch.graphs import MODULES
from aclnn.torch.private import (
    BypassCache,
    FakeTensorMode,
    GraphPickler,
    OutputCode,
    PickleOptions,
    SerializableCompiler,
    ShapeEnv,
    compile_lock,
    functorch_config,
)

Compile = Callable[[GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]
_META = ("val", MODULES)  # what is kept of nodes
# Graphs are part of an entry, and the backward one is known when the entry is written.
_SWITCHES = ("bundled_autograd_cache", "force_non_lazy_backward_lowering")


@dataclasses.dataclass
class Kept(OutputCode):
    """A graph that can be kept, and is compiled when it is called first.

    Parameters
    ----------
    compiler : callable
        Of graphs. It can be pickled.
    graph_module : GraphModule
        None once it is compiled.
    """

    compiler: Compile
    graph_module: GraphModule | None
    _content: bytes | None = dataclasses.field(default=None, init=False)
    _run: Callable[[list[Any]], Any] | None = dataclasses.field(default=None, init=False)

    def __post_init__(self) -> None:
        self._boxed_call = True  # PyTorch's mark, which its wrappers copy from instances

    def __call__(self, inputs: list[Any]) -> Any:
        run = self._run
        if run is None:
            run = self._made()
        return run(inputs)

    def _made(self) -> Callable[[list[Any]], Any]:
        with compile_lock:  # first, as threads that compile have it when they come here
            if self._run is None:
                self._run = self.compiler(self.graph_module, ())
                self.graph_module = None
            return self._run

    def prepare_for_serialization(self) -> None:
        """Turn the graph, which is not compiled yet, into bytes."""
        self._content = _pickled(self.graph_module)
        self.graph_module = None

    def post_compile(self, *_: Any) -> None:
        """Turn the bytes into a graph."""
        if self._content is not None:
            mode = FakeTensorMode(shape_env=ShapeEnv())
            self.graph_module = GraphPickler.loads(self._content, mode)
            self._content = None

    def set_triton_bundle(self, triton_bundle: Any) -> None:
        """Do nothing: there are no kernels besides the graph."""


def _pickled(graph_module: GraphModule) -> bytes:
    for node in graph_module.graph.nodes:
        stack = node.meta.get(MODULES) or {}
        node.meta[MODULES] = {key: (path, _name_of(kind)) for key, (path, kind) in stack.items()}
    try:
        return GraphPickler.dumps(graph_module, PickleOptions(None, _META.__contains__))
    except Exception as error:  # of any kind: operators say so each in their own way
        raise BypassCache(f"{type(error).__name__}: {error}") from error


def _name_of(kind: Any) -> str:
    return kind if isinstance(kind, str) else kind.__qualname__


def kept(compiler: Compile) -> Any:
    """A compiler whose graphs PyTorch keeps."""

    def keep(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Kept:
        return Kept(compiler, graph_module)

    return SerializableCompiler(Kept, keep)


@contextlib.contextmanager
def cached(graph_module: GraphModule, options: Any) -> Iterator[None]:
    """Let AOTAutograd look for what it made of a graph with such options, and keep it otherwise."""
    # Attributes are part of the key.
    graph_module.aclnn = f"{__version__} {_digest()} {options!r}"
    known = [name for name in _SWITCHES if hasattr(functorch_config, name)]
    with functorch_config.patch(dict.fromkeys(known, True)):
        yield


@cache
def _digest() -> str:
    """A digest of what decides how graphs are divided and kept."""
    folder = Path(__file__).parent
    texts = [(folder / name).read_bytes() for name in ("caching.py", "dynamo.py")]
    return hashlib.sha256(b"".join(texts)).hexdigest()
