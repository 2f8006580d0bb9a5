/* Elements in memory that others own, which may begin at any address: a tensor's data, and so its
 * elements, need not lie at multiples of their size. Compilers may take it that what a plain type's
 * pointer points at does; of these they may not. Where all loads can do it, they make the same
 * instructions of both. */
#ifndef ACLNN_UNALIGNED_H
#define ACLNN_UNALIGNED_H

#include <stdint.h>

#define UNALIGNED __attribute__((packed, aligned(1)))

typedef float unaligned_float __attribute__((aligned(1)));
typedef double unaligned_double __attribute__((aligned(1)));
typedef int16_t unaligned_int16 __attribute__((aligned(1)));
typedef int32_t unaligned_int32 __attribute__((aligned(1)));
typedef int64_t unaligned_int64 __attribute__((aligned(1)));
typedef uint16_t unaligned_uint16 __attribute__((aligned(1)));
typedef uint32_t unaligned_uint32 __attribute__((aligned(1)));
typedef uint64_t unaligned_uint64 __attribute__((aligned(1)));
typedef struct UNALIGNED { uint64_t low, high; } unaligned_pair;

#endif
