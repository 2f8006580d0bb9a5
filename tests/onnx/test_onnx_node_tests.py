"""The standard's own tests of nodes: all of those whose inputs and outputs are tensors."""

import collections
import re
import warnings

import numpy as np
import pytest

import aclnn

onnx = pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from aclnn.onnx.forms import FORMS  # noqa: E402
from aclnn.onnx.selection import CHOOSING  # noqa: E402

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
def every_case():
    return list(cases())


@pytest.fixture(scope="module")
def ran(every_case):
    """How many cases there are, what those end in that do not pass, and what computed their nodes."""
    count, ends, ways = 0, {}, collections.Counter()
    for case in every_case:
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


# --- Dtypes ------------------------------------------------------------------------------------------

# Where ONNX's reference does not do what the standard says, or rounds at every step.
REFERENCES_OWN = {
    "CastLike": "what infinities are as integers is left open",
    "Det": "bfloat16 becomes float64",
    "GridSample": "weights are rounded to the dtype of elements",
    "LayerNormalization": "means have the dtype of the input",
    "RMSNormalization": "the result has the dtype of the input, not of the scale",
    "ReduceSumSquare": "sums of int32 become int64",
}
# What other runtimes compute in some dtypes.
DTYPES_OF_OTHERS = {
    "BatchNormalization", "ConvTranspose", "DeformConv", "GRU", "Gemm", "InstanceNormalization", "LSTM",
    "QuantizeLinear", "RNN", "TensorScatter",
}  # fmt: skip
RANDOM = {"Bernoulli", "Dropout"}


def in_dtypes(case):
    """A case in each dtype that its operator's schema has for a type of some of its inputs."""
    (node,), helper = case.model.graph.node, onnx.helper
    versions = {one.domain: one.version for one in case.model.opset_import}
    schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
    infos = case.model.graph.input
    given = dict(zip([one.name for one in infos], map(as_array, case.data_sets[0][0]), strict=True))
    types = [one.type_str for one in schema.inputs]
    for kind in schema.type_constraints:
        names = [
            name for place, name in enumerate(node.input)
            if name in given and types[min(place, len(types) - 1)] == kind.type_param_str
        ]  # fmt: skip
        for text in kind.allowed_type_strs if names else ():
            word = text.removeprefix("tensor(").removesuffix(")")
            number = getattr(onnx.TensorProto, word.upper(), None)
            if number is None or word.startswith(
                ("string", "complex", "float8", "float4", "float6")
            ):
                continue
            if word.endswith(("int4", "int2")):
                continue
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(number))
            values = dict(given)
            for name in names:
                plain = (
                    values[name].astype(np.float64)
                    if values[name].dtype.kind not in "iub"
                    else values[name]
                )
                values[name] = (
                    np.abs(plain) if dtype.kind == "u" and plain.dtype != bool else plain
                ).astype(dtype)
            made = [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape
                )
                for name, one in values.items()
            ]
            outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
            graph = helper.make_graph([node], "typed", made, outputs)
            yield (
                word,
                helper.make_model(graph, opset_imports=case.model.opset_import, ir_version=10),
                values,
            )


def compared(kind, word, proto, values):
    """What is wrong with a node in some dtypes, and what computes it; None where the reference fails."""
    try:
        model = aclnn.from_onnx(proto, fallback="allow")
        made = model.run(values)
    except aclnn.AclnnError as error:
        assert str(error).startswith(f"typed: {kind} ("), error
        return None, "refused"
    (node,) = model.report().nodes
    if kind in REFERENCES_OWN:
        return None, node.by
    try:
        wanted = ReferenceEvaluator(proto).run(None, values)
    except Exception:  # which raises what it likes
        return None, node.by
    for one, right in zip(
        made if isinstance(made, tuple) else (made,), map(np.asarray, wanted), strict=True
    ):
        if (one.dtype, one.shape) != (right.dtype, right.shape):
            return f"{one.dtype}{one.shape} for {right.dtype}{right.shape}", node.by
        a, b = (array.astype(np.float64) for array in (one, right))
        largest = np.abs(b[np.isfinite(b)]).max(initial=1)
        bound = {"float16": 4e-3, "bfloat16": 3e-2}.get(word, 1e-5)
        if not np.allclose(a, b, rtol=bound, atol=bound * largest, equal_nan=True):
            return f"{a.ravel()[:4]} for {b.ravel()[:4]}", node.by
    return None, node.by


@pytest.mark.filterwarnings("ignore")
def test_forms_take_every_dtype_of_their_schema_or_refuse_it_by_name(every_case):
    first, wrong, others, count = {}, [], set(), 0
    for case in every_case:
        kinds = [node.op_type for node in case.model.graph.node]
        if len(kinds) == 1 and case.data_sets and "_expanded" not in case.name:
            first.setdefault(kinds[0], case)
    for kind in sorted({*FORMS, *CHOOSING} & first.keys() - RANDOM):
        with np.errstate(all="ignore"):
            for word, proto, values in in_dtypes(first[kind]):
                found, by = compared(kind, word, proto, values)
                count += 1
                if found is not None:
                    wrong.append(f"{kind} in {word}: {found}")
                if by == "fallback":
                    others.add(kind)
    assert wrong == []
    assert others <= DTYPES_OF_OTHERS
    assert count > 1000


# --- Wrong values -------------------------------------------------------------------------------------


def with_wrong_values(case):
    """A case as a model of constants, one of which is not what it was."""
    (node,) = case.model.graph.node
    arrays = [np.asarray(as_array(one)) for one in case.data_sets[0][0]]
    for place, array in enumerate(arrays):
        if not array.ndim:
            wrong = [np.zeros(2, array.dtype)]
        else:
            wrong = [array.reshape(-1), array[tuple(slice(max(1, n - 1)) for n in array.shape)]]
        if array.dtype.kind in "iu" and 0 < array.size <= 16:
            wrong.append(np.full_like(array, 99))
        for one in wrong:
            given = [*arrays[:place], one, *arrays[place + 1 :]]
            names = [info.name for info in case.model.graph.input]
            weights = [
                onnx.numpy_helper.from_array(x, n) for x, n in zip(given, names, strict=True)
            ]
            outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
            graph = onnx.helper.make_graph([node], "wrong", [], outputs, weights)
            yield onnx.helper.make_model(
                graph, opset_imports=case.model.opset_import, ir_version=10
            )


@pytest.mark.filterwarnings("ignore")
def test_wrong_values_are_refused_in_words_of_the_model(every_case):
    first, count = {}, 0
    for case in every_case:
        if len(case.model.graph.node) == 1 and case.data_sets and case.data_sets[0][0]:
            first.setdefault(case.model.graph.node[0].op_type, case)
    for kind, case in first.items():
        for proto in with_wrong_values(case):
            try:
                aclnn.from_onnx(proto, fallback="allow").run({})
            except aclnn.AclnnError as error:
                assert str(error).startswith(f"wrong: {kind} ("), error
                assert not re.search(r"\w+(Error|Exception)\b: ", str(error)), error
                assert not re.search(r"zip\(|truth value|unpack", str(error)), error
                count += 1
    assert count > 200
