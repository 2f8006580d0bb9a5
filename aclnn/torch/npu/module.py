"""The module ``torch.npu``, which is ``torch_npu.npu``: devices, streams, events, memory, random numbers, options."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from aclnn.torch.npu import capture
from aclnn.torch.npu import settings as _settings
from aclnn.torch.npu.refusals import checked
from aclnn.torch.npu.settings import Settings
from aclnn.torch.private import (
    DeviceType,
    accelerator_getStream,
    accelerator_setStream,
    get_default_generator,
)

_CUBE_CORES, _VECTOR_CORES, _L2_BYTES = 20, 40, 192 << 20


def made(native: Any, chosen: Settings) -> ModuleType:
    """The module for a device with these settings."""
    module = ModuleType("torch_npu.npu", "The emulated device npu.")
    module.__path__ = []  # it has submodules
    parts: dict[str, Any] = {}
    state = _State(native, chosen)
    for part in (_devices, _streams, _memory, _random, _properties, _options):
        parts |= part(state)
    parts |= capture.parts(native, chosen.devices, parts)
    for name, value in parts.items():
        setattr(module, name, value)
    for name in (
        "amp",
        "config",
        "matmul",
        "conv",
        "mstx",
        "utils",
        "random",
        "memory",
        "streams",
        "graphs",
    ):
        setattr(module, name, _submodule(name, parts, state))
    return module


class _State:
    """State that the functions share: settings, what waits for the initialisation, options."""

    def __init__(self, native: Any, chosen: Settings):
        self.native, self.settings = native, chosen
        self.count = chosen.devices
        self.initialized = self.forked = False
        self.waiting: list[Callable[[], None]] = []
        self.lock = threading.RLock()
        self.options: dict[str, Any] = {}
        self.generators = tuple(torch.Generator(f"npu:{k}") for k in range(0))
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.forked = self.initialized

    def initialize(self) -> None:
        """Do what waits for the first use of the device."""
        if self.forked:
            raise RuntimeError(
                "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use "
                "the 'spawn' start method"
            )
        if self.initialized:
            return
        with self.lock:
            self.initialized = True
            waiting, self.waiting = self.waiting, []
            for call in waiting:
                call()

    def index_of(self, device: Any = None, optional: bool = True) -> int:
        """The index that an argument `device` stands for."""
        if device is None and optional:
            return int(self.native.current_device())
        if isinstance(device, bool):
            raise ValueError(f"Expected a npu device, but got: {device!r}")
        if isinstance(device, int):
            index = device
        else:
            found = torch.device(device)
            if found.type != "npu":
                raise ValueError(f"Expected a npu device, but got: {device}")
            index = int(self.native.current_device()) if found.index is None else found.index
        if not 0 <= index < self.count:
            raise AssertionError("Invalid device id")
        return index


def _devices(state: _State) -> dict[str, Any]:
    native = state.native

    def current_device() -> int:
        state.initialize()
        return int(native.current_device())

    def set_device(device: Any) -> None:
        if isinstance(device, int) and device < 0:
            return
        state.initialize()
        native.set_device(state.index_of(device))

    class Device:
        """Context in which another device is the current one."""

        def __init__(self, device: Any):
            self.idx = -1 if isinstance(device, int) and device < 0 else state.index_of(device)
            self.prev_idx = -1

        def __enter__(self) -> None:
            if self.idx >= 0:
                self.prev_idx = int(native.current_device())
                native.set_device(self.idx)

        def __exit__(self, *details: object) -> None:
            if self.prev_idx >= 0:
                native.set_device(self.prev_idx)

    class DeviceOf(Device):
        """Context in which the device of a tensor or storage is the current one."""

        def __init__(self, obj: Any):
            super().__init__(obj.get_device() if getattr(obj, "is_npu", False) else -1)

    def lazy_call(call: Callable[[], None], **options: Any) -> None:
        if state.initialized:
            call()
        else:
            state.waiting.append(call)

    def synchronize(device: Any = None) -> None:
        state.initialize()
        if capture.is_capturing():
            raise checked(
                f"synchronize waits for a stream that is captured and runs nothing: error code is {capture.CAPTURED}"
            )
        state.index_of(device)

    return {
        "is_available": lambda: state.count > 0,
        "device_count": lambda: state.count,
        "current_device": current_device,
        "set_device": set_device,
        "device": Device,
        "device_of": DeviceOf,
        "synchronize": synchronize,
        "init": state.initialize,
        "_lazy_init": state.initialize,
        "_lazy_call": lazy_call,
        "is_initialized": lambda: state.initialized and not state.forked,
        "_is_in_bad_fork": lambda: state.forked,
        "_get_device_index": lambda device, optional=False: state.index_of(device, optional),
        "_initialized": True,
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16, torch.float32],
        "is_autocast_enabled": lambda: torch.is_autocast_enabled("npu"),
        "set_autocast_enabled": lambda on: torch.set_autocast_enabled("npu", on),
        "get_autocast_dtype": lambda: torch.get_autocast_dtype("npu"),
        "set_autocast_dtype": lambda dtype: torch.set_autocast_dtype("npu", dtype),
        "can_device_access_peer": lambda a, b: state.index_of(a) != state.index_of(b),
        "current_blas_handle": lambda: 0,
        "set_sync_debug_mode": lambda mode: state.options.update(sync_debug=mode),
        "get_sync_debug_mode": lambda: state.options.get("sync_debug", 0),
        "utilization": lambda device=None: 0,
        "stop_device": lambda device_id: None,
        "restart_device": lambda device_id, rebuild_all_resources=False: None,
    }


def _streams(state: _State) -> dict[str, Any]:
    class Stream(torch.Stream):
        """A stream: work on it is done when it is given, so streams are in order by themselves."""

        def __new__(cls, device: Any = None, priority: int = 0, **named: Any) -> Any:
            state.initialize()
            if named:
                return super().__new__(cls, **named)
            return super().__new__(
                cls, device=torch.device("npu", state.index_of(device)), priority=priority
            )

        @property
        def npu_stream(self) -> int:
            return int(self.stream_id)

        @property
        def _as_parameter_(self) -> Any:
            import ctypes

            return ctypes.c_void_p(self.npu_stream)

        def record_event(self, event: Any = None) -> Any:
            event = Event() if event is None else event
            event.record(self)
            return event

        def wait_event(self, event: Any) -> None:
            """Nothing: what was recorded is done, and what will be is no event to wait for."""

        def set_data_preprocess_stream(self, is_data_preprocess_stream: bool = False) -> None:
            """Nothing: streams have no kinds here."""

        def __repr__(self) -> str:
            return f"<torch_npu.npu.Stream device={self.device} npu_stream={self.npu_stream:#x}>"

    def stream_of(found: Any) -> Any:
        return Stream(
            stream_id=found.stream_id,
            device_index=found.device_index,
            device_type=found.device_type,
        )

    def current_stream(device: Any = None) -> Any:
        state.initialize()
        return stream_of(accelerator_getStream(state.index_of(device)))

    def default_stream(device: Any = None) -> Any:
        state.initialize()
        kind = 20 if DeviceType is None else DeviceType.PrivateUse1.value
        return Stream(stream_id=0, device_index=state.index_of(device), device_type=int(kind))

    def set_stream(stream: Any) -> None:
        if stream is not None:
            accelerator_setStream(stream)

    class StreamContext:
        """Context in which a stream is the current one."""

        def __init__(self, stream: Any):
            self.stream = stream
            self.before: list[Any] = []

        def __enter__(self) -> None:
            if self.stream is not None:
                self.before.append((state.native.current_device(), current_stream()))
                set_stream(self.stream)

        def __exit__(self, *details: object) -> None:
            if self.stream is not None:
                index, stream = self.before.pop()
                set_stream(stream)
                state.native.set_device(index)

    class Event(torch.Event):
        """A point in a stream's work, with the time at which it was reached."""

        time: float | None

        def __new__(
            cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
        ) -> Any:
            made = super().__new__(
                cls,
                device="npu",
                enable_timing=enable_timing,
                blocking=blocking,
                interprocess=interprocess,
            )
            made.time = None
            return made

        def record(self, stream: Any = None) -> None:
            super().record(current_stream() if stream is None else stream)
            self.time = time.perf_counter()

        def wait(self, stream: Any = None) -> None:
            """Nothing: what was recorded is done."""

        def query(self) -> bool:
            return True

        def synchronize(self) -> None:
            """Nothing: what was recorded is done."""

        def elapsed_time(self, end_event: Any) -> float:
            if self.time is None or end_event.time is None:
                raise RuntimeError("Both events must be recorded before calculating elapsed time.")
            return float(end_event.time - self.time) * 1e3

        def recorded_time(self) -> int:
            if self.time is None:
                raise RuntimeError("Event must be recorded before getting recorded timestamp.")
            return int(self.time * 1e6)

        @property
        def npu_event(self) -> int:
            return id(self) if self.time is not None else 0

        _as_parameter_ = npu_event

        def __repr__(self) -> str:
            return (
                f"<torch_npu.npu.Event {'recorded' if self.time is not None else 'uninitialized'}>"
            )

    class ExternalEvent(Event):
        """An event that may be waited for before it is recorded."""

        def reset(self, stream: Any = None) -> None:
            self.time = None

    def external(stream_ptr: int, device: Any = None) -> Any:
        kind = int(torch.device("npu").type == "npu") and torch.Stream(device="npu").device_type
        return Stream(
            stream_id=int(stream_ptr), device_index=state.index_of(device), device_type=kind
        )

    return {
        "Stream": Stream, "SyncLaunchStream": Stream, "ExternalStream": external, "Event": Event,
        "ExternalEvent": ExternalEvent, "StreamContext": StreamContext, "stream": StreamContext,
        "current_stream": current_stream, "default_stream": default_stream, "set_stream": set_stream,
    }  # fmt: skip


