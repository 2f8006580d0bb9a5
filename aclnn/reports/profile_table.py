"""The table of a profile: rows of steps, of what is between them, and of whole runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from aclnn.graph.views.tables import Sheet, make, to_rich, to_text
from aclnn.graph.views.text import dims
from aclnn.reports.times import ExecutorTime, StepTime

if TYPE_CHECKING:
    from aclnn.reports.profiling import Profile


def profile_to_text(profile: Profile, wide: bool) -> str:
    return to_text(sheet_of(profile.executors), wide=wide)


def profile_to_rich(profile: Profile, wide: bool) -> Any:
    return to_rich(sheet_of(profile.executors), wide=wide)


def sheet_of(executors: Sequence[ExecutorTime]) -> Sheet:
    """The table with all executors that ran."""
    if not executors:
        return ("nothing ran",)
    rows = [row for one in executors for row in _rows(one, len(executors) > 1)]
    headers = (
        "step", "shape", "dtypes", "elements", "runs", "threads", "median µs", "least µs",
        "bytes read", "bytes written", "GB/s", "GFLOP/s", "work", "per second", "share",
    )  # fmt: skip
    right = ",".join(("shape", *headers[3:]))
    wide = "elements,runs,least µs,bytes read,bytes written,GB/s,GFLOP/s"
    return (make(headers, rows, right=right, accent="step", wide=wide),)


def _microseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.2f}"


def _rows(one: ExecutorTime, several: bool) -> Iterator[tuple[Any, ...]]:
    """Rows of the table: an executor's steps, then its whole runs."""
    for step in one.steps:
        yield (
            step.name,
            _extent_words(step),
            _dtype_words(step.dtypes, step.written),
            f"{step.elements:,}",
            len(step.times),
            step.threads,
            _microseconds(step.median),
            _microseconds(min(step.times)),
            f"{step.bytes_read:,}",
            f"{step.bytes_written:,}",
            f"{step.bandwidth:.1f}",
            f"{step.gflops:.1f}" if step.flops else "",
            *_work_words(step.bytes_read + step.bytes_written, step.flops, step.median),
            f"{step.share:.0%}",
        )
        for op in step.ops:
            estimate = _microseconds(op.estimated_ns)
            yield (f"≈ {op.node}", "", "", "", "", "", estimate, *[""] * 8)
    yield _time_row("between steps", one.between, share=f"{one.between_share:.0%}")
    moved = one.bytes_read + one.bytes_written
    name = f"whole run, {one.operator}" if several else "whole run"
    yield _time_row(
        name, one.times, f"{one.bytes_read:,}", f"{one.bytes_written:,}",
        f"{moved / max(one.median, 1.0):.1f}", _work_words(moved, 0, one.median), f"{one.share:.0%}",
    )  # fmt: skip
    if one.queued:
        yield _time_row("in the stream's queue", one.queued)


def _time_row(
    name: str,
    times: Sequence[int],
    read: str = "",
    written: str = "",
    speed: str = "",
    work: tuple[str, str] = ("", ""),
    share: str = "",
) -> tuple[Any, ...]:
    took = _microseconds(float(median(times))), _microseconds(min(times))
    return (name, "", "", "", len(times), "", *took, read, written, speed, "", *work, share)


def _extent_words(step: StepTime) -> str:
    """The loops' shape, of a matrix product its sizes: ``16 x 64 x 64`` is m x k x n."""
    if not step.extent:
        return dims(step.shape)
    *batch, m, k, n = step.extent
    return (f"{batch[0]} of " if batch else "") + f"{m} × {k} × {n}"


def _dtype_words(names: Sequence[str], written: int) -> str:
    """Dtypes that are read and those that are written, each said once: of several the short names.

    >>> _dtype_words(("float16", "float16", "float32"), 1), _dtype_words(("int8", "int8"), 1)
    ('f16→f32', 'int8')
    """
    first = len(names) - written
    reads, writes = (tuple(dict.fromkeys(part)) for part in (names[:first], names[first:]))
    if reads in ((), writes):
        return writes[0] if len(writes) == 1 else ",".join(map(_short, writes))
    return "→".join(",".join(map(_short, part)) for part in (reads, writes))


def _short(dtype: str) -> str:
    """A dtype by its first letter and its bits, as the command line takes it.

    >>> _short("bfloat16"), _short("float8_e4m3fn"), _short("uint8"), _short("bool")
    ('bf16', 'f8_e4m3fn', 'u8', 'bool')
    """
    for name, letter in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i")):
        if dtype.startswith(name):
            return letter + dtype[len(name) :]
    return dtype


def _work_words(moved: int, flops: int, took: float) -> tuple[str, str]:
    """Bytes or operations, and as many in a second: of one width, so that tables do not jump."""
    if flops:
        return f"{flops / 1e6:,.2f} MFLOP", f"{flops / max(took, 1.0):6.1f} GFLOP/s"
    return f"{moved:,} B", f"{moved / max(took, 1.0):6.1f} GB/s"
