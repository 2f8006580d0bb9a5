"""Programs on registers: pointwise nodes of a loop as one kernel.

`join` turns neighbours in a loop into programs (`aclnn/_fused_kernels.pyx`): each value is computed in
registers, and stored only if something else reads it.  What no step can do stays a kernel of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from aclnn import isa
from aclnn.graph.lower.schedule import Op, Operand, Step
from aclnn.graph.runtime.abi import SCRATCH, TILE_PREFETCH_FAR, TILE_STREAM
from aclnn.graph.runtime.calls import Call

SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "bool": 1}
HALVES = ("float16", "bfloat16")


def join(step: Step, first: int, kernels: Sequence[Any]) -> list[Call]:
    """The calls that ops of a step become, from the op number `first` on.

    Parameters
    ----------
    step : Step
    first : int
    kernels : sequence of KernelRef
        Of neighbouring ops.

    Returns
    -------
    list of Call
        In order; together they do what the ops do one by one.
    """
    found: list[Call] = []
    end, begin = first + len(kernels), first
    while begin < end:
        last = begin
        while last < end and _form(step, step.ops[last], kernels[last - first]):
            last += 1
        program = None
        while program is None and last - begin > 1:
            program = _program(step, begin, kernels[begin - first : last - first])
            if program is None:
                last -= 1
        if program is None:
            found.append(Call.of(step.ops[begin], kernels[begin - first]))
            begin += 1
        else:
            found.append(program)
            begin = last
    return found


def _form(step: Step, op: Op, kernel: Any) -> tuple[str, str] | None:
    """The formula and the dtype of its result of which a step does what an op does, or None."""
    library = isa.fused_kernels()
    if library is None or kernel.formula is None or kernel.reads != "float32":
        return None
    if op.params and kernel.numbers != "real":
        return None
    *inputs, out = kernel.dtypes
    result = kernel.result
    if not {*inputs, out, result} <= SIZES.keys() or not all(
        _is_walked(step, op, k) for k in range(len(op.operands))
    ):
        return None
    if result in HALVES and kernel.formula != "cast":
        if any(dtype != result for dtype in inputs[kernel.facts.masks :]):
            return None
    elif result == "bool" and (kernel.formula == "cast" or out != "bool"):
        return None
    dtype = result if result in HALVES else "float32"
    facts = library.STEPS.get((kernel.formula, dtype))
    if facts is None and _computes_in_memory(kernel):
        return kernel.formula, "block"
    if facts is None or (out == "bool") != (result == "bool"):
        return None
    if dtype in HALVES and any(op.params[k] not in (1, -1) for k in facts.unit):
        return None
    # Loads of half precision make signaling NaNs quiet.
    if kernel.facts.keeps_bits and out in HALVES and out in inputs and _reads_memory(step, op):
        return None
    return kernel.formula, dtype


def _computes_in_memory(kernel: Any) -> bool:
    """Whether a loop over blocks of float32 does what an op does."""
    alike = {*kernel.dtypes, kernel.result} == {"float32"}
    return alike and kernel.formula in isa.simd_kernels().forms()


def _reads_memory(step: Step, op: Op) -> bool:
    """Whether an op reads what no other op of its step computes."""
    made = {other.operands[-1] for other in step.ops}
    return any(place not in made for place in op.operands[:-1])


def _is_walked(step: Step, op: Op, k: int) -> bool:
    """Whether elements of an operand's rows lie beside each other, or, of an input, are one."""
    operand = step.operands[op.operands[k]]
    stride = operand.strides[-1]
    written = k >= len(op.operands) - op.outputs
    return stride == SIZES.get(operand.dtype) or (stride == 0 and not written)


