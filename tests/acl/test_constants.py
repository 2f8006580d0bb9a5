"""The values of CANN's public headers, written down here once more, and what is said of them."""

import numpy as np
import pytest
from cases import each

import aclnn
from aclnn.acl import arguments, constants, dtypes

VALUES = """
ACL_DT_UNDEFINED -1 ACL_FLOAT 0 ACL_FLOAT16 1 ACL_INT8 2 ACL_INT32 3 ACL_UINT8 4 ACL_INT16 6
ACL_UINT16 7 ACL_UINT32 8 ACL_INT64 9 ACL_UINT64 10 ACL_DOUBLE 11 ACL_BOOL 12 ACL_STRING 13
ACL_COMPLEX64 16 ACL_COMPLEX128 17 ACL_BF16 27 ACL_INT4 29 ACL_UINT1 30 ACL_COMPLEX32 33
ACL_HIFLOAT8 34 ACL_FLOAT8_E5M2 35 ACL_FLOAT8_E4M3FN 36 ACL_FLOAT8_E8M0 37 ACL_FLOAT6_E3M2 38
ACL_FLOAT6_E2M3 39 ACL_FLOAT4_E2M1 40 ACL_FLOAT4_E1M2 41
ACL_FORMAT_UNDEFINED -1 ACL_FORMAT_NCHW 0 ACL_FORMAT_NHWC 1 ACL_FORMAT_ND 2
ACL_FORMAT_NC1HWC0 3 ACL_FORMAT_FRACTAL_Z 4 ACL_FORMAT_NC1HWC0_C04 12 ACL_FORMAT_HWCN 16
ACL_FORMAT_NDHWC 27 ACL_FORMAT_FRACTAL_NZ 29 ACL_FORMAT_NCDHW 30 ACL_FORMAT_NDC1HWC0 32
ACL_FORMAT_NC 35 ACL_FORMAT_NCL 47
ACL_MEMCPY_HOST_TO_HOST 0 ACL_MEMCPY_HOST_TO_DEVICE 1 ACL_MEMCPY_DEVICE_TO_HOST 2
ACL_MEMCPY_DEVICE_TO_DEVICE 3
ACL_MEM_MALLOC_HUGE_FIRST 0 ACL_MEM_MALLOC_HUGE_ONLY 1 ACL_MEM_MALLOC_NORMAL_ONLY 2
ACL_DDR_MEM 0 ACL_HBM_MEM 1
ACL_SUCCESS 0 ACL_ERROR_INVALID_PARAM 100000 ACL_ERROR_UNINITIALIZE 100001
ACL_ERROR_REPEAT_INITIALIZE 100002 ACL_ERROR_REPEAT_FINALIZE 100037
ACL_ERROR_RT_PARAM_INVALID 107000 ACL_ERROR_RT_INVALID_DEVICEID 107001
ACL_ERROR_RT_CONTEXT_NULL 107002 ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID 107006
ACL_ERROR_RT_ADDR_UNALIGNED 107008 ACL_ERROR_RT_INVALID_HANDLE 107017
ACL_ERROR_RT_CAPTURE_DEPENDENCY 107024 ACL_ERROR_RT_STREAM_UNJOINED 107025
ACL_ERROR_RT_MODEL_CAPTURED 107026 ACL_ERROR_RT_STREAM_CAPTURED 107027
ACL_ERROR_RT_EVENT_CAPTURED 107028 ACL_ERROR_RT_STREAM_NOT_CAPTURED 107029
ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT 107030 ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT 107031
ACL_ERROR_STREAM_CAPTURE_CONFLICT 107032 ACL_ERROR_STREAM_TASK_GROUP_STATUS 107033
ACL_ERROR_STREAM_TASK_GROUP_INTR 107034 ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED 107036
ACL_ERROR_RT_MODEL_RUNNING 107037 ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD 107038
ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY 107039 ACL_ERROR_RT_MODEL_UPDATE_FAILED 107040
ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC 107041 ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING 107045
ACL_ERROR_BAD_ALLOC 200000 ACL_ERROR_RT_FEATURE_NOT_SUPPORT 207000
ACL_ERROR_RT_MEMORY_ALLOCATION 207001 ACL_ERROR_RT_RESOURCE_ALLOC_FAIL 207005
ACL_ERROR_RT_NO_STREAM_RESOURCE 207008 ACL_ERROR_RT_NO_MODEL_RESOURCE 207010
ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP 207019 ACL_ERROR_RT_INTERNAL_ERROR 507000
ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046 ACL_ERROR_RT_EVENT_SYNC_TIMEOUT 507047
ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED 507903
ACL_MODEL_RI_CAPTURE_MODE_GLOBAL 0 ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL 1
ACL_MODEL_RI_CAPTURE_MODE_RELAXED 2 ACL_MODEL_RI_CAPTURE_STATUS_NONE 0
ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE 1 ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED 2
ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY 0 ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE 1
ACL_EVENT_SYNC 1 ACL_EVENT_CAPTURE_STREAM_PROGRESS 2 ACL_EVENT_TIME_LINE 8
ACL_EVENT_DEVICE_USE_ONLY 16 ACL_EVENT_EXTERNAL 32 ACL_EVENT_IPC 64
ACL_EVENT_RECORDED_STATUS_NOT_READY 0 ACL_EVENT_RECORDED_STATUS_COMPLETE 1
ACL_STREAM_STATUS_COMPLETE 0 ACL_STREAM_STATUS_NOT_READY 1
ACLNN_SUCCESS 0 ACLNN_ERR_PARAM_NULLPTR 161001 ACLNN_ERR_PARAM_INVALID 161002
ACLNN_ERR_RUNTIME_ERROR 361001 ACLNN_ERR_INNER 561000 ACLNN_ERR_INNER_INFERSHAPE_ERROR 561001
ACLNN_ERR_INNER_TILING_ERROR 561002 ACLNN_ERR_INNER_FIND_KERNEL_ERROR 561003
ACLNN_ERR_INNER_CREATE_EXECUTOR 561101 ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR 561102
ACLNN_ERR_INNER_NULLPTR 561103 ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE 561104
ACLNN_ERR_INNER_KEY_CONFLICT 561105 ACLNN_ERR_INNER_INVALID_IMPL_MODE 561106
ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND 561107 ACLNN_ERR_INNER_LOAD_JSON_FAILED 561108
ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND 561109 ACLNN_ERR_INNER_JSON_FORMAT_INVALID 561110
ACLNN_ERR_INNER_JSON_DTYPE_INVALID 561111 ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND 561112
ACLNN_ERR_INNER_OP_FILE_INVALID 561113 ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND 561114
ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH 561115 ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE 561116
ACLNN_ERR_INNER_INPUT_JSON_IS_NULL 561117 ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID 561118
ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID 561119
"""


