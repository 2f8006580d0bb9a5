"""Phase one of every C-shaped pair: what it accepts, what it refuses, and in which order."""

import re
from functools import cache

import numpy as np
import oracle
import pytest
import samples
from cases import each, some
from samples import product_that_has_it  # noqa: F401 - also where the suite's settings are missing

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import socs
from aclnn.cli.ops import dtypes_on
from aclnn.kernels import records
from aclnn.operators import ENTRIES

OK, NULLPTR, INVALID, RUNTIME = 0, 161001, 161002, 361001
# Pairs whose tensors may all be alike, of floating dtypes only; of others each tensor is changed by
# itself.
ALIKE = [name for name, (operator, _) in ENTRIES.items() if operator.name in oracle.JUDGES]


def has_in_sample(name, parameter):
    operator, _ = ENTRIES[name]
    return parameter.role not in samples.UNLIKE.get(operator.name, samples.NOTHING).absent


def tensors(name):
    listed = ENTRIES[name][1].parameters
    return [p.name for p in listed if p.is_tensor and has_in_sample(name, p)]


def needed(name):
    """Parameters that must not be null."""
    listed = ENTRIES[name][1].parameters
    return [p.name for p in listed if p.kind in NULLABLE and not p.optional]


# What null pointers are made of: objects, and text.
NULLABLE = ("input", "output", "inout", "inputs", "single", "scalar", "ints", "bools", "str")
# What some checks that CANN makes when it divides the work answer.
TILING = 561002
FAILED_PLAN = 561103
ATTENTION = [name for name, (one, _) in ENTRIES.items() if "attention" in one.name]
SIZES = re.compile(r"\b(dimension|shape|size|element|row|broadcast|head|layout)s?\b")


def statuses_of_sizes(name, role=None):
    """What rules about dimensions and shapes of an operand answer; where none names it, of all operands."""
    rules = ENTRIES[name][0].rules
    sized = [rule for rule in rules if SIZES.search(re.sub("`.*?`", "", rule.text))]
    assert sized
    return {rule.status for rule in sized if role in rule.roles} or {rule.status for rule in sized}


# Results that have room for what there is, by what C-shaped calls say of it.
ANY_SIZE = ("aclnnArange", "aclnnNonzero", "aclnnNonzeroV2")
# What is copied, or multiplied in float64, before it is used.
COPIES = ("aclnnAddbmm", "aclnnInplaceAddbmm", "aclnnBatchNorm")
COPIES += ("aclnnMseLoss", "aclnnL1Loss")
# Arguments that the options and values of samples need, which no rule knows.
TOGETHER = {
    *(("aclnnScatterPaKvCache", "valueCacheRef"), ("aclnnMoeTokenUnpermute", "probsOptional")),
    *(("aclnnMoeFinalizeRoutingV2", role) for role in ("x1Optional", "expertIdxOptional")),
    ("aclnnMoeFinalizeRoutingV2", "scalesOptional"),
    *((f"aclnnAddRmsNormQuant{v}", "scales2Optional") for v in ("", "V2")),
    ("aclnnAddRmsNormDynamicQuant", "smoothScale1Optional"),
    *(("aclnnQuantMatmulV4", "pertokenScaleOptional"), ("aclnnQuantMatmulV5", "x1Scale")),
    ("aclnnDequantSwigluQuant", "groupIndexOptional"),
    *(
        ("aclnnDequantSwigluQuantV2", f"{role}Optional")
        for role in ("weightScale", "groupIndex", "quantMode")
    ),
    ("aclnnApplyAdamWV2", "maxGradNormOptionalRef"),
    *[("aclnnBatchNorm", role) for role in ("runningMean", "runningVar")],
    *[("aclnnBatchNormBackward", role) for role in ("saveMean", "saveInvstd")],
    ("aclnnConvolutionBackward", "biasSizes"),  # beside a gradient of another shape
    *[(name, f"actualSeq{role}LenOptional") for name in samples.BY_LENGTHS for role in ("Q", "Kv")],
}
# Results that may be null, but not with the options that samples have: what calls without them get.
ASKED_FOR = {
    "aclnnKvRmsNormRopeCache": NULLPTR,
    "aclnnMoeInitRoutingV2": FAILED_PLAN,
    "aclnnAddRmsNormDynamicQuantV2": NULLPTR,
    "aclnnLayerNormBackward": NULLPTR,
    **dict.fromkeys(("aclnnBatchNorm", "aclnnBatchNormBackward"), NULLPTR),
    "aclnnConvolutionBackward": NULLPTR,
    "aclnnAddLayerNorm": NULLPTR,
    "aclnnAddRmsNorm": INVALID,  # of halves it would be another mode
    **{name: TILING for name in ATTENTION if "Infer" in name},
}


