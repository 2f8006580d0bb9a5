"""The BLAS that matrix products call: SciPy's, which C code can call without the interpreter."""

from __future__ import annotations

from typing import Any

from aclnn.graph.views.extras import need


def routine(name: str) -> Any:
    """The capsule that holds the address of a BLAS routine, such as 'sgemm'.

    Raises
    ------
    ModuleNotFoundError
        Where SciPy is missing; it says what to install.
    """
    scipy = need("scipy.linalg.cython_blas", "matrix products", "blas", called="SciPy's BLAS")
    return scipy.__pyx_capi__[name]
