"""Plans of several memories: valid in each, refused where they cannot hold, and their cost."""

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict

import pytest
from aclnn.graph import (
    CapacityError,
    Gap,
    Lifetime,
    Memory,
    check_capacity,
    fit_lifetimes,
    plan_lifetimes,
    plan_memories,
    validate,
)
from hypothesis import given, settings
from hypothesis import strategies as st

HBM = Memory("hbm", 1 << 30, 1e11, 512)


@st.composite
def problems(draw):
    lives = []
    for i in range(draw(st.integers(1, 9))):
        lower = draw(st.integers(0, 8))
        upper = lower + draw(st.integers(1, 8))
        uses = {lower, upper - 1, *draw(st.lists(st.integers(lower, upper - 1), max_size=3))}
        nbytes = draw(st.integers(0, 4000))
        lives.append(Lifetime(f"b{i}", lower, upper, nbytes, uses=tuple(sorted(uses))))
    return lives


def cost(lives, device):
    """Seconds by definition: each use at the bandwidth of the fastest memory that has the buffer then."""
    bandwidth = {memory.name: memory.bandwidth for memory in device.memories}
    used = sum(
        life.nbytes / bandwidth[device.memory_of(life.name, step)]
        for life in lives
        for step in life.uses
    )
    return used + sum(move.seconds for move in device.moves)


@settings(deadline=None, max_examples=80)
@given(problems(), st.integers(64, 12000), st.integers(64, 40000))
def test_every_use_finds_its_buffer_and_costs_what_is_said(lives, small, middle):
    levels = [HBM, Memory("ub", small, 1e12, 32), Memory("l2", middle, 4e11, 64)]
    device = plan_memories(lives, levels)
    assert [memory.name for memory in device.memories] == ["ub", "l2", "hbm"]
    for memory, plan in zip(device.memories, device.plans, strict=True):
        validate(plan)
        assert plan.size <= memory.size
        assert all(buffer.offset % memory.alignment == 0 for buffer in plan.buffers)
    assert cost(lives, device) == pytest.approx(device.seconds)
    assert device.seconds <= device.slow_seconds * (1 + 1e-9)
    slow = sum(len(life.uses) * life.nbytes / HBM.bandwidth for life in lives)
    assert device.slow_seconds == pytest.approx(slow)
    homes = {buffer.name for buffer in device.plans[-1].buffers}
    for move in device.moves:  # what is copied has a place in both
        assert move.name in homes
        assert "hbm" in (move.source, move.target)


@settings(deadline=None, max_examples=60)
@given(problems())
def test_a_large_fast_memory_holds_everything(lives):
    device = plan_memories(lives, [HBM, Memory("l2", 1 << 20, 1e12)])
    assert device.plans[1].size == 0
    assert not device.moves
    assert device.seconds == pytest.approx(device.slow_seconds / 10)


def test_stretches_between_uses_are_in_the_fast_memory():
    """A residual that is used at both ends makes room for what lies between."""
    lives = [
        Lifetime("residual", 0, 12, 4096, uses=(0, 1, 2, 9, 10, 11)),
        *(Lifetime(f"h{i}", i, i + 2, 4096) for i in range(3, 8)),
    ]
    device = plan_memories(lives, [HBM, Memory("ub", 8192, 1e13)])
    fast = {buffer.name for buffer in device.plans[0].buffers}
    assert {"residual#1", "residual#2", "h3", "h7"} <= fast
    assert [(move.name, move.step, move.source) for move in device.moves] == [
        ("residual", 3, "ub"),
        ("residual", 9, "hbm"),
    ]


def test_what_is_computed_in_place_is_not_copied():
    """Its second writer would leave the copy behind."""
    lives = [
        Lifetime("a", 0, 6, 4096, uses=(0, 5)),
        Lifetime("b", 5, 20, 4096, same_as="a", uses=(5, 19)),
        *(Lifetime(f"h{i}", i, i + 1, 8192) for i in range(7, 18)),
    ]
    device = plan_memories(lives, [HBM, Memory("ub", 8192, 1e13)])
    assert not device.moves


