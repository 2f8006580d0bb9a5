"""Schedules visit every element once, and compute on real memory what the graph means.

The kernels are Python functions behind C function pointers: slow, and independent of the real
ones.
"""

import ctypes
import itertools
import json
import pathlib
import re
import struct
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace

import graph_tools
import pytest
from aclnn.graph import (
    Argument,
    Assignment,
    DType,
    GraphBuilder,
    GraphError,
    Kernel,
    Schedule,
    Tiling,
    compile,
    plan_workspace,
    run_passes,
)
from aclnn.graph.loops.loop_nest import collapse
from aclnn.graph.loops.tiling import pad
from aclnn.graph.runtime import _scheduler, abi
from aclnn.graph.runtime.abi import MAX_THREADS
from aclnn.graph.runtime.kernel import Packing
from graph_tools import (
    CODES,
    F16,
    F32,
    LARGE,
    as_built,
    at,
    changed,
    computed,
    fresh_memory,
    indices,
    interpret,
    numbers_in,
)
from hypothesis import given
from hypothesis import strategies as st
from schemas import validated

ITEMSIZE = {"float16": 2, "float32": 4}


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("row_stride", ctypes.c_ssize_t),
        ("col_stride", ctypes.c_ssize_t),
    ]


KERNEL = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(View),
    ctypes.c_ssize_t,
    ctypes.c_ssize_t,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_double),
    ctypes.c_void_p,
    ctypes.c_int,
)


class ArrayView(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
    ]


OPAQUE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(ArrayView),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_double),
    ctypes.c_void_p,
    ctypes.c_ssize_t,
    ctypes.c_ssize_t,
)


class PythonKernel(Kernel):
    """Computes what `computed` says; remembers every tile."""

    def __init__(self, node, graph):
        self.dtypes = [graph.value(id).dtype for id in (*node.inputs, node.output)]
        self.node = node
        self.tiles = []
        self.callback = KERNEL(self.call)
        address = ctypes.cast(self.callback, ctypes.c_void_p).value
        super().__init__(address, name=f"python {node.kind}")

    def call(self, views, rows, cols, state, params, scratch, flags):
        operands = [views[i] for i in range(len(self.dtypes))]
        steps = [(v.data, v.row_stride, v.col_stride) for v in operands]
        self.tiles.append((rows, cols, steps, flags))
        for i, j in itertools.product(range(rows), range(cols)):
            places = [data + i * row + j * col for data, row, col in steps]
            numbers = [
                struct.unpack(CODES[t.name], ctypes.string_at(p, t.itemsize))[0]
                for p, t in zip(places[:-1], self.dtypes[:-1], strict=True)
            ]
            made = computed(self.node, numbers, self.dtypes[-1])
            packed = struct.pack(CODES[self.dtypes[-1].name], made)
            ctypes.memmove(places[-1], packed, len(packed))

    def written(self):
        """Every address written, once per write."""
        return [
            steps[-1][0] + i * steps[-1][1] + j * steps[-1][2]
            for rows, cols, steps, _ in self.tiles
            for i, j in itertools.product(range(rows), range(cols))
        ]


class Nothing(Kernel):
    """A kernel that does nothing."""

    def __init__(self, name="nothing", call=lambda *_: None, **facts):
        self.callback = KERNEL(call)
        super().__init__(ctypes.cast(self.callback, ctypes.c_void_p).value, name=name, **facts)


def reach(value):
    spans = [(n - 1) * s for n, s in zip(value.shape, value.strides, strict=True)]
    return -sum(min(0, s) for s in spans), sum(max(0, s) for s in spans)


class Memory:
    """Real memory for the arguments of a graph, filled like `fresh_memory`."""

    GUARD = 4

    def __init__(self, graph):
        self.graph = graph
        self.numbers = fresh_memory(graph)
        self.buffers, self.addresses = {}, []
        for id in (*graph.inputs, *graph.outputs):
            value = graph.value(id)
            owner = value if value.alias_of is None else graph.value(value.alias_of)
            if owner.name not in self.buffers:
                sharing = [value, *(v for v in graph.values if v.alias_of == id)]
                below = max(reach(v)[0] for v in sharing) + self.GUARD
                above = max(reach(v)[1] for v in sharing) + self.GUARD + 1
                size = (below + above) * value.dtype.itemsize
                self.buffers[owner.name] = (
                    ctypes.create_string_buffer(b"\xa5" * size, size),
                    below,
                )
                self._fill(value, self.numbers[value.name])
            buffer, below = self.buffers[owner.name]
            self.addresses.append(ctypes.addressof(buffer) + below * value.dtype.itemsize)

    def _fill(self, value, numbers):
        buffer, below = self.buffers[value.name]
        for offset, number in numbers.items():
            code = CODES[value.dtype.name]
            struct.pack_into(code, buffer, (below + offset) * value.dtype.itemsize, number)

    def read(self, name, offset):
        value = self.graph.named(name)
        place = self.addresses[(*self.graph.inputs, *self.graph.outputs).index(value.id)]
        size = value.dtype.itemsize
        return struct.unpack(
            CODES[value.dtype.name], ctypes.string_at(place + offset * size, size)
        )[0]


