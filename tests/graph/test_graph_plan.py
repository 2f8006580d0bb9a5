"""Planners never let two live buffers share a byte, and say how good they are."""

import itertools
import json
import pickle
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from aclnn.graph import (
    BudgetError,
    GraphBuilder,
    Lifetime,
    PlanError,
    Tiling,
    WorkspacePlan,
    graph_lifetimes,
    lifetimes_from_csv,
    lifetimes_to_csv,
    plan_lifetimes,
    plan_workspace,
    run_passes,
    validate,
)
from aclnn.graph.planner.strategies import naive, npu_padded
from graph_tools import F16, F32, as_built, wasteful
from hypothesis import example, given, settings
from hypothesis import strategies as st
from schemas import validated


@st.composite
def problems(draw, most=14):
    count = draw(st.integers(0, most))
    lives = []
    for i in range(count):
        lower = draw(st.integers(0, 12))
        span, nbytes = draw(st.integers(1, 6)), draw(st.integers(0, 3000))
        lives.append(Lifetime(f"b{i}", lower, lower + span, nbytes))
    return lives


@given(problems(), st.sampled_from(["default", "bucket", "naive"]))
def test_plans_are_valid(lives, strategy):
    plan = validate(plan_lifetimes(lives, strategy))
    assert [(b.name, b.nbytes, b.first, b.last + 1) for b in plan.buffers] == [
        (life.name, life.nbytes, life.lower, life.upper) for life in lives
    ]


def test_other_columns_of_lifetimes_are_ignored():
    text = "id,lower,upper,size,offset\na,0,2,100\nb,1,3,60,64\nc,2,4,8,0,extra\n"
    assert [(life.name, life.nbytes) for life in lifetimes_from_csv(text)] == [
        ("a", 100), ("b", 60), ("c", 8),
    ]  # fmt: skip


