"""Memory bandwidth of the machine: the speed of copying and adding as many bytes as a cell moves.

Both run on as many threads as the operators may use, each thread on a part of its own.

- ``copy``: half of the bytes are read, half are written: with stores that bypass the cache where
  kernels that move as much use these, otherwise by memcpy.
- ``triad``: two thirds are read, one third is written: ``np.add(a, b, out=c)`` in float32, with
  ordinary stores, before which the CPU reads the line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from aclnn import isa
from aclnn.benchmark.measure import Timer, side_by_side
from aclnn.compiler import cpu_caches

# Below, a call costs more than its bytes do.
LEAST_BYTES = 1 << 19
_LINE = 64


def timers(nbytes: int, threads: int) -> dict[str, Timer]:
    """Timers of a copy and a triad that move `nbytes` in all; none when these are few.

    >>> sorted(timers(1 << 20, 2))
    ['copy', 'triad']
    >>> timers(1 << 10, 2)
    {}
    """
    if nbytes < LEAST_BYTES:
        return {}
    streamed = nbytes >= cpu_caches.stream_from(threads) * threads
    return {
        "copy": side_by_side([_copy(n, streamed) for n in _parts(nbytes // 2, threads)]),
        "triad": side_by_side([_add(n) for n in _parts(nbytes // 3, threads)]),
    }


def _parts(nbytes: int, threads: int) -> list[int]:
    return [nbytes // threads // _LINE * _LINE] * threads


def _copy(nbytes: int, streamed: bool) -> Callable[[], Any]:
    # Filled, for pages that were never written are all the same page of zeros.
    source, target = np.ones(nbytes, np.uint8), np.ones(nbytes, np.uint8)
    if not streamed:
        return partial(np.copyto, target, source)
    call = partial(isa.kernels().stream_copy, target.ctypes.data, source.ctypes.data, nbytes)
    return _Holding(call, source, target)


class _Holding:
    """A call by addresses, and the arrays that have to live as long as it does."""

    def __init__(self, call: Callable[[], Any], *arrays: np.ndarray) -> None:
        self._call, self._arrays = call, arrays

    def __call__(self) -> None:
        self._call()


def _add(nbytes: int) -> Callable[[], Any]:
    first, second, target = (np.ones(nbytes // 4, np.float32) for _ in range(3))
    return partial(np.add, first, second, out=target)
