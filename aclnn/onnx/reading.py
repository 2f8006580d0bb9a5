"""Models in ONNX as compiled functions: `from_onnx`.

A model's nodes are functional forms that are called in their order, on traced arrays. What depends on
constants and shapes alone is computed once, by ONNX's own reference, while the model is traced. Whatever
fails at a node is reported with its operator and its name.
"""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections import namedtuple
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, as_truth, shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.compiler import _compiled_call
from aclnn.execution import arrays as kinds_of_arrays
from aclnn.execution._executor import aclOpExecutor
from aclnn.graph.extras import need
from aclnn.graph.names import Names
from aclnn.onnx import control
from aclnn.onnx.evaluation import (
    called,
    has_body,
    nodes_within,
    runtime,
    said,
    text_of,
    titled,
    unfit,
)
from aclnn.onnx.files import read_file, weights_of
from aclnn.onnx.forms import OF_SHAPES
from aclnn.onnx.microsoft import form_of
from aclnn.onnx.program import CutError, Graph, Piece, Runner, identifier
from aclnn.onnx.reports import ModelReport, report_of, seconds_of
from aclnn.onnx.schemas import STANDARD, schema_of
from aclnn.onnx.selection import CHOOSING
from aclnn.tracing.compiled import compile as compiled

MOST_LISTED = 4  # nodes of one operator that is lacking
FALLBACKS = ("warn", "allow", "refuse")
Dims = tuple[int | str, ...]


