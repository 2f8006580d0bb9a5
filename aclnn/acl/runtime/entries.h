/* The runtime's functions as C programs call them. Their statuses and messages are those of the Python layer, which
 * they ask, with the interpreter's lock, where a capture is under way. */
#ifndef ACLNN_RUNTIME_ENTRIES_H
#define ACLNN_RUNTIME_ENTRIES_H

#include <limits.h>

#include "runtime_table.h"
#include "streams.h"

static int rt_captures; /* under way in the process */

/* Have the Python layer do a call. `kinds` has a letter for each argument: s, e, m, g and c are handles of streams,
 * events, models, task groups and contexts, i is a number, t is text, p an address. Results follow: a number or a
 * handle each. Set when the module is loaded. */
static int (*rt_python)(const char *name, const char *kinds, const uint64_t *arguments, uint64_t *results);

#define RT_ASK(name, kinds, results, ...) rt_python(name, kinds, (const uint64_t[]){ __VA_ARGS__ }, results)
#define RT_OPEN(name)                                          \
    do {                                                       \
        int rt_status = rt_closed(name);                       \
        if (RT_UNLIKELY(rt_status)) return rt_status;          \
    } while (0)
#define RT_NEED(name, parameter)                                                                                   \
    do {                                                                                                           \
        if (RT_UNLIKELY((parameter) == NULL)) return rt_fail(RT_PARAM_INVALID, "%s: %s is null", name, #parameter); \
    } while (0)
#define RT_AS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define RT_HANDLE(number) ((void *)(uintptr_t)(number))

static inline int rt_captured(void) { return __atomic_load_n(&rt_captures, __ATOMIC_ACQUIRE) != 0; }
static inline int rt_redirected(rt_stream *stream) {
    return stream != NULL && __atomic_load_n(&stream->redirected, __ATOMIC_ACQUIRE);
}

static int rt_bad_handle(const char *function, const char *name, const void *handle, const char *kind) {
    if (handle == NULL) return rt_fail(RT_INVALID_HANDLE, "%s: %s is null", function, name);
    return rt_fail(
        RT_INVALID_HANDLE, "%s: %s is 0x%llx, which is no live %s", function, name, (unsigned long long)RT_AS(handle),
        kind);
}

/* The stream of a handle, held, NULL for the default one. */
static int rt_stream_of(const char *function, aclrtStream handle, rt_stream **stream) {
    *stream = handle == NULL ? NULL : (rt_stream *)rt_get(RT_AS(handle), RT_STREAM);
    return handle == NULL || *stream != NULL ? RT_SUCCESS : rt_bad_handle(function, "stream", handle, "aclrtStream");
}
static int rt_event_of(const char *function, const char *name, aclrtEvent handle, rt_event **event) {
    *event = (rt_event *)rt_get(RT_AS(handle), RT_EVENT);
    return *event != NULL ? RT_SUCCESS : rt_bad_handle(function, name, handle, "aclrtEvent");
}
static void rt_let_go(void *object) {
    if (object != NULL) rt_put(object);
}

/* --- Life and device -------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    int state, count; /* RT_NEW, RT_BEGUN or RT_OVER; calls of aclInit that were not taken back */
    int devices[RT_MOST_DEVICES]; /* calls of aclrtSetDevice that were not taken back */
} rt_life = { .lock = PTHREAD_MUTEX_INITIALIZER };
enum { RT_NEW, RT_BEGUN, RT_OVER };
/* The current one of this thread: a handle, or that of a device, which is a small number. */
static __thread uint64_t rt_context;
enum { RT_NO_CONTEXT = 0, RT_DEFAULT_CONTEXT = 1, RT_LAST_DEFAULT_CONTEXT = RT_MOST_DEVICES };

static int rt_begin(void) {
    pthread_mutex_lock(&rt_life.lock);
    int again = rt_life.state == RT_BEGUN;
    rt_life.state = RT_BEGUN;
    rt_life.count++;
    pthread_mutex_unlock(&rt_life.lock);
    return again ? rt_fail(RT_REPEAT_INITIALIZE, "aclInit: was called already") : RT_SUCCESS;
}

/* Tell the Python layer that the work of a stream is done, or of all (NULL), where it follows how calls are ordered. */
static int rt_watched;
__attribute__((noinline))
static void rt_pass_done(const rt_object *of) { RT_ASK("note_done", "p", NULL, of == NULL ? 0 : of->handle); }
static inline void rt_note_done(const rt_object *of) {
    if (RT_UNLIKELY(rt_watched)) rt_pass_done(of);
}

/* Take one call of aclInit back, or all; how many are left in `*left`. */
static int rt_finish(const char *function, int all, int *left) {
    pthread_mutex_lock(&rt_life.lock);
    int state = rt_life.state;
    if (state == RT_BEGUN) {
        rt_life.count = all ? 0 : rt_life.count - 1;
        if (rt_life.count == 0) rt_life.state = RT_OVER;
    }
    *left = rt_life.count;
    pthread_mutex_unlock(&rt_life.lock);
    if (state == RT_NEW) return rt_fail(RT_UNINITIALIZE, "%s: aclInit was not called", function);
    if (state == RT_OVER) return rt_fail(RT_REPEAT_FINALIZE, "%s: was called already", function);
    return RT_SUCCESS;
}

static void rt_use_device(int device) {
    pthread_mutex_lock(&rt_life.lock);
    rt_life.devices[device]++;
    pthread_mutex_unlock(&rt_life.lock);
    rt_device = device;
    rt_context = RT_DEFAULT_CONTEXT + (uint64_t)device;
}

/* Take one use of a device back, or all; whether that was the last. */
static int rt_leave_device(int device, int all) {
    pthread_mutex_lock(&rt_life.lock);
    int *uses = &rt_life.devices[device], last = *uses > 0 && (all || *uses == 1);
    if (last) *uses = 0;
    else if (*uses > 0) --*uses;
    pthread_mutex_unlock(&rt_life.lock);
    return last;
}

static int64_t rt_cores(void) {
#ifdef CPU_COUNT
    cpu_set_t usable;
    if (!sched_getaffinity(0, sizeof usable, &usable)) return CPU_COUNT(&usable);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online;
}
static int64_t rt_second_cache(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (size > 0) return size;
#endif
    return 1 << 20; /* where the system does not tell */
}
/* Bytes of memory, whole pages of those that memory is mapped by: programs reserve addresses for all of it. */
static uint64_t rt_memory_of(int pages) {
    uint64_t nbytes = (uint64_t)sysconf(pages) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    return nbytes - nbytes % RT_HUGE_PAGE;
}
static uint64_t rt_all_memory(void) { return rt_memory_of(_SC_PHYS_PAGES); }
static uint64_t rt_free_memory(void) {
#ifdef _SC_AVPHYS_PAGES
    return rt_memory_of(_SC_AVPHYS_PAGES);
#else
    return rt_all_memory();
#endif
}

static int rt_device_info(const char *function, int attribute, int64_t *value) {
    switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = rt_cores(); return RT_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = (int64_t)rt_all_memory(); return RT_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = rt_second_cache(); return RT_SUCCESS;
    }
    return rt_fail(RT_PARAM_INVALID, "%s: attr is %d, which is no member of aclrtDevAttr", function, attribute);
}
static int rt_capability(const char *function, int info, int64_t *value) {
    switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = rt_cores(); return RT_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE: *value = rt_second_cache(); return RT_SUCCESS;
    }
    return rt_fail(
        RT_INVALID_PARAM, "%s: deviceInfo is %d, which the device does not tell", function, info);
}

static int rt_done_by_then(void *stream, int64_t until) { return rt_wait_done(stream, until); }
static int rt_wait_stream(rt_stream *stream, int64_t until) {
    return rt_is_idle(stream) ? 1 : rt_wait_for(rt_done_by_then, stream, until);
}

/* Wait for every stream of a device, until a time; the status of the first failure, or of the time that is over. */
static int rt_wait_all(const char *function, int device, int64_t until, int32_t milliseconds) {
    int count, status = RT_SUCCESS, in_time = 1;
    char *failure = NULL;
    rt_stream **all = rt_all_streams(device, &count);
    for (int k = 0; k < count; k++) {
        if (in_time > 0) in_time = rt_wait_stream(all[k], until);
        char *one = in_time > 0 ? rt_take_failure(all[k]) : NULL;
        if (failure == NULL) failure = one;
        else free(one);
        rt_put(&all[k]->base);
    }
    free(all);
    status = rt_outcome(failure);
    if (in_time > 0) rt_note_done(NULL);
    if (in_time) return status;
    return rt_fail(RT_STREAM_SYNC_TIMEOUT, "%s: the device is not done after %d ms", function, milliseconds);
}

/* End all streams of a device, as its last reset does. */
static void rt_end_streams(int device) {
    int count;
    rt_stream **all = rt_all_streams(device, &count);
    for (int k = 0; k < count; k++) {
        if (!rt_redirected(all[k])) rt_close_stream(all[k], 0);
        rt_put(&all[k]->base);
    }
    free(all);
}

/* A time in milliseconds as the Python layer takes it: -1, or from 1 on. */
static int rt_limit(const char *function, int64_t timeout) {
    if (timeout >= 1 || timeout == -1) return RT_SUCCESS;
    return rt_fail(
        RT_PARAM_INVALID, "%s: timeout is %lld, must be -1 or milliseconds from 1 on", function, (long long)timeout);
}
static int64_t rt_milliseconds(int64_t timeout) { return timeout < 0 ? -1 : timeout * 1000000; }

static int rt_refuse_device(const char *function) {
    return rt_captured() ? RT_ASK("refuse_device", "t", NULL, RT_AS(function)) : RT_SUCCESS;
}

