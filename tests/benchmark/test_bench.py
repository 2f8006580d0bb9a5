"""The benchmark's parts: cells, adapters, the clock, verdicts, tables, pictures. Nothing is timed."""

import argparse
import importlib.util
import json
import math
import os
import select
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from aclnn.graph.views.tables import to_markdown, to_text
from cases import each

from aclnn import cli, isa
from aclnn.benchmark import (
    cells,
    chains,
    limits,
    matrix,
    measure,
    ours,
    peers,
    plot,
    progress,
    standard,
    table,
    targets,
)
from aclnn.compiler import cpu_caches
from aclnn.operators import REGISTRY

SMALL = {"sizes": [16, 100, 1024], "layout_elements": 1024}
TINY = matrix.Settings(**SMALL, rounds=1, budget=1e-6)
MODULES = {"blas": "scipy", "inductor": "torch"}  # of peers that are not called as they are
OF_PRODUCTS = ("blas", "onednn", "packed")  # peers for nothing else
INSTALLED = [p.key for p in peers.PEERS if importlib.util.find_spec(MODULES.get(p.key, p.key))]


def cell_of(operator="gelu_backward", dtype="float32", regime="call16"):
    (cell,) = cells.select([operator], dtypes=[dtype], regimes=[regime], layout_elements=1024)
    return cell


def row(**changes):
    made = {
        "operator": "gelu_backward", "dtype": "float32", "regime": "call16", "layout": "",
        "elements": 16, "threads": 1, "isa": "v4", "bytes": 192, "workspace_bytes": 0,
        "times": {"aclnn": {"median_us": 0.2}, "np.add": {"median_us": 0.3}},
        "ratios": {"torch": 10.0}, "of_copy": None, "of_triad": None, "of_ufunc": 0.7,
    }  # fmt: skip
    return made | changes


def report_of(*rows):
    return {
        "machine": {"best_isa": "v4", "cpu": "a CPU"},
        "versions": {"aclnn-cpu": "1"},
        "rows": list(rows),
        "notes": [],
    }


# Cells


