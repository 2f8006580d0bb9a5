"""Models in ONNX: every operator that is read, whole models, and what is said of others."""

import gc
import json
import pathlib
import pickle
import re

import numpy as np
import pytest
from cases import each

import aclnn

onnx = pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from aclnn.onnx.evaluation import runtime  # noqa: E402
from aclnn.onnx.forms import FORMS, OF_SHAPES  # noqa: E402
from aclnn.onnx.numpy_forms import NUMPY_FORMS  # noqa: E402
from aclnn.onnx.pooling import POOLS  # noqa: E402
from aclnn.onnx.recurrent import RECURRENT  # noqa: E402
from aclnn.onnx.sampling import SAMPLING  # noqa: E402
from aclnn.onnx.scattering import SCATTERING  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 6)).astype(np.float32)
TAPS = RNG.standard_normal((5, 4, 3)).astype(np.float32)
Y = RNG.standard_normal((3, 4, 6)).astype(np.float32)
ROW = RNG.standard_normal(6).astype(np.float32)
POSITIVE = (np.abs(X) + 0.1).astype(np.float32)
IMAGE = RNG.standard_normal((2, 4, 3, 5)).astype(np.float32)
CHANNEL = RNG.standard_normal((4, 4)).astype(np.float32)
MATRIX = RNG.standard_normal((6, 5)).astype(np.float32)
IDS = RNG.integers(-3, 3, (2, 5))
IMAGES = np.random.default_rng(1).standard_normal((2, 3, 6, 7)).astype(np.float32)
FLAGS = X > 0
NAN = np.where(X > 1, np.nan, X).astype(np.float32)
INFINITE = np.float32([-np.inf, np.inf, np.nan, 1])
BYTES = RNG.integers(0, 256, (2, 4, 6)).astype(np.uint8)
LONG = np.where(RNG.random((4, 1000)) < 0.9, 255, 254).astype(np.uint8)
TYPES = {"float32": "float", "int64": "int64", "bool": "bool", "float16": "float16"}

