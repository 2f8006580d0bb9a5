"""Boxes: buffers that fit together become one, until few are left to be placed.

Two buffers that follow each other lie at one place, two that live at nearly the same time lie on
top of each other.  Either pair is a box with little waste, which pairs up in turn.  A pair is made
only where no section then needs more than a capacity: where there is no room to waste, only what
fits exactly is put together.  What is left at the end is placed as buffers are, and every buffer
then has its place in its box.

The pairs with the least waste come first.  Random numbers, added to the waste, make one run
different from the next.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from aclnn.graph.planner.problem cimport buffer_t, drawn, over, part_t, work_t


cdef enum:
    BOXED_LARGEST = 1024  # buffers of a part that is boxed
    PAIRS_EACH = 64       # pairs that are remembered for each buffer


cdef enum:
    ALONE, BESIDE, ABOVE  # what a box is: a buffer, one behind the other, one on top of the other


cdef struct box_t:
    int first
    int last
    int64_t size
    int kind
    int one
    int other
    bint gone        # it is part of another box
    int64_t place


cdef struct pair_t:
    int one
    int other
    double waste     # as a part of the box


cdef struct boxing_t:
    work_t *w
    const part_t *p
    int64_t capacity
    double most         # waste of a pair
    uint64_t *seed
    box_t *boxes        # buffers first
    int count
    pair_t *pairs
    int paired
    int64_t *live       # by section
    char *block


cdef inline bint start_boxing(
    boxing_t *b, work_t *w, const part_t *p, uint64_t *seed
) noexcept nogil:
    """Room for boxes; False when there is no memory."""
    cdef size_t n = p.count
    cdef char *at = <char *>malloc(
        2 * n * sizeof(box_t) + PAIRS_EACH * n * sizeof(pair_t) + p.sections * sizeof(int64_t)
    )
    b.w, b.p, b.seed, b.block = w, p, seed, at
    if at == NULL:
        return False
    b.boxes = <box_t *>at
    b.pairs = <pair_t *>(b.boxes + 2 * n)
    b.live = <int64_t *>(b.pairs + PAIRS_EACH * n)
    return True


cdef inline box_t paired(const boxing_t *b, int i, int k) noexcept nogil:
    """The box of two, the one that begins first in front or below."""
    cdef const box_t *one = &b.boxes[i]
    cdef const box_t *other = &b.boxes[k]
    cdef box_t found
    if other.first < one.first:
        i, k, one, other = k, i, other, one
    found.one, found.other, found.gone, found.place = i, k, False, 0
    found.first, found.last = one.first, max(one.last, other.last)
    found.kind = BESIDE if one.last < other.first else ABOVE
    found.size = max(one.size, other.size) if found.kind == BESIDE else one.size + other.size
    return found


cdef inline double area(const box_t *one) noexcept nogil:
    return <double>one.size * (one.last - one.first + 1)


cdef inline void consider(boxing_t *b, int i, int k) noexcept nogil:
    """Remember a pair if its waste is small."""
    cdef box_t both = paired(b, i, k)
    cdef double whole = area(&both), waste
    cdef pair_t *pair = &b.pairs[b.paired]
    waste = (whole - area(&b.boxes[i]) - area(&b.boxes[k])) / whole
    if waste > b.most or b.paired >= PAIRS_EACH * b.p.count:
        return
    pair.one, pair.other = i, k
    pair.waste = waste * (0.75 + 0.5 * drawn(b.seed)) + 0.0001 * drawn(b.seed)
    b.paired += 1


cdef inline int64_t needs(const box_t *one, int c) noexcept nogil:
    return one.size if one.first <= c <= one.last else 0


cdef inline bint fits(boxing_t *b, const pair_t *pair) noexcept nogil:
    """Whether no section of the box then needs more than the capacity."""
    cdef box_t both = paired(b, pair.one, pair.other)
    cdef const box_t *one = &b.boxes[pair.one]
    cdef const box_t *other = &b.boxes[pair.other]
    cdef int c
    b.w.visits += (both.last - both.first) >> 1
    for c in range(both.first, both.last + 1):
        if b.live[c] + both.size - needs(one, c) - needs(other, c) > b.capacity:
            return False
    return True


cdef inline void join(boxing_t *b, const pair_t *pair) noexcept nogil:
    """Make a box of a pair, and look for pairs with it."""
    cdef box_t both = paired(b, pair.one, pair.other)
    cdef box_t *one = &b.boxes[both.one]
    cdef box_t *other = &b.boxes[both.other]
    cdef int c, k
    for c in range(both.first, both.last + 1):
        b.live[c] += both.size - needs(one, c) - needs(other, c)
    one.gone = other.gone = True
    b.boxes[b.count] = both
    b.count += 1
    for k in range(b.count - 1):
        if not b.boxes[k].gone:
            consider(b, k, b.count - 1)
    b.w.visits += b.count


cdef inline int next_pair(boxing_t *b) noexcept nogil:
    """The pair with the least waste; -1 without any.  Pairs of what is gone are forgotten."""
    cdef int i, kept = 0, best = -1
    cdef pair_t *pair
    for i in range(b.paired):
        pair = &b.pairs[i]
        if b.boxes[pair.one].gone or b.boxes[pair.other].gone:
            continue
        b.pairs[kept] = pair[0]
        if best < 0 or pair.waste < b.pairs[best].waste:
            best = kept
        kept += 1
    b.w.visits += b.paired >> 1
    b.paired = kept
    return best


cdef inline void make_boxes(boxing_t *b, int64_t capacity, double most) noexcept nogil:
    """Put together what fits, from single buffers on."""
    cdef int k, c, best
    cdef const buffer_t *one
    b.capacity, b.most, b.paired, b.count = capacity, most, 0, b.p.count
    memset(b.live, 0, b.p.sections * sizeof(int64_t))
    for k in range(b.count):
        one = &b.p.buffers[k]
        b.boxes[k].first, b.boxes[k].last, b.boxes[k].size = one.first, one.last, one.size
        b.boxes[k].kind, b.boxes[k].gone = ALONE, False
        for c in range(one.first, one.last + 1):
            b.live[c] += one.size
        for c in range(k):
            consider(b, c, k)
    b.w.visits += <int64_t>b.count * b.count >> 1
    while not over(b.w):
        best = next_pair(b)
        if best < 0:
            break
        if fits(b, &b.pairs[best]):
            join(b, &b.pairs[best])
        else:  # sections never need less again
            b.paired -= 1
            b.pairs[best] = b.pairs[b.paired]


cdef inline int list_boxes(const boxing_t *b, buffer_t *found) noexcept nogil:
    """Boxes and buffers that are part of no box, as buffers whose `which` are boxes."""
    cdef int k, count = 0
    for k in range(b.count):
        if not b.boxes[k].gone:
            found[count].first, found[count].last = b.boxes[k].first, b.boxes[k].last
            found[count].size, found[count].which = b.boxes[k].size, k
            count += 1
    return count


cdef inline int64_t unpack(boxing_t *b, int64_t *offsets) noexcept nogil:
    """Places of all buffers in the boxes, which have theirs; the height."""
    cdef int k
    cdef int64_t height = 0
    cdef box_t *box
    for k in range(b.count - 1, b.p.count - 1, -1):  # a box is behind its parts
        box = &b.boxes[k]
        b.boxes[box.one].place = box.place
        b.boxes[box.other].place = box.place + (b.boxes[box.one].size if box.kind == ABOVE else 0)
    for k in range(b.p.count):
        offsets[k] = b.boxes[k].place
        height = max(height, offsets[k] + b.p.buffers[k].size)
    return height
