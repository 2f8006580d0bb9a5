"""Products of groups of rows, or of groups of columns, with a weight for each."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    Call,
    Rule,
    dtype_among,
    has_shape,
    option_dtype_among,
    same_dtype,
)
from aclnn.operators.declaration import Attribute, Operator
from aclnn.operators.lowering import Lowering
from aclnn.operators.quantization import BITS, BYTE, HALVES, LONG, PACKED, SINGLE
from aclnn.operators.sizes import dtype_among_if, has_rank, number, option_within, size_is

Shape = tuple[int, ...]
_HALF, _BRAIN = HALVES
ALONG_ROWS, ALONG_K = 0, 2
# Of the sums of quantised products; 3, the exact gelu, is refused.
_ACTIVATIONS = (0, 1, 2, 4, 5)


def _is_quantised(call: Call) -> bool:
    return call.dtype("x") == BYTE


def _is_weight_only(call: Call) -> bool:
    return call.dtype("x") != BYTE and call.dtype("weight") == BYTE


def _along(call: Call) -> int:
    return number(call, "group_type")


def _groups(call: Call) -> int:
    return call.shape("group_list")[0]


def _sizes(call: Call) -> tuple[int, int, int]:
    """M, K and N."""
    m, k = call.shape("x")
    return m, k, call.shape("weight")[-1]


def _product_shape(call: Call) -> Shape:
    m, _, n = _sizes(call)
    return (m, n) if _along(call) == ALONG_ROWS else (_groups(call), m, n)


def _out_dtype(call: Call) -> aclDataType:
    if "out" in call.tensors:
        return call.dtype("out")
    chosen = call.switches["output_dtype"]
    if isinstance(chosen, aclDataType):
        return chosen
    return _HALF if _is_quantised(call) else call.dtype("x")


# --- Rules ----------------------------------------------------------------------------------------


def _group_type() -> Rule:
    def test(call: Call) -> str | None:
        if _along(call) in (ALONG_ROWS, ALONG_K):
            return None
        return (
            f"{call.names['group_type']} is {_along(call)}, must be 0 or 2; of products without groups each is "
            "a call of matmul"
        )

    return Rule("`group_type` is 0 or 2", test, ("group_type",))


def _has_groups() -> Rule:
    def test(call: Call) -> str | None:
        if "group_list" in call.tensors:
            return None
        return f"{call.names['group_list']} is null, must be given with {call.names['group_type']} {_along(call)}"

    return Rule("`group_list` is given", test, ("group_list", "group_type"))


def _listed_groups() -> Rule:
    def test(call: Call) -> str | None:
        shape, kind = call.shape("group_list"), number(call, "group_list_type")
        name = call.names["group_list"]
        if len(shape) != (2 if kind == 2 else 1) or (kind == 2 and shape[1] != 2):
            return (
                f"{name} has shape {shape}, must have {'(groups, 2)' if kind == 2 else '(groups,)'}"
            )
        if kind == 2 and _along(call) != ALONG_ROWS:
            return f"{call.names['group_list_type']} is 2, must be 0 or 1 with {call.names['group_type']} 2"
        weights = call.shape("weight")[0]
        if _along(call) == ALONG_ROWS and shape[0] != weights:
            return f"{name} has {shape[0]} groups, {call.names['weight']} {weights}"
        return None

    return Rule(
        "`group_list` has a number, or a pair, for each weight", test, ("group_list", "weight")
    )


def _weight_fits() -> Rule:
    def test(call: Call) -> str | None:
        x, weight = call.shape("x"), call.shape("weight")
        rank = 3 if _along(call) == ALONG_ROWS else 2
        if len(weight) == rank and weight[-2] == x[1]:
            return None
        return f"{call.names['weight']} has shape {weight}, must have {rank} dimensions, and {x[1]} rows"

    return Rule("`weight` is (groups, K, N), or (K, N) with `group_type` 2", test, ("weight", "x"))


def _activation() -> Rule:
    def test(call: Call) -> str | None:
        chosen, name = number(call, "act_type"), call.names["act_type"]
        if chosen not in _ACTIVATIONS:
            return f"{name} is {chosen}, must be 0, 1, 2, 4 or 5"
        if chosen and (not _is_quantised(call) or _out_dtype(call) not in HALVES):
            return f"{name} is {chosen}, must be 0 but for int8 with results of half precision"
        return None

    return Rule(
        "`act_type` is 0, or 1, 2, 4 or 5 of INT8 with results of half precision",
        test,
        ("act_type", "x"),
    )


def _output_dtype() -> Rule:
    among = option_dtype_among("output_dtype", (*FLOATING, BYTE, PACKED))

    def test(call: Call) -> str | None:
        chosen = call.switches["output_dtype"]
        if chosen is None:
            return None
        if message := among.test(call):
            return message
        if chosen == _out_dtype(call) and chosen in _out_dtypes(call):
            return None
        return f"{call.names['output_dtype']} is {call.word(chosen)}, must be {call.words(_out_dtypes(call))}"  # type: ignore[arg-type]

    return Rule(f"{among.text}, and that of `out`", test, ("output_dtype", "out"))


def _weight_dtypes(call: Call) -> tuple[aclDataType, ...]:
    return (BYTE,) if _is_quantised(call) else (call.dtype("x"), BYTE)


def _bias_dtypes(call: Call) -> tuple[aclDataType, ...]:
    if _is_quantised(call):
        return (PACKED, _BRAIN) if _out_dtype(call) == _BRAIN else (PACKED,)
    return (SINGLE,) if call.dtype("x") == _BRAIN else (call.dtype("x"),)


def _out_dtypes(call: Call) -> tuple[aclDataType, ...]:
    return (*HALVES, BYTE, PACKED) if _is_quantised(call) else (call.dtype("x"),)


def _scale_dtypes(call: Call) -> tuple[aclDataType, ...]:
    return {_BRAIN: (_BRAIN,), _HALF: (SINGLE,), BYTE: (BITS, LONG)}.get(_out_dtype(call), ())


def _quantised_operands() -> Rule:
    def test(call: Call) -> str | None:
        given = [role for role in ("scale", "per_token_scale") if role in call.tensors]
        if not _is_quantised(call):
            return (
                f"{call.names[given[0]]} is given, must be null for {call.word(call.dtype('x'))}"
                if given
                else None
            )
        out = _out_dtype(call)
        if out == PACKED and given:
            return f"{call.names[given[0]]} is given, must be null for {call.word(out)}"
        if out != PACKED and "scale" not in given:
            return f"{call.names['scale']} is null, must be given for {call.word(out)}"
        if out == BYTE and "per_token_scale" in given:
            return f"{call.names['per_token_scale']} is given, must be null for {call.word(out)}"
        return (
            f"{call.names['group_type']} is 2, must be 0 for {call.word(BYTE)}"
            if _along(call)
            else None
        )

    return Rule(
        "scales are given as INT8 needs them", test, ("scale", "per_token_scale", "x", "group_type")
    )


def _antiquant_operands() -> Rule:
    def test(call: Call) -> str | None:
        for role in ("antiquant_scale", "antiquant_offset"):
            if (role in call.tensors) != _is_weight_only(call):
                must = "be given" if _is_weight_only(call) else "be null"
                return f"{call.names[role]} must {must} for {call.names['weight']} of this dtype"
        return None

    return Rule(
        "`antiquant_scale` and `antiquant_offset` are given for INT8 weights of a floating `x`",
        test,
    )


def _no_bias_along_k() -> Rule:
    def test(call: Call) -> str | None:
        if "bias" not in call.tensors or _along(call) == ALONG_ROWS:
            return None
        return f"{call.names['bias']} is given, must be null with {call.names['group_type']} 2"

    return Rule("`bias` is null with `group_type` 2", test, ("bias", "group_type"))


def _for_columns(call: Call) -> Shape:
    return call.shape("weight")[0], _sizes(call)[2]


# --- Lowering -------------------------------------------------------------------------------------


def _lower(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    dtype, shape = lowering.results["out"]
    weight = lowering.value("weight")
    operands, present = [lowering.value("x"), weight], []
    groups, n = call.shape("weight")[0], _sizes(call)[2]
    for role, name in (
        ("scale", "scale"),
        ("per_token_scale", "per_token"),
        ("bias", "bias"),
        ("antiquant_scale", "antiquant_scale"),
        ("antiquant_offset", "antiquant_offset"),
    ):
        if not lowering.has(role):
            continue
        present.append(name)
        value = lowering.value(role)
        if call.dtype(role) not in (BITS, LONG, PACKED):
            value = lowering.dense(value, SINGLE)
        operands.append(lowering.reshaped(value, (groups, 1, n)) if "antiquant" in name else value)
    operands.append(lowering.value("group_list"))
    made = lowering.opaque(
        "quantized_product", operands, dtype, shape,
        present=(*present, "groups"), along=1 if _along(call) == ALONG_ROWS else 2,
        list_kind=number(call, "group_list_type"), activation=number(call, "act_type"), clears=True,
    )  # fmt: skip
    return {"out": made}


grouped_matmul = Operator(
    name="grouped_matmul",
    summary="Products of groups of rows with a weight each.",
    expression="group_type 0: out[s:e] = x[s:e] @ weight[g] + bias[g]; 2: out[g] = x[:, s:e] @ weight[s:e]",
    notes=(
        "Groups are listed by their ends, with group_list_type 1 by their sizes, with 2 by pairs of a weight and a size "
        "as far as the first size of 0. They are read when the call runs: one that ends before it begins, or beyond "
        "the rows, ends the run with 161002. Rows of no group are 0. int8: (sums + bias)·scale·per_token_scale, then "
        "act_type (1: relu; 2: gelu by tanh; 4: fast gelu; 5: silu); sums are exact. int8 weights of a floating x: "
        "(weight + antiquant_offset)·antiquant_scale. Other sums are in float32, over K in its order, and rounded once. "
        "PyTorch's adapter has lists of tensors, of which this takes single ones."
    ),
    inputs=(
        "x", "weight", "bias", "scale", "antiquant_scale", "antiquant_offset", "per_token_scale", "group_list",
    ),
    optional=("group_list", "bias", "scale", "antiquant_scale", "antiquant_offset", "per_token_scale"),
    attributes=(
        Attribute("group_type", 0, "int", doc="0: groups of rows; 2: of columns of x."),
        Attribute("group_list_type", 0, "int", doc="How groups are listed: 0 to 2."),
        Attribute("act_type", 0, "int", doc="An activation of what is dequantised."),
        Attribute("output_dtype", None, "dtype", nullable=True, doc="Of the result; default: that of x, float16 for int8."),
    ),
    parameters=("x", "weight"),
    unlike={
        "x": {"shape": (1, 1), "strides": (1, 1)},
        "weight": {"shape": (1, 1, 1), "strides": (1, 1, 1)},
        "group_list": {"shape": (1,), "strides": (1,), "dtype": LONG},
    },
    entries=(),
    rules=(
        dtype_among("x", (*FLOATING, BYTE)),
        _group_type(),
        option_within("group_list_type", 0, 2),
        _activation(),
        has_rank("x", 2),
        has_rank("weight", 2, 3),
        dtype_among_if("weight", _weight_dtypes, "of the dtype of `x`, or INT8"),
        _has_groups(),
        dtype_among("group_list", (LONG,)),
        dtype_among_if("out", _out_dtypes, "of the dtype of `x`; of INT8 FLOAT16, BF16, INT8 or INT32"),
        _output_dtype(),
        dtype_among_if("bias", _bias_dtypes, "of the dtype of `x`, FLOAT for BF16, INT32 for INT8"),
        _quantised_operands(),
        dtype_among_if("scale", _scale_dtypes, "BF16 for results of BF16, FLOAT for FLOAT16, UINT64 or INT64 for INT8"),
        dtype_among("per_token_scale", (SINGLE,)),
        _antiquant_operands(),
        same_dtype("antiquant_scale", "x"),
        same_dtype("antiquant_offset", "x"),
        _no_bias_along_k(),
        _weight_fits(),
        _listed_groups(),
        size_is("bias", _for_columns, "a row for each group"),
        size_is("scale", _for_columns, "a row for each group"),
        size_is("antiquant_scale", _for_columns, "a row for each group"),
        size_is("antiquant_offset", _for_columns, "a row for each group"),
        size_is("per_token_scale", lambda call: call.shape("x")[:1], "an element for each row"),
        has_shape("out", _product_shape, "the shape of the product"),
    ),
    infer=lambda call: {"out": (_out_dtype(call), _product_shape(call))},
    lower=_lower,
    example=(
        "grouped_matmul(np.float32([[1], [2], [3]]), np.float32([[[10]], [[100]]]), group_list=np.int64([1, 3]))",
        "array([[ 10.],\n       [200.],\n       [300.]], dtype=float32)",
    ),
    accuracy="Sums are in float32, rounded once; those of int8 are exact.",
    seealso=("matmul", "quant_matmul", "moe_token_permute"),
)  # fmt: skip
