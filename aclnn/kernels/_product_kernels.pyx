"""Kernels of matrix products: out = beta*c + alpha*(a@b), for batches and any strides.

Operands are packed into panels, halves among them widened on the way, and multiplied tile by tile
(`products/blocks.pxd`); results are rounded once when their sum is complete. The sum over k has an
order that depends on k alone.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from aclnn.kernels.unaligned cimport unaligned_double, unaligned_float
from aclnn._kernels cimport load_of, store_of
from aclnn.kernels.element cimport (
    half_of_f32,
    half_of_f64,
    half_to_f32,
    load_fn,
)
from aclnn.kernels.instruction_sets cimport SETS_BUILT, set_in_use, take_set, use_set
from aclnn.kernels.number cimport real
from aclnn.kernels.products.blocks cimport (
    block_t,
    multiply_blocks,
    multiply_fn,
    multiply_parts,
    pack_ahead,
    scratch_of,
)
from aclnn.kernels.products.microkernel cimport (
    IN_PANEL,
    OF_BF16,
    OF_F16,
    OF_F32,
    OF_F64,
    pairs_usable,
)
from aclnn.kernels.products.steps cimport prepare_steps, set_steps, steps_state
from aclnn.kernels.products.product cimport (
    A,
    B,
    MOST_DIMS,
    OUT,
    MOST_EXTRAS,
    can_pack,
    describe,
    entry,
    is_first,
    most_chunks,
    product_state,
    product_t,
    set_packed,
)
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context, call_kernel, kernel_number

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel, Packing

cdef enum:
    MOST_OPERANDS = 12
    LINE = 64
    GUARD = 64             # bytes after the scratch that `run` watches

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


cdef dict KINDS = {"float32": OF_F32, "float64": OF_F64, "float16": OF_F16, "bfloat16": OF_BF16}


# --- The kernel -----------------------------------------------------------------------------------

cdef inline int multiply(const array_view *views, const product_state *state,
                         const char *params, char *scratch, ptrdiff_t chunk,
                         ptrdiff_t chunks, const call_context *context,
                         real like) noexcept nogil:
    cdef product_t p
    cdef const kernel_number *numbers = <const kernel_number *>params
    cdef real alpha = <real>(numbers[0].real if state.scaled else 1)
    cdef real beta = <real>(numbers[1].real if state.scaled else 1)
    if describe(views, state, &p) != 0:
        return 1
    if not p.has_c:
        beta = 0
    if not as_planned(&p, state):
        return 1
    multiply_parts(&p, state, alpha, beta, params, scratch, chunk, chunks)
    return 0


cdef inline bint as_planned(const product_t *p, const product_state *state) noexcept nogil:
    """Whether the scratch is that of this product."""
    return (p.m == state.m and p.n == state.n and p.k == state.k and p.batch == state.batch
            and p.direct == state.direct)


cdef int multiply_floats(const array_view *views, const void *state, const void *params,
                         void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                         call_context *context) noexcept nogil:
    return multiply(views, <const product_state *>state, <const char *>params,
                    <char *>scratch, chunk, chunks, context, <float>0)


cdef int multiply_doubles(const array_view *views, const void *state, const void *params,
                          void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                          call_context *context) noexcept nogil:
    return multiply(views, <const product_state *>state, <const char *>params,
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


cdef load_fn loader(str dtype, bint by_half, str computed) except NULL:
    if by_half and dtype == "float32":
        if computed == "float64":
            return <load_fn>load_by_half[double]
        return <load_fn>load_by_half[float]
    if by_half and dtype == "float64":
        return <load_fn>load_double_by_half
    return load_of(set_in_use(), dtype, computed)


# --- References to kernels ------------------------------------------------------------------------

cdef class ProductState:
    """State of the kernel of a product, and the division of its work."""

    cdef steps_state stepped  # begins with what the kernel is called with
    cdef product_t product
    cdef int loops  # the instruction set that they are of

    def __cinit__(self):
        self.loops = set_in_use()

    cdef ptrdiff_t room_for(self, ptrdiff_t chunks) noexcept:
        """Bytes that each thread lends the kernel."""
        if self.stepped.product.itemsize == sizeof(double):
            return scratch_of(&self.product, &self.stepped.product, chunks, <double>0)
        return scratch_of(&self.product, &self.stepped.product, chunks, <float>0)

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads."""
        use_set(self.loops)
        return most_chunks(&self.product, self.stepped.product.itemsize, threads)

    cdef object kernel(self, str name, tuple itemsizes, size_t params_size, steps, bint packs):
        """The kernel; `steps` are kept alive, `packs`: whether it may take a packed form."""
        cdef const product_t *c = &self.product
        cdef bint wide = self.stepped.product.itemsize == sizeof(double)
        sizes = c.m, c.k, c.n
        return Kernel(
            fn=<size_t>(multiply_doubles if wide else multiply_floats),
            state=<size_t>&self.stepped,
            name=name,
            itemsizes=itemsizes,
            cost=2.0 * c.batch * c.m * c.n * c.k / 50,
            owner=(self, steps),
            prepare=0 if steps is None else <size_t>prepare_steps,
            params_size=params_size,
            scratch=self.room_for(self.chunks(1)),
            chunks=self.chunks,
            extent=tuple(sizes) if c.batch == 1 else (c.batch, *sizes),
            flops=2 * c.batch * c.m * c.k * c.n,
            packing=self.packing(name, itemsizes, params_size, steps) if packs else None,
        )

    cdef object packing(self, str name, tuple itemsizes, size_t params_size, steps):
        """The packed form that the kernel takes of an operand; None where it takes none."""
        cdef product_t product = self.product
        cdef int axis
        if not can_pack(&product, &self.stepped.product):
            return None
        form = [self.stepped.product.itemsize, product.k, product.n,
                product.matrices[B].row_stride, product.matrices[B].col_stride]
        for axis in range(product.ndim):
            if product.steps[B][axis] != 0:
                form += [product.shape[axis], product.steps[B][axis]]
        size = set_packed(&product, &self.stepped.product)
        place = 0 if product.turned else 1

        def packed():
            return self.with_packed(name, itemsizes, params_size, steps)

        return Packing(place, size, (product.packed, *form), packed, self.pack)

    def with_packed(self, str name not None, tuple itemsizes not None, size_t params_size, steps):
        """The kernel of the same products with what `pack` makes of an operand."""
        use_set(self.loops)
        cdef ProductState made = ProductState.__new__(ProductState)
        made.stepped, made.product = self.stepped, self.product
        made.stepped.product.packed = True
        set_packed(&made.product, &made.stepped.product)
        return made.kernel(f"{name} packed", itemsizes, params_size, steps, False)

    def pack(self, uintptr_t source, uintptr_t target):
        """Pack an operand of the planned shape and strides, from one address to another."""
        cdef product_t given = self.product, made = self.product
        cdef product_state state = self.stepped.product
        cdef ptrdiff_t index
        use_set(self.loops)
        state.packed = True
        set_packed(&made, &state)
        given.matrices[B].data, made.matrices[B].data = <char *>source, <char *>target
        with nogil:
            for index in range(given.batch):
                if not is_first(&given, index):
                    continue
                if state.itemsize == sizeof(double):
                    pack_ahead(&given, entry(&given, B, index).data, entry(&made, B, index).data,
                               made.packed, <double>0)
                else:
                    pack_ahead(&given, entry(&given, B, index).data, entry(&made, B, index).data,
                               made.packed, <float>0)


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


