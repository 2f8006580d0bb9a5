"""How functional forms take their arguments: as functions that were written in Python would."""

import array
import builtins
import copy
import gc
import importlib
import inspect
import pickle
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
import samples
from cases import each
from setups import fresh

import aclnn
from aclnn.api.functional import HANDLES_BY_NAME, signature
from aclnn.operators import REGISTRY
from aclnn.operators.declaration import REQUIRED

X = np.linspace(-2, 2, 5, dtype=np.float32)
NAMES = sorted(HANDLES_BY_NAME)


INVALID = 161002


def form(name):
    operator = HANDLES_BY_NAME[name].handle.operator
    return operator, getattr(aclnn, name)


@each("name", NAMES)
def test_a_function_says_what_it_is(name):
    operator, function = form(name)
    declared = f"({signature(operator, in_place=name == operator.in_place)})"
    assert str(inspect.signature(function)) == declared
    assert inspect.isroutine(function)
    assert (function.__name__, function.__module__) == (name, "aclnn.api.functional")
    assert function.__doc__.startswith(operator.summary)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "name", ["leaky_relu", "leaky_relu_", "aclnnElu", "aclnnEluGetWorkspaceSize"]
)
def test_functions_and_their_handles_can_be_pickled_into_another_process(name):
    function = getattr(aclnn, name)
    handle = function.__self__
    assert pickle.loads(pickle.dumps(handle)) is handle
    assert getattr(handle, name) is function
    assert not hasattr(handle, "gelu")
    code = f"""
import pickle
handle, function = pickle.loads({pickle.dumps((handle, function))!r})
import aclnn
print(function is aclnn.{name}, function.__self__ is handle)
"""
    assert fresh(code).stdout == "True True\n"


def listed(found):
    """A result as a list of arrays, of one or of several."""
    return list(found) if isinstance(found, tuple) else [found]


@each("name", NAMES)
def test_every_parameter_can_be_given_by_its_name(name):
    operator, function = form(name)
    in_place, given = name == operator.in_place, samples.inputs(operator.name)
    kept, options = copy.deepcopy(given), samples.options(operator.name)
    expected = listed(function(**given, **options))
    defaults = {role: operator.default_of(role) for role in parameters(operator)}
    named = {role: value for role, value in defaults.items() if value is not REQUIRED}
    named |= kept | options
    if not in_place:
        made = [None if one is None else np.empty_like(one) for one in expected]
        named["out"] = made[0] if len(made) == 1 else tuple(made)
    result = function(**dict(reversed(named.items())))
    for found, wanted in zip(listed(result), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    if in_place:
        taken = [operator.overwritten.get(role) for role in operator.outputs]
        assert all(
            one is kept[role] for one, role in zip(listed(result), taken, strict=True) if role
        )
    else:
        pairs = zip(listed(result), listed(named["out"]), strict=True)
        assert all(one is other for one, other in pairs)


@each("name", NAMES)
def test_every_parameter_can_be_given_by_position(name):
    operator, function = form(name)
    given, options = samples.inputs(operator.name), samples.options(operator.name)
    expected = listed(function(**copy.deepcopy(given), **options))
    every = given | options
    rest = {role: value for role, value in every.items() if role not in operator.positional}
    values = {role: operator.default_of(role) for role in operator.positional} | given | options
    result = function(*[values[role] for role in operator.positional], **rest)
    for found, wanted in zip(listed(result), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def parameters(operator):
    return (*operator.inputs, *[a.role for a in operator.attributes])


@each("name", NAMES)
def test_arguments_that_do_not_fit_are_type_errors(name):
    operator, function = form(name)
    given = samples.inputs(operator.name) | samples.options(operator.name)
    places = operator.positional
    needed = [role for role in places if operator.is_required(role)]
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) takes {len(places)} positional arguments? but"
    ):
        function(*[X] * (len(places) + 1))
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'stranger'"
    ):
        function(**given, stranger=1)
    first = places[0]
    with pytest.raises(TypeError, match=rf"^{name}\(\) got multiple values for argument '{first}'"):
        function(given[first], **{first: X})
    for role in needed:
        others = {other: value for other, value in given.items() if other != role}
        with pytest.raises(TypeError, match=rf"^{name}\(\) missing required argument: '{role}'"):
            function(**others)
    if name == operator.in_place:
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            function(**given, out=X)


