"""Weights of products: their layout."""

from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    done_if_empty,
    dtype_among,
    no_private_format,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.sizes import has_rank
from aclnn.operators.words import specs

Inferred = Mapping[str, tuple[aclDataType, tuple[int, ...]]]


def _lower(lowering: Lowering) -> Mapping[str, int]:
    return {"out": lowering.dense("input", None)}


trans_matmul_weight_ = Operator(
    name="trans_matmul_weight_",
    in_place="trans_matmul_weight_",
    summary="Prepares a weight for matrix products, which needs nothing on a CPU.",
    expression="input",
    notes=(
        "An NPU rewrites the weight in a private layout, which later products read. Products read "
        "the plain layout here: elements and format stay unchanged, and a second call is allowed."
    ),
    lower=_lower,
    inputs=("input",),
    sample_specs=specs("input: [2,2]"),
    entries=(entry("aclnnTransMatmulWeight", "mmWeightRef=input:inout"),),
    rules=(
        dtype_among(
            "input",
            (
                aclDataType.ACL_FLOAT,  # not documented, but what programs bring
                aclDataType.ACL_FLOAT16,
                aclDataType.ACL_BF16,
                aclDataType.ACL_INT8,
                aclDataType.ACL_UINT8,
            ),
        ),
        no_private_format("input"),
        same_dtype("out", "input"),
        done_if_empty("input"),
        has_rank("input", 2, 6),
        same_shape("out", "input"),
    ),
    example=(
        "trans_matmul_weight_(np.float16([[1, 2]]))",
        "array([[1., 2.]], dtype=float16)",
    ),
    seealso=("matmul", "mm"),
    differentiated_as="aten.alias(input)",
)
