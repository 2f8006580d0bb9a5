"""Lifetimes in files: MiniMalloc's CSV, plans, and what PyTorch's allocator recorded.

A memory snapshot of PyTorch's is a pickle, which can name any function to be called while it is read.
It is read by an unpickler that knows plain values only; the same document may also be JSON.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

from ..names import Names
from ..numbers import whole_number
from .lifetimes import Lifetime, lifetimes_from_csv
from .plan import WorkspacePlan

PICKLE = b"\x80"  # how all of protocol 2 and later begin
FREED = "free_completed"


def read_lifetimes(path: str | PathLike[str], device: int | None = None) -> tuple[Lifetime, ...]:
    """The lifetimes in a file, whose content tells its format.

    Parameters
    ----------
    path : str or path
        A CSV file with the columns id, lower, upper and size, a plan in JSON, whose places are kept,
        or a memory snapshot of PyTorch's, as a pickle or as JSON.
    device : int, optional
        Of a snapshot: whose allocations. May be left out where only one device has some.

    Returns
    -------
    tuple of Lifetime

    Raises
    ------
    ValueError
        The error in the content.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "lifetimes.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("id,lower,upper,size\\na,0,2,100\\n")
    ...     read_lifetimes(path)[0].nbytes
    100
    """
    content = Path(path).read_bytes()
    if content.startswith(PICKLE):
        return lifetimes_from_snapshot(_unpickled(content), device)
    text = content.decode("utf-8")
    if text.lstrip().startswith("{"):
        document = _loaded(text)
        if "buffers" not in document:
            return lifetimes_from_snapshot(document, device)
        if device is not None:
            raise ValueError("buffers of a plan belong to no device")
        plan = plan_in_json(text)
        places = {one.name: one.offset for one in plan.buffers}
        return tuple([replace(life, offset=places[life.name]) for life in plan.lifetimes])
    if device is not None:
        raise ValueError("lifetimes of a CSV file belong to no device")
    return lifetimes_from_csv(text)


def lifetimes_from_snapshot(
    snapshot: Mapping[str, Any], device: int | None = None
) -> tuple[Lifetime, ...]:
    """The lifetimes of allocations that PyTorch recorded.

    Parameters
    ----------
    snapshot : mapping
        As ``torch.cuda.memory._snapshot()`` gives it, after ``_record_memory_history()``.
    device : int, optional
        Whose allocations. May be left out where only one device has some.

    Returns
    -------
    tuple of Lifetime
        Steps count the changes from freeing to allocating. What was there before the recording lives
        from step 0 on, what was not freed to the last step.

    Raises
    ------
    ValueError
        Naming the field that is missing or wrong.

    Examples
    --------
    >>> place = {"addr": 4096, "size": 512, "stream": 0, "frames": []}
    >>> events = [{"action": "alloc", **place}, {"action": "free_completed", **place}]
    >>> lifetimes_from_snapshot({"device_traces": [events]})
    (Lifetime(name='alloc', lower=0, upper=1, nbytes=512),)
    """
    traces = _list(_mapping(snapshot, "the snapshot"), "device_traces")
    chosen = _device(traces, device)
    history = _History()
    for index, event in enumerate(_list({"trace": traces[chosen]}, "trace")):
        history.take(_mapping(event, f"event {index}"), f"event {index}")
    for block in _blocks(_list_or_none(snapshot, "segments"), chosen):
        history.was_there(block)
    return history.lifetimes()


def plan_in_json(text: str) -> WorkspacePlan:
    """The plan in a document, validated.

    >>> from .plan import plan_lifetimes
    >>> plan_in_json(plan_lifetimes([Lifetime("a", 0, 2, 100)]).to_json()).size
    128
    """
    return WorkspacePlan.from_json(text)


# --- Reading ----------------------------------------------------------------------------------------


class _PlainUnpickler(pickle.Unpickler):
    """Reads numbers, strings and containers of them, and refuses everything that is called by name."""

    def find_class(self, module: str, name: str) -> Any:
        raise ValueError(f"a memory snapshot holds plain values, this pickle wants {module}.{name}")


def _unpickled(content: bytes) -> Any:
    try:
        return _PlainUnpickler(io.BytesIO(content)).load()
    except ValueError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise ValueError(f"no readable pickle: {type(error).__name__}: {error}") from None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists are nested too deeply to be read") from None


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is of type {type(value).__name__}, must be a mapping")
    return value


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    if not isinstance(found, list):
        raise ValueError(f"{key} is of type {type(found).__name__}, must be a list")
    return found


def _list_or_none(document: Mapping[str, Any], key: str) -> list[Any]:
    return _list(document, key) if document.get(key) else []


def _number(event: Mapping[str, Any], key: str, what: str) -> int:
    if key not in event:
        raise ValueError(f"{what} has no {key}")
    return whole_number(event[key], f"{what}: {key}")


def _device(traces: list[Any], requested: int | None) -> int:
    """The place of the trace to read."""
    used = [index for index, trace in enumerate(traces) if trace]
    if requested is not None:
        if requested not in range(len(traces)):
            raise ValueError(f"device is {requested}, the snapshot is of {len(traces)} devices")
        return requested
    if len(used) > 1:
        raise ValueError(f"devices {', '.join(map(str, used))} have allocations: name one of them")
    if not used:
        raise ValueError("no allocations were recorded: call _record_memory_history() before them")
    return used[0]


def _blocks(segments: list[Any], device: int) -> Iterator[Mapping[str, Any]]:
    """Blocks that were in use when the snapshot was taken."""
    for segment in segments:
        if _mapping(segment, "a segment").get("device", device) != device:
            continue
        at = whole_number(segment.get("address", 0), "a segment: address")
        for block in _list_or_none(segment, "blocks"):
            if str(_mapping(block, "a block").get("state", "")).startswith("active"):
                yield {"addr": block.get("address", at), **block}
            at += _number(block, "size", "a block")


# --- From events to lifetimes -----------------------------------------------------------------------


@dataclass(slots=True)
class _Allocation:
    nbytes: int
    frames: Any
    lower: int = 0
    upper: int | None = None


@dataclass(slots=True)
class _History:
    """Allocations in the order in which they were made; those in use by address.

    Allocations in a row begin at one step, frees in a row end at one: what conflicts with what is
    the same as if each had a step of its own.
    """

    step: int = 0
    has_freed: bool = False
    made: list[_Allocation] = field(default_factory=list)
    before: list[_Allocation] = field(default_factory=list)
    used: dict[int, _Allocation] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any], what: str) -> None:
        action = event.get("action")
        if action not in ("alloc", FREED):
            return
        address, nbytes = _number(event, "addr", what), _number(event, "size", what)
        if action == FREED:
            self._free(address, nbytes, event)
            return
        if self.has_freed:
            self.step, self.has_freed = self.step + 1, False
        if address in self.used:  # whose end was not recorded
            self.used[address].upper = max(self.step, self.used[address].lower + 1)
        self.used[address] = _Allocation(nbytes, event.get("frames"), self.step)
        self.made.append(self.used[address])

    def _free(self, address: int, nbytes: int, event: Mapping[str, Any]) -> None:
        found = self.used.pop(address, None)
        if found is None:  # it was there before the recording
            found = _Allocation(nbytes, event.get("frames"))
            self.before.append(found)
        found.upper = self.step + 1
        self.has_freed = True

    def was_there(self, block: Mapping[str, Any]) -> None:
        """Add a block that is in use at the end, and was never allocated in the recording."""
        if _number(block, "addr", "a block") not in self.used:
            self.before.append(_Allocation(_number(block, "size", "a block"), block.get("frames")))

    def lifetimes(self) -> tuple[Lifetime, ...]:
        names, end = Names(), self.step + 1
        return tuple(
            [
                Lifetime(names.fresh(name), one.lower, one.upper or end, one.nbytes, producer)
                for one in (*self.before, *self.made)
                for name, producer in [_names_of(one.frames)]
            ]
        )


def _names_of(frames: Any) -> tuple[str, str]:
    """The function that allocated, and where: the innermost frame that is not PyTorch's own."""
    arguments = frames if isinstance(frames, list | tuple) else ()
    listed = [one for one in arguments if isinstance(one, Mapping) and one.get("name")]
    if not listed:
        return "alloc", ""
    frame = next(filter(_is_of_program, listed), listed[0])
    file = PurePath(str(frame.get("filename", ""))).name
    return str(frame["name"]), f"{file}:{frame.get('line', 0)}" if file else ""


def _is_of_program(frame: Mapping[str, Any]) -> bool:
    file = str(frame.get("filename", ""))
    return file != "??" and "torch" not in PurePath(file).parts
