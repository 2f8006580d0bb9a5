from aclnn.acl._tensor cimport aclTensor
from aclnn.execution._operand cimport Headers
from aclnn.execution._workspace cimport OwnWorkspace
from graph.runtime.abi cimport kernel_number
from aclnn.acl._tensor_spec cimport item_size, operand_t
from aclnn.compiler._compiled_call cimport CompiledCall
from aclnn.compiler._plan_cache cimport OperatorHandle
from aclnn.compiler._request cimport FEW, MANY, request_t

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

cdef class aclOpExecutor:
    cdef readonly CompiledCall planned     # what phase one made, and gave the workspace's size of
    cdef readonly CompiledCall latest      # what the latest run used; None before the first
    cdef aclOpExecutor original    # the executor that a snapshot was taken of
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

    cdef int make_room(self, int n_inputs, int n_outputs) except -1
    cdef list bind(self, object arrays, char **addresses)
    cdef object fitting(self, int slot, object given, operand_t *found)
    cdef int slot_of(self, object name) except -1
    cdef dict sort_arguments(self, tuple arrays, dict named, object out)
    cdef bytes sorted_by_function(self, tuple arrays, dict named)
    cdef int take_numbers(self, dict named) except -1
    cdef object word_for(self, object role)
    cdef object described(self, list values, list dtypes)
    cdef int follow_inputs(self, dict slots, list bound, list outputs) except -1
    cdef bint is_written(self, int slot)
    cdef dict specs(self, int first, int end)
    cdef object outputs_given(self, object out)
    cdef int refuse_arrays(self) except -1
    cdef int make_outputs(self) except -1
    cdef object run_with(self, Headers inputs, object out, object kind, Headers held, bytes numbers)
    cdef bint gives_one(self) noexcept
    cdef object run_given(self, tuple arrays, dict named, object out, object workspace)
    cdef bint runs_as_bound(self) noexcept
    cdef object run_bound(self)
    cdef list place_outputs(self, list bound, dict outs, char **addresses, object kind)
    cdef bint lies_otherwise(self, int slot, object given) except -1
    cdef object handed_back(self, list results, object out)
    cdef int run_spare(self, char **addresses, const kernel_number *numbers) except -1
    cdef int tell_written(self) except -1
    cdef int refuse_unbound(self, char **addresses) except -1
    cdef bint is_absent(self, int slot) noexcept
    cdef int refuse_destroyed(self) except -1
    cdef aclOpExecutor snapshot(self)
    cdef list take_addresses(self, char **addresses)
    cdef object addresses_now(self, char **addresses)
    cdef int check_tensor(self, aclTensor tensor, int index) except -1
    cdef CompiledCall plan_shown(self)
    cdef int show_next(self) except -1
    cdef CompiledCall plan_for(self, char **addresses)
    cdef CompiledCall plan_anew(self, char **addresses)
    cdef int run_in(self, char **addresses, object workspace, bytes numbers=*,
                    list held=*) except -1
    cdef int tell_shapes(self) except -1
    cdef int execute(self, char **addresses, char *workspace, bytes numbers=*,
                     list held=*) except -1
    cdef int pack_bound(self) except -1
cdef aclOpExecutor new_executor()

cdef inline char *address_of(aclTensor tensor) noexcept:
    if tensor.offset == 0:
        return tensor.storage
    return tensor.storage + tensor.offset * item_size(tensor.dtype) if tensor.storage else NULL
