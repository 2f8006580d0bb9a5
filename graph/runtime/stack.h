/* How much of its stack a thread has left. Kernels keep blocks there: a thread that was started with a
 * small stack would end the process, where it can be told instead.
 *
 * The bounds are asked for once in each thread. After that the question is one comparison of addresses.
 */
#ifndef ACLNN_STACK_H
#define ACLNN_STACK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__)
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif

typedef struct {
    uintptr_t enough;    /* from this address on a run may begin; all are below it before the first */
    uintptr_t low, high; /* 0 and 0 where nobody knows */
    int measured;
} stack_bounds;

static __thread stack_bounds stack_of_thread = { .enough = UINTPTR_MAX };

static inline uintptr_t stack_here(void) { return (uintptr_t)__builtin_frame_address(0); }

static inline void stack_measure(stack_bounds *bounds) {
#if defined(__linux__)
    pthread_attr_t attributes;
    void *low;
    size_t size, guard;
#if !defined(__GLIBC__)
    /* musl says of a process's first thread only how far its stack has grown by now. */
    if (getpid() == (pid_t)syscall(SYS_gettid)) return;
#endif
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    if (!pthread_attr_getstack(&attributes, &low, &size) &&
        !pthread_attr_getguardsize(&attributes, &guard) && guard < size) {
        bounds->low = (uintptr_t)low + guard; /* the size may include the guard */
        bounds->high = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
#elif defined(__APPLE__)
    bounds->high = (uintptr_t)pthread_get_stackaddr_np(pthread_self());
    bounds->low = bounds->high - pthread_get_stacksize_np(pthread_self());
#endif
}

/* Bytes left below the caller; SIZE_MAX where nobody knows, as on the stack of a coroutine. */
static inline size_t stack_left(void) {
    stack_bounds *bounds = &stack_of_thread;
    uintptr_t here = stack_here();
    if (!bounds->measured) {
        bounds->measured = 1;
        stack_measure(bounds);
    }
    return bounds->low <= here && here < bounds->high ? here - bounds->low : SIZE_MAX;
}

static inline size_t stack_size(void) { return stack_of_thread.high - stack_of_thread.low; }

static inline int stack_short_of(size_t needed) {
    size_t left = stack_left();
    stack_of_thread.enough = stack_of_thread.high ? stack_of_thread.low + needed : 0;
    return left < needed;
}

/* Whether less than this is left, always the same number. */
static inline int stack_is_short(size_t needed) {
    return __builtin_expect(stack_here() < stack_of_thread.enough, 0) && stack_short_of(needed);
}

#endif
