/* Which results by lanes have to be computed again: what loops look at while they run, all elements
 * together, and what tells a single one.
 */
#ifndef ACLNN_LANE_SUSPECTS_H
#define ACLNN_LANE_SUSPECTS_H

#include "half.h"
#include "lanes.h"
#include "vector_math.h"

#define TINY 0x03800000u /* 2^-120: parts of a product below it may be less than the smallest float */

static inline int is_extreme(float r) {
    uint32_t size = bits_of_f32(r) & 0x7fffffffu;
    return (size >= 0x7f800000u) | (size - 1u < TINY - 1u);
}

#ifdef LANES

/* What a loop saw so far, lane by lane. */
typedef struct {
    lanes_t finite;  /* a sum of products of two: finite if all that was shown is, and not too large */
    lanes_t shown;   /* what was shown last */
    lanes_t nearest; /* how near it came to a root; or the lowest of what must not be negative */
    ints_t least;    /* the least magnitude that is not 0 */
    ints_t most;     /* the most of the bits of an argument; or of halves, without their signs */
    int nonzero;     /* known to the compiler: the loop is made for operands without zeros */
} seen_t;

INLINED seen_t nothing_seen(int nonzero) {
    seen_t seen = {
        lanes_of(0.0f), lanes_of(0.0f), lanes_of(1.0f), ints_of(0xffffffffu), ints_of(0u), nonzero,
    };
    return seen;
}
/* Show what has to be finite; loops take account of what they were shown, two at a time. */
INLINED lanes_t show(seen_t *seen, lanes_t r) {
    seen->shown = r;
    return r;
}
INLINED void see_finite(seen_t *seen, lanes_t one, lanes_t other) {
    seen->finite = fma_of(one, other, seen->finite);
}
/* Of r where `some`, because the operand it is made of is not 0. */
INLINED void see_size(seen_t *seen, lanes_t r, choice_t some) {
    seen->least = seen->nonzero ? lesser_size(seen->least, r) : least_size(seen->least, r, some);
}
/* x, to be added to what is a zero where not `some`, and must keep its sign then. */
INLINED lanes_t added_to(const seen_t *seen, lanes_t x, choice_t some) {
    return seen->nonzero ? x : as_addend(x, some);
}
/* Of halves: the most, without signs, and the least that is not 0. */
INLINED void see_short_most(seen_t *seen, ints_t r) {
    seen->most = short_most(seen->most, short_plus(r, r));
}
INLINED void see_short_sizes(seen_t *seen, ints_t r) {
    ints_t twice = short_plus(r, r);
    seen->most = short_most(seen->most, twice);
    seen->least = short_least(seen->least, short_plus(twice, short_of(0xffffu)));
}
/* Where nothing must be negative. Zeros are not, whatever their sign; of a NaN and another number the
 * lesser one is the second. */
INLINED void see_lowest(seen_t *seen, lanes_t x) { seen->nearest = lesser(x, seen->nearest); }
INLINED void see_argument(seen_t *seen, lanes_t x) {
    seen->most = int_most(seen->most, bits_of(x));
}
/* Two that looked in turns, so that neither waits for the other, become one. */
INLINED seen_t seen_by_both(const seen_t *a, const seen_t *b) {
    seen_t both = {
        plus(a->finite, b->finite), a->shown, lesser(a->nearest, b->nearest),
        int_least(a->least, b->least), int_most(a->most, b->most), a->nonzero,
    };
    return both;
}

/* What a formula's lanes were made for. */
typedef struct {
    float bound;   /* of a half's relative error before it is rounded; 0: rounded to odd, or exact */
    uint32_t most; /* the bits of the largest argument; 0: there is none */
    uint32_t near; /* the bits of the distance to a root up to which too few digits are left; 0: none */
    int finite;    /* it shows what has to be finite */
    int nan;       /* its NaNs have to be made one */
    int as_one;    /* it needs so many registers that two of them share what they have seen */
    int outside;   /* it shows what is negative outside of what it was made for */
    int nonzero;   /* it was made for operands without zeros; results of 0 count as such */
} limits_t;

static inline int unusual_seen(const seen_t *seen, limits_t limits) {
    choice_t endless = not_zero(minus(seen->finite, seen->finite));
    choice_t unusual = either(endless, int_at_most(seen->least, ints_of(TINY - 1u)));
    if (limits.most != 0) unusual = either(unusual, int_at_most(ints_of(limits.most + 1u), seen->most));
    if (limits.near != 0) unusual = either(unusual, int_at_most(bits_of(seen->nearest), ints_of(limits.near)));
    return any(unusual);
}
static inline int negative_seen(const seen_t *seen) {
    return any(above_zero(minus(lanes_of(0.0f), seen->nearest)));
}
static inline int zero_seen(const seen_t *seen) { return any(int_at_most(seen->least, ints_of(0u))); }
static inline int nan_seen(const seen_t *seen, uint16_t infinity) {
    return any_short_at_least(seen->most, (uint16_t)(2 * infinity + 1));
}

/* Mark the elements that lanes leave to the double form. */
#define MARK(name) \
    static void name##_mark(const unaligned_float *a, const unaligned_float *b, const unaligned_float *r, \
                            uint16_t *suspect, ptrdiff_t n, const double *p) { \
        for (ptrdiff_t i = 0; i < n; i++) suspect[i] |= name##_suspect(a[i], b[i], r[i], p); \
    }

#endif

#endif
