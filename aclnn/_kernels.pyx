"""The kernels: load, compute, store, each by blocks that stay in the first-level cache.

An operator's loop is written once, over its formula (`_formula_kernels.pyx`); conversions are
written once, over the dtypes.  A compute kernel puts them together at run time: every input is
loaded into a block of float or double (or read in place where it is such a block already), the
formula's loop runs over the block, and the result is rounded once as it is stored.  Loads, formulas
and stores add up instead of multiplying.

Where the instruction set has vectors, formulas that people run most have a fast path
(`_simd_kernels.pyx`), which loads, computes, rounds and stores vector by vector; the few elements
that it leaves open go through the plain loop in double.

Functions that Python calls are compiled once, loops once per instruction set
(`kernels/instruction_sets.h`).
"""

from libc.stdint cimport int8_t, uint8_t, uintptr_t

from aclnn.kernels._kernel_reference cimport State
from aclnn.kernels.cast cimport cast_state, cast_tile
from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.conversion cimport load, load_odd, number_t, store
from aclnn.kernels.instruction_sets cimport (
    SETS,
    SETS_BUILT,
    SET_GENERIC,
    set_in_use,
    take_set,
    use_set,
)
from aclnn.kernels.element cimport (
    bfloat16_t,
    bool_t,
    half_t,
    load_fn,
    store_fn,
    unaligned_complex128,
    unaligned_complex64,
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
    unaligned_uint16,
    unaligned_uint32,
    unaligned_uint64,
)
from aclnn.kernels.formula_loops cimport MOST_FORMULAS, MOST_INPUTS, formula_loops_t, loop_fn
from aclnn.kernels.loop_block cimport compute_by_loops, loop_block_limit, loop_width
from aclnn.kernels.recompute cimport recompute_pending, pending_t
from aclnn.kernels.simd.loop_args cimport (
    BF16,
    F16,
    F32,
    PARAMS_NUMBERS,
    ZEROS_UNKNOWN,
    hints_t,
    params_t,
    simd_loop,
    simd_path_t,
)
from aclnn.kernels.simd_block cimport NO_ROW, compute_by_simd, copies_t, simd_width
from aclnn.kernels.staging cimport flush_staged, staging_t
from aclnn.kernels.tile cimport (
    BLOCK,
    block_shape,
    block_t,
    one_row,
    stream_bytes,
    stream_fence,
    to_line,
)
from aclnn.kernels.transposed cimport any_column_dense, compute_transposed
from aclnn.graph.runtime.kernel_abi cimport (
    TILE_STREAM,
    kernel_number,
    prepare_kernel,
    tile_kernel,
    tile_view,
)

import importlib
import importlib.util
from typing import NamedTuple

from aclnn.acl import dtypes
from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel

cdef enum:
    ALIGN_FROM = 8192   # elements of a row that is worth cutting at a line boundary
    MOST_NUMBERS = 4    # that `run` hands to a kernel


# --- The compute kernel ---------------------------------------------------------------------------

cdef void compute_tile(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols, const void *state,
                       const void *params, void *scratch, int flags) noexcept nogil:
    cdef hints_t hints
    hints.zeros, hints.outside = ZEROS_UNKNOWN, 0
    if rows > 1 and any_column_dense(views, <const compute_state *>state):
        compute_transposed(views, rows, cols, <const compute_state *>state, params, &hints, flags,
                           compute_rows)
        return
    compute_rows(views, rows, cols, <const compute_state *>state, params, &hints, flags)


