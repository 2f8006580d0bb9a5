"""The standard's own tests of nodes: all of those whose inputs and outputs are tensors."""

import collections
import warnings

import numpy as np
import pytest

import aclnn

onnx = pytest.importorskip("onnx")

# What is left, and why; the standard's strings, sequences and optional values are no tensors.
LEFT = {
    "test_bernoulli": "random numbers without a seed",
    "test_bernoulli_double": "random numbers without a seed",
    "test_bernoulli_expanded": "random numbers without a seed",
    "test_bernoulli_double_expanded": "random numbers without a seed",
    "test_bernoulli_seed": "what a seed gives is left to implementations",
    "test_bernoulli_seed_expanded": "what a seed gives is left to implementations",
}
# What has neither kernel nor body.
OF_OTHERS = {
    "ImageDecoder": "image files",
    "TfIdfVectorizer": "texts' n-grams",
    "Scan": "the version before 9, which has batches",
    **dict.fromkeys(["Adagrad", "Adam", "Momentum"], "a preview of training"),
    **dict.fromkeys(
        ["ArrayFeatureExtractor", "Binarizer", "TreeEnsemble"], "the domain ai.onnx.ml"
    ),
}
LEAST_PASSED = 0.97
HALVES = {"float16": 2**-10, "bfloat16": 2**-7}


def cases():
    """The cases whose values are tensors of numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    string = onnx.TensorProto.STRING
    for case in found:
        infos = [*case.model.graph.input, *case.model.graph.output]
        kinds = [(one.type.WhichOneof("value"), one.type.tensor_type.elem_type) for one in infos]
        if all(kind == "tensor_type" and dtype != string for kind, dtype in kinds):
            yield case


def as_array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def difference(made, wanted, case):
    """What is different, in words; None where nothing is.

    Half precision may be off by two units in the last place: the reference rounds at every step.
    """
    made, wanted = np.asarray(made), np.asarray(wanted)
    if (made.dtype, made.shape) != (wanted.dtype, wanted.shape):
        return f"{made.dtype}{made.shape} for {wanted.dtype}{wanted.shape}"
    bound = 2 * HALVES.get(wanted.dtype.name, 0)
    rtol, atol = max(case.rtol, bound), max(case.atol, bound)
    wide = [one.astype(np.float64) if one.dtype.kind not in "c" else one for one in (made, wanted)]
    if np.allclose(*wide, rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"values are off by {np.nanmax(np.abs(wide[0] - wide[1]))}"


def outcome(case, ways):
    """Nothing, or what a case ends in; `ways` counts what computed the nodes of each operator."""
    model = None
    try:
        model = aclnn.from_onnx(case.model, fallback="allow")
        for given, wanted in case.data_sets:
            made = model(*map(as_array, given))
            made = made if isinstance(made, tuple) else (made,)
            assert len(made) == len(wanted)
            for one, right in zip(made, map(as_array, wanted), strict=True):
                if (found := difference(one, right, case)) is not None:
                    return f"wrong: {found}"
    except aclnn.AclnnError as error:
        return f"refused: {error}"
    finally:
        if model is not None:
            ways.update([(one.operator, one.by) for one in model.report().nodes])
    return None


@pytest.fixture(scope="module")
def ran():
    """How many cases there are, what those end in that do not pass, and what computed their nodes."""
    count, ends, ways = 0, {}, collections.Counter()
    for case in cases():
        count += 1
        if (found := outcome(case, ways)) is not None:
            ends[case.name] = found
    return count, ends, ways


def test_nodes_do_what_the_standards_tests_say(ran):
    count, ends, _ = ran
    unknown = {name: words for name, words in ends.items() if name not in LEFT}
    told = collections.Counter(words.partition(":")[0] for words in ends.values())
    assert not [name for name, words in unknown.items() if words.startswith("wrong")], unknown
    assert (count - len(ends)) / count >= LEAST_PASSED, (told, unknown)
    if onnx.__version__ == "1.23.2":  # others have other cases
        assert unknown == {}


def test_what_other_runtimes_compute_is_listed(ran):
    _, _, ways = ran
    assert {kind for kind, by in ways if by == "fallback"} <= OF_OTHERS.keys()
