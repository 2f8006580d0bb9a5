"""Operators of ONNX Runtime's own domain, composed here, beside the runtime."""

import numpy as np
import pytest

import aclnn

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
helper = onnx.helper

from aclnn.onnx.microsoft import OF_RUNTIME  # noqa: E402

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_of(*shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def weight_of(*shape):
    """Integers of seven bits: with eight the runtime saturates sums of two on some processors."""
    return RNG.integers(-64, 64, shape).astype(np.int8)


def few_bits(count, length, bits, block):
    """A packed weight, its scales and its packed zeros."""
    blocks = -(-length // block)
    return (
        bytes_of(count, blocks, block * bits // 8),
        (RNG.random((count, blocks)) * 0.1 + 0.01).astype(np.float32),
        bytes_of(count, -(-blocks * bits // 8)),
    )


X = floats(2, 5, 16)
WEIGHT, ROW = floats(16, 48), floats(48)
HEADS = floats(2, 4, 5, 4)
PAST = floats(2, 4, 3, 4)
ANGLES = RNG.random((32, 2)) * 3
COS, SIN = np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)
QUERY, KEY = floats(2, 5, 64), floats(2, 5, 32)
ANGLES_OF_MANY = RNG.random((32, 8)) * 3
COS_OF_MANY, SIN_OF_MANY = (
    np.cos(ANGLES_OF_MANY).astype(np.float32),
    np.sin(ANGLES_OF_MANY).astype(np.float32),
)
PACKED, SCALES, ZEROS = few_bits(6, 40, 4, 16)
PACKED8, SCALES8, ZEROS8 = few_bits(6, 40, 8, 16)
PACKED2, SCALES2, ZEROS2 = few_bits(6, 40, 2, 16)
KEYS = np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
EXPERTS = (floats(3, 12, 16), floats(3, 12), floats(3, 16, 12), floats(3, 16))
WIDE = (floats(3, 24, 16), floats(3, 24), floats(3, 16, 12), floats(3, 16))
ROUTER = floats(10, 3)
MS, STANDARD = "com.microsoft", ""

# kind, attributes, inputs (None: left out), indices of outputs, which of the inputs are constants
CASES = [
    ("SkipLayerNormalization", {"epsilon": 1e-5}, [X, X[::-1], ROW[:16], ROW[16:32], ROW[32:]], [0, 3], ""),
    ("SkipLayerNormalization", {}, [X, X[:1], ROW[:16]], [0], ""),
    ("SkipSimplifiedLayerNormalization", {"epsilon": 1e-5}, [X, X[::-1], ROW[:16], ROW[16:32]], [0, 3], ""),
    ("SimplifiedLayerNormalization", {"epsilon": 1e-5}, [X, ROW[:16]], [0], ""),
    ("BiasGelu", {}, [X, ROW[:16]], [0], ""), ("Gelu", {}, [X], [0], ""),
    ("FastGelu", {}, [X, ROW[:16]], [0], ""), ("FastGelu", {}, [X], [0], ""),
    ("QuickGelu", {"alpha": 1.3}, [X], [0], ""),
    ("FusedMatMul", {"transA": 1, "transB": 1, "alpha": 0.5}, [X, floats(2, 7, 5)], [0], ""),
    ("FusedMatMul", {}, [X, WEIGHT], [0], ""),
    ("FusedConv", {"activation": "Relu", "pads": [1, 1, 1, 1]}, [floats(1, 3, 6, 6), floats(4, 3, 3, 3),
     ROW[:4], floats(1, 4, 6, 6)], [0], "w"),
    ("FusedConv", {"activation": "LeakyRelu", "activation_params": [0.2]}, [floats(1, 3, 6, 6),
     floats(4, 3, 3, 3)], [0], ""),
    ("FusedGemm", {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1}, [X[0], floats(7, 16),
     ROW[:7]], [0], ""),
    ("MatMulIntegerToFloat", {}, [bytes_of(2, 5, 16), weight_of(16, 6), np.float32(0.1),
     np.abs(ROW[:6]), np.uint8(7), weight_of(6), ROW[:6]], [0], ""),
    ("DynamicQuantizeMatMul", {}, [X, weight_of(16, 6), np.abs(ROW[:6]),
     np.zeros(6, np.int8), ROW[:6]], [0], "wsz"),
    ("DynamicQuantizeMatMul", {}, [np.abs(X), bytes_of(16, 6), np.float32([0.2]), np.uint8([9])], [0], "wsz"),
    *(("MatMulNBits", {"K": 40, "N": 6, "bits": bits, "block_size": 16}, [floats(2, 3, 40), packed, scales,
       zeros, None, bias], [0], "wsz")
      for bits, packed, scales in ((4, PACKED, SCALES), (8, PACKED8, SCALES8), (2, PACKED2, SCALES2))
      for zeros, bias in ((None, None), ({2: ZEROS2, 4: ZEROS, 8: ZEROS8}[bits], ROW[:6]))),
    ("MatMulNBits", {"K": 40, "N": 6, "bits": 4, "block_size": 16}, [floats(1, 40), PACKED, SCALES,
     floats(6, 3)], [0], "wsz"),
    ("GatherBlockQuantized", {"bits": 4, "block_size": 16, "quantize_axis": 1}, [bytes_of(9, 16),
     RNG.integers(0, 9, (2, 3)), floats(9, 2)], [0], "xw"),
    ("GatherBlockQuantized", {"bits": 4, "block_size": 16, "quantize_axis": 1}, [bytes_of(9, 16),
     RNG.integers(0, 9, (2, 3)), floats(9, 2), bytes_of(9, 1)], [0], "xsz"),
    ("GatherBlockQuantized", {"bits": 8, "block_size": 16, "quantize_axis": 1}, [bytes_of(9, 40),
     RNG.integers(0, 9, 4), floats(9, 3), bytes_of(9, 3)], [0], "xsz"),
    ("RotaryEmbedding", {}, [HEADS, RNG.integers(0, 32, (2, 5)), COS, SIN], [0], ""),
    ("RotaryEmbedding", {"interleaved": 1}, [HEADS, np.int64([3]), COS, SIN], [0], ""),
    ("RotaryEmbedding", {"num_heads": 4}, [X, RNG.integers(0, 32, (2, 5)), COS, SIN], [0], ""),
    ("RotaryEmbedding", {"num_heads": 2, "rotary_embedding_dim": 4}, [X, RNG.integers(0, 32, (2, 5)), COS,
     SIN], [0], ""),
    ("Attention", {"num_heads": 4}, [X, WEIGHT, ROW], [0], ""),
    ("Attention", {"num_heads": 4, "unidirectional": 1}, [X, WEIGHT, ROW], [0], ""),
    ("Attention", {"num_heads": 4, "scale": 0.3}, [X, WEIGHT, ROW, KEYS], [0], ""),
    ("Attention", {"num_heads": 4}, [X, WEIGHT, ROW, np.int32([3, 5])], [0], ""),
    ("Attention", {"num_heads": 4}, [X, WEIGHT, ROW, np.int32([3, 5, 1, 0])], [0], ""),
    ("Attention", {"num_heads": 4, "unidirectional": 1}, [X, WEIGHT, ROW, None, np.stack([PAST, PAST[::-1]])],
     [0, 1], ""),
    ("Attention", {"num_heads": 4}, [X, WEIGHT, ROW, None, None, floats(2, 4, 5, 5)], [0], ""),
    ("Attention", {"num_heads": 4, "qkv_hidden_sizes": [8, 8, 24]}, [X, floats(16, 40), ROW[:40]], [0], ""),
    ("QAttention", {"num_heads": 4}, [bytes_of(2, 5, 16), weight_of(16, 48), ROW,
     np.float32(0.02), np.float32(0.01), KEYS, np.uint8(100), np.int8(0)], [0], ""),
    ("MultiHeadAttention", {"num_heads": 4}, [X, X[::-1], X[:, ::-1]], [0], ""),
    ("MultiHeadAttention", {"num_heads": 4}, [X, floats(2, 7, 16), floats(2, 7, 16), ROW], [0], ""),
    ("MultiHeadAttention", {"num_heads": 4}, [X, X[::-1], X, None, KEYS], [0], ""),
    ("MultiHeadAttention", {"num_heads": 4}, [X, X[::-1], X, None, np.int32([3, 5])], [0], ""),
    ("MultiHeadAttention", {"num_heads": 4, "unidirectional": 1}, [X, X, X, None, None, floats(1, 4, 5, 5)],
     [0], ""),
    ("MultiHeadAttention", {"num_heads": 4}, [X, X[::-1], X, None, None, None, PAST, PAST[::-1]],
     [0, 1, 2], ""),
    ("MultiHeadAttention", {"num_heads": 4}, [X, floats(2, 4, 6, 4), floats(2, 4, 6, 4)], [0], ""),
    # The first prompt, one with a rotation and packed heads, then single rows with a cache that grows, or has room.
    ("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2}, [QUERY, KEY, KEY[::-1], None, None,
     np.int32([4, 4]), np.int32(5)], [0, 1, 2], ""),
    ("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}, [floats(2, 5, 128), None,
     None, None, None, np.int32([4, 4]), np.int32(5), COS_OF_MANY, SIN_OF_MANY], [0, 1, 2], ""),
    ("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 3}, [QUERY, KEY, KEY,
     None, None, np.int32([4, 4]), np.int32(5)], [0, 1, 2], ""),
    *(("GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, **more}, [QUERY[:, :1],
       KEY[:, :1], KEY[:, 1:2], floats(2, 2, room, 16), floats(2, 2, room, 16), np.int32([6, 6]),
       np.int32(7), COS_OF_MANY, SIN_OF_MANY], [0, 1, 2], "")
      for room in (6, 12) for more in ({}, {"rotary_interleaved": 1, "local_window_size": 4})),
    *(("MoE", {"k": k, "activation_type": kind, "normalize_routing_weights": norm}, [X.reshape(10, 16),
       ROUTER, *EXPERTS], [0], "")
      for k, kind, norm in ((1, "relu", 0), (2, "gelu", 1), (2, "silu", 1))),
    ("MoE", {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "normalize_routing_weights": 1,
     "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5}, [X.reshape(10, 16), ROUTER,
     *WIDE], [0], ""),
    ("QMoE", {"k": 2, "activation_type": "silu", "normalize_routing_weights": 1, "expert_weight_bits": 8},
     [X.reshape(10, 16), ROUTER, bytes_of(3, 12, 16), floats(3, 12) / 200, floats(3, 12),
      bytes_of(3, 16, 12), floats(3, 16) / 200, floats(3, 16)], [0], "constants"),
    ("QMoE", {"k": 2, "activation_type": "silu", "normalize_routing_weights": 1, "expert_weight_bits": 4},
     [X.reshape(10, 16), ROUTER, bytes_of(3, 12, 8), floats(3, 12) / 20, floats(3, 12),
      bytes_of(3, 16, 6), floats(3, 16) / 20, floats(3, 16)], [0], "constants"),
]  # fmt: skip
NAMES = "xwsz" + "efghijklmn"


