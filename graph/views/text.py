"""Aligned plain text, for terminals, logs and diffs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from ..names import listed
from ..runtime.abi import SCRATCH, TILE_STREAM, WORKSPACE
from .tables import Part, Sheet, make, to_text

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..lower.schedule import Schedule, Step
    from ..planner.plan import WorkspacePlan


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


_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_words(words: str) -> str:
    r"""Words as XML and HTML have them; what XML 1.0 has no place for becomes U+FFFD.

    >>> xml_words("a<b"), xml_words("a\x00b")
    ('a&lt;b', 'a\ufffdb')
    """
    return escape(_NOT_IN_XML.sub("\ufffd", words))


# --- Graph ------------------------------------------------------------------------------------


def storage_words(graph: Graph, value: Value) -> str:
    """The storage class, with the name of what a value is a view or an alias of."""
    words = "tile, never whole" if value.storage == "tile" else value.storage
    if value.is_view:
        words += f", view of {graph.root(value.id).name}"
    elif value.alias_of is not None:
        words += f", starts where {graph.value(value.alias_of).name} does"
    return f"{words} ({value.note})" if value.note else words


def attr_words(node: Node) -> str:
    """Attributes in one line."""
    return ", ".join(f"{key}={value}" for key, value in node.attrs if key != "loop")


def places(plan: WorkspacePlan | None) -> dict[str, str]:
    """Where values lie in the workspace, by name: an offset, for tiles that of every thread."""
    if plan is None:
        return {}
    whole = {buffer.name: str(buffer.offset) for buffer in plan.buffers}
    step = plan.scratch_per_thread
    tiles = {
        part.name: f"{buffer.offset + part.offset}+{step}*thread"
        for buffer in plan.buffers
        for part in buffer.parts
    }
    return whole | tiles


def graph_to_text(graph: Graph, plan: WorkspacePlan | None = None) -> str:
    return to_text(graph_sheet(graph, plan))


def graph_sheet(graph: Graph, plan: WorkspacePlan | None = None) -> Sheet:
    """Inputs, then the nodes step by step, each with its operands; then their attributes."""
    where = places(plan)
    headers = ["step", "node", "kind", "dtype", "shape", "strides"]
    headers += ["bytes", "read", "written", *(["offset"] if plan else []), "storage"]
    rows: list[list[object]] = []

    def add(step: str, label: str, kind: str, value: Value, read: object, written: object) -> None:
        row = [step, label, kind, value.dtype.name, dims(value.shape), dims(value.strides)]
        row += [str(value.nbytes), str(read), str(written)]
        if plan:
            row.append(where.get(graph.root(value.id).name, ""))
        rows.append([*row, storage_words(graph, value)])

    for id in graph.inputs:
        add("", graph.value(id).name, "input", graph.value(id), "", "")
    for number, step in enumerate(graph.steps()):
        loop = step[0].attr("loop")
        label = f"{number}" if loop is None else f"{number} loop {loop}"
        for node in step:
            target = graph.value(node.output)
            name = node.name if target.name == node.name else f"{node.name} > {target.name}"
            add(label, name, node.kind, target, graph.bytes_read(node), graph.bytes_written(node))
            for id in node.inputs:
                value = graph.value(id)
                add("", f"  < {value.name}", "", value, graph.memory_bytes(id), "")
    sheet: list[Part] = [make(headers, rows, "bytes,read,written,offset", "node")]
    attrs = [f"  {node.name}: {attr_words(node)}" for node in graph.nodes if attr_words(node)]
    return (*sheet, *(["attributes", *attrs] if attrs else []))


# --- Plan -------------------------------------------------------------------------------------


def plan_to_text(plan: WorkspacePlan) -> str:
    return to_text(plan_sheet(plan))


def plan_sheet(plan: WorkspacePlan) -> Sheet:
    """A row for each buffer, the tiles, and what the numbers say."""
    if not plan.buffers:
        return ("workspace 0 bytes: nothing needs space",)
    rows = [
        [
            buffer.name,
            buffer.contents or "-",
            buffer.producer or "-",
            ", ".join(buffer.consumers) or "-",
            buffer.first,
            buffer.last,
            buffer.offset,
            buffer.nbytes,
            buffer.padded - buffer.nbytes,
            buffer.sharing or "-",
        ]
        for buffer in plan.buffers
    ]
    headers = ["buffer", "contents", "producer", "consumers", "first", "last"]
    headers += ["offset", "bytes", "padding", "shares space with"]
    sheet: list[Part] = [make(headers, rows, "first,last,offset,bytes,padding", "buffer")]
    tiles = [
        f"  {part.name}: {part.nbytes} bytes at {part.offset} of every thread's "
        f"{plan.scratch_per_thread}"
        for buffer in plan.buffers
        for part in buffer.parts
    ]
    if tiles:
        sheet += [f"tiles, for {plan.threads} thread{'s' * (plan.threads != 1)}", *tiles]
    return (*sheet, *plan_summary(plan).split("\n"))


def plan_summary(plan: WorkspacePlan) -> str:
    """What the numbers of a plan say, in lines."""
    shrink = listed(f"{b.name} ({human_bytes(b.padded)})" for b in plan.must_shrink)
    peak = f"step {plan.peak_step}"
    if plan.peak_step < len(plan.steps):
        peak += f", {plan.steps[plan.peak_step]}"
    return "\n".join(
        [
            f"workspace {plan.size} bytes ({human_bytes(plan.size)}), "
            f"strategy {plan.strategy}, {plan.proof}",
            f"lower bound {plan.lower_bound}, gap {plan.gap}, "
            f"naive {plan.naive_size}, bucket {plan.bucket_size}",
            f"peak at {peak}: {plan.peak_bytes} bytes live, fragmentation {plan.fragmentation:.1%}",
            f"to lower the peak, shrink: {shrink}",
        ]
    )


# --- Schedule ---------------------------------------------------------------------------------


def schedule_to_text(schedule: Schedule) -> str:
    return to_text(schedule_sheet(schedule))


def schedule_sheet(schedule: Schedule) -> Sheet:
    """For each step its loops, its operands as it walks them, and its kernel calls."""
    scratch = schedule.scratch_per_thread
    total = f"workspace {schedule.workspace_size} bytes"
    if not schedule.steps:
        return (f"nothing to do, {total}",)
    if scratch:
        total += f", of them {scratch} of tiles for each of {schedule.max_threads} threads"
    steps = (_step_parts(schedule, number, step) for number, step in enumerate(schedule.steps))
    return (*(part for parts in steps for part in parts), total)


def base_words(schedule: Schedule, base: int) -> str:
    """What an operand's base is called."""
    return {WORKSPACE: "workspace", SCRATCH: "scratch"}.get(base) or schedule.arguments[base]


