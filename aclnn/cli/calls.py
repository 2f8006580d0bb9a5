"""Calls as the command line describes them: an operator, operands in words, options."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import aclnn
from aclnn.acl import dtypes
from aclnn.acl.arguments import did_you_mean, parameter_meant
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError, invalid
from aclnn.api import tensor_text
from aclnn.cli import models
from aclnn.cli.values import natural, threads, truth_value
from aclnn.compiler.settings import STRATEGIES
from aclnn.operators import (
    REGISTRY,
    Attribute,
    Operator,
    examples,
    functional_owner,
    unknown_operator,
)

_EXAMPLE = "float16[64,1,1024]"
OWN = ("output",)  # operands that are called as a flag of a command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags for one call, made from the declarations of all operators.

    To be called when the command has its own flags: these win, and what an operator gives the same name is
    given by ``--operand``.
    """
    parser.add_argument(
        "operator", nargs="?", metavar="OPERATOR",
        help="such as gelu: `aclnn ops` lists them, OPERATOR --help describes the operands of one",
    )  # fmt: skip
    parser.add_argument(
        "--calls", metavar="FILE", help="a JSON list of calls: {'operator': ..., 'self': ..., ...}"
    )
    parser.add_argument(
        "--model", metavar="FILE:NAME",
        help="a function in a Python file or module that gives an executor, such as one of a compiled "
        "function; it is called with strategy= and materialize= if these are set; or a model in "
        "ONNX, FILE.onnx",
    )  # fmt: skip
    parser.add_argument(
        "--model-dim", metavar="NAME=SIZE", action="append", type=_dimension, default=[],
        help="size of a model's dimension that has a name, or a number that its function takes; of `aclnn "
        "plan` also a range, such as seq=1..4096",
    )  # fmt: skip
    parser.add_argument(
        "--operand", metavar="NAME=VALUE", action="append", type=_named, dest="operands", default=[],
        help="any operand or option by its name, also names that are flags of this command",
    )  # fmt: skip
    parser.add_argument(
        "--materialize", action=argparse.BooleanOptionalAction,
        help="store every intermediate in full (default: as ACLNN_MATERIALIZE says)",
    )  # fmt: skip
    parser.add_argument("--strategy", choices=STRATEGIES, help="how to plan the workspace")
    parser.add_argument(
        "--threads",
        type=threads,
        metavar="N",
        help="how many threads runs use, and plans have scratch for (default: one)",
    )
    parser.epilog = (
        f"Each operand and option of the operator has a flag, which `{parser.prog} OPERATOR --help` "
        f"describes, with an example. An operand is in words, such as --self {_EXAMPLE} or --self "
        "'bfloat16[128,64:strides=1,128]', or a number where the operator takes one; the tensors of a "
        "list have a flag each. Separate several numbers or bools by commas."
    )
    for role in _described():
        try:
            parser.add_argument(
                _flag(role), metavar="VALUE", action="append", dest="operands",
                type=partial(_with_role, role), help=argparse.SUPPRESS,
            )  # fmt: skip
        except argparse.ArgumentError:  # it is one of the command's own
            continue


def add_arguments_of(parser: argparse.ArgumentParser, named: str) -> None:
    """Help about one operator: its operands and options, and a call that can be copied."""
    operator = _operator(named)
    if operator is None:
        return add_arguments(parser)
    parser.usage = f"{parser.prog} {named} [options] {' '.join(_needed(operator))}"
    parser.description = f"{operator.summary} {operator.expression}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("operator", help=argparse.SUPPRESS)
    group = parser.add_argument_group("operands and options")
    for role in (*operator.inputs, *operator.outputs):
        if role in OWN:
            continue
        group.add_argument(_flag(role), metavar="DTYPE[SHAPE]", help=_operand_words(operator, role))
    for attribute in operator.attributes:
        choices = " or ".join(attribute.choices)
        words = choices or _KIND_WORDS[attribute.kind]
        if not operator.is_required(attribute.role):
            words += f" (default: {operator.default_of(attribute.role)})"
        group.add_argument(_flag(attribute.role), metavar="VALUE", help=words.replace("%", "%%"))
    parser.epilog = f"example:\n  {example(parser.prog, operator)}"
    return None


def _needed(operator: Operator) -> list[str]:
    """The flags without which there is no call."""
    roles = (*operator.inputs, *(attribute.role for attribute in operator.attributes))
    return [f"{_flag(role)} …" for role in roles if operator.is_required(role)]


