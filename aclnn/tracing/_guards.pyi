from collections.abc import Sequence
from typing import Any

from aclnn.execution._operand import Headers

FIXED: int
OWNER: int
GLOBAL: int
CELL: int
ATTRIBUTE: int
MEMBER: int
ITEM: int
VALUE: int
IDENTICAL: int
EQUAL: int
KIND: int
SEQUENCE: int
MAPPING: int
ALIAS: int
ARRAY: int
ABSENT: int

Node = tuple[int, int, Any, int, Any]

class Guards:
    count: int
    offsets: list[int]
    def __init__(self, nodes: Sequence[Node]) -> None: ...
    def bind(self, inputs: Sequence[tuple[int, int]]) -> None: ...
    def watch(self, index: int, array: Any) -> None: ...
    def look_up(self, owners: Sequence[Any]) -> Headers | None: ...
    def failing(self, owners: Sequence[Any]) -> set[int]: ...
    def differing(self, owners: Sequence[Any]) -> int: ...

def fingerprint(array: Any) -> int: ...
