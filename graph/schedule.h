/* A schedule as the second phase sees it: flat arrays, no Python objects.  `abi.py` has the constants
 * for Python. */
#ifndef ACLNN_SCHEDULE_H
#define ACLNN_SCHEDULE_H

#include "kernel_abi.h"

enum {
    SCHEDULE_MAX_DIMS = 8,
    SCHEDULE_MAX_OPERANDS = 8,
    SCHEDULE_MAX_THREADS = 1024,
    SCHEDULE_NUMBERS = 4,    /* that a run is given; those that a call lacks are 0 */
    SCHEDULE_PARAMS = 4096,  /* bytes of prepared parameters that a run has room for */
    SCHEDULE_PARAMS_ALIGNMENT = 64,
    SCHEDULE_WORKSPACE = -1, /* base is the workspace */
    SCHEDULE_SCRATCH = -2    /* base is this thread's part of the workspace */
};

typedef struct {
    int base;            /* index into the call's addresses, SCHEDULE_WORKSPACE or SCHEDULE_SCRATCH */
    ptrdiff_t offset;    /* bytes from the base */
    ptrdiff_t strides[SCHEDULE_MAX_DIMS]; /* bytes, for the step's loop dimensions; scratch operands
                            are dense tiles and leave the outer ones 0 */
} schedule_operand;

typedef struct {
    tile_kernel kernel;
    const void *state;
    prepare_kernel prepare; /* NULL: the kernel takes the numbers as they are */
    size_t params_offset;   /* of what it prepares, in the run's block */
    int flags;
    int n_operands;                     /* inputs first, the output last */
    int operands[SCHEDULE_MAX_OPERANDS]; /* indices into the step's operands */
} schedule_op;

typedef struct {
    int ndim;                         /* at least 2; the last two are the tile's */
    ptrdiff_t shape[SCHEDULE_MAX_DIMS];
    ptrdiff_t tile_rows, tile_cols;
    ptrdiff_t n_tiles;
    ptrdiff_t parallel_from;          /* threads are used when the shape has at least this many elements */
    int n_operands;
    schedule_operand operands[SCHEDULE_MAX_OPERANDS];
    int n_ops;
    schedule_op *ops;
    int streams;                      /* whether some op has TILE_STREAM */
} schedule_step;

typedef struct {
    int n_steps;
    schedule_step *steps;
    size_t scratch_offset;     /* where the threads' tiles start in the workspace */
    size_t scratch_per_thread; /* bytes, 0 when no step needs a tile of its own */
    int max_threads;           /* the workspace holds scratch for this many */
} schedule_t;

/* One row per (step, thread) when tracing: nanoseconds of a monotonic clock. */
typedef struct {
    int step, thread;
    int64_t begin, end;
} schedule_event;

typedef void (*schedule_run_fn)(const schedule_t *schedule, char *const *addresses, char *workspace,
                                const kernel_number *numbers, int threads, schedule_event *events);

#endif
