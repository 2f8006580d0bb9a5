"""What phase one checks: small rules with a sentence for people and a test for calls.

Operators list rules in CANN's order; the first that a call breaks decides.  A rule's test gets a
`Call` and gives `None` when it holds, else a message that names argument, value and rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aclnn.acl import dtypes, products
from aclnn.acl.arguments import shown
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclDataType

FLOATING = (aclDataType.ACL_FLOAT, aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
FLOATING_AND_DOUBLE = (*FLOATING, aclDataType.ACL_DOUBLE)
MAX_DIMS = 8

NOTHING_TO_DO = "nothing to do"
"""Given by a rule whose call succeeds here and now, without looking at the rules after it."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What phase one knows of a tensor: no memory, only its description.

    Shape and strides count elements; `dtype` and `format` are CANN's numbers.
    """

    dtype: aclDataType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: int = 2
    writable: bool = True

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """What rules may know of a number: whether it converts, and whether it is below zero.

    Plans are shared by calls whose scalars differ, so the value itself is not here; `zero`, `one`,
    `nan`, `whole` and `dtype` hold for all of them only where the attribute's `facts` list them.
    """

    convertible: bool = True
    negative: bool = False
    text: str = ""
    dtype: aclDataType = aclDataType.ACL_FLOAT
    zero: bool = False
    one: bool = False
    nan: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator, as rules see it."""

    tensors: Mapping[str, TensorSpec]
    scalars: Mapping[str, ScalarSpec]
    switches: Mapping[str, object]
    names: Mapping[str, str]
    soc: str
    lists: Mapping[str, tuple[TensorSpec, ...]] = field(default_factory=dict)
    makes_absent: bool = True  # whether outputs that are absent are made, or not wanted

    def dtype(self, role: str) -> aclDataType:
        return self.tensors[role].dtype

    def shape(self, role: str) -> tuple[int, ...]:
        return self.tensors[role].shape

    def given(self, roles: tuple[str, ...]) -> list[str]:
        """Those of `roles` that the call has: `out` may still have to be made."""
        return [role for role in roles if role in self.tensors]


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence for documentation, a test for calls, the roles that the test looks at, and the
    status of a call that breaks it."""

    text: str
    test: Callable[[Call], str | None]
    roles: tuple[str, ...] = ()
    status: int = ACLNN_ERR_PARAM_INVALID


def promoted(call: Call, roles: tuple[str, ...]) -> aclDataType | None:
    """The dtype all of `roles` promote to, or `None`."""
    result: aclDataType | None = call.dtype(roles[0])
    for role in roles[1:]:
        result = dtypes.promote(result, call.dtype(role)) if result is not None else None
    return result


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """NumPy's rule, right-aligned; `None` where the shapes do not fit.

    >>> broadcast_shapes((5, 1), (4,)), broadcast_shapes((0,), (1,)), broadcast_shapes((2,), (3,))
    ((5, 4), (0,), None)
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size == 1 or size == result[axis]:
                continue
            if result[axis] != 1:
                return None
            result[axis] = size
    return tuple(result)


def exists_on(families: tuple[str, ...]) -> Rule:
    def test(call: Call) -> str | None:
        if call.soc in families:
            return None
        return f"the operator does not exist on {call.soc}; it does on {', '.join(families)}"

    return Rule(f"the product is one of {', '.join(families)}", test)


def dtype_among(role: str, allowed: tuple[aclDataType, ...] = FLOATING) -> Rule:
    names = _names(allowed)

    def test(call: Call) -> str | None:
        if role not in call.tensors:
            return None
        return _refuse_dtype(call, call.names[role], call.dtype(role), allowed)

    return Rule(f"`{role}` is {names} (BF16 where the product has it)", test, (role,))


def same_dtype(role: str, like: str) -> Rule:
    def test(call: Call) -> str | None:
        if len(call.given((role, like))) < 2 or call.dtype(role) == call.dtype(like):
            return None
        return (
            f"{call.names[role]} has dtype {_name(call.dtype(role))}, but must have that of "
            f"{call.names[like]}, {_name(call.dtype(like))}"
        )

    return Rule(f"`{role}` has the dtype of `{like}`", test, (role, like))


def dtype_like_or(
    role: str, like: str, other: aclDataType = aclDataType.ACL_FLOAT
) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors or call.dtype(role) in (other, call.dtype(like)):
            return None
        return (
            f"{call.names[role]} has dtype {_name(call.dtype(role))}, must be {_name(other)} or "
            f"that of {call.names[like]}, {_name(call.dtype(like))}"
        )

    return Rule(f"`{role}` is {_name(other)} or has the dtype of `{like}`", test, (role, like))


def promotes(roles: tuple[str, ...], allowed: tuple[aclDataType, ...] = FLOATING) -> Rule:
    def test(call: Call) -> str | None:
        pair = ", ".join(f"{call.names[r]} {_name(call.dtype(r))}" for r in roles)
        result = promoted(call, roles)
        if result is None:
            return f"dtypes do not promote: {pair}"
        if result not in allowed:
            return f"dtypes promote to {_name(result)}, must be {_names(allowed)}: {pair}"
        for role in call.given((*roles, "out")):
            if message := _refuse_bfloat16(call, call.names[role], call.dtype(role)):
                return message
        return None

    names = " and ".join(f"`{r}`" for r in roles)
    return Rule(
        f"the dtypes of {names} promote to {_names(allowed)} (BF16 where the product has it)",
        test,
        roles,
    )


