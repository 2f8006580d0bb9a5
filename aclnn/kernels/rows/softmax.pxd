"""Passes of softmax, log_softmax and their gradients."""

from libc.math cimport INFINITY

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.reduce cimport HELD, add_term, at, held_until, hold, put, release
from aclnn.kernels.rows.sums cimport total
from aclnn.kernels.rows.vecd cimport (
    elem_t,
    load_floats,
    load_vecd,
    s_max,
    s_set,
    v_add,
    v_div,
    v_exp_long,
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
    vecd,
    vecs,
    wide_single_t,
)
from aclnn.kernels.rows.walk cimport group_t, kernel_number, run_t

# --- Softmax ------------------------------------------------------------------------------------

cdef inline void find_most(const elem_t *x, group_t *group,
                           const run_t *told) noexcept nogil:
    """A NaN may be overlooked here: its exponential is one, too."""
    cdef run_t run = told[0]
    cdef vecd *parts = group.sums[0].parts
    cdef vecd term
    cdef ptrdiff_t k, until = held_until(&run)
    if elem_t is float or elem_t is half_t or elem_t is bfloat16_t:
        find_most_float(x, parts, until, run.step)
    else:
        until = 0
    for k in range(until, run.n):
        term = load_vecd(at(x, k * run.step))
        if k == run.partial:
            term = v_lanes_from(term, v_set(-INFINITY), run.live)
        parts[k & run.part_mask] = v_max(parts[k & run.part_mask], term)


cdef inline void find_most_float(const elem_t *x, vecd *parts, ptrdiff_t until,
                                 ptrdiff_t step) noexcept nogil:
    """The same of full registers, before their elements become double."""
    cdef vecs held[HELD]
    cdef ptrdiff_t k = 0
    cdef int i
    for i in range(HELD):
        held[i] = s_set(-INFINITY)
    while k < until:
        for i in range(HELD):
            held[i] = s_max(held[i], load_floats(at(x, (k + i) * step)))
        k += HELD
    for i in range(HELD if until else 0):
        parts[i] = v_max(parts[i], v_of_floats(held[i]))


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
        return v_exp_short(v_sub(x, most))


cdef inline void add_exponentials(const elem_t *x, group_t *group,
                                  const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd most = group.values[0]
    cdef vecd *parts = group.sums[0].parts
    cdef vecd held[HELD]
    cdef vecd term
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
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


cdef inline void invert_sum(group_t *group, ptrdiff_t cols,
                            const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    group.values[1] = v_div(v_set(1), total(&group.sums[0], &low))


cdef inline void softmax(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd most = group.values[0], inverse = group.values[1]
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_mul(grown(load_vecd(at(x, k * run.step)), most, x), inverse), x)


cdef inline void softmax_kept(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd inverse = group.values[1]
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_mul(run.kept[k], inverse), x)


# --- Log-softmax --------------------------------------------------------------------------------

cdef inline void add_less_than_most(const elem_t *x, group_t *group,
                                    const run_t *told) noexcept nogil:
    """Exponentials of what is less than the row's largest element; how often that occurs.

    Beside the 1 of that, small ones would be lost, which are all that its own result consists of.
    """
    cdef run_t run = told[0]
    cdef vecd most = group.values[0]
    cdef vecd *parts = group.sums[0].parts
    cdef vecd *counts = group.sums[1].parts
    cdef vecd held[HELD]
    cdef vecd held_counts[HELD]
    cdef vecd term, times
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    hold(held, parts)
    hold(held_counts, counts)
    while k < until:
        for i in range(HELD):
            term = less_than_most(load_vecd(at(x, (k + i) * run.step)), most, &times, x)
            held[i] = v_add(held[i], term)
            held_counts[i] = v_add(held_counts[i], times)
        k += HELD
    release(parts, held)
    release(counts, held_counts)
    for k in range(until, run.n):
        term = less_than_most(load_vecd(at(x, k * run.step)), most, &times, x)
        add_term(parts, term, k, &run)
        add_term(counts, times, k, &run)


cdef inline vecd less_than_most(vecd element, vecd most, vecd *times,
                                const elem_t *like) noexcept nogil:
    """The exponential, less the 1 of what is largest; and whether it is.

    Of a NaN there is no less, so that it is not counted, and takes part in the sum.
    """
    cdef vecd term = grown(element, most, like)
    times[0] = v_where_less(element, most, v_set(0), v_set(1))
    return v_where_less(element, most, term, v_sub(term, v_set(1)))


cdef inline void log_of_sum(group_t *group, ptrdiff_t cols,
                            const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    cdef vecd others = v_sub(total(&group.sums[1], &low), v_set(1))
    group.values[1] = v_log1p(v_add(others, total(&group.sums[0], &low)))


cdef inline void log_softmax(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd most = group.values[0], log = group.values[1]
    cdef ptrdiff_t k
    for k in range(run.n):
        put(&run, k, v_sub(v_sub(load_vecd(at(x, k * run.step)), most), log), x)


# --- Gradients ----------------------------------------------------------------------------------

cdef inline vecd product(const elem_t *g, ptrdiff_t k, const run_t *run) noexcept nogil:
    cdef const elem_t *y = <const elem_t *>run.second
    return v_mul(load_vecd(at(g, k * run.step)), load_vecd(at(y, k * run.second_step)))


cdef inline void add_products(const elem_t *g, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd *parts = group.sums[0].parts
    cdef vecd held[HELD]
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    hold(held, parts)
    while k < until:
        for i in range(HELD):
            held[i] = v_add(held[i], product(g, k + i, &run))
        k += HELD
    release(parts, held)
    for k in range(until, run.n):
        add_term(parts, product(g, k, &run), k, &run)


cdef inline void keep_sum(group_t *group, ptrdiff_t cols,
                          const kernel_number *numbers) noexcept nogil:
    group.values[0] = total(&group.sums[0], &group.values[1])


cdef inline void softmax_backward(const elem_t *g, group_t *group,
                                  const run_t *told) noexcept nogil:
    """y (g - sum(g y)), with a sum in two parts: it may be all but equal to g."""
    cdef run_t run = told[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd high = group.values[0], low = group.values[1]
    cdef vecd rest
    cdef ptrdiff_t k
    for k in range(run.n):
        rest = v_sub(v_sub(load_vecd(at(g, k * run.step)), high), low)
        put(&run, k, v_mul(load_vecd(at(y, k * run.second_step)), rest), g)


cdef inline void log_softmax_backward(const elem_t *g, group_t *group,
                                      const run_t *told) noexcept nogil:
    """g - e^y sum(g)."""
    cdef run_t run = told[0]
    cdef const elem_t *y = <const elem_t *>run.second
    cdef vecd negative = v_sub(v_set(0), group.values[0])
    cdef vecd output, slope
    cdef ptrdiff_t k
    for k in range(run.n):
        output = load_vecd(at(y, k * run.second_step))
        # What is left where the two cancel has the error of the exponential: halves can bear it.
        if elem_t is float or elem_t is wide_single_t:
            slope = v_exp_long(output, v_set(0))
        elif elem_t is double:
            slope = grown(output, v_set(0), g)
        else:
            slope = grown(v_min(v_set(709), output), v_set(0), g)
        slope = v_where_less(output, v_set(-708), v_set(0), slope)
        put(&run, k, v_fma(slope, negative, load_vecd(at(g, k * run.step))), g)
