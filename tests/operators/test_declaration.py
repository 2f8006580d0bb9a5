"""Declarations that do not fit together are refused by name."""

import re
from dataclasses import replace

import numpy as np
import pytest
import samples
from aclnn.graph.strides import contiguous_strides
from setups import fresh

import aclnn
from aclnn import operators
from aclnn.operators import ENTRIES, REGISTRY, checks, consistency, entry
from aclnn.operators.sizes import has_rank
from aclnn.operators.words import require

GELU = REGISTRY["gelu"]


def test_an_unknown_kind():
    with pytest.raises(ValueError, match=r"^aclnnMine: slope is of kind 'scaler', must be one of "):
        entry("aclnnMine", "self slope:scaler out:out")


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("self slope:scalar out:out", r"^gelu: aclnnMine takes slope, but there are only .*self"),
        ("out:out", r"^gelu: aclnnMine does not take self$"),
    ],
)
def test_roles_that_the_operator_lacks_or_the_function(signature, message):
    with pytest.raises(ValueError, match=message):
        consistency.check(replace(GELU, entries=(entry("aclnnMine", signature),)))


@pytest.mark.parametrize(
    "rule",
    [
        checks.dtype_among("slef"),
        checks.same_dtype("out", "slef"),
        checks.promotes(("self", "slef")),
        checks.dtype_is_promoted("out", ("slef",)),
        checks.castable(("slef",)),
        checks.convertible_scalars("slef"),
        checks.same_shape("out", "slef"),
        checks.at_most_8_dims("self", "slef"),
        checks.done_if_empty("slef"),
        checks.broadcasts("self", "slef"),
        checks.broadcast_shape("out", ("self", "slef")),
        checks.not_negative_when("slef", "approximate"),
        checks.switch_among("slef", ("none",)),
    ],
    ids=lambda rule: rule.text,
)
def test_roles_in_rules_that_the_operator_lacks(rule):
    """They would show when the rule is checked, for the first call that comes to it."""
    with pytest.raises(ValueError, match=r"^gelu: the rule .* takes slef, but there are only "):
        consistency.check(replace(GELU, rules=(*GELU.rules, rule)))


def test_operands_that_are_no_inputs():
    with pytest.raises(ValueError, match=r"^gelu: operands grad_output are no inputs$"):
        consistency.check(replace(GELU, operands=("self", "grad_output")))


@pytest.mark.parametrize(
    ("call", "printed", "message"),
    [
        ("gelu(np.float32([0])", "array([0.])", "the example is not one: "),
        ("gelu", "array([0.])", "the example is not one: gelu is no call"),
        ("gelu(np.float32([0]), 1)", "array([0.])", "the example is not one: .* by position"),
        ("gelu(np.float32([0]))", "0.0", "the example is not one: "),
        ("elu(np.float32([0]))", "array([0.])", "the example calls elu$"),
        ("gelu(approximate='none')", "array([0.])", "the example does not give self$"),
        ("gelu(np.float32([0]), lambd=1)", "array([0.])", "the example takes lambd, but there"),
    ],
)
def test_examples_that_are_none(call, printed, message):
    """They would show when docstrings are made, those of all operators."""
    with pytest.raises(ValueError, match=f"^gelu: {message}"):
        consistency.check(replace(GELU, example=(call, printed)))


def test_examples_with_other_results():
    native = REGISTRY["native_rms_norm"]
    with pytest.raises(ValueError, match=r"^native_rms_norm: the example does not print 2 results"):
        consistency.check(
            replace(native, example=(native.example[0], "(array([1.]), array([1.]), array([1.]))"))
        )


def test_examples_of_one_pair():
    """They are judged as those of the operator are."""
    training = REGISTRY["fusion_attention"]
    wrong = replace(training.entries[1], example=("gelu(1)", training.entries[1].example[1]))
    with pytest.raises(ValueError, match=r"^fusion_attention: the example calls gelu"):
        consistency.check(replace(training, entries=(training.entries[0], wrong)))


SLOPE = REGISTRY["leaky_relu"]
SUM = REGISTRY["add"]
NUMBER = SLOPE.attributes[0]
BARE = {"rules": (), "entries": ()}


