"""Selection of the kernels' instruction set.

The kernels are compiled for a generic CPU, on x86-64 also for its levels v3 and v4, on AArch64 also with
NEON; the best version that this CPU supports is selected at first use. ``ACLNN_ISA`` overrides the choice.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from types import ModuleType

from aclnn import environment
from aclnn._cpu import cpu_supports

LEVELS = dict(zip(environment.INSTRUCTION_SETS, (0, 1, 3, 4), strict=True))


@cache
def available() -> tuple[str, ...]:
    """The instruction sets that were built and that this CPU has, best last.

    >>> set(available()) <= {"generic", "neon", "v3", "v4"}
    True
    """
    return tuple(
        name
        for name, level in LEVELS.items()
        if cpu_supports(level) and importlib.util.find_spec(f"aclnn._kernels_{name}")
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


class Family:
    """The modules of a family of kernels, called with an instruction set, by default the one in use.

    Where an instruction set has none of its own, as it would gain little, it takes that of the next lower one.

    >>> kernels("generic").__name__
    'aclnn._kernels_generic'
    """

    def __init__(self, stem: str):
        self._stem = stem

    def __call__(self, isa: str | None = None) -> ModuleType:
        return _module(_nearest(self._stem, isa or name()))


kernels = Family("_kernels")
row_kernels = Family("_row_kernels")
quantized_kernels = Family("_quantized_kernels")
sorting_kernels = Family("_sorting_kernels")
image_kernels = Family("_image_kernels")
attention_kernels = Family("_attention_kernels")
product_kernels = Family("_product_kernels")
convolution_kernels = Family("_convolution_kernels")
simd_kernels = Family("_simd_kernels")


@cache
def _nearest(stem: str, isa: str) -> str:
    """The name of the module that serves an instruction set."""
    names = list(LEVELS)
    for lower in reversed(names[: names.index(isa) + 1]):
        if _exists(f"aclnn.{stem}_{lower}"):
            return f"aclnn.{stem}_{lower}"
    return f"aclnn.{stem}_{isa}"


def fused_kernels(isa: str | None = None) -> ModuleType | None:
    """Kernels that compute several nodes; None where the instruction set has none."""
    name_of = f"aclnn._fused_kernels_{isa or name()}"
    return _module(name_of) if _exists(name_of) else None


@cache
def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


_module = cache(importlib.import_module)  # plans of many nodes ask for each of them
