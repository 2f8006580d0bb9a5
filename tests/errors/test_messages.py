"""What people read who made a mistake: the words, the type of the exception, where its traceback ends."""

import os
import pickle
import subprocess
import sys
import traceback

import ml_dtypes
import numpy as np
import pytest
from setups import fresh

import aclnn
from aclnn.acl.errors import AclnnError, AclnnTypeError
from aclnn.cli import main

X = np.ones((2, 3), np.float32)
WIDE = np.ones((2, 3))
READ_ONLY = np.broadcast_to(np.float32(1), (2, 3))
WOVEN = np.lib.stride_tricks.as_strided(np.ones(9, np.float32), (2, 3), (4, 4))

# The calls, what is said of them, and whether that is about the kind of an argument.
MISTAKES = {
    "float64": (
        lambda: aclnn.gelu(WIDE),
        "gelu: self has dtype float64, must be float32, float16 or bfloat16; "
        "convert with self.astype(np.float32)",
        True,
    ),
    "float64 beside float32": (
        lambda: aclnn.gelu_backward(X, WIDE),
        "gelu_backward: dtypes promote to float64, must be float32, float16 or bfloat16: "
        "grad_output float32, self float64; convert with self.astype(np.float32)",
        True,
    ),
    "float64 twice": (
        lambda: aclnn.gelu_backward(WIDE, self=WIDE),
        "; convert with grad_output.astype(np.float32) and self.astype(np.float32)",
        True,
    ),
    "shapes": (
        lambda: aclnn.gelu_backward(X, np.ones((4, 3), np.float32)),
        "gelu_backward: shapes do not broadcast: grad_output (2, 3), self (4, 3)",
        False,
    ),
    "keyword": (
        lambda: aclnn.gelu(X, aproximate="tanh"),
        "gelu() got an unexpected keyword argument 'aproximate'; did you mean 'approximate'?",
        True,
    ),
    "keyword of another function": (
        lambda: aclnn.gelu(X, colour=1),
        "gelu() got an unexpected keyword argument 'colour'; it takes self, approximate, out",
        True,
    ),
    "option": (
        lambda: aclnn.gelu(X, approximate="tahn"),
        "gelu: approximate is 'tahn', must be 'none' or 'tanh'; did you mean 'tanh'?",
        False,
    ),
    "dim": (
        lambda: aclnn.softmax(X, 2),
        "softmax: dim is 2, must be from -2 to 1 for input of shape (2, 3)",
        False,
    ),
    "dim of the wrong kind": (
        lambda: aclnn.softmax(X, "rows"),
        "softmax: dim is 'rows', must be an int of 64 bits",
        True,
    ),
    "read-only out": (
        lambda: aclnn.gelu(X, out=READ_ONLY),
        "gelu: out is read-only, but is the output; "
        "use out=np.empty((2, 3), np.float32), or leave it out",
        False,
    ),
    "out of another dtype": (
        lambda: aclnn.gelu(X, out=np.empty((2, 3), np.int32)),
        "gelu: out has dtype int32, but must have that of self, float32; "
        "use out=np.empty((2, 3), np.float32), or leave it out",
        True,
    ),
    "out of another shape": (
        lambda: aclnn.gelu(X, out=np.empty((3, 2), np.float32)),
        "gelu: out has shape (3, 2), but must have that of self, (2, 3); "
        "use out=np.empty((2, 3), np.float32), or leave it out",
        False,
    ),
    "out that overlaps itself": (
        lambda: aclnn.gelu(X, out=WOVEN),
        "gelu: out has strides (1, 1) for shape (2, 3), which make elements of the output share memory; "
        "use out=np.empty((2, 3), np.float32), or leave it out",
        False,
    ),
    "complex": (
        lambda: aclnn.gelu(X.astype(np.complex64)),
        "gelu: self has dtype complex64, must be float32, float16 or bfloat16; "
        "take self.real, self.imag or abs(self)",
        True,
    ),
    "None": (lambda: aclnn.gelu(None), "gelu: self is None, must be an array", True),
    "strings": (
        lambda: aclnn.gelu(["a", "b"]),
        "gelu: self is a list of str, must be one of numbers",
        True,
    ),
    "too few": (
        lambda: aclnn.gelu_backward(X),
        "gelu_backward() missing required argument: 'self'",
        True,
    ),
    "too many": (
        lambda: aclnn.gelu_backward(X, X, X),
        "gelu_backward() takes 2 positional arguments but 3 were given",
        True,
    ),
    "number": (
        lambda: aclnn.leaky_relu(X, "a"),
        "leaky_relu: negative_slope is 'a', must be a real number",
        True,
    ),
    "in place": (
        lambda: aclnn.leaky_relu_(np.ones(3, np.int32)),
        "leaky_relu_: self has dtype int32, must be float32, float16, bfloat16 or float64; "
        "convert with self.astype(np.float32)",
        True,
    ),
    "indices": (
        lambda: aclnn.embedding(X, X),
        "; convert with indices.astype(np.int64)",
        True,
    ),
    "one of a list": (
        lambda: aclnn.cat([X, X.astype(np.uint16)], 0),
        "cat: ",
        True,
    ),
    "dtype": (
        lambda: aclnn.cast(X, "float31"),
        "cast: dtype is 'float31', must be a dtype: one of ",
        True,
    ),
    "executor": (
        lambda: aclnn.executor("gelu", WIDE),
        "gelu: self has dtype float64, must be float32, float16 or bfloat16; "
        "convert with self.astype(np.float32)",
        True,
    ),
    "executor in C's words": (
        lambda: aclnn.executor("aclnnGelu", WIDE),
        "aclnnGelu: self has dtype float64, must be float32",
        True,
    ),
    "operator": (
        lambda: aclnn.executor("gellu", X),
        "no operator is called 'gellu'; did you mean 'gelu'?",
        False,
    ),
    "operator in place": (
        lambda: aclnn.executor("relu_", X),
        "executors are made of 'relu', in place with out=, not of 'relu_'",
        False,
    ),
    "operator in C's words": (
        lambda: aclnn.executor("aclnnGellu", X),
        "no operator is called 'aclnnGellu'; did you mean 'aclnnGelu'?",
        False,
    ),
    "strategy": (
        lambda: aclnn.executor("gelu", X, strategy="exat"),
        "; did you mean 'exact'?",
        False,
    ),
    "axis": (
        lambda: aclnn.softmax(X, dims=-1),
        "softmax() got an unexpected keyword argument 'dims'; did you mean 'dim'?",
        True,
    ),
    "option of an executor": (
        lambda: aclnn.executor("leaky_relu", X, negative_slop=1),
        "leaky_relu does not take negative_slop; did you mean 'negative_slope'?",
        True,
    ),
    "dtypes by a C-shaped name": (
        lambda: aclnn.executor("aclnnGeluBackward", X, WIDE),
        "aclnnGeluBackward: dtypes promote to float64, must be float32, float16 or bfloat16: "
        "gradOutput float32, self float64; convert with self.astype(np.float32)",
        True,
    ),
    "operands by a C-shaped name": (
        lambda: aclnn.executor("aclnnGeluBackward", "x", X),
        "aclnnGeluBackward: gradOutput is 'x', must be an array",
        True,
    ),
    "numbers by a C-shaped name": (
        lambda: aclnn.executor("aclnnLeakyRelu", X, "x"),
        "aclnnLeakyRelu: negativeSlope is 'x', must be a real number",
        True,
    ),
    "arguments by a C-shaped name": (
        lambda: aclnn.executor("aclnnGeluBackward", self=X),
        "aclnnGeluBackward: gradOutput is missing",
        True,
    ),
    "run": (
        lambda: aclnn.executor("gelu", X).run(WIDE),
        "but the plan is for float32[2, 3] with strides (3, 1); convert with self.astype(np.float32)",
        True,
    ),
    "call of an executor": (
        lambda: aclnn.executor("gelu", X)(X[:1]),
        "gelu: self is float32[1, 3] with strides (3, 1), but the plan is for float32[2, 3]",
        False,
    ),
    "name of an operand": (
        lambda: aclnn.executor("gelu", X).run(slf=X),
        "gelu: no operand is called 'slf', they are self, out",
        False,
    ),
    "name of an operand to bind": (
        lambda: aclnn.executor("gelu", X).rebind({"slf": X}),
        "gelu: no operand is called 'slf', they are self, out",
        False,
    ),
    "arrays to bind": (
        lambda: aclnn.executor("gelu", X).rebind(3),
        "gelu: rebind takes a dict of arrays by name, not 3",
        True,
    ),
    "logger": (
        lambda: aclnn.set_verbose(1, logger=True),
        "logger is True, must be a logging.Logger or its name",
        True,
    ),
    "keyword of compile": (
        lambda: aclnn.compile(aclnn.gelu, thread=2),
        "compile() got an unexpected keyword argument 'thread'; did you mean 'threads'?",
        True,
    ),
    "keyword of a profile": (
        lambda: aclnn.executor("gelu", X).profile(repeats=2),
        "profile() got an unexpected keyword argument 'repeats'; did you mean 'repeat'?",
        True,
    ),
    "keyword of a setting": (
        lambda: aclnn.set_verbose(1, file=None),
        "set_verbose() got an unexpected keyword argument 'file'; it takes level, logger",
        True,
    ),
    "threads of a block": (
        lambda: aclnn.num_threads(0),
        "number of threads is 0, must be an int from 1 to 1024",
        False,
    ),
    "repeated runs": (
        lambda: aclnn.executor("gelu", X).profile(0),
        "repeat is 0, must be an int from 1 on",
        False,
    ),
    "budget": (
        lambda: aclnn.executor("gelu", X).plan.check(-1),
        "needs 0 bytes, 1 over the budget of -1",
        False,
    ),
    "strategy of a compiled function": (
        lambda: aclnn.compile(strategy="nave"),
        "; did you mean 'naive'?",
        False,
    ),
    "threads": (lambda: aclnn.set_num_threads("two"), "must be an int from 1 to 1024", False),
    "product": (
        lambda: aclnn.set_soc_version("Ascend310Q"),
        "; did you mean 'Ascend310P'?",
        False,
    ),
    "function": (lambda: aclnn.call(3, X, shape=3, dtype="f4"), "call: 3 is no function", True),
}


