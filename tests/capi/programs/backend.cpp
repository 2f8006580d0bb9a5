// Calls in the manner of an inference engine's backend: dimensions come innermost first, strides in bytes, storage is
// declared flat and without the offset, results of comparisons are floats, and caches are written through views.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "checks.h"

#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_argmax.h"
#include "aclnnop/aclnn_argsort.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_batch_matmul.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_clamp.h"
#include "aclnnop/aclnn_constant_pad_nd.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_fused_infer_attention_score_v2.h"
#include "aclnnop/aclnn_gather_v2.h"
#include "aclnnop/aclnn_group_norm.h"
#include "aclnnop/aclnn_gt_scalar.h"
#include "aclnnop/aclnn_im2col.h"
#include "aclnnop/aclnn_index_copy.h"
#include "aclnnop/aclnn_index_fill_tensor.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_max_pool.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_norm.h"
#include "aclnnop/aclnn_pow.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_reflection_pad1d.h"
#include "aclnnop/aclnn_repeat_interleave.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_roll.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_sign.h"
#include "aclnnop/aclnn_softmax_cross_entropy_with_logits.h"
#include "aclnnop/aclnn_threshold.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "aclnnop/aclnn_triangular_solve.h"
#include "aclnnop/aclnn_upsample_nearest_2d.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"

using Sizes = std::vector<int64_t>;

static aclrtStream stream;

// --- An engine's own shell ---------------------------------------------------------------------

template <typename First, typename Second, typename... Arguments>
static void call(const char *name, First first, Second second, Arguments... arguments) {
  uint64_t size = 0;
  aclOpExecutor *executor;
  const aclnnStatus status = first(arguments..., &size, &executor);
  if (status) {
    printf("%s: %d: %s\n", name, status, aclGetRecentErrMsg());
    exit(1);
  }
  void *workspace = nullptr;
  if (size > 0) OK_(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_(second(workspace, size, executor, stream));
  OK_(aclrtSynchronizeStream(stream));
  if (workspace) OK_(aclrtFree(workspace));
}
#define CALL(name, ...) call(#name, aclnn##name##GetWorkspaceSize, aclnn##name, __VA_ARGS__)

// A tensor of an engine: innermost dimension first, strides in bytes.
static aclTensor *tensor(const void *address, aclDataType dtype, Sizes dims, Sizes bytes = {}, int64_t offset = 0, aclFormat format = ACL_FORMAT_ND) {
  const int64_t item = (int64_t)aclDataTypeSize(dtype);
  if (bytes.empty()) {
    int64_t next = item;
    for (int64_t one : dims) bytes.push_back(next), next *= one;
  }
  const Sizes shape(dims.rbegin(), dims.rend());
  Sizes strides(bytes.rbegin(), bytes.rend());
  int64_t reach = 1;
  for (size_t axis = 0; axis < shape.size(); axis++) strides[axis] /= item, reach += (shape[axis] - 1) * strides[axis];
  aclTensor *made = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), offset / item, format, &reach, 1, const_cast<void *>(address));
  CHECK(made);
  return made;
}

static aclScalar *scalar(float value) { return aclCreateScalar(&value, ACL_FLOAT); }
static aclIntArray *ints(Sizes values) { return aclCreateIntArray(values.data(), values.size()); }

template <typename T>
static T *device(const std::vector<T> &values) { return (T *)device_memory(values.data(), values.size() * sizeof(T)); }

static float *room(size_t count) { return device(std::vector<float>(count, -99)); }

static std::vector<float> ramp(size_t count, float step = 0.37f) {
  std::vector<float> made(count);
  for (size_t k = 0; k < count; k++) made[k] = std::sin((float)k * step) * 2;
  return made;
}

static std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> made;
  for (float one : values) made.push_back(aclFloatToFloat16(one));
  return made;
}

static void near(const float *found, const std::vector<float> &wanted, float tolerance, int line) {
  for (size_t k = 0; k < wanted.size(); k++)
    if (!(std::fabs(found[k] - wanted[k]) <= tolerance)) {
      printf("line %d: element %zu is %g, not %g\n", line, k, found[k], wanted[k]);
      exit(1);
    }
}
#define NEAR(found, wanted, tolerance) near(found, wanted, tolerance, __LINE__)

// --- Views -------------------------------------------------------------------------------------

