"""Sums, means and maxima of dense rows: what their passes give, without a walk from block to block.

Columns of a row are adjacent in memory, or rows are.  Sums have the order of `sums.pxd`: of column
j, partial sum j mod `PARTS`.  Eight rows are folded together; of long rows, eight chunks of one.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.blocks cimport write_result
from aclnn.kernels.rows.sums cimport (
    CHUNK,
    MOST_OR_NAN,
    PARTS,
    SUM,
    average,
    folded_lanes,
    folded_registers,
    join,
    sum_t,
    total,
)
from aclnn.kernels.rows.vecd cimport (
    VECD,
    elem_t,
    find_most_of_dense,
    load_floats,
    load_vecd,
    m_most_bfloat16,
    m_most_f32,
    m_none,
    m_see_bfloat16,
    m_see_f32,
    m_see_half_bfloat16,
    m_see_half_f32,
    magnitude_t,
    s_max_or_nan,
    s_mul,
    s_set,
    store_floats,
    store_vecd,
    v_abs,
    v_add,
    v_add_as_product,
    v_all_at_most,
    v_canonical,
    v_fma,
    v_load,
    v_of_floats,
    v_set,
    v_store,
    vecd,
    vecs,
)
from aclnn.kernels.rows.vecw cimport (
    load_wide,
    vecw,
    w_high,
    w_low,
    w_max_or_nan,
    w_set,
)
from aclnn.kernels.rows.walk cimport element, output_t, row_state
from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef extern from *:
    """
    /* Of the largest absolute value times their number: a sum of so much needs no more bits. */
    #define LEAST_SHARE 0x1p-22
    """
    double LEAST_SHARE

cdef enum:
    STRIP = PARTS          # columns, one for each partial sum
    HELD = STRIP // VECD   # registers of these
    BESIDE = 2             # registers of adjacent rows, a line of floats
    LINES = 4              # of these at a time: pages and lines far from each other take time
    WIDE = LINES * BESIDE
    SEVERAL = 4            # fewer long rows are gone over one by one

ctypedef fused dense_t:
    float
    half_t
    bfloat16_t

ctypedef enum term_t:
    TRACKED    # elements, of which the largest absolute value is kept
    PLAIN      # elements
    PRODUCTS   # of two operands

ctypedef vecd (*finished_fn)(const sum_t *, ptrdiff_t, vecd *) noexcept nogil


# --- Where elements lie ---------------------------------------------------------------------------

cdef inline bint lie_along(const tile_view *views, const dense_t *like) noexcept nogil:
    return views[0].col_stride == sizeof(dense_t)


cdef inline bint lie_beside(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                            const dense_t *like) noexcept nogil:
    return views[0].row_stride == sizeof(dense_t) and rows >= BESIDE * VECD


cdef inline const dense_t *at_bytes(const dense_t *x, ptrdiff_t offset) noexcept nogil:
    return <const dense_t *>(<const char *>x + offset)


cdef inline void give(const tile_view *views, const row_state *state, int result, ptrdiff_t row,
                      ptrdiff_t rows, vecd values, const dense_t *like) noexcept nogil:
    """One of the results, if there is that one, of up to eight rows."""
    cdef const output_t *out = &state.results[result]
    cdef double raw[VECD]
    if out.view < 0:
        return
    if rows == VECD and out.same and views[out.view].row_stride == sizeof(dense_t):
        store_vecd(<dense_t *>element(&views[out.view], row, 0), values)
        return
    write_result(views, out, row, rows, v_canonical(values), <char *>raw)


# --- Sums -----------------------------------------------------------------------------------------

cdef inline void see(magnitude_t *most, const dense_t *x) noexcept nogil:
    """Sums of float16 numbers are exact as they are."""
    if dense_t is float:
        m_see_f32(most, x)
    elif dense_t is bfloat16_t:
        m_see_bfloat16(most, x)


cdef inline void see_beside(magnitude_t *most, const dense_t *x) noexcept nogil:
    if dense_t is float:
        m_see_half_f32(most, x)
    elif dense_t is bfloat16_t:
        m_see_half_bfloat16(most, x)


cdef inline bint is_certain(const magnitude_t *most, double count, vecd result,
                            const dense_t *like) noexcept nogil:
    """Whether no row is uncertain: the largest value of all is no less than a row's own."""
    if dense_t is float:
        return v_all_at_most(v_set(m_most_f32(most) * count * LEAST_SHARE), v_abs(result))
    elif dense_t is bfloat16_t:
        return v_all_at_most(v_set(m_most_bfloat16(most) * count * LEAST_SHARE), v_abs(result))
    else:
        return True


