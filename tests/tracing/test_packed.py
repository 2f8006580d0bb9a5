"""Operands that are packed once: the bits of plans without, memory of its own, and when it is made anew."""

import gc
import json
import pickle
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from aclnn.graph import Schedule
from schemas import validated

import aclnn
from aclnn.compiler import packing

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)


def array(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def layer(x, w, bias, v):
    return aclnn.gelu(x @ w + bias) @ v


@aclnn.compile(packed=("w", "v"))
def packed_layer(x, w, bias, v):
    return layer(x, w, bias, v)


plain_layer = aclnn.compile(layer)
for compiled in (packed_layer, plain_layer):
    compiled.expect_many()


def operands(rows=5, dtype=np.float32):
    shapes = ((rows, 300), (300, 70), (70,), (70, 40))
    return [array(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]


def same(found, wanted):
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_bits_of_plans_that_pack_nothing(dtype):
    for rows in (1, 3, 4, 17, 130):
        given = operands(rows, dtype)
        same(packed_layer(*given), plain_layer(*given))
        given[1] = np.ascontiguousarray(given[1].T).T
        same(packed_layer(*given), plain_layer(*given))


def test_the_plan_shows_packed_memory_as_its_own():
    ex = packed_layer.executor(*operands())
    assert [(one.name, one.operand, one.readers) for one in ex.plan.packed] == [
        ("w packed", "w", ("matmul",)), ("v packed", "v", ("matmul_2",)),
    ]  # fmt: skip
    assert ex.plan.packed_bytes == sum(one.nbytes for one in ex.plan.packed)
    assert ex.plan.packed_bytes >= 4 * (300 * 70 + 70 * 40)
    assert ex.plan.size == plain_layer.executor(*operands()).plan.size
    words = f"outside the workspace {ex.plan.packed_bytes} bytes"
    assert words in str(ex.plan)
    assert "w packed" in str(ex.plan)
    assert words in ex.plan.to_svg()
    validated(ex.plan.to_json(), "plan")
    assert json.loads(ex.plan.to_json())["packed"][0]["readers"] == ["matmul"]
    assert type(ex.plan).from_json(ex.plan.to_json()) == ex.plan
    assert ex.schedule.arguments[-2:] == ("w packed", "v packed")
    assert Schedule.from_json(ex.schedule.to_json()) == ex.schedule


def test_plans_without_buffers_show_it_too():
    @aclnn.compile(packed="w")
    def product(x, w):
        return x @ w

    ex = product.executor(array(1, 16), array(16, 48))
    assert "w packed" in str(ex.plan)
    assert "packed once" in ex.plan.to_svg()


def test_arrays_that_take_the_place_of_others_are_packed_anew():
    x, w, bias, v = operands()
    others = [w * scale for scale in range(2, 2 + 2 * packing.MOST_KEPT)]
    for _ in range(2):
        for other in (w, *others):
            same(packed_layer(x, other, bias, v), plain_layer(x, other, bias, v))


def test_executors_pack_what_they_are_given_or_bound_to():
    x, w, bias, v = operands()
    ex = packed_layer.executor(x, w, bias, v)
    before = ex.run().copy()
    w *= 2
    same(ex.run(), before)  # which was promised not to change
    ex.rebind({"w": w})
    same(ex.run(), plain_layer(x, w, bias, v))
    w *= 2
    same(ex.run(x, w), plain_layer(x, w, bias, v))


def test_clearing_the_cache_forgets_what_was_packed():
    x, w, bias, v = operands()
    packed_layer(x, w, bias, v)
    w *= 2
    packed_layer.clear_cache()
    same(packed_layer(x, w, bias, v), plain_layer(x, w, bias, v))


def test_arrays_are_held_as_long_as_their_packed_form_is_kept():
    @aclnn.compile(packed="w")
    def product(x, w):
        return x @ w

    x = array(2, 30)
    w = array(30, 50).view(_Watched)
    gone = weakref.ref(w)
    product(x, w)
    del w
    gc.collect()
    assert gone() is not None  # or another array might get its address
    product.clear_cache()
    gc.collect()
    assert gone() is None


class _Watched(np.ndarray):
    pass


def test_what_a_function_reaches_beside_its_arguments():
    weights = {"first": array(20, 40), "second": [array(40, 10, seed=1)]}

    @aclnn.compile(packed=True)
    def network(x):
        return aclnn.relu(x @ weights["first"]) @ weights["second"][0]

    @aclnn.compile(packed="weights_first")
    def half(x):
        return aclnn.relu(x @ weights["first"]) @ weights["second"][0]

    x = array(6, 20)
    for _ in range(2):
        wanted = aclnn.matmul(aclnn.relu(aclnn.matmul(x, weights["first"])), weights["second"][0])
        same(network(x), wanted)
        same(half(x), wanted)
        weights["first"] = weights["first"] * 2
    assert [one.operand for one in network.executor(x).plan.packed] == [
        "weights_first", "weights_second_0",
    ]  # fmt: skip
    assert [one.operand for one in half.executor(x).plan.packed] == ["weights_first"]


def test_one_operand_of_two_products_is_packed_once():
    @aclnn.compile(packed="w")
    def twice(x, y, w):
        return aclnn.add(x @ w, y @ w)

    ex = twice.executor(array(3, 40), array(7, 1, 40), array(40, 60))
    (one,) = ex.plan.packed
    assert len(one.readers) == 2


def test_operands_that_no_product_packs_are_read_as_they_are():
    @aclnn.compile(packed=("a", "scale"))
    def product(a, b, scale):
        return (a @ b) * scale

    given = array(64, 32), array(32, 64), array(64)
    ex = product.executor(*given)
    assert ex.plan.packed == ()
    same(ex.run(), aclnn.mul(aclnn.matmul(given[0], given[1]), given[2]))


def test_outputs_that_overlap_an_operand():
    @aclnn.compile(packed="w")
    def product(x, w):
        return x @ w

    x, w = array(40, 40), array(40, 40)
    wanted = aclnn.matmul(x, w)
    same(product(x, w, out=x), wanted)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        ("z", "no argument and no array that the function reaches"),
        ("weight", "did you mean"),
        (3, "must be True, False or names"),
        ([1], "must be True, False or names"),
        ("cache", "which is written in place"),
    ],
)
def test_bad_names_are_refused(packed, message):
    def product(x, weights, cache):
        cache[:] = 0
        return x @ weights

    with pytest.raises(aclnn.AclnnError, match=message):
        aclnn.compile(product, packed=packed)(array(2, 3), array(3, 4), array(4))


