/* What kernels hand to loops by lanes, and get back. */
#ifndef ACLNN_LANE_ABI_H
#define ACLNN_LANE_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "lanes.h"

#ifndef LANES
enum { LANES = 16 };
#endif

/* How elements lie in memory. */
typedef enum { SINGLE, HALF, BFLOAT } kind_t;
enum { SUSPECTS = 1, DOUBTS = 2, OUTSIDE = 4, ZEROS = 8 };
enum { PREFETCH_A = 1, PREFETCH_B = 2, PREFETCH_OUT = 4, PREFETCH_FAR = 8 };

typedef struct {
    const char *a, *b; /* the same where there is one input */
    char *out;
    ptrdiff_t n;
    const void *facts; /* a facts_t */
    uint16_t *doubts; /* a bit for each lane, a number for each register */
    int stream; /* past the cache */
    int prefetch; /* ahead of reads: bits of PREFETCH_... */
    kind_t stored; /* results, once rounded: as what they are; halves as floats or floats as halves */
} span_t;

/* What a loop finds: SUSPECTS, DOUBTS or both; doubts are only set for halves. OUTSIDE or ZEROS: an element
 * for which the loop was not made; those that may find one stay among the formulas. */
typedef int (*lane_loop)(const span_t *);

#endif
