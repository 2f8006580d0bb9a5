"""Elements by their indices: embedding, index_select, gather."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
    has_shape,
    no_private_format,
    rule,
    same_dtype,
)
from aclnn.operators.declaration import REQUIRED, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]

_ANY = tuple(dtypes.NUMPY)
_INDICES = (aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_OTHERS = (
    "a call with another one ends with the status 161002 when it runs, and may have written a part "
    "of the result then."
)
_RANGE = f"An index is from 0 to one less than the size; {_OTHERS}"
_FROM_THE_END = (
    "An index is from -n to n - 1 along a dimension of n elements, negative ones count from the end; "
    f"{_OTHERS}"
)
_EXACT = "Elements keep their bits."
_DIM = argument("dim", REQUIRED, "int", "The dimension that indices count along.")


def _axis(call: Call, role: str) -> int:
    """A tensor without dimensions counts as one with a single one."""
    dim = call.switches.get("dim", 0)
    assert isinstance(dim, int)
    return dim % max(1, len(call.shape(role)))


def _selected_shape(
    role: str, index: str, keeps: Callable[[Call], bool]
) -> Callable[[Call], Shape]:
    """The shape of a tensor, with that of the indices in the place of the dimension.

    `keeps`: whether an index without dimensions leaves a dimension of size 1, and a tensor without
    dimensions a result like it.
    """

    def shape(call: Call) -> Shape:
        axis, own, chosen = _axis(call, role), call.shape(role), call.shape(index)
        if not own and keeps(call):
            return ()
        if not chosen and keeps(call):
            chosen = (1,)
        return (*own[:axis], *chosen, *own[axis + 1 :])

    return shape


def _has_rank(role: str, least: int, most: int) -> Rule:
    words = f"{most}" if least == most else f"{least} to {most}"

    def test(call: Call) -> str | None:
        rank = len(call.shape(role))
        if least <= rank <= most:
            return None
        return f"{call.names[role]} has {rank} dimensions, must have {words}"

    return Rule(f"`{role}` has {words} dimensions", test, (role,))


@rule("of an `input` without dimensions `index` has one element", "index", "input")
def _one_index(call: Call) -> str | None:
    if call.shape("input") or call.tensors["index"].size == 1:
        return None
    return (
        f"{call.names['index']} has {call.tensors['index'].size} elements, must have one for "
        f"{call.names['input']} without dimensions"
    )


@rule("in C-shaped calls, of an `input` without dimensions `index` is not empty", "index", "input")
def _some_index(call: Call) -> str | None:
    """CANN's result of a tensor without dimensions has none, whatever the shape of the indices."""
    if call.shape("input") or call.tensors["index"].size or not call.c_shaped:
        return None
    return f"{call.names['index']} is empty, but {call.names['input']} has no dimensions"


@rule("`{role}` has elements, unless `{index}` has none")
def _has_elements(call: Call, role: str, index: str) -> str | None:
    """Rule that no index into nothing is right."""
    if call.shape(role)[_axis(call, role) :][:1] != (0,) or not call.tensors[index].size:
        return None
    return f"{call.shaped(role)}, which {call.names[index]} has no elements to choose from"


def _lower_selection(
    role: str, index: str, *, wraps: bool = False
) -> Callable[[Lowering], Mapping[str, int]]:
    """A gather with one index for all elements after it: it is read with strides of 0.

    `wraps`: whether negative indices count from the end.
    """

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, made = lowering.results["out"]
        call, builder = lowering.call, lowering.builder
        axis, own = _axis(call, role), call.shape(role) or (1,)
        count = call.tensors[index].size
        shape = (*own[:axis], count, *own[axis + 1 :])
        table = lowering.reshaped(role, own)
        places = lowering.reshaped(index, (count,))
        strides = [0] * len(shape)
        strides[axis] = builder.value(places).strides[0]
        places = builder.view(places, shape, strides)
        attrs: dict[str, Any] = {"wraps": True} if wraps else {}
        found = lowering.taken(
            "gather", [table, places], dtype, shape, axis=axis - len(shape), **attrs
        )
        if not made and count > 1:  # all of them name the element of a tensor without dimensions
            return {"out": builder.view(found, (), ())}
        return {"out": lowering.reshaped(found, made)}

    return lower


def _selection(
    name: str,
    summary: str,
    item: tuple[str, str],
    roles: tuple[str, str],
    example: tuple[str, str],
    ranks: tuple[Rule, ...],
    keeps: Callable[[Call], bool] = lambda call: False,
    *,
    wraps: bool = False,
    **more: Any,
) -> Operator:
    """An operator that chooses elements along a dimension: its function and signature."""
    role, index = roles
    shape = _selected_shape(role, index, keeps)
    where = f"[…, {index}, …]" if "attributes" in more else f"[{index}]"
    return Operator(
        name=name,
        summary=summary,
        expression=f"out = {role}{where}",
        notes=f"{_EXACT} {_FROM_THE_END if wraps else _RANGE}",
        inputs=roles,
        entries=(entry(*item),),
        rules=(
            dtype_among(role, _ANY),
            dtype_among(index, _INDICES),
            same_dtype("out", role),
            *((no_private_format(*roles, "out"),) if name == "index_select" else ()),
            at_most_8_dims(role, index, "out"),
            *ranks,
            has_shape("out", shape, "the shape of the result"),
            _has_elements(role, index),
        ),
        lower=_lower_selection(role, index, wraps=wraps),
        example=example,
        **more,
    )


