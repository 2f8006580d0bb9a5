"""References of the operators whose formula is not in `oracle.py`: calls, and what they should give.

`EXTENDED` has pointwise ones by name and options: a call, its reference, evaluated in extended precision and on
mpmath's numbers, and how many arrays both take.  `ROWS` has row-wise ones: functions of dtype, shape and axis
that give by result what is found, what it should be, and the largest term that may cancel.  `ADDENDS` and
`PRODUCTS` have products of matrices.  `tools/accuracy.py` measures all of them.
"""

import math

import numpy as np
import oracle
import wide
from wide import WIDE

import aclnn

# --- Pointwise operators --------------------------------------------------------------------------


def swiglu(a, b):
    return aclnn.swiglu(np.concatenate([a, b]), 0)


def swiglu_backward(half):
    """The gradient for one of the halves, as if there were no other."""

    def called(g, a, b):
        return np.split(aclnn.swiglu_backward(g, np.concatenate([a, b]), 0), 2)[half]

    return called


def units(name, place=None, **options):
    """A gated unit of two halves, or the gradient of one of them, as if there were no other."""

    def called(*arrays):
        x = np.concatenate(arrays[-2:])
        made = getattr(aclnn, name)(*arrays[:-2], x, dim=0, **options)
        made = made[0] if isinstance(made, tuple) else made
        return made if place is None else np.split(made, 2)[place]

    return called


def gelu(m, x):
    """How little its factor is less than 1 decides ties: there are digits for that of 20."""
    return x * (oracle.cdf(oracle.Arrays, x) if m is np else oracle.cdf(oracle.Digits, min(x, 20)))


