from typing import Any

import numpy as np

class DLPackExporter:
    def __init__(self, array: np.ndarray) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def from_dlpack(exporter: Any, any_dtype: bool = False) -> np.ndarray: ...
def to_dlpack(array: np.ndarray) -> DLPackExporter: ...
