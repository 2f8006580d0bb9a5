"""Memory of traced arrays: writes through views, arguments without elements, numbers by their bits."""

import ctypes
import os
import pickle
import struct

import numpy as np
import pytest
from aclnn.graph import Graph, check
from cases import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from setups import examples

import aclnn


def number(bits):
    return struct.unpack("d", struct.pack("Q", bits))[0]


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    kind = f"u{found.dtype.itemsize}"
    found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected)
    np.testing.assert_array_equal(found.view(kind), expected.view(kind))


# --- Numbers --------------------------------------------------------------------------------------

NANS = [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + (7 << 40), (0xFFF8 << 48) + (5 << 40)]


@each("dtype", [np.float32, np.float64])
def test_numbers_are_one_only_if_their_bits_are(dtype):
    x = np.array([-1, 0.0, -0.0, 2], dtype)
    pairs = [(0.0, -0.0), *[(number(a), number(b)) for a in NANS for b in NANS]]
    forms = [aclnn.div, aclnn.add, lambda x, n: aclnn.fill_(x * 1, n), None]
    forms[-1] = lambda x, n: aclnn.constant_pad_nd(x, (1, 1), n)
    for first, second in pairs:
        for form in forms:
            f = aclnn.compile(lambda x, a=first, b=second, form=form: (form(x, a), form(x, b)))
            for found, n in zip(f(x), (first, second), strict=True):
                same(found, form(x, n))


def test_descriptions_are_one_only_if_their_bits_are():
    x = np.array([1, -1], np.float32)
    f = aclnn.compile(lambda x, n: aclnn.div(x, float(n)))
    for zero in (np.float32(0.0), np.float32(-0.0), np.float64(-0.0), np.float64(0.0)):
        same(f(x, zero), aclnn.div(x, float(zero)))
    nan = np.float32("nan")
    before = f.cache_info()["size"]
    f(x, nan)
    f(x, np.float32("nan"))
    assert f.cache_info()["size"] == before + 1
    f(x, -nan)
    assert f.cache_info()["size"] == before + 2


def test_equal_numbers_are_still_one():
    plan = aclnn.compile(lambda x: aclnn.mul(aclnn.mul(x, -0.0), -0.0) + aclnn.mul(x, -0.0))
    executor = plan.executor(np.ones(4, np.float32))
    assert [node.name for node in executor.graph.nodes].count("muls") <= 2


# --- Views of what was written --------------------------------------------------------------------

LAYOUTS = {
    "dense": lambda x: x,
    "rows reversed": lambda x: x[::-1],
    "columns reversed": lambda x: x[:, ::-1],
    "both reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "transposed, reversed": lambda x: x.T[::-1],
    "every other column": lambda x: x[:, ::2],
    "every other row": lambda x: x[::2],
    "some columns": lambda x: x[:, :3],
    "some rows": lambda x: x[1:3],
}


def reshaped_flat(x):
    x[0, 0] = 50
    y = x.reshape(-1)
    y[1] = 70
    return y * 1, x * 1


def reshaped_before(x):
    y = x.reshape(-1)
    x[0, 0] = 50
    y[1] = 70
    return y * 1, x * 1


def raveled(x):
    x += 1
    y = x[1:].ravel()
    y[0] = 70
    return y * 1, x * 1


def reshaped_part(x):
    x[:, 0] = 50
    y = x[:, :2].reshape(2, -1)
    y[1, 1] = 70
    return y * 1, x.strides[0]


@each("layout", list(LAYOUTS))
def test_reshapes_are_views_where_numpys_are(layout):
    for function in (reshaped_flat, reshaped_before, raveled, reshaped_part):
        x, y = (LAYOUTS[layout](np.arange(24.0, dtype=np.float32).reshape(4, 6)) for _ in range(2))
        if x.size % 4 and function is reshaped_part:
            continue
        expected, found = function(x), aclnn.compile(function)(y)
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, wanted, function.__name__)
        np.testing.assert_array_equal(x, y, function.__name__)


def adds(x):
    x[0] += 1


def fills_a_view(x):
    y = x[1:]
    y[...] = 3


def relu_in_place(x):
    aclnn.relu_(x)


REPEATED = {
    "rows repeated": lambda: as_strided(np.zeros(3, np.float32), (2, 3), (0, 4)),
    "columns repeated": lambda: as_strided(np.zeros(3, np.float32), (3, 2), (4, 0)),
    "rows that overlap": lambda: as_strided(np.zeros(9, np.float32), (3, 3), (4, 4)),
}


