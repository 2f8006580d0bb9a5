"""Sums and maxima along rows, in an order that the column's index alone decides.

Columns are added to `PARTS` partial sums, column j to partial sum j mod `PARTS`.  After every
`CHUNK` columns these are added pairwise, and their sum joins the row's, which is kept in two
doubles; maxima are folded once, at the end of a row.  A `vecd` has eight partial sums of one row,
or one of each of eight rows: both come to the same bits.  Of several short rows, each has partial
sums of its own; then these are transposed, so that sums have one lane for each row, as sums of rows
adjacent in memory have.
"""

from libc.math cimport INFINITY

from aclnn.kernels.rows.vecd cimport (
    v_add,
    v_div,
    v_load,
    v_max_or_nan,
    v_mul,
    v_of_floats,
    v_product_error,
    v_set,
    v_spread_first,
    v_sub,
    v_swap_fours,
    v_swap_ones,
    v_swap_twos,
    v_transpose,
    v_two_sum,
    v_where_number,
    VECD,
    s_set,
    vecd,
    vecs,
)

cdef enum:
    PARTS = 32
    FEW = VECD    # partial sums where rows are mostly adjacent: registers hold as many
    CHUNK = 512  # columns

ctypedef enum reduction_t:
    NOTHING
    SUM            # of terms that double holds with digits to spare
    TWO_SUMS
    EXACT_SUM      # with what each addition loses, in the second sum's place
    SUM_AND_MOST   # with the largest absolute value, in the second sum's place
    MOST_OR_NAN


cdef struct sum_t:
    # Where registers go along rows, each row has the next `PARTS / VECD` of them.
    vecd *parts
    vecd high, low       # of the chunks that are done: of each row one lane, or of one row all


cdef struct sums_t:
    # How the sums of a group are kept.
    reduction_t reduction
    int floats           # which of both are sums of floats: for a chunk, in halves of parts
    bint along
    bint begun           # by the pass: partial sums have nothing in them before a chunk
    ptrdiff_t parts      # partial sums that a row has
    ptrdiff_t rows       # of the group, where registers go along these


cdef inline ptrdiff_t parts_of(bint along) noexcept nogil:
    return PARTS // VECD if along else PARTS


cdef inline ptrdiff_t used_parts(bint along, ptrdiff_t registers) noexcept nogil:
    """Number of partial sums of a row of so few registers: the others would add zeros."""
    cdef ptrdiff_t used = parts_of(along)
    while used // 2 >= registers:
        used //= 2
    return used


cdef inline ptrdiff_t most_parts(bint along, bint few) noexcept nogil:
    """Largest number of partial sums of a row, in registers."""
    return (FEW if few else PARTS) // (VECD if along else 1)


cdef inline int sums_of(reduction_t reduction) noexcept nogil:
    return 2 if reduction in (TWO_SUMS, EXACT_SUM, SUM_AND_MOST) else 1


cdef inline void begin_sums(sum_t *sums, const sums_t *kind) noexcept nogil:
    cdef int k
    for k in range(sums_of(kind.reduction)):
        sums[k].high, sums[k].low = start_of(kind.reduction), v_set(0)
    begin_chunk(sums, kind)


cdef inline vecd start_of(reduction_t reduction) noexcept nogil:
    return v_set(-INFINITY if reduction == MOST_OR_NAN else 0)


cdef inline void begin_chunk(sum_t *sums, const sums_t *kind) noexcept nogil:
    cdef ptrdiff_t i, first = 0
    cdef ptrdiff_t until = kind.rows * parts_of(True) if kind.along else kind.parts
    cdef int k
    if kind.begun:
        return
    for k in range(sums_of(kind.reduction)):
        while first < until:
            for i in range(kind.parts):
                begin_part(&sums[k].parts[first + i], kind, kind.floats >> k & 1)
            first += parts_of(kind.along)
        first = 0


