"""Executors as models in ONNX: they are valid, and ONNX Runtime gets what we get."""

import collections
import itertools

import ml_dtypes
import numpy as np
import pytest
import samples
from aclnn.graph import DType, Value
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from setups import examples

import aclnn
from aclnn.kernels import records
from aclnn.onnx.formulas import formula_for, formulas
from aclnn.onnx.layouts import axis_of_parts, moves_of, places_of_parts
from aclnn.operators import REGISTRY

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

# Kernels whose nodes `aclnn.onnx` writes by functions of its own, in place of bodies in their records.
WRITTEN_OUT = {"fill", "convolution", "window_maxima", "window_means"}


def lacks_operators(name):
    """Whether a kernel of an operator has no body in ONNX, and no function."""
    nodes = sample(name)[0].graph_as_built.nodes
    kernels = {node.attr("kernel") for node in nodes if node.kind == "Compute"}
    return bool(kernels - {*formulas()} - WRITTEN_OUT)


DOMAINS = {"": "standard", "aclnn": "function", "aclnn.graph": "own"}


def sample(name, dtype=np.float32, **changes):
    """An executor of a good call, and its inputs by their names."""
    given = samples.inputs(name, dtype) | samples.options(name) | changes
    named = {}
    for role in [role for role in REGISTRY[name].inputs if role in given]:
        if isinstance(given[role], list):
            named |= {f"{role}_{place}": one for place, one in enumerate(given[role])}
        else:
            named[role] = given[role]
    return aclnn.executor(name, **given), named


FORMS = [name for name in samples.FUNCTIONAL if name == REGISTRY[name].name]
# Nodes of the graph's own domain, which viewers show; the last two are windows that ONNX has no like of.
SHOWN_ONLY = [
    *[name for name in FORMS if lacks_operators(name)],
    *("max_pool2d_with_indices", "adaptive_avg_pool2d"),
]
OPERATORS = [name for name in FORMS if name not in SHOWN_ONLY]


def loaded(executor, as_built=False):
    content = executor.to_onnx(as_built)
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model)
    return model


def run(model, named):
    session = onnxruntime.InferenceSession(model.SerializeToString(), quiet())
    return session.run(None, {one.name: named[one.name] for one in session.get_inputs()})


def quiet():
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def results(executor):
    made = executor.run()
    every = made if isinstance(made, tuple) else (made,)
    return [one for one in every if one is not None and one.size]  # CANN has some that are empty


def agree(got, wanted, rtol=2e-5, atol=2e-6):
    assert len(got) == len(wanted)
    for one, right in zip(got, wanted, strict=True):
        assert one.dtype == right.dtype
        assert one.shape == right.shape
        np.testing.assert_allclose(
            one.astype(np.float64), right.astype(np.float64), rtol=rtol, atol=atol
        )


def kind_of(model):
    """Whether a model is made of the standard's operators, of functions too, or of others."""
    kinds = {DOMAINS[node.domain] for node in model.graph.node}
    return next(kind for kind in ("own", "function", "standard") if kind in kinds)


# --- Every operator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_built", [False, True])
@each("name", OPERATORS)
def test_onnx_runtime_agrees(name, as_built):
    executor, named = sample(name)
    model = loaded(executor, as_built)
    agree(run(model, named), results(executor))


@pytest.mark.parametrize("name", SHOWN_ONLY)
def test_what_onnx_lacks_is_shown(name):
    executor, named = sample(name)
    model = loaded(executor)
    assert kind_of(model) == "own"
    assert {one.name for one in model.graph.input} == {*named}


def test_most_operators_are_the_standards_own():
    found = collections.Counter(kind_of(loaded(sample(name)[0])) for name in OPERATORS)
    assert found["own"] == 0
    assert found["standard"] >= 80


@pytest.mark.parametrize(
    ("name", "options", "kinds"),
    [
        ("gelu", {}, ["Gelu"]),
        ("gelu", {"approximate": "tanh"}, ["Gelu"]),
        ("elu", {"alpha": 0.5}, ["Elu"]),
        ("elu", {"alpha": 0.5, "scale": 2.0}, ["elu_2"]),
        ("leaky_relu", {"negative_slope": 0.25}, ["LeakyRelu"]),
        ("hardswish", {}, ["HardSwish"]),
        ("softmax", {"dim": 0}, ["Softmax"]),
        ("matmul", {}, ["MatMul"]),
        ("addmm", {"alpha": 0.5}, ["Gemm"]),
        ("add", {}, ["Add"]),
        ("add", {"alpha": 2.0}, ["add_2"]),
        ("where", {}, ["Where"]),
        ("lt", {}, ["Less"]),
        ("layer_norm", {}, ["LayerNormalization"]),
        ("cat", {}, ["Concat"]),
        ("permute", {}, ["Transpose", "Identity"]),
        ("arg_max", {}, ["ArgMax"]),
        ("softplus", {}, ["Softplus"]),
        ("softplus", {"beta": 2.0}, ["softplus_2"]),
        ("silu", {}, ["silu"]),
        ("hardshrink", {}, ["Shrink"]),
    ],
)
def test_nodes_are_what_viewers_know(name, options, kinds):
    executor, named = sample(name, **options)
    model = loaded(executor)
    plain = [node.op_type for node in model.graph.node if node.op_type not in ("Reshape",)]
    assert plain == kinds
    agree(run(model, named), results(executor))


