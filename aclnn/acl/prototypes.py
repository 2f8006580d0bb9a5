"""Prototypes of the runtime and of its objects: one table for the headers and for the Python layer.

`RUNTIME` has the functions of memory, streams, events, contexts and models, `OBJECTS` those that create,
ask and destroy tensors, scalars, lists and executors; both map a function's name to its `Prototype`.
Headers, exported symbols and the table of function pointers (`aclnn/capi/runtime_table.h`) are generated
from them, and tests compare the functions in Python with them. Operators have declarations of their own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["OBJECTS", "RUNTIME", "STRUCTS", "TYPES", "VERSION", "Parameter", "Prototype", "parse"]

VERSION = (1, 0, 0)  # of the interface: ACL_MAJOR_VERSION, ACL_MINOR_VERSION, ACL_PATCH_VERSION

# Names of C types and what they are, in the order in which they can be declared.
TYPES = {
    "aclError": "int",
    "aclnnStatus": "int32_t",
    "aclFloat16": "uint16_t",
    "aclrtStream": "void *",
    "aclrtEvent": "void *",
    "aclrtContext": "void *",
    "aclrtNotify": "void *",
    "aclrtDrvMemHandle": "void *",
    "aclrtAllocatorDesc": "void *",
    "aclmdlRI": "void *",
    "aclrtTaskGrp": "void *",
    "aclmdlRITask": "void *",
    "aclrtCallback": "void (*)(void *)",
    "aclrtHostFunc": "void (*)(void *)",
    "aclTensor": "struct aclTensor",
    "aclScalar": "struct aclScalar",
    "aclIntArray": "struct aclIntArray",
    "aclFloatArray": "struct aclFloatArray",
    "aclBoolArray": "struct aclBoolArray",
    "aclTensorList": "struct aclTensorList",
    "aclScalarList": "struct aclScalarList",
    "aclOpExecutor": "struct aclOpExecutor",
    "aclDataBuffer": "struct aclDataBuffer",
}
# Structures whose members programs set: type and name of each, in their order.
STRUCTS = {
    "aclrtMemLocation": (("uint32_t", "id"), ("aclrtMemLocationType", "type")),
    "aclrtPhysicalMemProp": (
        ("aclrtMemHandleType", "handleType"),
        ("aclrtMemAllocationType", "allocationType"),
        ("aclrtMemAttr", "memAttr"),
        ("aclrtMemLocation", "location"),
        ("uint64_t", "reserve"),
    ),
}


class Parameter(NamedTuple):
    """One parameter of a C function: type, such as ``const void *``, and name.

    >>> RUNTIME["aclrtFree"].parameters
    (Parameter(type='void *', name='devPtr'),)
    """

    type: str
    name: str

    @property
    def is_result(self) -> bool:
        """Whether it is a pointer that a result is written to."""
        inner = self.type.removesuffix("*").strip()
        return self.type.endswith("*") and not self.type.startswith("const") and inner != "void"


class Prototype(NamedTuple):
    """A C function.

    Attributes
    ----------
    name : str
    returns : str
        The type of its result.
    parameters : tuple of Parameter
    variadic : bool
        Whether further arguments may follow.
    header : str
        The header that declares it, below ``include/``.
    statuses : tuple of str
        Names of what it returns besides success, of `aclError` or `aclnnStatus`.
    """

    name: str
    returns: str
    parameters: tuple[Parameter, ...]
    variadic: bool
    header: str
    statuses: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The parameters as a declaration has them.

        >>> RUNTIME["aclrtSynchronizeDevice"].arguments, RUNTIME["aclrtFree"].arguments
        ('void', 'void *devPtr')
        """
        parts = [_declared(*parameter) for parameter in self.parameters]
        return ", ".join([*parts, "..."] if self.variadic else parts) or "void"

    @property
    def declaration(self) -> str:
        """The function's declaration, without a semicolon.

        >>> RUNTIME["aclrtMalloc"].declaration
        'aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)'
        """
        return f"{_declared(self.returns, self.name)}({self.arguments})"

    @property
    def pointer(self) -> str:
        """The declaration of a pointer to such a function, of the same name.

        >>> RUNTIME["aclrtFree"].pointer
        'aclError (*aclrtFree)(void *devPtr)'
        """
        return f"{_declared(self.returns, f'(*{self.name})')}({self.arguments})"


def _declared(kind: str, name: str) -> str:
    return f"{kind}{name}" if kind.endswith("*") else f"{kind} {name}"


