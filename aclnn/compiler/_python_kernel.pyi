from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

class PythonKernel:
    name: str
    itemsizes: tuple[int, ...]
    function: Callable[..., Any]
    fn: int
    state: int
    cost: float
    def __init__(
        self, function: Callable[..., Any], dtypes: Sequence[np.dtype], name: str
    ) -> None: ...