static aclError rt_aclInit(const char *configPath) {
    RT_OPEN("aclInit");
    (void)configPath;
    return rt_begin();
}
static int rt_end(const char *function, int all, uint64_t *count) {
    int left = 0, status = rt_refuse_device(function);
    if (!status) status = rt_finish(function, all, &left);
    if (count != NULL) *count = (uint64_t)left;
    return status || left ? status : rt_wait_all(function, RT_EVERY_DEVICE, -1, 0);
}
static aclError rt_aclFinalize(void) {
    RT_OPEN("aclFinalize");
    return rt_end("aclFinalize", 1, NULL);
}
static aclError rt_aclFinalizeReference(uint64_t *refCount) {
    RT_OPEN("aclFinalizeReference");
    if (refCount == NULL) return rt_fail(RT_INVALID_PARAM, "aclFinalizeReference: refCount is null");
    return rt_end("aclFinalizeReference", 0, refCount);
}
static const char *rt_aclGetRecentErrMsg(void) { return rt_take_message(); }

static const char *rt_aclrtGetSocName(void) {
    uint64_t name = 0;
    if (rt_closed("aclrtGetSocName") || RT_ASK("aclrtGetSocName", "", &name, 0)) return NULL;
    return (const char *)(uintptr_t)name;
}
static aclError rt_aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion) {
    static const char *const name = "aclrtGetVersion";
    RT_NEED(name, majorVersion);
    RT_NEED(name, minorVersion);
    RT_NEED(name, patchVersion);
    *majorVersion = ACLNN_RUNTIME_MAJOR;
    *minorVersion = ACLNN_RUNTIME_MINOR;
    *patchVersion = ACLNN_RUNTIME_PATCH;
    return RT_SUCCESS;
}
static aclError rt_aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
    static const char *const name = "aclGetDeviceCapability";
    if (value == NULL) return rt_fail(RT_INVALID_PARAM, "%s: value is null", name);
    int status = rt_bad_device(name, deviceId);
    return status ? status : rt_capability(name, (int)deviceInfo, value);
}

static size_t rt_aclDataTypeSize(aclDataType dataType) {
    switch ((int)dataType) {
    case ACL_INT8: case ACL_UINT8: case ACL_BOOL: case ACL_HIFLOAT8: case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN: case ACL_FLOAT8_E8M0: return 1;
    case ACL_FLOAT16: case ACL_BF16: case ACL_INT16: case ACL_UINT16: return 2;
    case ACL_FLOAT: case ACL_INT32: case ACL_UINT32: case ACL_COMPLEX32: return 4;
    case ACL_DOUBLE: case ACL_INT64: case ACL_UINT64: case ACL_COMPLEX64: return 8;
    case ACL_COMPLEX128: return 16;
    }
    return 0; /* no type, or one whose elements are no whole bytes */
}

/* Without infinities and NaN: the largest exponent is one like the others. */
static float rt_aclFloat16ToFloat(aclFloat16 value) {
    uint32_t sign = (uint32_t)(value & 0x8000) << 16, exponent = (value >> 10) & 31, fraction = value & 1023, bits;
    float result;
    if (exponent == 0) {
        result = (float)fraction * 0x1p-24f;
        memcpy(&bits, &result, sizeof bits);
    } else bits = (exponent + 112) << 23 | fraction << 13;
    bits |= sign;
    memcpy(&result, &bits, sizeof result);
    return result;
}
static aclFloat16 rt_aclFloatToFloat16(float value) {
    uint32_t bits, size, half;
    memcpy(&bits, &value, sizeof bits);
    size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0x7bff;
    if (size >= 0x477fe000) half = 0x7bff; /* 65504 and more: nothing is rounded up to infinity */
    else if (size >= 0x38800000) half = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
    else if (size < 0x33000000) half = 0; /* below half of the least number */
    else {
        uint32_t shift = 126 - (size >> 23), fraction = (size & 0x7fffff) | 0x800000;
        uint32_t rest = fraction & ((1u << shift) - 1), tie = 1u << (shift - 1);
        half = fraction >> shift;
        half += rest > tie || (rest == tie && (half & 1));
    }
    if (half > 0x7bff) half = 0x7bff;
    return (aclFloat16)(half | (bits >> 16 & 0x8000));
}

/* Lines go to standard error, if ACLNN_VERBOSE asks for lines. */
static void rt_app_log(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt,
                       va_list arguments) {
    static const char *const levels[] = { "DEBUG", "INFO", "WARNING", "ERROR" };
    const char *verbose = getenv("ACLNN_VERBOSE");
    if (verbose == NULL || verbose[0] == 0 || !strcmp(verbose, "0") || fmt == NULL) return;
    const char *level = (unsigned)logLevel < 4 ? levels[logLevel] : "INFO";
    char text[1024];
    vsnprintf(text, sizeof text, fmt, arguments);
    fprintf(stderr, "[%s] %s:%u %s: %s\n", level, file == NULL ? "" : file, line, func == NULL ? "" : func, text);
}
__attribute__((format(printf, 5, 6)))
static void rt_aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...) {
    va_list arguments;
    va_start(arguments, fmt);
    rt_app_log(logLevel, func, file, line, fmt, arguments);
    va_end(arguments);
}

static aclError rt_aclrtSetDevice(int32_t deviceId) {
    RT_OPEN("aclrtSetDevice");
    int status = rt_bad_device("aclrtSetDevice", deviceId);
    if (!status) rt_use_device(deviceId);
    return status;
}
static int rt_reset_device(const char *function, int64_t device, int force) {
    int status = rt_bad_device(function, device);
    if (!status) status = rt_refuse_device(function);
    if (status) return status;
    int last = rt_leave_device((int)device, force);
    if ((last || force) && rt_device == device) rt_context = RT_NO_CONTEXT;
    status = rt_wait_all(function, (int)device, -1, 0);
    if (last || force) rt_end_streams((int)device);
    return status;
}
static aclError rt_aclrtResetDevice(int32_t deviceId) {
    RT_OPEN("aclrtResetDevice");
    return rt_reset_device("aclrtResetDevice", deviceId, 0);
}
static aclError rt_aclrtResetDeviceForce(int32_t deviceId) {
    RT_OPEN("aclrtResetDeviceForce");
    return rt_reset_device("aclrtResetDeviceForce", deviceId, 1);
}
static aclError rt_aclrtGetDevice(int32_t *deviceId) {
    RT_NEED("aclrtGetDevice", deviceId);
    *deviceId = rt_device;
    return RT_SUCCESS;
}
static aclError rt_aclrtGetDeviceCount(uint32_t *count) {
    RT_NEED("aclrtGetDeviceCount", count);
    int found = rt_device_count();
    *count = found < 1 ? 0 : (uint32_t)found;
    return found < 1 ? rt_bad_device("aclrtGetDeviceCount", 0) : RT_SUCCESS;
}
static aclError rt_aclrtGetRunMode(aclrtRunMode *runMode) {
    RT_NEED("aclrtGetRunMode", runMode);
    *runMode = ACL_HOST;
    return RT_SUCCESS;
}
static aclError rt_aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    RT_NEED("aclrtGetDeviceInfo", value);
    int status = rt_bad_device("aclrtGetDeviceInfo", deviceId);
    return status ? status : rt_device_info("aclrtGetDeviceInfo", (int)attr, value);
}
static aclError rt_aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    RT_NEED("aclrtDeviceCanAccessPeer", canAccessPeer);
    int status = rt_bad_device("aclrtDeviceCanAccessPeer", deviceId);
    if (!status) status = rt_bad_device("aclrtDeviceCanAccessPeer", peerDeviceId);
    *canAccessPeer = !status && deviceId != peerDeviceId;
    return status;
}
static int rt_peer(const char *function, int64_t peer, uint64_t flags) {
    if (flags) return rt_fail(RT_PARAM_INVALID, "%s: flags is %llu, must be 0", function, (unsigned long long)flags);
    int status = rt_bad_device(function, peer);
    if (status || peer != rt_device) return status; /* devices have the same memory */
    if (rt_device_count() == 1) return rt_fail(RT_FEATURE_NOT_SUPPORT, "%s: the only device has no peer", function);
    return rt_fail(
        RT_FEATURE_NOT_SUPPORT, "%s: peerDeviceId is %lld, the device that the thread has chosen", function,
        (long long)peer);
}
static aclError rt_aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    return rt_peer("aclrtDeviceEnablePeerAccess", peerDeviceId, flags);
}
static aclError rt_aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
    return rt_peer("aclrtDeviceDisablePeerAccess", peerDeviceId, 0);
}
static aclError rt_aclrtSynchronizeDevice(void) {
    static const char *const name = "aclrtSynchronizeDevice";
    RT_OPEN(name);
    int status = rt_refuse_device(name);
    return status ? status : rt_wait_all(name, rt_device, -1, 0);
}
static aclError rt_aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    static const char *const name = "aclrtSynchronizeDeviceWithTimeout";
    RT_OPEN(name);
    int status = rt_limit(name, timeout);
    if (!status) status = rt_refuse_device(name);
    return status ? status : rt_wait_all(name, rt_device, rt_until(rt_milliseconds(timeout)), timeout);
}

/* --- Contexts: they say which device is meant ------------------------------------------------------------- */

typedef struct {
    rt_object base;
    int device;
} rt_context_of_device;

