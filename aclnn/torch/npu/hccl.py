"""The process group ``hccl``: PyTorch's Gloo on aliases of the device's memory."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

_COLLECTIVES = (
    "allgather", "_allgather_base", "allgather_coalesced", "allreduce_coalesced",
    "alltoall", "alltoall_base", "broadcast", "gather", "recv", "recv_anysource", "reduce_scatter",
    "_reduce_scatter_base", "scatter", "send",
)  # fmt: skip

# Several calls at once, which Gloo has no way to make: one after the other.
_SEVERAL = {
    "allgather_into_tensor_coalesced": "_allgather_base", "reduce_scatter_tensor_coalesced": "_reduce_scatter_base",
}  # fmt: skip

# Names that later versions of PyTorch call them by.
_RENAMED = {
    "all_gather_single": "_allgather_base", "all_to_all_single": "alltoall_base",
    "reduce_scatter_single": "_reduce_scatter_base",
}  # fmt: skip


def register(native: ModuleType) -> None:
    """Register the backend, where PyTorch was built with Gloo."""
    if not dist.is_available() or not hasattr(dist, "ProcessGroupGloo"):
        return
    group = _group_class(native)
    dist.Backend.register_backend(
        "hccl", lambda options, _: group(options), extended_api=True, devices=["npu"]
    )
    dist.is_hccl_available = lambda: True


def _group_class(native: ModuleType) -> type:
    def aliased(arguments: Any) -> Any:
        if isinstance(arguments, torch.Tensor):
            return native.alias(arguments.detach()) if arguments.device.type == "npu" else arguments
        if isinstance(arguments, list | tuple):
            return [aliased(one) for one in arguments]
        return arguments

    class ProcessGroupHCCL(dist.ProcessGroup):
        """Collectives of npu tensors, which Gloo computes in their memory."""

        def __init__(self, options: Any):
            super().__init__(options.group_rank, options.group_size)
            self._gloo = dist.ProcessGroupGloo(
                options.store, options.group_rank, options.group_size, options.timeout
            )
            self._name = ""

        def getBackendName(self) -> str:  # noqa: N802  # PyTorch's name
            return "hccl"

        def setGroupName(self, name: str) -> None:  # noqa: N802
            self._name = name

        def getGroupName(self) -> str:  # noqa: N802
            return self._name

        @property
        def group_name(self) -> str:
            return self._name

        def barrier(self, *args: Any, **named: Any) -> Any:
            return self._gloo.barrier()

        def allreduce(self, tensors: Any, *options: Any, **named: Any) -> Any:
            return self._reduced("allreduce", tensors, *options, *named.values())

        def reduce(self, tensors: Any, *options: Any, **named: Any) -> Any:
            return self._reduced("reduce", tensors, *options, *named.values())

        def _reduced(self, name: str, tensors: Any, *options: Any) -> Any:
            """A reduction; Gloo has no mean, which is a sum that is divided."""
            own = aliased(tensors if isinstance(tensors, list) else [tensors])
            opts: Any = options[0] if options else None
            is_mean = getattr(opts, "reduceOp", None) == dist.ReduceOp.AVG
            if is_mean:
                opts.reduceOp = dist.ReduceOp.SUM
            work = getattr(self._gloo, name)(own, *([opts] if opts is not None else []))
            if is_mean:
                work.wait()
                for one in own:
                    one.div_(self.size())
            return work

    for name in _COLLECTIVES:
        setattr(ProcessGroupHCCL, name, _collective(name, aliased))
    for name, other in _RENAMED.items():
        setattr(ProcessGroupHCCL, name, _collective(other, aliased))
    for name, other in _SEVERAL.items():
        setattr(ProcessGroupHCCL, name, _one_by_one(other, aliased))
    return ProcessGroupHCCL


def _one_by_one(name: str, aliased: Callable[[Any], Any]) -> Callable[..., Any]:
    """Calls of a collective for pairs of an output and an input; all but the last are waited for."""

    def call(self: Any, outputs: Any, inputs: Any, *options: Any) -> Any:
        work = None
        for pair in zip(aliased(outputs), aliased(inputs), strict=True):
            if work is not None:
                work.wait()
            work = getattr(self._gloo, name)(*pair, *options)
        return work if work is not None else self._gloo.barrier()

    return call


def _collective(name: str, aliased: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **named: Any) -> Any:
        return getattr(self._gloo, name)(
            *aliased(args), **{k: aliased(v) for k, v in named.items()}
        )

    call.__name__ = name
    return call
