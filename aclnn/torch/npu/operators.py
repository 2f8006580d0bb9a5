"""ATen's operators on the device: each that a function of the operator library stands for is computed by it.

Which functional form stands for an operator, and how it is called, says `aclnn.torch.counterparts`. A kernel takes
aliases of the device's memory, and hands results over without a copy. What a form does not do as PyTorch raises
`NotImplementedError`, and falls back; what the operator's rules refuse is refused.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.autograd import forward_ad

from aclnn.acl.errors import AclnnError
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.torch.counterparts import VIEWS, WRITTEN_OUT, counterpart, is_pointwise
from aclnn.torch.npu.equivalents import EQUIVALENTS, IN_PLACE, WRITING
from aclnn.torch.npu.refusals import checked, note, refused
from aclnn.torch.npu.shortcuts import Short, shorter, shorter_in_place
from aclnn.torch.private import (
    AutoDispatchBelowAutograd,
    DispatchKey,
    DispatchKeySet,
    dispatch_get_all_op_names,
    dispatch_has_kernel,
    peek_interpreter_stack,
    tree_leaves,
    tree_map,
)

_IMPLEMENTED: set[str] = set()  # overloads of ATen that the package computes
COMPUTED: Counter[str] = Counter()  # calls by operator that the package computed
aten = torch.ops.aten
_Tensor = torch.Tensor
_transforms = peek_interpreter_stack
_libraries: list[Any] = []
_CPU = DispatchKeySet(DispatchKey.CPU)
_device: Any = None

# What moves or fills memory is the device's own business, whatever else could do it.
PLUMBING = {
    "_to_copy", "clone", "copy", "fill", "lift_fresh_copy", "scalar_tensor", "slice_backward", "select_backward",
    "slice_scatter", "select_scatter", "flip", "convolution", "zero",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_native_batch_norm_legit_no_training",  # autograd saves what it gives besides, which the form does not
}  # fmt: skip


def register(device: ModuleType) -> None:
    """Register kernels of ATen's operators: functional, in place and into an output."""
    global _device
    _device = device
    library = torch.library.Library("aten", "IMPL")
    longer = torch.library.Library("aclnn_npu", "DEF")
    _libraries.extend((library, longer))  # registrations end with them
    for target, name, call in _targets():
        implement(target, name, call)
        if (in_place := _in_place_of(target)) is not None:
            kernel = _written(in_place, target, name, call)
            _implement(longer, library, in_place, kernel, shorter_in_place(target, name))
        if (out := _out_of(target)) is not None:
            library.impl(_overload(out), _into(out, target, name, call), "PrivateUse1")
            _IMPLEMENTED.add(out.name())
    for op, (name, call) in WRITING.items():
        library.impl(_overload(op), _writing(op, name, call), "PrivateUse1")
        _IMPLEMENTED.add(op.name())


def implemented() -> frozenset[str]:
    """Overloads of ATen's operators that the package computes.

    >>> implemented() <= {"aten::add.Tensor"}  # none before the device is enabled
    True
    """
    return frozenset(_IMPLEMENTED)


def implement(target: Any, name: str, call: Callable[..., Any]) -> None:
    """Register the kernel of a functional overload, by the form of a name."""
    library, longer = _libraries
    _implement(longer, library, target, _functional(target, name, call), shorter(target, name))


def _implement(longer: Any, library: Any, op: Any, kernel: Any, short: Short | None) -> None:
    """Register an operator's kernel, and before it the short way where there is one."""
    _IMPLEMENTED.add(op.name())
    if short is None:
        library.impl(_overload(op), kernel, "PrivateUse1")
        return
    name = _overload(op).replace(".", "__")
    longer.define(name + str(op._schema).partition(op._schema.name)[2][len(f".{op._schema.overload_name}"
                  if op._schema.overload_name else ""):])  # fmt: skip
    longer.impl(name, kernel, "PrivateUse1")
    _device.implement(
        op._schema.name, op._schema.overload_name, f"aclnn_npu::{name}", short.call, short.passed, short.names,
        short.one_dtype, short.in_place, short.real,
    )  # fmt: skip


