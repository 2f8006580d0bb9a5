"""Whose dtype rules hold: the Ascend product that this CPU stands in for."""

from __future__ import annotations

import re

from aclnn import _plan, environment
from aclnn.errors import invalid, shown

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


def set_soc_version(name: str) -> None:
    """Choose whose dtype rules hold.

    Parameters
    ----------
    name : str
        A family (``Ascend310P``, ``Ascend910``, ``Ascend910B``, ``Ascend910_93``, ``Ascend950``,
        ``Ascend310B``) in any case, or the name of one of its products, such as ``Ascend910B2``.

    Raises
    ------
    AclnnError
        If there is no such product.

    Examples
    --------
    >>> import aclnn
    >>> before = aclnn.get_soc_version()
    >>> aclnn.set_soc_version("ascend310p3")
    >>> aclnn.get_soc_version()
    'Ascend310P'
    >>> aclnn.set_soc_version(before)
    """
    _plan.configure(soc=FAMILIES.index(family(name)))


def get_soc_version() -> str:
    """The family whose dtype rules hold.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.get_soc_version() in ("Ascend910B", "Ascend310P", "Ascend910")
    True
    """
    return FAMILIES[_plan.current_settings()["soc"]]


def family(name: str) -> str:
    """The family that a product belongs to.

    >>> family("Ascend910B4-1"), family("Ascend910ProA"), family("Ascend910_9391")
    ('Ascend910B', 'Ascend910', 'Ascend910_93')
    """
    wanted = name.strip().lower() if isinstance(name, str) else ""
    for known in FAMILIES:
        tail = wanted.removeprefix(known.lower())
        if wanted.startswith(known.lower()) and re.fullmatch(_PRODUCTS.get(known, r"\d?"), tail):
            return known
    raise invalid(f"SoC version is {shown(name)}, {RULE}")


def supports_bfloat16(soc: str) -> bool:
    """Whether a family has bfloat16.

    >>> supports_bfloat16("Ascend910B"), supports_bfloat16("Ascend910")
    (True, False)
    """
    return soc in BFLOAT16_FAMILIES


def has_operators(soc: str) -> bool:
    """Whether a family has the operators of this package at all."""
    return soc not in _WITHOUT_OPERATORS


set_soc_version(environment.SOC_VERSION.read())
