"""Kernels of matrix products: out = beta*c + alpha*(a@b), for batches and any strides.

Float32 and float64 operands that BLAS can read go there as they are (`products/whole.pxd`). All
others, halves among them, are converted panel by panel, and results are rounded once when their sum
is complete (`products/panels.pxd`). What BLAS there is decides about registers: this module is
built once, for all instruction sets.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from aclnn.kernels.unaligned cimport unaligned_double, unaligned_float
from aclnn.kernels.element cimport (
    bfloat16_t,
    half_of_f32,
    half_of_f64,
    half_t,
    half_to_f32,
    load,
    load_fn,
    store,
    store_fn,
)
from aclnn.kernels.number cimport real
from aclnn.kernels.products.blas cimport (
    as_operand,
    blas_enter,
    blas_found,
    blas_leave,
    matrix_t,
    operand_t,
)
from aclnn.kernels.products.panels cimport grid_of, grid_t, lay_out, multiply_panels, scratch_t
from aclnn.kernels.products.product cimport (
    MOST_DIMS,
    array_view,
    call_context,
    call_kernel,
    describe,
    kernel_number,
    most_chunks,
    product_state,
    product_t,
)
from aclnn.kernels.products.whole cimport multiply_entries

from aclnn import blas

cdef enum:
    MOST_OPERANDS = 4
    LINE = 64
    GUARD = 64             # bytes after the scratch that `run` watches

SIZES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}


# --- The kernel -----------------------------------------------------------------------------------

cdef inline int multiply(const array_view *views, const product_state *state,
                         const kernel_number *numbers, char *scratch, ptrdiff_t chunk,
                         ptrdiff_t chunks, const call_context *context,
                         real like) noexcept nogil:
    cdef product_t p
    cdef real alpha = <real>(numbers[0].real if state.scaled else 1)
    cdef real beta = <real>(numbers[1].real if state.scaled else 1)
    if describe(views, state, &p) != 0:
        return 1
    if not p.has_c:
        beta = 0
    if not p.direct and scratch == NULL:
        return 1
    blas_enter()
    if p.direct:
        multiply_entries(&p, state, alpha, beta, context.threads, chunk * p.batch // chunks,
                         (chunk + 1) * p.batch // chunks)
    else:
        multiply_panels(&p, state, alpha, beta, scratch, chunk, chunks)
    blas_leave()
    return 0


cdef int multiply_floats(const array_view *views, const void *state, const void *params,
                         void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                         call_context *context) noexcept nogil:
    return multiply(views, <const product_state *>state, <const kernel_number *>params,
                    <char *>scratch, chunk, chunks, context, <float>0)


cdef int multiply_doubles(const array_view *views, const void *state, const void *params,
                          void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                          call_context *context) noexcept nogil:
    return multiply(views, <const product_state *>state, <const kernel_number *>params,
                    <char *>scratch, chunk, chunks, context, <double>0)


# --- Loads and stores -----------------------------------------------------------------------------

cdef void load_by_half(const float *src, ptrdiff_t stride, real *dst, ptrdiff_t n) noexcept nogil:
    """Floats, rounded to float16 first."""
    cdef const unaligned_float *at
    cdef ptrdiff_t i
    for i in range(n):
        at = <const unaligned_float *>(<const char *>src + i * stride)
        dst[i] = half_to_f32(half_of_f32(at[0]))


cdef void load_double_by_half(const double *src, ptrdiff_t stride, double *dst,
                              ptrdiff_t n) noexcept nogil:
    cdef const unaligned_double *at
    cdef ptrdiff_t i
    for i in range(n):
        at = <const unaligned_double *>(<const char *>src + i * stride)
        dst[i] = half_to_f32(half_of_f64(at[0]))


cdef load_fn loader(str dtype, bint by_half, real like) except NULL:
    if dtype == "float32":
        return <load_fn>load_by_half[real] if by_half else <load_fn>load[float, real]
    if dtype == "float64":
        return <load_fn>load_double_by_half if by_half else <load_fn>load[double, real]
    if dtype == "float16":
        return <load_fn>load[half_t, real]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, real]
    raise ValueError(f"no product reads {dtype}")


cdef store_fn storer(str dtype, real like) except NULL:
    if dtype == "float32":
        return <store_fn>store[real, float]
    if dtype == "float64":
        return <store_fn>store[real, double]
    if dtype == "float16":
        return <store_fn>store[real, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[real, bfloat16_t]
    raise ValueError(f"no product writes {dtype}")


# --- References to kernels ------------------------------------------------------------------------

cdef class ProductKernelRef:
    """The kernel of a product of certain dtypes, shapes and strides; owns its state.

    Attributes
    ----------
    fn, state : int
        Addresses of a `call_kernel` and of what it is called with.
    name : str
    itemsizes : tuple of int
        Bytes of an element of a, b, c where there is one, and of the output.
    prepare, params_size : int
        0: the kernel takes the numbers as they are.
    cost : float
        Nanoseconds that the whole product takes on one core, roughly.
    scratch : int
        Bytes that each thread lends the kernel.
    """

    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly size_t fn, prepare, params_size
    cdef readonly double cost
    cdef readonly ptrdiff_t scratch
    cdef product_state kept
    cdef product_t product

    @property
    def state(self):
        return <size_t>&self.kept

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads.

        One, where BLAS uses threads of its own.

        Parameters
        ----------
        threads : int

        Returns
        -------
        int
        """
        return most_chunks(&self.product, threads)

    def __repr__(self):
        return f"<ProductKernelRef {self.name}>"


