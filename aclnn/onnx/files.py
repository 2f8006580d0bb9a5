"""Model files: weights are mapped from memory of the file, everything else is read.

A file is a message of protocol buffers: fields of a number, a kind and a content. The contents of weights are
left out of what is parsed, which makes it small: it may be larger than the 2 GiB that messages may have.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9  # fields of ModelProto, GraphProto and TensorProto
VARINT, BITS_64, BYTES, BITS_32 = 0, 1, 2, 5
LEAST_MAPPED = 1024  # bytes of a weight that is left where it is
PACKED = ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")  # several elements to a byte
MARK = "aclnn.mapped"  # key of the external data that stands for a mapped weight


class Field(NamedTuple):
    """A field of a message: its number and kind, where it begins, and where its content is."""

    number: int
    kind: int
    begin: int
    start: int
    end: int


def fields(content: Any, begin: int, end: int) -> Iterator[Field]:
    """The fields of a message.

    >>> [(one.number, one.kind) for one in fields(b"\\x08\\x03\\x12\\x01a", 0, 5)]
    [(1, 0), (2, 2)]
    """
    at = begin
    while at < end:
        first = at
        key, at = _varint(content, at, end)
        kind, start = key & 7, at
        if kind == VARINT:
            _, at = _varint(content, at, end)
        elif kind == BYTES:
            length, start = _varint(content, at, end)
            at = start + length
        elif kind in (BITS_32, BITS_64):
            at = start + (4 if kind == BITS_32 else 8)
        else:
            raise ValueError(f"field {key >> 3} at byte {first} has kind {kind}")
        if at > end:
            raise ValueError(f"field {key >> 3} at byte {first} goes beyond its message")
        yield Field(key >> 3, kind, first, start, at)


def _varint(content: Any, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError(f"a number ends nowhere before byte {at}")


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | BYTES) + _number(len(content)) + content


class Skeleton(NamedTuple):
    """A model without its large weights, and where these are in the file."""

    content: bytes
    places: list[
        tuple[int, int]
    ]  # of each weight that was left out, its first byte and the one after


def skeleton_of(content: Any) -> Skeleton:
    """The message of a model without the contents of its large weights."""
    places: list[tuple[int, int]] = []
    parts: list[bytes] = []
    for one in fields(content, 0, len(content)):
        if one.number == GRAPH and one.kind == BYTES:
            parts.append(_field(GRAPH, _graph(content, one, places)))
        else:
            parts.append(bytes(content[one.begin : one.end]))
    return Skeleton(b"".join(parts), places)


def _graph(content: Any, graph: Field, places: list[tuple[int, int]]) -> bytes:
    parts = []
    for one in fields(content, graph.start, graph.end):
        if one.number == INITIALIZER and one.end - one.start > LEAST_MAPPED:
            parts.append(_field(INITIALIZER, _weight(content, one, places)))
        else:
            parts.append(bytes(content[one.begin : one.end]))
    return b"".join(parts)


def _weight(content: Any, weight: Field, places: list[tuple[int, int]]) -> bytes:
    parts = []
    for one in fields(content, weight.start, weight.end):
        if one.number == RAW_DATA and one.kind == BYTES and one.end - one.start > LEAST_MAPPED:
            parts.append(
                _field(13, _field(1, MARK.encode()) + _field(2, str(len(places)).encode()))
            )
            places.append((one.start, one.end))
        else:
            parts.append(bytes(content[one.begin : one.end]))
    return b"".join(parts)


def read_file(path: str | os.PathLike[str]) -> tuple[Any, dict[str, np.ndarray]]:
    """The model in a file, and its weights by name: those that are large are mapped.

    Raises
    ------
    OSError
        If there is no such file.
    AclnnError
        If weights are outside its folder, or not all there.
    """
    import onnx

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    skeleton = skeleton_of(mapped)
    proto = onnx.load_from_string(skeleton.content)
    return proto, weights_of(proto, Path(path), mapped, skeleton.places)


def _mapped(one: Any, file: Path | None, mapped: Any, begin: int, end: int) -> np.ndarray:
    """Bytes of a weight: mapped, or read into memory where no kernel could read them in their place."""
    import onnx

    alignment = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(one.data_type)).alignment
    if begin % alignment and file is not None:
        return np.fromfile(file, np.uint8, end - begin, offset=begin)
    return np.frombuffer(mapped, np.uint8, end - begin, begin)


def weights_of(
    proto: Any, file: Path | None, mapped: Any = b"", places: Any = ()
) -> dict[str, np.ndarray]:
    """The initialisers of a model: what is in other files is mapped.

    Parameters
    ----------
    proto : onnx.ModelProto
    file : path, optional
        The model's; external data has to be in its folder.
    mapped, places
        Its content, and where the weights are that were left out of `proto`.
    """
    import onnx

    files: dict[str, np.ndarray] = {}
    found = {}
    for one in proto.graph.initializer:
        entries = {entry.key: entry.value for entry in one.external_data}
        try:
            if MARK in entries:
                begin, end = places[int(entries[MARK])]
                found[one.name] = _tensor(one, _mapped(one, file, mapped, begin, end))
            elif one.data_location == onnx.TensorProto.EXTERNAL:
                found[one.name] = _tensor(one, _external(entries, file, files))
            else:
                found[one.name] = onnx.numpy_helper.to_array(one)
        except OSError:
            raise
        except Exception as error:  # whatever is wrong with its bytes
            words = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise invalid(f"initializer {shown(one.name)}: {words}") from None
    return found


def _external(
    entries: dict[str, str], file: Path | None, files: dict[str, np.ndarray]
) -> np.ndarray:
    """The bytes of a weight in another file of the model's folder."""
    location = entries.get("location", "")
    if file is None:
        raise ValueError(f"its data is in the file {shown(location)}: give the model's path")
    folder = file.parent
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder.resolve()):
        raise ValueError(f"its data is in {shown(location)}, which is not in the model's folder")
    if location not in files:
        if not path.is_file():
            raise ValueError(f"its data is in {shown(location)}, which is no file")
        size = path.stat().st_size
        files[location] = np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)
    whole, begin = files[location], int(entries.get("offset", 0))
    length = int(entries.get("length", len(whole) - begin))
    if begin < 0 or length < 0 or begin + length > len(whole):
        raise ValueError(
            f"its data are {length} bytes from {begin} on of {shown(location)}, which has {len(whole)}"
        )
    return whole[begin : begin + length]


def _tensor(one: Any, data: np.ndarray) -> np.ndarray:
    """A weight over its bytes: a view of them, or a copy where its elements are no whole bytes."""
    import onnx

    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(one.data_type))
    shape = tuple(one.dims)
    count = int(np.prod(shape, dtype=np.int64))
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    if onnx.TensorProto.DataType.Name(one.data_type) in PACKED:
        copy = onnx.TensorProto(dims=shape, data_type=one.data_type, raw_data=data.tobytes())
        return np.asarray(onnx.numpy_helper.to_array(copy))
    if dtype.itemsize * count != len(data):
        raise ValueError(
            f"{len(data)} bytes for {dtype}{list(shape)}, which needs {dtype.itemsize * count}"
        )
    if data.ctypes.data % dtype.alignment:
        return np.frombuffer(data.tobytes(), dtype).reshape(shape)
    return data.view(dtype).reshape(shape)
