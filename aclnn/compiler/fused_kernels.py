"""Programs: pointwise nodes of a loop as one kernel.

`join` turns neighbours in a loop into programs (`aclnn/kernels/_fused_kernels.pyx`), `fuse` makes one for kernels of
other kinds.  A program computes values on registers, and stores only what something else reads; what no step
on registers does, or does not do as fast, is a call of the node's own kernel on a block in the nearest cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from aclnn import isa
from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.lower.schedule import Op, Operand, Step
from aclnn.graph.runtime.abi import SCRATCH, TILE_PREFETCH_FAR, TILE_STREAM
from aclnn.graph.runtime.calls import Call
from aclnn.graph.runtime.kernel import Kernel

SIZES = {name: size for name, size in ITEM_SIZES.items() if not name.startswith("complex")}
ON_REGISTERS = ("float32", "float16", "bfloat16", "bool")
HALVES = ("float16", "bfloat16")
# Elements of a row from which a call on a block costs little next to what it computes.
LONG_ROW = 1024


class Part(NamedTuple):
    """A pointwise operation of a program: its kernel, the places that it reads and writes, its numbers."""

    kernel: Kernel
    inputs: tuple[int, ...]
    output: int
    params: tuple[Any, ...] = ()


class Place(NamedTuple):
    """Role of a place in a program.

    Attributes
    ----------
    dtype : str
        Of the elements there.  Where that is float32 and the value's is half precision, the program
        keeps what it rounded as floats.
    layout : str
        Of a row: "dense", "repeated" (one element for all of it), or "strided".
    """

    dtype: str
    layout: str = "dense"


class Fused(NamedTuple):
    """A program, and what it is called with: the places it reads, those it writes, and numbers."""

    kernel: Kernel
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    params: tuple[Any, ...]


def fuse(
    parts: Sequence[Part],
    places: Mapping[int, Place],
    kept: Collection[int],
    *,
    far: bool = False,
    streams: bool = False,
    long: bool = False,
) -> Fused | None:
    """The program of operations that follow one another.

    Parameters
    ----------
    parts : sequence of Part
        In order.  A place that one writes is no other's output.
    places : mapping of int to Place
        Of all places; of those that the program neither reads first nor keeps, the layout does not matter.
    kept : collection of int
        Places of results that something else reads.
    far : bool
        Whether operands are so large that they are prefetched.
    streams : bool
        Whether results bypass the cache.
    long : bool
        Whether rows are so long that calls of kernels on blocks pay.

    Returns
    -------
    Fused or None
        None where there are no programs, or this one is too large.  `kernel.state` is the address of a
        `program_t` (`aclnn/kernels/programs.h`), `kernel.prepare` and `kernel.params_size` are as of any
        kernel; it has to be kept alive.

    Examples
    --------
    A program between a float32 tile and float16 results: half precision is rounded once, at the end.

    >>> library = isa.kernels()
    >>> adds, relu, cast = (
    ...     library.compute_kernel("adds", ("float32",), "float32"),
    ...     library.compute_kernel("relu", ("float32",), "float32"),
    ...     library.cast_kernel("float32", "float16"),
    ... )
    >>> parts = [Part(adds, (0,), 1, (2.0, 1.0)), Part(relu, (1,), 2), Part(cast, (2,), 3)]
    >>> floats = Place("float32")
    >>> made = fuse(parts, {0: floats, 1: floats, 2: floats, 3: Place("float16")}, kept=[3])
    >>> made is None or (made.reads, made.writes, made.params) == ((0,), (3,), (2.0, 1.0))
    True
    """
    library = isa.fused_kernels()
    if library is None or not {index.dtype for index in places.values()} <= SIZES.keys():
        return None
    writes = tuple([part.output for part in parts if part.output in kept])
    made = {part.output for part in parts}
    reads = tuple(dict.fromkeys(p for part in parts for p in part.inputs if p not in made))
    limits = library.limits()
    if len(made) != len(parts) or len(reads) + len(writes) > limits["operands"]:
        return None
    forms = [_form(part, places, made) for part in parts]
    writer = _Writer(parts, forms, places, reads, writes, _runs(forms, far, long), far, streams)
    if any(limits[name] < count for name, count in writer.counts().items()):
        return None
    described = [(places[p].dtype, places[p].layout == "repeated", False) for p in reads]
    described += [(places[p].dtype, False, True) for p in writes]
    kernel = library.assemble(
        " ".join(part.kernel.name for part in parts),
        tuple(described),
        tuple(writer.blocks),
        tuple(writer.steps),
        streams,
        tuple(writer.numbers),
    )
    return Fused(kernel, reads, writes, tuple([n for part in parts for n in part.params]))


def join(
    step: Step, first: int, kernels: Sequence[Kernel], last_reads: Mapping[int, int]
) -> list[Call]:
    """The calls that ops of a step become, from the op number `first` on.

    Parameters
    ----------
    step : Step
    first : int
    kernels : sequence of Kernel
        Of neighbouring ops.
    last_reads : mapping of int to int
        The number of the last op of the step that reads a place.

    Returns
    -------
    list of Call
        In order; together they do what the ops do one by one.
    """
    found: list[Call] = []
    end, begin = first + len(kernels), first
    fits = [_can_join(step, op) for op in step.ops[first:end]]
    most = _library().limits()["steps"]  # every op takes one at least
    while begin < end:
        near = slice(begin - first, begin - first + most)
        counts = _counts_with_room(step, begin, fits[near], last_reads)
        call = _longest(step, begin, kernels[near], counts, last_reads)
        found.append(call or Call.of(step.ops[begin], kernels[begin - first]))
        begin += len(found[-1].nodes)
    return found


def _counts_with_room(
    step: Step, begin: int, fits: Sequence[bool], last_reads: Mapping[int, int]
) -> list[int]:
    """Number of ops from `begin` on of which a program may have room for operands and numbers.

    Whether it has is known once it is written.
    """
    limits = _library().limits()
    found: list[int] = []
    made: set[int] = set()
    reads: set[int] = set()
    ends: Counter[int] = Counter()  # of the program's own results, by the last op that reads them
    numbers = writes = 0
    ops = step.ops[begin : begin + len(fits)]
    for count, (op, fit) in enumerate(zip(ops, fits, strict=True), 1):
        numbers += bool(op.params)
        if not fit or numbers > limits["numbers"]:
            break
        *inputs, out = op.operands
        reads.update(index for index in inputs if index not in made)
        made.add(out)
        last = begin + count - 1
        writes += 1
        if step.operands[out].base == SCRATCH:
            ends[max(last, last_reads.get(out, last))] += 1
        writes -= ends.pop(last, 0)
        if count > 1 and len(reads) + writes <= limits["operands"]:
            found.append(count)
    return found


def _longest(
    step: Step,
    begin: int,
    kernels: Sequence[Kernel],
    counts: Sequence[int],
    last_reads: Mapping[int, int],
) -> Call | None:
    """A program from `begin` on, of as many ops of those that `counts` has as there is room for.

    Longer ones need not take more room than shorter ones: all are not tried, so that the time does
    not grow with the square of the number, but the longest are tried first.
    """
    found = None
    low, high = 0, len(counts)
    while low < high:
        at = (low + high) // 2 if found else (high - 1 if high == len(counts) else 3 * high // 4)
        program = _program(step, begin, kernels[: counts[at]], last_reads)
        if program is None:
            high = at
        else:
            found, low = program, at + 1
    return found


def _can_join(step: Step, op: Op) -> bool:
    """Whether a program may hold an op: its operands lie by rows, and its dtypes have steps or calls."""
    operands = [step.operands[index] for index in op.operands]
    return op.outputs == 1 and all(
        operand.dtype in SIZES and not _is_transposed(operand) for operand in operands
    )


def _is_transposed(operand: Operand) -> bool:
    return len(operand.strides) > 1 and 0 < abs(operand.strides[-2]) < abs(operand.strides[-1])


def _program(
    step: Step, begin: int, kernels: Sequence[Kernel], last_reads: Mapping[int, int]
) -> Call | None:
    """One call of the ops from `begin` on; None where a program has no room for them, or does not pay."""
    end = begin + len(kernels)
    ops = step.ops[begin:end]
    parts = [
        Part(kernel, op.operands[:-1], op.operands[-1], op.params)
        for op, kernel in zip(ops, kernels, strict=True)
    ]
    operands = step.operands
    kept = [
        part.output
        for part in parts
        if operands[part.output].base != SCRATCH or last_reads.get(part.output, -1) >= end
    ]
    places = {p: _place_of(operands[p]) for part in parts for p in (*part.inputs, part.output)}
    far = any(op.flags & TILE_PREFETCH_FAR for op in ops)
    streams = all(op.flags & TILE_STREAM for op in ops if op.operands[-1] in kept)
    long = step.shape[-1] >= LONG_ROW
    fused = fuse(parts, places, kept, far=far, streams=streams, long=long)
    if fused is None or any(
        _clash(step, operands[a], operands[b]) for a in fused.reads for b in fused.writes
    ):
        return None
    nodes = tuple([op.node for op in ops])
    where = (*fused.reads, *fused.writes)
    return Call(nodes, fused.kernel, where, len(fused.writes), ops[0].flags, fused.params, -1)


def _place_of(operand: Operand) -> Place:
    stride = operand.strides[-1]
    layout = "dense" if stride == SIZES[operand.dtype] else "strided" if stride else "repeated"
    return Place(operand.dtype, layout)


def _clash(step: Step, read: Operand, written: Operand) -> bool:
    """Whether writing may replace what other elements still need, as it is element by element."""
    if read.base != written.base:
        return False
    same = (read.offset, read.strides, read.dtype) == (
        written.offset,
        written.strides,
        written.dtype,
    )
    if same:
        return False
    (low, high), (first, last) = _extent(step, read), _extent(step, written)
    return low < last and first < high


def _extent(step: Step, operand: Operand) -> tuple[int, int]:
    """The bytes from the base that an operand occupies, those between its elements too."""
    item = SIZES[operand.dtype]
    if operand.base == SCRATCH:
        return operand.offset, operand.offset + operand.nbytes
    reach = [(n - 1) * stride for n, stride in zip(step.shape, operand.strides, strict=True)]
    low = operand.offset + sum(r for r in reach if r < 0)
    return low, operand.offset + sum(r for r in reach if r > 0) + item


# --- What runs on registers -----------------------------------------------------------------------


def _library() -> Any:
    library = isa.fused_kernels()
    assert library is not None
    return library


def _form(part: Part, places: Mapping[int, Place], made: Collection[int]) -> tuple[str, str] | None:
    """The formula and the dtype of its result of which a step on registers does what a part does."""
    form = part.kernel.form
    if form is None or form.reads != "float32":
        return None
    if part.params and form.numbers != "real":
        return None
    *inputs, out = form.dtypes
    result = form.result
    if not {*inputs, out, result} <= {*ON_REGISTERS}:
        return None
    if result in HALVES and form.formula != "cast":
        if any(dtype != result for dtype in inputs[form.facts.masks :]):
            return None
    elif result == "bool" and (form.formula == "cast" or out != "bool"):
        return None
    dtype = result if result in HALVES else "float32"
    facts = _library().STEPS.get((form.formula, dtype))
    if {*inputs, out, result} == {"float32"} and form.formula in _library().PAIRS:
        return form.formula, "pair"
    if facts is None and form.path and {*inputs, out, result} == {"float32"}:
        return form.formula, "path"
    if facts is None or (out == "bool") != (result == "bool"):
        return None
    if dtype in HALVES and any(part.params[k] not in (1, -1) for k in facts.unit):
        return None
    # Loads of half precision make signaling NaNs quiet.
    reads_memory = any(index not in made for index in part.inputs)
    if form.facts.keeps_bits and out in HALVES and out in inputs and reads_memory:
        return None
    return form.formula, dtype


def _of_floats(kernel: Kernel) -> Kernel:
    """The kernel that computes the same results from floats."""
    form = kernel.form
    *inputs, out = form.dtypes
    if set(inputs) == {"float32"}:
        return kernel
    return isa.kernels().compute_kernel(
        form.formula, ("float32",) * len(inputs), out, form.result, "float32"
    )


def _runs(forms: Sequence[tuple[str, str] | None], far: bool, long: bool) -> list[bool]:
    """Which parts run on registers: runs that take less time there than calls on blocks.

    Where memory bounds and no part is a call, all do: loads and stores overlap with computing.
    Else fast paths of long rows are calls: as steps they begin anew for every eight vectors.
    """
    found = [False] * len(forms)
    if far and all(forms):
        return [True] * len(forms)
    if long:
        forms = [form if form and form[1] != "path" else None for form in forms]
    begin = 0
    while begin < len(forms):
        end = begin
        while end < len(forms) and forms[end]:
            end += 1
        if end > begin and _pays(forms[begin:end]):
            found[begin:end] = [True] * (end - begin)
        begin = end + 1
    return found


def _pays(forms: Sequence[tuple[str, str] | None]) -> bool:
    """Whether a run of data that caches hold takes less time than the nodes' own kernels.

    Those convert two halves at a time where a program converts one, which it makes up for by loading
    and storing less, unless it rounds as often as it saves that.
    """
    steps = _library().STEPS
    rounds = [form for form in forms if form and form[1] in HALVES and steps[form].rounds]
    return 2 * len(rounds) < len(forms) or not rounds


def _is_blind(part: Part, form: tuple[str, str] | None) -> bool:
    """Whether results do not tell NaNs of operands apart: those of most kernels are canonical."""
    if form is None or form[1] in ("pair", "path"):
        form = part.kernel.form.formula, "float32"
    facts = _library().STEPS.get(form)
    return part.kernel.form.formula != "cast" and (facts is None or facts.blind)


class _Writer:
    """Writes the steps of a program: what is in the registers, and what waits in memory.

    A value that the steps of one block of steps read again waits in a slot, as the floats of eight
    vectors.  What another block reads is in a slot of blocks, in its own dtype, or where results go.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        forms: Sequence[tuple[str, str] | None],
        places: Mapping[int, Place],
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        on_registers: Sequence[bool],
        far: bool,
        streams: bool,
    ):
        self.steps: list[tuple[Any, ...]] = []
        self.blocks: list[str] = []  # dtypes of the slots that blocks have
        self.numbers: list[tuple[int, int, str, Any]] = []
        self._places = places
        self._number = {index: n for n, index in enumerate([*reads, *writes])}
        self._reads = set(reads)
        self._writes = set(writes)
        self._streams = streams
        self._far = far
        self._fetched: set[int] = set()
        self._params = 0
        limits = _library().limits()
        self._first_slot, self._first_block = limits["first_slot"], limits["first_block"]
        self._slots_used = 0
        self._free_slots: list[int] = []
        self._slots: dict[int, int] = {}
        self._free_blocks: list[int] = []
        self._freed: list[int] = []  # by this group: what it reads it does not write over
        self._block_of: dict[int, int] = {}  # where a value is stored for other blocks of steps
        self._unpacked: list[tuple[str, int, int]] = []  # results that go to rows with gaps
        self._held: int | None = None  # the place whose value is in the registers
        self._told_apart = set(writes) | {
            index
            for part, form, own in zip(parts, forms, on_registers, strict=True)
            if not _is_blind(part, form if own else None)
            for index in part.inputs
        }
        groups = [0]
        for before, after in pairwise(on_registers):
            groups.append(groups[-1] + (not (before and after)))
        self._waiting = Counter(index for part in parts for index in part.inputs)
        self._crossing = self._values_between(parts, groups, on_registers)
        self._left: Counter[int] = Counter()
        group = -1
        for number, (part, form) in enumerate(zip(parts, forms, strict=True)):
            if groups[number] != group:
                group = groups[number]
                own = [p for p, g in zip(parts, groups, strict=True) if g == group]
                self._begin(own if on_registers[number] else [])
            if on_registers[number]:
                assert form is not None
                self._compute(part, form)
            else:
                self._call(part)
            self._done_with(part.inputs)
        self._begin([])

    def counts(self) -> dict[str, int]:
        """Numbers of what a program has a limited number of."""
        return {
            "slots": self._slots_used,
            "blocks": len(self.blocks),
            "steps": len(self.steps),
            "numbers": len(self.numbers),
        }

    @staticmethod
    def _values_between(
        parts: Sequence[Part], groups: Sequence[int], on_registers: Sequence[bool]
    ) -> set[int]:
        """Values that other groups of parts read than the one which computes them, and those of calls."""
        made = {part.output: group for part, group in zip(parts, groups, strict=True)}
        found = {part.output for part, own in zip(parts, on_registers, strict=True) if not own}
        for part, group in zip(parts, groups, strict=True):
            found.update(index for index in part.inputs if made.get(index, group) != group)
        return found

    def _begin(self, parts: Sequence[Part]) -> None:
        """Begin another group: nothing is in registers, nor in slots; what has gaps is packed."""
        for dtype, block, number in self._unpacked:
            self._copy(dtype, block, number)
            self._free_blocks.append(block)
        self._unpacked = []
        self._free_blocks += self._freed
        self._freed = []
        for index in dict.fromkeys(index for part in parts for index in part.inputs):
            one = self._places[index]
            if index in self._reads and one.layout == "strided" and index not in self._block_of:
                self._copy(one.dtype, self._number[index], self._take_block(index, one.dtype))
        self._held = None
        self._slots.clear()
        self._free_slots = list(range(self._slots_used))
        self._left = Counter(index for part in parts for index in part.inputs)

    # --- On registers ---------------------------------------------------------------------------

    def _compute(self, part: Part, form: tuple[str, str]) -> None:
        formula, dtype = form
        out, result = part.kernel.form.dtypes[-1], part.kernel.form.result
        inputs, target = list(part.inputs), part.output
        if part.params == part.kernel.form.facts.commutes and self._held == inputs[1] != inputs[0]:
            inputs.reverse()
        for index in inputs[1:]:
            if not self._in_memory(index):
                self._hold(index)
                self._spill(index)
        if inputs:
            self._hold(inputs[0])
        else:
            self._let_go()
        for index in inputs:
            self._left[index] -= 1
        if inputs and self._is_waited_for(inputs[0]):
            self._spill(inputs[0])
        others = [self._source(index) for index in inputs[1:]] + [-1, -1]
        if dtype == "path":
            own = _of_floats(part.kernel)
            params = self._take_numbers(part._replace(kernel=own), "")
            self.steps.append(("path", own, params, others[0], others[1], result))
        elif dtype == "pair":
            params = self._take_numbers(part, "")
            self.steps.append(("pair", formula, part.kernel, params, others[0]))
        else:
            params = self._take_numbers(part, dtype * _library().STEPS[form].prepared)
            raw = target not in self._told_apart
            self.steps.append(("formula", formula, dtype, raw, params, others[0], others[1]))
        if out != result:
            self.steps.append(("formula", "cast", out, False, 0, -1, -1))
        self._held = target
        for index in inputs:
            if index in self._slots and not self._left[index]:
                self._free_slots.append(self._slots.pop(index))
        self._keep(target)

    def _keep(self, target: int) -> None:
        """Store a result where others read it."""
        dtype = self._places[target].dtype
        if target in self._crossing and not self._is_read_back(target):
            self.steps.append(("store", dtype, self._take_block(target, dtype), False))
        if target not in self._writes:
            return
        number = self._number[target]
        if self._places[target].layout == "dense":
            self.steps.append(("store", dtype, number, False))
            return
        between = self._take_block(None, dtype)
        self.steps.append(("store", dtype, between, False))
        self._unpacked.append((dtype, between, number))

    def _is_read_back(self, target: int) -> bool:
        """Whether a value that others read is stored where it is written."""
        return (
            target in self._writes and self._places[target].layout == "dense" and not self._streams
        )

    def _in_memory(self, index: int) -> bool:
        """Whether a value is stored as floats."""
        if index in self._slots:
            return True
        if index in self._reads or self._is_elsewhere(index):
            one = self._places[index]
            return one.dtype == "float32" or (index in self._reads and one.layout == "repeated")
        return False

    def _is_elsewhere(self, index: int) -> bool:
        """Whether a value is stored where every group of steps finds it."""
        return index in self._block_of or (index in self._crossing and self._is_read_back(index))

    def _source(self, index: int) -> int:
        """Place of a value in memory."""
        if index in self._slots:
            return self._first_slot + self._slots[index]
        if index in self._block_of:
            return self._block_of[index]
        one, number = self._places[index], self._number[index]
        if self._far and index in self._reads - self._fetched and one.layout == "dense":
            self._fetched.add(index)
            self.steps.append(("prefetch", one.dtype, number, False))
        return number

    def _copy(self, dtype: str, source: int, target: int) -> None:
        """Between rows that have gaps and a dense block."""
        kernel = isa.kernels().copy_kernel(SIZES[dtype])
        self.steps.append(("call", kernel, 0, (source, target)))

    def _hold(self, index: int) -> None:
        """Have a value in the registers."""
        if self._held == index:
            return
        self._let_go()
        where = self._source(index)
        dtype = "float32" if index in self._slots else self._places[index].dtype
        self.steps.append(("load", dtype, where, index in self._told_apart))
        self._held = index

    def _is_waited_for(self, index: int | None) -> bool:
        """Whether a value is read again and nowhere but in the registers."""
        if index is None or index in self._reads or index in self._slots:
            return False
        return self._left[index] > 0 and not self._is_elsewhere(index)

    def _let_go(self) -> None:
        if self._is_waited_for(self._held):
            assert self._held is not None
            self._spill(self._held)

    def _spill(self, index: int) -> None:
        if index in self._slots:
            return
        slot = self._free_slots.pop() if self._free_slots else self._slots_used
        self._slots_used = max(self._slots_used, slot + 1)
        self._slots[index] = slot
        self.steps.append(("store", "float32", self._first_slot + slot, False))

    # --- Calls ----------------------------------------------------------------------------------

    def _call(self, part: Part) -> None:
        """A call of the node's own kernel on a block."""
        dtypes, target = part.kernel.form.dtypes, part.output
        inputs = [self._as(index, dtype) for index, dtype in zip(part.inputs, dtypes, strict=False)]
        params = self._take_numbers(part, "")
        index = self._places[target]
        direct = target in self._writes and index.dtype == dtypes[-1]
        if direct and (self._is_read_back(target) or not self._waiting[target]):
            self.steps.append(("call", part.kernel, params, (*inputs, self._number[target])))
            return
        if index.dtype == dtypes[-1]:
            out = self._take_block(target, index.dtype)
            self.steps.append(("call", part.kernel, params, (*inputs, out)))
        else:
            between = self._take_block(None, dtypes[-1])
            self.steps.append(("call", part.kernel, params, (*inputs, between)))
            out = self._take_block(target, index.dtype)
            self._convert(dtypes[-1], index.dtype, between, out)
            self._free_blocks.append(between)
        if target in self._writes:
            self._copy(index.dtype, out, self._number[target])

    def _as(self, index: int, dtype: str) -> int:
        """Place of a value in a dtype that a call reads."""
        held = self._places[index].dtype
        where = self._block_of.get(index, self._number.get(index, -1))
        if held == dtype:
            return where
        found = self._take_block(None, dtype)
        self._convert(held, dtype, where, found)
        return found

    def _convert(self, held: str, requested: str, source: int, target: int) -> None:
        kernel = isa.kernels().cast_kernel(held, requested)
        self.steps.append(("call", kernel, 0, (source, target)))

    # --- Memory and numbers ---------------------------------------------------------------------

    def _take_block(self, index: int | None, dtype: str) -> int:
        """A slot of blocks; of a place, until nothing reads it any more."""
        size = SIZES[dtype]
        for number in self._free_blocks:
            if SIZES[self.blocks[number - self._first_block]] == size:
                self._free_blocks.remove(number)
                break
        else:
            number = self._first_block + len(self.blocks)
            self.blocks.append(dtype)
        if index is not None:
            self._block_of[index] = number
        return number

    def _done_with(self, places: Sequence[int]) -> None:
        for index in places:
            self._waiting[index] -= 1
        for index in set(places):
            if not self._waiting[index] and index in self._block_of:
                self._freed.append(self._block_of.pop(index))

    def _take_numbers(self, part: Part, prepared: str) -> int:
        """Room for the numbers of a part; where it begins."""
        kernel, count = part.kernel, len(part.params)
        size = kernel.params_size if not prepared else 0
        own = bool(size) and not prepared
        if not prepared:  # which kernels read by whole lines
            self._params = -(-self._params // 64) * 64
        begin = self._params
        if count or own:
            self.numbers.append((begin, count, prepared, kernel))
        self._params += size if own else 8 * count + 16 * bool(prepared)
        return begin
