from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from aclnn.operators.checks import TensorSpec

def reads(array: Any) -> bool: ...
def describe(array: Any) -> str: ...

class Headers:
    key: bytes
    arrays: Sequence[Any]
    def specs(self) -> list[TensorSpec]: ...

@overload
def read_headers(arrays: Sequence[np.ndarray]) -> Headers: ...
@overload
def read_headers(arrays: Sequence[Any], plain: bool) -> Headers | None: ...
def call_key(
    args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, Headers, list[float], Any] | None: ...