static uint64_t rt_new_context(const char *function, int device) {
    rt_context_of_device *context = calloc(1, sizeof *context);
    uint64_t handle = context == NULL ? 0 : rt_open(&context->base, RT_CONTEXT);
    if (!handle) {
        free(context);
        rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory for a context", function);
        return 0;
    }
    context->device = rt_device = device;
    rt_context = handle;
    return handle;
}
static int rt_end_context(const char *function, uint64_t handle) {
    rt_object *held = rt_close(handle, RT_CONTEXT);
    if (held == NULL) return rt_bad_handle(function, "context", RT_HANDLE(handle), "aclrtContext");
    if (rt_context == handle) rt_context = RT_NO_CONTEXT;
    rt_put(held);
    return RT_SUCCESS;
}
static int rt_choose_context(const char *function, uint64_t handle) {
    int is_of_device = handle >= RT_DEFAULT_CONTEXT && handle < RT_DEFAULT_CONTEXT + (uint64_t)rt_device_count();
    rt_context_of_device *held = is_of_device ? NULL : (rt_context_of_device *)rt_get(handle, RT_CONTEXT);
    if (held == NULL && !is_of_device)
        return rt_bad_handle(function, "context", RT_HANDLE(handle), "aclrtContext");
    rt_device = held == NULL ? (int)(handle - RT_DEFAULT_CONTEXT) : held->device;
    rt_let_go(held);
    rt_context = handle;
    return RT_SUCCESS;
}
static int rt_current_context(const char *function, uint64_t *handle) {
    *handle = rt_context;
    if (rt_context > RT_LAST_DEFAULT_CONTEXT) { /* another thread may have destroyed it */
        rt_object *held = rt_get(rt_context, RT_CONTEXT);
        if (held == NULL) *handle = RT_NO_CONTEXT;
        rt_let_go(held);
    }
    if (*handle) return RT_SUCCESS;
    return rt_fail(
        RT_CONTEXT_NULL, "%s: this thread has no context, call aclrtSetDevice or aclrtSetCurrentContext", function);
}

static aclError rt_aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    RT_OPEN("aclrtCreateContext");
    RT_NEED("aclrtCreateContext", context);
    int status = rt_bad_device("aclrtCreateContext", deviceId);
    if (status) return status;
    *context = RT_HANDLE(rt_new_context("aclrtCreateContext", deviceId));
    return *context == NULL ? RT_MEMORY_ALLOCATION : RT_SUCCESS;
}
static aclError rt_aclrtDestroyContext(aclrtContext context) {
    RT_OPEN("aclrtDestroyContext");
    return rt_end_context("aclrtDestroyContext", RT_AS(context));
}
static aclError rt_aclrtSetCurrentContext(aclrtContext context) {
    RT_OPEN("aclrtSetCurrentContext");
    return rt_choose_context("aclrtSetCurrentContext", RT_AS(context));
}
static aclError rt_aclrtGetCurrentContext(aclrtContext *context) {
    RT_OPEN("aclrtGetCurrentContext");
    RT_NEED("aclrtGetCurrentContext", context);
    uint64_t handle;
    int status = rt_current_context("aclrtGetCurrentContext", &handle);
    *context = RT_HANDLE(handle);
    return status;
}

/* --- Memory ------------------------------------------------------------------------------------------------- */

enum { RT_KINDS_OF_MEMORY = ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH
                            | ACL_MEM_ACCESS_USER_SPACE_READONLY };

static int rt_is_policy(int64_t policy) {
    int64_t rest = policy & ~(int64_t)RT_KINDS_OF_MEMORY;
    return rest >= ACL_MEM_MALLOC_HUGE_FIRST && rest <= ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
}

static int rt_give_memory(const char *function, void **pointer, size_t size, int is_host) {
    if (size == 0) return rt_fail(RT_PARAM_INVALID, "%s: size is 0, must be at least 1", function);
    rt_block *block = rt_allocate(size, is_host, !rt_holds_lock); /* programs in C read a little further */
    if (block == NULL)
        return rt_fail(RT_MEMORY_ALLOCATION, "%s: %zu bytes cannot be allocated", function, size);
    *pointer = (void *)(uintptr_t)block->address;
    return RT_SUCCESS;
}
static int rt_give_device_memory(const char *function, void **devPtr, size_t size, int policy) {
    RT_OPEN(function);
    RT_NEED(function, devPtr);
    *devPtr = NULL;
    if (!rt_is_policy(policy))
        return rt_fail(
            RT_PARAM_INVALID, "%s: policy is %d, which is no member of aclrtMemMallocPolicy", function, policy);
    return rt_give_memory(function, devPtr, size, 0);
}
static aclError rt_aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    return rt_give_device_memory("aclrtMalloc", devPtr, size, (int)policy);
}
static aclError rt_aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    return rt_give_device_memory("aclrtMallocAlign32", devPtr, size, (int)policy);
}
static aclError rt_aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    return rt_give_device_memory("aclrtMallocCached", devPtr, size, (int)policy);
}
static aclError rt_aclrtMallocHost(void **hostPtr, size_t size) {
    RT_OPEN("aclrtMallocHost");
    RT_NEED("aclrtMallocHost", hostPtr);
    *hostPtr = NULL;
    return rt_give_memory("aclrtMallocHost", hostPtr, size, 1);
}
/* Queued work goes on with what is freed: this waits for it, and where it must not, the last of it releases the bytes. */
static int rt_free_memory_at(const char *function, const void *pointer, int is_host) {
    RT_OPEN(function);
    rt_block *ended = rt_end_block(RT_AS(pointer), is_host, RT_CUT);
    if (ended == NULL)
        return rt_fail(
            RT_PARAM_INVALID, "%s: address is 0x%llx, where no live allocation begins", function,
            (unsigned long long)RT_AS(pointer));
    rt_wait_for_users(ended);
    rt_block_drop(ended);
    return RT_SUCCESS;
}
static aclError rt_aclrtFree(void *devPtr) { return rt_free_memory_at("aclrtFree", devPtr, 0); }
static aclError rt_aclrtFreeHost(void *hostPtr) { return rt_free_memory_at("aclrtFreeHost", hostPtr, 1); }

static aclError rt_aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
    RT_NEED("aclrtGetMemInfo", free);
    RT_NEED("aclrtGetMemInfo", total);
    *free = *total = 0;
    if ((unsigned)attr > ACL_HBM_MEM_P2P_HUGE1G)
        return rt_fail(
            RT_PARAM_INVALID, "aclrtGetMemInfo: attr is %d, which is no member of aclrtMemAttr", (int)attr);
    *free = rt_free_memory();
    *total = rt_all_memory();
    return RT_SUCCESS;
}

/* A copy of rows, or of bytes where there is one row. */
typedef struct {
    char *dst;
    const char *src;
    size_t dpitch, spitch, width, height;
    rt_block *to, *from; /* what either side lies in; NULL for the program's own memory */
    char *kept;          /* a copy of a source that may change before it is read */
    int queued;
    const char *function;
} rt_copy;

static void rt_copy_rows(const rt_copy *copy) {
    if (copy->height == 1 && copy->width) memmove(copy->dst, copy->src, copy->width);
    else
        for (size_t row = 0; row < copy->height; row++)
            memmove(copy->dst + row * copy->dpitch, copy->src + row * copy->spitch, copy->width);
}
/* A block, or NULL for the program's own memory. */
static void rt_use_of(rt_block *block) {
    if (block != NULL) rt_block_use(block);
}
static void rt_end_use_of(rt_block *block) {
    if (block != NULL) rt_block_end_use(block);
}
static int rt_is_lost(rt_block *block) { return block != NULL && !rt_block_serves(block); }

static void rt_drop_sides(rt_copy *copy) {
    if (copy->to != NULL) rt_block_drop(copy->to);
    if (copy->from != NULL) rt_block_drop(copy->from);
}
static size_t rt_reach(size_t pitch, size_t width, size_t height) {
    return width && height ? pitch * (height - 1) + width : 0;
}

/* Check a copy, whose sides are held then. */
static int rt_check_copy(rt_copy *copy, int kind) {
    if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)
        return rt_fail(
            RT_PARAM_INVALID, "%s: kind is %d, which is no member of aclrtMemcpyKind", copy->function, kind);
    if (copy->height > 1 && (copy->dpitch > SIZE_MAX / 2 / copy->height || copy->spitch > SIZE_MAX / 2 / copy->height))
        return rt_fail(RT_PARAM_INVALID, "%s: %zu rows exceed any memory", copy->function, copy->height);
    int status = rt_check(copy->function, "dst", copy->dst, rt_reach(copy->dpitch, copy->width, copy->height), &copy->to);
    if (status) return status;
    status = rt_check(
        copy->function, "src", copy->src, rt_reach(copy->spitch, copy->width, copy->height), &copy->from);
    if (status && copy->to != NULL) rt_block_drop(copy->to);
    return status;
}
static int rt_copy_now(rt_copy *copy, int kind) {
    RT_OPEN(copy->function);
    if (RT_UNLIKELY(rt_captured())) {
        int status = RT_ASK("refuse_unsafe", "t", NULL, RT_AS(copy->function));
        if (status) return status;
    }
    int status = rt_check_copy(copy, kind);
    if (status) return status;
    rt_copy_rows(copy);
    rt_drop_sides(copy);
    return RT_SUCCESS;
}

