"""Pointwise steps on results of products: bitwise what calls give one by one, and which are taken."""

import ml_dtypes
import numpy as np
from aclnn.graph.passes.results import unfold_results
from aclnn.graph.result_steps import steps_of
from aclnn.graph.verify.graph import check
from aclnn.graph.views.text import kind_words
from cases import each

import aclnn

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
# Rows, terms and columns: few rows, one panel, several pieces of terms, several groups of columns, few columns.
SHAPES = ((1, 300, 500), (4, 40, 30), (70, 300, 200), (15, 600, 1100), (300, 40, 3), (20, 8, 3000))


def biased(x, w, bias, residual, row):
    return aclnn.add(aclnn.gelu(aclnn.add(aclnn.matmul(x, w), bias)), residual)


def scaled(x, w, bias, residual, row):
    return aclnn.mul(aclnn.leaky_relu(aclnn.mul(aclnn.matmul(x, w), 0.125), 0.1), residual)


def added(x, w, bias, residual, row):
    return aclnn.relu(aclnn.addmm(bias, x, w, alpha=0.5, beta=2.0))


def by_column(x, w, bias, residual, row):
    return aclnn.mul(aclnn.sub(aclnn.matmul(x, w), row), row)


def twice(x, w, bias, residual, row):
    made = aclnn.matmul(x, w)
    return aclnn.mul(made, made)


def as_float32(x, w, bias, residual, row):
    return aclnn.cast(aclnn.silu(aclnn.matmul(x, w)), aclnn.ACL_FLOAT)


FUNCTIONS = (biased, scaled, added, by_column, twice, as_float32)


def operands(rng, shape, dtype):
    m, k, n = shape
    sizes = ((m, k), (k, n), (n,), (m, n), (m, 1))
    return [rng.standard_normal(size).astype(dtype) for size in sizes]


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


@each("function", FUNCTIONS)
def test_steps_give_the_bits_of_separate_calls(function):
    rng = np.random.default_rng(1)
    for dtype in DTYPES:
        for shape in SHAPES:
            given = operands(rng, shape, dtype)
            given[0][0, 0] = np.inf  # and NaNs where it meets one of the other sign
            compiled = aclnn.compile(function)
            assert len(compiled.executor(*given).graph.nodes) == 1
            wanted = bits(function(*given))
            np.testing.assert_array_equal(bits(compiled(*given)), wanted)
            turned = [one.T.copy().T if one.ndim > 1 else one for one in given]
            np.testing.assert_array_equal(bits(compiled(*turned)), wanted)
            out = np.zeros(compiled(*given).shape[::-1], compiled(*given).dtype).T
            np.testing.assert_array_equal(bits(compiled(*given, out=out)), wanted)


def chain(draw, dtype):
    """A function of random steps on a product, and how many nodes they are."""
    names = {np.float32: aclnn.ACL_FLOAT, np.float16: aclnn.ACL_FLOAT16, DTYPES[2]: aclnn.ACL_BF16}
    steps = {
        "bias": lambda y, bias, residual, row: aclnn.add(y, bias),
        "residual": lambda y, bias, residual, row: aclnn.add(residual, y),
        "row": lambda y, bias, residual, row: aclnn.mul(y, row),
        "scale": lambda y, bias, residual, row: aclnn.mul(y, 0.375),
        "gelu": lambda y, bias, residual, row: aclnn.gelu(y),
        "tanh": lambda y, bias, residual, row: aclnn.tanh(y),
        "silu": lambda y, bias, residual, row: aclnn.silu(y),
        "clamp": lambda y, bias, residual, row: aclnn.clamp(y, -1.5, 2.0),
        "square": lambda y, bias, residual, row: aclnn.mul(y, y),
        "abs": lambda y, bias, residual, row: aclnn.abs(y),
        "halve": lambda y, bias, residual, row: aclnn.cast(y, names[dtype]),
    }
    chosen = [steps[name] for name in draw.choice(list(steps), draw.integers(1, 6))]

    def function(x, w, *others):
        made = aclnn.matmul(x, w)
        for step in chosen:
            made = step(made, *others)
        return made

    return function


def test_random_chains_have_the_bits_of_separate_calls():
    draw = np.random.default_rng(5)
    for _ in range(60):
        dtype, mixed = draw.choice(3), draw.choice(3)
        shape = (draw.choice([1, 3, 17, 60]), draw.choice([1, 50, 300]), draw.choice([1, 20, 300]))
        given = operands(draw, shape, DTYPES[dtype])
        given[2:] = [one.astype(DTYPES[mixed]) for one in given[2:]]
        function = chain(draw, DTYPES[draw.choice(3)])
        compiled = aclnn.compile(function)
        assert len(compiled.executor(*given).graph.nodes) == 1
        wanted = function(*given)
        np.testing.assert_array_equal(bits(compiled(*given)), bits(wanted))


