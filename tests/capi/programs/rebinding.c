/* Executors that are used again, on other memory, and tensors that go before they run. */
#include "checks.h"

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sqrt.h"

int main(void) {
  float values[3][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {0}}, factor = 2, found[4];
  void *memory[3];
  aclTensor *a = floats(values[0], 4, &memory[0]), *b = floats(values[1], 4, &memory[1]);
  aclTensor *out = floats(values[2], 4, &memory[2]);
  aclScalar *two = aclCreateScalar(&factor, ACL_FLOAT);
  uint64_t size;
  aclOpExecutor *executor;
  void *address;

  OK_(aclnnMulsGetWorkspaceSize(a, two, out, &size, &executor));
  OK_(aclSetAclOpExecutorRepeatable(executor));
  OK_(aclDestroyScalar(two));
  OK_(aclnnMuls(0, size, executor, 0));
  fetch(found, memory[2], 4);
  CHECK(found[3] == 8);
  OK_(aclSetInputTensorAddr(executor, 0, a, memory[1]));
  OK_(aclGetRawTensorAddr(a, &address)); /* the tensor changes with the executor */
  CHECK(address == memory[1]);
  OK_(aclnnMuls(0, size, executor, 0));
  fetch(found, memory[2], 4);
  CHECK(found[3] == 80);
  OK_(aclSetTensorAddr(executor, 1, out, memory[0]));
  OK_(aclnnMuls(0, size, executor, 0));
  fetch(found, memory[0], 4);
  CHECK(found[0] == 20);
  OK_(AclSetOutputTensorAddr(executor, 0, out, memory[2]));
  OK_(aclSetInputTensorAddr(executor, 0, a, memory[2])); /* in place, which was not planned for */
  OK_(aclnnMuls(0, size, executor, 0));
  fetch(found, memory[2], 4);
  CHECK(found[3] == 160);
  CHECK(aclSetInputTensorAddr(executor, 1, a, memory[0]) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclSetOutputTensorAddr(executor, 1, out, memory[0]) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclSetTensorAddr(executor, 2, out, memory[0]) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclSetTensorAddr(0, 0, out, memory[0]) == ACLNN_ERR_INNER_NULLPTR);
  CHECK(aclSetTensorAddr(executor, 0, 0, memory[0]) == ACLNN_ERR_INNER_NULLPTR);

  /* What the executor needs of its tensors stays. */
  OK_(aclDestroyTensor(a));
  OK_(aclDestroyTensor(out));
  OK_(aclnnMuls(0, size, executor, 0));
  fetch(found, memory[2], 4);
  CHECK(found[3] == 320);
  OK_(aclDestroyAclOpExecutor(executor));

  /* Addresses that are set after phase one count. */
  int64_t four = 4;
  aclTensor *late = plain(&four, 1, ACL_FLOAT, 0);
  OK_(aclnnSqrtGetWorkspaceSize(b, late, &size, &executor));
  OK_(aclSetRawTensorAddr(late, memory[0]));
  OK_(aclnnSqrt(0, size, executor, 0));
  fetch(found, memory[0], 4);
  CHECK(found[3] * found[3] > 39.9f && found[3] * found[3] < 40.1f);

  /* A tensor of a list. */
  float joined[8], others[4] = {5, 6, 7, 8};
  int64_t eight = 8;
  aclTensor *result = plain(&eight, 1, ACL_FLOAT, joined);
  aclTensor *items[] = {b, late};
  aclTensorList *list = aclCreateTensorList((const aclTensor *const *)items, 2);
  OK_(aclnnCatGetWorkspaceSize(list, 0, result, &size, &executor));
  OK_(aclSetAclOpExecutorRepeatable(executor));
  OK_(aclnnCat(0, size, executor, 0));
  OK_(aclSetDynamicInputTensorAddr(executor, 0, 1, list, others));
  OK_(aclnnCat(0, size, executor, 0));
  CHECK(joined[3] == 40 && joined[4] == 5 && joined[7] == 8);
  CHECK(aclSetDynamicInputTensorAddr(executor, 0, 2, list, others) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclSetDynamicOutputTensorAddr(executor, 0, 0, list, others) == ACLNN_ERR_PARAM_INVALID);
  CHECK(aclSetDynamicTensorAddr(executor, 0, 0, 0, others) == ACLNN_ERR_INNER_NULLPTR);
  OK_(aclDestroyAclOpExecutor(executor));
  OK_(aclDestroyTensorList(list));
  OK_(aclDestroyTensor(result));
  for (int k = 0; k < 3; k++) OK_(aclrtFree(memory[k]));
  return 0;
}