# A call of every operator that is read: the expression and its inputs, a, b, c ...
CALLS = [
    *((f"y = {kind} (a)", X) for kind in (
        "Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Floor", "Erf", "Sin", "Cos", "Softplus",
        "Mish", "HardSwish", "Identity", "Elu", "Selu", "Celu", "LeakyRelu", "ThresholdedRelu",
        "HardSigmoid", "Gelu", "Softsign", "Shrink", "Dropout", "Softmax", "LogSoftmax", "Flatten",
        "Transpose", "Trilu", "Size", "Shape", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
        "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ArgMax",
    )),
    *((f"y = {kind} (a)", POSITIVE) for kind in ("Log", "Sqrt", "Reciprocal", "ReduceLogSum")),
    *((f"y = {kind} (a, b)", X, Y) for kind in (
        "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Less", "LessOrEqual", "Greater",
        "GreaterOrEqual", "Equal",
    )),
    *((f"y = {kind} (a, b)", FLAGS, Y > 0) for kind in ("And", "Or", "Xor")),
    ("y = Not (a)", FLAGS), ("y = IsNaN (a)", NAN),
    ("y = Add (a, b)", X, ROW), ("y = Max (a, b, c)", X, Y, ROW), ("y = Mean (a, b, c)", X, Y, ROW),
    ("t = Constant <value = float {0.3}> () y = Sub (t, a)", X),
    ("t = Constant <value = float {0.3}> () y = Div (a, t)", X),
    ("y = Div (a, b)", np.int64([-7, 7, 9]), np.int64([2, -2, 3])),
    ("y = Pow (a, b)", POSITIVE, Y),
    ("t = Constant <value = float {2.0}> () y = Pow (a, t)", X),
    ("t = Constant <value = float {0.5}> () y = Pow (a, t)", POSITIVE),
    ("l = Constant <value = float {-0.5}> () h = Constant <value = float {1.0}> () "
     "y = Clip (a, l, h)", X),
    ("h = Constant <value = float {1.0}> () y = Clip (a, , h)", X),
    ("y = Where (a, b, c)", FLAGS, X, Y),
    ("t = Constant <value = float {-9.0}> () y = Where (a, b, t)", FLAGS, X),
    ("t = Constant <value = float {-9.0}> () y = Where (a, t, b)", FLAGS, X),
    ("t = Constant <value = float {-9.0}> () z = Constant <value = float {0.0}> () "
     "y = Where (a, t, z)", FLAGS),
    ("y = Elu <alpha = 0.3> (a)", X), ("y = Selu <alpha = 1.2, gamma = 1.5> (a)", X),
    ("y = Celu <alpha = 2.0> (a)", X), ("y = LeakyRelu <alpha = 0.2> (a)", X),
    ("y = ThresholdedRelu <alpha = 0.3> (a)", X), ("y = HardSigmoid <alpha = 0.16666667> (a)", X),
    ('y = Gelu <approximate = "tanh"> (a)', X), ("y = Shrink <lambd = 0.3, bias = 0.1> (a)", X),
    ("y = PRelu (a, b)", X, ROW), ("y = Cast <to = 10> (a)", X), ("y = Cast <to = 7> (a)", FLAGS),
    ("y = CastLike (a, b)", X, np.float16([1])),
    *((f's = Constant <value_floats = [1.0, 1.0, 2.0, 0.7]> () '
       f'y = Resize <mode = "{mode}", coordinate_transformation_mode = "{at}"> (a, , s)', IMAGE)
      for mode in ("linear", "cubic", "nearest")
      for at in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")),
    *((f's = Constant <value_ints = [2, 4, 5, 2]> () '
       f'y = Resize <mode = "{mode}", antialias = {far}, exclude_outside = {out}> (a, , , s)', IMAGE)
      for mode in ("linear", "cubic") for far in (0, 1) for out in (0, 1)),
    *((f's = Constant <value_ints = [7, 9]> () y = Resize <axes = [2, 3], nearest_mode = "{mode}", '
       'keep_aspect_ratio_policy = "not_larger"> (a, , , s)', IMAGE)
      for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
    *((f'y = Einsum <equation = "{text}"> (a, b)', X, Y) for text in (
        "bij,bkj->bik", "bij,bik->bjk", "abc,abc->", "abc,abc->ac", "abc,def->adbe", "...ij,...kj->...ik")),
    ('y = Einsum <equation = "abc->ca"> (a)', X), ('y = Einsum <equation = "ab,bc,cd"> (a, b, c)', X[0],
     MATRIX, MATRIX.T.copy()), ('y = Einsum <equation = "bi,cj"> (a, b)', X[0], Y[0, :2]),
    *((f'y = DepthToSpace <blocksize = 2, mode = "{mode}"> (a)', IMAGE) for mode in ("DCR", "CRD")),
    ("y = SpaceToDepth <blocksize = 3> (a)", IMAGES[..., :6].copy()),
    ("y = MatMul (a, b)", X, MATRIX), ("y = MatMul (a, b)", ROW, MATRIX),
    ("y = Gemm (a, b)", X[0], MATRIX), ("y = Gemm (a, b, c)", X[0], MATRIX, ROW[:5]),
    ("y = Gemm <alpha = 0.5, beta = 2.0, transA = 1, transB = 1> (a, b, c)", X[0], MATRIX[:5, :4],
     ROW[:5]),
    ("y = Gemm <alpha = 0.5> (a, b)", X[0], MATRIX),
    ("y = Softmax <axis = 1> (a)", X), ("y = LogSoftmax <axis = 0> (a)", X),
    ("y = LayerNormalization (a, b)", X, ROW), ("y = LayerNormalization (a, b, c)", X, ROW, ROW),
    ("y = LayerNormalization <axis = 1, epsilon = 0.1> (a, b, c)", X, Y[0], Y[1]),
    ("y, m, v = LayerNormalization (a, b, c)", X, ROW, ROW),
    ("y = GroupNormalization <num_groups = 2> (a, b, c)", IMAGE, CHANNEL[0], CHANNEL[1]),
    ("y = InstanceNormalization (a, b, c)", IMAGE, CHANNEL[0], CHANNEL[1]),
    ("y = BatchNormalization (a, b, c, d, e)", IMAGE, CHANNEL[0], CHANNEL[1], CHANNEL[2],
     np.abs(CHANNEL[3])),
    *((f"t = Constant <value_ints = [1, -1]> () y = {kind} <keepdims = {keep}> (a, t)", X)
      for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare",
                   "ReduceL1", "ReduceL2") for keep in (0, 1)),
    ("y = ReduceSum <noop_with_empty_axes = 1> (a)", X),
    ("y = ArgMax <axis = 1, keepdims = 0> (a)", X),
    ("t = Constant <value_int = 1> () y = CumSum (a, t)", X),
    ("t = Constant <value_ints = [0, -1]> () y = Reshape (a, t)", X),
    ("t = Constant <value_ints = [6, 12]> () y = Reshape (a, t)", X),
    ("y = Flatten <axis = -1> (a)", X), ("y = Flatten <axis = 0> (a)", X),
    ("t = Constant <value_ints = [0, -1]> () u = Unsqueeze (a, t) y = Squeeze (u, t)", X),
    ("t = Constant <value_ints = [0, -1]> () y = Unsqueeze (a, t)", X),
    ("y = Transpose <perm = [1, 2, 0]> (a)", X),
    ("t = Constant <value_ints = [2, 1, 4, 1]> () y = Expand (a, t)", X),
    ("y = Concat <axis = -1> (a, b, a)", X, Y),
    ("s = Constant <value_ints = [1]> () e = Constant <value_ints = [-1]> () "
     "x = Constant <value_ints = [2]> () p = Constant <value_ints = [2]> () "
     "y = Slice (a, s, e, x, p)", X),
    ("s = Constant <value_ints = [-1]> () e = Constant <value_ints = [-100]> () "
     "x = Constant <value_ints = [1]> () p = Constant <value_ints = [-1]> () "
     "y = Slice (a, s, e, x, p)", X),
    ("y, z = Split <axis = 1, num_outputs = 2> (a)", X),
    ("t = Constant <value_ints = [1, 5]> () y, z = Split <axis = 2> (a, t)", X),
    ("y = Gather (a, b)", X, IDS), ("y = Gather <axis = 1> (a, b)", X, IDS),
    ("t = Constant <value_int = -1> () y = Gather <axis = 1> (a, t)", X),
    ("t = Constant <value_ints = [2, -1]> () y = Gather <axis = 2> (a, t)", X),
    ("y = GatherElements <axis = 2> (a, b)", X, RNG.integers(-6, 6, (3, 4, 2))),
    ("y = GatherND (a, b)", X, np.int64([[[0, 1], [2, -1]], [[-3, 0], [1, 2]]])),
    ("y = GatherND (a, b)", X, np.int64([[2], [-1]])),
    ("y = GatherND (a, b)", X, np.int64([2, 3, 5])),
    ("y = GatherND <batch_dims = 1> (a, b)", X, np.int64([[[1, 5]], [[0, -1]], [[-2, 3]]])),
    ("y = GatherND <batch_dims = 2> (a, b)", X, RNG.integers(-6, 6, (3, 4, 2, 1))),
    ("t = Constant <value_ints = [1, 0, 2, 0, 3, 0]> () y = Pad (a, t)", X),
    ("t = Constant <value_ints = [1, 2]> () x = Constant <value_ints = [-1]> () "
     "v = Constant <value = float {9.0}> () y = Pad (a, t, v, x)", X),
    *((f"t = Constant <value_ints = [1, 0, 2, 0, 1, 3]> () y = Pad <mode = \"{mode}\"> (a, t)", X)
      for mode in ("reflect", "edge", "wrap")),
    ("y = Sign (a)", X), ("y = Ceil (a)", X), ("y = Round (a)", 4 * X), ("y = IsInf (a)", INFINITE),
    ("y = IsInf <detect_negative = 0> (a)", INFINITE), ("y = IsInf <detect_positive = 0> (a)", INFINITE),
    ("y = Mod <fmod = 1> (a, b)", X, Y), ("y = Mod (a, b)", IDS, IDS * 2 + 1),
    *((f"y = {kind} (a, b)", IDS, IDS[::-1].copy()) for kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    ("y = BitwiseNot (a)", IDS), ("y = ReduceProd (a)", X),
    ("y = ArgMin <axis = 1, keepdims = 0> (a)", X),
    ("y = ArgMax <axis = -1, select_last_index = 1> (a)", IDS),
    ("y = ArgMin <axis = -1, select_last_index = 1, keepdims = 0> (a)", IDS),
    *((f"t = Constant <value_int = -1> () y = CumSum <exclusive = {one}, reverse = {other}> (a, t)", X)
      for one, other in ((0, 1), (1, 0), (1, 1))),
    *((f"t = Constant <value_ints = [3]> () y, i = TopK <axis = 1, largest = {largest}> (a, t)", X)
      for largest in (0, 1)),
    ("y = ScatterElements <axis = 1> (a, b, c)", X, np.int64([[[0], [-1]]]), Y[:1, :2, :1]),
    ('y = ScatterElements <axis = 1, reduction = "add"> (a, b, c)', X, np.int64([[[1], [1]]]), Y[:1, :2, :1]),
    ("y = MatMulInteger (a, b)", BYTES[0], BYTES[1].T.copy()),
    ("y = MatMulInteger (a, b, c, d)", BYTES[0], BYTES[1].T.copy(), np.uint8(3), np.uint8([1, 2, 3, 4])),
    ("y = MatMulInteger (a, b)", LONG[:2], LONG[2:].T.copy()),
    ("y = ConvInteger <pads = [1, 1, 1, 1]> (a, b)", BYTES[:, None], BYTES[:1, None, :2, :3]),
    ("y = QLinearConv (a, c, d, b, c, d, e, d)", BYTES[:, None], BYTES[:1, None, :2, :3],
     np.float32(0.031), np.uint8(7), np.float32(9.3)),
    ("y = QLinearMatMul (a, c, d, b, c, d, e, d)", BYTES, BYTES[0].T.copy(), np.float32(0.031),
     np.uint8(7), np.float32(9.3)),
    ("y = QuantizeLinear (a, b, c)", 9 * X, np.float32(0.1), np.uint8(7)),
    ("y = QuantizeLinear <axis = 1> (a, b, c)", 9 * X, POSITIVE[0, :, 0], np.int8([1, 0, -3, 9])),
    ("y = DequantizeLinear (a, b, c)", BYTES, np.float32(0.1), np.uint8(7)),
    ("y = DequantizeLinear <axis = 2> (a, b)", BYTES, POSITIVE[0, 0]),
    ("y = DequantizeLinear <axis = 2, block_size = 4> (a, b)", BYTES, POSITIVE[:2, :, :2].copy()),
    ("y = MaxPool <kernel_shape = [3], strides = [2], pads = [1, 1]> (a)", X),
    ("y = AveragePool <kernel_shape = [2], strides = [2]> (a)", X),
    ("t = Constant <value_ints = [2, 1, 3]> () y = Tile (a, t)", X),
    ("t = Constant <value = int64 {-1}> () y = Trilu <upper = 0> (a, t)", X),
    ("y = Conv (a, b, c)", X, TAPS, ROW[:5]),
    ("y = Conv <pads = [2, 1], strides = [2], dilations = [2]> (a, b)", X, TAPS),
    ("y = Conv <auto_pad = \"SAME_UPPER\", strides = [2]> (a, b)", X, TAPS),
    ("y = Conv <auto_pad = \"SAME_LOWER\"> (a, b)", X, TAPS[:, :, :2]),
    ("y = Conv <group = 2, pads = [1, 0, 1, 0]> (a, b)", X[None].swapaxes(1, 2), TAPS.reshape(10, 2, 3, 1)[:4]),
    ("y = ConvTranspose <strides = [2], pads = [1, 1], output_padding = [1]> (a, b, c)", X, TAPS.swapaxes(0, 1), ROW[:5]),
    ("y = MaxPool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]> (a)", IMAGES),
    ("y = MaxPool <kernel_shape = [2, 2], strides = [3, 2], ceil_mode = 1> (a)", IMAGES),
    ("y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], auto_pad = \"SAME_UPPER\"> (a)", IMAGES),
    ("y = AveragePool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 0]> (a)", IMAGES),
    ("y = AveragePool <kernel_shape = [2, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (a)", IMAGES),
    ("y = GlobalMaxPool (a)", IMAGES), ("y = GlobalAveragePool (a)", IMAGES), ("y = GlobalAveragePool (a)", X),
]  # fmt: skip
# Newer than what is read everywhere else.
LATER = [
    ("y = RMSNormalization (a, b)", X, ROW),
    ("y = RMSNormalization <axis = 1, epsilon = 0.1> (a, b)", X, Y[0]),
    ("y = Swish <alpha = 0.5> (a)", X),
]


def model_of(body, inputs, opset=21, outputs=None):
    """A model whose inputs have these shapes and whose outputs have any."""
    lines = body.replace(") ", ")\n").split("\n")
    made = onnx.parser.parse_graph("g (float a) => (float y) {" + "\n".join(lines) + "}")
    helper = onnx.helper
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip("abcde", inputs, strict=False)
    ]
    names = outputs or made.node[-1].output
    graph = helper.make_graph(made.node, "g", infos, [onnx.ValueInfoProto(name=n) for n in names])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def agree(got, wanted):
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(wanted)
    for one, right in zip(got, wanted, strict=True):
        assert one.dtype == right.dtype
        assert one.shape == right.shape
        np.testing.assert_allclose(one, right, rtol=2e-5, atol=2e-6)


def run_and_compare(body, inputs, opset):
    model = model_of(body, inputs, opset)
    given = dict(zip("abcde", inputs, strict=False))
    agree(aclnn.from_onnx(model)(*inputs), ReferenceEvaluator(model).run(None, given))


@each("body, inputs", [(body, inputs) for body, *inputs in CALLS])
def test_operators_are_those_of_the_standard(body, inputs):
    run_and_compare(body, inputs, 21)


@pytest.mark.parametrize(("body", "inputs"), [(body, inputs) for body, *inputs in LATER])
def test_later_operators_are_those_of_the_standard(body, inputs):
    if onnx.defs.onnx_opset_version() < 24:
        pytest.skip("an older onnx does not have them")
    run_and_compare(body, inputs, 24)


def test_every_operator_that_is_read_is_tried():
    tried = " ".join(body for body, *_ in (*CALLS, *LATER))
    # In files of their own or the standard's tests of nodes, and of old versions.
    elsewhere = {*RECURRENT, *POOLS, *SAMPLING, *SCATTERING, *NUMPY_FORMS, "Upsample"}
    elsewhere |= {"LRN", "LpNormalization", "OptionalGetElement"}
    elsewhere |= {"ConstantOfShape", "MelWeightMatrix"}  # whose inputs are known
    known = {*FORMS, *OF_SHAPES} - elsewhere
    assert [kind for kind in known if f"{kind} " not in tried] == []


@pytest.mark.parametrize(
    ("body", "opset"),
    [
        ("y = Squeeze <axes = [0]> (a)", 11),
        ("y = Unsqueeze <axes = [0, 2]> (a)", 11),
        ("y = ReduceSum <axes = [1], keepdims = 0> (a)", 11),
        ("y = ReduceMean <axes = [1, 2]> (a)", 13),
        ("y = Clip <min = -0.5, max = 0.5> (a)", 6),
        ("y = Softmax <axis = 1> (a)", 6),
        ("y = Slice <starts = [1], ends = [3], axes = [2]> (a)", 9),
        ("y = Split <axis = 1, split = [1, 3]> (a)", 11),
        ("y = Pad <pads = [0, 1, 0, 0, 0, 2], value = 3.0> (a)", 2),
        ("y = Dropout <ratio = 0.3> (a)", 7),
    ],
)
def test_attributes_of_older_versions_are_read(body, opset):
    x = X[:1]
    body = body.replace("y = Split", "y, z = Split")
    model = model_of(body, [x], opset)
    if opset >= 9:
        agree(aclnn.from_onnx(model)(x), ReferenceEvaluator(model).run(None, {"a": x}))
        return
    matrix = np.exp(x.reshape(1, -1))
    wanted = {
        "Clip": np.clip(x, -0.5, 0.5),
        "Softmax": (matrix / matrix.sum()).reshape(x.shape),
        "Pad": np.pad(x, [(0, 0), (1, 0), (0, 2)], constant_values=3),
        "Dropout": x,
    }
    agree(aclnn.from_onnx(model)(x), [wanted[model.graph.node[0].op_type]])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y = Dropout <seed = 1> (a) z = SequenceConstruct (y)",
         "no operator stands for:\n  SequenceConstruct: z"),
        ("b = ImageDecoder (a) d = SequenceConstruct (a) e = SequenceConstruct (a) y = SequenceAt (d, b)",
         "g has 4 nodes .*\n  ImageDecoder: b\n  SequenceAt: y\n  SequenceConstruct: d, e"),
        ("y = com.acme.Gelu (a)", "1 node that no operator stands for:\n  com.acme::Gelu: y"),
        ('p = Constant <value_ints = [0, 0, -9, 0, 0, 1]> () y = Pad <mode = "edge"> (a, p)',
         r"Pad \(y\): pads .* in mode edge leave nothing"),
        ('y = ScatterElements <reduction = "mean"> (a, b, a)', r"ScatterElements \(y\): reduction mean"),
    ],
)  # fmt: skip
def test_what_is_lacking_is_said_at_once(body, words):
    given = [X, np.zeros(X.shape, np.int64)][: 1 + ("(a, b" in body)]
    with pytest.raises(aclnn.AclnnError, match=words):
        aclnn.from_onnx(model_of(body, given), fallback="refuse")(*given)


