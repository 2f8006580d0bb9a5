/* What calls of the C interface cost, warm: 16 float32 elements, one thread. `tools/capi_costs.py` builds and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

#define CHECK(call) do { if (call) { printf("%s: %s\n", #call, aclGetRecentErrMsg()); exit(1); } } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least of some rounds, in nanoseconds for each repetition. */
#define MEASURE(name, count, ...)                           \
  do {                                                      \
    double least = 1e18;                                    \
    for (int round = 0; round < 9; round++) {               \
      double begin = now();                                 \
      for (int k = 0; k < (count); k++) { __VA_ARGS__; }    \
      double took = (now() - begin) / (count);              \
      if (took < least) least = took;                       \
    }                                                       \
    printf("%s %.1f\n", name, least);                       \
  } while (0)

int main(void) {
  int64_t shape[] = {16};
  float values[3][16] = {{1}, {2}, {0}}, one = 1;
  uint64_t size;
  aclOpExecutor *executor;
  aclrtStream stream;
  double begin = now();
  CHECK(aclInit(0));
  double started = now();
  aclTensor *t[3];
  for (int k = 0; k < 3; k++)
    t[k] = aclCreateTensor(shape, 1, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, shape, 1, values[k]);
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  CHECK(aclnnAddGetWorkspaceSize(t[0], t[1], alpha, t[2], &size, &executor));
  CHECK(aclnnAdd(0, size, executor, 0));
  double ran = now();
  printf("init_ns %.1f\nfirst_ns %.1f\n", started - begin, ran - begin);
  CHECK(aclrtCreateStream(&stream));
#define TENSOR(k) aclCreateTensor(shape, 1, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, shape, 1, values[k])
  MEASURE("tensor", 100000, aclDestroyTensor(TENSOR(0)));
  MEASURE("scalar", 100000, aclDestroyScalar(aclCreateScalar(&one, ACL_FLOAT)));
  MEASURE("both_phases", 100000, {
    CHECK(aclnnAddGetWorkspaceSize(t[0], t[1], alpha, t[2], &size, &executor));
    CHECK(aclnnAdd(0, size, executor, 0));
  });
  MEASURE("both_phases_and_tensors", 100000, {
    aclTensor *a = TENSOR(0), *b = TENSOR(1), *c = TENSOR(2);
    CHECK(aclnnAddGetWorkspaceSize(a, b, alpha, c, &size, &executor));
    CHECK(aclnnAdd(0, size, executor, 0));
    aclDestroyTensor(a);
    aclDestroyTensor(b);
    aclDestroyTensor(c);
  });
  CHECK(aclnnAddGetWorkspaceSize(t[0], t[1], alpha, t[2], &size, &executor));
  CHECK(aclSetAclOpExecutorRepeatable(executor));
  MEASURE("repeated_phase_two", 100000, CHECK(aclnnAdd(0, size, executor, 0)));
  MEASURE("launch_on_stream", 300, CHECK(aclnnAdd(0, size, executor, stream)));
  CHECK(aclrtSynchronizeStream(stream));
  void *memory;
  MEASURE("malloc_and_free", 20000, { CHECK(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST)); CHECK(aclrtFree(memory)); });
  return 0;
}
