"""Eight doubles (`vecd.h`), and elements of the floating dtypes loaded and stored as such."""

from aclnn.kernels.element cimport bfloat16_t, half_t

cdef extern from "rows/vecd.h" nogil:
    ctypedef struct vecd:
        pass
    ctypedef struct vecs:
        pass
    ctypedef struct wide_single_t:
        double v
    ctypedef struct wide_half_t:
        double v
    enum:
        VECD
        EXPS
    vecs s_set(float) noexcept
    vecs s_load_f32(const float *) noexcept
    vecs s_load_half(const half_t *) noexcept
    vecs s_load_bfloat16(const bfloat16_t *) noexcept
    vecs s_max(vecs, vecs) noexcept
    vecs s_min(vecs, vecs) noexcept
    vecs s_max_or_nan(vecs, vecs) noexcept
    vecs s_add(vecs, vecs) noexcept
    vecs s_sub(vecs, vecs) noexcept
    vecs s_mul(vecs, vecs) noexcept
    vecs s_where_less(vecs, vecs, vecs, vecs) noexcept
    vecs s_where_number(vecs, vecs, vecs) noexcept
    vecs s_lanes_from(vecs, vecs, ptrdiff_t) noexcept
    vecs s_of_doubles(vecd) noexcept
    vecs s_abs(vecs) noexcept
    vecs s_fma(vecs, vecs, vecs) noexcept
    bint s_any_less(vecs, vecs) noexcept
    void s_store_f32(float *, vecs) noexcept
    void s_store_half(half_t *, vecs) noexcept
    void s_store_bfloat16(bfloat16_t *, vecs) noexcept
    vecd v_of_floats(vecs) noexcept
    vecd v_set(double) noexcept
    vecd v_load(const double *) noexcept
    void v_store(double *, vecd) noexcept
    vecd v_add(vecd, vecd) noexcept
    vecd v_sub(vecd, vecd) noexcept
    vecd v_mul(vecd, vecd) noexcept
    vecd v_div(vecd, vecd) noexcept
    vecd v_sqrt(vecd) noexcept
    vecd v_fma(vecd, vecd, vecd) noexcept
    vecd v_max(vecd, vecd) noexcept
    vecd v_min(vecd, vecd) noexcept
    vecd v_where_less(vecd, vecd, vecd, vecd) noexcept
    vecd v_zero_where_equal(vecd, vecd, vecd) noexcept
    vecd v_where_number(vecd, vecd, vecd) noexcept
    vecd v_swap_fours(vecd) noexcept
    vecd v_swap_twos(vecd) noexcept
    vecd v_swap_ones(vecd) noexcept
    vecd v_spread_first(vecd) noexcept
    void v_transpose(vecd *) noexcept
    vecd v_abs(vecd) noexcept
    bint v_all_at_most(vecd, vecd) noexcept
    vecd v_load_f32(const float *) noexcept
    vecd v_load_half(const half_t *) noexcept
    vecd v_load_bfloat16(const bfloat16_t *) noexcept
    vecd v_canonical(vecd) noexcept
    void v_store_f64(double *, vecd) noexcept
    void v_store_f32(float *, vecd) noexcept
    void v_store_half(half_t *, vecd) noexcept
    void v_store_bfloat16(bfloat16_t *, vecd) noexcept
    vecd v_max_or_nan(vecd, vecd) noexcept
    void s_most_f32(vecs *, const float *, ptrdiff_t) noexcept
    void s_most_half(vecs *, const half_t *, ptrdiff_t) noexcept
    void s_most_bfloat16(vecs *, const bfloat16_t *, ptrdiff_t) noexcept
    vecd v_add_as_product(vecd, vecd) noexcept
    vecd v_sub_as_product(vecd, vecd) noexcept
    void v_store_two_f32(float *, vecd, vecd) noexcept
    void v_store_two_half(half_t *, vecd, vecd) noexcept
    void v_store_two_bfloat16(bfloat16_t *, vecd, vecd) noexcept
    vecd v_lanes_from(vecd, vecd, ptrdiff_t) noexcept
    vecd v_two_sum(vecd, vecd, vecd *) noexcept
    vecd v_product_error(vecd, vecd, vecd) noexcept
    vecd v_log(vecd) noexcept
    vecd v_log1p(vecd) noexcept
    void v_exps_of_floats(vecd *) noexcept
    vecd v_exp_short(vecd) noexcept
    vecd v_exp_of_floats(vecd) noexcept
    vecd v_exp_long(vecd, vecd) noexcept
    ctypedef struct magnitude_t:
        pass
    enum:
        CLOSE
    magnitude_t m_none() noexcept
    void m_see_f32(magnitude_t *, const float *) noexcept
    void m_see_half_f32(magnitude_t *, const float *) noexcept
    void m_see_bfloat16(magnitude_t *, const bfloat16_t *) noexcept
    void m_see_half_bfloat16(magnitude_t *, const bfloat16_t *) noexcept
    double m_most_f32(const magnitude_t *) noexcept
    double m_most_bfloat16(const magnitude_t *) noexcept

