/* Messages, both phases, and executors. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "library.h"

/* --- The message of a thread's last failure -------------------------------------------------------- */

/* Of calls that the runtime does not hear of, as it has not started or has ended. What was handed out
   stays valid while the next message comes. */
typedef struct messages {
  char *pending, *given;
} messages;

static pthread_key_t messages_key;
static pthread_once_t messages_once = PTHREAD_ONCE_INIT;
static __thread messages *own_messages;

static void free_messages(void *found) {
  messages *all = found;
  own_messages = 0;
  free(all->pending);
  free(all->given);
  free(all);
}

static void make_key(void) { pthread_key_create(&messages_key, free_messages); }

static messages *messages_of_thread(void) {
  if (!own_messages) {
    pthread_once(&messages_once, make_key);
    own_messages = calloc(1, sizeof *own_messages);
    if (own_messages) pthread_setspecific(messages_key, own_messages);
  }
  return own_messages;
}

static const aclnn_runtime_table *runtime_now(void) {
  const aclnn_call_table *table = __atomic_load_n(&aclnn_calls, __ATOMIC_ACQUIRE);
  return table ? table->runtime : 0;
}

int aclnn_fail_with(int status, const char *message) {
  const aclnn_runtime_table *runtime = runtime_now();
  messages *all;
  if (runtime) return runtime->fail(status, message);
  all = messages_of_thread();
  if (all) {
    free(all->pending);
    all->pending = strdup(message);
  }
  return status;
}

void aclnn_hand_message_over(void) {
  const aclnn_runtime_table *runtime = runtime_now();
  messages *all = own_messages;
  if (!runtime || !all || !all->pending) return;
  runtime->set_message(all->pending);
  free(all->pending);
  all->pending = 0;
}

int aclnn_fail(int status, const char *format, ...) {
  char text[8192];
  va_list given;
  va_start(given, format);
  vsnprintf(text, sizeof text, format, given);
  va_end(given);
  return aclnn_fail_with(status, text);
}

const char *aclGetRecentErrMsg(void) {
  const aclnn_runtime_table *runtime = runtime_now();
  messages *all = own_messages;
  if (all && all->pending) {
    free(all->given);
    all->given = all->pending;
    all->pending = 0;
    return all->given;
  }
  return runtime ? runtime->aclGetRecentErrMsg() : 0;
}

void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt,
               ...) {
  const aclnn_runtime_table *runtime = runtime_now();
  va_list given;
  if (!runtime || !fmt) return; /* a program that only logs starts nothing */
  va_start(given, fmt);
  runtime->app_log(logLevel, func, file, line, fmt, given);
  va_end(given);
}

/* --- Recorded calls -------------------------------------------------------------------------------- */

int aclnn_recording = -1; /* not known yet */
static pthread_mutex_t notes = PTHREAD_MUTEX_INITIALIZER;
static __thread int note_depth; /* functions of Python's call some of ours */

void aclnn_begin_note(void) {
  if (aclnn_recording < 0) {
    const char *wanted = getenv("ACLNN_RECORD");
    aclnn_recording = wanted && *wanted;
  }
  if (aclnn_recording && note_depth++ == 0) pthread_mutex_lock(&notes);
}

void aclnn_end_note(void) {
  if (aclnn_recording && --note_depth == 0) pthread_mutex_unlock(&notes);
}

void aclnn_note(int function, const aclnn_argument *given, int64_t result, int is_before) {
  const aclnn_call_table *table;
  if (!aclnn_recording) return;
  table = aclnn_table();
  if (table) table->note(function, given, result, is_before);
}

/* --- Operators ------------------------------------------------------------------------------------- */

static aclnnStatus plan(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                        aclOpExecutor **executor) {
  const aclnn_call_table *table = aclnn_table();
  if (ACLNN_LIKELY(table != 0)) return table->plan(pair, given, workspace_size, executor);
  if (executor) *executor = 0;
  return ACLNN_ERR_INNER;
}

