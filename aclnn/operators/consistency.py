"""Checks that the parts of a declaration fit together.

The registry runs them once for each version of a module's source, so that a mistake in a declaration is
reported by the operator's name, not by the first call that meets it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from aclnn.acl.constants import aclDataType
from aclnn.operators import examples

if TYPE_CHECKING:
    from aclnn.operators.declaration import Attribute, Entry, Operator

# What calls have room for; `_functional.pyx`, `_arguments.pxd` and `_request.pxd` hold it.
MOST_INPUTS, MOST_OUTPUTS, MOST_NUMBERS, MOST_OPTIONS, MOST_PARAMETERS = 32, 16, 8, 16, 48

FACTS = frozenset(("zero", "one", "nan", "whole", "below", "dtype", "value"))
# The kinds of options that a kind of a C-shaped function's parameter may stand for.
_STANDS_FOR = {
    "scalar": ("scalar", "float"),
    "float": ("scalar", "float"),
    "int": ("int", "str"),
} | {kind: (kind,) for kind in ("bool", "str", "ints", "bools", "dtype")}
_NUMBERS = ("scalar", "float")


def check(operator: Operator) -> None:
    """Refuse a declaration whose parts do not fit together.

    Raises
    ------
    ValueError
        Names the operator and its first flaw.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from aclnn.operators import REGISTRY
    >>> check(replace(REGISTRY["gelu"], optional=("other",)))
    Traceback (most recent call last):
    ...
    ValueError: gelu: other are no inputs or outputs
    """
    for flaw in flaws(operator):
        raise ValueError(f"{operator.name}: {flaw}")


def flaws(operator: Operator) -> Iterator[str]:
    """Flaws of a declaration, a sentence each."""
    yield from _flaws_of_names(operator)
    yield from _flaws_of_roles(operator)
    for attribute in operator.attributes:
        for flaw in _flaws_of_attribute(attribute, operator.is_required(attribute.role)):
            yield f"option {attribute.role} {flaw}"
    yield from _flaws_of_order(operator)
    for item in operator.entries:
        for flaw in _flaws_of_entry(operator, item):
            yield f"{item.name} {flaw}"
    yield from _flaws_of_gradient(operator)
    for example in (operator.example, *(item.example for item in operator.entries)):
        if example is not None:
            yield from _flaws_of_example(operator, *example)


def _flaws_of_names(operator: Operator) -> Iterator[str]:
    """Missing parts, and names that no operand or option has."""
    if (operator.formula is None) == (operator.lower is None):
        yield "declare either a formula or how it is lowered"
    if operator.lower is not None and operator.infer is None:
        yield "declare what it makes, and how: infer and lower"
    if unknown := {*operator.optional, *operator.lists} - {*operator.inputs, *operator.outputs}:
        yield f"{_listed(unknown)} are no inputs or outputs"
    if unknown := {*operator.operands, *(operator.layout or ())} - {*operator.inputs}:
        yield f"operands {_listed(unknown)} are no inputs"
    known = {*operator.inputs, *(a.role for a in operator.attributes), *operator.outputs}
    for rule in operator.rules:
        yield from _unknown(f"the rule {rule.text!r}", {*rule.roles} - known, known)
    for item in operator.entries:
        roles = {p.role for p in item.parameters if not p.is_unused}
        roles |= {role for role, _ in item.fixed}
        yield from _unknown(item.name, roles - known, known)
        if missing := {*operator.inputs} - {*operator.optional} - roles:
            yield f"{item.name} does not take {_listed(missing)}"


def _flaws_of_example(operator: Operator, call: str, printed: str) -> Iterator[str]:
    """An example of another function, with other parameters, or with other results."""
    try:
        arguments = examples.arguments(call, operator.positional)
        results = [
            one if one == "None" else examples.shape_and_dtype(one)
            for one in examples.results(printed, operator.n_results)
        ]
    except (ValueError, SyntaxError, AttributeError) as error:
        yield f"the example is not one: {error}"
        return
    if examples.called(call) != operator.name:
        yield f"the example calls {examples.called(call)}"
    known = {*operator.inputs, *(a.role for a in operator.attributes)}
    yield from _unknown("the example", {*arguments} - known, known)
    required = {role for role in operator.positional if operator.is_required(role)}
    if missing := required - {*arguments}:
        yield f"the example does not give {_listed(missing)}"
    if len(results) != len(operator.outputs) and operator.makes is None:
        yield f"the example does not print {len(operator.outputs)} results"


def _unknown(where: str, unknown: set[str], known: set[str]) -> Iterator[str]:
    if unknown:
        yield f"{where} takes {_listed(unknown)}, but there are only {_listed(known)}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def _flaws_of_roles(operator: Operator) -> Iterator[str]:
    roles = (*operator.inputs, *operator.outputs, *[a.role for a in operator.attributes])
    if twice := _twice(roles):
        yield f"{twice} is declared twice"
    for words, count, most in (
        ("inputs", len(operator.inputs), MOST_INPUTS),
        ("outputs", 1 if operator.makes else len(operator.outputs), MOST_OUTPUTS),
        ("options that are numbers", len(operator.scalars), MOST_NUMBERS),
        ("options that are none", len(operator.switches), MOST_OPTIONS),
    ):
        if count > most:
            yield f"there are {count} {words}, at most {most} are possible"
    if not operator.outputs:
        yield "there is no output"
    if not operator.inputs and operator.infer is None:
        yield "there is no input that says what the result is, and no rule that infers it"
    if operator.operands and sorted(operator.operands) != sorted(operator.inputs):
        yield "operands are not the inputs in another order"
    if unknown := set(operator.lists) - set(operator.inputs):
        yield f"{', '.join(sorted(unknown))}, which are lists, are no inputs"
    if operator.number_form is not None and operator.number_form[0] not in operator.inputs:
        yield f"{operator.number_form[0]}, which may be a number, is no input"
    if unknown := set(operator.numbers) - set(operator.inputs):
        yield f"{', '.join(sorted(unknown))}, which may be numbers, are no inputs"
    if not operator.functional and not operator.entries:
        yield "it has neither a functional form nor a C-shaped one"


def _flaws_of_attribute(attribute: Attribute, required: bool) -> Iterator[str]:
    if attribute.kind not in _FITS:
        yield f"is of kind {attribute.kind!r}, must be one of {', '.join(sorted(_FITS))}"
        return
    if not required and not fits(attribute, attribute.default):
        yield f"has the default {attribute.default!r}, which is none of its kind, {attribute.kind}"
    if unknown := set(attribute.facts) - FACTS:
        yield f"has facts {', '.join(sorted(unknown))}, must be of {', '.join(sorted(FACTS))}"
    if attribute.facts and attribute.kind not in _NUMBERS:
        yield f"has facts, which only numbers have, and is of kind {attribute.kind}"


def _of_numbers(kind: type) -> Any:
    return lambda value: isinstance(value, tuple) and all(type(one) is kind for one in value)


_FITS = {
    "scalar": lambda value: isinstance(value, float | int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float | int) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int,
    "str": lambda value: isinstance(value, str),
    "ints": _of_numbers(int),
    "bools": _of_numbers(bool),
    "dtype": lambda value: isinstance(value, aclDataType),
}


def fits(attribute: Attribute, value: object) -> bool:
    """Whether a value is of an option's kind, None standing for none.

    >>> from aclnn.operators.declaration import Attribute
    >>> [fits(Attribute("dims", (), "ints"), value) for value in ((1, 0), 1, None)]
    [True, False, True]
    """
    if value is None:
        return True
    if attribute.choices and value not in attribute.choices:
        return False
    return bool(_FITS[attribute.kind](value))


def _flaws_of_order(operator: Operator) -> Iterator[str]:
    """Flaws of the order of positional parameters of the functional form."""
    known = {*operator.inputs, *[a.role for a in operator.attributes]}
    if unknown := set(operator.positional) - known:
        yield f"parameters {', '.join(sorted(unknown))} are neither inputs nor options"
        return
    if twice := _twice(operator.positional):
        yield f"parameter {twice} is listed twice"
    needed = [operator.is_required(role) for role in operator.positional]
    if needed != sorted(needed, reverse=True):
        role = operator.positional[needed.index(False)]
        yield f"parameter {role} has a default, but one after it has none"


def _flaws_of_entry(operator: Operator, item: Entry) -> Iterator[str]:
    arguments = [(p.role, p.kind) for p in item.parameters if not p.is_unused]
    roles = [role for role, _ in arguments] + [role for role, _ in item.fixed]
    if not item.name.startswith("aclnn"):
        yield "has a name that does not begin with aclnn"
    if twice := _twice(roles):
        yield f"takes {twice} twice"
    if len(item.parameters) > MOST_PARAMETERS:
        yield f"takes {len(item.parameters)} parameters, at most {MOST_PARAMETERS} are possible"
    for role, kind in arguments:
        if flaw := _flaw_of_parameter(operator, role, kind):
            yield f"takes {role} as {flaw}"
    options = {a.role: a for a in operator.attributes}
    for role, value in item.fixed:
        if role in options and not fits(options[role], value):
            yield f"fixes {role} to {value!r}, which is none of its kind, {options[role].kind}"
    missing = [a.role for a in operator.attributes if operator.is_required(a.role)]
    if lacking := [role for role in missing if role not in roles]:
        yield f"does not take {', '.join(lacking)}, which has no default"
    places = sum(kind in ("output", "outputs", "inout") for _, kind in arguments)
    if places != len(operator.outputs) - len(operator.measured):
        yield f"has {places} parameters that are written, for {len(operator.outputs)} results"


def _flaw_of_parameter(operator: Operator, role: str, kind: str) -> str | None:
    if role in operator.lists:
        return None if kind == "inputs" else f"{kind}, but it is a list"
    if role in operator.inputs:
        fits_input = kind in ("input", "inout", "single", "ints")
        return None if fits_input else f"{kind}, but it is an input"
    if role in operator.outputs:
        requested = "output" if operator.makes is None else "outputs"
        return None if kind == requested else f"{kind}, but it is an {requested.removesuffix('s')}"
    attribute = next((a for a in operator.attributes if a.role == role), None)
    if attribute is None or attribute.kind in _STANDS_FOR.get(kind, ()):
        return None  # what is unknown is reported elsewhere
    return f"{kind}, but it is an option of kind {attribute.kind}"


def _flaws_of_gradient(operator: Operator) -> Iterator[str]:
    options = [a.role for a in operator.attributes]
    known = {*operator.inputs, *operator.outputs, *options, "grad", "needed", "aten", "ops"}
    known |= {f"grad_{role}" for role in operator.outputs[1:]}
    for named in operator.gradient:
        if unknown := set(named.split(", ")) - set(operator.inputs):
            yield f"{', '.join(sorted(unknown))}, which have a gradient, are no inputs"
    for formula in (*operator.gradient.values(), operator.differentiated_as or "grad"):
        try:
            tree = ast.parse(formula, mode="eval")
        except SyntaxError:
            yield f"its gradient {formula!r} is no expression"
            continue
        nodes = list(ast.walk(tree))
        called = {
            node.func.id
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        if unknown := names - called - known:
            yield f"its gradient {formula!r} knows no {', '.join(sorted(unknown))}"


def _twice(words: Iterable[str]) -> str:
    return ", ".join(word for word, count in Counter(words).items() if count > 1)
