"""Sequences of calls over the whole C-shaped layer, valid ones and junk, one after the other.

    .venv/bin/python tests/support/fuzz_calls.py --calls 100000 --seed 7

Which functions there are, what they take and which statuses they may give comes from the package: its
public names, the operators' declarations and the docstrings, where a status is ``NAME (number)``. New
operators and functions take part without a change here. What is checked after every call:

- the status is one that the docstring lists; there is a message if, and only if, the call failed;
- no exception leaves a function, but a TypeError where the number of arguments is wrong;
- no byte changed in memory that operands lie in, but for elements of outputs, what a workspace was
  asked for, and targets of copies; none at all where a call is refused when it runs.

Workspaces are exactly as large as phase one says, and lie between pages that end the process if they are
touched, as do some operands.

Between the calls are programs of `fuzz_programs.py`, which count as many calls as they make: compiled functions
have the bits of single calls, and captured calls leave memory as the same calls do when they run at once.

A finding is printed with its seed and number, and ends the run with 1. The calls are made in a process
of its own: if that dies, what it did last is found by making the same calls again.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import inspect
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import fuzz_programs
import numpy as np
import samples
from guarded_memory import guarded
from setups import Hostile

import aclnn
from aclnn.acl import dtypes
from aclnn.acl.arguments import as_int, shown
from aclnn.operators import ENTRIES

OK = 0
ARENA = 1 << 14  # bytes of host memory, and of device memory, that operands lie in
POOL = 24  # objects of a type that are kept, destroyed ones included
PROGRAMS = 0.01  # of the calls: each is some calls itself, and some milliseconds of tracing
OFTEN = (
    "Convolution",
    "Cat",
    "Stack",
    "Index",
    "IndexPutImpl",
)  # calls that are made more often than others
LONGEST_RUN = 1 << 16  # elements: an output that repeats its elements could have any number
PATIENCE = 120  # seconds until a call counts as hanging

# While a stream is captured, whatever waits is refused, and work of other streams goes on unseen: captures
# begin and end within a program.
LEFT_OUT = {"aclmdlRICaptureBegin"}
# Functions that give the status of an earlier call, which has had its message.
OF_OTHERS = ("aclrtGetLastError", "aclrtPeekAtLastError")
# Functions of numbers, which raise what Python's own do: they have no status.
LEFT_OUT |= {"aclAppLog", "aclDataTypeSize", "aclFloat16ToFloat", "aclFloatToFloat16"}


@dataclass(frozen=True)
class Known:
    """A fault that is known and being mended: it is counted instead of being a finding."""

    function: str  # a regular expression, as are the others
    found: str


# Delete a line as soon as its fault is mended.
KNOWN = [
    # Outputs with two dimensions of stride 0.
    Known(r"aclnn\w+GetWorkspaceSize", "^ZeroDivisionError"),
    # Arrays whose attributes raise.
    Known(
        r"acl(Create|Init)Tensor|aclSet\w*TensorAddr|aclrtMem\w+|aclnn\w+",
        "^(Attribute|Memory)Error",
    ),
]
# Memory of `ODD_MEMORY` that is not given: what tensors believe of it ends the process.
SPARED = {"Liar"}


# --- What is called -----------------------------------------------------------------------------


class Function:
    """A function, with what its signature and its docstring say."""

    def __init__(self, name: str):
        self.name = name
        self.call: Callable[..., Any] = getattr(aclnn, name)
        parameters = inspect.signature(self.call).parameters.values()
        self.parameters = [parameter.name for parameter in parameters]
        self.needed = sum(parameter.default is parameter.empty for parameter in parameters)
        returns = (inspect.getdoc(self.call) or "").partition("\nReturns\n")[2]
        returns = re.split(r"\n\w[\w ]+\n---", returns, maxsplit=1)[0]
        listed = re.findall(r"\bACL\w+\s+\((\d+)\)", returns)
        self.statuses = frozenset(map(int, listed))  # none: it gives an object, or None
        entry = name.removesuffix("GetWorkspaceSize")
        self.plans = ENTRIES[entry][1] if entry in ENTRIES and entry != name else None
        self.runs = name in ENTRIES


def functions() -> list[Function]:
    names = [name for name in dir(aclnn) if name.startswith("acl")]
    return [
        Function(name)
        for name in names
        if callable(getattr(aclnn, name)) and not isinstance(getattr(aclnn, name), type)
    ]


# --- Junk ---------------------------------------------------------------------------------------


class Liar(np.ndarray):
    """An array that says it is larger than it is."""

    nbytes = property(lambda self: 1 << 40)
    size = property(lambda self: 1 << 40)
    shape = property(lambda self: (1 << 20, 1 << 20))
    strides = property(lambda self: (8, 8))


class Unreadable(np.ndarray):
    """An array that has no shape."""

    @property
    def shape(self) -> Any:
        raise AttributeError("no")


class Exhausted(np.ndarray):
    """An array whose shape takes too much memory."""

    @property
    def shape(self) -> Any:
        raise MemoryError("no")


class OddInt(int):
    def __index__(self) -> int:
        raise RuntimeError("no")

    __int__ = __eq__ = __lt__ = __repr__ = __index__  # type: ignore[assignment]
    __hash__ = int.__hash__


class Shrinking(list):  # type: ignore[type-arg]
    """A sequence that has another length each time it is looked at."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        self.pop() if self else None
        return super().__iter__()


