"""Executor graphs: build, simplify, plan, schedule, look inside.

Knows shapes, strides, bytes, lifetimes, steps, tiles and threads; no operator and no array
library.  A graph of opaque nodes of your own can be planned and drawn with it::

    from aclnn.graph import DType, GraphBuilder, plan_workspace, run_passes

The way through it: `GraphBuilder` makes a `Graph`; `run_passes` makes better ones and tells what
it did; `plan_workspace` gives every intermediate an offset; `compile` makes a `Schedule`, whose
`pack()` is what the second phase runs.
"""

import importlib
import typing

from . import view_methods
from .attrs import Argument
from .builder import GraphBuilder
from .errors import GraphError
from .ir import DType, Graph, Node, Value
from .loops.tiling import Tiling
from .lower.schedule import PARALLEL_WORK, STREAM_FROM, Schedule, compile
from .passes.notes import Note
from .passes.pipeline import FUSED, MATERIALIZED, PassResult, run_passes
from .planner.lifetimes import (
    Gap,
    Lifetime,
    PackedMemory,
    SpareMemory,
    lifetimes_from_csv,
    lifetimes_to_csv,
)
from .planner.liveness import graph_lifetimes
from .planner.plan import BudgetError, Buffer, WorkspacePlan, plan_lifetimes, plan_workspace
from .planner.strategies import Assignment
from .runtime.kernel import Kernel, Packing
from .strides import broadcast_strides, contiguous_strides, is_contiguous
from .verify.graph import check
from .verify.plan import PlanError, validate

if typing.TYPE_CHECKING:
    from . import views as views
    from .planner.footprint import Entry, Footprint, footprint_of
    from .planner.memories import (
        CapacityError,
        DevicePlan,
        Memory,
        Move,
        check_capacity,
        fit_lifetimes,
        plan_memories,
    )
    from .planner.ranges import Curve, search_range
    from .planner.recorded import lifetimes_from_snapshot, read_lifetimes
    from .planner.reduction import Change, Reduction, propose_reductions
    from .verify.trace import TraceEvent, TraceFault, check_trace, trace_from_csv

view_methods.declare_registrar(f"{__name__}.views")  # a plan that runs needs none of them

__all__ = [
    "FUSED",
    "MATERIALIZED",
    "PARALLEL_WORK",
    "STREAM_FROM",
    "Argument",
    "Assignment",
    "BudgetError",
    "Buffer",
    "CapacityError",
    "Change",
    "Curve",
    "DType",
    "DevicePlan",
    "Entry",
    "Footprint",
    "Gap",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "Kernel",
    "Lifetime",
    "Memory",
    "Move",
    "Node",
    "Note",
    "PackedMemory",
    "Packing",
    "PassResult",
    "PlanError",
    "Reduction",
    "Schedule",
    "SpareMemory",
    "Tiling",
    "TraceEvent",
    "TraceFault",
    "Value",
    "WorkspacePlan",
    "broadcast_strides",
    "check",
    "check_capacity",
    "check_trace",
    "compile",
    "contiguous_strides",
    "fit_lifetimes",
    "footprint_of",
    "graph_lifetimes",
    "is_contiguous",
    "lifetimes_from_csv",
    "lifetimes_from_snapshot",
    "lifetimes_to_csv",
    "plan_lifetimes",
    "plan_memories",
    "plan_workspace",
    "propose_reductions",
    "read_lifetimes",
    "run_passes",
    "search_range",
    "trace_from_csv",
    "validate",
]


# Asked for by tools, not by a plan that runs: imported when they are used.
_LATER = {
    "Entry": "planner.footprint",
    "Footprint": "planner.footprint",
    "footprint_of": "planner.footprint",
    "CapacityError": "planner.memories",
    "DevicePlan": "planner.memories",
    "Memory": "planner.memories",
    "Move": "planner.memories",
    "check_capacity": "planner.memories",
    "fit_lifetimes": "planner.memories",
    "plan_memories": "planner.memories",
    "Curve": "planner.ranges",
    "search_range": "planner.ranges",
    "lifetimes_from_snapshot": "planner.recorded",
    "read_lifetimes": "planner.recorded",
    "Change": "planner.reduction",
    "Reduction": "planner.reduction",
    "propose_reductions": "planner.reduction",
    "TraceEvent": "verify.trace",
    "TraceFault": "verify.trace",
    "check_trace": "verify.trace",
    "trace_from_csv": "verify.trace",
}


def __getattr__(name: str) -> typing.Any:
    if name == "views":
        return importlib.import_module(f"{__name__}.views")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
