"""Parts of formulas of all kinds: the one NaN, products with more digits than a double has.

Formulas over vectors (`activations.pxd`) and convolutions need these as well, and are compiled
again when this file changes; they are not when a formula of `formulas.pxd` does.
"""

from libc.math cimport INFINITY, NAN

from aclnn.kernels.number cimport real

cdef extern from "<math.h>" nogil:
    double fabs(double) noexcept

cdef extern from "vector_math.h" nogil:
    float ordered_f32(float, float) noexcept
    double ordered_f64(double, double) noexcept
    double product_error(double, double, double) noexcept
    double odd_f64(double, double) noexcept
    double exp_of "exp_f64"(double) noexcept

cdef extern from *:
    """
    #define STICKY 0x1p-80 /* too small to change the double 1 */
    """
    double STICKY


cdef inline real ordered(real r, real x) noexcept nogil:
    """`r`, or the one NaN where `r` or `x` is any."""
    if real is float:
        return ordered_f32(r, x)
    else:
        return ordered_f64(r, x)


cdef inline real canonical(real r) noexcept nogil:
    """The same number, and one NaN for all: bits must not depend on the lane."""
    return ordered(r, r)


cdef inline double product_to_odd(double a, double b, double b_low) noexcept nogil:
    """a * (b + b_low), rounded to odd: a later rounding to a half breaks ties as it should."""
    cdef double p = a * b
    return odd_f64(p, product_error(a, b, p) + a * b_low)


cdef inline double times_slope(double a, double slope, double x, double rate,
                               double beyond) noexcept nogil:
    """a * slope, where the slope is 1/2 + rate x near 0, and 1 + `beyond` where it seems to be 1.

    That may be all that tells the product from a tie, and be less than a double shows.
    """
    return times_slope_and(a, 0, slope, x, rate, beyond)


cdef inline double times_slope_and(double a, double rest, double slope, double x, double rate,
                                   double beyond) noexcept nogil:
    """The same of a (1 + rest), where the rest is less than a double shows, too."""
    cdef double linear = rate * x
    cdef bint near = fabs(linear) < 1e-9
    cdef double high = 0.5 + linear if near else slope
    cdef double low = linear - (high - 0.5) if near else 0
    cdef double more = beyond if (slope == 1) & (x < INFINITY) else 0
    return product_to_odd(a, high, low + more + high * rest)


cdef inline double times_sum(double a, double x, double y) noexcept nogil:
    """a (x + y), rounded to odd: the sum's rounding error may be all that breaks a tie."""
    cdef double total = x + y
    cdef double taken = total - x
    return product_to_odd(a, total, (x - (total - taken)) + (y - taken))


cdef inline double exponent(double y) noexcept nogil:
    """`y`, moved to where e^y is a normal number; a NaN stays."""
    cdef double not_low = -708 if y < -708 else y
    return 708 if not_low > 708 else not_low


cdef inline double decay_of(double x) noexcept nogil:
    return exp_of(exponent(-fabs(x)))


cdef inline double sigma_of(double x, double e) noexcept nogil:
    """1 / (1 + e^-x), where e is e^-|x|."""
    return (e if x < 0 else 1.0) / (1.0 + e)


cdef inline double times_sigma(double a, double x) noexcept nogil:
    """a / (1 + e^-x), where a is a product with x: at minus infinity 0 times infinity."""
    cdef double r = times_slope(a, sigma_of(x, decay_of(x)), x, 0.25, -STICKY)
    return canonical(NAN if x == -INFINITY else ordered(r, x))
