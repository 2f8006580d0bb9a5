"""Gradients of norms of dense rows: of the parameters, and of the input."""

from aclnn.kernels.rows.dense cimport (
    BESIDE,
    HELD,
    LINES,
    STRIP,
    WIDE,
    at_bytes,
    dense_t,
    give,
)
from aclnn.kernels.rows.sums cimport CHUNK, FEW, SUM, folded_lanes, folded_registers, join
from aclnn.kernels.rows.sums cimport sum_t, total
from aclnn.kernels.rows.vecd cimport (
    VECD,
    load_vecd,
    store_two,
    store_vecd,
    v_add,
    v_add_as_product,
    v_fma,
    v_load,
    v_mul,
    v_set,
    v_sub,
    vecd,
)
from aclnn.kernels.rows.walk cimport GIVEN, element, group_t, operand_t, row_state, rows_along
from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef enum:
    AT_ONCE = 4 * FEW    # columns
    MOST_WEIGHTS = 2048  # columns whose weights are kept as doubles

# --- Gradients of the parameters, of adjacent rows: sums over the norm's rows ------------


cdef struct params_sums_t:
    # Of the gradients' products with what is normal, and of the gradients.
    sum_t products[WIDE]
    sum_t gradients[WIDE]
    double means[CHUNK]
    double rstds[CHUNK]


cdef inline void read_statistic(const tile_view *views, const operand_t *operand, ptrdiff_t col,
                                ptrdiff_t cols, double *values) noexcept nogil:
    """One for each column; what the operand is otherwise, where there is none."""
    cdef ptrdiff_t k
    if operand.view >= 0:
        operand.load(element(&views[operand.view], 0, col), views[operand.view].col_stride, values,
                     cols)
        return
    for k in range(cols):
        values[k] = operand.otherwise


cdef inline void add_some(vecd *products, vecd *gradients, const dense_t *g, ptrdiff_t step,
                          const dense_t *x, ptrdiff_t second_step, const double *means,
                          const double *rstds, ptrdiff_t lines, ptrdiff_t cols,
                          bint begins) noexcept nogil:
    """Up to `AT_ONCE` columns, of which every eighth has the same partial sums."""
    cdef vecd held[BESIDE]
    cdef vecd held_products[BESIDE]
    cdef vecd gradient, normal
    cdef ptrdiff_t p, k, line, part
    cdef int i
    for p in range(FEW):
        for line in range(lines):
            part = line * BESIDE * FEW + p
            for i in range(BESIDE):
                held[i] = v_set(0) if begins else gradients[part + i * FEW]
                held_products[i] = v_set(0) if begins else products[part + i * FEW]
            k = p
            while k < cols:
                for i in range(BESIDE):
                    gradient = load_vecd(at_bytes(g, k * step) + (line * BESIDE + i) * VECD)
                    normal = v_sub(
                        load_vecd(at_bytes(x, k * second_step) + (line * BESIDE + i) * VECD),
                        v_set(means[k]))
                    normal = v_mul(normal, v_set(rstds[k]))
                    held_products[i] = v_fma(gradient, normal, held_products[i])
                    held[i] = v_add_as_product(held[i], gradient)
                k += FEW
            for i in range(BESIDE):
                gradients[part + i * FEW], products[part + i * FEW] = held[i], held_products[i]


cdef inline void add_chunk(params_sums_t *sums, const dense_t *g, ptrdiff_t step,
                           const dense_t *x, ptrdiff_t second_step, ptrdiff_t lines,
                           ptrdiff_t cols) noexcept nogil:
    cdef vecd products[WIDE * FEW]
    cdef vecd gradients[WIDE * FEW]
    cdef ptrdiff_t k = 0, i
    while k < cols:
        add_some(products, gradients, at_bytes(g, k * step), step, at_bytes(x, k * second_step),
                 second_step, sums.means + k, sums.rstds + k, lines,
                 min(<ptrdiff_t>AT_ONCE, cols - k), k == 0)
        k += AT_ONCE
    for i in range(lines * BESIDE):
        sums.products[i].parts[0] = folded_registers(products + i * FEW, SUM)
        join(&sums.products[i])
        sums.gradients[i].parts[0] = folded_registers(gradients + i * FEW, SUM)
        join(&sums.gradients[i])