def _program(step: Step, begin: int, kernels: Sequence[Any]) -> Call | None:
    """One call of the ops from `begin` on; None where a program has no room for them."""
    end = begin + len(kernels)
    ops = step.ops[begin:end]
    made = {op.operands[-1] for op in ops}
    read_later = {place for op in step.ops[end:] for place in op.operands[: -op.outputs]}
    stored = [
        op.operands[-1]
        for op in ops
        if step.operands[op.operands[-1]].base != SCRATCH or op.operands[-1] in read_later
    ]
    taken = list(dict.fromkeys(p for op in ops for p in op.operands[:-1] if p not in made))
    library = isa.fused_kernels()
    assert library is not None
    most_operands, most_slots, most_steps, most_numbers = library.limits()
    if sum(len(op.params) for op in ops) > most_numbers:
        return None
    if len(made) != len(ops) or len(taken) + len(stored) > most_operands:
        return None
    operands = step.operands
    if any(_clash(step, operands[a], operands[b]) for a in taken for b in stored):
        return None
    far = any(op.flags & TILE_PREFETCH_FAR for op in ops)
    forms = [_form(step, op, kernel) for op, kernel in zip(ops, kernels, strict=True)]
    if not far and not _pays(forms):
        return None
    told_apart = _told_apart(ops, forms) | set(stored)
    writer = _Writer(step, ops, taken, stored, most_operands, told_apart, far)
    for op, form, kernel in zip(ops, forms, kernels, strict=True):
        assert form is not None
        raw = op.operands[-1] not in told_apart
        writer.add(op, form, raw, kernel)
    if writer.slots_used > most_slots or len(writer.steps) >= most_steps:
        return None
    streams = all(op.flags & TILE_STREAM for op in ops if op.operands[-1] in stored)
    name = " ".join(kernel.name for kernel in kernels)
    described = [(operands[p].dtype, operands[p].strides[-1] == 0, False) for p in taken]
    described += [(operands[p].dtype, False, True) for p in stored]
    kernel = library.assemble(
        name, tuple(described), tuple(writer.steps), streams, tuple(writer.numbers)
    )
    return Call(
        tuple(op.node for op in ops),
        kernel,
        (*taken, *stored),
        len(stored),
        ops[0].flags,
        tuple(number for op in ops for number in op.params),
        -1,
    )


def _is_blind(form: tuple[str, str] | None) -> bool:
    """Whether results do not tell NaNs of operands apart; those computed in memory are canonical."""
    return form is not None and (form[1] == "block" or _library().STEPS[form].blind)


def _library() -> Any:
    library = isa.fused_kernels()
    assert library is not None
    return library


def _told_apart(ops: Sequence[Op], forms: Sequence[tuple[str, str] | None]) -> set[int]:
    """The values whose NaNs some op passes on as they are."""
    return {
        place
        for op, form in zip(ops, forms, strict=True)
        if not _is_blind(form)
        for place in op.operands[:-1]
    }


def _pays(forms: Sequence[tuple[str, str] | None]) -> bool:
    """Whether a program of data that caches hold takes less time than the nodes' own kernels.

    Those convert two halves at a time where a program converts one, which it makes up for by loading
    and storing less, unless it rounds as often as it saves that.
    """
    steps = _library().STEPS
    rounds = [form for form in forms if form and form[1] in HALVES and steps[form].rounds]
    return 2 * len(rounds) < len(forms) or not rounds


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
    """The bytes from the base that an operand lies in, those between its elements too."""
    item = SIZES[operand.dtype]
    if operand.base == SCRATCH:
        return operand.offset, operand.offset + operand.nbytes
    reach = [(n - 1) * stride for n, stride in zip(step.shape, operand.strides, strict=True)]
    low = operand.offset + sum(r for r in reach if r < 0)
    return low, operand.offset + sum(r for r in reach if r > 0) + item


