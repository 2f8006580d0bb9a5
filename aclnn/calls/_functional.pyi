from collections.abc import Callable, Sequence
from typing import Any

from aclnn.calls._executor import aclOpExecutor
from aclnn.planning._plan import OperatorHandle

class FunctionalHandle:
    handle: OperatorHandle
    name: str
    names: dict[str, str]
    number_form: FunctionalHandle | None
    def __init__(
        self,
        handle: OperatorHandle,
        name: str,
        parameters: Sequence[str],
        n_positional: int,
        find: Callable[[str], FunctionalHandle],
    ) -> None: ...
    def function(self, module: str, doc: str) -> Callable[..., Any]: ...
    def call(
        self,
        operands: Sequence[Any],
        out: Any,
        numbers: Sequence[Any],
        switches: Sequence[Any] | None,
    ) -> Any: ...
    def bind(
        self,
        operands: Sequence[Any],
        out: Any,
        numbers: Sequence[Any],
        switches: tuple[object, ...] | None,
        arrays_of_caller: Any,
        materialize: bool | None = None,
        strategy: int | None = None,
    ) -> aclOpExecutor: ...
