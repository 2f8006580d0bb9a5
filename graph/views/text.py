"""Aligned plain text, for terminals, logs and diffs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ..attrs import Argument
from ..result_steps import steps_of
from ..runtime.abi import SCRATCH, TILE_STREAM, WORKSPACE
from ..summaries import counted
from .repeats import Folded, arguments, folded, is_large, side_inputs
from .tables import Part, Sheet, make, to_rich, to_text

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..lower.schedule import Op, Schedule, Step
    from ..planner.plan import Buffer, WorkspacePlan


def dims(numbers: Iterable[int]) -> str:
    """Shapes and strides as people write them: `(4,8)`."""
    return "(" + ",".join(map(str, numbers)) + ")"


def human_bytes(count: int) -> str:
    """Bytes with a unit that keeps the number short.

    >>> human_bytes(512), human_bytes(1536), human_bytes(3 * 2**20)
    ('512 B', '1.5 KiB', '3 MiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.4g} {unit}"


MOST_OF_A_LOOP = 8  # nodes that a table of a large graph lists
MOST_NAMED = 12  # of the buffers that share the bytes of one, of the nodes that read a value


def some(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Names in a line; of many the first ones, and how many more.

    >>> some(["a", "b", "c"], 2), some([])
    ('a, b, +1 more', '-')
    """
    more = [f"+{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more]) or "-"


_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_words(words: str) -> str:
    r"""Words as XML and HTML have them; what XML 1.0 has no place for becomes U+FFFD.

    >>> xml_words("a<b"), xml_words("a\x00b")
    ('a&lt;b', 'a\ufffdb')
    """
    return escape(_NOT_IN_XML.sub("\ufffd", words))


# --- Graph ------------------------------------------------------------------------------------


def storage_words(graph: Graph, value: Value) -> str:
    """The storage class, with the name of what a value is a view, a part or an alias of."""
    words = "tile, never whole" if value.storage == "tile" else value.storage
    if value.is_view:
        words = view_words(graph, value)
    elif value.alias_of is not None:
        words += f", starts where {graph.value(value.alias_of).name} does"
    return f"{words} ({value.note})" if value.note else words


def view_words(graph: Graph, value: Value) -> str:
    """Words about a view: ``part of out at 32`` where a node writes it, offsets in elements."""
    root = graph.root(value.id)
    if value.storage == "part" or value.id in graph.writers():
        return f"part of {root.name} at {value.offset}"
    return f"{value.storage}, view of {root.name}" + (f" at {value.offset}" if value.offset else "")


def kind_words(node: Node) -> str:
    """The kind of a node, what it needs of the loop around it, and its steps on results."""
    if node.domain == "point":
        return node.kind
    along = f"row-wise along axis {node.attr('axis', -1)}" if node.domain == "row" else node.domain
    steps = [step.kernel or step.kind.lower() for step in steps_of(node)]
    return f"{node.kind}, {along}" + (f", then {', '.join(steps)}" if steps else "")


def written_words(graph: Graph, node: Node) -> str:
    """The name of a node, with those of its results that are called otherwise."""
    names = [graph.value(id).name for id in node.outputs]
    return node.name if names == [node.name] else f"{node.name} > {', '.join(names)}"


def attr_words(node: Node) -> str:
    """Attributes in one line, but for those that `kind_words` tells, the loop, the origin and the call."""
    elsewhere = {"loop", "domain", "origin", "call"} | ({"axis"} if node.domain == "row" else set())
    return ", ".join(
        f"{key}={attr_value_words(v)}" for key, v in node.attrs if key not in elsewhere
    )


def origin_words(node: Node) -> str:
    """Lines that a node comes from, without their text: ``a.py:3 > b.py:7``.

    >>> from aclnn.graph import Node
    >>> origin_words(Node("f", "Compute", (), (0,), (("origin", ("a.py:3: g(x)", "b.py:7: x")),)))
    'a.py:3 > b.py:7'
    """
    return " > ".join(words.partition(": ")[0] for words in node.origin)


def attr_value_words(value: object) -> str:
    """Words about an attribute's value."""
    if not isinstance(value, tuple):
        return argument_words(value)
    return f"({', '.join(map(attr_value_words, value))}{',' * (len(value) == 1)})"


def argument_words(value: object) -> str:
    """A number that a kernel takes: itself, or which one of a run's."""
    return f"{value.kind} argument {value.place}" if isinstance(value, Argument) else str(value)


@dataclass(frozen=True, slots=True)
class Places:
    """Places of values: offsets in the workspace, for tiles those of every thread.

    Of what is in the memory of an output, `outputs` has its name.
    """

    offsets: dict[str, int]
    tiles: dict[str, str]
    outputs: dict[str, str]

    def of(self, graph: Graph, value: Value) -> str:
        """The offset of a value in words; empty where it is not known."""
        if value.name in self.tiles:
            return self.tiles[value.name]
        name = graph.root(value.id).name
        if name not in self.offsets:
            return ""
        offset = self.offsets[name] + value.offset * value.dtype.itemsize
        return f"{self.outputs[name]}+{offset}" if name in self.outputs else str(offset)


def places(plan: WorkspacePlan | None, brief: bool = False) -> Places:
    """Places of values in the workspace, by name: an offset, for tiles that of every thread."""
    if plan is None:
        return Places({}, {}, {})
    step = plan.scratch_per_thread
    tiles = {
        part.name: f"{buffer.offset + part.offset}{'/thread' if brief else f'+{step}*thread'}"
        for buffer in plan.buffers
        for part in buffer.parts
    }
    outputs = {buffer.name: buffer.output for buffer in plan.buffers if buffer.output}
    return Places({buffer.name: buffer.offset for buffer in plan.buffers}, tiles, outputs)


def graph_to_text(
    graph: Graph, plan: WorkspacePlan | None = None, whole: bool = False, wide: bool = False
) -> str:
    return to_text(graph_sheet(graph, plan, whole, wide), wide=wide)


def graph_to_rich(
    graph: Graph, plan: WorkspacePlan | None = None, whole: bool = False, wide: bool = False
) -> Any:
    return to_rich(graph_sheet(graph, plan, whole, wide), wide=wide)


def graph_sheet(
    graph: Graph, plan: WorkspacePlan | None = None, whole: bool = False, wide: bool = False
) -> Sheet:
    """Arguments, then the nodes step by step, each with its operands; then their attributes.

    Of a large graph what repeats is there once, with how often, of long loops the first nodes, and
    weights are counted in a line.
    """
    if is_large(graph) and not (whole or wide):
        return _brief_sheet(graph, plan)
    small = folded(graph, whole)
    has_origins = any(node.origin for node in small.graph.nodes)
    headers = ["step", "node", "kind", "dtype", "shape", "strides"]
    headers += ["bytes", "read", "written", *(["offset"] if plan else []), "storage"]
    headers += ["origin"] * has_origins
    where = places(plan)

    def row(line: _Line) -> list[object]:
        value = small.graph.value(line.id)
        cells: list[object] = [
            line.step,
            line.label,
            line.kind,
            value.dtype.name,
            dims(value.shape),
        ]
        cells += [dims(value.strides), value.nbytes, line.read, line.written]
        cells += [where.of(small.graph, value)] if plan else []
        return [*cells, storage_words(small.graph, value), *([line.origin] if has_origins else [])]

    rows = [
        row(line) if isinstance(line, _Line) else line + [""] * (len(headers) - 2)
        for line in [
            *map(_argument_line(small), arguments(small.graph)),
            *_node_lines(graph, small, whole),
        ]
    ]
    # Eight columns: with a plan and lines of a program, bytes have to go.
    hidden = "strides,read,written" + (",bytes" if has_origins and plan else "")
    sheet: list[Part] = [
        make(headers, rows, "bytes,read,written,offset", "node,origin", wide=hidden, kept=KEPT)
    ]
    sheet += map(small.words, range(len(small.repeats)))
    attrs = [f"  {n.name}: {attr_words(n)}" for n in small.graph.nodes if attr_words(n)]
    return (*sheet, *(["attributes", *attrs] if attrs else []))


KEPT = "shape,strides"  # columns whose cells are never cut


@dataclass(frozen=True, slots=True)
class _Line:
    """A line about a value: as an argument, as a node's result or as its operand."""

    step: str
    label: str
    kind: str
    id: int
    read: object = ""
    written: object = ""
    origin: str = ""
    is_operand: bool = False


def _argument_line(small: Folded) -> Callable[[Value], _Line]:
    def line(value: Value) -> _Line:
        also = len(small.names(value.name)) - 1
        label = f"{value.name} (and {also} more)" if also else value.name
        return _Line("", label, value.storage, value.id)

    return line


def _node_lines(original: Graph, small: Folded, whole: bool) -> Iterator[_Line | list[object]]:
    """Lines of the nodes, step by step; of a long loop of a large graph those of the first nodes."""
    graph, numbers = small.graph, step_numbers(original)
    most = MOST_OF_A_LOOP if is_large(original) and not whole else len(original.nodes)
    for step in graph.steps():
        loop, number = step[0].attr("loop"), numbers[step[0].name]
        label = f"{number}" if loop is None else f"{number} loop {loop}"
        label += small.times(step[0].name)
        for node in step[:most]:
            first, *others = node.outputs
            target = graph.value(first).name
            name = node.name if target == node.name else f"{node.name} > {target}"
            read, written = graph.bytes_read(node), graph.bytes_written(node)
            yield _Line(label, name, kind_words(node), first, read, written, origin_words(node))
            for id in others:
                yield _Line("", f"  > {graph.value(id).name}", "", id, "", graph.memory_bytes(id))
            for id in node.inputs:
                name, read = graph.value(id).name, graph.bytes_read_of(node, id)
                yield _Line("", f"  < {name}", "", id, read, is_operand=True)
        if len(step) > most:
            yield [label, f"+{len(step) - most} more"]


def _brief_sheet(graph: Graph, plan: WorkspacePlan | None) -> Sheet:
    """The sheet of a large graph in lines of a terminal: operands by the name of their memory, weights
    counted, origins in lines of their own."""
    small, where = folded(graph), places(plan, brief=True)
    side = side_inputs(small)
    headers = ["step", "node", "kind", "dtype", "shape", *(["offset"] if plan else []), "storage"]
    rows: list[list[object]] = []
    named: list[Value] = [v for v in arguments(small.graph) if v.id not in side]
    for line in [*map(_argument_line(small), named), *_node_lines(graph, small, whole=False)]:
        if not isinstance(line, _Line):
            rows.append(line + [""] * (len(headers) - 2))
            continue
        value = small.graph.value(line.id)
        label, storage = line.label, storage_words(small.graph, value)
        if line.is_operand:
            label = f"  < {small.graph.root(value.id).name}"
            storage = _brief_storage(small.graph, value)
        cells = [line.step, label, line.kind.removeprefix("Compute, ")]
        cells += [value.dtype.name, dims(value.shape)]
        cells += [where.of(small.graph, value)] if plan else []
        rows.append([*cells, storage.removesuffix(", never whole")])
    weights = [name for id in side for name in small.names(small.graph.value(id).name)]
    nbytes = sum(graph.named(name).nbytes for name in weights)
    words = [f"weights and constants: {len(weights)}, {human_bytes(nbytes)}"] if weights else []
    table = make(headers, rows, "offset", "node", kept=KEPT, wrapped="kind,storage")
    origins = [f"  {n.name}: {origin_words(n)}" for n in small.graph.nodes if n.origin]
    return (
        *words,
        table,
        *(
            [f"/thread: for each thread {plan.scratch_per_thread} bytes on"]
            if where.tiles and plan
            else []
        ),
        *map(small.words, range(len(small.repeats))),
        *(["origin", *origins] if origins else []),
        "the wide form has weights and attributes, strides and bytes",
    )


def _brief_storage(graph: Graph, value: Value) -> str:
    """The storage of an operand that is named by its memory: ``view at 64``."""
    root = graph.root(value.id)
    if root.id == value.id:
        return storage_words(graph, value)
    view = "view" if root.storage == "workspace" else f"{root.storage}, view"
    return view + (f" at {value.offset}" if value.offset else "")


def step_numbers(graph: Graph) -> dict[str, int]:
    """The number of the step that each node runs in, by name."""
    return {node.name: n for n, step in enumerate(graph.steps()) for node in step}


# --- Plan -------------------------------------------------------------------------------------


def plan_to_text(plan: WorkspacePlan, wide: bool = False) -> str:
    return to_text(plan_sheet(plan), wide=wide)


def plan_to_rich(plan: WorkspacePlan, wide: bool = False) -> Any:
    return to_rich(plan_sheet(plan), wide=wide)


def plan_sheet(plan: WorkspacePlan) -> Sheet:
    """A row for each of the model's buffers, then of the steps' scratch, and what the numbers say."""
    if not plan.buffers:
        return (
            *_packed_tables(plan),
            "workspace 0 bytes: nothing needs space",
            *packed_words(plan),
        )
    return (
        *_buffer_tables(plan),
        *_scratch_tables(plan),
        *_packed_tables(plan),
        *plan_summary(plan).split("\n"),
    )


def _buffer_tables(plan: WorkspacePlan) -> list[Part]:
    rows = [
        [
            buffer.name,
            buffer.contents or "-",
            buffer.producer or "-",
            some(buffer.consumers),
            buffer.first,
            buffer.last,
            buffer_place(buffer),
            buffer.nbytes,
            buffer.padded - buffer.nbytes,
            buffer.shared_count,
            buffer.sharing or "-",
        ]
        for buffer in plan.buffers
        if not buffer.parts
    ]
    if not rows:
        return []
    headers = ["buffer", "contents", "producer", "consumers", "first", "last"]
    headers += ["offset", "bytes", "padding", "shared", "shares space with"]
    right = "first,last,offset,bytes,padding,shared"
    wide = "producer,consumers,shares space with"
    return [make(headers, rows, right, "buffer", wide=wide)]


def _scratch_tables(plan: WorkspacePlan) -> list[Part]:
    """Memory that kernels lend while a step runs; steps with as much at one place share a row."""
    rows: dict[tuple[object, ...], list[Buffer]] = {}
    for buffer in plan.buffers:
        if buffer.parts:
            own = sum(part.nbytes for part in buffer.parts)
            index = buffer.contents, own, buffer.offset, buffer.padded
            rows.setdefault(index, []).append(buffer)
    if not rows:
        return []
    table = [
        [_steps_words(plan, found), contents or "-", own, offset, padded]
        for (contents, own, offset, padded), found in rows.items()
    ]
    headers = ["scratch of steps", "contents", "per thread", "offset", "bytes"]
    title = f"scratch, for {counted(plan.threads, 'thread')}; a run borrows that of others"
    return [title, make(headers, table, "per thread,offset,bytes", "scratch of steps")]


def _packed_tables(plan: WorkspacePlan) -> list[Part]:
    """Inputs that are packed once for many runs."""
    if not plan.packed:
        return []
    rows = [
        [memory.name, memory.operand, some(memory.readers), memory.nbytes] for memory in plan.packed
    ]
    return [
        make(["packed once", "input", "read by", "bytes"], rows, "bytes", "packed once,read by")
    ]


def packed_words(plan: WorkspacePlan) -> list[str]:
    """A line for inputs that are packed once, if there are any."""
    if not plan.packed:
        return []
    inputs = counted(len(plan.packed), "input")
    return [
        f"outside the workspace {plan.packed_bytes} bytes ({human_bytes(plan.packed_bytes)}) "
        f"of {inputs}, packed once"
    ]


def _steps_words(plan: WorkspacePlan, found: Sequence[Buffer]) -> str:
    """Steps by name; of many the first one, and how many more."""
    names = [plan.steps[b.first] if b.first < len(plan.steps) else b.name for b in found]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def buffer_place(buffer: Buffer) -> str:
    """The offset in the workspace, or in an output: ``out+64``."""
    return f"{buffer.output}+{buffer.offset}" if buffer.output else str(buffer.offset)


def spare_words(plan: WorkspacePlan) -> list[str]:
    """A line for each output that holds intermediates before it is written."""
    lines = []
    for memory in plan.spare:
        held = [buffer.name for buffer in plan.buffers if buffer.output == memory.output]
        if held:
            lines.append(f"{memory.output} holds until step {memory.until} writes it: {some(held)}")
    return lines


def proof_words(plan: WorkspacePlan) -> str:
    """The proof, and what an optimal plan is optimal among."""
    if plan.proof != "optimal":
        return plan.proof
    return f"optimal for {'this order of steps' if plan.steps else 'these lifetimes'}"


def _disjoint_words(plan: WorkspacePlan) -> list[str]:
    """The model's buffers and scratch, each at the step where it is most."""
    if not plan.scratch_bytes:
        return []
    return [
        f"at most {plan.model_bytes} bytes of buffers and {plan.scratch_bytes} of scratch at one step"
    ]


def plan_summary(plan: WorkspacePlan) -> str:
    """Summary of a plan's numbers, in lines."""
    shrink = some([f"{b.name} ({human_bytes(b.padded)})" for b in plan.must_shrink])
    peak = f"step {plan.peak_step}"
    if plan.peak_step < len(plan.steps):
        peak += f", {plan.steps[plan.peak_step]}"
    return "\n".join(
        [
            f"workspace {plan.size} bytes ({human_bytes(plan.size)}), "
            f"strategy {plan.strategy}, {proof_words(plan)}",
            *_disjoint_words(plan),
            f"lower bound {plan.lower_bound}, gap {plan.gap}, "
            f"naive {plan.naive_size}, bucket {plan.bucket_size}",
            f"peak at {peak}: {plan.peak_bytes} bytes live, fragmentation {plan.fragmentation:.1%}",
            f"to lower the peak, shrink: {shrink}",
            *spare_words(plan),
            *packed_words(plan),
        ]
    )


# --- Schedule ---------------------------------------------------------------------------------


def schedule_to_text(schedule: Schedule, wide: bool = False) -> str:
    return to_text(schedule_sheet(schedule), wide=wide)


def schedule_to_rich(schedule: Schedule, wide: bool = False) -> Any:
    return to_rich(schedule_sheet(schedule), wide=wide)


def schedule_sheet(schedule: Schedule) -> Sheet:
    """For each step its loops, its operands as it walks them, and its kernel calls."""
    scratch = schedule.scratch_per_thread
    total = f"workspace {schedule.workspace_size} bytes"
    if not schedule.steps:
        return (f"nothing to do, {total}",)
    if scratch:
        total += f", of them {scratch} of tiles for each of {counted(schedule.planned_threads, 'thread')}"
    steps = (_step_parts(schedule, number, step) for number, step in enumerate(schedule.steps))
    return (*(part for parts in steps for part in parts), total)


def base_words(schedule: Schedule, base: int) -> str:
    """Name of an operand's base."""
    return {WORKSPACE: "workspace", SCRATCH: "scratch"}.get(base) or schedule.arguments[base]


def _step_parts(schedule: Schedule, number: int, step: Step) -> Sheet:
    rows = [
        [
            f"  {index}",
            operand.name,
            operand.dtype,
            base_words(schedule, operand.base),
            operand.offset,
            *([dims(operand.shape)] if step.is_call else []),
            dims(operand.strides),
            operand.nbytes,
        ]
        for index, operand in enumerate(step.operands)
    ]
    shape = ["shape"] if step.is_call else []
    headers = ["  #", "operand", "dtype", "base", "offset", *shape, "byte strides", "bytes"]
    table = make(headers, rows, "offset,bytes", "operand")
    return (*_step_head(schedule, number, step), table, *map(op_words, step.ops))


def _step_head(schedule: Schedule, number: int, step: Step) -> list[str]:
    """Head of a step: what it runs over, and how."""
    threads, count = step.threads(schedule.max_threads), step.n_tiles
    loops = f"loops {dims(step.shape)}, {count} tile{'s' * (count != 1)}"
    loops += f" of {step.tile_rows}x{step.tile_cols}"
    if step.is_call:
        loops = "called once" if count == 1 else f"called {count} times, each time for a share"
    return [
        f"step {number}: {step.name}",
        f"  {loops}, up to {threads} thread{'s' * (threads != 1)}, "
        f"reads {human_bytes(step.bytes_read)}, writes {human_bytes(step.bytes_written)}",
    ]


def op_words(op: Op) -> str:
    """A kernel call: its operands by their place, its numbers, what it has and does besides."""
    first = len(op.operands) - op.outputs
    reads, writes = (
        ", ".join(f"#{i}" for i in some) for some in (op.operands[:first], op.operands[first:])
    )
    params = "; " + ", ".join(map(argument_words, op.params)) if op.params else ""
    scratch = f", memory of its own at {op.scratch} of scratch" if op.scratch >= 0 else ""
    stream = ", streaming stores" if op.flags & TILE_STREAM else ""
    return f"  {op.node}: {op.kernel}({reads}{params}) -> {writes}{scratch}{stream}"
