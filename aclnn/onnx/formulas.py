"""What kernels compute, in ONNX's operators.

A line is ``kernel(operands; numbers) if condition -> results: body``. Numbers are inputs after the
operands, or attributes; a condition asks about them, the dtype that is computed in, and which of the
optional operands are `present`, and the `rank` of the result; the first line that fits counts. A body
that is one operator stands for itself, any other becomes a function. An operand with a question mark is
taken as a truth value, one with an exclamation mark along one dimension. Of a kernel of rows `axes` has the
axis that it reduces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

TEXT = """
relu(x): Relu(x)
relu_backward(g, x): Where(x <= 0, 0, g)
neg(x): Neg(x)
abs(x): Abs(x)
floor(x): Floor(x)
ceil(x): Ceil(x)
exp(x): Exp(x)
exp2(x): 2 ** x
expm1(x): t = Tanh(0.5 * x); Where(Abs(x) < 0.5, 2 * t / (1 - t), Exp(x) - 1)
log(x): Log(x)
log2(x): 1.4426950408889634 * Log(x)
log10(x): 0.4342944819032518 * Log(x)
log1p(x): Where(Abs(x) < 0.5, 2 * Atanh(x / (x + 2)), Log(1 + x))
sin(x): Sin(x)
cos(x): Cos(x)
erf(x): Erf(x)
tanh(x): Tanh(x)
sigmoid(x): Sigmoid(x)
sqrt(x): Sqrt(x)
reciprocal(x): Reciprocal(x)
rsqrt(x): Reciprocal(Sqrt(x))
square(x): x * x
mish(x): Mish(x)
erfinv(x): \
 w = -Log((1 - x) * (1 + x)); u = w - 2.5; v = Sqrt(w) - 3; \
 near = 1.50140941 + u * (0.246640727 + u * (-0.00417768164 + u * (-0.00125372503 + u * (0.00021858087 \
 + u * (-4.39150654e-06 + u * (-3.5233877e-06 + u * (3.43273939e-07 + u * 2.81022636e-08))))))); \
 far = 2.83297682 + v * (1.00167406 + v * (0.00943887047 + v * (-0.0076224613 + v * (0.00573950773 \
 + v * (-0.00367342844 + v * (0.00134934322 + v * (0.000100950558 + v * -0.000200214257))))))); \
 Where(Abs(x) == 1, x * inf, x * Where(w < 5, near, far))

add(a, b; alpha) if alpha == 1: a + b
add(a, b; alpha): a + alpha * b
sub(a, b; alpha) if alpha == 1: a - b
sub(a, b; alpha): a - alpha * b
rsub(a, b; alpha) if alpha == 1: b - a
rsub(a, b; alpha): b - alpha * a
mul(a, b): a * b
div(a, b): a / b
adds(a; other, alpha) if alpha == 1: a + other
adds(a; other, alpha): a + alpha * other
subs(a; other, alpha) if alpha == 1: a - other
subs(a; other, alpha): a - alpha * other
rsubs(a; other, alpha) if alpha == 1: other - a
rsubs(a; other, alpha): other - alpha * a
muls(a; other): a * other
divs(a; other): a / other
add_relu(a, b; alpha): Relu(a + alpha * b)
div_trunc(a, b) if dtype == "int64": a / b
div_trunc(a, b): q = a / b; Where(q < 0, Ceil(q), Floor(q))
div_floor(a, b) if dtype == "int64": q = a / b; Where((q * b != a) & ((a < 0) ^ (b < 0)), q - 1, q)
div_floor(a, b): Floor(a / b)
pow(a, b): a ** b
pows(a; exponent): a ** exponent
rpows(b; base): base ** b
addcmul(x, a, b; value): x + value * a * b
lerp(a, b, weight): a + weight * (b - a)
lerps(a, b; weight): a + weight * (b - a)
maximum(a, b): Max(a, b)
minimum(a, b): Min(a, b)
clamp(x; low, high): Clip(x, low, high)
where(c?, a, b): Where(c, a, b)
eq(a, b): a == b
ne(a, b): a != b
lt(a, b): a < b
le(a, b): a <= b
gt(a, b): a > b
ge(a, b): a >= b
logical_and(a?, b?): And(a, b)
logical_or(a?, b?): Or(a, b)
logical_xor(a?, b?): Xor(a, b)
logical_not(x?): Not(x)

