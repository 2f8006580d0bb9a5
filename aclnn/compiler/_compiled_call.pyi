from collections.abc import Callable
from typing import Any

class OperatorHandle:
    operator: Any
    id: int
    n_inputs: int
    n_scalars: int
    scalar_roles: tuple[str, ...]
    switch_codes: dict[object, int]
    def __init__(self, operator: Any, identifier: int) -> None: ...
    def fact_mask(self, index: int) -> int: ...

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
def cache_info() -> dict[str, int]: ...
def clear_cache() -> None: ...
def configure(**changes: int) -> None: ...
def current_settings() -> dict[str, Any]: ...
def limit_of_thread() -> int: ...
def limit_thread(threads: int) -> int: ...
def note_failure(error: BaseException) -> None: ...
