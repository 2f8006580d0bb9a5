"""Single nodes by other means than kernels: the standard's function bodies, and other runtimes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError
from aclnn.onnx.rules import misfit
from aclnn.onnx.schemas import STANDARD, lacks_inputs, schema_of
from aclnn.onnx.steps import Step

# What gives other results each time.
RANDOM = frozenset(
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"]
)  # fmt: skip
# Dtypes whose arrays ONNX Runtime takes as they are.
_PLAIN = frozenset(
    ["bool", "float16", "float32", "float64", *[f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]]
)  # fmt: skip
# What ONNX Runtime computes otherwise than the standard says, or by random numbers of its own.
OF_REFERENCE = frozenset(["DFT", "STFT", "Resize", "Bernoulli", "Dropout", "MaxUnpool"])
IR_VERSION = 10  # IR version of models that are made of one node


def titled(node: Any) -> str:
    """The operator and the name of a node, for messages.

    >>> import onnx
    >>> titled(onnx.helper.make_node("Relu", ["x"], ["y"]))
    'Relu (y)'
    """
    return f"{node.op_type} ({called(node)})"


def called(node: Any) -> str:
    """The name of a node, or that of its first result."""
    return text_of(node.name or next(filter(None, node.output), "?"))


def text_of(name: str | bytes) -> str:
    """A name of a file: what is no UTF-8 comes as bytes.

    >>> text_of("x"), text_of(b"x\\xff")
    ('x', 'x\\\\xff')
    """
    return name if isinstance(name, str) else name.decode(errors="backslashreplace")


def attributes_of(node: Any) -> dict[str, Any]:
    import onnx

    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    return {
        key: value.decode() if isinstance(value, bytes) else value for key, value in found.items()
    }


def step_of(node: Any, opset: int, inputs: Sequence[Any]) -> Step:
    """A node with its inputs as a step that nobody records."""
    return Step(node.op_type, called(node), opset, tuple(inputs), attributes_of(node))


def array_of(tensor: Any) -> np.ndarray:
    import onnx

    return np.asarray(onnx.numpy_helper.to_array(tensor))


def said(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def model_of(
    node: Any, opsets: Mapping[str, int], known: Mapping[str, np.ndarray],
    arguments: Mapping[str, tuple[np.dtype, Sequence[int]]],
) -> Any:  # fmt: skip
    """A model of one node: what is known are initialisers, what is given are inputs."""
    import onnx

    helper = onnx.helper
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
        for name, (dtype, shape) in arguments.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in known.items()]
    graph = helper.make_graph([node], "node", infos, outputs, weights)
    domains = {"": onnx.defs.onnx_opset_version(), **opsets}
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def has_body(domain: str, kind: str, opset: int) -> bool:
    """Whether the standard defines an operator by a function of others."""
    schema = schema_of(domain, kind, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def body_of(model: Any) -> Sequence[Any] | None:
    """The nodes that the standard's function body makes of a model's only node; None where it has none."""
    (node,) = model.graph.node
    domain = "" if node.domain in STANDARD else node.domain
    opset = next(o.version for o in model.opset_import if o.domain == domain)
    # The inliner takes no defaults of attributes from the schema.
    there = {one.name for one in node.attribute}
    for name, attribute in schema_of(domain, node.op_type, opset).attributes.items():
        if name not in there and attribute.default_value.name:
            node.attribute.append(attribute.default_value)
    made = _inlined(model, domain)
    if made is None:
        return None
    nodes = list(made.graph.node)
    if len(nodes) == 1 and nodes[0].op_type == node.op_type:
        return None
    return nodes


def _inlined(model: Any, domain: str) -> Any:
    """A model with the standard's body in place of its only node; None where it does not suit the types."""
    import onnx.inliner

    (node,) = model.graph.node
    try:
        if "" not in node.input:
            return onnx.inliner.inline_selected_functions(
                model, [(domain, node.op_type)], exclude=False, inline_schema_functions=True
            )
        return onnx.inliner.inline_local_functions(_with_function(model, domain))
    except Exception:  # of C++, which also says so where a body does not suit these types
        return None


