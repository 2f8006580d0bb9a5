// Memory, streams, events and callbacks, as programs use them around operators.
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "checks.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_exp.h"

static void start_and_end() {
  OK_(aclInit(nullptr));
  CHECK(aclInit(nullptr) == 100002);
  int32_t device = 7;
  uint32_t count = 0;
  aclrtRunMode mode;
  OK_(aclrtGetDevice(&device)); // before any aclrtSetDevice
  OK_(aclrtGetDeviceCount(&count));
  OK_(aclrtGetRunMode(&mode));
  CHECK(device == 0 && count == 1 && mode == ACL_HOST);
  OK_(aclrtSetDevice(0));
  CHECK(aclrtSetDevice(1) == 107001);
  CHECK(aclrtGetDevice(nullptr) == 107000 && aclrtGetSocName());
}

static void memory() {
  void *address = nullptr;
  CHECK(aclrtMalloc(&address, 0, ACL_MEM_MALLOC_HUGE_FIRST) == 107000);
  CHECK(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST) == 107000);
  OK_(aclrtMalloc(&address, 100, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK((uintptr_t)address % 512 == 0);
  memset(address, 1, 128 + 32); // the next multiple of 32 above, plus 32
  char host[100];
  OK_(aclrtMemset(address, 100, 7, 100));
  OK_(aclrtMemcpy(host, 100, address, 100, ACL_MEMCPY_HOST_TO_DEVICE)); // a wrong kind is no error
  CHECK(host[0] == 7 && host[99] == 7);
  CHECK(aclrtMemcpy(host, 10, address, 11, ACL_MEMCPY_DEVICE_TO_HOST) == 107000);
  CHECK(aclrtMemcpy(host, 100, (char *)address + 100, 61, ACL_MEMCPY_DEVICE_TO_HOST) == 107000);
  OK_(aclrtMemcpy(host, 100, (char *)address + 100, 60, ACL_MEMCPY_DEVICE_TO_HOST)); // what may be touched
  int64_t shape = 25, most = 40, longer = 41;
  CHECK(!aclCreateTensor(&longer, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &longer, 1, address));
  OK_(aclDestroyTensor(plain(&most, 1, ACL_FLOAT, address)));
  aclTensor *view = plain(&shape, 1, ACL_FLOAT, address);
  CHECK(aclSetRawTensorAddr(view, (char *)address + 64) == 161002);
  OK_(aclSetRawTensorAddr(view, (char *)address + 60));
  OK_(aclSetRawTensorAddr(view, address));
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnInplaceExpGetWorkspaceSize(view, &size, &executor));
  OK_(aclSetAclOpExecutorRepeatable(executor));
  CHECK(aclSetInputTensorAddr(executor, 0, view, (char *)address + 64) == 161002);
  OK_(aclSetInputTensorAddr(executor, 0, view, (char *)address + 60));
  OK_(aclnnInplaceExp(nullptr, size, executor, nullptr));
  OK_(aclSetRawTensorAddr(view, address));
  OK_(aclDestroyAclOpExecutor(executor));
  OK_(aclrtFree(address));
  CHECK(aclrtFree(address) == 107000 && aclrtFree(nullptr) == 107000);
  CHECK(!aclCreateTensor(&shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &shape, 1, address));
  CHECK(aclGetRecentErrMsg());
  OK_(aclnnInplaceExpGetWorkspaceSize(view, &size, &executor));
  CHECK(aclnnInplaceExp(nullptr, size, executor, nullptr) == 161002); // of memory that was freed
  CHECK(strstr(aclGetRecentErrMsg(), "freed"));
  OK_(aclDestroyTensor(view));
}

static std::atomic<int> called{0};
static void callback(void *argument) { called += *(int *)argument; }

