"""The slow half of phase one: check a call's description, build its graph, plan and schedule it.

Runs once for each description; `aclnn.planning._plan` keeps the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from aclnn import graph, isa
from aclnn.acl import dtypes, products
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclDataType, aclFormat
from aclnn.acl.errors import AclnnError
from aclnn.graph.planner import strategies as planners
from aclnn.operators import Operator
from aclnn.operators.rules import (
    NOTHING_TO_DO,
    Call,
    Rule,
    ScalarSpec,
    TensorSpec,
    broadcast_shapes,
    promoted,
)
from aclnn.planning import cpu_caches
from aclnn.planning.workspace import for_executor

MOST_ELEMENTS = 2**47  # no machine of today addresses more bytes
# How an input may lie to the output; the numbers are those of `_plan.pxd`.
SAME, CROSSING = 1, 2

Operand = tuple[int, tuple[int, ...], tuple[int, ...], int, bool]


class RefusedError(AclnnError):
    """A call that breaks a rule; knows the rule, for explanations."""

    def __init__(self, message: str, rule: Rule | None = None):
        super().__init__(ACLNN_ERR_PARAM_INVALID, message)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Request:
    """A call as phase one is given it, before anything of it was checked.

    `operands` are the kernel's inputs and the output, `None` where that is to be made; `signs` say of
    each scalar whether it converts, and whether it is below zero.
    """

    operator: Operator
    operands: Sequence[Operand | None]
    signs: Sequence[tuple[bool, bool]]
    scalar_texts: Mapping[str, str] | None
    switches: Sequence[object]
    names: Mapping[str, str]


def plan_call(
    request: Request, overlaps: Sequence[int], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Phase one of a call that was not seen before.

    Returns
    -------
    dict
        What an `aclnn.planning._plan.Plan` is made of, by the names of its parameters.
    """
    operator = request.operator
    call, done = check_call(request, products.FAMILIES[settings["soc"]])
    out = call.tensors.get("out") or _new_output(operator, call)
    _refuse_size(request.names["out"], out)
    tensors = (*(call.tensors[role] for role in operator.kernel_operands), out)
    result = _result_dtype(operator, call)
    formula = operator.formula_for(call.switches)
    built = build_graph(operator, formula, *_drawn(tensors, done), result, overlaps)
    passed = graph.run_passes(built, "materialized" if settings["materialize"] else "fused")
    strategy = tuple(planners.STRATEGIES)[settings["strategy"]]
    nothing = out.size == 0 or done
    workspace, schedule = scheduled(passed.graph, strategy, settings["threads"], nothing)
    return {
        "operator": operator,
        "call": call,
        "graph_as_built": built,
        "passes": passed,
        "workspace": workspace,
        "schedule": schedule,
        "packed": None if nothing else schedule.pack(),
        "tensors": tensors,
        "overlaps": overlaps,
        "scalars_as_double": operator.scalars_as_double and result == aclDataType.ACL_DOUBLE,
    }


def scheduled(
    passed: graph.Graph, strategy: str, threads: int, nothing: bool
) -> tuple[graph.WorkspacePlan, graph.Schedule]:
    """Workspace and schedule of a graph after its passes; both are empty where there is `nothing` to do."""
    if nothing:
        names = tuple(passed.value(id).name for id in (*passed.inputs, *passed.outputs))
        empty = graph.plan_lifetimes((), strategy, threads=threads)
        return for_executor(empty), graph.Schedule((), names, 0, 0, 0, threads)
    plan = for_executor(graph.plan_workspace(passed, strategy, threads=threads))
    kernels, stream_from = partial(kernel_of, passed), cpu_caches.stream_from(threads)
    return plan, graph.compile(passed, plan, kernels, stream_from=stream_from)


def _drawn(tensors: Sequence[TensorSpec], done: bool) -> tuple[Sequence[TensorSpec], TensorSpec]:
    """The inputs and the output that the graph shows.

    Where there is nothing to do, shapes need not fit each other; then it shows empty ones.
    """
    *inputs, out = tensors
    if done and broadcast_shapes(*(spec.shape for spec in inputs)) != out.shape:
        *inputs, out = (replace(spec, shape=(0,), strides=(1,)) for spec in tensors)
    return inputs, out


def check_call(request: Request, soc: str) -> tuple[Call, bool]:
    """Go through the operator's rules; the first that is broken decides.

    Returns
    -------
    call : Call
    done : bool
        Whether a rule found that there is nothing to do.
    """
    call = _as_call(request, soc)
    if not products.has_operators(call.soc):
        raise RefusedError(f"no operator of this package exists on {call.soc}")
    for rule in request.operator.rules:
        message = rule.test(call)
        if message == NOTHING_TO_DO:
            return call, True
        if message is not None:
            raise RefusedError(message, rule)
    _check_output(call)
    return call, False


def _as_call(request: Request, soc: str) -> Call:
    operator, names, texts = request.operator, request.names, request.scalar_texts or {}
    roles = (*operator.kernel_operands, "out")
    return Call(
        tensors={
            role: TensorSpec(aclDataType(operand[0]), *operand[1:])
            for role, operand in zip(roles, request.operands, strict=True)
            if operand is not None
        },
        scalars={
            attribute.role: ScalarSpec(convertible, negative, texts.get(attribute.role, "negative"))
            for attribute, (convertible, negative) in zip(
                operator.scalars, request.signs, strict=True
            )
        },
        switches={
            a.role: value for a, value in zip(operator.switches, request.switches, strict=True)
        },
        names={role: names.get(role, role) for role in (*roles, *names)}
        | {a.role: names.get(a.role, a.role) for a in operator.attributes},
        soc=soc,
    )


