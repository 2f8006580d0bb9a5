"""Files that are written as a whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OPEN_FILES = ("/dev/", "/proc/")  # /dev/stdout and its like: what the shell has opened


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file, by another one next to it first: what was there stays if that fails.

    Links, permissions and owners stay as they are. What is no plain file, such as a pipe or
    /dev/stdout, and files in a folder that cannot be written to, are written in place.

    Raises
    ------
    OSError
        If it cannot be written; it names the file.
    """
    data = content.encode() if isinstance(content, str) else content
    if _is_replaceable(path):
        try:
            return _replace(Path(os.path.realpath(path)), data)
        except PermissionError:
            pass
        except OSError as error:
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    Path(path).write_bytes(data)
    return None


def _is_replaceable(path: str | os.PathLike[str]) -> bool:
    """Whether there is a plain file, which may be written, or none."""
    if os.path.abspath(path).startswith(_OPEN_FILES):
        return False
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(kind):
        return False
    with open(path, "r+b"):  # refuses what may not be written
        return True


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            _take_over(file.fileno(), target)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _take_over(descriptor: int, target: Path) -> None:
    """Permissions and owner of what is there."""
    try:
        before = target.stat()
    except FileNotFoundError:
        return
    now = os.fstat(descriptor)
    if hasattr(os, "fchown") and (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
