"""PyTorch: registered operators, gradients, tracing, and what tensors cost."""

import copy
import inspect
import itertools
import os
import pathlib
import pickle
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import samples
from cases import each

import aclnn
from aclnn.operators import REGISTRY

torch = pytest.importorskip("torch")
from torch.utils._pytree import tree_leaves, tree_map_only  # noqa: E402

import aclnn.torch as at  # noqa: E402
from aclnn.api.functional import HANDLES_BY_NAME  # noqa: E402
from aclnn.torch import formulas  # noqa: E402
from aclnn.torch.recording import is_recordable  # noqa: E402
from aclnn.torch.registration import SCHEMAS  # noqa: E402

FUNCTIONAL = [s.name for s in SCHEMAS.values() if not s.in_place]
IN_PLACE = [s.name for s in SCHEMAS.values() if s.in_place]
# PyTorch's forward mode compiles its formulas so.
OF_JIT = r"ignore:.torch\.jit\.script. is deprecated:FutureWarning"


needs_exchange = pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="PyTorch before 2.10"
)


def tensor(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 0.8 + 0.1).to(dtype)


def arguments_for(name):
    """Positional arguments and those by name."""
    schema = SCHEMAS[name]
    operator = schema.operator
    given = {role: as_tensors(one) for role, one in samples.inputs(operator.name).items()}
    options = samples.options(operator.name)
    for attribute in operator.attributes:
        if attribute.kind == "dtype" and attribute.role in options:
            kind = np.dtype(options[attribute.role]).name
            options[attribute.role] = getattr(torch, kind)
        if attribute.kind == "ints" and isinstance(options.get(attribute.role), int):
            options[attribute.role] = [options[attribute.role]]
    values = schema.bound((), given | options)
    args, named = schema.arguments(values)
    return tuple(args), {
        role: one for role, one in named.items() if role in options or role in given
    }


def as_tensors(given):
    return [*map(torch.from_numpy, given)] if isinstance(given, list) else torch.from_numpy(given)


def tracked(name):
    """Arguments of which those that are floating require grad."""
    args, named = arguments_for(name)
    roles = SCHEMAS[name].positional
    pairs = zip(roles, args, strict=True)
    return [one if role in STATISTICS else requiring_grad(one) for role, one in pairs], named


STATISTICS = ("running_mean", "running_var")  # have no gradient in PyTorch either


def requiring_grad(given):
    if isinstance(given, list) and isinstance(given[0], torch.Tensor):
        return [requiring_grad(one) for one in given]
    floating = isinstance(given, torch.Tensor) and given.is_floating_point()
    return given.requires_grad_() if floating else given


def op(name):
    return getattr(torch.ops.aclnn, name)


def results_of(made):
    several = made if isinstance(made, tuple | list) else (made,)
    return [one for one in several if one is not None]


# --- Registration -------------------------------------------------------------------------------


def test_every_functional_form_is_registered():
    assert [*SCHEMAS] == [name for o in REGISTRY.values() for name in o.functional_names]
    assert all(op(name).overloads() == ["default"] for name in SCHEMAS)


def has_gradient(name):
    operator = SCHEMAS[name].operator
    return bool(operator.gradient or operator.differentiated_as)


DIFFERENTIABLE = [name for name in FUNCTIONAL if has_gradient(name)]

# Of what gradients are made of without gradients of its own, the second derivative says that there is none.
FORMULAS = [formula for o in REGISTRY.values() for formula in o.gradient.values()]
NAMED = {*re.findall(r"\w+(?=\()", " ".join([*FORMULAS, inspect.getsource(formulas)]))}
HAVE_NO_SECOND = {name for name in FUNCTIONAL if name in NAMED and not has_gradient(name)}


def test_operators_have_gradients_unless_results_are_whole():
    """Or unless they are gradients themselves, or their declarations say that they have none."""
    for name in FUNCTIONAL:
        operator = SCHEMAS[name].operator
        assert operator.differentiable or not has_gradient(name), name
        if has_gradient(name) or not operator.differentiable or name in HAVE_NO_SECOND:
            continue
        args, named = arguments_for(name)
        first, *_ = results_of(op(name)(*args, **named))
        assert not first.is_floating_point(), f"the declaration of {name} lacks a `gradient`"


CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")


@pytest.mark.parametrize("name", SCHEMAS)
def test_opcheck(name):
    args, named = arguments_for(name)
    # PyTorch's own functionalization has a parameter of that name, and stumbles over another.
    clashes = name in IN_PLACE and "mode" in SCHEMAS[name].parameters
    checks = CHECKS if clashes else (*CHECKS, "test_aot_dispatch_dynamic")
    torch.library.opcheck(op(name).default, args, named, test_utils=checks)


