"""A device ``npu`` for PyTorch that computes on the CPU, for programs that are written for Ascend NPUs.

Nothing is registered before `enable` is called: by a program, by ``ACLNN_NPU=1`` in the environment, or by
``aclnn npu SCRIPT``. Then ``torch.npu``, ``torch_npu`` and ``torch.ops.npu`` exist. Operators that a function of
the operator library stands for are computed by this package, with its rules; all others fall back to PyTorch's
kernels for the CPU, and are counted.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from typing import Any

import torch

from aclnn.torch.npu.settings import Settings, check_variables, from_environment, settings_of

__all__ = ["counts", "enable", "is_enabled", "report", "reset_counts"]

_OLDEST = (2, 10)
_enabled: Settings | None = None
_lock = threading.Lock()


def enable(
    soc: str = "Ascend910B3",
    devices: int = 1,
    memory: int | str = "64GiB",
    fallback: str = "count",
) -> None:
    """Register the device, before any tensor of it is made; it stays for the process.

    Parameters
    ----------
    soc : str
        What the device says that it is.
    devices : int
        How many there are.
    memory : int or str
        Bytes that each has; a request beyond raises ``torch.OutOfMemoryError``.
    fallback : {'count', 'warn', 'forbid'}
        What happens besides counting where PyTorch's kernel for the CPU computes an operator: nothing, the
        vendor's warning once for each, or an error.

    Raises
    ------
    RuntimeError
        Where a real ``torch_npu`` is installed, another backend is registered, or PyTorch is too old; where
        the device was enabled with other settings.
    """
    global _enabled
    if os.environ.get("TORCH_NPU_FALLBACK_CPU_DISABLE") == "1":
        fallback = "forbid"
    check_variables()
    chosen = settings_of(soc, devices, memory, fallback)
    with _lock:
        if _enabled is not None:
            if chosen != _enabled:
                raise RuntimeError(
                    f"the npu device is enabled with {_enabled}, and cannot become {chosen}"
                )
            return
        _refuse_others()
        from aclnn.torch.npu import registration

        registration.register(chosen)
        _enabled = chosen


def enable_from_environment() -> None:
    """Enable the device with what ``ACLNN_NPU_SOC``, ``_DEVICES``, ``_MEMORY`` and ``_FALLBACK`` say."""
    enable(**from_environment())


def is_enabled() -> bool:
    """Whether the device is registered in this process."""
    return _enabled is not None


def counts() -> dict[str, tuple[int, int]]:
    """Calls by operator: those that this package computed, those that fell back to PyTorch's CPU kernels."""
    if _enabled is None:
        return {}
    from aclnn.torch.npu import registration

    return registration.counts()


def reset_counts() -> None:
    """Count from zero."""
    if _enabled is not None:
        from aclnn.torch.npu import registration

        registration.reset_counts()


def report() -> Any:
    """A report of what ran where, which prints as a table and has `to_json`."""
    from aclnn.torch.npu.reporting import Report

    return Report.now(_enabled)


def _refuse_others() -> None:
    version = tuple(int(word) for word in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST:
        raise RuntimeError(
            f"the npu device needs PyTorch 2.10 or newer, this is {torch.__version__}"
        )
    if "torch_npu" in sys.modules or importlib.util.find_spec("torch_npu") is not None:
        raise RuntimeError(
            "a real torch_npu is installed: the emulated npu device leaves it alone; uninstall it first"
        )
    from aclnn.torch.private import get_privateuse1_backend_name

    name = get_privateuse1_backend_name()
    if name != "privateuseone":
        raise RuntimeError(
            f"another PrivateUse1 backend, {name!r}, is registered in this process, and there can be one only"
        )
