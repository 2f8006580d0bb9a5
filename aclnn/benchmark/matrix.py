"""A benchmark run: a report of rows, as plain data.

Thread counts and instruction sets cannot all be changed in a process that has started, so that each
combination of them is measured in a process of its own; what is compared always runs in one.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import aclnn
from aclnn import isa
from aclnn.acl.errors import AclnnError, invalid
from aclnn.benchmark import attention, cells, limits, ours, products, rows
from aclnn.benchmark.attention import AttentionCell
from aclnn.benchmark.cells import Cell, Memory
from aclnn.benchmark.measure import Sample, Timer, alternate, looped
from aclnn.benchmark.peers import PEERS, TITLES, Call, Peer
from aclnn.benchmark.products import ProductCell
from aclnn.benchmark.progress import tracked
from aclnn.benchmark.rows import RowCell
from aclnn.compiler import settings
from aclnn.reports.config import config

Row = dict[str, Any]
Report = dict[str, Any]

FORMAT = 1
ALL_PEERS = tuple(peer.key for peer in PEERS)
# Rounds, and seconds of each contender's turn in a round.
ROUNDS, BUDGET = 9, 4e-3
# Seconds until the threads of the contender before have stopped spinning for more work.
PAUSE = 0.01
# Up to so many elements the call is what takes time: compared with that of a NumPy ufunc.
UFUNC_ELEMENTS = 64
# A slowest round of more than so many times the fastest is worth mentioning.
UNSTEADY = 2
# Checks of peers: how many elements, how many of these have to agree, and how closely.
CHECKED, AGREEING = 1 << 16, 0.99
CLOSE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 2e-2}


@dataclass(frozen=True, slots=True)
class Settings:
    """Cells to measure, and the number of repetitions.

    Attributes
    ----------
    operators, dtypes, regimes, sizes, layout_elements
        As for `aclnn.benchmark.cells.select`.
    peers : sequence of str
        Keys of the peers; those that are not installed are left out.
    rounds : int
        Medians are of so many.
    budget : float
        Seconds that one contender's measurement takes in a round, at least.
    axes, lengths : sequence, optional
        As for `aclnn.benchmark.rows.select`, whose cells are measured if axes are given.
    keys : sequence of int, optional
        As for `aclnn.benchmark.attention.select`, whose cells are measured if there are some.
    shapes : sequence of (int, int, int), optional
        As for `aclnn.benchmark.products.select`, whose cells are measured if there are some.
    """

    operators: Sequence[str] = cells.OPERATORS
    dtypes: Sequence[str] = tuple(cells.DTYPES)
    regimes: Sequence[str] | None = None
    sizes: Sequence[int] | None = None
    layout_elements: int = cells.LAYOUT_ELEMENTS
    peers: Sequence[str] = ALL_PEERS
    rounds: int = ROUNDS
    budget: float = BUDGET
    axes: Sequence[str] | None = None
    lengths: Sequence[int] = rows.LENGTHS
    keys: Sequence[int] | None = None
    shapes: Sequence[Sequence[int]] | None = None

    def cells(self) -> Sequence[Cell | RowCell | AttentionCell | ProductCell]:
        if self.shapes is not None:
            return products.select(shapes=self.shapes, dtypes=self.dtypes)
        if self.keys is not None:
            return attention.select(keys=self.keys, dtypes=self.dtypes)
        if self.axes is not None:
            return rows.select(
                self.operators, axes=self.axes, lengths=self.lengths, dtypes=self.dtypes
            )
        return cells.select(
            self.operators,
            dtypes=self.dtypes,
            regimes=self.regimes,
            sizes=self.sizes,
            layout_elements=self.layout_elements,
        )


def measured(settings: Settings, threads: Sequence[int] = (1,), isas: Sequence[str] = ()) -> Report:
    """Measure the matrix with each number of threads, and on each instruction set.

    Parameters
    ----------
    settings : Settings
        What to measure.
    threads : sequence of int
        Of every contender.
    isas : sequence of str
        Instruction sets of our own kernels; by default the one in use.

    Returns
    -------
    dict
        ``machine``, ``versions``, ``settings``, ``rows`` and ``notes``.

    Raises
    ------
    AclnnError
        If an instruction set does not exist here, or a run failed.

    Examples
    --------
    >>> quick = Settings(["leaky_relu"], ["float32"], ["call16"], peers=(), rounds=1, budget=1e-5)
    >>> (row,) = measured(quick)["rows"]
    >>> row["operator"], row["elements"], row["times"]["aclnn"]["median_us"] > 0
    ('leaky_relu', 16, True)
    """
    unknown = [name for name in isas if name not in isa.available()]
    if unknown:
        raise invalid(
            f"instruction set is {unknown[0]!r}, must be one of {', '.join(isa.available())} on this CPU"
        )
    combinations = [(name, n) for name in isas or [isa.name()] for n in threads]
    if len(combinations) == 1 and not isas:
        return measured_here(settings, threads[0])
    return _merged([_measured_in_child(settings, *combination) for combination in combinations])


def measured_here(settings: Settings, threads: int) -> Report:
    """Measure in this process, with so many threads."""
    before = aclnn.get_num_threads()
    aclnn.set_num_threads(threads)
    try:
        peers, notes = _present(settings.peers, threads)
        label = f"{isa.name()}, {threads} thread{'s' if threads > 1 else ''}"
        found: list[Row] = []
        row: Row | None
        for cell in tracked(settings.cells(), label, lambda cell: cell.title):
            if isinstance(cell, RowCell | AttentionCell | ProductCell):
                row, remarks = measure_rows(cell, peers, threads, settings)
            else:
                row, remarks = _measured(cell, peers, threads, settings)
            found += [row] if row else []
            notes += remarks
    finally:
        aclnn.set_num_threads(before)
    notes += _unsteady(found, label)
    versions = config()["versions"] | {peer.title: peer.version() for peer in peers}
    return {
        "format": FORMAT,
        "machine": machine(),
        "versions": versions,
        "settings": asdict(settings),
        "rows": found,
        "notes": notes,
    }


def _unsteady(rows: Sequence[Row], label: str) -> list[str]:
    """A word about how often something else had the CPUs."""
    shaken = sum(
        any(t["most_us"] > UNSTEADY * t["least_us"] for t in row["times"].values()) for row in rows
    )
    if not shaken:
        return []
    return [
        f"{label}: in {shaken} of {len(rows)} cells some rounds took more than {UNSTEADY} times as "
        "long as others; a machine that does nothing else gives better figures"
    ]


def machine() -> dict[str, Any]:
    """Facts that figures depend on: CPU, number of CPUs, best instruction set, system.

    >>> machine()["best_isa"] == isa.available()[-1]
    True
    """
    return {
        "cpu": _cpu_name(),
        "cpus": settings.usable_cpus(),
        "best_isa": isa.available()[-1],
        "system": f"{platform.system()} {platform.machine()}",
    }  # fmt: skip


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _present(keys: Sequence[str], threads: int) -> tuple[list[Peer], list[str]]:
    """The peers that are asked for and can be had, with the number of threads to use."""
    found, notes = [], []
    for peer in PEERS:
        if peer.key not in keys:
            continue
        try:
            if peer.version() is None:
                raise ModuleNotFoundError("not installed")
            peer.threads(threads)
        except Exception as error:  # another library's trouble must not end our run
            notes.append(f"{peer.title} left out: {error}")
        else:
            found.append(peer)
    return found, notes


def _measured(
    cell: Cell, peers: Iterable[Peer], threads: int, settings: Settings
) -> tuple[Row | None, list[str]]:
    """As `measure_cell`; no row of what the C-shaped functions refuse, which know fewer dtypes and SoCs."""
    try:
        return measure_cell(cell, peers, threads, settings)
    except AclnnError as error:
        return None, [f"{cell.title} left out: {error}"]


def measure_cell(
    cell: Cell, peers: Iterable[Peer], threads: int, settings: Settings
) -> tuple[Row, list[str]]:
    """Measure one cell: its row, and what has to be said about it."""
    memory = cells.build(cell)
    call = ours.prepare(cell, memory)
    call()
    expected = _sample_of(memory.out)
    timers: dict[str, Timer] = {"aclnn": looped(call)}
    notes = []
    for peer in peers:
        theirs, note = _checked(peer, cell, memory, expected)
        if theirs is not None:
            timers[peer.key] = _threaded(peer, threads, theirs)
        if note:
            notes.append(f"{peer.title}, {cell.title}: {note}")
    keys = [key for key in timers if key != "aclnn"]
    timers |= _yardsticks(cell, memory, threads)
    pause = PAUSE if threads > 1 else 0.0
    samples = alternate(timers, settings.rounds, settings.budget, pause)
    index = {
        "operator": cell.operator,
        "dtype": cell.dtype,
        "regime": cell.regime.name,
        "layout": cell.regime.layout,
        "elements": cell.regime.elements,
        "workspace_bytes": ours.workspace_size(cell, memory),
    }
    return _row(index, memory.nbytes, threads, samples, keys), notes


def measure_rows(
    cell: RowCell | AttentionCell | ProductCell,
    peers: Sequence[Peer],
    threads: int,
    settings: Settings,
) -> tuple[Row, list[str]]:
    """Measure a cell of a row-wise operator, of attention, which only PyTorch has besides, or a product."""
    source: Any = _SOURCES[type(cell)]
    made = source.build(cell)
    call = source.ours(cell, made)
    timers: dict[str, Timer] = {"aclnn": looped(call)}
    notes = []
    by_key = {peer.key: peer for peer in peers}
    contenders = {"torch": source.theirs(cell, made)} if "torch" in by_key else {}
    if isinstance(cell, ProductCell):
        contenders |= products.others(cell, made, tuple(by_key))
    expected = rows.first_result(call())
    for key, theirs in contenders.items():
        if _agreeing(rows.first_result(theirs()), expected, _closeness(cell)) < AGREEING:
            notes.append(f"{TITLES[key]}, {cell.title}: left out, WRONG: its results are not ours")
            continue
        peer = by_key.get("torch" if key == "onednn" else key)
        timers[key] = looped(theirs) if peer is None else _threaded(peer, threads, theirs)
    keys = [key for key in timers if key != "aclnn"]
    timers |= limits.timers(cell.nbytes, threads)
    pause = PAUSE if threads > 1 else 0.0
    samples = alternate(timers, settings.rounds, settings.budget, pause)
    return _row(cell.place, cell.nbytes, threads, samples, keys), notes


_SOURCES = {RowCell: rows, AttentionCell: attention, ProductCell: products}


def _closeness(cell: RowCell | AttentionCell | ProductCell) -> float:
    """Tolerance of results; that of products grows with the root of k."""
    close = CLOSE[cell.dtype]
    return close * cell.shape[1] ** 0.5 if isinstance(cell, ProductCell) else close


def _threaded(peer: Peer, threads: int, call: Call) -> Timer:
    """Time calls with so many threads: libraries that share one OpenMP change each other's number."""
    timer = looped(call)

    def timer_with_threads(count: int) -> float:
        peer.threads(threads)
        return timer(count)

    return timer_with_threads


