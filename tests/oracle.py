"""Independent references: the formulas once more, in float64 and mpmath, sharing no code with us.

`REFERENCES` gives each functional form's value on float64 arrays; good to about 1e-15, which is
all that checks at float32 need. Where a result must be known to the last bit, tests use mpmath.
"""

from __future__ import annotations

import math

import numpy as np

_erfc = np.vectorize(math.erfc, otypes=[np.float64])
SQRT2 = math.sqrt(2.0)


def phi(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def cdf(x):
    return 0.5 * _erfc(-x / SQRT2)


def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(input_scale * np.minimum(x, 0)))


def elu_backward(g, x, alpha=1.0, scale=1.0, input_scale=1.0, is_result=False):
    if is_result:
        return np.where(x <= 0, g * input_scale * (x + alpha * scale), g * scale)
    decay = np.exp(input_scale * np.where(x <= 0, x, 0))
    return np.where(x <= 0, g * input_scale * alpha * scale * decay, g * scale)


def leaky_relu(x, negative_slope=0.01):
    return np.where(x > 0, x, x * negative_slope)


def leaky_relu_backward(g, x, negative_slope=0.01, self_is_result=False):
    return np.where(x > 0, g, g * negative_slope)


def hardshrink(x, lambd=0.5):
    lambd = max(lambd, 0.0)
    return np.where((x > lambd) | (x < -lambd), x, 0.0)


def hardshrink_backward(g, x, lambd=0.5):
    lambd = max(lambd, 0.0)
    return np.where((x > lambd) | (x < -lambd), g, 0.0)


def tanh_form_sigmoid(x):
    """(1 + tanh(w))/2 without cancellation."""
    return 1 / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu(x, approximate="none"):
    return x * (tanh_form_sigmoid(x) if approximate == "tanh" else cdf(x))


def gelu_backward(g, x, approximate="none"):
    if approximate == "tanh":
        rate = 2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
        return g * tanh_form_sigmoid(x) * (1 + x * tanh_form_sigmoid(-x) * rate)
    return g * (cdf(x) + x * phi(x))


def logit(x, eps=None):
    e = -1.0 if eps is None else eps
    z = x if e < 0 else np.where(x < e, e, np.minimum(x, 1 - e))
    with np.errstate(all="ignore"):
        return np.log(z / (1 - z))


def logit_backward(g, x, eps=None):
    e = -1.0 if eps is None else eps
    low, high = (0.0, 1.0) if e < 0 else (e, 1.0 - e)
    with np.errstate(all="ignore"):
        inside = (x >= low) & (x <= high)
        return np.where(inside, g / (x * (1 - x)), np.nan if e < 0 else 0.0)


REFERENCES = {
    function.__name__: function
    for function in (
        elu,
        elu_backward,
        leaky_relu,
        leaky_relu_backward,
        hardshrink,
        hardshrink_backward,
        gelu,
        gelu_backward,
        logit,
        logit_backward,
    )
}


def ulp_distance(actual, exact):
    """Distance in units of float32's last place at the exact value; NaN against NaN is 0."""
    exact = np.asarray(exact, np.float64)
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        spacing = np.maximum(np.abs(np.spacing(nearest)).astype(np.float64), 2.0**-149)
        distance = np.abs(actual.astype(np.float64) - exact) / spacing
    same = (np.isnan(actual) & np.isnan(exact)) | (np.isinf(nearest) & (actual == nearest))
    return np.where(same, 0.0, distance)
