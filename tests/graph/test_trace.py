"""Traces of memory: faults made on purpose are all found, and none is found that is not there."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
from aclnn.graph import (
    Gap,
    Lifetime,
    TraceEvent,
    check_trace,
    plan_lifetimes,
    trace_from_csv,
)

STREAMS = ("s0", "s1", "s2")
USES = ("read", "write", "workspace")


# --- A reference: who reaches whom, and all pairs ------------------------------------------------


def reached(events):
    """For each event the set, as bits, of those that are ordered before it, itself included."""
    before, last, recorded, host = [], {}, {}, 0
    for i, event in enumerate(events):
        own = (1 << i) | last.get(event.stream, 0) | host
        if event.action == "wait":
            own |= recorded.get(event.name, 0)
        if event.action == "record":
            recorded[event.name] = own
        last[event.stream] = own
        if event.action == "sync":
            for stream, bits in last.items():
                if event.name in ("", stream):
                    host |= bits
        before.append(own)
    return before


def true_faults(events):
    """Pairs of rows at fault, by definition, each pair of events compared."""
    before, found = reached(events), set()

    def ordered(i, j):
        return before[j] >> i & 1

    memories, accesses = [], []  # (name, begin, end, born, died), (name, begin, end, writes, at)
    for j, event in enumerate(events):
        row = event.row
        known = [one for one in memories if one[0] == event.name]
        latest = known[-1] if known else None
        if event.action == "alloc":
            begin, end = event.offset, event.offset + event.size
            if latest and latest[4] is None:
                found.add((events[latest[3]].row, row))
                latest[4] = j
            for other in memories:
                meets = other[1] < end and begin < other[2]
                if meets and other[4] != j and (other[4] is None or not ordered(other[4], j)):
                    found.add((events[other[3]].row, row))
            memories.append([event.name, begin, end, j, None])
        elif event.action == "free":
            if latest is None:
                found.add((row,))
            elif latest[4] is not None:
                found.add((events[latest[4]].row, row))
            else:
                latest[4] = j
                for name, begin, end, _, i in accesses:
                    inside = begin < latest[2] and latest[1] < end
                    if name == event.name and inside and not ordered(i, j):
                        found.add((events[i].row, row))
        elif event.action in USES:
            lacks_place = event.offset is None or event.action != "workspace"
            if latest is None and lacks_place:
                found.add((row,))
                continue
            if latest is not None:
                if latest[4] is not None:
                    found.add((events[latest[4]].row, row))
                elif not ordered(latest[3], j):
                    found.add((events[latest[3]].row, row))
            begin = latest[1] if event.offset is None else event.offset
            end = latest[2] if event.size is None else begin + event.size
            if latest is not None and not latest[1] <= begin <= end <= latest[2]:
                found.add((events[latest[3]].row, row))
            writes = event.action != "read"
            for _, low, high, wrote, i in accesses:
                meets = low < end and begin < high and (writes or wrote)
                if meets and events[i].stream != event.stream and not ordered(i, j):
                    found.add((events[i].row, row))
            accesses.append((event.name, begin, end, writes, j))
    return found


# --- Programs that are sound, and faults that are put into them ----------------------------------


def sound(rng, count=40):
    """A program on three streams that orders what it must, by events and now and then by waiting."""
    rows, live, serial = [], {}, itertools.count()

    def behind(stream, others):
        for other in others - {stream}:
            event = f"e{next(serial)}"
            rows.extend([(other, "record", event), (stream, "wait", event)])

    top, pool = 0, []
    while len(rows) < count:
        choice, stream = rng.random(), rng.choice(STREAMS)
        if choice < 0.25 or not live:
            size = rng.randint(1, 300)
            fitting = [one for one in pool if one[1] >= size]
            if fitting and rng.random() < 0.7:
                place = rng.choice(fitting)
                pool.remove(place)
                begin, used = place[0], place[2]
                behind(stream, used)
            else:
                begin, top = top, top + size
            name = f"b{next(serial)}"
            rows.append((stream, "alloc", name, begin, size))
            live[name] = [begin, size, {stream}]
        elif choice < 0.8:
            name = rng.choice(sorted(live))
            begin, size, used = live[name]
            behind(stream, used)
            used.add(stream)
            if rng.random() < 0.5:
                first = rng.randint(0, size - 1)
                part = begin + first, rng.randint(1, size - first)
            else:
                part = None, None
            rows.append((stream, rng.choice(USES), name, *part))
        elif choice < 0.9:
            name = rng.choice(sorted(live))
            begin, size, used = live.pop(name)
            behind(stream, used)
            rows.append((stream, "free", name))
            pool.append((begin, size, {stream}))
        elif choice < 0.95:
            rows.append(("", "sync", ""))
        else:
            rows.append(
                (stream, "workspace", f"w{next(serial)}", 10**6 + 512 * STREAMS.index(stream), 512)
            )
    return numbered(rows)


def numbered(rows):
    return [
        TraceEvent(i, *row) if isinstance(row, tuple) else replace(row, row=i)
        for i, row in enumerate(rows, 1)
    ]


def damaged(rng, events):
    """The program with one thing changed."""
    events = list(events)
    at = rng.randrange(len(events))
    one = events[at]
    kind = rng.choice(("drop", "move", "stream", "place", "again", "name"))
    if kind == "drop":
        del events[at]
    elif kind == "move":
        events.insert(rng.randrange(len(events)), events.pop(at))
    elif kind == "stream":
        events[at] = replace(one, stream=rng.choice(STREAMS))
    elif kind == "place" and one.offset is not None:
        events[at] = replace(one, offset=max(0, one.offset + rng.randint(-400, 400)))
    elif kind == "again":
        events.insert(rng.randrange(at, len(events)), one)
    elif one.action in USES:
        events[at] = replace(one, name=rng.choice([e.name for e in events if e.action == "alloc"]))
    return numbered(events)


def test_five_hundred_faults_are_found_and_none_that_is_not_there():
    rng, found, unharmed, kinds = random.Random(48), 0, 0, Counter()
    for _ in range(60):
        program = sound(rng)
        assert true_faults(program) == set()
        assert check_trace(program) == ()
        for _ in range(40):
            changed = damaged(rng, program)
            true = true_faults(changed)
            faults = check_trace(changed)
            assert {fault.rows for fault in faults} <= true
            assert bool(faults) == bool(true)
            last = {max(rows) for rows in true}  # one report for each event that is at fault
            assert {max(fault.rows) for fault in faults} == last
            kinds.update(fault.kind for fault in faults)
            found += bool(true)
            unharmed += not true
    assert found >= 500
    assert unharmed >= 100  # changes that do no harm
    assert set(kinds) == {"lifetime", "bytes", "overlap", "race", "workspace", "free"}


def test_faults_are_said_in_words():
    text = (
        "stream,action,id,offset,size\n"
        "s1,alloc,a,0,128\ns2,write,a,,\ns1,write,a,,\ns1,free,a,,\ns1,read,a,,\ns1,alloc,b,64,64\n"
        "s1,workspace,ws,4096,512\ns2,workspace,ws,4352,512\ns1,write,b,96,64\ns1,free,c,,\n"
    )
    assert [str(fault) for fault in check_trace(trace_from_csv(text))] == [
        "rows 1 and 2: write of a on stream s2 is not ordered after its alloc on stream s1",
        "rows 2 and 3: write of a and write of a, bytes [0, 128), may be at once: streams s2 and s1",
        "rows 2 and 4: a is freed on stream s1 while stream s2 may write it",
        "rows 4 and 5: read of a on stream s1 is behind its end",
        "rows 2 and 5: write of a and read of a, bytes [0, 128), may be at once: streams s2 and s1",
        "rows 7 and 8: streams s1 and s2 share bytes [4352, 4608) of a workspace, and may run at once",
        "rows 6 and 9: write of b on stream s1 has bytes [96, 160), b is at [64, 128)",
        "rows 2 and 9: write of a and write of b, bytes [96, 128), may be at once: streams s2 and s1",
        "row 10: c is freed, but never allocated",
    ]


def test_uses_are_held_against_a_plan():
    lives = [
        Lifetime("a", 0, 3, 64),
        Lifetime("b", 2, 5, 64),
        Lifetime("c", 3, 9, 64, gaps=(Gap(5, 8),)),
    ]
    plan = plan_lifetimes(lives)
    rows = [
        ("s", "write", "a", None, None, 0),
        ("s", "read", "a", None, None, 3),
        ("s", "write", "b", plan.buffer("b").offset + 32, 64, 2),
        ("s", "write", "c", None, None, 3),
        ("s", "read", "c", None, None, 6),
        ("s", "read", "d", None, None, 6),
    ]
    faults = check_trace(numbered(rows), plan)
    assert [(fault.kind, fault.rows) for fault in faults] == [
        ("lifetime", (2,)), ("bytes", (3,)), ("lifetime", (5,)), ("lifetime", (6,)),
    ]  # fmt: skip
    assert str(faults[0]) == "row 2: read of a at step 3, its lifetime is steps 0 to 2"


def test_buffers_of_any_size_are_compared():
    """More pages than are looked up one by one."""
    large = 1 << 30
    rows = [
        ("s1", "alloc", "a", 0, large), ("s1", "alloc", "b", large - 1, 10), ("s1", "alloc", "c", large + 9, large),
    ]  # fmt: skip
    assert [fault.rows for fault in check_trace(numbered(rows))] == [(1, 2)]
    rows = [("s1", "workspace", "w", 0, large), ("s2", "workspace", "w", large - 1, 8)]
    assert [fault.kind for fault in check_trace(numbered(rows))] == ["workspace"]
    assert [fault.kind for fault in check_trace(numbered(rows[::-1]))] == ["workspace"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stream,action\n", "columns missing: id"),
        ("stream,action,id\ns,eat,a\n", "row 1: action is 'eat', must be one of read"),
        ("stream,action,id\ns,read,\n", "row 1: read has no id"),
        ("stream,action,id\ns,alloc,a\n", "row 1: alloc of a needs offset and size"),
        (
            "stream,action,id,offset\ns,read,a,-1\n",
            "row 1: offset is '-1', must be a number from 0",
        ),
    ],
)
def test_traces_that_are_none_name_their_row(text, words):
    with pytest.raises(ValueError, match=words):
        trace_from_csv(text)
