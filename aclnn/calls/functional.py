"""The functional layer, made from the declarations: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable

from aclnn.calls._functional import FunctionalHandle
from aclnn.calls.handles import HANDLES
from aclnn.calls.reference import functional_doc
from aclnn.operators import REGISTRY, Operator


def form(name: str) -> FunctionalHandle:
    """The handle of a functional form.

    >>> form("gelu").name
    'gelu'
    """
    return HANDLES_BY_NAME[name]


def _form(operator: Operator, name: str) -> FunctionalHandle:
    positional = [*operator.inputs, *(a.role for a in operator.attributes if not a.keyword_only)]
    keyword = [a.role for a in operator.attributes if a.keyword_only]
    out = [] if name == operator.in_place else ["out"]
    parameters = (*positional, *keyword, *out)
    return FunctionalHandle(HANDLES[operator.name], name, parameters, len(positional), form)


HANDLES_BY_NAME = {
    name: _form(operator, name)
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


def _make(operator: Operator, name: str) -> Callable[..., object]:
    line = f"{name}({signature(operator, in_place=name == operator.in_place)})"
    return HANDLES_BY_NAME[name].function(
        __name__, f"{line}\n--\n\n{functional_doc(operator, name)}"
    )


FUNCTIONS: dict[str, Callable[..., object]] = {
    name: _make(handle.handle.operator, name) for name, handle in HANDLES_BY_NAME.items()
}
globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)
