// What is asked of objects: arrays are of `new[]`, one for each question.
#include <memory>

#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "checks.h"

int main() {
  const int64_t shape[] = {2, 3, 4}, strides[] = {24, 1, 3}, storage[] = {5, 20};
  float data[100];
  aclTensor *tensor = aclCreateTensor(shape, 3, ACL_FLOAT, strides, 2, ACL_FORMAT_NCL, storage, 2, data);
  CHECK(tensor);
  for (int again = 0; again < 2; again++) {
    int64_t *found = nullptr, offset = 0;
    uint64_t count = 0;
    aclFormat format;
    aclDataType dtype;
    OK_(aclGetViewShape(tensor, &found, &count));
    std::unique_ptr<int64_t[]> sizes(found);
    CHECK(count == 3 && !memcmp(found, shape, sizeof shape));
    OK_(aclGetViewStrides(tensor, &found, &count));
    std::unique_ptr<int64_t[]> steps(found);
    CHECK(count == 3 && !memcmp(found, strides, sizeof strides));
    OK_(aclGetStorageShape(tensor, &found, &count));
    std::unique_ptr<int64_t[]> room(found);
    CHECK(count == 2 && !memcmp(found, storage, sizeof storage));
    OK_(aclGetViewOffset(tensor, &offset));
    OK_(aclGetFormat(tensor, &format));
    OK_(aclGetDataType(tensor, &dtype));
    CHECK(offset == 2 && format == ACL_FORMAT_NCL && dtype == ACL_FLOAT);
  }
  // Described anew, with more dimensions and with none, which is one element.
  const int64_t longer[] = {1, 1, 1, 1, 1, 1, 2, 1, 1, 1};
  int64_t *found = nullptr;
  uint64_t count = 7;
  OK_(aclInitTensor(tensor, longer, 10, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, longer, 10, data));
  OK_(aclGetViewStrides(tensor, &found, &count));
  CHECK(count == 10 && found[5] == 2 && found[6] == 1);
  delete[] found;
  OK_(aclInitTensor(tensor, nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr));
  OK_(aclGetViewShape(tensor, &found, &count));
  CHECK(found && count == 0);
  delete[] found;
  OK_(aclDestroyTensor(tensor));

  int64_t numbers[] = {4, 5};
  float reals[] = {1};
  bool flags[] = {true, false, true};
  uint64_t size;
  aclIntArray *ints = aclCreateIntArray(numbers, 2), *none = aclCreateIntArray(nullptr, 0);
  aclFloatArray *floats_of = aclCreateFloatArray(reals, 1);
  aclBoolArray *bools = aclCreateBoolArray(flags, 3);
  CHECK(aclGetIntArraySize(ints, &size) == 0 && size == 2);
  CHECK(aclGetIntArraySize(none, &size) == 0 && size == 0);
  CHECK(aclnnCalculateMatmulWeightSizeV2(ints, ACL_FLOAT16, &size) == 0 && size == 40);
  CHECK(aclnnCalculateMatmulWeightSizeV2(none, ACL_FLOAT16, &size) == 161002);
  CHECK(aclnnCalculateMatmulWeightSizeV2(nullptr, ACL_FLOAT16, &size) == 161001);
  CHECK(aclnnCalculateMatmulWeightSizeV2(ints, ACL_FLOAT16, nullptr) == 161001);
  CHECK(aclGetFloatArraySize(floats_of, &size) == 0 && size == 1);
  CHECK(aclGetBoolArraySize(bools, &size) == 0 && size == 3);
  CHECK(aclGetBoolArraySize(nullptr, &size) == 161001 && aclGetIntArraySize(ints, nullptr) == 161001);
  aclScalar *scalars[] = {aclCreateScalar(reals, ACL_FLOAT), aclCreateScalar(numbers, ACL_INT64)};
  aclScalarList *list = aclCreateScalarList(scalars, 2);
  CHECK(aclGetScalarListSize(list, &size) == 0 && size == 2);
  OK_(aclDestroyScalarList(list));
  OK_(aclDestroyIntArray(ints));
  OK_(aclDestroyIntArray(none));
  OK_(aclDestroyFloatArray(floats_of));
  OK_(aclDestroyBoolArray(bools));
  return 0;
}
