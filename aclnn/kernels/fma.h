/* A product and a sum that are rounded once, on any CPU: what the C library's function does, without it.

   Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
   IEEE Transactions on Computers 57 (2008). Numbers beyond 2^970 are rounded twice, as are products below
   2^-960, whose errors double precision cannot hold. */
#ifndef ACLNN_KERNELS_FMA_H
#define ACLNN_KERNELS_FMA_H

#include <stdint.h>
#include <string.h>

static inline double exact_sum(double a, double b, double *error) {
  const double sum = a + b, other = sum - a;
  *error = (a - (sum - other)) + (b - other);
  return sum;
}

static inline double exact_product(double a, double b, double *error) {
  const double by = 134217729.0, wide_a = by * a, wide_b = by * b, product = a * b;
  const double a1 = wide_a - (wide_a - a), a2 = a - a1, b1 = wide_b - (wide_b - b), b2 = b - b1;
  *error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
  return product;
}

/* a + b, rounded to the neighbour whose last bit is set unless it is exact. */
static inline double odd_sum(double a, double b) {
  double error, sum = exact_sum(a, b, &error);
  int64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (error != 0 && !(bits & 1)) bits += (error < 0) == (sum < 0) ? 1 : -1;
  memcpy(&sum, &bits, sizeof bits);
  return sum;
}

static inline int is_moderate(double value) { return value < 0x1p970 && value > -0x1p970; }

static inline double fused_multiply_add(double a, double b, double c) {
  double low, low_sum, rest;
  const double product = exact_product(a, b, &low);
  if (!is_moderate(a) || !is_moderate(b) || !is_moderate(c) || !is_moderate(product)) return a * b + c;
  const double upper = exact_sum(c, low, &low_sum);
  const double sum = exact_sum(product, upper, &rest);
  return sum + odd_sum(rest, low_sum);
}

#endif
