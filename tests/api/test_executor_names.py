"""Executors made by C-shaped names: operands and options go by these names throughout."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn.operators import REGISTRY, examples, functional_owner

X = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
G = np.linspace(1, 2, 6, dtype=np.float32).reshape(2, 3)


def test_operands_and_options_have_canns_names():
    ex = aclnn.executor("aclnnGeluBackward", G, X)
    assert list(ex.inputs) == ["gradOutput", "self"]
    assert list(ex.outputs) == ["gradInput"]
    assert repr(ex).startswith("<aclOpExecutor aclnnGeluBackward: ")
    ex = aclnn.executor("aclnnLeakyRelu", X, 0.5)
    assert ex.options["negativeSlope"] == 0.5
    assert "negative_slope" not in ex.options
    assert list(aclnn.executor("aclnnCat", [X, X], 0).inputs) == ["tensors[0]", "tensors[1]"]
    assert list(aclnn.executor("aclnnSplitTensor", X, 2, 1).outputs) == ["out[0]", "out[1]"]


def test_runs_take_either_name():
    ex = aclnn.executor("aclnnGeluBackward", G, X)
    wanted = aclnn.gelu_backward(X, X)
    np.testing.assert_array_equal(ex.run(gradOutput=X), wanted)
    ex.run(gradOutput=G)
    np.testing.assert_array_equal(ex.run(grad_output=X), wanted)
    into = np.empty_like(X)
    assert ex.run(gradInput=into) is into
    np.testing.assert_array_equal(into, wanted)
    ex = aclnn.executor("aclnnLeakyRelu", X, 0.5)
    np.testing.assert_array_equal(ex.run(negativeSlope=0.25), aclnn.leaky_relu(X, 0.25))
    np.testing.assert_array_equal(ex.run(negative_slope=0.125), aclnn.leaky_relu(X, 0.125))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: aclnn.executor("aclnnGeluBackward", G, X).run(X[:1]),
     "aclnnGeluBackward: gradOutput is float32[1, 3] with strides (3, 1), but the plan is for "),
    (lambda: aclnn.executor("aclnnGeluBackward", G, X).run(gradOutputs=X),
     "aclnnGeluBackward: no operand is called 'gradOutputs', they are gradOutput, self, gradInput; "
     "did you mean 'gradOutput'?"),
    (lambda: aclnn.executor("aclnnGeluBackward", G, X).run(X, gradOutput=X),
     "aclnnGeluBackward: gradOutput is given twice"),
    (lambda: aclnn.executor("aclnnLeakyRelu", X).run(negativeSlop=3),
     "aclnnLeakyRelu: no operand is called 'negativeSlop', they are self, out; "
     "did you mean 'negativeSlope'?"),
    (lambda: aclnn.executor("aclnnLeakyRelu", X).run(negativeSlope="a"),
     "aclnnLeakyRelu: negativeSlope is 'a', must be a real number"),
    (lambda: aclnn.executor("leaky_relu", X).run(negative_slope="a"),
     "leaky_relu: negative_slope is 'a', must be a real number"),
    (lambda: aclnn.executor("aclnnLeakyReluBackward", G, X, 0.5, True).run(negativeSlope=-1),
     "aclnnLeakyReluBackward: negativeSlope is -1, which shapes the plan: make another executor "),
    (lambda: aclnn.executor("aclnnGelu", X, X.copy(), out=X.copy()),
     "aclnnGelu: the output is given twice, as out and by out="),
    (lambda: aclnn.executor("aclnnInplaceLeakyRelu", X.copy(), out=X.copy()),
     "aclnnInplaceLeakyRelu: the output is given twice, as selfRef and by out="),
    (lambda: aclnn.executor("aclnnInplaceLeakyRelu", X.copy()).run(out=X.copy()),
     "aclnnInplaceLeakyRelu takes no out: selfRef is written in place"),
    (lambda: aclnn.executor("aclnnInplaceLeakyRelu", X.copy()).run(np.broadcast_to(X, X.shape)),
     "aclnnInplaceLeakyRelu: selfRef is read-only"),
    (lambda: pickle.loads(pickle.dumps(aclnn.executor("aclnnGelu", X))).run(),
     "aclnnGelu: self has no array: give one to the run"),
])  # fmt: skip
def test_messages_have_canns_names(call, message):
    with pytest.raises(aclnn.AclnnError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_what_is_written_in_place_is_what_a_run_is_given():
    first, second = X.copy(), X.copy()
    ex = aclnn.executor("aclnnInplaceLeakyRelu", first, 0.5)
    assert ex.run() is first
    assert ex.run(second) is second
    np.testing.assert_array_equal(second, aclnn.leaky_relu(X, 0.5))
    np.testing.assert_array_equal(first, second)
    again = pickle.loads(pickle.dumps(ex))
    third = X.copy()
    assert again.run(selfRef=third) is third
    np.testing.assert_array_equal(third, second)


def test_of_several_results_those_in_place_follow_their_inputs():
    ones = np.ones(3, np.float32)
    ex = aclnn.executor("aclnnInplaceAddRmsNorm", X.copy(), G.copy(), ones)
    x, y = X.copy(), G.copy()
    results = ex.run(x, y)
    wanted = aclnn.add_rms_norm(X, G, ones)
    assert [one is x or one is y for one in results] == [True, False, True]
    for found, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_functions_stand_for_their_names():
    assert repr(aclnn.executor(aclnn.gelu, X)) == repr(aclnn.executor("gelu", X))
    again = pickle.loads(pickle.dumps(aclnn.executor(aclnn.gelu, X)))
    np.testing.assert_array_equal(again.run(X), aclnn.gelu(X))
    with pytest.raises(aclnn.AclnnError, match="executors are made of 'leaky_relu'"):
        aclnn.executor(aclnn.leaky_relu_, X)


def test_pickles_keep_the_names():
    ex = aclnn.executor("aclnnLeakyRelu", X, negativeSlope=0.25)
    ex.run(negativeSlope=0.5)
    again = pickle.loads(pickle.dumps(ex))
    assert list(again.inputs) == ["self"]
    np.testing.assert_array_equal(again.run(self=X), aclnn.leaky_relu(X, 0.5))
    joined = pickle.loads(pickle.dumps(aclnn.executor("aclnnCat", [X, G], 0)))
    np.testing.assert_array_equal(joined.run(X, G), np.concatenate([X, G]))


def test_runs_take_arrays_in_the_order_of_the_function():
    rng = np.random.default_rng(0)
    dy, x, other = rng.standard_normal((3, 2, 4)).astype(np.float32)
    rstd, gamma = np.float32([[2], [3]]), rng.standard_normal(4).astype(np.float32)
    executor = aclnn.executor("aclnnRmsNormGrad", dy, x, rstd, gamma)
    wanted = aclnn.rms_norm_backward(dy, other, gamma, rstd)
    for found, one in zip(executor.run(dy, other, rstd, gamma), wanted, strict=True):
        np.testing.assert_array_equal(found, one)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@pytest.mark.parametrize("form", ["div", aclnn.div])
@pytest.mark.parametrize("other", [2.5, np.float32([[2.5], [-0.75]])])
def test_quotients_take_a_rounding_mode(form, other, mode):
    rounded = {None: np.asarray, "trunc": np.trunc, "floor": np.floor}[mode]
    wanted = rounded(X / np.float32(other))
    np.testing.assert_array_equal(aclnn.executor(form, X, other, rounding_mode=mode).run(), wanted)
    np.testing.assert_array_equal(aclnn.executor(form, X, other, rounding_mode=mode).run(X), wanted)
    out = np.empty_like(X)
    assert aclnn.executor(form, X, other, out=out, rounding_mode=mode).run() is out
    made = pickle.loads(pickle.dumps(aclnn.executor(form, X, other, rounding_mode=mode)))
    given = [X] if isinstance(other, float) else [X, other]
    np.testing.assert_array_equal(made.run(*given), wanted)


def test_quotients_without_a_rounding_mode_are_those_of_div():
    np.testing.assert_array_equal(aclnn.executor("div", X, X + 7).run(), aclnn.div(X, X + 7))
    with pytest.raises(ValueError, match=r"^div: rounding_mode is 'up', must be None or one of"):
        aclnn.executor("div", X, X, rounding_mode="up")


def test_variants_have_executors_of_their_own():
    variants = [one for one in REGISTRY.values() if not one.functional]
    assert len(variants) > 30
    for variant in variants:
        owner = functional_owner(variant)
        form = examples.arguments(owner.example[0], owner.positional)
        given = {
            role: eval(text, {"np": np, "ml_dtypes": ml_dtypes}) for role, text in form.items()
        }
        if not variant.form_of and owner.number_form:
            given[owner.number_form[0]] = 2
        made = aclnn.executor(variant.name, **given)
        wanted = aclnn.executor(owner.name, **given)
        assert made.operator.name == wanted.operator.name
        for one, other in zip(*(ex.outputs.values() for ex in (made, wanted)), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
    np.testing.assert_array_equal(aclnn.executor("adds", X, 3).run(), X + 3)
    copied = pickle.loads(pickle.dumps(aclnn.executor("adds", X, 3)))
    np.testing.assert_array_equal(copied.run(G), G + 3)
    with pytest.raises(aclnn.AclnnError, match="must be a number; add takes tensors"):
        aclnn.executor("adds", X, X)
    with pytest.raises(aclnn.AclnnError, match="did you mean 'adds'"):
        aclnn.executor("addss", X, X)
