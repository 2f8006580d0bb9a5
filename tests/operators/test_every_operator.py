"""What is promised of all operators, asked of each: layouts, dtypes, overlap, empties, both phases,
streams, threads, cached plans, and everything that an executor shows.
"""

import copy
import json
import re
import threading

import numpy as np
import pytest
import samples
from cases import each, some

import aclnn
from aclnn.acl import dtypes
from aclnn.kernels import records
from aclnn.operators import ENTRIES, FAMILIES, REGISTRY, functional_owner

OK, INVALID = 0, 161002
NAMES = samples.FUNCTIONAL
OUT_OF_PLACE = [name for name in NAMES if name != REGISTRY[name].in_place]
FIXED = ("dropout_p", "keep_prob")  # options of which one number is taken
WITH_INPUTS = [name for name in NAMES if REGISTRY[name].inputs]
WITH_DIMS = [  # rows of those that are not zero have no gaps
    name
    for name in OUT_OF_PLACE
    if all(one.ndim for one in samples.results(name).values()) and "nonzero" not in name
]
PRODUCTS = [one.name for one in FAMILIES["matmul"]]
CONVOLUTIONS = [one.name for one in (*FAMILIES["convolutions"], *FAMILIES["convolution_gradients"])]
BROADCAST = {
    name
    for name in NAMES
    if any(
        re.fullmatch(r"`\w+`( and `\w+`)+ broadcast", rule.text) for rule in REGISTRY[name].rules
    )
}
TWO_ALIKE = [
    name
    for name in NAMES
    if all(samples.shape_of(name, role) == samples.SHAPE for role in REGISTRY[name].inputs)
    and len(REGISTRY[name].inputs) - len(REGISTRY[name].unread) > 1
]


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def made_by(found):
    """Results without those that a call does not have."""
    return [one for one in listed(found) if one is not None]


def computed(name, given, **changes):
    """All results of a call, on inputs that it must not change unless it works in place."""
    kept = copy.deepcopy(given)
    found = made_by(samples.run(name, given, **changes))
    if "out" not in changes and name in OUT_OF_PLACE:
        for one, other in zip(arrays_of(given), arrays_of(kept), strict=True):
            np.testing.assert_array_equal(one, other)
    return found


def arrays_of(given):
    """Arrays of a call, those of lists among them."""
    return [one for value in given.values() for one in listed_arrays(value)]


def listed_arrays(value):
    return value if isinstance(value, list) else [value]


def with_arrays(given, made):
    """The same call on other arrays."""
    rest = iter(made)
    return {
        role: [next(rest) for _ in value] if isinstance(value, list) else next(rest)
        for role, value in given.items()
    }


