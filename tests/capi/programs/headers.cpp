// Headers of other names, halves, and functions that know how much room there is.
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_addcdiv.h"
#include "aclnnop/aclnn_bitwiseand.h"
#include "aclnnop/aclnn_flash_attention_score_grad.h"
#include "aclnnop/aclnn_ger.h"
#include "aclnnop/aclnn_grouped_matmul_v3.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "aclnnop/aclnn_is_inf.h"
#include "aclnnop/aclnn_masked_fill_tensor.h"
#include "aclnnop/aclnn_quant_matmul_v5.h"
#include "aclnnop/aclnn_recurrent_gated_delta_rule.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_sum.h"
#include "aclnnop/level2/aclnn_ascend_quant_v3.h"
#include "aclnnop/level2/aclnn_flash_attention_unpadding_score_grad.h"
#include "opdev/fp16_t.h"
#include "securec.h"

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      std::exit(1);                                                  \
    }                                                                \
  } while (0)

using op::fp16_t;
typedef const aclTensor *T;
typedef aclTensor *Out;
template <class... Given>
using Plan = aclnnStatus (*)(Given..., uint64_t *, aclOpExecutor **);
Plan<T, T, T, bool, const char *, int, int, T> quant = aclnnAscendQuantV3GetWorkspaceSize;
Plan<T, T, Out> both = aclnnBitwiseAndTensorOutGetWorkspaceSize;
Plan<T, T> in_place = aclnnInplaceBitwiseAndTensorGetWorkspaceSize;
Plan<T, T> in_place_out = aclnnInplaceBitwiseAndTensorOutGetWorkspaceSize;
Plan<T, const aclScalar *> in_place_scalar = aclnnInplaceBitwiseAndScalarGetWorkspaceSize;
Plan<T, T, T, int64_t, Out> rotary = aclnnRotaryPositionEmbeddingGetWorkspaceSize;
Plan<T, T, T, T, T, T, T, T, T, bool, bool, int64_t, Out> product = aclnnQuantMatmulV5GetWorkspaceSize;
Plan<T, T, T, T, T, T, T, T, T, T, T, T, const aclIntArray *, const aclIntArray *, const aclIntArray *, double, double,
     int64_t, int64_t, int64_t, char *, int64_t, int64_t, T, T, T, T>
    gradient = aclnnFlashAttentionUnpaddingScoreGradGetWorkspaceSize;

static uint16_t bits_of(fp16_t value) { return value.val; }

static void halves() {
  static_assert(sizeof(fp16_t) == 2 && std::is_trivially_copyable<fp16_t>::value, "");
  for (uint32_t bits = 0; bits < 0x10000; bits++) { // the number of each is exact, and gives it back
    fp16_t one;
    one.val = static_cast<uint16_t>(bits);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp(1.0f * fraction, -24);
    const float value = one;
    if (std::isnan(size)) CHECK(std::isnan(value) && std::isnan(static_cast<float>(fp16_t(value))));
    else CHECK(value == (bits & 0x8000 ? -size : size) && bits_of(value) == bits);
    if (exponent == 31 || (bits & 0x8000)) continue;
    // What lies between two: below the middle, the middle, above it.
    const double next = exponent == 30 && fraction == 1023 ? 65536.0 : double(fp16_t(value)) + std::ldexp(1.0, (exponent ? exponent : 1) - 25);
    const double middle = (double(value) + next) / 2;
    CHECK(bits_of(std::nextafter(middle, 0.0)) == bits);
    CHECK(bits_of(std::nextafter(middle, 1e9)) == bits + 1);
    CHECK(bits_of(middle) == bits + (bits & 1));
    CHECK(bits_of(static_cast<float>(middle)) == bits + (bits & 1));
  }
  const fp16_t a = 1.5f, b = 2, c(-0.25);
  CHECK(a + b == 3.5f && a - b == -0.5f && a * b == fp16_t(3) && a / b == 0.75f && -c == 0.25f);
  CHECK(a < b && b > a && a <= 1.5 && a != b && c < 0 && bits_of(1e9) == 0x7c00 && bits_of(-1e300) == 0xfc00);
  CHECK(a + 1 == 2.5f && 2.0 * a == 3.0 && (std::is_same<decltype(a + 1.0), double>::value));
  CHECK(static_cast<float>(fp16_t(2048) + fp16_t(1)) == 2048 && bits_of(int64_t(1) << 40) == 0x7c00);
  std::vector<fp16_t> row(3, a);
  row[1] += b;
  row[1] *= 2;
  row[1] -= 1.0f;
  row[1] /= b;
  CHECK(static_cast<float>(row[1]) == 3 && static_cast<int>(row[1]) == 3);
}

static void rooms() {
  char text[8] = "", same[8] = "1234567";
  CHECK(strcpy_s(text, sizeof text, "abcdefg") == 0 && !strcmp(text, "abcdefg"));
  CHECK(strcpy_s(text, sizeof text, "abcdefgh") == ERANGE_AND_RESET && text[0] == 0);
  CHECK(strcpy_s(text, 0, "a") == ERANGE && strcpy_s(nullptr, 8, "a") == EINVAL);
  CHECK(strcpy_s(text, 8, nullptr) == EINVAL_AND_RESET && strcpy_s(same, 8, same + 2) == EOVERLAP_AND_RESET);
  CHECK(strncpy_s(text, sizeof text, "abcdefghij", 3) == 0 && !strcmp(text, "abc"));
  CHECK(strcat_s(text, sizeof text, "defg") == 0 && !strcmp(text, "abcdefg"));
  CHECK(strcat_s(text, sizeof text, "h") == ERANGE_AND_RESET && text[0] == 0);
  CHECK(memcpy_s(text, 8, "1234567", 8) == 0 && memcpy_s(text, 4, "12345", 5) == ERANGE_AND_RESET);
  CHECK(text[0] == 0 && text[3] == 0 && text[4] == '5');
  CHECK(memcpy_s(text + 1, 7, text, 4) == EOVERLAP_AND_RESET && memmove_s(text + 1, 7, "xyz", 3) == 0);
  CHECK(memset_s(text, 8, 7, 8) == 0 && text[7] == 7 && memset_s(text, 4, 1, 5) == ERANGE_AND_RESET && text[4] == 7);
  CHECK(sprintf_s(text, sizeof text, "%d-%s", 12, "ab") == 5 && !strcmp(text, "12-ab"));
  CHECK(sprintf_s(text, sizeof text, "%s", "12345678") == -1 && text[0] == 0);
  CHECK(snprintf_s(text, sizeof text, sizeof text - 1, "%s", "12345678") == -1 && !strcmp(text, "1234567"));
  CHECK(snprintf_s(text, sizeof text, 3, "%s", "12345678") == -1 && !strcmp(text, "123"));
  CHECK(snprintf_s(text, sizeof text, 3, "%d", 42) == 2 && !strcmp(text, "42"));
}

int main() {
  halves();
  rooms();
  return 0;
}