def flags_words(operator: Operator | str | None) -> str:
    """The flags that an operator takes, as errors say them; empty for what is no operator.

    >>> flags_words("gelu")
    'it takes --self, --out, --approximate'
    """
    found = _operator(operator) if isinstance(operator, str) else operator
    if found is None:
        return ""
    roles = (*found.inputs, *found.outputs, *(a.role for a in found.attributes))
    return "it takes " + ", ".join(map(_flag, roles))


def _operand_words(operator: Operator, role: str) -> str:
    if role in operator.outputs:
        return "the output, allocated if it is missing"
    words = "a tensor, once for each of the list" if role in operator.lists else "a tensor"
    words += " or a number" if _takes_numbers(operator, role) else ""
    return words if operator.is_required(role) else f"{words}; may be left out"


def example(command: str, operator: Operator) -> str:
    """A call of the operator on the command line, after the example of its declaration.

    >>> example("aclnn inspect", REGISTRY["softmax"])
    'aclnn inspect softmax --input float32[4] --dim 0'
    """
    form = functional_owner(operator)
    assert form.example is not None
    arguments = examples.arguments(form.example[0], form.positional)
    flags = [
        f"--operand {role}={words}" if role in OWN else f"{_flag(role)} {words}"
        for role, source in arguments.items()
        for words in _example_words(eval(source, {"np": np, "ml_dtypes": ml_dtypes}))
    ]
    return " ".join([command, form.name, *flags])


def _example_words(value: Any) -> list[str]:
    """Words of the command line for what a call was given; of a list of tensors each."""
    if value is None:
        return ["none"]
    if isinstance(value, np.ndarray):
        shape = ",".join(map(str, value.shape))
        return [f"{value.dtype.name}[{shape}]"]
    if isinstance(value, tuple | list):
        if any(isinstance(one, np.ndarray) for one in value):
            return [words for one in value for words in _example_words(one)]
        return [",".join(map(str, value))]
    return [str(np.dtype(value).name if isinstance(value, type | np.dtype) else value)]


def _with_role(role: str, text: str) -> tuple[str, str]:
    return role, text


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE, such as self={_EXAMPLE}")
    role = name.strip().replace("-", "_")
    if role not in _described():
        meant = did_you_mean(role, _described())
        raise argparse.ArgumentTypeError(f"no operator has an operand or option {name!r}{meant}")
    return role, value


def _dimension(text: str) -> tuple[str, int | range]:
    name, equals, size = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=SIZE, such as batch=8")
    first, dots, last = size.partition("..")
    if not dots:
        return name, natural(size)
    lower, upper = natural(first), natural(last)
    if not 1 <= lower <= upper:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be NAME=LOWER..UPPER with 1 <= LOWER <= UPPER, such as seq=1..4096"
        )
    return name, range(lower, upper + 1)


def dimensions(options: argparse.Namespace) -> dict[str, int | range]:
    """Sizes of dimensions, and ranges of them, by name."""
    found: dict[str, int | range] = {}
    for name, size in options.model_dim:
        if name in found:
            options.refuse(f"--model-dim {name} is given twice")
        found[name] = size
    return found


def _described() -> dict[str, str]:
    """Descriptions of everything that operators take, by role."""
    found: dict[str, str] = {}
    for operator in REGISTRY.values():
        found |= dict.fromkeys((*operator.inputs, *operator.outputs), "an operand")
    for operator in REGISTRY.values():
        for attribute in operator.attributes:
            choices = " or ".join(attribute.choices)
            found.setdefault(attribute.role, choices or _KIND_WORDS[attribute.kind])
    return found


def threads_of(options: argparse.Namespace) -> AbstractContextManager[Any]:
    """The limit of threads that the command line sets, if it sets one."""
    return nullcontext() if options.threads is None else aclnn.num_threads(options.threads)


def given(options: argparse.Namespace) -> list[str]:
    """Words of the command line about a call, for commands that can do without one."""
    said = {"operator": options.operator, "--calls": options.calls, "--model": options.model}
    said |= {"--materialize": options.materialize}
    said |= {_flag(role): text for role, text in options.operands}
    return [words for words, value in said.items() if value is not None]


class BadCallError(AclnnError):
    """A call that cannot even be made: of no operator, or with operands that make no sense."""

    def __init__(self, message: str):
        super().__init__(ACLNN_ERR_PARAM_INVALID, message)


