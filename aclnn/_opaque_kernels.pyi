from typing import NamedTuple

class OpaqueFacts(NamedTuple):
    address: int
    cost: float
    moves: bool
    indices: int
    chunks: str
    maker: str
    loops: str
    failures: tuple[tuple[int, str], ...]

FACTS: dict[str, OpaqueFacts]

class OpaqueKernelRef:
    name: str
    itemsizes: tuple[int, ...]
    fn: int
    state: int
    prepare: int
    params_size: int
    cost: float
    def __init__(
        self,
        name: str,
        in_dtypes: tuple[str, ...],
        out_dtype: str,
        *,
        elements: int,
        lines: int,
        axis: int = 0,
        length: int = 0,
        diagonal: int = 0,
        wraps: bool = False,
        loops: tuple[int, int] = (0, 0),
    ) -> None: ...
    def chunks(self, threads: int) -> int: ...
    def failure(self, code: int, detail: int) -> str | None: ...