def same(name, found, wanted):
    """Every result has the same bits."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == other.tobytes(), name


def dtypes_of(*names):
    return [(name, dtype) for name in names for dtype in samples.floats_of(name)]


# --- Layouts --------------------------------------------------------------------------------------


def in_columns(array):
    return np.asfortranarray(array)


def backwards(array):
    turned = tuple(slice(None, None, -1) for _ in array.shape)
    return np.ascontiguousarray(array[turned])[turned]


def with_gaps(array):
    wide = np.ones([2 * size for size in array.shape], array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def inside(array):
    whole = np.ones([size + 3 for size in array.shape], array.dtype)
    view = whole[tuple(slice(1, size + 1) for size in array.shape)]
    view[...] = array
    return view


LAYOUTS = (in_columns, backwards, with_gaps, inside)


def storage_of(view):
    while view.base is not None:
        view = view.base
    return view


def layouts_of(name, dtype):
    """Half of them for each dtype."""
    return some(LAYOUTS, 2, f"{name}{np.dtype(dtype)}")


@each("name", NAMES)
@each("dtype", samples.floats_of)
@each("layout", layouts_of)
def test_strides_of_inputs_do_not_show(name, dtype, layout):
    given = samples.inputs(name, dtype)
    other = with_arrays(given, [layout(array) for array in arrays_of(given)])
    same(name, computed(name, other), computed(name, given))


@each("name", WITH_DIMS)
@each("dtype", samples.floats_of)
@each("layout", layouts_of)
def test_outputs_have_any_strides_and_nothing_between_them_changes(name, dtype, layout):
    given = samples.inputs(name, dtype)
    wanted = computed(name, given)
    outs = [layout(np.ones_like(one)) for one in wanted]
    for out in outs:
        storage_of(out)[...] = 0
    out = samples.out_of(name, outs)
    same(name, computed(name, given, out=out), wanted)
    for one in outs:
        one[...] = 0
        assert not storage_of(one).any()


@pytest.mark.parametrize("name", TWO_ALIKE)
def test_inputs_broadcast_or_are_refused(name):
    given = samples.inputs(name)
    thin = [array[:, :1] if n == 0 else array[:1] for n, array in enumerate(arrays_of(given))]
    call = with_arrays(given, thin)
    if name == "copy_":
        whole = given["input"].copy()
        aclnn.copy_(whole, call["src"])
        np.testing.assert_array_equal(whole, np.broadcast_to(call["src"], whole.shape))
        return
    if name not in BROADCAST:
        with pytest.raises(aclnn.AclnnError) as caught:
            samples.run(name, call)
        assert caught.value.status == INVALID
        return
    whole = [np.ascontiguousarray(one) for one in np.broadcast_arrays(*thin)]
    same(name, computed(name, call), computed(name, with_arrays(given, whole)))


# --- Dtypes ---------------------------------------------------------------------------------------


def keeps_dtypes(name, role, dtype):
    """Whether a rule's sentence says which dtype an input has: another input's, or one of others than this."""
    inputs, word = REGISTRY[name].inputs, dtypes.of_numpy(np.dtype(dtype)).name.removeprefix("ACL_")
    for rule in REGISTRY[name].rules:
        alike = re.findall(r"`(\w+)` (?:is \w+ or )?has the dtype of `(\w+)`", rule.text)
        if any(role in pair and pair[0] in inputs for pair in alike):
            return True
        among = re.match(rf"`{role}` (?:is|are) ([A-Z0-9, or]+)", rule.text)
        if among and word not in re.split(r"\W+", among[1]):
            return True
    return False


@each("name", [n for n in NAMES if len(samples.inputs(n)) > 1 or REGISTRY[n].lists])
def test_dtypes_promote_or_are_refused(name):
    """The last input is of another dtype, which rules refuse: or it is converted, as half of it is lost if not."""
    given = samples.inputs(name)
    role, (*first, last) = [*given][-1], arrays_of(given)
    other = samples.BFLOAT16 if last.dtype == np.float16 else np.float16
    mixed = with_arrays(given, [*first, last.astype(other)])
    if keeps_dtypes(name, role, other):
        with pytest.raises(
            aclnn.AclnnError, match=f"has dtype .*{role}|{role}.* has dtype"
        ) as caught:
            samples.run(name, mixed)
        assert caught.value.status == INVALID
        return
    whole = with_arrays(given, [*first, last.astype(np.float16).astype(np.float32)])
    found, wanted = computed(name, copy.deepcopy(mixed)), computed(name, whole)
    # Gradients of an input have its dtype.
    same(name, found, [one.astype(x.dtype) for x, one in zip(found, wanted, strict=True)])
    assert found[0].dtype == wanted[0].dtype


@each("name", OUT_OF_PLACE)
def test_outputs_of_another_dtype_get_the_result_cast_or_are_refused(name):
    given = samples.inputs(name, np.float16)
    wanted = computed(name, given)
    outs = [np.empty(one.shape, np.float32) for one in wanted]
    try:
        computed(name, given, out=samples.out_of(name, outs))
    except aclnn.AclnnError as refused:
        assert refused.status == INVALID
        assert "dtype" in refused.message
        assert any("dtype" in rule.text or "` is " in rule.text for rule in REGISTRY[name].rules)
        return
    for role, found, one in zip(samples.results(name), outs, wanted, strict=True):
        # Statistics, and what log_softmax computes in the output's dtype, are rounded there only.
        exact = (name, role) not in (("log_softmax", "out"),) and role not in ("mean", "rstd")
        tolerance = 0 if exact and name not in (*PRODUCTS, *CONVOLUTIONS) else 2.0**-9
        np.testing.assert_allclose(found, one.astype(np.float32), tolerance)


# --- Overlap --------------------------------------------------------------------------------------


def crossings(name):
    """Calls one of whose results begins inside of one of their inputs, and those that begin with it."""
    made = samples.results(name)
    for number, array in enumerate(arrays_of(samples.inputs(name))):
        for role, out in made.items():
            if array.dtype == out.dtype:
                for shift in (0, 1, -2):
                    yield number, role, shift


def executed(name, given, out):
    """What an executor gives that was planned for arrays elsewhere."""
    planned = {**samples.inputs(name), **samples.options(name)}
    executor = aclnn.executor(functional_owner(REGISTRY[name]).name, **planned)
    named = {}
    for role, value in given.items():
        one = (
            {f"{role}[{n}]": x for n, x in enumerate(value)}
            if type(value) is list
            else {role: value}
        )
        named |= one
    return executor.run(**named, out=out)


WAYS = (lambda name, given, out: samples.run(name, given, out=out), executed)


@each("name", OUT_OF_PLACE)
def test_runs_take_arrays_in_the_order_of_the_functional_form(name):
    operator, given = functional_owner(REGISTRY[name]), samples.inputs(name)
    executor = aclnn.executor(operator.name, **given, **samples.options(name))
    roles = [role for role in operator.positional if role in given]
    roles += [role for role in given if role not in roles]
    ordered = [x for role in roles for x in listed_arrays(given[role])]
    other = [np.ascontiguousarray(x[..., ::-1]) if x.dtype.kind == "f" else x for x in ordered]
    changed = with_arrays({role: given[role] for role in roles}, other)
    if name in ("index_put", "grouped_matmul"):  # whose lists are not the last: bound by names
        return
    if samples.UNLIKE.get(name, samples.NOTHING).absent:  # operands of which have a place, too
        same(name, made_by(executor.run(**changed)), computed(name, changed))
        return
    same(name, listed(executor.run(*other)), computed(name, changed))


@each("name", OUT_OF_PLACE)
@each("number, role, shift", crossings)
@each("run", lambda name, number, role, shift: some(WAYS, 1, f"{name}{number}{role}{shift}"))
def test_results_may_overlap_inputs(name, number, role, shift, run):
    """It is as if these had been read first."""
    given = samples.inputs(name)
    wanted = computed(name, given)
    outputs = list(samples.results(name))
    outs = [np.zeros_like(one) for one in wanted]
    arrays, out = arrays_of(given), outs[outputs.index(role)]
    memory = np.full(300, -7, out.dtype)
    first, begin = 30, 30 + shift
    source = memory[first : first + arrays[number].size].reshape(arrays[number].shape)
    target = memory[begin : begin + out.size].reshape(out.shape)
    source[...] = arrays[number]
    before = memory.copy()
    arrays[number], outs[outputs.index(role)] = source, target
    result = run(name, with_arrays(given, arrays), samples.out_of(name, outs))
    same(name, made_by(result), wanted)
    untouched = np.ones(300, bool)
    untouched[begin : begin + out.size] = False
    np.testing.assert_array_equal(memory[untouched], before[untouched])


# Caches and rows that keep elements: their own tests compare them.
CACHES = ("scatter_pa_kv_cache", "gather_pa_kv_cache", "kv_rmsnorm_rope_cache")
IN_PLACE_ONLY = {
    "copy_": lambda given: given["src"],
    "adamw_": lambda given: given["param"],  # its own tests compare it
    "zero_": lambda _: 0,
    "one_": lambda _: 1,
    "trans_matmul_weight_": lambda given: given["input"],
    "scatter_nd_update_": lambda given: [  # the last of the rows that name it
        given["updates"][np.flatnonzero(given["indices"] == row)[-1]] for row in (0, 1)
    ],
}


@each("name", [name for name in NAMES if REGISTRY[name].in_place and name not in CACHES])
def test_forms_in_place_are_those_out_of_place(name):
    operator, given = REGISTRY[name], samples.inputs(name)
    first = given[operator.inputs[0]]
    if name == operator.in_place:  # there is no other
        getattr(aclnn, name)(**given)
        np.testing.assert_array_equal(first, IN_PLACE_ONLY[name](given))
        return
    wanted = [one.astype(first.dtype) for one in computed(name, given)]
    for layout in (lambda array: array.copy(), *LAYOUTS):
        targets = {role: layout(given[role].copy()) for role in operator.overwritten.values()}
        call = copy.deepcopy(given) | targets
        found = listed(getattr(aclnn, operator.in_place)(**call, **samples.options(name)))
        same(name, found, wanted)
        for role, one in zip(operator.outputs, found, strict=True):
            if role in operator.overwritten:
                assert one is targets[operator.overwritten[role]]


def read_twice(name):
    """Operands of a form in place that may be the array that it writes."""
    operator, given = REGISTRY[name], samples.inputs(name)
    return [
        (taken, role)
        for taken in operator.overwritten.values()
        for role, one in given.items()
        if role not in operator.overwritten.values()
        and isinstance(one, np.ndarray)
        and (one.shape, one.dtype) == (given[taken].shape, given[taken].dtype)
    ]


@each("name", [name for name in NAMES if REGISTRY[name].in_place])
@each("taken, role", read_twice)
def test_compiled_forms_in_place_may_read_what_they_write_as_another_operand(name, taken, role):
    operator, given = REGISTRY[name], samples.inputs(name)
    form = getattr(aclnn, operator.in_place)
    given[taken] = given[taken][::-1].copy()  # unlike what the other one holds
    apart = copy.deepcopy(given) | {role: given[taken].copy()}
    form(**apart, **samples.options(name))
    others = {one: array for one, array in given.items() if one not in (taken, role)}

    def program(x):
        form(**others, **{taken: x, role: x}, **samples.options(name))

    aclnn.compile(program)(given[taken])
    np.testing.assert_array_equal(given[taken], apart[taken])


# --- Empties --------------------------------------------------------------------------------------


def emptied(given):
    """The same operands where 2 is 0, or 3 where none has that size."""
    gone = size_of(given)
    made = [
        np.empty([0 if size == gone else size for size in array.shape], array.dtype)
        for array in arrays_of(given)
    ]
    return with_arrays(given, made)


def size_of(given):
    return 2 if any(2 in array.shape for array in arrays_of(given)) else 3


# CANN's planning refuses them, or nothing could be chosen.
REFUSE_EMPTIES = (
    *("interleave_rope", "kv_rmsnorm_rope_cache", "quant_matmul", "weight_quant_batchmatmul"),
    *("moe_gating_top_k_softmax", "moe_gating_top_k_softmax_v2", "moe_gating_top_k"),
    *("moe_finalize_routing", "moe_token_unpermute", "gather_nd", "index"),
    *CONVOLUTIONS,
)


@each("name", WITH_INPUTS)
def test_empties(name):
    """Sums of nothing are 0; all else is of the shape that it has to be."""
    given = samples.inputs(name)
    gone = size_of(given)
    wanted = [[0 if n == gone else n for n in one.shape] for one in samples.results(name).values()]
    if name == "cat":
        wanted = [[4, 3]]
    if REGISTRY[name].measured:
        found, size = samples.run(name, emptied(given))
        assert (found.size, 0 in size) == (0, True)
        return
    if name == "moe_init_routing":  # counts of experts
        wanted[2] = [2]
    if name in REFUSE_EMPTIES:
        with pytest.raises(aclnn.AclnnError):
            samples.run(name, emptied(given))
        return
    if name in ("max", "min"):
        with pytest.raises(aclnn.AclnnError, match="without an element"):
            samples.run(name, emptied(given))
        return
    counted = {"N": 0} if name == "native_group_norm" else {}
    found = made_by(samples.run(name, emptied(given), **counted))
    assert [list(one.shape) for one in found] == wanted
    # Statistics of nothing are none, and running ones stay as they are.
    if name not in ("cat", "native_batch_norm_functional"):
        assert all((one == 0).all() for one in found)


# --- Both phases ----------------------------------------------------------------------------------


def roles_written(name):
    """Where the results are, in the operator's order."""
    operator, entry = ENTRIES[name]
    taken = entry.overwritten(operator.outputs)
    absent = samples.UNLIKE.get(operator.name, samples.NOTHING).absent
    absent += tuple([shape for shape, _ in operator.measured.values()])  # which has no tensor
    return [taken.get(role, role) for role in operator.outputs if role not in absent]