class _Writer:
    """Writes the steps of a program: what is in the registers, and what waits in slots."""

    def __init__(
        self,
        step: Step,
        ops: Sequence[Op],
        taken: list[int],
        stored: list[int],
        first_slot: int,
        told_apart: set[int],
        far: bool,
    ):
        self.steps: list[tuple[Any, ...]] = []
        self.numbers: list[tuple[int, str]] = []
        self.slots_used = 0
        self._step = step
        self._number = {place: n for n, place in enumerate([*taken, *stored])}
        self._taken = set(taken)
        self._stored = set(stored)
        self._first_slot = first_slot
        self._told_apart = told_apart
        self._far = far
        self._fetched: set[int] = set()
        self._free: list[int] = []
        self._slots: dict[int, int] = {}
        self._held: int | None = None  # the place whose value is in the registers
        self._params = 0
        self._left = Counter(place for op in ops for place in op.operands[:-1])

    def add(self, op: Op, form: tuple[str, str], raw: bool, kernel: Any) -> None:
        """Write the steps of an op; `raw`: nothing tells NaNs of its result apart."""
        formula, dtype = form
        out, result = kernel.dtypes[-1], kernel.result
        *inputs, target = op.operands
        if op.params == kernel.facts.commutes and self._held == inputs[1] != inputs[0]:
            inputs.reverse()
        for place in inputs[1:]:
            if not self._in_memory(place):
                self._hold(place)
                self._spill(place)
        if inputs:
            self._hold(inputs[0])
        else:
            self._let_go()
        for place in inputs:
            self._left[place] -= 1
        if inputs and self._is_waited_for(inputs[0]):
            self._spill(inputs[0])
        places = [self._place(p) for p in inputs[1:]] + [0, 0]
        if dtype == "block":
            self._compute_in_memory(formula, kernel, op, places[0] if len(inputs) > 1 else -1)
        else:
            params = self._take_numbers(op, dtype, _library().STEPS[form].prepared)
            self.steps.append(("formula", formula, dtype, raw, params, places[0], places[1]))
        if out != result:
            self.steps.append(("formula", "cast", out, False, 0, 0, 0))
        self._held = target
        for place in inputs:
            self._release(place)
        if target in self._stored:
            self.steps.append(("store", out, self._number[target], False))

    def _take_numbers(self, op: Op, dtype: str, prepared: bool) -> int:
        """Room for the numbers of an op; where it begins."""
        begin = self._params
        self.numbers += [(begin + 8 * k, dtype * prepared) for k in range(len(op.params))]
        self._params += 8 * len(op.params) + 16 * prepared
        return begin

    def _compute_in_memory(self, formula: str, kernel: Any, op: Op, other: int) -> None:
        params = self._take_numbers(op, "", False)
        address = isa.simd_kernels().forms()[formula]
        self.steps.append(("form", formula, address, kernel, params, other))

    def _in_memory(self, place: int) -> bool:
        """Whether a value lies somewhere as floats."""
        if place in self._slots:
            return True
        operand = self._step.operands[place]
        return place in self._taken and (operand.dtype == "float32" or operand.strides[-1] == 0)

    def _place(self, place: int) -> int:
        if place in self._slots:
            return self._first_slot + self._slots[place]
        self._fetch(place)
        return self._number[place]

    def _fetch(self, place: int) -> None:
        """Prefetch what an operand has ahead, once."""
        operand = self._step.operands[place]
        if self._far and place not in self._fetched and operand.strides[-1]:
            self._fetched.add(place)
            self.steps.append(("prefetch", operand.dtype, self._number[place], False))

    def _hold(self, place: int) -> None:
        """Have a value in the registers."""
        if self._held == place:
            return
        self._let_go()
        where = self._place(place)
        dtype = "float32" if place in self._slots else self._step.operands[place].dtype
        self.steps.append(("load", dtype, where, place in self._told_apart))
        self._held = place

    def _is_waited_for(self, place: int | None) -> bool:
        """Whether a value is read again and nowhere but in the registers."""
        if place is None or place in self._taken or place in self._slots:
            return False
        return self._left[place] > 0

    def _let_go(self) -> None:
        if self._is_waited_for(self._held):
            assert self._held is not None
            self._spill(self._held)

    def _spill(self, place: int) -> None:
        if place in self._slots:
            return
        slot = self._free.pop() if self._free else self.slots_used
        self.slots_used = max(self.slots_used, slot + 1)
        self._slots[place] = slot
        self.steps.append(("store", "float32", self._first_slot + slot, False))

    def _release(self, place: int) -> None:
        if place in self._slots and not self._left[place]:
            self._free.append(self._slots.pop(place))
