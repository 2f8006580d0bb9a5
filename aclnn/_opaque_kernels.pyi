from typing import NamedTuple

from aclnn.graph import Kernel

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

def opaque_kernel(
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
) -> Kernel: ...
