"""Lifetimes in files: CSV, and PyTorch's memory snapshots as pickles and as JSON."""

import json
import os
import pickle

import pytest
from aclnn.graph import (
    Lifetime,
    lifetimes_from_snapshot,
    lifetimes_to_csv,
    plan_lifetimes,
    read_lifetimes,
)
from hypothesis import given
from hypothesis import strategies as st

from aclnn import cli

KIB = 1024


def event(action, addr, size, frames=()):
    """An entry of a trace with all fields that PyTorch's have."""
    fields = {"stream": 0, "time_us": 0, "compile_context": "N/A", "user_metadata": ""}
    return {"action": action, "addr": addr, "size": size, "frames": list(frames), **fields}


def frame(name, filename, line):
    return {"name": name, "filename": filename, "line": line}


LINEAR = [
    frame("CUDACachingAllocator::malloc", "??", 0),
    frame("forward", "/lib/python3/site-packages/torch/nn/modules/linear.py", 134),
    frame("block", "/home/me/model.py", 17),
]
# Weights that were there before the recording, two activations of which the second takes the
# address of a freed one, and a free that was asked for and waits for its stream.
TRACE = [
    event("segment_alloc", 0x1000, 64 * KIB),
    event("alloc", 0x1000, 8 * KIB, LINEAR),
    event("alloc", 0x3000, 4 * KIB, LINEAR),
    event("free_requested", 0x1000, 8 * KIB),
    event("free_completed", 0x1000, 8 * KIB),
    event("alloc", 0x1000, 2 * KIB),
    event("oom", 0, 1 << 40) | {"device_free": 0},
    event("free_requested", 0x3000, 4 * KIB),
    event("free_completed", 0x9000, 16 * KIB),
    event("snapshot", 0, 0),
]
BLOCKS = [
    {"size": 2 * KIB, "state": "active_allocated", "address": 0x1000, "frames": []},
    {"size": 4 * KIB, "state": "active_awaiting_free", "address": 0x3000, "frames": []},
    {"size": 32 * KIB, "state": "active_allocated", "address": 0x5000, "frames": []},
    {"size": 26 * KIB, "state": "inactive", "address": 0xD000, "frames": []},
]
SEGMENT = {"device": 0, "address": 0x1000, "total_size": 64 * KIB, "stream": 0, "blocks": BLOCKS}
SNAPSHOT = {"segments": [SEGMENT], "device_traces": [TRACE, []], "external_annotations": []}
EXPECTED = [
    ("alloc", 0, 2, 16 * KIB, ""),
    ("alloc_2", 0, 2, 32 * KIB, ""),
    ("block", 0, 1, 8 * KIB, "model.py:17"),
    ("block_2", 0, 2, 4 * KIB, "model.py:17"),
    ("alloc_3", 1, 2, 2 * KIB, ""),
]


def facts(lifetimes):
    return [(one.name, one.lower, one.upper, one.nbytes, one.producer) for one in lifetimes]


def test_allocations_live_from_their_event_until_their_memory_is_free():
    assert facts(lifetimes_from_snapshot(SNAPSHOT)) == EXPECTED


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_snapshots_are_read_as_pickles_and_as_json(tmp_path, protocol):
    pickled, text = tmp_path / "snapshot.pickle", tmp_path / "snapshot.json"
    pickled.write_bytes(pickle.dumps(SNAPSHOT, protocol))
    text.write_text(json.dumps(SNAPSHOT, indent=1))
    assert facts(read_lifetimes(pickled)) == facts(read_lifetimes(str(text))) == EXPECTED


lives = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 1000)), min_size=1, max_size=12
)


@given(lives)
def test_plans_come_back_from_their_snapshots(lives):
    given = [Lifetime(f"n{i}", at, at + long, size) for i, (at, long, size) in enumerate(lives)]
    plan = plan_lifetimes(given)
    back = lifetimes_from_snapshot(plan.to_memory_snapshot())
    assert {one.name for one in back} == {one.name for one in given}
    again = {one.name: one for one in back}
    for one in given:  # what conflicts is the same
        for other in given:
            assert one.overlaps(other) == again[one.name].overlaps(again[other.name])
    assert plan_lifetimes(back).lower_bound == plan.lower_bound


class Evil:
    def __reduce__(self):
        return os.system, ("touch pwned",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps({"device_traces": [Evil()]}), r"plain values, this pickle wants \w+.system"),
        (pickle.dumps(SNAPSHOT)[:200], "no readable pickle"),
        (b"\x80\x04\x85.", "no readable pickle"),
        (pickle.dumps([1]), "the snapshot is of type list, must be a mapping"),
        (pickle.dumps({"segments": []}), "device_traces is of type NoneType, must be a list"),
        (b'{"device_traces": [[], []]}', "no allocations were recorded"),
        (b'{"device_traces": [[3]]}', "event 0 is of type int"),
        (b'{"device_traces": [[{"action": "alloc", "addr": 1}]]}', "event 0 has no size"),
        (
            b'{"device_traces": [[{"action": "alloc", "addr": 1, "size": "2"}]]}',
            "size is '2', must",
        ),
        (
            b'{"device_traces": [[{"action": "alloc", "addr": 1, "size": -2}]]}',
            "a size of -2, must",
        ),
        (b'{"device_traces": [[{}], [{}]]}', "devices 0, 1 have allocations"),
        (b"{", "Expecting property name"),
        (b"\xff\xfe", "utf-8"),
    ],
)
def test_other_files_are_refused_with_a_reason(tmp_path, monkeypatch, content, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_lifetimes("file")
    assert not (tmp_path / "pwned").exists()


def test_devices_are_chosen(tmp_path):
    both = {"device_traces": [[event("alloc", 1, 10)], [event("alloc", 1, 20)]]}
    assert [one.nbytes for one in lifetimes_from_snapshot(both, device=1)] == [20]
    with pytest.raises(ValueError, match="device is 2, the snapshot is of 2 devices"):
        lifetimes_from_snapshot(both, device=2)
    csv = tmp_path / "lives.csv"
    csv.write_text(lifetimes_to_csv([Lifetime("a", 0, 1, 8)]))
    assert read_lifetimes(csv) == (Lifetime("a", 0, 1, 8),)
    with pytest.raises(ValueError, match="belong to no device"):
        read_lifetimes(csv, device=0)


def test_the_command_plans_snapshots(tmp_path, capsys):
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps(SNAPSHOT))
    assert cli.main(["plan", "--lifetimes", str(file), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["size"] == plan["lower_bound"] == 60 * KIB
    assert cli.main(["plan", "--lifetimes", str(file), "--device", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["buffers"] == []
    with pytest.raises(SystemExit):
        cli.main(["plan", "gelu", "--self", "float32[3]", "--device", "1"])
    assert "--device is for --lifetimes" in capsys.readouterr().err