# PyTorch 2.14 reads `grad` of what is no leaf, and hides the warning where it is shown, not where it is an error.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_opcheck_of_tensors_that_require_grad(name):
    args, named = tracked(name)
    torch.library.opcheck(op(name).default, tuple(args), named)


# --- Gradients ----------------------------------------------------------------------------------


def in_double(given):
    """Arguments in float64, as far as they are floating, with more digits than float32 has."""
    if isinstance(given, list):
        return [in_double(one) for one in given]
    if isinstance(given, torch.Tensor) and given.is_floating_point():
        return (given.detach().double() * (1 + 1e-10)).requires_grad_(given.requires_grad)
    return given


def takes_double(name):
    """Whether the operator and those that its gradient calls compute in float64."""
    try:
        args, named = tracked(name)
        made = results_of(getattr(aclnn, name)(*in_double(args), **named))[0]
        made.sum().backward()
    except aclnn.AclnnError:
        return False
    return made.dtype == torch.float64 and not made.float().double().equal(made)


def to_be_differentiated(name, function):
    """A function of tensors, these, and how accurate finite differences are: those of float64, or of
    float32 where the operator does not take float64."""
    double = takes_double(name)
    given, named = tracked(name)
    given = in_double(given) if double else given
    if name == "cast":
        given[1] = torch.float64 if double else torch.float32
    lists = isinstance(given[0], list)
    tensors = given[0] if lists else [x for x in given if getattr(x, "requires_grad", False)]

    def run(*changed):
        places = iter(changed)
        if lists:
            args = [[*changed], *given[1:]]
        else:
            args = [next(places) if getattr(x, "requires_grad", False) else x for x in given]
        return [one for one in results_of(function(*args, **named)) if one.requires_grad]

    if double:
        return run, tensors, {"atol": 1e-5}
    step = 5e-2 if tensors[0].dtype == torch.float16 else 1e-2
    return run, tensors, {"eps": step, "atol": 2 * step, "rtol": 2 * step}


@pytest.mark.filterwarnings("ignore:Input #:UserWarning")
@pytest.mark.parametrize("call", ["functional", "registered"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_finite_differences(name, call):
    function = getattr(at, name) if call == "functional" else op(name)
    run, tensors, accuracy = to_be_differentiated(name, function)
    assert torch.autograd.gradcheck(run, tensors, **accuracy)


@pytest.mark.filterwarnings("ignore:Input #:UserWarning")
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_derivatives_are_right_or_say_that_there_are_none(name):
    run, tensors, accuracy = to_be_differentiated(name, getattr(at, name))
    try:
        assert torch.autograd.gradgradcheck(run, tensors, **accuracy)
    except NotImplementedError as error:
        assert str(error).partition(" ")[0].removeprefix("aclnn.") in HAVE_NO_SECOND
    except RuntimeError as error:
        assert str(error) == "derivative for aten::native_group_norm_backward is not implemented"


DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64)


def in_dtype(given, dtype):
    """Arguments of which those that are floating have a dtype."""
    if isinstance(given, list):
        return [in_dtype(one, dtype) for one in given]
    if isinstance(given, torch.Tensor) and given.is_floating_point():
        return given.detach().to(dtype).requires_grad_(given.requires_grad)
    return given


@pytest.mark.filterwarnings("ignore")
@each("name", DIFFERENTIABLE)
def test_what_runs_where_gradients_are_wanted_has_some(name):
    """In every dtype, alone and beside float32: refused at once, or differentiated."""
    given, named = tracked(name)
    tried = [[in_dtype(one, dtype) for one in given] for dtype in DTYPES]
    for place in range(len(given)):
        for dtype in DTYPES[1:]:
            mixed = [
                in_dtype(one, dtype if k == place else DTYPES[0]) for k, one in enumerate(given)
            ]
            tried.append(mixed)
    differentiated = 0
    for args, function in itertools.product(tried, (getattr(at, name), op(name))):
        try:
            results = results_of(function(*args, **named))
        except (aclnn.AclnnError, RuntimeError):
            continue
        tensors = [one for one in tree_leaves(args) if getattr(one, "requires_grad", False)]
        results = [one for one in results if one.requires_grad]
        if not results:
            continue
        ones = [torch.ones_like(one) for one in results]
        found = torch.autograd.grad(results, tensors, ones, allow_unused=True)
        for gradient, one in zip(found, tensors, strict=True):
            assert gradient is None or (gradient.dtype, gradient.shape) == (one.dtype, one.shape)
        differentiated += 1
    assert differentiated


@pytest.mark.parametrize("name", ["elu", "hardtanh", "softmax", "log_softmax"])
def test_gradients_in_float64_are_pytorchs(name):
    peers = [tensor(3, 4).sub(0.5).mul(3).double().requires_grad_() for _ in range(2)]
    options = {"dim": 1} if "softmax" in name else {}
    grad = tensor(3, 4, dtype=torch.float64, seed=7)
    for function, x in zip(
        (getattr(at, name), getattr(torch.nn.functional, name)), peers, strict=True
    ):
        (gradient,) = torch.autograd.grad(function(x, **options), x, grad, create_graph=True)
        gradient.square().sum().backward()
    torch.testing.assert_close(peers[0].grad, peers[1].grad, rtol=1e-13, atol=1e-15)


PEERS = {
    "elu": torch.nn.functional.elu,
    "gelu": torch.nn.functional.gelu,
    "hardshrink": torch.nn.functional.hardshrink,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "logit": torch.logit,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "maximum": torch.maximum,
    "layer_norm": torch.nn.functional.layer_norm,
    "rms_norm": torch.nn.functional.rms_norm,
    "matmul": torch.matmul,
    "addmm": torch.addmm,
    "div": torch.div,
}


@pytest.mark.parametrize("name", PEERS)
def test_gradients_are_pytorchs(name):
    (ours, named), (theirs, _) = tracked(name), tracked(name)
    made, wanted = getattr(aclnn, name)(*ours, **named), PEERS[name](*theirs)
    torch.testing.assert_close(made, wanted)
    grad = tensor(*made.shape, seed=7)
    made.backward(grad)
    wanted.backward(grad)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-5)