gelu(x): Gelu(x)
gelu_tanh(x): Gelu(x, approximate="tanh")
gelu_backward(g, x): \
 g * (0.5 * (1 + Erf(0.7071067811865476 * x)) + 0.3989422804014327 * x * Exp(-0.5 * x * x))
gelu_backward_tanh(g, x): t = Tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); \
 g * 0.5 * (1 + t + x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x))
elu(x; alpha, scale, rate) if scale == 1 and rate == 1: Elu(x, alpha=alpha)
elu(x; alpha, scale, rate): Where(x > 0, scale * x, scale * alpha * (Exp(rate * Min(x, 0)) - 1))
elu_backward(g, x; alpha, scale, rate): \
 Where(x <= 0, g * scale * alpha * rate * Exp(rate * Min(x, 0)), scale * g)
elu_backward_result(g, y; alpha, scale, rate): \
 Where(y > 0, scale * g, g * rate * (y + alpha * scale))
selu(x): Selu(x)
selu_backward(g, y): Where(y > 0, 1.0507009873554805 * g, g * (y + 1.7580993408473766))
celu(x; alpha) if alpha > 0: Celu(x, alpha=alpha)
celu(x; alpha): Where(x > 0, x, alpha * (Exp(Min(x, 0) / alpha) - 1))
leaky_relu(x; slope): LeakyRelu(x, alpha=slope)
leaky_relu_backward(g, x; slope): Where(x > 0, g, slope * g)
prelu(x, w): PRelu(x, w)
prelu_backward(g, x, w): Where(x > 0, g, g * w)
prelu_weight_term(g, x): Where(x > 0, 0, g * x)
rrelu_with_noise(x; low, high): Where(x > 0, x, x * (0.5 * low + 0.5 * high))
squared_relu(x): r = Relu(x); r * r
threshold(x; bound, value): Where(x <= bound, value, x)
threshold_backward(g, x; bound): Where(x <= bound, 0, g)
hardtanh_backward(g, x; low, high): Where((x <= low) | (x >= high), 0, g)
heaviside(x, at_0): Where(x == 0, at_0, Where(x > 0, 1, 0))
hardshrink(x; lambd): Shrink(x, lambd=lambd, bias=0.0)
hardshrink_backward(g, x; lambd): Where(Abs(x) > Max(lambd, 0), g, 0)
shrink(x; lambd, bias): Shrink(x, lambd=lambd, bias=bias)
softshrink(x; lambd): Where(x > lambd, x - lambd, Where(x < -lambd, x + lambd, 0 * x))
softshrink_backward(g, x; lambd): Where((x <= lambd) & (x >= -lambd), 0, g)
hardsigmoid(x): HardSigmoid(x, alpha=0.16666666666666666, beta=0.5)
hardsigmoid_backward(g, x): Where((x > -3) & (x < 3), g / 6, 0)
hardswish(x): HardSwish(x)
hardswish_backward(g, x): \
 Where((x > 3) | (x != x), g, Where(x < -3, 0, g * (2 * x + 3) / 6))
hardswish_backward_v2(g, x): \
 Where((x >= 3) | (x != x), g, Where(x <= -3, 0, g * (2 * x + 3) / 6))
