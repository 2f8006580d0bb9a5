/* What kernels hand to loops by lanes, and get back. */
#ifndef ACLNN_SIMD_LOOP_ARGS_H
#define ACLNN_SIMD_LOOP_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "simd/params.h"
#include "simd.h"

#ifndef LANES
enum { LANES = 16 };
#endif

/* What elements are, in memory. */
typedef enum { F32, F16, BF16 } elem_type;
enum { EXCEPTIONAL = 1, HARD_TO_ROUND = 2, INTERLEAVED = 4, STAGED = 8, OUT_OF_DOMAIN = 16, HAS_ZEROS = 32 };
enum { PREFETCH_A = 1, PREFETCH_B = 2, PREFETCH_OUT = 4, PREFETCH_FAR = 8 };

typedef struct {
    const char *a, *b; /* the same where there is one input */
    char *out;
    ptrdiff_t n;
    const params_t *params;
    hints_t *hints; /* of one call of a kernel */
    uint16_t *hard; /* a bit for each lane, a number for each register */
    int stream; /* past the cache */
    char *staging; /* room for halves that are streamed only when their doubts are settled; NULL: none */
    char *staged_target; /* where those belong that are there already; NULL: none are */
    int prefetch; /* ahead of reads: bits of PREFETCH_... */
    elem_type stored; /* results, once rounded: as what they are; halves as floats or floats as halves */
} loop_args;

/* What a loop finds: EXCEPTIONAL, DOUBTS or both; doubts are only set for halves. INTERLEAVED: elements took
 * turns in two registers, as long as they filled both, and so do doubts. STAGED: results are not in `out` but
 * in `staging`, and those that were there have gone to their own target, as far as whole lines took their
 * place. */
/* Doubts of four registers are looked at together: lists which fours have any, returns how many. They are
 * read and listed by eights; what is read beyond the last must be 0. */
enum { MASKS_TOGETHER = 32 };
static inline int list_hard(const uint16_t *hard, int fours, int *listed) {
    int count = 0;
    for (int k = 0; k < fours; k += 8) count += list_nonzero_words(hard + 4 * k, k, listed + count);
    return count;
}

/* The number of the element that a bit of a four's doubts is about. */
static inline ptrdiff_t hard_element(const loop_args *s, int found, int four, int bit) {
    int lane = bit % 16, part = bit / 16;
    ptrdiff_t plain = (ptrdiff_t)(4 * four + part) * LANES + lane;
    ptrdiff_t pair = (ptrdiff_t)(4 * four + part / 2 * 2) * LANES;
    return found & INTERLEAVED && pair + 2 * LANES <= s->n ? pair + 2 * lane + part % 2 : plain;
}

#endif
