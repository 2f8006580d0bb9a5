// A decoding step in the manner of a server: expert gates, a cache written by indices, sampling from the largest
// logits, all on one stream with a pool for workspaces, captured once and replayed for each token.
#include <algorithm>
#include <cmath>
#include <vector>

#include "aclnnop/aclnn_apply_top_k_top_p.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_index_put_impl.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_one_hot.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_scatter_add.h"
#include "aclnnop/aclnn_sort.h"
#include "aclnnop/aclnn_topk.h"
#include "checks.h"

static aclrtStream stream;

struct Array {
  void *address = nullptr;
  aclTensor *tensor = nullptr;
  size_t bytes = 0;
  template <typename T> Array(const std::vector<int64_t> &shape, aclDataType dtype, const std::vector<T> &values) {
    bytes = values.size() * sizeof(T);
    address = device_memory(values.data(), bytes);
    tensor = plain(shape.data(), (int)shape.size(), dtype, address);
  }
  Array(const Array &) = delete;
  ~Array() {
    if (tensor) aclDestroyTensor(tensor);
    aclrtFree(address);
  }
  template <typename T> std::vector<T> read() const {
    std::vector<T> found(bytes / sizeof(T));
    OK_(aclrtMemcpy(found.data(), bytes, address, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return found;
  }
  template <typename T> void write(const std::vector<T> &values) {
    OK_(aclrtMemcpy(address, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
};

// One block for all workspaces: an operator has it until the next one of the stream.
static char *pool;
static const size_t pool_bytes = 1 << 20;

template <typename Plan, typename Run, typename... Given> void call(Plan plan, Run run, Given... given) {
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_(plan(given..., &size, &executor));
  CHECK(size <= pool_bytes);
  OK_(run(size ? pool : nullptr, size, executor, stream));
}

// The k largest of each row with their softmax, and how many tokens each expert has.
static void gates() {
  const std::vector<float> scores = {0, 1, 2, 3, 3, 2, 1, 0, 1, 5, 1, 5};
  Array x({3, 4}, ACL_FLOAT, scores), weights({3, 2}, ACL_FLOAT, std::vector<float>(6));
  Array experts({3, 2}, ACL_INT32, std::vector<int32_t>(6)), rows({3, 2}, ACL_INT32, std::vector<int32_t>(6));
  call(aclnnMoeGatingTopKSoftmaxGetWorkspaceSize, aclnnMoeGatingTopKSoftmax, x.tensor, (const aclTensor *)nullptr,
       (int64_t)2, weights.tensor, experts.tensor, rows.tensor);
  Array flat({6}, ACL_INT64, std::vector<int64_t>(6)), ones({6}, ACL_INT64, std::vector<int64_t>(6, 1));
  Array counts({4}, ACL_INT64, std::vector<int64_t>(4));
  const int64_t six = 6;
  aclTensor *listed = plain(&six, 1, ACL_INT32, experts.address);
  call(aclnnCastGetWorkspaceSize, aclnnCast, listed, ACL_INT64, flat.tensor);
  call(aclnnScatterAddGetWorkspaceSize, aclnnScatterAdd, counts.tensor, (int64_t)0, flat.tensor, ones.tensor, counts.tensor);
  OK_(aclrtSynchronizeStream(stream));
  OK_(aclDestroyTensor(listed));
  CHECK((experts.read<int32_t>() == std::vector<int32_t>{3, 2, 0, 1, 1, 3}));
  CHECK((counts.read<int64_t>() == std::vector<int64_t>{1, 2, 1, 2}));
  const auto found = weights.read<float>();
  for (int row = 0; row < 3; row++) {
    double sum = 0;
    for (int k = 0; k < 4; k++) sum += std::exp(scores[4 * row + k] - 5.0);
    for (int k = 0; k < 2; k++) {
      const int at = experts.read<int32_t>()[2 * row + k];
      CHECK(std::fabs(found[2 * row + k] - std::exp(scores[4 * row + at] - 5.0) / sum) < 1e-7);
    }
  }
}

// Rows of a cache at (block, place), given by two lists of indices.
static void cache() {
  Array kept({2, 3, 2}, ACL_FLOAT, std::vector<float>(12)), fresh({2, 2}, ACL_FLOAT, std::vector<float>{1, 2, 3, 4});
  Array block({2}, ACL_INT32, std::vector<int32_t>{1, 0}), place({2}, ACL_INT32, std::vector<int32_t>{2, -3});
  const aclTensor *both[] = {block.tensor, place.tensor};
  aclTensorList *indices = aclCreateTensorList(both, 2);
  CHECK(indices);
  call(aclnnIndexPutImplGetWorkspaceSize, aclnnIndexPutImpl, kept.tensor, indices, fresh.tensor, false, false);
  OK_(aclDestroyTensorList(indices)); // before the stream is waited for, and with its tensors
  block.tensor = place.tensor = nullptr;
  OK_(aclrtSynchronizeStream(stream));
  CHECK((kept.read<float>() == std::vector<float>{3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}));
}

// Logits are cut to the likely ones; a replayed graph does it for each token.
static void sampling() {
  Array logits({2, 5}, ACL_FLOAT, std::vector<float>{1, 4, 2, 8, 5, 1, 1, 9, 1, 1}), p({2}, ACL_FLOAT, std::vector<float>{1, 0.5f});
  Array k({2}, ACL_INT32, std::vector<int32_t>{3, 5}), kept({2, 5}, ACL_FLOAT, std::vector<float>(10));
  Array best({2, 2}, ACL_FLOAT, std::vector<float>(4)), which({2, 2}, ACL_INT64, std::vector<int64_t>(4));
  Array sorted({2, 5}, ACL_FLOAT, std::vector<float>(10)), order({2, 5}, ACL_INT64, std::vector<int64_t>(10));
  aclmdlRI graph;
  OK_(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  call(aclnnApplyTopKTopPGetWorkspaceSize, aclnnApplyTopKTopP, logits.tensor, p.tensor, k.tensor, kept.tensor);
  call(aclnnTopkGetWorkspaceSize, aclnnTopk, kept.tensor, (int64_t)2, (int64_t)-1, true, true, best.tensor, which.tensor);
  call(aclnnSortGetWorkspaceSize, aclnnSort, kept.tensor, true, (int64_t)-1, true, sorted.tensor, order.tensor);
  OK_(aclmdlRICaptureEnd(stream, &graph));
  for (int token = 0; token < 3; token++) {
    std::vector<float> now = {1, 4, 2, 8, 5, 1, 1, 9, 1, 1};
    std::rotate(now.begin(), now.begin() + token, now.begin() + 5);
    logits.write(now);
    OK_(aclmdlRIExecuteAsync(graph, stream));
    OK_(aclrtSynchronizeStream(stream));
    std::vector<int> expected(5);
    for (int at = 0; at < 5; at++) expected[at] = at;
    std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) { return now[a] > now[b]; });
    const auto found = kept.read<float>();
    for (int at = 0; at < 5; at++) CHECK(found[at] == (now[at] >= 4 ? now[at] : -INFINITY));
    for (int at = 0; at < 2; at++) CHECK(which.read<int64_t>()[at] == expected[at] && best.read<float>()[at] == now[expected[at]]);
    for (int at = 0; at < 3; at++) CHECK(order.read<int64_t>()[at] == expected[at]);
    CHECK(best.read<float>()[2] == 9 && which.read<int64_t>()[2] == 2 && best.read<float>()[3] == -INFINITY);
  }
  OK_(aclmdlRIDestroy(graph));
}

// Embeddings by the product with a row of ones and zeros.
static void one_hot() {
  Array ids({3}, ACL_INT32, std::vector<int32_t>{2, 0, 7}), hot({3, 4}, ACL_FLOAT, std::vector<float>(12));
  Array on({1}, ACL_FLOAT, std::vector<float>{2}), off({1}, ACL_FLOAT, std::vector<float>{0});
  call(aclnnOneHotGetWorkspaceSize, aclnnOneHot, ids.tensor, 4, on.tensor, off.tensor, (int64_t)-1, hot.tensor);
  OK_(aclrtSynchronizeStream(stream));
  CHECK((hot.read<float>() == std::vector<float>{0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
}

int main() {
  OK_(aclInit(nullptr));
  OK_(aclrtSetDevice(0));
  OK_(aclrtCreateStream(&stream));
  pool = (char *)device_memory(nullptr, pool_bytes);
  for (int again = 0; again < 2; again++) {
    gates();
    cache();
    sampling();
    one_hot();
  }
  OK_(aclrtFree(pool));
  OK_(aclrtDestroyStream(stream));
  OK_(aclrtResetDevice(0));
  OK_(aclFinalize());
}
