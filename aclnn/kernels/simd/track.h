/* Exceptional cases: what loops over vectors track to tell whether there are any, and what tells whether a
 * single result is one.
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

/* What a loop has tracked so far, lane by lane. */
typedef struct {
    vecf products; /* a sum of products of two results: finite if all of them are, and not too large */
    vecf last;     /* the last result that has to be finite */
    vecf lowest;   /* the least distance from a root; or the least of what must not be negative */
    veci min_bits; /* the least magnitude that is not 0 */
    veci max_bits; /* the largest bits of an argument; of half precision, of a magnitude */
    int nonzero;   /* known to the compiler: the loop is made for operands without zeros */
} track_t;

INLINED track_t track_init(int nonzero) {
    track_t track = {
        vf_set(0.0f), vf_set(0.0f), vf_set(1.0f), vi_set(0xffffffffu), vi_set(0u), nonzero,
    };
    return track;
}
/* A result that has to be finite; loops track two of them at a time. */
INLINED vecf track_result(track_t *track, vecf r) {
    track->last = r;
    return r;
}
INLINED void track_finite(track_t *track, vecf one, vecf other) {
    track->products = vf_fma(one, other, track->products);
}
/* The magnitude of r where `some`, because its operand is not 0. */
INLINED void track_magnitude(track_t *track, vecf r, mask_t some) {
    veci least = track->min_bits;
    track->min_bits = track->nonzero ? vi_min_magnitude(least, r) : vi_min_magnitude_where(least, r, some);
}
/* x, which is added to a zero where not `some`; that zero must keep its sign. */
INLINED vecf zero_safe_addend(const track_t *track, vecf x, mask_t some) {
    return track->nonzero ? x : vf_signed_addend(x, some);
}
/* Of half precision: the largest magnitude, and the least that is not 0. */
INLINED void track_half_max(track_t *track, veci r) {
    track->max_bits = vi16_max(track->max_bits, vi16_add(r, r));
}
INLINED void track_half_range(track_t *track, veci r) {
    veci twice = vi16_add(r, r);
    track->max_bits = vi16_max(track->max_bits, twice);
    track->min_bits = vi16_min(track->min_bits, vi16_add(twice, vi16_set(0xffffu)));
}
/* Of what must not be negative. Zeros are not, whatever their sign; of a NaN and a number the lesser one is
 * the number. */
INLINED void track_lowest(track_t *track, vecf x) { track->lowest = vf_min(x, track->lowest); }
INLINED void track_argument(track_t *track, vecf x) {
    track->max_bits = vi_max(track->max_bits, vf_bits(x));
}
/* Two that tracked in turns, so that neither waited for the other. */
INLINED track_t track_merge(const track_t *a, const track_t *b) {
    track_t both = {
        vf_add(a->products, b->products), a->last, vf_min(a->lowest, b->lowest),
        vi_min(a->min_bits, b->min_bits), vi_max(a->max_bits, b->max_bits), a->nonzero,
    };
    return both;
}

/* The domain that a formula over vectors is made for, and what its loops have to track and test. */
typedef struct {
    float rel_error;    /* bound of a result's relative error before it is rounded to half precision; 0: it is
                           exact, or rounded to odd */
    uint32_t max_bits;  /* the bits of the largest argument; 0: any */
    uint32_t root_gap;  /* the bits of the distance from a root at which too few digits are left; 0: no root */
    int check_finite;   /* it tracks results that have to be finite */
    int one_nan;        /* its NaNs have to be made one */
    int share_tracking; /* it needs so many registers that two vectors track together */
    int check_negative; /* it tracks what is negative outside of the domain */
    int nonzero;        /* it is made for operands without zeros; results of 0 count as such */
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