def tensor(shape=(2, 3), dtype=T.ACL_FLOAT, strides=None, data=None):
    made = aclnn.aclCreateTensor(shape, dtype, strides, 0, aclnn.ACL_FORMAT_ND, shape, data)
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def scalar(value, dtype=T.ACL_FLOAT):
    return aclnn.aclCreateScalar(value, dtype)


@cache
def usual_arguments(name):
    """What all calls of an entry are given here: a first phase only reads them."""
    return samples.arguments(name)


def arguments(name, **changes):
    """Good arguments for an entry, by CANN's parameter names, with some of them changed."""
    given = usual_arguments(name)
    unknown = set(changes) - set(given)
    assert not unknown, unknown
    return list((given | changes).values())


def phase_one(name, **changes):
    return getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments(name, **changes))


def refused(name, **changes):
    """The status and the message of a call that must fail."""
    size, executor, status = phase_one(name, **changes)
    assert (size, executor) == (0, None)
    assert status != OK
    message = aclnn.aclGetRecentErrMsg()
    assert message
    assert aclnn.aclGetRecentErrMsg() is None, "reading clears"
    return status, message


@pytest.fixture(autouse=True)
def default_product():
    before = aclnn.get_soc_version()
    yield
    aclnn.set_soc_version(before)


@each("name", ENTRIES)
def test_good_arguments_make_an_executor(name):
    """It needs no workspace, unless a row-wise kernel has memory of its own, or a tile is full of the
    number that elements are compared with."""
    size, executor, status = phase_one(name)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    assert isinstance(executor, aclnn.aclOpExecutor)
    kernels = {node.attr("kernel") for node in executor.graph.nodes}
    rows = any(node.domain == "row" for node in executor.graph.nodes)
    compared = "fill" in kernels and bool(kernels - {"fill", None})
    scratch = any(one in records() and records()[one].scratch for one in kernels)
    assert (size > 0) == (rows or compared or scratch or name in COPIES), (
        f"{name} asks for {size} bytes; do the records of {kernels} say `scratch`?"
    )


@each("name", ENTRIES)
@each("parameter", needed)
def test_null_arguments(name, parameter):
    status, message = refused(name, **{parameter: None})
    assert status == NULLPTR
    assert parameter in message


@each(
    "name, parameter", [(n, p) for n, (_, e) in ENTRIES.items() for p in e.parameters if p.optional]
)
def test_arguments_that_may_be_null(name, parameter):
    """But for results that options ask for."""
    reduces = parameter.role in ("dim", "bias_sizes")
    made = [one.name for one in ENTRIES[name][1].parameters if one.kind == "output"]
    changes = {one: tensor(()) for one in made} if reduces else {}  # of all dimensions
    _, executor, status = phase_one(name, **{parameter.name: None}, **changes)
    if (name, parameter.name) in TOGETHER:
        assert status != OK
        assert aclnn.aclGetRecentErrMsg()
        return
    if name in ASKED_FOR and parameter.kind == "output" and has_in_sample(name, parameter):
        asked = NULLPTR if parameter.name == "xOut" else ASKED_FOR[name]
        assert status == asked
        assert parameter.name in aclnn.aclGetRecentErrMsg()
        return
    assert status == OK, aclnn.aclGetRecentErrMsg()
    ends = executor.graph.outputs if parameter.kind == "output" else executor.graph.inputs
    names = [executor.graph.value(value).name for value in ends]
    assert names
    assert parameter.role not in names


@each("name", ENTRIES)
def test_first_null_argument_in_signature_order_is_named(name):
    names = needed(name)
    status, message = refused(name, **dict.fromkeys(names))
    assert status == NULLPTR
    assert f"{names[0]} is null" in message


@each("name", ENTRIES)
def test_null_comes_before_every_other_check(name):
    _, entry = ENTRIES[name]
    first = next(p.name for p in entry.parameters if p.is_tensor or p.kind == "inputs")
    last = needed(name)[-1]
    for wrong in (tensor(dtype=T.ACL_STRING), "no tensor"):
        if last != first:
            assert refused(name, **{first: wrong, last: None})[0] == NULLPTR