@boundary(kind=(AclnnError, ModuleNotFoundError, OSError))
def from_onnx(
    model: Any,
    *,
    dims: Mapping[str, int] | None = None,
    inputs: Mapping[str, Any] | None = None,
    fallback: str = "warn",
    packed: bool = True,
    patterns: bool = True,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
) -> OnnxModel:
    """Read a model in ONNX as a function that is planned as a whole.

    Parameters
    ----------
    model : str, path, bytes or onnx.ModelProto
    dims : mapping of str to int, optional
        Sizes of dimensions that the model gives names to instead. Others are taken from the arrays
        of each call.
    inputs : mapping of str to array or number, optional
        Values of inputs that are constants from then on.
    fallback : {'warn', 'allow', 'refuse'}
        Nodes without kernel and function body are computed by ONNX Runtime, where it is installed,
        or by ONNX's reference evaluator, as steps of the plan: with a warning that names them, without
        one, or not at all.
    packed : bool
        Whether constant operands of products and weights of convolutions are packed once, when they
        are first used. What that takes is in `plan`.
    patterns : bool
        Whether what exporters write in pieces (GELU, SiLU, norms, attention, rotary embedding, linear
        layers, operators between DequantizeLinear and QuantizeLinear) becomes one node. `report`
        lists them.
    threads, strategy, materialize
        As of `aclnn.compile`.

    Returns
    -------
    OnnxModel

    Raises
    ------
    ModuleNotFoundError
        If onnx is not installed; the message says how to.
    AclnnError
        If it is no model, or has nodes that nothing computes: it lists all of them.

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
    with _uncollected():
        return _read(
            model, dims, inputs, fallback, packed, patterns, threads, strategy, materialize
        )


def _read(
    model: Any, dims: Any, inputs: Any, fallback: str, packed: Any, patterns: Any, threads: Any, strategy: Any,
    materialize: Any,
) -> OnnxModel:  # fmt: skip
    onnx = need("onnx", "ONNX models")
    proto, weights = _loaded(onnx, model)
    if not proto.HasField("graph"):  # what protobuf reads in an empty file
        raise invalid(f"{shown(model)} is no ONNX model: it has no graph")
    for name, value in (("dims", dims), ("inputs", inputs)):
        if value is not None and not isinstance(value, Mapping):
            raise invalid(f"{name} is {shown(value)}, must be a mapping of names")
    if fallback not in FALLBACKS:
        raise invalid(f"fallback is {shown(fallback)}, must be one of {', '.join(FALLBACKS)}")
    options = {
        "threads": threads,
        "strategy": strategy,
        "materialize": materialize,
        "packed": as_truth("packed", packed),
    }
    program = _Program(
        _inlined(proto), weights, dict(dims or {}), dict(inputs or {}), fallback,
        as_truth("patterns", patterns),
    )  # fmt: skip
    return OnnxModel(program, options)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Time without passes of the garbage collector.

    What is made while a model is read and planned stays; passes over all objects of the process, that of
    every package included, would take a fifth of a small model's time.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


class OnnxModel:
    """A model that was read with `from_onnx`; called with arrays, it gives its outputs.

    Attributes
    ----------
    name : str
        Of the model's graph.
    inputs : dict of str to (numpy.dtype, tuple)
        In the order of positional arguments: sizes of dimensions are numbers, or names of those
        that are known at the call. Those that may be left out come last.
    optional_inputs : frozenset of str
        Those that may be left out.
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
        self._runner = Runner(program.graph, options)
        needed = [name for name in program.inputs if name not in program.optional]
        piece = Piece(program.graph, (0, len(program.graph.nodes)), needed, program.outputs, {})
        self._compiled = compiled(piece, **options)
        self._is_one = all(map(program.is_traceable, needed)) and bool(needed)
        self._lock = threading.Lock()

        # Of the last call that was timed: runs of plans, and times of nodes that ran between them.
        self._seen: tuple[list[Any], dict[int, float]] = [], {}
        self._is_timed = False
        self.name = program.name
        self.inputs = program.inputs
        self.optional_inputs = frozenset(program.optional)
        self.outputs = program.outputs

    @boundary
    def __call__(self, *arrays: Any, out: Any = None, workspace: Any = None, **named: Any) -> Any:
        if workspace is not None and "workspace" in self.inputs:
            named, workspace = {**named, "workspace": workspace}, None
        bound = self._program.bound(arrays, named)
        return self._run(bound, out, workspace)

    @boundary
    def run(self, inputs: Mapping[str, Any], *, out: Any = None, workspace: Any = None) -> Any:
        """The outputs, of arrays by the inputs' names.

        Parameters
        ----------
        inputs : mapping of str to array
            Whatever the names are.
        out : array or tuple of array, optional
            Where results go.
        workspace : buffer or WorkspacePool, optional
            As for a run of an executor; of several plans each uses it in turn.

        Returns
        -------
        array or tuple of array
        """
        if not isinstance(inputs, Mapping):
            raise invalid(f"{self.name}: inputs is {shown(inputs)}, must be a mapping of names")
        return self._run(self._program.bound((), inputs), out, workspace)

    def _run(self, bound: Mapping[str, Any], out: Any, workspace: Any) -> Any:
        run = self._run_once if self._is_timed else self._run_timed
        try:
            return run(bound, out, workspace)
        except AclnnError as error:
            raise self._named(error) from None

    def _named(self, error: AclnnError) -> AclnnError:
        """An error that names the model, too."""
        if error.message.startswith((f"{self.name}:", f"{self.name} ")):
            return error
        return AclnnError(error.status, f"{self.name}: {error.message}")

    def _run_timed(self, bound: Mapping[str, Any], out: Any, workspace: Any) -> Any:
        """Run with times of steps, for reports: until a call that plans nothing."""
        plans, runs, thread = self.cache_info()["size"], [], threading.get_ident()

        def record(plan: Any, begin: int, end: int, events: Any, submitted: Any = None) -> None:
            if threading.get_ident() == thread:
                runs.append((plan, begin, end, tuple(events), submitted))

        self._program.graph.seconds_alone.clear()
        _compiled_call.add_observer(record)
        try:
            with _uncollected():
                found = self._run_once(bound, out, workspace)
        finally:
            _compiled_call.remove_observer(record)
        self._seen = runs, dict(self._program.graph.seconds_alone)
        self._is_timed = plans == self.cache_info()["size"]
        return found

    def _run_once(self, bound: Mapping[str, Any], out: Any, workspace: Any) -> Any:
        program = self._program
        if self._is_one and not program.optional.intersection(bound):
            try:
                found = self._compiled(*bound.values(), out=out, workspace=workspace)
            except CutError as cut:
                self._is_one = False
                self._runner.note(cut)
            else:
                self._tell()
                return found if len(self.outputs) == 1 else program.result(*found)
        arrays = {name: kinds_of_arrays.as_ndarray(one, name) for name, one in bound.items()}
        results = self._runner.run(arrays, workspace)
        self._tell()
        value = [*bound.values()]
        if out is not None:
            return _written(results, out, self.name)
        handed = [_handed(value, one) for one in results]
        return handed[0] if len(handed) == 1 else program.result(*handed)

    def _tell(self) -> None:
        """Warn once of nodes that turned out to need other means."""
        if self._program.fallback != "warn" or not self._program.graph.evaluations:
            return
        with self._lock:
            nodes = [self._program.graph.nodes[at] for at in [*self._program.graph.evaluations]]
            fresh = [node for node in nodes if called(node) not in self._program.warned]
            self._program.warned.update(map(called, fresh))
        if fresh:
            _warn(self.name, fresh)

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
            bound = self._program.bound(arrays, named)
        else:
            bound = self._program.zeros(dims or {})
        try:
            return self._executor(bound, out)
        except AclnnError as error:
            raise self._named(error) from None

    def _executor(self, bound: Mapping[str, Any], out: Any) -> aclOpExecutor:
        try:
            if self._is_one and not self._program.optional.intersection(bound):
                return self._compiled.executor(*bound.values(), out=out)
        except CutError as cut:
            self._is_one = False
            self._runner.note(cut)
        found = {name: kinds_of_arrays.as_ndarray(one, name) for name, one in bound.items()}
        made = self._runner.executor(found, out)
        if made is None:
            raise invalid(
                f"{self.name} is no single plan: {self._runner.why()}; run it, then `plans` has them"
            )
        return made

    @property
    def plans(self) -> tuple[aclOpExecutor, ...]:
        """An executor for each plan that calls have made so far, bound to no arrays.

        There are several where values decide sizes, and for inputs of several shapes.
        """
        pieces = [self._compiled, *self._runner.every_piece()]
        return tuple([one for piece in pieces for one in piece.executors()])

    def report(self) -> ModelReport:
        """The means by which nodes of the model are computed, with their times in the first calls.

        Times are those of the first call that plans nothing, before it those of the first call.

        Returns
        -------
        ModelReport
        """
        seconds = seconds_of(self._program.graph, *self._seen)
        return report_of(self._program.graph, self.plans, seconds)

    def cache_info(self) -> dict[str, int]:
        """Contents of the model's cache of plans.

        Returns
        -------
        dict of str to int
            Its hits, misses, size and limit.
        """
        found = self._compiled.cache_info()
        for piece in self._runner.every_piece():
            for key, count in piece.cache_info().items():
                found[key] += count if key != "limit" else 0
        return found

    def __reduce__(self) -> Any:
        return OnnxModel, (self._program, self._options)

    def __repr__(self) -> str:
        takes = ", ".join(
            f"{name}: {dtype}[{'...' if shape is None else ', '.join(map(str, shape))}]"
            for name, (dtype, shape) in self.inputs.items()
        )
        return f"<OnnxModel {self.name}({takes}) -> {', '.join(self.outputs)}>"


