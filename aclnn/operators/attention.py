"""Scaled dot-product attention as PyTorch has it, with its gradients."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.attention_nodes import (
    ACCURACY,
    EVERYTHING,
    attend,
    four_of,
    gradients,
    in_four,
    scale_of,
)
from aclnn.operators.checks import Call, Rule, broadcast_shapes, has_shape, rule, same_dtype
from aclnn.operators.declaration import Attribute, Operator, argument
from aclnn.operators.lowering import Lowering
from aclnn.operators.words import require

Shape = tuple[int, ...]
_BOOL, _SINGLE = aclDataType.ACL_BOOL, aclDataType.ACL_FLOAT
_TENSORS = ("query", "key", "value")
_SOFTMAX = "out = softmax(scale·query·keyᵀ + mask)·value"
_NOTES = (
    "A boolean attn_mask says which keys a query attends to; any other is added to scores. With "
    "`is_causal` query i attends to keys 0 to i. A query that attends to no key gets 0. "
    "With `enable_gqa` the heads, which the third last dimension counts, may be fewer in key and "
    "value: consecutive heads of the query share one. Scores are never a tensor: keys pass by in "
    "tiles of 128, with a running maximum and sum. There is no dropout."
)
_OUT_WORDS = (
    "the shape of `query`, broadcast to the batches and heads of `key` and `value`, with the last "
    "size of `value`"
)
_ATTRIBUTES = (
    argument("is_causal", False, "bool", "Mask the keys after a query."),
    Attribute("scale", None, "float", doc="Factor of scores; by default 1/√E, E the heads' size."),
    Attribute("enable_gqa", False, "bool", doc="Whether key and value may have fewer heads."),
)


# --- Shapes -----------------------------------------------------------------------------------------


def _lead(call: Call) -> Shape | None:
    """Batches and heads of the result, or None where those of the tensors do not fit."""
    leads = [call.shape(role)[:-2] for role in _TENSORS]
    if call.switches["enable_gqa"]:
        if not all(leads):
            return None
        heads, fewer, others = [lead[-1] for lead in leads]
        if fewer != others or (fewer and heads % fewer) or (heads and not fewer):
            return None
        leads = [lead[:-1] for lead in leads]
        batch = broadcast_shapes(*leads)
        return None if batch is None else (*batch, heads)
    return broadcast_shapes(*leads)


def _scores_shape(call: Call) -> Shape:
    lead = _lead(call)
    assert lead is not None
    return (*lead, call.shape("query")[-2], call.shape("key")[-2])


def _out_shape(call: Call) -> Shape:
    return (*_scores_shape(call)[:-1], call.shape("value")[-1])


def _whole_shape(call: Call, role: str) -> Shape:
    """A tensor's shape, broadcast to the batches and, without `enable_gqa`, the heads of the result."""
    shape, lead = call.shape(role), _scores_shape(call)[:-2]
    heads = shape[-3:-2] if call.switches["enable_gqa"] else lead[-1:]
    return (*lead[:-1], *heads, *shape[-2:])


def _row_shape(call: Call) -> Shape:
    return _scores_shape(call)[:-1]


# --- Rules ------------------------------------------------------------------------------------------