@pytest.mark.parametrize("given", [b"nonsense", b"", 3, None])
def test_what_is_no_model_is_refused(given):
    with pytest.raises(aclnn.AclnnError, match="no ONNX model") as found:
        aclnn.from_onnx(given)
    assert found.traceback[-1].path == pathlib.Path(__file__)


def test_errors_of_calls_end_at_the_callers_line():
    model = aclnn.from_onnx(model_of("y = Tanh (a)", [X]))
    for call in (lambda: model(X[:1]), lambda: model.executor(dims={"n": 3})):
        with pytest.raises(aclnn.AclnnError) as found:
            call()
        assert found.traceback[-1].path == pathlib.Path(__file__)


@pytest.mark.parametrize("is_on", [True, False])
def test_no_garbage_is_collected_while_models_are_read_and_planned(is_on):
    """A pass visits every object of the process; afterwards the collector is as it was."""
    nodes = "".join([f"t{n + 1} = Tanh (t{n}) " for n in range(200)])
    proto, passes = model_of(f"t0 = Tanh (a) {nodes}y = Softmax (t200)", [X]), []
    read, before, threshold = aclnn.from_onnx, gc.isenabled(), gc.get_threshold()
    count = lambda phase, info: passes.append(phase)  # noqa: E731
    gc.callbacks.append(count)
    try:
        (gc.enable if is_on else gc.disable)()
        gc.set_threshold(10)  # objects, of which reading makes some thousands
        model = read(proto)
        during = len(passes)
        gc.set_threshold(*threshold)
        assert gc.isenabled() == is_on
        model(X)
        with pytest.raises(aclnn.AclnnError):
            aclnn.from_onnx(b"nonsense")
        assert gc.isenabled() == is_on
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*threshold)
        (gc.enable if before else gc.disable)()
    assert during < 20  # before it begins, and after it ends


def test_without_onnx_the_message_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"ONNX models need .* 'aclnn-cpu\[onnx\]'"):
        aclnn.from_onnx("model.onnx")


def test_long_gathers_of_constants_are_folded():
    """ONNX's reference evaluates those of up to 64 elements along the axis."""
    table = RNG.standard_normal((2, 100)).astype(np.float32)
    places = RNG.integers(-100, 100, (2, 90))
    model = model_of("t = GatherElements <axis = 1> (d, e) y = Add (a, t)", [ROW[:1]])
    for name, one in (("d", table), ("e", places)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(one, name))
    np.testing.assert_array_equal(
        aclnn.from_onnx(model)(ROW[:1]), ROW[:1] + np.take_along_axis(table, places, 1)
    )


GATHERS = [
    ("y = Gather (a, i)", [4], -4, 3),
    ("t = Relu (a) y = Gather <axis = 1> (t, i)", [1], -1, 0),
    ("y = GatherElements (a, i)", [[3]], -4, 3),
    ("y = GatherND (a, i)", [[3, 0]], -4, 3),
    ("y = GatherND <batch_dims = 1> (a, i)", [[0], [0], [0], [0]], -1, 0),
]


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize(("text", "index", "least", "most"), GATHERS)
def test_indices_out_of_range_are_refused(text, index, least, most, is_constant):
    """Also those that adding the size once brings to another element."""
    table, place = np.float32([[1], [2], [3], [4]]), np.int64(index)
    for bad in (least - 1, most + 1, 2 * least):
        place.flat[-1 if "ND" not in text else 0] = bad
        arrays = [table] if is_constant else [table, place]
        model = model_of(text.replace("i)", "b)"), arrays)
        if is_constant:
            model.graph.initializer.append(onnx.numpy_helper.from_array(place, "b"))
        with pytest.raises(aclnn.AclnnError, match="ndex"):
            aclnn.from_onnx(model)(*arrays)