def _overload(target: Any) -> str:
    return target._schema.name.partition("::")[2] + (
        f".{target._schema.overload_name}" if target._schema.overload_name else ""
    )


def _targets() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Functional overloads that a functional form stands for."""
    found = []
    for full in dispatch_get_all_op_names():
        base, _, overload = full.removeprefix("aten::").partition(".")
        if not full.startswith("aten::") or base in PLUMBING:
            continue
        packet = getattr(aten, base, None)
        target = getattr(packet, overload or "default", None)
        if target is None or target in VIEWS or _is_factory(target):
            continue
        stands = EQUIVALENTS.get(target)
        if stands is None and (_is_composite(full) or _has_aliases(target)):
            continue
        stands = stands or counterpart(target)
        if stands is not None and stands[0] in HANDLES_BY_NAME:
            call = _ADAPTED.get(full, lambda call: call)(stands[1])
            found.append((target, stands[0], call))
    return found


def _is_composite(name: str) -> bool:
    """Whether PyTorch makes an operator of others, which have the gradients."""
    return dispatch_has_kernel(name, "CompositeImplicitAutograd")


def _is_factory(target: Any) -> bool:
    """Whether an operator makes memory, and computes nothing."""
    return any(a.name == "pin_memory" for a in target._schema.arguments)


def _has_aliases(target: Any) -> bool:
    return any(a.alias_info is not None for a in target._schema.arguments)


def _arguments(target: Any) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in target._schema.arguments if not a.is_out]


def _in_place_of(target: Any) -> Any:
    packet = getattr(aten, target._opname + "_", None)
    found = IN_PLACE.get(target, getattr(packet, target._overloadname, None))
    if found is None or found in WRITING or _is_composite(found.name()):
        return None
    same = [one[1] for one in _arguments(found)] == [one[1] for one in _arguments(target)]
    return found if same else None


def _out_of(target: Any) -> Any:
    packet = getattr(aten, target._opname)
    for name in packet.overloads():
        found = getattr(packet, name)
        outs = [a for a in found._schema.arguments if a.is_out]
        if outs and len(outs) == len(target._schema.returns) and not _is_composite(found.name()):
            types = [kind for _, kind in _arguments(found)]
            if types == [kind for _, kind in _arguments(target)]:
                return found
    return None


# --- Operands --------------------------------------------------------------------------------------


class Operands:
    """Operands of a call on aliases of the CPU, and the device they are on."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = -1

    def of(self, arguments: Any) -> Any:
        if isinstance(arguments, _Tensor):
            return self.tensor(arguments)
        if type(arguments) in (list, tuple):
            return [self.of(one) for one in arguments]
        return arguments

    def tensor(self, one: Any) -> Any:
        if one.is_cpu:
            if one.dim():
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"npu:{max(self.index, 0)} and cpu!"
                )
            return one
        index = one.get_device()
        if self.index not in (-1, index):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"npu:{self.index} and npu:{index}!"
            )
        self.index = index
        return _device.alias(one)

    def result(self, made: Any) -> Any:
        if isinstance(made, np.ndarray | np.generic):
            made = tensor_of(np.asarray(made))
        if isinstance(made, _Tensor):
            return _device.adopt(made, max(self.index, 0))
        if isinstance(made, list | tuple):
            return tuple([self.result(one) for one in made])
        return made


_BY_BITS = {torch.bfloat16: (torch.int16, ml_dtypes.bfloat16)}
_FROM_BITS = {np.dtype(ml_dtypes.bfloat16): (np.int16, torch.bfloat16)}


def array_of(one: torch.Tensor) -> np.ndarray:
    """The memory of a tensor of the CPU as an array."""
    one = one.resolve_conj().resolve_neg()
    if one.dtype in _BY_BITS:
        bits, dtype = _BY_BITS[one.dtype]
        return one.view(bits).numpy().view(dtype)
    return one.numpy()


