"""A trace: the recording of one run of a function, and the memory that its arrays show."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from types import FrameType
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._frames import calls_back
from aclnn.acl.errors import AclnnError, invalid
from aclnn.api import refusals
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.compiler.joining import Recording
from aclnn.compiler.phase_one import elements_meet
from aclnn.execution import arrays
from aclnn.execution._operand import reads
from aclnn.graph import is_contiguous
from aclnn.operators.checks import TensorSpec
from aclnn.operators.lowering import Number
from aclnn.tracing.promotion import forms_in

PACKAGE = str(FilePath(__file__).resolve().parents[1])
Path = tuple[tuple[str, Any], ...]  # views, one of another: what makes it of a recording, and how


class Memory:
    """What a traced array is a view of, and the value that it holds at the moment."""

    def __init__(self, trace: Trace, value: int, place: int | None = None, name: str = ""):
        self.trace = trace
        self.value = self.like = value
        self.place = place  # among the inputs of the trace; None for what it made itself
        self.name = name
        self.version = 0

    def view(self, path: Path) -> int:
        """The value of a view."""
        value = self.value
        for make, how in path:
            value = getattr(self.trace.recording, make)(value, how)
        return value

    def write(self, path: Path, value: int) -> None:
        """Let a view hold a value, which has its shape and dtype."""
        recording, like = self.trace.recording, self.like
        self._refuse_writing(recording.spec(like))
        if not recording.spec(value).size:
            return
        value = self._written(self.value, path, value)
        spec = recording.spec(like)
        if not is_contiguous(spec.shape, spec.strides):
            value = recording.laid_out(value, like)
        self.value = value
        self.version += 1

    def _refuse_writing(self, spec: TensorSpec) -> None:
        """Arguments that NumPy would not write, or in which it would write several elements."""
        if self.place is None:
            return
        if not spec.writable:
            raise invalid(f"{self.name} is read-only, but is written in place")
        if spec.size and elements_meet(spec):
            raise invalid(
                f"{self.name} has strides {spec.strides} for shape {spec.shape}, which make elements "
                "share memory, but is written in place: copy it first"
            )

    def _written(self, old: int, path: Path, new: int) -> int:
        if not path:
            return new
        recording, (make, how) = self.trace.recording, path[0]
        part = self._written(getattr(recording, make)(old, how), path[1:], new)
        if make == "sliced":
            return recording.replaced(old, how, part)
        if make == "transposed":
            return recording.transposed(part, tuple(np.argsort(how).tolist()))
        if make == "reshaped":
            return recording.reshaped(part, recording.spec(old).shape)
        raise invalid("a view that repeats elements cannot be written")


class Trace:
    """One run of a function on traced arrays.

    Attributes
    ----------
    recording : Recording
    inputs : list of Memory
        Arguments, then arrays that the function closes over.
    held : list of array
        The latter.
    """

    def __init__(self, name: str, make: Callable[..., Any], function: Callable[..., Any]):
        self.recording = Recording(name)
        self.recording.origin = self.origin
        self.inputs: list[Memory] = []
        self.held: list[np.ndarray] = []
        self._known: dict[tuple[Any, ...], Memory] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._make = make  # of a memory and a path a traced array
        self._function = function
        code = getattr(inspect.unwrap(function), "__code__", None)
        self._own = "" if code is None else code.co_filename
        self._lines: dict[tuple[str, int], str] = {}

    @calls_back
    def run(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call the function; what it records has its lines for an origin."""
        linecache.checkcache(self._own)
        return self._function(*args, **named)

    def origin(self) -> tuple[str, ...]:
        """The lines that run now: of the function, then of what it called, without this package's.

        Empty where the function does not run.
        """
        found = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not _RUN:
            file = frame.f_code.co_filename
            if not file.startswith(PACKAGE) or file == self._own:
                found.append(self._line(frame))
            frame = frame.f_back
        return () if frame is None else tuple(reversed(found))

    def _line(self, frame: FrameType) -> str:
        """The line of a frame: file, number and what stands there."""
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in self._lines:
            words = linecache.getline(*place, frame.f_globals).strip()
            self._lines[place] = f"{os.path.basename(place[0])}:{place[1]}: {words}".removesuffix(
                ": "
            )
        return self._lines[place]

    # --- Arrays -------------------------------------------------------------------------------------

    def argument(self, name: str, spec: TensorSpec) -> Memory:
        """The memory of an argument."""
        memory = Memory(self, self.recording.input(name, spec), len(self.inputs), name)
        self.inputs.append(memory)
        return memory

    def made(self, value: int) -> Any:
        """A traced array with memory of its own."""
        return self._make(Memory(self, value))

    def memory_of(self, array: np.ndarray) -> Memory:
        """The memory of an array that the function closes over."""
        found = _identity(array)
        if found not in self._known:
            if not reads(array):
                raise invalid(
                    f"an array of dtype {array.dtype} with strides {array.strides} that the "
                    "function closes over: compiled functions need native, aligned arrays"
                )
            name = self._names.get(found, f"held_{len(self.held)}")
            self.held.append(array)
            self._known[found] = self.argument(name, spec_of(array))
        return self._known[found]

    def name(self, array: np.ndarray, name: str) -> None:
        """Call an array that the function closes over by a name, if it is used."""
        self._names.setdefault(_identity(array), name)

    def value_of(self, given: Any, role: str) -> int:
        """The value of an operand: a traced array, or any other array."""
        if hasattr(type(given), "__aclnn_function__"):
            return given.value_in(self)
        return self.memory_of(arrays.as_ndarray(given, role)).value

    def taken(self, given: Any) -> Any:
        """An array as a traced one."""
        if hasattr(type(given), "__aclnn_function__"):
            return given
        return self._make(self.memory_of(arrays.as_ndarray(given, "operand")))

    # --- Calls --------------------------------------------------------------------------------------

    def call(
        self,
        handle: Any,
        given: Sequence[Any],
        out: Any,
        numbers: Sequence[Any],
        switches: Sequence[Any] | None,
    ) -> Any:
        """Record the call of a functional form."""
        operator, recording = handle.handle.operator, self.recording
        parts, _ = arrays.taken_apart(operator, given)
        operands = arrays.with_arrays_for_lists(operator, parts)
        values = [None if one is None else self.value_of(one, role) for role, one in operands]
        specs = [recording.spec(value) for value in values if value is not None]
        facts, forms, switches = handle.described(numbers, switches, [int(s.dtype) for s in specs])
        roles = handle.outputs_of([one for _, one in operands], switches)
        targets = self._targets(handle, roles, out)
        call, done = recording.describe(
            operator,
            values,
            facts,
            switches,
            handle.names,
            [None if one is None else one.spec for one in targets],
        )
        if done and all(target is not None for target in targets):
            return out
        constants: list[Number] = list(forms)
        made = recording.call(operator, call, values, constants)
        results = [
            self._result(made.get(role), target)
            for role, target in zip(roles, targets, strict=True)
        ]
        if out is not None:
            return out
        single = len(results) == 1 and operator.makes is None
        return results[0] if single else tuple(results)

    def form(self, name: str, *operands: Any, out: Any = None, **options: Any) -> Any:
        """Record the call of a functional form by its name, numbers among its operands."""
        handle = HANDLES_BY_NAME[name]
        operator = handle.handle.operator
        given = list(operands)
        if operator.number_form is not None:
            role, _ = operator.number_form
            place = operator.kernel_operands.index(role)
            if is_number(given[place]) and handle.number_form is not None:
                options[role] = given.pop(place)
                handle = handle.number_form
                operator = handle.handle.operator
        dtype = self._common_dtype(given)
        given = [self.number(one, dtype) if is_number(one) else one for one in given]
        try:
            return self.call(
                handle,
                given,
                out,
                [options.get(a.role, a.default) for a in operator.scalars],
                tuple([options.get(a.role, a.default) for a in operator.switches]) or None,
            )
        except AclnnError as error:
            told = dict(zip(operator.kernel_operands, given, strict=True))
            raise refusals.reworded(name, error, told, in_place=out is not None) from None

    def _common_dtype(self, given: Sequence[Any]) -> np.dtype:
        """The dtype that numbers take: of the last array beside them."""
        found = [one.dtype for one in given if hasattr(one, "dtype") and not is_number(one)]
        return found[-1]

    def number(self, value: Any, dtype: np.dtype) -> Any:
        """A number as an array without dimensions."""
        forms = forms_in(value, dtype)
        return self.made(self.recording.filled(forms, dtypes.of_numpy(dtype), ()))

    def _targets(self, handle: Any, roles: Sequence[str], out: Any) -> list[Any]:
        """What a call writes into, as traced arrays, or None for what it makes."""
        count, listed = len(roles), isinstance(out, tuple | list)
        if out is None:
            return [None] * count
        single = count == 1 and not handle.handle.makes_list
        given = [out] if single else list(out) if listed else []
        if len(given) != count:
            raise invalid(f"{handle.name}: out must be a tuple of {count} arrays")
        return [None if one is None else self.taken(one) for one in given]

    def _result(self, value: int | None, target: Any) -> Any:
        if value is None:
            return None
        if target is None:
            return self.made(value)
        target.write(value)
        return target


_RUN = Trace.run.__code__


def _identity(array: np.ndarray) -> tuple[Any, ...]:
    """What tells the memory of an array, and how it is seen."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.name


def is_number(given: Any) -> bool:
    """Whether an operand is a number, and no array."""
    return isinstance(given, complex | float | int | np.generic)


def spec_of(array: np.ndarray) -> TensorSpec:
    """The description of an array.

    >>> spec_of(np.zeros((2, 3), np.float16).T).strides
    (1, 3)
    """
    item = array.itemsize
    return TensorSpec(
        dtypes.of_numpy(array.dtype),
        array.shape,
        tuple([stride // item for stride in array.strides]),
        writable=array.flags.writeable,
    )