static void storage_is_declared_without_the_offset() {
  // The second row of three, whose storage is said to be as long as the view.
  float *x = device(ramp(12)), *out = room(4);
  CALL(Sign, tensor(x, ACL_FLOAT, {4, 1, 1, 1}, {}, 4 * sizeof(float)), tensor(out, ACL_FLOAT, {4, 1, 1, 1}));
  std::vector<float> wanted;
  for (int k = 4; k < 8; k++) wanted.push_back(x[k] > 0 ? 1.f : x[k] < 0 ? -1.f : 0.f);
  NEAR(out, wanted, 0);
}

static void caches_are_written_in_place_through_views() {
  std::vector<uint16_t> empty(5 * 8, 0);
  uint16_t *cache = device(empty);
  float *rows = device(ramp(2 * 4));
  int64_t *where = device(std::vector<int64_t>{3, 1});
  uint16_t *cast = device(std::vector<uint16_t>(8));
  CALL(Cast, tensor(rows, ACL_FLOAT, {4, 2}), ACL_FLOAT16, tensor(cast, ACL_FLOAT16, {4, 2}));
  // Columns 2 to 5 of a cache of eight.
  aclTensor *view = tensor(cache + 2, ACL_FLOAT16, {4, 5}, {2, 16});
  CALL(InplaceIndexCopy, view, (int64_t)0, tensor(where, ACL_INT64, {2}), tensor(cast, ACL_FLOAT16, {4, 2}));
  for (int row = 0; row < 5; row++)
    for (int column = 0; column < 8; column++) {
      const bool inside = (row == 3 || row == 1) && column >= 2 && column < 6;
      const uint16_t wanted = inside ? aclFloatToFloat16(rows[(row == 3 ? 0 : 4) + column - 2]) : 0;
      CHECK(cache[8 * row + column] == wanted);
    }
  int32_t *short_where = device(std::vector<int32_t>{0, 4});
  CALL(InplaceIndexCopy, view, (int64_t)0, tensor(short_where, ACL_INT32, {2}), tensor(cast, ACL_FLOAT16, {4, 2}));
  CHECK(cache[2] == cast[0] && cache[34] == cast[4]);
  // A copy that casts and transposes.
  float *out = room(8);
  CALL(InplaceCopy, tensor(out, ACL_FLOAT, {4, 2, 1, 1}), tensor(cast, ACL_FLOAT16, {4, 2, 1, 1}, {2, 8, 16, 16}));
  for (int k = 0; k < 8; k++) CHECK(out[k] == aclFloat16ToFloat(cast[k]));
}

static void one_mask_serves_all_heads() {
  float *scores = device(ramp(2 * 3 * 4)), *mask = device(ramp(3 * 4, 0.9f)), *out = room(24);
  CALL(Mul, tensor(scores, ACL_FLOAT, {4, 3, 2, 1}), tensor(mask, ACL_FLOAT, {4, 3, 2, 1}, {4, 16, 0, 0}), tensor(out, ACL_FLOAT, {4, 3, 2, 1}));
  for (int k = 0; k < 24; k++) CHECK(out[k] == scores[k] * mask[k % 12]);
  // Broadcast heads by rank 5.
  float *wide = room(2 * 2 * 3 * 4);
  CALL(Mul, tensor(scores, ACL_FLOAT, {4, 3, 1, 2, 1}), tensor(mask, ACL_FLOAT, {4, 3, 1, 1, 1}), tensor(wide, ACL_FLOAT, {4, 3, 1, 2, 1}));
  for (int k = 0; k < 24; k++) CHECK(wide[k] == out[k]);
}

static void group_norm_writes_statistics_at_any_address() {
  float *x = device(ramp(2 * 4 * 6)), *out = room(48);
  char *statistics = (char *)room(16);
  CALL(GroupNorm, tensor(x, ACL_FLOAT, {6, 4, 2}), (aclTensor *)nullptr, (aclTensor *)nullptr, (int64_t)2, (int64_t)4, (int64_t)6, (int64_t)2, 1e-5,
       tensor(out, ACL_FLOAT, {6, 4, 2}), tensor(statistics, ACL_FLOAT, {2, 2}), tensor(statistics + 17, ACL_FLOAT, {2, 2}));
  std::vector<float> wanted(48);
  for (int group = 0; group < 4; group++) {
    double mean = 0, square = 0;
    for (int k = 0; k < 12; k++) mean += x[12 * group + k] / 12.;
    for (int k = 0; k < 12; k++) square += (x[12 * group + k] - mean) * (x[12 * group + k] - mean) / 12.;
    for (int k = 0; k < 12; k++) wanted[12 * group + k] = (float)((x[12 * group + k] - mean) / std::sqrt(square + 1e-5));
  }
  NEAR(out, wanted, 2e-6f);
}

// --- Numbers -----------------------------------------------------------------------------------

