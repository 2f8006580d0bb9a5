"""Autocast: operators that compute in lower precision, in float32, or in the widest dtype of their operands.

The lists are those of ``torch.autocast("cuda")``, which the NPU has too. Kernels are at the key that autocast adds to
tensors of the device, above the one of autograd, so that conversions have gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from aclnn.torch.private import (
    DispatchKey,
    DispatchKeySet,
    ExcludeDispatchKeyGuard,
    tree_leaves,
    tree_map,
)

_libraries: list[Any] = []
aten = torch.ops.aten
_KEY = DispatchKeySet(DispatchKey.AutocastPrivateUse1)

LOWER = """_convolution _convolution.deprecated conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
 conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm
 chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell
 rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention"""
FLOAT = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar
 pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm
 nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss
 kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
 triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
 upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
 _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
 upsample_bicubic2d _upsample_bicubic2d_aa norm.Scalar norm.ScalarOpt_dim"""
FLOAT_UNLESS_GIVEN = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm
 linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList"""
WIDEST = (
    "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"
)


def register() -> None:
    """Register the kernels, those of the operators that this version of PyTorch has."""
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    for names, kernel in (
        (LOWER, _lower), (FLOAT, _float), (FLOAT_UNLESS_GIVEN, _float_unless_given), (WIDEST, _widest),
        ("binary_cross_entropy", _refusing),
    ):  # fmt: skip
        for name in names.split():
            base, _, overload = name.partition(".")
            op = getattr(getattr(aten, base, None), overload or "default", None)
            if op is not None:
                library.impl(name, kernel(op), "AutocastPrivateUse1")


def _below(kernel: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(kernel)
    def called(*args: Any, **named: Any) -> Any:
        with ExcludeDispatchKeyGuard(_KEY):
            return kernel(*args, **named)

    return called


def _is_cast(one: Any) -> bool:
    """Whether autocast converts an argument: floating-point numbers of the device but for float64."""
    return (
        isinstance(one, torch.Tensor)
        and one.is_npu
        and one.is_floating_point()
        and one.dtype != torch.float64
    )


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return tree_map(lambda one: one.to(dtype) if _is_cast(one) else one, value)


def _lower(op: Any) -> Callable[..., Any]:
    @_below
    def kernel(*args: Any, **named: Any) -> Any:
        args, named = _cast((args, named), torch.get_autocast_dtype("npu"))
        return op(*args, **named)

    return kernel


def _float(op: Any) -> Callable[..., Any]:
    @_below
    def kernel(*args: Any, **named: Any) -> Any:
        args, named = _cast((args, named), torch.float32)
        return op(*args, **named)

    return kernel


def _float_unless_given(op: Any) -> Callable[..., Any]:
    names = [one.name for one in op._schema.arguments]

    @_below
    def kernel(*args: Any, **named: Any) -> Any:
        arguments = dict(zip(names, args, strict=False)) | named
        if arguments.get("dtype") is None and _is_cast(args[0]):
            index = names.index("dtype")
            if index < len(args):
                args = (*args[:index], torch.float32, *args[index + 1 :])
            else:
                named = named | {"dtype": torch.float32}
        return op(*args, **named)

    return kernel


def _widest(op: Any) -> Callable[..., Any]:
    @_below
    def kernel(*args: Any, **named: Any) -> Any:
        dtypes = {one.dtype for one in tree_leaves((args, named)) if _is_cast(one)}
        lower = torch.get_autocast_dtype("npu")
        args, named = _cast((args, named), torch.float32 if dtypes - {lower} else lower)
        return op(*args, **named)

    return kernel


def _refusing(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **named: Any) -> Any:
        raise RuntimeError(
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: the model's last "
            "sigmoid and the loss in lower precision lose too much; use binary_cross_entropy_with_logits"
        )

    return kernel
