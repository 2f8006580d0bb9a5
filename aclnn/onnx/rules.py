"""Rules that nodes break: the value and the rule where one fails, or all that the node was given.

Forms, NumPy and ONNX's reference notice values that do not fit at different depths, in words of their own. When one of
them fails, the node is looked at once more, for an error that names a value and a rule of the standard.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.acl.arguments import shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.onnx.schemas import schema_of
from aclnn.onnx.steps import Step
from aclnn.tracing.array import TracedArray

MOST_SHOWN = 8  # elements of a value in a message
MOST_READ = 64  # numbers of a value that says how large something is
# Words about the program that failed, which say nothing of the model.
_OF_PYTHON = re.compile(
    r"^$|zip\(\)|(tuple|list|assignment) index|unpack|truth value|NoneType|object|recursion|Issues with types"
)
_BROADCAST = frozenset(
    [
        "Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
        "BitShift", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Max", "Min", "Sum", "Mean",
        "Where",
    ]
)  # fmt: skip
_SCALARS = {
    "Range": ("start", "limit", "delta"), "CumSum": ("axis",), "CumProd": ("axis",), "Trilu": ("k",),
    "OneHot": ("depth",), "Clip": ("min", "max"), "DFT": ("dft_length", "axis"), "STFT": ("frame_step", "frame_length"),
    "BlackmanWindow": ("size",), "HannWindow": ("size",), "HammingWindow": ("size",), "TopK": ("K",),
    "MelWeightMatrix": (
        "num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz",
    ),
}  # fmt: skip
_SIZES = {"Expand": "shape", "ConstantOfShape": "input", "Tile": "repeats"}
_INDICES = {
    "Gather": "indices", "GatherElements": "indices", "Scatter": "indices", "ScatterElements": "indices",
}  # fmt: skip
_OF_WINDOWS = ("kernel_shape", "strides", "dilations")


def check_rules(step: Step, domain: str = "") -> None:
    """Refuse a node that breaks a rule which nothing else may notice, such as ONNX's reference.

    Raises
    ------
    AclnnError
        That names the node, the value and the rule.
    """
    for words in _broken(step, _named(step, domain)):
        raise invalid(f"{step.kind} ({step.name}): {words}")


def misfit(step: Step, error: Exception, domain: str = "") -> AclnnError:
    """The error of a node, of what was raised while it was computed.

    Examples
    --------
    >>> step = Step("Range", "r", 20, (np.int64(0), np.int64(5), np.int64(0)), {})
    >>> misfit(step, ZeroDivisionError("division by zero")).message
    'Range (r): delta is 0, must not be 0'
    """
    title = f"{step.kind} ({step.name})"
    value = _named(step, domain)
    for words in _broken(step, value):
        return invalid(f"{title}: {words}")
    words = _words(error)
    if words.startswith(title):
        return invalid(words)
    listed = ", ".join([*_listed(value), *_attributes(step)])
    return invalid(f"{title}: {words}" + (f"; given are {listed}" if listed else ""))


def _words(error: Exception) -> str:
    """The words of an error about the model."""
    text = error.message if isinstance(error, AclnnError) else " ".join(str(error).split())
    # The standard's inference says several times which operator it is about.
    text = text.rpartition("InferenceError] ")[2].partition(" ==> Context")[0]
    text = re.sub(r" in node [^ ]*$", "", text)
    return "inputs and attributes do not fit" if _OF_PYTHON.search(text) else text


def _named(step: Step, domain: str) -> dict[str, Any]:
    """The inputs of a node by the names that its operator gives them."""
    schema = schema_of(domain, step.kind, step.opset)
    names = [] if schema is None else [one.name for one in schema.inputs]
    found = {}
    for index, one in enumerate(step.inputs):
        name = names[min(index, len(names) - 1)] if names else "input"
        found[name if index < len(names) else f"{name}_{index}"] = one
    return found


def _listed(arguments: dict[str, Any]) -> Iterator[str]:
    for name, one in arguments.items():
        if one is None or not hasattr(one, "dtype"):
            continue
        known = not isinstance(one, TracedArray) and np.size(one) <= MOST_SHOWN
        known = known and (np.asarray(one).dtype.kind in "iub" or not one.shape)
        yield (
            f"{name} {np.asarray(one).tolist()}"
            if known
            else f"{name} {one.dtype}{list(one.shape)}"
        )


def _attributes(step: Step) -> Iterator[str]:
    for name, one in step.attributes.items():
        if isinstance(one, int | float | str) or (
            isinstance(one, list | tuple) and len(one) <= MOST_SHOWN
        ):
            yield f"{name}={one}" if not isinstance(one, str) else f"{name}={shown(one)}"


# --- Rules ------------------------------------------------------------------------------------------


def _broken(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    """Rules of the standard that inputs and attributes break, in words."""
    yield from _not_scalar(step, arguments)
    yield from _of_axes(step, arguments)
    if step.kind in _BROADCAST:
        yield from _not_broadcast([one for one in arguments.values() if one is not None])
    if step.kind in _SIZES:
        yield from _no_sizes(_SIZES[step.kind], _whole(arguments.get(_SIZES[step.kind])))
    if step.kind in _INDICES:
        yield from _beyond(step, arguments)
    yield from _of_windows(step)
    own = _OWN.get(step.kind)
    if own is not None:
        yield from own(step, arguments)


def _whole(one: Any) -> list[int] | None:
    """The integers of a known input; None of others."""
    if one is None or isinstance(one, TracedArray) or np.asarray(one).dtype.kind not in "iu":
        return None
    return [int(n) for n in np.asarray(one).reshape(-1)[:MOST_READ]]


def _rank(step: Step) -> int | None:
    first = step.given(0)
    return len(first.shape) if hasattr(first, "shape") else None


def _not_scalar(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    for name in _SCALARS.get(step.kind, ()):
        one = arguments.get(name)
        if one is not None and math.prod(one.shape) != 1:
            yield f"{name} has shape {list(one.shape)}, must be a scalar"


def _of_axes(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    rank = _rank(step)
    if rank is None or step.kind == "OneHot":  # which may put its axis after all others
        return
    axis = step.attribute("axis")
    if axis is None:
        own = _whole(arguments.get("axis"))
        axis = own[0] if own else None
    if isinstance(axis, int) and not -rank <= axis < max(rank, 1) + (step.kind == "Flatten"):
        yield f"axis is {axis}, must be from {-rank} to {rank - (step.kind != 'Flatten')}"
    axes = step.attribute("axes") or _whole(arguments.get("axes")) or []
    most = rank + len(axes) if step.kind == "Unsqueeze" else rank
    for one in axes:
        if not -most <= one < most:
            yield f"axes are {list(axes)}, must be from {-most} to {most - 1}"
    if most and len({one % most for one in axes}) < len(axes):
        yield f"axes are {list(axes)}, must differ"


def _not_broadcast(arrays: Sequence[Any]) -> Iterator[str]:
    shapes = [tuple(one.shape) for one in arrays if hasattr(one, "shape")]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join([str(list(one)) for one in shapes])
        yield f"shapes {listed} do not broadcast: sizes must be equal, or 1"


def _no_sizes(name: str, sizes: list[int] | None) -> Iterator[str]:
    if sizes is not None and min(sizes, default=0) < 0:
        yield f"{name} is {sizes}, must be sizes from 0 on"


def _index_beyond(index: Any, size: int) -> Iterator[str]:
    if index is None or isinstance(index, TracedArray):
        return
    places = np.asarray(index)
    wrong = places[(places < -size) | (places >= size)]
    if wrong.size:
        yield f"an index is {wrong.reshape(-1)[0]}, must be from {-size} to {size - 1}"


def _beyond(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    rank, axis = _rank(step) or 0, step.attribute("axis", 0)
    if rank:
        yield from _index_beyond(arguments.get("indices"), step.inputs[0].shape[axis % rank])


def _of_windows(step: Step) -> Iterator[str]:
    """Rules of kernels that pass over the axes after the second."""
    rank = _rank(step)
    if rank is None or not ("Conv" in step.kind or "Pool" in step.kind):
        return
    for name in _OF_WINDOWS:
        numbers = step.attribute(name)
        if numbers is None:
            continue
        if len(numbers) != rank - 2:
            yield f"{name} is {list(numbers)}, must have {max(rank - 2, 0)} numbers"
        if min(numbers, default=1) < 1:
            yield f"{name} is {list(numbers)}, must be from 1 on"
    pads = step.attribute("pads")
    if pads is not None and len(pads) != 2 * (rank - 2):
        yield f"pads is {list(pads)}, must have {2 * max(rank - 2, 0)} numbers"


def _of_range(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    delta = arguments.get("delta")
    if delta is not None and not isinstance(delta, TracedArray) and not np.asarray(delta).any():
        yield f"delta is {np.asarray(delta).reshape(-1)[0]}, must not be 0"


def _of_expand(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    shape, x = _whole(arguments.get("shape")), step.inputs[0]
    if shape is not None:
        for _ in _not_broadcast([x, np.broadcast_to(0, shape)]):
            yield (
                f"shape is {shape}, which {list(x.shape)} does not broadcast to: sizes must be equal, or 1"
            )


def _of_tile(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    repeats, rank = _whole(arguments.get("repeats")), _rank(step)
    if repeats is not None and len(repeats) != rank:
        yield f"repeats is {repeats}, must have {rank} numbers"


def _of_reshape(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    shape, x = step.attribute("shape") or _whole(arguments.get("shape")), step.inputs[0]
    if shape is None:
        return
    sizes = list(shape)
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        yield f"shape is {sizes}, must be sizes from 0 on, and -1 at most once"
    if not step.attribute("allowzero", 0):
        if any(not size and n >= len(x.shape) for n, size in enumerate(sizes)):
            yield f"shape is {sizes}, whose 0 stands for a size that {list(x.shape)} does not have"
            return
        sizes = [size or x.shape[n] for n, size in enumerate(sizes)]
    count, own = math.prod(x.shape), math.prod([size for size in sizes if size != -1])
    if own != count and (-1 not in sizes or not own or count % own):
        yield f"shape is {list(shape)}, which {list(x.shape)} of {count} elements cannot have"


def _of_slice(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    known = {
        name: [*found]
        for name in ("starts", "ends", "axes", "steps")
        if (found := step.attribute(name) or _whole(arguments.get(name))) is not None
    }
    if len({len(one) for one in known.values()}) > 1:
        yield f"{', '.join([f'{name} {one}' for name, one in known.items()])} must be as many"
    if 0 in known.get("steps", ()):
        yield f"steps are {known['steps']}, must not be 0"


def _of_squeeze(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    axes, shape = (
        step.attribute("axes") or _whole(arguments.get("axes")) or (),
        step.inputs[0].shape,
    )
    for axis in axes:
        if shape[axis] != 1:
            yield f"axes are {list(axes)}, of which {axis} has {shape[axis]} elements, must have 1"


def _of_places(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    """GatherND and ScatterND: each column of indices is one axis."""
    x, indices = step.inputs[:2]
    before, depth = step.attribute("batch_dims", 0), indices.shape[-1] if indices.shape else 0
    if not depth or before + depth > len(x.shape):
        yield (
            f"the last axis of indices has {depth} elements, must have 1 to {len(x.shape) - before}"
        )
        return
    for n in range(0 if isinstance(indices, TracedArray) else depth):
        yield from _index_beyond(np.asarray(indices)[..., n], x.shape[before + n])


def _of_pad(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    pads, axes = (
        step.attribute("pads") or _whole(arguments.get("pads")),
        _whole(arguments.get("axes")),
    )
    count = 2 * (_rank(step) or 0 if axes is None else len(axes))
    if pads is not None and len(pads) != min(count, MOST_READ):
        yield f"pads is {list(pads)}, must have {count} numbers"


def _of_dtype(step: Step, arguments: dict[str, Any]) -> Iterator[str]:
    import onnx

    to = step.attribute("to")
    try:
        onnx.helper.tensor_dtype_to_np_dtype(to)
    except (KeyError, TypeError, ValueError):
        yield f"to is {to}, which is no dtype of the standard"


_OWN: dict[str, Callable[[Step, dict[str, Any]], Iterator[str]]] = {
    "Range": _of_range, "Expand": _of_expand, "Tile": _of_tile, "Reshape": _of_reshape, "Slice": _of_slice,
    "Squeeze": _of_squeeze, "GatherND": _of_places, "ScatterND": _of_places, "Pad": _of_pad, "Cast": _of_dtype,
    "BitCast": _of_dtype,
}  # fmt: skip