# Forms in place alone, which keep elements of what they write.
CACHES = ("scatter_pa_kv_cache", "gather_pa_kv_cache", "kv_rmsnorm_rope_cache")
WITHOUT_OUT = (*CACHES, "adamw_")  # which are written in place
NEED_ALL = (*WITHOUT_OUT, "grouped_matmul")  # or cannot be without what may be null
WITH_OPTIONAL = [
    name
    for name in samples.FUNCTIONAL
    if {*REGISTRY[name].optional} & {*samples.inputs(name)} and name not in NEED_ALL
]


@pytest.mark.parametrize("name", WITH_OPTIONAL)
def test_optional_arrays_may_be_left_out_or_none(name):
    operator, function = form(name)
    given = samples.inputs(name) | samples.options(name)
    optional = [role for role in operator.inputs if role in operator.optional]
    bare = {role: value for role, value in given.items() if role not in optional}
    bare |= dict.fromkeys([role for role in optional if operator.is_required(role)])
    if name == "top_k_top_p":  # which takes one of both
        bare["p"] = given["p"]
        optional.remove("p")
    for role in ("save_mean", "save_invstd") if name == "native_batch_norm_backward" else ():
        bare[role] = given[role]  # which training needs
        optional.remove(role)
    expected, whole = listed(function(**bare)), listed(function(**given))
    for found, wanted in zip(
        listed(function(**bare | dict.fromkeys(optional))), expected, strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    # Counts of groups only say which results are of use; a buffer is not read.
    unread = optional in (["group_index"], ["buffer"], ["finished"])
    unread = unread or not {*optional} & {*given}
    assert np.array_equal(expected[0], whole[0]) == unread


@pytest.mark.parametrize(
    "name", [n for n in samples.FUNCTIONAL if len(REGISTRY[n].outputs) > 1 and n not in WITHOUT_OUT]
)
def test_several_results_are_a_tuple(name):
    operator, function = form(name)
    given = samples.inputs(name) | samples.options(name)
    made = samples.results(name)
    result = function(**given)
    assert isinstance(result, tuple)
    shapes = [None if role not in made else made[role].shape for role in operator.outputs]
    assert [one if one is None else one.shape for one in result] == shapes
    out = samples.out_of(name, [*made.values()])
    assert all(a is b for a, b in zip(function(**given, out=out), out, strict=True))
    some = (None, *out[1:])
    found = function(**given, out=some)
    assert found[0] is not None
    assert found[1] is out[1]
    for wrong in (out[:-1], out[0], (*out, out[0])):
        with pytest.raises(aclnn.AclnnError, match=f"out must be a tuple of {len(out)} arrays"):
            function(**given, out=wrong)


def test_names_need_not_be_interned():
    slope = "".join(["negative", "_slope"])
    np.testing.assert_array_equal(aclnn.leaky_relu(X, **{slope: 0.5}), np.where(X > 0, X, X / 2))


def test_an_option_by_position_equals_one_by_name():
    np.testing.assert_array_equal(
        aclnn.leaky_relu(X, 0.25), aclnn.leaky_relu(X, negative_slope=0.25)
    )
    np.testing.assert_array_equal(
        aclnn.logit_backward(X, X / 4, 0.125), aclnn.logit_backward(X, X / 4, eps=0.125)
    )


def test_switches_are_read_as_python_reads_them():
    plain, result = aclnn.elu_backward(X, X), aclnn.elu_backward(X, X, is_result=True)
    np.testing.assert_array_equal(aclnn.elu_backward(X, X, is_result=0), plain)
    np.testing.assert_array_equal(aclnn.elu_backward(X, X, is_result=np.True_), result)
    assert not np.array_equal(plain, result)
    np.testing.assert_array_equal(aclnn.gelu(X, approximate="none"), aclnn.gelu(X))
    with pytest.raises(aclnn.AclnnError, match="approximate is 'erf'"):
        aclnn.gelu(X, approximate="erf")
    with pytest.raises(aclnn.AclnnError, match="approximate is 1, must be 'none' or 'tanh'"):
        aclnn.gelu(X, approximate=1)  # numbers are of aclnnGeluV2


@pytest.mark.filterwarnings("ignore")  # NumPy only warns when it drops an imaginary part
def test_options_that_are_no_numbers_are_named():
    for junk in ("a", [1.0], object(), 1j, np.complex64(1), np.array(1j)):
        with pytest.raises(aclnn.AclnnError, match="must be a real number"):
            aclnn.leaky_relu(X, junk)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [int, np.int64])
