"""Operators on arrays of Dask's, chunk by chunk, on any of its schedulers.

Functional forms and compiled functions take arrays of Dask's as they take NumPy's: they check the call at
once, as phase one does, and give an array of Dask's whose chunks are computed when it is.  Importing this
module is not needed for that.  The functional forms are here as well: ``aclnn.dask.gelu`` is
``aclnn.gelu``.

Chunks are computed with one thread each: Dask runs several at a time.

Examples
--------
>>> import dask.array as da
>>> import numpy as np
>>> import aclnn
>>> x = da.ones((1000, 64), chunks=(250, 16), dtype=np.float16)
>>> aclnn.gelu(x).chunks
((250, 250, 250, 250), (16, 16, 16, 16))
>>> aclnn.softmax(x, 1).chunks  # rows are needed whole
((250, 250, 250, 250), (64,))
>>> float(aclnn.mean(x).compute())
1.0
"""

from __future__ import annotations

import builtins as _builtins
from typing import Any

try:
    import dask.array as _array  # noqa: F401
except ImportError as error:
    raise ImportError(
        "aclnn.dask needs Dask: pip install 'aclnn-cpu[dask]'", name="dask"
    ) from error

from aclnn.acl._frames import boundary as _boundary
from aclnn.acl.arguments import did_you_mean as _did_you_mean
from aclnn.api import functional as _functional
from aclnn.dask.calls import call as call
from aclnn.dask.lifting import lift as lift
from aclnn.execution import array_kinds as _array_kinds

_array_kinds.enter("dask", call=call, lift=lift)

_PUBLIC = ["lift", *_functional.__all__]
# A star leaves Python's own names alone: `sum`, `max` and others.
__all__ = [_one for _one in _PUBLIC if not hasattr(_builtins, _one)]


@_boundary(kind=AttributeError)
def __getattr__(name: str) -> Any:
    if name not in _functional.__all__:
        meant = "" if name.startswith("_") else _did_you_mean(name, _PUBLIC)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    return getattr(_functional, name)


def __dir__() -> list[str]:
    return _PUBLIC