# Forms that take over their calls themselves from the second one on.
RECORDED = [name for name in DIFFERENTIABLE if is_recordable(SCHEMAS[name])]


def gradients_of(name):
    """The type of the node in the graph, the gradients of a call, and those of their sum."""
    args, named = tracked(name)
    inputs = [one for one in args if isinstance(one, torch.Tensor) and one.requires_grad]
    made = getattr(aclnn, name)(*args, **named)
    grad = tensor(*made.shape, seed=7).to(made.dtype)
    found = torch.autograd.grad(made, inputs, grad, create_graph=True, allow_unused=True)
    again = [one for one in found if one is not None and one.requires_grad]
    if {name, f"{name}_backward"} & HAVE_NO_SECOND or not again:
        return type(made.grad_fn), found
    total = sum([one.float().sum() for one in again])
    return type(made.grad_fn), (*found, *torch.autograd.grad(total, inputs, allow_unused=True))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_calls_have_the_same_gradients(name):
    HANDLES_BY_NAME[name].recorded = None
    (first, wanted), (second, found) = gradients_of(name), gradients_of(name)
    assert first is not second
    assert gradients_of(name)[0] is second
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("turn", ["first", "later"])
def test_broadcast_operands_get_gradients_of_their_shape(turn):
    x, y = tensor(3, 4).requires_grad_(), tensor(4, seed=1).half().requires_grad_()
    if turn == "first":
        HANDLES_BY_NAME["mul"].recorded = None
    aclnn.mul(x, y).sum().backward()
    assert (y.grad.shape, y.grad.dtype) == ((4,), torch.float16)
    torch.testing.assert_close(y.grad.float(), x.detach().sum(0), atol=2e-3, rtol=1e-3)


def test_numbers_are_operands():
    x = tensor(3).requires_grad_()
    for _ in range(2):
        made = aclnn.mul(x, 3.0).sum() + aclnn.add(x, 1, alpha=2).sum()
        (gradient,) = torch.autograd.grad(made, x)
        torch.testing.assert_close(gradient, torch.full((3,), 4.0))


def test_recorded_calls_keep_tensors_where_hooks_see_them():
    x, seen = tensor(4).requires_grad_(), []
    keep = torch.autograd.graph.saved_tensors_hooks(
        lambda one: seen.append(one) or one, lambda one: one
    )
    for _ in range(2):
        with keep:
            made = aclnn.silu(x)
    assert [one.data_ptr() for one in seen] == [x.data_ptr()] * 2
    made = aclnn.silu(x)
    with torch.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


@pytest.mark.parametrize("base", [-2.0, 0.0, 2.5])
@pytest.mark.parametrize("as_tensor", [False, True], ids=["number", "tensor"])
def test_exponents_of_any_base_have_gradients(base, as_tensor):
    gradients = []
    for power in (aclnn.pow, torch.pow):
        exponent = torch.tensor([1.0, -1.0, 0.0, 0.5]).requires_grad_()
        power(torch.full((4,), base) if as_tensor else base, exponent).sum().backward()
        gradients.append(exponent.grad)
    torch.testing.assert_close(*gradients, equal_nan=True)


