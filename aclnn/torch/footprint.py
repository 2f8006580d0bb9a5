"""Lifetimes of a PyTorch model's intermediates, of the graph that `torch.export` makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import Node

from aclnn.acl.errors import invalid
from aclnn.graph import Entry, Lifetime, WorkspacePlan, plan_lifetimes


def entries_and_plan(
    model: torch.nn.Module, inputs: Sequence[Any]
) -> tuple[list[Entry], WorkspacePlan]:
    """Memory that a module has all the time, and the plan of intermediates.

    Each call of an operator is a step; results that share a storage, as views do, are one buffer, which is
    there from its first writer to its last reader. Outputs are apart: they outlive the run.

    >>> entries, plan = entries_and_plan(torch.nn.Linear(8, 8), (torch.ones(4, 8),))
    >>> sum(entry.nbytes for entry in entries if entry.kind == "weights")
    288
    """
    try:
        program = torch.export.export(model, tuple(inputs))
    except Exception as error:
        words = str(error).partition("\n")[0]
        raise invalid(f"{type(model).__name__}: torch.export cannot trace it: {words}") from error
    kinds = _kinds(program)
    graph = program.graph
    steps = [node for node in graph.nodes if node.op == "call_function" and _is_step(node)]
    index = {node: number for number, node in enumerate(steps)}
    returned = {
        _key(value) for node in graph.nodes if node.op == "output" for value in _values(node.args)
    }
    entries = [*_placed(graph.nodes, kinds)]
    fixed = {_key(v) for node in graph.nodes if node.op == "placeholder" for v in _values(node)}
    users: dict[int, list[int]] = {}
    made: dict[int, tuple[Node, Any]] = {}
    readers: dict[int, list[str]] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        at = index.get(node)
        for value in _values(node):
            key = _key(value)
            if key in fixed:
                continue
            made.setdefault(key, (node, value))
            if at is not None:
                users.setdefault(key, []).append(at)
        for value in _values(node.all_input_nodes):
            if at is not None and _key(value) not in fixed:
                users.setdefault(_key(value), []).append(at)
                readers.setdefault(_key(value), []).append(node.name)
    lives = []
    for key, (node, value) in made.items():
        nbytes, used = value.untyped_storage().nbytes(), sorted(set(users.get(key, ())))
        if key in returned:
            entries.append(Entry("outputs", node.name, nbytes))
        elif used:
            lives.append(
                Lifetime(
                    node.name, used[0], used[-1] + 1, nbytes, node.name,
                    tuple(dict.fromkeys(readers.get(key, ()))), contents=_words(value), uses=tuple(used),
                )
            )  # fmt: skip
    return entries, plan_lifetimes(lives, steps=[node.name for node in steps])


def _is_step(node: Node) -> bool:
    return any(True for _ in _values(node)) and getattr(node.target, "__name__", "") != "getitem"


def _kinds(program: Any) -> dict[str, str]:
    """Kinds of the graph's inputs: weights, caches (buffers that are written to), inputs."""
    signature = program.graph_signature
    found = dict.fromkeys(signature.inputs_to_parameters, "weights")
    changed = set(signature.buffers_to_mutate.values())
    for name, buffer in signature.inputs_to_buffers.items():
        found[name] = "caches" if buffer in changed else "weights"
    constants = getattr(signature, "inputs_to_lifted_tensor_constants", {})
    return found | dict.fromkeys(constants, "weights")


def _placed(nodes: Any, kinds: dict[str, str]) -> Iterator[Entry]:
    """Storages that the graph is given, each once."""
    seen = set()
    for node in nodes:
        if node.op == "placeholder":
            for value in _values(node):
                if _key(value) not in seen:
                    seen.add(_key(value))
                    nbytes = value.untyped_storage().nbytes()
                    yield Entry(kinds.get(node.name, "inputs"), node.name, nbytes)


def _values(arguments: Any) -> Iterator[torch.Tensor]:
    """Tensors that a node gives, or those of nodes in any nesting."""
    if isinstance(arguments, torch.Tensor):
        yield arguments
    elif isinstance(arguments, Node):
        yield from _values(arguments.meta.get("val"))
    elif isinstance(arguments, list | tuple):
        for one in arguments:
            yield from _values(one)
    elif isinstance(arguments, dict):
        yield from _values(list(arguments.values()))


def _key(value: torch.Tensor) -> int:
    return value.untyped_storage()._cdata


def _words(value: torch.Tensor) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}[{','.join(map(str, value.shape))}]"