def scheduled(graph, pipeline="fused", threads=1, tiling=None, kernel=PythonKernel, **options):
    graph = run_passes(graph, pipeline).graph
    plan = plan_workspace(graph, threads=threads, tiling=tiling)
    return graph, compile(graph, plan, lambda node: kernel(node, graph), **options)


def workspace(schedule):
    buffer = ctypes.create_string_buffer(schedule.workspace_size + 1)
    return buffer, ctypes.addressof(buffer)


tilings = st.builds(
    Tiling,
    elements=st.integers(1, 30),
    scratch_elements=st.integers(1, 30),
    transpose=st.integers(1, 4),
)


turns = st.sampled_from([0, 1 << 60])  # runs go back and forth, or always forth


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@given(
    graph=as_built(in_place=True), threads=st.integers(1, 3), tiling=tilings, sawtooth_from=turns
)
def test_a_run_gives_what_the_graph_means(pipeline, graph, threads, tiling, sawtooth_from):
    memory = Memory(graph)
    before = {name: bytes(buffer) for name, (buffer, _) in memory.buffers.items()}
    _, schedule = scheduled(
        graph, pipeline, threads, tiling, parallel_from=1, sawtooth_from=sawtooth_from
    )
    buffer, address = workspace(schedule)
    schedule.pack().run(memory.addresses, address, (), threads)
    interpret(graph, memory.numbers)
    out = graph.value(graph.outputs[0])
    touched = set()
    for index in indices(out.shape):
        offset = at(out.strides, index)
        touched.add(offset)
        # As words, because of NaN.
        assert repr(memory.read("out", offset)) == repr(memory.numbers["out"][offset])
    owner = out.name if out.alias_of is None else graph.value(out.alias_of).name
    kept, below = memory.buffers[owner]
    size = out.dtype.itemsize
    for element in range(len(kept) // size):
        if element - below not in touched:
            part = slice(element * size, (element + 1) * size)
            assert kept[part] == before[owner][part]
    assert buffer[schedule.workspace_size] == b"\0"


@given(graph=as_built(), threads=st.integers(1, 3), tiling=tilings, sawtooth_from=turns)
def test_every_element_is_written_exactly_once(graph, threads, tiling, sawtooth_from):
    memory = Memory(graph)
    _, schedule = scheduled(
        graph, "fused", threads, tiling, parallel_from=1, sawtooth_from=sawtooth_from
    )
    _, address = workspace(schedule)
    schedule.pack().run(memory.addresses, address, (), threads)
    kernels = iter(schedule.kernels)
    for step in schedule.steps:
        for op in step.ops:
            kernel = next(kernels)
            assert sum(rows * cols for rows, cols, _, _ in kernel.tiles) == step.elements
            assert all(rows <= step.tile_rows for rows, _, _, _ in kernel.tiles)
            if len(step.ops) > 1 or step.tile_rows > 1:
                assert len(kernel.tiles) == step.n_tiles
                assert all(cols <= step.tile_cols for _, cols, _, _ in kernel.tiles)
            else:  # a lone kernel gets the tiles of a row as one
                assert all(cols <= step.shape[-1] for _, cols, _, _ in kernel.tiles)
            if step.operands[op.operands[-1]].base != abi.SCRATCH:
                written = kernel.written()
                assert len(set(written)) == len(written) == step.elements


@given(
    shape=st.lists(st.integers(1, 4), max_size=5).map(tuple),
    data=st.data(),
    count=st.integers(1, 3),
)
def test_collapsing_keeps_the_addresses_together(shape, data, count):
    strides = st.tuples(*[st.sampled_from((-24, -6, -2, -1, 0, 1, 2, 6, 24))] * len(shape))
    columns = [data.draw(strides) for _ in range(count)]
    lead = data.draw(st.integers(0, count - 1))
    dims, starts = collapse(shape, columns, lead)
    visited = sorted(
        tuple(
            start + sum(i * stride[k] for i, (_, stride) in zip(index, dims, strict=True))
            for k, start in enumerate(starts)
        )
        for index in indices([size for size, _ in dims])
    )
    assert visited == sorted(tuple(at(column, i) for column in columns) for i in indices(shape))
    leading = [stride[lead] for _, stride in dims]
    assert leading == sorted(leading, reverse=True)
    assert all(stride >= 0 for stride in leading)


@pytest.mark.parametrize(
    ("shape", "columns", "expected"),
    [
        ((4, 5, 6), [(30, 6, 1)] * 2, [120]),
        ((4, 5, 6), [(30, 6, 1), (0, 6, 1)], [4, 30]),
        ((4, 5, 6), [(30, 6, 1), (30, 0, 1)], [4, 5, 6]),
        ((4, 5), [(5, 1), (1, 4)], [4, 5]),
        ((4, 5), [(1, 4), (1, 4)], [20]),
        ((4, 5), [(-5, -1), (-5, -1)], [20]),
        ((1, 1), [(9, 9)], [1]),
        ((), [()], [1]),
    ],
)
def test_dimensions_merge_where_all_operands_allow(shape, columns, expected):
    dims, _ = collapse(shape, columns, 0)
    assert [size for size, _ in dims] == expected


def unary(
    shape, x_strides=None, out_strides=None, dtype=F32, out_dtype=None, alias=False, params=()
):
    b = GraphBuilder()
    x = b.input("x", shape, dtype, strides=x_strides)
    out_dtype = out_dtype or dtype
    out = b.output("out", shape, out_dtype, strides=out_strides, alias_of=x if alias else None)
    result = b.compute("f", [b.contiguous(x)], shape, dtype, converts=False, params=params)
    b.view_copy(b.cast(result, out_dtype), out)
    return b.build()


def nest(graph, **options):
    (step,) = scheduled(graph, kernel=lambda *_: Nothing(), **options)[1].steps
    return step.shape, (step.tile_rows, step.tile_cols), step.n_tiles


def test_tile_shapes():
    assert nest(unary((100,))) == ((1, 100), (1, 100), 1)
    assert nest(unary((64, 1024))) == ((1, 65536), (1, 16384), 4)
    # Two threads get the same, in whole cache lines.
    shape, (rows, cols), tiles = nest(unary((40_000,)))
    assert (shape, rows, tiles) == ((1, 40_000), 1, 4)
    assert cols % 64 == 0
    # An intermediate in tiles: small ones.
    assert nest(unary((65536,), out_dtype=F16))[1] == (1, 4096)
    # Rows that do not merge: as many as a tile holds.
    assert nest(unary((512, 16), x_strides=(32, 1))) == ((512, 16), (512, 16), 1)
    # Operands transposed to each other: several rows, the input's unit stride along them.
    assert nest(unary((256, 512), x_strides=(1, 256))) == ((256, 512), (64, 256), 8)
    (step,) = scheduled(
        unary((3, 256, 512), x_strides=(131072, 1, 256)), kernel=lambda *_: Nothing()
    )[1].steps
    assert step.shape == (3, 256, 512)
    assert step.operands[0].strides == (524288, 4, 1024)
    # The same order everywhere is no transpose, whatever the order is.
    assert nest(unary((256, 512), x_strides=(1, 256), out_strides=(1, 256)))[0] == (1, 131072)


def test_the_row_dimension_fills_a_tile():
    shape = (1000, 2, 3, 4)
    graph = unary(shape, x_strides=(110, 50, 16, 2))
    (step,) = scheduled(graph, kernel=lambda *_: Nothing())[1].steps
    assert sorted(step.shape) == [2, 3, 4, 1000]
    assert step.shape[-2:] == (1000, 4)


def test_python_and_c_agree_on_their_constants():
    constants = {name: value for name, value in vars(abi).items() if name.isupper()}
    assert constants == _scheduler.header_constants()


@given(as_built())
def test_the_packed_arrays_read_back(graph):
    _, schedule = scheduled(graph, "fused")
    described = schedule.pack().describe()
    assert [op["node"] for step in described for op in step["ops"]] == list(schedule.node_names())
    for c, step in zip(described, schedule.steps, strict=True):
        assert tuple(c["shape"]) == step.shape
        assert c["tile"] == [step.tile_rows, step.tile_cols]
        assert c["n_tiles"] == step.n_tiles
        for operand, wanted in zip(c["operands"], step.operands, strict=True):
            assert (operand["base"], operand["offset"]) == (wanted.base, wanted.offset)
            assert tuple(operand["strides"]) == wanted.strides
    validated(schedule.to_json(), "schedule")
    assert all(name in schedule.to_text() for name in schedule.node_names())


def test_bytes_count_distinct_elements():
    b = GraphBuilder()
    x, y, out = b.input("x", (8,), F16), b.input("y", (4, 8), F32), b.output("out", (4, 8), F16)
    wide = b.broadcast_to(x, (4, 8))
    b.view_copy(b.cast(b.compute("add", [wide, y], (4, 8), F32), F16), out)
    (step,) = scheduled(b.build(), kernel=lambda *_: Nothing())[1].steps
    assert step.bytes_read == 8 * 2 + 32 * 4
    assert step.bytes_written == 32 * 2


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (unary((1024,)), 7),
        (unary((1023,)), 0),
        (unary((32, 32), out_strides=(1, 32)), 7),
        (unary((32, 32), x_strides=(40, 1), out_strides=(40, 1)), 6),
        (unary((1024,), alias=True), 6),
    ],
    ids=["dense", "small", "dense columns", "gaps", "in place"],
)
def test_large_dense_outputs_bypass_the_cache(graph, expected):
    _, schedule = scheduled(graph, kernel=lambda *_: Nothing(), stream_from=8192)
    assert [op.flags for step in schedule.steps for op in step.ops] == [expected]


