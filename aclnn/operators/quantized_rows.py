"""Norms and gates whose results are quantized."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType
from aclnn.operators.checks import (
    FLOATING,
    NOTHING_TO_DO,
    Call,
    Rule,
    dtype_among,
    has_shape,
    if_given,
    rule,
    same_dtype,
    same_shape,
    switch_among,
    when,
)
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.quantization import (
    BYTE,
    FOUR,
    PACKED,
    ROUNDED,
    SINGLE,
    dynamic,
    packed_shape,
    packs_evenly,
    quantized,
    shape_in_graph,
)
from aclnn.operators.sizes import has_elements_in_rows, planned, size_is, together
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]
_DOUBLE = aclDataType.ACL_DOUBLE
_NORM = "x·gamma/√(Σx²/N + eps), x = x1 + x2"
_EPSILON = Attribute("epsilon", 1e-6, "float", doc="Added to the mean square.")
_ACCURACY = "The norm is within 1 ULP in float32; what follows is the formula in float32."


# --- Norms ----------------------------------------------------------------------------------------


def _done_without(*roles: str) -> Rule:
    """In C-shaped calls nothing is written where one of these is empty."""

    def test(call: Call) -> str | None:
        found = [call.tensors[role].size == 0 for role in roles if role in call.tensors]
        return NOTHING_TO_DO if call.c_shaped and any(found) else None

    names = " or ".join([f"`{role}`" for role in roles])
    return Rule(f"in C-shaped calls, if {names} is empty nothing is written", test, roles)


@rule("`gamma` has the last sizes of `x1`")
def _trails(call: Call) -> str | None:
    x, gamma = call.shape("x1"), call.shape("gamma")
    if gamma and x[len(x) - len(gamma) :] == gamma:
        return None
    return f"{call.names['gamma']} has shape {gamma}, must have the last sizes of {call.names['x1']}, {x}"


def _sum(lowering: Lowering, dtype: aclDataType) -> int:
    """The sum of both as rows, added up in float64 and rounded once."""
    shape = _rows(lowering)
    first, second = [
        lowering.dense(lowering.reshaped(role, shape), _DOUBLE) for role in ("x1", "x2")
    ]
    return lowering.point("add", (first, second), dtype, shape, params=(1.0,), reads="float64")


def _rows(lowering: Lowering) -> Shape:
    cols = math.prod(lowering.call.shape("gamma"))
    return lowering.call.tensors["x1"].size // cols, cols


def _columns(lowering: Lowering, role: str) -> int:
    return lowering.dense(lowering.reshaped(role, (1, _rows(lowering)[1])), SINGLE)


def _norm(lowering: Lowering) -> int:
    """Rows of the norm in float32."""
    shape = _rows(lowering)
    (made,) = lowering.rows(
        "rms_norm",
        [_sum(lowering, _DOUBLE), lowering.dense(lowering.reshaped("gamma", (1, shape[1])))],
        [(SINGLE, shape)],
        -1,
        params=(lowering.number("epsilon", "exact"),),
        present=("gamma",),
    )
    return made


def _with_beta(lowering: Lowering, norm: int) -> int:
    if not lowering.has("beta"):
        return norm
    shape = _rows(lowering)
    beta = lowering.dense(_columns(lowering, "beta"), None, shape)
    return lowering.point("add", (norm, beta), SINGLE, shape, params=(1.0,))


def _stored(lowering: Lowering, norm: int) -> dict[str, int]:
    """The rounded sum, and the norm without beta where it is wanted."""
    call, found = lowering.call, {}
    shape = call.shape("x1")
    if lowering.wants("x"):
        found["x"] = lowering.reshaped(_sum(lowering, call.dtype("x1")), shape)
    if lowering.wants("rms_norm"):
        rounded = lowering.dense(norm, call.dtype("x1"))
        found["rms_norm"] = lowering.reshaped(rounded, shape)
    return found


def _infer_norm_quant(call: Call) -> Inferred:
    own = (call.dtype("x1"), call.shape("x1"))
    found = {"y1": (BYTE, own[1]), "x": own}
    if "scales2" in call.tensors:
        found["y2"] = (BYTE, own[1])
    if "rms_norm" in call.tensors and not call.makes_absent:
        found["rms_norm"] = own
    return found


def _lower_norm_quant(lowering: Lowering) -> Mapping[str, int]:
    call, shape = lowering.call, _rows(lowering)
    norm = _norm(lowering)
    whole = _with_beta(lowering, norm)
    found = _stored(lowering, norm)
    for index in ("1", "2"):
        if not lowering.wants(f"y{index}"):
            continue
        roles = [role for role in (f"scales{index}", f"zero_points{index}") if lowering.has(role)]
        operands = [whole, *[lowering.dense(_columns(lowering, r), None, shape) for r in roles]]
        made = quantized(lowering, operands, BYTE, shape, divides=bool(call.switches["div_mode"]))
        found[f"y{index}"] = lowering.reshaped(made, call.shape("x1"))
    return found


_LIKE_GAMMA = ("scales1", "scales2", "zero_points1", "zero_points2")


def _norm_quant_rules(*beta: str) -> tuple[Rule, ...]:
    zeros = (*FLOATING, PACKED)
    return (
        *require("x1: FLOATING; x2, gamma: dtype of x1; scales1, scales2: FLOATING"),
        dtype_among("zero_points1", zeros),
        dtype_among("zero_points2", zeros),
        *[same_dtype(role, "x1") for role in beta],
        *require("y1, y2: INT8; x: dtype of x1; x1, gamma: 1 to 8 dims"),
        *require("x1, x2, gamma: at most 8 dims"),
        _done_without("x1", "gamma", "y2"),
        *planned(
            *require("x2: shape of x1"),
            _trails(),
            *[same_shape(role, "gamma") for role in (*_LIKE_GAMMA, *beta)],
            together("zero_points2", "scales2"),
            *require("y1: shape of x1"),
            _where_given(same_shape("y2", "x1"), "scales2"),
            *require("x: shape of x1"),
        ),
    )


def _where_given(rule: Rule, role: str) -> Rule:
    found = when(lambda call: role in call.tensors, rule, f"with `{role}`, {{}}")
    return replace(found, roles=(*rule.roles, role))


_NORM_QUANT = {
    "summary": "RMS norm of a sum, quantized with given scales, and the sum.",
    "expression": f"y1 = round(y/scales1 + zero_points1), y2 likewise, y = {_NORM}",
    "notes": (
        f"{ROUNDED} Without `div_mode`, y·scales1. y2 is written with `scales2` only. x is the rounded sum; the "
        f"norm is that of the sum before rounding."
    ),
    "sample_specs": specs("gamma, scales1: [2]; y1, y2: INT8"),
    "accuracy": _ACCURACY,
}
_AXIS = Attribute("axis", -1, "int", doc="Has no effect.")
_DIV_MODE = Attribute("div_mode", True, "bool", doc="Whether scales divide, else multiply.")

add_rms_norm_quant = Operator(
    name="add_rms_norm_quant",
    inputs=("x1", "x2", "gamma", "scales1", "zero_points1", "beta", "scales2", "zero_points2"),
    outputs=("y1", "y2", "x"),
    optional=("zero_points1", "beta", "scales2", "zero_points2"),
    attributes=(_AXIS, _EPSILON, _DIV_MODE),
    entries=(
        entry(
            "aclnnAddRmsNormQuant",
            "x1 x2 gamma scales1 scales2Optional=scales2:in? zeroPoints1Optional=zero_points1:in? "
            "zeroPoints2Optional=zero_points2:in? axis:int epsilon:float divMode:bool y1Out=y1:out "
            "y2Out=y2:out xOut=x:out",
        ),
    ),
    rules=_norm_quant_rules("beta"),
    infer=_infer_norm_quant,
    lower=_lower_norm_quant,
    example=(
        "add_rms_norm_quant(np.float16([1, 3]), np.float16([1, -1]), np.float16([1, 3]), "
        "np.float32([0.5, 0.5]), scales2=np.float32([1, 1]), epsilon=0.0)",
        "(array([2, 6], dtype=int8), array([1, 3], dtype=int8), array([2., 2.], dtype=float16))",
    ),
    seealso=("add_rms_norm", "add_rms_norm_dynamic_quant"),
    **_NORM_QUANT,  # type: ignore[arg-type]
)

add_rms_norm_quant_v2 = Operator(
    name="add_rms_norm_quant_v2",
    functional=False,
    form_of="add_rms_norm_quant",
    inputs=("x1", "x2", "gamma", "scales1", "scales2", "zero_points1", "zero_points2", "beta"),
    outputs=("y1", "y2", "x", "rms_norm"),
    optional=("scales2", "zero_points1", "zero_points2", "beta", "rms_norm"),
    attributes=(_AXIS, _EPSILON, _DIV_MODE),
    entries=(
        entry(
            "aclnnAddRmsNormQuantV2",
            "x1 x2 gamma scales1 scales2Optional=scales2:in? zeroPoints1Optional=zero_points1:in? "
            "zeroPoints2Optional=zero_points2:in? betaOptional=beta:in? axis:int epsilon:float divMode:bool "
            "y1Out=y1:out y2Out=y2:out xOut=x:out rmsNormOut=rms_norm:out?",
        ),
    ),
    rules=(
        *_norm_quant_rules("beta"),
        *require("rms_norm: dtype of x1"),
        *planned(*require("rms_norm: shape of x1")),
    ),
    infer=_infer_norm_quant,
    lower=_lower_norm_quant,
    example=(
        "add_rms_norm_quant_v2(np.float16([1, 3]), np.float16([1, -1]), np.float16([1, 3]), "
        "np.float32([0.5, 0.5]), np.float32([1, 1]), epsilon=0.0)",
        "(array([2, 6], dtype=int8), array([1, 3], dtype=int8), array([2., 2.], dtype=float16), "
        "array([1., 3.], dtype=float16))",
    ),
    **_NORM_QUANT,  # type: ignore[arg-type]
)


# --- Norms with scales of rows --------------------------------------------------------------------


def _wanted(call: Call) -> tuple[bool, bool]:
    """Which of both quantized results are asked for."""
    mask = call.switches.get("output_mask") or ()
    assert isinstance(mask, tuple)
    if mask:
        return bool(mask[0]), bool(mask[1])
    return True, "smooth_scale1" in call.tensors and "smooth_scale2" in call.tensors


@rule("`output_mask` has two flags, one for each smooth scale")
def _mask_fits(call: Call) -> str | None:
    mask, name = call.switches["output_mask"] or (), call.names["output_mask"]
    assert isinstance(mask, tuple)
    if not mask:
        alone = "smooth_scale2" in call.tensors and "smooth_scale1" not in call.tensors
        return f"{name} is null, but only {call.names['smooth_scale2']} is given" if alone else None
    if len(mask) != 2 or not any(mask):
        return f"{name} is {mask}, must have two elements, not both false"
    for flag, role in zip(mask, ("smooth_scale1", "smooth_scale2"), strict=True):
        if role in call.tensors and not flag:
            return f"{call.names[role]} is given, but {name} is {mask}"
    return None


def _results_given() -> Rule:
    """Rule that the results that are asked for are there."""

    def test(call: Call) -> str | None:
        if call.makes_absent:
            return None
        for index, requested in zip("12", _wanted(call), strict=True):
            for role in (f"y{index}", f"scale{index}"):
                if requested and role not in call.tensors:
                    return f"{call.names[role]} is null"
        return None

    roles = ("y1", "y2", "scale1", "scale2")
    return Rule("results that are asked for are given", test, roles, ACLNN_ERR_PARAM_NULLPTR)


def _second_beside_first() -> Rule:
    return together("smooth_scale2", "smooth_scale1")


def _norm_dtype(call: Call) -> aclDataType:
    for role, requested in zip(("y1", "y2"), _wanted(call), strict=True):
        if requested and role in call.tensors:
            return call.dtype(role)
    return BYTE


def _norm_shape(call: Call) -> Shape:
    own = call.shape("x1")
    return packed_shape(own) if _norm_dtype(call) == PACKED else own


def _rows_shape(call: Call, role: str) -> Shape:
    """The shape of a quantized result or its scales: of the first version also with one dimension of rows."""
    *rows, columns = _norm_shape(call)
    last = (columns,) if role.startswith("y") else ()
    requested, flat = (*rows, *last), (math.prod(rows), *last)
    may_be_flat = "output_mask" not in call.switches and role in call.tensors
    return flat if may_be_flat and call.shape(role) == flat else requested


def _as_asked(rule: Rule, index: int) -> Rule:
    return when(lambda call: _wanted(call)[index], rule, "where asked for, {}")


def _infer_norm_dynamic(call: Call) -> Inferred:
    own = (call.dtype("x1"), call.shape("x1"))
    found: dict[str, tuple[aclDataType, Shape]] = {"x": own}
    for index, requested in zip("12", _wanted(call), strict=True):
        if requested:
            found[f"y{index}"] = (_norm_dtype(call), _rows_shape(call, f"y{index}"))
            found[f"scale{index}"] = (SINGLE, _rows_shape(call, f"scale{index}"))
    return found


def _lower_norm_dynamic(lowering: Lowering) -> Mapping[str, int]:
    norm = _norm(lowering)
    whole = _with_beta(lowering, norm)
    found = _stored(lowering, norm)
    for index in "12":
        if not lowering.wants(f"y{index}"):
            continue
        operands = [whole]
        if lowering.has(f"smooth_scale{index}"):
            operands.append(_columns(lowering, f"smooth_scale{index}"))
        shape, dtype = lowering.call.shape("x1"), lowering.results[f"y{index}"][0]
        made = dynamic(lowering, operands, shape, dtype)
        for role, value in zip((f"y{index}", f"scale{index}"), made, strict=False):
            kind, target = lowering.results[role]
            target = shape_in_graph(kind, target) if kind == FOUR else target
            found[role] = lowering.reshaped(value, target)
    return found


def _norm_dynamic_rules(first: tuple[Rule, ...], *beta: str) -> tuple[Rule, ...]:
    smooth = ("smooth_scale1", "smooth_scale2")
    kinds = (BYTE, PACKED, FOUR) if beta else (BYTE,)
    return (
        *first,
        *require("x1: FLOAT16 BF16"),
        *[same_dtype(role, "x1") for role in ("x2", "gamma", *smooth, *beta)],
        _as_asked(dtype_among("y1", kinds), 0),
        _as_asked(dtype_among("y2", kinds), 1),
        *require("x: dtype of x1"),
        _as_asked(dtype_among("scale1", (SINGLE,)), 0),
        _as_asked(dtype_among("scale2", (SINGLE,)), 1),
        *require("x1: 1 to 8 dims"),
        _done_without("x1", "gamma", *(() if beta else ("y2",))),
        packs_evenly("x1", _norm_dtype),
        *planned(
            *require("x2: shape of x1; gamma: 1 dim"),
            size_is("gamma", lambda call: call.shape("x1")[-1:], "the last size of `x1`"),
            *require("gamma: elements"),
            *[same_shape(role, "gamma") for role in (*smooth, *beta)],
            *[
                _as_asked(
                    has_shape(role, partial(_rows_shape, role=role), "the shape of `x1`, packed"), n
                )
                for n, role in enumerate(("y1", "y2"))
            ],
            *require("x: shape of x1"),
            *[
                _as_asked(
                    has_shape(
                        role,
                        partial(_rows_shape, role=role),
                        "the shape of `x1` without its last",
                    ),
                    n,
                )
                for n, role in enumerate(("scale1", "scale2"))
            ],
        ),
    )


_NORM_DYNAMIC = {
    "summary": "RMS norm of a sum, as integers with a scale for each row, with the sum.",
    "expression": (
        f"y1 = round(v/scale1), scale1 = max |v|/127, v = y·smooth_scale1; y2 likewise; y = {_NORM}"
    ),
    "notes": (
        f"{ROUNDED} The second pair is written with both smooth scales, or as a mask of outputs says. x is the "
        "rounded sum; the norm is that of the sum before rounding."
    ),
    "sample_specs": specs("gamma: [2]; y1, y2: INT8; scale1, scale2: FLOAT"),
    "outputs": ("y1", "y2", "x", "scale1", "scale2"),
    "infer": _infer_norm_dynamic,
    "lower": _lower_norm_dynamic,
    "accuracy": _ACCURACY,
}
_SMOOTH = "smoothScale1Optional=smooth_scale1:in? smoothScale2Optional=smooth_scale2:in?"

add_rms_norm_dynamic_quant = Operator(
    name="add_rms_norm_dynamic_quant",
    inputs=("x1", "x2", "gamma", "smooth_scale1", "smooth_scale2", "beta"),
    optional=("smooth_scale1", "smooth_scale2", "beta", "y1", "y2", "scale1", "scale2"),
    attributes=(
        _EPSILON,
        Attribute(
            "output_mask",
            None,
            "bools",
            nullable=True,
            doc="Which of both quantized results to make.",
        ),
    ),
    parameters=("x1", "x2", "gamma"),
    entries=(
        entry(
            "aclnnAddRmsNormDynamicQuantV2",
            f"x1 x2 gamma {_SMOOTH} betaOptional=beta:in? epsilon:float "
            "outputMaskOptional=output_mask:bools? y1Out=y1:out? y2Out=y2:out? xOut=x:out "
            "scale1Out=scale1:out? scale2Out=scale2:out?",
        ),
    ),
    rules=_norm_dynamic_rules((_mask_fits(), _results_given()), "beta"),
    example=(
        "add_rms_norm_dynamic_quant(np.float16([1, 3]), np.float16([1, -1]), np.float16([1, 3]), "
        "smooth_scale1=np.float16([127, 0]), smooth_scale2=np.float16([0, 127]), epsilon=0.0)",
        "(array([127,   0], dtype=int8), array([  0, 127], dtype=int8), array([2., 2.], dtype=float16), "
        "array(1., dtype=float32), array(3., dtype=float32))",
    ),
    seealso=("add_rms_norm", "dynamic_quant"),
    **_NORM_DYNAMIC,  # type: ignore[arg-type]
)

add_rms_norm_dynamic_quant_v1 = Operator(
    name="add_rms_norm_dynamic_quant_v1",
    functional=False,
    form_of="add_rms_norm_dynamic_quant",
    inputs=("x1", "x2", "gamma", "smooth_scale1", "smooth_scale2"),
    optional=("smooth_scale1", "smooth_scale2"),
    attributes=(_EPSILON,),
    entries=(
        entry(
            "aclnnAddRmsNormDynamicQuant",
            f"x1 x2 gamma {_SMOOTH} epsilon:float y1Out=y1:out y2Out=y2:out xOut=x:out "
            "scale1Out=scale1:out scale2Out=scale2:out",
        ),
    ),
    rules=_norm_dynamic_rules((_second_beside_first(),)),
    example=(
        "add_rms_norm_dynamic_quant_v1(np.float16([1, 3]), np.float16([1, -1]), np.float16([1, 3]), "
        "smooth_scale1=np.float16([127, 0]), smooth_scale2=np.float16([0, 127]), epsilon=0.0)",
        "(array([127,   0], dtype=int8), array([  0, 127], dtype=int8), array([2., 2.], dtype=float16), "
        "array(1., dtype=float32), array(3., dtype=float32))",
    ),
    **_NORM_DYNAMIC,  # type: ignore[arg-type]
)


# --- SwiGLU ---------------------------------------------------------------------------------------

_MODES = ("static", "dynamic")


def _groups(call: Call) -> int | None:
    return call.shape("group_index")[0] if "group_index" in call.tensors else None


def _lead(call: Call) -> Shape:
    return call.shape("x")[:-1]


def _half(call: Call) -> Shape:
    return (*_lead(call), call.shape("x")[-1] // 2)


@rule("the last size of `x` is even")
def _even_last(call: Call) -> str | None:
    size = call.shape("x")[-1]
    return None if size % 2 == 0 else f"{call.names['x']} has the odd last size {size}"


@rule("`{role}` is given for INT32 only", "{role}", "x")
def _plain_halves(call: Call, role: str) -> str | None:
    if role not in call.tensors or call.dtype("x") == PACKED:
        return None
    return f"{call.names[role]} is given, must be null for {call.word(call.dtype('x'))}"


@rule("`weight_scale` is given for INT32", "weight_scale", "x", status=ACLNN_ERR_PARAM_NULLPTR)
def _scale_of_sums(call: Call) -> str | None:
    if call.dtype("x") != PACKED or "weight_scale" in call.tensors:
        return None
    return f"{call.names['weight_scale']} is null, must be given for {call.word(PACKED)}"


@rule("`{role}` has {words}, with groups such a row each", "{role}", "x", "group_index")
def _has_columns(
    call: Call, role: str, sizes: Callable[[Call], tuple[int, ...]], words: str
) -> str | None:
    """One row of so many elements, one for each group."""
    if role not in call.tensors:
        return None
    groups, shape = _groups(call), call.shape(role)
    requested: list[Shape] = [(size,) for size in sizes(call)]
    if groups is not None:
        requested = [(groups, size) for size in sizes(call)] + [(groups,)] * (1 in sizes(call))
    if shape in requested:
        return None
    listed = " or ".join(map(str, requested))
    return f"{call.names[role]} has shape {shape}, must have {listed}"


def _of_rows(call: Call) -> Shape | None:
    lead = _lead(call)
    return None if call.shape("activation_scale") == (*lead, 1) else lead


def _swiglu_table(lowering: Lowering, role: str, size: int) -> int:
    """Rows of an operand for each group, broadcast to so many elements."""
    call = lowering.call
    groups = _groups(call) or 1
    value = lowering.value(role)
    if call.dtype(role) != PACKED:
        value = lowering.dense(value, SINGLE)
    wide = call.tensors[role].size // groups
    return lowering.dense(lowering.reshaped(value, (groups, wide)), None, (groups, size))


def _infer_swiglu(call: Call) -> Inferred:
    found = {"y": (BYTE, _half(call))}
    if call.switches["quant_mode"] == "dynamic":
        found["scale"] = (SINGLE, _lead(call))
    return found


def _lower_swiglu(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    shape, lead = call.shape("x"), _lead(call)
    rows, size = math.prod(lead), shape[-1]
    is_dynamic = call.switches["quant_mode"] == "dynamic"
    operands, present = [lowering.reshaped("x", (rows, size))], []
    for role, name, wide in (
        ("weight_scale", "weight_scale", size),
        ("activation_scale", "activation_scale", 0),
        ("bias", "bias", size),
        ("quant_scale", "quant_scale", size // 2),
        ("quant_offset", "quant_offset", size // 2),
    ):
        if not lowering.has(role) or (is_dynamic and role == "quant_offset"):
            continue
        present.append(name)
        if not wide:
            operands.append(lowering.reshaped(lowering.dense(role, SINGLE), (rows,)))
        else:
            operands.append(_swiglu_table(lowering, role, wide))
    if lowering.has("group_index"):
        present.append("groups")
        operands.append(lowering.value("group_index"))
    single = "quant_scale" in call.tensors and (
        call.tensors["quant_scale"].size == (_groups(call) or 1)
    )
    results: list[tuple[aclDataType, Shape]] = [(BYTE, (rows, size // 2))]
    if is_dynamic:
        results.append((SINGLE, (rows,)))
    made = lowering.opaque_all(
        "swiglu_quant",
        operands,
        results,
        present=tuple(present),
        left=bool(call.switches["activate_left"]),
        dynamic=is_dynamic,
        mode=call.switches.get("swiglu_mode", 0),
        single=single,
        clears=not call.c_shaped,
        params=tuple([lowering.number(role) for role in ("clamp_limit", "glu_alpha", "glu_bias")]),
    )
    found = {"y": lowering.reshaped(made[0], _half(call))}
    if is_dynamic:
        found["scale"] = lowering.reshaped(made[1], lead)
    return found


@rule("`swiglu_mode` is from 0 to 3, 1 only with `activate_left`")
def _swiglu_mode(call: Call) -> str | None:
    mode = call.switches["swiglu_mode"]
    if mode not in range(4):
        return f"{call.names['swiglu_mode']} is {mode}, must be from 0 to 3"
    if mode == 1 and not call.switches["activate_left"]:
        return f"{call.names['swiglu_mode']} is 1, for which {call.names['activate_left']} must be true"
    return None


def _where_dynamic(rule: Rule) -> Rule:
    return when(
        lambda call: call.switches["quant_mode"] == "dynamic", rule, "in the dynamic mode, {}"
    )


def _swiglu_rules(*first: Rule) -> tuple[Rule, ...]:
    return (
        *first,
        _scale_of_sums(),
        *require("x: INT32 FLOAT16 BF16"),
        *[
            dtype_among(role, (SINGLE,))
            for role in ("weight_scale", "activation_scale", "quant_scale", "quant_offset")
        ],
        *require("bias: INT32 FLOATING; group_index: INT64; y: INT8; scale: FLOAT"),
        *[_plain_halves(role) for role in ("weight_scale", "activation_scale", "bias")],
        if_given("quant_mode", switch_among("quant_mode", _MODES)),
        _swiglu_mode(),
        *require("x: 2 to 8 dims"),
        _even_last(),
        _where_dynamic(has_elements_in_rows("x")),
        *require("group_index: 1 dim"),
        _has_columns("weight_scale", lambda call: call.shape("x")[-1:], "the last size of `x`"),
        size_is("activation_scale", _of_rows, "an element for each row"),
        _has_columns("bias", lambda call: call.shape("x")[-1:], "the last size of `x`"),
        *[
            _has_columns(
                role,
                lambda call: (1, call.shape("x")[-1] // 2),
                "one element, or half the last size of `x`",
            )
            for role in ("quant_scale", "quant_offset")
        ],
        has_shape("y", _half, "the shape of `x`, with half its last size"),
        _where_dynamic(has_shape("scale", _lead, "the shape of `x` without its last")),
    )


dequant_swiglu_quant = Operator(
    name="dequant_swiglu_quant",
    summary="SwiGLU of rows that are dequantized first, as integers.",
    expression=(
        "y = round(u/quant_scale + quant_offset), u = silu(a)·b of the halves of (x + bias)·weight_scale·"
        "activation_scale; dynamic: y = round(v/scale), scale = max |v|/127, v = u·quant_scale"
    ),
    notes=(
        f"{ROUNDED} Sums are INT32; half-precision inputs are not scaled. A floating bias is added after the scales. With "
        "`group_index`, which has the number of rows of each group, scales and bias have a row for each; rows "
        "that no group has are left alone in C-shaped calls, else 0. swiglu_mode 1 takes pairs, 2 halves: the gate "
        "below clamp_limit, the other within it: gate·sigmoid(glu_alpha·gate)·(linear + glu_bias); 3 clamps silu(gate). "
        "y of a static mode without quant_scale is u, rounded."
    ),
    inputs=("x", "weight_scale", "activation_scale", "bias", "quant_scale", "quant_offset", "group_index"),
    optional=(
        "weight_scale", "activation_scale", "bias", "quant_scale", "quant_offset", "group_index", "scale",
    ),
    outputs=("y", "scale"),
    attributes=(
        Attribute("activate_left", False, "bool", doc="Whether the first half is the gate."),
        Attribute("quant_mode", "static", "str", doc="How to quantize.", choices=_MODES, nullable=True),
        Attribute("swiglu_mode", 0, "int", doc="Which gate: 0 to 3."),
        Attribute("clamp_limit", 7.0, "float", doc="Of modes 1 to 3."),
        Attribute("glu_alpha", 1.702, "float", doc="Of modes 1 and 2."),
        Attribute("glu_bias", 1.0, "float", doc="Of modes 1 and 2."),
    ),
    parameters=("x",),
    sample_specs=specs("x: [1,2]; y: INT8; scale: FLOAT"),
    entries=(
        entry(
            "aclnnDequantSwigluQuant",
            "x weightScaleOptional=weight_scale:in? activationScaleOptional=activation_scale:in? "
            "biasOptional=bias:in? quantScaleOptional=quant_scale:in? quantOffsetOptional=quant_offset:in? "
            "groupIndexOptional=group_index:in? activateLeft:bool quantModeOptional=quant_mode:str? "
            "yOut=y:out scaleOut=scale:out",
            swiglu_mode=0,
        ),
    ),
    rules=_swiglu_rules(),
    infer=_infer_swiglu,
    lower=_lower_swiglu,
    example=(
        "dequant_swiglu_quant(np.float16([[0, 100, 2, 1]]), activate_left=True, quant_mode='dynamic')",
        "(array([[  0, 127]], dtype=int8), array([0.78740156], dtype=float32))",
    ),
    accuracy="The formula in float32, each operation rounded.",
    seealso=("swiglu", "dynamic_quant"),
)  # fmt: skip


@rule(
    "in the static mode, `quant_scale` is given",
    "quant_scale",
    "quant_mode",
    status=ACLNN_ERR_PARAM_NULLPTR,
)
def _static_has_scale(call: Call) -> str | None:
    if call.switches["quant_mode"] == "dynamic" or "quant_scale" in call.tensors:
        return None
    return f"{call.names['quant_scale']} is null, must be given in the static mode"


@rule(
    "`quant_offset` is given in the static mode, and null in the dynamic one",
    "quant_offset",
    "quant_mode",
)
def _offset_of_static(call: Call) -> str | None:
    is_dynamic, name = call.switches["quant_mode"] == "dynamic", call.names["quant_offset"]
    if ("quant_offset" in call.tensors) != is_dynamic:
        return None
    return f"{name} is {'given' if is_dynamic else 'null'} in the {'dynamic' if is_dynamic else 'static'} mode"


@rule("`dst_type` is 2 (INT8), `round_mode` 'rint', `activate_dim` the last")
def _second_version(call: Call) -> str | None:
    """Rule about the options of the second version."""
    for role, known in (("dst_type", (2,)), ("activate_dim", (-1, 1))):
        if call.switches[role] not in known:
            return f"{call.chosen(role)}, must be {' or '.join(map(str, known))}"
    rounding = call.switches["round_mode"]
    return (
        None
        if rounding in (None, "rint")
        else f"{call.names['round_mode']} is {rounding!r}, must be 'rint'"
    )


dequant_swiglu_quant_v2 = replace(
    dequant_swiglu_quant,
    name="dequant_swiglu_quant_v2",
    functional=False,
    form_of="dequant_swiglu_quant",
    notes="dequant_swiglu_quant of two dimensions, whose static mode needs quant_scale and quant_offset.",
    attributes=(
        *dequant_swiglu_quant.attributes,
        Attribute("dst_type", 2, "int", doc="Of the result: 2, INT8."),
        Attribute("round_mode", "rint", "str", doc="How to round.", choices=("rint",), nullable=True),
        Attribute("activate_dim", -1, "int", doc="The dimension that has halves: the last."),
    ),
    entries=(
        entry(
            "aclnnDequantSwigluQuantV2",
            "x weightScaleOptional=weight_scale:in? activationScaleOptional=activation_scale:in? "
            "biasOptional=bias:in? quantScaleOptional=quant_scale:in? quantOffsetOptional=quant_offset:in? "
            "groupIndexOptional=group_index:in? activateLeft:bool quantModeOptional=quant_mode:str? "
            "dstType:int roundModeOptional=round_mode:str? activateDim:int swigluMode:int clampLimit:float "
            "gluAlpha:float gluBias:float yOut=y:out scaleOut=scale:out",
        ),
    ),
    rules=(
        *_swiglu_rules(_static_has_scale()),
        *require("x: INT32 BF16; x: 2 dims"),
        _offset_of_static(),
        _second_version(),
    ),
    sample_specs={**specs("x: INT32[1,2]; y: INT8; scale: FLOAT; weight_scale: FLOAT[2]"), "quant_mode": "dynamic"},
    example=(
        "dequant_swiglu_quant_v2(np.int32([[0, 100, 2, 1]]), weight_scale=np.float32([1, 1, 1, 1]), "
        "activate_left=True, quant_mode='dynamic')",
        "(array([[  0, 127]], dtype=int8), array([0.78740156], dtype=float32))",
    ),
    seealso=("dequant_swiglu_quant",),
)  # fmt: skip