cdef tuple row_major(tuple shape, ptrdiff_t itemsize):
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(size, 1)
    return tuple(reversed(strides))


def product_kernel(tuple inputs not None, tuple outputs not None, *,
                   tuple batch_shape not None=(), m, n, k, strides=None,
                   bint scaled=False, bint round_inputs_to_half=False, steps=None,
                   int extras=0):
    """The kernel of out = beta*c + alpha*(a@b) for these dtypes, shapes and strides.

    It computes in double where a dtype is float64, else in float.

    Parameters
    ----------
    inputs : tuple of str
        Of a [..., m, k], b [..., k, n] and, if there is one, c [..., m, n]: 'float32', 'float16',
        'bfloat16' or 'float64', in any mixture.
    outputs : tuple of str
        That of the output [..., m, n].
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
    steps : callable, optional
        Makes the kernels of pointwise steps on float32 results, the last of which writes the
        output; its argument is whether results are made as their transpose. It returns one program
        as ``((kernel, reads, numbers),)``, or kernels in order, ``(kernel, reads, numbers,
        itemsize)`` each. A read is -1 for the product's results, n from 0 on for the extra operand
        n, and ``extras + n`` for the result of step n; numbers is how many the kernel takes.
    extras : int, optional
        How many operands [..., m, n] before the output steps read.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        For other dtypes, and for strides that no array has.
    """
    cdef ProductState ref = ProductState.__new__(ProductState)
    cdef bint wide = "float64" in inputs + outputs
    cdef product_state *state = &ref.stepped.product
    cdef Views views = Views()
    operands = inputs + outputs
    if not 0 <= extras <= MOST_EXTRAS:
        raise ValueError(f"steps on a product read at most {MOST_EXTRAS} operands, not {extras}")
    if len(inputs) - extras not in (2, 3):
        raise ValueError(f"a product takes a, b and maybe c, {len(inputs)} dtypes given")
    if unknown := tuple(dtype for dtype in operands if dtype not in KINDS):
        raise ValueError(f"no product is computed in {', '.join(unknown)}")
    itemsizes = tuple(ITEM_SIZES[dtype] for dtype in operands)
    name = f"matmul[{','.join(inputs)}->{outputs[0]}]"
    state.extras = extras
    set_state(ref, inputs, outputs[0], wide, round_inputs_to_half)
    state.scaled = scaled
    shapes = [(*batch_shape, m, k), (*batch_shape, k, n), (*batch_shape, m, n)]
    for which, size in enumerate(itemsizes):
        shape = shapes[min(which, 2)]
        given = None if strides is None else strides[which]
        views.set(which, 0, shape, row_major(shape, size) if given is None else tuple(given))
    if describe(views.views, state, &ref.product) != 0:
        raise ValueError(f"no product has the shapes {shapes}")
    made, params_size = None, 0
    if steps is not None:
        made = steps(bool(ref.product.turned))
        params_size = set_steps(&ref.stepped, made, extras, scaled)
        for step in made:
            name += f" {step[0].name}"
    state.m, state.n, state.k = ref.product.m, ref.product.n, ref.product.k
    state.batch, state.direct = ref.product.batch, ref.product.direct
    return ref.kernel(name, itemsizes, params_size, made, True)


