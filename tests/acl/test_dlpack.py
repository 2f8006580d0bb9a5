"""DLPack both ways: no copies, nothing freed twice or never, and no capsule that crashes."""

import ctypes
import gc
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn.acl._dlpack import DLPackExporter, from_dlpack, to_dlpack

NAMES = ["float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
         "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]  # fmt: skip
VERSIONS = [None, (1, 0), (1, 3)]


class Capsule:
    """Hands out one capsule, made elsewhere."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule


class OldExporter:
    """Knows no `max_version`, as libraries from before DLPack 1.0."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return to_dlpack(self.array).__dlpack__()


def array_of(name):
    dtype = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    return np.arange(24).astype(dtype).reshape(4, 6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", VERSIONS)
def test_memory_is_shared_with_dtype_shape_and_strides(name, version):
    for x in (array_of(name), array_of(name)[::-1, 1::2].T, array_of(name)[:, None, :0]):
        y = from_dlpack(Capsule(to_dlpack(x).__dlpack__(max_version=version)))
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        assert y.flags.writeable
        if x.size:
            assert (y.strides, y.ctypes.data) == (x.strides, x.ctypes.data)
            y[...] = 1
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "bfloat16"])
def test_numpy_and_we_read_each_other(name):
    x = array_of(name)[:, ::2]
    for y in (np.from_dlpack(to_dlpack(x)), from_dlpack(x)):
        assert y.ctypes.data == x.ctypes.data
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16", "int64", "bool"])
def test_pytorch_and_we_read_each_other(name):
    torch = pytest.importorskip("torch")
    x = array_of(name)
    t = torch.from_dlpack(to_dlpack(x))
    assert t.data_ptr() == x.ctypes.data
    assert str(t.dtype) == f"torch.{name}"
    back = from_dlpack(t.T)
    assert (back.dtype, back.strides) == (x.dtype, x.T.strides)
    np.testing.assert_array_equal(back, x.T)
    assert from_dlpack(torch.empty((3, 0), dtype=t.dtype)).shape == (3, 0)


def test_exporters_from_before_version_1():
    x = np.arange(5.0)
    assert from_dlpack(OldExporter(x)).ctypes.data == x.ctypes.data


def test_another_interface_serves_where_dlpack_fails():
    class Both:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__

        def __dlpack__(self, **options):
            raise BufferError("not now")

    x = np.arange(5.0, dtype=np.float32)
    np.testing.assert_array_equal(aclnn.leaky_relu(Both(x), 0.5), x)
    assert aclnn.aclCreateTensor((5,), aclnn.ACL_FLOAT, None, 0, 2, (5,), Both(x)) is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_an_array_lives_as_long_as_what_was_made_of_it(version):
    class Watched(np.ndarray):
        pass

    x = np.arange(6.0).view(Watched)
    gone = weakref.ref(x)
    capsule = to_dlpack(x).__dlpack__(max_version=version)
    y = from_dlpack(Capsule(capsule))[2:]
    del x, capsule
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(y, [2, 3, 4, 5])
    del y
    assert gone() is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_capsule_nobody_takes_gives_its_array_back(version):
    x = np.arange(6.0)
    before = sys.getrefcount(x)
    capsule = to_dlpack(x).__dlpack__(max_version=version)
    assert sys.getrefcount(x) == before + 1
    del capsule
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_capsule_is_taken_once(version):
    capsule = to_dlpack(np.arange(6.0)).__dlpack__(max_version=version)
    _ = from_dlpack(Capsule(capsule))
    with pytest.raises(BufferError, match="unused"):
        from_dlpack(Capsule(capsule))


def test_read_only_arrays_stay_read_only():
    x = np.arange(3.0)
    x.flags.writeable = False
    assert not from_dlpack(to_dlpack(x)).flags.writeable
    with pytest.raises(BufferError, match="readonly"):
        to_dlpack(x).__dlpack__()


