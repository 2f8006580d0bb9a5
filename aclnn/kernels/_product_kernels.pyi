from collections.abc import Callable, Sequence
from typing import Any

from aclnn.graph import Kernel

def product_kernel(
    in_dtypes: tuple[str, ...],
    out_dtype: str,
    *,
    batch_shape: tuple[int, ...] = (),
    m: int,
    n: int,
    k: int,
    strides: Any = None,
    scaled: bool = False,
    round_inputs_to_half: bool = False,
    steps: Callable[[bool], tuple[tuple[Any, ...], ...]] | None = None,
    extras: int = 0,
) -> Kernel: ...
def multiply_floats_at() -> int: ...
def run(
    kernel: Kernel,
    operands: Any,
    numbers: Sequence[float] = (),
    chunks: int = 1,
    chunk: int | None = None,
) -> Any: ...
