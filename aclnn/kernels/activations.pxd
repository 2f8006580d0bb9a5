"""Formulas of activations and their gradients, each written once (`numbers.pxd`).

What is over `num` gives a double form and two over vectors; what is over `vector_num` the latter,
since `formulas.pxd` has a double form that rounds float64 as well.  Names, order of elements and
numbers `p` are those of `formulas.pxd`.  Records say what of a formula loops over vectors have to
know (`VectorForm`).
"""

from libc.math cimport INFINITY, NAN, fabs

from aclnn.kernels.shared_formulas cimport STICKY, ordered, product_to_odd, times_slope, times_sum
from aclnn.kernels.numbers cimport (
    add,
    add_all,
    at_minus_infinity,
    at_nan,
    bounded,
    constant,
    decay,
    decay_long,
    decay_of_product,
    div,
    erf_of,
    exp2_of,
    exp_less_one,
    exp_minus,
    exp_minus_long,
    exp_minus_product,
    least,
    less_product,
    log_of,
    log_of_sum,
    log_one_more,
    mul,
    neg,
    num,
    plus,
    rsqrt_of,
    signed_as,
    sine_of,
    squared,
    sub,
    swish_slope,
    times,
    unless_below,
    vector_num,
    where_above,
    where_at_most,
    where_negative,
    where_product_above,
    within,
    zero_as,
)
from aclnn.kernels.simd.vector cimport vecf

cdef extern from *:
    """
    #define FAST_GELU_RATE 1.702
    #define BELOW_3 0x1.7ffffep1 /* the neighbours, as floats are */
    #define ABOVE_3 0x1.800002p1
    #define SELU_SCALE 1.0507009873554804934193349852946
    #define SELU_ALPHA 1.6732632423543772848170429916717
    """
    double FAST_GELU_RATE
    double BELOW_3
    double ABOVE_3
    double SELU_SCALE
    double SELU_ALPHA


# --- Sigmoid and what is multiplied by it -------------------------------------------------------

cdef inline num times_sigmoid(num a, num t) noexcept nogil:
    """a / (1 + e^-t), of which a double may not show that the divisor is not 2."""
    cdef double q
    if num is double:
        q = decay(t)
        return a * 0 if t == -INFINITY else times_slope(
            a, (q if t < 0 else 1) / (1 + q), t, 0.25, -STICKY)
    else:
        return div(a, add(constant(t, 1), exp_minus(t)))


cdef inline num times_sigmoid_of(num a, double rate, num x) noexcept nogil:
    """The same with t = rate x, of an operand."""
    if num is vecf:
        return div(a, add(constant(x, 1), exp_minus_product(rate, x)))
    else:
        return times_sigmoid(a, times(rate, x))


cdef inline num times_small_sigmoid(num a, num t) noexcept nogil:
    """The same where the result may be large although e^t is less than a normal number."""
    return unless_below(t, -75, times_sigmoid(a, t))


cdef inline num times_slope_of_swish(num g, num t) noexcept nogil:
    """g s (1 + t (1 - s)) with s = 1 / (1 + e^-t); its limits at the infinities.

    Over vectors it is g (1 + e^-t + t e^-t) / (1 + e^-t)^2.
    """
    cdef double q, near
    cdef num e, total
    if num is double:
        q = decay(t)
        near = -800 if t < -800 else 800 if t > 800 else t
        near = ((q if t < 0 else 1) * (1 + q + near * (1 if t < 0 else q))) / ((1 + q) * (1 + q))
        return times_slope(g, near, t, 0.5, STICKY)
    elif num is vecf:
        return mul(g, swish_slope(t))
    else:
        e = exp_minus_long(t)
        total = add(constant(t, 1), e)
        return mul(g, div(add(total, mul(t, e)), squared(total)))


cdef inline vector_num sigmoid(vector_num x, const double *p) noexcept nogil:
    return times_sigmoid(constant(x, 1), x)


cdef inline vector_num sigmoid_backward(vector_num g, vector_num y, const double *p) noexcept nogil:
    """g y (1 - y), or, where one operation rounds only once, g (y - y^2)."""
    if vector_num is vecf:
        return mul(g, less_product(y, y, y))
    else:
        return mul(mul(g, y), sub(constant(y, 1), y))


cdef inline vector_num silu(vector_num x, const double *p) noexcept nogil:
    return times_sigmoid(x, x)


cdef inline vector_num silu_backward(vector_num g, vector_num x, const double *p) noexcept nogil:
    return times_slope_of_swish(g, x)


cdef inline num swish(num x, const double *p) noexcept nogil:
    """x s(beta x); p: beta."""
    return times_sigmoid_of(x, p[0], x)


cdef inline num swish_backward(num g, num x, const double *p) noexcept nogil:
    return times_slope_of_swish(g, times(p[0], x))


cdef inline num fast_gelu(num x, const double *p) noexcept nogil:
    return times_sigmoid_of(x, FAST_GELU_RATE, x)


