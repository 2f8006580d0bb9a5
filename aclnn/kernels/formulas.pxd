"""The operators' formulas: one inline function each, branch-free, on float or double.

Both arms of a choice are computed and one is selected, so that the loops around a formula
vectorise; an overflow in the arm not taken therefore never shows.  Formulas follow CANN's public
operator documentation.

`p` are the call's scalars.  Most have besides a form that is made for registers and computes in
float (`lane_formulas.h` lists them); what that leaves open, the double form here decides.
"""

from libc.math cimport NAN

cdef extern from "vector_math.h" nogil:
    double fma_f64(double, double, double) noexcept
    float ordered_f32(float, float) noexcept
    double ordered_f64(double, double) noexcept
    double product_error(double, double, double) noexcept
    double odd_f64(double, double) noexcept
    double exp_f64(double) noexcept
    double expm1_f64(double) noexcept
    double mills_variable(double) noexcept
    double gelu_slope_factor(double) noexcept
    double mills_factor(double) noexcept
    double log_f64(double) noexcept
    double fabs(double) noexcept
    double INFINITY

cdef extern from *:
    """
    #define BARELY 0x1p-80 /* no double shows it beside 1 */
    """
    double BARELY

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


cdef inline double exponent(double y) noexcept nogil:
    """`y`, moved to where e^y is a normal number; a NaN stays."""
    cdef double not_low = -708 if y < -708 else y
    return 708 if not_low > 708 else not_low


cdef inline double odd_product(double a, double b, double b_low) noexcept nogil:
    """a * (b + b_low), rounded to odd: a later rounding to a half breaks ties as it should."""
    cdef double p = a * b
    return odd_f64(p, product_error(a, b, p) + a * b_low)


# --- Leaky ReLU -------------------------------------------------------------------------------

cdef inline real leaky_relu(real x, const double *p) noexcept nogil:
    return leaky_relu_backward(x, x, p)


cdef inline real leaky_relu_backward(real g, real x, const double *p) noexcept nogil:
    cdef real negative = canonical(g * <real>p[0])
    return g if x > 0 else negative


# --- Hard shrinkage: what passes keeps every bit ------------------------------------------------

cdef inline real passed(real g, real x, real bound) noexcept nogil:
    return g if (x > bound) | (x < -bound) else <real>0


cdef inline real hardshrink_backward(real g, real x, const double *p) noexcept nogil:
    """A bound below zero counts as zero."""
    return passed(g, x, <real>0 if p[0] < 0 else <real>p[0])


cdef inline real hardshrink(real x, const double *p) noexcept nogil:
    """With a bound below zero every number passes, zeros too."""
    return passed(x, x, <real>p[0])


# --- ELU ----------------------------------------------------------------------------------------

cdef inline double elu(double x, const double *p) noexcept nogil:
    cdef double below = x if x <= 0 else 0
    cdef double far = p[2] * below
    cdef double y = exponent(far)
    cdef double growth = expm1_f64(y)
    # What a double does not show: the second part of y + y^2/2, and that e^y - 1 never reaches -1.
    cdef double low = 0.5 * y * y if growth == y else 0
    cdef double more = BARELY if growth == -1 else 0
    growth = INFINITY if far == INFINITY else growth
    cdef double negative = odd_product(p[1] * p[0], growth, low + more)
    negative = -(p[1] * p[0]) if far == -INFINITY else negative
    return canonical(negative if x <= 0 else x * p[1])


cdef inline double elu_f64(double x, const double *p) noexcept nogil:
    """The same for results in double, whose range is the exponential's: that is taken in two.

    What rounding takes from the exponent shows where it is large; where it is tiny the result is a
    product, of which the exponent alone may be less than a double can be.
    """
    cdef double below = x if x <= 0 else 0
    cdef double far = p[2] * below
    cdef double y = exponent(far)
    cdef double lost = product_error(p[2], below, far)
    cdef double grown = expm1_f64(y)
    cdef double growth = grown + (grown + 1) * lost
    growth = growth if fabs(lost) < 1 else grown  # always, unless it is no number
    growth = INFINITY if far == INFINITY else growth
    cdef double rest = exp_f64(exponent(far - y if far > y else 0))
    cdef double scale = p[1] * p[0]
    cdef double slope = scale * p[2]
    cdef double tiny = 1e-17 if slope != 0 else 0
    cdef double negative = scale * growth * rest
    negative = slope * below if (fabs(far) < tiny) & (x < 0) else negative
    # Times 0 only the sign counts, which an exponent that doubles have no room for does not show.
    cdef double sign = below if p[2] > 0 else -below
    cdef bint nothing = (scale == 0) & ((p[0] == 0) | (p[1] == 0)) & (p[2] != 0)
    negative = scale * sign if nothing & (x < 0) & (x - x == 0) & (p[2] - p[2] == 0) else negative
    return canonical(negative if x <= 0 else x * p[1])