def test_large_integers_are_rounded_once(dtype, kind):
    slope = kind(2**53 + 2**29 + 1)  # in float64 the middle of two float32, without the last 1
    exact = dtype(2**53 + 2**30) if dtype is np.float32 else dtype(2**53 + 2**29)
    assert aclnn.leaky_relu(np.array([-1], dtype), slope) == -exact
    executor = aclnn.executor("leaky_relu", np.array([-1], dtype), negative_slope=slope)
    assert executor.run() == -exact


def test_numbers_beyond_double_are_infinite():
    x = np.array([-1, 2], np.float32)
    np.testing.assert_array_equal(aclnn.leaky_relu(x, 10**400), [-np.inf, 2])
    np.testing.assert_array_equal(aclnn.leaky_relu(x.astype(np.float64), -(10**400)), [np.inf, 2])
    assert aclnn.aclnnLogitGetWorkspaceSize(None, 10**400, None)[2] == 161001


@pytest.mark.parametrize("text", ["0.5", b"0.5", bytearray(b"0.5")])
def test_text_is_no_number(text):
    with pytest.raises(aclnn.AclnnError, match="must be a real number"):
        aclnn.leaky_relu(X, text)


def test_more_elements_than_any_memory_holds():
    for wide in ((2**31, 2**29), (2**48, 1)):
        with pytest.raises(aclnn.AclnnError, match="elements, which no memory holds"):
            aclnn.gelu(np.broadcast_to(np.float32(1), wide))
    column, row = (np.broadcast_to(np.float32(1), shape) for shape in ((2**31, 1), (1, 2**32)))
    with pytest.raises(aclnn.AclnnError, match="elements, which no memory holds"):
        aclnn.gelu_backward(column, row)
    many = aclnn.aclCreateTensor((2**57,), 0, None, 0, 2, (2**57,), None)
    assert aclnn.aclnnGeluGetWorkspaceSize(many, many)[2] == 161002


@pytest.mark.parametrize("junk", [[], {}, 3, None])
def test_executors_of_no_operator(junk):
    with pytest.raises(aclnn.AclnnError, match="no operator is called"):
        aclnn.executor(junk, X)


@pytest.mark.parametrize("junk", ["no", np.zeros(2)])
def test_materialize_is_true_or_false(junk):
    with pytest.raises(aclnn.AclnnError, match=r"materialize is .*, must be true or false"):
        aclnn.executor("gelu", X, materialize=junk)


@pytest.mark.parametrize("name", ["products", "templates", "schemas", "foo.bar", ""])
def test_names_that_are_no_module(name):
    assert not hasattr(aclnn, name)


def test_tensors_whose_bytes_are_not_their_values():
    torch = pytest.importorskip("torch")
    negated = torch.imag(torch.tensor([1 + 2j, 3 - 4j]).conj())
    with pytest.raises(aclnn.AclnnError, match="resolve_neg"):
        aclnn.leaky_relu(negated)
    assert aclnn.leaky_relu(negated.resolve_neg(), 0.5).tolist() == [-1, 4]


class Subclass(np.ndarray):
    pass


class Exporter:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_kinds_take_the_same_arguments():
    expected = aclnn.leaky_relu(X, 0.5)
    np.testing.assert_array_equal(aclnn.leaky_relu(X.view(Subclass), 0.5), expected)
    swapped = X.astype(X.dtype.newbyteorder())
    np.testing.assert_array_equal(aclnn.leaky_relu(swapped, negative_slope=0.5), expected)
    out = np.empty_like(X)
    given = Exporter(out)
    assert aclnn.elu_backward(Exporter(X), X, is_result=True, out=given) is given
    np.testing.assert_array_equal(out, aclnn.elu_backward(X, X, is_result=True))


