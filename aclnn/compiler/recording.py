"""Recordings: what calls compute, as one op-graph.

A `Recording` is a list of calls between values that are known by their descriptions alone; a single call is
a recording of one step (`single_call`). Each call of several is lowered onto one builder that all of them
share, and its results are cast to their dtypes, so that they have the bits that the single call would give.
Values never change: to write into one is to make another. Who records (a traced function, a captured
stream) keeps track of which value a piece of memory holds.
"""

from __future__ import annotations

import copy
import math
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aclnn import graph
from aclnn.acl import socs
from aclnn.acl.constants import aclDataType, aclFormat
from aclnn.acl.errors import invalid
from aclnn.compiler import phase_one
from aclnn.compiler._settings import current_settings
from aclnn.graph.strides import broadcast_strides, contiguous_strides, reshaped_strides
from aclnn.operators import Operator
from aclnn.operators.checks import MAX_DIMS, PLAIN_FORMATS, Call, TensorSpec
from aclnn.operators.lowering import (
    NUMBER_FORMS,
    Lowering,
    Number,
    graph_dtype,
    pointwise,
    reads_of,
)

Pieces = tuple[tuple[int, int, int], ...]  # start, step and size along each dimension
Overlaps = Sequence[Sequence[int]]  # of each input with each output, in a row for each output
# How an input may lie to the output; the numbers are those of `_tensor_spec.pxd`.
DISJOINT, IDENTICAL, PARTIAL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Program:
    """Name and operands of calls that were joined, in place of an operator."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    summary: str = ""
    expression: str = ""

    @property
    def kernel_operands(self) -> tuple[str, ...]:
        return self.inputs


class Output(NamedTuple):
    """A value that a run leaves in the caller's memory; `replaces` is the input there.

    A single call has outputs without a value, which it does not write, and without a description,
    which nobody wants.
    """

    name: str
    value: int | None
    spec: TensorSpec | None
    replaces: int | None = None

    @property
    def is_written(self) -> bool:
        """Whether a run writes elements."""
        return self.value is not None and self.spec is not None and bool(self.spec.size)


@dataclass(slots=True)
class _Joining:
    """A recording while its graph is made: the builder, and the builder's id of each value."""

    builder: graph.GraphBuilder
    ids: dict[int, int] = field(default_factory=dict)
    kernels: dict[str, Any] = field(default_factory=dict)


Step = Callable[[_Joining], None]


class Built(NamedTuple):
    """A recording as an op-graph, with what plans know of its operands.

    Attributes
    ----------
    graph : Graph
        As built.
    kernels : mapping of str to object
        Of steps that are the caller's.
    operator, call
        Of a single call; else a `Program`, and its operands as a call's.
    tensors : list of TensorSpec or None
        All operands, outputs last; None for those that are absent.
    arguments : list of int
        The places of the operands that the graph has: present inputs, outputs that are written.
    n_inputs : int
    overlaps : sequence of sequence of int
        Of each input with each output, in a row for each output.
    apart : tuple of str
        The outputs that overlap no input, or are written in the place of one.
    does_nothing : bool
        Whether no element is written.
    """

    graph: graph.Graph
    kernels: Mapping[str, Any]
    operator: Operator | Program
    call: Call
    tensors: Sequence[TensorSpec | None]
    arguments: Sequence[int]
    n_inputs: int
    overlaps: Overlaps
    apart: tuple[str, ...]
    does_nothing: bool


