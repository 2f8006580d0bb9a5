"""Profiles: what they record, and how they show it."""

import copy
import itertools
import json
import os
import pickle
import re
import statistics
import threading
import time
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from aclnn.graph import graph_lifetimes
from aclnn.graph.lower.schedule import Op, Operand, Schedule, Step
from aclnn.graph.runtime.abi import MAX_THREADS
from graph_tools import assert_damage_is_refused
from schemas import VALIDATORS, validated
from setups import small_executor

import aclnn
from aclnn.reports import profiling
from aclnn.reports.profile_document import PROFILE_SCHEMA


def test_profiles_say_what_ran():
    x = np.zeros(4, np.float32)
    assert repr(aclnn.Profile()) == "<Profile: 0 runs of nothing>"
    assert repr(aclnn.executor("gelu", x).profile(1, 0)) == "<Profile: 1 run of gelu>"
    with aclnn.profile() as seen:
        aclnn.relu(aclnn.gelu(aclnn.gelu(x)))
    assert repr(seen) == "<Profile: 3 runs of gelu, relu>"


def test_profiles_record_every_thread_in_a_block():
    x = np.ones(1000, np.float32)
    with aclnn.profile() as seen:
        aclnn.gelu(x)
        other = threading.Thread(target=lambda: aclnn.leaky_relu(x))
        other.start()
        other.join()
    aclnn.elu(x)
    assert [run.name for run in seen.runs] == ["gelu", "leaky_relu"]
    assert len({run.caller for run in seen.runs}) == 2
    (first, second) = seen.steps
    assert (first.bytes_read, first.bytes_written) == (4000, 4000)
    assert second.elements == 1000
    assert "leaky_relu" in seen.to_text()
    assert json.loads(seen.to_json())["runs"] == 2
    trace = json.loads(seen.to_chrome_trace())["traceEvents"]
    slices = [event for event in trace if event["ph"] == "X" and event["cat"] != "run"]
    assert [event["cat"] for event in slices] == ["gelu", "leaky_relu"]
    assert len({event["tid"] for event in slices}) == 2
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)


def recorded():
    """A profile with everything in it: two threads, several steps, two callers, an empty call."""
    aclnn.set_num_threads(2)
    g = np.ones((256, 1, 512), np.float16)
    ex = aclnn.executor("gelu_backward", g, np.ones((512, 4), np.float32).T, materialize=True)
    with aclnn.profile() as seen:
        ex.run()
        other = threading.Thread(target=lambda: [ex.run(), aclnn.gelu(np.ones(7, np.float16))])
        other.start()
        other.join()
        aclnn.gelu(np.ones(0, np.float32))
    return ex, seen


@pytest.mark.usefixtures("threads_as_before")
def test_profiles_fit_their_schema_and_read_back():
    _, seen = recorded()
    jsonschema.Draft202012Validator.check_schema(PROFILE_SCHEMA)
    document = validated(seen.to_json(), "profile")
    again = aclnn.Profile.from_json(seen.to_json())
    assert again == seen
    assert again.to_text() == seen.to_text()
    assert again.to_chrome_trace() == seen.to_chrome_trace()
    assert again.timeline() == seen.timeline()
    again.runs.pop()
    assert again != seen
    assert sum(total["share"] for total in document["totals"]) == pytest.approx(1)
    for step, data in zip(seen.steps, document["steps"], strict=True):
        moved = step.bytes_read + step.bytes_written
        assert data["median_ns"] == statistics.median(step.times)
        assert data["gigabytes_per_second"] == pytest.approx(moved / step.median)


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_profiles_and_schedules_can_be_copied(again):
    """Such as to the process that asked for them."""
    ex = small_executor(materialize=True)
    profile = ex.profile(repeat=2)
    assert again(profile) == profile
    assert again(ex.schedule) == ex.schedule
    assert again(ex.schedule).kernels == ()


