"""Kernels of C: the memory that their states lie in, and what schedules know of them."""

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from dataclasses import replace

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel


cdef class State:
    """Memory of a kernel's state, all zeros at first."""

    def __cinit__(self, size_t size):
        self.data = calloc(1, max(<size_t>1, size))
        if self.data == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.data)


cdef object refer_to(str name, tuple inputs, tuple outputs, call_kernel fn, const void *state,
                     size_t state_size, double cost, Py_ssize_t parts, Py_ssize_t scratch,
                     dict failures):
    """The opaque kernel of a function, with a copy of its state.

    `parts`: into how many chunks the work may be cut; `failures`: see `Kernel`.
    """
    cdef State kept = State(state_size)
    if state_size:
        memcpy(kept.data, state, state_size)

    def chunks(threads):
        return max(1, min(parts, threads))

    return Kernel(
        fn=<size_t>fn,
        state=<size_t>kept.data,
        name=f"{name}[{','.join(inputs)}->{','.join(outputs)}]",
        itemsizes=tuple(map(ITEM_SIZES.__getitem__, (*inputs, *outputs))),
        cost=cost,
        owner=kept,
        scratch=scratch,
        chunks=chunks,
        failures=failures,
    )


cdef object checked_by(object kernel, call_kernel check, tuple places):
    """The kernel with a check of operands, by their places, that comes before all writing.

    Without places there is nothing to check.
    """
    return kernel if not places else replace(kernel, check=<size_t>check, checked=places)
