/* What a division leaves, on any CPU. */
#ifndef ACLNN_KERNELS_QUOTIENT_H
#define ACLNN_KERNELS_QUOTIENT_H

#include "vector_math.h"

/* a - q b for the whole number q that is a / b without its fraction, or next to that: exact, as the rest has no more
 * digits than a and b. `fma_f64` rounds twice where there is no instruction for it. */
ALWAYS_INLINE double exact_rest(double a, double q, double b) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fma(-q, b, a);
#else
    /* The product lies so near a that their difference is exact; large divisors would be split beyond infinity. */
    double scale = fabs(b) > 0x1p900 ? 0x1p-200 : 1.0, back = fabs(b) > 0x1p900 ? 0x1p200 : 1.0;
    double less = b * scale, product = q * less;
    double rest = ((a * scale - product) - product_error(q, less, product)) * back;
    return q == 0.0 ? a : rest;
#endif
}

#endif
