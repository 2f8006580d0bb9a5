"""Look at one executor from every side: graph, passes, plan, schedule, profile."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aclnn.acl import files
from aclnn.cli import calls, show
from aclnn.cli.show import View, table_of
from aclnn.graph.views import json as documents

REPEAT = 20  # runs of a profile


VIEWS: dict[str, View] = {
    "built": table_of(
        lambda ex: ex.graph_as_built, lambda ex: documents.graph_data(ex.graph_as_built)
    ),
    "passes": View(
        lambda ex: ex.passes.side_by_side(),
        lambda ex: ex.passes.to_rich(),
        lambda ex: documents.passes_data(ex.passes),
    ),
    "notes": View(
        lambda ex: ex.passes.to_text(),
        data=lambda ex: [{"name": p.name, "notes": list(map(str, p.notes))} for p in ex.passes],
    ),
    "graph": View(
        lambda ex, **form: ex.graph.to_text(ex.plan, **form),
        lambda ex, **form: ex.graph.to_rich(ex.plan, **form),
        lambda ex: documents.graph_data(ex.graph),
        has_wide=True,
    ),
    "plan": table_of(lambda ex: ex.plan, lambda ex: documents.plan_data(ex.plan)),
    "schedule": table_of(lambda ex: ex.schedule, lambda ex: documents.schedule_data(ex.schedule)),
    "profile": table_of(
        lambda ex: ex.profile(repeat=REPEAT),
        lambda ex: json.loads(ex.profile(repeat=REPEAT).to_json()),
    ),
    "lines": View(lambda ex: ex.profile(repeat=REPEAT).lines()),
    "timeline": View(lambda ex: ex.profile(repeat=1).timeline()),
    "dot": View(lambda ex: ex.graph.to_dot(ex.plan)),
    "svg": View(lambda ex: ex.graph.to_svg(ex.plan)),
    "model-explorer": View(lambda ex: ex.graph.to_model_explorer(ex.plan)),
    "profile-svg": View(lambda ex: ex.profile(repeat=REPEAT).to_svg()),
    "plan-svg": View(lambda ex: ex.plan.to_svg()),
    "passes-svg": View(lambda ex: ex.passes.to_svg()),
    "json": View(lambda ex: ex.graph.to_json(indent=2)),
    "plan-json": View(lambda ex: ex.plan.to_json(indent=2)),
    "schedule-json": View(lambda ex: ex.schedule.to_json(indent=2)),
    "chrome": View(lambda ex: ex.profile(repeat=REPEAT).to_chrome_trace()),
    "snapshot": View(lambda ex: json.dumps(ex.plan.to_memory_snapshot())),
}
_SUMMARY = ("built", "notes", "graph", "plan", "schedule")
_HEADING = View(lambda name: f"--- {name} ---")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--view", choices=(*VIEWS, "rich"), help="one view instead of the summary; rich: as --rich"
    )
    parser.add_argument("--html", metavar="FILE", help="write a report of one file")
    parser.add_argument("--onnx", metavar="FILE", help="write an ONNX model of the graph")
    parser.add_argument("--output", metavar="FILE", help="write there instead of printing")
    parser.add_argument(
        "--json", action="store_true", help="JSON: of the view, else graph, plan and schedule"
    )
    show.add_arguments(parser)
    calls.add_arguments(parser)


def add_arguments_of(parser: argparse.ArgumentParser, operator: str) -> None:
    """The flags of one operator, for its help."""
    calls.add_arguments_of(parser, operator)


def run(options: argparse.Namespace) -> int:
    if options.view == "rich":
        options.view, options.rich, options.plain = None, True, False
    refuse_two_in_one(options)
    with calls.threads_of(options), show.progress("planning"):
        executors = calls.executors(options)
    with calls.threads_of(options):
        return show_them(executors, options)


def show_them(executors: list[Any], options: argparse.Namespace) -> int:
    """Print or write what the options ask for."""
    if options.html or options.onnx:
        with show.progress("writing reports"):
            paths = write_files(executors, options)
        views = options.json or options.view
        if options.output or not views:  # else a view is printed, which may be read by a program
            print(*paths, sep="\n")
        if not (options.output or views):
            return 0
    if options.json:
        with show.progress("preparing"):
            text = _as_json(executors, options.view)
        written(text, options)
    elif options.output:
        with show.progress("writing"):
            write_views(executors, options)
    else:
        show.show(options, [part for ex in executors for part in parts(ex, options.view)])
    return 0


def refuse_two_in_one(options: argparse.Namespace) -> None:
    """Refuse options that name the same file: what is written first would be lost."""
    seen: dict[str, str] = {}
    for option in ("html", "onnx", "output"):
        name = getattr(options, option)
        if not name:
            continue
        first = seen.setdefault(os.path.abspath(name), option)
        if first != option:
            options.refuse(f"--{first} and --{option} name the same file, {name}")


_FILES: dict[str, Callable[[Any], bytes]] = {
    "html": lambda ex: ex.to_html().encode(),
    "onnx": lambda ex: ex.to_onnx(),
}


def write_files(executors: list[Any], options: argparse.Namespace) -> list[Path]:
    """Reports and models; numbered where there are several calls."""
    written = []
    for index, executor in enumerate(executors, 1):
        for option, made in _FILES.items():
            if name := getattr(options, option):
                path = show.numbered(name, index, len(executors))
                files.write(path, made(executor))
                written.append(path)
    return written


def write_views(executors: list[Any], options: argparse.Namespace) -> None:
    """One file for each call: pictures and documents cannot follow each other."""
    for index, executor in enumerate(executors, 1):
        path = show.numbered(options.output, index, len(executors))
        text = "\n\n".join(
            view.as_text(thing, options.wide) for view, thing in parts(executor, options.view)
        )
        files.write(path, text + "\n")


def written(text: str, options: argparse.Namespace) -> None:
    """Print, or write where the options say."""
    if options.output:
        files.write(show.numbered(options.output, 1, 1), text + "\n")
    else:
        print(text)


def parts(executor: Any, view: str | None) -> list[tuple[View, Any]]:
    """One view of an executor, or a summary of several."""
    if view is not None:
        return [(VIEWS[view], executor)]
    title = View(lambda ex: f"{ex.operator.name}: {ex.operator.expression}")
    found: list[tuple[View, Any]] = [(title, executor)]
    for name in _SUMMARY:
        found += [(_HEADING, name), (VIEWS[name], executor)]
    return found


def _as_json(executors: list[Any], view: str | None) -> str:
    """A list with an entry for each call."""
    data = as_data if view is None else _data_of(VIEWS[view])
    return json.dumps([data(executor) for executor in executors], indent=2)


def _data_of(view: View) -> Callable[[Any], Any]:
    """The function that gives a view's JSON data: its own, or its text, as an object if that is JSON."""

    def parsed(executor: Any) -> Any:
        text = view.text(executor)
        try:
            return json.loads(text)
        except ValueError:
            return text

    return view.data or parsed


def as_data(executor: Any) -> dict[str, Any]:
    """Graph, passes, plan and schedule as plain data."""
    return {
        "operator": executor.operator.name,
        "workspace_size": executor.workspace_size,
        "graph_as_built": documents.graph_data(executor.graph_as_built),
        "passes": documents.passes_data(executor.passes)["passes"],
        "graph": documents.graph_data(executor.graph),
        "plan": documents.plan_data(executor.plan),
        "schedule": documents.schedule_data(executor.schedule),
    }
