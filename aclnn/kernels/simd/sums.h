/* Sums with a product over vectors, in all dtypes: of three elements, or of two and a number of the node.
 *
 * Sum and product are taken apart into what is rounded and what rounding takes, exactly. The float that the parts make is
 * the exact value rounded once, where both ends of the interval that it lies in round to it; other lanes are left open.
 */
#ifndef ACLNN_SIMD_SUMS_H
#define ACLNN_SIMD_SUMS_H

#include "simd/pair.h"

#ifdef LANES

enum { LANES_MASK = (1 << LANES) - 1 };

/* x + product + low; what is not exact of the low parts is less than 2^-46 of the product, or of the least floats where
 * `some` of it is not 0. For half precision, which is often just between two floats, it is near enough. */
INLINED vecf sum_with_parts(vecf x, vecf product, vecf low, mask_t some, int half, unsigned *open) {
    vecf sum = vf_add(x, product), taken = vf_sub(sum, x);
    vecf lost = vf_add(vf_sub(x, vf_sub(sum, taken)), vf_sub(product, taken));
    vecf rest = vf_add(lost, low), near = pair_rounded(pair_of(sum, rest), vf_is_nonzero(rest));
    vecf reach = vf_fma(vf_abs(product), vf_set(half ? 0x1p-20f : 0x1p-45f), vf_set(half ? 0x1p-110f : 0x1p-145f));
    reach = vf_select(some, reach, vf_set(0.0f));
    if (half) {
        *open = LANES_MASK & ~lanes_of(vf_is_at_most(reach, vf_abs(near)));
        return near;
    }
    reach = vf_fma(vf_abs(rest), vf_set(0x1p-23f), reach); /* the parts that remain are rounded once themselves */
    vecf least = vf_add(sum, vf_sub(rest, reach)), most = vf_add(sum, vf_add(rest, reach));
    *open = lanes_of(vf_is_nonzero(vf_sub(least, most)));
    return near;
}

/* x + a b: rounded once as it is. */
INLINED vecf addcmul_plain(const double *p, vecf x, vecf a, vecf b, int half, unsigned *open) {
    *open = 0;
    return vf_canonical(vf_fma(a, b, x));
}
INLINED vecf addcmul_scaled(const double *p, vecf x, vecf a, vecf b, int half, unsigned *open) {
    vecf value = vf_set((float)p[0]), scaled = vf_mul(value, a), scaled_low = vf_fms(value, a, scaled);
    vecf product = vf_mul(scaled, b), low = vf_fma(scaled_low, b, vf_fms(scaled, b, product));
    mask_t some = mask_and(vf_is_nonzero(a), vf_is_nonzero(b));
    vecf found = sum_with_parts(x, product, low, some, half, open);
    /* So small that what rounding takes of it may be lost. */
    *open |= lanes_of(mask_and(some, vf_is_at_most(vf_abs(scaled), vf_set(0x1p-100f))));
    return found;
}
/* a + weight (b - a): of halves the difference is nearly always exact, and all is rounded once. */
INLINED vecf between(vecf a, vecf b, vecf weight, int half, unsigned *open) {
    vecf apart = vf_sub(b, a), taken = vf_sub(apart, b);
    vecf apart_low = vf_sub(vf_sub(b, vf_sub(apart, taken)), vf_add(a, taken));
    if (half) {
        *open = lanes_of(vf_is_nonzero(apart_low));
        return vf_canonical(vf_fma(weight, apart, a));
    }
    vecf product = vf_mul(weight, apart), low = vf_fma(weight, apart_low, vf_fms(weight, apart, product));
    return sum_with_parts(a, product, low, mask_and(vf_is_nonzero(apart), vf_is_nonzero(weight)), half, open);
}
INLINED vecf lerp_rounded(const double *p, vecf a, vecf b, vecf weight, int half, unsigned *open) {
    return between(a, b, weight, half, open);
}
INLINED vecf lerps_rounded(const double *p, vecf a, vecf b, vecf unused, int half, unsigned *open) {
    return between(a, b, vf_set((float)p[0]), half, open);
}

#endif

#endif
