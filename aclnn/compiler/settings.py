"""Settings of calls: SoC, number of threads, planning mode and strategy.

Environment variables supply the initial values. The number of threads is an upper bound: small tensors
use one thread, and a lower limit of OpenMP (``OMP_NUM_THREADS``, threadpoolctl) applies too.
"""

from __future__ import annotations

import os
from contextlib import ContextDecorator

from aclnn import environment
from aclnn.acl import socs
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, did_you_mean, shown
from aclnn.acl.errors import invalid
from aclnn.compiler import _plan_cache, _settings
from aclnn.graph.planner import strategies
from aclnn.graph.runtime.abi import MAX_THREADS

STRATEGIES = tuple(strategies.STRATEGIES)  # keys of plans have their numbers
MOST_BY_THEMSELVES = 64  # threads that nobody asked for


def strategy_number(name: object) -> int:
    """The number of a planning strategy.

    >>> strategy_number("default")
    0
    """
    if name not in STRATEGIES:
        known = f"must be one of {', '.join(STRATEGIES)}{did_you_mean(name, STRATEGIES)}"
        raise invalid(f"planning strategy is {shown(name)}, {known}")
    return STRATEGIES.index(name)


@boundary
def set_soc_version(name: str) -> None:
    """Select the SoC whose dtype rules apply.

    Parameters
    ----------
    name : str
        A family (``Ascend310P``, ``Ascend910``, ``Ascend910B``, ``Ascend910_93``, ``Ascend950``,
        ``Ascend310B``) in any case, or the name of one of its SoCs, such as ``Ascend910B2``.

    Raises
    ------
    AclnnError
        If there is no such SoC.

    Examples
    --------
    >>> import aclnn
    >>> before = aclnn.get_soc_version()
    >>> aclnn.set_soc_version("ascend310p3")
    >>> aclnn.get_soc_version()
    'Ascend310P'
    >>> aclnn.set_soc_version(before)
    """
    _settings.configure(soc=socs.FAMILIES.index(socs.family(name)))


def get_soc_version() -> str:
    """The SoC family whose dtype rules apply.

    Returns
    -------
    str
        One of the families that `set_soc_version` lists, spelled as there.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.get_soc_version() in ("Ascend910B", "Ascend310P", "Ascend910")
    True
    """
    return socs.FAMILIES[_settings.current_settings()["soc"]]


def aclrtGetSocName() -> str:
    """The product whose dtype rules hold; see `aclnn.set_soc_version`.

    Returns
    -------
    str
        The family, as `aclnn.get_soc_version` has it.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetSocName() == aclnn.get_soc_version()
    True
    """
    return get_soc_version()


@boundary
def set_num_threads(n: int) -> None:
    """Set how many threads a run may use, in the whole process; `num_threads` limits one thread.

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
    _settings.configure(threads=_checked(n))


def _checked(n: int) -> int:
    number = as_int(n)
    if number is None or not 1 <= number <= MAX_THREADS:
        raise invalid(f"number of threads is {shown(n)}, must be an int from 1 to {MAX_THREADS}")
    return number


class num_threads(ContextDecorator):  # noqa: N801 - reads like a function
    """Limit the runs of the calling thread, as a context manager or a decorator.

    Meanwhile the thread's calls run with at most `n` threads, whatever the process is set to and
    compiled functions ask for, and plans have scratch for `n`; calls of other threads are not concerned.
    What the thread gives to streams is limited in the same way. Contexts may be nested: the innermost holds.

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
    >>> import numpy as np
    >>> import aclnn
    >>> with aclnn.num_threads(1):
    ...     aclnn.get_num_threads(), aclnn.relu(np.float32([-1, 2]))
    (1, array([0., 2.], dtype=float32))
    """

    @boundary
    def __init__(self, n: int):
        self.n = _checked(n)
        self._before: list[int] = []

    def __repr__(self) -> str:
        return f"num_threads({self.n})"

    def _recreate_cm(self) -> num_threads:
        return num_threads(self.n)  # a decorated function may run in several threads

    def __enter__(self) -> num_threads:
        self._before.append(_settings.limit_thread(self.n))
        return self

    def __exit__(self, *raised: object) -> None:
        _settings.limit_thread(self._before.pop())


def get_num_threads() -> int:
    """The number of threads a run may use.

    Returns
    -------
    int
        From 1 to 1024: the limit that `num_threads` sets for the calling thread, else that of
        `set_num_threads`. Runs on small tensors always use one thread.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.get_num_threads() >= 1
    True
    """
    return _settings.current_settings()["threads"]


def usable_cpus() -> int:
    """Number of CPUs that the process may use, as far as the system tells.

    >>> usable_cpus() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _from_environment() -> None:
    set_soc_version(environment.SOC_VERSION.read())
    set_num_threads(environment.NUM_THREADS.read() or min(usable_cpus(), MOST_BY_THEMSELVES))
    _settings.configure(
        strategy=STRATEGIES.index(environment.PLANNER.read()),
        materialize=environment.MATERIALIZE.read(),
    )
    _plan_cache.set_limit(environment.PLAN_CACHE.read())


_from_environment()
