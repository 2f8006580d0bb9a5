"""Tensors, scalars, device memory, streams, events: every status, and never a crash."""

import math
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn import aclDataType as T
from aclnn import constants, dtypes, errors

OK, NULLPTR, INVALID = 0, 161001, 161002
PARAM, HANDLE, DEVICE, TIMESTAMP = 107000, 107017, 107001, 107006


def create(dims=(2, 3), dtype=T.ACL_FLOAT, strides=None, offset=0, form=2, storage=None, data=None):
    return aclnn.aclCreateTensor(dims, dtype, strides, offset, form, storage or dims, data)


def message():
    found = aclnn.aclGetRecentErrMsg()
    assert found
    assert aclnn.aclGetRecentErrMsg() is None
    return found


# --- Tensors --------------------------------------------------------------------------------------


def test_getters():
    tensor = create((2, 3), T.ACL_BF16, (1, 2), 4, aclnn.ACL_FORMAT_NCHW, (20,))
    assert aclnn.aclGetViewShape(tensor) == ([2, 3], OK)
    assert aclnn.aclGetViewStrides(tensor) == ([1, 2], OK)
    assert aclnn.aclGetViewOffset(tensor) == (4, OK)
    assert aclnn.aclGetStorageShape(tensor) == ([20], OK)
    assert aclnn.aclGetDataType(tensor) == (T.ACL_BF16, OK)
    assert aclnn.aclGetFormat(tensor) == (aclnn.ACL_FORMAT_NCHW, OK)
    assert aclnn.aclGetRawTensorAddr(tensor) == (0, OK)
    x = np.zeros(20, np.uint16)
    assert aclnn.aclSetRawTensorAddr(tensor, x) == OK
    assert aclnn.aclGetRawTensorAddr(tensor) == (x.ctypes.data, OK)


@pytest.mark.parametrize(
    "getter",
    ["aclGetViewShape", "aclGetViewStrides", "aclGetViewOffset", "aclGetStorageShape",
     "aclGetDataType", "aclGetFormat", "aclGetRawTensorAddr"],
)  # fmt: skip
def test_getters_of_nothing(getter):
    gone = create()
    aclnn.aclDestroyTensor(gone)
    for tensor, status in ((None, NULLPTR), (gone, NULLPTR), ("x", INVALID)):
        assert getattr(aclnn, getter)(tensor)[-1] == status
        assert getter in message()


@pytest.mark.parametrize(
    ("change", "words"),
    [({"dims": (-1,)}, "viewDims[0] is -1"), ({"strides": (-1, 1)}, "stride[0] is -1"),
     ({"offset": -2}, "offset is -2"), ({"strides": (1,)}, "1 entries"),
     ({"strides": (4, 1), "storage": (2, 3)}, "reaches element 6"),
     ({"offset": 1, "storage": (2, 3)}, "reaches element 6"), ({"dtype": 99}, "dataType"),
     ({"dtype": 3.0}, "dataType"), ({"form": 1}, None), ({"form": 5}, "format"),
     ({"dims": None}, "viewDims is null"), ({"dims": "ab"}, "viewDims"), ({"dims": 3}, "viewDims"),
     ({"dims": (2**70,)}, "viewDims[0]"), ({"dims": (2**40, 2**40)}, "exceed"),
     ({"data": 12345}, "0x3039"), ({"data": "text"}, "tensorData"), ({"data": b"abc"}, "3 bytes"),
     ({"data": np.zeros(5, np.float32)}, "20 bytes"), ({"data": object()}, "object"),
     ({"data": np.zeros((2, 3), np.float32)[::-1]}, "negative"), ({"offset": 1.5}, "offset")],
)  # fmt: skip
def test_creation_refuses(change, words):
    tensor = create(**change)
    if words is None:
        assert tensor is not None
        return
    assert tensor is None
    assert words in message()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=4),
    st.integers(0, 9),
    st.integers(0, 40),
)
def test_a_view_must_lie_in_its_storage(axes, offset, room):
    dims, strides = [n for n, _ in axes], [s for _, s in axes]
    reached = {offset}
    for size, stride in axes:
        reached = {r + i * stride for r in reached for i in range(size)}
    fits = all(place < room for place in reached)
    assert (create(dims, T.ACL_INT8, strides, offset, 2, (room,)) is not None) == fits
    aclnn.aclGetRecentErrMsg()


