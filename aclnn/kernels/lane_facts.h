/* What formulas by lanes make of a call's scalars, once for a whole tile. */
#ifndef ACLNN_LANE_FACTS_H
#define ACLNN_LANE_FACTS_H

#include <stdint.h>

#include "tile_abi.h"

typedef struct {
    float powers[16], shifts[16], near_powers[32], rate, scale;
    int extreme;
} elu_t;
typedef struct { float rate, scale, factor, factor_low, last; int extreme; } growth_t;
typedef struct {
    float low, high, first, last, outside;
    int open, whole, symmetric, extreme, crossed;
} logit_t;
typedef struct { uint32_t low, reach; uint16_t half_low, half_reach, bfloat_low, bfloat_reach; } keep_t;
typedef struct { float slope, near; int at_once; } scale_t;

/* What lines need is little, so that it can be copied. */
typedef union { keep_t keep; scale_t scale; } line_facts_t;

/* Whether an operand has zeros, as far as blocks before have told. */
typedef enum { UNKNOWN, NONE, SOME } zeros_t;

typedef struct {
    double p[TILE_SCALARS];
    zeros_t zeros;
    union { elu_t elu; growth_t growth; logit_t logit; line_facts_t line; };
} facts_t;

#define FACTS(s) ((const facts_t *)(s)->facts)

#endif
