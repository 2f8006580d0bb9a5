/* Functions of doubles over their whole range, for results in double, and for what float32 and half precision
 * leave to doubles: results depend on no C library.
 *
 * A function in two parts gives the sum of two doubles. Errors are in units in the last place (ULP) of the result;
 * where there is no fused multiply-add they may be half a unit larger. `tools/bounds.py` computes them;
 * `tools/coefficients.py` makes the polynomials and tables. Functions that need no table and no branch vectorise.
 */
#ifndef ACLNN_DOUBLE_MATH_H
#define ACLNN_DOUBLE_MATH_H

#include "double_tables.h"
#include "vector_math.h"

/* The error of the rounded sum of a, the larger one or 0, and b. */
ALWAYS_INLINE double sum_error(double a, double b, double sum) { return b - (sum - a); }

/* --- Polynomials ------------------------------------------------------------------------------------------- */

/* (ln(1 + z) - z + z^2/2) / z^3 for |z| up to 1.01 * 2^-8, error 2^-55. */
ALWAYS_INLINE double log_rest(double z) {
    double p = 0x1.c71f0a85e1c70p-4;
    p = fma_f64(p, z, -0x1.00016d9c19c19p-3);
    p = fma_f64(p, z, 0x1.24924923e8c22p-3);
    p = fma_f64(p, z, -0x1.555555549ada7p-3);
    p = fma_f64(p, z, 0x1.999999999999bp-3);
    p = fma_f64(p, z, -0x1.0000000000001p-2);
    p = fma_f64(p, z, 0x1.5555555555555p-2);
    return p;
}
/* (sin(r)/r - 1) / r^2 by z = r^2 up to 0.617, error 2^-56. */
ALWAYS_INLINE double sine_tail(double z) {
    double p = -0x1.ab17c21adf462p-41;
    p = fma_f64(p, z, 0x1.61217eed1c04ap-33);
    p = fma_f64(p, z, -0x1.ae6454129f078p-26);
    p = fma_f64(p, z, 0x1.71de3a54607fap-19);
    p = fma_f64(p, z, -0x1.a01a01a019937p-13);
    p = fma_f64(p, z, 0x1.1111111111110p-7);
    p = fma_f64(p, z, -0x1.5555555555555p-3);
    return p;
}
/* (cos(r) - 1 + r^2/2) / r^4 by z = r^2 up to 0.617, error 2^-58. */
ALWAYS_INLINE double cosine_tail(double z) {
    double p = 0x1.ab784b1122af7p-45;
    p = fma_f64(p, z, -0x1.9394b9f1ce104p-37);
    p = fma_f64(p, z, 0x1.1eed8deb869afp-29);
    p = fma_f64(p, z, -0x1.27e4fb7712cc8p-22);
    p = fma_f64(p, z, 0x1.a01a01a019d0ap-16);
    p = fma_f64(p, z, -0x1.6c16c16c16c16p-10);
    p = fma_f64(p, z, 0x1.5555555555555p-5);
    return p;
}
/* erf(x)/x - 1 by z = x^2 up to 1, error 2^-55. */
ALWAYS_INLINE double erf_tail(double z) {
    double p = 0x1.05ffd737fb32ep-34;
    p = fma_f64(p, z, -0x1.389d4f2641625p-30);
    p = fma_f64(p, z, 0x1.f7b4bf3b13964p-27);
    p = fma_f64(p, z, -0x1.5f1ecb6f0764cp-23);
    p = fma_f64(p, z, 0x1.b9df224ca4b97p-20);
    p = fma_f64(p, z, -0x1.f4d1e3183f7aep-17);
    p = fma_f64(p, z, 0x1.f9a321d5b8e1ep-14);
    p = fma_f64(p, z, -0x1.c02db3dac435fp-11);
    p = fma_f64(p, z, 0x1.565bcd0dbaa38p-8);
    p = fma_f64(p, z, -0x1.b82ce31284e00p-6);
    p = fma_f64(p, z, 0x1.ce2f21a042b30p-4);
    p = fma_f64(p, z, -0x1.812746b0379e6p-2);
    p = fma_f64(p, z, 0x1.06eba8214db69p-3);
    return p;
}

