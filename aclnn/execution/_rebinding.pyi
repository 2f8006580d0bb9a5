from typing import Any

def aclSetAclOpExecutorRepeatable(executor: Any) -> int: ...
def aclDestroyAclOpExecutor(executor: Any) -> int: ...
def aclSetInputTensorAddr(executor: Any, index: Any, tensor: Any, addr: Any) -> int: ...
def aclSetOutputTensorAddr(executor: Any, index: Any, tensor: Any, addr: Any) -> int: ...
def aclSetTensorAddr(executor: Any, index: Any, tensor: Any, addr: Any) -> int: ...

AclSetInputTensorAddr = aclSetInputTensorAddr
AclSetOutputTensorAddr = aclSetOutputTensorAddr
AclSetTensorAddr = aclSetTensorAddr

def aclSetDynamicInputTensorAddr(
    executor: Any,
    irIndex: Any,  # noqa: N803
    relativeIndex: Any,  # noqa: N803
    tensors: Any,
    addr: Any,
) -> int: ...
def aclSetDynamicOutputTensorAddr(
    executor: Any,
    irIndex: Any,  # noqa: N803
    relativeIndex: Any,  # noqa: N803
    tensors: Any,
    addr: Any,
) -> int: ...
def aclSetDynamicTensorAddr(
    executor: Any,
    irIndex: Any,  # noqa: N803
    relativeIndex: Any,  # noqa: N803
    tensors: Any,
    addr: Any,
) -> int: ...

AclSetDynamicInputTensorAddr = aclSetDynamicInputTensorAddr
AclSetDynamicOutputTensorAddr = aclSetDynamicOutputTensorAddr
AclSetDynamicTensorAddr = aclSetDynamicTensorAddr