static int rt_run_copy(void *given) {
    rt_copy *copy = given;
    const char *lost = rt_is_lost(copy->to) ? "dst" : rt_is_lost(copy->from) ? "src" : NULL;
    if (lost != NULL) return rt_fail(RT_PARAM_INVALID, "%s: %s is in memory that was freed", copy->function, lost);
    rt_copy_rows(copy);
    return RT_SUCCESS;
}
static void rt_drop_copy(void *given) {
    rt_copy *copy = given;
    if (copy->queued) {
        rt_end_use_of(copy->to);
        rt_end_use_of(copy->from);
    }
    rt_drop_sides(copy);
    free(copy->kept);
    free(copy);
}
/* Read the program's own memory now: it may be a variable that is gone when the copy's turn comes. */
static void rt_read_now(rt_copy *copy) {
    if (copy->from != NULL || !copy->width || !copy->height) return;
    if ((copy->kept = malloc(copy->width * copy->height)) == NULL) return;
    for (size_t row = 0; row < copy->height; row++)
        memcpy(copy->kept + row * copy->width, copy->src + row * copy->spitch, copy->width);
    copy->src = copy->kept;
    copy->spitch = copy->width;
}
static int rt_copy_later(const rt_copy *given, int kind, aclrtStream handle) {
    RT_OPEN(given->function);
    rt_stream *stream;
    int status = rt_stream_of(given->function, handle, &stream);
    if (status) return status;
    if (RT_UNLIKELY(rt_redirected(stream) || rt_captured())) {
        status = RT_ASK(
            "copy_later", "tpipiiiis", NULL, RT_AS(given->function), RT_AS(given->dst), given->dpitch,
            RT_AS(given->src), given->spitch, given->width, given->height, (uint64_t)(int64_t)kind, RT_AS(handle));
        rt_let_go(stream);
        return status;
    }
    rt_copy *copy = malloc(sizeof *copy);
    if (copy == NULL) status = rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory to queue the copy", given->function);
    else {
        *copy = *given;
        status = rt_check_copy(copy, kind);
        if (status) free(copy);
    }
    if (!status) {
        if (stream != NULL) {
            rt_read_now(copy);
            rt_use_of(copy->to);
            rt_use_of(copy->from);
            copy->queued = 1;
        }
        status = rt_give(stream, copy->function, rt_run_copy, copy, rt_drop_copy);
    }
    rt_let_go(stream);
    return status;
}

static int rt_bad_count(const char *function, const char *room_name, size_t room, const char *name, size_t count) {
    if (count <= room) return RT_SUCCESS;
    return rt_fail(RT_PARAM_INVALID, "%s: %s is %zu, but %s is %zu", function, name, count, room_name, room);
}
static aclError rt_aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    int status = rt_bad_count("aclrtMemcpy", "destMax", destMax, "count", count);
    rt_copy copy = { .dst = dst, .src = src, .dpitch = count, .spitch = count, .width = count, .height = 1,
                     .function = "aclrtMemcpy" };
    return status ? status : rt_copy_now(&copy, (int)kind);
}
static aclError rt_aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                    aclrtStream stream) {
    int status = rt_bad_count("aclrtMemcpyAsync", "destMax", destMax, "count", count);
    rt_copy copy = { .dst = dst, .src = src, .dpitch = count, .spitch = count, .width = count, .height = 1,
                     .function = "aclrtMemcpyAsync" };
    return status ? status : rt_copy_later(&copy, (int)kind, stream);
}
static int rt_bad_pitch(const char *function, size_t dpitch, size_t spitch, size_t width) {
    int status = rt_bad_count(function, "dpitch", dpitch, "width", width);
    return status ? status : rt_bad_count(function, "spitch", spitch, "width", width);
}
static aclError rt_aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                                 aclrtMemcpyKind kind) {
    int status = rt_bad_pitch("aclrtMemcpy2d", dpitch, spitch, width);
    rt_copy copy = { .dst = dst, .src = src, .dpitch = dpitch, .spitch = spitch, .width = width, .height = height,
                     .function = "aclrtMemcpy2d" };
    return status ? status : rt_copy_now(&copy, (int)kind);
}
static aclError rt_aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                      size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
    int status = rt_bad_pitch("aclrtMemcpy2dAsync", dpitch, spitch, width);
    rt_copy copy = { .dst = dst, .src = src, .dpitch = dpitch, .spitch = spitch, .width = width, .height = height,
                     .function = "aclrtMemcpy2dAsync" };
    return status ? status : rt_copy_later(&copy, (int)kind, stream);
}

typedef struct {
    char *address;
    size_t count;
    int value, queued;
    rt_block *block;
} rt_fill;

static int rt_bad_fill(const char *function, size_t room, int64_t value, size_t count) {
    int status = rt_bad_count(function, "maxCount", room, "count", count);
    if (status) return status;
    if (value >= -128 && value <= 255) return RT_SUCCESS;
    return rt_fail(RT_PARAM_INVALID, "%s: value is %lld, must be a byte", function, (long long)value);
}
static aclError rt_aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    static const char *const name = "aclrtMemset";
    rt_block *block;
    RT_OPEN(name);
    if (RT_UNLIKELY(rt_captured())) {
        int status = RT_ASK("refuse_unsafe", "t", NULL, RT_AS(name));
        if (status) return status;
    }
    int status = rt_bad_fill(name, maxCount, value, count);
    if (!status) status = rt_check(name, "address", devPtr, count, &block);
    if (status) return status;
    if (count) memset(devPtr, value, count);
    if (block != NULL) rt_block_drop(block);
    return RT_SUCCESS;
}
static int rt_run_fill(void *given) {
    rt_fill *fill = given;
    if (rt_is_lost(fill->block))
        return rt_fail(RT_PARAM_INVALID, "aclrtMemsetAsync: address is in memory that was freed");
    if (fill->count) memset(fill->address, fill->value, fill->count);
    return RT_SUCCESS;
}
static void rt_drop_fill(void *given) {
    rt_fill *fill = given;
    if (fill->queued) rt_end_use_of(fill->block);
    if (fill->block != NULL) rt_block_drop(fill->block);
    free(fill);
}
static aclError rt_aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream handle) {
    static const char *const name = "aclrtMemsetAsync";
    rt_stream *stream;
    rt_block *block;
    RT_OPEN(name);
    int status = rt_stream_of(name, handle, &stream);
    if (status) return status;
    status = rt_bad_fill(name, maxCount, value, count);
    if (!status && RT_UNLIKELY(rt_redirected(stream) || rt_captured()))
        status = RT_ASK(
            "fill_later", "piiis", NULL, RT_AS(devPtr), maxCount, (uint64_t)(int64_t)value, count, RT_AS(handle));
    else if (!status && !(status = rt_check(name, "address", devPtr, count, &block))) {
        rt_fill *fill = malloc(sizeof *fill);
        if (fill == NULL) {
            if (block != NULL) rt_block_drop(block);
            status = rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory to queue it", name);
        } else {
            *fill = (rt_fill){ .address = devPtr, .count = count, .value = value, .block = block,
                               .queued = stream != NULL };
            if (fill->queued) rt_use_of(block);
            status = rt_give(stream, name, rt_run_fill, fill, rt_drop_fill);
        }
    }
    rt_let_go(stream);
    return status;
}

/* --- Address space and memory apart ---------------------------------------------------------------------------- */

