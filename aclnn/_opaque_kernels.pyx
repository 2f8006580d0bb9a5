"""Kernels that get their operands as a whole, such as gathers and running sums.

Operands may have any strides; all have one rank. What has several lines along an axis, or several
rows, is cut into chunks of them. Bodies are in `aclnn/kernels/opaque/`, records next to them.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.string cimport memset

from aclnn._kernel_reference cimport checked_by, refer_to
from aclnn.kernels.element cimport (
    bfloat16_t,
    bool_t,
    half_t,
    load,
    load_fn,
    store,
    store_fn,
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
)
from aclnn.kernels.opaque.gather cimport check_gather
from aclnn.kernels.opaque.walk cimport opaque_state
from aclnn.kernels.rows.running cimport lines_fn
from graph.runtime.kernel_abi cimport call_kernel

from typing import NamedTuple

from aclnn.acl.dtypes import ITEM_SIZES
FLOATING = ("float32", "float64", "float16", "bfloat16")


class OpaqueFacts(NamedTuple):
    """Facts about a kernel from its record (`aclnn/kernels/record.py`), and where its body is.

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
    chunks, maker, loops : str
    failures : tuple of (int, str)
    """

    address: int
    cost: float
    moves: bool
    indices: int
    chunks: str
    maker: str
    loops: str
    failures: tuple


# FACTS by kernel: made of the records.
include "opaque_facts.pxi"


cdef load_fn loader(str dtype) except NULL:
    """Loader that converts elements to int64, or floating ones to double."""
    if dtype == "float32":
        return <load_fn>load[unaligned_float, unaligned_double]
    if dtype == "float64":
        return <load_fn>load[unaligned_double, unaligned_double]
    if dtype == "float16":
        return <load_fn>load[half_t, unaligned_double]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, unaligned_double]
    if dtype == "int8":
        return <load_fn>load[int8_t, unaligned_int64]
    if dtype == "uint8":
        return <load_fn>load[uint8_t, unaligned_int64]
    if dtype == "int16":
        return <load_fn>load[unaligned_int16, unaligned_int64]
    if dtype == "int32":
        return <load_fn>load[unaligned_int32, unaligned_int64]
    if dtype == "int64":
        return <load_fn>load[unaligned_int64, unaligned_int64]
    if dtype == "bool":
        return <load_fn>load[bool_t, unaligned_int64]
    raise ValueError(f"no kernel along an axis computes in {dtype}")


cdef store_fn storer(str dtype) except NULL:
    if dtype == "float32":
        return <store_fn>store[unaligned_double, unaligned_float]
    if dtype == "float64":
        return <store_fn>store[unaligned_double, unaligned_double]
    if dtype == "float16":
        return <store_fn>store[unaligned_double, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[unaligned_double, bfloat16_t]
    if dtype == "int8":
        return <store_fn>store[unaligned_int64, int8_t]
    if dtype == "uint8":
        return <store_fn>store[unaligned_int64, uint8_t]
    if dtype == "int16":
        return <store_fn>store[unaligned_int64, unaligned_int16]
    if dtype == "int32":
        return <store_fn>store[unaligned_int64, unaligned_int32]
    if dtype == "int64":
        return <store_fn>store[unaligned_int64, unaligned_int64]
    if dtype == "bool":
        return <store_fn>store[unaligned_int64, bool_t]
    raise ValueError(f"no kernel along an axis computes in {dtype}")


def opaque_kernel(str name not None, tuple in_dtypes not None, str out_dtype not None, *,
                  Py_ssize_t elements, Py_ssize_t lines, int axis=0, int64_t length=0,
                  int64_t diagonal=0, bint wraps=False, tuple loops=(0, 0)):
    """The kernel of that name, for these dtypes.

    Parameters
    ----------
    name : str
        One of `FACTS`.
    in_dtypes : tuple of str
        Of the inputs.
    out_dtype : str
    elements : int
        How many are read or written, for its cost.
    lines : int
        Into how many chunks it may be cut.
    axis : int
        Along which it works.
    length : int
        Of the first input along that axis: indices are less.
    diagonal : int
    wraps : bool
        Whether negative indices count from the end.
    loops : tuple of int
        Addresses of loops over lines, if input and output have one dtype; 0: none.

    Returns
    -------
    Kernel
    """
    cdef opaque_state state
    cdef size_t address
    if name not in FACTS or not FACTS[name].address:
        known = ", ".join(FACTS)
        raise ValueError(f"no opaque kernel is called {name!r}, they are {known}")
    facts = FACTS[name]
    address = facts.address
    memset(&state, 0, sizeof(opaque_state))
    state.axis, state.length, state.diagonal = axis, length, diagonal
    state.size = ITEM_SIZES[out_dtype]
    state.wraps = wraps
    state.behind, state.across = <lines_fn><size_t>loops[0], <lines_fn><size_t>loops[1]
    if facts.indices >= 0:
        state.index_size = ITEM_SIZES[in_dtypes[facts.indices]]
    if not facts.moves:
        state.load, state.store = loader(in_dtypes[0]), storer(out_dtype)
        state.is_whole = in_dtypes[0] not in FLOATING
    failures = {}
    for code, text in facts.failures:
        first = str(-length if wraps else 0)
        failures[code] = text.replace("{first}", first).replace("{last}", str(length - 1))
    made = refer_to(name, in_dtypes, (out_dtype,), <call_kernel>address, &state,
                    sizeof(opaque_state), facts.cost * elements, lines, 0, failures)
    return checked_by(made, <call_kernel>check_gather, (1,)) if facts.indices == 1 else made
