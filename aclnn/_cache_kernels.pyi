from aclnn.graph import Kernel

SLOTS: int
POSITIONS: int
BLOCKS: int
WITHOUT_BLOCKS: int

def scatter_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    slot_axis: int,
    counts: int,
    sequence: int,
    blocks: int,
    elements: int,
    strict: bool = False,
) -> Kernel: ...
def gather_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    slot_axis: int,
    adds_up: bool,
    rows: int,
    elements: int,
) -> Kernel: ...
