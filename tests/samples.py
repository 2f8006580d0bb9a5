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
    dtypes: dict[str, type] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def _norm(**shapes):
    return Unlike({"weight": (3,), "bias": (3,)} | shapes, options={"normalized_shape": (3,)})


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
    "matmul": Unlike({"other": (3, 4)}),
    "mm": Unlike({"mat2": (3, 4)}),
    "bmm": Unlike({"input": (2, 2, 3), "mat2": (2, 3, 4)}),
    "addmm": Unlike({"input": (2, 4), "mat1": (2, 3), "mat2": (3, 4)}),
    "softmax": Unlike(options={"dim": 1}),
    "log_softmax": Unlike(options={"dim": 1}),
    "softmax_backward": Unlike(options={"dim": 1}),
    "log_softmax_backward": Unlike(options={"dim": 1}),
    "sum": Unlike(options={"dim": (1,)}),
    "layer_norm": _norm(),
    "native_layer_norm": _norm(),
    "native_layer_norm_backward": _norm(**_ROWS),
    "rms_norm": _norm(),
    "native_rms_norm": Unlike({"gamma": (3,)}),
    "rms_norm_backward": Unlike({"gamma": (3,), "rstd": (2, 1)}, {"rstd": np.float32}),
} | {
    name: Unlike(options={"other": 0.5})
    for name, operator in REGISTRY.items()
    if not operator.functional
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
    fixed = UNLIKE.get(name, NOTHING).dtypes.get(role)
    return numbers > 0.5 if fixed is np.bool_ else numbers.astype(fixed or dtype)


def options(name):
    """An operator's options that have to be given, or that make its sample a good one."""
    return dict(UNLIKE.get(name, NOTHING).options)


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
    return {role: (one.shape, one.dtype) for role, one in zip(operator.outputs, found, strict=True)}


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
    made = results(operator.name, dtype) if roles else {}
    return given | {role: array for role, array in made.items() if role in roles}


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
        elif parameter.kind == "inputs":
            listed = [seen(array) for array in found[parameter.role]]
            made[parameter.name] = aclnn.aclCreateTensorList(listed)
        else:
            made[parameter.name] = _option(operator, parameter)
    return made


_PLAIN = {
    "scalar": 1.0,
    "float": 1e-5,
    "ints": (1,),
    "bools": (True,),
    "int": 0,
    "dtype": "float32",
}


def _option(operator, parameter):
    """An option as C-shaped functions take it."""
    (attribute,) = [a for a in operator.attributes if a.role == parameter.role]
    value = options(operator.name).get(attribute.role, attribute.default)
    if value is None or not isinstance(value, bool | int | float | str | tuple):
        value = _PLAIN[parameter.kind]
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
