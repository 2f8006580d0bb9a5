"""Numbers in three forms, and the functions that activations are made of.

A formula over `num` is written once.  As `double` it decides every result that another form cannot
round with certainty, and computes where there are no vectors; as `vecf`, a vector of floats to
about 2^-23, it computes half precision; as `pair_t`, the sum of two vectors to about 2^-28,
float32. `simd/pair.h` has the errors of the parts: they add up.

Both arms of a choice are computed and one is selected.  What a vector makes of infinities and NaNs
does not matter, as long as the result is none but these: such results are computed as doubles
again.
"""

from libc.math cimport INFINITY, NAN

from aclnn.kernels.simd.vector cimport vecf

cdef extern from "vector_math.h" nogil:
    double double_exp "exp_f64"(double) noexcept
    double double_expm1 "expm1_f64"(double) noexcept
    double double_log "log_f64"(double) noexcept

cdef extern from "<math.h>" nogil:
    double double_abs "fabs"(double) noexcept

cdef extern from "simd/pair.h" nogil:
    ctypedef struct pair_t:
        vecf high
        vecf low
        int exact
    vecf vf_set(float) noexcept
    vecf vf_add(vecf, vecf) noexcept
    vecf vf_mul(vecf, vecf) noexcept
    vecf vf_fnma(vecf, vecf, vecf) noexcept
    vecf vf_neg(vecf) noexcept
    vecf vf_quotient(vecf, vecf) noexcept
    vecf vf_least(vecf) noexcept
    vecf vf_decay(vecf) noexcept
    vecf vf_exp_minus(vecf) noexcept
    vecf vf_exp_minus_product(vecf, vecf, vecf) noexcept
    vecf vf_decay_of_product(vecf, vecf, vecf) noexcept
    vecf vf_expm1(vecf) noexcept
    vecf vf_log(vecf) noexcept
    vecf vf_rsqrt(vecf) noexcept
    vecf vf_log_of_sum(vecf) noexcept
    vecf vf_within(vecf, float, float, vecf) noexcept
    vecf vf_unless_below(vecf, float, vecf) noexcept
    vecf vf_log1p(vecf) noexcept
    vecf vf_where_negative(vecf, vecf, vecf) noexcept
    vecf vf_where_above(vecf, vecf, vecf, vecf) noexcept
    vecf vf_where_at_most(vecf, vecf, vecf, vecf) noexcept
    vecf vf_bounded(vecf, float, float) noexcept
    vecf vf_exp2(vecf) noexcept
    vecf vf_swish_slope(vecf) noexcept
    vecf vf_where_product_above(vecf, vecf, vecf, vecf, vecf) noexcept
    vecf vf_signed_as(vecf, vecf) noexcept
    pair_t pair_set(double) noexcept
    pair_t pair_add(pair_t, pair_t) noexcept
    pair_t pair_add_less(pair_t, pair_t) noexcept
    pair_t pair_mul(pair_t, pair_t) noexcept
    pair_t pair_neg(pair_t) noexcept
    pair_t pair_div(pair_t, pair_t) noexcept
    pair_t pair_least(pair_t) noexcept
    pair_t pair_decay(pair_t) noexcept
    pair_t pair_decay_long(pair_t) noexcept
    pair_t pair_exp_minus(pair_t) noexcept
    pair_t pair_exp_minus_long(pair_t) noexcept
    pair_t pair_exp2(pair_t) noexcept
    pair_t pair_expm1(pair_t) noexcept
    pair_t pair_log(pair_t) noexcept
    pair_t pair_rsqrt(pair_t) noexcept
    pair_t pair_zero_as(pair_t, pair_t) noexcept
    pair_t pair_log_of_sum(pair_t) noexcept
    pair_t pair_within(pair_t, float, float, pair_t) noexcept
    pair_t pair_unless_below(pair_t, float, pair_t) noexcept
    pair_t pair_log1p(pair_t) noexcept
    pair_t pair_where_negative(pair_t, pair_t, pair_t) noexcept
    pair_t pair_where_above(pair_t, pair_t, pair_t, pair_t) noexcept
    pair_t pair_where_at_most(pair_t, vecf, pair_t, pair_t) noexcept
    pair_t pair_bounded(pair_t, float, float) noexcept
    pair_t pair_where_product_above(vecf, pair_t, vecf, pair_t, pair_t) noexcept
    pair_t pair_signed_as(pair_t, pair_t) noexcept

cdef extern from "simd/sine.h" nogil:
    vecf vf_sine(vecf, int) noexcept
    pair_t pair_sine(pair_t, int) noexcept

cdef extern from "simd/erf.h" nogil:
    vecf vf_erf(vecf) noexcept
    pair_t pair_erf(pair_t) noexcept

ctypedef fused num:
    double
    vecf
    pair_t

