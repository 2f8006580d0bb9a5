"""The operators' formulas: one inline function each, branch-free, on float or double.

Both arms of a choice are computed and one is selected, so that the loops around a formula
vectorise; an overflow in the arm not taken therefore never shows.  Formulas follow CANN's public
operator documentation.

`p` are the node's numbers.  A formula takes up to four elements, then `p`; what it computes in says
what it is for:

- `double`: every real result, rounded once from it.
- `real`, which is float or double: the same, and in float for float32 results, which a float
  loses nothing of but by its one rounding.
- `number`, which may be a whole number besides: exact in each of them, so that float serves halves
  and truth values too.

More forms of a formula have its name and an ending: `_half` computes halves of one dtype in float,
and says why no second rounding shows, `_f32` float32 results; `_f64` is for float64 results, where
the first form rounds in a way that suits less precise ones; `_whole` is on int64, `_complex` on
complex numbers.  Where the first form is in double, one in float may say that it is `in_doubt`:
loops then ask the first.

Some have a fast path over vectors as well, which computes in float (`_simd_kernels.pyx` lists
them); what it cannot round with certainty, the double form here decides.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t

from aclnn.kernels.shared_formulas cimport (
    STICKY,
    canonical,
    decay_of,
    exponent,
    ordered,
    product_to_odd,
    sigma_of,
    times_sigma,
    times_slope,
    times_slope_and,
    times_sum,
)
from aclnn.kernels.number cimport number, real
from aclnn.graph.runtime.kernel_abi cimport kernel_number

cdef extern from "quotient.h" nogil:
    double exact_rest(double a, double q, double b) noexcept

cdef extern from "number.h":
    ctypedef struct complex_t "unaligned_complex128":
        double real
        double imag

cdef extern from "<math.h>" nogil:
    float floor_f32 "floorf"(float) noexcept
    double floor_f64 "floor"(double) noexcept
    float ceil_f32 "ceilf"(float) noexcept
    double ceil_f64 "ceil"(double) noexcept
    float trunc_f32 "truncf"(float) noexcept
    double trunc_f64 "trunc"(double) noexcept
    float rint_f32 "rintf"(float) noexcept
    double rint_f64 "rint"(double) noexcept
    double fmod_f64 "fmod"(double, double) noexcept
    float sqrt_f32 "sqrtf"(float) noexcept
    double sqrt_f64 "sqrt"(double) noexcept
    float abs_f32 "fabsf"(float) noexcept
    double fabs(double) noexcept
    double copysign(double, double) noexcept

# Over the whole range of doubles.
cdef extern from "double_math.h" nogil:
    double full_exp(double) noexcept
    double full_exp2(double) noexcept
    double full_expm1(double) noexcept
    double full_log(double) noexcept
    double full_log1p(double) noexcept
    double full_log2(double) noexcept
    double full_log10(double) noexcept
    double full_sin(double) noexcept
    double full_cos(double) noexcept
    double full_erf(double) noexcept
    double full_pow(double, double) noexcept
    double full_hypot(double, double) noexcept

cdef extern from "vector_math.h" nogil:
    double fma_f64(double, double, double) noexcept
    double product_error(double, double, double) noexcept
    double odd_f64(double, double) noexcept
    double odd_scaled_sum(double, double, double) noexcept
    bint FUSED
    float fma_f32(float, float, float) noexcept
    float odd_f32(float, float) noexcept
    float in_doubt() noexcept
    float f32_or_doubt(double, bint) noexcept
    float half_or_doubt(double, bint) noexcept
    float scaled_sum_f32(float, float, float) noexcept
    float scaled_sum_half(float, float, float) noexcept
    double scaled_sum_f64(double, double, double) noexcept
    float product_half(float, float) noexcept
    float quotient_half(float, float) noexcept
    double exp_of "exp_f64"(double) noexcept
    double exp2_of "exp2_f64"(double) noexcept
    double expm1_of "expm1_f64"(double) noexcept
    double mills_variable(double) noexcept
    double gelu_slope_factor(double) noexcept
    double mills_factor(double) noexcept
    double log_of "log_f64"(double) noexcept
    double erfinv_factor(double) noexcept

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


cdef inline real shrunk(real x, real bound, real by) noexcept nogil:
    """x nearer to 0 by a number where it is beyond the bound, else 0; `by` of 0 takes nothing.

    As double to odd: what rounds it once more, to a half, sees the sum.
    """
    return scaled_sum(x, by, -1 if x > 0 else 1) if (x > bound) | (x < -bound) else <real>0


cdef inline real softshrink(real x, const double *p) noexcept nogil:
    """A NaN stays."""
    return ordered(shrunk(x, <real>p[0], <real>p[0]), x)


cdef inline number softshrink_backward(number g, number x, const kernel_number *p) noexcept nogil:
    """Gradient, which passes where x is a NaN."""
    return <number>0 if (x <= taken(&p[0], x)) & (x >= -taken(&p[0], x)) else g


cdef inline real shrink(real x, const double *p) noexcept nogil:
    """p: lambd, bias."""
    return shrunk(x, <real>p[0], <real>p[1])


# --- Rectifiers: rounded once -------------------------------------------------------------------

cdef inline real prelu(real x, real w, const double *p) noexcept nogil:
    return x if x > 0 else canonical(x * w)


cdef inline float prelu_half(float x, float w, const double *p) noexcept nogil:
    return x if x > 0 else canonical(product_half(x, w))


cdef inline real prelu_backward(real g, real x, real w, const double *p) noexcept nogil:
    return g if x > 0 else canonical(g * w)


cdef inline float prelu_backward_half(float g, float x, float w, const double *p) noexcept nogil:
    return g if x > 0 else canonical(product_half(g, w))


cdef inline double prelu_weight_term(double g, double x, const double *p) noexcept nogil:
    """Addend of an element to the gradient of its weight."""
    return 0 if x > 0 else canonical(g * x)


cdef inline double rrelu_with_noise(double x, const double *p) noexcept nogil:
    """Leaky with the mean of p[0] and p[1], in two parts, as its slope."""
    cdef double slope = 0.5 * p[0] + 0.5 * p[1], taken = slope - 0.5 * p[0]
    cdef double lost = (0.5 * p[0] - (slope - taken)) + (0.5 * p[1] - taken)
    return canonical(x if x > 0 else product_to_odd(x, slope, lost))


cdef inline real squared_relu(real x, const double *p) noexcept nogil:
    return <real>0 if x <= 0 else canonical(x * x)


cdef inline float squared_relu_half(float x, const double *p) noexcept nogil:
    return <float>0 if x <= 0 else canonical(product_half(x, x))


cdef inline real hardsigmoid_backward(real g, real x, const double *p) noexcept nogil:
    return canonical(g / 6) if (x > -3) & (x < 3) else <real>0


cdef inline float hardsigmoid_backward_half(float g, float x, const double *p) noexcept nogil:
    return canonical(quotient_half(g, 6)) if (x > -3) & (x < 3) else <float>0


# --- ELU ----------------------------------------------------------------------------------------

cdef inline double elu(double x, const double *p) noexcept nogil:
    cdef double below = x if x <= 0 else 0
    cdef double far = p[2] * below
    cdef double y = exponent(far)
    cdef double growth = expm1_of(y)
    # What a double does not show: the second part of y + y^2/2, and that e^y - 1 never reaches -1.
    cdef double low = 0.5 * y * y if growth == y else 0
    cdef double more = STICKY if growth == -1 else 0
    growth = INFINITY if far == INFINITY else growth
    cdef double negative = product_to_odd(p[1] * p[0], growth, low + more)
    negative = -(p[1] * p[0]) if far == -INFINITY else negative
    return canonical(negative if x <= 0 else x * p[1])


cdef inline double celu(double x, const double *p) noexcept nogil:
    """ELU at the rate 1/alpha. p: alpha."""
    cdef double numbers[3]
    cdef double r
    numbers[0], numbers[1], numbers[2] = p[0], 1, 1 / p[0]
    r = elu(x, numbers)
    return x if x == 0 else r  # whatever sign alpha has


cdef inline double elu_f64(double x, const double *p) noexcept nogil:
    """The same for results in double, whose range is the exponential's: that is taken in two.

    What rounding takes from the exponent shows where it is large; where it is tiny the result is a
    product, of which the exponent alone may be less than a double can be.
    """
    cdef double below = x if x <= 0 else 0
    cdef double far = p[2] * below
    cdef double y = exponent(far)
    cdef double lost = product_error(p[2], below, far)
    cdef double grown = expm1_of(y)
    cdef double growth = grown + (grown + 1) * lost
    growth = growth if fabs(lost) < 1 else grown  # always, unless it is no number
    growth = INFINITY if far == INFINITY else growth
    cdef double rest = exp_of(exponent(far - y if far > y else 0))
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
    cdef double decay = exp_of(exponent(y))
    # A double may not show that e^y is less or more than 1; its neighbours do, and break ties.
    cdef double next_to_1 = 0.9999999999999999 if y < 0 else 1.0
    next_to_1 = 1.0000000000000002 if y > 0 else next_to_1
    decay = next_to_1 if decay == 1 else decay
    # Between the bounds and infinity no float shows a difference, unless the gradient is infinite.
    decay = INFINITY if y == INFINITY else decay
    decay = 0.0 if y == -INFINITY else decay
    # The gradient first: a slope without end would make a NaN of 0, one that vanishes of infinity.
    cdef double negative = g * (p[2] * p[0] * p[1]) * decay
    return canonical(negative if x <= 0 else g * p[1])


cdef inline double elu_backward_result(double g, double y, const double *p) noexcept nogil:
    cdef double negative = times_sum(g * p[2], y, p[0] * p[1])
    cdef double r = negative if y <= 0 else g * p[1]
    return canonical(r)


# --- GELU ---------------------------------------------------------------------------------------

cdef inline double times_phi(double a, double x) noexcept nogil:
    """a Phi(x), where a is a product with x, through Mills' ratio: Phi(-t) = phi(t) M(t)."""
    cdef double t = fabs(x)
    t = t if t < 37.5 else 37.5
    cdef double ratio = mills_factor(mills_variable(t)) / (t + 4.0)
    cdef double tail = exp_of(-0.5 * t * t) * 0.3989422804014327 * ratio
    cdef double r = times_slope(a, 1.0 - tail if x > 0 else tail, x, 0.3989422804014327, -STICKY)
    return canonical(NAN if x == -INFINITY else r)


