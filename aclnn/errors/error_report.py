"""Error messages of phase one: the checks, the arguments, and programs that reproduce the call."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl._lists import aclBoolArray, aclIntArray, aclTensorList
from aclnn.acl._tensor import aclScalar, aclTensor
from aclnn.acl.arguments import as_kind, shown
from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType, aclFormat
from aclnn.acl.errors import AclnnError

_LISTS = (aclTensorList, aclIntArray, aclBoolArray)


def failed_phase_one(handle: Any, error: AclnnError, arguments: tuple[Any, ...]) -> str:
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
    null = broken is None and error.status == ACLNN_ERR_PARAM_NULLPTR
    lines += ["  0. no tensor or scalar is null" + _mark(null)]
    lines += [
        f"  {index}. {rule.text}{_mark(rule is broken)}"
        for index, rule in enumerate(handle.handle.operator.rules, 1)
    ]
    named = list(zip(handle.entry.parameters, arguments, strict=True))
    lines += ["arguments:", *(f"  {p.name} = {shown(value)}" for p, value in named)]
    read = [(parameter, _as_read(parameter.kind, value)) for parameter, value in named]
    lines += ["in Python:", *_in_python(handle.name, read)]
    lines += ["in C++:", *_in_cpp(handle.name, read)]
    return "\n".join(lines)


def _mark(broken: bool) -> str:
    return "   <-- broken" if broken else ""


Named = list[tuple[Any, Any]]


def _as_read(kind: str, value: Any) -> Any:
    """An argument as phase one reads it, NumPy's numbers as Python's; what is refused stays as it is."""
    try:
        return as_kind(kind, value)
    except Exception:  # whatever its __float__ raises
        return value


def _is_plain(value: Any) -> bool:
    """Whether a value can be written down as it is; an int of thousands of digits cannot."""
    if type(value) is int:
        return value.bit_length() < 64
    return value is None or type(value) in (bool, float, str)


def _comment(value: Any) -> str:
    """A value as a comment shows it: on one line, and without what would end or begin one in C++."""
    return " ".join(shown(value).replace("/", " / ").split())


def _is_tensor(value: Any) -> bool:
    return isinstance(value, aclTensor) and not value.destroyed


def _is_scalar(value: Any) -> bool:
    return isinstance(value, aclScalar) and not value.destroyed


# --- Python -----------------------------------------------------------------------------------


def _in_python(name: str, named: Named) -> list[str]:
    """An expression that makes the same call and gets the same status."""
    lines = [f"  aclnn.{name}GetWorkspaceSize("]
    lines += [f"      {_python_word(value)},{_python_remark(p.name, value)}" for p, value in named]
    return [*lines, "  )"]


def _python_word(value: Any) -> str:
    if _is_tensor(value):
        return (
            f"aclnn.aclCreateTensor({value.dims()}, {value.dtype}, {value.steps()}, "
            f"{value.offset}, {value.format}, {value.storage_shape}, None)"
        )
    if _is_scalar(value):
        return f"aclnn.aclCreateScalar({_python_number(value.value)}, {value.dtype})"
    if isinstance(value, aclTensor | aclScalar):
        return "None"  # destroyed, which phase one takes for null
    if isinstance(value, _LISTS):
        return "None" if value.destroyed else _python_list(value)
    if isinstance(value, aclDataType):
        return str(int(value))
    return _python_number(value) if _is_plain(value) else "..."


def _python_list(value: Any) -> str:
    if isinstance(value, aclTensorList):
        return f"aclnn.aclCreateTensorList([{', '.join(map(_python_word, value.items))}])"
    return f"aclnn.aclCreate{type(value).__name__.removeprefix('acl')}({list(value.numbers())})"


def _python_number(value: Any) -> str:
    """A number as an expression: `repr` writes nan and inf as names that do not exist."""
    if isinstance(value, complex):
        return f"complex({_python_number(value.real)}, {_python_number(value.imag)})"
    finite = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if finite else f"float({str(value)!r})"


def _python_remark(name: str, value: Any) -> str:
    known = isinstance(value, (*_LISTS, aclDataType))
    if known or _is_tensor(value) or _is_scalar(value) or _is_plain(value):
        return f"  # {name}"
    return f"  # {name}: {_comment(value)}"


# --- C++ --------------------------------------------------------------------------------------

_C_TYPES = {
    "float32": "float", "float64": "double", "bool": "bool",
    "complex64": "std::complex<float>", "complex128": "std::complex<double>",
} | {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}  # fmt: skip

_C_KINDS = {"float": "double", "bool": "bool", "int": "int64_t"}  # of parameters


def _in_cpp(name: str, named: Named) -> list[str]:
    """A whole program: what the call needs, phase one, and phase two where that succeeds."""
    lines, words = [], []
    for parameter, value in named:
        made, word = _cpp_argument(parameter, value)
        lines += made
        words.append(word)
    body = [
        "aclInit(nullptr);",
        "aclrtSetDevice(0);",
        "aclrtStream stream = nullptr;",
        "aclrtCreateStream(&stream);",
        *lines,
        "uint64_t workspaceSize = 0;",
        "aclOpExecutor *executor = nullptr;",
        f"int status = {name}GetWorkspaceSize({', '.join(words)}, &workspaceSize, &executor);",
        "if (status == 0) {",
        "  void *workspace = nullptr;",
        "  if (workspaceSize > 0) aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST);",
        f"  status = {name}(workspace, workspaceSize, executor, stream);",
        "  aclrtSynchronizeStream(stream);",
        "}",
        "return status;",
    ]
    headers = ["<cmath>", "<complex>", "<cstdint>", "<vector>", '"acl/acl.h"']
    headers.append(f'"aclnnop/{_header(name)}.h"')
    program = [*(f"#include {header}" for header in headers), *_CPP_TENSOR, "int main() {"]
    program += [*(f"  {line}" for line in body), "}"]
    return [f"  {line}" for line in program]


_CPP_TENSOR = """\
using Dims = std::vector<int64_t>;
aclTensor *tensor(Dims dims, aclDataType type, Dims strides, int64_t offset, aclFormat format,
                  Dims storage, size_t bytes) {
  void *data = nullptr;
  aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  return aclCreateTensor(dims.data(), dims.size(), type, strides.data(), offset, format,
                         storage.data(), storage.size(), data);
}""".splitlines()


def _header(name: str) -> str:
    """CANN's header of a function: in-place forms are in that of the other."""
    words = re.findall("[A-Z][a-z0-9]*", name.removeprefix("aclnn").removeprefix("Inplace"))
    return "_".join(["aclnn", *map(str.lower, words)])


