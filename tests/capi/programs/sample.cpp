// A step of training as vendors' samples are written: statuses are checked by macros, tensors made by a template,
// and everything is destroyed at the end, in the order in which it was made.
#include <cmath>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_apply_adam_w_v2.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_max_dim.h"
#include "aclnnop/level2/aclnn_index_add.h"

#define CHECK_RET(cond, return_expr) do { if (!(cond)) { return_expr; } } while (0)
#define LOG_PRINT(message, ...) do { printf(message, ##__VA_ARGS__); } while (0)

static int64_t GetShapeSize(const std::vector<int64_t> &shape) {
  int64_t size = 1;
  for (auto i : shape) size *= i;
  return size;
}

static int Init(int32_t deviceId, aclrtStream *stream) {
  auto ret = aclInit(nullptr);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclInit failed. ERROR: %d\n", ret); return ret);
  ret = aclrtSetDevice(deviceId);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSetDevice failed. ERROR: %d\n", ret); return ret);
  ret = aclrtCreateStream(stream);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtCreateStream failed. ERROR: %d\n", ret); return ret);
  return 0;
}

template <typename T>
int CreateAclTensor(const std::vector<T> &hostData, const std::vector<int64_t> &shape, void **deviceAddr,
                    aclDataType dataType, aclTensor **tensor) {
  auto size = GetShapeSize(shape) * sizeof(T);
  auto ret = aclrtMalloc(deviceAddr, size, ACL_MEM_MALLOC_HUGE_FIRST);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtMalloc failed. ERROR: %d\n", ret); return ret);
  ret = aclrtMemcpy(*deviceAddr, size, hostData.data(), size, ACL_MEMCPY_HOST_TO_DEVICE);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtMemcpy failed. ERROR: %d\n", ret); return ret);
  std::vector<int64_t> strides(shape.size(), 1);
  for (int64_t i = (int64_t)shape.size() - 2; i >= 0; i--) strides[i] = shape[i + 1] * strides[i + 1];
  *tensor = aclCreateTensor(shape.data(), shape.size(), dataType, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                            shape.size(), *deviceAddr);
  return *tensor ? 0 : 1;
}

static aclrtStream stream;
static std::vector<aclTensor *> tensors;
static std::vector<void *> addresses;

template <typename T> aclTensor *Make(const std::vector<int64_t> &shape, aclDataType dtype, const std::vector<T> &data) {
  void *address = nullptr;
  aclTensor *tensor = nullptr;
  if (CreateAclTensor(data, shape, &address, dtype, &tensor)) exit(1);
  tensors.push_back(tensor);
  addresses.push_back(address);
  return tensor;
}

static std::vector<float> Read(aclTensor *tensor, size_t count) {
  void *address = nullptr;
  std::vector<float> found(count);
  if (aclGetRawTensorAddr(tensor, &address)) exit(2);
  if (aclrtMemcpy(found.data(), count * 4, address, count * 4, ACL_MEMCPY_DEVICE_TO_HOST)) exit(3);
  return found;
}

