"""The operators' formulas: one inline function each, branch-free, on float or double.

Both arms of a choice are computed and one is selected, so that the loops around a formula
vectorise; an overflow in the arm not taken therefore never shows.  Formulas follow CANN's public
operator documentation.

`p` are the call's scalars.  A float result that is stored as float32 is within 1 ULP of the exact
value: only its last rounding counts, because what comes before is done in double or in pairs of
floats.  A float result that becomes a half only needs an error with a bound: where the bound leaves
open which half is nearest, the double form decides.  `..._suspect` tells which elements a float
form does not know and leaves to the double form, `..._odd` for which scalars that is all of them.
"""

from libc.math cimport NAN
from libc.stdint cimport uint32_t

cdef extern from "vector_math.h" nogil:
    float fma_f32(float, float, float) noexcept
    double fma_f64(double, double, double) noexcept
    uint32_t bits_of_f32(float) noexcept
    float f32_of_bits(uint32_t) noexcept
    float ordered_f32(float, float) noexcept
    double ordered_f64(double, double) noexcept
    double product_error(double, double, double) noexcept
    double odd_f64(double, double) noexcept
    float exp_f32(float, float) noexcept
    float exp_pair_f32(float, float, float *, float *, float *) noexcept
    double exp_f64(double) noexcept
    double exp_short(double) noexcept
    double expm1_f64(double) noexcept
    double mills_variable(double) noexcept
    double gelu_slope_factor(double) noexcept
    double gelu_slope_short(double) noexcept
    float gelu_slope_f32(float) noexcept
    double mills_factor(double) noexcept
    double log_f64(double) noexcept
    float fabsf(float) noexcept
    double fabs(double) noexcept
    double INFINITY

ctypedef fused real:
    float
    double


cdef inline real ordered(real r, real x) noexcept nogil:
    """`r`, or the one NaN where `r` or `x` is any."""
    if real is float:
        return ordered_f32(r, x)
    else:
        return ordered_f64(r, x)


cdef inline real canonical(real r) noexcept nogil:
    """The same number, and one NaN for all: bits must not depend on the lane."""
    return ordered(r, r)


cdef inline real size_of(real x) noexcept nogil:
    if real is float:
        return fabsf(x)
    else:
        return fabs(x)


cdef inline double exponent(double y) noexcept nogil:
    """`y`, moved to where e^y is a normal number."""
    cdef double not_low = y if y > -708 else -708
    return not_low if not_low < 708 else 708


cdef inline double odd_product(double a, double b, double b_low) noexcept nogil:
    """a * (b + b_low), rounded to odd: a later rounding to a half breaks ties as it should."""
    cdef double p = a * b
    return odd_f64(p, product_error(a, b, p) + a * b_low)


cdef inline bint magnitude_within(float x, uint32_t low, uint32_t high) noexcept nogil:
    """Whether the bits of `x` lie in [low, high]: one comparison for both ends."""
    return bits_of_f32(x) - low <= high - low


# --- Leaky ReLU -------------------------------------------------------------------------------

cdef inline real leaky_relu(real x, const double *p) noexcept nogil:
    return leaky_relu_backward(x, x, p)


cdef inline real leaky_relu_backward(real g, real x, const double *p) noexcept nogil:
    cdef real negative = canonical(g * <real>p[0])
    return g if x > 0 else negative


# --- Hard shrinkage: what passes keeps every bit ------------------------------------------------

cdef inline real hardshrink_backward(real g, real x, const double *p) noexcept nogil:
    cdef real bound = <real>0 if p[0] < 0 else <real>p[0]
    return g if (x > bound) | (x < -bound) else <real>0


cdef inline real hardshrink(real x, const double *p) noexcept nogil:
    return hardshrink_backward(x, x, p)


# --- ELU ----------------------------------------------------------------------------------------

cdef inline double elu(double x, const double *p) noexcept nogil:
    cdef double below = x if x <= 0 else 0
    cdef double y = exponent(p[2] * below)
    cdef double growth = expm1_f64(y)
    # Near 0 the growth is y + y^2/2, of which a double may not show the second part.
    cdef double growth_low = 0.5 * y * y if y > -1e-9 else 0
    cdef double negative = odd_product(p[1] * p[0], growth, growth_low if growth == y else 0)
    cdef double r = negative if x <= 0 else x * p[1]
    return canonical(r)


