// An engine's memory: a pool that grows by mapping more behind what it has, temporaries that go back to it or are freed
// as soon as the work that uses them is queued, and buffers whose sizes are rounded up for tails of rows.
#include <cmath>
#include <vector>

#include "checks.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_zero.h"

static aclrtStream stream;

// Space for all of the device's memory is reserved at once; memory comes when it is needed, and what was given last is
// taken back first. Work of one stream may have the same bytes one after the other.
class Pool {
 public:
  Pool() {
    aclrtPhysicalMemProp prop = kind();
    size_t free, total;
    OK_(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granularity));
    OK_(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    CHECK(free <= total && total % granularity == 0);
    OK_(aclrtReserveMemAddress(&begin, total - 5, 0, nullptr, 1)); // rounded up
    most = total;
  }

  ~Pool() {
    CHECK(used == 0);
    for (char *place : places) OK_(aclrtUnmapMem(place));
    for (auto handle : handles) OK_(aclrtFreePhysical(handle));
    OK_(aclrtReleaseMemAddress(begin));
  }

  char *take(size_t size) {
    size = (size + 127) / 128 * 128;
    if (used + size > mapped) grow(used + size - mapped);
    char *found = static_cast<char *>(begin) + used;
    used += size;
    return found;
  }

  void give_back(char *place) { used = static_cast<size_t>(place - static_cast<char *>(begin)); }
  size_t pieces() const { return handles.size(); }
  size_t piece() const { return granularity; }

 private:
  static aclrtPhysicalMemProp kind() {
    aclrtPhysicalMemProp prop = {};
    prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    prop.memAttr = ACL_HBM_MEM_HUGE;
    prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = 0;
    return prop;
  }

  void grow(size_t missing) {
    const size_t size = (missing + granularity - 1) / granularity * granularity;
    const aclrtPhysicalMemProp prop = kind();
    aclrtDrvMemHandle handle;
    CHECK(mapped + size <= most);
    OK_(aclrtMallocPhysical(&handle, size, &prop, 0));
    places.push_back(static_cast<char *>(begin) + mapped);
    OK_(aclrtMapMem(places.back(), size, 0, handle, 0));
    handles.push_back(handle);
    mapped += size;
  }

  void *begin = nullptr;
  size_t granularity = 0, most = 0, mapped = 0, used = 0;
  std::vector<aclrtDrvMemHandle> handles;
  std::vector<char *> places;
};

// What goes back to its pool at the end of a scope, whether or not the work on it has begun.
struct Temporary {
  Pool &pool;
  char *place;
  Temporary(Pool &from, size_t size) : pool(from), place(from.take(size)) {}
  ~Temporary() { pool.give_back(place); }
};

static aclTensor *vector_of(int64_t count, void *address) { return plain(&count, 1, ACL_FLOAT, address); }

// Queue `out = a * b`, or `a + b`, with a workspace that is freed at once.
static void queue(bool multiplies, aclTensor *a, aclTensor *b, aclTensor *out) {
  float one = 1;
  aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size;
  aclOpExecutor *executor;
  void *workspace = nullptr;
  if (multiplies) OK_(aclnnMulGetWorkspaceSize(a, b, out, &size, &executor));
  else OK_(aclnnAddGetWorkspaceSize(a, b, alpha, out, &size, &executor));
  OK_(aclrtMalloc(&workspace, size + 1, ACL_MEM_MALLOC_HUGE_FIRST));
  OK_((multiplies ? aclnnMul : aclnnAdd)(workspace, size, executor, stream));
  OK_(aclrtFree(workspace));
  for (auto tensor : {a, b, out}) OK_(aclDestroyTensor(tensor));
  OK_(aclDestroyScalar(alpha));
}

