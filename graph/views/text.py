"""Aligned plain text, for terminals, logs and diffs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..plan import WorkspacePlan
    from ..schedule import Schedule, Step


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], right: str = "") -> str:
    """Columns as wide as their content; those named in `right` (space separated) to the right.

    >>> print(table(["name", "bytes"], [["a", 1], ["bb", 10]], right="bytes"))
    name  bytes
    a         1
    bb       10
    """
    cells = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    to_right = [header in right.split() for header in headers]
    lines = (
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, to_right, strict=True)
        )
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


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


def graph_to_text(graph: Graph) -> str:
    rows: list[list[object]] = []

    def add(step: str, label: str, kind: str, value: Value) -> None:
        layout = [value.dtype.name, dims(value.shape), dims(value.strides)]
        rows.append([step, label, kind, *layout, value.nbytes, storage_words(graph, value)])

    for id in graph.inputs:
        add("", graph.value(id).name, "input", graph.value(id))
    for number, step in enumerate(graph.steps()):
        loop = step[0].attr("loop")
        for node in step:
            label = f"{number}" if loop is None else f"{number} loop {loop}"
            add(label, node.name, node.kind, graph.value(node.output))
            for id in node.inputs:
                add("", f"  < {graph.value(id).name}", "", graph.value(id))
            target = graph.value(node.output).name
            if target != node.name:
                rows[-1 - len(node.inputs)][1] = f"{node.name} > {target}"
    headers = ["step", "node", "kind", "dtype", "shape", "strides", "bytes", "storage"]
    lines = [table(headers, rows, right="bytes")]
    attrs = [f"  {node.name}: {attr_words(node)}" for node in graph.nodes if attr_words(node)]
    return "\n".join([*lines, *(["attributes", *attrs] if attrs else [])])


# --- Plan -------------------------------------------------------------------------------------


def plan_to_text(plan: WorkspacePlan) -> str:
    if not plan.buffers:
        return "workspace 0 bytes: nothing needs space"
    rows = [
        [
            buffer.name,
            buffer.producer or "-",
            ", ".join(buffer.consumers) or "-",
            buffer.first,
            buffer.last,
            buffer.offset,
            buffer.nbytes,
            buffer.padded - buffer.nbytes,
            ", ".join(buffer.shared_with) or "-",
        ]
        for buffer in plan.buffers
    ]
    headers = ["buffer", "producer", "consumers", "first", "last"]
    headers += ["offset", "bytes", "padding", "shares space with"]
    body = table(headers, rows, right="first last offset bytes padding")
    tiles = [
        f"  {part.name}: {part.nbytes} bytes at {part.offset} of every thread's "
        f"{plan.scratch_per_thread}"
        for buffer in plan.buffers
        for part in buffer.parts
    ]
    if tiles:
        body += f"\ntiles, for {plan.threads} thread{'s' * (plan.threads != 1)}\n"
        body += "\n".join(tiles)
    return f"{body}\n{plan_summary(plan)}"


def plan_summary(plan: WorkspacePlan) -> str:
    """What the numbers of a plan say, in lines."""
    gap = plan.size - plan.lower_bound
    shrink = ", ".join(f"{b.name} ({human_bytes(b.padded)})" for b in plan.must_shrink)
    peak = f"step {plan.peak_step}"
    if plan.peak_step < len(plan.steps):
        peak += f", {plan.steps[plan.peak_step]}"
    return "\n".join(
        [
            f"workspace {plan.size} bytes ({human_bytes(plan.size)}), "
            f"strategy {plan.strategy}, {plan.proof}",
            f"lower bound {plan.lower_bound}, gap {gap}, "
            f"naive {plan.naive_size}, bucket {plan.bucket_size}",
            f"peak at {peak}: {plan.peak_bytes} bytes live, fragmentation {plan.fragmentation:.1%}",
            f"to lower the peak, shrink: {shrink}",
        ]
    )


# --- Schedule ---------------------------------------------------------------------------------


def schedule_to_text(schedule: Schedule) -> str:
    parts = [_step_text(schedule, number, step) for number, step in enumerate(schedule.steps)]
    scratch = schedule.scratch_per_thread
    total = f"workspace {schedule.workspace_size} bytes"
    if scratch:
        total += f", of them {scratch} of tiles for each of {schedule.max_threads} threads"
    return "\n".join([*parts, total])


def base_words(schedule: Schedule, base: int) -> str:
    """What an operand's base is called."""
    return {-1: "workspace", -2: "scratch"}.get(base) or schedule.arguments[base]


def _step_text(schedule: Schedule, number: int, step: Step) -> str:
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
        f"-> #{op.operands[-1]}{', streaming stores' if op.flags & 1 else ''}"
        for op in step.ops
    ]
    return "\n".join([head, table(headers, rows, right="offset bytes"), *ops])