cdef inline vecd with_term(vecd sum, const dense_t *x, const dense_t *y,
                           term_t term) noexcept nogil:
    if term != PRODUCTS:
        return v_add_as_product(sum, load_vecd(x))
    if dense_t is float:
        return v_fma(load_vecd(x), load_vecd(y), sum)
    else:
        # Products of halves are floats, but for what is too small to count.
        return v_add(sum, v_of_floats(s_mul(load_floats(x), load_floats(y))))


cdef inline void add_strip(vecd *held, const dense_t *x, const dense_t *y,
                           term_t term) noexcept nogil:
    cdef int i
    for i in range(HELD):
        held[i] = with_term(held[i], x + i * VECD, y + i * VECD, term)


cdef inline vecd chunk_along(const dense_t *x, const dense_t *y, ptrdiff_t cols, term_t term,
                             magnitude_t *most) noexcept nogil:
    """The partial sums of a chunk, folded to eight."""
    cdef vecd held[HELD]
    cdef magnitude_t own = most[0]
    cdef dense_t[STRIP] rest
    cdef dense_t[STRIP] others
    cdef ptrdiff_t k = 0, whole = cols // STRIP * STRIP
    held[0] = held[1] = held[2] = held[3] = v_set(0)
    while k < whole:
        add_strip(held, x + k, y + k, term)
        if term == TRACKED:
            see(&own, x + k)
        k += STRIP
    if whole < cols:
        memset(rest, 0, sizeof(rest))
        memcpy(rest, x + whole, (cols - whole) * sizeof(dense_t))
        if term == PRODUCTS:
            memset(others, 0, sizeof(others))
            memcpy(others, y + whole, (cols - whole) * sizeof(dense_t))
        add_strip(held, <const dense_t *>rest, <const dense_t *>others, term)
        if term == TRACKED:
            see(&own, <const dense_t *>rest)
    most[0] = own
    return v_add(v_add(held[0], held[2]), v_add(held[1], held[3]))


cdef inline void begin_total(sum_t *sum, vecd *parts) noexcept nogil:
    sum.high, sum.low, sum.parts = v_set(0), v_set(0), parts


cdef inline void sum_rows_along(const dense_t *x, ptrdiff_t step, const dense_t *y,
                                ptrdiff_t second_step, ptrdiff_t rows, ptrdiff_t cols,
                                term_t term, sum_t *sum, magnitude_t *most) noexcept nogil:
    """Up to eight rows."""
    cdef vecd folded[VECD]
    cdef ptrdiff_t col = 0, n, k
    while col < cols:
        n = min(<ptrdiff_t>CHUNK, cols - col)
        for k in range(rows):
            folded[k] = chunk_along(at_bytes(x, k * step) + col,
                                    at_bytes(y, k * second_step) + col, n, term, most)
        for k in range(rows, VECD):
            folded[k] = v_set(0)
        sum.parts[0] = folded_lanes(folded, SUM)
        join(sum)
        col += n


cdef inline void sum_row_along(const dense_t *x, const dense_t *y, ptrdiff_t cols, term_t term,
                               sum_t *sum, magnitude_t *most) noexcept nogil:
    """One row, eight chunks at a time."""
    cdef vecd folded[VECD]
    cdef double chunks[VECD]
    cdef ptrdiff_t col = 0, n, k, count
    while col < cols:
        count = 0
        for k in range(VECD):
            folded[k] = v_set(0)
            if col < cols:
                n = min(<ptrdiff_t>CHUNK, cols - col)
                folded[k] = chunk_along(x + col, y + col, n, term, most)
                col += n
                count += 1
        v_store(chunks, folded_lanes(folded, SUM))
        for k in range(count):
            sum.parts[0] = v_set(chunks[k])
            join(sum)


