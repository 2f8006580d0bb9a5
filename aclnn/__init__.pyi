# Made by docs/make_stub.py (`make reference`); changes here are lost.

from typing import Any, Literal

from aclnn import graph as graph
from aclnn import isa as isa
from aclnn import operators as operators
from aclnn.acl._lists import aclBoolArray as aclBoolArray
from aclnn.acl._lists import aclCreateBoolArray as aclCreateBoolArray
from aclnn.acl._lists import aclCreateFloatArray as aclCreateFloatArray
from aclnn.acl._lists import aclCreateIntArray as aclCreateIntArray
from aclnn.acl._lists import aclCreateScalarList as aclCreateScalarList
from aclnn.acl._lists import aclCreateTensorList as aclCreateTensorList
from aclnn.acl._lists import aclDestroyBoolArray as aclDestroyBoolArray
from aclnn.acl._lists import aclDestroyFloatArray as aclDestroyFloatArray
from aclnn.acl._lists import aclDestroyIntArray as aclDestroyIntArray
from aclnn.acl._lists import aclDestroyScalarList as aclDestroyScalarList
from aclnn.acl._lists import aclDestroyTensorList as aclDestroyTensorList
from aclnn.acl._lists import aclFloatArray as aclFloatArray
from aclnn.acl._lists import aclGetBoolArraySize as aclGetBoolArraySize
from aclnn.acl._lists import aclGetFloatArraySize as aclGetFloatArraySize
from aclnn.acl._lists import aclGetIntArraySize as aclGetIntArraySize
from aclnn.acl._lists import aclGetScalarListSize as aclGetScalarListSize
from aclnn.acl._lists import aclGetTensorListSize as aclGetTensorListSize
from aclnn.acl._lists import aclIntArray as aclIntArray
from aclnn.acl._lists import aclScalarList as aclScalarList
from aclnn.acl._lists import aclTensorList as aclTensorList
from aclnn.acl._tensor import aclCreateScalar as aclCreateScalar
from aclnn.acl._tensor import aclCreateTensor as aclCreateTensor
from aclnn.acl._tensor import aclDestroyScalar as aclDestroyScalar
from aclnn.acl._tensor import aclDestroyTensor as aclDestroyTensor
from aclnn.acl._tensor import aclGetDataType as aclGetDataType
from aclnn.acl._tensor import aclGetFormat as aclGetFormat
from aclnn.acl._tensor import aclGetRawTensorAddr as aclGetRawTensorAddr
from aclnn.acl._tensor import aclGetStorageShape as aclGetStorageShape
from aclnn.acl._tensor import aclGetViewOffset as aclGetViewOffset
from aclnn.acl._tensor import aclGetViewShape as aclGetViewShape
from aclnn.acl._tensor import aclGetViewStrides as aclGetViewStrides
from aclnn.acl._tensor import aclInitTensor as aclInitTensor
from aclnn.acl._tensor import aclScalar as aclScalar
from aclnn.acl._tensor import aclSetRawTensorAddr as aclSetRawTensorAddr
from aclnn.acl._tensor import aclTensor as aclTensor
from aclnn.acl.constants import aclDataType as aclDataType
from aclnn.acl.constants import aclError as aclError
from aclnn.acl.constants import aclFormat as aclFormat
from aclnn.acl.constants import aclnnStatus as aclnnStatus
from aclnn.acl.constants import aclrtMemAttr as aclrtMemAttr
from aclnn.acl.constants import aclrtMemMallocPolicy as aclrtMemMallocPolicy
from aclnn.acl.constants import aclrtMemcpyKind as aclrtMemcpyKind
from aclnn.acl.errors import AclnnError as AclnnError
from aclnn.acl.errors import aclGetRecentErrMsg as aclGetRecentErrMsg
from aclnn.acl.meanings import explain as explain
from aclnn.acl.memory import aclrtFree as aclrtFree
from aclnn.acl.memory import aclrtGetMemInfo as aclrtGetMemInfo
from aclnn.acl.memory import aclrtMalloc as aclrtMalloc
from aclnn.acl.memory import aclrtMemcpy as aclrtMemcpy
from aclnn.acl.memory import aclrtMemcpyAsync as aclrtMemcpyAsync
from aclnn.acl.memory import aclrtMemset as aclrtMemset
from aclnn.acl.stream import aclFinalize as aclFinalize
from aclnn.acl.stream import aclInit as aclInit
from aclnn.acl.stream import aclnnFinalize as aclnnFinalize
from aclnn.acl.stream import aclnnInit as aclnnInit
from aclnn.acl.stream import aclrtCreateEvent as aclrtCreateEvent
from aclnn.acl.stream import aclrtCreateStream as aclrtCreateStream
from aclnn.acl.stream import aclrtDestroyEvent as aclrtDestroyEvent
from aclnn.acl.stream import aclrtDestroyStream as aclrtDestroyStream
from aclnn.acl.stream import aclrtEventElapsedTime as aclrtEventElapsedTime
from aclnn.acl.stream import aclrtGetDevice as aclrtGetDevice
from aclnn.acl.stream import aclrtGetDeviceCount as aclrtGetDeviceCount
from aclnn.acl.stream import aclrtRecordEvent as aclrtRecordEvent
from aclnn.acl.stream import aclrtResetDevice as aclrtResetDevice
from aclnn.acl.stream import aclrtSetDevice as aclrtSetDevice
from aclnn.acl.stream import aclrtStreamWaitEvent as aclrtStreamWaitEvent
from aclnn.acl.stream import aclrtSynchronizeDevice as aclrtSynchronizeDevice
from aclnn.acl.stream import aclrtSynchronizeEvent as aclrtSynchronizeEvent
from aclnn.acl.stream import aclrtSynchronizeStream as aclrtSynchronizeStream
from aclnn.calls._executor import AclSetInputTensorAddr as AclSetInputTensorAddr
from aclnn.calls._executor import AclSetOutputTensorAddr as AclSetOutputTensorAddr
from aclnn.calls._executor import AclSetTensorAddr as AclSetTensorAddr
from aclnn.calls._executor import aclDestroyAclOpExecutor as aclDestroyAclOpExecutor
from aclnn.calls._executor import aclOpExecutor as aclOpExecutor
from aclnn.calls._executor import aclSetAclOpExecutorRepeatable as aclSetAclOpExecutorRepeatable
from aclnn.calls._executor import aclSetInputTensorAddr as aclSetInputTensorAddr
from aclnn.calls._executor import aclSetOutputTensorAddr as aclSetOutputTensorAddr
from aclnn.calls._executor import aclSetTensorAddr as aclSetTensorAddr
from aclnn.calls.binding import executor as executor
from aclnn.planning._plan import cache_info as cache_info
from aclnn.planning._plan import clear_cache as clear_cache
from aclnn.planning.settings import aclrtGetSocName as aclrtGetSocName
from aclnn.planning.settings import get_num_threads as get_num_threads
from aclnn.planning.settings import get_soc_version as get_soc_version
from aclnn.planning.settings import set_num_threads as set_num_threads
from aclnn.planning.settings import set_soc_version as set_soc_version
from aclnn.reports.config import show_config as show_config
from aclnn.reports.profiling import Profile as Profile
from aclnn.reports.profiling import profile as profile