cdef inline double gelu(double x, const double *p) noexcept nogil:
    return times_phi(x, x)


cdef inline double gelu_backward(double g, double x, const double *p) noexcept nogil:
    """GELU'(-t) = phi(t) (t0 - t) S(t), and GELU'(t) = 1 - GELU'(-t).

    The root t0 is a factor, in two parts, so that the derivative keeps all its digits next to it.
    """
    cdef double t = fabs(x)
    t = t if t < 37.5 else 37.5
    cdef double tail = exp_of(-0.5 * t * t) * 0.3989422804014327 * (
        (0.7517915246935645 - t) - 5.98e-17) * gelu_slope_factor(mills_variable(t))
    cdef double slope = 1.0 - tail if x > 0 else tail
    cdef double r = times_slope(g, slope, x, 0.7978845608028654, STICKY)
    r = g * 0 if x == -INFINITY else r
    return ordered(r, x)


cdef inline double bounded(double x) noexcept nogil:
    """`x`, as far as the form with tanh tells it from what is beyond; a NaN stays."""
    cdef double near = x if x < 40.0 else 40.0
    return near if near > -40.0 else -40.0


cdef inline double decay_of_tanh_form(double near) noexcept nogil:
    """e^(-2|w|) with w = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh(w))/2 = 1/(1 + e^(-2w))."""
    cdef double w2 = near * fma_f64(0.07135481627260025, near * near, 1.5957691216057308)
    return exp_of(exponent(-fabs(w2)))


cdef inline double times_tanh_form(double a, double x) noexcept nogil:
    """a (1 + tanh(w))/2, where a is a product with x."""
    cdef double e = decay_of_tanh_form(bounded(x))
    cdef double sigma = (e if x < 0 else 1.0) / (1.0 + e)
    cdef double r = times_slope(a, sigma, x, 0.3989422804014327, -STICKY)
    return canonical(NAN if x == -INFINITY else r)


cdef inline double gelu_tanh(double x, const double *p) noexcept nogil:
    return times_tanh_form(x, x)


cdef inline double gelu_backward_tanh(double g, double x, const double *p) noexcept nogil:
    """sigma (1 + 2 w' x (1 - sigma)), where sigma and 1 - sigma share a denominator."""
    cdef double near = bounded(x)
    cdef double e = decay_of_tanh_form(near)
    cdef double rate = fma_f64(0.21406444881780074, near * near, 1.5957691216057308)
    cdef double rest = (1.0 if x < 0 else e) / (1.0 + e)
    cdef double slope = (e if x < 0 else 1.0) / (1.0 + e) * fma_f64(near * rate, rest, 1.0)
    cdef double r = times_slope(g, slope, x, 0.7978845608028654, STICKY)
    r = g * 0 if x == -INFINITY else r
    return ordered(r, x)


# --- Logit --------------------------------------------------------------------------------------

cdef inline double logit(double x, const double *p) noexcept nogil:
    """ln(z/(1-z)); near z = 1/2 the quotient is so near 1 that its logarithm stays accurate."""
    cdef double eps = p[0]
    cdef double low = 0.0 if eps < 0 else eps
    cdef double high = 1.0 if eps < 0 else <double>(<float>1.0 - <float>eps)
    cdef double z = high if x > high else x
    z = low if x < low else z  # decides where eps is more than 1/2
    cdef double r = log_of(z / (1.0 - z))
    r = -INFINITY if z == 0 else r
    r = INFINITY if z == 1 else r
    r = r if (z >= 0) & (z <= 1) else NAN
    r = r if (eps >= 0) | ((x >= 0) & (x <= 1)) else NAN
    return canonical(r if x == x else x)


cdef inline double outside_of_logit(double dy, double eps) noexcept nogil:
    """The gradient where x is outside [eps, 1 - eps], or for every x where eps is 1 or more."""
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


# --- Sums, products, quotients: rounded once, whatever the dtype ----------------------------------
#
# Halves of one dtype: a float has more than twice their digits and two more, so that rounding a sum
# or a quotient of two of them, or a root, to it first does not show (Figueroa). Products are exact.
# What is less than the smallest normal float, which bfloat16 reaches as well, is made odd.

