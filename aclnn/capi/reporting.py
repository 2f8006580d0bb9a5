"""A page about what a program in C ran, written at its end: ``ACLNN_REPORT=file``."""

from __future__ import annotations

import os
import sys
from html import escape
from pathlib import Path
from typing import Any

from aclnn import environment
from aclnn.compiler._compiled_call import add_observer, remove_observer
from aclnn.graph.views.notebook import folded, view
from aclnn.reports.config import config
from aclnn.reports.profiling import Profile
from aclnn.reports.times import human_time

MOST_RUNS = 10_000  # whose times are kept: a program may run for days
MOST_PLANS = 60  # that are shown, those that took longest

_profile = Profile()
_seen = [0]


def start() -> None:
    """Observe runs from now on, if a page is asked for."""
    if environment.REPORT.read() is not None:
        add_observer(_observe)


def _observe(plan: Any, begin: int, end: int, events: Any, submitted: int | None = None) -> None:
    _seen[0] += 1
    if len(_profile.runs) < MOST_RUNS:
        _profile.record(plan, begin, end, events, submitted)


def write() -> None:
    """Write the page, if one is asked for."""
    path = environment.REPORT.read()
    if path is None:
        return
    remove_observer(_observe)
    path.write_text(page(_profile, _seen[0], _program()), encoding="utf-8")


def _program() -> str:
    """The command line of the process."""
    try:
        words = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    except OSError:
        return sys.executable
    return " ".join(os.fsdecode(word) for word in words if word)


def page(profile: Profile, n_runs: int, program: str) -> str:
    """Report of runs: times, and graph, workspace plan and schedule of each plan.

    Parameters
    ----------
    profile : Profile
        The runs.
    n_runs : int
        How many there were; times of the first ones are kept.
    program : str
        The program's command line.

    Returns
    -------
    str
        A whole page, which needs no other file.

    Examples
    --------
    >>> import numpy as np, aclnn
    >>> with aclnn.profile() as profile:
    ...     _ = aclnn.gelu(np.ones(4, np.float32))
    >>> text = page(profile, 1, "a.out")
    >>> text.startswith("<!doctype html>"), "gelu" in text
    (True, True)
    """
    plans: dict[Any, list[Any]] = {}
    for run in profile.runs:
        plans.setdefault(run.description, []).append(run)
    longest = sorted(plans.values(), key=lambda runs: -sum(run.end - run.begin for run in runs))
    kept = f", times of the first {len(profile.runs)}" if n_runs > len(profile.runs) else ""
    facts = config()
    words = (
        f"{n_runs} runs of {len(plans)} plans{kept}, {human_time(profile.total_ns)} in all; "
        f"{facts['soc']}, instruction set {facts['isa']['name']}, {facts['threads']['set']} threads"
    )
    sections = "".join(_plan(runs) for runs in longest[:MOST_PLANS])
    times = profile._repr_html_() if profile.runs else "<p>nothing ran</p>"
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>:root { color-scheme: light dark; } body { font: 15px/1.55 system-ui, sans-serif; "
        "max-width: 80rem; margin: 0 auto; padding: 1.5rem; } pre { overflow: auto; }</style>\n"
        f"<title>{escape(program)}</title>\n<h1>{escape(program)}</h1>\n<p>{escape(words)}</p>\n"
        f"<h2>Times</h2>\n{times}\n<h2>Plans, the one that took longest first</h2>\n{sections}\n</html>\n"
    )


def _plan(runs: list[Any]) -> str:
    """A plan: its runs, graph, workspace and schedule."""
    plan = runs[0].plan
    entries = getattr(plan.operator, "entries", ())  # a captured model has none
    name = entries[0].name if entries else plan.operator.name
    title = f"{name}: {len(runs)} runs, workspace {plan.workspace_size} bytes"
    parts = [
        folded("operations", f"<pre>{escape(plan.graph.to_text())}</pre>"),
        folded("graph", plan.graph.to_svg(plan.workspace)),
        folded("workspace plan", plan.workspace.to_svg()),
        folded("schedule", f"<pre>{escape(plan.schedule.to_text())}</pre>"),
    ]
    return f"<h3>{escape(title)}</h3>\n{view(*parts)}\n"