def test_calls_keep_no_references():
    x, out = X.copy(), np.empty_like(X)
    gc.collect()
    before = [sys.getrefcount(a) for a in (x, out)]
    for _ in range(100):
        aclnn.leaky_relu(x, out=out)
        aclnn.gelu(x, approximate="tanh", out=out)
        with pytest.raises(TypeError):
            aclnn.leaky_relu(x, self=x)
    assert [sys.getrefcount(a) for a in (x, out)] == before


def test_functions_are_called_from_many_threads():
    kinds = (np.float32, np.float16, ml_dtypes.bfloat16)
    inputs = [np.linspace(-3, 3, n).astype(kinds[n % 3]) for n in range(1, 60)]
    expected = [aclnn.elu_backward(x, x) for x in inputs]
    wrong = []

    def work():
        for _ in range(20):
            for x, wanted in zip(inputs, expected, strict=True):
                if aclnn.elu_backward(x, x).tobytes() != wanted.tobytes():
                    wrong.append(x.size)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_strides_along_single_elements_do_not_count():
    x = np.linspace(-1, 1, 3, dtype=np.float32)
    with aclnn.executor("gelu", x.reshape(1, 3), out=np.zeros((1, 3), np.float32)) as executor:
        out = np.zeros((3, 3), np.float32)[1:2]
        np.testing.assert_array_equal(executor.run(self=x[None], out=out)[0], aclnn.gelu(x))


def test_messages_name_the_parameter_that_there_is():
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    with pytest.raises(aclnn.AclnnError, match="self is read-only"):
        aclnn.leaky_relu_(x)
    swapped = x.astype(">f4")
    swapped.flags.writeable = False
    for odd in (swapped, np.float32(1)):
        with pytest.raises(aclnn.AclnnError, match="self is"):
            aclnn.leaky_relu_(odd)
    for junk in (np.array([1, 2]), "false", b""):
        with pytest.raises(aclnn.AclnnError, match=r"is_result is .* must be true or false"):
            aclnn.elu_backward(x, x, is_result=junk)


class Immutable(Exporter):
    """An array as JAX has them: NumPy may read it, DLPack cannot say so."""

    def __array__(self, dtype=None, copy=None):
        seen = self.array.view()
        seen.flags.writeable = False
        return seen

    def __array_namespace__(self):
        return Library


class Library:
    @staticmethod
    def from_dlpack(given):
        return Immutable(np.from_dlpack(given))


def test_arrays_that_never_change_are_no_outputs():
    kept = Immutable(X.copy())
    for call in (aclnn.leaky_relu_, lambda x: aclnn.gelu(X, out=x)):
        with pytest.raises(aclnn.AclnnError, match="is read-only"):
            call(kept)
    np.testing.assert_array_equal(kept.array, X)
    found = aclnn.gelu(kept)
    assert type(found) is Immutable
    np.testing.assert_array_equal(found.array, aclnn.gelu(X))


def test_masked_arrays_are_refused_wherever_arrays_are_taken():
    x = np.ma.masked_less(X, 0)
    executor = aclnn.executor("gelu", X)
    calls = [
        lambda: aclnn.gelu(x),
        lambda: aclnn.gelu(X, out=np.ma.array(X.copy())),
        lambda: aclnn.leaky_relu_(x),
        lambda: aclnn.gelu(np.ma.masked),
        lambda: aclnn.gelu_backward(X, x),
        lambda: aclnn.executor("gelu", x),
        lambda: aclnn.executor("gelu", X, out=np.ma.array(X.copy())),
        lambda: executor.run(self=x),
        lambda: executor.rebind({"out": x}),
    ]
    for call in calls:
        with pytest.raises(
            aclnn.AclnnError, match=r"masked array.*\.filled\(\.\.\.\) or its \.data"
        ) as it:
            call()
        assert it.value.status == 161002
    assert tensor_of(x) is None
    assert "masked array" in aclnn.aclGetRecentErrMsg()
    assert aclnn.aclrtMemcpy(np.zeros_like(X), X.nbytes, x, X.nbytes, 0) == 107000
    np.testing.assert_array_equal(aclnn.gelu(x.data), aclnn.gelu(X))
    assert executor.run() is not None


def tensor_of(array):
    return aclnn.aclCreateTensor(
        np.shape(array), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, np.shape(array), array
    )


