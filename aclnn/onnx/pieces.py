"""The patterns that models are searched for, and what computes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.onnx.patterns import Found, Pattern, UnsuitedError
from aclnn.onnx.quantized_forms import (
    gemm_of_weight,
    product_of_weight,
    quantized_convolution,
    quantized_gemm,
    quantized_product,
    quantized_texts,
)
from aclnn.onnx.steps import dtype_of
from aclnn.tracing.array import TracedArray

ours: Any = functional  # whose names are made from declarations
LEAST_FILL = -1e30  # from which on what is hidden has no share at all

# --- Activations ------------------------------------------------------------------------------------

_CUBES = ("Pow(x, 3)", "Mul(x, Mul(x, x))", "Mul(x, Pow(x, 2))")
_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715
_TANH_ARGUMENTS = (
    *(f"Mul(Add(x, Mul({cube}, {_TANH_CUBE})), {_TANH_SCALE})" for cube in _CUBES),
    f"Mul(Mul(x, {_TANH_SCALE}), Add(Mul(Mul(x, x), {_TANH_CUBE}), 1))",
    f"Mul(Mul(x, {_TANH_SCALE}), Add(Mul(Mul(x, {_TANH_CUBE}), x), 1))",
    f"Mul(x, Mul(Add(Mul(Mul(x, x), {_TANH_CUBE}), 1), {_TANH_SCALE}))",
)
_ERF_ARGUMENTS = (f"Div(x, {math.sqrt(2)})", f"Mul(x, {math.sqrt(0.5)})")


def _halved(factor: str) -> list[str]:
    """The ways to write half of a product with x."""
    return [
        f"Mul(Mul(x, {factor}), 0.5)",
        f"Mul(Mul(x, 0.5), {factor})",
        f"Mul(Mul({factor}, 0.5), x)",
    ]


def _floating(x: Any) -> Any:
    """An array of a dtype that activations, norms and attention take as it is."""
    if np.dtype(x.dtype).name not in ("float32", "float16", "bfloat16"):
        raise UnsuitedError(f"dtype {x.dtype}")
    return x


def _gelu(found: Found) -> Any:
    return ours.gelu(_floating(found.values["x"]))


def _gelu_by_tanh(found: Found) -> Any:
    return ours.gelu(_floating(found.values["x"]), approximate="tanh")


def _silu(found: Found) -> Any:
    return ours.silu(_floating(found.values["x"]))


def _swish(found: Found) -> Any:
    return ours.swish(_floating(found.values["x"]), found.number("B"))


def _mish(found: Found) -> Any:
    return ours.mish(_floating(found.values["x"]))


def _hard_swish(found: Found) -> Any:
    arguments = found.attributes("s")
    if arguments and (np.float32(arguments.get("alpha", 0.2)) != np.float32(1 / 6)):
        raise UnsuitedError("another slope")
    if arguments.get("beta", 0.5) != 0.5:
        raise UnsuitedError("another shift")
    return ours.hardswish(_floating(found.values["x"]))


# --- Norms ------------------------------------------------------------------------------------------


def _over_root(of: str) -> list[str]:
    """The ways to divide by the root of the mean square."""
    found = []
    for square in (f"Pow({of}, 2)", f"Mul({of}, {of})"):
        root = f"Sqrt(Add(v := ReduceMean({square}, axes2_), EPS))"
        found += [
            f"o := Cast_(Div({of}, {root}))",
            f"o := Cast_(Mul({of}, Reciprocal({root})))",
            f"o := Cast_(Mul({of}, Div(1, {root})))",
        ]
    return found


_WIDE = "(i := Cast_(x))"
_LAYER_NORMS = _over_root(f"Sub({_WIDE}, m := ReduceMean({_WIDE}, axes_))")
_RMS_NORMS = _over_root(_WIDE)


def _reduced(found: Found, node: str, axes: str, x: Any) -> tuple[int, ...]:
    """The trailing dimensions that a mean is taken over."""
    attributes = found.attributes(node)
    value = attributes.get("axes", found.values.get(axes))
    if value is None or isinstance(value, TracedArray) or not attributes.get("keepdims", 1):
        raise UnsuitedError("axes")
    places = sorted({int(one) % x.ndim for one in np.atleast_1d(value)})
    if not places or places != [*range(x.ndim - len(places), x.ndim)]:
        raise UnsuitedError("axes that are not the last ones")
    return tuple(x.shape[places[0] :])


def _of_rows(found: Found) -> tuple[Any, tuple[int, ...]]:
    """The array to be normed, and the shape of a row of it."""
    x = _floating(found.values["x"])
    shape = _reduced(found, "v", "axes2_", x)
    if "m" in found.nodes and _reduced(found, "m", "axes_", x) != shape:
        raise UnsuitedError("means over other axes than squares")
    # A norm in a wider dtype is our norm's own business where its result has the dtype of x.
    to = next((found.attributes(name)["to"] for name in ("o", "i") if name in found.nodes), None)
    if to is not None and dtype_of(to) != np.dtype(x.dtype):
        raise UnsuitedError("a result in another dtype")
    return x, shape


def _factor(found: Found, name: str, x: Any, shape: tuple[int, ...]) -> Any:
    """A constant that scales or shifts rows, in their shape; None where there is none."""
    if name not in found.values:
        return None
    array = np.asarray(found.values[name])
    extra = array.ndim - len(shape)
    if array.dtype != np.dtype(x.dtype) or (extra > 0 and max(array.shape[:extra]) > 1):
        raise UnsuitedError("a weight that does not belong to rows")
    array = array.reshape(array.shape[max(extra, 0) :])
    if np.broadcast_shapes(array.shape, shape) != shape:
        raise UnsuitedError("a weight that does not belong to rows")
    return np.ascontiguousarray(np.broadcast_to(array, shape))


def _layer_norm(found: Found) -> Any:
    x, shape = _of_rows(found)
    weight, bias = (_factor(found, name, x, shape) for name in ("w", "b"))
    return ours.layer_norm(x, shape, weight, bias, found.number("EPS"))


def _rms_norm(found: Found) -> Any:
    x, shape = _of_rows(found)
    return ours.rms_norm(x, shape, _factor(found, "w", x, shape), found.number("EPS"))


# --- Attention --------------------------------------------------------------------------------------

_PRODUCTS = (
    "MatMul(Mul(q, S), Mul(k, T))",
    "MatMul(Mul(q, S), k)",
    "MatMul(Div(q, D), k)",
    "Mul(MatMul(q, k), S)",
    "Div(MatMul(q, k), D)",
    "MatMul(q, k)",
)
_SCORES = [
    *(f"Add(Where(seen, {one}, FILL), mask)" for one in _PRODUCTS),
    *(f"Where(seen, {one}, FILL)" for one in _PRODUCTS),
    *(f"Where(hidden, FILL, {one})" for one in _PRODUCTS),
    *(f"Add({one}, mask)" for one in _PRODUCTS),
    *_PRODUCTS,
]
_SHARES = [f"Cast_(s := Softmax(Cast_({one})))" for one in _SCORES]
_ATTENTIONS = [f"MatMul(Where(n := IsNaN({one}), 0, {one}), v)" for one in _SHARES]
_ATTENTIONS += [f"MatMul({one}, v)" for one in _SHARES]


def _attention(found: Found) -> Any:
    values = found.values
    q, k, v = (_floating(values[name]) for name in ("q", "k", "v"))
    rank, axis = q.ndim, found.attributes("s").get("axis", -1 if found.opset >= 13 else 1)
    if rank not in (3, 4) or not rank == k.ndim == v.ndim or axis % rank != rank - 1:
        raise UnsuitedError("no attention of heads")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or not min(q.size, k.size, v.size):
        raise UnsuitedError("other batches")
    scores = (*q.shape[:-1], k.shape[-1])
    mask = _mask(found, scores, q.dtype)
    scale = found.number("S") if "S" in values else 1.0
    scale *= found.number("T") if "T" in values else 1.0
    scale /= found.number("D") if "D" in values else 1.0
    keys = k.transpose(*range(rank - 2), rank - 1, rank - 2)
    made = ours.scaled_dot_product_attention(q, keys, v, mask, scale=scale)
    return made if mask is None or "n" in found.nodes else _where_seen(found, made, mask)


def _mask(found: Found, scores: tuple[int, ...], dtype: Any) -> Any:
    """The mask to be added to scores; None for nothing."""
    values, parts = found.values, []
    if "FILL" in values:
        fill = found.number("FILL")
        if not fill <= LEAST_FILL:
            raise UnsuitedError("what is hidden keeps a share")
        hides = "hidden" in values
        where = values["hidden" if hides else "seen"]
        shares = (fill, 0.0) if hides else (0.0, fill)
        if isinstance(where, TracedArray):
            parts.append(ours.where(where, *[np.asarray(one, dtype) for one in shares]))
        else:
            parts.append(np.where(where, *shares).astype(dtype))
    if "mask" in values:
        parts.append(values["mask"])
    if not parts:
        return None
    for one in parts:
        if (
            np.dtype(one.dtype) != np.dtype(dtype)
            or np.broadcast_shapes(one.shape, scores) != scores
        ):
            raise UnsuitedError("a mask of another kind")
    made = parts[0] if len(parts) == 1 else ours.add(*parts)
    return made if made.ndim >= 2 else made.reshape(1, *(made.shape or (1,)))


def _where_seen(found: Found, made: Any, mask: Any) -> Any:
    """Rows that see nothing: the standard's shares are no numbers there, those of our attention 0."""
    if not isinstance(mask, TracedArray):
        unseen: Any = np.isneginf(mask).all(-1, keepdims=True)
        return ours.masked_fill(made, unseen, math.nan) if unseen.any() else made
    if "mask" not in found.values and math.isfinite(found.number("FILL")):
        return made
    return ours.masked_fill(made, ours.eq(ours.amax(mask, [-1], True), -math.inf), math.nan)


