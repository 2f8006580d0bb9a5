"""Quantised models: products and convolutions of integers, exact as the standard says, and small weights."""

import fractions

import numpy as np
import pytest
from cases import each
from guarded_memory import watched

import aclnn
from aclnn import isa

onnx = pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

helper = onnx.helper

RNG = np.random.default_rng(0)
DTYPES = [np.uint8, np.int8]


def bytes_of(shape, dtype):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def model_of(nodes, inputs, outputs, constants):
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in inputs.items()
    ]
    weights = [
        onnx.numpy_helper.from_array(np.asarray(one), name) for name, one in constants.items()
    ]
    graph = helper.make_graph(
        nodes, "quantised", infos, [onnx.ValueInfoProto(name=name) for name in outputs], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def convolved(x, weight, pads, strides, dilations, groups):
    """Sums of int64 by the definition of a convolution."""
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in pads]])
    sizes = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(x.shape[2:], weight.shape[2:], dilations, strides, strict=True)
    ]
    made = np.zeros((x.shape[0], weight.shape[0], *sizes), np.int64)
    each, own = weight.shape[0] // groups, weight.shape[1]
    for place in np.ndindex(*weight.shape[2:]):
        window = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilations, sizes, strides, strict=True)
        )
        for group in range(groups):
            part = x[:, group * own : (group + 1) * own][(slice(None), slice(None), *window)]
            rows = slice(group * each, (group + 1) * each)
            made[:, rows] += np.einsum("nc...,oc->no...", part, weight[(rows, slice(None), *place)])
    return made


def rounded(sums, scales, shift, scale, zero, dtype, low=None, high=None):
    """Results of exact arithmetic, rounded once, to the even one of two that are as near."""
    info, exact = np.iinfo(dtype), fractions.Fraction
    found = np.empty(sums.shape, dtype)
    scales, shift = np.broadcast_to(scales, sums.shape), np.broadcast_to(shift, sums.shape)
    for at in np.ndindex(*sums.shape):
        real = int(sums[at]) * exact(float(scales[at])) + exact(float(shift[at]))
        real = real if low is None else max(real, exact(low))
        real = real if high is None else min(real, exact(high))
        found[at] = min(max(round(real / exact(float(scale))) + int(zero), info.min), info.max)
    return found


# shape, kernel, groups, pads, strides, dilations: small sums by floats, longer ones by integers, groups by parts
CONVOLUTIONS = [
    ((2, 6, 5, 4), (5, 6, 3, 3), 1, (1, 1), (1, 1), (1, 1)),
    ((1, 96, 5, 6), (7, 96, 3, 3), 1, (1, 0), (2, 1), (1, 2)),
    ((1, 700, 3, 2), (4, 700, 1, 1), 1, (0, 0), (1, 1), (1, 1)),
    ((1, 700, 3, 3), (4, 700, 1, 1), 1, (1, 1), (2, 2), (1, 1)),
    ((1, 200, 4, 4), (4, 100, 3, 3), 2, (1, 1), (1, 1), (1, 1)),
    ((1, 6, 5, 5), (6, 1, 3, 3), 6, (1, 1), (1, 1), (1, 1)),
    ((2, 300, 7), (4, 300, 3), 1, (1,), (2,), (1,)),
]


