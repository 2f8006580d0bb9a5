/* What formulas by lanes make of a call's scalars, once for a whole tile. */
#ifndef ACLNN_LANE_FACTS_H
#define ACLNN_LANE_FACTS_H

#include "kernel_abi.h"

/* Whether an operand has zeros, as far as blocks before have told. */
typedef enum { UNKNOWN, NONE, SOME } zeros_t;

/* `p`: the scalars. `own`: what the function of a formula that prepares facts makes of them, a struct of
 * the formula's header. */
typedef struct {
    double p[TILE_SCALARS];
    zeros_t zeros;
    _Alignas(64) char own[512];
} facts_t;

#define OWN_FACTS(type, facts) ((type *)(facts)->own)
#define FACTS_FIT(type) \
    _Static_assert(sizeof(type) <= sizeof(((facts_t *)0)->own), "there is room for these facts")

#endif