cdef void compute_rows(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                       const compute_state *state, const void *params, hints_t *hints,
                       int flags) noexcept nogil:
    """Go through a tile, or a part of one that was transposed first, by blocks."""
    cdef block_t block
    cdef ptrdiff_t high, wide
    cdef pending_t pending
    cdef copies_t copies
    cdef staging_t staging
    cdef const tile_view *out = &views[state.n_inputs]
    if rows > 1 and one_row(views, state.n_inputs + 1, cols):
        cols *= rows
        rows = 1
    block_shape(views, state.n_inputs + 1, rows, cols, block_limit(state), &high, &wide)
    if high == 1:
        wide = row_width(views, cols, state, flags)
    block.widest = min(wide, cols)
    block.flags = flags
    block.dense = high == 1 and out.col_stride == state.cast.out_size
    pending.state, pending.params, pending.count = state, params, 0
    pending.recast = block.dense and not state.cast.copy
    pending.size = state.cast.out_size if pending.recast else state.result_size
    copies.repeated[0] = copies.repeated[1] = copies.repeated[2] = NO_ROW
    staging.nbytes = 0
    block.row = 0
    while block.row < rows:
        block.rows = min(high, rows - block.row)
        block.col = 0
        block.cols = block.widest
        if high == 1 and (cols >= ALIGN_FROM or flags & TILE_STREAM):
            block.cols = first_cols(out, &block, cols)
        while block.col < cols:
            if state.simd != NULL:
                compute_by_simd(views, &block, state, <const params_t *>params, hints, &pending,
                                &copies, &staging)
            else:
                compute_by_loops(views, &block, state, params)
            block.col += block.cols
            block.cols = min(wide, cols - block.col)
        block.row += high
    recompute_pending(&pending)
    flush_staged(&staging, 0)


cdef inline ptrdiff_t first_cols(const tile_view *out, const block_t *block,
                                 ptrdiff_t cols) noexcept nogil:
    """Long rows begin with what is left of a line: registers that cross lines take twice as long,
    and a line that is streamed must not be written in two ways."""
    cdef ptrdiff_t head = min(to_line(out, block.row), cols)
    return head if head else block.cols


cdef inline ptrdiff_t block_limit(const compute_state *state) noexcept nogil:
    return BLOCK if state.simd != NULL else loop_block_limit(state)


cdef inline ptrdiff_t row_width(const tile_view *views, ptrdiff_t cols, const compute_state *state,
                                int flags) noexcept nogil:
    """Elements of a row that are computed in one go."""
    if state.simd != NULL:
        return simd_width(views, state)
    return loop_width(views, cols, state, flags)


cdef void prepare_params(void *params, const void *state, const kernel_number *numbers,
                         int n_numbers) noexcept nogil:
    """The numbers, and what the fast path makes of them."""
    cdef params_t *prepared = <params_t *>params
    cdef const compute_state *made_for = <const compute_state *>state
    cdef int k
    for k in range(min(n_numbers, <int>PARAMS_NUMBERS)):
        prepared.p[k] = numbers[k].real
    for k in range(n_numbers, PARAMS_NUMBERS):
        prepared.p[k] = 0
    made_for.prepare(prepared, made_for.read_type)


# --- Tables: what there is, by name -------------------------------------------------------------

class FormulaFacts(NamedTuple):
    """Facts about a formula from its record (`aclnn/kernels/record.py`).

    Attributes
    ----------
    cost : float
        Nanoseconds that an element takes, in cache, of float32 operands, roughly.
    masks : int
        How many of its operands, the first ones, choose among the others, which only move.
    keeps_bits : bool
        Bits of operands are passed on, of signaling NaNs too.
    commutes : tuple of float, optional
        Numbers with which the two operands may change places.
    truth : bool
        Results are 0 or 1.
    """

    cost: float
    masks: int = 0
    keeps_bits: bool = False
    commutes: tuple = None
    truth: bool = False


# FACTS by formula, and fast paths where there are no vectors: made of the records.
include "formula_facts.pxi"
COPIES, CASTS = FormulaFacts(0.1, keeps_bits=True), FormulaFacts(0.2, keeps_bits=True)

cdef struct formula_t:
    const formula_loops_t *loops
    simd_path_t simd       # for float32 and half precision; all of its loops may be NULL

cdef dict _formula_numbers = {}
cdef formula_t[SETS][MOST_FORMULAS] _formulas
BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here
cdef set _taken = set()  # those whose formulas are there


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)
    take_formulas()


cdef object same_isa(str stem):
    """The module of that name, with the loops of the instruction set in use, or None."""
    module = importlib.import_module(f"aclnn.{stem}")
    if not module.BUILT >> set_in_use() & 1:
        return None
    module.use(set_in_use())
    return module