cdef inline ptrdiff_t totals_along(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                   ptrdiff_t cols, const row_state *state, finished_fn finished,
                                   double count, const dense_t *like) noexcept nogil:
    cdef vecd parts[1]
    cdef vecd low, result
    cdef magnitude_t most
    cdef sum_t sum
    cdef const dense_t *x
    cdef ptrdiff_t n
    while row < rows:
        n = min(<ptrdiff_t>VECD, rows - row)
        x = <const dense_t *>element(&views[0], row, 0)
        begin_total(&sum, parts)
        most = m_none()
        if n < SEVERAL and cols > n * CHUNK:
            n = 1
            sum_row_along(x, x, cols, TRACKED, &sum, &most)
        else:
            sum_rows_along(x, views[0].row_stride, x, 0, n, cols, TRACKED, &sum, &most)
        result = finished(&sum, cols, &low)
        if not is_certain(&most, count, live_lanes(result, n), like):
            return row
        give(views, state, 0, row, n, result, like)
        row += n
    return row


cdef inline vecd live_lanes(vecd values, ptrdiff_t rows) noexcept nogil:
    """Something large where there is no row."""
    cdef double lanes[VECD]
    cdef ptrdiff_t k
    if rows == VECD:
        return values
    v_store(lanes, values)
    for k in range(rows, VECD):
        lanes[k] = INFINITY
    return v_load(lanes)


cdef inline void add_strips(vecd *parts, const dense_t *x, ptrdiff_t step, const dense_t *y,
                            ptrdiff_t second_step, term_t term, ptrdiff_t lines,
                            ptrdiff_t strips, ptrdiff_t cols, bint begins,
                            magnitude_t *most) noexcept nogil:
    """So many columns of each of some strips: memory is read column by column, which it takes for
    a few streams, and partial sums are added to for several of them at a time."""
    cdef magnitude_t own = most[0]
    cdef vecd held[BESIDE]
    cdef vecd *part
    cdef const dense_t *first
    cdef const dense_t *second
    cdef ptrdiff_t p, line, s
    cdef int i
    for p in range(cols):
        for line in range(lines):
            part = parts + line * BESIDE * STRIP + p
            first = at_bytes(x, p * step) + line * BESIDE * VECD
            second = at_bytes(y, p * second_step) + line * BESIDE * VECD
            for i in range(BESIDE):
                held[i] = v_set(0) if begins else part[i * STRIP]
            for s in range(strips):
                for i in range(BESIDE):
                    held[i] = with_term(held[i], at_bytes(first, s * STRIP * step) + i * VECD,
                                        at_bytes(second, s * STRIP * second_step) + i * VECD,
                                        term)
                if term == TRACKED:
                    see_beside(&own, at_bytes(first, s * STRIP * step))
            for i in range(BESIDE):
                part[i * STRIP] = held[i]
    most[0] = own


cdef inline void chunk_beside(const dense_t *x, ptrdiff_t step, const dense_t *y,
                              ptrdiff_t second_step, term_t term, ptrdiff_t lines, ptrdiff_t cols,
                              sum_t *sums, magnitude_t *most) noexcept nogil:
    cdef vecd parts[WIDE * STRIP]
    cdef ptrdiff_t k = 0, p, i, n = STRIP
    for p in range(cols, STRIP):
        for i in range(lines * BESIDE):
            parts[i * STRIP + p] = v_set(0)
    while k + 4 * STRIP <= cols:
        add_strips(parts, at_bytes(x, k * step), step, at_bytes(y, k * second_step), second_step,
                   term, lines, 4, STRIP, k == 0, most)
        k += 4 * STRIP
    if k + 2 * STRIP <= cols:
        add_strips(parts, at_bytes(x, k * step), step, at_bytes(y, k * second_step), second_step,
                   term, lines, 2, STRIP, k == 0, most)
        k += 2 * STRIP
    while k < cols:
        add_strips(parts, at_bytes(x, k * step), step, at_bytes(y, k * second_step), second_step,
                   term, lines, 1, min(<ptrdiff_t>STRIP, cols - k), k == 0, most)
        k += STRIP
    while n > VECD:
        n //= 2
        for i in range(lines * BESIDE):
            for p in range(n):
                parts[i * STRIP + p] = v_add(parts[i * STRIP + p], parts[i * STRIP + p + n])
    for i in range(lines * BESIDE):
        sums[i].parts[0] = folded_registers(parts + i * STRIP, SUM)
        join(&sums[i])


