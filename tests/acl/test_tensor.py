"""Scalars against exact fractions; tensors: what they say, hold and refuse. Statuses, never a crash."""

import ctypes
import gc
import itertools
import math
import mmap
import pickle
import weakref
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from setups import Hostile, message

import aclnn
from aclnn import aclDataType as T

OK, NULLPTR, INVALID = 0, 161001, 161002


def create(dims=(2, 3), dtype=T.ACL_FLOAT, strides=None, offset=0, form=2, storage=None, data=None):
    return aclnn.aclCreateTensor(dims, dtype, strides, offset, form, storage or dims, data)


# significant bits, smallest exponent of a subnormal, largest finite value
FORMATS = {
    T.ACL_FLOAT16: (11, -24, 65504),
    T.ACL_BF16: (8, -133, (2 - Fraction(1, 128)) * 2**127),
    T.ACL_FLOAT: (24, -149, (2 - Fraction(1, 2**23)) * 2**127),
    T.ACL_DOUBLE: (53, -1074, (2 - Fraction(1, 2**52)) * 2**1023),
}
INTEGERS = [T.ACL_INT8, T.ACL_INT16, T.ACL_INT32, T.ACL_INT64,
            T.ACL_UINT8, T.ACL_UINT16, T.ACL_UINT32, T.ACL_UINT64]  # fmt: skip


def rounded(value, dtype):
    """`value` rounded once, ties to even, by its definition and in exact arithmetic."""
    bits, lowest, largest = FORMATS[dtype]
    exact = abs(Fraction(value))
    if exact == 0:
        return 0.0
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > exact:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits + 1, lowest)
    nearest = round(exact / unit) * unit  # Python rounds ties to even
    size = math.inf if nearest > largest else float(nearest)
    return -size if value < 0 else size


# Numbers on, and next to, the ties of the narrow formats.
near_ties = st.builds(
    lambda whole, half, off, low, sign: sign * ((2 * whole + half) * 2**low + off),
    st.integers(128, 2**25), st.integers(0, 1), st.integers(-1, 1), st.integers(0, 1010),
    st.sampled_from([-1, 1]),
)  # fmt: skip
floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(
    st.integers(), floats, near_ties,
    st.builds(math.ldexp, st.floats(1, 2), st.integers(-150, 130)),
    st.builds(lambda w, e, t: math.ldexp(w + math.ldexp(t, -30), e), st.integers(128, 4096),
              st.integers(-160, 100), st.sampled_from([-1, 0, 1])),
)  # fmt: skip


@pytest.mark.parametrize("dtype", FORMATS)
@settings(deadline=None, max_examples=300)
@given(value=numbers)
@example(value=2**60 + 2**52 + 1)  # a tie of bfloat16 and a bit that no double holds
@example(value=2**128 - 2**103)  # the tie between float32's largest and infinity
@example(value=2**128 - 2**103 - 1)
@example(value=10**40)
@example(value=-(10**400))
@example(value=65519.999999999996)
@example(value=1 + 2**-8 + 2**-40)
@example(value=5e-324)
def test_scalars_are_rounded_once(dtype, value):
    stored = aclnn.aclCreateScalar(value, dtype).value
    assert stored == rounded(value, dtype)
    if isinstance(value, float):
        assert math.copysign(1, stored) == math.copysign(1, value)


@settings(deadline=None, max_examples=300)
@given(st.integers(-(2**63), 2**64 - 1))
@example(2**63 + 2**39 + 1)
@example(2**60 + 2**36 + 1)
@example(2**53 + 2**29 + 1)
def test_as_float_is_the_nearest_float32_of_every_integer(value):
    for dtype, holds in ((T.ACL_INT64, value < 2**63), (T.ACL_UINT64, value >= 0)):
        if holds:
            scalar = aclnn.aclCreateScalar(value, dtype)
            assert scalar.as_float == rounded(value, T.ACL_FLOAT)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_hold_their_range_and_no_more(dtype):
    info = np.iinfo(aclnn.acl.dtypes.name(dtype))
    for value in (info.min, info.max, 0, info.max - 0.0 if info.bits < 64 else 7.9):
        assert aclnn.aclCreateScalar(value, dtype).value == int(value)
    for value in (info.min - 1, info.max + 1, math.nan, math.inf, -math.inf, 10**5000):
        assert aclnn.aclCreateScalar(value, dtype) is None
        assert aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize("dtype", FORMATS)
