"""Calls as the command line describes them: an operator, operands in words, options."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import aclnn
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError, invalid
from aclnn.api import tensor_text
from aclnn.cli.values import truth_value
from aclnn.compiler.settings import STRATEGIES
from aclnn.operators import REGISTRY, Attribute, Operator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags for one call, made from the declarations of all operators."""
    parser.add_argument("operator", nargs="?", metavar="OPERATOR", help=", ".join(REGISTRY))
    parser.add_argument(
        "--calls", metavar="FILE", help="a JSON list of calls: {'operator': ..., 'self': ..., ...}"
    )
    for role in _operands():
        parser.add_argument(
            _flag(role), dest=role, metavar="OPERAND", help="such as float16[64,1,1024]"
        )
    operands = _operands()
    for attribute in _attributes().values():
        if attribute.role in operands:  # of another operator
            continue
        kind: Any = {"bool": truth_value, "scalar": float, "float": float}.get(attribute.kind, str)
        parser.add_argument(
            _flag(attribute.role), dest=attribute.role, type=kind,
            choices=attribute.choices or None, metavar="VALUE",
        )  # fmt: skip
    parser.add_argument(
        "--materialize", action=argparse.BooleanOptionalAction,
        help="keep every intermediate whole (default: as ACLNN_MATERIALIZE says)",
    )  # fmt: skip
    parser.add_argument("--strategy", choices=STRATEGIES, help="how to plan the workspace")


def _operands() -> list[str]:
    """The operands of all operators."""
    return list(dict.fromkeys(role for o in REGISTRY.values() for role in (*o.inputs, "out")))


def _attributes() -> dict[str, Attribute]:
    """The options of all operators, by role."""
    return {a.role: a for o in REGISTRY.values() for a in o.attributes}


def given(options: argparse.Namespace) -> list[str]:
    """What the command line says of a call, for commands that can do without one."""
    plain = vars(options)
    said = {"operator": options.operator}
    said |= {
        _flag(role): plain[role] for role in ("calls", "materialize", *_operands(), *_attributes())
    }
    return [words for words, value in said.items() if value is not None]


class BadCallError(AclnnError):
    """A call that cannot even be made: of no operator, or with operands that make no sense."""

    def __init__(self, message: str):
        super().__init__(ACLNN_ERR_PARAM_INVALID, message)


def executors(options: argparse.Namespace, strategy: str | None = None) -> list[Any]:
    """The executors of the calls that the command line names; `strategy` overrules theirs.

    A bad call on the command line itself is bad usage; one in a file is a failed run.
    """
    plain = vars(options)
    forced = {} if strategy is None else {"strategy": strategy}
    if options.calls is not None:
        return [_executor({**plain, **call, **forced}) for call in _listed(options.calls)]
    if options.operator is None:
        options.refuse("name an operator, or --calls FILE")
    try:
        return [_executor({**plain, **forced})]
    except BadCallError as error:
        return options.refuse(str(error))


def _listed(name: str) -> list[dict[str, Any]]:
    """The calls in a file."""
    try:
        listed = json.loads(Path(name).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise invalid(f"{name}: {error}") from None
    if not isinstance(listed, list) or not all(isinstance(call, dict) for call in listed):
        raise invalid(f"{name}: must be a list of objects")
    if not listed:
        raise invalid(f"{name}: an empty list, nothing to look at")
    return [_known(call, place) for place, call in enumerate(listed, 1)]


def _known(call: dict[str, Any], place: int) -> dict[str, Any]:
    """A call of a file; one with a key that would be ignored is refused."""
    call = {key.replace("-", "_"): value for key, value in call.items()}
    known = {"operator", "materialize", "strategy", *_operands(), *_attributes()}
    for key in call:
        if key not in known:
            raise BadCallError(f"call {place}: {key!r} is none of {', '.join(sorted(known))}")
    return call


def _executor(call: dict[str, Any]) -> Any:
    named = call["operator"]
    operator = next((o for o in REGISTRY.values() if named in (o.name, *o.names)), None)
    if operator is None:
        raise BadCallError(f"no operator is called {named!r}, they are {', '.join(REGISTRY)}")
    _refuse_unheard(operator, call)
    if not isinstance(call["materialize"], bool | None):
        raise BadCallError(f"materialize is {call['materialize']!r}, must be true, false or null")
    operands = {
        role: _operand(operator, call, role, seed) for seed, role in enumerate(operator.inputs)
    }
    out = _array("out", call["out"], 0, 0) if call.get("out") is not None else None
    chosen = {
        a.role: _option(a, call[a.role])
        for a in operator.attributes
        if call.get(a.role) is not None
    }
    return aclnn.executor(
        form_of(operator).name, out=out, materialize=call["materialize"],
        strategy=call["strategy"], **operands, **chosen,
    )  # fmt: skip


def form_of(operator: Operator) -> Operator:
    """The operator that has the functional form: for a variant with a number that with a tensor."""
    owners = (o for o in REGISTRY.values() if o.number_form and o.number_form[1] == operator.name)
    return operator if operator.functional else next(owners)


def _option(attribute: Attribute, value: Any) -> Any:
    """An option as its operator takes it: the command line has words for all but numbers."""
    if not isinstance(value, str):
        return value
    try:
        if attribute.kind in ("scalar", "float"):
            return float(value)
        if attribute.kind == "int" and not attribute.choices:
            return int(value)
        if attribute.kind == "ints":
            return [int(word) for word in value.split(",") if word.strip()]
        if attribute.kind == "bools":
            return [truth_value(word.strip()) for word in value.split(",") if word.strip()]
    except (ValueError, argparse.ArgumentTypeError):
        kind = {"ints": "numbers with commas between them", "int": "a whole number"}
        wanted = kind.get(attribute.kind, "a number")
        raise BadCallError(f"{_flag(attribute.role)} is {value!r}, must be {wanted}") from None
    return value


def _refuse_unheard(operator: Operator, call: dict[str, Any]) -> None:
    """Refuse arguments that only other operators take, rather than ignore them."""
    taken = {*operator.inputs, *(a.role for a in operator.attributes)}
    for other in REGISTRY.values():
        for role in (*other.inputs, *(a.role for a in other.attributes)):
            if role not in taken and call.get(role) is not None:
                raise BadCallError(f"{operator.name} takes no {_flag(role)}")


def _operand(operator: Operator, call: dict[str, Any], role: str, seed: int) -> Any:
    text = call.get(role)
    if text is None and role in operator.optional:
        return None
    if text is None:
        raise BadCallError(f"{operator.name}: {_flag(role)} is missing")
    if role in operator.lists:
        words = text if isinstance(text, list) else str(text).split()
        return [_array(role, word, *operator.domain, seed=seed + n) for n, word in enumerate(words)]
    return _array(role, text, *operator.domain, seed=seed)


def _array(role: str, text: Any, low: float, high: float, seed: int = 0) -> Any:
    """An array as described, or an error that says which one cannot be made."""
    if not isinstance(text, str):
        raise BadCallError(f"{role} is {text!r}, must be such as 'float16[64,1,1024]'")
    try:
        described = tensor_text.parse(text)
    except AclnnError as error:
        raise BadCallError(str(error)) from None
    try:
        return described.array(low, high, seed=seed)
    except (ValueError, OverflowError, MemoryError) as error:
        raise invalid(f"{role} {text!r}: {error}") from None


def _flag(role: str) -> str:
    return "--" + role.replace("_", "-")