cdef inline real elu_backward(real g, real x, const double *p) noexcept nogil:
    cdef real slope = <real>(p[2] * p[0] * p[1])
    cdef real rate = <real>p[2]
    cdef real below = x if x < 0 else <real>0
    cdef real y = rate * below
    cdef real decay, bounded
    if real is float:
        # Beyond the bound an element is suspect, and what is made of it does not matter.
        decay = exp_f32(y if y > <float>-87 else <float>-87, fma_f32(rate, below, -y))
    else:
        bounded = y if fabs(y) < 708 else (708.0 if rate < 0 else -708.0)
        decay = exp_f64(bounded)
        # Between that and infinity no float shows a difference, unless the gradient is infinite.
        decay = decay if fabs(y) < INFINITY else (INFINITY if rate < 0 else 0.0)
    cdef real negative = g * (slope * decay)
    cdef real positive = g * <real>p[1]
    return canonical(negative if x <= 0 else positive)


cdef inline float elu_backward_single(float g, float x, const double *p) noexcept nogil:
    """The product of three numbers, each in two parts: only the last rounding counts."""
    cdef double exact_slope = p[2] * p[0] * p[1]
    cdef float slope = <float>exact_slope
    cdef float slope_low = <float>(exact_slope - slope)
    cdef float rate = <float>p[2]
    # Beyond the bound every result that is not suspect is 0.
    cdef float bound = <float>(-170.0 / p[2])
    cdef float below = x if x > bound else bound
    below = below if below < 0 else <float>0
    cdef float y = rate * below
    cdef float more, scale, scale2
    cdef float high = exp_pair_f32(y, fma_f32(rate, below, -y), &more, &scale, &scale2)
    cdef float decay = slope * high
    cdef float decay_low = fma_f32(slope, high, -decay) + fma_f32(slope, more, slope_low * high)
    cdef float negative = fma_f32(g, decay, g * decay_low) * scale * scale2
    cdef float positive = g * <float>p[1]
    return canonical(negative if x <= 0 else positive)


cdef inline bint elu_backward_single_suspect(float g, float x, const double *p) noexcept nogil:
    """Gradients outside [2^-80, 2^60] and -0: a part of the product might be lost."""
    cdef uint32_t size = bits_of_f32(g) & <uint32_t>0x7FFFFFFF
    return (size - <uint32_t>0x17800000 > <uint32_t>0x46000000) & (bits_of_f32(g) != 0)


cdef inline bint elu_backward_odd(const double *p) noexcept nogil:
    """Scalars so far from 1 that the float form might over- or underflow on the way."""
    cdef double slope = p[0] * p[1] * p[2]
    return not ((p[2] > 0) & (p[2] <= 1024) & (slope <= 1048576) & (slope >= 9.5e-7))


cdef inline bint elu_backward_suspect(float g, float x, const double *p) noexcept nogil:
    """Exponentials so small that the float form may lose them: y <= -60."""
    return magnitude_within(<float>p[2] * x, 0xC2700000, 0xFF800000)


cdef inline double elu_backward_result(double g, double y, const double *p) noexcept nogil:
    """The sum's rounding error takes part: it may be all that breaks a tie."""
    cdef double floor = p[0] * p[1]
    cdef double total = y + floor
    cdef double taken = total - y
    cdef double lost = (y - (total - taken)) + (floor - taken)
    cdef double negative = odd_product(g * p[2], total, lost)
    cdef double r = negative if y <= 0 else g * p[1]
    return canonical(r)


# --- GELU ---------------------------------------------------------------------------------------

cdef inline double times_half_and(double a, double b, double linear) noexcept nogil:
    """a * b, where b is 1/2 + linear near 0.

    There the linear part may be all that tells a * b from a tie, and be less than a double shows.
    """
    cdef bint near = fabs(linear) < 1e-9
    cdef double b_high = 0.5 + linear if near else b
    cdef double b_low = linear - (b_high - 0.5) if near else 0
    return odd_product(a, b_high, b_low)


