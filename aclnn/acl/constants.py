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
    ACL_ERROR_BAD_ALLOC = 200000
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001
    ACL_ERROR_RT_INTERNAL_ERROR = 507000


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
    aclError,
    aclnnStatus,
)
globals().update({member.name: member for kind in ENUMERATIONS for member in kind})
__all__ = [kind.__name__ for kind in ENUMERATIONS] + [
    member.name for kind in ENUMERATIONS for member in kind
]
