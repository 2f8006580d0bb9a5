from contextlib import AbstractContextManager

import numpy as np

class WorkspacePool:
    max_bytes: int
    allocated: int
    lent: int
    def __init__(self, max_bytes: int) -> None: ...
    def lend(self, nbytes: int) -> AbstractContextManager[np.ndarray]: ...
    def clear(self) -> None: ...
