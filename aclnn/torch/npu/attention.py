"""``scaled_dot_product_attention``: fused where the NPU's PyTorch fuses it, else PyTorch's composite."""

from __future__ import annotations

import math
from typing import Any

import torch

aten = torch.ops.aten
_libraries: list[Any] = []
_SIDE = 2048  # of the triangle that stands for causal masks of all sizes
MOST_HEADS, LONGEST_HEAD = 2048, 512
OVERRIDEABLE = 4  # what `_fused_sdp_choice` calls a kernel of the backend


def register() -> None:
    """Register the operator below and above autograd: the function that computes it has gradients."""
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    for key in ("PrivateUse1", "AutogradPrivateUse1"):
        library.impl("scaled_dot_product_attention", attention, key)
    library.impl("_fused_sdp_choice", lambda *args, **named: OVERRIDEABLE, "PrivateUse1")


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """The operator's kernel."""
    if not is_fused(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )[0]
    options: dict[str, Any] = {"scale": 1 / math.sqrt(query.shape[-1]) if scale is None else scale}
    if is_causal:
        triangle = torch.ones(_SIDE, _SIDE, dtype=torch.bool, device=query.device).triu(1)
        options |= {"atten_mask": triangle, "sparse_mode": 2, "next_tokens": 0}
    elif attn_mask is not None:
        shape = (*attn_mask.shape[:-2], query.shape[2], key.shape[2])
        options["atten_mask"] = attn_mask.logical_not().expand(shape).contiguous()
    if "atten_mask" in options and query.shape[2] > 1:
        options["inner_precise"] = 2
    fused = torch.ops.npu.npu_fusion_attention_v3
    return fused(query, key, value, query.shape[1], "BNSD", **options)[0]


def is_fused(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, enable_gqa: bool
) -> bool:
    """Whether a call is one that the NPU's PyTorch fuses, and that the function takes here."""
    tensors = (query, key, value)
    if any(one.dim() != 4 or not one.is_npu or not one.numel() for one in tensors) or dropout_p:
        return False
    if len({one.dtype for one in tensors}) > 1 or len({one.shape[0] for one in tensors}) > 1:
        return False
    if query.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return False
    heads, size = query.shape[1], query.shape[3]
    if heads > MOST_HEADS or size > LONGEST_HEAD or key.shape[3] != size or value.shape[3] != size:
        return False
    if key.shape[1] != value.shape[1] or key.shape[2] != value.shape[2]:
        return False
    if heads % key.shape[1] or (heads != key.shape[1] and not enable_gqa):
        return False
    if query.dtype == torch.float32 and size % 4:
        return False
    return mask is None or (not is_causal and _is_fused_mask(mask, query, key))


def _is_fused_mask(mask: Any, query: Any, key: Any) -> bool:
    if mask.dtype != torch.bool or not mask.is_npu or mask.dim() not in (2, 4):
        return False
    batch, heads = query.shape[:2]
    if mask.dim() == 4 and tuple(mask.shape[:2]) not in ((batch, heads), (batch, 1), (1, 1)):
        return False
    return mask.shape[-2] in (1, query.shape[2]) and mask.shape[-1] in (1, key.shape[2])
