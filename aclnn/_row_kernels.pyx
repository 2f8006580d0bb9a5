"""Row-wise kernels: softmax, norms, their gradients, and reductions along an axis.

A tile holds whole rows.  A kernel goes over a row in passes: the first find sums or maxima, the
last one computes the output from them.  Most compute in double and round once; sums have one order
for all layouts (`aclnn/kernels/rows/sums.pxd`), so that bits depend on the row alone.

========================== =============================== ===================== =======
kernel                     inputs, in order                outputs, in order     numbers
========================== =============================== ===================== =======
softmax                    x                               y
log_softmax                x                               y
softmax_backward           grad, output                    dx
log_softmax_backward       grad, output                    dx
layer_norm                 x, [weight], [bias]             y, [mean], [rstd]     eps
layer_norm_backward_input  grad, x, mean, rstd, [weight]   dx
layer_norm_backward_params grad, x, mean, rstd             [dweight], [dbias]
moments                    x                               mean, rstd            eps
rms_norm                   x, [gamma]                      y, [rstd]             eps
rms_norm_backward_input    grad, x, rstd, [gamma]          dx
rms_norm_backward_gamma    grad, x, rstd                   dgamma
sum, mean, amax            x                               reduced
========================== =============================== ===================== =======

Operands in brackets may be absent; without dweight, layer_norm_backward_params takes grad alone.
weight, bias and gamma have one element for each column; mean, rstd and what is reduced one for
each row.  The gradients of parameters are reduced along the rows of the norm: the columns of their
tile are these rows, so that their mean and rstd have one element for each column.

This file is compiled once per instruction set, each time into a module of its own.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from aclnn.kernels.element cimport bfloat16_t, half_t, load, load_fn, store, store_fn
from aclnn.kernels.rows.norm cimport (
    add_about_first,
    add_for_params,
    add_shares,
    add_squares,
    add_squares_about_mean,
    give_params,
    keep_deviation,
    keep_inverse_root,
    keep_mean,
    keep_one_share,
    keep_shares,
    layer_norm,
    norm_backward_input,
    rms_norm,
    try_deviation,
)
from aclnn.kernels.rows.reduce cimport (
    add_elements,
    add_elements_and_sizes,
    add_exactly,
    find_most_or_nan,
    give_mean,
    give_most,
    give_sum,
    try_mean,
    try_sum,
)
from aclnn.kernels.rows.softmax cimport (
    add_exponentials,
    add_exponentials_of_halves,
    add_halves_less_than_most,
    add_less_than_most,
    add_products,
    add_products_of_halves,
    find_most,
    halves_t,
    invert_sum,
    keep_most,
    keep_sum,
    log_of_sum,
    log_of_sum_of_halves,
    log_softmax,
    log_softmax_backward,
    log_softmax_backward_of_halves,
    log_softmax_of_halves,
    softmax,
    softmax_backward,
    softmax_kept,
    softmax_of_halves,
    softmax_of_halves_kept,
)
from aclnn.kernels.rows.running cimport lines_fn, sum_behind, sum_beside
from aclnn.kernels.rows.sums cimport (
    EXACT_SUM,
    MOST,
    MOST_OR_NAN,
    NOTHING,
    SUM,
    TWO_SUMS,
    reduction_t,
)
from aclnn.kernels.rows.tile cimport row_tile
from aclnn.kernels.rows.vecd cimport elem_t, load_vecds, vecd, wide_half_t, wide_single_t
from aclnn.kernels.rows.walk cimport (
    COLUMNS,
    GIVEN,
    INPUTS,
    RESULTS,
    finish_fn,
    kernel_number,
    lay_out,
    operand_t,
    output_t,
    row_state,
    run_fn,
    tile_kernel,
    tile_view,
    widen_fn,
    work_t,
)
from aclnn.kernels.rows.whole cimport (
    add_column,
    add_fn,
    row_sum,
    sum_fn,
    sum_whole,
    truth_t,
    whole_state,
)

from typing import NamedTuple

from aclnn.acl import dtypes

ITEM_SIZES = {dtype.name: dtype.itemsize for dtype in dtypes.NUMPY.values()}
FLOATING = ("float32", "float16", "bfloat16", "float64")
WHOLE = ("int8", "uint8", "int16", "int32", "int64", "bool")

cdef enum:
    MOST_OPERANDS = 8
    MOST_NUMBERS = 8
    LINE = 64
    GUARD = 0x5a  # in bytes behind a kernel's scratch


class Operand(NamedTuple):
    """One operand of a kernel, and what it is to it."""

    name: str
    role: str    # 'input', 'column', 'given'; 'out', 'result'
    slot: int
    optional: bool = False


class Kernel(NamedTuple):
    """The operands of a kernel, and what it costs: nanoseconds for an element, from a cache."""

    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    cost: float


_X = Operand("x", "input", 0)
_Y = Operand("y", "out", 0)
_GRAD = Operand("grad", "input", 0)
_OUTPUT = Operand("output", "input", 1)
_DX = Operand("dx", "out", 0)
_SECOND_X = Operand("x", "input", 1)
_REDUCED = Operand("reduced", "result", 0)

KERNELS = {
    "softmax": Kernel((_X,), (_Y,), 1.0),
    "log_softmax": Kernel((_X,), (_Y,), 1.0),
    "softmax_backward": Kernel((_GRAD, _OUTPUT), (_DX,), 0.5),
    "log_softmax_backward": Kernel((_GRAD, _OUTPUT), (_DX,), 0.9),
    "layer_norm": Kernel(
        (_X, Operand("weight", "column", 0, True), Operand("bias", "column", 1, True)),
        (_Y, Operand("mean", "result", 0, True), Operand("rstd", "result", 1, True)),
        0.7,
    ),
    "layer_norm_backward_input": Kernel(
        (_GRAD, _SECOND_X, Operand("mean", "given", 0), Operand("rstd", "given", 1),
         Operand("weight", "column", 0, True)),
        (_DX,),
        0.9,
    ),
    "layer_norm_backward_params": Kernel(
        (_GRAD, _SECOND_X, Operand("mean", "column", 0), Operand("rstd", "column", 1)),
        (Operand("dweight", "result", 0, True), Operand("dbias", "result", 1, True)),
        0.6,
    ),
    "moments": Kernel((_X,), (Operand("mean", "result", 0), Operand("rstd", "result", 1)), 0.5),
    "rms_norm": Kernel(
        (_X, Operand("gamma", "column", 0, True)),
        (_Y, Operand("rstd", "result", 0, True)),
        0.5,
    ),
    "rms_norm_backward_input": Kernel(
        (_GRAD, _SECOND_X, Operand("rstd", "given", 1), Operand("gamma", "column", 0, True)),
        (_DX,),
        0.9,
    ),
    "rms_norm_backward_gamma": Kernel(
        (_GRAD, _SECOND_X, Operand("rstd", "column", 1)),
        (Operand("dgamma", "result", 0),),
        0.6,
    ),
    "sum": Kernel((_X,), (_REDUCED,), 0.3),
    "mean": Kernel((_X,), (_REDUCED,), 0.3),
    "amax": Kernel((_X,), (_REDUCED,), 0.15),
}

# What is rounded once, whatever the results' dtype.
STATISTICS = ("mean", "rstd")


# --- Tables: passes by name and type ------------------------------------------------------------

# Which of a pass's sums have floats as their terms.
cdef enum:
    NEITHER
    FIRST
    SECOND
    BOTH


cdef void add_pass(row_state *state, run_fn run, finish_fn finish, reduction_t reduction,
                   int inputs, bint columns=False, bint writes=False, int floats=NEITHER) noexcept:
    state.passes[state.n_passes].run = run
    state.passes[state.n_passes].finish = finish
    state.passes[state.n_passes].reduction = reduction
    state.passes[state.n_passes].floats = floats
    state.passes[state.n_passes].inputs = inputs
    state.passes[state.n_passes].columns = columns
    state.passes[state.n_passes].writes = writes
    state.n_passes += 1


cdef void add_sum(row_state *state, finish_fn finish, const elem_t *like) noexcept:
    """A sum of elements: of float64 ones a double has no digits to spare."""
    if elem_t is double:
        add_pass(state, <run_fn>add_exactly[elem_t], finish, EXACT_SUM, 1)
    else:
        add_pass(state, <run_fn>add_elements[elem_t], finish, SUM, 1)


cdef int set_softmax(row_state *state, str name, const elem_t *like) except -1:
    if name == "softmax_backward":
        if elem_t is float or elem_t is double or elem_t is wide_single_t:
            add_pass(state, <run_fn>add_products[elem_t], keep_sum, SUM, 2)
        else:
            add_pass(state, <run_fn>add_products_of_halves[elem_t], keep_sum, SUM, 2)
        add_pass(state, <run_fn>softmax_backward[elem_t], NULL, NOTHING, 2, False, True)
    elif name == "log_softmax_backward":
        add_sum(state, keep_sum, like)
        if elem_t is float or elem_t is double or elem_t is wide_single_t:
            add_pass(state, <run_fn>log_softmax_backward[elem_t], NULL, NOTHING, 2, False, True)
        else:
            add_pass(state, <run_fn>log_softmax_backward_of_halves[elem_t], NULL, NOTHING, 2,
                     False, True)
    else:
        add_pass(state, <run_fn>find_most[elem_t], keep_most, MOST, 1, False, False,
                 NEITHER if elem_t is double else FIRST)
        if elem_t is float or elem_t is double or elem_t is wide_single_t:
            set_exponentials(state, name, like)
        else:
            set_exponentials_of_halves(state, name, like)
    return 0


cdef int set_exponentials(row_state *state, str name, const elem_t *like) except -1:
    if name == "softmax":
        add_pass(state, <run_fn>add_exponentials[elem_t], invert_sum, SUM, 1)
        add_pass(state, <run_fn>softmax[elem_t], NULL, NOTHING, 1, False, True)
        state.run_kept = <run_fn>softmax_kept[elem_t]
    else:
        add_pass(state, <run_fn>add_less_than_most[elem_t], log_of_sum, TWO_SUMS, 1, False, False,
                 SECOND)
        add_pass(state, <run_fn>log_softmax[elem_t], NULL, NOTHING, 1, False, True)
    return 0


cdef int set_exponentials_of_halves(row_state *state, str name, const halves_t *like) except -1:
    if name == "softmax":
        add_pass(state, <run_fn>add_exponentials_of_halves[halves_t], invert_sum, SUM, 1, False,
                 False, FIRST)
        add_pass(state, <run_fn>softmax_of_halves[halves_t], NULL, NOTHING, 1, False, True)
        state.run_kept = <run_fn>softmax_of_halves_kept[halves_t]
    else:
        add_pass(state, <run_fn>add_halves_less_than_most[halves_t], log_of_sum_of_halves, TWO_SUMS,
                 1, False, False, BOTH)
        add_pass(state, <run_fn>log_softmax_of_halves[halves_t], NULL, NOTHING, 1, False, True)
    return 0


cdef int set_moments(row_state *state, bint all_digits, const elem_t *like) except -1:
    """Sums about the first element; about the mean where these leave too few digits."""
    if all_digits:
        add_sum(state, keep_mean, like)
    else:
        add_pass(state, <run_fn>add_about_first[elem_t], try_deviation, TWO_SUMS, 1)
        state.passes[0].from_first = True
    add_pass(state, <run_fn>add_squares_about_mean[elem_t], keep_deviation, SUM, 1)
    state.passes[1].if_doubtful = not all_digits
    return 0


cdef int set_norm(row_state *state, str name, bint all_digits, const elem_t *like) except -1:
    if name == "layer_norm" or name == "moments":
        set_moments(state, all_digits, like)
        if name == "layer_norm":
            add_pass(state, <run_fn>layer_norm[elem_t], NULL, NOTHING, 1, True, True)
    elif name == "rms_norm":
        add_pass(state, <run_fn>add_squares[elem_t], keep_inverse_root, SUM, 1)
        add_pass(state, <run_fn>rms_norm[elem_t], NULL, NOTHING, 1, True, True)
    elif name in ("layer_norm_backward_params", "rms_norm_backward_gamma"):
        add_pass(state, <run_fn>add_for_params[elem_t], give_params, TWO_SUMS, 2, True)
        state.passes[0].few = True
    else:
        add_pass(state, <run_fn>add_shares[elem_t],
                 keep_shares if name == "layer_norm_backward_input" else keep_one_share,
                 TWO_SUMS, 2, True)
        add_pass(state, <run_fn>norm_backward_input[elem_t], NULL, NOTHING, 2, True, True)
    return 0


cdef int set_reduction(row_state *state, str name, const elem_t *like) except -1:
    cdef finish_fn finish = give_mean if name == "mean" else give_sum
    if name == "amax":
        add_pass(state, <run_fn>find_most_or_nan[elem_t], give_most, MOST_OR_NAN, 1, False, False,
                 NEITHER if elem_t is double else FIRST)
        state.passes[0].many = elem_t is not double
        return 0
    if elem_t is half_t:
        # A double holds the sum of a chunk of float16 numbers exactly.
        add_pass(state, <run_fn>add_elements[elem_t], finish, SUM, 1)
        state.passes[0].many = True
        return 0
    if elem_t is float or elem_t is bfloat16_t:
        add_pass(state, <run_fn>add_elements_and_sizes[elem_t],
                 try_mean if name == "mean" else try_sum, TWO_SUMS, 1, False, False, SECOND)
        state.passes[0].many = True
    add_pass(state, <run_fn>add_exactly[elem_t], finish, EXACT_SUM, 1)
    state.passes[state.n_passes - 1].if_doubtful = state.n_passes > 1
    return 0


cdef int set_passes(row_state *state, str name, bint all_digits, const elem_t *like) except -1:
    """`all_digits`: results are to have those of float64."""
    state.size = sizeof(elem_t)
    if "softmax" in name:
        return set_softmax(state, name, like)
    if "norm" in name or name == "moments":
        return set_norm(state, name, all_digits, like)
    return set_reduction(state, name, like)


cdef int set_passes_for(row_state *state, str name, str dtype, str rounded) except -1:
    """For elements of a dtype, and results that are rounded to one."""
    cdef bint all_digits = rounded == "float64"
    if dtype == "float32":
        return set_passes(state, name, False, <const float *>NULL)
    if dtype == "float16":
        return set_passes(state, name, False, <const half_t *>NULL)
    if dtype == "bfloat16":
        return set_passes(state, name, False, <const bfloat16_t *>NULL)
    if all_digits or "softmax" not in name:
        return set_passes(state, name, all_digits, <const double *>NULL)
    # Operands that become double as they are read: with the bits of a call on their dtype.
    state.size = sizeof(double)
    if rounded == "float32":
        return set_softmax(state, name, <const wide_single_t *>NULL)
    return set_softmax(state, name, <const wide_half_t *>NULL)


cdef load_fn loader(str dtype) except NULL:
    if dtype == "float32":
        return <load_fn>load[float, double]
    if dtype == "float16":
        return <load_fn>load[half_t, double]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, double]
    return <load_fn>load[double, double]


cdef widen_fn widener(str dtype) except NULL:
    if dtype == "float32":
        return <widen_fn>load_vecds[float]
    if dtype == "float16":
        return <widen_fn>load_vecds[half_t]
    if dtype == "bfloat16":
        return <widen_fn>load_vecds[bfloat16_t]
    return <widen_fn>load_vecds[double]


cdef store_fn storer(str dtype) except NULL:
    if dtype == "float32":
        return <store_fn>store[double, float]
    if dtype == "float16":
        return <store_fn>store[double, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[double, bfloat16_t]
    return <store_fn>store[double, double]


cdef int set_whole(whole_state *state, str dtype) except -1:
    if dtype == "int8":
        state.row_sum, state.add = <sum_fn>row_sum[int8_t], <add_fn>add_column[int8_t]
    elif dtype == "uint8":
        state.row_sum, state.add = <sum_fn>row_sum[uint8_t], <add_fn>add_column[uint8_t]
    elif dtype == "int16":
        state.row_sum, state.add = <sum_fn>row_sum[int16_t], <add_fn>add_column[int16_t]
    elif dtype == "int32":
        state.row_sum, state.add = <sum_fn>row_sum[int32_t], <add_fn>add_column[int32_t]
    elif dtype == "int64":
        state.row_sum, state.add = <sum_fn>row_sum[int64_t], <add_fn>add_column[int64_t]
    else:
        state.row_sum, state.add = <sum_fn>row_sum[truth_t], <add_fn>add_column[truth_t]
    return 0


# --- Kernel references --------------------------------------------------------------------------

cdef class RowKernelRef:
    """A row-wise kernel made for certain dtypes; owns the state that its address stands for.

    Attributes
    ----------
    fn, state : int
        Addresses of a `tile_kernel` and of what it is called with.
    name : str
    itemsizes : tuple of int
        Bytes of an element of every operand, inputs first, then outputs.
    prepare, params_size : int
        0: kernels read the node's numbers as they are.
    cost : float
        Nanoseconds that an element of a row takes, roughly.
    """

    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly double cost
    cdef readonly size_t fn
    cdef void *memory

    prepare = 0
    params_size = 0

    def __dealloc__(self):
        free(self.memory)

    @property
    def state(self):
        return <size_t>self.memory

    def scratch_bytes(self, Py_ssize_t rows, Py_ssize_t cols):
        """How much scratch a tile of this size takes."""
        cdef work_t work
        if self.fn != <size_t><tile_kernel>row_tile:
            return 0
        return lay_out(&work, <const row_state *>self.memory, rows, cols, NULL)

    def __repr__(self):
        return f"<RowKernelRef {self.name}>"


cdef RowKernelRef new_ref(str name, tuple in_dtypes, tuple out_dtypes, double cost,
                          tile_kernel fn, size_t size):
    cdef RowKernelRef ref = RowKernelRef.__new__(RowKernelRef)
    ref.name = name
    ref.cost = cost
    ref.itemsizes = tuple(ITEM_SIZES[dtype] for dtype in (*in_dtypes, *out_dtypes))
    ref.fn = <size_t>fn
    ref.memory = calloc(1, size)
    if ref.memory == NULL:
        raise MemoryError
    return ref


def row_kernel(str name not None, tuple in_dtypes not None, tuple out_dtypes not None, *,
               str result_dtype=None,
               present=None):
    """The kernel of an operation on rows, for these dtypes and operands.

    Parameters
    ----------
    name : str
        One of `KERNELS`.
    in_dtypes, out_dtypes : tuple of str
        Of the operands that are present, in the order of the module's table: 'float32', 'float16',
        'bfloat16' or 'float64', each on its own; for `sum` also those of integers, and 'bool'.
    result_dtype : str, optional
        What results are rounded to before they become of the output's dtype; that by default. It
        does not concern mean and rstd.
    present : collection of str, optional
        Those optional operands that there are; all by default.

    Returns
    -------
    RowKernelRef
    """
    if name not in KERNELS:
        raise ValueError(f"no row kernel is called {name!r}, they are {', '.join(KERNELS)}")
    inputs, outputs = operands_of(name, present)
    check_count(name, "inputs", inputs, in_dtypes)
    check_count(name, "outputs", outputs, out_dtypes)
    stages = (",".join(in_dtypes),) + ((result_dtype,) if result_dtype else ()) + (
        ",".join(out_dtypes),)
    title = f"{name}[{'->'.join(stages)}]"
    if name == "sum" and in_dtypes[0] in WHOLE:
        return whole_kernel(title, in_dtypes, out_dtypes)
    for dtype in (*in_dtypes, *out_dtypes, result_dtype or FLOATING[0]):
        if dtype not in FLOATING:
            raise ValueError(f"{title}: dtypes are {', '.join(FLOATING)}")
    return floating_kernel(name, title, inputs, in_dtypes, outputs, out_dtypes, result_dtype)


cdef tuple operands_of(str name, present):
    """The inputs and outputs that there are."""
    kernel = KERNELS[name]
    optional = {o.name for o in (*kernel.inputs, *kernel.outputs) if o.optional}
    chosen = optional if present is None else set(present)
    if not chosen <= optional:
        unknown = ", ".join(sorted(chosen - optional))
        raise ValueError(f"{name} has no optional operand {unknown}")
    inputs = tuple(o for o in kernel.inputs if not o.optional or o.name in chosen)
    outputs = tuple(o for o in kernel.outputs if not o.optional or o.name in chosen)
    if not outputs:
        raise ValueError(f"{name} needs an output")
    if name == "layer_norm_backward_params" and "dweight" not in chosen:
        inputs = inputs[:1]
    return inputs, outputs


cdef int check_count(str name, str what, operands, dtypes) except -1:
    if len(operands) != len(dtypes):
        names = ", ".join(o.name for o in operands)
        raise ValueError(f"{name} has the {what} {names}; {len(dtypes)} dtypes given")
    return 0


cdef RowKernelRef whole_kernel(str title, tuple in_dtypes, tuple out_dtypes):
    cdef RowKernelRef ref
    if out_dtypes[0] not in WHOLE or out_dtypes[0] == "bool":
        raise ValueError(f"{title}: sums of integers are integers")
    ref = new_ref(title, in_dtypes, out_dtypes, 0.1, sum_whole, sizeof(whole_state))
    set_whole(<whole_state *>ref.memory, in_dtypes[0])
    (<whole_state *>ref.memory).out_size = ITEM_SIZES[out_dtypes[0]]
    return ref


cdef RowKernelRef floating_kernel(str name, str title, tuple inputs, tuple in_dtypes, tuple outputs,
                                  tuple out_dtypes, str result_dtype):
    cdef str computed = computed_dtype(inputs, in_dtypes, outputs, out_dtypes, result_dtype)
    cdef RowKernelRef ref = new_ref(title, in_dtypes, out_dtypes, KERNELS[name].cost, row_tile,
                                    sizeof(row_state))
    cdef row_state *state = <row_state *>ref.memory
    cdef int k
    begin_operands(state)
    # Without a weight it is 1; without a bias, or a mean, that is 0.
    state.columns[0].otherwise = 0 if name == "rms_norm_backward_gamma" else 1
    for k, (operand, dtype) in enumerate(zip(inputs, in_dtypes)):
        set_input(place_of(state, operand.role, operand.slot), k, dtype, computed)
    for k, (operand, dtype) in enumerate(zip(outputs, out_dtypes)):
        rounded = None if operand.name in STATISTICS else result_dtype
        set_output(&state.out if operand.role == "out" else &state.results[<int>operand.slot],
                   len(inputs) + k, dtype, computed, rounded)
    set_passes_for(state, "sum" if is_bias_gradient(inputs, outputs) else name, computed,
                   result_dtype or out_dtypes[0])
    if is_bias_gradient(inputs, outputs):
        state.results[0], state.results[1] = state.results[1], state.results[0]
    return ref


cdef bint is_bias_gradient(tuple inputs, tuple outputs):
    """dbias alone is the gradient's sum."""
    return len(inputs) == 1 and outputs[0].name == "dbias"


