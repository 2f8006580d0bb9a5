/* What the parts of the library share. */
#ifndef ACLNN_LIBRARY_H
#define ACLNN_LIBRARY_H

#include "call_table.h"

#define ACLNN_LIKELY(x) __builtin_expect(!!(x), 1)

extern const aclnn_pair aclnn_pairs[];
extern const int aclnn_n_pairs;
extern const int aclnn_first_phase; /* the number of the first pair's phase one among all functions */

/* The functions of the Cython module; null before the start, where there is no interpreter, at the end
   of the process, and in forked children. */
extern const aclnn_call_table *aclnn_calls;

/* Starts what has not started yet; null with a message where that cannot be. */
const aclnn_call_table *aclnn_start(void);

static inline const aclnn_call_table *aclnn_table(void) {
  const aclnn_call_table *table = __atomic_load_n(&aclnn_calls, __ATOMIC_ACQUIRE);
  return ACLNN_LIKELY(table != 0) ? table : aclnn_start();
}

/* Keeps the message of this thread's failure, with `printf`'s format; gives the status. */
int aclnn_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `aclnn_fail` with a whole message. */
int aclnn_fail_with(int status, const char *message);
/* Whether calls are recorded (`ACLNN_RECORD`): 0 if not. Functions have numbers: the runtime's, the
   objects', then both phases of each pair. Phase two is noted before it runs, too. Between begin and
   end a call is alone, so that lines stand in the order of calls; those that wait are not. */
extern int aclnn_recording;
void aclnn_begin_note(void);
void aclnn_note(int function, const aclnn_argument *given, int64_t result, int is_before);
void aclnn_end_note(void);

/* Gives the runtime, which has just started, the message that this thread has kept until then. */
void aclnn_hand_message_over(void);

/* Both phases of a pair. */
aclnnStatus aclnn_plan(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                       aclOpExecutor **executor);
aclnnStatus aclnn_run(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                      aclrtStream stream);

/* The interpreter, found or started: a capsule of the Cython module; -1 with a message. */
int aclnn_start_interpreter(const aclnn_call_table **table);

#endif