logit(x; eps) if eps < 0: Log(x / (1 - x))
logit(x; eps): z = Max(Min(x, 1 - eps), eps); Log(z / (1 - z))
logit_backward(x, g; eps) if eps < 0: Where((x >= 0) & (x <= 1), g / (x * (1 - x)), nan)
logit_backward(x, g; eps): Where((x >= eps) & (x <= 1 - eps), g / (x * (1 - x)), 0)
sigmoid_backward(g, y): g * y * (1 - y)
tanh_backward(g, y): g * (1 - y * y)
silu(x): x * Sigmoid(x)
silu_backward(g, x): s = Sigmoid(x); g * s * (1 + x * (1 - s))
swish(x; beta): x * Sigmoid(beta * x)
swish_backward(g, x; beta): s = Sigmoid(beta * x); g * s * (1 + beta * x * (1 - s))
fast_gelu(x): x * Sigmoid(1.702 * x)
fast_gelu_backward(g, x): s = Sigmoid(1.702 * x); g * s * (1 + 1.702 * x * (1 - s))
softplus(x; beta, threshold) if beta == 1 and threshold >= 20 and dtype == "float32": Softplus(x)
softplus(x; beta, threshold): Where(beta * x > threshold, x, Softplus(beta * x) / beta)
softplus_backward(g, x; beta, threshold): \
 Where(beta * x > threshold, g, g * Sigmoid(beta * x))
log_sigmoid(x): Min(x, 0) + Log(Sigmoid(Abs(x)))
log_sigmoid_backward(g, x): g * Sigmoid(-x)
mish_backward(g, x): t = Tanh(Softplus(x)); g * (t + x * Sigmoid(x) * (1 - t * t))

glu(a, b): a * Sigmoid(b)
glu_backward_b(g, a, b): s = Sigmoid(b); g * a * s * (1 - s)
times_silu(a, x): a * x * Sigmoid(x)
swiglu_backward_a(g, a, b): s = Sigmoid(a); g * b * s * (1 + a * (1 - s))
times_gelu(a, x): a * Gelu(x)
times_gelu_tanh(a, x): a * Gelu(x, approximate="tanh")
times_gelu_backward(g, a, x): \
 g * a * (0.5 * (1 + Erf(0.7071067811865476 * x)) + 0.3989422804014327 * x * Exp(-0.5 * x * x))
times_gelu_backward_tanh(g, a, x): t = Tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); \
 g * a * 0.5 * (1 + t + x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x))
fatrelu_mul(x, y, least): Where(x < least, 0, x) * y
clipped_swiglu(b, a; alpha, limit, bias): gate = Min(a, limit); \
 gate * Sigmoid(alpha * gate) * (Max(Min(b, limit), -limit) + bias)
clipped_swiglu_backward_a(g, a, b; alpha, limit, bias): gate = Min(a, limit); \
 s = Sigmoid(alpha * gate); factor = Max(Min(b, limit), -limit) + bias; \
 Where(a <= limit, g * factor * s * (1 + alpha * gate * (1 - s)), 0)
clipped_swiglu_backward_b(g, a, b; alpha, limit, bias): gate = Min(a, limit); \
 Where(Abs(b) <= limit, g * gate * Sigmoid(alpha * gate), 0)
rotated(x, c, y, s; sign): x * c + sign * y * s
channel_norm(x, mean, scale, bias): (x - mean) * scale + bias
channel_norm_silu(x, mean, scale, bias): y = (x - mean) * scale + bias; y * Sigmoid(y)

softmax(x; axis): Softmax(x, axis=axis)
log_softmax(x; axis): LogSoftmax(x, axis=axis)
softmax_backward(g, y; axes): y * (g - ReduceSum(g * y, axes))
log_softmax_backward(g, y; axes): g - Exp(y) * ReduceSum(g, axes)
sum(x; axes): ReduceSum(x, axes)
mean(x; axes): ReduceMean(x, axes)
amax(x; axes): ReduceMax(x, axes)
most(x; axes): ReduceMax(x, axes)
place(x; axis): ArgMax(x, axis=axis)
cumsum(x; axes): CumSum(x, axes)
tril(x; diagonal): Trilu(x, diagonal, upper=0)
triu(x; diagonal): Trilu(x, diagonal)
moments(x; eps, axes) -> m, r: m = ReduceMean(x, axes); d = x - m; \
 r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps))
layer_norm(x, w!, b!; eps, axis) if {"weight", "bias"} <= present and dtype == "float32" -> y, m, r: \
 y, m, r = LayerNormalization(x, w, b, axis=axis, epsilon=eps)
layer_norm(x, w, b; eps, axes) if {"weight", "bias"} <= present -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); \
 y = d * r * w + b