static int rt_bad_granule(const char *function, const char *name, uint64_t value) {
    if (value && value % RT_HUGE_PAGE == 0) return RT_SUCCESS;
    return rt_fail(
        RT_PARAM_INVALID, "%s: %s is %llu, must be a multiple of %llu above 0", function, name,
        (unsigned long long)value, (unsigned long long)RT_HUGE_PAGE);
}
static int rt_bad_prop(const char *function, const aclrtPhysicalMemProp *prop) {
    if (prop->location.id < (uint32_t)rt_device_count() && (prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE
                                   || prop->location.type == ACL_MEM_LOCATION_TYPE_HOST))
        return RT_SUCCESS;
    return rt_fail(
        RT_PARAM_INVALID, "%s: location is type %d, id %u, must be a device or the host", function,
        (int)prop->location.type, prop->location.id);
}
static uint64_t rt_new_physical(const char *function, uint64_t size) {
    if (rt_bad_granule(function, "size", size)) return 0;
    rt_physical *one = size > RT_LARGEST ? NULL : calloc(1, sizeof *one);
    int64_t offset = one == NULL ? -1 : rt_extend_file(size);
    uint64_t handle = 0;
    if (offset >= 0) {
        one->offset = (uint64_t)offset;
        one->nbytes = size;
        handle = rt_open(&one->base, RT_PHYSICAL);
    }
    if (handle) return handle;
    free(one);
    rt_fail(RT_MEMORY_ALLOCATION, "%s: %llu bytes cannot be allocated", function, (unsigned long long)size);
    return 0;
}
/* A block of some physical memory that queued work uses, held; NULL where there is none. */
static rt_block *rt_used_block_of(rt_block *node, const rt_physical *physical) {
    if (node == NULL) return NULL;
    if (node->physical == physical && rt_block_is_used(node)) {
        rt_block_hold(node);
        return node;
    }
    rt_block *found = rt_used_block_of(node->left, physical);
    return found != NULL ? found : rt_used_block_of(node->right, physical);
}
static void rt_wait_for_users_of(const rt_physical *physical) {
    int done = 1;
    while (done) {
        pthread_mutex_lock(&rt_memory.lock);
        rt_block *used = rt_used_block_of(rt_memory.root, physical);
        pthread_mutex_unlock(&rt_memory.lock);
        if (used == NULL) return;
        done = rt_wait_for_users(used);
        rt_block_drop(used);
    }
}
static int rt_end_physical(const char *function, uint64_t handle) {
    rt_physical *held = (rt_physical *)rt_close(handle, RT_PHYSICAL);
    if (held != NULL) {
        rt_wait_for_users_of(held);
        rt_put(&held->base);
        return RT_SUCCESS;
    }
    return rt_fail(
        RT_PARAM_INVALID, "%s: handle is 0x%llx, which is no live physical memory", function,
        (unsigned long long)handle);
}
static int rt_reserve(const char *function, uint64_t size, uint64_t alignment, uint64_t flags, uint64_t *address) {
    if (size == 0) return rt_fail(RT_PARAM_INVALID, "%s: size is 0, must be at least 1", function);
    size = size > RT_LARGEST ? size : rt_round_up(size, RT_HUGE_PAGE);
    if (alignment > 1 && (alignment & (alignment - 1)))
        return rt_fail(
            RT_PARAM_INVALID, "%s: alignment is %llu, must be 0 or a power of two", function,
            (unsigned long long)alignment);
    (void)flags; /* hints for pages */
    uint64_t step = alignment > RT_HUGE_PAGE ? alignment : RT_HUGE_PAGE;
    rt_range *range = size > RT_LARGEST || step > RT_LARGEST ? NULL : malloc(sizeof *range);
    void *begin = range == NULL ? MAP_FAILED
                                : mmap(NULL, size + step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) {
        free(range);
        return rt_fail(
            RT_MEMORY_ALLOCATION, "%s: %llu bytes of address space cannot be reserved", function,
            (unsigned long long)size);
    }
    uint64_t low = RT_AS(begin), aligned = rt_round_up(low, step);
    if (aligned > low) munmap(begin, aligned - low);
    munmap((void *)(uintptr_t)(aligned + size), low + step - aligned);
    *range = (rt_range){ .address = aligned, .nbytes = size };
    pthread_mutex_lock(&rt_memory.lock);
    range->next = rt_reserved;
    rt_reserved = range;
    pthread_mutex_unlock(&rt_memory.lock);
    *address = aligned;
    return RT_SUCCESS;
}
/* A live block within a range of addresses; the memory's lock is held. */
static rt_block *rt_block_within(uint64_t address, uint64_t nbytes) {
    rt_block *found = rt_before(address + nbytes - 1);
    return found != NULL && found->address + found->nbytes > address ? found : NULL;
}
static int rt_release(const char *function, uint64_t address) {
    pthread_mutex_lock(&rt_memory.lock);
    rt_range **link = &rt_reserved, *range;
    while (*link != NULL && (*link)->address != address) link = &(*link)->next;
    range = *link;
    int mapped = range != NULL && rt_block_within(range->address, range->nbytes) != NULL;
    if (range != NULL && !mapped) *link = range->next;
    pthread_mutex_unlock(&rt_memory.lock);
    if (range == NULL)
        return rt_fail(
            RT_PARAM_INVALID, "%s: virPtr is 0x%llx, where no reserved range begins", function,
            (unsigned long long)address);
    if (mapped)
        return rt_fail(
            RT_PARAM_INVALID, "%s: virPtr is 0x%llx, of a range that has memory, call aclrtUnmapMem first", function,
            (unsigned long long)address);
    munmap((void *)(uintptr_t)range->address, range->nbytes);
    free(range);
    return RT_SUCCESS;
}
static int rt_map(const char *function, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle) {
    int status = rt_bad_granule(function, "size", size);
    if (status) return status;
    rt_physical *memory = (rt_physical *)rt_get(handle, RT_PHYSICAL);
    if (memory == NULL)
        return rt_fail(
            RT_PARAM_INVALID, "%s: handle is 0x%llx, which is no live physical memory", function,
            (unsigned long long)handle);
    if (offset % RT_PAGE || offset > memory->nbytes || size > memory->nbytes - offset) {
        status = rt_fail(
            RT_PARAM_INVALID, "%s: size is %llu and offset %llu, but the memory has %llu bytes", function,
            (unsigned long long)size, (unsigned long long)offset, (unsigned long long)memory->nbytes);
        rt_put(&memory->base);
        return status;
    }
    rt_block *block = calloc(1, sizeof *block);
    int fits = 0, mapped = 0;
    pthread_mutex_lock(&rt_memory.lock);
    for (rt_range *one = rt_reserved; one != NULL && !fits; one = one->next)
        fits = address >= one->address && address - one->address <= one->nbytes
               && size <= one->nbytes - (address - one->address);
    fits = fits && address % RT_PAGE == 0 && rt_block_within(address, size) == NULL;
    if (fits && block != NULL)
        mapped = mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, rt_file.file,
                      (off_t)(memory->offset + offset)) != MAP_FAILED;
    if (mapped) {
        block->address = address;
        block->nbytes = block->reach = size;
        block->kind = RT_MAPPED;
        block->made_at = rt_clock();
        block->physical = memory;
        rt_enter(block);
    }
    pthread_mutex_unlock(&rt_memory.lock);
    if (mapped) return RT_SUCCESS;
    rt_put(&memory->base);
    free(block);
    if (fits) return rt_fail(RT_MEMORY_ALLOCATION, "%s: %llu bytes cannot be mapped", function, (unsigned long long)size);
    return rt_fail(
        RT_PARAM_INVALID, "%s: virPtr is 0x%llx, where no reserved range has %llu bytes without memory", function,
        (unsigned long long)address, (unsigned long long)size);
}
/* Waits for queued work that uses the memory. Where it must not wait, that work is refused when its turn comes, and
 * other pages are there until then: it harms nobody. */
static int rt_unmap(const char *function, uint64_t address) {
    rt_block *ended = rt_end_block(address, 0, RT_MAPPED);
    if (ended == NULL)
        return rt_fail(
            RT_PARAM_INVALID, "%s: virPtr is 0x%llx, where no memory was mapped", function,
            (unsigned long long)address);
    int is_used = !rt_wait_for_users(ended);
    if (is_used) __atomic_store_n(&ended->lost, 1, __ATOMIC_RELEASE);
    mmap((void *)(uintptr_t)address, ended->nbytes, is_used ? PROT_READ | PROT_WRITE : PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    rt_put(&((rt_physical *)ended->physical)->base);
    rt_block_drop(ended);
    return RT_SUCCESS;
}

static aclError rt_aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
                                                    size_t *granularity) {
    static const char *const name = "aclrtMemGetAllocationGranularity";
    RT_NEED(name, prop);
    RT_NEED(name, granularity);
    if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return rt_fail(RT_PARAM_INVALID, "%s: option is %d, must be the minimum or what is recommended", name, option);
    int status = rt_bad_prop(name, prop);
    *granularity = status ? 0 : RT_HUGE_PAGE;
    return status;
}
static aclError rt_aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop,
                                       uint64_t flags) {
    RT_OPEN("aclrtMallocPhysical");
    RT_NEED("aclrtMallocPhysical", handle);
    RT_NEED("aclrtMallocPhysical", prop);
    (void)flags;
    *handle = NULL;
    int status = rt_bad_prop("aclrtMallocPhysical", prop);
    if (!status) status = rt_bad_granule("aclrtMallocPhysical", "size", size);
    if (status) return status;
    *handle = RT_HANDLE(rt_new_physical("aclrtMallocPhysical", size));
    return *handle == NULL ? RT_MEMORY_ALLOCATION : RT_SUCCESS;
}
static aclError rt_aclrtFreePhysical(aclrtDrvMemHandle handle) {
    RT_OPEN("aclrtFreePhysical");
    return rt_end_physical("aclrtFreePhysical", RT_AS(handle));
}
static aclError rt_aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) {
    RT_OPEN("aclrtReserveMemAddress");
    RT_NEED("aclrtReserveMemAddress", virPtr);
    (void)expectPtr; /* a hint */
    uint64_t address = 0;
    int status = rt_reserve("aclrtReserveMemAddress", size, alignment, flags, &address);
    *virPtr = RT_HANDLE(address);
    return status;
}
static aclError rt_aclrtReleaseMemAddress(void *virPtr) {
    RT_OPEN("aclrtReleaseMemAddress");
    return rt_release("aclrtReleaseMemAddress", RT_AS(virPtr));
}
static aclError rt_aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    RT_OPEN("aclrtMapMem");
    (void)flags;
    return rt_map("aclrtMapMem", RT_AS(virPtr), size, offset, RT_AS(handle));
}
static aclError rt_aclrtUnmapMem(void *virPtr) {
    RT_OPEN("aclrtUnmapMem");
    return rt_unmap("aclrtUnmapMem", RT_AS(virPtr));
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

enum { RT_STREAM_FLAGS = 0x3f };

static int rt_create_stream(const char *function, aclrtStream *stream, uint32_t flag) {
    RT_OPEN(function);
    RT_NEED(function, stream);
    *stream = NULL;
    if (flag & ~(uint32_t)RT_STREAM_FLAGS)
        return rt_fail(RT_PARAM_INVALID, "%s: flag is %#x, of unknown hints", function, flag);
    rt_stream *made = rt_new_stream(flag);
    if (made == NULL) return rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory for a stream", function);
    *stream = RT_HANDLE(made->base.handle);
    return RT_SUCCESS;
}
static aclError rt_aclrtCreateStream(aclrtStream *stream) { return rt_create_stream("aclrtCreateStream", stream, 0); }
static aclError rt_aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    (void)priority; /* the system's threads are alike */
    return rt_create_stream("aclrtCreateStreamWithConfig", stream, flag);
}
static int rt_already_destroyed(const char *function) {
    return rt_fail(RT_INVALID_HANDLE, "%s: stream is destroyed", function);
}
enum { RT_LAST_JOB = 1000000000 }; /* nanoseconds that a forced end waits for the job that runs */

