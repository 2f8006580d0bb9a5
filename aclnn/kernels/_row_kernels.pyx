"""Row-wise kernels: softmax, norms, their gradients, and reductions along an axis.

A tile holds whole rows.  A kernel goes over a row in passes: the first find sums or maxima, the
last one computes the output from them.  Most compute in double and round once; sums have one order
for all layouts (`aclnn/kernels/rows/sums.pxd`), so that bits depend on the row alone.

Records say which kernels there are, with their operands (`aclnn/kernels/rows/`). Optional operands
may be absent. A `column` has one element for each column, such as a weight; what is `given`, and a
`result`, one for each row.

Functions that Python calls are compiled once, loops once per instruction set
(`kernels/instruction_sets.h`).
"""

from libc.stddef cimport size_t
from libc.stdint cimport int8_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from aclnn.kernels._kernel_reference cimport State
from aclnn._kernels cimport load_of, store_of
from aclnn.kernels.element cimport bfloat16_t, half_t, load_fn, store_fn
from aclnn.kernels.instruction_sets cimport SETS_BUILT, set_in_use, take_set, use_set
from aclnn.kernels.rows.folds cimport multiply_behind, multiply_beside, square_behind
from aclnn.kernels.rows.running cimport lines_fn, sum_behind, sum_beside
from aclnn.kernels.rows.tile cimport row_tile
from aclnn.kernels.rows.vecd cimport elem_t  # no-cython-lint: what is included needs it
from aclnn.kernels.rows.vecd cimport load_vecds, wide_half_t, wide_single_t
from aclnn.kernels.rows.walk cimport (
    COLUMNS,
    GIVEN,
    INPUTS,
    RESULTS,
    lay_out,
    operand_t,
    output_t,
    row_state,
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
from aclnn.kernels.unaligned cimport unaligned_int16, unaligned_int32, unaligned_int64
from aclnn.graph.runtime.kernel_abi cimport kernel_number, tile_kernel, tile_view

from typing import NamedTuple

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here
FLOATING = ("float32", "float16", "bfloat16", "float64")
WHOLE = ("int8", "uint8", "int16", "int32", "int64", "bool")

cdef enum:
    MOST_OPERANDS = 8
    MOST_NUMBERS = 8
    LINE = 64
    GUARD = 0x5a  # in bytes behind a kernel's scratch


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


class Operand(NamedTuple):
    """One operand of a kernel, and what it is to it, as its record says (`kernels/record.py`)."""

    name: str
    role: str    # 'input', 'column', 'given'; 'out', 'result'
    slot: int
    optional: bool
    statistic: bool  # rounded once, whatever the results' dtype
    needed_by: str


class RowFacts(NamedTuple):
    """The operands of a kernel, and what it costs: nanoseconds for an element, from a cache.

    Attributes
    ----------
    inputs, outputs : tuple of Operand
    cost : float
    sums_integers : bool
        It takes integers too, and sums them.
    widened : bool
        Operands that become double as they are read give the bits of a call on their own dtype.
    """

    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    cost: float
    sums_integers: bool
    widened: bool


# KERNELS by name, and their passes by name and type: made of the records.
include "row_tables.pxi"


cdef int set_passes_for(row_state *state, str name, str dtype, str rounded) except -1:
    """For elements of a dtype, and results that are rounded to one."""
    cdef bint all_digits = rounded == "float64"  # results are to have those of float64
    state.size = ITEM_SIZES[dtype]
    if dtype == "float32":
        return set_passes(state, name, False, <const float *>NULL)
    if dtype == "float16":
        return set_passes(state, name, False, <const half_t *>NULL)
    if dtype == "bfloat16":
        return set_passes(state, name, False, <const bfloat16_t *>NULL)
    if all_digits or not KERNELS[name].widened:
        return set_passes(state, name, all_digits, <const double *>NULL)
    if rounded == "float32":
        return set_widened(state, name, False, <const wide_single_t *>NULL)
    return set_widened(state, name, False, <const wide_half_t *>NULL)


cdef load_fn loader(str dtype) except NULL:
    return load_of(set_in_use(), dtype, "float64")


cdef widen_fn widener(str dtype) except NULL:
    if dtype == "float32":
        return <widen_fn>load_vecds[float]
    if dtype == "float16":
        return <widen_fn>load_vecds[half_t]
    if dtype == "bfloat16":
        return <widen_fn>load_vecds[bfloat16_t]
    return <widen_fn>load_vecds[double]


cdef store_fn storer(str dtype) except NULL:
    return store_of(set_in_use(), dtype, "float64")


cdef int set_whole(whole_state *state, str dtype) except -1:
    if dtype == "int8":
        state.row_sum, state.add = <sum_fn>row_sum[int8_t], <add_fn>add_column[int8_t]
    elif dtype == "uint8":
        state.row_sum, state.add = <sum_fn>row_sum[uint8_t], <add_fn>add_column[uint8_t]
    elif dtype == "int16":
        state.row_sum = <sum_fn>row_sum[unaligned_int16]
        state.add = <add_fn>add_column[unaligned_int16]
    elif dtype == "int32":
        state.row_sum = <sum_fn>row_sum[unaligned_int32]
        state.add = <add_fn>add_column[unaligned_int32]
    elif dtype == "int64":
        state.row_sum = <sum_fn>row_sum[unaligned_int64]
        state.add = <add_fn>add_column[unaligned_int64]
    else:
        state.row_sum, state.add = <sum_fn>row_sum[truth_t], <add_fn>add_column[truth_t]
    return 0


# --- Kernel references --------------------------------------------------------------------------

cdef object refer_to_rows(str name, tuple in_dtypes, tuple out_dtypes, double cost, tile_kernel fn,
                          State kept, scratch):
    """The kernel of a state that is set; `scratch`: what a tile needs, None for nothing."""
    return Kernel(
        fn=<size_t>fn,
        state=<size_t>kept.data,
        name=name,
        itemsizes=tuple(ITEM_SIZES[dtype] for dtype in (*in_dtypes, *out_dtypes)),
        cost=cost,
        owner=kept,
        tile_scratch=scratch,
    )


cdef object scratch_of(State kept):
    """The function that gives the bytes of scratch for a tile of so many rows and columns."""
    cdef int number = set_in_use()

    def scratch(Py_ssize_t rows, Py_ssize_t cols):
        cdef work_t work
        use_set(number)
        return lay_out(&work, <const row_state *>kept.data, rows, cols, NULL)

    return scratch


def row_kernel(str name not None, tuple in_dtypes not None, tuple out_dtypes not None, *,
               str result_dtype=None,
               present=None):
    """The kernel of an operation on rows, for these dtypes and operands.

    Parameters
    ----------
    name : str
        One of `KERNELS`.
    in_dtypes, out_dtypes : tuple of str
        Of the operands that are present, in the record's order: 'float32', 'float16',
        'bfloat16' or 'float64', each on its own; for `sum` also those of integers, and 'bool'.
    result_dtype : str, optional
        What results are rounded to before they become of the output's dtype; that by default. It
        does not concern mean and rstd.
    present : collection of str, optional
        Those optional operands that there are; all by default.

    Returns
    -------
    Kernel
    """
    if name not in KERNELS:
        raise ValueError(f"no row kernel is called {name!r}, they are {', '.join(KERNELS)}")
    inputs, outputs = operands_of(name, present)
    check_count(name, "inputs", inputs, in_dtypes)
    check_count(name, "outputs", outputs, out_dtypes)
    stages = (",".join(in_dtypes),) + ((result_dtype,) if result_dtype else ()) + (
        ",".join(out_dtypes),)
    title = f"{name}[{'->'.join(stages)}]"
    if KERNELS[name].sums_integers and in_dtypes[0] in WHOLE:
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
    inputs = tuple(
        o for o in kernel.inputs
        if (not o.optional or o.name in chosen) and (not o.needed_by or o.needed_by in chosen))
    outputs = tuple(o for o in kernel.outputs if not o.optional or o.name in chosen)
    if not outputs:
        raise ValueError(f"{name} needs an output")
    return inputs, outputs


cdef int check_count(str name, str what, operands, dtypes) except -1:
    if len(operands) != len(dtypes):
        names = ", ".join(o.name for o in operands)
        raise ValueError(f"{name} has the {what} {names}; {len(dtypes)} dtypes given")
    return 0


cdef object whole_kernel(str title, tuple in_dtypes, tuple out_dtypes):
    cdef State kept = State(sizeof(whole_state))
    if out_dtypes[0] not in WHOLE or out_dtypes[0] == "bool":
        raise ValueError(f"{title}: sums of integers are integers")
    set_whole(<whole_state *>kept.data, in_dtypes[0])
    (<whole_state *>kept.data).out_size = ITEM_SIZES[out_dtypes[0]]
    return refer_to_rows(title, in_dtypes, out_dtypes, 0.1, sum_whole, kept, None)


cdef object floating_kernel(str name, str title, tuple inputs, tuple in_dtypes, tuple outputs,
                            tuple out_dtypes, str result_dtype):
    cdef str computed = computed_dtype(inputs, in_dtypes, outputs, out_dtypes, result_dtype)
    cdef State kept = State(sizeof(row_state))
    cdef row_state *state = <row_state *>kept.data
    cdef int k
    begin_operands(state)
    state.columns[0].otherwise = 1  # a weight that there is not; a bias is 0
    for k, (operand, dtype) in enumerate(zip(inputs, in_dtypes)):
        set_input(place_of(state, operand.role, operand.slot), k, dtype, computed)
    for k, (operand, dtype) in enumerate(zip(outputs, out_dtypes)):
        rounded = None if operand.statistic else result_dtype
        set_output(&state.out if operand.role == "out" else &state.results[<int>operand.slot],
                   len(inputs) + k, dtype, computed, rounded)
    set_passes_for(state, name, computed, result_dtype or out_dtypes[0])
    return refer_to_rows(title, in_dtypes, out_dtypes, KERNELS[name].cost, row_tile, kept,
                         scratch_of(kept))


cdef str computed_dtype(tuple inputs, tuple in_dtypes, tuple outputs, tuple out_dtypes,
                        str result_dtype):
    """Dtype that inputs and output share and that is read and written as it is; else double."""
    found = {dtype for o, dtype in zip(inputs, in_dtypes) if o.role == "input"}
    for operand, dtype in zip(outputs, out_dtypes):
        # A sum takes all bits of a double only where it is one.
        if operand.role == "out" or (dtype == "float64" and not operand.statistic):
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
    """Loops of running sums: of dense lines, and of adjacent lines.

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


def products(str dtype not None):
    """Loops of products: of dense lines, and of adjacent lines; as `running_sums`."""
    if dtype == "float32":
        return (<size_t><lines_fn>multiply_behind[float],
                <size_t><lines_fn>multiply_beside[float])
    if dtype == "float16":
        return (<size_t><lines_fn>multiply_behind[half_t],
                <size_t><lines_fn>multiply_beside[half_t])
    if dtype == "bfloat16":
        return (<size_t><lines_fn>multiply_behind[bfloat16_t],
                <size_t><lines_fn>multiply_beside[bfloat16_t])
    if dtype == "float64":
        return (<size_t><lines_fn>multiply_behind[double],
                <size_t><lines_fn>multiply_beside[double])
    return 0, 0


def squares(str dtype not None):
    """A loop of sums of squares of dense lines; as `running_sums`."""
    if dtype == "float32":
        return <size_t><lines_fn>square_behind[float], 0
    if dtype == "float16":
        return <size_t><lines_fn>square_behind[half_t], 0
    if dtype == "bfloat16":
        return <size_t><lines_fn>square_behind[bfloat16_t], 0
    if dtype == "float64":
        return <size_t><lines_fn>square_behind[double], 0
    return 0, 0


def run(ref not None, inputs, outputs, Py_ssize_t rows, Py_ssize_t cols, numbers=(),
        int flags=0):
    """Run a kernel on one tile, for tests.

    Parameters
    ----------
    ref : Kernel
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
    cdef tile_kernel fn = <tile_kernel><size_t>ref.fn
    cdef const void *state = <const void *><size_t>ref.state
    with nogil:
        fn(views, rows, cols, state, values, scratch, flags)
    kept = behind[:LINE] == bytes((GUARD,)) * LINE
    free(memory)
    if not kept:
        raise RuntimeError(f"{ref.name} writes behind its {room} bytes of scratch")
