from collections.abc import Sequence
from typing import Any

class aclTensor:
    dtype: int
    format: int
    ndim: int
    offset: int
    storage_shape: tuple[int, ...]
    owner: object
    writable: bool
    destroyed: bool
    device: bool
    def dims(self) -> tuple[int, ...]: ...
    def steps(self) -> tuple[int, ...]: ...
    def with_data(self, data: Any) -> aclTensor: ...

class aclScalar:
    dtype: int
    value: complex
    is_real: bool
    destroyed: bool
    as_float: float
    as_double: float

def aclCreateTensor(
    viewDims: Sequence[int],  # noqa: N803
    dataType: int,  # noqa: N803
    stride: Sequence[int] | None,
    offset: int,
    format: int,
    storageDims: Sequence[int],  # noqa: N803
    tensorData: Any,  # noqa: N803
) -> aclTensor | None: ...
def aclInitTensor(
    tensor: Any,
    viewDims: Sequence[int],  # noqa: N803
    dataType: int,  # noqa: N803
    stride: Sequence[int] | None,
    offset: int,
    format: int,
    storageDims: Sequence[int],  # noqa: N803
    tensorData: Any,  # noqa: N803
) -> int: ...
def aclDestroyTensor(tensor: Any) -> int: ...
def aclGetViewShape(tensor: Any) -> tuple[list[int] | None, int]: ...
def aclGetStorageShape(tensor: Any) -> tuple[list[int] | None, int]: ...
def aclGetViewStrides(tensor: Any) -> tuple[list[int] | None, int]: ...
def aclGetViewOffset(tensor: Any) -> tuple[int, int]: ...
def aclGetFormat(tensor: Any) -> tuple[int | None, int]: ...
def aclGetDataType(tensor: Any) -> tuple[int | None, int]: ...
def aclGetRawTensorAddr(tensor: Any) -> tuple[int, int]: ...
def aclSetRawTensorAddr(tensor: Any, addr: Any) -> int: ...
def aclCreateScalar(value: complex, dataType: int) -> aclScalar | None: ...  # noqa: N803
def aclDestroyScalar(scalar: Any) -> int: ...