def read_only(count: int) -> np.ndarray:
    array = np.zeros(count, np.uint8)
    array.flags.writeable = False
    return array


JUNK: list[Callable[[], Any]] = [
    lambda: None, lambda: 0, lambda: 1, lambda: -1, lambda: 2**31, lambda: 2**62, lambda: 2**64,
    lambda: -(10**5000), lambda: True, lambda: 0.5, lambda: math.nan, lambda: -math.inf, lambda: 1j,
    lambda: "", lambda: "tanh", lambda: "\ud800", lambda: b"x", lambda: bytearray(3), tuple,
    list, lambda: [1, 2], lambda: [-1], lambda: [None], lambda: [2**62, 2**62], dict,
    lambda: {1: 2}, set, lambda: range(3), lambda: iter([1, 2]), lambda: (n for n in [2]),
    object, Hostile, lambda: Hostile, lambda: OddInt(3), lambda: Shrinking([2, 3]), lambda: len,
    lambda: aclnn.ACL_FLOAT, lambda: aclnn.ACL_FORMAT_ND, lambda: aclnn.aclTensor, lambda: Ellipsis,
    lambda: Decimal("sNaN"), lambda: Fraction(1, 3), lambda: np.int8(2), lambda: np.float16(2),
    lambda: np.bool_(True), lambda: np.array("a"), lambda: np.array([1, 2]), lambda: np.array(None),
    lambda: np.zeros(3), lambda: np.zeros((4, 4))[::2, ::2], lambda: np.zeros(0), lambda: read_only(64),
    lambda: np.zeros(4, "M8[s]"), lambda: np.zeros(2, [("a", "i4")]), lambda: memoryview(b"abcd"),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
]  # fmt: skip


ODD_MEMORY = (Liar, Unreadable, Exhausted, np.ma.MaskedArray, np.recarray, np.matrix)


# --- Memory that is watched ---------------------------------------------------------------------


class Arena:
    """Bytes that operands lie in, and which of them may have changed."""

    def __init__(self, base: int, content: np.ndarray):
        self.base = base
        self.bytes = content
        self.before = content.copy()
        self.allowed = np.zeros(content.size, bool)

    def allow(self, addresses: np.ndarray) -> None:
        inside = addresses - self.base
        self.allowed[inside[(inside >= 0) & (inside < self.bytes.size)]] = True

    def stray(self) -> list[int]:
        """Where bytes changed that nothing was to change."""
        found = np.flatnonzero((self.bytes != self.before) & ~self.allowed)
        return [int(place) for place in found[:4]]

    def settle(self) -> None:
        self.before[:] = self.bytes
        self.allowed[:] = False


def byte_addresses(start: int, count: int) -> np.ndarray:
    return start + np.arange(min(count, 4 * ARENA), dtype=np.int64)


