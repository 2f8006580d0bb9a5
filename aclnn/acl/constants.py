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
    ACL_FRACTAL_Z_3D = 33
    ACL_FORMAT_NC = 35
    ACL_FORMAT_NCL = 47
    ACL_FORMAT_FRACTAL_NZ_C0_16 = 50
    ACL_FORMAT_FRACTAL_NZ_C0_32 = 51
    ACL_FORMAT_FRACTAL_NZ_C0_2 = 52
    ACL_FORMAT_FRACTAL_NZ_C0_4 = 53
    ACL_FORMAT_FRACTAL_NZ_C0_8 = 54


class aclrtMemcpyKind(IntEnum):
    """From where to where a copy goes.

    >>> aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE
    <aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE: 1>
    """

    ACL_MEMCPY_HOST_TO_HOST = 0
    ACL_MEMCPY_HOST_TO_DEVICE = 1
    ACL_MEMCPY_DEVICE_TO_HOST = 2
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3
    ACL_MEMCPY_DEFAULT = 4
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7


class aclrtMemMallocPolicy(IntEnum):
    """Which pages an allocation prefers; a hint. Kinds of memory can be added to a policy.

    >>> aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST
    <aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST: 0>
    """

    ACL_MEM_MALLOC_HUGE_FIRST = 0
    ACL_MEM_MALLOC_HUGE_ONLY = 1
    ACL_MEM_MALLOC_NORMAL_ONLY = 2
    ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3
    ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5
    ACL_MEM_MALLOC_HUGE1G_ONLY = 6
    ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x100
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000
    ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000


class aclrtMemAttr(IntEnum):
    """Which memory `aclrtGetMemInfo` speaks of; here all are this machine's.

    >>> aclrtMemAttr.ACL_HBM_MEM
    <aclrtMemAttr.ACL_HBM_MEM: 1>
    """

    ACL_DDR_MEM = 0
    ACL_HBM_MEM = 1
    ACL_DDR_MEM_HUGE = 2
    ACL_DDR_MEM_NORMAL = 3
    ACL_HBM_MEM_HUGE = 4
    ACL_HBM_MEM_NORMAL = 5
    ACL_DDR_MEM_P2P_HUGE = 6
    ACL_DDR_MEM_P2P_NORMAL = 7
    ACL_HBM_MEM_P2P_HUGE = 8
    ACL_HBM_MEM_P2P_NORMAL = 9
    ACL_HBM_MEM_HUGE1G = 10
    ACL_HBM_MEM_P2P_HUGE1G = 11


class aclrtMemLocationType(IntEnum):
    """Locations of memory.

    >>> aclrtMemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE
    <aclrtMemLocationType.ACL_MEM_LOCATION_TYPE_DEVICE: 1>
    """

    ACL_MEM_LOCATION_TYPE_HOST = 0
    ACL_MEM_LOCATION_TYPE_DEVICE = 1
    ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2
    ACL_MEM_LOCATION_TYPE_MANAGED = 3
    ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4


class aclrtMemAllocationType(IntEnum):
    """Ways to allocate physical memory.

    >>> aclrtMemAllocationType.ACL_MEM_ALLOCATION_TYPE_PINNED
    <aclrtMemAllocationType.ACL_MEM_ALLOCATION_TYPE_PINNED: 0>
    """

    ACL_MEM_ALLOCATION_TYPE_PINNED = 0


class aclrtMemHandleType(IntEnum):
    """Ways to share physical memory; here there are none.

    >>> aclrtMemHandleType.ACL_MEM_HANDLE_TYPE_NONE
    <aclrtMemHandleType.ACL_MEM_HANDLE_TYPE_NONE: 0>
    """

    ACL_MEM_HANDLE_TYPE_NONE = 0
    ACL_MEM_HANDLE_TYPE_POSIX = 2


class aclrtMemGranularityOptions(IntEnum):
    """Which granularity `aclrtMemGetAllocationGranularity` gives; here they are one.

    >>> aclrtMemGranularityOptions.ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM
    <aclrtMemGranularityOptions.ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM: 0>
    """

    ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0
    ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
    ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF


