"""How many threads a run may use.

The number is a ceiling: small tensors never wake a second thread, and a lower limit of OpenMP's
own (``OMP_NUM_THREADS``, threadpoolctl) holds too.
"""

from __future__ import annotations

import os

from aclnn import _plan, environment
from aclnn.errors import as_int, invalid, shown
from aclnn.graph.abi import MAX_THREADS


def set_num_threads(n: int) -> None:
    """Set how many threads a run may use.

    Parameters
    ----------
    n : int
        At least 1, at most 1024.

    Raises
    ------
    AclnnError
        If `n` is no such number.

    Examples
    --------
    >>> import aclnn
    >>> before = aclnn.get_num_threads()
    >>> aclnn.set_num_threads(1)
    >>> aclnn.get_num_threads()
    1
    >>> aclnn.set_num_threads(before)
    """
    number = as_int(n)
    if number is None or not 1 <= number <= MAX_THREADS:
        raise invalid(f"number of threads is {shown(n)}, must be an int from 1 to {MAX_THREADS}")
    _plan.configure(threads=number)


def get_num_threads() -> int:
    """The number of threads a run may use.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.get_num_threads() >= 1
    True
    """
    return _plan.current_settings()["threads"]


def _usable_cpus() -> int:
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 64)


set_num_threads(environment.NUM_THREADS.read() or _usable_cpus())