def test_an_index_out_of_range_is_said_with_node_and_input():
    model = model_of("y = Gather (a, b)", [CHANNEL, IDS[:1, :2]])
    model.graph.node[0].name = "/embed/words"
    with pytest.raises(aclnn.AclnnError) as caught:
        aclnn.from_onnx(model)(CHANNEL, np.int64([[1, -5]]))
    text = str(caught.value)
    assert "/embed/words: Gather" in text
    assert text.endswith("operand 'b': an index is -5, must be from -4 to 3")


def renamed(old, new):
    """A change of what nodes read."""

    def change(graph):
        for node in graph.node:
            node.input[:] = [new if name == old else name for name in node.input]

    return change


def with_attribute(name, value, place=0):
    def change(graph):
        del graph.node[place].attribute[:]
        graph.node[place].attribute.append(onnx.helper.make_attribute(name, value))

    return change


def with_initializer(**fields):
    return lambda graph: graph.initializer.append(onnx.TensorProto(**fields))


SEVERAL = "t = Relu (a) u = Softmax (t) y = Concat <axis = 1> (u, t)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (renamed("a", "u"), r"Relu \(t\) reads 'u', which Softmax \(u\) gives only later: .* cycle"),
        (renamed("a", "t"), r"Relu \(t\) reads 't', which Relu \(t\) gives only later"),
        (renamed("t", "weight"), r"Softmax \(u\) reads 'weight', which no input, init"),
        (lambda graph: graph.output.add(name="z"), "nothing gives the output 'z'"),
        (lambda graph: graph.output.__delitem__(0), "has no outputs"),
        (lambda graph: graph.node.append(graph.node[0]), r"Relu \(t\) gives 't' once more"),
        (lambda graph: graph.node[0].output.append("v"), r"Relu \(t\): .*output size 2"),
        (lambda graph: graph.node[0].input.append("a"), r"Relu \(t\): .*2"),
        (lambda graph: graph.node[2].input.__delitem__(slice(None)), r"Concat \(y\): "),
        (with_attribute("axis", 7, 1), r"Softmax \(u\): .*7"),
        (with_attribute("axis", "one", 1), r"Softmax \(u\): .*axis'. Expected: 'INT'"),
        (with_attribute("axis", -9, 2), r"Concat \(y\): .*-9"),
        (with_attribute("other", 1, 2), r"Concat \(y\): "),
        (with_initializer(name="w", dims=[3], data_type=1, raw_data=b"12"), "initializer 'w': "),
        (with_initializer(name="w", dims=[3], data_type=77), "initializer 'w': "),
        (lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", 99),
         "input a has no dtype"),
        (lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", 7), r"Softmax \(u\): .*int64"),
        (lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", 8), r"Softmax \(u\): "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_model_is_told_with_its_place(change, words):
    model = model_of(SEVERAL, [X])
    change(model.graph)

    def read():
        made = aclnn.from_onnx(model)
        ((dtype, _),) = made.inputs.values()
        return made(X.astype(dtype))

    with pytest.raises(aclnn.AclnnError, match=words) as found:
        read()
    assert found.traceback[-1].path == pathlib.Path(__file__)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y = Relu <alpha = 1.0> (a)", r"^g: Relu \(y\): .*attribute: alpha"),
        ("y = Concat (a, a)", r"^g: Concat \(y\): .*'axis' is missing"),
        ('y = Softmax <axis = "last"> (a)', r"^g: Softmax \(y\): .*axis'. Expected: 'INT'"),
        ("y = Relu (a, a)", r"^g: Relu \(y\): .*input size 2"),
        ("c = Constant <value = bool {1}> () y = If (c) <then_branch = p () => (float[n] u) { u = Neg <by = 2> (a) }, "
         "else_branch = q () => (float[n] v) { v = Abs (a) }>", r"^g: Neg \(u\): .*attribute: by"),
    ],
)  # fmt: skip
def test_attributes_that_do_not_fit_are_said_when_a_model_is_read(body, words):
    with pytest.raises(aclnn.AclnnError, match=words):
        aclnn.from_onnx(model_of(body, [X]))


@pytest.mark.parametrize(
    ("body", "second", "words"),
    [
        ("y = Split <axis = 2> (a, b)", [2, 9], r"Split \(y\): sizes \[2, 9\] do not add up to"),
        ("y = Split <axis = 2> (a, b)", [-1, 7], r"Split \(y\): sizes \[-1, 7\] do not add up to"),
        ("y, i = TopK (a, b)", [9], r"TopK \(y\): k is 9, must be from 0 to"),
        ("y = MaxRoiPool <pooled_shape = [0, 2]> (a, b)", [1], r"MaxRoiPool \(y\): "),
        ("y = Expand (a, b)", [5, 5, 5], r"Expand \(y\): .*5"),
    ],
)
def test_values_that_do_not_fit_are_said_with_model_and_node(body, second, words):
    body = body.replace("y = Split", "y, z = Split")
    given = [X, np.float32(second) if "Roi" in body else np.int64(second)]
    model = aclnn.from_onnx(model_of(body, given), fallback="allow")
    with pytest.raises(aclnn.AclnnError, match=rf"^g: {words}"):
        model(*given)


def test_a_missing_shape_and_none_look_different():
    proto = model_of("y = Add (a, b)", [ROW, np.float32(1).reshape(())])
    with pytest.raises(aclnn.AclnnError, match=r"b is float32\[1\], must be float32\[\]$"):
        aclnn.from_onnx(proto)(ROW, ROW[:1])


def changed(message, rng):
    """Change one field of a message of protobuf's at random, at any depth."""
    fields = [one for one in message.ListFields() if one[0].name not in ("version", "ir_version")]
    if not fields:
        return
    field, value = fields[rng.integers(len(fields))]
    if isinstance(value, int | float):
        choices = [0, 1, 2] if field.enum_type else [-1, 0, 2, 9, 77]
        setattr(message, field.name, type(value)(rng.choice(choices)))
    elif isinstance(value, str | bytes):
        setattr(message, field.name, value[:-1])
    elif hasattr(value, "ListFields"):
        changed(value, rng)
    elif rng.integers(4) == 0:
        del value[int(rng.integers(len(value)))]
    else:
        place = int(rng.integers(len(value)))
        if hasattr(value[place], "ListFields"):
            changed(value[place], rng)
        elif isinstance(value[place], int):
            value[place] = int(rng.choice([-9, -1, 0, 7]))
        elif isinstance(value[place], float):
            value[place] = float(rng.choice([-9, 0, 0.5, 7]))
        else:
            value[place] = rng.choice(["", "a", "t", "y"]) if isinstance(value[place], str) else b""


@pytest.mark.parametrize("seed", range(4))
def test_models_that_are_mutated_run_or_are_refused(seed):
    rng = np.random.default_rng(seed)
    bodies = [(body, inputs) for body, *inputs in CALLS]
    refused = 0
    for _ in range(300):
        body, inputs = bodies[rng.integers(len(bodies))]
        model = model_of(body, inputs)
        for _ in range(rng.integers(1, 4)):
            changed(model, rng)
        try:
            aclnn.from_onnx(model, fallback="allow")(*inputs)
        except aclnn.AclnnError:
            refused += 1
    assert refused > 100


# --- Whole models -----------------------------------------------------------------------------------

TEXT = """
<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
mlp (float[batch, 8] input__1, float[batch, 4] bias) => (float[batch, 4] out__1, int64[batch] best)
<float[4] shift = {1.0, 2.0, 3.0, 4.0}>
{
    rows = Shape <start = 0, end = 1> (input__1)
    wide = Constant <value_ints = [4, 2]> ()
    shape = Concat <axis = 0> (rows, wide)
    cube = Reshape (input__1, shape)
    axes = Constant <value_ints = [-1]> ()
    sums = ReduceSum <keepdims = 0> (cube, axes)
    both = own.biased (sums, bias)
    out__1 = Add (both, shift)
    best = ArgMax <axis = 1, keepdims = 0> (out__1)
}
<domain: "own", opset_import: ["" : 21]>
biased (x, b) => (y) { s = Add (x, b) y = Tanh (s) }
"""


