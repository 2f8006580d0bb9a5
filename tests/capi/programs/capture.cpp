// Calls of a stream as a model, which runs again on what memory holds then.
#include <vector>

#include "checks.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"

int main() {
  float one = 1, values[] = {1, 2, 3, 4}, zeros[4] = {0}, found[4];
  void *memory[3];
  aclTensor *a = floats(values, 4, &memory[0]), *b = floats(zeros, 4, &memory[1]), *c = floats(zeros, 4, &memory[2]);
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  aclrtStream stream;
  aclmdlRI model;
  aclmdlRICaptureStatus status;
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclrtCreateStream(&stream));
  OK_(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  OK_(aclmdlRICaptureGetInfo(stream, &status, &model));
  CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  OK_(aclnnAddGetWorkspaceSize(a, a, alpha, b, &size, &executor));
  OK_(aclnnAdd(nullptr, size, executor, stream));
  OK_(aclnnMulGetWorkspaceSize(a, b, c, &size, &executor));
  OK_(aclnnMul(nullptr, size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream) == 107027);
  OK_(aclmdlRICaptureEnd(stream, &model));
  fetch(found, memory[2], 4);
  CHECK(found[3] == 0); // nothing ran
  for (auto tensor : {a, b, c}) OK_(aclDestroyTensor(tensor));
  OK_(aclDestroyScalar(alpha));
  for (int round = 1; round <= 3; round++) {
    for (auto &one : values) one += 1;
    OK_(aclrtMemcpy(memory[0], sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE));
    OK_(aclmdlRIExecuteAsync(model, stream));
    OK_(aclrtSynchronizeStream(stream));
    fetch(found, memory[2], 4);
    for (int k = 0; k < 4; k++) CHECK(found[k] == 2 * values[k] * values[k]);
  }
  OK_(aclmdlRIDestroy(model));
  CHECK(aclmdlRIExecuteAsync(model, stream) == 107017);
  OK_(aclrtDestroyStream(stream));
  for (auto one : memory) OK_(aclrtFree(one));
  return 0;
}
