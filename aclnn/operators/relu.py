"""ReLU."""

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import FLOATING, at_most_8_dims, dtype_among, same_dtype, same_shape
from aclnn.operators.declaration import Operator, entry

relu = Operator(
    name="relu",
    in_place="relu_",
    summary="Rectified linear unit.",
    expression="max(input, 0)",
    notes="NaN stays NaN; what is not above zero gives +0.",
    formula="relu",
    inputs=("input",),
    entries=(
        entry("aclnnRelu", "self=input out:out"),
        entry("aclnnInplaceRelu", "selfRef=input:inout"),
    ),
    rules=(
        dtype_among(
            "input",
            (
                *FLOATING,
                aclDataType.ACL_INT8,
                aclDataType.ACL_INT32,
                aclDataType.ACL_INT64,
                aclDataType.ACL_UINT8,
            ),
        ),
        same_dtype("out", "input"),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    example=("relu(np.float32([-1, 2]))", "array([0., 2.], dtype=float32)"),
    gradient={"input": "aten.threshold_backward(grad, out, 0)"},
)