@pytest.fixture
def mlp():
    made = onnx.parser.parse_model(TEXT)
    for one in (*made.graph.input, *made.graph.output):
        one.name = one.name.replace("__", ".")  # which the textual form has no names for
    for node in made.graph.node:
        for names in (node.input, node.output):
            names[:] = [name.replace("__", ".") for name in names]
    return made


def arrays(batch):
    rng = np.random.default_rng(batch)
    return [rng.standard_normal((batch, n)).astype(np.float32) for n in (8, 4)]


def test_dimensions_are_taken_from_the_call_or_asked_for(mlp, tmp_path):
    path = tmp_path / "mlp.onnx"
    onnx.save(mlp, path)
    for given in (mlp, path, str(path), path.read_bytes()):
        model = aclnn.from_onnx(given)
        assert model.inputs["input.1"] == (np.dtype(np.float32), ("batch", 8))
        assert model.outputs == ("out.1", "best")
    evaluator = ReferenceEvaluator(mlp)
    for batch in (3, 5):
        x, b = arrays(batch)
        made = model(x, bias=b)
        agree(made, evaluator.run(None, {"input.1": x, "bias": b}))
        assert made.out_1 is made[0]
    assert model.cache_info()["size"] == 2
    planned = model.executor(dims={"batch": 7})
    x, b = arrays(7)
    agree(planned.run(x, b), evaluator.run(None, {"input.1": x, "bias": b}))
    assert aclnn.from_onnx(mlp, dims={"batch": 7}).executor().graph == planned.graph
    for dims, words in (
        ({"bach": 7}, "no dimension 'bach'; those with names are batch"),
        ({"batch": -1}, "batch is -1"),
        ({"batch": "x"}, "batch is 'x'"),
    ):
        with pytest.raises(aclnn.AclnnError, match=words):
            model.executor(dims=dims)
        with pytest.raises(aclnn.AclnnError, match=words):
            aclnn.from_onnx(mlp, dims=dims)
    with pytest.raises(aclnn.AclnnError, match=r"sizes of batch: executor\(dims={'batch': ...}\)"):
        model.executor()


def test_plans_show_names_of_the_model(mlp):
    executor = aclnn.from_onnx(mlp).executor(*arrays(3))
    assert {"input_1", "bias", "shift"} <= {value.name for value in executor.graph.values}
    lines = {line for node in executor.graph_as_built.nodes for line in node.origin}
    assert "out.1: Add" in lines
    assert executor.plan.to_text()


def test_paths_in_names_of_nodes_are_modules():
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3])
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["h"], name="/layer.0/act/Relu"),
        onnx.helper.make_node("Relu", ["h"], ["y"], name="Relu_1"),
    ]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    made = aclnn.from_onnx(model).executor(np.ones((2, 3), np.float32)).graph_as_built
    origins = [node.origin for node in made.nodes if node.attr("kernel") == "relu"]
    assert origins == [
        ("layer.0", "layer.0/act", "/layer.0/act/Relu: Relu"),
        ("Relu_1: Relu",),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, b: [x], "takes input.1, bias: bias missing"),
        (lambda x, b: [x, b, b], "3 given"),
        (lambda x, b: [x, b[1:]], r"bias is float32\[2, 4\], must be float32\[batch=3, 4\]"),
        (lambda x, b: [x.astype(np.float64), b], r"is float64\[3, 8\], must be float32\[batch=3"),
        (lambda x, b: [x[0], b], r"input.1 is float32\[8\], must be float32"),
        (lambda x, b: [3, b], "input.1 is 3, must be an array"),
    ],
)
def test_arguments_are_checked_against_the_declaration(mlp, change, words):
    with pytest.raises(aclnn.AclnnError, match=words):
        aclnn.from_onnx(mlp)(*change(*arrays(3)))


def test_models_pickle(mlp):
    model = aclnn.from_onnx(mlp, threads=1)
    again = pickle.loads(pickle.dumps(model))
    for one, other in zip(again(*arrays(3)), model(*arrays(3)), strict=True):
        assert np.array_equal(one, other)


# --- Models that PyTorch exports --------------------------------------------------------------------


def modules(torch):
    """Small models of the kinds that people export, and their inputs."""
    nn = torch.nn

    class Block(nn.Module):
        """A decoder's block between embedding and logits, as in GPT-2."""

        def __init__(self, width=32, heads=4, words=50):
            super().__init__()
            self.heads = heads
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(16, width)
            self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, ids):
            batch, length = ids.shape
            x = self.words(ids) + self.places(torch.arange(length))
            parts = self.qkv(self.norms[0](x)).split(x.shape[-1], -1)
            q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            hidden = torch.ones(length, length).tril() == 0
            seen = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, -1))
            x = x + self.down(nn.functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))
            return x @ self.words.weight.T

    class Attention(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    mlp = nn.Sequential(
        nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 32), nn.SiLU(), nn.LayerNorm(32),
        nn.Linear(32, 4), nn.Softmax(-1),
    )  # fmt: skip
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True)
    return {
        "mlp": (mlp, (torch.randn(5, 8),)),
        "encoder": (layer, (torch.randn(2, 7, 32),)),
        "decoder": (Block(), (torch.randint(0, 50, (2, 9)),)),
        "attention": (Attention(), tuple(torch.randn(2, 3, 7, 8) for _ in range(3))),
    }