@pytest.mark.parametrize(
    ("operator", "changes", "message"),
    [
        (GELU, BARE | {"outputs": ("self",)}, "self is declared twice"),
        (GELU, BARE | {"outputs": tuple("abcdefghijklmnopq")}, "there are 17 outputs, at most 16"),
        (
            SLOPE,
            BARE | {"attributes": tuple(replace(NUMBER, role=f"a{n}") for n in range(9))},
            "there are 9 options that are numbers, at most 8",
        ),
        (GELU, {"outputs": (), "rules": (), "entries": ()}, "there is no output"),
        (GELU, {"inputs": (), "rules": (), "entries": ()}, "there is no input that says what"),
        (SUM, {"operands": ("input",)}, "operands are not the inputs in another order"),
        (SUM, {"lists": ("out",)}, "out, which are lists, are no inputs"),
        (SUM, {"number_form": ("alpha", "adds")}, "alpha, which may be a number, is no input"),
        (GELU, {"functional": False, "entries": ()}, "it has neither a functional form"),
        (SLOPE, {"attributes": (replace(NUMBER, kind="number"),)}, "option .* is of kind 'number'"),
        (SLOPE, {"attributes": (replace(NUMBER, default="x"),)}, "option .* has the default 'x'"),
        (SLOPE, {"attributes": (replace(NUMBER, facts=("odd",)),)}, "option .* has facts odd"),
        (
            GELU,
            {"attributes": (replace(GELU.attributes[0], default="erf"),)},
            "option approximate has the default 'erf'",
        ),
        (
            GELU,
            {"attributes": (replace(GELU.attributes[0], facts=("one",)),)},
            "option approximate has facts, which only numbers have",
        ),
        (GELU, {"parameters": ("slef",)}, "parameters slef are neither inputs nor options"),
        (GELU, {"parameters": ("self", "self")}, "parameter self is listed twice"),
        (GELU, {"parameters": ("approximate", "self")}, "parameter approximate has a default, but"),
        (
            REGISTRY["softmax"],
            {"entries": (entry("aclnnMine", "self=input out:out"),), "example": None},
            "aclnnMine does not take dim, which has no default",
        ),
        *[
            (GELU, {"entries": (entry(name, words, **fixed),)}, f"{name} {message}")
            for name, words, fixed, message in (
                ("aclnnMine", "self self out:out", {}, "takes self twice"),
                (
                    "aclnnMine",
                    "self:scalar out:out",
                    {},
                    "takes self as scalar, but it is an input",
                ),
                ("aclnnMine", "self out", {}, "takes out as input, but it is an output"),
                (
                    "aclnnMine",
                    "self approximate:bool out:out",
                    {},
                    "takes approximate as bool, but",
                ),
                ("aclnnMine", "self", {}, "has 0 parameters that are written, for 1 results"),
                ("homemade", "self out:out", {}, "has a name that does not begin with aclnn"),
                ("aclnnMine", "self out:out", {"approximate": "erf"}, "fixes approximate to 'erf'"),
            )
        ],
        (
            REGISTRY["cat"],
            {"entries": (entry("aclnnMine", "tensors dim:int out:out"),)},
            "aclnnMine takes tensors as input, but it is a list",
        ),
    ],
)
def test_parts_that_do_not_fit_together(operator, changes, message):
    with pytest.raises(ValueError, match=f"^{operator.name}: {message}"):
        consistency.check(replace(operator, **changes))


# A process whose operators are declared in one more folder than usual.
WITH_FOLDER = """
import importlib.util, sys, warnings
spec = importlib.util.find_spec("aclnn.operators")
spec.submodule_search_locations.append({folder!r})
sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    spec.loader.exec_module(module)
import numpy as np
import aclnn
aclnn.operators = module
for warning in said:
    print(warning.category.__name__, warning.message)
x = np.float32([-1, 2])
"""
DECLARED = """
from aclnn.operators.checks import dtype_among, same_dtype, same_shape
from aclnn.operators.declaration import Operator, entry
homemade = Operator(
    name={name!r}, summary="A rectified linear unit.", expression="max(self, 0)", formula="relu",
    inputs=("self",), entries=(entry({entry!r}, "self out:out"),),
    rules=(dtype_among("self"), same_dtype("out", "self"), same_shape("out", "self")),
    {more}
)
"""


def declared(name="homemade", item="aclnnMine", more=""):
    return DECLARED.format(name=name, entry=item, more=more)