cdef inline double gelu(double x, const double *p) noexcept nogil:
    """x Phi(x) through Mills' ratio: Phi(-t) = phi(t) M(t)."""
    cdef double t = fabs(x)
    t = t if t < 37.5 else 37.5
    cdef double ratio = mills_factor(mills_variable(t)) / (t + 4.0)
    cdef double tail = exp_f64(-0.5 * t * t) * 0.3989422804014327 * ratio
    cdef double r = times_half_and(x, 1.0 - tail if x > 0 else tail, 0.3989422804014327 * x)
    r = x - x if x == -INFINITY else r
    return canonical(r)


cdef inline real gelu_backward(real g, real x, const double *p) noexcept nogil:
    """GELU'(-t) = phi(t) (t0 - t) S(t), and GELU'(t) = 1 - GELU'(-t).

    The root t0 is a factor, in two parts, so that the derivative keeps all its digits beside it.
    """
    cdef real t = size_of(x)
    cdef real tail, slope
    if real is float:
        t = t if t < <float>13 else <float>13
        tail = exp_f32(<float>-0.5 * t * t, 0) * (
            (<float>0.75179153680801391602 - t) - <float>1.1144448e-8
        ) * gelu_slope_f32(<float>1 / fma_f32(t, <float>0.25, 1))
        slope = <float>1 - tail if x > 0 else tail
        return ordered(g * slope, x)
    else:
        t = t if t < 37.5 else 37.5
        tail = exp_f64(-0.5 * t * t) * 0.3989422804014327 * (
            (0.7517915246935645 - t) - 5.98e-17) * gelu_slope_factor(mills_variable(t))
        slope = 1.0 - tail if x > 0 else tail
        slope = 0 if x == -INFINITY else slope
        return ordered(times_half_and(g, slope, 0.7978845608028654 * x), x)


cdef inline float gelu_backward_single(float g, float x, const double *p) noexcept nogil:
    """The same for float32: what must be exact in double, the rest in float beside it.

    The reciprocal is float's and one step of Newton's; a double division takes longer than all the
    rest.
    """
    cdef float limited = fabsf(x)
    limited = limited if limited < <float>20 else <float>20
    cdef double t = limited
    cdef double d = fma_f64(t, 0.25, 1.0)
    cdef double near = <float>1 / fma_f32(limited, <float>0.25, <float>1)
    cdef double u = fma_f64(near, fma_f64(-d, near, 1.0), near)
    cdef double tail = exp_short(-0.5 * t * t) * ((0.7517915246935645 - t) * gelu_slope_short(u))
    cdef double slope = 1.0 - tail if x > 0 else tail
    cdef float r = <float>(g * slope)
    r = r if x > -<float>INFINITY else g * <float>0
    return ordered_f32(r, x)


cdef inline bint gelu_backward_suspect(float g, float x, const double *p) noexcept nogil:
    """Where the float form clamps, and does not know how the derivative vanishes: x <= -12.9."""
    return magnitude_within(x, 0xC14E6666, 0xFF800000)


cdef inline double sigmoid_of_tanh_form(double x) noexcept nogil:
    """(1 + tanh(w))/2 = 1/(1 + e^(-2w)) with w = sqrt(2/pi) (x + 0.044715 x^3)."""
    cdef double near = x if x < 40.0 else 40.0
    near = near if near > -40.0 else -40.0
    cdef double w2 = near * fma_f64(0.07135481627159953, near * near, 1.5957691216057308)
    cdef double e = exp_f64(exponent(-fabs(w2)))
    return (e if w2 < 0 else 1.0) / (1.0 + e)


cdef inline double gelu_tanh(double x, const double *p) noexcept nogil:
    cdef double r = times_half_and(x, sigmoid_of_tanh_form(x), 0.3989422804014327 * x)
    r = x - x if x == -INFINITY else r
    return canonical(r)


