"""Rules about dimensions, sizes, options and requested gradients, which several families share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aclnn.acl.constants import (
    ACLNN_ERR_INNER_NULLPTR,
    ACLNN_ERR_INNER_TILING_ERROR,
    ACLNN_ERR_PARAM_NULLPTR,
    aclDataType,
)
from aclnn.operators.checks import MAX_DIMS, Call, Rule, answering, rule

Shape = tuple[int, ...]
# Status of what only the planning stage of an operator checks, in most functions and in some.
PLANNING, FAILED_PLAN = ACLNN_ERR_INNER_TILING_ERROR, ACLNN_ERR_INNER_NULLPTR


def number(call: Call, role: str) -> int:
    """An option that is an integer."""
    found = call.switches[role]
    assert isinstance(found, int)
    return found


def numbers(call: Call, role: str) -> Shape:
    """An option that is a list of integers, or one of them."""
    found = call.switches[role]
    return (found,) if isinstance(found, int) else tuple(found or ())  # type: ignore[arg-type]


def like_input(call: Call) -> Mapping[str, tuple[aclDataType, Shape]]:
    """Inference of a result with the dtype and shape of `input`."""
    return {"out": (call.dtype("input"), call.shape("input"))}


def planned(*rules: Rule) -> tuple[Rule, ...]:
    """Rules that the planning stage checks, with its status."""
    return answering(PLANNING, *rules)


def rank_from(role: str, least: int) -> Rule:
    def test(call: Call) -> str | None:
        rank = len(call.shape(role))
        if least <= rank <= MAX_DIMS:
            return None
        return f"{call.names[role]} has {rank} dimensions, must have {least} to {MAX_DIMS}"

    return Rule(f"`{role}` has {least} to {MAX_DIMS} dimensions", test, (role,))


def has_rank(role: str, least: int, most: int | None = None) -> Rule:
    last = least if most is None else most
    words = f"{least}" if least == last else f"{least} to {last}"

    def test(call: Call) -> str | None:
        if role not in call.tensors or least <= len(call.shape(role)) <= last:
            return None
        return f"{call.ranked(role)}, must have {words}"

    return Rule(f"`{role}` has {words} dimensions", test, (role,))


@rule("`{role}` has an element")
def has_elements(call: Call, role: str) -> str | None:
    if role not in call.tensors or call.tensors[role].size:
        return None
    return f"{call.shaped(role)}, must have an element"


@rule("rows of `{role}`, where there are any, have elements")
def has_elements_in_rows(call: Call, role: str) -> str | None:
    """A rule for what computes a number of each row, of which one without elements has none."""
    *rows, last = call.shape(role)
    if last or 0 in rows:
        return None
    return f"{call.shaped(role)}, whose rows have no element"


@rule("`{role}` has {words}", "{role}")
def size_is(
    call: Call, role: str, requested: Callable[[Call], Shape | None], words: str
) -> str | None:
    """As `has_shape`; `requested` may give None, where any shape will do."""
    if role not in call.tensors:
        return None
    shape = requested(call)
    if shape is None or call.shape(role) == shape:
        return None
    return f"{call.shaped(role)}, must have {shape}"


@rule("`{role}` is from {least} to {most}")
def option_within(call: Call, role: str, least: int, most: int) -> str | None:
    if least <= number(call, role) <= most:
        return None
    return f"{call.chosen(role)}, must be from {least} to {most}"


@rule("`{role}` is null, whatever its dtype: {why}")
def is_absent(call: Call, role: str, why: str) -> str | None:
    """An operand that calls may have, but that is not supported here."""
    if role not in call.tensors:
        return None
    return f"{call.names[role]} is given, must be null: {why}"


@rule("`{role}` is given only together with `{other}`")
def together(call: Call, role: str, other: str) -> str | None:
    if role not in call.tensors or other in call.tensors:
        return None
    return f"{call.names[role]} is given, but {call.names[other]} is not"


@rule("`{role}` is {words}", "{role}")
def dtype_among_if(
    call: Call, role: str, allowed: Callable[[Call], tuple[aclDataType, ...]], words: str
) -> str | None:
    """As `dtype_among`, of dtypes that depend on the other operands; `words` says how."""
    if role not in call.tensors:
        return None
    found = allowed(call)
    if call.dtype(role) in found:
        return None
    name = call.names[role]
    return f"{name} has dtype {call.word(call.dtype(role))}, must be {call.words(found)}"


# --- Gradients that a mask of three flags requests ------------------------------------------------

GRADIENTS = ("grad_input", "grad_weight", "grad_bias")


def output_mask(call: Call) -> tuple[bool, ...]:
    mask = call.switches["output_mask"]
    assert isinstance(mask, tuple)
    return mask


@rule("`output_mask` has 3 elements")
def three_flags(call: Call) -> str | None:
    flags = len(output_mask(call))
    if flags == len(GRADIENTS):
        return None
    return f"{call.names['output_mask']} has {flags} elements, must have 3"


@rule("gradients that `output_mask` asks for are given", *GRADIENTS, status=ACLNN_ERR_PARAM_NULLPTR)
def requested_gradients_exist(call: Call) -> str | None:
    if call.makes_absent:
        return None
    for role, requested in zip(GRADIENTS, output_mask(call), strict=True):
        if requested and role not in call.tensors:
            return f"{call.names[role]} is null, but {call.names['output_mask']} asks for it"
    return None