ctypedef fused elem_t:
    float
    double
    half_t
    bfloat16_t
    wide_single_t
    wide_half_t


cdef inline vecd load_vecd(const elem_t *p) noexcept nogil:
    if elem_t is float:
        return v_load_f32(p)
    elif elem_t is half_t:
        return v_load_half(p)
    elif elem_t is bfloat16_t:
        return v_load_bfloat16(p)
    else:
        return v_load(<const double *>p)


cdef inline void load_vecds(const elem_t *p, vecd *registers, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t k
    for k in range(n):
        registers[k] = load_vecd(p + k * VECD)


cdef inline vecs load_floats(const elem_t *p) noexcept nogil:
    """Load elements that floats hold, doubles that stand for these among them."""
    if elem_t is float:
        return s_load_f32(p)
    elif elem_t is half_t:
        return s_load_half(p)
    elif elem_t is bfloat16_t:
        return s_load_bfloat16(p)
    else:
        return s_of_doubles(v_load(<const double *>p))


cdef inline void find_most_of_dense(vecs *held, const elem_t *p, ptrdiff_t n) noexcept nogil:
    """Find the largest of n adjacent registers, by fours."""
    cdef ptrdiff_t k
    if elem_t is float:
        s_most_f32(held, p, n)
    elif elem_t is half_t:
        s_most_half(held, p, n)
    elif elem_t is bfloat16_t:
        s_most_bfloat16(held, p, n)
    else:
        for k in range(n):
            held[k % 4] = s_max_or_nan(held[k % 4], load_floats(p + k * VECD))


cdef inline void store_floats(elem_t *p, vecs a) noexcept nogil:
    if elem_t is float:
        s_store_f32(p, a)
    elif elem_t is half_t:
        s_store_half(p, a)
    elif elem_t is bfloat16_t:
        s_store_bfloat16(p, a)
    else:
        v_store_f64(<double *>p, v_of_floats(a))


cdef inline void store_vecd(elem_t *p, vecd a) noexcept nogil:
    """Rounded once; every NaN is the same one."""
    if elem_t is float:
        v_store_f32(p, a)
    elif elem_t is half_t:
        v_store_half(p, a)
    elif elem_t is bfloat16_t:
        v_store_bfloat16(p, a)
    else:
        v_store_f64(<double *>p, a)


cdef inline void store_two(elem_t *p, vecd a, vecd b) noexcept nogil:
    """The same of two contiguous registers."""
    if elem_t is float:
        v_store_two_f32(p, a, b)
    elif elem_t is half_t:
        v_store_two_half(p, a, b)
    elif elem_t is bfloat16_t:
        v_store_two_bfloat16(p, a, b)
    else:
        v_store_f64(<double *>p, a)
        v_store_f64(<double *>p + VECD, b)
