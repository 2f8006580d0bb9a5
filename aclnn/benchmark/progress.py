"""A progress bar on standard error, with rich if it is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def tracked(items: Sequence[T], label: str, name: Callable[[T], str]) -> Iterator[T]:
    """Go through `items` and show how far it has come, and what comes next.

    >>> [item for item in tracked("ab", "letters", str)]
    ['a', 'b']
    """
    if not sys.stderr.isatty():
        return iter(items)
    drawn = _drawn_by_rich if importlib.util.find_spec("rich") else _plain
    return drawn(items, label, name)


def _plain(items: Sequence[T], label: str, name: Callable[[T], str]) -> Iterator[T]:
    for done, item in enumerate(items):
        print(f"\r\x1b[K{label}: {done}/{len(items)} {name(item)}", end="", file=sys.stderr)
        yield item
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _drawn_by_rich(items: Sequence[T], label: str, name: Callable[[T], str]) -> Iterator[T]:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.fields[label]}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}"),
    )
    # Drawn between measurements only: a thread that redraws would be measured too.
    with progress.Progress(
        *columns, console=Console(stderr=True), auto_refresh=False, transient=True
    ) as bar:
        task = bar.add_task("", total=len(items), label=label)
        for item in items:
            bar.update(task, description=name(item), refresh=True)
            yield item
            bar.advance(task)