def test_a_second_derivative_works_or_says_that_there_is_none():
    x = tensor(4).double().requires_grad_()
    (first,) = torch.autograd.grad(aclnn.exp(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, torch.exp(x))
    y = tensor(4).requires_grad_()
    for mish in (aclnn.mish, torch.ops.aclnn.mish):
        (first,) = torch.autograd.grad(mish(y).sum(), y, create_graph=True)
        with pytest.raises(NotImplementedError, match="mish_backward has no derivative"):
            torch.autograd.grad(first.sum(), y)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_forms_tell_autograd(name):
    given, named = arguments_for(name)
    wanted = copy.deepcopy(given)
    schema = SCHEMAS[name]
    places = [schema.parameters.index(role) for role in schema.written.values()]
    before = [given[place]._version for place in places]
    made = results_of(getattr(aclnn, name)(*given, **named))
    op(name)(*wanted, **named)
    for place, version in zip(places, before, strict=True):
        assert any(one is given[place] for one in made)
        assert given[place]._version == version + 1
        assert wanted[place]._version > version
        torch.testing.assert_close(given[place], wanted[place])


@pytest.mark.parametrize("call", [aclnn.leaky_relu_, torch.ops.aclnn.leaky_relu_])
def test_in_place_forms_are_differentiable(call):
    x, peer = (tensor(4).sub(0.5).requires_grad_() for _ in range(2))
    y = x * 2
    call(y, 0.25)
    y.sum().backward()
    torch.nn.functional.leaky_relu_(peer * 2, 0.25).sum().backward()
    torch.testing.assert_close(x.grad, peer.grad)
    with pytest.raises(RuntimeError, match="leaf"):
        call(x, 0.25)


def test_a_tensor_that_was_changed_has_no_gradient_of_what_it_was():
    x = tensor(4).requires_grad_()
    y = x * 1
    z = aclnn.gelu(y)
    aclnn.relu(torch.ones(4), out=y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_out_is_not_differentiable():
    x, out = tensor(4).requires_grad_(), torch.empty(4)
    with pytest.raises(aclnn.AclnnError, match="out= is not differentiable"):
        aclnn.gelu(x, out=out)
    with torch.no_grad():
        assert aclnn.gelu(x, out=out) is out
    torch.testing.assert_close(out, torch.nn.functional.gelu(x.detach()))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_parameters_without_gradients(mode):
    weight = torch.nn.Parameter(tensor(4))
    with mode():
        made = aclnn.mul(weight, aclnn.gelu(weight))
        assert aclnn.executor("gelu", weight).run() is not None
    assert not made.requires_grad
    torch.testing.assert_close(made, weight.detach() * torch.nn.functional.gelu(weight.detach()))


# --- Tensors without a detour -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64,
                                   torch.int8, torch.uint8, torch.int32, torch.int64])  # fmt: skip
def test_tensors_of_all_dtypes(dtype):
    x = (tensor(2, 3) * 10).to(dtype)
    made = aclnn.add(x, x)
    assert made.dtype == dtype
    torch.testing.assert_close(made, x + x)
    assert aclnn.lt(x, x + 1).dtype == torch.bool


LAYOUTS = {
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.mT,
    "permuted": lambda x: x.permute(2, 0, 3, 1),
    "with gaps": lambda x: x[:, :, ::2],
    "repeated": lambda x: x[:, :1].expand(2, 3, 4, 5),
    "one channel": lambda x: x[:, :1].to(memory_format=torch.channels_last),
    "reversed dimensions of one": lambda x: x[:1, :, :1],
    "empty": lambda x: x[:0].mT,
}


