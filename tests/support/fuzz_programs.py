"""Random programs: compiled functions beside single calls, captures beside calls that run at once.

`fuzz_calls.py` makes them between its calls. A program of the first kind grows while it runs on arrays: a step
that a single call refuses is no part of it. Then `aclnn.compile` runs the same steps on copies that lie in
memory as the arrays did, and every bit of results and arguments has to agree.
"""

from __future__ import annotations

import ctypes
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

import aclnn

OK = 0
MOST_ELEMENTS = 4096  # of a value
REFUSALS = (ValueError, TypeError, IndexError, OverflowError)  # of single calls, and of NumPy
# What compiled functions refuse, as the documentation says: values of more than 8 dimensions, and writing into
# arguments that repeat their elements, also where nothing is written.
REFUSED = re.compile(r"at most 8 dimensions|is read-only")
# Results that lie where the function writes an argument itself.
REFUSED_OUT = re.compile(f"{REFUSED.pattern}|shares memory with")
DTYPES = (np.float32, np.float32, np.float32, np.float16, ml_dtypes.bfloat16, np.int32)
NUMBERS = (0.0, -0.0, 0.5, 1.0, -2.0, 3.0, 1e-3, math.inf)
UNARY = (
    "relu", "neg", "abs", "exp", "sigmoid", "silu", "gelu", "tanh", "sqrt", "reciprocal", "floor",
    "square", "softplus", "mish", "hardswish", "elu", "leaky_relu", "log_sigmoid", "erf", "rsqrt",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "lt", "eq")
IN_PLACE = ("relu_", "neg_", "exp_", "sigmoid_", "zero_")
ROWS = ("softmax", "log_softmax", "sum", "mean", "amax", "cumsum")
Step = tuple[str, Callable[..., Any], tuple[int, ...]]  # as text, what it does, on which values


# --- Compiled functions ---------------------------------------------------------------------------


class Argument:
    """A view of memory of its own that can be made twice."""

    def __init__(self, chance: random.Random):
        self.dtype = np.dtype(chance.choice(DTYPES))
        rank = chance.choice((1, 2, 2, 2, 3, 3, 9))
        sizes = (1, 1, 2) if rank > 4 else (0, 1, 2, 3, 4, 5, 8)
        self.shape = tuple(chance.choice(sizes) for _ in range(rank))
        self.strides, self.offset, step = [0] * rank, 0, 1
        for axis in (
            chance.sample(range(rank), rank) if chance.random() < 0.4 else range(rank)[::-1]
        ):
            gap = chance.choice((1, 1, 1, 2))
            self.strides[axis] = step * gap
            step *= max(1, self.shape[axis] * gap)
        for axis, size in enumerate(self.shape):
            luck = chance.random()
            if luck < 0.1:
                self.strides[axis] = 0
            elif luck < 0.25:
                self.offset += max(0, size - 1) * self.strides[axis]
                self.strides[axis] *= -1
        numbers = [chance.choice((*NUMBERS, chance.gauss(0, 2))) for _ in range(step)]
        if self.dtype.kind == "i":
            numbers = [int(x) if math.isfinite(x) else 7 for x in numbers]
        self.memory = np.array(numbers, self.dtype)

    def make(self) -> tuple[np.ndarray, np.ndarray]:
        """The memory, and the view of it; one that repeats its elements is read only."""
        memory = self.memory.copy()
        steps = [step * self.dtype.itemsize for step in self.strides]
        repeats = any(n > 1 and not step for n, step in zip(self.shape, steps, strict=True))
        return memory, as_strided(memory[self.offset :], self.shape, steps, writeable=not repeats)

    def __repr__(self) -> str:
        return f"{self.dtype} {self.shape} strides {tuple(self.strides)}"