__version__: str
__all__: list[str]

def __dir__() -> list[str]: ...

ACL_DT_UNDEFINED: Literal[aclDataType.ACL_DT_UNDEFINED]
ACL_FLOAT: Literal[aclDataType.ACL_FLOAT]
ACL_FLOAT16: Literal[aclDataType.ACL_FLOAT16]
ACL_INT8: Literal[aclDataType.ACL_INT8]
ACL_INT32: Literal[aclDataType.ACL_INT32]
ACL_UINT8: Literal[aclDataType.ACL_UINT8]
ACL_INT16: Literal[aclDataType.ACL_INT16]
ACL_UINT16: Literal[aclDataType.ACL_UINT16]
ACL_UINT32: Literal[aclDataType.ACL_UINT32]
ACL_INT64: Literal[aclDataType.ACL_INT64]
ACL_UINT64: Literal[aclDataType.ACL_UINT64]
ACL_DOUBLE: Literal[aclDataType.ACL_DOUBLE]
ACL_BOOL: Literal[aclDataType.ACL_BOOL]
ACL_STRING: Literal[aclDataType.ACL_STRING]
ACL_COMPLEX64: Literal[aclDataType.ACL_COMPLEX64]
ACL_COMPLEX128: Literal[aclDataType.ACL_COMPLEX128]
ACL_BF16: Literal[aclDataType.ACL_BF16]
ACL_INT4: Literal[aclDataType.ACL_INT4]
ACL_UINT1: Literal[aclDataType.ACL_UINT1]
ACL_COMPLEX32: Literal[aclDataType.ACL_COMPLEX32]
ACL_HIFLOAT8: Literal[aclDataType.ACL_HIFLOAT8]
ACL_FLOAT8_E5M2: Literal[aclDataType.ACL_FLOAT8_E5M2]
ACL_FLOAT8_E4M3FN: Literal[aclDataType.ACL_FLOAT8_E4M3FN]
ACL_FLOAT8_E8M0: Literal[aclDataType.ACL_FLOAT8_E8M0]
ACL_FLOAT6_E3M2: Literal[aclDataType.ACL_FLOAT6_E3M2]
ACL_FLOAT6_E2M3: Literal[aclDataType.ACL_FLOAT6_E2M3]
ACL_FLOAT4_E2M1: Literal[aclDataType.ACL_FLOAT4_E2M1]
ACL_FLOAT4_E1M2: Literal[aclDataType.ACL_FLOAT4_E1M2]
ACL_FORMAT_UNDEFINED: Literal[aclFormat.ACL_FORMAT_UNDEFINED]
ACL_FORMAT_NCHW: Literal[aclFormat.ACL_FORMAT_NCHW]
ACL_FORMAT_NHWC: Literal[aclFormat.ACL_FORMAT_NHWC]
ACL_FORMAT_ND: Literal[aclFormat.ACL_FORMAT_ND]
ACL_FORMAT_NC1HWC0: Literal[aclFormat.ACL_FORMAT_NC1HWC0]
ACL_FORMAT_FRACTAL_Z: Literal[aclFormat.ACL_FORMAT_FRACTAL_Z]
ACL_FORMAT_NC1HWC0_C04: Literal[aclFormat.ACL_FORMAT_NC1HWC0_C04]
ACL_FORMAT_HWCN: Literal[aclFormat.ACL_FORMAT_HWCN]
ACL_FORMAT_NDHWC: Literal[aclFormat.ACL_FORMAT_NDHWC]
ACL_FORMAT_FRACTAL_NZ: Literal[aclFormat.ACL_FORMAT_FRACTAL_NZ]
ACL_FORMAT_NCDHW: Literal[aclFormat.ACL_FORMAT_NCDHW]
ACL_FORMAT_NDC1HWC0: Literal[aclFormat.ACL_FORMAT_NDC1HWC0]
ACL_FORMAT_NC: Literal[aclFormat.ACL_FORMAT_NC]
ACL_FORMAT_NCL: Literal[aclFormat.ACL_FORMAT_NCL]
ACL_MEMCPY_HOST_TO_HOST: Literal[aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_HOST]
ACL_MEMCPY_HOST_TO_DEVICE: Literal[aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE]
ACL_MEMCPY_DEVICE_TO_HOST: Literal[aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST]
ACL_MEMCPY_DEVICE_TO_DEVICE: Literal[aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE]
ACL_MEM_MALLOC_HUGE_FIRST: Literal[aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_FIRST]
ACL_MEM_MALLOC_HUGE_ONLY: Literal[aclrtMemMallocPolicy.ACL_MEM_MALLOC_HUGE_ONLY]
ACL_MEM_MALLOC_NORMAL_ONLY: Literal[aclrtMemMallocPolicy.ACL_MEM_MALLOC_NORMAL_ONLY]
ACL_DDR_MEM: Literal[aclrtMemAttr.ACL_DDR_MEM]
ACL_HBM_MEM: Literal[aclrtMemAttr.ACL_HBM_MEM]
ACL_SUCCESS: Literal[aclError.ACL_SUCCESS]
ACL_ERROR_INVALID_PARAM: Literal[aclError.ACL_ERROR_INVALID_PARAM]
ACL_ERROR_UNINITIALIZE: Literal[aclError.ACL_ERROR_UNINITIALIZE]
ACL_ERROR_REPEAT_INITIALIZE: Literal[aclError.ACL_ERROR_REPEAT_INITIALIZE]
ACL_ERROR_REPEAT_FINALIZE: Literal[aclError.ACL_ERROR_REPEAT_FINALIZE]
ACL_ERROR_RT_PARAM_INVALID: Literal[aclError.ACL_ERROR_RT_PARAM_INVALID]
ACL_ERROR_RT_INVALID_DEVICEID: Literal[aclError.ACL_ERROR_RT_INVALID_DEVICEID]
ACL_ERROR_RT_CONTEXT_NULL: Literal[aclError.ACL_ERROR_RT_CONTEXT_NULL]
ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID: Literal[aclError.ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID]
ACL_ERROR_RT_ADDR_UNALIGNED: Literal[aclError.ACL_ERROR_RT_ADDR_UNALIGNED]
ACL_ERROR_RT_INVALID_HANDLE: Literal[aclError.ACL_ERROR_RT_INVALID_HANDLE]
ACL_ERROR_BAD_ALLOC: Literal[aclError.ACL_ERROR_BAD_ALLOC]
ACL_ERROR_RT_MEMORY_ALLOCATION: Literal[aclError.ACL_ERROR_RT_MEMORY_ALLOCATION]
ACL_ERROR_RT_INTERNAL_ERROR: Literal[aclError.ACL_ERROR_RT_INTERNAL_ERROR]
ACLNN_SUCCESS: Literal[aclnnStatus.ACLNN_SUCCESS]
ACLNN_ERR_PARAM_NULLPTR: Literal[aclnnStatus.ACLNN_ERR_PARAM_NULLPTR]
ACLNN_ERR_PARAM_INVALID: Literal[aclnnStatus.ACLNN_ERR_PARAM_INVALID]
ACLNN_ERR_RUNTIME_ERROR: Literal[aclnnStatus.ACLNN_ERR_RUNTIME_ERROR]
ACLNN_ERR_INNER: Literal[aclnnStatus.ACLNN_ERR_INNER]
ACLNN_ERR_INNER_INFERSHAPE_ERROR: Literal[aclnnStatus.ACLNN_ERR_INNER_INFERSHAPE_ERROR]
ACLNN_ERR_INNER_TILING_ERROR: Literal[aclnnStatus.ACLNN_ERR_INNER_TILING_ERROR]
ACLNN_ERR_INNER_FIND_KERNEL_ERROR: Literal[aclnnStatus.ACLNN_ERR_INNER_FIND_KERNEL_ERROR]
ACLNN_ERR_INNER_CREATE_EXECUTOR: Literal[aclnnStatus.ACLNN_ERR_INNER_CREATE_EXECUTOR]
ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR: Literal[aclnnStatus.ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR]
ACLNN_ERR_INNER_NULLPTR: Literal[aclnnStatus.ACLNN_ERR_INNER_NULLPTR]
ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE: Literal[aclnnStatus.ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE]
ACLNN_ERR_INNER_KEY_CONFLICT: Literal[aclnnStatus.ACLNN_ERR_INNER_KEY_CONFLICT]
ACLNN_ERR_INNER_INVALID_IMPL_MODE: Literal[aclnnStatus.ACLNN_ERR_INNER_INVALID_IMPL_MODE]
ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND: Literal[aclnnStatus.ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND]
ACLNN_ERR_INNER_LOAD_JSON_FAILED: Literal[aclnnStatus.ACLNN_ERR_INNER_LOAD_JSON_FAILED]
ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND: Literal[aclnnStatus.ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND]
ACLNN_ERR_INNER_JSON_FORMAT_INVALID: Literal[aclnnStatus.ACLNN_ERR_INNER_JSON_FORMAT_INVALID]
ACLNN_ERR_INNER_JSON_DTYPE_INVALID: Literal[aclnnStatus.ACLNN_ERR_INNER_JSON_DTYPE_INVALID]
ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND: Literal[aclnnStatus.ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND]
ACLNN_ERR_INNER_OP_FILE_INVALID: Literal[aclnnStatus.ACLNN_ERR_INNER_OP_FILE_INVALID]
ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND: Literal[aclnnStatus.ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND]
ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH: Literal[aclnnStatus.ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH]
ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE: Literal[aclnnStatus.ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE]
ACLNN_ERR_INNER_INPUT_JSON_IS_NULL: Literal[aclnnStatus.ACLNN_ERR_INNER_INPUT_JSON_IS_NULL]
ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID: Literal[aclnnStatus.ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID]
ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID: Literal[aclnnStatus.ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID]

