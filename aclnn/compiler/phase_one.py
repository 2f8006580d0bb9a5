"""Compilation of a call: rules, graph, passes, plan and schedule.

Runs once for each description; `aclnn.compiler._compiled_call` keeps the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn import graph
from aclnn.acl import socs
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclDataType, aclFormat
from aclnn.acl.errors import AclnnError
from aclnn.compiler import cpu_caches
from aclnn.compiler.kernel_table import kernel_of, scratch_of, threads_of
from aclnn.compiler.workspace import for_executor
from aclnn.graph.planner import strategies
from aclnn.operators import Operator
from aclnn.operators.checks import (
    MAX_DIMS,
    NOTHING_TO_DO,
    PLAIN_FORMATS,
    Call,
    Rule,
    ScalarSpec,
    TensorSpec,
    broadcast_shapes,
    promoted,
)
from aclnn.operators.lowering import Lowering, graph_dtype, pointwise

MOST_ELEMENTS = 2**47  # no machine of today addresses more bytes
# How an input may lie to the output; the numbers are those of `_compiled_call.pxd`.
APART, SAME, CROSSING = 0, 1, 2


class RefusedError(AclnnError):
    """A call that breaks a rule, for explanations.

    Attributes
    ----------
    rule : Rule or None
        None where the rule is not one of the operator's own.
    operator : Operator or None
    call : Call or None
        The call as rules see it, where it came that far.
    """

    def __init__(
        self,
        message: str,
        rule: Rule | None = None,
        operator: Operator | None = None,
        call: Call | None = None,
    ):
        super().__init__(ACLNN_ERR_PARAM_INVALID if rule is None else rule.status, message)
        self.rule = rule
        self.operator = operator
        self.call = call


@dataclass(frozen=True, slots=True)
class Request:
    """A call as phase one is given it, before anything of it was checked.

    `operands` are the inputs and the outputs, `None` where an input is null, or an output is null
    or to be made; `numbers` say of each number its dtype, its facts (bits, see `_compiled_call.pxd`) and its
    value, for messages.
    """

    operator: Operator
    operands: Sequence[TensorSpec | None]
    n_inputs: int
    numbers: Sequence[tuple[int, int, float]]
    scalar_texts: Mapping[str, str] | None
    switches: Sequence[object]
    names: Mapping[str, str]
    wanted: frozenset[str] | None = None  # outputs that are made where absent; None: all

    def __post_init__(self) -> None:
        """Name the outputs of an operator that makes a list: one for each of its tensors."""
        if self.operator.makes is None:
            return
        count, (listed,) = len(self.operands) - self.n_inputs, self.operator.outputs
        sized = self.operator.sized(count)
        name = self.names.get(listed, listed)
        names = {role: f"{name}[{place}]" for place, role in enumerate(sized.outputs)}
        object.__setattr__(self, "operator", sized)
        object.__setattr__(self, "names", {**self.names, **names})


def plan_call(
    request: Request, overlaps: Sequence[Sequence[int]], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Phase one of a call that was not seen before.

    Returns
    -------
    dict
        What an `aclnn.compiler._compiled_call.CompiledCall` is made of, by the names of its parameters.
    """
    operator = request.operator
    call, done = check_call(request, socs.FAMILIES[settings["soc"]])
    given = not call.makes_absent or all(role in call.tensors for role in operator.outputs)
    results = {} if done and given else infer(operator, call)
    outputs = _outputs(request, call, results)
    for role, spec in outputs.items():
        refuse_size(call.names[role], spec)
    written = {role: spec for role, spec in outputs.items() if spec.size and role in results}
    nothing = done or not written
    built = build_graph(request, call, outputs if nothing else written, results, overlaps, nothing)
    passed = graph.run_passes(built, "materialized" if settings["materialize"] else "fused")
    strategy = tuple(strategies.STRATEGIES)[settings["strategy"]]
    tensors = _tensors(request, call, outputs)
    # Intermediates of materialized calls are for looking at: they stay in the workspace.
    spare = () if settings["materialize"] else _apart(operator, written, overlaps)
    workspace, schedule = scheduled(passed.graph, strategy, settings["threads"], nothing, spare)
    return {
        "operator": operator,
        "call": call,
        "graph_as_built": built,
        "passes": passed,
        "workspace": workspace,
        "schedule": schedule,
        "packed": None if nothing else schedule.pack(),
        "tensors": tensors,
        "arguments": _arguments(request, tensors, written),
        "n_inputs": request.n_inputs,
        "overlaps": overlaps,
    }


