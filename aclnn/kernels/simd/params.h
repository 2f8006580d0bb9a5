/* Prepared parameters: what a fast path makes of a node's numbers, once a run. */
#ifndef ACLNN_SIMD_PARAMS_H
#define ACLNN_SIMD_PARAMS_H

#include "kernel_abi.h"

enum {
    PARAMS_NUMBERS = 4, /* of a node, at most, whose formula prepares parameters */
    PARAMS_BYTES = 512
};

/* `p`: the numbers; those that the node lacks are 0. `own`: what the function of a formula that prepares
 * parameters makes of them, a struct of the formula's header. Immutable while the run lasts: all threads
 * share it. */
typedef struct {
    double p[PARAMS_NUMBERS];
    _Alignas(64) char own[PARAMS_BYTES];
} params_t;

#define OWN_PARAMS(type, params) ((type *)(params)->own)
#define PARAMS_FIT(type) \
    _Static_assert(sizeof(type) <= sizeof(((params_t *)0)->own), "there is room for these parameters")

/* Whether an operand has zeros, as far as is known from the blocks before. */
typedef enum { ZEROS_UNKNOWN, NO_ZEROS, SOME_ZEROS } zeros_t;

/* What is known from the blocks of one call of a kernel: it decides how fast the next ones are computed,
 * never their results. */
typedef struct {
    zeros_t zeros;
    int outside; /* some element was outside of a formula's domain */
} hints_t;

#endif