// (x * x + x) * x, step by step in temporaries of a pool that grows over several pieces.
static void temporaries() {
  Pool pool;
  const int64_t count = (int64_t)(pool.piece() / sizeof(float)) * 3 / 4; // none of them ends where a piece does
  const size_t bytes = (size_t)count * sizeof(float);
  std::vector<float> x((size_t)count), found((size_t)count);
  for (int64_t k = 0; k < count; k++) x[(size_t)k] = (float)(k % 17) - 8;
  void *result = device_memory(nullptr, bytes);
  for (int run = 0; run < 3; run++) {
    {
      Temporary source(pool, bytes);
      OK_(aclrtMemcpyAsync(source.place, bytes, x.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
      Temporary square(pool, bytes);
      queue(true, vector_of(count, source.place), vector_of(count, source.place), vector_of(count, square.place));
      Temporary sum(pool, bytes);
      OK_(aclrtMemsetAsync(sum.place, bytes, 0xff, bytes, stream));
      queue(false, vector_of(count, square.place), vector_of(count, source.place), vector_of(count, sum.place));
      queue(true, vector_of(count, sum.place), vector_of(count, source.place), vector_of(count, result));
    }
    OK_(aclrtMemcpyAsync(found.data(), bytes, result, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK_(aclrtSynchronizeStream(stream));
    for (size_t k = 0; k < found.size(); k++) CHECK(found[k] == (x[k] * x[k] + x[k]) * x[k]);
    CHECK(pool.pieces() >= 2);
  }
  // All at once: rows of a view that begins in the first piece and ends in the last.
  Temporary whole(pool, 3 * bytes);
  const int64_t shape[] = {3, count}, across[] = {count, 3}, strides[] = {1, count};
  OK_(aclrtMemset(whole.place, 3 * bytes, 0, 3 * bytes));
  OK_(aclrtMemcpy(whole.place + bytes, bytes, x.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor *turned = aclCreateTensor(across, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 2, whole.place);
  CHECK(turned);
  void *rounded = device_memory(nullptr, (size_t)count * 3 * 2);
  aclTensor *halves = plain(across, 2, ACL_FLOAT16, rounded);
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnCastGetWorkspaceSize(turned, ACL_FLOAT16, halves, &size, &executor));
  RUN(aclnnCast, size, executor, stream);
  std::vector<uint16_t> bits((size_t)count * 3);
  OK_(aclrtMemcpy(bits.data(), bits.size() * 2, rounded, bits.size() * 2, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t k = 0; k < x.size(); k++)
    CHECK(bits[3 * k] == 0 && aclFloat16ToFloat(bits[3 * k + 1]) == x[k] && bits[3 * k + 2] == 0);
  for (auto tensor : {turned, halves}) OK_(aclDestroyTensor(tensor));
  OK_(aclrtFree(result));
  OK_(aclrtFree(rounded));
}

// Memory of its own for each step, freed as soon as the step is queued: the stream has far more to do than was done.
static void freed_while_queued() {
  const int64_t count = 1 << 18;
  const size_t bytes = (size_t)count * sizeof(float);
  std::vector<float> ones((size_t)count, 1), found((size_t)count);
  void *total = device_memory(ones.data(), bytes);
  for (int step = 0; step < 40; step++) {
    void *added = nullptr;
    OK_(aclrtMalloc(&added, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    OK_(aclrtMemcpyAsync(added, bytes, ones.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    queue(false, vector_of(count, total), vector_of(count, added), vector_of(count, total));
    OK_(aclrtFree(added));
  }
  OK_(aclrtMemcpyAsync(found.data(), bytes, total, bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  OK_(aclrtFree(total));
  CHECK(found[0] == 41 && found[(size_t)count - 1] == 41); // freeing has waited for the copy
  OK_(aclrtSynchronizeStream(stream));
}

// Rows of 10 numbers in a buffer for 10: kernels of a device read whole blocks of 32 bytes, and programs clear them.
static void tails() {
  const int64_t count = 10, padded = 16;
  std::vector<float> values((size_t)count, 3);
  float found[16];
  void *row;
  aclTensor *tensor = floats(values.data(), count, &row);
  OK_(aclrtMemset((char *)row + 40, 24, 0, 24));
  OK_(aclrtMemcpy(found, sizeof found, row, sizeof found, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(found[9] == 3 && found[10] == 0 && found[15] == 0);
  aclTensor *all = vector_of(padded, row);
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnInplaceZeroGetWorkspaceSize(all, &size, &executor));
  RUN(aclnnInplaceZero, size, executor, stream);
  fetch(found, row, count);
  CHECK(found[0] == 0 && found[9] == 0);
  OK_(aclDestroyTensor(all));
  OK_(aclDestroyTensor(tensor));
  OK_(aclrtFree(row));
}

// No rows: the engine counts a view's storage from its last element, and comes to a negative size.
static void nothing() {
  const int64_t dims[] = {0, 4}, strides[] = {4, 1}, storage[] = {-3};
  void *row;
  OK_(aclrtMalloc(&row, 32, ACL_MEM_MALLOC_HUGE_FIRST));
  aclTensor *none = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, storage, 1, row);
  CHECK(none != nullptr);
  int64_t *shape = nullptr;
  uint64_t count = 0;
  OK_(aclGetStorageShape(none, &shape, &count));
  CHECK(count == 1 && shape[0] == 0);
  delete[] shape;
  uint64_t size;
  aclOpExecutor *executor;
  OK_(aclnnInplaceZeroGetWorkspaceSize(none, &size, &executor));
  RUN(aclnnInplaceZero, size, executor, stream);
  OK_(aclDestroyTensor(none));
  const int64_t some[] = {1, 4};
  CHECK(aclCreateTensor(some, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, storage, 1, row) == nullptr);
  OK_(aclrtFree(row));
}

int main() {
  OK_(aclInit(nullptr));
  OK_(aclrtSetDevice(0));
  OK_(aclrtCreateStream(&stream));
  temporaries();
  freed_while_queued();
  tails();
  nothing();
  OK_(aclrtDestroyStream(stream));
  OK_(aclrtResetDevice(0));
  OK_(aclFinalize());
  return 0;
}