@pytest.fixture(scope="module")
def stream():
    made, status = aclnn.aclrtCreateStream()
    assert status == OK
    yield made
    assert aclnn.aclrtDestroyStream(made) == OK


def after_both_phases(name, dtype=np.float32, stream=None):
    arrays = samples.memory(name, dtype)
    assert samples.both_phases(name, samples.arguments(name, arrays), stream) == (OK, OK)
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    return arrays_of({role: arrays[role] for role in roles_written(name)})


# Whose functions in C keep the variance in the place of its root's inverse.
KEEPING_VARIANCES = ("aclnnBatchNorm", "aclnnBatchNormBackward")


@each("name", [one for one in ENTRIES if one not in KEEPING_VARIANCES])
@each("dtype", lambda name: samples.floats_of(ENTRIES[name][0].name))
def test_both_phases_give_what_the_functional_form_gives(name, dtype, stream):
    operator, entry = ENTRIES[name]
    options = dict(entry.fixed)
    for parameter in entry.parameters:
        if parameter.kind == "dtype":  # which has no default there
            options[parameter.role] = samples.options(operator.name).get(parameter.role, "float32")
    if not operator.inputs:
        options["dtype"] = np.dtype(dtype).name
    wanted = computed(operator.name, samples.inputs(operator.name, dtype), **options)
    if name in samples.BY_LENGTHS:
        wanted = [samples.by_lengths(one) for one in wanted]
    # What is written in place has the first input's dtype.
    asked = any(attribute.role == "dtype" for attribute in operator.attributes)
    casts = asked or "Inplace" in name
    wanted = wanted[: len(wanted) - len(operator.measured)]
    made = [one.astype(dtype) if casts else one for one in wanted]
    for queue in some((None, stream), 1, f"{name}{np.dtype(dtype)}"):
        found = after_both_phases(name, dtype, queue)
        if casts:
            found = [one.astype(dtype) for one in found]
        same(operator.name, found, made)


