"""The operators' formulas: one inline function each, branch-free, on float or double.

Both arms of a choice are computed and one is selected, so that the loops around a formula
vectorise; an overflow in the arm not taken therefore never shows.  Formulas follow CANN's public
operator documentation.

`p` are the call's scalars. Formulas that end in a sum of exponentials are evaluated in double for
every dtype; those made of a few roundings have a float form whose last rounding is the only one
that counts.  With `for_half` a float result is rounded to odd where it is inexact: rounding it
once more, to a half, then gives the half nearest to the exact value.
"""

from libc.math cimport NAN
from libc.stdint cimport uint32_t

cdef extern from "vector_math.h" nogil:
    float fma_f32(float, float, float) noexcept
    double fma_f64(double, double, double) noexcept
    uint32_t bits_of_f32(float) noexcept
    float f32_of_bits(uint32_t) noexcept
    double exp_f64(double) noexcept
    double expm1_f64(double) noexcept
    double mills_variable(double) noexcept
    double gelu_slope_factor(double) noexcept
    double mills_factor(double) noexcept
    double log_f64(double) noexcept
    float fabsf(float) noexcept
    double fabs(double) noexcept
    double INFINITY

ctypedef fused real:
    float
    double


cdef inline real canonical(real r) noexcept nogil:
    """The same number, and one NaN for all: bits must not depend on the lane."""
    return r if r == r else <real>NAN


cdef inline float to_odd(float r, float residual) noexcept nogil:
    """`r`, or its odd neighbour on the side where `residual` says the exact value lies."""
    cdef uint32_t b = bits_of_f32(r)
    cdef uint32_t inexact = (residual < 0) | (residual > 0)
    cdef uint32_t inward = (bits_of_f32(residual) ^ b) >> 31
    return f32_of_bits(b + (inexact & ~b & 1) * (1 - 2 * inward))


# --- Leaky ReLU -------------------------------------------------------------------------------

cdef inline real scaled(real x, real factor, bint for_half) noexcept nogil:
    """x * factor; the product's rounding error decides the last bit when it is rounded again."""
    cdef real r = x * factor
    cdef float residual, tiny
    if real is float:
        if for_half:
            residual = fma_f32(x, factor, -r)
            # Where the product's error would be lost below the smallest float: everything larger.
            tiny = fma_f32(x * <float>4294967296.0, factor * <float>4294967296.0,
                           -r * <float>18446744073709551616.0)
            return to_odd(r, tiny if fabsf(r) < <float>8.7e-19 else residual)
    return r


cdef inline real leaky_relu(real x, const double *p, bint for_half) noexcept nogil:
    cdef real negative = canonical(scaled(x, <real>p[0], for_half))
    return x if x > 0 else negative


cdef inline real leaky_relu_backward(real g, real x, const double *p, bint for_half) noexcept nogil:
    cdef real negative = canonical(scaled(g, <real>p[0], for_half))
    return g if x > 0 else negative


# --- Hard shrinkage: what passes keeps every bit ------------------------------------------------

cdef inline real hardshrink_backward(real g, real x, const double *p, bint for_half) noexcept nogil:
    cdef real bound = 0 if p[0] < 0 else <real>p[0]
    return g if (x > bound) | (x < -bound) else <real>0


cdef inline real hardshrink(real x, const double *p, bint for_half) noexcept nogil:
    return hardshrink_backward(x, x, p, for_half)


# --- ELU ----------------------------------------------------------------------------------------

cdef inline double elu(double x, const double *p) noexcept nogil:
    cdef double below = x if x <= 0 else 0
    cdef double negative = p[1] * p[0] * expm1_f64(p[2] * below)
    cdef double r = negative if x <= 0 else x * p[1]
    return canonical(r)


cdef inline double elu_backward(double g, double x, const double *p) noexcept nogil:
    cdef double below = x if x <= 0 else 0
    cdef double negative = g * (p[2] * p[0] * p[1] * exp_f64(p[2] * below))
    cdef double r = negative if x <= 0 else g * p[1]
    return canonical(r)


cdef inline double elu_backward_result(double g, double y, const double *p) noexcept nogil:
    cdef double negative = g * p[2] * (y + p[0] * p[1])
    cdef double r = negative if y <= 0 else g * p[1]
    return canonical(r)


# --- GELU ---------------------------------------------------------------------------------------

cdef inline double gelu(double x, const double *p) noexcept nogil:
    """x Phi(x) through Mills' ratio: Phi(-t) = phi(t) M(t)."""
    cdef double t = fabs(x)
    t = t if t < 38.5 else 38.5
    cdef double ratio = mills_factor(mills_variable(t)) / (t + 4.0)
    cdef double tail = exp_f64(-0.5 * t * t) * 0.3989422804014327 * ratio
    cdef double r = x * (1.0 - tail if x > 0 else tail)
    r = x - x if x == -INFINITY else r
    return canonical(r)


