"""Losses of distances between numbers, and between distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    FLOATING_AND_DOUBLE,
    Call,
    Rule,
    broadcast_shapes,
    dtype_among,
    of_cann,
    promoted,
    rule,
    switch_among,
)
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.words import require

Shape = tuple[int, ...]
_BOTH = ("input", "target")
_DOUBLE, _TRUTH = aclDataType.ACL_DOUBLE, aclDataType.ACL_BOOL
_REDUCTIONS = ("none", "mean", "sum")
_OF_BATCHES = (*_REDUCTIONS, "batchmean")


def _terms_shape(call: Call) -> Shape:
    shape = broadcast_shapes(*[call.shape(role) for role in call.given(_BOTH)])
    return () if shape is None else shape


def _result_shape(call: Call) -> Shape:
    """The shape of the result; some of CANN's functions take any `out` of one element for a number."""
    if call.switches["reduction"] == "none":
        return _terms_shape(call)
    takes_any = "beta" in call.scalars or "log_target" in call.switches
    if call.c_shaped and takes_any and "out" in call.tensors:
        return call.shape("out") if call.tensors["out"].size == 1 else ()
    return ()


@rule("`out` has the shape of the losses, or of one number", "out", *_BOTH)
def _fits(call: Call) -> str | None:
    requested = _result_shape(call)
    if "out" not in call.tensors or call.shape("out") == requested:
        return None
    return f"{call.shaped('out')}, must have {requested}"


@rule("`beta` is not negative")
def _is_threshold(call: Call) -> str | None:
    found = call.scalars["beta"]
    if not (found.negative or found.nan):
        return None
    return f"{call.names['beta']} is {found.text}, must not be negative"


def _difference(lowering: Lowering, shape: Shape) -> int:
    operands = [lowering.dense(role, _DOUBLE, shape) for role in _BOTH]
    return lowering.point("sub", operands, _DOUBLE, shape, params=(1.0,))


def _squared(lowering: Lowering, shape: Shape) -> int:
    return lowering.point("square", [_difference(lowering, shape)], _DOUBLE, shape)


def _absolute(lowering: Lowering, shape: Shape) -> int:
    return lowering.point("abs", [_difference(lowering, shape)], _DOUBLE, shape)


def _smooth(lowering: Lowering, shape: Shape) -> int:
    """Distances below the threshold squared; the quotient by a threshold of 0 is infinite or NaN, not below 1."""
    size = _absolute(lowering, shape)
    beta = lowering.point("fill", (), _DOUBLE, shape, params=(lowering.number("beta"),))
    share = lowering.point("div", [size, beta], _DOUBLE, shape)
    near = lowering.point("mul", [size, share], _DOUBLE, shape)
    near = lowering.point("muls", [near], _DOUBLE, shape, params=(0.5,))
    far = lowering.point("sub", [size, beta], _DOUBLE, shape, params=(0.5,))
    one = lowering.filled(1, _DOUBLE, shape)
    below = lowering.point("lt", [share, one], _TRUTH, shape, reads="float64")
    return lowering.point("where", [below, near, far], _DOUBLE, shape, reads="float64")


def _divergence(lowering: Lowering, shape: Shape) -> int:
    """A target of 0 has no part of its own."""
    value, target = (lowering.dense(role, _DOUBLE, shape) for role in _BOTH)
    if lowering.call.switches["log_target"]:
        difference = lowering.point("sub", [target, value], _DOUBLE, shape, params=(1.0,))
        grown = lowering.point("exp", [target], _DOUBLE, shape)
        return lowering.point("mul", [grown, difference], _DOUBLE, shape)
    own = lowering.point("log", [target], _DOUBLE, shape)
    own = lowering.point("mul", [target, own], _DOUBLE, shape)
    nothing = lowering.filled(0, _DOUBLE, shape)
    absent = lowering.point("eq", [target, nothing], _TRUTH, shape, reads="float64")
    own = lowering.point("where", [absent, nothing, own], _DOUBLE, shape, reads="float64")
    crossed = lowering.point("mul", [target, value], _DOUBLE, shape)
    return lowering.point("sub", [own, crossed], _DOUBLE, shape, params=(1.0,))


def _divisor(call: Call) -> float:
    """Divisor of the sum of losses."""
    shape = _terms_shape(call)
    if call.switches["reduction"] == "batchmean":
        return float((call.shape("input") or (1,))[0])
    return float(math.prod(shape)) if call.switches["reduction"] == "mean" else 1.0


def _lower(terms: Callable[[Lowering, Shape], int]) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, builder, (dtype, made) = lowering.call, lowering.builder, lowering.results["out"]
        shape, reduction = _terms_shape(call), call.switches["reduction"]
        size = math.prod(shape)
        if size == 0 and reduction != "none":
            nothing = lowering.filled(0, dtype, made)
            if _divisor(call):
                return {"out": nothing}
            return {"out": lowering.point("divs", [nothing], dtype, made, params=(0.0,))}
        value = terms(lowering, shape)
        if reduction != "none":
            line = lowering.reshaped(value, (1, size))
            (value,) = lowering.rows("sum", [line], [(_DOUBLE, (1, 1))], -1)
            value = lowering.point("divs", [value], _DOUBLE, (1, 1), params=(_divisor(call),))
        return {"out": lowering.reshaped(builder.cast(value, graph_dtype(dtype)), made)}

    return lower