@each("name", ENTRIES)
@each("parameter", tensors)
def test_destroyed_tensor_counts_as_null(name, parameter):
    gone = tensor()
    assert aclnn.aclDestroyTensor(gone) == OK
    status, message = refused(name, **{parameter: gone})
    assert status == NULLPTR
    assert parameter in message


def test_a_destroyed_tensor_of_a_list_counts_as_null():
    gone = tensor()
    listed = aclnn.aclCreateTensorList([tensor(), gone])
    assert aclnn.aclDestroyTensor(gone) == OK
    status, message = refused("aclnnCat", tensors=listed)
    assert status == NULLPTR
    assert "tensors[1] is a destroyed aclTensor" in message


def read_by_kind(name):
    other = ("str", "later", "ignored", "zero")
    return [p.name for p in ENTRIES[name][1].parameters if p.kind not in other]


@each("name", ENTRIES)
@each("parameter", read_by_kind)
@each(
    "junk",
    lambda name, parameter: some(["x", b"", object(), np.ones(3)], 2, f"{name}{parameter}"),
)
def test_junk_instead_of_arguments_is_refused(name, parameter, junk):
    status, message = refused(name, **{parameter: junk})
    assert status == INVALID
    assert parameter in message


@each("name", ENTRIES)
@each("parameter", tensors)
@each(
    "dtype",
    lambda name, parameter: some(
        [T.ACL_DT_UNDEFINED, T.ACL_STRING, T.ACL_FLOAT8_E5M2], 1, f"{name}{parameter}"
    ),
)
def test_dtypes_that_no_operator_knows(name, parameter, dtype):
    """Of each tensor by itself; a bool for a float is another rule's matter."""
    given = dict(zip(samples.arguments(name), arguments(name), strict=True))
    dims = aclnn.aclGetViewShape(given[parameter])[0]
    wrong = aclnn.aclCreateTensor(dims, dtype, None, 0, aclnn.ACL_FORMAT_ND, dims, None)
    if parameter == "buffer":  # which no operator looks at
        assert phase_one(name, buffer=wrong)[2] == OK
        return
    status, message = refused(name, **{parameter: wrong})
    assert status == INVALID
    assert dtype.name.removeprefix("ACL_").lower() in message.lower()


@each("name", ALIKE)
@each("dtype", [T.ACL_INT8, T.ACL_BOOL, T.ACL_COMPLEX64, T.ACL_DT_UNDEFINED])
def test_dtypes_no_operator_computes_with(name, dtype):
    operator, entry = ENTRIES[name]
    given = {p.name: tensor(dtype=dtype) for p in entry.parameters if p.is_tensor}
    if dtype.name.removeprefix("ACL_") in dtypes_on(operator, "Ascend910B"):
        assert phase_one(name, **given)[2] == OK
        return
    status, message = refused(name, **given)
    assert status == INVALID
    assert dtype.name.removeprefix("ACL_") in message


@each("name", ENTRIES)
def test_bfloat16_only_where_the_product_has_it(name):
    if samples.BFLOAT16 not in samples.floats_of(ENTRIES[name][0].name):
        return
    given = samples.arguments(name, dtype=samples.BFLOAT16)
    plan = getattr(aclnn, f"{name}GetWorkspaceSize")
    assert plan(*given.values())[2] == OK, aclnn.aclGetRecentErrMsg()
    for soc in ("Ascend310P", "Ascend910"):
        aclnn.set_soc_version(soc)
        refused = RUNTIME if samples.PRODUCTS.get(name) and name in ATTENTION else INVALID
        assert plan(*given.values())[2] == refused, "a rule about dtypes has to refuse BF16"
        assert soc in aclnn.aclGetRecentErrMsg()


@each("name", ENTRIES)
@each("soc", lambda name: some(socs.FAMILIES, 3, name))
def test_which_operators_a_product_has(name, soc):
    """`aclnn ops` says so, and phase one does."""
    operator, _ = ENTRIES[name]
    aclnn.set_soc_version(soc)
    status = phase_one(name)[2]
    halves_only = samples.UNLIKE.get(operator.name, samples.NOTHING).halves_only
    if ("FLOAT16" if halves_only else "FLOAT") in dtypes_on(operator, soc):
        assert status == OK, aclnn.aclGetRecentErrMsg()
    else:
        assert status in ((INVALID, RUNTIME) if name in ATTENTION else (INVALID,))
        assert soc in aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize("name", samples.BY_LENGTHS)
