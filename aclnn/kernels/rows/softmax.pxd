"""Passes of softmax, log_softmax and their gradients.

Of halves, exponentials are floats, with digits to spare, and so are the sums of a chunk.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.passes cimport BOTH, FIRST, NEITHER, SECOND, add_pass
from aclnn.kernels.rows.reduce cimport (
    HELD,
    add_float,
    add_product,
    add_sum,
    add_term,
    at,
    held_until,
    hold,
    hold_floats,
    put,
    put_floats,
    release,
    release_floats,
)
from aclnn.kernels.rows.sums cimport MOST, NOTHING, SUM, TWO_SUMS, total
from aclnn.kernels.rows.vecd cimport (
    elem_t,
    load_floats,
    load_vecd,
    s_abs,
    s_add,
    s_any_less,
    s_exp_of_halves,
    s_fma,
    s_lanes_from,
    s_max,
    s_min,
    s_mul,
    s_of_doubles,
    s_set,
    s_sub,
    s_two_difference,
    s_where_less,
    s_where_number,
    v_abs,
    v_add,
    v_all_at_most,
    v_div,
    v_exp_long,
    v_exp_of_floats,
    v_exp_short,
    v_fma,
    v_lanes_from,
    v_log1p,
    v_max,
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
from aclnn.kernels.rows.walk cimport group_t, kernel_number, of_row, parts_of_row
from aclnn.kernels.rows.walk cimport row_state, run_fn, run_t

cdef extern from *:
    """
    /* What `s_exp_of_halves` multiplies by, and its inverse. */
    #define EXP_SCALE 0x1p64f
    #define EXP_UNSCALE 0x1p-64
    """
    float EXP_SCALE
    double EXP_UNSCALE

ctypedef fused halves_t:
    half_t
    bfloat16_t
    wide_half_t


# --- Softmax ------------------------------------------------------------------------------------

cdef inline void find_most(const elem_t *x, group_t *group,
                           const run_t *told) noexcept nogil:
    """A NaN may be overlooked here: its exponential is one, too."""
    if elem_t is double:
        find_most_double(x, group, told)
    else:
        find_most_float(x, group, told)


cdef inline void find_most_double(const double *x, group_t *group,
                                  const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd term
    cdef ptrdiff_t k
    for k in range(run.n):
        term = load_vecd(at(x, k * run.step))
        if k == run.partial:
            term = v_lanes_from(term, v_set(-INFINITY), run.live)
        parts[k & run.part_mask] = v_max(parts[k & run.part_mask], term)


cdef inline void find_most_float(const elem_t *x, group_t *group,
                                 const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecs *part
    cdef vecs held[HELD]
    cdef vecs term
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold_floats(held, parts)
        while k < until:
            for i in range(HELD):
                held[i] = s_max(held[i], load_floats(at(x, (k + i) * run.step)))
            k += HELD
        release_floats(parts, held)
    for k in range(until, run.n):
        part = <vecs *>(parts + (k & run.part_mask))
        term = load_floats(at(x, k * run.step))
        if k == run.partial:
            term = s_lanes_from(term, s_set(-INFINITY), run.live)
        part[0] = s_max(part[0], term)


cdef inline void keep_most(group_t *group, ptrdiff_t cols,
                           const kernel_number *numbers) noexcept nogil:
    group.values[0] = group.sums[0].high


cdef inline vecd grown(vecd x, vecd most, const elem_t *like) noexcept nogil:
    """e^(x - most), which is at most 709; -inf - -inf and inf - inf make the row's NaN."""
    cdef vecd lost, y
    if elem_t is double:
        y = v_two_sum(x, v_sub(v_set(0), most), &lost)
        return v_exp_long(y, v_where_number(lost, lost, v_set(0)))
    else:
        return v_exp_of_floats(v_sub(x, most))


cdef inline vecs grown_half(const elem_t *x, vecs most) noexcept nogil:
    """`EXP_SCALE` times that."""
    return s_exp_of_halves(s_sub(load_floats(x), most))


