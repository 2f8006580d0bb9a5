/* What is wrong is a status and a message, and never a crash. */
#include "checks.h"

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_backward_v2.h"
#include "aclnnop/aclnn_leaky_relu.h"

static int says(const char *text) {
  const char *message = aclGetRecentErrMsg();
  int found = message && strstr(message, text);
  if (!found) printf("%s: no %s\n", message ? message : "no message", text);
  return found;
}

int main(void) {
  const int64_t shape[] = {2, 3}, other[] = {3}, negative[] = {-1};
  float x[6] = {0}, y[6];
  uint64_t size = 9, count;
  aclOpExecutor *executor = (aclOpExecutor *)x;
  int64_t *sizes;
  aclFormat format;
  void *address;

  /* Descriptions. */
  CHECK(!aclCreateTensor(0, 2, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, shape, 2, x) && says("viewDims"));
  CHECK(!aclCreateTensor(negative, 1, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, shape, 2, x) && says("viewDims[0] is -1"));
  CHECK(!aclCreateTensor(shape, 2, ACL_FLOAT, 0, 1, ACL_FORMAT_ND, shape, 2, x) && says("reaches element 6"));
  CHECK(!aclCreateTensor(shape, 2, (aclDataType)1000, 0, 0, ACL_FORMAT_ND, shape, 2, x) && says("dataType"));
  CHECK(!aclCreateTensor(shape, 2, ACL_FLOAT, 0, 0, (aclFormat)99, shape, 2, x) && says("format"));
  CHECK(!aclCreateScalar(0, ACL_FLOAT) && says("null"));
  CHECK(!aclCreateScalar(x, ACL_STRING) && says("ACL_STRING"));
  CHECK(!aclCreateIntArray(0, 1) && says("value is null"));
  const int64_t two[] = {2}, far[] = {(int64_t)1 << 62};
  CHECK(!aclCreateTensor(two, 1, ACL_FLOAT, far, far[0], ACL_FORMAT_ND, two, 1, x) && says("exceed any memory"));
  CHECK(!aclCreateTensor(two, 1, ACL_FLOAT, 0, far[0], ACL_FORMAT_ND, two, 1, x) && says("exceed any memory"));
  CHECK(!aclCreateTensor(far, 1, ACL_FLOAT, far, 0, ACL_FORMAT_ND, two, 1, x) && says("exceed any memory"));
  CHECK(aclGetRecentErrMsg() == 0);

  aclTensor *a = plain(shape, 2, ACL_FLOAT, x), *b = plain(shape, 2, ACL_FLOAT, y);
  aclTensor *short_one = plain(other, 1, ACL_FLOAT, y), *empty = plain(shape, 2, ACL_FLOAT, 0);
  CHECK(aclInitTensor(a, shape, 2, ACL_FLOAT, 0, 1, ACL_FORMAT_ND, shape, 2, x) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclInitTensor(0, shape, 2, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, shape, 2, x) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclGetViewShape(0, &sizes, &count) == ACLNN_ERR_PARAM_NULLPTR && says("tensor is null"));
  CHECK(aclGetViewShape(a, 0, &count) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclGetFormat(0, &format) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclGetRawTensorAddr(a, 0) == ACLNN_ERR_PARAM_NULLPTR);
  OK_(aclGetRawTensorAddr(a, &address));
  CHECK(address == (void *)x);
  OK_(aclDestroyTensor(0));
  OK_(aclDestroyScalar(0));
  OK_(aclDestroyTensorList(0));

  /* Phase one. */
  CHECK(aclnnGeluGetWorkspaceSize(0, b, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR && says("self is null"));
  CHECK(executor == 0 && size == 0);
  CHECK(aclnnGeluGetWorkspaceSize(0, b, 0, 0) == ACLNN_ERR_PARAM_NULLPTR && says("self is null"));
  executor = (aclOpExecutor *)x;
  CHECK(aclnnGeluGetWorkspaceSize(a, b, 0, &executor) == ACLNN_ERR_PARAM_NULLPTR && says("workspaceSize is null"));
  CHECK(executor == 0);
  CHECK(aclnnGeluGetWorkspaceSize(a, b, &size, 0) == ACLNN_ERR_PARAM_NULLPTR && says("executor is null"));
  CHECK(aclnnGeluGetWorkspaceSize(a, short_one, &size, &executor) == ACLNN_ERR_PARAM_INVALID && says("aclnnGelu"));
  CHECK(aclnnCastGetWorkspaceSize(a, (aclDataType)1000, b, &size, &executor) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclnnGeluBackwardV2GetWorkspaceSize(a, a, 0, b, &size, &executor) == ACLNN_ERR_PARAM_NULLPTR);
  CHECK(aclnnGeluBackwardV2GetWorkspaceSize(a, a, (char *)"exact", b, &size, &executor) == ACLNN_ERR_PARAM_INVALID);

  /* Phase two. */
  CHECK(aclnnGelu(0, 0, 0, 0) == ACLNN_ERR_PARAM_NULLPTR && says("executor is null"));
  OK_(aclnnGeluGetWorkspaceSize(a, b, &size, &executor));
  CHECK(aclnnGelu(0, 8, executor, 0) == ACLNN_ERR_PARAM_NULLPTR && says("workspace is null"));
  CHECK(aclnnGelu(0, 0, executor, 0) == ACLNN_ERR_INNER && says("destroyed")); /* it was spent */
  OK_(aclnnGeluGetWorkspaceSize(a, empty, &size, &executor));
  CHECK(aclnnGelu(0, 0, executor, 0) == ACLNN_ERR_PARAM_NULLPTR && says("out has no data"));
  OK_(aclnnGeluGetWorkspaceSize(a, b, &size, &executor));
  CHECK(aclnnLeakyRelu(0, 0, executor, 0) == ACLNN_ERR_INNER && says("was made by aclnnGeluGetWorkspaceSize"));
  OK_(aclDestroyAclOpExecutor(executor));
  CHECK(aclDestroyAclOpExecutor(executor) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(aclDestroyAclOpExecutor(0) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(aclSetAclOpExecutorRepeatable(0) == ACLNN_ERR_INNER_NULLPTR);
  OK_(aclnnGeluGetWorkspaceSize(a, b, &size, &executor));
  CHECK(aclnnGelu(0, 0, executor, (aclrtStream)0x1234) == 107017);

  /* Described anew between both phases. */
  OK_(aclnnGeluGetWorkspaceSize(a, b, &size, &executor));
  OK_(aclInitTensor(b, other, 1, ACL_FLOAT, 0, 0, ACL_FORMAT_ND, other, 1, y));
  CHECK(aclnnGelu(0, 0, executor, 0) == ACLNN_ERR_PARAM_INVALID && says("described anew"));

  const aclTensor *all[] = {a, b, short_one, empty};
  for (int k = 0; k < 4; k++) OK_(aclDestroyTensor(all[k]));
  return 0;
}