def test_a_plan_of_another_pair_is_not_taken(name):
    """Which layouts a pair takes is not what another of its operator takes."""
    operator, entry = ENTRIES[name]
    (other,) = [one.name for one in operator.entries if one.name != name]
    aclnn.set_soc_version("Ascend910B")
    assert phase_one(other)[2] == OK, aclnn.aclGetRecentErrMsg()
    alike = samples.arguments(other)
    given = {p.name: alike.get(p.name) for p in entry.parameters}
    assert getattr(aclnn, f"{name}GetWorkspaceSize")(*given.values())[2] == INVALID
    assert "BSH" in aclnn.aclGetRecentErrMsg()


@each("name", ENTRIES)
def test_no_operator_exists_on_310b(name):
    aclnn.set_soc_version("Ascend310B")
    status, message = refused(name)
    assert status == INVALID
    assert "Ascend310B" in message


@pytest.mark.parametrize(
    ("soc", "status"),
    [
        ("Ascend310P", INVALID),
        ("Ascend910", INVALID),
        ("Ascend910B", OK),
        ("Ascend910_93", OK),
        ("Ascend950", OK),
    ],
)
@pytest.mark.parametrize("name", ["aclnnLogitGrad", "aclnnLogit"])
def test_logit_exists_on_three_products(name, soc, status):
    aclnn.set_soc_version(soc)
    assert phase_one(name)[2] == status


@each("name", ALIKE)
@each("rank", [0, 1, 8])
def test_up_to_8_dims(name, rank):
    tensors = [p.name for p in ENTRIES[name][1].parameters if p.is_tensor]
    shape = (1,) * rank
    rules = ENTRIES[name][0].rules
    least = [rule.status for rule in rules if "has at least one dimension" in rule.text]
    wanted = least[0] if least and rank == 0 else OK
    assert phase_one(name, **{t: tensor(shape) for t in tensors})[2] == wanted


@each("name", ENTRIES)
@each("parameter", tensors)
@each("rank", lambda name, parameter: some([9, 20], 1, f"{name}{parameter}"))
def test_more_than_8_dims(name, parameter, rank):
    """One of the tensors, so that either its dimensions or its shape are refused."""
    given = samples.arguments(name)
    dtype = aclnn.aclGetDataType(given[parameter])[0]
    operator, entry = ENTRIES[name]
    role = next(p.role for p in entry.parameters if p.name == parameter)
    alone = operator.any_rank and len(operator.inputs) == 1 + len(operator.unread)
    if role in operator.unread or (alone and name.startswith("aclnnInplace")):
        assert phase_one(name, **{parameter: tensor((1,) * rank, dtype)})[2] == OK
        return
    status, message = refused(name, **{parameter: tensor((1,) * rank, dtype)})
    assert status in statuses_of_sizes(name, role)
    assert parameter in message


@each("name", ALIKE)
@each("rank", [9, 20])
def test_more_than_8_dims_of_all(name, rank):
    tensors = [p.name for p in ENTRIES[name][1].parameters if p.is_tensor]
    given = {t: tensor((1,) * rank) for t in tensors}
    if ENTRIES[name][0].any_rank:
        assert phase_one(name, **given)[2] == OK
        return
    status, message = refused(name, **given)
    assert status in statuses_of_sizes(name)
    assert "8" in message
    assert str(rank) in message


@each(
    "name, output",
    [
        (n, p)
        for n, (_, e) in ENTRIES.items()
        for p in e.parameters
        if p.kind == "output" and has_in_sample(n, p) and n not in ANY_SIZE
    ],
)
def test_shape_of_the_output(name, output):
    parameter = output.name
    dtype = aclnn.aclGetDataType(samples.arguments(name)[parameter])[0]
    status, message = refused(name, **{parameter: tensor((7, 5), dtype)})
    assert status in statuses_of_sizes(name, output.role)
    assert parameter in message
    assert "(7, 5)" in message