@each("name", ENTRIES)
def test_a_capture_of_one_call_leaves_what_the_call_leaves(name, stream):
    """Also once somebody has looked at its executor, which is then compiled as a capture."""
    wanted = after_both_phases(name)
    arrays = samples.memory(name)
    kept = copy.deepcopy(arrays)
    assert aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == OK
    assert samples.both_phases(name, samples.arguments(name, arrays), stream) == (OK, OK)
    model, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    for _ in range(2):
        for one, other in zip(arrays_of(arrays), arrays_of(kept), strict=True):
            if one is not None:
                one[...] = other
        assert aclnn.aclmdlRIExecute(model, -1) == OK, aclnn.aclGetRecentErrMsg()
        found = arrays_of({role: arrays[role] for role in roles_written(name)})
        same(ENTRIES[name][0].name, found, wanted)
        shown = model.executor
        assert (*shown.inputs, *shown.outputs) == shown.operand_names
    assert aclnn.aclmdlRIDestroy(model) == OK


@each("name", ENTRIES)
def test_other_memory_is_bound_by_index(name):
    """Inputs first, then outputs, in the order of the signature; a list's tensors one by one."""
    operator, entry = ENTRIES[name]
    wanted = after_both_phases(name)
    first, other = samples.memory(name, seed=1), samples.memory(name)
    given = samples.arguments(name, first)
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*given.values())
    assert status == OK
    kinds = ("input", "inout", "inputs", "single")
    inputs = [p for p in entry.parameters if p.kind in kinds]
    # A tensor in place is an output, too.
    taken = [p for p in entry.parameters if p.kind == "inout"]
    outputs = [p.role for p in entry.parameters if p.kind in ("output", "outputs")]
    # What is null has an index, too.
    arrays = [one for p in inputs for one in arrays_of({p.role: other.get(p.role)})]
    for index, array in enumerate(arrays):
        if array is None:
            continue
        assert aclnn.aclSetInputTensorAddr(executor, index, samples.tensor(array), array) == OK
    made = arrays_of({role: other.get(role) for role in outputs})
    for index, array in enumerate(made, len(taken)):
        if array is None:
            continue
        assert aclnn.aclSetOutputTensorAddr(executor, index, samples.tensor(array), array) == OK
    workspace = np.empty(size, np.uint8) if size else None
    assert getattr(aclnn, name)(workspace, size, executor, None) == OK
    same(operator.name, arrays_of({role: other[role] for role in roles_written(name)}), wanted)