cdef inline real scaled_sum(real a, real b, double c) noexcept nogil:
    """a + c b: in float rounded once, in double to odd, for what is rounded once more."""
    if real is float:
        return canonical(scaled_sum_f32(a, b, <float>c))
    else:
        return canonical(odd_scaled_sum(a, b, c))


cdef inline real add(real a, real b, const double *p) noexcept nogil:
    return scaled_sum(a, b, p[0])


cdef inline float add_half(float a, float b, const double *p) noexcept nogil:
    return canonical(scaled_sum_half(a, b, <float>p[0]))


cdef inline double add_f64(double a, double b, const double *p) noexcept nogil:
    return canonical(scaled_sum_f64(a, b, p[0]))


cdef inline int64_t add_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return a + p[0].whole * b


cdef inline number not_negative(number x) noexcept nogil:
    return <number>0 if x <= 0 else x


cdef inline real add_relu(real a, real b, const double *p) noexcept nogil:
    return not_negative(add(a, b, p))


cdef inline float add_relu_half(float a, float b, const double *p) noexcept nogil:
    return not_negative(add_half(a, b, p))


cdef inline real sub(real a, real b, const double *p) noexcept nogil:
    return scaled_sum(a, b, -p[0])


cdef inline float sub_half(float a, float b, const double *p) noexcept nogil:
    return canonical(scaled_sum_half(a, b, <float>-p[0]))


cdef inline double sub_f64(double a, double b, const double *p) noexcept nogil:
    return canonical(scaled_sum_f64(a, b, -p[0]))


cdef inline int64_t sub_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return a - p[0].whole * b


cdef inline real rsub(real a, real b, const double *p) noexcept nogil:
    """b - alpha a."""
    return scaled_sum(b, a, -p[0])


cdef inline float rsub_half(float a, float b, const double *p) noexcept nogil:
    return canonical(scaled_sum_half(b, a, <float>-p[0]))


cdef inline double rsub_f64(double a, double b, const double *p) noexcept nogil:
    return canonical(scaled_sum_f64(b, a, -p[0]))


cdef inline int64_t rsub_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return b - p[0].whole * a


cdef inline real mul(real a, real b, const double *p) noexcept nogil:
    return canonical(a * b)


cdef inline float mul_half(float a, float b, const double *p) noexcept nogil:
    return canonical(product_half(a, b))


cdef inline int64_t mul_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return a * b


cdef inline real div(real a, real b, const double *p) noexcept nogil:
    return canonical(a / b)


cdef inline float div_half(float a, float b, const double *p) noexcept nogil:
    return canonical(quotient_half(a, b))


cdef inline int64_t quotient(int64_t a, int64_t b) noexcept nogil:
    """Towards zero; 0 where the divisor is; the one quotient that is too large wraps."""
    cdef bint divides = (b != 0) & (b != -1)
    return a // b if divides else (-a if b else 0)


cdef inline int64_t div_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return quotient(a, b)


# With a number in the place of the second operand: p[0]; of sums, alpha is p[1]. They are floats,
# but for float64 results: the products are exact in double.

cdef inline real adds(real a, const double *p) noexcept nogil:
    return scaled_sum(a, <real>p[0], p[1])


cdef inline double adds_f64(double a, const double *p) noexcept nogil:
    return canonical(scaled_sum_f64(a, p[0], p[1]))


cdef inline int64_t adds_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return a + p[1].whole * p[0].whole


cdef inline real subs(real a, const double *p) noexcept nogil:
    return scaled_sum(a, <real>p[0], -p[1])


cdef inline double subs_f64(double a, const double *p) noexcept nogil:
    return canonical(scaled_sum_f64(a, p[0], -p[1]))


cdef inline int64_t subs_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return a - p[1].whole * p[0].whole


cdef inline real rsubs(real a, const double *p) noexcept nogil:
    """p[0] - alpha a."""
    return scaled_sum(<real>p[0], a, -p[1])


cdef inline double rsubs_f64(double a, const double *p) noexcept nogil:
    return canonical(scaled_sum_f64(p[0], a, -p[1]))


cdef inline int64_t rsubs_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return p[0].whole - p[1].whole * a


cdef inline real muls(real a, const double *p) noexcept nogil:
    return canonical(a * <real>p[0])


cdef inline int64_t muls_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return a * p[0].whole


cdef inline real divs(real a, const double *p) noexcept nogil:
    return canonical(a / <real>p[0])


cdef inline int64_t divs_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return quotient(a, p[0].whole)


cdef inline real square(real x, const double *p) noexcept nogil:
    return canonical(x * x)


cdef inline float square_half(float x, const double *p) noexcept nogil:
    return canonical(product_half(x, x))


cdef inline int64_t square_whole(int64_t x, const kernel_number *p) noexcept nogil:
    return x * x


cdef inline real reciprocal(real x, const double *p) noexcept nogil:
    return canonical(1 / x)


cdef inline float reciprocal_half(float x, const double *p) noexcept nogil:
    return canonical(quotient_half(1, x))


cdef inline real root(real x) noexcept nogil:
    if real is float:
        return sqrt_f32(x)
    else:
        return sqrt_f64(x)


cdef inline real sqrt(real x, const double *p) noexcept nogil:
    return canonical(root(x))


cdef inline float sqrt_half(float x, const double *p) noexcept nogil:
    return canonical(root(x))


cdef inline double rsqrt(double x, const double *p) noexcept nogil:
    return canonical(1 / sqrt_f64(x))


# --- Choices, comparisons: no bit is computed ---------------------------------------------------

cdef inline number taken(const kernel_number *p, number like) noexcept nogil:
    """A number of the node, as what is computed in."""
    if number is int64_t:
        return p.whole
    else:
        return <number>p.real


cdef inline number neg(number x, const kernel_number *p) noexcept nogil:
    return -x


cdef inline number abs(number x, const kernel_number *p) noexcept nogil:
    if number is float:
        return abs_f32(x)
    elif number is double:
        return fabs(x)
    else:
        return -x if x < 0 else x


cdef inline number floor(number x, const kernel_number *p) noexcept nogil:
    if number is float:
        return floor_f32(x)
    elif number is double:
        return floor_f64(x)
    else:
        return x


cdef inline number ceil(number x, const kernel_number *p) noexcept nogil:
    if number is float:
        return ceil_f32(x)
    elif number is double:
        return ceil_f64(x)
    else:
        return x


cdef inline number trunc(number x, const kernel_number *p) noexcept nogil:
    """Towards zero; -0 stays."""
    if number is float:
        return trunc_f32(x)
    elif number is double:
        return trunc_f64(x)
    else:
        return x


cdef inline real frac(real x, const double *p) noexcept nogil:
    """NaN of an infinity."""
    if real is float:
        return canonical(x - trunc_f32(x))
    else:
        return canonical(x - trunc_f64(x))


cdef inline int64_t frac_whole(int64_t x, const kernel_number *p) noexcept nogil:
    return 0


cdef inline number round(number x, const kernel_number *p) noexcept nogil:
    """To the nearest whole number, ties to even ones; -0 stays."""
    if number is float:
        return rint_f32(x)
    elif number is double:
        return rint_f64(x)
    else:
        return x


cdef inline number sign(number x, const kernel_number *p) noexcept nogil:
    """0 for a NaN, as for either zero."""
    return <number>((x > 0) - (x < 0))