def test_profiles_with_a_field_that_does_not_fit_are_refused():
    document = json.loads(small_executor(materialize=True).profile(repeat=1).to_json())
    for derived in ("steps", "totals", "runs", "total_ns"):
        del document[derived]
    assert_damage_is_refused(aclnn.Profile.from_json, document)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("executor", 1, "executor is 1, but there are 1"), ("executor", -1, "executor is -1, must"),
     ("events", [[0, 0, 1]], "events[0] has 3 items, must have 4"),
     ("events", [[0, 0, 1, 2], [99, 0, 1, 2]], "events[1] is of step 99, but there are"),
     ("events", [[-1, 0, 1, 2]], "events[0][0] is -1, must be at least 0")],
)  # fmt: skip
def test_profiles_of_runs_that_cannot_have_been_are_refused(field, value, words):
    document = json.loads(small_executor(materialize=True).profile(repeat=1).to_json())
    document["recorded"][0][field] = value
    with pytest.raises(ValueError, match=re.escape(f"recorded[0].{words}")):
        aclnn.Profile.from_json(json.dumps(document))


def test_profiles_without_a_schedule_are_refused():
    document = json.loads(small_executor().profile(repeat=1).to_json())
    document["executors"][0]["schedule"] = None
    document["recorded"] = []
    with pytest.raises(ValueError, match=re.escape("executors[0].schedule: expected a document")):
        aclnn.Profile.from_json(json.dumps(document))
    assert not VALIDATORS["profile"].is_valid(document)


@pytest.mark.usefixtures("threads_as_before")
def test_traces_are_what_perfetto_reads():
    ex, seen = recorded()
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    assert {"M", "X", "C"} <= {event["ph"] for event in events} <= {"M", "X", "C", "s", "f"}
    assert {event["pid"] for event in events} == {os.getpid()}
    slices = [event for event in events if event["ph"] == "X" and event["cat"] != "run"]
    assert len(slices) == sum(len(run.events) for run in seen.runs)
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {event["tid"] for event in slices} <= set(named)
    assert len(set(named.values())) == len(named)
    for event in slices:
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert {"bytes read", "bytes written", "kernels", "shape"} <= set(event["args"])
    for track in named:  # one after the other on each thread: nothing overlaps
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == track)
        assert all(end <= later + 1e-9 for (_, end), (later, _) in itertools.pairwise(own))
    # A quick thread may do all of a step, so that the other has no part in it.
    begins = {}
    for event in (e for e in slices if e["tid"] <= MAX_THREADS and e["cat"] == "gelu_backward"):
        begins[event["name"]] = min(event["ts"], begins.get(event["name"], event["ts"]))
    assert sorted(begins, key=begins.get) == [step.name for step in ex.schedule.steps]


def test_every_thread_of_every_caller_has_a_track_of_its_own():
    ex, seen = small_executor(materialize=True), aclnn.Profile()
    for caller, thread in ((7, 1000), (8, 0)):
        seen.runs.append(profiling.Run(ex.planned, 0, 9, ((0, thread, 0, 9),), caller))
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X" and event["cat"] != "run"]
    assert len({event["tid"] for event in slices}) == 2
    named = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert named == ["caller 0, thread 0", "caller 0, thread 1000", "caller 1, thread 0"]


def test_runs_in_traces_hold_their_steps_and_lead_to_their_threads():
    """As Perfetto nests them: on one track a slice lies in another, or they are apart."""
    ex, seen = small_executor(materialize=True), aclnn.Profile()
    steps = [(0, 0, 12, 20), (0, 1, 13, 19), (1, 1, 22, 28), (2, 0, 30, 38), (2, 2, 31, 39)]
    for shift in (0, 100):
        moved = [(step, thread, b + shift, e + shift) for step, thread, b, e in steps]
        seen.runs.append(profiling.Run(ex.planned, 10 + shift, 40 + shift, tuple(moved), 7))
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in slices if event["cat"] == "run"] == [ex.operator.name] * 2
    for one, other in itertools.combinations(slices, 2):
        if one["tid"] == other["tid"]:
            (b, e), (c, f) = ((s["ts"], s["ts"] + s["dur"]) for s in (one, other))
            assert e <= c or f <= b or b <= c <= f <= e + 1e-9 or c <= b <= e <= f + 1e-9
    begins, ends = (
        {event["id"]: event for event in events if event["ph"] == phase} for phase in "sf"
    )
    assert len(begins) == len(ends) == 6  # of both runs, to the other threads
    assert begins.keys() == ends.keys()
    for id, begin in begins.items():
        end = ends[id]
        assert begin["name"] == end["name"]
        assert begin["ts"] <= end["ts"]
        assert begin["tid"] != end["tid"]
        assert any(s["tid"] == end["tid"] and s["ts"] == end["ts"] for s in slices)
        assert any(
            s["tid"] == begin["tid"] and s["ts"] <= begin["ts"] <= s["ts"] + s["dur"]
            for s in slices
        )


