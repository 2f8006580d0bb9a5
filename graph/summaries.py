"""Short representations, for prompts and lists; views tell the rest."""

from __future__ import annotations

import re
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


_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(words: str) -> str:
    r"""Words for a terminal: control characters, which names in files may hold, as Python escapes them.

    >>> printable("a\x1b[2Jb\r\n"), printable("größe\u202e")
    ('a\\x1b[2Jb\\r\n', 'größe\\u202e')
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], words)


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "node"), counted(2, "pass")
    ('1 node', '2 passes')
    """
    if number == 1:
        return f"1 {what}"
    return f"{number} {what}{'es' if what.endswith('s') else 's'}"
