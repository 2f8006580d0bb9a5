"""Nodes that exporters write in pieces: read as one, as exact as the pieces, and left where they differ."""

import ast
import json
import pickle

import numpy as np
import pytest
from cases import each

import aclnn

onnx = pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from aclnn.onnx import pieces  # noqa: E402

# Those of integers have a file of their own.
PATTERNS = [one for one in pieces.PATTERNS if not one.name.startswith("quantized")]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 8)).astype(np.float32)
HEADS = RNG.standard_normal((2, 4, 5, 8)).astype(np.float32)
ROW = RNG.standard_normal(8).astype(np.float32)
# Values of patterns by the names that patterns have for them; arrays are inputs of the model.
VALUES = {
    "x": X, "q": HEADS, "k": HEADS[..., ::-1].transpose(0, 1, 3, 2).copy(), "v": HEADS + 1,
    "mask": np.where(RNG.random((2, 1, 5, 5)) < 0.3, -np.inf, 0).astype(np.float32),
    "seen": np.tri(5, dtype=bool), "hidden": ~np.tri(5, dtype=bool),
}  # fmt: skip
VALUES["mask"][..., 0] = 0
CONSTANTS = {
    "w": ROW, "b": ROW[::-1].copy(), "EPS": np.float32(1e-5), "S": np.float32(0.4),
    "T": np.float32(0.3), "D": np.float32(2.5), "FILL": np.float32(-3.4e38), "B": np.float32(1.702),
    "axes_": np.int64([-1]), "axes2_": np.int64([-1]),
}  # fmt: skip


