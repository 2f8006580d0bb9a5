"""Functional forms as ``torch.compile`` traces them: it cannot look into functions in C."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import torch

from aclnn.torch.schemas import Schema

_DYNAMO = "torch._dynamo"


class _After(importlib.abc.MetaPathFinder):
    """Calls a function once a module has been imported: Dynamo takes longer than PyTorch itself, and most who
    use operators never compile."""

    def __init__(self, name: str, then: Callable[[], None]):
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_call(module: Any) -> None:
            load(module)
            self._then()

        spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec


def when_dynamo_comes(then: Callable[[], None]) -> None:
    """Call a function once Dynamo is there."""
    when_imported(_DYNAMO, then)


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Call a function once a module is there."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _After(name, then))


def let_dynamo_trace(schema: Schema, op: Any) -> None:
    """Have a functional form traced as the registered operator."""
    substitute = getattr(torch.compiler, "substitute_in_graph", None)
    if substitute is None:  # PyTorch before 2.6 breaks the graph there
        return
    call = _with_arguments(schema, op)
    traced = _in_place(schema, call) if schema.in_place else _with_out(call)
    substitute(schema.function, skip_signature_check=True)(traced)


def _with_arguments(schema: Schema, op: Any) -> Any:
    """The registered operator with what functional forms take besides: numbers for tensors, a single
    integer for several."""
    roles, numbers = schema.parameters, schema.operator.numbers
    several = tuple([a.role for a in schema.operator.switches if a.kind == "ints"])
    if not numbers and not several:
        return op

    def call(*args: Any, **named: Any) -> Any:
        arguments = dict(zip(roles, args)) | named  # noqa: B905 - Dynamo traces it without strict
        for role in numbers:
            arguments[role] = _as_tensor(arguments[role])
        for role in several:
            if isinstance(arguments.get(role), int):
                arguments[role] = [arguments[role]]
        return op(**arguments)

    return call


def _as_tensor(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, bool):
        return torch.scalar_tensor(value, dtype=torch.bool)
    return torch.scalar_tensor(
        value, dtype=torch.int64 if isinstance(value, int) else torch.float64
    )


def _with_out(op: Any) -> Any:
    def traced(*args: Any, out: Any = None, **named: Any) -> Any:
        result = op(*args, **named)
        if out is None:
            return result
        if isinstance(result, tuple):
            for index, one in zip(out, result):  # noqa: B905 - as above
                index.copy_(one)
            return out
        return out.copy_(result)

    return traced


def _in_place(schema: Schema, op: Any) -> Any:
    """The form in place: it gives what it has written, and what it has made."""
    roles, outputs, written = schema.parameters, schema.operator.outputs, schema.written

    def traced(*args: Any, **named: Any) -> Any:
        made = op(*args, **named)
        arguments = dict(zip(roles, args)) | named  # noqa: B905 - as above
        if len(outputs) == 1:
            return arguments[written[outputs[0]]]
        left = [] if made is None else [made] if isinstance(made, torch.Tensor) else list(made)
        return tuple([arguments[written[r]] if r in written else left.pop(0) for r in outputs])

    return traced
