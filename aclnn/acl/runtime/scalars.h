/* Scalars read from an element of their type. Its includer has CANN's enumerations. */
#ifndef ACLNN_RUNTIME_SCALARS_H
#define ACLNN_RUNTIME_SCALARS_H

#include <math.h>

#include "objects.h"
#include "runtime_table.h"

static inline double aclnn_of_bfloat16(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double aclnn_of_float16(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double value;
    if (exponent == 31)
        value = fraction ? NAN : INFINITY;
    else if (exponent)
        value = ldexp(1024 + fraction, exponent - 25);
    else
        value = ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

static inline void aclnn_take_real(struct aclScalar *scalar, double value) {
    scalar->is_real = true;
    scalar->exact = value;
    scalar->rounded = (float)value;
}

static inline void aclnn_take_whole(struct aclScalar *scalar, int64_t value) {
    scalar->is_real = scalar->is_whole = true;
    scalar->exact = (double)value;
    scalar->rounded = (float)value;
    scalar->whole = value;
}

static inline void aclnn_take_unsigned(struct aclScalar *scalar, uint64_t value) {
    if (value <= INT64_MAX) {
        aclnn_take_whole(scalar, (int64_t)value);
        return;
    }
    scalar->is_real = true;
    scalar->exact = (double)value;
    scalar->rounded = (float)value;
}

static inline void aclnn_take_complex(struct aclScalar *scalar, double real, double imaginary) {
    scalar->exact = real;
    scalar->imaginary = imaginary;
}

#define ACLNN_READ(type, take)                           \
    do {                                                 \
        type found;                                      \
        memcpy(&found, value, sizeof found);             \
        memcpy(scalar->bytes, value, sizeof found);      \
        take;                                            \
        return true;                                     \
    } while (0)

/* Reads one element of a dtype that scalars can have; false for others. */
static inline bool aclnn_read_scalar(struct aclScalar *scalar, int dtype, const void *value) {
    memset(scalar, 0, sizeof *scalar);
    scalar->magic = ACLNN_SCALAR;
    scalar->dtype = dtype;
    switch (dtype) {
        case ACL_FLOAT: ACLNN_READ(float, aclnn_take_real(scalar, found));
        case ACL_DOUBLE: ACLNN_READ(double, aclnn_take_real(scalar, found));
        case ACL_FLOAT16: ACLNN_READ(uint16_t, aclnn_take_real(scalar, aclnn_of_float16(found)));
        case ACL_BF16: ACLNN_READ(uint16_t, aclnn_take_real(scalar, aclnn_of_bfloat16(found)));
        case ACL_INT8: ACLNN_READ(int8_t, aclnn_take_whole(scalar, found));
        case ACL_INT16: ACLNN_READ(int16_t, aclnn_take_whole(scalar, found));
        case ACL_INT32: ACLNN_READ(int32_t, aclnn_take_whole(scalar, found));
        case ACL_INT64: ACLNN_READ(int64_t, aclnn_take_whole(scalar, found));
        case ACL_UINT8: ACLNN_READ(uint8_t, aclnn_take_whole(scalar, found));
        case ACL_UINT16: ACLNN_READ(uint16_t, aclnn_take_whole(scalar, found));
        case ACL_UINT32: ACLNN_READ(uint32_t, aclnn_take_whole(scalar, found));
        case ACL_UINT64: ACLNN_READ(uint64_t, aclnn_take_unsigned(scalar, found));
        case ACL_BOOL: ACLNN_READ(uint8_t, aclnn_take_whole(scalar, found != 0));
        case ACL_COMPLEX64:
            ACLNN_READ(struct { float parts[2]; }, aclnn_take_complex(scalar, found.parts[0], found.parts[1]));
        case ACL_COMPLEX128:
            ACLNN_READ(struct { double parts[2]; }, aclnn_take_complex(scalar, found.parts[0], found.parts[1]));
        default: return false;
    }
}

#undef ACLNN_READ
#endif
