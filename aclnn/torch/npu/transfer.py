"""``torch_npu.contrib.transfer_to_npu``: programs for CUDA devices as programs for the npu."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

_FACTORIES = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
    "tril_indices",
    "triu_indices",
    "hann_window",
    "hamming_window",
    "bartlett_window",
    "blackman_window",
    "kaiser_window",
    "normal",
    "sparse_coo_tensor",
    "frombuffer",
    "from_file",
    "load",
    "autocast",
]
_METHODS = [
    "to",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "type",
    "pin_memory",
    "is_pinned",
]
_applied = False


def apply(npu: ModuleType) -> None:
    """Let "cuda" mean the npu: in device arguments, in methods, in ``torch.cuda``."""
    global _applied
    if _applied:
        return
    _applied = True
    warnings.warn(
        "torch.cuda and device arguments that say cuda are the npu's from now on",
        ImportWarning,
        stacklevel=3,
    )
    for name in _FACTORIES:
        if hasattr(torch, name):
            setattr(torch, name, _replacing(getattr(torch, name)))
    for name in _METHODS:
        if hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, _replacing(getattr(torch.Tensor, name), ints=name == "to"))
    torch.nn.Module.to = _replacing(torch.nn.Module.to)
    torch.Generator = _generator_class()
    torch.Tensor.cuda = torch.Tensor.npu
    torch.nn.Module.cuda = torch.nn.Module.npu
    torch.Tensor.is_cuda = property(lambda self: self.device.type == "npu")
    for name, value in vars(npu).items():
        if not name.startswith("__") and not isinstance(value, ModuleType):
            setattr(torch.cuda, name, value)
    torch.cuda.DoubleTensor = npu.FloatTensor if hasattr(npu, "FloatTensor") else torch.FloatTensor
    if torch.distributed.is_available():
        dist = torch.distributed
        dist.init_process_group = _replacing(dist.init_process_group)
        dist.new_group = _replacing(dist.new_group)
    torch.jit.script = lambda obj=None, *args, **named: obj


_WORDS = {"cuda": "npu", "nccl": "hccl"}


def replaced(arguments: Any) -> Any:
    """A device or backend that says cuda as the npu's.

    >>> replaced("cuda:1"), replaced("nccl"), replaced("cpu"), replaced("cpu:gloo,cuda:nccl")
    ('npu:1', 'hccl', 'cpu', 'cpu:gloo,npu:hccl')
    """
    if isinstance(arguments, str):
        return ",".join(
            ":".join(_WORDS.get(word, word) for word in part.split(":"))
            for part in arguments.split(",")
        )
    if isinstance(arguments, torch.device) and arguments.type == "cuda":
        return (
            torch.device("npu", arguments.index)
            if arguments.index is not None
            else torch.device("npu")
        )
    return arguments


def _replacing(call: Callable[..., Any], ints: bool = False) -> Callable[..., Any]:
    @functools.wraps(call)
    def replacing(*args: Any, **named: Any) -> Any:
        args = tuple(_device(one) for one in args)
        if ints and len(args) > 1 and type(args[1]) is int:
            args = (args[0], f"npu:{args[1]}", *args[2:])
        for key in ("device", "device_type", "backend", "map_location"):
            if key in named:
                named[key] = replaced(named[key])
        return call(*args, **named)

    return replacing


def _device(value: Any) -> Any:
    """Positional arguments: only what is a device for certain."""
    if isinstance(value, torch.device) or (
        isinstance(value, str) and value.partition(":")[0] in _WORDS
    ):
        return replaced(value)
    return value


def _generator_class() -> Any:
    plain: Any = torch.Generator

    class Generator(plain):
        """`torch.Generator`, for which cuda is the npu."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return plain.__new__(plain, device=replaced(device))

    return Generator
