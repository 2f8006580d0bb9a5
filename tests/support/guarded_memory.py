"""Memory between pages that nobody may touch: a process that reads or writes past it ends at once.

    memory = guarded(1000)  # an array of bytes, with such a page right behind it

Where a process is to go on, memory lies between bytes that are looked at afterwards: `watched`.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator

import numpy as np

PAGE = mmap.PAGESIZE
NOT_AT_ALL = 0  # PROT_NONE, which the module `mmap` has no name for
MARGIN = 4096  # bytes before and behind memory that is watched
PATTERN = 0xA5

_library = ctypes.CDLL(None, use_errno=True)
_library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Pages:
    """Pages of which the first and the last are protected; freed with the last array on them."""

    def __init__(self, count: int):
        self.memory = mmap.mmap(-1, (count + 2) * PAGE)
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + PAGE
        for page in (self.begin - PAGE, self.begin + count * PAGE):
            if _library.mprotect(page, PAGE, NOT_AT_ALL):
                raise OSError(ctypes.get_errno(), "mprotect")

    def array(self, offset: int, nbytes: int) -> np.ndarray:
        held = (ctypes.c_uint8 * nbytes).from_address(self.begin + offset)
        held.pages = self  # type: ignore[attr-defined]
        return np.ctypeslib.as_array(held)


def guarded(nbytes: int, *, at_end: bool = True) -> np.ndarray:
    """Bytes that end where a protected page begins, or begin where one ends."""
    count = max(1, -(-nbytes // PAGE))
    return _Pages(count).array(count * PAGE - nbytes if at_end else 0, nbytes)


@contextlib.contextmanager
def watched(nbytes: int) -> Iterator[np.ndarray]:
    """Bytes between others that must not change; of any content themselves."""
    whole = np.full(nbytes + 2 * MARGIN, PATTERN, np.uint8)
    yield whole[MARGIN : MARGIN + nbytes]
    changed = np.flatnonzero(whole != PATTERN) - MARGIN
    outside = changed[(changed < 0) | (changed >= nbytes)]
    assert outside.size == 0, f"bytes {outside[:4]} of {nbytes} were written"
