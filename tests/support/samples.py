"""A good call of every operator, for tests that go over all of them.

By default every tensor has the shape (2, 3) and the dtype that is asked for, and options have their
defaults; `UNLIKE` says what is different. A test that asserts something of all operators takes its
arguments from here, so that a new operator takes part with one line at most.
"""

from __future__ import annotations

import ast
import contextlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import cases
import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import dtypes
from aclnn.api import c_shaped
from aclnn.operators import ENTRIES, FAMILIES, REGISTRY, examples, functional_owner

SHAPE = (2, 3)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (np.dtype(np.float32), np.dtype(np.float16), BFLOAT16)


@dataclass(frozen=True)
class Unlike:
    """What is different of an operator's sample: by role shapes, dtypes that are fixed, options."""

    shapes: dict[str, Any] = field(default_factory=dict)  # of a list, a shape for each tensor
    dtypes: dict[str, type] = field(default_factory=dict)  # of integers: indices 0 and 1
    options: dict[str, Any] = field(default_factory=dict)
    halves_only: bool = False  # float16 stands for float32, which it does not take
    values: dict[str, Any] = field(
        default_factory=dict
    )  # by role, of arrays that are no random ones
    absent: tuple[str, ...] = ()  # optional inputs and outputs that the sample is without


def _norm(**shapes):
    return Unlike({"weight": (3,), "bias": (3,)} | shapes, options={"normalized_shape": (3,)})


def _dynamic():
    shapes, options = {"smooth_scales": (3,)}, {"dst_type": "int8"}
    return Unlike(shapes, options=options, halves_only=True, absent=("group_index",))


def _quantized(absent):
    return Unlike(
        {"x2": (3, 4), "scale": (4,), "pertoken_scale": (2,), "bias": (4,)},
        dict.fromkeys(("x1", "x2"), np.int8)
        | dict.fromkeys(("scale", "pertoken_scale", "bias"), np.float32),
        {"output_dtype": "float16"},
        absent=absent,
    )


def _norm_quant(*absent):
    roles = [one for one in ("gamma", "beta", "zero_points1", "zero_points2") if one not in absent]
    scales = {"scales1": [0.0625] * 3, "scales2": [0.125] * 3}
    return Unlike(dict.fromkeys(roles, (3,)), values=scales, absent=absent)


def _norm_dynamic(*beta):
    """With a mask of outputs where beta is."""
    return Unlike(
        dict.fromkeys(("gamma", "smooth_scale1", "smooth_scale2", *beta), (3,)),
        options={"output_mask": (True, True)} if beta else {},
        halves_only=True,
    )


_QUANTISED = ("quant_scale2", "quant_offset2", "quant_scale_out", "quant_offset_out")
_QUANTISED += ("antiquant_scale", "antiquant_offset")
_QUANTISED += ("dequant_scale1", "quant_scale1", "dequant_scale2")
_SHARED = ("key_shared_prefix", "value_shared_prefix", "actual_shared_prefix_len")
_SHARED += ("query_padding_size", "kv_padding_size")
_QUANTISED += tuple(f"{x}_antiquant_{y}" for x in ("key", "value") for y in ("scale", "offset"))
_QUANTISED += tuple(f"dequant_{y}_{x}" for x in ("key", "value") for y in ("scale", "offset"))


def _attention(*absent, queries=2, **options):
    """Of inference: of halves, without what would have to fit each other."""
    return Unlike(
        {"query": (1, queries, 3), "key": (1, 2, 3), "value": (1, 2, 3)},
        options=options,
        absent=(*absent, "atten_mask", "pse_shift", "learnable_sink", *_QUANTISED, *_SHARED),
        halves_only=True,
    )


def _training(shapes=None):
    given = dict.fromkeys(("query", "key", "value"), (1, 2, 3))
    kinds = {role: np.float32 for role in shapes or {} if role.startswith("softmax")}
    options = {"head_num": 1, "input_layout": "BSH", "keep_prob": 1.0}
    absent = (
        "pse",
        "drop_mask",
        "padding_mask",
        "atten_mask",
        "actual_seq_qlen",
        "actual_seq_kvlen",
    )
    return Unlike(given | (shapes or {}), kinds, options, absent=absent)