# --- Executors, threads, cached plans -------------------------------------------------------------


@each("name", NAMES)
def test_an_executor_runs_in_every_pipeline(name, threads_as_before):
    given = samples.inputs(name)
    wanted = computed(name, copy.deepcopy(given))
    for place, settings in enumerate(
        (
            {},
            {"materialize": True},
            {"materialize": True, "strategy": "naive"},
            {"materialize": True, "strategy": "bucket"},
        )
    ):
        for threads in some((1, 2), 1, f"{name}{place}"):
            aclnn.set_num_threads(threads)
            executor = aclnn.executor(name, **given, **samples.options(name), **settings)
            same(name, made_by(executor.run()), wanted)
            same(name, made_by(executor.run()), wanted)


@each("name", NAMES)
@each("materialize", lambda name: some([False, True], 1, name))
def test_everything_that_an_executor_shows(name, materialize):
    given = samples.inputs(name, np.float16)
    executor = aclnn.executor(name, **given, **samples.options(name), materialize=materialize)
    for shown in (executor.graph_as_built, executor.graph, executor.plan, executor.schedule):
        assert shown.to_text()
        assert type(shown).from_json(shown.to_json()) == shown
    assert executor.graph_as_built.to_dot().startswith("digraph")
    assert executor.graph.to_svg(executor.plan).startswith("<svg")
    assert executor.plan.to_svg().startswith("<svg")
    assert executor.passes.to_text()
    assert executor.passes.side_by_side()
    assert name in repr(executor)
    profile = executor.profile(repeat=2)
    assert len(profile.steps) == len(executor.schedule.steps) > 0
    assert json.loads(profile.to_json())
    for role in given:
        assert role in executor.graph_as_built.to_text()