layer_norm(x, w!; eps, axis) if "weight" in present and dtype == "float32" -> y, m, r: \
 y, m, r = LayerNormalization(x, w, axis=axis, epsilon=eps)
layer_norm(x, w; eps, axes) if "weight" in present -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); \
 y = d * r * w
layer_norm(x, b; eps, axes) if "bias" in present -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); \
 y = d * r + b
layer_norm(x; eps, axes) -> y, m, r: \
 m = ReduceMean(x, axes); d = x - m; r = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps)); y = d * r
layer_norm_backward_input(g, x, m, r, w; axes) if "weight" in present: \
 d = g * w; h = (x - m) * r; r * (d - ReduceMean(d, axes) - h * ReduceMean(d * h, axes))
layer_norm_backward_input(g, x, m, r; axes): \
 h = (x - m) * r; r * (g - ReduceMean(g, axes) - h * ReduceMean(g * h, axes))
layer_norm_backward_params(g, x, m, r; axes) if {"dweight", "dbias"} <= present -> w, b: \
 w = ReduceSum(g * (x - m) * r, axes); b = ReduceSum(g, axes)
layer_norm_backward_params(g, x, m, r; axes) if "dweight" in present: \
 ReduceSum(g * (x - m) * r, axes)
layer_norm_backward_params(g; axes): ReduceSum(g, axes)
rms_norm(x, w; eps, axes) if "gamma" in present -> y, r: \
 r = Reciprocal(Sqrt(ReduceMean(x * x, axes) + eps)); y = x * r * w
rms_norm(x; eps, axes) -> y, r: r = Reciprocal(Sqrt(ReduceMean(x * x, axes) + eps)); y = x * r
rms_norm_backward_input(g, x, r, w; axes) if "gamma" in present: \
 d = g * w; r * (d - x * r * r * ReduceMean(d * x, axes))