static void ranges_and_slopes() {
  float *out = room(5);
  CALL(Arange, scalar(1), scalar(2.9f), scalar(0.4f), tensor(out, ACL_FLOAT, {5}));
  for (int k = 0; k < 5; k++) CHECK(std::fabs(out[k] - (1 + 0.4f * (float)k)) < 1e-6f);
  uint16_t *slopes = device(std::vector<uint16_t>(4)), *powers = device(std::vector<uint16_t>(4));
  CALL(Arange, scalar(1), scalar(5), scalar(1), tensor(slopes, ACL_FLOAT16, {4}));
  CALL(PowScalarTensor, scalar(0.5f), tensor(slopes, ACL_FLOAT16, {4}), tensor(powers, ACL_FLOAT16, {4}));
  for (int k = 0; k < 4; k++) CHECK(aclFloat16ToFloat(powers[k]) == std::ldexp(1.f, -(k + 1)));
}

static void orders() {
  float *x = device(ramp(2 * 5, 1.3f));
  int64_t *order = device(std::vector<int64_t>(10));
  int32_t *narrow = device(std::vector<int32_t>(10)), *best = device(std::vector<int32_t>(2));
  CALL(Argsort, tensor(x, ACL_FLOAT, {5, 2, 1, 1}), (int64_t)-1, true, tensor(order, ACL_INT64, {5, 2, 1, 1}));
  CALL(Cast, tensor(order, ACL_INT64, {5, 2, 1, 1}), ACL_INT32, tensor(narrow, ACL_INT32, {5, 2, 1, 1}));
  CALL(ArgMax, tensor(x, ACL_FLOAT, {5, 2, 1, 1}), (int64_t)3, false, tensor(best, ACL_INT32, {2, 1, 1}));
  for (int row = 0; row < 2; row++) {
    CHECK(best[row] == narrow[5 * row]);
    for (int k = 1; k < 5; k++) CHECK(x[5 * row + narrow[5 * row + k - 1]] >= x[5 * row + narrow[5 * row + k]]);
  }
}

static void norms_and_divisions() {
  float *x = device(ramp(3 * 4)), *norm = room(3), *out = room(12);
  aclTensor *lengths = tensor(norm, ACL_FLOAT, {1, 3, 1, 1});
  CALL(Norm, tensor(x, ACL_FLOAT, {4, 3, 1, 1}), scalar(2), ints({3}), true, lengths);
  CALL(ClampMin, lengths, scalar(1e-3f), lengths);
  CALL(Div, tensor(x, ACL_FLOAT, {4, 3, 1, 1}), lengths, tensor(out, ACL_FLOAT, {4, 3, 1, 1}));
  std::vector<float> wanted(12);
  for (int row = 0; row < 3; row++) {
    double square = 0;
    for (int k = 0; k < 4; k++) square += (double)x[4 * row + k] * x[4 * row + k];
    for (int k = 0; k < 4; k++) wanted[4 * row + k] = (float)(x[4 * row + k] / std::sqrt(square));
  }
  NEAR(out, wanted, 3e-7f);
  aclTensor *flat = tensor(out, ACL_FLOAT, {12});
  CALL(InplaceThreshold, flat, scalar(0), scalar(0));
  CALL(InplaceClampMax, flat, scalar(0.5f));
  CALL(InplaceMuls, flat, scalar(2));
  for (int k = 0; k < 12; k++) CHECK(std::fabs(out[k] - 2 * std::fmin(std::fmax(wanted[k], 0.f), 0.5f)) < 1e-6f);
}

static void comparisons_are_written_as_numbers() {
  float *x = device(ramp(6)), *y = device(ramp(6)), *out = room(6);
  y[2] += 1;
  CALL(EqTensor, tensor(x, ACL_FLOAT, {6, 1, 1, 1}), tensor(y, ACL_FLOAT, {6, 1, 1, 1}), tensor(out, ACL_FLOAT, {6, 1, 1, 1}));
  for (int k = 0; k < 6; k++) CHECK(out[k] == (k != 2));
  int64_t *count = device(std::vector<int64_t>(1));
  CALL(ReduceSum, tensor(out, ACL_FLOAT, {6, 1, 1, 1}), ints({0, 1, 2, 3}), true, ACL_INT64, tensor(count, ACL_INT64, {1, 1, 1, 1}));
  CHECK(*count == 5);
  CALL(GtScalar, tensor(x, ACL_FLOAT, {6}), scalar(0), tensor(out, ACL_FLOAT, {6}));
  for (int k = 0; k < 6; k++) CHECK(out[k] == (x[k] > 0));
}