def test_copies_on_request():
    x = np.arange(3.0)
    y = from_dlpack(Capsule(to_dlpack(x).__dlpack__(copy=True)))
    assert y.ctypes.data != x.ctypes.data
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "array",
    [np.array(["a"]), np.array([object()]), np.zeros(2, ">f4"), np.zeros(2, "M8[s]"),
     np.zeros(2, [("a", "u1"), ("b", "f4")])["b"], np.zeros(2, np.longdouble)],
)  # fmt: skip
@pytest.mark.parametrize("version", VERSIONS)
def test_what_dlpack_cannot_describe_is_refused(array, version):
    with pytest.raises(BufferError):
        to_dlpack(array).__dlpack__(max_version=version)


def test_bytes_may_be_of_any_dtype():
    torch = pytest.importorskip("torch")
    given = torch.arange(16, dtype=torch.uint8).view(torch.float8_e4m3fn)
    with pytest.raises(BufferError, match="has no NumPy counterpart"):
        from_dlpack(given)
    tensor = aclnn.aclCreateTensor((4,), aclnn.ACL_FLOAT, None, 0, 2, (4,), given)
    assert aclnn.aclGetRawTensorAddr(tensor) == (given.data_ptr(), 0)
    target = bytearray(16)
    assert aclnn.aclrtMemcpy(target, 16, given, 16, aclnn.ACL_MEMCPY_HOST_TO_HOST) == 0
    assert target == bytes(range(16))


def test_other_devices_and_streams_are_refused():
    x = to_dlpack(np.zeros(2))
    assert x.__dlpack_device__() == (1, 0)
    for wish in ({"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises((BufferError, ValueError)):  # the latter from NumPy 2.1
            x.__dlpack__(**wish)


@pytest.mark.parametrize("junk", [None, 3, [1.0], "x"])
def test_only_arrays_are_exported(junk):
    for make in (to_dlpack, DLPackExporter):
        with pytest.raises(TypeError):
            make(junk)


# --- Capsules that nobody should make -------------------------------------------------------------


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    )  # fmt: skip


def handmade(**changes):
    """A capsule of four float32 in two rows, with changes, and what must outlive it."""
    numbers = (ctypes.c_float * 4)(1, 2, 3, 4)
    shape = (ctypes.c_int64 * 2)(2, 2)
    tensor = Tensor(ctypes.addressof(numbers), 1, 0, 2, 2, 32, 1, shape)
    for name, value in changes.items():
        setattr(tensor, name, value)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(tensor), b"dltensor", None), (tensor, numbers, shape)


def test_no_strides_mean_row_major_and_no_deleter_is_fine():
    capsule, _keep = handmade()
    np.testing.assert_array_equal(from_dlpack(Capsule(capsule)), [[1, 2], [3, 4]])
    capsule, _keep = handmade(byte_offset=8, shape=(ctypes.c_int64 * 2)(1, 2))
    np.testing.assert_array_equal(from_dlpack(Capsule(capsule)), [[3, 4]])


@pytest.mark.parametrize(
    "changes",
    [{"device_type": 2}, {"code": 9}, {"bits": 12}, {"lanes": 4}, {"ndim": -1}, {"ndim": 65},
     {"shape": None}, {"data": None}, {"shape": (ctypes.c_int64 * 2)(-1, 2)},
     {"shape": (ctypes.c_int64 * 2)(2**62, 2**62)}],
    ids=lambda changes: next(iter(changes)),  # no addresses: each process has its own
)  # fmt: skip
def test_bad_capsules_are_refused_and_stay_unused(changes):
    capsule, _keep = handmade(**changes)
    with pytest.raises((BufferError, ValueError)):
        from_dlpack(Capsule(capsule))
    assert '"dltensor"' in repr(capsule)


@pytest.mark.parametrize("junk", [None, 3, "dltensor", object()])
def test_what_is_no_capsule_is_refused(junk):
    with pytest.raises(BufferError):
        from_dlpack(Capsule(junk))
