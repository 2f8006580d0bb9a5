/* What the programs share: assertions that say where they failed, and tensors on device memory. */
#ifndef CHECKS_H
#define CHECKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      const char *message_ = aclGetRecentErrMsg();                                              \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, message_ ? message_ : "-");     \
      fflush(stdout);                                                                           \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)
#define OK_(call) CHECK((call) == 0)

static inline int64_t elements_of(const int64_t *shape, int ndim) {
  int64_t count = 1;
  for (int axis = 0; axis < ndim; axis++) count *= shape[axis];
  return count;
}

static inline void *device_memory(const void *from, size_t bytes) {
  void *address = 0;
  OK_(aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  if (from) OK_(aclrtMemcpy(address, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return address;
}

static inline aclTensor *plain(const int64_t *shape, int ndim, aclDataType dtype, void *address) {
  aclTensor *made = aclCreateTensor(shape, (uint64_t)ndim, dtype, 0, 0, ACL_FORMAT_ND, shape, (uint64_t)ndim, address);
  CHECK(made);
  return made;
}

static inline aclTensor *floats(const float *values, int64_t count, void **address) {
  *address = device_memory(values, (size_t)count * sizeof(float));
  return plain(&count, 1, ACL_FLOAT, *address);
}

static inline void fetch(float *values, const void *address, int64_t count) {
  size_t bytes = (size_t)count * sizeof(float);
  OK_(aclrtMemcpy(values, bytes, address, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

/* Phase two with a workspace of its own, which is free again afterwards. */
#define RUN(name, size, executor, stream)                                         \
  do {                                                                            \
    void *workspace_ = 0;                                                         \
    if (size) OK_(aclrtMalloc(&workspace_, size, ACL_MEM_MALLOC_HUGE_FIRST));     \
    OK_(name(workspace_, size, executor, stream));                                \
    OK_(aclrtSynchronizeStream(stream));                                          \
    if (workspace_) OK_(aclrtFree(workspace_));                                   \
  } while (0)

#endif
