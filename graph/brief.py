"""Short representations, for prompts and lists; views tell the rest."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any


def fields_given(one: Any) -> str:
    """A dataclass as the call that makes it, without what is as by default.

    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int = 0
    ...     names: list = field(default_factory=list)
    >>> fields_given(Point(1)), fields_given(Point(1, 2))
    ('Point(x=1)', 'Point(x=1, y=2)')
    """
    shown = []
    for known in fields(one):
        value = getattr(one, known.name)
        made = known.default_factory
        usual = known.default if made is MISSING else made()
        if known.repr and (usual is MISSING or value != usual):
            shown.append(f"{known.name}={value!r}")
    return f"{type(one).__name__}({', '.join(shown)})"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "node"), counted(2, "pass")
    ('1 node', '2 passes')
    """
    if number == 1:
        return f"1 {what}"
    return f"{number} {what}{'es' if what.endswith('s') else 's'}"