def _with_function(model: Any, domain: str) -> Any:
    """A model with the body of its only node as a function of its own.

    The inliner itself takes no nodes that leave out inputs before others.
    """
    import onnx

    (node,) = model.graph.node
    versions = {one.domain: one.version for one in model.opset_import}
    schema = schema_of(domain, node.op_type, versions[domain])
    types = {one.name: one.type for one in model.graph.input}
    types |= {
        one.name: onnx.helper.make_tensor_type_proto(one.data_type, one.dims)
        for one in model.graph.initializer
    }
    value = [types.get(name, onnx.TypeProto()).SerializeToString() for name in node.input]
    if schema.has_context_dependent_function:
        body = schema.get_context_dependent_function(node.SerializeToString(), value)
        function = onnx.FunctionProto.FromString(body)
    else:
        function = schema.function_body
    made = type(model)()
    made.CopyFrom(model)
    own = made.functions.add()
    own.CopyFrom(function)
    own.domain, own.name = "aclnn", node.op_type
    made.graph.node[0].domain = "aclnn"
    if not any(one.domain == "aclnn" for one in made.opset_import):
        made.opset_import.append(onnx.helper.make_opsetid("aclnn", 1))
    return made


def inferred(model: Any) -> list[tuple[np.dtype, tuple[int, ...]] | None]:
    """Dtypes and shapes of a model's outputs, None for those that depend on values.

    Raises
    ------
    Exception
        Of ONNX's shape inference, for a node that breaks the standard's rules.
    """
    import onnx

    made = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return [_described(onnx, one.type) for one in made.graph.output]