def model_of(kind, attributes, inputs, places, constants):
    domain = STANDARD if kind == "SimplifiedLayerNormalization" else MS
    if constants == "constants":
        constants = NAMES[2:]
    named = {name: np.ascontiguousarray(one).reshape(np.shape(one))
             for name, one in zip(NAMES, inputs, strict=False) if one is not None}  # fmt: skip
    order = ["" if one is None else name for name, one in zip(NAMES, inputs, strict=False)]
    outputs = [f"y{n}" if n in places else "" for n in range(max(places) + 1)]
    node = helper.make_node(kind, order, outputs, "node", domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in named.items() if name not in constants
    ]  # fmt: skip
    weights = [
        onnx.numpy_helper.from_array(one, name) for name, one in named.items() if name in constants
    ]
    made = [helper.make_tensor_value_info(f"y{n}", onnx.TensorProto.FLOAT, None) for n in places]
    graph = helper.make_graph([node], "g", infos, made, weights)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return model, {name: one for name, one in named.items() if name not in constants}


def of_runtime(model, given):
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, given)
    except Exception as error:
        pytest.skip(f"this runtime does not run it: {error}")


def close(made, wanted):
    made = made if isinstance(made, tuple) else (made,)
    assert len(made) == len(wanted)
    for one, right in zip(made, wanted, strict=True):
        assert (one.dtype, one.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(one, right, rtol=2e-4, atol=5e-5 * max(1, np.abs(right).max()))


@pytest.mark.parametrize("case", CASES, ids=lambda one: f"{one[0]}-{one[1]}"[:70])
def test_operators_are_those_of_the_runtime(case):
    model, given = model_of(*case)
    wanted = of_runtime(model, given)
    read = aclnn.from_onnx(model, fallback="refuse")
    close(read.run(given), wanted)
    assert read.report().counts == {"kernel": 1}


def test_every_operator_is_tried():
    tried = {kind for kind, *_ in CASES}
    same = {
        "BiasSplitGelu",
        "QuantizeLinear",
        "DequantizeLinear",
    }  # none for this processor; the standard's
    assert {kind for _, kind in OF_RUNTIME} - tried - same == set()


def test_halves_are_split_and_gated():
    x, bias = floats(2, 3, 8), floats(8)
    model, given = model_of("BiasSplitGelu", {}, [x, bias], [0], "")
    made = aclnn.from_onnx(model, fallback="refuse").run(given)
    wide = x + bias
    assert np.allclose(made, wide[..., :4] * aclnn.gelu(wide[..., 4:].copy()), rtol=1e-6)


def test_packed_heads_are_those_side_by_side():
    packed = floats(2, 5, 4, 3, 4)
    model, given = model_of("MultiHeadAttention", {"num_heads": 4}, [packed], [0], "")
    apart = [packed[:, :, :, n].reshape(2, 5, 16) for n in range(3)]
    other, parts = model_of("MultiHeadAttention", {"num_heads": 4}, apart, [0], "")
    made = [aclnn.from_onnx(one, fallback="refuse") for one in (model, other)]
    assert np.allclose(made[0].run(given), made[1].run(parts), rtol=1e-6)


def test_rows_are_put_into_the_cache_at_their_own_places():
    past_k, past_v = floats(2, 2, 9, 16), floats(2, 2, 9, 16)
    inputs = [QUERY[:, :1], KEY[:, :1], KEY[:, 1:2], past_k, past_v, np.int32([2, 7]), np.int32(8)]
    model, given = model_of(
        "GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2}, inputs, [0, 1, 2], ""
    )
    made = aclnn.from_onnx(model, fallback="refuse").run(given)
    for batch, place in ((0, 2), (1, 7)):
        keys = past_k[batch].copy()
        keys[:, place] = KEY[batch, 0].reshape(2, 16)
        keys[:, place + 1 :] = 0
        assert np.array_equal(made[1][batch], keys)
    close(made[0], of_runtime(model, given)[:1])


@pytest.mark.parametrize("rows", [1, 5, 12, 13, 70])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_of_few_bits_multiply_rows_of_any_number(rows, bits):
    packed, scales, zeros = few_bits(40, 96, bits, 32)
    x = floats(rows, 96)
    case = (
        "MatMulNBits",
        {"K": 96, "N": 40, "bits": bits, "block_size": 32},
        [x, packed, scales, zeros],
    )
    model, given = model_of(*case, [0], "wsz")
    whole = (packed[..., None] >> np.arange(0, 8, bits)) & (2**bits - 1)
    middle = ((zeros[..., None] >> np.arange(0, 8, bits)) & (2**bits - 1)).reshape(40, -1)[:, :3]
    weight = (whole.reshape(40, 96) - np.repeat(middle.astype(float), 32, 1)) * np.repeat(
        scales, 32, 1
    )
    wanted = x.astype(np.float64) @ weight.T
    made = aclnn.from_onnx(model, fallback="refuse").run(given)
    np.testing.assert_allclose(made, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


def test_weights_of_few_bits_take_the_memory_of_their_bits():
    import tracemalloc

    packed, scales, _ = few_bits(1024, 1024, 4, 32)
    case = (
        "MatMulNBits",
        {"K": 1024, "N": 1024, "bits": 4, "block_size": 32},
        [X[0, :, :1], packed, scales],
    )
    x = floats(3, 1024)
    model, _ = model_of(*case[:2], [x, packed, scales], [0], "ws")
    tracemalloc.start()
    try:
        read = aclnn.from_onnx(model, fallback="refuse")
        read(x), read(x[:1].repeat(3, 0))
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * packed.nbytes
    assert most < 1024 * 1024 * 4


def test_only_chosen_experts_are_computed():
    router = np.float32([[9, 5, -9], [5, 9, -9]])
    weights = [one.copy() for one in EXPERTS]
    for one in weights:
        one[2] = np.nan
    attributes = {"k": 2, "activation_type": "relu", "normalize_routing_weights": 1}
    model, given = model_of("MoE", attributes, [X[0, :2], router, *weights], [0], "")
    made = aclnn.from_onnx(model, fallback="refuse").run(given)
    assert np.isfinite(made).all()