def _step_parts(schedule: Schedule, number: int, step: Step) -> Sheet:
    tile = f"{step.tile_rows}x{step.tile_cols}"
    head = (
        f"step {number}: {step.name}\n"
        f"  loops {dims(step.shape)}, {step.n_tiles} tile{'s' * (step.n_tiles != 1)} of {tile}, "
        f"up to {step.threads(schedule.max_threads)} thread"
        f"{'s' * (step.threads(schedule.max_threads) != 1)}, "
        f"reads {human_bytes(step.bytes_read)}, writes {human_bytes(step.bytes_written)}"
    )
    rows = [
        [
            f"  {place}",
            operand.name,
            operand.dtype,
            base_words(schedule, operand.base),
            operand.offset,
            dims(operand.strides),
            operand.nbytes,
        ]
        for place, operand in enumerate(step.operands)
    ]
    headers = ["  #", "operand", "dtype", "base", "offset", "byte strides", "bytes"]
    ops = [
        f"  {op.node}: {op.kernel}({', '.join(f'#{i}' for i in op.operands[:-1])}) "
        f"-> #{op.operands[-1]}{', streaming stores' if op.flags & TILE_STREAM else ''}"
        for op in step.ops
    ]
    return (*head.split("\n"), make(headers, rows, "offset,bytes", "operand"), *ops)
