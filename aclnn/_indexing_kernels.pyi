from aclnn.graph import Kernel

REPLACE: int
ADD: int
MULTIPLY: int
LARGER: int
SMALLER: int

def scatter_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    axis: int,
    how: int,
    lines: int,
    elements: int,
    wraps: bool = False,
) -> Kernel: ...
def pieces_kernel(
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    chunks: int,
    elements: int,
    how: int = 0,
    wraps: bool = False,
) -> Kernel: ...
def one_hot_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    axis: int,
    lines: int,
    elements: int,
) -> Kernel: ...
def class_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    classes: int,
    ignored: int,
    elements: int,
) -> Kernel: ...
def spread_kernel(
    inputs: tuple[str, ...], outputs: tuple[str, ...], *, elements: int
) -> Kernel: ...
def ramp_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    start: float,
    step: float,
    last: float | None,
    elements: int,
) -> Kernel: ...
def truth_kernel(
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    elements: int,
    room: int = 0,
    by_rows: bool = True,
    exact: bool = False,
    clears: bool = False,
) -> Kernel: ...
def solve_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    upper: bool,
    unit: bool,
    n: int,
    wide: int,
    batch: int,
) -> Kernel: ...