def caught(call):
    """The error of a call, raised from a line of this file."""
    with pytest.raises(Exception) as found:  # noqa: PT011
        call()
    return found.value


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained_in_the_callers_words(name):
    call, words, is_kind = MISTAKES[name]
    error = caught(call)
    assert words in str(error)
    assert error.message == str(error)
    assert type(error) is (AclnnTypeError if is_kind else AclnnError)
    assert isinstance(error, ValueError)
    assert error.status == aclnn.ACLNN_ERR_PARAM_INVALID
    for word in ("FLOAT", "DOUBLE", "BF16", "INT32", "COMPLEX"):
        assert word not in str(error)


@pytest.mark.parametrize("name", MISTAKES)
def test_tracebacks_end_at_the_callers_line(name):
    call, words, _ = MISTAKES[name]
    error = caught(call)
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.filename for frame in frames] == [__file__] * 2
    assert frames[-1].name == "<lambda>"
    shown = "".join(traceback.format_exception(error))
    assert shown.count("Traceback") == 1
    assert f"aclnn.{type(error).__name__}: " in shown
    assert words in shown


def test_uncaught_mistakes_end_at_the_programs_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import aclnn\nimport numpy as np\n\naclnn.gelu(np.zeros(3))\n")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    head, place, line, *rest = done.stderr.splitlines()
    assert head == "Traceback (most recent call last):"
    assert place == f'  File "{program}", line 4, in <module>'
    assert line.strip() == "aclnn.gelu(np.zeros(3))"
    assert rest[-1].startswith("aclnn.AclnnTypeError: gelu: self has dtype float64, must be ")


