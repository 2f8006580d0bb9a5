"""Gated units, rotations and the norm of channels, and gradients."""

from __future__ import annotations

from .record import HandForm, Record, VectorForm, point

RECORDS: tuple[Record, ...] = (
    point(
        "times_silu",
        "a x",
        cost=0.7,
        computed_in="double",
        forms="f64",
        vectors=VectorForm(
            rel_error=6.5e-07, rel_error_f16=4.9e-07, direct=True, direct_f32=True, in_steps=False
        ),
        onnx="a * x * Sigmoid(x)",
    ),
    point(
        "swiglu_backward_a",
        "g a b",
        cost=3.0,
        computed_in="double",
        forms="f64",
        onnx="s = Sigmoid(a); g * b * s * (1 + a * (1 - s))",
    ),
    point(
        "glu",
        "a b",
        cost=0.7,
        computed_in="double",
        forms="f64",
        vectors=VectorForm(rel_error=5.9e-07, rel_error_f16=4.2e-07, direct=True, direct_f32=True),
        onnx="a * Sigmoid(b)",
    ),
    point(
        "glu_backward_b",
        "g a b",
        cost=2.5,
        computed_in="double",
        forms="f64",
        onnx="s = Sigmoid(b); g * a * s * (1 - s)",
    ),
    point(
        "times_gelu",
        "a x",
        cost=1.0,
        computed_in="double",
        by_hand=HandForm("gelu", "times_gelu", classify="classify_times_gelu"),
        onnx="a * Gelu(x)",
    ),
    point(
        "times_gelu_tanh",
        "a x",
        cost=0.7,
        computed_in="double",
        vectors=VectorForm(decay="75.0 / 9.4", half_in_pairs=True),
        onnx='a * Gelu(x, approximate="tanh")',
    ),
    point(
        "times_gelu_backward",
        "g a x",
        cost=3.0,
        computed_in="double",
        onnx="g * a * (0.5 * (1 + Erf(0.7071067811865476 * x)) + 0.3989422804014327 * x * Exp(-0.5 * x * x))",
    ),
    point(
        "times_gelu_backward_tanh",
        "g a x",
        cost=3.0,
        computed_in="double",
        onnx="t = Tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); g * a * 0.5 * (1 + t + x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x))",
    ),
    point(
        "fatrelu_mul",
        "x y least",
        cost=0.2,
        computed_in="real",
        forms="half",
        onnx="Where(x < least, 0, x) * y",
    ),
    point(
        "clipped_swiglu",
        "b a",
        "alpha limit bias",
        cost=0.7,
        computed_in="double",
        vectors=VectorForm(decay="p[0]", half_in_pairs=True, has_zeros=True),
        onnx="gate = Min(a, limit); gate * Sigmoid(alpha * gate) * (Max(Min(b, limit), -limit) + bias)",
    ),
    point(
        "clipped_swiglu_backward_a",
        "g a b",
        "alpha limit bias",
        cost=3.0,
        computed_in="double",
        onnx="gate = Min(a, limit); s = Sigmoid(alpha * gate); factor = Max(Min(b, limit), -limit) + bias; Where(a <= limit, g * factor * s * (1 + alpha * gate * (1 - s)), 0)",
    ),
    point(
        "clipped_swiglu_backward_b",
        "g a b",
        "alpha limit bias",
        cost=2.5,
        computed_in="double",
        onnx="gate = Min(a, limit); Where(Abs(b) <= limit, g * gate * Sigmoid(alpha * gate), 0)",
    ),
    point(
        "rotated", "x c y s", "sign", cost=0.2, computed_in="double", onnx="x * c + sign * y * s"
    ),
    point(
        "channel_norm",
        "x mean scale bias",
        cost=0.2,
        computed_in="double",
        onnx="(x - mean) * scale + bias",
    ),
    point(
        "channel_norm_silu",
        "x mean scale bias",
        cost=2.5,
        computed_in="double",
        onnx="y = (x - mean) * scale + bias; y * Sigmoid(y)",
    ),
)
