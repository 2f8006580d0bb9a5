// Programs end in any way, at any time, without having cleaned up.
#include <csignal>
#include <thread>
#include <unistd.h>

#include "checks.h"

#include "aclnnop/aclnn_exp.h"

static aclTensor *tensor;
static void *memory;

// Runs after `main`, when the library serves no more: functions give statuses then.
struct Late {
  ~Late() {
    if (!tensor) return;
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    int status = aclnnExpGetWorkspaceSize(tensor, tensor, &size, &executor);
    if (status != 561000 || !aclGetRecentErrMsg()) _exit(77);
    if (aclDestroyTensor(tensor)) _exit(78);
    if (aclrtFree(memory) == 0) _exit(79);
  }
};
static Late late;

int main(int argc, char **argv) {
  signal(SIGINT, SIG_DFL); // who starts tests in the background may have it ignored
  const char *how = argc > 1 ? argv[1] : "return";
  const int64_t count = 1 << 20;
  aclrtStream stream;
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclInit(nullptr));
  OK_(aclrtSetDevice(0));
  OK_(aclrtCreateStream(&stream));
  memory = device_memory(nullptr, (size_t)count * sizeof(float));
  tensor = plain(&count, 1, ACL_FLOAT, memory);
  for (int k = 0; k < 20; k++) {
    OK_(aclnnInplaceExpGetWorkspaceSize(tensor, &size, &executor));
    OK_(aclnnInplaceExp(nullptr, size, executor, stream)); // and nobody waits for it
  }
  OK_(aclnnExpGetWorkspaceSize(tensor, tensor, &size, &executor)); // nobody runs
  if (!strcmp(how, "exit")) exit(3);
  if (!strcmp(how, "_exit")) _exit(4);
  if (!strcmp(how, "interrupt")) raise(SIGINT);
  if (!strcmp(how, "thread")) std::thread([] { exit(5); }).join();
  if (!strcmp(how, "finalize")) OK_(aclFinalize());
  return 0;
}