static aclnnStatus run(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                       aclrtStream stream) {
  const aclnn_call_table *table = aclnn_table();
  return ACLNN_LIKELY(table != 0) ? table->run(pair, workspace, workspace_size, executor, stream)
                                  : ACLNN_ERR_INNER;
}

aclnnStatus aclnn_plan(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                       aclOpExecutor **executor) {
  aclnnStatus status;
  if (ACLNN_LIKELY(!aclnn_recording)) return plan(pair, given, workspace_size, executor);
  aclnn_begin_note();
  status = plan(pair, given, workspace_size, executor);
  aclnn_note(aclnn_first_phase + 2 * pair, given, status, 0);
  aclnn_end_note();
  return status;
}

aclnnStatus aclnn_run(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                      aclrtStream stream) {
  const aclnn_argument given[] = {
      {.pointer = workspace}, {.whole = (int64_t)workspace_size}, {.pointer = executor}, {.pointer = stream}};
  const int phase = aclnn_first_phase + 2 * pair + 1;
  aclnnStatus status;
  if (ACLNN_LIKELY(!aclnn_recording)) return run(pair, workspace, workspace_size, executor, stream);
  aclnn_begin_note();
  aclnn_note(phase, given, 0, 1);
  status = run(pair, workspace, workspace_size, executor, stream);
  aclnn_note(phase, given, status, 0);
  aclnn_end_note();
  return status;
}

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray *tensorShape, aclDataType dataType,
                                             uint64_t *weightTensorSize) {
  const aclnn_call_table *table = aclnn_table();
  return table ? table->weight_size(tensorShape, dataType, weightTensorSize) : ACLNN_ERR_INNER;
}

aclnnStatus own_aclnnInit(const char *configPath) {
  (void)configPath;
  return aclnn_table() ? ACLNN_SUCCESS : ACLNN_ERR_INNER;
}

aclnnStatus own_aclnnFinalize(void) { return ACLNN_SUCCESS; }

/* --- Executors ------------------------------------------------------------------------------------- */

aclnnStatus own_aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
  const aclnn_call_table *table = aclnn_table();
  return table ? table->set_repeatable(executor) : ACLNN_ERR_INNER;
}

aclnnStatus own_aclDestroyAclOpExecutor(aclOpExecutor *executor) {
  const aclnn_call_table *table = aclnn_table();
  return table ? table->destroy(executor) : ACLNN_ERR_INNER;
}

static aclnnStatus set_address(const char *function, aclOpExecutor *executor, const size_t *place,
                               int n_place, void *given, void *address) {
  const aclnn_call_table *table = aclnn_table();
  return table ? table->set_address(function, executor, place, n_place, given, address)
               : ACLNN_ERR_INNER;
}

#define SET_ADDRESS(name)                                                                         \
  aclnnStatus own_##name(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {  \
    return set_address(#name, executor, &index, 1, tensor, addr);                              \
  }

#define SET_LISTED_ADDRESS(name)                                                                  \
  aclnnStatus own_##name(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,           \
                   aclTensorList *tensors, void *addr) {                                          \
    const size_t place[] = {irIndex, relativeIndex};                                              \
    return set_address(#name, executor, place, 2, tensors, addr);                              \
  }

SET_ADDRESS(aclSetInputTensorAddr)
SET_ADDRESS(aclSetOutputTensorAddr)
SET_ADDRESS(aclSetTensorAddr)
SET_ADDRESS(AclSetInputTensorAddr)
SET_ADDRESS(AclSetOutputTensorAddr)
SET_ADDRESS(AclSetTensorAddr)
SET_LISTED_ADDRESS(aclSetDynamicInputTensorAddr)
SET_LISTED_ADDRESS(aclSetDynamicOutputTensorAddr)
SET_LISTED_ADDRESS(aclSetDynamicTensorAddr)
SET_LISTED_ADDRESS(AclSetDynamicInputTensorAddr)
SET_LISTED_ADDRESS(AclSetDynamicOutputTensorAddr)
SET_LISTED_ADDRESS(AclSetDynamicTensorAddr)