def test_steps_in_traces_have_their_source_lines():
    @aclnn.compile
    def gated(x, y):
        return aclnn.silu(x) * y

    x = np.ones((4, 8), np.float32)
    seen = gated.executor(x, x).profile(repeat=1)
    steps = [
        event["args"] for event in json.loads(seen.to_chrome_trace())["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "run"
    ]  # fmt: skip
    line = gated.__wrapped__.__code__.co_firstlineno + 2
    assert steps
    for facts in steps:
        assert facts["source"].startswith(f"test_profiling.py:{line}: return aclnn.silu(x) * y")
    again = json.loads(aclnn.Profile.from_json(seen.to_json()).to_chrome_trace())["traceEvents"]
    assert not any("source" in event.get("args", {}) for event in again)  # graphs stay behind


@pytest.mark.usefixtures("threads_as_before")
def test_counters_in_traces_are_the_plans_live_bytes():
    ex, _ = recorded()
    seen = ex.profile(repeat=1)
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    counters = [event for event in events if event["ph"] == "C"]
    lives = graph_lifetimes(ex.graph, threads=ex.plan.threads, tiling=ex.plan.tiling)
    padded = {buffer.name: buffer.padded for buffer in ex.plan.buffers}
    expected = [
        sum(padded[life.name] for life in lives if life.first <= step <= life.last)
        for step in range(len(ex.schedule.steps))
    ]
    assert [event["args"]["bytes"] for event in counters] == [*expected, 0]
    assert [e["ts"] for e in counters] == sorted(e["ts"] for e in counters)
    begins = {}
    for event in (e for e in events if e["ph"] == "X" and e["cat"] != "run"):
        begins[event["args"]["step"]] = min(event["ts"], begins.get(event["args"]["step"], 1e9))
    assert [event["ts"] for event in counters[:-1]] == [begins[step] for step in sorted(begins)]


def test_counters_add_up_over_runs_at_the_same_time():
    ex = small_executor(materialize=True)
    seen = aclnn.Profile()
    steps = len(ex.schedule.steps)
    for shift in (0, 5):
        events = [(step, 0, 10 * step + shift, 10 * step + shift + 9) for step in range(steps)]
        seen.record(ex.planned, shift, 10 * steps + shift, events)
    counters = [e for e in json.loads(seen.to_chrome_trace())["traceEvents"] if e["ph"] == "C"]
    live = [sum(b.padded for b in ex.plan.live_at(step)) for step in range(steps)]
    assert counters[0]["args"]["bytes"] == live[0]
    assert counters[1]["args"]["bytes"] == 2 * live[0]
    assert counters[2]["args"]["bytes"] == live[1] + live[0]
    assert counters[-1]["args"]["bytes"] == 0


def test_timelines_draw_steps_where_they_ran():
    ex = small_executor(materialize=True)
    seen = aclnn.Profile()
    seen.record(ex.planned, 100, 200, [(0, 0, 100, 150), (1, 0, 160, 200), (0, 1, 120, 150)])
    assert seen.timeline(width=10).splitlines() == [
        "thread 0  00000.1111",
        "thread 1  ..000.....",
        "gelu_backward, 0.10 µs; digits are steps",
    ]


def test_a_profile_of_nothing_says_so_in_every_view():
    nothing = aclnn.Profile()
    assert nothing.timeline() == nothing.timeline(run=3) == nothing.to_text() == "nothing ran"
    assert json.loads(nothing.to_json())["runs"] == 0
    assert [e["ph"] for e in json.loads(nothing.to_chrome_trace())["traceEvents"]] == ["M"]


def test_a_profile_of_one_executor():
    g = np.ones((64, 64), np.float16).T
    ex = aclnn.executor("gelu_backward", g, np.ones((64, 64), np.float32), materialize=True)
    profile = ex.profile(repeat=5)
    assert len(profile) == 5
    assert [len(step.times) for step in profile.steps] == [5] * len(ex.schedule.steps)
    counters = [e for e in json.loads(profile.to_chrome_trace())["traceEvents"] if e["ph"] == "C"]
    assert max(e["args"]["bytes"] for e in counters) == ex.plan.peak_bytes


@pytest.mark.parametrize(
    "runs", [{"repeat": 0}, {"repeat": -1}, {"repeat": 1.5}, {"warmup": -1}, {"warmup": "3"}]
)
def test_numbers_of_runs_that_make_no_sense(runs):
    ex = small_executor()
    with pytest.raises(aclnn.AclnnError, match=f"{next(iter(runs))} is .*, must be an int from"):
        ex.profile(**runs)
    ex.run()


def made_up(plan, runs):
    """A profile of runs that are given by the times of their steps and the time between two steps."""
    seen = aclnn.Profile()
    for times, between in runs:
        at, events = 1000, []
        for step, took in enumerate(times):
            events.append((step, 0, at, at + took))
            at += took + between
        seen.record(plan, 1000, at, events)
    return seen


def test_shares_are_of_medians_so_that_outliers_do_not_show():
    plan = small_executor(materialize=True).planned
    steps = len(plan.schedule.steps)
    usual = ([100] * (steps - 1) + [300], 10)
    held_up = ([100000] + [100] * (steps - 2) + [300], 10)
    calm, shaken = made_up(plan, [usual] * 5), made_up(plan, [usual, held_up, usual, usual, usual])
    assert [step.share for step in calm.steps] == [step.share for step in shaken.steps]
    (one,) = shaken.executors
    assert one.median == 100 * (steps - 1) + 300 + 10 * steps
    assert one.between_median == 10 * steps
    assert one.steps[-1].share == pytest.approx(300 / one.median)
    assert one.between_share == pytest.approx(10 * steps / one.median)
    assert one.share == pytest.approx(1)


def test_tables_say_shapes_dtypes_and_what_lies_between_steps():
    g = np.ones((64, 32), np.float16).T
    ex = aclnn.executor("gelu_backward", g, np.ones((32, 64), np.float32), materialize=True)
    text = ex.profile(repeat=3).to_text()
    assert max(map(len, text.splitlines())) <= 100
    *_, last, between, whole = text.splitlines()
    assert last.split()[:3] == ["gelu_backward", "(1,2048)", "float32"]
    assert between.startswith("between steps ")
    assert whole.startswith("whole run")
    assert whole.endswith(" 100%")


def test_a_loop_of_several_operators_divides_its_time_by_estimate():
    """By the bytes of each: a cast of 2 to 4 bytes, and a sum that reads 4 and 4 and writes 4."""
    values = (("h", 0, "float16", 2), ("wide", -2, "float32", 4), ("x", 1, "float32", 4),
              ("out", 2, "float32", 4))  # fmt: skip
    operands = tuple(
        Operand(name, base, 0, (0, size), dtype, 8 * size) for name, base, dtype, size in values
    )
    ops = (Op("to_wide", "Cast", "cast", (0, 1), 0), Op("sum", "Compute", "add", (1, 2, 3), 0))
    step = Step("to_wide+sum", (1, 8), 1, 8, 1, 1 << 16, operands, ops)
    plan = small_executor().planned
    schedule = Schedule((step,), ("h", "x", "out"), 0, 0, 32, 1)
    alike = SimpleNamespace(operator=plan.operator, workspace=plan.workspace, schedule=schedule)
    (seen,) = made_up(alike, [([900], 0)]).steps
    assert [(op.node, op.estimated_ns) for op in seen.ops] == [("to_wide", 300), ("sum", 600)]
    assert seen.dtypes == ("float16", "float32", "float32")
    text = made_up(alike, [([900], 0)]).to_text()
    assert "≈ to_wide" in text
    assert validated(made_up(alike, [([900], 0)]).to_json(), "profile")["steps"][0]["ops"]


def on_a_stream():
    """A profile of two runs on a stream that is busy until both wait in its queue."""
    x, out = np.ones((2, 1000), np.float32)
    tensors = [
        aclnn.aclCreateTensor(a.shape, aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, a.shape, a)
        for a in (x, out)
    ]
    _, executor, _ = aclnn.aclnnGeluGetWorkspaceSize(*tensors)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    stream, _ = aclnn.aclrtCreateStream()
    opened = threading.Event()
    with aclnn.profile() as seen:
        stream.submit(lambda: opened.wait(10))
        for _ in range(2):
            assert aclnn.aclnnGelu(None, 0, executor, stream) == 0
        queued = time.monotonic_ns()
        time.sleep(0.01)
        opened.set()
        assert aclnn.aclrtDestroyStream(stream) == 0
        aclnn.gelu(x)
    return seen, queued


def test_the_time_in_a_streams_queue_is_shown():
    seen, queued = on_a_stream()
    first, second, at_once = seen.runs
    assert at_once.submitted is None
    for run in (first, second):
        assert run.submitted <= queued
        assert run.begin - run.submitted >= 10_000_000
    assert first.submitted <= second.submitted
    waits = [wait for one in seen.executors for wait in one.queued]
    assert waits == [run.begin - run.submitted for run in (first, second)]
    assert "in the stream's queue" in seen.to_text()
    assert "in the stream's queue" not in small_executor().profile(repeat=1).to_text()
    document = validated(seen.to_json(), "profile")
    assert [wait for total in document["totals"] for wait in total["queued_ns"]] == waits
    assert aclnn.Profile.from_json(seen.to_json()) == seen
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    assert min(event["ts"] for event in events if "ts" in event) == 0
    pairs = {(e["id"], e["ph"]): e["ts"] for e in events if e["ph"] in "be"}
    for place, wait in enumerate(waits):
        assert pairs[place, "e"] - pairs[place, "b"] == pytest.approx(wait / 1000)


def test_plans_of_one_description_are_one_executor():
    x = np.ones(100, np.float32)
    ex, again = aclnn.executor("gelu", x), None
    aclnn.clear_cache()
    again = aclnn.executor("gelu", x)
    assert ex.planned is not again.planned
    with aclnn.profile() as seen:
        ex.run(), again.run()
    (step,) = seen.steps
    assert len(step.times) == 2
    document = json.loads(seen.to_json())
    assert len(document["executors"]) == 1
    assert aclnn.Profile.from_json(seen.to_json()) == seen


def test_profiles_lie_over_graphs():
    x = np.ones((64, 256), np.float32)

    @aclnn.compile
    def both(x, w):
        return aclnn.softmax(aclnn.gelu(x) * x, -1) @ w

    seen = both.executor(x, np.ones((256, 256), np.float32)).profile(repeat=5)
    picture = seen.to_svg()
    (one,) = seen.executors
    heat = profiling.times(one)
    assert sorted(heat.amounts) == ["gelu", "matmul", "mul", "softmax"]
    assert heat.total == pytest.approx(sum(step.median for step in one.steps))
    for name in heat.amounts:
        assert f">time {heat.label([name])}<" in picture
    hottest = max(heat.amounts, key=heat.amounts.get)
    assert re.search(f'<g data-names="{hottest} ?[^"]*" class="hot time4">', picture)
    for view in ("to_svg", "lines"):
        with pytest.raises(aclnn.AclnnError, match="executor is 1, but 1 executors ran"):
            getattr(seen, view)(1)
        with pytest.raises(aclnn.AclnnError, match="has no graph"):
            getattr(aclnn.Profile.from_json(seen.to_json()), view)()


def test_profiles_tell_what_lines_took():
    x = np.ones((64, 256), np.float32)

    def gate(x):
        return aclnn.silu(x) * x

    @aclnn.compile
    def both(x):
        y = gate(x)
        return aclnn.softmax(y, -1)

    head, outer, inner, last = both.executor(x).profile(repeat=5).lines().splitlines()
    assert head.split() == ["line", "computes", "nodes", "bytes", "≈", "µs", "share"]
    assert outer.split("  ")[0].endswith(": y = gate(x)")
    assert inner.startswith("  test_profiling.py:")
    assert inner.split()[-5:] == outer.split()[-5:]
    assert "silu, mul" in inner
    assert "softmax" in last
    shares = [int(line.rpartition(" ")[2].rstrip("%")) for line in (outer, last)]
    assert sum(shares) in (99, 100, 101)
    single = aclnn.executor("relu", x).profile(repeat=2)
    assert single.lines() == "no node knows a line"


def test_all_results_of_a_step_have_their_dtypes():
    x, w = np.ones((4, 8), np.float16), np.ones(8, np.float16)
    (step,) = aclnn.executor("native_layer_norm", x, (8,), w, w).profile(repeat=2).steps
    assert (len(step.dtypes), step.written) == (6, 3)
    assert step.dtypes[3] == "float16"


TABLE = np.zeros((50000, 256), np.float32)
ROW = np.array([3])


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("embedding", (TABLE, ROW)),
        ("gather_v2", (TABLE, 0, ROW)),
        ("index_select", (TABLE, 0, ROW)),
        ("index", (TABLE, [ROW])),
        ("gather_nd", (TABLE, ROW[None])),
    ],
)
def test_steps_that_take_rows_count_the_rows(name, operands):
    executor = aclnn.executor(name, *operands)
    graph, (step,) = executor.graph, executor.schedule.steps
    (node,) = graph.nodes
    row, places = 256 * 4, 8
    assert graph.bytes_read(node) == step.bytes_read == row + places
    assert graph.bytes_read_of(node, node.inputs[0]) == step.operands[0].nbytes == row
    (timed,) = executor.profile(1, 0).steps
    assert (timed.bytes_read, timed.bytes_written) == (row + places, row)
    told = json.loads(executor.schedule.to_json())["steps"][0]
    assert told["bytes_read"] == row + places
    heat = json.loads(graph.to_model_explorer_data()["bytes"])["graph"]["results"]
    assert heat[node.name]["value"] == 2 * row + places


