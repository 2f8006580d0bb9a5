"""Products of quantized matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    Call,
    Rule,
    TensorSpec,
    broadcast_shapes,
    has_shape,
    option_dtype_among,
    rule,
)
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.quantization import (
    BITS,
    BYTE,
    FOUR,
    HALVES,
    LONG,
    NIBBLES,
    PACKED,
    PER_PACK,
    SINGLE,
)
from aclnn.operators.sizes import dtype_among_if, is_absent, number, size_is, together
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
_HALF, _BRAIN = HALVES
_MISSING = "what it is for is not implemented here"


# --- Shapes ---------------------------------------------------------------------------------------


def _matrix(call: Call, role: str) -> Shape:
    """The shape that takes part, in integers where they are packed along the last dimension of x1."""
    shape = call.shape(role)
    if call.switches[f"transpose_{role}"]:
        shape = (*shape[:-2], shape[-1], shape[-2])
    return shape


def _is_packed(call: Call) -> bool:
    """Whether matrices are of integers of four bits, two or eight in an element of memory."""
    return call.dtype("x1") in NIBBLES


def _sizes(call: Call) -> tuple[int, int, int, int]:
    """M, K of the first matrix, K and N of the second, in integers."""
    (m, k), (inner, n) = _matrix(call, "x1")[-2:], _matrix(call, "x2")[-2:]
    if call.dtype("x1") != PACKED:
        return m, k, inner, n
    k *= PER_PACK
    return (m, k, inner, PER_PACK * n) if inner == k else (m, k, PER_PACK * inner, n)


def _batch(call: Call) -> Shape | None:
    return broadcast_shapes(_matrix(call, "x1")[:-2], _matrix(call, "x2")[:-2])


def _product_shape(call: Call) -> Shape:
    batch = _batch(call)
    assert batch is not None, "a rule sees to it that batches broadcast"
    m, _, _, n = _sizes(call)
    shape = (*batch, m, n)
    if not batch and "out" in call.tensors and call.shape("out") == (m, 1, n):
        return m, 1, n
    return shape


# --- Dtypes ---------------------------------------------------------------------------------------


def _out_dtype(call: Call) -> aclDataType:
    if "out" in call.tensors:
        return call.dtype("out")
    chosen = call.switches["output_dtype"]
    return chosen if isinstance(chosen, aclDataType) else BYTE


def _shortens(call: Call) -> bool:
    """Whether a functional form makes bits of the scale first, as PyTorch's adapter does."""
    plain = call.dtype("scale") == SINGLE and "pertoken_scale" not in call.tensors
    return plain and _out_dtype(call) in (_HALF, BYTE)


def _combination(call: Call) -> str | None:
    """Error in the dtypes of scale, bias and rows' operands for an output's, if any."""
    out, scale, role = _out_dtype(call), call.dtype("scale"), call.names
    token, bias = "pertoken_scale" in call.tensors, "bias" in call.tensors
    as_bits = scale in (BITS, LONG) or (not call.c_shaped and _shortens(call))
    allowed: tuple[aclDataType, ...]
    if out == BYTE or (out == _HALF and as_bits):
        allowed = (PACKED,)
        if not as_bits:
            requested = call.words((BITS, LONG))
            return f"{role['scale']} has dtype {call.word(scale)}, must be {requested} for {call.word(out)}"
        if token:
            return f"{role['pertoken_scale']} is given, must be null with such a {role['scale']}"
    elif out == PACKED:
        allowed = (PACKED,)
        if token:
            return f"{role['pertoken_scale']} is given, must be null for {call.word(out)}"
    else:
        allowed = (PACKED, SINGLE, _BRAIN if out == _BRAIN else _HALF)
    if out in (_BRAIN, PACKED) and scale not in (SINGLE, _BRAIN):
        requested = call.words((SINGLE, _BRAIN))
        return f"{role['scale']} has dtype {call.word(scale)}, must be {requested} for {call.word(out)}"
    if out == _HALF and not as_bits and (scale != SINGLE or not token):
        return (
            f"{role['scale']} has dtype {call.word(scale)}: for {call.word(out)} it must be "
            f"{call.word(SINGLE)}, with {role['pertoken_scale']}"
        )
    if bias and call.dtype("bias") not in allowed:
        return (
            f"{role['bias']} has dtype {call.word(call.dtype('bias'))}, must be {call.words(allowed)} for "
            f"{call.word(out)}"
        )
    if "offset" in call.tensors and out != BYTE:
        return f"{role['offset']} is given, must be null for {call.word(out)}"
    if _is_packed(call) and (out in (BYTE, PACKED) or not (as_bits or token)):
        return f"{role['x1']} is of four bits: for {call.word(out)} that needs {role['pertoken_scale']}"
    return None