@pytest.mark.parametrize("is_centred", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda one: f"{one[0]}-{one[2]}")
def test_integer_convolutions_are_exact(case, dtype, is_centred):
    shape, kernel, groups, pads, strides, dilations = case
    x, weight = bytes_of(shape, dtype), bytes_of(kernel, np.int8)
    zero_x, zero_w = dtype(100), bytes_of(kernel[:1], np.int8)
    zero_w *= not is_centred
    node = helper.make_node(
        "ConvInteger", ["x", "w", "zx", "zw"], ["y"], group=groups, pads=[*pads, *pads],
        strides=strides, dilations=dilations,
    )  # fmt: skip
    wide = weight.astype(np.int64) - zero_w.reshape(-1, *(1,) * (len(kernel) - 1))
    wanted = convolved(x.astype(np.int64) - 100, wide, pads, strides, dilations, groups)
    given = {"w": weight, "zx": np.asarray(zero_x), "zw": zero_w}
    fixed = aclnn.from_onnx(model_of([node], {"x": x}, ["y"], given), fallback="refuse")
    free = aclnn.from_onnx(model_of([node], {"x": x, **given}, ["y"], {}), fallback="refuse")
    for made in (fixed(x), free.run({"x": x, **given})):
        assert made.dtype == np.int32
        assert np.array_equal(made, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_integers_are_exact(dtype):
    a, b = bytes_of((3, 4, 2000), dtype), bytes_of((2000, 5), np.uint8)
    a[0], b[:, 0] = np.iinfo(dtype).max, 255  # sums beyond 2^24
    zero_a, zero_b = bytes_of((4,), dtype), bytes_of((5,), np.uint8)
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    left = a.astype(np.int64) - zero_a.astype(np.int64)[:, None]
    wanted = left @ (b.astype(np.int64) - zero_b)
    given = {"b": b, "za": zero_a, "zb": zero_b}
    fixed = aclnn.from_onnx(model_of([node], {"a": a}, ["y"], given), fallback="refuse")
    free = aclnn.from_onnx(model_of([node], {"a": a, **given}, ["y"], {}), fallback="refuse")
    assert np.array_equal(fixed(a), wanted)
    assert np.array_equal(free.run({"a": a, **given}), wanted)


def of_linear(kind, dtype, relu=False):
    """A quantised product or convolution as the standard's one operator: its model, inputs and result."""
    x = bytes_of((2, 40, 4, 3) if kind == "QLinearConv" else (2, 3, 40), dtype)
    weight = bytes_of((6, 40, 3, 3) if kind == "QLinearConv" else (40, 6), np.int8)
    scale_w = (RNG.random(6) * 0.01 + 0.001).astype(np.float32)
    scale_x, scale = np.float32(0.02), np.float32(0.3 if kind == "QLinearConv" else 0.1)
    zero_x, zero = dtype(7), dtype(30)
    given = {
        "sx": scale_x, "zx": zero_x, "w": weight, "sw": scale_w, "zw": np.zeros(6, np.int8),
        "sy": scale, "zy": zero,
    }  # fmt: skip
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    wide = x.astype(np.int64) - 7
    column = (-1, 1, 1) if kind == "QLinearConv" else (-1,)
    if kind == "QLinearConv":
        sums = convolved(wide, weight.astype(np.int64), (1, 1), (1, 1), (1, 1), 1)
    else:
        sums = wide @ weight.astype(np.int64)
    scales = (scale_x.astype(float) * scale_w).reshape(column)
    return x, given, names, sums, scales, scale, zero


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["QLinearConv", "QLinearMatMul"])
def test_quantised_operators_round_once(kind, dtype):
    x, given, names, sums, scales, scale, zero = of_linear(kind, dtype)
    options = {"pads": [1, 1, 1, 1]} if kind == "QLinearConv" else {}
    if kind == "QLinearConv":
        given["b"] = RNG.integers(-9000, 9000, 6).astype(np.int32)
        names = [*names, "b"]
        sums = sums + given["b"].reshape(-1, 1, 1)
    node = helper.make_node(kind, names, ["y"], **options)
    wanted = rounded(sums, scales, 0, scale, zero, dtype)
    fixed = aclnn.from_onnx(model_of([node], {"x": x}, ["y"], given), fallback="refuse")
    arrays = {name: np.asarray(one) for name, one in {"x": x, **given}.items()}
    free = aclnn.from_onnx(model_of([node], arrays, ["y"], {}), fallback="refuse")
    assert len(np.unique(wanted)) > 10
    assert np.array_equal(fixed(x), wanted)
    assert np.array_equal(free.run(arrays), wanted)


