from collections.abc import Callable, Mapping, Sequence
from typing import Any

class CompiledCall:
    operator: Any
    call: Any
    graph_as_built: Any
    passes: tuple[Any, ...]
    graph: Any
    workspace: Any
    schedule: Any
    packed: Any
    settings: Mapping[str, Any]
    n_inputs: int
    workspace_size: int
    own_threads: int
    materialized: bool
    elements: int
    out_shape: tuple[int, ...]
    def __init__(self, **parts: Any) -> None: ...
    def serves(self, overlaps: Sequence[Sequence[int]]) -> bool: ...

Observer = Callable[[CompiledCall, int, int, list[tuple[int, int, int, int]], int | None], None]

def runs_observed() -> bool: ...
def add_observer(observer: Observer) -> None: ...
def remove_observer(observer: Observer) -> None: ...
def note_failure(error: BaseException) -> None: ...
