"""Operators that read or put elements at places, and pools, beside ONNX Runtime and NumPy."""

import numpy as np
import pytest

import aclnn

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
helper = onnx.helper
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(kind, inputs, n_outputs=1, opset=20, constants=(), **attributes):
    """A model of one node; inputs whose places are in `constants` are initialisers."""
    names = [f"x{n}" if one is not None else "" for n, one in enumerate(inputs)]
    infos, weights = [], []
    for place, (name, one) in enumerate(zip(names, inputs, strict=True)):
        if one is None:
            continue
        if place in constants:
            weights.append(onnx.numpy_helper.from_array(one, name))
            continue
        dtype = helper.np_dtype_to_tensor_dtype(one.dtype)
        infos.append(helper.make_tensor_value_info(name, dtype, [None] * one.ndim))
    outputs = [f"y{n}" for n in range(n_outputs)]
    node = helper.make_node(kind, names, outputs, **attributes)
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "one", infos, made, weights)
    imports = [helper.make_opsetid("", opset)]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=10)
    proto = onnx.shape_inference.infer_shapes(proto)
    given = {
        name: one
        for n, (name, one) in enumerate(zip(names, inputs, strict=True))
        if name and n not in constants
    }
    return proto, given


def results(kind, inputs, n_outputs=1, **options):
    """Ours, without other runtimes, and ONNX Runtime's."""
    proto, given = model_of(kind, inputs, n_outputs, **options)
    made = aclnn.from_onnx(proto, fallback="refuse").run(given)
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return made if isinstance(made, tuple) else (made,), session.run(None, given)


def assert_near(kind, inputs, n_outputs=1, bound=1e-5, **options):
    made, wanted = results(kind, inputs, n_outputs, **options)
    for one, right in zip(made, wanted, strict=True):
        assert one.dtype == right.dtype
        np.testing.assert_allclose(one, right, rtol=bound, atol=bound)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grids_sample_as_the_runtime_does(mode, padding, aligned):
    # Not between two elements at equal distances, where float32 decides.
    grid = RNG.uniform(-2.2, 2.2, (2, 6, 5, 2)).astype(np.float32)
    options = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    assert_near("GridSample", [floats(2, 3, 7, 9), grid], bound=1e-4, **options)


def test_grids_of_no_numbers_and_volumes():
    grid = RNG.uniform(-1.2, 1.2, (1, 3, 4, 5, 3)).astype(np.float32)
    assert_near("GridSample", [floats(1, 2, 4, 5, 6), grid], bound=1e-4)
    proto, _ = model_of("GridSample", [floats(1, 1, 3, 3), np.zeros((1, 1, 1, 2), np.float32)])
    model = aclnn.from_onnx(proto, fallback="refuse")
    made = model(np.ones((1, 1, 3, 3), np.float32), np.full((1, 1, 1, 2), np.nan, np.float32))
    assert np.isfinite(made).all()


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("how", ["half_pixel", "output_half_pixel"])
def test_regions_are_aligned_as_the_runtime_does(mode, ratio, how):
    corners = RNG.uniform(0, 20, (5, 2))
    regions = np.concatenate([corners, corners + RNG.uniform(1, 15, (5, 2))], 1).astype(np.float32)
    assert_near(
        "RoiAlign", [floats(2, 3, 12, 16), regions, np.array([0, 1, 1, 0, 1])], mode=mode,
        sampling_ratio=ratio, output_height=3, output_width=4, spatial_scale=0.5,
        coordinate_transformation_mode=how, bound=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("factor", [1.0, 0.5, 0.3])
def test_regions_are_pooled_as_the_runtime_does(factor):
    """Also those that are outside, turned round, and smaller than a bin."""
    regions = np.float32(
        [
            [0, 0, 0, 7, 5], [1, 1.5, 2.5, 4, 9], [1, -3, -2, 20, 20],
            [0, 6, 6, 2, 2], [0, 30, 30, 40, 40], [1, 2, 3, 3, 3],
        ]
    )  # fmt: skip
    given = [floats(2, 3, 9, 8), regions]
    made, wanted = results("MaxRoiPool", given, pooled_shape=[3, 2], spatial_scale=factor)
    assert np.array_equal(made[0], wanted[0])


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[0, -1, 1, 0], [-1, 2, 2, -1], [-1, 0, -1, 0]])
def test_margins_that_cut_off_are_those_of_the_runtime(mode, pads):
    made, wanted = results("Pad", [floats(5, 6), np.int64(pads)], mode=mode)
    assert np.array_equal(made[0], wanted[0])


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("most", [0, 3, 100])
@pytest.mark.parametrize("count", [60, 500])
def test_boxes_are_suppressed_as_the_runtime_does(centred, most, count):
    places = RNG.uniform(0, 1, (2, count, 2))
    sizes = RNG.uniform(0.02, 0.4 if count < 100 else 0.1, (2, count, 2))
    boxes = np.concatenate([places, sizes if centred else places + sizes], 2).astype(np.float32)
    boxes[:, ::5] = boxes[:, :1]  # several in one place
    scores = RNG.uniform(0, 1, (2, 3, count)).astype(np.float32)
    limits = np.int64([most]), np.float32([0.4]), np.float32([0.3])
    made, wanted = results("NonMaxSuppression", [boxes, scores, *limits], center_point_box=centred)
    assert np.array_equal(made[0], wanted[0])
    assert bool(len(made[0])) == bool(most)