_SHARE = "(grad / ((input - target).numel() or 1) if reduction == 'mean' else grad)"


def _reduction(choices: tuple[str, ...]) -> Attribute:
    return argument("reduction", "mean", "str", "What becomes of the losses.", choices=choices)


def _loss(
    name: str,
    cann: str,
    summary: str,
    expression: str,
    found: str,
    terms: Callable[[Lowering, Shape], int],
    slope: str,
    *,
    more: tuple[Attribute, ...] = (),
    option: str = "",
    output: str = "out",
    notes: str = "",
    last: tuple[Rule, ...] = (),
) -> Operator:
    return Operator(
        name=name,
        summary=summary,
        expression=f"out = {expression}, of each pair of elements, their sum, or their mean",
        notes=f"The mean of no losses is NaN, their sum 0.{notes}",
        inputs=_BOTH,
        attributes=(
            _reduction(_REDUCTIONS),
            *more,
        ),
        entries=(
            entry(f"aclnn{cann}", f"self=input target reduction:int {option}{output}=out:out"),
        ),
        rules=(
            *[dtype_among(role, FLOATING_AND_DOUBLE) for role in _BOTH],
            *[of_cann(dtype_among(role, FLOATING)) for role in (*_BOTH, "out")],
            *require("input, target: promote to FLOATING_AND_DOUBLE; out: cast of input, target"),
            switch_among("reduction", _REDUCTIONS),
            *require("input, target: at most 8 dims; input, target: broadcast"),
            _fits(),
            *last,
        ),
        infer=lambda call: {"out": (promoted(call, _BOTH), _result_shape(call))},
        lower=_lower(terms),
        example=(
            f"{name}(np.float32([1, 2]), np.float32([1.5, 5]))",
            f"array({found}, dtype=float32)",
        ),
        accuracy="Losses and their sum are computed in float64, and rounded once.",
        gradient={"input": f"{slope} * {_SHARE}", "target": f"-{slope} * {_SHARE}"},
    )


mse_loss = _loss(
    "mse_loss",
    "MseLoss",
    "Squared distances.",
    "(input - target)²",
    "4.625",
    _squared,
    "(2 * (input - target))",
)
l1_loss = _loss(
    "l1_loss",
    "L1Loss",
    "Distances.",
    "|input - target|",
    "1.75",
    _absolute,
    "aten.sgn(input - target)",
    notes=" Integers, which CANN takes, are refused.",
)
smooth_l1_loss = _loss(
    "smooth_l1_loss",
    "SmoothL1Loss",
    "Distances, of small ones their squares.",
    "d < beta: d²/(2·beta), else d - beta/2, with d = |input - target|",
    "1.3125",
    _smooth,
    "(aten.clamp((input - target) / beta, -1, 1) if beta else aten.sgn(input - target))",
    more=(
        argument("beta", 1.0, "float", "Distance from which losses are linear.", facts=("nan",)),
    ),
    option="beta:float ",
    output="result",
    last=(_is_threshold(),),
)

_DIVIDED = (
    "(grad / ((input - target).numel() or 1) if reduction == 'mean' else "
    "grad / (input.shape[0] if input.ndim else 1) if reduction == 'batchmean' else grad)"
)
kl_div = Operator(
    name="kl_div",
    summary="Divergence of a distribution from one given by its logarithms.",
    expression=(
        "out = target·(ln target - input), with log_target e^target·(target - input), of each pair of elements, their "
        "sum, or that divided by their number or by the first size of input"
    ),
    notes=(
        "A target of 0 has no logarithm to add, one below 0 gives NaN. The mean of no losses is NaN, their sum 0. "
        "`batchmean` divides the sum by the first size of `input`."
    ),
    inputs=_BOTH,
    attributes=(
        _reduction(_OF_BATCHES),
        Attribute("log_target", False, "bool", doc="Whether `target` has logarithms."),
    ),
    entries=(
        entry("aclnnKlDiv", "self=input target reduction:int logTarget=log_target:bool out:out"),
    ),
    rules=(
        *[dtype_among(role, FLOATING_AND_DOUBLE) for role in _BOTH],
        *[of_cann(dtype_among(role, FLOATING)) for role in (*_BOTH, "out")],
        *require("input, target: promote to FLOATING_AND_DOUBLE; out: cast of input, target"),
        *require("input, target, out: at most 8 dims"),
        switch_among("reduction", _OF_BATCHES),
        *require("input, target: broadcast"),
        _fits(),
    ),
    infer=lambda call: {"out": (promoted(call, _BOTH), _result_shape(call))},
    lower=_lower(_divergence),
    example=(
        'kl_div(np.float32([0, -1]), np.float32([1, 0]), "sum")',
        "array(0., dtype=float32)",
    ),
    accuracy="Losses and their sum are computed in float64, and rounded once.",
    gradient={
        "input": f"-(aten.exp(target) if log_target else target) * {_DIVIDED}",
        "target": f"(aten.exp(target) * (target + 1 - input) if log_target else aten.log(target) + 1 - input) * {_DIVIDED}",
    },
)
