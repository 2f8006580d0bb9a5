"""Passes of layer_norm, rms_norm and their gradients."""

from aclnn.kernels.rows.reduce cimport HELD, add_term, at, held_until, hold, put, release
from aclnn.kernels.rows.sums cimport average, total
from aclnn.kernels.rows.vecd cimport (
    elem_t,
    load_vecd,
    v_add,
    v_div,
    v_fma,
    v_mul,
    v_set,
    v_sqrt,
    v_sub,
    vecd,
)
from aclnn.kernels.rows.walk cimport group_t, kernel_number, run_t

# Of a group's values: the mean in two parts, and 1 / standard deviation.
cdef enum:
    MEAN
    MEAN_LOW
    RSTD


cdef inline void keep_mean(group_t *group, ptrdiff_t cols,
                           const kernel_number *numbers) noexcept nogil:
    group.values[MEAN] = average(&group.sums[0], cols, &group.values[MEAN_LOW])
    group.results[0] = group.values[MEAN]


cdef inline vecd centred(const elem_t *x, vecd mean, vecd low) noexcept nogil:
    """Both parts of the mean count where elements hardly differ from it."""
    return v_sub(v_sub(load_vecd(x), mean), low)


cdef inline vecd square_about(const elem_t *x, vecd mean, vecd low) noexcept nogil:
    cdef vecd distance = centred(x, mean, low)
    return v_mul(distance, distance)


cdef inline void add_squares_about_mean(const elem_t *x, group_t *group,
                                        const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd mean = group.values[MEAN], low = group.values[MEAN_LOW]
    cdef vecd *parts = group.sums[0].parts
    cdef vecd held[HELD]
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    hold(held, parts)
    while k < until:
        for i in range(HELD):
            held[i] = v_add(held[i], square_about(at(x, (k + i) * run.step), mean, low))
        k += HELD
    release(parts, held)
    for k in range(until, run.n):
        add_term(parts, square_about(at(x, k * run.step), mean, low), k, &run)


cdef inline vecd inverse_root(group_t *group, ptrdiff_t cols, double eps) noexcept nogil:
    cdef vecd low
    cdef vecd square = v_add(average(&group.sums[0], cols, &low), v_set(eps))
    return v_div(v_set(1), v_sqrt(square))


cdef inline void keep_deviation(group_t *group, ptrdiff_t cols,
                                const kernel_number *numbers) noexcept nogil:
    group.values[RSTD] = group.results[1] = inverse_root(group, cols, numbers[0].real)


cdef inline void layer_norm(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd mean = group.values[MEAN], low = group.values[MEAN_LOW], rstd = group.values[RSTD]
    cdef vecd normal
    cdef ptrdiff_t k
    for k in range(run.n):
        normal = v_mul(centred(at(x, k * run.step), mean, low), rstd)
        put(&run, k, v_fma(normal, run.columns[0][k], run.columns[1][k]), x)


# --- RMS norm -----------------------------------------------------------------------------------

cdef inline vecd square(const elem_t *x) noexcept nogil:
    cdef vecd element = load_vecd(x)
    return v_mul(element, element)


cdef inline void add_squares(const elem_t *x, group_t *group,
                             const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd *parts = group.sums[0].parts
    cdef vecd held[HELD]
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    hold(held, parts)
    while k < until:
        for i in range(HELD):
            held[i] = v_add(held[i], square(at(x, (k + i) * run.step)))
        k += HELD
    release(parts, held)
    for k in range(until, run.n):
        add_term(parts, square(at(x, k * run.step)), k, &run)


cdef inline void keep_inverse_root(group_t *group, ptrdiff_t cols,
                                   const kernel_number *numbers) noexcept nogil:
    group.values[RSTD] = group.results[0] = inverse_root(group, cols, numbers[0].real)


cdef inline void rms_norm(const elem_t *x, group_t *group, const run_t *told) noexcept nogil:
    cdef run_t run = told[0]
    cdef vecd rstd = group.values[RSTD]
    cdef vecd normal
    cdef ptrdiff_t k
    for k in range(run.n):
        normal = v_mul(load_vecd(at(x, k * run.step)), rstd)
        put(&run, k, v_mul(normal, run.columns[0][k]), x)


# --- Gradients of the input: with h = (x - mean) rstd and q = g w -------------------------------
# For rms_norm the mean is 0 (an operand that there is none of), and the mean of q takes no part.

cdef inline vecd normalised(const elem_t *x, vecd mean, vecd rstd) noexcept nogil:
    return v_mul(v_sub(load_vecd(x), mean), rstd)


cdef inline void add_shares(const elem_t *g, group_t *group, const run_t *told) noexcept nogil:
    """Sums of q and q h."""
    cdef run_t run = told[0]
    cdef const elem_t *x = <const elem_t *>run.second
    cdef vecd mean = group.given[0], rstd = group.given[1]
    cdef vecd weighted
    cdef ptrdiff_t k
    for k in range(run.n):
        weighted = v_mul(load_vecd(at(g, k * run.step)), run.columns[0][k])
        add_term(group.sums[0].parts, weighted, k, &run)
        weighted = v_mul(weighted, normalised(at(x, k * run.second_step), mean, rstd))
        add_term(group.sums[1].parts, weighted, k, &run)


cdef inline void keep_shares(group_t *group, ptrdiff_t cols,
                             const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    group.values[0] = average(&group.sums[0], cols, &group.values[1])
    group.values[2] = average(&group.sums[1], cols, &low)


cdef inline void keep_one_share(group_t *group, ptrdiff_t cols,
                                const kernel_number *numbers) noexcept nogil:
    keep_shares(group, cols, numbers)
    group.values[0] = group.values[1] = v_set(0)


cdef inline void norm_backward_input(const elem_t *g, group_t *group,
                                     const run_t *told) noexcept nogil:
    """rstd (q - mean(q) - h mean(q h))."""
    cdef run_t run = told[0]
    cdef const elem_t *x = <const elem_t *>run.second
    cdef vecd mean = group.given[0], rstd = group.given[1]
    cdef vecd high = group.values[0], low = group.values[1]
    cdef vecd share = v_sub(v_set(0), group.values[2])
    cdef vecd weighted
    cdef ptrdiff_t k
    for k in range(run.n):
        weighted = v_mul(load_vecd(at(g, k * run.step)), run.columns[0][k])
        weighted = v_sub(v_sub(weighted, high), low)
        weighted = v_fma(normalised(at(x, k * run.second_step), mean, rstd), share, weighted)
        put(&run, k, v_mul(weighted, rstd), g)


# --- Gradients of weight and bias: the tile's rows are these, its columns the norm's rows -------

cdef inline void add_for_params(const elem_t *g, group_t *group, const run_t *told) noexcept nogil:
    """Sums of g h and g; mean and rstd belong to columns here."""
    cdef run_t run = told[0]
    cdef const elem_t *x = <const elem_t *>run.second
    cdef vecd gradient, normal
    cdef ptrdiff_t k
    for k in range(run.n):
        gradient = load_vecd(at(g, k * run.step))
        normal = v_sub(load_vecd(at(x, k * run.second_step)), run.columns[0][k])
        normal = v_mul(normal, run.columns[1][k])
        add_term(group.sums[0].parts, v_mul(gradient, normal), k, &run)
        add_term(group.sums[1].parts, gradient, k, &run)


cdef inline void give_params(group_t *group, ptrdiff_t cols,
                             const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    group.results[0] = total(&group.sums[0], &low)
    group.results[1] = total(&group.sums[1], &low)
