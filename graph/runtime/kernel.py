"""Kernels as schedules know them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

ELEMENT_COST = 0.3  # nanoseconds, of kernels that do not say what an element costs


def one_call(threads: int) -> int:
    """The chunks of a kernel whose work is not cut.

    Parameters
    ----------
    threads : int
        The threads that take part.

    Returns
    -------
    int

    Examples
    --------
    >>> one_call(8)
    1
    """
    return 1


@dataclass(frozen=True, slots=True)
class Packing:
    """The packed layout in which a kernel takes one of its operands.

    Attributes
    ----------
    place : int
        Of the operand.
    nbytes : int
        Bytes of the form.
    form : hashable
        What distinguishes forms of one dtype.
    kernel : callable
        Makes the kernel that takes the form instead of the operand.
    pack : callable
        Makes the form: takes the address of the operand, and that of so many bytes, a multiple of 64.

    Examples
    --------
    >>> taker = Kernel(fn=0, name="matmul packed")
    >>> Packing(1, 4096, ("panels", 64), lambda: taker, lambda source, target: None).nbytes
    4096
    """

    place: int
    nbytes: int
    form: Hashable
    kernel: Callable[[], Kernel]
    pack: Callable[[int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A kernel made for certain dtypes: all that planner, schedule and scheduler know of it.

    Attributes
    ----------
    fn : int
        Address of a `tile_kernel`, or of a `call_kernel` for an opaque node, see ``kernel_abi.h``.
    state : int
        Address of what `fn` is called with.
    name : str
    itemsizes : tuple of int
        Bytes of an element of every operand, inputs first; empty where the kernel does not say.
    cost : float
        Nanoseconds that an element takes, roughly; of an opaque kernel, the whole call.
    owner : object
        Keeps the objects at the addresses alive.
    prepare : int
        Address of a `prepare_kernel`; 0 where the kernel takes the node's numbers as they are.
    params_size : int
        Bytes that `prepare` fills.
    scratch : int
        Bytes that each thread lends an opaque kernel.
    tile_scratch : callable, optional
        Gives the bytes that each thread lends a kernel for a tile, from its rows and columns; None where
        these are 0.
    chunks : callable
        Returns the number of calls of an opaque kernel for a number of threads.
    failures : mapping of int to str
        A sentence for each code that the kernel gives where it fails, in which ``{detail}`` stands for
        the number that it gives with it.
    join : callable, optional
        Makes one kernel of several in a loop, see `calls_of`.
    extent : tuple of int
        Of a matrix product m, k and n, before them its batch; else empty.
    flops : int
        Multiplications and additions; 0: the kernel does not say.
    check : int
        Address of a `call_kernel` that finds the inputs that an opaque kernel refuses, and writes nothing; 0: none.
    checked : tuple of int
        Places of the operands that it looks at.
    packing : Packing, optional
        How it takes an operand that does not change between runs.
    form : object
        What it computes, for `join` and for people; whoever makes the kernel says what that is.

    Examples
    --------
    >>> kernel = Kernel(fn=0, name="gather", failures={1: "an index is {detail}"})
    >>> kernel, kernel.chunks(4), kernel.failure(1, -7), kernel.failure(2, 0)
    (<Kernel gather>, 1, 'an index is -7', None)
    """

    fn: int
    state: int = 0
    name: str = ""
    itemsizes: tuple[int, ...] = ()
    cost: float = ELEMENT_COST
    owner: object = None
    prepare: int = 0
    params_size: int = 0
    scratch: int = 0
    tile_scratch: Callable[[int, int], int] | None = None
    chunks: Callable[[int], int] = one_call
    failures: Mapping[int, str] = field(default_factory=dict)
    join: Callable[..., Any] | None = None
    extent: tuple[int, ...] = ()
    flops: int = 0
    check: int = 0
    checked: tuple[int, ...] = ()
    packing: Packing | None = None
    form: Any = None

    def scratch_bytes(self, rows: int, cols: int) -> int:
        """Bytes that each thread lends it for a tile of this size.

        Parameters
        ----------
        rows, cols : int

        Returns
        -------
        int
        """
        return 0 if self.tile_scratch is None else self.tile_scratch(rows, cols)

    def failure(self, code: int, detail: int) -> str | None:
        """Why a run stopped in this kernel, or None where it does not know the code.

        Parameters
        ----------
        code, detail : int
            The result of the kernel.

        Returns
        -------
        str or None
        """
        found = self.failures.get(code)
        return None if found is None else found.format(detail=detail)

    def __repr__(self) -> str:
        return f"<Kernel {self.name}>"
