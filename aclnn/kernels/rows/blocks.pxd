"""Blocks of operands: read and written where they lie, or staged as dense registers.

A staged block has the element type that is computed on; elements of other dtypes become double.
"""

from libc.string cimport memcpy, memset

from aclnn.kernels.element cimport copy_elements
from aclnn.kernels.rows.vecd cimport VECD, v_set, v_store, vecd
from aclnn.kernels.rows.walk cimport ACROSS, GROUPS, element, operand_t, output_t, spot_t
from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef extern from "transpose.h" nogil:
    void transpose_block(const char *, ptrdiff_t, char *, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                         ptrdiff_t) noexcept


cdef enum:
    SETS_APART = 1024  # bytes, of which the nearest cache has lines in four sets


cdef inline ptrdiff_t lane_stride(const tile_view *view, bint along) noexcept nogil:
    return view.col_stride if along else view.row_stride


cdef inline ptrdiff_t step_in_place(const tile_view *view, bint along) noexcept nogil:
    return VECD * view.col_stride if along else view.col_stride


cdef inline bint is_in_place(const tile_view *views, const operand_t *operand,
                             const spot_t *spot) noexcept nogil:
    """Whether a block's registers are read where they lie."""
    return (operand.same and spot.full
            and lane_stride(&views[operand.view], spot.along) == operand.size)


cdef inline const char *read_block(const tile_view *views, const operand_t *operand,
                                   const spot_t *spot, char *staged, char *raw,
                                   ptrdiff_t *step) noexcept nogil:
    """Begin of the block's registers, and the step from one to the next."""
    cdef const tile_view *view = &views[operand.view]
    cdef const char *source = element(view, spot.row, spot.col)
    if is_in_place(views, operand, spot):
        step[0] = step_in_place(view, spot.along)
        return source
    if operand.same:
        step[0] = VECD * operand.size
        gather(view, source, spot, staged, operand.size)
        return staged
    step[0] = sizeof(vecd)
    widen(view, source, operand, spot, <vecd *>staged, raw)
    return staged


cdef inline void read_wide(const tile_view *views, const operand_t *operand, const spot_t *spot,
                           vecd *staged, char *raw) noexcept nogil:
    """A block as doubles; what the operand is otherwise, where there is none."""
    cdef ptrdiff_t k
    if operand.view >= 0:
        widen(&views[operand.view], element(&views[operand.view], spot.row, spot.col), operand,
              spot, staged, raw)
        return
    for k in range(spot.n):
        staged[k] = v_set(operand.otherwise)


cdef inline void widen(const tile_view *view, const char *source, const operand_t *operand,
                       const spot_t *spot, vecd *staged, char *raw) noexcept nogil:
    if spot.along and view.col_stride == operand.size:
        widen_dense(source, operand, spot, staged)
    elif spot.along:
        if not spot.full:
            staged[spot.n - 1] = v_set(0)
        operand.load(source, view.col_stride, staged, spot.cols)
    elif view.row_stride == 0:
        widen_columns(view, source, operand, spot, staged, raw)
    else:
        gather(view, source, spot, raw, operand.size)
        operand.load(raw, operand.size, staged, spot.n * VECD)


cdef inline void widen_dense(const char *source, const operand_t *operand, const spot_t *spot,
                             vecd *staged) noexcept nogil:
    cdef ptrdiff_t whole = spot.cols // VECD
    operand.widen(source, staged, whole)
    if whole < spot.n:
        staged[whole] = v_set(0)
        operand.load(source + whole * VECD * operand.size, operand.size, &staged[whole],
                     spot.cols - whole * VECD)


cdef inline void widen_columns(const tile_view *view, const char *source, const operand_t *operand,
                               const spot_t *spot, vecd *staged, char *raw) noexcept nogil:
    """The same for all rows: one element for each register."""
    cdef double *values = <double *>raw
    cdef ptrdiff_t k
    operand.load(source, view.col_stride, values, spot.n)
    for k in range(spot.n):
        staged[k] = v_set(values[k])


cdef inline void gather(const tile_view *view, const char *source, const spot_t *spot, char *dense,
                        int size) noexcept nogil:
    """The block's elements as dense registers, zeros where a register is not full."""
    cdef ptrdiff_t j
    if not spot.full:
        memset(dense + (spot.n - 1) * VECD * size if spot.along else dense, 0,
               VECD * size if spot.along else spot.n * VECD * size)
    if spot.along:
        copy_elements(source, view.col_stride, dense, size, spot.cols, size)
    elif view.col_stride == size:
        transpose_block(source, view.row_stride, dense, VECD * size, spot.cols, spot.rows, size)
    else:
        for j in range(spot.cols):
            copy_elements(source + j * view.col_stride, view.row_stride, dense + j * VECD * size,
                          size, spot.rows, size)


