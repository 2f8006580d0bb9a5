"""Executors as notebooks show them: a line of facts, the graph, and what unfolds below it."""

from __future__ import annotations

from typing import Any

from aclnn.graph.views.notebook import folded, sheet_html, view
from aclnn.graph.views.text import human_bytes, schedule_sheet


def executor_html(executor: Any) -> str:
    """A part of a page.

    >>> import numpy as np, aclnn
    >>> executor_html(aclnn.executor("elu", np.ones(4, np.float32))).count("<svg")
    2
    """
    plan, graph = executor.plan, executor.graph
    facts = (
        f"{executor.operator.name}: {len(graph.nodes)} nodes in {len(graph.steps())} steps, "
        f"workspace {human_bytes(plan.size)} ({plan.strategy}, {plan.proof})"
    )
    return view(
        sheet_html((facts,)),
        graph.to_svg(plan),
        folded("workspace plan", plan.to_svg()),
        folded("schedule", sheet_html(schedule_sheet(executor.schedule))),
    )