cdef simd_path_t simd_path_of(str formula, dict paths) except *:
    if formula in paths:
        return (<simd_path_t *><size_t>paths[formula])[0]
    return path_without_vectors(formula)


cdef int take_formulas() except -1:
    """Take the formulas of the modules with their loops, and fast paths where there are vectors."""
    cdef int isa = set_in_use()
    if isa in _taken:
        return 0
    simd_kernels = None if isa == SET_GENERIC else same_isa("kernels._simd_kernels")
    cdef dict paths = simd_kernels.paths() if simd_kernels else {}
    cdef dict loops = same_isa("kernels._formula_kernels").loops()
    for number, (formula, address) in enumerate(loops.items()):
        _formula_numbers[formula] = number
        _formulas[isa][<int>number].loops = <formula_loops_t *><size_t>address
        _formulas[isa][<int>number].simd = simd_path_of(formula, paths)
    _taken.add(isa)
    return 0


# What fast paths read and round to.
SIMD_TYPES = {"float32": F32, "float16": F16, "bfloat16": BF16}


cdef int item_size(str dtype) except -1:
    if dtype not in ITEM_SIZES:
        raise ValueError(f"no kernel knows {dtype!r}, dtypes are {', '.join(ITEM_SIZES)}")
    return ITEM_SIZES[dtype]


cdef load_fn loader(str dtype, const number_t *like) except NULL:
    if dtype == "float32":
        return <load_fn>load[unaligned_float, number_t]
    if dtype == "float64":
        return <load_fn>load[unaligned_double, number_t]
    if dtype == "float16":
        return <load_fn>load[half_t, number_t]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, number_t]
    if dtype == "bool":
        return <load_fn>load[bool_t, number_t]
    if dtype == "int8":
        return <load_fn>load[int8_t, number_t]
    if dtype == "uint8":
        return <load_fn>load[uint8_t, number_t]
    if dtype == "int16":
        return <load_fn>load[unaligned_int16, number_t]
    if dtype == "uint16":
        return <load_fn>load[unaligned_uint16, number_t]
    if dtype == "int32":
        return <load_fn>load[unaligned_int32, number_t]
    if dtype == "uint32":
        return <load_fn>load[unaligned_uint32, number_t]
    if dtype == "int64":
        return <load_fn>load[unaligned_int64, number_t]
    if dtype == "uint64":
        return <load_fn>load[unaligned_uint64, number_t]
    if dtype == "complex64":
        return <load_fn>load[unaligned_complex64, number_t]
    if dtype == "complex128":
        return <load_fn>load[unaligned_complex128, number_t]
    raise ValueError(f"no kernel reads {dtype}")