@pytest.mark.parametrize("name", ["mlp", "encoder", "decoder", "attention"])
@pytest.mark.filterwarnings("ignore")  # of the exporter
def test_models_that_pytorch_exports(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    module, inputs = modules(torch)[name]
    exported = torch.onnx.export(module.eval(), inputs, dynamo=True, verbose=False).model_proto
    with torch.inference_mode():
        wanted = module(*inputs).numpy()
    model = aclnn.from_onnx(exported)
    given = [one.numpy() for one in inputs]
    np.testing.assert_allclose(model(*given), wanted, rtol=1e-4, atol=1e-5)
    executor = model.executor(*given)
    assert executor.plan.size >= executor.plan.lower_bound > 0
    assert executor.plan.size < executor.plan.naive_size
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    (theirs,) = session.run(None, dict(zip(names, given, strict=True)))
    np.testing.assert_allclose(model(*given), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore")  # of the exporters
def test_bert_is_read_as_either_exporter_writes_it(dynamo, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    if dynamo:
        pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel(config)

        def forward(self, ids, mask):
            return self.bert(ids, attention_mask=mask).last_hidden_state

    ids, mask = torch.randint(0, 50, (1, 80)), (torch.arange(80) < 70).long()[None]
    path = tmp_path / "bert.onnx"
    model = Last().eval()
    torch.onnx.export(model, (ids, mask), path, dynamo=dynamo, verbose=False)
    with torch.no_grad():
        wanted = model(ids, mask).numpy()
    made = aclnn.from_onnx(path)(ids.numpy(), mask.numpy())
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "y = Flatten <axis = 3> (a)",
        "y, z = Split <axis = 2, num_outputs = 2> (a)",
        "t = Constant <value_ints = [0]> () y = Gather <axis = 2> (a, t)",
        "t = Constant <value_ints = [3]> () y = Unsqueeze (a, t)",
        "t = Constant <value_ints = [-3]> () y = Squeeze (a, t)",
        "t = Constant <value_ints = [2]> () y = Slice (a, t, t, t)",
    ],
)
def test_axes_that_are_none_are_refused(body):
    x = np.ones((1, 4), np.float32)
    with pytest.raises(ValueError, match=r"axis is -?[23], must be from"):
        aclnn.from_onnx(model_of(body, [x]))(x)


def test_names_that_are_no_text_are_refused():
    model = model_of("b = Foo (a) c = Bar (b) y = Baz (c)", [np.ones(2, np.float32)])
    data = model.SerializeToString().replace(b"Foo", b"F\xffo").replace(b"Baz", b"B\xffz")
    with pytest.raises(ValueError, match=r"3 nodes .*\n +Bar: c\n +b'B.xffz': y\n +b'F.xffo': b"):
        aclnn.from_onnx(onnx.load_from_string(data))


# --- Dtypes: results have those of the standard's schemas, whatever a form computes in ---------------

WHOLE = np.int64([[5, -7, 3], [0, 2, -2]])


def result_of(body, *inputs, opset=21):
    return aclnn.from_onnx(model_of(body, inputs, opset))(*inputs)


@each("dtype", ["int8", "uint8", "int32", "uint32", "int64", "float16", "float64"])
@each(
    ("body", "wanted"),
    [
        ("y = ReduceSum (a)", lambda x: x.sum(keepdims=True)),
        ("y = ReduceSumSquare (a)", lambda x: (x * x).sum(keepdims=True)),
        ("y = ReduceL1 (a)", lambda x: np.abs(x).sum(keepdims=True)),
        ("y = ReduceL2 (a)", lambda x: np.sqrt((x * x).sum(keepdims=True))),
        ("y = ReduceMin (a)", lambda x: x.min(keepdims=True)),
        ("y = ReduceMax (a)", lambda x: x.max(keepdims=True)),
        ("y = ReduceMean (a)", lambda x: x.mean(keepdims=True)),
        ("t = Constant <value = int64 {1}> () y = CumSum (a, t)", lambda x: x.cumsum(1)),
        (
            "t = Constant <value = float {0.5}> () b = Abs (a) y = Pow (b, t)",
            lambda x: np.abs(x) ** 0.5,
        ),
        ("t = Constant <value = float {2.0}> () y = Pow (a, t)", lambda x: x**2),
        ("y = Clip (a)", lambda x: x),
    ],
)
def test_results_have_the_dtype_of_the_schema(body, wanted, dtype):
    x = (np.abs(WHOLE) if dtype[0] == "u" else WHOLE).astype(dtype)
    made = result_of(body, x)
    assert made.dtype == x.dtype
    exact = wanted(x.astype(np.float64))
    whole = x.dtype.kind in "iu"
    right = np.trunc(exact).astype(np.int64).astype(x.dtype) if whole else exact
    np.testing.assert_allclose(made.astype(np.float64), right.astype(np.float64), rtol=2e-3)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_least_integers_are_least(dtype):
    x = np.array([[5, np.iinfo(dtype).min, 3]], dtype)
    for kind, wanted in (("Min", x.min()), ("Max", 5)):
        assert result_of(f"y = Reduce{kind} <keepdims = 0> (a)", x) == wanted


def test_truth_values_are_reduced():
    x = np.array([[True, False], [True, True]])
    t = "t = Constant <value_ints = [1]> () "
    assert result_of(t + "y = ReduceMin <keepdims = 0> (a, t)", x).tolist() == [False, True]
    assert result_of(t + "y = ReduceMax <keepdims = 0> (a, t)", x).tolist() == [True, True]


@pytest.mark.parametrize(
    ("kind", "each"),
    [("L1", np.abs), ("L2", np.abs), ("SumSquare", np.square), ("Sum", np.array), ("Mean", np.array),
     ("LogSum", lambda x: np.log(np.abs(x))), ("LogSumExp", np.array), ("Max", np.array)],
)  # fmt: skip
def test_reductions_over_no_axes_do_what_is_done_to_each(kind, each):
    x = np.abs(X) if kind == "LogSum" else X
    for empty in ("", "t = Constant <value_ints: ints = []> () "):
        body = f"{empty}y = Reduce{kind} <noop_with_empty_axes = 1> ({'a, t' if empty else 'a'})"
        np.testing.assert_allclose(result_of(body, x), each(x), rtol=1e-6)


def test_groups_had_weights_of_their_own():
    rng = np.random.default_rng(0)
    scale, bias = rng.standard_normal((2, 2)).astype(np.float32)
    body = "y = GroupNormalization <num_groups = 2> (a, b, c)"
    each = [np.repeat(one, 2) for one in (scale, bias)]
    np.testing.assert_allclose(
        result_of(body, IMAGE, scale, bias, opset=18), result_of(body, IMAGE, *each), rtol=1e-6
    )


@pytest.mark.filterwarnings("error")
def test_constants_are_folded_without_warnings():
    body = (
        "z = Constant <value_floats = [0.0, -1.0]> () l = Log (z) r = Reciprocal (z) s = Sqrt (z) "
        "d = Div (z, z) t = Add (l, r) u = Add (s, d) v = Add (t, u) y = Add (a, v)"
    )
    assert np.isnan(result_of(body, np.float32([1, 2]))).all()


def test_constants_and_outputs_keep_their_names():
    body = (
        "`layer.weight` = Constant <value_floats = [1.0, 2.0]> () bias = Identity (w) "
        "t = Mul (a, weight) y = Add (t, bias)"
    ).replace("`layer.weight`", "weight")
    model = model_of(body + " z = Neg (y)", [ROW[:2]], outputs=["z", "y"])
    model.graph.initializer.append(onnx.numpy_helper.from_array(ROW[2:4], "w"))
    executor = aclnn.from_onnx(model).executor(ROW[:2])
    assert {"weight", "w"} <= {*executor.inputs} or {"weight", "bias"} <= {*executor.inputs}
    assert [*executor.outputs] == ["z", "y"]
    written = onnx.load_from_string(executor.to_onnx())
    assert [one.name for one in written.graph.output] == ["z", "y"]
    assert {one.name for one in written.graph.initializer} >= {"weight"}


# --- Other means: function bodies, ONNX Runtime and the reference ------------------------------------

# What has neither kernel nor body: how often 1, 2 and 3 are there.
COUNTED = (
    'y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, '
    "ngram_counts = [0], ngram_indexes = [0, 1, 2], pool_int64s = [1, 2, 3]> (a)"
)
WORDS = np.int64([3, -1, 3, 2, 7])


@pytest.mark.parametrize("has_runtime", [True, False])
def test_what_has_no_kernel_is_a_step_of_the_plan(has_runtime, monkeypatch):
    if not has_runtime:
        monkeypatch.setattr("aclnn.onnx.evaluation.runtime", lambda: None)
    elif runtime() is None:
        pytest.skip("it is not installed")
    body = f"t = Abs (a) {COUNTED.replace('(a', '(t').replace('y =', 'u =')} y = Neg (u)"
    model = aclnn.from_onnx(model_of(body, [WORDS]), fallback="allow")
    assert np.array_equal(model(WORDS), -np.float32([1, 1, 2]))
    assert len(model.plans) == 1
    report = model.report()
    assert report.counts == {"kernel": 2, "fallback": 1}
    (fallback,) = [one for one in report.nodes if one.by == "fallback"]
    assert (fallback.name, fallback.operator) == ("u", "TfIdfVectorizer")
    assert fallback.runtime == ("onnxruntime" if has_runtime else "reference")
    assert fallback.seconds > 0
    found = json.loads(report.to_json())
    assert found["counts"] == report.counts
    assert "TfIdfVectorizer" in str(report)
    model(WORDS)
    report = model.report()
    assert report.shares.keys() == {"kernel", "fallback"}
    assert sum(report.shares.values()) == pytest.approx(1)
    total = sum(one.seconds for one in report.nodes)
    (fallback,) = [one for one in report.nodes if one.by == "fallback"]
    assert report.shares["fallback"] == pytest.approx(fallback.seconds / total)
    assert json.loads(report.to_json())["shares"] == report.shares
    assert "time of nodes: kernel" in str(report)


def test_reports_have_the_time_of_each_node():
    body = "r = Relu (a) t = NonZero (r) u = Transpose (t) v = GatherND (r, u) y = MeanVarianceNormalization "
    model = aclnn.from_onnx(model_of(f"{body} <axes = [0]> (v)", [X]), fallback="refuse")
    assert model.report().shares == {}
    for _ in range(3):
        model(X)
        report = model.report()
        assert report.shares.keys() == {"kernel", "body"}
        assert sum(report.shares.values()) == pytest.approx(1)
        assert all(one.seconds > 0 for one in report.nodes if one.operator != "Transpose")


def test_other_means_are_named_once_unless_they_are_allowed():
    proto = model_of(COUNTED, [WORDS])
    with pytest.warns(
        UserWarning, match=r"has no kernel here: TfIdfVectorizer: y .*fallback='allow'"
    ) as told:
        aclnn.from_onnx(proto)(WORDS)
    assert len(told) == 1
    assert told[0].filename == __file__
    aclnn.from_onnx(proto, fallback="allow")(WORDS)
    words = "1 node that no operator stands for:\n  TfIdfVectorizer: y"
    with pytest.raises(aclnn.AclnnError, match=words):
        aclnn.from_onnx(proto, fallback="refuse")
    with pytest.raises(aclnn.AclnnError, match="fallback is 'never', must be one of warn, allow"):
        aclnn.from_onnx(proto, fallback="never")
    kind = model_of("y = Cast <to = 8> (a)", [X])
    with pytest.warns(UserWarning, match="Cast: y"):  # which is found when it is planned
        aclnn.from_onnx(kind)(X)


def test_several_results_of_a_step_keep_their_dtypes():
    body = "v, i = TopK <axis = -1, sorted = 1> (a, b)"
    proto = model_of(body, [X, np.int64([2])], outputs=["v", "i"])
    values, places = aclnn.from_onnx(proto, inputs={"b": [2]}, fallback="allow")(X)
    assert (values.dtype, places.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(values, np.sort(X, -1)[..., ::-1][..., :2])
    np.testing.assert_array_equal(np.take_along_axis(X, places, -1), values)


def test_errors_of_runs_name_the_node():
    body = "y = Neg (a) z = ScatterND (y, b, y)"
    given = [ROW, np.int64([[0], [1], [2], [3], [4], [99]])]
    model = aclnn.from_onnx(model_of(body, given, outputs=["z"]), fallback="allow")
    with pytest.raises(aclnn.AclnnError, match=r"\(z: ScatterND\), operand 'b': an index is 99"):
        model(*given)
    region = [IMAGE, np.zeros((1, 4), np.float32), np.int64([7])]
    model = aclnn.from_onnx(model_of("z = RoiAlign (a, b, c)", region, outputs=["z"]))
    with pytest.raises(aclnn.AclnnError, match=r"^g: RoiAlign \(z\): index 7 is"):
        model(*region)


# A node, a value of its last input that breaks a rule, and what is said of it.
BROKEN = [
    ("z = Range (p, q, b)", np.int64(0), "delta is 0, must not be 0"),
    ("z = Range (p, q, b)", np.int64([1, 2]), "delta has shape [2], must be a scalar"),
    ("z = Expand (a, b)", [2, 4, 6], "shape is [2, 4, 6], which [3, 4, 6] does not broadcast to"),
    ("z = Expand (a, b)", [-3, 4, 6], "shape is [-3, 4, 6], must be sizes from 0 on"),
    ("z = ConstantOfShape (b)", [2, -1], "input is [2, -1], must be sizes from 0 on"),
    ("z = Reshape (a, b)", [5, -1], "shape is [5, -1], which [3, 4, 6] of 72 elements cannot have"),
    ("z = Reshape (a, b)", [-1, -1], "must be sizes from 0 on, and -1 at most once"),
    ("z = Slice (a, r, r, r, b)", [0], "steps are [0], must not be 0"),
    ("z = Slice (a, r, r, b)", [0, 1], "starts [0], ends [0], axes [0, 1] must be as many"),
    ("z = Gather (a, b)", [3], "an index is 3, must be from -3 to 2"),
    ("z = GatherND (a, b)", [1, 4], "an index is 4, must be from -4 to 3"),
    ("z = Tile (a, b)", [1, 2], "repeats is [1, 2], must have 3 numbers"),
    ("z = Squeeze (a, b)", [1], "axes are [1], of which 1 has 4 elements, must have 1"),
    ("z = Unsqueeze (a, b)", [7], "axes are [7], must be from -4 to 3"),
    ("z = ReduceMax (a, b)", [1, -2], "axes are [1, -2], must differ"),
    ("z = CumSum (a, b)", np.int64(3), "axis is 3, must be from -3 to 2"),
    ("z = Pad (a, b)", [1, 2, 3], "pads is [1, 2, 3], must have 6 numbers"),
    ("c = Cast <to = 1> (b) z = Add (a, c)", [1, 2], "shapes [3, 4, 6], [2] do not broadcast"),
    ("c = Cast <to = 1> (b) z = Conv <strides = [0]> (a, a, c)", [0] * 3, "must be from 1 on"),
    ("c = Cast <to = 1> (b) z = Clip (a, c)", [1, 2], "min has shape [2], must be a scalar"),
]


@each("body, value, words", BROKEN)
@pytest.mark.parametrize("is_folded", [True, False])
def test_values_that_break_rules_are_told_with_the_rule(body, value, words, is_folded):
    """Of constants, which ONNX's reference computes, and of arrays, for which forms do."""
    begin = "p = Constant <value_int = 0> () q = Constant <value_int = 5> () r = Constant <value_ints = [0]> () "
    given = [X, np.asarray(value, np.int64)]
    proto = model_of(begin + body, given, outputs=["z"])
    constants = {"a": given[0]} if is_folded else {}
    model = aclnn.from_onnx(proto, inputs={"b": given[1], **constants}, fallback="allow")
    with pytest.raises(aclnn.AclnnError) as caught:
        model.run({} if is_folded else {"a": X})
    assert str(caught.value).startswith("g: ")
    assert "Error:" not in str(caught.value)
    if is_folded:
        assert words in str(caught.value)
        assert " (z): " in str(caught.value)
    else:
        assert re.search(r"\((c|z)\): |\(z: \w+\)", str(caught.value))


def test_sequences_of_constants_are_no_parts_of_plans():
    body = "s = SequenceEmpty () t = SequenceInsert (s, a) i = Constant <value_int = 0> () y = SequenceAt (t, i)"
    model = aclnn.from_onnx(model_of(body, [X]), fallback="allow")
    assert np.array_equal(model(X), X)


def test_slopes_of_channels_in_old_versions():
    slope = np.float32([0.5, 2, -1, 3])
    made = aclnn.from_onnx(model_of("y = PRelu (a, b)", [IMAGE, slope], 6), fallback="refuse")
    wanted = np.where(IMAGE < 0, IMAGE * slope[:, None, None], IMAGE)
    np.testing.assert_array_equal(made(IMAGE, slope), wanted)


def test_bodies_are_the_standards():
    body = "y = MeanVarianceNormalization <axes = [1, 2]> (a)"
    model = aclnn.from_onnx(model_of(body, [X]), fallback="refuse")
    wide = X.astype(np.float64)
    spread = wide.std((1, 2), keepdims=True)
    wanted = (wide - wide.mean((1, 2), keepdims=True)) / spread
    np.testing.assert_allclose(model(X), wanted, rtol=1e-5, atol=1e-5)
    assert model.report().counts == {"body": 1}


# --- Values that decide shapes -----------------------------------------------------------------------


def test_values_that_decide_shapes_are_handed_from_plan_to_plan():
    body = "r = Relu (a) t = NonZero (r) u = Transpose (t) v = GatherND (r, u) y = Neg (v)"
    model = aclnn.from_onnx(model_of(body, [X]), fallback="allow")
    for x in (X, -X, X):
        np.testing.assert_array_equal(model(x), -x[x > 0])
    assert len(model.plans) == 3  # before, and for each number of elements after
    with pytest.raises(aclnn.AclnnError, match=r"no single plan: NonZero \(t\) runs by itself"):
        model.executor(X)


def test_integers_that_arrive_as_inputs_are_part_of_the_description():
    model = aclnn.from_onnx(model_of("t = Abs (a) y = Reshape (t, b)", [X, np.int64([0, 0])]))
    for shape in ([4, 18], [-1, 9], [4, 18]):
        np.testing.assert_array_equal(model(X, np.int64(shape)), np.abs(X).reshape(shape))
    assert model.executor(X, np.int64([4, 18])).run().shape == (4, 18)


BRANCHES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n] x, bool c) => (float[m] y) {
  t = Abs (x)
  y = If (c) <then_branch = a () => (float[p] u) { u = Neg (t) },
              else_branch = b () => (float[q] v) { v = Concat <axis = 0> (t, x) }>
}"""
LOOP = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n] x, int64 count, float most) => (float[n] y, float[k, n] rows) {
  yes = Constant <value = bool {1}> ()
  y, rows = Loop (count, yes, x) <body = b (int64 i, bool go, float[n] s) => (bool on, float[n] d, float[n] r) {
    d = Add (s, x)
    r = Neg (s)
    sum = ReduceMax <keepdims = 0> (d)
    on = Less (sum, most)
  }>
}"""
SCAN = """<ir_version: 10, opset_import: ["" : 21]>
g (float[m] s, float[n, m] x) => (float[m] last, float[m, n] sums) {
  last, sums = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
    body = b (float[m] before, float[m] row) => (float[m] after, float[m] now) {
      after = Add (before, row)
      now = Identity (after)
    }> (s, x)
}"""


