from collections.abc import Callable
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
    workspace_size: int
    own_threads: int
    materialized: bool
    elements: int
    out_shape: tuple[int, ...]
    def __init__(self, **parts: Any) -> None: ...

Observer = Callable[[CompiledCall, int, int, list[tuple[int, int, int, int]], int | None], None]

def add_observer(observer: Observer) -> None: ...
def remove_observer(observer: Observer) -> None: ...
def note_failure(error: BaseException) -> None: ...
