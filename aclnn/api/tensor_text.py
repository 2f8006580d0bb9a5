"""Text form of operands: ``bfloat16[128,64:strides=1,128]``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.errors import AclnnError, invalid
from aclnn.environment import whole
from aclnn.graph import contiguous_strides

FARTHEST = 2**63 - 1  # elements that an array's strides and sizes can distinguish
_FORM = re.compile(r"(?P<dtype>\w+)\[(?P<dims>[^:\]]*)(?P<rest>(?::[^:\]]*)*)\]")


SHORT = {
    "f16": "float16", "half": "float16", "bf16": "bfloat16", "f32": "float32", "float": "float32",
    "f64": "float64", "double": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
    "int": "int32", "i64": "int64", "long": "int64", "u8": "uint8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Description:
    """A dtype, a shape, and strides and an offset in elements; `str` gives what `parse` reads."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __str__(self) -> str:
        words = ",".join(map(str, self.shape))
        if self.strides != contiguous_strides(self.shape):
            words += f":strides={','.join(map(str, self.strides))}"
        if self.offset:
            words += f":offset={self.offset}"
        return f"{self.dtype}[{words}]"

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
    >>> str(parse("float32[]")), str(parse("bf16[2,3]"))
    ('float32[]', 'bfloat16[2,3]')
    """
    found = _FORM.fullmatch(text.replace(" ", ""))
    if found is None:
        raise _bad(text, "must look like float16[64,1,1024] or bfloat16[128,64:strides=1,128]")
    dtype = SHORT.get(found["dtype"], found["dtype"])
    if dtype not in dtypes.NAMES:
        raise _bad(text, f"{found['dtype']!r} is no dtype; they are {', '.join(dtypes.NAMES)}")
    shape = _numbers(text, "size", found["dims"], low=0)
    options = _options(text, found["rest"])
    listed = _numbers(text, "stride", options.get("strides", ""), low=-FARTHEST)
    strides = listed or contiguous_strides(shape)
    if len(strides) != len(shape):
        raise _bad(text, f"{len(strides)} strides for {len(shape)} dimensions")
    offset = _number(text, "the offset", options.get("offset") or "0", low=0)
    return Description(dtype, shape, strides, offset)


def _options(text: str, words: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, words.split(":")):
        key, _, value = part.partition("=")
        if key not in ("strides", "offset"):
            raise _bad(text, f"{key!r} is no option; they are strides and offset")
        if key in options:
            raise _bad(text, f"{key} is given twice")
        options[key] = value
    return options


def _numbers(text: str, what: str, words: str, low: int) -> tuple[int, ...]:
    listed = words.split(",") if words else []
    return tuple(_number(text, f"every {what}", word, low) for word in listed)


def _number(text: str, what: str, word: str, low: int) -> int:
    try:
        return whole(word, low, FARTHEST)
    except ValueError as rule:
        raise _bad(text, f"{what} {rule}, not {word!r}") from None


def _bad(text: str, why: str) -> AclnnError:
    return invalid(f"operand {text!r}: {why}")
