"""CANN's constants: data types, formats, copy kinds, allocation policies and status codes.

Each is a member of an enumeration and a name of this module, spelled and valued as in CANN's
public headers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The members as names of the module, made by the loop at its end.
    def __getattr__(name: str) -> int: ...


class aclDataType(IntEnum):
    """Element types of tensors and scalars.

    >>> aclDataType.ACL_BF16, int(ACL_DOUBLE)
    (<aclDataType.ACL_BF16: 27>, 11)
    """

    ACL_DT_UNDEFINED = -1
    ACL_FLOAT = 0
    ACL_FLOAT16 = 1
    ACL_INT8 = 2
    ACL_INT32 = 3
    ACL_UINT8 = 4
    ACL_INT16 = 6
    ACL_UINT16 = 7
    ACL_UINT32 = 8
    ACL_INT64 = 9
    ACL_UINT64 = 10
    ACL_DOUBLE = 11
    ACL_BOOL = 12
    ACL_STRING = 13
    ACL_COMPLEX64 = 16
    ACL_COMPLEX128 = 17
    ACL_BF16 = 27
    ACL_INT4 = 29
    ACL_UINT1 = 30
    ACL_COMPLEX32 = 33
    ACL_HIFLOAT8 = 34
    ACL_FLOAT8_E5M2 = 35
    ACL_FLOAT8_E4M3FN = 36
    ACL_FLOAT8_E8M0 = 37
    ACL_FLOAT6_E3M2 = 38
    ACL_FLOAT6_E2M3 = 39
    ACL_FLOAT4_E2M1 = 40
    ACL_FLOAT4_E1M2 = 41


class aclFormat(IntEnum):
    """Memory formats; private ones are taken as their storage laid out plainly.

    >>> aclFormat.ACL_FORMAT_ND, int(ACL_FORMAT_NCL)
    (<aclFormat.ACL_FORMAT_ND: 2>, 47)
    """

    ACL_FORMAT_UNDEFINED = -1
    ACL_FORMAT_NCHW = 0
    ACL_FORMAT_NHWC = 1
    ACL_FORMAT_ND = 2
    ACL_FORMAT_NC1HWC0 = 3
    ACL_FORMAT_FRACTAL_Z = 4
    ACL_FORMAT_NC1HWC0_C04 = 12
    ACL_FORMAT_HWCN = 16
    ACL_FORMAT_NDHWC = 27
    ACL_FORMAT_FRACTAL_NZ = 29
    ACL_FORMAT_NCDHW = 30
    ACL_FORMAT_NDC1HWC0 = 32
    ACL_FORMAT_NC = 35
    ACL_FORMAT_NCL = 47


class aclrtMemcpyKind(IntEnum):
    """From where to where a copy goes.

    >>> aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
    <aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE: 1>
    """

    ACL_MEMCPY_HOST_TO_HOST = 0
    ACL_MEMCPY_HOST_TO_DEVICE = 1
    ACL_MEMCPY_DEVICE_TO_HOST = 2
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3


class aclrtMemMallocPolicy(IntEnum):
    """Which pages an allocation prefers; a hint.

    >>> aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST
    <aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST: 0>
    """

    ACL_MEM_MALLOC_HUGE_FIRST = 0
    ACL_MEM_MALLOC_HUGE_ONLY = 1
    ACL_MEM_MALLOC_NORMAL_ONLY = 2


class aclrtMemAttr(IntEnum):
    """Which memory `aclrtGetMemInfo` speaks of; here all are this machine's.

    >>> aclrtMemAttr.ACL_HBM_MEM
    <aclrtMemAttr.ACL_HBM_MEM: 1>
    """

    ACL_DDR_MEM = 0
    ACL_HBM_MEM = 1


class aclmdlRICaptureMode(IntEnum):
    """Which threads may not make unsafe calls while a stream is captured.

    >>> aclmdlRICaptureMode.ACL_MODEL_RI_CAPTURE_MODE_RELAXED
    <aclmdlRICaptureMode.ACL_MODEL_RI_CAPTURE_MODE_RELAXED: 2>
    """

    ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0
    ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1
    ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2


class aclmdlRICaptureStatus(IntEnum):
    """Whether a stream is captured.

    >>> aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
    <aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE: 1>
    """

    ACL_MODEL_RI_CAPTURE_STATUS_NONE = 0
    ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE = 1
    ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED = 2


class aclrtEventFlag(IntEnum):
    """Purposes of events; flags can be combined, except the last two.

    >>> aclrtEventFlag.ACL_EVENT_TIME_LINE
    <aclrtEventFlag.ACL_EVENT_TIME_LINE: 8>
    """

    ACL_EVENT_SYNC = 0x1
    ACL_EVENT_CAPTURE_STREAM_PROGRESS = 0x2
    ACL_EVENT_TIME_LINE = 0x8
    ACL_EVENT_DEVICE_USE_ONLY = 0x10
    ACL_EVENT_EXTERNAL = 0x20
    ACL_EVENT_IPC = 0x40


class aclrtEventRecordedStatus(IntEnum):
    """The status of an event from `aclrtQueryEventStatus`.

    >>> aclrtEventRecordedStatus.ACL_EVENT_RECORDED_STATUS_COMPLETE
    <aclrtEventRecordedStatus.ACL_EVENT_RECORDED_STATUS_COMPLETE: 1>
    """

    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1


class aclrtStreamStatus(IntEnum):
    """The status of a stream from `aclrtStreamQuery`.

    >>> aclrtStreamStatus.ACL_STREAM_STATUS_NOT_READY
    <aclrtStreamStatus.ACL_STREAM_STATUS_NOT_READY: 1>
    """

    ACL_STREAM_STATUS_COMPLETE = 0
    ACL_STREAM_STATUS_NOT_READY = 1


class aclmdlRIDebugJsonFlag(IntEnum):
    """The details that `aclmdlRIDebugJsonPrint` writes of each task.

    >>> aclmdlRIDebugJsonFlag.ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE
    <aclmdlRIDebugJsonFlag.ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE: 1>
    """

    ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY = 0
    ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE = 1


class aclError(IntEnum):
    """Statuses of the runtime functions.

    >>> aclError(107000)
    <aclError.ACL_ERROR_RT_PARAM_INVALID: 107000>
    """

    ACL_SUCCESS = 0
    ACL_ERROR_INVALID_PARAM = 100000
    ACL_ERROR_UNINITIALIZE = 100001
    ACL_ERROR_REPEAT_INITIALIZE = 100002
    ACL_ERROR_REPEAT_FINALIZE = 100037
    ACL_ERROR_RT_PARAM_INVALID = 107000
    ACL_ERROR_RT_INVALID_DEVICEID = 107001
    ACL_ERROR_RT_CONTEXT_NULL = 107002
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006
    ACL_ERROR_RT_ADDR_UNALIGNED = 107008
    ACL_ERROR_RT_INVALID_HANDLE = 107017
    ACL_ERROR_RT_CAPTURE_DEPENDENCY = 107024
    ACL_ERROR_RT_STREAM_UNJOINED = 107025
    ACL_ERROR_RT_MODEL_CAPTURED = 107026
    ACL_ERROR_RT_STREAM_CAPTURED = 107027
    ACL_ERROR_RT_EVENT_CAPTURED = 107028
    ACL_ERROR_RT_STREAM_NOT_CAPTURED = 107029
    ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT = 107030
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT = 107031
    ACL_ERROR_STREAM_CAPTURE_CONFLICT = 107032
    ACL_ERROR_STREAM_TASK_GROUP_STATUS = 107033
    ACL_ERROR_STREAM_TASK_GROUP_INTR = 107034
    ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED = 107036
    ACL_ERROR_RT_MODEL_RUNNING = 107037
    ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD = 107038
    ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY = 107039
    ACL_ERROR_RT_MODEL_UPDATE_FAILED = 107040
    ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC = 107041
    ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING = 107045
    ACL_ERROR_BAD_ALLOC = 200000
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001
    ACL_ERROR_RT_RESOURCE_ALLOC_FAIL = 207005
    ACL_ERROR_RT_NO_STREAM_RESOURCE = 207008
    ACL_ERROR_RT_NO_MODEL_RESOURCE = 207010
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP = 207019
    ACL_ERROR_RT_INTERNAL_ERROR = 507000
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047
    ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED = 507903


class aclnnStatus(IntEnum):
    """Statuses of the operator functions.

    >>> aclnnStatus(161002), int(ACLNN_SUCCESS)
    (<aclnnStatus.ACLNN_ERR_PARAM_INVALID: 161002>, 0)
    """

    ACLNN_SUCCESS = 0
    ACLNN_ERR_PARAM_NULLPTR = 161001
    ACLNN_ERR_PARAM_INVALID = 161002
    ACLNN_ERR_RUNTIME_ERROR = 361001
    ACLNN_ERR_INNER = 561000
    ACLNN_ERR_INNER_INFERSHAPE_ERROR = 561001
    ACLNN_ERR_INNER_TILING_ERROR = 561002
    ACLNN_ERR_INNER_FIND_KERNEL_ERROR = 561003
    ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101
    ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR = 561102
    ACLNN_ERR_INNER_NULLPTR = 561103
    ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE = 561104
    ACLNN_ERR_INNER_KEY_CONFLICT = 561105
    ACLNN_ERR_INNER_INVALID_IMPL_MODE = 561106
    ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND = 561107
    ACLNN_ERR_INNER_LOAD_JSON_FAILED = 561108
    ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND = 561109
    ACLNN_ERR_INNER_JSON_FORMAT_INVALID = 561110
    ACLNN_ERR_INNER_JSON_DTYPE_INVALID = 561111
    ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND = 561112
    ACLNN_ERR_INNER_OP_FILE_INVALID = 561113
    ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND = 561114
    ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH = 561115
    ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE = 561116
    ACLNN_ERR_INNER_INPUT_JSON_IS_NULL = 561117
    ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID = 561118
    ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID = 561119


ENUMERATIONS = (
    aclDataType,
    aclFormat,
    aclrtMemcpyKind,
    aclrtMemMallocPolicy,
    aclrtMemAttr,
    aclmdlRICaptureMode,
    aclmdlRICaptureStatus,
    aclmdlRIDebugJsonFlag,
    aclrtEventFlag,
    aclrtEventRecordedStatus,
    aclrtStreamStatus,
    aclError,
    aclnnStatus,
)
globals().update({member.name: member for kind in ENUMERATIONS for member in kind})
__all__ = [kind.__name__ for kind in ENUMERATIONS] + [
    member.name for kind in ENUMERATIONS for member in kind
]
