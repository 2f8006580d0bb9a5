"""Chains of operators: compiled to one plan, and called one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aclnn

RANDOM_PROGRAMS = 40
# What random programs are made of: operators of one or two operands, with their defaults, whose results are
# finite.  Those that grow fast take what is bounded.
BOUNDED = ("sigmoid", "tanh", "erf", "sin", "cos", "hardtanh", "hardsigmoid")
GROWING = ("exp", "exp2", "expm1", "square")
UNARY = (
    *("neg", "abs", "relu", "floor", "silu", "gelu", "elu", "selu", "celu", "mish", "softplus"),
    *("hardswish", "leaky_relu", "hardshrink", "softshrink"),
)
BINARY = ("add", "sub", "mul", "maximum", "minimum", "sigmoid_backward", "tanh_backward")


@dataclass(frozen=True, slots=True)
class Chain:
    """Calls, each of the inputs and of what calls before it made.

    Attributes
    ----------
    inputs : tuple of str
    calls : tuple of (str, tuple of int)
        A functional form, and its operands by number: inputs first, then results.
    broadcast : tuple of str
        Inputs that have one row.
    domain : (float, float)
        Where inputs lie.
    """

    inputs: tuple[str, ...]
    calls: tuple[tuple[str, tuple[int, ...]], ...]
    broadcast: tuple[str, ...] = ()
    domain: tuple[float, float] = (-4.0, 4.0)

    def __call__(self, *arrays: Any) -> Any:
        """The result, of arrays or of traced ones.

        >>> import numpy as np
        >>> x = np.float32([-1, 1])
        >>> CHAINS["silu_gate"](x, x)
        array([0.26894143, 0.7310586 ], dtype=float32)
        """
        return self.by(lambda name: getattr(aclnn, name), arrays)

    def by(self, forms: Callable[[str], Callable[..., Any]], arrays: Sequence[Any]) -> Any:
        """The result by another library's functions."""
        values = list(arrays)
        for name, operands in self.calls:
            values.append(forms(name)(*[values[index] for index in operands]))
        return values[-1]

    def into(
        self,
        forms: Callable[[str], Callable[..., Any]],
        arrays: Sequence[Any],
        between: Callable[[], Any],
        out: Any,
    ) -> Callable[[], Any]:
        """A call of all forms in turn, into memory that is there: results take turns in it, as others stop
        being read."""
        values, calls = list(arrays), []
        free: list[Any] = []
        last_use = {p: n for n, (_, operands) in enumerate(self.calls) for p in operands}
        for number, (name, operands) in enumerate(self.calls):
            first = len(arrays)
            target = free.pop() if free else None
            if number == len(self.calls) - 1:
                target = out
            elif target is None:
                target = between()
            free += [values[p] for p in {*operands} if p >= first and last_use[p] == number]
            arguments = [values[index] for index in operands]
            calls.append((forms(name), arguments, target))
            values.append(target)

        def run() -> Any:
            for form, arguments, target in calls:
                form(*arguments, out=target)
            return out

        return run


def random_chain(seed: int) -> Chain:
    """A program of 2 to 12 calls of two inputs; every result but the last is read.

    >>> random_chain(1) == random_chain(1), len(random_chain(2).calls) in range(2, 13)
    (True, True)
    """
    rng = random.Random(seed)
    calls: list[tuple[str, tuple[int, ...]]] = []
    bounded, unread = {0, 1}, [0, 1]
    length = rng.randint(2, 12)
    for number in range(length):
        newest = 1 + number if number else 0
        left = length - number
        two = len(unread) >= left + 1 or (rng.random() < 0.4 and left > 0)
        if two:
            others = [p for p in unread if p != newest] or list(range(2 + number))
            calls.append((rng.choice(BINARY), (newest, rng.choice(others))))
        else:
            pool = UNARY + BOUNDED + (GROWING if newest in bounded else ())
            calls.append((rng.choice(pool), (newest,)))
        name, operands = calls[-1]
        unread = [p for p in unread if p not in operands] + [2 + number]
        if name in BOUNDED:
            bounded.add(2 + number)
    return Chain(("x", "y"), tuple(calls), domain=(-2.0, 2.0))


NAMED = {
    "shrink_chain": Chain(
        ("x",),
        (
            ("leaky_relu", (0,)),
            ("hardshrink", (1,)),
            ("leaky_relu", (2,)),
            ("hardshrink", (3,)),
        ),
    ),
    "gelu_gate": Chain(
        ("x", "bias"),
        (("add", (0, 1)), ("leaky_relu", (2,)), ("gelu", (3,)), ("mul", (4, 0))),
        broadcast=("bias",),
    ),
    "silu_gate": Chain(("x", "y"), (("silu", (0,)), ("mul", (2, 1)))),
    "sigmoid_gate_add": Chain(("x", "y"), (("sigmoid", (0,)), ("mul", (2, 1)), ("add", (3, 0)))),
    "relu_residual": Chain(("x", "y"), (("add", (0, 1)), ("relu", (2,)), ("add", (3, 0)))),
    "tanh_scale": Chain(
        ("x", "bias"), (("add", (0, 1)), ("tanh", (2,)), ("mul", (3, 1))), ("bias",)
    ),
}
RANDOM = {f"random_{seed}": random_chain(seed) for seed in range(RANDOM_PROGRAMS)}
CHAINS = {**NAMED, **RANDOM}
