"""One product: its matrices, and how the work is cut."""

from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.products.microkernel cimport (
    F32_LANES,
    F32_WIDE,
    F64_LANES,
    F64_WIDE,
    IN_PAIRS,
    IN_PANEL,
    MOST_TILE_ROWS,
    OF_F32,
    PIECE,
    panel_bytes,
)
from aclnn.kernels.programs cimport PROGRAM_OPERANDS, program_t
from aclnn.graph.runtime.kernel_abi cimport array_view, tile_kernel

cdef enum:
    MOST_DIMS = 64
    A = 0             # operands; the output comes last
    B = 1
    C = 2
    OUT = 3
    EXTRA = 4         # what steps on results read besides
    MOST_EXTRAS = 8
    OPERANDS = 12
    MOST_PARTS = 9    # steps on results: a rounding, and pointwise nodes
    MOST_READS = 4
    CHUNK_WORK = 2097152   # multiplications that are worth handing to a thread: 20 microseconds
    READ_COST = 5          # what reading an element takes, in multiplications
    PACK_COST = 24         # what packing an element takes, in multiplications
    SHARE_WORK = 67108864  # that are worth a chunk of their own: threads take what others leave
    MOST_SHARES = 4        # of them for each thread


cdef struct matrix_t:
    char *data
    ptrdiff_t rows, cols
    ptrdiff_t row_stride, col_stride     # bytes


cdef struct part_t:
    # A kernel of a step on results: it reads operands, from EXTRA on, or results of steps, from
    # OPERANDS on; those before the first one are the sums.
    tile_kernel run
    const void *state
    int reads[MOST_READS]
    int n_reads
    int size                 # bytes of an element of its result
    ptrdiff_t params         # bytes from the beginning of the parameters


cdef struct finish_t:
    # What is done with results while the caches hold them: one program, or kernel after kernel.
    const program_t *program
    int reads[PROGRAM_OPERANDS]
    int n_reads
    ptrdiff_t params
    part_t parts[MOST_PARTS]
    int n_parts


cdef struct product_state:
    int n_operands           # a, b, maybe c, extras, and the output
    int extras
    bint finishes
    finish_t finish
    bint scaled              # takes alpha and beta
    bint packed              # b was packed ahead (`panels.h`)
    bint halves              # a and b are bfloat16
    bint pairs               # which the CPU has dot products for
    int itemsize             # of the type that is computed in
    int kinds[OPERANDS]      # of elements that are widened while they are packed, else IN_PANEL
    int sizes[OPERANDS]      # bytes of an element
    load_fn load[3]          # of a, b and c, to the type that is computed in
    store_fn store
    # What the kernel was made for, as scratch is reserved by it.
    ptrdiff_t m
    ptrdiff_t n
    ptrdiff_t k
    ptrdiff_t batch
    bint direct


cdef struct product_t:
    # What a call's shapes and strides make of it.
    ptrdiff_t m, n, k
    int ndim                       # of the batch
    ptrdiff_t batch                # how many matrices
    ptrdiff_t shape[MOST_DIMS]
    ptrdiff_t steps[OPERANDS][MOST_DIMS]  # bytes from one matrix of an operand to the next
    matrix_t matrices[OPERANDS]    # the first of each operand
    load_fn load[3]
    int kinds[OPERANDS]
    int sizes[OPERANDS]
    int extras
    bint has_c
    int packed                     # what panels of b hold that was packed ahead; 0: it was not
    bint turned                    # b'@a' is computed
    bint direct                    # sums are those of the output, where they lie


cdef inline int describe(const array_view *views, const product_state *state,
                         product_t *p) noexcept nogil:
    """Find out how a product is done; nonzero for views that are none.

    It is asked when the kernel is planned and again when it runs: shapes and strides decide.
    """
    cdef const array_view *out = &views[state.n_operands - 1]
    cdef int which
    p.extras = state.extras
    p.has_c = state.n_operands - state.extras == 4
    p.ndim = 0
    p.batch = 1
    for which in range(OUT):
        p.load[which] = state.load[which]
    for which in range(OPERANDS):
        p.kinds[which], p.sizes[which] = state.kinds[which], state.sizes[which]
    if out.ndim < 2 or out.ndim > MOST_DIMS:
        return 1
    for which in range(OPERANDS):
        if is_there(p, which) and set_matrix(view_of(views, state, which), out,
                                             &p.matrices[which]):
            return 1
    p.m, p.n, p.k = p.matrices[OUT].rows, p.matrices[OUT].cols, p.matrices[A].cols
    if not shapes_agree(p):
        return 1
    set_batch(views, state, out.ndim - 2, out.shape, p)
    p.turned = turns(p, state.itemsize)
    if p.turned:
        transpose(p)
    p.packed = 0
    if state.packed:
        set_packed(p, state)
    p.direct = (not p.has_c and not state.scaled and p.kinds[OUT] == OF_F32
                and has_dense_rows(&p.matrices[OUT]))
    return 0


