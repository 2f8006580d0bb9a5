"""The functions ``torch_npu.npu_*`` for which the operator library has none of the same name here.

They get tensors of the device and are made of its other operators, each of which is computed by this package or falls
back, and is counted besides the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import torch
from torch.nn import functional

from aclnn.torch.npu.declarations import composed
from aclnn.torch.npu.refusals import checked

_INT8 = (-128, 127)
_INTS_IN_INT32 = 8  # numbers of four bits that an element of int32 holds


def _npu(name: str, *args: Any, **named: Any) -> Any:
    return getattr(torch.ops.npu, name)(*args, **named)


def _quantized(x: Any) -> Any:
    """The nearest numbers of int8; what is between two of them becomes the even one."""
    return x.round().clamp(*_INT8).to(torch.int8)


def _check_int8(name: str, dst_type: Any) -> None:
    if dst_type not in (None, 1, 258):
        raise checked(
            f"NOT_SUPPORT: {name} is emulated with results of int8, but got dst_type {dst_type}",
            "007",
        )


# --- Norms -----------------------------------------------------------------------------------------


@composed(
    """npu_deep_norm(Tensor x, Tensor gx, Tensor beta, Tensor gamma, float alpha=0.3, float epsilon=1e-06)
          -> (Tensor, Tensor, Tensor)""",
    differentiable=True,
)
def _deep_norm(x: Any, gx: Any, beta: Any, gamma: Any, alpha: float, epsilon: float) -> Any:
    if x.shape != gx.shape:
        raise checked(
            f"The shapes of x and gx should be the same, but got {list(x.shape)} and {list(gx.shape)}"
        )
    if beta.shape != gamma.shape or gamma.shape != x.shape[x.dim() - gamma.dim() :]:
        raise checked("The shapes of beta and gamma should be the last dimensions of x, but got "
                      f"{list(beta.shape)} and {list(gamma.shape)}")  # fmt: skip
    total = x.float() * alpha + gx.float()
    y, mean, rstd = torch.native_layer_norm(
        total, gamma.shape, gamma.float(), beta.float(), epsilon
    )
    return mean, rstd, y.to(x.dtype)


@composed("""npu_rms_norm_quant(Tensor x, Tensor gamma, Tensor beta, Tensor scale, Tensor offset, float eps=1e-06)
          -> Tensor""")  # fmt: skip
def _rms_norm_quant(x: Any, gamma: Any, beta: Any, scale: Any, offset: Any, eps: float) -> Any:
    if scale.numel() != 1 or offset.numel() != 1:
        raise checked("scale and offset should have one element, but got "
                      f"{scale.numel()} and {offset.numel()}")  # fmt: skip
    y = _npu("npu_rms_norm", x, gamma.reshape(gamma.shape[-1]), eps)[0]
    y = y.float() + beta.reshape(beta.shape[-1]).float()
    return _quantized(y / scale.float() + offset.float())


# --- Activations and losses ------------------------------------------------------------------------


@composed("""npu_swiglu_quant(Tensor x, *, Tensor? smooth_scales=None, Tensor? offsets=None, Tensor? group_index=None,
          bool activate_left=False, int quant_mode=0, int group_list_type=0, int? dst_type=None)
          -> (Tensor, Tensor)""")  # fmt: skip
def _swiglu_quant(x: Any, smooth_scales: Any, offsets: Any, group_index: Any, activate_left: bool, quant_mode: int,
                  group_list_type: int, dst_type: Any) -> Any:  # fmt: skip
    _check_int8("npu_swiglu_quant", dst_type)
    if x.dim() < 2 or x.shape[-1] % 2:
        raise checked("x should have at least 2 dimensions, and an even number of elements in the last one, but got "
                      f"shape {list(x.shape)}")  # fmt: skip
    if quant_mode not in (0, 1):
        raise checked(f"quant_mode only support 0 or 1, but got {quant_mode}", "003")
    if quant_mode == 0 and smooth_scales is None:
        raise checked("smooth_scales is required when quant_mode is 0")
    first, second = x.chunk(2, -1)
    y = _npu("npu_swiglu", x if activate_left else torch.cat((second, first), -1)).float()
    rows = y.reshape(-1, y.shape[-1])
    counts = _counts(group_index, group_list_type, rows.shape[0])
    if smooth_scales is not None:
        rows = rows * _by_group(smooth_scales, counts)
    if quant_mode == 0:
        if offsets is not None:
            rows = rows + _by_group(offsets, counts)
        return _quantized(rows).reshape(y.shape), torch.zeros(x.shape[:-1], device=x.device)
    scale = rows.abs().amax(-1, True) / _INT8[1]
    made = _quantized(rows / torch.where(scale == 0, torch.ones_like(scale), scale))
    return made.reshape(y.shape), scale.reshape(x.shape[:-1])


def _counts(group_index: Any, kind: int, rows: int) -> list[int] | None:
    """Rows of each group, from ends that are counted up or from counts."""
    if group_index is None:
        return None
    arguments = [int(one) for one in group_index.tolist()]
    if kind not in (0, 1):
        raise checked(f"group_list_type only support 0 or 1, but got {kind}", "003")
    counts = (
        arguments if kind else [b - a for a, b in zip([0, *arguments], arguments, strict=False)]
    )
    if any(one < 0 for one in counts) or sum(counts) > rows:
        raise checked(f"group_index {arguments} has no counts of {rows} rows", "003")
    return [*counts[:-1], counts[-1] + rows - sum(counts)] if counts else None


def _by_group(value: Any, counts: list[int] | None) -> Any:
    """A row for each row, from one for each group; or what holds for all."""
    value = value.float()
    if counts is None or not value.dim() or value.shape[0] == 1:
        return value
    if value.shape[0] != len(counts):
        raise checked(
            f"there are {len(counts)} groups, and scales or offsets of {value.shape[0]}", "003"
        )
    rows = [one.reshape(1, -1).expand(count, -1) for one, count in zip(value, counts, strict=True)]
    return torch.cat(rows)


# --- Indices ---------------------------------------------------------------------------------------


@composed("npu_scatter(Tensor self, Tensor indices, Tensor updates, int dim) -> Tensor")
def _scatter(self: Any, indices: Any, updates: Any, dim: int) -> Any:
    """One element of each row along a dimension is replaced, where indices lack that dimension."""
    if indices.dim() == self.dim() - 1:
        indices, updates = indices.unsqueeze(dim), updates.unsqueeze(dim)
    return self.scatter(dim, indices.long(), updates)


@composed("""npu_indexing(Tensor self, int[] begin, int[] end, int[] strides, int begin_mask=0, int end_mask=0,
          int ellipsis_mask=0, int new_axis_mask=0, int shrink_axis_mask=0) -> Tensor""")  # fmt: skip
def _indexing(self: Any, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], begin_mask: int,
              end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int) -> Any:  # fmt: skip
    """Slices with steps; a bit of a mask says that the number of its place does not count."""
    if not len(begin) == len(end) == len(strides):
        raise checked("begin, end and strides should have the same length, but got "
                      f"{len(begin)}, {len(end)} and {len(strides)}")  # fmt: skip
    if ellipsis_mask & (ellipsis_mask - 1):
        raise checked(f"ellipsis_mask should have one bit at most, but got {ellipsis_mask}", "003")
    places = range(len(begin))
    used = sum(not (ellipsis_mask | new_axis_mask) >> k & 1 for k in places)
    if used > self.dim():
        raise checked(f"{used} dimensions are sliced, and self has {self.dim()}", "003")
    made, axis = self, 0
    for k in places:
        if ellipsis_mask >> k & 1:
            axis += self.dim() - used
            continue
        if new_axis_mask >> k & 1:
            made, axis = made.unsqueeze(axis), axis + 1
            continue
        if shrink_axis_mask >> k & 1:
            made = made.select(axis, begin[k])
            continue
        if strides[k] == 0:
            raise checked(f"strides[{k}] is 0", "003")
        first = None if begin_mask >> k & 1 else begin[k]
        last = None if end_mask >> k & 1 else end[k]
        made, axis = _stepped(made, axis, slice(first, last, strides[k])), axis + 1
    return made.contiguous() if made is not self else made.clone()


def _stepped(x: Any, axis: int, part: slice) -> Any:
    begin, end, step = part.indices(x.shape[axis])
    if step > 0:
        return x[(slice(None),) * axis + (slice(begin, max(end, begin), step),)]
    return x.index_select(axis, torch.arange(begin, end, step, device=x.device))


# --- Rotary ----------------------------------------------------------------------------------------


@composed("""npu_mrope(Tensor positions, Tensor query, Tensor key, Tensor cos_sin_cache, int head_size, *,
          int[]? mrope_section=None, str? rotary_mode='half') -> (Tensor, Tensor)""")  # fmt: skip
def _mrope(positions: Any, query: Any, key: Any, cos_sin_cache: Any, head_size: int, mrope_section: Any,
           rotary_mode: Any) -> Any:  # fmt: skip
    """Rotation by angles of one position for each token, or of three, which parts of a head have one each."""
    if rotary_mode not in ("half", "interleave"):
        raise checked(f"rotary_mode should be half or interleave, but got {rotary_mode}", "003")
    sections = [one for one in mrope_section or () if one]
    half = cos_sin_cache.shape[-1] // 2
    if sections and (
        sum(sections) != half or positions.dim() != 2 or positions.shape[0] != len(mrope_section)
    ):
        raise checked(f"mrope_section {list(mrope_section)} should sum up to {half}, with positions of shape "
                      f"[{len(mrope_section)}, tokens], but got shape {list(positions.shape)}", "003")  # fmt: skip
    rows = cos_sin_cache[
        positions.long() if sections or positions.dim() == 1 else positions[0].long()
    ]
    cos, sin = rows.chunk(2, -1)
    if sections:
        cos, sin = (
            torch.cat([part[k] for k, part in enumerate(one.split(sections, -1))], -1)
            for one in (cos, sin)
        )
    return tuple(_rotated(one, cos, sin, head_size, rotary_mode == "half") for one in (query, key))


def _rotated(x: Any, cos: Any, sin: Any, head_size: int, half: bool) -> Any:
    heads = x.reshape(x.shape[0], -1, head_size).float()
    size = 2 * cos.shape[-1]
    cos, sin = cos[:, None].float(), sin[:, None].float()
    turned, kept = heads[..., :size], heads[..., size:]
    first, second = turned.chunk(2, -1) if half else (turned[..., ::2], turned[..., 1::2])
    parts = first * cos - second * sin, second * cos + first * sin
    made = torch.cat(parts, -1) if half else torch.stack(parts, -1).flatten(-2)
    return torch.cat((made, kept), -1).to(x.dtype).reshape(x.shape)


# --- Products --------------------------------------------------------------------------------------


@composed(
    """npu_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation,
          int groups) -> Tensor""",
    differentiable=True,
)
def _convolution(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:  # fmt: skip
    if input.dim() not in (4, 5):
        raise checked(f"input should have 4 or 5 dimensions, but got {input.dim()}")
    name = "npu_conv2d" if input.dim() == 4 else "npu_conv3d"
    return _npu(name, input, weight, bias, stride, padding, dilation, groups)


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": functional.gelu,
    "fastgelu": lambda x: _npu("npu_fast_gelu", x),
    "relu": functional.relu,
    "silu": functional.silu,
}
_GATES = {"geglu": "gelu", "swiglu": "silu", "reglu": "relu"}


@composed("""npu_ffn(Tensor x, Tensor weight1, Tensor weight2, str activation, *, int[]? expert_tokens=None,
          int[]? expert_tokens_index=None, Tensor? bias1=None, Tensor? bias2=None, Tensor? scale=None,
          Tensor? offset=None, Tensor? deq_scale1=None, Tensor? deq_scale2=None, Tensor? antiquant_scale1=None,
          Tensor? antiquant_scale2=None, Tensor? antiquant_offset1=None, Tensor? antiquant_offset2=None,
          int? inner_precise=None, ScalarType? output_dtype=None) -> Tensor""")  # fmt: skip
def _ffn(x: Any, weight1: Any, weight2: Any, activation: str, expert_tokens: Any, expert_tokens_index: Any,
         output_dtype: Any, inner_precise: Any, **arguments: Any) -> Any:  # fmt: skip
    if activation.lower() not in {*_ACTIVATIONS, *_GATES}:
        raise checked("activation only supports " + ", ".join([*_ACTIVATIONS, *_GATES]) + f", but got {activation}",
                      "003")  # fmt: skip
    if expert_tokens and expert_tokens_index:
        raise checked("expert_tokens and expert_tokens_index cannot both be given")
    if weight1.dim() == 3 and not (expert_tokens or expert_tokens_index):
        raise checked("weights of experts need expert_tokens or expert_tokens_index")
    if any(arguments[f"antiquant_{one}"] is not None for one in ("scale1", "scale2", "offset1", "offset2")):  # fmt: skip
        raise checked("NOT_SUPPORT: npu_ffn is emulated without integer weights for floating-point operands", "007")  # fmt: skip
    rows = x.reshape(-1, x.shape[-1])
    if weight1.dim() == 2:
        made = _network(rows, weight1, weight2, activation.lower(), arguments, None)
    else:
        ends = list(expert_tokens_index or ())
        for count in expert_tokens or ():
            ends.append((ends[-1] if ends else 0) + count)
        if len(ends) != weight1.shape[0] or ends[-1] > rows.shape[0]:
            raise checked(f"there are {weight1.shape[0]} experts and {rows.shape[0]} tokens, which ends {ends} "
                          "do not fit", "003")  # fmt: skip
        parts = zip([0, *ends], ends, strict=False)
        made = torch.cat([_network(rows[a:b], weight1[k], weight2[k], activation.lower(), arguments, k)
                          for k, (a, b) in enumerate(parts)])  # fmt: skip
    made = made.reshape(*x.shape[:-1], made.shape[-1])
    requested = output_dtype or (torch.float16 if x.dtype == torch.int8 else x.dtype)
    return made.to(requested)


def _network(
    x: Any,
    weight1: Any,
    weight2: Any,
    activation: str,
    arguments: dict[str, Any],
    expert: int | None,
) -> Any:
    """Two layers, of one expert where there are several."""
    own = {
        key: one if one is None or expert is None or one.dim() < 2 else one[expert]
        for key, one in arguments.items()
    }
    hidden = _layer(x, weight1, own["bias1"], own["deq_scale1"])
    if activation in _GATES:
        first, second = hidden.chunk(2, -1)
        hidden = _ACTIVATIONS[_GATES[activation]](first) * second
    else:
        hidden = _ACTIVATIONS[activation](hidden)
    if weight2.dtype == torch.int8:
        hidden = _quantized(
            hidden.float() * own["scale"].float()
            + (0 if own["offset"] is None else own["offset"].float())
        )
    return _layer(hidden, weight2, own["bias2"], own["deq_scale2"])


def _layer(x: Any, weight: Any, bias: Any, scale: Any) -> Any:
    if x.dtype != torch.int8:
        return x @ weight if bias is None else torch.addmm(bias.to(x.dtype), x, weight)
    if scale is None:
        raise checked("products of int8 need deq_scale1 and deq_scale2")
    made = x.float() @ weight.float()  # whose sums of integers are exact up to 2^24
    made = made if bias is None else made + bias.float()
    return made * scale.float()


@composed("""npu_anti_quant(Tensor x, Tensor scale, *, Tensor? offset=None, ScalarType? dst_dtype=None,
          ScalarType? src_dtype=None) -> Tensor""")  # fmt: skip
def _anti_quant(x: Any, scale: Any, offset: Any, dst_dtype: Any, src_dtype: Any) -> Any:
    requested = dst_dtype or torch.float16
    if requested not in (torch.float16, torch.bfloat16):
        raise checked(f"dst_dtype only supports float16 and bfloat16, but got {requested}", "002")
    if x.dtype not in (torch.int8, torch.int32):
        raise checked(f"x should be of int8, or of int32 with eight int4 each, but got {x.dtype}", "002")  # fmt: skip
    if offset is not None and offset.shape != scale.shape:
        raise checked(f"offset and scale should have the same shape, but got {list(offset.shape)} and {list(scale.shape)}")  # fmt: skip
    numbers = x if x.dtype == torch.int8 else _unpacked(x)
    made = numbers.float()
    made = made if offset is None else made + offset.float()
    return (made * scale.float()).to(requested)


def _unpacked(x: Any) -> Any:
    """Numbers of four bits, the lowest bits first."""
    places = torch.arange(0, 4 * _INTS_IN_INT32, 4, dtype=torch.int32, device=x.device)
    bits = (x.unsqueeze(-1) >> places) & 15
    return torch.where(bits > 7, bits - 16, bits).flatten(-2)


# Formats of small floating-point numbers, by PyTorch's number and by CANN's plus 256: the exponent of the largest
# power of two, the largest number.
_EXPONENTS = {
    torch.float8_e5m2: (15, 57344.0),
    torch.float8_e4m3fn: (8, 448.0),
    "float4_e2m1": (2, 6.0),
}
_SMALL = {23: torch.float8_e5m2, 24: torch.float8_e4m3fn, 291: torch.float8_e5m2, 292: torch.float8_e4m3fn,
          296: "float4_e2m1"}  # fmt: skip
_BIAS = 127  # of exponents in the dtype that has nothing else
_FAMILY = "Ascend950"  # which alone has it


@composed("""npu_dynamic_mx_quant(Tensor input, *, int axis=-1, str round_mode='rint', int dst_type=296,
          int block_size=32, int scale_alg=0, float dst_type_max=0.0) -> (Tensor, Tensor)""")  # fmt: skip
def _dynamic_mx_quant(input: Any, axis: int, round_mode: str, dst_type: int, block_size: int, scale_alg: int,
                      dst_type_max: float) -> Any:  # fmt: skip
    """Blocks of an axis share a power of two, so that their numbers fit into a few bits."""
    name = torch.npu.get_device_name()
    if not name.startswith(_FAMILY):
        raise checked(
            f"NOT_SUPPORT: npu_dynamic_mx_quant is a function of the {_FAMILY}, and the device is {name}",
            "007",
        )
    if dst_type not in _SMALL:
        raise checked(f"dst_type only supports {sorted(_SMALL)}, but got {dst_type}", "002")
    if block_size <= 0 or block_size % 32 or block_size > 1024:
        raise checked(f"block_size should be a multiple of 32 up to 1024, but got {block_size}", "003")  # fmt: skip
    if round_mode != "rint" or scale_alg or dst_type_max:
        raise checked("NOT_SUPPORT: npu_dynamic_mx_quant is emulated with round_mode rint and scale_alg 0, but got "
                      f"{round_mode}, scale_alg {scale_alg}, dst_type_max {dst_type_max}", "007")  # fmt: skip
    if not input.dim() or not -input.dim() <= axis < input.dim():
        raise checked(f"axis should be one of input's {input.dim()}, but got {axis}", "003")
    kind = _SMALL[dst_type]
    largest_exponent, largest = _EXPONENTS[kind]
    rows = input.float().movedim(axis, -1)
    size = rows.shape[-1]
    count = -(-size // block_size)
    blocks = functional.pad(rows, (0, count * block_size - size)).unflatten(-1, (count, block_size))
    most = blocks.abs().amax(-1)
    exponents = (most.frexp().exponent - 1 - largest_exponent).clamp(-_BIAS, _BIAS)
    exponents = torch.where(most == 0, torch.full_like(exponents, -_BIAS), exponents)
    shared = blocks / torch.exp2(exponents.float()).unsqueeze(-1)
    numbers = shared.clamp(-largest, largest).flatten(-2)[..., :size].movedim(-1, axis)
    pairs = functional.pad((exponents + _BIAS).to(torch.uint8), (0, count % 2)).unflatten(
        -1, (-1, 2)
    )
    scale = pairs.movedim(-2, axis % input.dim()).contiguous().view(torch.float8_e8m0fnu)
    return _of_four_bits(numbers) if kind == "float4_e2m1" else numbers.to(kind), scale


def _of_four_bits(x: Any) -> Any:
    """Two numbers in each byte, the first in the lower half."""
    if x.shape[-1] % 2:
        raise checked(f"numbers of four bits need an even last dimension, but got {x.shape[-1]}", "003")  # fmt: skip
    bits = torch.from_numpy(x.cpu().numpy().astype(ml_dtypes.float4_e2m1fn).view("u1")) & 15
    return (bits[..., ::2] | bits[..., 1::2] << 4).to(x.device)


# --- Optimizers ------------------------------------------------------------------------------------


@composed("""npu_apply_adam_w.out(Scalar beta1_power, Scalar beta2_power, Scalar lr, Scalar weight_decay, Scalar beta1,
          Scalar beta2, Scalar epsilon, Tensor grad, Tensor? max_grad_norm, bool? amsgrad, bool? maximize, *,
          Tensor(a!) var, Tensor(b!) m, Tensor(c!) v) -> (Tensor(a!), Tensor(b!), Tensor(c!))""")  # fmt: skip
def _apply_adam_w(beta1_power: float, beta2_power: float, lr: float, weight_decay: float, beta1: float, beta2: float,
                  epsilon: float, grad: Any, max_grad_norm: Any, amsgrad: Any, maximize: Any, var: Any, m: Any,
                  v: Any) -> Any:  # fmt: skip
    """A step; powers are those of before it."""
    if amsgrad and max_grad_norm is None:
        raise checked("max_grad_norm is required when amsgrad is true")
    for name, one in (("m", m), ("v", v), ("grad", grad)):
        if one.shape != var.shape:
            raise checked(f"{name} should have the shape of var, {list(var.shape)}, but got {list(one.shape)}")  # fmt: skip
    with torch.no_grad():
        grad = -grad if maximize else grad
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        v.mul_(beta2).add_(grad * grad, alpha=1 - beta2)
        second = torch.maximum(max_grad_norm, v) if amsgrad else v
        root = (second / (1 - beta2_power * beta2)).sqrt().add_(epsilon)
        var.mul_(1 - lr * weight_decay).sub_(m / root, alpha=lr / (1 - beta1_power * beta1))
    return var, m, v