def tensor_of(array: np.ndarray) -> torch.Tensor:
    """The memory of an array as a tensor of the CPU."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    if array.dtype in _FROM_BITS:
        bits, dtype = _FROM_BITS[array.dtype]
        return torch.from_numpy(array.view(bits)).view(dtype)
    return torch.from_numpy(array)


def _with_common_dtypes(values: list[Any]) -> list[Any]:
    """Operands of an elementwise operator of which those without dimensions have no say in the dtype."""
    tensors = [one for one in values if isinstance(one, _Tensor)]
    scalars = [one for one in tensors if not one.dim()]
    if not scalars or len(tensors) < 2 or len({one.dtype for one in tensors}) == 1:
        return values
    dtype = functools.reduce(
        torch.promote_types, [torch.result_type(*pair) for pair in _pairs(tensors)]
    )
    if len(scalars) < len(tensors):
        first = next(one for one in tensors if one.dim())
        dtype = functools.reduce(lambda so_far, one: torch.result_type(first.new_empty(0, dtype=so_far)
                                 if first.dim() else first, one), scalars, first.dtype)  # fmt: skip
    return [one.to(dtype) if isinstance(one, _Tensor) and not one.dim() else one for one in values]


def _pairs(tensors: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(tensors[0], one) for one in tensors[1:]]


def _divided(call: Callable[..., Any]) -> Callable[..., Any]:
    """True division, whose quotients of integers are floating-point numbers."""

    def divided(x: Any, other: Any, rounding_mode: str | None = None) -> Any:
        if rounding_mode is None:
            x, other = _as_quotient(x), _as_quotient(other)
        return call(x, other, rounding_mode=rounding_mode) if rounding_mode else call(x, other)

    return divided


def _as_quotient(one: Any) -> Any:
    if isinstance(one, _Tensor):
        return (
            one
            if one.is_floating_point() or one.is_complex()
            else one.to(torch.get_default_dtype())
        )
    if isinstance(one, np.ndarray):
        return one.astype(np.float32) if one.dtype.kind in "iub" else one
    return float(one) if isinstance(one, int) else one


def _of_dimensions(call: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction over given dimensions: over none it changes nothing, where forms reduce all."""

    def reduced(x: Any, dim: Any = None, *args: Any, **named: Any) -> Any:
        if dim is not None and not len(dim):
            raise NotImplementedError("no dimension is reduced")
        return call(x, dim, *args, **named)

    return reduced


def _padded(call: Callable[..., Any]) -> Callable[..., Any]:
    """Padding, whose value PyTorch makes one of the dtype."""

    def padded(x: Any, pad: Any, value: Any = 0) -> Any:
        if x.dtype in (torch.bool, np.bool_):
            value = bool(value)
        return call(x, pad, value)

    return padded


def _unless(is_other: Callable[..., bool], reason: str) -> Callable[..., Any]:
    """The call, but for arguments for which PyTorch computes otherwise."""

    def adapted(call: Callable[..., Any]) -> Callable[..., Any]:
        def computed(*args: Any, **named: Any) -> Any:
            if is_other(*args, **named):
                raise NotImplementedError(reason)
            return call(*args, **named)

        return computed

    return adapted


def _scaled(call: Callable[..., Any]) -> Callable[..., Any]:
    """A sum or a difference, with what the NPU's PyTorch says of factors."""

    def computed(x: Any, other: Any, alpha: Any = 1) -> Any:
        if alpha is True or alpha is False:
            if not all(_is_of(one, torch.bool) for one in (x, other)):
                raise checked("Boolean alpha only supported for Boolean results.", "002")
        elif isinstance(alpha, float) and all(_is_whole(one) for one in (x, other)):
            raise checked(
                "For integral input tensors, argument alpha must not be a floating point number.",
                "002",
            )
        return call(x, other, alpha=alpha)

    return computed


def _is_of(one: Any, dtype: torch.dtype) -> bool:
    return one.dtype == dtype if isinstance(one, _Tensor) else isinstance(one, bool | np.bool_)


def _is_whole(one: Any) -> bool:
    if isinstance(one, _Tensor):
        return not one.is_floating_point() and not one.is_complex()
    return one.dtype.kind in "iub" if isinstance(one, np.ndarray) else isinstance(one, int)