@each("function", [adds, fills_a_view, relu_in_place])
def test_arguments_that_repeat_elements_are_not_written(function):
    for make in REPEATED.values():
        x = make()
        with pytest.raises(aclnn.AclnnError, match=r"share memory|repeat") as caught:
            aclnn.compile(function)(x)
        assert "test_traced_memory.py" in str(caught.value)
        same(aclnn.compile(lambda x: x + 1)(x), x + 1)


HOST = np.ones(6, np.float32)
TO_HOST = aclnn.ACL_MEMCPY_HOST_TO_HOST
ASKS = {
    "aclrtMemcpy into": lambda x: aclnn.aclrtMemcpy(x, 24, HOST, 24, TO_HOST),
    "aclrtMemcpy of": lambda x: aclnn.aclrtMemcpy(HOST, 24, x, 24, TO_HOST),
    "aclrtMemset": lambda x: aclnn.aclrtMemset(x, 24, 0, 24),
    "aclCreateTensor": lambda x: aclnn.aclCreateTensor(
        (6,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (6,), x
    ),
    "tensor": aclnn.tensor,
    "memoryview": memoryview,
    "from_buffer": ctypes.c_float.from_buffer,
    "frombuffer": np.frombuffer,
    "ndarray": lambda x: np.ndarray((2, 3), np.float32, x),
    "from_dlpack": np.from_dlpack,
    "readv": lambda x: os.readv(0, [x]),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_who_asks_for_memory_hears_of_it_and_of_the_line(ask):
    """Functions that give a status raise: what they do not write no run would write."""

    def function(x):
        ask(x)
        return x * 2

    with pytest.raises(aclnn.AclnnError, match=r"memory was requested(.|\n)*  in .*\.py:\d+: "):
        aclnn.compile(function)(np.ones((2, 3), np.float32))


def test_read_only_arguments_name_the_line():
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    with pytest.raises(aclnn.AclnnError, match="x is read-only") as caught:
        aclnn.compile(lambda x: x[1:].assign(2))(x)
    assert "test_traced_memory.py" in str(caught.value)


# --- No elements ----------------------------------------------------------------------------------


def writes_nothing(x, y):
    v = x[4:]
    v[...] = y
    return x * 2, v


def changes_nothing(x, y):
    aclnn.relu_(x[:, :0])
    aclnn.fill_(x[2:2], 4)
    return x + 1


def product_of_nothing(x, y):
    aclnn.abs_(y)
    return aclnn.matmul(y.T, y), aclnn.matmul(y, y.T), y + 1


def repeats_of_nothing(x, y):
    v = np.broadcast_to(x[:0, :1], (0, 3))
    return np.full_like(v, 3), v + 1, np.full_like(y, 2) * y


def sums_of_nothing(x, y):
    return y.sum(), y.sum(0), y.sum(1), aclnn.cat([x * 1, y * 1], 0), aclnn.softmax(y, -1)


@each("rows, columns", [(4, 3), (0, 3)])
def test_what_has_no_elements_is_as_in_single_calls(rows, columns):
    programs = [
        writes_nothing, changes_nothing, product_of_nothing, repeats_of_nothing, sums_of_nothing,
    ]  # fmt: skip
    for function in programs:
        x, y = -np.ones((rows, columns), np.float32), np.ones((0, columns), np.float32)
        z = x.copy()
        expected, found = function(x, y), aclnn.compile(function)(z, y.copy())
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = found if isinstance(found, tuple) else (found,)
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, wanted, function.__name__)
            assert one.shape == np.shape(wanted)
        same(z, x)


def cut(x, how):
    rows, columns = x.shape
    views = [x, x[:0], x[:, :0], x[rows:], x[::2], x.T, x[::-1], x[:, columns // 2 :], x.T[:0].T]
    return views[how % len(views)]


def step_of(name, values, first, second, how):
    x, y = cut(values[first % len(values)], how), cut(values[second % len(values)], how // 9)
    if name == "matmul":
        return aclnn.matmul(x, y.T) if x.shape[1] == y.shape[1] else aclnn.matmul(x, x.T)
    if name == "cat":
        axis = how % 2
        return aclnn.cat([x, y if x.shape[1 - axis] == y.shape[1 - axis] else x], axis)
    if name == "sum":
        return aclnn.sum(x, how % 2, True)
    if name == "softmax":
        return aclnn.softmax(x, how % 2)
    if name == "repeat":
        return aclnn.relu(
            np.broadcast_to(x[:1] if x.shape[0] else x, (how % 3 if x.shape[0] else 0, x.shape[1]))
        )
    if name == "pad":
        return aclnn.constant_pad_nd(x, (how % 2, 0, 0, how % 3), 2)
    if name == "reshape":
        return aclnn.silu(x).reshape(x.shape[::-1])
    if name == "half":
        return aclnn.cast(aclnn.cast(x, "float16"), "float32")
    return getattr(aclnn, name)(x) if y.shape != x.shape else aclnn.add(getattr(aclnn, name)(x), y)


def write_into(x, y, how):
    target = cut(x, how)
    if how % 3 == 0:
        aclnn.neg_(target)
    elif how % 3 == 1 or y.shape != target.shape:
        target[...] = 3
    else:
        target[...] = y


def small_program(steps, *arrays):
    values = list(arrays)
    for name, first, second, how in steps:
        if name == "write":
            write_into(values[first % len(values)], values[second % len(values)], how)
        else:
            values.append(step_of(name, values, first, second, how))
    return (values[-1] * 1, *values[-3:])


NAMES = [
    "matmul", "cat", "sum", "softmax", "repeat", "pad", "reshape", "half", "relu", "neg", "gelu", "write",
    "write",
]  # fmt: skip
PLACES = st.integers(0, 80)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), PLACES, PLACES, PLACES), min_size=1, max_size=8),
    *[st.sampled_from([0, 0, 1, 2, 3]) for _ in range(4)],
)
def test_programs_with_nothing_have_the_bits_of_their_calls(steps, a, b, c, d):
    rng = np.random.default_rng(a + 5 * b)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((a, b), (c, b), (a, d))]
    alone, whole = [x.copy() for x in arrays], [x.copy() for x in arrays]
    expected = [np.array(x) for x in small_program(steps, *alone)]
    found = aclnn.compile(lambda *arrays: small_program(steps, *arrays))(*whole)
    for one, wanted in zip(found, expected, strict=True):
        same(one, wanted)
    for one, wanted in zip(whole, alone, strict=True):
        same(one, wanted)


