"""References of the operators whose formula is not in `oracle.py`: calls, and what they should give.

`EXTENDED` has pointwise ones by name and options: a call, its reference, evaluated in extended precision and on
mpmath's numbers, and how many arrays both take.  `ROWS` has row-wise and opaque ones: functions of dtype, shape and axis
that give by result what is found, what it should be, and the largest term that may cancel; those of one operator's
tests are there under `rows_of`.  `ADDENDS` and
`PRODUCTS` have products of matrices.  `tools/accuracy.py` measures all of them.  `ROW_REFERENCES` give what row-wise
kernels make of rows of mpmath's numbers; `attention` and `attention_gradients` are in float64, with a bound of
the error of float32 sums.
"""

import math
from typing import NamedTuple

import mpmath
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
EPS = 1e-5  # of rows of mpmath's numbers
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


def batch_norm_training(kind, shape, axis):
    x, *rows = numbers(kind, shape, *[shape[1]] * 4)
    rows[1] = np.abs(rows[1])
    weight, bias = rows[2:]
    normed, mean, rstd = wide.layer_norm(x.T, 1)
    mean, rstd = mean[:, 0], rstd[:, 0]
    out = normed.T * weight.astype(WIDE) + bias.astype(WIDE)
    running = [row.astype(WIDE) for row in rows[:2]]
    moved = [
        old + WIDE(0.1) * (new - old)
        for old, new in zip(running, (mean, x.astype(WIDE).var(0, ddof=1)), strict=True)
    ]
    found = aclnn.native_batch_norm_functional(x, weight, bias, *rows[:2])
    most = max(float(np.abs(out).max()), float(np.abs(x).max()))
    roles = ("out", "save_mean", "save_invstd", "out_mean", "out_var")
    want = (out, mean, rstd, *moved)
    return {role: (a, b, most) for role, a, b in zip(roles, found, want, strict=True)}


def batch_norm_backward(kind, shape, axis):
    x, g, weight = numbers(kind, shape, shape, shape[1])
    _, mean, rstd, *_ = aclnn.native_batch_norm_functional(x, weight)
    found = aclnn.native_batch_norm_backward(g, x, weight, None, None, mean, rstd)
    h = (x.astype(WIDE) - mean.astype(WIDE)) * rstd.astype(WIDE)
    wide_g = g.astype(WIDE)
    shares = wide_g - wide_g.mean(0) - h * (wide_g * h).mean(0)
    want = (shares * rstd.astype(WIDE) * weight.astype(WIDE), (wide_g * h).sum(0), wide_g.sum(0))
    most = float(np.abs(g).max()) * float(np.abs(x).max()) * shape[0]
    roles = ("grad_input", "grad_weight", "grad_bias")
    return {role: (a, b, most) for role, a, b in zip(roles, found, want, strict=True)}


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
    "native_batch_norm_functional": batch_norm_training,
    "native_batch_norm_backward": batch_norm_backward,
    "sum": summed,
    "mean": mean,
    "var": variance,
}


def rows_of(name):
    """Enter a function into `ROWS`, which may stand in the operator's own test file."""

    def entered(function):
        ROWS[name] = function
        return function

    return entered


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


# --- Rows of mpmath's numbers ---------------------------------------------------------------------


class Exact(NamedTuple):
    """An exact value, and the absolute values of the terms whose sum it is."""

    value: mpmath.mpf
    size: mpmath.mpf


def terms(*values):
    return Exact(mpmath.fsum(values), mpmath.fsum(values, absolute=True))


def times(factor, exact):
    return Exact(factor * exact.value, abs(factor) * exact.size)


def reference_softmax(x):
    powers = [mpmath.exp(v) for v in x]
    total = mpmath.fsum(powers)
    return [terms(p / total) for p in powers]


def reference_log_softmax(x):
    """Of the largest element: -log1p(sum of the others' exponentials)."""
    place = max(range(len(x)), key=lambda i: x[i])
    rest = mpmath.fsum(mpmath.exp(v - x[place]) for i, v in enumerate(x) if i != place)
    return [terms(v - x[place] - mpmath.log1p(rest)) for v in x]


def reference_softmax_backward(g, y):
    products = terms(*(a * b for a, b in zip(g, y, strict=True)))
    return [
        times(b, Exact(a - products.value, abs(a) + products.size))
        for a, b in zip(g, y, strict=True)
    ]


def reference_log_softmax_backward(g, y):
    total = mpmath.fsum(g)
    return [terms(a, -mpmath.exp(b) * total) for a, b in zip(g, y, strict=True)]


def reference_layer_norm(x, weight=None, bias=None):
    mean = mpmath.fsum(x) / len(x)
    rstd = 1 / mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in x) / len(x) + mpmath.mpf(EPS))
    weight, bias = weight or [1] * len(x), bias or [0] * len(x)
    y = [terms((v - mean) * rstd * w, b) for v, w, b in zip(x, weight, bias, strict=True)]
    return {"y": y, "mean": [terms(mean)], "rstd": [terms(rstd)]}


def reference_rms_norm(x, gamma=None):
    rstd = 1 / mpmath.sqrt(mpmath.fsum(v * v for v in x) / len(x) + mpmath.mpf(EPS))
    y = [terms(v * rstd * w) for v, w in zip(x, gamma or [1] * len(x), strict=True)]
    return {"y": y, "rstd": [terms(rstd)]}


def reference_norm_backward(g, x, mean, rstd, weight, centre):
    h = [(v - mean) * rstd for v in x]
    q = [a * w for a, w in zip(g, weight or [1] * len(g), strict=True)]
    first = terms(*q) if centre else terms(0)
    second = terms(*(a * b for a, b in zip(q, h, strict=True)))
    return [
        Exact(
            rstd * (a - (first.value + b * second.value) / len(q)),
            rstd * (abs(a) + (first.size + abs(b) * second.size) / len(q)),
        )
        for a, b in zip(q, h, strict=True)
    ]


