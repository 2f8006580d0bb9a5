"""The functional layer: functions from arrays to arrays, made from the declarations.

A function is created when it is first looked up: docstrings of unused operators cost nothing, and a
defect in one of them affects no other function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from aclnn.api._functional import FunctionalHandle
from aclnn.api.docstrings import functional_doc
from aclnn.api.handles import HANDLES
from aclnn.operators import NAMES, REGISTRY, Operator


def form(name: str) -> FunctionalHandle:
    """The handle of a functional form, once its function has been made.

    >>> form("gelu").name
    'gelu'
    """
    __getattr__(name)
    return HANDLES_BY_NAME[name]


def _form(operator: Operator, name: str) -> FunctionalHandle:
    positional = operator.positional
    keyword = [a.role for a in operator.form_options if a.role not in positional]
    keyword += [role for role in operator.inputs if role not in positional]
    out = [] if name == operator.in_place else ["out"]
    required = sum(1 for role in positional if operator.is_required(role))
    return FunctionalHandle(
        HANDLES[operator.name], name, (*positional, *keyword, *out), len(positional), required, form
    )


class FormHandles(Mapping[str, FunctionalHandle]):
    """Handles of functional forms by their names, each made when it is first asked for."""

    def __init__(self) -> None:
        self._operators = {form: one.name for one in NAMES for form in one.functional}
        self._made: dict[str, FunctionalHandle] = {}
        self._making = threading.RLock()  # a form has one handle, which keeps its function

    def __getitem__(self, name: str) -> FunctionalHandle:
        found = self._made.get(name)
        if found is None:
            operator = REGISTRY[self._operators[name]]
            with self._making:
                found = self._made.get(name) or self._complete(operator, name)
                self._made[name] = found
        return found

    def _complete(self, operator: Operator, name: str) -> FunctionalHandle:
        """A handle that lets others take over calls with a number, or with an option, of theirs."""
        handle = _form(operator, name)
        if operator.number_form is not None:
            role, other = operator.number_form
            target = _form(REGISTRY[other], operator.name)
            handle.take_numbers_by(target, operator.kernel_operands.index(role))
        if operator.option_form is not None:
            option, other, role = operator.option_form
            form = self[other if name == operator.name else str(REGISTRY[other].in_place)]
            handle.take_option_by(form, option.role, option.choices, role)
        return handle

    def __contains__(self, name: object) -> bool:
        return name in self._operators

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)


HANDLES_BY_NAME = FormHandles()


_OTHERS: dict[str, FunctionalHandle] = {}


def handle_for(operator: Operator) -> FunctionalHandle:
    """A handle that takes arrays for an operator, which may have no functional form of its own."""
    found = HANDLES_BY_NAME.get(operator.name) if operator.functional else None
    if found is None:
        found = _OTHERS.get(operator.name)
    if found is None:
        found = _OTHERS.setdefault(operator.name, _form(operator, operator.name))
    return found


def signature(operator: Operator, *, in_place: bool = False) -> str:
    """The parameter list of a functional form.

    >>> signature(REGISTRY["leaky_relu"])
    'self, negative_slope=0.01, *, out=None'
    >>> signature(REGISTRY["leaky_relu"], in_place=True)
    'self, negative_slope=0.01'
    """
    positional = operator.positional
    words = [_with_default(operator, role) for role in positional]
    others = [a.role for a in operator.form_options] + [*operator.inputs]
    keyword = [_with_default(operator, role) for role in others if role not in positional]
    if not in_place:
        keyword.append("out=None")
    return ", ".join([*words, *(["*", *keyword] if keyword else [])])


def _with_default(operator: Operator, role: str) -> str:
    if operator.is_required(role):
        return role
    return f"{role}={operator.default_of(role)!r}"


def _make(operator: Operator, name: str) -> Callable[..., object]:
    line = f"{name}({signature(operator, in_place=name == operator.in_place)})"
    return HANDLES_BY_NAME[name].function(
        __name__, f"{line}\n--\n\n{functional_doc(operator, name)}"
    )


__all__ = list(HANDLES_BY_NAME)
_FUNCTIONS: dict[str, Callable[..., object]] = {}
_MAKING = threading.Lock()  # a handle has one function, which keeps its texts


def __getattr__(name: str) -> Callable[..., object]:
    if name not in HANDLES_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _MAKING:
        if name not in _FUNCTIONS:
            _FUNCTIONS[name] = _make(HANDLES_BY_NAME[name].handle.operator, name)
    return _FUNCTIONS[name]