cdef int set_state(ProductState ref, tuple in_dtypes, str out_dtype, bint wide,
                   bint by_half) except -1:
    cdef product_state *state = &ref.stepped.product
    cdef bint rounded
    cdef int which
    computed = "float64" if wide else "float32"
    state.itemsize = ITEM_SIZES[computed]
    state.n_operands = <int>len(in_dtypes) + 1
    for which in range(<int>len(in_dtypes) - state.extras):
        rounded = by_half and which < 2
        set_kind(state, which, in_dtypes[which], wide, rounded)
        state.load[which] = loader(in_dtypes[which], rounded, computed)
    set_kind(state, OUT, out_dtype, wide, False)
    state.store = store_of(set_in_use(), out_dtype, computed)
    state.halves = state.kinds[A] == OF_BF16 and state.kinds[B] == OF_BF16
    state.pairs = state.halves and multiplies_pairs()
    return 0


cdef int set_kind(product_state *state, int which, str dtype, bint wide, bint by_half) except -1:
    """Set what is widened while it is packed; a function loads other elements."""
    state.sizes[which] = ITEM_SIZES[dtype]
    state.kinds[which] = KINDS[dtype]
    if by_half or wide != (dtype == "float64"):
        state.kinds[which] = IN_PANEL
    return 0


cdef bint multiplies_pairs() noexcept nogil:
    """Whether the CPU has dot products of bfloat16, and the instruction set uses them."""
    return pairs_usable()


# --- For other modules ----------------------------------------------------------------------------

cdef void multiply_floats_of(const product_state *state, const block_t *part, float alpha,
                             float beta) noexcept nogil:
    multiply_blocks(state, part, alpha, beta)


def multiply_floats_at():
    """Address of a `multiply_fn`, which multiplies blocks of floats: convolutions are products."""
    return <size_t><multiply_fn>multiply_floats_of


# --- For tests ------------------------------------------------------------------------------------

def run(kernel not None, operands, numbers=(), ptrdiff_t chunks=1, chunk=None):
    """Run a kernel, one chunk after the other, for tests.

    Parameters
    ----------
    kernel : Kernel
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
    cdef ProductState ref = kernel.owner[0]
    cdef call_kernel fn = <call_kernel><size_t>kernel.fn
    cdef int wanted = 2 if ref.stepped.product.scaled else 0
    if len(operands) != len(kernel.itemsizes) or len(numbers) != wanted:
        raise ValueError("takes what the kernel was made for")
    for which, (address, shape, strides) in enumerate(operands):
        views.set(which, address, tuple(shape), tuple(strides))
    for which, number in enumerate(numbers):
        values[<int>which].real = number
    context.threads, context.detail = 1, 0
    cdef ptrdiff_t room = ref.room_for(chunks)
    memory = <char *>calloc(1, room + LINE + GUARD)
    if memory == NULL:
        raise MemoryError
    scratch = memory + (-<ptrdiff_t><uintptr_t>memory & (LINE - 1))
    with nogil:
        memset(scratch, 0xA5, room + GUARD)
        while begin < end and status == 0:
            status = fn(views.views, &ref.stepped.product, values, scratch, begin, chunks, &context)
            begin += 1
    intact = (scratch + room)[:GUARD] == b"\xa5" * GUARD
    free(memory)
    if not intact:
        raise RuntimeError("the kernel wrote behind its scratch")
    return status
