from aclnn._kernel_reference import KernelReference

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
) -> KernelReference: ...
def gather_kernel(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    slot_axis: int,
    adds_up: bool,
    rows: int,
    elements: int,
) -> KernelReference: ...
