/* op::fp16_t: half precision, for programs in C++. Numbers are rounded to the nearest, ties to even. */
#ifndef ACLNN_CPU_OPDEV_FP16_T_H_
#define ACLNN_CPU_OPDEV_FP16_T_H_

#include <stdint.h>

#ifdef __cplusplus
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace op {

struct fp16_t {
  uint16_t val; // its bits

  fp16_t() = default;
  fp16_t(float value) : val(Rounded(value)) {}
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  fp16_t(T value) : val(Rounded(ToOdd(static_cast<double>(value)))) {}

  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(val & 0x8000) << 16;
    const uint32_t exponent = val >> 10 & 31, fraction = val & 1023;
    float found = static_cast<float>(fraction) * 5.9604644775390625e-8f; // below the normal numbers, of 2^-24
    uint32_t bits = exponent == 31 ? 0x7f800000u | fraction << 13 : (exponent + 112) << 23 | fraction << 13;
    if (exponent == 0) std::memcpy(&bits, &found, sizeof bits);
    bits |= sign;
    std::memcpy(&found, &bits, sizeof found);
    return found;
  }

  fp16_t operator-() const { return Of(static_cast<uint16_t>(val ^ 0x8000)); }
  fp16_t operator+() const { return *this; }
  fp16_t &operator+=(fp16_t other) { return *this = fp16_t(static_cast<float>(*this) + static_cast<float>(other)); }
  fp16_t &operator-=(fp16_t other) { return *this = fp16_t(static_cast<float>(*this) - static_cast<float>(other)); }
  fp16_t &operator*=(fp16_t other) { return *this = fp16_t(static_cast<float>(*this) * static_cast<float>(other)); }
  fp16_t &operator/=(fp16_t other) { return *this = fp16_t(static_cast<float>(*this) / static_cast<float>(other)); }

 private:
  static fp16_t Of(uint16_t bits) {
    fp16_t made;
    made.val = bits;
    return made;
  }

  // A float that rounds to the half that a double rounds to: its last bit tells whether anything was cut off.
  static float ToOdd(double value) {
    float near = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &near, sizeof bits);
    const double back = static_cast<double>(near);
    if (back == value || value != value || (bits & 0x7f800000u) == 0x7f800000u || (bits & 1)) return near;
    const bool is_above = value < 0 ? back < value : back > value; // in size
    bits = is_above ? bits - 1 : bits | 1;
    std::memcpy(&near, &bits, sizeof near);
    return near;
  }

  static uint16_t Rounded(float value) {
    uint32_t bits, half;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    if (size > 0x7f800000u) half = 0x7e00u | (size >> 13 & 0x3ffu);
    else if (size >= 0x477ff000u) half = 0x7c00u;
    else if (size >= 0x38800000u) half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    else if (size < 0x33000000u) half = 0;
    else {
      const uint32_t shift = 126u - (size >> 23), fraction = (size & 0x7fffffu) | 0x800000u;
      const uint32_t rest = fraction & ((1u << shift) - 1u), tie = 1u << (shift - 1u);
      half = fraction >> shift;
      half += (rest > tie || (rest == tie && (half & 1u))) ? 1u : 0u;
    }
    return static_cast<uint16_t>(half | sign);
  }
};

static_assert(sizeof(fp16_t) == 2, "a half has two bytes");

#define ACLNN_CPU_FP16_OPERATOR(symbol)                                                                       \
  inline fp16_t operator symbol(fp16_t a, fp16_t b) {                                                         \
    return fp16_t(static_cast<float>(a) symbol static_cast<float>(b));                                        \
  }                                                                                                           \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>               \
  auto operator symbol(fp16_t a, T b)->decltype(float() symbol b) { return static_cast<float>(a) symbol b; }  \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>               \
  auto operator symbol(T a, fp16_t b)->decltype(a symbol float()) { return a symbol static_cast<float>(b); }

ACLNN_CPU_FP16_OPERATOR(+)
ACLNN_CPU_FP16_OPERATOR(-)
ACLNN_CPU_FP16_OPERATOR(*)
ACLNN_CPU_FP16_OPERATOR(/)
#undef ACLNN_CPU_FP16_OPERATOR

} // namespace op
#endif

#endif /* ACLNN_CPU_OPDEV_FP16_T_H_ */
