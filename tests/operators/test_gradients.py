"""Every gradient is tied to its function: by differences of its values, in extended precision."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import oracle
import wide
from cases import each as named

import aclnn
from aclnn.operators import REGISTRY

DIGITS = 120


def difference(function, x):
    """A derivative as a difference of values at points that lie next to each other."""
    step = mpmath.mpf(10) ** -40
    return (function(x + step) - function(x - step)) / (2 * step)


# --- Of one number --------------------------------------------------------------------------------


def of(name, **options):
    """What a judge makes of a number with many digits."""
    return lambda x: oracle.JUDGES[name].formula(oracle.Digits, x, **options)


SCALE, ALPHA = mpmath.mpf(oracle.SCALE), mpmath.mpf(oracle.ALPHA)


def inverse_of_selu(y):
    return y / SCALE if y > 0 else mpmath.log1p(y / (SCALE * ALPHA))


def inverse_of_elu(y):
    return y if y > 0 else mpmath.log1p(y / mpmath.mpf("1.25"))


def itself(x):
    return x


# By gradient and options: its function, and where that has the gradient's second operand as result.
GRADIENTS = {
    ("elu_backward", ()): (of("elu"), itself),
    ("elu_backward", (("alpha", 1.25), ("is_result", True))): (
        of("elu", alpha=1.25),
        inverse_of_elu,
    ),
    ("leaky_relu_backward", (("negative_slope", 0.25),)): (
        of("leaky_relu", negative_slope=0.25),
        itself,
    ),
    ("hardshrink_backward", ()): (of("hardshrink"), itself),
    ("gelu_backward", ()): (of("gelu"), itself),
    ("gelu_backward", (("approximate", "tanh"),)): (of("gelu", approximate="tanh"), itself),
    ("logit_backward", ()): (of("logit"), itself),
    ("threshold_backward", (("threshold", 0.5),)): (
        of("threshold", threshold=0.5, value=3),
        itself,
    ),
    ("sigmoid_backward", ()): (of("sigmoid"), lambda y: mpmath.log(y / (1 - y))),
    ("tanh_backward", ()): (of("tanh"), mpmath.atanh),
    ("silu_backward", ()): (of("silu"), itself),
    ("swish_backward", (("beta", 0.75),)): (of("swish", beta=0.75), itself),
    ("fast_gelu_backward", ()): (of("fast_gelu"), itself),
    ("hardswish_backward", ()): (of("hardswish"), itself),
    ("hardswish_backward_v2", ()): (of("hardswish"), itself),
    ("hardsigmoid_backward", ()): (of("hardsigmoid"), itself),
    ("hardtanh_backward", ()): (of("hardtanh"), itself),
    ("softshrink_backward", ()): (of("softshrink"), itself),
    ("softplus_backward", (("beta", 0.75), ("threshold", 4.0))): (
        of("softplus", beta=0.75, threshold=4.0),
        itself,
    ),
    ("log_sigmoid_backward", ()): (of("log_sigmoid"), itself),
    ("mish_backward", ()): (of("mish"), itself),
    ("selu_backward", ()): (of("selu"), inverse_of_selu),
}
OF_RESULTS = ("sigmoid_backward", "tanh_backward")


def grid(name):
    """Points that no function has a corner or a step at, roots of gradients among them."""
    if name in OF_RESULTS or name == "logit_backward":
        return np.linspace(0.015625, 0.984375, 63, dtype=np.float32)
    if name == "selu_backward":
        return np.linspace(-1.734375, 3.28125, 64, dtype=np.float32)
    if name == "elu_backward":
        return np.linspace(-1.234375, 3.28125, 64, dtype=np.float32)
    return np.linspace(-7.984375, 8.015625, 129, dtype=np.float32)


@named(("name", "options"), GRADIENTS)
def test_gradients_are_differences_of_their_functions(name, options):
    function, place = GRADIENTS[name, options]
    points = grid(name)
    g = np.linspace(-2, 3, len(points), dtype=np.float32)
    more = (np.float32([]),) if name == "log_sigmoid_backward" else ()
    found = getattr(aclnn, name)(g, points, *more, **dict(options))
    with mpmath.workdps(DIGITS):
        for factor, x, gradient in zip(g, points, found, strict=True):
            slope = difference(function, place(mpmath.mpf(float(x))))
            wanted = float(factor) * slope
            assert abs(float(gradient) - wanted) <= 1.01 * oracle.unit(wanted) + 1e-30, (x, wanted)


# --- Of several numbers, or of rows -----------------------------------------------------------------


def numbers(shape, seed):
    return (np.random.default_rng(seed).standard_normal(shape) * 2).astype(np.float32)


def each(function):
    """A function of numbers of mpmath as one of arrays of them."""
    return np.vectorize(function, otypes=[object])


exp, log = each(mpmath.exp), each(mpmath.log)


def unit(reference, **options):
    """A gated unit, of both halves of the last dimension, as an entry of the table."""
    name, left = options.pop("name"), options.get("activate_left", False)

    def call(g, x):
        more = (aclnn.geglu(x, **options)[1],) if name == "geglu" else ()
        return [getattr(aclnn, f"{name}_backward")(g, x, *more, **options)]

    def function(x):
        a, b = np.split(x, 2, axis=-1)
        return each(reference)(*((b, a) if left else (a, b)))

    # A gate that is given is rounded.
    return Several(function, call, ((3, 10),), 3.0 if name == "geglu" else 1.01)


@dataclass(frozen=True)
class Several:
    """The function of a gradient, on arrays of mpmath's numbers.

    `call` is of the gradient of the result, and of float32 inputs of these shapes; it gives the
    gradients of all inputs. `ulps` is of a result, or of the largest one if `of_rows`.
    """

    function: Callable[..., Any]
    call: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    ulps: float = 1.01
    of_rows: bool = False


def gelu(x):
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_tanh(x):
    return wide.gelu_tanh(mpmath, x)


def sigmoid(x):
    return wide.sigmoid(mpmath, x)


def softmax(x):
    powers = exp(x)
    return powers / powers.sum(-1, keepdims=True)


def normalized(x, eps):
    """Rows, and what their elements were multiplied with."""
    rstd = (x * x).mean(-1, keepdims=True) + mpmath.mpf(float(np.float32(eps)))
    rstd = 1 / each(mpmath.sqrt)(rstd)
    return x * rstd, rstd


def layer_norm(x, weight, bias):
    return normalized(x - x.mean(-1, keepdims=True), 1e-5)[0] * weight + bias


def rms_norm(x, gamma):
    return normalized(x, 1e-6)[0] * gamma


def gradients_of_layer_norm(g, x, weight, bias):
    _, mean, rstd = aclnn.native_layer_norm(x, x.shape[-1:], weight, bias, 1e-5)
    return aclnn.native_layer_norm_backward(g, x, x.shape[-1:], mean, rstd, weight, bias)


def gradients_of_rms_norm(g, x, gamma):
    _, rstd = aclnn.native_rms_norm(x, gamma, 1e-6)
    return aclnn.rms_norm_backward(g, x, gamma, rstd)


def attention(query, key, value):
    return softmax(query @ key.T / mpmath.sqrt(query.shape[1])) @ value


def gradients_of_attention(grad, query, key, value):
    out, logsumexp = aclnn.scaled_dot_product_attention_forward(query, key, value)
    return aclnn.scaled_dot_product_attention_backward(grad, query, key, value, out, logsumexp)


def of_masked(g, x):
    """Of scores twice as large, the last of which is hidden."""
    y = np.zeros_like(x)
    y[:, :4] = aclnn.softmax(2 * x[:, :4], -1)
    mask = np.zeros((1, 1, *x.shape), bool)
    mask[..., 4] = True
    lifted = [one[None, None] for one in (g, y)]
    return (aclnn.scaled_masked_softmax_backward(*lifted, mask, 2.0)[0, 0],)


def of_result(name):
    """The gradient of a function along rows, which is given the function's result."""
    return lambda g, x: [getattr(aclnn, f"{name}_backward")(g, getattr(aclnn, name)(x, -1), -1)]