static void dtypes_are_mixed() {
  int32_t *positions = device(std::vector<int32_t>{3, 1, 2});
  float *theta = device(std::vector<float>{0.5f, 0.25f}), *angles = room(6);
  CALL(Mul, tensor(positions, ACL_INT32, {1, 3, 1, 1}), tensor(theta, ACL_FLOAT, {2, 1, 1, 1}), tensor(angles, ACL_FLOAT, {2, 3, 1, 1}));
  for (int k = 0; k < 6; k++) CHECK(angles[k] == (float)positions[k / 2] * theta[k % 2]);
  int8_t *weights = device(std::vector<int8_t>{1, -2, 3, -4});
  uint16_t *scales = device(halves({0.5f, 2}));
  for (aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    float *out = room(4);
    CALL(Mul, tensor(weights, ACL_INT8, {2, 2, 1, 1, 1}), tensor(scales, ACL_FLOAT16, {1, 2, 1, 1, 1}), tensor(out, dtype, {2, 2, 1, 1, 1}));
    for (int k = 0; k < 4; k++) {
      const float found = dtype == ACL_FLOAT ? out[k] : aclFloat16ToFloat(((uint16_t *)out)[k]);
      CHECK(found == (float)weights[k] * (k < 2 ? 0.5f : 2));
    }
  }
  int8_t *rows = device(std::vector<int8_t>(4));
  int32_t *index = device(std::vector<int32_t>{1, 0});
  CALL(GatherV2, tensor(weights, ACL_INT8, {2, 2}), (int64_t)0, tensor(index, ACL_INT32, {2}), tensor(rows, ACL_INT8, {2, 2}));
  CHECK(rows[0] == 3 && rows[1] == -4 && rows[2] == 1);
  CALL(IndexSelect, tensor(positions, ACL_INT32, {1, 1, 3}), (int64_t)0, tensor(index, ACL_INT32, {2}), tensor(angles, ACL_INT32, {1, 1, 2}));
  CHECK(((int32_t *)angles)[0] == 1 && ((int32_t *)angles)[1] == 3);
}

// --- Products ----------------------------------------------------------------------------------

static void weights_are_prepared_once_and_read_transposed() {
  const int64_t m = 3, n = 5, k = 7;
  for (aclDataType dtype : {ACL_FLOAT16, ACL_FLOAT}) {
    const std::vector<float> a = ramp((size_t)(m * k)), b = ramp((size_t)(n * k), 0.71f);
    uint64_t bytes = 0;
    OK_(aclnnCalculateMatmulWeightSizeV2(ints({n, k}), dtype, &bytes));
    CHECK(bytes >= (uint64_t)(n * k) * aclDataTypeSize(dtype));
    const bool half = dtype == ACL_FLOAT16;
    void *weight = device_memory(nullptr, bytes);
    const std::vector<uint16_t> narrow = halves(b);
    OK_(aclrtMemcpy(weight, bytes, half ? (const void *)narrow.data() : b.data(), (size_t)(n * k) * aclDataTypeSize(dtype), ACL_MEMCPY_HOST_TO_DEVICE));
    uint64_t size;
    aclOpExecutor *executor;
    OK_(aclnnTransMatmulWeightGetWorkspaceSize(tensor(weight, dtype, {k, n}), &size, &executor));
    OK_(aclnnTransMatmulWeight(nullptr, size, executor, nullptr));
    const int64_t item = (int64_t)aclDataTypeSize(dtype);
    aclTensor *transposed = tensor(weight, dtype, {n, k}, {k * item, item}, 0, ACL_FORMAT_FRACTAL_NZ);
    void *input = half ? (void *)device(halves(a)) : (void *)device(a);
    std::vector<float> wanted((size_t)(m * n));
    for (int64_t row = 0; row < m; row++)
      for (int64_t column = 0; column < n; column++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++) {
          const float left = a[(size_t)(row * k + j)], right = b[(size_t)(column * k + j)];
          sum += half ? (double)aclFloat16ToFloat(aclFloatToFloat16(left)) * aclFloat16ToFloat(aclFloatToFloat16(right)) : (double)left * right;
        }
        wanted[(size_t)(row * n + column)] = (float)sum;
      }
    float *out = room((size_t)(m * n));
    CALL(Mm, tensor(input, dtype, {k, m}), transposed, tensor(out, ACL_FLOAT, {n, m}), (int8_t)2);
    NEAR(out, wanted, half ? 1e-5f : 5e-3f);  // 2 asks for operands that are rounded to FLOAT16
    float *again = room((size_t)(m * n));
    CALL(Matmul, tensor(input, dtype, {k, m}), transposed, tensor(again, ACL_FLOAT, {n, m}), (int8_t)1);
    NEAR(again, wanted, 1e-5f);
    // Heads that are broadcast: two of queries to one of keys, by rank 5.
    float *heads = room((size_t)(2 * m * n));
    CALL(Matmul, tensor(input, dtype, {k, m, 1, 1, 1}), tensor(weight, dtype, {n, k, 1, 2, 1}, {k * item, item, 0, 0, 0}), tensor(heads, ACL_FLOAT, {n, m, 1, 2, 1}), (int8_t)1);
    for (int64_t one = 0; one < 2 * m * n; one++) CHECK(heads[one] == again[one % (m * n)]);
    CALL(BatchMatMul, tensor(input, dtype, {k, m, 1}), tensor(weight, dtype, {n, k, 1}, {k * item, item, n * k * item}), tensor(again, ACL_FLOAT, {n, m, 1}), (int8_t)2);
    for (int64_t one = 0; one < m * n; one++) CHECK(out[one] == again[one]);
  }
}

