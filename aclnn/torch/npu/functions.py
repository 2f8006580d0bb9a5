"""The functions ``torch_npu.npu_*``: schemas of the vendor's, computed by functional forms.

Each is a line of a table: the schema, and how the form of the same purpose is called on memory of the CPU. Those
that have gradients on the NPU have them here, by the function that the NPU calls for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from aclnn.torch.npu.declarations import declared
from aclnn.torch.npu.refusals import checked
from aclnn.torch.npu.weights import Attention, attended, gradients
from aclnn.torch.overloads import form
from aclnn.torch.schemas import acl_dtype

# PyTorch's numbers of dtypes.
_NUMBERS = {0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16,
            6: torch.float32, 7: torch.float64, 11: torch.bool, 12: torch.int8, 15: torch.bfloat16}  # fmt: skip


def _dtype(number: Any) -> Any:
    """The dtype that a number of PyTorch's stands for."""
    if number is None:
        return None
    if number not in _NUMBERS:
        raise checked(
            f"NOT_SUPPORT: dtype number {number} is none that the emulated npu device has", "007"
        )
    return acl_dtype(_NUMBERS[number])


def _number(dtype: torch.dtype) -> int:
    return next((number for number, one in _NUMBERS.items() if one == dtype), -1)


def _lengths(arguments: Any) -> Any:
    return None if arguments is None else np.asarray([int(one) for one in arguments], np.int64)


def _filled(value: Any, dtype: torch.dtype = torch.float32) -> Any:
    return torch.empty(0, dtype=dtype) if value is None else value


def _npu(name: str, *args: Any, **named: Any) -> Any:
    return getattr(torch.ops.npu, name)(*args, **named)


# --- Norms -----------------------------------------------------------------------------------------


def _rms_norm_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    dx, dgamma = _npu(
        "npu_rms_norm_backward", grads[0], arguments["self"], arguments["gamma"], results[1]
    )
    return {"self": dx, "gamma": dgamma.to(arguments["gamma"].dtype)}


@declared("npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)", "aclnnRmsNorm",
           _rms_norm_gradients)  # fmt: skip
def _rms_norm(self: Any, gamma: Any, epsilon: float) -> Any:
    if gamma.dim() > self.dim():
        raise checked("The gamma shape should not be bigger than self shape.")
    return form("native_rms_norm")(self, gamma, epsilon)


declared("npu_rms_norm_backward(Tensor dy, Tensor self, Tensor gamma, Tensor rstd) -> (Tensor, Tensor)",
          "aclnnRmsNormGrad")(lambda dy, self, gamma, rstd: form("rms_norm_backward")(dy, self, gamma, rstd))  # fmt: skip
declared(
    "npu_gemma_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",
    "aclnnGemmaRmsNorm",
)(lambda self, gamma, epsilon: form("gemma_rms_norm")(self, gamma, epsilon))
declared("npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor)",
          "aclnnAddRmsNorm")(lambda x1, x2, gamma, epsilon: form("add_rms_norm")(x1, x2, gamma, epsilon))  # fmt: skip
declared("npu_add_rms_norm_cast(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor, Tensor)",
          "aclnnAddRmsNormCast")(lambda x1, x2, gamma, epsilon: form("add_rms_norm_cast")(x1, x2, gamma, epsilon))  # fmt: skip


@declared("npu_add_rms_norm_v2(Tensor(a!) x1, Tensor(b!) x2, Tensor gamma, float epsilon=1e-06) -> Tensor",
           "aclnnInplaceAddRmsNorm")  # fmt: skip
def _add_rms_norm_v2(x1: Any, x2: Any, gamma: Any, epsilon: float) -> Any:
    return form("add_rms_norm_")(x1, x2, gamma, epsilon)[1]


@declared("npu_add_rms_norm_v2_functional(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor)",
           "aclnnInplaceAddRmsNorm")  # fmt: skip
def _add_rms_norm_v2_functional(x1: Any, x2: Any, gamma: Any, epsilon: float) -> Any:
    y, rstd, total = form("add_rms_norm")(x1, x2, gamma, epsilon)
    return rstd, y, total


@declared("""npu_add_rms_norm_quant(Tensor x1, Tensor x2, Tensor gamma, Tensor scales1, Tensor? zero_points1,
           Tensor? beta=None, Tensor? scales2=None, Tensor? zero_points2=None, *, int axis=-1, float epsilon=1e-06,
           bool div_mode=True, int? dst_type=None) -> (Tensor, Tensor, Tensor)""", "aclnnAddRmsNormQuantV2")  # fmt: skip
def _add_rms_norm_quant(dst_type: Any, axis: int, **arguments: Any) -> Any:
    if axis != -1:
        raise checked("axis only support -1.")
    y1, y2, x = form("add_rms_norm_quant")(**arguments, axis=axis)
    return y1, _filled(y2, torch.int8), x


@declared("""npu_add_rms_norm_dynamic_quant(Tensor x1, Tensor x2, Tensor gamma, *, Tensor? smooth_scale1=None,
           Tensor? smooth_scale2=None, Tensor? beta=None, float epsilon=1e-06, bool[2]? output_mask=None,
           int? y_dtype=None) -> (Tensor, Tensor, Tensor, Tensor, Tensor)""", "aclnnAddRmsNormDynamicQuantV2")  # fmt: skip
def _add_rms_norm_dynamic_quant(y_dtype: Any, output_mask: Any, **arguments: Any) -> Any:
    made = form("add_rms_norm_dynamic_quant")(**arguments, output_mask=output_mask or None)
    unused = [torch.empty((), dtype=torch.int8), torch.empty((), dtype=torch.float32)]
    return tuple(unused[index > 2] if one is None else one for index, one in enumerate(made))


def _add_layer_norm_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    shape = list(arguments["gamma"].shape)
    total = (arguments["x1"].float() + arguments["x2"].float()).detach().requires_grad_()
    gamma, beta = (arguments[one].detach().float().requires_grad_() for one in ("gamma", "beta"))
    with torch.enable_grad():
        y = torch.nn.functional.layer_norm(total, shape, gamma, beta, arguments["epsilon"])
    dx, dgamma, dbeta = torch.autograd.grad(y, (total, gamma, beta), grads[0].float())
    dx = dx if grads[3] is None else dx + grads[3].float()
    return {"x1": dx.to(arguments["x1"].dtype), "x2": dx.to(arguments["x2"].dtype),
            "gamma": dgamma.to(arguments["gamma"].dtype), "beta": dbeta.to(arguments["beta"].dtype)}  # fmt: skip


@declared("""npu_add_layer_norm(Tensor x1, Tensor x2, Tensor gamma, Tensor beta, float epsilon=1e-05,
           bool additional_output=False) -> (Tensor, Tensor, Tensor, Tensor)""", "aclnnAddLayerNorm",
           _add_layer_norm_gradients)  # fmt: skip
def _add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float, additional_output: bool
) -> Any:
    y, mean, rstd, x = form("add_layer_norm")(x1, x2, gamma, beta, epsilon, additional_output)
    return y, mean, rstd, _filled(x)


@declared("""npu_group_norm_silu(Tensor input, Tensor? weight=None, Tensor? bias=None, int group=1,
           float eps=1e-05) -> (Tensor, Tensor, Tensor)""", "aclnnGroupNormSilu")  # fmt: skip
def _group_norm_silu(input: Any, weight: Any, bias: Any, group: int, eps: float) -> Any:
    return form("group_norm_silu")(input, weight, bias, group, eps)


# --- Activations, softmax, loss --------------------------------------------------------------------

declared("npu_swiglu(Tensor self, int dim=-1) -> Tensor", "aclnnSwiGlu", lambda given, results, grads: {
    "self": _npu("npu_swiglu_backward", grads[0], given["self"], given["dim"])
})(lambda self, dim: form("swiglu")(self, dim))  # fmt: skip
declared(
    "npu_swiglu_backward(Tensor grad_output, Tensor self, int dim=-1) -> Tensor", "aclnnSwiGluGrad"
)(lambda grad_output, self, dim: form("swiglu_backward")(grad_output, self, dim))
declared("""npu_clipped_swiglu(Tensor x, *, Tensor? group_index=None, int dim=-1, float alpha=1.702, float limit=7.0,
          float bias=1.0, bool interleaved=True) -> Tensor""", "aclnnClippedSwiglu")(
    lambda x, group_index, dim, **given: form("clipped_swiglu")(x, group_index, dim, **given)
)  # fmt: skip


