"""Schedules: a planned graph turned into steps over tiles, ready to be packed for the runner."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from ..attrs import Argument
from ..constraints import Count, Positive, Range
from ..errors import GraphError
from ..ir import Graph, Node, Value
from ..loops.loop_nest import LoopNest, loop_nest
from ..numbers import positive_number
from ..planner.lifetimes import PackedMemory
from ..planner.liveness import scratch_name
from ..planner.plan import WorkspacePlan, step_name
from ..runtime.abi import (
    MAX_DIMS,
    SCRATCH,
    TILE_PREFETCH_FAR,
    TILE_PREFETCH_NEAR,
    TILE_SAWTOOTH,
    TILE_STREAM,
    WORKSPACE,
)
from ..runtime.kernel import Kernel
from ..strides import is_dense, is_spread
from ..summaries import counted, fields_given, printable
from ..view_methods import Tabled

ALL_FLAGS = TILE_STREAM | TILE_PREFETCH_NEAR | TILE_PREFETCH_FAR | TILE_SAWTOOTH
PARALLEL_WORK = 20_000  # nanoseconds: waking a thread takes nearly as long
STREAM_FROM = 6 * 1024 * 1024  # bytes for each thread: far more than a core's own caches hold
SAWTOOTH_FROM = 3 * 512 * 1024  # bytes for each thread: nearly as much as these hold
PREFETCH_FROM = 256 * 1024  # bytes for each thread: more than the nearest cache holds


@dataclass(frozen=True, slots=True)
class Operand:
    """A value as a step walks it.

    Attributes
    ----------
    name : str
        Of the value.
    base : int
        Index into the schedule's `arguments` (the graph's inputs, outputs and constants); -1:
        the workspace; -2: the thread's tiles.
    offset : int
        Bytes from the base.
    strides : tuple of int
        Bytes from one element to the next, for each loop.
    dtype : str
        Data type.
    nbytes : int
        Bytes of its distinct elements, in tiles those of one tile; of an input that an opaque kernel
        reads a part of, those of the part.
    shape : tuple of int
        Elements along each dimension, where an opaque kernel gets it as a whole; empty in
        loops.
    """

    name: str
    base: Annotated[int, Range(SCRATCH)]
    offset: int
    strides: tuple[int, ...]
    dtype: str
    nbytes: Count
    shape: tuple[Count, ...] = ()

    __repr__ = fields_given


@dataclass(frozen=True, slots=True)
class Op:
    """A kernel call for every tile.

    Attributes
    ----------
    node : str
        Node of the graph.
    kind : str
        Kind of the node.
    kernel : str
        Name of the kernel.
    operands : tuple of int
        Places in the step's operands, inputs first.
    flags : int
        The sum of 1: stores bypass the cache; 2: operands are larger than the nearest cache, so
        kernels prefetch a little ahead; 4: they are far larger than a core's own caches, so
        kernels prefetch further ahead; 8: they are somewhat larger than these, so runs walk
        through the tiles back and forth.
    outputs : int
        Number of the operands that are written, the last ones.
    params : tuple of number
        Numbers that the kernel takes: constants (in documents those that JSON lacks are
        {"float": "nan"}), or run-time numbers, there {"argument": 0, "kind": "real"} by their
        place.
    scratch : int
        Offset of the kernel's own memory in a thread's scratch; -1: it has none.
    extent : tuple of int
        Of a matrix product m, k and n, before them its batch; else empty.
    flops : int
        Multiplications and additions of the whole step; 0: the kernel does not say.
    """

    node: str
    kind: str
    kernel: str
    operands: tuple[Count, ...]
    flags: Annotated[int, Range(0, ALL_FLAGS)] = 0
    outputs: Positive = 1
    params: tuple[float | int | Argument, ...] = ()
    scratch: Annotated[int, Range(-1)] = -1
    extent: tuple[Count, ...] = ()
    flops: Count = 0

    __repr__ = fields_given


@dataclass(frozen=True, slots=True)
class Step:
    """Loops over `shape`, in tiles along the last two dimensions, calling `ops` for each.

    Attributes
    ----------
    name : str
        Names of its nodes, joined by +; of many the first ones, and how many more.
    shape : tuple of int
        The loops, outermost first; of an opaque kernel 1 and the number of its calls.
    tile_rows : int
        Rows of a tile.
    tile_cols : int
        Columns of a tile.
    n_tiles : int
        Number of tiles, or of the calls of an opaque kernel, each for a share of the step.
    parallel_from : int
        Elements from which it uses several threads.
    operands : tuple of Operand
        Everything that the step reads and writes.
    ops : tuple of Op
        Kernel calls, in order.
    is_call : bool
        Whether an opaque kernel gets its operands as a whole, instead of tile by tile.
    """

    name: str
    shape: tuple[Positive, ...]
    tile_rows: Positive
    tile_cols: Positive
    n_tiles: Positive
    parallel_from: Count
    operands: tuple[Operand, ...]
    ops: tuple[Op, ...]
    is_call: bool = False

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        work = "a call" if self.is_call else counted(self.n_tiles, "tile")
        nodes = counted(len(self.ops), "node")
        return printable(f"<Step {self.name}: {work}, {nodes}, shape ({shape})>")

    @property
    def elements(self) -> int:
        """Elements of the result."""
        return math.prod(self.shape)

    def threads(self, limit: int) -> int:
        """Number of threads that the runner uses when it may use `limit`."""
        return min(limit, self.n_tiles) if self.elements >= self.parallel_from else 1

    @property
    def extent(self) -> tuple[int, ...]:
        """Extent of the step that its first kernel gives, else the loops' shape."""
        return self.ops[0].extent or self.shape

    @property
    def flops(self) -> int:
        """Multiplications and additions, of the kernels that say how many they do."""
        return sum(op.flops for op in self.ops)

    @property
    def bytes_read(self) -> int:
        """Bytes read from outside the tiles, every element of an operand counted once."""
        return self._traffic(written=False)

    @property
    def bytes_written(self) -> int:
        """Bytes written outside the tiles."""
        return self._traffic(written=True)

    def _traffic(self, written: bool) -> int:
        """Bytes of distinct operands outside the tiles, those that are written or those that are read."""
        places: set[int] = set()
        for op in self.ops:
            first = len(op.operands) - op.outputs
            places.update(op.operands[first:] if written else op.operands[:first])
        return sum(self.operands[i].nbytes for i in places if self.operands[i].base != SCRATCH)


