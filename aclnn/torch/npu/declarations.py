"""Declarations of functions ``torch_npu.npu_*``: how they are registered and called, with gradients and refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from aclnn.acl.errors import AclnnError
from aclnn.torch.npu.operators import COMPUTED, Operands
from aclnn.torch.npu.refusals import checked, note, refused
from aclnn.torch.private import AutoDispatchBelowAutograd, after_autograd_keyset

_libraries: list[Any] = []


@dataclass(frozen=True)
class Function:
    """A function: its schema, how it is computed, CANN's function for refusals, and its gradients.

    `backward` gets the arguments by name, the results and the gradients of these, and gives gradients by name.
    One without `entry` is made of other operators of the device, which are refused and counted by themselves, too,
    and whose gradients it has where it is `differentiable`.
    """

    schema: str
    compute: Callable[..., Any]
    entry: str
    backward: Callable[..., dict[str, Any]] | None = None
    differentiable: bool = False

    @property
    def name(self) -> str:
        """The name, with that of the overload."""
        return self.schema.partition("(")[0]

    @property
    def op(self) -> Any:
        base, _, overload = self.name.partition(".")
        return getattr(getattr(torch.ops.npu, base), overload or "default")


FUNCTIONS: dict[str, Function] = {}


def declared(schema: str, entry: str, backward: Any = None) -> Callable[..., Any]:
    def added(compute: Callable[..., Any]) -> Callable[..., Any]:
        one = Function(" ".join(schema.split()), compute, entry, backward)
        FUNCTIONS[one.name] = one
        return compute

    return added


def composed(schema: str, differentiable: bool = False) -> Callable[..., Any]:
    """Declare a function that gets tensors of the device, and is made of other operators there."""

    def added(compute: Callable[..., Any]) -> Callable[..., Any]:
        one = Function(" ".join(schema.split()), compute, "", differentiable=differentiable)
        FUNCTIONS[one.name] = one
        return compute

    return added


def register(top: ModuleType) -> None:
    """Define ``torch.ops.npu`` and give the package its functions."""
    library = torch.library.Library("npu", "DEF")
    _libraries.append(library)
    for one in FUNCTIONS.values():
        library.define(one.schema)
        library.impl(one.name, _kernel(one) if one.entry else _composite(one), "PrivateUse1")
        library.impl(one.name, _refusing(one), "CPU")
        if one.differentiable:
            library.impl(one.name, _composite(one, True), "AutogradPrivateUse1")
        if one.backward is not None:
            library.impl(
                one.name, _differentiated(one, one.op), "AutogradPrivateUse1", with_keyset=True
            )
        base, _, overload = one.name.partition(".")
        packet = getattr(torch.ops.npu, base)
        setattr(top, base, _WithOut(packet) if overload == "out" else packet)
        if base.startswith("npu_"):
            setattr(torch, base, _moved(base))
    for name in ("fast_gelu", "one_"):
        setattr(top, name, getattr(torch.ops.npu, f"npu_{name}"))


def _moved(name: str) -> Callable[..., Any]:
    """A function of ``torch`` with a name of ``torch_npu``: an error that says where it is."""

    def refusing(*args: Any, **named: Any) -> Any:
        raise RuntimeError(f"torch.{name} is deprecated and will be removed: use torch_npu.{name}")

    return refusing


class _WithOut:
    """A function whose overload ``out`` takes its outputs as a list, too, in their order."""

    def __init__(self, packet: Any):
        self._packet, self.__name__ = packet, packet.__name__
        self._outs = [
            one.name for one in packet.out._schema.arguments if one.alias_info is not None
        ]

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._packet(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packet, name)

    def out(self, *args: Any, out: Any = None, **named: Any) -> Any:
        if out is not None:
            named |= dict(zip(self._outs, out, strict=True))
        return self._packet.out(*args, **named)


# --- Calls -----------------------------------------------------------------------------------------


def _kernel(one: Function) -> Callable[..., Any]:
    full = f"npu::{one.name}"

    def kernel(*args: Any, **named: Any) -> Any:
        operands = Operands()
        values = [operands.of(value) for value in args]
        options = {key: operands.of(value) for key, value in named.items()}
        schema = one.op._schema
        written = [
            a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write
        ]
        originals = dict(zip([a.name for a in schema.arguments], args, strict=False)) | named
        try:
            with AutoDispatchBelowAutograd():
                made = one.compute(**_by_name(one, values, options))
        except AclnnError as error:
            raise refused(full, one.entry, error, max(operands.index, 0)) from None
        except RuntimeError as error:
            note(full, error)
            raise
        for argument in written:
            torch.autograd.graph.increment_version(originals[argument])
        COMPUTED[full] += 1
        return _handed_over(operands, schema, made, [originals[one] for one in written])

    return kernel


def _by_name(one: Function, args: Any, named: Any) -> dict[str, Any]:
    """All arguments of a call; tensors that are needed are there."""
    arguments = one.op._schema.arguments
    values = {a.name: (a.default_value if a.has_default_value() else None) for a in arguments}
    values |= dict(zip([a.name for a in arguments], args, strict=False)) | named
    for needed in arguments:
        if values[needed.name] is None and str(needed.type) == "Tensor":
            raise checked(f"{one.name}: {needed.name} is None, must be a tensor")
    return values


def _composite(one: Function, records: bool = False) -> Callable[..., Any]:
    """The kernel that calls other operators of the device, which autograd `records` or not."""
    full = f"npu::{one.name}"

    def kernel(*args: Any, **named: Any) -> Any:
        Operands().of([*args, *named.values()])  # all are on one device
        below = contextlib.nullcontext() if records else AutoDispatchBelowAutograd()
        try:
            with below:
                made = one.compute(**_by_name(one, args, named))
        except RuntimeError as error:
            note(full, error)
            raise
        COMPUTED[full] += 1
        return made

    return kernel


def _refusing(one: Function) -> Callable[..., Any]:
    def kernel(*args: Any, **named: Any) -> Any:
        raise checked(
            f"{one.name}: Expected all tensors to be on the npu device, but got them on the CPU"
        )

    return kernel


def _handed_over(operands: Operands, schema: Any, made: Any, written: list[Any]) -> Any:
    """Results as tensors of the device; arguments that were written are returned as such, in their order."""
    returns = schema.returns
    if not returns:
        return None
    if len(returns) == 1 and "List" in str(returns[0].type):
        return [operands.result(one) for one in made]
    several = made if isinstance(made, tuple) else (made,)
    found, arguments = [], iter(written)
    for one, kind in zip(several, returns, strict=True):
        if kind.alias_info is not None:
            found.append(next(arguments))
            continue
        if one is None and "Tensor" in str(kind.type):
            one = torch.empty(0)
        found.append(operands.result(one))
    return found[0] if len(returns) == 1 else tuple(found)


def _differentiated(one: Function, op: Any) -> Callable[..., Any]:
    """The kernel that autograd calls: it records the call where a gradient is wanted."""
    after = after_autograd_keyset
    names = [a.name for a in op._schema.arguments]
    defaults = {a.name: a.default_value for a in op._schema.arguments if a.has_default_value()}
    keyword = {a.name for a in op._schema.arguments if a.kwarg_only}

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            arguments = dict(zip(names, values, strict=True))
            with AutoDispatchBelowAutograd():
                made = op(*[v for n, v in arguments.items() if n not in keyword],
                          **{n: v for n, v in arguments.items() if n in keyword})  # fmt: skip
            results = made if isinstance(made, tuple) else (made,)
            tensors = [*values, *results]
            ctx.places = [k for k, v in enumerate(tensors) if isinstance(v, torch.Tensor)]
            ctx.others = {k: v for k, v in enumerate(tensors) if not isinstance(v, torch.Tensor)}
            ctx.save_for_backward(*[tensors[k] for k in ctx.places])
            ctx.count = len(tensors)
            ctx.mark_non_differentiable(
                *[r for r in results if isinstance(r, torch.Tensor) and not r.is_floating_point()]
            )
            return made

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            found = dict(zip(ctx.places, ctx.saved_tensors, strict=True)) | ctx.others
            values = [found[k] for k in range(ctx.count)]
            arguments = dict(zip(names, values, strict=False))
            assert one.backward is not None
            made = one.backward(arguments, values[len(names) :], grads)
            return tuple(made.get(name) if need else None
                         for name, need in zip(names, ctx.needs_input_grad, strict=True))  # fmt: skip

    def kernel(keys: Any, *args: Any, **named: Any) -> Any:
        arguments = defaults | dict(zip(names, args, strict=False)) | named
        values = [arguments.get(name) for name in names]
        tracked = any(isinstance(v, torch.Tensor) and v.requires_grad for v in values)
        if torch.is_grad_enabled() and tracked:
            return Recorded.apply(*values)
        return op.redispatch(keys & after, *args, **named)

    return kernel