CLIPPED = {"alpha": 1.5, "limit": 2.5, "bias": 0.75}
FACTOR = 0.3
ROUNDED = float(np.float32(FACTOR))  # scalars take part as float32
# By operator and options: how it is called, its reference, and how many arrays both take.
EXTENDED = {
    ("exp", ""): (aclnn.exp, lambda m, x: m.exp(x), 1),
    ("sqrt", ""): (aclnn.sqrt, lambda m, x: m.sqrt(x), 1),
    ("add", ""): (aclnn.add, lambda m, a, b: a + b, 2),
    ("add", "alpha=0.3"): (
        lambda a, b: aclnn.add(a, b, alpha=FACTOR), lambda m, a, b: a + ROUNDED * b, 2,
    ),
    ("adds", "other=0.3"): (lambda x: aclnn.add(x, FACTOR), lambda m, x: x + ROUNDED, 1),
    ("sub", ""): (aclnn.sub, lambda m, a, b: a - b, 2),
    ("subs", "other=0.3"): (lambda x: aclnn.sub(x, FACTOR), lambda m, x: x - ROUNDED, 1),
    ("mul", ""): (aclnn.mul, lambda m, a, b: a * b, 2),
    ("muls", "other=0.3"): (lambda x: aclnn.mul(x, FACTOR), lambda m, x: x * ROUNDED, 1),
    ("div", ""): (aclnn.div, lambda m, a, b: a / b, 2),
    ("divs", "other=0.3"): (lambda x: aclnn.div(x, FACTOR), lambda m, x: x / ROUNDED, 1),
    **{(name, ""): (getattr(aclnn, name), formula, 1) for name, formula in wide.FUNCTIONS.items()},
    ("rsub", ""): (aclnn.rsub, lambda m, a, b: b - a, 2),
    ("rsubs", "other=0.3"): (lambda x: aclnn.rsub(x, FACTOR), lambda m, x: ROUNDED - x, 1),
    ("div_mod", "mode=floor"): (
        lambda a, b: aclnn.div_mod(a, b, "floor"), lambda m, a, b: m.floor(a / b), 2,
    ),
    ("div_mods", "mode=trunc, other=0.3"): (
        lambda x: aclnn.div_mod(x, FACTOR, "trunc"),
        lambda m, x: m.sign(x) * m.floor(abs(x) / ROUNDED), 1,
    ),
    ("pow", ""): (aclnn.pow, wide.power, 2),
    ("pow_tensor_scalar", "exponent=0.3"): (
        lambda x: aclnn.pow(x, FACTOR), lambda m, x: wide.power(m, x, ROUNDED), 1,
    ),
    ("pow_scalar_tensor", "input=2.0"): (
        lambda x: aclnn.pow(2.0, x), lambda m, x: wide.power(m, 2.0, x), 1,
    ),
    ("addcmul", "value=0.3"): (
        lambda x, a, b: aclnn.addcmul(x, a, b, value=FACTOR),
        lambda m, x, a, b: x + ROUNDED * a * b, 3,
    ),
    ("lerp", ""): (aclnn.lerp, lambda m, a, b, c: (1 - c) * a + c * b, 3),
    ("lerps", "weight=0.3"): (
        lambda a, b: aclnn.lerp(a, b, FACTOR), lambda m, a, b: (1 - ROUNDED) * a + ROUNDED * b, 2,
    ),
    ("relu", ""): (aclnn.relu, lambda m, x: wide.where_positive(x, x, 0), 1),
    ("heaviside", ""): (
        aclnn.heaviside, lambda m, x, v: np.where(x == 0, v, wide.where_positive(x, 1, 0))[()], 2,
    ),
    ("erfinv", ""): (aclnn.erfinv, wide.inverse_error_function, 1),
    ("log_sigmoid_forward", ""): (
        aclnn.log_sigmoid_forward,
        lambda m, x: oracle.log_sigmoid(oracle.Arrays if m is np else oracle.Digits, x), 1,
    ),
    ("add_relu", ""): (aclnn.add_relu, lambda m, a, b: wide.where_positive(a + b, a + b, 0), 2),
    ("prelu", ""): (
        lambda x, w: aclnn.prelu(x[None], w)[0],
        lambda m, x, w: wide.where_positive(x, x, x * w), 2,
    ),
    ("prelu_backward", "grad_input"): (
        lambda g, x, w: aclnn.prelu_backward(g[None], x[None], w)[0][0],
        lambda m, g, x, w: wide.where_positive(x, g, g * w), 3,
    ),
    ("rrelu_with_noise", "upper=0.3"): (
        lambda x: aclnn.rrelu_with_noise(x, x, upper=FACTOR),
        lambda m, x: wide.where_positive(x, x, x * (0.125 + ROUNDED) / 2), 1,
    ),
    ("log_sigmoid_backward", ""): (
        lambda x, g: aclnn.log_sigmoid_backward(g, x, x),
        lambda m, x, g: g * wide.sigmoid(m, -x), 2,
    ),
    ("swiglu", ""): (swiglu, wide.swiglu, 2),
    ("swiglu_backward", "first half"): (
        swiglu_backward(0), lambda m, *x: wide.swiglu_backward(m, *x)[0], 3,
    ),
    ("swiglu_backward", "second half"): (
        swiglu_backward(1), lambda m, *x: wide.swiglu_backward(m, *x)[1], 3,
    ),
    ("glu", ""): (units("glu"), lambda m, a, b: a * wide.sigmoid(m, b), 2),
    ("glu_backward", "first half"): (
        units("glu_backward", 0), lambda m, g, a, b: g * wide.sigmoid(m, b), 3,
    ),
    ("glu_backward", "second half"): (
        units("glu_backward", 1),
        lambda m, g, a, b: g * a * wide.sigmoid(m, b) * wide.sigmoid(m, -b), 3,
    ),
    ("geglu", "approximate=0"): (
        units("geglu", approximate=0),
        lambda m, a, b: a * gelu(m, b), 2,
    ),
    ("geglu", "approximate=1"): (units("geglu"), lambda m, a, b: a * wide.gelu_tanh(m, b), 2),
    ("clipped_swiglu", "alpha=1.5, limit=2.5, bias=0.75"): (
        units("clipped_swiglu", interleaved=False, **CLIPPED), wide.clipped_swiglu, 2,
    ),
    ("clipped_swiglu_backward", "first half"): (
        units("clipped_swiglu_backward", 0, interleaved=False, **CLIPPED),
        lambda m, *x: wide.clipped_swiglu_backward(m, *x)[0], 3,
    ),
    ("clipped_swiglu_backward", "second half"): (
        units("clipped_swiglu_backward", 1, interleaved=False, **CLIPPED),
        lambda m, *x: wide.clipped_swiglu_backward(m, *x)[1], 3,
    ),
    ("rotary_position_embedding", "one of a pair"): (
        lambda x, c: aclnn.rotary_position_embedding(
            *[np.stack(p, -1) for p in ((x, c), (c, x), (c, x))]
        )[..., 0],
        lambda m, x, c: x * c - c * c, 2,
    ),
}  # fmt: skip


