"""Operators of ONNX Runtime's own domain, `com.microsoft`, composed of ours.

Exporters for generation and quantisation write them. Variants that are not composed here, such as quantised
caches, are refused, so that ONNX Runtime computes these nodes where it is installed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.onnx.few_bits import (
    EVERY_BITS,
    FewBits,
    few_bits,
    kept,
    product,
    product_of_groups,
    unpacked,
)
from aclnn.onnx.forms import FORMS
from aclnn.onnx.quantized_forms import matrix_product
from aclnn.onnx.schemas import STANDARD
from aclnn.onnx.steps import Form, NeededError, Step, from_start
from aclnn.tracing.array import TracedArray

ours: Any = functional  # whose names are made from declarations
DOMAIN = "com.microsoft"
LEAST_BLOCK = 16


# --- Norms and activations --------------------------------------------------------------------------


def _skipped(step: Step, bias: Any) -> Any:
    """The sum of input, skip and bias, where there is one."""
    made = ours.add(step.inputs[0], step.inputs[1])
    return made if bias is None else ours.add(made, bias)


def _skip_layer_norm(step: Step) -> Any:
    made, gamma, beta = _skipped(step, step.given(4)), step.inputs[2], step.given(3)
    eps = step.attribute("epsilon", 1e-12)
    y, mean, scale = ours.native_layer_norm(made, gamma.shape, gamma, beta, eps)
    return y, mean, scale, made


def _skip_rms_norm(step: Step) -> Any:
    made, gamma = _skipped(step, step.given(3)), step.inputs[2]
    y, scale = ours.native_rms_norm(made, gamma, step.attribute("epsilon", 1e-12))
    return y, None, scale, made


def _rms_norm(step: Step) -> Any:
    x, scale = step.inputs
    shape = x.shape[from_start(step.attribute("axis", -1), x.ndim) :]
    return ours.native_rms_norm(x, scale.reshape(*shape), step.attribute("epsilon", 1e-5))


def _bias_gelu(step: Step) -> Any:
    return ours.gelu(ours.add(step.inputs[0], step.inputs[1]))


def _fast_gelu(step: Step) -> Any:
    x, bias = step.inputs[0], step.given(1)
    return ours.gelu(x if bias is None else ours.add(x, bias), approximate="tanh")


def _gelu(step: Step) -> Any:
    return ours.gelu(step.inputs[0])


def _quick_gelu(step: Step) -> Any:
    return ours.swish(step.inputs[0], step.attribute("alpha", 1.702))


def _split_gelu(step: Step) -> Any:
    x = ours.add(step.inputs[0], step.inputs[1])
    half = x.shape[-1] // 2
    return x[..., :half] * ours.gelu(x[..., half:])


# --- Products ---------------------------------------------------------------------------------------


def _turned(array: Any) -> Any:
    order = range(array.ndim)
    return array.transpose(*order[:-2], *order[-2:][::-1]) if array.ndim > 1 else array


def _fused_product(step: Step) -> Any:
    if step.attribute("transBatchA", 0) or step.attribute("transBatchB", 0):
        raise step.refused("transposed batches are not supported")
    a, b = (
        _turned(one) if step.attribute(name, 0) else one
        for one, name in zip(step.inputs, ("transA", "transB"), strict=True)
    )
    made, alpha = ours.matmul(a, b), step.attribute("alpha", 1.0)
    return made if alpha == 1 else made * alpha


_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Clip")


def _fused_convolution(step: Step) -> Any:
    plain = {key: one for key, one in step.attributes.items() if not key.startswith("activation")}
    made = FORMS["Conv"](replace(step, kind="Conv", inputs=step.inputs[:3], attributes=plain))
    if step.given(3) is not None:
        made = ours.add(made, step.given(3))
    return _activated(step, made, step.attribute("activation_params", ()))


def _fused_gemm(step: Step) -> Any:
    plain = {key: one for key, one in step.attributes.items() if not key.startswith("activation")}
    made = FORMS["Gemm"](replace(step, kind="Gemm", attributes=plain))
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    return _activated(step, made, [step.attributes[one] for one in names if one in step.attributes])


def _activated(step: Step, made: Any, numbers: Any) -> Any:
    kind = step.attribute("activation", "")
    if not kind:
        return made
    if kind not in _ACTIVATIONS:
        raise step.refused(f"activation {kind} is not supported")
    if kind == "Clip":
        low, high = numbers
        return ours.clamp(made, float(low), float(high))
    options = dict(zip(("alpha", "beta"), numbers, strict=False))
    return FORMS[kind](replace(step, kind=kind, inputs=(made,), attributes=options))


def _to_floats(step: Step) -> Any:
    """MatMulIntegerToFloat: a product of bytes, scaled."""
    a, b, scale_a, scale_b = step.inputs[:4]
    sums = matrix_product(a, b, step.given(4), step.given(5))
    return _scaled(sums, scale_a, scale_b, step.given(6))


def _scaled(sums: Any, scale_a: Any, scale_b: Any, bias: Any) -> Any:
    made = sums.astype(np.float32) * (scale_a * scale_b)
    return made if bias is None else ours.add(made, bias)


def _dynamic_product(step: Step) -> Any:
    """DynamicQuantizeMatMul: of an array that is quantised by its own range."""
    a, b, scale_b = step.inputs[:3]
    every = list(range(a.ndim))
    low = ours.clamp_max(ours.amin(a, every), 0.0)
    high = ours.clamp_min(ours.amax(a, every), 0.0)
    reach = high - low
    scale = ours.where(ours.eq(reach, 0.0), 1.0, reach / 255.0)
    zero = ours.clamp(ours.round(-low / scale), 0.0, 255.0)
    whole = ours.clamp(ours.round(a / scale) + zero, 0.0, 255.0)
    whole, zero = (one.astype(np.int32).astype(np.uint8) for one in (whole, zero))
    return _scaled(matrix_product(whole, b, zero, step.given(3)), scale, scale_b, step.given(4))


# --- Weights in blocks ------------------------------------------------------------------------------


def _known(step: Step, index: int) -> Any:
    """A constant input; None where it is left out."""
    found = step.given(index)
    if isinstance(found, TracedArray):
        raise NeededError([index])
    return found


def _bits(step: Step) -> int:
    bits = step.attribute("bits", 4)
    if bits not in EVERY_BITS:
        raise step.refused(f"bits is {bits}, must be one of {', '.join(map(str, EVERY_BITS))}")
    return int(bits)


def dequantized(
    integers: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, bits: int, block: int
) -> np.ndarray:
    """Rows of integers of few bits as numbers, with scales and zeros of blocks of the last axis."""
    rows, length = integers.shape[:-1], integers.shape[-1]
    blocks = -(-length // block)
    scales = scales.reshape(*rows, blocks)
    middle: Any = 2 ** (bits - 1)
    if zeros is not None:
        if zeros.dtype == np.uint8:
            zeros = unpacked(zeros.reshape(*rows, -1), bits, blocks)
        middle = np.repeat(zeros.reshape(*rows, blocks).astype(scales.dtype), block, -1)[
            ..., :length
        ]
    wide = np.repeat(scales, block, -1)[..., :length]
    return (integers.astype(scales.dtype) - middle) * wide


def _few_bits_product(step: Step) -> Any:
    """MatMulNBits: by a weight of few bits, which stays so."""
    x, n, k = step.inputs[0], step.required("N"), step.required("K")
    if step.given(4) is not None or step.attribute("weight_prepacked", 0):
        raise step.refused("g_idx and weights that are packed for a device are not supported")
    packed, scales, zeros = (_known(step, index) for index in (1, 2, 3))
    bits, block = _bits(step), step.required("block_size")
    if not packed.size:
        raise step.refused("weights without elements are not supported")
    if x.shape[-1] != k or packed.size * 8 < n * k * bits:
        raise step.refused(f"{list(packed.shape)} is no weight of {k} rows and {n} columns")
    if k % 2 or np.dtype(x.dtype) == np.float64:
        wide = dequantized(unpacked(packed.reshape(n, -1), bits, k), scales, zeros, bits, block)
        made = ours.matmul(x, wide.astype(x.dtype).T)
    else:
        weight = kept(
            packed, (n, k, bits, block),
            lambda: few_bits(packed.reshape(n, -1), scales, zeros, bits, block, k),
        )  # fmt: skip
        made = product(x, weight)
    bias = step.given(5)
    return made if bias is None else ours.add(made, bias)


def _gather_blocks(step: Step) -> Any:
    """GatherBlockQuantized: rows of a table of few bits, which are made numbers after they were taken."""
    table, index, scales, zeros = step.inputs[0], step.inputs[1], step.inputs[2], step.given(3)
    rank = table.ndim
    along = from_start(step.attribute("quantize_axis", 1), rank)
    if from_start(step.attribute("gather_axis", 0), rank) or along != rank - 1:
        raise step.refused("only rows with blocks of their last axis are supported")
    if isinstance(table, TracedArray) or table.dtype.name not in ("uint8", "int4", "uint4"):
        raise step.refused("only constants of uint8 or four bits are supported")
    block = step.attribute("block_size", 128)
    if table.dtype == np.uint8:
        bits = _bits(step)
        middle, count = 2 ** (bits - 1), table.shape[-1] * (8 // bits)
    else:
        bits, middle, count = 8, 0, table.shape[-1]
        table = table.astype(np.int8)
        zeros = None if zeros is None else np.asarray(zeros).astype(np.int8)
    rows = ours.gather_v2(table, 0, index)
    own_scales = _spread(ours.gather_v2(scales, 0, index), block, count)
    whole = _few_bits(rows, bits)
    if zeros is None:
        centred = ours.sub(whole, middle)
    else:
        own = _few_bits(ours.gather_v2(np.asarray(zeros), 0, index), bits)
        own = own[..., : scales.shape[-1]]
        centred = ours.sub(whole, _spread(own, block, count))
    return centred.astype(scales.dtype) * own_scales


def _few_bits(packed: Any, bits: int) -> Any:
    """Integers of few bits of traced bytes, as int32."""
    wide = packed.astype(np.int32)
    if bits == 8:
        return wide
    parts = [
        ours.remainder(ours.floor_divide(wide, 2 ** (bits * n)), 2**bits) for n in range(8 // bits)
    ]
    made = ours.stack(parts, -1)
    return made.reshape(*packed.shape[:-1], packed.shape[-1] * (8 // bits))


def _spread(numbers: Any, block: int, count: int) -> Any:
    """Numbers of blocks for each of their elements."""
    wide = ours.repeat_interleave(numbers, block, numbers.ndim - 1)
    return wide if wide.shape[-1] == count else wide[..., :count]


# --- Attention --------------------------------------------------------------------------------------


def _heads(array: Any, count: int) -> Any:
    """Rows of all heads as [batch, head, row, element]."""
    if array.ndim == 4:
        return array
    batch, rows, size = array.shape
    return array.reshape(batch, rows, count, size // count).transpose(0, 2, 1, 3)


def _rows(array: Any) -> Any:
    """Heads as rows of all of them, the other way round."""
    batch, heads, rows, size = array.shape
    return array.transpose(0, 2, 1, 3).reshape(batch, rows, heads * size)


def _lowest(dtype: Any) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(np.dtype(dtype)).min)


def _added(masks: list[Any]) -> Any:
    made = None
    for one in masks:
        if one is not None:
            made = one if made is None else ours.add(made, one)
    return made


def _causal(rows: int, length: int, dtype: Any) -> np.ndarray:
    """A mask under which a row sees what is not after it, where the last row is the last element."""
    seen = np.arange(length) <= np.arange(rows)[:, None] + (length - rows)
    return np.where(seen, 0, _lowest(dtype)).astype(dtype).reshape(1, 1, rows, length)


def _hiding(seen: Any, step: Step, dtype: Any) -> Any:
    """The mask that is added where nothing is to be seen."""
    hidden = np.asarray(step.attribute("mask_filter_value", -10000.0), dtype)
    if not isinstance(seen, TracedArray):
        return np.where(seen, np.zeros((), dtype), hidden).astype(dtype)
    return ours.where(seen, np.zeros((), dtype), hidden)


def _padding(step: Step, mask: Any, rows: int, length: int, dtype: Any) -> Any:
    """The mask of keys that is added, from lengths, their ends and begins, or a truth for each."""
    if mask is None:
        return None
    places = np.arange(length, dtype=np.int32)
    if mask.ndim == 1:
        batch = step.inputs[0].shape[0]
        if mask.shape[0] not in (batch, 2 * batch):
            raise step.refused("a mask of lengths and offsets is not supported")
        seen = _less(places, mask[:batch].reshape(batch, 1))
        if mask.shape[0] == 2 * batch:
            begins = mask[batch:].reshape(batch, 1)
            seen = seen & _less(begins - 1, places)
        return _hiding(seen.reshape(batch, 1, 1, length), step, dtype)
    if mask.ndim == 2:
        seen = mask.reshape(mask.shape[0], 1, 1, mask.shape[1])
    elif mask.ndim == 3:
        seen = mask.reshape(mask.shape[0], 1, *mask.shape[1:])
    else:  # of the longest rows: those of these queries are the last ones
        seen = mask[:, :, length - rows : length, :length]
    return _hiding(ours.ne(seen, 0) if isinstance(seen, TracedArray) else seen != 0, step, dtype)


def _less(one: Any, other: Any) -> Any:
    if isinstance(one, TracedArray):
        return ours.lt(one, other)
    return ours.gt(other, one) if isinstance(other, TracedArray) else one < other


def _attended(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    if mask is not None and np.dtype(mask.dtype) != np.dtype(q.dtype):
        mask = mask.astype(q.dtype)
    many = q.shape[1] != k.shape[1]
    return ours.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=many)


def _scale_of(step: Step, size: int) -> float:
    return float(step.attribute("scale", 0.0) or 1 / math.sqrt(size))


def _multi_head_attention(step: Step) -> Any:
    query, key, value, bias, padding, added, past_key, past_value = (
        step.given(index) for index in range(8)
    )
    if any(step.given(index) is not None for index in (8, 9)) or step.n_outputs not in (1, 3):
        raise step.refused("buffers of fixed lengths are not supported")
    heads = step.required("num_heads")
    if query.ndim == 5:  # of each head q, k and v side by side
        q, k, v = (query[:, :, :, n].transpose(0, 2, 1, 3) for n in range(3))
    elif key is not None and key.ndim == 5:
        q = query
        k, v = (key[:, :, :, n].transpose(0, 2, 1, 3) for n in range(2))
    else:
        q, k, v = query, key, value
    if bias is not None:
        sizes = [
            one.shape[-1] if one.ndim == 3 else one.shape[1] * one.shape[3] for one in (q, k, v)
        ]
        ends = np.cumsum(sizes).tolist()
        parts = [bias[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        q, k, v = (
            ours.add(one, part) if one.ndim == 3 else one
            for one, part in zip((q, k, v), parts, strict=True)
        )
        if key is not None and key.ndim != 3:
            raise step.refused("a bias of packed heads is not supported")
    q, k, v = (_heads(one, heads) for one in (q, k, v))
    if past_key is not None:
        k, v = ours.cat([past_key, k], 2), ours.cat([past_value, v], 2)
    rows, length, dtype = q.shape[2], k.shape[2], q.dtype
    masks = [_padding(step, padding, rows, length, dtype), added]
    if step.attribute("unidirectional", 0):
        masks.append(_causal(rows, length, dtype))
    made = _attended(q, k, v, _added(masks), _scale_of(step, q.shape[-1]))
    return _rows(made), k, v, None


def _attention(step: Step) -> Any:
    x, weight, bias, mask, past, added = (step.given(index) for index in range(6))
    if step.attribute("do_rotary", 0) or step.given(6) is not None:
        raise step.refused("rotation and buffers of fixed lengths are not supported")
    made = ours.matmul(x, weight)
    made = made if bias is None else ours.add(made, bias)
    return _attended_parts(step, made, mask, past, added)


def _attended_parts(step: Step, made: Any, mask: Any, past: Any, added: Any) -> Any:
    """Attention of queries, keys and values that stand side by side."""
    heads, size = step.required("num_heads"), made.shape[-1]
    sizes = [*step.attribute("qkv_hidden_sizes", (size // 3,) * 3)]
    ends = np.cumsum(sizes).tolist()
    q, k, v = (
        _heads(made[..., end - one : end], heads) for end, one in zip(ends, sizes, strict=True)
    )
    if past is not None:
        k, v = ours.cat([past[0], k], 2), ours.cat([past[1], v], 2)
    rows, length, dtype = q.shape[2], k.shape[2], q.dtype
    masks = [_padding(step, mask, rows, length, dtype), added]
    if step.attribute("unidirectional", 0):
        masks.append(_causal(rows, length, dtype))
    result = _rows(_attended(q, k, v, _added(masks), _scale_of(step, q.shape[-1])))
    return (result, ours.stack([k, v], 0)) if step.n_outputs > 1 else result


def _quantized_attention(step: Step) -> Any:
    x, weight, bias, scale_x, scale_w, mask, zero_x, zero_w, past = (
        step.given(index) for index in range(9)
    )
    if step.attribute("do_rotary", 0):
        raise step.refused("rotation is not supported")
    made = _scaled(matrix_product(x, weight, zero_x, zero_w), scale_x, scale_w, bias)
    return _attended_parts(step, made, mask, past, None)


# --- Rotary embedding and grouped queries -----------------------------------------------------------


def _rotated(x: Any, cos: Any, sin: Any, is_interleaved: bool) -> Any:
    """The first elements of heads in pairs, turned by angles; cos and sin are [batch, 1, row, pair]."""
    size = 2 * cos.shape[-1]
    first, rest = (x[..., :size], x[..., size:]) if size < x.shape[-1] else (x, None)
    if is_interleaved:
        one, other = first[..., 0::2], first[..., 1::2]
    else:
        one, other = first[..., : size // 2], first[..., size // 2 :]
    parts = [one * cos - other * sin, other * cos + one * sin]
    pairs = ours.stack(parts, -1).reshape(*first.shape) if is_interleaved else None
    made = ours.cat(parts, -1) if pairs is None else pairs
    return made if rest is None else ours.cat([made, rest], -1)


def _angles(cache: Any, places: Any) -> Any:
    """Rows of a table for places [batch, row], as [batch, 1, row, pair]."""
    found = ours.gather_v2(cache, 0, places) if isinstance(places, TracedArray) else cache[places]
    return found.reshape(found.shape[0], 1, *found.shape[1:])


def _rotary(step: Step) -> Any:
    x, places, cos, sin = step.inputs
    if step.attribute("is_packed_batching", 0) or step.attribute("scale", 1.0) != 1:
        raise step.refused("packed batches and scales are not supported")
    size = step.attribute("rotary_embedding_dim", 0)
    count = step.attribute("num_heads", 0)
    if x.ndim == 3:
        each = x.shape[-1] // count if count else 2 * cos.shape[-1]
        heads = _heads(x, x.shape[-1] // each)
    else:
        heads = x
    if size and size != 2 * cos.shape[-1]:
        raise step.refused(f"rotary_embedding_dim is {size}, the table has {cos.shape[-1]} pairs")
    rows = heads.shape[2]
    if places.ndim == 1:  # the place of the first row
        places = places.reshape(1, 1) + np.arange(rows, dtype=np.int64)
    made = _rotated(
        heads, _angles(cos, places), _angles(sin, places), bool(step.attribute("interleaved", 0))
    )
    return _rows(made) if x.ndim == 3 else made


_UNSUPPORTED_GROUPED = {
    "softcap": 0.0, "smooth_softmax": 0, "qk_output": 0, "sliding_window_cache": 0,
    "k_quant_type": "NONE", "v_quant_type": "NONE", "kv_cache_bit_width": 0,
}  # fmt: skip


def _grouped_attention(step: Step) -> Any:
    """GroupQueryAttention: with a cache that new keys and values are put into, each batch at its place."""
    query, key, value, past_key, past_value, lengths = (step.given(index) for index in range(6))
    for name, default in _UNSUPPORTED_GROUPED.items():
        if step.attribute(name, default) not in (default, -1):
            raise step.refused(f"{name} is not supported")
    if any(step.given(index) is not None for index in range(11, 17)) or step.n_outputs > 3:
        raise step.refused("sinks, norms and scales of caches are not supported")
    heads, own = step.required("num_heads"), step.required("kv_num_heads")
    if key is None:  # q, k and v side by side
        size = query.shape[-1] // (heads + 2 * own)
        ends = [heads * size, (heads + own) * size]
        query, key, value = (
            query[..., : ends[0]],
            query[..., ends[0] : ends[1]],
            query[..., ends[1] :],
        )
    q, k, v = _heads(query, heads), _heads(key, own), _heads(value, own)
    rows, batch = q.shape[2], q.shape[0]
    total = int(step.scalar(6))
    is_first = rows == total
    begin: Any = np.zeros((batch, 1), np.int64)
    if not is_first:
        begin = (lengths.reshape(batch, 1) + (1 - rows)).astype(np.int64)
    places = begin + np.arange(rows, dtype=np.int64)
    if step.attribute("do_rotary", 0):
        cos, sin = step.given(7), step.given(8)
        argument = step.given(9)
        at = places if argument is None or is_first else argument
        turned = bool(step.attribute("rotary_interleaved", 0))
        angles = _angles(cos, at), _angles(sin, at)
        q, k = (_rotated(one, *angles, turned) for one in (q, k))
    room = 0 if past_key is None else past_key.shape[2]
    length = max(total, room)
    k, v = (_cached(past, one, begin, length) for past, one in ((past_key, k), (past_value, v)))
    mask = _added([_window(step, places, length, q.dtype), _wide_bias(step.given(10), length)])
    made = _attended(q, k, v, mask, _scale_of(step, q.shape[-1]))
    return _rows(made), k, v


def _wide_bias(bias: Any, length: int) -> Any:
    if bias is None or bias.shape[-1] == length:
        return bias
    return ours.constant_pad_nd(bias, [0, length - bias.shape[-1]], 0)


def _window(step: Step, places: Any, length: int, dtype: Any) -> Any:
    """The mask that is added for keys that a row at its place does not see."""
    if not step.attribute("causal", 1):
        raise step.refused("attention in both directions is not supported")
    at = places.reshape(places.shape[0], 1, places.shape[1], 1)
    keys, size = np.arange(length, dtype=np.int64), step.attribute("local_window_size", -1)
    seen = _less(keys, at + 1)
    if size > 0:
        seen = seen & _less(at - size, keys)
    if isinstance(seen, TracedArray):
        return ours.where(seen, np.zeros((), dtype), np.asarray(-np.inf, dtype))
    return np.where(seen, 0, -np.inf).astype(dtype)


def _cached(past: Any, new: Any, begin: Any, length: int) -> Any:
    """A cache of a length with new rows from their place on, and nothing after them."""
    batch, heads, rows, size = new.shape
    if not isinstance(begin, TracedArray) and not begin.any() and rows == length:
        return new
    places = np.arange(length, dtype=np.int64).reshape(1, length) - begin  # among the new ones
    column = (batch, 1, length, 1)
    if isinstance(places, TracedArray):
        near = ours.clamp(places, 0, rows - 1).reshape(column)
        index = near.broadcast_to((batch, heads, length, size)).copy()
    else:
        near = places.clip(0, rows - 1).reshape(column)
        index = np.ascontiguousarray(np.broadcast_to(near, (batch, heads, length, size)))
    made = ours.where(_less(places, rows).reshape(column), ours.gather(new, 2, index), 0.0)
    if past is None:
        return made
    if past.shape[2] < length:
        past = ours.constant_pad_nd(past, [0, 0, 0, length - past.shape[2]], 0)
    return ours.where(_less(places, 0).reshape(column), past, made)


# --- Mixtures of experts ----------------------------------------------------------------------------


def _mixture(step: Step) -> Any:
    x, router = step.inputs[:2]
    weights = [(step.given(weight), step.given(bias)) for weight, bias in ((2, 3), (4, 5), (6, 7))]
    return _mixed(step, x, router, weights)


def _quantized_mixture(step: Step) -> Any:
    x, router = step.inputs[:2]
    if step.attribute("quant_type", "int") != "int" or any(
        step.given(index) is not None for index in range(14, 21)
    ):
        raise step.refused("only weights of integers are supported")
    bits, block = step.attribute("expert_weight_bits", 4), step.attribute("block_size", 0)
    if bits not in EVERY_BITS or any(
        f"fc{n}_expert_weight_bits" in step.attributes for n in (1, 2, 3)
    ):
        raise step.refused(f"weights of {bits} bits are not supported")
    weights: list[tuple[Any, Any]] = []
    for index, zeros in ((2, 11), (5, 12), (8, 13)):
        packed, scales, zero = (_known(step, one) for one in (index, index + 1, zeros))
        if packed is None:
            weights.append((None, None))
            continue
        k = packed.shape[-1] * (8 // bits)
        arguments = (packed, scales, zero, bits, block or k, k)
        weight = kept(packed, (k, bits, block), partial(few_bits, *arguments))
        weights.append((weight, step.given(index + 2)))
    return _mixed(step, x, router, weights)


def _mixed(step: Step, x: Any, router: Any, weights: Any) -> Any:
    """The results of the experts that each row chooses, weighted by their shares.

    Rows are sorted by experts, once for each expert that they choose, so that each expert multiplies the
    rows that chose it and no others.
    """
    (first, shift), (second, end), (gate, gate_shift) = weights
    if step.attribute("use_sparse_mixer", 0):
        raise step.refused("sparse mixers are not supported")
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    count, best = router.shape[-1], step.attribute("k", 1)
    values, places = ours.topk(ours.softmax(router, -1), best, -1, True, True)
    if step.attribute("normalize_routing_weights", 0):
        values = values / ours.sum(values, [-1], True)
    chosen = places.reshape(rows.shape[0] * best).astype(np.int64)
    experts, order = ours.sort(chosen, 0, False, stable=True)
    counts = ours.sum(
        ours.eq(chosen.reshape(1, -1), np.arange(count).reshape(-1, 1)).astype(np.int64), [1], False
    )
    taken = ours.gather_v2(rows, 0, ours.floor_divide(order, best))
    hidden = _linear(taken, first, shift, counts, experts)
    other = None if gate is None else _linear(taken, gate, gate_shift, counts, experts)
    made = _linear(_of_expert(step, hidden, other), second, end, counts, experts)
    # The place of each choice among the sorted ones.
    back = ours.sort(order, 0, False, stable=True)[1]
    each = ours.gather_v2(made, 0, back).reshape(rows.shape[0], best, made.shape[-1])
    shares = values.astype(made.dtype).reshape(rows.shape[0], best, 1)
    return ours.sum(each * shares, [1], False).reshape(*x.shape[:-1], made.shape[-1])


def _linear(rows: Any, weight: FewBits | Any, shifts: Any, counts: Any, experts: Any) -> Any:
    made = product_of_groups(rows, weight, counts)
    return made if shifts is None else ours.add(made, ours.gather_v2(shifts, 0, experts))


def _of_expert(step: Step, hidden: Any, other: Any) -> Any:
    kind = step.attribute("activation_type", "relu")
    if kind != "swiglu":
        if kind not in ("relu", "gelu", "silu", "identity"):
            raise step.refused(f"activation_type is {kind}, which is not supported")
        made = hidden if kind == "identity" else getattr(ours, kind)(hidden)
        return made if other is None else made * other
    fusion = step.attribute("swiglu_fusion", 0)
    if step.attribute("swiglu_limit_after_activation", 0):
        raise step.refused("limits after the activation are not supported")
    if fusion:
        half = hidden.shape[-1] // 2
        hidden, other = (
            (hidden[..., 0::2], hidden[..., 1::2])
            if fusion == 1
            else (hidden[..., :half], hidden[..., half:])
        )
    limit = step.attribute("swiglu_limit", math.inf)
    if math.isfinite(limit):
        hidden, other = ours.clamp_max(hidden, limit), ours.clamp(other, -limit, limit)
    gated = ours.swish(hidden, step.attribute("activation_alpha", 1.0))
    return gated * (other + step.attribute("activation_beta", 0.0))


OF_RUNTIME: Mapping[tuple[str, str], Form] = {
    ("", "SimplifiedLayerNormalization"): _rms_norm,
    **{
        (DOMAIN, kind): form
        for kind, form in {
            "SkipLayerNormalization": _skip_layer_norm,
            "SkipSimplifiedLayerNormalization": _skip_rms_norm,
            "SimplifiedLayerNormalization": _rms_norm,
            "BiasGelu": _bias_gelu,
            "FastGelu": _fast_gelu,
            "Gelu": _gelu,
            "QuickGelu": _quick_gelu,
            "BiasSplitGelu": _split_gelu,
            "FusedMatMul": _fused_product,
            "FusedConv": _fused_convolution,
            "FusedGemm": _fused_gemm,
            "MatMulIntegerToFloat": _to_floats,
            "DynamicQuantizeMatMul": _dynamic_product,
            "MatMulNBits": _few_bits_product,
            "GatherBlockQuantized": _gather_blocks,
            "Attention": _attention,
            "QAttention": _quantized_attention,
            "MultiHeadAttention": _multi_head_attention,
            "GroupQueryAttention": _grouped_attention,
            "RotaryEmbedding": _rotary,
            "MoE": _mixture,
            "QMoE": _quantized_mixture,
            "QuantizeLinear": lambda step: FORMS["QuantizeLinear"](step),
            "DequantizeLinear": lambda step: FORMS["DequantizeLinear"](step),
        }.items()
    },
}


def form_of(domain: str, kind: str) -> Form | None:
    """The form of an operator, of the standard or of ONNX Runtime's; None where there is none."""
    plain = "" if domain in STANDARD else domain
    if not plain and kind in FORMS:
        return FORMS[kind]
    return OF_RUNTIME.get((plain, kind))