cdef inline num fast_gelu_backward(num g, num x, const double *p) noexcept nogil:
    return times_slope_of_swish(g, times(FAST_GELU_RATE, x))


# --- Gated units: the gate is the last element --------------------------------------------------

cdef inline vector_num glu(vector_num a, vector_num b, const double *p) noexcept nogil:
    return times_small_sigmoid(a, b)


cdef inline vector_num times_silu(vector_num a, vector_num x, const double *p) noexcept nogil:
    return times_small_sigmoid(mul(a, x), x)


cdef inline vector_num times_gelu_tanh(vector_num a, vector_num x,
                                       const double *p) noexcept nogil:
    """a x / (1 + e^(-2w)), w = sqrt(2/pi) (x + 0.044715 x^3)."""
    cdef vector_num square = times(0.07135481627260025, mul(x, x))
    cdef vector_num rate = add(constant(x, 1.5957691216057308), square)
    return times_sigmoid(mul(a, x), mul(x, rate))


cdef inline vector_num clipped_swiglu(vector_num b, vector_num a, const double *p) noexcept nogil:
    """p: alpha, limit, bias."""
    cdef vector_num limit = constant(a, p[1])
    cdef vector_num gate = where_above(a, p[1], limit, a)
    cdef vector_num below = where_above(b, p[1], limit, b)
    cdef vector_num clipped = where_above(neg(b), p[1], neg(limit), below)
    return times_sigmoid(mul(gate, add(clipped, constant(b, p[2]))), times(p[0], gate))


# --- Hyperbolic tangent -------------------------------------------------------------------------

cdef inline vector_num tanh(vector_num x, const double *p) noexcept nogil:
    """(1 - e^(-2|x|)) / (1 + e^(-2|x|)) with the sign of x."""
    cdef vector_num grown = exp_less_one(least(times(2, x)))
    return signed_as(div(neg(grown), plus(2, grown)), x)


cdef inline vector_num tanh_backward(vector_num g, vector_num y, const double *p) noexcept nogil:
    """g (1 - y^2): a vector rounds the difference once, of a pair the low part remains.  y may be
    larger than a hyperbolic tangent."""
    if vector_num is vecf:
        return mul(g, less_product(constant(y, 1), y, y))
    else:
        return mul(g, sub(constant(y, 1), mul(y, y)))


# --- Softplus and what is made of it --------------------------------------------------------------

cdef inline num softplus(num x, const double *p) noexcept nogil:
    """ln(1 + e^(beta x)) / beta; x where beta x > threshold. p: beta, threshold."""
    cdef num t = times(p[0], x)
    cdef num positive = where_negative(t, constant(t, 0), t)
    cdef num r = times(1 / p[0], add(positive, log_one_more(decay_of_product(p[0], x))))
    return where_product_above(p[0], x, p[1], x, r)


cdef inline num softplus_backward(num g, num x, const double *p) noexcept nogil:
    cdef num t = times(p[0], x)
    cdef num small = unless_below(t, -75, times_sigmoid_of(g, p[0], x))
    return where_product_above(p[0], x, p[1], g, small)


cdef inline num log_sigmoid(num x, const double *p) noexcept nogil:
    return sub(where_negative(x, x, constant(x, 0)), log_one_more(decay(x)))


cdef inline num log_sigmoid_backward(num g, num x, const double *p) noexcept nogil:
    return times_small_sigmoid(g, neg(x))


cdef inline num mish(num x, const double *p) noexcept nogil:
    """x n/d with tanh(ln(1 + e^x)) = n/d: n = e^x (e^x + 2), d = n + 2, or both times e^(-2x)."""
    cdef num q = decay(x)
    cdef num twice = times(2, q)
    cdef num square = mul(q, q)
    cdef num n = add(twice, where_negative(x, square, constant(x, 1)))
    cdef num d = add(n, where_negative(x, constant(x, 2), times(2, square)))
    return at_minus_infinity(x, NAN, div(mul(x, n), d))


cdef inline num mish_backward(num g, num x, const double *p) noexcept nogil:
    """(n d + 4 x w (1 + q)) / d^2 with q = e^-|x|, and w = q or, on the right, q^2."""
    cdef num q = decay_long(x)
    cdef num twice = times(2, q)
    cdef num square = mul(q, q)
    cdef num n = add(twice, where_negative(x, square, constant(x, 1)))
    cdef num d = add(n, where_negative(x, constant(x, 2), times(2, square)))
    cdef num w = mul(where_negative(x, q, square), plus(1, q))
    cdef num near = x
    if num is double:
        near = 800 if x > 800 else x  # infinity would make a NaN of 0
    cdef num slope = div(add(mul(n, d), mul(times(4, near), w)), mul(d, d))
    return at_minus_infinity(x, NAN, mul(g, slope))


