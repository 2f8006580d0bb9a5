"""Passes of layer_norm, rms_norm and their gradients."""

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.dense_norm cimport dense_gradients, dense_params
from aclnn.kernels.rows.passes cimport add_pass
from aclnn.kernels.rows.reduce cimport (
    HELD,
    add_product,
    add_sum,
    add_term,
    at,
    held_until,
    hold,
    put,
    put_two,
    puts_dense,
    release,
    sum_passes,
)
from aclnn.kernels.rows.sums cimport FEW, NOTHING, SUM, TWO_SUMS, average, total
from aclnn.kernels.rows.vecd cimport (
    elem_t,
    load_vecd,
    v_add,
    v_add_as_product,
    v_all_at_most,
    v_div,
    v_fma,
    v_mul,
    v_set,
    v_sqrt,
    v_sub,
    v_sub_as_product,
    v_two_sum,
    v_where_less,
    v_where_number,
    vecd,
)
from aclnn.kernels.rows.walk cimport dense_fn, finish_fn, group_t, of_row
from aclnn.kernels.rows.walk cimport parts_of_row, row_state, run_fn, run_t
from aclnn.graph.runtime.kernel_abi cimport kernel_number

# Of a group's values: a number near the mean, how far the mean is above it, 1 / standard
# deviation, and which rows are uncertain.
cdef enum:
    NEAR
    ABOVE
    RSTD
    IN_DOUBT


cdef extern from *:
    """
    /* Of the mean square about any number: a variance of so much needs no more bits. */
    #define LEAST_VARIANCE 0x1p-16
    """
    double LEAST_VARIANCE