def of_pieces(kind, dtype, activation, bias):
    """A product or convolution between DequantizeLinear and QuantizeLinear."""
    x, given, _, sums, scales, scale, zero = of_linear(
        "QLinearConv" if kind == "Conv" else "QLinearMatMul", dtype
    )
    if kind == "Gemm":
        x, sums = x.reshape(6, 40), sums.reshape(6, 6)
        given["w"] = given["w"].T.copy()
    node = helper.make_node
    axis = 0 if kind in ("Conv", "Gemm") else 1
    nodes = [
        node("DequantizeLinear", ["x", "sx", "zx"], ["fx"], "dx"),
        node("DequantizeLinear", ["w", "sw", "zw"], ["fw"], "dw", axis=axis),
    ]
    shift, operands = 0.0, ["fx", "fw"]
    if bias == "int32":
        given["b"] = RNG.integers(-3000, 3000, 6).astype(np.int32)
        given["sb"] = np.reshape(scales, -1).astype(np.float32)
        nodes.append(node("DequantizeLinear", ["b", "sb"], ["fb"], "db", axis=0))
        shift = given["b"] * given["sb"].astype(float)
    elif bias == "float32":
        given["fb"] = RNG.standard_normal(6).astype(np.float32)
        shift = given["fb"].astype(float)
    if bias and kind != "MatMul":
        operands.append("fb")
    options = {"Conv": {"pads": [1, 1, 1, 1]}, "Gemm": {"transB": 1}}.get(kind, {})
    nodes.append(node(kind, operands, ["p"], "product", **options))
    last = "p"
    if bias and kind == "MatMul":
        nodes.append(node("Add", ["p", "fb"], ["s"], "sum"))
        last = "s"
    low = high = None
    if activation == "Relu":
        nodes.append(node("Relu", [last], ["r"], "act"))
        low, last = 0, "r"
    elif activation == "Clip":
        given |= {"lo": np.float32(-1.5), "hi": np.float32(6)}
        nodes.append(node("Clip", [last, "lo", "hi"], ["r"], "act"))
        low, high, last = -1.5, 6, "r"
    nodes.append(node("QuantizeLinear", [last, "sy", "zy"], ["y"], "q"))
    if kind == "Conv" and bias:
        shift = np.reshape(shift, (-1, 1, 1))
    wanted = rounded(sums, scales, shift, scale, zero, dtype, low, high)
    return nodes, x, given, wanted


@each("dtype", DTYPES)
@each("bias", ["", "int32", "float32"])
@each("activation", ["", "Relu", "Clip"])
@each("kind", ["Conv", "Gemm", "MatMul"])
def test_what_is_between_quantisations_is_one_step_on_integers(kind, activation, bias, dtype):
    nodes, x, given, wanted = of_pieces(kind, dtype, activation, bias)
    proto = model_of(nodes, {"x": x}, ["y"], given)
    model = aclnn.from_onnx(proto, fallback="refuse")
    assert np.array_equal(model(x), wanted)
    (found,) = model.report().patterns
    assert (found.name, set(found.nodes)) == (
        f"quantized_{kind.lower()}", {one.name for one in nodes},
    )  # fmt: skip
    pieces = aclnn.from_onnx(proto, fallback="refuse", patterns=False)(x)
    assert np.abs(pieces.astype(int) - wanted.astype(int)).max() <= 1


def test_quantised_weights_stay_small():
    nodes, x, given, _ = of_pieces("Conv", np.uint8, "Relu", "int32")
    given["w"] = bytes_of((512, 40, 3, 3), np.int8)
    given |= {"sw": np.full(512, 0.01, np.float32), "zw": np.zeros(512, np.int8)}
    given |= {"b": np.zeros(512, np.int32), "sb": np.full(512, 0.0002, np.float32)}
    proto = model_of(nodes, {"x": x}, ["y"], given)

    def constants(patterns):
        model = aclnn.from_onnx(proto, patterns=patterns)
        model(x)
        values = model.executor(x).graph.values
        roots = [one for one in values if one.storage == "input" and not one.is_view]
        return sum(one.nbytes for one in roots) - x.nbytes

    assert constants(True) < 1.2 * given["w"].nbytes
    assert constants(False) > 4 * given["w"].nbytes


def test_a_dequantised_array_that_others_read_is_computed_for_them_too():
    nodes, x, given, wanted = of_pieces("Conv", np.uint8, "", "int32")
    nodes.append(helper.make_node("Relu", ["fx"], ["z"], "other"))
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y", "z"], given))
    y, z = model(x)
    assert [one.name for one in model.report().patterns] == ["quantized_conv"]
    assert np.array_equal(y, wanted)
    assert np.array_equal(z, np.maximum(x.astype(np.float32) - 7, 0) * np.float32(0.02))


