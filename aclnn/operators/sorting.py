"""Sorts along a dimension, the largest elements, and what sampling keeps of logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType
from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    INTEGERS,
    Call,
    Rule,
    has_shape,
    of_cann,
    rule,
)
from aclnn.operators.declaration import (
    GRADIENT_ACCURACY,
    REQUIRED,
    ROW_ACCURACY,
    Attribute,
    Operator,
    argument,
    entry,
)
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import number, size_is
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_LONG = aclDataType.ACL_INT64
_ALL = (*FLOATING_AND_DOUBLE, *INTEGERS, aclDataType.ACL_BOOL)
_ORDER = (
    "A NaN counts as the largest, -0 equals +0. Of equal elements those with the smaller index come first, "
    "whether ascending or descending."
)
_DIM = argument("dim", -1, "int", "The dimension to sort along.")
_DESCENDING = argument("descending", False, "bool", "Whether the largest come first.")
_EXACT = "Results are exact."


def _sorted(
    lowering: Lowering,
    role: str,
    requested: tuple[str, ...],
    count: int | None,
    *,
    descending: bool,
) -> Mapping[str, int]:
    """The first `count` elements along the dimension, or all, as values or indices, by results."""
    call = lowering.call
    own, shape = call.dtype(role), call.shape(role) or (1,)
    axis = number(call, "dim") % len(shape)
    made = (*shape[:axis], shape[axis] if count is None else count, *shape[axis + 1 :])
    value = lowering.reshaped(role, shape)
    found = lowering.opaque_all(
        "sort" if count is None else "topk",
        [value],
        [(own if kind == "values" else _LONG, made) for kind in requested],
        axis=axis - len(shape),
        descending=descending,
        present=requested,
    )
    operand = made if call.shape(role) else ()
    return {
        kind: lowering.reshaped(one, operand) for kind, one in zip(requested, found, strict=True)
    }


# --- Sort -----------------------------------------------------------------------------------------


def _lower_sort(lowering: Lowering) -> Mapping[str, int]:
    descending = bool(lowering.call.switches["descending"])
    return _sorted(lowering, "input", ("values", "indices"), None, descending=descending)


sort = Operator(
    name="sort",
    summary="Elements in order along a dimension, and their indices.",
    expression="values[i] = input[indices[i]], values ascending",
    notes=f"{_ORDER} The sort is stable, whatever `stable` says.",
    inputs=("input",),
    outputs=("values", "indices"),
    attributes=(
        _DIM,
        _DESCENDING,
        Attribute("stable", False, "bool", doc="Has no effect."),
    ),
    sample_specs=specs("indices: INT64"),
    entries=(
        entry(
            "aclnnSort",
            "self=input stable:bool dim:int descending:bool valuesOut=values:out "
            "indicesOut=indices:out",
        ),
    ),
    rules=(
        *require("input: REAL; cann input: FLOATING INTEGERS BOOL; values: REAL; indices: INT64"),
        *require("dim: axis of input; values, indices: shape of input"),
    ),
    any_rank=True,
    infer=lambda call: {
        "values": (call.dtype("input"), call.shape("input")),
        "indices": (_LONG, call.shape("input")),
    },
    lower=_lower_sort,
    example=(
        "sort(np.float32([3, 1, 2]))",
        "(array([1., 2., 3.], dtype=float32), array([1, 2, 0]))",
    ),
    accuracy=_EXACT,
    seealso=("argsort", "topk"),
    gradient={"input": "spread_along(grad, input, dim, indices)"},
)


@rule("BF16 has more than one element along `dim`, except on Ascend950", "input", "dim")
def _several_of_bfloat16(call: Call) -> str | None:
    """CANN's function sorts lines of a single bfloat16 on Ascend950 only."""
    shape = call.shape("input")
    if call.dtype("input") != aclDataType.ACL_BF16 or call.soc == "Ascend950" or not shape:
        return None
    dim = number(call, "dim")
    if shape[dim] != 1:
        return None
    return (
        f"{call.names['input']} of dtype {call.word(call.dtype('input'))} has shape {shape}, must have more "
        f"than one element along {call.names['dim']} {dim}"
    )


