"""A good call of every operator, for tests that go over all of them.

By default every tensor has the shape (2, 3) and the dtype that is asked for, and options have their
defaults; `UNLIKE` says what is different. A test that asserts something of all operators takes its
arguments from here, so that a new operator takes part with one line at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import dtypes
from aclnn.api import c_shaped
from aclnn.cli.calls import form_of
from aclnn.operators import ENTRIES, REGISTRY

SHAPE = (2, 3)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (np.dtype(np.float32), np.dtype(np.float16), BFLOAT16)


@dataclass(frozen=True)
class Unlike:
    """What is different of an operator's sample: by role shapes, dtypes that are fixed, options."""

    shapes: dict[str, Any] = field(default_factory=dict)  # of a list, a shape for each tensor
    dtypes: dict[str, type] = field(default_factory=dict)  # of integers: indices 0 and 1
    options: dict[str, Any] = field(default_factory=dict)
    halves_only: bool = False  # float16 stands for float32, which it does not take


def _norm(**shapes):
    return Unlike({"weight": (3,), "bias": (3,)} | shapes, options={"normalized_shape": (3,)})


_INDEX = {"index": np.int64}
_CHANNELS = {"input": (2, 4, 3)} | dict.fromkeys(
    ("weight", "bias", "running_mean", "running_var"), (4,)
)
_ROWS = {"mean": (2, 1), "rstd": (2, 1)}
UNLIKE = {
    "threshold": Unlike(options={"threshold": 0.5, "value": 7.0}),
    "threshold_backward": Unlike(options={"threshold": 0.5}),
    "prelu": Unlike({"weight": (3,)}),
    "prelu_backward": Unlike({"weight": (3,)}),
    "log_sigmoid_forward": Unlike({"buffer": (1,)}),
    "log_sigmoid_backward": Unlike({"buffer": (1,)}),
    "where": Unlike(dtypes={"condition": np.bool_}),
    "cast": Unlike(options={"dtype": "float32"}),
    "permute": Unlike(options={"dims": (1, 0)}),
    "cat": Unlike({"tensors": [(2, 3), (4, 3)]}),
    "swiglu": Unlike({"input": (2, 6)}),
    "swiglu_backward": Unlike({"input": (2, 6)}),
    "glu": Unlike({"input": (2, 6)}),
    "glu_backward": Unlike({"input": (2, 6)}),
    "geglu": Unlike({"input": (2, 6)}),
    "geglu_backward": Unlike({"input": (2, 6)}),
    "gelu_mul": Unlike({"input": (2, 6)}),
    "fatrelu_mul": Unlike({"input": (2, 6), "threshold": (1,)}),
    "clipped_swiglu": Unlike({"input": (2, 6), "group_index": (1,)}, {"group_index": np.int64}),
    "clipped_swiglu_backward": Unlike(
        {"input": (2, 6), "group_index": (1,)}, {"group_index": np.int64}
    ),
    "matmul": Unlike({"other": (3, 4)}),
    "mm": Unlike({"mat2": (3, 4)}),
    "bmm": Unlike({"input": (2, 2, 3), "mat2": (2, 3, 4)}),
    "addmm": Unlike({"input": (2, 4), "mat1": (2, 3), "mat2": (3, 4)}),
    "baddbmm": Unlike({"input": (2, 2, 4), "batch1": (2, 2, 3), "batch2": (2, 3, 4)}),
    "addbmm": Unlike({"input": (2, 4), "batch1": (3, 2, 3), "batch2": (3, 3, 4)}),
    "mv": Unlike({"vec": (3,)}),
    "addmv": Unlike({"input": (2,), "mat": (2, 3), "vec": (3,)}),
    "gemm": Unlike({"b": (3, 4), "c": (2, 4)}),
    "scaled_dot_product_attention": Unlike({"attn_mask": (2, 2)}),
    "scaled_dot_product_attention_forward": Unlike({"attn_mask": (2, 2)}),
    "scaled_dot_product_attention_backward": Unlike(
        {"attn_mask": (2, 2), "logsumexp": (2,)}, {"logsumexp": np.float32}
    ),
    "rotary_position_embedding": Unlike(dict.fromkeys(("x", "cos", "sin"), (2, 4))),
    "apply_rotary_pos_emb": Unlike(
        dict.fromkeys(("query", "key", "cos", "sin"), (2, 3, 1, 4)),
        options={"layout": 1, "rotary_mode": "half"},
    ),
    "add_rms_norm": Unlike({"gamma": (3,)}),
    "add_rms_norm_cast": Unlike({"gamma": (3,)}, halves_only=True),
    "gemma_rms_norm": Unlike({"gamma": (3,)}),
    "add_layer_norm": Unlike(
        dict.fromkeys(("gamma", "beta", "bias"), (3,)), options={"additional_output": True}
    ),
    "native_group_norm": Unlike(
        _CHANNELS, options={"N": 2, "C": 4, "HxW": 3, "group": 1}
    ),
    "group_norm": Unlike(_CHANNELS, options={"num_groups": 2}),
    "group_norm_silu": Unlike(_CHANNELS, options={"group": 1}),
    "native_batch_norm": Unlike(_CHANNELS),
    "batch_norm": Unlike(_CHANNELS),
    "softmax": Unlike(options={"dim": 1}),
    "log_softmax": Unlike(options={"dim": 1}),
    "softmax_backward": Unlike(options={"dim": 1}),
    "log_softmax_backward": Unlike(options={"dim": 1}),
    "sum": Unlike(options={"dim": (1,)}),
    "mean": Unlike(options={"dim": (1,), "dtype": "float32"}),
    "amax": Unlike(options={"dim": (1,)}),
    "var": Unlike(options={"dim": (1,)}),
    "arg_max": Unlike(options={"dim": 1}),
    "cumsum": Unlike(options={"dim": 1}),
    "masked_fill": Unlike(dtypes={"mask": np.bool_}, options={"value": 0.5}),
    "fill": Unlike(options={"value": 0.5}),
    "clamp": Unlike(options={"min": 0.25, "max": 0.5}),
    "embedding": Unlike({"indices": (2,)}, {"indices": np.int64}),
    "index_select": Unlike({"index": (4,)}, _INDEX, {"dim": 1}),
    "gather_v2": Unlike({"index": (4, 2)}, _INDEX, {"dim": 1}),
    "gather": Unlike({"index": (2, 2)}, _INDEX, {"dim": 1}),
    "slice": Unlike(options={"dim": 1, "start": 2, "end": 9, "step": 1}),
    "expand": Unlike(options={"size": (4, -1, 3)}),
    "repeat": Unlike(options={"repeats": (1, 2)}),
    "constant_pad_nd": Unlike(options={"pad": (1, 2)}),
    "split": Unlike(options={"split_size": 1, "dim": 1}),
    "split_with_sizes": Unlike({"input": (2, 4)}, options={"split_sizes": (1, 3), "dim": 1}),
    "stack": Unlike({"tensors": [(2, 3)] * 3}),
    "layer_norm": _norm(),
    "native_layer_norm": _norm(),
    "native_layer_norm_backward": _norm(**_ROWS),
    "rms_norm": _norm(),
    "native_rms_norm": Unlike({"gamma": (3,)}),
    "rms_norm_backward": Unlike({"gamma": (3,), "rstd": (2, 1)}, {"rstd": np.float32}),
    "sort": Unlike(options={"dim": 1}),
    "argsort": Unlike(options={"dim": 1}),
    "topk": Unlike(options={"k": 1, "dim": 1}),
    "top_k_top_p": Unlike({"p": (2,), "k": (2,)}, {"k": np.int32}),
    "scaled_masked_softmax": Unlike({"x": (1, 2, 2, 3), "mask": (1, 1, 2, 3)}, {"mask": np.bool_}),
}  # fmt: skip
NOTHING = Unlike()
FUNCTIONAL = [name for name, operator in REGISTRY.items() if operator.functional]


