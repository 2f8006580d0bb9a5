"""Models node by node: results here, and of ONNX Runtime or ONNX's reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.errors import invalid
from aclnn.differences import distance
from aclnn.onnx.evaluation import called, runtime, said


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A result of a node, here and elsewhere.

    Attributes
    ----------
    node, operator, name : str
    dtype : str
    shape : tuple of int
    ulp : float
        The largest difference, in units in the last place of the largest element; infinite where
        dtypes, shapes, infinities or NaNs differ, and the largest difference of integers.
    """

    node: str
    operator: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    ulp: float


def compared(
    proto: Any, model: Any, inputs: Mapping[str, np.ndarray], other: str
) -> list[ComparedValue]:
    """Each result of each node, in their order.

    Parameters
    ----------
    proto : onnx.ModelProto
        With all its weights and every node's results among its outputs.
    model : OnnxModel
        Of it.
    inputs : mapping of str to array
    other : {'onnxruntime', 'reference'}
    """
    ours = model.run(inputs)
    made = dict(zip(model.outputs, ours if isinstance(ours, tuple) else (ours,), strict=True))
    theirs = _run_elsewhere(proto, inputs, other)
    return [
        ComparedValue(
            called(node), node.op_type, name, str(made[name].dtype), made[name].shape,
            distance(made[name], np.asarray(theirs[name])),
        )
        for node in proto.graph.node
        for name in node.output
        if name in made and name in theirs
    ]  # fmt: skip


def with_every_result(proto: Any) -> Any:
    """A copy of a model whose outputs are the results of all its nodes."""
    import onnx

    copy = type(proto)()
    copy.CopyFrom(proto)
    there = {one.name for one in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            if name and name not in there:
                copy.graph.output.append(onnx.ValueInfoProto(name=name))
                there.add(name)
    return copy


def _run_elsewhere(proto: Any, inputs: Mapping[str, np.ndarray], other: str) -> dict[str, Any]:
    names = [one.name for one in proto.graph.output]
    try:
        if other == "reference":
            from onnx.reference import ReferenceEvaluator

            with np.errstate(all="ignore"):
                found = ReferenceEvaluator(proto).run(names, dict(inputs))
            return dict(zip(names, found, strict=True))
        module = runtime()
        if module is None:
            raise invalid("ONNX Runtime is not installed: compare with the reference")
        options = module.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = module.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))
    except ValueError:
        raise
    except Exception as error:  # of C++ and the reference, by many names
        raise invalid(f"{other} does not run the model: {said(error)}") from None
