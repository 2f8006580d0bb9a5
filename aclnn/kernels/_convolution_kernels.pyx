"""Kernels of convolutions: products of weights with images (`products/image.h`), cell by cell.

Operands, with any strides, are input [N, C, Z, Y, X], weight [Cout, C / groups * taps]
(transposed: [C, Cout / groups, taps]), maybe bias [Cout], and out [N, Cout, Z, Y, X];
convolutions along fewer axes have sizes of 1 first. The gradient of weights has gradients of
results [N, rows, positions] and images [N, channels, Z, Y, X] as operands, and out
[rows, channels / groups * taps].

A cell is a group of channels of one entry of the batch, a band of positions, and a part of the
rows of weights. Its image is laid out once. A transposed convolution is one product for each
residue of positions by the stride: no zero between elements is multiplied. Zeros around them are,
unless weights are infinite or NaN: then it is one for all positions that the same taps reach. So it
is for a convolution that stands for a transposed one with steps of 1.
The sum over channels and taps has the order of products, so results depend on no cell.
"""

from libc.math cimport isnan
from libc.stddef cimport size_t
from libc.stdint cimport uint16_t, uint32_t, uintptr_t
from libc.string cimport memcmp, memcpy, memset

from aclnn._kernels cimport load_of, store_of
from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.shared_formulas cimport times_sigma
from aclnn.kernels.instruction_sets cimport SETS_BUILT, set_in_use, take_set, use_set
from aclnn.kernels.products.blocks cimport block_t, divide_scratch, few_of, multiply_fn
from aclnn.kernels.products.direct cimport (
    END_CLAMP,
    END_HARDSWISH,
    END_NAN,
    END_NONE,
    END_RELU,
    END_SILU,
    direct_columns,
    direct_end,
    direct_end_rows,
    direct_hardswish,
    direct_has_smooth_ends,
    direct_plane,
    direct_row,
    direct_smooth_rows,
    direct_t,
)
from aclnn.kernels.products.image cimport (
    IMAGE_CHAINS,
    IMAGE_ROWS,
    IMAGE_SLACK,
    image_elements,
    image_every_second,
    image_gather,
    image_pairs,
    image_plane,
    image_row,
    image_rows,
    image_t,
)
from aclnn.kernels.products.microkernel cimport (
    F32_LANES,
    FEW_ROWS,
    MOST_TILE_ROWS,
    OF_BF16,
    OF_F16,
    OF_F32,
    PIECE,
    f32_load_tile,
    f32_pack_across,
    f32_store_tile,
    pairs_usable,
)
from aclnn.kernels.products.product cimport (
    B,
    MOST_EXTRAS,
    OUT,
    OPERANDS,
    product_state,
    product_t,
    round_up,
)

from aclnn.kernels.products.steps cimport (
    prepare_steps,
    run_finish,
    set_steps,
    steps_state,
    view_of_rows,
)
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context, kernel_number, tile_view

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel, Packing

cdef enum:
    AXES = 3
    LINE = 64
    IMAGE_BYTES = 4194304  # of a cell: larger ones are divided into bands
    BAND_BYTES = 524288    # where bands need not pack weights again: what the cache holds
    SEVERAL_BYTES = 524288  # of the images of several entries of the batch, as one
    SEVERAL_COLS = 1024    # of their positions
    CHUNK_WORK = 2097152   # multiplications that are worth handing to a thread
    SHARE_WORK = 67108864  # that are worth a chunk of their own: threads take what others leave
    MOST_SHARES = 4        # of them for each thread
    ROW_COST = 24          # what packing an element of weights takes, in multiplications
    POSITION_COST = 4      # what copying an element of the image to a panel does
    LEAST_ROWS = 28        # of weights that are worth a cell
    STAGED_ROW = 64        # bytes of a row of a panel of halves
    PLANE_SUMS = 2048      # sums of a channel by itself that are finished at a time
    WINDOW_BYTES = 262144  # of windows of an image that are multiplied at a time
    WINDOW_COLS = 1024     # elements of weights that one row has in a unit
    MOST_WINDOWS = 4096    # at a time
    MOST_VIEWS = 12
    DIRECT_COLS = 1024     # of sums that wait in the output
    DIRECT_PANELS = 42     # of weights, a piece of which the second-level cache holds
    DIRECT_BYTES = 131072  # of results that steps finish at a time
    LEAST_COLS = 128       # of them
    WIDEST = 128           # bytes of a row of a panel

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


KINDS = {"float32": OF_F32, "float16": OF_F16, "bfloat16": OF_BF16}


cdef struct conv_t:
    steps_state stepped                      # what follows, unless it is a `direct_end`
    multiply_fn multiply                     # of the module of products
    bint has_bias, transposed
    int extras                               # operands that only steps on results read
    bint has_steps
    int end                                  # or an addition and an activation, see `direct_end`
    bint adds, scales_sums
    int low                                  # the place of the activation's first number
    bint direct                              # floats that may be finished in registers
    bint ahead                               # weights were packed
    bint plain                               # kernels of one element with steps of 1
    bint within                              # no weight is multiplied by what is around the input
    bint by_planes                           # a channel for each row of weights: depthwise
    bint in_place                            # of which floats are stored as they are made
    ptrdiff_t batch, groups, channels, rows  # of a group: channels and rows of weights
    ptrdiff_t size[AXES]                     # of the input
    ptrdiff_t out[AXES]
    ptrdiff_t kernel[AXES]
    ptrdiff_t stride[AXES]
    ptrdiff_t padding[AXES]
    ptrdiff_t dilation[AXES]
    int item, image_item                     # bytes of an element, as it is and in the image
    load_fn widen                            # to the image's, else NULL
    ptrdiff_t bands, downs                   # cells of a group
    ptrdiff_t entries                        # of the batch, in a cell
    int axis                                 # that bands divide


cdef struct layout_t:
    # Of a cell's image along each axis.
    ptrdiff_t start[AXES]      # of the input, where the image begins: its margin is before 0
    ptrdiff_t length[AXES]     # elements
    ptrdiff_t step             # of positions along rows: residues lie apart
    ptrdiff_t residues         # how many of them there are
    ptrdiff_t each             # elements of one
    ptrdiff_t row, plane, channel  # bytes


# --- The image ------------------------------------------------------------------------------------

cdef inline ptrdiff_t floor_div(ptrdiff_t a, ptrdiff_t b) noexcept nogil:
    return a // b if a >= 0 else -((-a + b - 1) // b)


cdef void lay_axis(const conv_t *c, int axis, ptrdiff_t begin, ptrdiff_t count,
                   layout_t *layout) noexcept nogil:
    """Lay an axis: begin and length of the image, for positions of the results."""
    cdef ptrdiff_t reach = (c.kernel[axis] - 1) * c.dilation[axis], last
    if not c.transposed:
        layout.start[axis] = begin * c.stride[axis] - c.padding[axis]
        layout.length[axis] = (count - 1) * c.stride[axis] + reach + 1
        return
    layout.start[axis] = floor_div(c.padding[axis] - reach, c.stride[axis])
    last = floor_div(c.stride[axis] - 1 + c.padding[axis], c.stride[axis])
    layout.length[axis] = (positions_of(c, axis, 0) + last - layout.start[axis])