static void weights_of_eight_bits() {
  const int64_t m = 2, k = 64, n = 4, group = 32;
  const std::vector<float> x = ramp((size_t)(m * k));
  std::vector<int8_t> eight((size_t)(n * k));
  for (int64_t one = 0; one < n * k; one++) eight[(size_t)one] = (int8_t)((one * 7) % 15 - 7);
  const std::vector<uint16_t> scales = halves({0.5f, 1, 2, 0.25f, 1, 0.125f, 4, 0.5f});  // (n, k / 32)
  uint16_t *input = device(halves(x)), *scale = device(scales);
  std::vector<float> wanted((size_t)(m * n));
  for (int64_t row = 0; row < m; row++)
    for (int64_t column = 0; column < n; column++) {
      double sum = 0;
      for (int64_t j = 0; j < k; j++)
        sum += (double)aclFloat16ToFloat(input[row * k + j]) * eight[(size_t)(column * k + j)] * aclFloat16ToFloat(scales[(size_t)(column * 2 + j / 32)]);
      wanted[(size_t)(row * n + column)] = (float)sum;
    }
  aclTensor *transposed = tensor(device(eight), ACL_INT8, {n, k}, {k, 1}), *none = nullptr;
  uint16_t *out = device(std::vector<uint16_t>((size_t)(m * n)));
  CALL(WeightQuantBatchMatmulV2, tensor(input, ACL_FLOAT16, {k, m}), transposed, tensor(scale, ACL_FLOAT16, {n, k / 32}, {2 * 2, 2}), none, none, none, none, (int)group, tensor(out, ACL_FLOAT16, {n, m}));
  for (int64_t one = 0; one < m * n; one++) CHECK(std::fabs(aclFloat16ToFloat(out[one]) - wanted[(size_t)one]) <= std::fabs(wanted[(size_t)one]) / 1024 + 1e-3f);
}

static void triangles() {
  float *a = device(std::vector<float>{2, 0, 0, 1, 4, 0, -1, 3, 1}), *b = device(ramp(6)), *x = room(6), *m = room(9);
  CALL(TriangularSolve, tensor(b, ACL_FLOAT, {2, 3, 1, 1}), tensor(a, ACL_FLOAT, {3, 3, 1, 1}), false, false, false, tensor(x, ACL_FLOAT, {2, 3, 1, 1}), tensor(m, ACL_FLOAT, {3, 3, 1, 1}));
  std::vector<float> product(6);
  for (int row = 0; row < 3; row++)
    for (int column = 0; column < 2; column++)
      for (int j = 0; j <= row; j++) product[(size_t)(2 * row + column)] += a[3 * row + j] * x[2 * j + column];
  NEAR(b, product, 1e-5f);
}

// --- Attention ---------------------------------------------------------------------------------