def test_special_values_of_scalars(dtype):
    assert math.isnan(aclnn.aclCreateScalar(math.nan, dtype).value)
    for value in (math.inf, -math.inf):
        assert aclnn.aclCreateScalar(value, dtype).value == value
    assert math.copysign(1, aclnn.aclCreateScalar(-0.0, dtype).value) == -1
    for kind in (np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64):
        assert aclnn.aclCreateScalar(kind(3), dtype).value == 3
    for value in (True, np.True_):
        assert aclnn.aclCreateScalar(value, dtype).value == 1


@pytest.mark.parametrize("value", [0.1, 1e300, 10**40, 10**400, 0.1 + 1e-30j, 2**53 + 2**29 + 1])
def test_complex_scalars(value):
    wide = value if isinstance(value, complex) else complex(rounded(value, T.ACL_DOUBLE))
    assert aclnn.aclCreateScalar(value, T.ACL_COMPLEX128).value == wide
    real = value.real if isinstance(value, complex) else value
    narrow = aclnn.aclCreateScalar(value, T.ACL_COMPLEX64).value
    assert (narrow.real, narrow.imag) == (
        rounded(real, T.ACL_FLOAT), rounded(wide.imag, T.ACL_FLOAT))  # fmt: skip


@pytest.mark.parametrize(
    ("value", "dtype", "stored"),
    [(0.01, T.ACL_FLOAT16, float(np.float16(0.01))), (0.1, T.ACL_FLOAT, float(np.float32(0.1))),
     (0.1, T.ACL_DOUBLE, 0.1), (1 + 2**-8 + 2**-40, T.ACL_BF16, 1 + 2**-7), (-3.7, T.ACL_INT8, -3),
     (True, T.ACL_BOOL, True), (2, T.ACL_BOOL, True), (2**63, T.ACL_UINT64, 2**63),
     (Fraction(1, 3), T.ACL_FLOAT, float(np.float32(1 / 3))), (Fraction(7, 2), T.ACL_INT8, 3),
     (1 + Fraction(1, 2**24) + Fraction(1, 2**90), T.ACL_FLOAT, 1 + 2**-23),
     (Decimal("0.1"), T.ACL_DOUBLE, 0.1), (Decimal("1e400"), T.ACL_FLOAT, math.inf),
     (1e300, T.ACL_FLOAT16, math.inf), (1j, T.ACL_COMPLEX64, 1j), (5, T.ACL_BF16, 5.0)],
)  # fmt: skip
def test_scalars_are_stored_in_their_dtype(value, dtype, stored):
    assert aclnn.aclCreateScalar(value, dtype).value == stored


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, T.ACL_STRING), (1, T.ACL_DT_UNDEFINED), (1, T.ACL_INT4), (1, 99), (None, T.ACL_FLOAT),
     ("x", T.ACL_FLOAT), (300, T.ACL_INT8), (-1, T.ACL_UINT8), (1j, T.ACL_FLOAT),
     (np.ma.masked, T.ACL_FLOAT), (Decimal("Infinity"), T.ACL_INT8),
     (math.nan, T.ACL_INT8), (math.inf, T.ACL_INT64), ([], T.ACL_FLOAT)],
)  # fmt: skip
def test_scalars_that_cannot_be(value, dtype):
    assert aclnn.aclCreateScalar(value, dtype) is None
    assert "aclCreateScalar" in message()


# --- Tensors --------------------------------------------------------------------------------------


JUNK = [None, -1, 2**80, 10**5000, 3.5, math.nan, "x", b"abc", (), [1], [10**5000], {}, object(),
        Hostile(), [Hostile()], np.zeros(2), True, 1j, (None,), "float32", np.array(3), [[1]],
        range(10**6), np.array([None])]  # fmt: skip
GOOD = ((2, 3), T.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (6,), None)


def only_says_no(call):
    """A call that may succeed or refuse, with a message, and nothing else."""
    aclnn.aclGetRecentErrMsg()
    result = call()
    refused = result is None or result in (NULLPTR, INVALID)
    assert refused or isinstance(result, aclnn.aclTensor | aclnn.aclScalar) or result == OK
    said = aclnn.aclGetRecentErrMsg()
    assert bool(said) == refused
    assert said is None or len(said) < 16_100


