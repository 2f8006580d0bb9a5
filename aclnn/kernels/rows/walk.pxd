"""Arguments of passes over rows, and the walk over a tile: panels of groups, blocks of columns.

A group has up to eight rows, and what is found out for them is in the lanes of a `vecd`.  Where
registers hold one column of all its rows, a pass runs over these together; where registers go along
rows, it runs over one row after the other.
"""

from libc.stdlib cimport llabs

from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.rows.sums cimport NOTHING, PARTS, reduction_t, sum_t, sums_of, used_parts
from aclnn.kernels.rows.vecd cimport VECD, v_set, vecd
from aclnn.graph.runtime.kernel_abi cimport kernel_number, tile_view

cdef enum:
    BLOCK = 64      # registers of a block along a row: 4 KiB
    GROUPS = 4      # of a panel across: its rows share lines of memory
    ACROSS = 32     # registers of a block across, for each group
    RESIDENT = 128  # registers of an operand of one row, to be read once for a tile
    KEPT = 8192     # registers of a panel's exponentials, at most, to be kept for the next pass
    SHORT = 1024    # registers of rows that are gone over together, along: 32 KiB of floats
    FEW_COLS = 16   # up to so many, registers hold several rows
    INPUTS = 2
    COLUMNS = 2
    GIVEN = 2
    SUMS = 2
    RESULTS = 2
    PASSES = 4
    GROUP_ROOM = 960  # bytes of a group with the widest registers, for plans of any instruction set


cdef struct group_t:
    sum_t sums[SUMS]
    vecd given[GIVEN]        # of its rows: mean, rstd, as they were put in
    vecd values[4]           # what passes find out for the next ones
    vecd results[RESULTS]    # one element of each row
    ptrdiff_t row, rows
    bint doubt               # a pass that only doubtful groups need has to run


cdef enum:
    EVERY = -1               # in place of a row's number


cdef struct run_t:
    # A block of a group: for each of n registers, where the elements of operands lie.
    ptrdiff_t n
    ptrdiff_t lane           # the row in the group that registers go along, or EVERY
    ptrdiff_t rows           # from that one on, of passes that take many; else 1
    ptrdiff_t row_step       # bytes from row to row of these
    bint begins              # partial sums, of passes that do: their memory says nothing
    ptrdiff_t part_mask      # register k belongs to the partial sum k & part_mask
    ptrdiff_t partial        # the register that is not full, or -1
    ptrdiff_t live           # its elements
    const char *second       # of the second input
    char *out
    ptrdiff_t step           # bytes from register to register: of the first input
    ptrdiff_t second_step
    ptrdiff_t out_step
    const vecd *columns[COLUMNS]    # one element for each column: weights
    vecd *kept               # what one pass leaves for the next


# The first input has the type that the pass was made for, so have the others and the output.
ctypedef void (*run_fn)(const void *, group_t *, const run_t *) noexcept nogil
ctypedef void (*widen_fn)(const void *, vecd *, ptrdiff_t registers) noexcept nogil
ctypedef void (*finish_fn)(group_t *, ptrdiff_t cols, const kernel_number *) noexcept nogil
# Rows from one on, up to the one that it returns, of operands which lie so that it takes them.
ctypedef ptrdiff_t (*dense_fn)(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                               ptrdiff_t cols, const void *state,
                               const void *like) noexcept nogil


cdef struct pass_t:
    run_fn run
    finish_fn finish         # what follows from the sums; may be NULL
    reduction_t reduction
    int floats               # 1: terms of its first sum are, 2: of its second
    bint few                 # sums have `FEW` parts
    # It takes blocks of many rows, where its one input is read in place, and along rows it begins
    # partial sums itself: registers hold these.
    bint many
    int inputs               # how many it reads
    bint columns             # whether it reads these
    bint writes              # the output
    bint if_doubtful         # only for groups that the pass before left uncertain
    bint from_first          # it wants the first element of each row, as values[0]


cdef struct operand_t:
    int view                 # its place; -1: there is none
    int size
    bint same                # it has the type that is computed on
    load_fn load             # to double
    widen_fn widen           # the same of full registers that are adjacent
    double otherwise         # what every element is where there are none


cdef struct output_t:
    int view
    int size
    bint same
    store_fn store           # from double
    int result_size          # of the dtype that results are rounded to first; 0: there is none
    store_fn round
    load_fn rounded


cdef struct row_state:
    int size                 # of the type that is computed on
    operand_t inputs[INPUTS]
    operand_t columns[COLUMNS]
    operand_t given[GIVEN]
    output_t out
    output_t results[RESULTS]
    pass_t passes[PASSES]
    int n_passes
    run_fn run_kept          # the last pass, where the one before it left what it needs
    dense_fn dense           # does what passes do, where operands are dense; or NULL


cdef struct work_t:
    # Where a tile's scratch begins with what: as much of each as its rows, columns and kernel need.
    group_t *groups
    vecd *staged[INPUTS]
    vecd *made
    vecd *raw
    vecd *columns[COLUMNS]
    vecd *kept               # exponentials, of kernels that keep them


cdef struct walk_t:
    const tile_view *views
    const row_state *state
    work_t work
    bint along               # registers go along rows
    bint keep
    ptrdiff_t cols
    ptrdiff_t groups         # of the panel
    ptrdiff_t rows           # of a group, at most
    bint whole               # the panel: its rows fill registers
    bint first               # panel that is walked
    bint begun               # it is behind
    ptrdiff_t wide           # columns of a block
    ptrdiff_t registers      # of a row
    ptrdiff_t parts          # that sums have


