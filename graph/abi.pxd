"""What `schedule.h` and `kernel_abi.h` declare; `abi.py` has their numbers for Python."""

from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int64_t

cdef extern from "kernel_abi.h" nogil:
    enum:
        TILE_STREAM
        TILE_PREFETCH_NEAR
        TILE_PREFETCH_FAR
        TILE_SAWTOOTH
    ctypedef struct tile_view:
        char *data
        ptrdiff_t row_stride
        ptrdiff_t col_stride
    ctypedef union kernel_number:
        double real
        int64_t whole
    # `noexcept` matters: a kernel that could raise would need the GIL after every call.
    ctypedef void (*tile_kernel)(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                                 const void *state, const void *params, void *scratch,
                                 int flags) noexcept nogil
    ctypedef void (*prepare_kernel)(void *params, const void *state, const kernel_number *numbers,
                                    int n_numbers) noexcept nogil

cdef extern from "schedule.h" nogil:
    enum:
        SCHEDULE_MAX_DIMS
        SCHEDULE_MAX_OPERANDS
        SCHEDULE_MAX_THREADS
        SCHEDULE_NUMBERS
        SCHEDULE_PARAMS
        SCHEDULE_PARAMS_ALIGNMENT
        SCHEDULE_WORKSPACE
        SCHEDULE_SCRATCH
    ctypedef struct schedule_operand:
        int base
        ptrdiff_t offset
        ptrdiff_t strides[SCHEDULE_MAX_DIMS]
    ctypedef struct schedule_op:
        tile_kernel kernel
        const void *state
        prepare_kernel prepare
        size_t params_offset
        int flags
        int n_operands
        int operands[SCHEDULE_MAX_OPERANDS]
    ctypedef struct schedule_step:
        int ndim
        ptrdiff_t shape[SCHEDULE_MAX_DIMS]
        ptrdiff_t tile_rows
        ptrdiff_t tile_cols
        ptrdiff_t n_tiles
        ptrdiff_t parallel_from
        int n_operands
        schedule_operand operands[SCHEDULE_MAX_OPERANDS]
        int n_ops
        schedule_op *ops
        int streams
    ctypedef struct schedule_t:
        int n_steps
        schedule_step *steps
        size_t scratch_offset
        size_t scratch_per_thread
        int max_threads
    ctypedef struct schedule_event:
        int step
        int thread
        int64_t begin
        int64_t end
    ctypedef void (*schedule_run_fn)(const schedule_t *schedule, char *const *addresses,
                                     char *workspace, const kernel_number *numbers, int threads,
                                     schedule_event *events) noexcept nogil