def test_branches_are_plans():
    model = aclnn.from_onnx(onnx.parser.parse_model(BRANCHES))
    x = np.float32([1, -2])
    for _ in range(2):
        assert model(x, np.array(True)).tolist() == [-1, -2]
        assert model(x, np.array(False)).tolist() == [1, 2, 1, -2]
    fixed = aclnn.from_onnx(onnx.parser.parse_model(BRANCHES), inputs={"c": False})
    assert fixed(x).tolist() == [1, 2, 1, -2]
    assert len(fixed.plans) == 1


def test_loops_end_by_their_count_or_condition():
    model = aclnn.from_onnx(onnx.parser.parse_model(LOOP))
    x = np.float32([1, 2])
    for count, most, times in ((3, 100, 3), (100, 7, 3), (0, 100, 0)):
        y, rows = model(x, np.asarray(count), np.float32(most))
        assert y.tolist() == [1 + times, 2 + 2 * times]
        assert rows.tolist() == [[-1 - n, -2 - 2 * n] for n in range(times)]


def test_scans_go_over_rows():
    model = aclnn.from_onnx(onnx.parser.parse_model(SCAN))
    for n in (3, 100):  # part of the plan, and run row by row
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        last, sums = model(np.zeros(2, np.float32), x)
        assert last.tolist() == x.sum(0).tolist()
        np.testing.assert_array_equal(sums, x[::-1].cumsum(0).T)


