"""Programs of pointwise operations, as kernels of other kinds run them (`programs.h`)."""

from aclnn.graph.runtime.kernel_abi cimport tile_kernel, tile_view

cdef extern from "programs.h" nogil:
    enum:
        PROGRAM_OPERANDS
    ctypedef struct program_t:
        tile_kernel run
        int inputs
        int outputs
    void run_program(const program_t *program, const tile_view *views, ptrdiff_t rows,
                     ptrdiff_t cols, const void *params, int flags) noexcept
