"""Notes: what a pass did, and why; and what a pass is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir import Graph


@dataclass(frozen=True, slots=True)
class Note:
    """Change of a pass to a node, and the reason.

    Attributes
    ----------
    node : str
        Name of the node.
    action : str
        Such as elided, folded, fused, kept, added.
    why : str
        The reason.

    Examples
    --------
    >>> print(Note("x_cast", "elided", "already float32"))
    x_cast: elided, already float32
    """

    node: str
    action: str
    why: str

    def __str__(self) -> str:
        return f"{self.node}: {self.action}, {self.why}"


Notes = tuple[Note, ...]
Pass = Callable[[Graph], tuple[Graph, Notes]]
