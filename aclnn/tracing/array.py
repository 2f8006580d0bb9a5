"""Traced arrays: they stand for the arguments of a function and record what it does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._buffer import Unreadable
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, did_you_mean, shown
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.api.options import as_dtype, as_ints
from aclnn.graph import is_contiguous
from aclnn.graph.strides import broadcast_strides, reshaped_strides
from aclnn.operators.checks import TensorSpec, broadcast_shapes
from aclnn.tracing import numpy_forms, numpy_functions
from aclnn.tracing.indexing import pieces_of, positions_in
from aclnn.tracing.nesting import is_array
from aclnn.tracing.recording import Memory, Path, Trace, is_number


def _refused(what: str) -> AclnnError:
    return invalid(
        f"{what} a traced array, which has a shape and a dtype but no elements yet; aclnn.call "
        "embeds what needs them as a step of the plan"
    )


def _binary(function: np.ufunc, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: TracedArray, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        pair = (other, self) if swapped else (self, other)
        return numpy_forms.ufunc(self.trace, function, pair)

    return method


def _in_place(function: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: TracedArray, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return numpy_forms.ufunc(self.trace, function, (self, other), out=self)

    return method


def _three(function: np.ufunc) -> tuple[Callable[[Any, Any], Any], ...]:
    """An operator, the other way around, and in place."""
    return _binary(function), _binary(function, swapped=True), _in_place(function)


def _is_operand(value: Any) -> bool:
    if isinstance(value, list | tuple | str | bytes) or value is None:
        raise wrong_kind(f"a traced array and {shown(value)}: convert with np.asarray first")
    return is_number(value) or is_array(value)


# The strides of a view, from the shape and strides of what it is of, and how it is made.
_STEPS: dict[str, Callable[[Any, Any, Any], tuple[int, ...]]] = {
    "sliced": lambda _, steps, how: tuple([a * b for a, (_, b, _) in zip(steps, how, strict=True)]),
    "transposed": lambda _, steps, how: tuple([steps[axis] for axis in how]),
    "expanded": broadcast_strides,
    "reshaped": lambda shape, steps, how: reshaped_strides(shape, steps, how) or (0,) * len(how),
}

# Python's and NumPy's own exceptions, which loops and `hasattr` wait for.
_of_callers = boundary(kind=(AclnnError, AttributeError, IndexError, TypeError))


class TracedArray(Unreadable):
    """An array of a traced function: memory, and a way to see it.

    Attributes
    ----------
    shape, strides : tuple of int
        As NumPy's; strides count bytes.
    dtype : numpy.dtype
    """

    __slots__ = ("_latest", "_memory", "_path", "_steps", "_version")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        memory: Memory,
        path: Path = (),
        value: int | None = None,
        steps: tuple[int, ...] | None = None,
    ):
        self._memory = memory
        self._path = path
        spec = memory.trace.recording.spec(memory.like)
        self._steps = spec.strides if steps is None else steps  # those of NumPy, in elements
        self._latest = memory.value if value is None else value
        self._version = memory.version

    @property
    def trace(self) -> Trace:
        return self._memory.trace

    @property
    def place(self) -> int | None:
        """The place among the inputs of the trace of what it shows, or None."""
        return self._memory.place

    @property
    def value(self) -> int:
        """The value in the recording, as it is now."""
        if self._version != self._memory.version:
            self._latest = self._memory.view(self._path)
            self._version = self._memory.version
        return self._latest

    def value_in(self, trace: Trace) -> int:
        if trace is not self.trace:
            raise invalid("a traced array is used after the function that it belongs to ended")
        return self.value

    @property
    def spec(self) -> TensorSpec:
        return self.trace.recording.spec(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype:
        return dtypes.NUMPY[self.spec.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        item = self.dtype.itemsize
        return tuple([step * item for step in self._steps])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.spec.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __repr__(self) -> str:
        return f"<traced array {self.dtype}{list(self.shape)}>"

    # --- What records calls -------------------------------------------------------------------------

    def __aclnn_function__(
        self, handle: Any, arguments: Sequence[Any], out: Any, numbers: Any, switches: Any
    ) -> Any:
        return self.trace.call(handle, arguments, out, numbers, switches)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.add and method == "reduce" and options.get("out") is None:
            options.pop("out", None)
            return numpy_functions.array_function(self, np.sum, inputs, {"axis": 0} | options)
        return numpy_forms.array_ufunc(self.trace, ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return numpy_functions.array_function(self, function, args, options)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), options: Any = None
    ) -> NoReturn:
        """Handle one of PyTorch's functions that is called with a traced array."""
        name = getattr(function, "__name__", type(function).__name__)
        own = f"aclnn.{name} records it, " if name in HANDLES_BY_NAME else ""
        raise invalid(
            f"{name} of PyTorch cannot be recorded: {own}torch.compile(function, backend='aclnn') "
            "compiles functions of PyTorch's"
        )

    __add__, __radd__, __iadd__ = _three(np.add)
    __sub__, __rsub__, __isub__ = _three(np.subtract)
    __mul__, __rmul__, __imul__ = _three(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _three(np.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _three(np.floor_divide)
    __mod__, __rmod__, __imod__ = _three(np.remainder)
    __matmul__, __rmatmul__, __imatmul__ = _three(np.matmul)
    __and__, __rand__, __iand__ = _three(np.bitwise_and)
    __or__, __ror__, __ior__ = _three(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _three(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _three(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _three(np.right_shift)
    __eq__, __ne__ = _binary(np.equal), _binary(np.not_equal)
    __lt__, __le__ = _binary(np.less), _binary(np.less_equal)
    __gt__, __ge__ = _binary(np.greater), _binary(np.greater_equal)
    __rpow__ = _binary(np.power, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return numpy_forms.power(self.trace, self, other) if _is_operand(other) else NotImplemented

    def __ipow__(self, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return numpy_forms.power(self.trace, self, other, out=self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return numpy_forms.ufunc(self.trace, np.negative, (self,))

    def __pos__(self) -> TracedArray:
        return numpy_forms.ufunc(self.trace, np.positive, (self,))

    def __abs__(self) -> Any:
        return numpy_forms.ufunc(self.trace, np.absolute, (self,))

    def __invert__(self) -> Any:
        return numpy_forms.ufunc(self.trace, np.invert, (self,))

    # --- Views --------------------------------------------------------------------------------------

    @_of_callers
    def __getitem__(self, index: Any) -> TracedArray:
        if (found := positions_in(index, self.ndim)) is not None:
            basic, axis, positions = found
            return numpy_functions.taken(self[basic], positions, axis)
        pieces, left = pieces_of(index, self.shape)
        whole = all(p == (0, 1, size) for p, size in zip(pieces, self.shape, strict=True))
        view = self if whole else self._viewed("sliced", pieces)
        return view if view.shape == left and view is not self else view._viewed("reshaped", left)

    @_of_callers
    def __setitem__(self, index: Any, value: Any) -> None:
        if (found := positions_in(index, self.ndim)) is None:
            self[index].assign(value)
            return
        basic, axis, positions = found
        numpy_functions.put_at(self[basic], axis, positions, value)

    @_of_callers
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @_of_callers
    def __iter__(self) -> Iterator[TracedArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[index] for index in range(len(self))])

    @property
    def T(self) -> TracedArray:  # noqa: N802
        return self.transpose()

    @property
    def mT(self) -> TracedArray:  # noqa: N802
        return self.swapaxes(-1, -2)

    def transpose(self, *axes: Any) -> TracedArray:
        """A view with the dimensions in another order, by default reversed."""
        if len(axes) == 1 and (axes[0] is None or as_int(axes[0]) is None):
            axes = () if axes[0] is None else tuple(axes[0])
        order = [self._axis(axis) for axis in axes] or [*reversed(range(self.ndim))]
        if sorted(order) != [*range(self.ndim)]:
            raise invalid(f"axes are {shown(axes)}, must have every dimension of {self} once")
        return self._viewed("transposed", tuple(order))

    def swapaxes(self, first: Any, second: Any) -> TracedArray:
        """A view with two dimensions exchanged."""
        order = [*range(self.ndim)]
        a, b = self._axis(first), self._axis(second)
        order[a], order[b] = order[b], order[a]
        return self._viewed("transposed", tuple(order))

    def reshape(self, *shape: Any, order: str = "C") -> TracedArray:
        """The elements in another shape: a view where strides allow it, else a copy."""
        if order != "C":
            raise invalid(f"order is {shown(order)}, must be 'C'")
        value = shape[0] if len(shape) == 1 else shape
        sizes = self._whole_shape(as_ints("shape", value))
        if reshaped_strides(self.shape, self._steps, sizes) is None:
            return self.copy()._viewed("reshaped", sizes)
        return self._viewed("reshaped", sizes)

    def ravel(self) -> TracedArray:
        """All elements along one dimension: a view where they lie so already, else a copy."""
        return self.reshape(-1) if self.is_dense() else self.flatten()

    def flatten(self) -> TracedArray:
        """A copy with all elements along one dimension."""
        return self.copy().reshape(-1)

    def squeeze(self, axis: Any = None) -> TracedArray:
        """A view without dimensions of size 1, by default all of them."""
        shape = self.shape
        axes = [n for n, size in enumerate(shape) if size == 1]
        if axis is not None:
            axes = [self._axis(one) for one in as_ints("axis", axis)]
        for one in axes:
            if shape[one] != 1:
                raise invalid(f"axis {one} of {self} has size {shape[one]}, not 1")
        left = tuple([size for n, size in enumerate(shape) if n not in axes])
        return self._viewed("reshaped", left)

    def broadcast_to(self, shape: Any) -> TracedArray:
        """A view repeated to a shape, by NumPy's rule."""
        sizes = as_ints("shape", shape)
        if broadcast_shapes(self.shape, sizes) != sizes:
            raise invalid(f"{self} does not broadcast to shape {sizes}")
        return self._viewed("expanded", sizes)

    def _viewed(self, make: str, how: Any) -> TracedArray:
        value = getattr(self.trace.recording, make)(self.value, how)
        steps = _STEPS[make](self.shape, self._steps, how)
        return TracedArray(self._memory, (*self._path, (make, how)), value, steps)

    def shown_rows(self) -> tuple[TracedArray, int] | None:
        """The memory that a view shows, flat, and the place of the view's first element there.

        None for what is all of its memory, for memory that is not dense, and for repeated elements.
        """
        spec = self.trace.recording.spec(self._memory.like)
        repeats = any(make == "expanded" for make, _ in self._path)
        if not self._path or repeats or not is_contiguous(spec.shape, spec.strides):
            return None
        whole = TracedArray(self._memory)
        offset, shape, steps = 0, whole.shape, whole._steps
        for make, how in self._path:
            if make == "sliced":
                offset += sum([start * n for (start, _, _), n in zip(how, steps, strict=True)])
                after = tuple([count for _, _, count in how])
            else:
                after = tuple([shape[n] for n in how]) if make == "transposed" else tuple(how)
            shape, steps = after, _STEPS[make](shape, steps, how)
        if (shape, steps) == (whole.shape, whole._steps):
            return None
        return whole._viewed("reshaped", (whole.size,)), offset

    def _axis(self, axis: Any) -> int:
        at = as_int(axis)
        if at is None or not -self.ndim <= at < self.ndim:
            raise invalid(f"axis is {shown(axis)}, must be from {-self.ndim} to {self.ndim - 1}")
        return at % self.ndim

    def _whole_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape with the size that -1 stands for."""
        known = int(np.prod([size for size in shape if size != -1], dtype=np.int64))
        if shape.count(-1) == 1 and known and self.size % known == 0:
            shape = tuple([self.size // known if size == -1 else size for size in shape])
        if min(shape, default=0) < 0 or int(np.prod(shape, dtype=np.int64)) != self.size:
            raise invalid(f"cannot reshape {self} into shape {shape}")
        return shape

    # --- Copies -------------------------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> TracedArray:
        """The elements as another dtype."""
        target = as_dtype("dtype", dtype)
        if not copy and target == self.spec.dtype:
            return self
        return self.trace.made(self.trace.recording.cast(self.value, target))

    def copy(self) -> TracedArray:
        """The elements in row-major order, in memory of its own."""
        return self.trace.made(self.trace.recording.copy(self.value))

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Sum over dimensions, by default all."""
        return numpy_functions.reduce_sum(self, axis, dtype, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Mean over dimensions, by default all."""
        return numpy_functions.reduce_mean(self, axis, dtype, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Largest element along dimensions, by default of all."""
        return numpy_functions.reduce_max(self, axis, keepdims)

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Variance over dimensions, by default all."""
        return numpy_functions.reduce_var(self, axis, ddof, keepdims)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """The elements, those beyond limits replaced by these."""
        return np.clip(self, min, max)

    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Standard deviation over dimensions, by default all."""
        return np.std(self, axis, ddof=ddof, keepdims=keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Sums of all elements up to each, along a dimension or of all in a row."""
        return numpy_functions.cumulated(self, axis, dtype)

    def argmax(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """The place of the largest element, along a dimension or of all in a row."""
        return numpy_functions.place_of_max(self, axis, keepdims)

    def take(self, indices: Any, axis: Any = None) -> Any:
        """Slices along a dimension, or elements of all in a row, by indices."""
        return numpy_functions.taken(self, indices, axis)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Each slice along a dimension, or each element, several times."""
        return numpy_functions.repeated(self, repeats, axis)

    def dot(self, other: Any) -> Any:
        """The product of numbers, vectors or matrices."""
        return numpy_functions.dotted(self.trace, self, other)

    def fill(self, value: Any) -> None:
        """Hold a number everywhere from now on."""
        self.assign(value)

    def write(self, value: int) -> None:
        """Hold a value of this shape and dtype from now on."""
        self._memory.write(self._path, value)

    def assign(self, argument: Any) -> None:
        """Hold other elements from now on, cast and broadcast."""
        trace, recording = self.trace, self.trace.recording
        source = (
            trace.number(argument, self.dtype) if is_number(argument) else trace.taken(argument)
        )
        while source.ndim > self.ndim and source.shape[0] == 1:  # which NumPy drops
            source = source[0]
        value, spec = source.value_in(trace), self.spec
        if recording.spec(value).dtype != spec.dtype:
            value = recording.cast(value, spec.dtype)
        shape = recording.spec(value).shape
        if shape != spec.shape:
            if broadcast_shapes(shape, spec.shape) != spec.shape:
                raise invalid(f"shape {shape} does not broadcast to {spec.shape}")
            value = recording.expanded(value, spec.shape)
        self.write(recording.copy(value))

    def is_dense(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return is_contiguous(self.shape, self._steps)

    # --- What there is no answer to -----------------------------------------------------------------

    def __bool__(self) -> bool:
        self.__aclnn_read__()
        raise _refused("the truth value was requested from")

    def __float__(self) -> float:
        raise _refused("a number was requested from")

    def __int__(self) -> int:
        self.__aclnn_read__()
        raise _refused("a number was requested from")

    def __complex__(self) -> complex:
        raise _refused("a number was requested from")

    def __index__(self) -> int:
        self.__aclnn_read__()
        raise _refused("a number was requested from")

    def __aclnn_read__(self) -> None:
        """Have an integer that was given become part of the description."""
        if self.place is not None:
            self.trace.integers_read.add(self.place)

    def item(self, *args: Any) -> Any:
        raise _refused("a number was requested from")

    def tolist(self) -> Any:
        raise _refused("numbers were requested from")

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise _refused("the memory was requested from")

    def no_memory(self) -> AclnnError:
        """Error that the buffer protocol raises."""
        return _refused("the memory was requested from")

    @property
    def __array_interface__(self) -> Any:
        raise _refused("the memory was requested from")

    def __dlpack_device__(self) -> Any:
        raise _refused("the memory was requested from")

    def __reduce__(self) -> Any:
        raise _refused("a pickle was requested from")

    def __copy__(self) -> TracedArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> TracedArray:
        return self.copy()

    def __round__(self, digits: Any = None) -> Any:
        raise _refused("a number was requested from")

    def __format__(self, how: str) -> str:
        if how:
            raise _refused("a number was requested from")
        return repr(self)

    def __dlpack__(self, *args: Any, **options: Any) -> Any:
        raise _refused("the memory was requested from")

    def tobytes(self, *args: Any) -> bytes:
        raise _refused("the memory was requested from")

    def __contains__(self, item: Any) -> bool:
        raise _refused("the truth value was requested from")

    @_of_callers
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            meant = did_you_mean(name, [n for n in dir(TracedArray) if n[0] != "_"])
            raise AttributeError(f"a traced array has no attribute {name!r}{meant}")
        raise invalid(
            f"a traced array has no {name!r}: there is no counterpart among the operators; "
            "aclnn.call embeds it as a step of the plan"
        )
