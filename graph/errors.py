"""Errors about graphs."""

from __future__ import annotations


class GraphError(ValueError):
    """A graph that breaks a rule.

    Attributes
    ----------
    node : str
        Name of the offending node or value.
    rule : str
        The rule it breaks, in words.

    Examples
    --------
    >>> GraphError("relu", "is made before use")
    GraphError('relu: is made before use')
    """

    def __init__(self, node: str, rule: str):
        super().__init__(f"{node}: {rule}")
        self.node = node
        self.rule = rule

    def __reduce__(self):
        return type(self), (self.node, self.rule)