def test_values():
    words = VALUES.split()
    expected = {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    found = {member.name: int(member) for kind in constants.ENUMERATIONS for member in kind}
    assert found == expected


def test_every_constant_is_a_name_and_a_member():
    for kind in constants.ENUMERATIONS:
        for member in kind:
            assert getattr(aclnn, member.name) is member
    assert (aclnn.ACL_BF16, aclnn.ACL_FORMAT_NCL, aclnn.ACLNN_ERR_INNER_NULLPTR) == (27, 47, 561103)


def test_there_are_no_aliases_inside_an_enumeration():
    for kind in constants.ENUMERATIONS:
        assert len(kind.__members__) == len(list(kind))


# --- What statuses are explained as ---------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    [-1, 42, 161003, "161001", None, 10**5000, 1.5, np.zeros(2), []],
    ids=arguments.shown,
)
def test_what_is_no_status_is_said_to_be_none(status):
    assert aclnn.explain(status).endswith("no status of this library")


@pytest.mark.parametrize("status", [*constants.aclnnStatus, *constants.aclError])
def test_every_status_is_explained(status):
    text = aclnn.explain(status)
    assert status.name in text
    assert str(int(status)) in text
    assert len(text.splitlines()) == 3


def test_success_has_both_names():
    assert aclnn.explain(0).startswith("ACLNN_SUCCESS = ACL_SUCCESS (0)\n")


def test_statuses_are_explained_by_number_too():
    assert aclnn.explain(161002) == aclnn.explain(constants.aclnnStatus.ACLNN_ERR_PARAM_INVALID)


def test_messages_are_of_bounded_length():
    aclnn.aclCreateTensor((1,) * 10**5, aclnn.ACL_FLOAT, None, 9, 2, (1,) * 10**5, None)
    assert 100 < len(aclnn.aclGetRecentErrMsg()) < 16_100


# --- Sizes and names of types ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", constants.aclDataType)
def test_every_type_has_a_name_and_a_size(dtype):
    name, size = dtypes.name(dtype), dtypes.item_size(dtype)
    assert name == name.lower()
    if dtype in dtypes.NUMPY:
        assert dtypes.of_name(name) == dtype
        numpy_dtype = np.dtype(name)
        assert size == numpy_dtype.itemsize
        assert dtypes.of_numpy(numpy_dtype) == dtype
    else:
        assert size == {"complex32": 4, "dt_undefined": 0}.get(name, 1)


def test_promotion_and_casts_of_types_without_arithmetic():
    for odd in set(constants.aclDataType) - set(dtypes.NUMPY):
        assert dtypes.promote(odd, odd) == odd
        for other in dtypes.NUMPY:
            assert dtypes.promote(odd, other) is None
            assert dtypes.promote(other, odd) is None
            assert not dtypes.can_cast(odd, other)
            assert not dtypes.can_cast(other, odd)


def expected_promotion(a, b):
    """Section by section of the rules, written another way: NumPy's answer where it agrees."""
    if a == b:
        return a
    large = {"uint16", "uint32", "uint64"}
    if {a, b} & large:
        return None
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        return other if other in ("float32", "float64", "complex64", "complex128") else "bfloat16"
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    if "c" in kinds:
        wide = {"complex128", "float64"} & {a, b}
        return "complex128" if wide else "complex64"
    if "f" in kinds and kinds != {"f"}:
        return a if np.dtype(a).kind == "f" else b
    return str(np.promote_types(a, b))


NAMED = dtypes.NAMES


@pytest.mark.parametrize("a", NAMED)
@each("b", NAMED)
def test_promotion(a, b):
    found = dtypes.promote(dtypes.of_name(a), dtypes.of_name(b))
    assert (dtypes.name(found) if found is not None else None) == expected_promotion(a, b)


@pytest.mark.parametrize("a", NAMED)
@each("b", NAMED)
def test_casts(a, b):
    kinds = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    kind = [kinds["f" if n == "bfloat16" else np.dtype(n).kind] for n in (a, b)]
    allowed = (b != "bool" or a == "bool") and kind[1] >= (kind[0] if kind[0] > 1 else 0)
    assert dtypes.can_cast(dtypes.of_name(a), dtypes.of_name(b)) == allowed