@declared("""npu_dequant_swiglu_quant(Tensor x, *, Tensor? weight_scale=None, Tensor? activation_scale=None,
           Tensor? bias=None, Tensor? quant_scale=None, Tensor? quant_offset=None, Tensor? group_index=None,
           bool activate_left=False, int quant_mode=0, int? dst_type=None, int? round_mode=None,
           int? activate_dim=None, int swiglu_mode=0, float clamp_limit=7.0, float glu_alpha=1.702,
           float glu_bias=1.0) -> (Tensor, Tensor)""", "aclnnDequantSwigluQuantV2")  # fmt: skip
def _dequant_swiglu_quant(
    quant_mode: int, dst_type: Any, round_mode: Any, activate_dim: Any, **arguments: Any
) -> Any:
    if quant_mode not in (0, 1):
        raise checked(f"quant_mode only support 0 or 1, but got {quant_mode}", "003")
    return form("dequant_swiglu_quant")(**arguments, quant_mode=("static", "dynamic")[quant_mode])


declared("npu_geglu(Tensor self, int dim=-1, int approximate=1, bool activate_left=False) -> (Tensor, Tensor)",
          "aclnnGeGluV3", lambda given, results, grads: {
    "self": _npu("npu_geglu_grad", grads[0], given["self"], results[1], given["dim"], given["approximate"],
                 given["activate_left"])
})(lambda self, dim, approximate, activate_left: form("geglu")(self, dim, approximate, activate_left))  # fmt: skip
declared("""npu_geglu_grad(Tensor grad_output, Tensor self, Tensor gelu, int dim=-1, int approximate=1,
          bool activate_left=False) -> Tensor""", "aclnnGeGluV3Backward")(
    lambda grad_output, self, gelu, dim, approximate, activate_left: form("geglu_backward")(
        grad_output, self, gelu, dim, approximate, activate_left)
)  # fmt: skip
for _name in ("npu_fast_gelu", "fast_gelu"):
    declared(f"{_name}(Tensor self) -> Tensor", "aclnnFastGelu", lambda given, results, grads: {
        "self": _npu("npu_fast_gelu_backward", grads[0], given["self"])
    })(lambda self: form("fast_gelu")(self))  # fmt: skip
declared("npu_fast_gelu_backward(Tensor grad, Tensor self) -> Tensor", "aclnnFastGeluBackward")(
    lambda grad, self: form("fast_gelu_backward")(grad, self)
)


def _approximate(value: str) -> str:
    if value not in ("none", "tanh"):
        raise checked("NPU error, approximate argument must be either none or tanh.")
    return value


declared('npu_gelu(Tensor self, *, str approximate="none") -> Tensor', "aclnnGeluV2", lambda given, results, grads: {
    "self": _npu("npu_gelu_backward", grads[0], given["self"], approximate=given["approximate"])
})(lambda self, approximate: form("gelu")(self, approximate=_approximate(approximate)))  # fmt: skip
declared('npu_gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor',
          "aclnnGeluBackwardV2")(lambda grad_output, self, approximate: form("gelu_backward")(
              grad_output, self, approximate=_approximate(approximate)))  # fmt: skip
declared('npu_gelu_mul(Tensor input, *, str approximate="none") -> Tensor', "aclnnGeluMul")(
    lambda input, approximate: form("gelu_mul")(input, approximate=_approximate(approximate))
)
declared("npu_scaled_masked_softmax(Tensor x, Tensor mask, Scalar scale=1, bool fixed_triu_mask=False) -> Tensor",
          "aclnnScaledMaskedSoftmax", lambda given, results, grads: {
    "x": _npu("npu_scaled_masked_softmax_backward", grads[0], results[0], given["mask"], given["scale"],
              given["fixed_triu_mask"])
})(lambda x, mask, scale, fixed_triu_mask: form("scaled_masked_softmax")(x, mask, scale, fixed_triu_mask))  # fmt: skip
declared("""npu_scaled_masked_softmax_backward(Tensor y_grad, Tensor y, Tensor mask, Scalar scale=1,
          bool fixed_triu_mask=False) -> Tensor""", "aclnnScaledMaskedSoftmaxBackward")(
    lambda y_grad, y, mask, scale, fixed_triu_mask: form("scaled_masked_softmax_backward")(
        y_grad, y, mask, scale, fixed_triu_mask)
)  # fmt: skip


@declared("npu_attn_softmax_(Tensor(a!) self) -> Tensor(a!)", "aclnnInplaceAttnSoftmax")
def _attn_softmax(self: Any) -> Any:
    return self.copy_(form("softmax")(self, -1))


def _cross_entropy_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    x = arguments["input"].detach().float().requires_grad_()
    with torch.enable_grad():
        loss = torch.nn.functional.cross_entropy(
            x, arguments["target"], arguments["weight"], reduction=arguments["reduction"], ignore_index=arguments["ignore_index"],
            label_smoothing=arguments["label_smoothing"],
        )  # fmt: skip
    (grad,) = torch.autograd.grad(loss, x, grads[0].float().reshape(loss.shape))
    return {"input": grad.to(arguments["input"].dtype)}


@declared("""npu_cross_entropy_loss(Tensor input, Tensor target, Tensor? weight=None, str reduction="mean",
           int ignore_index=-100, float label_smoothing=0.0, float lse_square_scale_for_zloss=0.0,
           bool return_zloss=False) -> (Tensor, Tensor, Tensor, Tensor)""", "aclnnCrossEntropyLoss",
           _cross_entropy_gradients)  # fmt: skip
def _cross_entropy_loss(
    input: Any, target: Any, weight: Any, lse_square_scale_for_zloss: float, **arguments: Any
) -> Any:
    loss, log_prob, *_ = form("cross_entropy_loss_forward")(
        input, target, weight, lse_square_scale=lse_square_scale_for_zloss, **arguments
    )
    loss = loss.reshape(1) if arguments["reduction"] != "none" else loss
    return loss, log_prob, torch.empty(0), torch.empty(0)


declared("npu_softmax_cross_entropy_with_logits(Tensor self, Tensor labels) -> Tensor",
         "aclnnSoftmaxCrossEntropyWithLogits", lambda given, results, grads: {
    "self": _npu("npu_softmax_cross_entropy_with_logits_backward", grads[0], given["self"], given["labels"])
})(lambda self, labels: form("softmax_cross_entropy_with_logits")(self, labels)[0])  # fmt: skip
declared("npu_softmax_cross_entropy_with_logits_backward(Tensor grad, Tensor self, Tensor labels) -> Tensor",
         "aclnnSoftmaxCrossEntropyWithLogits")(
    lambda grad, self, labels: form("softmax_cross_entropy_with_logits")(self, labels)[1] * grad.unsqueeze(-1)
)  # fmt: skip

# --- Rotary, caches --------------------------------------------------------------------------------

_ROTARY = {"half": 0, "interleave": 1, "quarter": 2, "interleave-half": 3}


def _rotary_mode(name: str) -> int:
    if name not in ("half", "interleave"):
        raise checked(
            f"The rotary_mode of npu_rotary_mul should be half or interleave, but got {name}"
        )
    return _ROTARY[name]


def _rotary_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    dx, dr1, dr2 = _npu("npu_rotary_mul_backward", grads[0], arguments["self"], arguments["r1"], arguments["r2"],
                        arguments["rotary_mode"])  # fmt: skip
    return {"self": dx, "r1": dr1, "r2": dr2}


@declared("""npu_rotary_mul(Tensor self, Tensor r1, Tensor r2, str rotary_mode='half', Tensor? rotate=None)
           -> Tensor""", "aclnnRotaryPositionEmbedding", _rotary_gradients)  # fmt: skip
def _rotary_mul(self: Any, r1: Any, r2: Any, rotary_mode: str, rotate: Any) -> Any:
    mode = _rotary_mode(rotary_mode)
    return form("rotary_position_embedding")(self, r1.to(self.dtype), r2.to(self.dtype), mode)


@declared("""npu_rotary_mul_backward(Tensor grad, Tensor self, Tensor r1, Tensor r2, str rotary_mode='half')
           -> (Tensor, Tensor, Tensor)""", "aclnnRotaryPositionEmbeddingGrad")  # fmt: skip
def _rotary_mul_backward(grad: Any, self: Any, r1: Any, r2: Any, rotary_mode: str) -> Any:
    half = _rotary_mode(rotary_mode) == 0
    cos, sin = r1.to(self.dtype), r2.to(self.dtype)
    dx = grad * cos + _unrotated(grad * sin, half)
    dcos, dsin = grad.float() * self.float(), grad.float() * _rotated(self.float(), half)
    return dx, _summed_to(dcos, r1), _summed_to(dsin, r2)