def _memory(state: _State) -> dict[str, Any]:
    def stats(device: Any = None) -> Any:
        now, most, made, freed, blocks, most_blocks, blocks_made, blocks_freed, ooms = (
            state.native.stats(state.index_of(device))
        )
        found: OrderedDict[str, int] = OrderedDict()
        groups = {"allocation": (blocks, most_blocks, blocks_made, blocks_freed)}
        groups["segment"] = groups["active"] = groups["allocation"]
        groups["allocated_bytes"] = groups["reserved_bytes"] = groups["active_bytes"] = (
            now,
            most,
            made,
            freed,
        )
        groups["inactive_split"] = groups["inactive_split_bytes"] = (0, 0, 0, 0)
        for name in sorted(groups):
            for pool in ("all", "large_pool", "small_pool"):
                values = groups[name] if pool != "small_pool" else (0, 0, 0, 0)
                for what, value in zip(
                    ("current", "peak", "allocated", "freed"), values, strict=True
                ):
                    found[f"{name}.{pool}.{what}"] = value
        found["num_alloc_retries"], found["num_ooms"] = 0, ooms
        return found

    def of(key: str) -> Callable[..., int]:
        return lambda device=None: stats(device)[key]

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        state.initialize()
        used = state.native.stats(state.index_of(device))[0]
        return state.settings.memory - used, state.settings.memory

    def summary(device: Any = None, abbreviated: bool = False) -> str:
        lines = [f"{key:40} {value}" for key, value in stats(device).items() if ".all." in key]
        return "\n".join(lines)

    def refuse(name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            raise NotImplementedError(
                f"NOT_SUPPORT: the emulated npu device has no torch.npu.{name}"
            )

        return call

    def fraction(part: float, device: Any = None) -> None:
        if not 0 <= part <= 1:
            raise ValueError(f"Invalid fraction value: {part}. Allowed range: 0-1")
        state.native.set_limit(int(state.settings.memory * part))

    return {
        "memory_stats": stats,
        "memory_allocated": of("allocated_bytes.all.current"),
        "max_memory_allocated": of("allocated_bytes.all.peak"),
        "memory_reserved": of("reserved_bytes.all.current"),
        "max_memory_reserved": of("reserved_bytes.all.peak"),
        "memory_cached": of("reserved_bytes.all.current"),
        "max_memory_cached": of("reserved_bytes.all.peak"),
        "memory_summary": summary,
        "memory_snapshot": list,
        "mem_get_info": mem_get_info,
        "empty_cache": lambda: None,
        "host_empty_cache": lambda: None,
        "ipc_collect": state.initialize,
        "reset_peak_memory_stats": lambda device=None: state.native.reset_stats(state.index_of(device), True),
        "reset_max_memory_allocated": lambda device=None: state.native.reset_stats(state.index_of(device), True),
        "reset_max_memory_cached": lambda device=None: state.native.reset_stats(state.index_of(device), True),
        "reset_accumulated_memory_stats": lambda device=None: state.native.reset_stats(
            state.index_of(device), False
        ),
        "set_per_process_memory_fraction": fraction,
        "OutOfMemoryError": torch.OutOfMemoryError,
        **{name: refuse(name) for name in ("NPUPluggableAllocator", "MemPool", "use_mem_pool", "change_current_allocator")},
    }  # fmt: skip


class _Generators:
    """The devices' default generators, as a tuple that is filled when it is first read."""

    def __init__(self, count: int):
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        if not -self._count <= index < self._count:
            raise IndexError("tuple index out of range")
        device = torch.device("npu", index % self._count)
        return (
            torch.Generator(device)
            if get_default_generator is None
            else get_default_generator(device)
        )


def _random(state: _State) -> dict[str, Any]:
    def generator(device: Any = "npu") -> Any:
        return state.native.default_generator(state.index_of(device))

    def get_rng_state(device: Any = "npu") -> Any:
        state.initialize()
        return generator(device).get_state()

    def set_rng_state(new_state: Any, device: Any = "npu") -> None:
        index = state.index_of(device)
        generator(index).set_state(new_state.cpu())

    def manual_seed(seed: int) -> None:
        generator(None).manual_seed(int(seed))

    def manual_seed_all(seed: int) -> None:
        for index in range(state.count):
            generator(index).manual_seed(int(seed))

    def seed() -> None:
        generator(None).seed()

    def seed_all() -> None:
        first = generator(0).seed()
        manual_seed_all(first)

    def set_all(states: Any) -> None:
        for index, one in enumerate(states):
            set_rng_state(one, index)

    return {
        "get_rng_state": get_rng_state,
        "set_rng_state": set_rng_state,
        "get_rng_state_all": lambda: [get_rng_state(index) for index in range(state.count)],
        "set_rng_state_all": set_all,
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed_all,
        "seed": seed,
        "seed_all": seed_all,
        "initial_seed": lambda: generator(None).initial_seed(),
        "default_generators": tuple(state.native.default_generator(k) for k in range(state.count)),
    }


def _properties(state: _State) -> dict[str, Any]:
    def name(device: Any = None) -> str:
        state.initialize()
        state.index_of(device)
        return state.settings.soc

    def properties(device: Any = None) -> Any:
        state.initialize()
        index = state.index_of(device)
        return SimpleNamespace(
            name=state.settings.soc, total_memory=state.settings.memory, cube_core_num=_CUBE_CORES,
            vector_core_num=_VECTOR_CORES, L2_cache_size=_L2_BYTES, major=0, minor=0,
            multi_processor_count=_CUBE_CORES, warp_size=0, is_integrated=0, uuid=f"emulated-npu-{index}",
        )  # fmt: skip

    def capability(device: Any = None) -> None:
        warnings.warn("torch.npu.get_device_capability isn't implemented!", stacklevel=2)

    def bfloat16(including_emulation: bool = False) -> bool:
        state.initialize()
        return not state.settings.soc.startswith(("Ascend910A", "Ascend310", "Ascend910Pro"))

    def overflow_flag() -> Any:
        raise RuntimeError(
            "npu_get_float_status is not supported in INF_NAN mode: is_support_inf_nan() is True"
        )

    def check_overflow(grad: Any) -> bool:
        if isinstance(grad, float):
            return grad in (float("inf"), float("-inf")) or grad != grad
        return not bool(torch.isfinite(grad.float().sum()))

    return {
        "get_device_name": name,
        "get_device_properties": properties,
        "get_device_capability": capability,
        "is_bf16_supported": bfloat16,
        "get_soc_version": lambda: _settings.VERSIONS.get(state.settings.soc, 220),
        "get_npu_overflow_flag": overflow_flag,
        "clear_npu_overflow_flag": lambda: warnings.warn(
            "INF_NAN mode: there is no overflow flag to clear", stacklevel=2
        ),
        "npu_check_overflow": check_overflow,
        "is_support_inf_nan": lambda: True,
    }


_CHOICES: dict[str, tuple[str, ...]] = {
    "ACL_PRECISION_MODE": ("allow_fp32_to_fp16", "must_keep_origin_dtype"),
    "ACL_OP_SELECT_IMPL_MODE": ("high_performance", "high_precision"),
    "ACL_OP_COMPILER_CACHE_MODE": ("disable", "enable", "force"),
    "ACL_AICORE_NUM": tuple(map(str, range(1, 33))),
    "ACL_OP_DEBUG_LEVEL": tuple(map(str, range(5))),
}


def _options(state: _State) -> dict[str, Any]:
    def set_option(option: Any) -> None:
        if not isinstance(option, dict):
            raise TypeError("npu option must be a dict.")
        for key, value in option.items():
            if key in _CHOICES and str(value) not in _CHOICES[key]:
                raise ValueError(
                    f"value of {key} should be in {list(_CHOICES[key])}, but got {value}"
                )
            state.options[str(key)] = str(value)

    def set_compile_mode(jit_compile: bool = False) -> None:
        state.options["jitCompile"] = "enable" if jit_compile else "disable"

    def deterministic(level: int) -> None:
        if level not in (0, 1, 2):
            raise ValueError(f"deterministic level is {level}, must be 0, 1 or 2")
        state.options["deterministic"] = level

    return {
        "set_option": set_option,
        "set_compile_mode": set_compile_mode,
        "is_jit_compile_false": lambda: state.options.get("jitCompile") != "enable",
        "set_deterministic_level": deterministic,
        "get_deterministic_level": lambda: state.options.get("deterministic", 0),
        "_option": lambda key: state.options.get(key),
    }


def _submodule(name: str, parts: dict[str, Any], state: _State) -> ModuleType:
    """A module below ``torch.npu``."""
    if name in ("config", "matmul", "conv"):
        flags = {
            "config": {"allow_internal_format": True},
            "matmul": {"allow_hf32": False},
            "conv": {"allow_hf32": True},
        }
        switches = _Switches(f"torch_npu.npu.{name}", flags[name])
        if name == "matmul":
            switches.CubeMathType, switches.cube_math_type = CubeMathType, CubeMathType.KEEP_DTYPE
        return switches
    module = ModuleType(f"torch_npu.npu.{name}")
    if name == "amp":
        vars(module).update(_amp())
    elif name == "mstx":
        vars(module).update(_mstx())
    elif name == "utils":
        keys = ("is_support_inf_nan", "npu_check_overflow", "synchronize", "device", "set_device", "current_device",
                "_get_device_index", "stream", "current_stream", "default_stream", "device_of", "is_bf16_supported",
                "get_soc_version")  # fmt: skip
        vars(module).update({key: parts[key] for key in keys})
        vars(module).update(
            get_cann_version=lambda module="CANN": "8.5.0", _is_gte_cann_version=_is_gte_cann
        )
    else:
        vars(module).update(parts)
    return module


def _is_gte_cann(version: str, module: str = "CANN") -> bool:
    return tuple(int(one) for one in version.split(".")[:2] if one.isdigit()) <= (8, 5)


CubeMathType = IntEnum(
    "CubeMathType", "KEEP_DTYPE ALLOW_FP32_DOWN_PRECISION USE_FP16 USE_HF32 USE_FP32_ADD", start=0
)


class _Switches(ModuleType):
    """A module of settings, which take bools only."""

    def __init__(self, name: str, flags: dict[str, bool]):
        super().__init__(name)
        for key, value in flags.items():
            super().__setattr__(key, value)
        super().__setattr__("_flags", tuple(flags))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_flags", ()) and not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, must be a bool")
        if name == "cube_math_type":
            value = CubeMathType(value)
        super().__setattr__(name, value)


