from collections.abc import Callable, Sequence
from typing import Any

class ProductKernelRef:
    fn: int
    state: int
    name: str
    itemsizes: tuple[int, ...]
    prepare: int
    params_size: int
    cost: float
    scratch: int
    def scratch_for(self, threads: int) -> int: ...
    def chunks(self, threads: int) -> int: ...
    @property
    def packs(self) -> tuple[int, int, tuple[int, ...]] | None: ...
    def packed(self) -> ProductKernelRef: ...
    def pack(self, source: int, target: int) -> None: ...

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
) -> ProductKernelRef: ...
def run(
    ref: ProductKernelRef,
    operands: Any,
    numbers: Sequence[float] = (),
    chunks: int = 1,
    chunk: int | None = None,
) -> Any: ...