cdef inline double elu_backward(double g, double x, const double *p) noexcept nogil:
    cdef double below = x if x < 0 else 0
    cdef double y = p[2] * below
    cdef double decay = exp_f64(exponent(y))
    # A double may not show that e^y is less or more than 1; its neighbours do, and break ties.
    cdef double beside = 0.9999999999999999 if y < 0 else 1.0
    beside = 1.0000000000000002 if y > 0 else beside
    decay = beside if decay == 1 else decay
    # Between the bounds and infinity no float shows a difference, unless the gradient is infinite.
    decay = INFINITY if y == INFINITY else decay
    decay = 0.0 if y == -INFINITY else decay
    # The gradient first: a slope without end would make a NaN of 0, one that vanishes of infinity.
    cdef double negative = g * (p[2] * p[0] * p[1]) * decay
    return canonical(negative if x <= 0 else g * p[1])


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

cdef inline double times_slope(double a, double slope, double x, double rate,
                               double beyond) noexcept nogil:
    """a * slope, where the slope is 1/2 + rate x near 0, and 1 + `beyond` where it seems to be 1.

    That may be all that tells the product from a tie, and be less than a double shows.
    """
    cdef double linear = rate * x
    cdef bint near = fabs(linear) < 1e-9
    cdef double high = 0.5 + linear if near else slope
    cdef double low = linear - (high - 0.5) if near else 0
    cdef double more = beyond if (slope == 1) & (x < INFINITY) else 0
    return odd_product(a, high, low + more)


cdef inline double gelu(double x, const double *p) noexcept nogil:
    """x Phi(x) through Mills' ratio: Phi(-t) = phi(t) M(t)."""
    cdef double t = fabs(x)
    t = t if t < 37.5 else 37.5
    cdef double ratio = mills_factor(mills_variable(t)) / (t + 4.0)
    cdef double tail = exp_f64(-0.5 * t * t) * 0.3989422804014327 * ratio
    cdef double r = times_slope(x, 1.0 - tail if x > 0 else tail, x, 0.3989422804014327, -BARELY)
    r = x - x if x == -INFINITY else r
    return canonical(r)


cdef inline double gelu_backward(double g, double x, const double *p) noexcept nogil:
    """GELU'(-t) = phi(t) (t0 - t) S(t), and GELU'(t) = 1 - GELU'(-t).

    The root t0 is a factor, in two parts, so that the derivative keeps all its digits beside it.
    """
    cdef double t = fabs(x)
    t = t if t < 37.5 else 37.5
    cdef double tail = exp_f64(-0.5 * t * t) * 0.3989422804014327 * (
        (0.7517915246935645 - t) - 5.98e-17) * gelu_slope_factor(mills_variable(t))
    cdef double slope = 1.0 - tail if x > 0 else tail
    cdef double r = times_slope(g, slope, x, 0.7978845608028654, BARELY)
    r = g * 0 if x == -INFINITY else r
    return ordered(r, x)


cdef inline double bounded(double x) noexcept nogil:
    """`x`, as far as the form with tanh tells it from what lies beyond; a NaN stays."""
    cdef double near = x if x < 40.0 else 40.0
    return near if near > -40.0 else -40.0


cdef inline double decay_of_tanh_form(double near) noexcept nogil:
    """e^(-2|w|) with w = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh(w))/2 = 1/(1 + e^(-2w))."""
    cdef double w2 = near * fma_f64(0.07135481627260025, near * near, 1.5957691216057308)
    return exp_f64(exponent(-fabs(w2)))


cdef inline double gelu_tanh(double x, const double *p) noexcept nogil:
    cdef double e = decay_of_tanh_form(bounded(x))
    cdef double sigma = (e if x < 0 else 1.0) / (1.0 + e)
    cdef double r = times_slope(x, sigma, x, 0.3989422804014327, -BARELY)
    r = x - x if x == -INFINITY else r
    return canonical(r)


cdef inline double gelu_backward_tanh(double g, double x, const double *p) noexcept nogil:
    """sigma (1 + 2 w' x (1 - sigma)), where sigma and 1 - sigma share a denominator."""
    cdef double near = bounded(x)
    cdef double e = decay_of_tanh_form(near)
    cdef double rate = fma_f64(0.21406444881780074, near * near, 1.5957691216057308)
    cdef double rest = (1.0 if x < 0 else e) / (1.0 + e)
    cdef double slope = (e if x < 0 else 1.0) / (1.0 + e) * fma_f64(near * rate, rest, 1.0)
    cdef double r = times_slope(g, slope, x, 0.7978845608028654, BARELY)
    r = g * 0 if x == -INFINITY else r
    return ordered(r, x)


# --- Logit --------------------------------------------------------------------------------------

cdef inline double logit(double x, const double *p) noexcept nogil:
    """ln(z/(1-z)); beside z = 1/2 the quotient is so near 1 that its logarithm stays accurate."""
    cdef double eps = p[0]
    cdef double low = 0.0 if eps < 0 else eps
    cdef double high = 1.0 if eps < 0 else <double>(<float>1.0 - <float>eps)
    cdef double z = high if x > high else x
    z = low if x < low else z  # decides where eps is more than 1/2
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


cdef inline double logit_backward(double x, double dy, const double *p) noexcept nogil:
    """dy / (x (1 - x)) between the bounds; the order of the cases is the documented one."""
    cdef double eps = p[0]
    cdef double low = 0 if eps < 0 else eps
    cdef double high = 1 if eps < 0 else <double>(<float>1.0 - <float>eps)
    cdef bint inside = (x >= low) & (x <= high) & (eps < 1)
    cdef double q = dy / (x * (1 - x)) if inside else outside_of_logit(dy, eps)
    return canonical(q if x - x == 0 else NAN)