cdef inline void add_about_first(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    """Sums of distances from the first element, and of their squares."""
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *squares = parts_of_row(group, 1, &run)
    cdef vecd first = of_row(&group.values[NEAR], &run)
    cdef vecd distance
    cdef vecd held[HELD]
    cdef vecd held_squares[HELD]
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        hold(held_squares, squares)
        while k < until:
            for i in range(HELD):
                distance = v_sub(load_vecd(at(x, (k + i) * run.step)), first)
                held[i] = v_add_as_product(held[i], distance)
                held_squares[i] = v_fma(distance, distance, held_squares[i])
            k += HELD
        release(parts, held)
        release(squares, held_squares)
    for k in range(until, run.n):
        distance = v_sub(load_vecd(at(x, k * run.step)), first)
        add_term(parts, distance, k, &run)
        add_product(squares, distance, distance, k, &run)


cdef inline void try_deviation(group_t *group, ptrdiff_t cols,
                               const kernel_number *numbers) noexcept nogil:
    """The mean is that of the distances from the first element; so is the variance, unless that is
    far off: then few bits are left of it, and the mean takes its place for another pass."""
    cdef vecd low
    cdef vecd first = group.values[NEAR]
    cdef vecd distance = average(&group.sums[0], cols, &low)
    cdef vecd square = average(&group.sums[1], cols, &low)
    cdef vecd variance = v_sub(square, v_mul(distance, distance))
    cdef vecd least = v_mul(square, v_set(LEAST_VARIANCE))
    cdef vecd mean = v_two_sum(first, distance, &low)
    group.results[0] = mean
    set_rstd(group, variance, numbers[0].real)
    cdef vecd in_doubt = v_where_less(variance, least, v_set(1), v_set(0))
    group.values[IN_DOUBT] = in_doubt = v_where_number(variance, in_doubt, v_set(1))
    group.doubt = not v_all_at_most(in_doubt, v_set(0))
    group.values[NEAR] = v_where_less(in_doubt, v_set(1), first, mean)
    group.values[ABOVE] = v_where_less(in_doubt, v_set(1), distance, low)


cdef inline void keep_mean(group_t *group, ptrdiff_t cols,
                           const kernel_number *numbers) noexcept nogil:
    group.values[NEAR] = average(&group.sums[0], cols, &group.values[ABOVE])
    group.results[0] = group.values[NEAR]
    group.values[IN_DOUBT] = v_set(1)


cdef inline vecd square_about(const elem_t *x, vecd near, vecd above) noexcept nogil:
    """Both parts of the mean count where elements hardly differ from it."""
    cdef vecd distance = v_sub(v_sub(load_vecd(x), near), above)
    return v_mul(distance, distance)


cdef inline void add_squares_about_mean(const elem_t *x, group_t *group,
                                        const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd near = of_row(&group.values[NEAR], &run), above = of_row(&group.values[ABOVE], &run)
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef ptrdiff_t k
    for k in range(run.n):
        add_term(parts, square_about(at(x, k * run.step), near, above), k, &run)


cdef inline void keep_deviation(group_t *group, ptrdiff_t cols,
                                const kernel_number *numbers) noexcept nogil:
    """In place of that of rows that are uncertain."""
    cdef vecd low, found = group.values[RSTD]
    set_rstd(group, average(&group.sums[0], cols, &low), numbers[0].real)
    group.values[RSTD] = v_where_less(group.values[IN_DOUBT], v_set(1), found, group.values[RSTD])
    group.results[1] = group.values[RSTD]


cdef inline void set_rstd(group_t *group, vecd variance, double eps) noexcept nogil:
    group.values[RSTD] = v_div(v_set(1), v_sqrt(v_add(variance, v_set(eps))))
    group.results[1] = group.values[RSTD]


cdef inline void layer_norm(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd near = of_row(&group.values[NEAR], &run), rstd = of_row(&group.values[RSTD], &run)
    cdef vecd below = v_sub(v_set(0), v_mul(of_row(&group.values[ABOVE], &run), rstd))
    cdef ptrdiff_t k = 0
    if puts_dense(&run, x):
        while k + 2 <= run.n:
            put_two(&run, k, normal_of(x, k, near, rstd, below, &run),
                    normal_of(x, k + 1, near, rstd, below, &run), x)
            k += 2
    for k in range(k, run.n):
        put(&run, k, normal_of(x, k, near, rstd, below, &run), x)


cdef inline vecd normal_of(const elem_t *x, ptrdiff_t k, vecd near, vecd rstd, vecd below,
                           const run_t *run) noexcept nogil:
    """Register k of a row's results."""
    cdef vecd normal = v_sub_as_product(load_vecd(at(x, k * run.step)), near)
    return v_fma(v_fma(normal, rstd, below), run.columns[0][k], run.columns[1][k])


# --- RMS norm -----------------------------------------------------------------------------------

cdef inline void add_squares(const elem_t *x, group_t *group,
                             const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd held[HELD]
    cdef vecd element
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        while k < until:
            for i in range(HELD):
                element = load_vecd(at(x, (k + i) * run.step))
                held[i] = v_fma(element, element, held[i])
            k += HELD
        release(parts, held)
    for k in range(until, run.n):
        element = load_vecd(at(x, k * run.step))
        add_product(parts, element, element, k, &run)


cdef inline void keep_inverse_root(group_t *group, ptrdiff_t cols,
                                   const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    set_rstd(group, average(&group.sums[0], cols, &low), numbers[0].real)
    group.results[0] = group.values[RSTD]


cdef inline void rms_norm(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd rstd = of_row(&group.values[RSTD], &run)
    cdef ptrdiff_t k = 0
    if puts_dense(&run, x):
        while k + 2 <= run.n:
            put_two(&run, k, scaled(x, k, rstd, &run), scaled(x, k + 1, rstd, &run), x)
            k += 2
    for k in range(k, run.n):
        put(&run, k, scaled(x, k, rstd, &run), x)


cdef inline vecd scaled(const elem_t *x, ptrdiff_t k, vecd rstd, const run_t *run) noexcept nogil:
    return v_mul(v_mul(load_vecd(at(x, k * run.step)), rstd), run.columns[0][k])


# --- Gradients of the input, with d = x - mean and q = g w: rstd (q - mean(q) - d rstd^2 mean(q d))
# For rms_norm the mean is 0 (an operand that there is none of), and the mean of q takes no part.

cdef inline void add_shares(const elem_t *g, group_t *group, const run_t *args) noexcept nogil:
    """Sums of q and q d."""
    cdef run_t run = args[0]
    cdef const elem_t *x = <const elem_t *>run.second
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *products = parts_of_row(group, 1, &run)
    cdef vecd mean = of_row(&group.given[0], &run)
    cdef vecd held[HELD]
    cdef vecd held_products[HELD]
    cdef vecd weighted, distance
    cdef ptrdiff_t k = 0, until = held_until(&run)
    cdef int i
    if until:
        hold(held, parts)
        hold(held_products, products)
        while k < until:
            for i in range(HELD):
                weighted = v_mul(load_vecd(at(g, (k + i) * run.step)), run.columns[0][k + i])
                distance = v_sub(load_vecd(at(x, (k + i) * run.second_step)), mean)
                held[i] = v_add_as_product(held[i], weighted)
                held_products[i] = v_fma(weighted, distance, held_products[i])
            k += HELD
        release(parts, held)
        release(products, held_products)
    for k in range(until, run.n):
        weighted = v_mul(load_vecd(at(g, k * run.step)), run.columns[0][k])
        distance = v_sub(load_vecd(at(x, k * run.second_step)), mean)
        add_term(parts, weighted, k, &run)
        add_product(products, weighted, distance, k, &run)


cdef inline void keep_shares(group_t *group, ptrdiff_t cols,
                             const kernel_number *numbers) noexcept nogil:
    cdef vecd low, rstd = group.given[1]
    cdef vecd share = v_mul(v_mul(average(&group.sums[1], cols, &low), rstd), rstd)
    group.values[0] = v_sub(v_set(0), average(&group.sums[0], cols, &low))
    group.values[1] = v_sub(v_set(0), share)


cdef inline void keep_one_share(group_t *group, ptrdiff_t cols,
                                const kernel_number *numbers) noexcept nogil:
    keep_shares(group, cols, numbers)
    group.values[0] = v_set(0)


cdef inline void norm_backward_input(const elem_t *g, group_t *group,
                                     const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef const elem_t *x = <const elem_t *>run.second
    cdef vecd mean = of_row(&group.given[0], &run), rstd = of_row(&group.given[1], &run)
    cdef vecd most = of_row(&group.values[0], &run), share = of_row(&group.values[1], &run)
    cdef ptrdiff_t k = 0
    if puts_dense(&run, g):
        while k + 2 <= run.n:
            put_two(&run, k, v_mul(rest_of(g, x, k, mean, most, share, &run), rstd),
                    v_mul(rest_of(g, x, k + 1, mean, most, share, &run), rstd), g)
            k += 2
    for k in range(k, run.n):
        put(&run, k, v_mul(rest_of(g, x, k, mean, most, share, &run), rstd), g)


cdef inline vecd rest_of(const elem_t *g, const elem_t *x, ptrdiff_t k, vecd mean, vecd most,
                         vecd share, const run_t *run) noexcept nogil:
    cdef vecd rest = v_sub(load_vecd(at(x, k * run.second_step)), mean)
    return v_fma(load_vecd(at(g, k * run.step)), run.columns[0][k], v_fma(rest, share, most))


# --- Gradients of weight and bias: the tile's rows are these, its columns the norm's rows -------

cdef inline void add_for_params(const elem_t *g, group_t *group, const run_t *args) noexcept nogil:
    """Sums of g h and g; mean and rstd belong to columns here."""
    cdef run_t run = args[0]
    cdef const elem_t *x = <const elem_t *>run.second
    cdef vecd *products = parts_of_row(group, 0, &run)
    cdef vecd *parts = parts_of_row(group, 1, &run)
    cdef vecd held[FEW]
    cdef vecd held_products[FEW]
    cdef vecd gradient, normal
    cdef ptrdiff_t k = 0, until = run.n // FEW * FEW if run.part_mask == FEW - 1 else 0
    cdef int i
    if until:
        for i in range(FEW):
            held[i], held_products[i] = parts[i], products[i]
        while k < until:
            for i in range(FEW):
                gradient = load_vecd(at(g, (k + i) * run.step))
                normal = normalised(at(x, (k + i) * run.second_step), k + i, &run)
                held_products[i] = v_fma(gradient, normal, held_products[i])
                held[i] = v_add_as_product(held[i], gradient)
            k += FEW
        for i in range(FEW):
            parts[i], products[i] = held[i], held_products[i]
    for k in range(until, run.n):
        gradient = load_vecd(at(g, k * run.step))
        normal = normalised(at(x, k * run.second_step), k, &run)
        add_product(products, gradient, normal, k, &run)
        add_term(parts, gradient, k, &run)


cdef inline vecd normalised(const elem_t *x, ptrdiff_t k, const run_t *run) noexcept nogil:
    return v_mul(v_sub(load_vecd(x), run.columns[0][k]), run.columns[1][k])


cdef inline void give_params(group_t *group, ptrdiff_t cols,
                             const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    group.results[0] = total(&group.sums[0], &low)
    group.results[1] = total(&group.sums[1], &low)


# --- Passes of the kernels ------------------------------------------------------------------------

cdef inline int moments_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    """Sums about the first element; about the mean where these leave too few digits."""
    if all_digits:
        add_sum(state, keep_mean, like)
    else:
        add_pass(state, <run_fn>add_about_first[elem_t], try_deviation, TWO_SUMS, 1)
        state.passes[0].from_first = True
    add_pass(state, <run_fn>add_squares_about_mean[elem_t], keep_deviation, SUM, 1)
    state.passes[1].if_doubtful = not all_digits
    return 0


cdef inline int layer_norm_passes(row_state *state, bint all_digits,
                                  const elem_t *like) except -1:
    moments_passes(state, all_digits, like)
    add_pass(state, <run_fn>layer_norm[elem_t], NULL, NOTHING, 1, True, True)
    return 0


cdef inline int rms_norm_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    add_pass(state, <run_fn>add_squares[elem_t], keep_inverse_root, SUM, 1)
    add_pass(state, <run_fn>rms_norm[elem_t], NULL, NOTHING, 1, True, True)
    return 0


cdef inline int add_params(row_state *state, const elem_t *like) except -1:
    add_pass(state, <run_fn>add_for_params[elem_t], give_params, TWO_SUMS, 2, True)
    state.passes[0].few = True
    if elem_t is float:
        state.dense = <dense_fn>dense_params[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_params[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_params[bfloat16_t]
    return 0


cdef inline int layer_norm_backward_params_passes(row_state *state, bint all_digits,
                                                  const elem_t *like) except -1:
    if state.inputs[1].view >= 0:
        return add_params(state, like)
    # The bias's gradient alone is the gradient's sum.
    state.results[0], state.results[1] = state.results[1], state.results[0]
    return sum_passes(state, all_digits, like)


cdef inline int rms_norm_backward_gamma_passes(row_state *state, bint all_digits,
                                               const elem_t *like) except -1:
    state.columns[0].otherwise = 0  # the mean
    return add_params(state, like)


cdef inline int add_backward_input(row_state *state, finish_fn finish,
                                   const elem_t *like) except -1:
    add_pass(state, <run_fn>add_shares[elem_t], finish, TWO_SUMS, 2, True)
    add_pass(state, <run_fn>norm_backward_input[elem_t], NULL, NOTHING, 2, True, True)
    if elem_t is float:
        state.dense = <dense_fn>dense_gradients[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_gradients[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_gradients[bfloat16_t]
    return 0


cdef inline int layer_norm_backward_input_passes(row_state *state, bint all_digits,
                                                 const elem_t *like) except -1:
    return add_backward_input(state, keep_shares, like)


cdef inline int rms_norm_backward_input_passes(row_state *state, bint all_digits,
                                               const elem_t *like) except -1:
    return add_backward_input(state, keep_one_share, like)