# --- Row-wise operators ---------------------------------------------------------------------------


def numbers(kind, *shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [(3 * rng.standard_normal(shape)).astype(kind) for shape in shapes]


def of_one(name):
    def compared(kind, shape, axis):
        (x,) = numbers(kind, shape)
        return {"": (getattr(aclnn, name)(x, axis), getattr(wide, name)(x, axis), 0)}

    return compared


def of_gradient(name):
    forward = getattr(wide, name)

    def compared(kind, shape, axis):
        x, g = numbers(kind, shape, shape)
        y = forward(x, axis).astype(kind)
        found = getattr(aclnn, f"{name}_backward")(g, y, axis)
        return {"": (found, getattr(wide, f"{name}_backward")(g, y, axis), np.abs(g).max())}

    return compared


def layer_norm(kind, shape, axis):
    last = shape[axis:]
    x, weight = numbers(kind, shape, last)
    found = aclnn.native_layer_norm(x, last, weight)
    want = wide.layer_norm(x, len(last), weight)
    return {
        role: (a, b, np.abs(x).max())
        for role, a, b in zip(("out", "mean", "rstd"), found, want, strict=True)
    }


def layer_norm_backward(kind, shape, axis):
    last = shape[axis:]
    x, g, weight = numbers(kind, shape, shape, last)
    _, mean, rstd = aclnn.native_layer_norm(x, last)
    found = aclnn.native_layer_norm_backward(g, x, last, mean, rstd, weight)
    want = wide.layer_norm_backward(g, x, mean, rstd, len(last), weight)
    most = float(np.abs(g).max()) * float(np.abs(x).max()) * (x.size // weight.size)
    return {
        role: (a, b, most)
        for role, a, b in zip(("grad_input", "grad_weight", "grad_bias"), found, want, strict=True)
    }


def rms_norm(kind, shape, axis):
    last = shape[axis:]
    x, gamma = numbers(kind, shape, last)
    found = aclnn.native_rms_norm(x, gamma)
    want = wide.rms_norm(x, len(last), gamma)
    return {role: (a, b, 0) for role, a, b in zip(("out", "rstd"), found, want, strict=True)}


def rms_norm_backward(kind, shape, axis):
    last = shape[axis:]
    x, g, gamma = numbers(kind, shape, shape, last)
    _, rstd = aclnn.native_rms_norm(x, gamma)
    found = aclnn.rms_norm_backward(g, x, gamma, rstd)
    want = wide.rms_norm_backward(g, x, rstd, len(last), gamma)
    most = float(np.abs(g).max()) * float(np.abs(x).max()) * (x.size // gamma.size)
    return {
        role: (a, b, most)
        for role, a, b in zip(("grad_input", "grad_gamma"), found, want, strict=True)
    }


def add_rms_norm(kind, shape, axis):
    last = shape[axis:]
    a, b, gamma = numbers(kind, shape, shape, last)
    total = a.astype(WIDE) + b.astype(WIDE)
    want = (*wide.rms_norm(total, len(last), gamma), total)
    found = aclnn.add_rms_norm(a, b, gamma)
    return {role: (x, y, 0) for role, x, y in zip(("out", "rstd", "x"), found, want, strict=True)}


def add_layer_norm(kind, shape, axis):
    last = shape[axis:]
    a, b, gamma, beta = numbers(kind, shape, shape, last, last)
    total = a.astype(WIDE) + b.astype(WIDE)
    want = (*wide.layer_norm(total, len(last), gamma, beta), total)
    found = aclnn.add_layer_norm(a, b, gamma, beta, 1e-5, True)
    most = float(np.abs(total).max())
    roles = ("out", "mean", "rstd", "x")
    return {role: (x, y, most) for role, x, y in zip(roles, found, want, strict=True)}


def group_norm(silu):
    def compared(kind, shape, axis):
        count = 4  # of rows in a batch, which are channels
        x, weight, bias = numbers(kind, (shape[0] // count, count, shape[1]), count, count)
        want = [*wide.group_norm(x, 2, weight, bias)]
        want[0] = want[0] / (1 + np.exp(-want[0])) if silu else want[0]
        found = aclnn.group_norm_silu(x, weight, bias, 2, activate_silu=silu)
        roles = ("out", "mean", "rstd")
        return {role: (a, b, 10) for role, a, b in zip(roles, found, want, strict=True)}

    return compared


def batch_norm(kind, shape, axis):
    x, *rows = numbers(kind, shape, *[shape[1]] * 4)
    mean, variance, weight, bias = [row.astype(WIDE) for row in rows]
    variance = np.abs(variance)
    want = (x - mean) / np.sqrt(variance + WIDE(1e-5)) * weight + bias
    found = aclnn.batch_norm(x, rows[0], np.abs(rows[1]), *rows[2:])
    return {"": (found, want, float(np.abs(want).max()))}


def summed(kind, shape, axis):
    (x,) = numbers(kind, shape)
    exact = np.apply_along_axis(math.fsum, axis, x.astype(np.float64))
    return {"": (aclnn.sum(x, axis), exact.astype(WIDE), 0)}


def mean(kind, shape, axis):
    (x,) = numbers(kind, shape)
    exact = np.apply_along_axis(math.fsum, axis, x.astype(np.float64)).astype(WIDE) / shape[axis]
    return {"": (aclnn.mean(x, (axis,)), exact, 0)}


def variance(kind, shape, axis):
    (x,) = numbers(kind, shape)
    return {"": (aclnn.var(x, (axis,)), x.astype(WIDE).var(axis, ddof=1), 0)}


def running_sums(kind, shape, axis):
    (x,) = numbers(kind, shape)
    return {"": (aclnn.cumsum(x, axis), np.cumsum(x.astype(WIDE), axis), np.abs(x).max())}


ROWS = {
    "softmax": of_one("softmax"),
    "log_softmax": of_one("log_softmax"),
    "softmax_backward": of_gradient("softmax"),
    "log_softmax_backward": of_gradient("log_softmax"),
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "native_rms_norm": rms_norm,
    "rms_norm_backward": rms_norm_backward,
    "add_rms_norm": add_rms_norm,
    "add_layer_norm": add_layer_norm,
    "group_norm": group_norm(False),
    "group_norm_silu": group_norm(True),
    "batch_norm": batch_norm,
    "sum": summed,
    "mean": mean,
    "var": variance,
    "cumsum": running_sums,
}


# --- Matrix products ------------------------------------------------------------------------------

ADDENDS = {
    "addmm": aclnn.addmm,
    "baddbmm": lambda c, a, b: aclnn.baddbmm(c[None], a[None], b[None])[0],
    "addbmm": lambda c, a, b: aclnn.addbmm(c, a.reshape(len(a), 1, -1).swapaxes(0, 1), b[None]),
    "addmv": lambda c, a, b: np.stack(
        [aclnn.addmv(c[:, j], a, b[:, j]) for j in range(b.shape[1])], 1
    ),
    "gemm": lambda c, a, b: aclnn.gemm(a, b, c),
}

PRODUCTS = {
    "matmul": aclnn.matmul,
    "mm": aclnn.mm,
    "bmm": lambda a, b: aclnn.bmm(a[None], b[None])[0],
    "mv": lambda a, b: np.stack([aclnn.mv(a, column) for column in b.T], 1),
}
