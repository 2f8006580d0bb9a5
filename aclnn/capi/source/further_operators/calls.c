/* Both phases of further operators: the first library's, whose state is the only one.

   `aclnnInit` of the first library starts what has not started; the Cython module, which every library
   in the process shares, then has the services of that library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "further_operators.h"

#define TABLE "aclnn.capi._call_table.table"

/* Python's functions, of the interpreter that the first library has found. */
static void *look_up(const char *name) { return dlsym(RTLD_DEFAULT, name); }

static const aclnn_call_table *import_table(void) {
  int (*lock)(void) = (int (*)(void))look_up("PyGILState_Ensure");
  void (*unlock)(int) = (void (*)(int))look_up("PyGILState_Release");
  void *(*import_capsule)(const char *, int) = (void *(*)(const char *, int))look_up("PyCapsule_Import");
  void (*clear)(void) = (void (*)(void))look_up("PyErr_Clear");
  const aclnn_call_table *found;
  int state;
  if (!lock || !unlock || !import_capsule || !clear) return 0;
  state = lock();
  found = import_capsule(TABLE, 0);
  if (!found) clear();
  unlock(state);
  return found;
}

/* Whether the first library knows these pairs by the same numbers. */
static int is_of_the_same_build(const aclnn_services *services) {
  if (services->n_pairs < aclnn_first_pair + aclnn_n_own_pairs) return 0;
  for (int k = 0; k < aclnn_n_own_pairs; k++) {
    const aclnn_pair *theirs = &services->pairs[aclnn_first_pair + k], *ours = &aclnn_own_pairs[k];
    if (strcmp(theirs->name, ours->name) || strcmp(theirs->tags, ours->tags)) return 0;
  }
  return 1;
}

static const aclnn_services *found_services;

static const aclnn_services *start(void) {
  const aclnn_call_table *table;
  if (aclnnInit(0) != ACLNN_SUCCESS) return 0; /* with the message of what went wrong */
  table = import_table();
  if (!table || table->version != ACLNN_CALL_TABLE_VERSION || !table->services) return 0;
  if (!is_of_the_same_build(table->services)) {
    table->services->fail(ACLNN_ERR_INNER,
                          "the library of further operators and that of the runtime are of two builds");
    return 0;
  }
  __atomic_store_n(&found_services, table->services, __ATOMIC_RELEASE);
  return table->services;
}

static inline const aclnn_services *services(void) {
  const aclnn_services *found = __atomic_load_n(&found_services, __ATOMIC_ACQUIRE);
  return __builtin_expect(found != 0, 1) ? found : start();
}

aclnnStatus aclnn_plan(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                       aclOpExecutor **executor) {
  const aclnn_services *found = services();
  if (found) return found->plan(pair, given, workspace_size, executor);
  if (executor) *executor = 0;
  return ACLNN_ERR_INNER;
}

aclnnStatus aclnn_run(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                      aclrtStream stream) {
  const aclnn_services *found = services();
  return found ? found->run(pair, workspace, workspace_size, executor, stream) : ACLNN_ERR_INNER;
}
