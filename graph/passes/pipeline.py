"""Pipelines: passes in an order, and every graph on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..callables import called
from ..ir import Graph
from ..summaries import counted
from ..verify.graph import check
from ..view_methods import Viewed
from .elide import elide
from .fold import fold_casts, fold_strides
from .fuse import fuse
from .in_place import in_place
from .notes import Notes, Pass
from .rematerialize import rematerialize
from .tidy import tidy

FUSED: tuple[Pass, ...] = (tidy, elide, fold_strides, fold_casts, fuse, in_place)
MATERIALIZED: tuple[Pass, ...] = (tidy, elide, rematerialize, in_place)
PIPELINES = {"fused": FUSED, "materialized": MATERIALIZED}
_KNOWN = frozenset((*FUSED, *MATERIALIZED))


@dataclass(frozen=True, slots=True)
class PassStep:
    """One pass of a run; unpacks to its fields.

    Attributes
    ----------
    name : str
        Name of the pass.
    graph : Graph
        The graph after it.
    notes : tuple of Note
        Changes to nodes, in order.
    """

    name: str
    graph: Graph
    notes: Notes

    def __repr__(self) -> str:
        sizes = f"{counted(len(self.graph.nodes), 'node')}, {counted(len(self.notes), 'note')}"
        return f"<PassStep {self.name}: {sizes}>"

    def __iter__(self):
        return iter((self.name, self.graph, self.notes))


class PassResult(Viewed, tuple[PassStep, ...]):
    """All graphs of a run of a pipeline: a tuple of `PassStep` with views.

    Attributes
    ----------
    as_built : Graph
    graph : Graph
        The graph after the last pass, which is planned and scheduled.

    Examples
    --------
    >>> from aclnn.graph import DType, GraphBuilder, PassResult
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
    >>> b.view_copy(b.compute("relu", [x], (4,), f32), out)
    >>> passes: PassResult = run_passes(b.build())
    >>> [name for name, _, _ in passes], passes.graph == passes[-1].graph
    (['tidy', 'elide', 'fold_strides', 'fold_casts', 'fuse', 'in_place'], True)
    """

    as_built: Graph

    def __new__(cls, as_built: Graph, steps: Iterable[PassStep]) -> PassResult:
        made = super().__new__(cls, tuple(steps))
        made.as_built = as_built
        return made

    def __repr__(self) -> str:
        before, after = len(self.as_built.nodes), len(self.graph.nodes)
        names = ", ".join(step.name for step in self)
        return (
            f"<PassResult: {names or 'no passes'}; {counted(before, 'node')} before, {after} after>"
        )

    def __str__(self) -> str:
        return self.to_text()

    def __reduce__(self):
        return PassResult, (self.as_built, tuple(self))

    @property
    def graph(self) -> Graph:
        """The graph after the last pass."""
        return self[-1].graph if self else self.as_built

    @property
    def notes(self) -> Notes:
        """Notes of all passes, in order."""
        return tuple(note for step in self for note in step.notes)

    def to_text(self) -> str:
        """Changes of each pass and their reasons, one line per note.

        Returns
        -------
        str
        """
        return self._view("text")

    def side_by_side(self) -> str:
        """A row for each node: as built, what every pass did to it and why, as scheduled.

        Returns
        -------
        str
        """
        return self._view("side_by_side")

    def to_rich(self) -> Any:
        """The table of `side_by_side` for `rich.print`.

        Returns
        -------
        rich.console.Group

        Raises
        ------
        ModuleNotFoundError
            When the package rich is not installed.
        """
        return self._view("rich")

    def to_svg(self) -> str:
        """One picture of the graph as built and after each pass that changed it.

        Returns
        -------
        str
        """
        return self._view("svg")


def run_passes(
    graph: Graph, pipeline: Iterable[Pass] | str = FUSED, *, verify: bool = False
) -> PassResult:
    """Run the passes of a pipeline in order, keeping every graph on the way.

    Parameters
    ----------
    graph : Graph
    pipeline : str or iterable of callable
        'fused', 'materialized', or passes of your own: each takes a graph and gives another, and
        notes about its changes.
    verify : bool
        Whether to verify the graph after each of this package's passes too; those of your own
        are always followed by the verifier.

    Returns
    -------
    PassResult
        The graph after every pass, and what each did.

    Raises
    ------
    ValueError
        When no pipeline has this name, or what should be a pass cannot be called.
    GraphError
        When a pass returns a graph that is not well formed.

    Examples
    --------
    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4, 1), f32), b.output("out", (4, 8), f32)
    >>> wide = b.broadcast_to(b.cast(b.contiguous(x), f32), (4, 8))
    >>> b.view_copy(b.compute("relu", [wide], (4, 8), f32), out)
    >>> print(run_passes(b.build()).to_text())
    tidy  (5 nodes after it)
      nothing to do
    elide  (2 nodes after it)
      x_contiguous: elided, already contiguous
      x_cast: elided, already float32
      out_view_copy: elided, out is contiguous, so relu writes it directly
    fold_strides  (1 node after it)
      x_broadcast: folded, stride 0 along dim 1
    fold_casts  (1 node after it)
      nothing to do
    fuse  (1 node after it)
      relu: becomes tile loop 1, nothing to fuse it with
    in_place  (1 node after it)
      nothing to do
    """
    steps, now = [], graph
    for run in _passes_of(pipeline):
        before = now
        now, notes = run(before)
        if now is not before and (verify or run not in _KNOWN):
            check(now)
        steps.append(PassStep(called(run), now, notes))
    return PassResult(graph, steps)


def _passes_of(pipeline: Iterable[Pass] | str) -> tuple[Pass, ...]:
    if isinstance(pipeline, str) and pipeline in PIPELINES:
        return PIPELINES[pipeline]
    if isinstance(pipeline, str) or not isinstance(pipeline, Iterable):
        known = ", ".join(PIPELINES)
        raise ValueError(f"pipeline is {pipeline!r}, must be one of {known}, or passes of your own")
    passes = tuple(pipeline)
    for run in passes:
        if not callable(run):
            raise ValueError(f"pipeline: {run!r} is no pass: it cannot be called")
    return passes