cdef inline double gelu_backward_tanh(double g, double x, const double *p) noexcept nogil:
    """sigma (1 + 2 w' x (1 - sigma)), with 1 - sigma(x) = sigma(-x)."""
    cdef double sigma = sigmoid_of_tanh_form(x)
    cdef double near = x if x < 40.0 else 40.0
    near = near if near > -40.0 else -40.0
    cdef double rate = fma_f64(0.21406444881479858, near * near, 1.5957691216057308)
    cdef double slope = sigma * fma_f64(near * rate, sigmoid_of_tanh_form(-x), 1.0)
    slope = 0.0 if x == -INFINITY else slope
    return ordered(times_half_and(g, slope, 0.7978845608028654 * x), x)


# --- Logit --------------------------------------------------------------------------------------

cdef inline double logit(double x, const double *p) noexcept nogil:
    """ln(z/(1-z)); beside z = 1/2 the quotient is so near 1 that its logarithm stays accurate."""
    cdef double eps = p[0]
    cdef double low = 0.0 if eps < 0 else eps
    cdef double high = 1.0 if eps < 0 else <double>(<float>1.0 - <float>eps)
    cdef double z = low if x < low else x
    z = high if z > high else z
    cdef double r = log_f64(z / (1.0 - z))
    r = -INFINITY if z == 0 else r
    r = INFINITY if z == 1 else r
    r = r if (z >= 0) & (z <= 1) else NAN
    r = r if (eps >= 0) | ((x >= 0) & (x <= 1)) else NAN
    return canonical(r if x == x else x)


cdef inline double outside_of_logit(double dy, double eps) noexcept nogil:
    """The gradient where x lies outside [eps, 1 - eps], or for every x where eps is 1 or more."""
    cdef double r = 0 if (eps >= 0) & (eps < 1) else NAN
    r = dy * INFINITY if eps == 1 else r
    return 0 if eps == INFINITY else r


cdef inline double logit_backward_precise(double x, double dy, const double *p) noexcept nogil:
    """dy / (x (1 - x)) between the bounds; the order of the cases is the documented one."""
    cdef double eps = p[0]
    cdef double low = 0 if eps < 0 else eps
    cdef double high = 1 if eps < 0 else <double>(<float>1.0 - <float>eps)
    cdef bint inside = (x >= low) & (x <= high) & (eps < 1)
    cdef double q = dy / (x * (1 - x)) if inside else outside_of_logit(dy, eps)
    return canonical(q if x - x == 0 else NAN)


cdef inline float logit_backward(float x, float dy, const double *p, bint corrected) noexcept nogil:
    """dy / (x (1 - x)) by one reciprocal, `corrected` by the residual of the quotient.

    For 0 < x < 1 and eps < 1 only. The residual is scaled, so that no gradient is too small for it.
    """
    cdef float scale = <float>4294967296.0
    cdef float one = 1, zero = 0
    cdef float low = <float>p[0]
    cdef float high = <float>2 if p[0] < 0 else <float>1 - <float>p[0]
    cdef float w = one - x
    cdef float product = x * w
    cdef float reciprocal = one / product
    cdef float near = dy * reciprocal
    cdef float q = near
    cdef float product_low, residual, scaled_near
    if corrected:
        product_low = fma_f32(x, w, -product) + x * ((one - w) - x)
        scaled_near = -near * scale
        residual = fma_f32(scaled_near, product_low, fma_f32(scaled_near, product, dy * scale))
        q = fma_f32(residual, reciprocal * (one / scale), near)
        q = near if dy == 0 else q
    q = q if x >= low else zero
    q = q if x <= high else zero
    return canonical(q)


cdef inline bint logit_backward_odd(const double *p) noexcept nogil:
    return not p[0] < 1


cdef inline bint logit_backward_suspect(float x, float dy, const double *p) noexcept nogil:
    """What the float form does not know: x outside [2^-60, 1), and gradients above 2^30."""
    return (bits_of_f32(x) - <uint32_t>0x21800000 > <uint32_t>0x1DFFFFFF) | (
        bits_of_f32(dy) & <uint32_t>0x7FFFFFFF > <uint32_t>0x4E800000)