CLIP = {"alpha": 1.5, "limit": 2.5, "bias": 0.75}
SEVERAL = {
    "swiglu_backward": unit(lambda a, b: wide.swiglu(mpmath, a, b), name="swiglu"),
    "glu_backward": unit(lambda a, b: a * sigmoid(b), name="glu"),
    "geglu_backward": unit(lambda a, b: a * gelu(b), name="geglu", approximate=0),
    "geglu_backward, tanh": unit(lambda a, b: a * gelu_tanh(b), name="geglu", approximate=1),
    "geglu_backward, left": unit(
        lambda a, b: a * gelu(b), name="geglu", approximate=0, activate_left=True
    ),
    "clipped_swiglu_backward": unit(
        lambda a, b: wide.clipped_swiglu(mpmath, a, b, **CLIP),
        name="clipped_swiglu", interleaved=False, **CLIP,
    ),
    "prelu_backward": Several(
        lambda x, weight: np.where(x > 0, x, x * weight[:, None]), aclnn.prelu_backward, ((2, 3, 4), (3,))
    ),
    "softmax_backward": Several(softmax, of_result("softmax"), ((2, 5),), 4, of_rows=True),
    "scaled_masked_softmax_backward": Several(
        lambda x: np.concatenate([softmax(2 * x[:, :4]), 0 * x[:, 4:]], 1), of_masked, ((2, 5),), 8, of_rows=True
    ),
    "log_softmax_backward": Several(
        lambda x: log(softmax(x)), of_result("log_softmax"), ((2, 5),), 4, of_rows=True
    ),
    "native_layer_norm_backward": Several(
        layer_norm, gradients_of_layer_norm, ((3, 6), (6,), (6,)), 8, of_rows=True
    ),
    "rms_norm_backward": Several(
        rms_norm, gradients_of_rms_norm, ((3, 6), (6,)), 8, of_rows=True
    ),
    "scaled_dot_product_attention_backward": Several(
        attention, gradients_of_attention, ((2, 4), (3, 4), (3, 4)), 16, of_rows=True
    ),
}  # fmt: skip