class Written:
    """A model of the nodes of a pattern."""

    def __init__(self, text, dtype=np.float32, **values):
        self.nodes, self.values, self.inputs, self.dtype = [], {**CONSTANTS, **values}, {}, dtype
        self.constants, self.known = {}, {}
        (self.output,) = self.write(ast.parse(text, mode="eval").body)

    def write(self, part):
        if isinstance(part, ast.NamedExpr):
            return self.write(part.value)
        if isinstance(part, ast.Name):
            return [self.value(part.id)]
        if isinstance(part, ast.Constant):
            return [self.constant(np.asarray(part.value, np.float32))]
        key = ast.dump(part)
        if key not in self.known:  # what a pattern says twice is one node
            self.known[key] = self.node(part.func.id, [self.write(one)[0] for one in part.args])
        return self.known[key]

    def value(self, name):
        given = self.values.get(name, VALUES.get(name))
        if name in self.values:
            return self.constant(np.asarray(given))
        self.inputs[name] = given if given.dtype == bool else given.astype(self.dtype)
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        wide = array.dtype.kind == "f"
        self.constants[name] = array.astype(self.dtype) if wide else array
        return name

    def node(self, kind, names):
        if kind.endswith("_"):  # may be missing
            return names
        options = {}
        if kind == "Concat":
            options["axis"] = -1
        if kind == "HardSigmoid":
            options = {"alpha": 1 / 6, "beta": 0.5}
        name = f"t{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, names, [name], f"n{name}", **options))
        return [name]

    def model(self, extra=()):
        helper = onnx.helper
        info = lambda name, one: helper.make_tensor_value_info(  # noqa: E731
            name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape
        )
        graph = helper.make_graph(
            self.nodes, "written",
            [info(name, one) for name, one in self.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in (self.output, *extra)],
            [onnx.numpy_helper.from_array(one, name) for name, one in self.constants.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def of_pattern(pattern, dtype=np.float32):
    values = {}
    if pattern.name == "rotary":
        angles = RNG.random((1, 1, 5, 8)).astype(np.float32)
        values = {
            "a": np.int64([4]), "b": np.int64([2**62]), "a2": np.int64([0]), "b2": np.int64([4]),
            "axes": np.int64([3]), "axes2": np.int64([-1]), "steps_": np.int64([1]),
            "steps2_": np.int64([1]), "cos": np.cos(angles), "sin": np.sin(angles),
        }  # fmt: skip
    if pattern.name == "linear":
        turned = "Transpose" in pattern.text
        weight = RNG.standard_normal((6, 8)).astype(np.float32)
        values = {"w": weight if turned else weight.T.copy(), "b": ROW[:6]}
    written = Written(pattern.text, dtype, **values)
    if pattern.name == "rotary":
        written.inputs["x"] = HEADS.astype(dtype)
    return written


def far(made, exact):
    return float(np.abs(made.astype(np.float64) - exact).max())


@each("pattern", PATTERNS, ids=lambda one: f"{one.name}-{one.text[:60]}")
def test_a_pattern_is_one_node_and_as_exact_as_its_pieces(pattern):
    written, wide = of_pattern(pattern), of_pattern(pattern, np.float64)
    proto = written.model()
    model, pieces = aclnn.from_onnx(proto), aclnn.from_onnx(proto, patterns=False)
    made, before = (one.run(written.inputs) for one in (model, pieces))
    with np.errstate(all="ignore"):
        (exact,) = ReferenceEvaluator(wide.model()).run(None, wide.inputs)
    (found,) = model.report().patterns
    assert found.name == pattern.name
    assert found.nodes == tuple(one.name for one in written.nodes)
    assert pieces.report().patterns == ()
    assert np.isfinite(exact).all()
    assert far(made, exact) <= far(before, exact) + 2 * np.spacing(
        np.abs(exact).max(), dtype=np.float32
    )


def gelu(**changed):
    given = {"root": 2**0.5, "one": 1, "half": 0.5, **changed}
    return Written("Mul(Mul(x, Add(Erf(Div(x, {root})), {one})), {half})".format(**given))


def names_of(written, extra=(), **options):
    model = aclnn.from_onnx(written.model(extra), **options)
    made = model.run(written.inputs)
    (first, *_) = made if isinstance(made, tuple) else (made,)
    with np.errstate(all="ignore"):
        wanted = ReferenceEvaluator(written.model(extra)).run(None, written.inputs)[0]
    assert np.allclose(first, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
    return [one.name for one in model.report().patterns]


def test_pieces_stay_where_numbers_or_readers_differ():
    assert names_of(gelu()) == ["gelu"]
    assert names_of(gelu(), patterns=False) == []
    for changed in ({"root": 1.5}, {"one": 1.01}, {"half": 0.25}):
        assert names_of(gelu(**changed)) == []
    written = gelu()
    for inner in [one.output[0] for one in written.nodes[:-1]]:
        assert names_of(written, [inner]) == []  # its result is needed by itself


def test_norms_over_other_axes_stay_in_pieces():
    text = next(one.text for one in PATTERNS if one.name == "rms_norm")
    for axes, name in (([-1], ["rms_norm"]), ([1, 2], ["rms_norm"]), ([1], []), ([0, -1], [])):
        assert names_of(Written(text, axes2_=np.int64(axes))) == name, axes
    whole = Written(text, axes2_=np.int64([-2, 2]), w=RNG.random((3, 8)).astype(np.float32))
    assert names_of(whole) == ["rms_norm"]


def test_a_shift_that_is_no_row_is_no_part_of_a_norm():
    text = next(one.text for one in PATTERNS if one.name == "layer_norm")
    column = np.float32([[1], [2], [3]])
    written = Written(text)
    assert names_of(written) == ["layer_norm"]
    assert names_of(Written(text, b=column)) == ["layer_norm"]  # of what comes before it
    assert names_of(Written(text, w=column)) == ["layer_norm"]


def test_rows_that_see_nothing_are_what_the_pieces_give():
    mask = np.zeros((2, 1, 5, 5), np.float32)
    mask[0, 0, 2] = -np.inf
    text = "MatMul(Softmax(Add(Mul(MatMul(q, k), S), mask)), v)"
    written = Written(text)
    written.inputs["mask"] = mask
    known = Written(text, mask=mask)
    for one in (written, known):
        assert names_of(one) == ["attention"]
        assert np.isnan(aclnn.from_onnx(one.model()).run(one.inputs)[0, :, 2]).all()
    shares = "Softmax(Add(Mul(MatMul(q, k), S), mask))"
    written = Written(f"MatMul(Where(IsNaN({shares}), 0, {shares}), v)")
    written.inputs["mask"] = mask
    assert names_of(written) == ["attention"]
    assert (aclnn.from_onnx(written.model()).run(written.inputs)[0, :, 2] == 0).all()


def test_what_is_hidden_by_a_small_number_keeps_its_share():
    text = "MatMul(Softmax(Where(seen, MatMul(q, k), FILL)), v)"
    assert names_of(Written(text)) == ["attention"]
    assert names_of(Written(text, FILL=np.float32(-2))) == []
    assert names_of(Written(text, FILL=np.float32(-np.inf))) == ["attention"]


def test_softmax_over_another_axis_is_no_attention():
    written = Written("MatMul(Softmax(MatMul(q, k)), v)")
    written.nodes[1].attribute.append(onnx.helper.make_attribute("axis", 2))
    assert names_of(written) == []


def test_halves_between_casts_are_computed_once():
    inner = next(one.text for one in PATTERNS if one.name == "rms_norm")
    text = inner.replace("Cast_", "Cast")
    written = Written(text, np.float16)
    for node in written.nodes:
        if node.op_type == "Cast":
            to = onnx.TensorProto.FLOAT if node.input[0] == "x" else onnx.TensorProto.FLOAT16
            node.attribute.append(onnx.helper.make_attribute("to", to))
    for name, one in written.constants.items():
        if one.size == 1 and one.dtype.kind == "f":
            written.constants[name] = one.astype(np.float32)
    model = aclnn.from_onnx(written.model())
    made = model.run(written.inputs)
    wide = of_pattern(next(one for one in PATTERNS if one.text == inner), np.float64)
    (exact,) = ReferenceEvaluator(wide.model()).run(None, {"x": written.inputs["x"].astype(float)})
    assert [one.name for one in model.report().patterns] == ["rms_norm"]
    assert made.dtype == np.float16
    assert far(made, exact) <= 2**-10 * np.abs(exact).max()


def test_patterns_are_in_the_report_and_survive_pickling():
    written = gelu()
    model = aclnn.from_onnx(written.model())
    made = model.run(written.inputs)
    report = model.report()
    assert "as one" in str(report)
    assert json.loads(report.to_json())["patterns"] == [
        {"name": "gelu", "nodes": ["nt0", "nt1", "nt2", "nt3", "nt4"]}
    ]
    assert report.counts == {"kernel": 5}
    assert [one.name for one in model.plans[0].graph.nodes] == ["gelu"]
    off = pickle.loads(pickle.dumps(aclnn.from_onnx(written.model(), patterns=False)))
    off.run(written.inputs)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.run(written.inputs), made)
    assert (len(again.report().patterns), off.report().patterns) == (1, ())


def test_patterns_is_true_or_false():
    with pytest.raises(aclnn.AclnnError, match="patterns is 'some'"):
        aclnn.from_onnx(gelu().model(), patterns="some")


def test_a_cast_that_others_read_too_is_computed_for_them():
    inner = next(one.text for one in PATTERNS if one.name == "rms_norm")
    written = Written(inner.replace("Cast_", "Cast"))
    for node in written.nodes:
        if node.op_type == "Cast":
            node.attribute.append(onnx.helper.make_attribute("to", onnx.TensorProto.FLOAT))
    first, last = [one.output[0] for one in written.nodes if one.op_type == "Cast"]
    assert names_of(written, [first]) == ["rms_norm"]
    assert names_of(written, [last]) == ["rms_norm"]  # all but the scale


def test_weights_keep_the_names_of_the_file():
    for pattern in [one for one in PATTERNS if one.name == "linear"]:
        written = of_pattern(pattern)
        model = aclnn.from_onnx(written.model())
        names = {one.name for one in model.executor(**written.inputs).graph.values}
        assert {"x", *written.constants} <= names
