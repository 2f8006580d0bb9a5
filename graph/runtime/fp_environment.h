/* The floating-point environment of runs: numbers less than normal ones are kept, results are rounded to the
 * nearest, and no exception traps. Libraries leave other settings behind in a process, which would change results.
 */
#ifndef ACLNN_FP_ENVIRONMENT_H
#define ACLNN_FP_ENVIRONMENT_H

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
typedef unsigned fp_environment;
enum { FP_SETTINGS = 0xffc0, FP_DEFAULT = 0x1f80 }; /* the other bits note exceptions */
static inline fp_environment fp_current(void) { return _mm_getcsr(); }
static inline void fp_set(fp_environment settings) { _mm_setcsr(settings); }
#elif defined(__aarch64__)
typedef uint64_t fp_environment;
enum { FP_SETTINGS = 0x07c89f00, FP_DEFAULT = 0 }; /* AHP, DN, FZ, RMode, FZ16, traps */
static inline fp_environment fp_current(void) {
    uint64_t found;
    __asm__ volatile("mrs %0, fpcr" : "=r"(found));
    return found;
}
static inline void fp_set(fp_environment settings) { __asm__ volatile("msr fpcr, %0" : : "r"(settings)); }
#else
typedef unsigned fp_environment;
enum { FP_SETTINGS = 0, FP_DEFAULT = 0 };
static inline fp_environment fp_current(void) { return 0; }
static inline void fp_set(fp_environment settings) {}
#endif

/* Set the default environment; returns what `fp_leave` restores. Reading it costs a nanosecond, and setting it
 * ten, which hardly any process needs. */
static inline fp_environment fp_enter(void) {
    fp_environment found = fp_current();
    if ((found & FP_SETTINGS) != FP_DEFAULT) fp_set((found & ~(fp_environment)FP_SETTINGS) | FP_DEFAULT);
    return found;
}
static inline void fp_leave(fp_environment found) {
    if ((found & FP_SETTINGS) != FP_DEFAULT) fp_set(found);
}

/* A number rounded to float32 there. */
__attribute__((noinline, unused)) static double fp_rounded(double number) {
    fp_environment found = fp_enter();
    volatile double given = number; /* or it would be converted before that */
    volatile float rounded = (float)given;
    volatile double made = rounded;
    fp_leave(found);
    return made;
}
__attribute__((noinline, unused)) static double fp_rounded_whole(int64_t number) {
    fp_environment found = fp_enter();
    volatile int64_t given = number;
    volatile float rounded = (float)given;
    volatile double made = rounded;
    fp_leave(found);
    return made;
}

#endif
