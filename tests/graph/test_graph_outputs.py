"""Intermediates lie in the memory of outputs, as long as nothing is written there."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from aclnn.graph import (
    GraphBuilder,
    Kernel,
    Lifetime,
    PlanError,
    SpareMemory,
    WorkspacePlan,
    compile,
    graph_lifetimes,
    plan_lifetimes,
    plan_workspace,
    run_passes,
    validate,
)
from aclnn.graph.planner.liveness import spare_memory
from aclnn.graph.runtime.abi import WORKSPACE
from graph_tools import F32
from hypothesis import given, settings
from hypothesis import strategies as st
from schemas import validated
from setups import examples

import aclnn
from aclnn.api import functional
from aclnn.api._functional import FunctionalHandle
from aclnn.compiler._plan_cache import OperatorHandle

MINE = SpareMemory("out", 1000, 3)


def lives(*rows):
    return [Lifetime(name, *row) for name, *row in rows]


def placed(plan):
    return {buffer.name: (buffer.output, buffer.offset) for buffer in plan.buffers}


# --- Lifetimes --------------------------------------------------------------------------------


def test_what_is_over_before_the_output_is_written_lies_there():
    plan = validate(
        plan_lifetimes(lives(("a", 0, 3, 1000), ("b", 2, 4, 500), ("c", 3, 5, 64)), spare=[MINE])
    )
    assert placed(plan) == {"a": ("out", 0), "b": ("", 0), "c": ("", 512)}
    assert plan.buffer("a").padded == 1000  # the output ends there
    assert (plan.size, plan.lower_bound, plan.proof) == (576, 576, "optimal")
    assert (plan.peak_step, plan.peak_bytes) == (3, 576)
    assert plan.naive_size == plan_lifetimes(lives(("a", 0, 3, 1000), ("b", 2, 4, 500),
                                                   ("c", 3, 5, 64))).naive_size  # fmt: skip


def test_the_peak_is_relieved_first():
    """Of two that do not fit together the one goes that is live when most is."""
    rows = ("early", 0, 1, 900), ("x", 1, 3, 800), ("y", 1, 3, 700), ("z", 1, 3, 300)
    plan = validate(plan_lifetimes(lives(*rows), spare=[MINE]))
    assert placed(plan)["x"] == ("out", 0)
    assert placed(plan)["early"] == ("out", 0)  # at another time
    assert placed(plan)["y"][0] == placed(plan)["z"][0] == ""


def test_only_default_and_exact_use_outputs():
    rows = lives(("a", 0, 2, 100), ("b", 1, 3, 100))
    for strategy, used in (("default", True), ("exact", True), ("bucket", False), ("naive", False)):
        plan = validate(plan_lifetimes(rows, strategy, spare=[MINE]))
        assert any(buffer.output for buffer in plan.buffers) == used


def test_tiles_stay_in_the_workspace():
    (tiles,) = lives(("t", 0, 1, 64))
    part = SimpleNamespace(name="t", value=0, offset=0, nbytes=64)
    plan = plan_lifetimes([replace(tiles, parts=(part,))], spare=[MINE])
    assert placed(plan) == {"t": ("", 0)}


def least(lifetimes, spare):
    """The workspace that is needed at least, by giving every subset of lifetimes to outputs."""
    best = None
    for mask in range(1 << len(lifetimes)):
        given = [life for i, life in enumerate(lifetimes) if mask >> i & 1]
        if any(
            life.upper > spare[0].until or life.nbytes > max(one.nbytes for one in spare)
            for life in given
        ):
            continue
        room = sum(-(-one.nbytes // 64) * 64 for one in spare)
        if any(live(given, step) > room for step in range(20)):
            continue
        rest = [life for i, life in enumerate(lifetimes) if not mask >> i & 1]
        peak = max((live(rest, step) for step in range(20)), default=0)
        best = peak if best is None else min(best, peak)
    return best


def live(lifetimes, step):
    return sum(-(-one.nbytes // 64) * 64 for one in lifetimes if one.lower <= step < one.upper)


@st.composite
def problems(draw):
    found = []
    for i in range(draw(st.integers(0, 7))):
        lower = draw(st.integers(0, 7))
        same = f"b{draw(st.integers(0, i - 1))}" if i and draw(st.integers(0, 5)) == 0 else ""
        upper = lower + draw(st.integers(1, 5))
        found.append(Lifetime(f"b{i}", lower, upper, draw(st.integers(0, 900)), same_as=same))
    until = draw(st.integers(1, 9))
    heir = draw(st.sampled_from(["", *(life.name for life in found)]))
    sizes = draw(st.lists(st.integers(0, 1500), min_size=1, max_size=2))
    heirs = [heir if len(sizes) == 1 else ""] * 2
    return found, [
        SpareMemory(f"out{i}", size, until, heirs[i]) for i, size in enumerate(sizes)
    ]  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(problems(), st.sampled_from(["default", "exact"]))
def test_plans_with_outputs_are_valid_and_never_larger(problem, strategy):
    found, spare = problem
    plan = validate(plan_lifetimes(found, strategy, spare=spare))
    assert plan.lower_bound <= plan.size <= plan_lifetimes(found, strategy).size
    for life in found:
        assert plan.buffer(life.name).nbytes == life.nbytes
    assert WorkspacePlan.from_json(plan.to_json()) == plan
    if not any(life.same_as for life in found) and not any(one.heir for one in spare):
        assert plan.lower_bound <= least(found, spare) <= plan.size


def test_validate_knows_what_may_lie_in_outputs():
    rows = lives(("a", 0, 2, 128), ("b", 1, 3, 64), ("c", 1, 4, 64))
    plan = validate(plan_lifetimes(rows, spare=[MINE]))
    a, b, c = plan.buffers
    assert [one.output for one in plan.buffers] == ["out", "out", ""]
    for buffers, words in (
        ((a, b, replace(c, output="out", offset=512)), "c: out is written at step 3, before its end"),
        ((a, replace(b, offset=a.offset), c), "a and b are in use together|b and a are"),
        ((a, replace(b, output="other"), c), "b: other is no output whose memory is spare"),
        ((a, replace(b, offset=960), c), "b: does not fit into the 1000 bytes of out"),
        ((a, replace(b, offset=512, parts=(1,)), c), "b: tiles are in the workspace"),
        ((a, replace(b, same_as="c"), c), "b: is not at the offset of c"),
    ):  # fmt: skip
        with pytest.raises(PlanError, match=words):
            validate(replace(plan, buffers=buffers))
    heir = (replace(MINE, heir="c"),)
    alone = replace(c, output="out", offset=0, shared_with=())
    assert validate(replace(plan, size=0, buffers=(alone,), spare=heir))
    with pytest.raises(PlanError, match="c: out is written"):
        validate(replace(plan, size=0, buffers=(replace(alone, offset=64),), spare=heir))


# --- Graphs -----------------------------------------------------------------------------------


def products(count, dtype=F32, strides=None, alias=False):
    """Opaque nodes one after another."""
    b = GraphBuilder()
    x = b.input("x", (8, 8), F32)
    out = b.output("out", (8, 8), dtype, strides=strides, alias_of=x if alias else None)
    for _ in range(count):
        x = b.compute("mm", [x], (8, 8), F32, domain="opaque", writes_strided=True)
    b.view_copy(b.cast(x, dtype), out)
    return run_passes(b.build()).graph


def test_a_chain_of_products_swings_between_workspace_and_output():
    graph = products(6)
    plan = validate(plan_workspace(graph, spare_outputs=["out"]))
    assert plan.size == plan.lower_bound == 256
    assert [buffer.output for buffer in plan.buffers] == ["", "out", "", "out", ""]
    assert plan_workspace(graph).size == 512
    schedule = compile(graph, plan, lambda node: Kernel(fn=1, state=0))
    number = schedule.arguments.index("out")
    for buffer in plan.buffers:
        bases = {o.base for step in schedule.steps for o in step.operands if o.name == buffer.name}
        assert bases == {number if buffer.output else WORKSPACE}


def test_an_output_is_written_over_what_it_is_made_of():
    b = GraphBuilder()
    x, out = b.input("x", (8, 8), F32), b.output("out", (8, 8), F32)
    product = b.compute("mm", [x], (8, 8), F32, domain="opaque")
    b.view_copy(b.compute("relu", [product], (8, 8), F32), out)
    graph = run_passes(b.build()).graph
    plan = validate(plan_workspace(graph, spare_outputs=["out"]))
    assert plan.spare == (SpareMemory("out", 256, 1, heir="mm"),)
    assert (plan.size, placed(plan)) == (0, {"mm": ("out", 0)})
    # Past the cache would go what was just read from it.
    schedule = compile(graph, plan, lambda node: Kernel(fn=1, state=0), stream_from=1)
    assert "streaming" not in schedule.to_text()
    apart = compile(graph, plan_workspace(graph), lambda node: Kernel(fn=1, state=0),
                    stream_from=1)  # fmt: skip
    assert "streaming" in apart.to_text()


@pytest.mark.parametrize(
    "graph",
    [products(4, strides=(16, 1)), products(4, strides=(-8, 1)), products(4, alias=True)],
    ids=["gaps", "backwards", "alias"],
)
def test_outputs_that_are_no_stretch_of_their_own_hold_nothing(graph):
    assert spare_memory(graph, ["out"]) == ()
    assert not any(b.output for b in plan_workspace(graph, spare_outputs=["out"]).buffers)


def test_no_output_is_used_once_one_of_them_is_written():
    """They may overlap each other."""
    b = GraphBuilder()
    x = b.input("x", (8, 8), F32)
    first, second = b.output("first", (8, 8), F32), b.output("second", (8, 8), F32)
    made = [x]
    for _ in range(7):
        made.append(b.compute("mm", made[-1:], (8, 8), F32, domain="opaque"))
    b.view_copy(made[5], first)
    b.view_copy(made[7], second)
    graph = run_passes(b.build(), "materialized").graph
    written = min(
        number for number, step in enumerate(graph.steps()) for node in step
        if any(graph.root(id).storage == "output" for id in node.outputs)
    )  # fmt: skip
    plan = validate(plan_workspace(graph, spare_outputs=["first", "second"]))
    assert {memory.until for memory in plan.spare} == {written}
    held = [buffer for buffer in plan.buffers if buffer.output]
    assert held
    assert all(buffer.last < written for buffer in held)


def test_outputs_that_are_apart_are_used_until_each_is_written():
    b = GraphBuilder()
    x = b.input("x", (8, 8), F32)
    first, second = b.output("first", (8, 8), F32), b.output("second", (8, 8), F32)
    made = [x]
    for _ in range(7):
        made.append(b.compute("mm", made[-1:], (8, 8), F32, domain="opaque"))
    b.view_copy(made[2], first)
    b.view_copy(made[7], second)
    graph = run_passes(b.build()).graph
    names = ["first", "second"]
    apart = validate(plan_workspace(graph, spare_outputs=names, outputs_apart=True))
    assert {memory.output: memory.until for memory in apart.spare} == {"first": 1, "second": 6}
    assert {buffer.output for buffer in apart.buffers if buffer.first > 1} >= {"second"}
    assert apart.size < plan_workspace(graph, spare_outputs=names).size


def test_steps_read_from_an_output_what_was_left_there():
    """So that a value that is returned and read has one place, not two."""
    b = GraphBuilder()
    x, kept, out = (
        b.input("x", (8, 8), F32),
        b.output("kept", (8, 8), F32),
        b.output("out", (8, 8), F32),
    )
    value = b.compute("f", [b.compute("mm", [x], (8, 8), F32, domain="opaque")], (8, 8), F32)
    b.view_copy(value, kept)
    b.view_copy(b.compute("mm", [value], (8, 8), F32, domain="opaque"), out)
    graph = run_passes(b.build(), verify=True).graph
    (last,) = graph.steps()[-1]
    assert [graph.value(id).name for id in last.inputs] == ["kept"]
    assert [buffer.contents for buffer in plan_workspace(graph).buffers if not buffer.parts] == [
        "float32[8,8]"
    ]


def test_outputs_are_not_used_unless_somebody_says_that_they_overlap_nothing():
    plan = plan_workspace(products(4))
    assert plan.spare == ()
    assert not any(buffer.output for buffer in plan.buffers)
    assert len(graph_lifetimes(products(4))) == 3


def test_views_show_what_lies_in_outputs():
    graph = products(6)
    plan = plan_workspace(graph, spare_outputs=["out"])
    held = [buffer for buffer in plan.buffers if buffer.output]
    text = plan.to_text()
    assert f"{held[0].output}+{held[0].offset}" in text
    assert f"out holds until step 5 writes it: {', '.join(b.name for b in held)}" in text
    validated(plan.to_json(), "plan")
    assert f"out+{held[0].offset}" in graph.to_text(plan)
    assert f"in out+{held[0].offset}" in graph.to_dot(plan)
    picture = plan.to_svg()
    titles = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")
    words = [title.text for title in titles]
    for buffer in plan.buffers:
        (title,) = [one for one in words if one.startswith(f"{buffer.name}: ")]
        assert ("of out in steps" in title) == bool(buffer.output)
    assert "in out" in picture
    before = plan_workspace(graph)
    moved = plan.diff(before)
    assert {b.name for b in held} <= {*moved.moved}
    assert "of out in steps" in moved.to_text()
    validated(json.dumps(json.loads(moved.to_json())), "plan_diff")
    snapshot = plan.to_memory_snapshot()
    assert len(snapshot["segments"]) == 2
    spans = [(one["address"], one["address"] + one["total_size"]) for one in snapshot["segments"]]
    for event in snapshot["device_traces"][0]:
        assert any(a <= event["addr"] and event["addr"] + event["size"] <= b for a, b in spans)


def test_a_plan_with_all_in_outputs_is_drawn():
    plan = plan_lifetimes(lives(("a", 0, 3, 64)), spare=[MINE])
    assert plan.size == 0
    assert "a: " in plan.to_svg()
    assert len(plan.to_memory_snapshot()["segments"]) == 1


# --- Executors --------------------------------------------------------------------------------


def three_products(lowering):
    found = lowering.dense("input")
    for _ in range(3):
        found = lowering.builder.compute(
            "matmul", [found, lowering.dense("mat2")], (64, 64), F32, domain="opaque",
            reads_strided=True, writes_strided=True,
        )  # fmt: skip
    return {"out": found}


@pytest.fixture
def planned_products(monkeypatch):
    """An executor of self @ mat2 @ mat2 @ mat2."""
    operator = replace(aclnn.operators.REGISTRY["mm"], lower=three_products)
    names, handles = (*operator.positional, "out"), functional.HANDLES_BY_NAME
    handle = FunctionalHandle(OperatorHandle(operator, 60_000), "mm", names, 2, 2, handles.get)
    monkeypatch.setitem(handles._made, "mm", handle)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    return aclnn.executor("mm", x, w, out=np.empty_like(x)), x, w


def test_executors_use_their_outputs(planned_products):
    ex, x, w = planned_products
    one, two = (buffer for buffer in ex.plan.buffers if not buffer.parts)
    assert {one.output, two.output} == {"", "out"}
    assert ex.workspace_size < 2 * 64 * 64 * 4 + ex.plan.scratch_per_thread * ex.plan.threads
    np.testing.assert_allclose(ex.run(), x @ w @ w @ w, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("operand", ["input", "mat2"])
def test_executors_whose_output_is_bound_to_an_input_do_not(planned_products, operand):
    ex, x, w = planned_products
    expected = ex.run().copy()
    shared = {"input": x.copy(), "mat2": w.copy()}
    assert (ex.run(**shared, out=shared[operand]) == expected).all()
    assert not any(buffer.output for buffer in ex.plan.buffers)
    assert (ex.run(input=x, mat2=w, out=np.empty_like(x)) == expected).all()
    assert any(buffer.output for buffer in ex.plan.buffers)


def test_materialized_calls_keep_intermediates_in_the_workspace(planned_products):
    _, x, w = planned_products
    ex = aclnn.executor("mm", x, w, materialize=True)
    assert not any(buffer.output for buffer in ex.plan.buffers)


# --- Compiled functions -----------------------------------------------------------------------


def network(x, w):
    for _ in range(3):
        x = aclnn.relu(aclnn.matmul(x, w)) + x
    return x


@pytest.fixture
def compiled():
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    return aclnn.compile(network), x, w


def test_compiled_functions_use_their_outputs(compiled):
    function, x, w = compiled
    ex = function.executor(x, w)
    assert any(buffer.output for buffer in ex.plan.buffers)
    assert ex.plan.size < 2 * x.nbytes + ex.plan.scratch_per_thread * ex.plan.threads
    assert (function(x, w) == network(x, w)).all()
    out = np.full_like(x, np.nan)
    assert (function(x, w, out=out) == network(x, w)).all()


@pytest.mark.parametrize("operand", [0, 1])
def test_compiled_functions_whose_output_is_an_input_do_not(compiled, operand):
    function, *arrays = compiled
    expected = network(*arrays)
    ex = function.executor(*arrays)
    assert (ex.run(*arrays, out=arrays[operand]) == expected).all()
    assert not any(buffer.output for buffer in ex.plan.buffers)


def test_compiled_functions_whose_output_crosses_an_input_do_not(compiled):
    function, x, w = compiled
    memory = np.zeros(x.size + 40, np.float32)
    within = memory[: x.size].reshape(x.shape)
    within[:] = x
    expected = network(x, w)
    assert (function(within, w, out=memory[40:].reshape(x.shape)) == expected).all()


def test_results_that_are_returned_twice_are_copied_once():
    b = GraphBuilder()
    x = b.input("x", (8, 8), F32)
    one, two, out = (b.output(name, (8, 8), F32) for name in ("one", "two", "out"))
    value = b.compute("mm", [x], (8, 8), F32, domain="opaque")
    b.view_copy(value, one)
    b.view_copy(value, two)
    b.view_copy(b.compute("mm", [value], (8, 8), F32, domain="opaque"), out)
    graph = run_passes(b.build(), verify=True).graph
    read = {node.name: [graph.value(id).name for id in node.inputs] for node in graph.nodes}
    assert read == {"mm": ["x"], "two_view_copy": ["one"], "mm_2": ["one"]}
    assert not plan_workspace(graph).buffers


def test_copies_of_parts_follow_a_result_to_its_output():
    b = GraphBuilder()
    x, whole, part = (
        b.input("x", (8, 8), F32),
        b.output("whole", (8, 8), F32),
        b.output("part", (4, 8), F32),
    )
    value = b.compute("mm", [x], (8, 8), F32, domain="opaque")
    b.view_copy(value, whole)
    b.view_copy(b.view(value, (4, 8), (8, 1), 32), part)
    graph = run_passes(b.build(), verify=True).graph
    (copy,) = [node for node in graph.nodes if node.kind == "ViewCopy"]
    (source,) = map(graph.value, copy.inputs)
    assert (graph.root(source.id).name, source.offset) == ("whole", 32)


def written_rows(count, reads="", in_place=(0,)):
    """Opaque nodes that write into an argument one after another, and what else reads it."""
    b = GraphBuilder()
    x, rows = b.input("x", (8, 8), F32), b.input("rows", (2, 8), F32)
    seen, out = b.output("seen", (8, 8), F32), b.output("out", (8, 8), F32, alias_of=x)
    value, found = x, {"": rows, "x": x}
    for n in range(count):
        value = b.compute("put", [value, rows], (8, 8), F32, domain="opaque", in_place=in_place)
        found[f"put {n}"] = value
    b.view_copy(b.compute("mm", [found[reads]], (8, 8), F32, domain="opaque"), seen)
    b.view_copy(value, out)
    return run_passes(b.build()).graph


def test_what_is_written_into_an_argument_in_turn_is_there_from_the_first_on():
    graph = written_rows(3)
    plan = validate(plan_workspace(graph, spare_outputs=["out"]))
    assert (plan.size, plan.lower_bound) == (0, 0)
    assert placed(plan) == {"put": ("out", 0), "put_2": ("out", 0)}
    assert [one.only_heir for one in plan.spare] == [True]
    # In the workspace each would take the place of the one before.
    assert (plan_workspace(graph).size, plan_workspace(graph).buffer("put_2").same_as) == (
        256,
        "put",
    )
    assert WorkspacePlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("graph", "size"),
    [
        (written_rows(3, reads="x"), 256),  # which is not there any more by then
        (written_rows(3, reads="put 0"), 512),
        (written_rows(2, in_place=()), 256),
        (written_rows(1), 0),
    ],
    ids=["argument", "between", "copies", "once"],
)
def test_arguments_hold_nothing_that_is_not_written_into_them(graph, size):
    plan = validate(plan_workspace(graph, spare_outputs=["out"]))
    assert plan.size == size
    assert not any(buffer.output for buffer in plan.buffers)


def test_validate_knows_what_may_lie_in_arguments():
    plan = plan_workspace(written_rows(2), spare_outputs=["out"])
    (put,) = validate(plan).buffers
    other = replace(put, name="other", first=0, last=0, offset=0)
    for buffers in ((put, other), (other,)):
        with pytest.raises(PlanError, match="out: holds others than put, but is an input"):
            validate(replace(plan, buffers=buffers))


@pytest.mark.parametrize("looks", [False, True])
def test_writes_into_one_array_copy_it_no_more_than_single_calls(looks):
    def write(cache, i, j, k, a, b, c):
        aclnn.index_copy_(cache, 0, i, a)
        seen = [aclnn.softmax(cache[2:7], -1)] if looks else []
        aclnn.index_copy_(cache, 0, j, b)
        aclnn.index_copy_(cache, 0, k, c)
        return [*seen, *([cache[3:9] * 2] if looks else [])]

    compiled, rng = aclnn.compile(write), np.random.default_rng(0)
    for _ in range(3):
        mine = rng.standard_normal((64, 32)).astype(np.float32)
        other = mine.copy()
        rows = [rng.choice(12, 3, replace=False) for _ in range(3)]
        values = [rng.standard_normal((3, 32)).astype(np.float32) for _ in range(3)]
        found, expected = compiled(mine, *rows, *values), write(other, *rows, *values)
        np.testing.assert_array_equal(mine.view(np.uint32), other.view(np.uint32))
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint32), two.view(np.uint32))
    plan = compiled.executor(mine, *rows, *values).plan
    assert {buffer.output for buffer in plan.buffers if not buffer.parts} == {"cache afterwards"}