def in_a_process_with(folder, modules, code):
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    done = fresh(WITH_FOLDER.format(folder=str(folder)) + code)
    assert done.stderr == ""
    return done.stdout.splitlines()


BROKEN = {
    "def odd(:": "SyntaxError: invalid syntax",
    "import no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
    "raise KeyError('odd')": "KeyError: 'odd'",
    declared(more="operands=('x',)"): "ValueError: homemade: operands x are no inputs",
    declared(
        item="homemade"
    ): "ValueError: homemade: homemade has a name that does not begin with aclnn",
    declared(more="example=('homemade(', '')"): "ValueError: homemade: the example is not one",
    declared(name="gelu"): "ValueError: gelu is declared twice",
    declared(item="aclnnRelu"): "ValueError: aclnnRelu is declared twice",
    declared(
        more="number_form=('self', 'mines')"
    ): "ValueError: homemade: there is no operator mines",
}


def test_broken_modules_take_no_others_along(tmp_path):
    """Every other operator works, in all layers, and it is said what is wrong with these."""
    code = """
from aclnn.operators import BROKEN, ENTRIES, REGISTRY
print(*BROKEN)
try:
    aclnn.homemade
except AttributeError as error:
    print(error)
print(aclnn.leaky_relu(x, 0.5), aclnn.also_mine(x), aclnn.executor("relu", x).run())
print(len(REGISTRY), len(ENTRIES), all(hasattr(aclnn, name) for name in ENTRIES))
print(all(hasattr(aclnn, name) for one in REGISTRY.values() for name in one.functional_names))
"""
    broken = {f"zz_broken{n}": text for n, text in enumerate(BROKEN)}
    modules = broken | {"whole": declared("also_mine", "aclnnAlsoMine")}
    lines = in_a_process_with(tmp_path, modules, code)
    *warned, listed, unknown, results, counts, functional = lines
    for name, line, message in zip(broken, warned, BROKEN.values(), strict=True):
        said = f"RuntimeWarning the operators of aclnn.operators.{name} are left out: {message}"
        assert line.startswith(said)
        assert f"{name}: {message.partition(': ')[2]}" in unknown
    assert listed.split() == list(broken)
    assert unknown.startswith(
        "module 'aclnn' has no attribute 'homemade'; operators of these modules"
    )
    assert results == "[-0.5  2. ] [0. 2.] [0. 2.]"
    assert counts == f"{len(REGISTRY) + 1} {len(ENTRIES) + 1} True"
    assert functional == "True"


def test_nothing_is_broken():
    assert not operators.BROKEN
    with pytest.raises(AttributeError, match=r"^module 'aclnn' has no attribute 'homemade'$"):
        _ = aclnn.homemade


def test_rules_that_ask_for_an_absent_operand_hear_its_name():
    call = checks.Call({}, {}, {}, {}, "Ascend910B")
    for asked in (call.shape, call.dtype):
        with pytest.raises(KeyError, match="the call has no out"):
            asked("out")


def test_words_state_the_rules_of_their_functions_in_order():
    stated = require(
        "x, y: FLOATING INT64; cann out: dtype of x; scale: FLOAT or dtype of x; out: cast of x, y; "
        "x, y: promote to NUMERIC; x: 1 dim; x: 2 to 3 dims; x, y: at most 8 dims; dim: axis of x; "
        "x, y: broadcast; out: broadcast of x, y; alpha: numbers; x, out: if empty ends; x, y: one format"
    )
    wide = (*checks.FLOATING, checks.aclDataType.ACL_INT64)
    expected = (
        checks.dtype_among("x", wide),
        checks.dtype_among("y", wide),
        checks.of_cann(checks.same_dtype("out", "x")),
        checks.dtype_like_or("scale", "x"),
        checks.castable(("x", "y")),
        checks.promotes(("x", "y"), checks.NUMERIC),
        has_rank("x", 1),
        has_rank("x", 2, 3),
        checks.at_most_8_dims("x", "y"),
        checks.axis_within("dim", "x"),
        checks.broadcasts("x", "y"),
        checks.broadcast_shape("out", ("x", "y")),
        checks.convertible_scalars("alpha"),
        checks.ends_if_empty("x", "out"),
        checks.same_format("x", "y"),
    )
    assert [(r.text, r.roles) for r in stated] == [(r.text, r.roles) for r in expected]


