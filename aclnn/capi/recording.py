"""Calls of a program in C as lines of Python that reproduce them: ``ACLNN_RECORD=file``.

The library passes every call on, with its arguments as numbers, before phase two and after all others.
Lines assert the status that the program got, and the bytes that it copied back. Memory that is the
program's own becomes a buffer with the contents that it had.
"""

from __future__ import annotations

import base64
import bisect
import ctypes
import math
import zlib
from dataclasses import dataclass
from typing import Any, TextIO

from aclnn import environment
from aclnn._version import __version__
from aclnn.acl import prototypes
from aclnn.acl.constants import ENUMERATIONS
from aclnn.capi import function_pairs

_HANDLES = {
    "aclrtStream": "stream",
    "aclrtEvent": "event",
    "aclrtContext": "context",
    "aclmdlRI": "model",
    "aclrtTaskGrp": "group",
    "aclrtDrvMemHandle": "physical",
    "aclTensor *": "tensor",
    "aclScalar *": "scalar",
    "aclIntArray *": "ints",
    "aclFloatArray *": "floats",
    "aclBoolArray *": "bools",
    "aclTensorList *": "tensors",
    "aclScalarList *": "scalars",
    "aclOpExecutor *": "executor",
}
_ELEMENTS: dict[str, Any] = {
    "const int64_t *": ctypes.c_int64,
    "const float *": ctypes.c_float,
    "const bool *": ctypes.c_bool,
}
_ENUMERATIONS = {kind.__name__ for kind in ENUMERATIONS}
_ALLOCATING = ("aclrtMalloc", "aclrtMallocAlign32", "aclrtMallocCached", "aclrtMallocHost")
# What has no counterpart in Python: pointers to functions and structs of the program's own.
_COMMENTED = ("aclrtLaunchHostFunc", "aclAppLog", "aclmdlRIGetName", "aclmdlRICaptureThreadExchangeMode")  # fmt: skip
_HEAD = f'''"""Calls of a program in C, recorded by aclnn-cpu {__version__}."""

import base64
import zlib

import aclnn


def unpacked(text):
    """Bytes that were compressed."""
    return bytearray(zlib.decompress(base64.b85decode(text)))


'''
SHORT = 64  # bytes that are written as hexadecimal digits


@dataclass
class _Block:
    """Memory and the name of the variable that stands for it."""

    start: int
    nbytes: int
    name: str
    is_own: bool  # a buffer of the program's, not an allocation of the runtime's
    contents: bytes = b""

    @property
    def end(self) -> int:
        return self.start + self.nbytes


def _slack(nbytes: int) -> int:
    """Bytes behind an allocation that programs in C may touch.

    >>> _slack(64), _slack(100)
    (32, 60)
    """
    return -nbytes % 32 + 32


