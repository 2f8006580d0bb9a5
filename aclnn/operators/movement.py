"""Data movement: casts, permutations, copies and concatenation."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.arguments import shown
from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    MAX_DIMS,
    Call,
    Rule,
    at_most_8_dims,
    broadcasts_to,
    dtype_among,
    has_shape,
    list_dtype_among,
    option_dtype_among,
    same_dtype,
    same_rank,
    same_shape,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype

_ANY = tuple(dtypes.NUMPY)


# --- Cast -----------------------------------------------------------------------------------------


def _infer_cast(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    return {"out": (call.switches["dtype"], call.shape("input"))}


def _lower_cast(lowering: Lowering) -> Mapping[str, int]:
    return {"out": lowering.dense("input", lowering.results["out"][0])}


cast = Operator(
    name="cast",
    summary="The same numbers in another dtype.",
    expression="input as dtype",
    notes=(
        "Rounded to nearest, ties to even. What becomes an integer is truncated, NaN becomes 0; of "
        "complex numbers the imaginary part is dropped. An output of yet another dtype gets the "
        "result converted once more."
    ),
    infer=_infer_cast,
    lower=_lower_cast,
    inputs=("input",),
    attributes=(Attribute("dtype", REQUIRED, "dtype", keyword_only=False, doc="Of the result."),),
    entries=(entry("aclnnCast", "self=input dtype:dtype out:out"),),
    rules=(
        dtype_among("input", _ANY),
        option_dtype_among("dtype", _ANY),
        dtype_among("out", _ANY),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    example=('cast(np.float32([1.75, -2.5]), "int32")', "array([ 1, -2], dtype=int32)"),
    gradient={"input": "grad"},
)


# --- Permutation ------------------------------------------------------------------------------------


def _permutes() -> Rule:
    def test(call: Call) -> str | None:
        dims, rank = call.switches["dims"], len(call.shape("input"))
        assert isinstance(dims, tuple)
        if len(dims) != rank:
            return (
                f"{call.names['dims']} has {len(dims)} numbers, but {call.names['input']} has {rank} "
                "dimensions"
            )
        if len({dim % rank for dim in dims}) == rank:
            return None
        return f"{call.names['dims']} is {shown(dims)}, must not have a dimension twice"

    return Rule("`dims` has every dimension of `input` once", test, ("dims", "input"))


def _dims_in_range() -> Rule:
    def test(call: Call) -> str | None:
        dims, rank = call.switches["dims"], len(call.shape("input"))
        assert isinstance(dims, tuple)
        if all(-rank <= dim < rank for dim in dims):
            return None
        return f"{call.names['dims']} is {shown(dims)}, must be from {-rank} to {rank - 1}"

    return Rule("`dims` are dimensions of `input`", test, ("dims", "input"))


def _axes(call: Call) -> list[int]:
    dims, rank = call.switches["dims"], len(call.shape("input"))
    assert isinstance(dims, tuple)
    return [dim % rank for dim in dims]


def _permuted_shape(call: Call) -> tuple[int, ...]:
    return tuple([call.shape("input")[axis] for axis in _axes(call)])


permute = Operator(
    name="permute",
    summary="A copy with the dimensions in another order.",
    expression="out[i] = input[j], j[dims[k]] = i[k]",
    notes="To be read in another order a tensor needs no copy: strides of a view do that.",
    infer=lambda call: {"out": (call.dtype("input"), _permuted_shape(call))},
    lower=lambda lowering: {
        "out": lowering.builder.transpose(lowering.value("input"), _axes(lowering.call))
    },
    inputs=("input",),
    attributes=(
        Attribute(
            "dims",
            REQUIRED,
            "ints",
            keyword_only=False,
            doc="Dimensions of `input`, in their new order; negative ones count from the last.",
        ),
    ),
    entries=(entry("aclnnPermute", "self=input dims:ints out:out"),),
    rules=(
        dtype_among("input", _ANY),
        same_dtype("out", "input"),
        same_rank("out", "input"),
        _permutes(),
        at_most_8_dims("input", "out"),
        _dims_in_range(),
        has_shape("out", _permuted_shape, "the shape of `input`, in the order of `dims`"),
    ),
    example=("permute(np.float32([[1], [2]]), (1, 0))", "array([[1., 2.]], dtype=float32)"),
    gradient={"input": "permuted_back(grad, dims)"},
)


# --- Copies -----------------------------------------------------------------------------------------


def _lower_copy(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    return {"out": lowering.dense("src", dtype, shape)}


copy_ = Operator(
    name="copy_",
    in_place="copy_",
    summary="Copy elements, broadcast and converted, over those of another tensor.",
    expression="input = src",
    notes="Converts as `cast` does.",
    infer=lambda call: {"out": (call.dtype("input"), call.shape("input"))},
    lower=_lower_copy,
    inputs=("input", "src"),
    entries=(entry("aclnnInplaceCopy", "selfRef=input:inout src"),),
    rules=(
        dtype_among("input", _ANY),
        dtype_among("src", _ANY),
        at_most_8_dims("input", "src"),
        broadcasts_to("src", "input"),
    ),
    example=("copy_(np.float32([0, 0]), np.float32([7]))", "array([7., 7.], dtype=float32)"),
    gradient={"src": "grad"},
)


# --- Concatenation ----------------------------------------------------------------------------------

_DIM = Attribute("dim", 0, "int", keyword_only=False, doc="Along which tensors follow each other.")


def _is_nothing(shape: tuple[int, ...]) -> bool:
    """An empty tensor of one dimension goes with any others."""
    return shape == (0,)


def _joined_shapes(call: Call) -> list[tuple[int, ...]]:
    shapes = [one.shape for one in call.lists["tensors"]]
    return [shape for shape in shapes if not _is_nothing(shape)] or shapes[:1]


def _joined_dtype(call: Call) -> aclDataType | None:
    result: aclDataType | None = call.lists["tensors"][0].dtype
    for one in call.lists["tensors"][1:]:
        result = dtypes.promote(result, one.dtype) if result is not None else None
    return result


def _joined_shape(call: Call) -> tuple[int, ...]:
    shapes = _joined_shapes(call)
    dim, first = call.switches["dim"], shapes[0]
    assert isinstance(dim, int)
    axis = dim % len(first)
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _some_tensors() -> Rule:
    def test(call: Call) -> str | None:
        return None if call.lists["tensors"] else f"{call.names['tensors']} is empty"

    return Rule("`tensors` has at least one tensor", test, ("tensors",))


def _tensors_promote() -> Rule:
    def test(call: Call) -> str | None:
        if _joined_dtype(call) is not None:
            return None
        kinds = dict.fromkeys(one.dtype.name.removeprefix("ACL_") for one in call.lists["tensors"])
        return f"dtypes of {call.names['tensors']} do not promote: {', '.join(kinds)}"

    return Rule("the dtypes of `tensors` promote", test, ("tensors",))


def _tensors_of_dims() -> Rule:
    def test(call: Call) -> str | None:
        for place, one in enumerate(call.lists["tensors"]):
            if not 1 <= len(one.shape) <= MAX_DIMS:
                return (
                    f"{call.names['tensors']}[{place}] has {len(one.shape)} dimensions, must have 1 "
                    f"to {MAX_DIMS}"
                )
        return None

    return Rule(f"`tensors` have 1 to {MAX_DIMS} dimensions", test, ("tensors",))


def _dim_of_tensors() -> Rule:
    def test(call: Call) -> str | None:
        dim, rank = call.switches["dim"], len(_joined_shapes(call)[0])
        if isinstance(dim, int) and -rank <= dim < rank:
            return None
        return f"{call.names['dim']} is {shown(dim)}, must be from {-rank} to {rank - 1}"

    return Rule("`dim` is one of the dimensions of `tensors`", test, ("dim", "tensors"))


def _shapes_join() -> Rule:
    def test(call: Call) -> str | None:
        first, *others = _joined_shapes(call)
        dim = call.switches["dim"]
        assert isinstance(dim, int)
        axis = dim % len(first)
        for shape in others:
            if len(shape) != len(first) or any(
                a != b for k, (a, b) in enumerate(zip(first, shape, strict=True)) if k != axis
            ):
                return (
                    f"{call.names['tensors']} have shapes {first} and {shape}, which differ not only "
                    f"along {call.names['dim']} {dim}"
                )
        return None

    return Rule(
        "the shapes of `tensors` are the same but along `dim`; those of shape (0,) count for nothing",
        test,
        ("tensors", "dim"),
    )


def _joined_castable() -> Rule:
    def test(call: Call) -> str | None:
        if "out" not in call.tensors or dtypes.can_cast(_joined_dtype(call), call.dtype("out")):
            return None
        return (
            f"{call.names['out']} has dtype {call.dtype('out').name.removeprefix('ACL_')}, to which "
            "the result cannot be cast"
        )

    return Rule("the result's dtype can be cast to that of `out`", test, ("out",))


def _lower_cat(lowering: Lowering) -> Mapping[str, int]:
    """Every tensor becomes a part of the result, converted where it has to be."""
    builder, call = lowering.builder, lowering.call
    dtype, shape = lowering.results["out"]
    stored = call.dtype("out") if "out" in call.tensors else dtype
    dim = call.switches["dim"]
    assert isinstance(dim, int)
    axis, strides = dim % len(shape), contiguous_strides(shape)
    whole = builder.buffer("joined", shape, graph_dtype(stored))
    start = 0
    for value, spec in zip(lowering.values("tensors"), call.lists["tensors"], strict=True):
        if spec.size == 0:
            continue
        part = builder.view(whole, spec.shape, strides, start * strides[axis])
        joined = builder.cast(lowering.dense(value, dtype), graph_dtype(stored))
        builder.view_copy(joined, part)
        start += spec.shape[axis]
    return {"out": whole}


cat = Operator(
    name="cat",
    summary="Tensors one after the other along a dimension.",
    expression="out = tensors[0] followed by tensors[1], …, along dim",
    notes="Different dtypes promote. Tensors of shape (0,) go with any others.",
    infer=lambda call: {"out": (_joined_dtype(call), _joined_shape(call))},
    lower=_lower_cat,
    inputs=("tensors",),
    lists=("tensors",),
    attributes=(_DIM,),
    entries=(entry("aclnnCat", "tensors:tensors dim:int out:out"),),
    rules=(
        _some_tensors(),
        list_dtype_among("tensors", _ANY),
        _tensors_promote(),
        _joined_castable(),
        _tensors_of_dims(),
        _dim_of_tensors(),
        _shapes_join(),
        has_shape("out", _joined_shape, "the shape of the result"),
    ),
    example=("cat([np.float32([1]), np.float32([2, 3])])", "array([1., 2., 3.], dtype=float32)"),
    gradient={"tensors": "parts_of_cat(grad, tensors, dim)"},
)