POINTWISE = [
    name
    for name in OPERATORS
    if REGISTRY[name].formula is not None
    and len(REGISTRY[name].inputs) < 3
    and all(samples.shape_of(name, role) == samples.SHAPE for role in REGISTRY[name].inputs)
    and not samples.UNLIKE.get(name, samples.NOTHING).dtypes
]
SPECIAL = np.float32(
    [np.nan, np.inf, -np.inf, 0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 100, -100, 3, -3, 1, -1, 0.5]
)


@pytest.mark.parametrize("name", POINTWISE)
def test_operators_of_the_standard_have_equal_semantics(name):
    roles = REGISTRY[name].inputs
    grids = np.meshgrid(*[SPECIAL] * len(roles))
    named = {role: grid.ravel() for role, grid in zip(roles, grids, strict=True)}
    executor, _ = sample(name, **named)
    model = loaded(executor)
    if kind_of(model) != "standard":
        pytest.skip("a function, which follows ONNX Runtime's exponential into the tails")
    with np.errstate(all="ignore"):
        (got,), (wanted,) = run(model, named), results(executor)
    if name == "hardswish":  # the standard has a NaN at minus infinity
        keep = named["input"] != -np.inf
        got, wanted = got[keep], wanted[keep]
    agree([got], [wanted], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "silu_backward", "softmax", "add", "layer_norm", "sum"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_are_computed_as_floats(name, dtype):
    executor, named = sample(name, dtype)
    model = loaded(executor)
    if dtype == np.float16:
        agree(run(model, named), results(executor), rtol=1e-3, atol=1e-3)
    assert "Cast" in {node.op_type for node in model.graph.node}


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("add", [np.int32([1, -2]), np.int32([7, 9])]),
        ("mul", [np.int64([1 << 40, -2]), np.int64([7, 9])]),
        ("sub", [np.float64([1, -2]), np.float64([1e-9, 9])]),
        ("eq", [np.int64([1, 2]), np.int64([1, 3])]),
        ("sum", [np.int32([[1, 2], [3, 4]])]),
        ("logical_and", [np.bool_([1, 0]), np.bool_([1, 1])]),
        ("tril", [np.int64([[1, 2], [3, 4]])]),
    ],
)
def test_other_dtypes(name, inputs):
    executor = aclnn.executor(name, *inputs)
    named = dict(zip(REGISTRY[executor.operator.name].inputs, inputs, strict=True))
    agree(run(loaded(executor), named), results(executor), rtol=1e-12)


def test_numbers_of_a_call_are_those_of_the_model():
    x = np.float32([-1, 2])
    executor = aclnn.executor("leaky_relu", x, negative_slope=0.125)
    (node,) = loaded(executor).graph.node
    assert onnx.helper.get_attribute_value(node.attribute[0]) == 0.125


def test_plans_are_in_the_metadata():
    x = np.ones((8, 16), np.float32)
    executor = aclnn.executor("gelu_backward", x.astype(np.float16), x, materialize=True)
    model = loaded(executor)
    facts = {node.name: {m.key: m.value for m in node.metadata_props} for node in model.graph.node}
    placed = [one for one in facts.values() if "plan_offset" in one]
    assert {int(one["plan_offset"]) for one in placed} == {b.offset for b in executor.plan.buffers}
    known = {one.key: one.value for one in model.metadata_props}
    assert int(known["workspace_size"]) == executor.plan.size
    assert not loaded(executor, as_built=True).metadata_props


def test_steps_in_python_are_for_viewers():
    @aclnn.compile
    def function(x):
        return aclnn.call(np.sort, x, shape=x.shape, dtype=x.dtype) + 1.0

    model = loaded(function.executor(np.float32([2, 1])))
    assert {node.domain for node in model.graph.node} == {"", "aclnn.graph"}


# --- Compiled functions ------------------------------------------------------------------------------


@aclnn.compile
def block(x, weight, up, down):
    h = aclnn.rms_norm(x, x.shape[-1:], weight)
    left, right = aclnn.cat([h, -h], -1)[:, 4:12], (h @ up)[::-1].T
    h = aclnn.softmax(right.reshape(-1, 8), -1) @ down
    return x + h * aclnn.silu(left), right.sum(0)