@pytest.mark.parametrize(("name", "meant"), [
    ("gellu", "gelu"), ("leakyrelu", "leaky_relu"), ("aclnnGellu", "aclnnGelu"), ("executer", "executor"),
    ("AclnError", "AclnnError"), ("acl_float", "ACL_FLOAT"), ("concatenate", "cat"), ("clip", "clamp"),
    ("multiply", "mul"),
])  # fmt: skip
def test_names_that_are_nearly_right_are_guessed(name, meant):
    error = caught(lambda: getattr(aclnn, name))
    assert type(error) is AttributeError
    assert str(error) == f"module 'aclnn' has no attribute {name!r}; did you mean {meant!r}?"
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.filename for frame in frames] == [__file__] * 2


def test_names_that_are_none_are_not_guessed():
    assert not hasattr(aclnn, "qqqqqq")
    assert str(caught(lambda: aclnn.qqqqqq)) == "module 'aclnn' has no attribute 'qqqqqq'"
    assert str(caught(lambda: aclnn._gelu)) == "module 'aclnn' has no attribute '_gelu'"


def test_errors_in_a_compiled_function_end_at_its_line():
    @aclnn.compile
    def block(x):
        return aclnn.gelu(x)

    error = caught(lambda: block(WIDE))
    assert isinstance(error, AclnnTypeError)
    assert str(error).startswith("gelu: self has dtype float64, must be ")
    assert "return aclnn.gelu(x)" in str(error)
    frames = traceback.extract_tb(error.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert frames[-1].name == "block"


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: x @ x, "matmul: input of shape (2, 3) has rows of 3 elements, other of"),
    (lambda x: x + x[:1, :2], "add: shapes do not broadcast: input (2, 3), other (1, 2)"),
    (lambda x: np.linalg.inv(x), "np.linalg.inv has no counterpart"),
])  # fmt: skip
def test_operators_of_a_compiled_function_are_named(function, words):
    error = caught(lambda: aclnn.compile(function)(X))
    assert type(error) is AclnnError
    assert str(error).startswith(words)
    assert traceback.extract_tb(error.__traceback__)[-1].filename == __file__