cdef inline void add_exponentials(const elem_t *x, group_t *group,
                                  const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd most = of_row(&group.values[0], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd held[HELD]
    cdef vecd term
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        while k < until:
            for i in range(HELD):
                term = grown(load_vecd(at(x, (k + i) * run.step)), most, x)
                if run.kept != NULL:
                    run.kept[k + i] = term
                held[i] = v_add(held[i], term)
            k += HELD
        release(parts, held)
    for k in range(until, run.n):
        term = grown(load_vecd(at(x, k * run.step)), most, x)
        if run.kept != NULL:
            run.kept[k] = term
        add_term(parts, term, k, &run)


cdef inline void add_exponentials_of_halves(const halves_t *x, group_t *group,
                                            const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecs most = s_of_doubles(of_row(&group.values[0], &run))
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecs *kept = <vecs *>run.kept
    cdef vecs held[HELD]
    cdef vecs term
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold_floats(held, parts)
        while k < until:
            for i in range(HELD):
                term = grown_half(at(x, (k + i) * run.step), most)
                if kept != NULL:
                    kept[k + i] = term
                held[i] = s_add(held[i], term)
            k += HELD
        release_floats(parts, held)
    for k in range(until, run.n):
        term = grown_half(at(x, k * run.step), most)
        if kept != NULL:
            kept[k] = term
        add_float(parts, term, k, &run)


cdef inline void invert_sum(group_t *group, ptrdiff_t cols,
                            const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    group.values[1] = v_div(v_set(1), total(&group.sums[0], &low))


cdef inline void softmax(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd most = of_row(&group.values[0], &run), inverse = of_row(&group.values[1], &run)
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_mul(grown(load_vecd(at(x, k * run.step)), most, x), inverse), x)


cdef inline void softmax_of_halves(const halves_t *x, group_t *group,
                                   const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecs most = s_of_doubles(of_row(&group.values[0], &run))
    cdef vecs inverse = s_of_doubles(of_row(&group.values[1], &run))
    cdef ptrdiff_t k
    for k in range(run.n):
        put_floats(&run, k, s_mul(grown_half(at(x, k * run.step), most), inverse), x)


cdef inline void softmax_kept(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd inverse = of_row(&group.values[1], &run)
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_mul(run.kept[k], inverse), x)


cdef inline void softmax_of_halves_kept(const halves_t *x, group_t *group,
                                        const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef const vecs *kept = <const vecs *>run.kept
    cdef vecs inverse = s_of_doubles(of_row(&group.values[1], &run))
    cdef ptrdiff_t k
    for k in range(run.n):
        put_floats(&run, k, s_mul(kept[k], inverse), x)


# --- Log-softmax --------------------------------------------------------------------------------

cdef inline void add_less_than_most(const elem_t *x, group_t *group,
                                    const run_t *told) noexcept nogil:
    """Exponentials of what is less than the row's largest element; how often that occurs.

    Beside the 1 of that, small ones would be lost, which are all that its own result consists of.
    """
    cdef run_t run = told[0]
    cdef vecd most = of_row(&group.values[0], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *counts = parts_of_row(group, 1, &run)
    cdef vecs most_float = s_of_doubles(most)
    cdef vecd held[HELD]
    cdef vecs held_counts[HELD]
    cdef vecd term
    cdef vecs times
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        hold_floats(held_counts, counts)
        while k < until:
            for i in range(HELD):
                term = less_than_most(at(x, (k + i) * run.step), most, most_float, &times)
                held[i] = v_add(held[i], term)
                held_counts[i] = s_add(held_counts[i], times)
            k += HELD
        release(parts, held)
        release_floats(counts, held_counts)
    for k in range(until, run.n):
        term = less_than_most(at(x, k * run.step), most, most_float, &times)
        add_term(parts, term, k, &run)
        add_float(counts, times, k, &run)


cdef inline vecd less_than_most(const elem_t *x, vecd most, vecs most_float,
                                vecs *times) noexcept nogil:
    """The exponential, or 0 of what is largest; and whether it is.

    Where a difference is no number, neither is the sum.
    """
    cdef vecd element = load_vecd(x)
    cdef vecd term = grown(element, most, x)
    if elem_t is double:
        times[0] = s_of_doubles(v_where_less(element, most, v_set(0), v_set(1)))
    else:
        times[0] = s_where_less(load_floats(x), most_float, s_set(0), s_set(1))
    return v_zero_where_equal(v_sub(element, most), v_set(0), term)


cdef inline void add_halves_less_than_most(const halves_t *x, group_t *group,
                                           const run_t *told) noexcept nogil:
    """The same, `EXP_SCALE` times as large."""
    cdef run_t run = told[0]
    cdef vecs most = s_of_doubles(of_row(&group.values[0], &run))
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *counts = parts_of_row(group, 1, &run)
    cdef vecs held[HELD]
    cdef vecs held_counts[HELD]
    cdef vecs term, times
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold_floats(held, parts)
        hold_floats(held_counts, counts)
        while k < until:
            for i in range(HELD):
                term = half_less_than_most(load_floats(at(x, (k + i) * run.step)), most, &times)
                held[i] = s_add(held[i], term)
                held_counts[i] = s_add(held_counts[i], times)
            k += HELD
        release_floats(parts, held)
        release_floats(counts, held_counts)
    for k in range(until, run.n):
        term = half_less_than_most(load_floats(at(x, k * run.step)), most, &times)
        add_float(parts, term, k, &run)
        add_float(counts, times, k, &run)


cdef inline vecs half_less_than_most(vecs element, vecs most, vecs *times) noexcept nogil:
    cdef vecs term = s_exp_of_halves(s_sub(element, most))
    times[0] = s_where_less(element, most, s_set(0), s_set(1))
    return s_where_less(element, most, term, s_sub(term, s_set(EXP_SCALE)))


cdef inline void log_of_sum(group_t *group, ptrdiff_t cols,
                            const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    keep_log(group, total(&group.sums[0], &low))


cdef inline void log_of_sum_of_halves(group_t *group, ptrdiff_t cols,
                                      const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    keep_log(group, v_mul(total(&group.sums[0], &low), v_set(EXP_UNSCALE)))


cdef inline void keep_log(group_t *group, vecd less) noexcept nogil:
    cdef vecd low
    cdef vecd others = v_sub(total(&group.sums[1], &low), v_set(1))
    group.values[1] = v_log1p(v_add(others, less))


cdef inline void log_softmax(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd most = of_row(&group.values[0], &run), log = of_row(&group.values[1], &run)
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_sub(v_sub(load_vecd(at(x, k * run.step)), most), log), x)


cdef inline void log_softmax_of_halves(const halves_t *x, group_t *group,
                                       const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecs most = s_of_doubles(of_row(&group.values[0], &run))
    cdef vecs log = s_of_doubles(of_row(&group.values[1], &run))
    cdef ptrdiff_t k
    for k in range(run.n):
        put_floats(&run, k, s_sub(s_sub(load_floats(at(x, k * run.step)), most), log), x)


# --- Gradients ----------------------------------------------------------------------------------

cdef inline void add_products(const elem_t *g, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
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
                                        const run_t *told) noexcept nogil:
    """Products of halves are floats, but for what is too small to count."""
    cdef run_t run = told[0]
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


cdef inline void softmax_backward(const elem_t *g, group_t *group,
                                  const run_t *told) noexcept nogil:
    """y (g - sum(g y)), with a sum in two parts: it may be all but equal to g."""
    cdef run_t run = told[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd high = of_row(&group.values[0], &run), low = of_row(&group.values[1], &run)
    cdef vecd rest
    cdef vecs near, beside, difference, lost, output
    cdef ptrdiff_t k
    if elem_t is double:
        for k in range(run.n):
            rest = v_sub(v_sub(load_vecd(at(g, k * run.step)), high), low)
            put(&run, k, v_mul(load_vecd(at(y, k * run.second_step)), rest), g)
    else:
        # What a sum loses as a float is known, and so is what differences from it lose, which
        # halves do not show.
        near = s_of_doubles(high)
        rest = v_add(v_sub(high, v_of_floats(near)), low)
        beside = s_of_doubles(v_where_number(rest, rest, v_set(0)))
        beside = s_where_less(s_abs(near), s_set(INFINITY), beside, s_set(0))
        for k in range(run.n):
            output = load_floats(at(y, k * run.second_step))
            if elem_t is float or elem_t is wide_single_t:
                difference = s_two_difference(load_floats(at(g, k * run.step)), near, &lost)
                lost = s_mul(output, s_sub(lost, beside))
                # An infinite difference has lost nothing, and is infinite times the output.
                lost = s_where_number(lost, lost, s_set(0))
                put_floats(&run, k, s_fma(output, difference, lost), g)
            else:
                difference = s_sub(s_sub(load_floats(at(g, k * run.step)), near), beside)
                put_floats(&run, k, s_mul(output, difference), g)


cdef inline vecd slope_of(vecd output, const elem_t *like) noexcept nogil:
    """e^y: for float32 to all digits of a double, as far as results show these."""
    cdef vecd slope
    if elem_t is double:
        slope = grown(output, v_set(0), like)
    else:
        slope = v_exp_short(v_min(v_set(709), output))
    slope = v_where_less(output, v_set(-708), v_set(0), slope)
    return v_where_less(v_set(DBL_MAX), output, v_set(INFINITY), slope)


cdef inline void log_softmax_backward(const elem_t *g, group_t *group,
                                      const run_t *told) noexcept nogil:
    """g - e^y sum(g)."""
    cdef run_t run = told[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd negative = v_sub(v_set(0), of_row(&group.values[0], &run))
    cdef vecd output, gradient, product, result, size
    cdef ptrdiff_t k
    for k in range(run.n):
        gradient = load_vecd(at(g, k * run.step))
        output = load_vecd(at(y, k * run.second_step))
        product = v_mul(slope_of(output, g), negative)
        result = v_add(gradient, product)
        if elem_t is float or elem_t is wide_single_t:
            # What is left where the two cancel has the error of the exponential.
            size = v_mul(v_abs(product), v_set(0.03125))
            if not v_all_at_most(size, v_abs(result)):
                product = v_mul(v_where_less(output, v_set(-708), v_set(0),
                                             v_exp_long(output, v_set(0))), negative)
                result = v_where_less(v_abs(result), size, v_add(gradient, product), result)
        put(&run, k, result, g)


cdef inline void log_softmax_backward_of_halves(const halves_t *g, group_t *group,
                                                const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef const halves_t *y = <const halves_t *>run.second
    cdef vecd negative = v_sub(v_set(0), of_row(&group.values[0], &run))
    cdef vecs scaled = s_of_doubles(v_mul(negative, v_set(EXP_UNSCALE)))
    cdef vecs output, gradient, product, result, size
    cdef vecd exact
    cdef ptrdiff_t k
    for k in range(run.n):
        gradient = load_floats(at(g, k * run.step))
        output = load_floats(at(y, k * run.second_step))
        product = s_mul(s_exp_of_halves(s_min(s_set(40), output)), scaled)
        result = s_add(gradient, product)
        size = s_mul(s_abs(product), s_set(0.25))
        # Where the two cancel, and beyond what is an exponential's range here.
        if s_any_less(s_abs(result), size) or s_any_less(s_set(40), output):
            exact = v_fma(slope_of(v_of_floats(output), g), negative, v_of_floats(gradient))
            size = s_where_less(s_set(40), output, s_set(INFINITY), size)
            result = s_where_less(s_abs(result), size, s_of_doubles(exact), result)
        put_floats(&run, k, result, g)


# --- Passes of the kernels ------------------------------------------------------------------------

cdef inline void add_search(row_state *state, const elem_t *like) noexcept:
    add_pass(state, <run_fn>find_most[elem_t], keep_most, MOST, 1, False, False,
             NEITHER if elem_t is double else FIRST)


cdef inline int add_softmax_of_halves(row_state *state, const halves_t *like) except -1:
    add_pass(state, <run_fn>add_exponentials_of_halves[halves_t], invert_sum, SUM, 1, False, False,
             FIRST)
    add_pass(state, <run_fn>softmax_of_halves[halves_t], NULL, NOTHING, 1, False, True)
    state.run_kept = <run_fn>softmax_of_halves_kept[halves_t]
    return 0


cdef inline int softmax_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    add_search(state, like)
    if elem_t is float or elem_t is double or elem_t is wide_single_t:
        add_pass(state, <run_fn>add_exponentials[elem_t], invert_sum, SUM, 1)
        add_pass(state, <run_fn>softmax[elem_t], NULL, NOTHING, 1, False, True)
        state.run_kept = <run_fn>softmax_kept[elem_t]
        return 0
    else:
        return add_softmax_of_halves(state, like)


cdef inline int add_log_softmax_of_halves(row_state *state, const halves_t *like) except -1:
    add_pass(state, <run_fn>add_halves_less_than_most[halves_t], log_of_sum_of_halves, TWO_SUMS, 1,
             False, False, BOTH)
    add_pass(state, <run_fn>log_softmax_of_halves[halves_t], NULL, NOTHING, 1, False, True)
    return 0


cdef inline int log_softmax_passes(row_state *state, bint all_digits,
                                   const elem_t *like) except -1:
    add_search(state, like)
    if elem_t is float or elem_t is double or elem_t is wide_single_t:
        add_pass(state, <run_fn>add_less_than_most[elem_t], log_of_sum, TWO_SUMS, 1, False, False,
                 SECOND)
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
    return 0


cdef inline int log_softmax_backward_passes(row_state *state, bint all_digits,
                                            const elem_t *like) except -1:
    add_sum(state, keep_sum, like)
    if elem_t is float or elem_t is double or elem_t is wide_single_t:
        add_pass(state, <run_fn>log_softmax_backward[elem_t], NULL, NOTHING, 2, False, True)
    else:
        add_pass(state, <run_fn>log_softmax_backward_of_halves[elem_t], NULL, NOTHING, 2, False,
                 True)
    return 0