def executors(options: argparse.Namespace, strategy: str | None = None) -> list[Any]:
    """The executors of the calls that the command line names; `strategy` overrules theirs.

    A bad call on the command line itself is bad usage; one in a file is a failed run.
    """
    forced = {} if strategy is None else {"strategy": strategy}
    plain = {name: getattr(options, name) for name in ("operator", "materialize", "strategy")}
    try:
        plain |= _by_role(_meant(options.operands, options.operator), options.operator)
        if options.model is not None:
            _refuse_beside_model(options)
            return [_executor_of_model(options, _given_of(plain | forced))]
        if options.model_dim:
            options.refuse("--model-dim is for --model FILE.onnx")
        if options.calls is None:
            if options.operator is None:
                options.refuse("name an operator, --calls FILE or --model FILE:NAME")
            return [_executor(plain | forced)]
    except BadCallError as error:
        return options.refuse(str(error))
    return [_executor(plain | call | forced) for call in _listed(options.calls)]


def _executor_of_model(options: argparse.Namespace, planning: Mapping[str, Any]) -> Any:
    sizes: dict[str, int] = {}
    for name, given_size in dimensions(options).items():
        if isinstance(given_size, range):
            options.refuse(f"--model-dim {name}: a range of sizes is for `aclnn plan --model`")
        else:
            sizes[name] = given_size
    if options.model.endswith(".onnx"):
        return models.onnx_executor(options.model, sizes, planning)
    return models.executor(options.model, {**planning, **sizes})


def planning_of(options: argparse.Namespace, strategy: str | None = None) -> dict[str, Any]:
    """Options of planning a model that the command line gives."""
    _refuse_beside_model(options)
    return _given_of({"strategy": strategy or options.strategy, "materialize": options.materialize})


def _refuse_beside_model(options: argparse.Namespace) -> None:
    """Refuse what describes another call."""
    named = {"--model": None, "--materialize": None}
    others = [words for words in given(options) if words not in named]
    if others:
        options.refuse(f"--model is shown instead of a call, and takes no {others[0]}")


