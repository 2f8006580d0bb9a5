"""The BLAS of matrix products: SciPy's, which C code calls without the GIL."""

from __future__ import annotations

import ctypes
from typing import Any

from aclnn.graph.views.extras import need

# How builds of OpenBLAS name their functions: SciPy's wheels have a prefix, 64-bit integers a suffix.
_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("", "64_", "_64", "_64_")


def routine(name: str) -> Any:
    """The capsule that holds the address of a BLAS routine, such as 'sgemm'.

    Raises
    ------
    ModuleNotFoundError
        Where SciPy is missing; it says what to install.
    """
    return _blas().__pyx_capi__[name]


def thread_functions() -> tuple[int, int, int]:
    """Addresses of the BLAS's functions that get and set how many threads it uses.

    Returns
    -------
    get, set, set_for_thread : int
        OpenBLAS has the first two, for the process; MKL the first and the last one, which is for the
        calling thread. 0 for what there is not: any other BLAS uses as many threads as its own
        environment variables say.
    """
    library = ctypes.CDLL(_blas().__file__)  # is loaded; symbols are those of what it links to, too
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            names = (f"{prefix}{verb}_num_threads{suffix}" for verb in ("get", "set"))
            get, set = (_address(library, name) for name in names)
            if get and set:
                return get, set, 0
    local = _address(library, "MKL_Set_Num_Threads_Local")
    return _address(library, "MKL_Get_Max_Threads") if local else 0, 0, local


def _address(library: ctypes.CDLL, name: str) -> int:
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _blas() -> Any:
    return need("scipy.linalg.cython_blas", "matrix products", "blas", called="SciPy's BLAS")