cdef inline double gelu_backward(double g, double x, const double *p) noexcept nogil:
    """GELU'(-t) = phi(t) (t0 - t) S(t), and GELU'(t) = 1 - GELU'(-t).

    The root t0 is a factor, so that the derivative keeps all its digits beside it.
    """
    cdef double t = fabs(x)
    t = t if t < 37.5 else 37.5
    cdef double to_root = (0.7517915246935645 - t) - 5.98e-17
    cdef double tail = exp_f64(-0.5 * t * t) * 0.3989422804014327 * (
        to_root * gelu_slope_factor(mills_variable(t)))
    cdef double slope = 1.0 - tail if x > 0 else tail
    slope = slope if x == x else x
    slope = 0.0 if x == -INFINITY else slope
    return canonical(g * slope)


cdef inline double sigmoid_of_tanh_form(double x) noexcept nogil:
    """(1 + tanh(w))/2 = 1/(1 + e^(-2w)) with w = sqrt(2/pi) (x + 0.044715 x^3)."""
    cdef double near = x if x < 40.0 else 40.0
    near = near if near > -40.0 else -40.0
    cdef double w2 = near * fma_f64(0.07135481627159953, near * near, 1.5957691216057308)
    cdef double e = exp_f64(-fabs(w2))
    return (e if w2 < 0 else 1.0) / (1.0 + e)


cdef inline double gelu_tanh(double x, const double *p) noexcept nogil:
    cdef double r = x * sigmoid_of_tanh_form(x)
    r = x - x if x == -INFINITY else r
    return canonical(r)


cdef inline double gelu_backward_tanh(double g, double x, const double *p) noexcept nogil:
    """sigma (1 + 2 w' x (1 - sigma)), with 1 - sigma(x) = sigma(-x)."""
    cdef double sigma = sigmoid_of_tanh_form(x)
    cdef double near = x if x < 40.0 else 40.0
    near = near if near > -40.0 else -40.0
    cdef double rate = fma_f64(0.21406444881479858, near * near, 1.5957691216057308)
    cdef double slope = sigma * fma_f64(near * rate, sigmoid_of_tanh_form(-x), 1.0)
    slope = slope if x == x else x
    slope = 0.0 if x == -INFINITY else slope
    return canonical(g * slope)


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


cdef inline real outside_of_logit(real dy, real eps) noexcept nogil:
    """The gradient where x lies outside [eps, 1 - eps], or for every x where eps is 1 or more."""
    cdef real r = 0 if (eps >= 0) & (eps < 1) else <real>NAN
    r = dy * <real>INFINITY if eps == 1 else r
    return 0 if eps == <real>INFINITY else r


cdef inline bint in_logit_bounds(real x, real eps) noexcept nogil:
    cdef real low = 0 if eps < 0 else eps
    cdef real high = 1 if eps < 0 else <real>(<float>1.0 - <float>eps)
    return (x >= low) & (x <= high) & (eps < 1)


cdef inline real logit_backward(real x, real dy, const double *p, bint for_half) noexcept nogil:
    """dy / (x (1 - x)): one reciprocal, then a correction by the residual of the quotient."""
    cdef real eps = <real>p[0]
    cdef real w = 1 - x
    cdef real product = x * w
    cdef real q, w_low, product_low, reciprocal, near, residual
    if real is float:
        w_low = (1 - w) - x
        product_low = fma_f32(x, w, -product) + x * w_low
        reciprocal = 1 / product
        near = dy * reciprocal
        residual = fma_f32(-near, product_low, fma_f32(-near, product, dy))
        q = fma_f32(residual, reciprocal, near)
        if for_half:
            q = to_odd(q, fma_f32(-q, product_low, fma_f32(-q, product, dy)))
        q = near if dy == 0 else q
    else:
        q = dy / product
    q = q if in_logit_bounds(x, eps) else outside_of_logit(dy, eps)
    return canonical(q if x - x == 0 else <real>NAN)


cdef inline bint logit_backward_suspect(float x, float dy, const double *p) noexcept nogil:
    """Whether the float form may be wrong: at 0 and 1, and where a residual could be lost."""
    cdef float size = fabsf(dy)
    cdef bint plain = (x >= <float>8.7e-19) & (x < 1) & (size <= <float>1.15e18) & (
        (size >= <float>8.7e-19) | (size == 0))
    return in_logit_bounds(x, <float>p[0]) & (not plain)