def _cpp_argument(parameter: Any, value: Any) -> tuple[list[str], str]:
    """The lines that make an argument, and the expression for it, null if C++ has no such value."""
    name, kind = parameter.name, parameter.kind
    if parameter.is_tensor and _is_tensor(value):
        return _cpp_tensor(name, value), name
    if kind == "scalar" and _is_scalar(value):
        return _cpp_scalar(name, value), name
    if isinstance(value, _LISTS) and not value.destroyed:
        return _cpp_list(name, value), name
    if parameter.is_unused and type(value) is int and _is_plain(value):
        return [], _cpp_number(value, "int64_t")
    if kind == "dtype" and isinstance(value, aclDataType):
        return [], value.name
    if type(value).__name__ == kind and _is_plain(value):
        return [], json.dumps(value) if kind == "str" else _cpp_number(value, _C_KINDS[kind])
    nothing = "{}" if kind in _C_KINDS else "nullptr"
    return [], nothing if value is None else f"{nothing} /* {_comment(value)} */"


def _cpp_list(name: str, value: Any) -> list[str]:
    """The lines that make an array of numbers or a list of tensors."""
    kind = type(value).__name__.removeprefix("acl")
    if isinstance(value, aclTensorList):
        names = [f"{name}{index}" for index in range(len(value.items))]
        lines = [
            line
            for one, tensor in zip(names, value.items, strict=True)
            for line in _cpp_tensor(one, tensor)
        ]
        items = f"std::vector<aclTensor *> {name}Items = {{{', '.join(names)}}};"
        made = f"aclCreateTensorList({name}Items.data(), {name}Items.size())"
        return [*lines, items, f"aclTensorList *{name} = {made};"]
    element = "bool" if isinstance(value, aclBoolArray) else "int64_t"
    words = [_cpp_number(number, element) for number in value.numbers()]
    return [
        f"{element} {name}Values[] = {{{', '.join(words or ['0'])}}};",
        f"acl{kind} *{name} = aclCreate{kind}({name}Values, {len(words)});",
    ]


def _cpp_scalar(name: str, scalar: aclScalar) -> list[str]:
    dtype = aclDataType(scalar.dtype)
    kind = _C_TYPES.get(dtypes.name(dtype))
    if kind is None:  # halves have no type in C++; every float is one of theirs first
        kind, dtype = "float", aclDataType.ACL_FLOAT
    return [
        f"{kind} {name}Value = {_cpp_number(scalar.value, kind)};",
        f"aclScalar *{name} = aclCreateScalar(&{name}Value, {dtype.name});",
    ]


def _cpp_number(value: Any, kind: str) -> str:
    if kind == "bool":
        return str(bool(value)).lower()
    if isinstance(value, complex) or "complex" in kind:
        part = kind.removeprefix("std::complex<").removesuffix(">")
        real, imaginary = complex(value).real, complex(value).imag
        return f"{{{_cpp_number(real, part)}, {_cpp_number(imaginary, part)}}}"
    if kind not in ("float", "double"):
        return "INT64_MIN" if value == -(2**63) else f"{int(value)}{'u' * kind.startswith('u')}"
    number = float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return f"{number!r}{'f' * (kind == 'float')}"


def _cpp_tensor(name: str, tensor: aclTensor) -> list[str]:
    def listed(numbers: tuple[int, ...]) -> str:
        return "{" + ", ".join(map(str, numbers)) + "}"

    dtype = aclDataType(tensor.dtype)
    nbytes = dtypes.storage_size(dtype, math.prod(tensor.storage_shape))
    return [
        f"aclTensor *{name} = tensor({listed(tensor.dims())}, {dtype.name}, "
        f"{listed(tensor.steps())}, {tensor.offset}, {_format_name(tensor.format)}, "
        f"{listed(tensor.storage_shape)}, {max(nbytes, 1)});"
    ]


def _format_name(number: int) -> str:
    names = {int(member): member.name for member in aclFormat}
    return names.get(number, f"static_cast<aclFormat>({number})")