# What a form does otherwise than PyTorch's operator.
_ADAPTED: dict[str, Callable[..., Any]] = {
    "aten::div.Tensor": _divided, "aten::div.Scalar": _divided, "aten::div.Tensor_mode": _divided,
    "aten::div.Scalar_mode": _divided, "aten::any.dims": _of_dimensions, "aten::all.dims": _of_dimensions,
    "aten::constant_pad_nd": _padded,
    "aten::add.Tensor": _scaled, "aten::add.Scalar": _scaled, "aten::sub.Tensor": _scaled, "aten::sub.Scalar": _scaled,
    "aten::rsub.Tensor": _scaled, "aten::rsub.Scalar": _scaled,
    "aten::nll_loss_forward": _unless(lambda x, t, w, reduction, ignored: not 0 <= reduction <= 2, "no reduction"),
    "aten::logit_backward": _unless(lambda g, x, eps=None: (eps or 0) > 0.5, "no value is between"),
    "aten::pow.Tensor_Scalar": _unless(
        lambda x, exponent: x.dtype in (torch.bool, np.bool_), "powers of truth values are integers"
    ),
}  # fmt: skip


# --- Kernels ---------------------------------------------------------------------------------------


def _evaluator(target: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a form: on tensors, or on arrays where it is written for these."""
    pointwise = is_pointwise(target)
    on_arrays = target in WRITTEN_OUT and target not in EQUIVALENTS
    takes_indices = any("Optional[Tensor]" in str(one.type) and "List" in str(one.type)
                        for one in target._schema.arguments)  # fmt: skip

    def evaluated(operands: Operands, args: Sequence[Any], named: dict[str, Any]) -> Any:
        values = [
            [one if one is None or one.is_cpu else operands.of(one) for one in arguments]
            if takes_indices and type(arguments) in (list, tuple)
            else operands.of(arguments)
            for arguments in args
        ]
        if named:
            named = {key: operands.of(one) for key, one in named.items()}
        if pointwise:
            values = _with_common_dtypes(values)
        # In a function that is transformed, forms would give tensors to the dispatcher again.
        if on_arrays or forward_ad._current_level >= 0 or _transforms() is not None:
            values, named = tree_map(
                lambda one: array_of(one) if isinstance(one, _Tensor) else one, (values, named)
            )
        with AutoDispatchBelowAutograd():
            return call(*values, **named)

    return evaluated


def _functional(target: Any, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    full, evaluated = target.name(), _evaluator(target, call)
    listed = any(str(one.type).startswith("List") for one in target._schema.returns)

    def kernel(*args: Any, **named: Any) -> Any:
        operands = Operands()
        try:
            made = operands.result(evaluated(operands, args, named))
        except AclnnError as error:
            raise refused(full, _function_of(name), error, max(operands.index, 0)) from None
        except NotImplementedError:
            return fallen_back(target, args, named)
        except RuntimeError as error:
            note(full, error)
            raise
        COMPUTED[full] += 1
        return list(made) if listed else made

    return kernel


def _written(op: Any, target: Any, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel in place: PyTorch's rules for dtype and shape of what is written."""
    full, evaluated = op.name(), _evaluator(target, call)

    def kernel(first: Any, *args: Any, **named: Any) -> Any:
        operands = Operands()
        try:
            made = evaluated(operands, (first, *args), named)
        except AclnnError as error:
            raise refused(full, _function_of(name), error, max(operands.index, 0)) from None
        except NotImplementedError:
            return fallen_back(op, (first, *args), named)
        except RuntimeError as error:
            note(full, error)
            raise
        made = tensor_of(np.asarray(made)) if not isinstance(made, _Tensor) else made
        _check_castable(made, first)
        if made.shape != first.shape:
            raise RuntimeError(
                f"output with shape {list(first.shape)} doesn't match the broadcast shape {list(made.shape)}"
            )
        with AutoDispatchBelowAutograd():
            _device.alias(first).copy_(made)
        COMPUTED[full] += 1
        return first

    return kernel


def _writing(op: Any, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an operator whose call writes operands itself."""
    full, evaluated = op.name(), _evaluator(op, call)
    returns = bool(op._schema.returns)

    def kernel(first: Any, *args: Any, **named: Any) -> Any:
        operands = Operands()
        if _transforms() is not None:
            return fallen_back(op, (first, *args), named)
        try:
            evaluated(operands, (first, *args), named)
        except AclnnError as error:
            raise refused(full, _function_of(name), error, max(operands.index, 0)) from None
        except NotImplementedError:
            return fallen_back(op, (first, *args), named)
        except RuntimeError as error:
            note(full, error)
            raise
        COMPUTED[full] += 1
        return first if returns else None

    return kernel


def _into(op: Any, target: Any, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel with outputs, which are resized as PyTorch does."""
    full, evaluated, pointwise = op.name(), _evaluator(target, call), is_pointwise(target)
    outputs = [a.name for a in op._schema.arguments if a.is_out]

    def kernel(*args: Any, **named: Any) -> Any:
        operands = Operands()
        outs: list[Any] = [named.get(one) for one in outputs]
        rest = {key: value for key, value in named.items() if key not in outputs}
        try:
            made = evaluated(operands, args, rest)
        except AclnnError as error:
            raise refused(full, _function_of(name), error, max(operands.index, 0)) from None
        except NotImplementedError:
            return fallen_back(op, args, named)
        except RuntimeError as error:
            note(full, error)
            raise
        several = made if isinstance(made, list | tuple) else (made,)
        results = [
            one if isinstance(one, _Tensor) else tensor_of(np.asarray(one)) for one in several
        ]
        if not pointwise and any(a.dtype != b.dtype for a, b in zip(outs, results, strict=True)):
            return fallen_back(
                op, args, named
            )  # where the output decides in what dtype is computed
        for out, one in zip(outs, results, strict=True):
            _check_castable(one, out)
            if out.shape != one.shape:
                torch.ops.aten.resize_(out, list(one.shape))
            with AutoDispatchBelowAutograd():
                _device.alias(out).copy_(one)
        COMPUTED[full] += 1
        return outs[0] if len(outs) == 1 else tuple(outs)

    return kernel


def _check_castable(made: torch.Tensor, to: torch.Tensor) -> None:
    if made.dtype != to.dtype and not torch.can_cast(made.dtype, to.dtype):
        names = [_TYPE_NAMES.get(one, str(one)) for one in (made.dtype, to.dtype)]
        raise RuntimeError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}"
        )