cdef class Views:
    """Shapes, strides and addresses of operands as C has them."""

    cdef array_view views[MOST_OPERANDS]
    cdef ptrdiff_t numbers[MOST_OPERANDS][2][MOST_DIMS]

    cdef int set(self, int which, uintptr_t address, tuple shape, tuple strides) except -1:
        cdef int axis
        if which >= MOST_OPERANDS or len(shape) > MOST_DIMS or len(shape) != len(strides):
            raise ValueError(f"no product takes shape {shape} with strides {strides}")
        for axis in range(<int>len(shape)):
            self.numbers[which][0][axis] = shape[axis]
            self.numbers[which][1][axis] = strides[axis]
        self.views[which].data = <char *>address
        self.views[which].ndim = <int>len(shape)
        self.views[which].shape = self.numbers[which][0]
        self.views[which].strides = self.numbers[which][1]
        return 0


cdef void *routine(str name, int integers) except NULL:
    """The address of a BLAS routine whose integers are C's."""
    cdef object capsule = blas.routine(name)
    cdef bytes signature = PyCapsule_GetName(capsule)
    if signature.count(b"int *") != integers:
        raise ImportError(f"SciPy's {name} does not take plain ints: {signature.decode()}")
    return PyCapsule_GetPointer(capsule, signature)


cdef bint threads_found = False


cdef int find_threads() except -1:
    """Bind the BLAS's threads from now on; it is loaded with its first product."""
    global threads_found
    if threads_found:
        return 0
    number, set_number, set_for_thread = blas.thread_functions()
    if blas_found(number, set_number, set_for_thread):
        raise MemoryError
    threads_found = True
    return 0


cdef tuple row_major(tuple shape, ptrdiff_t itemsize):
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(size, 1)
    return tuple(reversed(strides))


def blas_can_read(shape, strides, itemsize):
    """Tell whether BLAS reads a matrix where it lies.

    Parameters
    ----------
    shape, strides : sequence of int
        Of the array; the last two axes are the matrix. Strides are in bytes.
    itemsize : int

    Returns
    -------
    bool

    Examples
    --------
    >>> blas_can_read((3, 4), (16, 4), 4), blas_can_read((4, 3), (4, 16), 4)
    (True, True)
    >>> blas_can_read((3, 4), (32, 8), 4)
    False
    """
    cdef matrix_t matrix
    cdef operand_t operand
    matrix.data = NULL
    matrix.rows, matrix.cols = shape[-2], shape[-1]
    matrix.row_stride, matrix.col_stride = strides[-2], strides[-1]
    return bool(as_operand(&matrix, itemsize, &operand))