def dtype_is_promoted(role: str, roles: tuple[str, ...]) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors or call.dtype(role) == promoted(call, roles):
            return None
        return (
            f"{call.names[role]} has dtype {_name(call.dtype(role))}, but must have the promoted "
            f"dtype of the inputs, {_name(promoted(call, roles))}"
        )

    return Rule(f"`{role}` has the promoted dtype of the inputs", test, (role, *roles))


def castable(sources: tuple[str, ...], role: str = "out") -> Rule:
    def test(call: Call) -> str | None:
        source = promoted(call, sources)
        if role not in call.tensors:
            return None
        if dtypes.can_cast(source, call.dtype(role)):
            return _refuse_bfloat16(call, call.names[role], call.dtype(role))
        return (
            f"{call.names[role]} has dtype {_name(call.dtype(role))}, to which the result's dtype "
            f"{_name(source)} cannot be cast"
        )

    return Rule(f"the result's dtype can be cast to that of `{role}`", test, (role, *sources))


def convertible_scalars(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in roles:
            scalar = call.scalars[role]
            if not scalar.convertible:
                return f"{call.names[role]} is {scalar.text}, which cannot be converted to FLOAT"
        return None

    names = ", ".join(f"`{r}`" for r in roles)
    return Rule(f"{names} can be converted to FLOAT", test, roles)


def same_shape(role: str, like: str) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors or call.shape(role) == call.shape(like):
            return None
        return (
            f"{call.names[role]} has shape {call.shape(role)}, but must have that of "
            f"{call.names[like]}, {call.shape(like)}"
        )

    return Rule(f"`{role}` has the shape of `{like}`", test, (role, like))


def at_most_8_dims(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in call.given(roles):
            if len(call.shape(role)) > MAX_DIMS:
                return (
                    f"{call.names[role]} has {len(call.shape(role))} dimensions, "
                    f"at most {MAX_DIMS} are supported"
                )
        return None

    return Rule(f"at most {MAX_DIMS} dimensions", test, roles)


def done_if_empty(*roles: str, except_on: tuple[str, ...] = ()) -> Rule:
    def test(call: Call) -> str | None:
        empty = any(call.tensors[role].size == 0 for role in roles)
        return NOTHING_TO_DO if empty and call.soc not in except_on else None

    names = " or ".join(f"`{r}`" for r in roles)
    unless = f", except on {', '.join(except_on)}" if except_on else ""
    return Rule(
        f"if {names} is empty there is nothing to do, and nothing more is checked{unless}",
        test,
        roles,
    )


def axis_within(option: str, role: str) -> Rule:
    """A tensor without dimensions counts as one with a single one."""

    def test(call: Call) -> str | None:
        axis, rank = call.switches[option], max(1, len(call.shape(role)))
        assert isinstance(axis, int)
        if -rank <= axis < rank:
            return None
        return (
            f"{call.names[option]} is {axis}, must be from {-rank} to {rank - 1} for "
            f"{call.names[role]} of shape {call.shape(role)}"
        )

    return Rule(f"`{option}` is a dimension of `{role}`", test, (option, role))


def broadcasts(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        if broadcast_shapes(*(call.shape(role) for role in roles)) is not None:
            return None
        pair = ", ".join(f"{call.names[r]} {call.shape(r)}" for r in roles)
        return f"shapes do not broadcast: {pair}"

    return Rule(f"{' and '.join(f'`{r}`' for r in roles)} broadcast", test, roles)


def broadcast_shape(role: str, roles: tuple[str, ...]) -> Rule:
    def test(call: Call) -> str | None:
        shape = broadcast_shapes(*(call.shape(r) for r in roles))
        if role not in call.tensors or call.shape(role) == shape:
            return None
        return (
            f"{call.names[role]} has shape {call.shape(role)}, but must have the broadcast shape "
            f"{shape}"
        )

    return Rule(f"`{role}` has the broadcast shape of the inputs", test, (role, *roles))


def not_negative_when(scalar: str, switch: str) -> Rule:
    def test(call: Call) -> str | None:
        if not (call.switches[switch] and call.scalars[scalar].negative):
            return None
        return (
            f"{call.names[scalar]} is {call.scalars[scalar].text}, must not be negative when "
            f"{call.names[switch]} is true: the result no longer tells the sign of the input"
        )

    return Rule(f"`{scalar}` is not negative when `{switch}` is true", test, (scalar, switch))


def switch_among(switch: str, allowed: tuple[str, ...]) -> Rule:
    def test(call: Call) -> str | None:
        value = call.switches[switch]
        if isinstance(value, str) and value in allowed:
            return None
        # A number that stands for none of them was left as it was.
        choices = allowed if isinstance(value, str) else range(len(allowed))
        return f"{call.names[switch]} is {shown(value)}, must be {' or '.join(map(repr, choices))}"

    return Rule(f"`{switch}` is {' or '.join(map(repr, allowed))}", test, (switch,))


def _refuse_dtype(
    call: Call, name: str, dtype: aclDataType, allowed: tuple[aclDataType, ...]
) -> str | None:
    if dtype not in allowed:
        return f"{name} has dtype {_name(dtype)}, must be {_names(allowed)}"
    return _refuse_bfloat16(call, name, dtype)


def _refuse_bfloat16(call: Call, name: str, dtype: aclDataType) -> str | None:
    if dtype != aclDataType.ACL_BF16 or products.supports_bfloat16(call.soc):
        return None
    return f"{name} has dtype BF16, which {call.soc} does not support"


def _name(dtype: aclDataType | None) -> str:
    return dtype.name.removeprefix("ACL_") if dtype is not None else "none"


def _names(allowed: tuple[aclDataType, ...]) -> str:
    *most, last = map(_name, allowed)
    return f"{', '.join(most)} or {last}" if most else last
