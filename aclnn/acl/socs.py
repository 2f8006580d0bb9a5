"""Ascend SoCs and the differences between their dtype rules."""

from __future__ import annotations

import re

from aclnn.acl.arguments import did_you_mean, shown
from aclnn.acl.errors import invalid

FAMILIES = ("Ascend910B", "Ascend310P", "Ascend910", "Ascend910_93", "Ascend950", "Ascend310B")
BFLOAT16_FAMILIES = ("Ascend910B", "Ascend910_93", "Ascend950")
# What follows a family's name in the names of its products; elsewhere at most a digit.
_PRODUCTS = {
    "Ascend910B": r"(\d(c|-\d)?)?",
    "Ascend910": r"a?|pro[ab]?|premiuma",
    "Ascend910_93": r"(\d\d)?",
    "Ascend950": r"((pr|dt)(_\w+)?)?",
}
_WITHOUT_OPERATORS = ("Ascend310B",)
RULE = f"must be one of {', '.join(FAMILIES)} or of their products"


def family(name: str) -> str:
    """The family that a product belongs to.

    >>> family("Ascend910B4-1"), family("Ascend910ProA"), family("Ascend910_9391")
    ('Ascend910B', 'Ascend910', 'Ascend910_93')
    """
    requested = name.strip().lower() if isinstance(name, str) else ""
    for known in FAMILIES:
        tail = requested.removeprefix(known.lower())
        if requested.startswith(known.lower()) and re.fullmatch(_PRODUCTS.get(known, r"\d?"), tail):
            return known
    raise invalid(f"SoC version is {shown(name)}, {RULE}{did_you_mean(name, FAMILIES)}")


def supports_bfloat16(soc: str) -> bool:
    """Whether a family has bfloat16.

    >>> supports_bfloat16("Ascend910B"), supports_bfloat16("Ascend910")
    (True, False)
    """
    return soc in BFLOAT16_FAMILIES


def has_operators(soc: str) -> bool:
    """Whether a family has the operators of this package at all."""
    return soc not in _WITHOUT_OPERATORS