@pytest.mark.parametrize("name", ["sw", "zw"])
def test_scales_of_blocks_and_zeros_of_channels_make_no_step_on_integers(name):
    nodes, x, given, _ = of_pieces("MatMul", np.uint8, "", "")
    if name == "zw":
        given["zw"] = np.arange(6).astype(np.int8)
    else:
        given["sw"] = np.full((4, 6), 0.01, np.float32)
        given["zw"] = np.zeros((4, 6), np.int8)
        nodes[1].attribute[0].i = 0
        nodes[1].attribute.append(helper.make_attribute("block_size", 10))
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], given))
    made = model(x)
    wide = (given["w"].astype(float) - given["zw"][0 if name == "sw" else slice(None)]) * (
        0.01 if name == "sw" else given["sw"]
    )
    exact = ((x.astype(float) - 7) * 0.02) @ wide / float(given["sy"]) + 30
    assert [one.name for one in model.report().patterns] == ["quantized_weight"]
    assert np.abs(made - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-3


# --- Weights of few bits ------------------------------------------------------------------------------

RANGES = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}
PLAIN = {
    **RANGES,
    "int16": (-(2**15), 2**15),
    "uint16": (0, 2**16),
    "int2": (-2, 2),
    "uint2": (0, 4),
}
FLOATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"]


def narrow(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, name) and not hasattr(np, name):
        pytest.skip(f"there is no {name}")
    return np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))


def scales_of(kind, k, n, block):
    shape = {"tensor": (), "channel": (n,), "block": (k // block, n)}[kind]
    attributes = {"axis": 0, "block_size": block} if kind == "block" else {"axis": 1}
    scale = np.asarray(RNG.random(shape) * 0.1 + 0.01, np.float32)
    return scale, attributes, (lambda one: np.repeat(one, block, 0) if kind == "block" else one)


@each("rows", [1, 3, 40])
@each("has_zero", [False, True])
@each("kind", ["tensor", "channel", "block"])
@each("dtype", RANGES)
def test_products_by_weights_of_few_bits_keep_them_so(dtype, kind, has_zero, rows):
    k, n, block = 64, 10, 16
    low, high = RANGES[dtype]
    weight = RNG.integers(low, high, (k, n))
    scale, attributes, spread = scales_of(kind, k, n, block)
    zero = RNG.integers(low, high, scale.shape)
    of = narrow(dtype)
    constants = {"w": weight.astype(of), "s": scale} | (
        {"z": np.asarray(zero).astype(of)} if has_zero else {}
    )
    nodes = [
        helper.make_node("DequantizeLinear", [*constants], ["d"], **attributes),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    x = RNG.standard_normal((rows, k)).astype(np.float32)
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], constants), fallback="refuse")
    wide = (weight - (spread(zero) if has_zero else 0)) * spread(scale).astype(np.float64)
    wanted = x.astype(np.float64) @ wide
    np.testing.assert_allclose(model(x), wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    assert [one.name for one in model.report().patterns] == ["quantized_weight"]


FLOATS8 = FLOATS[:4]


def floats_of(dtype, shape):
    """Floats of eight bits: every one but NaN and infinities, at random."""
    every = np.arange(256, dtype=np.uint8).view(narrow(dtype))
    return RNG.choice(every[np.isfinite(every.astype(np.float32))], shape)


@each("rows", [1, 3, 40])
@each("kind", ["tensor", "channel", "block"])
@each("operator", ["MatMul", "Gemm", "turned"])
@each("dtype", [*FLOATS8, "int8"])
def test_products_by_weights_of_eight_bits_keep_them_so(dtype, operator, kind, rows):
    """Of MatMul, and of Gemm with a bias and a weight of either order; of no plan that has it as float32."""
    k, n, block = 48, 11, 16
    weight = (
        floats_of(dtype, (k, n)) if dtype in FLOATS8 else RNG.integers(-128, 128, (k, n), np.int8)
    )
    scale, attributes, spread = scales_of(kind, k, n, block)
    is_turned = operator == "turned"
    if is_turned:
        attributes = {**attributes, "axis": 1 - attributes["axis"]}
    constants = {"w": np.ascontiguousarray(weight.T) if is_turned else weight}
    constants["s"] = np.ascontiguousarray(scale.T) if is_turned else scale
    bias = RNG.standard_normal(n).astype(np.float32)
    product = helper.make_node("MatMul", ["x", "d"], ["y"])
    if operator != "MatMul":
        constants["b"] = bias
        product = helper.make_node("Gemm", ["x", "d", "b"], ["y"], transB=int(is_turned))
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes), product]
    x = RNG.standard_normal((rows, k)).astype(np.float32)
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], constants), fallback="refuse")
    wanted = x.astype(np.float64) @ (weight.astype(np.float64) * spread(scale).astype(np.float64))
    wanted = wanted + (bias if operator != "MatMul" else 0)
    np.testing.assert_allclose(model(x), wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
    assert [one.name for one in model.report().patterns] == ["quantized_weight"]
    assert "folded" not in model.report().counts


@each("operator", ["MatMul", "Gemm"])
@each("dtype", FLOATS8)
def test_products_between_quantisations_of_floats_are_the_standards(dtype, operator):
    """Activations, weights and results of eight bits, as exporters write them, with a Relu."""
    k, n = 64, 12
    constants = {
        "w": floats_of(dtype, (k, n)), "s": RNG.random(n).astype(np.float32) + 0.1, "t": np.float32(0.03),
        "u": np.float32(20), "z": np.zeros((), narrow(dtype)),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "t", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "t", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1),
        helper.make_node(operator, ["a", "d"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "u", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "u", "z"], ["y"]),
    ]
    x = RNG.standard_normal((5, k)).astype(np.float32)
    proto = model_of(nodes, {"x": x}, ["y"], constants)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    model = aclnn.from_onnx(proto, fallback="refuse")
    # Sums in another order may round to the neighbour.
    off = np.abs(model(x) - wanted)
    assert np.mean(off > 0) < 0.05
    assert (off <= 0.26 * np.maximum(np.abs(wanted), 20)).all()
    assert [one.name for one in model.report().patterns] == ["quantized_weight"]