cdef inline void begin_part(vecd *part, const sums_t *kind, bint floats) noexcept nogil:
    if floats:
        (<vecs *>part)[0] = s_set(-INFINITY if kind.reduction == MOST_OR_NAN else 0)
    else:
        part[0] = start_of(kind.reduction)


cdef inline void end_chunk(sum_t *sums, const sums_t *kind) noexcept nogil:
    """Add the partial sums to those of the chunks before."""
    fold(&sums[0], &sums[1], kind.reduction, kind.floats & 1, kind)
    if kind.reduction == MOST_OR_NAN:
        sums[0].high = v_max_or_nan(sums[0].high, sums[0].parts[0])
    else:
        join(&sums[0])
    if kind.reduction == TWO_SUMS:
        fold(&sums[1], &sums[1], SUM, kind.floats & 2, kind)
        join(&sums[1])
    if kind.reduction == EXACT_SUM:
        sums[0].low = v_add(sums[0].low, sums[1].parts[0])
    if kind.reduction == SUM_AND_MOST:
        fold(&sums[1], &sums[1], MOST_OR_NAN, kind.floats & 2, kind)
        sums[1].high = v_max_or_nan(sums[1].high, sums[1].parts[0])


cdef inline void widen_parts(sum_t *sum, const sums_t *kind) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(kind.parts):
        sum.parts[i] = v_of_floats((<const vecs *>&sum.parts[i])[0])


cdef inline void join(sum_t *sum) noexcept nogil:
    cdef vecd lost
    sum.high = v_two_sum(sum.high, sum.parts[0], &lost)
    sum.low = v_add(sum.low, lost)


cdef inline void fold(sum_t *sum, sum_t *errors, reduction_t reduction, bint floats,
                      const sums_t *kind) noexcept nogil:
    """All partial sums into the first one, halving their number: i and i + half, at each step.

    Along a row the last eight lie in one register, of which every lane adds that of its partner;
    of several rows, one is in each of eight.
    """
    if reduction == EXACT_SUM:
        fold_exactly(sum, errors, kind)
    elif kind.along:
        sum.parts[0] = folded_along(sum, reduction, floats, kind)
    else:
        if floats:
            widen_parts(sum, kind)
        halve(sum, errors, 0, kind.parts, reduction)


cdef inline vecd folded_along(const sum_t *sum, reduction_t reduction, bint floats,
                              const sums_t *kind) noexcept nogil:
    cdef vecd rows[VECD]
    cdef vecd row
    cdef ptrdiff_t k
    if kind.rows == 1:
        row = folded_row(sum.parts, reduction, floats, kind)
        row = both(row, v_swap_fours(row), reduction)
        row = both(row, v_swap_twos(row), reduction)
        # Of the zeros +0 and -0, the larger one is the second: not the same in all lanes.
        return v_spread_first(both(row, v_swap_ones(row), reduction))
    for k in range(VECD):
        rows[k] = v_set(0)
        if k < kind.rows:
            rows[k] = folded_row(sum.parts + k * parts_of(True), reduction, floats, kind)
    return folded_lanes(rows, reduction)


cdef inline vecd folded_lanes(vecd *rows, reduction_t reduction) noexcept nogil:
    """All lanes of each of eight registers, in one lane."""
    v_transpose(rows)
    return folded_registers(rows, reduction)


cdef inline vecd folded_registers(const vecd *parts, reduction_t reduction) noexcept nogil:
    """Eight registers as one."""
    return both(both(both(parts[0], parts[4], reduction), both(parts[2], parts[6], reduction),
                     reduction),
                both(both(parts[1], parts[5], reduction), both(parts[3], parts[7], reduction),
                     reduction), reduction)


