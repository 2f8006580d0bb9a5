/* A program: a schedule as the second phase runs it, flat arrays without Python objects.  `abi.py` has the
 * constants for Python. */
#ifndef ACLNN_PROGRAM_H
#define ACLNN_PROGRAM_H

#include "kernel_abi.h"

enum {
    PROGRAM_MAX_DIMS = 8,
    PROGRAM_MAX_THREADS = 1024,
    PROGRAM_ALIGNMENT = 64,
    PROGRAM_WORKSPACE = -1, /* base is the workspace */
    PROGRAM_SCRATCH = -2,   /* base is this thread's part of the workspace */
    PROGRAM_CONSTANT = -1,  /* place of a number that is not an argument of the run */
    PROGRAM_CHECKED_FIRST = 1, /* a step's operands are checked before the run's first step */
    PROGRAM_CHECKED_LATE = 2   /* or before the step, as an earlier one makes them */
};

typedef struct {
    int base;            /* index into the call's addresses, PROGRAM_WORKSPACE or PROGRAM_SCRATCH */
    int ndim;            /* of an operand of an opaque kernel */
    ptrdiff_t offset;    /* bytes from the base */
    ptrdiff_t strides[PROGRAM_MAX_DIMS]; /* bytes, for the step's loop dimensions; scratch operands
                            are dense tiles and leave the outer ones 0 */
    ptrdiff_t shape[PROGRAM_MAX_DIMS];   /* of an operand of an opaque kernel */
} program_operand;

/* A number that a kernel takes: one of the run's by its place, or a constant. */
typedef struct {
    int place;
    kernel_number constant;
} program_number;

typedef union { tile_kernel tile; call_kernel call; } program_kernel;

typedef struct {
    program_kernel kernel;
    const void *state;
    prepare_kernel prepare;  /* NULL: the kernel takes its numbers as they are */
    call_kernel check;       /* looks at what an opaque kernel refuses, such as indices out of range, and
                                writes nothing: it is called for all chunks before the kernel is. NULL: none */
    int flags;
    int n_operands;          /* inputs first, then outputs */
    int *operands;           /* indices into the step's operands */
    ptrdiff_t scratch;       /* where its own memory lies in the thread's scratch, -1 without any */
    ptrdiff_t params;        /* where its parameters lie in the run's block */
    int n_numbers;
    program_number *numbers;
} program_op;

typedef struct {
    int is_call;                      /* one opaque kernel, called n_tiles times */
    int ndim;                         /* at least 2; the last two are the tile's */
    ptrdiff_t shape[PROGRAM_MAX_DIMS];
    ptrdiff_t tile_rows, tile_cols;
    ptrdiff_t n_tiles;
    ptrdiff_t parallel_from;          /* threads are used when the shape has at least this many elements */
    int n_operands;
    program_operand *operands;
    int n_ops;
    program_op *ops;
    int streams;                      /* whether some op has TILE_STREAM */
    int has_scratch;                  /* whether its threads need any */
    ptrdiff_t scratch_from;           /* where that begins, as ops and operands count it */
    int most_operands;                /* of any op */
    int checked;                      /* PROGRAM_CHECKED_FIRST, PROGRAM_CHECKED_LATE, or 0: nothing is */
} program_step;

/* Of a program that is a single kernel call. */
enum { PROGRAM_SINGLE_OPERANDS = 8, PROGRAM_SINGLE_BYTES = 1024 };

typedef struct {
    int n_steps;
    program_step *steps;
    size_t scratch_offset;     /* where the threads' tiles start in the workspace */
    size_t scratch_per_thread; /* bytes, 0 when no step needs a tile of its own */
    int aligns_scratch;        /* kernels have memory of their own: scratch moves on to a multiple of
                                  PROGRAM_ALIGNMENT, for which there is room */
    int max_threads;           /* that a run may use */
    int planned_threads;       /* the workspace holds scratch for this many; a run borrows that of others */
    size_t params_size;        /* bytes of all prepared parameters */
    int most_numbers;          /* that any op has which prepares them */
    int checks_first;          /* whether some step is checked before the first one */
    int is_single;             /* one kernel call on the run's operands, with few parameters: no loops */
} program_t;

/* One row per (step, thread) when tracing: nanoseconds of a monotonic clock. */
typedef struct {
    int step, thread;
    int64_t begin, end;
} program_event;

/* Of the first opaque kernel that failed: what it gave, and its step. */
typedef struct {
    int code;
    int64_t detail;
    int step;
} program_failure;

/* 0: done; PROGRAM_NO_MEMORY; or what an opaque kernel gave that failed, of which `failure`, unless NULL,
 * says more. */
enum { PROGRAM_NO_MEMORY = -1 };
typedef int (*program_run_fn)(const program_t *program, char *const *addresses, char *workspace,
                              const kernel_number *numbers, int threads, program_event *events,
                              program_failure *failure);

#endif