def nodes_within(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes, and those of the graphs that are their attributes, at any depth."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from nodes_within(graph.node)


def unfit(node: Any, opsets: Mapping[str, int], ir_version: int) -> str:
    """The attribute or number of inputs that a node's operator does not have, in a line; empty where all fit.

    Graphs of branches and loops, and constants, are not looked at.

    >>> import onnx
    >>> unfit(onnx.helper.make_node("Relu", ["x"], ["y"], alpha=1.0), {"": 21}, 10)
    'Unrecognized attribute: alpha for operator Relu'
    """
    import onnx

    if any(one.HasField("g") or one.HasField("t") for one in node.attribute):
        return ""
    schema = schema_of(node.domain, node.op_type, opsets.get(_domain(node), 1))
    if schema is None or schema.deprecated:
        return ""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = ir_version
    context.opset_imports = {"": 1, **opsets, "ai.onnx": opsets.get("", 1)}
    try:
        onnx.checker.check_node(node, context)
    except Exception as error:  # of C++
        return " ".join(str(error).split()).partition(" ==> Context")[0]
    return ""


def _domain(node: Any) -> str:
    return "" if node.domain in STANDARD else str(node.domain)


def broken_rule(model: Any) -> str:
    """The rule of the standard that a model's only node breaks, in a line; empty where it breaks none."""
    import onnx

    (node,) = model.graph.node
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {one.domain: one.version for one in model.opset_import}
    try:
        onnx.checker.check_node(node, context)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:  # of C++
        return said(error)
    return ""


def _described(onnx: Any, kind: Any) -> tuple[np.dtype, tuple[int, ...]] | None:
    tensor = kind.tensor_type
    if kind.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
        return None
    if not all(one.HasField("dim_value") and one.dim_value >= 0 for one in tensor.shape.dim):
        return None
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except (KeyError, ValueError):
        return None
    return dtype, tuple([one.dim_value for one in tensor.shape.dim])


@cache
def runtime() -> Any:
    """The module of ONNX Runtime; None where it is not installed."""
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError:
        return None
    return onnxruntime


class Evaluation:
    """A node that ONNX Runtime computes, or ONNX's reference evaluator where that does not take it.

    Parameters
    ----------
    model : onnx.ModelProto
        Of that node.
    failed : AclnnError, optional
        What this package's own operator said, which is raised where they fail as well.

    Attributes
    ----------
    by : str
        Who computes it.
    seconds : float
        What calls took so far.
    """

    def __init__(self, model: Any, failed: AclnnError | None = None):
        (self._node,) = model.graph.node
        self._model = model
        self._failed = failed
        self._names = [one.name for one in model.graph.input]
        self._session = self._made_session()
        self._reference: Any = None
        self.by = "reference" if self._session is None else "onnxruntime"
        self.seconds = 0.0

    def _made_session(self) -> Any:
        found, graph = runtime(), self._model.graph
        if found is None or (self._node.op_type in OF_REFERENCE and self._node.domain in STANDARD):
            return None
        import onnx

        # It may end the process where an input is left out that there has to be.
        opset = {one.domain: one.version for one in self._model.opset_import}.get(
            "" if self._node.domain in STANDARD else self._node.domain, 1
        )
        if lacks_inputs(self._node.domain, self._node.op_type, opset, self._node.input):
            return None
        kinds = [
            one.type.tensor_type.elem_type
            for one in graph.input
            if one.type.HasField("tensor_type")
        ]
        names = {np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)).name for kind in kinds}
        if not names <= _PLAIN:
            return None
        options = found.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            session = found.InferenceSession(
                self._model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception:  # of C++: it lacks the operator, its version or its types
            return None
        made = [one.type.removeprefix("tensor(").rstrip(")") for one in session.get_outputs()]
        plain = all(_KINDS.get(name, name) in _PLAIN for name in made)
        return session if plain else None

    def described(self) -> list[tuple[np.dtype, tuple[int, ...]] | None]:
        """Dtypes and shapes of the results as ONNX Runtime infers them, None where it does not."""
        if self._session is None:
            return [None for name in self._node.output if name]
        return [_of_runtime(one) for one in self._session.get_outputs()]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The results, one for each output that has a name."""
        begin = time.perf_counter()
        named = dict(zip(self._names, inputs, strict=True))
        try:
            with np.errstate(all="ignore"):
                return self._run(named)
        except Exception as error:  # of the runtimes, which raise what they like
            raise self._failed or self._misfit(inputs, error) from None
        finally:
            self.seconds += time.perf_counter() - begin

    def _misfit(self, inputs: Sequence[Any], error: Exception) -> AclnnError:
        domain = _domain(self._node)
        opset = next((o.version for o in self._model.opset_import if o.domain == domain), 1)
        known = {one.name: array_of(one) for one in self._model.graph.initializer}
        known |= zip(self._names, inputs, strict=True)
        step = step_of(self._node, opset, [known.get(name) for name in self._node.input])
        return misfit(step, error, domain)

    def _run(self, named: Mapping[str, Any]) -> list[Any]:
        if self._session is not None:
            try:
                return list(self._session.run(None, named))
            except Exception:  # of C++: it takes the node, but not these values
                found = self._by_reference(named)
            self._session, self.by = None, "reference"
            return found
        return self._by_reference(named)

    def _by_reference(self, named: Mapping[str, Any]) -> list[Any]:
        if self._reference is None:
            from onnx.reference import ReferenceEvaluator

            self._reference = ReferenceEvaluator(self._model)
        return list(self._reference.run(None, named))


_KINDS = {"float": "float32", "double": "float64"}


def _of_runtime(one: Any) -> tuple[np.dtype, tuple[int, ...]] | None:
    name = one.type.removeprefix("tensor(").rstrip(")")
    if not one.shape:  # of what has no dimensions, or of what it does not know
        return None
    if not all(isinstance(size, int) and size >= 0 for size in one.shape):
        return None
    try:
        return np.dtype(_KINDS.get(name, name)), tuple(one.shape)
    except TypeError:
        return None