cdef inline bint can_pack(const product_t *p, const product_state *state) noexcept nogil:
    """Whether b may be packed ahead: its elements are such as panels have, or are widened to."""
    return p.kinds[B] != IN_PANEL and p.k > 0 and p.n > 0 and p.batch > 0


cdef inline ptrdiff_t set_packed(product_t *p, const product_state *state) noexcept nogil:
    """Let b be what `pack_ahead` makes of it: matrices one after the other; their bytes."""
    cdef ptrdiff_t size = packed_bytes(p, state.itemsize), axis
    p.packed = IN_PAIRS if state.pairs else p.kinds[B]
    p.matrices[B].row_stride = p.matrices[B].col_stride = 0
    for axis in range(p.ndim):
        if p.steps[B][axis] != 0:
            p.steps[B][axis] = size
            size *= p.shape[axis]
    return size


cdef inline bint is_first(const product_t *p, ptrdiff_t index) noexcept nogil:
    """Whether none of the batch before has the same matrix of b, as far as strides of 0 tell."""
    cdef int axis
    for axis in range(p.ndim):
        if p.steps[B][axis] == 0 and index % p.shape[axis]:
            return False
        index //= p.shape[axis]
    return True


cdef inline ptrdiff_t packed_bytes(const product_t *p, int itemsize) noexcept nogil:
    """Bytes of a packed matrix: of its panels, and of an exponent for each piece of each."""
    cdef ptrdiff_t wide = F32_WIDE if itemsize == 4 else F64_WIDE
    cdef ptrdiff_t panels = (p.n + wide - 1) // wide, pieces = (p.k + PIECE - 1) // PIECE
    return panels * panel_bytes(wide, p.k, p.sizes[B]) + round_up(
        panels * pieces * <ptrdiff_t>sizeof(int), 64)


cdef inline bint is_there(const product_t *p, int which) noexcept nogil:
    return (which != C or p.has_c) and which < EXTRA + p.extras


cdef inline const array_view *view_of(const array_view *views, const product_state *state,
                                      int which) noexcept nogil:
    if which >= EXTRA:
        return &views[state.n_operands - 1 - state.extras + which - EXTRA]
    return &views[state.n_operands - 1 if which == OUT else which]


cdef inline int set_matrix(const array_view *view, const array_view *out,
                           matrix_t *matrix) noexcept nogil:
    cdef int ndim = out.ndim, axis
    if view.ndim != ndim:
        return 1
    for axis in range(ndim - 2):
        if view.shape[axis] != out.shape[axis]:
            return 1
    matrix.data = view.data
    matrix.rows, matrix.cols = view.shape[ndim - 2], view.shape[ndim - 1]
    matrix.row_stride, matrix.col_stride = view.strides[ndim - 2], view.strides[ndim - 1]
    return 0


cdef inline bint shapes_agree(const product_t *p) noexcept nogil:
    cdef int which
    if p.matrices[A].rows != p.m or p.matrices[B].rows != p.k or p.matrices[B].cols != p.n:
        return False
    for which in range(C, OPERANDS):
        if is_there(p, which) and (p.matrices[which].rows != p.m or p.matrices[which].cols != p.n):
            return False
    return True


cdef inline void set_batch(const array_view *views, const product_state *state, int ndim,
                           const ptrdiff_t *shape, product_t *p) noexcept nogil:
    """The batch's axes from the innermost on, less those that are more rows of one matrix."""
    cdef int axis, which
    for axis in range(ndim - 1, -1, -1):
        if shape[axis] == 1 or continues_rows(views, state, axis, p):
            continue
        p.shape[p.ndim] = shape[axis]
        p.batch *= shape[axis]
        for which in range(OPERANDS):
            if is_there(p, which):
                p.steps[which][p.ndim] = view_of(views, state, which).strides[axis]
        p.ndim += 1


cdef inline bint continues_rows(const array_view *views, const product_state *state, int axis,
                                product_t *p) noexcept nogil:
    """Let a batch with one b for all be one matrix of many rows, where its strides are such."""
    cdef int which
    cdef const array_view *other
    if p.ndim or views[B].strides[axis] != 0:
        return False
    for which in range(OPERANDS):
        if which != B and is_there(p, which) and p.m > 1:
            other = view_of(views, state, which)
            if other.strides[axis] != p.m * p.matrices[which].row_stride:
                return False
    for which in range(OPERANDS):
        if which != B and is_there(p, which):
            if p.m == 1:
                p.matrices[which].row_stride = view_of(views, state, which).strides[axis]
            p.matrices[which].rows *= views[A].shape[axis]
    p.m *= views[A].shape[axis]
    return True