def elu(self: Any, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, out: Any = None) -> Any: ...
def elu_(self: Any, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any: ...
def elu_backward(grad_output: Any, self_or_result: Any, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, is_result: bool = False, out: Any = None) -> Any: ...
def gelu(self: Any, *, approximate: Literal['none', 'tanh'] = 'none', out: Any = None) -> Any: ...
def gelu_backward(grad_output: Any, self: Any, *, approximate: Literal['none', 'tanh'] = 'none', out: Any = None) -> Any: ...
def hardshrink(self: Any, lambd: float = 0.5, *, out: Any = None) -> Any: ...
def hardshrink_backward(grad_output: Any, self: Any, lambd: float = 0.5, *, out: Any = None) -> Any: ...
def leaky_relu(self: Any, negative_slope: float = 0.01, *, out: Any = None) -> Any: ...
def leaky_relu_(self: Any, negative_slope: float = 0.01) -> Any: ...
def leaky_relu_backward(grad_output: Any, self: Any, negative_slope: float = 0.01, *, self_is_result: bool = False, out: Any = None) -> Any: ...
def logit(self: Any, eps: float | None = None, *, out: Any = None) -> Any: ...
def logit_backward(grad_output: Any, self: Any, eps: float | None = None, *, out: Any = None) -> Any: ...

def aclnnEluGetWorkspaceSize(self: aclTensor | None, alpha: aclScalar | None, scale: aclScalar | None, inputScale: aclScalar | None, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnElu(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnInplaceEluGetWorkspaceSize(selfRef: aclTensor | None, alpha: aclScalar | None, scale: aclScalar | None, inputScale: aclScalar | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnInplaceElu(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnEluBackwardGetWorkspaceSize(gradOutput: aclTensor | None, alpha: aclScalar | None, scale: aclScalar | None, inputScale: aclScalar | None, isResult: bool, selfOrResult: aclTensor | None, gradInput: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnEluBackward(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnGeluGetWorkspaceSize(self: aclTensor | None, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnGelu(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnGeluV2GetWorkspaceSize(x: aclTensor | None, approximate: int, y: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnGeluV2(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnGeluBackwardGetWorkspaceSize(gradOutput: aclTensor | None, self: aclTensor | None, gradInput: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnGeluBackward(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnGeluBackwardV2GetWorkspaceSize(gradOutput: aclTensor | None, self: aclTensor | None, approximate: str | None, gradInput: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnGeluBackwardV2(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnHardshrinkGetWorkspaceSize(self: aclTensor | None, lambd: aclScalar | None, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnHardshrink(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnHardshrinkBackwardGetWorkspaceSize(gradOutput: aclTensor | None, self: aclTensor | None, lambd: aclScalar | None, gradInput: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnHardshrinkBackward(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnLeakyReluGetWorkspaceSize(self: aclTensor | None, negativeSlope: aclScalar | None, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnLeakyRelu(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnInplaceLeakyReluGetWorkspaceSize(selfRef: aclTensor | None, negativeSlope: aclScalar | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnInplaceLeakyRelu(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnLeakyReluBackwardGetWorkspaceSize(gradOutput: aclTensor | None, self: aclTensor | None, negativeSlope: aclScalar | None, selfIsResult: bool, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnLeakyReluBackward(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnLogitGetWorkspaceSize(input: aclTensor | None, eps: float, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnLogit(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
def aclnnLogitGradGetWorkspaceSize(x: aclTensor | None, dy: aclTensor | None, eps: float, out: aclTensor | None) -> tuple[int, aclOpExecutor | None, int]: ...
def aclnnLogitGrad(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, stream: Any) -> int: ...