@pytest.mark.parametrize("position", range(7))
def test_junk_in_each_place(position):
    for junk in JUNK:
        arguments = [*GOOD[:position], junk, *GOOD[position + 1 :]]
        only_says_no(lambda arguments=arguments: aclnn.aclCreateTensor(*arguments))
        tensor = aclnn.aclCreateTensor(*GOOD)
        only_says_no(lambda t=tensor, arguments=arguments: aclnn.aclInitTensor(t, *arguments))


def test_junk_in_two_places():
    for (i, first), (j, second) in itertools.product(
        itertools.product(range(7), JUNK[:20]), itertools.product((0, 2, 6), JUNK[:20])
    ):
        arguments = list(GOOD)
        arguments[i], arguments[j] = first, second
        only_says_no(lambda arguments=arguments: aclnn.aclCreateTensor(*arguments))


@pytest.mark.parametrize("dtype", [*T, 99, "x", None, Hostile()])
def test_junk_scalars(dtype):
    for junk in JUNK:
        only_says_no(lambda junk=junk: aclnn.aclCreateScalar(junk, dtype))


@pytest.mark.parametrize("junk", [j for j in JUNK if j is not None], ids=lambda j: type(j).__name__)
def test_junk_instead_of_objects(junk):
    others = ("aclGetRecentErrMsg", "aclGetDeviceCapability")
    getters = [n for n in dir(aclnn) if n.startswith("aclGet") and n not in others]
    assert len(getters) == 12
    for getter in getters:
        assert getattr(aclnn, getter)(junk)[-1] == INVALID
    assert aclnn.aclDestroyTensor(junk) == INVALID
    assert aclnn.aclDestroyScalar(junk) == INVALID
    assert aclnn.aclSetRawTensorAddr(junk, None) == INVALID


@pytest.mark.parametrize(
    "data",
    [
        np.array([None] * 6),
        memoryview(np.array([None] * 6)),
        np.zeros(6, [("a", "O"), ("b", "f4")]),
    ],
    ids=["array", "view", "record"],
)
def test_memory_of_python_objects_is_no_storage(data):
    assert aclnn.aclCreateTensor(*GOOD[:-1], data) is None
    assert "Python objects" in aclnn.aclGetRecentErrMsg()


def test_setting_memory_changes_all_or_nothing():
    first, small = np.zeros(6, np.float32), np.zeros(5, np.float32)
    tensor = aclnn.aclCreateTensor(*GOOD[:-1], first)
    for bad in (small, 123, "x", Hostile(), np.zeros(6, np.float32)[::-1]):
        assert aclnn.aclSetRawTensorAddr(tensor, bad) == INVALID
        assert aclnn.aclGetRawTensorAddr(tensor) == (first.ctypes.data, OK)
    assert aclnn.aclSetRawTensorAddr(tensor, None) == OK
    assert aclnn.aclGetRawTensorAddr(tensor) == (0, OK)
    aclnn.aclGetRecentErrMsg()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=4),
    st.integers(0, 9),
    st.integers(0, 90),
    st.sampled_from([T.ACL_INT8, T.ACL_BF16, T.ACL_FLOAT, T.ACL_COMPLEX128]),
)
def test_memory_must_reach_as_far_as_the_view(axes, offset, nbytes, dtype):
    dims, strides = [n for n, _ in axes], [s for _, s in axes]
    places = [offset + sum(i * s for i, s in zip(index, strides, strict=True))
              for index in itertools.product(*map(range, dims))]  # fmt: skip
    fits = all((place + 1) * aclnn.acl.dtypes.item_size(dtype) <= nbytes for place in places)
    tensor = aclnn.aclCreateTensor(dims, dtype, strides, offset, 2, (10**6,), bytearray(nbytes))
    assert (tensor is not None) == fits
    aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize(
    ("dims", "strides", "offset", "dtype", "nbytes"),
    [
        ((3, 5), None, 0, T.ACL_INT4, 8),
        ((3, 5), None, 1, T.ACL_INT4, 8),
        ((3, 5), None, 2, T.ACL_INT4, 9),
        ((4, 6), (1, 4), 0, T.ACL_INT4, 12),
        ((2, 4), (16, 1), 0, T.ACL_FLOAT4_E2M1, 10),
        ((9,), None, 0, T.ACL_UINT1, 2),
        ((0, 5), None, 3, T.ACL_INT4, 0),
    ],
)
def test_elements_share_bytes(dims, strides, offset, dtype, nbytes):
    if nbytes:
        memory = np.zeros(nbytes - 1, np.uint8)
        assert create(dims, dtype, strides, offset, storage=(1000,), data=memory) is None
        message = aclnn.aclGetRecentErrMsg()
        assert f"has {nbytes - 1} bytes" in message
        assert f"reaches {nbytes} bytes" in message
    memory = np.arange(nbytes, dtype=np.uint8)
    made = create(dims, dtype, strides, offset, storage=(1000,), data=memory)
    assert made.bytes_needed() == nbytes
    again = pickle.loads(pickle.dumps(made))
    assert (again.dims(), again.steps(), again.offset) == (made.dims(), made.steps(), offset)
    assert again.bytes_needed() == nbytes