def _amp() -> dict[str, Any]:
    class autocast(torch.amp.autocast_mode.autocast):  # noqa: N801  # its name in programs
        """``torch.autocast("npu")``."""

        def __init__(
            self, enabled: bool = True, dtype: Any = torch.float16, cache_enabled: bool = True
        ):
            super().__init__("npu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    class GradScaler(torch.amp.GradScaler):
        """``torch.amp.GradScaler("npu")``."""

        def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                     growth_interval: int = 2000, enabled: bool = True, **others: Any):  # fmt: skip
            super().__init__(
                "npu", init_scale, growth_factor, backoff_factor, growth_interval, enabled
            )

    return {
        "autocast": autocast,
        "GradScaler": GradScaler,
        "custom_fwd": lambda fwd=None, **named: torch.amp.custom_fwd(
            fwd, device_type="npu", **named
        ),
        "custom_bwd": lambda bwd=None: torch.amp.custom_bwd(bwd, device_type="npu"),
    }


def _mstx() -> dict[str, Any]:
    numbers = iter(range(1, 1 << 62))

    class MstxRange(contextlib.ContextDecorator):
        """A named range, as a context or a decorator; nothing records it here."""

        def __init__(self, message: str, stream: Any = None, domain: str = "default"):
            self.message = message

        def __enter__(self) -> MstxRange:
            return self

        def __exit__(self, *details: object) -> None:
            return None

    return {
        "mark": lambda message="", stream=None, domain="default": None,
        "range_start": lambda message, stream=None, domain="default": next(numbers),
        "range_end": lambda range_id, domain="default": None,
        "range_push": lambda message, stream=None, domain="default": None,
        "range_pop": lambda domain="default": None,
        "mstx_range": MstxRange,
    }


@contextlib.contextmanager
def nothing(*args: Any, **named: Any) -> Iterator[None]:
    """A context that does nothing."""
    yield
