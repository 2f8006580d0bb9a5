"""The BLAS of matrix products: SciPy's, which C code calls without the GIL."""

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
