/* Logarithms over vectors: the series that all of them end with. */
#ifndef ACLNN_SIMD_LOG_H
#define ACLNN_SIMD_LOG_H

#include "simd.h"

#ifdef LANES

/* ln((1 + u)/(1 - u)) - 2u + addend for |u| up to a fifth, error 2^-28 of 2u. */
INLINED vecf vf_atanh_rest(vecf u, vecf addend) {
    vecf square = vf_mul(u, u);
    vecf rest = vf_fma(square, vf_set(0x1.3735c6p-2f), vf_set(0x1.99248ap-2f));
    return vf_fma(vf_mul(u, square), vf_fma(square, rest, vf_set(0x1.5555c4p-1f)), addend);
}

#endif

#endif