def test_a_tensor_keeps_its_memory_alive():
    x = np.full(6, 3, np.float32)
    tensor, out = create((6,), data=x), np.zeros(6, np.float32)
    del x
    _, executor, _ = aclnn.aclnnLeakyReluGetWorkspaceSize(
        tensor, aclnn.aclCreateScalar(1, T.ACL_FLOAT), create((6,), data=out)
    )
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, 3)


def test_init_tensor_changes_all_or_nothing():
    tensor = create()
    assert aclnn.aclInitTensor(tensor, (9,), T.ACL_FLOAT, None, 0, 2, (4,), None) == INVALID
    assert aclnn.aclGetViewShape(tensor) == ([2, 3], OK)
    assert aclnn.aclInitTensor(tensor, (4,), T.ACL_DOUBLE, None, 0, 2, (4,), None) == OK
    assert aclnn.aclGetViewShape(tensor) == ([4], OK)
    assert aclnn.aclInitTensor(None, (4,), T.ACL_DOUBLE, None, 0, 2, (4,), None) == NULLPTR


def test_destroying():
    for kind, destroy in (
        (create(), aclnn.aclDestroyTensor),
        (aclnn.aclCreateScalar(1, T.ACL_INT8), aclnn.aclDestroyScalar),
    ):
        assert destroy(None) == OK
        assert destroy(kind) == OK
        assert destroy(kind) == NULLPTR
        assert destroy("x") == INVALID


# --- Scalars --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "stored"),
    [(0.01, T.ACL_FLOAT16, float(np.float16(0.01))), (0.1, T.ACL_FLOAT, float(np.float32(0.1))),
     (0.1, T.ACL_DOUBLE, 0.1), (1 + 2**-8 + 2**-40, T.ACL_BF16, 1 + 2**-7), (-3.7, T.ACL_INT8, -3),
     (True, T.ACL_BOOL, True), (2, T.ACL_BOOL, True), (2**63, T.ACL_UINT64, 2**63),
     (1e300, T.ACL_FLOAT16, math.inf), (1j, T.ACL_COMPLEX64, 1j), (5, T.ACL_BF16, 5.0)],
)  # fmt: skip
def test_scalars_are_stored_in_their_dtype(value, dtype, stored):
    assert aclnn.aclCreateScalar(value, dtype).value == stored


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, T.ACL_STRING), (1, T.ACL_DT_UNDEFINED), (1, T.ACL_INT4), (1, 99), (None, T.ACL_FLOAT),
     ("x", T.ACL_FLOAT), (300, T.ACL_INT8), (-1, T.ACL_UINT8), (1j, T.ACL_FLOAT),
     (math.nan, T.ACL_INT8), (math.inf, T.ACL_INT64), ([], T.ACL_FLOAT)],
)  # fmt: skip
def test_scalars_that_cannot_be(value, dtype):
    assert aclnn.aclCreateScalar(value, dtype) is None
    assert "aclCreateScalar" in message()


def test_large_integers_become_the_nearest_float32():
    scalar = aclnn.aclCreateScalar(2**53 + 2**29 + 1, T.ACL_INT64)
    assert scalar.as_float == float(2**53 + 2**30)


# --- Types ----------------------------------------------------------------------------------------

RANK = {"bool": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4}


def expected_promotion(a, b):
    """Section by section of the rules, written another way: NumPy's answer where it agrees."""
    if a == b:
        return a
    large = {"uint16", "uint32", "uint64"}
    if {a, b} & large:
        return None
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        return other if other in ("float32", "float64", "complex64", "complex128") else "bfloat16"
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    if "c" in kinds:
        wide = {"complex128", "float64"} & {a, b}
        return "complex128" if wide else "complex64"
    if "f" in kinds and kinds != {"f"}:
        return a if np.dtype(a).kind == "f" else b
    return str(np.promote_types(a, b))


NAMED = dtypes.NAMES


@pytest.mark.parametrize("a", NAMED)
@pytest.mark.parametrize("b", NAMED)
def test_promotion(a, b):
    found = dtypes.promote(dtypes.of_name(a), dtypes.of_name(b))
    assert (dtypes.name(found) if found is not None else None) == expected_promotion(a, b)


@pytest.mark.parametrize("a", NAMED)
@pytest.mark.parametrize("b", NAMED)
def test_casts(a, b):
    kinds = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    kind = [kinds["f" if n == "bfloat16" else np.dtype(n).kind] for n in (a, b)]
    allowed = (b != "bool" or a == "bool") and kind[1] >= (kind[0] if kind[0] > 1 else 0)
    assert dtypes.can_cast(dtypes.of_name(a), dtypes.of_name(b)) == allowed