@dataclass(frozen=True, slots=True)
class Pack:
    """An input's packed form, which runs take as an argument: `pack` makes it.

    `source` is the place of the input among the arguments, `offset` bytes from its first element to the
    operand's.
    """

    memory: PackedMemory
    source: int
    offset: int
    pack: Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Schedule(Tabled):
    """Steps of the second phase, in order.

    Attributes
    ----------
    steps : tuple of Step
        In the order in which they run.
    arguments : tuple of str
        Names of the addresses that a run takes: the graph's inputs, its outputs, its constants, then the
        packed forms of inputs.
    workspace_size : int
        Bytes of workspace.
    scratch_offset : int
        Where the threads' tiles start in the workspace.
    scratch_per_thread : int
        Bytes of each thread's tiles.
    max_threads : int
        Number of threads that a run may use.
    planned_threads : int
        Number of threads that the workspace has tiles for; a run borrows memory for those of others
        while a step needs it.
    kernels : tuple of Kernel
        The kernel of every op, in order, kept alive.
    packs : tuple of Pack
        How the packed forms are made.

    Examples
    --------
    >>> from aclnn.graph import DType, GraphBuilder, Kernel, plan_workspace, run_passes
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4, 8), f32), b.output("out", (4, 8), f32)
    >>> b.view_copy(b.compute("relu", [x], (4, 8), f32), out)
    >>> graph = run_passes(b.build()).graph
    >>> made = compile(graph, plan_workspace(graph), lambda node: Kernel(fn=0))
    >>> made.node_names(), made.steps[0].n_tiles, made.workspace_size
    (('relu',), 1, 0)
    >>> Schedule.from_json(made.to_json()) == made
    True
    """

    steps: tuple[Step, ...]
    arguments: tuple[str, ...]
    workspace_size: Count
    scratch_offset: Count
    scratch_per_thread: Count
    max_threads: Positive
    planned_threads: Positive = 1
    kernels: tuple[Kernel, ...] = field(repr=False, compare=False, default=())
    packs: tuple[Pack, ...] = field(repr=False, compare=False, default=())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied without kernels, which are of this process; so it cannot run."""
        return Schedule, tuple(getattr(self, one.name) for one in fields(self) if one.compare)

    def pack(self):
        """The program of this schedule: C arrays, for the runner.

        Returns
        -------
        Program

        Raises
        ------
        ValueError
            Naming step, field, value and rule, when it cannot be run.
        """
        from ..runtime._program import Program

        return Program(self)

    def kernel_of(self, step: int) -> Kernel:
        """The kernel of a step's first op.

        Parameters
        ----------
        step : int
            Place among the steps.

        Returns
        -------
        Kernel
        """
        return self.kernels[sum([len(one.ops) for one in self.steps[:step]])]

    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes in the order in which they run.

        Returns
        -------
        tuple of str
        """
        return tuple(op.node for step in self.steps for op in step.ops)

    def __repr__(self) -> str:
        tiles = sum(step.n_tiles for step in self.steps)
        return (
            f"<Schedule: {counted(len(self.steps), 'step')}, {counted(tiles, 'tile')}, "
            f"{counted(self.workspace_size, 'byte')} of workspace, at most "
            f"{counted(self.max_threads, 'thread')}>"
        )


