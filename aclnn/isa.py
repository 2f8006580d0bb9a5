"""Selection of the kernels' instruction set.

The kernels are compiled for a generic CPU, on x86-64 also for its levels v3 and v4, on AArch64 also with
NEON; the best version that this CPU supports is selected at first use. ``ACLNN_ISA`` overrides the choice.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

from aclnn import environment
from aclnn._cpu import cpu_supports

OVER_VECTORS = ("kernels._simd_kernels", "kernels._fused_kernels")
LEVELS = dict(zip(environment.INSTRUCTION_SETS, (0, 1, 3, 4), strict=True))


@cache
def available() -> tuple[str, ...]:
    """The instruction sets that were built and that this CPU has, best last.

    >>> set(available()) <= {"generic", "neon", "v3", "v4"}
    True
    """
    return tuple(
        name for name, level in LEVELS.items() if cpu_supports(level) and _has("_kernels", name)
    )


@cache
def name() -> str:
    """The instruction set in use.

    Raises
    ------
    AclnnError
        If ``ACLNN_ISA`` names one that does not exist or that this CPU does not have.
    """
    chosen = environment.ISA.read()
    if not available():
        raise RuntimeError("no kernels were built that this CPU can run; see ACLNN_BUILD_ISA")
    if chosen is not None and chosen not in available():
        raise environment.ISA.refused(f"must be one of {', '.join(available())} on this CPU")
    return chosen or available()[-1]


class Loops:
    """The module of a family of kernels, whose functions take the loops of one instruction set.

    >>> kernels("generic").__name__
    'aclnn._kernels_generic'
    """

    def __init__(self, module: ModuleType, isa: str):
        self._module, self._number = module, tuple(LEVELS).index(isa)
        self.__name__ = f"{module.__name__}_{isa}"
        module.use(self._number)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, type(self._module.use)):
            found = self._with_loops(found)
        setattr(self, name, found)
        return found

    def _with_loops(self, function: Callable[..., Any]) -> Callable[..., Any]:
        use, number = self._module.use, self._number

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            use(number)
            return function(*args, **kwargs)

        return call


class Family:
    """The kernels of a family, called with an instruction set, by default the one in use.

    Where an instruction set has none of its own, as it would gain little, it takes that of the next lower one.
    """

    def __init__(self, stem: str):
        self._stem = stem

    def __call__(self, isa: str | None = None) -> Loops:
        return _nearest(self._stem, isa or name())


kernels = Family("_kernels")
row_kernels = Family("kernels._row_kernels")
quantized_kernels = Family("kernels._quantized_kernels")
sorting_kernels = Family("kernels._sorting_kernels")
image_kernels = Family("kernels._image_kernels")
attention_kernels = Family("kernels._attention_kernels")
product_kernels = Family("kernels._product_kernels")
convolution_kernels = Family("kernels._convolution_kernels")


@cache
def _nearest(stem: str, isa: str) -> Loops:
    """The kernels that serve an instruction set."""
    names = list(LEVELS)
    for lower in reversed(names[: names.index(isa) + 1]):
        if found := _loops(stem, lower):
            return found
    raise RuntimeError(f"no aclnn.{stem} were built for {isa}; see ACLNN_BUILD_ISA")


def fused_kernels(isa: str | None = None) -> Loops | None:
    """Kernels that compute several nodes; None where the instruction set has none."""
    return _loops("kernels._fused_kernels", isa or name())


def simd_kernels(isa: str | None = None) -> Loops | None:
    """Fast paths over vectors; None where the instruction set has none."""
    return _loops("kernels._simd_kernels", isa or name())


@cache
def _loops(stem: str, isa: str) -> Loops | None:
    """The kernels of an instruction set itself, or None."""
    return Loops(_module(stem), isa) if _has(stem, isa) else None


def _has(stem: str, isa: str) -> bool:
    module = f"aclnn.{stem}"
    # What all of these modules is for vectors is no code for other CPUs.
    if (stem in OVER_VECTORS and isa == "generic") or importlib.util.find_spec(module) is None:
        return False
    return bool(_module(stem).BUILT >> tuple(LEVELS).index(isa) & 1)


def _module(stem: str) -> ModuleType:
    return importlib.import_module(f"aclnn.{stem}")