argsort = Operator(
    name="argsort",
    summary="Indices that put elements in order along a dimension.",
    expression="input[out[i]] ascending",
    notes=_ORDER,
    inputs=("input",),
    attributes=(_DIM, _DESCENDING),
    sample_specs=specs("out: INT64"),
    entries=(entry("aclnnArgsort", "self=input dim:int descending:bool out:out"),),
    rules=(
        *require("dim: axis of input"),
        of_cann(_several_of_bfloat16()),
        *require("input: REAL; cann input: FLOATING INTEGERS; out: INT64"),
        *require("input, out: plain format; input, out: at most 8 dims; out: shape of input"),
    ),
    lower=lambda lowering: {
        "out": _sorted(
            lowering,
            "input",
            ("indices",),
            None,
            descending=bool(lowering.call.switches["descending"]),
        )["indices"]
    },
    example=("argsort(np.float32([3, 1, 2]))", "array([1, 2, 0])"),
    accuracy=_EXACT,
    seealso=("sort",),
)


# --- The largest ----------------------------------------------------------------------------------


def _size_along(call: Call) -> int:
    shape = call.shape("input") or (1,)
    return shape[number(call, "dim") % len(shape)]


def _topk_shape(call: Call) -> Shape:
    shape, axis = call.shape("input"), number(call, "dim")
    if not shape:
        return ()
    axis %= len(shape)
    return (*shape[:axis], number(call, "k"), *shape[axis + 1 :])


def _topk_room(role: str) -> Callable[[Call], Shape]:
    """The shape of a result: of a tensor without dimensions also that of one with a single one."""

    def shape(call: Call) -> Shape:
        single = not call.shape("input") and call.c_shaped and call.given((role,))
        found = _topk_shape(call)
        return (number(call, "k"),) if single and call.shape(role) != found else found

    return shape


def _ends_if_none_wanted() -> Rule:
    """With k 0 one result without elements will do: nothing is written into either."""
    ends = require("values: if empty ends; indices: if empty ends")

    def test(call: Call) -> str | None:
        if number(call, "k") or call.makes_absent:
            return None
        return next(filter(None, [rule.test(call) for rule in ends]), None)

    text = "in C-shaped calls, if `k` is 0 and a result is empty there is nothing to do"
    return Rule(text, test, ("k", "values", "indices"))


@rule("`k` is no more than the size along `dim`", "k", "input", "dim")
def _enough_elements(call: Call) -> str | None:
    k, size = number(call, "k"), _size_along(call)
    if 0 <= k <= size:
        return None
    return f"{call.names['k']} is {k}, must be from 0 to {size}, the size along {call.names['dim']}"


