"""Look at one executor from every side: graph, passes, plan, schedule, profile."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aclnn.cli import calls
from aclnn.graph.passes import PassStep

VIEWS: dict[str, Callable[[Any], str]] = {
    "built": lambda ex: ex.graph_as_built.to_text(),
    "passes": lambda ex: "\n".join(map(passed, ex.passes)),
    "graph": lambda ex: ex.graph.to_text(),
    "plan": lambda ex: ex.plan.to_text(),
    "schedule": lambda ex: ex.schedule.to_text() if ex.schedule else "nothing to do",
    "profile": lambda ex: ex.profile(repeat=20).to_text(),
    "dot": lambda ex: ex.graph.to_dot(),
    "svg": lambda ex: ex.graph.to_svg(),
    "plan-svg": lambda ex: ex.plan.to_svg(),
    "json": lambda ex: ex.graph.to_json(indent=2),
    "plan-json": lambda ex: ex.plan.to_json(indent=2),
    "schedule-json": lambda ex: ex.schedule.to_json(indent=2) if ex.schedule else "null",
    "chrome": lambda ex: ex.profile(repeat=20).to_chrome_trace(),
    "snapshot": lambda ex: json.dumps(ex.plan.to_memory_snapshot()),
}
_SUMMARY = ("built", "passes", "graph", "plan", "schedule")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    calls.add_arguments(parser)
    parser.add_argument("--view", choices=VIEWS, help="one view instead of the summary")
    parser.add_argument("--html", metavar="FILE", help="write a report of one file")
    parser.add_argument("--onnx", metavar="FILE", help="write an ONNX model of the graph")
    parser.add_argument("--output", metavar="FILE", help="write there instead of printing")
    parser.add_argument("--json", action="store_true", help="graph, plan and schedule as JSON")


def run(options: argparse.Namespace) -> int:
    executors = calls.executors(options)
    if options.html or options.onnx:
        return write_files(executors, options)
    if options.json:
        text = json.dumps([as_data(ex) for ex in executors], indent=2, ensure_ascii=False)
    else:
        text = "\n\n".join(shown(ex, options.view) for ex in executors)
    if options.output:
        Path(options.output).write_text(text + "\n")
    else:
        print(text)
    return 0


def write_files(executors: list[Any], options: argparse.Namespace) -> int:
    """Reports and models; numbered where there are several calls."""
    for place, executor in enumerate(executors, 1):
        for name in filter(None, (options.html, options.onnx)):
            path = (
                Path(name)
                if len(executors) == 1
                else Path(name).with_stem(f"{Path(name).stem}-{place}")
            )
            if name == options.html:
                path.write_text(executor.to_html(), encoding="utf-8")
            else:
                path.write_bytes(executor.graph.to_onnx(executor.plan))
            print(path)
    return 0


def shown(executor: Any, view: str | None) -> str:
    """One view of an executor, or a summary of several."""
    if view is not None:
        return VIEWS[view](executor)
    parts = [f"{executor.operator.name}: {executor.operator.expression}"]
    parts += [f"--- {name} ---\n{VIEWS[name](executor)}" for name in _SUMMARY]
    return "\n\n".join(parts)


def passed(step: PassStep) -> str:
    """What one pass did and why."""
    notes = "\n".join(f"  {note}" for note in step.notes) or "  nothing to do"
    return f"{step.name}\n{notes}"


def as_data(executor: Any) -> dict[str, Any]:
    """Graph, passes, plan and schedule as plain data."""
    return {
        "operator": executor.operator.name,
        "workspace_size": executor.workspace_size,
        "graph_as_built": json.loads(executor.graph_as_built.to_json()),
        "passes": [
            {"name": p.name, "notes": [str(note) for note in p.notes]} for p in executor.passes
        ],
        "graph": json.loads(executor.graph.to_json()),
        "plan": json.loads(executor.plan.to_json()),
        "schedule": json.loads(executor.schedule.to_json()) if executor.schedule else None,
    }
