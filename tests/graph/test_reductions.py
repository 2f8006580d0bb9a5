"""Bounds on orders, ranges, sums and proposals: against trying everything."""

import itertools
import json
import xml.etree.ElementTree as ElementTree

import pytest
from aclnn.graph import (
    BudgetError,
    Entry,
    Lifetime,
    footprint_of,
    plan_lifetimes,
    propose_reductions,
    search_range,
)
from aclnn.graph.planner.order_bound import order_bound
from hypothesis import given, settings
from hypothesis import strategies as st


@st.composite
def programs(draw):
    """Steps that each make one buffer of others: lifetimes in the order of the program."""
    count = draw(st.integers(1, 6))
    reads = [
        sorted(draw(st.sets(st.integers(0, i - 1), max_size=2))) if i else [] for i in range(count)
    ]
    sizes = [64 * draw(st.integers(0, 9)) for _ in range(count)]
    return reads, sizes


def lifetimes(reads, sizes, order):
    """Lifetimes of a program whose steps run in an order."""
    at = {step: place for place, step in enumerate(order)}
    found = []
    for step, nbytes in enumerate(sizes):
        uses = sorted({at[step], *[at[i] for i, some in enumerate(reads) if step in some]})
        found.append(Lifetime(f"b{step}", uses[0], uses[-1] + 1, nbytes, uses=tuple(uses)))
    return found


def peak(lives):
    return max(
        sum(-(-life.nbytes // 64) * 64 for life in lives if life.lower <= step < life.upper)
        for step in range(len(lives))
    )


@settings(deadline=None, max_examples=80)
@given(programs())
def test_the_bound_on_orders_is_the_least_of_all(program):
    reads, sizes = program
    count = len(sizes)
    orders = [
        order
        for order in itertools.permutations(range(count))
        if all(order.index(r) < order.index(i) for i, some in enumerate(reads) for r in some)
    ]
    best = min(peak(lifetimes(reads, sizes, order)) for order in orders)
    lives = lifetimes(reads, sizes, range(count))
    assert order_bound(lives) == (best, True)
    for states in (1, 3):
        bound, reached = order_bound(lives, states)
        assert bound <= best
        assert not reached or bound == best


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 50), st.integers(0, 300), st.integers(1, 40), st.integers(0, 5000),
    st.sampled_from([1, 7, 16]),
)  # fmt: skip
def test_the_largest_that_fits_is_planned_on_both_sides(lower, more, slope, capacity, step):
    planned = []

    def bytes_of(size):
        planned.append(size)
        return slope * (-(-size // step) * step)

    curve = search_range("n", bytes_of, lower, lower + more, capacity)
    fitting = [
        n for n in range(lower, lower + more + 1) if slope * (-(-n // step) * step) <= capacity
    ]
    assert curve.largest == max(fitting, default=None)
    assert len(planned) == len(set(planned)) <= 60
    assert curve.points == tuple((n, slope * (-(-n // step) * step)) for n in sorted(planned))
    if curve.largest is not None and curve.largest < lower + more:
        assert curve.largest + 1 in planned
    worst = max(slope * (-(-n // step) * step) for n in range(lower, lower + more + 1))
    assert curve.worst[1] == worst


def test_a_worst_case_inside_a_range_is_found():
    curve = search_range("n", lambda n: 64 * (100 - abs(n - 77)), 1, 100)
    assert curve.worst == (77, 6400)


def test_ranges_that_are_none():
    for lower, upper in ((0, 3), (4, 3)):
        with pytest.raises(ValueError, match="n: "):
            search_range("n", lambda n: n, lower, upper)


def test_curves_are_shown():
    curve = search_range("seq", lambda n: 64 * n, 1, 4096, 64 * 1000)
    lines = curve.to_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-2:] == [
        "largest that fits 64000 bytes (62.5 KiB): seq=1000 with 64000", "seq=1001 needs 64064",
    ]  # fmt: skip
    ElementTree.fromstring(curve.to_svg())
    found = json.loads(curve.to_json())
    assert found["largest"] == 1000
    assert found["worst"] == {"size": 4096, "bytes": 64 * 4096}
    none = search_range("seq", lambda n: 64 * n, 2, 9, 64)
    assert "nothing fits 64 bytes (64 B): not even seq=2" in none.to_text()


LIVES = [
    Lifetime("x", 0, 2, 4096, "load", ("norm",)),
    Lifetime("skip", 1, 10, 4096, "norm", ("first", "add"), uses=(1, 2, 9)),
    Lifetime("a", 2, 5, 4096, "first", ("second",)),
    Lifetime("b", 4, 6, 8192, "second", ("third",)),
    Lifetime("c", 5, 7, 8192, "third", ("fourth",)),
    Lifetime("d", 6, 10, 1024, "fourth", ("add",)),
]


def test_what_changes_save_is_what_planning_anew_gives():
    plan = plan_lifetimes(LIVES)
    made = propose_reductions(plan)
    kinds = {change.name: change for change in made.changes}
    assert plan.size == 20480
    assert plan.peak_step == 5
    # skip is not there from step 3 to 8.
    parts = [
        Lifetime("s1", 1, 3, 4096), Lifetime("s2", 9, 10, 4096), *[x for x in LIVES if x.name != "skip"],
    ]  # fmt: skip
    saved = plan.size - plan_lifetimes(parts).size
    assert kinds["skip"].saves == saved == 4096
    assert kinds["skip"].kind == "offload"
    assert "after step 2, and back before step 9" in kinds["skip"].words
    # c is written over b.
    assert kinds["c"].kind == "in place"
    assert (
        kinds["c"].saves
        == plan.size
        - plan_lifetimes([*LIVES[:4], Lifetime("c", 5, 7, 8192, same_as="b"), LIVES[5]]).size
    )
    assert "let third write its result over b" in kinds["c"].words
    text = made.to_text()
    assert max(map(len, text.splitlines())) <= 100
    assert json.loads(made.to_json())["changes"][0]["saves"] == made.changes[0].saves


def test_what_is_recomputed_keeps_what_it_reads():
    lives = [Lifetime("x", 0, 9, 64, "load", ("norm", "add"), uses=(0, 1, 8)), *LIVES[1:]]
    made = propose_reductions(plan_lifetimes(lives), best=9)
    found = {one.kind for one in made.changes if one.name == "skip"}
    assert found <= {"offload", "recompute"}
    assert found


def test_sums_have_one_total():
    plan = plan_lifetimes(LIVES, steps=[f"step{i}" for i in range(10)])
    entries = [Entry("weights", f"w{i}", 1000 * i) for i in range(9)] + [
        Entry("runtime", "device", 77, "a guess")
    ]
    made = footprint_of("net", entries, plan)
    assert made.total == 36000 + 77 + plan.size
    assert made.check(made.total) is made
    with pytest.raises(
        BudgetError, match=r"net needs \d+ bytes, 1 over .* weights 36000.*step 5, step5"
    ):
        made.check(made.total - 1)
    text = made.to_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "w8, w7, w6 and 6 more" in text
    assert "assumed: runtime a guess" in text
    assert "b " in text.partition("live at the peak")[2]
    found = json.loads(made.to_json())
    assert found["total"] == made.total == sum(found["kinds"].values())
    with pytest.raises(ValueError, match="no kind 'weight'"):
        footprint_of("net", [Entry("weight", "w", 1)], plan)
