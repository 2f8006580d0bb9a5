/* The error function over vectors: a polynomial around each of 16 centers, which registers look up. */
#ifndef ACLNN_SIMD_ERF_H
#define ACLNN_SIMD_ERF_H

#include "simd/pair.h"

#ifdef LANES

/* From here on the nearest float is 1. */
#define ERF_LAST 3.96f
#define ERF_STEP 0x1.08p-2f
#define ERF_MAGIC 0x1.8p23f

/* |x| = center + z; `number` of the center in its last four bits. */
typedef struct { vecf z; veci number; } erf_place_t;
INLINED erf_place_t erf_place(vecf x) {
    const vecf magic = vf_set(ERF_MAGIC);
    vecf size = vf_at_most(vf_abs(x), ERF_LAST);
    vecf shifted = vf_fma(size, vf_set(1 / ERF_STEP), magic);
    return (erf_place_t){ vf_fnma(vf_sub(shifted, magic), vf_set(ERF_STEP), size), vf_bits(shifted) };
}
/* The series from z^2 on, over z^2. */
INLINED vecf erf_rest(erf_place_t p) {
    vecf rest = vf_lookup16(ERF_SHAPES[8], p.number);
    for (int k = 7; k >= 4; k--) rest = vf_fma(p.z, rest, vf_lookup16(ERF_SHAPES[k], p.number));
    return rest;
}
/* Error 2^-23 and a half more of a unit in the last place. */
INLINED vecf vf_erf(vecf x) {
    erf_place_t p = erf_place(x);
    vecf slope = vf_fma(p.z, erf_rest(p), vf_lookup16(ERF_SHAPES[2], p.number));
    return vf_signed_as(vf_fma(p.z, slope, vf_lookup16(ERF_SHAPES[0], p.number)), x);
}
/* Error 2^-28, of an operand. */
INLINED pair_t pair_erf(pair_t x) {
    erf_place_t p = erf_place(x.high);
    vecf slope = vf_lookup16(ERF_SHAPES[2], p.number), center = vf_lookup16(ERF_SHAPES[0], p.number);
    vecf high = vf_fma(p.z, slope, center), low = vf_fma(p.z, slope, vf_sub(center, high));
    low = vf_add(low, vf_lookup16(ERF_SHAPES[1], p.number));
    vecf rest = vf_fma(p.z, erf_rest(p), vf_lookup16(ERF_SHAPES[3], p.number));
    return pair_signed_as(pair_of(high, vf_fma(p.z, rest, low)), x);
}

#else
vecf vf_erf(vecf);
pair_t pair_erf(pair_t);
#endif

#endif
