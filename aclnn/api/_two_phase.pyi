from collections.abc import Callable
from typing import Any

from aclnn.compiler._plan_cache import OperatorHandle
from aclnn.execution._executor import aclOpExecutor

class EntryHandle:
    handle: OperatorHandle
    entry: Any
    name: str
    names: dict[str, str]
    def __init__(
        self, handle: OperatorHandle, entry: Any, find: Callable[[str], EntryHandle]
    ) -> None: ...
    def functions(
        self, module: str, plan_doc: str, run_doc: str
    ) -> tuple[Callable[..., tuple[int, aclOpExecutor | None, int]], Callable[..., int]]: ...

def set_call_hook(
    hook: Callable[[str, str, aclOpExecutor | None, int, int], None] | None,
) -> None: ...
