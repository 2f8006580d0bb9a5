"""References in extended precision: row-wise operators, and pointwise ones of several tensors."""

import ml_dtypes
import numpy as np

WIDE = np.longdouble
DIGITS = {np.float32: 24, np.float16: 11, ml_dtypes.bfloat16: 8, np.float64: 53}
LEAST = {np.float32: -149, np.float16: -24, ml_dtypes.bfloat16: -133, np.float64: -1074}


def ulps(found, want):
    """How far results lie from exact ones, in units of the last place of their dtype."""
    kind = found.dtype.type
    _, exponent = np.frexp(np.where(want == 0, 1, want))
    unit = np.exp2(np.maximum(exponent - DIGITS[kind], LEAST[kind]).astype(WIDE))
    return np.max(np.abs(found.astype(WIDE) - want) / unit, initial=0)


def where_positive(x, yes, no):
    """Of arrays, or of single numbers of mpmath."""
    return np.where(x > 0, yes, no)[()]


def softmax(x, axis):
    e = np.exp(x.astype(WIDE) - x.astype(WIDE).max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    shifted = x.astype(WIDE) - x.astype(WIDE).max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def softmax_backward(g, y, axis):
    g, y = g.astype(WIDE), y.astype(WIDE)
    return y * (g - (g * y).sum(axis, keepdims=True))


def log_softmax_backward(g, y, axis):
    g, y = g.astype(WIDE), y.astype(WIDE)
    return g - np.exp(y) * g.sum(axis, keepdims=True)


def layer_norm(x, count, weight=None, bias=None, eps=1e-5):
    x, axes = x.astype(WIDE), tuple(range(-count, 0))
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + WIDE(eps))
    y = (x - mean) * rstd
    y = y if weight is None else y * weight.astype(WIDE)
    return y if bias is None else y + bias.astype(WIDE), mean, rstd


def layer_norm_backward(g, x, mean, rstd, count, weight=None):
    g, x, axes = g.astype(WIDE), x.astype(WIDE), tuple(range(-count, 0))
    h = (x - mean.astype(WIDE)) * rstd.astype(WIDE)
    q = g if weight is None else g * weight.astype(WIDE)
    shares = q - q.mean(axes, keepdims=True) - h * (q * h).mean(axes, keepdims=True)
    rows = tuple(range(x.ndim - count))
    return rstd.astype(WIDE) * shares, (g * h).sum(rows), g.sum(rows)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    rows = x.astype(WIDE).reshape(x.shape[0], groups, -1)
    y, mean, rstd = layer_norm(rows, 1, eps=eps)
    channels = (1, x.shape[1], *[1] * (x.ndim - 2))
    y = y.reshape(x.shape)
    y = y if weight is None else y * weight.astype(WIDE).reshape(channels)
    y = y if bias is None else y + bias.astype(WIDE).reshape(channels)
    return y, mean[..., 0], rstd[..., 0]


def rms_norm(x, count, gamma=None, eps=1e-6):
    x, axes = x.astype(WIDE), tuple(range(-count, 0))
    rstd = 1 / np.sqrt((x**2).mean(axes, keepdims=True) + WIDE(eps))
    return x * rstd if gamma is None else x * rstd * gamma.astype(WIDE), rstd


def rms_norm_backward(g, x, rstd, count, gamma):
    g, h, axes = g.astype(WIDE), x.astype(WIDE) * rstd.astype(WIDE), tuple(range(-count, 0))
    q = g * gamma.astype(WIDE)
    grad_input = rstd.astype(WIDE) * (q - h * (q * h).mean(axes, keepdims=True))
    return grad_input, (g * h).sum(tuple(range(x.ndim - count)))


# --- Pointwise: `m` is NumPy, on arrays in extended precision, or mpmath, on single numbers ---------


def sigmoid(m, x):
    # How little it is less than 1 decides ties; single numbers have digits for e^-200.
    return 1 / (1 + m.exp(-x if m is np else -max(-200, min(x, 200))))


def gelu_tanh(m, x):
    # (1 + tanh(w))/2 = 1/(1 + exp(-2w)).
    pi = np.longdouble("3.14159265358979323846264338327950288") if m is np else m.pi
    factor = np.longdouble("0.044715") if m is np else m.mpf("0.044715")
    return x * sigmoid(m, 2 * m.sqrt(2 / pi) * (x + factor * x**3))


def clipped(m, a, b, limit):
    if m is np:
        return np.minimum(a, limit), np.clip(b, -limit, limit)
    return min(a, limit), max(min(b, limit), -limit)


def clipped_swiglu(m, a, b, alpha=1.5, limit=2.5, bias=0.75):
    a, b = clipped(m, a, b, limit)
    return a * sigmoid(m, alpha * a) * (b + bias)


def clipped_swiglu_backward(m, g, a, b, alpha=1.5, limit=2.5, bias=0.75):
    inside = (a <= limit) * 1, (abs(b) <= limit) * 1
    a, b = clipped(m, a, b, limit)
    y = alpha * a
    s, rest = sigmoid(m, y), sigmoid(m, -y)
    return g * (b + bias) * s * (1 + y * rest) * inside[0], g * a * s * inside[1]


def swiglu(m, a, b):
    return a * sigmoid(m, a) * b


def swiglu_backward(m, g, a, b):
    """The gradients for both halves."""
    s = sigmoid(m, a)
    return g * b * s * (1 + a * sigmoid(m, -a)), g * a * s


def error_function(m, x):
    """The one of SciPy, which is good to float64."""
    if m is not np:
        return m.erf(x)
    from scipy.special import erf

    return erf(x.astype(np.float64))


def inverse_error_function(m, x):
    """SciPy's again; beyond 1 there is none."""
    if m is not np:
        return m.erfinv(x)
    from scipy.special import erfinv

    return erfinv(x.astype(np.float64))


def power(m, a, b):
    """NaN where it is not real."""
    if m is np:
        return np.power(a, b)
    found = m.power(a, b)
    return found if isinstance(found, m.mpf) else m.nan


def real(m, function, x):
    """A function of mpmath's has complex values where NumPy's has none."""
    found = function(x)
    return found if m is np or isinstance(found, m.mpf) else m.nan


# Functions of one number, on arrays of NumPy or numbers of mpmath.
FUNCTIONS = {
    "exp2": lambda m, x: np.exp2(x) if m is np else m.mpf(2) ** x,
    "expm1": lambda m, x: m.expm1(x),
    "log": lambda m, x: real(m, m.log, x),
    "log2": lambda m, x: np.log2(x) if m is np else real(m, m.log, x) / m.log(2),
    "log10": lambda m, x: real(m, m.log10, x),
    "log1p": lambda m, x: real(m, m.log1p, x),
    "rsqrt": lambda m, x: 1 / real(m, m.sqrt, x),
    "reciprocal": lambda m, x: 1 / x,
    "square": lambda m, x: x * x,
    "sin": lambda m, x: m.sin(x),
    "cos": lambda m, x: m.cos(x),
    "erf": error_function,
}
