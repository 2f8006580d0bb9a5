from collections.abc import Callable, Sequence
from typing import Any

from aclnn.compiler._plan_cache import OperatorHandle
from aclnn.execution._executor import aclOpExecutor
from aclnn.operators.declaration import Entry

class FunctionalHandle:
    handle: OperatorHandle
    name: str
    names: dict[str, str]
    outputs: tuple[str, ...]
    number_form: FunctionalHandle | None
    differentiable: Callable[..., Any] | None
    def __init__(
        self,
        handle: OperatorHandle,
        name: str,
        parameters: Sequence[str],
        n_positional: int,
        n_required: int,
        find: Callable[[str], FunctionalHandle],
    ) -> None: ...
    def function(self, module: str, doc: str) -> Callable[..., Any]: ...
    def take_option_by(
        self, other: FunctionalHandle, option: str, choices: tuple[str, ...], role: str
    ) -> None: ...
    def take_numbers_by(self, other: FunctionalHandle, slot: int) -> None: ...
    def call(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        numbers: Sequence[Any],
        switches: Sequence[Any] | None,
    ) -> list[Any]: ...
    def outputs_of(
        self, inputs: Sequence[Any], switches: Sequence[Any] | None
    ) -> tuple[str, ...]: ...
    def described(
        self, numbers: Sequence[Any], switches: Sequence[Any] | None, dtypes: Sequence[int]
    ) -> tuple[list[tuple[int, int, float]], list[tuple[float, float, int]], Sequence[Any]]: ...
    def bind(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        numbers: Sequence[Any],
        switches: tuple[object, ...] | None,
        arrays_of_caller: Sequence[Any],
        outputs_of_caller: Sequence[Any],
        materialize: bool | None = None,
        strategy: int | None = None,
        description: Callable[[Any], tuple[Any, Any]] | None = None,
        entry: Entry | None = None,
    ) -> aclOpExecutor: ...