def test_masks_are_known_without_loading_what_masks():
    code = """
import sys
import numpy as np
import aclnn
class Mine(np.ndarray):
    pass
x = np.ones(3, np.float32).view(Mine)
print(aclnn.leaky_relu(x), "numpy.ma" in sys.modules)
"""
    done = fresh(code)
    assert (done.stdout, done.stderr) == ("[1. 1. 1.] False\n", "")


def test_a_first_call_loads_no_tools_of_the_graph():
    code = """
import sys
import numpy as np
import aclnn
aclnn.leaky_relu(np.ones(3, np.float32))
tools = ("views", "planner.memories", "planner.ranges", "planner.recorded", "planner.reduction", "verify.trace")
print([name for name in tools if f"aclnn.graph.{name}" in sys.modules])
from aclnn.graph import *
print(Memory.__module__, check_trace.__module__, "Memory" in dir(aclnn.graph))
"""
    done = fresh(code)
    assert (done.stdout, done.stderr) == (
        "[]\naclnn.graph.planner.memories aclnn.graph.verify.trace True\n",
        "",
    )


def test_other_subclasses_of_arrays_are_arrays():
    class Mine(np.ndarray):
        pass

    for kind in (Mine, np.recarray, np.memmap):
        np.testing.assert_array_equal(aclnn.gelu(X.view(kind)), aclnn.gelu(X))
        out = np.zeros_like(X).view(kind)
        assert aclnn.executor("gelu", X.view(kind), out=out).run() is out
        np.testing.assert_array_equal(out, aclnn.gelu(X))


def run_phase_two_into(torch, x):
    executor = aclnn.executor("gelu", torch.ones(3), out=x)
    assert aclnn.aclnnGelu(None, 0, executor, None) == 0


def run_queued_into(torch, x):
    stream = aclnn.aclrtCreateStream()[0]
    executor = aclnn.executor("gelu", torch.ones(3), out=x)
    assert aclnn.aclnnGelu(None, 0, executor, stream) == 0
    assert aclnn.aclrtSynchronizeStream(stream) == 0
    assert aclnn.aclrtDestroyStream(stream) == 0


@pytest.mark.parametrize(
    "write",
    [
        lambda torch, x: aclnn.leaky_relu_(x),
        lambda torch, x: aclnn.elu_(x),
        lambda torch, x: aclnn.gelu(torch.ones(3), out=x),
        lambda torch, x: aclnn.executor("gelu", torch.ones(3)).run(out=x),
        lambda torch, x: aclnn.executor("gelu", x, out=x).profile(repeat=1),
        run_phase_two_into,
        run_queued_into,
    ],
)
def test_pytorch_is_told_what_was_written(write):
    torch = pytest.importorskip("torch")
    x = torch.full((3,), -2.0, requires_grad=True)
    y = x * x
    write(torch, x.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_pytorch_is_told_of_writes_only():
    torch = pytest.importorskip("torch")
    x, out = torch.ones(3), torch.zeros(2)
    aclnn.gelu(x)
    with pytest.raises(aclnn.AclnnError):
        aclnn.gelu(x, out=out)
    assert (x._version, out._version) == (0, 0)
    with torch.inference_mode():  # such tensors have no versions
        inferred = torch.full((3,), -1.0)
    assert aclnn.leaky_relu_(inferred, 0.5).tolist() == [-0.5] * 3
    found = torch.zeros(3)
    executor = aclnn.executor("gelu", x, out=found)
    assert executor.run() is found
    assert found._version == 1


def test_a_subclass_comes_back_as_what_its_library_makes():
    torch = pytest.importorskip("torch")

    class Tensor(torch.Tensor):
        pass

    found = aclnn.gelu(torch.ones(3).as_subclass(Tensor))
    assert isinstance(found, torch.Tensor)


def test_errors_can_be_pickled():
    with pytest.raises(aclnn.AclnnError) as caught:
        aclnn.gelu("x")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.message, again.status) == (caught.value.message, caught.value.status)
    assert str(again) == again.message


