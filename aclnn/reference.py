"""Docstrings of the generated functions, made from the declarations."""

from __future__ import annotations

import textwrap

from aclnn.operators import Entry, Operator

SOURCE = "Formula after CANN's public operator documentation"

_KINDS = {
    "input": "aclTensor",
    "output": "aclTensor",
    "inout": "aclTensor",
    "scalar": "aclScalar",
    "bool": "bool",
    "int": "int",
    "float": "float",
    "str": "str",
}


def functional_doc(operator: Operator, name: str) -> str:
    """The docstring of ``aclnn.<name>``, in numpydoc style."""
    in_place = name == operator.in_place
    return "\n".join(
        [
            operator.summary + (" In place." if in_place else ""),
            "",
            "Parameters\n----------",
            *(_array_line(operator, role, in_place=in_place) for role in operator.inputs),
            *(_option_lines(a.role, a.default, a.doc) for a in operator.attributes),
            *([] if in_place else [_OUT]),
            "",
            "Returns\n-------",
            "The input itself." if in_place else "The result, in the caller's kind of array.",
            "",
            "Raises\n------",
            "AclnnError\n    With a status and a message, if one of these is broken, in order:",
            *(f"    {number}. {rule.text}." for number, rule in enumerate(operator.rules, 1)),
            "",
            "Notes\n-----",
            _wrapped(f"{operator.expression}."),
            *([_wrapped(operator.notes)] if operator.notes else []),
            _wrapped(
                f"{SOURCE} ({', '.join(item.name for item in operator.entries)}). Float32 "
                "results lie within 1 ULP of the exact value, float16 and bfloat16 results are "
                "correctly rounded."
            ),
            *_see_also(operator),
            *_example(operator, name),
        ]
    )


_OUT = (
    "out : array, optional\n    Where the result goes; made if not given. It may be an input "
    "itself or overlap one in any way."
)


def phase_one_doc(operator: Operator, item: Entry) -> str:
    """The docstring of ``aclnnXxxGetWorkspaceSize``."""
    return "\n".join(
        [
            f"Phase one of {item.name}: check the arguments and plan.",
            "",
            "Parameters\n----------",
            *(f"{p.name} : {_KINDS[p.kind]}" for p in item.parameters),
            "",
            "Returns\n-------",
            "workspaceSize : int\n    Bytes that phase two needs.",
            "executor : aclOpExecutor or None",
            "status : int\n    ACLNN_SUCCESS, or 161001 for a null argument, or 161002 if one of",
            "    these is broken, in order:",
            *(f"    {number}. {rule.text}." for number, rule in enumerate(operator.rules, 1)),
            "",
            "Notes\n-----",
            _wrapped(f"{operator.summary} {operator.expression}. {SOURCE}."),
        ]
    )


def phase_two_doc(operator: Operator, item: Entry) -> str:
    """The docstring of ``aclnnXxx``."""
    return "\n".join(
        [
            f"Phase two of {item.name}: run what phase one planned.",
            "",
            "Parameters\n----------",
            "workspace : buffer, int or None\n    At least `workspaceSize` writable bytes.",
            "workspaceSize : int\n    What phase one said.",
            "executor : aclOpExecutor\n    Phase one's; spent afterwards unless repeatable.",
            "stream : aclrtStream or None\n    None runs at once on the calling thread.",
            "",
            "Returns\n-------",
            "int\n    ACLNN_SUCCESS; 161001 for a null executor, workspace or data pointer; 161002",
            "    for a workspace too small; 561000 for an executor that cannot run.",
            "",
            "Notes\n-----",
            _wrapped(f"{operator.summary} {operator.expression}."),
        ]
    )


def _array_line(operator: Operator, role: str, *, in_place: bool) -> str:
    note = "Input; overwritten by the result." if in_place else "Input, of any strides."
    return f"{role} : array\n    {note}"


def _option_lines(role: str, default: object, doc: str) -> str:
    return f"{role} : {type(default).__name__ if default is not None else 'float'}, optional\n" + (
        textwrap.indent(_wrapped(f"{doc} Default {default!r}."), "    ")
    )


def _see_also(operator: Operator) -> list[str]:
    return ["", "See Also\n--------", ", ".join(operator.seealso)] if operator.seealso else []


def _example(operator: Operator, name: str) -> list[str]:
    if name != operator.name or not operator.example:
        return []
    call, result = operator.example
    return [
        "",
        "Examples\n--------",
        ">>> import numpy as np",
        f">>> from aclnn import {name}",
        f">>> {call}",
        result,
    ]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 92)