def test_more_places_than_rows_count_the_table_once():
    table = np.zeros((2, 4), np.float32)
    (step,) = aclnn.executor("embedding", table, np.zeros(100, np.int64)).schedule.steps
    assert step.bytes_read == table.nbytes + 800


def test_pages_count_as_many_as_the_table_names():
    query, pages = np.zeros((1, 1, 8), np.float16), np.zeros((1000, 16, 8), np.float16)
    table, lengths = np.int32([[3, 4]]), [20]
    executor = aclnn.executor(
        "fused_infer_attention_score", query, pages, pages.copy(), input_layout="BSH",
        block_table=table, block_size=16, actual_seq_lengths_kv=lengths,
    )  # fmt: skip
    (step,) = executor.schedule.steps
    two = 2 * 16 * 8 * 2
    assert step.bytes_read == query.nbytes + 2 * two + table.nbytes + 8


def test_gathered_pages_count_as_many_rows_as_the_result():
    pages, rows = np.zeros((100, 16, 2, 8), np.float16), np.zeros((3, 2, 8), np.float16)
    executor = aclnn.executor(
        "gather_pa_kv_cache", pages, pages.copy(), np.int32([[3, 4]]), np.int32([3]), rows, rows.copy()
    )  # fmt: skip
    gathers = [s for s in executor.schedule.steps if s.ops[0].node.startswith("gather_pages")]
    assert len(gathers) == 2
    for step in gathers:
        (cache,) = [o for o in step.operands if "cache" in o.name]
        assert cache.nbytes == rows.nbytes