def shape_of(name, role):
    return UNLIKE.get(name, NOTHING).shapes.get(role, SHAPE)


def inputs(name, dtype=np.float32, seed=0, fill=None):
    """Arrays for an operator's inputs, by role; a list for a list of tensors."""
    rng = np.random.default_rng(seed)
    return {role: _arrays(rng, name, role, dtype, fill) for role in REGISTRY[name].inputs}


def _arrays(rng, name, role, dtype, fill):
    shape = shape_of(name, role)
    if role in REGISTRY[name].lists:
        return [_array(rng, name, role, one, dtype, fill) for one in shape]
    return _array(rng, name, role, shape, dtype, fill)


def _array(rng, name, role, shape, dtype, fill):
    """Numbers that every formula takes: between 0 and 1, but both where truth values are wanted."""
    numbers = rng.uniform(0.1, 0.9, shape) if fill is None else np.full(shape, fill)
    unlike = UNLIKE.get(name, NOTHING)
    fixed = unlike.dtypes.get(role)
    dtype = np.float16 if unlike.halves_only and np.dtype(dtype) == np.float32 else dtype
    if fixed is np.bool_ or (fixed is not None and np.issubdtype(fixed, np.integer)):
        return (numbers > 0.5).astype(fixed)
    return numbers.astype(fixed or dtype)


def options(name):
    """An operator's options that have to be given, or that make its sample a good one."""
    numbers = {a.role: 0.5 for a in REGISTRY[name].scalars if REGISTRY[name].is_required(a.role)}
    return numbers | UNLIKE.get(name, NOTHING).options


def run(name, given, **changes):
    """The functional form of an operator, or that of its form with a tensor, on arrays by role."""
    form = form_of(REGISTRY[name])
    return getattr(aclnn, form.name)(**({**given, **options(name)} | changes))


