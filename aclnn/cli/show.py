"""How commands print: rich tables where someone looks at a terminal, else plain text."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aclnn.acl.errors import invalid
from aclnn.graph.views.extras import need


@dataclass(frozen=True, slots=True)
class View:
    """How to show something: as text, and optionally as rich tables and as JSON data."""

    text: Callable[[Any], str]
    rich: Callable[[Any], Any] | None = None
    data: Callable[[Any], Any] | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that choose between plain text and rich tables."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--rich", action="store_true", help="rich tables (default on a terminal, if installed)"
    )
    chosen.add_argument("--plain", action="store_true", help="plain text, also on a terminal")


def wants_rich(options: argparse.Namespace) -> bool:
    """Whether to print rich tables."""
    if options.rich or options.plain:
        return bool(options.rich)
    return sys.stdout.isatty() and importlib.util.find_spec("rich") is not None


def show(options: argparse.Namespace, parts: Sequence[tuple[View, Any]]) -> None:
    """Print things, each with its view."""
    if not wants_rich(options):
        print("\n\n".join(view.text(thing) for view, thing in parts))
        return
    console = need("rich.console", "rich tables").Console()
    for view, thing in parts:
        if view.rich is None:
            console.print(view.text(thing), markup=False, highlight=False, soft_wrap=True)
        else:
            console.print(view.rich(thing))


def numbered(name: str, place: int, count: int) -> Path:
    """The file of one of several calls: with its number, unless it is alone."""
    path = Path(name)
    if count == 1:
        return path
    if not path.name:
        raise invalid(f"{name} is no name of a file")
    return path.with_stem(f"{path.stem}-{place}")
