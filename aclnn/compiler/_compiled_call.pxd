from libc.stdint cimport int64_t, uint64_t

from aclnn.graph.runtime.abi cimport (
    PROGRAM_NO_MEMORY,
    program_event,
    program_failure,
    program_run_fn,
    program_t,
)
from aclnn.graph.runtime.kernel_abi cimport kernel_number

from aclnn.acl._tensor_spec cimport TensorSpec, operand_t

cdef enum:
    NEEDS_LOCK = -1000000  # what `run_unlocked` gives where nothing ran

cdef struct pair_t:
    # An input and an output. Their bytes meet where the distance of their addresses, less `below`,
    # is less than `reach`, both without a sign.
    int input, output
    int64_t below
    uint64_t reach

cdef class CompiledCall:
    cdef readonly object operator, call
    cdef readonly object graph_as_built, passes, graph, workspace, schedule
    cdef readonly object packed
    cdef readonly object settings
    cdef readonly tuple packs       # `PackedOperand`s whose addresses follow the operands'
    cdef readonly Py_ssize_t workspace_size
    cdef readonly int64_t elements  # of the largest operand or loop; 0 where nothing runs
    cdef public int own_threads     # that runs may use; 0: as the process is set to
    cdef readonly tuple out_shapes
    cdef const program_t *steps
    cdef readonly int n_inputs
    cdef int n_outputs
    cdef operand_t *operands        # without addresses
    cdef int *slots                 # operands that the steps take; NULL where they take all
    cdef int n_arguments            # how many these are
    cdef bint has_long_calls        # opaque kernels that are worth several threads
    cdef int64_t *low               # bytes from an operand's address to its lowest byte, <= 0
    cdef int64_t *high              # ... and to the one past its highest
    cdef unsigned char *overlaps    # of each input with each output, in turn
    cdef pair_t *pairs              # of those that could meet
    cdef int n_pairs
    cdef unsigned long last_used
    cdef int _describe(self, tensors, overlaps) except -1
    cdef int _take(self, int index, TensorSpec spec) except -1
    cdef int _pair(self, int index, int at, int planned) except -1
    cdef int _mark_in_place(self, arguments) except -1
    cdef int _leave_out(self, arguments) except -1

cdef bint all_apart(CompiledCall plan, char **addresses) noexcept nogil
cdef bint overlaps_as_planned(CompiledCall plan, char **addresses) noexcept nogil
cdef void run_was_submitted(int64_t nanoseconds) noexcept
cdef int run_plan(CompiledCall plan, char **addresses, char *workspace,
                  const kernel_number *numbers) except -1
cdef int run_with_own_workspace(CompiledCall plan, char **addresses,
                                const kernel_number *numbers) except -1
cdef bint runs_are_observed() noexcept nogil
cdef int run_unlocked(CompiledCall plan, char **addresses, char *workspace,
                      const kernel_number *numbers, program_failure *failure) noexcept nogil
cdef int refuse_failed(CompiledCall plan, int failed, const program_failure *failure) except -1
cdef int refuse_stack(size_t needed) except -1