def compile(
    graph: Graph,
    plan: WorkspacePlan,
    kernel_of: Callable[[Node], Kernel],
    *,
    threads: int | None = None,
    parallel_from: int | None = None,
    stream_from: int = STREAM_FROM,
    sawtooth_from: int = SAWTOOTH_FROM,
    fixed: Collection[str] = (),
    most_packed: int | None = None,
) -> Schedule:
    """Turn a graph and its plan into a schedule.

    Parameters
    ----------
    graph : Graph
        After passes; no value may be empty.
    plan : WorkspacePlan
        Of this graph, by `plan_workspace`; it has the tile sizes, and tiles for some threads.
    kernel_of : callable
        Gives the `Kernel` of a node; the schedule keeps it alive.
    threads : int, optional
        Threads that a run may use; those of the plan if not given.
    parallel_from : int, optional
        Elements from which a step uses several threads; None: where its work takes `PARALLEL_WORK`.
    stream_from : int
        Bytes for each thread from which dense outputs bypass the cache; where elements of an
        operand are not adjacent, at most `STREAM_FROM`.
    sawtooth_from : int
        Bytes for each thread from which, below `stream_from`, runs walk back and forth.
    fixed : collection of str
        Names of inputs that do not change between runs: kernels get packed forms of these.
    most_packed : int, optional
        The largest number of packed inputs.

    Returns
    -------
    Schedule

    Raises
    ------
    GraphError
        When a value is empty or neither an argument nor in the plan, or a step has more dimensions
        than the runner takes.

    Examples
    --------
    >>> from aclnn.graph import DType, GraphBuilder, Kernel, plan_workspace, run_passes
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4, 8), f32), b.output("out", (4, 8), f32)
    >>> b.view_copy(b.compute("relu", [x], (4, 8), f32), out)
    >>> graph = run_passes(b.build()).graph
    >>> schedule = compile(graph, plan_workspace(graph), lambda node: Kernel(fn=0))
    >>> schedule.arguments, schedule.steps[0].shape
    (('x', 'out'), (1, 32))
    """
    threads = plan.threads if threads is None else positive_number(threads, "threads")
    compiler = _Compiler(graph, plan, threads, parallel_from, stream_from, sawtooth_from)
    compiler.fixed, compiler.most_packed = frozenset(fixed), most_packed
    return compiler.schedule(kernel_of)


