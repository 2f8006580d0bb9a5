"""Folding: copies become strides, conversions become loads and stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir import Graph, Node, Value
from ..rewriter import Rewriter
from .notes import Note, Notes
from .stores import drop_view_copies, last_forced_copy

# What each dtype's values all survive.
_SMALL = frozenset(
    {"float32", "float64", "bfloat16", "float16", "int16", "int32", "int64", "complex64"}
    | {"complex128"}
)
_EXACT = {
    "float16": frozenset({"float32", "float64", "complex64", "complex128"}),
    "bfloat16": frozenset({"float32", "float64", "complex64", "complex128"}),
    "float32": frozenset({"float64", "complex64", "complex128"}),
    "float64": frozenset({"complex128"}),
    "bool": _SMALL | {"int8", "uint8", "uint16", "uint32", "uint64"},
    "int8": _SMALL,
    "uint8": _SMALL | {"uint16", "uint32", "uint64"},
    "int16": frozenset({"float32", "float64", "int32", "int64", "complex64", "complex128"}),
    "uint16": frozenset(
        {"float32", "float64", "int32", "int64", "uint32", "uint64", "complex64", "complex128"}
    ),
    "int32": frozenset({"float64", "int64", "complex128"}),
    "uint32": frozenset({"float64", "int64", "uint64", "complex128"}),
    "complex64": frozenset({"complex128"}),
}


_FOLDS = ("Contiguous", "BroadcastTo", "Cast")


def is_exact(source: str, target: str) -> bool:
    """Whether every value of one dtype survives the conversion to another.

    >>> is_exact("float16", "float32"), is_exact("int32", "float32")
    (True, False)
    """
    return source == target or target in _EXACT.get(source, ())


def fold_strides(graph: Graph) -> tuple[Graph, Notes]:
    """Turn Contiguous, BroadcastTo and ViewCopy into the strides that their neighbours use."""
    notes: list[Note] = []
    nodes: list[Node] = []
    draft = Rewriter(graph)
    opaque = _opaque_readers(graph)
    for node in graph.nodes:
        if node.kind not in ("Contiguous", "BroadcastTo") or node.is_forced_copy:
            nodes.append(node)
            continue
        why_not = _needs_a_copy(graph, draft, node, opaque.get(node.output, ()))
        if why_not:
            nodes.append(node)
            notes.append(Note(node.name, "kept", why_not))
            continue
        source = draft.value(node.inputs[0])
        view = draft.view(source, graph.value(node.output))
        notes.append(Note(node.name, "folded", _fold_reason(source, view)))
    graph, nodes, copies = drop_view_copies(draft.graph(), nodes, _stores_strided)
    for copy, writer in copies:
        strides = graph.value(copy.output).strides
        notes.append(Note(copy.name, "folded", f"{writer.name} stores with strides {strides}"))
    return Rewriter(graph).rebuilt(nodes), tuple(notes)


def _opaque_readers(graph: Graph) -> dict[int, list[Node]]:
    """The opaque nodes that read each value, through nodes too that are going to fold into them."""
    found: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node.domain != "opaque":
            continue
        reading = {graph.root(id).id for id in node.inputs}
        while reading:
            root = reading.pop()
            found.setdefault(root, []).append(node)
            source = graph.producer(root)
            if source is None or source.kind not in _FOLDS:
                continue
            if node.reads_strided and node.takes_in(source):
                reading.add(graph.root(source.inputs[0]).id)
    return found


def _stores_strided(_: Value, writer: Node, copy: Node) -> bool:
    """Whether a node can write any strides."""
    if not writer.takes_in(copy):
        return False
    return writer.kind != "Contiguous" and writer.attr("writes_strided", writer.domain != "opaque")


def _needs_a_copy(graph: Graph, draft: Rewriter, node: Node, opaque: Iterable[Node]) -> str:
    """Why the result must lie somewhere; `opaque` are nodes that read it as a whole."""
    out, source = graph.value(node.output), draft.value(node.inputs[0])
    if out.storage in ("output", "part") or out.is_view:
        return "it writes an output"
    for reader in opaque:
        if not reader.reads_strided or not reader.takes_in(node):
            return f"{reader.name} reads row-major memory"
    if draft.views_of(out.id) and (source.shape != out.shape or not draft.move_views(out, source)):
        return "a view of it has no strides in the source of the copy"
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
    to: a cast becomes part of a load or a store.

    A cast that loses something becomes part of a load only where the kernel converts what it reads
    to just that dtype.
    """
    if not any(node.kind == "Cast" for node in graph.nodes):
        return graph, ()
    graph, loads = _casts_into_loads(graph)
    graph, stores = _casts_into_stores(graph)
    return graph, (*loads, *stores)