cdef struct spot_t:
    # A block of a group.
    ptrdiff_t row, rows, col, cols
    ptrdiff_t n
    bint along
    bint full                # every register is


cdef inline bint goes_along(const tile_view *views, const row_state *state, ptrdiff_t rows,
                            ptrdiff_t cols) noexcept nogil:
    """Whether registers hold columns of a row: not where rows are adjacent in memory."""
    cdef int k
    if rows == 1:
        return True
    if cols <= FEW_COLS and rows >= VECD:
        return False
    for k in range(INPUTS):
        if state.inputs[k].view >= 0 and is_across(&views[state.inputs[k].view]):
            return False
    return state.out.view < 0 or not is_across(&views[state.out.view])


cdef inline ptrdiff_t rows_along(ptrdiff_t registers, const row_state *state) noexcept nogil:
    """Rows of a group whose registers go along rows: as few as the nearest cache holds."""
    cdef int inputs = 1 if state.inputs[1].view < 0 else INPUTS
    return max(1, min(VECD, SHORT // (registers * inputs)))


cdef inline vecd of_row(const vecd *values, const run_t *run) noexcept nogil:
    """Values of the group's rows, or of that one which registers go along."""
    return values[0] if run.lane == EVERY else v_set((<const double *>values)[run.lane])


cdef inline vecd *parts_of_row(group_t *group, int number, const run_t *run) noexcept nogil:
    """Partial sums of the group's rows, or of that one."""
    return group.sums[number].parts + (0 if run.lane == EVERY else run.lane * (PARTS // VECD))


cdef inline ptrdiff_t kept_registers(ptrdiff_t rows, ptrdiff_t cols,
                                     const row_state *state) noexcept nogil:
    """Registers of a tile's exponentials, whatever their direction; no fewer than of fewer rows."""
    cdef ptrdiff_t groups, most = 0, along = (cols + VECD - 1) // VECD
    if min(rows, rows_along(along, state)) * along <= KEPT:
        most = min(rows, rows_along(along, state)) * along
    for groups in range(1, GROUPS + 1):
        if groups <= (rows + VECD - 1) // VECD and groups * cols <= KEPT:
            most = max(most, groups * cols)
    return most


cdef inline size_t lay_out(work_t *work, const row_state *state, ptrdiff_t rows, ptrdiff_t cols,
                           char *scratch) noexcept nogil:
    """Divide the scratch of a tile, however its registers lie; the bytes of it.

    Fewer rows never take more: tiles at the edge have what is planned for the others.
    """
    cdef ptrdiff_t along = (cols + VECD - 1) // VECD, groups = (rows + VECD - 1) // VECD
    cdef ptrdiff_t block = max(min(along, BLOCK), min(cols, ACROSS))
    cdef ptrdiff_t panel = GROUPS * ACROSS if groups >= GROUPS else block
    cdef ptrdiff_t parts = most_parts_of(rows, cols)
    cdef size_t used = 0
    cdef ptrdiff_t g
    cdef int k, sums = sums_in(state)
    groups = min(groups, GROUPS)
    work.groups = <group_t *>place(
        scratch, groups * max(sizeof(group_t), <size_t>GROUP_ROOM), &used)
    for g in range(groups):
        for k in range(SUMS):
            if scratch != NULL:
                work.groups[g].sums[k].parts = <vecd *>(scratch + used)
            used += parts * sizeof(vecd) if k < sums else 0
    for k in range(INPUTS):
        work.staged[k] = <vecd *>place(
            scratch, panel * sizeof(vecd) if state.inputs[k].view >= 0 else 0, &used)
    work.made = <vecd *>place(scratch, panel * sizeof(vecd) if state.out.view >= 0 else 0, &used)
    work.raw = <vecd *>place(scratch, block * sizeof(vecd), &used)
    for k in range(COLUMNS):
        work.columns[k] = <vecd *>place(
            scratch, max(block, min(along, RESIDENT)) * sizeof(vecd) if has_columns(state) else 0,
            &used)
    work.kept = <vecd *>place(
        scratch,
        kept_registers(rows, cols, state) * sizeof(vecd) if state.run_kept != NULL else 0, &used)
    return used


cdef inline char *place(char *scratch, size_t nbytes, size_t *used) noexcept nogil:
    """Begin of so many bytes, in whole registers; NULL where only their number is asked for."""
    cdef char *found = NULL if scratch == NULL else scratch + used[0]
    used[0] += (nbytes + sizeof(vecd) - 1) // sizeof(vecd) * sizeof(vecd)
    return found


cdef inline ptrdiff_t most_parts_of(ptrdiff_t rows, ptrdiff_t cols) noexcept nogil:
    """Registers of partial sums of a group; where they are transposed, a register of each lane."""
    cdef ptrdiff_t along = min(rows, VECD) * (PARTS // VECD)
    return max(VECD, along, 0 if rows == 1 else used_parts(False, cols))


cdef inline int sums_in(const row_state *state) noexcept nogil:
    """Largest number of sums that the passes of a kernel keep at once."""
    cdef int p, most = 0
    for p in range(state.n_passes):
        if state.passes[p].reduction != NOTHING:
            most = max(most, sums_of(state.passes[p].reduction))
    return most


cdef inline bint has_columns(const row_state *state) noexcept nogil:
    cdef int p
    for p in range(state.n_passes):
        if state.passes[p].columns:
            return True
    return False


cdef inline bint is_across(const tile_view *view) noexcept nogil:
    return view.row_stride != 0 and llabs(view.row_stride) < llabs(view.col_stride)


cdef inline char *element(const tile_view *view, ptrdiff_t row, ptrdiff_t col) noexcept nogil:
    return view.data + row * view.row_stride + col * view.col_stride
