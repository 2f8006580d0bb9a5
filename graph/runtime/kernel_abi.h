/* The contract between schedules and kernels: all that graph/ and a kernel library know of each other.
 *
 * A kernel keeps no state between its calls, so that tiles may run in any order and on any thread.
 */
#ifndef ACLNN_KERNEL_ABI_H
#define ACLNN_KERNEL_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data;           /* address of element [0, 0] of the tile */
    ptrdiff_t row_stride; /* bytes from [i, j] to [i + 1, j]; any sign, 0 for broadcast */
    ptrdiff_t col_stride; /* bytes from [i, j] to [i, j + 1] */
} tile_view;

/* A number that a node takes, real or whole as its kernel wants it. */
typedef union {
    double real;
    int64_t whole;
} kernel_number;

enum {
    TILE_STREAM = 1, /* the outputs will not be read soon: bypass the cache if you can; whoever runs the
                        kernels waits for the stores when a thread has done its share */
    TILE_PREFETCH_NEAR = 2, /* operands are larger than the nearest cache: prefetch a little ahead */
    TILE_PREFETCH_FAR = 4,  /* operands are far larger than a core's own caches: prefetch further
                               ahead as well */
    TILE_SAWTOOTH = 8 /* operands are somewhat larger than a core's own caches: whoever runs the
                         kernels walks through the tiles back and forth, run by run */
};

/* A tile kernel: pointwise nodes and row nodes. views: inputs first, then outputs, one per operand of the
 * node. rows x cols: of the tile. Pointwise: element [i, j] of each output depends on elements [i, j] of
 * the inputs. Row-wise: cols is the whole length of the axis, so that a row of the tile is a whole row; an
 * output that is reduced has col_stride 0 (one element per row, at data + i*row_stride); an input that has
 * one element per row (mean, rstd) has col_stride 0, one that is the same for all rows (weights) has
 * row_stride 0.
 *
 * Any output may lie exactly over an input (same address and strides, same item size): a kernel reads
 * element [i, j] of every input for the last time before it writes element [i, j] of any output, or at the
 * same position.
 *
 * state: what the kernel was made for (dtypes, formula), immutable, owned by the kernel library.
 * params: of the node, prepared once a run by `prepare`; without one, the node's numbers as they are.
 * scratch: this thread's, aligned to 64 bytes, as many bytes as the kernel asked for by scratch_bytes;
 * else NULL. */
typedef void (*tile_kernel)(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols, const void *state,
                            const void *params, void *scratch, int flags);

/* Fills a block of params_size bytes (64-byte aligned) from the node's numbers, once a run. */
typedef void (*prepare_kernel)(void *params, const void *state, const kernel_number *numbers,
                               int n_numbers);

/* An opaque kernel: called `chunks` times, side by side on several threads; each call does its share of
 * the work. */
typedef struct {
    char *data;
    int ndim;
    const ptrdiff_t *shape;
    const ptrdiff_t *strides; /* bytes */
} array_view;

typedef struct {
    int threads;    /* how many the call may use, itself or by a library */
    int64_t detail; /* takes a number that says more about a failure: several runs may share the state */
} call_context;

/* 0: done; anything else: failed, the run stops. */
typedef int (*call_kernel)(const array_view *views, const void *state, const void *params, void *scratch,
                           ptrdiff_t chunk, ptrdiff_t chunks, call_context *context);

#endif
