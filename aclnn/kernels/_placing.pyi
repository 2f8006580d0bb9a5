from aclnn.graph import Kernel

def placing_kernel(
    base_size: int,
    out_size: int,
    nbytes: int,
    piece_size: int = 0,
    offset: int = 0,
    strides: tuple[int, ...] = (),
) -> Kernel: ...