def test_every_format_and_dtype_can_be_described():
    for dtype, form in itertools.product(T, aclnn.aclFormat):
        tensor = aclnn.aclCreateTensor((2,), dtype, (3,), 1, form, (9,), None)
        assert aclnn.aclGetDataType(tensor) == (dtype, OK)
        assert aclnn.aclGetFormat(tensor) == (form, OK)
        assert aclnn.aclGetViewStrides(tensor) == ([3], OK)


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
     ({"dtype": 3.0}, "dataType"), ({"dtype": np.float32(0)}, "dataType"),
     ({"dtype": Decimal(0)}, "dataType"), ({"dtype": np.False_}, "dataType"), ({"form": 0j}, "format"),
     ({"form": 1}, None), ({"form": 5}, "format"),
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


def test_arrays_that_lie_are_read_by_their_own_header():
    class Liar(np.ndarray):
        shape, strides, size, itemsize, nbytes = (1 << 20,), (4,), 1 << 20, 4, 4 << 20
        flags, ctypes, dtype = None, None, np.dtype(np.int8)

    x = np.arange(6, dtype=np.float32)
    liar = x.view(Liar)
    assert create((1 << 20,), data=liar) is None
    assert f"has {x.nbytes} bytes" in message()
    assert aclnn.aclGetRawTensorAddr(create((6,), data=liar))[0] == x.ctypes.data
    target = np.zeros(6, np.float32)
    assert aclnn.aclrtMemcpy(target, 4 << 20, liar, 4 << 20, 0) == 107000
    assert aclnn.aclrtMemcpy(target, 24, liar, 24, 0) == OK
    np.testing.assert_array_equal(target, x)
    np.testing.assert_array_equal(aclnn.gelu(liar), aclnn.gelu(x))


def test_what_only_claims_to_be_an_array_is_none():
    class Claim:
        __class__ = np.ndarray
        dtype = np.dtype(np.float32)
        shape, strides, size, itemsize = (6,), (4,), 6, 4
        ctypes = flags = type("Any", (), {"data": 4096, "writeable": True})

        def __array__(self, dtype=None, copy=None):
            return np.zeros(6, np.float32)

    assert create((6,), data=Claim()) is None
    assert "must be None, a buffer" in message()


def test_a_workspace_is_as_large_as_its_own_header_says():
    class Liar(np.ndarray):
        size = nbytes = 1 << 20
        shape, strides = (1 << 20,), (1,)

    storage = np.arange(101, dtype=np.float32)
    x, out = (create((100,), storage=(101,), offset=k, data=storage) for k in (0, 1))
    slope = aclnn.aclCreateScalar(0.5, T.ACL_FLOAT)
    size, executor, _ = aclnn.aclnnLeakyReluGetWorkspaceSize(x, slope, out)
    assert size >= 400
    short = np.zeros(8, np.uint8).view(Liar)
    assert aclnn.aclnnLeakyRelu(short, size, executor, None) == INVALID
    assert "workspace has 8 bytes" in message()


def test_a_tensor_keeps_its_memory_alive():
    class Watched(np.ndarray):
        pass

    x = np.zeros(6, np.float32).view(Watched)
    seen, made = weakref.ref(x), create((6,), data=x)
    del x
    gc.collect()
    assert seen() is not None
    assert aclnn.aclDestroyTensor(made) == OK
    gc.collect()
    assert seen() is None