def test_arguments_that_make_no_sense_are_named():
    one = Lifetime("a", 0, 2, 100)
    for call, words in (
        (lambda: plan_lifetimes([one], "zzz"), "strategy is 'zzz', must be one of default, bucket"),
        (lambda: plan_lifetimes([one], None), "strategy is None, must be one of default, bucket"),
        (lambda: plan_lifetimes([one], ["naive"]), "strategy is ['naive'], must be one of"),
        (lambda: plan_lifetimes([one], threads=0), "threads is 0, must be at least 1"),
        (
            lambda: plan_lifetimes([("a", 0, 2, 9)]),
            "lifetimes[0] is ('a', 0, 2, 9), must be a Lifetime",
        ),
        (lambda: plan_lifetimes([one, one]), "2 are called 'a'; each has a unique name"),
        (
            lambda: Lifetime("a", 0, 2**70, 1),
            "a: [0, 1180591620717411303424) is not a range of steps",
        ),
        (
            lambda: Lifetime("a", 2, 2, 1),
            "[2, 2) is not a range of steps: 0 <= lower < upper <= 4611686",
        ),
        (lambda: Lifetime("a", 0, 1, 1.5), "a: nbytes is 1.5, must be an integer"),
        (lambda: Lifetime("a", 0, 1, True), "a: nbytes is True, must be an integer"),
        (lambda: Lifetime("a", 0.0, 1, 1), "a: lower is 0.0, must be an integer"),
        (lambda: Lifetime("a", 0, "1", 1), "a: upper is '1', must be an integer"),
        (lambda: plan_lifetimes([one], threads=1.5), "threads is 1.5, must be an integer"),
        (lambda: plan_workspace(wasteful(), threads=1.5), "threads is 1.5, must be an"),
        (lambda: graph_lifetimes(wasteful(), threads=0), "threads is 0, must be at least 1"),
        (lambda: Tiling(elements=4.5), "tiling: elements is 4.5, must be an integer"),
        (lambda: Lifetime("a", 0, 1, -1), "a: a size of -1, must be from 0 to"),
        (lambda: run_passes(GraphBuilder().build(), "zzz"), "pipeline is 'zzz', must be one of"),
        (lambda: run_passes(GraphBuilder().build(), None), "pipeline is None, must be one of"),
        (lambda: run_passes(GraphBuilder().build(), ["fuse"]), "pipeline: 'fuse' is no pass"),
        (lambda: Tiling(elements=0), "tiling: elements is 0, must be at least 1"),
        (lambda: GraphBuilder().cast(99, F32), "value 99: there are 0 values so far"),
        (lambda: lifetimes_from_csv("id,lower,upper,size\na,0,x,1\n"), "row 1: upper is 'x', must"),
        (
            lambda: lifetimes_from_csv("id,lower,upper,size\na,0,1,1_0\n"),
            "row 1: size is '1_0', must",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            call()


def test_who_asks_for_a_buffer_that_is_not_there_is_told_which_are():
    lives = [Lifetime(f"life {i}", 0, 1, 1) for i in range(12)]
    for plan, words in (
        (plan_lifetimes(lives[:2]), "no buffer is called 'x', there are life 0, life 1"),
        (plan_lifetimes(lives), "no buffer is called 'x', there are life 0, "),
        (plan_lifetimes(()), "no buffer is called 'x', there are none"),
    ):
        with pytest.raises(KeyError) as caught:
            plan.buffer("x")
        assert caught.value.args[0].startswith(words)
    with pytest.raises(KeyError, match="life 9 and 2 more"):
        plan_lifetimes(lives).buffer("x")


def test_numbers_of_numpy_are_numbers():
    life = Lifetime("a", np.int32(0), np.uint8(2), np.int64(100))
    assert life == Lifetime("a", 0, 2, 100)
    plan = plan_lifetimes([life], threads=np.int64(2), tiling=Tiling(np.int16(64)))
    assert WorkspacePlan.from_json(plan.to_json()) == plan


@given(problems(most=20))
def test_default_is_never_worse_than_bucket_nor_that_than_naive(lives):
    plan = plan_lifetimes(lives)
    assert plan.lower_bound <= plan.size <= plan.bucket_size <= plan.naive_size
    assert plan.bucket_size == plan_lifetimes(lives, "bucket").size
    assert plan.naive_size == sum(npu_padded(life.nbytes) for life in lives)


@given(problems())
def test_the_peak_and_who_shares_are_as_defined(lives):
    plan = plan_lifetimes(lives)
    steps = [step for step in range(20) if any(buffer.first == step for buffer in plan.buffers)]
    live = {step: sum(buffer.padded for buffer in plan.live_at(step)) for step in steps or [0]}
    assert plan.lower_bound == plan.peak_bytes == max(live.values())
    assert plan.peak_step == min(step for step in live if live[step] == plan.peak_bytes)
    for a in plan.buffers:
        assert a.shared_with == tuple(
            b.name for b in plan.buffers if b is not a and b.offset < a.end and a.offset < b.end
        )


@given(problems())
def test_plans_are_deterministic(lives):
    assert plan_lifetimes(lives) == plan_lifetimes(lives)


def lifetimes(rows):
    return [Lifetime(f"b{i}", *row) for i, row in enumerate(rows)]


# Only the search finds the smallest plan of the first; none of the second's is as small as
# the lower bound.
SEARCHED = lifetimes([(3, 6, 128), (2, 5, 128), (0, 3, 192), (2, 3, 64), (3, 5, 128)])
UNREACHABLE = lifetimes(
    [
        (5, 7, 192),
        (1, 4, 128),
        (0, 1, 192),
        (3, 5, 64),
        (0, 3, 192),
        (2, 5, 64),
        (4, 7, 192),
    ]
)


def test_the_search_goes_where_heuristics_do_not():
    plan = validate(plan_lifetimes(SEARCHED))
    assert plan.size == plan.lower_bound == 384
    plan = validate(plan_lifetimes(UNREACHABLE))
    assert (plan.size, plan.lower_bound, plan.proof) == (448, 384, "optimal")
    assert smallest(UNREACHABLE) == 448
    assert 0 < plan.fragmentation < 0.15


def smallest(lives):
    """By trying every order of stacking, each buffer as low as those before it allow."""
    best = None
    for order in itertools.permutations(range(len(lives))):
        placed = []
        for i in order:
            at = 0
            for low, high, j in sorted(placed):
                if lives[i].overlaps(lives[j]) and low < at + -(-lives[i].nbytes // 64) * 64:
                    at = max(at, high)
            placed.append((at, at + -(-lives[i].nbytes // 64) * 64, i))
        size = max(high for _, high, _ in placed)
        best = size if best is None else min(best, size)
    return best


@settings(max_examples=60, deadline=None)
@given(problems(most=6).filter(bool))
@example(lives=SEARCHED)
def test_what_is_called_optimal_is_optimal(lives):
    plan = plan_lifetimes(lives)
    assert plan.proof == "optimal"
    assert plan.size == smallest(lives)


class Planner:
    def __call__(self, lifetimes):
        return naive(lifetimes)


@pytest.mark.parametrize(
    ("planner", "name"),
    [(naive, "naive"), (partial(naive), "partial"), (Planner(), "Planner")],
    ids=["function", "partial", "object"],
)
def test_a_planner_of_your_own_is_whatever_can_be_called(planner, name):
    plan = validate(plan_lifetimes(SEARCHED, planner))
    assert (plan.strategy, plan.size) == (name, plan.naive_size)
    assert WorkspacePlan.from_json(plan.to_json()) == plan
    assert plan_workspace(wasteful(), planner).strategy == name


def test_large_problems_are_planned_without_a_search():
    lives = [
        Lifetime(f"b{i}", i % 37, i % 37 + 1 + i % 5, 64 * (1 + i * i % 29)) for i in range(200)
    ]
    plan = validate(plan_lifetimes(lives))
    assert plan.proof == ("optimal" if plan.size == plan.lower_bound else "feasible")
    assert plan.size <= 1.15 * plan.lower_bound


def test_bucket_follows_the_documented_policy():
    lives = [
        Lifetime("a", 0, 2, 100),  # steps 0..1            -> bucket 0
        Lifetime("b", 1, 3, 1000),  # shares step 1 with a  -> bucket 1
        Lifetime("c", 2, 5, 480),  # b's last step is 2    -> bucket 0, behind a
        Lifetime("d", 3, 4, 481),  # behind b              -> bucket 1
        Lifetime("e", 4, 5, 1),  # both fit? c lives; d is over: the highest-numbered, 1
        Lifetime("f", 5, 6, 1),  # both are free: the highest-numbered one again
    ]
    plan = plan_lifetimes(lives, "bucket")
    assert [buffer.offset for buffer in plan.buffers] == [0, 512, 0, 512, 512, 512]
    assert [buffer.padded for buffer in plan.buffers] == [512, 1536, 512, 1024, 512, 512]
    assert plan.size == 512 + 1536
    assert plan.buffer("b").shared_with == ("d", "e", "f")


@pytest.mark.parametrize(("nbytes", "padded"), [(0, 512), (480, 512), (481, 1024), (1024, 1536)])
def test_the_npus_padding(nbytes, padded):
    assert npu_padded(nbytes) == padded


def test_nothing_needs_nothing():
    plan = validate(plan_lifetimes([]))
    assert (plan.size, plan.lower_bound, plan.bucket_size, plan.proof) == (0, 0, 0, "optimal")
    assert plan.check(0) is plan
    assert plan.to_memory_snapshot()["segments"] == []
    assert "nothing needs space" in plan.to_text()
    assert "nothing needs space" in plan.to_svg()
    assert plan.fragmentation == 0
    assert plan.must_shrink == ()


@given(problems(most=8).filter(bool), st.data())
def test_validate_notices_damage(lives, data):
    plan = plan_lifetimes([replace(life, nbytes=life.nbytes + 1) for life in lives])
    i = data.draw(st.integers(0, len(lives) - 1))

    def damaged(**changes):
        buffers = list(plan.buffers)
        buffers[i] = replace(buffers[i], **changes)
        return replace(plan, buffers=tuple(buffers))

    bad = [damaged(offset=1), damaged(offset=plan.size), damaged(padded=0), damaged(offset=-64)]
    others = [b for b in plan.buffers if b.name != plan.buffers[i].name]
    together = [
        b for b in others if b.first <= plan.buffers[i].last and plan.buffers[i].first <= b.last
    ]
    bad += [damaged(offset=b.offset) for b in together]
    for wrong in bad:
        with pytest.raises(PlanError):
            validate(wrong)


def test_the_budget_error_names_what_is_live_at_the_peak():
    plan = plan_lifetimes(
        [Lifetime("a", 0, 2, 100), Lifetime("b", 1, 3, 60), Lifetime("c", 5, 6, 8)]
    )
    assert plan.check(192) is plan
    with pytest.raises(BudgetError, match=r"needs 192 .* 1 over .* step 1, .* a \(128 .* b \(64"):
        plan.check(191)
    assert [buffer.name for buffer in plan.must_shrink] == ["a", "b"]


def test_budgets_and_plans_that_are_none():
    plan = plan_lifetimes([Lifetime("a", 0, 2, 100)])
    for budget in (None, "5", 1.5):
        with pytest.raises(ValueError, match=r"^budget is .*, must be an integer$"):
            plan.check(budget)
    with pytest.raises(ValueError, match=r"^other is NoneType, must be a WorkspacePlan$"):
        plan.diff(None)


@given(problems())
def test_documents_read_back(lives):
    plan = plan_lifetimes(lives, steps=[f"s{i}" for i in range(20)])
    text = plan.to_json()
    assert WorkspacePlan.from_json(text) == plan
    validated(text, "plan")
    assert lifetimes_from_csv(lifetimes_to_csv(lives)) == tuple(lives)


def test_csv_without_its_columns_is_refused():
    with pytest.raises(ValueError, match="columns missing: size"):
        lifetimes_from_csv("id,lower,upper\na,0,1\n")


@given(problems(most=6), problems(most=6))
def test_differences_are_found(one, two):
    a, b = plan_lifetimes(one), plan_lifetimes(two)
    assert not a.diff(a)
    diff = a.diff(b)
    assert isinstance(diff, str)
    assert diff.to_text() == str(diff) == f"{diff}"
    assert "lower_bound" in diff
    again = pickle.loads(pickle.dumps(diff))
    assert again == diff
    assert again.splitlines() == diff.splitlines()
    assert bool(diff) == (a.buffers != b.buffers)
    assert diff.size_change == b.size - a.size
    assert set(diff.added) == {x.name for x in b.buffers} - {x.name for x in a.buffers}
    for name in diff.moved:
        assert a.buffer(name).offset != b.buffer(name).offset
    assert all(name in diff.to_text() for name in diff.added + diff.moved)


def test_differences_are_named_in_english():
    before = plan_lifetimes([Lifetime("a", 0, 1, 64), Lifetime("b", 0, 1, 64)])
    after = plan_lifetimes([Lifetime("a", 0, 2, 64), Lifetime("b", 0, 1, 640)])
    diff = before.diff(after)
    assert (diff.lifetime_changed, diff.resized) == (("a",), ("b",))
    assert "lifetime_changed" in diff.to_text()
    changes = {one["name"]: one["changes"] for one in json.loads(diff.to_json())["buffers"]}
    assert changes["a"][-1] == "lifetime_changed"


@given(problems())
def test_the_snapshot_replays_to_the_plan(lives):
    plan = plan_lifetimes(lives)
    live, peak = {}, 0
    snapshot = pickle.loads(pickle.dumps(plan.to_memory_snapshot()))
    (events,) = snapshot["device_traces"]
    for event in events:
        place = (
            event["addr"],
            event["size"],
            event["frames"][0]["name"] if event["frames"] else "",
        )
        if event["action"] == "segment_alloc":
            base = event["addr"]
            assert event["size"] == plan.size
        elif event["action"] == "alloc":
            assert place not in live
            live[place] = event["addr"] - base
        elif event["action"] == "free_completed":
            assert plan.buffer(place[2]).offset == live.pop(place)
        peak = max(peak, sum(size for _, size, _ in live))
    assert not live
    assert peak == plan.lower_bound


@given(problems())
def test_the_picture_shows_every_buffer(lives):
    plan = plan_lifetimes(lives)
    picture = ElementTree.fromstring(plan.to_svg())
    assert "<script" not in plan.to_svg()
    titles = [t.text or "" for t in picture.iter("{http://www.w3.org/2000/svg}title")]
    if plan.size:
        assert all(any(t.startswith(f"{b.name}: ") for t in titles) for b in plan.buffers)


# --- Plans of graphs --------------------------------------------------------------------------


def test_lifetimes_of_a_materialized_chain():
    plan = plan_workspace(run_passes(wasteful(), "materialized").graph)
    spans = {b.name: (b.first, b.last, b.nbytes) for b in plan.buffers}
    assert spans == {
        "x_contiguous": (0, 1, 128),
        "x_cast": (1, 2, 256),
        "x_broadcast": (2, 3, 16384),
        "relu": (3, 4, 16384),
    }
    assert plan.buffer("x_cast").producer == "x_cast"
    assert plan.buffer("x_cast").consumers == ("x_broadcast",)
    # relu takes the place of what it reads.
    assert plan.buffer("relu").offset == plan.buffer("x_broadcast").offset
    assert plan.size == plan.lower_bound == 256 + 16384
    assert plan.steps[plan.peak_step] == "x_broadcast"


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_fused_chain_needs_tiles_only(threads):
    b = GraphBuilder()
    x, out = b.input("x", (64, 64), F32), b.output("out", (64, 64), F32)
    b.view_copy(b.compute("f", [b.compute("relu", [x], (64, 64), F32)], (64, 64), F32), out)
    plan = validate(plan_workspace(run_passes(b.build()).graph, threads=threads))
    (buffer,) = plan.buffers
    assert [part.name for part in buffer.parts] == ["relu"]
    assert buffer.nbytes == threads * plan.scratch_per_thread == plan.size
    assert plan.scratch_per_thread == 4096 * 4


def test_tiles_are_for_the_threads_that_a_loop_uses():
    b = GraphBuilder()
    x, out = b.input("x", (64, 64), F32), b.output("out", (64, 64), F32)
    b.view_copy(b.compute("f", [b.compute("relu", [x], (64, 64), F32)], (64, 64), F32), out)
    graph = run_passes(b.build()).graph
    asked = []

    def threads_of(step, elements, tiles):
        asked.append(([node.name for node in step], elements, tiles))
        return 2

    plan = validate(plan_workspace(graph, threads=5, threads_of=threads_of))
    assert asked == [(["relu", "f"], 4096, 1)]
    (buffer,) = plan.buffers
    assert buffer.nbytes == 2 * plan.scratch_per_thread == plan.size
    assert buffer.contents.startswith("2 x ")


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@given(graph=as_built(in_place=True), threads=st.integers(1, 3))
def test_plans_of_graphs_are_valid(pipeline, graph, threads):
    graph = run_passes(graph, pipeline).graph
    plan = validate(plan_workspace(graph, threads=threads))
    needs = {v.name for v in graph.values if v.storage == "workspace" and not v.is_view}
    tiles = {v.name for v in graph.values if v.storage == "tile"}
    assert {b.name for b in plan.buffers if not b.parts} == needs
    assert {part.name for b in plan.buffers for part in b.parts} == tiles
    assert len(plan.steps) == len(graph.steps())


@pytest.mark.parametrize("pipeline", ["fused", "materialized"])
@given(graph=as_built(in_place=True))
def test_lifetimes_last_until_the_last_reader(pipeline, graph):
    graph = run_passes(graph, pipeline).graph
    for life in graph_lifetimes(graph):
        if life.parts:
            continue
        id = graph.named(life.name).id
        reads = [
            (number, node.name)
            for number, step in enumerate(graph.steps())
            for node in step
            if id in {graph.root(read).id for read in node.inputs}
        ]
        assert life.consumers == tuple(name for _, name in reads)
        assert life.last == max([life.first, *(number for number, _ in reads)])


def test_a_graph_of_opaque_nodes_can_be_planned_and_drawn():
    b = GraphBuilder()
    x = b.input("tokens", (128, 512), F16)
    w = b.constant("weights", (512, 2048), F16)
    h = b.compute("matmul", [x, w], (128, 2048), F16, domain="opaque")
    out = b.output("out", (128,), F16)
    b.view_copy(b.compute("sum", [h], (128,), F16, domain="opaque"), out)
    graph = run_passes(b.build()).graph
    plan = validate(plan_workspace(graph))
    assert [(buffer.name, buffer.nbytes) for buffer in plan.buffers] == [("matmul", 128 * 2048 * 2)]
    for text in (graph.to_text(), graph.to_dot(), graph.to_svg()):
        assert "weights" in text
