/* What kernels hand to loops by lanes, and get back. */
#ifndef ACLNN_LANE_ABI_H
#define ACLNN_LANE_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "lanes.h"

#if LANES != 16
/* What `lanes.h` has for registers of sixteen. */
static inline int list_words(const void *words, int first, int *listed) {
    int count = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t word;
        memcpy(&word, (const char *)words + 8 * k, 8);
        listed[count] = first + k;
        count += word != 0;
    }
    return count;
}
#endif

#ifndef LANES
enum { LANES = 16 };
#endif

/* How elements lie in memory. */
typedef enum { SINGLE, HALF, BFLOAT } kind_t;
enum { SUSPECTS = 1, DOUBTS = 2, TURNS = 4, OUTSIDE = 8, ZEROS = 16, WAITING = 32 };
enum { PREFETCH_A = 1, PREFETCH_B = 2, PREFETCH_OUT = 4, PREFETCH_FAR = 8 };

typedef struct {
    const char *a, *b; /* the same where there is one input */
    char *out;
    ptrdiff_t n;
    const void *facts; /* a facts_t */
    uint16_t *doubts; /* a bit for each lane, a number for each register */
    int stream; /* past the cache */
    char *waiting; /* room for halves that are streamed only when their doubts are settled; NULL: none */
    char *home; /* where those belong that wait there already; NULL: none do */
    int prefetch; /* ahead of reads: bits of PREFETCH_... */
    kind_t stored; /* results, once rounded: as what they are; halves as floats or floats as halves */
} span_t;

/* What a loop finds: SUSPECTS, DOUBTS or both; doubts are only set for halves. TURNS: elements took turns
 * in two registers, as long as they filled both, and so do doubts. OUTSIDE or ZEROS: an element for which
 * the loop was not made; those that may find one stay among the formulas. WAITING: results are not in `out`
 * but in `waiting`, and those that were there have gone home, as far as whole lines took their place. */
typedef int (*lane_loop)(const span_t *);

/* Doubts of four registers are looked at together: lists which fours have any, returns how many. They are
 * read and listed by eights; what is read beyond the last must be 0. */
enum { DOUBTS_TOGETHER = 32 };
static inline int list_doubts(const uint16_t *doubts, int fours, int *listed) {
    int count = 0;
    for (int k = 0; k < fours; k += 8) count += list_words(doubts + 4 * k, k, listed + count);
    return count;
}

/* The number of the element that a bit of a four's doubts is about. */
static inline ptrdiff_t doubted(const span_t *s, int found, int four, int bit) {
    int lane = bit % 16, part = bit / 16;
    ptrdiff_t plain = (ptrdiff_t)(4 * four + part) * LANES + lane;
    ptrdiff_t pair = (ptrdiff_t)(4 * four + part / 2 * 2) * LANES;
    return found & TURNS && pair + 2 * LANES <= s->n ? pair + 2 * lane + part % 2 : plain;
}

#endif