def slopes(function, arrays, g):
    """The gradients of the sum of g times a function's results, by differences at every element."""
    for place, array in enumerate(arrays):
        found = np.empty(array.shape, object)
        for index in np.ndindex(*array.shape):

            def moved(value, place=place, index=index):
                changed = [one.copy() for one in arrays]
                changed[place][index] = value
                return (function(*changed) * g).sum()

            found[index] = difference(moved, array[index])
        yield found


@named("name", SEVERAL)
def test_gradients_of_several_are_differences_of_their_functions(name):
    entry = SEVERAL[name]
    inputs = [numbers(shape, seed) for seed, shape in enumerate(entry.shapes)]
    with mpmath.workdps(DIGITS):
        exact = [each(mpmath.mpf)(one.astype(float)) for one in inputs]
        g = numbers(entry.function(*exact).shape, 9)
        found = entry.call(g, *inputs)
        wanted = [*slopes(entry.function, exact, each(mpmath.mpf)(g.astype(float)))]
        for gradient, slope in zip(found, wanted, strict=True):
            assert gradient.shape == slope.shape
            most = abs(slope).max() if entry.of_rows else None
            for one, value in zip(gradient.ravel(), slope.ravel(), strict=True):
                bound = entry.ulps * oracle.unit(value if most is None else most)
                assert abs(mpmath.mpf(float(one)) - value) <= bound, (one, value)


def test_every_gradient_is_compared_with_its_function():
    """One that is declared later is missing here until it is."""
    compared = {name for name, _ in GRADIENTS} | {name.partition(",")[0] for name in SEVERAL}
    # With the functions that they belong to, in test_operators_convolutions.py and test_operators_fused_norms.py.
    compared |= {"convolution_backward", "native_batch_norm_backward"}
    assert compared == {name for name in REGISTRY if "_backward" in name}
