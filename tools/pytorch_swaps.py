"""An MLP with PyTorch's activations, and the same one with ours, for `make_pytorch.py`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import aclnn

BATCHES = (1, 32, 512)
ACTIVATIONS: dict[str, tuple[nn.Module, Callable[[Any], Any]]] = {
    "GELU": (nn.GELU(), aclnn.gelu),
    "SiLU": (nn.SiLU(), aclnn.silu),
    "ReLU": (nn.ReLU(), aclnn.relu),
}


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def networks(name: str) -> tuple[nn.Sequential, nn.Sequential]:
    """256-1024-256 with an activation: ours and PyTorch's, with the same weights."""
    theirs, function = ACTIVATIONS[name]
    first, last = nn.Linear(256, 1024), nn.Linear(1024, 256)
    made = nn.Sequential(first, theirs, last)
    swapped = nn.Sequential(copy.deepcopy(first), Called(function), copy.deepcopy(last))
    return swapped, made


def inference(model: nn.Sequential, batch: int) -> Callable[[], Any]:
    model = copy.deepcopy(model).eval()
    x = torch.randn(batch, 256)

    @torch.no_grad()
    def call() -> Any:
        return model(x)

    return call


def step(model: nn.Sequential, batch: int) -> Callable[[], Any]:
    """A step of training: forward, backward, and stochastic gradient descent."""
    model = copy.deepcopy(model).train()
    x, wanted = torch.randn(batch, 256), torch.randn(batch, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def call() -> Any:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), wanted).backward()
        optimizer.step()

    return call