def infer(operator: Operator, call: Call) -> Mapping[str, tuple[aclDataType, tuple[int, ...]]]:
    """The dtype and shape of each result, by role."""
    if operator.infer is not None:
        return operator.infer(call)
    dtype = promoted(call, operator.kernel_operands)
    assert dtype is not None, "a rule of every operator sees to it that the inputs promote"
    shape = broadcast_shapes(*(call.shape(role) for role in operator.kernel_operands))
    if "out" in call.tensors:
        shape = call.shape("out")
    elif shape is None:
        raise RefusedError(
            "the inputs' shapes do not broadcast, so the output has no shape; give one"
        )
    return {"out": (dtype, shape)}


def _outputs(
    request: Request, call: Call, results: Mapping[str, tuple[aclDataType, tuple[int, ...]]]
) -> dict[str, TensorSpec]:
    """The outputs by role, in order: as given, or dense ones of the results' dtypes."""
    found = {}
    for role in request.operator.outputs:
        if role in call.tensors:
            found[role] = call.tensors[role]
        elif role in results and (request.wanted is None or role in request.wanted):
            dtype, shape = results[role]
            found[role] = TensorSpec(dtype, shape, graph.contiguous_strides(shape))
    return found


def _tensors(
    request: Request, call: Call, outputs: Mapping[str, TensorSpec]
) -> list[TensorSpec | None]:
    """All operands, in the order of the request's."""
    operator = request.operator
    found: list[TensorSpec | None] = []
    for role in operator.kernel_operands:
        if role in operator.lists:
            found += call.lists[role]
        else:
            found.append(call.tensors.get(role))
    return [*found, *[outputs.get(role) for role in operator.outputs]]


def _arguments(
    request: Request, tensors: Sequence[TensorSpec | None], written: Mapping[str, TensorSpec]
) -> list[int]:
    """The places of the operands that a graph has: inputs that are there, outputs that are written."""
    inputs = [place for place, spec in enumerate(tensors[: request.n_inputs]) if spec is not None]
    outputs = enumerate(request.operator.outputs, request.n_inputs)
    return inputs + [place for place, role in outputs if role in written]


def _apart(
    operator: Operator, written: Mapping[str, TensorSpec], overlaps: Sequence[Sequence[int]]
) -> tuple[str, ...]:
    """The outputs that overlap no input."""
    rows = zip(operator.outputs, overlaps, strict=True)
    return tuple([role for role, lies in rows if role in written and not any(lies)])


def scheduled(
    passed: graph.Graph,
    strategy: str,
    threads: int,
    nothing: bool,
    spare: Sequence[str] = (),
    own: Mapping[str, Any] | None = None,
    outputs_apart: bool = False,
) -> tuple[graph.WorkspacePlan, graph.Schedule]:
    """Workspace and schedule of a graph after its passes; both are empty where there is `nothing` to do.

    `own` has the kernels of nodes that are not of this package, by their attribute `own`.
    `outputs_apart` says that no output overlaps another.
    """
    if nothing:
        names = tuple([passed.value(id).name for id in (*passed.inputs, *passed.outputs)])
        empty = graph.plan_lifetimes((), strategy, threads=threads)
        return for_executor(empty), graph.Schedule((), names, 0, 0, 0, threads)
    kernels = {node.name: kernel_of(passed, node, own or {}) for node in passed.nodes}
    plan = for_executor(
        graph.plan_workspace(
            passed,
            strategy,
            threads=threads,
            scratch_of=scratch_of(kernels, threads),
            threads_of=threads_of(kernels, threads),
            spare_outputs=spare,
            outputs_apart=outputs_apart,
        )
    )
    stream_from = cpu_caches.stream_from(threads)
    return plan, graph.compile(
        passed, plan, lambda node: kernels[node.name], stream_from=stream_from
    )


def own_kernels(passed: graph.Graph, schedule: graph.Schedule) -> dict[str, Any]:
    """The kernels of a schedule that are not of this package, as `scheduled` takes them."""
    kernels = dict(zip(schedule.node_names(), schedule.kernels, strict=True))
    owned = [node for node in passed.nodes if node.attr("own") is not None]
    return {node.attr("own"): kernels[node.name] for node in owned}


def check_call(request: Request, soc: str) -> tuple[Call, bool]:
    """Go through the operator's rules; the first that is broken decides.

    Returns
    -------
    call : Call
    done : bool
        Whether a rule found that there is nothing to do.
    """
    call = _as_call(request, soc)
    if not socs.has_operators(call.soc):
        raise RefusedError(f"no operator of this package exists on {call.soc}")
    for rule in request.operator.rules:
        message = rule.test(call)
        if message == NOTHING_TO_DO:
            return call, True
        if message is not None:
            raise RefusedError(message, rule, request.operator, call)
    _check_outputs(request.operator, call)
    return call, False


