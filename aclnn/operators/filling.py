"""Numbers in the place of elements: fill, zero, one, masked fill."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    NUMERIC,
    REAL,
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
    of_cann,
    rule,
)
from aclnn.operators.declaration import REQUIRED, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import like_input
from aclnn.operators.words import require, specs

Inferred = Mapping[str, tuple[aclDataType, tuple[int, ...]]]

_VALUE = argument("value", REQUIRED, "scalar", "The new value of elements.", facts=("zero",))
_CONVERTED = (
    "The number is converted to the dtype of `input`: it is truncated for integers, and for BOOL "
    "everything but 0 is true."
)


def _filled(lowering: Lowering) -> int:
    """The number, in the result's dtype and shape."""
    dtype, shape = lowering.results["out"]
    params = lowering.params(("value",), dtype)
    if dtype == aclDataType.ACL_BOOL:
        params = (int(not lowering.call.scalars["value"].zero),)
    return lowering.point("fill", (), dtype, shape, params=params)


@rule("`value` is real, unless `input` is complex")
def _real_for_real(call: Call) -> str | None:
    if call.dtype("input") in COMPLEX or call.scalars["value"].convertible:
        return None
    return (
        f"{call.names['value']} is {call.scalars['value'].text}, which {call.names['input']} "
        f"of "
        f"dtype {call.dtype('input').name.removeprefix('ACL_')} cannot hold"
    )


fill = Operator(
    name="fill",
    in_place="fill_",
    summary="Fills a tensor with a number.",
    expression="value",
    notes=_CONVERTED,
    lower=lambda lowering: {"out": _filled(lowering)},
    inputs=("input",),
    attributes=(_VALUE,),
    entries=(entry("aclnnInplaceFillScalar", "selfRef=input:inout value:scalar"),),
    rules=(
        *require("input: NUMERIC; out: dtype of input"),
        _real_for_real(),
        *require("input: at most 8 dims; out: shape of input"),
    ),
    example=("fill(np.float32([1, 2]), 3)", "array([3., 3.], dtype=float32)"),
    gradient={"input": "aten.zeros_like(grad)"},
    elementwise=True,
)


def _constant(name: str, item: str, number: int, *rules: Rule, **more: Any) -> Operator:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        return {"out": lowering.filled(number, *lowering.results["out"])}

    return Operator(
        name=name,
        in_place=name,
        summary=f"Fills a tensor with {number}.",
        expression=f"{number}",
        infer=like_input,
        lower=lower,
        inputs=("input",),
        entries=(entry(item, "selfRef=input:inout"),),
        rules=rules,
        example=(f"{name}(np.float32([5, 7]))", f"array([{number}., {number}.], dtype=float32)"),
        seealso=("fill",),
        differentiated_as=f"aten.fill_(input, {number})",
        **more,
    )


zero_ = _constant(
    "zero_",
    "aclnnInplaceZero",
    0,
    dtype_among("input", (*NUMERIC, aclDataType.ACL_UINT16)),
    any_rank=True,
)
one_ = _constant(
    "one_",
    "aclnnInplaceOne",
    1,
    dtype_among("input", NUMERIC),
    of_cann(dtype_among("input", REAL)),
    at_most_8_dims("input"),
)


# --- Masked fill ------------------------------------------------------------------------------------

_MASKED = ("input", "mask")


def _lower_masked(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    operands = [
        lowering.dense("mask", None, shape),
        _filled(lowering),
        lowering.dense("input", None, shape),
    ]
    made = lowering.point("where", operands, dtype, shape, reads=graph_dtype(dtype).name)
    return {"out": made}


masked_fill = Operator(
    name="masked_fill",
    in_place="masked_fill_",
    summary="Fills elements with a number where a mask is true.",
    expression="mask: value; else input",
    notes=f"Other elements keep their bits. {_CONVERTED}",
    lower=_lower_masked,
    inputs=_MASKED,
    attributes=(_VALUE,),
    sample_specs=specs("mask: BOOL"),
    entries=(entry("aclnnInplaceMaskedFillScalar", "selfRef=input:inout mask value:scalar"),),
    rules=(
        *require("input: NUMERIC; mask: BOOL; out: dtype of input"),
        _real_for_real(),
        *require("input, mask: at most 8 dims; input, mask: broadcast"),
        *require("out: broadcast of input, mask"),
    ),
    example=(
        "masked_fill(np.float32([1, 2]), np.bool_([True, False]), 0.5)",
        "array([0.5, 2. ], dtype=float32)",
    ),
    seealso=("where",),
    gradient={"input": "where(mask, 0, grad)"},
    chunking="elementwise",
)