def test_every_constant_is_a_name_and_a_member():
    for kind in constants.ENUMERATIONS:
        for member in kind:
            assert getattr(aclnn, member.name) is member
    assert (aclnn.ACL_BF16, aclnn.ACL_FORMAT_NCL, aclnn.ACLNN_ERR_INNER_NULLPTR) == (27, 47, 561103)


@pytest.mark.parametrize("status", [*constants.aclnnStatus, *constants.aclError])
def test_every_status_is_explained(status):
    text = aclnn.explain(status)
    assert status.name in text
    assert str(int(status)) in text
    assert len(text.splitlines()) == 3


def test_messages_are_per_thread():
    errors.set_message("mine")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(aclnn.aclGetRecentErrMsg()))
    thread.start()
    thread.join()
    assert seen == [None]
    assert aclnn.aclGetRecentErrMsg() == "mine"


@pytest.mark.parametrize(
    ("name", "family"),
    [("Ascend910B3", "Ascend910B"), ("ASCEND950", "Ascend950"), ("Ascend910_9391", "Ascend910_93"),
     ("Ascend310P3", "Ascend310P"), ("Ascend310B1", "Ascend310B"), ("Ascend910A", "Ascend910")],
)  # fmt: skip
def test_products(name, family):
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(name)
    assert aclnn.get_soc_version() == family == aclnn.aclrtGetSocName()
    aclnn.set_soc_version(before)


@pytest.mark.parametrize("name", ["", "Ascend", "Ascend911", None, 3, "Ascend910C"])
def test_unknown_products(name):
    with pytest.raises(aclnn.AclnnError, match="Ascend910B"):
        aclnn.set_soc_version(name)


# --- Memory ---------------------------------------------------------------------------------------


