"""Chains of operators: compiled to one plan, and called one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aclnn


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
        values = list(arrays)
        for name, operands in self.calls:
            values.append(getattr(aclnn, name)(*[values[place] for place in operands]))
        return values[-1]

    def into(
        self,
        forms: Callable[[str], Callable[..., Any]],
        arrays: Sequence[Any],
        between: Any,
        out: Any,
    ) -> Callable[[], Any]:
        """A call of all forms in turn, into memory that is there: the results take turns in it."""
        values, calls = list(arrays), []
        for number, (name, operands) in enumerate(self.calls):
            last = number == len(self.calls) - 1
            target = out if (len(self.calls) - number) % 2 or last else between
            given = [values[place] for place in operands]
            calls.append((forms(name), given, target))
            values.append(target)

        def run() -> Any:
            for form, given, target in calls:
                form(*given, out=target)
            return out

        return run


CHAINS = {
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
}
