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


def kernels(isa: str | None = None) -> ModuleType:
    """The kernels of an instruction set, by default of the one in use."""
    return _module(f"aclnn._kernels_{isa or name()}")


def row_kernels(isa: str | None = None) -> ModuleType:
    """The row-wise kernels of an instruction set, by default of the one in use."""
    return _module(f"aclnn._row_kernels_{isa or name()}")


def quantized_kernels(isa: str | None = None) -> ModuleType:
    """The kernels of quantisation of an instruction set, by default of the one in use."""
    return _module(f"aclnn._quantized_kernels_{isa or name()}")


def sorting_kernels(isa: str | None = None) -> ModuleType:
    """The kernels of sorts of an instruction set, by default of the one in use."""
    return _module(f"aclnn._sorting_kernels_{isa or name()}")


def image_kernels(isa: str | None = None) -> ModuleType:
    """The kernels of images of an instruction set, by default of the one in use."""
    return _module(f"aclnn._image_kernels_{isa or name()}")


def attention_kernels(isa: str | None = None) -> ModuleType:
    """The kernel of attention of an instruction set, by default of the one in use."""
    return _module(f"aclnn._attention_kernels_{isa or name()}")


def product_kernels(isa: str | None = None) -> ModuleType:
    """The kernels of matrix products of an instruction set, by default of the one in use."""
    return _module(f"aclnn._product_kernels_{isa or name()}")


def convolution_kernels(isa: str | None = None) -> ModuleType:
    """The kernels of convolutions of an instruction set, by default of the one in use."""
    return _module(f"aclnn._convolution_kernels_{isa or name()}")


def simd_kernels(isa: str | None = None) -> ModuleType:
    """The fast paths of an instruction set that has vectors."""
    return _module(f"aclnn._simd_kernels_{isa or name()}")


def fused_kernels(isa: str | None = None) -> ModuleType | None:
    """Kernels that compute several nodes; None where the instruction set has none."""
    name_of = f"aclnn._fused_kernels_{isa or name()}"
    return _module(name_of) if _exists(name_of) else None


@cache
def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


_module = cache(importlib.import_module)  # plans of many nodes ask for each of them