def test_boxes_without_area_and_without_numbers_suppress_none():
    boxes = np.float32(
        [[[0, 0, 1, 1], [0, 0, 1, 1], [0.5, 0.5, 0.5, 2], [np.nan, 0, 1, 1], [1, 1, 0, 0], [0, 0, np.inf, 1]]]
    )  # fmt: skip
    scores = np.float32([[[0.9, 0.8, 0.95, 0.99, 0.5, 0.4]]])
    limits = np.int64([10]), np.float32([0.5]), np.float32([0.0])
    model, given = model_of("NonMaxSuppression", [boxes, scores, *limits])
    found = aclnn.from_onnx(model)(*given.values())
    assert np.asarray(found)[:, 2].tolist() == [3, 2, 0, 5]


def test_order_of_boxes_is_checked_before_it_is_followed():
    from aclnn.onnx._boxes import kept

    boxes = np.zeros((3, 5), np.float32)
    for order, rows, error in (
        (np.int64([0, 3]), boxes, IndexError),
        (np.int64([-1]), boxes, IndexError),
        (np.int32([0]), boxes, ValueError),
        (np.int64([0]), boxes.astype(np.float64), ValueError),
        (np.int64([0]), boxes[:, :4].copy(), ValueError),
        (np.int64([[0]]), boxes, ValueError),
    ):
        with pytest.raises(error):
            kept(order, rows, 0.5, 2)
    around = np.int64([-7, 2, 1, 0, -7])
    assert kept(around[1:4], boxes, 0.5, 2) == 2
    assert around.tolist() == [-7, 2, 1, 0, -7]
    assert kept(around[1:4], boxes, 0.5, -1) == 0


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 11), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
        ((2, 3, 9, 11), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [2, 0, 1, 1]}),
        ((2, 3, 9, 11), {"kernel_shape": [3, 3], "dilations": [2, 3]}),
        ((1, 2, 7, 8, 9), {"kernel_shape": [2, 3, 3], "strides": [1, 2, 2], "pads": [0, 1, 1, 1, 1, 0]}),
        ((1, 2, 7, 8, 9), {"kernel_shape": [2, 3, 3], "strides": [2, 2, 2], "ceil_mode": 1}),
        ((2, 3, 9, 11), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ],
)  # fmt: skip
def test_pools_of_any_windows(kind, shape, options):
    if kind == "AveragePool" and "pads" in options:
        assert_near(kind, [floats(*shape)], **options, count_include_pad=1)
    assert_near(kind, [floats(*shape)], **options)