class Recorder:
    """Writes the lines of one process.

    Parameters
    ----------
    file : text file
        Flushed after each call, as a program may end at any time.
    """

    def __init__(self, file: TextIO):
        self._file = file
        self._names: dict[int, str] = {}  # of handles and objects
        self._counts: dict[str, int] = {}
        self._blocks: list[_Block] = []  # by address
        self._memory: dict[int, list[tuple[int, int]]] = {}  # of executors: views of own memory
        self._views: dict[int, tuple[int, int]] = {}  # of tensors: address and bytes
        self._lists: dict[int, list[int]] = {}
        self._functions = [
            *prototypes.RUNTIME.values(),
            *prototypes.OBJECTS.values(),
            *(
                prototypes.parse(text, "")
                for one in function_pairs.EVERY
                for text in (one.plan, one.run)
            ),
        ]
        file.write(_HEAD)

    def kinds(self, function: int) -> str:
        """A letter for each parameter: 'f' for floating point, 'i' for all others."""
        found = self._functions[function].parameters
        return "".join("f" if one.type in ("float", "double") else "i" for one in found)

    def note(self, function: int, arguments: list[Any], result: Any, is_before: bool) -> None:
        """Write the line of a call.

        Parameters
        ----------
        function : int
            Its number: the runtime's, the objects', then both phases of each pair.
        arguments : list of int or float
            The arguments, pointers as addresses.
        result : int
        is_before : bool
            Before the call: of phase two, which reads memory.
        """
        one = self._functions[function]
        if is_before:
            self._refresh(self._memory.get(arguments[2], []))
            return
        if one.name in _COMMENTED:
            self._write(f"# {one.name}: {result}")
            return
        self._call(one, arguments, result)
        self._file.flush()

    def _write(self, line: str) -> None:
        self._file.write(f"{line}\n")

    def _name(self, kind: str, value: int) -> str:
        """A new variable for a handle or an object."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        found = f"{kind}{self._counts[kind]}"
        self._names[value] = found
        return found

    # --- Memory ---------------------------------------------------------------------------------

    def _block_at(self, address: int, nbytes: int) -> _Block | None:
        index = bisect.bisect([one.start for one in self._blocks], address) - 1
        if index < 0:
            return None
        found = self._blocks[index]
        return found if address + max(nbytes, 1) <= found.end else None

    def _add(self, block: _Block) -> _Block:
        """Take memory; what lay there before is gone."""
        self._blocks = [
            one for one in self._blocks if one.end <= block.start or block.end <= one.start
        ]
        bisect.insort(self._blocks, block, key=lambda one: one.start)
        return block

    def _own(self, address: int, nbytes: int) -> _Block:
        """A buffer for memory of the program's own, with its contents."""
        found = self._block_at(address, nbytes)
        if found is not None:
            return found
        self._counts["memory"] = self._counts.get("memory", 0) + 1
        name = f"own{self._counts['memory']}"
        block = self._add(_Block(address, nbytes, name, True, ctypes.string_at(address, nbytes)))
        self._write(f"{name} = {_bytes(block.contents)}")
        return block

    def _refresh(self, views: list[tuple[int, int]]) -> None:
        """Give buffers the contents that the program's memory has now."""
        for address, nbytes in views:
            block = self._block_at(address, nbytes)
            if block is None or not block.is_own:
                continue
            now = ctypes.string_at(block.start, block.nbytes)
            if now != block.contents:
                self._write(f"{block.name}[:] = {_bytes(now)}")
                block.contents = now

    def _address(self, address: int, nbytes: int) -> str:
        """The expression for memory."""
        if address == 0:
            return "None"
        block = self._block_at(address, 1)
        if block is None or (block.is_own and address + nbytes > block.end):
            block = self._own(address, max(nbytes, 1))
        offset = address - block.start
        if not block.is_own:
            return f"{block.name} + {offset}" if offset else block.name
        return f"memoryview({block.name})[{offset}:]" if offset else block.name

    # --- Calls ----------------------------------------------------------------------------------

    def _call(self, one: prototypes.Prototype, args: list[Any], result: Any) -> None:
        by_name = dict(zip([p.name for p in one.parameters], args, strict=True))
        by_name["succeeded"] = bool(result) == one.returns.endswith("*")
        arguments, results = [], []
        for index, (parameter, value) in enumerate(zip(one.parameters, args, strict=True)):
            if one.name.startswith("acl") and self._is_count(one, index):
                continue
            if self._is_result(one, parameter):
                results.append((parameter, value))
            else:
                arguments.append(self._argument(one, parameter, value, by_name, index))
        call = f"aclnn.{one.name}({', '.join(arguments)})"
        if result != 0 and 0 in [value for _, value in results]:
            self._write(f"# {call}: {result}, without room for a result")
            return
        if one.returns.endswith("*") and one.returns != "const char *":
            self._made(one, call, result, by_name)
            return
        if one.returns not in ("aclError", "aclnnStatus"):
            self._write(call)
            return
        names = [
            self._result(one, parameter, value, result, by_name) for parameter, value in results
        ]
        self._write(self._assertion(one, call, names, result, by_name))
        if result == 0:
            self._after(one, by_name)

    def _assertion(
        self, one: prototypes.Prototype, call: str, names: list[str], status: int, by_name: Any
    ) -> str:
        if names:
            return f"{', '.join([*names, 'status'])} = {call}; assert status == {status}"
        copied = by_name.get("count", 0) if one.name == "aclrtMemcpy" and status == 0 else 0
        if copied and self._block_at(by_name["dst"], 1) is None:
            # Copied to the program's own memory: what it got is what the line has to give.
            found = _bytes(ctypes.string_at(by_name["dst"], copied))
            return f"host = bytearray({copied}); assert {call} == 0; assert host == {found}"
        return f"assert {call} == {status}"

    @staticmethod
    def _is_count(one: prototypes.Prototype, index: int) -> bool:
        """Whether a parameter is the length of the array before it."""
        name, before = one.parameters[index].name, one.parameters[index - 1]
        return index > 0 and (
            (name in ("viewDimsNum", "storageDimsNum", "stridesNum"))
            or (name == "size" and before.name == "value")
        )

    @staticmethod
    def _is_result(one: prototypes.Prototype, parameter: prototypes.Parameter) -> bool:
        if parameter.type in ("void **", "aclOpExecutor **", "int64_t **"):
            return True
        if parameter.type in _HANDLES or parameter.type.removeprefix("const ") in _HANDLES:
            return False
        if parameter.type == "char *":
            return False
        return parameter.is_result

    def _argument(
        self,
        one: prototypes.Prototype,
        parameter: prototypes.Parameter,
        value: Any,
        by_name: dict[str, Any],
        index: int,
    ) -> str:
        kind = parameter.type.removeprefix("const ")
        if kind in _HANDLES:
            return self._names.get(value, "None" if value == 0 else hex(value))
        if parameter.type in ("const char *", "char *"):
            return repr(ctypes.string_at(value).decode("utf-8", "replace")) if value else "None"
        if parameter.type in _ELEMENTS or parameter.type.endswith("*const *"):
            length = by_name.get(
                f"{parameter.name}Num", by_name.get("size", by_name.get("viewDimsNum", 0))
            )
            if parameter.name == "stride":
                length = by_name["viewDimsNum"]
            listed = self._array(parameter, value, length)
            if parameter.name == "storageDims":
                return self._storage(listed, by_name)
            return listed
        if parameter.type == "bool":
            return str(bool(value))
        if parameter.type in _ENUMERATIONS or parameter.type in ("int32_t", "int"):
            return str(ctypes.c_int32(value).value)
        if kind == "void *":
            return self._pointer(one, parameter.name, value, by_name)
        if one.name in _ALLOCATING and parameter.name == "size" and value:
            return f"{value} + {_slack(value)}"  # which Python's function does not add
        return repr(value)

    def _array(self, parameter: prototypes.Parameter, value: int, length: int) -> str:
        if value == 0:
            return "None" if length or parameter.name == "stride" else "()"
        if parameter.type.endswith("*const *"):
            items = list((ctypes.c_void_p * length).from_address(value))
            return f"[{', '.join(self._names.get(one or 0, 'None') for one in items)}]"
        items = list((_ELEMENTS[parameter.type] * length).from_address(value))
        return f"[{', '.join(map(repr, items))}]"

    def _pointer(
        self, one: prototypes.Prototype, name: str, value: int, by_name: dict[str, Any]
    ) -> str:
        if (
            one.name == "aclrtMemcpy"
            and name == "dst"
            and value
            and self._block_at(value, 1) is None
        ):
            return "host"
        if name == "src" and value and self._block_at(value, 1) is None:
            return _bytes(ctypes.string_at(value, by_name.get("count", 0)))
        if one.name == "aclCreateScalar":
            return self._number(value, by_name["dataType"])
        if name in ("tensorData", "tensorDataAddr"):
            # What was refused may reach anywhere.
            return self._address(value, self._reach(by_name) if by_name["succeeded"] else 1)
        if name == "addr":
            listed = self._lists.get(by_name.get("tensors", 0), [])
            index = by_name.get("relativeIndex", 0)
            tensor = by_name.get("tensor", listed[index] if index < len(listed) else 0)
            nbytes = self._views.get(tensor, (0, 1))[1]
            return self._address(value, nbytes)
        if name == "workspace":
            return self._address(value, by_name["workspaceSize"])
        return self._address(value, by_name.get("count", 1))

    def _storage(self, listed: str, by_name: dict[str, Any]) -> str:
        """The storage's shape, which reaches as far as the view: in C, memory alone bounds views."""
        if not by_name["storageDims"]:
            return listed
        length = by_name["storageDimsNum"]
        declared = math.prod((ctypes.c_int64 * length).from_address(by_name["storageDims"]))
        data = by_name.get("tensorData", by_name.get("tensorDataAddr"))
        needed = self._elements(by_name)
        is_wider = by_name["succeeded"] and data and declared < needed
        return f"[{needed}]" if is_wider else listed

    @classmethod
    def _reach(cls, by_name: dict[str, Any]) -> int:
        """Bytes that a view of this description reaches."""
        from aclnn.acl import dtypes

        elements = cls._elements(by_name)
        return dtypes.storage_size(by_name["dataType"], elements)

    @staticmethod
    def _elements(by_name: dict[str, Any]) -> int:
        """Elements that a view of this description reaches."""
        ndim = by_name["viewDimsNum"]
        if ndim and not by_name["viewDims"]:
            return 0
        shape = list((ctypes.c_int64 * ndim).from_address(by_name["viewDims"])) if ndim else []
        if 0 in shape:
            return 0
        if by_name["stride"]:
            strides = list((ctypes.c_int64 * ndim).from_address(by_name["stride"])) if ndim else []
        else:
            strides = [0] * ndim
            step = 1
            for axis in range(ndim - 1, -1, -1):
                strides[axis], step = step, step * shape[axis]
        last = by_name["offset"] + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        return last + 1

    @staticmethod
    def _number(address: int, dtype: int) -> str:
        """A scalar's value as an expression."""
        import numpy as np

        from aclnn.acl import dtypes

        if address == 0:
            return "None"
        try:
            kind = np.dtype(dtypes.name(dtype))  # type: ignore[arg-type]
        except (TypeError, ValueError, KeyError):
            return "0"
        value = np.frombuffer(ctypes.string_at(address, kind.itemsize), kind)[0].item()
        text = repr(value)
        return f'float("{text}")' if text in ("nan", "inf", "-inf") else text

    def _result(
        self,
        one: prototypes.Prototype,
        parameter: prototypes.Parameter,
        address: int,
        status: int,
        by_name: dict[str, Any],
    ) -> str:
        """The variable for a result."""
        if status != 0 or address == 0:
            return "_"
        kind = parameter.type.removesuffix("*").strip()
        if kind in _HANDLES or parameter.type == "aclOpExecutor **":
            kind = "aclOpExecutor *" if parameter.type == "aclOpExecutor **" else kind
            value = ctypes.c_void_p.from_address(address).value or 0
            return self._name(_HANDLES[kind], value) if value else "_"
        if parameter.type == "void **" and one.name in _ALLOCATING:
            value = ctypes.c_void_p.from_address(address).value or 0
            self._counts["memory"] = self._counts.get("memory", 0) + 1
            name = f"memory{self._counts['memory']}"
            nbytes = by_name["size"] + _slack(by_name["size"])
            self._add(_Block(value, nbytes, name, False))
            return name
        return "size" if parameter.name == "workspaceSize" else "_"

    def _made(self, one: prototypes.Prototype, call: str, result: int, by_name: Any) -> None:
        """The line of a function that gives an object."""
        if result == 0:
            self._write(f"assert {call} is None")
            return
        name = self._name(_HANDLES[one.returns], result)
        self._write(f"{name} = {call}")
        if one.name == "aclCreateTensor":
            self._views[result] = (by_name["tensorData"], self._reach(by_name))
        if one.name == "aclCreateTensorList":
            items = (ctypes.c_void_p * by_name["size"]).from_address(by_name["value"])
            self._lists[result] = [one or 0 for one in items] if by_name["size"] else []

    def _after(self, one: prototypes.Prototype, by_name: dict[str, Any]) -> None:
        """Keep what later lines need."""
        if one.name in ("aclrtFree", "aclrtFreeHost"):
            address = by_name.get("devPtr", by_name.get("hostPtr", 0))
            self._blocks = [block for block in self._blocks if block.start != address]
        elif one.name == "aclInitTensor":
            self._views[by_name["tensor"]] = (by_name["tensorDataAddr"], self._reach(by_name))
        elif "addr" in by_name and "tensor" in by_name:
            nbytes = self._views.get(by_name["tensor"], (0, 0))[1]
            self._views[by_name["tensor"]] = (by_name["addr"], nbytes)
            if "executor" in by_name:
                self._memory.setdefault(by_name["executor"], []).append((by_name["addr"], nbytes))
        elif one.name.endswith("GetWorkspaceSize"):
            executor = ctypes.c_void_p.from_address(by_name["executor"]).value or 0
            objects = [value for value in by_name.values() if isinstance(value, int)]
            tensors = [t for value in objects for t in self._lists.get(value, [value])]
            self._memory[executor] = [self._views[t] for t in tensors if t in self._views]
        elif one.name.startswith("aclnn") and "workspace" in by_name:
            for address, nbytes in self._memory.get(by_name["executor"], []):
                block = self._block_at(address, nbytes)
                if block is not None and block.is_own and not by_name["stream"]:
                    block.contents = ctypes.string_at(block.start, block.nbytes)


def _bytes(contents: bytes) -> str:
    """Bytes as an expression that gives a bytearray."""
    if len(contents) <= SHORT:
        return f'bytearray.fromhex("{contents.hex()}")'
    return f'unpacked("{base64.b85encode(zlib.compress(contents)).decode()}")'


_RECORDERS: dict[str, Recorder | None] = {}


def recorder() -> Recorder | None:
    """The process's recorder, which writes to the file that `ACLNN_RECORD` names."""
    if "" not in _RECORDERS:
        path = environment.RECORD.read()
        _RECORDERS[""] = Recorder(open(path, "w", encoding="utf-8")) if path else None  # noqa: SIM115
    return _RECORDERS[""]
