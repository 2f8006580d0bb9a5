/* Integers of four bits: quantised on the device, multiplied with scales for groups, as inference does. */
#include "checks.h"

#include "aclnnop/aclnn_ascend_quant_v3.h"
#include "aclnnop/aclnn_convert_weight_to_int4_pack.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v3.h"

enum { M = 3, K = 96, N = 24, GROUP = 32, GROUPS = K / GROUP };

static int integer_at(int k, int n) { return (k * 5 + n * 3) % 16 - 8; }

/* Halves whose numbers are small integers over 8. */
static uint16_t half_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return x == 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023));
}
static float of_half(uint16_t x) {
  float found;
  uint32_t bits = (uint32_t)(x & 0x8000) << 16 | (uint32_t)((x >> 10 & 31) + 112) << 23 | (uint32_t)(x & 1023) << 13;
  memcpy(&found, &bits, 4);
  return x & 0x7fff ? found : 0;
}

static uint16_t x[M][K], scales[N][GROUPS], found[M][N];
static uint8_t weight[N][K / 2]; /* columns after columns, as models are stored */
static int32_t plain_weight[K][N];

static aclTensor *view(const int64_t *shape, const int64_t *strides, aclDataType dtype, int64_t offset, void *address) {
  const int64_t storage[] = {shape[0] * shape[1] + offset};
  aclTensor *made = aclCreateTensor(shape, 2, dtype, strides, offset, ACL_FORMAT_ND, storage, 1, address);
  CHECK(made);
  return made;
}

static void check_products(void *memory) {
  OK_(aclrtMemcpy(found, sizeof found, memory, sizeof found, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < K; k++) {
        double term = (double)of_half(x[m][k]) * integer_at(k, n) * of_half(scales[n][k / GROUP]);
        sum += term;
        magnitude += term < 0 ? -term : term;
      }
      double error = of_half(found[m][n]) - sum;
      CHECK((error < 0 ? -error : error) <= magnitude * 1e-3);
    }
  OK_(aclrtMemset(memory, sizeof found, 0xff, sizeof found));
}

int main(void) {
  const int64_t of_x[] = {M, K}, of_weight[] = {K, N}, turned[] = {1, K}, of_scales[] = {GROUPS, N};
  const int64_t across[] = {1, GROUPS}, of_y[] = {M, N}, of_packed[] = {K, N / 8};
  uint64_t size;
  aclOpExecutor *executor;
  for (int m = 0; m < M; m++)
    for (int k = 0; k < K; k++) x[m][k] = half_of((float)((m + 2 * k) % 13 - 6) / 8);
  for (int n = 0; n < N; n++)
    for (int k = 0; k < K; k++) {
      if (k % GROUP == 0) scales[n][k / GROUP] = half_of((float)(n % 7 + k / GROUP + 1) / 8);
      weight[n][k / 2] |= (uint8_t)((integer_at(k, n) & 15) << k % 2 * 4);
      plain_weight[k][n] = integer_at(k, n);
    }
  OK_(aclInit(0));
  OK_(aclrtSetDevice(0));
  aclTensor *a = plain(of_x, 2, ACL_FLOAT16, device_memory(x, sizeof x));
  aclTensor *scale = view(of_scales, across, ACL_FLOAT16, 0, device_memory(scales, sizeof scales));
  void *memory = device_memory(found, sizeof found);
  aclTensor *y = plain(of_y, 2, ACL_FLOAT16, memory);

  /* The memory has K * N / 2 bytes, and not one more. */
  void *stored = device_memory(weight, sizeof weight);
  aclTensor *b = view(of_weight, turned, ACL_INT4, 0, stored);
  OK_(aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(a, b, scale, 0, 0, 0, 0, GROUP, y, &size, &executor));
  RUN(aclnnWeightQuantBatchMatmulV2, size, executor, 0);
  check_products(memory);
  for (int run = 0; run < 2; run++) { /* a call that is known by its key */
    OK_(aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(a, b, scale, 0, 0, 0, 0, GROUP, y, &size, &executor));
    RUN(aclnnWeightQuantBatchMatmulV2, size, executor, 0);
    check_products(memory);
  }

  /* Behind 32 other elements: offsets count elements, which are half a byte each. */
  void *shifted = device_memory(0, sizeof weight + 16);
  OK_(aclrtMemcpy((char *)shifted + 16, sizeof weight, weight, sizeof weight, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor *behind = view(of_weight, turned, ACL_INT4, 32, shifted);
  OK_(aclnnWeightQuantBatchMatmulV3GetWorkspaceSize(a, behind, scale, 0, 0, 0, 0, GROUP, 1, y, &size, &executor));
  RUN(aclnnWeightQuantBatchMatmulV3, size, executor, 0);
  check_products(memory);
  aclTensor *inside = view(of_weight, turned, ACL_INT4, 31, shifted);
  CHECK(aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(a, inside, scale, 0, 0, 0, 0, GROUP, y, &size, &executor) == 161002);
  CHECK(strstr(aclGetRecentErrMsg(), "begins inside a byte"));
  const int64_t strides[] = {N, 1}, storage[] = {K * N};
  CHECK(!aclCreateTensor(of_weight, 2, ACL_INT4, strides, 1 << 20, ACL_FORMAT_ND, storage, 1, stored));

  /* Eight in an int32, and two in a byte, made of plain integers. */
  aclTensor *integers = plain(of_weight, 2, ACL_INT32, device_memory(plain_weight, sizeof plain_weight));
  aclTensor *packed[] = {plain(of_packed, 2, ACL_INT32, device_memory(0, K * N / 2)),
                         plain(of_weight, 2, ACL_INT4, device_memory(0, K * N / 2))};
  for (int which = 0; which < 2; which++) {
    OK_(aclnnConvertWeightToINT4PackGetWorkspaceSize(integers, packed[which], &size, &executor));
    RUN(aclnnConvertWeightToINT4Pack, size, executor, 0);
    OK_(aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(a, packed[which], scale, 0, 0, 0, 0, GROUP, y, &size, &executor));
    RUN(aclnnWeightQuantBatchMatmulV2, size, executor, 0);
    check_products(memory);
  }

  /* Quantised on the device. */
  float values[] = {-9, -8, -2.5f, 0.4f, 1.5f, 6.6f, 7, 100}, one = 1;
  const int64_t of_values[] = {2, 4};
  uint8_t bytes[4], wanted[] = {0x88, 0x0e, 0x72, 0x77};
  void *place = device_memory(values, sizeof values), *scale_of_one = 0, *result = device_memory(0, 4);
  aclTensor *given = plain(of_values, 2, ACL_FLOAT, place), *single = floats(&one, 1, &scale_of_one);
  aclTensor *four = plain(of_values, 2, ACL_INT4, result);
  OK_(aclnnAscendQuantV3GetWorkspaceSize(given, single, 0, 0, "round", ACL_INT4, -1, four, &size, &executor));
  RUN(aclnnAscendQuantV3, size, executor, 0);
  OK_(aclrtMemcpy(bytes, 4, result, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(!memcmp(bytes, wanted, 4));
  CHECK(aclDataTypeSize(ACL_INT4) == 0);
  return 0;
}