cdef inline bint turns(const product_t *p, int itemsize) noexcept nogil:
    """Whether results are better made as the transpose: by rows, and rather few of them."""
    cdef ptrdiff_t lanes = F32_LANES if itemsize == 4 else F64_LANES
    cdef double now = <double>p.m * round_up(p.n, lanes), then = <double>p.n * round_up(p.m, lanes)
    cdef const matrix_t *out = &p.matrices[OUT]
    if out.rows > 1 and out.cols > 1 and 0 < out.row_stride < out.col_stride:
        return then < 2 * now
    return 2 * then < now


cdef inline bint has_dense_rows(const matrix_t *out) noexcept nogil:
    return (out.cols == 1 or out.col_stride == sizeof(float)) and (
        out.rows == 1 or out.row_stride % <ptrdiff_t>sizeof(float) == 0)


cdef inline ptrdiff_t round_up(ptrdiff_t n, ptrdiff_t unit) noexcept nogil:
    return (n + unit - 1) // unit * unit


cdef inline void transpose(product_t *p) noexcept nogil:
    """(a@b)' = b'@a'."""
    cdef ptrdiff_t step
    cdef int axis, which
    p.m, p.n = p.n, p.m
    p.matrices[A], p.matrices[B] = p.matrices[B], p.matrices[A]
    p.load[A], p.load[B] = p.load[B], p.load[A]
    p.kinds[A], p.kinds[B] = p.kinds[B], p.kinds[A]
    p.sizes[A], p.sizes[B] = p.sizes[B], p.sizes[A]
    for which in range(OPERANDS):
        flip(&p.matrices[which])
    for axis in range(p.ndim):
        step = p.steps[A][axis]
        p.steps[A][axis] = p.steps[B][axis]
        p.steps[B][axis] = step


cdef inline void flip(matrix_t *matrix) noexcept nogil:
    matrix.rows, matrix.cols = matrix.cols, matrix.rows
    matrix.row_stride, matrix.col_stride = matrix.col_stride, matrix.row_stride


cdef inline matrix_t entry(const product_t *p, int which, ptrdiff_t index) noexcept nogil:
    """A matrix of the batch."""
    cdef matrix_t found = p.matrices[which]
    cdef int axis
    for axis in range(p.ndim):
        found.data += index % p.shape[axis] * p.steps[which][axis]
        index //= p.shape[axis]
    return found


cdef struct grid_t:
    # Parts of each matrix of results: how many there are, and their rows and columns.
    ptrdiff_t down, across
    ptrdiff_t rows, cols


cdef inline ptrdiff_t parts_of(const product_t *p, const grid_t *grid) noexcept nogil:
    return p.batch * grid.down * grid.across


cdef inline grid_t grid_of(const product_t *p, int itemsize, ptrdiff_t chunks) noexcept nogil:
    """Parts that chunks have about as many of, and that cost little packing: rows of a are packed
    for each part to the right of another, columns of b for each below another."""
    cdef ptrdiff_t wide = F32_WIDE if itemsize == 4 else F64_WIDE
    cdef ptrdiff_t down = 0, each = chunks
    cdef double cost, least = 0
    cdef grid_t grid, best
    best = cut(p, wide, 1, 1)
    if p.batch % chunks == 0 or p.batch >= 4 * chunks:
        return best
    if chunks % p.batch == 0:
        each = chunks // p.batch
    for down in range(1, each + 1):
        if each % down:
            continue
        grid = cut(p, wide, down, each // down)
        cost = <double>grid.rows * grid.cols + PACK_COST * (grid.rows + grid.cols)
        if least == 0 or cost < least:
            best, least = grid, cost
    return best


cdef inline grid_t cut(const product_t *p, ptrdiff_t wide, ptrdiff_t down,
                       ptrdiff_t across) noexcept nogil:
    """Parts as even as whole tiles allow, maybe fewer than asked for."""
    cdef grid_t grid
    grid.rows = (p.m + down - 1) // down
    if down > 1:
        grid.rows = round_up(grid.rows, min(<ptrdiff_t>MOST_TILE_ROWS, p.m))
    grid.cols = round_up((p.n + across - 1) // across, wide)
    grid.down = (p.m + grid.rows - 1) // grid.rows
    grid.across = (p.n + grid.cols - 1) // grid.cols
    return grid


cdef inline ptrdiff_t most_chunks(const product_t *p, int itemsize,
                                  ptrdiff_t threads) noexcept nogil:
    """Into how many calls the work is cut."""
    cdef double work = min(p.batch * (
        <double>p.m * p.n * max(p.k, 1) + READ_COST * (<double>p.m + p.n) * p.k), 1e15)
    cdef ptrdiff_t chunks = min(threads, <ptrdiff_t>(work / CHUNK_WORK))
    cdef grid_t grid
    if chunks <= 1:
        return 1
    if chunks == threads:
        chunks *= max(1, min(<ptrdiff_t>MOST_SHARES, <ptrdiff_t>(work / SHARE_WORK) // threads))
    grid = grid_of(p, itemsize, chunks)
    return max(1, min(chunks, parts_of(p, &grid)))