def test_intermediates_stay_in_the_cache():
    graph = unary((1024,), out_dtype=F16)
    _, schedule = scheduled(graph, "materialized", kernel=lambda *_: Nothing(), stream_from=64)
    assert [op.flags & abi.TILE_STREAM for step in schedule.steps for op in step.ops] == [0, 1]


@pytest.mark.parametrize(
    ("elements", "threads", "expected"),
    [
        (32767, 1, 0),
        (32768, 1, 2),
        (32768, 2, 0),
        (196607, 1, 2),
        (196608, 1, 10),
        (196608, 2, 2),
        (786431, 1, 10),
        (786432, 1, 7),
        (786432, 2, 10),
    ],
)
def test_how_steps_are_walked_over_depends_on_the_bytes_of_a_thread(elements, threads, expected):
    _, schedule = scheduled(unary((elements,)), threads=threads, kernel=lambda *_: Nothing())
    assert [op.flags for step in schedule.steps for op in step.ops] == [expected]


def test_flags_reach_the_kernel():
    graph = unary((64,))
    _, schedule = scheduled(graph, stream_from=1)
    memory = Memory(graph)
    schedule.pack().run(memory.addresses)
    assert [flags for _, _, _, flags in schedule.kernels[0].tiles] == [7]


def test_runs_walk_back_and_forth():
    graph = unary((150,))
    tiling = Tiling(elements=10)
    _, schedule = scheduled(graph, tiling=tiling, sawtooth_from=0)
    memory, packed = Memory(graph), schedule.pack()
    kernel = schedule.kernels[0]
    starts = []
    for _ in range(4):
        kernel.tiles.clear()
        packed.run(memory.addresses)
        places = kernel.written()
        assert len(places) == len(set(places)) == 150
        starts.append([steps[-1][0] for _, _, steps, _ in kernel.tiles])
    # Which way the first goes depends on what ran before on this thread.
    assert starts[0] == starts[2] != starts[1] == starts[3]
    back = max(starts, key=len)  # a row in one forwards, piece by piece backwards
    assert back == sorted(back, reverse=True)
    assert len(back) > 1
    assert len(min(starts, key=len)) == 1


