"""Passes of sum, mean and amax, and what passes of all kernels are made of."""

from libc.math cimport INFINITY

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.dense cimport LEAST_SHARE, dense_means, dense_most, dense_sums
from aclnn.kernels.rows.passes cimport FIRST, NEITHER, SECOND, add_pass
from aclnn.kernels.rows.sums cimport EXACT_SUM, MOST_OR_NAN, SUM, SUM_AND_MOST, average
from aclnn.kernels.rows.sums cimport parts_of, total
from aclnn.kernels.rows.vecd cimport (
    VECD,
    elem_t,
    find_most_of_dense,
    load_floats,
    load_vecd,
    s_abs,
    s_add,
    s_lanes_from,
    s_max,
    s_max_or_nan,
    s_set,
    store_two,
    store_vecd,
    v_abs,
    v_add,
    v_add_as_product,
    v_all_at_most,
    v_fma,
    v_lanes_from,
    v_max_or_nan,
    v_mul,
    v_set,
    v_two_sum,
    v_where_less,
    vecd,
    vecs,
)
from aclnn.kernels.rows.vecw cimport store_wide, to_next, vecw, w_high, w_low, w_of_two
from aclnn.kernels.rows.walk cimport dense_fn, finish_fn, group_t, parts_of_row
from aclnn.kernels.rows.walk cimport row_state, run_fn, run_t
from aclnn.graph.runtime.kernel_abi cimport kernel_number

cdef inline const elem_t *at(const elem_t *first, ptrdiff_t offset) noexcept nogil:
    return <const elem_t *>(<const char *>first + offset)


cdef inline void put(const run_t *run, ptrdiff_t k, vecd value, const elem_t *like) noexcept nogil:
    store_vecd(<elem_t *>(run.out + k * run.out_step), value)


cdef inline bint puts_dense(const run_t *run, const elem_t *like) noexcept nogil:
    """Whether results are contiguous in memory."""
    return run.out_step == VECD * sizeof(elem_t)


cdef inline void put_two(const run_t *run, ptrdiff_t k, vecd first, vecd second,
                         const elem_t *like) noexcept nogil:
    """Contiguous registers k and k + 1."""
    store_two(<elem_t *>(run.out + k * run.out_step), first, second)


cdef inline void put_wide(const run_t *run, ptrdiff_t k, vecw values,
                          const elem_t *like) noexcept nogil:
    """Registers k and k + 1, if there is that one."""
    store_wide(<elem_t *>(run.out + k * run.out_step), to_next(run, k, run.out_step), values)


cdef inline void add_term(vecd *parts, vecd term, ptrdiff_t k, const run_t *run) noexcept nogil:
    if k == run.partial:
        term = v_lanes_from(term, v_set(0), run.live)
    parts[k & run.part_mask] = v_add(parts[k & run.part_mask], term)


cdef inline void add_product(vecd *parts, vecd a, vecd b, ptrdiff_t k,
                             const run_t *run) noexcept nogil:
    cdef vecd *part = parts + (k & run.part_mask)
    cdef vecd added = v_fma(a, b, part[0])
    part[0] = v_lanes_from(added, part[0], run.live) if k == run.partial else added


cdef inline void add_float(vecd *parts, vecs term, ptrdiff_t k, const run_t *run) noexcept nogil:
    cdef vecs *part = <vecs *>(parts + (k & run.part_mask))
    if k == run.partial:
        term = s_lanes_from(term, s_set(0), run.live)
    part[0] = s_add(part[0], term)


# The partial sums of one row are held in registers as long as there are registers that are full.
cdef enum:
    HELD = 4
    WIDE = 2  # of these in registers of sixteen


cdef inline ptrdiff_t held_until(const run_t *run) noexcept nogil:
    """Registers of a block whose sums can be held, and may come one after the other."""
    if run.part_mask != HELD - 1:
        return 0
    return (run.n if run.partial < 0 else run.partial) // HELD * HELD


cdef inline void hold(vecd *held, const vecd *parts) noexcept nogil:
    held[0], held[1], held[2], held[3] = parts[0], parts[1], parts[2], parts[3]


cdef inline void release(vecd *parts, const vecd *held) noexcept nogil:
    parts[0], parts[1], parts[2], parts[3] = held[0], held[1], held[2], held[3]


cdef inline void hold_floats(vecs *held, const vecd *parts) noexcept nogil:
    cdef int i
    for i in range(HELD):
        held[i] = (<const vecs *>(parts + i))[0]


cdef inline void release_floats(vecd *parts, const vecs *held) noexcept nogil:
    cdef int i
    for i in range(HELD):
        (<vecs *>(parts + i))[0] = held[i]


cdef inline void hold_wide(vecw *held, const vecd *parts) noexcept nogil:
    cdef int i
    for i in range(WIDE):
        held[i] = w_of_two((<const vecs *>(parts + 2 * i))[0],
                           (<const vecs *>(parts + 2 * i + 1))[0])