static void streams_and_events() {
  const int64_t count = 1 << 16;
  std::vector<float> values((size_t)count, 1.0f), found((size_t)count);
  void *x;
  aclTensor *tensor = floats(values.data(), count, &x);
  float one = 1;
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  aclrtStream first, second;
  aclrtEvent begin, end, done;
  OK_(aclrtCreateStream(&first));
  OK_(aclrtCreateStreamWithConfig(&second, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  OK_(aclrtCreateEvent(&begin));
  OK_(aclrtCreateEvent(&end));
  OK_(aclrtCreateEventWithFlag(&done, ACL_EVENT_SYNC));
  OK_(aclrtRecordEvent(begin, first));
  uint64_t size;
  aclOpExecutor *executor;
  void *workspace = device_memory(nullptr, (size_t)count * 8); // of the whole stream
  for (int k = 0; k < 10; k++) {                               // each doubles
    OK_(aclnnInplaceAddGetWorkspaceSize(tensor, tensor, alpha, &size, &executor));
    CHECK(size <= (uint64_t)count * 8);
    OK_(aclnnInplaceAdd(workspace, size, executor, first));
  }
  int step = 5;
  OK_(aclrtLaunchHostFunc(first, callback, &step));
  OK_(aclrtRecordEvent(done, first));
  OK_(aclrtRecordEvent(end, first));
  OK_(aclrtStreamWaitEvent(second, done));
  OK_(aclrtMemcpyAsync(found.data(), found.size() * 4, x, found.size() * 4, ACL_MEMCPY_DEVICE_TO_HOST, second));
  OK_(aclrtSynchronizeStream(second));
  CHECK(found[0] == 1024 && found[found.size() - 1] == 1024 && called == 5);
  OK_(aclrtSynchronizeStreamWithTimeout(first, 10000));
  float ms = -1;
  OK_(aclrtEventElapsedTime(&ms, begin, end));
  CHECK(ms >= 0);
  aclrtEventStatus old_status;
  aclrtEventRecordedStatus status;
  aclrtStreamStatus query;
  OK_(aclrtQueryEvent(done, &old_status));
  OK_(aclrtQueryEventStatus(done, &status));
  OK_(aclrtStreamQuery(first, &query));
  CHECK(old_status == ACL_EVENT_STATUS_COMPLETE && status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  CHECK(query == ACL_STREAM_STATUS_COMPLETE);
  // Memory that is freed is the work's that was queued before, until it is done.
  std::atomic<bool> go{false};
  OK_(aclrtLaunchHostFunc(first, [](void *flag) { while (!*(std::atomic<bool> *)flag) std::this_thread::yield(); }, &go));
  OK_(aclnnInplaceAddGetWorkspaceSize(tensor, tensor, alpha, &size, &executor));
  OK_(aclnnInplaceAdd(workspace, size, executor, first));
  OK_(aclrtMemcpyAsync(found.data(), found.size() * 4, x, found.size() * 4, ACL_MEMCPY_DEVICE_TO_HOST, first));
  std::thread opener([&go] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    go = true;
  });
  OK_(aclrtFree(x));
  CHECK(found[0] == 2048 && found[found.size() - 1] == 2048); // freeing has waited
  OK_(aclrtSynchronizeStream(first));
  opener.join();
  OK_(aclrtFree(workspace));
  for (auto event : {begin, end, done}) OK_(aclrtDestroyEvent(event));
  OK_(aclrtDestroyStream(first));
  CHECK(aclrtDestroyStream(first) == 107017 && aclrtSynchronizeStream(first) == 107017);
  OK_(aclrtDestroyStream(second));
  OK_(aclDestroyTensor(tensor));
  OK_(aclDestroyScalar(alpha));
}

static void halves() {
  CHECK(aclFloatToFloat16(1.0f) == 0x3C00 && aclFloat16ToFloat(0x3C00) == 1.0f);
  CHECK(aclFloatToFloat16(INFINITY) == 0x7BFF && aclFloatToFloat16(-INFINITY) == 0xFBFF);
  CHECK(aclFloatToFloat16(NAN) == 0x7BFF && aclFloat16ToFloat(0x7C00) == 65536.0f);
  CHECK(aclDataTypeSize(ACL_BF16) == 2 && aclDataTypeSize(ACL_COMPLEX128) == 16);
}

int main() {
  start_and_end();
  memory();
  streams_and_events();
  halves();
  OK_(aclrtResetDevice(0));
  OK_(aclFinalize());
  return 0;
}
