from collections.abc import Sequence

class PlacingKernel:
    name: str
    itemsizes: tuple[int, ...]
    fn: int
    state: int
    def __init__(
        self,
        base_size: int,
        out_size: int,
        nbytes: int,
        piece_size: int = 0,
        offset: int = 0,
        strides: Sequence[int] = (),
    ) -> None: ...
