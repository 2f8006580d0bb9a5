"""Logic on the bits of integers: of two tensors, of a tensor and a number, of one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    INTEGERS,
    Call,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    dtype_among,
    in_place,
    promoted,
    promotes,
    result_castable,
    rule,
    scalar_dtype_among,
)
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.pointwise import BOTH, camel, with_number
from aclnn.operators.words import require, specs

_BITS = (*INTEGERS, aclDataType.ACL_BOOL)
_NOTES = "For bools it is the logical function."


def _of_both(call: Call) -> aclDataType | None:
    """A number keeps an integer tensor's dtype, as in PyTorch, but in C-shaped calls both promote."""
    if "other" not in call.scalars:
        return promoted(call, BOTH)
    own, other = call.dtype("input"), call.scalars["other"].dtype
    keeps = not call.c_shaped or call.soc == "Ascend950"
    return own if keeps and own != aclDataType.ACL_BOOL else dtypes.promote(own, other)


def _infer(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    shape = broadcast_shapes(*[call.shape(role) for role in call.given(BOTH)])
    assert shape is not None, "a rule sees to it that the inputs broadcast"
    return {"out": (_of_both(call), shape)}


def _lower(name: str) -> Any:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        operands = lowering.pair(BOTH, dtype, shape)
        return {"out": lowering.point(name, operands, dtype, shape)}

    return lower


def _bitwise(
    name: str, sign: str, word: str, found: str, gives: tuple[aclDataType, ...]
) -> tuple[Operator, Operator]:
    """The function of two tensors and that of a tensor and a number; `found` is of 6 and 3 with 5."""
    cann, whole = camel(name), name == "bitwise_and"
    of_tensors, of_number = with_number(
        name,
        (f"{cann}Tensor", f"{cann}Scalar"),
        f"{name}_scalar",
        expression=f"input {sign} other",
        notes=_NOTES,
        elementwise=True,
        lower=_lower(name),
        examples=(
            ("(np.int32([6, 3]), np.int32([5, 5]))", f"array([{found}], dtype=int32)"),
            ("(np.int32([6, 3]), 5)", f"array([{found}], dtype=int32)"),
        ),
        of_tensors={
            "summary": f"Bits that are set in {word}.",
            "numbers": (),
            "sample_specs": specs("input, other: INT32"),
            "rules": (
                in_place(broadcasts(*BOTH)),
                in_place(broadcast_shape("out", BOTH)),
                dtype_among("input", gives),
                dtype_among("other", gives),
                promotes(BOTH, gives),
                result_castable(_of_both),
                *(require("input, other, out: plain format") if whole else ()),
                *require("input, other: at most 8 dims; input, other: broadcast"),
                *require("out: broadcast of input, other"),
            ),
        },
        of_number={
            "summary": f"Bits that are set in {word}, of a tensor and a number.",
            "sample_specs": specs("input: INT32; other: INT64"),
            "rules": (
                dtype_among("input", gives),
                scalar_dtype_among("other", gives),
                _number_promotes(),
                result_castable(_of_both),
                *require("input: at most 8 dims; out: shape of input"),
            ),
        },
    )
    if whole:  # which has a second name
        again = [replace(one, name=f"{one.name}Out") for one in of_tensors.entries]
        of_tensors = replace(of_tensors, entries=(*of_tensors.entries, *again))
    return of_tensors, of_number


@rule("the dtypes of `input` and `other` promote", *BOTH)
def _number_promotes(call: Call) -> str | None:
    if _of_both(call) is not None:
        return None
    pair = call.word(call.dtype("input")), call.word(call.scalars["other"].dtype)
    return (
        f"dtypes do not promote: {call.names['input']} {pair[0]}, {call.names['other']} {pair[1]}"
    )


_WITH_UNSIGNED = (*_BITS, aclDataType.ACL_UINT16)

bitwise_and, bitwise_and_scalar = _bitwise(
    "bitwise_and", "&", "both numbers", "4, 1", _WITH_UNSIGNED
)
bitwise_or, bitwise_or_scalar = _bitwise(
    "bitwise_or", "|", "either of two numbers", "7, 7", _WITH_UNSIGNED
)
bitwise_xor, bitwise_xor_scalar = _bitwise(
    "bitwise_xor", "^", "one of two numbers only", "3, 6", _BITS
)


def _lower_not(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    name = "logical_not" if dtype == aclDataType.ACL_BOOL else "bitwise_not"
    return {"out": lowering.point(name, [lowering.dense("input", dtype)], dtype, shape)}


bitwise_not = Operator(
    name="bitwise_not",
    in_place="bitwise_not_",
    summary="The bits that are not set.",
    expression="-1 - input",
    notes=_NOTES,
    elementwise=True,
    lower=_lower_not,
    inputs=("input",),
    sample_specs=specs("input, out: INT32"),
    entries=(entry("aclnnBitwiseNot", "self=input out:out"),),
    rules=(
        *require("input: INTEGERS BOOL; out: dtype of input; out, input: one format"),
        *require("input, out: at most 8 dims; out: shape of input"),
    ),
    example=("bitwise_not(np.int32([0, 5]))", "array([-1, -6], dtype=int32)"),
)
