"""The kernels: load, compute, store, each by blocks that stay in the first-level cache.

An operator's loop is written once, over its formula; conversions are written once, over the
dtypes.  A compute kernel puts them together at run time: every input is loaded into a block of
float or double (or read in place where it is such a block already), the formula's loop runs over
the block, and the result is rounded once as it is stored.  Loads, formulas and stores add up
instead of multiplying.

Where the instruction set has lanes (`lane_formulas.h`), what people run most is loaded, computed,
rounded and stored register by register instead; the few elements that lanes leave open go through
the plain loop in double.

This file is compiled once per instruction set, each time into a module of its own.
"""

from libc.stdint cimport int8_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free

cimport aclnn.kernels.formulas as formulas  # no-cython-lint: what is included needs it
from aclnn.kernels.cast cimport cast_state, cast_tile
from aclnn.kernels.computation cimport compute_state, double_loop, float_loop, prepare_facts
from aclnn.kernels.doubt cimport compute_picked, picked_t
from aclnn.kernels.element cimport (
    bfloat16_t,
    half_t,
    load,
    load_by_float,
    load_fn,
    real_t,
    store,
    store_complex,
    store_fn,
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
)
from aclnn.kernels.formulas cimport real
from aclnn.kernels.lane cimport (
    BFLOAT,
    HALF,
    SINGLE,
    facts_t,
    lane_form_of,
    lane_form_t,
    lane_loop,
    lane_loops_t,
)
from aclnn.kernels.lane_block cimport NO_ROW, compute_by_lanes, copies_t, lane_width
from aclnn.kernels.loop_block cimport compute_by_loops, loop_width
from aclnn.kernels.staging cimport flush_staged, staging_t
from aclnn.kernels.tile cimport (
    TILE_SCALARS,
    TILE_STREAM,
    block_shape,
    block_t,
    one_row,
    stream_bytes,
    stream_fence,
    tile_kernel,
    tile_view,
    to_line,
)
from aclnn.kernels.transposed cimport any_column_dense, compute_transposed, rows_fn

from aclnn.acl import dtypes

cdef enum:
    ALIGN_FROM = 8192   # elements of a row that is worth cutting at a line boundary
    MOST_FORMULAS = 32


# --- The compute kernel ---------------------------------------------------------------------------

cdef inline void compute(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                         const compute_state *state, facts_t *facts, int flags, rows_fn itself,
                         real like) noexcept nogil:
    """Go through a tile by blocks; where an input is transposed, by parts that are turned first."""
    cdef block_t block
    cdef ptrdiff_t high, wide
    cdef picked_t picked
    cdef copies_t copies
    cdef staging_t staging
    if rows > 1 and any_column_dense(views, state):
        compute_transposed(views, rows, cols, state, facts, flags, itself)
        return
    if rows > 1 and one_row(views, state.n_inputs + 1, cols):
        cols *= rows
        rows = 1
    block_shape(views, state.n_inputs + 1, rows, cols, &high, &wide)
    if high == 1:
        wide = row_width(views, cols, state, flags, like)
    block.widest = min(wide, cols)
    block.flags = flags
    block.dense = high == 1 and views[state.n_inputs].col_stride == state.cast.out_size
    picked.state, picked.scalars, picked.count = state, facts.p, 0
    picked.recast = block.dense and not state.cast.copy
    picked.size = state.cast.out_size if picked.recast else state.result_size
    copies.repeated[0] = copies.repeated[1] = NO_ROW
    staging.nbytes = 0
    block.row = 0
    while block.row < rows:
        block.rows = min(high, rows - block.row)
        block.col = 0
        block.cols = block.widest
        if high == 1 and (cols >= ALIGN_FROM or flags & TILE_STREAM):
            block.cols = first_cols(&views[state.n_inputs], &block, cols)
        while block.col < cols:
            compute_block(views, &block, state, facts, &picked, &copies, &staging, like)
            block.col += block.cols
            block.cols = min(wide, cols - block.col)
        block.row += high
    compute_picked(&picked)
    flush_staged(&staging, 0)


cdef inline ptrdiff_t first_cols(const tile_view *out, const block_t *block,
                                 ptrdiff_t cols) noexcept nogil:
    """Long rows begin with what is left of a line: registers that cross lines take twice as long,
    and a line that is streamed must not be written in two ways."""
    cdef ptrdiff_t head = min(to_line(out, block.row), cols)
    return head if head else block.cols