# What a formula is over that has a double form of its own, in `formulas.pxd`.
ctypedef fused vector_num:
    vecf
    pair_t


cdef inline num constant(num like, double c) noexcept nogil:
    """`c`, as a number of the form that `like` has."""
    if num is double:
        return c
    elif num is vecf:
        return vf_set(<float>c)
    else:
        return pair_set(c)


cdef inline num neg(num a) noexcept nogil:
    if num is double:
        return -a
    elif num is vecf:
        return vf_neg(a)
    else:
        return pair_neg(a)


cdef inline num add(num a, num b) noexcept nogil:
    if num is double:
        return a + b
    elif num is vecf:
        return vf_add(a, b)
    else:
        return pair_add(a, b)


cdef inline num sub(num a, num b) noexcept nogil:
    return add(a, neg(b))


cdef inline num add_less(num a, num b) noexcept nogil:
    """a + b, where a is the larger one, or 0: in fewer operations."""
    if num is pair_t:
        return pair_add_less(a, b)
    else:
        return add(a, b)


cdef inline num add_all(num x, double c) noexcept nogil:
    """x + c to all digits, however few the sum leaves: in two steps, the first of them exact."""
    if num is vecf:
        return vf_add(vf_add(x, vf_set(<float>c)), vf_set(<float>(c - <float>c)))
    else:
        return add(x, constant(x, c))


cdef inline num mul(num a, num b) noexcept nogil:
    if num is double:
        return a * b
    elif num is vecf:
        return vf_mul(a, b)
    else:
        return pair_mul(a, b)


cdef inline num squared(num a) noexcept nogil:
    return mul(a, a)


cdef inline vecf less_product(vecf c, vecf a, vecf b) noexcept nogil:
    """c - a b, rounded once."""
    return vf_fnma(a, b, c)


cdef inline num times(double c, num a) noexcept nogil:
    return mul(constant(a, c), a)


cdef inline num plus(double c, num a) noexcept nogil:
    """c + a, where c is the larger one."""
    return add_less(constant(a, c), a)


cdef inline num div(num a, num b) noexcept nogil:
    if num is double:
        return a / b
    elif num is vecf:
        return vf_quotient(a, b)
    else:
        return pair_div(a, b)


cdef inline num where_negative(num x, num yes, num no) noexcept nogil:
    if num is double:
        return yes if x < 0 else no
    elif num is vecf:
        return vf_where_negative(x, yes, no)
    else:
        return pair_where_negative(x, yes, no)


cdef inline num where_above(num x, double bound, num yes, num no) noexcept nogil:
    """`yes` where x > bound."""
    if num is double:
        return yes if x > bound else no
    elif num is vecf:
        return vf_where_above(x, vf_set(<float>bound), yes, no)
    else:
        return pair_where_above(x, pair_set(bound), yes, no)


cdef inline num where_at_most(num x, double bound, num yes, num no) noexcept nogil:
    """`yes` where x <= bound, for operands x."""
    if num is double:
        return yes if x <= bound else no
    elif num is vecf:
        return vf_where_at_most(x, vf_set(<float>bound), yes, no)
    else:
        return pair_where_at_most(x, vf_set(<float>bound), yes, no)


cdef inline num bounded(num x, double low, double high) noexcept nogil:
    """An operand x, from `low` up to `high`; a NaN stays."""
    cdef double above
    if num is double:
        above = low if x < low else x
        return high if above > high else above
    elif num is vecf:
        return vf_bounded(x, <float>low, <float>high)
    else:
        return pair_bounded(x, <float>low, <float>high)


cdef inline num where_product_above(double c, num x, double bound, num yes, num no) noexcept nogil:
    """`yes` where c x > bound, for operands x: exact, if c and the bound are floats."""
    if num is double:
        return yes if c * x > bound else no
    elif num is vecf:
        return vf_where_product_above(vf_set(<float>c), x, vf_set(<float>bound), yes, no)
    else:
        return pair_where_product_above(vf_set(<float>c), x, vf_set(<float>bound), yes, no)


cdef inline num signed_as(num size, num x) noexcept nogil:
    """`size`, which has no sign, with that of x."""
    if num is double:
        return -size if x < 0 else size if x > 0 else x
    elif num is vecf:
        return vf_signed_as(size, x)
    else:
        return pair_signed_as(size, x)


cdef inline num least(num x) noexcept nogil:
    """-|x|, but no less than where e^x is a normal number."""
    cdef double near
    if num is double:
        near = -double_abs(x)
        return -708 if near < -708 else near
    elif num is vecf:
        return vf_least(x)
    else:
        return pair_least(x)


cdef inline num exp_less_one(num y) noexcept nogil:
    """e^y - 1, where e^y is a normal number."""
    if num is double:
        return double_expm1(y)
    elif num is vecf:
        return vf_expm1(y)
    else:
        return pair_expm1(y)


