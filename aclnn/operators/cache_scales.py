"""Scales of keys and values of int8 in attention: which there are, their shapes, and the nodes that apply them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import Call, Rule, dtype_like_or, same_dtype
from aclnn.operators.declaration import Attribute
from aclnn.operators.lowering import Lowering

Shape = tuple[int, ...]
Heads = tuple[int, int, int, int]  # batches or blocks, heads, rows, elements
_SINGLE = aclDataType.ACL_FLOAT
_CHANNEL, _TOKEN, _HEAD, _TOKEN_AND_HEAD, _PAGE, _PAGE_AND_HEAD = range(6)
NOTES = (
    " Keys and values of int8 are (integer + offset)·scale, in float32, and so is the attention: only the "
    "result is rounded."
)


@dataclass(frozen=True, slots=True)
class CacheScales:
    """The parameters for scales of keys and values; empty where a function lacks one.

    Attributes
    ----------
    both, both_offset, both_mode : str
        Scales of keys, then of values, in one tensor.
    key, key_offset, key_mode, value, value_offset, value_mode : str
        Scales in a tensor each.
    """

    both: str = ""
    both_offset: str = ""
    both_mode: str = ""
    key: str = ""
    key_offset: str = ""
    key_mode: str = ""
    value: str = ""
    value_offset: str = ""
    value_mode: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        pairs = (self.both, self.both_offset, self.key, self.key_offset)
        return tuple(filter(None, (*pairs, self.value, self.value_offset)))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        doc = "What has a scale: 0 channels or all, 1 rows"
        more = ", 2 heads, 3 rows of heads, 4 rows of blocks, 5 rows of blocks' heads."
        texts = ((self.both_mode, "."), (self.key_mode, more), (self.value_mode, more))
        return tuple([Attribute(role, 0, "int", doc=doc + end) for role, end in texts if role])

    @property
    def dtypes(self) -> tuple[Rule, ...]:
        pairs = ((self.both, self.both_offset), (self.key, self.key_offset))
        arguments = [pair for pair in (*pairs, (self.value, self.value_offset)) if pair[0]]
        scales = [dtype_like_or(scale, "query") for scale, _ in arguments]
        return (*scales, *[same_dtype(offset, scale) for scale, offset in arguments])

    def parts(self, call: Call, role: str) -> tuple[str, str, int]:
        """Scale, offset and mode of the key or the value."""
        if self.both in call.tensors:
            return self.both, self.both_offset, _number(call, self.both_mode)
        names = [getattr(self, f"{role}{ending}") for ending in ("", "_offset", "_mode")]
        return names[0], names[1], _number(call, names[2])

    def flaw(self, call: Call, heads: Mapping[str, Heads], *, paged: bool) -> str | None:
        """The error in the scales of a call whose key and value have these heads, if any."""
        message = self._choice_flaw(call)
        if message or not call.given(self.inputs):
            return message
        for role, shape in heads.items():
            scale, offset, mode = self.parts(call, role)
            allowed = _spreads(mode, shape, paged=paged)
            if not allowed or (scale == self.both and mode > _TOKEN):
                return f"{call.names[role]} has scales of mode {mode}, which do not suit it"
            for one in call.given((scale, offset)):
                own = self._own(call, one)
                if own not in allowed:
                    first = next(reversed(allowed))
                    requested = (2, *first) if one in (self.both, self.both_offset) else first
                    return f"{call.shaped(one)}, must have {requested}"
        return None

    def _choice_flaw(self, call: Call) -> str | None:
        arguments, names = call.given(self.inputs), call.names
        own = [call.dtype(role) == aclDataType.ACL_INT8 for role in ("query", "key")]
        if own[0] or not own[1]:
            wrong = "query" if own[0] else "key"
            text = f"but {names[wrong]} is {'' if own[0] else 'not '}INT8"
            return f"{names[arguments[0]]} is given, {text}" if arguments else None
        if self.both in arguments:
            others = [role for role in arguments if role not in (self.both, self.both_offset)]
            return f"{names[others[0]]} is given besides {names[self.both]}" if others else None
        needed = [role for role in (self.key, self.value) if role]
        missing = [role for role in needed or [self.both] if role not in arguments]
        if missing:
            return f"{names[missing[0]]} is null, but {names['key']} is INT8"
        if self.both_offset in arguments:
            return f"{names[self.both_offset]} is given, but {names[self.both]} is null"
        return None

    def _own(self, call: Call, role: str) -> Shape | None:
        """The shape for the key or the value, without the dimension of both."""
        shape = call.shape(role)
        if role not in (self.both, self.both_offset):
            return shape
        if shape == (2,):
            return (1,)
        return shape[1:] if len(shape) > 1 and shape[0] == 2 else None

    def applied(self, lowering: Lowering, role: str, value: int, *, paged: bool) -> int:
        """The key or the value, of float32 and [batches, heads, rows, elements], as numbers."""
        call = lowering.call
        shape = lowering.builder.shape(value)
        scale, offset, mode = self.parts(call, role)
        if offset in call.tensors:
            added = self._spread(lowering, role, offset, mode, shape, paged=paged)
            operands = [lowering.dense(value), added]
            value = lowering.point("add", operands, _SINGLE, shape, params=(1.0,))
        factor = self._spread(lowering, role, scale, mode, shape, paged=paged)
        return lowering.point("mul", [lowering.dense(value), factor], _SINGLE, shape)

    def _spread(
        self, lowering: Lowering, role: str, scale: str, mode: int, shape: Shape, *, paged: bool
    ) -> int:
        b, n, s, d = shape
        own = self._own(lowering.call, scale)
        assert own is not None, "a rule sees to it that scales fit"
        along = _spreads(mode, (b, n, s, d), paged=paged)[own]
        numbers = lowering.dense(scale, _SINGLE)
        size = along[0] * along[1] * along[2] * along[3]
        start = size if scale in (self.both, self.both_offset) and role == "value" else 0
        part = lowering.builder.view(numbers, along, contiguous_strides(along), start)
        return lowering.dense(part, None, shape)


def _number(call: Call, role: str) -> int:
    found = call.switches[role] if role else 0
    assert isinstance(found, int)
    return found


def _spreads(mode: int, heads: Heads, *, paged: bool) -> dict[Shape, Heads]:
    """The shapes that scales of a mode may have, and that in which they broadcast to keys or values."""
    b, n, s, d = heads
    if mode == _CHANNEL:
        merged, with_axis = (n * d,), (1, n, 1, d)
        shapes = (merged, (1, *merged), (n, d), (1, n, d), (n, 1, d), with_axis)
        return dict.fromkeys(shapes, with_axis) | {(1,): (1, 1, 1, 1)}
    if mode == _HEAD:
        return {(n,): (1, n, 1, 1)}
    if mode == (_PAGE if paged else _TOKEN):
        return dict.fromkeys(((1, b, s), (b, s)), (b, 1, s, 1))
    if mode == (_PAGE_AND_HEAD if paged else _TOKEN_AND_HEAD):
        return {(b, n, s): (b, n, s, 1)}
    return {}