# --- Exponential linear units ---------------------------------------------------------------------

cdef inline num grown(num x, double scale, double rate, double factor) noexcept nogil:
    """scale x on the right, factor (e^(rate x) - 1) elsewhere."""
    cdef num y = times(rate, x)
    cdef num below = times(factor, exp_less_one(least(y)))
    return where_negative(x, below, times(scale, x))


cdef inline vector_num celu(vector_num x, const double *p) noexcept nogil:
    """p: alpha. Below 0 the exponential grows, which is left to doubles."""
    return grown(x, 1, 1 / p[0], p[0] if p[0] > 0 else NAN)


cdef inline num selu(num x, const double *p) noexcept nogil:
    return grown(x, SELU_SCALE, 1, SELU_SCALE * SELU_ALPHA)


cdef inline num selu_backward(num g, num y, const double *p) noexcept nogil:
    """From the result y: what adds to it may leave few digits, but those of y are exact."""
    cdef num below = mul(g, add_all(y, SELU_SCALE * SELU_ALPHA))
    if num is double:
        return ordered(times_sum(g, y, SELU_SCALE * SELU_ALPHA) if y <= 0 else g * SELU_SCALE, y)
    else:
        return where_above(y, 0, times(SELU_SCALE, g), below)


cdef inline vector_num rrelu_with_noise(vector_num x, const double *p) noexcept nogil:
    """x, or below 0 x times the middle of p[0] and p[1], of which a float lacks digits if it is
    small."""
    cdef double slope = 0.5 * p[0] + 0.5 * p[1]
    return where_above(x, 0, x, times(NAN if -1e-30 < slope < 1e-30 else slope, x))


# --- Straight lines between -3 and 3 --------------------------------------------------------------

cdef inline num times_ramp(num a, double rate, num x) noexcept nogil:
    """a (rate x + 3) / 6 from -3 to 3, where sums of pairs are exact, whichever part is larger.

    Beside 0, where a double has no room for the sum, ties are broken.
    """
    cdef double r
    if num is double:
        r = a * (rate * x + 3) / 6
        return product_to_odd(a, 0.5, rate * x / 6) if fabs(x) < 1e-9 else r
    else:
        return times(rate / 6, mul(a, plus(3 / rate, x)))


cdef inline num hardsigmoid(num x, const double *p) noexcept nogil:
    cdef num near = bounded(x, -3, 3)
    if num is double:
        return times_ramp(1, 1, near)
    else:
        return times(1 / 6.0, plus(3, near))


cdef inline num hardswish(num x, const double *p) noexcept nogil:
    cdef num middle
    if num is double:
        middle = x if x > 3 else times_ramp(x, 1, x)
    else:
        middle = times(1 / 6.0, mul(x, plus(3, bounded(x, -3, 3))))
    return where_at_most(x, -3, constant(x, 0), middle)


cdef inline num hardswish_backward(num g, num x, const double *p) noexcept nogil:
    """At -3 and 3 that of the middle; a NaN lets the gradient pass."""
    cdef num middle = where_above(x, 3, g, times_ramp(g, 2, x))
    return at_nan(x, g, where_at_most(x, -ABOVE_3, constant(x, 0), middle))


cdef inline num hardswish_backward_v2(num g, num x, const double *p) noexcept nogil:
    """At -3 and 3 that of the ends."""
    cdef num middle = where_above(x, BELOW_3, g, times_ramp(g, 2, x))
    return at_nan(x, g, where_at_most(x, -3, constant(x, 0), middle))


# --- Elementary functions -------------------------------------------------------------------------

cdef inline vector_num exp(vector_num x, const double *p) noexcept nogil:
    return within(x, -87, 87, exp_minus(neg(x)))


cdef inline vector_num exp2(vector_num x, const double *p) noexcept nogil:
    return exp2_of(x)


cdef inline vector_num expm1(vector_num x, const double *p) noexcept nogil:
    return within(x, -87, 87, zero_as(exp_less_one(x), x))


cdef inline vector_num log(vector_num x, const double *p) noexcept nogil:
    return log_of(x)


cdef inline vector_num log2(vector_num x, const double *p) noexcept nogil:
    return times(1.4426950408889634, log_of(x))


cdef inline vector_num log10(vector_num x, const double *p) noexcept nogil:
    return times(0.4342944819032518, log_of(x))


cdef inline vector_num log1p(vector_num x, const double *p) noexcept nogil:
    return zero_as(log_of_sum(x), x)


cdef inline vector_num rsqrt(vector_num x, const double *p) noexcept nogil:
    return rsqrt_of(x)


cdef inline vector_num sin(vector_num x, const double *p) noexcept nogil:
    return sine_of(x, 0)


cdef inline vector_num cos(vector_num x, const double *p) noexcept nogil:
    return sine_of(x, 1)


cdef inline vector_num erf(vector_num x, const double *p) noexcept nogil:
    return erf_of(x)
