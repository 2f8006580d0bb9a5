class KernelReference:
    name: str
    itemsizes: tuple[int, ...]
    fn: int
    state: int
    prepare: int
    params_size: int
    cost: float
    scratch: int
    def chunks(self, threads: int) -> int: ...
    def failure(self, code: int, detail: int) -> str | None: ...