static void attention_with_a_mask_as_bias() {
  const int64_t heads = 2, queries = 3, keys = 5, depth = 16;
  const std::vector<uint16_t> q = halves(ramp((size_t)(queries * heads * depth))), k = halves(ramp((size_t)(keys * heads * depth), 0.53f));
  const std::vector<uint16_t> v = halves(ramp((size_t)(keys * heads * depth), 0.29f));
  std::vector<float> bias((size_t)(queries * keys));
  for (int64_t one = 0; one < queries * keys; one++)
    bias[(size_t)one] = one % keys > one / keys + 2 ? -std::numeric_limits<float>::infinity() : 0.125f * (float)(one % 3);
  std::vector<uint16_t> mask = halves(bias);
  for (size_t one = 0; one < mask.size(); one++)
    if (std::isinf(bias[one])) mask[one] = 0xFC00;
  uint16_t *out = device(std::vector<uint16_t>(q.size()));
  aclTensor *none = nullptr;
  aclIntArray *no = nullptr;
  // A view that is transposed from (heads, keys), as caches have it.
  std::vector<uint16_t> by_head(k.size());
  for (int64_t key = 0; key < keys; key++)
    for (int64_t head = 0; head < heads; head++)
      for (int64_t d = 0; d < depth; d++) by_head[(size_t)((head * keys + key) * depth + d)] = k[(size_t)((key * heads + head) * depth + d)];
  aclTensor *key = tensor(device(by_head), ACL_FLOAT16, {depth, heads, keys, 1}, {2, keys * depth * 2, depth * 2, keys * heads * depth * 2});
  aclTensor *value = tensor(device(v), ACL_FLOAT16, {depth, heads, keys, 1});
  const aclTensorList *key_list = aclCreateTensorList(&key, 1), *value_list = aclCreateTensorList(&value, 1);
  char layout[] = "BSND";
  const double scale = 0.25;
  CALL(FusedInferAttentionScoreV2, tensor(device(q), ACL_FLOAT16, {depth, heads, queries, 1}), key_list, value_list,
       tensor(device(mask), ACL_FLOAT16, {keys, queries, heads, 1}, {2, keys * 2, 0, queries * keys * 2}), none, no, no, none, none, none, none, none, none, none, none, none,
       none, none, none, none, none, none, none, no, heads, scale, (int64_t)65535, (int64_t)65535, layout, heads, (int64_t)0, (int64_t)2, (int64_t)0, (int64_t)0, false,
       (int64_t)0, (int64_t)0, tensor(out, ACL_FLOAT16, {depth, heads, queries, 1}), none);
  for (int64_t row = 0; row < queries; row++)
    for (int64_t head = 0; head < heads; head++) {
      std::vector<double> weight((size_t)keys);
      double sum = 0;
      for (int64_t j = 0; j < keys; j++) {
        double dot = 0;
        for (int64_t d = 0; d < depth; d++)
          dot += (double)aclFloat16ToFloat(q[(size_t)((row * heads + head) * depth + d)]) * aclFloat16ToFloat(k[(size_t)((j * heads + head) * depth + d)]);
        weight[(size_t)j] = std::isinf(bias[(size_t)(row * keys + j)]) ? 0 : std::exp(dot * scale + bias[(size_t)(row * keys + j)]);
        sum += weight[(size_t)j];
      }
      for (int64_t d = 0; d < depth; d++) {
        double wanted = 0;
        for (int64_t j = 0; j < keys; j++) wanted += weight[(size_t)j] / sum * aclFloat16ToFloat(v[(size_t)((j * heads + head) * depth + d)]);
        CHECK(std::fabs(aclFloat16ToFloat(out[(row * heads + head) * depth + d]) - wanted) < 2e-3);
      }
    }
}

static void rotations() {
  const int64_t depth = 4, heads = 2, length = 3;
  float *x = device(ramp((size_t)(depth * heads * length))), *out = room((size_t)(depth * heads * length));
  std::vector<float> cosines, sines;
  for (int64_t position = 0; position < length; position++)
    for (int64_t d = 0; d < depth; d++) {
      const float angle = 0.3f * (float)position * (d % 2 ? 0.1f : 1.f);
      cosines.push_back(std::cos(angle)), sines.push_back(std::sin(angle));
    }
  aclTensor *c = tensor(device(cosines), ACL_FLOAT, {depth, 1, length, 1}), *s = tensor(device(sines), ACL_FLOAT, {depth, 1, length, 1});
  for (int64_t mode : {0, 1}) {
    CALL(RotaryPositionEmbedding, tensor(x, ACL_FLOAT, {depth, heads, length, 1}), c, s, mode, tensor(out, ACL_FLOAT, {depth, heads, length, 1}));
    std::vector<float> wanted;
    for (int64_t one = 0; one < depth * heads * length; one++) {
      const int64_t d = one % depth, row = one - d, at = one / (depth * heads) * depth + d;
      const float turned = mode ? (d % 2 ? x[one - 1] : -x[one + 1]) : (d < depth / 2 ? -x[row + d + depth / 2] : x[row + d - depth / 2]);
      wanted.push_back(x[one] * cosines[(size_t)at] + turned * sines[(size_t)at]);
    }
    NEAR(out, wanted, 1e-6f);
  }
}

