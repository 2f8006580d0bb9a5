"""The verifier of schedules, which may have been read from a file and edited: whether one can run.

How far arguments reach is the caller's affair; what is in the workspace stays there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from ..loops.tiling import ALIGNMENT, count_tiles
from ..runtime.abi import (
    MAX_DIMS,
    MAX_THREADS,
    SCRATCH,
    TILE_PREFETCH_FAR,
    TILE_PREFETCH_NEAR,
    TILE_SAWTOOTH,
    TILE_STREAM,
    WORKSPACE,
)
from ..strides import extent

if TYPE_CHECKING:
    from ..lower.schedule import Op, Operand, Schedule, Step

MOST_ELEMENTS_OF_A_STEP = 2**48  # the runner multiplies them by threads, in 64 bits
FLAGS = TILE_STREAM | TILE_PREFETCH_NEAR | TILE_PREFETCH_FAR | TILE_SAWTOOTH


def check_schedule(schedule: Schedule) -> Schedule:
    """Raise `ValueError` naming step, field, value and rule when `schedule` cannot be run; else return it.

    Kernels say how large their operands' elements are, in `itemsizes`; for those that do not, or a
    schedule without kernels, it follows from the operands' bytes.

    >>> from dataclasses import replace
    >>> from aclnn.graph import Schedule
    >>> empty = Schedule((), (), 0, 0, 0, 1)
    >>> check_schedule(empty) == empty
    True
    >>> check_schedule(replace(empty, max_threads=0))
    Traceback (most recent call last):
    ...
    ValueError: schedule: max_threads is 0: a run has from 1 to 1024
    """
    _insist("schedule", _of_schedule(schedule))
    kernels = iter(schedule.kernels or repeat(None))
    for step in schedule.steps:
        _insist(step.name, _of_loops(step))
        for operand in step.operands:
            _insist(f"{step.name}, {operand.name}", _of_operand(operand, step, schedule))
        for op in step.ops:
            kernel = next(kernels)
            itemsizes = (kernel and kernel.itemsizes) or (0,) * len(op.operands)
            _insist(f"{step.name}, {op.node}", _of_op(op, step, itemsizes))
            _insist(f"{step.name}, {op.node}", _of_scratch(op, step, schedule))
            for index, itemsize in zip(op.operands, itemsizes, strict=True):
                operand = step.operands[index]
                if operand.base < 0:
                    _insist(
                        f"{step.name}, {operand.name}", _of_place(operand, itemsize, step, schedule)
                    )
    return schedule


# Whether a rule holds, the field and its value, the rule in words.  The first that does not hold is
# raised before the next is computed, which may rely on it.
Rules = Iterator[tuple[bool, str, object, str]]


def _insist(name: str, rules: Rules) -> None:
    """Raise `ValueError` for the first rule that does not hold for what is called `name`."""
    for holds, field, value, rule in rules:
        if not holds:
            raise ValueError(f"{name}: {field} is {value}: {rule}")


def _of_schedule(schedule: Schedule) -> Rules:
    threads = schedule.max_threads
    yield 1 <= threads <= MAX_THREADS, "max_threads", threads, f"a run has from 1 to {MAX_THREADS}"
    planned = schedule.planned_threads
    yield 1 <= planned <= threads, "planned_threads", planned, f"at least 1, at most {threads}"


def _of_loops(step: Step) -> Rules:
    """Loops and tiles that the runner can count."""
    shape = step.shape
    rule = f"a step has from 2 to {MAX_DIMS} dimensions"
    yield 2 <= len(shape) <= MAX_DIMS, "shape", shape, rule
    yield bool(step.ops), "ops", 0, "a step has at least one"
    rule = f"a step has from 1 to {MOST_ELEMENTS_OF_A_STEP} elements"
    yield min(shape) >= 1 and step.elements <= MOST_ELEMENTS_OF_A_STEP, "shape", shape, rule
    *_, rows, cols = shape
    rule = f"a tile has from 1 to {rows} rows"
    yield 1 <= step.tile_rows <= rows, "tile_rows", step.tile_rows, rule
    rule = f"a tile has from 1 to {cols} columns"
    yield 1 <= step.tile_cols <= cols, "tile_cols", step.tile_cols, rule
    tiles = count_tiles(shape, step.tile_rows, step.tile_cols)
    yield step.n_tiles == tiles, "n_tiles", step.n_tiles, f"shape and tile make {tiles}"


def _of_operand(operand: Operand, step: Step, schedule: Schedule) -> Rules:
    dims = len(operand.shape if step.is_call else step.shape)
    arguments, base = len(schedule.arguments), operand.base
    rule = f"there is one for each of {dims} dimensions"
    yield len(operand.strides) == dims, "strides", operand.strides, rule
    rule = f"at most {MAX_DIMS} dimensions"
    yield dims <= MAX_DIMS, "strides", operand.strides, rule
    rule = (
        f"it is the index of one of {arguments} arguments, {WORKSPACE} for the workspace, or "
        f"{SCRATCH} for a thread's tiles"
    )
    yield 0 <= base < arguments or base in (WORKSPACE, SCRATCH), "base", base, rule


def _of_op(op: Op, step: Step, itemsizes: Sequence[int]) -> Rules:
    count, places = len(op.operands), len(step.operands)
    yield count >= 1, "operands", op.operands, "a kernel takes at least 1"
    rule = f"at least 1 and at most {count} of the operands are written"
    yield 1 <= op.outputs <= count, "outputs", op.outputs, rule
    rule = f"they are places among {places} operands"
    yield all(0 <= index < places for index in op.operands), "operands", op.operands, rule
    rule = f"this kernel takes {len(itemsizes)}, outputs last"
    yield count == len(itemsizes), "operands", op.operands, rule
    yield (
        len(op.extent) in (0, 3, 4),
        "extent",
        op.extent,
        "it is empty, or m, k and n after a batch",
    )
    yield 0 <= op.flags <= FLAGS, "flags", op.flags, f"they add up to at most {FLAGS}"


def _of_scratch(op: Op, step: Step, schedule: Schedule) -> Rules:
    """The memory that a kernel has for itself, whose size the kernel knows."""
    if op.scratch == -1:
        return
    start = schedule.scratch_offset + op.scratch
    last_thread = (step.threads(schedule.planned_threads) - 1) * schedule.scratch_per_thread
    room = schedule.workspace_size
    rule = f"it is -1, or reaches a place in a workspace of {room} on each thread"
    # What it has begins at the next multiple of the alignment.
    end = start + last_thread + ALIGNMENT - 1
    inside = op.scratch >= 0 and end < room and schedule.scratch_per_thread > 0
    yield inside and op.scratch % ALIGNMENT == 0, "scratch", op.scratch, rule


def _of_place(operand: Operand, itemsize: int, step: Step, schedule: Schedule) -> Rules:
    """It is in the workspace, on whatever thread."""
    sizes = operand.shape if step.is_call else step.shape
    start, last_thread = operand.offset, 0
    each = schedule.scratch_per_thread
    if operand.base == SCRATCH:
        yield each > 0, "base", SCRATCH, "scratch_per_thread is 0: there are no tiles"
        # What a lone op is handed may be several tiles of a row, and scratch holds one.
        yield len(step.ops) > 1, "base", SCRATCH, "one op makes a tile and another reads it"
        sizes = (*[1] * (len(sizes) - 2), step.tile_rows, step.tile_cols)
        start += schedule.scratch_offset
        last_thread = (step.threads(schedule.planned_threads) - 1) * each
    low, high = extent(sizes, operand.strides)
    begin, size = start + low, itemsize or _itemsize(operand, sizes)
    end = start + high + size + last_thread
    room = schedule.workspace_size
    rule = f"it reaches from byte {begin} to {end} of a workspace of {room}"
    yield begin >= 0 and end <= room, "offset", operand.offset, rule
    if operand.base != SCRATCH or step.threads(schedule.max_threads) == 1:
        return
    rule = f"a tile is in the {each} bytes of scratch_per_thread, with those of other threads"
    yield high - low + size <= each, "strides", operand.strides, rule
    if step.threads(schedule.max_threads) > schedule.planned_threads:
        first = _first_of_scratch(step)
        rule = f"borrowed scratch has {each} bytes for a thread, from {first} on"
        inside = low >= 0 and operand.offset - first + high + size <= each
        yield inside, "offset", operand.offset, rule


def _first_of_scratch(step: Step) -> int:
    """First byte of a step's scratch, as its ops and operands count it."""
    begins = [operand.offset for operand in step.operands if operand.base == SCRATCH]
    return min([*begins, *[op.scratch for op in step.ops if op.scratch >= 0]])


def _itemsize(operand: Operand, sizes: Sequence[int]) -> int:
    """Bytes of an element, from those of all that are distinct."""
    pairs = zip(sizes, operand.strides, strict=True)
    distinct = math.prod(size for size, stride in pairs if stride != 0)
    return max(1, operand.nbytes // max(1, distinct))