@pytest.mark.parametrize("module", ["aclnn", "aclnn.torch", "aclnn.dask"])
def test_a_star_replaces_no_name_of_python(module):
    pytest.importorskip({"aclnn": "numpy"}.get(module, module.removeprefix("aclnn.")))
    found = {}
    exec(f"from {module} import *", found)
    assert not set(dir(builtins)) & set(found)
    assert {"leaky_relu", "matmul", "cumsum"} <= set(found)
    ours = importlib.import_module(module)
    assert {"abs", "max", "sum", "pow", "slice"} <= set(dir(ours)) - set(ours.__all__)
    assert ours.sum(np.ones((2, 3), np.float32), 1).tolist() == [3.0, 3.0]


def test_a_star_imports_every_other_public_name():
    found = {}
    exec("from aclnn import *", found)
    assert {"leaky_relu", "aclnnGelu", "aclrtMalloc", "ACL_FLOAT", "executor"} <= set(found)
    left = {"abs", "all", "any", "compile", "max", "min", "pow", "round", "slice", "sum"}
    left |= {"__version__"}
    assert set(dir(aclnn)) - set(found) == left


def test_arrays_that_raise_are_refused():
    class Broken:
        def __dlpack__(self, **_):
            raise KeyError("no")

    with pytest.raises(aclnn.AclnnError, match="self cannot be read"):
        aclnn.gelu(Broken())


def test_pytorch_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.linspace(-3, 3, 24).reshape(4, 6).to(dtype).T
        g = torch.ones(6, 4, dtype=dtype)
        y = aclnn.gelu_backward(g, x)
        assert isinstance(y, torch.Tensor)
        assert (y.dtype, y.shape) == (dtype, x.shape)
        assert torch.allclose(
            y.float(), torch.ops.aten.gelu_backward(g.float(), x.float()), atol=2e-2
        )
        out = torch.zeros(4, 6, dtype=dtype).T
        assert aclnn.gelu_backward(g, x, out=out) is out
        assert torch.equal(out, y)
        z = x.clone()
        assert aclnn.leaky_relu_(z, 0.5) is z
        assert torch.equal(z, aclnn.leaky_relu(x, 0.5))
    with pytest.raises(aclnn.AclnnError, match="detach"):
        aclnn.executor("gelu", torch.ones(3, requires_grad=True))
    ex = aclnn.executor("gelu", torch.ones(3, dtype=torch.bfloat16))
    assert ex.run().dtype == torch.bfloat16
    out = torch.zeros(3, dtype=torch.bfloat16)
    assert ex.run(out=out) is out
    assert torch.equal(out, aclnn.gelu(torch.ones(3, dtype=torch.bfloat16)))


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def test_objects_with_an_array_interface():
    x = np.array([-2.0, 4.0], np.float32)
    np.testing.assert_array_equal(aclnn.leaky_relu(Interface(x), 0.5), [-1, 4])


@pytest.mark.parametrize("junk", [3.0, "x", b"x", None, object(), {1.0}, {"a": 1.0}, len])
def test_what_is_no_array_is_refused(junk):
    with pytest.raises(TypeError, match=r"gelu: self is .*, must be an array") as caught:
        aclnn.gelu(junk)
    assert caught.value.status == INVALID


X16 = np.linspace(-2, 2, 5, dtype=np.float16)


@pytest.mark.parametrize(
    ("call", "dtype"),
    [(lambda: aclnn.gelu([1.0, 2.0]), np.float32), (lambda: aclnn.add([1, 2], [3, 4]), np.int64),
     (lambda: aclnn.add([1, 2], [0.5, 1]), np.float32), (lambda: aclnn.add(X16, [[1], [2.5]]), np.float16),
     (lambda: aclnn.add([1, 2], np.int8([3, 4])), np.int8), (lambda: aclnn.neg((1 + 1j, 2)), np.complex64),
     (lambda: aclnn.add([True], np.float32([1])), np.float32), (lambda: aclnn.gelu([[]]), np.float32),
     (lambda: aclnn.neg([np.float64(1), 2]), np.float64), (lambda: aclnn.neg([X16, X16]), np.float16),
     (lambda: aclnn.where([True, False], [1.0, 2], X16[:2]), np.float16),
     (lambda: aclnn.embedding(np.eye(3, dtype=np.float32), [0, 2]), np.float32),
     (lambda: aclnn.rms_norm_backward([[1.0, 2]], [[1.0, 2]], [1.0, 2], [[1.0]])[0], np.float32),
     (lambda: aclnn.cat([[1.0], [2.0]], 0), np.float32), (lambda: aclnn.add([1, 2], 2.5), np.float32)],
)  # fmt: skip
def test_lists_of_numbers_have_the_dtype_of_what_is_beside_them(call, dtype):
    result = call()
    assert type(result) is np.ndarray
    assert result.dtype == dtype