# --- Rules ----------------------------------------------------------------------------------------


def _output_dtype() -> Rule:
    among = option_dtype_among("output_dtype", (_HALF, BYTE, _BRAIN, PACKED))

    def test(call: Call) -> str | None:
        chosen = call.switches["output_dtype"]
        if chosen is None:
            return None
        if message := among.test(call):
            return message
        if "out" not in call.tensors or call.dtype("out") == chosen:
            return None
        return (
            f"{call.typed('out')}, but "
            f"{call.names['output_dtype']} is {call.word(chosen)}"  # type: ignore[arg-type]
        )

    return Rule(f"{among.text}, and the dtype of `out`", test, ("output_dtype", "out"))


@rule("`x1` of four bits is not transposed, and `x2` has 2 dimensions then")
def _whole_first(call: Call) -> str | None:
    if not _is_packed(call):
        return None
    if call.switches["transpose_x1"]:
        return f"{call.names['transpose_x1']} is true, must be false for {call.names['x1']} of four bits"
    if call.tensors["x1"].pair_axis not in (None, len(call.shape("x1")) - 1):
        return f"{call.names['x1']} is transposed, which it must not be, of four bits"
    if len(call.shape("x2")) != 2:
        return f"{call.ranked('x2')}, of four bits it must have 2"
    return None


@rule("rows of `x1` are as long as columns of `x2`")
def _inner_sizes(call: Call) -> str | None:
    _, k, inner, _ = _sizes(call)
    if k == inner:
        return None
    return f"{call.names['x1']} has rows of {k} integers, {call.names['x2']} columns of {inner}"


@rule("the batches of `x1` and `x2` broadcast")
def _batches(call: Call) -> str | None:
    if _batch(call) is not None:
        return None
    a, b = call.shape("x1"), call.shape("x2")
    return f"batches do not broadcast: {call.names['x1']} {a}, {call.names['x2']} {b}"


@rule("`{role}` has one element, or one for each column")
def _for_columns(call: Call, role: str) -> str | None:
    n = _sizes(call)[3]
    if role not in call.tensors or call.shape(role) in ((1,), (n,)):
        return None
    return f"{call.shaped(role)}, must have (1,) or ({n},)"


@rule("`bias` has one element for each column, or for those of each product")
def _bias_shape(call: Call) -> str | None:
    if "bias" not in call.tensors:
        return None
    n, shape = _sizes(call)[3], call.shape("bias")
    product = _product_shape(call)
    if shape == (n,) or (len(product) == 3 and shape == (product[0], 1, n)):
        return None
    return f"{call.names['bias']} has shape {shape}, must have ({n},), or one such row for each of a batch"


