"""Remedies for a call that breaks a rule: another dtype of an operand, or another output.

Rules can be tested, so that remedies are found by trying: what is proposed was seen to pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from aclnn.acl.constants import aclDataType
from aclnn.compiler.phase_one import RefusedError, infer
from aclnn.operators import Operator
from aclnn.operators.checks import (
    COMPLEX,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    NOTHING_TO_DO,
    Call,
    Rule,
    TensorSpec,
)

T = aclDataType
# What people convert to, the likeliest first.
_FLOATS = (T.ACL_FLOAT, T.ACL_DOUBLE, T.ACL_FLOAT16, T.ACL_BF16)
_WHOLE = (T.ACL_INT64, T.ACL_INT32, *INTEGERS, T.ACL_BOOL)

Operand = tuple[str, int | None]  # a role, and the place in it where it is a list


def conversions(operator: Operator, call: Call, rule: Rule) -> Mapping[Operand, aclDataType]:
    """Dtypes for as few inputs as possible with which the call does not break the rule.

    Empty where there are none. What passes all rules is preferred to what passes those up to this one.
    """
    inputs = list(_inputs(operator, call, rule))
    for number in (None, operator.rules.index(rule) + 1):
        rules = operator.rules[:number]
        for chosen in (*[(one,) for one in inputs], tuple(inputs)):
            for dtype in _candidates([_spec(call, one).dtype for one in chosen]):
                changed = _converted(call, chosen, dtype)
                if _passes(changed, rules):
                    return {one: dtype for one in chosen if _spec(call, one).dtype != dtype}
    return {}


def output_instead(
    operator: Operator, call: Call
) -> tuple[str, aclDataType, tuple[int, ...]] | None:
    """Role, dtype and shape of an output with which the call passes; None where it is not the output
    that breaks a rule."""
    arguments = [role for role in operator.outputs if role in call.tensors]
    if len(arguments) != 1:
        return None
    (role,) = arguments
    without = {name: spec for name, spec in call.tensors.items() if name != role}
    made = replace(call, tensors=without)
    if not _passes(made, operator.rules):
        return None
    try:
        dtype, shape = infer(operator, made)[role]
    except (RefusedError, KeyError):
        return None
    return role, dtype, shape


def _inputs(operator: Operator, call: Call, rule: Rule) -> Iterator[Operand]:
    """The inputs that a rule looks at."""
    for role in operator.kernel_operands:
        if role not in rule.roles:
            continue
        if role in call.tensors:
            yield role, None
        yield from ((role, index) for index in range(len(call.lists.get(role, ()))))


def _spec(call: Call, operand: Operand) -> TensorSpec:
    role, index = operand
    return call.tensors[role] if index is None else call.lists[role][index]


def _candidates(present: list[aclDataType]) -> Iterator[aclDataType]:
    """Dtypes to convert to: of another kind only after those of the same."""
    if not present or any(dtype in COMPLEX for dtype in present):
        return  # a part of each number would be lost
    floating = any(dtype in FLOATING_AND_DOUBLE for dtype in present)
    order = (*_FLOATS, *_WHOLE) if floating else (*_WHOLE, *_FLOATS)
    yield from (dtype for dtype in order if set(present) != {dtype})


def _converted(call: Call, operands: tuple[Operand, ...], dtype: aclDataType) -> Call:
    tensors, lists = dict(call.tensors), dict(call.lists)
    for role, index in operands:
        if index is None:
            tensors[role] = tensors[role].changed(dtype=dtype)
            continue
        items = list(lists[role])
        items[index] = items[index].changed(dtype=dtype)
        lists[role] = tuple(items)
    return replace(call, tensors=tensors, lists=lists)


def _passes(call: Call, rules: tuple[Rule, ...]) -> bool:
    for rule in rules:
        broken = rule.test(call)
        if broken == NOTHING_TO_DO:
            return True
        if broken is not None:
            return False
    return True