// --- Images and sounds -------------------------------------------------------------------------

static void pools_and_images() {
  float *x = device(ramp(2 * 4 * 6)), *out = room(2 * 2 * 3), *top = room(2 * 2 * 3);
  aclTensor *image = tensor(x, ACL_FLOAT, {6, 4, 2, 1}, {}, 0, ACL_FORMAT_NCHW);
  CALL(AvgPool2d, image, ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, (int64_t)0, (int8_t)0, tensor(out, ACL_FLOAT, {3, 2, 2, 1}, {}, 0, ACL_FORMAT_NCHW));
  CALL(MaxPool, image, ints({2, 2}), ints({2, 2}), (int64_t)0, ints({0, 0, 0, 0}), ints({1, 1}), (int64_t)0, tensor(top, ACL_FLOAT, {3, 2, 2, 1}, {}, 0, ACL_FORMAT_NCHW));
  for (int k = 0; k < 12; k++) {
    const float *corner = x + k / 6 * 24 + k / 3 % 2 * 12 + k % 3 * 2;
    CHECK(std::fabs(out[k] - (corner[0] + corner[1] + corner[6] + corner[7]) / 4) < 1e-6f);
    CHECK(top[k] == std::fmax(std::fmax(corner[0], corner[1]), std::fmax(corner[6], corner[7])));
  }
  float *large = room(2 * 8 * 12);
  CALL(UpsampleNearest2d, image, ints({8, 12}), tensor(large, ACL_FLOAT, {12, 8, 2, 1}, {}, 0, ACL_FORMAT_NCHW));
  for (int k = 0; k < 192; k++) CHECK(large[k] == x[k / 96 * 24 + k / 12 % 8 / 2 * 6 + k % 12 / 2]);
  float *columns = room(2 * 4 * 6);
  CALL(Im2col, tensor(x, ACL_FLOAT, {6, 4, 2, 1}), ints({2, 2}), ints({1, 1}), ints({0, 0}), ints({2, 2}), tensor(columns, ACL_FLOAT, {6, 8, 1}));
  for (int row = 0; row < 8; row++)
    for (int k = 0; k < 6; k++) CHECK(columns[6 * row + k] == x[row / 4 * 24 + (row / 2 % 2 + k / 3 * 2) * 6 + row % 2 + k % 3 * 2]);
  float *padded = room(2 * 6 * 7);
  CALL(ConstantPadNd, tensor(x, ACL_FLOAT, {6, 4, 2, 1}), ints({0, 1, 1, 1}), scalar(-std::numeric_limits<float>::max()), tensor(padded, ACL_FLOAT, {7, 6, 2, 1}));
  CHECK(padded[0] == -std::numeric_limits<float>::max() && padded[7] == x[0] && padded[13] == -std::numeric_limits<float>::max());
}

static void convolutions_of_sounds() {
  // Depthwise, its output a transposed view.
  const int64_t channels = 3, length = 6, kernel = 2, left = length - kernel + 1;
  float *x = device(ramp((size_t)(channels * length))), *w = device(ramp((size_t)(channels * kernel), 1.1f)), *out = room((size_t)(channels * left));
  CALL(Convolution, tensor(x, ACL_FLOAT, {length, channels, 1}, {}, 0, ACL_FORMAT_NCL), tensor(w, ACL_FLOAT, {kernel, 1, channels}, {}, 0, ACL_FORMAT_NCL), (aclTensor *)nullptr, ints({1}), ints({0}), ints({1}), false,
       ints({0}), channels, tensor(out, ACL_FLOAT, {left, channels, 1}, {channels * 4, 4, channels * left * 4}, 0, ACL_FORMAT_NCL), (int8_t)0);
  for (int64_t channel = 0; channel < channels; channel++)
    for (int64_t k = 0; k < left; k++) {
      float wanted = 0;
      for (int64_t j = 0; j < kernel; j++) wanted += x[channel * length + k + j] * w[channel * kernel + j];
      CHECK(std::fabs(out[k * channels + channel] - wanted) < 1e-5f);
    }
  // Transposed: three channels to one, stride 2.
  float *wide = room((size_t)(2 * length));
  CALL(Convolution, tensor(x, ACL_FLOAT, {length, channels, 1}, {}, 0, ACL_FORMAT_NCL), tensor(w, ACL_FLOAT, {kernel, 1, channels}, {}, 0, ACL_FORMAT_NCL), (aclTensor *)nullptr, ints({2}), ints({0}), ints({1}), true,
       ints({0}), (int64_t)1, tensor(wide, ACL_FLOAT, {2 * length, 1, 1}, {}, 0, ACL_FORMAT_NCL), (int8_t)0);
  for (int64_t k = 0; k < 2 * length; k++) {
    float wanted = 0;
    for (int64_t channel = 0; channel < channels; channel++) wanted += x[channel * length + k / 2] * w[channel * kernel + k % 2];
    CHECK(std::fabs(wide[k] - wanted) < 1e-5f);
  }
  float *mirrored = room(2 * 9);
  CALL(ReflectionPad1d, tensor(x, ACL_FLOAT, {length, 2, 1}), ints({2, 1}), tensor(mirrored, ACL_FLOAT, {length + 3, 2, 1}));
  CHECK(mirrored[0] == x[2] && mirrored[1] == x[1] && mirrored[8] == x[4] && mirrored[9] == x[8]);
}