static int rt_destroy_stream(const char *function, rt_stream *stream, int at_once) {
    if (!rt_close_stream(stream, at_once)) return rt_already_destroyed(function);
    rt_wait_end(stream, at_once ? rt_until(RT_LAST_JOB) : -1);
    char *failure = rt_take_failure(stream);
    if (!at_once) return rt_outcome(failure);
    free(failure);
    return RT_SUCCESS;
}
static int rt_destroy(const char *function, aclrtStream handle, int at_once) {
    RT_OPEN(function);
    if (handle == NULL) return RT_SUCCESS;
    rt_stream *stream;
    int status = rt_stream_of(function, handle, &stream);
    if (status) return status;
    if (RT_UNLIKELY(rt_redirected(stream) || stream->base.in_python))
        status = RT_ASK(function, "s", NULL, RT_AS(handle));
    else status = rt_destroy_stream(function, stream, at_once);
    rt_let_go(stream);
    return status;
}
static aclError rt_aclrtDestroyStream(aclrtStream stream) { return rt_destroy("aclrtDestroyStream", stream, 0); }
static aclError rt_aclrtDestroyStreamForce(aclrtStream stream) {
    return rt_destroy("aclrtDestroyStreamForce", stream, 1);
}

/* RT_SUCCESS, unless a capture has the stream's work. */
static int rt_refuse_stream(const char *function, rt_stream *stream) {
    if (RT_LIKELY(!rt_redirected(stream))) return RT_SUCCESS;
    return RT_ASK("refuse_stream", "tp", NULL, RT_AS(function), stream->base.handle);
}
static int rt_outcome_of(rt_stream *stream) {
    rt_note_done(&stream->base);
    return rt_outcome(rt_take_failure(stream));
}
static aclError rt_aclrtSynchronizeStream(aclrtStream handle) {
    static const char *const name = "aclrtSynchronizeStream";
    RT_OPEN(name);
    rt_stream *stream;
    int status = rt_stream_of(name, handle, &stream);
    if (status || stream == NULL) return status;
    status = rt_refuse_stream(name, stream);
    if (!status && rt_wait_stream(stream, -1) > 0) status = rt_outcome_of(stream);
    rt_let_go(stream);
    return status;
}
static int rt_late(const char *function, rt_stream *stream, int64_t timeout) {
    return rt_fail(
        RT_STREAM_SYNC_TIMEOUT, "%s: stream %d is not done after %lld ms", function, stream->number,
        (long long)timeout);
}
static aclError rt_aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t timeout) {
    static const char *const name = "aclrtSynchronizeStreamWithTimeout";
    RT_OPEN(name);
    rt_stream *stream;
    int status = rt_limit(name, timeout);
    if (!status) status = rt_stream_of(name, handle, &stream);
    if (status || stream == NULL) return status;
    status = rt_refuse_stream(name, stream);
    int done = status ? -1 : rt_wait_stream(stream, rt_until(rt_milliseconds(timeout)));
    if (done > 0) status = rt_outcome_of(stream);
    else if (!done) status = rt_late(name, stream, timeout);
    rt_let_go(stream);
    return status;
}
static aclError rt_aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *answer) {
    static const char *const name = "aclrtStreamQuery";
    RT_OPEN(name);
    if (answer == NULL) return rt_fail(RT_PARAM_INVALID, "%s: status is null", name);
    *answer = ACL_STREAM_STATUS_NOT_READY;
    rt_stream *stream;
    int status = rt_stream_of(name, handle, &stream);
    if (status) return status;
    if (stream == NULL) *answer = ACL_STREAM_STATUS_COMPLETE;
    else if (!(status = rt_refuse_stream(name, stream)) && rt_is_idle(stream)) {
        *answer = ACL_STREAM_STATUS_COMPLETE;
        rt_note_done(&stream->base);
    }
    rt_let_go(stream);
    return status;
}
static aclError rt_aclrtStreamGetId(aclrtStream handle, int32_t *streamId) {
    RT_OPEN("aclrtStreamGetId");
    RT_NEED("aclrtStreamGetId", streamId);
    rt_stream *stream;
    int status = rt_stream_of("aclrtStreamGetId", handle, &stream);
    *streamId = stream == NULL ? 0 : stream->number;
    rt_let_go(stream);
    return status;
}

typedef struct {
    void (*function)(void *);
    void *argument;
} rt_call;
static int rt_run_call(void *given) {
    rt_call *call = given;
    int is_outside = rt_go_outside(1);
    call->function(call->argument);
    rt_go_outside(is_outside);
    return RT_SUCCESS;
}
static int rt_launch_call(const char *function, rt_stream *stream, void (*called)(void *), void *argument) {
    rt_call *call = malloc(sizeof *call);
    if (call == NULL) return rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory to queue the call", function);
    *call = (rt_call){ .function = called, .argument = argument };
    return rt_give(stream, function, rt_run_call, call, free);
}
static aclError rt_aclrtLaunchHostFunc(aclrtStream handle, aclrtHostFunc fn, void *args) {
    static const char *const name = "aclrtLaunchHostFunc";
    RT_OPEN(name);
    rt_stream *stream;
    int status = fn == NULL ? rt_fail(RT_PARAM_INVALID, "%s: fn is null", name) : rt_stream_of(name, handle, &stream);
    if (status) return status;
    if (RT_UNLIKELY(rt_redirected(stream) || (stream == NULL && rt_captured())))
        status = RT_ASK("launch_call", "spp", NULL, RT_AS(handle), RT_AS(fn), RT_AS(args));
    else status = rt_launch_call(name, stream, fn, args);
    rt_let_go(stream);
    return status;
}

/* --- Events --------------------------------------------------------------------------------------------------------- */

static int rt_bad_flags(const char *function, int64_t flags) {
    if (flags <= 0 || flags & ~(int64_t)RT_EVENT_FLAGS)
        return rt_fail(RT_PARAM_INVALID, "%s: flag is %lld, no aclrtEventFlag", function, (long long)flags);
    for (int alone = RT_EXTERNAL; alone <= RT_IPC; alone *= 2)
        if (flags & alone && flags != alone)
            return rt_fail(
                RT_PARAM_INVALID, "%s: flag is %#llx, but %s stands alone", function, (unsigned long long)flags,
                alone == RT_IPC ? "ACL_EVENT_IPC" : "ACL_EVENT_EXTERNAL");
    if (flags == RT_IPC) return rt_fail(RT_FEATURE_NOT_SUPPORT, "%s: no event is shared by processes", function);
    return RT_SUCCESS;
}
static int rt_create_event(const char *function, aclrtEvent *event, uint32_t flag, int has_flag) {
    RT_OPEN(function);
    RT_NEED(function, event);
    *event = NULL;
    int status = has_flag ? rt_bad_flags(function, flag) : RT_SUCCESS;
    if (status) return status;
    rt_event *made = rt_new_event(flag);
    if (made == NULL) return rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory for an event", function);
    *event = RT_HANDLE(made->base.handle);
    return RT_SUCCESS;
}
static aclError rt_aclrtCreateEvent(aclrtEvent *event) { return rt_create_event("aclrtCreateEvent", event, 0, 0); }
static aclError rt_aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) {
    return rt_create_event("aclrtCreateEventWithFlag", event, flag, 1);
}
static aclError rt_aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) {
    return rt_create_event("aclrtCreateEventExWithFlag", event, flag, 1);
}
static aclError rt_aclrtDestroyEvent(aclrtEvent handle) {
    static const char *const name = "aclrtDestroyEvent";
    RT_OPEN(name);
    if (handle == NULL) return RT_SUCCESS;
    rt_event *event;
    int status = rt_event_of(name, "event", handle, &event);
    if (status) return status;
    if (event->base.in_python) status = RT_ASK(name, "e", NULL, RT_AS(handle));
    else if (!rt_close_event(event)) status = rt_bad_handle(name, "event", handle, "aclrtEvent");
    rt_let_go(event);
    return status;
}

/* Event and stream of a call, both held. */
static int rt_pair(const char *function, aclrtEvent event, aclrtStream stream, rt_event **one, rt_stream **other) {
    *other = NULL;
    int status = rt_event_of(function, "event", event, one);
    if (status) return status;
    status = rt_stream_of(function, stream, other);
    if (status) rt_put(&(*one)->base);
    return status;
}
static int rt_of_python(rt_stream *stream) {
    return rt_captured() || rt_redirected(stream) || (rt_holds_lock && rt_watched);
}
/* The default stream waits at once, with the interpreter's lock if that is held: Python lets go of it. */
static int rt_waits_in_python(rt_stream *stream) { return rt_of_python(stream) || (stream == NULL && rt_holds_lock); }
/* Have the Python layer do a call, which it does itself where the call comes from there. */
enum { RT_IN_PYTHON = -2 };
#define RT_PASS(name, kinds, ...) (rt_holds_lock ? RT_IN_PYTHON : RT_ASK(name, kinds, NULL, __VA_ARGS__))