cdef str computed_dtype(tuple inputs, tuple in_dtypes, tuple outputs, tuple out_dtypes,
                        str result_dtype):
    """What inputs and output have in common, and can be read and written as it is; else double."""
    found = {dtype for o, dtype in zip(inputs, in_dtypes) if o.role == "input"}
    for operand, dtype in zip(outputs, out_dtypes):
        # A sum takes all bits of a double only where it is one.
        if operand.role == "out" or (dtype == "float64" and operand.name not in STATISTICS):
            found |= {dtype, result_dtype or dtype}
    return found.pop() if len(found) == 1 else "float64"


cdef void begin_operands(row_state *state) noexcept:
    """There are none yet."""
    cdef int k
    for k in range(INPUTS):
        state.inputs[k].view = -1
    for k in range(COLUMNS):
        state.columns[k].view = -1
    for k in range(GIVEN):
        state.given[k].view = -1
    for k in range(RESULTS):
        state.results[k].view = -1
    state.out.view = -1


cdef operand_t *place_of(row_state *state, str role, int slot) noexcept:
    if role == "input":
        return &state.inputs[slot]
    if role == "column":
        return &state.columns[slot]
    return &state.given[slot]


cdef int set_input(operand_t *operand, int view, str dtype, str computed) except -1:
    operand.view = view
    operand.size = ITEM_SIZES[dtype]
    operand.same = dtype == computed
    operand.load = loader(dtype)
    operand.widen = widener(dtype)
    return 0