def reference_params(g, x=None, mean=None, rstd=None):
    found = {"dbias": [terms(*g)]}
    if x is not None:
        mean = mean or [0] * len(g)
        weight = [a * (v - m) * r for a, v, m, r in zip(g, x, mean, rstd, strict=True)]
        found["dweight"] = found["dgamma"] = [terms(*weight)]
    return found


ROW_REFERENCES = {}


def row_reference(name):
    """Enter a function as the reference of the row-wise kernels whose records name it.

    It takes the operands of a row by name, lists of those with one for each column, and gives the results.
    """

    def entered(function):
        ROW_REFERENCES[name] = function
        return function

    return entered


@row_reference("softmax")
def _softmax(row):
    return {"y": reference_softmax(row["x"])}


@row_reference("log_softmax")
def _log_softmax(row):
    return {"y": reference_log_softmax(row["x"])}


@row_reference("softmax_backward")
def _softmax_backward(row):
    return {"dx": reference_softmax_backward(row["grad"], row["output"])}


@row_reference("log_softmax_backward")
def _log_softmax_backward(row):
    return {"dx": reference_log_softmax_backward(row["grad"], row["output"])}


@row_reference("layer_norm")
def _layer_norm(row):
    return reference_layer_norm(row["x"], row.get("weight"), row.get("bias"))


@row_reference("rms_norm")
def _rms_norm(row):
    return reference_rms_norm(row["x"], row.get("gamma"))


@row_reference("layer_norm_backward_input")
def _layer_norm_backward(row):
    given = row["grad"], row["x"], row["mean"], row["rstd"]
    return {"dx": reference_norm_backward(*given, row.get("weight"), True)}


@row_reference("rms_norm_backward_input")
def _rms_norm_backward(row):
    given = row["grad"], row["x"], 0, row["rstd"]
    return {"dx": reference_norm_backward(*given, row.get("gamma"), False)}


@row_reference("norm_parameters")
def _norm_parameters(row):
    return reference_params(row["grad"], row.get("x"), row.get("mean"), row.get("rstd"))


@row_reference("sum")
def _sum(row):
    return {"reduced": [terms(mpmath.fsum(row["x"]))]}


@row_reference("mean")
def _mean(row):
    return {"reduced": [terms(mpmath.fsum(row["x"]) / len(row["x"]))]}


@row_reference("amax")
def _amax(row):
    return {"reduced": [terms(max(row["x"]))]}


# --- Attention ------------------------------------------------------------------------------------


def scores_of(q, k, *, scale=None, shift=None, visible=None, shift_first=False):
    """Of [B, N, S, D] and [B, M, K, D], in float64; hidden ones are -inf."""
    q, k = q.astype(np.float64), np.repeat(k.astype(np.float64), q.shape[1] // k.shape[1], 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    shift = 0.0 if shift is None else shift.astype(np.float64)
    products = q @ k.swapaxes(-1, -2)
    found = scale * (products + shift) if shift_first else scale * products + shift
    return found if visible is None else np.where(visible, found, -np.inf)


def attention(q, k, v, *, sink=None, **options):
    """Results, logarithms of sums, and a bound of the error of float32 sums."""
    s = scores_of(q, k, **options)
    v = np.repeat(v.astype(np.float64), q.shape[1] // v.shape[1], 1)
    some = np.isfinite(s).any(-1, keepdims=True)
    most = np.where(some, s.max(-1, keepdims=True, initial=-np.inf), 0)
    weights = np.exp(s - most)
    total = weights.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(np.float64)[None, :, None, None] - most)
    out = np.where(some, weights @ v / np.where(some, total, 1), 0)
    lse = np.where(some, most + np.log(np.where(some, total, 1)), np.inf)[..., 0]
    return out, lse, bound_of(q, k, v, options.get("scale"), options.get("shift"))


def bound_of(q, k, v, scale=None, shift=None):
    """As docs/numbers.md has it."""
    depth, keys = q.shape[-1], k.shape[-2]
    scale = 1 / math.sqrt(depth) if scale is None else scale
    k = np.repeat(k.astype(np.float64), q.shape[1] // k.shape[1], 1)
    shift = None if shift is None else shift.astype(np.float64)
    largest = scale * (np.abs(q.astype(np.float64)) @ np.abs(k).swapaxes(-1, -2))
    most = np.max(largest, initial=0) + (
        0 if shift is None else np.nanmax(np.abs(shift[shift > -1e30]), initial=0)
    )
    return (
        (2 * (depth + 6) * most + 2 * (134 + keys / 64)) * 2.0**-24 * np.max(np.abs(v), initial=0)
    )


def attention_gradients(grad, q, k, v, **options):
    """In float64, from the definition of the softmax's derivative."""
    s = scores_of(q, k, **options)
    group = q.shape[1] // k.shape[1]
    scale = options.get("scale") or 1 / math.sqrt(q.shape[-1])
    grad, q = grad.astype(np.float64), q.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), group, 1) for x in (k, v))
    some = np.isfinite(s).any(-1, keepdims=True)
    p = np.exp(s - np.where(some, s.max(-1, keepdims=True), 0))
    p = np.where(some, p / np.where(some, p.sum(-1, keepdims=True), 1), 0)
    grad_p = grad @ v.swapaxes(-1, -2)
    slopes = p * (grad_p - (p * grad_p).sum(-1, keepdims=True))
    found = [scale * slopes @ k, scale * slopes.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ grad]
    for place in (1, 2):
        one = found[place]
        found[place] = one.reshape(one.shape[0], -1, group, *one.shape[2:]).sum(2)
    return found
