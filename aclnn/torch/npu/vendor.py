"""The module ``torch_npu``: what programs import, ask for and call there."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
from enum import IntEnum
from types import ModuleType
from typing import Any

import torch

from aclnn.torch.npu import (
    capture,
    compositions,  # noqa: F401  # which declares functions
    declarations,
    functions,  # noqa: F401
    hccl,
    interplay,
    transfer,
)
from aclnn.torch.npu.settings import Settings
from aclnn.torch.private import accelerator_setStream

VERSION = ".".join(torch.__version__.split("+")[0].split(".")[:3]) + "+aclnn.emulated"
CANN = "8.5.0"
_libraries: list[Any] = []

Format = IntEnum(
    "Format",
    {
        "UNDEFINED": -1, "NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "NC1HWC0_C04": 12,
        "HWCN": 16, "NDHWC": 27, "FRACTAL_NZ": 29, "NCDHW": 30, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33, "NC": 35,
        "NCL": 47,
    },
)  # fmt: skip

# Dtypes that PyTorch lacks: 256 and CANN's number.
DTYPES = {"hifloat8": 290, "float8_e8m0fnu": 293, "float4_e2m1fn_x2": 296, "int4": 285}


class _Vendor(ModuleType):
    """The package; a name that it lacks is an AttributeError that says so."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"module 'torch_npu' has no attribute {name!r}: the emulated npu device has no such name"
        )


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are made here, and the distribution of the package."""

    def __init__(self, modules: dict[str, ModuleType]):
        self.modules = modules
        self.when_imported: dict[str, Any] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.modules:
            return None
        loader = _Loader(self.modules[name], self.when_imported.get(name))
        return importlib.machinery.ModuleSpec(name, loader, is_package=True)

    def find_distributions(self, context: Any = None) -> Any:
        if context is None or context.name is None or context.name.replace("-", "_") == "torch_npu":
            yield _Distribution()


class _Loader(importlib.abc.Loader):
    def __init__(self, module: ModuleType, then: Any = None):
        self.module, self.then = module, then

    def create_module(self, spec: Any) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Do what importing the module does; it was made when the device was enabled."""
        if self.then is not None:
            self.then()


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {VERSION}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return path


def install(native: Any, settings: Settings, npu: ModuleType) -> None:
    """Make ``torch_npu`` and what is below it importable."""
    top = _Vendor("torch_npu", "The emulated torch_npu of aclnn-cpu.")
    modules: dict[str, ModuleType] = {"torch_npu": top, "torch_npu.npu": npu}
    top.__path__ = []
    formats = _formats(native)
    contents: dict[str, Any] = {
        "__version__": VERSION, "is_emulated": True, "npu": npu, "Format": Format, **DTYPES, **formats,
    }  # fmt: skip
    for name, value in contents.items():
        setattr(top, name, value)
    for name, value in list(vars(npu).items()):
        if isinstance(value, ModuleType):
            modules[f"torch_npu.npu.{name}"] = value
    for name, values in _parts(npu).items():
        _add(modules, f"torch_npu.{name}", values)
    for name, module in modules.items():
        module.__spec__ = importlib.machinery.ModuleSpec(name, _Loader(module), is_package=True)
        module.__path__ = []
    lazy = ModuleType("torch_npu.contrib.transfer_to_npu")
    finder = _Finder(modules | {lazy.__name__: lazy})
    finder.when_imported[lazy.__name__] = lambda: transfer.apply(npu)
    sys.meta_path.append(finder)
    sys.modules.update(modules)
    for name, module in modules.items():  # as `import torch.npu.amp` finds it
        if name.startswith("torch_npu.npu"):
            sys.modules["torch." + name.removeprefix("torch_npu.")] = module
    torch.version.cann = CANN
    declarations.register(top)
    _define_formats(formats)
    hccl.register(native)
    if os.environ.get("TORCH_TRANSFER_TO_NPU") == "1":
        transfer.apply(npu)