def _given_of(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The options of planning that were given."""
    return {k: plain[k] for k in ("strategy", "materialize") if plain.get(k) is not None}


def _by_role(operands: Iterable[tuple[str, str]], name: str | None) -> dict[str, Any]:
    """Values by role; lists of tensors of the operator of that name are given one by one."""
    lists = REGISTRY[name].lists if name is not None and name in REGISTRY else ()
    found: dict[str, Any] = {}
    for role, text in operands:
        if role in lists:
            found.setdefault(role, []).append(text)
        elif role in found:
            raise BadCallError(f"{_flag(role)} is given twice")
        else:
            found[role] = text
    return found


def _meant(operands: Iterable[tuple[str, str]], named: str | None) -> list[tuple[str, str]]:
    """Operands by the names that their operator has for them, where others have other names."""
    operator = _operator(named) if named is not None else None
    if operator is None:
        return list(operands)
    taken = (*operator.inputs, *operator.outputs, *(a.role for a in operator.attributes))
    return [
        (role if role in taken else parameter_meant(role, taken) or role, text)
        for role, text in operands
    ]


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
    return [_known(call, index) for index, call in enumerate(listed, 1)]


def _known(call: dict[str, Any], index: int) -> dict[str, Any]:
    """A call of a file; one with a key that would be ignored is refused."""
    call = {key.replace("-", "_"): value for key, value in call.items()}
    known = {"operator", "materialize", "strategy", *_described()}
    for key in call:
        if key not in known:
            meant = did_you_mean(key, known) or f"; they are {', '.join(sorted(known))}"
            raise BadCallError(f"call {index}: there is no {key!r}{meant}")
    return call


def _operator(named: str) -> Operator | None:
    """The operator that has a name, in any of its forms."""
    return next((o for o in REGISTRY.values() if named in (o.name, *o.names)), None)


def _executor(call: Mapping[str, Any]) -> Any:
    named = call["operator"]
    operator = _operator(named)
    if operator is None:
        raise BadCallError(unknown_operator(named))
    _refuse_unheard(operator, call)
    if not isinstance(call["materialize"], bool | None):
        raise BadCallError(f"materialize is {call['materialize']!r}, must be true, false or null")
    chosen = {
        a.role: _option(a, call[a.role])
        for a in operator.attributes
        if _is_given(operator, call, a.role)
    }
    operands = {
        role: _operand(operator, call, role, seed) if _is_given(operator, call, role) else None
        for seed, role in enumerate(operator.inputs)
    }
    return aclnn.executor(
        functional_owner(operator).name, out=_out(operator, call), materialize=call["materialize"],
        strategy=call["strategy"], **operands, **chosen,
    )  # fmt: skip


def _is_given(operator: Operator, call: Mapping[str, Any], role: str) -> bool:
    """Whether a call has an operand or option; one that it lacks must be one that may be lacking.

    The word ``none`` stands for an operand that is absent.
    """
    if call.get(role) == "none" and role in operator.inputs:
        return False
    if call.get(role) is None and operator.is_required(role):
        flag = f"--operand {role}=VALUE" if role in OWN else f"{_flag(role)} VALUE"
        raise BadCallError(f"{operator.name}: {role} is missing, such as {flag}")
    return call.get(role) is not None


# --- Options ------------------------------------------------------------------------------------


def _option(attribute: Attribute, value: Any) -> Any:
    """An option as its operator takes it, of the words that the command line has for it."""
    if not isinstance(value, str):
        return value
    try:
        return _PARSERS[attribute.kind](attribute, value)
    except (ValueError, argparse.ArgumentTypeError) as error:
        rule = str(error) if isinstance(error, argparse.ArgumentTypeError) else None
        requested = " or ".join(map(repr, attribute.choices)) or _KIND_WORDS[attribute.kind]
        rule = rule or f"{value!r} must be {requested}"
        raise BadCallError(f"{_flag(attribute.role)}: {rule}") from None


def _number(text: str) -> float | int:
    """Whole numbers stay such: which dtype a result has may depend on that.

    >>> _number("2"), _number("2.0")
    (2, 2.0)
    """
    return int(text) if re.fullmatch(r"\s*[-+]?[0-9]+\s*", text) else float(text)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _choice(attribute: Attribute, text: str) -> str:
    if attribute.choices and text not in attribute.choices:
        raise ValueError
    return text


def _dtype(text: str) -> str:
    if text not in dtypes.NAMES:
        raise ValueError
    return text


_PARSERS: Mapping[str, Callable[[Attribute, str], Any]] = {
    "scalar": lambda _, text: _number(text),
    "float": lambda _, text: _number(text),
    "int": lambda _, text: int(text),
    "bool": lambda _, text: truth_value(text),
    "str": _choice,
    "ints": lambda _, text: [int(word) for word in _words(text)],
    "bools": lambda _, text: [truth_value(word) for word in _words(text)],
    "dtype": lambda _, text: _dtype(text),
}
_KIND_WORDS = {
    "scalar": "a number",
    "float": "a number",
    "int": "an integer",
    "bool": "a bool",
    "str": "a word",
    "ints": "integers, separated by commas",
    "bools": "bools, separated by commas",
    "dtype": f"one of {', '.join(dtypes.NAMES)}",
}


# --- Operands -----------------------------------------------------------------------------------


def _refuse_unheard(operator: Operator, call: Mapping[str, Any]) -> None:
    """Refuse arguments that only other operators take, rather than ignore them."""
    taken = {*operator.inputs, *operator.outputs, *(a.role for a in operator.attributes)}
    for role in _described():
        if role not in taken and call.get(role) is not None:
            raise BadCallError(f"{operator.name} takes no {_flag(role)}; {flags_words(operator)}")


def _operand(operator: Operator, call: Mapping[str, Any], role: str, seed: int) -> Any:
    text = call[role]
    if role in operator.lists:
        words = [
            word for one in (text if isinstance(text, list) else [text]) for word in _each(one)
        ]
        return [_array(role, word, *operator.domain, seed=seed + n) for n, word in enumerate(words)]
    if _takes_numbers(operator, role) and (number := _as_number(text)) is not None:
        return number
    return _array(role, text, *operator.domain, seed=seed)


def _each(text: Any) -> list[Any]:
    """A list may also be given at once, with spaces between tensors."""
    return text.split() if isinstance(text, str) else [text]


def _takes_numbers(operator: Operator, role: str) -> bool:
    return role in (*operator.numbers, *(operator.number_form or ())[:1])


def _as_number(value: Any) -> float | int | None:
    """An operand that is a number, in words or in a file."""
    if isinstance(value, float | int):
        return value
    try:
        return _number(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _out(operator: Operator, call: Mapping[str, Any]) -> Any:
    """Outputs to write into: an array, or a tuple of them where there are several."""
    found = [
        None if call.get(role) is None else _array(role, call[role], 0, 0)
        for role in operator.outputs
    ]
    if len(found) == 1:
        return found[0]
    return tuple(found) if any(one is not None for one in found) else None


def _array(role: str, text: Any, low: float, high: float, seed: int = 0) -> Any:
    """An array as described, or an error that says which one cannot be made."""
    if not isinstance(text, str):
        raise BadCallError(f"{role} is {text!r}, must be such as {_EXAMPLE!r}")
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