def test_lists_compute_what_their_arrays_do():
    rows = [[-1.0, 2.0], [3.0, -4.0]]
    expected = aclnn.leaky_relu(np.float32(rows), 0.5)
    np.testing.assert_array_equal(aclnn.leaky_relu(rows, 0.5), expected)
    np.testing.assert_array_equal(aclnn.executor("leaky_relu", rows, 0.5).run(), expected)
    ex = aclnn.executor("leaky_relu", np.zeros((2, 2), np.float32), negative_slope=0.5)
    np.testing.assert_array_equal(ex.run(rows), expected)
    np.testing.assert_array_equal(
        aclnn.compile(lambda x: aclnn.add(x, rows))(expected), expected + rows
    )


def test_memoryviews_and_arrays_of_the_standard_library_are_read_and_written_in_place():
    values = array.array("f", [-2.0, 4.0])
    np.testing.assert_array_equal(aclnn.leaky_relu(values, 0.5), [-1, 4])
    np.testing.assert_array_equal(aclnn.leaky_relu(memoryview(values), 0.5), [-1, 4])
    out = array.array("f", [0, 0])
    assert aclnn.leaky_relu(values, 0.5, out=out) is out
    assert out.tolist() == [-1, 4]
    assert aclnn.leaky_relu_(memoryview(values), 0.25).tolist() == [-0.5, 4]
    assert values.tolist() == [-0.5, 4]
    with pytest.raises(aclnn.AclnnError, match="out is read-only"):
        aclnn.leaky_relu(values, out=memoryview(bytes(values)).cast("f"))


@pytest.mark.parametrize(
    ("given", "words"),
    [(["a", "b"], "self is a list of str, must be one of numbers"),
     ([None, 1.0], "self is a list of NoneType, must be one of numbers"),
     ([[1.0], [1.0, 2.0]], "self is a list that is no array: .*inhomogeneous"),
     ([10**30], "self is a list of int, must be one of numbers"),
     ((1, 2), r"self has dtype int64, .*; convert with np.asarray\(self, np.float32\)"),
     (array.array("d", [1]), r"self has dtype float64, .*; convert with np.asarray\(self, np.float32\)")],
)  # fmt: skip
def test_lists_that_are_no_arrays_are_refused(given, words):
    with pytest.raises(TypeError, match=f"gelu: {words}"):
        aclnn.gelu(given)


@pytest.mark.parametrize("call", [
    lambda: aclnn.leaky_relu(X, out=[0.0] * 5), lambda: aclnn.leaky_relu_([0.0]),
])  # fmt: skip
def test_lists_cannot_be_written(call):
    with pytest.raises(TypeError, match="is a list, which cannot be written; give an array"):
        call()


def test_swapped_and_misaligned_arrays():
    x = np.array([-2.0, 4.0, -6.0], np.float32)
    np.testing.assert_array_equal(aclnn.leaky_relu(x.astype(">f4"), 0.5), [-1, 4, -3])
    raw = np.zeros(13, np.uint8)[1:].view(np.float32)
    raw[:] = x
    np.testing.assert_array_equal(aclnn.leaky_relu(raw, 0.5), [-1, 4, -3])
    swapped = np.zeros(3, ">f4")
    assert aclnn.leaky_relu(x, 0.5, out=swapped) is swapped
    np.testing.assert_array_equal(swapped, [-1, 4, -3])
    fields = np.zeros(3, [("a", "u1"), ("x", "f4")])
    fields["x"] = x
    np.testing.assert_array_equal(aclnn.leaky_relu(fields["x"], 0.5), [-1, 4, -3])