rms_norm_backward_input(g, x, r; axes): r * (g - x * r * r * ReduceMean(g * x, axes))
rms_norm_backward_gamma(g, x, r; axes): ReduceSum(g * x * r, axes)
matmul(a, b): MatMul(a, b)
matmul(a, b; alpha, beta): alpha * MatMul(a, b)
matmul(a, b, c; alpha, beta) if rank == 2: Gemm(a, b, c, alpha=alpha, beta=beta)
matmul(a, b, c; alpha, beta) if alpha == 1 and beta == 1: c + MatMul(a, b)
matmul(a, b, c; alpha, beta): beta * c + alpha * MatMul(a, b)
gather(table, index; axis): GatherElements(table, index, axis=axis)
"""

_LINE = re.compile(
    r"(?P<kernel>\w+)\((?P<operands>[^;)]*)(;(?P<numbers>[^)]*))?\)"
    r"( if (?P<condition>.*?))?( -> (?P<results>[\w, ]+))?:(?= )(?P<body>.*)"
)
_OPERATORS: dict[type, str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
    ast.BitAnd: "And", ast.BitOr: "Or", ast.BitXor: "Xor", ast.USub: "Neg", ast.Lt: "Less",
    ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal",
}  # fmt: skip
_TRUTHS = frozenset(
    ["And", "Or", "Xor", "Not", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]
)
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


@dataclass(frozen=True, slots=True)
class Instruction:
    """An operator of a body. Inputs are names, or numbers of the type of the first operand."""

    operator: str
    inputs: tuple[str | float, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()  # a name stands for a number of the node


@dataclass(frozen=True, slots=True)
class Formula:
    """What a kernel computes.

    Attributes
    ----------
    name : str
        Of the function.
    operands, numbers, results : tuple of str
    truths, flat : frozenset of str
        Operands that are taken as truth values, and those that have one dimension.
    condition : str
        When it holds; empty: always.
    body : tuple of Instruction
    """

    name: str
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    results: tuple[str, ...]
    truths: frozenset[str]
    flat: frozenset[str]
    condition: str
    body: tuple[Instruction, ...]

    @property
    def is_standard(self) -> bool:
        """Whether it is one operator of the standard, on operands and numbers as they are."""
        if len(self.body) != 1:
            return False
        return not any(isinstance(one, float) for one in self.body[0].inputs)

    @property
    def is_truth(self) -> bool:
        """Whether it gives a truth value."""
        return self.body[-1].operator in _TRUTHS

    def holds(
        self, numbers: Mapping[str, Any], dtype: str, present: Collection[str], rank: int
    ) -> bool:
        known = {**numbers, "dtype": dtype, "present": set(present), "rank": rank}
        return not self.condition or eval(self.condition, {"__builtins__": {}}, known)


@cache
def formulas() -> dict[str, tuple[Formula, ...]]:
    """The lines of each kernel, by its name."""
    found: dict[str, tuple[Formula, ...]] = {}
    for line in filter(None, TEXT.replace("\\\n", "").split("\n")):
        read = _LINE.fullmatch(line)
        assert read is not None, line
        before = found.get(read["kernel"], ())
        found[read["kernel"]] = (*before, _formula(read, len(before)))
    return found


def _formula(line: re.Match[str], number: int) -> Formula:
    operands, numbers = _names(line["operands"]), _names(line["numbers"] or "")
    results = _names(line["results"] or "")
    body = _Body()
    for statement in ast.parse(line["body"].strip()).body:
        if isinstance(statement, ast.Assign):
            named = [one.id for one in ast.walk(statement.targets[0]) if isinstance(one, ast.Name)]
            body.made(statement.value, *named)
        else:
            assert isinstance(statement, ast.Expr)
            body.made(statement.value, "result")
            results = ("result",)
    return Formula(
        f"{line['kernel']}_{number + 1}" if number else line["kernel"],
        tuple([name.rstrip("?!") for name in operands]),
        numbers,
        results,
        frozenset([name[:-1] for name in operands if name.endswith("?")]),
        frozenset([name[:-1] for name in operands if name.endswith("!")]),
        (line["condition"] or "").strip(),
        tuple(body.instructions),
    )


def _names(words: str) -> tuple[str, ...]:
    return tuple([word.strip() for word in words.split(",") if word.strip()])


class _Body:
    """Instructions that were made of expressions."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []

    def made(self, part: ast.expr, *names: str) -> str | float:
        """What an expression gives: the name of a result, an operand, or a number."""
        if isinstance(part, ast.Name):
            return _NUMBERS.get(part.id, part.id)
        if isinstance(part, ast.Constant):
            return float(part.value)  # type: ignore[arg-type]
        if isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant):
            return -float(part.operand.value)  # type: ignore[arg-type]
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.NotEq):
            same = self._add("Equal", [part.left, part.comparators[0]], ())
            return self._append("Not", (same,), names)
        return self._add(*_parts(part), names, getattr(part, "keywords", ()))

    def _add(self, operator: str, parts: Any, names: Any, keywords: Any = ()) -> str:
        inputs = tuple([self.made(part) for part in parts])
        attributes = tuple([(one.arg, _attribute(one.value)) for one in keywords])
        return self._append(operator, inputs, names, attributes)

    def _append(self, operator: str, inputs: Any, names: Any, attributes: Any = ()) -> str:
        outputs = tuple(names) or (f"t{len(self.instructions)}",)
        self.instructions.append(Instruction(operator, inputs, outputs, attributes))
        return outputs[0]


def _parts(part: ast.expr) -> tuple[str, list[ast.expr]]:
    """The operator of an expression, and what it takes."""
    if isinstance(part, ast.BinOp):
        return _OPERATORS[type(part.op)], [part.left, part.right]
    if isinstance(part, ast.UnaryOp):
        return _OPERATORS[type(part.op)], [part.operand]
    if isinstance(part, ast.Compare):
        return _OPERATORS[type(part.ops[0])], [part.left, part.comparators[0]]
    assert isinstance(part, ast.Call), ast.dump(part)
    assert isinstance(part.func, ast.Name)
    return part.func.id, part.args


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the node, as the value of an attribute."""

    name: str


def _attribute(part: ast.expr) -> Any:
    return Number(part.id) if isinstance(part, ast.Name) else ast.literal_eval(part)