def strides_of(given):
    """Strides of dimensions with more than one element; those of others say nothing."""
    return [(n, s) for n, s in zip(given.shape, given.stride(), strict=True) if n != 1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_as_pytorchs(layout):
    x = LAYOUTS[layout](tensor(2, 3, 4, 5))
    weight = tensor(3, 1, 1) if x.shape[1] == 3 else tensor(1)
    fake = torch._subclasses.FakeTensorMode()
    calls = {"leaky_relu": (x,), "mul": (x, x.contiguous()), "add": (x, weight)}
    calls |= {"cat": ([x, x], 1), "constant_pad_nd": (x, (1, 2, -1, 0), 0.5)}
    calls |= {"rsub": (x, x), "logical_not": (x,), "selu": (x,), "pow": (x, x)}
    for name, args in calls.items():
        peer = {"leaky_relu": torch.nn.functional.leaky_relu}.get(name) or getattr(torch, name)
        made, wanted = getattr(aclnn, name)(*args), peer(*args)
        torch.testing.assert_close(made, wanted)
        assert strides_of(made) == strides_of(wanted), name
        with fake:
            fakes = tree_map_only(torch.Tensor, fake.from_tensor, args)
            assert strides_of(op(name)(*fakes)) == strides_of(peer(*fakes)), name


def test_what_is_more_than_memory_takes_the_long_way():
    negated = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert negated.is_neg()
    with pytest.raises(aclnn.AclnnError, match="negated"):
        aclnn.exp(negated)
    with pytest.raises(aclnn.AclnnError, match="has layout"):
        aclnn.exp(tensor(4).to_sparse())
    assert aclnn.exp(np.float32([0])).dtype == np.float32


def test_results_outlive_their_operands():
    made = [aclnn.exp(torch.zeros(1000)) for _ in range(50)]
    assert all(torch.equal(one, torch.ones(1000)) for one in made)
    made[0].add_(1)
    assert torch.equal(made[1], torch.ones(1000))


def test_compiled_functions_take_tensors():
    function = aclnn.compile(lambda x, y: aclnn.gelu(x) * y)
    x = tensor(3, 4)
    for _ in range(2):
        made = function(x, x)
        assert isinstance(made, torch.Tensor)
        torch.testing.assert_close(made, torch.nn.functional.gelu(x) * x)
    assert function.cache_info()["size"] == 1
    assert isinstance(function(x.numpy(), x.numpy()), np.ndarray)


def test_what_is_planned_is_not_differentiated():
    x = tensor(3).requires_grad_()
    block = aclnn.compile(lambda x: aclnn.gelu(x))
    for call in (
        lambda: aclnn.executor("gelu", x),
        lambda: block(x),
        lambda: aclnn.tensor(x),
    ):
        with pytest.raises(aclnn.AclnnTypeError, match=r" requires grad, .*; use \w+.detach\(\)"):
            call()
    with torch.no_grad():
        assert torch.equal(block(x), aclnn.executor("gelu", x).run())


def test_dtypes_that_no_operator_takes():
    with pytest.raises(aclnn.AclnnTypeError, match="gelu: self has dtype float8_e4m3fn, which no"):
        aclnn.gelu(tensor(3).to(torch.float8_e4m3fn))


def test_pickled_executors_give_tensors():
    x = tensor(2, 3)
    for ex in (aclnn.executor("gelu", x), aclnn.compile(lambda x: aclnn.gelu(x)).executor(x)):
        again = copy.deepcopy(ex)
        assert torch.equal(again.run(x), ex.run())
    again = pickle.loads(pickle.dumps(aclnn.executor("gelu", x)))
    assert torch.equal(again(x), aclnn.gelu(x))


# What is not said by memory alone; `refused` and `counted` print what came of it.
SPECIAL = """
import ctypes, re, torch, aclnn

if {without}:
    def nothing(name):
        raise OSError(name)
    ctypes.CDLL = nothing

def refused(tensor, out=None):
    try:
        return aclnn.abs(tensor, out=out)
    except aclnn.AclnnError as error:
        print(re.split("[,;]", str(error))[0])

x = torch.ones(3)
refused(torch._neg_view(x))
refused(x, out=torch._neg_view(x))
refused(x, out=torch.ones(3, requires_grad=True))
print(aclnn.abs(torch.ones(3, requires_grad=True)).requires_grad)
aclnn.abs(x, out=x)
aclnn.abs_(x)
print(x._version)
with torch.inference_mode():
    made = torch.ones(3)
print(aclnn.abs(made, out=made).is_inference())
"""


@pytest.mark.parametrize("without", [False, True], ids=["functions", "methods"])
def test_what_tensors_say_of_themselves(without):
    """Functions of PyTorch's library are asked, and where it has none the methods of tensors."""
    script = SPECIAL.format(without=without)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.splitlines() == [
        "abs: input is a negated view of memory",
        "abs: out is a negated view of memory",
        "abs: out= is not differentiable",
        "True",
        "2",
        "True",
    ], run.stderr


def test_tensors_that_have_no_memory_are_refused():
    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    for empty in (torch._efficientzerotensor(3), freed):
        with pytest.raises(aclnn.AclnnError, match="elements, but no data"):
            aclnn.abs(empty)
    assert aclnn.abs(torch.ones(0, 3)).shape == (0, 3)


def test_results_own_their_memory():
    x = torch.arange(1 << 18, dtype=torch.float32)
    view = aclnn.neg(x)[-3:]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1500):
        made = aclnn.abs(x)
    assert made.data_ptr() % 64 == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10
    assert torch.equal(view, -x[-3:])