def _yardsticks(cell: Cell, memory: Memory, threads: int) -> dict[str, Timer]:
    """Costs of calls and bytes on this machine."""
    if cell.regime.elements <= UFUNC_ELEMENTS:
        a, b, c = (np.ones(cell.regime.elements, np.float32) for _ in range(3))
        return {"np.add": looped(partial(np.add, a, b, out=c))}
    return limits.timers(memory.nbytes, threads)


def _row(
    index: Row, nbytes: int, threads: int, samples: dict[str, Sample], peers: Sequence[str]
) -> Row:
    """Measurements of a cell, behind the columns that identify it."""
    mine = samples["aclnn"].median
    against = {name: s.median / mine for name, s in samples.items() if name != "aclnn"}
    return {
        **index,
        "threads": threads,
        "isa": isa.name(),
        "bytes": nbytes,
        "times": {name: _microseconds(sample) for name, sample in samples.items()},
        "ratios": {key: against[key] for key in peers},
        "of_copy": against.get("copy"),
        "of_triad": against.get("triad"),
        "of_ufunc": 1 / against["np.add"] if "np.add" in against else None,
        "gigabytes_per_second": nbytes / mine / 1e9,
    }


def _microseconds(sample: Sample) -> dict[str, float]:
    return {
        "median_us": sample.median * 1e6,
        "least_us": sample.least * 1e6,
        "most_us": sample.most * 1e6,
        "repeat": sample.repeat,
    }