embedding = _selection(
    "embedding",
    "Rows of a table, by their indices.",
    ("aclnnEmbedding", "weight indices out:out"),
    ("weight", "indices"),
    (
        "embedding(np.float32([[1, 2], [3, 4]]), np.int64([1, 1, 0]))",
        "array([[3., 4.],\n       [3., 4.],\n       [1., 2.]], dtype=float32)",
    ),
    (_has_rank("weight", 2, 2),),
    sample_specs=specs("weight: [1,1]; indices: INT64"),
    seealso=("index_select",),
    gradient={"weight": "aten.embedding_dense_backward(grad, indices, weight.shape[0], -1, False)"},
    chunking="rows_of_table",
)

index_select = _selection(
    "index_select",
    "Slices along a dimension, by their indices.",
    ("aclnnIndexSelect", "self=input dim:int index out:out"),
    ("input", "index"),
    (
        "index_select(np.float32([[1, 2, 3]]), 1, np.int64([2, 0]))",
        "array([[3., 1.]], dtype=float32)",
    ),
    (*require("dim: axis of input"), _has_rank("index", 0, 1), _one_index()),
    lambda call: True,
    attributes=(_DIM,),
    parameters=("input", "dim", "index"),
    sample_specs=specs("index: INT64"),
    seealso=("embedding", "gather"),
    gradient={"input": "aten.index_select_backward(grad, input.shape, dim, index)"},
    chunking="dask.array: take",
)

gather_v2 = _selection(
    "gather_v2",
    "Slices along a dimension, by indices of any shape.",
    ("aclnnGatherV2", "self=input dim:int index out:out"),
    ("input", "index"),
    (
        "gather_v2(np.float32([1, 2, 3]), 0, np.int64([[2, 0]]))",
        "array([[3., 1.]], dtype=float32)",
    ),
    (*require("dim: axis of input"), _some_index()),
    lambda call: call.c_shaped,
    wraps=True,
    attributes=(_DIM,),
    parameters=("input", "dim", "index"),
    sample_specs=specs("index: INT64"),
    seealso=("index_select",),
    gradient={
        "input": "gradient_of_slices(grad, input.shape, dim, counted_from_front(index, input, dim))"
    },
    chunking="dask.array: take",
)


# --- Gather -----------------------------------------------------------------------------------------


@rule("`index` is no larger than `input`, but along `dim`", "index", "input")
def _index_fits(call: Call) -> str | None:
    own, index, axis = call.shape("input"), call.shape("index"), _axis(call, "input")
    sizes = enumerate(zip(own, index, strict=True))
    if all(n == axis or requested <= size for n, (size, requested) in sizes):
        return None
    return (
        f"{call.names['index']} has shape {index}, which is larger than that of "
        f"{call.names['input']}, {own}, not only along {call.names['dim']} "
        f"{call.switches['dim']}"
    )


@rule("`index` has as many dimensions as `input`")
def _same_rank(call: Call) -> str | None:
    own, index = [max(1, len(call.shape(role))) for role in ("input", "index")]
    if own == index:
        return None
    return (
        f"{call.ranked('index')}, but must have as "
        f"many as {call.names['input']}, {len(call.shape('input'))}"
    )


def _lower_gather(lowering: Lowering) -> Mapping[str, int]:
    dtype, made = lowering.results["out"]
    own, shape = lowering.call.shape("input") or (1,), made or (1,)
    axis = _axis(lowering.call, "input")
    table = lowering.reshaped("input", own)
    sizes = [own[n] if n == axis else size for n, size in enumerate(shape)]
    table = lowering.builder.view(table, sizes, lowering.builder.value(table).strides)
    places = lowering.reshaped("index", shape)
    found = lowering.taken(
        "gather", [table, places], dtype, shape, axis=axis - len(shape), wraps=True
    )
    return {"out": lowering.reshaped(found, made)}