def results(name, dtype=np.float32):
    """Arrays like an operator's results, by role."""
    return {role: np.zeros(shape, kind) for role, (shape, kind) in _described(name, dtype).items()}


@cache
def _described(name, dtype):
    """Shapes and dtypes of an operator's results, by role, as the default product makes them."""
    operator, given, before = REGISTRY[name], inputs(name, dtype), aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend910B")
    try:
        made = run(name, given)
    finally:
        aclnn.set_soc_version(before)
    found = made if isinstance(made, tuple) else (made,)
    roles = operator.outputs if operator.makes is None else operator.sized(len(found)).outputs
    return {role: (one.shape, one.dtype) for role, one in zip(roles, found, strict=True)}


def floats_of(name):
    """The floating dtypes of an operator."""
    return FLOATS[:2] if name == "shrink" else FLOATS


# --- C-shaped calls -----------------------------------------------------------------------------


def tensor(array=None, shape=None, dtype=T.ACL_FLOAT):
    """An aclTensor on an array, or of a shape and without memory."""
    if array is not None:
        return c_shaped.tensor(array)
    made = aclnn.aclCreateTensor(shape, dtype, None, 0, aclnn.ACL_FORMAT_ND, shape, None)
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def memory(entry_name, dtype=np.float32, seed=0):
    """Arrays for a C-shaped function, by the roles of its parameters: inputs, and room for results."""
    operator, entry = ENTRIES[entry_name]
    given = inputs(operator.name, dtype, seed)
    roles = {p.role for p in entry.parameters if p.kind == "output"}
    made = results(operator.name, dtype) if roles or operator.makes else {}
    listed = {"out": list(made.values())} if operator.makes else {}
    return given | listed | {role: array for role, array in made.items() if role in roles}


def arguments(entry_name, arrays=None, dtype=np.float32):
    """Good arguments of a first phase, by CANN's names: on arrays by role, or without memory."""
    operator, entry = ENTRIES[entry_name]
    found = memory(entry_name, dtype) if arrays is None else arrays

    def seen(array):
        if arrays is not None:
            return tensor(array)
        return tensor(shape=array.shape, dtype=dtypes.of_numpy(array.dtype))

    made = {}
    for parameter in entry.parameters:
        if parameter.is_tensor:
            made[parameter.name] = seen(found[parameter.role])
        elif parameter.kind in ("inputs", "outputs"):
            listed = [seen(array) for array in found[parameter.role]]
            made[parameter.name] = aclnn.aclCreateTensorList(listed)
        else:
            result = found.get("out", np.float32(0))
            result = result[0] if isinstance(result, list) else result
            made[parameter.name] = _option(operator, parameter, result.dtype.name)
    return made


_PLAIN = {
    "scalar": 1.0,
    "float": 1e-5,
    "ints": (1,),
    "bools": (True,),
    "int": 0,
}


def _option(operator, parameter, dtype):
    """An option as C-shaped functions take it; `dtype` is the result's."""
    (attribute,) = [a for a in operator.attributes if a.role == parameter.role]
    value = options(operator.name).get(attribute.role, attribute.default)
    if value is None or not isinstance(value, bool | int | float | str | tuple):
        value = dtype if parameter.kind == "dtype" else _PLAIN[parameter.kind]
    make = {
        "scalar": lambda: aclnn.aclCreateScalar(value, aclnn.ACL_FLOAT),
        "ints": lambda: aclnn.aclCreateIntArray(value),
        "bools": lambda: aclnn.aclCreateBoolArray(value),
        "dtype": lambda: dtypes.of_name(value),
        "int": lambda: attribute.choices.index(value) if attribute.choices else value,
    }  # fmt: skip
    return make.get(parameter.kind, lambda: value)()


def both_phases(entry_name, arguments, stream=None, workspace=None):
    """The statuses of both phases; the second is not run where the first fails."""
    size, executor, status = getattr(aclnn, f"{entry_name}GetWorkspaceSize")(*arguments.values())
    if status != aclnn.ACLNN_SUCCESS:
        return status, None
    given = np.empty(size, np.uint8) if size and workspace is None else workspace
    return status, getattr(aclnn, entry_name)(given, size, executor, stream)


# C-shaped functions that the default product does not have; tests of all functions ask one that does.
PRODUCTS = dict.fromkeys(("aclnnSquare", "aclnnInplaceSquare"), "Ascend950")


@pytest.fixture(autouse=True)
def product_that_has_it(request):
    """Select it while a test runs; what runs without the suite's own settings imports this."""
    given = getattr(request.node, "callspec", None)
    wanted = PRODUCTS.get(given.params.get("name")) if given else None
    if wanted is None:
        yield
        return
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(wanted)
    yield
    aclnn.set_soc_version(before)
