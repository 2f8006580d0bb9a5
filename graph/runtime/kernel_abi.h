/* The contract between schedules and kernels: all that graph/ and a kernel
 * library know of each other.
 *
 * A kernel works on one two-dimensional tile: every operand is an address and
 * two byte strides, inputs first, the output last.  It must not keep state
 * between tiles, so that tiles may run in any order and on any thread.
 */
#ifndef ACLNN_TILE_ABI_H
#define ACLNN_TILE_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data;           /* address of element [0, 0] of the tile */
    ptrdiff_t row_stride; /* bytes from [i, j] to [i + 1, j]; any sign, 0 for broadcast */
    ptrdiff_t col_stride; /* bytes from [i, j] to [i, j + 1] */
} tile_view;

enum {
    TILE_STREAM = 1, /* the output will not be read soon: bypass the cache if you can; whoever runs
                        the kernels waits for the stores when a thread has done its share */
    TILE_PREFETCH_NEAR = 2, /* operands are larger than the nearest cache: prefetch a little ahead */
    TILE_PREFETCH_FAR = 4,  /* operands are far larger than a core's own caches: prefetch further
                               ahead as well */
    TILE_SAWTOOTH = 8 /* operands are somewhat larger than a core's own caches: whoever runs the
                         kernels walks through the tiles back and forth, run by run */
};

enum { TILE_SCALARS = 4 };

/* state: what the kernel was made for (dtypes, formula), immutable, owned by
 * the kernel library.  scalars: the call's attributes, the same for all tiles;
 * always TILE_SCALARS of them, those that the call lacks are 0. */
typedef void (*tile_kernel)(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                            const void *state, const double *scalars, int flags);

#endif