@needs_exchange
def test_memory_of_large_results_is_used_again():
    x = torch.arange(1 << 18, dtype=torch.float32)
    held = [aclnn.neg(x) for _ in range(8)]
    kept = {one.data_ptr() for one in held}
    view = held.pop()[-3:]
    del held
    others = [aclnn.abs(x) for _ in range(8)]
    assert len({one.data_ptr() for one in others} & kept) == 7  # not that of the view
    assert torch.equal(view, -x[-3:])
    for one in others:
        assert torch.equal(one, x)
    del others
    assert aclnn.neg(x[1:]).data_ptr() not in kept  # one size is not another


@needs_exchange
def test_no_more_than_a_bound_is_kept_of_results():
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    x = torch.zeros(
        (10 << 20) + 3, dtype=torch.float32
    )  # 40 MiB, which the system gets back at once
    before = resident()
    held = [aclnn.neg(x) for _ in range(6)]
    most = resident()
    assert most - before > 150 << 20
    del held
    assert most - resident() > 150 << 20


@needs_exchange
def test_threads_share_memory_of_results():
    x = torch.arange(1 << 15, dtype=torch.float32)

    def work(number):
        made = [aclnn.add(x, float(number + turn)) for turn in range(200)]
        return all(torch.equal(one, x + (number + turn)) for turn, one in enumerate(made))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(0, 4000, 1000)))


def test_subclasses_of_tensors():
    class Named(torch.Tensor):
        pass

    x = tensor(4).as_subclass(Named)
    made = aclnn.gelu(x)
    assert type(made) is Named
    torch.testing.assert_close(made.as_subclass(torch.Tensor), aclnn.gelu(tensor(4)))
    aclnn.relu_(x)


def test_arguments_that_keep_their_defaults_need_no_gradients():
    """Autograd is not told of them where the dispatcher makes the call."""
    x = tensor(2, 4).requires_grad_()
    torch.ops.aclnn.native_layer_norm(x, (4,), torch.ones(4))[0].sum().backward()
    assert x.grad is not None


@pytest.mark.filterwarnings("ignore::DeprecationWarning", OF_JIT)
def test_forward_mode_is_refused():
    """PyTorch takes registered operators for constants there, and gives zeros."""
    x = tensor(3)
    with pytest.raises(NotImplementedError, match="gelu has no derivative in forward mode"):
        torch.func.jvp(aclnn.gelu, (x,), (x,))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", OF_JIT)
def test_dual_tensors_are_refused():
    """Kernels see primals only: tangents would be lost without a word."""
    forward = torch.autograd.forward_ad
    x = tensor(3)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(3))
        for call in (
            lambda: aclnn.elu(dual),
            lambda: aclnn.elu_(dual),
            lambda: aclnn.elu(x, out=dual),
            lambda: torch.ops.aclnn.elu(dual),
            lambda: aclnn.executor("elu", dual),
        ):
            with pytest.raises(aclnn.AclnnError, match=r"elu_?: (self|out) carries a tangent"):
                call()
        assert torch.equal(aclnn.elu(x), torch.nn.functional.elu(x))
    assert torch.equal(aclnn.elu(x), torch.nn.functional.elu(x))


