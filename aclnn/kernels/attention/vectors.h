/* What attention asks of vectors: the operations of `simd.h`, or plain ones where an instruction set has none. */
#ifndef ACLNN_ATTENTION_VECTORS_H
#define ACLNN_ATTENTION_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "double_math.h"
#include "half.h"
#include "simd/exp.h"

#ifndef LANES /* compilers know such vectors everywhere */
#define LANES 4
typedef float vecf __attribute__((vector_size(LANES * 4), aligned(4)));
INLINED vecf vf_set(float x) { return (vecf) { x, x, x, x }; }
INLINED vecf vf_load(const void *p) { vecf x; memcpy(&x, p, sizeof x); return x; }
INLINED void vf_store(void *p, vecf x) { memcpy(p, &x, sizeof x); }
INLINED vecf vf_add(vecf a, vecf b) { return a + b; }
INLINED vecf vf_sub(vecf a, vecf b) { return a - b; }
INLINED vecf vf_mul(vecf a, vecf b) { return a * b; }
INLINED vecf vf_div(vecf a, vecf b) { return a / b; }
INLINED vecf vf_fma(vecf a, vecf b, vecf c) { return a * b + c; }
INLINED vecf vf_greater(vecf a, vecf b) {
    vecf r;
    for (int k = 0; k < LANES; k++)
        r[k] = a[k] > b[k] ? a[k] : b[k];
    return r;
}
/* e^x for x of at most 0; what would be less than the least normal number is 0, a NaN stays. */
INLINED vecf vf_decay(vecf x) {
    vecf r;
    for (int k = 0; k < LANES; k++)
        r[k] = x[k] < -87.0f ? 0.0f : (float)full_exp(x[k]);
    return r;
}
#define ROWS 4 /* of a panel of queries: their sums are in registers */

#else /* simd.h has them */

#if LANES == 16
#define ROWS 14
INLINED vecf vf_greater(vecf a, vecf b) { return _mm512_max_ps(a, b); }
#elif defined(__AVX2__)
#define ROWS 6
INLINED vecf vf_greater(vecf a, vecf b) { return _mm256_max_ps(a, b); }
#else
#define ROWS 6
INLINED vecf vf_greater(vecf a, vecf b) { return vf_select(vf_is_above(a, b), a, b); }
#endif

INLINED vecf vf_decay(vecf x) {
    const vecf least = vf_set(-87.0f);
    mask_t gone = vf_is_above(least, x);
    vecf y = vf_at_least(x, -87.0f);
    whole_t n = exp_whole(y, 1.0f, EXP_STEPS);
    vecf r = vf_fma(n.octaves, vf_set(-LN2), y);
    vecf low = vf_fma(n.octaves, vf_set(-LN2_LOW), lookup_step(EXP_SHIFTS, n.steps));
    vecf power = exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    return vf_select(gone, vf_set(0.0f), vf_fma(power, exp_rest(vf_add(r, low)), power));
}
#endif

/* The largest lane. */
INLINED float vf_largest_lane(vecf x) {
#if LANES == 16
    return _mm512_reduce_max_ps(x);
#else
    float lanes[LANES];
    vf_store(lanes, x);
    for (int n = LANES / 2; n; n /= 2)
        for (int k = 0; k < n; k++)
            lanes[k] = lanes[k] > lanes[k + n] ? lanes[k] : lanes[k + n];
    return lanes[0];
#endif
}

#endif