def test_what_shapes_decide_needs_no_other_means():
    body = "s = Shape (a) t = ConstantOfShape <value = float[1] {2.5}> (s) y = Mul (a, t)"
    model = aclnn.from_onnx(model_of(body, [X]), fallback="refuse")
    np.testing.assert_array_equal(model(X), X * np.float32(2.5))
    assert model.report().counts == {"kernel": 2, "folded": 1}
    sizes = aclnn.from_onnx(model_of("y = ConstantOfShape (a)", [np.int64([2, 3])]))
    for shape in ([2, 3], [0, 4], [2, 3]):
        assert sizes(np.int64(shape)).shape == tuple(shape)


GROWING = """<ir_version: 10, opset_import: ["" : 21]>
g (int64 count, float[1] x) => (float[n] y) {
  y = Loop (count, , x) <body = b (int64 i, bool before, float[p] v) => (bool after, float[q] w) {
    after = Identity (before)
    w = Concat <axis = 0> (v, x)
  }>
}"""


@pytest.mark.filterwarnings("error")
def test_loops_whose_values_grow_warn_of_nothing():
    model = aclnn.from_onnx(onnx.parser.parse_model(GROWING))
    x = np.float32([3])
    for count in (3, 80):
        np.testing.assert_array_equal(model(np.int64(count).reshape(()), x), np.full(count + 1, 3))


def test_conditions_and_counts_have_one_element():
    proto = onnx.parser.parse_model(BRANCHES)
    proto.graph.input[1].type.tensor_type.shape.dim.add()
    model = aclnn.from_onnx(proto)
    np.testing.assert_array_equal(model(X[0, 0], np.array([True])), -np.abs(X[0, 0]))
    for size in (0, 2):
        words = rf"^g: If \(y\): its condition has shape \[{size}\], must have one element"
        with pytest.raises(aclnn.AclnnError, match=words):
            model(X[0, 0], np.ones(size, bool))


def test_dimensions_without_a_name_are_what_the_arrays_are():
    proto = model_of("y = Neg (a)", [X])
    sizes = proto.graph.input[0].type.tensor_type.shape.dim
    for size, how in zip(
        sizes, ({"dim_value": -1}, {"dim_param": "?"}, {"dim_param": "?"}), strict=True
    ):
        size.Clear()
        for key, value in how.items():
            setattr(size, key, value)
    model = aclnn.from_onnx(proto)
    np.testing.assert_array_equal(model(X), -X)
    np.testing.assert_array_equal(model(X[:, :2, :5]), -X[:, :2, :5])
    for size in sizes:
        size.dim_param = "n"
    np.testing.assert_array_equal(aclnn.from_onnx(proto)(X), -X)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    np.testing.assert_array_equal(aclnn.from_onnx(proto)(X[0]), -X[0])


def test_inputs_may_be_constants_or_have_a_default():
    proto = model_of("y = Add (a, b)", [ROW, ROW])
    fixed = aclnn.from_onnx(proto, inputs={"b": np.ones(6, np.float32)})
    assert [*fixed.inputs] == ["a"]
    np.testing.assert_array_equal(fixed(ROW), ROW + 1)
    with pytest.raises(aclnn.AclnnError, match="has no input 'c'; those there are: a, b"):
        aclnn.from_onnx(proto, inputs={"c": 1})
    with pytest.raises(aclnn.AclnnError, match=r"b is float32\[5\], must be float32\[6\]"):
        aclnn.from_onnx(proto, inputs={"b": ROW[:5]})
    whole = model_of("t = Cast <to = 1> (b) y = Add (a, t)", [ROW, np.uint8([1])])
    for value, words in (
        ("many", "b is 'many': ValueError"),
        (300, "b is 300, which uint8 does not hold"),
        (1.5, "b is 1.5, which uint8 does not hold"),
    ):
        with pytest.raises(aclnn.AclnnError, match=f"^g: {words}"):
            aclnn.from_onnx(whole, inputs={"b": value})
    np.testing.assert_array_equal(aclnn.from_onnx(whole, inputs={"b": 2.0})(ROW), ROW + 2)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(2 * ROW, "b"))
    model = aclnn.from_onnx(proto)
    np.testing.assert_array_equal(model(ROW), 3 * ROW)
    np.testing.assert_array_equal(model(ROW, ROW), 2 * ROW)
    np.testing.assert_array_equal(model.run({"b": ROW, "a": ROW}), 2 * ROW)
    np.testing.assert_array_equal(model(ROW), 3 * ROW)


def test_models_take_a_workspace():
    text = """<ir_version: 8, opset_import: ["" : 20]> f (float[n, 64] x) => (float[n, 64] y)
        { a = MatMul (x, x)  b = Transpose (a)  y = Softmax <axis = 0> (b) }"""
    model = aclnn.from_onnx(onnx.parser.parse_model(text))
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    wanted, pool = model(x), aclnn.WorkspacePool(1 << 24)
    (plan,) = model.plans
    before = plan.own_workspaces
    np.testing.assert_array_equal(model(x, workspace=pool), wanted)
    np.testing.assert_array_equal(model.run({"x": x}, workspace=pool), wanted)
    assert pool.lent == 0
    assert (pool.allocated > 0) == (plan.workspace_size > 0)
    assert model.plans[0].own_workspaces == before


def test_names_that_are_no_text_are_told_by_their_bytes():
    model = model_of("y = Relu (a)", [X])
    model.graph.node[0].name = model.graph.name = "name_"
    content = model.SerializeToString().replace(b"name_", b"na\xffe_")
    read = aclnn.from_onnx(content)
    assert np.array_equal(read(X), np.maximum(X, 0))
    assert read.name == read.report().nodes[0].name == "na\\xffe_"
    assert "na\\xffe_" in str(read.executor(X).graph)


def test_images_of_old_versions_are_enlarged():
    scales = onnx.numpy_helper.from_array(np.float32([1, 1, 2, 3]), "s")
    for opset, kind in ((9, "Upsample"), (10, "Resize")):
        model = model_of(f"y = {kind} (a, s)", [IMAGE], opset)
        model.graph.initializer.append(scales)
        model.ir_version = 5
        made = aclnn.from_onnx(model, fallback="refuse")(IMAGE)
        assert np.array_equal(made, IMAGE.repeat(2, 2).repeat(3, 3))


def test_images_are_resized_as_pytorch_does():
    torch = pytest.importorskip("torch")
    wide = RNG.standard_normal((1, 2, 200, 9)).astype(np.float32)
    for size in ([5, 13], [77, 4]):
        sizes = onnx.numpy_helper.from_array(np.int64([1, 2, *size]), "s")
        model = model_of(
            'y = Resize <mode = "linear", antialias = 1, exclude_outside = 1> (a, , , s)', [wide]
        )
        model.graph.initializer.append(sizes)
        wanted = torch.nn.functional.interpolate(
            torch.from_numpy(wide), size, mode="bilinear", antialias=True
        )
        made = aclnn.from_onnx(model, fallback="refuse")(wide)
        np.testing.assert_allclose(made, wanted.numpy(), rtol=1e-4, atol=1e-5)
