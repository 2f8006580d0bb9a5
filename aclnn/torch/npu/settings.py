"""Settings of the device: what it is called, how many there are, how much memory each has."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from aclnn.acl import socs
from aclnn.acl.arguments import shown
from aclnn.acl.errors import AclnnError
from aclnn.environment import (
    FALLBACKS,
    MOST_COUNTED,
    NPU_DEVICES,
    NPU_FALLBACK,
    NPU_MEMORY,
    NPU_SOC,
    size_in_bytes,
)

MOST_DEVICES = 16
# What torch_npu numbers SoCs by.
VERSIONS = {
    "Ascend910B1": 220, "Ascend910B2": 221, "Ascend910B2C": 222, "Ascend910B3": 223, "Ascend910B4": 224,
    "Ascend910_9391": 250, "Ascend910_9392": 251, "Ascend910_9381": 252, "Ascend910_9382": 253,
    "Ascend910_9372": 254, "Ascend910_9362": 255, "Ascend950": 260,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that the device was enabled with."""

    soc: str = "Ascend910B3"
    devices: int = 1
    memory: int = 64 << 30
    fallback: str = "count"


def settings_of(soc: str, devices: int, memory: int | str, fallback: str) -> Settings:
    """Checked settings; errors name the argument, the value and the rule."""
    if not isinstance(soc, str) or not re.fullmatch(r"Ascend[0-9A-Za-z_]+", soc):
        raise ValueError(f"soc is {shown(soc)}, must be a name such as 'Ascend910B3'")
    try:
        socs.family(soc)
    except AclnnError:
        raise ValueError(f"soc is {shown(soc)}, {socs.RULE}") from None
    if (
        isinstance(devices, bool)
        or not isinstance(devices, int)
        or not 0 <= devices <= MOST_DEVICES
    ):
        raise ValueError(
            f"devices is {shown(devices)}, must be an integer from 0 to {MOST_DEVICES}"
        )
    if fallback not in FALLBACKS:
        raise ValueError(
            f"fallback is {shown(fallback)}, must be one of {', '.join(map(repr, FALLBACKS))}"
        )
    return Settings(soc, _visible(devices), bytes_of(memory), fallback)


def bytes_of(memory: Any) -> int:
    """A number of bytes, or words for it such as ``"64GiB"``.

    >>> bytes_of("64GiB") == 64 << 30, bytes_of(100)
    (True, 100)
    """
    count = memory
    if isinstance(memory, str):
        try:
            count = size_in_bytes(memory)
        except ValueError as rule:
            raise ValueError(f"memory is {shown(memory)}, {rule}") from None
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MOST_COUNTED:
        raise ValueError(
            f"memory is {shown(memory)}, must be a number of bytes above 0, or such as '64GiB'"
        )
    return count


def _visible(devices: int) -> int:
    """Devices that ASCEND_RT_VISIBLE_DEVICES leaves: an ascending list; what follows a bad number is ignored."""
    named = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if named is None:
        return devices
    seen: list[int] = []
    for word in named.split(",") if named.strip() else ():
        if not word.strip().isdigit() or int(word) >= devices or (seen and int(word) <= seen[-1]):
            break
        seen.append(int(word))
    return len(seen)


# What the vendor's variables may be.
_VARIABLES = {"ASCEND_LAUNCH_BLOCKING": ("0", "1"), "TASK_QUEUE_ENABLE": ("0", "1", "2")}


def check_variables() -> None:
    """Refuse variables of the vendor's that are none of their values, as its PyTorch does."""
    for name, values in _VARIABLES.items():
        value = os.environ.get(name)
        if value is not None and value not in values:
            raise ValueError(f"{name} is {shown(value)}, must be one of {', '.join(values)}")


def from_environment() -> dict[str, Any]:
    """The arguments of `enable` that environment variables give."""
    known: dict[str, Any] = {
        "soc": NPU_SOC,
        "devices": NPU_DEVICES,
        "memory": NPU_MEMORY,
        "fallback": NPU_FALLBACK,
    }
    return {name: variable.read() for name, variable in known.items() if variable.text}