cdef inline ptrdiff_t row_width(const tile_view *views, ptrdiff_t cols, const compute_state *state,
                                int flags, real like) noexcept nogil:
    """Elements of a row that are computed in one go."""
    if state.lanes != NULL:
        return lane_width(views, state)
    return loop_width(views, cols, state, sizeof(real), flags)


cdef inline void compute_block(const tile_view *views, const block_t *block,
                               const compute_state *state, facts_t *facts,
                               picked_t *picked, copies_t *copies, staging_t *staging,
                               real like) noexcept nogil:
    if real is float:
        if state.lanes != NULL:
            compute_by_lanes(views, block, state, facts, picked, copies, staging)
            return
    compute_by_loops(views, block, state, facts.p, like)


cdef void rows_in_float(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                        const compute_state *state, facts_t *facts, int flags) noexcept nogil:
    compute(views, rows, cols, state, facts, flags, rows_in_float, <float>0)


cdef void rows_in_double(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                         const compute_state *state, facts_t *facts, int flags) noexcept nogil:
    compute(views, rows, cols, state, facts, flags, rows_in_double, <double>0)


cdef void compute_in_float(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                           const void *state, const double *scalars, int flags) noexcept nogil:
    cdef facts_t facts
    prepare_facts(&facts, scalars, <const compute_state *>state, rows * cols)
    rows_in_float(views, rows, cols, <const compute_state *>state, &facts, flags)


cdef void compute_in_double(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                            const void *state, const double *scalars, int flags) noexcept nogil:
    cdef facts_t facts
    prepare_facts(&facts, scalars, <const compute_state *>state, rows * cols)
    rows_in_double(views, rows, cols, <const compute_state *>state, &facts, flags)


# --- Tables: what there is, by name -------------------------------------------------------------

cdef struct formula_t:
    int n_inputs
    float_loop in_float      # for float32 results; NULL: the double form serves every dtype
    double_loop in_double    # the precise form, for what is rounded once more
    double_loop in_float64   # for float64 results, where these are rounded otherwise
    lane_form_t lanes        # for float32 and halves, where the instruction set has them

cdef dict _formula_numbers = {}
cdef formula_t[MOST_FORMULAS] _formulas


cdef add(str name, int n_inputs, float_loop in_float, double_loop in_double,
         double_loop in_float64=NULL):
    number = len(_formula_numbers)
    if number == MOST_FORMULAS or not 1 <= n_inputs <= 2:
        raise ValueError(f"{name}: kernels have places for {MOST_FORMULAS} formulas of two inputs")
    _formula_numbers[name] = number
    _formulas[number] = formula_t(n_inputs, in_float, in_double, in_float64 or in_double,
                                  lane_form_of(name.encode()))


# The loops over the formulas and a call of `add` for each: made from their signatures by the build.
include "formula_loops.pxi"

# What lanes read and round to.
LANE_KINDS = {"float32": SINGLE, "float16": HALF, "bfloat16": BFLOAT}

ITEM_SIZES = {dtype.name: dtype.itemsize for dtype in dtypes.NUMPY.values()}


cdef int item_size(str dtype) except -1:
    if dtype not in ITEM_SIZES:
        raise ValueError(f"no kernel knows {dtype!r}, dtypes are {', '.join(ITEM_SIZES)}")
    return ITEM_SIZES[dtype]


cdef load_fn loader(str dtype, real_t like) except NULL:
    if dtype == "float32":
        return <load_fn>load[unaligned_float, real_t]
    if dtype == "float64":
        return <load_fn>load[unaligned_double, real_t]
    if dtype == "float16":
        return <load_fn>load[half_t, real_t]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, real_t]
    if dtype == "int8":
        return <load_fn>load[int8_t, real_t]
    if dtype in ("uint8", "bool"):
        return <load_fn>load[uint8_t, real_t]
    if dtype == "int16":
        return <load_fn>load[unaligned_int16, real_t]
    if dtype == "int32":
        return <load_fn>load[unaligned_int32, real_t]
    if dtype == "int64":
        return <load_fn>load[unaligned_int64, real_t]
    raise ValueError(f"no kernel reads {dtype}")


