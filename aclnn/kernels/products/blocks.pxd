"""Products by blocks: panels of operands that stay in caches, and tiles of results over them.

    for rows of results, so many that their panels of a fill half of the second-level cache:
        for columns of results, so many that unfinished sums stay in the caches:
            for each piece of k:
                pack the rows of a
                for each panel of columns of b, which the nearest cache holds:
                    pack it
                    for each panel of rows: multiply, a tile of results
                    after the last piece: finish the tiles

A panel of a b by rows is made by the first tile that reads it, on the way. Sums of several pieces
wait in the output, where it holds such, else in the scratch, tile by tile.
"""

from libc.math cimport NAN
from libc.stdint cimport uint32_t
from libc.string cimport memset

from aclnn.kernels.number cimport real
from aclnn.kernels.products.image cimport (
    image_few,
    image_panel,
    image_run,
    image_run_at,
    image_t,
)
from aclnn.kernels.products.microkernel cimport (
    F32_LANES,
    F32_WIDE,
    F64_LANES,
    F64_WIDE,
    IN_PANEL,
    MOST_TILE_ROWS,
    OF_F32,
    OF_F64,
    PIECE,
    FEW_COLS,
    FEW_COLS_ACROSS,
    FEW_ROWS,
    IN_PAIRS,
    copy_pairs,
    copy_panel,
    f32_add_sums,
    f32_few_across,
    f32_few_down,
    f32_few_panels,
    f32_load_tile,
    f32_pack_across,
    f32_pack_down,
    f32_store_tile,
    f32_tile,
    f32_tiles,
    f64_pack,
    f64_tile,
    pack_pairs_across,
    pack_pairs_down,
    pairs_exact,
    pairs_tile,
    panel_bytes,
    widen_pairs,
)
from aclnn.kernels.products.product cimport (
    A,
    B,
    C,
    EXTRA,
    MOST_EXTRAS,
    OUT,
    entry,
    grid_of,
    grid_t,
    matrix_t,
    packed_bytes,
    parts_of,
    product_state,
    product_t,
    round_up,
)

from aclnn.kernels.products.steps cimport run_finish, view_of_rows
from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef enum:
    BLOCK_ROWS = 252   # of a that are packed at a time: a multiple of every tile's rows
    BLOCK_COLS = 1024  # of results whose sums wait in the scratch
    PAIRS_FROM = 5     # rows from which dot products are worth packing for
    SLACK = 64         # bytes that packing may write beyond a panel
    LINE = 64
    GROUP = 512        # bytes of a row of results that steps finish at a time, at least
    MOST_GROUP = 4096  # at most: long rows are fast; no more than FEW_COLS floats
    GROUP_BYTES = 393216  # of all rows, as the second-level cache holds them
    # What is reserved does not depend on the instruction set: of the widest panels and the largest
    # tiles.
    F32_SPARE = 64     # columns of few rows that are not looked at: an image's are written whole
    WIDEST = 128       # bytes of a row of a panel
    HIGHEST = 14       # rows of a tile


cdef struct block_t:
    # A block of results, and where its operands are packed.
    const product_t *product
    matrix_t a, b, c, out          # the block's rows and columns of each
    ptrdiff_t rows, cols
    ptrdiff_t panels               # of rows
    char *left                     # a, as floats or doubles
    uint32_t *left_pairs           # or as pairs of bfloat16
    char *right                    # a panel of b
    const char *panel              # the one to multiply by: that, or one that was packed ahead
    char *sums                     # groups of columns of tiles
    ptrdiff_t group                # bytes of a row of such
    ptrdiff_t sums_step            # from one to the next
    bint waits                     # there is room for all groups, as sums are not complete yet
    const image_t *image           # what b is a view of; NULL: a matrix
    char *staged                   # elements of a panel of that
    ptrdiff_t first                # column of the image's, or of what was packed ahead
    matrix_t extras[MOST_EXTRAS]
    const char *params
    bint has_left, has_pairs       # what a is packed as
    int least_left                 # the exponent that makes pairs exact


# --- Scratch ------------------------------------------------------------------------------------

# `multiply_blocks` of floats, as one module hands it to others.
ctypedef void (*multiply_fn)(const product_state *, const block_t *, float, float) noexcept nogil


