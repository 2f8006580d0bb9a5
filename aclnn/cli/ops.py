"""List the operators: signatures, dtypes for each SoC, formulas, rules in order."""

from __future__ import annotations

import argparse
import json
import textwrap
from functools import cache
from importlib import resources
from typing import Any

from aclnn import operators
from aclnn.acl import socs
from aclnn.acl.constants import aclDataType
from aclnn.api.functional import signature
from aclnn.operators import REGISTRY, Operator, functional_owner, unknown_operator
from aclnn.operators.checks import TensorSpec

INDENT, WIDTH = " " * 4, 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="one operator, by any of its names, with its rules")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    chosen = [one for one in REGISTRY.values() if options.name in (None, one.name, *one.names)]
    if not chosen:
        options.refuse(unknown_operator(options.name))
    facts = [describe(operator) for operator in chosen]
    if options.json:
        print(json.dumps(facts, indent=2))
        return 0
    print("\n\n".join(_words(one, rules=options.name is not None) for one in facts))
    return 0


def describe(operator: Operator) -> dict[str, Any]:
    """Everything worth knowing of an operator, as plain data."""
    return {
        "name": operator.name,
        "summary": operator.summary,
        "functional": f"{functional_owner(operator).name}({signature(operator)})",
        "in_place": operator.in_place,
        "entries": [
            f"{item.name}GetWorkspaceSize({', '.join(p.name for p in item.parameters)})"
            for item in operator.entries
        ],
        "formula": operator.expression,
        "notes": operator.notes,
        "accuracy": accuracies().get(operator.name, {}),
        "dtypes": {soc: dtypes_on(operator, soc) for soc in socs.FAMILIES},
        "rules": [rule.text for rule in operator.rules],
    }


@cache
def accuracies() -> dict[str, dict[str, dict[str, float]]]:
    """The worst that was measured, by operator and dtype: errors in ULP as 'ulp', how many of all 65,536
    results are not the exact value rounded once as 'misrounded', parts of what products may be off by as
    'of_bound'. Operators that compute nothing, such as copies, are not in it.
    """
    text = resources.files(operators).joinpath("accuracy.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, dict[str, float]]] = json.loads(text)
    return found


def accuracy_in_words(measured: dict[str, float]) -> str:
    """Words about what was measured of one dtype.

    >>> [accuracy_in_words({"ulp": error}) for error in (0.584, 0.0)]
    ['within 0.584 ULP', 'exact']
    >>> [accuracy_in_words({"misrounded": count}) for count in (0, 3)]
    ['correctly rounded', '3 misrounded']
    >>> accuracy_in_words({"of_bound": 0.48})
    'within 0.48 of the bound'
    """
    ((measure, number),) = measured.items()
    if measure == "misrounded":
        return f"{number} misrounded" if number else "correctly rounded"
    if not number:
        return "exact"
    return f"within {number:g} {'ULP' if measure == 'ulp' else 'of the bound'}"


def dtypes_on(operator: Operator, soc: str) -> list[str]:
    """The dtypes in which all tensors of a call may be on a SoC, according to the rules."""
    if REGISTRY.get(operator.name) is operator:
        return list(_known_dtypes(operator.name, soc))
    return _accepted_dtypes(operator, soc)


@cache
def _known_dtypes(name: str, soc: str) -> tuple[str, ...]:
    return tuple(_accepted_dtypes(REGISTRY[name], soc))


def _accepted_dtypes(operator: Operator, soc: str) -> list[str]:
    roles = (*operator.inputs, "out")
    return [
        dtype.name.removeprefix("ACL_")
        for dtype in aclDataType
        if operator.accepts(dict.fromkeys(roles, TensorSpec(dtype, (2,), (1,))), soc, c_shaped=True)
    ]


def _words(facts: dict[str, Any], *, rules: bool) -> str:
    """Description in lines; continued ones are indented by twice as much."""
    lines = [f"{facts['summary']} {facts['formula']}", *facts["entries"]]
    by_dtypes: dict[str, list[str]] = {}
    for soc, names in facts["dtypes"].items():
        by_dtypes.setdefault(", ".join(names) or "does not exist", []).append(soc)
    lines += [f"{names}: {', '.join(them)}" for names, them in by_dtypes.items()]
    by_words: dict[str, list[str]] = {}
    for dtype, measured in facts["accuracy"].items():
        by_words.setdefault(accuracy_in_words(measured), []).append(dtype)
    if by_words:
        measured = "; ".join(f"{', '.join(them)} {words}" for words, them in by_words.items())
        lines += [f"measured: {measured}"]
    if rules:
        lines += [facts["notes"]] if facts["notes"] else []
        lines += ["rules, in order:"]
        lines += [f"{index:3} {text}" for index, text in enumerate(facts["rules"], 1)]
    return "\n".join(
        [
            *_wrapped(facts["functional"], ""),
            *(one for line in lines for one in _wrapped(line, INDENT)),
        ]
    )


def _wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(
        line, WIDTH, initial_indent=indent, subsequent_indent=indent + INDENT,
        break_long_words=False, break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip
