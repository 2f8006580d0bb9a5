"""The aclnn two-phase operator interface of Ascend's CANN, on any CPU.

Three layers, each usable alone: C-shaped functions with CANN's names, functional forms on arrays,
and executors that plan once and run often.  Names are loaded when they are first used, so that
`aclnn.graph`, which knows no operator, can be imported without any kernel.  ``from aclnn import *`` leaves
Python's own names alone: `abs`, `max`, `round`, `sum` and others stay ``aclnn.abs`` and so on.

Examples
--------
>>> import numpy as np
>>> import aclnn
>>> aclnn.leaky_relu(np.array([-2.0, 3.0], np.float32), 0.5)
array([-1.,  3.], dtype=float32)
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
from types import ModuleType
from typing import Any

from aclnn import deferred as _deferred
from aclnn._version import __version__ as __version__
from aclnn.acl._frames import boundary

_deferred.declare("calls of C", "aclnn.acl.from_c")
_deferred.declare("environment variables", "aclnn.environment")
_deferred.declare("runs of models", "aclnn.execution.replay")
_deferred.declare("settings", "aclnn.compiler.settings")
_deferred.declare("arrays of torch", "aclnn.torch")
_deferred.declare("arrays of dask", "aclnn.dask")

# Module -> the public names it has; whole groups (constants, operators) are looked up below.
_HOMES = {
    "acl.errors": ("AclnnError", "AclnnTypeError", "aclGetRecentErrMsg"),
    "errors.explain": ("explain",),
    "acl._tensor": (
        "aclTensor",
        "aclScalar",
        "aclCreateTensor",
        "aclInitTensor",
        "aclDestroyTensor",
        "aclGetViewShape",
        "aclGetStorageShape",
        "aclGetViewStrides",
        "aclGetViewOffset",
        "aclGetFormat",
        "aclGetDataType",
        "aclGetRawTensorAddr",
        "aclSetRawTensorAddr",
        "aclCreateScalar",
        "aclDestroyScalar",
    ),
    "acl._lists": (
        "aclIntArray",
        "aclCreateIntArray",
        "aclDestroyIntArray",
        "aclGetIntArraySize",
        "aclFloatArray",
        "aclCreateFloatArray",
        "aclDestroyFloatArray",
        "aclGetFloatArraySize",
        "aclBoolArray",
        "aclCreateBoolArray",
        "aclDestroyBoolArray",
        "aclGetBoolArraySize",
        "aclTensorList",
        "aclCreateTensorList",
        "aclDestroyTensorList",
        "aclGetTensorListSize",
        "aclScalarList",
        "aclCreateScalarList",
        "aclDestroyScalarList",
        "aclGetScalarListSize",
    ),
    "compiler.settings": (
        "aclrtGetSocName",
        "get_num_threads",
        "get_soc_version",
        "num_threads",
        "set_num_threads",
        "set_soc_version",
    ),
    "execution._executor": ("aclOpExecutor",),
    "execution._rebinding": (
        "aclSetAclOpExecutorRepeatable",
        "aclDestroyAclOpExecutor",
        "aclSetInputTensorAddr",
        "aclSetOutputTensorAddr",
        "aclSetTensorAddr",
        "AclSetInputTensorAddr",
        "AclSetOutputTensorAddr",
        "AclSetTensorAddr",
        "aclSetDynamicInputTensorAddr",
        "aclSetDynamicOutputTensorAddr",
        "aclSetDynamicTensorAddr",
        "AclSetDynamicInputTensorAddr",
        "AclSetDynamicOutputTensorAddr",
        "AclSetDynamicTensorAddr",
    ),
    "api.data_dependent": ("masked_select", "nonzero"),
    "api.executor": ("executor",),
    "api.tensors": ("tensor",),
    "execution._workspace": ("WorkspacePool",),
    "tracing.compiled": ("compile",),
    "tracing.opaque": ("call",),
    "onnx.reading": ("OnnxModel", "from_onnx"),
    "api.verbose": ("set_verbose",),
    "api.handles": ("cache_info", "clear_cache"),  # of `_plan`, set as the environment says
    "reports.config": ("show_config",),
    "reports.profiling": ("Profile", "profile"),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}
# Modules all of whose public names (`__all__`) are ours; asked in this order for names of CANN's, else in reverse.
_GROUPS = (
    "acl.constants",
    "acl.lifetime",
    "acl.device",
    "acl.context",
    "acl.element_sizes",
    "acl.memory",
    "acl.copies",
    "acl.mapping",
    "acl.stream",
    "acl.events",
    "acl.event_queries",
    "acl.model_ri",
    "acl.model_capture",
    "acl.task_groups",
    "acl.model_trace",
    "acl.weights",
    "api.two_phase",
    "api.functional",
)
_MODULES = ("graph", "isa", "operators")


@boundary(kind=(AttributeError, ImportError))
def __getattr__(name: str) -> Any:
    value = _find(name)
    if not isinstance(value, ModuleType):  # the import system keeps those, once they are whole
        globals()[name] = value
    return value


def _find(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"aclnn.{_NAMES[name]}"), name)
    if name == "__all__":
        return [one for one in _public_names() if not hasattr(builtins, one)]
    if name.startswith("__"):
        raise AttributeError(f"module 'aclnn' has no attribute {name!r}")
    spec = importlib.util.find_spec(f"aclnn.{name}") if name.isidentifier() else None
    if spec is not None and spec.origin is not None:  # folders without Python are no modules
        return importlib.import_module(f"aclnn.{name}")
    if not name.startswith("_"):
        # CANN's names begin with acl: other groups need not be imported to know that they lack them.
        groups = _GROUPS if name.lower().startswith("acl") else reversed(_GROUPS)
        for group in groups:
            module = importlib.import_module(f"aclnn.{group}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'aclnn' has no attribute {name!r}{_meant(name)}{_left_out()}")


def _meant(name: str) -> str:
    """A hint for a name that is nearly one that there is."""
    if name.startswith("_"):
        return ""
    arguments = importlib.import_module("aclnn.acl.arguments")
    return str(arguments.did_you_mean(name, _public_names()))


def _left_out() -> str:
    """A possible reason why an operator's name is not known."""
    broken = importlib.import_module("aclnn.operators").BROKEN
    if not broken:
        return ""
    listed = "; ".join(f"{module}: {error}" for module, error in broken.items())
    return f"; operators of these modules are left out: {listed}"


def __dir__() -> list[str]:
    return [*_public_names(), "__version__"]


def _public_names() -> list[str]:
    grouped = [n for g in _GROUPS for n in importlib.import_module(f"aclnn.{g}").__all__]
    return sorted({*_NAMES, *_MODULES, *grouped})