class Recording:
    """Calls, views and copies in the order in which they were made.

    Attributes
    ----------
    name : str
        What messages, reports and profiles call it.
    soc : str
        Whose dtype rules hold.
    origin : callable
        Gives where a step that is recorded comes from, such as the lines of a program that run: the
        attribute `origin` of the nodes that it makes.
    operands : list of int or None
        The values that a run is given, in order; None for one that a single call lacks.
    outputs : list of Output
        The values that a run leaves, in order.
    numbers : list of tuple
        The numbers that a run is given: each rounded to float32, as it is, and whole.

    Examples
    --------
    >>> from aclnn.acl.constants import aclDataType
    >>> from aclnn.operators import REGISTRY
    >>> recording = Recording("twice")
    >>> spec = TensorSpec(aclDataType.ACL_FLOAT, (4, 8), (8, 1))
    >>> value = recording.input("x", spec)
    >>> for operator in (REGISTRY["relu"], REGISTRY["silu"]):
    ...     call, _ = recording.describe(operator, [value])
    ...     value = recording.call(operator, call, [value])["out"]
    >>> recording.output("out", value)
    >>> [node.name for node in recording.build().graph.nodes if node.kind == "Compute"]
    ['relu', 'silu']
    """

    def __init__(self, name: str, soc: str | None = None):
        self.name = name
        self.soc = soc or socs.FAMILIES[current_settings()["soc"]]
        self.origin: Callable[[], tuple[str, ...]] = tuple
        self.operands: list[int | None] = []
        self.input_names: list[str] = []
        self.outputs: list[Output] = []
        self.numbers: list[tuple[float, float, int]] = []
        self._specs: list[TensorSpec] = []
        self._steps: list[tuple[Step, tuple[str, ...]]] = []
        self._single: tuple[Operator, Call] | None = None  # that a single call is one of
        self.ends_early = False  # whether a rule found that there is nothing to do

    @property
    def inputs(self) -> list[int]:
        """The values that a run is given and has, in order."""
        return [value for value in self.operands if value is not None]

    def spec(self, value: int) -> TensorSpec:
        """The description of a value; strides count elements."""
        return self._specs[value]

    def __len__(self) -> int:
        """Number of recorded steps."""
        return len(self._steps)

    # --- Arguments ----------------------------------------------------------------------------------

    def input(self, name: str, spec: TensorSpec) -> int:
        """A value that a run is given."""
        value = self._value(spec)
        self.operands.append(value)
        self.input_names.append(name)
        return value

    def number(self, forms: tuple[float, float, int]) -> int:
        """A number that a run is given, for `call`: its place."""
        self.numbers.append(forms)
        return len(self.numbers) - 1

    def output(
        self, name: str, value: int, spec: TensorSpec | None = None, replaces: int | None = None
    ) -> None:
        """Let runs leave a value in memory of a description, by default dense.

        It is cast to that dtype. `replaces` is the input whose memory that is, element by element.
        """
        found = self._specs[value]
        if spec is None:
            spec = _dense(found.dtype, found.shape)
        self.outputs.append(Output(name, value, spec, replaces))

    # --- Calls --------------------------------------------------------------------------------------

    def describe(
        self,
        operator: Operator,
        inputs: Sequence[int | None],
        numbers: Sequence[tuple[int, int, float]] = (),
        switches: Sequence[object] = (),
        names: Mapping[str, str] | None = None,
        outputs: Sequence[TensorSpec | None] | None = None,
    ) -> tuple[Call, bool]:
        """A call on values of the recording, after its operator's rules; whether it is done by that.

        Parameters
        ----------
        operator : Operator
        inputs : sequence of int or None
            In the kernels' order, lists taken apart.
        numbers : sequence of (int, int, float)
            The dtype, facts and value of each number.
        switches : sequence
        names : mapping of str to str, optional
            What messages call operands.
        outputs : sequence of TensorSpec or None, optional
            What each output is written into, None where it is made.

        Raises
        ------
        AclnnError
            That of the single call.
        """
        operands = [None if value is None else self._specs[value] for value in inputs]
        arguments = outputs or [None] * len(operator.outputs)
        request = phase_one.Request(
            operator,
            [*operands, *arguments],
            len(operands),
            numbers,
            None,
            switches,
            names or {},
        )
        return phase_one.check_call(request, self.soc)

    def call(
        self,
        operator: Operator,
        call: Call,
        inputs: Sequence[int | None],
        numbers: Sequence[Number] = (),
        requested: frozenset[str] | None = None,
    ) -> dict[str, int]:
        """Record a call that passed its rules.

        Parameters
        ----------
        operator : Operator
        call : Call
            Outputs that it has give their dtype to the results; shapes are those that the operator
            infers.
        inputs : sequence of int or None
            Values in the kernels' order, lists taken apart.
        numbers : sequence of int or tuple
            For each number of the operator its place, from `number`, or its forms: then it is part
            of the plan.
        requested : frozenset of str, optional
            The outputs that are made, by default all.

        Returns
        -------
        dict of str to int
            The value of each result by role.
        """
        results = phase_one.infer(operator, call)
        made = {}
        for role in operator.outputs if operator.makes is None else results:
            if role in results and (requested is None or role in requested):
                dtype, shape = results[role]
                argument = call.tensors.get(role)
                dense = _dense(dtype if argument is None else argument.dtype, shape)
                made[role] = self._value(_in_bytes(dense))
        phase_one.refuse_sizes(call.names, {r: self._specs[value] for r, value in made.items()})
        taken = operator.by_role(inputs)
        lists = {role: taken.pop(role) for role in operator.lists}
        operands = {role: value for role, value in taken.items() if value is not None}
        self._record(_Called(self, operator, call, results, operands, lists, made, tuple(numbers)))
        return made

    def opaque(
        self,
        kernel: Any,
        inputs: Sequence[int],
        dtype: aclDataType,
        shape: tuple[int, ...],
        name: str,
    ) -> int:
        """A value that a kernel of the caller's makes: it is called once, after all before it."""
        made = self._value(_dense(dtype, shape))

        def join(joining: _Joining) -> None:
            key = f"{name}#{len(joining.kernels)}"
            joining.kernels[key] = kernel
            joining.ids[made] = joining.builder.compute(
                "call",
                [joining.ids[value] for value in inputs],
                shape,
                graph_dtype(dtype),
                name=name,
                domain="opaque",
                reads_strided=True,
                writes_strided=True,
                effects=True,
                own=key,
                of=key,
            )

        self._record(join, made)
        return made

    def computed(
        self,
        kernel: str,
        inputs: Sequence[int],
        dtype: aclDataType,
        shape: tuple[int, ...],
        **attrs: Any,
    ) -> int:
        """A value that a kernel of this package makes of operands as a whole, with any strides."""
        made = self._value(_dense(dtype, shape))

        def join(joining: _Joining) -> None:
            (joining.ids[made],) = joining.builder.compute_all(
                kernel,
                [joining.ids[value] for value in inputs],
                [(shape, graph_dtype(dtype))],
                domain="opaque",
                reads_strided=True,
                writes_strided=True,
                **attrs,
            )

        self._record(join, made)
        return made

    def filled(self, arguments: Number, dtype: aclDataType, shape: tuple[int, ...]) -> int:
        """A value all of whose elements are one number.

        Parameters
        ----------
        arguments : int or tuple
            Its place, from `number`, or its own forms: rounded to float32, exact, and whole; in
            place of the last a complex one has the bits of its imaginary part.
        dtype : aclDataType
        shape : tuple of int
        """
        made = self._value(_dense(dtype, shape))
        reads = reads_of(dtype)
        form = {"float32": 0, "int64": 2}.get(reads, 1)
        number: graph.Argument | float | int
        imaginary = 0.0
        if isinstance(arguments, tuple):
            number = arguments[form]
            (imaginary,) = struct.unpack("d", struct.pack("q", arguments[2]))
        else:
            kind = "whole" if form == 2 else "real"
            number = graph.Argument(len(NUMBER_FORMS) * arguments + form, kind)

        def join(joining: _Joining) -> None:
            params = (number, imaginary) if reads == "complex128" else (number,)
            joining.ids[made] = joining.builder.compute(
                "fill", (), shape, graph_dtype(dtype), params=params, reads=reads
            )

        self._record(join, made)
        return made

    def cast(self, value: int, dtype: aclDataType) -> int:
        """The elements of a value as another dtype, in new memory."""
        found = self._specs[value]
        made = self._value(_dense(dtype, found.shape))

        def join(joining: _Joining) -> None:
            dense = joining.builder.contiguous(joining.ids[value])
            joining.ids[made] = joining.builder.cast(dense, graph_dtype(dtype))

        self._record(join, made)
        return made

    def copy(self, value: int) -> int:
        """The elements of a value in row-major order, in new memory."""
        found = self._specs[value]
        made = self._value(_dense(found.dtype, found.shape))

        def join(joining: _Joining) -> None:
            joining.ids[made] = joining.builder.contiguous(joining.ids[value])

        self._record(join, made)
        return made

    def laid_out(self, value: int, like: int) -> int:
        """The elements of a value as those of another one lie, where that has no gaps."""
        found, strides = self._specs[value], self._specs[like].strides
        rank = len(found.shape)
        order = tuple(sorted(range(rank), key=lambda axis: (-abs(strides[axis]), axis)))
        back = tuple(sorted(range(rank), key=order.__getitem__))
        dense = contiguous_strides(tuple([found.shape[axis] for axis in order]))
        made = self._value(found.changed(strides=tuple([dense[index] for index in back])))

        def join(joining: _Joining) -> None:
            builder = joining.builder
            turned = builder.contiguous(builder.transpose(joining.ids[value], order))
            joining.ids[made] = builder.transpose(turned, back)

        self._record(join, made)
        return made

    # --- Views --------------------------------------------------------------------------------------

    def sliced(self, value: int, pieces: Pieces) -> int:
        """A view of every `step`-th element from `start` on along each dimension."""
        found = self._specs[value]
        shape = tuple([size for _, _, size in pieces])
        steps = tuple([step for _, step, _ in pieces])

        def join(joining: _Joining) -> None:
            builder, source = joining.builder, joining.ids[value]
            old = builder.value(source).strides
            strides = tuple([a * b for a, b in zip(old, steps, strict=True)])
            offset = sum([start * s for (start, _, _), s in zip(pieces, old, strict=True)])
            joining.ids[made] = builder.view(source, shape, strides, offset if _size(shape) else 0)

        strides = tuple([a * b for a, b in zip(found.strides, steps, strict=True)])
        made = self._value(found.changed(shape=shape, strides=strides))
        self._record(join, made)
        return made

    def transposed(self, value: int, axes: Sequence[int]) -> int:
        """A view with the dimensions in another order."""
        found, axes = self._specs[value], tuple(axes)
        made = self._value(
            found.changed(
                shape=tuple([found.shape[axis] for axis in axes]),
                strides=tuple([found.strides[axis] for axis in axes]),
            )
        )

        def join(joining: _Joining) -> None:
            joining.ids[made] = joining.builder.transpose(joining.ids[value], axes)

        self._record(join, made)
        return made

    def expanded(self, value: int, shape: tuple[int, ...]) -> int:
        """A view that repeats a value to a shape, by NumPy's rule."""
        found = self._specs[value]
        strides = broadcast_strides(found.shape, found.strides, shape)
        made = self._value(found.changed(shape=shape, strides=strides))

        def join(joining: _Joining) -> None:
            joining.ids[made] = joining.builder.expand(joining.ids[value], shape)

        self._record(join, made)
        return made

    def reshaped(self, value: int, shape: tuple[int, ...]) -> int:
        """The elements in another shape: a view where strides allow it, else one of a copy."""
        found = self._specs[value]
        strides = reshaped_strides(found.shape, found.strides, shape)
        if strides is None:
            strides = contiguous_strides(shape)
        made = self._value(found.changed(shape=shape, strides=strides))

        def join(joining: _Joining) -> None:
            builder, id = joining.builder, joining.ids[value]
            source = builder.value(id)
            steps = reshaped_strides(source.shape, source.strides, shape)
            if steps is None:
                id, steps = builder.contiguous(id), contiguous_strides(shape)
            joining.ids[made] = builder.view(id, shape, steps)

        self._record(join, made)
        return made

    def strided(
        self, value: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> int:
        """A view of row-major memory with any strides."""
        found = self._specs[value]
        assert graph.is_contiguous(found.shape, found.strides), (
            "views by strides are of dense values"
        )
        made = self._value(found.changed(shape=shape, strides=strides))

        def join(joining: _Joining) -> None:
            joining.ids[made] = joining.builder.view(joining.ids[value], shape, strides, offset)

        self._record(join, made)
        return made

    def replaced(self, value: int, pieces: Pieces, by: int) -> int:
        """A value of which a slice, as `sliced` takes it, is another one."""
        found = self._specs[value]
        made = self._value(_dense(found.dtype, found.shape))

        def join(joining: _Joining) -> None:
            builder, source = joining.builder, joining.ids[value]
            if not self._specs[by].size:
                joining.ids[made] = builder.contiguous(source)
                return
            whole = builder.buffer("replaced", found.shape, graph_dtype(found.dtype))
            builder.view_copy(joining.ids[by], _part(builder, whole, pieces))
            for rest in _complement(found.shape, pieces):
                builder.view_copy(_part(builder, source, rest), _part(builder, whole, rest))
            joining.ids[made] = whole

        self._record(join, made)
        return made

    # --- The graph ----------------------------------------------------------------------------------

    def build(self, overlaps: Overlaps | None = None, summary: str = "") -> Built:
        """The op-graph as built, with what plans know of its operands.

        Every step of a single call is present, also those that idle, as the NPU library would have it.
        What does nothing is drawn as one copy of nothing.

        Parameters
        ----------
        overlaps : sequence of sequence of int, optional
            By default as outputs replace inputs.
        summary : str
            What reports say of several calls.

        Returns
        -------
        Built
        """
        rows = self._replacing() if overlaps is None else overlaps
        joining = _Joining(graph.GraphBuilder())
        nothing = self.ends_early or not any(output.is_written for output in self.outputs)
        tensors = [None if value is None else self._specs[value] for value in self.operands]
        tensors += [output.spec for output in self.outputs]
        written = enumerate(self.outputs, len(self.operands))
        pairs = zip(self.outputs, rows, strict=True)
        operator, call = self._single or self._as_program(tensors, summary)
        built = self._nothing_graph(joining.builder) if nothing else self._graph(joining, rows)
        replacing = {
            out.name for out in map(built.value, built.outputs) if out.alias_of is not None
        }
        return Built(
            built,
            joining.kernels,
            operator,
            call,
            tensors,
            [index for index, value in enumerate(self.operands) if value is not None]
            + [index for index, output in written if output.is_written],
            len(self.operands),
            rows,
            tuple(
                [
                    output.name
                    for output, row in pairs
                    if output.is_written and (not any(row) or output.name in replacing)
                ]
            ),
            nothing,
        )

    def _graph(self, joining: _Joining, rows: Overlaps) -> graph.Graph:
        builder = joining.builder
        declared = self._declare_inputs(joining)
        copies = self._copies(joining, declared, rows)
        targets = [
            self._target(joining, declared, copies, output, row)
            for output, row in zip(self.outputs, rows, strict=True)
        ]
        for step, builder.origin in self._steps:
            step(joining)
        builder.origin = ()
        for output, target in self._in_order(targets, joining):
            assert output.value is not None
            value = joining.ids[output.value]
            builder.view_copy(builder.cast(value, builder.value(target).dtype), target)
        return builder.build(verify=False)

    def _in_order(
        self, targets: Sequence[int | None], joining: _Joining
    ) -> list[tuple[Output, int]]:
        """Outputs with their targets: as declared, those of a single call as the operator makes them."""
        pairs = [
            (output, target)
            for output, target in zip(self.outputs, targets, strict=True)
            if target is not None
        ]
        if self._single is not None:
            made: dict[int | None, int] = {value: n for n, value in enumerate(joining.ids)}
            pairs.sort(key=lambda pair: made[pair[0].value])
        return pairs

    def with_outputs(self, specs: Sequence[TensorSpec | None]) -> Recording:
        """The same calls, with outputs in memory of other descriptions."""
        made = copy.copy(self)
        pairs = zip(self.outputs, specs, strict=True)
        made.outputs = [output._replace(spec=spec) for output, spec in pairs]
        return made

    def _as_program(
        self, tensors: Sequence[TensorSpec | None], summary: str
    ) -> tuple[Program, Call]:
        """Name and operands of several calls in place of an operator's."""
        names = [*self.input_names, *[output.name for output in self.outputs]]
        pairs = zip(names, tensors, strict=True)
        value = {name: spec for name, spec in pairs if spec is not None}
        first = len(self.input_names)
        program = Program(self.name, tuple(names[:first]), tuple(names[first:]), summary)
        return program, Call(value, {}, {}, {name: name for name in names}, self.soc)

    def _replacing(self) -> list[list[int]]:
        """Overlaps as outputs replace inputs: rows of how inputs lie to outputs."""
        return [
            [
                IDENTICAL if value is not None and output.replaces == value else DISJOINT
                for value in self.operands
            ]
            for output in self.outputs
        ]

    def _nothing_graph(self, builder: graph.GraphBuilder) -> graph.Graph:
        """A graph that shows the operands of what does nothing."""
        source = None
        for name, value in zip(self.input_names, self.inputs, strict=True):
            source = builder.input(name, (0,), graph_dtype(self._specs[value].dtype))
        for output in self.outputs:
            if output.spec is not None:
                dtype = graph_dtype(output.spec.dtype)
                made = builder.compute(self.name, [] if source is None else [source], (0,), dtype)
                builder.view_copy(made, builder.output(output.name, (0,), dtype))
        return builder.build(verify=False)

    def _declare_inputs(self, joining: _Joining) -> list[int | None]:
        """The builder's id of each operand; None for one that is absent."""
        for name, value in zip(self.input_names, self.inputs, strict=True):
            spec = _in_bytes(self._specs[value])
            joining.ids[value] = joining.builder.input(
                name,
                spec.shape,
                graph_dtype(spec.dtype),
                strides=spec.strides,
                note=_note_of(spec),
            )
        return [None if value is None else joining.ids[value] for value in self.operands]

    def _copies(
        self, joining: _Joining, declared: Sequence[int | None], rows: Overlaps
    ) -> set[int]:
        """Copy the inputs that are read while an output takes their place; gives their ids."""
        crossed = {
            id
            for row in rows
            for id, overlap in zip(declared, row, strict=True)
            if overlap == PARTIAL and id is not None
        }
        if not self._reads_before_it_writes:
            crossed |= _hidden_aliases(declared, rows)
        copies = {
            id: joining.builder.contiguous(id, reason="overlap")
            for id in declared
            if id is not None and id in crossed
        }
        for value, id in joining.ids.items():
            joining.ids[value] = copies.get(id, id)
        return crossed

    @property
    def _reads_before_it_writes(self) -> bool:
        """Whether all elements of inputs that one of a result needs are read before it is written."""
        return self._single is not None and self._single[0].lower is None

    def _target(
        self,
        joining: _Joining,
        declared: Sequence[int | None],
        copies: Collection[int],
        output: Output,
        row: Sequence[int],
    ) -> int | None:
        """The output of the graph, None for one that is not written."""
        spec = output.spec
        if spec is None or not output.is_written:
            return None
        spec = _in_bytes(spec)
        alias = None
        for id, overlap in zip(declared, row, strict=True):
            if overlap == IDENTICAL and id is not None and id not in copies:
                alias = id
                break
        return joining.builder.output(
            output.name,
            spec.shape,
            graph_dtype(spec.dtype),
            strides=spec.strides,
            alias_of=alias,
            note=_note_of(spec),
        )

    def _record(self, step: Step, made: int | None = None) -> None:
        """Keep a step; what makes nothing but a value without elements makes no nodes."""
        if made is not None and not self._specs[made].size:
            step = _Nothing(made, self._specs[made])
        self._steps.append((step, self.origin()))

    def _take_operands(
        self, operator: Operator, call: Call
    ) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        """Declare the operands of a single call, lists taken apart; gives their values by role."""
        values: dict[str, int] = {}
        lists: dict[str, tuple[int, ...]] = {}
        for role in operator.kernel_operands:
            if role in operator.lists:
                many = enumerate(call.lists[role])
                lists[role] = tuple([self.input(f"{role}_{n}", spec) for n, spec in many])
                if operator.is_ended(role):
                    self.operands.append(None)
            elif role in call.tensors:
                values[role] = self.input(role, call.tensors[role])
            else:
                self.operands.append(None)
        return values, lists

    def _new(self, spec: TensorSpec) -> int:
        """A value of a description whose size is known to be possible."""
        self._specs.append(spec)
        return len(self._specs) - 1

    def _value(self, spec: TensorSpec) -> int:
        if len(spec.shape) > MAX_DIMS:
            raise invalid(
                f"an array of shape {spec.shape} has {len(spec.shape)} dimensions, at most "
                f"{MAX_DIMS} are supported"
            )
        return self._new(spec)


@dataclass(slots=True, eq=False)
class _Called:
    """A call that was recorded: makes its nodes when it is asked to join."""

    recording: Recording
    operator: Operator
    call: Call
    results: Mapping[str, tuple[aclDataType, tuple[int, ...]]]
    operands: Mapping[str, int]
    lists: Mapping[str, tuple[int, ...]]
    made: Mapping[str, int]
    numbers: tuple[Number, ...]
    is_single: bool = False

    def __call__(self, joining: _Joining) -> None:
        ids, builder, spec = joining.ids, joining.builder, self.recording.spec
        full = {role: value for role, value in self.made.items() if spec(value).size}
        for role, value in self.made.items():
            if role not in full and not self.is_single:  # nobody writes what has no elements
                found = spec(value)
                ids[value] = builder.buffer(role, found.shape, graph_dtype(found.dtype))
        if not full:
            return
        lowering = Lowering(
            builder,
            self.call,
            {role: ids[value] for role, value in self.operands.items()},
            {role: tuple([ids[value] for value in many]) for role, many in self.lists.items()},
            {role: self.results[role] for role in full},
            {a.role: n for a, n in zip(self.operator.scalars, self.numbers, strict=True)},
        )
        if self.is_single:
            for role, id in _lowered(self.operator, self.call, lowering).items():
                if role in full:
                    ids[full[role]] = id
            return
        first, builder.leaves_idle_out = builder.n_nodes, True
        builder.call = f"{self.operator.name}#{first}"
        for role, id in _lowered(self.operator, self.call, lowering).items():
            if role not in full:
                continue
            id = builder.cast(id, graph_dtype(spec(full[role]).dtype))
            ids[full[role]] = builder.contiguous(id) if builder.value(id).is_view else id
        builder.leaves_idle_out, builder.call = False, ""
        builder.mark(first, f"call {first}")


@dataclass(frozen=True, slots=True)
class _Nothing:
    """A value without elements: memory that nobody writes."""

    value: int
    spec: TensorSpec

    def __call__(self, joining: _Joining) -> None:
        dtype = graph_dtype(self.spec.dtype)
        joining.ids[self.value] = joining.builder.buffer("nothing", self.spec.shape, dtype)


def single_call(request: phase_one.Request, soc: str) -> Recording:
    """The recording of a call that was not made before, after its operator's rules.

    Raises
    ------
    RefusedError
        If it breaks one of them.
    """
    call, done = phase_one.check_call(request, soc)
    operator = request.operator
    value = not call.makes_absent or all(role in call.tensors for role in operator.outputs)
    results = {} if done and value else phase_one.infer(operator, call)
    recording = Recording(operator.name, soc)
    recording._single, recording.ends_early = (operator, call), done
    operands, lists = recording._take_operands(operator, call)
    outputs = _outputs_of(request, call, results)
    phase_one.refuse_sizes(call.names, outputs)
    made = {role: recording._new(spec) for role, spec in outputs.items() if role in results}
    numbers = tuple(range(len(operator.scalars)))
    step = _Called(
        recording, operator, call, results, operands, lists, made, numbers, is_single=True
    )
    recording._steps.append((step, ()))
    recording.outputs = [
        Output(role, made.get(role), outputs.get(role)) for role in operator.outputs
    ]
    return recording


def _outputs_of(
    request: phase_one.Request,
    call: Call,
    results: Mapping[str, tuple[aclDataType, tuple[int, ...]]],
) -> dict[str, TensorSpec]:
    """The outputs of a single call by role: as given, or dense ones of the results' dtypes."""
    found = {}
    for role in request.operator.outputs:
        if role in call.tensors:
            found[role] = call.tensors[role]
        elif role in results and (request.wanted is None or role in request.wanted):
            found[role] = _dense(*results[role])
    return found


def _dense(dtype: aclDataType, shape: tuple[int, ...]) -> TensorSpec:
    return TensorSpec(dtype, shape, contiguous_strides(shape))


def _in_bytes(spec: TensorSpec) -> TensorSpec:
    """A description as graphs have it, whose elements are full bytes."""
    found = spec.in_bytes() if spec.size else spec
    assert found is not None, "phase one sees to it that no element begins inside a byte"
    return found


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def _part(builder: graph.GraphBuilder, source: int, pieces: Pieces) -> int:
    """A slice of a value."""
    old = builder.value(source).strides
    return builder.view(
        source,
        tuple([size for _, _, size in pieces]),
        tuple([s * step for s, (_, step, _) in zip(old, pieces, strict=True)]),
        sum([start * s for s, (start, _, _) in zip(old, pieces, strict=True)]),
    )


def _complement(shape: tuple[int, ...], pieces: Pieces) -> list[Pieces]:
    """Slices that together have all elements that a slice has not, each once.

    >>> _complement((4,), ((1, 2, 2),))
    [((0, 1, 1),), ((2, 2, 1),)]
    """
    found: list[Pieces] = []
    whole = tuple([(0, 1, size) for size in shape])
    for axis, (piece, size) in enumerate(zip(pieces, shape, strict=True)):
        for rest in _others(piece, size):
            slices = (*pieces[:axis], rest, *whole[axis + 1 :])
            if all(n for _, _, n in slices):
                found.append(slices)
    return found


def _others(piece: tuple[int, int, int], size: int) -> list[tuple[int, int, int]]:
    """The places along a dimension that a slice leaves out, as slices."""
    start, step, count = piece
    if count == 0:
        return [(0, 1, size)]
    first = min(start, start + step * (count - 1))
    last, step = max(start, start + step * (count - 1)), max(1, abs(step))
    if step == 1 or count == 1:
        return [(0, 1, first), (last + 1, 1, size - last - 1)]
    between = [(first + n, step, count - 1) for n in range(1, step)]
    return [(0, 1, first), *between, (last + 1, 1, size - last - 1)]


def _lowered(operator: Operator, call: Call, lowering: Lowering) -> Mapping[str, int]:
    if operator.lower is not None:
        return operator.lower(lowering)
    return pointwise(lowering, operator, operator.formula_for(call.switches))


def _hidden_aliases(declared: Sequence[int | None], overlaps: Sequence[Sequence[int]]) -> set[int]:
    """Inputs that an output takes the place of without being called their alias: one only is.

    Pointwise operators have read all of their inputs' elements when they write one.
    """
    found: set[int] = set()
    for row in overlaps:
        alike = [
            v
            for v, overlap in zip(declared, row, strict=True)
            if overlap == IDENTICAL and v is not None
        ]
        found.update(alike[1:])
    return found


def _note_of(spec: TensorSpec) -> str:
    if spec.format in PLAIN_FORMATS:
        return ""
    return f"{aclFormat(spec.format).name}: its storage is taken as laid out plainly"
