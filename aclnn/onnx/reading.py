"""Models in ONNX as compiled functions: `from_onnx`.

A model's nodes are functional forms that are called in their order, on traced arrays. What depends on
constants and shapes alone is computed once, by ONNX's own reference, while the model is traced. Whatever
fails at a node is reported with its operator and its name.
"""

from __future__ import annotations

import inspect
import keyword
import os
import re
from collections import namedtuple
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, as_truth, shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.execution._executor import aclOpExecutor
from aclnn.graph.names import Names
from aclnn.graph.views.extras import need
from aclnn.onnx.forms import FORMS, OF_SHAPES, Step
from aclnn.onnx.schemas import result_dtypes
from aclnn.tracing.array import TracedArray
from aclnn.tracing.compiled import compile as compiled

STANDARD = ("", "ai.onnx")
OWN_ON_CONSTANTS = (
    "GatherElements",
)  # of which ONNX's reference takes up to 64 elements along the axis
# Dtypes that hold all values of others: what a form does not take is computed in them.
WIDER = {
    "bool": np.dtype(np.int32),
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), np.dtype(np.int32)),
    **dict.fromkeys(("int32", "uint32"), np.dtype(np.int64)),
    **dict.fromkeys(("float16", "bfloat16"), np.dtype(np.float32)),
}
MOST_LISTED = 4  # nodes of one operator that is lacking
Dims = tuple[int | str, ...]


@boundary(kind=(AclnnError, ModuleNotFoundError, OSError))
def from_onnx(
    model: Any,
    *,
    dims: Mapping[str, int] | None = None,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
    packed: bool = False,
) -> OnnxModel:
    """Read a model in ONNX as a function that is planned as a whole.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
    dims : mapping of str to int, optional
        Sizes of dimensions that the model gives names to instead. Others are taken from the arrays
        of each call.
    threads, strategy, materialize, packed
        As of `aclnn.compile`; the model's weights are what may be packed once.

    Returns
    -------
    OnnxModel

    Raises
    ------
    ModuleNotFoundError
        If onnx is not installed; the message says how to.
    AclnnError
        If it is no model, or has nodes that no operator stands for: it lists all of them.

    Examples
    --------
    >>> import numpy as np, onnx, aclnn
    >>> text = '<ir_version: 8, opset_import: ["" : 20]> f (float[n] x) => (float[n] y) {y = Gelu (x)}'
    >>> model = aclnn.from_onnx(onnx.parser.parse_model(text))
    >>> model(np.float32([-1, 0, 1]))
    array([-0.15865526,  0.        ,  0.8413448 ], dtype=float32)
    >>> model.executor(dims={"n": 1024}).plan.size
    0
    """
    onnx = need("onnx", "ONNX models")
    proto = _loaded(onnx, model)
    if not proto.HasField("graph"):  # what protobuf reads in an empty file
        raise invalid(f"{shown(model)} is no ONNX model: it has no graph")
    if dims is not None and not isinstance(dims, Mapping):
        raise invalid(f"dims is {shown(dims)}, must be a mapping of names to sizes")
    options = {
        "threads": threads,
        "strategy": strategy,
        "materialize": materialize,
        "packed": as_truth("packed", packed),
    }
    return OnnxModel(_Program(_inlined(proto), dict(dims or {})), options)


