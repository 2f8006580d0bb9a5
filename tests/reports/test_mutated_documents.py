"""Readers of documents and files, on thousands of mutated ones: read, or refused with a ValueError."""

import json
import pickle
import random

import numpy as np
import pytest
from aclnn.graph import Graph, PassResult, Schedule, read_lifetimes

import aclnn

ODD = [
    None, True, [], {}, "", "x", -1, 0, 1, 2, 7, 2**62, -(2**63), 2**70, 1.5, float("nan"), [[]], [0],
    {"a": 1}, "input", "float32", [-1], [None],
]  # fmt: skip


def copied(value):
    return json.loads(json.dumps(value))


def places(data, path=()):
    """The path of every field, at any depth."""
    yield path
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in pairs:
        yield from places(value, (*path, key))


def at(data, path):
    for key in path:
        data = data[key]
    return data


def mutate(document, rng):
    """Change one field: drop it, repeat it, change it a little, or put another in its place."""
    paths = list(places(document))
    *outer, key = rng.choice(paths[1:])
    holder, kind = at(document, outer), rng.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.append(copied(holder[key]))
    elif kind == 2 and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1, 5])
    elif kind == 3:
        holder[key] = copied(at(document, rng.choice(paths)))
    else:
        holder[key] = copied(rng.choice(ODD))


def mutated(document, rng):
    made = copied(document)
    for _ in range(rng.choice([1, 1, 2, 3])):
        mutate(made, rng)
    return made


def executors():
    @aclnn.compile
    def function(x, weight):
        y = aclnn.matmul(aclnn.rms_norm(x, 8, weight), x.T)
        return aclnn.silu(y) + x, aclnn.softmax(y, -1)[:, :2], aclnn.sum(y, [0], False)

    g, x = np.ones((4, 1, 8), np.float16), np.ones((1, 6, 8), np.float32)
    yield function.executor(np.ones((8, 8), np.float32), np.ones(8, np.float32))
    yield aclnn.executor("gelu_backward", g, x)


@pytest.fixture(scope="module")
def documents():
    """Of every kind that is read, with its class."""
    found = []
    for executor in executors():
        with aclnn.profile() as profile:
            executor.run()
        plan, schedule, passes = executor.plan, executor.schedule, executor.passes
        for thing in (executor.graph_as_built, executor.graph, plan, schedule, passes, profile):
            found += [(type(thing), json.loads(thing.to_json()))]
    return found


@pytest.mark.parametrize("seed", range(1))
def test_mutated_documents_are_read_or_refused(documents, seed):
    rng, refused = random.Random(seed), 0
    for _ in range(1000):
        kind, document = rng.choice(documents)
        text = json.dumps(mutated(document, rng))
        try:
            thing = kind.from_json(text)
        except ValueError as error:
            assert str(error)
            refused += 1
            continue
        assert thing.to_text()
        if kind is Graph:
            aclnn.graph.run_passes(thing)
            assert thing.to_svg()
    assert refused > 500


def test_what_was_mutated_is_named(documents):
    by_class = {
        kind: document for kind, document in documents if kind in (Graph, Schedule, PassResult)
    }
    for kind, changes, words in (
        (Graph, {"inputs": []}, "grad_output: values of storage 'input' are inputs"),
        (Graph, {"outputs": [float("nan")]}, r"outputs\[0\] is nan, must be"),
        (Schedule, {"workspace_size": float("nan")}, "workspace_size is nan, must be at least 0"),
        (PassResult, {"passes": 3}, "passes is 3, must be a list"),
    ):
        document = copied(by_class[kind]) | changes
        with pytest.raises(ValueError, match=words):
            kind.from_json(json.dumps(document))


def test_what_views_rely_on_is_asked_of_readers(documents):
    """A call's name, the sizes of a product and dtypes of operands are used without a look."""
    by_class = {kind: copied(document) for kind, document in documents}
    graph, schedule = by_class[Graph], by_class[Schedule]
    graph["nodes"][0]["attrs"] = dict(graph["nodes"][0]["attrs"]) | {"call": 7}
    with pytest.raises(ValueError, match="the call is a string"):
        Graph.from_json(json.dumps(graph))
    schedule["steps"][0]["ops"][0]["extent"] = [4, 8]
    with pytest.raises(ValueError, match="extent"):
        Schedule.from_json(json.dumps(schedule))
    (kind, profile) = next(pair for pair in documents if hasattr(pair[0], "to_chrome_trace"))
    profile = copied(profile)
    profile["executors"][0]["schedule"]["steps"][0]["operands"][0]["dtype"] = "input"
    with pytest.raises(ValueError, match="has dtype 'input', there is none"):
        kind.from_json(json.dumps(profile))


# --- Lifetimes ------------------------------------------------------------------------------------


def snapshot():
    x = np.ones((4, 64), np.float32)
    plan = aclnn.executor("gelu_backward", x.T, x.T, materialize=True).plan
    made = copied(plan.to_memory_snapshot())
    block = {"address": 1, "size": 4, "state": "active_allocated", "frames": [{"name": "f"}]}
    made["segments"] = [{"device": 0, "address": 0, "blocks": [block]}]
    return made


def damaged(content, rng):
    found = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        found[rng.randrange(len(found))] = rng.choice([0, 10, 13, 34, 44, 255, rng.randrange(256)])
    return bytes(found)


def test_files_of_lifetimes_are_read_or_refused(tmp_path):
    rng, path, read = random.Random(0), tmp_path / "lifetimes", 0
    table, recorded = b"id,lower,upper,size\na,0,2,100\nb,1,3,7\n", snapshot()
    for turn in range(900):
        made = mutated(recorded, rng)
        files = (
            json.dumps(made).encode(),
            pickle.dumps(made),
            damaged(rng.choice([table, pickle.dumps(recorded)]), rng),
        )
        path.write_bytes(files[turn % 3])
        try:
            read += len(read_lifetimes(path)) > 0
        except ValueError as error:
            assert str(error)
    assert read > 150


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\rb", "no CSV, line 1: new-line"),
        (b"id,lower,upper,size\na,0,1," + b"1" * 200_000, "no CSV, line 2: field larger"),
        (b'{"a":' * 100_000, "too deep"),
        (b'{"device_traces": [[{"action": "alloc", "addr": 1, "size": 1}]], "segments": 3}',
         "segments is of type int, must be a list"),
    ],
    ids=["line ends", "long field", "depth", "segments"],
)  # fmt: skip
def test_what_is_no_table_of_lifetimes_is_told(tmp_path, content, words):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_lifetimes(tmp_path / "file")
