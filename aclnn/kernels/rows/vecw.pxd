"""Sixteen floats (`vecw.h`): two registers of a row, or of adjacent rows, as one."""

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.rows.vecd cimport (
    elem_t,
    s_of_doubles,
    v_load,
    v_of_floats,
    v_store_f64,
    vecd,
    vecs,
)
from aclnn.kernels.rows.walk cimport EVERY, run_t

cdef extern from "rows/vecw.h" nogil:
    ctypedef struct vecw:
        pass
    vecw w_set(float) noexcept
    vecw w_of_two(vecs, vecs) noexcept
    vecw w_twice(vecs) noexcept
    vecs w_low(vecw) noexcept
    vecs w_high(vecw) noexcept
    vecw w_add(vecw, vecw) noexcept
    vecw w_sub(vecw, vecw) noexcept
    vecw w_mul(vecw, vecw) noexcept
    vecw w_fma(vecw, vecw, vecw) noexcept
    vecw w_fms(vecw, vecw, vecw) noexcept
    vecw w_max(vecw, vecw) noexcept
    vecw w_max_or_nan(vecw, vecw) noexcept
    vecw w_min(vecw, vecw) noexcept
    vecw w_abs(vecw) noexcept
    vecw w_where_less(vecw, vecw, vecw, vecw) noexcept
    vecw w_where_number(vecw, vecw, vecw) noexcept
    bint w_any_less(vecw, vecw) noexcept
    bint w_all_at_most(vecw, vecw) noexcept
    bint w_all_numbers(vecw, vecw) noexcept
    vecw w_two_difference(vecw, vecw, vecw *) noexcept
    enum:
        WIDES
    vecw w_exp_of_halves(vecw) noexcept
    void w_exps_of_halves(vecw *) noexcept
    ctypedef struct fall_t:
        vecw near, rest, share
    void w_falls(const vecw *, const vecw *, const fall_t *, vecw *, vecw *) noexcept
    vecw w_load_f32(const float *, ptrdiff_t) noexcept
    vecw w_load_half(const half_t *, ptrdiff_t) noexcept
    vecw w_load_bfloat16(const bfloat16_t *, ptrdiff_t) noexcept
    void w_store_f32(float *, ptrdiff_t, vecw) noexcept
    void w_store_half(half_t *, ptrdiff_t, vecw) noexcept
    void w_store_bfloat16(bfloat16_t *, ptrdiff_t, vecw) noexcept
    void w_store_as_f32(float *, ptrdiff_t, vecw) noexcept
    void w_store_as_half(half_t *, ptrdiff_t, vecw) noexcept
    void w_store_as_bfloat16(bfloat16_t *, ptrdiff_t, vecw) noexcept


ctypedef fused narrow_t:
    float
    half_t
    bfloat16_t


cdef inline vecw load_wide(const elem_t *p, ptrdiff_t step) noexcept nogil:
    """Load elements that floats hold, doubles that stand for these among them."""
    if elem_t is float:
        return w_load_f32(p, step)
    elif elem_t is half_t:
        return w_load_half(p, step)
    elif elem_t is bfloat16_t:
        return w_load_bfloat16(p, step)
    else:
        return w_of_two(s_of_doubles(v_load(<const double *>p)),
                        s_of_doubles(v_load(<const double *>(<const char *>p + step))))


cdef inline void store_wide(elem_t *p, ptrdiff_t step, vecw a) noexcept nogil:
    """Rounded; every NaN is the same one."""
    if elem_t is float:
        w_store_f32(p, step, a)
    elif elem_t is half_t:
        w_store_half(p, step, a)
    elif elem_t is bfloat16_t:
        w_store_bfloat16(p, step, a)
    else:
        v_store_f64(<double *>p, v_of_floats(w_low(a)))
        v_store_f64(<double *>(<char *>p + step), v_of_floats(w_high(a)))


cdef inline void store_numbers(narrow_t *p, ptrdiff_t step, vecw a) noexcept nogil:
    """The same, of what is known to have no NaN."""
    if narrow_t is float:
        w_store_as_f32(p, step, a)
    elif narrow_t is half_t:
        w_store_as_half(p, step, a)
    else:
        w_store_as_bfloat16(p, step, a)


cdef inline vecw wide_of_row(const vecd *values, const run_t *run) noexcept nogil:
    """As floats, what is known of the group's rows, or of that one which registers go along."""
    if run.lane == EVERY:
        return w_twice(s_of_doubles(values[0]))
    return w_set(<float>(<const double *>values)[run.lane])


cdef inline ptrdiff_t to_next(const run_t *run, ptrdiff_t k, ptrdiff_t step) noexcept nogil:
    """Bytes from register k to the one behind it; where that is none, k is handled twice."""
    return step if k + 1 < run.n else 0


cdef inline ptrdiff_t wide_place(const run_t *run, ptrdiff_t k, int i) noexcept nogil:
    """Begin of the i-th of `WIDES` at once, from register k on: none behind the last."""
    return min(k + 2 * i, run.n - 1)