@settings(deadline=None, max_examples=60)
@given(problems(), st.integers(1, 30000))
def test_a_capacity_holds_or_is_refused_with_the_step(lives, capacity):
    live = defaultdict(int)
    for life in lives:
        for step in range(life.lower, life.upper):
            live[step] += -(-life.nbytes // 64) * 64
    most = max(live.values())
    try:
        plan = fit_lifetimes(lives, capacity)
    except CapacityError as error:
        assert plan_lifetimes(lives, "exact").size > capacity
        step = int(re.search(r"at step (\d+)", str(error))[1])
        if most > capacity:
            assert live[step] > capacity
            named = re.findall(r"(b\d) \((\d+) bytes\)", str(error))
            there = sorted([one.nbytes for one in lives if one.lower <= step < one.upper])
            assert [int(nbytes) for _, nbytes in named] == there[::-1][:6]
        return
    assert validate(plan).size <= capacity


@pytest.mark.parametrize(
    ("lives", "capacity", "words"),
    [
        ([Lifetime("a", 0, 1, 100, offset=960)], 1024, "the capacity is 1024 bytes, but a, whose offset is fixed at 960, ends at 1060"),
        ([Lifetime("a", 0, 3, 600), Lifetime("b", 2, 4, 500)], 1024, "at step 2, mul, are needed at least 1152: a (600 bytes), b (500 bytes)"),
        ([Lifetime("a", 0, 3, 600, gaps=(Gap(1, 2, (0, 512)),)), Lifetime("b", 1, 2, 600)], 1024, "at step 1 are needed at least 1152: a (600 bytes), b (600 bytes)"),
    ],
)  # fmt: skip
def test_capacities_that_cannot_hold(lives, capacity, words):
    with pytest.raises(CapacityError, match=re.escape(words)):
        check_capacity(lives, capacity, steps=("x", "y", "mul") if "mul" in words else ())


def test_the_slowest_memory_must_hold_the_rest():
    lives = [Lifetime("a", 0, 3, 6000), Lifetime("b", 1, 4, 6000)]
    with pytest.raises(CapacityError, match="hbm's size is 4096 bytes, but at step 0 are needed"):
        plan_memories(lives, [Memory("hbm", 4096, 1e11), Memory("ub", 4096, 1e12)])
    with pytest.raises(ValueError, match="memories: 2 are called 'ub'"):
        plan_memories(lives, [Memory("ub", 4096, 1e11), Memory("ub", 4096, 1e12)])
    with pytest.raises(ValueError, match="at least one"):
        plan_memories(lives, [])
    for bandwidth in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="ub: bandwidth is"):
            Memory("ub", 4096, bandwidth)


def test_many_buffers_are_placed_in_time():
    rng = random.Random(0)
    lives = [
        Lifetime(f"b{i}", i, i + rng.randint(1, 40), 64 * rng.randint(1, 999)) for i in range(1500)
    ]
    device = plan_memories(lives, [HBM, Memory("ub", 1 << 18, 1e12), Memory("l2", 1 << 20, 5e11)])
    assert 0 < device.plans[0].size <= 1 << 18
    assert device.seconds < device.slow_seconds * 0.7


def test_views_show_every_memory():
    lives = [
        Lifetime("residual", 0, 12, 4096, uses=(0, 1, 2, 9, 10, 11)),
        *(Lifetime(f"h{i}", i, i + 2, 4096) for i in range(3, 8)),
    ]
    device = plan_memories(lives, [HBM, Memory("ub", 8192, 1e13)])
    text = device.to_text()
    assert max(map(len, text.splitlines())) <= 100
    assert all(words in text for words in ("ub:", "hbm:", "copied", "residual#2"))
    picture = ElementTree.fromstring(device.to_svg())
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}svg"))) == 3
    found = json.loads(device.to_json())
    assert [one["name"] for one in found["memories"]] == ["ub", "hbm"]
    assert found["moves"][0]["nbytes"] == 4096
