"""Messages of refused calls in the words of callers who have arrays.

They name the function as it was called, the argument, its dtype as NumPy and PyTorch call it, the rule,
and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import AclnnError, AclnnTypeError
from aclnn.compiler.phase_one import RefusedError
from aclnn.errors import remedies
from aclnn.execution import arrays
from aclnn.operators import Operator
from aclnn.operators.checks import COMPLEX, Call


def reworded(
    name: str,
    error: AclnnError,
    arguments: Mapping[str, Any],
    in_place: bool,
    names: Mapping[str, str] = MappingProxyType({}),
) -> AclnnError:
    """The error of a functional form, in place of one that was raised inside.

    Parameters
    ----------
    name : str
        What the caller called.
    error : AclnnError
    arguments : mapping of str to object
        Its arguments, by name.
    in_place : bool
        Whether the output is an input.
    names : mapping of str to str, optional
        What the function calls its parameters, by role, where it calls them otherwise.
    """
    if error.function is not None:
        return error  # an inner call was refused, and said so
    message, is_kind = error.message, isinstance(error, TypeError)
    if isinstance(error, RefusedError) and error.call is not None:
        message, is_kind = _explained(error, error.call, arguments, in_place)
    else:  # about one argument, with which it begins; a step that fails has named its operator
        role, space, rest = message.removeprefix(f"{name}: ").partition(" ")
        message = f"{names.get(role, role)}{space}{rest}"
    kind = AclnnTypeError if is_kind else AclnnError
    made = kind(error.status, f"{name}: {message}")
    made.function = name
    made.__cause__, made.__traceback__ = error.__cause__, error.__traceback__
    made.__suppress_context__ = True
    return made


def _explained(
    error: RefusedError, call: Call, arguments: Mapping[str, Any], in_place: bool
) -> tuple[str, bool]:
    """The message with what to do, and whether an argument is of the wrong kind."""
    operator, rule, message = error.operator, error.rule, error.message
    assert operator is not None, "it has a call"
    if rule is None:
        return (message, False) if in_place else _with_output(message, operator, call, arguments)
    message = rule.test(replace(call, dtype_name=dtypes.name)) or message
    if not in_place and rule.roles[:1] and rule.roles[0] in operator.outputs:
        proposal = _with_output(message, operator, call, arguments)
        if proposal[0] != message:
            return proposal
    if found := remedies.conversions(operator, call, rule):
        words = " and ".join(_converted(call, *one, arguments) for one in found.items())
        return f"{message}; convert with {words}", True
    whole = [role for role in rule.roles if _is_complex(call, role)]
    if whole and not in_place:
        name = call.names[whole[0]]
        return f"{message}; take {name}.real, {name}.imag or abs({name})", True
    return (message, False) if in_place else _with_output(message, operator, call, arguments)


def _with_output(
    message: str, operator: Operator, call: Call, arguments: Mapping[str, Any]
) -> tuple[str, bool]:
    """The message with an output that would do, where the given one is what is wrong."""
    requested = remedies.output_instead(operator, call)
    if requested is None:
        return message, False
    role, dtype, shape = requested
    is_kind = call.dtype(role) != dtype and call.shape(role) == shape
    made = _empty(arguments.get("out"), dtype, shape)
    return f"{message}; use out={made}, or leave it out", is_kind


def _is_complex(call: Call, role: str) -> bool:
    return role in call.tensors and call.dtype(role) in COMPLEX


def _converted(
    call: Call, operand: tuple[str, int | None], dtype: aclDataType, arguments: Mapping[str, Any]
) -> str:
    role, index = operand
    name, array = call.names[role], arguments.get(role)
    if index is None:
        return arrays.conversion(name, array, dtype)
    one = array[index] if isinstance(array, list | tuple) else None
    return arrays.conversion(f"{name}[{index}]", one, dtype)


def _empty(out: Any, dtype: aclDataType, shape: tuple[int, ...]) -> str:
    if arrays.is_torch(out):
        return f"torch.empty({shape}, dtype=torch.{dtypes.name(dtype)})"
    return f"np.empty({shape}, {arrays.numpy_word(dtype)})"