cdef inline vecd folded_row(const vecd *parts, reduction_t reduction, bint floats,
                            const sums_t *kind) noexcept nogil:
    """One of each lane."""
    cdef vecd even = part_of(&parts[0], floats)
    cdef vecd odd
    if kind.parts == 1:
        return even
    odd = part_of(&parts[1], floats)
    if kind.parts == PARTS // VECD:
        even = both(even, part_of(&parts[2], floats), reduction)
        odd = both(odd, part_of(&parts[3], floats), reduction)
    return both(even, odd, reduction)


cdef inline vecd part_of(const vecd *part, bint floats) noexcept nogil:
    return v_of_floats((<const vecs *>part)[0]) if floats else part[0]


cdef inline void fold_exactly(sum_t *sum, sum_t *errors, const sums_t *kind) noexcept nogil:
    cdef ptrdiff_t row
    halve(sum, errors, 0, kind.parts, EXACT_SUM)
    if not kind.along:
        return
    if kind.rows == 1:
        merge(sum, errors, 0, v_swap_fours(sum.parts[0]), v_swap_fours(errors.parts[0]), EXACT_SUM)
        merge(sum, errors, 0, v_swap_twos(sum.parts[0]), v_swap_twos(errors.parts[0]), EXACT_SUM)
        merge(sum, errors, 0, v_swap_ones(sum.parts[0]), v_swap_ones(errors.parts[0]), EXACT_SUM)
        sum.parts[0] = v_spread_first(sum.parts[0])
        return
    for row in range(1, kind.rows):
        halve(sum, errors, row * parts_of(True), kind.parts, EXACT_SUM)
    gather_rows(sum.parts, kind.rows)
    gather_rows(errors.parts, kind.rows)
    halve(sum, errors, 0, VECD, EXACT_SUM)


cdef inline void gather_rows(vecd *parts, ptrdiff_t rows) noexcept nogil:
    """From one register for each row to one lane."""
    cdef ptrdiff_t row
    for row in range(1, VECD):
        parts[row] = parts[row * parts_of(True)] if row < rows else v_set(0)
    v_transpose(parts)


cdef inline void halve(sum_t *sum, sum_t *errors, ptrdiff_t first, ptrdiff_t parts,
                       reduction_t reduction) noexcept nogil:
    cdef ptrdiff_t n = parts, i
    while n > 1:
        n //= 2
        for i in range(first, first + n):
            merge(sum, errors, i, sum.parts[i + n], errors.parts[i + n], reduction)


cdef inline void merge(sum_t *sum, sum_t *errors, ptrdiff_t i, vecd other, vecd other_error,
                       reduction_t reduction) noexcept nogil:
    cdef vecd lost
    if reduction == EXACT_SUM:
        sum.parts[i] = v_two_sum(sum.parts[i], other, &lost)
        errors.parts[i] = v_add(v_add(errors.parts[i], other_error), lost)
    else:
        sum.parts[i] = both(sum.parts[i], other, reduction)


cdef inline vecd both(vecd a, vecd b, reduction_t reduction) noexcept nogil:
    return v_add(a, b) if reduction != MOST_OR_NAN else v_max_or_nan(a, b)


cdef inline vecd total(const sum_t *sum, vecd *low) noexcept nogil:
    """The sum, and what a double does not show of it; nothing, where the sum is no number."""
    cdef vecd high = v_two_sum(sum.high, sum.low, low)
    low[0] = v_where_number(low[0], low[0], v_set(0))
    return v_where_number(sum.low, high, sum.high)


cdef inline vecd average(const sum_t *sum, ptrdiff_t count, vecd *low) noexcept nogil:
    """The sum over the count, and what a double does not show of it."""
    cdef vecd n = v_set(<double>count)
    cdef vecd rest
    cdef vecd whole = total(sum, &rest)
    cdef vecd quotient = v_div(whole, n)
    cdef vecd product = v_mul(quotient, n)
    rest = v_add(v_sub(v_sub(whole, product), v_product_error(quotient, n, product)), rest)
    low[0] = v_where_number(rest, v_div(rest, n), v_set(0))
    return quotient