def test_defects_keep_their_frames(monkeypatch):
    """What is no mistake of the caller's is looked for inside."""
    from aclnn.compiler import phase_one

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(phase_one, "check_call", broken)
    error = caught(lambda: aclnn.gelu(np.ones((3, 5, 7), np.float32)))
    assert isinstance(error, ZeroDivisionError)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert "single_call" in names
    assert names[-1] == "broken"


def test_keywords_of_a_callers_function_are_its_own():
    def inner(x):
        return x

    @aclnn.compile
    def outer(x):
        return inner(y=x)

    for call in (lambda: outer(X), lambda: outer(y=X)):
        error = caught(call)
        assert type(error) is TypeError
        assert "got an unexpected keyword argument 'y'" in str(error)


def test_what_a_callers_function_raises_is_left_alone():
    def broken(x, out):
        raise KeyError("mine")

    error = caught(lambda: aclnn.call(broken, X, shape=3, dtype="f4"))
    assert type(error) is KeyError
    assert traceback.extract_tb(error.__traceback__)[-1].name == "broken"


def test_tensors_are_converted_as_pytorch_does():
    torch = pytest.importorskip("torch")
    wide = torch.ones(2, 3, dtype=torch.float64)
    error = caught(lambda: aclnn.gelu(wide))
    assert str(error).endswith("; convert with self.to(torch.float32)")
    narrow = torch.ones(2, 3)
    error = caught(lambda: aclnn.gelu(narrow, out=wide))
    assert str(error).endswith(
        "; use out=torch.empty((2, 3), dtype=torch.float32), or leave it out"
    )
    tracked = torch.ones(2, 3, requires_grad=True)
    error = caught(lambda: aclnn.gelu(tracked, out=narrow))
    assert str(error) == (
        "gelu: out= is not differentiable, but an argument requires grad; leave it out, or use "
        "torch.no_grad()"
    )
    for call in (
        lambda: aclnn.gelu(wide),
        lambda: aclnn.gelu(wide.requires_grad_()),
        lambda: aclnn.gelu(tracked, out=narrow),
    ):
        frames = traceback.extract_tb(caught(call).__traceback__)
        assert frames[-1].filename == __file__


def test_bfloat16_has_the_name_of_its_package():
    rows = np.ones((2, 3), ml_dtypes.bfloat16)
    ex = aclnn.executor("gelu", rows)
    assert str(caught(lambda: ex.run(X))).endswith("; convert with self.astype(ml_dtypes.bfloat16)")
    error = caught(lambda: aclnn.gelu(rows, out=X))
    assert "use out=np.empty((2, 3), ml_dtypes.bfloat16), or leave it out" in str(error)


def test_what_is_advised_helps():
    """Rules are tried with what messages propose, so no advice leads to the next error."""
    x = WIDE.astype(np.int32)
    for call, arguments in (
        (aclnn.gelu, {"self": x}),
        (aclnn.gelu_backward, {"grad_output": X, "self": WIDE}),
        (aclnn.gelu_backward, {"grad_output": WIDE, "self": x}),
        (aclnn.softmax, {"input": x, "dim": 0}),
        (aclnn.rms_norm, {"input": X, "normalized_shape": 3, "weight": WIDE[0]}),
    ):
        words = str(caught(lambda call=call, given=arguments: call(**given)))
        advice = words.partition("; convert with ")[2]
        assert advice, words
        for one in advice.split(" and "):
            arguments[one.partition(".")[0]] = eval(one, {"np": np, **arguments})
        call(**arguments)


def test_the_c_shaped_layer_keeps_canns_words():
    tensor = aclnn.aclCreateTensor((2, 3), aclnn.ACL_DOUBLE, None, 0, 2, (2, 3), WIDE)
    assert aclnn.aclnnGeluGetWorkspaceSize(tensor, tensor)[2] == aclnn.ACLNN_ERR_PARAM_INVALID
    line = aclnn.aclGetRecentErrMsg().splitlines()[0]
    assert line == (
        "aclnnGeluGetWorkspaceSize: self has dtype DOUBLE, must be FLOAT, FLOAT16 or BF16"
    )
    error = caught(lambda: aclnn.aclnnGeluGetWorkspaceSize(tensor))
    assert isinstance(error, TypeError)
    assert str(error) == "aclnnGeluGetWorkspaceSize() missing required argument: 'out'"
    assert traceback.extract_tb(error.__traceback__)[-1].filename == __file__


