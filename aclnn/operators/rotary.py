"""Rotary position embeddings: what rotates pairs of elements of a row."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl.constants import ACLNN_ERR_INNER_TILING_ERROR, aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import Call, answering, broadcast_shapes, rule, same_dtype, switch_among
from aclnn.operators.declaration import ROW_ACCURACY, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.words import require, specs

HALF, INTERLEAVE, QUARTER, INTERLEAVE_HALF = range(4)
_NAMES = ("half", "interleave", "quarter")
_MODES = (
    "mode 0 (half): rotated(x) is (-x₂, x₁) of the halves of each row; 1 (interleave): of each "
    "pair; "
    "2 (quarter): of the halves of each half; 3: halves are rotated, which are gathered from "
    "pairs first"
)
_ROTATION = "x·cos + rotated(x)·sin"


# --- Which elements belong together -----------------------------------------------------------------
# A part is where it begins, and its step, along the last axis: pairs of parts rotate into each other.

Part = tuple[int, int]


def _parts(mode: int, size: int) -> tuple[list[tuple[Part, Part]], list[tuple[Part, Part]]]:
    """Pairs of parts of x, and where in a row of the result they go; all of them have one length."""
    half, quarter = size // 2, size // 4
    halves, pairs = [((0, 1), (half, 1))], [((0, 2), (1, 2))]
    if mode == QUARTER:
        quarters = [((0, 1), (quarter, 1)), ((half, 1), (half + quarter, 1))]
        return quarters, quarters
    if mode == INTERLEAVE_HALF:
        return pairs, halves
    return (halves, halves) if mode == HALF else (pairs, pairs)


def _view(lowering: Lowering, value: int, part: Part, count: int) -> int:
    found, (start, step) = lowering.builder.value(value), part
    strides = (*found.strides[:-1], found.strides[-1] * step)
    offset = start * found.strides[-1]
    return lowering.builder.view(value, (*found.shape[:-1], count), strides, offset)


def rotate(
    lowering: Lowering,
    role: str,
    mode: int,
    *,
    value: int | None = None,
    dtype: aclDataType | None = None,
) -> int:
    """A tensor whose rows are rotated: every part of the result is a node, and a view of the whole.

    `value` stands for the operand where only a part of it is rotated, `dtype` for that of the result.
    """
    call, builder = lowering.call, lowering.builder
    source = lowering.value(role) if value is None else value
    shape = builder.value(source).shape
    dtype = call.dtype(role) if dtype is None else dtype
    taken, made = _parts(mode, shape[-1])
    count = shape[-1] // (2 * len(taken))
    sizes = (*shape[:-1], count)
    whole = builder.buffer(f"rotated_{role}", shape, graph_dtype(dtype))

    def part_of(value: int, part: Part) -> int:
        return lowering.dense(_view(lowering, value, part, count), None, sizes)

    for (first, second), targets in zip(taken, made, strict=True):
        x = [part_of(source, part) for part in (first, second)]
        for index, target in enumerate(targets):
            cosine, sine = [part_of(lowering.value(one), target) for one in ("cos", "sin")]
            one = lowering.point(
                "rotated",
                (x[index], cosine, x[1 - index], sine),
                dtype,
                sizes,
                params=(-1.0 if index == 0 else 1.0,),
                expression=_ROTATION,
            )
            builder.view_copy(one, builder.view(whole, sizes, *_place(shape, target)))
    return whole


def _place(shape: tuple[int, ...], part: Part) -> tuple[tuple[int, ...], int]:
    """Strides and offset of a part of a dense tensor."""
    return (*contiguous_strides(shape)[:-1], part[1]), part[0]


# --- Rules ------------------------------------------------------------------------------------------


@rule("`{role}` has {least} to {most} dimensions")
def _has_dims(call: Call, role: str, least: int, most: int) -> str | None:
    rank = len(call.shape(role))
    if least <= rank <= most:
        return None
    return f"{call.names[role]} has {rank} dimensions, must have {least} to {most}"


@rule("`{role}` has the shape of `{like}`, or ones before its last size")
def _spread(call: Call, role: str, like: str) -> str | None:
    """Rule that an element may stand for all of every dimension but the last."""
    shape, requested = call.shape(role), call.shape(like)
    same = len(shape) == len(requested) and shape[-1] == requested[-1]
    if same and broadcast_shapes(shape, requested) == requested:
        return None
    return (
        f"{call.names[role]} has shape {shape}, must have that of {call.names[like]}, "
        f"{requested}, "
        "or ones in it, but for the last size"
    )


@rule("the last size of `{role}` is even, with quarters a multiple of 4", "{role}", "{mode}")
def _divides(call: Call, role: str, mode: str) -> str | None:
    parts = 4 if call.switches[mode] in (QUARTER, "quarter") else 2
    size = call.shape(role)[-1]
    if size % parts == 0:
        return None
    return f"{call.names[role]} has the last size {size}, which {parts} does not divide"


@rule("`{role}` is from {least} to {most}")
def _number_among(call: Call, role: str, least: int, most: int) -> str | None:
    number = call.switches[role]
    assert isinstance(number, int)
    if least <= number <= most:
        return None
    return f"{call.names[role]} is {number}, must be from {least} to {most}"


# --- Operators --------------------------------------------------------------------------------------

rotary_position_embedding = Operator(
    name="rotary_position_embedding",
    summary="Rotary position embedding of rows.",
    expression=f"{_ROTATION}; {_MODES}",
    notes="cos and sin have as many dimensions as x; dimensions of size 1 broadcast.",
    lower=lambda lowering: {"out": rotate(lowering, "x", lowering.call.switches["mode"])},
    inputs=("x", "cos", "sin"),
    attributes=(argument("mode", HALF, "int", "Which elements form a pair."),),
    entries=(entry("aclnnRotaryPositionEmbedding", "x cos sin mode:int out:out"),),
    rules=(
        *require("x: FLOATING"),
        *[same_dtype(role, "x") for role in ("cos", "sin", "out")],
        _number_among("mode", HALF, INTERLEAVE_HALF),
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            *require("x, cos, sin, out: at most 8 dims"),
            _has_dims("x", 1, 8),
            _divides("x", "mode"),
            _spread("cos", "x"),
            *require("sin: shape of cos; out: shape of x"),
        ),
    ),
    example=(
        "rotary_position_embedding(np.float32([3, 4]), np.float32([0, 0]), np.float32([1, 1]))",
        "array([-4.,  3.], dtype=float32)",
    ),
    seealso=("apply_rotary_pos_emb",),
    accuracy=ROW_ACCURACY,
    gradient={
        "x": "turned_back(grad, cos, sin, mode)",
        "cos": "grad * gathered(x, mode)",
        "sin": "grad * turned(x, mode)",
    },
)


# Of a layout, by its number: how many dimensions there are, and which heads are along.
_LAYOUTS = {1: (4, 2), 2: (4, 2), 3: (4, 1), 4: (3, 1)}


@rule("`{role}` has 4 dimensions, with layout 4 it has 3", "{role}", "layout")
def _layout_fits(call: Call, role: str) -> str | None:
    rank, _ = _LAYOUTS[call.switches["layout"]]  # type: ignore[index]
    if len(call.shape(role)) == rank:
        return None
    return (
        f"{call.ranked(role)}, must have {rank} with "
        f"{call.names['layout']} {call.switches['layout']}"
    )


@rule("`query` and `key` differ in the number of heads only", "query", "key", "layout")
def _equal_but_for_heads(call: Call) -> str | None:
    _, heads = _LAYOUTS[call.switches["layout"]]  # type: ignore[index]
    one, other = (list(call.shape(role)) for role in ("query", "key"))
    one[heads] = other[heads]
    if one == other:
        return None
    return (
        f"{call.shaped('query')}, {call.names['key']} "
        f"{call.shape('key')}, which differ not only in the number of heads"
    )


def _lower_both(lowering: Lowering) -> Mapping[str, int]:
    mode = _NAMES.index(str(lowering.call.switches["rotary_mode"]))
    roles = (("query", "query_out"), ("key", "key_out"))
    return {made: rotate(lowering, role, mode) for role, made in roles if lowering.wants(made)}


apply_rotary_pos_emb = Operator(
    name="apply_rotary_pos_emb",
    in_place="apply_rotary_pos_emb_",
    summary="Rotary position embedding of queries and keys.",
    expression=f"{_ROTATION}, x = query and x = key; as in the modes 0, 1 and 2 of rotary_position_embedding",
    notes=(
        "The layout is 1: (batch, sequence, heads, size), 2: (sequence, batch, heads, size), 3: "
        "(batch, heads, sequence, size), 4: (tokens, heads, size). cos and sin have a single head."
    ),
    lower=_lower_both,
    inputs=("query", "key", "cos", "sin"),
    outputs=("query_out", "key_out"),
    sample_specs=specs("query, key, cos, sin: [1,1,1,2]"),
    attributes=(
        argument("layout", 1, "int", "The layout of dimensions, by number."),
        argument("rotary_mode", "half", "str", "Which elements form a pair.", choices=_NAMES),
    ),
    entries=(
        entry(
            "aclnnApplyRotaryPosEmb",
            "queryRef=query:inout keyRef=key:inout cos sin layout:int",
            rotary_mode="half",
        ),
        entry(
            "aclnnApplyRotaryPosEmbV2",
            "queryRef=query:inout keyRef=key:inout cos sin layout:int rotaryMode:str",
        ),
    ),
    rules=(
        *require("query: FLOATING"),
        *[same_dtype(role, "query") for role in ("key", "cos", "sin", "query_out", "key_out")],
        _number_among("layout", 1, 4),
        switch_among("rotary_mode", _NAMES),
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            _layout_fits("query"),
            _layout_fits("key"),
            _equal_but_for_heads(),
            _divides("query", "rotary_mode"),
            _spread("cos", "query"),
            _spread("cos", "key"),
            *require("sin: shape of cos; query_out: shape of query; key_out: shape of key"),
        ),
    ),
    example=(
        "apply_rotary_pos_emb(np.float32([[[[3, 4]]]]), np.float32([[[[1, 2]]]]), "
        "np.float32([[[[0, 0]]]]), np.float32([[[[1, 1]]]]))",
        "(array([[[[-4.,  3.]]]], dtype=float32), array([[[[-2.,  1.]]]], dtype=float32))",
    ),
    seealso=("rotary_position_embedding",),
    accuracy=ROW_ACCURACY,
    gradient={
        "query": "turned_back(grad, cos, sin, rotary_mode)",
        "key": "turned_back(grad_key_out, cos, sin, rotary_mode)",
        "cos": "aten.sum_to_size(grad * query, cos.shape) + aten.sum_to_size(grad_key_out * key, cos.shape)",
        "sin": "aten.sum_to_size(grad * turned(query, rotary_mode), sin.shape) + aten.sum_to_size(grad_key_out * turned(key, rotary_mode), sin.shape)",
    },
)
