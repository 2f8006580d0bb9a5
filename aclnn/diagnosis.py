"""Messages of a failed phase one."""

from __future__ import annotations

from typing import Any


def failed_phase_one(handle: Any, error: Exception, arguments: tuple[Any, ...]) -> str:
    """Say which function refused which argument, and why."""
    return f"{handle.name}GetWorkspaceSize: {error}"