def test_destroying_lets_go_of_the_memory():
    memory = mmap.mmap(-1, 4096)
    made = create(data=memory)
    with pytest.raises(BufferError):
        memory.close()
    assert aclnn.aclDestroyTensor(made) == OK
    memory.close()
    assert aclnn.aclGetRawTensorAddr(made) == (0, NULLPTR)


@pytest.mark.parametrize(
    "fail",
    [
        lambda: create((9,), storage=(6,)),
        lambda: aclnn.aclCreateScalar("1", T.ACL_FLOAT),
        lambda: aclnn.aclInitTensor(create(), (9,), 0, None, 0, 2, (6,), None),
    ],
)
def test_explain_tells_of_the_last_failure(fail):
    aclnn.aclnnGeluGetWorkspaceSize(None, None)
    assert "aclnnGelu" in aclnn.explain()
    fail()
    assert "aclnnGelu" not in aclnn.explain()
    assert "161002" in aclnn.explain()


def test_names_of_fields_are_no_references():
    class Named(ctypes.Structure):
        _fields_ = (("Offset", ctypes.c_float * 6),)

    data = Named()
    assert create(data=data) is not None
    kept = aclnn.aclnnGeluGetWorkspaceSize(create(data=data), create(data=data))
    assert kept[2] == OK


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


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def test_objects_with_an_array_interface_are_storage():
    assert create((2,), data=Interface(np.array([-2.0, 4.0], np.float32))) is not None


VIEWS = {
    "dense": lambda a: a, "transposed": lambda a: a.T, "gaps": lambda a: a[1::2, 1::3],
    "broadcast": lambda a: np.broadcast_to(a[0], (4, 6)), "a column": lambda a: a[:, 1:2],
    "empty": lambda a: a[:0], "a number": lambda a: a[0, 0:1].reshape(()), "axes": lambda a: a[None, :, None],
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_arrays_become_tensors_that_share_their_memory(view):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    seen = VIEWS[view](base)
    tensor = aclnn.tensor(seen)
    assert aclnn.aclGetViewShape(tensor) == (list(seen.shape), 0)
    assert aclnn.aclGetDataType(tensor) == (aclnn.ACL_FLOAT, 0)
    out = np.full(seen.shape, np.nan, np.float32)
    size, executor, status = aclnn.aclnnNegGetWorkspaceSize(tensor, aclnn.tensor(out))
    assert status == 0, aclnn.aclGetRecentErrMsg()
    base += 1
    assert aclnn.aclnnNeg(None, size, executor, None) == 0
    np.testing.assert_array_equal(out, -seen)


def test_tensors_of_arrays_are_written():
    base = np.zeros((4, 6), np.float32)
    target = aclnn.tensor(base[1::2, 1::3])
    one = aclnn.tensor([[1.0, 2.0], [3.0, 4.0]])
    size, executor, status = aclnn.aclnnNegGetWorkspaceSize(one, target)
    assert status == 0, aclnn.aclGetRecentErrMsg()
    assert aclnn.aclnnNeg(None, size, executor, None) == 0
    np.testing.assert_array_equal(base[1::2, 1::3], [[-1, -2], [-3, -4]])
    assert base.sum() == -10
    frozen = aclnn.tensor(np.broadcast_to(np.float32(1), (2, 2)))
    assert aclnn.aclnnNegGetWorkspaceSize(one, frozen)[2] == aclnn.ACLNN_ERR_PARAM_INVALID


@pytest.mark.parametrize(
    ("given", "words"),
    [(None, "array is None, must be an array"), ("x", "array is 'x', must be an array"),
     (np.zeros(3, ">f4"), "array has dtype >f4, which no tensor has"),
     (np.zeros(3, object), "array has dtype object, which no tensor has"),
     (np.zeros(3, [("a", "u1"), ("x", "f4")])["x"], r"array has strides \(5,\), no multiples of 4")],
)  # fmt: skip
def test_what_makes_no_tensor_is_refused(given, words):
    with pytest.raises(TypeError, match=words):
        aclnn.tensor(given)
    with pytest.raises(aclnn.AclnnError, match=r"not to be negative; use np.ascontiguousarray"):
        aclnn.tensor(np.zeros(3, np.float32)[::-1])
    with pytest.raises(aclnn.AclnnError, match="format is 12345"):
        aclnn.tensor(np.zeros(3, np.float32), 12345)
