/* What a loop over vectors is called with, and what it reports. */
#ifndef ACLNN_SIMD_LOOP_ARGS_H
#define ACLNN_SIMD_LOOP_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "simd/params.h"
#include "simd.h"

#ifndef LANES
enum { LANES = 16 };
#endif

/* Of elements in memory. */
typedef enum { F32, F16, BF16 } elem_type;

/* What a loop reports. The last two make a formula's loop run another one, and tiles do not see them. */
enum {
    EXCEPTIONAL = 1,   /* some result is exceptional: `classify` tells which */
    HARD_TO_ROUND = 2, /* some result of half precision failed the rounding test, as `hard` tells */
    INTERLEAVED = 4,   /* while two vectors were full, even elements were in one, odd ones in the other */
    STAGED = 8,        /* results are in `staging`; as far as whole lines took their place, those that were
                          there have gone to `staged_target` */
    OUT_OF_DOMAIN = 16, /* some element is outside of the domain that the loop was made for */
    HAS_ZEROS = 32      /* the loop was made for operands without zeros */
};
enum { PREFETCH_A = 1, PREFETCH_B = 2, PREFETCH_OUT = 4, PREFETCH_FAR = 8, PREFETCH_C = 16 };

typedef struct {
    const char *a, *b, *c; /* the last ones are the same where there are fewer inputs */
    char *out;
    ptrdiff_t n;
    const params_t *params;
    hints_t *hints; /* of one call of a kernel */
    uint16_t *hard; /* a mask for each vector of results: the lanes that failed the rounding test */
    int stream; /* bypass the cache with non-temporal stores */
    char *staging; /* where results that bypass the cache wait for being recomputed; NULL: they do not */
    char *staged_target; /* where those belong that are there already; NULL: none are */
    int prefetch; /* ahead of reads: bits of PREFETCH_... */
} loop_args;

/* Masks are read four at a time: lists the fours that are not zero, and returns how many there are. Fours are
 * read by eights; what is read behind the last must be 0. */
enum { MASKS_TOGETHER = 32 };
static inline int list_hard(const uint16_t *hard, int fours, int *listed) {
    int count = 0;
    for (int k = 0; k < fours; k += 8) count += list_nonzero_words(hard + 4 * k, k, listed + count);
    return count;
}

/* The element that a bit of four masks stands for. */
static inline ptrdiff_t hard_element(const loop_args *s, int found, int four, int bit) {
    int lane = bit % 16, part = bit / 16;
    ptrdiff_t plain = (ptrdiff_t)(4 * four + part) * LANES + lane;
    ptrdiff_t pair = (ptrdiff_t)(4 * four + part / 2 * 2) * LANES;
    return found & INTERLEAVED && pair + 2 * LANES <= s->n ? pair + 2 * lane + part % 2 : plain;
}

#endif