def traced(elements, threads, limit, **options):
    graph = unary((elements,))
    _, schedule = scheduled(graph, threads=limit, kernel=lambda *_: Nothing(), **options)
    events = schedule.pack().run([0, 0], 0, (), threads, True)
    return [(step, thread) for step, thread, begin, end in events if begin <= end]


def test_small_steps_never_wake_threads():
    assert traced(66665, 4, 4) == [(0, 0)]
    assert traced(66666, 2, 4) == [(0, 0), (0, 1)]
    assert traced(66666, 4, 2) == [(0, 0), (0, 1)]
    assert traced(66666, 1, 4) == [(0, 0)]
    assert traced(10, 4, 4, parallel_from=1) == [(0, 0)]  # one tile


def test_threads_have_tiles_of_their_own():
    graph = unary((16_000,), out_dtype=F16)
    _, schedule = scheduled(graph, threads=3, parallel_from=1)
    _, address = workspace(schedule)
    memory = Memory(graph)
    schedule.pack().run(memory.addresses, address, (), 3)
    places = {steps[-1][0] - address for _, _, steps, _ in schedule.kernels[0].tiles}
    each = schedule.scratch_per_thread
    assert places == {0, each, 2 * each}
    assert each >= 4000 * 4
    assert each * 3 == schedule.workspace_size


def test_kernels_reach_their_memory_wherever_the_plan_puts_it():
    def downwards(lives):
        """The first one on top."""
        tops = [*itertools.accumulate(pad(life.nbytes) for life in reversed(lives))]
        offsets = [top - pad(life.nbytes) for top, life in zip(tops, reversed(lives), strict=True)]
        return Assignment(tuple(offsets[::-1]), tuple(pad(life.nbytes) for life in lives), tops[-1])

    class Scratch(Nothing):
        def __init__(self, node):
            super().__init__(node.name, lambda *given: seen.append((node.name, given[5])))

    seen = []
    b = GraphBuilder()
    x, out = b.input("x", (8,), F32), b.output("out", (8,), F32)
    for _ in range(2):
        x = b.compute("f", [x], (8,), F32, domain="row")
    b.view_copy(x, out)
    graph = run_passes(b.build(), "materialized").graph
    plan = plan_workspace(graph, downwards, threads=2, scratch_of=lambda *_: 100)
    schedule = compile(graph, plan, Scratch)
    memory, (_, address) = Memory(graph), workspace(schedule)
    schedule.pack().run(memory.addresses, address, (), 2)
    places = {part.name: buffer.offset for buffer in plan.buffers for part in buffer.parts}
    address += -address % 64  # what kernels have begins with a cache line, wherever workspaces do
    assert seen == [(name, address + places[f"{name}.scratch"]) for name in ("f", "f_2")]
    assert places["f.scratch"] > places["f_2.scratch"]