/* --- Exponentials ------------------------------------------------------------------------------------------ */

/* 2^n, in two factors that both are normal numbers, for n from -1100 to 1100: `shifted` is 1.5 * 2^52 + n. */
ALWAYS_INLINE double half_scale(double shifted, uint64_t more) {
    return f64_of_bits((((bits_of_f64(shifted) + more) >> 1) << 52) + 0x3ff0000000000000ull);
}
ALWAYS_INLINE double within_f64(double x, double low, double high) {
    double above = x < low ? low : x;
    return above > high ? high : above;
}
/* (1 + s) 2^n; where that is no normal number, rounded twice. */
ALWAYS_INLINE double scaled_up(double s, double shifted) {
    double scale = half_scale(shifted, 0);
    return fma_f64(s, scale, scale) * half_scale(shifted, 1);
}
/* e^x, 1 ULP. */
ALWAYS_INLINE double full_exp(double x) {
    double y = within_f64(x, -760.0, 720.0);
    double shifted = fma_f64(y, 0x1.71547652b82fep+0, 0x1.8p52), n = shifted - 0x1.8p52;
    double r = fma_f64(n, -0x1.ef35793c76730p-45, fma_f64(n, -0x1.62e42fefa3800p-1, y));
    return scaled_up(fma_f64(r * r, exp_tail(r), r), shifted);
}
/* 2^x, 0.9 ULP; exact for whole numbers. */
ALWAYS_INLINE double full_exp2(double x) {
    double y = within_f64(x, -1090.0, 1030.0);
    double shifted = y + 0x1.8p52, rest = y - (shifted - 0x1.8p52);
    double r = rest * 0x1.62e42fefa39efp-1;
    double low = product_error(rest, 0x1.62e42fefa39efp-1, r) + rest * 0x1.abc9e3b39803fp-56;
    return scaled_up(fma_f64(r * r, exp_tail(r), low) + r, shifted);
}
/* e^x - 1, 1.3 ULP: every sum is in two parts. */
ALWAYS_INLINE double full_expm1(double x) {
    double y = within_f64(x, -60.0, 60.0);
    double shifted = fma_f64(y, 0x1.71547652b82fep+0, 0x1.8p52), n = shifted - 0x1.8p52;
    double scale = f64_of_bits((bits_of_f64(shifted) << 52) + 0x3ff0000000000000ull);
    double near = fma_f64(n, -0x1.62e42fefa3800p-1, y), more = n * -0x1.ef35793c76730p-45;
    double r = near + more, r_low = sum_error(near, more, r);
    double tail = fma_f64(r * r, exp_tail(r), fma_f64(r, r_low, r_low)), s = r + tail, s_low = sum_error(r, tail, s);
    double less = scale - 1.0, less_low = scale < 1.0 ? scale - (less + 1.0) : (scale - less) - 1.0;
    double grown = s * scale, sum = less + grown, taken = sum - less;
    double low = ((less - (sum - taken)) + (grown - taken)) + fma_f64(s_low, scale, less_low);
    double r_near = x > 60.0 ? full_exp(x) : sum + low;
    return x == 0.0 ? x : r_near; /* -0 stays */
}

/* --- Logarithms -------------------------------------------------------------------------------------------- */