def _lower_topk(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    count = number(call, "k") if call.shape("input") else 1
    found = _sorted(
        lowering, "input", ("values", "indices"), count, descending=bool(call.switches["largest"])
    )
    return {kind: lowering.reshaped(one, lowering.results[kind][1]) for kind, one in found.items()}


topk = Operator(
    name="topk",
    summary="The largest elements along a dimension, and their indices.",
    expression="values = the first k of input sorted along dim; values[i] = input[indices[i]]",
    notes=f"{_ORDER} Results are in order, whatever `sorted` says.",
    inputs=("input",),
    outputs=("values", "indices"),
    attributes=(
        argument("k", REQUIRED, "int", "How many elements to find."),
        _DIM,
        argument("largest", True, "bool", "Whether to find the largest, else the smallest."),
        argument("sorted", True, "bool", "Has no effect."),
    ),
    sample_specs={**specs("indices: INT64"), "k": 1},
    entries=(
        entry(
            "aclnnTopk",
            "self=input k:int dim:int largest:bool sorted:bool valuesOut=values:out "
            "indicesOut=indices:out",
        ),
    ),
    rules=(
        *require("dim: axis of input"),
        _enough_elements(),
        *require("input: FLOATING_AND_DOUBLE INTEGERS; values: dtype of input; indices: INT64"),
        *require("input, values, indices: at most 8 dims; input: if empty ends"),
        _ends_if_none_wanted(),
        *[
            has_shape(role, _topk_room(role), "the shape of `input`, with k elements along `dim`")
            for role in ("values", "indices")
        ],
    ),
    lower=_lower_topk,
    example=(
        "topk(np.float32([3, 1, 2]), 2)",
        "(array([3., 2.], dtype=float32), array([0, 2]))",
    ),
    accuracy=_EXACT,
    seealso=("sort", "max"),
    gradient={"input": "spread_along(grad, input, dim, indices)"},
)


# --- Sampling -------------------------------------------------------------------------------------


@rule("`p` or `k` is given", status=ACLNN_ERR_PARAM_NULLPTR)
def _one_given(call: Call) -> str | None:
    if "p" in call.tensors or "k" in call.tensors:
        return None
    return f"{call.names['p']} and {call.names['k']} are both null"


def _lower_sample(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    present = tuple([role for role in ("p", "k") if lowering.has(role)])
    operands = [lowering.value("logits"), *[lowering.value(role) for role in present]]
    return {"out": lowering.opaque("top_k_top_p", operands, dtype, shape, present=present)}


def _rows(call: Call) -> Shape:
    return call.shape("logits")[:1]


top_k_top_p = Operator(
    name="top_k_top_p",
    differentiable=False,
    summary="Logits of which sampling may choose: the largest k, and the likeliest that make p.",
    expression="-Inf where logits < the k-th largest of the row, or Σ softmax of what is smaller ≤ 1 - p; else logits",
    notes=(
        "Elements that equal the k-th largest stay, as does the largest of a row always. Probabilities are "
        "those of what k leaves, added up from the smallest. A k that is not from 1 to one less than the size of "
        "a row leaves all."
    ),
    inputs=("logits", "p", "k"),
    optional=("p", "k"),
    sample_specs=specs("logits: [1,1]; k: INT32[1]"),
    entries=(entry("aclnnApplyTopKTopP", "logits p:in? k:in? out:out"),),
    rules=(
        _one_given(),
        *require("logits: FLOATING; p: dtype of logits; k: INT32; out: dtype of logits"),
        *require("logits: 2 dims; out: shape of logits; p, k: 1 dim"),
        size_is("p", _rows, "an element for each row"),
        size_is("k", _rows, "an element for each row"),
        *require("logits, p, k, out: plain format; logits: if empty done"),
    ),
    lower=_lower_sample,
    example=(
        "top_k_top_p(np.float32([[1, 3, 2, 0]]), k=np.int32([2]))",
        "array([[-inf,   3.,   2., -inf]], dtype=float32)",
    ),
    accuracy="Elements that stay keep their bits; sums of probabilities are in float64.",
    seealso=("topk",),
)


# --- Softmax with a mask --------------------------------------------------------------------------

_HIDDEN = -10000.0
_MOST_COLUMNS = 4096


@rule("`mask` has the shape of `{role}`, or ones in its first two dimensions")
def _mask_fits(call: Call, role: str) -> str | None:
    own, mask = call.shape(role), call.shape("mask")
    matching = all(size in (1, whole) for size, whole in zip(mask[:2], own[:2], strict=True))
    if mask[2:] == own[2:] and matching:
        return None
    return (
        f"{call.names['mask']} has shape {mask}, must have that of {call.names[role]}, {own}, or ones "
        "in its first two dimensions"
    )


def _columns_within(role: str) -> Rule:
    def test(call: Call) -> str | None:
        size = call.shape(role)[3]
        most = 2 * _MOST_COLUMNS if call.soc == "Ascend950" else _MOST_COLUMNS
        if 0 < size <= most:
            return None
        return f"{call.names[role]} has {size} columns, must have from 1 to {most}"

    text = f"`{role}` has from 1 to {_MOST_COLUMNS} columns, on Ascend950 to {2 * _MOST_COLUMNS}"
    return Rule(text, test, (role,))


@rule("`fixed_triu_mask` is false")
def _no_fixed_mask(call: Call) -> str | None:
    if not call.switches["fixed_triu_mask"]:
        return None
    return f"{call.names['fixed_triu_mask']} is true, must be false"


def _lower_masked_softmax(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    single = aclDataType.ACL_FLOAT
    x = lowering.dense("x", single)
    scale = lowering.number("scale")
    scaled = lowering.point("muls", (x,), single, shape, params=(scale,))
    hidden = lowering.filled(_HIDDEN, single, shape)
    mask = lowering.dense("mask", None, shape)
    chosen = lowering.point("where", (mask, hidden, scaled), single, shape, reads="float32")
    (made,) = lowering.rows("softmax", [chosen], [(dtype, shape)], -1)
    return {"out": made}


def _lower_masked_gradient(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    single = aclDataType.ACL_FLOAT
    operands = [lowering.dense(role, single) for role in ("y_grad", "y")]
    (made,) = lowering.rows("softmax_backward", operands, [(single, shape)], -1)
    scaled = lowering.point("muls", (made,), single, shape, params=(lowering.number("scale"),))
    mask = lowering.dense("mask", None, shape)
    chosen = [mask, lowering.filled(0, single, shape), scaled]
    found = lowering.point("where", chosen, single, shape, reads="float32")
    return {"out": lowering.builder.cast(found, graph_dtype(dtype))}


_SCALED: dict[str, Any] = {
    "attributes": (
        argument("scale", 1.0, "float", "What scores are multiplied by."),
        argument("fixed_triu_mask", False, "bool", "Must be false."),
    ),
}

scaled_masked_softmax_backward = Operator(
    name="scaled_masked_softmax_backward",
    differentiable=False,
    summary="Gradient of softmax of scaled scores with a mask, from its result.",
    expression="where(mask, 0, scale·y·(g - Σ g·y)), along the last dimension",
    inputs=("y_grad", "y", "mask"),
    sample_specs=specs("y_grad, y: [1,1,1,1]; mask: BOOL[1,1,1,1]"),
    entries=(
        entry(
            "aclnnScaledMaskedSoftmaxBackward",
            "gradOutput=y_grad y mask scale:float fixTriuMask=fixed_triu_mask:bool out:out",
        ),
    ),
    rules=(
        *require("y_grad: FLOATING; mask: BOOL; y, out: dtype of y_grad; y_grad, mask: 4 dims"),
        *require("y: shape of y_grad"),
        _mask_fits("y_grad"),
        _columns_within("y_grad"),
        *require("out: shape of y_grad"),
        _no_fixed_mask(),
    ),
    lower=_lower_masked_gradient,
    example=(
        "scaled_masked_softmax_backward(np.float32([[[[1, 0]]]]), np.float32([[[[0.5, 0.5]]]]), "
        "np.bool_([[[[False, True]]]]), 2.0)",
        "array([[[[0.5, 0. ]]]], dtype=float32)",
    ),
    accuracy=GRADIENT_ACCURACY.replace("2 ULP", "3 ULP"),
    seealso=("scaled_masked_softmax",),
    **_SCALED,
)

scaled_masked_softmax = Operator(
    name="scaled_masked_softmax",
    summary="Softmax of scaled scores, of which a mask hides some.",
    expression="softmax(where(mask, -10000, x·scale)) along the last dimension",
    notes=(
        "Where the mask is true a score becomes -10000, so rows that are fully masked are uniform. "
        "Scores are scaled in float32."
    ),
    inputs=("x", "mask"),
    sample_specs=specs("x: [1,1,1,1]; mask: BOOL[1,1,1,1]"),
    entries=(
        entry(
            "aclnnScaledMaskedSoftmax",
            "x mask scale:float fixTriuMask=fixed_triu_mask:bool y:out",
        ),
    ),
    rules=(
        *require("x: FLOATING; mask: BOOL; out: dtype of x; x, mask, out: 4 dims"),
        _mask_fits("x"),
        _columns_within("x"),
        *require("out: shape of x"),
        _no_fixed_mask(),
    ),
    lower=_lower_masked_softmax,
    example=(
        "scaled_masked_softmax(np.float32([[[[1, 1, 5]]]]), np.bool_([[[[False, False, True]]]]), 2.0)",
        "array([[[[0.5, 0.5, 0. ]]]], dtype=float32)",
    ),
    accuracy=ROW_ACCURACY,
    seealso=("softmax",),
    gradient={"x": "gradient_of_masked_softmax(grad, out, mask, scale)"},
    **_SCALED,
)