cdef inline void scatter(const tile_view *view, char *target, const spot_t *spot, const char *dense,
                         int size) noexcept nogil:
    cdef ptrdiff_t j
    if spot.along:
        copy_elements(dense, size, target, view.col_stride, spot.cols, size)
    elif view.col_stride == size:
        transpose_block(dense, VECD * size, target, view.row_stride, spot.rows, spot.cols, size)
    else:
        for j in range(spot.cols):
            copy_elements(dense + j * VECD * size, size, target + j * view.col_stride,
                          view.row_stride, spot.rows, size)


# --- Panels: adjacent rows, of which lines of memory hold several groups' --------------

cdef inline bint is_beside(const tile_view *view, ptrdiff_t size) noexcept nogil:
    return view.row_stride == size


cdef inline bint displaces_itself(const tile_view *view) noexcept nogil:
    """Whether columns lie so that many share few sets of the nearest cache."""
    return view.col_stride % SETS_APART == 0 and view.col_stride != SETS_APART


cdef inline void gather_panel(const tile_view *view, const spot_t *spot, char *staged,
                              ptrdiff_t size) noexcept nogil:
    """All groups of a panel, a block for each: every line is read once, before others displace it
    that lie as far apart as columns do."""
    cdef const char *source = element(view, spot.row, spot.col)
    if size == 2:
        move_panel(source, view.col_stride, VECD * 2, staged, VECD * 2, ACROSS * VECD * 2, spot.n,
                   VECD * 2)
    elif size == 4:
        move_panel(source, view.col_stride, VECD * 4, staged, VECD * 4, ACROSS * VECD * 4, spot.n,
                   VECD * 4)
    else:
        move_panel(source, view.col_stride, VECD * 8, staged, VECD * 8, ACROSS * VECD * 8, spot.n,
                   VECD * 8)


cdef inline void scatter_panel(const tile_view *view, const spot_t *spot, const char *made,
                               ptrdiff_t size) noexcept nogil:
    cdef char *target = element(view, spot.row, spot.col)
    if size == 2:
        move_panel(made, VECD * 2, ACROSS * VECD * 2, target, view.col_stride, VECD * 2, spot.n,
                   VECD * 2)
    elif size == 4:
        move_panel(made, VECD * 4, ACROSS * VECD * 4, target, view.col_stride, VECD * 4, spot.n,
                   VECD * 4)
    else:
        move_panel(made, VECD * 8, ACROSS * VECD * 8, target, view.col_stride, VECD * 8, spot.n,
                   VECD * 8)


cdef inline void move_panel(const char *source, ptrdiff_t source_step, ptrdiff_t source_group,
                            char *target, ptrdiff_t target_step, ptrdiff_t target_group,
                            ptrdiff_t n, size_t nbytes) noexcept nogil:
    """Column by column, of each group so many bytes; a constant, so that they are registers."""
    cdef ptrdiff_t j
    cdef int g
    for j in range(n):
        for g in range(GROUPS):
            memcpy(target + j * target_step + g * target_group,
                   source + j * source_step + g * source_group, nbytes)


cdef inline char *out_place(const tile_view *views, const output_t *out, const spot_t *spot,
                            char *made, ptrdiff_t *step) noexcept nogil:
    """Place that a pass writes: the output, or a dense block."""
    cdef const tile_view *view = &views[out.view]
    if out.same and spot.full and lane_stride(view, spot.along) == out.size:
        step[0] = step_in_place(view, spot.along)
        return element(view, spot.row, spot.col)
    step[0] = VECD * out.size if out.same else <ptrdiff_t>sizeof(vecd)
    return made


cdef inline void write_block(const tile_view *views, const output_t *out, const spot_t *spot,
                             char *made, char *raw) noexcept nogil:
    """A dense block that a pass has made, to the output."""
    cdef const tile_view *view = &views[out.view]
    cdef char *target = element(view, spot.row, spot.col)
    cdef ptrdiff_t count = spot.n * VECD
    if out.same:
        scatter(view, target, spot, made, out.size)
        return
    round_first(out, <vecd *>made, raw, count)
    out.store(made, raw, out.size, count)
    scatter(view, target, spot, raw, out.size)


cdef inline void round_first(const output_t *out, vecd *made, char *raw,
                             ptrdiff_t count) noexcept nogil:
    """Results become those of another dtype, before they are converted to the output's."""
    if out.result_size:
        out.round(made, raw, out.result_size, count)
        out.rounded(raw, out.result_size, made, count)


cdef inline void write_result(const tile_view *views, const output_t *out, ptrdiff_t row,
                              ptrdiff_t rows, vecd values, char *raw) noexcept nogil:
    """One element for each row of a group."""
    cdef double lanes[VECD]
    cdef const tile_view *view = &views[out.view]
    v_store(lanes, values)
    round_first(out, <vecd *>lanes, raw, rows)
    out.store(lanes, element(view, row, 0), view.row_stride, rows)