# --- Rotary embedding -------------------------------------------------------------------------------

_ROTARIES = [
    "Add(Mul(x, cos), Mul(c := Concat(Neg(p := Slice(x, a, b, axes, steps_)), "
    "q := Slice(x, a2, b2, axes2, steps2_)), sin))"
]


def _rotary(found: Found) -> Any:
    values, x = found.values, _floating(found.values["x"])
    rank, size = x.ndim, x.shape[-1]
    if rank != 4 or size % 2 or found.attributes("c").get("axis") not in (-1, rank - 1):
        raise UnsuitedError("no rotation of halves")
    bounds = []
    for start, end, axis, by in (("a", "b", "axes", "steps_"), ("a2", "b2", "axes2", "steps2_")):
        arguments = [values[name] for name in (start, end, axis)]
        if any(isinstance(one, TracedArray) or np.size(one) != 1 for one in arguments):
            raise UnsuitedError("slices that are computed")
        first, last, along = (int(np.reshape(one, -1)[0]) for one in arguments)
        step = values.get(by)
        if along % rank != rank - 1 or (step is not None and int(np.reshape(step, -1)[0]) != 1):
            raise UnsuitedError("slices of another axis")
        bounds.append(slice(first, last).indices(size)[:2])
    if bounds != [(size // 2, size), (0, size // 2)]:
        raise UnsuitedError("no halves")
    cos, sin = (values[name] for name in ("cos", "sin"))
    for one in (cos, sin):
        if one.ndim != rank or np.broadcast_shapes(one.shape, x.shape) != x.shape:
            raise UnsuitedError("angles of another shape")
    return ours.rotary_position_embedding(x, cos, sin, 0)


# --- Linear layers ----------------------------------------------------------------------------------


def _linear(found: Found) -> Any:
    x, weight, bias = (found.values[name] for name in ("x", "w", "b"))
    weight, bias = np.asarray(weight), np.asarray(bias)
    if "t" in found.nodes:
        if [*found.attributes("t").get("perm", (1, 0))] != [1, 0]:
            raise UnsuitedError("no transposed weight")
        weight = weight.T
        found.call(weight, found.names["w"])
    if x.ndim < 2 or weight.ndim != 2 or bias.shape != weight.shape[1:]:
        raise UnsuitedError("no linear layer")
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return ours.addmm(bias, rows, weight).reshape(*x.shape[:-1], weight.shape[1])


def _patterns() -> tuple[Pattern, ...]:
    constants = frozenset
    found: list[tuple[str, str, Any, Any]] = [
        *(("quantized_conv", one, quantized_convolution, "w") for one in quantized_texts("conv")),
        *(("quantized_gemm", one, quantized_gemm, "w") for one in quantized_texts("gemm")),
        *(("quantized_matmul", one, quantized_product, "w") for one in quantized_texts("matmul")),
        (
            "quantized_weight",
            "MatMul(x, dw := DequantizeLinear(w, sw, zw_))",
            product_of_weight,
            "w",
        ),
        (
            "quantized_weight",
            "(g := Gemm(x, dw := DequantizeLinear(w, sw, zw_), c_))",
            gemm_of_weight,
            "w",
        ),
        *(("attention", text, _attention, ()) for text in _ATTENTIONS),
        *(("layer_norm", f"Add(Mul({text}, w), b)", _layer_norm, "wb") for text in _LAYER_NORMS),
        *(("layer_norm", f"Mul({text}, w)", _layer_norm, "w") for text in _LAYER_NORMS),
        *(("layer_norm", _head(text), _layer_norm, "") for text in _LAYER_NORMS),
        *(("rms_norm", f"Mul({text}, w)", _rms_norm, "w") for text in _RMS_NORMS),
        *(("rms_norm", _head(text), _rms_norm, "") for text in _RMS_NORMS),
        *(
            ("gelu", text, _gelu, ())
            for argument in _ERF_ARGUMENTS
            for text in _halved(f"Add(Erf({argument}), 1)")
        ),
        *(
            ("gelu_tanh", text, _gelu_by_tanh, ())
            for argument in _TANH_ARGUMENTS
            for text in _halved(f"Add(Tanh({argument}), 1)")
        ),
        ("rotary", _ROTARIES[0], _rotary, ()),
        ("silu", "Mul(x, Sigmoid(x))", _silu, ()),
        ("swish", "Mul(x, Sigmoid(Mul(x, B)))", _swish, ()),
        ("mish", "Mul(x, Tanh(Softplus(x)))", _mish, ()),
        ("hard_swish", "Mul(x, s := HardSigmoid(x))", _hard_swish, ()),
        ("hard_swish", "Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", _hard_swish, ()),
        ("hard_swish", "Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))", _hard_swish, ()),
        ("linear", "Add(MatMul(x, t := Transpose(w)), b)", _linear, "wb"),
        ("linear", "Add(MatMul(x, w), b)", _linear, "wb"),
    ]
    return tuple([Pattern(name, text, form, constants(known)) for name, text, form, known in found])


def _head(text: str) -> str:
    """A text whose last node is there for certain."""
    return text.removeprefix("o := Cast_(").removesuffix(")")


PATTERNS = _patterns()