static aclError rt_aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    static const char *const name = "aclrtRecordEvent";
    RT_OPEN(name);
    rt_event *mark;
    rt_stream *on;
    int status = rt_pair(name, event, stream, &mark, &on);
    if (status) return status;
    if (RT_UNLIKELY(rt_of_python(on))) status = RT_PASS(name, "es", RT_AS(event), RT_AS(stream));
    else status = rt_record(name, mark, on);
    rt_let_go(on);
    rt_let_go(mark);
    return status;
}
static aclError rt_aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    static const char *const name = "aclrtStreamWaitEvent";
    RT_OPEN(name);
    rt_event *mark;
    rt_stream *on;
    int status = rt_pair(name, event, stream, &mark, &on);
    if (status) return status;
    if (RT_UNLIKELY(rt_waits_in_python(on))) status = RT_PASS(name, "se", RT_AS(stream), RT_AS(event));
    else status = rt_await(name, on, mark, -1);
    rt_let_go(on);
    rt_let_go(mark);
    return status;
}
static aclError rt_aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
    static const char *const name = "aclrtStreamWaitEventWithTimeout";
    RT_OPEN(name);
    rt_event *mark;
    rt_stream *on;
    int status = rt_limit(name, timeout);
    if (!status) status = rt_pair(name, event, stream, &mark, &on);
    if (status) return status;
    if (RT_UNLIKELY(rt_waits_in_python(on)))
        status = RT_PASS(name, "sei", RT_AS(stream), RT_AS(event), (uint64_t)(int64_t)timeout);
    else status = rt_await(name, on, mark, rt_milliseconds(timeout));
    rt_let_go(on);
    rt_let_go(mark);
    return status;
}
static aclError rt_aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag) {
    static const char *const name = "aclrtStreamWaitEventWithFlag";
    RT_OPEN(name);
    rt_event *mark;
    rt_stream *on;
    int status = rt_pair(name, event, stream, &mark, &on);
    if (status) return status;
    if (flag || RT_UNLIKELY(rt_of_python(on)))
        status = RT_ASK(name, "seii", NULL, RT_AS(stream), RT_AS(event), timeout, flag);
    else status = rt_await(name, on, mark, timeout ? (int64_t)timeout * 1000000000 : -1);
    rt_let_go(on);
    rt_let_go(mark);
    return status;
}
static aclError rt_aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
    static const char *const name = "aclrtRecordEventWithFlag";
    if (!flag) return rt_aclrtRecordEvent(event, stream);
    RT_OPEN(name);
    rt_event *mark;
    rt_stream *on;
    int status = rt_pair(name, event, stream, &mark, &on);
    if (status) return status;
    status = RT_ASK(name, "esi", NULL, RT_AS(event), RT_AS(stream), flag);
    rt_let_go(on);
    rt_let_go(mark);
    return status;
}
static aclError rt_aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    static const char *const name = "aclrtResetEvent";
    RT_OPEN(name);
    rt_event *mark;
    rt_stream *on;
    int status = rt_pair(name, event, stream, &mark, &on);
    if (status) return status;
    if (RT_UNLIKELY(rt_of_python(on))) status = RT_PASS(name, "es", RT_AS(event), RT_AS(stream));
    else status = rt_reset(name, mark, on);
    rt_let_go(on);
    rt_let_go(mark);
    return status;
}

/* RT_SUCCESS, unless a capture has recorded the event. */
static int rt_refuse_event(const char *function, const char *name, const rt_event *event) {
    if (RT_LIKELY(!rt_captured())) return RT_SUCCESS;
    return RT_ASK("refuse_event", "ttp", NULL, RT_AS(function), RT_AS(name), event->base.handle);
}
static int rt_event_by_then(void *event, int64_t until) { return rt_has_happened(event, until); }
static int rt_wait_event(rt_event *event, int64_t until) {
    int happened = rt_has_happened(event, 0);
    if (RT_UNLIKELY(!happened && until)) happened = rt_wait_for(rt_event_by_then, event, until);
    if (happened > 0) rt_note_done(&event->base);
    return happened;
}

/* What an event is asked: `*happened` says whether it has. */
static int rt_ask_event(const char *function, aclrtEvent handle, int waits, int *happened) {
    RT_OPEN(function);
    rt_event *event;
    int status = rt_event_of(function, "event", handle, &event);
    if (status) return status;
    status = rt_refuse_event(function, "event", event);
    if (!status && waits)
        *happened = __atomic_load_n(&event->passed, __ATOMIC_ACQUIRE)
                    >= __atomic_load_n(&event->awaited, __ATOMIC_ACQUIRE);
    else if (!status) *happened = rt_wait_event(event, 0);
    rt_let_go(event);
    return status;
}
#define RT_QUERY(name, type, waits, complete, not_ready)                                            \
    static aclError rt_##name(aclrtEvent event, type *status) {                                     \
        int happened = 0;                                                                           \
        RT_NEED(#name, status);                                                                     \
        *status = not_ready;                                                                        \
        int failed = rt_ask_event(#name, event, waits, &happened);                                  \
        if (happened) *status = complete;                                                           \
        return failed;                                                                              \
    }
RT_QUERY(aclrtQueryEvent, aclrtEventStatus, 0, ACL_EVENT_STATUS_COMPLETE, ACL_EVENT_STATUS_NOT_READY)
RT_QUERY(aclrtQueryEventStatus, aclrtEventRecordedStatus, 0, ACL_EVENT_RECORDED_STATUS_COMPLETE,
         ACL_EVENT_RECORDED_STATUS_NOT_READY)
RT_QUERY(aclrtQueryEventWaitStatus, aclrtEventWaitStatus, 1, ACL_EVENT_WAIT_STATUS_COMPLETE,
         ACL_EVENT_WAIT_STATUS_NOT_READY)

static int rt_synchronize_event(const char *function, aclrtEvent handle, int64_t timeout) {
    RT_OPEN(function);
    rt_event *event;
    int status = rt_event_of(function, "event", handle, &event);
    if (status) return status;
    status = rt_refuse_event(function, "event", event);
    if (!status) status = rt_limit(function, timeout);
    if (!status && !rt_wait_event(event, rt_until(rt_milliseconds(timeout))))
        status = rt_fail(
            RT_EVENT_SYNC_TIMEOUT, "%s: event %d has not happened after %lld ms", function, event->number,
            (long long)timeout);
    rt_let_go(event);
    return status;
}
static aclError rt_aclrtSynchronizeEvent(aclrtEvent event) {
    return rt_synchronize_event("aclrtSynchronizeEvent", event, -1);
}
static aclError rt_aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    return rt_synchronize_event("aclrtSynchronizeEventWithTimeout", event, timeout);
}

/* When an event happened, in nanoseconds. */
static int rt_ask_time(const char *function, const char *name, aclrtEvent handle, int64_t *when) {
    RT_OPEN(function);
    rt_event *event;
    int status = rt_event_of(function, name, handle, &event);
    if (status) return status;
    status = rt_refuse_event(function, name, event);
    if (!status && !(*when = rt_time_of(function, name, event))) status = RT_EVENT_TIMESTAMP_INVALID;
    rt_let_go(event);
    return status;
}
static aclError rt_aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    static const char *const name = "aclrtEventElapsedTime";
    RT_NEED(name, ms);
    int64_t from = 0, to = 0;
    *ms = 0;
    int status = rt_ask_time(name, "start", startEvent, &from);
    if (!status) status = rt_ask_time(name, "end", endEvent, &to);
    if (!status) *ms = (float)((double)(to - from) / 1e6);
    return status;
}
static aclError rt_aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
    RT_NEED("aclrtEventGetTimestamp", timestamp);
    int64_t when = 0;
    int status = rt_ask_time("aclrtEventGetTimestamp", "event", event, &when);
    *timestamp = (uint64_t)when / 1000;
    return status;
}
static aclError rt_aclrtGetEventId(aclrtEvent handle, uint32_t *eventId) {
    RT_OPEN("aclrtGetEventId");
    RT_NEED("aclrtGetEventId", eventId);
    rt_event *event;
    int status = rt_event_of("aclrtGetEventId", "event", handle, &event);
    *eventId = event == NULL ? 0 : (uint32_t)event->number;
    rt_let_go(event);
    return status;
}

static int rt_error_of_thread(const char *function, int level, int clear) {
    if (level != ACL_RT_THREAD_LEVEL)
        return rt_fail(RT_PARAM_INVALID, "%s: level is %d, must be ACL_RT_THREAD_LEVEL (0)", function, level);
    return rt_last_error(clear);
}
static aclError rt_aclrtPeekAtLastError(aclrtLastErrLevel level) {
    return rt_error_of_thread("aclrtPeekAtLastError", (int)level, 0);
}
static aclError rt_aclrtGetLastError(aclrtLastErrLevel level) {
    return rt_error_of_thread("aclrtGetLastError", (int)level, 1);
}

/* --- Captures and models: the Python layer has them --------------------------------------------------------- */