#define CALL(name, ...)                                                                                              \
  do {                                                                                                               \
    uint64_t workspaceSize = 0;                                                                                      \
    aclOpExecutor *executor;                                                                                         \
    auto ret = name##GetWorkspaceSize(__VA_ARGS__, &workspaceSize, &executor);                                       \
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT(#name "GetWorkspaceSize failed. ERROR: %d\n%s\n", ret, aclGetRecentErrMsg()); return ret); \
    void *workspaceAddr = nullptr;                                                                                   \
    if (workspaceSize > 0) {                                                                                         \
      ret = aclrtMalloc(&workspaceAddr, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST);                                   \
      CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("allocate workspace failed. ERROR: %d\n", ret); return ret);           \
    }                                                                                                                \
    ret = name(workspaceAddr, workspaceSize, executor, stream);                                                      \
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT(#name " failed. ERROR: %d\n", ret); return ret);                         \
    ret = aclrtSynchronizeStream(stream);                                                                            \
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSynchronizeStream failed. ERROR: %d\n", ret); return ret);         \
    if (workspaceAddr) aclrtFree(workspaceAddr);                                                                     \
  } while (0)

static int Near(const char *name, float found, double wanted) {
  if (std::fabs(found - wanted) <= 1e-6 * std::fabs(wanted) + 1e-7) return 0;
  LOG_PRINT("%s is %.9g, must be %.9g\n", name, found, wanted);
  return 1;
}

static int CrossEntropy() {
  const std::vector<float> x = {1, 2, 3, 3, 1, 0};
  auto input = Make({2, 3}, ACL_FLOAT, x);
  auto target = Make<int64_t>({2}, ACL_INT64, {0, 2});
  auto loss = Make<float>({1}, ACL_FLOAT, {0}), logProb = Make<float>({2, 3}, ACL_FLOAT, std::vector<float>(6));
  auto zloss = Make<float>({1}, ACL_FLOAT, {0}), lse = Make<float>({2}, ACL_FLOAT, {0, 0});
  char reduction[] = "mean";
  CALL(aclnnCrossEntropyLoss, input, target, nullptr, reduction, -100, 0.0, 0.0, false, loss, logProb, zloss, lse);
  double sums[2] = {0, 0};
  for (int i = 0; i < 6; i++) sums[i / 3] += std::exp((double)x[i]);
  return Near("loss", Read(loss, 1)[0], ((std::log(sums[0]) - 1) + (std::log(sums[1]) - 0)) / 2);
}

static int AdamW() {
  auto var = Make<float>({2}, ACL_FLOAT, {1, -2}), m = Make<float>({2}, ACL_FLOAT, {0, 0}), v = Make<float>({2}, ACL_FLOAT, {0, 0});
  auto grad = Make<float>({2}, ACL_FLOAT, {0.5f, 0.25f}), step = Make<float>({1}, ACL_FLOAT, {0});
  const float lr = 0.1f, beta1 = 0.9f, beta2 = 0.99f, decay = 0.01f, eps = 1e-8f;
  CALL(aclnnApplyAdamWV2, var, m, v, nullptr, grad, step, lr, beta1, beta2, decay, eps, false, false);
  const auto found = Read(var, 2);
  // At the first step both averages are corrected to the gradient itself.
  return Near("var[0]", found[0], 1 * (1 - lr * decay) - lr * 0.5 / (0.5 + eps)) +
         Near("var[1]", found[1], -2 * (1 - lr * decay) - lr * 0.25 / (0.25 + eps));
}

static int IndexAddAndMax() {
  auto self = Make<float>({3, 2}, ACL_FLOAT, {1, 2, 3, 4, 5, 6}), source = Make<float>({3, 2}, ACL_FLOAT, {1, 1, 1, 1, 9, 9});
  auto index = Make<int64_t>({3}, ACL_INT64, {1, 1, 0}), indices = Make<int64_t>({2}, ACL_INT64, {7, 7});
  auto out = Make<float>({3, 2}, ACL_FLOAT, std::vector<float>(6)), most = Make<float>({2}, ACL_FLOAT, {0, 0});
  float one = 2;
  auto alpha = aclCreateScalar(&one, ACL_FLOAT);
  CALL(aclnnIndexAdd, self, 0, index, source, alpha, out);
  CALL(aclnnMaxDim, out, 0, false, most, indices);
  aclDestroyScalar(alpha);
  const auto found = Read(out, 6);
  const float wanted[] = {19, 20, 7, 8, 5, 6};
  int wrong = 0;
  for (int i = 0; i < 6; i++) wrong += Near("out", found[i], wanted[i]);
  return wrong + Near("max", Read(most, 2)[1], 20);
}

int main() {
  int32_t deviceId = 0;
  auto ret = Init(deviceId, &stream);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("Init acl failed. ERROR: %d\n", ret); return ret);
  ret = CrossEntropy();
  CHECK_RET(ret == ACL_SUCCESS, return ret);
  ret = AdamW();
  CHECK_RET(ret == ACL_SUCCESS, return ret);
  ret = IndexAddAndMax();
  CHECK_RET(ret == ACL_SUCCESS, return ret);
  for (auto one : tensors) aclDestroyTensor(one);
  for (auto one : addresses) aclrtFree(one);
  aclrtDestroyStream(stream);
  aclrtResetDevice(deviceId);
  aclFinalize();
  return 0;
}