FUNCTIONS = {
    "gelu": aclnn.gelu,
    "options": lambda x: aclnn.leaky_relu(x - 0.5, negative_slope=0.3),
    "several results": lambda x: aclnn.native_layer_norm(x, 4)[0],
    "in place": lambda x: aclnn.elu_(x * 2),
    "in other words": lambda x: aclnn.layer_norm(x, 4),
    "a list": lambda x: aclnn.cat([x, x * x], 0),
    "broadcast": lambda x: aclnn.mul(x, x[:1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_transformed_into_gradients(name):
    function, x = FUNCTIONS[name], tensor(3, 4)
    result, pull = torch.func.vjp(function, x)
    weights = tensor(*result.shape, seed=1)
    leaf = x.clone().requires_grad_()
    expected = function(leaf)
    expected.backward(weights)
    assert torch.equal(result, expected)
    assert torch.equal(pull(weights)[0], leaf.grad)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradients_of_each_row():
    x = tensor(3, 4)
    rows = torch.func.vmap(torch.func.grad(lambda row: aclnn.gelu(row).sum()))(x)
    torch.testing.assert_close(rows, aclnn.gelu_backward(torch.ones_like(x), x))


def test_tensors_without_memory_get_such_results():
    x = tensor(2, 3, 4, 5).to(memory_format=torch.channels_last).to("meta")
    made = aclnn.gelu(x)
    assert (made.device.type, made.shape) == ("meta", x.shape)
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert aclnn.elu_(x) is x
    assert aclnn.cat([x, x]).shape == (4, 3, 4, 5)
    weight = torch.empty(5, device="meta", requires_grad=True)
    aclnn.rms_norm(x, 5, weight).sum().backward()
    assert weight.grad.shape == (5,)
    with pytest.raises(aclnn.AclnnError, match="gelu: self is on device meta and has no values"):
        aclnn.executor("gelu", x)


def test_tensors_without_memory_need_no_import():
    code = """
import torch, aclnn
print(aclnn.gelu(torch.empty(2, 3, device="meta")).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "torch.Size([2, 3])\n", done.stderr


@pytest.mark.filterwarnings("ignore:.*quantize")
@pytest.mark.parametrize(("change", "advice"), [
    (lambda x: x.to_sparse(), "to_dense"),
    (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "dequantize"),
    (lambda x: torch.complex(x, x).conj(), "resolve_conj"),
    (lambda x: torch.complex(x, x).conj().imag, "resolve_neg"),
])  # fmt: skip
def test_what_is_no_plain_memory_is_told_how_to_become_it(change, advice):
    x = change(tensor(3))
    with pytest.raises(aclnn.AclnnTypeError, match=f"; use input.{advice}\\(\\)"):
        aclnn.add(x, x)
    x = getattr(x, advice)()
    assert torch.equal(aclnn.add(x, x), x + x)


# --- Tracing ------------------------------------------------------------------------------------


def test_functional_forms_are_traced():
    def function(x, y):
        aclnn.leaky_relu_(y, 0.5)
        out = aclnn.add(aclnn.gelu(x, approximate="tanh"), 1.5)
        return aclnn.sum(aclnn.mul(out, y), 0) + aclnn.cast(x, torch.float32)

    x, y = tensor(3, 4), tensor(3, 4, seed=1) - 0.5
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y.clone()), function(x, y.clone()))
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    function(a, y.clone()).sum().backward()
    compiled(b, y.clone()).sum().backward()
    torch.testing.assert_close(a.grad, b.grad)


def test_dynamo_is_imported_when_it_is_needed():
    """It takes longer to import than PyTorch; forms are traced all the same once it is there."""
    program = """
import sys, torch, aclnn.torch
x = torch.ones(3, requires_grad=True)
aclnn.gelu(x).sum().backward()
torch.ops.aclnn.gelu(x)
assert "torch._dynamo" not in sys.modules
torch.compile(lambda x: aclnn.gelu(x) * 2, fullgraph=True, backend="eager")(x)
assert callable(aclnn.torch.backend) and "explain" in dir(aclnn.torch)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_out_is_traced():
    def function(x, out):
        return aclnn.gelu(x, out=out)

    x, out = tensor(3), torch.empty(3)
    made = torch.compile(function, fullgraph=True, backend="aot_eager")(x, out)
    torch.testing.assert_close(out, aclnn.gelu(x))
    torch.testing.assert_close(made, out)


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(tensor(4))

    def forward(self, x):
        return aclnn.swiglu(aclnn.rms_norm(x, (4,), self.weight))


def test_export():
    model, x = Gated(), tensor(3, 4)
    program = torch.export.export(model, (x,))
    assert any("aclnn" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(x), model(x))


# --- The backend --------------------------------------------------------------------------------


def mlp(activation=torch.nn.GELU):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(16, 64), activation(), torch.nn.Linear(64, 64), activation()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 4))


class Convolutional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 8, 3, stride=2)
        self.last = torch.nn.Linear(8, 4)

    def forward(self, x):
        x = torch.nn.functional.elu(self.norm(self.first(x)))
        y = torch.nn.functional.leaky_relu(self.second(x)) * 2 + 1
        return self.last(torch.nn.functional.hardswish(y).mean((2, 3)))


def encoder():
    torch.manual_seed(0)
    return torch.nn.TransformerEncoderLayer(
        16, 2, 32, activation="gelu", batch_first=True, dropout=0.0
    )


MODELS = {
    "mlp": (mlp, (5, 16)),
    "mlp with relu in place": (lambda: mlp(lambda: torch.nn.ReLU(inplace=True)), (5, 16)),
    "convolutional": (Convolutional, (2, 3, 8, 8)),
    "encoder": (encoder, (2, 6, 16)),
}


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def compared(model, x, fullgraph=True):
    """Outputs and gradients through the backend beside those of eager calls."""
    eager, compiled = (
        model,
        torch.compile(copy.deepcopy(model), backend="aclnn", fullgraph=fullgraph),
    )
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), eager(x), atol=1e-5, rtol=1e-5)
    made, wanted = compiled(x), eager(x)
    torch.testing.assert_close(made, wanted, atol=1e-5, rtol=1e-5)
    grad = tensor(*wanted.shape)
    made.backward(grad)
    wanted.backward(grad)
    for a, b in zip(compiled.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_models_through_the_backend(name, training):
    make, shape = MODELS[name]
    compared(make().train(training), tensor(*shape))


def test_channels_last_through_the_backend():
    model = Convolutional().eval().to(memory_format=torch.channels_last)
    x = tensor(2, 3, 8, 8).to(memory_format=torch.channels_last)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, backend="aclnn")(x), model(x))

    def function(x):
        return torch.nn.functional.gelu(x) * 2

    assert torch.compile(function, backend="aclnn")(x).stride() == function(x).stride()