def test_the_whole_matrix():
    everything = cells.select()
    assert len(everything) == len(set(everything)) == 7 * 5 * 3 + 3 * 2 + 2 * 2 * 3 + 2 * 3 * 3
    assert {cell.regime.name for cell in everything} == {r.name for r in cells.REGIMES}
    assert {cell.regime.elements for cell in everything} == {
        *(16, 4096, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
    }


def test_selections():
    assert {c.operator for c in cells.select(["leaky_relu"])} == {"leaky_relu"}
    halves = cells.select(dtypes=["float16"])
    assert {o.dtype for c in halves for o in (*c.inputs, c.out)} == {"float16"}
    assert {c.regime.name for c in cells.select(regimes=["layout"])} == set(cells.LAYOUTS)
    assert {c.regime.name for c in cells.select(sizes=[4096, 7])} == {"4096", "7"}
    assert cells.select(["logit_backward"], regimes=["strided"]) == []


@each("cell", cells.select(**SMALL), ids=lambda cell: cell.title)
def test_cells_build_and_our_calls_fill_the_output(cell):
    memory = cells.build(cell)
    assert np.broadcast_shapes(*(array.shape for array in memory.inputs)) == memory.out.shape
    assert memory.out.size == cell.regime.elements
    assert [a.dtype.name for a in memory.inputs] == [operand.dtype for operand in cell.inputs]
    assert memory.nbytes == sum(a.nbytes for a in (*memory.inputs, memory.out))
    assert np.isnan(memory.out.astype(np.float32)).all()
    ours.prepare(cell, memory)()
    assert not np.isnan(memory.out.astype(np.float32)).any()
    assert ours.workspace_size(cell, memory) == 0  # no cell has intermediates of its own


def test_layouts_are_what_they_are_called():
    def inputs(regime, operator="gelu_backward"):
        return cells.build(cell_of(operator, regime=regime)).inputs

    assert inputs("broadcast-row")[0].shape == (1, 32)
    assert inputs("broadcast-column")[0].shape == (32, 1)
    assert [a.flags.c_contiguous for a in inputs("transposed")] == [True, False]
    assert [a.strides for a in inputs("strided")] == [(256, 8), (256, 8)]
    mixed = cells.select(["gelu_backward"], regimes=["mixed"])
    assert all(len({operand.dtype for operand in cell.inputs}) == 2 for cell in mixed)


def test_the_three_forms_give_the_same_bits():
    results = []
    for regime in ("call16", "phases16", "run16"):
        memory = cells.build(cell_of(regime=regime))
        ours.prepare(cell_of(regime=regime), memory)()
        results.append(memory.out.tobytes())
    assert len(set(results)) == 1


def test_both_phases_take_the_numbers_of_choices():
    """`div_mod` has a choice in words, which both phases take as a number; `isinf` gives truth values there."""
    settings = matrix.Settings(
        ["div_mod", "isinf"], ["float32"], ["phases16"], peers=(), rounds=1, budget=1e-5
    )
    report = matrix.measured_here(settings, 1)
    assert [row["operator"] for row in report["rows"]] == ["div_mod"]
    assert any("isinf float32 phases16 left out" in note for note in report["notes"])


# Peers


@pytest.fixture(scope="module")
def by_all_peers():
    """A report with every peer, from a process of its own: importing JAX forbids forks."""
    return matrix._measured_in_child(TINY, isa.name(), 1)


@pytest.mark.parametrize("key", peers.TITLES)
def test_adapters_agree_with_us(key, by_all_peers):
    if key in OF_PRODUCTS:
        assert not any(key in row["ratios"] for row in by_all_peers["rows"])
        return
    if key not in (*INSTALLED, "single", "c"):
        assert any(n.startswith(f"{peers.TITLES[key]} left out") for n in by_all_peers["notes"])
        return
    assert not [note for note in by_all_peers["notes"] if note.startswith(peers.TITLES[key])]
    covered = {
        (r["operator"], r["dtype"], r["regime"]) for r in by_all_peers["rows"] if key in r["ratios"]
    }
    everything = {(c.operator, c.dtype, c.regime.name) for c in TINY.cells()}
    floats = {one for one in everything if one[1] == "float32"}
    expected = {
        "torch": everything,
        "jax": everything,
        "numba": floats,
        "numexpr": {one for one in floats if one[0] != "gelu_backward"},
        "single": set(),  # of chains only
        "inductor": set(),  # the same
        "c": set(),  # of some chains
    }
    assert covered == expected[key]


@each("dtype", cells.DTYPES)
@each("name", [name for name in cells.measurable() if name in REGISTRY])
def test_pytorchs_forms_compute_the_same(name, dtype):
    pytest.importorskip("torch")
    if peers.torch_form(name) is None:
        assert REGISTRY[name].torch == ""
        return
    if name in ("isposinf", "isneginf"):
        pytest.skip("PyTorch's write truth values only")
    (cell,) = cells.select([name], dtypes=[dtype], sizes=[1000])
    memory = cells.build(cell)
    results = []
    for peer in (peers.Torch(), ours):
        memory.out.fill(7)
        peer.prepare(cell, memory)()
        results.append(memory.out.astype(np.float64))
    np.testing.assert_allclose(*results, rtol=0.02, atol=0.02)


@pytest.mark.skipif(matrix.machine()["cpus"] < 2, reason="numba has no more threads than CPUs")
def test_peers_on_two_threads():
    two = replace(TINY, operators=["hardshrink_backward"], sizes=[1 << 15], dtypes=["float32"])
    report = matrix._measured_in_child(replace(two, regimes=["256Ki"]), isa.name(), 2)
    (only,) = report["rows"]
    assert only["threads"] == 2
    assert set(only["ratios"]) == {*INSTALLED} - {*OF_PRODUCTS, "inductor"}


class Fake:
    """An adapter under our control: multiplies, which leaky_relu with slope 1 would do."""

    key, title, writes_out = "fake", "Fake", True

    def __init__(self, factor=0.01, error=None):
        self.factor, self.error, self.told = factor, error, []

    def version(self):
        return "1"

    def threads(self, n):
        self.told.append(n)

    def prepare(self, cell, memory):
        if self.error:
            raise self.error
        (x,) = memory.inputs
        return lambda: np.copyto(memory.out, np.where(x > 0, x, x * np.float32(self.factor)))


def measure_with(peer):
    return matrix.measure_cell(cell_of("leaky_relu"), [peer], 1, TINY)


def test_a_right_adapter_is_timed_and_told_its_threads():
    fake = Fake()
    found, notes = measure_with(fake)
    assert notes == []
    assert found["ratios"]["fake"] > 0
    assert set(fake.told) == {1}


def test_a_wrong_adapter_is_noticed():
    found, (note,) = measure_with(Fake(factor=0.5))
    assert found["ratios"] == {}
    assert "WRONG" in note
    assert "Fake, leaky_relu float32 call16" in note


def test_an_adapter_that_writes_nothing_is_noticed():
    fake = Fake()
    fake.prepare = lambda cell, memory: lambda: None
    assert "WRONG" in measure_with(fake)[1][0]


def test_a_failing_adapter_is_left_out():
    found, (note,) = measure_with(Fake(error=TypeError("no such operator")))
    assert found["ratios"] == {}
    assert "TypeError: no such operator" in note


def test_missing_peers_are_left_out(monkeypatch):
    monkeypatch.setattr(peers, "_installed", lambda module: None)
    monkeypatch.setattr(peers.shutil, "which", lambda program: None)  # a compiler
    found, notes = matrix._present(matrix.ALL_PEERS, 1)
    assert [peer.key for peer in found] == ["single"]  # ourselves
    titles = [peer.title for peer in peers.PEERS if peer.key != "single"]
    assert [note.split(" left")[0] for note in notes] == titles


def test_jax_cannot_change_its_threads():
    jax = peers.Jax()
    jax._fixed = 2
    jax.threads(2)
    with pytest.raises(RuntimeError, match="2 threads already"):
        jax.threads(1)


# The clock and the limits


def test_contenders_take_turns():
    turns = []

    def timer(name, count):
        turns.append(name)
        return 1e-3 * count

    samples = measure.alternate({n: partial(timer, n) for n in "abc"}, 3, 1e-3)
    assert turns[-9:] == list("abcbcacab")
    assert samples["a"] == measure.Sample(1e-3, 1e-3, 1e-3, 1)


def test_short_calls_are_repeated_to_fill_the_budget():
    sample = measure.alternate({"a": lambda count: 1e-6 * count}, 1, 1e-3)["a"]
    assert sample.repeat == 1000
    assert sample.median == pytest.approx(1e-6)


def test_one_slow_call_does_not_decide_how_often_to_repeat():
    slow = iter([5.0, 5.0])
    sample = measure.alternate({"a": lambda count: next(slow, 1e-6 * count)}, 1, 1e-3)["a"]
    assert sample.repeat == 1000


def test_side_by_side_runs_every_call_so_often():
    counts = [0, 0]

    def bump(place):
        counts[place] += 1

    measure.side_by_side([partial(bump, 0), partial(bump, 1)])(7)
    assert counts == [7, 7]


@pytest.mark.parametrize(
    ("size", "threads", "streams"),
    [(3 << 20, 1, False), (6 << 20, 1, True), (6 << 20, 2, False), (12 << 20, 2, True)],
)
def test_limits_move_the_bytes_they_say(size, threads, streams, monkeypatch):
    moved = []
    monkeypatch.setattr(cpu_caches, "last_level_bytes", lambda: 0)
    monkeypatch.setattr(limits, "side_by_side", lambda calls: moved.append(calls) or calls)
    made = limits.timers(size, threads)
    for call in (*made["copy"], *made["triad"]):
        call()
    assert [len(calls) for calls in moved] == [threads, threads]
    streamed = isinstance(made["copy"][0], limits._Holding)
    assert streamed == streams
    arrays = [c._arrays if streamed else c.args for c in made["copy"]]
    assert sum(a.nbytes for pair in arrays for a in pair) == size
    triads = [(*c.args, c.keywords["out"]) for c in made["triad"]]
    assert sum(a.nbytes for three in triads for a in three) == size
    assert (triads[0][2] == 2).all()


# Verdicts, tables, pictures


def test_every_regime_has_a_bar_and_every_bar_a_regime():
    barred = {name for bar in targets.BARS for name in bar.regimes}
    assert barred == {regime.name for regime in cells.REGIMES}
    assert {bar.quantity for bar in targets.BARS} == set(targets.QUANTITIES)


def verdicts_on(*rows):
    return {v.quantity: v for v in targets.judged(report_of(*rows))}


def test_verdicts():
    found = verdicts_on(row(ratios={"torch": 3.9, "numba": 0.9}, of_ufunc=1.6))
    assert {name: (v.value, v.met) for name, v in found.items()} == {
        "torch": (3.9, False), "peers": (0.9, False), "ufunc": (1.6, False),
    }  # fmt: skip
    found = verdicts_on(row(ratios={"torch": 4.0}, of_ufunc=1.5))
    assert all(v.met for v in found.values())
    assert verdicts_on(row(regime="run16"))["microseconds"].met is False
    laid_out = row(regime="mixed", layout="mixed", workspace_bytes=3 << 20, threads=2)
    assert verdicts_on(laid_out)["workspace"].value == 1.5


def test_means_are_judged_over_a_regime():
    rows = [row(regime="256Ki", dtype=d, ratios={"torch": r}) for d, r in (("a", 1), ("b", 4))]
    (mean,) = [v for v in targets.judged(report_of(*rows)) if v.quantity == "torch_mean"]
    assert mean.value == pytest.approx(2)
    assert mean.met


def test_scaling_needs_both_thread_counts():
    one = row(regime="256Ki", times={"aclnn": {"median_us": 100.0}})
    two = row(regime="256Ki", threads=2, times={"aclnn": {"median_us": 50.0}})
    assert verdicts_on(one, two)["scaling"].value == 2
    assert "scaling" not in verdicts_on(two)


def test_lesser_instruction_sets_have_bars_of_their_own():
    lesser = row(regime="256Ki", isa="v3", ratios={"torch": 0.9})
    assert verdicts_on(lesser)["torch"].met
    assert list(verdicts_on(lesser)) == ["torch"]


def test_tables():
    rows = [row(), row(dtype="float16", ratios={"torch": 2.0, "jax": 0.5})]
    report = report_of(*rows)
    first, second, small = table.tables(report, targets.judged(report))
    assert first.title == "PyTorch's time over ours, 1 thread, v4"
    assert [line[-1] for line in first.rows] == ["10.00", "2.00 !", "4.47"]
    assert [line[-1] for line in second.rows] == ["0.50 !", "0.50"]
    assert [line[-1] for line in small.rows] == ["0.20", "0.20", "0.30"]
    assert "| gelu_backward | float16 | 2.00 ! |" in to_markdown((first,))
    assert all(table.MISSED not in to_text((one,)) for one in table.tables(report))


def test_tables_have_no_column_without_a_value():
    rows = [
        row(),
        row(regime="256Ki", ratios={"torch": 2.0, "numba": 3.0}, of_copy=0.5, of_ufunc=None),
        row(regime="16Mi", ratios={"torch": 4.0}, of_copy=0.9, of_triad=0.8, of_ufunc=None),
    ]
    found = {one.title.partition(",")[0]: one for one in table.tables(report_of(*rows))}
    regimes = {title: one.headers[2:] for title, one in found.items()}
    assert regimes == {
        "PyTorch's time over ours": ("call16", "256Ki", "16Mi"),
        "numba's time over ours": ("256Ki",),
        "µs of a call": ("call16",),
        "Share of a copy's speed": ("256Ki", "16Mi"),
        "Share of a triad's speed": ("16Mi",),
    }
    for one in found.values():
        assert all(len(line) == len(one.headers) for line in one.rows)
    assert found["numba's time over ours"].rows[-1][2:] == ("3.00",)


@pytest.mark.parametrize("name", ["speed.svg", "deep/speed.png"])
def test_pictures(name, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        row(),
        row(regime="16Mi", ratios={"torch": 0.9, "jax": 2.0}, of_copy=0.5, of_triad=0.4),
        row(regime="mixed", layout="mixed", dtype="float16+float32", threads=2, of_copy=0.7),
    ]
    plot.draw(report_of(*rows), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")


@pytest.mark.parametrize(
    ("threads", "words"),
    [([1], []), ([1, 2], ["hollow: 2 threads"]), ([8, 1, 3, 8], ["hollow: 3 or 8 threads"]),
     ([2], []), ([2, 4], [])],
)  # fmt: skip
def test_pictures_explain_the_hollow_points_that_they_have(threads, words):
    pytest.importorskip("matplotlib")
    figure = plot.library().Figure()
    plot._explain(figure, [row(threads=n) for n in threads])
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert [label for label in labels if label.startswith("hollow")] == words


def test_pictures_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert cli.main(["bench", "--plot", "x.svg"]) == 1
    assert "pip install 'aclnn-cpu[bench]'" in capsys.readouterr().err


def test_pictures_of_no_known_kind_are_refused_before_anything_is_measured(monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(matrix, "measured", lambda *arguments: pytest.fail("measured"))
    assert cli.main(["bench", "--plot", "x.docx"]) == 1
    assert capsys.readouterr().err.startswith("aclnn bench: x.docx: must end in one of ")


@pytest.mark.parametrize("option", ["--json", "--markdown", "--plot"])
def test_files_that_cannot_be_written_are_refused_before_anything_is_measured(
    option, tmp_path, monkeypatch, capsys
):
    if option == "--plot":
        pytest.importorskip("matplotlib")
    monkeypatch.setattr(matrix, "measured", lambda *arguments: pytest.fail("measured"))
    assert cli.main(["bench", option, str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"aclnn bench: {tmp_path}: Is a directory\n"


def test_looking_whether_files_can_be_written_leaves_no_trace(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(matrix, "measured", interrupted)
    (tmp_path / "old.json").write_text("old")
    arguments = ["--json", str(tmp_path / "old.json"), "--markdown", str(tmp_path / "new.md")]
    assert cli.main(["bench", *arguments]) == 130
    assert (tmp_path / "old.json").read_text() == "old"
    assert not (tmp_path / "new.md").exists()


def test_looking_whether_files_can_be_written_ends_no_pipe(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(matrix, "measured", interrupted)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert cli.main(["bench", "--json", str(tmp_path / "pipe")]) == 130
    hung_up = select.poll()  # as a pipe is once whoever wrote has closed it
    hung_up.register(reader, select.POLLHUP)
    assert not hung_up.poll(0)
    os.close(reader)


@pytest.mark.parametrize("with_rich", [True, False])
def test_progress_on_a_terminal(with_rich, monkeypatch, capsys):
    if with_rich:
        pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    if not with_rich:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert list(progress.tracked(["first", "second"], "label", str)) == ["first", "second"]
    shown = capsys.readouterr().err
    assert "label" in shown
    assert "second" in shown


# The command


def bench(*arguments):
    return cli.main(["bench", "--rounds", "1", "--quick", "--peers", *arguments])


def test_the_command_writes_everything(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "rows.json"
    status = bench(
        "--sizes", "16", "4096", "--layout-size", "4096", "--targets", "--json", str(path),
        "--markdown", str(tmp_path / "rows.md"), "--plot", str(tmp_path / "rows.svg"),
    )  # fmt: skip
    assert status == 0
    # Without peers it depends on the machine's instruction set whether any target applies.
    out = capsys.readouterr().out
    assert ("targets are met" in out) != ("no target applies" in out)
    assert "gelu_backward" in out
    report = json.loads(path.read_text())
    assert {"cpu", "cpus", "best_isa", "system"} == set(report["machine"])
    assert {"aclnn-cpu", "python", "numpy"} <= set(report["versions"])
    assert len(report["rows"]) == 4 * 5 * 3 + 36
    for one in report["rows"]:
        assert one["isa"] == isa.name()
        assert one["threads"] == 1
        for times in one["times"].values():
            assert 0 < times["least_us"] <= times["median_us"] <= times["most_us"]
    assert bool(report["targets"]) == ("targets are met" in out)
    for verdict in report["targets"]:
        assert {"operator", "quantity", "value", "bound", "met"} <= set(verdict)
    assert "| leaky_relu | bfloat16 |" in (tmp_path / "rows.md").read_text()
    assert (tmp_path / "rows.svg").exists()


def test_threads_and_instruction_sets_have_processes_of_their_own(tmp_path, capsys):
    path = tmp_path / "rows.json"
    status = bench(
        "--regimes", "call16", "--operators", "leaky_relu", "--dtypes", "float32",
        "--threads", "1", "2", "--isa", "generic", isa.available()[-1], "--json", str(path),
    )  # fmt: skip
    assert status == 0
    rows = json.loads(path.read_text())["rows"]
    combinations = {(one["isa"], one["threads"]) for one in rows}
    assert combinations == {(i, n) for i in ("generic", isa.available()[-1]) for n in (1, 2)}
    assert "target" not in capsys.readouterr().out  # nobody asked for them


def test_a_wrong_adapter_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(matrix, "PEERS", (Fake(factor=0.5),))
    monkeypatch.setattr(matrix, "ALL_PEERS", ("fake",))
    arguments = ["bench", "--operators", "leaky_relu", "--dtypes", "float32", "--sizes", "100"]
    assert cli.main([*arguments, "--rounds", "1", "--quick"]) == 1
    assert "WRONG" in capsys.readouterr().err


def test_the_default_is_the_whole_matrix():
    from aclnn.cli import bench as command

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command._settings(parser.parse_args([])).cells() == cells.select()
    quick = command._settings(parser.parse_args(["--quick"]))
    assert max(cell.regime.elements for cell in quick.cells()) == 1 << 18
    assert quick.rounds < matrix.ROUNDS


@pytest.mark.parametrize("name", [*chains.NAMED, "random_0", "random_1", "random_2"])
@pytest.mark.parametrize(
    "peer",
    [peers.OneByOne(), peers.Torch(), peers.LoopInC(), peers.Numexpr()],
    ids=lambda p: p.key,
)
def test_chains_compute_what_peers_compute_into_the_same_memory(name, peer):
    if peer.version() is None:
        pytest.skip(f"{peer.title} is not installed")
    (cell,) = cells.select([name], dtypes=["float32"], sizes=[4096], regimes=["4096"])
    memory = cells.build(cell)
    other = cells.Memory(memory.bases, memory.inputs, np.empty_like(memory.out))
    ours.prepare(cell, memory)()
    theirs = peer.prepare(cell, other)
    if theirs is None:
        pytest.skip(f"{peer.title} has no such chain")
    theirs()
    np.testing.assert_allclose(memory.out, other.out, rtol=1e-5, atol=1e-6)
    assert not np.isnan(memory.out).any()


@pytest.mark.parametrize("name", [*chains.NAMED, "random_2", "random_7", "random_17"])
def test_chains_in_operators_of_onnx_compute_what_we_compute(name):
    (cell,) = cells.select([name], dtypes=["float32"], sizes=[2048], regimes=["4096"])
    memory = cells.build(cell)
    ours.prepare(cell, memory)()
    functions = {one: getattr(np, one) for one in standard.FUNCTIONS if hasattr(np, one)}
    functions["erf"] = np.vectorize(math.erf, otypes=[np.float64])
    found = standard.compute(name, functions, [one.astype(np.float64) for one in memory.inputs])
    np.testing.assert_allclose(memory.out, found, rtol=1e-4, atol=1e-5)


def test_groups_stand_for_operators(tmp_path, capsys):
    assert {"silu", "silu_backward", "exp", "add", "erf"} <= {*cells.groups()["pointwise"]}
    path = tmp_path / "report.json"
    chosen = ["--operators", "products", "exp", "--sizes", "64", "--dtypes", "float32"]
    assert cli.main(["bench", *chosen, "--peers", "--rounds", "1", "--json", str(path)]) == 0
    report = json.loads(path.read_text())
    assert [row["operator"] for row in report["rows"]] == ["matmul", "exp"]
    assert "matmul" in capsys.readouterr().out


def test_declarations_say_what_pytorch_has():
    """What is compared with nothing has no form in ATen that writes into memory that is there."""
    torch = pytest.importorskip("torch")
    alone = [n for n in cells.groups()["pointwise"] if peers.torch_form(n) is None]
    writes = {
        f"{name}.{overload}"
        for name in alone
        if (packet := getattr(torch.ops.aten, name, None)) is not None
        for overload in packet.overloads()
        for form in [getattr(packet, overload)]
        if torch.Tag.generated not in form.tags
        and any(one.is_out for one in form._schema.arguments)
    }
    assert "swish" in alone
    assert writes == {"log_sigmoid_forward.output"}  # which writes its buffer, too


@pytest.mark.parametrize("threads", [1, 2])
def test_the_blas_computes_our_product(threads):
    pytest.importorskip("scipy")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    (cell,) = cells.select(["matmul"], dtypes=["float32"], sizes=[64 * 64])
    memory, blas = cells.build(cell), peers.Blas()
    ours.prepare(cell, memory)()
    product = memory.out.copy()
    memory.out.fill(np.nan)
    with threadpoolctl.threadpool_limits(None):
        blas.threads(threads)
        blas.prepare(cell, memory)()
    np.testing.assert_allclose(memory.out, product, rtol=0, atol=1e-4)
    assert blas.prepare(cell_of("leaky_relu"), memory) is None


def test_a_summary_has_means_and_the_cells_below_one():
    report = {
        "rows": [
            row(ratios={"torch": 4.0}, of_copy=None),
            row(operator="elu", ratios={"torch": 0.25}, of_copy=0.5),
            row(regime="16Mi", ratios={"torch": 0.5}, of_copy=0.9),
            row(regime="strided", layout="strided", ratios={"torch": 0.1}),
            row(ratios={}),
        ]
    }
    means, below = table.summary(report)
    assert means.headers == ("ISA", "threads", "dtype", "call16", "16Mi", "below 1")
    assert [line[3:] for line in means.rows] == [("1.00", "0.50", "2 of 3")]
    assert [(line[0], line[-2], line[-1]) for line in below.rows] == [
        ("elu", "0.25", "50%"), ("gelu_backward", "0.50", "90%"),
    ]  # fmt: skip
    assert table.summary({"rows": [row(ratios={"torch": 2.0})]})[0].rows
    assert len(table.summary({"rows": [row(ratios={"torch": 2.0})]})) == 1


def test_dtypes_that_an_operator_does_not_take_are_left_out():
    chosen = cells.select(["shrink"], regimes=["call16"])
    assert {cell.out.dtype for cell in chosen} == {"float32", "float16"}
