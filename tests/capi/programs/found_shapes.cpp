/* Outputs whose shape data decide: aclGetViewShape gives what a run has found. */
#include "aclnnop/aclnn_masked_select.h"
#include "aclnnop/aclnn_nonzero.h"
#include "aclnnop/aclnn_nonzero_v2.h"
#include "checks.h"

static void check_shape(const aclTensor *tensor, uint64_t ndim, int64_t rows, int64_t columns) {
  int64_t *dims = 0;
  uint64_t count = 0;
  OK_(aclGetViewShape(tensor, &dims, &count));
  CHECK(count == ndim && dims[0] == rows && (ndim == 1 || dims[1] == columns));
  delete[] dims;
}

static const float given[6] = {0, 5, 0, -1, 7, 0};
static const int64_t shape[2] = {2, 3}, room[2] = {6, 2}, wide[2] = {2, 6};

/* Places of what is not zero, on a stream or at once. */
static void nonzero(aclrtStream stream) {
  void *address, *places = device_memory(0, 12 * sizeof(int64_t));
  aclTensor *self = (address = device_memory(given, sizeof given), plain(shape, 2, ACL_FLOAT, address));
  aclTensor *out = plain(room, 2, ACL_INT64, places), *by_dims = plain(wide, 2, ACL_INT64, places);
  int64_t found[6];
  uint64_t size = 0;
  aclOpExecutor *executor;
  OK_(aclnnNonzeroGetWorkspaceSize(self, out, &size, &executor));
  RUN(aclnnNonzero, size, executor, stream);
  check_shape(out, 2, 3, 2);
  OK_(aclrtMemcpy(found, sizeof found, places, sizeof found, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(found[0] == 0 && found[1] == 1 && found[2] == 1 && found[3] == 0 && found[4] == 1 && found[5] == 1);
  OK_(aclnnNonzeroV2GetWorkspaceSize(self, by_dims, &size, &executor));
  RUN(aclnnNonzeroV2, size, executor, stream);
  check_shape(by_dims, 2, 2, 3);
  OK_(aclrtMemcpy(found, sizeof found, places, sizeof found, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(found[0] == 0 && found[1] == 1 && found[2] == 1 && found[3] == 1 && found[4] == 0 && found[5] == 1);
  OK_(aclDestroyTensor(self));
  OK_(aclDestroyTensor(out));
  OK_(aclDestroyTensor(by_dims));
  OK_(aclrtFree(address));
  OK_(aclrtFree(places));
}

/* Elements where a mask is true, by an executor that runs twice while its operands change. */
static void masked_select(aclrtStream stream) {
  const unsigned char first[6] = {1, 0, 0, 1, 1, 0}, second[6] = {0, 0, 0, 0, 1, 0};
  const int64_t all = 6;
  void *memory[3] = {device_memory(given, sizeof given), device_memory(first, 6), device_memory(0, 24)};
  aclTensor *self = plain(shape, 2, ACL_FLOAT, memory[0]), *mask = plain(shape, 2, ACL_BOOL, memory[1]);
  aclTensor *out = plain(&all, 1, ACL_FLOAT, memory[2]);
  float found[3];
  uint64_t size = 0;
  aclOpExecutor *executor;
  OK_(aclnnMaskedSelectGetWorkspaceSize(self, mask, out, &size, &executor));
  OK_(aclSetAclOpExecutorRepeatable(executor));
  RUN(aclnnMaskedSelect, size, executor, stream);
  check_shape(out, 1, 3, 0);
  fetch(found, memory[2], 3);
  CHECK(found[0] == 0 && found[1] == -1 && found[2] == 7);
  OK_(aclrtMemcpy(memory[1], 6, second, 6, ACL_MEMCPY_HOST_TO_DEVICE));
  RUN(aclnnMaskedSelect, size, executor, stream);
  check_shape(out, 1, 1, 0);
  fetch(found, memory[2], 1);
  CHECK(found[0] == 7);
  OK_(aclrtMemcpy(memory[1], 6, first, 6, ACL_MEMCPY_HOST_TO_DEVICE));
  RUN(aclnnMaskedSelect, size, executor, stream);
  check_shape(out, 1, 3, 0);
  OK_(aclDestroyAclOpExecutor(executor));
  OK_(aclDestroyTensor(self));
  OK_(aclDestroyTensor(mask));
  OK_(aclDestroyTensor(out));
  for (int k = 0; k < 3; k++) OK_(aclrtFree(memory[k]));
}

/* Tensors may be gone before a stream comes to the run. */
static void destroyed_early(aclrtStream stream) {
  void *address, *places = device_memory(0, 12 * sizeof(int64_t)), *workspace = 0;
  aclTensor *self = (address = device_memory(given, sizeof given), plain(shape, 2, ACL_FLOAT, address));
  aclTensor *out = plain(room, 2, ACL_INT64, places);
  int64_t found = -1;
  uint64_t size = 0;
  aclOpExecutor *executor;
  OK_(aclnnNonzeroGetWorkspaceSize(self, out, &size, &executor));
  if (size) workspace = device_memory(0, size);
  OK_(aclnnNonzero(workspace, size, executor, stream));
  OK_(aclDestroyTensor(self));
  OK_(aclDestroyTensor(out));
  OK_(aclrtSynchronizeStream(stream));
  OK_(aclrtMemcpy(&found, 8, (int64_t *)places + 5, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(found == 1);
  if (workspace) OK_(aclrtFree(workspace));
  OK_(aclrtFree(address));
  OK_(aclrtFree(places));
}

/* Memory and descriptions that tensors get after phase one count, as for outputs whose shape is known. */
static void changed_late(aclrtStream stream) {
  void *address, *places = device_memory(0, 12 * sizeof(int64_t)), *others = device_memory(0, 12 * sizeof(int64_t));
  aclTensor *self = (address = device_memory(given, sizeof given), plain(shape, 2, ACL_FLOAT, address));
  aclTensor *out = plain(room, 2, ACL_INT64, places);
  int64_t found[6] = {0};
  uint64_t size = 0;
  aclOpExecutor *executor;
  OK_(aclnnNonzeroGetWorkspaceSize(self, out, &size, &executor));
  OK_(aclSetRawTensorAddr(out, others));
  OK_(aclrtFree(places));
  RUN(aclnnNonzero, size, executor, stream);
  check_shape(out, 2, 3, 2);
  OK_(aclrtMemcpy(found, sizeof found, others, sizeof found, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(found[0] == 0 && found[1] == 1 && found[5] == 1);
  OK_(aclInitTensor(out, room, 2, ACL_INT64, 0, 0, ACL_FORMAT_ND, room, 2, others));
  OK_(aclnnNonzeroGetWorkspaceSize(self, out, &size, &executor));
  OK_(aclInitTensor(out, wide, 2, ACL_INT64, 0, 0, ACL_FORMAT_ND, wide, 2, others));
  CHECK(aclnnNonzero(0, 0, executor, stream) == 161002);
  CHECK(strstr(aclGetRecentErrMsg(), "described anew"));
  OK_(aclnnNonzeroV2GetWorkspaceSize(self, out, &size, &executor));
  OK_(aclrtFree(others));
  CHECK(aclnnNonzeroV2(0, 0, executor, stream) == 161002);
  CHECK(strstr(aclGetRecentErrMsg(), "out is in memory that was freed"));
  OK_(aclDestroyTensor(self));
  OK_(aclDestroyTensor(out));
  OK_(aclrtFree(address));
}

int main(void) {
  aclrtStream stream;
  OK_(aclInit(0));
  OK_(aclrtSetDevice(0));
  OK_(aclrtCreateStream(&stream));
  for (int k = 0; k < 3; k++) {
    nonzero(k == 1 ? stream : 0);
    masked_select(k == 1 ? stream : 0);
  }
  destroyed_early(stream);
  changed_late(0);
  changed_late(stream);
  OK_(aclrtDestroyStream(stream));
  OK_(aclFinalize());
  return 0;
}
