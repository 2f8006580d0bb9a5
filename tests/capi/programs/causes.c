/* Phase one names the first cause of a null pointer; threads with small stacks are refused. */
#include <limits.h>
#include <pthread.h>

#include "checks.h"

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_permute.h"

static const int64_t shape[] = {2, 3}, wrong[] = {-1}, longer[] = {3, 3};
static float x[6], y[6];

/* Whether that is the whole first line of the message. */
static int is_said(const char *text) {
  const char *message = aclGetRecentErrMsg();
  int found = message && !strncmp(message, text, strlen(text)) && strchr("\n", message[strlen(text)]);
  if (!found) printf("%s\nexpected: %s\n", message ? message : "no message", text);
  return found;
}

static aclTensor *made(const int64_t *dims, int ndim) {
  return aclCreateTensor(dims, (uint64_t)ndim, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, shape, 2, x);
}

static void causes(void) {
  uint64_t size;
  aclOpExecutor *executor = (aclOpExecutor *)x;
  aclTensor *good = made(shape, 2), *list[] = {good, 0};
  CHECK(aclnnGeluGetWorkspaceSize(0, good, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR && executor == 0);
  CHECK(is_said("aclnnGeluGetWorkspaceSize: self is null"));

  CHECK(!made(wrong, 1));
  CHECK(aclGetRecentErrMsg());
  OK_(aclnnGeluGetWorkspaceSize(good, good, &size, &executor));
  OK_(aclDestroyAclOpExecutor(executor));
  CHECK(aclnnGeluGetWorkspaceSize(0, good, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(is_said("aclnnGeluGetWorkspaceSize: self is null: aclCreateTensor failed: viewDims[0] is -1, must not be negative nor above 2^62"));
  CHECK(aclnnGeluGetWorkspaceSize(0, good, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(is_said("aclnnGeluGetWorkspaceSize: self is null"));

  /* The first one counts; the latest one is named, too. */
  void *memory = device_memory(0, 16);
  CHECK(!aclCreateTensor(longer, 2, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, longer, 2, (char *)memory + 48));
  CHECK(!made(wrong, 1));
  CHECK(aclnnGeluGetWorkspaceSize(good, 0, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  const char *message = aclGetRecentErrMsg();
  CHECK(strstr(message, "out is null: aclCreateTensor failed: tensorData is address "));
  CHECK(strstr(message, "0 bytes before the end of its allocation, but 36 bytes are used; the latest time: viewDims[0] is -1"));
  OK_(aclrtFree(memory));

  /* Of each kind. */
  CHECK(!aclCreateScalar(x, ACL_STRING) && !aclCreateIntArray(0, 1) && !made(wrong, 1));
  CHECK(!aclCreateTensorList((const aclTensor *const *)list, 2));
  CHECK(aclnnAddGetWorkspaceSize(good, good, 0, good, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(strstr(aclGetRecentErrMsg(), "alpha is null: aclCreateScalar failed: "));
  CHECK(aclnnPermuteGetWorkspaceSize(good, 0, good, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(strstr(aclGetRecentErrMsg(), "dims is null: aclCreateIntArray failed: value is null, but size is 1"));
  CHECK(aclnnCatGetWorkspaceSize(0, 0, good, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(strstr(aclGetRecentErrMsg(), "tensors is null: aclCreateTensorList failed: value[1] is null: aclCreateTensor failed: viewDims[0] is -1"));
  OK_(aclDestroyTensor(good));
}

/* Each call gives a status; the process goes on. */
static void *little_stack(void *given) {
  aclTensor *a = given, *b;
  aclScalar *one;
  uint64_t size = 9;
  aclOpExecutor *executor = (aclOpExecutor *)x;
  aclrtStream stream;
  float value = 1;
  void *memory;
  CHECK(aclnnGeluGetWorkspaceSize(a, a, &size, &executor) == ACLNN_ERR_INNER);
  CHECK(executor == 0 && size == 0 && strstr(aclGetRecentErrMsg(), "less than 64 KiB left of its stack"));
  CHECK(aclnnGeluGetWorkspaceSize(0, 0, &size, &executor) == ACLNN_ERR_INNER);
  CHECK(aclnnGelu(0, 0, 0, 0) == ACLNN_ERR_INNER && strstr(aclGetRecentErrMsg(), "aclnnGelu: the thread"));
  CHECK(!made(wrong, 1) && strstr(aclGetRecentErrMsg(), "aclCreateTensor: the thread has less than"));
  CHECK(!aclCreateScalar(x, ACL_STRING) && aclGetRecentErrMsg());
  CHECK(aclSetInputTensorAddr(0, 0, a, x) == ACLNN_ERR_INNER && aclDestroyAclOpExecutor(0) && aclGetRecentErrMsg());
  CHECK(aclSetAclOpExecutorRepeatable(0) == ACLNN_ERR_INNER);
  CHECK(aclmdlRICaptureEnd(0, (aclmdlRI *)&memory) != 0 && strstr(aclGetRecentErrMsg(), "left of its stack"));
  OK_(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_(aclrtMemset(memory, 64, 0, 64));
  OK_(aclrtCreateStream(&stream));
  OK_(aclrtMemsetAsync(memory, 64, 1, 64, stream));
  OK_(aclrtSynchronizeStream(stream));
  OK_(aclrtDestroyStream(stream));
  OK_(aclrtFree(memory));
  CHECK((b = made(shape, 2)) && (one = aclCreateScalar(&value, ACL_FLOAT)));
  OK_(aclDestroyTensor(b));
  OK_(aclDestroyScalar(one));
  return 0;
}

static void on_a_thread_of(size_t bytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  aclTensor *tensor = made(shape, 2);
  OK_(pthread_attr_init(&attributes));
  OK_(pthread_attr_setstacksize(&attributes, bytes));
  OK_(pthread_create(&thread, &attributes, little_stack, tensor));
  OK_(pthread_join(thread, 0));
  OK_(pthread_attr_destroy(&attributes));
  OK_(aclDestroyTensor(tensor));
}

static void *first_call(void *given) {
  (void)given;
  CHECK(aclInit(0) == ACL_ERROR_UNINITIALIZE && strstr(aclGetRecentErrMsg(), "call aclInit on another thread first"));
  return 0;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  memset(y, 0, sizeof y);
  OK_(pthread_attr_init(&attributes));
  OK_(pthread_attr_setstacksize(&attributes, 32 << 10));
  OK_(pthread_create(&thread, &attributes, first_call, 0));
  OK_(pthread_join(thread, 0));
  causes();
  on_a_thread_of(32 << 10);
  on_a_thread_of(48 << 10);
  return 0;
}
