"""Attention and its gradients."""

from __future__ import annotations

from dataclasses import replace

from ..record import OnnxBody, Operand, Record, opaque, operands

_NEEDED = "query:whole key:whole value:whole"
_OPTIONAL = (
    "query_rope:whole key_rope:whole mask:whole shift:whole sink:whole lengths:whole key_lengths:whole "
    "table:whole key_prefix:whole value_prefix:whole prefix_length:whole query_padding:whole "
    "key_padding:whole slopes:whole"
)
_SCORES = "s = scale * MatMul(query, Transpose(key, perm=[0, 1, 3, 2]))"
_SHIFTED = f"{_SCORES} + shift"
_SHOWN = f"t = mask > 0; {_SCORES.replace('s = ', 's = Where(t, ')}, -3e38)"
_WEIGHED = "MatMul(Softmax(s, axis=-1), value)"
_WEIGHED_SHOWN = "MatMul(Where(t, Softmax(s, axis=-1), 0), value)"
_LOGARITHM = "h = ReduceMax(s, axes); first = h + Log(ReduceSum(Exp(s - h), axes))"
_SLOPES = (
    "p = Exp(s - first); "
    "d = p * (MatMul(grad, Transpose(value, perm=[0, 1, 3, 2])) - ReduceSum(grad * output, axes)); "
    "grad_query = scale * MatMul(d, key); "
    "grad_key = scale * MatMul(Transpose(d, perm=[0, 1, 3, 2]), query); "
    "grad_value = MatMul(Transpose(p, perm=[0, 1, 3, 2]), grad)"
)


def _bodies(scores: str, weighed: str, more: str = "") -> tuple[OnnxBody, ...]:
    """With and without the logarithm of the sum, of nodes that have nothing but these operands."""
    takes, own = f"query key value {more}", f'"{more}"' if more else ""
    return (
        OnnxBody(f"{scores}; {weighed}", takes=takes, when=f"present == {{*[{own}]}}"),
        OnnxBody(
            f"{scores}; {_LOGARITHM}; out = {weighed}",
            takes=takes,
            when=f'present == {{"first", *[{own}]}}',
        ),
    )


def _sums(scores: str, more: str = "") -> OnnxBody:
    return OnnxBody(
        f"{scores}; h = ReduceMax(s, axes); e = Exp(s - h); t = ReduceSum(e, axes); "
        "first = Concat(h, h, h, h, h, h, h, h, axis=-1); "
        "second = Concat(t, t, t, t, t, t, t, t, axis=-1); out = MatMul(e / t, value)",
        takes=f"query key value {more}",
        when=f'present == {{"first", "second", *{[more] if more else []}}}',
    )


def _gradient(scores: str, *more: str) -> OnnxBody:
    """Gradient of a logarithm, or of a maximum and a sum."""
    slopes = (
        _SLOPES.replace("Exp(s - first)", "Exp(s - first) / second")
        if "second" in more
        else _SLOPES
    )
    return OnnxBody(
        f"{scores}; {slopes}",
        takes=f"query key value {' '.join(more)} first grad output",
        when=f"present == {{*{[*more]}}}",
    )


def _optional(words: str) -> tuple[Operand, ...]:
    return tuple([replace(one, optional=True) for one in operands(words)])


def _record(
    name: str, outputs: str, onnx: tuple[OnnxBody, ...], before: str = "", after: str = ""
) -> Record:
    """A kernel with operands that there may be, or not."""
    made = opaque(
        name,
        "",
        "scale",
        outputs=outputs,
        body="attention",
        factory="attention_kernels:attention_kernel",
        scratch=True,
        arguments="""
            shift_first, window, anchored, tree, cumulative, key_cumulative, slope_root
            operands, views, mask = tuple(attr("operands")), views, attr("mask", "hides")
            prefix, lengths = attr("prefix", ()), attr("lengths", ())
            key_lengths, ahead = attr("key_lengths", ()), attr("ahead", 0)
            """,
        onnx=onnx,
    )
    inputs = (*operands(_NEEDED), *_optional(_OPTIONAL), *operands(before), *_optional(after))
    if before:  # the gradient of the result is the last
        inputs = (*inputs, *operands("grad:whole output:whole"))
    return replace(made, inputs=inputs)


RECORDS: tuple[Record, ...] = (
    _record(
        "attention",
        "out:whole first:whole",
        (
            *_bodies(_SCORES, _WEIGHED),
            *_bodies(_SHIFTED, _WEIGHED, "shift"),
            *_bodies(_SHOWN, _WEIGHED_SHOWN, "mask"),
        ),
    ),
    _record(
        "attention_sums",
        "out:whole first:whole second:whole",
        (_sums(_SCORES), _sums(_SHIFTED, "shift")),
    ),
    _record(
        "attention_gradient",
        "grad_query:whole grad_key:whole grad_value:whole",
        (
            _gradient(_SCORES),
            _gradient(_SHIFTED, "shift"),
            _gradient(_SCORES, "second"),
        ),
        before="first:whole",
        after="second:whole",
    ),
)
