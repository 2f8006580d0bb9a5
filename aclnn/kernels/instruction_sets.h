/* Whose loops the functions of a module name that Python calls.
 *
 * Those functions are compiled once, loops once for each instruction set, which has a table of them
 * (`tools/split_loops.py`). A thread says whose it is about to name: `aclnn/isa.py` does before each call.
 */
#ifndef ACLNN_INSTRUCTION_SETS_H
#define ACLNN_INSTRUCTION_SETS_H

enum { SET_GENERIC, SET_NEON, SET_V3, SET_V4, SETS }; /* as `isa.LEVELS` has them, lowest first */

/* A bit for each set that a module has loops of, where its tables are. */
extern __attribute__((visibility("hidden"))) const int SETS_BUILT;

static __thread int set_taken = -1; /* by this thread */

/* The lowest one of those that are there, where nobody said any. */
static inline int set_in_use(void) { return set_taken < 0 ? __builtin_ctz((unsigned)SETS_BUILT) : set_taken; }
/* `set` is one of those that are built. */
static inline void use_set(int set) { set_taken = set; }

#endif
