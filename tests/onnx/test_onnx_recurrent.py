"""Recurrent layers, beside ONNX Runtime, or PyTorch's layers in double precision."""

import numpy as np
import pytest

import aclnn

onnx = pytest.importorskip("onnx")
helper = onnx.helper

RNG = np.random.default_rng(0)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SIZE, WIDTH, BATCH = 5, 6, 3


def floats(*shape):
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


def inputs_of(kind, steps, ways=1, width=WIDTH):
    gates = GATES[kind] * SIZE
    return {
        "x": floats(steps, BATCH, width), "w": floats(ways, gates, width),
        "r": floats(ways, gates, SIZE), "b": floats(ways, 2 * gates), "lengths": None,
        "h": floats(ways, BATCH, SIZE), "c": floats(ways, BATCH, SIZE), "p": floats(ways, 3 * SIZE),
    }  # fmt: skip


def model_of(kind, given, free=("x",), **attributes):
    order = [*given][: 8 if kind == "LSTM" else 6]
    names = [name if given[name] is not None else "" for name in order]
    outputs = ["y", "yh", "yc"] if kind == "LSTM" else ["y", "yh"]
    node = helper.make_node(kind, names, outputs, "node", hidden_size=SIZE, **attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(given[name].dtype), given[name].shape
        )
        for name in order if name in free and given[name] is not None
    ]  # fmt: skip
    weights = [
        onnx.numpy_helper.from_array(given[name], name)
        for name in order if name not in free and given[name] is not None
    ]  # fmt: skip
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], "g", infos, made, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def beside_the_runtime(kind, given, free=("x",), **attributes):
    runtime = pytest.importorskip("onnxruntime")
    proto = model_of(kind, given, free, **attributes)
    arrays = {name: given[name] for name in free if given[name] is not None}
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, arrays)
    model = aclnn.from_onnx(proto, fallback="refuse")
    for one, right in zip(model.run(arrays), wanted, strict=True):
        assert one.shape == right.shape
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=2e-5)
    assert model.report().counts == {"kernel": 1}


@pytest.mark.parametrize("steps", [1, 4, 43])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_layers_are_those_of_the_runtime(kind, direction, steps):
    given = inputs_of(kind, steps, 2 if direction == "bidirectional" else 1)
    beside_the_runtime(kind, given, direction=direction)


@pytest.mark.parametrize("steps", [4, 40])
def test_what_a_layer_may_leave_out(steps):
    for kind in GATES:
        given = inputs_of(kind, steps)
        given |= dict.fromkeys(["b", "h", "c", "p"])
        beside_the_runtime(kind, given)


@pytest.mark.parametrize("steps", [4, 40])
def test_weights_that_are_inputs(steps):
    for kind in GATES:
        given = inputs_of(kind, steps)
        free = [*given] if kind == "LSTM" else [*given][:6]
        beside_the_runtime(kind, given, free)


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize("is_late", [0, 1])
def test_a_gru_resets_before_its_product_or_after(is_late, steps):
    beside_the_runtime("GRU", inputs_of("GRU", steps), linear_before_reset=is_late)


def test_activations_with_their_numbers():
    names = ["HardSigmoid", "Relu", "Softsign"]
    beside_the_runtime(
        "LSTM",
        inputs_of("LSTM", 4),
        activations=names,
        activation_alpha=[0.3],
        activation_beta=[0.4],
    )
    beside_the_runtime(
        "RNN", inputs_of("RNN", 4), activations=["LeakyRelu"], activation_alpha=[0.3]
    )
    beside_the_runtime("RNN", inputs_of("RNN", 4), activations=["Tanh"], clip=0.2)


@pytest.mark.parametrize("steps", [6, 40])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_rows_have_lengths(kind, direction, steps):
    given = inputs_of(kind, steps, 2 if direction == "bidirectional" else 1)
    given["lengths"] = np.int32([steps, 2, 4])
    beside_the_runtime(kind, given, direction=direction)
    beside_the_runtime(kind, given, ("x", "lengths"), direction=direction)


@pytest.mark.parametrize("steps", [4, 40])
def test_batches_come_first_with_the_other_layout(steps):
    given = inputs_of("LSTM", steps)
    plain = aclnn.from_onnx(model_of("LSTM", given), fallback="refuse")(given["x"])
    turned = {
        name: one.transpose(1, 0, 2).copy() if name in ("x", "h", "c") else one
        for name, one in given.items()
    }
    made = aclnn.from_onnx(model_of("LSTM", turned, layout=1), fallback="refuse")(turned["x"])
    assert np.array_equal(made[0], plain[0].transpose(2, 0, 1, 3))
    for one, right in zip(made[1:], plain[1:], strict=True):
        assert np.array_equal(one, right.transpose(1, 0, 2))


def test_coupled_gates_forget_what_they_do_not_take():
    given = inputs_of("LSTM", 3) | {"p": None}
    _, h, c = aclnn.from_onnx(model_of("LSTM", given, input_forget=1), fallback="refuse")(
        given["x"]
    )
    wide = {name: one.astype(float) for name, one in given.items() if one is not None}
    state, cell = wide["h"][0], wide["c"][0]
    for row in wide["x"]:
        sums = row @ wide["w"][0].T + state @ wide["r"][0].T + wide["b"][0].reshape(2, -1).sum(0)
        take, out, _, new = np.split(sums, 4, -1)
        take = 1 / (1 + np.exp(-take))
        cell = (1 - take) * cell + take * np.tanh(new)
        state = np.tanh(cell) / (1 + np.exp(-out))
    np.testing.assert_allclose(h[0], state, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c[0], cell, rtol=1e-5, atol=1e-6)


def test_many_steps_are_one_plan_that_runs_again():
    given = inputs_of("LSTM", 300)
    model = aclnn.from_onnx(model_of("LSTM", given), fallback="refuse")
    first = model(given["x"])
    again = model(given["x"])
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert len(model.plans) == 1


def test_an_activation_that_nobody_knows_is_named():
    given = inputs_of("RNN", 2)
    model = aclnn.from_onnx(model_of("RNN", given, activations=["Cosine"]), fallback="refuse")
    with pytest.raises(aclnn.AclnnError, match=r"RNN \(node\): activation Cosine"):
        model(given["x"])
