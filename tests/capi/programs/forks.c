/* Before the first call of the library, forks are as usual; afterwards children get statuses. */
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"

#include "aclnnop/aclnn_sqrt.h"

static int compute(void) {
  float value = 9, root = 0;
  int64_t one = 1;
  uint64_t size;
  aclOpExecutor *executor;
  aclTensor *x = plain(&one, 1, ACL_FLOAT, &value), *y = plain(&one, 1, ACL_FLOAT, &root);
  int status = aclnnSqrtGetWorkspaceSize(x, y, &size, &executor);
  if (status) return status;
  OK_(aclnnSqrt(0, size, executor, 0));
  return root == 3 ? 0 : 1;
}

static int status_of(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main(void) {
  pid_t child = fork();
  if (child == 0) _exit(compute() == 0 ? 0 : 1);
  CHECK(compute() == 0);
  CHECK(status_of(child) == 0);
  child = fork();
  if (child == 0) {
    int status = compute();
    const char *message = aclGetRecentErrMsg();
    _exit(status == 561000 && message && strstr(message, "forked") && aclInit(0) == 100001 ? 0 : 2);
  }
  CHECK(status_of(child) == 0);
  CHECK(compute() == 0);
  return 0;
}