def _add(modules: dict[str, ModuleType], name: str, values: dict[str, Any]) -> None:
    module = ModuleType(name)
    vars(module).update(values)
    modules[name] = module
    parent, _, last = name.rpartition(".")
    setattr(modules[parent], last, module)


def _parts(npu: ModuleType) -> dict[str, dict[str, Any]]:
    """Modules below the package, parents first."""

    class Options:
        """Options of a process group."""

        def __init__(self) -> None:
            self.hccl_config: dict[str, Any] = {}
            self.global_ranks_in_group: list[int] = []
            self.is_high_priority_stream = False

    group = type("ProcessGroupHCCL", (), {"Options": Options})
    return {
        "_C": {
            "_weak_ref_tensor": lambda tensor: tensor,
            "_npu_setStream": lambda **named: accelerator_setStream(torch.Stream(**named)),
            "_npu_getOption": lambda key: (npu._option(key) or "").encode() or None,
            "_NPUTaskGroupHandle": capture.TaskGroup,
        },
        "_C._distributed_c10d": {"ProcessGroupHCCL": group},
        "_inductor": {},
        "profiler": _profiler(),
        "profiler.profiler": _profiler(),
        "optim": _optimizers(),
        "utils": {},
        "utils.collect_env": {"get_cann_version": lambda: CANN},
        "multiprocessing": {},
        "multiprocessing.reductions": {"rebuild_npu_tensor": interplay.rebuild_npu_tensor},
        "contrib": {},
        "distributed": {},
    }


def _profiler() -> dict[str, Any]:
    import torch.profiler as plain

    class ProfilerActivity:
        CPU = plain.ProfilerActivity.CPU
        NPU = plain.ProfilerActivity.CPU  # it computes there

    class ProfilerLevel:
        Level_none, Level0, Level1, Level2 = "Level_none", "Level0", "Level1", "Level2"

    class AiCMetrics:
        AiCoreNone, PipeUtilization, ArithmeticUtilization = (
            "ACL_AICORE_NONE",
            "PipeUtilization",
            "Arithmetic",
        )
        Memory, MemoryL0, MemoryUB, L2Cache = "Memory", "MemoryL0", "MemoryUB", "L2Cache"
        ResourceConflictRatio, MemoryAccess = "ResourceConflictRatio", "MemoryAccess"

    class ExportType:
        Text, Db = "text", "db"

    class _ExperimentalConfig:
        def __init__(self, **options: Any):
            vars(self).update(options)

    class profile(plain.profile):  # noqa: N801  # its name in programs
        """``torch.profiler.profile``, which takes the NPU's configuration besides."""

        def __init__(self, *args: Any, experimental_config: Any = None, **named: Any):
            if named.get("activities"):
                named["activities"] = list(dict.fromkeys(named["activities"]))
            super().__init__(*args, **named)

    def handler(
        dir_name: Any = None,
        worker_name: Any = None,
        analyse_flag: bool = True,
        async_mode: bool = False,
    ) -> Any:
        return plain.tensorboard_trace_handler(dir_name or "./", worker_name)

    return {
        "profile": profile, "schedule": plain.schedule, "tensorboard_trace_handler": handler,
        "ProfilerActivity": ProfilerActivity, "ProfilerAction": plain.ProfilerAction,
        "_ExperimentalConfig": _ExperimentalConfig, "ProfilerLevel": ProfilerLevel, "AiCMetrics": AiCMetrics,
        "ExportType": ExportType, "supported_activities": lambda: {plain.ProfilerActivity.CPU},
    }  # fmt: skip


def _optimizers() -> dict[str, Any]:
    kinds = {"NpuFusedAdamW": torch.optim.AdamW, "NpuFusedAdam": torch.optim.Adam, "NpuFusedSGD": torch.optim.SGD,
             "NpuFusedAdadelta": torch.optim.Adadelta, "NpuFusedRMSprop": torch.optim.RMSprop}  # fmt: skip
    return {
        name: type(name, (kind,), {"__doc__": f"`torch.optim.{kind.__name__}`."})
        for name, kind in kinds.items()
    }


