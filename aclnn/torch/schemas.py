"""Operators as PyTorch's schemas: types, order and defaults of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.api import functional
from aclnn.operators import Attribute, Operator
from aclnn.operators.declaration import REQUIRED

PLAIN = (torch.Tensor, torch.nn.Parameter)  # what functional forms read without a detour

_TYPES = {
    "scalar": "Scalar",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "int": "int",
    "ints": "SymInt[]",
    "bools": "bool[]",
    "dtype": "ScalarType",
}

_WIDEST = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}


@dataclass(frozen=True)
class Schema:
    """Schema by which PyTorch calls a functional form.

    Attributes
    ----------
    operator : Operator
    name : str
        Of the functional form.
    positional, keyword : tuple of str
        Roles of the parameters in order.
    """

    operator: Operator
    name: str
    positional: tuple[str, ...]
    keyword: tuple[str, ...]

    @property
    def function(self) -> Callable[..., Any]:
        """The functional form, which is made when it is asked for first."""
        return getattr(functional, self.name)

    @property
    def parameters(self) -> tuple[str, ...]:
        return (*self.positional, *self.keyword)

    @property
    def in_place(self) -> bool:
        return self.name == self.operator.in_place

    @property
    def written(self) -> dict[str, str]:
        """The inputs that it writes into, by the roles of results."""
        return self.operator.overwritten if self.in_place else {}

    def made(self, result: Any) -> Any:
        """Results for PyTorch: those that were not written into an input."""
        if not self.in_place:
            return result
        several = result if isinstance(result, tuple) else (result,)
        pairs = zip(self.operator.outputs, several, strict=True)
        left = tuple([one for role, one in pairs if role not in self.written])
        return (left or None) if len(left) != 1 else left[0]

    @property
    def text(self) -> str:
        """The schema as ``torch.library`` reads it."""
        words = [self._parameter(role) for role in self.positional]
        # What has a default, but is followed by what has none, has to be given: None may be.
        needed = [self.operator.is_required(role) for role in self.positional]
        last = max((index for index, one in enumerate(needed) if one), default=0)
        words[:last] = [word.partition("=")[0] for word in words[:last]]
        if self.keyword:
            words += ["*", *[self._parameter(role) for role in self.keyword]]
        return f"{self.name}({', '.join(words)}) -> {self._results()}"

    def _results(self) -> str:
        if self.operator.makes is not None:
            return "Tensor[]"
        count = len(self.operator.outputs) - len(self.written)
        return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"

    def _parameter(self, role: str) -> str:
        operator = self.operator
        if role in operator.inputs:
            kind = "Tensor[]" if role in operator.lists else "Tensor"
            if role in self.written.values():
                letter = "abcdefgh"[[*self.written.values()].index(role)]
                kind = f"Tensor({letter}!)"
            if role not in operator.optional:
                return f"{kind} {role}"
            return f"{kind}? {role}{'' if operator.is_required(role) else '=None'}"
        attribute = next(a for a in operator.attributes if a.role == role)
        kind = _TYPES[attribute.kind]
        if attribute.default is REQUIRED:
            return f"{kind} {role}"
        optional = attribute.default is None or attribute.nullable
        return f"{kind}{'?' if optional else ''} {role}={_default(attribute)}"

    def bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by role, defaults included."""
        found = dict(zip(self.parameters, args, strict=False)) | dict(named)
        for role in self.parameters:
            if role not in found:
                found[role] = self.operator.default_of(role)
        return found

    def with_tensors_for_numbers(self, values: dict[str, Any]) -> dict[str, Any]:
        """Numbers in the place of operands as tensors without dimensions, which lose no digit.

        What the dispatcher takes is a tensor; kernels give it the dtype that the number has there.
        """
        return values | {
            role: torch.scalar_tensor(values[role], dtype=_WIDEST[type(values[role])])
            for role in self.operator.numbers
            if type(values[role]) in _WIDEST
        }

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call as it passes them."""
        return (
            [values[role] for role in self.positional],
            {role: values[role] for role in self.keyword},
        )


def schema_of(operator: Operator, name: str) -> Schema:
    positional = operator.positional
    others = [*[a.role for a in operator.attributes], *operator.inputs]
    keyword = tuple([role for role in others if role not in positional])
    return Schema(operator, name, positional, keyword)


def _default(attribute: Attribute) -> str:
    value = attribute.default
    if attribute.kind == "str":
        return f'"{value}"'
    if attribute.kind in ("ints", "bools") and value is not None:
        return str(list(value)).replace(" ", "")  # type: ignore[call-overload]
    return str(value)


def acl_dtype(dtype: torch.dtype) -> aclDataType:
    """CANN's dtype for one of PyTorch's."""
    return dtypes.of_name(str(dtype).removeprefix("torch."))


def torch_dtype(dtype: aclDataType) -> torch.dtype:
    """PyTorch's dtype for one of CANN's."""
    return getattr(torch, str(dtypes.NUMPY[dtype].name))
