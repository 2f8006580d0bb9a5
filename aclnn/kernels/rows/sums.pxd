"""Sums and maxima along rows, in an order that the column's index alone decides.

Columns are added to `PARTS` partial sums, column j to partial sum j mod `PARTS`.  After every
`CHUNK` columns these are added pairwise, and their sum joins the row's, which is kept in two
doubles.  A `vecd` has eight partial sums of one row, or one of each of eight rows: both come to the
same bits.
"""

from libc.math cimport INFINITY

from aclnn.kernels.rows.vecd cimport (
    v_add,
    v_div,
    v_load,
    v_max,
    v_max_or_nan,
    v_mul,
    v_product_error,
    v_set,
    v_spread_first,
    v_sub,
    v_swap_fours,
    v_swap_ones,
    v_swap_twos,
    v_two_sum,
    v_where_number,
    VECD,
    vecd,
)

cdef enum:
    PARTS = 32
    CHUNK = 512  # columns

ctypedef enum reduction_t:
    NOTHING
    SUM            # of terms that double holds with digits to spare
    TWO_SUMS
    EXACT_SUM      # with what each addition loses, in the second sum's place
    MOST           # a NaN may vanish
    MOST_OR_NAN


cdef struct sum_t:
    vecd parts[PARTS]    # of a row whose columns lie in registers, the first PARTS / VECD of them
    vecd high, low       # of the chunks that are done


cdef inline ptrdiff_t parts_of(bint along) noexcept nogil:
    return PARTS // VECD if along else PARTS


cdef inline ptrdiff_t used_parts(bint along, ptrdiff_t registers) noexcept nogil:
    """Of partial sums that a row of so few registers has: the others would add zeros."""
    cdef ptrdiff_t used = parts_of(along)
    while used // 2 >= registers:
        used //= 2
    return used


cdef inline int sums_of(reduction_t reduction) noexcept nogil:
    return 2 if reduction == TWO_SUMS or reduction == EXACT_SUM else 1


cdef inline void begin_sums(sum_t *sums, reduction_t reduction, ptrdiff_t parts) noexcept nogil:
    cdef int k
    for k in range(sums_of(reduction)):
        sums[k].high, sums[k].low = start_of(reduction), v_set(0)
    begin_chunk(sums, reduction, parts)


cdef inline vecd start_of(reduction_t reduction) noexcept nogil:
    return v_set(-INFINITY if reduction >= MOST else 0)


cdef inline void begin_chunk(sum_t *sums, reduction_t reduction, ptrdiff_t parts) noexcept nogil:
    cdef ptrdiff_t i
    cdef int k
    for k in range(sums_of(reduction)):
        for i in range(parts):
            sums[k].parts[i] = start_of(reduction)


cdef inline void end_chunk(sum_t *sums, reduction_t reduction, bint along,
                           ptrdiff_t parts) noexcept nogil:
    """Add the partial sums to those of the chunks before."""
    fold(&sums[0], &sums[1], reduction, along, parts)
    if reduction >= MOST:
        sums[0].high = larger(sums[0].high, sums[0].parts[0], reduction)
    else:
        join(&sums[0])
    if reduction == TWO_SUMS:
        fold(&sums[1], &sums[1], reduction, along, parts)
        join(&sums[1])
    if reduction == EXACT_SUM:
        sums[0].low = v_add(sums[0].low, sums[1].parts[0])


cdef inline void join(sum_t *sum) noexcept nogil:
    cdef vecd lost
    sum.high = v_two_sum(sum.high, sum.parts[0], &lost)
    sum.low = v_add(sum.low, lost)


cdef inline void fold(sum_t *sum, sum_t *errors, reduction_t reduction, bint along,
                      ptrdiff_t parts) noexcept nogil:
    """All partial sums into the first one, halving their number: i and i + half, at each step.

    Along a row the last eight lie in one register, of which every lane adds that of its partner.
    """
    cdef ptrdiff_t n = parts, i
    while n > 1:
        n //= 2
        for i in range(n):
            merge(sum, errors, i, sum.parts[i + n], errors.parts[i + n], reduction)
    if not along:
        return
    merge(sum, errors, 0, v_swap_fours(sum.parts[0]), v_swap_fours(errors.parts[0]), reduction)
    merge(sum, errors, 0, v_swap_twos(sum.parts[0]), v_swap_twos(errors.parts[0]), reduction)
    merge(sum, errors, 0, v_swap_ones(sum.parts[0]), v_swap_ones(errors.parts[0]), reduction)
    # Of the zeros +0 and -0, the larger one is the second: not the same in all lanes.
    sum.parts[0] = v_spread_first(sum.parts[0])


cdef inline void merge(sum_t *sum, sum_t *errors, ptrdiff_t i, vecd other, vecd other_error,
                       reduction_t reduction) noexcept nogil:
    cdef vecd lost
    if reduction == EXACT_SUM:
        sum.parts[i] = v_two_sum(sum.parts[i], other, &lost)
        errors.parts[i] = v_add(v_add(errors.parts[i], other_error), lost)
    elif reduction < MOST:
        sum.parts[i] = v_add(sum.parts[i], other)
    else:
        sum.parts[i] = larger(sum.parts[i], other, reduction)


cdef inline vecd larger(vecd a, vecd b, reduction_t reduction) noexcept nogil:
    return v_max_or_nan(a, b) if reduction == MOST_OR_NAN else v_max(a, b)


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