cdef inline bint takes_params(const tile_view *views, const row_state *state, ptrdiff_t rows,
                              const dense_t *like) noexcept nogil:
    return (state.inputs[0].same and state.inputs[1].same and rows >= BESIDE * VECD
            and views[state.inputs[0].view].row_stride == sizeof(dense_t)
            and views[state.inputs[1].view].row_stride == sizeof(dense_t))


cdef inline ptrdiff_t dense_params(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                   ptrdiff_t cols, const void *args,
                                   const dense_t *like) noexcept nogil:
    cdef const row_state *state = <const row_state *>args
    cdef const tile_view *first = &views[state.inputs[0].view]
    cdef const tile_view *second = &views[state.inputs[1].view]
    cdef params_sums_t sums
    cdef vecd parts[2 * WIDE]
    cdef vecd low
    cdef ptrdiff_t col, n, lines, i
    cdef bint begins = True
    if not takes_params(views, state, rows - row, like):
        return row
    while row + BESIDE * VECD <= rows:
        lines = min(<ptrdiff_t>LINES, (rows - row) // (BESIDE * VECD))
        for i in range(lines * BESIDE):
            begin_both(&sums.products[i], &sums.gradients[i], parts + 2 * i)
        col = 0
        while col < cols:
            n = min(<ptrdiff_t>CHUNK, cols - col)
            if begins or cols > CHUNK:
                read_statistic(views, &state.columns[0], col, n, sums.means)
                read_statistic(views, &state.columns[1], col, n, sums.rstds)
                begins = False
            add_chunk(&sums, <const dense_t *>element(first, row, col), first.col_stride,
                      <const dense_t *>element(second, row, col), second.col_stride, lines, n)
            col += n
        for i in range(lines * BESIDE):
            give(views, state, 0, row + i * VECD, VECD, total(&sums.products[i], &low), like)
            give(views, state, 1, row + i * VECD, VECD, total(&sums.gradients[i], &low), like)
        row += lines * BESIDE * VECD
    return row


cdef inline void begin_both(sum_t *products, sum_t *gradients, vecd *parts) noexcept nogil:
    products.high = products.low = gradients.high = gradients.low = v_set(0)
    products.parts, gradients.parts = parts, parts + 1


# --- Gradients of the input, of rows along which elements are adjacent ----------------------------

cdef struct weights_t:
    # As doubles, of all columns where there is room for them, else of a chunk.
    double values[MOST_WEIGHTS]
    ptrdiff_t read


cdef inline const double *weights_of(weights_t *weights, const tile_view *views,
                                     const operand_t *operand, ptrdiff_t col, ptrdiff_t n,
                                     ptrdiff_t cols) noexcept nogil:
    if cols > MOST_WEIGHTS:
        read_statistic(views, operand, col, n, weights.values)
        return weights.values
    if weights.read <= col:
        read_statistic(views, operand, col, n, weights.values + col)
        weights.read = col + n
    return weights.values + col


cdef inline void add_shares_along(const dense_t *g, const dense_t *x, const double *weights,
                                  vecd mean, ptrdiff_t cols, vecd *share,
                                  vecd *product) noexcept nogil:
    """Sums of q and q d of a chunk, folded to eight."""
    cdef vecd held[HELD]
    cdef vecd held_products[HELD]
    cdef ptrdiff_t k = 0, until = cols // STRIP * STRIP
    cdef int i
    for i in range(HELD):
        held[i] = held_products[i] = v_set(0)
    while k < until:
        for i in range(HELD):
            add_share(g + k + i * VECD, x + k + i * VECD, weights + k + i * VECD, mean, &held[i],
                      &held_products[i])
        k += STRIP
    for i in range(HELD):
        if k + i * VECD < cols:
            add_share(g + k + i * VECD, x + k + i * VECD, weights + k + i * VECD, mean, &held[i],
                      &held_products[i])
    share[0] = v_add(v_add(held[0], held[2]), v_add(held[1], held[3]))
    product[0] = v_add(v_add(held_products[0], held_products[2]),
                       v_add(held_products[1], held_products[3]))


cdef inline void add_share(const dense_t *g, const dense_t *x, const double *weights, vecd mean,
                           vecd *share, vecd *product) noexcept nogil:
    cdef vecd weighted = v_mul(load_vecd(g), v_load(weights))
    share[0] = v_add_as_product(share[0], weighted)
    product[0] = v_fma(weighted, v_sub(load_vecd(x), mean), product[0])


cdef inline vecd lane_of(const vecd *lanes, ptrdiff_t lane) noexcept nogil:
    return v_set((<const double *>lanes)[lane])


cdef inline void write_along(const dense_t *g, const dense_t *x, dense_t *out,
                             const double *weights, const group_t *group, ptrdiff_t lane,
                             ptrdiff_t cols) noexcept nogil:
    cdef vecd mean = lane_of(&group.given[0], lane), rstd = lane_of(&group.given[1], lane)
    cdef vecd most = lane_of(&group.values[0], lane), share = lane_of(&group.values[1], lane)
    cdef ptrdiff_t k = 0
    while k + 2 * VECD <= cols:
        store_two(out + k, v_mul(fallen(g + k, x + k, weights + k, mean, most, share), rstd),
                  v_mul(fallen(g + k + VECD, x + k + VECD, weights + k + VECD, mean, most, share),
                        rstd))
        k += 2 * VECD
    if k < cols:
        store_vecd(out + k, v_mul(fallen(g + k, x + k, weights + k, mean, most, share), rstd))


cdef inline vecd fallen(const dense_t *g, const dense_t *x, const double *weights, vecd mean,
                        vecd most, vecd share) noexcept nogil:
    """q - mean(q) - d rstd^2 mean(q d)."""
    cdef vecd rest = v_fma(v_sub(load_vecd(x), mean), share, most)
    return v_fma(load_vecd(g), v_load(weights), rest)


cdef inline bint takes_rows(const tile_view *views, const row_state *state, ptrdiff_t cols,
                            const dense_t *like) noexcept nogil:
    return (state.inputs[0].same and state.inputs[1].same and state.out.same and cols % VECD == 0
            and views[state.inputs[0].view].col_stride == sizeof(dense_t)
            and views[state.inputs[1].view].col_stride == sizeof(dense_t)
            and views[state.out.view].col_stride == sizeof(dense_t))


cdef inline void begin_rows(group_t *group, const tile_view *views, const row_state *state,
                            ptrdiff_t row, ptrdiff_t rows, vecd *parts) noexcept nogil:
    cdef const operand_t *operand
    cdef int i
    group.row, group.rows = row, rows
    begin_both(&group.sums[0], &group.sums[1], parts)
    for i in range(GIVEN):
        operand = &state.given[i]
        group.given[i] = v_set(operand.otherwise)
        if operand.view >= 0:
            group.given[i] = v_set(0)
            operand.load(element(&views[operand.view], row, 0), views[operand.view].row_stride,
                         &group.given[i], rows)


cdef inline ptrdiff_t dense_gradients(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                      ptrdiff_t cols, const void *args,
                                      const dense_t *like) noexcept nogil:
    cdef const row_state *state = <const row_state *>args
    cdef const tile_view *first = &views[state.inputs[0].view]
    cdef const tile_view *second = &views[state.inputs[1].view]
    cdef vecd parts[2]
    cdef vecd shares[VECD]
    cdef vecd products[VECD]
    cdef weights_t weights
    cdef const double *weight
    cdef group_t group
    cdef ptrdiff_t col, n, k
    if not takes_rows(views, state, cols, like):
        return row
    weights.read = 0
    while row < rows:
        begin_rows(&group, views, state, row, min(rows_along(cols // VECD, state), rows - row),
                   parts)
        col = 0
        while col < cols:
            n = min(<ptrdiff_t>CHUNK, cols - col)
            weight = weights_of(&weights, views, &state.columns[0], col, n, cols)
            for k in range(VECD):
                shares[k] = products[k] = v_set(0)
            for k in range(group.rows):
                add_shares_along(<const dense_t *>element(first, row + k, col),
                                 <const dense_t *>element(second, row + k, col), weight,
                                 lane_of(&group.given[0], k), n, &shares[k], &products[k])
            parts[0], parts[1] = folded_lanes(shares, SUM), folded_lanes(products, SUM)
            join(&group.sums[0])
            join(&group.sums[1])
            col += n
        state.passes[0].finish(&group, cols, NULL)
        col = 0
        while col < cols:
            n = min(<ptrdiff_t>CHUNK, cols - col)
            weight = weights_of(&weights, views, &state.columns[0], col, n, cols)
            for k in range(group.rows):
                write_along(<const dense_t *>element(first, row + k, col),
                            <const dense_t *>element(second, row + k, col),
                            <dense_t *>element(&views[state.out.view], row + k, col), weight,
                            &group, k, n)
            col += n
        row += group.rows
    return row
