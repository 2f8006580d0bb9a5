"""References to opaque kernels: what schedules know of one that was made for certain dtypes."""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from aclnn.acl import dtypes

ITEM_SIZES = {dtype.name: dtype.itemsize for dtype in dtypes.NUMPY.values()}


cdef class KernelReference:
    """A kernel made for certain dtypes; owns the state that its address stands for.

    Attributes
    ----------
    name : str
    itemsizes : tuple of int
        Of the elements of each operand, inputs first.
    fn : int
        Address of a `call_kernel`, see ``kernel_abi.h``.
    cost : float
        Nanoseconds that the whole call takes, about.
    scratch : int
        Bytes of memory that each thread needs for itself.
    """

    prepare = 0
    params_size = 0

    def __init__(self):
        raise TypeError("kernels are made by the functions of their family")

    def __dealloc__(self):
        free(self.kept)

    @property
    def state(self):
        return <size_t>self.kept

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads.

        Parameters
        ----------
        threads : int

        Returns
        -------
        int
        """
        return max(1, min(self.parts, threads))

    def failure(self, code, detail):
        """Why a run stopped in this kernel, or None where it does not know the code.

        Parameters
        ----------
        code, detail : int
            What the kernel gave.

        Returns
        -------
        str or None
        """
        found = self.failures.get(code)
        return None if found is None else found.format(detail=detail)

    def __repr__(self):
        return f"<KernelReference {self.name}>"


cdef KernelReference refer_to(str name, tuple inputs, tuple outputs, call_kernel fn,
                              const void *state, size_t state_size, double cost, Py_ssize_t parts,
                              Py_ssize_t scratch, dict failures):
    """The reference to a kernel, with a copy of its state.

    `parts`: into how many chunks the work may be cut; `failures`: a sentence for each code that
    the kernel gives where it fails, in which ``{detail}`` stands for the number that it gives
    beside it.
    """
    cdef KernelReference made = KernelReference.__new__(KernelReference)
    made.name = f"{name}[{','.join(inputs)}->{','.join(outputs)}]"
    made.itemsizes = tuple(map(ITEM_SIZES.__getitem__, (*inputs, *outputs)))
    made.fn, made.cost, made.parts, made.scratch = <size_t>fn, cost, parts, scratch
    made.failures = failures
    made.kept = malloc(max(<size_t>1, state_size))
    if made.kept == NULL:
        raise MemoryError
    if state_size:
        memcpy(made.kept, state, state_size)
    return made