@pytest.mark.parametrize("text", ["x: FLOATING INT63", "x: shape off y", "x: at most 9 dims"])
def test_words_that_are_unknown(text):
    with pytest.raises(ValueError, match="are neither words of declarations nor dtypes"):
        require(text)


def test_results_are_what_rules_state_of_them():
    rules = require(
        "cann out: dtype of index; out: cast of input, other; index: INT64; index: shape of input"
    )
    known = checks.inferred((*rules, *require("out: broadcast of input, other")), ("out", "index"))
    specs = (("input", "FLOAT16", (4, 1)), ("other", "FLOAT", (3,)))
    tensors = {
        role: checks.TensorSpec(
            checks.aclDataType[f"ACL_{dtype}"], shape, contiguous_strides(shape)
        )
        for role, dtype, shape in specs
    }
    found = known(checks.Call(tensors, {}, {}, {}, "Ascend910B"))
    assert found == {
        "out": (checks.aclDataType.ACL_FLOAT, (4, 3)),
        "index": (checks.aclDataType.ACL_INT64, (4, 1)),
    }
    assert checks.inferred(rules, ("out", "index")) is None  # nothing states the shape of `out`


# --- Formulas for people --------------------------------------------------------------------------

WRITTEN = {"·": "*", "²": "**2", "^": "**", "√input": "sqrt(input)", "⌊": "floor(", "⌈": "ceil("}
WRITTEN |= {"⌋": ")", "⌉": ")", "log₂": "log2", "log₁₀": "log10", "between them": "else"}
MEANT = {"ln": np.log, "max": np.maximum, "min": np.minimum}
MEANT |= {one.__name__: one for one in (np.ceil, np.cos, np.exp, np.floor, np.log, np.log10)}
MEANT |= {one.__name__: one for one in (np.log2, np.sin, np.sqrt, np.tanh, np.trunc)}
IN_WORDS = ("trunc", "erf", "erfinv", "logit", "logit_backward")
FORMULAS = [
    name
    for name, operator in REGISTRY.items()
    if operator.expression and operator.functional and isinstance(operator.formula, str)
]


def value_of(text, names):
    """The value of an operator's text: cases after one another, then what its own names stand for."""
    for written, meant in WRITTEN.items():
        text = text.replace(written, meant)
    *cases, rest = text.split("; ")
    rest, *further = re.split(r", (?=\w+ = )", rest)
    for one in reversed(further):
        name, _, value = one.partition(" = ")
        names = {**names, name: eval(value, {**MEANT, **names})}
    found = np.zeros(())
    for case in reversed([*cases, rest]):
        condition, _, value = case.removeprefix("else ").rpartition(": ")
        value = eval(value, {**MEANT, **names})
        condition = re.sub(r"(\S+ <) (\S+) (< \S+)", r"(\1 \2) & (\2 \3)", condition)
        tests = [one.replace(" = ", " == ") for one in condition.split(" or ")]
        holds = eval(" | ".join(f"({one})" for one in tests) if condition else "True", {**names})
        found = np.where(holds, value, found)
    return found


@pytest.mark.parametrize("name", [name for name in FORMULAS if name not in IN_WORDS])
def test_formulas_for_people_are_what_is_computed(name):
    operator, rng = REGISTRY[name], np.random.default_rng(5)
    numbers = {role: rng.uniform(-4, 4, (9, 30)) for role in operator.inputs}
    inputs = {role: one.astype(np.float32) for role, one in numbers.items()}
    inputs[operator.inputs[-1]][0] = 0
    inputs[operator.inputs[0]][1] = 0
    options = samples.options(name) | {
        one.role: one.default + 0.25 for one in operator.scalars if isinstance(one.default, float)
    }
    names = {role: one.astype(float) for role, one in inputs.items()} | options
    # A gradient is g, the operand behind it x or y.
    x, g = names[operator.inputs[-1]], names[operator.inputs[0]]
    x = x if g is x or operator.inputs[0] == "grad_output" else g
    short = {"x": x, "y": x, "g": g, "input": g}
    with np.errstate(all="ignore"):
        wanted = value_of(operator.expression, short | {"value": 1} | names)
    found = samples.run(name, inputs, **options)
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), 1e-5, 1e-6)