def _are_matrices(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in roles:
            if len(call.shape(role)) < 2:
                return f"{call.ranked(role)}, must have 2 or more"
        return None

    names = ", ".join(f"`{role}`" for role in roles)
    return Rule(f"{names} have at least 2 dimensions", test, roles)


@rule("`{first}` and `{second}` have the same {words}")
def _same_size(call: Call, first: str, second: str, axis: int, words: str) -> str | None:
    a, b = call.shape(first)[axis], call.shape(second)[axis]
    if a == b:
        return None
    return f"{call.names[first]} has the {words} {a}, {call.names[second]} {b}"


@rule(
    "the dimensions before the last two of query, key and value broadcast; with `enable_gqa` the heads of `query` are a multiple of those of `key` and `value`",
    *_TENSORS,
    "enable_gqa",
)
def _leads_fit(call: Call) -> str | None:
    if _lead(call) is not None:
        return None
    shapes = ", ".join(f"{call.names[role]} {call.shape(role)}" for role in _TENSORS)
    if call.switches["enable_gqa"]:
        return (
            f"with {call.names['enable_gqa']} the heads of query must be a multiple of those "
            f"of key and value, which are as many, and batches broadcast: {shapes}"
        )
    return f"batches and heads do not broadcast: {shapes}"


@rule("`attn_mask` is BOOL, FLOAT or of the dtype of `query`")
def _mask_dtype(call: Call) -> str | None:
    if "attn_mask" not in call.tensors:
        return None
    allowed = (_BOOL, _SINGLE, call.dtype("query"))
    if call.dtype("attn_mask") in allowed:
        return None
    return f"{call.typed('attn_mask')}, must be {call.words(tuple(dict.fromkeys(allowed)))}"


@rule("`attn_mask` broadcasts to the scores", "attn_mask", *_TENSORS)
def _mask_fits(call: Call) -> str | None:
    if "attn_mask" not in call.tensors:
        return None
    shape, requested = call.shape("attn_mask"), _scores_shape(call)
    if len(shape) > 1 and broadcast_shapes(shape, requested) == requested:
        return None
    return (
        f"{call.names['attn_mask']} has shape {shape}, which does not broadcast to that of the "
        f"scores, {requested}"
    )


@rule("`attn_mask` is not given with `is_causal`")
def _one_mask(call: Call) -> str | None:
    if "attn_mask" not in call.tensors or not call.switches["is_causal"]:
        return None
    return f"{call.names['attn_mask']} is given, but {call.names['is_causal']} is true"


@rule("`dropout_p` is 0")
def _no_dropout(call: Call) -> str | None:
    number = call.scalars["dropout_p"]
    if number.zero or not number.text:  # which samples of calls lack
        return None
    return f"{call.names['dropout_p']} is {number.text}, must be 0: there is no dropout here"


_RULES = (
    *require("query: FLOATING; key, value: dtype of query"),
    _mask_dtype(),
    _are_matrices(*_TENSORS),
    *require("query, key, value, attn_mask: at most 8 dims"),
    _same_size("query", "key", -1, "last size"),
    _same_size("key", "value", -2, "number of keys"),
    _leads_fit(),
    _mask_fits(),
    _one_mask(),
)


# --- Nodes ------------------------------------------------------------------------------------------


def _operands(lowering: Lowering) -> tuple[dict[str, int], dict[str, object]]:
    """Operands and options of a node, of those that all forms have."""
    call = lowering.call
    scores = _scores_shape(call)
    operands: dict[str, int] = {}
    options: dict[str, object] = {}
    for role in _TENSORS:
        operands[role] = in_four(lowering, lowering.value(role), _whole_shape(call, role))
    if lowering.has("attn_mask"):
        name = "mask" if call.dtype("attn_mask") == _BOOL else "shift"
        operands[name] = in_four(lowering, lowering.value("attn_mask"), scores)
        options["mask"] = "shows"
    if call.switches["is_causal"]:
        options["window"] = (-EVERYTHING, 0)
    return operands, options


def _lower(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    operands, options = _operands(lowering)
    results = {"out": (call.dtype("query"), four_of(_out_shape(call)))}
    if lowering.wants("logsumexp"):
        results["first"] = (_SINGLE, (*four_of(_out_shape(call))[:3], 1))
    scale = scale_of(lowering, "scale", call.shape("query")[-1])
    made = attend(lowering, operands, results, scale, **options)
    found = {"out": lowering.reshaped(made["out"], _out_shape(call))}
    if lowering.wants("logsumexp"):
        found["logsumexp"] = lowering.reshaped(made["first"], _row_shape(call))
    return found


# --- Operators --------------------------------------------------------------------------------------

_MATRIX = {"shape": (2, 2), "strides": (2, 1)}
_UNLIKE = dict.fromkeys(_TENSORS, _MATRIX) | {"attn_mask": {"dtype": _BOOL} | _MATRIX}

scaled_dot_product_attention = Operator(
    name="scaled_dot_product_attention",
    summary="Attention: values, weighted by the softmax of the products of queries and keys.",
    expression=_SOFTMAX,
    notes=_NOTES,
    lower=_lower,
    inputs=(*_TENSORS, "attn_mask"),
    optional=("attn_mask",),
    sample_specs=_UNLIKE,
    attributes=(
        argument("dropout_p", 0.0, "float", "Must be 0.", facts=("zero",)),
        *_ATTRIBUTES,
    ),
    entries=(),
    rules=(
        *_RULES,
        _no_dropout(),
        *require("out: dtype of query"),
        has_shape("out", _out_shape, _OUT_WORDS),
    ),
    example=(
        "scaled_dot_product_attention(np.float32([[0, 0]]), np.float32([[1, 2], [3, 4]]), "
        "np.float32([[1], [2]]))",
        "array([[1.5]], dtype=float32)",
    ),
    seealso=("scaled_dot_product_attention_forward",),
    accuracy=ACCURACY,
    differentiated_as=(
        "scaled_dot_product_attention_forward(query, key, value, attn_mask, is_causal, "
        "scale=scale, enable_gqa=enable_gqa)[0]"
    ),
)

scaled_dot_product_attention_forward = Operator(
    name="scaled_dot_product_attention_forward",
    summary="Attention, with the logarithm of the sum of each query's exponentials.",
    expression=f"{_SOFTMAX}, logsumexp = ln Σ exp(scale·query·keyᵀ + mask)",
    notes=f"{_NOTES} The logarithm is float32, infinity for a query that attends to no key.",
    lower=_lower,
    inputs=(*_TENSORS, "attn_mask"),
    outputs=("out", "logsumexp"),
    optional=("attn_mask",),
    sample_specs=_UNLIKE,
    attributes=_ATTRIBUTES,
    entries=(),
    rules=(
        *_RULES,
        *require("out: dtype of query; logsumexp: FLOAT"),
        has_shape("out", _out_shape, _OUT_WORDS),
        has_shape("logsumexp", _row_shape, "an element for each row of `out`"),
    ),
    example=(
        "scaled_dot_product_attention_forward(np.float32([[0, 0]]), np.float32([[1, 2], [3, 4]]), "
        "np.float32([[1], [2]]))",
        "(array([[1.5]], dtype=float32), array([0.6931472], dtype=float32))",
    ),
    seealso=("scaled_dot_product_attention", "scaled_dot_product_attention_backward"),
    accuracy=ACCURACY,
    gradient={
        "query, key, value, attn_mask": (
            "gradients_of_attention(grad, grad_logsumexp, query, key, value, out, logsumexp, "
            "attn_mask, is_causal, scale, enable_gqa, needed)"
        )
    },
)


def _lower_backward(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    operands, options = _operands(lowering)
    out = _out_shape(call)
    rows = lowering.reshaped("logsumexp", (*_row_shape(call), 1))
    operands |= {
        "grad": lowering.reshaped("grad", four_of(out)),
        "output": lowering.reshaped("output", four_of(out)),
        "first": lowering.reshaped(rows, (*four_of(out)[:3], 1)),
    }
    scale = scale_of(lowering, "scale", call.shape("query")[-1])
    made = gradients(lowering, operands, call.dtype("query"), scale, **options)
    shapes = [_whole_shape(call, role) for role in _TENSORS]
    return {
        f"grad_{role}": lowering.reshaped(value, shape)
        for role, value, shape in zip(_TENSORS, made, shapes, strict=True)
    }


scaled_dot_product_attention_backward = Operator(
    name="scaled_dot_product_attention_backward",
    summary="Gradients of attention with respect to query, key and value.",
    expression=(
        "P = exp(scale·query·keyᵀ + mask - logsumexp), dS = P ∘ (grad·valueᵀ - Σ grad ∘ output), "
        "grad_query = scale·dS·key, grad_key = scale·dSᵀ·query, grad_value = Pᵀ·grad"
    ),
    notes=(
        "output and logsumexp are those of scaled_dot_product_attention_forward. Where batches of "
        "query, key and value broadcast, gradients have the shape that they broadcast to."
    ),
    lower=_lower_backward,
    inputs=("grad", *_TENSORS, "output", "logsumexp", "attn_mask"),
    outputs=("grad_query", "grad_key", "grad_value"),
    optional=("attn_mask",),
    sample_specs=_UNLIKE
    | {"grad": _MATRIX, "output": _MATRIX, "logsumexp": {"dtype": _SINGLE, "shape": (2,)}},
    attributes=_ATTRIBUTES,
    entries=(),
    rules=(
        *_RULES,
        *require("grad, output: dtype of query; logsumexp: FLOAT"),
        *[same_dtype(f"grad_{role}", "query") for role in _TENSORS],
        has_shape("grad", _out_shape, _OUT_WORDS),
        has_shape("output", _out_shape, _OUT_WORDS),
        has_shape("logsumexp", _row_shape, "an element for each row of `output`"),
        *[
            has_shape(
                f"grad_{role}",
                lambda call, role=role: _whole_shape(call, role),  # type: ignore[misc]
                f"the shape of `{role}`, broadcast",
            )
            for role in _TENSORS
        ],
    ),
    example=(
        "scaled_dot_product_attention_backward(np.float32([[1]]), np.float32([[0]]), "
        "np.float32([[1]]), np.float32([[2]]), np.float32([[2]]), np.float32([0]))",
        "(array([[0.]], dtype=float32), array([[0.]], dtype=float32), "
        "array([[1.]], dtype=float32))",
    ),
    seealso=("scaled_dot_product_attention_forward",),
    accuracy=ACCURACY,
)
