"""A trace: the recording of one run of a function, and the memory that its arrays show."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import FrameType
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._frames import calls_back
from aclnn.acl.errors import AclnnError, invalid
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.compiler.phase_one import elements_meet
from aclnn.compiler.recording import Recording
from aclnn.errors import refusals
from aclnn.execution import arrays
from aclnn.execution._operand import reads
from aclnn.graph import is_contiguous
from aclnn.operators.checks import TensorSpec
from aclnn.operators.lowering import Number
from aclnn.tracing._guards import Guards, fingerprint
from aclnn.tracing.captured_variables import CapturedVariables
from aclnn.tracing.promotion import forms_in, number_in
from aclnn.tracing.run_numbers import RunNumber, Values

PACKAGE = str(FilePath(__file__).resolve().parents[1])
Path = tuple[tuple[str, Any], ...]  # views, one of another: what makes it of a recording, and how


class Memory:
    """Memory of a traced array, and the value that it holds at the moment."""

    def __init__(self, trace: Trace, value: int, index: int | None = None, name: str = ""):
        self.trace = trace
        self.value = self.like = value
        self.place = index  # among the inputs of the trace; None for what it made itself
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


@dataclass(slots=True)
class Held:
    """An array that is an input though it is no argument.

    Attributes
    ----------
    given : object
        The caller's array.
    array : array
        What the input is bound to: for one that the function made, a copy from then.
    place : int
        Among the inputs.
    node, offset : int
        Where it is found again, and from which byte of that array on; -1 for one that the function
        seems to have made.
    line : str
        Where the function used it.
    after : str
        An array outside of its dtype that had been written by then, if any.
    """

    given: Any
    array: np.ndarray
    place: int
    node: int
    offset: int
    line: str
    after: str


@dataclass(frozen=True, slots=True)
class RunForms:
    """Numbers of one call, as functions of the floats that a run is given."""

    handle: Any
    of: tuple[Callable[[Values], Any], ...]
    switches: Any
    dtypes: tuple[int, ...]
    facts: tuple[int, ...] | None  # None where no plan depends on them
    masks: tuple[int, ...]
    taken: tuple[int, ...]  # those that are numbers of the run, in the order of their places

    def forms(self, values: Values) -> list[Any] | None:
        """The forms that kernels read; None where plans depend on another fact."""
        numbers = [of(values) for of in self.of]
        for index in self.taken:
            if type(numbers[index]) is not float:  # a complex power
                return None
        if self.facts is None:
            return numbers
        facts, forms, _ = self.handle.described(numbers, self.switches, self.dtypes)
        for (dtype, bits, _), mask, known in zip(facts, self.masks, self.facts, strict=True):
            if (bits | dtype << 8) & mask != known:
                return None
        return [forms[index] for index in self.taken]


class Trace:
    """One run of a function on traced arrays.

    Attributes
    ----------
    recording : Recording
    inputs : list of Memory
        Arguments, then arrays that the function reaches otherwise.
    held : list of Held
        The latter.
    run_forms : list of RunForms
        What the numbers of the recording are.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        function: Callable[..., Any],
        captured: CapturedVariables | None = None,
    ):
        self.recording = Recording(name)
        self.recording.origin = self.origin
        self.inputs: list[Memory] = []
        self.held: list[Held] = []
        self.run_forms: list[RunForms] = []
        self.integers_read: set[int] = set()  # places of inputs whose values were asked for
        self.positions: set[int] = set()  # places of inputs that are indices
        self._captured = captured
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
        index = frame.f_code.co_filename, frame.f_lineno
        if index not in self._lines:
            words = linecache.getline(*index, frame.f_globals).strip()
            self._lines[index] = f"{os.path.basename(index[0])}:{index[1]}: {words}".removesuffix(
                ": "
            )
        return self._lines[index]

    # --- Arrays -------------------------------------------------------------------------------------

    def argument(self, name: str, spec: TensorSpec) -> Memory:
        """The memory of an argument."""
        memory = Memory(self, self.recording.input(name, spec), len(self.inputs), name)
        self.inputs.append(memory)
        return memory

    def made(self, value: int) -> Any:
        """A traced array with memory of its own."""
        return self._make(Memory(self, value))

    def memory_of(self, value: Any, role: str = "operand") -> Memory:
        """The memory of an array that is no traced one."""
        array = arrays.as_ndarray(value, role)
        node, offset = self._found(value, array)
        made = node < 0 and self._captured is not None
        known = (*_identity(array), node, fingerprint(array) if made and reads(array) else 0)
        if known in self._known:
            return self._known[known]
        if not reads(array):
            raise invalid(
                f"an array of dtype {array.dtype} with strides {array.strides} that the "
                "function closes over: compiled functions need native, aligned arrays"
            )
        name = self._names.get(_identity(array)) or self._name_of(node, offset)
        bound = _laid_out_copy(array) if made else array
        after = self._written_outside(array.dtype) if made else ""
        line = self._line_now()
        self.held.append(Held(value, bound, len(self.inputs), node, offset, line, after))
        self._known[known] = self.argument(self._free_name(name), spec_of(array))
        return self._known[known]

    def _written_outside(self, dtype: np.dtype) -> str:
        """An array outside, of a dtype, that steps of the trace write: it does not hold that yet."""
        for one in self.held:
            memory = self.inputs[one.place]
            if one.node >= 0 and memory.version and one.array.dtype == dtype:
                return memory.name
        return ""

    def _found(self, value: Any, array: np.ndarray) -> tuple[int, int]:
        """The node of an array, and from which byte on it is one of that node's."""
        if self._captured is None:
            return -1, 0
        return self._captured.place_of(value, array)

    def _name_of(self, node: int, offset: int) -> str:
        if node < 0 or self._captured is None:
            return f"held_{len(self.held)}"
        return "_".join(re.findall(r"\w+", self._captured.texts[node])) or f"held_{len(self.held)}"

    def _free_name(self, name: str) -> str:
        while name in self.recording.input_names:
            name += "_"
        return name

    def name(self, array: np.ndarray, name: str) -> None:
        """Call an array that the function closes over by a name, if it is used."""
        self._names.setdefault(_identity(array), name)

    def _line_now(self) -> str:
        """The line of the user's that runs now, for messages."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not _RUN:
            file = frame.f_code.co_filename
            if not file.startswith(PACKAGE) or file == self._own:
                words = linecache.getline(file, frame.f_lineno, frame.f_globals).strip()
                return f"in {frame.f_code.co_name}, {file}:{frame.f_lineno}: {words}"
            frame = frame.f_back
        return ""

    def value_of(self, value: Any, role: str) -> int:
        """The value of an operand: a traced array, or any other array."""
        if hasattr(type(value), "__aclnn_function__"):
            return value.value_in(self)
        return self.memory_of(value, role).value

    def taken(self, value: Any) -> Any:
        """An array as a traced one."""
        if hasattr(type(value), "__aclnn_function__"):
            return value
        return self._make(self.memory_of(value))

    def made_inside(self) -> list[Held]:
        """The arrays that the function seems to have made itself."""
        return [] if self._captured is None else [one for one in self.held if one.node < 0]

    def is_own(self, index: int) -> bool:
        """Whether an input is an array that the function made, which nobody else sees."""
        return any(one.place == index for one in self.made_inside())

    def is_settled(self, owners: Sequence[Any]) -> bool:
        """Whether what it found outside is still there, and not what the function put there."""
        changed = set() if self._captured is None else self._captured.changed(owners)
        return not any(one.node in changed for one in self.held)

    def unkept(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A step of the caller's, which does not keep alive the object that the plan ends with."""
        owner = getattr(function, "__self__", None)
        if self._captured is None or owner is None or not self._captured.keeps(owner):
            return function
        weak = weakref.WeakMethod(function)

        def step(*views: Any, out: Any) -> None:
            found = weak()
            assert found is not None, "who runs a plan for an object has the object"
            found(*views, out=out)

        step.__name__ = getattr(function, "__name__", "call")
        return step

    def end(self) -> None:
        """Let go of the caller's objects; what is still traced keeps the rest."""
        self._captured, self.held = None, []
        self.recording.origin = tuple

    def guards(self, owners: Sequence[Any]) -> tuple[Guards | None, list[str]]:
        """Objects to look up at each call, and the names of their nodes."""
        if self._captured is None:
            return None, []
        return self._captured.guards(self.held, owners)

    # --- Calls --------------------------------------------------------------------------------------

    def call(
        self,
        handle: Any,
        arguments: Sequence[Any],
        out: Any,
        numbers: Sequence[Any],
        switches: Sequence[Any] | None,
    ) -> Any:
        """Record the call of a functional form."""
        operator, recording = handle.handle.operator, self.recording
        parts, _ = arrays.taken_apart(operator, arguments)
        operands = arrays.with_arrays_for_lists(operator, parts)
        values = [None if one is None else self.value_of(one, role) for role, one in operands]
        specs = [recording.spec(value) for value in values if value is not None]
        known = [float_now(one) for one in numbers]
        kinds = [int(s.dtype) for s in specs]
        facts, forms, switches = handle.described(known, switches, kinds)
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
        places = self._numbers_of_run(handle, numbers, switches, kinds, facts, forms)
        made = recording.call(operator, call, values, places)
        results = [
            self._result(made.get(role), target)
            for role, target in zip(roles, targets, strict=True)
        ]
        if out is not None:
            return out
        single = len(results) == 1 and operator.makes is None
        return results[0] if single else tuple(results)

    def _numbers_of_run(
        self,
        handle: Any,
        numbers: Sequence[Any],
        switches: Any,
        dtypes: Sequence[int],
        facts: Any,
        forms: Sequence[Any],
    ) -> list[Number]:
        """Each number of a call as its place among those of the run, or as its forms."""
        taken = tuple([n for n, one in enumerate(numbers) if type(one) is RunNumber])
        if not taken:
            return list(forms)
        functions = tuple([one.of if type(one) is RunNumber else _always(one) for one in numbers])
        masks: list[int] = []
        if facts is not None:
            masks = [handle.handle.fact_mask(index) for index in range(len(facts))]
            facts = [
                (f | int(dtype) << 8) & m for (dtype, f, _), m in zip(facts, masks, strict=True)
            ]
        known = None if facts is None else tuple(facts)
        self.run_forms.append(
            RunForms(handle, functions, switches, tuple(dtypes), known, tuple(masks), taken)
        )
        return [self.recording.number(form) if n in taken else form for n, form in enumerate(forms)]

    def form(self, name: str, *operands: Any, out: Any = None, **options: Any) -> Any:
        """Record the call of a functional form by its name, numbers among its operands."""
        handle = HANDLES_BY_NAME[name]
        operator = handle.handle.operator
        arguments = list(operands)
        if operator.number_form is not None:
            role, _ = operator.number_form
            index = operator.kernel_operands.index(role)
            if is_number(arguments[index]) and handle.number_form is not None:
                options[role] = arguments.pop(index)
                handle = handle.number_form
                operator = handle.handle.operator
        dtype = self._common_dtype(arguments)
        arguments = [self.number(one, dtype) if is_number(one) else one for one in arguments]
        try:
            return self.call(
                handle,
                arguments,
                out,
                [options.get(a.role, a.default) for a in operator.scalars],
                tuple([options.get(a.role, a.default) for a in operator.switches]) or None,
            )
        except AclnnError as error:
            by_role = dict(zip(operator.kernel_operands, arguments, strict=True))
            raise refusals.reworded(name, error, by_role, in_place=out is not None) from None

    def _common_dtype(self, arguments: Sequence[Any]) -> np.dtype:
        """The dtype that numbers take: of the last array with them."""
        found = [one.dtype for one in arguments if hasattr(one, "dtype") and not is_number(one)]
        return found[-1]

    def number(self, value: Any, dtype: np.dtype) -> Any:
        """A number as an array without dimensions."""
        argument: Number
        rounded = number_in(value, dtype)
        if type(rounded) is RunNumber:
            (argument,) = self._numbers_of_run(None, [rounded], None, (), None, [(0.0, 0.0, 0)])
        else:
            argument = forms_in(value, dtype)
        return self.made(self.recording.filled(argument, dtypes.of_numpy(dtype), ()))

    def _targets(self, handle: Any, roles: Sequence[str], out: Any) -> list[Any]:
        """Traced arrays that a call writes into, or None for what it makes."""
        count, listed = len(roles), isinstance(out, tuple | list)
        if out is None:
            return [None] * count
        single = count == 1 and not handle.handle.makes_list
        arguments = [out] if single else list(out) if listed else []
        if len(arguments) != count:
            raise invalid(f"{handle.name}: out must be a tuple of {count} arrays")
        return [None if one is None else self.taken(one) for one in arguments]

    def _result(self, value: int | None, target: Any) -> Any:
        if value is None:
            return None
        if target is None:
            return self.made(value)
        target.write(value)
        return target


_RUN = Trace.run.__code__


def float_now(value: Any) -> Any:
    """A number as it is while the function is traced, without the function's asking for it."""
    return value.now if type(value) is RunNumber else value


def _always(value: Any) -> Callable[[Values], Any]:
    return lambda _: value


def _laid_out_copy(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides, or dense where elements are repeated."""
    return array.copy(order="K")


def _identity(array: np.ndarray) -> tuple[Any, ...]:
    """Identity of an array's memory, and of the view of it."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.name


def is_number(value: Any) -> bool:
    """Whether an operand is a number, and no array."""
    return isinstance(value, complex | float | int | np.generic)


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
