// A feed-forward block, token by token, as a program for the NPU writes it: nothing here is special to the CPU.
//
//   hidden = gelu(rms_norm(x) · W1)        probabilities = softmax(x + hidden · W2)
//
// Run it with ACLNN_REPORT=report.html for the graph, plan and profile of what it calls.
#include <cmath>
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_softmax.h"

#define CHECK(call)                                                                     \
  do {                                                                                  \
    int status_ = (call);                                                               \
    if (status_ != 0) {                                                                 \
      const char *message_ = aclGetRecentErrMsg();                                      \
      std::fprintf(stderr, "%s: %d: %s\n", #call, status_, message_ ? message_ : "");   \
      std::exit(status_);                                                               \
    }                                                                                   \
  } while (0)

// Device memory, and the tensor that describes it.
struct Array {
  std::vector<int64_t> shape;
  size_t bytes = sizeof(float);
  void *address = nullptr;
  aclTensor *tensor = nullptr;

  explicit Array(std::vector<int64_t> given) : shape(std::move(given)) {
    for (int64_t size : shape) bytes *= (size_t)size;
    CHECK(aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    tensor = aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape.data(),
                             shape.size(), address);
    if (!tensor) CHECK(ACL_ERROR_FAILURE);
  }
  Array(std::vector<int64_t> given, const std::vector<float> &values) : Array(std::move(given)) { set(values); }
  Array(const Array &) = delete;
  ~Array() {
    aclDestroyTensor(tensor);
    aclrtFree(address);
  }
  void set(const std::vector<float> &values) {
    CHECK(aclrtMemcpy(address, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  std::vector<float> get() const {
    std::vector<float> values(bytes / sizeof(float));
    CHECK(aclrtMemcpy(values.data(), bytes, address, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }
};

// Phase two with the stream's workspace, which the next operator of the stream may take at once.
struct Workspace {
  aclrtStream stream;
  void *address = nullptr;
  uint64_t size = 0;
  explicit Workspace(aclrtStream given) : stream(given) {}
  void *of(uint64_t needed) {
    if (needed > size) {
      if (address) {
        CHECK(aclrtSynchronizeStream(stream)); // queued operators need what they were given
        CHECK(aclrtFree(address));
      }
      CHECK(aclrtMalloc(&address, needed, ACL_MEM_MALLOC_HUGE_FIRST));
      size = needed;
    }
    return needed ? address : nullptr;
  }
  ~Workspace() {
    if (address) aclrtFree(address);
  }
};

#define RUN(name, ...)                                                              \
  do {                                                                              \
    uint64_t size_ = 0;                                                             \
    aclOpExecutor *executor_ = nullptr;                                             \
    CHECK(name##GetWorkspaceSize(__VA_ARGS__, &size_, &executor_));                 \
    CHECK(name(workspace.of(size_), size_, executor_, stream));                     \
  } while (0)

static std::vector<float> wave(size_t count, float scale) {
  std::vector<float> values(count);
  for (size_t k = 0; k < count; k++) values[k] = scale * std::sin(0.37f * (float)k);
  return values;
}

int main() {
  const int64_t tokens = 4, width = 64, inner = 256;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream;
  CHECK(aclrtCreateStream(&stream));
  {
    Workspace workspace(stream);
    Array x({tokens, width}), gamma({width}, std::vector<float>((size_t)width, 1.0f));
    Array first({width, inner}, wave((size_t)(width * inner), 0.1f));
    Array second({inner, width}, wave((size_t)(inner * width), 0.05f));
    Array normed({tokens, width}), rstd({tokens, 1}), wide({tokens, inner}), hidden({tokens, inner});
    Array sum({tokens, width}), out({tokens, width});
    float one = 1;
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    std::vector<float> input = wave((size_t)(tokens * width), 1.0f);
    for (int step = 0; step < 8; step++) {
      x.set(input);
      RUN(aclnnRmsNorm, x.tensor, gamma.tensor, 1e-6, normed.tensor, rstd.tensor);
      RUN(aclnnMatmul, normed.tensor, first.tensor, wide.tensor, 0);
      RUN(aclnnGelu, wide.tensor, hidden.tensor);
      RUN(aclnnMatmul, hidden.tensor, second.tensor, sum.tensor, 0);
      RUN(aclnnInplaceAdd, sum.tensor, x.tensor, alpha);
      RUN(aclnnSoftmax, sum.tensor, -1, out.tensor);
      CHECK(aclrtSynchronizeStream(stream));
      input = out.get(); // the next step's tokens
      float total = 0;
      for (int64_t k = 0; k < width; k++) total += input[(size_t)k];
      std::printf("step %d: p[0] = %.6f, sum of the row %.4f\n", step, input[0], total);
    }
    CHECK(aclDestroyScalar(alpha));
  }
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