def test_scalars_and_state_reach_the_kernel():
    seen = []
    callback = KERNEL(lambda v, r, c, state, params, s, f: seen.append((state, *params[:3])))
    kernel = Kernel(fn=ctypes.cast(callback, ctypes.c_void_p).value, state=1234, name="spy")
    graph = unary((4,), params=(Argument(1), 0.25, Argument(0)))
    _, schedule = scheduled(graph, kernel=lambda *_: kernel)
    schedule.pack().run([0, 0], 0, (0.5, float("inf")))
    assert seen == [(1234, float("inf"), 0.25, 0.5)]
    with pytest.raises(ValueError, match="takes 2 numbers, 1 given"):
        schedule.pack().run([0, 0], 0, [0.5])


def test_every_node_has_parameters_of_its_own_prepared_once_a_run():
    seen, prepared = [], []
    callback = KERNEL(lambda v, r, c, state, params, s, f: seen.append(params[0]))

    @ctypes.CFUNCTYPE(
        None, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p, ctypes.POINTER(ctypes.c_double),
        ctypes.c_int,
    )  # fmt: skip
    def prepare(params, state, numbers, count):
        prepared.append((count, numbers[0]))
        params[0] = 10 * numbers[0]

    kernel = Kernel(
        fn=ctypes.cast(callback, ctypes.c_void_p).value,
        state=0,
        prepare=ctypes.cast(prepare, ctypes.c_void_p).value,
        params_size=64,
    )
    b = GraphBuilder()
    x, out = b.input("x", (100,), F32), b.output("out", (100,), F32)
    once = b.compute("f", [x], (100,), F32, params=(1.0,))
    b.view_copy(b.compute("f", [once], (100,), F32, params=(2.0,)), out)
    tiling = Tiling(scratch_elements=50)
    graph, schedule = scheduled(b.build(), tiling=tiling, kernel=lambda *_: kernel)
    memory = Memory(graph)
    _, address = workspace(schedule)
    schedule.pack().run(memory.addresses, address)
    assert prepared == [(1, 1.0), (1, 2.0)]
    assert seen == [10.0, 20.0] * 2


@pytest.mark.parametrize(("threads", "fails"), [(1, 0), (2, 0), (1, 7), (2, 7)])
def test_opaque_kernels_get_their_operands_whole_and_may_fail(threads, fails):
    calls = []

    @OPAQUE
    def call(views, state, params, scratch, chunk, chunks):
        operands = [views[i] for i in range(3)]
        calls.append([(v.shape[: v.ndim], v.strides[: v.ndim]) for v in operands])
        return fails

    kernel = Kernel(
        fn=ctypes.cast(call, ctypes.c_void_p).value, state=0, cost=1e6, chunks=lambda threads: 3
    )
    b = GraphBuilder()
    x, out = b.input("x", (4, 2), F32, strides=(1, 4)), b.output("out", (4, 4), F32)
    product = b.compute(
        "matmul", [x, b.transpose(x, (1, 0))], (4, 4), F32, domain="opaque", reads_strided=True
    )
    b.view_copy(b.compute("relu", [product], (4, 4), F32), out)

    def kernel_of(node, graph):
        return kernel if node.domain == "opaque" else PythonKernel(node, graph)

    graph, schedule = scheduled(b.build(), threads=threads, kernel=kernel_of)
    memory = Memory(graph)
    _, address = workspace(schedule)
    if fails:
        with pytest.raises(RuntimeError, match="it gave 7"):
            schedule.pack().run(memory.addresses, address, (), threads)
        assert schedule.kernels[1].tiles == []
        return
    schedule.pack().run(memory.addresses, address, (), threads)
    views = [([4, 2], [4, 16]), ([2, 4], [16, 4]), ([4, 4], [16, 4])]
    assert calls == [views] * 3
    assert len(schedule.kernels[1].tiles) == 1


def test_row_wise_kernels_get_whole_rows_of_any_axis():
    for axis, shape in ((-1, (2, 3, 5)), (-2, (2, 5, 3)), (-3, (5, 2, 3))):
        b = GraphBuilder()
        x, out = b.input("x", shape, F32), b.output("out", shape, F32)
        b.view_copy(b.compute("softmax", [x], shape, F32, domain="row", axis=axis), out)
        graph, schedule = scheduled(b.build(), tiling=Tiling(elements=1, transpose=1))
        memory = Memory(graph)
        schedule.pack().run(memory.addresses)
        (kernel,) = schedule.kernels
        assert all(cols == 5 for _, cols, _, _ in kernel.tiles)
        written = kernel.written()
        assert len(set(written)) == len(written) == 30
        interpret(graph, memory.numbers)
        assert all(memory.read("out", i) == memory.numbers["out"][i] for i in range(30))


