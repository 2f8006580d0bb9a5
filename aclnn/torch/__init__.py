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

from typing import Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "aclnn.torch needs PyTorch 2.4 or newer: pip install torch", name="torch"
    ) from error

from aclnn.api import functional as _functional
from aclnn.torch.dynamo import backend as backend
from aclnn.torch.explanation import Explanation as Explanation
from aclnn.torch.explanation import explain as explain
from aclnn.torch.registration import register as _register

_register()

__all__ = ["Explanation", "backend", "explain", *_functional.__all__]


def __getattr__(name: str) -> Any:
    if name not in _functional.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_functional, name)


def __dir__() -> list[str]:
    return __all__