def _handed(arguments: Sequence[Any], result: Any) -> Any:
    return (
        kinds_of_arrays.like_inputs(arguments, result) if isinstance(result, np.ndarray) else result
    )


def _written(results: Sequence[Any], out: Any, name: str) -> Any:
    targets = list(out) if isinstance(out, tuple | list) else [out]
    if len(targets) != len(results):
        raise invalid(f"{name}: out has {len(targets)} arrays, must have {len(results)}")
    for target, one in zip(targets, results, strict=True):
        array = kinds_of_arrays.as_ndarray(target, "out")
        if array.shape != one.shape or array.dtype != one.dtype:
            raise invalid(
                f"{name}: out is {array.dtype}{list(array.shape)}, must be {one.dtype}{list(one.shape)}"
            )
        np.copyto(array, one)
        kinds_of_arrays.mark_written(target)
    return out


class _Program:
    """A model's graph, and what it declares of inputs and outputs."""

    def __init__(
        self, proto: Any, weights: Mapping[str, np.ndarray], dims: Mapping[str, int],
        arguments: Mapping[str, Any], fallback: str, patterns: bool,
    ):  # fmt: skip
        import onnx

        self._proto, self._dims, self._given = proto, dims, arguments
        self._weights, weights = weights, dict(weights)
        graph = proto.graph
        self.fallback = fallback
        self.name = self.__name__ = text_of(graph.name) or "model"
        self.warned: set[str] = set()
        opsets = {("" if o.domain in STANDARD else o.domain): o.version for o in proto.opset_import}
        inputs = [*graph.input]
        unknown = [name for name in arguments if name not in {one.name for one in inputs}]
        if unknown:
            there = ", ".join([one.name for one in inputs]) or "none"
            raise invalid(f"{self.name} has no input {shown(unknown[0])}; those there are: {there}")
        _check_dims(self.name, dims, _names_of_dims(inputs))
        declared = {one.name: self._declared(onnx, one) for one in inputs}
        for name, value in arguments.items():
            weights[name] = self._constant(name, value, declared[name])
        needed = [one for one in declared if one not in weights]
        self.optional = {one for one in declared if one in weights and one not in arguments}
        self.inputs = {
            one: declared[one] for one in (*needed, *[n for n in declared if n in self.optional])
        }
        self.graph = Graph(graph, opsets, weights, [*self.inputs], fallback != "refuse", patterns)
        self.outputs = self.graph.outputs
        self._refuse_loose_ends()
        self._refuse_lacking()
        self._refuse_unfit(proto.ir_version)
        fresh = Names()
        self._parameters = {name: fresh.fresh(identifier(name)) for name in self.inputs}
        fields = Names()
        self.result = namedtuple(  # type: ignore[misc]
            "Outputs",
            [fields.fresh(identifier(name).lstrip("_") or "out") for name in self.outputs],
        )

    def __reduce__(self) -> Any:
        return _read_again, (
            _without_weights(self._proto).SerializeToString(),
            {name: np.asarray(one) for name, one in self._weights.items()},
            dict(self._dims),
            dict(self._given),
            self.fallback,
            self.graph.patterns,
        )

    # --- Inputs -------------------------------------------------------------------------------------

    def _declared(self, onnx: Any, info: Any) -> tuple[np.dtype | None, Dims | None]:
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type"):
            return None, None  # a sequence, which runs take as they are
        if kind.elem_type == onnx.TensorProto.STRING:
            return np.dtype(object), None
        try:
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        except (KeyError, ValueError):
            raise invalid(f"input {info.name} has no dtype that ONNX knows") from None
        if not kind.HasField("shape"):
            return dtype, None
        names = [one.dim_param for one in kind.shape.dim]
        return dtype, tuple(
            [self._size(info.name, n, one, names) for n, one in enumerate(kind.shape.dim)]
        )

    def _size(self, owner: str, index: int, dim: Any, names: Sequence[str]) -> int | str:
        """The size of a dimension: a number, a name that ties it to others, or a name of its own."""
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return int(dim.dim_value)
        name = dim.dim_param
        if name in self._dims:
            return self._dims[name]
        if name in ("", "?", "-1") or names.count(name) > 1:
            return f"{owner}_{index}"
        return str(name)

    def _constant(self, name: str, value: Any, declared: tuple[Any, Any]) -> np.ndarray:
        dtype, shape = declared
        array = self._converted(name, value, dtype)
        if shape is None:
            return array
        if (
            array.ndim == 0
            and len(shape)
            and all(isinstance(size, str) or size == 1 for size in shape)
        ):
            array = array.reshape((1,) * len(shape))
        fits = array.ndim == len(shape) and all(
            isinstance(want, str) or want == size
            for want, size in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise invalid(
                f"{self.name}: {name} is {array.dtype}{list(array.shape)}, must be "
                f"{dtype}[{', '.join(map(str, shape))}]"
            )
        return array

    def _converted(self, name: str, value: Any, dtype: np.dtype | None) -> np.ndarray:
        """A constant in the dtype that its input declares, which has to hold it."""
        try:
            array = np.asarray(value)
            made = array.astype(dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise invalid(f"{self.name}: {name} is {shown(value)}: {said(error)}") from None
        kinds = array.dtype.kind, made.dtype.kind
        if "O" not in kinds and kinds[1] in "iub" and not np.array_equal(made, array):
            raise invalid(f"{self.name}: {name} is {shown(value)}, which {dtype} does not hold")
        return made

    def is_traceable(self, name: str) -> bool:
        from aclnn.acl import dtypes

        dtype = self.inputs[name][0]
        return dtype is not None and dtypes.is_known(dtype)

    def bound(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by their names, in order; what does not fit the declaration is refused."""
        names = list(self.inputs)
        known = dict(zip(names, arrays, strict=False))
        by_parameter = {parameter: name for name, parameter in self._parameters.items()}
        for key, one in named.items():
            name = key if key in self.inputs else by_parameter.get(key)
            if name is None or name in known:
                raise invalid(f"{self.name} does not take {key}; it takes {', '.join(names)}")
            known[name] = one
        missing = [name for name in names if name not in known and name not in self.optional]
        if len(arrays) > len(names) or missing:
            why = f"{', '.join(missing)} missing" if missing else f"{len(arrays)} given"
            raise invalid(f"{self.name} takes {', '.join(names)}: {why}")
        self._check(known)
        return {name: known[name] for name in names if name in known}

    def _check(self, arguments: Mapping[str, Any]) -> None:
        sizes: dict[str, tuple[int, str]] = {}
        for name, (dtype, declared) in self.inputs.items():
            if name not in arguments or dtype is None:
                continue
            shape = tuple(arguments[name].shape) if hasattr(arguments[name], "shape") else None
            if shape is None:
                raise invalid(f"{self.name}: {name} is {shown(arguments[name])}, must be an array")
            found = str(arguments[name].dtype).removeprefix("torch.")
            fits = declared is None or (
                len(shape) == len(declared)
                and all(
                    size == sizes.setdefault(want, (size, name))[0]
                    if isinstance(want, str)
                    else size == want
                    for size, want in zip(shape, declared, strict=False)
                )
            )
            if fits and (found == dtype.name or dtype.kind == "O"):
                continue
            known = {want: size for want, (size, _) in sizes.items()}
            requested = ", ".join(
                f"{one}={known[one]}" if one in known else str(one)
                for one in (("...",) if declared is None else declared)
            )
            raise invalid(
                f"{self.name}: {name} is {found}{list(shape)}, must be {dtype}[{requested}]"
            )

    def zeros(self, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Arrays of the declared shapes; nothing but a run makes them take memory."""
        declared = {}
        for name, (dtype, shape) in self.inputs.items():
            if name in self.optional:
                continue
            if dtype is None or shape is None:
                raise invalid(f"{self.name}: give arrays: no shape of {name} is declared")
            declared[name] = dtype, shape
        names = [one for _, shape in declared.values() for one in shape if isinstance(one, str)]
        _check_dims(self.name, dims, names)
        lacking = dict.fromkeys([one for one in names if one not in dims])
        if lacking:
            raise invalid(
                f"{self.name}: give arrays, or sizes of {', '.join(lacking)}: "
                f"executor(dims={{{', '.join(f'{name!r}: ...' for name in lacking)}}})"
            )
        return {
            name: np.zeros([dims[size] if isinstance(size, str) else size for size in shape], dtype)
            for name, (dtype, shape) in declared.items()
        }

    # --- Nodes --------------------------------------------------------------------------------------

    def _refuse_loose_ends(self) -> None:
        """Refuse a model in which something is read that nothing has made by then, or is made twice."""
        graph = self.graph
        maker = {name: node for node in graph.nodes for name in node.output if name}
        known = {"", *self.inputs, *graph.constants}
        for node, reads in zip(graph.nodes, graph.reads, strict=True):
            for name in [one for one in reads if one not in known]:
                what = "no input, initializer or node gives"
                if name in maker:
                    what = (
                        f"{titled(maker[name])} gives only later: nodes are in a cycle, or no order"
                    )
                raise invalid(f"{self.name}: {titled(node)} reads {shown(name)}, which {what}")
            for name in node.output:
                if name and name in known:
                    raise invalid(f"{self.name}: {titled(node)} gives {shown(name)} once more")
                known.add(name)
        if not self.outputs:
            raise invalid(f"{self.name} has no outputs")
        for name in self.outputs:
            if not name or name not in known:
                raise invalid(f"{self.name}: nothing gives the output {shown(name)}")

    def _refuse_lacking(self) -> None:
        """Refuse a model that computes, of its inputs, what nothing does; say what other means do."""
        lacking: dict[str, list[str]] = {}
        others: list[Any] = []
        computed = set(self.inputs)
        for node, reads in zip(self.graph.nodes, self.graph.reads, strict=True):
            if not computed.intersection(reads):
                continue
            computed.update(node.output)
            way = _way(node, self.graph.opset(node))
            if way == "fallback" and self.fallback != "refuse":
                others.append(node)
            elif way in ("none", "fallback"):
                # Text that is no UTF-8 comes as bytes.
                names = [
                    one if isinstance(one, str) else shown(one)
                    for one in (node.domain, node.op_type)
                ]
                kind = "::".join(filter(None, names))
                lacking.setdefault(kind, []).append(called(node))
        if lacking:
            count = sum(map(len, lacking.values()))
            raise invalid(
                f"{self.name} has {count} node{'s' * (count > 1)} that no operator stands for:\n"
                + "\n".join(f"  {kind}: {_some(nodes)}" for kind, nodes in sorted(lacking.items()))
            )
        if others and self.fallback == "warn":
            self.warned.update(map(called, others))
            _warn(self.name, others)

    def _refuse_unfit(self, ir_version: int) -> None:
        """Refuse nodes whose attributes or numbers of inputs are not those of their operator."""
        for node in nodes_within(self.graph.nodes):
            words = unfit(node, self.graph.opsets, ir_version)
            if words:
                raise invalid(f"{self.name}: {titled(node)}: {words}")


def _way(node: Any, opset: int) -> str:
    """The means by which a node is computed, as far as its operator says."""
    if not isinstance(node.domain, str) or not isinstance(node.op_type, str):
        return "none"
    if form_of(node.domain, node.op_type) is not None:
        return "kernel"
    if node.domain in STANDARD:
        if node.op_type in OF_SHAPES or node.op_type in CHOOSING:
            return "kernel"
        if node.op_type in control.CONTROL:
            return "control"
        if has_body("", node.op_type, opset):
            return "body"
    if schema_of(node.domain, node.op_type, opset) is not None:
        return "fallback"
    return "fallback" if (node.domain, node.op_type) in _of_runtime() else "none"


def _of_runtime() -> Collection[tuple[str, str]]:
    """The operators of ONNX Runtime in other domains than the standard."""
    found = runtime()
    if found is None:
        return ()
    module = found.capi.onnxruntime_pybind11_state
    return {(one.domain, one.name) for one in module.get_all_operator_schema()}


def _warn(name: str, nodes: Sequence[Any]) -> None:
    by_kind: dict[str, list[str]] = {}
    for node in nodes:
        by_kind.setdefault(node.op_type, []).append(called(node))
    who = "ONNX's reference evaluator" if runtime() is None else "ONNX Runtime"
    listed = "; ".join(f"{kind}: {_some(names)}" for kind, names in sorted(by_kind.items()))
    warnings.warn(
        f"{name}: {who} computes what has no kernel here: {listed} (fallback='allow' says nothing, "
        "fallback='refuse' refuses such models)",
        stacklevel=_user_level(),
    )


def _user_level() -> int:
    """The level of the frame that called this package."""
    import sys

    frame, level = sys._getframe(1), 1
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level


def _names_of_dims(inputs: Sequence[Any]) -> set[str]:
    found = {one.dim_param for x in inputs for one in x.type.tensor_type.shape.dim}
    return found - {"", "?", "-1"}


def _check_dims(model: str, dims: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse sizes of dimensions that a model does not name, and what is no size."""
    for name, size in dims.items():
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise invalid(f"{model} has no dimension {shown(name)}; those with names are {there}")
        count = as_int(size)
        if count is None or count < 0:
            raise invalid(f"{model}: {name} is {shown(size)}, must be an int from 0 on")


def _read_again(
    content: bytes,
    weights: Mapping[str, np.ndarray],
    dims: Mapping[str, int],
    arguments: Mapping[str, Any],
    fallback: str,
    patterns: bool,
) -> _Program:
    proto = need("onnx", "ONNX models").load_from_string(content)
    # Whoever made the pickle was warned.
    fallback = "allow" if fallback == "warn" else fallback
    return _Program(proto, weights, dims, arguments, fallback, patterns)


def _without_weights(proto: Any) -> Any:
    """A model whose initialisers, which are elsewhere, have names only."""
    import onnx

    small = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
    for field in ("name", "node", "input", "output", "value_info", "doc_string"):
        value = getattr(proto.graph, field)
        if isinstance(value, str):
            setattr(small.graph, field, value)
        else:
            getattr(small.graph, field).extend(value)
    small.graph.SetInParent()
    return small


def loaded(model: Any) -> Any:
    """A model with all its weights, and without functions of its own."""
    import onnx

    proto, weights = _loaded(need("onnx", "ONNX models"), model)
    whole = type(proto)()
    whole.CopyFrom(_inlined(proto))
    for one in whole.graph.initializer:
        if one.data_location == onnx.TensorProto.EXTERNAL or one.external_data:
            one.CopyFrom(onnx.numpy_helper.from_array(np.asarray(weights[one.name]), one.name))
    return whole


def _loaded(onnx: Any, model: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """A model and its weights by name."""
    if isinstance(model, onnx.ModelProto):
        return model, weights_of(model, None)
    try:
        if isinstance(model, bytes | bytearray | memoryview):
            proto = onnx.load_from_string(bytes(model))
            return proto, weights_of(proto, None)
        if isinstance(model, str | os.PathLike):
            return read_file(model)
    except (OSError, AclnnError):
        raise
    except Exception as error:  # of protobuf, which names its errors in several ways
        raise invalid(f"{shown(model)} is no ONNX model: {error}") from None
    raise invalid(f"{shown(model)} is no ONNX model: give a path, bytes or an onnx.ModelProto")


def _inlined(proto: Any) -> Any:
    """A model without functions of its own."""
    if not proto.functions:
        return proto
    inliner = need("onnx.inliner", "ONNX models")
    try:
        return inliner.inline_local_functions(proto)
    except Exception as error:  # of C++, by several names
        raise invalid(f"{proto.graph.name or 'model'}: its functions: {said(error)}") from None


def _some(names: Sequence[str]) -> str:
    left = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {left} more" if left > 0 else "")