cdef load_fn input_loader(str dtype, bint wide, str result) except NULL:
    """Into what a formula computes in: inputs are read as float32, unless results are float64."""
    if not wide:
        return loader(dtype, <unaligned_float>0)
    if result != "float64" and dtype == "int32":
        return <load_fn>load_by_float[unaligned_int32]
    if result != "float64" and dtype == "int64":
        return <load_fn>load_by_float[unaligned_int64]
    return loader(dtype, <unaligned_double>0)


cdef store_fn storer(str dtype, real_t like) except NULL:
    if dtype == "float32":
        return <store_fn>store[real_t, unaligned_float]
    if dtype == "float64":
        return <store_fn>store[real_t, unaligned_double]
    if dtype == "float16":
        return <store_fn>store[real_t, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[real_t, bfloat16_t]
    if dtype == "complex64":
        return <store_fn>store_complex[real_t, unaligned_float]
    if dtype == "complex128":
        return <store_fn>store_complex[real_t, unaligned_double]
    raise ValueError(f"no kernel writes {dtype}")


cdef class KernelRef:
    """A kernel made for certain dtypes; owns the state that its address stands for.

    Attributes
    ----------
    fn, state : int
        Addresses of a `tile_kernel` and of what it is called with.
    name : str
    itemsizes : tuple of int
        Bytes of an element of every operand, inputs first, the output last.
    """

    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly size_t fn
    cdef void *memory

    def __dealloc__(self):
        free(self.memory)

    @property
    def state(self):
        return <size_t>self.memory

    def __repr__(self):
        return f"<KernelRef {self.name}>"


cdef KernelRef new_ref(str name, tuple operands, tile_kernel fn, size_t size):
    cdef KernelRef ref = KernelRef.__new__(KernelRef)
    ref.name = name
    ref.itemsizes = tuple([item_size(dtype) for dtype in operands])
    ref.fn = <size_t>fn
    ref.memory = calloc(1, size)
    if ref.memory == NULL:
        raise MemoryError
    return ref


cdef int number_of(str formula) except -1:
    if formula not in _formula_numbers:
        raise ValueError(
            f"no formula is called {formula!r}, they are {', '.join(_formula_numbers)}")
    return _formula_numbers[formula]


def compute_kernel(str formula, tuple in_dtypes, str out_dtype, str result_dtype=None):
    """The kernel of a formula for these dtypes.

    Parameters
    ----------
    formula : str
        A name that `add` was given.
    in_dtypes : tuple of str
        Of the inputs, in the formula's order; each is read as if converted to float32, for float64
        results to float64.
    out_dtype : str
    result_dtype : str, optional
        'float32', 'float16', 'bfloat16' or 'float64': what the exact value is rounded to, once;
        the output's by default. Results then become of the output's dtype, which may be any.

    Returns
    -------
    KernelRef
    """
    cdef const formula_t *row = &_formulas[number_of(formula)]
    cdef str result = result_dtype or out_dtype
    cdef bint all_alike = set(in_dtypes) == {result}
    cdef bint lanes = lane_loop_of(row.lanes.loops, all_alike, result) != NULL
    cdef bint wide = not lanes and (row.in_float == NULL or result != "float32")
    cdef KernelRef ref
    cdef compute_state *state
    if len(in_dtypes) != row.n_inputs:
        raise ValueError(f"{formula} takes {row.n_inputs} inputs, {len(in_dtypes)} dtypes given")
    stages = [",".join(in_dtypes), *dict.fromkeys((result, out_dtype))]
    name = f"{formula}[{'->'.join(stages)}]"
    ref = new_ref(name, (*in_dtypes, out_dtype), compute_in_double if wide else compute_in_float,
                  sizeof(compute_state))
    state = <compute_state *>ref.memory
    state.n_inputs = row.n_inputs
    for k, dtype in enumerate(in_dtypes):
        state.loads[<int>k] = input_loader(dtype, wide, result)
        state.sizes[<int>k] = item_size(dtype)
        state.dense_input[<int>k] = dtype == ("float64" if wide else "float32")
    state.sizes[state.n_inputs] = item_size(out_dtype)
    state.result_size = item_size(result)
    state.dense_result = result == ("float64" if wide else "float32")
    state.store = (storer(result, <unaligned_double>0) if wide
                   else storer(result, <unaligned_float>0))
    set_cast(&state.cast, result, out_dtype)
    state.loop = (<void *>row.in_float if not wide else <void *>row.in_float64
                  if result == "float64" else <void *>row.in_double)
    # A loop for halves could store the other kind too, but that hardly occurs.
    state.stores = state.cast.copy or (
        lanes and out_dtype in LANE_KINDS and "float32" in (result, out_dtype))
    if lanes:
        set_lanes(state, row, all_alike, result, out_dtype)
        state.store_exact = storer(result, <unaligned_double>0)
    return ref


cdef int set_lanes(compute_state *state, const formula_t *row, bint all_alike, str result,
                   str out_dtype) except -1:
    state.all_alike = all_alike
    state.rounded = LANE_KINDS[result]
    state.stored = LANE_KINDS.get(out_dtype, state.rounded)
    state.kind = state.rounded if all_alike else SINGLE
    state.lanes = lane_loop_of(row.lanes.loops, all_alike, result)
    state.read_size = state.result_size if all_alike else sizeof(float)
    state.prepare, state.mark = row.lanes.prepare, row.lanes.mark
    if state.rounded == SINGLE and row.lanes.mark_singles != NULL:
        state.mark = row.lanes.mark_singles
    state.exact = <void *>row.in_double
    return 0


cdef lane_loop lane_loop_of(const lane_loops_t *loops, bint all_alike, str result) except? NULL:
    """For inputs that all have the result's dtype, or are read as floats; NULL: there is none."""
    if loops == NULL or result not in LANE_KINDS:
        return NULL
    if result == "float32":
        return loops.single
    if result == "float16":
        return loops.half if all_alike else loops.to_half
    return loops.bfloat if all_alike else loops.to_bfloat


def cast_kernel(str src, str dst):
    """The kernel that converts `src` to `dst`, rounding once; a copy where they are the same.

    Parameters
    ----------
    src, dst : str
        Names of dtypes.

    Returns
    -------
    KernelRef
    """
    cdef KernelRef ref = new_ref(f"cast[{src}->{dst}]", (src, dst), cast_tile, sizeof(cast_state))
    set_cast(<cast_state *>ref.memory, src, dst)
    return ref


cdef int set_cast(cast_state *state, str src, str dst) except -1:
    cdef bint wide = "float64" in (src, dst) or dst == "complex128"
    state.in_size, state.out_size = item_size(src), item_size(dst)
    state.copy = src == dst
    state.size = 8 if wide else 4
    state.from_it = src == ("float64" if wide else "float32")
    state.to_it = dst == ("float64" if wide else "float32")
    if not state.copy:
        state.load = loader(src, <unaligned_double>0) if wide else loader(src, <unaligned_float>0)
        state.store = storer(dst, <unaligned_double>0) if wide else storer(dst, <unaligned_float>0)
    return 0


def run(KernelRef ref, inputs, output, Py_ssize_t rows, Py_ssize_t cols, scalars=(), int flags=0):
    """Run a kernel on one tile, for tests.

    Parameters
    ----------
    ref : KernelRef
    inputs, output
        Triples of address, row stride and column stride, in bytes.
    rows, cols : int
    scalars : sequence of float
    flags : int
    """
    cdef tile_view views[4]
    cdef double values[TILE_SCALARS]
    cdef int k
    operands = [*inputs, output]
    if ref.fn == 0 or len(operands) > 4:
        raise ValueError("takes a kernel that was made, and up to four operands")
    if len(scalars) > TILE_SCALARS:
        raise ValueError(f"takes at most {TILE_SCALARS} scalars, {len(scalars)} given")
    for k in range(len(operands)):
        address, row_stride, col_stride = operands[k]
        views[k].data = <char *><uintptr_t>address
        views[k].row_stride = row_stride
        views[k].col_stride = col_stride
    for k in range(TILE_SCALARS):
        values[k] = scalars[k] if k < len(scalars) else 0.0
    with nogil:
        (<tile_kernel>ref.fn)(views, rows, cols, ref.memory, values, flags)
        stream_fence()


def stream_copy(uintptr_t dst, uintptr_t src, Py_ssize_t nbytes):
    """Copy with stores that bypass the cache: the yardstick of benchmarks."""
    with nogil:
        stream_bytes(<char *>dst, <const char *>src, nbytes)
        stream_fence()