# What several functions return. A name in the table that begins with @ stands for these.
_GROUPS = {
    # given to a stream: it has no thread, or it is captured, and cannot record the task
    "queued": (
        "ACL_ERROR_RT_INVALID_HANDLE",
        "ACLNN_ERR_RUNTIME_ERROR",
        "ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED",
        "ACL_ERROR_STREAM_TASK_GROUP_INTR",
        "ACL_ERROR_RT_FEATURE_NOT_SUPPORT",
        "ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP",
        "ACL_ERROR_STREAM_TASK_GROUP_STATUS",
    ),
    # waits for all streams
    "waited": ("ACLNN_ERR_RUNTIME_ERROR", "ACL_ERROR_RT_STREAM_CAPTURED"),
}
_OPENING = re.compile(r"(?P<returns>.*?)(?P<name>\w+)\((?P<parameters>.*)\)$")


def parse(
    text: str, header: str, statuses: tuple[str, ...] = (), returns: str = "aclError"
) -> Prototype:
    """A prototype from its text; the result is `returns` where no type stands before the name.

    >>> parse("aclrtFree(void *devPtr)", "acl/acl_rt.h").declaration
    'aclError aclrtFree(void *devPtr)'
    """
    found = _OPENING.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no prototype")
    parts = [part.strip() for part in found["parameters"].split(",")]
    if parts in ([""], ["void"]):
        parts = []
    variadic = parts[-1:] == ["..."]
    parameters = tuple(_parameter(part) for part in parts[: len(parts) - variadic])
    return Prototype(
        found["name"], found["returns"].strip() or returns, parameters, variadic, header, statuses
    )


def _parameter(text: str) -> Parameter:
    kind, name = re.fullmatch(r"(.*?)(\w+)", text).groups()  # type: ignore[union-attr]
    return Parameter(kind.strip(), name)


def _table(text: str) -> dict[str, Prototype]:
    """The prototypes of a table: headers end in a colon, lines have a prototype and its statuses."""
    found, header = {}, ""
    for line in text.strip().splitlines():
        if line.endswith(":"):
            header = line[:-1]
            continue
        words, _, arguments = line.partition(" -> ")
        statuses: list[str] = []
        for word in arguments.split():
            statuses += _GROUPS[word[1:]] if word.startswith("@") else [word]
        one = parse(words, header, tuple(dict.fromkeys(statuses)))
        found[one.name] = one
    return found