class OnnxModel:
    """A model that was read with `from_onnx`; called with arrays, it gives its outputs.

    Attributes
    ----------
    name : str
        Of the model's graph.
    inputs : dict of str to (numpy.dtype, tuple)
        In the order of positional arguments: sizes of dimensions are numbers, or names of those
        that are known at the call.
    outputs : tuple of str
        A call gives an array for one, and a named tuple for several.

    Examples
    --------
    >>> import onnx, aclnn
    >>> text = '<ir_version: 8, opset_import: ["" : 20]> f (float[n, 8] x) => (float[n, 8] y) {y = Tanh (x)}'
    >>> aclnn.from_onnx(onnx.parser.parse_model(text))
    <OnnxModel f(x: float32[n, 8]) -> y>
    """

    def __init__(self, program: _Program, options: Mapping[str, Any]):
        self._program = program
        self._options = dict(options)
        self._compiled = compiled(program, **options)
        self.name = program.name
        self.inputs = program.inputs
        self.outputs = program.outputs

    @boundary
    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        return self._compiled(*self._program.bound(arrays, named), out=out)

    @boundary
    def executor(
        self, *arrays: Any, dims: Mapping[str, int] | None = None, out: Any = None, **named: Any
    ) -> aclOpExecutor:
        """An executor of the plan, bound to arrays, or, without any, to zeros of declared shapes.

        Parameters
        ----------
        *arrays
            As for a call. A run may be given others.
        dims : mapping of str to int, optional
            Where no arrays are given: sizes of the dimensions that have names.
        out : array or tuple of array, optional
            Where results go.
        **named
            Arrays by their names in the model.

        Returns
        -------
        aclOpExecutor
            With graph, passes, plan, schedule and profile.
        """
        if arrays or named or not self.inputs:
            if dims:
                raise invalid("dims stand in place of arrays: give one or the other")
            return self._compiled.executor(*self._program.bound(arrays, named), out=out)
        return self._compiled.executor(*self._program.zeros(dims or {}), out=out)

    def cache_info(self) -> dict[str, int]:
        """Contents of the model's cache of plans.

        Returns
        -------
        dict of str to int
            Its hits, misses, size and limit.
        """
        return self._compiled.cache_info()

    def __reduce__(self) -> Any:
        return OnnxModel, (self._program, self._options)

    def __repr__(self) -> str:
        takes = ", ".join(
            f"{name}: {dtype}[{', '.join(map(str, shape))}]"
            for name, (dtype, shape) in self.inputs.items()
        )
        return f"<OnnxModel {self.name}({takes}) -> {', '.join(self.outputs)}>"