cdef inline ptrdiff_t positions_of(const conv_t *c, int axis, ptrdiff_t residue) noexcept nogil:
    """Number of positions with a residue, of a transposed convolution."""
    return max(<ptrdiff_t>0, (c.out[axis] - residue + c.stride[axis] - 1) // c.stride[axis])


cdef void lay_rows(const conv_t *c, layout_t *layout) noexcept nogil:
    cdef ptrdiff_t reach = (c.kernel[2] - 1) * c.dilation[2]
    layout.step = 1 if c.transposed or c.by_planes and not c.in_place else c.stride[2]
    layout.residues = min(layout.step, reach + 1)
    layout.each = (layout.length[2] + layout.step - 1) // layout.step
    layout.row = layout.residues * layout.each * c.image_item
    layout.plane = layout.row * layout.length[1]
    layout.channel = layout.plane * layout.length[0]


cdef void lay_image(const conv_t *c, const layout_t *layout, const array_view *view,
                    const char *source, char *to) noexcept nogil:
    """The rows of an entry between the margins, the elements of each residue together."""
    if (c.widen == NULL and c.image_item == sizeof(float) and layout.residues == layout.step <= 2
            and (view.strides[4] == sizeof(float) or c.size[2] == 1)):
        lay_floats(c, layout, view, source, to)
        return
    cdef ptrdiff_t residue, first, low, high, channel, z, y, at_z, at_y
    cdef ptrdiff_t step = layout.step, size = c.image_item, each = layout.each
    cdef ptrdiff_t apart = step * view.strides[4]
    cdef const char *place
    cdef char *row
    for residue in range(layout.residues):
        first = layout.start[2] + residue  # the first of the input
        low = min(each, -floor_div(first, step)) if first < 0 else 0
        high = floor_div(c.size[2] - 1 - first, step) + 1
        high = max(low, min(each, high))
        row = to + (residue * each + low) * size
        for channel in range(c.channels):
            for z in range(layout.length[0]):
                at_z = layout.start[0] + z
                for y in range(layout.length[1]):
                    at_y = layout.start[1] + y
                    if 0 <= at_z < c.size[0] and 0 <= at_y < c.size[1]:
                        place = (source + channel * view.strides[1] + at_z * view.strides[2]
                                 + at_y * view.strides[3]
                                 + (first + low * step) * view.strides[4])
                        if c.widen != NULL:
                            c.widen(place, apart, row, high - low)
                        else:
                            image_elements(place, apart, row, high - low, <int>size)
                    row += layout.row


cdef void lay_floats(const conv_t *c, const layout_t *layout, const array_view *view,
                     const char *source, char *to) noexcept nogil:
    """The same for floats that lie side by side, with steps of one or two."""
    cdef ptrdiff_t low = max(<ptrdiff_t>0, -layout.start[2]), channel, z, at_z, each = layout.each
    cdef ptrdiff_t n = min(layout.length[2], c.size[2] - layout.start[2]) - low
    cdef ptrdiff_t top = max(<ptrdiff_t>0, -layout.start[1])
    cdef ptrdiff_t rows = min(layout.length[1], c.size[1] - layout.start[1]) - top
    cdef const char *place
    cdef char *row
    if n <= 0 or rows <= 0:
        return
    source += ((layout.start[1] + top) * view.strides[3]
               + (layout.start[2] + low) * <ptrdiff_t>sizeof(float))
    to += top * layout.row
    for channel in range(c.channels):
        for z in range(layout.length[0]):
            at_z = layout.start[0] + z
            if not 0 <= at_z < c.size[0]:
                continue
            place = source + channel * view.strides[1] + at_z * view.strides[2]
            row = to + channel * layout.channel + z * layout.plane
            if layout.step == 1:
                image_rows(place, view.strides[3], rows, n, row + low * sizeof(float), layout.row)
            else:
                image_pairs(place, view.strides[3], rows, n,
                            row + (low % 2 * each + low // 2) * sizeof(float),
                            row + ((low + 1) % 2 * each + (low + 1) // 2) * sizeof(float),
                            layout.row)


# --- Cells ----------------------------------------------------------------------------------------

cdef struct room_t:
    # Where a cell has its image, taps and panels.
    ptrdiff_t *places
    char *image
    char *weight
    char *staged
    char *panels
    ptrdiff_t used
    ptrdiff_t image_bytes
    ptrdiff_t group  # whose weights are known to be finite or not
    bint is_finite
    layout_t layout  # that `places` and margins are of
    ptrdiff_t taps
    char *left       # weights of a piece, where they are not packed ahead
    char *panel      # columns of one
    const char *params
    const char *laid  # what the image is of


cdef void divide_room(const conv_t *c, char *memory, room_t *room) noexcept nogil:
    cdef ptrdiff_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2], used = 0
    cdef ptrdiff_t band = most_of_band(c)
    cdef layout_t layout
    cdef product_t p
    cdef block_t block
    cdef ptrdiff_t cols = 1, panel = 0
    cdef int axis
    for axis in range(AXES):
        lay_axis(c, axis, 0, band if axis == c.axis else c.out[axis], &layout)
        cols *= band if axis == c.axis else c.out[axis]
    lay_rows(c, &layout)
    room.places = <ptrdiff_t *>memory
    used += round_up(taps * sizeof(ptrdiff_t), LINE)
    room.image = memory + used
    room.image_bytes = layout.channel * c.channels * c.entries + IMAGE_SLACK
    if not c.plain:
        used += round_up(room.image_bytes, LINE)
    cols *= c.entries
    room.weight = memory + used
    if c.transposed or c.within:
        used += round_up(c.rows * c.channels * taps * c.item, LINE)
    room.staged = memory + used
    if c.image_item == 2:
        used += PIECE * STAGED_ROW + LINE
    room.panels = memory + used
    set_product(c, cols, c.channels * taps, False, &p)
    p.direct = False
    room.left = room.panels
    room.panel = room.panels
    if c.direct:
        room.panel += 0 if c.ahead else round_up(
            (rows_of_part(c) + MOST_TILE_ROWS) * <ptrdiff_t>sizeof(float)
            * min(<ptrdiff_t>PIECE, c.channels * taps) + LINE, LINE)
        panel = room.panel - room.panels + PIECE * WIDEST + IMAGE_SLACK
    used += max(panel, divide_part(c, &p, rows_of_part(c), cols, room.panels, &block))
    p.direct = True
    room.used, room.group, room.laid = used, -1, NULL
    memset(&room.layout, 0, sizeof(layout_t))


cdef inline ptrdiff_t divide_part(const conv_t *c, const product_t *p, ptrdiff_t rows,
                                  ptrdiff_t cols, char *memory, block_t *block) noexcept nogil:
    """Divide scratch for the product of rows of weights with an image; the bytes that it takes."""
    cdef ptrdiff_t few = rows if rows <= FEW_ROWS else 0
    return divide_scratch(p, &c.stepped.product, rows, cols, few, memory, block, <float>0)


cdef inline ptrdiff_t most_of_band(const conv_t *c) noexcept nogil:
    return (c.out[c.axis] + c.bands - 1) // c.bands


cdef inline ptrdiff_t rows_of_part(const conv_t *c) noexcept nogil:
    cdef ptrdiff_t rows = (c.rows + c.downs - 1) // c.downs
    return min(c.rows, rows + MOST_TILE_ROWS) if c.direct else rows


cdef void set_product(const conv_t *c, ptrdiff_t cols, ptrdiff_t depth, bint direct,
                      product_t *p) noexcept nogil:
    cdef int which
    memset(p, 0, sizeof(product_t))
    p.m, p.n, p.k, p.batch = c.rows, cols, depth, 1
    for which in range(OUT):
        p.load[which] = c.stepped.product.load[which]
    for which in range(OPERANDS):
        p.kinds[which] = c.stepped.product.kinds[which]
        p.sizes[which] = c.stepped.product.sizes[which]
    if c.image_item != c.item:
        p.kinds[B], p.sizes[B] = OF_F32, c.image_item
    p.has_c, p.direct = c.has_bias, direct


cdef inline ptrdiff_t cells_of(const conv_t *c) noexcept nogil:
    return (c.batch + c.entries - 1) // c.entries * c.groups * c.bands * c.downs


cdef int convolve(const array_view *views, const void *state, const void *params, void *scratch,
                  ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef conv_t c = (<const conv_t *>state)[0]
    cdef array_view own[MOST_VIEWS]
    cdef ptrdiff_t numbers[MOST_VIEWS][2][AXES + 2]
    cdef ptrdiff_t cells, cell
    cdef room_t room
    cdef int which, count = 3 + c.has_bias + c.extras
    for which in range(count):
        own[which] = views[which]
        if which != 1 and (which != 2 or not c.has_bias):
            in_five_dims(&views[which], numbers[which][0], numbers[which][1], &own[which])
    divide(&c, chunks)
    divide_room(&c, <char *>scratch, &room)
    room.params = <const char *>params
    cells = cells_of(&c)
    if c.in_place and not c.within and c.bands == 1:
        convolve_planes(&c, own, cells * chunk // chunks, cells * (chunk + 1) // chunks, &room)
        return 0
    for cell in range(cells * chunk // chunks, cells * (chunk + 1) // chunks):
        convolve_cell(&c, own, cell, &room)
    return 0


cdef void in_five_dims(const array_view *view, ptrdiff_t *shape, ptrdiff_t *strides,
                       array_view *made) noexcept nogil:
    """A view whose sizes along axes that it lacks are 1."""
    cdef int axis, at
    for axis in range(AXES + 2):
        at = axis if axis < 2 else axis - (AXES + 2 - view.ndim)
        shape[axis] = view.shape[at] if axis < 2 or at >= 2 else 1
        strides[axis] = view.strides[at] if axis < 2 or at >= 2 else 0
    made.ndim, made.shape, made.strides = AXES + 2, shape, strides


cdef void divide(conv_t *c, ptrdiff_t chunks) noexcept nogil:
    """Into as many cells as there are chunks, by what is packed the less again: weights for each
    band of positions, the image for each part of the rows. Large images are divided anyway."""
    cdef ptrdiff_t each = (chunks + c.batch * c.groups - 1) // (c.batch * c.groups)
    cdef ptrdiff_t image = c.item * c.channels, cols = 1, most
    cdef int axis
    for axis in range(AXES):
        image *= c.size[axis]
        cols *= c.out[axis]
    c.bands = c.downs = c.entries = 1
    if not c.transposed:
        most = max(<ptrdiff_t>1, c.out[c.axis] // (2 * c.kernel[c.axis]))
        c.bands = min(most, max(<ptrdiff_t>1, image // (BAND_BYTES if c.ahead else IMAGE_BYTES)))
        if c.plain and c.ahead:  # nothing is laid out
            c.bands = 1
        if each > c.bands and c.rows * ROW_COST < cols * POSITION_COST:
            c.bands = min(most, each)
    if each > c.bands:
        c.downs = max(<ptrdiff_t>1, min(c.rows // LEAST_ROWS, each // c.bands))
    if (c.bands == 1 and c.downs == 1 and c.out[0] == 1 and not c.transposed
            and not c.direct and not c.in_place):
        most = min(c.batch * c.groups // chunks, SEVERAL_COLS // max(<ptrdiff_t>1, cols))
        most = min(most, SEVERAL_BYTES // max(<ptrdiff_t>1, image))
        c.entries = max(<ptrdiff_t>1, min(c.batch, most))


cdef struct place_t:
    # Where the results of a cell are.
    ptrdiff_t entry, entries, group, down
    ptrdiff_t first, rows       # of the group's rows
    ptrdiff_t begin[AXES]
    ptrdiff_t count[AXES]


cdef place_t place_of_cell(const conv_t *c, ptrdiff_t cell) noexcept nogil:
    cdef ptrdiff_t band = cell // c.downs % c.bands
    cdef place_t at
    cdef int axis
    at.down = cell % c.downs
    at.group = cell // (c.downs * c.bands) % c.groups
    at.entry = cell // (c.downs * c.bands * c.groups) * c.entries
    at.entries = min(c.entries, c.batch - at.entry)
    at.first = row_of_part(c, at.down)
    at.rows = row_of_part(c, at.down + 1) - at.first
    for axis in range(AXES):
        at.begin[axis], at.count[axis] = 0, c.out[axis]
    at.begin[c.axis] = c.out[c.axis] * band // c.bands
    at.count[c.axis] = c.out[c.axis] * (band + 1) // c.bands - at.begin[c.axis]
    return at


cdef inline ptrdiff_t row_of_part(const conv_t *c, ptrdiff_t down) noexcept nogil:
    """The first row of a part of the weights: where panels begin, if they were packed."""
    cdef ptrdiff_t panels = panels_of(c.rows)
    if c.direct:
        return c.rows * (panels * down // c.downs) // panels
    return c.rows * down // c.downs


cdef inline ptrdiff_t panels_of(ptrdiff_t rows) noexcept nogil:
    return (rows + MOST_TILE_ROWS - 1) // MOST_TILE_ROWS


cdef void convolve_cell(const conv_t *c, const array_view *views, ptrdiff_t cell,
                        room_t *room) noexcept nogil:
    cdef place_t at = place_of_cell(c, cell)
    if c.direct:
        multiply_direct(c, views, &at, room)
        return
    sum_cell(c, views, &at, room)
    if c.has_steps or c.adds or c.end and not c.in_place:
        finish_cell(c, views, &at, room)


cdef void sum_cell(const conv_t *c, const array_view *views, const place_t *at,
                   room_t *room) noexcept nogil:
    cdef ptrdiff_t entry = at.entry, entries = at.entries, group = at.group, one
    cdef place_t part = at[0]  # a residue at a time, where the convolution is transposed
    cdef ptrdiff_t *begin = part.begin
    cdef ptrdiff_t *count = part.count
    cdef ptrdiff_t z, y, x
    cdef layout_t layout
    cdef int axis
    memset(&layout, 0, sizeof(layout))
    for axis in range(AXES):
        lay_axis(c, axis, begin[axis], count[axis], &layout)
    lay_rows(c, &layout)
    if memcmp(&layout, &room.layout, sizeof(layout)) != 0:
        room.layout = layout
        memset(room.image, 0, room.image_bytes)
        if not c.transposed:
            room.taps = find_taps(c, NULL, &layout, group, NULL, False, room)
    if c.within and not group_is_finite(c, &views[1], group, room):
        for one in range(entries):
            lay_image(c, &layout, &views[0], views[0].data + (entry + one) * views[0].strides[0]
                      + group * c.channels * views[0].strides[1], room.image)
            multiply_without_margins(c, views, entry + one, group, at, begin, count, &layout,
                                     room)
        memset(&room.layout, 0, sizeof(layout_t))  # as taps are others now
        return
    if c.by_planes:
        for one in range(entries):
            convolve_plane(c, views, entry + one, group, begin, count, &layout, room)
        return
    for one in range(entries):
        lay_image(c, &layout, &views[0], views[0].data + (entry + one) * views[0].strides[0]
                  + group * c.channels * views[0].strides[1],
                  room.image + one * c.channels * layout.channel)
    if not c.transposed:
        multiply_positions(c, views, entry, entries, group, at, begin, count, NULL, &layout,
                           room)
        return
    for z in range(c.stride[0]):
        for y in range(c.stride[1]):
            for x in range(c.stride[2]):
                begin[0], begin[1], begin[2] = z, y, x
                for axis in range(AXES):
                    count[axis] = positions_of(c, axis, begin[axis])
                if count[0] and count[1] and count[2]:
                    room.taps = find_taps(c, begin, &layout, group, &views[1], False, room)
                    if are_finite(c, room):
                        multiply_positions(c, views, entry, 1, group, at, begin, count, begin,
                                           &layout, room)
                    else:
                        multiply_without_margins(c, views, entry, group, at, begin, count,
                                                 &layout, room)


cdef bint are_finite(const conv_t *c, const room_t *room) noexcept nogil:
    """Whether the weights of the taps are finite: their products with a margin's zeros are 0."""
    return all_finite(c, room.weight, c.item, c.rows * c.channels * room.taps)


cdef bint group_is_finite(const conv_t *c, const array_view *weight, ptrdiff_t group,
                          room_t *room) noexcept nogil:
    """Whether the weights of a group are; looked at once for cells that follow each other."""
    cdef ptrdiff_t row
    if room.group != group:
        room.group, room.is_finite = group, True
        for row in range(group * c.rows, (group + 1) * c.rows):
            room.is_finite &= all_finite(c, weight.data + row * weight.strides[0],
                                         weight.strides[1], weight.shape[1])
    return room.is_finite


cdef inline bint all_finite(const conv_t *c, const char *weights, ptrdiff_t step,
                            ptrdiff_t count) noexcept nogil:
    """Whether weights are neither infinite nor NaN."""
    cdef const uint32_t *words = <const uint32_t *>weights
    cdef const uint16_t *halves = <const uint16_t *>weights
    cdef uint32_t exponent = 0x7F800000u
    cdef ptrdiff_t i
    cdef bint found = False
    if c.item == 4 and step == 4:
        for i in range(count):
            found |= (words[i] & exponent) == exponent
        return not found
    if c.item == 4:
        for i in range(count):
            found |= ((<const uint32_t *>(weights + i * step))[0] & exponent) == exponent
        return not found
    exponent = 0x7C00u if c.stepped.product.kinds[B] == OF_F16 else 0x7F80u
    if step == 2:
        for i in range(count):
            found |= (halves[i] & exponent) == exponent
        return not found
    for i in range(count):
        found |= ((<const uint16_t *>(weights + i * step))[0] & exponent) == exponent
    return not found


cdef void multiply_without_margins(const conv_t *c, const array_view *views, ptrdiff_t entry,
                                   ptrdiff_t group, const place_t *at, const ptrdiff_t *residue,
                                   const ptrdiff_t *count, const layout_t *layout,
                                   room_t *room) noexcept nogil:
    """The positions of a residue, those that the same taps reach at a time: of these taps only."""
    cdef ptrdiff_t begin[AXES]
    cdef ptrdiff_t some[AXES]
    cdef ptrdiff_t end[AXES]
    cdef int axis
    for axis in range(AXES):
        end[axis] = residue[axis] + count[axis] * c.stride[axis]
    begin[0] = residue[0]
    while begin[0] < end[0]:
        some[0] = count_alike(c, 0, begin[0], end[0])
        begin[1] = residue[1]
        while begin[1] < end[1]:
            some[1] = count_alike(c, 1, begin[1], end[1])
            begin[2] = residue[2]
            while begin[2] < end[2]:
                some[2] = count_alike(c, 2, begin[2], end[2])
                room.taps = find_taps(c, begin, layout, group, &views[1], True, room)
                multiply_positions(c, views, entry, 1, group, at, begin, some, begin, layout,
                                   room)
                begin[2] += some[2] * c.stride[2]
            begin[1] += some[1] * c.stride[1]
        begin[0] += some[0] * c.stride[0]


cdef ptrdiff_t count_alike(const conv_t *c, int axis, ptrdiff_t begin,
                           ptrdiff_t end) noexcept nogil:
    """Number of results of a residue, from one on, that the same taps reach."""
    cdef ptrdiff_t count = (end - begin + c.stride[axis] - 1) // c.stride[axis], tap, at
    for tap in range(c.kernel[axis]):
        at = begin + c.padding[axis] - tap * c.dilation[axis]
        if not c.transposed:  # with steps of 1
            at = begin - c.padding[axis] + tap * c.dilation[axis]
        if at % c.stride[axis] != 0:
            continue
        at //= c.stride[axis]
        if at < 0:
            count = min(count, -at)
        elif at < c.size[axis]:
            count = min(count, c.size[axis] - at)
    return count


cdef ptrdiff_t find_taps(const conv_t *c, const ptrdiff_t *residue, const layout_t *layout,
                         ptrdiff_t group, const array_view *weight, bint inside,
                         const room_t *room) noexcept nogil:
    """Find what taps read from a position on, and their number; `inside`: of those in the input.
    Weights of a transposed convolution, or of some taps, are put into rows."""
    cdef ptrdiff_t taps = 0, all_taps = c.kernel[0] * c.kernel[1] * c.kernel[2]
    cdef ptrdiff_t at[AXES]
    cdef ptrdiff_t index, rest, tap, row, used, by
    cdef const char *source
    cdef bint reaches
    cdef int axis
    for used in range(2):  # counted first, as rows are as long
        tap = 0
        for index in range(all_taps):
            rest, reaches = index, True
            for axis in range(AXES - 1, -1, -1):
                at[axis] = rest % c.kernel[axis] * c.dilation[axis]
                rest //= c.kernel[axis]
                if residue != NULL:
                    at[axis] = (residue[axis] + c.padding[axis] - at[axis] if c.transposed
                                else residue[axis] - c.padding[axis] + at[axis])
                    reaches = reaches and at[axis] % c.stride[axis] == 0
                    at[axis] = floor_div(at[axis], c.stride[axis])
                    reaches = reaches and (not inside or 0 <= at[axis] < c.size[axis])
                    at[axis] -= layout.start[axis]
            if not reaches:
                continue
            if used:
                room.places[tap] = (at[0] * layout.plane + at[1] * layout.row
                                    + (at[2] % layout.step * layout.each
                                       + at[2] // layout.step) * c.image_item)
                if residue != NULL:
                    for row in range(c.rows):
                        source = (weight.data + group * c.channels * weight.strides[0]
                                  + row * weight.strides[1] + index * weight.strides[2])
                        by = weight.strides[0]
                        if not c.transposed:
                            source = (weight.data + (group * c.rows + row) * weight.strides[0]
                                      + index * weight.strides[1])
                            by = all_taps * weight.strides[1]
                        image_gather(source, by,
                                     room.weight + (row * c.channels * taps + tap) * c.item,
                                     taps * c.item, c.channels, c.item)
            tap += 1
        taps = tap
    return taps


cdef void multiply_positions(const conv_t *c, const array_view *views, ptrdiff_t entry,
                             ptrdiff_t entries, ptrdiff_t group, const place_t *at,
                             const ptrdiff_t *begin,
                             const ptrdiff_t *count, const ptrdiff_t *residue,
                             const layout_t *layout, const room_t *room) noexcept nogil:
    """The results of some positions: a product of weights with the image."""
    cdef const array_view *out = &views[2 + c.has_bias + c.extras]
    cdef ptrdiff_t first = at.first, rows = at.rows
    cdef ptrdiff_t cols = entries * count[0] * count[1] * count[2], depth
    cdef ptrdiff_t size = c.stepped.product.sizes[OUT]
    cdef ptrdiff_t channel = group * c.rows + first  # of the results
    cdef image_t image
    cdef product_t p
    cdef block_t part
    image.data, image.size, image.places = room.image, c.image_item, room.places
    image.taps = room.taps
    image.channel = layout.channel
    image.cols, image.rows = count[2], count[1]
    image.row, image.plane = layout.row, layout.plane
    image.out_plane, image.out_row, image.out_col = (out.strides[2], out.strides[3],
                                                     out.strides[4])
    if residue == NULL:
        image.row *= c.stride[1]
        image.plane *= c.stride[0]
    else:
        image.out_plane *= c.stride[0]
        image.out_row *= c.stride[1]
        image.out_col *= c.stride[2]
    if entries > 1:
        image.plane, image.out_plane = layout.channel * c.channels, out.strides[0]
    image.scattered = not (
        (count[2] == 1 or image.out_col == size)
        and (count[1] == 1 or image.out_row == count[2] * size)
        and (cols == count[1] * count[2] or image.out_plane == count[1] * count[2] * size))
    depth = image.taps * c.channels
    set_product(c, cols, depth, c.stepped.product.direct and not image.scattered
                and out.strides[1] % size == 0, &p)
    memset(&part, 0, sizeof(part))
    part.product, part.image, part.staged = &p, &image, room.staged
    divide_part(c, &p, rows, cols, room.panels, &part)
    part.a.rows, part.a.cols = rows, depth
    part.a.row_stride, part.a.col_stride = depth * c.item, c.item
    if residue == NULL:
        part.a.row_stride, part.a.col_stride = views[1].strides[0], views[1].strides[1]
        part.a.data = views[1].data + channel * part.a.row_stride
    else:
        part.a.data = room.weight + first * depth * c.item
    part.b.data, part.b.rows, part.b.cols = room.image, depth, cols
    part.b.row_stride, part.b.col_stride = 0, c.image_item
    part.out.data = (out.data + entry * out.strides[0] + channel * out.strides[1]
                     + begin[0] * out.strides[2] + begin[1] * out.strides[3]
                     + begin[2] * out.strides[4])
    part.out.rows, part.out.cols, part.out.row_stride = rows, cols, out.strides[1]
    part.out.col_stride = 0 if image.scattered else size
    if c.has_bias:
        part.c.data = views[2].data + channel * views[2].strides[0]
        part.c.rows, part.c.cols, part.c.row_stride = rows, cols, views[2].strides[0]
    c.multiply(&c.stepped.product, &part, 1, 1 if c.has_bias else 0)


# --- Results in registers -------------------------------------------------------------------------

cdef bint rows_follow(const array_view *view, const ptrdiff_t *count) noexcept nogil:
    """Whether so many positions along each axis lie side by side, as floats."""
    return ((count[2] == 1 or view.strides[4] == 4)
            and (count[1] == 1 or view.strides[3] == count[2] * 4)
            and (count[0] == 1 or view.strides[2] == count[1] * count[2] * 4))


cdef inline char *place_in(const conv_t *c, const array_view *view,
                           const place_t *at) noexcept nogil:
    """The first of a cell's elements."""
    cdef char *place = (view.data + at.entry * view.strides[0]
                        + (at.group * c.rows + at.first) * view.strides[1])
    cdef int axis
    for axis in range(AXES):
        place += at.begin[axis] * view.strides[2 + axis]
    return place


cdef double silu(double x, const double *p) noexcept nogil:
    return times_sigma(x, x)


cdef direct_end end_of(const conv_t *c, const char *params) noexcept nogil:
    """An addition's factor and an activation's bounds are the numbers of a run."""
    cdef const kernel_number *numbers = <const kernel_number *>params
    cdef direct_end end
    memset(&end, 0, sizeof(end))
    end.scales_sums, end.kind = c.scales_sums, c.end
    if c.adds:
        end.alpha = <float>numbers[0].real
    if c.end == END_CLAMP:
        end.low, end.high = <float>numbers[c.low].real, <float>numbers[c.low + 1].real
        if isnan(end.low) or isnan(end.high):
            end.kind = END_NAN
    elif c.end == END_HARDSWISH:
        end.formula = direct_hardswish
    elif c.end == END_SILU:
        end.formula = silu
    return end


cdef void multiply_direct(const conv_t *c, const array_view *views, const place_t *at,
                          room_t *room) noexcept nogil:
    """A cell of floats: sums wait in the output, and are finished in registers or in the cache."""
    cdef const array_view *out = &views[2 + c.has_bias + c.extras]
    cdef ptrdiff_t cols = at.count[0] * at.count[1] * at.count[2], col = 0, wide, depth, begin
    cdef ptrdiff_t k = c.channels * c.kernel[0] * c.kernel[1] * c.kernel[2]
    cdef ptrdiff_t panels = panels_of(c.rows), first, last, block, blocks, above, below, n
    cdef const float *left
    cdef const char *weights
    cdef layout_t layout
    cdef image_t image
    cdef direct_t d
    memset(&layout, 0, sizeof(layout))
    memset(&image, 0, sizeof(image))
    memset(&d, 0, sizeof(d))
    show_image(c, views, at, room, &layout, &image)
    d.image, d.in_place, d.rows, d.panels = &image, c.plain, c.rows, panels
    d.out = place_in(c, out, at) - at.first * out.strides[1]
    d.out_row, d.panel = out.strides[1], <float *>room.panel
    d.end = end_of(c, room.params)
    if c.has_bias:
        d.end.bias = <float *>views[2].data + at.group * c.rows
    if c.adds:
        d.end.more_row = views[2 + c.has_bias].strides[1]
        d.end.more = place_in(c, &views[2 + c.has_bias], at) - at.first * d.end.more_row
    weights = views[1].data + at.group * c.rows * (
        k * <ptrdiff_t>sizeof(float) if c.ahead else views[1].strides[0])
    first = panels * at.down // c.downs
    last = panels * (at.down + 1) // c.downs
    wide = cols
    if c.ahead:
        wide = DIRECT_COLS
        if c.has_steps:
            wide = max(<ptrdiff_t>LEAST_COLS, DIRECT_BYTES // (at.rows * 4) // LEAST_COLS
                       * LEAST_COLS)
    blocks = (last - first + DIRECT_PANELS - 1) // DIRECT_PANELS
    while col < cols:
        n = min(wide, cols - col)
        for block in range(blocks):
            above = first + (last - first) * block // blocks
            below = first + (last - first) * (block + 1) // blocks
            begin = 0
            while begin < k:
                depth = min(<ptrdiff_t>PIECE, k - begin)
                left = <const float *>weights + begin * c.rows + direct_row(&d, above) * depth
                if not c.ahead:
                    left = <const float *>room.left
                    pack_panels(&d, weights + begin * sizeof(float), views[1].strides[0], depth,
                                above, below, <float *>room.left)
                direct_columns(&d, left, begin, depth, above, below, col, n, begin + depth == k)
                begin += depth
        if c.has_steps:
            finish_columns(c, views, at, col, n, room)
        col += n


cdef void pack_panels(const direct_t *d, const char *weights, ptrdiff_t step, ptrdiff_t depth,
                      ptrdiff_t first, ptrdiff_t last, float *to) noexcept nogil:
    """Panels of rows of weights, `step` bytes apart, whose elements lie side by side."""
    cdef ptrdiff_t panel, row, rows
    for panel in range(first, last):
        row = direct_row(d, panel)
        rows = direct_row(d, panel + 1) - row
        if rows == 1:
            f32_load_tile(OF_F32, weights + row * step, 0, 1, depth, to, 0)
        else:
            f32_pack_across(OF_F32, weights + row * step, step, depth, rows, to, rows)
        to += rows * depth


cdef void show_image(const conv_t *c, const array_view *views, const place_t *at, room_t *room,
                     layout_t *layout, image_t *image) noexcept nogil:
    """The image of a cell: laid out with its margins, or in place."""
    cdef const array_view *input = &views[0]
    cdef const char *source = (input.data + at.entry * input.strides[0]
                               + at.group * c.channels * input.strides[1])
    cdef int axis
    image.size, image.places, image.taps = sizeof(float), room.places, 1
    image.cols, image.rows = at.count[2], at.count[1]
    if c.plain:
        room.places[0] = 0
        image.data, image.channel = place_in_image(input, source, at), input.strides[1]
        image.row, image.plane = input.strides[3], input.strides[2]
        if rows_follow(input, at.count):
            image.cols, image.rows = at.count[0] * at.count[1] * at.count[2], 1
        return
    for axis in range(AXES):
        lay_axis(c, axis, at.begin[axis], at.count[axis], layout)
    lay_rows(c, layout)
    if memcmp(layout, &room.layout, sizeof(layout_t)) != 0:
        room.layout = layout[0]
        memset(room.image, 0, room.image_bytes)
        room.taps = find_taps(c, NULL, layout, at.group, NULL, False, room)
        room.laid = NULL
    if room.laid != source:
        lay_image(c, layout, input, source, room.image)
        room.laid = source
    image.data, image.taps, image.channel = room.image, room.taps, layout.channel
    image.row, image.plane = layout.row * c.stride[1], layout.plane * c.stride[0]


cdef inline const char *place_in_image(const array_view *input, const char *source,
                                       const place_t *at) noexcept nogil:
    cdef int axis
    for axis in range(AXES):
        source += at.begin[axis] * input.strides[2 + axis]
    return source


# --- Steps on results -----------------------------------------------------------------------------

cdef void finish_columns(const conv_t *c, const array_view *views, const place_t *at,
                         ptrdiff_t col, ptrdiff_t cols, const room_t *room) noexcept nogil:
    """Steps on some columns of a cell whose positions lie side by side, in place."""
    cdef const array_view *out = &views[2 + c.has_bias + c.extras]
    cdef tile_view extras[MOST_EXTRAS]
    cdef tile_view made = view_of_rows(place_in(c, out, at) + col * 4, out.strides[1], 4)
    cdef const array_view *extra
    cdef int which
    for which in range(c.extras):
        extra = &views[2 + c.has_bias + which]
        extras[which] = view_of_rows(place_in(c, extra, at) + col * 4, extra.strides[1], 4)
    run_finish(&c.stepped.product.finish, &made, extras, &made, at.rows, cols, room.params)


cdef void finish_cell(const conv_t *c, const array_view *views, const place_t *at,
                      const room_t *room) noexcept nogil:
    """The same for sums that were made elsewhere, and rounded to the output already."""
    cdef const array_view *out = &views[2 + c.has_bias + c.extras]
    cdef const array_view *extra
    cdef tile_view extras[MOST_EXTRAS]
    cdef tile_view made
    cdef place_t part = at[0]
    cdef direct_end end = end_of(c, room.params)
    cdef const char *more
    cdef ptrdiff_t one, row, z
    cdef int which
    cdef ptrdiff_t rows = at.count[1], cols = at.count[2], planes = at.count[0]
    part.rows = part.count[0] = 1
    if are_dense(c, views, at):
        rows, cols, planes = 1, rows * cols * planes, 1
    for one in range(at.entries):
        part.entry = at.entry + one
        for row in range(at.rows):
            part.first = at.first + row
            for z in range(planes):
                part.begin[0] = at.begin[0] + z
                made = view_of_rows(place_in(c, out, &part), out.strides[3], out.strides[4])
                if c.has_steps:
                    for which in range(c.extras):
                        extra = &views[2 + c.has_bias + which]
                        extras[which] = view_of_rows(place_in(c, extra, &part), extra.strides[3],
                                                     extra.strides[4])
                    run_finish(&c.stepped.product.finish, &made, extras, &made, rows, cols,
                               room.params)
                    continue
                more = NULL
                if c.adds:
                    extra = &views[2 + c.has_bias]
                    more, end.more_row = place_in(c, extra, &part), extra.strides[3]
                direct_end_rows(&end, 0, rows, cols, <float *>made.data,
                                made.row_stride // <ptrdiff_t>sizeof(float), made.data,
                                made.row_stride, more)


cdef inline bint are_dense(const conv_t *c, const array_view *views,
                           const place_t *at) noexcept nogil:
    """Whether positions of results, and of what steps read, are contiguous."""
    cdef int which
    for which in range(2 + c.has_bias, 3 + c.has_bias + c.extras):
        if not rows_follow(&views[which], at.count):
            return False
    return True


# --- A channel by itself --------------------------------------------------------------------------

cdef void convolve_planes(const conv_t *c, const array_view *views, ptrdiff_t first,
                          ptrdiff_t last, room_t *room) noexcept nogil:
    """Channels by themselves, whose images have one layout. Activations that are too long for
    registers follow for several channels at a time, where their results lie side by side."""
    cdef place_t at = place_of_cell(c, first)
    cdef conv_t plain = c[0]
    cdef direct_end end = end_of(c, room.params)
    cdef layout_t layout
    cdef ptrdiff_t cell, waiting = 0, positions = c.out[0] * c.out[1] * c.out[2]
    cdef char *place
    cdef char *begin = NULL
    cdef bint is_smooth = end.kind > END_CLAMP and not c.adds
    cdef int axis
    memset(&layout, 0, sizeof(layout))
    for axis in range(AXES):
        lay_axis(c, axis, at.begin[axis], at.count[axis], &layout)
    lay_rows(c, &layout)
    memset(room.image, 0, room.image_bytes)
    room.taps = find_taps(c, NULL, &layout, 0, NULL, False, room)
    at.entries = 1
    if is_smooth:
        plain.end = END_NONE
    for cell in range(first, last):
        at.entry, at.group = cell // c.groups, cell % c.groups
        if is_smooth:
            place = place_in(c, &views[2 + c.has_bias + c.extras], &at)
            if waiting >= PLANE_SUMS or place != begin + waiting * <ptrdiff_t>sizeof(float):
                direct_smooth_rows(&end, 1, waiting, begin, 0, begin, 0)
                begin, waiting = place, 0
            waiting += positions
        convolve_plane(&plain, views, at.entry, at.group, at.begin, at.count, &layout, room)
        if c.has_steps or c.adds:
            finish_cell(c, views, &at, room)
    direct_smooth_rows(&end, 1, waiting, begin, 0, begin, 0)


cdef void convolve_plane(const conv_t *c, const array_view *views, ptrdiff_t entry,
                         ptrdiff_t channel, const ptrdiff_t *begin, const ptrdiff_t *count,
                         const layout_t *layout, const room_t *room) noexcept nogil:
    """One channel of an entry, whose weights are one row: no product is set up for it."""
    cdef const array_view *input = &views[0]
    cdef const array_view *weight = &views[1]
    cdef const array_view *out = &views[2 + c.has_bias + c.extras]
    cdef const char *source = (input.data + entry * input.strides[0] + channel * input.strides[1])
    cdef char *place
    cdef float[PIECE] weights
    cdef const float *factors = weights
    cdef float bias = 0
    cdef direct_end end
    cdef ptrdiff_t z
    if c.widen != NULL and layout.step == 1 and (input.strides[4] == c.item or c.size[2] == 1):
        lay_plane(c, layout, input, source, room.image)
    else:
        lay_image(c, layout, input, source, room.image)
    if c.in_place and weight.strides[1] == sizeof(float):
        factors = <const float *>(weight.data + channel * weight.strides[0])
    else:
        c.stepped.product.load[1](weight.data + channel * weight.strides[0], weight.strides[1],
                                  <char *>weights, room.taps)
    if c.has_bias:
        c.stepped.product.load[2](views[2].data + channel * views[2].strides[0], 0, <char *>&bias,
                                  1)
    for z in range(count[0]):
        place = (out.data + entry * out.strides[0] + channel * out.strides[1]
                 + (begin[0] + z) * out.strides[2] + begin[1] * out.strides[3]
                 + begin[2] * out.strides[4])
        if c.in_place:
            end = end_of(c, room.params)
            end.bias = &bias if c.has_bias else NULL
            end.kind = END_NONE if c.adds else end.kind
            direct_plane(room.image + z * c.stride[0] * layout.plane, room.places, room.taps,
                         factors, layout.row * c.stride[1], count[1], count[2], place, &end)
            continue
        sum_plane(c, room.image + z * c.stride[0] * layout.plane, layout.row * c.stride[1],
                  room, weights, &bias, out, count[1], count[2], place)


cdef void lay_plane(const conv_t *c, const layout_t *layout, const array_view *view,
                    const char *source, char *to) noexcept nogil:
    """The rows of a channel between the margins, whose elements lie side by side."""
    cdef ptrdiff_t low = max(<ptrdiff_t>0, -layout.start[2]), z, y, at_z, at_y
    cdef ptrdiff_t high = max(low, min(layout.length[2], c.size[2] - layout.start[2]))
    cdef const char *place
    for z in range(layout.length[0]):
        at_z = layout.start[0] + z
        for y in range(layout.length[1]):
            at_y = layout.start[1] + y
            if 0 <= at_z < c.size[0] and 0 <= at_y < c.size[1]:
                place = (source + at_z * view.strides[2] + at_y * view.strides[3]
                         + (layout.start[2] + low) * view.strides[4])
                image_row(c.stepped.product.kinds[0], place, high - low, <float *>to + low)
            to += layout.row


cdef void sum_plane(const conv_t *c, const char *image, ptrdiff_t row, const room_t *room,
                    const float *weights, const float *bias, const array_view *out, ptrdiff_t rows,
                    ptrdiff_t cols, char *place) noexcept nogil:
    """A plane of results, some rows or a part of a row at a time."""
    cdef float[PLANE_SUMS + IMAGE_CHAINS * 16] sums
    cdef float[PLANE_SUMS] seconds
    cdef float *found = sums
    cdef ptrdiff_t step = c.stride[2], most = PLANE_SUMS // step, x = 0, y, wide, vectors, high, i
    cdef ptrdiff_t apart
    cdef bint dense = out.strides[4] == c.stepped.product.sizes[OUT]
    while x < cols:
        wide = min(most, cols - x)
        vectors = ((wide - 1) * step + F32_LANES) // F32_LANES
        y = 0
        while y < rows:
            high = min(rows - y, PLANE_SUMS // (vectors * F32_LANES))
            image_plane(image + y * row + x * step * <ptrdiff_t>sizeof(float), room.places,
                        room.taps, weights, bias if c.has_bias else NULL, row, vectors, high, sums)
            apart = vectors * F32_LANES
            if step == 2:
                image_every_second(sums, apart, high, wide, seconds)
                found, apart = seconds, wide
            if dense or wide == 1:
                f32_store_tile(c.stepped.product.kinds[OUT], found, apart, high, wide,
                               place + y * out.strides[3] + x * out.strides[4], out.strides[3])
            else:
                for i in range(high):
                    c.stepped.product.store(
                        <char *>(found + i * apart),
                        place + (y + i) * out.strides[3] + x * out.strides[4], out.strides[4], wide)
            y += high
        x += wide


# --- Gradients of weights -------------------------------------------------------------------------
# Rows are gradients of results, columns the elements of a row of weights, k all positions of all
# entries: windows of the image are laid out some positions at a time, and multiplied by the rows'
# gradients there.

cdef struct slopes_t:
    product_state product
    multiply_fn multiply
    ptrdiff_t batch, groups, channels, rows, taps  # of a group: channels and rows of weights
    ptrdiff_t size[AXES]                           # of the image
    ptrdiff_t out[AXES]
    ptrdiff_t kernel[AXES]
    ptrdiff_t stride[AXES]
    ptrdiff_t padding[AXES]
    ptrdiff_t dilation[AXES]
    ptrdiff_t positions                            # of an entry
    ptrdiff_t depth                                # positions that are taken at a time
    load_fn load_rows, load_image
    store_fn store
    bint plain                                     # windows of one element, one at each place
    bint single[2]                                 # whether rows, and images, are float32
    ptrdiff_t across, downs                        # parts of a group's channels and rows


cdef struct slopes_room_t:
    float *rows
    float *windows
    float *totals
    char *panels
    ptrdiff_t used


cdef inline ptrdiff_t part_of(ptrdiff_t whole, ptrdiff_t parts) noexcept nogil:
    return (whole + parts - 1) // parts


cdef void divide_slopes(slopes_t *c, ptrdiff_t chunks) noexcept nogil:
    """Into units: parts of channels, and of rows where these are not enough."""
    cdef ptrdiff_t each = (chunks + c.groups - 1) // c.groups
    c.across = max(part_of(c.channels * c.taps, WINDOW_COLS), each)
    c.across = max(<ptrdiff_t>1, min(c.channels, c.across))
    c.downs = max(<ptrdiff_t>1, min(c.rows // LEAST_ROWS, part_of(each, c.across)))


cdef void divide_slopes_room(const slopes_t *c, char *memory, slopes_room_t *room) noexcept nogil:
    cdef ptrdiff_t rows = part_of(c.rows, c.downs), used = 0
    cdef ptrdiff_t cols = part_of(c.channels, c.across) * c.taps
    cdef product_t p
    cdef block_t block
    room.rows = <float *>memory
    used += round_up(rows * c.depth * sizeof(float), LINE)
    room.windows = <float *>(memory + used)
    used += round_up(cols * c.depth * sizeof(float), LINE)
    room.totals = <float *>(memory + used)
    used += round_up(rows * cols * sizeof(float), LINE)
    room.panels = memory + used
    set_slopes_product(c, rows, cols, c.depth, &p)
    used += divide_scratch(&p, &c.product, rows, cols, few_of(&p), room.panels, &block, <float>0)
    room.used = used


cdef void set_slopes_product(const slopes_t *c, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t depth,
                             product_t *p) noexcept nogil:
    cdef int which
    memset(p, 0, sizeof(product_t))
    p.m, p.n, p.k, p.batch = rows, cols, depth, 1
    for which in range(OUT):
        p.load[which] = c.product.load[which]
    for which in range(OPERANDS):
        p.kinds[which], p.sizes[which] = c.product.kinds[which], c.product.sizes[which]
    p.has_c = True


cdef int convolve_slopes(const array_view *views, const void *state, const void *params,
                         void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                         call_context *context) noexcept nogil:
    cdef slopes_t c = (<const slopes_t *>state)[0]
    cdef slopes_room_t room
    cdef ptrdiff_t units, unit
    divide_slopes(&c, chunks)
    divide_slopes_room(&c, <char *>scratch, &room)
    units = c.groups * c.across * c.downs
    for unit in range(units * chunk // chunks, units * (chunk + 1) // chunks):
        sum_slopes(&c, views, unit, &room)
    return 0


cdef void sum_slopes(const slopes_t *c, const array_view *views, ptrdiff_t unit,
                     const slopes_room_t *room) noexcept nogil:
    """The gradients of a part of a group's rows for a part of its channels."""
    cdef const array_view *out = &views[2]
    cdef ptrdiff_t part = unit % c.across, down = unit // c.across % c.downs
    cdef ptrdiff_t group = unit // (c.across * c.downs), begin = 0, count, row, cols
    cdef ptrdiff_t total = c.batch * c.positions
    cdef ptrdiff_t channel = c.channels * part // c.across, first = c.rows * down // c.downs
    cdef ptrdiff_t channels = c.channels * (part + 1) // c.across - channel
    cdef ptrdiff_t rows = c.rows * (down + 1) // c.downs - first
    cols = channels * c.taps
    memset(room.totals, 0, rows * cols * sizeof(float))
    while begin < total:
        count = min(c.depth, total - begin)
        take_rows(c, &views[0], group * c.rows + first, rows, begin, count, room.rows)
        take_windows(c, &views[1], group * c.channels + channel, channels, begin, count,
                     room.windows)
        add_products(c, rows, cols, count, room)
        begin += count
    for row in range(rows):
        c.store(<char *>(room.totals + row * cols),
                out.data + (group * c.rows + first + row) * out.strides[0]
                + channel * c.taps * out.strides[1], out.strides[1], cols)


cdef void add_products(const slopes_t *c, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t count,
                       const slopes_room_t *room) noexcept nogil:
    """Add products of rows and windows at some positions to the totals."""
    cdef product_t p
    cdef block_t block
    set_slopes_product(c, rows, cols, count, &p)
    memset(&block, 0, sizeof(block))
    block.product = &p
    divide_scratch(&p, &c.product, rows, cols, few_of(&p), room.panels, &block, <float>0)
    block.a.data, block.a.rows, block.a.cols = <char *>room.rows, rows, count
    block.a.row_stride, block.a.col_stride = c.depth * sizeof(float), sizeof(float)
    block.b.data, block.b.rows, block.b.cols = <char *>room.windows, count, cols
    block.b.row_stride, block.b.col_stride = sizeof(float), c.depth * sizeof(float)
    block.out.data, block.out.rows, block.out.cols = <char *>room.totals, rows, cols
    block.out.row_stride, block.out.col_stride = cols * sizeof(float), sizeof(float)
    block.c = block.out
    c.multiply(&c.product, &block, 1, 1)


cdef inline void take(load_fn read, bint single, const char *place, ptrdiff_t step, float *to,
                      ptrdiff_t n) noexcept nogil:
    """Elements as floats."""
    if not single:
        read(place, step, <char *>to, n)
    elif step == sizeof(float):
        memcpy(to, place, n * sizeof(float))
    else:
        image_elements(place, step, <char *>to, n, sizeof(float))


cdef void take_rows(const slopes_t *c, const array_view *view, ptrdiff_t first, ptrdiff_t rows,
                    ptrdiff_t begin, ptrdiff_t count, float *to) noexcept nogil:
    """Gradients at positions from `begin` on, counted through the batch."""
    cdef ptrdiff_t done = 0, entry, at, run, row
    while done < count:
        entry, at = (begin + done) // c.positions, (begin + done) % c.positions
        run = min(count - done, c.positions - at)
        for row in range(rows):
            take(c.load_rows, c.single[0],
                 view.data + entry * view.strides[0] + (first + row) * view.strides[1]
                 + at * view.strides[2], view.strides[2], to + row * c.depth + done, run)
        done += run


cdef void take_windows(const slopes_t *c, const array_view *view, ptrdiff_t first,
                       ptrdiff_t channels, ptrdiff_t begin, ptrdiff_t count,
                       float *to) noexcept nogil:
    """For each channel and tap the elements that it reads at these positions."""
    cdef ptrdiff_t done = 0, entry, at, run, channel, tap
    cdef const char *source
    cdef bint dense = (c.plain and view.strides[3] == c.size[2] * view.strides[4]
                       and view.strides[2] == c.size[1] * view.strides[3])
    while done < count:
        entry, at = (begin + done) // c.positions, (begin + done) % c.positions
        run = min(count - done, c.positions - at)
        for channel in range(channels):
            source = (view.data + entry * view.strides[0] + (first + channel) * view.strides[1])
            for tap in range(c.taps):
                if dense:
                    take(c.load_image, c.single[1], source + at * view.strides[4],
                         view.strides[4], to + channel * c.depth + done, run)
                else:
                    take_tap(c, view, source, tap, at, run,
                             to + (channel * c.taps + tap) * c.depth + done)
        done += run


cdef void take_tap(const slopes_t *c, const array_view *view, const char *source, ptrdiff_t tap,
                   ptrdiff_t at, ptrdiff_t count, float *to) noexcept nogil:
    """The elements of a channel that a tap reads, row by row; beyond the image are zeros."""
    cdef ptrdiff_t shift[AXES]
    cdef ptrdiff_t x = at % c.out[2], y = at // c.out[2] % c.out[1], z = at // (c.out[2] * c.out[1])
    cdef ptrdiff_t rest = tap, run, low, high, row, plane, step = c.stride[2], first
    cdef int axis
    for axis in range(AXES - 1, -1, -1):
        shift[axis] = rest % c.kernel[axis] * c.dilation[axis] - c.padding[axis]
        rest //= c.kernel[axis]
    while count > 0:
        run = min(count, c.out[2] - x)
        plane, row = z * c.stride[0] + shift[0], y * c.stride[1] + shift[1]
        low = high = run
        if 0 <= plane < c.size[0] and 0 <= row < c.size[1]:
            first = x * step + shift[2]
            low = min(run, (step - 1 - first) // step) if first < 0 else 0
            high = max(low, min(run, floor_div(c.size[2] - 1 - first, step) + 1))
        memset(to, 0, low * sizeof(float))
        if high > low:
            take(c.load_image, c.single[1],
                 source + plane * view.strides[2] + row * view.strides[3]
                 + (first + low * step) * view.strides[4], step * view.strides[4], to + low,
                 high - low)
        memset(to + high, 0, (run - high) * sizeof(float))
        to += run
        count -= run
        x = 0
        y += 1
        if y == c.out[1]:
            y = 0
            z += 1


# --- The kernel's reference -----------------------------------------------------------------------

cdef load_fn loader(str dtype) except NULL:
    return load_of(set_in_use(), dtype, "float32")


cdef store_fn storer(str dtype) except NULL:
    return store_of(set_in_use(), dtype, "float32")


# Activations that results take in registers; the last two where there are vectors.
cdef dict ENDS = {"": END_NONE, "relu": END_RELU, "clamp": END_CLAMP, "hardswish": END_HARDSWISH,
                  "silu": END_SILU}


cdef bint has_smooth_ends() noexcept nogil:
    return direct_has_smooth_ends()


def ends(str kind not None):
    """Whether results take an activation in registers.

    Parameters
    ----------
    kind : str
        Its kernel; '' is none.
    """
    return kind in ENDS and (ENDS[kind] <= END_CLAMP or has_smooth_ends())


cdef bint multiplies_pairs() noexcept nogil:
    """Whether the CPU has dot products of bfloat16, and the instruction set uses them."""
    return pairs_usable()


cdef class ConvolutionState:
    """State of the kernel of a convolution, and the division of its work.

    Parameters
    ----------
    in_dtypes : tuple of str
        Of input, weight and maybe bias; the first two are alike.
    out_dtype : str
    shapes : sequence of tuple of int
        Of input and out, of three to five dimensions, and between them of the kernel, of three.
    strides : sequence of tuple of int
        Of all operands, in bytes; those that only steps on results read come before out.
    stride, padding, dilation : tuple of int
        Along the last three axes.
    groups : int
    transposed : bool
    within : bool
        Whether weights are multiplied only by what is in the input; steps are 1 then.
    """

    cdef double cost  # nanoseconds
    cdef conv_t conv
    cdef bint may_be_direct
    cdef ptrdiff_t steps_of_weights[2]  # bytes
    cdef int loops  # the instruction set that they are of

    def __cinit__(self, *options, **further):
        self.loops = set_in_use()

    def __init__(self, tuple in_dtypes not None, str out_dtype not None, shapes, strides,
                 tuple stride not None, tuple padding not None, tuple dilation not None,
                 ptrdiff_t groups, bint transposed, bint within):
        cdef conv_t *c = &self.conv
        cdef product_state *state = &c.stepped.product
        cdef double work
        cdef int axis, which
        given, kernel, out = shapes
        c.has_bias, c.transposed, c.within = len(in_dtypes) == 3, transposed, within
        c.extras = <int>len(strides) - 1 - <int>len(in_dtypes)
        c.batch, c.groups, c.channels = given[0], groups, given[1] // groups
        c.rows = out[1] // groups
        given = (1,) * (AXES + 2 - len(given)) + given[2:]
        out = (1,) * (AXES + 2 - len(out)) + out[2:]
        for axis in range(AXES):
            c.size[axis], c.out[axis] = given[axis], out[axis]
            c.kernel[axis], c.stride[axis] = kernel[axis], stride[axis]
            c.padding[axis], c.dilation[axis] = padding[axis], dilation[axis]
        state.itemsize, state.n_operands = sizeof(float), <int>len(in_dtypes) + 1
        for which in range(<int>len(in_dtypes)):
            state.kinds[which] = KINDS[in_dtypes[which]]
            state.sizes[which] = ITEM_SIZES[in_dtypes[which]]
            state.load[which] = loader(in_dtypes[which])
        state.kinds[OUT], state.sizes[OUT] = KINDS[out_dtype], ITEM_SIZES[out_dtype]
        state.store = storer(out_dtype)
        state.halves = in_dtypes[0] == "bfloat16"
        state.pairs = state.halves and multiplies_pairs()
        state.direct = not c.has_bias and out_dtype == "float32"
        c.item = ITEM_SIZES[in_dtypes[0]]
        # Few rows read the image in place, as floats.
        c.image_item = sizeof(float) if c.rows <= IMAGE_ROWS else c.item
        c.by_planes = (c.rows == 1 and c.channels == 1 and not transposed and stride[2] <= 2
                       and kernel[0] * kernel[1] * kernel[2] <= PIECE)
        c.widen = loader(in_dtypes[0]) if c.image_item != c.item else NULL
        c.axis = 0
        while c.axis < 2 and c.out[c.axis] == 1:
            c.axis += 1
        work = (<double>c.batch * groups * c.rows * c.channels * c.kernel[0] * c.kernel[1]
                * c.kernel[2] * c.out[0] * c.out[1] * c.out[2])
        if transposed:
            work /= <double>stride[0] * stride[1] * stride[2]
        self.cost = 2.0 * work / 50
        self.steps_of_weights[0], self.steps_of_weights[1] = strides[1][0], strides[1][-1]
        dtypes = {*in_dtypes, out_dtype}
        self.may_be_direct = (dtypes == {"float32"} and c.rows > FEW_ROWS and not transposed
                              and not within and self.is_dense(strides))
        c.in_place = c.by_planes and dtypes == {"float32"} and self.is_dense(strides)
        c.plain = (self.may_be_direct and {*kernel, *stride} == {1} and not any(padding)
                   and given == out and (c.size[2] == 1 or strides[0][-1] == sizeof(float)))
        self.choose()

    cdef bint is_dense(self, strides) except -1:
        """Whether positions of results, and of what is added, and the bias lie side by side."""
        cdef conv_t *c = &self.conv
        cdef array_view view
        cdef ptrdiff_t steps[AXES + 2]
        cdef int axis, n
        if c.has_bias and c.rows > 1 and strides[2][0] != sizeof(float):
            return False
        for given in strides[2 + c.has_bias:]:
            n = <int>len(given)
            for axis in range(AXES + 2):
                steps[axis] = 0
            for axis in range(n):
                steps[axis + (AXES + 2 - n if axis >= 2 else 0)] = given[axis]
            view.strides = steps
            if not rows_follow(&view, c.out):
                return False
        return True

    cdef int choose(self) except -1:
        """Finish results in registers, unless images are better multiplied several at a time."""
        cdef conv_t *c = &self.conv
        c.direct = False
        divide(c, 1)
        c.direct = self.may_be_direct and (
            c.ahead or self.steps_of_weights[1] == sizeof(float) and (c.plain or c.entries == 1))
        c.plain = c.plain and c.direct
        divide(c, 1)
        return 0

    cdef int set_end(self, str kind, bint adds, bint scales_sums) except -1:
        """Let complete sums end with an addition and an activation."""
        cdef conv_t *c = &self.conv
        c.end, c.adds, c.scales_sums, c.low = ENDS[kind], adds, scales_sums, 1 if adds else 0
        return 0

    cdef ptrdiff_t scratch_for(self, int threads) except -1:
        """Bytes that each of so many threads lends the kernel."""
        cdef conv_t c = self.conv
        cdef room_t room
        divide(&c, self.chunks(threads))
        divide_room(&c, NULL, &room)
        return room.used

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads.

        Parameters
        ----------
        threads : int

        Returns
        -------
        int
        """
        use_set(self.loops)
        cdef conv_t c = self.conv
        cdef double work = self.cost * 25
        cdef ptrdiff_t chunks = min(<ptrdiff_t>threads, <ptrdiff_t>(min(work, 1e15) / CHUNK_WORK))
        if chunks <= 1:
            return 1
        if chunks == threads:
            chunks *= max(1, min(<ptrdiff_t>MOST_SHARES,
                                 <ptrdiff_t>(min(work, 1e15) / SHARE_WORK) // threads))
        divide(&c, chunks)
        return max(1, min(chunks, cells_of(&c)))

    cdef object kernel(self, str name, tuple itemsizes, size_t params_size, steps, bint packs):
        """The kernel; `steps` are kept alive, `packs`: whether it may take packed weights."""
        cdef conv_t *c = &self.conv
        return Kernel(
            fn=<size_t>convolve,
            state=<size_t>c,
            name=name,
            itemsizes=itemsizes,
            cost=self.cost,
            owner=(self, steps),
            prepare=<size_t>prepare_steps if c.has_steps else 0,
            params_size=params_size,
            scratch=self.scratch_for(1),
            chunks=self.chunks,
            flops=<long long>(self.cost * 50),
            packing=self.packing(name, itemsizes, params_size, steps) if packs else None,
        )

    cdef object packing(self, str name, tuple itemsizes, size_t params_size, steps):
        """The packed form of weights; None where they are multiplied as they are."""
        cdef conv_t *c = &self.conv
        cdef ptrdiff_t k = c.channels * c.kernel[0] * c.kernel[1] * c.kernel[2]
        if not self.may_be_direct or k == 0 or self.steps_of_weights[1] != sizeof(float):
            return None
        # Packing writes whole vectors.
        size = round_up(c.groups * c.rows * k * <ptrdiff_t>sizeof(float) + LINE, LINE)
        form = "rows", c.groups, c.rows, k, self.steps_of_weights[0]

        def packed():
            return self.with_packed(name, itemsizes, params_size, steps)

        return Packing(1, size, form, packed, self.pack)

    def with_packed(self, str name not None, tuple itemsizes not None, size_t params_size, steps):
        """The kernel of the same convolutions with what `pack` makes of weights."""
        use_set(self.loops)
        cdef ConvolutionState made = ConvolutionState.__new__(ConvolutionState)
        made.conv, made.cost, made.may_be_direct = self.conv, self.cost, self.may_be_direct
        made.steps_of_weights[0] = self.steps_of_weights[0]
        made.steps_of_weights[1] = self.steps_of_weights[1]
        made.conv.ahead = True
        made.choose()
        return made.kernel(f"{name} packed", itemsizes, params_size, steps, False)

    def pack(self, uintptr_t source, uintptr_t target):
        """Pack weights of the planned shape, from one address to another."""
        cdef conv_t *c = &self.conv
        cdef ptrdiff_t k = c.channels * c.kernel[0] * c.kernel[1] * c.kernel[2], begin, depth, group
        cdef ptrdiff_t step = self.steps_of_weights[0]
        cdef float *to = <float *>target
        cdef direct_t d
        use_set(self.loops)
        d.rows, d.panels = c.rows, panels_of(c.rows)
        with nogil:
            for group in range(c.groups):
                begin = 0
                while begin < k:
                    depth = min(<ptrdiff_t>PIECE, k - begin)
                    pack_panels(&d, <const char *>source + group * c.rows * step
                                + begin * <ptrdiff_t>sizeof(float), step, depth, 0, d.panels, to)
                    to += depth * c.rows
                    begin += depth


def convolution_kernel(tuple inputs not None, tuple outputs not None, *, size_t multiply,
                       Py_ssize_t own, steps=None, end=None, **options):
    """The kernel of a convolution of certain dtypes and shapes.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    multiply : int
        Address of what multiplies blocks of floats: `multiply_floats_at` of the module of products.
    own : int
        How many inputs the convolution reads; steps on results read the others.
    steps : tuple, optional
        Kernels of pointwise steps on float32 results, as those of products, in place.
    end : tuple of str, bool and bool, optional
        Instead: what `ends` takes, whether an operand is added before, by way of a factor,
        and whether that is one of the sums. Numbers are those of the addition and the activation.
    **options
        As `ConvolutionState` takes them.

    Returns
    -------
    Kernel
    """
    cdef tuple in_dtypes = inputs[:own]
    cdef str out_dtype = outputs[0]
    cdef ConvolutionState kept = ConvolutionState(in_dtypes, out_dtype, **options)
    cdef conv_t *c = &kept.conv
    cdef ptrdiff_t params_size = 0
    name = f"convolution[{','.join(in_dtypes)}->{out_dtype}]"
    c.multiply = <multiply_fn>multiply
    if steps:
        params_size = set_steps(&c.stepped, steps, c.extras, False)
        c.stepped.product.finishes, c.has_steps = False, True  # products do not see to them
        for step in steps:
            name = f"{name} {step[0].name}"
    elif end:
        kept.set_end(end[0], end[1], end[2])
        name = f"{name} {'add ' * end[1]}{end[0]}".strip()
    extras = ("float32",) * c.extras
    itemsizes = ()
    for dtype in (*in_dtypes, *extras, out_dtype):
        itemsizes += (ITEM_SIZES[dtype],)
    return kept.kernel(name, itemsizes, params_size, steps, True)


cdef class SlopesState:
    """State of the kernel of gradients of weights.

    Parameters
    ----------
    in_dtypes : tuple of str
        Of the gradients of results and the image.
    out_dtype : str
    shapes : sequence of tuple of int
        Of the rows' positions, the kernel and the image, of three, three and five dimensions.
    rows : int
        Of all groups.
    stride, padding, dilation : tuple of int
    groups : int
    """

    cdef double cost  # nanoseconds
    cdef slopes_t slopes
    cdef int loops  # the instruction set that they are of

    def __cinit__(self, *options, **further):
        self.loops = set_in_use()

    def __init__(self, tuple in_dtypes not None, str out_dtype not None, shapes, ptrdiff_t rows,
                 tuple stride not None, tuple padding not None, tuple dilation not None,
                 ptrdiff_t groups):
        cdef slopes_t *c = &self.slopes
        cdef product_state *state = &c.product
        cdef ptrdiff_t cols
        cdef int axis, which
        positions, kernel, image = shapes
        c.batch, c.groups, c.channels = image[0], groups, image[1] // groups
        c.rows, c.taps, c.positions, c.plain = rows // groups, 1, 1, True
        for axis in range(AXES):
            c.size[axis], c.out[axis] = image[2 + axis], positions[axis]
            c.kernel[axis], c.stride[axis] = kernel[axis], stride[axis]
            c.padding[axis], c.dilation[axis] = padding[axis], dilation[axis]
            c.taps *= c.kernel[axis]
            c.positions *= c.out[axis]
            c.plain = (c.plain and c.kernel[axis] == 1 and c.stride[axis] == 1
                       and c.padding[axis] == 0 and c.size[axis] == c.out[axis])
        state.itemsize, state.n_operands = sizeof(float), 4
        for which in range(OPERANDS):
            state.kinds[which], state.sizes[which] = OF_F32, sizeof(float)
        for which in range(OUT):
            state.load[which] = loader("float32")
        state.store = storer("float32")
        c.load_rows, c.load_image = loader(in_dtypes[0]), loader(in_dtypes[1])
        c.single[0], c.single[1] = in_dtypes[0] == "float32", in_dtypes[1] == "float32"
        c.store = storer(out_dtype)
        # What is added up together depends on shapes alone, not on threads.
        cols = part_of(c.channels, max(<ptrdiff_t>1, min(
            c.channels, part_of(c.channels * c.taps, WINDOW_COLS)))) * c.taps
        c.depth = WINDOW_BYTES // <ptrdiff_t>sizeof(float) // max(<ptrdiff_t>1, cols)
        c.depth = min(<ptrdiff_t>MOST_WINDOWS, max(<ptrdiff_t>PIECE, c.depth // PIECE * PIECE))
        c.depth = max(<ptrdiff_t>1, min(c.depth, c.batch * c.positions))
        self.cost = 2.0 * c.batch * groups * c.rows * c.channels * c.taps * c.positions / 50

    cdef ptrdiff_t scratch_for(self, int threads) except -1:
        """Bytes that each of so many threads lends the kernel."""
        cdef slopes_t c = self.slopes
        cdef slopes_room_t room
        divide_slopes(&c, threads)
        divide_slopes_room(&c, NULL, &room)
        return room.used

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads.

        Parameters
        ----------
        threads : int

        Returns
        -------
        int
        """
        use_set(self.loops)
        cdef slopes_t c = self.slopes
        cdef double work = self.cost * 25
        cdef ptrdiff_t chunks = min(<ptrdiff_t>threads, <ptrdiff_t>(min(work, 1e15) / CHUNK_WORK))
        if chunks <= 1:
            return 1
        divide_slopes(&c, chunks)
        return max(1, min(chunks, c.groups * c.across * c.downs))


def slopes_kernel(tuple inputs not None, tuple outputs not None, *, size_t multiply, **options):
    """The kernel of the gradient of a convolution's weights, of certain dtypes and shapes.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    multiply : int
        As for `convolution_kernel`.
    **options
        As `SlopesState` takes them.

    Returns
    -------
    Kernel
    """
    cdef SlopesState kept = SlopesState(inputs, outputs[0], **options)
    kept.slopes.multiply = <multiply_fn>multiply
    return Kernel(
        fn=<size_t>convolve_slopes,
        state=<size_t>&kept.slopes,
        name=f"convolution_slopes[{','.join(inputs)}->{outputs[0]}]",
        itemsizes=tuple(map(ITEM_SIZES.__getitem__, inputs + outputs)),
        cost=kept.cost,
        owner=kept,
        scratch=kept.scratch_for(1),
        chunks=kept.chunks,
    )
