"""Operands in words: ``bfloat16[128,64:strides=1,128]``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from aclnn import dtypes
from aclnn.errors import AclnnError, invalid
from aclnn.graph import contiguous_strides

_FORM = re.compile(r"(?P<dtype>\w+)\[(?P<dims>[^:\]]*)(?P<rest>(?::[^:\]]*)*)\]")


@dataclass(frozen=True, slots=True)
class Description:
    """A dtype, a shape, and strides and an offset in elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __str__(self) -> str:
        dims = ",".join(map(str, self.shape))
        strides = ",".join(map(str, self.strides))
        dense = self.strides == contiguous_strides(self.shape)
        return f"{self.dtype}[{dims}{'' if dense else f':strides={strides}'}]"

    def array(self, low: float, high: float, seed: int = 0) -> np.ndarray:
        """An array of this description, with values from `low` to `high`."""
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        first = self.offset - sum(min(r, 0) for r in reach)
        length = first + sum(max(r, 0) for r in reach) + 1 if math.prod(self.shape) else first
        kind = dtypes.NUMPY[dtypes.of_name(self.dtype)]
        values = np.random.default_rng(seed).uniform(low, high, max(length, 1))
        storage = values.astype(np.float32).astype(kind)
        steps = tuple(stride * kind.itemsize for stride in self.strides)
        return np.ndarray(self.shape, kind, storage, first * kind.itemsize, steps)


def parse(text: str) -> Description:
    """Read a description.

    >>> parse("bfloat16[128,64:strides=1,128]")
    Description(dtype='bfloat16', shape=(128, 64), strides=(1, 128), offset=0)
    >>> str(parse("float32[]"))
    'float32[]'
    """
    found = _FORM.fullmatch(text.replace(" ", ""))
    if found is None:
        raise _bad(text, "must look like float16[64,1,1024] or bfloat16[128,64:strides=1,128]")
    if found["dtype"] not in dtypes.NAMES:
        raise _bad(text, f"{found['dtype']!r} is no dtype; they are {', '.join(dtypes.NAMES)}")
    shape = _numbers(text, "size", found["dims"])
    if any(size < 0 for size in shape):
        raise _bad(text, "sizes must not be negative")
    options: dict[str, str] = {}
    for part in filter(None, found["rest"].split(":")):
        key, _, value = part.partition("=")
        if key not in ("strides", "offset"):
            raise _bad(text, f"{key!r} is no option; they are strides and offset")
        if key in options:
            raise _bad(text, f"{key} is given twice")
        options[key] = value
    strides = _numbers(text, "stride", options.get("strides", "")) or contiguous_strides(shape)
    if len(strides) != len(shape):
        raise _bad(text, f"{len(strides)} strides for {len(shape)} dimensions")
    offset, *others = _numbers(text, "offset", options.get("offset", "")) or (0,)
    if others or offset < 0:
        raise _bad(text, "the offset is one number that is not negative")
    return Description(found["dtype"], shape, strides, offset)


def _numbers(text: str, what: str, words: str) -> tuple[int, ...]:
    if not words:
        return ()
    if not re.fullmatch(r"[+-]?[0-9]{1,19}(,[+-]?[0-9]{1,19})*", words):
        raise _bad(text, f"every {what} must be an int, not {words!r}")
    return tuple(int(word) for word in words.split(","))


def _bad(text: str, why: str) -> AclnnError:
    return invalid(f"operand {text!r}: {why}")