@pytest.mark.parametrize(
    ("shape", "strides", "meet"),
    [
        ((4, 4), (1, 1), True),
        ((4, 4), (4, 1), False),
        ((2, 2), (3, 2), False),
        ((3, 2), (2, 3), False),  # 0 2 4 3 5 7: dimensions that reach into each other
        ((4, 2), (2, 4), True),
        ((3, 3), (2, 3), False),
        ((4, 3), (2, 3), True),
        ((2, 4), (3, 1), True),  # the last of a row is the first of the next
        ((1, 4), (0, 1), False),
        ((3, 1, 2), (2, 0, 1), False),
        ((2, 3), (0, 0), True),
        ((2, 3, 4), (0, 4, 0), True),
        ((3,), (0,), True),
        ((2048, 2048), (1, 1), True),
        ((2, 600_000), (3, 2), False),  # too many to look at all
        ((3, 600_000), (3, 2), True),
        ((2, 600_000, 2), (3, 2, 2_000_000), False),
    ],
)
def test_outputs_whose_elements_meet_are_refused(shape, strides, meet):
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    storage = np.zeros(count, np.float32)
    out = aclnn.aclCreateTensor(
        shape, T.ACL_FLOAT, strides, 0, aclnn.ACL_FORMAT_ND, (count,), storage
    )
    _, _, status = aclnn.aclnnGeluGetWorkspaceSize(
        tensor(shape, data=np.ones(shape, np.float32)), out
    )
    assert status == (INVALID if meet else OK)
    if meet:
        assert "share memory" in aclnn.aclGetRecentErrMsg()


def test_elu_backward_order_of_checks():
    # dtypes before shapes, shapes before the value of alpha
    wrong_everything = {
        "gradOutput": tensor(dtype=T.ACL_INT32),
        "selfOrResult": tensor((4, 4)),
        "gradInput": tensor((5,)),
        "isResult": True,
        "alpha": scalar(-1.0),
    }
    assert "dtype" in refused("aclnnEluBackward", **wrong_everything)[1]
    wrong_everything |= {"gradOutput": tensor()}
    assert "selfOrResult has shape (4, 4)" in refused("aclnnEluBackward", **wrong_everything)[1]
    wrong_everything |= {"selfOrResult": tensor()}
    assert "gradInput has shape (5,)" in refused("aclnnEluBackward", **wrong_everything)[1]
    wrong_everything |= {"gradInput": tensor()}
    status, message = refused("aclnnEluBackward", **wrong_everything)
    assert status == INVALID
    assert "alpha" in message


def test_negative_alpha_is_fine_unless_the_result_is_given():
    assert phase_one("aclnnEluBackward", alpha=scalar(-1.0), isResult=False)[2] == OK
    assert phase_one("aclnnEluBackward", alpha=scalar(-0.0), isResult=True)[2] == OK
    assert refused("aclnnEluBackward", alpha=scalar(-1.0), isResult=True)[0] == INVALID
    assert (
        refused("aclnnLeakyReluBackward", negativeSlope=scalar(-1), selfIsResult=True)[0] == INVALID
    )


@pytest.mark.parametrize("out", [T.ACL_DOUBLE, T.ACL_COMPLEX64, T.ACL_FLOAT16, T.ACL_COMPLEX128])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [("aclnnEluBackward", "gradInput"), ("aclnnLeakyRelu", "out"), ("aclnnElu", "out")],
)
def test_output_dtypes_that_a_cast_reaches(name, parameter, out):
    assert phase_one(name, **{parameter: tensor(dtype=out)})[2] == OK


@pytest.mark.parametrize("out", [T.ACL_INT32, T.ACL_BOOL, T.ACL_UINT64])
def test_output_dtypes_that_no_cast_reaches(out):
    assert refused("aclnnEluBackward", gradInput=tensor(dtype=out))[0] == INVALID
    assert refused("aclnnLeakyRelu", out=tensor(dtype=out))[0] == INVALID


def test_gelu_backward_promotes_integers_with_floats():
    half, integer = tensor(dtype=T.ACL_FLOAT16), tensor(dtype=T.ACL_INT32)
    good = {"gradOutput": half, "self": integer, "gradInput": half}
    assert phase_one("aclnnGeluBackward", **good)[2] == OK
    both = {"gradOutput": integer, "self": integer, "gradInput": half}
    assert refused("aclnnGeluBackward", **both)[0] == INVALID
    bf16 = tensor(dtype=T.ACL_BF16)
    mixed = {"gradOutput": half, "self": bf16, "gradInput": tensor()}
    assert phase_one("aclnnGeluBackward", **mixed)[2] == OK
    assert "FLOAT" in refused("aclnnGeluBackward", **(mixed | {"gradInput": bf16}))[1]
    double = {"gradOutput": tensor(dtype=T.ACL_DOUBLE)}
    assert refused("aclnnGeluBackward", **double)[0] == INVALID


