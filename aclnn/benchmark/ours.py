"""This package's side of a benchmark cell, in each of the three layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import aclnn
from aclnn.api import c_shaped
from aclnn.benchmark.cells import Cell, Memory
from aclnn.benchmark.chains import CHAINS
from aclnn.operators import REGISTRY
from aclnn.operators.declaration import Attribute


def prepare(cell: Cell, memory: Memory) -> Callable[[], Any]:
    """The call of a cell.

    >>> from aclnn.benchmark.cells import build, select
    >>> (cell,) = select(["leaky_relu"], dtypes=["float16"], regimes=["phases16"])
    >>> memory = build(cell)
    >>> prepare(cell, memory)()
    0
    >>> bool(np.isnan(memory.out).any())
    False
    """
    return {"call": _functional, "phases": _phases, "run": _run}[cell.regime.form](cell, memory)


def workspace_size(cell: Cell, memory: Memory) -> int:
    """Bytes of workspace that phase one asks for."""
    with _executor(cell, memory) as executor:
        return executor.workspace_size


@cache
def _compiled(name: str) -> Any:
    return aclnn.compile(CHAINS[name])


def _executor(cell: Cell, memory: Memory) -> Any:
    if cell.operator in CHAINS:
        return _compiled(cell.operator).executor(*memory.inputs, out=memory.out)
    return aclnn.executor(cell.operator, *memory.inputs, out=memory.out)


def _functional(cell: Cell, memory: Memory) -> Callable[[], Any]:
    chain = cell.operator in CHAINS
    function = _compiled(cell.operator) if chain else getattr(aclnn, cell.operator)
    return partial(function, *memory.inputs, out=memory.out)


def _run(cell: Cell, memory: Memory) -> Callable[[], Any]:
    return _executor(cell, memory).run


def _in_c(attribute: Attribute) -> Any:
    """An option's default as C-shaped functions take it: choices have numbers there."""
    if attribute.choices and isinstance(attribute.default, str):
        return attribute.choices.index(attribute.default)
    return attribute.default


def _phases(cell: Cell, memory: Memory) -> Callable[[], Any]:
    """Both phases on tensors that exist; phase one knows their description from the first call."""
    operator = REGISTRY[cell.operator]
    entry = operator.entries[0]
    values = {attribute.role: _in_c(attribute) for attribute in operator.attributes}
    values |= dict(zip(operator.inputs, memory.inputs, strict=True)) | {"out": memory.out}
    arguments = c_shaped.arguments(entry, (values[p.role] for p in entry.parameters))
    plan = getattr(aclnn, f"{entry.name}GetWorkspaceSize")
    execute = getattr(aclnn, entry.name)
    size, _, status = plan(*arguments)
    c_shaped.check(status)
    workspace = np.empty(size, np.uint8) if size else None

    def both() -> int:
        size, executor, _ = plan(*arguments)
        return execute(workspace, size, executor, None)

    return both