def _define_formats(formats: dict[str, Any]) -> None:
    """``torch.ops.npu`` has what concerns formats, too: it computes nothing, and gradients go through it."""
    library = torch.library.Library("npu", "FRAGMENT")
    _libraries.append(library)
    cast, cast_ = formats["npu_format_cast"], formats["npu_format_cast_"]
    dtypes = "int? customize_dtype=None, int? input_dtype=None"
    for schema, call in (
        (f"npu_format_cast(Tensor(a) self, int acl_format, *, {dtypes}) -> Tensor(a)", cast),
        ("npu_format_cast.Tensor(Tensor(a) self, Tensor dst) -> Tensor(a)", cast),
        ("npu_format_cast_(Tensor(a!) self, Tensor src) -> Tensor(a!)", cast_),
        ("npu_format_cast_.acl_format(Tensor(a!) self, int acl_format) -> Tensor(a!)", cast_),
        ("get_npu_format(Tensor self) -> int", lambda one: int(formats["get_npu_format"](one))),
    ):
        library.define(schema)
        library.impl(schema.partition("(")[0], call, "CompositeImplicitAutograd")


def _formats(native: Any) -> dict[str, Any]:
    """Formats: a tag of a storage, which results do not have; values and strides stay."""
    tags: dict[int, tuple[Any, int]] = {}

    def key(tensor: Any) -> int:
        return int(tensor.untyped_storage()._cdata)

    def get(tensor: Any) -> Any:
        _check(tensor)
        known = tags.get(key(tensor))
        if known is not None and known[0]() is not None:
            return Format(known[1])
        return Format({4: 0, 5: 30}.get(tensor.dim(), 2))

    def note(tensor: Any, number: int) -> None:
        import weakref

        storage = tensor.untyped_storage()
        tags[key(tensor)] = (weakref.ref(tensor), number) if storage else (lambda: None, number)

    def cast_(tensor: Any, acl_format: Any, **dtypes: Any) -> Any:
        _check(tensor)
        number = int(get(acl_format) if isinstance(acl_format, torch.Tensor) else acl_format)
        if number == Format.FRACTAL_NZ and tensor.dim() < 2:
            import warnings

            warnings.warn(
                "FRACTAL_NZ needs at least two dimensions: the format stays ND", stacklevel=3
            )
            number = int(Format.ND)
        note(tensor, number)
        return tensor

    def cast(
        tensor: Any, acl_format: Any, customize_dtype: Any = None, input_dtype: Any = None
    ) -> Any:
        _check(tensor)
        return cast_(
            tensor.view_as(tensor) if tensor.requires_grad else tensor.detach(), acl_format
        )

    def _check(tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "npu":
            raise RuntimeError(
                f"Expected all tensors to be on the npu device, but got {getattr(tensor, 'device', tensor)}"
            )

    def empty(size: Any, *, dtype: Any = None, layout: Any = None, device: Any = "npu", pin_memory: bool = False,
              acl_format: int = 2) -> Any:  # fmt: skip
        made = torch.empty(size, dtype=dtype, device=device)
        note(made, int(acl_format))
        return made

    def copy_memory_(self: Any, src: Any, non_blocking: bool = False) -> Any:
        if self.dtype != src.dtype:
            raise RuntimeError(
                f"input tensors must have same dtype, but got {self.dtype} and {src.dtype}"
            )
        return self.copy_(src, non_blocking)

    return {
        "get_npu_format": get, "npu_format_cast": cast, "npu_format_cast_": cast_, "empty_with_format": empty,
        "copy_memory_": copy_memory_, "get_storage_size": lambda tensor: tensor.untyped_storage().nbytes() // tensor.element_size(),
    }  # fmt: skip