def test_hardshrink_backward_with_an_empty_input_checks_no_shapes():
    empty = tensor((0, 3))
    size, executor, status = phase_one("aclnnHardshrinkBackward", gradOutput=empty)
    assert (size, status) == (0, OK)
    assert aclnn.aclnnHardshrinkBackward(None, 0, executor, None) == OK
    # but dtypes and ranks come first
    bad = {"gradOutput": empty, "self": tensor(dtype=T.ACL_DOUBLE)}
    assert refused("aclnnHardshrinkBackward", **bad)[0] == INVALID


def test_gelu_backward_checks_the_shape_of_empties_too():
    empty = tensor((0, 3))
    assert refused("aclnnGeluBackward", gradOutput=empty, self=empty)[0] == INVALID


@pytest.mark.parametrize("approximate", ["", "erf", "None", "tanhh"])
def test_gelu_backward_v2_knows_two_forms(approximate):
    assert refused("aclnnGeluBackwardV2", approximate=approximate)[0] == INVALID


@pytest.mark.parametrize(("approximate", "status"), [(0, OK), (1, OK), (2, INVALID), (-1, INVALID)])
def test_gelu_v2_numbers_its_forms(approximate, status):
    assert phase_one("aclnnGeluV2", approximate=approximate)[2] == status


@pytest.mark.parametrize("junk", ["tanh", 1.0, True, b"1"])
def test_a_switch_of_another_type_is_named_with_its_value(junk):
    status, message = refused("aclnnGeluV2", approximate=junk)
    assert status == INVALID
    assert f"approximate is {junk!r}, must be an int" in message


@pytest.mark.parametrize("junk", ["true", 1.0, ()])
def test_a_truth_of_another_type_is_named_with_its_value(junk):
    status, message = refused("aclnnEluBackward", isResult=junk)
    assert status == INVALID
    assert f"isResult is {junk!r}, must be a bool" in message


def test_complex_scalars_cannot_be_converted():
    bad = scalar(1 + 2j, T.ACL_COMPLEX64)
    assert "negativeSlope" in refused("aclnnLeakyRelu", negativeSlope=bad)[1]
    assert "inputScale" in refused("aclnnEluBackward", inputScale=bad)[1]
    assert "lambd" in refused("aclnnHardshrinkBackward", lambd=bad)[1]


@pytest.mark.parametrize(
    "dtype",
    [T.ACL_INT8, T.ACL_UINT64, T.ACL_BOOL, T.ACL_FLOAT16, T.ACL_BF16, T.ACL_DOUBLE, T.ACL_INT64],
)
def test_slopes_of_every_real_dtype(dtype):
    assert phase_one("aclnnLeakyRelu", negativeSlope=scalar(1, dtype))[2] == OK


def test_wrong_number_of_arguments_is_a_type_error():
    with pytest.raises(TypeError):
        aclnn.aclnnGeluBackwardGetWorkspaceSize(tensor(), tensor())
    with pytest.raises(TypeError):
        aclnn.aclnnGeluBackward(None, 0, None)
    with pytest.raises(TypeError, match=r"GeluGetWorkspaceSize\(\) takes 2 .* but 3 were given"):
        aclnn.aclnnGeluGetWorkspaceSize(tensor(), tensor(), tensor())
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        aclnn.aclnnGeluGetWorkspaceSize(tensor(), x=tensor())
    with pytest.raises(TypeError, match="multiple values for argument 'self'"):
        aclnn.aclnnGeluGetWorkspaceSize(tensor(), self=tensor())
    with pytest.raises(TypeError, match="missing required argument: 'out'"):
        aclnn.aclnnGeluGetWorkspaceSize(self=tensor())


def test_arguments_may_be_named():
    out, x = (tensor(data=np.ones((2, 3), np.float32)) for _ in range(2))
    size, executor, status = aclnn.aclnnGeluGetWorkspaceSize(out=out, self=x)
    assert status == OK
    given = {"stream": None, "executor": executor, "workspaceSize": size, "workspace": None}
    assert aclnn.aclnnGelu(**given) == OK


def test_read_only_memory_is_refused_as_an_output():
    constant = np.ones((2, 3), np.float32)
    constant.flags.writeable = False
    given = tensor(data=constant)
    assert phase_one("aclnnLeakyRelu", self=given)[2] == OK
    status, message = refused("aclnnLeakyRelu", out=given)
    assert status == INVALID
    assert "read-only" in message
