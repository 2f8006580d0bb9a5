"""Workspace plans of executors: those of `aclnn.graph`, with this package's errors."""

from __future__ import annotations

from dataclasses import fields

from aclnn.acl.errors import invalid
from aclnn.graph import BudgetError, WorkspacePlan


class ExecutorPlan(WorkspacePlan):
    """A `WorkspacePlan` whose broken budget is an `AclnnError`."""

    __slots__ = ()

    def check(self, budget: int) -> WorkspacePlan:
        """Raise `AclnnError` with the reason when the plan needs more than `budget` bytes.

        Examples
        --------
        >>> import numpy as np, aclnn
        >>> ex = aclnn.executor("gelu", np.zeros((64, 64), np.float32).T, materialize=True)
        >>> ex.plan.check(10)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        aclnn.acl.errors.AclnnError: ...
        """
        try:
            return WorkspacePlan.check(self, budget)
        except BudgetError as error:
            raise invalid(str(error)) from None


def for_executor(plan: WorkspacePlan) -> ExecutorPlan:
    """The same plan with this package's errors."""
    return ExecutorPlan(**{field.name: getattr(plan, field.name) for field in fields(plan)})
