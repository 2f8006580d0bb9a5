from aclnn.acl._tensor cimport aclTensor
from aclnn.acl._tensor_spec cimport ABSENT, operand_t
from aclnn.compiler._compiled_call cimport CompiledCall
from aclnn.compiler._plan_cache cimport OperatorHandle
from aclnn.compiler._request cimport request_t
from aclnn.execution._workspace cimport OwnWorkspace

cdef enum:
    NUMBERS_OF_RUN = -1  # in the place of an output's slot

cdef class ArrayForm:
    cdef object kind               # library whose arrays outputs that runs make are; None: NumPy
    cdef object nest               # how a run's outputs are handed back, where that is no tuple
    cdef tuple ties                # of each output the input whose memory it is, or -1; None: none
    cdef object form               # reads numbers that are given by name
    cdef object description        # called with the executor, gives what pickles hold
    cdef object replan             # plans joined calls for other overlaps; None for a single call
    cdef object takes              # sorts what a run of joined calls is given; None: in order
    cdef bytes numbers             # of joined calls, as kernels take them; None: the request's
    cdef dict words                # what a C-shaped function calls operands and options, by role
    cdef tuple roles               # of operands, which are names for them too; None: `names` are
    cdef tuple places              # of inputs, in the order of runs; None: as they lie
    cdef tuple overwritten         # of outputs the inputs they are written over, or -1; None: none

cdef ArrayForm OF_TENSORS  # which know nothing

cdef class Bindings:
    cdef readonly CompiledCall planned     # what phase one made, and gave the workspace's size of
    cdef readonly CompiledCall latest      # what the latest run used; None before the first
    cdef Bindings original    # the executor that a snapshot was taken of
    cdef OperatorHandle handle
    cdef readonly str origin       # the C-shaped function or functional name it was made by
    cdef tuple names               # operand names in that function's spelling, outputs last
    cdef tuple order               # operands in the order of its signature, inputs and outputs
    cdef list bound                # aclTensor or ndarray per operand, outputs last; None: no data
    cdef list given                # the caller's arrays for outputs; None for those that runs make
    cdef ArrayForm arrays
    cdef OwnWorkspace spare        # that no run uses at the moment
    cdef readonly Py_ssize_t own_workspaces  # that runs without one have allocated
    cdef object scalar_texts, switches
    cdef request_t *request        # the call; NULL before there is one
    cdef readonly bint repeatable, spent, destroyed
    cdef object __weakref__
    cdef bint from_tensors
    cdef bint rebound              # other memory was bound, which no run has met
    cdef unsigned int *versions    # of tensors, when phase one read them

    cdef dict specs(self, int first, int end)
    cdef object word_for(self, object role)
    cdef int make_room(self, int n_inputs, int n_outputs) except -1
    cdef int copy_to(self, Bindings other) except -1
    cdef bint is_written(self, int slot)
    cdef int slot_of(self, object name) except -1
    cdef dict sort_arguments(self, tuple arrays, dict named, object out)
    cdef bytes sorted_by_function(self, tuple arrays, dict named)
    cdef object outputs_given(self, object out)
    cdef int take_numbers(self, dict named) except -1
    cdef object described(self, list values, list dtypes)
    cdef int refuse_arrays(self) except -1
    cdef int refuse_destroyed(self) except -1
    cdef list bind(self, object arrays, char **addresses)
    cdef int follow_inputs(self, dict slots, list bound, list outputs) except -1
    cdef object fitting(self, int slot, object given, operand_t *found)
    cdef list place_outputs(self, list bound, dict outs, char **addresses, object kind)
    cdef bint lies_otherwise(self, int slot, object given) except -1
    cdef int make_outputs(self) except -1
    cdef int refuse_unbound(self, char **addresses) except -1
    cdef object addresses_now(self, char **addresses)
    cdef int check_tensor(self, aclTensor tensor, int index) except -1

cdef void copy_request(const request_t *request, request_t *copy) noexcept

cdef inline bint is_absent(Bindings executor, int slot) noexcept:
    """Whether an operand is one that may be null, and is."""
    return executor.request.operands[slot].ndim == ABSENT

cdef inline bint gives_one(Bindings executor) noexcept:
    """Whether there is one output, and it is no list of one."""
    return executor.request.n_outputs == 1 and not (executor.handle is not None
                                                    and executor.handle.makes_list)

cdef inline bint has_unbound(Bindings executor, char **addresses) noexcept:
    """Whether an input has no memory: `refuse_unbound` says which."""
    cdef int slot
    for slot in range(executor.request.n_inputs):
        if addresses[slot] == NULL and not is_absent(executor, slot):
            return True
    return False

cdef inline list take_addresses(Bindings executor, char **addresses):
    """Addresses of arrays at this moment, and the list that keeps them alive."""
    cdef int index
    for index in range(executor.request.n_inputs + executor.request.n_outputs):
        addresses[index] = executor.request.operands[index].data
    return executor.bound