@each("name", NAMES)
def test_plans_are_made_once(name):
    given = samples.inputs(name)
    samples.run(name, copy.deepcopy(given))
    before = aclnn.cache_info()
    for _ in range(3):
        samples.run(name, copy.deepcopy(given))
    after = aclnn.cache_info()
    assert after["misses"] == before["misses"]
    assert after["hits"] == before["hits"] + 3


@each("name", NAMES)
def test_other_numbers_have_the_same_plan(name):
    scalars = [a for a in REGISTRY[name].scalars if "value" not in a.facts]
    numbers = [a.role for a in scalars if a.role not in FIXED]
    if REGISTRY[name].number_form is not None and name not in samples.INTEGERS_ONLY:
        numbers.append(REGISTRY[name].number_form[0])
    given = samples.inputs(name)
    first, second = (2, 3) if name in samples.INTEGERS_ONLY else (0.625, 0.75)
    aclnn.clear_cache()  # a full one forgets some
    for role in numbers:
        samples.run(name, copy.deepcopy(given), **{role: first})
        before = aclnn.cache_info()["misses"]
        samples.run(name, copy.deepcopy(given), **{role: second})
        assert aclnn.cache_info()["misses"] == before


def test_all_operators_at_once():
    """From several threads, while plans are forgotten."""
    calls = [(name, samples.inputs(name, dtype)) for name, dtype in dtypes_of(*NAMES)]
    wanted = [computed(name, copy.deepcopy(given)) for name, given in calls]
    failures = []

    def work(seed):
        for place in np.random.default_rng(seed).permutation(len(calls)):
            name, given = calls[place]
            try:
                same(name, made_by(samples.run(name, copy.deepcopy(given))), wanted[place])
            except Exception as error:
                failures.append((name, error))
            if seed == 0 and place % 64 == 0:
                aclnn.clear_cache()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# --- Arrays of other libraries --------------------------------------------------------------------