cdef inline num log_one_more(num q) noexcept nogil:
    """ln(1 + q) for q in [0, 1]; as double, what the sum loses of a small q comes back."""
    cdef double total
    if num is double:
        total = 1 + q
        return double_log(total) + (q - (total - 1)) / total
    elif num is vecf:
        return vf_log1p(q)
    else:
        return pair_log1p(q)


cdef inline num decay(num x) noexcept nogil:
    """e^-|x|; 0 where nothing shows it."""
    if num is double:
        return double_exp(least(x))
    elif num is vecf:
        return vf_decay(x)
    else:
        return pair_decay(x)


cdef inline num decay_long(num x) noexcept nogil:
    """The same, where a sum may leave few of its digits: pairs give 2^-32."""
    if num is pair_t:
        return pair_decay_long(x)
    else:
        return decay(x)


cdef inline vector_num exp_minus(vector_num x) noexcept nogil:
    """e^-x; no finite number, or not all of its digits, where floats end."""
    if vector_num is vecf:
        return vf_exp_minus(x)
    else:
        return pair_exp_minus(x)


cdef inline vecf exp_minus_product(double c, vecf x) noexcept nogil:
    """e^-(c x) of an operand: of the product nothing is lost."""
    return vf_exp_minus_product(vf_set(<float>c), vf_set(<float>(c - <float>c)), x)


cdef inline num decay_of_product(double c, num x) noexcept nogil:
    """e^-|c x| of an operand."""
    if num is vecf:
        return vf_decay_of_product(vf_set(<float>c), vf_set(<float>(c - <float>c)), x)
    else:
        return decay(times(c, x))


cdef inline vector_num exp_minus_long(vector_num x) noexcept nogil:
    """The same, where a sum may leave few of its digits: pairs give 2^-32."""
    if vector_num is vecf:
        return vf_exp_minus(x)
    else:
        return pair_exp_minus_long(x)


cdef inline vector_num exp2_of(vector_num x) noexcept nogil:
    """2^x of an operand; no number where floats end."""
    if vector_num is vecf:
        return vf_exp2(x)
    else:
        return pair_exp2(x)


cdef inline vecf swish_slope(vecf t) noexcept nogil:
    """The derivative of t / (1 + e^-t), of which a root leaves few digits."""
    return vf_swish_slope(t)


cdef inline num at_nan(num x, num r, num elsewhere) noexcept nogil:
    """`r` where x is a NaN: there vectors give no finite result."""
    if num is double:
        return r if x != x else elsewhere
    else:
        return elsewhere


cdef inline num at_minus_infinity(num x, double r, num elsewhere) noexcept nogil:
    """`r` where x is minus infinity: there vectors give no finite result."""
    if num is double:
        return r if x == -INFINITY else elsewhere
    else:
        return elsewhere


cdef inline vector_num log_of(vector_num x) noexcept nogil:
    """ln x; no number where x is not a normal one."""
    if vector_num is vecf:
        return vf_log(x)
    else:
        return pair_log(x)


cdef inline vector_num log_of_sum(vector_num x) noexcept nogil:
    """ln(1 + x); no number where 1 + x is no normal one."""
    if vector_num is vecf:
        return vf_log_of_sum(x)
    else:
        return pair_log_of_sum(x)


cdef inline vector_num zero_as(vector_num r, vector_num x) noexcept nogil:
    """`r`, which has the sign of x, unless it is 0: then too."""
    if vector_num is vecf:
        return vf_signed_as(r, x)
    else:
        return pair_zero_as(r, x)


cdef inline vector_num rsqrt_of(vector_num x) noexcept nogil:
    if vector_num is vecf:
        return vf_rsqrt(x)
    else:
        return pair_rsqrt(x)


cdef inline vector_num within(vector_num x, float low, float high, vector_num r) noexcept nogil:
    """`r` where x is between; elsewhere no number, which is left to doubles."""
    if vector_num is vecf:
        return vf_within(x, low, high, r)
    else:
        return pair_within(x, low, high, r)


cdef inline num unless_below(num x, float low, num r) noexcept nogil:
    """`r` where x is not below; elsewhere no number, which is left to doubles."""
    if num is double:
        return r
    elif num is vecf:
        return vf_unless_below(x, low, r)
    else:
        return pair_unless_below(x, low, r)


cdef inline vector_num sine_of(vector_num x, int turn) noexcept nogil:
    """sin(x + turn pi/2) of an operand; no number where it is so large that doubles are needed."""
    if vector_num is vecf:
        return vf_sine(x, turn)
    else:
        return pair_sine(x, turn)


cdef inline vector_num erf_of(vector_num x) noexcept nogil:
    """The error function of an operand."""
    if vector_num is vecf:
        return vf_erf(x)
    else:
        return pair_erf(x)