def test_functional_errors_carry_status_and_message():
    x = np.ones(3, np.float32)
    cases = [
        lambda: aclnn.gelu_backward(x, np.ones(4, np.float32)),
        lambda: aclnn.gelu_backward(x, x, out=np.ones(3, np.float16)),
        lambda: aclnn.gelu_backward(x, x, approximate="erf"),
        lambda: aclnn.elu_backward(x, x, alpha=-1.0, is_result=True),
        lambda: aclnn.leaky_relu(x, "steep"),
        lambda: aclnn.leaky_relu(np.ones(3, np.int32)),
        lambda: aclnn.leaky_relu(np.ones((1,) * 9, np.float32)),
        lambda: aclnn.leaky_relu(np.array(["a"])),
        lambda: aclnn.leaky_relu(x, out=np.broadcast_to(np.zeros(1, np.float32), 3)),
        lambda: aclnn.leaky_relu(x, out=np.float32(1)),
        lambda: aclnn.executor("gelu_backwards", x, x),
        lambda: aclnn.executor("gelu_backward", x),
        lambda: aclnn.executor("gelu_backward", x, x, slope=1),
        lambda: aclnn.executor("gelu", x, strategy="best"),
        lambda: aclnn.set_num_threads(0),
    ]
    for case in cases:
        with pytest.raises(aclnn.AclnnError) as caught:
            case()
        assert caught.value.status == INVALID
        assert str(caught.value)


# --- What calls keep of the latest one ----------------------------------------------------------


def test_lists_of_results_are_as_long_as_each_call_says():
    x, y = np.arange(12.0, dtype=np.float32).reshape(6, 2), np.ones((4, 2), np.float32)
    for _ in range(2):
        for given, size, dim in ((x, 2, 0), (y, 2, 0), (x, 4, 0), (x, 4, 1), (x, 1, 0)):
            made = aclnn.split(given, size, dim)
            wanted = np.split(given, range(size, given.shape[dim], size), dim)
            assert isinstance(made, tuple)
            for one, other in zip(made, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("pieces", [33, 34, 255])
def test_long_lists_of_results(pieces):
    x = np.arange(pieces, dtype=np.float32)
    made = aclnn.split(x, 1)
    assert len(made) == pieces
    np.testing.assert_array_equal(np.concatenate(made), x)


def test_options_that_the_caller_changed_are_read_again():
    x, pads = np.ones(2, np.float32), [1, 0]
    assert aclnn.constant_pad_nd(x, pads).tolist() == [0, 1, 1]
    pads[:] = [0, 2]
    assert aclnn.constant_pad_nd(x, pads).tolist() == [1, 1, 0, 0]
    assert aclnn.constant_pad_nd(x, (1, 0)).tolist() == [0, 1, 1]


def test_options_of_equal_values_and_other_types():
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    for _ in range(2):
        assert aclnn.sum(x, 1, True).shape == (2, 1)
        assert aclnn.sum(x, 1, False).shape == (2,)
        assert aclnn.cast(x, np.float16).dtype == np.float16
        assert aclnn.cast(x, "float64").dtype == np.float64
        with pytest.raises(TypeError, match="keepdim"):
            aclnn.sum(x, 1, "no")


# --- Names that other libraries have ------------------------------------------------------------------


def test_parameters_go_by_the_names_of_pytorch_and_numpy():
    x = np.float32([[1, -2], [3, 4]])
    same = [
        (aclnn.leaky_relu(input=x), aclnn.leaky_relu(self=x)),
        (aclnn.relu(self=x), aclnn.relu(x)),
        (aclnn.softmax(x, axis=0), aclnn.softmax(x, dim=0)),
        (aclnn.logit(x, epsilon=0.1), aclnn.logit(x, eps=0.1)),
        (aclnn.executor("softmax", x, axis=0).run(), aclnn.softmax(x, 0)),
        (aclnn.executor("leaky_relu", input=x).run(input=2 * x), aclnn.leaky_relu(2 * x)),
    ]
    for one, other in same:
        np.testing.assert_array_equal(one, other)
    for bad in ({"input": x, "self": x}, {"dim": 0, "axis": 0}):
        with pytest.raises(TypeError, match=r"multiple values|unexpected|missing"):
            aclnn.leaky_relu(**bad)
    with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
        aclnn.softmax(x, 0, axis=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        aclnn.relu(x, axis=0)
