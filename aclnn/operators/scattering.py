"""Elements combined where indices say, numbers in the place of indices, repetitions and cyclic shifts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.arguments import shown
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import COMPLEX, Call, Rule, at_most_8_dims, has_shape, rule, same_dtype
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import like_input, number, numbers
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_INDICES = (aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_LONG = aclDataType.ACL_INT64
_HALVES = (aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
_REPLACE, _ADD, _MULTIPLY = range(3)  # as kernels count them
_HOW = ("replace", "add", "multiply")
_CHECKED = (
    "A call with an index that the dimension does not have ends with the status 161002 when it runs, and "
    "nothing is written."
)
_ORDER = "Of indices that are the same the last one counts; sums are in row-major order, those of half precision in float32, rounded once."
_DIM = argument("dim", REQUIRED, "int", "The dimension that indices count along.")


def _axis(call: Call, role: str = "input") -> int:
    """A tensor without dimensions counts as one with a single one."""
    return number(call, "dim") % max(1, len(call.shape(role)))


# --- Along a dimension ----------------------------------------------------------------------------


def _scattered(
    lowering: Lowering, index: int, source: int, how: int, axis: int, *, wraps: bool = False
) -> int:
    """The input, of one dimension at least, with elements of a source where the index says."""
    dtype, made = lowering.results["out"]
    builder, own = lowering.builder, made or (1,)
    base = lowering.reshaped("input", own)
    wide = aclDataType.ACL_FLOAT if how != _REPLACE and dtype in _HALVES else dtype
    if wide != dtype:
        base, source = (builder.cast(one, graph_dtype(wide)) for one in (base, source))
    found = builder.compute(
        "scatter_along",
        [base, index, source],
        own,
        graph_dtype(wide),
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        in_place=(0,),
        axis=axis,
        how=how,
        wraps=wraps,
    )
    return lowering.reshaped(builder.cast(found, graph_dtype(dtype)), made)


def _how(call: Call) -> int:
    reduce = call.switches.get("reduce")
    return _HOW.index(reduce) if reduce in _HOW else _REPLACE


def _lower_scatter(how: Callable[[Call], int]) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        call = lowering.call
        dtype, _ = lowering.results["out"]
        if 0 in call.shape("index") or 0 in call.shape("input"):
            return {"out": lowering.dense("input")}
        index = lowering.reshaped("index", call.shape("index") or (1,))
        shape = lowering.builder.value(index).shape
        if "src" in call.scalars:
            one = lowering.point("fill", (), dtype, (1,), params=lowering.params(("src",), dtype))
            source = lowering.builder.view(one, shape, [0] * len(shape))
        else:
            own = call.shape("src") or (1,)
            source = lowering.reshaped("src", own)
            source = lowering.builder.view(source, shape, lowering.builder.value(source).strides)
        axis = _axis(call)
        return {"out": _scattered(lowering, index, source, how(call), axis)}

    return lower


@rule("`{role}` has as many dimensions as `input`")
def _rank_of(call: Call, role: str) -> str | None:
    own, rank = (max(1, len(call.shape(one))) for one in ("input", role))
    if own == rank or call.tensors["index"].size == 0:
        return None
    return (
        f"{call.ranked(role)}, but must have as many as "
        f"{call.names['input']}, {len(call.shape('input'))}"
    )


def _index_fits(like: str) -> Rule:
    """In every dimension of the source, of the input in all but one."""
    but = " but along `dim`" if like == "input" else ""

    def test(call: Call) -> str | None:
        if call.tensors["index"].size == 0:
            return None
        index, own = call.shape("index"), call.shape(like)
        axis = _axis(call) if like == "input" else -1
        pairs = enumerate(zip(index, own, strict=bool(index and own)))
        if all(k == axis or requested <= size for k, (requested, size) in pairs):
            return None
        return f"{call.names['index']} has shape {index}, which is larger than that of {call.names[like]}, {own}"

    return Rule(f"`index` is no larger than `{like}`{but}", test, ("index", like, "dim"))


@rule("`reduce` is 'add', 'multiply' or 'replace'")
def _known_reduction(call: Call) -> str | None:
    if call.c_shaped or call.switches["reduce"] in _HOW:
        return None
    return f"{call.chosen('reduce')}, must be 'add', 'multiply' or 'replace'"


@rule("complex elements are replaced only", "input")
def _computes(call: Call) -> str | None:
    """Complex numbers only move."""
    if call.dtype("input") not in COMPLEX or _how(call) == _REPLACE:
        return None
    return f"{call.typed('input')}, which can only be replaced"


_REDUCE = Attribute(
    "reduce",
    "replace",
    "str",
    doc="How elements are combined.",
    choices=_HOW,
)


def _scatter_rules(*sources: str) -> tuple[Rule, ...]:
    return (
        *require("input: NUMERIC"),
        *[same_dtype(role, "input") for role in sources],
        *require("out: dtype of input; index: INT32 INT64"),
        *[_rank_of(role) for role in ("index", *sources)],
        has_shape("out", lambda call: call.shape("input"), "the shape of `input`"),
        *[_index_fits(role) for role in sources],
        _index_fits("input"),
        at_most_8_dims("input", "index", *sources),
        *require("dim: axis of input"),
    )


def _scatter(
    name: str,
    word: str,
    expression: str,
    how: Callable[[Call], int],
    example: tuple[str, str],
    **more: Any,
) -> Operator:
    rules = more.pop("rules", ())
    return Operator(
        name=name,
        in_place=f"{name}_",
        summary=f"Elements of another tensor, {word} where indices say along a dimension.",
        expression=expression,
        notes=f"{_ORDER} {_CHECKED}",
        inputs=("input", "index", "src"),
        parameters=("input", "dim", "index", "src"),
        sample_specs=specs("index: INT64"),
        rules=(*_scatter_rules("src"), *rules),
        infer=like_input,
        lower=_lower_scatter(how),
        example=example,
        accuracy="Elements that move keep their bits; sums and products are those of the dtype.",
        **more,
    )


def _reduction_entries(name: str, source: str) -> tuple[Any, ...]:
    return (
        entry(f"aclnn{name}", f"self=input dim:int index {source} reduce:int out:out"),
        entry(f"aclnnInplace{name}", f"selfRef=input:inout dim:int index {source} reduce:int"),
    )


scatter = _scatter(
    "scatter",
    "put",
    "out = input, but out[index[i, j, …], j, …] = src[i, j, …], along dim",
    _how,
    (
        "scatter(np.float32([1, 2, 3]), 0, np.int64([2, 0]), np.float32([7, 8]))",
        "array([8., 2., 7.], dtype=float32)",
    ),
    attributes=(_DIM, _REDUCE),
    number_form=("src", "scatter_value"),
    entries=_reduction_entries("Scatter", "src"),
    rules=(_known_reduction(), _computes()),
    seealso=("scatter_add", "gather"),
    gradient={
        "input": "gradient_of_scattered(grad, dim, index, reduce)",
        "src": "gradient_of_source(grad, src, dim, index, reduce)",
    },
)
scatter_value = Operator(
    name="scatter_value",
    functional=False,
    summary="A number, put where indices say along a dimension.",
    expression="out = input, but out[index[i, j, …], j, …] = src, along dim",
    notes=f"The number is converted to the dtype of `input`. {_CHECKED}",
    inputs=("input", "index"),
    parameters=("input", "dim", "index", "src"),
    sample_specs=specs("index: INT64"),
    attributes=(
        _DIM,
        argument("src", REQUIRED, "scalar", "The number that is put."),
        _REDUCE,
    ),
    entries=_reduction_entries("ScatterValue", "value=src:scalar"),
    rules=(*require("src: numbers"), *_scatter_rules(), _known_reduction(), _computes()),
    lower=_lower_scatter(_how),
    example=(
        "scatter_value(np.float32([1, 2, 3]), 0, np.int64([2, 0]), 7)",
        "array([7., 2., 7.], dtype=float32)",
    ),
    accuracy="Elements that move keep their bits; sums and products are those of the dtype.",
    seealso=("scatter",),
)
scatter_add = _scatter(
    "scatter_add",
    "added",
    "out = input, but out[index[i, j, …], j, …] += src[i, j, …], along dim",
    lambda call: _ADD,
    (
        "scatter_add(np.float32([1, 2, 3]), 0, np.int64([2, 2]), np.float32([7, 8]))",
        "array([ 1.,  2., 18.], dtype=float32)",
    ),
    attributes=(_DIM,),
    entries=(entry("aclnnScatterAdd", "self=input dim:int index src out:out"),),
    rules=require("input: REAL"),
    seealso=("scatter", "index_add"),
    gradient={"input": "grad", "src": "gradient_of_source(grad, src, dim, index, 'add')"},
)


# --- Slices along a dimension ---------------------------------------------------------------------


@rule(
    "`source` has the sizes of `input`, and along `dim` one for each index",
    "source",
    "input",
    "index",
    "dim",
)
def _slices_fit(call: Call) -> str | None:
    axis, count = _axis(call), call.tensors["index"].size
    own, value = call.shape("input") or (1,), call.shape("source") or (1,)
    requested = (*own[:axis], count, *own[axis + 1 :])
    if value == requested:
        return None
    return (
        f"{call.shaped('source')}, must have {requested}: that of "
        f"{call.names['input']} with {count} along {call.names['dim']} {call.switches['dim']}"
    )


def _one_for_each(lowering: Lowering, shape: Shape, axis: int) -> int:
    """Indices of slices, read with strides of 0 along all dimensions but one."""
    builder = lowering.builder
    flat = lowering.reshaped("index", (shape[axis],))
    strides = [0] * len(shape)
    strides[axis] = builder.value(flat).strides[0]
    return builder.view(flat, shape, strides)


def _lower_index_add(lowering: Lowering) -> Mapping[str, int]:
    """Factors are those of float32 for half precision, and sums too."""
    call, (dtype, made) = lowering.call, lowering.results["out"]
    own, axis, count = made or (1,), _axis(call), call.tensors["index"].size
    shape = (*own[:axis], count, *own[axis + 1 :])
    if 0 in shape or 0 in own:
        return {"out": lowering.dense("input")}
    source = lowering.reshaped("source", shape)
    if not call.scalars["alpha"].one:
        wide = aclDataType.ACL_FLOAT if dtype in _HALVES else dtype
        params = lowering.params(("alpha",), wide)
        if dtype == aclDataType.ACL_BOOL:
            params = (int(not call.scalars["alpha"].zero),)
        source = lowering.point("muls", [lowering.dense(source, wide)], wide, shape, params=params)
    index = _one_for_each(lowering, shape, axis)
    return {"out": _scattered(lowering, index, source, _ADD, axis)}


index_add = Operator(
    name="index_add",
    in_place="index_add_",
    summary="Slices of another tensor, added where indices say along a dimension.",
    expression="out = input, but out[…, index[j], …] += alpha·source[…, j, …]",
    notes=f"{_ORDER} {_CHECKED} Without elements of `index` it is a copy.",
    inputs=("input", "index", "source"),
    parameters=("input", "dim", "index", "source"),
    attributes=(
        _DIM,
        Attribute("alpha", 1, doc="The factor of `source`.", facts=("one", "zero")),
    ),
    sample_specs=specs("index: INT64"),
    entries=(entry("aclnnIndexAdd", "self=input dim:int index source alpha:scalar out:out"),),
    rules=(
        *require("input: REAL; index: INT32 INT64; source, out: dtype of input; alpha: numbers"),
        *require("input, source: at most 8 dims; dim: axis of input; index: 0 to 1 dims"),
        _slices_fit(),
        has_shape("out", lambda call: call.shape("input"), "the shape of `input`"),
    ),
    lower=_lower_index_add,
    example=(
        "index_add(np.float32([1, 2, 3]), 0, np.int64([2, 2]), np.float32([7, 8]), alpha=10)",
        "array([  1.,   2., 153.], dtype=float32)",
    ),
    accuracy="Products and sums are those of the dtype, of half precision in float32, rounded once.",
    seealso=("index_copy", "scatter_add"),
    gradient={
        "input": "grad",
        "source": "aten.index_select(grad, dim, index).reshape(source.shape) * alpha",
    },
)


def _lower_index_fill(lowering: Lowering) -> Mapping[str, int]:
    call, (dtype, made) = lowering.call, lowering.results["out"]
    own, axis, count = made or (1,), _axis(call), call.tensors["index"].size
    shape = (*own[:axis], count, *own[axis + 1 :])
    if 0 in shape or 0 in own:
        return {"out": lowering.dense("input")}
    params = lowering.params(("value",), dtype)
    if dtype == aclDataType.ACL_BOOL:
        params = (int(not call.scalars["value"].zero),)
    one = lowering.point("fill", (), dtype, (1,), params=params)
    source = lowering.builder.view(one, shape, [0] * len(shape))
    index = _one_for_each(lowering, shape, axis)
    return {"out": _scattered(lowering, index, source, _REPLACE, axis, wraps=True)}


def _indices_within(call: Call, arguments: Mapping[str, tuple[int, ...]]) -> str | None:
    size = (call.shape("input") or (1,))[_axis(call)]
    for index in arguments["index"] if call.tensors["input"].size else ():
        if not -size <= index < size:
            return f"{call.names['index']} has {index}, must be from {-size} to {size - 1}"
    return None


index_fill = Operator(
    name="index_fill",
    in_place="index_fill_",
    summary="Slices along a dimension, filled with a number.",
    expression="out = input, but out[…, index[j], …] = value",
    notes=f"Negative indices count from the end. {_CHECKED}",
    inputs=("input", "index"),
    parameters=("input", "dim", "index", "value"),
    attributes=(
        _DIM,
        argument("value", REQUIRED, "scalar", "The number that is put.", facts=("zero",)),
    ),
    sample_specs=specs("index: INT64[1]"),
    entries=(
        entry("aclnnIndexFillTensor", "self=input dim:int index:ints value:scalar out:out"),
        entry("aclnnInplaceIndexFillTensor", "selfRef=input:inout dim:int index:ints value:scalar"),
    ),
    rules=(
        *require("input: REAL; cann input: FLOATING INT32 INT64 BOOL; out: dtype of input"),
        *require("index: INT32 INT64; out: shape of input; input: at most 8 dims"),
        *require("index: 0 to 1 dims; dim: axis of input; value: numbers"),
    ),
    checks_arrays=_indices_within,
    arrays_status=ACLNN_ERR_PARAM_INVALID,
    lower=_lower_index_fill,
    example=(
        "index_fill(np.float32([1, 2, 3]), 0, np.int64([-1, 0]), 7)",
        "array([7., 2., 7.], dtype=float32)",
    ),
    accuracy="Results are exact.",
    seealso=("index_copy",),
    gradient={"input": "aten.index_fill(grad, dim, index, 0)"},
)


# --- By an index for each of the first dimensions -------------------------------------------------


def _coordinates(lowering: Lowering) -> list[int]:
    """For each dimension that is indexed, its indices: views of the tensor that has all."""
    builder, value = lowering.builder, lowering.value("indices")
    operand = builder.value(value)
    *shape, count = operand.shape
    *strides, step = operand.strides
    return [builder.view(value, shape, strides, k * step) for k in range(count)]


def _pieces_shape(role: str) -> Callable[[Call], Shape]:
    def shape(call: Call) -> Shape:
        *places, count = call.shape("indices")
        return (*places, *call.shape(role)[count:])

    return shape


@rule("the last size of `indices` is at most the rank of `{role}`")
def _names_dims(call: Call, role: str) -> str | None:
    count, rank = call.shape("indices")[-1], len(call.shape(role))
    if 1 <= count <= min(rank, 7):
        return None
    return f"{call.shaped('indices')}, must have from 1 to {min(rank, 7)} as its last size"


def _lower_nd_update(lowering: Lowering) -> Mapping[str, int]:
    call, builder = lowering.call, lowering.builder
    _, shape = lowering.results["out"]
    if any(call.tensors[role].size == 0 for role in ("var", "indices", "updates")):
        return {"out": lowering.value("var")}
    found = builder.compute(
        "put_at",
        [lowering.value("var"), lowering.value("updates"), *_coordinates(lowering)],
        shape,
        builder.value(lowering.value("var")).dtype,
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        in_place=(0,),
        how=_REPLACE,
    )
    return {"out": found}


scatter_nd_update_ = Operator(
    name="scatter_nd_update_",
    in_place="scatter_nd_update_",
    summary="Pieces of another tensor, put where rows of indices say.",
    expression="var[indices[i, :]] = updates[i]",
    notes=f"Of rows that are the same the last one counts. {_CHECKED}",
    inputs=("var", "indices", "updates"),
    sample_specs=specs("indices: INT64[1,1]; updates: [1]"),
    entries=(entry("aclnnScatterNdUpdate", "varRef=var:inout indices updates"),),
    rules=(
        *require("var: NUMERIC; cann var: FLOATING INT32 INT64 INT8 BOOL; indices: INT32 INT64"),
        *require("updates: dtype of var; var, indices, updates: at most 8 dims"),
        *require("indices: 2 to 8 dims"),
        _names_dims("var"),
        has_shape(
            "updates",
            _pieces_shape("var"),
            "the shape of a piece of `var` for each row of `indices`",
        ),
        has_shape("out", lambda call: call.shape("var"), "the shape of `var`"),
        *require("out: dtype of var"),
    ),
    lower=_lower_nd_update,
    example=(
        "scatter_nd_update_(np.float32([1, 2, 3]), np.int64([[2], [0]]), np.float32([7, 8]))",
        "array([8., 2., 7.], dtype=float32)",
    ),
    accuracy="Results are exact.",
    seealso=("gather_nd",),
)


@rule("`input` has elements, unless the result has none", "input", "indices")
def _has_pieces(call: Call) -> str | None:
    """Rule that no index into nothing is right."""
    if call.tensors["input"].size or 0 in _pieces_shape("input")(call):
        return None
    return f"{call.shaped('input')}, which has nothing to choose from"


def _lower_gather_nd(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    if 0 in shape:
        return {"out": lowering.filled(0, dtype, shape)}
    operands = [lowering.value("input"), *_coordinates(lowering)]
    wraps = bool(lowering.call.switches["negative_index_support"])
    return {"out": lowering.taken("take_at", operands, dtype, shape, wraps=wraps)}


gather_nd = Operator(
    name="gather_nd",
    differentiable=False,
    summary="Pieces of a tensor, by rows of indices.",
    expression="out[i] = input[indices[i, :]]",
    notes=f"With `negative_index_support` negative indices count from the end. {_CHECKED}",
    inputs=("input", "indices"),
    attributes=(
        argument(
            "negative_index_support", False, "bool", "Whether negative indices count from the end."
        ),
    ),
    sample_specs=specs("indices: INT64[1,1]"),
    entries=(
        entry(
            "aclnnGatherNd",
            "self=input indices negativeIndexSupport=negative_index_support:bool out:out",
        ),
    ),
    rules=(
        *require("out: dtype of input; input: NUMERIC UINT16 UINT32 UINT64"),
        *require("cann input: FLOATING INT32 INT64 INT8 BOOL UINT8; indices: INT32 INT64"),
        *require("input, indices: 1 to 8 dims"),
        _names_dims("input"),
        _has_pieces(),
        has_shape(
            "out",
            _pieces_shape("input"),
            "the shape of a piece of `input` for each row of `indices`",
        ),
        *require("out: at most 8 dims"),
    ),
    lower=_lower_gather_nd,
    example=(
        "gather_nd(np.float32([[1, 2], [3, 4]]), np.int64([[1, 0], [0, 1]]))",
        "array([3., 2.], dtype=float32)",
    ),
    accuracy="Results are exact.",
    seealso=("gather", "scatter_nd_update_"),
)


# --- Numbers in the place of indices --------------------------------------------------------------


def _hot_axis(call: Call) -> int:
    return number(call, "axis") % (len(call.shape("input")) + 1)


def _hot_shape(call: Call) -> Shape:
    shape, axis = call.shape("input"), _hot_axis(call)
    return (*shape[:axis], number(call, "num_classes"), *shape[axis:])


@rule("`num_classes` is not negative, and positive of an empty `input`", "num_classes")
def _classes(call: Call) -> str | None:
    count, empty = number(call, "num_classes"), call.tensors["input"].size == 0
    if count > 0 or (count == 0 and not empty):
        return None
    least = 1 if empty else 0
    return f"{call.names['num_classes']} is {count}, must be at least {least}"


@rule("`axis` is from -1 to the rank of `input`")
def _hot_dim(call: Call) -> str | None:
    axis, rank = number(call, "axis"), len(call.shape("input"))
    if -1 <= axis <= rank:
        return None
    return f"{call.names['axis']} is {axis}, must be from -1 to {rank}"


@rule("`out` has the dtype of `on_value`, INT64 without it")
def _same_as_value(call: Call) -> str | None:
    requested = call.dtype("on_value") if "on_value" in call.tensors else _LONG
    if "out" not in call.tensors or call.dtype("out") == requested:
        return None
    return f"{call.typed('out')}, must be {call.word(requested)}"


def _lower_one_hot(lowering: Lowering) -> Mapping[str, int]:
    call, builder, (dtype, shape) = lowering.call, lowering.builder, lowering.results["out"]
    if 0 in shape:
        return {"out": lowering.filled(0, dtype, shape)}
    axis, arguments = _hot_axis(call), builder.value(lowering.value("input"))
    sizes = (*arguments.shape[:axis], 1, *arguments.shape[axis:])
    strides = (*arguments.strides[:axis], 0, *arguments.strides[axis:])
    index = builder.view(lowering.value("input"), sizes, strides)
    numbers = [
        builder.view(lowering.value(role), (1,), (1,))
        if lowering.has(role)
        else lowering.filled(value, dtype, (1,))
        for role, value in (("on_value", 1), ("off_value", 0))
    ]
    found = lowering.opaque("one_hot_lines", [index, *numbers], dtype, shape, axis=axis)
    return {"out": found}


one_hot = Operator(
    name="one_hot",
    differentiable=False,
    summary="Rows with one number at the position of each index, and another elsewhere.",
    expression="out[…, k] = on_value if input[…] = k, else off_value",
    notes=(
        "An index that is no class gives a row without `on_value`. `num_classes` has to be given: PyTorch's "
        "-1, the largest index and one, is not supported. Values are 1 and 0 if not given."
    ),
    inputs=("input", "on_value", "off_value"),
    optional=("on_value", "off_value"),
    parameters=("input", "num_classes"),
    attributes=(
        argument("num_classes", REQUIRED, "int", "How many classes there are."),
        Attribute("axis", -1, "int", doc="Where the new dimension is."),
    ),
    sample_specs={**specs("input: INT64; on_value, off_value: [1]"), "num_classes": 1, "axis": -1},
    entries=(
        entry(
            "aclnnOneHot",
            "self=input numClasses=num_classes:int onValue=on_value offValue=off_value axis:int out:out",
        ),
    ),
    rules=(
        *require("input: INT32 INT64 UINT8; cann input: INT32 INT64; on_value: NUMERIC"),
        *require("on_value, off_value: elements; cann on_value: FLOAT FLOAT16 INT32 INT64"),
        *require("off_value: dtype of on_value"),
        _same_as_value(),
        *require("input, on_value, off_value: at most 8 dims"),
        _classes(),
        _hot_dim(),
        has_shape("out", _hot_shape, "the shape of the result"),
        *require("out: at most 8 dims"),
    ),
    infer=lambda call: {
        "out": (
            call.dtype("on_value") if "on_value" in call.tensors else _LONG,
            _hot_shape(call),
        )
    },
    lower=_lower_one_hot,
    example=(
        "one_hot(np.int64([1, 2]), 2, on_value=np.float32([5]), off_value=np.float32([0]))",
        "array([[0., 5.],\n       [0., 0.]], dtype=float32)",
    ),
    accuracy="Results are exact.",
)


# --- Repetitions ----------------------------------------------------------------------------------

_OUTPUT_SIZE = Attribute(
    "output_size",
    None,
    "int",
    doc="The size of the result along the dimension; it has to be right.",
)


def _repeated_axis(call: Call) -> int | None:
    dim = call.switches.get("dim")
    return dim % len(call.shape("input")) if isinstance(dim, int) else None


def _flat_or_own(call: Call) -> tuple[Shape, int]:
    """The shape whose dimension is repeated, and which that is."""
    axis = _repeated_axis(call)
    return ((call.tensors["input"].size,), 0) if axis is None else (call.shape("input"), axis)


def _repeated_shape(call: Call) -> Shape:
    shape, axis = _flat_or_own(call)
    if "repeats" in call.switches:
        size = number(call, "repeats") * shape[axis]
    elif call.switches["output_size"] is not None:
        size = number(call, "output_size")
    else:
        size = 0
    return (*shape[:axis], size, *shape[axis + 1 :])


def _lower_repeated(lowering: Lowering) -> Mapping[str, int]:
    """One more dimension, with a stride of 0."""
    call, builder, (_, shape) = lowering.call, lowering.builder, lowering.results["out"]
    own, axis = _flat_or_own(call)
    leading, trailing = math.prod(own[: axis + 1]), math.prod(own[axis + 1 :])
    value = lowering.reshaped("input", (leading, 1, trailing))
    lines = builder.broadcast_to(value, (leading, number(call, "repeats"), trailing))
    return {"out": lowering.reshaped(lines, shape)}


@rule("`dim` is a dimension of `input`")
def _no_dims_refused(call: Call) -> str | None:
    dim, rank = call.switches.get("dim"), len(call.shape("input"))
    if dim is None or (isinstance(dim, int) and -rank <= dim < rank):
        return None
    return f"{call.names['dim']} is {shown(dim)}, must be from {-rank} to {rank - 1}"


@rule("`repeats` is not negative")
def _not_negative(call: Call) -> str | None:
    if number(call, "repeats") >= 0:
        return None
    return f"{call.chosen('repeats')}, must not be negative"


@rule("`output_size` is the size of the result", "output_size", "repeats")
def _size_is_right(call: Call) -> str | None:
    requested, value = _repeated_shape(call), call.switches["output_size"]
    _, axis = _flat_or_own(call)
    if value is None or value == requested[axis]:
        return None
    return f"{call.names['output_size']} is {shown(value)}, must be {requested[axis]}"


_REPEAT_DIM = argument("dim", None, "int", "The dimension; None repeats all elements.")
_REPEATS = argument("repeats", REQUIRED, "int", "Number of repetitions.")


def _repetition(name: str, *dims: Attribute, **more: Any) -> Operator:
    return Operator(
        name=name,
        inputs=("input",),
        attributes=(_REPEATS, *dims, _OUTPUT_SIZE),
        rules=(
            *require("input: NUMERIC; cann input: FLOATING INT32 INT64 INT8 INT16 UINT8 BOOL"),
            *require("out: dtype of input"),
            _not_negative(),
            *((_no_dims_refused(),) if dims else ()),
            *require("input, out: at most 8 dims"),
            _size_is_right(),
            has_shape("out", _repeated_shape, "the shape of the result"),
        ),
        lower=_lower_repeated,
        accuracy="Results are exact.",
        **more,
    )


repeat_interleave = _repetition(
    "repeat_interleave",
    _REPEAT_DIM,
    summary="Elements along a dimension, each as often as a number says.",
    expression="out[…, i, …] = input[…, ⌊i/repeats⌋, …], along dim",
    notes=(
        "Without `dim` the input counts as one dimension. aclnnRepeatInterleave and aclnnRepeatInterleaveWithDim, "
        "whose repeats are tensors, are in `repeat_interleave_tensor`."
    ),
    entries=(
        entry(
            "aclnnRepeatInterleaveIntWithDim",
            "self=input repeats:int dim:int outputSize=output_size:int out:out",
        ),
    ),
    sample_specs={"repeats": 1},
    example=(
        "repeat_interleave(np.float32([1, 2]), 2, 0, output_size=4)",
        "array([1., 1., 2., 2.], dtype=float32)",
    ),
    seealso=("repeat",),
    gradient={"input": "gradient_of_repetitions(grad, input, repeats, dim)"},
)
repeat_interleave_int = _repetition(
    "repeat_interleave_int",
    functional=False,
    form_of="repeat_interleave",
    summary="All elements, each as often as a number says.",
    expression="out[i] = input[⌊i/repeats⌋]",
    entries=(
        entry(
            "aclnnRepeatInterleaveInt", "self=input repeats:int outputSize=output_size:int out:out"
        ),
    ),
    sample_specs={"repeats": 1},
    example=(
        "repeat_interleave_int(np.float32([1, 2]), 2, output_size=4)",
        "array([1., 1., 2., 2.], dtype=float32)",
    ),
    seealso=("repeat_interleave",),
)


# --- Repetitions by a tensor ----------------------------------------------------------------------


@rule("`repeats` has one element, or as many as `input` along `dim`", "repeats", "input")
def _one_for_all_or_each(call: Call) -> str | None:
    own, axis = _flat_or_own(call)
    count = call.tensors["repeats"].size
    if count in (1, own[axis]):
        return None
    return f"{call.names['repeats']} has {count} elements, must have one or {own[axis]}"


@rule("`output_size` is not negative")
def _size_not_negative(call: Call) -> str | None:
    size = number(call, "output_size")
    return None if size >= 0 else f"{call.names['output_size']} is {size}, must not be negative"


def _lower_spread(lowering: Lowering) -> Mapping[str, int]:
    """Slices by indices that the counts are made into."""
    call, builder, (dtype, shape) = lowering.call, lowering.builder, lowering.results["out"]
    if 0 in shape:
        return {"out": lowering.filled(0, dtype, shape)}
    own, axis = _flat_or_own(call)
    counts = lowering.reshaped("repeats", (call.tensors["repeats"].size,))
    counts = builder.broadcast_to(counts, (own[axis],))
    places = lowering.opaque("spread_counts", [counts], call.dtype("repeats"), (shape[axis],))
    strides = [0] * len(shape)
    strides[axis] = 1
    places = builder.view(places, shape, strides)
    table = lowering.reshaped("input", own)
    return {"out": lowering.taken("gather", [table, places], dtype, shape, axis=axis - len(shape))}


_SPREAD: dict[str, Any] = {
    "repeats": {"dtype": _LONG, "shape": (1,), "strides": (1,)},
    "output_size": 1,
}


def _spread(name: str, *dims: Attribute, **more: Any) -> Operator:
    return Operator(
        name=name,
        inputs=("input", "repeats"),
        attributes=(
            *dims,
            Attribute(
                "output_size", REQUIRED, "int", doc="The size of the result along the dimension."
            ),
        ),
        rules=(
            *require("input: NUMERIC; cann input: FLOATING INT32 INT64 INT8 INT16 UINT8 BOOL"),
            *require("repeats: INT32 INT64; out: dtype of input; repeats: 0 to 1 dims"),
            *((_no_dims_refused(),) if dims else ()),
            _one_for_all_or_each(),
            _size_not_negative(),
            *require("input, out: at most 8 dims"),
            has_shape("out", _repeated_shape, "the shape of the result"),
        ),
        lower=_lower_spread,
        accuracy="Results are exact.",
        **more,
    )


repeat_interleave_tensor = _spread(
    "repeat_interleave_tensor",
    _REPEAT_DIM,
    summary="Elements along a dimension, each as often as a tensor says.",
    expression="out = input[…, i, …] repeats[i] times, for each i along dim",
    notes=(
        "Without `dim` the input counts as one dimension. One element of `repeats` holds for all. A call "
        "whose `repeats` do not add up to `output_size`, or are negative, ends with the status 161002 when it runs."
    ),
    entries=(
        entry(
            "aclnnRepeatInterleaveWithDim",
            "self=input repeats dim:int outputSize=output_size:int out:out",
        ),
    ),
    sample_specs=_SPREAD | {"dim": 0},
    example=(
        "repeat_interleave_tensor(np.float32([1, 2]), np.int64([1, 2]), output_size=3)",
        "array([1., 2., 2.], dtype=float32)",
    ),
    seealso=("repeat_interleave",),
    gradient={"input": "gradient_of_spread(grad, input, repeats, dim)"},
)
repeat_interleave_elements = _spread(
    "repeat_interleave_elements",
    functional=False,
    form_of="repeat_interleave_tensor",
    summary="All elements, each as often as a tensor says.",
    expression="out = input[i] repeats[i] times, for each i",
    entries=(
        entry("aclnnRepeatInterleave", "self=input repeats outputSize=output_size:int out:out"),
    ),
    sample_specs=_SPREAD,
    example=(
        "repeat_interleave_elements(np.float32([1, 2]), np.int64([1, 2]), output_size=3)",
        "array([1., 2., 2.], dtype=float32)",
    ),
    seealso=("repeat_interleave_tensor",),
)


# --- Cyclic shifts --------------------------------------------------------------------------------


@rule("there are as many `shifts` as `dims`, one without")
def _shifts_fit(call: Call) -> str | None:
    shifts, dims = numbers(call, "shifts"), numbers(call, "dims")
    if len(shifts) == (len(dims) or 1):
        return None
    return (
        f"{call.names['shifts']} is {shown(shifts)}, must have {len(dims) or 1} numbers for "
        f"{call.names['dims']} {shown(dims)}"
    )


@rule("`dims` are dimensions of `input`")
def _shifted_dims(call: Call) -> str | None:
    dims, rank = numbers(call, "dims"), len(call.shape("input"))
    if all(-rank <= dim < rank for dim in dims) or call.tensors["input"].size == 0:
        return None
    return f"{call.names['dims']} is {shown(dims)}, must be from {-rank} to {rank - 1}"


def _lower_roll(lowering: Lowering) -> Mapping[str, int]:
    """Along each dimension two pieces that change places."""
    call, builder, (dtype, shape) = lowering.call, lowering.builder, lowering.results["out"]
    if 0 in shape:
        return {"out": lowering.dense("input")}
    dims, shifts = numbers(call, "dims"), numbers(call, "shifts")
    sizes = shape if dims else (math.prod(shape),)
    totals = dict.fromkeys(range(len(sizes)), 0)
    for dim, shift in zip(dims or (0,), shifts, strict=True):
        totals[dim % len(sizes)] += shift
    value = lowering.reshaped("input", sizes)
    for axis, total in totals.items():
        if total % sizes[axis]:
            value = _turned(lowering, value, axis, total % sizes[axis], dtype)
    return {"out": lowering.reshaped(builder.contiguous(value), shape)}


def _turned(lowering: Lowering, value: int, axis: int, by: int, dtype: aclDataType) -> int:
    builder = lowering.builder
    arguments = builder.value(value)
    strides = contiguous_strides(arguments.shape)
    whole = builder.buffer("rolled", arguments.shape, graph_dtype(dtype))
    size = arguments.shape[axis]
    for first, start, count in ((size - by, 0, by), (0, by, size - by)):
        part = (*arguments.shape[:axis], count, *arguments.shape[axis + 1 :])
        source = builder.view(value, part, arguments.strides, first * arguments.strides[axis])
        target = builder.view(whole, part, strides, start * strides[axis])
        builder.view_copy(builder.contiguous(source), target)
    return whole


roll = Operator(
    name="roll",
    summary="A tensor shifted cyclically along dimensions.",
    expression="out[(i + shift) mod size] = input[i], along each of dims",
    notes="Without `dims` the tensor counts as one dimension. Shifts of one dimension add up.",
    inputs=("input",),
    attributes=(
        argument("shifts", REQUIRED, "ints", "By how many places, for each of `dims`."),
        argument("dims", (), "ints", "The dimensions; none means all elements."),
    ),
    sample_specs={"shifts": (1,), "dims": (0,)},
    entries=(entry("aclnnRoll", "x=input shifts:ints dims:ints out:out"),),
    rules=(
        *require("input: NUMERIC UINT32"),
        *require("cann input: FLOATING INT32 INT64 INT8 UINT8 INT16 UINT32 BOOL"),
        *require("out: dtype of input; out: shape of input"),
        _shifts_fit(),
        *require("input, out: at most 8 dims"),
        _shifted_dims(),
    ),
    lower=_lower_roll,
    example=("roll(np.float32([1, 2, 3]), 1)", "array([3., 1., 2.], dtype=float32)"),
    accuracy="Results are exact.",
    gradient={"input": "rolled_back(grad, shifts, dims)"},
)
