"""Executors and profiles as notebooks show them: facts, and pictures that unfold below them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aclnn.acl.errors import AclnnError
from aclnn.graph.summaries import counted
from aclnn.graph.views.notebook import folded, sheet_html, view
from aclnn.graph.views.text import human_bytes, schedule_sheet
from aclnn.reports.profile_table import sheet_of

if TYPE_CHECKING:
    from aclnn.reports.profiling import Profile


def executor_html(executor: Any) -> str:
    """A part of a page.

    >>> import numpy as np, aclnn
    >>> executor_html(aclnn.executor("elu", np.ones(4, np.float32))).count("<svg")
    2
    """
    plan, graph = executor.plan, executor.graph
    facts = (
        f"{executor.operator.name}: {counted(len(graph.nodes), 'node')} in "
        f"{counted(len(graph.steps()), 'step')}, "
        f"workspace {human_bytes(plan.size)} ({plan.strategy}, {plan.proof})"
    )
    return view(
        sheet_html((facts,)),
        graph.to_svg(plan),
        folded("workspace plan", plan.to_svg()),
        folded("schedule", sheet_html(schedule_sheet(executor.schedule))),
    )


def profile_to_html(profile: Profile) -> str:
    """The table of a profile, and the graphs that are known, coloured by time."""
    executors, pictures = profile.executors, []
    for index, one in enumerate(executors):
        with suppress(AclnnError):
            pictures.append(folded(f"{one.operator}, coloured by time", profile.to_svg(index)))
    return view(sheet_html(sheet_of(executors)), *pictures)