@pytest.mark.parametrize("order", [0, 1])
def test_places_of_largest_elements(order):
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    x = RNG.permutation(2 * 3 * 49).reshape(2, 3, 7, 7).astype(np.float32)
    assert_near("MaxPool", [x], 2, **options, storage_order=order)
    made, _ = results("MaxPool", [x], 2, **options)
    assert_near("MaxUnpool", [*made], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatters_with_reductions(reduction):
    index = (
        np.int64([[0, -1], [2, 1], [0, -1]]) if reduction != "none" else np.int64([[0, -1], [2, 1]])
    )
    x, updates = floats(3, 4, 2), floats(len(index), 2)
    assert_near("ScatterND", [x, index, updates], opset=18, reduction=reduction)
    places = (
        np.int64([[0, -1, 2, 2], [1, 0, 0, -3]])
        if reduction != "none"
        else np.int64([[0, -1, 2, 2]])
    )
    assert_near(
        "ScatterElements",
        [floats(3, 4), places, floats(*places.shape)],
        opset=18,
        reduction=reduction,
    )


def test_transforms_of_signals():
    x = floats(2, 20, 1)
    proto, given = model_of("DFT", [x, np.int64(16)], constants=(1,), onesided=1, opset=17, axis=1)
    made = aclnn.from_onnx(proto, fallback="refuse").run(given)
    wanted = np.fft.rfft(x[..., 0], 16, axis=1)
    np.testing.assert_allclose(made[..., 0] + 1j * made[..., 1], wanted, atol=1e-5)
    signal, window = floats(2, 64), np.hanning(16).astype(np.float32)
    proto, given = model_of("STFT", [signal, np.int64(8), window], constants=(1, 2), opset=17)
    made = aclnn.from_onnx(proto, fallback="refuse").run(given)
    for frame in range(7):
        wanted = np.fft.rfft(signal[:, frame * 8 : frame * 8 + 16] * window, axis=1)
        np.testing.assert_allclose(
            made[:, frame, :, 0] + 1j * made[:, frame, :, 1], wanted, atol=1e-5
        )


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_unique_elements(axis, is_sorted):
    options = {"sorted": is_sorted, **({} if axis is None else {"axis": axis})}
    x = RNG.integers(0, 3, (6, 2)).astype(np.int64)
    made, wanted = results("Unique", [x], 4, **options)
    for one, right in zip(made, wanted, strict=True):
        assert np.array_equal(one, right)


@pytest.mark.parametrize(
    ("kind", "inputs", "options"),
    [
        ("OneHot", [np.int64([[0, -1, 7], [2, -5, 1]]), np.int64(4), np.float32([-1, 3])],
         {"axis": 1, "constants": (1,)}),
        ("ReverseSequence", [np.float32(np.arange(24).reshape(3, 4, 2)), np.int64([4, 1, 2])],
         {"batch_axis": 0, "time_axis": 1}),
        ("Hardmax", [np.float32(np.random.default_rng(1).permutation(24).reshape(2, 3, 4))], {"axis": 1}),
        ("Det", [np.float32(np.random.default_rng(1).random((3, 4, 4)))], {}),
        ("LRN", [np.float32(np.random.default_rng(1).random((2, 5, 3, 3)))], {"size": 3, "alpha": 0.5}),
        ("Col2Im", [np.float32(np.arange(2 * 8 * 9).reshape(2, 8, 9)), np.int64([4, 4]), np.int64([2, 2])],
         {"constants": (1, 2)}),
        ("BitShift", [np.uint32([16, 4, 1]), np.uint32([1, 2, 3])], {"direction": "LEFT"}),
        ("Einsum", [np.float32(np.random.default_rng(1).random((2, 3, 3))), np.float32([1, 2, 3])],
         {"equation": "bii,i->b"}),
        ("ConvTranspose", [np.float32(np.random.default_rng(1).random((1, 2, 4, 5))),
                           np.float32(np.random.default_rng(2).random((2, 3, 3, 3)))],
         {"strides": [2, 3], "auto_pad": "SAME_UPPER"}),
        ("ConvTranspose", [np.float32(np.random.default_rng(1).random((1, 2, 4, 5))),
                           np.float32(np.random.default_rng(2).random((2, 3, 3, 3)))],
         {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 0]}),
        ("Gemm", [np.random.default_rng(1).random((3, 4)), np.random.default_rng(2).random((4, 5)),
                  np.random.default_rng(3).random(5)], {"alpha": 2.0, "beta": 0.5}),
        ("Atanh", [np.float32([-0.9, 0, 0.5])], {}),
    ],
)  # fmt: skip
def test_operators_do_what_the_runtime_does(kind, inputs, options):
    assert_near(kind, inputs, **options)


def test_random_numbers_differ_between_calls_unless_there_is_a_seed():
    x = np.zeros((40, 50), np.float32)
    proto, _ = model_of("RandomNormalLike", [x], mean=3.0, scale=0.5)
    model = aclnn.from_onnx(proto, fallback="refuse")
    one, other = model(x).copy(), model(x)
    assert abs(one.mean() - 3) < 0.1
    assert abs(one.std() - 0.5) < 0.1
    assert (one != other).any()
    proto, _ = model_of("RandomNormalLike", [x], seed=7.0)
    model = aclnn.from_onnx(proto, fallback="refuse")
    assert np.array_equal(model(x).copy(), model(x))
    rows = np.log(np.float32([[0.7, 0.2, 0.1]]))
    proto, _ = model_of("Multinomial", [rows], sample_size=4000)
    drawn = aclnn.from_onnx(proto, fallback="refuse")(rows)
    assert abs((drawn == 0).mean() - 0.7) < 0.05


def test_what_does_not_fit_is_refused_by_name():
    proto, given = model_of("ScatterND", [floats(3, 4), np.int64([[0]]), floats(1, 3)])
    with pytest.raises(aclnn.AclnnError, match=r"ScatterND \(y0\)"):
        aclnn.from_onnx(proto, fallback="refuse").run(given)
    boxes, scores = np.zeros((1, 4, 4), np.float32), np.zeros((1, 1, 5), np.float32)
    proto, given = model_of("NonMaxSuppression", [boxes, scores])
    with pytest.raises(aclnn.AclnnError, match="do not fit scores"):
        aclnn.from_onnx(proto, fallback="refuse").run(given)
