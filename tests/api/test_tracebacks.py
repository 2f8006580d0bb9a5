"""Tracebacks of mistakes end at the caller's line, whichever public name is called wrongly."""

import enum
import pickle
import traceback

import numpy as np
import pytest

import aclnn

X = np.ones((2, 3), np.float32)
NO = object()


def compiled(function, *arrays):
    return aclnn.compile(function)(*arrays)


def called_back(x, out):
    raise KeyError("mine")


def user_code(x):
    return {}["missing"]


def recorded_call(x):
    return aclnn.call(called_back, x, shape=x.shape, dtype=x.dtype)


def inlined(x):
    return INNER(x)


INNER = aclnn.compile(user_code)
CHAIN = aclnn.compile(lambda x: aclnn.softmax(aclnn.gelu(x @ x.T), dim=-1))
GELU = aclnn.executor("gelu", X)
# What is wrong, and the kind of the exception.
WRONG = {
    "index out of bounds": (lambda: compiled(lambda x: x[9], X), IndexError),
    "too many indices": (lambda: compiled(lambda x: x[0, 0, 0], X), IndexError),
    "two ellipses": (lambda: compiled(lambda x: x[..., ...], X), IndexError),
    "mask": (lambda: compiled(lambda x: x[x > 0], X), aclnn.AclnnError),
    "attribute": (lambda: compiled(lambda x: x.foo, X), AttributeError),
    "method without counterpart": (lambda: compiled(lambda x: x.sort(), X), aclnn.AclnnError),
    "attribute that is set": (lambda: compiled(lambda x: setattr(x, "foo", 1), X), AttributeError),
    "length of no dimension": (lambda: compiled(lambda x: len(x[0, 0]), X), TypeError),
    "iteration over no dimension": (lambda: compiled(lambda x: list(x[0, 0]), X), TypeError),
    "items of another shape": (
        lambda: compiled(lambda x: x.__setitem__(0, np.ones(9, np.float32)), X),
        aclnn.AclnnError,
    ),
    "truth": (lambda: compiled(lambda x: 1 if x else 2, X), aclnn.AclnnError),
    "number": (lambda: compiled(lambda x: float(x), X), aclnn.AclnnError),
    "memory": (lambda: compiled(lambda x: np.asarray(x), X), aclnn.AclnnError),
    "shape": (lambda: compiled(lambda x: x.reshape(4, 4), X), aclnn.AclnnError),
    "operand": (lambda: compiled(lambda x: x + "a", X), aclnn.AclnnTypeError),
    "function of NumPy's": (lambda: compiled(lambda x: np.sort(x), X), aclnn.AclnnError),
    "too many arguments": (lambda: compiled(lambda x: x, X, X), TypeError),
    "what the function raises": (lambda: compiled(user_code, X), KeyError),
    "what one that it calls raises": (lambda: compiled(inlined, X), KeyError),
    "what a step raises": (lambda: compiled(recorded_call, X), KeyError),
    "what a step of an executor raises": (
        lambda: aclnn.compile(recorded_call).executor(X).run(),
        KeyError,
    ),
    "arguments of an executor": (lambda: CHAIN.executor("x"), AttributeError),
    "out of a function": (lambda: CHAIN(X, out=X), aclnn.AclnnError),
    "missing model": (lambda: aclnn.from_onnx("nothing.onnx"), FileNotFoundError),
    "folder for a model": (lambda: aclnn.from_onnx("/"), IsADirectoryError),
    "bytes of no model": (lambda: aclnn.from_onnx(b"junk"), aclnn.AclnnError),
    "no model": (lambda: aclnn.from_onnx(3), aclnn.AclnnError),
    "name of an operator": (lambda: aclnn.executor(NO), aclnn.AclnnError),
    "array of a run": (lambda: GELU.run(NO), aclnn.AclnnTypeError),
    "out of a run": (lambda: GELU.run(out=NO), aclnn.AclnnTypeError),
    "workspace": (lambda: CHAIN.executor(X).run(workspace=bytearray(1)), aclnn.AclnnError),
    "repetitions": (lambda: GELU.profile("x"), aclnn.AclnnError),
    "executor of a profile": (
        lambda: GELU.profile(repeat=1, warmup=0).lines(7),
        aclnn.AclnnError,
    ),
    "budget": (lambda: CHAIN.executor(X).plan.check(1), aclnn.AclnnError),
    "pool": (lambda: aclnn.WorkspacePool(-1), aclnn.AclnnError),
    "data of a tensor": (lambda: aclnn.tensor(X).with_data(NO), aclnn.AclnnError),
    "attribute of the package": (lambda: aclnn.gellu, AttributeError),
}


def inner_frames(error):
    """The frames of a traceback that are not of this file."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{f.filename}:{f.name}" for f in frames if f.filename != __file__]


@pytest.mark.parametrize("name", WRONG)
def test_tracebacks_end_at_the_callers_line(name):
    call, kind = WRONG[name]
    pytest.importorskip("onnx") if "model" in name else None
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert inner_frames(caught.value) == []
    assert str(caught.value)


@pytest.mark.parametrize("arguments", [
    ((NO,), {}), ((NO,) * 3, {}), ((), {}), ((), {"nonsense": 1}),
], ids=["one", "three", "none", "keyword"])  # fmt: skip
def test_no_public_name_shows_where_it_refuses(arguments):
    """Every name with arguments that mean nothing: refused, or with a status, and without frames."""
    values, named = arguments
    found = [getattr(aclnn, name) for name in dir(aclnn)]
    refused = 0
    for one in found:
        if not callable(one) or isinstance(one, enum.EnumMeta):
            continue
        try:
            one(*values, **named)
        except aclnn.AclnnError as error:
            refused += 1
            assert inner_frames(error) == [], one
        except TypeError:  # Python's own, of a wrong number of arguments
            pass
    assert refused > 200


def test_the_message_names_what_a_traced_array_has():
    with pytest.raises(AttributeError, match="no attribute 'reshap'; did you mean 'reshape'"):
        compiled(lambda x: x.reshap(3, 2), X)


def test_what_users_raise_keeps_their_own_frames():
    with pytest.raises(KeyError) as caught:
        compiled(inlined, X)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-3:] == ["compiled", "inlined", "user_code"]


def test_hints_of_attributes_are_left_to_python():
    """`hasattr` and loops wait for Python's own exceptions."""

    def function(x):
        assert not hasattr(x, "foo")
        return sum(row for row in x)

    np.testing.assert_array_equal(compiled(function, X), [2, 2, 2])


def test_errors_of_traced_arrays_can_be_pickled():
    with pytest.raises(IndexError) as caught:
        compiled(lambda x: x[9], X)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
