"""Graphs as models in ONNX that run: with the standard's operators, and functions made of them.

A node whose kernel is one operator of the standard is that operator; any other is a function in the
domain `aclnn`, whose body ONNX Runtime runs and viewers unfold. What neither has, such as a step in
Python, is a node of `aclnn.graph`, which only viewers understand. What a plan knows of nodes is their
metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from aclnn.graph import Argument, Graph, Node, Value, WorkspacePlan
from aclnn.graph.extras import need
from aclnn.graph.names import Names
from aclnn.graph.passes.results import unfold_results
from aclnn.graph.views import onnx as views
from aclnn.graph.views.text import arguments
from aclnn.kernels import records
from aclnn.kernels.record import Record
from aclnn.onnx.formulas import PLACES, Formula, Instruction, Number, formula_for, formulas
from aclnn.onnx.images import IMAGE_OPERATORS
from aclnn.onnx.layouts import axis_of_parts, moves_of, places_of_parts

DOMAIN = "aclnn"
OPSET, IR_VERSION = 20, 10
FLOATS = ("float16", "bfloat16", "float32", "float64")
WHOLE = ("uint8", "int8", "int16", "int32", "int64", "bool")


def executor_to_onnx(executor: Any, as_built: bool = False) -> bytes:
    """The serialised model of what an executor runs, or of what its call was built as.

    >>> import numpy as np, onnx, aclnn
    >>> model = onnx.load_from_string(executor_to_onnx(aclnn.executor("gelu", np.ones(4, np.float32))))
    >>> [node.op_type for node in model.graph.node]
    ['Gelu']
    """
    graph = executor.graph_as_built if as_built else executor.graph
    # Numbers of compiled functions are constants of their plans.
    scalars = getattr(executor.operator, "scalars", ())
    numbers = [executor.options[one.role] for one in scalars]
    plan = None if as_built else executor.plan
    weights = {graph.inputs[index]: array for index, array in executor._reached().items()}
    return graph_to_onnx(graph, plan, numbers, executor.operator.name, weights)


def graph_to_onnx(
    graph: Graph,
    plan: WorkspacePlan | None,
    numbers: Sequence[Any],
    name: str,
    weights: Mapping[int, np.ndarray] | None = None,
) -> bytes:
    """The serialised model of a graph; `numbers` are those that a run is given, `weights` inputs that are
    constants, by their values."""
    writer = _Writer(need("onnx", "ONNX models"), graph, plan, numbers)
    return writer.model(name, weights or {}).SerializeToString()


class _Writer:
    """A model while it is made: a tensor for what each value holds at the moment."""

    def __init__(self, onnx: Any, graph: Graph, plan: WorkspacePlan | None, numbers: Sequence[Any]):
        self.onnx, self.helper = onnx, onnx.helper
        self.graph, self.plan = unfold_results(graph), plan
        self.numbers = numbers
        self.buffers = views.buffers_by_name(plan)
        self.nodes: list[Any] = []
        self.functions: dict[str, Any] = {}
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Any] = {}
        self.names = Names([value.name for value in self.graph.values])
        self.latest = {value.id: value.name for value in arguments(self.graph)}
        self.parts: dict[int, list[tuple[Value, str]]] = {}
        self.seen: dict[tuple[int, str], str] = {}
        self.facts: dict[str, str] = {}
        self.has_own = False

    def model(self, name: str, weights: Mapping[int, np.ndarray]) -> Any:
        for node in self.graph.nodes:
            self.facts = views.facts_of(self.graph, node, self.buffers)
            self.add_node(node)
        self.facts = {}
        for id in self.graph.outputs:
            self.finish(self.graph.value(id))
        helper = self.helper
        made = helper.make_graph(
            self.nodes,
            name,
            [self.info(value) for value in arguments(self.graph) if value.id not in weights],
            [self.info(self.graph.value(id)) for id in self.graph.outputs],
            [
                *[
                    self.onnx.numpy_helper.from_array(array, self.graph.value(id).name)
                    for id, array in weights.items()
                ],
                *self.constants.values(),
            ],
        )
        imports = [helper.make_opsetid("", OPSET)]
        imports += [helper.make_opsetid(DOMAIN, 1)] if self.functions else []
        imports += [helper.make_opsetid(views.DOMAIN, 1)] if self.has_own else []
        model = helper.make_model(
            made,
            producer_name=DOMAIN,
            opset_imports=imports,
            functions=list(self.functions.values()),
            ir_version=IR_VERSION,
        )
        if self.plan is not None:
            helper.set_model_props(model, views.plan_facts(self.plan))
        return model

    def info(self, value: Value) -> Any:
        kind = self.type_of(value.dtype.name)
        return self.helper.make_tensor_value_info(value.name, kind, list(value.shape))

    def type_of(self, dtype: str) -> int:
        return views.element_type(self.onnx, dtype)

    # --- Tensors ------------------------------------------------------------------------------------

    def emit(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), domain: str = "",
        stem: str = "", **attributes: Any,
    ) -> str:  # fmt: skip
        """Add a node; gives the name of its first result."""
        results = list(outputs) or [self.names.fresh(stem or operator.lower())]
        made = self.helper.make_node(
            operator, list(inputs), results, name=results[0], domain=domain
        )
        made.attribute.extend(
            self.helper.make_attribute(key, value) for key, value in attributes.items()
        )
        for key, value in self.facts.items():
            made.metadata_props.add(key=key, value=value)
        self.nodes.append(made)
        return results[0]

    def constant(self, value: Any, dtype: str) -> str:
        """The name of a constant tensor."""
        array = np.asarray(value, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self.constants:
            stem = "number" if array.ndim == 0 else "constant"
            made = self.onnx.numpy_helper.from_array(array, self.names.fresh(stem))
            self.constants[key] = made
        return self.constants[key].name

    def cast(self, tensor: str, before: str, after: str) -> str:
        if before == after:
            return tensor
        return self.emit("Cast", [tensor], stem=f"{tensor}_{after}", to=self.type_of(after))

    def read(self, id: int) -> str:
        """The tensor that a value holds now."""
        value, root = self.graph.value(id), self.graph.root(id)
        if root.id in self.parts:
            self.gather(root)
        if root.id not in self.latest and not root.size:  # what has no elements may have no maker
            self.latest[root.id] = self.constant(np.empty(root.shape), root.dtype.name)
        tensor = self.latest[root.id]
        if not value.is_view:
            return tensor
        key = (id, tensor)
        if key not in self.seen:
            self.seen[key] = self.viewed(tensor, root, value)
        return self.seen[key]

    def viewed(self, tensor: str, root: Value, value: Value) -> str:
        for move in moves_of(root, value):
            if move.operator == "Transpose":
                tensor = self.emit("Transpose", [tensor], stem=value.name, perm=move.numbers[0])
                continue
            args = [self.constant(one, "int64") for one in move.numbers]
            args += [self.constant(move.table, "int64")] if move.table is not None else []
            tensor = self.emit(move.operator, [tensor, *args], stem=value.name)
        return tensor

    def target(self, value: Value) -> str:
        """The name for what a node writes."""
        return self.names.fresh(value.name) if self.is_part(value) else value.name

    def is_part(self, value: Value) -> bool:
        return value.id != self.graph.root(value.id).id

    def written(self, value: Value, tensor: str) -> None:
        if self.is_part(value):
            self.parts.setdefault(self.graph.root(value.id).id, []).append((value, tensor))
        else:
            self.latest[value.id] = tensor

    def gather(self, root: Value, name: str = "") -> None:
        """Put the parts of a value together that were written by themselves."""
        written = self.parts.pop(root.id)
        outputs = [name] if name else []
        before = self.latest.get(root.id)
        values, tensors = [one for one, _ in written], [tensor for _, tensor in written]
        axis = axis_of_parts(root, values) if root.size and before is None else None
        if axis is not None and len(tensors) > 1:
            self.latest[root.id] = self.emit("Concat", tensors, outputs, stem=root.name, axis=axis)
            return
        places = places_of_parts(root, values, before is not None)
        every = [*([before] if before else []), *tensors]
        tensor = every[0]
        if len(every) > 1:
            flat = [self.emit("Reshape", [one, self.constant([-1], "int64")]) for one in every]
            tensor = self.emit("Concat", flat, axis=0)
        if np.array_equal(places.ravel(), np.arange(sum(one.size for one in values))):
            size = self.constant(root.shape, "int64")
            self.latest[root.id] = self.emit("Reshape", [tensor, size], outputs, stem=root.name)
            return
        if len(every) == 1:
            tensor = self.emit("Reshape", [tensor, self.constant([-1], "int64")])
        table = self.constant(places, "int64")
        self.latest[root.id] = self.emit("Gather", [tensor, table], outputs, stem=root.name)

    def finish(self, out: Value) -> None:
        """Give an output its name."""
        if out.id in self.parts:
            self.gather(out, "" if out.id in self.latest else out.name)
        if self.latest[out.id] != out.name:
            self.emit("Identity", [self.latest[out.id]], [out.name])

    # --- Nodes --------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        if node.kind != "Compute":
            self.add_copy(node)
        elif (record := _record_of(node)) is not None and not record.inputs:
            if node.attr("params"):
                self.add_fill(node)
            else:
                self.add_own(node)
        elif record is not None and _first_operator(record) == "TopK":
            self.add_sort(node)
        elif record is not None and self.add_of_image(node, record):
            pass
        else:
            self.add_compute(node)

    def add_copy(self, node: Node) -> None:
        """A cast, a broadcast, or the same elements: ONNX knows no other copies."""
        source, out = self.graph.value(node.inputs[0]), self.graph.value(node.output)
        tensor, name = self.read(source.id), self.target(out)
        repeated = source.shape != out.shape
        if source.dtype != out.dtype:
            last = self.names.fresh(name) if repeated else name
            tensor = self.emit("Cast", [tensor], [last], to=self.type_of(out.dtype.name))
        if repeated:
            tensor = self.emit("Expand", [tensor, self.constant(out.shape, "int64")], [name])
        self.written(out, tensor)

    def add_fill(self, node: Node) -> None:
        out = self.graph.value(node.output)
        (number,) = [self.number(one) for one in node.attr("params")[:1]]
        name, reads = self.target(out), node.attr("reads", "float32")
        if reads not in ("float32", "float64", "int64"):
            self.add_own(node)
            return
        tensor = self.cast(self.constant(number, reads), reads, out.dtype.name)
        self.emit("Expand", [tensor, self.constant(out.shape, "int64")], [name])
        self.written(out, name)

    def add_sort(self, node: Node) -> None:
        """The first elements in order: values, indices, or both."""
        source, first = self.graph.value(node.inputs[0]), self.graph.value(node.output)
        axis, present = node.attr("axis"), node.attr("present")
        count = self.constant([first.shape[axis]], "int64")
        targets = dict(
            zip(present, [self.target(self.graph.value(id)) for id in node.outputs], strict=True)
        )
        names = [targets.get(one) or self.names.fresh(one) for one in ("values", "indices")]
        largest = int(node.attr("descending"))
        self.emit("TopK", [self.read(source.id), count], names, axis=axis, largest=largest)
        for id in node.outputs:
            value = self.graph.value(id)
            self.written(value, self.target(value))

    def add_of_image(self, node: Node, record: Record) -> bool:
        """A convolution or a pool, in the dtype that it computes in; False where the standard has none."""
        make = IMAGE_OPERATORS.get(record.name)
        dtype = self.computed_in(node) if make is not None else ""
        found = make(self.graph, node) if make is not None and dtype else None
        if found is None:
            return False
        operator, shapes, attributes = found
        result = self.graph.value(node.output)
        operands = []
        for id, shape in zip(node.inputs, shapes, strict=False):
            tensor = self.operand(id, "", dtype)
            if shape is not None:
                tensor = self.emit("Reshape", [tensor, self.constant(shape, "int64")])
            operands.append(tensor)
        direct = self.steps_of(node, result, dtype) == [dtype]
        name = self.target(result) if direct else self.names.fresh(f"{result.name}_raw")
        self.emit(operator, operands, [name], **attributes)
        self.written(result, name if direct else self.rounded(node, result, name, dtype))
        return True

    def add_compute(self, node: Node) -> None:
        dtype = self.computed_in(node)
        found = self.formula_of(node, dtype) if dtype else None
        if found is None:
            self.add_own(node)
            return
        formula, numbers = found
        operands = [
            self.operand(*pair, dtype) for pair in zip(node.inputs, formula.roles, strict=True)
        ]
        results = [self.graph.value(id) for id in node.outputs]
        made = self.made_in(formula, dtype)
        direct = {
            value.id: self.target(value)
            for value in results
            if self.steps_of(node, value, made) == [made]
        }
        names = [direct.get(value.id) or self.names.fresh(f"{value.name}_raw") for value in results]
        self.call(formula, operands, numbers, names, dtype)
        for value, name in zip(results, names, strict=True):
            if value.id not in direct:
                name = self.rounded(node, value, name, made)
            self.written(value, name)

    def steps_of(self, node: Node, value: Value, made: str) -> list[str]:
        """The dtypes that a result goes through."""
        steps = [made, node.attr("result_dtype", made), value.dtype.name]
        if made == "bool":
            steps = [made, value.dtype.name]
        return [step for index, step in enumerate(steps) if not index or step != steps[index - 1]]

    def rounded(self, node: Node, value: Value, tensor: str, made: str) -> str:
        *steps, last = self.steps_of(node, value, made)
        for before, after in pairwise(steps):
            tensor = self.cast(tensor, before, after)
        kind = self.type_of(last)
        return self.emit("Cast", [tensor], [self.target(value)], to=kind)

    def made_in(self, formula: Formula, dtype: str) -> str:
        if formula.body[-1].operator in ("ArgMax",):
            return "int64"
        return "bool" if formula.is_truth else dtype

    def computed_in(self, node: Node) -> str:
        """The dtype that a node computes in; empty where ONNX's operators do not take it."""
        reads = node.attr("reads")
        if reads is not None:
            return reads if reads in ("float32", "float64", "int64") else ""
        dtypes = [self.graph.value(id).dtype.name for id in (*node.inputs[:1], *node.outputs)]
        record = _record_of(node)
        if record is None:
            return ""
        if record.moves:
            return dtypes[0] if dtypes[0] in (*FLOATS, *WHOLE) else ""
        if dtypes[-1] in FLOATS or record.outputs[0].role == "index":
            wide = "float64" in dtypes and "float32" not in dtypes
            plain = dtypes[0] in FLOATS
            return ("float64" if wide else "float32") if plain else "int64"
        return "int64" if dtypes[-1] in WHOLE else ""

    def operand(self, id: int, role: str, dtype: str) -> str:
        """An operand as a formula takes it."""
        value, tensor = self.graph.value(id), self.read(id)
        if role == "index":
            return self.cast(tensor, value.dtype.name, "int64")
        if role == "flat" and len(value.shape) > 1:
            size = self.constant([-1], "int64")
            tensor = self.emit("Reshape", [tensor, size], stem=f"{value.name}_flat")
        return self.cast(tensor, value.dtype.name, "bool" if role in ("truth", "mask") else dtype)

    def formula_of(self, node: Node, dtype: str) -> tuple[Formula, dict[str, Any]] | None:
        """The line for a node's kernel, and its numbers by name."""
        axis = node.attr("axis", -1)
        return formula_for(
            str(node.attr("kernel")),
            len(node.inputs),
            [self.number(one) for one in node.attr("params", ())],
            {"axis": axis, "axes": [axis], **{key: node.attr(key, 0) for key in PLACES[2:]}},
            {
                "dtype": dtype,
                "present": set(node.attr("present", ())),
                "rank": len(self.graph.value(node.output).shape),
            },
        )

    def number(self, argument: Any) -> Any:
        """A number of a node: a constant, or one that a run is given, in its form."""
        if not isinstance(argument, Argument):
            return argument
        value, form = self.numbers[argument.place // 3], argument.place % 3
        value = 0 if value is None else value
        return int(value) if form == 2 else float(np.float32(value)) if form == 0 else float(value)

    def call(
        self, formula: Formula, operands: list[str], numbers: dict[str, Any], names: list[str],
        dtype: str,
    ) -> None:  # fmt: skip
        args = dict(zip(formula.operands, operands, strict=True))
        for name in formula.numbers:
            whole = name in PLACES
            if any(name in one.inputs for one in formula.body):
                value = numbers[name][0] if self.is_scalar(formula, name) else numbers[name]
                args[name] = self.constant(value, "int64" if whole else dtype)
        if formula.is_standard:
            (one,) = formula.body
            attributes = {
                key: numbers[value.name] if isinstance(value, Number) else value
                for key, value in one.attributes
            }
            inputs = [args[str(name)] for name in one.inputs]
            self.emit(one.operator, inputs, names, **attributes)
            return
        self.functions.setdefault(formula.name, self.function(formula, [*args]))
        missing = [""] * (len(formula.results) - len(names))
        self.emit(formula.name, [*args.values()], [*names, *missing], DOMAIN)

    def is_scalar(self, formula: Formula, name: str) -> bool:
        return name == "axes" and formula.body[-1].operator == "CumSum"

    def function(self, formula: Formula, inputs: list[str]) -> Any:
        """The function of a formula: numbers in its body are of the type of the first operand."""
        nodes = [node for one in formula.body for node in self.instruction(one, inputs[0])]
        imports = [self.helper.make_opsetid("", OPSET)]
        return self.helper.make_function(
            DOMAIN, formula.name, inputs, list(formula.results), nodes, imports
        )

    def instruction(self, one: Instruction, like: str) -> Iterator[Any]:
        helper, inputs = self.helper, []
        for index, value in enumerate(one.inputs):
            if isinstance(value, str):
                inputs.append(value)
                continue
            name = f"{one.outputs[0]}_{index}"
            tensor = helper.make_tensor("value", self.onnx.TensorProto.DOUBLE, [], [value])
            yield helper.make_node("Constant", [], [f"{name}_double"], value=tensor)
            yield helper.make_node("CastLike", [f"{name}_double", like], [name])
            inputs.append(name)
        yield helper.make_node(one.operator, inputs, list(one.outputs), **dict(one.attributes))

    def add_own(self, node: Node) -> None:
        """A node that only viewers understand."""
        self.has_own = True
        results = [self.graph.value(id) for id in node.outputs]
        names = [self.target(value) for value in results]
        kernel = str(node.attr("kernel", node.kind))
        self.emit(kernel, [self.read(id) for id in node.inputs], names, views.DOMAIN)
        for value, name in zip(results, names, strict=True):
            self.written(value, name)


def _first_operator(record: Record) -> str:
    """The operator of the standard that the first body of a kernel begins with; empty: there is none."""
    bodies = formulas().get(record.name, ())
    return bodies[0].body[0].operator if bodies else ""


def _record_of(node: Node) -> Record | None:
    """That of a node's kernel; None of a function of the caller's."""
    return records().get(str(node.attr("kernel")))