cdef inline void sum_rows_beside(const dense_t *x, ptrdiff_t step, const dense_t *y,
                                 ptrdiff_t second_step, ptrdiff_t lines, ptrdiff_t cols,
                                 term_t term, sum_t *sums, vecd *parts,
                                 magnitude_t *most) noexcept nogil:
    """Sums of so many times `BESIDE` registers of rows."""
    cdef ptrdiff_t col = 0, i
    for i in range(lines * BESIDE):
        begin_total(&sums[i], parts + i)
    while col < cols:
        chunk_beside(at_bytes(x, col * step), step, at_bytes(y, col * second_step), second_step,
                     term, lines, min(<ptrdiff_t>CHUNK, cols - col), sums, most)
        col += CHUNK


cdef inline ptrdiff_t totals_beside(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                    ptrdiff_t cols, const row_state *state, finished_fn finished,
                                    double count, const dense_t *like) noexcept nogil:
    cdef vecd parts[WIDE]
    cdef vecd results[WIDE]
    cdef vecd low
    cdef magnitude_t most
    cdef sum_t sums[WIDE]
    cdef const dense_t *x
    cdef ptrdiff_t step = views[0].col_stride, lines, i
    cdef bint certain
    while row + BESIDE * VECD <= rows:
        lines = min(<ptrdiff_t>LINES, (rows - row) // (BESIDE * VECD))
        most = m_none()
        x = <const dense_t *>element(&views[0], row, 0)
        sum_rows_beside(x, step, x, 0, lines, cols, TRACKED, sums, parts, &most)
        certain = True
        for i in range(lines * BESIDE):
            results[i] = finished(&sums[i], cols, &low)
            certain = certain and is_certain(&most, count, results[i], like)
        if not certain:
            return row
        for i in range(lines * BESIDE):
            give(views, state, 0, row + i * VECD, VECD, results[i], like)
        row += lines * BESIDE * VECD
    return row


cdef inline vecd whole_sum(const sum_t *sum, ptrdiff_t cols, vecd *low) noexcept nogil:
    return total(sum, low)


cdef inline ptrdiff_t dense_sums(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                 ptrdiff_t cols, const void *state,
                                 const dense_t *like) noexcept nogil:
    if lie_along(views, like):
        return totals_along(views, row, rows, cols, <const row_state *>state, whole_sum,
                            <double>cols, like)
    if lie_beside(views, rows - row, cols, like):
        return totals_beside(views, row, rows, cols, <const row_state *>state, whole_sum,
                             <double>cols, like)
    return row


cdef inline ptrdiff_t dense_means(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                  ptrdiff_t cols, const void *state,
                                  const dense_t *like) noexcept nogil:
    if lie_along(views, like):
        return totals_along(views, row, rows, cols, <const row_state *>state, average, 1, like)
    if lie_beside(views, rows - row, cols, like):
        return totals_beside(views, row, rows, cols, <const row_state *>state, average, 1, like)
    return row


# --- Maxima ---------------------------------------------------------------------------------------

cdef inline vecd most_along(const dense_t *x, ptrdiff_t cols) noexcept nogil:
    """Largest elements of one row, eight."""
    cdef vecs held[HELD]
    cdef dense_t[STRIP] rest
    cdef ptrdiff_t whole = cols // STRIP * STRIP
    cdef int i
    held[0] = held[1] = held[2] = held[3] = s_set(-INFINITY)
    find_most_of_dense(held, x, whole // VECD)
    if whole < cols:
        for i in range(HELD):
            store_floats(<dense_t *>rest + i * VECD, s_set(-INFINITY))
        memcpy(rest, x + whole, (cols - whole) * sizeof(dense_t))
        find_most_of_dense(held, <const dense_t *>rest, HELD)
    return v_of_floats(s_max_or_nan(s_max_or_nan(held[0], held[2]),
                                    s_max_or_nan(held[1], held[3])))


cdef inline vecd most_of_rows(const dense_t *x, ptrdiff_t step, ptrdiff_t rows,
                              ptrdiff_t cols) noexcept nogil:
    """Largest elements of up to eight rows, one in each lane."""
    cdef vecd folded[VECD]
    cdef ptrdiff_t k
    for k in range(rows):
        folded[k] = most_along(at_bytes(x, k * step), cols)
    for k in range(rows, VECD):
        folded[k] = v_set(0)
    return folded_lanes(folded, MOST_OR_NAN)


cdef inline ptrdiff_t all_most_along(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                     ptrdiff_t cols, const row_state *state,
                                     const dense_t *like) noexcept nogil:
    cdef ptrdiff_t n
    while row < rows:
        n = min(<ptrdiff_t>VECD, rows - row)
        give(views, state, 0, row, n,
             most_of_rows(<const dense_t *>element(&views[0], row, 0), views[0].row_stride, n,
                          cols), like)
        row += n
    return row


cdef inline void keep_most_beside(vecw *parts, const dense_t *x, ptrdiff_t step, ptrdiff_t lines,
                                  ptrdiff_t strips, ptrdiff_t cols, bint begins) noexcept nogil:
    """So many columns of each of some strips."""
    cdef vecw held
    cdef vecw *part
    cdef const dense_t *first
    cdef ptrdiff_t p, line, s
    for p in range(cols):
        for line in range(lines):
            part = parts + line * STRIP + p
            first = at_bytes(x, p * step) + line * BESIDE * VECD
            held = w_set(-INFINITY) if begins else part[0]
            for s in range(strips):
                held = w_max_or_nan(held, next_rows(first, s * STRIP * step))
            part[0] = held


cdef inline void find_most_beside(vecw *parts, const dense_t *x, ptrdiff_t step, ptrdiff_t lines,
                                  ptrdiff_t cols) noexcept nogil:
    cdef ptrdiff_t k = 0, p, line
    for line in range(lines):
        for p in range(cols, STRIP):
            parts[line * STRIP + p] = w_set(-INFINITY)
    while k + 4 * STRIP <= cols:
        keep_most_beside(parts, at_bytes(x, k * step), step, lines, 4, STRIP, k == 0)
        k += 4 * STRIP
    if k + 2 * STRIP <= cols:
        keep_most_beside(parts, at_bytes(x, k * step), step, lines, 2, STRIP, k == 0)
        k += 2 * STRIP
    while k < cols:
        keep_most_beside(parts, at_bytes(x, k * step), step, lines, 1,
                         min(<ptrdiff_t>STRIP, cols - k), k == 0)
        k += STRIP


cdef inline vecw folded_most(vecw *parts) noexcept nogil:
    cdef ptrdiff_t n = STRIP, i
    while n > 1:
        n //= 2
        for i in range(n):
            parts[i] = w_max_or_nan(parts[i], parts[i + n])
    return parts[0]


cdef inline vecw next_rows(const dense_t *x, ptrdiff_t offset) noexcept nogil:
    """An element of each of sixteen rows."""
    return load_wide(at_bytes(x, offset), VECD * sizeof(dense_t))


cdef inline ptrdiff_t all_most_beside(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                      ptrdiff_t cols, const row_state *state,
                                      const dense_t *like) noexcept nogil:
    cdef vecw parts[LINES * STRIP]
    cdef vecw most
    cdef ptrdiff_t lines, line
    while row + BESIDE * VECD <= rows:
        lines = min(<ptrdiff_t>LINES, (rows - row) // (BESIDE * VECD))
        find_most_beside(parts, <const dense_t *>element(&views[0], row, 0), views[0].col_stride,
                         lines, cols)
        for line in range(lines):
            most = folded_most(parts + line * STRIP)
            give(views, state, 0, row, VECD, v_of_floats(w_low(most)), like)
            give(views, state, 0, row + VECD, VECD, v_of_floats(w_high(most)), like)
            row += BESIDE * VECD
    return row


cdef inline ptrdiff_t dense_most(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                 ptrdiff_t cols, const void *state,
                                 const dense_t *like) noexcept nogil:
    if lie_along(views, like):
        return all_most_along(views, row, rows, cols, <const row_state *>state, like)
    if lie_beside(views, rows - row, cols, like):
        return all_most_beside(views, row, rows, cols, <const row_state *>state, like)
    return row
