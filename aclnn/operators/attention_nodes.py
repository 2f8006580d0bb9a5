"""Attention as a node: operands in the order that its kernel takes them, as views of four dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from aclnn.acl.constants import aclDataType
from aclnn.operators.lowering import Lowering, graph_dtype

Shape = tuple[int, ...]

# The operands of a node, in order; `aclnn/kernels/_attention_kernels.pyx` says what they are.
INPUTS = (
    *("query", "key", "value", "query_rope", "key_rope", "mask", "shift", "sink", "lengths"),
    *("key_lengths", "table", "key_prefix", "value_prefix", "prefix_length", "query_padding"),
    *("key_padding", "slopes"),
)
RESULTS = ("out", "first", "second")
EVERYTHING = 1 << 40  # as many keys before or after a query as there can be
ACCURACY = (
    "Sums and exponentials are float32, rounded once to the result's dtype: results are within "
    "(D + 24)·2⁻²⁴ times the largest score, plus 2⁻²⁰, of the exact ones relative to the largest "
    "value, and half a unit in the last place of the result's dtype."
)


def attend(
    lowering: Lowering,
    operands: Mapping[str, int],
    results: Mapping[str, tuple[aclDataType, Shape]],
    scale: object,
    **options: object,
) -> dict[str, int]:
    """One node of attention: its results by name.

    `operands` and `results` are named as in `INPUTS` and `RESULTS`; `options` are those of
    `AttentionState`.
    """
    arguments = [name for name in INPUTS if name in operands]
    made = [name for name in RESULTS if name in results]
    found = lowering.builder.compute_all(
        "attention_sums" if "second" in results else "attention",
        [operands[name] for name in arguments],
        [(results[name][1], graph_dtype(results[name][0])) for name in made],
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        operands=(*arguments, *made),
        present=_present(lowering, operands, (*arguments[3:], *made[1:]), options),
        params=(scale,),
        **_pages_read(lowering, operands, arguments),
        **options,
    )
    return dict(zip(made, found, strict=True))


def _pages_read(
    lowering: Lowering, operands: Mapping[str, int], arguments: Sequence[str]
) -> dict[str, object]:
    """Limits of what a node reads of caches in pages: no more of them than its table names."""
    if "table" not in operands:
        return {}
    pages = math.prod(lowering.builder.shape(operands["table"]))
    cached = [role for role in ("key", "value", "key_rope") if role in operands]
    sizes = [math.prod(lowering.builder.shape(operands[role])[1:]) for role in cached]
    places = [arguments.index(role) for role in cached]
    return {"reads_at_most": tuple([(at, pages * n) for at, n in zip(places, sizes, strict=True)])}


def gradients(
    lowering: Lowering,
    operands: Mapping[str, int],
    dtype: aclDataType,
    scale: object,
    **options: object,
) -> tuple[int, int, int]:
    """One node for the gradients of query, key and value, which are like these.

    `operands` are those of `attend`, without optional ones but for mask and shift, and `first`, `second`, `grad`
    and `output`.
    """
    arguments = [
        name for name in (*INPUTS, "first", "second", "grad", "output") if name in operands
    ]
    shapes = [lowering.builder.value(operands[role]).shape for role in ("query", "key", "value")]
    return lowering.builder.compute_all(
        "attention_gradient",
        [operands[name] for name in arguments],
        [(shape, graph_dtype(dtype)) for shape in shapes],
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        operands=(*arguments, "grad_query", "grad_key", "grad_value"),
        present=_present(
            lowering,
            operands,
            [name for name in arguments[3:] if name not in ("first", "grad", "output")],
            options,
        ),
        params=(scale,),
        **options,
    )


def _present(
    lowering: Lowering,
    operands: Mapping[str, int],
    named: Sequence[str],
    options: Mapping[str, object],
) -> tuple[str, ...]:
    """Parts of a node that others lack, for those who write it in other operators."""
    heads = {lowering.builder.value(operands[role]).shape[1] for role in ("query", "key")}
    chosen = [name for name, value in options.items() if value not in ((), False, "shows")]
    return (*named, *chosen, *(["fewer heads"] if len(heads) > 1 else []))


def scale_of(lowering: Lowering, role: str, depth: int) -> object:
    """The factor of scores: by default one over the square root of the heads' size."""
    if not lowering.call.scalars[role].absent:
        return lowering.number(role, "exact")
    return 1 / math.sqrt(depth) if depth else math.inf


def in_four(lowering: Lowering, value: int, shape: Sequence[int]) -> int:
    """A value broadcast to a shape of at least two dimensions, of which all but three become one."""
    whole = lowering.builder.broadcast_to(value, tuple(shape))
    return lowering.reshaped(whole, four_of(shape))


def four_of(shape: Sequence[int]) -> Shape:
    """
    >>> four_of((5, 4)), four_of((2, 3, 5, 4)), four_of((6, 2, 3, 5, 4))
    ((1, 1, 5, 4), (2, 3, 5, 4), (12, 3, 5, 4))
    """
    *batch, heads, rows, cols = (1, *shape) if len(shape) < 3 else shape
    return (math.prod(batch), heads, rows, cols)