cdef inline number maximum(number a, number b, const kernel_number *p) noexcept nogil:
    """A NaN in either wins."""
    return a if (a > b) | (a != a) else b


cdef inline number minimum(number a, number b, const kernel_number *p) noexcept nogil:
    return a if (a < b) | (a != a) else b


cdef inline number clamp(number x, const kernel_number *p) noexcept nogil:
    """min(max(x, p[0]), p[1]); a NaN in any of them wins."""
    cdef number low = taken(&p[0], x), high = taken(&p[1], x)
    cdef number above = low if (x < low) | (low != low) else x
    return high if (above > high) | (high != high) else above


cdef inline number relu(number x, const kernel_number *p) noexcept nogil:
    """A NaN stays."""
    return not_negative(x)


cdef inline number relu_backward(number g, number x, const kernel_number *p) noexcept nogil:
    """Gradient, which passes where x is a NaN."""
    return <number>0 if x <= 0 else g


cdef inline number threshold(number x, const kernel_number *p) noexcept nogil:
    """x above p[0], else p[1]; a NaN stays."""
    return taken(&p[1], x) if x <= taken(&p[0], x) else x


cdef inline number threshold_backward(number g, number x, const kernel_number *p) noexcept nogil:
    return <number>0 if x <= taken(&p[0], x) else g


cdef inline number hardtanh_backward(number g, number x, const kernel_number *p) noexcept nogil:
    """The gradient strictly between p[0] and p[1], and where x is a NaN."""
    return <number>0 if (x <= taken(&p[0], x)) | (x >= taken(&p[1], x)) else g


cdef inline number heaviside(number x, number at_0, const kernel_number *p) noexcept nogil:
    """0 for a NaN."""
    return at_0 if x == 0 else (<number>1 if x > 0 else <number>0)


cdef inline number where(number c, number a, number b, const kernel_number *p) noexcept nogil:
    return a if c != 0 else b


