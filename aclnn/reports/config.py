"""The configuration: versions, instruction set, threads, SoC, cache."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from aclnn import environment, isa, measurements
from aclnn._version import __version__
from aclnn.api import handles
from aclnn.compiler import settings
from aclnn.graph.runtime import _scheduler


def config() -> dict[str, Any]:
    """The configuration as plain data.

    Returns
    -------
    dict
        ``versions``, ``isa`` (in use, available, and where fused loops
        keep their values), ``threads`` (set, of OpenMP, whether built
        with it), ``soc`` (whose dtype rules hold), ``plan_cache`` (hits, misses, size, limit),
        ``measured`` (what choices by speed rest on: where, of which build of the kernels, how much) and
        ``environment`` (the variables that are set; see `aclnn.environment`).

    Examples
    --------
    >>> from aclnn.reports.config import config
    >>> sorted(config())
    ['environment', 'isa', 'measured', 'plan_cache', 'soc', 'threads', 'versions']
    """
    return {
        "versions": {
            "aclnn-cpu": __version__,
            "python": platform.python_version(),
            "numpy": metadata.version("numpy"),
            "ml_dtypes": metadata.version("ml_dtypes"),
        },
        "isa": {
            "name": isa.name(),
            "available": list(isa.available()),
            "fused": "on registers" if isa.fused_kernels() is not None else "in blocks",
        },
        "threads": {
            "set": settings.get_num_threads(),
            "openmp": bool(_scheduler.openmp_enabled()),
            "openmp_limit": _scheduler.omp_threads(),
        },
        "soc": settings.get_soc_version(),
        "plan_cache": handles.cache_info(),
        "measured": {
            "folder": str(measurements.folder()),
            "kept": sum(len(measurements.read(path)) for path in measurements.files()),
            "build": measurements.build(),
        },
        "environment": environment.given(),
    }


def show_config() -> None:
    """Print versions, the instruction set in use, threads, SoC rules and the plan cache's hits.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.show_config()  # doctest: +ELLIPSIS
    versions    aclnn-cpu ...
    """
    for section, facts in config().items():
        if isinstance(facts, dict):
            named = [f"{name} {_words(value)}" for name, value in facts.items()]
            facts = ", ".join(named) or "nothing is set"
        print(f"{section:11} {facts}")
    for name, meant in environment.unknown().items():
        print(f"{'':11} {name} is set, but is no setting{meant}")


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