def _not_empty(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in roles:
            if call.tensors[role].size == 0 and (call.soc != "Ascend950" or _sizes(call)[1] == 0):
                return f"{call.names[role]} is empty, of shape {call.shape(role)}"
        return None

    words = " and ".join([f"`{role}`" for role in roles])
    return Rule(f"{words} are not empty, unless on Ascend950 M or N is 0", test, roles)


# --- Lowering -------------------------------------------------------------------------------------


def _integers(lowering: Lowering, role: str, rows: int) -> tuple[int, int | None]:
    """A matrix of so many rows as it is, and the axis along which elements hold several integers."""
    call, value = lowering.call, lowering.value(role)
    rank = len(call.shape(role))
    axis = nibble_axis(call.tensors[role], rank - 1)
    if not call.switches[f"transpose_{role}"]:
        turned = value
    else:
        turned = lowering.builder.transpose(value, (*range(rank - 2), rank - 1, rank - 2))
        if axis is not None:
            axis = 2 * rank - 3 - axis
    if call.dtype(role) == PACKED:  # along the rows, unless that would not be the size
        axis = rank - 1 if _matrix(call, role)[-2] == rows else rank - 2
    return turned, axis


def nibble_axis(spec: TensorSpec, last: int) -> int | None:
    """The axis along which elements in memory hold several integers of four bits, if any does."""
    if spec.dtype not in NIBBLES:
        return None
    return spec.pair_axis if spec.dtype == FOUR else last


def _lower_product(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    dtype, shape = lowering.results["out"]
    m, k, _, n = _sizes(call)
    batch = _batch(call)
    assert batch is not None
    (first, _a_axis), (second, b_axis) = _integers(lowering, "x1", m), _integers(lowering, "x2", k)
    inner = lowering.builder.shape(first)[-1]
    of_second = lowering.builder.shape(second)[-2:]
    shared = math.prod(_matrix(call, "x2")[:-2]) == 1 and (
        "bias" not in call.tensors or len(call.shape("bias")) == 1
    )
    count, rows = (1, math.prod(batch) * m) if shared else (math.prod(batch), m)
    a = lowering.dense(first, None, (*batch, m, inner))
    b = (
        lowering.reshaped(second, of_second)
        if shared
        else lowering.dense(second, None, (*batch, *of_second))
    )
    operands = [
        lowering.reshaped(a, (count, rows, inner)),
        lowering.reshaped(b, (count, *of_second)),
    ]
    present = []
    for role, name in (
        ("scale", "scale"),
        ("pertoken_scale", "per_token"),
        ("offset", "offset"),
        ("bias", "bias"),
    ):
        if not lowering.has(role):
            continue
        present.append(name)
        value = lowering.value(role)
        if call.dtype(role) not in (BITS, LONG, PACKED):
            value = lowering.dense(value, SINGLE)
        if name == "per_token":
            every = lowering.dense(value, None, (*batch, m)) if shared else value
            operands.append(lowering.reshaped(every, (rows,)))
        elif len(call.shape(role)) > 1:
            operands.append(lowering.reshaped(value, (count, n)))
        else:
            operands.append(lowering.builder.broadcast_to(value, (count, n)))
    made = lowering.opaque(
        "quantized_product",
        operands,
        dtype,
        (count, rows, n),
        present=tuple(present),
        shortens=not call.c_shaped and _shortens(call),
        nibbles=nibbles_of(b_axis, len(call.shape("x2"))),
    )
    return {"out": lowering.reshaped(made, shape)}


_SUMS = "Sums of products are exact, in 32 bits."
_DTYPES = (
    "Results are float16 (scale UINT64 or INT64 bits, see trans_quant_param; or FLOAT with pertoken_scale), int8 "
    "(bits), bfloat16 (FLOAT or BF16), or int32, which are the sums. int32 matrices hold eight integers "
    "of four bits in an element; C-shaped functions take INT4, too. The functional form also takes a FLOAT scale for float16 and int8, and makes "
    "bits of it first, so that it loses 13 bits. An offset in the bits counts where `offset` is not given."
)


def _rules(extra: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    return (
        *[is_absent(role, _MISSING) for role in extra],
        *require("x1, x2: 2 to 6 dims; scale, offset, pertoken_scale: 1 dim; x1: INT8 INT32 INT4"),
        *require("x2: dtype of x1; scale: UINT64 INT64 FLOAT BF16; offset, pertoken_scale: FLOAT"),
        *require("bias: INT32 FLOATING; out: FLOAT16 INT8 BF16 INT32"),
        _output_dtype(),
        Rule(
            "dtypes of `scale`, `pertoken_scale`, `offset` and `bias` suit that of `out`",
            _combination,
            ("scale", "pertoken_scale", "offset", "bias", "out"),
        ),
        _whole_first(),
        _inner_sizes(),
        _batches(),
        _for_columns("scale"),
        _for_columns("offset"),
        size_is("pertoken_scale", lambda call: (_sizes(call)[0],), "an element for each row"),
        _bias_shape(),
        has_shape("out", _product_shape, "the shape of the product"),
        *require("x1, x2, out: plain format"),
        _not_empty("x1", "x2"),
    )


_UNLIKE = {
    **specs("x1: INT8[1,8]; x2: INT8[8,1]; scale: UINT64[1]; out: FLOAT16"),
    "output_dtype": _HALF,
}
_TRANSPOSES = tuple(
    [
        Attribute(f"transpose_{role}", False, "bool", doc=f"Whether {role} is transposed.")
        for role in ("x1", "x2")
    ]
)
_OUTPUT_DTYPE = Attribute(
    "output_dtype", None, "dtype", nullable=True, doc="The dtype of the result; default: int8."
)
_FORMULA = "x1 @ x2·scale·pertoken_scale + bias; int8 results: round(x1 @ x2·scale + offset)"

quant_matmul = Operator(
    name="quant_matmul",
    differentiable=False,
    summary="Products of matrices of int8, scaled.",
    expression=_FORMULA,
    notes=f"{_SUMS} {_DTYPES} A bias of INT32 is added to the sums, any other one at the end.",
    inputs=("x1", "x2", "scale", "offset", "pertoken_scale", "bias"),
    optional=("offset", "pertoken_scale", "bias"),
    attributes=(*_TRANSPOSES, _OUTPUT_DTYPE),
    parameters=("x1", "x2", "scale"),
    sample_specs=_UNLIKE,
    entries=(
        entry(
            "aclnnQuantMatmulV4",
            "x1 x2 scale offset:in? pertokenScaleOptional=pertoken_scale:in? bias:in? transposeX1:bool "
            "transposeX2:bool out:out",
        ),
    ),
    rules=_rules(),
    infer=lambda call: {"out": (_out_dtype(call), _product_shape(call))},
    lower=_lower_product,
    example=(
        "quant_matmul(np.int8([[1, 2]]), np.int8([[3], [4]]), np.uint64([70369801142272]), output_dtype='float16')",
        "array([[5.5]], dtype=float16)",
    ),
    accuracy="Sums are exact; what follows is in float32, each operation rounded.",
    seealso=("trans_quant_param", "dynamic_quant", "weight_quant_batchmatmul"),
)


@rule(f"`group_size` is 0: {_MISSING}")
def _plain_groups(call: Call) -> str | None:
    if number(call, "group_size") == 0:
        return None
    return f"{call.chosen('group_size')}, must be 0: {_MISSING}"


_OF_RESULTS = ("y_scale", "y_offset")


@rule("`{role}` is null unless `out` is FLOAT16 or BF16")
def _only_floating(call: Call, role: str) -> str | None:
    if role not in call.tensors or _out_dtype(call) in HALVES:
        return None
    return (
        f"{call.names[role]} is given, must be null for a result of dtype "
        f"{call.word(_out_dtype(call))}"
    )


@rule("`{role}` has one element, or one for each column")
def _row_of_columns(call: Call, role: str) -> str | None:
    n = _sizes(call)[3]
    if role not in call.tensors or call.shape(role) in ((1,), (n,), (1, 1), (1, n)):
        return None
    return f"{call.shaped(role)}, must have (1,), ({n},) or (1, {n})"


def _lower_product_of_v5(lowering: Lowering) -> Mapping[str, int]:
    """With a scale or an offset of results: sums, and all that follows in float32."""
    if not any(map(lowering.has, _OF_RESULTS)):
        return _lower_product(lowering)
    call, builder = lowering.call, lowering.builder
    dtype, shape = lowering.results["out"]
    m, k, _, n = _sizes(call)
    batch = _batch(call)
    assert batch is not None
    (first, _), (second, axis) = _integers(lowering, "x1", m), _integers(lowering, "x2", k)
    a, b = (
        lowering.reshaped(lowering.dense(value, None, (*batch, *sizes)), (math.prod(batch), *sizes))
        for value in (first, second)
        for sizes in [builder.shape(value)[-2:]]
    )
    # Sums are not scaled, but the kernel has a scale.
    one = lowering.filled(1.0, SINGLE, (math.prod(batch), n))
    found = (*batch, m, n)
    sums = lowering.opaque(
        "quantized_product", [a, b, one], PACKED, (math.prod(batch), m, n), present=("scale",),
        nibbles=nibbles_of(axis, len(call.shape("x2"))),
    )  # fmt: skip
    value = lowering.reshaped(sums, found)
    if lowering.has("bias") and call.dtype("bias") == PACKED:
        value = lowering.point(
            "add", [value, _spread(lowering, "bias", found)], PACKED, found, params=(1,)
        )
    value = builder.cast(value, graph_dtype(SINGLE))
    for role, formula in (
        ("scale", "mul"),
        ("y_offset", "add"),
        ("pertoken_scale", "mul"),
        ("bias", "add"),
        ("y_scale", "mul"),
    ):
        if lowering.has(role) and call.dtype(role) != PACKED:
            operands = [value, _spread(lowering, role, found)]
            params = (1.0,) if formula == "add" else ()
            value = lowering.point(formula, operands, SINGLE, found, params=params)
    return {"out": lowering.reshaped(builder.cast(value, graph_dtype(dtype)), shape)}


def _spread(lowering: Lowering, role: str, shape: Shape) -> int:
    """An operand for columns, rows or all of a product, as float32 or int32 in its shape."""
    call, own = lowering.call, lowering.call.shape(role)
    if call.dtype(role) in (BITS, LONG):
        flat = lowering.reshaped(role, (math.prod(own),))
        value = lowering.opaque("scale_of_bits", [flat], SINGLE, (math.prod(own),))
        value = lowering.reshaped(value, own)
    else:
        value = lowering.dense(role, None if call.dtype(role) == PACKED else SINGLE)
    if role == "pertoken_scale":
        value = lowering.reshaped(value, (*own, 1))
    return lowering.dense(value, None, shape)


quant_matmul_v5 = Operator(
    name="quant_matmul_v5",
    functional=False,
    form_of="quant_matmul",
    summary="Products of matrices of int8, scaled.",
    expression="((x1 @ x2·scale + y_offset)·pertoken_scale + bias)·y_scale; int8 results: round(x1 @ x2·scale + offset)",
    notes=(
        f"{_SUMS} {_DTYPES} A y_offset is added before pertoken_scale, a y_scale multiplies results at the end, "
        "where these are float16 or bfloat16. x1_offset and groups are refused."
    ),
    inputs=(
        "x1",
        "x2",
        "pertoken_scale",
        "scale",
        "y_scale",
        "x1_offset",
        "offset",
        "y_offset",
        "bias",
    ),
    optional=("pertoken_scale", "y_scale", "x1_offset", "offset", "y_offset", "bias"),
    attributes=(
        *_TRANSPOSES,
        _OUTPUT_DTYPE,
        Attribute("group_size", 0, "int", doc="Must be 0."),
    ),
    sample_specs=_UNLIKE,
    entries=(
        entry(
            "aclnnQuantMatmulV5",
            "x1 x2 x1Scale=pertoken_scale:in? x2Scale=scale yScale=y_scale:in? x1Offset=x1_offset:in? "
            "x2Offset=offset:in? yOffset=y_offset:in? bias:in? transposeX1:bool transposeX2:bool "
            "groupSize:int out:out",
        ),
    ),
    rules=(
        *_rules(("x1_offset",)),
        *require("y_scale: UINT64 INT64 FLOAT; y_offset: FLOAT"),
        *map(_only_floating, _OF_RESULTS),
        *map(_row_of_columns, _OF_RESULTS),
        _plain_groups(),
    ),
    infer=lambda call: {"out": (_out_dtype(call), _product_shape(call))},
    lower=_lower_product_of_v5,
    example=(
        "quant_matmul_v5(np.int8([[1, 2]]), np.int8([[3], [4]]), None, np.uint64([70369801142272]), "
        "output_dtype='float16')",
        "array([[5.5]], dtype=float16)",
    ),
    accuracy="Sums are exact; what follows is in float32, each operation rounded.",
)


# --- Weights that are quantized -------------------------------------------------------------------


def _weight_shape(call: Call) -> Shape:
    """K and N, of packed integers by the rows of x."""
    first, last = call.shape("weight")
    if call.dtype("weight") != PACKED:
        return first, last
    k = call.shape("x")[1]
    return (first, PER_PACK * last) if first == k else (PER_PACK * first, last)


def _scales_shape(call: Call, role: str) -> Shape | None:
    """Groups and columns of scales, None where they do not fit."""
    (k, n), shape = _weight_shape(call), call.shape(role)
    size = number(call, "antiquant_group_size")
    if size:
        return shape if shape == (-(-k // size), n) else None
    if shape in ((1,), (1, 1)):
        return 1, 1
    return (1, n) if shape in ((n,), (1, n)) else None


def nibbles_of(axis: int | None, rank: int) -> str | None:
    """The name of an axis of a second matrix, as products take it: k or n."""
    return None if axis is None else ("n" if axis == rank - 1 else "k")


@rule("`{role}` has one element, one for each column, or for each group")
def _weight_scales(call: Call, role: str) -> str | None:
    if role not in call.tensors or _scales_shape(call, role) is not None:
        return None
    return (
        f"{call.shaped(role)}, which does not fit "
        f"{call.names['weight']} of {_weight_shape(call)} and {call.names['antiquant_group_size']} "
        f"{number(call, 'antiquant_group_size')}"
    )


@rule("`antiquant_group_size` is 0, or a multiple of 32 less than K", "")
def _group_size(call: Call) -> str | None:
    size, k = number(call, "antiquant_group_size"), _weight_shape(call)[0]
    if size == 0 or (size % 32 == 0 and 32 <= size <= k - 1):
        return None
    name = call.names["antiquant_group_size"]
    return f"{name} is {size}, must be 0, or a multiple of 32 from 32 to {k - 1}"


@rule("rows of `x` are as long as columns of `weight`")
def _weight_sizes(call: Call) -> str | None:
    k, inner = call.shape("x")[1], _weight_shape(call)[0]
    if k == inner:
        return None
    return f"{call.names['x']} has rows of {k} elements, {call.names['weight']} columns of {inner}"


@rule("`bias` has an element for each column")
def _bias_columns(call: Call) -> str | None:
    n = _weight_shape(call)[1]
    if "bias" not in call.tensors or call.shape("bias") in ((n,), (1, n)):
        return None
    return f"{call.shaped('bias')}, must have ({n},) or (1, {n})"


def _full(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in roles:
            if call.tensors[role].size == 0:
                return f"{call.names[role]} is empty, of shape {call.shape(role)}"
        return None

    return Rule(" and ".join([f"`{role}`" for role in roles]) + " are not empty", test, roles)


def _lower_weight_product(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    dtype, shape = lowering.results["out"]
    k, n = _weight_shape(call)
    axis = nibble_axis(call.tensors["weight"], 1 if call.shape("weight")[0] == k else 0)
    operands = [lowering.value("x"), lowering.value("weight")]
    present = []
    if lowering.has("bias"):
        present.append("bias")
        flat = lowering.reshaped(lowering.dense("bias", SINGLE), (1, n))
        operands.append(flat)
    for role in ("antiquant_scale", "antiquant_offset"):
        if not lowering.has(role):
            continue
        present.append(role)
        found = _scales_shape(call, role)
        assert found is not None
        groups = max(found[0], 1)
        spread = lowering.reshaped(lowering.dense(role, SINGLE), (1, *found))
        operands.append(lowering.builder.broadcast_to(spread, (1, groups, n)))
    made = lowering.opaque(
        "quantized_product", operands, dtype, shape,
        present=tuple(present), group_size=number(call, "antiquant_group_size"),
        nibbles=nibbles_of(axis, 2),
    )  # fmt: skip
    return {"out": made}


def _bias_dtype(call: Call) -> tuple[aclDataType, ...]:
    return (SINGLE,) if call.dtype("x") == _BRAIN else (_HALF,)


weight_quant_batchmatmul = Operator(
    name="weight_quant_batchmatmul",
    differentiable=False,
    summary="Products with a quantized weight.",
    expression="y = x @ ((weight + antiquant_offset)·antiquant_scale) + bias",
    notes=(
        "Scales are for the tensor, for columns, or for groups of `antiquant_group_size` rows. The weight in "
        "float32 is multiplied, without rounding it first; sums are in float32, over K in its order, and "
        "rounded once. int32 weights hold eight integers of four bits in an element; C-shaped functions take INT4, "
        "too."
    ),
    inputs=(
        "x", "weight", "antiquant_scale", "antiquant_offset", "quant_scale", "quant_offset", "bias",
    ),
    optional=("antiquant_offset", "quant_scale", "quant_offset", "bias"),
    attributes=(
        argument("antiquant_group_size", 0, "int", "Rows of the weight that share scales; 0: all."),
    ),
    sample_specs=specs("x: [1,8]; weight: INT8[8,1]; antiquant_scale: [1]"),
    entries=(
        entry(
            "aclnnWeightQuantBatchMatmulV2",
            "x weight antiquantScale antiquantOffsetOptional=antiquant_offset:in? "
            "quantScaleOptional=quant_scale:in? quantOffsetOptional=quant_offset:in? biasOptional=bias:in? "
            "antiquantGroupSize:int y:out",
        ),
        entry(
            "aclnnWeightQuantBatchMatmulV3",
            "x weight antiquantScale antiquantOffsetOptional=antiquant_offset:in? "
            "quantScaleOptional=quant_scale:in? quantOffsetOptional=quant_offset:in? biasOptional=bias:in? "
            "antiquantGroupSize:int innerPrecise:ignored y:out",
        ),
    ),
    rules=(
        *require("x: FLOAT16 BF16; weight: INT8 INT32 INT4; antiquant_scale, out: dtype of x"),
        *require("x, weight: 2 dims; antiquant_offset: dtype of x"),
        dtype_among_if("bias", _bias_dtype, "FLOAT16, or FLOAT where `x` is BF16"),
        *require("x, weight, out: plain format"),
        *require("antiquant_scale, antiquant_offset, bias: 1 to 2 dims; quant_scale: UINT64 INT64"),
        *require("quant_offset: FLOAT"),
        together("quant_offset", "quant_scale"),
        is_absent("quant_scale", _MISSING),
        _full("x", "weight"),
        _weight_sizes(),
        _group_size(),
        _weight_scales("antiquant_scale"),
        _weight_scales("antiquant_offset"),
        _bias_columns(),
        has_shape("out", lambda call: (call.shape("x")[0], _weight_shape(call)[1]), "the shape of the product"),
    ),
    lower=_lower_weight_product,
    example=(
        "weight_quant_batchmatmul(np.float16([[1, 2]]), np.int8([[3], [4]]), np.float16([0.5]))",
        "array([[5.5]], dtype=float16)",
    ),
    accuracy="Sums are in float32, rounded once.",
    seealso=("quant_matmul",),
)  # fmt: skip