def threads_used(kernels: Sequence[Kernel], elements: int, tiles: int, threads: int) -> int:
    """Number of threads, of `threads`, that a run uses for a step.

    Parameters
    ----------
    kernels : sequence of Kernel
        Those of its nodes, as for `compile`.
    elements, tiles : int
        Of its loops; 0 for the call of an opaque kernel.
    threads : int

    Returns
    -------
    int

    Examples
    --------
    >>> kernel = Kernel(fn=0, cost=1.0)
    >>> [threads_used([kernel], elements, 4, 2) for elements in (100, 100_000)]
    [1, 2]
    """
    if tiles:
        first = elements_parallel_from(kernels)
    else:
        elements = tiles = kernels[0].chunks(threads)
        first = calls_parallel_from(kernels[0], tiles)
    return min(threads, tiles) if elements >= first else 1


def elements_parallel_from(kernels: Sequence[Kernel]) -> int:
    """Elements from which loops of these kernels are worth several threads.

    >>> elements_parallel_from([Kernel(fn=0)])
    66666
    """
    cost = sum([kernel.cost for kernel in kernels])
    return max(1, int(PARALLEL_WORK / max(cost, 0.01)))


def calls_parallel_from(kernel: Kernel, chunks: int) -> int:
    """Calls of an opaque kernel from which they are worth several threads.

    >>> calls_parallel_from(Kernel(fn=0), 4)
    5
    """
    return 1 if kernel.cost >= PARALLEL_WORK else chunks + 1