def test_products_of_floats_of_eight_bits_write_nothing_behind_their_results():
    """Of all remainders of tiles, of few rows and many, in blocks that end early."""
    for number in range(60):
        rows, k, n = (int(RNG.integers(1, most)) for most in (30, 70, 40))
        weight, x = floats_of(FLOATS8[number % 4], (k, n)), RNG.standard_normal((rows, k))
        constants = {"w": weight, "s": np.float32(0.5)}
        nodes = [
            helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ]
        x = x.astype(np.float32)
        model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], constants), fallback="refuse")
        wanted = x.astype(np.float64) @ (weight.astype(np.float64) * 0.5)
        with aclnn.num_threads(1), watched(wanted.size * 4) as memory:
            out = memory.view(np.float32).reshape(wanted.shape)
            model(x, out=out)
            found = out.copy()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())


def test_weights_in_blocks_stay_small_between_quantised_arrays():
    """Scales of blocks make no step on integers, but the product still reads the weight as it is."""
    scale, attributes, spread = scales_of("block", 32, 6, 16)
    weight = RNG.integers(-128, 128, (32, 6))
    constants = {"w": weight.astype(np.int8), "s": scale, "t": np.float32(0.05), "z": np.uint8(7)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "t", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "t", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes),
        helper.make_node("MatMul", ["a", "d"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "t", "z"], ["y"]),
    ]
    x = RNG.random((5, 32)).astype(np.float32)
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], constants), fallback="refuse")
    made = model(x)
    read = (np.clip(np.rint(x / np.float32(0.05)) + 7, 0, 255) - 7) * np.float64(np.float32(0.05))
    exact = read @ (weight * spread(scale).astype(np.float64)) / np.float32(0.05) + 7
    assert (np.abs(made - np.clip(exact, 0, 255)) < 0.5001).all()
    assert [one.name for one in model.report().patterns] == ["quantized_weight"]
    assert "folded" not in model.report().counts


@pytest.mark.parametrize("kind", ["tensor", "channel", "block"])
@pytest.mark.parametrize("dtype", [*PLAIN, *FLOATS])
def test_arrays_are_quantised_and_made_numbers_as_the_standard_says(dtype, kind):
    of, block = narrow(dtype), 4
    scale, attributes, _ = scales_of(kind, 8, 6, block)
    zero = np.zeros(scale.shape)
    if dtype in PLAIN:
        zero = RNG.integers(*PLAIN[dtype], scale.shape)
    constants = {"s": scale, "z": np.asarray(zero).astype(of)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attributes),
    ]
    x = (RNG.standard_normal((8, 6)) * (100 if of.itemsize > 1 else 1)).astype(np.float32)
    proto = model_of(nodes, {"x": x}, ["q", "y"], constants)
    wanted = ReferenceEvaluator(proto).run(None, {"x": x})
    made = aclnn.from_onnx(proto, fallback="refuse")(x)
    for one, right in zip(made, wanted, strict=True):
        assert one.dtype == right.dtype
        assert np.array_equal(one.astype(np.float32), right.astype(np.float32))
    # Without the quantised array as a result the two nodes are of one plan.
    inner = model_of(nodes, {"x": x}, ["y"], constants)
    model = aclnn.from_onnx(inner, fallback="refuse")
    assert np.array_equal(model(x), wanted[1])
    assert len(model.plans) == 1


