"""Passes: functions from a graph to a better graph, each telling what it did and why.

The graph as an operator builds it holds every node that could be needed.  `elide` drops those
that do nothing, `fold_strides` turns copies into strides, `fold_casts` turns conversions into
loads and stores, `fuse` puts what remains into tile loops, and `in_place` makes sure that no output
destroys an input that is still to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..attrs import freeze_attrs
from ..ir import Graph, Node, Value
from ..rewriter import Draft, rebuilt
from ..runtime.abi import MAX_OPERANDS
from ..strides import contiguous_strides


@dataclass(frozen=True, slots=True)
class Note:
    """What a pass did to a node, and why.

    >>> print(Note("x_cast", "elided", "already float32"))
    x_cast: elided, already float32
    """

    node: str
    action: str
    why: str

    def __str__(self) -> str:
        return f"{self.node}: {self.action}, {self.why}"


Notes = tuple[Note, ...]
Pass = Callable[[Graph], tuple[Graph, Notes]]


def elide(graph: Graph) -> tuple[Graph, Notes]:
    """Drop nodes that change nothing, and let producers write row-major outputs themselves."""
    notes: list[Note] = []
    same: dict[int, int] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = replace(node, inputs=tuple(same.get(id, id) for id in node.inputs))
        why = _idle(graph, node)
        if why:
            same[node.output] = node.inputs[0]
            notes.append(Note(node.name, "elided", why))
        else:
            nodes.append(node)
    nodes, copies = _drop_view_copies(graph, nodes, lambda out, writer: out.is_contiguous)
    for copy, writer in copies:
        out = graph.value(copy.output).name
        why = f"{out} is contiguous, so {writer.name} writes it directly"
        notes.append(Note(copy.name, "elided", why))
    return rebuilt(graph, nodes), tuple(notes)


def _idle(graph: Graph, node: Node) -> str:
    """Why the node does nothing; empty when it does something."""
    if node.kind == "Compute" or node.is_forced_copy:
        return ""
    source, out = graph.value(node.inputs[0]), graph.value(node.output)
    if out.storage == "output":
        return ""
    if node.kind == "Contiguous" and source.is_contiguous:
        return "already contiguous"
    if node.kind == "Cast" and source.dtype == out.dtype:
        return f"already {out.dtype.name}"
    if node.kind == "BroadcastTo" and source.shape == out.shape:
        return "already has the shape"
    return ""


def _drop_view_copies(
    graph: Graph, nodes: list[Node], allowed: Callable[[Value, Node], bool]
) -> tuple[list[Node], list[tuple[Node, Node]]]:
    """Make producers write the outputs; returns the nodes and the (copy, producer) pairs."""
    place = {node.output: at for at, node in enumerate(nodes)}
    readers = graph.readers(nodes)
    forced = _last_forced_copy(nodes)
    kept = dict(enumerate(nodes))
    dropped = []
    for copy in [node for node in nodes if node.kind == "ViewCopy"]:
        (source,) = copy.inputs
        if graph.value(source).storage == "output" or readers.get(source) != (copy,):
            continue
        out, writer = graph.value(copy.output), kept.get(place.get(source, -1))
        if writer is None or place[source] <= forced or not allowed(out, writer):
            continue
        kept[place[source]] = replace(writer, output=out.id)
        del kept[place[out.id]]
        dropped.append((copy, writer))
    return list(kept.values()), dropped


def _last_forced_copy(nodes: Iterable[Node]) -> int:
    """The place of the last forced copy, -1 without one: no output is written before it."""
    return max((at for at, node in enumerate(nodes) if node.is_forced_copy), default=-1)


def fold_strides(graph: Graph) -> tuple[Graph, Notes]:
    """Turn Contiguous, BroadcastTo and ViewCopy into the strides that their neighbours use."""
    notes: list[Note] = []
    nodes: list[Node] = []
    draft = Draft(graph)
    # Of several such readers of a value the first is named.
    opaque = {
        id: node for node in reversed(graph.nodes) if not node.is_elementwise for id in node.inputs
    }
    for node in graph.nodes:
        if node.kind not in ("Contiguous", "BroadcastTo") or node.is_forced_copy:
            nodes.append(node)
            continue
        why_not = _needs_a_copy(graph, node, opaque.get(node.output))
        if why_not:
            nodes.append(node)
            notes.append(Note(node.name, "kept", why_not))
            continue
        source = draft.value(node.inputs[0])
        view = draft.view(source, graph.value(node.output))
        notes.append(Note(node.name, "folded", _fold_reason(source, view)))
    graph = draft.graph()
    strided = lambda out, writer: writer.is_elementwise and writer.kind != "Contiguous"  # noqa: E731
    nodes, copies = _drop_view_copies(graph, nodes, strided)
    for copy, writer in copies:
        strides = graph.value(copy.output).strides
        notes.append(Note(copy.name, "folded", f"{writer.name} stores with strides {strides}"))
    return rebuilt(graph, nodes), tuple(notes)


def _needs_a_copy(graph: Graph, node: Node, reader: Node | None) -> str:
    """Why the result must lie somewhere; `reader` is a node that cannot read it by strides."""
    if graph.value(node.output).storage == "output":
        return "it writes an output"
    if reader is not None:
        return f"{reader.name} is not elementwise and reads row-major memory"
    return ""


def _fold_reason(source: Value, view: Value) -> str:
    if source.shape == view.shape:
        return f"read with strides {view.strides}"
    missing = len(view.shape) - len(source.shape)
    padded = (1,) * missing + source.shape
    dims = [i for i, (a, b) in enumerate(zip(padded, view.shape, strict=True)) if a != b]
    if not dims:
        return "only dimensions of size 1 are added"
    names = ", ".join(map(str, dims))
    return f"stride 0 along dim {names}" if len(dims) == 1 else f"stride 0 along dims {names}"


def fold_casts(graph: Graph) -> tuple[Graph, Notes]:
    """Let Compute nodes read what their inputs were cast from, and write what their result is cast
    to: a cast becomes part of a load or a store."""
    graph, loads = _casts_into_loads(graph)
    graph, stores = _casts_into_stores(graph)
    return graph, (*loads, *stores)


def _converts(node: Node) -> bool:
    """Whether a node can read and write other dtypes than it was built with."""
    return node.kind == "Compute" and node.is_elementwise and node.attr("any_dtype", True)


def _casts_into_loads(graph: Graph) -> tuple[Graph, Notes]:
    """Let nodes read what was cast, and drop casts that nobody reads any more."""
    notes: list[Note] = []
    casts = {node.output: node for node in graph.nodes if node.kind == "Cast"}
    nodes: list[Node] = []
    draft = Draft(graph)
    for node in graph.nodes:
        if _converts(node):
            inputs = []
            for id in node.inputs:
                cast = casts.get(draft.root(id).id)
                if cast is not None:
                    id = draft.load_of(draft.value(cast.inputs[0]), id)
                    notes.append(_cast_note(graph, cast, f"in the load of {node.name}"))
                inputs.append(id)
            node = replace(node, inputs=tuple(inputs))
        nodes.append(node)
    used = {draft.root(id).id for node in nodes for id in node.inputs} | set(graph.outputs)
    nodes = [node for node in nodes if node.kind != "Cast" or node.output in used]
    return rebuilt(draft.graph(), nodes), tuple(dict.fromkeys(notes))


def _casts_into_stores(graph: Graph) -> tuple[Graph, Notes]:
    """Let nodes write what their result is cast to, where nothing else reads it."""
    casts = [node for node in graph.nodes if node.kind == "Cast"]
    if not casts:
        return graph, ()
    notes: list[Note] = []
    readers = graph.readers()
    place = {node.output: at for at, node in enumerate(graph.nodes)}
    forced = _last_forced_copy(graph.nodes)
    kept = dict(enumerate(graph.nodes))
    for cast in casts:
        (source,) = cast.inputs
        writer = kept.get(place.get(source, -1))
        if writer is None or not _converts(writer) or readers.get(source) != (cast,):
            continue
        # What an output is made of has to reach it, and a result is converted once.
        if graph.value(source).storage == "output" or writer.attr("result_dtype") is not None:
            continue
        if cast.output in graph.outputs and place[source] <= forced:
            continue
        rounded = graph.value(source).dtype.name
        stored = replace(writer.with_attrs(result_dtype=rounded), output=cast.output)
        kept[place[source]] = stored
        del kept[place[cast.output]]
        notes.append(_cast_note(graph, cast, f"in the store of {writer.name}"))
    return rebuilt(graph, kept.values()), tuple(notes)


def _cast_note(graph: Graph, cast: Node, where: str) -> Note:
    source, out = graph.value(cast.inputs[0]).dtype, graph.value(cast.output).dtype
    return Note(cast.name, "folded", f"{source.name} becomes {out.name} {where}")


def fuse(graph: Graph) -> tuple[Graph, Notes]:
    """Group neighbouring elementwise nodes into tile loops with tile-sized intermediates."""
    loops: list[list[Node]] = []
    for node in graph.nodes:
        if loops and _fits(graph, loops[-1], node):
            loops[-1].append(node)
        else:
            loops.append([node])
    nodes: list[Node] = []
    notes: list[Note] = []
    draft = Draft(graph)
    readers = graph.readers()
    number = 0
    for group in loops:
        if not _loopable(group[0]):
            nodes += group
            if group[0].is_forced_copy:
                why = "it must finish before any output is written"
                notes.append(Note(group[0].name, "kept", why))
            continue
        number += 1
        nodes += [node.with_attrs(loop=number) for node in group]
        inner = _only_inside(graph, group, readers)
        for value in inner:
            draft.put(replace(value, storage="tile"))
        notes += [_fuse_note(graph, node, group, number, inner) for node in group]
    return rebuilt(draft.graph(), nodes), tuple(notes)


def _fuse_note(graph: Graph, node: Node, group: list[Node], number: int, inner: list[Value]):
    if len(group) == 1:
        return Note(node.name, f"becomes tile loop {number}", "nothing to fuse it with")
    out = graph.value(node.output)
    why = f"{out.name} stays in a tile" if out in inner else f"it writes {out.name}"
    return Note(node.name, f"fused into tile loop {number}", why)


def _loopable(node: Node) -> bool:
    """Whether a node may be in a tile loop."""
    return node.is_elementwise and not node.is_forced_copy


def _fits(graph: Graph, group: list[Node], node: Node) -> bool:
    """Whether `node` can run tile by tile right after the nodes of `group`."""
    if not (_loopable(group[0]) and _loopable(node)):
        return False
    if graph.value(group[0].output).shape != graph.value(node.output).shape:
        return False
    made = {member.output for member in group}
    # A view of something made in the loop would read elements of other tiles.
    if any(graph.root(id).id in made and id not in made for id in node.inputs):
        return False
    if node.kind == "BroadcastTo" and node.inputs[0] in made:
        return False
    operands = {id for member in (*group, node) for id in (*member.inputs, member.output)}
    return len(operands) <= MAX_OPERANDS


def _only_inside(
    graph: Graph, group: list[Node], readers: Mapping[int, Sequence[Node]]
) -> list[Value]:
    """Workspace values that are made and read in the group, and read nowhere else."""
    members = {node.name for node in group}
    read = {id for node in group for id in node.inputs}
    made = [graph.value(node.output) for node in group]
    return [
        value
        for value in made
        if value.storage == "workspace"
        and value.id in read
        and all(reader.name in members for reader in readers[value.id])
    ]


def in_place(graph: Graph) -> tuple[Graph, Notes]:
    """Check every output that is also an input, and copy the input first where it must be."""
    notes: list[Note] = []
    for id in graph.outputs:
        out = graph.value(id)
        if out.alias_of is None:
            continue
        number = graph.inputs.index(out.alias_of)
        writer, step = next(
            (node, step) for step in graph.steps() for node in step if node.output == id
        )
        reason = _hazard(graph, out, writer, step)
        if not reason:
            why = "same address and layout"
            if out.alias_of not in graph.readers(step):
                why = "the input is read before the output is written"
            action = f"writes {out.name} in place of input {number}"
            notes.append(Note(writer.name, action, f"safe: {why}"))
        else:
            graph, copy = _copied_first(graph, out.alias_of)
            why = f"{reason}, so input {number} is copied before {out.name} is written"
            notes.append(Note(copy, "added", why))
    return graph, tuple(notes)


def _hazard(graph: Graph, out: Value, writer: Node, step: tuple[Node, ...]) -> str:
    """Why writing `out` would destroy input elements that are still to be read."""
    at = graph.nodes.index(writer)
    for i, node in enumerate(graph.nodes):
        for id in node.inputs:
            if graph.root(id).id != out.alias_of:
                continue
            read = graph.value(id)
            if i > at:
                return f"{node.name} reads it after {writer.name} wrote"
            if node in step and not (node.is_elementwise and _same_layout(read, out)):
                return f"{node.name} reads it in another layout"
    return ""


def _same_layout(a: Value, b: Value) -> bool:
    """Whether elements [i] have the same bytes when the first ones have the same address."""
    if a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
        return False
    strides = zip(a.shape, a.strides, b.strides, strict=True)
    return all(size <= 1 or stride == other for size, stride, other in strides)


def _copied_first(graph: Graph, id: int) -> tuple[Graph, str]:
    """Insert a forced copy of input `id` before all nodes and make every reader read the copy."""
    source = graph.value(id)
    draft = Draft(graph)
    copy = draft.add(
        replace(
            source,
            name=f"{source.name}_copy",
            strides=contiguous_strides(source.shape),
            storage="workspace",
            alias_of=None,
            note="",
        )
    )
    nodes = [Node(copy.name, "Contiguous", (id,), copy.id, freeze_attrs({"reason": "overlap"}))]
    for reader in graph.nodes:
        inputs = [
            draft.load_of(copy, used) if graph.root(used).id == id else used
            for used in reader.inputs
        ]
        nodes.append(replace(reader, inputs=tuple(inputs)))
    return rebuilt(draft.graph(), nodes), copy.name
