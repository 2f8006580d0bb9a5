/* The library under each of its names, opened by `dlopen` in both scopes: all are one, with one state. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition) \
  do { if (!(condition)) { printf("%d: %s: %s\n", __LINE__, #condition, dlerror()); return 1; } } while (0)

int main(int argc, char **argv) {
  static const char *const names[] = {"libopapi.so", "libnnopbase.so", "libascendcl.so", "libacl_rt.so",
                                      "libopapi_math.so", "libopapi_nn.so", "libacl_op_compiler.so",
                                      "libaclnn_cpu.so", "libaclnn_cpu.so.1"};
  static const char *const functions[] = {"aclnnAddGetWorkspaceSize", "aclrtMalloc", "aclCreateTensor", "aclInit"};
  void *found[4] = {0};
  char path[4096];
  CHECK(argc == 2);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    snprintf(path, sizeof path, "%s/%s", argv[1], names[k]);
    void *handle = dlopen(path, k % 2 ? RTLD_LAZY | RTLD_LOCAL : RTLD_NOW | RTLD_LOCAL);
    CHECK(handle);
    for (int f = 0; f < 4; f++) {
      void *function = dlsym(handle, functions[f]);
      CHECK(function);
      if (!found[f]) found[f] = function;
      CHECK(function == found[f]);
    }
  }
  /* Further operators have a library of their own, which has no state: here it comes without the first one. */
  static const char *const further[] = {"libaclnn_cpu_further.so.1", "libopapi_nn.so", "libopapi.so", "libopapi_math.so"};
  void *nonzero = 0;
  for (size_t k = 0; k < sizeof further / sizeof *further; k++) {
    snprintf(path, sizeof path, "%s/%s", argv[1], further[k]);
    void *handle = dlopen(path, k % 2 ? RTLD_LAZY | RTLD_LOCAL : RTLD_NOW | RTLD_LOCAL);
    CHECK(handle);
    void *function = dlsym(handle, "aclnnNonzero");
    CHECK(function);
    if (!nonzero) nonzero = function;
    CHECK(function == nonzero && dlsym(handle, "aclInit") == found[3]);
  }
  int (*init)(const char *) = (int (*)(const char *))found[3];
  int (*allocate)(void **, size_t, int) = (int (*)(void **, size_t, int))found[1];
  void *memory = 0;
  CHECK(init(0) == 0 && init(0) == 100002);
  CHECK(allocate(&memory, 64, 0) == 0 && memory && (uintptr_t)memory % 512 == 0);
  return 0;
}