class aclrtRunMode(IntEnum):
    """Places where a program runs: `aclrtGetRunMode`.

    >>> aclrtRunMode.ACL_HOST
    <aclrtRunMode.ACL_HOST: 1>
    """

    ACL_DEVICE = 0
    ACL_HOST = 1


class aclDeviceInfo(IntEnum):
    """Facts about the device that `aclGetDeviceCapability` gives.

    >>> aclDeviceInfo.ACL_DEVICE_INFO_L2_SIZE
    <aclDeviceInfo.ACL_DEVICE_INFO_L2_SIZE: 2>
    """

    ACL_DEVICE_INFO_UNDEFINED = -1
    ACL_DEVICE_INFO_AI_CORE_NUM = 0
    ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1
    ACL_DEVICE_INFO_L2_SIZE = 2


class aclrtDevAttr(IntEnum):
    """Facts about the device that `aclrtGetDeviceInfo` gives.

    >>> aclrtDevAttr.ACL_DEV_ATTR_L2_CACHE_SIZE
    <aclrtDevAttr.ACL_DEV_ATTR_L2_CACHE_SIZE: 302>
    """

    ACL_DEV_ATTR_AICPU_CORE_NUM = 1
    ACL_DEV_ATTR_AICORE_CORE_NUM = 101
    ACL_DEV_ATTR_CUBE_CORE_NUM = 102
    ACL_DEV_ATTR_VECTOR_CORE_NUM = 201
    ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301
    ACL_DEV_ATTR_L2_CACHE_SIZE = 302


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
    ACL_STREAM_STATUS_RESERVED = 0xFFFF


class aclrtStreamFlag(IntEnum):
    """Hints for `aclrtCreateStreamWithConfig`, which can be combined.

    >>> aclrtStreamFlag.ACL_STREAM_FAST_LAUNCH
    <aclrtStreamFlag.ACL_STREAM_FAST_LAUNCH: 1>
    """

    ACL_STREAM_FAST_LAUNCH = 0x1
    ACL_STREAM_FAST_SYNC = 0x2
    ACL_STREAM_PERSISTENT = 0x4
    ACL_STREAM_HUGE = 0x8
    ACL_STREAM_CPU_SCHEDULE = 0x10
    ACL_STREAM_DEVICE_USE_ONLY = 0x20


class aclrtEventStatus(IntEnum):
    """The status of an event from `aclrtQueryEvent`.

    >>> aclrtEventStatus.ACL_EVENT_STATUS_COMPLETE
    <aclrtEventStatus.ACL_EVENT_STATUS_COMPLETE: 0>
    """

    ACL_EVENT_STATUS_COMPLETE = 0
    ACL_EVENT_STATUS_NOT_READY = 1
    ACL_EVENT_STATUS_RESERVED = 2


class aclrtEventWaitStatus(IntEnum):
    """Whether waits for an event have ended: `aclrtQueryEventWaitStatus`.

    >>> aclrtEventWaitStatus.ACL_EVENT_WAIT_STATUS_COMPLETE
    <aclrtEventWaitStatus.ACL_EVENT_WAIT_STATUS_COMPLETE: 0>
    """

    ACL_EVENT_WAIT_STATUS_COMPLETE = 0
    ACL_EVENT_WAIT_STATUS_NOT_READY = 1
    ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF


class aclrtEventRecordFlag(IntEnum):
    """For whom `aclrtRecordEventWithFlag` records on a captured stream.

    >>> aclrtEventRecordFlag.ACL_EVENT_RECORD_EXTERNAL
    <aclrtEventRecordFlag.ACL_EVENT_RECORD_EXTERNAL: 1>
    """

    ACL_EVENT_RECORD_DEFAULT = 0
    ACL_EVENT_RECORD_EXTERNAL = 1


class aclrtEventWaitFlag(IntEnum):
    """Whose recording `aclrtStreamWaitEventWithFlag` waits for on a captured stream.

    >>> aclrtEventWaitFlag.ACL_EVENT_WAIT_EXTERNAL
    <aclrtEventWaitFlag.ACL_EVENT_WAIT_EXTERNAL: 1>
    """

    ACL_EVENT_WAIT_DEFAULT = 0
    ACL_EVENT_WAIT_EXTERNAL = 1