def _as_call(request: Request, soc: str) -> Call:
    operator, names = request.operator, request.names
    roles = (*operator.kernel_operands, *operator.outputs)
    inputs = list(request.operands)
    lists = {}
    if operator.lists:
        (role,) = operator.lists
        first, last = operator.kernel_operands.index(role), request.n_inputs
        lists[role] = tuple([spec for spec in inputs[first:last] if spec is not None])
        inputs[first:last] = [None]
    return Call(
        tensors={role: spec for role, spec in zip(roles, inputs, strict=True) if spec is not None},
        scalars={
            attribute.role: _scalar(attribute.role, found, request.scalar_texts or {})
            for attribute, found in zip(operator.scalars, request.numbers, strict=True)
        },
        switches={
            a.role: value for a, value in zip(operator.switches, request.switches, strict=True)
        },
        names={role: names.get(role, role) for role in (*roles, *names)}
        | {a.role: names.get(a.role, a.role) for a in operator.attributes},
        soc=soc,
        lists=lists,
        makes_absent=request.wanted is None,
        c_shaped=request.wanted is not None,
    )


# The bits of a number's facts, as `_compiled_call.pxd` has them.
_BITS = tuple(1 << bit for bit in range(8))
NEGATIVE, NOT_REAL, IS_ZERO, IS_ONE, IS_NAN, IS_WHOLE, IS_ABSENT, IS_BELOW = _BITS


def _scalar(role: str, found: tuple[int, int, float], texts: Mapping[str, str]) -> ScalarSpec:
    dtype, facts, value = found
    return ScalarSpec(
        convertible=not facts & NOT_REAL,
        negative=bool(facts & NEGATIVE),
        text=texts.get(role) or repr(float(value)),
        value=value,
        dtype=aclDataType(dtype),
        zero=bool(facts & IS_ZERO),
        one=bool(facts & IS_ONE),
        nan=bool(facts & IS_NAN),
        whole=bool(facts & IS_WHOLE),
        absent=bool(facts & IS_ABSENT),
        below=bool(facts & IS_BELOW),
    )


def _check_outputs(operator: Operator, call: Call) -> None:
    """Check the rules of every operator: outputs are writable, no two of their elements share bytes."""
    for role in operator.outputs:
        out = call.tensors.get(role)
        if out is None or out.size == 0:
            continue
        if not out.writable:
            message = f"{call.names[role]} is read-only, but is the output"
            raise RefusedError(message, None, operator, call)
        if elements_meet(out):
            raise RefusedError(
                f"{call.names[role]} has strides {out.strides} for shape {out.shape}, which make "
                "elements of the output share memory",
                None,
                operator,
                call,
            )


def elements_meet(spec: TensorSpec) -> bool:
    """Whether two elements of a view lie at one place.

    Where more than two dimensions reach into each other, by looking at all elements; of more than a
    mebi of them it is taken for granted: hardly ever do such not meet.
    """
    pairs = zip(spec.strides, spec.shape, strict=True)
    dims = sorted((abs(stride), size) for stride, size in pairs if size > 1)
    # A dimension that steps over all that the others reach keeps elements apart.
    while dims and dims[-1][0] > sum((size - 1) * stride for stride, size in dims[:-1]):
        dims.pop()
    if not dims:
        return False
    if dims[0][0] == 0:  # all elements along it are one
        return True
    if len(dims) == 2:
        (low, many), (high, more) = dims
        return high // math.gcd(low, high) < many and low // math.gcd(low, high) < more
    if math.prod(size for _, size in dims) > 1 << 20:
        return True
    offsets = np.zeros(1, np.int64)
    for stride, size in dims:
        offsets = np.add.outer(offsets, np.arange(size) * stride).ravel()
    return np.unique(offsets).size < offsets.size


def refuse_size(name: str, spec: TensorSpec) -> None:
    """Inputs are no larger: what they share with the output is all that is walked over."""
    if len(spec.shape) > MAX_DIMS:
        raise RefusedError(
            f"{name} has shape {spec.shape}, {len(spec.shape)} dimensions, at most {MAX_DIMS} are "
            "supported"
        )
    if spec.size > MOST_ELEMENTS:
        raise RefusedError(
            f"{name} has shape {spec.shape}, {spec.size} elements, which no memory holds"
        )