@dataclass
class View:
    """Where a tensor's elements are; strides and offset in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    itemsize: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def addresses(self, base: int) -> np.ndarray:
        """Of all bytes of all elements."""
        if self.count > LONGEST_RUN:
            return np.zeros(0, np.int64)
        found = np.full(1, base + self.offset, np.int64)
        for size, stride in zip(self.shape, self.strides, strict=True):
            found = (found[:, None] + np.arange(size, dtype=np.int64) * stride).ravel()
        return (found[:, None] + np.arange(self.itemsize)).ravel()


def view_of(tensor: Any) -> View | None:
    """None for what is no tensor, or a destroyed one."""
    shape, status = aclnn.aclGetViewShape(tensor)
    if status != OK:
        return None
    itemsize = dtypes.item_size(aclnn.aclGetDataType(tensor)[0])
    strides = tuple(step * itemsize for step in aclnn.aclGetViewStrides(tensor)[0])
    return View(tuple(shape), strides, aclnn.aclGetViewOffset(tensor)[0] * itemsize, itemsize)


@dataclass
class Planned:
    """An executor, and what it may write."""

    executor: Any
    run: str
    workspace: int
    outputs: list[tuple[Any, View]]
    bases: set[int] = field(default_factory=set)  # where outputs' storage began at any time

    def remember(self) -> None:
        for tensor, _ in self.outputs:
            address, status = aclnn.aclGetRawTensorAddr(tensor)
            if status == OK:
                self.bases.add(address)

    @property
    def longest(self) -> int:
        return max((view.count for _, view in self.outputs), default=0)


class FoundError(Exception):
    """What a call did that it must not do."""


# --- The calls ----------------------------------------------------------------------------------


class Fuzzer:
    """Makes calls, from a seed, and judges each."""

    def __init__(self, seed: int, count: int, last: Any = None, show: int | None = None):
        self.random = random.Random(seed)
        self.count = count
        self.last = last  # a file that says how many calls were begun
        self.show = show
        self.made = 0
        self.statuses: Counter[int] = Counter()
        self.known: Counter[str] = Counter()
        self.functions = {function.name: function for function in functions()}
        self.pool: dict[str, list[Any]] = {}
        self.planned: list[Planned] = []
        self.pending = False
        self.addresses: list[int] = []
        self.host = np.frombuffer(bytearray(self.random.randbytes(ARENA)), np.uint8)
        self.device = aclnn.aclrtMalloc(ARENA, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)[0]
        device = np.ctypeslib.as_array((ctypes.c_uint8 * ARENA).from_address(self.device))
        device[:] = self.host[::-1]
        self.arenas = [Arena(self.host.ctypes.data, self.host), Arena(self.device, device)]
        self.rooms = tuple(aclnn.aclrtMalloc(fuzz_programs.ROOM, 0)[0] for _ in range(2))
        self.plausible = self._plausible()

    def go(self) -> None:
        names = [name for name in self.functions if name not in LEFT_OUT]
        plans = [name for name in names if self.functions[name].plans]
        while self.made < self.count:
            if self.random.random() < PROGRAMS:
                self.program()
            luck = self.random.random()
            if luck < 0.02:
                self.plan(f"aclnn{self.random.choice(OFTEN)}GetWorkspaceSize")
            elif luck < 0.12:
                self.plan(self.random.choice(plans))
            elif luck < 0.45 and self.planned:
                self.run(self.random.choice(self.planned))
            else:
                self.anything(self.random.choice(names))
            if self.random.random() < 0.03:
                self.settle()
            if len(self.addresses) > 8:  # memory is the machine's: junk may ask for much of it
                self.call("aclrtFree", self.addresses.pop(0))
        self.settle()

    # --- Kinds of calls

    def program(self) -> None:
        """A compiled function or a capture, whose seed is printed with what is wrong."""
        seed = self.random.getrandbits(48)
        chance = random.Random(seed)
        if self.random.random() < 0.5:
            self.begin(lambda: f"fuzz_programs.check_compiled(random.Random({seed}))")
            steps, wrong = fuzz_programs.check_compiled(chance)
            self.made += 2 * steps
        else:
            self.settle()
            self.call("aclmdlRICaptureThreadExchangeMode", aclnn.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
            wrong = fuzz_programs.check_capture(chance, self.call, self.rooms)
        if wrong:
            raise FoundError(f"call {self.made}: program {seed}: {wrong}")

    def alike(self) -> Callable[[Any, Any], Any]:
        """What makes operands that are alike, or broadcast."""
        shape = self.dims()

        def make(parameter: Any, dtype: Any) -> Any:
            if parameter.kind == "inputs":
                count = self.random.randrange(1, 5)
                listed = [self.tensor(shape, dtype) for _ in range(count)]
                return self.call("aclCreateTensorList", listed)
            if not parameter.is_tensor:
                return self.of_kind(parameter.kind)
            other = self.random.random() < 0.1
            dims = self.thinned(shape) if parameter.kind == "input" else shape
            return self.tensor(dims, self.dtype() if other else dtype)

        return make

    def sample(self, entry: Any) -> Callable[[Any, Any], Any]:
        """What makes the operands of an operator's sample, larger or empty."""
        operator, _ = ENTRIES[entry.name]
        factor = self.random.choice([0, 1, 1, 1, 1, 2, 3, 40])
        given = samples.inputs(operator.name)
        results = samples.results(operator.name)

        def scaled(shape: Sequence[int]) -> list[int]:
            return [size if size == 1 else factor * size for size in shape]

        def make(parameter: Any, dtype: Any) -> Any:
            role = parameter.role
            if parameter.kind in ("absent", "later"):
                return None
            if parameter.kind == "single":
                return self.call("aclCreateTensorList", [like(given[role], dtype)])
            if parameter.kind == "ints" and role in given:
                return self.call("aclCreateIntArray", given[role].ravel().tolist())
            if parameter.kind == "inputs":
                if role in samples.UNLIKE.get(operator.name, samples.NOTHING).absent:
                    return None
                listed = [like(one, dtype) for one in given[role]]
                return self.call("aclCreateTensorList", listed)
            if parameter.kind == "outputs":
                listed = [self.tensor(scaled(one.shape), dtype) for one in results.values()]
                return self.call("aclCreateTensorList", listed)
            if not parameter.is_tensor:
                defaults = {a.role: a.default for a in operator.attributes}
                value = samples.options(operator.name).get(role, defaults.get(role))
                if value is None and parameter.kind == "dtype" and as_it_is:
                    value = next(iter(results.values())).dtype
                return self.option(value, scaled, parameter)
            if role not in results and role not in given:
                return None  # which the sample leaves out
            return like(results[role] if parameter.kind == "output" else given[role], dtype)

        as_it_is = self.random.random() < 0.5

        def like(one: np.ndarray, dtype: Any) -> Any:
            plain = one.dtype == np.float32 and not as_it_is
            return self.tensor(scaled(one.shape), dtype if plain else dtypes.of_numpy(one.dtype))

        return make

    def convolution(self) -> Callable[[Any, Any], Any]:
        """What makes the operands of a convolution, often of few channels a group and many terms a sum."""
        chance = self.random
        axes, turned = chance.choice([1, 2, 2, 3]), chance.random() < 0.3
        groups, rows = chance.choice([1, 1, 2, 3]), chance.choice([1, 2, 3, 4, 5, 17])
        channels = chance.choice([1, 3, 17, 70, 300])
        taps, steps, gaps = (chance.choices([1, 1, 2, 3], k=axes) for _ in range(3))
        before, sizes = chance.choices([0, 0, 1], k=axes), chance.choices([4, 7, 9, 33], k=axes)
        reach = [gap * (tap - 1) + 1 for gap, tap in zip(gaps, taps, strict=True)]
        places = list(zip(sizes, steps, before, reach, strict=True))
        if turned:
            made = [(n - 1) * step - 2 * pad + far for n, step, pad, far in places]
        else:
            made = [(n + 2 * pad - far) // step + 1 for n, step, pad, far in places]
        weight = [groups * channels, rows] if turned else [groups * rows, channels]
        shapes = {
            "input": [chance.choice([1, 1, 3]), groups * channels, *sizes],
            "weight": [*weight, *taps], "bias": [groups * rows],
        }  # fmt: skip
        shapes["out"] = [shapes["input"][0], groups * rows, *map(abs, made)]
        lists = {"stride": steps, "padding": before, "dilation": gaps, "output_padding": [0] * axes}
        numbers = {"transposed": turned, "groups": groups, "cube_math_type": 0}

        def make(parameter: Any, dtype: Any) -> Any:
            if parameter.role in shapes:
                return self.tensor(shapes[parameter.role], dtype)
            if parameter.role in lists:
                return self.call("aclCreateIntArray", lists[parameter.role])
            return numbers[parameter.role]

        return make

    def option(self, value: Any, scaled: Callable[[Any], list[int]], parameter: Any) -> Any:
        """An option of a sample: shapes grow as the operands do."""
        if parameter.kind == "ints" and value is not None:
            return self.call(
                "aclCreateIntArray",
                scaled(value) if parameter.role == "normalized_shape" else value,
            )
        if parameter.kind == "bools" and value is not None:
            return self.call("aclCreateBoolArray", value)
        if parameter.kind == "dtype" and value is not None:
            return dtypes.of_numpy(np.dtype(value))
        if parameter.kind in ("ignored", "zero"):
            return 0
        kinds = {"int": int, "str": str, "bool": bool, "float": float | int}
        known = parameter.kind in kinds and isinstance(value, kinds[parameter.kind])
        return value if known and self.random.random() < 0.9 else self.of_kind(parameter.kind)

    def plan(self, name: str) -> None:
        """Phase one with operands that belong together, but for one here and there."""
        entry = self.functions[name].plans
        assert entry is not None
        dtype = self.random.choice([aclnn.ACL_FLOAT, aclnn.ACL_FLOAT16, aclnn.ACL_BF16])
        # Half of the calls have operands that are alike, the other half those of the sample.
        made = self.alike() if self.random.random() < 0.5 else self.sample(entry)
        if entry.name == "aclnnConvolution" and self.random.random() < 0.8:
            made = self.convolution()
        arguments = []
        for parameter in entry.parameters:
            if self.random.random() < 0.03:
                arguments.append(self.junk())
            elif parameter.optional and self.random.random() < 0.3:
                arguments.append(None)
            else:
                arguments.append(made(parameter, dtype))
        result = self.call(name, *arguments)
        if not isinstance(result, tuple) or result[-1] != OK:
            return
        outputs = []
        for parameter, given in zip(entry.parameters, arguments, strict=True):
            written = [given] if parameter.kind in ("output", "inout") else []
            if parameter.kind == "outputs":
                written = given.items
            for one in written:
                view = view_of(one)
                if view is not None:
                    outputs.append((one, view))
        planned = Planned(result[1], entry.name, result[0], outputs)
        planned.remember()
        self.planned.append(planned)
        del self.planned[:-POOL]
        if self.random.random() < 0.8:
            self.call("aclSetAclOpExecutorRepeatable", planned.executor)

    def run(self, planned: Planned) -> None:
        """Phase two."""
        arguments = [
            self.workspace(planned.workspace), planned.workspace, planned.executor,
            self.one_of("aclrtStream") if self.random.random() < 0.4 else None,
        ]  # fmt: skip
        if self.random.random() < 0.1:
            arguments[self.random.randrange(4)] = self.junk()
        name = planned.run if self.random.random() < 0.95 else self.random.choice(list(ENTRIES))
        self.call(name, *arguments)

    def anything(self, name: str) -> None:
        """Any function, with what its parameters' names promise, or junk."""
        function = self.functions[name]
        arguments = []
        for index, parameter in enumerate(function.parameters):
            if self.random.random() < 0.1:
                arguments.append(self.junk())
            elif function.plans:
                arguments.append(self.of_kind(function.plans.parameters[index].kind))
            else:
                arguments.append(self.plausible.get(parameter, self.any_object)())
        if self.random.random() < 0.02:
            del arguments[self.random.randrange(len(arguments) + 1) :]
            arguments += [self.junk() for _ in range(self.random.randrange(3))]
        self.call(name, *arguments)

    def settle(self) -> None:
        """Wait for what is queued: what was to change has changed then."""
        self.call("aclrtSynchronizeDevice")
        self.pending = False

    # --- One call, and what is checked

    def begin(self, text: Callable[[], str]) -> None:
        """Count a call, so that what the process dies in is known."""
        self.made += 1
        if self.last is not None:
            self.last.seek(0)
            self.last.write(self.made.to_bytes(8, "little"))
            self.last.flush()
        if self.made == self.show:
            print(text(), flush=True)
        if self.made % 1000 == 1:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)

    def call(self, name: str, *arguments: Any) -> Any:
        function = self.functions[name]
        self.begin(lambda: f"{name}({', '.join(map(shown, arguments))})")
        executor = arguments[2] if function.runs and len(arguments) == 4 else None
        planned = next((p for p in self.planned if p.executor is executor), None)
        if planned is not None and planned.longest > LONGEST_RUN:
            return None  # it would take as long as it says
        aclnn.aclGetRecentErrMsg()
        self.expect_writes(name, arguments, planned)
        try:
            try:
                result = function.call(*arguments)
            except TypeError as error:
                fits = function.needed <= len(arguments) <= len(function.parameters)
                if fits or "argument" not in str(error):
                    raise
                return None
            except RecursionError:
                raise
            self.judge(function, result)
            if planned is not None and result != OK and not self.pending:
                self.judge_refusal(arguments[0])
        except Exception as error:
            found = (
                str(error) if isinstance(error, FoundError) else f"{type(error).__name__}: {error}"
            )
            self.report(name, arguments, found)
            return None
        self.keep(name, arguments, result)
        return result

    def judge(self, function: Function, result: Any) -> None:
        status = result[-1] if isinstance(result, tuple) else result
        message = result if function.name == "aclGetRecentErrMsg" else aclnn.aclGetRecentErrMsg()
        if function.name in ("aclGetRecentErrMsg", *OF_OTHERS):
            return
        if function.statuses:
            if type(status) is not int or status not in function.statuses:
                raise FoundError(f"status {status!r} is none of {sorted(function.statuses)}")
            failed = status != OK
            self.statuses[status] += 1
        else:
            failed = result is None
        if failed != bool(message):
            raise FoundError(f"result {shown(result)} with message {message!r}")
        for arena in self.arenas:
            if stray := arena.stray():
                raise FoundError(f"bytes {stray} of {arena.bytes.size} changed")

    def judge_refusal(self, workspace: Any) -> None:
        """What is refused when it runs has written nothing, but maybe into its workspace."""
        for arena in self.arenas:
            changed = np.flatnonzero(arena.bytes != arena.before)
            if changed.size and not 0 <= address_in(workspace) - arena.base < arena.bytes.size:
                raise FoundError(f"it is refused, but bytes {changed[:4]} changed")

    def report(self, name: str, arguments: Sequence[Any], found: str) -> None:
        for known in KNOWN:
            if re.fullmatch(known.function, name) and re.search(known.found, found):
                self.known[f"{known.function}: {known.found}"] += 1
                return
        text = f"{name}({', '.join(map(shown, arguments))})"
        raise FoundError(f"call {self.made}: {text}: {found}")

    def expect_writes(self, name: str, arguments: Sequence[Any], planned: Planned | None) -> None:
        """Before the call: a stream may be quicker than we are."""
        if not self.pending:
            for arena in self.arenas:
                arena.settle()
        if planned is not None:
            planned.remember()
            for _, view in planned.outputs:
                for base in planned.bases:
                    self.allow(view.addresses(base))
            self.allow(byte_addresses(address_in(arguments[0]), planned.workspace))
            self.pending |= arguments[3] is not None
        elif name.startswith(("aclrtMemcpy", "aclrtMemset")) and len(arguments) > 3:
            count = as_int(arguments[3])
            if count is not None and 0 < count <= 2**62:
                self.allow(byte_addresses(address_in(arguments[0]), count))
            self.pending |= name.endswith("Async") and arguments[-1] is not None

    def allow(self, addresses: np.ndarray) -> None:
        for arena in self.arenas:
            arena.allow(addresses)

    def keep(self, name: str, arguments: Sequence[Any], result: Any) -> None:
        """What a call made may be given to others, and what it bound may be written."""
        if name == "aclrtMalloc" and result[1] == OK:
            self.addresses.append(result[0])
        for made in result[:-1] if isinstance(result, tuple) else (result,):
            if type(made).__name__.startswith("acl") and not isinstance(made, int):
                pool = self.pool.setdefault(type(made).__name__, [])
                pool.append(made)
                del pool[:-POOL]
        if re.fullmatch(r"aclSet\w*TensorAddr", name) and result == OK:
            for planned in self.planned:
                if planned.executor is arguments[0]:
                    planned.bases.add(address_in(arguments[-1]))

    # --- Arguments

    def junk(self) -> Any:
        """Anything, objects that others wanted included."""
        luck = self.random.random()
        return self.any_object() if luck < 0.3 else self.random.choice(JUNK)()

    def any_object(self) -> Any:
        choices = [*self.pool.values()]
        luck = self.random.random()
        if choices and luck < 0.5:
            return self.random.choice(self.random.choice(choices))
        if luck < 0.6:
            return self.objects(self.random.choice(list(self.pool) or [""]))
        return self.random.choice([self.number, self.dims, self.memory, self.junk])()

    def one_of(self, kind: str) -> Any:
        """An object of this type, destroyed or not."""
        pool = self.pool.get(kind)
        if pool and self.random.random() < 0.9:
            return self.random.choice(pool)
        maker = f"aclrtCreate{kind.removeprefix('aclrt')}"
        if maker in self.functions and not self.functions[maker].parameters:
            made = self.call(maker)
            return made[0] if isinstance(made, tuple) else made
        return None

    def objects(self, kind: str) -> list[Any]:
        return [self.one_of(kind) for _ in range(self.random.randrange(4))]

    def of_kind(self, kind: str) -> Any:
        """What a declaration's parameter wants. A kind that is new here is that of an object, whose type
        is called alike: `int_array` is an aclIntArray."""
        if kind in ("input", "output", "inout"):
            return self.one_of("aclTensor")
        if kind == "scalar":
            return self.scalar()
        plain = {
            "bool": lambda: self.random.random() < 0.5,
            "int": lambda: self.random.choice([-1, 0, 0, 1, 1, 2, 7]),
            "dtype": self.dtype,
            "ints": lambda: self.call(
                "aclCreateIntArray",
                self.random.choices([-1, 0, 1, 2, 3], k=self.random.randrange(4)),
            ),
            "bools": lambda: self.call(
                "aclCreateBoolArray", self.random.choices([False, True], k=3)
            ),
            "inputs": lambda: self.call(
                "aclCreateTensorList",
                [self.one_of("aclTensor") for _ in range(self.random.randrange(1, 4))],
            ),
            "float": lambda: self.random.choice([-1.0, 0.0, 0.25, 1e-6, math.nan, math.inf]),
            "str": lambda: self.random.choice(["none", "tanh", ""]),
        }
        plain["outputs"] = plain["inputs"]
        if kind in plain:
            return plain[kind]()
        alike = [name for name in self.pool if name.lower() == f"acl{kind.replace('_', '')}"]
        return self.one_of(alike[0]) if alike else self.any_object()

    def number(self) -> int:
        return self.random.choice([0, 1, 2, 3, 7, 64])

    def dtype(self) -> Any:
        return self.random.choice(list(aclnn.aclDataType))

    def dims(self) -> list[int]:
        if self.random.random() < 0.05:  # large enough for threads' shares and for whole blocks
            return [self.random.randrange(1000, 2000)]
        sizes = [0, 1, 1, 2, 3, 5, 8, 17]
        return self.random.choices(sizes, k=self.random.choice([0, 1, 1, 2, 2, 3, 9]))[:4]

    def thinned(self, shape: list[int]) -> list[int]:
        """What broadcasts to it."""
        if self.random.random() < 0.7:
            return shape
        dims = [self.random.choice([size, 1]) for size in shape]
        return dims[self.random.randrange(len(dims) + 1) :]

    def strides(self, shape: list[int]) -> list[int] | None:
        if self.random.random() < 0.4:
            return None
        if self.random.random() < 0.1:
            return [self.random.choice([0, 0, 1, 2]) for _ in shape]
        order = self.random.sample(range(len(shape)), len(shape))
        found, step = [0] * len(shape), self.random.choice([1, 1, 2, 3])
        for axis in order:
            found[axis] = step
            step = max(1, step * shape[axis] + self.random.choice([0, 0, 1]))
        return found

    def tensor(self, shape: list[int], dtype: Any) -> Any:
        strides, offset = self.strides(shape), self.random.choice([0, 0, 1, 5])
        steps = strides or list(np.cumprod([1, *reversed([max(1, n) for n in shape])])[-2::-1])
        reach = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True) if n) + 1
        itemsize = dtypes.item_size(dtype)
        data = self.memory(int(reach) * itemsize)
        return self.call(
            "aclCreateTensor",
            shape,
            dtype,
            strides,
            offset,
            aclnn.ACL_FORMAT_ND,
            [int(reach)],
            data,
        )

    def scalar(self) -> Any:
        if self.random.random() < 0.5 and self.pool.get("aclScalar"):
            return self.one_of("aclScalar")
        value = self.random.choice([0.0, -0.0, 0.5, 1, -2, 1e30, math.nan, math.inf])
        whole = isinstance(value, int) and self.random.random() < 0.5
        return self.call("aclCreateScalar", value, aclnn.ACL_INT32 if whole else aclnn.ACL_FLOAT)

    def memory(self, nbytes: int | None = None) -> Any:
        """At least so many bytes, at any address: in an arena, or exactly as many of their own."""
        nbytes = self.random.randrange(1, 300) if nbytes is None else nbytes
        luck = self.random.random()
        if luck < 0.1 and nbytes > 0:
            return guarded(nbytes, at_end=luck < 0.07)
        if luck < 0.3 or nbytes >= ARENA // 2:
            return bytearray(nbytes)
        place = self.random.randrange(1, ARENA - nbytes)
        if self.random.random() < 0.6:
            place = max(8, place // 8 * 8)
        if luck < 0.6:
            return self.device + place
        if luck < 0.97:
            return self.host[place : place + nbytes]
        if luck < 0.98:
            return self.random.choice([None, read_only(nbytes)])
        kind = self.random.choice([kind for kind in ODD_MEMORY if kind.__name__ not in SPARED])
        return np.zeros(nbytes, np.uint8).view(kind)

    def workspace(self, nbytes: int) -> Any:
        luck = self.random.random()
        if luck < 0.05:
            return self.memory(max(1, nbytes // 2))
        if nbytes == 0 and luck < 0.8:
            return None
        return self.memory(nbytes) if luck < 0.2 else guarded(nbytes, at_end=luck < 0.7)

    def _plausible(self) -> dict[str, Callable[[], Any]]:
        """By the names of parameters; for others anything is given."""
        one_of, choice = self.one_of, self.random.choice
        executor = lambda: choice(self.planned).executor if self.planned else None  # noqa: E731
        return {
            "viewDims": self.dims, "storageDims": lambda: choice([self.dims(), [4096]]),
            "stride": lambda: choice([None, self.strides(self.dims())]), "offset": self.number,
            "dataType": self.dtype, "format": lambda: choice(list(aclnn.aclFormat)),
            "tensorData": self.memory, "addr": self.memory, "tensor": lambda: one_of("aclTensor"),
            "scalar": lambda: one_of("aclScalar"), "executor": executor, "index": self.number,
            "value": self.number, "workspace": self.memory, "workspaceSize": self.number,
            "stream": lambda: choice([None, one_of("aclrtStream")]),
            "event": lambda: one_of("aclrtEvent"), "start": lambda: one_of("aclrtEvent"),
            "end": lambda: one_of("aclrtEvent"), "size": lambda: choice([1, 64, 4096]),
            "policy": lambda: choice(list(aclnn.aclrtMemMallocPolicy)),
            "address": lambda: choice([self.device + 77, *self.addresses]),
            "dst": self.memory, "src": self.memory, "destMax": lambda: choice([0, 64, 300]),
            "maxCount": lambda: choice([64, 300]), "count": self.number,
            "kind": lambda: choice(list(aclnn.aclrtMemcpyKind)),
            "attr": lambda: choice(list(aclnn.aclrtMemAttr)), "deviceId": lambda: choice([0, 0, 1]),
        }  # fmt: skip


def address_in(given: Any) -> int:
    """Where memory that this file made begins; 0 for anything else."""
    address = as_int(given)
    if address is not None and 0 <= address < 2**62:
        return address
    return int(given.ctypes.data) if type(given) is np.ndarray else 0


# --- The process that calls, and the one that waits for it --------------------------------------


def fuzz(seed: int, count: int, last: Any = None, show: int | None = None) -> int:
    """Make the calls, print what came of them; 1 if there is a finding."""
    fuzzer = Fuzzer(seed, count, last, show)
    begin = time.perf_counter()
    finding = None
    try:
        fuzzer.go()
    except FoundError as found:
        finding = found
    faulthandler.cancel_dump_traceback_later()
    rate = fuzzer.made / (time.perf_counter() - begin)
    statuses = ", ".join(f"{status} x{n}" for status, n in sorted(fuzzer.statuses.items()))
    known = "".join(f"; known: {text} x{n}" for text, n in fuzzer.known.items())
    result = "1 finding" if finding else "no finding"
    print(
        f"{fuzzer.made} calls of {len(fuzzer.functions)} functions, {rate:.0f} per second, seed {seed}: "
        f"{result}{known} (statuses: {statuses})"
    )
    if finding is None:
        return 0
    print(f"seed {seed}, {finding}\nagain: fuzz_calls.py --seed {seed} --calls {fuzzer.made}")
    return 1


def watched(seed: int, count: int) -> int:
    """The same in a process of its own, which may die."""
    with tempfile.NamedTemporaryFile() as last:
        command = [sys.executable, __file__, "--inside", last.name, "--seed", str(seed)]
        code = subprocess.run([*command, "--calls", str(count)], check=False).returncode
        if code in (0, 1) and last.read(8):
            return code
        last.seek(0)
        made = int.from_bytes(last.read(8), "little")
        print(f"seed {seed}, call {made}: the process ended with {code} in this call:", flush=True)
        subprocess.run(
            [*command, "--calls", str(made), "--show", str(made)],
            check=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        print(f"again: fuzz_calls.py --seed {seed} --calls {made}")
        return 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the C-shaped layer with sequences of calls.")
    parser.add_argument("--calls", type=int, default=20_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same calls")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--show", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside is None:
        return watched(chosen.seed, chosen.calls)
    faulthandler.enable()
    with chosen.inside.open("r+b") as last:
        return fuzz(chosen.seed, chosen.calls, last, chosen.show)


if __name__ == "__main__":
    sys.exit(main())
