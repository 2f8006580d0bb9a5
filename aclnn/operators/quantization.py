"""Quantization: of elements with given scales, of rows with their own, and scales as bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    Call,
    Rule,
    dtype_among,
    has_shape,
    option_dtype_among,
    rule,
    switch_among,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.sizes import has_elements_in_rows, number, size_is, together
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

SINGLE, BYTE, PACKED = aclDataType.ACL_FLOAT, aclDataType.ACL_INT8, aclDataType.ACL_INT32
FOUR = aclDataType.ACL_INT4
LONG, BITS = aclDataType.ACL_INT64, aclDataType.ACL_UINT64
HALVES = (aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
PER_PACK, PER_BYTE = 8, 2
_UNSIGNED = aclDataType.ACL_UINT8
# Dtypes of integers of four bits: as such, which graphs know as pairs of UINT8, or eight in an INT32.
NIBBLES = {FOUR: (_UNSIGNED, PER_BYTE), PACKED: (PACKED, PER_PACK)}
ROUNDED = "Computed in float32, rounded to the nearest, ties to even, and saturated; a NaN gives 0."
_PACKING = "int32 results hold eight integers of four bits each, the first in the lowest bits."
_ACCURACY = "The formula in float32, each operation rounded."


# --- Shapes and nodes -----------------------------------------------------------------------------


def packed_shape(shape: Shape) -> Shape:
    """The shape of integers of four bits, eight in an element."""
    return (*shape[:-1], shape[-1] // PER_PACK)


def shape_in_graph(dtype: aclDataType, shape: Shape) -> Shape:
    """The shape that a graph has of a result of a dtype, which may hold several integers in an element."""
    return (*shape[:-1], shape[-1] // NIBBLES[dtype][1]) if dtype in NIBBLES else shape


def quantized_shape(role: str, dtype: Callable[[Call], aclDataType]) -> Callable[[Call], Shape]:
    """The shape of an input, packed where the dtype says so."""

    def shape(call: Call) -> Shape:
        own = call.shape(role)
        return packed_shape(own) if dtype(call) == PACKED else own

    return shape


def packs_evenly(role: str, dtype: Callable[[Call], aclDataType]) -> Rule:
    def test(call: Call) -> str | None:
        size, kind = call.shape(role)[-1], dtype(call)
        if kind not in NIBBLES or size % NIBBLES[kind][1] == 0:
            return None
        each = NIBBLES[kind][1]
        holds = f"{call.word(PACKED)} results hold" if kind == PACKED else "a byte holds"
        return (
            f"{call.names[role]} has the last size {size}, which {each} does not divide: "
            f"{holds} {each} integers{' each' if kind == PACKED else ''}"
        )

    return Rule(
        f"{PER_PACK} divides the last size of `{role}` where results are packed, {PER_BYTE} of INT4",
        test,
        (role,),
    )


def as_matrix(lowering: Lowering, value: int | str, shape: Shape) -> int:
    """A value as rows of its last dimension."""
    return lowering.reshaped(value, (math.prod(shape[:-1]), shape[-1]))


def packed(lowering: Lowering, value: int, dtype: aclDataType, rows: int, size: int) -> int:
    """Rows of int8, or of integers of four bits, two or eight in an element."""
    if dtype not in NIBBLES:
        return value
    kind, each = NIBBLES[dtype]
    return lowering.opaque("pack4", [value], kind, (rows, size // each))


def quantized(
    lowering: Lowering,
    operands: list[int],
    dtype: aclDataType,
    shape: Shape,
    *,
    divides: bool = False,
    twice: bool = False,
    rounding: int = 0,
    packs: bool = True,
) -> int:
    """Elements times scales, or divided by them, plus offsets, as integers: all in one shape.

    `packs`: whether int32 ones hold eight integers of four bits.
    """
    packs &= dtype in NIBBLES
    made = lowering.opaque(
        "quantize", operands, BYTE if packs else dtype, shape,
        divides=divides, twice=twice, rounding=rounding, bits=4 if packs else 8,
    )  # fmt: skip
    if not packs:
        return made
    rows = as_matrix(lowering, made, shape)
    folded = packed(lowering, rows, dtype, math.prod(shape[:-1]), shape[-1])
    return lowering.reshaped(folded, shape_in_graph(dtype, shape))


def dynamic(
    lowering: Lowering,
    operands: list[int],
    shape: Shape,
    dtype: aclDataType,
    *,
    offset: bool = False,
) -> list[int]:
    """Rows quantized with their own scales: the integers, scales, and offsets, in the shapes of results."""
    *lead, size = shape
    rows = math.prod(lead)
    statistics = [(SINGLE, (rows,))] * (2 if offset else 1)
    bits = 4 if dtype in NIBBLES else 8
    made = lowering.opaque_all(
        "dynamic_quant", operands, [(BYTE, (rows, size)), *statistics], bits=bits
    )
    first = packed(lowering, made[0], dtype, rows, size)
    return [
        lowering.reshaped(first, shape_in_graph(dtype, shape)),
        *[lowering.reshaped(one, tuple(lead)) for one in made[1:]],
    ]


# --- Rows with scales of their own ----------------------------------------------------------------


def _dynamic_dtype(call: Call) -> aclDataType:
    if "y" in call.tensors:
        return call.dtype("y")
    chosen = call.switches.get("dst_type")
    return chosen if isinstance(chosen, aclDataType) else BYTE


def _rows(call: Call) -> Shape:
    return call.shape("input")[:-1]


def _smooth_shape(call: Call) -> Shape:
    last = call.shape("input")[-1:]
    return (*call.shape("group_index"), *last) if "group_index" in call.tensors else last


def _integer_dtype(option: str, *more: aclDataType) -> Rule:
    among = option_dtype_among(option, (BYTE, PACKED, *more))

    def test(call: Call) -> str | None:
        chosen = call.switches[option]
        if chosen is None or (chosen == FOUR and call.c_shaped):
            return None
        return among.test(call)

    return Rule(f"{among.text}; INT4 in C-shaped calls", test, (option,))


def _chosen_dtype() -> Rule:
    among = _integer_dtype("dst_type")

    def test(call: Call) -> str | None:
        chosen = call.switches["dst_type"]
        if chosen is None or call.c_shaped:
            return None
        if message := among.test(call):
            return message
        if "y" not in call.tensors or call.dtype("y") == chosen:
            return None
        name, asked = call.names["y"], call.names["dst_type"]
        return f"{name} has dtype {call.word(call.dtype('y'))}, but {asked} is {call.word(chosen)}"  # type: ignore[arg-type]

    return Rule("`dst_type` is INT8 or INT32, and that of `y`", test, ("dst_type", "y"))


def _lower_dynamic(lowering: Lowering) -> Mapping[str, int]:
    call, shape = lowering.call, lowering.call.shape("input")
    operands = [as_matrix(lowering, "input", shape)]
    if lowering.has("smooth_scales"):
        smooth = lowering.dense("smooth_scales", SINGLE)
        groups = call.shape("group_index")[0] if lowering.has("group_index") else 1
        operands.append(lowering.reshaped(smooth, (groups, shape[-1])))
    if lowering.has("group_index"):
        operands.append(lowering.value("group_index"))
    requested = lowering.wants("offset")
    made = dynamic(lowering, operands, shape, lowering.results["y"][0], offset=requested)
    return dict(zip(("y", "scale", "offset"), made, strict=False))


_SMOOTH = "x = input·smooth_scales"
_GROUPS = (
    "With `group_index`, which has the ends of groups of rows, ascending, each row takes the smooth scales of "
    "its group; a row that none has ends the run with 161002."
)


def _dynamic_rules(*outputs: str) -> tuple[Rule, ...]:
    return (
        _chosen_dtype(),
        *require("input, smooth_scales: FLOAT16 BF16; smooth_scales: dtype of input"),
        *require("group_index: INT32 INT64; y: INT8 INT32 INT4"),
        *[dtype_among(role, (SINGLE,)) for role in outputs],
        together("group_index", "smooth_scales"),
        *require("input: 2 to 8 dims"),
        has_elements_in_rows("input"),
        *require("group_index: 1 dim"),
        size_is(
            "smooth_scales",
            _smooth_shape,
            "the last size of `input`, with groups one such row each",
        ),
        packs_evenly("input", _dynamic_dtype),
        has_shape("y", quantized_shape("input", _dynamic_dtype), "the shape of `input`, packed"),
        *[has_shape(role, _rows, "the shape of `input` without its last") for role in outputs],
    )


_UNLIKE = specs("input: [1,8]; y: INT8; scale, offset: FLOAT")
_DST_TYPE = Attribute(
    "dst_type", None, "dtype", nullable=True, doc="int8, the default, or int32, packed."
)

dynamic_quant = Operator(
    name="dynamic_quant",
    summary="Rows as integers, with a scale for each.",
    expression=f"y = round(x / scale), scale = max |x| / 127, {_SMOOTH}",
    notes=f"{ROUNDED} A row of zeros has scale 0. {_PACKING} There 7 stands for 127. {_GROUPS}",
    inputs=("input", "smooth_scales", "group_index"),
    optional=("smooth_scales", "group_index"),
    outputs=("y", "scale"),
    attributes=(_DST_TYPE,),
    parameters=("input",),
    sample_specs=_UNLIKE,
    entries=(
        entry(
            "aclnnDynamicQuant",
            "x=input smoothScalesOptional=smooth_scales:in? yOut=y:out scaleOut=scale:out",
        ),
    ),
    rules=_dynamic_rules("scale"),
    infer=lambda call: {
        "y": (_dynamic_dtype(call), quantized_shape("input", _dynamic_dtype)(call)),
        "scale": (SINGLE, _rows(call)),
    },
    lower=_lower_dynamic,
    example=(
        "dynamic_quant(np.float16([[127, -2.5], [0, 0]]))",
        "(array([[127,  -2],\n       [  0,   0]], dtype=int8), array([1., 0.], dtype=float32))",
    ),
    accuracy=_ACCURACY,
    seealso=("dynamic_quant_asymmetric", "quant_matmul"),
)


def _infer_asymmetric(call: Call) -> Inferred:
    found = {
        "y": (_dynamic_dtype(call), quantized_shape("input", _dynamic_dtype)(call)),
        "scale": (SINGLE, _rows(call)),
    }
    if call.makes_absent or "offset" in call.tensors:
        found["offset"] = (SINGLE, _rows(call))
    return found


dynamic_quant_asymmetric = Operator(
    name="dynamic_quant_asymmetric",
    summary="Rows as integers, with a scale and an offset for each.",
    expression=(
        "y = round(x / scale + offset), scale = max((max x - min x) / 255, 1e-12), "
        f"offset = 127 - max x / scale, {_SMOOTH}"
    ),
    notes=(
        f"{ROUNDED} {_PACKING} There 15 stands for 255, 7 for 127. Without offset, a C-shaped call is "
        f"dynamic_quant. {_GROUPS}"
    ),
    inputs=("input", "smooth_scales", "group_index"),
    optional=("smooth_scales", "group_index", "offset"),
    outputs=("y", "scale", "offset"),
    attributes=(_DST_TYPE,),
    parameters=("input",),
    sample_specs=_UNLIKE,
    entries=(
        entry(
            "aclnnDynamicQuantV2",
            "x=input smoothScalesOptional=smooth_scales:in? groupIndexOptional=group_index:in? "
            "dstType=dst_type:dtype yOut=y:out scaleOut=scale:out offsetOut=offset:out?",
        ),
    ),
    rules=_dynamic_rules("scale", "offset"),
    infer=_infer_asymmetric,
    lower=_lower_dynamic,
    example=(
        "dynamic_quant_asymmetric(np.float16([[0, 255]]))",
        "(array([[-128,  127]], dtype=int8), array([1.], dtype=float32), array([-128.], dtype=float32))",
    ),
    accuracy=_ACCURACY,
    seealso=("dynamic_quant",),
)


# --- Elements with scales that are given ----------------------------------------------------------

ROUND_MODES = ("round", "floor", "ceil", "trunc")


def _quant_dtype(call: Call) -> aclDataType:
    if "out" in call.tensors:
        return call.dtype("out")
    chosen = call.switches.get("dst_type", call.switches.get("dtype"))
    return chosen if isinstance(chosen, aclDataType) else BYTE


@rule("`scale` has the dtype of `x`, or any where that is FLOAT")
def _scale_fits_x(call: Call) -> str | None:
    x, scale = call.dtype("x"), call.dtype("scale")
    if x in (SINGLE, scale):
        return None
    return (
        f"{call.names['scale']} has dtype {call.word(scale)}, must have that of {call.names['x']}, "
        f"{call.word(x)}"
    )


@rule("`{option}` is the dtype of `{role}`")
def _is_dtype_of(call: Call, option: str, role: str) -> str | None:
    chosen = call.switches[option]
    if chosen is None or role not in call.tensors or call.dtype(role) == chosen:
        return None
    return (
        f"{call.names[option]} is {call.word(chosen)}, but {call.names[role]} has dtype "  # type: ignore[arg-type]
        f"{call.word(call.dtype(role))}"
    )


@rule("`axis` is one of the last two dimensions of `x`")
def _one_of_last_two(call: Call) -> str | None:
    axis, rank = number(call, "axis"), len(call.shape("x"))
    least = rank - 2 if rank > 2 else 0
    if -rank <= axis < rank and axis % rank >= least:
        return None
    return (
        f"{call.names['axis']} is {axis}, must be one of the last two dimensions of "
        f"{call.names['x']} of shape {call.shape('x')}"
    )


def _spread_scale(call: Call, role: str) -> Shape | None:
    """The shape in which a scale broadcasts to x, None where it does not."""
    x, scale = call.shape("x"), call.shape(role)
    axis = number(call, "axis") % len(x)
    along = tuple([x[axis] if n == axis else 1 for n in range(len(x))])
    if scale in ((x[axis],), along):
        return along
    return (1,) * len(x) if math.prod(scale) == 1 and len(scale) in (1, len(x)) else None


@rule("`{role}` has one element, or those of `x` along `axis`")
def _scale_fits(call: Call, role: str) -> str | None:
    if role not in call.tensors or _spread_scale(call, role) is not None:
        return None
    return (
        f"{call.shaped(role)}, must have one element, or as many as "
        f"{call.names['x']} of shape {call.shape('x')} along {call.names['axis']} {number(call, 'axis')}"
    )


def _spread(lowering: Lowering, role: str) -> int:
    along = _spread_scale(lowering.call, role)
    assert along is not None, "a rule sees to it that the scale fits"
    return lowering.dense(
        lowering.reshaped(lowering.dense(role, SINGLE), along), None, lowering.call.shape("x")
    )


def _lower_quant(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    roles = [role for role in ("scale", "offset") if lowering.has(role)]
    operands = [lowering.value("x"), *[_spread(lowering, role) for role in roles]]
    made = quantized(
        lowering,
        operands,
        lowering.results["out"][0],
        call.shape("x"),
        twice=bool(call.switches["sqrt_mode"]),
        rounding=ROUND_MODES.index(str(call.switches["round_mode"])),
    )
    return {"out": made}


ascend_quant = Operator(
    name="ascend_quant",
    summary="Elements as integers, by scales that multiply them.",
    expression="y = round(x·scale + offset); with sqrt_mode round(x·scale·scale + offset)",
    notes=f"{ROUNDED} The mode of rounding may be another one. {_PACKING}",
    inputs=("x", "scale", "offset"),
    optional=("offset",),
    attributes=(
        Attribute("sqrt_mode", False, "bool", doc="Whether to multiply by the scale twice."),
        Attribute("round_mode", "round", "str", doc="How to round.", choices=ROUND_MODES),
        Attribute(
            "dst_type", None, "dtype", nullable=True, doc="int8, the default, or int32, packed."
        ),
        Attribute("axis", -1, "int", doc="The dimension that scales are along."),
    ),
    sample_specs=specs("x: [1,8]; scale: [1]; out: INT8"),
    entries=(
        entry(
            "aclnnAscendQuantV3",
            "x scale offset:in? sqrtMode:bool roundMode:str dstType:dtype axis:int y:out",
        ),
        entry(
            "aclnnAscendQuant",
            "x scale offset:in? sqrtMode:bool roundMode:str dstType:dtype y:out",
            axis=-1,
        ),
    ),
    rules=(
        *require("x: 1 to 8 dims; x: FLOATING; out: INT8 INT32 INT4; scale, offset: FLOATING"),
        *require("offset: dtype of scale"),
        _scale_fits_x(),
        _integer_dtype("dst_type"),
        _is_dtype_of("dst_type", "out"),
        _one_of_last_two(),
        packs_evenly("x", _quant_dtype),
        has_shape("out", quantized_shape("x", _quant_dtype), "the shape of `x`, packed"),
        _scale_fits("offset"),
        _scale_fits("scale"),
        switch_among("round_mode", ROUND_MODES),
    ),
    infer=lambda call: {"out": (_quant_dtype(call), quantized_shape("x", _quant_dtype)(call))},
    lower=_lower_quant,
    example=(
        "ascend_quant(np.float32([1, 2.5, -300]), np.float32([2]))",
        "array([   2,    5, -128], dtype=int8)",
    ),
    accuracy=_ACCURACY,
    seealso=("quantize", "dynamic_quant"),
)


def _axis_of_scales(call: Call) -> int:
    """Axis of scales: where they multiply, the last dimension, whatever the axis."""
    rank = len(call.shape("input"))
    return number(call, "axis") % rank if call.switches["div_mode"] else rank - 1


@rule("`axis` is a dimension of `input`, with `div_mode`", "axis", "input")
def _axis_of_input(call: Call) -> str | None:
    axis, rank = number(call, "axis"), len(call.shape("input"))
    if not call.switches["div_mode"] or -rank <= axis < rank:
        return None
    return f"{call.names['axis']} is {axis}, must be from {-rank} to {rank - 1}"


@rule("`{role}` has one element, or those of `input` along `axis`", "{role}")
def _along_axis(call: Call, role: str) -> str | None:
    if role not in call.tensors:
        return None
    size = call.shape("input")[_axis_of_scales(call)]
    if call.shape(role) in ((size,), (1,)):
        return None
    return f"{call.shaped(role)}, must have ({size},) or (1,)"


def _lower_quantize(lowering: Lowering) -> Mapping[str, int]:
    call, shape = lowering.call, lowering.call.shape("input")
    axis = _axis_of_scales(call)
    operands = [lowering.value("input")]
    for role in ("scales", "zero_points"):
        if lowering.has(role):
            size = call.shape(role)[0]
            along = tuple([size if n == axis else 1 for n in range(len(shape))])
            spread = lowering.reshaped(lowering.dense(role, SINGLE), along)
            operands.append(lowering.dense(spread, None, shape))
    dtype, divides = lowering.results["out"][0], bool(call.switches["div_mode"])
    return {"out": quantized(lowering, operands, dtype, shape, divides=divides, packs=not divides)}


def _folded_dtype(call: Call) -> aclDataType:
    """The dtype of results as their shape sees it: where scales divide, int32 is no packing."""
    return BYTE if call.switches["div_mode"] else _quant_dtype(call)


@rule("`dtype` is UINT8 only with `div_mode`")
def _has_range(call: Call) -> str | None:
    if call.switches["div_mode"] or _quant_dtype(call) != _UNSIGNED:
        return None
    return f"{call.names['dtype']} is {call.word(_UNSIGNED)}, must be {call.words((BYTE, PACKED))} without div_mode"


quantize = Operator(
    name="quantize",
    summary="Elements as integers, by scales that divide or multiply them.",
    expression="y = round(input / scales + zero_points); without div_mode round(input·scales + zero_points)",
    notes=(
        f"{ROUNDED} Without `div_mode` scales are along the last dimension, and int32 results hold eight integers of "
        "four bits each, the first in the lowest bits. With it int32 results are integers of 32 bits."
    ),
    inputs=("input", "scales", "zero_points"),
    optional=("zero_points",),
    attributes=(
        argument("dtype", REQUIRED, "dtype", "int8, uint8 or int32."),
        argument("axis", 1, "int", "The dimension that scales are along."),
        argument("div_mode", True, "bool", "Whether scales divide."),
    ),
    sample_specs={**specs("input: [1,8]; scales: [1]; out: INT8"), "dtype": BYTE},
    entries=(
        entry(
            "aclnnQuantize",
            "x=input scales zeroPoints=zero_points:in? dtype:dtype axis:int out:out",
            div_mode=True,
        ),
    ),
    rules=(
        *require("input: 1 to 8 dims; input, scales: FLOATING"),
        *require("zero_points: FLOATING INT32 INT8 UINT8; out: INT8 UINT8 INT32"),
        _integer_dtype("dtype", _UNSIGNED),
        _is_dtype_of("dtype", "out"),
        _has_range(),
        _axis_of_input(),
        _along_axis("scales"),
        _along_axis("zero_points"),
        packs_evenly("input", _folded_dtype),
        has_shape("out", quantized_shape("input", _folded_dtype), "the shape of `input`, packed"),
    ),
    infer=lambda call: {"out": (_quant_dtype(call), quantized_shape("input", _folded_dtype)(call))},
    lower=_lower_quantize,
    example=(
        "quantize(np.float32([[1, 2.5]]), np.float32([0.5]), np.float32([1]), 'int8')",
        "array([[3, 6]], dtype=int8)",
    ),
    accuracy=_ACCURACY,
    seealso=("ascend_quant",),
)


# --- Scales as bits -------------------------------------------------------------------------------


def _param_shape(call: Call) -> Shape:
    shapes = [call.shape(role) for role in ("scale", "offset") if role in call.tensors]
    return max(shapes, key=math.prod)


@rule("`offset` has the shape of `scale`, or one of them has one element", "offset")
def _offset_fits(call: Call) -> str | None:
    if "offset" not in call.tensors:
        return None
    scale, offset = call.shape("scale"), call.shape("offset")
    if scale == offset or 1 in (math.prod(scale), math.prod(offset)):
        return None
    return f"{call.names['offset']} has shape {offset}, must have {scale}, or one element"


def _lower_params(lowering: Lowering) -> Mapping[str, int]:
    shape = _param_shape(lowering.call)
    size = math.prod(shape)
    roles = [role for role in ("scale", "offset") if lowering.has(role)]
    operands = []
    for role in roles:
        flat = lowering.reshaped(role, (lowering.call.tensors[role].size,))
        operands.append(lowering.dense(flat, None, (size,)))
    made = lowering.opaque("scale_bits", operands, BITS, (size,))
    return {"out": lowering.reshaped(made, shape)}


trans_quant_param = Operator(
    name="trans_quant_param",
    summary="Scales, and offsets, as the bits that quantized products take.",
    expression="bits 13 to 31: those of scale; 37 to 45: offset, rounded, from -256 to 255; 46: 1",
    notes="Scales lose their 13 lowest bits.",
    inputs=("scale", "offset"),
    optional=("offset",),
    sample_specs=specs("scale: [1]; out: UINT64"),
    entries=(entry("aclnnTransQuantParamV2", "scale offset:in? out:out"),),
    rules=(
        *require("scale, offset: FLOAT; out: UINT64; scale, offset: 1 to 2 dims"),
        _offset_fits(),
        has_shape("out", _param_shape, "the shape of `scale`, or that of `offset`"),
    ),
    lower=_lower_params,
    example=("trans_quant_param(np.float32([1]))", "array([70369809530880], dtype=uint64)"),
    accuracy="Results are exact.",
    seealso=("quant_matmul",),
)


# --- Weights of four bits -------------------------------------------------------------------------


def _pack_dtype(call: Call) -> aclDataType:
    return call.dtype("out") if "out" in call.tensors else PACKED


def _lower_pack(lowering: Lowering) -> Mapping[str, int]:
    shape = lowering.call.shape("weight")
    dtype = lowering.results["out"][0]
    rows = packed(
        lowering,
        as_matrix(lowering, "weight", shape),
        dtype,
        math.prod(shape[:-1]),
        shape[-1],
    )
    return {"out": lowering.reshaped(rows, shape_in_graph(dtype, shape))}


convert_weight_to_int4pack = Operator(
    name="convert_weight_to_int4pack",
    differentiable=False,
    summary="Integers from -8 to 7 as four bits each.",
    expression="out[i] = Σ_t (weight[8i + t] mod 16)·16^t",
    notes=(
        "int32 results hold eight integers in an element, the first in the lowest bits; C-shaped functions also "
        "write INT4, two to a byte. Of each integer the four lowest bits are kept."
    ),
    inputs=("weight",),
    sample_specs=specs("weight: INT32[1,8]; out: INT32"),
    entries=(entry("aclnnConvertWeightToINT4Pack", "weight weightInt4Pack=out:out"),),
    rules=(
        *require("weight: INT32; out: INT32 INT4; weight: 2 to 3 dims; weight, out: plain format"),
        packs_evenly("weight", _pack_dtype),
        has_shape("out", quantized_shape("weight", _pack_dtype), "the shape of `weight`, packed"),
    ),
    infer=lambda call: {"out": (_pack_dtype(call), quantized_shape("weight", _pack_dtype)(call))},
    lower=_lower_pack,
    example=(
        "convert_weight_to_int4pack(np.int32([[1, 2, 3, 0, 0, 0, 0, 0]]))",
        "array([[801]], dtype=int32)",
    ),
    accuracy="Results are exact.",
    seealso=("weight_quant_batchmatmul", "quant_matmul", "grouped_matmul"),
)  # fmt: skip