def test_an_intermediate_takes_the_place_of_one_that_dies():
    b = GraphBuilder()
    x, out = b.input("x", (4, 4), F32), b.output("out", (4, 4), F32)
    value = x
    for _ in range(3):
        value = b.compute("mm", [value], (4, 4), F32, domain="opaque")
        value = b.compute("f", [value], (4, 4), F32)
    b.view_copy(value, out)
    plan = plan_workspace(run_passes(b.build()).graph)
    assert plan.size == 2 * 64


def test_constants_are_arguments_of_the_run():
    b = GraphBuilder()
    x, weights = b.input("x", (4,), F32), b.constant("weights", (4,), F32)
    b.view_copy(b.compute("sum", [x, weights], (4,), F32), b.output("out", (4,), F32))
    _, schedule = scheduled(b.build(), kernel=lambda *_: Nothing())
    assert schedule.arguments == ("x", "out", "weights")


def test_what_cannot_be_scheduled_says_why():
    with pytest.raises(GraphError, match="f: empty values"):
        scheduled(unary((4, 0)), kernel=lambda *_: Nothing())
    b = GraphBuilder()
    x, out = b.input("x", (4, 4), F32), b.output("out", (4, 4), F32)
    b.view_copy(b.compute("matmul", [x, x], (4, 4), F32, domain="opaque"), out)
    (step,) = scheduled(b.build(), kernel=lambda *_: Nothing())[1].steps[:1]
    assert step.is_call
    with pytest.raises(ValueError, match="f: its kernel has no address"):
        scheduled(unary((4,)), kernel=lambda *_: Kernel(fn=0))[1].pack()


@pytest.mark.parametrize("uses", [1, 7, 8, 40])
def test_uses_of_an_operand_count(uses):
    """They are two operands, but a kernel call has a place for every use."""
    b = GraphBuilder()
    x, out = b.input("x", (4,), F32), b.output("out", (4,), F32)
    b.view_copy(b.compute("k", [x] * uses, (4,), F32), out)
    graph = b.build()
    memory = Memory(graph)
    scheduled(graph)[1].pack().run(memory.addresses)
    interpret(graph, memory.numbers)
    assert [memory.read("out", i) for i in range(4)] == list(memory.numbers["out"].values())


def test_a_schedule_that_was_read_back_does_not_pack():
    schedule = Schedule.from_json(scheduled(unary((4,)))[1].to_json())
    with pytest.raises(ValueError, match="0 kernels for 1 ops"):
        schedule.pack()
    one = Nothing()
    with pytest.raises(ValueError, match="2 kernels for 1 ops"):
        replace(schedule, kernels=(one, one)).pack()
    replace(schedule, kernels=(one,)).pack().run([0, 0])


class Recorder(Nothing):
    """A kernel that touches nothing and remembers the corners of its tiles, operand by operand."""

    def __init__(self, node, **facts):
        super().__init__(call=self.call, **facts)
        self.count, self.spans = len(node.inputs) + 1, []

    def call(self, views, rows, cols, state, params, scratch, flags):
        for place in range(self.count):
            view = views[place]
            reach = ((rows - 1) * view.row_stride, (cols - 1) * view.col_stride)
            low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
            self.spans.append((place, (view.data or 0) + low, (view.data or 0) + high))


def recorded(pipeline):
    """Schedules of f and f_cast: as one step with a tile between them, or as steps of their own."""
    graph = unary((512, 128), x_strides=(130, 1), out_dtype=F16)
    return scheduled(graph, pipeline, threads=2, kernel=lambda node, _: Recorder(node))[1]


def damaged(schedule, path, value):
    """The schedule with one field of its document replaced; `path` leads to it."""
    document = changed(json.loads(schedule.to_json()), path, value)
    return replace(Schedule.from_json(json.dumps(document)), kernels=schedule.kernels)