def test_executors_and_functions_pickle():
    given = operands()
    ex = pickle.loads(pickle.dumps(packed_layer.executor(*given)))
    assert len(ex.plan.packed) == 2
    same(ex(*given), plain_layer(*given))
    again = pickle.loads(pickle.dumps(packed_layer))
    same(again(*given), plain_layer(*given))


def test_threads_with_operands_of_their_own():
    x, w, bias, v = operands(20)
    weights = [w * scale for scale in range(1, 5)]
    wanted = [plain_layer(x, one, bias, v) for one in weights]
    packed_layer.clear_cache()
    wrong = []

    def work(first):
        for turn in range(40):
            place = (first + turn) % len(weights)
            if packed_layer(x, weights[place], bias, v).tobytes() != wanted[place].tobytes():
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x, w, bias, v = (torch.from_numpy(one) for one in operands())
    wanted = plain_layer(x, w, bias, v)
    assert torch.equal(packed_layer(x, w, bias, v), wanted)
    w.data = w * 2
    assert torch.equal(packed_layer(x, w, bias, v), plain_layer(x, w, bias, v))


def test_models_of_onnx():
    onnx = pytest.importorskip("onnx")
    weight = onnx.numpy_helper.from_array(array(8, 40), "w")
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20]> f (float[n, 8] x, float[8, 40] w) => (float[n, 40] y)'
        " {y = MatMul (x, w)}"
    )
    proto.graph.initializer.append(weight)
    x = array(5, 8)
    model = aclnn.from_onnx(proto, packed=True)
    same(model(x), aclnn.from_onnx(proto)(x))
    assert len(model.executor(x).plan.packed) == 1
