"""Speed targets of benchmark cells, and which cells miss them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any

from aclnn.benchmark.cells import LAYOUTS, OPERATORS
from aclnn.kernels import records

Row = dict[str, Any]
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that a bar is about.

    `value` gives it for a row, None where it was not measured; `pooled` takes the geometric mean
    over the rows of a regime.
    """

    words: str
    value: Callable[[Row], float | None]
    at_least: bool = True
    pooled: bool = False


QUANTITIES = {
    "torch": Quantity("PyTorch's time over ours", lambda row: row["ratios"].get("torch")),
    "torch_mean": Quantity(
        "PyTorch's time over ours, geometric mean",
        lambda row: row["ratios"].get("torch"),
        pooled=True,
    ),
    "peers": Quantity(
        "the fastest peer's time over ours",
        lambda row: min(
            (ratio for key, ratio in row["ratios"].items() if key != "blas"), default=None
        ),
    ),
    "blas": Quantity("the BLAS's time over ours", lambda row: row["ratios"].get("blas")),
    "ufunc": Quantity("our time over np.add's", lambda row: row["of_ufunc"], at_least=False),
    "microseconds": Quantity("µs", lambda row: row["times"]["aclnn"]["median_us"], at_least=False),
    "copy": Quantity("share of the copy's speed", lambda row: row["of_copy"]),
    "workspace": Quantity(
        "MiB of workspace per thread",
        lambda row: row["workspace_bytes"] / row["threads"] / MEBIBYTE,
        at_least=False,
    ),
    "scaling": Quantity("speed with 2 threads over 1", lambda row: row.get("scaling")),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound on a quantity in some regimes; of several that match a row, the first one holds.

    Attributes
    ----------
    regimes : tuple of str
        Names; empty for all.
    quantity : str
        A key of `QUANTITIES`.
    bound : float
    operators, dtypes : tuple of str
        Empty for all.
    best_isa : bool
        Whether it is meant for this CPU's best instruction set, or for lesser ones.
    """

    regimes: tuple[str, ...]
    quantity: str
    bound: float
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    best_isa: bool = True

    def matches(self, row: Row, best_isa: str) -> bool:
        return (
            (not self.regimes or row["regime"] in self.regimes)
            and (not self.operators or row["operator"] in self.operators)
            and (not self.dtypes or row["dtype"] in self.dtypes)
            and self.best_isa == (row["isa"] == best_isa)
        )


_GELU = ("gelu_backward",)
_MEMORY_BOUND = tuple([name for name in OPERATORS if records()[name].cost < 0.5])
_COMPUTE_BOUND = tuple([name for name in OPERATORS if name not in _MEMORY_BOUND])

BARS = (
    Bar(("call16",), "torch", 4.0),
    Bar(("call16",), "ufunc", 1.5),
    Bar(("phases16",), "torch", 2.0),
    Bar(("run16",), "microseconds", 0.15),
    Bar(("4096",), "torch", 8.0, _GELU),
    Bar(("4096",), "torch", 3.0),
    Bar(("256Ki",), "torch", 1.5),
    Bar(("256Ki",), "torch_mean", 2.0),
    Bar(("256Ki",), "scaling", 1.8, _COMPUTE_BOUND),
    Bar(("1Mi",), "torch", 1.0),
    Bar(("16Mi",), "torch", 1.0, _GELU, ("float32",)),
    Bar(("16Mi",), "torch", 1.2),
    Bar(("16Mi",), "torch_mean", 1.4),
    Bar(("16Mi",), "copy", 0.9),
    Bar(LAYOUTS, "torch", 2.0),
    Bar(LAYOUTS, "torch_mean", 3.0),
    Bar(LAYOUTS, "workspace", 1.0),
    Bar((), "peers", 1.0),
    Bar((), "blas", 1 / 1.05),
    Bar(("16Mi",), "torch", 1.0, _MEMORY_BOUND, best_isa=False),
    Bar(("256Ki",), "torch", 0.8, ("elu_backward", "gelu_backward"), best_isa=False),
)


def bar_for(quantity: str, row: Row, best_isa: str) -> Bar | None:
    """The bar that holds for a row.

    >>> row = {"regime": "4096", "operator": "gelu_backward", "dtype": "float16", "isa": "v4"}
    >>> bar_for("torch", row, "v4").bound, bar_for("torch", row | {"operator": "elu"}, "v4").bound
    (8.0, 3.0)
    """
    bars = (bar for bar in BARS if bar.quantity == quantity and bar.matches(row, best_isa))
    return next(bars, None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one cell, or of one regime's mean, against its bar."""

    operator: str
    dtype: str
    regime: str
    threads: int
    isa: str
    quantity: str
    value: float
    bound: float

    @property
    def met(self) -> bool:
        if QUANTITIES[self.quantity].at_least:
            return self.value >= self.bound
        return self.value <= self.bound

    def to_text(self) -> str:
        """A line for people.

        >>> Verdict("gelu_backward", "float32", "16Mi", 2, "v4", "torch", 0.71, 1.0).to_text()
        "gelu_backward float32 16Mi, v4, 2 threads: PyTorch's time over ours 0.71, wanted at least 1"
        """
        quantity = QUANTITIES[self.quantity]
        where = " ".join(filter(None, (self.operator, self.dtype, self.regime)))
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        side = "at least" if quantity.at_least else "at most"
        return (
            f"{where}, {self.isa}, {threads}: {quantity.words} {self.value:.2f}, "
            f"wanted {side} {self.bound:g}"
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"met": self.met}


def judged(report: dict[str, Any]) -> list[Verdict]:
    """The verdicts on everything in a report that has a bar and was measured.

    Parameters
    ----------
    report : dict
        As `aclnn.benchmark.matrix.measured` gives it.

    Returns
    -------
    list of Verdict

    Examples
    --------
    >>> judged({"rows": [], "machine": {"best_isa": "v4"}})
    []
    """
    best, rows = report["machine"]["best_isa"], _with_scaling(report["rows"])
    verdicts = []
    for name, quantity in QUANTITIES.items():
        barred = [(row, bar) for row in rows if (bar := bar_for(name, row, best)) is not None]
        verdicts += (
            _pooled(name, quantity, barred) if quantity.pooled else _single(name, quantity, barred)
        )
    return verdicts


def _single(name: str, quantity: Quantity, barred: Iterable[tuple[Row, Bar]]) -> list[Verdict]:
    return [
        Verdict(
            row["operator"], row["dtype"], row["regime"], row["threads"], row["isa"],
            name, value, bar.bound,
        )
        for row, bar in barred
        if (value := quantity.value(row)) is not None
    ]  # fmt: skip


def _pooled(name: str, quantity: Quantity, barred: Sequence[tuple[Row, Bar]]) -> list[Verdict]:
    """One verdict per regime; all layouts together are one."""
    groups: dict[tuple[str, int, str, float], list[float]] = {}
    for row, bar in barred:
        value = quantity.value(row)
        if value is not None and math.isfinite(value):
            regime = "layouts" if row["layout"] else row["regime"]
            groups.setdefault((regime, row["threads"], row["isa"], bar.bound), []).append(value)
    return [
        Verdict("", "", regime, threads, isa, name, geometric_mean(values), bound)
        for (regime, threads, isa, bound), values in groups.items()
    ]


def _with_scaling(rows: Iterable[Row]) -> list[Row]:
    """The rows, those of two threads with how much faster they are than on one."""
    rows = list(rows)

    def key(row: Row) -> tuple[Any, ...]:
        return row["operator"], row["dtype"], row["regime"], row["isa"]

    def time(row: Row) -> float:
        return row["times"]["aclnn"]["median_us"]

    alone = {key(row): time(row) for row in rows if row["threads"] == 1}
    return [
        row | {"scaling": alone[key(row)] / time(row)}
        if row["threads"] == 2 and key(row) in alone
        else row
        for row in rows
    ]
