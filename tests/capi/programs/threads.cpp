// Four threads that Python never saw, each with a stream, both phases on all of them at once.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "checks.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_softmax.h"

using Tensor = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor *)>;
using Memory = std::unique_ptr<void, aclError (*)(void *)>;

static std::atomic<int> right{0};

static void work(int number, int rounds) {
  const int64_t shape[] = {8, 16 + number};
  const int64_t count = elements_of(shape, 2);
  std::vector<float> x((size_t)count), found((size_t)count);
  for (int64_t k = 0; k < count; k++) x[(size_t)k] = (float)(k % 7) + (float)number;
  const size_t bytes = (size_t)count * sizeof(float);
  OK_(aclrtSetDevice(0));
  aclrtStream stream;
  OK_(aclrtCreateStream(&stream));
  Memory in(device_memory(x.data(), bytes), aclrtFree), sum(device_memory(nullptr, bytes), aclrtFree);
  Memory out(device_memory(nullptr, bytes), aclrtFree);
  for (int round = 0; round < rounds; round++) {
    float value = 1;
    aclScalar *alpha = aclCreateScalar(&value, ACL_FLOAT);
    // Tensors go as soon as phase two has returned.
    Tensor a(plain(shape, 2, ACL_FLOAT, in.get()), aclDestroyTensor);
    Tensor b(plain(shape, 2, ACL_FLOAT, sum.get()), aclDestroyTensor);
    Tensor c(plain(shape, 2, ACL_FLOAT, out.get()), aclDestroyTensor);
    uint64_t size = 0, next = 0, last = 0;
    aclOpExecutor *first, *second, *third;
    OK_(aclnnAddGetWorkspaceSize(a.get(), a.get(), alpha, b.get(), &size, &first));
    OK_(aclnnMulGetWorkspaceSize(b.get(), a.get(), c.get(), &next, &second));
    OK_(aclnnInplaceMulGetWorkspaceSize(c.get(), b.get(), &last, &third));
    CHECK(size == 0 && next == 0 && last == 0);
    OK_(aclnnAdd(nullptr, 0, first, stream));
    OK_(aclnnMul(nullptr, 0, second, stream));
    OK_(aclnnInplaceMul(nullptr, 0, third, stream));
    OK_(aclDestroyScalar(alpha));
  }
  OK_(aclrtSynchronizeStream(stream));
  fetch(found.data(), out.get(), count);
  for (int64_t k = 0; k < count; k++) CHECK(found[(size_t)k] == 4 * x[(size_t)k] * x[(size_t)k] * x[(size_t)k]);
  // A failure is this thread's own.
  aclOpExecutor *executor;
  uint64_t size;
  CHECK(aclnnMulGetWorkspaceSize(nullptr, nullptr, nullptr, &size, &executor) == 161001);
  CHECK(aclGetRecentErrMsg() != nullptr && aclGetRecentErrMsg() == nullptr);
  OK_(aclrtDestroyStream(stream));
  right++;
}

int main() {
  OK_(aclInit(nullptr));
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; number++) threads.emplace_back(work, number, 50);
  for (auto &one : threads) one.join();
  CHECK(right == 4 && aclGetRecentErrMsg() == nullptr);
  OK_(aclFinalize());
  return 0;
}
