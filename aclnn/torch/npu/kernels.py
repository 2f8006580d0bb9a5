"""Operators that PyTorch's CPU has no kernel for, or none that takes the device's generator."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from aclnn.torch.npu.operators import Operands
from aclnn.torch.private import AutoDispatchBelowAutograd

aten = torch.ops.aten
_libraries: list[Any] = []


def register(device: ModuleType) -> None:
    """Register them at the device's key."""
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    for name, compute in _KERNELS.items():
        library.impl(name, _on_aliases(device, name, compute), "PrivateUse1")
    library.impl("_has_compatible_shallow_copy_type", _may_become, "PrivateUse1")
    library.impl("native_dropout", _dropout(device), "PrivateUse1")
    for key in ("SparsePrivateUse1", "NestedTensorPrivateUse1"):
        others = torch.library.Library("_", "IMPL")
        _libraries.append(others)
        others.fallback(_unsupported, key)
    for key in ("Conjugate", "Negative"):  # a copy resolves them itself
        for name in ("_copy_from", "_copy_from_and_resize"):
            library.impl(name, torch.library.fallthrough_kernel, key)


def _may_become(one: Any, other: Any) -> bool:
    """Whether a tensor may get the other's memory in place: so modules keep their parameters, and ties of them."""
    return all(
        each.layout == torch.strided
        and not each.is_quantized
        and each.device.type in ("cpu", "npu")
        for each in (one, other)
    )


def _unsupported(op: Any, *args: Any, **named: Any) -> Any:
    raise NotImplementedError(
        f"NOT_SUPPORT: {op} of sparse tensors or strided nested ones has no kernel on the emulated npu device; take "
        "dense tensors, or nested ones with layout=torch.jagged"
    )


def _on_aliases(device: ModuleType, name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        operands = Operands()
        device.count_fallback(f"aten::{name}", f"aten::{name}")
        values = [operands.of(one) for one in args]
        with AutoDispatchBelowAutograd():
            made = compute(*values)
        return tuple([None if one is None else operands.result(one) for one in made])

    return kernel


def _lstm(
    input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any = None, hidden_bias: Any = None
) -> Any:
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


def _lstm_backward(
    grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool
) -> Any:
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    dhy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    dcy = dhy * o * (1 - tanh * tanh)
    if grad_cy is not None:
        dcy = dcy + grad_cy
    gates = torch.cat(
        (
            dcy * g * i * (1 - i),
            dcy * cx * f * (1 - f),
            dcy * i * (1 - g * g),
            dhy * tanh * o * (1 - o),
        ),
        1,
    )
    return gates, dcy * f, gates.sum(0) if has_bias else torch.empty(0)


def _gru(
    input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any = None, hidden_bias: Any = None
) -> Any:
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    ir, iz, i_n = input_gates.chunk(3, 1)
    hr, hz, hn = hidden_gates.chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (i_n + r * hn).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, hn), 1)


def _gru_backward(grad_hy: Any, workspace: Any, has_bias: bool) -> Any:
    r, z, n, hx, hn = workspace.chunk(5, 1)
    dn = grad_hy * (1 - z) * (1 - n * n)
    dz, dr = grad_hy * (hx - n) * z * (1 - z), dn * hn * r * (1 - r)
    of_input, of_hidden = torch.cat((dr, dz, dn), 1), torch.cat((dr, dz, dn * r), 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (torch.empty(0), torch.empty(0))
    return of_input, of_hidden, grad_hy * z, *biases


_KERNELS: dict[str, Callable[..., Any]] = {
    "_thnn_fused_lstm_cell": _lstm,
    "_thnn_fused_lstm_cell_backward_impl": _lstm_backward,
    "_thnn_fused_gru_cell": _gru,
    "_thnn_fused_gru_cell_backward": _gru_backward,
}


def _dropout(device: ModuleType) -> Callable[..., Any]:
    """Dropout whose mask is drawn by the device's generator, which PyTorch's operator has no argument for."""

    def kernel(x: Any, p: float, train: bool | None) -> Any:
        device.count_fallback("aten::native_dropout", "aten::native_dropout")
        if train is False or p == 0:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        index = x.get_device()
        mask = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        mask.bernoulli_(1 - p, generator=device.default_generator(index))
        alias, kept = device.alias(x), device.alias(mask)
        with AutoDispatchBelowAutograd():
            made = alias * kept * (0.0 if p == 1 else 1 / (1 - p))
        return device.adopt(made, index), mask

    return kernel
