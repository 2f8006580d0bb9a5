"""Parts of PyTorch that ask for a device by name: types, DLPack, pickling between processes, Dynamo and Inductor."""

from __future__ import annotations

import functools
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

import torch

from aclnn.torch.private import LegacyStorage, module_of
from aclnn.torch.tracing import when_dynamo_comes, when_imported

EXTENSION = 12  # DLPack's kDLExtDev, which stands for the device
_NAMES = {
    "Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16, "Double": torch.float64,
    "Long": torch.int64, "Int": torch.int32, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8,
    "Bool": torch.bool, "ComplexFloat": torch.complex64, "ComplexDouble": torch.complex128,
}  # fmt: skip


def install(npu: ModuleType) -> None:
    """Make the device known to them."""
    for name, dtype in _NAMES.items():
        setattr(npu, f"{name}Tensor", _tensor_type(f"{name}Tensor", dtype))
        setattr(npu, f"{name}Storage", _storage_type(f"{name}Storage", dtype))
    torch.Tensor.__dlpack_device__ = _dlpack_device(torch.Tensor.__dlpack_device__)
    for kind in (torch.Tensor, torch.nn.Parameter):
        _let_pickle(kind)
    when_dynamo_comes(lambda: _let_dynamo_ask(npu))
    when_imported(module_of("register_backend_for_device"), _let_inductor_ask)


# --- Types -----------------------------------------------------------------------------------------


class _TensorType(type):
    """Kind of the classes ``torch.npu.FloatTensor`` and its like, which have no instances of their own."""

    dtype: torch.dtype

    def __instancecheck__(cls, one: Any) -> bool:
        return isinstance(one, torch.Tensor) and one.is_npu and one.dtype == cls.dtype

    def __call__(cls, *args: Any, **named: Any) -> Any:
        """A tensor of a shape, uninitialized, or of elements."""
        device = named.pop("device", "npu")
        if args and all(isinstance(one, int) for one in args):
            return torch.empty(args, dtype=cls.dtype, device=device)
        if args and isinstance(args[0], torch.Size):
            return torch.empty(args[0], dtype=cls.dtype, device=device)
        return torch.tensor(args[0] if args else [], dtype=cls.dtype, device=device)


def _tensor_type(name: str, dtype: torch.dtype) -> Any:
    # `Tensor.type` reads the name of a class that it is given.
    return _TensorType(f"torch.npu.{name}", (), {"dtype": dtype, "__module__": "torch.npu"})


def _storage_type(name: str, dtype: torch.dtype) -> Any:
    members = {
        "dtype": dtype,
        "_dtype": dtype,
        "__module__": "torch.npu",
    }  # by the module it finds its device
    return type(name, (LegacyStorage,), members)


# --- DLPack ----------------------------------------------------------------------------------------


def _dlpack_device(plain: Any) -> Any:
    @functools.wraps(plain)
    def device_of(self: Any) -> Any:
        if self.device.type == "npu":
            return EXTENSION, self.device.index
        return plain(self)

    return device_of


# --- Processes -------------------------------------------------------------------------------------


def rebuild_npu_tensor(kind: Any, values: Any, device: str, requires_grad: bool) -> Any:
    """The tensor of another process, from its values in shared memory."""
    made = values.to(device)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)


def _let_pickle(kind: Any) -> None:
    """Let queues and pipes take tensors of the device, as copies: others are left as they were."""
    plain = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]

    def reduced(one: Any) -> Any:
        if one.device.type != "npu":
            return plain(one) if plain is not None else one.__reduce_ex__(2)
        if one.requires_grad and not one.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                "before serializing (e.g., putting it on the queue)."
            )
        return rebuild_npu_tensor, (kind, one.detach().cpu(), str(one.device), one.requires_grad)

    ForkingPickler.register(kind, reduced)


# --- Compilers -------------------------------------------------------------------------------------


WITHOUT_BACKEND = (
    'NOT_SUPPORT: the emulated npu device has no code generator for Inductor; use torch.compile(backend="aclnn") or '
    'backend="eager"'
)


def _refuse_inductor(device: Any = None) -> Any:
    """Refuse what only code generators ask for."""
    raise NotImplementedError(WITHOUT_BACKEND)


def _let_inductor_ask() -> None:
    from aclnn.torch.private import register_backend_for_device

    register_backend_for_device("npu", _Refusing, _Refusing)


class _RefusingType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # which all classes are asked for
            raise AttributeError(name)
        raise NotImplementedError(WITHOUT_BACKEND)


class _Refusing(metaclass=_RefusingType):
    """The place of a code generator, which refuses to say anything of itself."""


def _let_dynamo_ask(npu: Any) -> None:
    from aclnn.torch.private import DeviceInterface, register_interface_for_device

    class Interface(DeviceInterface):
        """The device as Dynamo sees devices."""

        device = npu.device
        Event = npu.Event
        Stream = npu.Stream
        current_device = staticmethod(npu.current_device)
        set_device = staticmethod(npu.set_device)
        device_count = staticmethod(npu.device_count)
        is_available = staticmethod(npu.is_available)
        current_stream = staticmethod(npu.current_stream)
        set_stream = staticmethod(npu.set_stream)
        stream = staticmethod(npu.stream)
        synchronize = staticmethod(npu.synchronize)
        memory_allocated = staticmethod(npu.memory_allocated)

        class Worker:
            """The device in a compiler's process."""

            set_device = staticmethod(npu.set_device)
            current_device = staticmethod(npu.current_device)
            get_device_properties = staticmethod(_refuse_inductor)

        get_device_properties = staticmethod(_refuse_inductor)

        @staticmethod
        def exchange_device(device: int) -> int:
            before = int(npu.current_device())
            npu.set_device(device)
            return before

        @staticmethod
        def maybe_exchange_device(device: int) -> int:
            return Interface.exchange_device(device) if device >= 0 else int(npu.current_device())

        @staticmethod
        def get_compute_capability(device: Any = None) -> Any:
            return npu.get_device_name(device)

        @staticmethod
        def is_bf16_supported(including_emulation: bool = False) -> bool:
            return bool(npu.is_bf16_supported(including_emulation))

        @staticmethod
        def is_triton_capable(device: Any = None) -> bool:
            return False

        @staticmethod
        def raise_if_triton_unavailable(device: Any = None) -> None:
            raise RuntimeError(WITHOUT_BACKEND)

    register_interface_for_device("npu", Interface)
    for index in range(npu.device_count()):
        register_interface_for_device(f"npu:{index}", Interface)
