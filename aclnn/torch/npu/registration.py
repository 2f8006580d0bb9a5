"""Registration of the device, once in a process: memory, module, methods, operators, `torch_npu`."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import torch

import aclnn.torch  # noqa: F401  # registers the forms
from aclnn.torch.npu import (
    attention,
    autocast,
    building,
    interplay,
    kernels,
    module,
    operators,
    products,
    vendor,
)
from aclnn.torch.npu.refusals import REFUSED
from aclnn.torch.npu.settings import FALLBACKS, Settings
from aclnn.torch.private import register_device_module

DEVICE: Any = None


def register(settings: Settings) -> None:
    """Register everything; what can fail comes before what cannot be undone."""
    global DEVICE
    DEVICE = building.loaded()
    DEVICE.register(settings.devices, settings.memory, FALLBACKS.index(settings.fallback))
    torch.utils.rename_privateuse1_backend("npu")
    made = module.made(DEVICE, settings)
    register_device_module("npu", made)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_storage=True,
        unsupported_dtype=[torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8],
    )
    operators.register(DEVICE)
    products.register()
    kernels.register(DEVICE)
    autocast.register()
    attention.register()
    interplay.install(made)
    vendor.install(DEVICE, settings, made)
    print(
        f"aclnn: the device npu is emulated on the CPU ({settings.soc} by name only)",
        file=sys.stderr,
    )


def counts() -> dict[str, tuple[int, int]]:
    fallbacks, short = DEVICE.fallbacks(), DEVICE.computed()
    computed = operators.COMPUTED + Counter(short)
    return {_shown(n): (computed[n], fallbacks.get(n, 0)) for n in sorted({*computed, *fallbacks})}


def _shown(name: str) -> str:
    return name.removesuffix(".default")


def reset_counts() -> None:
    operators.COMPUTED.clear()
    DEVICE.reset_computed()
    REFUSED.clear()
    DEVICE.reset_fallbacks()
