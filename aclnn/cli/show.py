"""Printing: rich tables where someone looks at a terminal, else plain text."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aclnn.acl.errors import invalid
from aclnn.graph.extras import need
from aclnn.graph.summaries import printable


@dataclass(frozen=True, slots=True)
class View:
    """Forms of something to show: text, and optionally rich tables and JSON data.

    Of tables that have a wide form, `text` and `rich` take `wide=True`.
    """

    text: Callable[..., str]
    rich: Callable[..., Any] | None = None
    data: Callable[[Any], Any] | None = None
    has_wide: bool = False

    def as_text(self, thing: Any, wide: bool) -> str:
        return self.text(thing, wide=True) if wide and self.has_wide else self.text(thing)

    def as_rich(self, thing: Any, wide: bool) -> Any:
        assert self.rich is not None
        return self.rich(thing, wide=True) if wide and self.has_wide else self.rich(thing)


def table_of(named: Callable[[Any], Any], data: Callable[[Any], Any] | None = None) -> View:
    """The view of something with the methods `to_text` and `to_rich`, which take `wide`."""
    return View(
        lambda thing, **form: named(thing).to_text(**form),
        lambda thing, **form: named(thing).to_rich(**form),
        data,
        has_wide=True,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that choose between plain text and rich tables."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--rich", action="store_true", help="rich tables (default on a terminal, if installed)"
    )
    chosen.add_argument("--plain", action="store_true", help="plain text, also on a terminal")
    parser.add_argument(
        "--wide", action="store_true", help="all columns of tables, in lines of any length"
    )


def wants_rich(options: argparse.Namespace) -> bool:
    """Whether to print rich tables."""
    if options.rich or options.plain:
        return bool(options.rich)
    return sys.stdout.isatty() and importlib.util.find_spec("rich") is not None


def show(options: argparse.Namespace, parts: Sequence[tuple[View, Any]]) -> None:
    """Print things, each with its view."""
    if not wants_rich(options):
        with progress("preparing"):  # a profile runs, pictures are laid out
            words = "\n\n".join(view.as_text(thing, options.wide) for view, thing in parts)
        print(printable(words))
        return
    console = need("rich.console", "rich tables").Console()
    for view, thing in parts:
        if view.rich is None:
            with progress("preparing"):
                words = view.as_text(thing, options.wide)
            console.print(printable(words), markup=False, highlight=False, soft_wrap=True)
        else:
            with progress("preparing"):
                table = view.as_rich(thing, options.wide)
            console.print(table)


@contextmanager
def until_pipe_closes() -> Iterator[None]:
    """Stop printing where the reader has stopped reading, such as ``head``, and go on after it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_output()


def give_up_output() -> None:
    """Send what is still to be printed nowhere: the interpreter writes the rest when it ends."""
    with suppress(OSError, ValueError):  # where standard output is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def progress(words: str) -> Iterator[None]:
    """Say on a terminal what takes long, and for how many seconds already; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    shown = threading.Thread(target=_tick, args=(words, done), daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()


def _tick(words: str, done: threading.Event) -> None:
    begin, written = time.monotonic(), False
    while not done.wait(1.0):
        print(f"\r{words}, {time.monotonic() - begin:.0f} s", end="", file=sys.stderr, flush=True)
        written = True
    if written:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def numbered(name: str, index: int, count: int) -> Path:
    """The file of one of several calls: with its number, unless it is alone."""
    path = Path(name)
    if count == 1:
        return path
    if not path.name:
        raise invalid(f"{name} is no name of a file")
    return path.with_stem(f"{path.stem}-{index}")
