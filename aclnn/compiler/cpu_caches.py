"""Cache sizes of this machine, and the size from which results bypass the caches."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from aclnn.graph import STREAM_FROM

# Of a small last-level cache a step may fill half before results bypass it: up to there, those of one run
# are found there by the next. Of dense operands 18 MiB and more are faster past a cache of 32 MiB, 12 are not.
SHARE_OF_SMALL = 2
SMALL = 64 << 20
# Servers' large caches belong to many, other virtual machines among them.
SHARE_OF_LARGE = 12
_CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def last_level_bytes() -> int:
    """Bytes of the last-level cache that this process can count on: as much as of the cores that share it.

    0 where there is none, or the system does not tell.

    >>> last_level_bytes() >= 0
    True
    """
    mine = _allowed_cpus()
    sizes = [0]
    for folder in (_CPUS / f"cpu{min(mine, default=0)}" / "cache").glob("index*"):
        try:
            level = int((folder / "level").read_text())
            found = re.fullmatch(r"(\d+)([KMG]?)\s*", (folder / "size").read_text())
            sharing = _numbers((folder / "shared_cpu_list").read_text())
        except (OSError, ValueError):
            continue
        if level >= 3 and found:
            size = int(found[1]) * _UNITS[found[2]]
            sizes.append(size * len(sharing & (mine or sharing)) // max(1, len(sharing)))
    return max(sizes)


def _allowed_cpus() -> set[int]:
    """The CPUs that this process may run on; none where the system does not tell."""
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()


def _numbers(words: str) -> set[int]:
    """The CPUs of a list as the system writes it.

    >>> sorted(_numbers("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for span in filter(None, words.strip().split(",")):
        first, _, last = span.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def stream_from(threads: int) -> int:
    """Bytes that a step moves for each of these threads from which results bypass the caches.

    >>> stream_from(1) >= STREAM_FROM
    True
    """
    size = last_level_bytes()
    counted = size // (SHARE_OF_SMALL if size <= SMALL else SHARE_OF_LARGE)
    return max(STREAM_FROM, counted // threads)
