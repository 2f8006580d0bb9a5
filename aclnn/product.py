"""Whose dtype rules hold: the Ascend product that this CPU stands in for."""

from __future__ import annotations

import os

from aclnn import _plan
from aclnn.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.errors import AclnnError

FAMILIES = ("Ascend910B", "Ascend310P", "Ascend910", "Ascend910_93", "Ascend950", "Ascend310B")
BFLOAT16_FAMILIES = ("Ascend910B", "Ascend910_93", "Ascend950")
_WITHOUT_OPERATORS = ("Ascend310B",)


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
    """The family that a product belongs to: the longest that its name begins with.

    >>> family("Ascend910B4"), family("Ascend910A"), family("Ascend910_9391")
    ('Ascend910B', 'Ascend910', 'Ascend910_93')
    """
    wanted = name.strip().lower() if isinstance(name, str) else ""
    found = [known for known in FAMILIES if _belongs(wanted, known.lower())]
    if not found:
        raise AclnnError(
            ACLNN_ERR_PARAM_INVALID,
            f"SoC version is {name!r}, must be one of {', '.join(FAMILIES)}",
        )
    return max(found, key=len)


def _belongs(name: str, known: str) -> bool:
    if name == known:
        return True
    tail = name.removeprefix(known)
    suffixes = {"ascend910": ("a", "pro", "proa", "prob", "premiuma"), "ascend310p": ("",)}
    if tail == name:
        return False
    return tail.isdigit() or tail in suffixes.get(known, ())


def supports_bfloat16(soc: str) -> bool:
    """Whether a family has bfloat16.

    >>> supports_bfloat16("Ascend910B"), supports_bfloat16("Ascend910")
    (True, False)
    """
    return soc in BFLOAT16_FAMILIES


def has_operators(soc: str) -> bool:
    """Whether a family has the operators of this package at all."""
    return soc not in _WITHOUT_OPERATORS


set_soc_version(os.environ.get("ACLNN_SOC_VERSION") or FAMILIES[0])
