"""What the message of a failed phase one says beyond which rule was broken."""

from __future__ import annotations

from typing import Any

from aclnn import dtypes
from aclnn._tensor import aclScalar, aclTensor
from aclnn.constants import aclDataType


def failed_phase_one(handle: Any, error: Exception, arguments: tuple[Any, ...]) -> str:
    """Which function refused which argument and why, the checks in order, and how to see it again.

    Parameters
    ----------
    handle : EntryHandle
        Of the function that failed.
    error : AclnnError
    arguments : tuple
        What the caller gave.

    Returns
    -------
    str
        The first line alone says what is wrong.
    """
    lines = [f"{handle.name}GetWorkspaceSize: {error}", "checks, in order:"]
    broken = getattr(error, "rule", None)
    lines += ["  0. no tensor or scalar is null" + _mark(broken is None and "null" in str(error))]
    lines += [
        f"  {place}. {rule.text}{_mark(rule is broken)}"
        for place, rule in enumerate(handle.handle.operator.rules, 1)
    ]
    named = list(zip(handle.entry.parameters, arguments, strict=True))
    lines += ["arguments:", *(f"  {p.name} = {_shown(value)}" for p, value in named)]
    lines += ["in Python:", *_in_python(handle.name, named)]
    lines += ["in C++:", *_in_cpp(handle.name, named)]
    return "\n".join(lines)


def _mark(broken: bool) -> str:
    return "   <-- broken" if broken else ""


def _shown(value: Any) -> str:
    try:
        return repr(value)[:200]
    except Exception:  # a repr of the caller's own may do anything
        return type(value).__name__


def _in_python(name: str, named: list[tuple[Any, Any]]) -> list[str]:
    words = []
    for parameter, value in named:
        if isinstance(value, aclTensor) and not value.destroyed:
            dims, steps, offset = value.dims(), value.steps(), value.offset
            words.append(
                f"aclnn.aclCreateTensor({dims}, {value.dtype}, {steps}, {offset}, {value.format}, "
                f"{value.storage_shape}, None)"
            )
        elif isinstance(value, aclScalar) and not value.destroyed:
            words.append(f"aclnn.aclCreateScalar({value.value!r}, {value.dtype})")
        else:
            plain = value is None or isinstance(value, bool | int | float | str)
            words.append(repr(value) if plain else f"...  # {parameter.name}: {_shown(value)}")
    listed = ",\n".join(f"      {word}" for word in words)
    return [f"  aclnn.{name}GetWorkspaceSize(\n{listed})"]


def _in_cpp(name: str, named: list[tuple[Any, Any]]) -> list[str]:
    lines, words = [], []
    for parameter, value in named:
        if isinstance(value, aclTensor) and not value.destroyed:
            lines += _cpp_tensor(parameter.name, value)
            words.append(parameter.name)
        elif isinstance(value, aclScalar) and not value.destroyed:
            kind = "float" if value.is_real else "std::complex<float>"
            number = (
                value.as_float if value.is_real else f"{{{value.value.real}, {value.value.imag}}}"
            )
            lines.append(f"  {kind} {parameter.name}Value = {number};")
            lines.append(
                f"  auto {parameter.name} = aclCreateScalar(&{parameter.name}Value, ACL_FLOAT);"
            )
            words.append(parameter.name)
        elif value is None:
            words.append("nullptr")
        elif isinstance(value, bool):
            words.append(str(value).lower())
        else:
            words.append(f'"{value}"' if isinstance(value, str) else _shown(value))
    lines.append("  uint64_t size; aclOpExecutor *executor;")
    lines.append(f"  {name}GetWorkspaceSize({', '.join(words)}, &size, &executor);")
    return lines


def _cpp_tensor(name: str, tensor: aclTensor) -> list[str]:
    def listed(numbers: tuple[int, ...]) -> str:
        return "{" + ", ".join(map(str, numbers)) + "}"

    rank, depth = tensor.ndim, len(tensor.storage_shape)
    return [
        f"  int64_t {name}Dims[] = {listed(tensor.dims())}, {name}Strides[] = {listed(tensor.steps())}, "
        f"{name}Storage[] = {listed(tensor.storage_shape)};",
        f"  auto {name} = aclCreateTensor({name}Dims, {rank}, (aclDataType){tensor.dtype}"
        f" /* {dtypes.name(aclDataType(tensor.dtype))} */, {name}Strides, {tensor.offset}, "
        f"(aclFormat){tensor.format}, {name}Storage, {depth}, nullptr);",
    ]
