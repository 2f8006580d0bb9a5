"""Calls of one plan on PyTorch's tensors, whose descriptions are known before the first of them.

A compiled graph calls a part with tensors of the same description each time. Its plan need not be
looked up then, and results need neither nesting nor a view of their own for their layout: a call
reads the tensors, compares them with the plan, allocates results and runs.
"""

from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from aclnn.acl._tensor_spec cimport operand_t
from aclnn.compiler._request cimport MANY
from aclnn.compiler._settings cimport settings_word
from aclnn.execution._executor cimport aclOpExecutor
from aclnn.execution._operand cimport describe_output, fits
from aclnn.execution._tensors cimport makes_tensors, new_tensor, read_tensor, tell_written


cdef class PreparedCall:
    """Calls of an executor on tensors that it is not bound to.

    Parameters
    ----------
    executor : aclOpExecutor
        Of a compiled function, which returns one array or a flat tuple; arguments that it writes
        are not among them.
    n_inputs : int
        How many tensors a call gets; what the function closes over stays bound.
    orders : sequence of tuple of int or None
        For each result its dimensions in the order of the plan's; None where they are in order.
    is_one : bool
        Whether a call gives one result rather than a tuple.
    """

    cdef aclOpExecutor executor
    cdef int n_inputs
    cdef tuple orders
    cdef bint is_one
    cdef long long settings  # that the plan was made for

    def __init__(self, aclOpExecutor executor not None, int n_inputs, orders not None, bint is_one):
        self.executor, self.n_inputs = executor, n_inputs
        self.orders, self.is_one = tuple(orders), is_one
        self.settings = settings_word()

    def run(self, tuple tensors not None):
        """The results for these tensors; NotImplemented for what the plan is not for."""
        cdef char *addresses[MANY]
        cdef operand_t found
        cdef aclOpExecutor executor = self.executor
        cdef int index, position, n_planned = executor.request.n_inputs
        cdef tuple ties = executor.arrays.ties
        cdef list results
        if settings_word() != self.settings or PyTuple_GET_SIZE(tensors) != self.n_inputs:
            return NotImplemented
        for index in range(self.n_inputs):
            if not read_tensor(<object>PyTuple_GET_ITEM(tensors, index), &found):
                return NotImplemented
            if not fits(&found, &executor.request.operands[index]):
                return NotImplemented
            addresses[index] = found.data
        for index in range(self.n_inputs, n_planned):
            addresses[index] = executor.request.operands[index].data
        if self.is_one and ties is None:
            made = self.new_result(0, &addresses[n_planned])
            executor.execute(addresses, NULL)
            return made
        results = []
        for position in range(executor.request.n_outputs):
            if ties is not None and ties[position] >= 0:
                addresses[n_planned + position] = addresses[<int>ties[position]]
            else:
                results.append(self.new_result(position, &addresses[n_planned + position]))
        executor.execute(addresses, NULL)
        if ties is not None:
            for position in range(executor.request.n_outputs):
                if ties[position] >= 0:
                    tell_written(<object>PyTuple_GET_ITEM(tensors, <int>ties[position]))
        return results[0] if self.is_one else tuple(results)

    cdef object new_result(self, int index, char **address):
        """A tensor for a result, whose address `address` gets."""
        cdef operand_t planned, made
        cdef tuple order = self.orders[index]
        cdef int axis, own
        describe_output(self.executor.planned, index, &planned)
        made = planned
        if order is not None:
            for axis in range(planned.ndim):
                own = order[axis]
                made.shape[own], made.strides[own] = planned.shape[axis], planned.strides[axis]
        tensor = new_tensor(&made)
        address[0] = made.data
        return tensor


def prepares(library):
    """Whether tensors of a library are made without its Python: PyTorch's, from 2.10 on."""
    return makes_tensors(library)