// --- Losses, moves -----------------------------------------------------------------------------

static void cross_entropy() {
  float *logits = device(ramp(2 * 4)), *labels = device(std::vector<float>{0, 1, 0, 0, 0.25f, 0.25f, 0.5f, 0}), *loss = room(2), *back = room(8);
  CALL(SoftmaxCrossEntropyWithLogits, tensor(logits, ACL_FLOAT, {4, 2}), tensor(labels, ACL_FLOAT, {4, 2}), tensor(loss, ACL_FLOAT, {2}), tensor(back, ACL_FLOAT, {4, 2}));
  std::vector<float> wanted;
  for (int row = 0; row < 2; row++) {
    double sum = 0, found = 0;
    for (int k = 0; k < 4; k++) sum += std::exp((double)logits[4 * row + k]);
    for (int k = 0; k < 4; k++) found -= labels[4 * row + k] * (logits[4 * row + k] - std::log(sum));
    wanted.push_back((float)found);
  }
  NEAR(loss, wanted, 1e-6f);
}

static void moves() {
  float *x = device(ramp(6)), *out = room(12), *same = room(6);
  CALL(RepeatInterleaveIntWithDim, tensor(x, ACL_FLOAT, {3, 2, 1, 1}), (int64_t)2, (int64_t)3, (int64_t)6, tensor(out, ACL_FLOAT, {6, 2, 1, 1}));
  for (int k = 0; k < 12; k++) CHECK(out[k] == x[k / 2]);
  CALL(Roll, tensor(x, ACL_FLOAT, {6, 1, 1, 1}), ints({1}), ints({3}), tensor(same, ACL_FLOAT, {6, 1, 1, 1}));
  for (int k = 0; k < 6; k++) CHECK(same[k] == x[(k + 5) % 6]);
  CALL(InplaceIndexFillTensor, tensor(same, ACL_FLOAT, {6, 1, 1, 1}), (int64_t)3, ints({0, 2, 0}), scalar(-1));
  CHECK(same[0] == -1 && same[1] == x[0] && same[2] == -1);
  // Rows without weights, and the leading dims of the reciprocal root only.
  float *weight = device(std::vector<float>(3, 1)), *root = room(2);
  CALL(RmsNorm, tensor(x, ACL_FLOAT, {3, 2, 1, 1}), tensor(weight, ACL_FLOAT, {3}), 1e-6, tensor(same, ACL_FLOAT, {3, 2, 1, 1}), tensor(root, ACL_FLOAT, {2, 1, 1}));
  CHECK(std::fabs(same[0] - x[0] * root[0]) < 1e-6f);
  aclTensor *none = nullptr;
  CALL(LayerNorm, tensor(x, ACL_FLOAT, {3, 2, 1, 1}), ints({3}), none, none, 1e-5, tensor(same, ACL_FLOAT, {3, 2, 1, 1}), none, none);
  CHECK(std::fabs(same[0] + same[1] + same[2]) < 1e-5f);
}

int main() {
  OK_(aclInit(nullptr));
  OK_(aclrtSetDevice(0));
  OK_(aclrtCreateStream(&stream));
  storage_is_declared_without_the_offset();
  caches_are_written_in_place_through_views();
  one_mask_serves_all_heads();
  group_norm_writes_statistics_at_any_address();
  ranges_and_slopes();
  orders();
  norms_and_divisions();
  comparisons_are_written_as_numbers();
  dtypes_are_mixed();
  weights_are_prepared_once_and_read_transposed();
  weights_of_eight_bits();
  triangles();
  attention_with_a_mask_as_bias();
  rotations();
  pools_and_images();
  convolutions_of_sounds();
  cross_entropy();
  moves();
  OK_(aclrtDestroyStream(stream));
  OK_(aclrtResetDevice(0));
  OK_(aclFinalize());
}