cdef inline ptrdiff_t wide_of(real like) noexcept nogil:
    return F32_WIDE if real is float else F64_WIDE


cdef inline ptrdiff_t lanes_of(real like) noexcept nogil:
    return F32_LANES if real is float else F64_LANES


cdef inline ptrdiff_t divide_scratch(const product_t *p, const product_state *state, ptrdiff_t rows,
                                     ptrdiff_t cols, ptrdiff_t few, char *memory, block_t *block,
                                     real like) noexcept nogil:
    """Divide scratch for a part of so many rows and columns; gives the bytes that it takes. `few`:
    the most rows of a block that `multiply_few` takes."""
    cdef ptrdiff_t depth = min(p.k, <ptrdiff_t>PIECE), used = 0, tiles
    cdef ptrdiff_t high = min(rows, <ptrdiff_t>BLOCK_ROWS)
    block.left = memory
    used += round_up(high * depth * sizeof(real) + SLACK, LINE)
    block.left_pairs = <uint32_t *>(memory + used)
    if state.halves:
        used += round_up(high * ((depth + 1) // 2) * sizeof(uint32_t) + SLACK, LINE)
    block.right = memory + used
    tiles = round_up(<ptrdiff_t>WIDEST * depth + SLACK, LINE)
    block.sums = block.right + tiles
    block.waits = not p.direct and p.k > PIECE
    block.group = group_bytes(state, high, round_up(cols * sizeof(real), WIDEST))
    # Rows that are a multiple of a page apart would take each other's place in the nearest cache.
    block.sums_step = block.group + (WIDEST if block.group > GROUP else 0)
    if p.direct:
        tiles += min(rows, <ptrdiff_t>HIGHEST) * WIDEST
    elif block.waits:
        cols = min(cols, <ptrdiff_t>BLOCK_COLS)
        tiles += high * block.sums_step * (
            round_up(cols * sizeof(real), block.group) // block.group)
    else:
        tiles += high * block.sums_step
    return used + max(tiles, few_bytes(few, cols, block.waits))


cdef inline ptrdiff_t group_bytes(const product_state *state, ptrdiff_t rows,
                                  ptrdiff_t row) noexcept nogil:
    """Bytes of a row that are finished at a time: a panel's width, or what steps are fast with."""
    cdef ptrdiff_t most = GROUP_BYTES // max(rows, <ptrdiff_t>1) // GROUP * GROUP
    if not state.finishes:
        return WIDEST
    return min(row, max(<ptrdiff_t>GROUP, min(<ptrdiff_t>MOST_GROUP, most)))


cdef inline ptrdiff_t few_step(ptrdiff_t cols) noexcept nogil:
    """Bytes from a row of sums of few rows to the next."""
    return round_up(cols * sizeof(float), WIDEST) + F32_SPARE * sizeof(float)


cdef inline ptrdiff_t few_bytes(ptrdiff_t rows, ptrdiff_t cols, bint waits) noexcept nogil:
    """Bytes that few rows take in place of panels and tiles: sums of a piece, and of all pieces."""
    return (2 if waits else 1) * rows * few_step(min(cols, <ptrdiff_t>FEW_COLS))


cdef inline ptrdiff_t few_of(const product_t *p) noexcept nogil:
    """The most rows of a matrix product that are few: the last part may have any number."""
    return min(p.m, <ptrdiff_t>FEW_ROWS)


cdef inline ptrdiff_t scratch_of(const product_t *p, const product_state *state, ptrdiff_t chunks,
                                 real like) noexcept nogil:
    """Bytes that a chunk packs in, where there are so many."""
    cdef grid_t grid = grid_of(p, state.itemsize, chunks)
    cdef block_t block
    return divide_scratch(p, state, grid.rows, grid.cols, few_of(p), NULL, &block, like)


# --- Blocks -------------------------------------------------------------------------------------

cdef inline void multiply_parts(const product_t *p, const product_state *state, real alpha,
                                real beta, const char *params, char *memory, ptrdiff_t chunk,
                                ptrdiff_t chunks) noexcept nogil:
    """This chunk's parts of all matrices of the batch."""
    cdef grid_t grid = grid_of(p, state.itemsize, chunks)
    cdef ptrdiff_t parts = parts_of(p, &grid), each = grid.down * grid.across
    cdef ptrdiff_t index, inside, row, col
    cdef block_t part
    cdef int which
    part.product, part.params, part.image, part.first = p, params, NULL, 0
    divide_scratch(p, state, grid.rows, grid.cols, few_of(p), memory, &part, alpha)
    for index in range(chunk * parts // chunks, (chunk + 1) * parts // chunks):
        inside = index % each
        row, col = inside // grid.across * grid.rows, inside % grid.across * grid.cols
        part.a = narrow(entry(p, A, index // each), row, grid.rows, 0, p.k)
        part.b = narrow(entry(p, B, index // each), 0, p.k, col, grid.cols)
        part.first = col
        part.out = narrow(entry(p, OUT, index // each), row, grid.rows, col, grid.cols)
        if beta != 0:
            part.c = narrow(entry(p, C, index // each), row, grid.rows, col, grid.cols)
        for which in range(p.extras):
            part.extras[which] = narrow(entry(p, EXTRA + which, index // each), row, grid.rows, col,
                                        grid.cols)
        multiply_blocks(state, &part, alpha, beta)


cdef inline matrix_t narrow(matrix_t matrix, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t col,
                            ptrdiff_t cols) noexcept nogil:
    """The part of a matrix from an element on, of at most so many rows and columns."""
    matrix.data += row * matrix.row_stride + col * matrix.col_stride
    matrix.rows, matrix.cols = min(rows, matrix.rows - row), min(cols, matrix.cols - col)
    return matrix


cdef inline void multiply_blocks(const product_state *state, const block_t *part, real alpha,
                                 real beta) noexcept nogil:
    cdef ptrdiff_t rows = part.out.rows, cols = part.out.cols
    cdef ptrdiff_t blocks = (rows + BLOCK_ROWS - 1) // BLOCK_ROWS
    cdef ptrdiff_t wide = BLOCK_COLS if part.waits or part.image != NULL else cols
    cdef ptrdiff_t index, begin, end, col
    cdef int which
    cdef block_t block = part[0]
    for index in range(blocks):
        begin, end = rows * index // blocks, rows * (index + 1) // blocks
        block.a = narrow(part.a, begin, end - begin, 0, part.a.cols)
        block.panels = (end - begin + MOST_TILE_ROWS - 1) // MOST_TILE_ROWS
        block.rows = end - begin
        col = 0
        while col < cols:
            block.b = narrow(part.b, 0, part.b.rows, col, wide)
            block.out = narrow(part.out, begin, end - begin, col, wide)
            if beta != 0:
                block.c = narrow(part.c, begin, end - begin, col, wide)
            for which in range(part.product.extras):
                block.extras[which] = narrow(part.extras[which], begin, end - begin, col, wide)
            block.cols, block.first = block.out.cols, part.first + col
            multiply_block(state, &block, alpha, beta)
            col += wide


cdef inline void multiply_block(const product_state *state, block_t *block, real alpha,
                                real beta) noexcept nogil:
    """All of k, piece by piece; none of it where it counts for nothing, as in BLAS."""
    cdef ptrdiff_t k = block.product.k if alpha != 0 else 0
    cdef ptrdiff_t wide = wide_of(alpha), begin = 0, depth, col = 0
    if k == 0:
        while col < block.cols:
            finish_nothing(state, block, col, alpha, beta)
            col += wide
        return
    if real is float:
        if are_few(block):
            multiply_few(state, block, alpha, beta)
            return
    while begin < k:
        depth = min(<ptrdiff_t>PIECE, k - begin)
        pack_rows(state, block, begin, depth, alpha)
        col = 0
        while col < block.cols:
            multiply_column(state, block, col, begin, depth, alpha, beta)
            col += wide
        begin += depth


cdef inline ptrdiff_t row_of(const block_t *block, ptrdiff_t panel) noexcept nogil:
    """First row of a panel: all have about as many."""
    return block.rows * panel // block.panels


# --- Few rows -------------------------------------------------------------------------------------

cdef inline bint are_few(const block_t *block) noexcept nogil:
    """Whether b is read in place, for one to four rows."""
    cdef const matrix_t *b = &block.b
    cdef int size = block.product.sizes[B]
    if block.image != NULL:
        return block.rows <= FEW_ROWS and block.image.size == sizeof(float)
    if block.product.packed:
        return block.rows <= FEW_ROWS
    if block.rows > FEW_ROWS or block.product.kinds[B] == IN_PANEL:
        return False
    return b.col_stride == size or b.cols == 1 or b.row_stride == size


cdef inline void multiply_few(const product_state *state, block_t *block, float alpha,
                              float beta) noexcept nogil:
    cdef const product_t *p = block.product
    cdef const matrix_t *b = &block.b
    cdef float *sums = <float *>block.right
    cdef char *total
    cdef const char *source
    cdef ptrdiff_t col = 0, begin, depth, wide, step, stride
    cdef bint across = not p.packed and b.row_stride == p.sizes[B] and (
        b.col_stride != p.sizes[B] or p.k > 1)
    while col < block.cols:
        wide = min(<ptrdiff_t>(FEW_COLS_ACROSS if across else FEW_COLS), block.cols - col)
        step = few_step(wide) // <ptrdiff_t>sizeof(float)
        total, stride = block.out.data + col * <ptrdiff_t>sizeof(float), block.out.row_stride
        if not p.direct:
            total, stride = block.right, few_step(wide)
            if block.waits:
                total += block.rows * stride
        begin = 0
        while begin < p.k:
            depth = min(<ptrdiff_t>PIECE, p.k - begin)
            pack_left(block, begin, depth, alpha)
            source = b.data + begin * b.row_stride + col * b.col_stride
            if p.packed:
                f32_few_panels(p.packed, <int>block.rows, depth, <const float *>block.left,
                               packed_panel(block, col, begin, F32_WIDE),
                               panel_bytes(F32_WIDE, p.k, p.sizes[B]), wide, sums, step)
            elif block.image != NULL:
                image_few(block.image, <int>block.rows, begin, depth, <const float *>block.left,
                          block.first + col, wide, sums, step)
            elif across:
                f32_few_across(p.kinds[B], <int>block.rows, depth, <const float *>block.left,
                               source, b.col_stride, wide, sums, step)
            else:
                f32_few_down(p.kinds[B], <int>block.rows, depth, <const float *>block.left, source,
                             b.row_stride, wide, sums, step)
            f32_add_sums(sums, step, block.rows, wide, total, stride, begin > 0)
            begin += depth
        finish(state, block, total, stride, p.direct, 0, block.rows, col, wide, alpha, beta)
        col += wide


# --- Panels -------------------------------------------------------------------------------------

cdef inline void pack(const product_t *p, int which, const char *source, ptrdiff_t stride,
                      ptrdiff_t k_stride, ptrdiff_t depth, ptrdiff_t count, char *target,
                      ptrdiff_t width, real like) noexcept nogil:
    """A panel of `count` rows of a, or columns of b, `stride` bytes apart."""
    cdef real[PIECE * 32] staged  # the widest panel's
    cdef ptrdiff_t i
    cdef int kind = p.kinds[which]
    if real is double:
        if kind == OF_F64:
            f64_pack(source, k_stride, stride, depth, count, <double *>target, width)
            return
    elif kind != IN_PANEL:
        if count == 1 and width == 1 and k_stride == p.sizes[which]:
            f32_load_tile(kind, source, 0, 1, depth, <float *>target, 0)
            return
        if stride == p.sizes[which] and count > 1:
            f32_pack_down(kind, source, k_stride, depth, count, <float *>target, width)
            return
        if k_stride == p.sizes[which] or depth == 1:
            f32_pack_across(kind, source, stride, depth, count, <float *>target, width)
            return
        if count == 1:
            f32_pack_down(kind, source, k_stride, depth, count, <float *>target, width)
            return
    for i in range(count):
        p.load[which](source + i * stride, k_stride, staged + i * PIECE, depth)
    if real is double:
        f64_pack(<char *>staged, sizeof(double), PIECE * sizeof(double), depth, count,
                 <double *>target, width)
    else:
        f32_pack_across(OF_F32, <char *>staged, PIECE * sizeof(float), depth, count,
                        <float *>target, width)


cdef inline int pack_pairs(const char *source, ptrdiff_t stride, ptrdiff_t k_stride,
                           ptrdiff_t depth, ptrdiff_t count, uint32_t *target, ptrdiff_t width,
                           int *least) noexcept nogil:
    """The same of bfloat16 as pairs; false where elements are not adjacent."""
    if stride == 2 and count > 1:
        least[0] = pack_pairs_down(source, k_stride, depth, count, target, width)
    elif k_stride == 2 or depth == 1:
        least[0] = pack_pairs_across(source, stride, depth, count, target, width)
    else:
        return False
    return True


cdef inline void pack_rows(const product_state *state, block_t *block, ptrdiff_t begin,
                           ptrdiff_t depth, real like) noexcept nogil:
    """The block's rows of a, panel after panel: as pairs, where they are worth it."""
    cdef const matrix_t *a = &block.a
    cdef ptrdiff_t panel, row, rows
    cdef int least
    block.has_left, block.least_left = False, 0
    block.has_pairs = state.pairs and block.rows >= PAIRS_FROM
    if block.has_pairs:
        block.least_left = 256
        for panel in range(block.panels):
            row = row_of(block, panel)
            rows = row_of(block, panel + 1) - row
            if not pack_pairs(a.data + row * a.row_stride + begin * a.col_stride, a.row_stride,
                              a.col_stride, depth, rows,
                              block.left_pairs + row * ((depth + 1) // 2), rows, &least):
                block.has_pairs = False
                break
            block.least_left = min(block.least_left, least)
    if not block.has_pairs:
        pack_left(block, begin, depth, like)


cdef inline void pack_left(block_t *block, ptrdiff_t begin, ptrdiff_t depth,
                           real like) noexcept nogil:
    cdef const matrix_t *a = &block.a
    cdef ptrdiff_t panel, row, rows
    for panel in range(block.panels):
        row = row_of(block, panel)
        rows = row_of(block, panel + 1) - row
        pack(block.product, A, a.data + row * a.row_stride + begin * a.col_stride, a.row_stride,
             a.col_stride, depth, rows, block.left + row * depth * <ptrdiff_t>sizeof(real), rows,
             like)
    block.has_left = True


# --- Panels that were packed ahead --------------------------------------------------------------

cdef inline char *packed_panel(const block_t *block, ptrdiff_t col, ptrdiff_t begin,
                               ptrdiff_t wide) noexcept nogil:
    """A piece of the panel of b that begins with a column of the block."""
    cdef const product_t *p = block.product
    return block.b.data + (block.first + col) // wide * panel_bytes(wide, p.k, p.sizes[B]) + (
        begin * wide * p.sizes[B])


cdef inline int *packed_exponents(const product_t *p, char *packed, ptrdiff_t first,
                                  ptrdiff_t begin) noexcept nogil:
    """Address of the least exponent of a piece of a panel of pairs."""
    cdef ptrdiff_t panels = (p.n + F32_WIDE - 1) // F32_WIDE, pieces = (p.k + PIECE - 1) // PIECE
    return <int *>(packed + panels * panel_bytes(F32_WIDE, p.k, p.sizes[B])) + (
        first // F32_WIDE * pieces + begin // PIECE)


cdef inline void pack_ahead(const product_t *p, const char *source, char *target, int kind,
                            real like) noexcept nogil:
    """Pack one matrix of b for all products with it."""
    cdef const matrix_t *b = &p.matrices[B]
    cdef ptrdiff_t wide = wide_of(like), col = 0, begin, depth, count, width
    cdef const char *at
    cdef char *panel = target
    while col < p.n:
        count = min(wide, p.n - col)
        width = round_up(count, lanes_of(like))
        begin = 0
        while begin < p.k:
            depth = min(<ptrdiff_t>PIECE, p.k - begin)
            at = source + begin * b.row_stride + col * b.col_stride
            if kind == IN_PAIRS:
                packed_exponents(p, target, col, begin)[0] = copy_pairs(
                    at, b.col_stride, b.row_stride, depth, count,
                    <uint32_t *>(panel + begin * wide * p.sizes[B]), width)
            else:
                copy_panel(at, b.col_stride, b.row_stride, depth, count, p.sizes[B],
                           panel + begin * wide * p.sizes[B], width)
            begin += depth
        panel += panel_bytes(wide, p.k, p.sizes[B])
        col += wide


# --- Tiles --------------------------------------------------------------------------------------

cdef struct tiles_t:
    # A column of tiles, of as many columns as a panel of b has.
    ptrdiff_t cols, width          # of results, and of the panel
    char *sums
    ptrdiff_t step                 # bytes from a row of results to the next
    bint in_output                 # the sums are the output's
    bint edge                      # and come there by way of a tile, as the output is not as wide


cdef inline tiles_t tiles_of(const block_t *block, ptrdiff_t col, real like) noexcept nogil:
    cdef tiles_t tiles
    cdef ptrdiff_t wide = wide_of(like), lanes = lanes_of(like), place
    tiles.cols = min(wide, block.cols - col)
    tiles.width = round_up(tiles.cols, lanes)
    tiles.in_output = block.product.direct and tiles.cols == tiles.width
    tiles.edge = block.product.direct and not tiles.in_output
    tiles.sums, tiles.step = block.sums, tiles.width * sizeof(real)
    if tiles.in_output:
        tiles.sums = block.out.data + col * <ptrdiff_t>sizeof(real)
        tiles.step = block.out.row_stride
    elif not tiles.edge:
        tiles.sums = group_of(block, col * <ptrdiff_t>sizeof(real), &place)
        tiles.sums += place
        tiles.step = block.sums_step
    return tiles


cdef inline char *group_of(const block_t *block, ptrdiff_t begin, ptrdiff_t *place) noexcept nogil:
    """The sums of the group in whose rows a byte is, and where."""
    place[0] = begin % block.group
    return block.sums + (
        begin // block.group * block.sums_step * block.rows if block.waits else 0)


cdef inline real *tile_at(const tiles_t *tiles, ptrdiff_t row, real like) noexcept nogil:
    """The sums of the tile whose first row this is."""
    return <real *>(tiles.sums + (0 if tiles.edge else row * tiles.step))


cdef inline void multiply_column(const product_state *state, block_t *block, ptrdiff_t col,
                                 ptrdiff_t begin, ptrdiff_t depth, real alpha,
                                 real beta) noexcept nogil:
    """A panel of b times all rows of the block."""
    cdef const product_t *p = block.product
    cdef const matrix_t *b = &block.b
    cdef const char *source = b.data + begin * b.row_stride + col * b.col_stride
    cdef tiles_t tiles = tiles_of(block, col, alpha)
    cdef int vectors = <int>(tiles.width // lanes_of(alpha))
    cdef bint pairs = False, on_the_way = False, add = begin > 0, last = begin + depth == p.k
    cdef ptrdiff_t panel, row, rows
    cdef int least = 0
    cdef real *sums
    cdef ptrdiff_t stride = b.row_stride, size = p.sizes[B]
    cdef bint floats = block.image != NULL and size == sizeof(real)
    block.panel = block.right
    if p.packed:
        source, stride = packed_panel(block, col, begin, wide_of(alpha)), tiles.width * size
    if block.image != NULL and not floats:
        stride, source = wide_of(alpha) * size, block.staged
        image_panel(block.image, begin, depth, block.first + col, tiles.cols, block.staged, stride)
    if p.packed == IN_PAIRS:
        if block.has_pairs:
            least = packed_exponents(p, b.data, block.first + col, begin)[0]
            pairs = pairs_exact(block.least_left, least)
        if pairs:
            block.panel = source
        else:
            widen_pairs(<const uint32_t *>source, depth, tiles.width, <float *>block.right)
    elif block.has_pairs and pack_pairs(source, b.col_stride, stride, depth, tiles.cols,
                                        <uint32_t *>block.right, tiles.width, &least):
        pairs = pairs_exact(block.least_left, least)
    if not pairs:
        if not block.has_left:
            pack_left(block, begin, depth, alpha)
        on_the_way = (real is float and p.kinds[B] != IN_PANEL and tiles.cols == tiles.width
                      and b.col_stride == p.sizes[B])
        if p.packed and size == sizeof(real):
            block.panel = source
        elif p.packed == IN_PAIRS:
            pass
        elif p.packed:
            on_the_way = True
        elif floats:
            on_the_way = False
            image_panel(block.image, begin, depth, block.first + col, tiles.cols, block.right,
                        tiles.width * <ptrdiff_t>sizeof(real))
        elif not on_the_way:
            pack(p, B, source, b.col_stride, stride, depth, tiles.cols, block.right, tiles.width,
                 alpha)
    for panel in range(block.panels):
        row = row_of(block, panel)
        rows = row_of(block, panel + 1) - row
        sums = tile_at(&tiles, row, alpha)
        multiply_tile(block, row, <int>rows, vectors, depth, pairs,
                      source if on_the_way and panel == 0 else NULL, stride, sums,
                      tiles.step // <ptrdiff_t>sizeof(real), add and not tiles.edge)
        if tiles.edge:
            add_to_output(block, sums, &tiles, row, rows, col, add)
    if last:
        finish_group(state, block, col + tiles.cols, alpha, beta)


cdef inline void multiply_tile(const block_t *block, ptrdiff_t row, int rows, int vectors,
                               ptrdiff_t depth, bint pairs, const char *source,
                               ptrdiff_t stride, real *sums, ptrdiff_t step,
                               bint add) noexcept nogil:
    cdef const char *left = block.left + row * depth * <ptrdiff_t>sizeof(real)
    if real is double:
        f64_tile(rows, vectors, depth, <const double *>left, <const double *>block.panel, sums,
                 step, add)
    elif pairs:
        depth = (depth + 1) // 2
        pairs_tile(rows, vectors, depth, block.left_pairs + row * depth,
                   <const uint32_t *>block.panel, sums, step, add)
    elif source != NULL:
        f32_tiles[rows - 1][vectors - 1][block.product.kinds[B]](
            depth, <const float *>left, source, stride, <float *>block.right, sums, step, add)
    else:
        f32_tile(rows, vectors, depth, <const float *>left, <const float *>block.panel, sums, step,
                 add)


# --- Results ------------------------------------------------------------------------------------

cdef inline void add_to_output(const block_t *block, const real *sums, const tiles_t *tiles,
                               ptrdiff_t row, ptrdiff_t rows, ptrdiff_t col,
                               bint add) noexcept nogil:
    """A piece's sums of a tile that is not as wide as registers."""
    cdef real[14 * 32] found
    cdef char *out = block.out.data + row * block.out.row_stride + col * <ptrdiff_t>sizeof(real)
    cdef ptrdiff_t i, size = rows * tiles.width
    if real is float:
        if add:
            f32_load_tile(OF_F32, out, block.out.row_stride, rows, tiles.cols, found, tiles.width)
            for i in range(size):
                found[i] += sums[i]
                found[i] = found[i] if found[i] == found[i] else <float>NAN
            sums = found
        f32_store_tile(OF_F32, sums, tiles.width, rows, tiles.cols, out, block.out.row_stride)


cdef inline void finish_nothing(const product_state *state, block_t *block, ptrdiff_t col,
                                real alpha, real beta) noexcept nogil:
    """Tiles of sums of nothing."""
    cdef tiles_t tiles = tiles_of(block, col, alpha)
    cdef ptrdiff_t panel, row, rows, i
    cdef real *sums
    for panel in range(block.panels):
        row = row_of(block, panel)
        rows = row_of(block, panel + 1) - row
        sums = tile_at(&tiles, row, alpha)
        for i in range(rows):
            memset(<char *>sums + i * tiles.step, 0, tiles.width * sizeof(real))
        if tiles.edge:
            add_to_output(block, sums, &tiles, row, rows, col, False)
    finish_group(state, block, col + tiles.cols, alpha, beta)


cdef inline void finish_group(const product_state *state, const block_t *block, ptrdiff_t end,
                              real alpha, real beta) noexcept nogil:
    """Finish the columns before `end`, once a group of them is complete."""
    cdef ptrdiff_t bytes = end * sizeof(real), place = 0, begin
    cdef char *sums
    if block.product.direct and not state.finishes or bytes % block.group and end != block.cols:
        return
    sums = group_of(block, bytes - 1, &place)
    begin = (bytes - 1 - place) // <ptrdiff_t>sizeof(real)
    if block.product.direct:
        finish(state, block, block.out.data + begin * <ptrdiff_t>sizeof(real), block.out.row_stride,
               True, 0, block.rows, begin, end - begin, alpha, beta)
    else:
        finish(state, block, sums, block.sums_step, False, 0, block.rows, begin, end - begin, alpha,
               beta)


cdef inline void finish(const product_state *state, const block_t *block, char *sums,
                        ptrdiff_t step, bint in_output, ptrdiff_t row, ptrdiff_t rows,
                        ptrdiff_t col, ptrdiff_t cols, real alpha, real beta) noexcept nogil:
    """Finish sums before they are rounded, which is done once."""
    cdef const product_t *p = block.product
    cdef const matrix_t *out = &block.out
    cdef ptrdiff_t i
    cdef char *place = out.data + row * out.row_stride + col * out.col_stride
    if not in_output:
        for i in range(rows):
            scale_row(block, <real *>(sums + i * step), row + i, col, cols, alpha, beta)
    if state.finishes:
        run_steps(state, block, sums, step, row, rows, col, cols)
        return
    if in_output:
        return
    if block.image != NULL and block.image.scattered:
        for i in range(rows):
            scatter(state, block, sums + i * step, row + i, col, cols, alpha)
        return
    if real is float:
        if p.kinds[OUT] != IN_PANEL and (cols == 1 or out.col_stride == p.sizes[OUT]):
            f32_store_tile(p.kinds[OUT], <float *>sums, step // <ptrdiff_t>sizeof(float), rows,
                           cols, place, out.row_stride)
            return
    for i in range(rows):
        state.store(sums + i * step, place + i * out.row_stride, out.col_stride, cols)


cdef inline void scatter(const product_state *state, const block_t *block, const char *sums,
                         ptrdiff_t row, ptrdiff_t col, ptrdiff_t cols, real like) noexcept nogil:
    """Results of positions, row by row of these."""
    cdef char *place = block.out.data + row * block.out.row_stride
    cdef ptrdiff_t at = block.first + col, end = block.first + col + cols
    cdef image_run run
    while at < end:
        run = image_run_at(block.image, at, end)
        state.store(sums, place + run.to, block.image.out_col, run.count)
        sums += run.count * <ptrdiff_t>sizeof(real)
        at += run.count


cdef inline tile_view view_of_matrix(const matrix_t *matrix, ptrdiff_t row,
                                     ptrdiff_t col) noexcept nogil:
    cdef tile_view view
    view.data = matrix.data + row * matrix.row_stride + col * matrix.col_stride
    view.row_stride, view.col_stride = matrix.row_stride, matrix.col_stride
    return view


cdef inline void run_steps(const product_state *state, const block_t *block, char *sums,
                           ptrdiff_t step, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t col,
                           ptrdiff_t cols) noexcept nogil:
    cdef tile_view extras[MOST_EXTRAS]
    cdef tile_view made = view_of_rows(sums, step, sizeof(float))
    cdef tile_view out = view_of_matrix(&block.out, row, col)
    cdef int which
    for which in range(block.product.extras):
        extras[which] = view_of_matrix(&block.extras[which], row, col)
    run_finish(&state.finish, &made, extras, &out, rows, cols, block.params)


cdef inline void scale_row(const block_t *block, real *sums, ptrdiff_t row, ptrdiff_t col,
                           ptrdiff_t cols, real alpha, real beta) noexcept nogil:
    """beta*c + alpha*sums."""
    cdef real[FEW_COLS] addends
    cdef ptrdiff_t i
    if beta != 0:
        load_addends(block, addends, row, col, cols)
        if alpha == 0:  # the product is not computed: a sum with 0 would lose the sign of -0
            for i in range(cols):
                sums[i] = beta * addends[i]
        else:
            for i in range(cols):
                sums[i] = beta * addends[i] + alpha * sums[i]
    elif alpha != 1 and alpha != 0:
        for i in range(cols):
            sums[i] *= alpha
    else:
        return
    for i in range(cols):
        sums[i] = sums[i] if sums[i] == sums[i] else <real>NAN


cdef inline void load_addends(const block_t *block, real *addends, ptrdiff_t row, ptrdiff_t col,
                              ptrdiff_t cols) noexcept nogil:
    cdef const product_t *p = block.product
    cdef const matrix_t *c = &block.c
    cdef const char *source = c.data + row * c.row_stride + col * c.col_stride
    if real is float:
        if p.kinds[C] != IN_PANEL and (cols == 1 or c.col_stride == p.sizes[C]):
            f32_load_tile(p.kinds[C], source, 0, 1, cols, addends, 0)
            return
    p.load[C](source, c.col_stride, <char *>addends, cols)
