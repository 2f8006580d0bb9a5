"""Model files: weights that are mapped, in the file and beside it, and files that are wrong."""

import pickle

import numpy as np
import pytest

import aclnn

onnx = pytest.importorskip("onnx")

from aclnn.onnx import files  # noqa: E402

TABLE = np.arange(4096, dtype=np.float32).reshape(64, 64)


def model_of(**weights):
    """A model that adds a row of each weight to what it is given."""
    helper = onnx.helper
    nodes, last = [], "x"
    for place, name in enumerate(weights):
        nodes.append(helper.make_node("Gather", [name, "row"], [f"row_{place}"], axis=0))
        nodes.append(helper.make_node("Add", [last, f"row_{place}"], [f"sum_{place}"]))
        last = f"sum_{place}"
    width = next(iter(weights.values())).shape[1]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", 1, [width]),
            helper.make_tensor_value_info("row", 7, []),
        ],
        [helper.make_tensor_value_info(last, 1, [width])],
        [onnx.numpy_helper.from_array(one, name) for name, one in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def gives(model, wanted):
    made = model(np.zeros(len(wanted), np.float32), np.asarray(3))
    np.testing.assert_array_equal(made, wanted)


def owner(array):
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return type(array).__name__


@pytest.mark.parametrize("is_outside", [False, True])
def test_weights_are_views_of_the_file(tmp_path, is_outside):
    path = tmp_path / "model.onnx"
    onnx.save(model_of(w=TABLE, small=TABLE[:8, :64]), path, save_as_external_data=is_outside)
    proto, weights = files.read_file(path)
    inside = {"memoryview", "ndarray"}  # read at once where it lies between elements
    assert owner(weights["w"]) in ({"mmap"} if is_outside else inside)
    assert not proto.graph.initializer[0].raw_data
    model = aclnn.from_onnx(path)
    gives(model, 2 * TABLE[3])
    gives(pickle.loads(pickle.dumps(model)), 2 * TABLE[3])


def test_files_may_be_larger_than_messages(tmp_path):
    """Of 2.2 GiB, nearly all of which is a hole."""
    rows, width = 9 * 2**20, 64
    whole = model_of(w=np.zeros((2, width), np.float32))
    (weight,) = whole.graph.initializer
    del whole.graph.initializer[:]
    head = onnx.TensorProto(dims=[rows, width], data_type=1, name=weight.name).SerializeToString()
    size = rows * width * 4
    tensor = head + files._number(files.RAW_DATA << 3 | files.BYTES) + files._number(size)
    path = tmp_path / "large.onnx"
    # The weight begins where it can be mapped, for one of the lengths of what comes before.
    for letters in range(TABLE.itemsize):
        whole.producer_name = "x" * letters
        begin = beginning(whole, tensor, size)
        if len(begin) % TABLE.itemsize == 0:
            break
    with open(path, "wb") as file:
        file.write(begin)
        file.truncate(len(begin) + size)
        file.seek(len(begin) + 3 * width * 4)
        file.write(TABLE[5].tobytes())
    gives(aclnn.from_onnx(path), TABLE[5])


def beginning(whole, tensor, size):
    """A model up to the bytes of one more initialiser."""
    graph = whole.graph.SerializeToString()
    inner = files._number(files.INITIALIZER << 3 | files.BYTES) + files._number(len(tensor) + size)
    begin = files._number(files.GRAPH << 3 | files.BYTES)
    begin += files._number(len(graph) + len(inner) + len(tensor) + size)
    rest = onnx.ModelProto()
    rest.CopyFrom(whole)
    rest.ClearField("graph")
    return rest.SerializeToString() + begin + graph + inner + tensor


def test_weights_are_mapped_where_elements_are_in_line(tmp_path):
    """And read where they are not: of four models, whose names have different lengths, one is."""
    owners = []
    for letters in range(TABLE.itemsize):
        model = model_of(w=TABLE)
        model.producer_name = "x" * (letters + 1)
        path = tmp_path / f"{letters}.onnx"
        onnx.save(model, path)
        owners.append(owner(files.read_file(path)[1]["w"]))
        gives(aclnn.from_onnx(path), TABLE[3])
    assert sorted(owners) == ["memoryview"] + ["ndarray"] * 3


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        (
            "location",
            "../weights",
            r"initializer 'w': .*'../weights', which is not in the model's folder",
        ),
        ("location", "/etc/passwd", "'/etc/passwd', which is not in the model's folder"),
        ("location", "", "'', which is not in the model's folder"),
        ("location", "none", "'none', which is no file"),
        ("offset", "16", "16384 bytes from 16 on of 'weights', which has 16384"),
        ("length", "16380", r"16380 bytes for float32\[64, 64\], which needs 16384"),
        ("length", "-4", "-4 bytes from 0 on"),
        ("offset", "much", "initializer 'w': ValueError"),
    ],
)
def test_external_data_is_in_the_folder_and_whole(tmp_path, entry, value, words):
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(model_of(w=TABLE), path, save_as_external_data=True, location="weights")
    (tmp_path / "weights").write_bytes(TABLE.tobytes())
    proto = onnx.load(path, load_external_data=False)
    data = {one.key: one.value for one in proto.graph.initializer[0].external_data} | {entry: value}
    del proto.graph.initializer[0].external_data[:]
    for key, one in data.items():
        proto.graph.initializer[0].external_data.add(key=key, value=one)
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(aclnn.AclnnError, match=words):
        aclnn.from_onnx(path)


def test_external_data_needs_a_path(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model_of(w=TABLE), path, save_as_external_data=True, location="weights")
    with pytest.raises(aclnn.AclnnError, match="in the file 'weights': give the model's path"):
        aclnn.from_onnx(path.read_bytes())


@pytest.mark.parametrize("seed", range(4))
def test_cut_and_changed_files_are_refused_or_run(tmp_path, seed):
    rng = np.random.default_rng(seed)
    content = model_of(w=TABLE).SerializeToString()
    path = tmp_path / "model.onnx"
    for _ in range(25):
        changed = bytearray(content[: rng.integers(len(content))] if seed % 2 else content)
        for place in rng.integers(0, min(len(changed), 400) or 1, 3):
            if place < len(changed):
                changed[place] = rng.integers(256)
        path.write_bytes(changed)
        try:
            aclnn.from_onnx(path, fallback="allow")(np.zeros(64, np.float32), np.asarray(3))
        except aclnn.AclnnError as error:
            assert str(error)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint4", "int4", "bool", "float64"])
def test_weights_of_every_size_are_read(tmp_path, dtype):
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    weight = (np.arange(8192) % 7).astype(kind).reshape(64, 128)
    path = tmp_path / "model.onnx"
    onnx.save(model_of(w=weight), path)
    _, found = files.read_file(path)
    assert found["w"].dtype == kind
    np.testing.assert_array_equal(found["w"].astype(np.float32), weight.astype(np.float32))
