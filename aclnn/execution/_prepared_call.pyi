from collections.abc import Sequence
from typing import Any

from aclnn.execution._executor import aclOpExecutor

class PreparedCall:
    def __init__(
        self,
        executor: aclOpExecutor,
        n_inputs: int,
        orders: Sequence[tuple[int, ...] | None],
        is_one: bool,
    ) -> None: ...
    def run(self, tensors: tuple[Any, ...]) -> Any: ...

def prepares(library: Any) -> bool: ...