def test_moved_numbers_of_few_bits_stay_in_the_plan():
    of = narrow("float8_e4m3fn")
    constants = {"s": np.float32(0.5), "z": np.zeros((), of), "n": np.int64([-1])}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"]),
        helper.make_node("Reshape", ["t", "n"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "s"], ["y"]),
    ]
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], constants), fallback="refuse")
    wanted = ((x / np.float32(0.5)).astype(of).astype(np.float32) * np.float32(0.5)).T.reshape(-1)
    assert np.array_equal(model(x), wanted)
    assert len(model.plans) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_become_bytes_and_nothing_behind_them(dtype):
    """Rows of all lengths about a vector; ties go to even numbers, what is beyond the limits to these."""
    info = np.iinfo(dtype)
    for size in [*range(1, 40), 200]:
        sums = RNG.integers(-(2**31), 2**31, (2, 3, size), np.int32)
        sums[0, 0] = np.arange(size) - size // 2
        scale, shift = np.float64([0.5, 1e-8, -3e-7]), np.float64([0, 0.25, -2])
        less, zero = np.int32([0, 0, 0]), 3
        column = (1, 3, 1)
        wanted = np.rint(sums * scale.reshape(column) + shift.reshape(column)) + zero
        wanted = np.clip(wanted, max(info.min, 1), info.max).astype(dtype)
        with watched(sums.size) as memory:
            isa.quantized_kernels().requantize(
                sums.ctypes.data, less.ctypes.data, scale.ctypes.data, shift.ctypes.data, 2, 3, size,
                float(max(info.min, 1) - zero), float(info.max - zero), float(zero),
                memory.ctypes.data,
            )  # fmt: skip
            assert np.array_equal(memory.view(dtype).reshape(wanted.shape), wanted)


def test_images_of_quantised_convolutions_are_requantised_in_one_step():
    nodes, x, given, wanted = of_pieces("Conv", np.uint8, "Relu", "int32")
    model = aclnn.from_onnx(model_of(nodes, {"x": x}, ["y"], given))
    assert np.array_equal(model(x), wanted)
    steps = [str(one) for one in model.executor(x).schedule.steps]
    assert len([one for one in steps if "requantize" in one]) == 1
    assert not [one for one in steps if "clamp" in one]


@pytest.mark.parametrize("bits", [4, 8])
def test_products_by_weights_in_blocks_write_nothing_behind_their_results(bits):
    """MatMulNBits of all remainders of tiles and of parts of k, of few rows and many, with zeros and without."""
    for number in range(60):
        rows, n, block = (
            int(RNG.integers(1, 30)),
            int(RNG.integers(1, 60)),
            (16, 32, 128)[number % 3],
        )
        k = 2 * int(RNG.integers(1, 600)) if number % 4 == 0 else 32 * int(RNG.integers(1, 20))
        blocks = -(-k // block)
        whole = RNG.integers(0, 2**bits, (n, blocks * block))
        zero = RNG.integers(0, 2**bits, (n, blocks))
        parts = whole.astype(np.uint8).reshape(n, blocks, -1)
        packed = parts if bits == 8 else parts[..., ::2] | parts[..., 1::2] << 4
        scale = (RNG.random((n, blocks)) + 0.5).astype(np.float32)
        given = {"w": packed, "s": scale.reshape(-1)}
        middle = np.full((n, blocks), 2.0 ** (bits - 1))
        if number % 2:
            given["z"] = zero.astype(np.float32).reshape(-1)
            middle = zero
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        domain = "com.microsoft"
        node = helper.make_node("MatMulNBits", ["x", *given], ["y"], domain=domain, **attributes)
        x = RNG.standard_normal((rows, k)).astype(np.float32)
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", 1, x.shape)],
            [helper.make_tensor_value_info("y", 1, (rows, n))],
            [onnx.numpy_helper.from_array(one, name) for name, one in given.items()],
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        wide = (whole - np.repeat(middle, block, 1)) * np.repeat(scale.astype(np.float64), block, 1)
        wanted = x.astype(np.float64) @ wide[:, :k].T
        model = aclnn.from_onnx(proto, fallback="refuse")
        with aclnn.num_threads(1), watched(wanted.size * 4) as memory:
            out = memory.view(np.float32).reshape(wanted.shape)
            model(x, out=out)
            found = out.copy()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