class _Compiler:
    """A graph and its plan on their way to a schedule: what every step looks up."""

    def __init__(
        self,
        graph: Graph,
        plan: WorkspacePlan,
        threads: int,
        parallel_from: int | None,
        stream_from: int,
        sawtooth_from: int,
    ):
        self.graph = graph
        self.plan = plan
        self.threads = threads
        self.parallel_from = parallel_from
        self.stream_from = stream_from
        self.sawtooth_from = sawtooth_from
        self.fixed: frozenset[str] = frozenset()
        self.most_packed: int | None = None
        self.packs: dict[Any, Pack] = {}  # by what they are made of, and how
        self.packed_of: dict[str, tuple[int, int]] = {}  # of nodes: the operand, and which it is
        constants = [value.id for value in graph.values if value.storage == "constant"]
        self.arguments = (
            *graph.inputs,
            *graph.outputs,
            *[i for i in constants if not self.is_view(i)],
        )
        self.number_of = {id: number for number, id in enumerate(self.arguments)}
        scratch = [buffer for buffer in plan.buffers if buffer.parts]
        self.scratch_offset = min([buffer.offset for buffer in scratch], default=0)
        named = {graph.value(id).name: number for id, number in self.number_of.items()}
        self.places: dict[str, tuple[int, int]] = {
            b.name: (named[b.output] if b.output else WORKSPACE, b.offset)
            for b in plan.buffers
            if not b.parts
        }
        # Steps whose scratch is elsewhere reach it by a constant from the lowest one.
        self.tiles = {
            part.name: buffer.offset - self.scratch_offset + part.offset
            for buffer in scratch
            for part in buffer.parts
        }

    def is_view(self, id: int) -> bool:
        return self.graph.value(id).is_view

    def schedule(self, kernel_of: Callable[[Node], Kernel]) -> Schedule:
        steps, kernels = [], []
        for nodes in self.graph.steps():
            found = [kernel_of(node) for node in nodes]
            if nodes[0].domain == "opaque":
                found = [self.with_packed(nodes[0], found[0])]
                steps.append(self.call(nodes[0], found[0]))
            else:
                steps.append(self.step(nodes, found))
            kernels += found
        return Schedule(
            steps=tuple(steps),
            arguments=(
                *[self.graph.value(id).name for id in self.arguments],
                *[pack.memory.name for pack in self.packs.values()],
            ),
            workspace_size=self.plan.size,
            scratch_offset=self.scratch_offset,
            scratch_per_thread=self.plan.scratch_per_thread,
            max_threads=self.threads,
            planned_threads=min(self.threads, self.plan.threads),
            kernels=tuple(kernels),
            packs=tuple(self.packs.values()),
        )

    def with_packed(self, node: Node, kernel: Kernel) -> Kernel:
        """The kernel of an opaque node, by way of the packed form of an operand where there is one."""
        packing = kernel.packing if self.fixed else None
        if packing is None:
            return kernel
        value = self.graph.value(node.operands[packing.place])
        root = self.graph.root(value.id)
        if root.name not in self.fixed or root.storage != "input" or self.is_overwritten(root):
            return kernel
        key = root.id, value.offset, value.dtype, packing.form
        found = self.packs.get(key)
        if found is None:
            if self.most_packed is not None and len(self.packs) >= self.most_packed:
                return kernel
            memory = PackedMemory(self.packed_name(root.name), root.name, packing.nbytes)
            source, offset = self.address(value)
            found = Pack(memory, source, offset, packing.pack)
        memory = replace(found.memory, readers=(*found.memory.readers, node.name))
        self.packs[key] = replace(found, memory=memory)
        self.packed_of[node.name] = packing.place, [*self.packs].index(key)
        return packing.kernel()

    def is_overwritten(self, root: Value) -> bool:
        """Whether an output takes the place of an input."""
        return any(self.graph.value(id).alias_of == root.id for id in self.graph.outputs)

    def packed_name(self, name: str) -> str:
        """A name that no argument has, nor another packed form."""
        taken = {pack.memory.name for pack in self.packs.values()}
        taken |= {self.graph.value(id).name for id in self.arguments}
        made, number = f"{name} packed", 2
        while made in taken:
            made, number = f"{name} packed {number}", number + 1
        return made

    def step(self, nodes: tuple[Node, ...], kernels: list[Kernel]) -> Step:
        name = step_name(nodes)
        for node in nodes:
            if self.graph.value(node.output).size == 0:
                raise GraphError(name, "empty values are not scheduled")
        nest = loop_nest(self.graph, nodes, self.plan.tiling)
        if len(nest.shape) > MAX_DIMS:
            raise GraphError(name, f"a step has at most {MAX_DIMS} dimensions")
        flags = self.traffic_flags(nest)
        ops = tuple(
            [
                self.op(node, kernel, places, self.flags(node, nest, flags))
                for node, kernel, places in zip(nodes, kernels, nest.ops, strict=True)
            ]
        )
        return Step(
            name=name,
            shape=nest.shape,
            tile_rows=nest.tile_rows,
            tile_cols=nest.tile_cols,
            n_tiles=nest.n_tiles,
            parallel_from=self.worth_threads(kernels),
            operands=tuple([self.operand(operand, nest) for operand in nest.operands]),
            ops=ops,
        )

    def call(self, node: Node, kernel: Kernel) -> Step:
        """The step of an opaque kernel, which gets its operands as they are."""
        operands = []
        packed_at, number = self.packed_of.get(node.name, (-1, -1))
        if not any(self.graph.value(id).size for id in node.outputs):
            raise GraphError(node.name, "what makes no element is not scheduled")
        for index, value in enumerate(map(self.graph.value, node.operands)):
            base, offset = self.address(value)
            item = value.dtype.itemsize
            strides = tuple([stride * item for stride in value.strides])
            name, nbytes = value.name, value.distinct_bytes
            if index < len(node.inputs):
                nbytes = self.graph.bytes_read_of(node, value.id)
            if index == packed_at:
                base, offset = len(self.arguments) + number, 0
                memory = [*self.packs.values()][number].memory
                name, nbytes = memory.name, memory.nbytes
            operands.append(
                Operand(name, base, offset, strides, value.dtype.name, nbytes, value.shape)
            )
        count = kernel.chunks(self.threads)
        return Step(
            name=node.name,
            shape=(1, count),
            tile_rows=1,
            tile_cols=1,
            n_tiles=count,
            parallel_from=calls_parallel_from(kernel, count),
            operands=tuple(operands),
            ops=(self.op(node, kernel, tuple(range(len(operands))), 0),),
            is_call=True,
        )

    def op(self, node: Node, kernel: Kernel, places: tuple[int, ...], flags: int) -> Op:
        return Op(
            node=node.name,
            kind=node.kind,
            kernel=str(kernel.name or node.attr("kernel", node.kind)),
            operands=places,
            flags=flags,
            outputs=len(node.outputs),
            params=node.attr("params", ()),
            scratch=self.tiles.get(scratch_name(node), -1) if self.tiles else -1,
            extent=kernel.extent,
            flops=kernel.flops,
        )

    def worth_threads(self, kernels: list[Kernel]) -> int:
        """Elements from which a step is worth several threads."""
        if self.parallel_from is not None:
            return self.parallel_from
        return elements_parallel_from(kernels)

    def traffic_flags(self, nest: LoopNest) -> int:
        """Flags about caches for kernels, by how much a step moves."""
        moved = sum([self.graph.memory_bytes(operand.id) for operand in nest.operands])
        if moved >= self.streams_from(nest) * self.threads:
            return TILE_PREFETCH_NEAR | TILE_PREFETCH_FAR | TILE_STREAM
        walk = TILE_SAWTOOTH if moved >= self.sawtooth_from * self.threads else 0
        return walk | (TILE_PREFETCH_NEAR if moved >= PREFETCH_FROM * self.threads else 0)

    def flags(self, node: Node, nest: LoopNest, flags: int) -> int:
        """Flags of a step, and whether the results of one of its nodes bypass the cache."""
        if flags & TILE_STREAM and not self.goes_past_the_cache(node, nest):
            return flags & ~TILE_STREAM
        return flags

    def streams_from(self, nest: LoopNest) -> int:
        """Bytes for each thread from which results bypass the cache."""
        values = (self.graph.value(operand.id) for operand in nest.operands)
        if any(is_spread(value.shape, value.strides) for value in values):
            # Whole lines come in, of which only a part is counted.
            return min(self.stream_from, STREAM_FROM)
        return self.stream_from

    def goes_past_the_cache(self, node: Node, nest: LoopNest) -> bool:
        """Whether nobody reads a large output soon: it belongs to the caller, who has it dense."""
        out = self.graph.value(node.output)
        root = self.graph.root(out.id)
        if root.storage != "output" or not is_dense(out.shape, out.strides):
            return False
        number = self.number_of[root.id]
        for read in [self.graph.root(operand.id) for operand in nest.operands]:
            if read.id == root.alias_of or self.places.get(read.name, (WORKSPACE, 0))[0] == number:
                return False
        return True

    def operand(self, walked: Value, nest: LoopNest) -> Operand:
        base, offset = self.address(walked)
        item = walked.dtype.itemsize
        tile = nest.tile_rows * nest.tile_cols * item
        return Operand(
            name=walked.name,
            base=base,
            offset=offset,
            strides=tuple([stride * item for stride in walked.strides]),
            dtype=walked.dtype.name,
            nbytes=tile if base == SCRATCH else self.graph.value(walked.id).distinct_bytes,
        )

    def address(self, value: Value) -> tuple[int, int]:
        """Base and offset in bytes of a value, as `Operand` has them."""
        root = self.graph.root(value.id)
        number = self.number_of.get(root.id)
        offset = value.offset * value.dtype.itemsize
        if number is not None:
            return number, offset
        if not value.size:  # nobody looks there
            return 0, 0
        if value.storage == "tile":
            return SCRATCH, self.tiles[value.name]
        if root.name in self.places:
            base, start = self.places[root.name]
            return base, start + offset
        raise GraphError(value.name, "it is neither an argument nor in the plan")