cdef int set_output(output_t *out, int view, str dtype, str computed, str result) except -1:
    out.view = view
    out.size = ITEM_SIZES[dtype]
    out.same = dtype == computed
    out.store = storer(dtype)
    if result is not None and result != dtype:
        out.same = False
        out.result_size = ITEM_SIZES[result]
        out.round = storer(result)
        out.rounded = loader(result)
    return 0


def running_sums(str dtype not None):
    """Loops of running sums: of dense lines, and of lines beside each other.

    Parameters
    ----------
    dtype : str
        Of elements and sums.

    Returns
    -------
    tuple of int
        Addresses of two `lines_fn`; 0 where there are none for that dtype.
    """
    if dtype == "float32":
        return <size_t><lines_fn>sum_behind[float], <size_t><lines_fn>sum_beside[float]
    if dtype == "float16":
        return <size_t><lines_fn>sum_behind[half_t], <size_t><lines_fn>sum_beside[half_t]
    if dtype == "bfloat16":
        return <size_t><lines_fn>sum_behind[bfloat16_t], <size_t><lines_fn>sum_beside[bfloat16_t]
    if dtype == "float64":
        return <size_t><lines_fn>sum_behind[double], <size_t><lines_fn>sum_beside[double]
    return 0, 0


def run(RowKernelRef ref not None, inputs, outputs, Py_ssize_t rows, Py_ssize_t cols, numbers=(),
        int flags=0):
    """Run a kernel on one tile, for tests.

    Parameters
    ----------
    ref : RowKernelRef
    inputs, outputs
        Triples of address, row stride and column stride, in bytes.
    rows, cols : int
    numbers : sequence of float
    flags : int
    """
    cdef tile_view views[MOST_OPERANDS]
    cdef kernel_number values[MOST_NUMBERS]
    cdef void *memory
    cdef void *scratch
    cdef int k
    operands = (*inputs, *outputs)
    if ref.fn == 0 or len(operands) != len(ref.itemsizes) or len(numbers) > MOST_NUMBERS:
        raise ValueError(f"{ref.name} has {len(ref.itemsizes)} operands, {len(operands)} given")
    if rows < 1 or cols < 1:
        raise ValueError(f"takes at least one row and one column, not {rows} x {cols}")
    for k in range(len(operands)):
        address, row_stride, col_stride = operands[k]
        views[k].data = <char *><uintptr_t>address
        views[k].row_stride = row_stride
        views[k].col_stride = col_stride
    for k in range(len(numbers)):
        values[k].real = numbers[k]
    cdef size_t room = ref.scratch_bytes(rows, cols)
    cdef char *behind
    memory = malloc(room + 2 * LINE)
    if memory == NULL:
        raise MemoryError
    scratch = <void *>((<uintptr_t>memory + LINE - 1) // LINE * LINE)
    behind = <char *>scratch + room
    memset(behind, GUARD, LINE)
    with nogil:
        (<tile_kernel>ref.fn)(views, rows, cols, ref.memory, values, scratch, flags)
    kept = behind[:LINE] == bytes((GUARD,)) * LINE
    free(memory)
    if not kept:
        raise RuntimeError(f"{ref.name} writes behind its {room} bytes of scratch")
