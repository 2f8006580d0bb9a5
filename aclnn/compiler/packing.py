"""Packed forms of operands: made once for each array, kept as long as the plan needs them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from aclnn.graph.lower.schedule import Pack

ALIGNMENT = 64
MOST_KEPT = 16  # arrays whose packed forms one plan keeps, of each operand


class PackedOperand:
    """Packed forms of an operand, by the address of the array that they were made of.

    The array is held as long as its packed form is kept, so that no other one gets its address.

    Parameters
    ----------
    pack : Pack
        How the packed form is made.
    source : int
        The place of the operand's array among those of a run.

    Attributes
    ----------
    source : int
        The place of the operand's array among those of a run.
    """

    def __init__(self, pack: Pack, source: int):
        self.source = source
        self._offset = pack.offset
        self._nbytes = pack.memory.nbytes
        self._pack = pack.pack
        self._kept: dict[int, tuple[int, np.ndarray, Any]] = {}
        self._lock = threading.Lock()

    def form_of(self, address: int, owner: Any) -> tuple[int, np.ndarray, Any]:
        """Address of the packed form of the array at an address; what is given with it keeps it alive."""
        found = self._kept.get(address)
        return self._made(address, owner) if found is None else found

    def _made(self, address: int, owner: Any) -> tuple[int, np.ndarray, Any]:
        room = np.empty(self._nbytes + ALIGNMENT, np.uint8)
        target = room.ctypes.data + -room.ctypes.data % ALIGNMENT
        self._pack(address + self._offset, target)
        with self._lock:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[address] = found = (target, room, owner)
        return found

    def forget(self, address: int) -> None:
        """Forget the packed form of the array at an address: it may have changed."""
        with self._lock:
            self._kept.pop(address, None)

    def forget_all(self) -> None:
        """Forget all packed forms; runs under way keep theirs."""
        with self._lock:
            self._kept.clear()


def packed_operands(packs: Sequence[Pack], arguments: Sequence[int]) -> tuple[PackedOperand, ...]:
    """Keepers of the packed forms that a schedule takes, in the order of its arguments.

    `arguments` has for each of its other arguments the place of the operand of a run.
    """
    return tuple([PackedOperand(pack, arguments[pack.source]) for pack in packs])
