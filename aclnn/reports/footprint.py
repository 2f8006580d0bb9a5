"""The sum of a model's memory, of executors, compiled functions, captures, ONNX and PyTorch models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid
from aclnn.execution._executor import aclOpExecutor
from aclnn.graph import Entry, Footprint, Graph, footprint_of

KERNEL_WORKSPACE = 16 << 20
_KERNEL_WORDS = (
    "{nbytes} bytes, for the kernel that needs most: an NPU's kernels are not known here; 16 MiB "
    "is what samples of the vendor reserve for the system (--assume kernels=BYTES)"
)
_RUNTIME_WORDS = (
    "{nbytes} bytes, for context, streams and drivers: not known here (--assume runtime=BYTES)"
)


def footprint(
    model: Any,
    *inputs: Any,
    weights: Sequence[str] = (),
    caches: Sequence[str] = (),
    kernel_workspace: int = KERNEL_WORKSPACE,
    runtime: int = 0,
    name: str = "",
) -> Footprint:
    """The memory that a model needs, as one table with one total.

    Parameters
    ----------
    model : object
        An executor, a compiled function, a captured model, a model that `from_onnx` read, or a module of
        PyTorch's.
    *inputs
        Arguments of a compiled function or a module; of a model in ONNX perhaps none.
    weights, caches : sequence of str
        Names of inputs, or patterns such as ``w_*``, that are weights or caches. Of a model in ONNX and of a
        module weights are known; an input that is written to is a cache.
    kernel_workspace : int
        Bytes that an NPU's kernels have for themselves, which nothing here tells.
    runtime : int
        Bytes that the runtime holds on the device.
    name : str
        What the table says it is of; that of the model if not given.

    Returns
    -------
    Footprint

    Examples
    --------
    >>> import numpy as np, aclnn
    >>> f = aclnn.compile(lambda x, w: aclnn.gelu(x @ w) + 1.0)
    >>> x, w = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)
    >>> made = footprint(f, x, w, weights=["w"], kernel_workspace=0)
    >>> made.of_kind("weights"), made.of_kind("inputs"), made.of_kind("outputs")
    (256, 128, 128)
    """
    assumed = _assumed(kernel_workspace, runtime)
    if _is_module(model):
        from aclnn.torch.footprint import entries_and_plan  # PyTorch is optional

        entries, plan = entries_and_plan(model, inputs)
        return footprint_of(name or type(model).__name__, [*entries, *assumed], plan)
    known = getattr(model, "inputs", {}) if hasattr(model, "optional_inputs") else None
    executor = _executor_of(model, inputs)
    entries = list(_entries(executor.graph, known, weights, caches))
    return footprint_of(name or _name_of(model, executor), [*entries, *assumed], executor.plan)


def _assumed(kernel_workspace: int, runtime: int) -> list[Entry]:
    words = _KERNEL_WORDS.format(nbytes=kernel_workspace)
    other = _RUNTIME_WORDS.format(nbytes=runtime)
    return [
        Entry("kernel workspace", "of an NPU's kernels", kernel_workspace, words),
        Entry("runtime", "of the device", runtime, other),
    ]


def _is_module(model: Any) -> bool:
    return any(base.__module__.startswith("torch.nn") for base in type(model).__mro__)


def _executor_of(model: Any, inputs: Sequence[Any]) -> aclOpExecutor:
    if isinstance(model, aclOpExecutor):
        return model
    made = getattr(model, "executor", None)
    if isinstance(made, aclOpExecutor):  # a captured model
        return made
    if not callable(made):
        raise invalid(
            f"model is {shown(model)}, must be an executor, a compiled function, a captured model, a model "
            "in ONNX or a module of PyTorch's"
        )
    return made(*inputs)


def _name_of(model: Any, executor: aclOpExecutor) -> str:
    own = getattr(model, "name", None) or getattr(model, "__name__", None)
    return own if isinstance(own, str) and own else executor.operator.name


def _entries(
    graph: Graph, known: Any, weights: Sequence[str], caches: Sequence[str]
) -> Iterable[Entry]:
    """Inputs by kind, and outputs that are no inputs.

    `known` has the inputs that a model declares, where it does: all others are weights.
    """
    written = {graph.value(id).alias_of for id in graph.outputs}  # outputs in place of inputs
    for value in graph.values:
        if value.alias_of is not None or value.storage not in ("input", "constant", "output"):
            continue
        if value.storage == "output":
            yield Entry("outputs", value.name, value.nbytes)
        elif value.id in written or _matches(value.name, caches):
            yield Entry("caches", value.name, value.nbytes)
        else:
            is_weight = value.storage == "constant" or _matches(value.name, weights)
            is_weight = is_weight or (known is not None and value.name not in known)
            yield Entry("weights" if is_weight else "inputs", value.name, value.nbytes)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
