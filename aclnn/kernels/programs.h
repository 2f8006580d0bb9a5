/* Programs of pointwise operations, as kernels of other kinds run them: on a row or a tile that lies in the
 * cache, before and after what they do themselves.
 *
 * `aclnn.compiler.fused_kernels.fuse` makes one. The `state` of what it returns is the address of a program_t;
 * its `prepare` fills `params` from the numbers of all operations, once a run.
 *
 * views: what it reads, then what it writes, in the order that `fuse` says; at most PROGRAM_OPERANDS. Elements
 * may be of any dtype; row_stride 0 is a row for all rows, col_stride 0 an element for all of a row (a column of
 * a matrix, or a scalar). What is written may lie exactly over what is read. Long dense rows are fastest: those
 * of fewer than 128 elements are put together by way of copies. flags: of kernel_abi.h; TILE_STREAM is that of the
 * program itself. */
#ifndef ACLNN_PROGRAMS_H
#define ACLNN_PROGRAMS_H

#include "kernel_abi.h"

enum { PROGRAM_OPERANDS = 16 };

typedef struct {
    tile_kernel run;
    int inputs, outputs;
} program_t;

static inline void run_program(const program_t *program, const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                               const void *params, int flags) {
    program->run(views, rows, cols, program, params, NULL, flags);
}

#endif