def product_kernel(tuple in_dtypes not None, str out_dtype not None, *,
                   tuple batch_shape not None=(), m, n, k, strides=None,
                   bint scaled=False, bint round_inputs_to_half=False):
    """The kernel of out = beta*c + alpha*(a@b) for these dtypes, shapes and strides.

    It computes in double where a dtype is float64, else in float.

    Parameters
    ----------
    in_dtypes : tuple of str
        Of a [..., m, k], b [..., k, n] and, if there is one, c [..., m, n]: 'float32', 'float16',
        'bfloat16' or 'float64', in any mixture.
    out_dtype : str
        Of the output [..., m, n].
    batch_shape : tuple of int, optional
        The axes before the last two, which all operands have; stride 0 is broadcast.
    m, n, k : int
        m and n are not 0.
    strides : sequence of tuple of int or None, optional
        Of each operand, the output last, in bytes for every axis; None for row-major. Runs take
        operands with these strides.
    scaled : bool, optional
        Whether the kernel takes two numbers: alpha and beta. Otherwise both are 1. With a beta of 0
        it does not look at c, with an alpha of 0 neither at a nor b.
    round_inputs_to_half : bool, optional
        Round a and b to float16 first.

    Returns
    -------
    ProductKernelRef

    Raises
    ------
    ValueError
        For other dtypes, and for strides that no array has.
    ModuleNotFoundError
        Where SciPy, whose BLAS it calls, is not installed.
    """
    cdef ProductKernelRef ref = ProductKernelRef.__new__(ProductKernelRef)
    cdef bint wide = "float64" in (*in_dtypes, out_dtype)
    cdef Views views = Views()
    cdef grid_t grid
    cdef scratch_t scratch
    operands = (*in_dtypes, out_dtype)
    if len(in_dtypes) not in (2, 3):
        raise ValueError(f"a product takes a, b and maybe c, {len(in_dtypes)} dtypes given")
    if unknown := tuple(dtype for dtype in operands if dtype not in SIZES):
        raise ValueError(f"no product is computed in {', '.join(unknown)}")
    ref.itemsizes = tuple(SIZES[dtype] for dtype in operands)
    ref.name = f"matmul[{','.join(in_dtypes)}->{out_dtype}]"
    set_state(ref, in_dtypes, out_dtype, wide, round_inputs_to_half)
    ref.kept.scaled = scaled
    shapes = [(*batch_shape, m, k), (*batch_shape, k, n), (*batch_shape, m, n)]
    for which, size in enumerate(ref.itemsizes):
        shape = shapes[min(which, 2)]
        given = None if strides is None else strides[which]
        views.set(which, 0, shape, row_major(shape, size) if given is None else tuple(given))
    if describe(views.views, &ref.kept, &ref.product) != 0:
        raise ValueError(f"no product has the shapes {shapes}")
    if not ref.product.direct:
        grid = grid_of(&ref.product, 1)
        ref.scratch = lay_out(&ref.product, &grid, ref.kept.itemsize, NULL, &scratch)
    ref.cost = 2.0 * ref.product.batch * m * n * k / 50
    ref.fn = <size_t>(multiply_doubles if wide else multiply_floats)
    return ref


cdef int set_state(ProductKernelRef ref, tuple in_dtypes, str out_dtype, bint wide,
                   bint by_half) except -1:
    cdef product_state *state = &ref.kept
    cdef bint rounded
    cdef int which
    computed = "float64" if wide else "float32"
    state.itemsize = SIZES[computed]
    state.n_operands = <int>len(in_dtypes) + 1
    # c may have any dtype: it is converted when it is copied to where BLAS adds to it.
    state.dense = not by_half and {*in_dtypes[:2], out_dtype} == {computed}
    for which in range(<int>len(in_dtypes)):
        rounded = by_half and which < 2
        state.load[which] = (loader(in_dtypes[which], rounded, <double>0) if wide
                             else loader(in_dtypes[which], rounded, <float>0))
    state.store = storer(out_dtype, <double>0) if wide else storer(out_dtype, <float>0)
    find_threads()
    state.blas.gemm = routine("dgemm" if wide else "sgemm", 6)
    state.blas.gemv = routine("dgemv" if wide else "sgemv", 5)
    return 0


# --- For tests ------------------------------------------------------------------------------------

def run(ProductKernelRef ref not None, operands, numbers=(), ptrdiff_t chunks=1, chunk=None):
    """Run a kernel, one chunk after the other, for tests.

    Parameters
    ----------
    ref : ProductKernelRef
    operands : sequence of tuple
        Address, shape and strides of each operand, the output last.
    numbers : sequence of float, optional
        Alpha and beta, where the kernel takes them.
    chunks : int, optional
    chunk : int, optional
        Run only this one.

    Returns
    -------
    int
        0, or what the kernel failed with.

    Raises
    ------
    RuntimeError
        If it wrote behind its scratch.
    """
    cdef Views views = Views()
    cdef kernel_number values[2]
    cdef char *memory
    cdef char *scratch
    cdef ptrdiff_t begin = 0 if chunk is None else chunk
    cdef ptrdiff_t end = chunks if chunk is None else begin + 1
    cdef int status = 0
    cdef bint intact
    cdef call_context context
    if len(operands) != len(ref.itemsizes) or len(numbers) != (2 if ref.kept.scaled else 0):
        raise ValueError("takes what the kernel was made for")
    for which, (address, shape, strides) in enumerate(operands):
        views.set(which, address, tuple(shape), tuple(strides))
    for which, number in enumerate(numbers):
        values[<int>which].real = number
    context.threads, context.detail = 1, 0
    memory = <char *>calloc(1, ref.scratch + LINE + GUARD)
    if memory == NULL:
        raise MemoryError
    scratch = memory + (-<ptrdiff_t><uintptr_t>memory & (LINE - 1))
    with nogil:
        memset(scratch, 0xA5, ref.scratch + GUARD)
        while begin < end and status == 0:
            status = (<call_kernel>ref.fn)(views.views, &ref.kept, values,
                                           scratch if ref.scratch else NULL, begin, chunks,
                                           &context)
            begin += 1
    intact = (scratch + ref.scratch)[:GUARD] == b"\xa5" * GUARD
    free(memory)
    if not intact:
        raise RuntimeError("the kernel wrote behind its scratch")
    return status
