/* Which results by lanes have to be computed again: what loops look at while they run, all elements
 * together, and what tells a single one.
 */
#ifndef ACLNN_SIMD_TRACK_H
#define ACLNN_SIMD_TRACK_H

#include "half.h"
#include "simd.h"
#include "vector_math.h"

#define TINY 0x03800000u /* 2^-120: parts of a product below it may be less than the smallest float */

static inline int is_extreme(float r) {
    uint32_t size = bits_of_f32(r) & 0x7fffffffu;
    return (size >= 0x7f800000u) | (size - 1u < TINY - 1u);
}

#ifdef LANES

/* What a loop saw so far, lane by lane. */
typedef struct {
    vecf products;/* a sum of products of two: finite if all that was shown is, and not too large */
    vecf last;    /* what was shown last */
    vecf lowest;  /* how near it came to a root; or the lowest of what must not be negative */
    veci min_bits;/* the least magnitude that is not 0 */
    veci max_bits;/* the most of the bits of an argument; or of halves, without their signs */
    int nonzero;     /* known to the compiler: the loop is made for operands without zeros */
} track_t;

INLINED track_t track_init(int nonzero) {
    track_t track = {
        vf_set(0.0f), vf_set(0.0f), vf_set(1.0f), vi_set(0xffffffffu), vi_set(0u), nonzero,
    };
    return track;
}
/* Show what has to be finite; loops take account of what they were shown, two at a time. */
INLINED vecf track_result(track_t *track, vecf r) {
    track->last = r;
    return r;
}
INLINED void track_finite(track_t *track, vecf one, vecf other) {
    track->products = vf_fma(one, other, track->products);
}
/* Of r where `some`, because the operand it is made of is not 0. */
INLINED void track_magnitude(track_t *track, vecf r, mask_t some) {
    track->min_bits = track->nonzero ? vi_min_magnitude(track->min_bits, r) : vi_min_magnitude_where(track->min_bits, r, some);
}
/* x, to be added to what is a zero where not `some`, and must keep its sign then. */
INLINED vecf zero_safe_addend(const track_t *track, vecf x, mask_t some) {
    return track->nonzero ? x : vf_signed_addend(x, some);
}
/* Of halves: the most, without signs, and the least that is not 0. */
INLINED void track_half_max(track_t *track, veci r) {
    track->max_bits = vi16_max(track->max_bits, vi16_add(r, r));
}
INLINED void track_half_range(track_t *track, veci r) {
    veci twice = vi16_add(r, r);
    track->max_bits = vi16_max(track->max_bits, twice);
    track->min_bits = vi16_min(track->min_bits, vi16_add(twice, vi16_set(0xffffu)));
}
/* Where nothing must be negative. Zeros are not, whatever their sign; of a NaN and another number the
 * lesser one is the second. */
INLINED void track_lowest(track_t *track, vecf x) { track->lowest = vf_min(x, track->lowest); }
INLINED void track_argument(track_t *track, vecf x) {
    track->max_bits = vi_max(track->max_bits, vf_bits(x));
}
/* Two that looked in turns, so that neither waits for the other, become one. */
INLINED track_t track_merge(const track_t *a, const track_t *b) {
    track_t both = {
        vf_add(a->products, b->products), a->last, vf_min(a->lowest, b->lowest),
        vi_min(a->min_bits, b->min_bits), vi_max(a->max_bits, b->max_bits), a->nonzero,
    };
    return both;
}

/* What a formula's lanes were made for. */
typedef struct {
    float rel_error; /* of a half's relative error before it is rounded; 0: rounded to odd, or exact */
    uint32_t max_bits; /* the bits of the largest argument; 0: there is none */
    uint32_t root_gap; /* the bits of the distance to a root up to which too few digits are left; 0: none */
    int check_finite;/* it shows what has to be finite */
    int one_nan;   /* its NaNs have to be made one */
    int share_tracking;/* it needs so many registers that two of them share what they have seen */
    int check_negative;/* it shows what is negative outside of what it was made for */
    int nonzero;   /* it was made for operands without zeros; results of 0 count as such */
} domain_t;

static inline int is_range_exceptional(const track_t *track, domain_t domain) {
    mask_t endless = vf_is_nonzero(vf_sub(track->products, track->products));
    mask_t unusual = mask_or(endless, vi_le(track->min_bits, vi_set(TINY - 1u)));
    if (domain.max_bits != 0) unusual = mask_or(unusual, vi_le(vi_set(domain.max_bits + 1u), track->max_bits));
    if (domain.root_gap != 0) unusual = mask_or(unusual, vi_le(vf_bits(track->lowest), vi_set(domain.root_gap)));
    return mask_any(unusual);
}
static inline int has_negative(const track_t *track) {
    return mask_any(vf_is_positive(vf_sub(vf_set(0.0f), track->lowest)));
}
static inline int has_zero(const track_t *track) { return mask_any(vi_le(track->min_bits, vi_set(0u))); }
static inline int has_nan(const track_t *track, uint16_t infinity) {
    return vi16_any_ge(track->max_bits, (uint16_t)(2 * infinity + 1));
}

#endif

#endif
