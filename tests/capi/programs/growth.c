/* Memory does not grow with the number of calls, neither of those that succeed nor of those that fail. */
#include <malloc.h>

#include "checks.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_reduce_sum.h"

static void calls(aclrtStream stream, int count) {
  const int64_t shape[] = {2, 8}, row[] = {8}, longer[] = {4, 8};
  float one = 1;
  for (int k = 0; k < count; k++) {
    void *memory = device_memory(0, 512);
    aclTensor *x = plain(shape, 2, ACL_FLOAT, memory), *sum = plain(row, 1, ACL_FLOAT, (char *)memory + 128);
    aclTensor *both = plain(longer, 2, ACL_FLOAT, (char *)memory + 256);
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    int64_t axis = 0;
    aclIntArray *axes = aclCreateIntArray(&axis, 1);
    aclTensor *items[] = {plain(shape, 2, ACL_FLOAT, memory), plain(shape, 2, ACL_FLOAT, memory)};
    aclTensorList *list = aclCreateTensorList((const aclTensor *const *)items, 2);
    uint64_t size;
    aclOpExecutor *executor;
    OK_(aclnnInplaceAddGetWorkspaceSize(x, x, alpha, &size, &executor));
    CHECK(size == 0 || size < 4096);
    OK_(aclDestroyAclOpExecutor(executor));
    OK_(aclnnReduceSumGetWorkspaceSize(x, axes, false, ACL_FLOAT, sum, &size, &executor));
    RUN(aclnnReduceSum, size, executor, stream);
    OK_(aclnnCatGetWorkspaceSize(list, 0, both, &size, &executor));
    OK_(aclSetAclOpExecutorRepeatable(executor));
    OK_(aclSetTensorAddr(executor, 0, items[0], memory));
    RUN(aclnnCat, size, executor, stream);
    OK_(aclDestroyAclOpExecutor(executor));
    CHECK(aclnnAddGetWorkspaceSize(x, 0, alpha, sum, &size, &executor) == 161001);
    OK_(aclDestroyTensorList(list));
    OK_(aclDestroyIntArray(axes));
    OK_(aclDestroyScalar(alpha));
    OK_(aclDestroyTensor(x));
    OK_(aclDestroyTensor(sum));
    OK_(aclDestroyTensor(both));
    OK_(aclrtFree(memory));
  }
}

int main(void) {
  aclrtStream stream;
  OK_(aclInit(0));
  OK_(aclrtCreateStream(&stream));
  calls(0, 200);
  calls(stream, 200);
  size_t before = mallinfo2().uordblks;
  calls(0, 300);
  calls(stream, 300);
  size_t after = mallinfo2().uordblks;
  CHECK(after < before + 30000); /* 50 bytes a round */
  return 0;
}
