/* What the runtime knows of its process and of the calling thread: the message and status of the latest
 * failure, and whether calls can still be served. Nothing here needs the interpreter. */
#ifndef ACLNN_RUNTIME_PROCESS_H
#define ACLNN_RUNTIME_PROCESS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RT_LIKELY(x) __builtin_expect(!!(x), 1)
#define RT_UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    RT_SUCCESS = 0,
    RT_INVALID_PARAM = 100000,
    RT_UNINITIALIZE = 100001,
    RT_REPEAT_INITIALIZE = 100002,
    RT_REPEAT_FINALIZE = 100037,
    RT_PARAM_INVALID = 107000,
    RT_INVALID_DEVICEID = 107001,
    RT_CONTEXT_NULL = 107002,
    RT_EVENT_TIMESTAMP_INVALID = 107006,
    RT_INVALID_HANDLE = 107017,
    RT_FEATURE_NOT_SUPPORT = 207000,
    RT_MEMORY_ALLOCATION = 207001,
    RT_STREAM_SYNC_TIMEOUT = 507046,
    RT_EVENT_SYNC_TIMEOUT = 507047,
    RT_RUNTIME_ERROR = 361001
};

enum { RT_LONGEST_MESSAGE = 64000 };

/* --- The calling thread ---------------------------------------------------------------------- */

typedef struct {
    char *bytes;
    size_t length;
} rt_text;

/* Functions whose failure is a null pointer, which somebody else is given later. */
enum { RT_MAKERS = 7 };
static const char *const rt_makers[RT_MAKERS] = {
    "aclCreateTensor",    "aclCreateScalar",     "aclCreateIntArray",   "aclCreateFloatArray",
    "aclCreateBoolArray", "aclCreateTensorList", "aclCreateScalarList",
};
typedef struct {
    rt_text first, latest; /* since the last time that somebody asked */
} rt_cause;

typedef struct {
    rt_text message; /* for the next question */
    char *told;      /* the answer to the latest one, which stays until the thread asks again */
    int status;      /* of the latest failure, which questions do not clear */
    rt_text failure;
    int last_error;  /* the latest status of the runtime, which aclrtGetLastError clears */
    rt_cause causes[RT_MAKERS];
} rt_thread;

static pthread_once_t rt_once = PTHREAD_ONCE_INIT;
static pthread_key_t rt_key;
static __thread rt_thread *rt_own;

static void rt_thread_ends(void *given) {
    rt_thread *own = given;
    rt_own = NULL;
    free(own->message.bytes);
    free(own->told);
    free(own->failure.bytes);
    for (int k = 0; k < RT_MAKERS; k++) {
        free(own->causes[k].first.bytes);
        free(own->causes[k].latest.bytes);
    }
    free(own);
}
static void rt_make_key(void) { pthread_key_create(&rt_key, rt_thread_ends); }

/* NULL where there is no memory for it. */
static rt_thread *rt_this_thread(void) {
    if (RT_LIKELY(rt_own != NULL)) return rt_own;
    pthread_once(&rt_once, rt_make_key);
    rt_own = calloc(1, sizeof *rt_own);
    if (rt_own != NULL) pthread_setspecific(rt_key, rt_own);
    return rt_own;
}

static void rt_store(rt_text *text, const char *bytes, size_t length) {
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, length);
        copy[length] = 0;
    }
    free(text->bytes);
    text->bytes = copy;
    text->length = copy == NULL ? 0 : length;
}

/* What a thread knows of a function's failures, by the name that ends after `length`; NULL for other functions. */
static rt_cause *rt_cause_of(rt_thread *own, const char *name, size_t length) {
    for (int k = 0; k < RT_MAKERS && own != NULL; k++)
        if (strlen(rt_makers[k]) == length && !memcmp(rt_makers[k], name, length)) return &own->causes[k];
    return NULL;
}
/* Keep a message, "function: cause", if it says why an object is a null pointer. */
static void rt_keep_cause(rt_thread *own, const char *bytes, size_t length) {
    const char *colon = RT_LIKELY(strncmp(bytes, "aclCreate", 9)) ? NULL : memchr(bytes, ':', length);
    rt_cause *cause = colon == NULL ? NULL : rt_cause_of(own, bytes, (size_t)(colon - bytes));
    if (cause == NULL || colon + 2 >= bytes + length) return;
    length -= (size_t)(colon + 2 - bytes);
    if (cause->first.bytes == NULL) rt_store(&cause->first, colon + 2, length);
    rt_store(&cause->latest, colon + 2, length);
}

static void rt_set_message(const char *bytes, size_t length) {
    rt_thread *own = rt_this_thread();
    if (own != NULL) rt_store(&own->message, bytes, length);
}

/* Statuses of operators, 161... and 561..., are not the runtime's. */
static int rt_is_of_runtime(int status) {
    return status / 1000 != 161 && status / 1000 != 561;
}

static int rt_note_failure(int status, const char *bytes, size_t length) {
    rt_thread *own = rt_this_thread();
    if (own == NULL) return status;
    rt_store(&own->message, bytes, length);
    rt_store(&own->failure, bytes, length);
    rt_keep_cause(own, bytes, length);
    own->status = status;
    if (rt_is_of_runtime(status)) own->last_error = status;
    return status;
}

