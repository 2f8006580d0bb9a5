"""A report of one executor that is one HTML file: no network, no other files, no scripts needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).parent / "templates" / "report.html.j2"


def to_html(executor: Any) -> str:
    """Graph, passes, plan, schedule and profile of an executor.

    Parameters
    ----------
    executor : aclOpExecutor

    Returns
    -------
    str
        A whole page, light or dark as the reader prefers.

    Raises
    ------
    ModuleNotFoundError
        If jinja2 is not installed; the message says how to.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "reports need the package jinja2: pip install 'aclnn-cpu[report]'", name="jinja2"
        ) from None
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    steps = executor.profile(repeat=20).steps if executor.schedule is not None else ()
    whole = sum(step.median for step in steps)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        executor=executor,
        operator=executor.operator,
        plan=executor.plan,
        schedule=executor.schedule.to_text() if executor.schedule else "nothing to do",
        steps=[(step, step.median / whole) for step in steps],
    )
