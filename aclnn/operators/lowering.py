"""Lowering of calls to nodes of a graph."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aclnn import graph
from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides, reshaped_strides
from aclnn.operators.checks import Call

# Of each number of a run, in the order of `_request.pxd`.
NUMBER_FORMS = ("rounded", "exact", "whole")
# A number of a call: its place among those that a run is given, or its forms, which are constants.
Number = int | tuple[float, float, int]


def graph_dtype(dtype: aclDataType) -> graph.DType:
    """A dtype as graphs know it.

    >>> graph_dtype(aclDataType.ACL_FLOAT16)
    DType(name='float16', itemsize=2)
    """
    return _DTYPES[dtype]


# What kernels of rows and products read and write.
FLOATING_NAMES = ("float32", "float16", "bfloat16", "float64")

# Calls with nothing to do may have outputs of a dtype that no kernel knows, too.
_DTYPES = {
    dtype: graph.DType(dtypes.name(dtype), max(1, dtypes.item_size(dtype))) for dtype in aclDataType
}


class Lowering:
    """A call while an operator makes its nodes.

    Attributes
    ----------
    builder : GraphBuilder
        What makes nodes and views.
    call : Call
        What is known of the call: dtypes, shapes, strides, attributes.
    results : mapping of str to (dtype, shape)
        What the operator said that it makes, by role; only of outputs that are wanted.
    """

    def __init__(
        self,
        builder: graph.GraphBuilder,
        call: Call,
        values: Mapping[str, int],
        lists: Mapping[str, tuple[int, ...]],
        results: Mapping[str, tuple[aclDataType, tuple[int, ...]]],
        numbers: Mapping[str, Number],
    ):
        self.builder = builder
        self.call = call
        self.results = results
        self._values = values
        self._lists = lists
        self._numbers = numbers

    def has(self, role: str) -> bool:
        """Whether an optional input was given."""
        return role in self._values

    def wants(self, role: str) -> bool:
        """Whether an optional output was given."""
        return role in self.results

    def value(self, role: str) -> int:
        """An input as it is, whatever its strides and dtype."""
        return self._values[role]

    def values(self, role: str) -> tuple[int, ...]:
        """The tensors of an input that is a list."""
        return self._lists[role]

    def dense(
        self,
        value: int | str,
        dtype: aclDataType | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> int:
        """A value, or an input by its role, row-major, as another dtype, broadcast to a shape.

        These are the steps that the NPU's library takes; passes turn them into strides and loads
        where kernels need no copy.
        """
        id = self._values[value] if isinstance(value, str) else value
        id = self.builder.contiguous(id)
        if dtype is not None:
            id = self.builder.cast(id, graph_dtype(dtype))
        return id if shape is None else self.builder.broadcast_to(id, shape)

    def reshaped(self, value: int | str, shape: tuple[int, ...]) -> int:
        """A value, or an input by its role, with its elements in another shape.

        That is a view wherever the strides allow it, and a view of a copy elsewhere.
        """
        id = self._values[value] if isinstance(value, str) else value
        found = self.builder.value(id)
        if found.shape == shape:
            return id
        strides = reshaped_strides(found.shape, found.strides, shape)
        if strides is None:
            id, strides = self.builder.contiguous(id), contiguous_strides(shape)
        return self.builder.view(id, shape, strides)

    def filled(self, number: float, dtype: aclDataType, shape: tuple[int, ...]) -> int:
        """A value all of whose elements are one number."""
        reads = reads_of(dtype)
        parts = (float(number), 0.0) if reads == "complex128" else (float(number),)
        params = (int(number),) if reads == "int64" else parts
        return self.point("fill", (), dtype, shape, params=params)

    def pair(
        self,
        roles: Iterable[str],
        dtype: aclDataType,
        shape: tuple[int, ...],
        *,
        numbers: aclDataType | None = None,
    ) -> list[int]:
        """Inputs as what a pointwise formula takes; one that is a number is rounded to the dtype,
        or to another one for `numbers`."""
        filled = dtype if numbers is None else numbers
        return [
            self.point("fill", (), filled, shape, params=self.params((role,), filled))
            if role in self.call.scalars
            else operands_as(self, (role,), dtype, shape)[0]
            for role in roles
        ]

    def number(self, role: str, form: str = "rounded") -> graph.Argument | float | int:
        """A number of the call, which a kernel reads at run time unless it is a constant.

        `form` is 'rounded' (to float32), 'exact' (a float64) or 'whole' (an integer of 64 bits).
        """
        found, index = self._numbers[role], NUMBER_FORMS.index(form)
        if isinstance(found, tuple):
            return found[index]
        kind = "whole" if form == "whole" else "real"
        return graph.Argument(len(NUMBER_FORMS) * found + index, kind)

    def complex_number(self, role: str) -> tuple[Any, Any]:
        """A number as complex formulas take it: real and imaginary part.

        That of a complex one stands where that of a real one has its integer.
        """
        real, whole = self.number(role, "exact"), self.number(role, "whole")
        if self.call.scalars[role].convertible:
            return real, 0.0
        if isinstance(whole, graph.Argument):
            return real, graph.Argument(whole.place, "real")
        return real, struct.unpack("d", struct.pack("q", whole))[0]

    def params(
        self, roles: Iterable[str], dtype: aclDataType, *, exact: bool = True
    ) -> tuple[Any, ...]:
        """Numbers as formulas with a result of this dtype take them."""
        if reads_of(dtype) == "complex128":
            return tuple([part for role in roles for part in self.complex_number(role)])
        form = number_form(dtype, exact=exact)
        return tuple([self.number(role, form) for role in roles])

    def point(
        self,
        formula: str,
        operands: Iterable[int],
        dtype: aclDataType,
        shape: tuple[int, ...],
        *,
        params: tuple[Any, ...] = (),
        reads: str | None = None,
        **attrs: Any,
    ) -> int:
        """The result of a pointwise formula."""
        if reads is None:
            reads = reads_of(dtype)
        return self.builder.compute(
            formula, operands, shape, graph_dtype(dtype), params=params, reads=reads, **attrs
        )

    def rows(
        self,
        kernel: str,
        operands: Iterable[int],
        outputs: Iterable[tuple[aclDataType, tuple[int, ...]]],
        axis: int,
        *,
        params: tuple[Any, ...] = (),
        **attrs: Any,
    ) -> tuple[int, ...]:
        """The results of a row-wise kernel along an axis, which is counted from the last: -1."""
        attrs = {"loads": FLOATING_NAMES, "stores": FLOATING_NAMES} | attrs
        made = [(shape, graph_dtype(dtype)) for dtype, shape in outputs]
        return self.builder.compute_all(
            kernel, operands, made, domain="row", axis=axis, params=params, **attrs
        )

    def opaque(
        self,
        kernel: str,
        operands: Iterable[int],
        dtype: aclDataType,
        shape: tuple[int, ...],
        **attrs: Any,
    ) -> int:
        """The result of a kernel that gets its operands as a whole, with any strides."""
        return self.opaque_all(kernel, operands, [(dtype, shape)], **attrs)[0]

    def taken(
        self,
        kernel: str,
        operands: Sequence[int],
        dtype: aclDataType,
        shape: tuple[int, ...],
        table: int = 0,
        **attrs: Any,
    ) -> int:
        """As `opaque`, of a kernel that reads an element of an operand, by its place the `table`, for each
        element of the result."""
        part = ((table, math.prod(shape)),)
        return self.opaque(kernel, operands, dtype, shape, reads_at_most=part, **attrs)

    def opaque_all(
        self,
        kernel: str,
        operands: Iterable[int],
        outputs: Iterable[tuple[aclDataType, tuple[int, ...]]],
        **attrs: Any,
    ) -> tuple[int, ...]:
        """The results of such a kernel that has several."""
        made = [(shape, graph_dtype(dtype)) for dtype, shape in outputs]
        return self.builder.compute_all(
            kernel,
            operands,
            made,
            domain="opaque",
            reads_strided=True,
            writes_strided=True,
            **attrs,
        )


_READS = {
    aclDataType.ACL_DOUBLE: "float64",
    aclDataType.ACL_COMPLEX64: "complex128",
    aclDataType.ACL_COMPLEX128: "complex128",
} | dict.fromkeys(
    (
        aclDataType.ACL_INT8,
        aclDataType.ACL_INT16,
        aclDataType.ACL_INT32,
        aclDataType.ACL_INT64,
        aclDataType.ACL_UINT8,
        aclDataType.ACL_UINT16,
        aclDataType.ACL_UINT32,
        aclDataType.ACL_UINT64,
        aclDataType.ACL_BOOL,
    ),
    "int64",
)


def reads_of(dtype: aclDataType) -> str:
    """Dtype that a kernel converts operands to before it computes a result of this dtype.

    >>> reads_of(aclDataType.ACL_FLOAT16), reads_of(aclDataType.ACL_INT8)
    ('float32', 'int64')
    """
    return _READS.get(dtype, "float32")


def pointwise(lowering: Lowering, operator: Any, formula: str) -> Mapping[str, int]:
    """The nodes of a pointwise operator: every operand as the result's dtype and shape."""
    dtype, shape = lowering.results["out"]
    operands = operands_as(lowering, operator.kernel_operands, dtype, shape)
    roles = [a.role for a in operator.scalars]
    params = lowering.params(roles, dtype, exact=operator.scalars_as_double)
    made = lowering.point(
        formula, operands, dtype, shape, params=params, expression=operator.expression
    )
    return {"out": made}


def operands_as(
    lowering: Lowering, roles: Iterable[str], dtype: aclDataType, shape: tuple[int, ...]
) -> list[int]:
    """Inputs in a shape, as what a pointwise formula with a result of this dtype takes."""
    return [
        lowering.dense(role, operand_dtype(lowering.call.dtype(role), dtype), shape)
        for role in roles
    ]


def number_form(dtype: aclDataType, *, exact: bool = True) -> str:
    """Form in which numbers take part in a result of this dtype; `exact`: as float64 in float64 ones.

    >>> number_form(aclDataType.ACL_FLOAT16), number_form(aclDataType.ACL_INT8)
    ('rounded', 'whole')
    """
    reads = reads_of(dtype)
    if reads == "int64":
        return "whole"
    return "exact" if exact and reads != "float32" else "rounded"


def operand_dtype(dtype: aclDataType, result: aclDataType) -> aclDataType:
    """Dtype that an input is cast to: the promoted one, but never through a narrower float.

    Formulas see inputs as if converted to float32, so an integer that promotes to a half goes
    to float32 at once.
    """
    if dtype == result or reads_of(result) != "float32":
        return result
    return aclDataType.ACL_FLOAT
