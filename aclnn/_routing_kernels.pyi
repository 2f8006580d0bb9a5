from aclnn.graph import Kernel

def gate_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    present: tuple[str, ...],
    lines: int,
    n: int,
    k: int,
    norm: int,
    groups: int = 1,
    kept: int = 1,
    by_two: bool = False,
    divides: bool = False,
) -> Kernel: ...
def route_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    n: int,
    each: int,
    experts: int,
    capacity: int,
    counting: int,
) -> Kernel: ...
def take_rows_kernel(
    inputs: tuple[str, ...], outputs: tuple[str, ...], *, lines: int, n: int
) -> Kernel: ...
def combine_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    present: tuple[str, ...],
    lines: int,
    n: int,
    each: int,
    by_columns: bool,
    drops: bool,
) -> Kernel: ...
