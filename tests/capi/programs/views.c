/* Tensors that are views of one allocation, broadcast, of other dtypes, in place, and in the program's own memory. */
#include "checks.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_split_with_size.h"
#include "aclnnop/aclnn_permute.h"

static void strided_views_of_one_allocation(void) {
  float values[12], found[12];
  for (int k = 0; k < 12; k++) values[k] = (float)k;
  void *address = device_memory(values, sizeof values);
  const int64_t shape[] = {2, 3}, row_major[] = {3, 1}, transposed[] = {1, 2}, reach[] = {12};
  /* The second view begins six elements later, and is transposed; the result replaces the first. */
  aclTensor *first = aclCreateTensor(shape, 2, ACL_FLOAT, row_major, 0, ACL_FORMAT_ND, reach, 1, address);
  aclTensor *second = aclCreateTensor(shape, 2, ACL_FLOAT, transposed, 6, ACL_FORMAT_ND, reach, 1, address);
  CHECK(first && second);
  float one = 1;
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnAddGetWorkspaceSize(first, second, alpha, first, &size, &executor));
  RUN(aclnnAdd, size, executor, 0);
  fetch(found, address, 12);
  for (int row = 0; row < 2; row++)
    for (int column = 0; column < 3; column++)
      CHECK(found[3 * row + column] == values[3 * row + column] + values[6 + row + 2 * column]);
  for (int k = 6; k < 12; k++) CHECK(found[k] == values[k]);
  OK_(aclDestroyTensor(first));
  OK_(aclDestroyTensor(second));
  OK_(aclDestroyScalar(alpha));
  OK_(aclrtFree(address));
}

static void broadcast_of_mixed_dtypes_in_own_memory(void) {
  float left[] = {1.5f, -2, 4};
  int32_t right[] = {10, 100};
  float out[6] = {0};
  const int64_t columns[] = {1, 3}, rows[] = {2, 1}, both[] = {2, 3};
  aclTensor *a = plain(columns, 2, ACL_FLOAT, left), *b = plain(rows, 2, ACL_INT32, right);
  aclTensor *c = plain(both, 2, ACL_FLOAT, out);
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnMulGetWorkspaceSize(a, b, c, &size, &executor));
  void *workspace = size ? malloc(size) : 0;
  OK_(aclnnMul(workspace, size, executor, 0));
  free(workspace);
  for (int k = 0; k < 6; k++) CHECK(out[k] == left[k % 3] * (float)right[k / 3]);
  /* An input of stride 0, in place of the other one. */
  const int64_t zero[] = {0}, three[] = {3}, one[] = {1};
  aclTensor *d = aclCreateTensor(three, 1, ACL_FLOAT, zero, 0, ACL_FORMAT_ND, one, 1, left);
  aclTensor *e = plain(three, 1, ACL_FLOAT, out);
  CHECK(d);
  OK_(aclnnInplaceMulGetWorkspaceSize(e, d, &size, &executor));
  OK_(aclnnInplaceMul(0, size, executor, 0));
  for (int k = 0; k < 3; k++) CHECK(out[k] == left[k] * 10 * 1.5f);
  const aclTensor *all[] = {a, b, c, d, e};
  for (int k = 0; k < 5; k++) OK_(aclDestroyTensor(all[k]));
}

static void tensors_of_no_and_of_many_dimensions(void) {
  float value = 2, out = 0;
  aclTensor *a = plain(0, 0, ACL_FLOAT, &value), *c = plain(0, 0, ACL_FLOAT, &out);
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnMulGetWorkspaceSize(a, a, c, &size, &executor));
  OK_(aclnnMul(0, size, executor, 0));
  CHECK(out == 4);
  const int64_t shape[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  float pair[] = {3, 4}, products[2];
  aclTensor *deep = plain(shape, 10, ACL_FLOAT, pair), *result = plain(shape, 10, ACL_FLOAT, products);
  int status = aclnnMulGetWorkspaceSize(deep, deep, result, &size, &executor);
  CHECK(status == 161002 && executor == 0);
  OK_(aclDestroyTensor(deep));
  OK_(aclDestroyTensor(result));
  OK_(aclDestroyTensor(a));
  OK_(aclDestroyTensor(c));
}

static void lists_of_tensors(void) {
  float a[] = {1, 2}, b[] = {3, 4, 5}, out[5], parts[2][3];
  const int64_t two = 2, three = 3, five = 5;
  aclTensor *items[] = {plain(&two, 1, ACL_FLOAT, a), plain(&three, 1, ACL_FLOAT, b)};
  aclTensorList *list = aclCreateTensorList((const aclTensor *const *)items, 2);
  CHECK(list);
  aclTensor *joined = plain(&five, 1, ACL_FLOAT, out);
  uint64_t size;
  aclOpExecutor *executor;
  for (int again = 0; again < 2; again++) {
    OK_(aclnnCatGetWorkspaceSize(list, 0, joined, &size, &executor));
    OK_(aclnnCat(0, size, executor, 0));
  }
  for (int k = 0; k < 5; k++) CHECK(out[k] == (float)(k + 1));
  int64_t sizes[] = {3, 2};
  aclIntArray *lengths = aclCreateIntArray(sizes, 2);
  aclTensor *split[] = {plain(&three, 1, ACL_FLOAT, parts[0]), plain(&two, 1, ACL_FLOAT, parts[1])};
  aclTensorList *outs = aclCreateTensorList((const aclTensor *const *)split, 2);
  OK_(aclnnSplitWithSizeGetWorkspaceSize(joined, lengths, 0, outs, &size, &executor));
  OK_(aclnnSplitWithSize(0, size, executor, 0));
  CHECK(parts[0][2] == 3 && parts[1][0] == 4 && parts[1][1] == 5);
  OK_(aclDestroyTensorList(list));
  OK_(aclDestroyTensorList(outs));
  OK_(aclDestroyTensor(joined));
  OK_(aclDestroyIntArray(lengths));
  const aclTensor *with_null[] = {0};
  CHECK(!aclCreateTensorList(with_null, 1) && aclGetRecentErrMsg());
}

int main(void) {
  strided_views_of_one_allocation();
  broadcast_of_mixed_dtypes_in_own_memory();
  tensors_of_no_and_of_many_dimensions();
  lists_of_tensors();
  return 0;
}
