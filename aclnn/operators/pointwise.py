"""Shared parts of the declarations of activations and their gradients."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    Call,
    Rule,
    at_most_8_dims,
    broadcast_shapes,
    dtype_among,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Attribute, Entry, entry
from aclnn.operators.lowering import Lowering, graph_dtype, number_form

GRADIENT = ("grad_output", "self")
GRADIENT_ALIKE = (
    dtype_among("grad_output"),
    same_dtype("self", "grad_output"),
    same_dtype("out", "grad_output"),
    at_most_8_dims(*GRADIENT, "out"),
    same_shape("self", "grad_output"),
    same_shape("out", "grad_output"),
)


def both_entries(name: str, numbers: str = "", role: str = "input") -> tuple[Entry, Entry]:
    """The pairs out of place and in place, whose numbers stand between input and output.

    >>> [pair.name for pair in both_entries("Relu")]
    ['aclnnRelu', 'aclnnInplaceRelu']
    """
    return (
        entry(f"aclnn{name}", f"self={role} {numbers} out:out"),
        entry(f"aclnnInplace{name}", f"selfRef={role}:inout {numbers}"),
    )


def number(role: str, default: object, doc: str, *facts: str) -> Attribute:
    """A number that the functional form takes by position."""
    return Attribute(role, default, keyword_only=False, doc=doc, facts=facts)


def unless_on(soc: str, rule: Rule) -> Rule:
    """A rule that one product does not have."""

    def test(call: Call) -> str | None:
        return None if call.soc == soc else rule.test(call)

    return Rule(f"{rule.text}, except on {soc}", test, rule.roles, rule.status)


def only_on(soc: str, rule: Rule) -> Rule:
    """A rule that no other product has."""

    def test(call: Call) -> str | None:
        return rule.test(call) if call.soc == soc else None

    return Rule(f"on {soc}: {rule.text}", test, rule.roles, rule.status)


def infer_first(role: str) -> Any:
    """The result is like one input, whatever the others are."""
    return lambda call: {"out": (call.dtype(role), call.shape(role))}


def infer_broadcast(*roles: str) -> Any:
    """The result has the dtype of the first input, and the shape of all."""

    def infer(call: Call) -> Mapping[str, tuple[aclDataType, tuple[int, ...]]]:
        shape = broadcast_shapes(*(call.shape(role) for role in roles))
        assert shape is not None, "a rule sees to it that the inputs broadcast"
        return {"out": (call.dtype(roles[0]), shape)}

    return infer


def in_float32(formula: str, *roles: str, numbers: tuple[str, ...] = ()) -> Any:
    """Lowering of what is computed as float32 unless all is of one floating dtype."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        alike = {lowering.call.dtype(role) for role in roles} == {dtype}
        within = dtype if alike and dtype in FLOATING else aclDataType.ACL_FLOAT
        operands = [lowering.dense(role, within, shape) for role in roles]
        params = tuple([lowering.number(role, number_form(within)) for role in numbers])
        made = lowering.point(formula, operands, within, shape, params=params)
        return {"out": lowering.builder.cast(made, graph_dtype(dtype))}

    return lower
