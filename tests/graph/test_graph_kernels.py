"""Random graphs on the real kernels: a fused plan gives the bits of a materialized one."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest
from aclnn.graph import DType, GraphBuilder, check, compile, plan_workspace, run_passes, validate
from setups import examples

from aclnn.compiler.kernel_table import KernelTable
from aclnn.operators.lowering import FLOATING_NAMES

SHAPE = (3, 50)
FLOATS = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
    "float64": np.float64,
}  # fmt: skip
WHOLE = ("bool", "int8", "uint8", "int16", "int32", "int64")
TYPES = {name: np.dtype(kind) for name, kind in FLOATS.items()} | {n: np.dtype(n) for n in WHOLE}
DTYPES = {name: DType(name, dtype.itemsize) for name, dtype in TYPES.items()}
READS = dict.fromkeys(WHOLE, "int64") | {"float64": "float64"}
FORMULAS = {
    "neg": (1, ()), "relu": (1, ()), "muls": (1, (3.0,)), "hardshrink": (1, (0.5,)),
    "mul": (2, ()), "maximum": (2, ()), "leaky_relu": (1, (0.1,)),
}  # fmt: skip
IN_WHOLE_NUMBERS = ("neg", "relu", "mul", "maximum")


def random_graph(draw):
    """A few calls after another, with conversions of every kind before, between and behind them."""
    b = GraphBuilder()
    values = [argument(b, draw, f"x{i}") for i in range(draw.randint(1, 3))]
    for _ in range(draw.randint(1, 7)):
        values.append(draw.choice((cast, cast, cast, point, point, rows))(b, draw, values))
    for value in (values[-1], *draw.sample(values, draw.randint(0, 1))):
        name = draw.choice((*DTYPES,))
        out = b.output("out", SHAPE, DTYPES[name], strides=draw.choice(((50, 1), (1, 3), (120, 2))))
        b.view_copy(b.cast(value, DTYPES[name]), out)
    return b.build()


def argument(b, draw, name):
    shape = draw.choice((SHAPE, SHAPE, (3, 1), (50,)))
    strides = draw.choice((None, (1, 3), (120, 2))) if shape == SHAPE else None
    value = b.input(name, shape, DTYPES[draw.choice((*DTYPES,))], strides=strides)
    value = b.contiguous(value)
    if draw.random() < 0.5:
        value = b.cast(value, DTYPES[draw.choice((*DTYPES,))])
    return b.broadcast_to(value, SHAPE)


def cast(b, draw, values):
    # The newest is taken most often, so that there are chains.
    source = values[-1] if draw.random() < 0.7 else draw.choice(values)
    return b.cast(source, DTYPES[draw.choice((*DTYPES,))])


def point(b, draw, values):
    name = draw.choice((*DTYPES,))
    formula = draw.choice(IN_WHOLE_NUMBERS if name in WHOLE else (*FORMULAS,))
    if name == "bool":
        formula = draw.choice(("mul", "maximum"))
    count, params = FORMULAS[formula]
    reads = READS.get(name, "float32")
    read = name
    if reads == "float32" and draw.random() < 0.3:
        read = "float32"
    operands = [b.cast(draw.choice(values), DTYPES[read]) for _ in range(count)]
    return b.compute(formula, operands, SHAPE, DTYPES[name], reads=reads, params=params)


def rows(b, draw, values):
    name = draw.choice(FLOATING_NAMES)
    operand = b.cast(draw.choice(values), DTYPES[name])
    attrs = {"domain": "row", "axis": draw.choice((-1, -2)), "loads": FLOATING_NAMES}
    return b.compute("softmax", [operand], SHAPE, DTYPES[name], stores=FLOATING_NAMES, **attrs)


def memory_of(graph):
    """For each argument an array to view and its flat memory; outputs hold rubbish."""
    rng, found = np.random.default_rng(1), {}
    for id in (*graph.inputs, *graph.outputs):
        value = graph.value(id)
        dtype = TYPES[value.dtype.name]
        size = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True))
        numbers = rng.standard_normal(size) * 10.0 ** rng.integers(-6, 6, size)
        with np.errstate(all="ignore"):
            if value.dtype.name in WHOLE:
                numbers = np.clip(numbers, -(2**31), 2**31 - 1).astype(np.int64)
            found[value.name] = numbers.astype(dtype)
    return found


def run(graph, pipeline, threads=1, spare_outputs=(), planned=1):
    """The bytes of all outputs, and how many intermediates lay there before."""
    graph = check(run_passes(graph, pipeline).graph)
    table = KernelTable(graph, {})
    options = {"threads": planned, "scratch_of": table.scratch_of, "spare_outputs": spare_outputs}
    plan = validate(plan_workspace(graph, **options))
    schedule = compile(
        graph, plan, lambda node: table.kernels[node.name], threads=threads, parallel_from=1
    )
    program = schedule.pack()
    memory = memory_of(graph)
    room = np.full(plan.size + 64, 0xA5, np.uint8)
    base = room.ctypes.data + -room.ctypes.data % 64
    program.run([array.ctypes.data for array in memory.values()], base, (), threads)
    found = [memory[graph.value(id).name].tobytes() for id in graph.outputs]
    return found, sum(bool(buffer.output) for buffer in plan.buffers)


@pytest.mark.parametrize("block", range(3))
def test_plans_have_the_bits_of_materialized_ones(block):
    """Fused ones, and such as keep intermediates where outputs will be."""
    held = {"fused": 0, "materialized": 0}
    for seed in range(block * 1000, block * 1000 + examples(500)):
        graph = random_graph(random.Random(seed))
        expected, _ = run(graph, "materialized")
        threads, planned = 1 + seed % 2, 1 + seed // 2 % 2
        found, _ = run(graph, "fused", threads, planned=planned)
        assert found == expected, f"seed {seed}"
        pipeline = (
            "fused" if seed // 4 % 4 else "materialized"
        )  # where fewer are kept, more are tried
        names = [graph.value(id).name for id in graph.outputs]
        found, count = run(graph, pipeline, threads, names)
        assert found == expected, f"seed {seed}"
        held[pipeline] += count
    assert held["materialized"] > examples(120), held
    assert held["fused"] or examples(500) < 500, held
