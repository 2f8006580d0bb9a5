"""Workspace plans of executors: `aclnn.graph`'s, with this package's exceptions."""

from __future__ import annotations

from dataclasses import fields

from aclnn.acl._frames import boundary
from aclnn.acl.errors import invalid
from aclnn.graph import WorkspacePlan


class ExecutorPlan(WorkspacePlan):
    """A `WorkspacePlan` whose broken budget is an `AclnnError`."""

    __slots__ = ()

    @boundary
    def check(self, budget: int) -> WorkspacePlan:
        """Raise `AclnnError` with the reason when the plan needs more than `budget` bytes.

        Examples
        --------
        >>> import numpy as np, aclnn
        >>> ex = aclnn.executor("gelu", np.zeros((64, 64), np.float32).T, materialize=True)
        >>> ex.plan.check(10)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        aclnn.AclnnError: ...
        """
        try:
            return WorkspacePlan.check(self, budget)
        except ValueError as error:  # a BudgetError, or the budget is no number
            raise invalid(str(error)) from None

    @staticmethod
    def from_json(text: str) -> ExecutorPlan:
        """The plan that `to_json` wrote, whose broken budget is an `AclnnError` again.

        Parameters
        ----------
        text : str

        Returns
        -------
        ExecutorPlan
            Equal to the one that was written, and validated.

        Raises
        ------
        ValueError
            Naming the field that does not fit; a `PlanError` when the plan is wrong.
        """
        return for_executor(WorkspacePlan.from_json(text))


def for_executor(plan: WorkspacePlan) -> ExecutorPlan:
    """The same plan with this package's errors."""
    return ExecutorPlan(**{field.name: getattr(plan, field.name) for field in fields(plan)})
