"""Kernels that get their operands as a whole, such as gathers and running sums.

Operands may have any strides; all have one rank. What has several lines along an axis, or several
rows, is cut into chunks of them. Bodies are in `aclnn/kernels/opaque/`, records next to them.
"""

from libc.stddef cimport size_t
from libc.string cimport memset

from aclnn.kernels._kernel_reference cimport checked_by, refer_to
from aclnn.kernels.opaque.gather cimport check_gather
from aclnn.kernels.opaque.walk cimport opaque_state
from aclnn.kernels.rows.running cimport lines_fn
from aclnn.graph.runtime.kernel_abi cimport call_kernel

import math
from typing import NamedTuple

from aclnn import isa
from aclnn.acl.dtypes import ITEM_SIZES

FLOATING = ("float32", "float64", "float16", "bfloat16")


class OpaqueFacts(NamedTuple):
    """Facts about a kernel with the common state, from its record (`aclnn/kernels/record.py`).

    Attributes
    ----------
    address : int
        Of a `call_kernel`.
    cost : float
        Nanoseconds that an element takes, roughly.
    moves : bool
        Elements only move; else they are converted, and computed with.
    indices : int
        Which operand has them; -1: none.
    chunks, loops : str
    failures : tuple of (int, str)
    """

    address: int
    cost: float
    moves: bool
    indices: int
    chunks: str
    loops: str
    failures: tuple


# Made of records: `reader` and `writer`, which give what converts elements of a dtype to the one
# that is computed in, and back; FACTS and MAKERS by kernel, the latter as "module:function"; and
# functions that make kernels of nodes with factories of the instruction set in use.
include "opaque_facts.pxi"


cdef object size_of(tuple shape):
    """The number of elements of a shape."""
    return math.prod(shape)


cdef object lines_of(tuple shape, int axis):
    """The number of lines along an axis."""
    return math.prod(shape) // max(1, shape[axis])


cdef dict places_of(tuple operands, tuple present, Py_ssize_t count):
    """Places of the operands that there are, `count` in all.

    Names of those that may be absent end in "?"; one whose name ends in "*" has all places that
    others leave.
    """
    cdef Py_ssize_t place = 0
    found = {}
    for name in operands:
        if not name.endswith("?"):
            found[name.rstrip("*")] = place
        elif name[:-1] in present:
            found[name[:-1]] = place
        else:
            continue
        place += 1
        if name.endswith("*"):
            place = count - after(operands, name, present)
    return found


cdef Py_ssize_t after(tuple operands, str last, tuple present):
    """Number of operands that follow the `last` and are there."""
    cdef Py_ssize_t count = 0
    for name in operands[operands.index(last) + 1:]:
        count += not name.endswith("?") or name[:-1] in present
    return count


cdef list strides_of(tuple views):
    """Strides of operands in bytes."""
    found = []
    for view in views:
        steps = ()
        for stride in view.strides:
            steps += (stride * view.dtype.itemsize,)
        found.append(steps)
    return found


def opaque_kernel(attr, tuple inputs not None, tuple outputs not None, tuple views not None,
                  steps=None):
    """The kernel with the common state of a node.

    Parameters
    ----------
    attr : callable
        Gives an attribute of the node: ``kernel``, one of `FACTS`; ``axis``, along which it works,
        by default the last; ``diagonal``; ``wraps``, whether negative indices count from the end.
    inputs, outputs : tuple of str
        Dtypes of operands.
    views : tuple of Value
        The inputs, then the result.
    steps : None
        This kernel takes no steps on its results.

    Returns
    -------
    Kernel
    """
    cdef opaque_state state
    name = attr("kernel")
    if name not in FACTS:
        known = ", ".join(FACTS)
        raise ValueError(f"no opaque kernel is called {name!r}, they are {known}")
    facts = FACTS[name]
    source, result = views[0].shape, views[len(inputs)].shape
    axis = attr("axis", -1) % len(result)
    memset(&state, 0, sizeof(opaque_state))
    state.axis, state.length, state.diagonal = axis, source[axis], attr("diagonal", 0)
    state.size = ITEM_SIZES[outputs[0]]
    state.wraps = attr("wraps", False)
    if facts.loops and inputs[0] == outputs[0]:
        loops = getattr(isa.row_kernels(), facts.loops)(outputs[0])
        state.behind, state.across = <lines_fn><size_t>loops[0], <lines_fn><size_t>loops[1]
    if facts.indices >= 0:
        state.index_size = ITEM_SIZES[inputs[facts.indices]]
    if not facts.moves:
        state.is_whole = inputs[0] not in FLOATING
        state.load = reader(inputs[0], "int64" if state.is_whole else "float64")
        state.store = writer(outputs[0], "float64" if outputs[0] in FLOATING else "int64")
    failures = {}
    for code, text in facts.failures:
        first = str(-state.length if state.wraps else 0)
        failures[code] = text.replace("{first}", first).replace("{last}", str(state.length - 1))
    chunks = 1
    if facts.chunks == "lines":
        chunks = lines_of(result, axis)
    elif facts.chunks == "rows":
        chunks = size_of(result[:-1])
    elif facts.chunks == "outer":  # one index stands for many elements along the axis
        chunks = size_of(result[:axis + 1])
    elements = size_of(result if facts.indices >= 0 else source)
    made = refer_to(name, inputs, outputs, <call_kernel><size_t>facts.address, &state,
                    sizeof(opaque_state), facts.cost * elements, chunks, 0, failures)
    return checked_by(made, <call_kernel>check_gather, (1,)) if facts.indices == 1 else made