@each("name", WITH_INPUTS)
def test_tensors_of_pytorch(name):
    torch = pytest.importorskip("torch")
    given = samples.inputs(name)
    wanted = computed(name, copy.deepcopy(given))
    tensors = with_arrays(given, [torch.from_numpy(one.copy()) for one in arrays_of(given)])
    found = made_by(samples.run(name, tensors))
    assert all(isinstance(one, torch.Tensor) for one in found)
    same(name, [one.numpy() for one in found], wanted)


@each("name", WITH_DIMS)
def test_outputs_that_cannot_be_written(name):
    given = samples.inputs(name)
    written = [place for place, one in enumerate(samples.results(name).values()) if one.size]
    for number in written:
        outs = list(samples.results(name).values())
        outs[number].flags.writeable = False
        with pytest.raises(aclnn.AclnnError, match="read-only"):
            samples.run(name, given, out=samples.out_of(name, outs))
        outs = list(samples.results(name).values())
        outs[number] = np.broadcast_to(outs[number].ravel()[0], outs[number].shape)
        outs[number].flags.writeable = True
        if outs[number].size == 1:
            continue
        with pytest.raises(aclnn.AclnnError, match="share memory"):
            samples.run(name, given, out=samples.out_of(name, outs))


# --- What is refused when it runs -----------------------------------------------------------------


# Of which any number is an expert, or a row that nothing takes; and those without the groups that their kernel,
# which grouped products have as well, looks at.
TAKE_ANY = ("moe_token_permute", "moe_token_unpermute", "quant_matmul", "weight_quant_batchmatmul")


def looks_at_numbers(name):
    """Whether a kernel's record says what is wrong with numbers that it finds: indices, counts, slots."""
    form = functional_owner(REGISTRY[name]).name
    graph = aclnn.executor(form, **samples.inputs(name), **samples.options(name)).graph
    used = {node.attr("kernel") for node in graph.nodes} & records().keys()
    return any(records()[kernel].failures for kernel in used)


def whole_numbers(name, dtype):
    """Places of integers among the arrays of a sample: indices, lengths, counts."""
    arrays = arrays_of(samples.inputs(name, dtype))
    return [at for at, one in enumerate(arrays) if one.dtype.kind in "iu" and one.size]


WHOLE = [name for name in NAMES if whole_numbers(name, np.float32)]


@each("name", WHOLE)
def test_nothing_is_written_where_an_index_is_out_of_range(name):
    refusals = 0
    for dtype in samples.floats_of(name):
        for at in whole_numbers(name, dtype):
            refusals += leaves_memory_as_it_was(name, dtype, at)
    assert refusals or name in TAKE_ANY or not looks_at_numbers(name)


def leaves_memory_as_it_was(name, dtype, at):
    """Whether a call is refused for the last number of an array, then without having written anything."""
    given = samples.inputs(name, dtype)
    number = arrays_of(given)[at]
    number.flat[-1] = np.iinfo(number.dtype).max
    outs = [] if name not in OUT_OF_PLACE else list(samples.results(name, dtype).values())
    for out in outs:
        out.view(np.uint8 if out.ndim else out.dtype)[...] = 7
    before = [one.tobytes() for one in (*arrays_of(given), *outs)]
    try:
        samples.run(name, given, **({"out": samples.out_of(name, outs)} if outs else {}))
    except (aclnn.AclnnError, IndexError, ValueError):
        after = [one.tobytes() for one in (*arrays_of(given), *outs)]
        assert after == before
        return True
    return False