RUNTIME = _table("""
acl/acl.h:
aclInit(const char *configPath) -> ACL_ERROR_UNINITIALIZE ACL_ERROR_REPEAT_INITIALIZE
aclFinalize() -> ACL_ERROR_UNINITIALIZE ACL_ERROR_REPEAT_FINALIZE @waited
aclFinalizeReference(uint64_t *refCount) -> ACL_ERROR_UNINITIALIZE ACL_ERROR_REPEAT_FINALIZE @waited
const char *aclGetRecentErrMsg()
const char *aclrtGetSocName()
aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion) -> ACL_ERROR_RT_PARAM_INVALID
aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) -> ACL_ERROR_INVALID_PARAM ACL_ERROR_RT_INVALID_DEVICEID
acl/acl_base.h:
size_t aclDataTypeSize(aclDataType dataType)
float aclFloat16ToFloat(aclFloat16 value)
aclFloat16 aclFloatToFloat16(float value)
void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...)
acl/acl_rt.h:
aclrtSetDevice(int32_t deviceId) -> ACL_ERROR_RT_INVALID_DEVICEID
aclrtResetDevice(int32_t deviceId) -> ACL_ERROR_RT_INVALID_DEVICEID @waited
aclrtResetDeviceForce(int32_t deviceId) -> ACL_ERROR_RT_INVALID_DEVICEID @waited
aclrtGetDevice(int32_t *deviceId) -> ACL_ERROR_RT_PARAM_INVALID
aclrtGetDeviceCount(uint32_t *count) -> ACL_ERROR_RT_PARAM_INVALID
aclrtGetRunMode(aclrtRunMode *runMode) -> ACL_ERROR_RT_PARAM_INVALID
aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_INVALID_DEVICEID
aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_INVALID_DEVICEID
aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_INVALID_DEVICEID ACL_ERROR_RT_FEATURE_NOT_SUPPORT
aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) -> ACL_ERROR_RT_INVALID_DEVICEID ACL_ERROR_RT_FEATURE_NOT_SUPPORT
aclrtSynchronizeDevice() -> @waited
aclrtSynchronizeDeviceWithTimeout(int32_t timeout) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_SYNC_TIMEOUT @waited
aclrtCreateContext(aclrtContext *context, int32_t deviceId) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_INVALID_DEVICEID
aclrtDestroyContext(aclrtContext context) -> ACL_ERROR_RT_INVALID_HANDLE
aclrtSetCurrentContext(aclrtContext context) -> ACL_ERROR_RT_INVALID_HANDLE
aclrtGetCurrentContext(aclrtContext *context) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_CONTEXT_NULL
aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtFree(void *devPtr) -> ACL_ERROR_RT_PARAM_INVALID
aclrtMallocHost(void **hostPtr, size_t size) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtFreeHost(void *hostPtr) -> ACL_ERROR_RT_PARAM_INVALID
aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) -> ACL_ERROR_RT_PARAM_INVALID
aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT
aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT @queued
aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT
aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind, aclrtStream stream) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT @queued
aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT
aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT @queued
aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option, size_t *granularity) -> ACL_ERROR_RT_PARAM_INVALID
aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtFreePhysical(aclrtDrvMemHandle handle) -> ACL_ERROR_RT_PARAM_INVALID
aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtReleaseMemAddress(void *virPtr) -> ACL_ERROR_RT_PARAM_INVALID
aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtUnmapMem(void *virPtr) -> ACL_ERROR_RT_PARAM_INVALID
aclrtCreateStream(aclrtStream *stream) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtDestroyStream(aclrtStream stream) -> ACL_ERROR_RT_INVALID_HANDLE ACLNN_ERR_RUNTIME_ERROR ACL_ERROR_RT_STREAM_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS
aclrtDestroyStreamForce(aclrtStream stream) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_STREAM_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS
aclrtSynchronizeStream(aclrtStream stream) -> ACL_ERROR_RT_INVALID_HANDLE @waited
aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_SYNC_TIMEOUT @waited
aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_CAPTURED
aclrtStreamGetId(aclrtStream stream, int32_t *streamId) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID
aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) -> @queued ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACL_ERROR_STREAM_CAPTURE_CONFLICT
aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) -> ACL_ERROR_RT_PARAM_INVALID @queued ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACL_ERROR_STREAM_CAPTURE_CONFLICT
aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_NOT_CAPTURED @queued ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACL_ERROR_STREAM_CAPTURE_CONFLICT
aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) -> ACL_ERROR_RT_PARAM_INVALID @queued
aclrtCreateEvent(aclrtEvent *event) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_FEATURE_NOT_SUPPORT ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_FEATURE_NOT_SUPPORT ACL_ERROR_RT_MEMORY_ALLOCATION
aclrtDestroyEvent(aclrtEvent event) -> ACL_ERROR_RT_INVALID_HANDLE
aclrtRecordEvent(aclrtEvent event, aclrtStream stream) -> @queued ACL_ERROR_RT_EVENT_CAPTURED ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACL_ERROR_STREAM_CAPTURE_CONFLICT
aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_NOT_CAPTURED @queued ACL_ERROR_RT_EVENT_CAPTURED ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACL_ERROR_STREAM_CAPTURE_CONFLICT
aclrtResetEvent(aclrtEvent event, aclrtStream stream) -> ACL_ERROR_RT_PARAM_INVALID @queued
aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_EVENT_CAPTURED
aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_EVENT_CAPTURED
aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_EVENT_CAPTURED
aclrtSynchronizeEvent(aclrtEvent event) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_EVENT_CAPTURED
aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_EVENT_CAPTURED ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID ACL_ERROR_RT_EVENT_CAPTURED
aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID ACL_ERROR_RT_EVENT_CAPTURED
aclrtGetEventId(aclrtEvent event, uint32_t *eventId) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID
aclrtPeekAtLastError(aclrtLastErrLevel level) -> ACL_ERROR_RT_PARAM_INVALID
aclrtGetLastError(aclrtLastErrLevel level) -> ACL_ERROR_RT_PARAM_INVALID
aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) -> ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_STREAM_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT
aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID
aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_NOT_CAPTURED ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED ACL_ERROR_STREAM_TASK_GROUP_STATUS ACL_ERROR_RT_CAPTURE_DEPENDENCY ACL_ERROR_RT_STREAM_UNJOINED
aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode) -> ACL_ERROR_RT_PARAM_INVALID
aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_MODEL_CAPTURED ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACLNN_ERR_RUNTIME_ERROR
aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_MODEL_CAPTURED ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ACLNN_ERR_RUNTIME_ERROR
aclmdlRIDestroy(aclmdlRI modelRI) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_MODEL_CAPTURED ACL_ERROR_RT_MODEL_RUNNING
aclmdlRISetName(aclmdlRI modelRI, const char *name) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID
aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID
aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_MODEL_CAPTURED
aclmdlRICaptureTaskGrpBegin(aclrtStream stream) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_STREAM_NOT_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS
aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_PARAM_INVALID ACL_ERROR_RT_STREAM_NOT_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS
aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_STREAM_CAPTURED ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT ACL_ERROR_STREAM_TASK_GROUP_STATUS ACL_ERROR_RT_MODEL_CAPTURED
aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) -> ACL_ERROR_RT_INVALID_HANDLE ACL_ERROR_RT_STREAM_CAPTURED ACL_ERROR_STREAM_TASK_GROUP_STATUS ACLNN_ERR_RUNTIME_ERROR
""")

