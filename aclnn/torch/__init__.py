"""Operators in PyTorch: registered, differentiable, and a backend of ``torch.compile``.

Importing it registers ``torch.ops.aclnn.<operator>`` for every operator with a functional form, with
kernels for the CPU, fake kernels and gradients, and lets ``torch.compile`` trace the functional forms.
These are here as well: ``aclnn.torch.gelu`` is ``aclnn.gelu``, which is differentiable.

Examples
--------
>>> import torch
>>> import aclnn.torch
>>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
>>> aclnn.torch.leaky_relu(x, 0.5).sum().backward()
>>> x.grad
tensor([0.5000, 1.0000])
"""

from __future__ import annotations

import builtins as _builtins
import importlib
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "aclnn.torch needs PyTorch 2.13 or newer: pip install torch", name="torch"
    ) from error

from aclnn.acl._frames import boundary as _boundary
from aclnn.acl.arguments import did_you_mean as _did_you_mean
from aclnn.api import functional as _functional
from aclnn.torch.registration import register as _register

if TYPE_CHECKING:
    from aclnn.torch.dynamo import backend as backend
    from aclnn.torch.explanation import Explanation as Explanation
    from aclnn.torch.explanation import explain as explain

_register()

# What needs Dynamo, whose import takes longer than everything else here, is imported when it is asked for.
_BY_DYNAMO = {
    "backend": "aclnn.torch.dynamo",
    "Explanation": "aclnn.torch.explanation",
    "explain": "aclnn.torch.explanation",
}
_PUBLIC = [*_BY_DYNAMO, *_functional.__all__]
# A star leaves Python's own names alone: `sum`, `max` and others.
__all__ = [_one for _one in _PUBLIC if not hasattr(_builtins, _one)]


@_boundary(kind=AttributeError)
def __getattr__(name: str) -> Any:
    if name in _BY_DYNAMO:
        return getattr(importlib.import_module(_BY_DYNAMO[name]), name)
    if name not in _functional.__all__:
        meant = "" if name.startswith("_") else _did_you_mean(name, _PUBLIC)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    return getattr(_functional, name)


def __dir__() -> list[str]:
    return _PUBLIC