cdef inline number eq(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if a == b else <number>0


cdef inline number ne(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if a != b else <number>0


cdef inline number lt(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if a < b else <number>0


cdef inline number le(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if a <= b else <number>0


cdef inline number gt(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if a > b else <number>0


cdef inline number ge(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if a >= b else <number>0


cdef inline number logical_and(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if (a != 0) & (b != 0) else <number>0


cdef inline number logical_or(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if (a != 0) | (b != 0) else <number>0


cdef inline number logical_xor(number a, number b, const kernel_number *p) noexcept nogil:
    return <number>1 if (a != 0) != (b != 0) else <number>0


cdef inline number logical_not(number x, const kernel_number *p) noexcept nogil:
    return <number>1 if x == 0 else <number>0


cdef inline double fill(const double *p) noexcept nogil:
    return p[0]


cdef inline int64_t fill_whole(const kernel_number *p) noexcept nogil:
    return p[0].whole


# --- Exponentials, logarithms, powers, trigonometry ---------------------------------------------

cdef inline double next_to(double r, double x, double error) noexcept nogil:
    """r, or, where it is x itself, a number that tells on which side of x the exact value is.

    That may be all that breaks a tie, if the result has fewer digits than x.
    """
    return odd_f64(r, error) if (r == x) & (x != 0) & (x - x == 0) else r


cdef inline double exp(double x, const double *p) noexcept nogil:
    return canonical(exp_of(exponent(x)))


cdef inline double exp_f64(double x, const double *p) noexcept nogil:
    return canonical(full_exp(x))


cdef inline double exp2(double x, const double *p) noexcept nogil:
    """Power of two; exact for whole numbers, whose results may be ties of halves."""
    return canonical(exp2_of(exponent(x)))


cdef inline double exp2_f64(double x, const double *p) noexcept nogil:
    return canonical(full_exp2(x))


cdef inline double expm1(double x, const double *p) noexcept nogil:
    """x + x^2/2 near 0, of which the second part may be all that breaks a tie."""
    cdef double second = 0.5 * x * x
    cdef double near = next_to(x + second if x != 0 else x, x, second)
    return canonical(near if fabs(x) < 1e-8 else expm1_of(exponent(x)))


cdef inline double expm1_f64(double x, const double *p) noexcept nogil:
    return canonical(full_expm1(x))


cdef inline double logarithm(double x, double scale) noexcept nogil:
    cdef double r = log_of(x) * scale
    r = -INFINITY if x == 0 else r
    r = INFINITY if x == INFINITY else r
    return NAN if (x < 0) | (x != x) else r


cdef inline double log(double x, const double *p) noexcept nogil:
    return logarithm(x, 1)


cdef inline double log_f64(double x, const double *p) noexcept nogil:
    return canonical(full_log(x))


cdef inline double log2(double x, const double *p) noexcept nogil:
    return logarithm(x, 1.4426950408889634)


cdef inline double log2_f64(double x, const double *p) noexcept nogil:
    return canonical(full_log2(x))


cdef inline double log10(double x, const double *p) noexcept nogil:
    return logarithm(x, 0.4342944819032518)


cdef inline double log10_f64(double x, const double *p) noexcept nogil:
    return canonical(full_log10(x))


cdef inline double log1p(double x, const double *p) noexcept nogil:
    """Logarithm of 1 + x, with what rounding takes from the sum; near 0, x - x^2/2."""
    cdef double u = 1 + x
    cdef double r = log_of(u) + (x - (u - 1)) / u
    cdef double second = -0.5 * x * x
    r = next_to(x + second if x != 0 else x, x, second) if fabs(x) < 1e-8 else r
    r = x if x == INFINITY else r
    r = -INFINITY if x == -1 else r
    return NAN if (x < -1) | (x != x) else r


cdef inline double log1p_f64(double x, const double *p) noexcept nogil:
    return canonical(full_log1p(x))


cdef inline double erfinv(double x, const double *p) noexcept nogil:
    """x times a function of -ln(1 - x^2), of which the factors are exact near 1."""
    cdef double rest = (1 - x) * (1 + x)
    cdef double r = x * erfinv_factor(-log_of(rest))
    r = x * INFINITY if rest == 0 else r
    return canonical(r if rest >= 0 else NAN)


cdef inline double pow(double a, double b, const double *p) noexcept nogil:
    return canonical(full_pow(a, b))


cdef inline double pows(double a, const double *p) noexcept nogil:
    """a to the power of p[0]."""
    return canonical(full_pow(a, p[0]))


cdef inline double rpows(double b, const double *p) noexcept nogil:
    """p[0] to the power of b."""
    return canonical(full_pow(p[0], b))


cdef inline double power_of_floats(double a, double b) noexcept nogil:
    """a to the power of b, to 2^-45, a NaN where there is none.

    What a loop does not change here is no truth value: compilers have no vectors of those.
    """
    cdef double size = fabs(a), small = 0 if fabs(b) > 1e15 else b
    cdef double half = 0.5 * small  # large floats are even
    cdef double r = 0 if size == 0 else exp_of(exponent(b * log_of(size)))
    cdef double odd = 2 * fabs(half - whole_near(half))  # of whole numbers
    cdef double none = 0 if whole_near(small) == small else NAN
    r *= 1 - odd * (1 - copysign(1, a))
    return r + none if a < 0 else r


cdef inline double whole_near(double x) noexcept nogil:
    """Nearest whole number of one below 2^51."""
    return (x + 6755399441055744.0) - 6755399441055744.0


cdef inline bint is_usual(double a, double b) noexcept nogil:
    """Both are finite, and if a is 0, it has no sign and the power is 0."""
    cdef double size = fabs(a), sign = copysign(1, a)
    cdef double less = b if b < sign else sign
    return (size + (b - b) < INFINITY) & ((size > 0) | (less > 0))


cdef inline float pow_f32(float a, float b, const double *p) noexcept nogil:
    return f32_or_doubt(power_of_floats(a, b), is_usual(a, b))


cdef inline float pow_half(float a, float b, const double *p) noexcept nogil:
    return half_or_doubt(power_of_floats(a, b), is_usual(a, b))


cdef inline float pows_f32(float a, const double *p) noexcept nogil:
    return f32_or_doubt(power_of_floats(a, p[0]), is_usual(a, p[0]))


cdef inline float pows_half(float a, const double *p) noexcept nogil:
    return half_or_doubt(power_of_floats(a, p[0]), is_usual(a, p[0]))


cdef inline float rpows_f32(float b, const double *p) noexcept nogil:
    return f32_or_doubt(power_of_floats(p[0], b), is_usual(p[0], b))


cdef inline float rpows_half(float b, const double *p) noexcept nogil:
    return half_or_doubt(power_of_floats(p[0], b), is_usual(p[0], b))


cdef inline int64_t power(int64_t a, int64_t b) noexcept nogil:
    """By squaring; wraps. With a negative exponent 1 and -1 have whole powers, all else gives 0."""
    cdef int64_t r = 1, n = b if b >= 0 else (b & 1)
    if b < 0 and a != 1 and a != -1:
        return 0
    while n:
        if n & 1:
            r *= a
        a *= a
        n >>= 1
    return r


cdef inline int64_t pow_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return power(a, b)


cdef inline int64_t pows_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return power(a, p[0].whole)


cdef inline int64_t rpows_whole(int64_t b, const kernel_number *p) noexcept nogil:
    return power(p[0].whole, b)


cdef inline double sin(double x, const double *p) noexcept nogil:
    return canonical(next_to(full_sin(x), x, -x))


cdef inline double sin_f64(double x, const double *p) noexcept nogil:
    return canonical(full_sin(x))


cdef inline double cos(double x, const double *p) noexcept nogil:
    return canonical(full_cos(x))


cdef inline double erf(double x, const double *p) noexcept nogil:
    return canonical(full_erf(x))


cdef inline double tanh(double x, const double *p) noexcept nogil:
    """(1 - e^(-2|x|)) / (1 + e^(-2|x|)) with the sign of x; near 0, x - x^3/3."""
    cdef double grown = expm1_of(exponent(-2 * fabs(x)))
    cdef double r = -grown / (2 + grown)
    cdef double third = x * x * x * -0.3333333333333333
    cdef double near = next_to(x + third if x != 0 else x, x, -x)
    r = -r if x < 0 else r
    return canonical(near if fabs(x) < 1e-5 else r)


cdef inline double tanh_f64(double x, const double *p) noexcept nogil:
    """e^(2|x|) - 1, which is accurate where it is small; 1 less a little where it is large."""
    cdef double t = fabs(x)
    cdef double grown = full_expm1(2 * (t if t < 22 else 22))
    cdef double total = grown + 2
    cdef double lost = grown - (total - 2)
    cdef double small = grown / total
    small -= small * (lost / total)
    cdef double r = 1 - 2 / total if t > 0.5 else small
    return canonical(copysign(r, x) if x == x else x)


# --- Sigmoid, SiLU, SwiGLU ----------------------------------------------------------------------

cdef inline double slope_of_silu(double x, double e) noexcept nogil:
    """s (1 + x (1 - s)); its limits at the infinities."""
    cdef double near = x if x < 800 else 800
    near = near if near > -800 else -800
    near = near if x == x else x
    return sigma_of(x, e) * fma_f64(near, (1.0 if x < 0 else e) / (1.0 + e), 1.0)


cdef inline double sigmoid(double x, const double *p) noexcept nogil:
    return canonical(sigma_of(x, decay_of(x)))


cdef inline double sigmoid_f64(double x, const double *p) noexcept nogil:
    return canonical(sigma_of(x, full_exp(-fabs(x))))


cdef inline double times_rest(double a, double b) noexcept nogil:
    """a (1 - b), to odd: what rounding takes from 1 - b may be all that breaks a tie."""
    cdef double rest = 1 - b, taken = rest - 1
    return product_to_odd(a, rest, (1 - (rest - taken)) - (b + taken))


cdef inline double sigmoid_backward(double g, double y, const double *p) noexcept nogil:
    """g y (1 - y), from the result."""
    return canonical(times_rest(g * y, y))


cdef inline double sigmoid_backward_f64(double g, double y, const double *p) noexcept nogil:
    return canonical(g * (y * (1 - y)))


cdef inline double tanh_backward(double g, double y, const double *p) noexcept nogil:
    """g (1 - y^2), from the result."""
    return canonical(times_rest(g, y * y))


cdef inline double tanh_backward_f64(double g, double y, const double *p) noexcept nogil:
    return canonical(g * ((1 - y) * (1 + y)))


cdef inline double finite_or_none(double low) noexcept nogil:
    """Addend to a result: nothing, where that is an infinity or NaN."""
    return low if low - low == 0 else 0


cdef inline double silu_in_parts(double x, double *low) noexcept nogil:
    """x / (1 + e^-x) in two doubles, as far as the exponential has so many digits.

    With e^x in two parts where it is so small that it would lose digits.
    """
    cdef double far = x * full_exp(x + 64) * 1.603810890548638e-28
    cdef double e = full_exp(-x)
    cdef double total = 1 + e
    cdef double lost = e - (total - 1) if e < 1 else 1 - (total - e)
    cdef double r = x / total
    cdef double rest = (-product_error(r, total, x) - r * lost) / total
    r = far if x < -700 else r
    low[0] = finite_or_none(rest) if x > -700 else 0
    return NAN if x == -INFINITY else r


cdef inline double times_silu_in_parts(double a, double x) noexcept nogil:
    cdef double low
    cdef double high = silu_in_parts(x, &low)
    cdef double r = a * high
    return canonical(r + finite_or_none(product_error(a, high, r) + a * low))


cdef inline double silu(double x, const double *p) noexcept nogil:
    return times_sigma(x, x)


cdef inline double silu_f64(double x, const double *p) noexcept nogil:
    return times_silu_in_parts(1, x)


cdef inline double silu_backward(double g, double x, const double *p) noexcept nogil:
    cdef double r = times_slope(g, slope_of_silu(x, decay_of(x)), x, 0.5, STICKY)
    return ordered(r, x)


cdef inline double times_slope_of_silu_f64(double a, double a_low, double x) noexcept nogil:
    """Product with the slope, and what rounding takes: near the root, -1.28, parts cancel,
    and the error is that of the exponential."""
    cdef double near = x if x < 800 else 800
    near = near if near > -800 else -800
    near = near if x == x else x
    cdef double e = full_exp(-fabs(near))
    cdef double total = 1 + e
    cdef double lost = e - (total - 1)
    cdef double above = 1.0 if near < 0 else e
    cdef double rest = above / total
    cdef double rest_low = (-product_error(rest, total, above) - rest * lost) / total
    cdef double scaled = near * rest
    cdef double low = product_error(near, rest, scaled) + near * rest_low
    cdef double one = 1 + scaled
    cdef double taken = one - scaled
    low += (1 - taken) + (scaled - (one - taken))
    cdef double share = e if near < 0 else 1.0
    cdef double s = share / total
    cdef double s_low = (-product_error(s, total, share) - s * lost) / total
    cdef double slope = s * one
    cdef double slope_low = product_error(s, one, slope) + (s * low + s_low * one)
    cdef double r = a * slope
    low = product_error(a, slope, r) + (a * slope_low + a_low * slope)
    return ordered(r + finite_or_none(low), x)


cdef inline double silu_backward_f64(double g, double x, const double *p) noexcept nogil:
    return times_slope_of_silu_f64(g, 0, x)


cdef inline double times_silu(double a, double x, const double *p) noexcept nogil:
    """a x / (1 + e^-x)."""
    return times_sigma(a * x, x)


cdef inline double times_silu_f64(double a, double x, const double *p) noexcept nogil:
    return times_silu_in_parts(a, x)


cdef inline double swiglu_backward_a(double g, double a, double b,
                                     const double *p) noexcept nogil:
    cdef double r = times_slope(g * b, slope_of_silu(a, decay_of(a)), a, 0.5, STICKY)
    return ordered(r, a)


cdef inline double swiglu_backward_a_f64(double g, double a, double b,
                                         const double *p) noexcept nogil:
    cdef double gradient = g * b
    return times_slope_of_silu_f64(
        gradient, finite_or_none(product_error(g, b, gradient)), a)


# --- Complex numbers: the plain formulas; a number of the node takes two places -------------------

cdef inline complex_t complex_of(double x, double y) noexcept nogil:
    cdef complex_t z
    z.real, z.imag = x, y
    return z


cdef inline complex_t product(complex_t a, complex_t b) noexcept nogil:
    return complex_of(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


cdef inline complex_t ratio(complex_t a, complex_t b) noexcept nogil:
    """Quotient of numbers that are scaled by the larger part of the divisor (Smith)."""
    cdef double r, d
    if fabs(b.real) >= fabs(b.imag):
        r = b.imag / b.real
        d = b.real + b.imag * r
        return complex_of((a.real + a.imag * r) / d, (a.imag - a.real * r) / d)
    r = b.real / b.imag
    d = b.real * r + b.imag
    return complex_of((a.real * r + a.imag) / d, (a.imag * r - a.real) / d)


cdef inline complex_t total(complex_t a, complex_t b, double x, double y) noexcept nogil:
    """a + (x + iy) b."""
    cdef complex_t c = product(complex_of(x, y), b)
    if (x == 1 or x == -1) and y == 0:
        return complex_of(a.real + x * b.real, a.imag + x * b.imag)
    return complex_of(a.real + c.real, a.imag + c.imag)


cdef inline complex_t add_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return total(a, b, p[0], p[1])


cdef inline complex_t sub_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return total(a, b, -p[0], -p[1])


cdef inline complex_t rsub_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return total(b, a, -p[0], -p[1])


cdef inline complex_t mul_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return product(a, b)


cdef inline complex_t div_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return ratio(a, b)


cdef inline complex_t adds_complex(complex_t a, const double *p) noexcept nogil:
    return total(a, complex_of(p[0], p[1]), p[2], p[3])


cdef inline complex_t subs_complex(complex_t a, const double *p) noexcept nogil:
    return total(a, complex_of(p[0], p[1]), -p[2], -p[3])


cdef inline complex_t rsubs_complex(complex_t a, const double *p) noexcept nogil:
    return total(complex_of(p[0], p[1]), a, -p[2], -p[3])


cdef inline complex_t muls_complex(complex_t a, const double *p) noexcept nogil:
    return product(a, complex_of(p[0], p[1]))


cdef inline complex_t divs_complex(complex_t a, const double *p) noexcept nogil:
    return ratio(a, complex_of(p[0], p[1]))


cdef inline complex_t neg_complex(complex_t x, const double *p) noexcept nogil:
    return complex_of(-x.real, -x.imag)


cdef inline complex_t square_complex(complex_t x, const double *p) noexcept nogil:
    return product(x, x)


cdef inline complex_t reciprocal_complex(complex_t x, const double *p) noexcept nogil:
    return ratio(complex_of(1, 0), x)


cdef inline complex_t exp_complex(complex_t x, const double *p) noexcept nogil:
    """Real numbers stay real, whatever their exponential is."""
    cdef double size = full_exp(x.real)
    if x.imag == 0:
        return complex_of(size, x.imag)
    return complex_of(size * full_cos(x.imag), size * full_sin(x.imag))


cdef inline complex_t sigmoid_backward_complex(complex_t g, complex_t y,
                                               const double *p) noexcept nogil:
    """With the conjugates of y and 1 - y, as gradients of complex functions have."""
    return product(g, product(complex_of(1 - y.real, y.imag), complex_of(y.real, -y.imag)))


cdef inline complex_t where_complex(complex_t c, complex_t a, complex_t b,
                                    const double *p) noexcept nogil:
    return a if (c.real != 0) | (c.imag != 0) else b


cdef inline complex_t eq_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return complex_of((a.real == b.real) & (a.imag == b.imag), 0)


cdef inline complex_t ne_complex(complex_t a, complex_t b, const double *p) noexcept nogil:
    return complex_of((a.real != b.real) | (a.imag != b.imag), 0)


cdef inline bint is_true(complex_t x) noexcept nogil:
    return (x.real != 0) | (x.imag != 0)


cdef inline complex_t logical_and_complex(complex_t a, complex_t b,
                                          const double *p) noexcept nogil:
    return complex_of(1 if is_true(a) & is_true(b) else 0, 0)


cdef inline complex_t logical_or_complex(complex_t a, complex_t b,
                                         const double *p) noexcept nogil:
    return complex_of(1 if is_true(a) | is_true(b) else 0, 0)


cdef inline complex_t logical_xor_complex(complex_t a, complex_t b,
                                          const double *p) noexcept nogil:
    return complex_of(1 if is_true(a) != is_true(b) else 0, 0)


cdef inline complex_t abs_complex(complex_t x, const double *p) noexcept nogil:
    return complex_of(canonical(full_hypot(x.real, x.imag)), 0)


cdef inline complex_t sign_complex(complex_t x, const double *p) noexcept nogil:
    """x / |x|; 0 stays."""
    cdef double size = full_hypot(x.real, x.imag)
    cdef double divisor = 1 if size == 0 else size
    return complex_of(canonical(x.real / divisor), canonical(x.imag / divisor))


cdef inline complex_t fill_complex(const double *p) noexcept nogil:
    return complex_of(p[0], p[1])


# --- Rounded quotients, sums of products --------------------------------------------------------

cdef inline double div_trunc(double a, double b, const double *p) noexcept nogil:
    """The whole part of a / b; where the quotient was rounded to a whole number, one less of it."""
    cdef double q = floor_f64(fabs(a / b)), rest = exact_rest(fabs(a), q, fabs(b))
    return canonical(copysign(q - 1 if rest < 0 else q, a / b))


cdef inline int64_t div_trunc_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return quotient(a, b)


cdef inline double div_floor(double a, double b, const double *p) noexcept nogil:
    """The largest whole number that is no larger than a / b."""
    cdef double q = floor_f64(a / b), rest = exact_rest(a, q, b)
    return canonical(q - 1 if (rest < 0 if b > 0 else rest > 0) else q)


cdef inline int64_t div_floor_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    cdef int64_t q = quotient(a, b)
    cdef bint below = (b != 0) & (q * b != a) & ((a < 0) != (b < 0))
    return q - 1 if below else q


cdef inline double floor_divide(double a, double b, const double *p) noexcept nogil:
    """As PyTorch has it: by 0 it is a / b, of an infinity none, by one 0 or -1."""
    cdef double q = a / b, whole = floor_f64(q), rest = exact_rest(a, whole, b)
    cdef double past = -rest if b > 0 else rest  # above 0: the quotient was rounded to the next one
    cdef double found = whole - 1 if (past > 0) & (fabs(q) < 9007199254740992.0) else whole
    cdef double quotient = -1 if ((a < 0) != (b < 0)) & (a != 0) else q
    found = quotient if fabs(b) == INFINITY else found
    found = found if fabs(a) < INFINITY else NAN
    found = found if b == b else NAN
    return canonical(q if b == 0 else found)


cdef inline int64_t floor_divide_whole(int64_t a, int64_t b,
                                       const kernel_number *p) noexcept nogil:
    return div_floor_whole(a, b, p)


cdef inline double fmod(double a, double b, const double *p) noexcept nogil:
    """Remainder of a, with its sign: exact. The quotient may be any."""
    cdef double q = trunc_f64(a / b), rest = exact_rest(a, q, b)
    if not (fabs(q) < 4503599627370496.0) & (fabs(b) < INFINITY):
        return canonical(fmod_f64(a, b))
    rest += copysign(b, a) if (rest < 0 if a > 0 else rest > 0) else 0
    return copysign(rest, a)


cdef inline double fmod_of_floats(double a, double b) noexcept nogil:
    """The same where a float holds the quotient, whose product with b is exact; else a NaN."""
    cdef double q = trunc_f64(a / b), rest = a - q * b
    rest += copysign(b, a) if (rest < 0 if a > 0 else rest > 0) else 0
    return copysign(rest, a) if (fabs(q) < 16777216.0) & (fabs(b) < INFINITY) else NAN


cdef inline float fmod_f32(float a, float b, const double *p) noexcept nogil:
    cdef double found = fmod_of_floats(a, b)
    return <float>found if found == found else in_doubt()


cdef inline float fmod_half(float a, float b, const double *p) noexcept nogil:
    """Exact."""
    return fmod_f32(a, b, p)


cdef inline int64_t fmod_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    """The number itself where the divisor is 0."""
    return a - quotient(a, b) * b


cdef inline double with_sign_of(double rest, double b) noexcept nogil:
    """Remainder with the sign of the divisor; an exact 0 stays."""
    return rest + b if (rest != 0) & ((rest < 0) != (b < 0)) else rest


cdef inline double remainder(double a, double b, const double *p) noexcept nogil:
    return canonical(with_sign_of(fmod(a, b, p), b))


cdef inline float remainder_f32(float a, float b, const double *p) noexcept nogil:
    cdef double found = fmod_of_floats(a, b)
    return <float>with_sign_of(found, b) if found == found else in_doubt()


cdef inline float remainder_half(float a, float b, const double *p) noexcept nogil:
    """A sum of two halves, one of them rounded away at most: no second rounding shows."""
    return remainder_f32(a, b, p)


cdef inline int64_t remainder_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    """The number itself where the divisor is 0."""
    cdef int64_t rest = a - quotient(a, b) * b
    return rest + b if (b != 0) & (rest != 0) & ((rest < 0) != (b < 0)) else rest


# --- Bits of whole numbers, which float64 holds below 2^53 ----------------------------------------

cdef inline double bitwise_and(double a, double b, const double *p) noexcept nogil:
    return <double>(<int64_t>a & <int64_t>b)


cdef inline int64_t bitwise_and_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return a & b


cdef inline double bitwise_or(double a, double b, const double *p) noexcept nogil:
    return <double>(<int64_t>a | <int64_t>b)


cdef inline int64_t bitwise_or_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return a | b


cdef inline double bitwise_xor(double a, double b, const double *p) noexcept nogil:
    return <double>(<int64_t>a ^ <int64_t>b)


cdef inline int64_t bitwise_xor_whole(int64_t a, int64_t b, const kernel_number *p) noexcept nogil:
    return a ^ b


cdef inline double bitwise_not(double a, const double *p) noexcept nogil:
    return <double>(~<int64_t>a)


cdef inline int64_t bitwise_not_whole(int64_t a, const kernel_number *p) noexcept nogil:
    return ~a


cdef inline double sum_with_product(double x, double a, double b, double low,
                                    bint odd) noexcept nogil:
    """x + a b + low, rounded once: to odd, for what is rounded once more, or to nearest."""
    cdef double product = a * b, error = product_error(a, b, product)
    cdef double sum = x + product, taken = sum - x
    cdef double rest = (x - (sum - taken)) + (product - taken) + (error + low)
    cdef double near = sum if rest == 0 else sum + rest  # -0 stays
    near = odd_f64(near, rest - (near - sum)) if odd else near
    return canonical(near if (sum - sum == 0) & (rest - rest == 0) else sum)


cdef inline double addcmul(double x, double a, double b, const double *p) noexcept nogil:
    """x + p[0] a b; of floats the first product is exact."""
    return sum_with_product(x, p[0] * a, b, 0, True)


cdef inline float addcmul_f32(float x, float a, float b, const double *p) noexcept nogil:
    if p[0] == 1:
        return canonical(fma_f32(a, b, x)) if FUSED else in_doubt()
    return f32_or_doubt(fma_f64(p[0] * a, b, x), FUSED)


cdef inline float addcmul_half(float x, float a, float b, const double *p) noexcept nogil:
    """Uncertain where the first product is not exact."""
    cdef float value = <float>p[0], scaled = value * a
    return half_with_product(x, scaled, b, fma_f32(value, a, -scaled) == 0)


cdef inline float half_with_product(float x, float a, float b, bint known) noexcept nogil:
    """x + a b, rounded to odd, or uncertain: what rounding takes from product and sum is added."""
    cdef float product = a * b, size = abs_f32(product)
    cdef float sum = x + product, taken = sum - x
    cdef float low = fma_f32(a, b, -product)
    cdef float rest = (x - (sum - taken)) + (product - taken)
    cdef float more = rest + low, near = sum + more
    cdef bint exact = (more - rest == low) & (more - low == rest) & (abs_f32(more) <= abs_f32(sum))
    exact &= ((size > 1e-30) & (size < 1e30)) | (a == 0) | (b == 0)
    return odd_f32(near, more - (near - sum)) if exact & known & FUSED else in_doubt()


cdef inline double addcmul_f64(double x, double a, double b, const double *p) noexcept nogil:
    cdef double scaled = p[0] * a
    return sum_with_product(x, scaled, b, product_error(p[0], a, scaled) * b, False)


cdef inline int64_t addcmul_whole(int64_t x, int64_t a, int64_t b,
                                  const kernel_number *p) noexcept nogil:
    return x + p[0].whole * a * b


cdef inline double between(double a, double b, double weight, bint odd) noexcept nogil:
    """a + weight (b - a), the difference with what rounding takes from it."""
    cdef double apart = b - a, taken = apart - b
    cdef double low = (b - (apart - taken)) - (a + taken)
    return sum_with_product(a, weight, apart, weight * low, odd)


cdef inline bint is_exact(real apart, real a, real b) noexcept nogil:
    """Whether b - a is."""
    return (apart + a == b) & (b - apart == a)


cdef inline double lerp(double a, double b, double weight, const double *p) noexcept nogil:
    return between(a, b, weight, True)


cdef inline float lerp_f32(float a, float b, float weight, const double *p) noexcept nogil:
    cdef double apart = <double>b - a
    cdef bint exact = is_exact(apart, <double>a, <double>b)
    return f32_or_doubt(fma_f64(weight, apart, a), exact & FUSED)


cdef inline float lerp_half(float a, float b, float weight, const double *p) noexcept nogil:
    cdef float apart = b - a
    return half_with_product(a, weight, apart, is_exact(apart, a, b))


cdef inline double lerps(double a, double b, const double *p) noexcept nogil:
    """a + p[0] (b - a)."""
    return between(a, b, p[0], True)


cdef inline float lerps_f32(float a, float b, const double *p) noexcept nogil:
    cdef double apart = <double>b - a
    cdef bint exact = is_exact(apart, <double>a, <double>b)
    return f32_or_doubt(fma_f64(p[0], apart, a), exact & FUSED)


cdef inline float lerps_half(float a, float b, const double *p) noexcept nogil:
    cdef float apart = b - a
    return half_with_product(a, <float>p[0], apart, is_exact(apart, a, b))


cdef inline double lerps_f64(double a, double b, const double *p) noexcept nogil:
    return between(a, b, p[0], False)


# --- Gated units: products with one factor that is activated -------------------------------------

cdef inline double glu(double a, double b, const double *p) noexcept nogil:
    """a / (1 + e^-b)."""
    cdef double r = times_slope(a, sigma_of(b, decay_of(b)), b, 0.25, -STICKY)
    return ordered(a * 0 if b == -INFINITY else r, b)


cdef inline double glu_f64(double a, double b, const double *p) noexcept nogil:
    """With an exponential in two factors: a may be so large that e^b alone is none of a
    double's."""
    cdef double near = -700 if b < -700 else b
    cdef double e = full_exp(-fabs(near))
    cdef double one = 1 + e
    cdef double share = e if b < 0 else 1
    cdef double high = share / one
    cdef double low = (-product_error(high, one, share) - high * (e - (one - 1))) / one
    cdef double r = a * high
    low = product_error(a, high, r) + a * low
    return ordered((r + finite_or_none(low)) * full_exp(b - near if b < near else 0), b)


cdef inline double glu_backward_b(double g, double a, double b, const double *p) noexcept nogil:
    """g a s (1 - s), where that is 1/4 - b^2/16 near 0."""
    cdef double e = decay_of(b)
    cdef bint near = fabs(b) < 1e-4
    cdef double high = 0.25 if near else e / ((1 + e) * (1 + e))
    cdef double low = -(b * b) * 0.0625 if near else 0
    low -= STICKY if near & (b != 0) else 0
    high = 0 if fabs(b) == INFINITY else high
    return ordered(product_to_odd(g * a, high, low), b)


cdef inline double glu_backward_b_f64(double g, double a, double b,
                                      const double *p) noexcept nogil:
    """Gradient with what rounding takes of each part."""
    cdef double below = -fabs(b)
    cdef double near = -700 if below < -700 else below
    cdef double e = full_exp(near)
    cdef double one = 1 + e
    cdef double square = one * one
    cdef double more = product_error(one, one, square) + 2 * one * (e - (one - 1))
    cdef double high = e / square
    cdef double low = (-product_error(high, square, e) - high * more) / square
    cdef double scale = g * a
    cdef double r = scale * high
    low = product_error(scale, high, r) + (scale * low + product_error(g, a, scale) * high)
    return ordered((r + finite_or_none(low)) * full_exp(below - near if below < near else 0), b)


cdef inline double times_gelu(double a, double x, const double *p) noexcept nogil:
    return times_phi(a * x, x)


cdef inline double times_gelu_tanh(double a, double x, const double *p) noexcept nogil:
    return times_tanh_form(a * x, x)


cdef inline double times_gelu_backward(double g, double a, double x,
                                       const double *p) noexcept nogil:
    return gelu_backward(g * a, x, p)


cdef inline double times_gelu_backward_tanh(double g, double a, double x,
                                            const double *p) noexcept nogil:
    return gelu_backward_tanh(g * a, x, p)


cdef inline real fatrelu_mul(real x, real y, real least, const double *p) noexcept nogil:
    return canonical((<real>0 if x < least else x) * y)


cdef inline float fatrelu_mul_half(float x, float y, float least, const double *p) noexcept nogil:
    return canonical(product_half(<float>0 if x < least else x, y))


# The numbers of clipped_swiglu and its gradients: alpha, limit, bias.

cdef inline double clipped_gate(double a, double limit) noexcept nogil:
    return limit if a > limit else a


cdef inline double clipped_factor(double b, double limit, double bias,
                                  double *rest) noexcept nogil:
    """b + bias, and what rounding takes of it, as a part of it."""
    cdef double below = limit if b > limit else b
    cdef double clipped = -limit if below < -limit else below
    cdef double factor = clipped + bias
    cdef double taken = factor - clipped
    rest[0] = finite_or_none(((clipped - (factor - taken)) + (bias - taken)) / factor)
    return factor


cdef inline double clipped_swiglu(double b, double a, const double *p) noexcept nogil:
    """The gate is a, of which the other half is a factor."""
    cdef double gate = clipped_gate(a, p[1])
    cdef double y = p[0] * gate, rest
    cdef double scale = gate * clipped_factor(b, p[1], p[2], &rest)
    cdef double r = times_slope_and(scale, rest, sigma_of(y, decay_of(y)), y, 0.25, -STICKY)
    return canonical(NAN if y == -INFINITY else ordered(r, y))


cdef inline double clipped_swiglu_backward_a(double g, double a, double b,
                                             const double *p) noexcept nogil:
    cdef double y = p[0] * clipped_gate(a, p[1]), rest
    cdef double scale = g * clipped_factor(b, p[1], p[2], &rest)
    cdef double r = times_slope_and(scale, rest, slope_of_silu(y, decay_of(y)), y, 0.5, STICKY)
    return canonical(r if a <= p[1] else 0)


cdef inline double clipped_swiglu_backward_b(double g, double a, double b,
                                             const double *p) noexcept nogil:
    cdef double gate = clipped_gate(a, p[1])
    cdef double r = times_sigma(g * gate, p[0] * gate)
    return canonical(r if fabs(b) <= p[1] else 0)


# --- Rotations, and what is normalized by channel -------------------------------------------------

cdef inline double rotated(double x, double cosine, double y, double sine,
                           const double *p) noexcept nogil:
    """x cos + y sin, the second with the sign of the node."""
    return canonical(odd_scaled_sum(x * cosine, y, p[0] * sine))


cdef inline double channel_norm(double x, double mean, double scale, double bias,
                                const double *p) noexcept nogil:
    return canonical(fma_f64(x - mean, scale, bias))


cdef inline double channel_norm_silu(double x, double mean, double scale, double bias,
                                     const double *p) noexcept nogil:
    cdef double y = fma_f64(x - mean, scale, bias)  # what is chosen first would not vectorise
    return times_sigma(y, y)