_TENSOR = (
    "const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride, "
)
_TENSOR += (
    "int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum, void *"
)
_AT = "aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr"
_AT_LIST = "aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr"
_NULL = "ACLNN_ERR_PARAM_NULLPTR"
_REBOUND = "ACLNN_ERR_INNER_NULLPTR ACLNN_ERR_PARAM_INVALID"

OBJECTS = _table(f"""
aclnn/acl_meta.h:
aclTensor *aclCreateTensor({_TENSOR}tensorData)
aclScalar *aclCreateScalar(void *value, aclDataType dataType)
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size)
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size)
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size)
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size)
aclnnStatus aclDestroyTensor(const aclTensor *tensor)
aclnnStatus aclDestroyScalar(const aclScalar *scalar)
aclnnStatus aclDestroyIntArray(const aclIntArray *array)
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array)
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array)
aclnnStatus aclDestroyTensorList(const aclTensorList *array)
aclnnStatus aclDestroyScalarList(const aclScalarList *array)
aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum) -> {_NULL}
aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims, uint64_t *storageDimsNum) -> {_NULL}
aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum) -> {_NULL}
aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset) -> {_NULL}
aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format) -> {_NULL}
aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType) -> {_NULL}
aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size) -> {_NULL}
aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size) -> {_NULL}
aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size) -> {_NULL}
aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size) -> {_NULL}
aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size) -> {_NULL}
aclnnStatus aclInitTensor(aclTensor *tensor, {_TENSOR}tensorDataAddr) -> {_NULL} ACLNN_ERR_PARAM_INVALID
aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr) -> {_NULL} ACLNN_ERR_PARAM_INVALID
aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr) -> {_NULL}
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) -> ACLNN_ERR_INNER_NULLPTR ACLNN_ERR_INNER
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor) -> ACLNN_ERR_INNER_NULLPTR
aclnnStatus aclSetInputTensorAddr({_AT}) -> {_REBOUND}
aclnnStatus aclSetOutputTensorAddr({_AT}) -> {_REBOUND}
aclnnStatus aclSetTensorAddr({_AT}) -> {_REBOUND}
aclnnStatus aclSetDynamicInputTensorAddr({_AT_LIST}) -> {_REBOUND}
aclnnStatus aclSetDynamicOutputTensorAddr({_AT_LIST}) -> {_REBOUND}
aclnnStatus aclSetDynamicTensorAddr({_AT_LIST}) -> {_REBOUND}
aclnnStatus AclSetInputTensorAddr({_AT}) -> {_REBOUND}
aclnnStatus AclSetOutputTensorAddr({_AT}) -> {_REBOUND}
aclnnStatus AclSetTensorAddr({_AT}) -> {_REBOUND}
aclnnStatus AclSetDynamicInputTensorAddr({_AT_LIST}) -> {_REBOUND}
aclnnStatus AclSetDynamicOutputTensorAddr({_AT_LIST}) -> {_REBOUND}
aclnnStatus AclSetDynamicTensorAddr({_AT_LIST}) -> {_REBOUND}
aclnn/aclnn_base.h:
aclnnStatus aclnnInit(const char *configPath)
aclnnStatus aclnnFinalize()
""")
