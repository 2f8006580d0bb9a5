from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aclnn.graph import Kernel

def python_kernel(
    function: Callable[..., Any], dtypes: Sequence[np.dtype], name: str
) -> Kernel: ...
