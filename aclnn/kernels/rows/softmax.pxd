"""Passes of softmax, log_softmax and their gradients.

Of halves, exponentials are floats, with digits to spare, and so are the sums of a chunk.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint64_t

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.dense_passes cimport (
    dense_exponentials,
    dense_log_softmax_backward,
    dense_softmax_backward,
)
from aclnn.kernels.rows.passes cimport BOTH, FIRST, NEITHER, add_pass
from aclnn.kernels.rows.reduce cimport (
    HELD,
    WIDE,
    add_product,
    add_sum,
    add_term,
    add_wide,
    at,
    find_most_or_nan,
    held_until,
    hold,
    hold_wide,
    put,
    put_wide,
    release,
    release_wide,
)
from aclnn.kernels.rows.sums cimport MOST_OR_NAN, NOTHING, SUM, TWO_SUMS, total
from aclnn.kernels.rows.vecd cimport (
    EXPS,
    VECD,
    elem_t,
    load_floats,
    load_vecd,
    s_mul,
    s_of_doubles,
    v_abs,
    v_add,
    v_all_at_most,
    v_div,
    v_exp_long,
    v_exp_of_floats,
    v_exp_short,
    v_exps_of_floats,
    v_fma,
    v_log,
    v_log1p,
    v_min,
    v_mul,
    v_of_floats,
    v_set,
    v_sub,
    v_two_sum,
    v_where_less,
    v_where_number,
    v_zero_where_equal,
    vecd,
    vecs,
    wide_half_t,
    wide_single_t,
)
from aclnn.kernels.rows.vecw cimport (
    WIDES,
    fall_t,
    load_wide,
    narrow_t,
    store_numbers,
    store_wide,
    to_next,
    vecw,
    w_abs,
    w_add,
    w_all_at_most,
    w_all_numbers,
    w_exp_of_halves,
    w_exps_of_halves,
    w_falls,
    w_fms,
    w_high,
    w_low,
    w_mul,
    w_of_two,
    w_set,
    w_sub,
    w_twice,
    w_two_difference,
    w_where_less,
    w_where_number,
    wide_of_row,
    wide_place,
)
from aclnn.kernels.rows.walk cimport BLOCK, dense_fn, group_t, of_row
from aclnn.kernels.rows.walk cimport parts_of_row, row_state, run_fn, run_t
from aclnn.graph.runtime.kernel_abi cimport kernel_number

cdef extern from *:
    """
    /* What `s_exp_of_halves` multiplies by, and its inverse. */
    #define EXP_SCALE 0x1p64f
    #define EXP_UNSCALE 0x1p-64
    /* A sum of exponentials whose logarithm shows all digits of what is added to 1. */
    #define LEAST_TOTAL 1.0625
    #define LEAST_TOTAL_OF_HALVES 2.0
    /* Of a product e^y sum: a difference from it of which so much is left needs no more bits. */
    #define LEAST_FALL 0.15625f
    #define LEAST_FALL_OF_HALVES 0x1p-6f
    #define LEAST_DIGITS 0.03125
    """
    float EXP_SCALE
    double EXP_UNSCALE
    double LEAST_TOTAL, LEAST_TOTAL_OF_HALVES
    float LEAST_FALL, LEAST_FALL_OF_HALVES
    double LEAST_DIGITS

ctypedef fused halves_t:
    half_t
    bfloat16_t
    wide_half_t


# --- Softmax ------------------------------------------------------------------------------------

cdef inline void keep_most(group_t *group, ptrdiff_t cols,
                           const kernel_number *numbers) noexcept nogil:
    group.values[0] = group.sums[0].high
    group.values[2] = v_set(1)


cdef inline vecd grown(vecd x, vecd most, const elem_t *like) noexcept nogil:
    """e^(x - most), which is at most 709; -inf - -inf and inf - inf make the row's NaN."""
    cdef vecd lost, y
    if elem_t is double:
        y = v_two_sum(x, v_sub(v_set(0), most), &lost)
        return v_exp_long(y, v_where_number(lost, lost, v_set(0)))
    else:
        return v_exp_of_floats(v_sub(x, most))