def build_graph(
    request: Request,
    call: Call,
    outputs: Mapping[str, TensorSpec],
    results: Mapping[str, tuple[aclDataType, tuple[int, ...]]],
    overlaps: Sequence[Sequence[int]],
    nothing: bool,
) -> graph.Graph:
    """The op-graph as the NPU library would build it: every step present, also those that idle.

    What the operator lowers its call to; then for each output a Cast to its dtype, and a ViewCopy
    into its strides.  A call that does nothing is drawn as one copy of nothing.
    """
    builder = graph.GraphBuilder()
    if nothing:
        given = zip(request.operator.kernel_operands, request.operands, strict=False)
        sources = {role: spec for role, spec in given if spec is not None}
        return nothing_graph(builder, request.operator.name, sources, outputs)
    values, lists, first = _inputs(builder, request, call, overlaps)
    targets = {
        role: builder.output(
            role,
            spec.shape,
            graph_dtype(spec.dtype),
            strides=spec.strides,
            alias_of=_alias(first, overlaps, request.operator.outputs.index(role)),
            note=note_of(spec),
        )
        for role, spec in outputs.items()
    }
    numbers = {a.role: number for number, a in enumerate(request.operator.scalars)}
    wanted = {role: found for role, found in results.items() if role in outputs}
    lowering = Lowering(builder, call, values, lists, wanted, numbers)
    for role, value in lowered(request.operator, call, lowering).items():
        if role in targets:
            cast = builder.cast(value, graph_dtype(outputs[role].dtype))
            builder.view_copy(cast, targets[role])
    return builder.build(verify=False)


def lowered(operator: Operator, call: Call, lowering: Lowering) -> Mapping[str, int]:
    if operator.lower is not None:
        return operator.lower(lowering)
    return pointwise(lowering, operator, operator.formula_for(call.switches))


def nothing_graph(
    builder: graph.GraphBuilder,
    name: str,
    inputs: Mapping[str, TensorSpec],
    outputs: Mapping[str, TensorSpec],
) -> graph.Graph:
    """A graph that shows the operands of calls with nothing to do."""
    source = None
    for role, spec in inputs.items():
        source = builder.input(role, (0,), graph_dtype(spec.dtype))
    for role, spec in outputs.items():
        dtype = graph_dtype(spec.dtype)
        made = builder.compute(name, [] if source is None else [source], (0,), dtype)
        builder.view_copy(made, builder.output(role, (0,), dtype))
    return builder.build(verify=False)


def _inputs(
    builder: graph.GraphBuilder,
    request: Request,
    call: Call,
    overlaps: Sequence[Sequence[int]],
) -> tuple[dict[str, int], dict[str, tuple[int, ...]], list[int | None]]:
    """The inputs by role, single ones and lists, and in order as they are declared.

    An input that an output crosses is copied before anything is written.
    """
    operator = request.operator
    values: dict[str, int] = {}
    lists: dict[str, tuple[int, ...]] = {}
    declared: list[int | None] = []

    def declare(name: str, spec: TensorSpec) -> int:
        value = builder.input(
            name, spec.shape, graph_dtype(spec.dtype), strides=spec.strides, note=note_of(spec)
        )
        declared.append(value)
        return value

    for role in operator.kernel_operands:
        if role in operator.lists:
            lists[role] = tuple(
                [declare(f"{role}_{n}", spec) for n, spec in enumerate(call.lists[role])]
            )
        elif role in call.tensors:
            values[role] = declare(role, call.tensors[role])
        else:
            declared.append(None)
    crossed = {
        value
        for row in overlaps
        for value, lies in zip(declared, row, strict=True)
        if lies == CROSSING
    }
    if operator.lower is not None:
        crossed |= hidden_aliases(declared, overlaps)
    if not crossed:
        return values, lists, declared
    copies = {
        value: builder.contiguous(value, reason="overlap")
        for value in declared
        if value is not None and value in crossed
    }
    values = {role: copies.get(value, value) for role, value in values.items()}
    lists = {role: tuple([copies.get(v, v) for v in found]) for role, found in lists.items()}
    return values, lists, [None if value in copies else value for value in declared]


def hidden_aliases(declared: Sequence[int | None], overlaps: Sequence[Sequence[int]]) -> set[int]:
    """Inputs that an output takes the place of without being called their alias: one only is.

    Pointwise operators have read all of their inputs' elements when they write one.
    """
    found: set[int] = set()
    for row in overlaps:
        alike = [v for v, lies in zip(declared, row, strict=True) if lies == SAME and v is not None]
        found.update(alike[1:])
    return found


def _alias(
    declared: Sequence[int | None], overlaps: Sequence[Sequence[int]], out: int
) -> int | None:
    """The input whose elements an output takes the place of."""
    for value, lies in zip(declared, overlaps[out], strict=True):
        if lies == SAME and value is not None:
            return value
    return None


def note_of(spec: TensorSpec) -> str:
    if spec.format in PLAIN_FORMATS:
        return ""
    return f"{aclFormat(spec.format).name}: its storage is taken as laid out plainly"