cdef store_fn storer(str dtype, const number_t *like) except NULL:
    if dtype == "float32":
        return <store_fn>store[number_t, unaligned_float]
    if dtype == "float64":
        return <store_fn>store[number_t, unaligned_double]
    if dtype == "float16":
        return <store_fn>store[number_t, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[number_t, bfloat16_t]
    if dtype == "bool":
        return <store_fn>store[number_t, bool_t]
    if dtype == "int8":
        return <store_fn>store[number_t, int8_t]
    if dtype == "uint8":
        return <store_fn>store[number_t, uint8_t]
    if dtype == "int16":
        return <store_fn>store[number_t, unaligned_int16]
    if dtype == "uint16":
        return <store_fn>store[number_t, unaligned_uint16]
    if dtype == "int32":
        return <store_fn>store[number_t, unaligned_int32]
    if dtype == "uint32":
        return <store_fn>store[number_t, unaligned_uint32]
    if dtype == "int64":
        return <store_fn>store[number_t, unaligned_int64]
    if dtype == "uint64":
        return <store_fn>store[number_t, unaligned_uint64]
    if dtype == "complex64":
        return <store_fn>store[number_t, unaligned_complex64]
    if dtype == "complex128":
        return <store_fn>store[number_t, unaligned_complex128]
    raise ValueError(f"no kernel writes {dtype}")


# --- What is computed in --------------------------------------------------------------------------

cdef enum number_type:
    IN_FLOAT
    IN_DOUBLE
    IN_WHOLE
    IN_COMPLEX

# The dtype of each: elements of it need no conversion.
cdef tuple DTYPE_OF = ("float32", "float64", "int64", "complex128")


cdef load_fn load_as(str dtype, number_type computed) except NULL:
    if computed == IN_FLOAT:
        return loader(dtype, <const unaligned_float *>NULL)
    if computed == IN_DOUBLE:
        return loader(dtype, <const unaligned_double *>NULL)
    if computed == IN_WHOLE:
        return loader(dtype, <const unaligned_int64 *>NULL)
    return loader(dtype, <const unaligned_complex128 *>NULL)


cdef store_fn store_from(str dtype, number_type computed) except NULL:
    if computed == IN_FLOAT:
        return storer(dtype, <const unaligned_float *>NULL)
    if computed == IN_DOUBLE:
        return storer(dtype, <const unaligned_double *>NULL)
    if computed == IN_WHOLE:
        return storer(dtype, <const unaligned_int64 *>NULL)
    return storer(dtype, <const unaligned_complex128 *>NULL)


cdef load_fn load_of(int isa, str dtype, str computed) except NULL:
    """The function that converts elements of a dtype to one that is computed in, for other modules.

    `isa`: whose instructions it has, or -1: those of this thread's last call.
    """
    cdef int before = set_in_use()
    take_set(before if isa < 0 else isa)
    try:
        return load_as(dtype, <number_type><int>DTYPE_OF.index(computed))
    finally:
        use_set(before)


cdef store_fn store_of(int isa, str dtype, str computed) except NULL:
    """The function that rounds what was computed to elements of a dtype."""
    cdef int before = set_in_use()
    take_set(before if isa < 0 else isa)
    try:
        return store_from(dtype, <number_type><int>DTYPE_OF.index(computed))
    finally:
        use_set(before)


COMPLEX = {"complex64", "complex128"}
HALVES = {"float16", "bfloat16"}
WHOLE = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
LONG = {"int64", "uint64"}
# What every number of these fits into, besides themselves and what holds more still.
HOLDS = {
    "float16": {"bool", "int8", "uint8"},
    "bfloat16": {"bool", "int8", "uint8"},
    "float32": {"bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"},
    "float64": WHOLE - LONG | HALVES | {"float32"},
    "int64": WHOLE - {"uint64"},
    "complex64": {"bool", "int8", "uint8", "int16", "uint16", "float32", "float16", "bfloat16"},
    "complex128": WHOLE - LONG | HALVES | {"float32", "float64", "complex64"},
}


def default_reads(str result not None, tuple in_dtypes not None):
    """The dtype that operands are converted to first where nobody says it."""
    if result == "float64" or result in COMPLEX:
        return result
    if result not in WHOLE:
        return "float32"
    for reads, kinds in (("complex128", COMPLEX), ("float64", {"float64"}),
                         ("float32", {"float32", *HALVES})):
        if kinds & set(in_dtypes):
            return reads
    return "int64"


class PointForm(NamedTuple):
    """Computation of a kernel, which a step of a program may do too.

    Attributes
    ----------
    formula : str
        "cast" for conversions.
    dtypes : tuple of str
        Of the inputs, then of the output.
    result, reads : str
        Dtypes that results are rounded to first, and that inputs are converted to.
    numbers : str
        What the node's numbers are: "real" or "whole".
    path : int
        Address of the fast path over vectors, a `simd_loop`, or 0.
    facts : FormulaFacts
    """

    formula: str
    dtypes: tuple
    result: str
    reads: str
    numbers: str
    path: int
    facts: object


cdef int number_of(str formula) except -1:
    take_formulas()
    if formula not in _formula_numbers:
        raise ValueError(
            f"no formula is called {formula!r}, they are {', '.join(_formula_numbers)}")
    return _formula_numbers[formula]


def formula_names():
    """The names of all formulas, in the order of their records."""
    return tuple(_formula_numbers)


# Where a mask chooses, elements only move: the dtypes that stand for theirs, by size, so that every
# bit is kept, of NaNs too.
STAND_INS = {1: "uint8", 2: "uint16", 4: "float32", 8: "float64", 16: "complex128"}


def compute_kernel(str formula not None, tuple in_dtypes not None, str out_dtype not None,
                   str result_dtype=None, str reads=None, join=None):
    """The kernel of a formula for these dtypes.

    Parameters
    ----------
    formula : str
        A name that `add` was given.
    in_dtypes : tuple of str
        Of the inputs, in the formula's order.
    out_dtype : str
    result_dtype : str, optional
        What the exact value is rounded to, once; the output's dtype by default. Results then become
        of the output's dtype, which may be any.
    reads : str, optional
        The dtype that every input is converted to first, such as 'float32', or 'int64', which is
        computed in whole numbers. By default float32; for float64 and complex results these; for
        others the least of float32, float64 and complex128 that inputs of these kinds are, or int64
        where no input has such a dtype.
    join : callable, optional
        The kernel's `join`.

    Returns
    -------
    Kernel
    """
    cdef const formula_t *row = &_formulas[set_in_use()][number_of(formula)]
    cdef str result = result_dtype or out_dtype
    cdef str wanted = reads or default_reads(result, in_dtypes)
    cdef State kept = State(sizeof(compute_state))
    facts = FACTS[formula]
    masks = facts.masks
    if len(in_dtypes) != row.loops.n_inputs:
        raise ValueError(f"{formula} takes {row.loops.n_inputs} inputs, "
                         f"{len(in_dtypes)} dtypes given")
    itemsizes = tuple(item_size(dtype) for dtype in (*in_dtypes, out_dtype, result))
    stages = (",".join(in_dtypes),) + ((reads,) if reads else ()) + tuple(
        dict.fromkeys((result, out_dtype)))
    own = formula, (*in_dtypes, out_dtype), result, wanted
    if masks and {*in_dtypes[masks:], result} == {out_dtype} and reads in (None, out_dtype):
        stand_in = STAND_INS[itemsizes[-1]]
        in_dtypes = in_dtypes[:masks] + (stand_in,) * (row.loops.n_inputs - masks)
        out_dtype = result = stand_in
        wanted = "float32" if itemsizes[-1] < 4 else stand_in
    if facts.truth and result == "bool" and {*in_dtypes} == {out_dtype} and out_dtype in SIMD_TYPES:
        result, wanted = out_dtype, "float32"  # 0 and 1 are the same in all of these
    cdef compute_state *state = <compute_state *>kept.data
    numbers = set_compute(state, row, in_dtypes, out_dtype, result, wanted, formula)
    cdef bint prepares = state.prepare != NULL
    return Kernel(
        fn=<size_t><tile_kernel>compute_tile,
        state=<size_t>kept.data,
        name=f"{formula}[{'->'.join(stages)}]",
        itemsizes=itemsizes[:-1],
        cost=facts.cost,
        owner=kept,
        prepare=<size_t><prepare_kernel>prepare_params if prepares else 0,
        params_size=sizeof(params_t) if prepares else 0,
        join=join,
        form=PointForm(*own, numbers, <size_t>state.simd, facts),
    )


cdef str set_compute(compute_state *state, const formula_t *row, tuple in_dtypes, str out_dtype,
                     str result, str reads, str formula):
    """Set all of a state; what the node's numbers are."""
    cdef bint alike = {*in_dtypes} == {result}
    cdef bint simd = (reads == "float32"
                      and simd_loop_of(&row.simd, alike, result) != NULL)
    cdef number_type computed = IN_FLOAT if simd else number_type_of(row, result, reads, alike)
    cdef bint own_form = computed == IN_FLOAT and result in HALVES and not row.loops.exact
    cdef int k
    state.n_inputs = row.loops.n_inputs
    state.number_size = item_size(DTYPE_OF[computed])
    for k, dtype in enumerate(in_dtypes):
        set_input(state, k, dtype, reads, computed)
    state.sizes[state.n_inputs] = item_size(out_dtype)
    state.result_size = item_size(result)
    state.dense_result = result == DTYPE_OF[computed]
    state.store = store_from(result, computed)
    set_cast(&state.cast, result, out_dtype)
    state.loop = loop_of(row, computed, own_form, result)
    if state.loop == NULL and not simd:
        raise ValueError(f"{formula} is not computed in {DTYPE_OF[computed]}, as {reads} would be")
    if simd:
        set_simd(state, row, alike, result)
        state.store_exact = storer(result, <const unaligned_double *>NULL)
    return "whole" if computed == IN_WHOLE else "real"


cdef number_type number_type_of(const formula_t *row, str result, str reads,
                                bint alike) except *:
    """Number type to compute in, so that results are rounded once."""
    if reads in COMPLEX:
        return IN_COMPLEX
    if reads in WHOLE:
        return IN_WHOLE
    if reads == "float64":
        return IN_DOUBLE
    if row.loops.exact:
        return IN_FLOAT
    if row.loops.in_half != NULL and result in HALVES and alike:
        return IN_FLOAT
    return IN_FLOAT if row.loops.in_float != NULL and result == "float32" else IN_DOUBLE


cdef loop_fn loop_of(const formula_t *row, number_type computed, bint own_form,
                     str result) noexcept:
    if computed == IN_COMPLEX:
        return row.loops.in_complex
    if computed == IN_WHOLE:
        return row.loops.in_whole
    if computed == IN_DOUBLE:
        return row.loops.in_float64 if result == "float64" else row.loops.in_double
    return row.loops.in_half if own_form and row.loops.in_half != NULL else row.loops.in_float


cdef int set_input(compute_state *state, int k, str dtype, str reads,
                   number_type computed) except -1:
    """An input is loaded at once, unless conversions would round twice or not at all."""
    cdef str held = DTYPE_OF[computed]
    state.sizes[k] = item_size(dtype)
    state.dense_input[k] = dtype == held
    state.converted[k] = (
        reads != held and dtype != reads and dtype not in HOLDS.get(reads, ())
        and not (computed == IN_FLOAT and reads == "float32"))
    if state.converted[k]:
        set_cast(&state.casts[k], dtype, reads)
        state.dense_input[k] = False
    state.loads[k] = load_as(reads if state.converted[k] else dtype, computed)
    return 0


cdef int set_simd(compute_state *state, const formula_t *row, bint all_alike, str result) except -1:
    state.all_alike = all_alike
    state.rounded = SIMD_TYPES[result]
    state.read_type = state.rounded if all_alike else F32
    state.simd = simd_loop_of(&row.simd, all_alike, result)
    state.read_size = state.result_size if all_alike else sizeof(float)
    state.prepare, state.classify = row.simd.prepare, row.simd.classify
    if state.rounded == F32 and row.simd.classify_f32 != NULL:
        state.classify = row.simd.classify_f32
    state.exact = row.loops.in_double
    return 0


cdef simd_loop simd_loop_of(const simd_path_t *path, bint all_alike, str result) except? NULL:
    """For inputs that all have the result's dtype, or are read as floats; NULL: there is none."""
    if result not in SIMD_TYPES:
        return NULL
    if result == "float32":
        return path.f32
    if result == "float16":
        return path.f16 if all_alike else path.to_f16
    return path.bf16 if all_alike else path.to_bf16


def cast_kernel(str src not None, str dst not None, join=None):
    """The kernel that converts `src` to `dst`, rounding once; a copy where they are the same.

    Parameters
    ----------
    src, dst : str
        Names of dtypes.
    join : callable, optional
        The kernel's `join`.

    Returns
    -------
    Kernel
    """
    cdef State kept = State(sizeof(cast_state))
    set_cast(<cast_state *>kept.data, src, dst)
    facts = COPIES if src == dst else CASTS
    form = PointForm("cast", (src, dst), dst, "float32", "real", 0, facts)
    return casting(f"cast[{src}->{dst}]", kept, facts, form, join)


def copy_kernel(int itemsize):
    """The kernel that copies elements of so many bytes, from 1 to 16."""
    if not 1 <= itemsize <= 16:
        raise ValueError(f"kernels copy elements of 1 to 16 bytes, not of {itemsize}")
    cdef State kept = State(sizeof(cast_state))
    cdef cast_state *state = <cast_state *>kept.data
    state.in_size = state.out_size = itemsize
    state.copy = True
    return casting(f"copy[{itemsize}]", kept, COPIES, None, None)


cdef object casting(str name, State kept, facts, form, join):
    """The kernel of a conversion, whose state is set."""
    cdef const cast_state *state = <const cast_state *>kept.data
    return Kernel(
        fn=<size_t><tile_kernel>cast_tile,
        state=<size_t>kept.data,
        name=name,
        itemsizes=(state.in_size, state.out_size),
        cost=facts.cost,
        owner=kept,
        join=join,
        form=form,
    )


cdef int set_cast(cast_state *state, str src, str dst) except -1:
    cdef number_type held = cast_type(src, dst)
    state.in_size, state.out_size = item_size(src), item_size(dst)
    state.copy = src == dst
    state.size = item_size(DTYPE_OF[held])
    state.from_it = src == DTYPE_OF[held]
    state.to_it = dst == DTYPE_OF[held]
    if state.copy:
        return 0
    state.load, state.store = load_as(src, held), store_from(dst, held)
    # What a double cannot hold is rounded to odd on its way to what has fewer digits.
    if held == IN_DOUBLE and dst not in ("float64", "complex128"):
        if src == "int64":
            state.load = <load_fn>load_odd[unaligned_int64]
        elif src == "uint64":
            state.load = <load_fn>load_odd[unaligned_uint64]
    return 0


cdef number_type cast_type(str src, str dst) except *:
    """By way of which a cast rounds once, and keeps what both dtypes hold."""
    if src in COMPLEX and (dst in COMPLEX or dst == "bool"):
        return IN_COMPLEX
    if src in WHOLE and dst in WHOLE:
        return IN_WHOLE
    if src in HOLDS["float32"] or src in ("float32", "complex64"):
        return IN_DOUBLE if dst in ("float64", "complex128") else IN_FLOAT
    return IN_DOUBLE


def run(ref not None, inputs, output, Py_ssize_t rows, Py_ssize_t cols, scalars=(),
        int flags=0):
    """Run a kernel on one tile, for tests.

    Parameters
    ----------
    ref : Kernel
    inputs, output
        Triples of address, row stride and column stride, in bytes.
    rows, cols : int
    scalars : sequence of float or int
        The numbers that the kernel takes.
    flags : int
    """
    cdef tile_view views[MOST_INPUTS + 1]
    cdef params_t numbers, prepared  # which are aligned
    cdef kernel_number *values = <kernel_number *>&numbers
    cdef void *params = values
    cdef int k
    operands = (*inputs, output)
    if ref.fn == 0 or len(operands) != len(ref.itemsizes):
        raise ValueError(f"takes a kernel that was made, and its operands: {len(operands)} given")
    if len(scalars) > MOST_NUMBERS:
        raise ValueError(f"takes at most {MOST_NUMBERS} scalars, {len(scalars)} given")
    for k in range(len(operands)):
        address, row_stride, col_stride = operands[k]
        views[k].data = <char *><uintptr_t>address
        views[k].row_stride = row_stride
        views[k].col_stride = col_stride
    for k in range(MOST_NUMBERS):
        number = scalars[k] if k < len(scalars) else 0
        if ref.form is not None and ref.form.numbers == "whole":
            values[k].whole = number
        else:
            values[k].real = number
    cdef const void *state = <const void *><size_t>ref.state
    cdef prepare_kernel prepare = <prepare_kernel><size_t>ref.prepare
    cdef tile_kernel fn = <tile_kernel><size_t>ref.fn
    with nogil:
        if prepare != NULL:
            params = &prepared
            prepare(params, state, values, MOST_NUMBERS)
        fn(views, rows, cols, state, params, NULL, flags)
        stream_fence()


def stream_copy(uintptr_t dst, uintptr_t src, Py_ssize_t nbytes):
    """Copy with stores that bypass the cache: the yardstick of benchmarks."""
    with nogil:
        stream(<char *>dst, <const char *>src, nbytes)


cdef void stream(char *dst, const char *src, ptrdiff_t nbytes) noexcept nogil:
    stream_bytes(dst, src, nbytes)
    stream_fence()