cdef inline void grow(const elem_t *x, ptrdiff_t step, vecd most, vecd *terms) noexcept nogil:
    """The same of `HELD` registers."""
    cdef int i
    if elem_t is double:
        for i in range(HELD):
            terms[i] = grown(load_vecd(at(x, i * step)), most, x)
    else:
        for i in range(HELD):
            terms[i] = v_sub(load_vecd(at(x, i * step)), most)
        for i in range(HELD // EXPS):
            v_exps_of_floats(terms + i * EXPS)


cdef inline void add_exponentials(const elem_t *x, group_t *group,
                                  const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd most = of_row(&group.values[0], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd held[HELD]
    cdef vecd terms[HELD]
    cdef vecd term
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        while k < until:
            grow(at(x, k * run.step), run.step, most, terms)
            for i in range(HELD):
                held[i] = v_add(held[i], terms[i])
            if run.kept != NULL:
                for i in range(HELD):
                    run.kept[k + i] = terms[i]
            k += HELD
        release(parts, held)
    elif run.partial < 0:
        # Of adjacent rows: as many registers as have a partial sum each.
        while k + HELD <= run.n:
            grow(at(x, k * run.step), run.step, most, terms)
            for i in range(HELD):
                add_term(parts, terms[i], k + i, &run)
            if run.kept != NULL:
                for i in range(HELD):
                    run.kept[k + i] = terms[i]
            k += HELD
        until = k
    for k in range(until, run.n):
        term = grown(load_vecd(at(x, k * run.step)), most, x)
        if run.kept != NULL:
            run.kept[k] = term
        add_term(parts, term, k, &run)


cdef inline void add_exponentials_of_halves(const halves_t *x, group_t *group,
                                            const run_t *args) noexcept nogil:
    """`EXP_SCALE` times these."""
    cdef run_t run = args[0]
    cdef vecw most = wide_of_row(&group.values[0], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecs *kept = <vecs *>run.kept
    cdef vecw held[WIDE]
    cdef vecw terms[WIDE]
    cdef vecw term
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold_wide(held, parts)
        while k < until:
            for i in range(WIDE):
                terms[i] = w_sub(load_wide(at(x, (k + 2 * i) * run.step), run.step), most)
            for i in range(WIDE // WIDES):
                w_exps_of_halves(terms + i * WIDES)
            for i in range(WIDE):
                held[i] = w_add(held[i], terms[i])
            if kept != NULL:
                for i in range(WIDE):
                    keep_floats(kept + k + 2 * i, 1, terms[i])
            k += HELD
        release_wide(parts, held)
    for k in range(until, run.n, 2):
        term = grown_halves(at(x, k * run.step), to_next(&run, k, run.step), most)
        if kept != NULL:
            keep_floats(kept + k, to_next(&run, k, 1), term)
        add_wide(parts, term, k, &run)


cdef inline vecw grown_halves(const halves_t *x, ptrdiff_t step, vecw most) noexcept nogil:
    return w_exp_of_halves(w_sub(load_wide(x, step), most))


cdef inline void keep_floats(vecs *kept, ptrdiff_t step, vecw terms) noexcept nogil:
    kept[0], kept[step] = w_low(terms), w_high(terms)


cdef inline void invert_sum(group_t *group, ptrdiff_t cols,
                            const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    group.values[1] = v_div(v_set(1), total(&group.sums[0], &low))


cdef inline void softmax(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd most = of_row(&group.values[0], &run), inverse = of_row(&group.values[1], &run)
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_mul(grown(load_vecd(at(x, k * run.step)), most, x), inverse), x)


cdef inline void softmax_of_halves(const halves_t *x, group_t *group,
                                   const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecw most = wide_of_row(&group.values[0], &run)
    cdef vecw inverse = wide_of_row(&group.values[1], &run)
    cdef vecw terms
    cdef ptrdiff_t k
    for k in range(0, run.n, 2):
        terms = grown_halves(at(x, k * run.step), to_next(&run, k, run.step), most)
        put_wide(&run, k, w_mul(terms, inverse), x)


cdef inline void softmax_kept(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd inverse = of_row(&group.values[1], &run)
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_mul(run.kept[k], inverse), x)


cdef inline void softmax_of_halves_kept(const halves_t *x, group_t *group,
                                        const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef const vecs *kept = <const vecs *>run.kept
    cdef vecw inverse = wide_of_row(&group.values[1], &run)
    cdef vecw terms
    cdef ptrdiff_t k
    for k in range(0, run.n, 2):
        terms = w_of_two(kept[k], kept[k + to_next(&run, k, 1)])
        put_wide(&run, k, w_mul(terms, inverse), x)


# --- Log-softmax --------------------------------------------------------------------------------

cdef inline void log_of_total(group_t *group, ptrdiff_t cols,
                              const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    try_log(group, total(&group.sums[0], &low), v_set(LEAST_TOTAL))


cdef inline void log_of_total_of_halves(group_t *group, ptrdiff_t cols,
                                        const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    try_log(group, v_mul(total(&group.sums[0], &low), v_set(EXP_UNSCALE)),
            v_set(LEAST_TOTAL_OF_HALVES))


cdef inline void try_log(group_t *group, vecd sum, vecd least) noexcept nogil:
    """Try the logarithm; another pass adds up what is small against the 1 of the largest one."""
    group.values[1] = v_where_less(sum, v_set(INFINITY), v_log(sum), sum)
    # Of lanes that are no rows the sum is 0.
    group.values[2] = v_where_less(sum, least, v_where_less(v_set(0), sum, v_set(1), v_set(0)),
                                   v_set(0))
    group.doubt = not v_all_at_most(group.values[2], v_set(0))


cdef inline void add_less_than_most(const elem_t *x, group_t *group,
                                    const run_t *args) noexcept nogil:
    """Exponentials of what is less than the row's largest element; how often that occurs.

    Beside the 1 of that, small ones would be lost, which are all that its own result consists of.
    """
    cdef run_t run = args[0]
    cdef vecd most = of_row(&group.values[0], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *counts = parts_of_row(group, 1, &run)
    cdef vecd element, term
    cdef ptrdiff_t k
    for k in range(run.n):
        element = load_vecd(at(x, k * run.step))
        # Where a difference is no number, neither is the sum.
        term = v_zero_where_equal(v_sub(element, most), v_set(0), grown(element, most, x))
        add_term(parts, term, k, &run)
        add_term(counts, v_where_less(element, most, v_set(0), v_set(1)), k, &run)


cdef inline void add_halves_less_than_most(const halves_t *x, group_t *group,
                                           const run_t *args) noexcept nogil:
    """The same, `EXP_SCALE` times as large."""
    cdef run_t run = args[0]
    cdef vecw most = wide_of_row(&group.values[0], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *counts = parts_of_row(group, 1, &run)
    cdef vecw element, term
    cdef ptrdiff_t k
    for k in range(0, run.n, 2):
        element = load_wide(at(x, k * run.step), to_next(&run, k, run.step))
        term = w_exp_of_halves(w_sub(element, most))
        term = w_where_less(element, most, term, w_sub(term, w_set(EXP_SCALE)))
        add_wide(parts, term, k, &run)
        add_wide(counts, w_where_less(element, most, w_set(0), w_set(1)), k, &run)


cdef inline void log_of_sum(group_t *group, ptrdiff_t cols,
                            const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    keep_log(group, total(&group.sums[0], &low))


cdef inline void log_of_sum_of_halves(group_t *group, ptrdiff_t cols,
                                      const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    keep_log(group, v_mul(total(&group.sums[0], &low), v_set(EXP_UNSCALE)))


cdef inline void keep_log(group_t *group, vecd less) noexcept nogil:
    """Keep the logarithm of rows that are not decided, and of all of float64."""
    cdef vecd low
    cdef vecd others = v_sub(total(&group.sums[1], &low), v_set(1))
    group.values[1] = v_where_less(group.values[2], v_set(1), group.values[1],
                                   v_log1p(v_add(others, less)))


cdef inline void log_softmax(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd most = of_row(&group.values[0], &run), log = of_row(&group.values[1], &run)
    cdef vecd whole, low
    cdef vecw near, rest, difference, lost
    cdef ptrdiff_t k
    if elem_t is double:
        for k in range(run.n):
            put(&run, k, v_sub(v_sub(load_vecd(at(x, k * run.step)), most), log), x)
    else:
        whole = v_two_sum(most, log, &low)
        near = w_twice(s_of_doubles(whole))
        low = v_add(v_sub(whole, v_of_floats(s_of_doubles(whole))), low)
        rest = w_twice(s_of_doubles(low))
        for k in range(0, run.n, 2):
            difference = load_wide(at(x, k * run.step), to_next(&run, k, run.step))
            difference = w_two_difference(difference, near, &lost)
            lost = w_sub(lost, rest)
            # An infinite difference has lost nothing.
            lost = w_where_number(lost, lost, w_set(0))
            put_wide(&run, k, w_add(difference, lost), x)


cdef inline void log_softmax_of_halves(const halves_t *x, group_t *group,
                                       const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecw most = wide_of_row(&group.values[0], &run)
    cdef vecw log = wide_of_row(&group.values[1], &run)
    cdef vecw elements
    cdef ptrdiff_t k
    for k in range(0, run.n, 2):
        elements = load_wide(at(x, k * run.step), to_next(&run, k, run.step))
        put_wide(&run, k, w_sub(w_sub(elements, most), log), x)


# --- Gradients ----------------------------------------------------------------------------------

cdef inline void add_products(const elem_t *g, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd held[HELD]
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        while k < until:
            for i in range(HELD):
                held[i] = v_fma(load_vecd(at(g, (k + i) * run.step)),
                                load_vecd(at(y, (k + i) * run.second_step)), held[i])
            k += HELD
        release(parts, held)
    for k in range(until, run.n):
        add_product(parts, load_vecd(at(g, k * run.step)), load_vecd(at(y, k * run.second_step)),
                    k, &run)


cdef inline void add_products_of_halves(const halves_t *g, group_t *group,
                                        const run_t *args) noexcept nogil:
    """Products of halves are floats, but for what is too small to count."""
    cdef run_t run = args[0]
    cdef const halves_t *y = <const halves_t *>run.second
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd held[HELD]
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        while k < until:
            for i in range(HELD):
                held[i] = v_add(held[i], v_of_floats(s_mul(
                    load_floats(at(g, (k + i) * run.step)),
                    load_floats(at(y, (k + i) * run.second_step)))))
            k += HELD
        release(parts, held)
    for k in range(until, run.n):
        add_term(parts, v_of_floats(s_mul(load_floats(at(g, k * run.step)),
                                          load_floats(at(y, k * run.second_step)))), k, &run)


cdef inline void keep_sum(group_t *group, ptrdiff_t cols,
                          const kernel_number *numbers) noexcept nogil:
    group.values[0] = total(&group.sums[0], &group.values[1])


cdef inline vecw scaled_fall(const elem_t *g, ptrdiff_t step, const elem_t *y,
                             ptrdiff_t second_step, const fall_t *fall) noexcept nogil:
    """y (g - near - rest)."""
    cdef vecw output = load_wide(y, second_step)
    cdef vecw difference = w_sub(load_wide(g, step), fall.near)
    if elem_t is float or elem_t is wide_single_t:
        return w_fms(output, difference, w_mul(output, fall.rest))
    else:
        return w_mul(output, w_sub(difference, fall.rest))


cdef inline ptrdiff_t scale_falls(const narrow_t *g, ptrdiff_t step, const narrow_t *y,
                                  ptrdiff_t second_step, char *out, ptrdiff_t out_step,
                                  ptrdiff_t n, const fall_t *fall) noexcept nogil:
    """Write results of four registers after four, up to those with a NaN; how many these are."""
    cdef vecw results[2]
    cdef ptrdiff_t k = 0
    cdef int i
    while k + 4 <= n:
        for i in range(2):
            results[i] = scaled_fall(at(g, (k + 2 * i) * step), step,
                                     at(y, (k + 2 * i) * second_step), second_step, fall)
        if not w_all_numbers(results[0], results[1]):
            return k
        for i in range(2):
            store_numbers(<narrow_t *>(out + (k + 2 * i) * out_step), out_step, results[i])
        k += 4
    return k


cdef inline ptrdiff_t scale_most_falls(const elem_t *g, const run_t *run, ptrdiff_t k,
                                       const fall_t *fall) noexcept nogil:
    """The same from register k on; what is dense has a loop of its own."""
    cdef const elem_t *y = at(<const elem_t *>run.second, k * run.second_step)
    cdef char *out = run.out + k * run.out_step
    if elem_t is float or elem_t is half_t or elem_t is bfloat16_t:
        if run.step == run.second_step == run.out_step == VECD * sizeof(elem_t):
            return scale_falls(at(g, k * run.step), VECD * sizeof(elem_t), y,
                               VECD * sizeof(elem_t), out, VECD * sizeof(elem_t), run.n - k, fall)
        return scale_falls(at(g, k * run.step), run.step, y, run.second_step, out, run.out_step,
                           run.n - k, fall)
    else:
        return 0


cdef inline void softmax_backward(const elem_t *g, group_t *group,
                                  const run_t *args) noexcept nogil:
    """y (g - sum(g y)), with a sum in two parts: it may be all but equal to g."""
    cdef run_t run = args[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd high = of_row(&group.values[0], &run), low = of_row(&group.values[1], &run)
    cdef vecd rest
    cdef vecs first
    cdef fall_t fall
    cdef ptrdiff_t k = 0, until
    if elem_t is double:
        for k in range(run.n):
            rest = v_sub(v_sub(load_vecd(at(g, k * run.step)), high), low)
            put(&run, k, v_mul(load_vecd(at(y, k * run.second_step)), rest), g)
    else:
        # What a sum loses as a float is known. A difference is exact where little is left of it.
        first = s_of_doubles(high)
        rest = v_add(v_sub(high, v_of_floats(first)), low)
        rest = v_where_number(v_sub(rest, rest), rest, v_set(0))
        fall.near, fall.rest = w_twice(first), w_twice(s_of_doubles(rest))
        while k < run.n:
            k += scale_most_falls(g, &run, k, &fall)
            until = min(run.n, k + 4)
            while k < until:
                scale_few_falls(g, &run, k, &fall)
                k += 2


cdef inline void scale_few_falls(const elem_t *g, const run_t *run, ptrdiff_t k,
                                 const fall_t *fall) noexcept nogil:
    """Registers k and k + 1, with NaNs."""
    cdef const elem_t *y = at(<const elem_t *>run.second, k * run.second_step)
    cdef ptrdiff_t step = to_next(run, k, run.step)
    cdef ptrdiff_t second_step = to_next(run, k, run.second_step)
    cdef vecw output, whole
    cdef vecw result = scaled_fall(at(g, k * run.step), step, y, second_step, fall)
    if elem_t is float or elem_t is wide_single_t:
        # Of what is infinite nothing is lost, which 0 times infinity would hide.
        output = load_wide(y, second_step)
        whole = w_mul(output, w_sub(load_wide(at(g, k * run.step), step), fall.near))
        result = w_where_number(w_sub(output, output), result, whole)
    put_wide(run, k, result, g)


cdef inline vecd slope_of(vecd output) noexcept nogil:
    """e^y, to all digits of a double."""
    cdef vecd slope = v_where_less(output, v_set(-708), v_set(0), v_exp_long(output, v_set(0)))
    return v_where_less(v_set(DBL_MAX), output, v_set(INFINITY), slope)


cdef inline vecw in_digits(vecw gradient, vecw output, vecd negative, vecw result,
                           vecw size) noexcept nogil:
    """In place of results that are less than `size`, those with more digits."""
    cdef vecd outputs[WIDE]
    cdef vecd falls[WIDE]
    cdef vecs few[WIDE]
    cdef vecw found, least
    cdef int i
    split(output, outputs)
    split(gradient, falls)
    for i in range(WIDE):
        outputs[i] = v_exp_short(v_min(v_set(700), outputs[i]))
        falls[i] = v_fma(outputs[i], negative, falls[i])
        few[i] = s_of_doubles(v_mul(v_mul(v_abs(negative), outputs[i]), v_set(LEAST_DIGITS)))
    found, least = joined(falls), w_of_two(few[0], few[1])
    # Few of these are left: as of a double, but where there is nothing to be lost.
    least = w_where_less(w_abs(output), w_set(700), least, w_set(INFINITY))
    if not w_all_at_most(w_where_less(w_abs(result), size, least, w_set(0)), w_abs(found)):
        least = w_where_number(found, least, w_set(INFINITY))
        found = w_where_number(found, found, w_set(0))
        split(output, outputs)
        split(gradient, falls)
        for i in range(WIDE):
            falls[i] = v_fma(slope_of(outputs[i]), negative, falls[i])
        found = w_where_less(w_abs(found), least, joined(falls), found)
    return w_where_less(w_abs(result), size, found, result)


cdef inline void split(vecw a, vecd *b) noexcept nogil:
    b[0], b[1] = v_of_floats(w_low(a)), v_of_floats(w_high(a))


cdef inline vecw joined(const vecd *a) noexcept nogil:
    return w_of_two(s_of_doubles(a[0]), s_of_doubles(a[1]))


cdef enum:
    PAIRS = BLOCK // 2  # of a block's registers


cdef struct doubts_t:
    # Operands of a block's pairs of registers, and bits of those that need more digits: a place
    # that depended on a result would have to be known before anything else is loaded.
    uint64_t which
    vecw gradients[PAIRS]
    vecw outputs[PAIRS]


cdef inline void recompute_later(doubts_t *doubts, ptrdiff_t pair, vecw gradient, vecw output,
                                 bint doubtful) noexcept nogil:
    """Without a branch: nobody could foresee it."""
    doubts.gradients[pair] = gradient
    doubts.outputs[pair] = output
    doubts.which |= <uint64_t>doubtful << pair


cdef inline void log_softmax_backward(const elem_t *g, group_t *group,
                                      const run_t *args) noexcept nogil:
    """g - e^y sum(g)."""
    cdef run_t run = args[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd sum = of_row(&group.values[0], &run)
    cdef vecd negative = v_sub(v_set(0), sum)
    cdef vecs first
    cdef fall_t fall
    cdef doubts_t doubts
    cdef vecw gradients[WIDES]
    cdef vecw outputs[WIDES]
    cdef vecw results[WIDES]
    cdef vecw sizes[WIDES]
    cdef ptrdiff_t k, place
    cdef int i
    if elem_t is double:
        for k in range(run.n):
            put(&run, k, v_fma(slope_of(load_vecd(at(y, k * run.second_step))), negative,
                               load_vecd(at(g, k * run.step))), g)
    else:
        first = s_of_doubles(sum)
        fall.near = w_twice(first)
        fall.rest = w_twice(s_of_doubles(v_sub(sum, v_of_floats(first))))
        fall.share = w_mul(w_abs(fall.near), w_set(least_fall(g)))
        doubts.which = 0
        k = most_falls(g, &run, &fall, &doubts)
        while k < run.n:
            for i in range(WIDES):
                place = wide_place(&run, k, i)
                gradients[i] = load_wide(at(g, place * run.step), to_next(&run, place, run.step))
                outputs[i] = load_wide(at(y, place * run.second_step),
                                       to_next(&run, place, run.second_step))
            w_falls(gradients, outputs, &fall, results, sizes)
            for i in range(WIDES):
                place = wide_place(&run, k, i)
                put_wide(&run, place, results[i], g)
                recompute_later(&doubts, k // 2 + i, gradients[i], outputs[i],
                                not w_all_at_most(sizes[i], w_abs(results[i])))
            k += 2 * WIDES
        k = 0
        while doubts.which >> k:
            if not doubts.which >> k & 1:
                k += 1
                continue
            for i in range(WIDES):
                gradients[i], outputs[i] = doubts.gradients[k], doubts.outputs[k]
            w_falls(gradients, outputs, &fall, results, sizes)
            sizes[0] = w_where_number(w_mul(sizes[0], results[0]), sizes[0], w_set(INFINITY))
            results[0] = w_where_less(sizes[0], w_set(INFINITY), results[0], w_set(0))
            put_wide(&run, wide_place(&run, 2 * k, 0),
                     in_digits(gradients[0], outputs[0], negative, results[0], sizes[0]), g)
            k += 1


cdef inline float least_fall(const elem_t *like) noexcept nogil:
    if elem_t is float or elem_t is wide_single_t:
        return LEAST_FALL
    else:
        return LEAST_FALL_OF_HALVES


cdef inline ptrdiff_t most_falls(const elem_t *g, const run_t *run, const fall_t *fall,
                                 doubts_t *doubts) noexcept nogil:
    """Results of registers in fours; what is dense has a loop of its own. How many they are."""
    if elem_t is float or elem_t is half_t or elem_t is bfloat16_t:
        if run.step == run.second_step == run.out_step == VECD * sizeof(elem_t):
            return write_falls(g, VECD * sizeof(elem_t), <const elem_t *>run.second,
                               VECD * sizeof(elem_t), run.out, VECD * sizeof(elem_t), run.n, fall,
                               doubts)
        return write_falls(g, run.step, <const elem_t *>run.second, run.second_step, run.out,
                           run.out_step, run.n, fall, doubts)
    else:
        return 0


cdef inline ptrdiff_t write_falls(const narrow_t *g, ptrdiff_t step, const narrow_t *y,
                                  ptrdiff_t second_step, char *out, ptrdiff_t out_step,
                                  ptrdiff_t n, const fall_t *fall,
                                  doubts_t *doubts) noexcept nogil:
    """As many pairs as are computed step by step together."""
    cdef vecw gradients[WIDES]
    cdef vecw outputs[WIDES]
    cdef vecw results[WIDES]
    cdef vecw sizes[WIDES]
    cdef ptrdiff_t k = 0
    cdef int i
    while k + 2 * WIDES <= n:
        for i in range(WIDES):
            gradients[i] = load_wide(at(g, (k + 2 * i) * step), step)
            outputs[i] = load_wide(at(y, (k + 2 * i) * second_step), second_step)
        w_falls(gradients, outputs, fall, results, sizes)
        for i in range(WIDES):
            store_wide(<narrow_t *>(out + (k + 2 * i) * out_step), out_step, results[i])
            recompute_later(doubts, k // 2 + i, gradients[i], outputs[i],
                            not w_all_at_most(sizes[i], w_abs(results[i])))
        k += 2 * WIDES
    return k


# --- Passes of the kernels ------------------------------------------------------------------------

cdef inline void add_search(row_state *state, const elem_t *like) noexcept:
    add_pass(state, <run_fn>find_most_or_nan[elem_t], keep_most, MOST_OR_NAN, 1, False, False,
             NEITHER if elem_t is double else FIRST)
    state.passes[0].many = elem_t is not double


cdef inline int add_softmax_of_halves(row_state *state, const halves_t *like) except -1:
    add_pass(state, <run_fn>add_exponentials_of_halves[halves_t], invert_sum, SUM, 1, False, False,
             FIRST)
    add_pass(state, <run_fn>softmax_of_halves[halves_t], NULL, NOTHING, 1, False, True)
    state.run_kept = <run_fn>softmax_of_halves_kept[halves_t]
    return 0


cdef inline int softmax_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    add_search(state, like)
    if elem_t is float:
        state.dense = <dense_fn>dense_exponentials[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_exponentials[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_exponentials[bfloat16_t]
    if elem_t is float or elem_t is double or elem_t is wide_single_t:
        add_pass(state, <run_fn>add_exponentials[elem_t], invert_sum, SUM, 1)
        add_pass(state, <run_fn>softmax[elem_t], NULL, NOTHING, 1, False, True)
        state.run_kept = <run_fn>softmax_kept[elem_t]
        return 0
    else:
        return add_softmax_of_halves(state, like)


cdef inline int add_log_softmax_of_halves(row_state *state, const halves_t *like) except -1:
    add_pass(state, <run_fn>add_exponentials_of_halves[halves_t], log_of_total_of_halves, SUM, 1,
             False, False, FIRST)
    add_pass(state, <run_fn>add_halves_less_than_most[halves_t], log_of_sum_of_halves, TWO_SUMS, 1,
             False, False, BOTH)
    state.passes[2].if_doubtful = True
    add_pass(state, <run_fn>log_softmax_of_halves[halves_t], NULL, NOTHING, 1, False, True)
    return 0


cdef inline int log_softmax_passes(row_state *state, bint all_digits,
                                   const elem_t *like) except -1:
    add_search(state, like)
    if elem_t is float:
        state.dense = <dense_fn>dense_exponentials[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_exponentials[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_exponentials[bfloat16_t]
    if elem_t is float or elem_t is double or elem_t is wide_single_t:
        if elem_t is not double:
            add_pass(state, <run_fn>add_exponentials[elem_t], log_of_total, SUM, 1)
        add_pass(state, <run_fn>add_less_than_most[elem_t], log_of_sum, TWO_SUMS, 1)
        state.passes[state.n_passes - 1].if_doubtful = elem_t is not double
        add_pass(state, <run_fn>log_softmax[elem_t], NULL, NOTHING, 1, False, True)
        return 0
    else:
        return add_log_softmax_of_halves(state, like)


cdef inline int softmax_backward_passes(row_state *state, bint all_digits,
                                        const elem_t *like) except -1:
    if elem_t is float or elem_t is double or elem_t is wide_single_t:
        add_pass(state, <run_fn>add_products[elem_t], keep_sum, SUM, 2)
    else:
        add_pass(state, <run_fn>add_products_of_halves[elem_t], keep_sum, SUM, 2)
    add_pass(state, <run_fn>softmax_backward[elem_t], NULL, NOTHING, 2, False, True)
    if elem_t is float:
        state.dense = <dense_fn>dense_softmax_backward[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_softmax_backward[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_softmax_backward[bfloat16_t]
    return 0


cdef inline int log_softmax_backward_passes(row_state *state, bint all_digits,
                                            const elem_t *like) except -1:
    add_sum(state, keep_sum, like)
    add_pass(state, <run_fn>log_softmax_backward[elem_t], NULL, NOTHING, 2, False, True)
    if elem_t is float:
        state.dense = <dense_fn>dense_log_softmax_backward[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_log_softmax_backward[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_log_softmax_backward[bfloat16_t]
    return 0