_TYPE_NAMES = {
    torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bfloat16: "BFloat16",
    torch.int64: "Long", torch.int32: "Int", torch.int16: "Short", torch.int8: "Char", torch.uint8: "Byte",
    torch.bool: "Bool", torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble",
}  # fmt: skip


def _function_of(name: str) -> str:
    """CANN's function that a functional form calls."""
    entries = HANDLES_BY_NAME[name].handle.operator.entries
    return str(entries[0].name) if entries else name


def fallen_back(op: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The call by PyTorch's kernel of the CPU, counted."""
    _device.count_fallback(op._schema.name, op.name())
    operands, pairs = Operands(), []

    def aliased(one: Any) -> Any:
        if not isinstance(one, _Tensor):
            return torch.device("cpu") if isinstance(one, torch.device) else one
        made = one if one.is_cpu else operands.tensor(one)
        if made is not one:
            pairs.append((one, made))
        return made

    args, named = tree_map(aliased, (list(args), dict(named)))
    with AutoDispatchBelowAutograd():
        made = op.redispatch(_CPU, *args, **named)
    for one, alias in pairs:
        _device.give(one, alias)

    def handed_over(one: Any) -> Any:
        if not isinstance(one, _Tensor):
            return one
        same = next((mine for mine, alias in pairs if alias is one), None)
        return operands.result(one) if same is None else same

    return tree_map(handed_over, made)


def tensors_in(*arguments: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(arguments) if isinstance(one, _Tensor)]