def _checked(
    peer: Peer, cell: Cell, memory: Memory, expected: np.ndarray
) -> tuple[Call | None, str]:
    """A peer's call if its result is ours, give or take; otherwise none, and why."""
    try:
        call = peer.prepare(cell, memory)
        if call is None:
            return None, ""
        memory.out.fill(np.nan)
        result = call()
    except Exception as error:  # another library's trouble must not end our run
        return None, f"left out, {type(error).__name__}: {error}"
    actual = _sample_of(memory.out if peer.writes_out else np.asarray(result))
    close = max(CLOSE[operand.dtype] for operand in (*cell.inputs, cell.out))
    agreeing = _agreeing(actual, expected, close)
    if agreeing < AGREEING:
        return None, f"left out, WRONG: {1 - agreeing:.0%} of its results are not ours"
    return call, ""


def _agreeing(actual: np.ndarray, expected: np.ndarray, close: float) -> float:
    """The share of elements that are close."""
    with np.errstate(all="ignore"):
        return float(np.isclose(actual, expected, rtol=close, atol=close, equal_nan=True).mean())


def _sample_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1)[:CHECKED].astype(np.float32)


def _measured_in_child(settings: Settings, isa_name: str, threads: int) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        done = subprocess.run(
            [sys.executable, "-m", "aclnn.benchmark.matrix", str(threads), str(path)],
            input=json.dumps(asdict(settings)),
            env={**os.environ, "ACLNN_ISA": isa_name},
            text=True,
            check=False,
        )
        if done.returncode:
            raise invalid(
                f"measuring {isa_name} with {threads} threads ended with status {done.returncode}"
            )
        return json.loads(path.read_text(encoding="utf-8"))


def _merged(reports: Sequence[Report]) -> Report:
    first = reports[0]
    rows = [row for report in reports for row in report["rows"]]
    notes = list(dict.fromkeys(note for report in reports for note in report["notes"]))
    return first | {"rows": rows, "notes": notes}


def _main(threads: str, path: str) -> None:
    report = measured_here(Settings(**json.load(sys.stdin)), int(threads))
    Path(path).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