@pytest.fixture
def block():
    address, status = aclnn.aclrtMalloc(256, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    assert status == OK
    yield address
    aclnn.aclrtFree(address)
    aclnn.aclGetRecentErrMsg()


def test_copies_there_and_back_with_arithmetic(block):
    x, y = np.arange(16, dtype=np.float32), np.zeros(8, np.float32)
    assert aclnn.aclrtMemcpy(block + 64, 192, x, 64, aclnn.ACL_MEMCPY_HOST_TO_DEVICE) == OK
    assert aclnn.aclrtMemcpy(block, 64, block + 64, 64, aclnn.ACL_MEMCPY_DEVICE_TO_DEVICE) == OK
    assert aclnn.aclrtMemcpy(y, 32, block + 16, 32, aclnn.ACL_MEMCPY_DEVICE_TO_HOST) == OK
    np.testing.assert_array_equal(y, np.arange(4, 12))
    z = bytearray(4)
    assert aclnn.aclrtMemcpy(z, 4, b"abcd", 4, aclnn.ACL_MEMCPY_HOST_TO_HOST) == OK
    assert z == b"abcd"


@pytest.mark.parametrize(
    "call",
    [lambda b: aclnn.aclrtMemcpy(b, 10, np.zeros(9), 11, 1), lambda b: aclnn.aclrtMemcpy(b, 999, bytes(999), 999, 1),
     lambda b: aclnn.aclrtMemcpy(b, 64, bytes(3), 4, 1), lambda b: aclnn.aclrtMemcpy(b, 64, bytes(64), 64, 9),
     lambda b: aclnn.aclrtMemcpy(b - 1, 1, bytes(1), 1, 1), lambda b: aclnn.aclrtMemcpy(None, 1, bytes(1), 1, 0),
     lambda b: aclnn.aclrtMemcpy(bytes(8), 8, b, 8, 2), lambda b: aclnn.aclrtMemcpy(bytearray(8), 8, b, 8, 3),
     lambda b: aclnn.aclrtMemset(b, 256, 1, 257), lambda b: aclnn.aclrtMemset(b, 256, 999, 1),
     lambda b: aclnn.aclrtMemset(b + 255, 256, 0, 2), lambda b: aclnn.aclrtMemset("x", 1, 0, 1),
     lambda b: aclnn.aclrtFree(b + 1), lambda b: aclnn.aclrtFree(None), lambda b: aclnn.aclrtFree("x"),
     lambda b: aclnn.aclrtMalloc(0, 0)[1], lambda b: aclnn.aclrtMalloc(-1, 0)[1],
     lambda b: aclnn.aclrtMalloc("x", 0)[1], lambda b: aclnn.aclrtMalloc(8, 7)[1],
     lambda b: aclnn.aclrtGetMemInfo(99)[2],
     lambda b: aclnn.aclrtMemcpyAsync(b, 1, bytes(2), 2, 1, None)],
)  # fmt: skip
def test_memory_functions_refuse(block, call):
    assert call(block) == PARAM
    assert message()


def test_freed_memory_is_gone(block):
    assert aclnn.aclrtFree(block) == OK
    assert aclnn.aclrtFree(block) == PARAM
    assert aclnn.aclrtMemset(block, 1, 0, 1) == PARAM
    assert create((1,), data=block) is None


def test_too_much_memory():
    assert aclnn.aclrtMalloc(2**60, 0) == (0, 207001)
    assert message()


# --- Streams --------------------------------------------------------------------------------------


def test_streams_are_side_by_side_and_in_order():
    from aclnn import stream as streams

    first, second = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateStream()[0]
    gate, order, threads = threading.Event(), [], set()

    def job(name, wait=False):
        def work():
            if wait:
                assert gate.wait(10)
            order.append(name)
            threads.add(threading.get_ident())
            return 0

        return work

    for item in (job("a1", wait=True), job("a2")):
        assert streams.submit(first, item) == OK
    assert streams.submit(second, job("b")) == OK
    assert aclnn.aclrtSynchronizeStream(second) == OK
    assert order == ["b"]
    gate.set()
    assert aclnn.aclrtSynchronizeDevice() == OK
    assert order == ["b", "a1", "a2"]
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_failures_surface_once_at_the_next_synchronize():
    from aclnn import stream as streams

    stream, _ = aclnn.aclrtCreateStream()
    streams.submit(stream, lambda: (561000, "this went wrong"))
    streams.submit(stream, lambda: 1 / 0)
    assert aclnn.aclrtSynchronizeStream(stream) == 361001
    assert message() == "this went wrong"
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    assert aclnn.aclrtDestroyStream(stream) == OK


def test_events():
    one, two = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateStream()[0]
    start, end = aclnn.aclrtCreateEvent()[0], aclnn.aclrtCreateEvent()[0]
    assert aclnn.aclrtEventElapsedTime(start, end)[1] == TIMESTAMP
    from aclnn import stream as streams

    gate, order = threading.Event(), []
    streams.submit(one, lambda: gate.wait(10) and 0)
    assert aclnn.aclrtRecordEvent(start, one) == OK
    assert aclnn.aclrtStreamWaitEvent(two, start) == OK
    streams.submit(two, lambda: order.append("after") or 0)
    assert order == []
    assert aclnn.aclrtEventElapsedTime(start, start)[1] == TIMESTAMP
    gate.set()
    assert aclnn.aclrtRecordEvent(end, two) == OK
    assert aclnn.aclrtSynchronizeEvent(end) == OK
    assert order == ["after"]
    elapsed, status = aclnn.aclrtEventElapsedTime(start, end)
    assert status == OK
    assert elapsed >= 0
    assert aclnn.aclrtDestroyEvent(start) == OK
    assert aclnn.aclrtDestroyEvent(start) == HANDLE
    assert aclnn.aclrtRecordEvent(end, None) == OK
    assert aclnn.aclrtSynchronizeEvent(end) == OK


def test_handles_are_checked():
    stream, event = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateEvent()[0]
    aclnn.aclrtDestroyStream(stream)
    for call in (
        lambda: aclnn.aclrtDestroyStream(stream), lambda: aclnn.aclrtDestroyStream("x"),
        lambda: aclnn.aclrtSynchronizeStream(stream), lambda: aclnn.aclrtSynchronizeStream("x"),
        lambda: aclnn.aclrtRecordEvent(None, None), lambda: aclnn.aclrtRecordEvent(event, stream),
        lambda: aclnn.aclrtStreamWaitEvent(stream, event), lambda: aclnn.aclrtSynchronizeEvent(3),
        lambda: aclnn.aclrtEventElapsedTime(None, event)[1], lambda: aclnn.aclrtDestroyEvent(3),
        lambda: aclnn.aclrtMemcpyAsync(bytearray(1), 1, b"a", 1, 0, stream),
    ):  # fmt: skip
        assert call() == HANDLE
        found = message()
        assert found.startswith("aclrt"), found  # it names the function


def test_destroying_null_succeeds():
    for destroy in (
        aclnn.aclDestroyTensor, aclnn.aclDestroyScalar, aclnn.aclrtDestroyStream,
        aclnn.aclrtDestroyEvent,
    ):  # fmt: skip
        assert destroy(None) == OK


def test_the_device_and_the_life_of_the_runtime():
    assert aclnn.aclrtGetDeviceCount() == (1, OK)
    assert aclnn.aclrtSetDevice(0) == OK
    assert aclnn.aclrtSetDevice(1) == DEVICE
    assert aclnn.aclrtSetDevice("0") == DEVICE
    assert aclnn.aclrtGetDevice() == (0, OK)
    assert aclnn.aclrtResetDevice(0) == OK
    assert aclnn.aclFinalize() == 100001
    assert aclnn.aclInit() == OK
    assert aclnn.aclInit() == 100002
    assert aclnn.aclFinalize() == OK
    assert aclnn.aclFinalize() == 100037
    assert aclnn.aclnnInit(None) == OK
    assert aclnn.aclnnFinalize() == OK


def test_async_copies():
    stream, _ = aclnn.aclrtCreateStream()
    x, y = np.arange(1000.0), np.zeros(1000)
    assert aclnn.aclrtMemcpyAsync(y, 8000, x, 8000, 0, stream) == OK
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    np.testing.assert_array_equal(x, y)


JUNK = [None, 0, -1, 2**80, 3.5, math.nan, "x", b"", (), [1], {}, object(), np.zeros(2), True]
FUNCTIONS = [
    n for n in dir(aclnn)
    if n.startswith("acl") and callable(getattr(aclnn, n)) and not isinstance(getattr(aclnn, n), type)
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_junk_gives_statuses_and_never_crashes(name):
    rng = np.random.default_rng(8)
    function = getattr(aclnn, name)
    if name in ("aclFinalize", "aclInit"):
        return
    for _ in range(60):
        for count in range(8):
            arguments = [JUNK[i] for i in rng.integers(0, len(JUNK), count)]
            try:
                function(*arguments)
            except TypeError as error:
                assert "argument" in str(error)
    aclnn.aclGetRecentErrMsg()


# --- Other kinds of arrays ------------------------------------------------------------------------


def test_dlpack_round_trip_of_bfloat16():
    from aclnn._dlpack import from_dlpack, to_dlpack

    x = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)[:, ::2]
    y = from_dlpack(to_dlpack(x))
    assert y.dtype == x.dtype
    assert y.strides == x.strides
    assert y.ctypes.data == x.ctypes.data
    capsule = to_dlpack(x).__dlpack__()
    del capsule
    with pytest.raises(BufferError):
        to_dlpack(np.array(["a"])).__dlpack__()


def test_pytorch_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.linspace(-3, 3, 24).reshape(4, 6).to(dtype).T
        g = torch.ones(6, 4, dtype=dtype)
        y = aclnn.gelu_backward(g, x)
        assert isinstance(y, torch.Tensor)
        assert (y.dtype, y.shape) == (dtype, x.shape)
        assert torch.allclose(
            y.float(), torch.ops.aten.gelu_backward(g.float(), x.float()), atol=2e-2
        )
        out = torch.zeros(4, 6, dtype=dtype).T
        assert aclnn.gelu_backward(g, x, out=out) is out
        assert torch.equal(out, y)
        z = x.clone()
        assert aclnn.leaky_relu_(z, 0.5) is z
        assert torch.equal(z, aclnn.leaky_relu(x, 0.5))
    with pytest.raises(aclnn.AclnnError, match="self"):
        aclnn.gelu(torch.ones(3, requires_grad=True))
    ex = aclnn.executor("gelu", torch.ones(3, dtype=torch.bfloat16))
    assert ex.run().dtype == torch.bfloat16
    out = torch.zeros(3, dtype=torch.bfloat16)
    assert ex.run(out=out) is out
    assert torch.equal(out, aclnn.gelu(torch.ones(3, dtype=torch.bfloat16)))


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def test_objects_with_an_array_interface():
    x = np.array([-2.0, 4.0], np.float32)
    np.testing.assert_array_equal(aclnn.leaky_relu(Interface(x), 0.5), [-1, 4])
    assert create((2,), data=Interface(x)) is not None


@pytest.mark.parametrize("junk", [[1.0], 3.0, "x", None, object()])
def test_what_is_no_array_is_refused(junk):
    with pytest.raises(aclnn.AclnnError, match="self") as caught:
        aclnn.gelu(junk)
    assert caught.value.status == INVALID


def test_swapped_and_misaligned_arrays():
    x = np.array([-2.0, 4.0, -6.0], np.float32)
    np.testing.assert_array_equal(aclnn.leaky_relu(x.astype(">f4"), 0.5), [-1, 4, -3])
    raw = np.zeros(13, np.uint8)[1:].view(np.float32)
    raw[:] = x
    np.testing.assert_array_equal(aclnn.leaky_relu(raw, 0.5), [-1, 4, -3])
    swapped = np.zeros(3, ">f4")
    assert aclnn.leaky_relu(x, 0.5, out=swapped) is swapped
    np.testing.assert_array_equal(swapped, [-1, 4, -3])
    fields = np.zeros(3, [("a", "u1"), ("x", "f4")])
    fields["x"] = x
    np.testing.assert_array_equal(aclnn.leaky_relu(fields["x"], 0.5), [-1, 4, -3])


def test_functional_errors_carry_status_and_message():
    x = np.ones(3, np.float32)
    cases = [
        lambda: aclnn.gelu_backward(x, np.ones(4, np.float32)),
        lambda: aclnn.gelu_backward(x, x, out=np.ones(3, np.float16)),
        lambda: aclnn.gelu_backward(x, x, approximate="erf"),
        lambda: aclnn.elu_backward(x, x, alpha=-1.0, is_result=True),
        lambda: aclnn.leaky_relu(x, "steep"),
        lambda: aclnn.leaky_relu(np.ones(3, np.int32)),
        lambda: aclnn.leaky_relu(np.ones((1,) * 9, np.float32)),
        lambda: aclnn.leaky_relu(np.array(["a"])),
        lambda: aclnn.leaky_relu(x, out=np.broadcast_to(np.zeros(1, np.float32), 3)),
        lambda: aclnn.leaky_relu(x, out=np.float32(1)),
        lambda: aclnn.executor("gelu_backwards", x, x),
        lambda: aclnn.executor("gelu_backward", x),
        lambda: aclnn.executor("gelu_backward", x, x, slope=1),
        lambda: aclnn.executor("gelu", x, strategy="best"),
        lambda: aclnn.set_num_threads(0),
    ]
    for case in cases:
        with pytest.raises(aclnn.AclnnError) as caught:
            case()
        assert caught.value.status == INVALID
        assert str(caught.value)


# --- Executors by name ----------------------------------------------------------------------------


def test_executors_rebind_by_name():
    rng = np.random.default_rng(9)
    g, x = rng.standard_normal((2, 50)).astype(np.float32)
    with aclnn.executor("gelu_backward", g, x) as ex:
        first = ex.run()
        np.testing.assert_array_equal(first, aclnn.gelu_backward(g, x))
        other, out = rng.standard_normal(50).astype(np.float32), np.zeros(50, np.float32)
        assert ex.run(self=other, out=out) is out
        np.testing.assert_array_equal(out, aclnn.gelu_backward(g, other))
        for bad in ({"x": x}, {"self": x[:3]}, {"self": x.astype(np.float16)}, {"self": x[::-1]}):
            with pytest.raises(aclnn.AclnnError):
                ex.run(**bad)
        np.testing.assert_array_equal(ex.run(), out)
        ex.run(self=out)  # in place from now on
        np.testing.assert_array_equal(out, aclnn.gelu_backward(g, aclnn.gelu_backward(g, other)))
    with pytest.raises(aclnn.AclnnError):
        ex.run()


def test_plans_are_cached_by_description_and_not_by_scalars():
    aclnn.clear_cache()
    x = np.ones(77, np.float32)
    out = np.empty_like(x)
    for slope in (0.1, 0.2, 0.3):
        aclnn.leaky_relu(x, slope, out=out)
        np.testing.assert_array_equal(aclnn.leaky_relu(-x, slope), -np.float32(slope))
    info = aclnn.cache_info()
    assert info["misses"] == 2
    assert info["hits"] == 4


def test_the_cache_is_bounded_and_can_be_switched_off():
    from aclnn import _plan

    limit = aclnn.cache_info()["limit"]
    try:
        _plan.configure(cache_limit=16)
        for size in range(1, 60):
            aclnn.gelu(np.zeros(size, np.float32))
        assert aclnn.cache_info()["size"] <= 16
        _plan.configure(cache_limit=0)
        aclnn.gelu(np.zeros(3, np.float32))
        assert aclnn.cache_info()["size"] == 0
    finally:
        _plan.configure(cache_limit=limit)