class aclrtCallbackBlockType(IntEnum):
    """Whether a stream waits for a callback.

    >>> aclrtCallbackBlockType.ACL_CALLBACK_BLOCK
    <aclrtCallbackBlockType.ACL_CALLBACK_BLOCK: 1>
    """

    ACL_CALLBACK_NO_BLOCK = 0
    ACL_CALLBACK_BLOCK = 1


class aclrtLastErrLevel(IntEnum):
    """Whose last error `aclrtGetLastError` gives.

    >>> aclrtLastErrLevel.ACL_RT_THREAD_LEVEL
    <aclrtLastErrLevel.ACL_RT_THREAD_LEVEL: 0>
    """

    ACL_RT_THREAD_LEVEL = 0


class aclLogLevel(IntEnum):
    """Severities of lines of `aclAppLog`.

    >>> aclLogLevel.ACL_ERROR
    <aclLogLevel.ACL_ERROR: 3>
    """

    ACL_DEBUG = 0
    ACL_INFO = 1
    ACL_WARNING = 2
    ACL_ERROR = 3


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
    ACL_ERROR_NONE = 0
    ACL_ERROR_INVALID_PARAM = 100000
    ACL_ERROR_UNINITIALIZE = 100001
    ACL_ERROR_REPEAT_INITIALIZE = 100002
    ACL_ERROR_INVALID_FILE = 100003
    ACL_ERROR_UNSUPPORTED_DATA_TYPE = 100026
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
    ACL_ERROR_API_NOT_SUPPORT = 200001
    ACL_ERROR_INVALID_DEVICE = 200002
    ACL_ERROR_MEMORY_ADDRESS_UNALIGNED = 200003
    ACL_ERROR_INVALID_RESOURCE_HANDLE = 200005
    ACL_ERROR_FEATURE_UNSUPPORTED = 200006
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001
    ACL_ERROR_RT_RESOURCE_ALLOC_FAIL = 207005
    ACL_ERROR_RT_NO_STREAM_RESOURCE = 207008
    ACL_ERROR_RT_NO_MODEL_RESOURCE = 207010
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP = 207019
    ACL_ERROR_STORAGE_OVER_LIMIT = 300000
    ACL_ERROR_INTERNAL_ERROR = 500000
    ACL_ERROR_FAILURE = 500001
    ACL_ERROR_GE_FAILURE = 500002
    ACL_ERROR_RT_FAILURE = 500003
    ACL_ERROR_DRV_FAILURE = 500004
    ACL_ERROR_PROFILING_FAILURE = 500005
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
    aclrtRunMode,
    aclrtMemcpyKind,
    aclrtMemMallocPolicy,
    aclrtMemAttr,
    aclrtMemLocationType,
    aclrtMemAllocationType,
    aclrtMemHandleType,
    aclrtMemGranularityOptions,
    aclDeviceInfo,
    aclrtDevAttr,
    aclmdlRICaptureMode,
    aclmdlRICaptureStatus,
    aclmdlRIDebugJsonFlag,
    aclrtStreamFlag,
    aclrtEventFlag,
    aclrtEventRecordFlag,
    aclrtEventWaitFlag,
    aclrtEventStatus,
    aclrtEventRecordedStatus,
    aclrtEventWaitStatus,
    aclrtStreamStatus,
    aclrtCallbackBlockType,
    aclrtLastErrLevel,
    aclLogLevel,
    aclError,
    aclnnStatus,
)
# Whose members are macros in C; there is no type of their name there.
MACROS = (
    aclmdlRIDebugJsonFlag,
    aclrtStreamFlag,
    aclrtEventFlag,
    aclrtEventRecordFlag,
    aclrtEventWaitFlag,
    aclnnStatus,
)
_MEMBERS = {name: one for kind in ENUMERATIONS for name, one in kind.__members__.items()}
globals().update(_MEMBERS)
__all__ = [*(kind.__name__ for kind in ENUMERATIONS), *_MEMBERS]
