"""Elements that are true, and those that indices of several dimensions name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from aclnn.acl.constants import aclDataType
from aclnn.acl.dtypes import LARGE_UNSIGNED
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import REAL, Call, broadcast_shapes, done_if_empty, dtype_among, rule
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype, reads_of
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_LONG, _TRUTH, _BYTES = aclDataType.ACL_INT64, aclDataType.ACL_BOOL, aclDataType.ACL_UINT8
_HALVES = (aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
_REPLACE, _ADD = range(2)  # as kernels count them
_ROOM = (
    "Data decide how many there are: what is made has room for all elements, and zeros behind those that "
    "are there; `size` is the shape without these. aclGetViewShape gives it for the output of a C-shaped call "
    "that has run, and elements behind it are left alone. A call whose output has no room ends with the status "
    "161002 when it runs, and nothing is written."
)
_EXACT = "Results are exact."


@rule("`{role}` has a shape, and no gaps between its elements")
def _is_contiguous(call: Call, role: str) -> str | None:
    if role not in call.tensors:
        return None
    # Where only dtypes are asked for, strides are not those of the shape.
    without_strides = len(call.tensors[role].strides) != len(call.shape(role))
    if without_strides or call.is_contiguous(role):
        return None
    return f"{call.names[role]} has gaps between its elements, must have none"


def _in_room(lowering: Lowering, found: int) -> int:
    """The elements of a kernel's result of one dimension, in the shape of the operator's."""
    _, shape = lowering.results["out"]
    return lowering.reshaped(found, shape)


# --- Places of elements that are true -------------------------------------------------------------


def _places_shape(call: Call, *, by_rows: bool) -> Shape:
    if "out" in call.tensors:
        return call.shape("out")
    count, rank = call.tensors["input"].size, len(call.shape("input"))
    return (count, rank) if by_rows else (rank, count)


def _nonzero(name: str, cann: str, *, by_rows: bool, **more: Any) -> Operator:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        if not lowering.wants("out"):  # of no elements
            return {"size": _size_of_nothing(lowering, by_rows=by_rows)}
        dtype, shape = lowering.results["out"]
        found, size = lowering.opaque_all(
            "true_places",
            [lowering.value("input")],
            [(dtype, (math.prod(shape),)), (_LONG, (2,))],
            by_rows=by_rows,
            clears=not lowering.call.c_shaped,
        )
        return {"out": _in_room(lowering, found), "size": size}

    allowed = REAL if by_rows else (*REAL, *LARGE_UNSIGNED)
    return Operator(
        name=name,
        notes=f"A NaN is not zero, -0 is. {_ROOM}",
        inputs=("input",),
        outputs=("out", "size"),
        measured={"out": ("size", 2)},
        sample_specs=specs("out, size: INT64"),
        entries=(entry(f"aclnn{cann}", "self=input out:out"),),
        rules=(
            dtype_among("input", allowed),
            *require("out, size: INT64; input, out: at most 8 dims"),
            _not_without_room(),
            _is_contiguous("out"),
        ),
        infer=lambda call: {
            "out": (_LONG, _places_shape(call, by_rows=by_rows)),
            "size": (_LONG, (2,)),
        },
        lower=lower,
        accuracy=_EXACT,
        **more,
    )


def _size_of_nothing(lowering: Lowering, *, by_rows: bool) -> int:
    """The shape of places without any."""
    builder, rank = lowering.builder, len(lowering.call.shape("input"))
    if rank == 0:  # whose places have no indices: there may be one
        truth = builder.cast(lowering.reshaped("input", (1,)), graph_dtype(_TRUTH))
        count = builder.cast(truth, graph_dtype(_LONG))
    else:
        count = lowering.filled(0, _LONG, (1,))
    whole = builder.buffer("size", (2,), graph_dtype(_LONG))
    for position, part in enumerate((count, lowering.filled(rank, _LONG, (1,)))):
        at = position if by_rows else 1 - position
        builder.view_copy(part, builder.view(whole, (1,), (1,), at))
    return whole


@rule("if `out` is empty there is nothing to do")
def _not_without_room(call: Call) -> str | None:
    """Outputs that are given may be empty, whatever their shape: nothing is done then."""
    if call.makes_absent or "out" not in call.tensors:
        return None
    return done_if_empty("out").test(call)


nonzero_padded = _nonzero(
    "nonzero_padded",
    "Nonzero",
    by_rows=True,
    summary="Indices of the elements that are not zero, a row for each.",
    expression="out[n] = the indices of the n-th element, in row-major order, that is not 0",
    example=(
        "nonzero_padded(np.float32([5, 7]))",
        "(array([[0],\n       [1]]), array([2, 1]))",
    ),
    seealso=("masked_select_padded",),
)
nonzero_by_dims = _nonzero(
    "nonzero_by_dims",
    "NonzeroV2",
    by_rows=False,
    summary="Indices of the elements that are not zero, a row for each dimension.",
    expression="out[:, n] = the indices of the n-th element, in row-major order, that is not 0",
    example=(
        "nonzero_by_dims(np.float32([[5, 7]]))",
        "(array([[0, 0],\n       [0, 1]]), array([2, 2]))",
    ),
    seealso=("nonzero_padded",),
)


# --- Elements where a mask is true ----------------------------------------------------------------

_MASKED = ("input", "mask")


def _masked_size(call: Call) -> int:
    shape = broadcast_shapes(*[call.shape(role) for role in _MASKED])
    assert shape is not None, "a rule sees to it that mask and input broadcast"
    return math.prod(shape)


@rule("`out` has the shape (N,), room for all elements", "out", *_MASKED)
def _masked_room(call: Call) -> str | None:
    if "out" not in call.tensors:
        return None
    shape, size = call.shape("out"), _masked_size(call)
    if shape == (size,):
        return None
    return f"{call.names['out']} has shape {shape}, must have ({size},), room for all elements"


def _lower_masked(lowering: Lowering) -> Mapping[str, int]:
    call, builder = lowering.call, lowering.builder
    if not lowering.wants("out"):  # of no elements
        return {"size": lowering.filled(0, _LONG, (1,))}
    dtype, _ = lowering.results["out"]
    size = _masked_size(call)
    shape = broadcast_shapes(*[call.shape(role) for role in _MASKED])
    value = lowering.dense("input", dtype, shape)
    mask = lowering.dense("mask", _TRUTH, shape)
    found, count = lowering.opaque_all(
        "masked_elements",
        [value, mask],
        [(dtype, (size,)), (_LONG, (1,))],
        clears=not call.c_shaped,
    )
    return {"out": builder.cast(found, graph_dtype(dtype)), "size": count}


masked_select_padded = Operator(
    name="masked_select_padded",
    differentiable=False,
    summary="Elements where a mask is true.",
    expression="out[n] = the n-th element of input, in row-major order, whose mask is true",
    notes=f"Elements are cast to the dtype of `out`. {_ROOM}",
    inputs=_MASKED,
    outputs=("out", "size"),
    measured={"out": ("size", 1)},
    sample_specs=specs("mask: BOOL; size: INT64"),
    entries=(entry("aclnnMaskedSelect", "self=input mask out:out"),),
    rules=(
        *require("input: REAL; mask: BOOL UINT8; out: REAL; size: INT64"),
        *require("input, mask: at most 8 dims; input, mask: broadcast"),
        _masked_room(),
    ),
    infer=lambda call: {
        "out": (
            call.dtype("out") if "out" in call.tensors else call.dtype("input"),
            (_masked_size(call),),
        ),
        "size": (_LONG, (1,)),
    },
    lower=_lower_masked,
    example=(
        "masked_select_padded(np.float32([5, 7]), np.bool_([True, True]))",
        "(array([5., 7.], dtype=float32), array([2]))",
    ),
    accuracy=_EXACT,
    seealso=("nonzero_padded",),
)


# --- By indices of several dimensions -------------------------------------------------------------

_INDICES = (aclDataType.ACL_INT32, _LONG, _TRUTH)
_RANGE = (
    "Indices broadcast together; where they are of dimensions side by side their shape replaces these, else it "
    "comes first. Negative ones count from the end. One that a dimension does not have ends the call with the "
    "status 161002 when it runs, and nothing is written. A mask stands for the indices of what is true."
)


class _Choice(NamedTuple):
    """The elements of a tensor that a list of indices chooses.

    Attributes
    ----------
    used : tuple of (int, int)
        The place of each index in the list, and the first dimension that it is of.
    dims : tuple of int
        Dimensions that are indexed.
    chosen : tuple of int or None
        The shape of the indices together; None where it depends on data.
    place : int
        The dimension of the result that they begin at.
    """

    used: tuple[tuple[int, int], ...]
    dims: Shape
    chosen: Shape | None
    place: int


def _is_used(call: Call, position: int) -> bool:
    """An empty tensor stands for no index; in functional forms one of uint8 does."""
    spec = call.lists["indices"][position]
    return spec.size > 0 if call.c_shaped else spec.dtype != _BYTES


def _is_mask(call: Call, position: int) -> bool:
    return call.lists["indices"][position].dtype == _TRUTH


def _choice(call: Call, room: Shape | None) -> _Choice:
    """`room`: the shape of what is chosen as far as it is known, which decides how much masks choose."""
    own = call.shape("input")
    used: list[tuple[int, int]] = []
    dims: list[int] = []
    shapes: list[Shape] = []
    axis, masked = 0, False
    for position, spec in enumerate(call.lists["indices"]):
        if not _is_used(call, position):
            axis += 1
            continue
        used.append((position, axis))
        count = len(spec.shape) if _is_mask(call, position) else 1
        dims += range(axis, axis + count)
        axis += count
        if _is_mask(call, position):
            masked = True
        else:
            shapes.append(spec.shape)
    whole = tuple(dims)
    adjacent = whole == tuple(range(whole[0], whole[0] + len(whole))) if whole else True
    position = whole[0] if whole and adjacent else 0
    chosen = broadcast_shapes(*shapes) if shapes else ((1,) if masked else ())
    if masked and chosen is not None:
        rank = max(1, len(chosen))
        last = (room or ())[position + rank - 1 : position + rank]
        known = room is not None and len(room) == len(own) - len(whole) + rank
        several = chosen[-1:] not in ((), (1,))
        if several:
            pass
        elif known:
            chosen = (*chosen[:-1], *last)
        else:
            chosen = None
    return _Choice(tuple(used), whole, chosen, position)


def _indexed_shape(call: Call, choice: _Choice) -> Shape | None:
    """The shape of what is chosen; None where it is not known."""
    if choice.chosen is None:
        return None
    rest = [size for axis, size in enumerate(call.shape("input")) if axis not in choice.dims]
    return (*rest[: choice.place], *choice.chosen, *rest[choice.place :])


@rule("`indices` are INT32, INT64 or BOOL, unless they are empty")
def _indices_known(call: Call) -> str | None:
    for position, spec in enumerate(call.lists["indices"]):
        if not _is_used(call, position):
            continue
        if spec.dtype not in _INDICES:
            name = f"{call.names['indices']}[{position}]"
            return f"{name} has dtype {call.word(spec.dtype)}, must be {call.words(_INDICES)}"
    return None


@rule("`indices` are of no more dimensions than `input` has, masks of their sizes")
def _indices_few(call: Call) -> str | None:
    own, axis = call.shape("input"), 0
    for position, spec in enumerate(call.lists["indices"]):
        name = f"{call.names['indices']}[{position}]"
        if len(spec.shape) > 8:
            return f"{name} has {len(spec.shape)} dimensions, at most 8 are supported"
        if not (_is_used(call, position) and _is_mask(call, position)):
            axis += 1
            continue
        rank = len(spec.shape)
        if rank == 0 or spec.shape != own[axis : axis + rank]:
            return f"{name} has shape {spec.shape}, must have the sizes of {call.names['input']} from dimension {axis} on, {own[axis:]}"
        axis += rank
    if axis <= max(1, len(own)):
        return None
    return f"{call.names['indices']} are of {axis} dimensions, {call.names['input']} has {len(own)}"


@rule("`indices` broadcast")
def _indices_broadcast(call: Call) -> str | None:
    shapes = [
        spec.shape
        for position, spec in enumerate(call.lists["indices"])
        if _is_used(call, position) and not _is_mask(call, position)
    ]
    if not shapes or broadcast_shapes(*shapes) is not None:
        return None
    return (
        f"{call.names['indices']} have shapes {', '.join(map(str, shapes))}, which do not broadcast"
    )


def _table(call: Call) -> Shape:
    """A tensor without dimensions counts as one with a single one."""
    return call.shape("input") or (1,)


@rule("`input` has elements along dimensions with indices", "input", "indices")
def _has_some(call: Call) -> str | None:
    choice = _choice(call, None)
    sizes = [_table(call)[axis] for axis in choice.dims]
    if 0 not in sizes or choice.chosen is None or 0 in choice.chosen:
        return None
    return f"{call.shaped('input')}, which has nothing to choose from"


class _Chosen(NamedTuple):
    """A tensor with the dimensions that are indexed first, and their indices in one shape."""

    order: Shape
    strides: Shape
    sizes: Shape
    indices: list[int]


def _prepared(lowering: Lowering, choice: _Choice, value: int) -> _Chosen:
    call, builder = lowering.call, lowering.builder
    operand = builder.value(value)
    rest = [axis for axis in range(len(operand.shape)) if axis not in choice.dims]
    order = (*choice.dims, *rest)
    indices = []
    for position, _ in choice.used:
        index = lowering.values("indices")[position]
        assert choice.chosen is not None
        if _is_mask(call, position):
            indices += _places_of_mask(lowering, index, choice.chosen)
        else:
            indices.append(lowering.dense(index, _LONG, choice.chosen))
    return _Chosen(
        order,
        tuple([operand.strides[axis] for axis in order]),
        tuple([operand.shape[axis] for axis in order]),
        indices,
    )


def _places_of_mask(lowering: Lowering, mask: int, chosen: Shape) -> list[int]:
    """For each dimension of a mask the indices of what is true, which are as many as are chosen."""
    builder = lowering.builder
    rank, count = len(builder.value(mask).shape), chosen[-1]
    places = lowering.opaque("true_places", [mask], _LONG, (count * rank,), exact=True)
    return [
        lowering.dense(builder.view(places, (count,), (rank,), axis), None, chosen)
        for axis in range(rank)
    ]


def _moved_back(choice: _Choice, rank: int) -> list[int]:
    """Axes of what is chosen first, in the order of the result."""
    assert choice.chosen is not None
    count = len(choice.chosen)
    rest = list(range(count, rank))
    return [*rest[: choice.place], *range(count), *rest[choice.place :]]


def _room_of_out(call: Call) -> Shape | None:
    return call.shape("out") if "out" in call.tensors else None


def _infer_index(call: Call) -> Inferred:
    shape = _indexed_shape(call, _choice(call, _room_of_out(call)))
    assert shape is not None, "a rule sees to it that the shape is known"
    return {"out": (call.dtype("input"), shape)}


def _lower_index(lowering: Lowering) -> Mapping[str, int]:
    call, builder, (dtype, shape) = lowering.call, lowering.builder, lowering.results["out"]
    choice = _choice(call, _room_of_out(call))
    if 0 in shape:
        return {"out": lowering.filled(0, dtype, shape)}
    if not choice.used:
        return {"out": lowering.dense("input")}
    value = lowering.reshaped("input", _table(call))
    found = _prepared(lowering, choice, value)
    table = builder.view(value, found.sizes, found.strides)
    assert choice.chosen is not None
    made = (*choice.chosen, *found.sizes[len(choice.dims) :])
    taken = lowering.taken("take_at", [table, *found.indices], dtype, made, wraps=True)
    axes = _moved_back(choice, len(made))
    strides = contiguous_strides(made)
    return {
        "out": builder.contiguous(builder.view(taken, shape, tuple([strides[a] for a in axes])))
    }


@rule("`out` has the shape of the selection", "out", "input", "indices")
def _index_fits(call: Call) -> str | None:
    shape = _indexed_shape(call, _choice(call, _room_of_out(call)))
    if shape is None:
        return (
            f"{call.names['indices']} have a mask, so that the size of the result depends on data: give "
            f"{call.names['out']}, of the right shape"
        )
    if len(shape) > 8:
        return f"the result has {len(shape)} dimensions, at most 8 are supported"
    if "out" not in call.tensors or call.shape("out") == shape:
        return None
    return f"{call.shaped('out')}, must have {shape}"


_INDEX_LIKE = specs("indices: INT64[1]")

index = Operator(
    name="index",
    summary="Elements that indices of several dimensions name.",
    expression="out = input[indices[0], indices[1], …]",
    notes=f"{_RANGE} A dimension without an index has None; in C-shaped calls an empty tensor.",
    inputs=("input", "indices"),
    lists=("indices",),
    absent_items=True,
    sample_specs=_INDEX_LIKE,
    entries=(entry("aclnnIndex", "self=input indices:tensors out:out"),),
    rules=(
        *require("out: dtype of input; input: REAL"),
        _indices_known(),
        *require("input, indices, out: plain format; input: at most 8 dims"),
        _indices_few(),
        *require("input, out: if empty ends"),
        _indices_broadcast(),
        _has_some(),
        _index_fits(),
    ),
    infer=_infer_index,
    lower=_lower_index,
    example=(
        "index(np.float32([[1, 2], [3, 4]]), [np.int64([1, 0]), np.int64([0, 0])])",
        "array([3., 1.], dtype=float32)",
    ),
    accuracy=_EXACT,
    seealso=("index_put", "gather_nd", "index_select"),
    gradient={"input": "gradient_of_indexed(grad, input, indices)"},
)


# --- Writing by them ------------------------------------------------------------------------------


def _room_of_values(call: Call) -> Shape | None:
    """The shape that values broadcast to, where theirs tells it."""
    choice = _choice(call, None)
    rank = len(call.shape("input")) - len(choice.dims) + max(1, _rank_of_chosen(call))
    arguments = (1,) * (rank - len(call.shape("values"))) + call.shape("values")
    position = choice.place + max(1, _rank_of_chosen(call)) - 1
    return arguments if len(arguments) == rank and arguments[position] != 1 else None


def _rank_of_chosen(call: Call) -> int:
    ranks = [
        len(spec.shape)
        for position, spec in enumerate(call.lists["indices"])
        if _is_used(call, position) and not _is_mask(call, position)
    ]
    return max(ranks, default=0)


def _put_choice(call: Call) -> _Choice:
    return _choice(call, _room_of_values(call))


def _is_one_mask(call: Call, choice: _Choice) -> bool:
    return choice.chosen is None and len(choice.used) == 1


def _masked_values(call: Call, choice: _Choice) -> Shape | None:
    """The shape in which values that are equal wherever a mask is true broadcast to the input."""
    own, ((position, axis),) = call.shape("input"), choice.used
    rank = len(call.lists["indices"][position].shape)
    requested = len(own) - rank + 1
    arguments = (1,) * (requested - len(call.shape("values"))) + call.shape("values")
    if len(arguments) != requested:
        return None
    shape = (*arguments[:axis], *(1,) * rank, *arguments[axis + 1 :])
    return shape if broadcast_shapes(shape, own) == own else None


@rule("`values` broadcasts to the shape of the selection", "values", "indices")
def _values_fit(call: Call) -> str | None:
    choice, value = _put_choice(call), call.shape("values")
    if _is_one_mask(call, choice):
        if _masked_values(call, choice) is not None:
            return None
        return f"{call.names['values']} has shape {value}, which does not broadcast to what the mask chooses"
    shape = _indexed_shape(call, choice)
    if shape is None:
        return (
            f"{call.names['indices']} have a mask together with other indices, and {call.names['values']} of shape "
            f"{value} does not determine the number of selected elements"
        )
    if broadcast_shapes(value, shape) == shape:
        return None
    return f"{call.names['values']} has shape {value}, which does not broadcast to {shape}"


def _lower_put(lowering: Lowering) -> Mapping[str, int]:
    call, builder, (dtype, made) = lowering.call, lowering.builder, lowering.results["out"]
    choice = _put_choice(call)
    nothing = choice.chosen is not None and 0 in choice.chosen
    if not choice.used or nothing or 0 in call.shape("values") or 0 in made:
        return {"out": lowering.value("input")}
    adds = bool(call.switches["accumulate"])
    if _is_one_mask(call, choice):
        return {"out": _put_where(lowering, choice, adds=adds)}
    wide = aclDataType.ACL_FLOAT if adds and dtype in _HALVES else dtype
    value = builder.cast(lowering.reshaped("input", _table(call)), graph_dtype(wide))
    found = _prepared(lowering, choice, value)
    in_order = found.order == tuple(range(len(found.order)))
    base = (
        value if in_order else builder.contiguous(builder.view(value, found.sizes, found.strides))
    )
    assert choice.chosen is not None
    spread = (*choice.chosen, *found.sizes[len(choice.dims) :])
    put = builder.compute(
        "put_at",
        [base, _spread_values(lowering, choice, spread, wide), *found.indices],
        found.sizes,
        graph_dtype(wide),
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        in_place=(0,),
        how=_ADD if adds else _REPLACE,
        wraps=True,
    )
    if not in_order:
        strides = contiguous_strides(found.sizes)
        back = [found.order.index(axis) for axis in range(len(found.order))]
        shape = tuple([found.sizes[axis] for axis in back])
        put = builder.contiguous(builder.view(put, shape, tuple([strides[axis] for axis in back])))
    return {"out": lowering.reshaped(builder.cast(put, graph_dtype(dtype)), made)}


def _spread_values(lowering: Lowering, choice: _Choice, spread: Shape, dtype: aclDataType) -> int:
    """Values with what is chosen in the first dimensions."""
    builder = lowering.builder
    axes = _moved_back(choice, len(spread))
    shape = tuple([spread[axis] for axis in axes])
    values = lowering.dense("values", dtype, shape)
    if axes == list(range(len(axes))):
        return values
    value = builder.value(values)
    back = [axes.index(axis) for axis in range(len(axes))]
    return builder.view(values, spread, tuple([value.strides[axis] for axis in back]))


def _put_where(lowering: Lowering, choice: _Choice, *, adds: bool) -> int:
    """Values that are equal wherever a mask is true."""
    call, (dtype, own) = lowering.call, lowering.results["out"]
    ((position, axis),) = choice.used
    shape = _masked_values(call, choice)
    assert shape is not None
    mask = lowering.values("indices")[position]
    masked = lowering.builder.value(mask).shape
    wide = (*(1,) * axis, *masked, *(1,) * (len(own) - axis - len(masked)))
    mask = lowering.dense(lowering.reshaped(mask, wide), None, own)
    values = lowering.dense(lowering.reshaped("values", shape), None, own)
    if adds:
        one = 1 if reads_of(dtype) == "int64" else 1.0
        formula, more = ("logical_or", ()) if dtype == _TRUTH else ("add", (one,))
        values = lowering.point(formula, [lowering.dense("input"), values], dtype, own, params=more)
    return lowering.point("where", [mask, values, lowering.dense("input")], dtype, own)


index_put = Operator(
    name="index_put",
    in_place="index_put_",
    summary="Values put where indices of several dimensions say, or added there.",
    expression="input[indices[0], indices[1], …] = values, or += values",
    notes=(
        f"{_RANGE} A dimension without an index has None; in C-shaped calls an empty tensor. Of indices that are "
        "the same the last one counts; sums are in row-major order, those of half precision in float32, rounded "
        "once. Bools are added by or."
    ),
    inputs=("input", "values", "indices"),
    parameters=("input", "indices", "values", "accumulate"),
    lists=("indices",),
    absent_items=True,
    attributes=(
        argument("accumulate", False, "bool", "Whether values are added."),
        Attribute("unsafe", False, "bool", doc="Has no effect: indices are always tested."),
    ),
    sample_specs={**specs("values: [1]"), **_INDEX_LIKE},
    entries=(
        entry(
            "aclnnIndexPutImpl",
            "selfRef=input:inout indices:tensors values accumulate:bool unsafe:bool",
        ),
    ),
    rules=(
        *require("input, values: REAL; out: dtype of input"),
        _indices_known(),
        *require("values: dtype of input; input: at most 8 dims"),
        _indices_few(),
        *require("input, values: if empty ends"),
        _indices_broadcast(),
        _values_fit(),
        *require("out: shape of input"),
    ),
    lower=_lower_put,
    example=(
        "index_put(np.float32([1, 2, 3]), [np.int64([2, 0])], np.float32([7, 8]))",
        "array([8., 2., 7.], dtype=float32)",
    ),
    accuracy="Elements that move keep their bits; sums are those of the dtype.",
    seealso=("index", "scatter_nd_update_"),
    gradient={
        "input": "gradient_of_overwritten(grad, indices, accumulate)",
        "values": "gradient_of_values(grad, values, indices)",
    },
)
