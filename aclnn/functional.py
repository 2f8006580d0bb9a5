"""The functional layer, made from the declarations: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn._functional import FunctionalHandle
from aclnn.handles import HANDLES
from aclnn.operators import REGISTRY, Operator
from aclnn.reference import functional_doc

HANDLES_BY_NAME = {
    name: FunctionalHandle(HANDLES[operator.name], name)
    for operator in REGISTRY.values()
    for name in (operator.name, operator.in_place)
    if name is not None
}


def signature(operator: Operator, *, in_place: bool = False) -> str:
    """The parameter list of a functional form.

    >>> signature(REGISTRY["leaky_relu"])
    'self, negative_slope=0.01, *, out=None'
    >>> signature(REGISTRY["leaky_relu"], in_place=True)
    'self, negative_slope=0.01'
    """
    positional = [a for a in operator.attributes if not a.keyword_only]
    keyword = [f"{a.role}={a.default!r}" for a in operator.attributes if a.keyword_only]
    if not in_place:
        keyword.append("out=None")
    words = [*operator.inputs, *(f"{a.role}={a.default!r}" for a in positional)]
    return ", ".join([*words, *(["*", *keyword] if keyword else [])])


def _call(operator: Operator, *, in_place: bool) -> str:
    """The body: operands in the kernels' order, numbers, and switches only where there are some."""
    operands = list(operator.kernel_operands)
    out = operands[0] if in_place else "out"
    words = [*operands, *["None"] * (2 - len(operands)), out]
    words += [attribute.role for attribute in operator.scalars]
    words += ["0.0"] * (3 - len(operator.scalars))
    if operator.switches:
        unchanged = " and ".join(
            f"{a.role} {'==' if a.kind == 'str' else 'is'} {a.default!r}" for a in operator.switches
        )
        given = ", ".join(
            f"bool({a.role})" if a.kind == "bool" else a.role for a in operator.switches
        )
        words.append(f"None if {unchanged} else ({given},)")
    return f"return _invoke({', '.join(words)})"


def _make(operator: Operator, name: str) -> Callable[..., object]:
    in_place = name == operator.in_place
    source = (
        f"def {name}({signature(operator, in_place=in_place)}):\n"
        f"    {_call(operator, in_place=in_place)}\n"
    )
    namespace: dict[str, Any] = {"_invoke": HANDLES_BY_NAME[name].call, "__name__": __name__}
    exec(compile(source, f"<aclnn.{name}>", "exec"), namespace)
    function = namespace[name]
    function.__doc__ = functional_doc(operator, name)
    return function


FUNCTIONS: dict[str, Callable[..., object]] = {
    name: _make(handle.handle.operator, name) for name, handle in HANDLES_BY_NAME.items()
}
globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)