STEP = ("steps", 0)
X, TILE, OP = (*STEP, "operands", 0), (*STEP, "operands", 1), (*STEP, "ops", 0)


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        (("max_threads",), 0, "max_threads is 0, must be at least 1"),
        (("max_threads",), 2**20, "schedule: max_threads is 1048576: a run has from 1 to 1024"),
        (("max_threads",), 2**40, "schedule: max_threads is 1099511627776: a run has from 1"),
        (("planned_threads",), 0, "planned_threads is 0, must be at least 1"),
        (("planned_threads",), 3, "schedule: planned_threads is 3: at least 1, at most 2"),
        (("scratch_offset",), -64, "scratch_offset is -64, must be at least 0"),
        (("scratch_offset",), 64, "f+f_cast, f: offset is 0: it reaches from byte 64 to"),
        (("scratch_per_thread",), 0, "f+f_cast, f: base is -2: scratch_per_thread is 0"),
        (("scratch_per_thread",), 64, "f: strides is (512, 4): a tile is in the 64 bytes of"),
        (("scratch_per_thread",), 2**62, "f+f_cast, f: offset is 0: it reaches from byte 0 to 461"),
        (("workspace_size",), 0, "f+f_cast, f: offset is 0: it reaches from byte 0 to"),
        ((*STEP, "shape"), [128], "f+f_cast: shape is (128,): a step has from 2 to 8 dimensions"),
        ((*STEP, "shape"), [1] * 9, "f+f_cast: shape is (1, 1, 1, 1, 1, 1, 1, 1, 1): a step has"),
        ((*STEP, "shape"), [-512, 128], "steps[0].shape[0] is -512, must be at least 1"),
        ((*STEP, "shape"), [128, 0], "steps[0].shape[1] is 0, must be at least 1"),
        ((*STEP, "shape"), [2**40, 2**40], "): a step has from 1 to"),
        ((*STEP, "shape"), [512, 2**70], "steps[0].shape[1] is 1180591620717411303424, must fit"),
        ((*STEP, "shape"), [512, 64], "f+f_cast: tile_cols is 128: a tile has from 1 to 64 col"),
        ((*STEP, "tile_rows"), 513, "f+f_cast: tile_rows is 513: a tile has from 1 to 512 rows"),
        ((*STEP, "tile_rows"), -1, "steps[0].tile_rows is -1, must be at least 1"),
        ((*STEP, "tile_cols"), 0, "steps[0].tile_cols is 0, must be at least 1"),
        ((*STEP, "n_tiles"), 17, "f+f_cast: n_tiles is 17: shape and tile make 16"),
        ((*STEP, "n_tiles"), 0, "steps[0].n_tiles is 0, must be at least 1"),
        ((*X, "base"), 2, "f+f_cast, x_contiguous: base is 2: it is the index of one of 2 arg"),
        ((*X, "base"), -3, "steps[0].operands[0].base is -3, must be at least -2"),
        ((*X, "base"), -1, "f+f_cast, x_contiguous: offset is 0: it reaches from byte 0 to"),
        ((*X, "base"), 2**40, "f+f_cast, x_contiguous: base is 1099511627776: it is the"),
        ((*X, "strides"), [4], "f+f_cast, x_contiguous: strides is (4,): there is one for each"),
        ((*X, "strides"), [4] * 3, "f+f_cast, x_contiguous: strides is (4, 4, 4): there is one"),
        ((*TILE, "offset"), -4, "f+f_cast, f: offset is -4: it reaches from byte -4 to"),
        ((*TILE, "offset"), 64, "f+f_cast, f: offset is 64: it reaches from byte 64 to"),
        ((*TILE, "strides"), [513, 4], "f+f_cast, f: offset is 0: it reaches from byte 0 to"),
        ((*TILE, "strides"), [512, -4], "f+f_cast, f: offset is 0: it reaches from byte -508 to"),
        ((*OP, "operands"), [], "f+f_cast, f: operands is (): a kernel takes at least 1"),
        ((*OP, "operands"), [0, 3], "f+f_cast, f: operands is (0, 3): they are places among 3"),
        ((*OP, "operands"), [-1, 1], "steps[0].ops[0].operands[0] is -1, must be at least 0"),
        ((*OP, "flags"), 16, "steps[0].ops[0].flags is 16, must be at most 15"),
    ],
)
def test_damaged_schedules_are_refused(path, value, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        damaged(recorded("fused"), path, value).pack()


class Sized(Recorder):
    """One that says how large its operands' elements are."""

    def __init__(self, node, graph):
        values = map(graph.value, (*node.inputs, node.output))
        super().__init__(node, itemsizes=tuple(value.dtype.itemsize for value in values))


def test_kernels_and_their_packed_forms_do_not_change():
    kernel = Kernel(fn=0, name="f")
    packing = Packing(1, 64, "panels", lambda: kernel, lambda source, target: None)
    for one in (kernel, packing):
        for field in fields(one):
            with pytest.raises(FrozenInstanceError):
                setattr(one, field.name, None)


def test_kernels_say_how_many_operands_they_take_and_how_large_they_are():
    graph = unary((512, 128), x_strides=(130, 1), out_dtype=F16)
    whole = scheduled(graph, "fused", kernel=Sized)[1]
    assert whole.pack()
    with pytest.raises(ValueError, match=r"f: operands is \(0,\): this kernel takes 2"):
        damaged(whole, (*OP, "operands"), [0]).pack()
    size = whole.workspace_size
    # All elements in the last byte: what the document says of its bytes must not count.
    last = damaged(whole, (*TILE, "strides"), [0, 0])
    last = damaged(damaged(last, (*TILE, "nbytes"), 0), (*TILE, "offset"), size - 1)
    with pytest.raises(ValueError, match=f"to {size + 3} of a workspace of {size}"):
        last.pack()


def test_a_step_has_ops_and_room_for_its_operands():
    schedule = recorded("fused")
    (step,) = schedule.steps
    odd = replace(step.ops[0], flags=16), *step.ops[1:]
    with pytest.raises(ValueError, match="f: flags is 16: they add up to at most 15"):
        replace(schedule, steps=(replace(step, ops=odd),)).pack()
    with pytest.raises(ValueError, match="ops is 0: a step has at least one"):
        replace(schedule, steps=(replace(step, ops=()),), kernels=()).pack()


def test_a_lone_op_has_no_tiles():
    """What it is handed may be several tiles of a row, and scratch holds one."""
    whole = recorded("materialized")
    with pytest.raises(ValueError, match="base is -2: scratch_per_thread is 0"):
        damaged(whole, (*TILE, "base"), abi.SCRATCH)
    with pytest.raises(ValueError, match="base is -2: one op makes a tile and another reads it"):
        damaged(replace(whole, scratch_per_thread=64), (*TILE, "base"), abi.SCRATCH)


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@given(data=st.data(), threads=st.integers(1, 4))
def test_no_damage_reaches_out_of_the_workspace(pipeline, data, threads):
    """What is refused does not run, and what runs stays in its place."""
    whole = recorded(pipeline)
    path = data.draw(st.sampled_from(list(numbers_in(json.loads(whole.to_json())))))
    value = data.draw(st.integers(-9, 600) | LARGE)
    try:
        schedule = damaged(whole, path, value)
        packed = schedule.pack()
    except ValueError:
        return
    begin = 1 << 50  # of a workspace that is not there
    threads = min(threads, schedule.planned_threads)  # scratch of others is borrowed elsewhere
    packed.run([0, 0], begin, (), threads, data.draw(st.booleans()))
    kernels = iter(schedule.kernels)
    for step in schedule.steps:
        for op in step.ops:
            for place, low, high in next(kernels).spans:
                operand = step.operands[op.operands[place]]
                if operand.base < 0:
                    last = begin + schedule.workspace_size - ITEMSIZE[operand.dtype]
                    assert begin <= low <= high <= last


def test_eight_dimensions_that_do_not_merge():
    shape, strides = (2,) * 8, tuple(3 * 4**i for i in range(8))
    graph = unary(shape, x_strides=strides)
    memory = Memory(graph)
    _, schedule = scheduled(graph)
    schedule.pack().run(memory.addresses)
    interpret(graph, memory.numbers)
    out = graph.value(graph.outputs[0])
    for index in indices(shape):
        assert (
            memory.read("out", at(out.strides, index))
            == memory.numbers["out"][at(out.strides, index)]
        )


def test_a_run_checks_what_it_is_given():
    packed = scheduled(unary((4000,), out_dtype=F16))[1].pack()
    with pytest.raises(ValueError, match="takes 2 addresses, 1 given"):
        packed.run([0])
    with pytest.raises(ValueError, match="needs a workspace of"):
        packed.run([0, 0])


def test_the_runner_honours_limits_on_openmp():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    if not _scheduler.openmp_enabled():
        assert _scheduler.omp_threads() == MAX_THREADS
        pytest.skip("built without OpenMP")
    with threadpoolctl.threadpool_limits(1):
        assert _scheduler.omp_threads() == 1


def test_a_forked_child_runs_too():
    """It has none of its parent's threads."""
    code = """
import ctypes, os, sys
sys.path[:0] = %r
from test_graph_schedule import Nothing, scheduled, unary
packed = scheduled(unary((1 << 17,)), threads=2, kernel=lambda *_: Nothing())[1].pack()
packed.run([0, 0], 0, (), 2)
child = os.fork()
if child == 0:
    packed.run([0, 0], 0, (), 2)
    os._exit(7)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7)
"""
    folders = [pathlib.Path(file).parent.as_posix() for file in (__file__, graph_tools.__file__)]
    subprocess.run([sys.executable, "-W", "ignore", "-c", code % folders], check=True, timeout=60)


def test_other_item_sizes_are_no_obstacle():
    odd = DType("complex128", 16)
    b = GraphBuilder()
    x, out = b.input("x", (6, 4), odd, strides=(1, 6)), b.output("out", (6, 4), odd)
    b.view_copy(b.contiguous(x), out)
    (step,) = scheduled(b.build(), kernel=lambda *_: Nothing())[1].steps
    assert [operand.strides for operand in step.operands] == [(16, 96), (64, 16)]