def _rotated(x: Any, half: bool) -> Any:
    if half:
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def _unrotated(x: Any, half: bool) -> Any:
    """The transpose of `_rotated`, which is its negative."""
    return -_rotated(x, half)


def _summed_to(x: Any, like: Any) -> Any:
    return x.sum_to_size(like.shape).to(like.dtype)


declared("npu_interleave_rope(Tensor x, Tensor cos, Tensor sin) -> Tensor", "aclnnInterleaveRope")(
    lambda x, cos, sin: form("interleave_rope")(x, cos, sin)
)


@declared("""npu_apply_rotary_pos_emb(Tensor(a!) query, Tensor(b!) key, Tensor cos, Tensor sin, str layout='BSND',
           str rotary_mode='half') -> (Tensor(a!), Tensor(b!))""", "aclnnApplyRotaryPosEmbV2")  # fmt: skip
def _apply_rotary(query: Any, key: Any, cos: Any, sin: Any, layout: str, rotary_mode: str) -> Any:
    layouts = {"BSND": 1, "BSH": 1, "SBND": 2, "BNSD": 3, "TND": 4}
    if layout not in layouts:
        raise checked(f"layout only supports {', '.join(layouts)}, but got {layout}", "003")
    form("apply_rotary_pos_emb_")(query, key, cos, sin, layouts[layout], rotary_mode)
    return query, key


def _kv_cache(arguments: dict[str, Any]) -> tuple[Any, Any]:
    arguments.pop("v", None)
    made = form("kv_rmsnorm_rope_cache")(**arguments)
    return _filled(made[2]), _filled(made[3])


_KV = """Tensor kv, Tensor gamma, Tensor cos, Tensor sin, Tensor index, Tensor(a!) k_cache, Tensor(b!) ckv_cache, *,
 Tensor? k_rope_scale=None, Tensor? c_kv_scale=None, Tensor? k_rope_offset=None, Tensor? c_kv_offset=None,
 Tensor? v=None, float epsilon=1e-05, str cache_mode='Norm', bool is_output_kv=False"""


@declared(
    f"npu_kv_rmsnorm_rope_cache({_KV}) -> (Tensor(a!), Tensor(b!), Tensor, Tensor)",
    "aclnnKvRmsNormRopeCache",
)
def _kv_rmsnorm(**arguments: Any) -> Any:
    return (arguments["k_cache"], arguments["ckv_cache"], *_kv_cache(dict(arguments)))


@declared(f"""npu_kv_rmsnorm_rope_cache_v2({_KV}, int? k_cache_dtype=None, int? ckv_cache_dtype=None)
           -> (Tensor, Tensor)""", "aclnnKvRmsNormRopeCache")  # fmt: skip
def _kv_rmsnorm_v2(k_cache_dtype: Any, ckv_cache_dtype: Any, **arguments: Any) -> Any:
    return _kv_cache(dict(arguments))


@declared("""npu_scatter_pa_kv_cache(Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache,
           Tensor slot_mapping, *, Tensor? compress_lens=None, Tensor? compress_seq_offsets=None,
           Tensor? seq_lens=None, str cache_mode='PA_NZ') -> ()""", "aclnnScatterPaKvCache")  # fmt: skip
def _scatter_pa(compress_seq_offsets: Any, **arguments: Any) -> Any:
    form("scatter_pa_kv_cache")(**arguments, compress_seq_offset=compress_seq_offsets)


@declared("""npu_gather_pa_kv_cache(Tensor key_cache, Tensor value_cache, Tensor block_tables, Tensor seq_lens,
           Tensor(a!) key, Tensor(b!) value, *, Tensor? seq_offset=None, bool is_seq_lens_cumsum=False) -> ()""",
           "aclnnGatherPaKvCache")  # fmt: skip
def _gather_pa(**arguments: Any) -> Any:
    form("gather_pa_kv_cache")(**arguments)


@declared("""npu_scatter_pa_kv_cache_functional(Tensor key, Tensor value, Tensor key_cache, Tensor value_cache,
          Tensor slot_mapping, *, Tensor? compress_lens=None, Tensor? compress_seq_offsets=None,
          Tensor? seq_lens=None, str cache_mode='PA_NZ') -> (Tensor, Tensor)""", "aclnnScatterPaKvCache")  # fmt: skip
def _scatter_pa_functional(key_cache: Any, value_cache: Any, **arguments: Any) -> Any:
    made = key_cache.clone(), value_cache.clone()
    _scatter_pa(key_cache=made[0], value_cache=made[1], **arguments)
    return made


@declared("""npu_gather_pa_kv_cache_functional(Tensor key_cache, Tensor value_cache, Tensor block_tables,
          Tensor seq_lens, Tensor key, Tensor value, *, Tensor? seq_offset=None, bool is_seq_lens_cumsum=False)
          -> (Tensor, Tensor)""", "aclnnGatherPaKvCache")  # fmt: skip
def _gather_pa_functional(key: Any, value: Any, **arguments: Any) -> Any:
    made = key.clone(), value.clone()
    _gather_pa(key=made[0], value=made[1], **arguments)
    return made


@declared(
    "npu_scatter_nd_update_(Tensor(a!) self, Tensor indices, Tensor updates) -> Tensor(a!)",
    "aclnnScatterNdUpdate",
)
def _scatter_nd_(self: Any, indices: Any, updates: Any) -> Any:
    return form("scatter_nd_update_")(self, indices, updates)


@declared(
    "npu_scatter_nd_update(Tensor self, Tensor indices, Tensor updates) -> Tensor",
    "aclnnScatterNdUpdate",
)
def _scatter_nd(self: Any, indices: Any, updates: Any) -> Any:
    return form("scatter_nd_update_")(self.clone(), indices, updates)


# --- Experts ---------------------------------------------------------------------------------------


@declared("npu_moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int active_num) -> (Tensor, Tensor, Tensor)",
           "aclnnMoeInitRouting")  # fmt: skip
def _moe_init_routing(x: Any, row_idx: Any, expert_idx: Any, active_num: int) -> Any:
    n, k = expert_idx.shape
    flat = expert_idx.t().reshape(-1)  # row_idx counts columns first
    order = torch.argsort(flat, stable=True)
    rows = row_idx.t().reshape(-1)[order]
    kept = min(n, active_num) * k
    places = torch.empty_like(rows)
    places[rows.long()] = torch.arange(len(rows), dtype=rows.dtype)
    return x[(rows.long() % n)[:kept]], places.to(torch.int32), flat[order].to(torch.int32)


@declared("""npu_moe_init_routing_v2(Tensor x, Tensor expert_idx, *, Tensor? scale=None, Tensor? offset=None,
           int active_num=-1, int expert_capacity=-1, int expert_num=-1, int drop_pad_mode=0,
           int expert_tokens_num_type=0, bool expert_tokens_num_flag=False, int quant_mode=-1,
           int[2] active_expert_range=[], int row_idx_type=0, int? x_dtype=None)
           -> (Tensor, Tensor, Tensor, Tensor)""", "aclnnMoeInitRoutingV3")  # fmt: skip