class _Program:
    """The nodes of a model as a function of traced arrays."""

    __aclnn_constant__ = True  # nobody binds its arrays anew

    def __init__(self, proto: Any, dims: Mapping[str, int]):
        import onnx

        self._content = proto.SerializeToString()
        self._dims = dims
        graph = proto.graph
        self.name = self.__name__ = graph.name or "model"
        self.__doc__ = graph.doc_string or None
        self._opset = next((o.version for o in proto.opset_import if o.domain in STANDARD), 1)
        self._constants = dict(_constants(onnx, graph))
        declared = [one for one in graph.input if one.name not in self._constants]
        sizes = {one.dim_param for x in declared for one in x.type.tensor_type.shape.dim}
        _check_dims(self.name, dims, sizes - {""})
        self.inputs = {one.name: self._declared(onnx, one) for one in declared}
        self.outputs = tuple([one.name for one in graph.output])
        self._nodes = list(graph.node)
        self._refuse_loose_ends()
        self._refuse_lacking()
        fresh = Names()
        self._parameters = {name: fresh.fresh(_identifier(name)) for name in self.inputs}
        self.__aclnn_results__ = self.outputs
        self.__signature__ = inspect.Signature(
            [
                inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                for n in self._parameters.values()
            ]
        )
        fields = Names()
        self._result = namedtuple(  # type: ignore[misc]
            "Outputs",
            [fields.fresh(_identifier(name).lstrip("_") or "out") for name in self.outputs],
        )

    def __reduce__(self) -> Any:
        return _read_again, (self._content, dict(self._dims))

    # --- Inputs -------------------------------------------------------------------------------------

    def _declared(self, onnx: Any, info: Any) -> tuple[np.dtype, Dims]:
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type"):
            raise invalid(f"input {info.name} is no tensor")
        try:
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        except (KeyError, ValueError):
            raise invalid(f"input {info.name} has no dtype that ONNX knows") from None
        if dtype.kind == "O":
            raise invalid(f"input {info.name} has strings, which no operator takes")
        sizes = [
            int(one.dim_value)
            if one.HasField("dim_value")
            else self._dims.get(one.dim_param, one.dim_param or f"{info.name}_{n}")
            for n, one in enumerate(kind.shape.dim)
        ]
        return dtype, tuple(sizes)

    def bound(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The arguments in their order; what does not fit the declaration is refused."""
        names = list(self.inputs)
        known = dict(zip(names, arrays, strict=False))
        by_parameter = {parameter: name for name, parameter in self._parameters.items()}
        for key, one in named.items():
            name = key if key in self.inputs else by_parameter.get(key)
            if name is None or name in known:
                raise invalid(f"{self.name} does not take {key}; it takes {', '.join(names)}")
            known[name] = one
        if len(arrays) > len(names) or len(known) < len(names):
            missing = ", ".join([name for name in names if name not in known])
            why = f"{missing} missing" if missing else f"{len(arrays)} given"
            raise invalid(f"{self.name} takes {', '.join(names)}: {why}")
        self._check(known)
        return [known[name] for name in names]

    def _check(self, given: Mapping[str, Any]) -> None:
        sizes: dict[str, tuple[int, str]] = {}
        for name, (dtype, declared) in self.inputs.items():
            shape = tuple(given[name].shape) if hasattr(given[name], "shape") else None
            if shape is None:
                raise invalid(f"{self.name}: {name} is {shown(given[name])}, must be an array")
            found = str(given[name].dtype).removeprefix("torch.")
            fits = len(shape) == len(declared) and all(
                size == sizes.setdefault(want, (size, name))[0]
                if isinstance(want, str)
                else size == want
                for size, want in zip(shape, declared, strict=False)
            )
            if fits and found == dtype.name:
                continue
            known = {want: size for want, (size, _) in sizes.items()}
            wanted = ", ".join(
                f"{one}={known[one]}" if one in known else str(one) for one in declared
            )
            raise invalid(f"{self.name}: {name} is {found}{list(shape)}, must be {dtype}[{wanted}]")

    def zeros(self, dims: Mapping[str, int]) -> list[np.ndarray]:
        """Arrays of the declared shapes; nothing but a run makes them take memory."""
        names = [one for _, shape in self.inputs.values() for one in shape if isinstance(one, str)]
        _check_dims(self.name, dims, names)
        lacking = dict.fromkeys(
            size
            for _, shape in self.inputs.values()
            for size in shape
            if isinstance(size, str) and size not in dims
        )
        if lacking:
            raise invalid(
                f"{self.name}: give arrays, or sizes of {', '.join(lacking)}: "
                f"executor(dims={{{', '.join(f'{name!r}: ...' for name in lacking)}}})"
            )
        return [
            np.zeros([dims[size] if isinstance(size, str) else size for size in shape], dtype)
            for dtype, shape in self.inputs.values()
        ]

    # --- Nodes --------------------------------------------------------------------------------------

    def _refuse_loose_ends(self) -> None:
        """Refuse a model in which something is read that nothing has made by then, or is made twice."""
        maker = {name: node for node in self._nodes for name in node.output if name}
        known = {"", *self.inputs, *self._constants}
        for node in self._nodes:
            for name in [one for one in node.input if one not in known]:
                what = "no input, initializer or node gives"
                if name in maker:
                    what = f"{_titled(maker[name])} gives only later: nodes are in a cycle, or no order"
                raise invalid(f"{self.name}: {_titled(node)} reads {shown(name)}, which {what}")
            for name in node.output:
                if name and name in known:
                    raise invalid(f"{self.name}: {_titled(node)} gives {shown(name)} once more")
                known.add(name)
        if not self.outputs:
            raise invalid(f"{self.name} has no outputs")
        for name in self.outputs:
            if not name or name not in known:
                raise invalid(f"{self.name}: nothing gives the output {shown(name)}")

    def _refuse_lacking(self) -> None:
        """Refuse a model that computes, of its inputs, what no operator of ours does."""
        lacking: dict[str, list[str]] = {}
        computed = set(self.inputs)
        for node in self._nodes:
            if not computed.intersection(node.input) and not node_graphs(node):
                continue
            if node.op_type in OF_SHAPES and node.domain in STANDARD:
                continue
            computed.update(node.output)
            if node.op_type not in FORMS or node.domain not in STANDARD:
                # Text that is no UTF-8 comes as bytes.
                names = [
                    one if isinstance(one, str) else shown(one)
                    for one in (node.domain, node.op_type)
                ]
                kind = "::".join(filter(None, names))
                lacking.setdefault(kind, []).append(_called(node))
        if not lacking:
            return
        count = sum(map(len, lacking.values()))
        raise invalid(
            f"{self.name} has {count} node{'s' * (count > 1)} that no operator stands for:\n"
            + "\n".join(f"  {kind}: {_some(nodes)}" for kind, nodes in sorted(lacking.items()))
        )

    def __call__(self, *arrays: Any) -> Any:
        """Record the model on traced arrays."""
        values: dict[str, Any] = {"": None, **self._constants}
        values |= zip(self.inputs, arrays, strict=True)
        traces = [one.trace for one in arrays if isinstance(one, TracedArray)]
        for trace in traces[:1]:
            for name, array in self._constants.items():
                trace.name(array, _identifier(name))
        for node in self._nodes:
            for trace in traces[:1]:
                trace.recording.origin = partial(tuple, _lines_of(node))
            inputs = tuple([values[name] for name in node.input])
            results = self._told(node, inputs)
            values |= zip(node.output, results, strict=False)
            for trace in traces[:1]:
                for name, array in zip(node.output, results, strict=False):
                    if isinstance(array, np.ndarray):
                        trace.name(array, _identifier(name))
        found = [values[name] for name in self.outputs]
        return found[0] if len(found) == 1 else self._result(*found)

    def _told(self, node: Any, inputs: tuple[Any, ...]) -> Sequence[Any]:
        """The results of a node; an error names it."""
        try:
            results = self._computed(node, inputs)
            _check_results(results, node)
            return results
        except MemoryError:
            raise
        except (
            Exception
        ) as error:  # of forms, NumPy and ONNX's reference, which raise what they like
            words = error.message if isinstance(error, AclnnError) else _said(error)
        titled = _titled(node)
        raise invalid(words if words.startswith(titled) else f"{titled}: {words}")

    def _computed(self, node: Any, inputs: tuple[Any, ...]) -> Sequence[Any]:
        """The results of a node: recorded, or known at once."""
        is_known = not any(isinstance(one, TracedArray) for one in inputs)
        if is_known and node.op_type not in OWN_ON_CONSTANTS:
            return _evaluated(node, inputs, self._opset)
        n_outputs = len([name for name in node.output if name])
        step = Step(node.op_type, _called(node), self._opset, inputs, _attributes(node), n_outputs)
        if node.op_type in OF_SHAPES:
            return [np.asarray(OF_SHAPES[node.op_type](step), np.int64)]
        made = _formed(step)
        kinds = [None if one is None else np.dtype(one.dtype) for one in inputs]
        wanted = result_dtypes(node.domain, node.op_type, self._opset, kinds, len(made))
        return [_as(one, dtype) for one, dtype in zip(made, wanted, strict=True)]


def _check_dims(model: str, dims: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse sizes of dimensions that a model does not name, and what is no size."""
    for name, size in dims.items():
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise invalid(f"{model} has no dimension {shown(name)}; those with names are {there}")
        count = as_int(size)
        if count is None or count < 0:
            raise invalid(f"{model}: {name} is {shown(size)}, must be an int from 0 on")


def _read_again(content: bytes, dims: Mapping[str, int]) -> _Program:
    return _Program(need("onnx", "ONNX models").load_from_string(content), dims)


def _loaded(onnx: Any, model: Any) -> Any:
    if isinstance(model, onnx.ModelProto):
        return model
    try:
        if isinstance(model, bytes | bytearray | memoryview):
            return onnx.load_from_string(bytes(model))
        if isinstance(model, str | os.PathLike):
            with open(model, "rb"):  # says what is wrong with the path, without frames of onnx
                return onnx.load(Path(model))
    except OSError:
        raise
    except Exception as error:  # of protobuf, which names its errors in several ways
        raise invalid(f"{shown(model)} is no ONNX model: {error}") from None
    raise invalid(f"{shown(model)} is no ONNX model: give a path, bytes or an onnx.ModelProto")


def _inlined(proto: Any) -> Any:
    """A model without functions of its own."""
    inliner = need("onnx.inliner", "ONNX models")
    try:
        return inliner.inline_local_functions(proto)
    except Exception as error:  # of C++, by several names
        raise invalid(f"{proto.graph.name or 'model'}: its functions: {_said(error)}") from None


def _constants(onnx: Any, graph: Any) -> Iterator[tuple[str, np.ndarray]]:
    for one in graph.initializer:
        try:
            yield one.name, onnx.numpy_helper.to_array(one)
        except Exception as error:  # whatever is wrong with its bytes
            raise invalid(f"initializer {shown(one.name)}: {_said(error)}") from None


def _check_results(results: Sequence[Any], node: Any) -> None:
    if len(results) < len(node.output):
        raise invalid(f"{len(node.output)} outputs are named, {len(results)} are given")
    for one in results:
        if one is not None and not isinstance(one, TracedArray | np.ndarray | np.generic):
            raise invalid(f"it gives {shown(one)}, which is no array")


def _said(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _evaluated(node: Any, inputs: Sequence[Any], opset: int) -> Sequence[Any]:
    """Results of ONNX's reference for a node whose inputs are all known."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    helper = onnx.helper
    known = {name: np.asarray(x) for name, x in zip(node.input, inputs, strict=True) if name}
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in known.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "constants", infos, outputs)
    imports = [helper.make_opsetid(node.domain, opset)]
    model = helper.make_model(graph, opset_imports=imports)
    with np.errstate(all="ignore"):
        left = iter(ReferenceEvaluator(model).run(None, known))
    return [next(left) if name else None for name in node.output]


def _formed(step: Step) -> tuple[Any, ...]:
    """The results of a form; where it does not take a dtype, in one that holds all its values."""
    form = FORMS[step.kind]
    try:
        made = form(step)
    except AclnnError:
        wide = [
            _as(one, WIDER.get(np.dtype(one.dtype).name) if one is not None else None)
            for one in step.inputs
        ]
        if all(one is other for one, other in zip(wide, step.inputs, strict=True)):
            raise
        made = form(replace(step, inputs=tuple(wide)))
    return made if isinstance(made, tuple) else (made,)


def _as(array: Any, dtype: np.dtype | None) -> Any:
    """An array in a dtype; None leaves it as it is."""
    if array is None or dtype is None or array.dtype == dtype:
        return array
    return array.astype(dtype)


def _attributes(node: Any) -> dict[str, Any]:
    import onnx

    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    return {
        key: value.decode() if isinstance(value, bytes) else value for key, value in found.items()
    }


def node_graphs(node: Any) -> bool:
    """Whether a node has graphs of its own, as branches and loops have."""
    return any(one.HasField("g") or one.graphs for one in node.attribute)


def _titled(node: Any) -> str:
    return f"{node.op_type} ({_called(node)})"


def _called(node: Any) -> str:
    return node.name or next(iter(node.output), "?")


def _lines_of(node: Any) -> list[str]:
    """Modules that hold a node, the outermost first, where its name is a path, and the node."""
    called = _called(node)
    parts = called.split("/")[1:-1] if called.startswith("/") else []
    modules = [*accumulate(parts, lambda before, part: f"{before}/{part}")]
    return [*modules, f"{called}: {node.op_type}"]


def _some(names: Sequence[str]) -> str:
    left = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {left} more" if left > 0 else "")


def _identifier(name: str) -> str:
    """A name of ONNX's as one of Python's.

    >>> _identifier("input.1"), _identifier("/layers.0/weight"), _identifier("0"), _identifier("in")
    ('input_1', 'layers_0_weight', 'x0', 'in_')
    """
    words = re.sub(r"\W+", "_", name).strip("_") or "x"
    words = f"x{words}" if words[0].isdigit() else words
    return f"{words}_" if keyword.iskeyword(words) else words