def test_graphs_of_nothing_can_be_looked_at():
    for function in (writes_nothing, changes_nothing, product_of_nothing, sums_of_nothing):
        given = -np.ones((4, 3), np.float32), np.ones((0, 3), np.float32)
        executor = aclnn.compile(function).executor(*given)
        assert check(executor.graph) is executor.graph
        assert Graph.from_json(executor.graph.to_json()) == executor.graph
        assert "digraph" in executor.graph.to_dot()
        assert "<svg" in executor.graph.to_svg()


def test_graphs_keep_the_bits_of_numbers():
    function = aclnn.compile(lambda x: (aclnn.div(x, -0.0), aclnn.div(x, 0.0)))
    graph = function.executor(np.ones(3, np.float32)).graph
    assert Graph.from_json(graph.to_json()) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert len({node.attrs for node in graph.nodes}) > 1


def test_products_read_what_a_split_gives_as_they_read_slices():
    """Copies that other calls make of parts are strides of products, whose bits stay."""

    def split(x):
        return aclnn.split_with_sizes(aclnn.rms_norm(x, (48,)), (16, 16, 16), 1)

    def sliced(x):
        y = aclnn.rms_norm(x, (48,))
        return y[:, :16], y[:, 16:32], y[:, 32:]

    def after(parts):
        q, k, v = parts
        return aclnn.bmm(q.reshape(6, 4, 4), aclnn.permute(k.reshape(6, 4, 4), (0, 2, 1))), v * 2

    x = np.random.default_rng(0).standard_normal((6, 48)).astype(np.float32)
    made = [aclnn.compile(lambda x, cut=cut: after(cut(x))).executor(x) for cut in (split, sliced)]
    steps = [[node.name for node in executor.graph.nodes] for executor in made]
    assert steps == [["rms_norm", "matmul", "muls"]] * 2
    assert made[0].plan.size == made[1].plan.size
    q, k, v = split(x)
    whole = np.ascontiguousarray(k.reshape(6, 4, 4).transpose(0, 2, 1))
    expected = aclnn.bmm(np.ascontiguousarray(q).reshape(6, 4, 4), whole), v * 2
    for executor in made:
        for one, other in zip(executor.run(), expected, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