def _casts_into_loads(graph: Graph) -> tuple[Graph, Notes]:
    """Let nodes read what was cast, and drop casts that nobody reads any more."""
    notes: list[Note] = []
    casts = {node.output: node for node in graph.nodes if node.kind == "Cast"}
    nodes: list[Node] = []
    draft = Rewriter(graph)
    for node in graph.nodes:
        if node.converts:
            inputs = []
            for id in node.inputs:
                while (cast := casts.get(draft.root(id).id)) and _folds(draft, node, cast, id):
                    id = draft.load_of(draft.value(cast.inputs[0]), id)
                    notes.append(_cast_note(graph, cast, f"in the load of {node.name}"))
                inputs.append(id)
            node = replace(node, inputs=tuple(inputs))
        nodes.append(node)
    return draft.rebuilt(_without_idle_casts(draft, nodes)), tuple(dict.fromkeys(notes))


def _without_idle_casts(draft: Rewriter, nodes: list[Node]) -> list[Node]:
    """The nodes without casts that nobody reads, nor those that only such casts read."""
    used: set[int] = set()
    kept = []
    for node in reversed(nodes):
        made = draft.root(node.output)
        if node.kind == "Cast" and made.storage == "workspace" and made.id not in used:
            continue
        used.update([draft.root(id).id for id in node.inputs])
        kept.append(node)
    return kept[::-1]


def _folds(draft: Rewriter, node: Node, cast: Node, id: int) -> bool:
    """Whether a node computes the same from what was cast."""
    source, result = draft.value(cast.inputs[0]), draft.value(cast.output)
    if not node.can_load(source.dtype) or not _may_take_in(node, cast, source, result):
        return False
    if not is_exact(source.dtype.name, result.dtype.name):
        reads = node.attr("reads")
        if reads != result.dtype.name or not _is_real(source.dtype.name):
            return False
    return draft.can_load(source, id)


def _may_take_in(node: Node, cast: Node, source: Value, result: Value) -> bool:
    """Whether the node's digits stay: of another call it takes in what only moves elements."""
    return node.takes_in(cast) or (node.reads_strided and source.dtype == result.dtype)


def _is_real(dtype: str) -> bool:
    return not dtype.startswith("complex")


def _casts_into_stores(graph: Graph) -> tuple[Graph, Notes]:
    """Let nodes write what their result is cast to, where nothing else reads it."""
    casts = [node for node in graph.nodes if node.kind == "Cast"]
    if not casts:
        return graph, ()
    notes: list[Note] = []
    readers = graph.readers()
    index = {id: at for at, node in enumerate(graph.nodes) for id in node.outputs}
    forced = last_forced_copy(graph.nodes)
    kept = dict(enumerate(graph.nodes))
    for cast in casts:
        (source,) = cast.inputs
        writer = kept.get(index.get(source, -1))
        if writer is None or readers.get(source) != (cast,):
            continue
        if not writer.can_store(graph.value(cast.output).dtype) or not writer.takes_in(cast):
            continue
        # What an output is made of has to reach it, and a result is converted once.
        made = graph.value(source)
        if made.storage != "workspace" or made.is_view or writer.attr("result_dtype") is not None:
            continue
        if graph.root(cast.output).storage == "output" and index[source] <= forced:
            continue
        if len(writer.outputs) > 1:
            continue
        stored = replace(writer.with_attrs(result_dtype=made.dtype.name), outputs=cast.outputs)
        kept[index[source]] = stored
        del kept[index[cast.output]]
        notes.append(_cast_note(graph, cast, f"in the store of {writer.name}"))
    return Rewriter(graph).rebuilt(kept.values()), tuple(notes)


def _cast_note(graph: Graph, cast: Node, where: str) -> Note:
    source, out = graph.value(cast.inputs[0]).dtype, graph.value(cast.output).dtype
    return Note(cast.name, "folded", f"{source.name} becomes {out.name} {where}")