/* Set the thread's message and give the status, so that a function can end with `return rt_fail(...)`. */
__attribute__((format(printf, 2, 3)))
static int rt_fail(int status, const char *format, ...) {
    char text[512], *longer = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof text && length < RT_LONGEST_MESSAGE && (longer = malloc((size_t)length + 1)) != NULL) {
        va_start(arguments, format);
        vsnprintf(longer, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    const char *made = longer != NULL ? longer : text;
    rt_note_failure(status, made, strlen(made));
    free(longer);
    return status;
}

static const char *rt_take_message(void) {
    rt_thread *own = rt_own;
    if (own == NULL) return NULL;
    free(own->told);
    own->told = own->message.bytes;
    own->message.bytes = NULL;
    return own->told;
}

static int rt_last_error(int clear) {
    rt_thread *own = rt_own;
    int status = own == NULL ? RT_SUCCESS : own->last_error;
    if (own != NULL && clear) own->last_error = RT_SUCCESS;
    return status;
}

/* --- The process ------------------------------------------------------------------------------ */

/* What keeps calls from being served: bits, which are set once. */
enum { RT_FORKED = 1, RT_EXITING = 2 };
static int rt_state;
static pthread_mutex_t rt_fork_lock = PTHREAD_MUTEX_INITIALIZER; /* what must not be under way while a child is made */
static int rt_python_ended; /* no thread may ask for the interpreter any more */

static int rt_refuse(const char *function) {
    if (__atomic_load_n(&rt_state, __ATOMIC_RELAXED) & RT_EXITING)
        return rt_fail(RT_UNINITIALIZE, "%s: the process is ending, the runtime has ended", function);
    return rt_fail(
        RT_UNINITIALIZE, "%s: this process was forked after its parent had begun to use the runtime, whose threads "
        "it has not: fork before the first call, or start another program", function);
}

/* RT_SUCCESS, or why a call of a C program cannot be served. */
static inline int rt_closed(const char *function) {
    return RT_LIKELY(__atomic_load_n(&rt_state, __ATOMIC_RELAXED) == 0) ? RT_SUCCESS : rt_refuse(function);
}

static int64_t rt_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- Devices ----------------------------------------------------------------------------------- */

/* All are this machine's CPU and have its memory; each has streams and contexts of its own. */
enum { RT_MOST_DEVICES = 64 };
static int rt_counted_devices; /* 0: not read yet; below: the setting makes no sense */
static __thread int rt_device; /* which one the thread has chosen */

/* How many there are, as ACLNN_NPU_DEVICES says; -1 where it makes no sense. */
static int rt_device_count(void) {
    int count = __atomic_load_n(&rt_counted_devices, __ATOMIC_RELAXED);
    if (RT_LIKELY(count)) return count;
    const char *text = getenv("ACLNN_NPU_DEVICES");
    char *end = NULL;
    long wanted = text == NULL || *text == 0 ? 1 : strtol(text, &end, 10);
    count = (end != NULL && *end) || wanted < 1 || wanted > RT_MOST_DEVICES ? -1 : (int)wanted;
    __atomic_store_n(&rt_counted_devices, count, __ATOMIC_RELAXED);
    return count;
}

/* RT_SUCCESS for the number of a device. */
static int rt_bad_device(const char *function, int64_t device) {
    int count = rt_device_count();
    if (device >= 0 && device < count) return RT_SUCCESS;
    if (count < 1)
        return rt_fail(
            RT_INVALID_DEVICEID, "%s: ACLNN_NPU_DEVICES is '%s', must be an integer from 1 to %d", function,
            getenv("ACLNN_NPU_DEVICES"), RT_MOST_DEVICES);
    if (count == 1)
        return rt_fail(
            RT_INVALID_DEVICEID, "%s: deviceId is %lld, this machine has one device, 0", function, (long long)device);
    return rt_fail(
        RT_INVALID_DEVICEID, "%s: deviceId is %lld, must be from 0 to %d, as ACLNN_NPU_DEVICES is %d", function,
        (long long)device, count - 1, count);
}

/* --- Threads that hold the interpreter's lock -------------------------------------------------- */

/* Whether this thread does, as calls from Python do: they let go of it while they wait, and hear signals. */
static __thread int rt_holds_lock;
static void *(*rt_unlock)(void);
static int (*rt_relock)(void *); /* not 0 where a signal's handler has raised, which ends the call */

enum { RT_SLICE = 20000000 /* nanoseconds after which a wait looks whether signals have come */ };

/* Wait for something until a time of the clock, below 0 for ever; whether it came, or -1 for an end of the call. */
__attribute__((noinline))
static int rt_wait_for(int (*wait)(void *object, int64_t until), void *object, int64_t until) {
    if (RT_LIKELY(!rt_holds_lock)) return wait(object, until);
    for (int came = 0, ends = 0;;) {
        int64_t soon = rt_clock() + RT_SLICE;
        void *kept = rt_unlock();
        rt_holds_lock = 0; /* a handler of signals may call what is in C */
        came = wait(object, until < 0 || soon < until ? soon : until);
        ends = rt_relock(kept);
        rt_holds_lock = 1;
        if (ends) return -1;
        if (came || (until >= 0 && rt_clock() >= until)) return came;
    }
}

static int rt_numbers; /* of streams, events and models */
static int rt_next_number(void) { return __atomic_add_fetch(&rt_numbers, 1, __ATOMIC_RELAXED); }

#endif