def _check_output(call: Call) -> None:
    """What holds for every operator: the output is writable and no two elements share bytes."""
    out = call.tensors.get("out")
    if out is None or out.size == 0:
        return
    if not out.writable:
        raise RefusedError(f"{call.names['out']} is read-only, but is the output")
    if _elements_meet(out):
        raise RefusedError(
            f"{call.names['out']} has strides {out.strides} for shape {out.shape}, which make "
            "elements of the output share memory"
        )


def _elements_meet(spec: TensorSpec) -> bool:
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
    if len(dims) == 2:
        (low, many), (high, more) = dims
        return high // math.gcd(low, high) < many and low // math.gcd(low, high) < more
    if math.prod(size for _, size in dims) > 1 << 20:
        return True
    offsets = np.zeros(1, np.int64)
    for stride, size in dims:
        offsets = np.add.outer(offsets, np.arange(size) * stride).ravel()
    return np.unique(offsets).size < offsets.size


def _result_dtype(operator: Operator, call: Call) -> aclDataType:
    """The dtype that the formula's value is rounded to first."""
    found = promoted(call, operator.kernel_operands)
    assert found is not None, "a rule of every operator sees to it that the inputs promote"
    return found


def _new_output(operator: Operator, call: Call) -> TensorSpec:
    """The output of a functional call that gave none: dense, of the result's dtype."""
    shape = broadcast_shapes(*(call.shape(role) for role in operator.kernel_operands))
    if shape is None:
        raise RefusedError(
            "the inputs' shapes do not broadcast, so the output has no shape; give one"
        )
    return TensorSpec(_result_dtype(operator, call), shape, graph.contiguous_strides(shape))


def _refuse_size(name: str, spec: TensorSpec) -> None:
    """Inputs are no larger: what they share with the output is all that is walked over."""
    if spec.size > MOST_ELEMENTS:
        raise RefusedError(
            f"{name} has shape {spec.shape}, {spec.size} elements, which no memory holds"
        )


def build_graph(
    operator: Operator,
    formula: str,
    inputs: Sequence[TensorSpec],
    out: TensorSpec,
    result: aclDataType,
    overlaps: Sequence[int],
) -> graph.Graph:
    """The op-graph as the NPU library would build it: every step present, also those that idle.

    Input by input Contiguous, Cast and BroadcastTo; one Compute in the result's dtype; Cast to
    the output's dtype; ViewCopy into the output's strides.
    """
    builder = graph.GraphBuilder()
    values = [
        builder.input(role, spec.shape, _dtype(spec.dtype), strides=spec.strides, note=_note(spec))
        for role, spec in zip(operator.kernel_operands, inputs, strict=True)
    ]
    same = next((v for v, lies in zip(values, overlaps, strict=True) if lies == SAME), None)
    target = builder.output(
        "out", out.shape, _dtype(out.dtype), strides=out.strides, alias_of=same, note=_note(out)
    )
    operands = []
    for value, spec, lies in zip(values, inputs, overlaps, strict=True):
        dense = builder.contiguous(value, reason="overlap" if lies == CROSSING else None)
        wide = builder.cast(dense, _dtype(_operand_dtype(spec.dtype, result)))
        operands.append(builder.broadcast_to(wide, out.shape))
    computed = builder.compute(
        formula, operands, out.shape, _dtype(result), expression=operator.expression
    )
    builder.view_copy(builder.cast(computed, _dtype(out.dtype)), target)
    return builder.build()


def _operand_dtype(dtype: aclDataType, result: aclDataType) -> aclDataType:
    """What an input is cast to: the promoted dtype, but never through a narrower float.

    Formulas see inputs as if converted to float32, so an integer that promotes to a half goes
    to float32 at once.
    """
    if dtype == result or result == aclDataType.ACL_DOUBLE:
        return result
    return aclDataType.ACL_FLOAT


def _dtype(dtype: aclDataType) -> graph.DType:
    return graph.DType(dtypes.name(dtype), dtypes.item_size(dtype))


def _note(spec: TensorSpec) -> str:
    if spec.format in PLAIN_FORMATS:
        return ""
    return f"{aclFormat(spec.format).name}: its storage is taken as laid out plainly"


PLAIN_FORMATS = frozenset(
    aclFormat[f"ACL_FORMAT_{name}"]
    for name in ("UNDEFINED", "ND", "NCHW", "NHWC", "HWCN", "NDHWC", "NCDHW", "NC", "NCL")
)


def kernel_of(owner: graph.Graph, node: graph.Node) -> Any:
    """The kernel of a node, from those of the instruction set in use."""
    inputs = tuple(owner.value(id).dtype.name for id in node.inputs)
    output = owner.value(node.output).dtype.name
    kernels = isa.kernels()
    if node.kind == "Compute":
        result = node.attr("result_dtype", output)
        return kernels.compute_kernel(node.attr("kernel"), inputs, output, result)
    return kernels.cast_kernel(inputs[0], output)