def test_the_backend_takes_other_shapes():
    model = mlp().eval()
    compiled = torch.compile(model, backend="aclnn")
    with torch.no_grad():
        for batch in (1, 3, 7):
            x = tensor(batch, 16)
            torch.testing.assert_close(compiled(x), model(x), atol=1e-5, rtol=1e-5)


def test_what_is_written_in_place_between_is_seen():
    def function(x):
        y = torch.nn.functional.gelu(x)
        x.add_(1)
        return y + torch.nn.functional.gelu(x) * 2

    a, b = tensor(8), tensor(8)
    torch.testing.assert_close(torch.compile(function, backend="aclnn")(a), function(b))
    torch.testing.assert_close(a, b)


def test_subscripts_by_tensors_beside_others():
    """PyTorch's partitioner goes on for ever where a subscript is of what was taken and what was not."""

    def function(x, y):
        places = torch.nonzero_static(y, size=2)[:, 0]
        return (torch.nn.functional.gelu(x) * 2)[places], x[:, 1:].exp() * 2 + x[0, :3]

    x, y = tensor(3, 4), torch.tensor([0, 1, 1])
    made, wanted = torch.compile(function, backend="aclnn")(x, y), function(x, y)
    torch.testing.assert_close(made, wanted)


def test_what_gives_its_operand_is_no_border():
    def function(x):
        made = torch.nn.functional.dropout(torch.nn.functional.gelu(x), 0.5, False)
        return torch.nn.functional.elu(made.clone())

    found = at.explain(function, tensor(2, 4), options={"take": "all"})
    assert (found.parts, found.folded > 0) == ([("gelu", "elu")], True)


def test_explain():
    with torch.no_grad():
        found = at.explain(mlp().eval(), tensor(1, 16))
    assert (found.taken, found.left, len(found.parts)) == (8, [], 1)
    assert str(found).startswith("8 nodes in 1 executor, 0 left to PyTorch")
    found = at.explain(lambda x: (x.exp() * 2).atan().sum(), tensor(2, 3, 8, 8).requires_grad_())
    assert ("atan", "no operator of ours does it") in found.left
    assert found.taken >= 2
    assert all(isinstance(name, str) and reason for name, reason in found.left)
    assert "atan" in str(found)


def test_explain_shows_workspaces():
    found = at.explain(lambda x: aclnn.softmax(aclnn.softmax(x, 0), 1), tensor(64, 64))
    assert found.parts == [("softmax", "softmax")]
    assert found.workspaces[0] >= 64 * 64 * 4
    assert f"softmax, softmax; workspace {found.workspaces[0]:,} bytes" in str(found)


def test_profiles_see_the_backend():
    model = torch.compile(mlp().eval(), backend="aclnn")
    x = tensor(2, 16)
    with torch.no_grad():
        model(x)
        with aclnn.profile() as profile:
            model(x)
    assert "aclnn_part" in repr(profile)


@pytest.mark.parametrize("batch", [1, 32, 512])
def test_activations_of_a_model_are_swapped(batch):
    class Swapped(torch.nn.Module):
        def forward(self, x):
            return aclnn.gelu(x)

    eager, swapped = mlp(), mlp(Swapped)
    x = tensor(batch, 16)
    made, wanted = swapped(x), eager(x)
    torch.testing.assert_close(made, wanted, atol=1e-5, rtol=1e-5)
    made.sum().backward()
    wanted.sum().backward()
    for a, b in zip(swapped.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)


def test_dynamo_finds_the_backend_without_an_import():
    assert "aclnn" in torch.compiler.list_backends()


def test_functions_of_pytorch_in_compiled_functions_say_what_to_use():
    x = torch.ones(2, 3)
    with pytest.raises(
        aclnn.AclnnError, match=r"relu of PyTorch.*: aclnn.relu records it, "
    ) as caught:
        aclnn.compile(lambda x: torch.relu(x))(x)
    assert caught.traceback[-1].path == pathlib.Path(__file__)
    with pytest.raises(aclnn.AclnnError, match=r"linear of PyTorch.*: torch.compile\(function, "):
        aclnn.compile(torch.nn.Linear(3, 2))(x)
