"""Kernels for PyTorch's dispatcher: those for the CPU, and fake ones for tensors without memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from aclnn.acl import socs
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import invalid
from aclnn.compiler import phase_one
from aclnn.compiler._settings import current_settings
from aclnn.operators.checks import Call, ScalarSpec, TensorSpec
from aclnn.operators.declaration import Attribute
from aclnn.torch.private import suggest_memory_format, tree_map_only
from aclnn.torch.schemas import PLAIN, Schema, acl_dtype, torch_dtype


def cpu_kernel(schema: Schema) -> Callable[..., Any]:
    """Runs the functional form; autograd is done with by then."""

    def kernel(*args: Any, **named: Any) -> Any:
        with torch.no_grad():
            args, named = tree_map_only(torch.Tensor, _plain, (args, named))
            if schema.operator.numbers:
                values = with_dtypes_of_numbers(schema, schema.bound(args, named))
                args, named = schema.arguments(values)  # type: ignore[assignment]
            result = schema.function(*args, **named)
        if schema.operator.makes is not None:
            return list(result)
        return schema.made(result)

    return kernel


def filling_kernel(schema: Schema) -> Callable[..., Any]:
    """Runs a functional form without tensors among its arguments, into a tensor made for it."""

    def kernel(*args: Any, **named: Any) -> Any:
        (out,) = _results(schema, schema.bound(args, named))
        return schema.function(*args, **named, out=out)

    return kernel


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor without its subclass, with which functional forms would call the dispatcher again."""
    return tensor if type(tensor) in PLAIN else tensor.as_subclass(torch.Tensor)


def fake_kernel(schema: Schema) -> Callable[..., Any]:
    """Infers dtype and shape as phase one does, and lays results out as PyTorch's own operators."""

    def kernel(*args: Any, **named: Any) -> Any:
        values = with_dtypes_of_numbers(schema, schema.bound(args, named))
        made = _results(schema, values)
        if schema.operator.makes is not None:
            return made
        return schema.made(made[0] if len(made) == 1 else tuple(made))

    return kernel


def with_dtypes_of_numbers(schema: Schema, values: dict[str, Any]) -> dict[str, Any]:
    """Let operands that may be numbers, and became tensors without dimensions on their way through
    the dispatcher, take the dtype that PyTorch's promotion gives them."""
    numbers = [role for role in schema.operator.numbers if _may_be_number(values[role])]
    others = [
        values[role]
        for role in schema.operator.inputs
        if role not in numbers and not _has_own_dtype(schema, role)
    ]
    if not numbers or not others:
        return values
    dtype = functools.reduce(
        torch.promote_types,
        [torch.result_type(one, values[role]) for role in numbers for one in others],
    )
    return values | {role: values[role].to(dtype) for role in numbers}


def _may_be_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 0


def _has_own_dtype(schema: Schema, role: str) -> bool:
    return "dtype" in schema.operator.sample_specs.get(role, {})


def _results(schema: Schema, values: dict[str, Any]) -> list[Any]:
    operator = schema.operator
    inferred = phase_one.infer(operator, _call(schema, values))
    tensors = [values[role] for role in operator.inputs if role not in operator.lists]
    tensors = [one for one in tensors if one is not None]
    tensors += [one for role in operator.lists for one in values[role] or ()]
    made: list[Any] = []
    for index, role in enumerate(operator.outputs if operator.makes is None else inferred):
        if role not in inferred:
            made.append(None)
            continue
        dtype, shape = inferred[role]
        if not tensors:
            made.append(torch.empty(shape, dtype=torch_dtype(dtype)))
            continue
        dense = tensors[0].new_empty(shape, dtype=torch_dtype(dtype))
        made.append(dense if index else _laid_out(schema, values, dense))
    return made


def _laid_out(schema: Schema, values: dict[str, Any], dense: torch.Tensor) -> torch.Tensor:
    """The first result, which is dense, in PyTorch's layout."""
    operator = schema.operator
    if operator.lies_as:
        found = [values[role] for role in operator.lies_as]
        return _like_operands([one for one in found if one is not None], dense)
    if not operator.keeps_channels_last:
        return dense
    tensors = [values[operator.inputs[0]]]
    if operator.lists:
        tensors = values[operator.lists[0]]
    form = _memory_format(tensors)
    if dense.ndim == tensors[0].ndim:
        return torch.empty_like(dense, memory_format=form)
    return _stacked(dense, values[operator.switches[0].role], form)


def _stacked(dense: torch.Tensor, dim: int, form: torch.memory_format) -> torch.Tensor:
    """A stack as if tensors were joined along a dimension, which is then cut into two."""
    index = dim % dense.ndim
    if index == dense.ndim - 1 or form is torch.contiguous_format:
        return dense
    joined = torch.empty_like(dense.flatten(index, index + 1), memory_format=form)
    return joined.unflatten(index, dense.shape[index : index + 2])


def _like_operands(tensors: list[torch.Tensor], dense: torch.Tensor) -> torch.Tensor:
    """A tensor as PyTorch's pointwise operators make it: their result tells."""
    parts = [_part(one, dense.shape) for one in tensors]
    made = functools.reduce(torch.eq, parts if parts[1:] else parts * 2)
    return dense.new_empty_strided(made.shape, made.stride())


def _part(tensor: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """As much of a tensor as a result takes, where that is a half of it."""
    for axis, size in enumerate(tensor.shape if tensor.ndim == len(shape) else ()):
        if size > shape[axis]:
            tensor = tensor.narrow(axis, 0, shape[axis])
    return tensor


def _memory_format(tensors: list[torch.Tensor]) -> torch.memory_format:
    """The layout that all tensors have, channels last or not."""
    found = {suggest_memory_format(one) for one in tensors}
    return found.pop() if len(found) == 1 else torch.contiguous_format


def _call(schema: Schema, values: dict[str, Any]) -> Call:
    """The call as rules and inference see it."""
    operator = schema.operator
    single = [r for r in operator.inputs if r not in operator.lists and values[r] is not None]
    return Call(
        tensors={role: _spec(values[role]) for role in single},
        scalars={a.role: _number(a, values[a.role]) for a in operator.scalars},
        switches={a.role: _switch(a.kind, values[a.role]) for a in operator.switches},
        names={role: role for role in (*schema.parameters, *operator.outputs)},
        soc=socs.FAMILIES[current_settings()["soc"]],
        lists={role: tuple([_spec(one) for one in values[role] or ()]) for role in operator.lists},
    )


def _spec(tensor: torch.Tensor) -> TensorSpec:
    try:
        dtype = acl_dtype(tensor.dtype)
    except KeyError:
        raise invalid(f"a tensor has dtype {tensor.dtype}, which no operator takes") from None
    return TensorSpec(dtype, tuple(tensor.shape), ())


def _number(attribute: Attribute, value: Any) -> ScalarSpec:
    """Facts about a number where results depend on it."""
    if "value" not in attribute.facts:
        return ScalarSpec()
    if value is None:
        return ScalarSpec(absent=True)
    kind = aclDataType.ACL_FLOAT if isinstance(value, float) else aclDataType.ACL_INT64
    return ScalarSpec(dtype=kind, value=value)


def _switch(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "dtype":
        return acl_dtype(value) if isinstance(value, torch.dtype) else value
    if kind in ("ints", "bools"):
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    return value
