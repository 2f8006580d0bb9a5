"""What the caches of this machine hold, and from which size on results are written past them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from aclnn.graph import STREAM_FROM

# Many cores share a last-level cache, and virtual machines it with others: one run gets a part of it.
SHARE_OF_LAST_LEVEL = 12
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def last_level_bytes() -> int:
    """Size of the cache behind all cores; 0 where there is none, or the system does not tell.

    >>> last_level_bytes() >= 0
    True
    """
    sizes = [0]
    for folder in _CACHES.glob("index*"):
        try:
            level = int((folder / "level").read_text())
            found = re.fullmatch(r"(\d+)([KMG]?)\s*", (folder / "size").read_text())
        except (OSError, ValueError):
            continue
        if level >= 3 and found:
            sizes.append(int(found[1]) * _UNITS[found[2]])
    return max(sizes)


def stream_from(threads: int) -> int:
    """Bytes that a step moves for each of these threads from which results bypass the caches.

    >>> stream_from(1) >= STREAM_FROM
    True
    """
    return max(STREAM_FROM, last_level_bytes() // SHARE_OF_LAST_LEVEL // threads)