def test_compiled_functions_and_back():
    rng = np.random.default_rng(0)
    shapes = {"x": (6, 8), "weight": (8,), "up": (8, 8), "down": (8, 8)}
    named = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    for materialize in (False, True):
        compiled = aclnn.compile(block.__wrapped__, materialize=materialize)
        executor = compiled.executor(*named.values())
        model = loaded(executor)
        agree(run(model, named), results(executor))
        agree(aclnn.from_onnx(model)(*named.values()), results(executor))


# --- Layouts -----------------------------------------------------------------------------------------

F32 = DType("float32", 4)


@st.composite
def views(draw):
    """A value and a view of its memory, by slices, transposes, reshapes and repeats."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    base = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    root = base.transpose(draw(st.permutations(range(len(shape)))))
    found = root
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(["slice", "transpose", "flat", "new", "repeat", "flip"]))
        if what == "slice":
            starts = [draw(st.integers(0, size - 1)) for size in found.shape]
            steps = [draw(st.integers(1, 2)) for _ in found.shape]
            found = found[tuple(slice(a, None, b) for a, b in zip(starts, steps, strict=True))]
        elif what == "transpose":
            found = found.transpose(draw(st.permutations(range(found.ndim))))
        elif what == "flat" and found.flags.c_contiguous:
            found = found.reshape(-1)
        elif what == "new":
            found = found[None]
        elif what == "repeat":
            found = np.broadcast_to(found, (2, *found.shape))
        elif what == "flip":
            found = found[::-1]
    return base, root, found


def value_of(array, base, id, **more):
    strides = tuple(stride // 4 for stride in array.strides)
    offset = (array.ctypes.data - base.ctypes.data) // 4
    return Value(id, "v", array.shape, strides, F32, "input", offset=offset, **more)


@given(views())
@settings(max_examples=examples(300), deadline=None)
def test_moves_give_the_elements_of_a_view(drawn):
    base, array, view = drawn
    found = array
    for move in moves_of(value_of(array, base, 0), value_of(view, base, 1, alias_of=0)):
        if move.operator == "Reshape":
            found = found.reshape(move.numbers[0])
        elif move.operator == "Transpose":
            found = found.transpose(move.numbers[0])
        elif move.operator == "Expand":
            found = np.broadcast_to(found, move.numbers[0])
        elif move.operator == "Gather":
            found = found[move.table]
        else:
            index = [slice(None)] * found.ndim
            for start, end, axis in zip(*move.numbers, strict=True):
                index[axis] = slice(start, end)
            found = found[tuple(index)]
    np.testing.assert_array_equal(found, view)


def test_plain_views_need_no_table():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (base.T, base[1:3], base[:, ::2], base[1], base.reshape(2, 12).T, base[1:, 2:4].T):
        moves = moves_of(value_of(base, base, 0), value_of(view, base, 1, alias_of=0))
        assert "Gather" not in {move.operator for move in moves}


def test_parts_side_by_side_are_a_concat():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    root = value_of(base, base, 0)

    def parts(*arrays):
        return [value_of(one, base, n, alias_of=0) for n, one in enumerate(arrays, 1)]

    assert axis_of_parts(root, parts(base[:1], base[1:])) == 0
    assert axis_of_parts(root, parts(base[:, :2], base[:, 2:5], base[:, 5:])) == 1
    assert axis_of_parts(root, parts(base[:1], base[2:])) is None
    places = places_of_parts(root, parts(base[::2], base[1::2]), False)
    assert places.tolist() == [[*range(n, n + 6)] for n in (0, 12, 6, 18)]


# --- Formulas ----------------------------------------------------------------------------------------


def test_every_body_is_evaluated_with_and_without_each_parameter():
    """Bodies are chosen of what a node has: all parameters of a record, the first of them, or none."""
    places = {"axis": -1, "axes": [-1], "diagonal": 0}
    for name, bodies in formulas().items():
        record = records()[name]
        optional = [{one.name} for one in (*record.inputs, *record.outputs) if one.optional]
        kinds = [set(), *[one.optional for one in bodies], *optional, set().union(*optional)]
        for count, rank, present in itertools.product(
            range(len(record.parameters) + 1), (2, 3), map(set, kinds)
        ):
            facts = {"dtype": "float32", "present": present, "rank": rank}
            for n_operands in {len(one.operands) for one in bodies}:
                made = formula_for(name, n_operands, [1.0] * count, places, facts)
                assert made is None or made[0].needed <= made[1].keys(), name


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_with_a_bias_are_written(rank, kernel):
    rng = np.random.default_rng(0)
    named = {
        "input": rng.standard_normal((2, 4, *[5] * rank)).astype(np.float32),
        "weight": rng.standard_normal((3, 4, *[kernel] * rank)).astype(np.float32),
        "bias": rng.standard_normal(3).astype(np.float32),
    }
    executor = aclnn.executor(f"conv{rank}d", *named.values())
    for as_built in (False, True):
        agree(run(loaded(executor, as_built), named), results(executor))


@pytest.mark.parametrize(
    "numbers", [{}, {"alpha": 0.5}, {"beta": 2.0}, {"alpha": 0.5, "beta": 0.0}]
)
@pytest.mark.parametrize("operator", ["addmm", "baddbmm"])
def test_products_are_written_with_and_without_each_number(operator, numbers):
    rng, more = np.random.default_rng(0), () if operator == "addmm" else (2,)
    operands = [
        rng.standard_normal((*more, *s)).astype(np.float32) for s in ((3, 5), (3, 4), (4, 5))
    ]
    executor = aclnn.executor(operator, *operands, **numbers)
    model = loaded(executor)
    named = dict(zip([one.name for one in model.graph.input], operands, strict=True))
    agree(run(model, named), results(executor))


def test_kernels_are_written_by_a_record_or_by_a_function():
    graphs = [sample(name)[0].graph_as_built for name in OPERATORS]
    nodes = [node for graph in graphs for node in graph.nodes if node.kind == "Compute"]
    assert {node.attr("kernel") for node in nodes} - {*formulas()} == WRITTEN_OUT


def test_weights_that_a_function_reaches_are_initializers():
    weight, bias = np.ones((4, 5), np.float32), np.arange(5, dtype=np.float32)
    half = np.ones(5, ml_dtypes.bfloat16)

    @aclnn.compile
    def dense(x):
        return (aclnn.relu(x @ weight + bias) * 2) + half.astype(np.float32)

    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    model = onnx.load_from_string(dense.executor(x).to_onnx())
    assert [one.name for one in model.graph.input] == ["x"]
    assert {"weight", "bias"} <= {one.name for one in model.graph.initializer}
    onnx.checker.check_model(model)
    np.testing.assert_allclose(aclnn.from_onnx(model)(x), dense(x), rtol=1e-6)


# --- Images ------------------------------------------------------------------------------------------

IMAGE = np.random.default_rng(3).standard_normal((2, 4, 9, 7)).astype(np.float32)
KERNEL = np.random.default_rng(4).standard_normal((6, 4, 3, 2)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("name", "operator", "options"),
    [
        ("conv2d", "Conv", {"padding": (1, 0)}),
        ("conv2d", "Conv", {"stride": (2, 3), "dilation": (2, 1), "padding": (2, 1)}),
        ("conv2d", "Conv", {"groups": 2, "stride": (2, 2), "weight": KERNEL[:, :2]}),
        ("conv1d", "Conv", {"input": IMAGE[0], "weight": KERNEL[:, :, 0, :1].repeat(3, 2)[:, :4]}),
        ("conv_transpose2d", "ConvTranspose", {"weight": KERNEL[:4], "stride": (2, 1)}),
        (
            "conv_transpose2d",
            "ConvTranspose",
            {"weight": KERNEL[:4], "stride": (2, 2), "padding": (1, 1), "output_padding": (1, 0)},
        ),
        ("max_pool2d", "MaxPool", {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 0)}),
        ("avg_pool2d", "AveragePool", {"kernel_size": (3, 2), "padding": (1, 1)}),
        (
            "avg_pool2d",
            "AveragePool",
            {
                "kernel_size": (3, 3),
                "stride": (2, 1),
                "padding": (1, 1),
                "count_include_pad": False,
            },
        ),
        ("avg_pool2d", "own", {"kernel_size": (2, 2), "ceil_mode": True}),
    ],
)
def test_images(name, operator, options, dtype):
    options = {"input": IMAGE, "weight": KERNEL} | options
    if "pool" in name:
        del options["weight"]
    options = {
        key: one.astype(dtype) if isinstance(one, np.ndarray) else one
        for key, one in options.items()
    }
    if name == "conv1d":
        options["input"] = options["input"].reshape(1, 4, -1)
    executor = aclnn.executor(name, **options)
    model = loaded(executor)
    if operator == "own":
        assert kind_of(model) == "own"
        return
    assert operator in {node.op_type for node in model.graph.node}
    named = {key: one for key, one in options.items() if isinstance(one, np.ndarray)}
    half = dtype == np.float16
    agree(
        run(model, named),
        results(executor),
        rtol=2e-3 if half else 2e-5,
        atol=2e-3 if half else 2e-5,
    )