class Program:
    """Steps that work on arrays and on traced ones, and the arguments that they were made with."""

    def __init__(self, chance: random.Random):
        self.chance = chance
        self.arguments = [Argument(chance) for _ in range(chance.randrange(1, 4))]
        self.steps: list[Step] = []

    def grow(self, count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Take steps that single calls take; memory and results then."""
        memory, values = map(list, zip(*(one.make() for one in self.arguments), strict=True))
        for _ in range(count):
            step = self.step(values)
            try:
                made = apply(step, values)
            except REFUSALS:
                continue
            if not isinstance(made, np.ndarray) or made.size > MOST_ELEMENTS:
                continue
            self.steps.append(step)
            values.append(made)
        return memory, [np.array(value) for value in values[-3:]]

    def replay(self, *arguments: Any) -> list[Any]:
        values = list(arguments)
        for step in self.steps:
            values.append(apply(step, values))
        return values[-3:]

    def compiled(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The same by `aclnn.compile`."""
        memory, arguments = zip(*(one.make() for one in self.arguments), strict=True)
        threads = self.chance.choice((None, None, 1, 2))
        function = aclnn.compile(self.replay, threads=threads)
        return list(memory), function(*arguments)

    def written_over(self, expected: np.ndarray) -> tuple[np.ndarray | None, str]:
        """The last result, in memory of an argument, and how it came there; None where it has none."""
        chance = self.chance
        memory, arguments = zip(*(one.make() for one in self.arguments), strict=True)
        targets = [
            at
            for at, one in enumerate(memory)
            if one.dtype == expected.dtype and one.size >= expected.size
        ]
        if not targets:
            return None, ""
        at = chance.choice(targets)
        begin = chance.randrange(memory[at].size - expected.size + 1)
        flat = memory[at][begin : begin + expected.size]
        target = chance.choice(
            (
                flat.reshape(expected.shape),
                flat.reshape(expected.shape[::-1]).T,
                flat[::-1].reshape(expected.shape),
            )
        )
        fits = arguments[at].shape == expected.shape and arguments[at].flags.writeable
        if fits and chance.random() < 0.6:
            target, begin = arguments[at], 0
        function = aclnn.compile(lambda *given: self.replay(*given)[-1], threads=None)
        elsewhere = [one.make()[1] for one in self.arguments]
        ways: dict[str, Callable[..., Any]] = {
            "call": lambda: function(*arguments, out=target),
            "executor": lambda: function.executor(*arguments, out=target).run(),
            "run": lambda: function.executor(*elsewhere).run(*arguments, out=target),
        }
        way = chance.choice(list(ways))
        ways[way]()
        return target, f"by {way} into v{at} from element {begin} on, strides {target.strides}"

    def __str__(self) -> str:
        lines = [f"v{at} = {one!r}" for at, one in enumerate(self.arguments)]
        for at, (text, _, operands) in enumerate(self.steps, len(lines)):
            lines.append(f"v{at} = {text.format(*(f'v{one}' for one in operands))}")
        return "\n".join(lines)

    # --- Steps

    def step(self, values: Sequence[np.ndarray]) -> Step:
        chance = self.chance
        at = chance.choice((len(values) - 1, chance.randrange(len(values))))
        other = chance.randrange(len(values))
        alike = [i for i, value in enumerate(values) if value.shape == values[at].shape]
        other = chance.choice((other, chance.choice(alike)))
        kind = chance.choice(
            (self.view, self.view, self.call, self.call, self.call, self.two, self.two, self.write, self.move)
        )  # fmt: skip
        return kind(values[at], at, other)

    def view(self, x: np.ndarray, at: int, other: int) -> Step:
        chance = self.chance
        start, stop = chance.randrange(-2, 4), chance.choice((None, 1, 2, 4))
        order = chance.sample(range(x.ndim), x.ndim)
        keys: dict[str, Any] = {
            "{0}[None]": lambda v: v[None],
            "{0}[..., None]": lambda v: v[..., None],
            "{0}[::-1]": lambda v: v[::-1],
            "{0}[..., ::2]": lambda v: v[..., ::2],
            "{0}[..., ::-2]": lambda v: v[..., ::-2],
            f"{{0}}[{start}:{stop}]": lambda v: v[start:stop],
            f"{{0}}[..., {start}:{stop}]": lambda v: v[..., start:stop],
            "{0}[0, ...]": lambda v: v[0, ...],
            "{0}.T": lambda v: v.T,
            f"{{0}}.transpose({order})": lambda v: v.transpose(order),
            "{0}.reshape(-1)": lambda v: v.reshape(-1),
            f"{{0}}.reshape{x.shape[::-1]}": lambda v: v.reshape(x.shape[::-1]),
            "np.broadcast_to({0}, (3, *{0}.shape))": lambda v: np.broadcast_to(v, (3, *v.shape)),
            "{0}.copy()": lambda v: v.copy(),
        }
        text = chance.choice(list(keys))
        return text, keys[text], (at,)

    def call(self, x: np.ndarray, at: int, other: int) -> Step:
        chance = self.chance
        luck, number = chance.random(), chance.choice(NUMBERS)
        if luck < 0.4:
            return one_call(chance.choice(UNARY), at)
        if luck < 0.65:
            return one_call(chance.choice(("add", "sub", "mul", "div", "pow")), at, given=(number,))
        name, dim = chance.choice(ROWS), chance.randrange(-1, max(1, x.ndim))
        keep = (chance.random() < 0.5,) if name in ("sum", "mean", "amax") else ()
        return one_call(name, at, given=(dim, *keep))

    def two(self, x: np.ndarray, at: int, other: int) -> Step:
        name = self.chance.choice((*BINARY, "matmul", "where", "addmm"))
        if name == "matmul":
            return "matmul({0}, {1}.T)", lambda a, b: aclnn.matmul(a, b.T), (at, other)
        if name == "where":
            make = lambda a, b: aclnn.where(aclnn.gt(a, b), a, b)  # noqa: E731
            return "where(gt({0}, {1}), {0}, {1})", make, (at, other)
        if name == "addmm":
            beta, alpha = self.chance.choice((0.0, 1.0, 0.5)), self.chance.choice((0.0, 1.0, 2.0))
            make = lambda a, b: aclnn.addmm(a, a, b, beta=beta, alpha=alpha)  # noqa: E731
            return f"addmm({{0}}, {{0}}, {{1}}, beta={beta}, alpha={alpha})", make, (at, other)
        return one_call(name, at, other)

    def write(self, x: np.ndarray, at: int, other: int) -> Step:
        name = self.chance.choice((*IN_PLACE, "add_", "mul_", "assign", "assign", "number"))
        if name == "assign":
            return "assign({0}, {1})", assign, (at, other)
        if name == "number":
            number = self.chance.choice(NUMBERS)
            return f"assign({{0}}, {number})", lambda v: assign(v, number), (at,)
        return one_call(name, at, *((other,) if name in ("add_", "mul_") else ()))

    def move(self, x: np.ndarray, at: int, other: int) -> Step:
        chance = self.chance
        dim = chance.randrange(max(1, x.ndim))
        pads = [chance.choice((0, 0, 1, 2, -1, -3)) for _ in range(2 * min(x.ndim, 2))]
        counts = [chance.choice((1, 1, 2)) for _ in range(x.ndim + chance.randrange(2))]
        order = chance.sample(range(x.ndim), x.ndim)
        dtype = chance.choice(("float32", "float16", "bfloat16"))
        keys: dict[str, Any] = {
            f"cat([{{0}}, {{1}}], {dim})": lambda a, b: aclnn.cat([a, b], dim),
            f"stack([{{0}}, {{1}}], {dim})": lambda a, b: aclnn.stack([a, b], dim),
            f"constant_pad_nd({{0}}, {pads}, 1.5)": lambda a, b: aclnn.constant_pad_nd(
                a, pads, 1.5
            ),
            f"repeat({{0}}, {counts})": lambda a, b: aclnn.repeat(a, counts),
            f"permute({{0}}, {order})": lambda a, b: aclnn.permute(a, order),
            f"cast({{0}}, {dtype!r})": lambda a, b: aclnn.cast(a, dtype),
            "tril({0}, 1)": lambda a, b: aclnn.tril(a, 1),
            "embedding({0}, cast(lt({1}, {1}), 'int32'))": lambda a, b: aclnn.embedding(
                a, aclnn.cast(aclnn.lt(b, b), "int32")
            ),
            f"gather_v2({{0}}, {dim}, cast(lt({{1}}, {{1}}), 'int32'))": lambda a, b: (
                aclnn.gather_v2(a, dim, aclnn.cast(aclnn.lt(b, b), "int32"))
            ),
        }
        text = chance.choice(list(keys))
        return text, keys[text], (at, other)


def one_call(name: str, *operands: int, given: tuple[Any, ...] = ()) -> Step:
    texts = [*(f"{{{at}}}" for at in range(len(operands))), *map(repr, given)]
    return f"{name}({', '.join(texts)})", lambda *v: getattr(aclnn, name)(*v, *given), operands


def assign(target: Any, value: Any) -> Any:
    whole = isinstance(target, np.ndarray) and target.dtype.kind == "i"
    if whole and not np.all(np.abs(np.asarray(value, np.float64)) < 2**31):
        raise ValueError("what NumPy makes of such a number depends on the processor")
    target[...] = value
    return target


def apply(step: Step, values: Sequence[Any]) -> Any:
    _, make, operands = step
    return make(*(values[at] for at in operands))


def same_bits(found: Any, expected: np.ndarray) -> bool:
    found = np.asarray(found)
    alike = (found.dtype, found.shape) == (expected.dtype, expected.shape)
    return alike and found.tobytes() == expected.tobytes()


def check_compiled(chance: random.Random) -> tuple[int, str]:
    """How many steps it has, and what is wrong with it: nothing, or a text that has the program."""
    program = Program(chance)
    with np.errstate(all="ignore"):
        memory, expected = program.grow(chance.randrange(1, 10))
        try:
            after, found = program.compiled()
        except Exception as error:
            if REFUSED.search(str(error)):
                return len(program.steps), ""
            return len(program.steps), f"{type(error).__name__}: {error}\n{program}"
    for at, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not same_bits(a, b):
            place = len(program.arguments) + len(program.steps) - len(expected) + at
            return len(program.steps), f"v{place} is {a!r}, single calls give {b!r}\n{program}"
    for at, (a, b) in enumerate(zip(after, memory, strict=True)):
        if not same_bits(a, b):
            return len(
                program.steps
            ), f"memory of v{at} is {a!r}, single calls leave {b!r}\n{program}"
    return len(program.steps), check_written_over(program, expected[-1])


def check_written_over(program: Program, expected: np.ndarray) -> str:
    """What is wrong with results that lie in arguments: they are as if these were read first."""
    try:
        with np.errstate(all="ignore"):
            found, way = program.written_over(expected)
    except Exception as error:
        if REFUSED_OUT.search(str(error)):
            return ""
        return f"{type(error).__name__}, out= in an argument: {error}\n{program}"
    if found is None or same_bits(found, expected):
        return ""
    return f"the result {way} is {found!r}, single calls give {expected!r}\n{program}"


# --- Captures -------------------------------------------------------------------------------------

ROOM = 256  # bytes that all operands of a captured program lie in
CALLS = ("aclnnRelu", "aclnnSilu", "aclnnNeg", "aclnnInplaceRelu", "aclnnInplaceNeg", "aclnnAdd",
         "aclnnSoftmax", "aclnnCast", "aclnnMm", "aclnnCat", "aclnnStack", "aclnnSplitTensor",
         "aclnnIndexPutImpl", "copy")  # fmt: skip
CODES = {np.float32: aclnn.ACL_FLOAT, np.float16: aclnn.ACL_FLOAT16}
# What is refused of streams that are captured, or says no more than that they are.
ASIDE = ("aclrtSynchronizeStream", "aclrtStreamQuery", "aclmdlRICaptureGetInfo", "aclrtSynchronizeDevice",
         "aclmdlRICaptureBegin", "aclrtMemset", "aclmdlRIExecute", "aclmdlRIDestroy", "aclrtSynchronizeEvent",
         "aclrtQueryEventStatus", "aclmdlRICaptureEnd", "aclmdlRICaptureTaskUpdateEnd")  # fmt: skip
LISTS = ("aclnnCat", "aclnnStack", "aclnnSplitTensor", "aclnnIndexPutImpl")
ROWS_PUT = aclnn.tensor(np.array([1, 0]))
View = tuple[int, tuple[int, ...], tuple[int, ...]]  # offset in bytes, shape, strides in elements
Call = Callable[..., Any]


class Captured:
    """Calls that are recorded on some streams, and are made at once beside it."""

    def __init__(self, chance: random.Random, call: Call, rooms: tuple[int, int]):
        self.chance, self.call = chance, call
        self.direct, self.frozen = rooms
        self.steps: list[tuple[Any, ...]] = []
        self.wrong = ""

    def expect(self, condition: bool, text: str) -> None:
        if not condition and not self.wrong:
            self.wrong = "\n".join([text, *map(repr, self.steps)])

    def view(self, shape: tuple[int, ...] | None = None) -> View:
        chance = self.chance
        if shape is None:
            shape = tuple(
                chance.choice((0, 1, 2, 2, 3, 4)) for _ in range(chance.choice((1, 2, 2)))
            )
        inner = chance.choice((1, 1, 1, 2))
        row = inner * max(1, shape[-1]) + chance.choice((0, 0, 1, 3))
        strides = (row, inner)[-len(shape) :]
        if len(shape) == 2 and shape[0] == shape[1] and chance.random() < 0.5:
            strides = strides[::-1]
        return chance.choice((0, 1, 2, 4, 8, 8, 12, 16)) * 8, shape, strides

    def step(self) -> tuple[Any, ...]:
        dtype = self.chance.choice((np.float32, np.float32, np.float16))
        name, out = self.chance.choice(CALLS), self.view()
        if name == "aclnnMm":
            out = self.view((2, 2))
        count = self.chance.randrange(1, 12)
        if name in LISTS:
            return name, dtype, *self.of_lists(name), count
        operands = [self.chance.choice((out, self.view(out[1]))) for _ in range(2)]
        return name, dtype, out, *operands, 4 * count

    def of_lists(self, name: str) -> tuple[View, View, View]:
        """Views for a call with a list of tensors; results of one call lie apart."""
        one = self.view()
        rows, rest = one[1][0], one[1][1:]
        if name == "aclnnSplitTensor":
            return (0, (2,), (1,)), self.view((4,)), (128, (2,), (2,))
        if name == "aclnnIndexPutImpl":  # the first rows get others
            return self.view((rows + 2, *rest)), self.view((2, *rest)), one
        made = (2, *one[1]) if name == "aclnnStack" else (2 * rows, *rest)
        return self.view(made), one, self.chance.choice((one, self.view(one[1])))

    def tensor(self, room: int, view: View, dtype: Any) -> Any:
        offset, shape, strides = view
        storage = ((ROOM - offset) // np.dtype(dtype).itemsize,)
        code = CODES[dtype]
        return self.call(
            "aclCreateTensor", shape, code, strides, 0, aclnn.ACL_FORMAT_ND, storage, room + offset
        )

    def list_of(self, *tensors: Any) -> Any:
        return self.call("aclCreateTensorList", list(tensors))

    def run(self, step: tuple[Any, ...], room: int, stream: Any) -> int:
        """The status of phase two, or of the copy."""
        name, dtype, out, other, third, count = step
        if name == "copy":
            kind = aclnn.ACL_MEMCPY_DEVICE_TO_DEVICE
            target, source = room + out[0], room + other[0]
            return self.call("aclrtMemcpyAsync", target, count, source, count, kind, stream)
        x, made = self.tensor(room, other, dtype), self.tensor(room, out, dtype)
        given = {
            "aclnnAdd": lambda: (
                x,
                self.tensor(room, third, dtype),
                aclnn.aclCreateScalar(2.0, aclnn.ACL_FLOAT),
                made,
            ),
            "aclnnSoftmax": lambda: (x, -1, made),
            "aclnnCast": lambda: (self.tensor(room, other, np.float16), CODES[dtype], made),
            "aclnnMm": lambda: (x, self.tensor(room, third, dtype), made, 0),
            "aclnnCat": lambda: (self.list_of(x, self.tensor(room, third, dtype)), 0, made),
            "aclnnStack": lambda: (self.list_of(x, self.tensor(room, third, dtype)), 0, made),
            "aclnnSplitTensor": lambda: (
                x,
                2,
                0,
                self.list_of(made, self.tensor(room, third, dtype)),
            ),
            "aclnnIndexPutImpl": lambda: (made, self.list_of(ROWS_PUT), x, count % 2 == 1, True),
        }.get(name, lambda: (made,) if "Inplace" in name else (x, made))()
        size, executor, status = self.call(f"{name}GetWorkspaceSize", *given)
        if status != OK:
            return status
        workspace = np.empty(size, np.uint8) if size else None
        return self.call(name, workspace, size, executor, stream)

    def aside(self, streams: Sequence[Any], event: Any, model: Any) -> None:
        """A call that is refused, or asks: what is recorded does not change."""
        name, stream = self.chance.choice(ASIDE), self.chance.choice(streams)
        if name == "aclmdlRICaptureEnd" and stream is streams[0]:
            return
        given = {
            "aclmdlRICaptureBegin": (streams[0], aclnn.ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
            "aclmdlRIExecute": (model, -1), "aclmdlRIDestroy": (model,),
            "aclrtMemset": (self.frozen, 0, 0, 0), "aclrtSynchronizeDevice": (),
            "aclrtSynchronizeEvent": (event,), "aclrtQueryEventStatus": (event,),
        }.get(name, (stream,))  # fmt: skip
        self.steps.append((name,))
        self.call(name, *given)

    def record(self) -> Any:
        """The model, or None where the capture does not end well."""
        call, chance = self.call, self.chance
        streams = [call("aclrtCreateStream")[0] for _ in range(3)]
        event = call("aclrtCreateEvent")[0]
        mode = chance.choice(list(aclnn.aclmdlRICaptureMode))
        self.expect(
            call("aclmdlRICaptureBegin", streams[0], mode) == OK, f"no capture, mode {mode}"
        )
        model, at = call("aclmdlRICaptureGetInfo", streams[0])[1], 0
        for _ in range(chance.randrange(1, 9)):
            onto = chance.choice((at, at, 0, 1, 2))
            if onto != at:
                call("aclrtRecordEvent", event, streams[at])
                call("aclrtStreamWaitEvent", streams[onto], event)
                at = onto
            step = self.step()
            self.steps.append((*step, f"stream {at}"))
            status = self.run(step, self.frozen, streams[at])
            if status != OK:
                self.steps[-1] = (*self.steps[-1], status)
            if chance.random() < 0.3:
                self.aside(streams, event, model)
        for other in streams[1:]:
            if call("aclmdlRICaptureGetInfo", other)[0]:
                call("aclrtRecordEvent", event, other)
                call("aclrtStreamWaitEvent", streams[0], event)
        lasting = call("aclmdlRICaptureGetInfo", streams[0])[0] == 1
        found, status = call("aclmdlRICaptureEnd", streams[0])
        self.expect((status == OK) == lasting, f"a capture, active: {lasting}, ends with {status}")
        self.expect(found is (model if lasting else None), f"the capture gives {found}")
        for stream in streams:
            call("aclrtDestroyStream", stream)
        call("aclrtDestroyEvent", event)
        return found

    def check(self) -> str:
        """What is wrong: nothing, or a text that has the program."""
        numbers = np.array([self.chance.gauss(0, 2) for _ in range(ROOM // 4)], np.float32)
        for room in (self.direct, self.frozen):
            ctypes.memmove(room, numbers.tobytes(), ROOM)
        model = self.record()
        self.expect(
            ctypes.string_at(self.frozen, ROOM) == numbers.tobytes(), "it ran when recorded"
        )
        calls = [one[:6] for one in self.steps if len(one) == 7]
        for _ in range(2 if model is not None else 0):
            for step in calls:
                self.expect(self.run(step, self.direct, None) == OK, f"refused at once: {step}")
            self.expect(self.call("aclmdlRIExecute", model, -1) == OK, "the model does not run")
            found, due = (
                words(ctypes.string_at(room, ROOM)) for room in (self.frozen, self.direct)
            )
            self.expect(found == due, f"the model leaves {found!r}, the calls {due!r}")
        return self.wrong


def words(memory: bytes) -> list[str]:
    return [memory[at : at + 4].hex() for at in range(0, len(memory), 4)]


def check_capture(chance: random.Random, call: Call, rooms: tuple[int, int]) -> str:
    return Captured(chance, call, rooms).check()