_INDEX = {"index": np.int64}
_CHANNELS = {"input": (2, 4, 3)} | dict.fromkeys(
    ("weight", "bias", "running_mean", "running_var"), (4,)
)
_SAVED = {"grad_out": (2, 4, 3), "save_mean": (4,), "save_invstd": (4,)}
_ROWS = {"mean": (2, 1), "rstd": (2, 1)}
UNLIKE = {
    "threshold": Unlike(options={"threshold": 0.5, "value": 7.0}),
    "threshold_backward": Unlike(options={"threshold": 0.5}),
    "prelu": Unlike({"weight": (3,)}),
    "prelu_backward": Unlike({"weight": (3,)}),
    "log_sigmoid_forward": Unlike({"buffer": (1,)}),
    "log_sigmoid_backward": Unlike({"buffer": (1,)}),
    "where": Unlike(dtypes={"condition": np.bool_}),
    "cast": Unlike(options={"dtype": "float32"}),
    "cat": Unlike({"tensors": [(2, 3), (4, 3)]}),
    "swiglu": Unlike({"input": (2, 6)}),
    "swiglu_backward": Unlike({"input": (2, 6)}),
    "glu": Unlike({"input": (2, 6)}),
    "glu_backward": Unlike({"input": (2, 6)}),
    "geglu": Unlike({"input": (2, 6)}),
    "geglu_backward": Unlike({"input": (2, 6)}),
    "gelu_mul": Unlike({"input": (2, 6)}),
    "fatrelu_mul": Unlike({"input": (2, 6), "threshold": (1,)}),
    "clipped_swiglu": Unlike({"input": (2, 6), "group_index": (1,)}, {"group_index": np.int64}),
    "clipped_swiglu_backward": Unlike(
        {"input": (2, 6), "group_index": (1,)}, {"group_index": np.int64}
    ),
    "matmul": Unlike({"other": (3, 4)}),
    "mm": Unlike({"mat2": (3, 4)}),
    "bmm": Unlike({"input": (2, 2, 3), "mat2": (2, 3, 4)}),
    "addmm": Unlike({"input": (2, 4), "mat1": (2, 3), "mat2": (3, 4)}),
    "baddbmm": Unlike({"input": (2, 2, 4), "batch1": (2, 2, 3), "batch2": (2, 3, 4)}),
    "addbmm": Unlike({"input": (2, 4), "batch1": (3, 2, 3), "batch2": (3, 3, 4)}),
    "addmv": Unlike({"input": (2,), "mat": (2, 3), "vec": (3,)}),
    "gemm": Unlike({"b": (3, 4), "c": (2, 4)}),
    "scaled_dot_product_attention": Unlike({"attn_mask": (2, 2)}),
    "scaled_dot_product_attention_forward": Unlike({"attn_mask": (2, 2)}),
    "scaled_dot_product_attention_backward": Unlike(
        {"attn_mask": (2, 2), "logsumexp": (2,)}, {"logsumexp": np.float32}
    ),
    "fused_infer_attention_score": _attention(
        "actual_seq_lengths", "actual_seq_lengths_kv", "block_table", "query_rope", "key_rope",
        softmax_lse_flag=True,
    ),
    "fused_infer_attention_score_v2": _attention(
        "actual_seq_qlen", "actual_seq_kvlen", "block_table", "query_rope", "key_rope",
        return_softmax_lse=True,
    ),
    "fused_infer_attention_score_v5": _attention(
        "actual_seq_lengths", "actual_seq_lengths_kv", "block_table", "query_rope", "key_rope",
        softmax_lse_flag=True,
    ),
    "prompt_flash_attention": _attention("actual_seq_lengths", "actual_seq_lengths_kv"),
    "incre_flash_attention": _attention("actual_seq_lengths", "block_table", queries=1),
    "fusion_attention": _training(),
    "fusion_attention_grad": _training(
        dict.fromkeys(("softmax_max", "softmax_sum"), (1, 1, 2, 8))
        | dict.fromkeys(("dy", "attention_in"), (1, 2, 3))
    ),
    "rotary_position_embedding": Unlike(dict.fromkeys(("x", "cos", "sin"), (2, 4))),
    "apply_rotary_pos_emb": Unlike(
        dict.fromkeys(("query", "key", "cos", "sin"), (2, 3, 1, 4)),
        options={"layout": 1, "rotary_mode": "half"},
    ),
    "add_rms_norm": Unlike({"gamma": (3,)}),
    "add_rms_norm_cast": Unlike({"gamma": (3,)}, halves_only=True),
    "gemma_rms_norm": Unlike({"gamma": (3,)}),
    "add_layer_norm": Unlike(
        dict.fromkeys(("gamma", "beta", "bias"), (3,)), options={"additional_output": True}
    ),
    "native_group_norm": Unlike(
        _CHANNELS, options={"N": 2, "C": 4, "HxW": 3, "group": 1}
    ),
    "group_norm": Unlike(_CHANNELS, options={"num_groups": 2}),
    "group_norm_silu": Unlike(_CHANNELS, options={"group": 1}),
    "native_batch_norm": Unlike(_CHANNELS),
    "batch_norm": Unlike(_CHANNELS),
    "native_batch_norm_functional": Unlike(_CHANNELS),
    "native_batch_norm_backward": Unlike(_CHANNELS | _SAVED),
    "convolution": Unlike(
        {"input": (1, 2, 3, 4), "weight": (3, 2, 2, 2), "bias": (3,)},
        options={"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)},
    ),
    "convolution_backward": Unlike(
        {"grad_output": (1, 3, 2, 3), "input": (1, 2, 3, 4), "weight": (3, 2, 2, 2)},
        options={"bias_sizes": (3,), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
        | {"output_padding": (0, 0), "output_mask": (True, True, True)},
    ),
    "conv1d": Unlike({"input": (2, 2, 5), "weight": (3, 2, 2), "bias": (3,)}),
    "conv2d": Unlike({"input": (1, 2, 3, 4), "weight": (3, 2, 2, 2), "bias": (3,)}),
    "conv3d": Unlike({"input": (1, 2, 2, 3, 3), "weight": (3, 2, 2, 1, 2), "bias": (3,)}),
    "conv_transpose1d": Unlike({"input": (2, 2, 3), "weight": (2, 3, 2), "bias": (3,)}),
    "conv_transpose2d": Unlike({"input": (1, 2, 2, 3), "weight": (2, 3, 2, 2), "bias": (3,)}),
    "softmax": Unlike(options={"dim": 1}),
    "log_softmax": Unlike(options={"dim": 1}),
    "softmax_backward": Unlike(options={"dim": 1}),
    "log_softmax_backward": Unlike(options={"dim": 1}),
    "sum": Unlike(options={"dim": (1,)}),
    "mean": Unlike(options={"dim": (1,), "dtype": "float32"}),
    "amax": Unlike(options={"dim": (1,)}),
    "var": Unlike(options={"dim": (1,)}),
    "arg_max": Unlike(options={"dim": 1}),
    **{name: Unlike(options={"dim": (1,)}) for name in ("var_mean", "logsumexp", "aminmax")},
    "aminmax_dim": Unlike(options={"dim": 1}),
    **{
        name: Unlike(options={"reduction": "none"})
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "kl_div")
    },
    **{name: Unlike(options={"dim": 1}) for name in ("argmin", "prod", "max_dim", "min_dim")},
    **{
        name: Unlike(options={"dim": (1,)})
        for name in ("amin", "any", "all", "norm", "linalg_vector_norm", "std", "std_mean")
    },
    **{
        name: Unlike(
            {"input": (2, 1, 6, 9)}, options={"kernel_size": (2, 2), "stride": (2, 2)}
        )
        for name in ("avg_pool2d", "max_pool2d", "max_pool2d_with_indices", "im2col")
    },
    **{
        name: Unlike(
            {"index": (2, 2), "src": (2, 2)}, _INDEX, {"dim": 1}, values={"index": [[0, 2], [1, 0]]}
        )
        for name in ("scatter", "scatter_add")
    },
    "scatter_value": Unlike({"index": (2, 2)}, _INDEX, {"dim": 1, "src": 0.5}),
    "index_add": Unlike({"index": (4,), "source": (2, 4)}, _INDEX, {"dim": 1}),
    "index_fill": Unlike(
        {"index": (2,)}, _INDEX, {"dim": 1, "value": 0.5}, values={"index": [2, 0]}
    ),
    "scatter_nd_update_": Unlike(
        {"indices": (4, 1), "updates": (4, 3)}, {"indices": np.int64}, values={"indices": [[1], [0], [1], [0]]}
    ),
    "gather_nd": Unlike({"indices": (4, 1)}, {"indices": np.int64}),
    "arange": Unlike(options={"start": 0, "end": 3, "step": 0.5}),
    "linspace": Unlike(options={"start": 0, "end": 1, "steps": 6}),
    "one_hot": Unlike(
        {"on_value": (1,), "off_value": (1,)}, {"input": np.int64}, {"num_classes": 4}
    ),
    "repeat_interleave": Unlike(options={"repeats": 2, "dim": 1, "output_size": 6}),
    "repeat_interleave_int": Unlike(options={"repeats": 2, "output_size": 12}),
    "repeat_interleave_tensor": Unlike(
        {"repeats": (3,)}, {"repeats": np.int64}, {"dim": 1, "output_size": 6}, values={"repeats": [3, 1, 2]}
    ),
    "repeat_interleave_elements": Unlike(
        {"repeats": (1,)}, {"repeats": np.int64}, {"output_size": 12}, values={"repeats": [2]}
    ),
    "triangular_solve": Unlike({"A": (2, 2)}),
    "roll": Unlike(options={"shifts": (1,), "dims": (1,)}),
    "adaptive_avg_pool2d": Unlike({"input": (2, 1, 6, 9)}, options={"output_size": (3, 4)}),
    "upsample_nearest2d": Unlike({"input": (2, 1, 3, 4)}, options={"output_size": (6, 5)}),
    "upsample_bilinear2d": Unlike(
        {"input": (2, 1, 3, 4)}, options={"output_size": (6, 5), "align_corners": False}
    ),
    "reflection_pad1d": Unlike(options={"padding": (1, 2)}),
    "cumsum": Unlike(options={"dim": 1}),
    "masked_fill": Unlike(dtypes={"mask": np.bool_}, options={"value": 0.5}),
    "fill": Unlike(options={"value": 0.5}),
    "clamp_min": Unlike(options={"min": 0.25}),
    "clamp_max": Unlike(options={"max": 0.5}),
    **{
        f"bitwise_{name}": Unlike(dtypes=dict.fromkeys(("input", "other"), np.int32))
        for name in ("and", "or", "xor", "not")
    },
    **{
        f"bitwise_{name}_scalar": Unlike(dtypes={"input": np.int32}, options={"other": 3})
        for name in ("and", "or", "xor")
    },
    "clamp": Unlike(options={"min": 0.25, "max": 0.5}),
    "embedding": Unlike({"indices": (2,)}, {"indices": np.int64}),
    "index_select": Unlike({"index": (4,)}, _INDEX, {"dim": 1}),
    "index_copy": Unlike({"index": (1,), "source": (2, 1)}, _INDEX, {"dim": 1}),
    "gather_v2": Unlike({"index": (4, 2)}, _INDEX, {"dim": 1}),
    "gather": Unlike({"index": (2, 2)}, _INDEX, {"dim": 1}),
    "slice": Unlike(options={"dim": 1, "start": 2, "end": 9, "step": 1}),
    "expand": Unlike(options={"size": (4, -1, 3)}),
    "repeat": Unlike(options={"repeats": (1, 2)}),
    "split": Unlike(options={"split_size": 1, "dim": 1}),
    "split_with_sizes": Unlike({"input": (2, 4)}, options={"split_sizes": (1, 3), "dim": 1}),
    "stack": Unlike({"tensors": [(2, 3)] * 3}),
    "layer_norm": _norm(),
    "native_layer_norm": _norm(),
    "native_layer_norm_backward": _norm(**_ROWS),
    "rms_norm": _norm(),
    "native_rms_norm": Unlike({"gamma": (3,)}),
    "rms_norm_backward": Unlike({"gamma": (3,), "rstd": (2, 1)}, {"rstd": np.float32}),
    "dynamic_quant": _dynamic(),
    "dynamic_quant_asymmetric": _dynamic(),
    "ascend_quant": Unlike(
        {"scale": (1,), "offset": (1,)}, values={"scale": [20.0], "offset": [3.0]}, options={"dst_type": "int8"}
    ),
    "quantize": Unlike(
        {"scales": (1,), "zero_points": (1,)}, values={"scales": [0.125], "zero_points": [3.0]}, options={"dtype": "int8"}
    ),
    "trans_quant_param": Unlike(
        {"scale": (3,)}, dict.fromkeys(("scale", "offset"), np.float32), values={"offset": [3, 4, 5]}
    ),
    "convert_weight_to_int4pack": Unlike({"weight": (2, 8)}, {"weight": np.int32}),
    "quant_matmul": _quantized(("offset",)),
    "quant_matmul_v5": _quantized(("offset", "y_scale", "x1_offset", "y_offset")),
    "weight_quant_batchmatmul": Unlike(
        {"weight": (3, 4), "antiquant_scale": (4,), "antiquant_offset": (4,)}, {"weight": np.int8},
        halves_only=True, absent=("quant_scale", "quant_offset", "bias"),
    ),
    "grouped_matmul": Unlike(
        {"x": ((2, 3), (1, 5)), "weight": ((3, 4), (5, 2))},
        absent=("bias", "scale", "antiquant_scale", "antiquant_offset", "per_token_scale", "group_list"),
    ),
    "add_rms_norm_quant": _norm_quant("beta"),
    "add_rms_norm_quant_v2": _norm_quant("rms_norm"),
    "add_rms_norm_dynamic_quant": _norm_dynamic("beta"),
    "add_rms_norm_dynamic_quant_v1": _norm_dynamic(),
    "dequant_swiglu_quant": Unlike(
        {"x": (2, 6), "quant_scale": (1, 3)}, {"group_index": np.int64, "quant_scale": np.float32},
        {"quant_mode": "dynamic"}, halves_only=True, values={"group_index": [2]},
        absent=("weight_scale", "activation_scale", "bias", "quant_offset"),
    ),
    "scatter_pa_kv_cache": Unlike(
        dict.fromkeys(("key", "value"), (2, 2, 3)) | dict.fromkeys(("key_cache", "value_cache"), (2, 2, 2, 3)),
        {"slot_mapping": np.int32}, values={"slot_mapping": [1, 2]}, halves_only=True,
        absent=("compress_lens", "compress_seq_offset", "seq_lens"),
    ),
    "gather_pa_kv_cache": Unlike(
        dict.fromkeys(("key", "value"), (4, 2, 3)) | dict.fromkeys(("key_cache", "value_cache"), (3, 2, 2, 3)),
        dict.fromkeys(("block_tables", "seq_lens", "seq_offset"), np.int32),
        values={"block_tables": [[0, 2, 1]], "seq_lens": [3], "seq_offset": [2]},
    ),
    "interleave_rope": Unlike(
        {"x": (2, 2, 3, 4), "cos": (2, 1, 3, 4), "sin": (2, 1, 3, 4)}, halves_only=True
    ),
    "kv_rmsnorm_rope_cache": Unlike(
        {
            "kv": (1, 1, 2, 6), "gamma": (2,), "cos": (1, 1, 2, 4), "sin": (1, 1, 2, 4),
            "k_cache": (1, 1, 3, 4), "ckv_cache": (1, 1, 3, 2),
        },
        {"index": np.int64}, {"is_output_kv": True}, values={"index": [[1, 0]]}, halves_only=True,
        absent=("k_rope_scale", "c_kv_scale", "k_rope_offset", "c_kv_offset"),
    ),
    "moe_gating_top_k_softmax": Unlike({"finished": (2,)}, {"finished": np.bool_}, {"k": 2}),
    "moe_gating_top_k_softmax_v2": Unlike(
        {"finished": (2,)}, {"finished": np.bool_}, {"k": 2, "output_softmax": True}
    ),
    "moe_gating_top_k": Unlike({"bias": (3,)}, options={"k": 1, "out_flag": True}),
    "moe_init_routing": Unlike(
        {"expert_idx": (2, 1)}, {"expert_idx": np.int32},
        {"expert_num": 2, "expert_tokens_count_or_cumsum_flag": 2}, absent=("expert_tokens_before_capacity",),
    ),
    "moe_token_permute": Unlike({"indices": (2, 1)}, {"indices": np.int32}),
    "moe_token_unpermute": Unlike(
        {"permuted_tokens": (4, 3), "probs": (2, 2)}, {"sorted_indices": np.int32},
        values={"sorted_indices": [3, 0, 1, 2]},
    ),
    "moe_finalize_routing": Unlike(
        {"expanded_permuted_rows": (4, 3), "scales": (2, 2), "export_for_source_row": (2, 2)},
        dict.fromkeys(("expanded_src_to_dst_row", "export_for_source_row"), np.int32),
        values={"expanded_src_to_dst_row": [3, 0, 1, 2]},
    ),
    **{
        name: Unlike({"input": (2, 3), "target": (2,), "weight": (3,)}, {"target": np.int64}, {"reduction": "sum"})
        for name in ("nll_loss", "nll_loss_forward")
    },
    "nll_loss2d_forward": Unlike(
        {"input": (2, 3, 1, 2), "target": (2, 1, 2), "weight": (3,)}, {"target": np.int64}, {"reduction": "sum"}
    ),
    "cross_entropy_loss": Unlike(
        {"target": (2,), "weight": (3,)}, {"target": np.int64, "weight": np.float32}, {"reduction": "sum"}
    ),
    "cross_entropy_loss_forward": Unlike(
        {"target": (2,), "weight": (3,), "zloss": (1,), "lse_for_zloss": (2,)},
        {"target": np.int64, "weight": np.float32}, {"reduction": "sum"},
    ),
    "adamw_": Unlike({"step": (1,)}, {"step": np.int64}, {"amsgrad": True}),
    "masked_select_padded": Unlike(dtypes={"mask": np.bool_}),
    "index": Unlike({"indices": [(4,), (4,)]}, {"indices": np.int64}),
    "index_put": Unlike(
        {"indices": [(2,)], "values": (2, 3)}, {"indices": np.int64}, values={"indices": [1, 0]}
    ),
    "scaled_masked_softmax_backward": Unlike(
        {"y_grad": (1, 2, 2, 3), "y": (1, 2, 2, 3), "mask": (1, 1, 2, 3)}, {"mask": np.bool_}
    ),
    "dequant_swiglu_quant_v2": Unlike(
        {"x": (2, 6), "weight_scale": (1, 6), "quant_scale": (1, 3)},
        {"x": np.int32, "group_index": np.int64, "quant_scale": np.float32, "weight_scale": np.float32},
        {"quant_mode": "dynamic", "activate_left": True}, values={"group_index": [2], "x": [[3, 4, 5, 6, 7, 8]] * 2},
        absent=("activation_scale", "bias", "quant_offset"),
    ),
    "sort": Unlike(options={"dim": 1}),
    "argsort": Unlike(options={"dim": 1}),
    "topk": Unlike(options={"k": 1, "dim": 1}),
    "top_k_top_p": Unlike({"p": (2,), "k": (2,)}, {"k": np.int32}),
    "scaled_masked_softmax": Unlike({"x": (1, 2, 2, 3), "mask": (1, 1, 2, 3)}, {"mask": np.bool_}),
}  # fmt: skip
NOTHING = Unlike()
# Operators without floating dtypes.
INTEGERS_ONLY = tuple(operator.name for operator in FAMILIES["bitwise"])
FUNCTIONAL = [name for name, operator in REGISTRY.items() if operator.functional]


def shape_of(name, role):
    """That of `UNLIKE`, else the usual one, or a row of it where a rule says one dimension."""
    of_row = any(rule.text == f"`{role}` has 1 dimensions" for rule in REGISTRY[name].rules)
    return UNLIKE.get(name, NOTHING).shapes.get(role, SHAPE[1:] if of_row else SHAPE)


def inputs(name, dtype=np.float32, seed=0, fill=None):
    """Arrays for an operator's inputs, by role; a list for a list of tensors."""
    rng = np.random.default_rng(seed)
    absent = UNLIKE.get(name, NOTHING).absent
    roles = [role for role in REGISTRY[name].inputs if role not in absent]
    return {role: _arrays(rng, name, role, dtype, fill) for role in roles}


def _arrays(rng, name, role, dtype, fill):
    shape = shape_of(name, role)
    if role in REGISTRY[name].lists:
        return [_array(rng, name, role, one, dtype, fill) for one in shape]
    return _array(rng, name, role, shape, dtype, fill)


def _array(rng, name, role, shape, dtype, fill):
    """Numbers that every formula takes: between 0 and 1, but both where truth values are wanted."""
    numbers = rng.uniform(0.1, 0.9, shape) if fill is None else np.full(shape, fill)
    unlike = UNLIKE.get(name, NOTHING)
    fixed = unlike.dtypes.get(role)
    dtype = np.float16 if unlike.halves_only and np.dtype(dtype) == np.float32 else dtype
    if role in unlike.values:
        return np.array(unlike.values[role]).astype(fixed or dtype)
    if fixed is np.bool_ or (fixed is not None and np.issubdtype(fixed, np.integer)):
        return (numbers > 0.5).astype(fixed)
    return numbers.astype(fixed or dtype)


def options(name):
    """Options that have to be given, as the declaration's example has them, or that suit the sample."""
    operator, own = REGISTRY[name], UNLIKE.get(name, NOTHING).options
    needed = [
        a.role for a in operator.attributes if operator.is_required(a.role) and a.role not in own
    ]
    numbers = {a.role: 0.5 for a in operator.scalars if a.role in needed}
    if {*needed} == {*numbers} or operator.example is None:
        return numbers | own
    written = examples.arguments(operator.example[0], operator.positional)
    shown = {role: ast.literal_eval(written[role]) for role in needed if role not in numbers}
    return numbers | shown | own


def run(name, given, **changes):
    """The functional form of an operator, or that of its form with a tensor, on arrays by role."""
    form = functional_owner(REGISTRY[name])
    return getattr(aclnn, form.name)(**({**given, **options(name)} | changes))


def out_of(name, outs):
    """What a call gets as `out`: None where the sample is without a result."""
    absent, rest = UNLIKE.get(name, NOTHING).absent, iter(outs)
    if REGISTRY[name].makes is not None or not {*absent} & {*REGISTRY[name].outputs}:
        return outs[0] if len(outs) == 1 else tuple(outs)
    return tuple([None if role in absent else next(rest) for role in REGISTRY[name].outputs])


def results(name, dtype=np.float32):
    """Arrays like an operator's results, by role."""
    return {role: np.zeros(shape, kind) for role, (shape, kind) in _described(name, dtype).items()}


@cache
def _described(name, dtype):
    """Shapes and dtypes of an operator's results, by role, as the default product makes them."""
    operator, given, before = REGISTRY[name], inputs(name, dtype), aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend910B")
    try:
        made = run(name, given, **({} if operator.inputs else {"dtype": np.dtype(dtype).name}))
    finally:
        aclnn.set_soc_version(before)
    found = made if isinstance(made, tuple) else (made,)
    roles = operator.outputs if operator.makes is None else operator.sized(len(found)).outputs
    absent = UNLIKE.get(name, NOTHING).absent
    roles, found = [r for r in roles if r not in absent], [one for one in found if one is not None]
    return {role: (one.shape, one.dtype) for role, one in zip(roles, found, strict=True)}


def floats_of(name):
    """The floating dtypes of an operator."""
    if name in (
        "trans_quant_param",
        "convert_weight_to_int4pack",
        "quant_matmul",
        "quant_matmul_v5",
        "dequant_swiglu_quant_v2",
        "triangular_solve",
        *INTEGERS_ONLY,
    ):
        return FLOATS[:1]  # the dtypes of their samples are fixed
    return FLOATS[:2] if name in ("shrink", "max_pool2d", "one_hot") else FLOATS


# --- C-shaped calls -----------------------------------------------------------------------------


def tensor(array=None, shape=None, dtype=T.ACL_FLOAT):
    """An aclTensor on an array, or of a shape and without memory."""
    if array is not None:
        return c_shaped.tensor(array)
    made = aclnn.aclCreateTensor(shape, dtype, None, 0, aclnn.ACL_FORMAT_ND, shape, None)
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


# Pairs that take sequences by their cumulative lengths: of the sample there is one.
BY_LENGTHS = ("aclnnFlashAttentionVarLenScore", "aclnnFlashAttentionUnpaddingScoreGrad")
LENGTHS = dict.fromkeys(("actual_seq_qlen", "actual_seq_kvlen"), np.int64([2]))


def options_of(entry_name):
    """Options that a C-shaped function gets, as `options` are the functional form's."""
    own = {"input_layout": "TND"} if entry_name in BY_LENGTHS else {}
    return options(ENTRIES[entry_name][0].name) | own


def by_lengths(array):
    """One batch of one head, in the layout of cumulative lengths."""
    return array.reshape(2, 1, -1)


def memory(entry_name, dtype=np.float32, seed=0):
    """Arrays for a C-shaped function, by the roles of its parameters: inputs, and room for results."""
    operator, entry = ENTRIES[entry_name]
    given = inputs(operator.name, dtype, seed)
    roles = {p.role for p in entry.parameters if p.kind == "output"}
    made = results(operator.name, dtype) if roles or operator.makes else {}
    if entry_name in BY_LENGTHS:
        given = {role: by_lengths(array) for role, array in given.items()}
        made = {role: by_lengths(array) for role, array in made.items()}
    listed = {"out": list(made.values())} if operator.makes else {}
    return given | listed | {role: array for role, array in made.items() if role in roles}


def arguments(entry_name, arrays=None, dtype=np.float32):
    """Good arguments of a first phase, by CANN's names: on arrays by role, or without memory."""
    operator, entry = ENTRIES[entry_name]
    found = memory(entry_name, dtype) if arrays is None else arrays
    lengths = LENGTHS if entry_name in BY_LENGTHS else {}
    found = found | lengths

    def seen(array):
        if arrays is not None:
            return tensor(array)
        return tensor(shape=array.shape, dtype=dtypes.of_numpy(array.dtype))

    made = {}
    for parameter in entry.parameters:
        is_input = parameter.role in operator.inputs
        lacks = parameter.role in {*UNLIKE.get(operator.name, NOTHING).absent} - {*lengths}
        if parameter.is_unused or lacks or (is_input and parameter.role not in found):
            made[parameter.name] = None
        elif parameter.kind == "single":
            made[parameter.name] = aclnn.aclCreateTensorList([seen(found[parameter.role])])
        elif parameter.is_tensor:
            made[parameter.name] = seen(found[parameter.role])
        elif is_input and parameter.kind == "ints":
            made[parameter.name] = aclnn.aclCreateIntArray(found[parameter.role].tolist())
        elif parameter.kind in ("inputs", "outputs"):
            listed = [seen(array) for array in found[parameter.role]]
            made[parameter.name] = aclnn.aclCreateTensorList(listed)
        else:
            result = found.get("out", np.float32(0))
            result = result[0] if isinstance(result, list) else result
            own = options_of(entry_name)
            made[parameter.name] = _option(operator, parameter, own, result.dtype.name)
    return made


_PLAIN = {
    "scalar": 1.0,
    "float": 1e-5,
    "ints": (1,),
    "bools": (True,),
    "int": 0,
}


def _option(operator, parameter, own, dtype):
    """An option as C-shaped functions take it, with the pair's own; `dtype` is the result's."""
    (attribute,) = [a for a in operator.attributes if a.role == parameter.role]
    value = own.get(attribute.role, attribute.default)
    if value is None and attribute.nullable and parameter.optional:
        return None
    if value is None or not isinstance(value, bool | int | float | str | tuple):
        value = dtype if parameter.kind == "dtype" else _PLAIN[parameter.kind]
    make = {
        "scalar": lambda: aclnn.aclCreateScalar(
            value, aclnn.ACL_INT64 if operator.name in INTEGERS_ONLY else aclnn.ACL_FLOAT
        ),
        "ints": lambda: aclnn.aclCreateIntArray(value),
        "bools": lambda: aclnn.aclCreateBoolArray(value),
        "dtype": lambda: dtypes.of_name(value),
        "int": lambda: attribute.choices.index(value) if value in attribute.choices else value,
    }  # fmt: skip
    return make.get(parameter.kind, lambda: value)()


def both_phases(entry_name, arguments, stream=None, workspace=None):
    """The statuses of both phases; the second is not run where the first fails."""
    size, executor, status = getattr(aclnn, f"{entry_name}GetWorkspaceSize")(*arguments.values())
    if status != aclnn.ACLNN_SUCCESS:
        return status, None
    given = np.empty(size, np.uint8) if size and workspace is None else workspace
    return status, getattr(aclnn, entry_name)(given, size, executor, stream)


# C-shaped functions that the default product does not have; tests of all functions ask one that does.
PRODUCTS = dict.fromkeys(
    ("aclnnSquare", "aclnnInplaceSquare", "aclnnFusedInferAttentionScoreV5"), "Ascend950"
)


@contextlib.contextmanager
def product_of(name=None, **_):
    """Selects the product that has an operator, if the usual one has it not, and afterwards the usual one."""
    before = aclnn.get_soc_version()
    wanted = PRODUCTS.get(name, before) if isinstance(name, str) else before
    if wanted != before:
        aclnn.set_soc_version(wanted)
    try:
        yield
    finally:
        aclnn.set_soc_version(before)


cases.around = product_of


@pytest.fixture(autouse=True)
def product_that_has_it(request):
    """Select it while a test runs; what runs without the suite's own settings imports this."""
    given = getattr(request.node, "callspec", None)
    with product_of(**(given.params if given else {})):
        yield
