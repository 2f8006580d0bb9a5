"""Sequences of passes: of a kernel's state, the one being made."""

from aclnn.kernels.rows.sums cimport reduction_t
from aclnn.kernels.rows.walk cimport finish_fn, row_state, run_fn

# Which of a pass's sums have floats as their terms.
cdef enum:
    NEITHER
    FIRST
    SECOND
    BOTH


cdef inline void add_pass(row_state *state, run_fn run, finish_fn finish, reduction_t reduction,
                          int inputs, bint columns=False, bint writes=False,
                          int floats=NEITHER) noexcept:
    state.passes[state.n_passes].run = run
    state.passes[state.n_passes].finish = finish
    state.passes[state.n_passes].reduction = reduction
    state.passes[state.n_passes].floats = floats
    state.passes[state.n_passes].inputs = inputs
    state.passes[state.n_passes].columns = columns
    state.passes[state.n_passes].writes = writes
    state.n_passes += 1
