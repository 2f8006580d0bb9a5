"""Refused calls in the NPU's words: what its PyTorch says around the message of the operator library."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime

from aclnn.acl.errors import AclnnError

REFUSED: Counter[tuple[str, int | str]] = Counter()  # by operator and status, or code of PyTorch


def refused(operator: str, function: str, error: AclnnError, device: int = 0) -> RuntimeError:
    """The exception for a call that a function of the operator library refused."""
    REFUSED[operator, error.status] += 1
    now, pid = datetime.now(), os.getpid()
    kind = "Parameter_Error(EZ1001)" if 160000 < error.status < 170000 else "Inner_Error(EZ9999)"
    if os.environ.get("TORCH_NPU_COMPACT_ERROR_OUTPUT") == "1":
        return RuntimeError(
            f"CANN error: call {function} failed, error code is {error.status}: {error}"
        )
    return RuntimeError(
        f"{operator.partition('::')[2]}:operators.py:0 NPU function error: call {function} failed, error code is "
        f"{error.status}\n"
        f"[ERROR] {now:%Y-%m-%d-%H:%M:%S} (PID:{pid}, Device:{device}, RankID:{rank()}) ERR00100 PTA call acl api "
        "failed.\n"
        f"[PID: {pid}] {now:%Y-%m-%d-%H:%M:%S}.{now.microsecond // 1000:03}.{now.microsecond % 1000:03} "
        f"AclNN_{kind}: {error}"
    )


_WORDS = {
    "001": "invalid parameter",
    "002": "invalid type",
    "003": "invalid value",
    "007": "feature not supported",
}


def checked(words: str, code: str = "001", device: int = 0) -> RuntimeError:
    """The exception for a call that the NPU's PyTorch refuses itself."""
    if os.environ.get("TORCH_NPU_COMPACT_ERROR_OUTPUT") == "1":
        error = RuntimeError(words)
    else:
        now = f"{datetime.now():%Y-%m-%d-%H:%M:%S}"
        error = RuntimeError(
            f"{words}\n[ERROR] {now} (PID:{os.getpid()}, Device:{device}, RankID:{rank()}) ERR01{code} OPS {_WORDS[code]}"
        )
    vars(error)["code"] = f"ERR01{code}"  # until it is counted
    return error


def note(operator: str, error: RuntimeError) -> None:
    """Count the call of an operator that an error leaves, where it is a refusal; once for nested calls."""
    if (code := vars(error).pop("code", None)) is not None:
        REFUSED[operator, code] += 1


def rank() -> int:
    """The rank in the default process group; -1 without one."""
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else -1