cdef inline void release_wide(vecd *parts, const vecw *held) noexcept nogil:
    cdef int i
    for i in range(WIDE):
        (<vecs *>(parts + 2 * i))[0] = w_low(held[i])
        (<vecs *>(parts + 2 * i + 1))[0] = w_high(held[i])


cdef inline void add_wide(vecd *parts, vecw terms, ptrdiff_t k, const run_t *run) noexcept nogil:
    """Registers k and k + 1, if there is that one."""
    add_float(parts, w_low(terms), k, run)
    if k + 1 < run.n:
        add_float(parts, w_high(terms), k + 1, run)


cdef inline void begin(vecd *held, const vecd *parts, const run_t *run) noexcept nogil:
    if run.begins:
        held[0] = held[1] = held[2] = held[3] = v_set(0)
    else:
        hold(held, parts)


cdef inline void begin_floats(vecs *held, const vecd *parts, float start,
                              const run_t *run) noexcept nogil:
    if run.begins:
        held[0] = held[1] = held[2] = held[3] = s_set(start)
    else:
        hold_floats(held, parts)


cdef inline void add_elements(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef ptrdiff_t row
    for row in range(run.rows):
        add_row(at(x, row * run.row_step), parts + row * parts_of(True), &run)


cdef inline void add_row(const elem_t *x, vecd *parts, const run_t *run) noexcept nogil:
    cdef vecd held[HELD]
    cdef ptrdiff_t k = 0, until = held_until(run)
    cdef int i
    if until or run.begins:
        begin(held, parts, run)
        while k < until:
            for i in range(HELD):
                held[i] = v_add_as_product(held[i], load_vecd(at(x, (k + i) * run.step)))
            k += HELD
        release(parts, held)
    for k in range(until, run.n):
        add_term(parts, load_vecd(at(x, k * run.step)), k, run)


cdef inline void add_elements_and_sizes(const elem_t *x, group_t *group,
                                        const run_t *args) noexcept nogil:
    """Sums of elements, and their largest absolute values."""
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *sizes = parts_of_row(group, 1, &run)
    cdef ptrdiff_t row, first
    for row in range(run.rows):
        first = row * parts_of(True)
        add_row_and_sizes(at(x, row * run.row_step), parts + first, sizes + first, &run)


cdef inline void add_row_and_sizes(const elem_t *x, vecd *parts, vecd *sizes,
                                   const run_t *run) noexcept nogil:
    cdef vecd held[HELD]
    cdef vecs held_sizes[HELD]
    cdef ptrdiff_t k = 0, until = held_until(run)
    cdef int i
    if until or run.begins:
        begin(held, parts, run)
        begin_floats(held_sizes, sizes, 0, run)
        while k < until:
            for i in range(HELD):
                held[i] = v_add_as_product(held[i], load_vecd(at(x, (k + i) * run.step)))
                held_sizes[i] = s_max(held_sizes[i], s_abs(load_floats(at(x, (k + i) * run.step))))
            k += HELD
        release(parts, held)
        release_floats(sizes, held_sizes)
    for k in range(until, run.n):
        add_term(parts, load_vecd(at(x, k * run.step)), k, run)
        keep_larger(sizes, s_abs(load_floats(at(x, k * run.step))), k, run)


cdef inline void keep_larger(vecd *parts, vecs size, ptrdiff_t k, const run_t *run) noexcept nogil:
    cdef vecs *part = <vecs *>(parts + (k & run.part_mask))
    if k == run.partial:
        size = s_lanes_from(size, s_set(0), run.live)
    part[0] = s_max(part[0], size)


cdef inline void add_exactly(const elem_t *x, group_t *group, const run_t *args) noexcept nogil:
    """Add with what each addition loses added up apart: terms may cancel."""
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd *errors = parts_of_row(group, 1, &run)
    cdef vecd term, lost
    cdef ptrdiff_t k, part
    for k in range(run.n):
        part = k & run.part_mask
        term = load_vecd(at(x, k * run.step))
        if k == run.partial:
            term = v_lanes_from(term, v_set(0), run.live)
        parts[part] = v_two_sum(parts[part], term, &lost)
        errors[part] = v_add(errors[part], lost)


cdef inline void find_most_or_nan(const elem_t *x, group_t *group,
                                  const run_t *args) noexcept nogil:
    if elem_t is double:
        find_most_or_nan_double(x, group, args)
    else:
        find_most_or_nan_float(x, group, args)


cdef inline void find_most_or_nan_double(const double *x, group_t *group,
                                         const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef vecd term
    cdef ptrdiff_t k
    for k in range(run.n):
        term = load_vecd(at(x, k * run.step))
        if k == run.partial:
            term = v_lanes_from(term, v_set(-INFINITY), run.live)
        parts[k & run.part_mask] = v_max_or_nan(parts[k & run.part_mask], term)


cdef inline void find_most_or_nan_float(const elem_t *x, group_t *group,
                                        const run_t *args) noexcept nogil:
    cdef run_t run = args[0]
    cdef vecd *parts = parts_of_row(group, 0, &run)
    cdef ptrdiff_t row
    for row in range(run.rows):
        find_most_of_row(at(x, row * run.row_step), parts + row * parts_of(True), &run)


cdef inline void find_most_of_row(const elem_t *x, vecd *parts, const run_t *run) noexcept nogil:
    cdef vecs *part
    cdef vecs held[HELD]
    cdef vecs term
    cdef ptrdiff_t k = 0, until = held_until(run)
    cdef int i
    if until or run.begins:
        begin_floats(held, parts, -INFINITY, run)
        if run.step == VECD * sizeof(elem_t):
            find_most_of_dense(held, x, until)
            k = until
        while k < until:
            for i in range(HELD):
                held[i] = s_max_or_nan(held[i], load_floats(at(x, (k + i) * run.step)))
            k += HELD
        release_floats(parts, held)
    for k in range(until, run.n):
        part = <vecs *>(parts + (k & run.part_mask))
        term = load_floats(at(x, k * run.step))
        if k == run.partial:
            term = s_lanes_from(term, s_set(-INFINITY), run.live)
        part[0] = s_max_or_nan(part[0], term)


cdef inline void give_sum(group_t *group, ptrdiff_t cols,
                          const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    give_exact(group, total(&group.sums[0], &low))


cdef inline void give_mean(group_t *group, ptrdiff_t cols,
                           const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    give_exact(group, average(&group.sums[0], cols, &low))


cdef inline void give_exact(group_t *group, vecd exact) noexcept nogil:
    """In place of rows' results that a pass before left uncertain, or of all."""
    group.results[0] = exact if not group.doubt else v_where_less(
        v_abs(group.values[0]), group.values[1], exact, group.values[0])


cdef inline void try_sum(group_t *group, ptrdiff_t cols,
                         const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    try_result(group, total(&group.sums[0], &low),
               v_mul(group.sums[1].high, v_set(<double>cols)))


cdef inline void try_mean(group_t *group, ptrdiff_t cols,
                          const kernel_number *numbers) noexcept nogil:
    cdef vecd low
    try_result(group, average(&group.sums[0], cols, &low), group.sums[1].high)


cdef inline void try_result(group_t *group, vecd result, vecd size) noexcept nogil:
    """A sum is off by at most 2^-48 of the absolute values' sum, which is no more than the largest
    one times their number: few bits of a float32, unless terms cancel."""
    group.values[0] = group.results[0] = result
    group.values[1] = v_mul(size, v_set(LEAST_SHARE))
    group.doubt = not v_all_at_most(group.values[1], v_abs(result))


cdef inline void give_most(group_t *group, ptrdiff_t cols,
                           const kernel_number *numbers) noexcept nogil:
    group.results[0] = group.sums[0].high


# --- Passes of the kernels ------------------------------------------------------------------------

cdef inline void add_sum(row_state *state, finish_fn finish, const elem_t *like) noexcept:
    """A sum of elements: of float64 ones a double has no digits to spare."""
    if elem_t is double:
        add_pass(state, <run_fn>add_exactly[elem_t], finish, EXACT_SUM, 1)
    else:
        add_pass(state, <run_fn>add_elements[elem_t], finish, SUM, 1)


cdef inline int add_total(row_state *state, finish_fn finish, finish_fn attempt,
                          const elem_t *like) except -1:
    """Exact sums; where floats are tried first, `attempt` says of which rows they suffice."""
    if elem_t is half_t:
        # A double holds the sum of a chunk of float16 numbers exactly.
        add_pass(state, <run_fn>add_elements[elem_t], finish, SUM, 1)
        state.passes[0].many = True
        return 0
    if elem_t is float or elem_t is bfloat16_t:
        add_pass(state, <run_fn>add_elements_and_sizes[elem_t], attempt, SUM_AND_MOST, 1, False,
                 False, SECOND)
        state.passes[0].many = True
    add_pass(state, <run_fn>add_exactly[elem_t], finish, EXACT_SUM, 1)
    state.passes[state.n_passes - 1].if_doubtful = state.n_passes > 1
    return 0


cdef inline int sum_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    add_total(state, give_sum, try_sum, like)
    if elem_t is float:
        state.dense = <dense_fn>dense_sums[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_sums[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_sums[bfloat16_t]
    return 0


cdef inline int mean_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    add_total(state, give_mean, try_mean, like)
    if elem_t is float:
        state.dense = <dense_fn>dense_means[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_means[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_means[bfloat16_t]
    return 0


cdef inline int amax_passes(row_state *state, bint all_digits, const elem_t *like) except -1:
    add_pass(state, <run_fn>find_most_or_nan[elem_t], give_most, MOST_OR_NAN, 1, False, False,
             NEITHER if elem_t is double else FIRST)
    state.passes[0].many = elem_t is not double
    if elem_t is float:
        state.dense = <dense_fn>dense_most[float]
    elif elem_t is half_t:
        state.dense = <dense_fn>dense_most[half_t]
    elif elem_t is bfloat16_t:
        state.dense = <dense_fn>dense_most[bfloat16_t]
    return 0