def test_threads_batches_and_rows_do_not_change_bits():
    rng = np.random.default_rng(2)
    for dtype in DTYPES:
        x = rng.standard_normal((6, 50, 300)).astype(dtype)
        w, bias = (
            rng.standard_normal((300, 400)).astype(dtype),
            rng.standard_normal(400).astype(dtype),
        )
        layer = aclnn.compile(lambda x, w, b: aclnn.gelu(aclnn.matmul(x, w) + b))
        whole = layer(x, w, bias)
        for threads in (1, 2, 5):
            with aclnn.num_threads(threads):
                np.testing.assert_array_equal(bits(layer(x, w, bias)), bits(whole))
        np.testing.assert_array_equal(bits(layer(x[3, 7:9], w, bias)), bits(whole[3, 7:9]))


def nodes_of(function, *arrays):
    return [
        (node.name, len(steps_of(node)))
        for node in aclnn.compile(function).executor(*arrays).graph.nodes
    ]


def test_what_is_taken():
    x, w = np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)
    assert nodes_of(lambda x, w: aclnn.relu(aclnn.matmul(x, w)), x, w) == [("matmul", 1)]

    def read_twice(x, w):
        made = aclnn.matmul(x, w)
        return aclnn.relu(made), aclnn.softmax(made, -1)

    assert all(steps == 0 for _, steps in nodes_of(read_twice, x, w))
    other_shape = nodes_of(lambda x, w: aclnn.relu(aclnn.matmul(x, w).reshape(4, 16)), x, w)
    assert dict(other_shape)["matmul"] == 0
    whole = nodes_of(lambda x, w: aclnn.cast(aclnn.matmul(x, w), aclnn.ACL_INT32), x, w)
    assert dict(whole)["matmul"] == 0

    def many(x, w):
        made = aclnn.matmul(x, w)
        for _ in range(12):
            made = aclnn.relu(made * 0.5)
        return made

    (first, steps), *rest = nodes_of(many, x, w)
    assert (first, steps) == ("matmul", 8)
    assert len(rest) == 16
    np.testing.assert_array_equal(aclnn.compile(many)(x, w), many(x, w))


VIEWS = (
    lambda made: made.T,
    lambda made: made[::-1],
    lambda made: made[:, ::-1],
    lambda made: made[:1],
    lambda made: made[:, 2:3],
)


@each("view", VIEWS)
@each("begin", [lambda made: made, lambda made: aclnn.relu(made)])
def test_a_view_of_the_result_beside_it_makes_no_step(view, begin):
    x, w = np.random.default_rng(4).standard_normal((2, 6, 6)).astype(np.float32)

    def function(x, w):
        made = begin(aclnn.matmul(x, w))
        return aclnn.add(made, view(made), alpha=0.5)

    executor = aclnn.compile(function).executor(x, w)
    for _, graph, _ in executor.passes:
        check(graph)
    np.testing.assert_array_equal(executor.run(), function(x, w))


def test_an_output_over_an_operand_is_no_step():
    rng = np.random.default_rng(3)
    x, w, residual = (rng.standard_normal((40, 40)).astype(np.float32) for _ in range(3))
    layer = aclnn.compile(lambda x, w, r: aclnn.matmul(x, w) + r)
    wanted = aclnn.matmul(x, w) + residual
    np.testing.assert_array_equal(layer(x, w, residual, out=residual), wanted)
    y = x.copy()
    np.testing.assert_array_equal(layer(y, w, y, out=y), aclnn.matmul(x, w) + x)


def test_views_show_steps_and_unfolding_gives_them_back():
    x, w = np.ones((8, 8), np.float16), np.ones((8, 8), np.float16)
    bias = np.ones(8, np.float16)
    layer = aclnn.compile(lambda x, w, b: aclnn.leaky_relu(aclnn.matmul(x, w) + b, 0.25))
    executor = layer.executor(x, w, bias)
    assert kind_words(executor.graph.nodes[0]) == "Compute, opaque, then add, leaky_relu"
    assert "leaky_relu: becomes part of matmul" in executor.passes.to_text()
    graph = unfold_results(executor.graph)
    check(graph)
    built = [node for node in executor.graph_as_built.nodes if node.kind == "Compute"]
    assert [node.attr("kernel") for node in graph.nodes] == [node.attr("kernel") for node in built]
    assert [node.attr("params") or () for node in graph.nodes] == [
        node.attr("params") or () for node in built
    ]
    from aclnn.graph import Graph

    assert Graph.from_json(executor.graph.to_json()) == executor.graph
