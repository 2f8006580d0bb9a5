/* Conversions between what kernels compute in and what elements are: floats, doubles, whole numbers of 64
 * bits and complex numbers. Every one rounds at most once.
 */
#ifndef ACLNN_NUMBER_H
#define ACLNN_NUMBER_H

#include <stdint.h>

#include "half.h"
#include "unaligned.h"

/* An element of ACL_BOOL: true, unless its byte is 0. */
typedef struct { uint8_t truth; } bool_t;

typedef struct UNALIGNED { float real, imag; } unaligned_complex64;
typedef struct UNALIGNED { double real, imag; } unaligned_complex128;

/* Rounded to odd: a later rounding to fewer bits then gives what one rounding would have. What is cut off
 * makes the last bit odd; a shift rounds down, so that this bit's neighbour above is the odd one. */
static inline double odd_of_i64(int64_t x) {
    int64_t cut = x >> 11 | ((x & 0x7ff) != 0);
    int fits = x >> 53 == 0 || x >> 53 == -1;
    return fits ? (double)x : (double)cut * 2048.0;
}
static inline double odd_of_u64(uint64_t x) {
    int64_t cut = (int64_t)(x >> 11 | ((x & 0x7ff) != 0));
    return x >> 53 == 0 ? (double)(int64_t)x : (double)cut * 2048.0;
}

/* Towards zero; what is too large becomes the largest, a NaN 0. */
static inline int64_t i64_of(double x) {
    int64_t inside = (int64_t)(x < 0x1p63 && x >= -0x1p63 ? x : 0.0);
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : inside;
}
static inline uint64_t u64_of(double x) {
    double near = x > 0.0 && x < 0x1p64 ? x : 0.0;
    uint64_t inside = near < 0x1p63 ? (uint64_t)(int64_t)near : (uint64_t)(int64_t)(near - 0x1p63) + (1ull << 63);
    return x >= 0x1p64 ? UINT64_MAX : inside;
}
/* The same for integers of at most 32 bits, in [low, high]. */
static inline int64_t bounded_whole(double x, double low, double high) {
    double above = x > low ? x : low;
    double inside = above < high ? above : high;
    return (int64_t)(x == x ? inside : 0.0);
}
static inline int32_t bounded_i32(float x, float low, float high) {
    float above = x > low ? x : low;
    float inside = above < high ? above : high;
    return (int32_t)(x == x ? inside : 0.0f);
}

#endif
