"""Declarations of `program.h`; `abi.py` has the numbers for Python."""

from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int64_t

from aclnn.graph.runtime.kernel_abi cimport call_kernel, kernel_number, prepare_kernel, tile_kernel

cdef extern from "program.h" nogil:
    enum:
        PROGRAM_MAX_DIMS
        PROGRAM_MAX_THREADS
        PROGRAM_ALIGNMENT
        PROGRAM_WORKSPACE
        PROGRAM_SCRATCH
        PROGRAM_CONSTANT
        PROGRAM_CHECKED_FIRST
        PROGRAM_CHECKED_LATE
        PROGRAM_NO_MEMORY
        PROGRAM_SINGLE_OPERANDS
        PROGRAM_SINGLE_BYTES
    ctypedef struct program_operand:
        int base
        int ndim
        ptrdiff_t offset
        ptrdiff_t strides[PROGRAM_MAX_DIMS]
        ptrdiff_t shape[PROGRAM_MAX_DIMS]
    ctypedef struct program_number:
        int place
        kernel_number constant
    ctypedef union program_kernel:
        tile_kernel tile
        call_kernel call
    ctypedef struct program_op:
        program_kernel kernel
        const void *state
        prepare_kernel prepare
        call_kernel check
        int flags
        int n_operands
        int *operands
        ptrdiff_t scratch
        ptrdiff_t params
        int n_numbers
        program_number *numbers
    ctypedef struct program_step:
        int is_call
        int ndim
        ptrdiff_t shape[PROGRAM_MAX_DIMS]
        ptrdiff_t tile_rows
        ptrdiff_t tile_cols
        ptrdiff_t n_tiles
        ptrdiff_t parallel_from
        int n_operands
        program_operand *operands
        int n_ops
        program_op *ops
        int streams
        int has_scratch
        ptrdiff_t scratch_from
        int most_operands
        int checked
    ctypedef struct program_t:
        int n_steps
        program_step *steps
        size_t scratch_offset
        size_t scratch_per_thread
        int aligns_scratch
        int max_threads
        int planned_threads
        size_t params_size
        int most_numbers
        int checks_first
        int is_single
    ctypedef struct program_event:
        int step
        int thread
        int64_t begin
        int64_t end
    ctypedef struct program_failure:
        int code
        int64_t detail
        int step
    ctypedef int (*program_run_fn)(const program_t *program, char *const *addresses,
                                   char *workspace, const kernel_number *numbers, int threads,
                                   program_event *events,
                                   program_failure *failure) noexcept nogil