def _moe_init_routing_v2(x: Any, expert_idx: Any, expert_num: int, active_num: int, expert_tokens_num_type: int,
                         expert_tokens_num_flag: bool, quant_mode: int, drop_pad_mode: int, row_idx_type: int,
                         active_expert_range: Any, scale: Any, **others: Any) -> Any:  # fmt: skip
    whole = not active_expert_range or list(active_expert_range) == [0, expert_num]
    if quant_mode != -1 or drop_pad_mode or not whole or row_idx_type:
        raise checked(
            "NOT_SUPPORT: npu_moe_init_routing_v2 is emulated without quantization, dropped tokens, ranges of experts "
            f"and scatter rows, but got quant_mode {quant_mode}, drop_pad_mode {drop_pad_mode}, active_expert_range "
            f"{list(active_expert_range)}, row_idx_type {row_idx_type}", "007",
        )  # fmt: skip
    expanded, rows, *_ = form("moe_init_routing")(
        x, expert_idx, active_num=max(active_num, 0), expert_num=expert_num
    )
    tokens = (
        torch.bincount(expert_idx.reshape(-1).long(), minlength=max(expert_num, 1))
        if expert_tokens_num_flag
        else None
    )
    if tokens is not None and expert_tokens_num_type == 0:
        tokens = tokens.cumsum(0)
    if tokens is not None and expert_tokens_num_type == 2:
        pairs = torch.stack((torch.arange(len(tokens)), tokens), 1)
        used = pairs[pairs[:, 1] > 0]
        tokens = torch.zeros_like(pairs)
        tokens[: len(used)] = used
    flat = expert_idx.reshape(-1)
    order = torch.argsort(flat, stable=True)
    scales = None if scale is None else scale.reshape(-1)[(order // expert_idx.shape[1])]
    return expanded, rows, _filled(tokens, torch.int64), _filled(scales)


@declared("npu_moe_gating_top_k_softmax(Tensor x, Tensor? finished=None, int k=1) -> (Tensor, Tensor, Tensor)",
           "aclnnMoeGatingTopKSoftmax")  # fmt: skip
def _gating_softmax(x: Any, finished: Any, k: int) -> Any:
    if x.dim() not in (2, 3):
        raise checked("x should be a 2D or 3D tensor.")
    return form("moe_gating_top_k_softmax")(x, finished, k)


@declared("""npu_moe_gating_top_k_softmax_v2(Tensor x, *, int k=1, Tensor? finished=None, int renorm=0,
           bool output_softmax=False) -> (Tensor, Tensor, Tensor)""", "aclnnMoeGatingTopKSoftmaxV2")  # fmt: skip
def _gating_softmax_v2(**arguments: Any) -> Any:
    y, index, softmax = form("moe_gating_top_k_softmax_v2")(**arguments)
    return y, index, _filled(softmax)


def _gating_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    x = arguments["x"].detach().float().requires_grad_()
    with torch.enable_grad():
        share = x.sigmoid() if arguments["norm_type"] else x.softmax(-1)
        y = share.gather(-1, results[1].long())
        if arguments["norm_type"] or arguments["renorm"]:
            y = y / (y.sum(-1, True) + arguments["eps"])
        y = y * arguments["routed_scaling_factor"]
    made, requested = [y], [torch.zeros_like(y) if grads[0] is None else grads[0].float()]
    if arguments["out_flag"] and grads[2] is not None:
        made, requested = [y, share], [*requested, grads[2].float()]
    (grad,) = torch.autograd.grad(made, x, requested)
    return {"x": grad.to(arguments["x"].dtype)}


@declared("""npu_moe_gating_top_k(Tensor x, int k, *, Tensor? bias=None, Tensor? input_ids=None, Tensor? tid2eid=None,
           int k_group=1, int group_count=1, int group_select_mode=0, int renorm=0, int norm_type=0,
           bool out_flag=False, float routed_scaling_factor=1.0, float eps=1e-20) -> (Tensor, Tensor, Tensor)""",
           "aclnnMoeGatingTopK", _gating_gradients)  # fmt: skip
def _gating(x: Any, k: int, input_ids: Any, tid2eid: Any, **arguments: Any) -> Any:
    if x.dim() != 2:
        raise checked("The x should be 2D")
    y, index, out = form("moe_gating_top_k")(x, k, **arguments)
    return y, index, _filled(out)


@declared("""npu_moe_finalize_routing(Tensor expanded_permuted_rows, Tensor? skip1, Tensor? skip2, Tensor? bias,
           Tensor? scales, Tensor expanded_src_to_dst_row, Tensor? export_for_source_row, int? drop_pad_mode=0,
           int k=1) -> Tensor""", "aclnnMoeFinalizeRoutingV2")  # fmt: skip
def _finalize(k: int, drop_pad_mode: Any, **arguments: Any) -> Any:
    return form("moe_finalize_routing")(*arguments.values(), drop_pad_mode or 0)


def _permute_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    indices, index = arguments["indices"], results[1].cpu().long()
    k = 1 if indices.dim() == 1 else indices.shape[1]
    grad = grads[0].cpu().float()
    total = torch.zeros(arguments["tokens"].shape)
    kept = index < grad.shape[0]
    total.index_add_(0, torch.arange(len(index))[kept] // k, grad[index[kept]])
    return {"tokens": total.to(arguments["tokens"].dtype).to(arguments["tokens"].device)}


@declared("""npu_moe_token_permute(Tensor tokens, Tensor indices, int? num_out_tokens=None, bool padded_mode=False)
           -> (Tensor, Tensor)""", "aclnnMoeTokenPermute", _permute_gradients)  # fmt: skip
def _permute(tokens: Any, indices: Any, num_out_tokens: Any, padded_mode: bool) -> Any:
    return form("moe_token_permute")(tokens, indices, num_out_tokens or 0, padded_mode)


def _unpermute_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    rows, index = arguments["permuted_tokens"].cpu(), arguments["sorted_indices"].cpu().long()
    probs, grad = arguments["probs"], grads[0].cpu().float()
    k = 1 if probs is None else probs.shape[1]
    token = torch.arange(len(index)) // k
    share = torch.ones(len(index)) if probs is None else probs.cpu().float().reshape(-1)
    back = torch.zeros(rows.shape)
    back[index] = grad[token] * share[:, None]
    found = {"permuted_tokens": back.to(rows.dtype).to(arguments["permuted_tokens"].device)}
    if probs is not None:
        dprobs = (grad[token] * rows[index].float()).sum(1).reshape(probs.shape)
        found["probs"] = dprobs.to(probs.dtype).to(probs.device)
    return found


def _unpermute(
    permuted_tokens: Any, sorted_indices: Any, probs: Any, padded_mode: bool, restore_shape: Any
) -> Any:
    return form("moe_token_unpermute")(
        permuted_tokens, sorted_indices, probs, padded_mode, restore_shape
    )


for _name in ("npu_moe_token_unpermute", "_npu_moe_token_unpermute"):
    declared(f"""{_name}(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs=None, bool padded_mode=False,
             int[]? restore_shape=None) -> Tensor""", "aclnnMoeTokenUnpermute", _unpermute_gradients)(_unpermute)  # fmt: skip


# --- Quantisation, sampling, other -----------------------------------------------------------------


def _check_dynamic(input: Any, dst_type: Any, quant_mode: str, group_index: Any) -> None:
    if input.dim() < 2:
        raise checked("Input shape dim should be greater than 1")
    if quant_mode != "pertoken" or dst_type not in (None, 1):
        raise checked(f"NOT_SUPPORT: dynamic quantization is emulated to int8, per token, but got dst_type {dst_type}, "
                      f"quant_mode {quant_mode}", "007")  # fmt: skip


_DYNAMIC = """Tensor input, *, Tensor? smooth_scales=None, Tensor? group_index=None, int? dst_type=None,
 str? quant_mode='pertoken', float? dst_type_max=0.0"""


@declared(f"npu_dynamic_quant({_DYNAMIC}) -> (Tensor, Tensor)", "aclnnDynamicQuantV2")
def _dynamic_quant(
    input: Any,
    smooth_scales: Any,
    group_index: Any,
    dst_type: Any,
    quant_mode: str,
    dst_type_max: Any,
) -> Any:
    _check_dynamic(input, dst_type, quant_mode, group_index)
    return form("dynamic_quant")(input, smooth_scales=smooth_scales, group_index=group_index)


@declared(
    f"npu_dynamic_quant_asymmetric({_DYNAMIC}) -> (Tensor, Tensor, Tensor)", "aclnnDynamicQuantV2"
)
def _dynamic_asymmetric(input: Any, smooth_scales: Any, group_index: Any, dst_type: Any, quant_mode: str,
                        dst_type_max: Any) -> Any:  # fmt: skip
    _check_dynamic(input, dst_type, quant_mode, group_index)
    return form("dynamic_quant_asymmetric")(
        input, smooth_scales=smooth_scales, group_index=group_index
    )


@declared("""npu_quantize(Tensor self, Tensor scales, Tensor? zero_points, int dtype, int axis=1, bool div_mode=True)
           -> Tensor""", "aclnnQuantize")  # fmt: skip
def _quantize(
    self: Any, scales: Any, zero_points: Any, dtype: int, axis: int, div_mode: bool
) -> Any:
    if div_mode:
        return form("quantize")(
            self, scales, zero_points, _dtype({12: 1, 13: 0, 14: 3}.get(dtype, dtype)), axis
        )
    return form("ascend_quant")(
        self, scales, zero_points, round_mode="round", dst_type=_dtype({12: 1}.get(dtype, dtype))
    )


declared(
    "npu_top_k_top_p(Tensor logits, Tensor? p=None, Tensor? k=None) -> Tensor", "aclnnApplyTopKTopP"
)(lambda logits, p, k: form("top_k_top_p")(logits, p, k))
declared("npu_trans_quant_param(Tensor scale, Tensor? offset=None, int? round_mode=0) -> Tensor",
          "aclnnTransQuantParamV2")(lambda scale, offset, round_mode: form("trans_quant_param")(scale, offset))  # fmt: skip


declared("npu_convert_weight_to_int4pack(Tensor weight, int inner_k_tiles=0) -> Tensor",
         "aclnnConvertWeightToINT4Pack")(lambda weight, inner_k_tiles: form("convert_weight_to_int4pack")(weight))  # fmt: skip


@declared("npu_one_hot(Tensor self, int num_classes=-1, int depth=1, Scalar on_value=1, Scalar off_value=0) -> Tensor",
           "aclnnOneHot")  # fmt: skip
def _one_hot(self: Any, num_classes: int, depth: int, on_value: Any, off_value: Any) -> Any:
    on, off = (torch.tensor([one], dtype=torch.float32) for one in (on_value, off_value))
    return form("one_hot")(self, depth, axis=num_classes, on_value=on, off_value=off)


@declared("npu_one_(Tensor(a!) self) -> Tensor(a!)", "aclnnInplaceOne")
def _one(self: Any) -> Any:
    return self.fill_(1)


declared("npu_dtype_cast(Tensor self, int dtype, int? input_dtype=None) -> Tensor", "aclnnCast",
          lambda given, results, grads: {"self": grads[0].to(given["self"].dtype)})(
    lambda self, dtype, input_dtype: form("cast")(self, _dtype(dtype)))  # fmt: skip
declared("_npu_dtype_cast(Tensor self, int dtype) -> Tensor", "aclnnCast",
          lambda given, results, grads: {"self": grads[0].to(given["self"].dtype)})(
    lambda self, dtype: form("cast")(self, _dtype(dtype)))  # fmt: skip
declared("npu_silu(Tensor self) -> Tensor", "aclnnSilu", lambda given, results, grads: {
    "self": torch.ops.aten.silu_backward(grads[0], given["self"])
})(lambda self: form("silu")(self))  # fmt: skip
declared("npu_silu_(Tensor(a!) self) -> Tensor(a!)", "aclnnSilu")(
    lambda self: self.copy_(form("silu")(self))
)
declared("npu_mish(Tensor self) -> Tensor", "aclnnMish", lambda given, results, grads: {
    "self": torch.ops.aten.mish_backward(grads[0], given["self"])
})(lambda self: form("mish")(self))  # fmt: skip


def _dim_index(name: str) -> Callable[..., Any]:
    def compute(self: Any, dim: int, keepdim: bool) -> Any:
        values, indices = form(name)(self, dim, keepdim)
        return values, indices.to(torch.int32)

    return compute


def _dim_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    self, dim = arguments["self"], arguments["dim"]
    index, grad = results[1].long(), grads[0]
    if self.dim() and not arguments["keepdim"]:
        index, grad = index.unsqueeze(dim), grad.unsqueeze(dim)
    return {"self": torch.zeros_like(self).scatter(dim, index, grad)}


for _name, _entry in (("max", "aclnnMaxDim"), ("min", "aclnnMinDim")):
    declared(
        f"npu_{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        _entry,
        _dim_gradients,
    )(_dim_index(f"{_name}_dim"))


@declared("""npu_confusion_transpose(Tensor self, int[] perm, int[] shape, bool transpose_first) -> Tensor""",
           "aclnnPermute", lambda arguments, results, grads: {
    "self": (grads[0].reshape([arguments["self"].shape[k] for k in arguments["perm"]]) if arguments["transpose_first"] else grads[0])
    .permute(*np.argsort(arguments["perm"]).tolist()).reshape(arguments["self"].shape)})  # fmt: skip
def _confusion_transpose(self: Any, perm: Any, shape: Any, transpose_first: bool) -> Any:
    made = (
        self.permute(*perm).reshape(shape)
        if transpose_first
        else self.reshape(shape).permute(*perm)
    )
    return made.contiguous().clone()


declared("npu_transpose(Tensor self, int[] perm, bool require_contiguous=True) -> Tensor", "aclnnPermute",
          lambda given, results, grads: {"self": grads[0].permute(*np.argsort(given["perm"]).tolist())})(
    lambda self, perm, require_contiguous: self.permute(*perm).contiguous().clone())  # fmt: skip
declared("npu_reshape(Tensor self, int[] shape, bool can_refresh=False) -> Tensor", "aclnnReshape",
          lambda given, results, grads: {"self": grads[0].reshape(given["self"].shape)})(
    lambda self, shape, can_refresh: self.reshape(shape).clone())  # fmt: skip
declared("npu_broadcast(Tensor self, int[] size) -> Tensor", "aclnnExpand")(
    lambda self, size: self.expand(size).contiguous().clone()
)


@declared("npu_slice(Tensor self, int[] offsets, int[] size) -> Tensor", "aclnnSlice")
def _slice(self: Any, offsets: Any, size: Any) -> Any:
    ends = zip(offsets, size, self.shape, strict=True)
    return self[tuple(slice(o, whole if n == -1 else o + n) for o, n, whole in ends)].clone()


declared("""npu_layer_norm_eval(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None,
          float eps=1e-05) -> Tensor""", "aclnnLayerNorm")(
    lambda input, normalized_shape, weight, bias, eps: form("layer_norm")(input, normalized_shape, weight, bias, eps)
)  # fmt: skip
declared("npu_sort_v2(Tensor self, int dim=-1, bool descending=False) -> Tensor", "aclnnSort")(
    lambda self, dim, descending: form("sort")(self, dim, descending)[0]
)


@declared("npu_pad(Tensor input, int[] paddings) -> Tensor", "aclnnConstantPadNd")
def _pad(input: Any, paddings: Any) -> Any:
    """Pairs of the first axis on, where PyTorch has those of the last axis first."""
    if len(paddings) != 2 * input.dim():
        raise checked(
            f"paddings must have two numbers for each of {input.dim()} axes, but got {len(paddings)}"
        )
    pairs = [paddings[index : index + 2] for index in range(0, len(paddings), 2)]
    return form("constant_pad_nd")(input, [one for pair in reversed(pairs) for one in pair], 0)


def _convolution_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    names, weight = ("stride", "padding", "dilation"), arguments["weight"]
    options = [list(arguments[one]) for one in names]
    dx, dw, db = torch.ops.aten.convolution_backward(
        grads[0], arguments["input"], weight, [weight.shape[0]], *options, False, [0] * len(options[0]), arguments["groups"],
        [True, True, arguments["bias"] is not None],
    )  # fmt: skip
    return {"input": dx, "weight": dw, "bias": db}


for _name in ("conv2d", "conv3d"):

    def _convolved(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
                   _form: str = _name) -> Any:  # fmt: skip
        return form(_form)(input, weight, bias, list(stride), list(padding), list(dilation), groups)

    declared(f"""npu_{_name}(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation,
              int groups) -> Tensor""", "aclnnConvolution", _convolution_gradients)(_convolved)  # fmt: skip


# --- Attention -------------------------------------------------------------------------------------

_LAYOUTS = ("BSH", "SBH", "BNSD", "BSND", "TND")


def _check_fusion(query: Any, key: Any, value: Any, head_num: int, input_layout: str, keep_prob: float,
                  sparse_mode: int, actual_seq_qlen: Any, actual_seq_kvlen: Any) -> None:  # fmt: skip
    for name, one in (("query", query), ("key", key), ("value", value)):
        if one.dim() not in (3, 4):
            raise checked(
                f"The shapes of the input {name} should be 3 or 4 dimensional, but got {one.dim()}-dimensional"
            )
    if not 0 < keep_prob <= 1:
        raise checked(f"The keep_prob value must be in range of (0, 1], but got {keep_prob}")
    if head_num <= 0:
        raise checked(f"head_num must be greater than 0, but got {head_num}")
    if input_layout not in _LAYOUTS:
        raise checked(
            f"The input_layout should be BSH/SBH/BNSD/BSND/TND(case-insensitive), but got {input_layout}"
        )
    modes = set(range(9)) - {5} if input_layout == "TND" else set(range(7))
    if sparse_mode not in modes:
        raise checked(
            f"The sparse_mode value must be one of {sorted(modes)}, but got {sparse_mode}"
        )
    if input_layout == "TND" and (
        not actual_seq_qlen or not actual_seq_kvlen or len(actual_seq_qlen) != len(actual_seq_kvlen)
    ):
        raise checked(
            "the size of actual_seq_qlen and actual_seq_kvlen cannot be empty, and must be the same, with TND"
        )


def _fusion_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    options = {key: arguments[key] for key in ("pse", "padding_mask", "atten_mask", "keep_prob", "pre_tockens",
               "next_tockens", "inner_precise", "prefix", "actual_seq_qlen", "actual_seq_kvlen", "sparse_mode", "sink")}  # fmt: skip
    dq, dk, dv, dpse, dsink = _npu(
        "npu_fusion_attention_grad", arguments["query"], arguments["key"], arguments["value"], grads[0], arguments["head_num"],
        arguments["input_layout"], softmax_max=results[1], softmax_sum=results[2], softmax_in=results[3],
        attention_in=results[0], scale_value=arguments["scale"], seed=int(results[4]), **options,
    )  # fmt: skip
    return {"query": dq, "key": dk, "value": dv, "pse": dpse if dpse.numel() else None,
            "sink": dsink if dsink.numel() else None}  # fmt: skip


@declared("""npu_fusion_attention(Tensor query, Tensor key, Tensor value, int head_num, str input_layout,
           Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None, float scale=1., float keep_prob=1.,
           int pre_tockens=2147483647, int next_tockens=2147483647, int inner_precise=0, int[]? prefix=None,
           int[]? actual_seq_qlen=None, int[]? actual_seq_kvlen=None, int sparse_mode=0, bool gen_mask_parallel=True,
           bool sync=False, str softmax_layout='', Tensor? sink=None, Tensor? dropout_mask=None, int seed=0,
           int offset=0) -> (Tensor, Tensor, Tensor, Tensor, int, int, int)""", "aclnnFlashAttentionScore",
           _fusion_gradients)  # fmt: skip
def _fusion_attention(query: Any, key: Any, value: Any, head_num: int, input_layout: str, pse: Any, padding_mask: Any,
                      atten_mask: Any, scale: float, keep_prob: float, pre_tockens: int, next_tockens: int,
                      inner_precise: int, prefix: Any, actual_seq_qlen: Any, actual_seq_kvlen: Any, sparse_mode: int,
                      sink: Any, dropout_mask: Any, softmax_layout: str, **others: Any) -> Any:  # fmt: skip
    input_layout = input_layout.upper()
    _check_fusion(
        query,
        key,
        value,
        head_num,
        input_layout,
        keep_prob,
        sparse_mode,
        actual_seq_qlen,
        actual_seq_kvlen,
    )
    if dropout_mask is not None:
        raise checked("NOT_SUPPORT: npu_fusion_attention draws its mask of dropout itself", "007")
    if sink is not None or keep_prob != 1:
        seed = int(torch.randint(1 << 62, (1,), device="npu").item()) if keep_prob != 1 else 0
        options = _options(
            atten_mask, pre_tockens, next_tockens, inner_precise, prefix, sparse_mode
        )
        call = Attention(
            query, key, value, head_num, input_layout, scale, keep_prob, seed, pse, sink, options
        )
        out, most, total, count = attended(call)
        return out, most, total, torch.empty(0, dtype=query.dtype), seed, 0, count
    out, most, total = form("fusion_attention")(
        query, key, value, head_num, input_layout, pse, padding_mask, atten_mask, scale, keep_prob, pre_tockens,
        next_tockens, inner_precise, prefix, actual_seq_qlen, actual_seq_kvlen, sparse_mode,
    )  # fmt: skip
    return out, most, total, torch.empty(0, dtype=query.dtype), 0, 0, 0


def _options(
    atten_mask: Any, before: int, behind: int, precise: int, prefix: Any, mode: int
) -> dict[str, Any]:
    return {"atten_mask": atten_mask, "pre_tockens": before, "next_tockens": behind, "inner_precise": precise,
            "prefix": prefix, "sparse_mode": mode}  # fmt: skip


_FUSION2 = """Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None, float scale=1., float keep_prob=1.,
 int pre_tokens=2147483647, int next_tokens=2147483647, int inner_precise=0, int[]? prefix=None,
 {lengths} actual_seq_qlen=None, {lengths} actual_seq_kvlen=None, int sparse_mode=0, bool gen_mask_parallel=True,
 bool sync=False, int pse_type=1, int[]? q_start_idx=None, int[]? kv_start_idx=None, str softmax_layout='',
 Tensor? sink=None, Tensor? query_rope=None, Tensor? key_rope=None"""


def _as_first(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a later version as those of the first one."""
    names = ("query_rope", "key_rope", "q_start_idx", "kv_start_idx")
    used = [one for one in names if arguments.pop(one, None) is not None]
    pse_type = arguments.pop("pse_type", 1)
    if used or pse_type not in (0, 1):
        raise checked(
            f"NOT_SUPPORT: attention with {', '.join(used) or f'pse_type {pse_type}'} has no kernel here",
            "007",
        )
    if pse_type == 0 and arguments["pse"] is not None:  # which is added to the scaled product
        arguments["pse"] = arguments["pse"] / arguments.get("scale", arguments.get("scale_value"))
    for one in ("pre_tokens", "next_tokens"):
        arguments[one.replace("tokens", "tockens")] = arguments.pop(one)
    for one in ("actual_seq_qlen", "actual_seq_kvlen"):
        if isinstance(arguments[one], torch.Tensor):
            arguments[one] = arguments[one].tolist()
    return arguments


def _fusion_gradients2(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    found = _fusion_gradients(_as_first(dict(arguments)), results, grads)
    if arguments["pse_type"] == 0 and found["pse"] is not None:
        found["pse"] = found["pse"] / arguments["scale"]
    return found


@declared(f"""npu_fusion_attention_v2(Tensor query, Tensor key, Tensor value, int head_num, str input_layout, *,
           {_FUSION2.format(lengths='int[]?')}) -> (Tensor, Tensor, Tensor, Tensor, int, int, int)""",
           "aclnnFlashAttentionScoreV2", _fusion_gradients2)  # fmt: skip
def _fusion_attention_v2(**arguments: Any) -> Any:
    return _fusion_attention(**_as_first(arguments), dropout_mask=None)


@declared(f"""npu_fusion_attention_v3(Tensor query, Tensor key, Tensor value, int head_num, str input_layout, *,
           {_FUSION2.format(lengths='Tensor?')}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)""",
           "aclnnFlashAttentionScoreV3", _fusion_gradients2)  # fmt: skip
def _fusion_attention_v3(**arguments: Any) -> Any:
    made = _fusion_attention(**_as_first(arguments), dropout_mask=None)
    return (*made[:4], torch.tensor([made[4]]), torch.zeros(1, dtype=torch.int64))


_GRAD2 = (
    _FUSION2.format(lengths="int[]?")
    .replace(
        "float scale=1.",
        """Tensor? softmax_max=None,
 Tensor? softmax_sum=None, Tensor? softmax_in=None, Tensor? attention_in=None, float scale_value=1.""",
    )
    .replace("int[]? prefix", "int seed=0, int offset=0, int numels=0, int[]? prefix")
)


@declared(f"""npu_fusion_attention_grad_v2(Tensor query, Tensor key, Tensor value, Tensor dy, int head_num,
           str input_layout, *, {_GRAD2})
           -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)""", "aclnnFlashAttentionScoreGradV2")  # fmt: skip
def _fusion_attention_grad_v2(**arguments: Any) -> Any:
    dq, dk, dv, dpse, dsink = _fusion_attention_grad(**_as_first(arguments))
    return dq, dk, dv, dpse, None, None, dsink


@declared("""npu_fusion_attention_grad(Tensor query, Tensor key, Tensor value, Tensor dy, int head_num,
           str input_layout, *, Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None,
           Tensor? softmax_max=None, Tensor? softmax_sum=None, Tensor? softmax_in=None, Tensor? attention_in=None,
           float scale_value=1., float keep_prob=1., int pre_tockens=2147483647, int next_tockens=2147483647,
           int inner_precise=0, int seed=0, int offset=0, int numels=0, int[]? prefix=None,
           int[]? actual_seq_qlen=None, int[]? actual_seq_kvlen=None, int sparse_mode=0, bool gen_mask_parallel=True,
           bool sync=False, str softmax_layout='', Tensor? sink=None) -> (Tensor, Tensor, Tensor, Tensor, Tensor)""",
           "aclnnFlashAttentionScoreGrad")  # fmt: skip
def _fusion_attention_grad(query: Any, key: Any, value: Any, dy: Any, head_num: int, input_layout: str, pse: Any,
                           padding_mask: Any, atten_mask: Any, softmax_max: Any, softmax_sum: Any, attention_in: Any,
                           scale_value: float, keep_prob: float, pre_tockens: int, next_tockens: int,
                           inner_precise: int, prefix: Any, actual_seq_qlen: Any, actual_seq_kvlen: Any,
                           sparse_mode: int, seed: int, sink: Any, **others: Any) -> Any:  # fmt: skip
    input_layout = input_layout.upper()
    if sink is not None or keep_prob != 1 or (pse is not None and input_layout != "TND"):
        options = _options(
            atten_mask, pre_tockens, next_tockens, inner_precise, prefix, sparse_mode
        )
        return gradients(Attention(query, key, value, head_num, input_layout, scale_value, keep_prob, seed, pse, sink,
                                   options), dy)  # fmt: skip
    dq, dk, dv = form("fusion_attention_grad")(
        query, key, value, dy, head_num, input_layout, softmax_max, softmax_sum, attention_in, pse,
        padding_mask, atten_mask, scale_value, keep_prob, pre_tockens, next_tockens, inner_precise, prefix,
        actual_seq_qlen, actual_seq_kvlen, sparse_mode,
    )  # fmt: skip
    return dq, dk, dv, None, None


_QUANT = """Tensor? deq_scale1=None, Tensor? quant_scale1=None, Tensor? deq_scale2=None, Tensor? quant_scale2=None,
 Tensor? quant_offset2=None"""


@declared(f"""npu_prompt_flash_attention(Tensor query, Tensor key, Tensor value, *, Tensor? padding_mask=None,
           Tensor? atten_mask=None, Tensor? pse_shift=None, int[]? actual_seq_lengths=None, {_QUANT}, int num_heads=1,
           float scale_value=1.0, int pre_tokens=2147483647, int next_tokens=0, str input_layout="BSH",
           int num_key_value_heads=0, int[]? actual_seq_lengths_kv=None, int sparse_mode=0) -> Tensor""",
           "aclnnPromptFlashAttentionV3")  # fmt: skip
def _prompt(query: Any, key: Any, value: Any, padding_mask: Any, deq_scale1: Any, deq_scale2: Any,
            actual_seq_lengths: Any, actual_seq_lengths_kv: Any, sparse_mode: int, **arguments: Any) -> Any:  # fmt: skip
    mode = sparse_mode - 10 if 10 <= sparse_mode <= 14 else sparse_mode
    return form("prompt_flash_attention")(
        query, key, value, **arguments, dequant_scale1=deq_scale1, dequant_scale2=deq_scale2, sparse_mode=mode,
        actual_seq_lengths=_lengths(actual_seq_lengths), actual_seq_lengths_kv=_lengths(actual_seq_lengths_kv),
    )  # fmt: skip


@declared("""npu_incre_flash_attention(Tensor query, Tensor key, Tensor value, *, Tensor? padding_mask=None,
           Tensor? atten_mask=None, Tensor? pse_shift=None, int[]? actual_seq_lengths=None,
           Tensor? antiquant_scale=None, Tensor? antiquant_offset=None, Tensor? block_table=None,
           Tensor? dequant_scale1=None, Tensor? quant_scale1=None, Tensor? dequant_scale2=None,
           Tensor? quant_scale2=None, Tensor? quant_offset2=None, Tensor? kv_padding_size=None, int num_heads=1,
           float scale_value=1.0, str input_layout="BSH", int num_key_value_heads=0, int block_size=0,
           int inner_precise=1) -> Tensor""", "aclnnIncreFlashAttentionV4")  # fmt: skip
def _incremental(
    query: Any, key: Any, value: Any, padding_mask: Any, actual_seq_lengths: Any, **arguments: Any
) -> Any:
    lengths = _lengths(actual_seq_lengths)
    return form("incre_flash_attention")(query, key, value, **arguments, actual_seq_lengths=lengths)


_INFER = """Tensor query, Tensor key, Tensor value, *, Tensor? pse_shift=None, Tensor? atten_mask=None,
 int[]? actual_seq_lengths=None, int[]? actual_seq_lengths_kv=None, Tensor? dequant_scale1=None,
 Tensor? quant_scale1=None, Tensor? dequant_scale2=None, Tensor? quant_scale2=None, Tensor? quant_offset2=None,
 Tensor? antiquant_scale=None, Tensor? antiquant_offset=None, Tensor? key_antiquant_scale=None,
 Tensor? key_antiquant_offset=None, Tensor? value_antiquant_scale=None, Tensor? value_antiquant_offset=None,
 Tensor? block_table=None, Tensor? query_padding_size=None, Tensor? kv_padding_size=None,
 Tensor? key_shared_prefix=None, Tensor? value_shared_prefix=None, int[]? actual_shared_prefix_len=None,
 Tensor? query_rope=None, Tensor? key_rope=None, Tensor? key_rope_antiquant_scale=None, int num_heads=1,
 float scale=1.0, int pre_tokens=2147483647, int next_tokens=2147483647, str input_layout="BSH",
 int num_key_value_heads=0, int sparse_mode=0, int inner_precise=0, int block_size=0, int antiquant_mode=0,
 int key_antiquant_mode=0, int value_antiquant_mode=0, bool softmax_lse_flag=False"""


@declared(
    f"npu_fused_infer_attention_score({_INFER}) -> (Tensor, Tensor)",
    "aclnnFusedInferAttentionScoreV3",
)
def _infer(query: Any, key: Any, value: Any, num_heads: int, key_rope_antiquant_scale: Any, actual_seq_lengths: Any,
           actual_seq_lengths_kv: Any, actual_shared_prefix_len: Any, **arguments: Any) -> Any:  # fmt: skip
    if num_heads <= 0:
        raise checked("numHeads should be greater than 0", "003")
    out, lse = form("fused_infer_attention_score")(
        query, key, value, **arguments, num_heads=num_heads, actual_seq_lengths=_lengths(actual_seq_lengths),
        actual_seq_lengths_kv=_lengths(actual_seq_lengths_kv),
        actual_shared_prefix_len=_lengths(actual_shared_prefix_len),
    )  # fmt: skip
    return out, _filled(lse if arguments["softmax_lse_flag"] else None)


@declared(
    f"_npu_fused_infer_attention_score_get_max_workspace({_INFER}) -> Tensor",
    "aclnnFusedInferAttentionScoreV3",
)
def _infer_workspace(query: Any, **arguments: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8)  # the CPU's kernels need none of their callers


@declared(
    f"_npu_fused_infer_attention_score_infer_output({_INFER}) -> (Tensor, Tensor)",
    "aclnnFusedInferAttentionScoreV3",
)
def _infer_output(**arguments: Any) -> Any:
    return tuple(torch.empty_like(one) for one in _infer(**arguments))


@declared(
    f"npu_fused_infer_attention_score.out({_INFER}, Tensor? workspace=None, Tensor(a!) attention_out, "
    "Tensor(b!) softmax_lse) -> (Tensor(a!), Tensor(b!))",
    "aclnnFusedInferAttentionScoreV3",
)
def _infer_into(workspace: Any, attention_out: Any, softmax_lse: Any, **arguments: Any) -> Any:
    out, lse = _infer(**arguments)
    for name, to, one in (("attention_out", attention_out, out), ("softmax_lse", softmax_lse, lse)):
        if one.numel() and (to.shape != one.shape or to.dtype != one.dtype):
            raise checked(
                f"{name} is {to.dtype} of shape {list(to.shape)}, must be {one.dtype} of {list(one.shape)}"
            )
        if one.numel():
            to.copy_(one)
    return attention_out, softmax_lse


_INFER2 = """Tensor query, Tensor key, Tensor value, *, Tensor? query_rope=None, Tensor? key_rope=None,
 Tensor? pse_shift=None, Tensor? atten_mask=None, int[]? actual_seq_qlen=None, int[]? actual_seq_kvlen=None,
 Tensor? block_table=None, Tensor? dequant_scale_query=None, Tensor? dequant_scale_key=None,
 Tensor? dequant_offset_key=None, Tensor? dequant_scale_value=None, Tensor? dequant_offset_value=None,
 Tensor? dequant_scale_key_rope=None, Tensor? quant_scale_out=None, Tensor? quant_offset_out=None,
 Tensor? quant_scale_p=None, Tensor? learnable_sink=None, int num_query_heads=1, int num_key_value_heads=0,
 float softmax_scale=1.0, int pre_tokens=2147483647, int next_tokens=2147483647, str input_layout="BSH",
 int sparse_mode=0, int block_size=0, int query_quant_mode=0, int key_quant_mode=0, int value_quant_mode=0,
 int inner_precise=0, bool return_softmax_lse=False"""


@declared(
    f"npu_fused_infer_attention_score_v2({_INFER2}) -> (Tensor, Tensor)",
    "aclnnFusedInferAttentionScoreV4",
)
def _infer_v2(query: Any, key: Any, value: Any, num_query_heads: int, actual_seq_qlen: Any, actual_seq_kvlen: Any,
              dequant_scale_query: Any, dequant_scale_key_rope: Any, quant_scale_p: Any, query_quant_mode: int,
              **arguments: Any) -> Any:  # fmt: skip
    if num_query_heads <= 0:
        raise checked("numHeads should be greater than 0", "003")
    if (
        dequant_scale_query is not None
        or dequant_scale_key_rope is not None
        or quant_scale_p is not None
    ):
        raise checked(
            "NOT_SUPPORT: npu_fused_infer_attention_score_v2 is emulated for queries without quantization",
            "007",
        )
    out, lse = form("fused_infer_attention_score_v2")(
        query, key, value, **arguments, num_query_heads=num_query_heads, actual_seq_qlen=_lengths(actual_seq_qlen),
        actual_seq_kvlen=_lengths(actual_seq_kvlen),
    )  # fmt: skip
    return out, _filled(lse if arguments["return_softmax_lse"] else None)


# --- Products --------------------------------------------------------------------------------------


def _linear_gradients(arguments: Any, results: Any, grads: Any) -> dict[str, Any]:
    grad = grads[0]
    return {"input": grad @ arguments["weight"], "weight": grad.t() @ arguments["input"],
            "bias": None if arguments["bias"] is None else grad.sum(0)}  # fmt: skip


@declared(
    "npu_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    "aclnnAddmm",
    _linear_gradients,
)
def _linear(input: Any, weight: Any, bias: Any) -> Any:
    return form("mm")(input, weight.t()) if bias is None else form("addmm")(bias, input, weight.t())


@declared("npu_bmmV2(Tensor self, Tensor mat2, int[] output_sizes) -> Tensor", "aclnnBatchMatMul",
           lambda arguments, results, grads: {"self": grads[0] @ arguments["mat2"].transpose(-1, -2),
                                          "mat2": arguments["self"].transpose(-1, -2) @ grads[0]})  # fmt: skip
def _bmm(self: Any, mat2: Any, output_sizes: Any) -> Any:
    made = form("matmul")(self, mat2)
    return made.reshape(output_sizes) if output_sizes else made


@declared("""npu_grouped_matmul(Tensor[] x, Tensor[] weight, *, Tensor[]? bias=None, Tensor[]? scale=None,
           Tensor[]? offset=None, Tensor[]? antiquant_scale=None, Tensor[]? antiquant_offset=None,
           Tensor[]? per_token_scale=None, Tensor? group_list=None, Tensor[]? activation_input=None,
           Tensor[]? activation_quant_scale=None, Tensor[]? activation_quant_offset=None, int? split_item=0,
           int? group_type=None, int? group_list_type=0, int? act_type=0, int[]? tuning_config=None,
           int? output_dtype=None, int? x_dtype=None, int? weight_dtype=None, int? scale_dtype=None,
           int? per_token_scale_dtype=None) -> Tensor[]""", "aclnnGroupedMatmulV5")  # fmt: skip
def _grouped(x: Any, weight: Any, bias: Any, scale: Any, antiquant_scale: Any, antiquant_offset: Any,
             per_token_scale: Any, group_list: Any, split_item: Any, group_type: Any, group_list_type: Any,
             act_type: Any, output_dtype: Any, **others: Any) -> Any:  # fmt: skip
    if group_type is None:
        raise checked("Requires manual passing group_type, current is None.", "003")
    if group_type not in (-1, 0, 2):
        raise checked(f"group_type only supports -1, 0 and 2, but got {group_type}", "003")
    named = {"bias": bias, "scale": scale, "antiquant_scale": antiquant_scale, "antiquant_offset": antiquant_offset,
             "per_token_scale": per_token_scale}  # fmt: skip
    return form("grouped_matmul")(
        list(x), list(weight), **{key: list(one) if one else None for key, one in named.items()},
        group_list=group_list, split_item=split_item or 0, group_type=group_type,
        group_list_type=group_list_type or 0, act_type=act_type or 0, output_dtype=_dtype(output_dtype),
    )  # fmt: skip


@declared("""npu_grouped_matmul.List(Tensor[] x, Tensor[] weight, *, Tensor[]? bias=None, Tensor[]? scale=None,
          Tensor[]? offset=None, Tensor[]? antiquant_scale=None, Tensor[]? antiquant_offset=None,
          Tensor[]? per_token_scale=None, int[]? group_list=None, Tensor[]? activation_input=None,
          Tensor[]? activation_quant_scale=None, Tensor[]? activation_quant_offset=None, int? split_item=0,
          int? group_type=None, int? group_list_type=0, int? act_type=0, ScalarType? output_dtype=None) -> Tensor[]""",
          "aclnnGroupedMatmulV5")  # fmt: skip
def _grouped_by_list(group_list: Any, group_type: Any, output_dtype: Any, **arguments: Any) -> Any:
    ends = torch.tensor(list(group_list), dtype=torch.int64) if group_list else None
    kind = group_type if group_type is not None else 0 if group_list else -1
    return _grouped(**arguments, group_list=ends, group_type=kind,
                    output_dtype=None if output_dtype is None else _number(output_dtype))  # fmt: skip


@declared("""npu_quant_matmul(Tensor x1, Tensor x2, Tensor scale, *, Tensor? offset=None, Tensor? pertoken_scale=None,
           Tensor? bias=None, int? output_dtype=None, int? x1_dtype=None, int? x2_dtype=None,
           int? pertoken_scale_dtype=None, int? scale_dtype=None, int[]? group_sizes=None, Tensor? y_scale=None)
           -> Tensor""", "aclnnQuantMatmulV5")  # fmt: skip
def _quant_matmul(x1: Any, x2: Any, scale: Any, offset: Any, pertoken_scale: Any, bias: Any, output_dtype: Any,
                  **others: Any) -> Any:  # fmt: skip
    requested = 1 if output_dtype is None else output_dtype
    if scale.dtype == torch.float32 and pertoken_scale is None and requested not in (15, 3):
        scale = form("trans_quant_param")(scale, offset)
    return form("quant_matmul")(
        x1,
        x2,
        scale,
        offset=offset,
        pertoken_scale=pertoken_scale,
        bias=bias,
        output_dtype=_dtype(requested),
    )


@declared("""npu_weight_quant_batchmatmul(Tensor x, Tensor weight, Tensor antiquant_scale,
           Tensor? antiquant_offset=None, Tensor? quant_scale=None, Tensor? quant_offset=None, Tensor? bias=None,
           int antiquant_group_size=0, int inner_precise=0, int? weight_dtype=None) -> Tensor""",
           "aclnnWeightQuantBatchMatmulV2")  # fmt: skip
def _weight_quant(x: Any, weight: Any, antiquant_scale: Any, antiquant_offset: Any, quant_scale: Any,
                  quant_offset: Any, bias: Any, antiquant_group_size: int, inner_precise: int, weight_dtype: Any) -> Any:  # fmt: skip
    rows = x.shape[-1]
    if antiquant_group_size and (
        antiquant_group_size % 32 or not 32 <= antiquant_group_size < rows
    ):
        raise checked(f"antiquant_group_size can be either 0 or a multiple of 32 within the range 32 to {rows - 1}, but got "
                      f"{antiquant_group_size}", "003")  # fmt: skip
    if inner_precise not in (0, 1):
        raise checked(f"inner_precise must be 0 or 1, but got {inner_precise}", "003")
    if quant_offset is not None and quant_scale is None:
        raise checked("When quant_offset exists, quant_scale must exist.")
    if quant_scale is not None and quant_scale.dtype == torch.float32:
        quant_scale = form("trans_quant_param")(quant_scale, quant_offset)
    return form("weight_quant_batchmatmul")(
        x,
        weight,
        antiquant_scale,
        antiquant_offset,
        quant_scale,
        quant_offset,
        bias,
        antiquant_group_size,
    )