def test_the_c_shaped_layer_says_what_makes_its_objects():
    for arguments, words in (
        ((X, X), "self is ndarray, must be an aclTensor; aclnn.tensor(array) makes one"),
        ((aclnn.tensor(X), 0.1, aclnn.tensor(X.copy())),
         "negativeSlope is float, must be an aclScalar; aclCreateScalar(value, dataType) makes one"),
    ):  # fmt: skip
        name = "aclnnGelu" if len(arguments) == 2 else "aclnnLeakyRelu"
        assert getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)[2] != aclnn.ACLNN_SUCCESS
        line = aclnn.aclGetRecentErrMsg().splitlines()[0]
        assert line == f"{name}GetWorkspaceSize: {words}"


def test_errors_can_be_pickled():
    for call, _, is_kind in MISTAKES.values():
        error = caught(call)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is (AclnnTypeError if is_kind else AclnnError)
        assert (again.status, again.message) == (error.status, error.message)


@pytest.mark.parametrize("setting", [
    "ACLNN_ISA=v5", "ACLNN_NUM_THREADS=0", "ACLNN_SOC_VERSION=foo", "ACLNN_PLANNER=exat",
    "ACLNN_MATERIALIZE=maybe", "ACLNN_PLAN_CACHE=-1", "ACLNN_VERBOSE=3", "ACLNN_VERBOSE_TO=file",
])  # fmt: skip
def test_invalid_variables_end_at_the_programs_line(tmp_path, setting):
    program = tmp_path / "program.py"
    program.write_text("import aclnn\nimport numpy as np\n\naclnn.gelu(np.zeros(3, np.float32))\n")
    name, _, value = setting.partition("=")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False,
        env={**os.environ, name: value},
    )  # fmt: skip
    told = done.stderr.splitlines()
    assert sum(line.startswith("  File ") for line in told) == 1
    assert f"{name} is '{value}', must be " in told[-1]
    assert ("did you mean 'exact'?" in told[-1]) == (value == "exat")


@pytest.mark.parametrize(("words", "meant"), [
    (["inspct"], "'inspect'"), (["plan", "--strategy", "exat"], "'exact'"),
    (["config", "--jsn"], "'--json'"), (["inspect", "gelu", "--slf", "float32[3]"], "'--self'"),
    (["bench", "--operators", "gellu"], "'gelu'"),
])  # fmt: skip
def test_commands_guess_options_and_choices(capsys, words, meant):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: aclnn")
    assert error.endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(("name", "words"), [
    ("softmax", "'softmax' is row-wise, measured by --rows softmax"),
    ("adds", "'adds' cannot be measured alone"), ("bmm", "--products measures products of matrices"),
    ("scaled_dot_product_attention", "--attention measures attention"), ("nonsense", "'nonsense' is none that is known"),
])  # fmt: skip
def test_operators_that_the_matrix_lacks_are_told_what_measures_them(capsys, name, words):
    with pytest.raises(SystemExit):
        main(["bench", "--operators", name])
    error = capsys.readouterr().err.splitlines()[-1]
    assert words in error
    assert len(error) < 250


def test_commands_say_that_operands_have_names(capsys):
    with pytest.raises(SystemExit):
        main(["inspect", "gelu", "float32[3]"])
    assert capsys.readouterr().err.endswith(
        "unrecognized arguments: float32[3]; operands have names, such as --self float32[64,128]\n"
    )


def test_variables_that_are_none_are_told(monkeypatch, capsys):
    monkeypatch.setenv("ACLNN_THREADS", "2")
    aclnn.show_config()
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split() == (
        [
            "ACLNN_THREADS",
            "is",
            "set,",
            "but",
            "is",
            "no",
            "setting;",
            "did",
            "you",
            "mean",
            "'ACLNN_NUM_THREADS'?",
        ]
    )
    monkeypatch.delenv("ACLNN_THREADS")
    aclnn.show_config()
    assert "no setting" not in capsys.readouterr().out


def test_commands_guess_operators():
    code = "import sys; from aclnn.cli import main; sys.exit(main({}))"
    for command in (["ops", "gellu"], ["inspect", "gellu", "--self", "float32[3]"]):
        done = fresh(code.format(command))
        assert done.returncode == 2
        assert "did you mean 'gelu'?" in done.stderr