gather = Operator(
    name="gather",
    summary="Elements along a dimension, by an index for each of them.",
    expression="out[i, j, …] = input[i, index[i, j, …], …], along dim",
    notes=f"{_EXACT} {_FROM_THE_END}",
    inputs=("input", "index"),
    attributes=(_DIM,),
    parameters=("input", "dim", "index"),
    sample_specs=specs("index: INT64"),
    entries=(entry("aclnnGather", "self=input dim:int index out:out"),),
    rules=(
        *require("input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
        *require("cann input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL"),
        *require("index: INT32 INT64; out: dtype of input; input, index, out: at most 8 dims"),
        *require("dim: axis of input"),
        _same_rank(),
        _index_fits(),
        has_shape("out", lambda call: call.shape("index"), "the shape of `index`"),
        _has_elements("input", "index"),
    ),
    lower=_lower_gather,
    example=(
        "gather(np.float32([[1, 2], [3, 4]]), 1, np.int64([[0], [1]]))",
        "array([[1.],\n       [4.]], dtype=float32)",
    ),
    seealso=("index_select",),
    gradient={
        "input": "aten.gather_backward(grad, input, dim, counted_from_front(index, input, dim), False)"
    },
)


# --- Index copy -------------------------------------------------------------------------------------

_COPIED = (
    aclDataType.ACL_FLOAT,
    aclDataType.ACL_FLOAT16,
    aclDataType.ACL_BF16,
    aclDataType.ACL_DOUBLE,
    aclDataType.ACL_INT8,
    aclDataType.ACL_INT16,
    aclDataType.ACL_INT32,
    aclDataType.ACL_INT64,
    aclDataType.ACL_UINT8,
    aclDataType.ACL_BOOL,
    *COMPLEX,
)


_WITHOUT_BLOCKS = 3  # how the indices of a kernel count


@rule("`source` has as many dimensions as `input`", "input", "index", "source")
def _ranks_match(call: Call) -> str | None:
    own, rank = len(call.shape("input")), len(call.shape("source"))
    if rank == 0 and call.tensors["index"].size != 1:
        return (
            f"{call.names['index']} has {call.tensors['index'].size} elements, must have one for "
            f"{call.names['source']} without dimensions"
        )
    if own == rank or not own or not rank:
        return None
    return (
        f"{call.names['source']} has {rank} dimensions, but must have as many as "
        f"{call.names['input']}, {own}"
    )


@rule(
    "`source` has the sizes of `input`, and along `dim` one for each index",
    "source",
    "input",
    "index",
    "dim",
)
def _source_fits(call: Call) -> str | None:
    axis, count = _axis(call, "input"), call.tensors["index"].size
    own, value = call.shape("input") or (1,), call.shape("source")
    requested = (*own[:axis], count, *own[axis + 1 :])
    if value == requested or (not value and math.prod(requested) == 1):
        return None
    return (
        f"{call.names['source']} has shape {value}, must have {requested}: that of "
        f"{call.names['input']} with {count} along {call.names['dim']} {call.switches['dim']}"
    )


def _lower_copy(lowering: Lowering) -> Mapping[str, int]:
    call, builder = lowering.call, lowering.builder
    _, made = lowering.results["out"]
    own, axis = made or (1,), _axis(call, "input")
    count = call.tensors["index"].size
    if not count or 0 in own:
        return {"out": lowering.value("input")}
    rows = lowering.reshaped("source", (*own[:axis], count, *own[axis + 1 :]))
    value = builder.value(rows)
    order = [axis, *[n for n in range(len(own)) if n != axis]]
    rows = builder.view(rows, [value.shape[n] for n in order], [value.strides[n] for n in order])
    cache = lowering.reshaped("input", own)
    found = builder.compute(
        "scatter_rows",
        [cache, rows, lowering.reshaped("index", (count,))],
        own,
        builder.value(cache).dtype,
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        in_place=(0,),
        slot_axis=axis,
        counts=_WITHOUT_BLOCKS,
        sequence=0,
        strict=True,
    )
    return {"out": lowering.reshaped(found, made)}


index_copy = Operator(
    name="index_copy",
    in_place="index_copy_",
    summary="Slices of another tensor, put where indices say along a dimension.",
    expression="out = input, but out[…, index[j], …] = source[…, j, …]",
    notes=(
        f"{_EXACT} An index is from 0 to one less than the size; a call with another one ends with the "
        "status 161002 when it runs, and nothing is written. Of slices with one index the last one stays."
    ),
    inputs=("input", "index", "source"),
    attributes=(_DIM,),
    parameters=("input", "dim", "index", "source"),
    sample_specs=specs("index: INT64"),
    entries=(
        entry("aclnnIndexCopy", "selfRef=input dim:int index source outRef=out:out"),
        entry("aclnnInplaceIndexCopy", "selfRef=input:inout dim:int index source"),
    ),
    rules=(
        *require("input: NUMERIC; index: INT32 INT64; source, out: dtype of input"),
        *require("input, source: at most 8 dims"),
        _has_rank("index", 0, 1),
        has_shape("out", lambda call: call.shape("input"), "the shape of `input`"),
        _ranks_match(),
        *require("dim: axis of input"),
        _source_fits(),
        *require("input, source, out: plain format"),
    ),
    lower=_lower_copy,
    example=(
        "index_copy(np.float32([1, 2, 3]), 0, np.int64([2, 0]), np.float32([7, 8]))",
        "array([8., 2., 7.], dtype=float32)",
    ),
    seealso=("index_select",),
    gradient={
        "input": "aten.index_fill(grad, dim, index, 0)",
        "source": "aten.index_select(grad, dim, index)",
    },
)