static aclError rt_aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
    RT_OPEN("aclmdlRICaptureBegin");
    return RT_ASK("aclmdlRICaptureBegin", "si", NULL, RT_AS(stream), (uint64_t)(int64_t)mode);
}
static aclError rt_aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *answer, aclmdlRI *modelRI) {
    static const char *const name = "aclmdlRICaptureGetInfo";
    RT_OPEN(name);
    if (answer == NULL) return rt_fail(RT_PARAM_INVALID, "%s: status is null", name);
    RT_NEED(name, modelRI);
    uint64_t found[2] = { 0, 0 };
    int status = RT_ASK(name, "s", found, RT_AS(stream));
    *answer = (aclmdlRICaptureStatus)found[0];
    *modelRI = RT_HANDLE(found[1]);
    return status;
}
static aclError rt_aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI) {
    RT_OPEN("aclmdlRICaptureEnd");
    RT_NEED("aclmdlRICaptureEnd", modelRI);
    uint64_t found = 0;
    int status = RT_ASK("aclmdlRICaptureEnd", "s", &found, RT_AS(stream));
    *modelRI = RT_HANDLE(found);
    return status;
}
static aclError rt_aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode) {
    RT_OPEN("aclmdlRICaptureThreadExchangeMode");
    RT_NEED("aclmdlRICaptureThreadExchangeMode", mode);
    uint64_t found = (uint64_t)*mode;
    int status = RT_ASK("aclmdlRICaptureThreadExchangeMode", "i", &found, (uint64_t)(int64_t)*mode);
    if (!status) *mode = (aclmdlRICaptureMode)found;
    return status;
}
static aclError rt_aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
    RT_OPEN("aclmdlRIExecuteAsync");
    return RT_ASK("aclmdlRIExecuteAsync", "ms", NULL, RT_AS(modelRI), RT_AS(stream));
}
static aclError rt_aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
    RT_OPEN("aclmdlRIExecute");
    return RT_ASK("aclmdlRIExecute", "mi", NULL, RT_AS(modelRI), (uint64_t)(int64_t)timeout);
}
static aclError rt_aclmdlRIDestroy(aclmdlRI modelRI) {
    RT_OPEN("aclmdlRIDestroy");
    return RT_ASK("aclmdlRIDestroy", "m", NULL, RT_AS(modelRI));
}
static aclError rt_aclmdlRISetName(aclmdlRI modelRI, const char *name) {
    RT_OPEN("aclmdlRISetName");
    RT_NEED("aclmdlRISetName", name);
    return RT_ASK("aclmdlRISetName", "mt", NULL, RT_AS(modelRI), RT_AS(name));
}
static aclError rt_aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name) {
    RT_OPEN("aclmdlRIGetName");
    RT_NEED("aclmdlRIGetName", name);
    if (maxLen == 0) return rt_fail(RT_PARAM_INVALID, "aclmdlRIGetName: maxLen is 0, a name ends in a zero byte");
    return RT_ASK("name_into", "mip", NULL, RT_AS(modelRI), maxLen, RT_AS(name));
}
static aclError rt_aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags) {
    RT_OPEN("aclmdlRIDebugJsonPrint");
    RT_NEED("aclmdlRIDebugJsonPrint", path);
    return RT_ASK("aclmdlRIDebugJsonPrint", "mti", NULL, RT_AS(modelRI), RT_AS(path), flags);
}
static aclError rt_aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
    RT_OPEN("aclmdlRICaptureTaskGrpBegin");
    return RT_ASK("aclmdlRICaptureTaskGrpBegin", "s", NULL, RT_AS(stream));
}
static aclError rt_aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle) {
    RT_OPEN("aclmdlRICaptureTaskGrpEnd");
    RT_NEED("aclmdlRICaptureTaskGrpEnd", handle);
    uint64_t found = 0;
    int status = RT_ASK("aclmdlRICaptureTaskGrpEnd", "s", &found, RT_AS(stream));
    *handle = RT_HANDLE(found);
    return status;
}
static aclError rt_aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
    RT_OPEN("aclmdlRICaptureTaskUpdateBegin");
    return RT_ASK("aclmdlRICaptureTaskUpdateBegin", "sg", NULL, RT_AS(stream), RT_AS(handle));
}
static aclError rt_aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
    RT_OPEN("aclmdlRICaptureTaskUpdateEnd");
    return RT_ASK("aclmdlRICaptureTaskUpdateEnd", "s", NULL, RT_AS(stream));
}

/* --- For the library of operators ------------------------------------------------------------------------------- */

static aclError rt_enqueue(aclrtStream handle, const char *function, rt_function run, void *argument,
                           rt_destructor drop) {
    rt_stream *stream;
    int status = rt_closed(function);
    if (!status) status = rt_stream_of(function, handle, &stream);
    if (status) {
        if (drop != NULL) drop(argument);
        return status;
    }
    status = rt_give(stream, function, run, argument, drop);
    rt_let_go(stream);
    return status;
}
static int rt_is_redirected(aclrtStream handle, const char *function) {
    rt_stream *stream;
    int status = rt_stream_of(function, handle, &stream);
    if (status) return status;
    status = stream == NULL ? rt_captured() : rt_redirected(stream);
    rt_let_go(stream);
    return status;
}
static int rt_hold_memory(const char *function, const char *name, const void *address, size_t nbytes, void **block) {
    rt_block *found;
    int status = rt_check(function, name, address, nbytes, &found);
    *block = status ? NULL : found;
    return status;
}
static int rt_memory_lives(void *block) { return block == NULL || rt_block_lives(block); }
static void rt_drop_memory(void *block) {
    if (block != NULL) rt_block_drop(block);
}
static void rt_use_memory(void *block) { rt_use_of(block); }
static int rt_memory_serves(void *block) { return !rt_is_lost(block); }
static void rt_end_use_of_memory(void *block) { rt_end_use_of(block); }
static int rt_fail_with(int status, const char *message) { return rt_note_failure(status, message, strlen(message)); }
/* Also of a failure that came before the runtime did. */
static void rt_message_is(const char *message) {
    rt_set_message(message, strlen(message));
    rt_keep_cause(rt_this_thread(), message, strlen(message));
}

/* Python's object of a handle, and the reverse; set when the module is loaded. */
static void *(*rt_object_of)(void *handle);
static void *(*rt_handle_of)(void *object);
static void *rt_python_object(void *handle) { return rt_object_of(handle); }
static void *rt_python_handle(void *object) { return rt_handle_of(object); }

#define RT_MEMBER(name) .name = rt_##name,
static const aclnn_runtime_table rt_table = {
    .version = ACLNN_RUNTIME_TABLE_VERSION,
    .size = sizeof(aclnn_runtime_table),
    ACLNN_RUNTIME_FUNCTIONS(RT_MEMBER)
    .enqueue = rt_enqueue,
    .is_redirected = rt_is_redirected,
    .hold_memory = rt_hold_memory,
    .memory_lives = rt_memory_lives,
    .drop_memory = rt_drop_memory,
    .fail = rt_fail_with,
    .set_message = rt_message_is,
    .closed = rt_closed,
    .app_log = rt_app_log,
    .object_of = rt_python_object,
    .handle_of = rt_python_handle,
    .use_memory = rt_use_memory,
    .memory_serves = rt_memory_serves,
    .end_use_of_memory = rt_end_use_of_memory,
};

/* --- Forks and the end --------------------------------------------------------------------------------------------- */

/* Locks that guard what a child needs are held while it is made, so that it finds all of that whole. */
static void rt_before_fork(void) {
    pthread_mutex_lock(&rt_fork_lock);
    pthread_mutex_lock(&rt_life.lock);
    pthread_mutex_lock(&rt_streams.lock);
    pthread_mutex_lock(&rt_handles.lock);
    pthread_mutex_lock(&rt_file.lock);
    pthread_mutex_lock(&rt_memory.lock);
}
static void rt_after_fork(void) {
    pthread_mutex_unlock(&rt_memory.lock);
    pthread_mutex_unlock(&rt_file.lock);
    pthread_mutex_unlock(&rt_handles.lock);
    pthread_mutex_unlock(&rt_streams.lock);
    pthread_mutex_unlock(&rt_life.lock);
    pthread_mutex_unlock(&rt_fork_lock);
}
static void rt_in_child(void) {
    rt_after_fork();
    __atomic_or_fetch(&rt_state, RT_FORKED, __ATOMIC_RELAXED);
}

static void rt_forget_thread(rt_stream *stream) {
    pthread_mutex_init(&stream->lock, NULL);
    rt_make_condition(&stream->more);
    rt_make_condition(&stream->progress);
    stream->asleep = stream->waiters = stream->outside = 0;
    stream->head = stream->tail = NULL;
    stream->done = stream->given;
    stream->failure = NULL;
    if (stream->worker != RT_WORKS) return;
    stream->worker = RT_NO_THREAD;
    __atomic_sub_fetch(&stream->base.refs, 1, __ATOMIC_RELAXED); /* the thread held it */
}
static void rt_forget_uses(rt_block *block) {
    if (block == NULL) return;
    block->uses = block->waiters = 0;
    rt_forget_uses(block->left);
    rt_forget_uses(block->right);
}
/* In a child that Python forked: threads, queued work and what would happen on them are the parent's. */
static void rt_begin_anew(void) {
    int count;
    rt_make_condition(&rt_memory.unused);
    rt_forget_uses(rt_memory.root);
    __atomic_and_fetch(&rt_state, ~RT_FORKED, __ATOMIC_RELAXED);
    rt_works_for = NULL;
    rt_stream **all = rt_all_streams(RT_EVERY_DEVICE, &count);
    for (int k = 0; k < count; k++) {
        rt_forget_thread(all[k]);
        rt_put(&all[k]->base);
    }
    free(all);
    for (uint32_t index = 1; index < rt_handles.count; index++) {
        rt_event *event = (rt_event *)rt_slot_at(index)->object;
        if (event == NULL || event->base.kind != RT_EVENT) continue;
        pthread_mutex_init(&event->lock, NULL);
        event->passed = event->awaited;
        if (event->latest != NULL && !rt_is_raised(event->latest)) event->latest = NULL; /* for good: who knows */
        if (event->signal != NULL) {
            pthread_mutex_init(&event->signal->lock, NULL);
            rt_make_condition(&event->signal->changed);
        }
        if (event->latest != NULL) {
            pthread_mutex_init(&event->latest->lock, NULL);
            rt_make_condition(&event->latest->changed);
        }
    }
}

enum { RT_LAST_MILLISECONDS = 200 };

/* At exit no job begins any more, and those that run may end: what they use is about to go. */
static void rt_exit(void) {
    __atomic_or_fetch(&rt_state, RT_EXITING, __ATOMIC_SEQ_CST);
    int64_t until = rt_clock() + (int64_t)RT_LAST_MILLISECONDS * 1000000;
    if (pthread_mutex_trylock(&rt_streams.lock)) return; /* exit was called in the middle of something */
    for (rt_stream *one = rt_streams.first; one != NULL; one = one->next) {
        if (one == rt_works_for || pthread_mutex_trylock(&one->lock)) continue;
        one->waiters++;
        while (one->worker == RT_WORKS && !one->asleep && !one->in_python && rt_clock() < until)
            rt_wait_until(&one->progress, &one->lock, until);
        one->waiters--;
        pthread_mutex_unlock(&one->lock);
    }
    pthread_mutex_unlock(&rt_streams.lock);
}

static void rt_load(void) {
    rt_make_condition(&rt_memory.unused);
    pthread_atfork(rt_before_fork, rt_after_fork, rt_in_child);
    atexit(rt_exit);
}

#endif
