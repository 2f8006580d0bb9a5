"""Memory as values: calls on memory that they share become one recording.

`Memory` says of each stretch of memory which value of a `Recording` it holds. A read of what a call
has written is that value, or a view of it; a read of anything else is an input. Where calls share
memory in part, the stretch as a whole becomes a value of its own, into which pieces are placed.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from aclnn import graph
from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.compiler.recording import Recording
from aclnn.kernels._placing import placing_kernel
from aclnn.operators.checks import TensorSpec


def flat(low: int, high: int, dtype: aclDataType, owner: Any) -> TensorSpec:
    """All bytes from `low` to `high` as elements of one dtype."""
    shape = ((high - low) // dtypes.item_size(dtype),)
    return TensorSpec(dtype, shape, (1,), address=low, owner=owner)


@dataclass(slots=True, eq=False)
class _Held:
    """Contents of a stretch of memory: a dense value, laid out as `layout` says.

    `stores` are the layouts, in order, that calls have written: what has to be left there.
    """

    layout: TensorSpec
    value: int
    stores: list[TensorSpec]

    @property
    def low(self) -> int:
        return self.layout.low

    @property
    def high(self) -> int:
        return self.layout.high


_LOW = operator.attrgetter("low")


class Memory:
    """A recording of calls on memory.

    Attributes
    ----------
    recording : Recording
    inputs : list of TensorSpec
        The operands that a run reads before any call has written them.

    Examples
    --------
    >>> memory = Memory("example")
    >>> x = TensorSpec(aclDataType.ACL_FLOAT, (4,), (1,), address=4096)
    >>> out = TensorSpec(aclDataType.ACL_FLOAT, (4,), (1,), address=8192)
    >>> value = memory.read(x)
    >>> memory.write(out, value)
    >>> memory.read(out) == value
    True
    >>> [hex(layout.address) for layout in memory.finish()]
    ['0x2000']
    """

    def __init__(self, name: str, soc: str | None = None):
        self.recording = Recording(name, soc)
        self.inputs: list[TensorSpec] = []
        self._values: dict[TensorSpec, int] = {}  # of the inputs
        self._held: list[_Held] = []  # by address; no two extents meet
        self._names: dict[str, int] = {}
        self._labels: dict[int, str] = {}  # of what is held, by address

    def __len__(self) -> int:
        """Number of operands of a run."""
        return len(self.inputs) + sum([len(held.stores) for held in self._held])

    def read(self, layout: TensorSpec, name: str = "input") -> int:
        """The value that an operand has now."""
        met = [] if layout.is_empty else self._meeting(layout.low, layout.high)
        if not met:
            return self._input(layout, name)
        held = met[0]
        if held.layout == layout:
            return held.value
        if not self._holds(held, layout):
            held = self._merge(layout, met)
        return self._view(held, layout)

    def write(self, layout: TensorSpec, value: int, name: str = "out") -> None:
        """Note that an operand has a new value."""
        if layout.is_empty:
            return
        self._labels[layout.address] = name
        left = [
            held for held in self._meeting(layout.low, layout.high) if not layout.has(held.layout)
        ]
        for held in self._meeting(layout.low, layout.high):
            if held not in left:
                self._held.remove(held)
        if not left:
            self._hold(_Held(layout, value, [layout]))
            return
        held = self._merge(layout, left)
        held.value = self._placed(held, layout, value)
        held.stores = [store for store in held.stores if not layout.has(store)]
        if not any(store.has(layout) for store in held.stores):
            held.stores.append(layout)

    def call(
        self,
        operator: Any,
        call: Any,
        inputs: Sequence[tuple[str, TensorSpec] | None],
        outputs: Mapping[str, tuple[str, TensorSpec]],
        numbers: Iterable[tuple[float, float, int]] = (),
    ) -> None:
        """Record a call that phase one has checked, on operands with their names."""
        values = [
            None if arguments is None else self.read(arguments[1], arguments[0])
            for arguments in inputs
        ]
        places = [self.recording.number(forms) for forms in numbers]
        made = self.recording.call(operator, call, values, places, frozenset(outputs))
        for role, (name, layout) in outputs.items():
            if role in made:
                self.write(layout, made[role], name)

    def dtype_at(self, low: int, high: int) -> aclDataType | None:
        """The dtype of what a call has left in a stretch of memory, if it is one value."""
        met = self._meeting(low, high)
        return met[0].layout.dtype if len(met) == 1 else None

    def copy(self, target: TensorSpec, source: TensorSpec) -> None:
        """Record that bytes are copied: both are flat and of one dtype."""
        self.write(target, self.read(source, "src"), "dst")

    def finish(self, is_seen: Any = None) -> list[TensorSpec]:
        """Let runs leave what was written; gives the layouts of the outputs.

        `is_seen` tells of a layout whether anybody can look there; by default of all. Outputs are in
        the order in which they were written first, not in that of addresses, so that their names are
        the same each time.
        """
        stores = [(held, layout) for held in self._held for layout in held.stores]
        order = {address: index for index, address in enumerate(self._labels)}
        stores.sort(key=lambda store: order.get(store[1].address, len(order)))
        outputs = []
        for held, layout in stores:
            if is_seen is not None and not is_seen(layout):
                continue
            value = self._view(held, layout)
            name = self._fresh(self._labels.get(layout.address, "out"))
            self.recording.output(name, value, layout.without_memory())
            outputs.append(layout)
        return outputs

    @staticmethod
    def are_apart(outputs: Sequence[TensorSpec]) -> bool:
        """Whether no output shares a byte with another."""
        ends = sorted((layout.low, layout.high) for layout in outputs if not layout.is_empty)
        return all(one[1] <= two[0] for one, two in pairwise(ends))

    def overlaps(self, outputs: Sequence[TensorSpec]) -> list[list[int]]:
        """Overlaps of each input with each output, in a row for each output."""
        return [[source.overlap(output) for source in self.inputs] for output in outputs]

    # What memory holds.

    def _meeting(self, low: int, high: int) -> list[_Held]:
        last = bisect.bisect_left(self._held, high, key=_LOW)
        first = last
        while first and self._held[first - 1].high > low:
            first -= 1
        return self._held[first:last]

    def _hold(self, held: _Held) -> None:
        bisect.insort(self._held, held, key=_LOW)

    @staticmethod
    def _holds(held: _Held, layout: TensorSpec) -> bool:
        """Whether a value has all of an operand, at places that a view can name."""
        if held.layout == layout:
            return True
        return (
            _is_row_major(held.layout)
            and held.low <= layout.low
            and layout.high <= held.high
            and held.layout.dtype == layout.dtype
            and (layout.low - held.low) % layout.itemsize == 0
        )

    def _view(self, held: _Held, layout: TensorSpec) -> int:
        """The part of a value that an operand covers."""
        if held.layout == layout:
            return held.value
        value, dtype = held.value, held.layout.dtype
        low = held.low
        if dtype != layout.dtype:  # the bytes are those of the stretch: as another dtype
            low = layout.low
            value = self._bytes(held, low, layout.high, layout.dtype)
        offset = (layout.address - low) // layout.itemsize
        return self.recording.strided(value, layout.shape, layout.strides, offset)

    def _merge(self, layout: TensorSpec, met: list[_Held]) -> _Held:
        """One value for a stretch that an operand and values lie in, each in part."""
        low = min(layout.low, *[held.low for held in met])
        high = max(layout.high, *[held.high for held in met])
        dtype = _common_dtype([layout, *[held.layout for held in met]], low)
        stretch = flat(low, high, dtype, layout.owner)
        if _is_all_of(met[0].layout, stretch):  # then nothing else has met
            value = self.recording.reshaped(met[0].value, stretch.shape)
            whole = _Held(stretch, value, met[0].stores)
        else:
            whole = _Held(stretch, self._input(stretch, "memory"), [])
            for held in met:
                whole.value = self._placed(whole, held.layout, held.value)
                whole.stores += held.stores
        self._held = [held for held in self._held if held not in met]
        self._hold(whole)
        return whole

    def _placed(self, whole: _Held, layout: TensorSpec, value: int) -> int:
        """The stretch with a value in it."""
        stretch, size = whole.layout, layout.itemsize
        kernel = placing_kernel(
            stretch.itemsize,
            stretch.itemsize,
            stretch.nbytes,
            size,
            layout.address - stretch.low,
            tuple([stride * size for stride in layout.strides]),
        )
        return self.recording.opaque(
            kernel, [whole.value, value], stretch.dtype, stretch.shape, "place"
        )

    def _bytes(self, held: _Held, low: int, high: int, dtype: aclDataType) -> int:
        """Some bytes of a stretch, as elements of a dtype."""
        stretch, recording = held.layout, self.recording
        size = stretch.itemsize
        piece = recording.sliced(held.value, (((low - held.low) // size, 1, (high - low) // size),))
        found = flat(low, high, dtype, stretch.owner)
        kernel = placing_kernel(size, found.itemsize, found.nbytes)
        return recording.opaque(kernel, [piece], dtype, found.shape, "bytes")

    # Inputs and outputs.

    def _input(self, layout: TensorSpec, name: str) -> int:
        if layout not in self._values:
            self._values[layout] = self.recording.input(self._fresh(name), layout.without_memory())
            self.inputs.append(layout)
        return self._values[layout]

    def _fresh(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else self._fresh(f"{name}_{count}")


def _is_row_major(layout: TensorSpec) -> bool:
    return graph.is_contiguous(layout.shape, layout.strides)


def _is_all_of(layout: TensorSpec, stretch: TensorSpec) -> bool:
    """Whether a value has the elements of a stretch, in their order."""
    return (
        _is_row_major(layout)
        and layout.dtype == stretch.dtype
        and (layout.low, layout.high) == (stretch.low, stretch.high)
    )


def _common_dtype(layouts: Sequence[TensorSpec], low: int) -> aclDataType:
    """The dtype that all have, if all lie at its places in a stretch; else that of bytes."""
    first = layouts[0]
    if all(
        layout.dtype == first.dtype and (layout.address - low) % first.itemsize == 0
        for layout in layouts
    ):
        return first.dtype
    return aclDataType.ACL_UINT8
