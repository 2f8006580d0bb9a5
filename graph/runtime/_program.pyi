from collections.abc import Sequence
from typing import Any

class Program:
    schedule: Any
    n_numbers: int
    def __init__(self, schedule: Any) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def n_events(self) -> int: ...
    def describe(self) -> Any: ...
    def run(
        self,
        addresses: Sequence[int],
        workspace: int = 0,
        numbers: Sequence[float | int] = (),
        threads: int = 1,
        trace: bool = False,
    ) -> list[tuple[int, int, int, int]] | None: ...