/* u + low = 2^e m of a positive u, where low is at most half a unit of u, and ln(m) in two parts, 2^-59 of it. */
typedef struct { double high, low, e; } log_parts_t;
ALWAYS_INLINE log_parts_t log_parts(double u, double low) {
    int tiny = u < 0x1p-1022;
    double normal = tiny ? u * 0x1p54 : u;
    uint64_t bits = bits_of_f64(normal) - 0x3fe6a09e667f3bcdull;
    uint64_t biased = (bits + 0x8000000000000000ull) >> 52;
    double e = f64_of_bits(biased | 0x4330000000000000ull) - (0x1p52 + 2048.0);
    double m = f64_of_bits((bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    double scaled = low * f64_of_bits((2048 + 1023 - biased) << 52); /* times 2^-e */
    double part = low == 0.0 ? 0.0 : scaled;
    double sum = m + 1.0, sum_low = (m - (sum - 1.0)) + part;
    double less = m - 1.0, near = less + part, near_low = sum_error(less, part, near);
    double s = near / sum, product = s * sum;
    double rest = (near - product) - product_error(s, sum, product);
    double s_low = (rest - s * sum_low + near_low) / sum;
    log_parts_t found = { 2.0 * s, 2.0 * fma_f64(s * (s * s), atanh_tail(s * s), s_low), tiny ? e - 54.0 : e };
    return found;
}
/* A logarithm of u + low to the base whose natural logarithm is 1 / (c + c_low); that of 2 to it is octave + octave_low,
 * of which whole multiples are exact. 0.6 ULP. */
ALWAYS_INLINE double log_to(double u, double low, double c, double c_low, double octave, double octave_low) {
    log_parts_t p = log_parts(u, low);
    double high = p.high * c, rest = product_error(p.high, c, high) + fma_f64(p.high, c_low, p.low * c);
    double whole = p.e * octave, sum = whole + high;
    double r = sum + (sum_error(whole, high, sum) + fma_f64(p.e, octave_low, rest));
    r = u == INFINITY ? u : r;
    r = u == 0.0 ? -INFINITY : r;
    return (u < 0.0) | (u != u) ? __builtin_nan("") : r;
}
ALWAYS_INLINE double full_log(double x) {
    return log_to(x, 0.0, 1.0, 0.0, 0x1.62e42fefa3800p-1, 0x1.ef35793c76730p-45);
}
ALWAYS_INLINE double full_log2(double x) {
    return log_to(x, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1.0, 0.0);
}
ALWAYS_INLINE double full_log10(double x) {
    return log_to(x, 0.0, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f7800p-2, 0x1.fef311f12b358p-46);
}
ALWAYS_INLINE double full_log1p(double x) {
    double u = x + 1.0, low = x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);
    low = x < 0x1p60 ? low : 0.0;
    double r = log_to(u, low, 1.0, 0.0, 0x1.62e42fefa3800p-1, 0x1.ef35793c76730p-45);
    return __builtin_fabs(x) < 0x1p-54 ? x : r; /* -0 stays */
}

/* --- Powers ------------------------------------------------------------------------------------------------ */

/* ln(a) in two parts, 2^-64 of it, of a normal number or of one times 2^54, whose octaves then are `less`: from a
 * table of 128 parts of an octave, and a series. */
ALWAYS_INLINE double long_log(double a, double less, double *low) {
    uint64_t bits = bits_of_f64(a) - 0x3fe6a09e667f3bcdull;
    double e = (double)((int64_t)bits >> 52) - less;
    double m = f64_of_bits((bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    const double *part = LOG_PARTS[(bits >> 45) & 127];
    double product = m * part[0], r = product - 1.0, r_low = product_error(m, part[0], product);
    double square = -0.5 * (r * r), square_low = -0.5 * product_error(r, r, r * r);
    double octaves = fma_f64(e, 0x1.62e42fefa3800p-1, part[1]); /* exact */
    double first = octaves + r, second = first + square;
    double rest = sum_error(octaves, r, first) + sum_error(first, square, second);
    rest += square_low + fma_f64(e, 0x1.ef35793c76730p-45, part[2]) + r_low * (1.0 - fma_f64(-r, r, r));
    rest = fma_f64(r * (r * r), log_rest(r), rest);
    double high = second + rest;
    *low = sum_error(second, rest, high);
    return high;
}
/* e^(y + low) for |y| up to 800, where low is less than a unit of 2^-40. */
ALWAYS_INLINE double exp_of_parts(double y, double low) {
    double shifted = fma_f64(y, 0x1.71547652b82fep+0, 0x1.8p52), n = shifted - 0x1.8p52;
    double near = fma_f64(n, -0x1.62e42fefa3800p-1, y), more = fma_f64(n, -0x1.ef35793c76730p-45, low);
    double r = near + more, r_low = more - (r - near);
    return scaled_up(fma_f64(r * r, exp_tail(r), fma_f64(r, r_low, r_low)) + r, shifted);
}
/* a to the power of b, 0.9 ULP, with the exceptions of IEEE 754. */
__attribute__((unused)) static double full_pow(double a, double b) {
    double size = __builtin_fabs(a);
    int64_t whole = __builtin_fabs(b) < 0x1p53 ? (int64_t)b : 0; /* larger ones are even */
    int is_whole = __builtin_fabs(b) >= 0x1p53 || (double)whole == b;
    int minus = __builtin_signbit(a) && is_whole && whole & 1;
    if (a == 1.0 || b == 0.0) return 1.0;
    if (a != a || b != b) return a + b;
    if (b - b != 0.0) return size == 1.0 ? 1.0 : (size > 1.0) == (b > 0.0) ? INFINITY : 0.0;
    if (size == 0.0 || size == INFINITY) {
        double r = (size == 0.0) == (b > 0.0) ? 0.0 : INFINITY;
        return minus ? -r : r;
    }
    if (a < 0.0 && !is_whole) return __builtin_nan("");
    int tiny = size < 0x1p-1022;
    double low, high = long_log(tiny ? size * 0x1p54 : size, tiny ? 54.0 : 0.0, &low);
    double y = b * high;
    double r;
    if (y > 710.0) r = INFINITY;
    else if (y < -750.0) r = 0.0;
    else if (!(__builtin_fabs(y) > 0x1p-60)) r = 1.0 + y;
    else r = exp_of_parts(y, product_error(b, high, y) + b * low);
    return minus ? -r : r;
}

/* --- Trigonometry ------------------------------------------------------------------------------------------ */

/* What is left of an angle once quarters of a turn are taken off, in two parts, 2^-106 of 1 and 2^-60 of itself, and how
 * many they are, modulo 4. */
typedef struct { double high, low; int quarters; } angle_t;

/* From 2^20 quarters on: by the digits of 2/pi that matter. */
__attribute__((noinline, unused)) static angle_t distant_angle(double x) {
    uint64_t bits = bits_of_f64(x), whole = (bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
    int first = (int)(bits >> 52 & 0x7ff) - 1075 + 62; /* digits before it make whole turns; a word of none is first */
    const uint64_t *words = QUARTERS_DIGITS + first / 64;
    int shift = first % 64;
    uint64_t digits[3];
    for (int k = 0; k < 3; k++)
        digits[k] = shift ? words[k] << shift | words[k + 1] >> (64 - shift) : words[k];
    unsigned __int128 lowest = (unsigned __int128)whole * digits[2];
    unsigned __int128 middle = (unsigned __int128)whole * digits[1] + (uint64_t)(lowest >> 64);
    uint64_t top = whole * digits[0] + (uint64_t)(middle >> 64);
    /* Two bits of quarters, and 128 of what is left of one. */
    unsigned __int128 rest = (unsigned __int128)top << 66 | (unsigned __int128)(uint64_t)middle << 2 | (uint64_t)lowest >> 62;
    int quarters = (int)(top >> 62), minus = (int)(rest >> 127);
    unsigned __int128 size = minus ? -rest : rest;
    double high = (double)size, low = (double)(__int128)(size - (unsigned __int128)high);
    high *= 0x1p-128, low *= 0x1p-128;
    angle_t found;
    double product = high * 0x1.921fb54442d18p+0;
    double more = product_error(high, 0x1.921fb54442d18p+0, product);
    more += fma_f64(high, 0x1.1a62633145c07p-54, low * 0x1.921fb54442d18p+0);
    found.high = product + more;
    found.low = sum_error(product, more, found.high);
    found.quarters = quarters + minus;
    if (minus) found.high = -found.high, found.low = -found.low;
    if (bits >> 63) found.high = -found.high, found.low = -found.low, found.quarters = -found.quarters;
    return found;
}
/* pi/2 in three parts of 33 bits and a last one, so that multiples of them are exact. */
ALWAYS_INLINE angle_t angle_of(double x) {
    if (!(__builtin_fabs(x) < 0x1p20)) return distant_angle(x);
    double shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52, n = shifted - 0x1.8p52;
    double rest = x - n * 0x1.921fb54400000p+0;
    double part = n * 0x1.0b4611a600000p-34, first = rest - part;
    double lost = (rest - first) - part;
    double last = n * 0x1.3198a2e000000p-69, second = first - last, taken = second - first;
    double low = lost + ((first - (second - taken)) - (last + taken));
    low -= n * 0x1.b839a252049c1p-104;
    angle_t found;
    found.high = second + low;
    found.low = sum_error(second, low, found.high);
    found.quarters = (int)(uint32_t)bits_of_f64(shifted);
    return found;
}
/* Of an angle of at most pi/4: r + r^3 (...), and 1 - r^2/2 + r^4 (...). */
ALWAYS_INLINE double sine_of_angle(angle_t t) {
    double r = t.high, square = r * r;
    double rest = fma_f64(r * square, sine_tail(square), fma_f64(-0.5 * square, t.low, t.low));
    return r + rest;
}
ALWAYS_INLINE double cosine_of_angle(angle_t t) {
    double square = t.high * t.high, halved = 0.5 * square, near = 1.0 - halved;
    double lost = (1.0 - near) - halved - 0.5 * product_error(t.high, t.high, square);
    return near + fma_f64(square * square, cosine_tail(square), fma_f64(-t.high, t.low, lost));
}
ALWAYS_INLINE double turned_sine(double x, int turn) {
    angle_t t = angle_of(x);
    int quarters = t.quarters + turn;
    double r = quarters & 1 ? cosine_of_angle(t) : sine_of_angle(t);
    return quarters & 2 ? -r : r;
}
/* Sine and cosine, 0.7 ULP. */
__attribute__((unused)) static double full_sin(double x) {
    if (x - x != 0.0) return __builtin_nan("");
    return __builtin_fabs(x) < 0x1p-28 ? x : turned_sine(x, 0); /* -0 stays */
}
__attribute__((unused)) static double full_cos(double x) { return x - x != 0.0 ? __builtin_nan("") : turned_sine(x, 1); }

/* --- The error function, lengths --------------------------------------------------------------------------- */

/* erf(x), 1.2 ULP: a polynomial below 1, beyond 1 less a tail of the normal distribution. */
ALWAYS_INLINE double full_erf(double x) {
    double size = __builtin_fabs(x), far = size < 6.0 ? size : 6.0, t = far * 0x1.6a09e667f3bcdp+0;
    double near = fma_f64(x, erf_tail(x * x), x);
    double ratio = mills_factor(mills_variable(t)) / (t + 4.0);
    double tail = exp_f64(-far * far) * 0x1.9884533d43651p-1 * ratio;
    double r = size < 1.0 ? near : __builtin_copysign(1.0 - tail, x);
    return x != x ? x : r;
}
/* The length of (x, y), 0.6 ULP: scaled, so that squares are neither too large nor too small. */
ALWAYS_INLINE double full_hypot(double x, double y) {
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    double more = a < b ? b : a, less = a < b ? a : b;
    double scale = more > 0x1p500 ? 0x1p-600 : more < 0x1p-450 ? 0x1p600 : 1.0;
    double p = more * scale, q = less * scale;
    double square = p * p, other = q * q, sum = square + other;
    double rest = sum_error(square, other, sum) + product_error(p, p, square) + product_error(q, q, other);
    double root = __builtin_sqrt(sum), product = root * root;
    double error = ((sum - product) - product_error(root, root, product)) + rest;
    double r = (sum > 0.0 ? root + error / (2.0 * root) : root) / scale;
    r = (a != a) | (b != b) ? __builtin_nan("") : r;
    return (a == INFINITY) | (b == INFINITY) ? INFINITY : r;
}

#endif
