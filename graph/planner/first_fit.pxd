"""First fit over several orders, and an order that improves by what ends too high."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove

from aclnn.graph.planner.problem cimport (
    CLOCK_EVERY,
    ENDLESS,
    FIRST_SEED,
    buffer_t,
    key_t,
    late,
    over,
    part_t,
    placed_t,
    work_t,
)


cdef inline int by_keys(const void *a, const void *b) noexcept nogil:
    cdef const key_t *x = <const key_t *>a
    cdef const key_t *y = <const key_t *>b
    if x.first != y.first:
        return -1 if x.first < y.first else 1
    if x.second != y.second:
        return -1 if x.second < y.second else 1
    return -1 if x.which < y.which else x.which > y.which


cdef inline int64_t first_fit(
    work_t *w, const part_t *p, int64_t capacity, bint tightest, int *failed
) noexcept nogil:
    """Place buffers in `w.order`, each in the lowest gap (or the tightest one) that holds it.

    Returns the height, or -1 and the place in the order of the buffer that ends above `capacity`.
    """
    cdef int k, j, at
    cdef int64_t top, room, slack, index, height = 0
    cdef const buffer_t *one
    cdef placed_t *placed = w.placed
    for k in range(p.count):
        one = &p.buffers[w.order[k]]
        top = slack = 0
        index = -1
        for j in range(k):
            if placed[j].first > one.last or placed[j].last < one.first:
                continue
            room = placed[j].begin - top - one.size
            if room >= 0 and (index < 0 or room < slack):
                index = top
                slack = room
                if not tightest or slack == 0:
                    w.visits -= k - j - 1
                    break
            if placed[j].end > top:
                top = placed[j].end
        w.visits += k
        if index < 0:
            index = top
        failed[0] = k
        if index + one.size > capacity:
            return -1
        if k % CLOCK_EVERY == CLOCK_EVERY - 1 and late(w):
            return -1
        w.offsets[w.order[k]] = index
        if index + one.size > height:
            height = index + one.size
        at = behind(placed, k, index)
        memmove(&placed[at + 1], &placed[at], (k - at) * sizeof(placed_t))
        placed[at].begin = index
        placed[at].end = index + one.size
        placed[at].first = one.first
        placed[at].last = one.last
    return height


cdef inline int behind(const placed_t *placed, int count, int64_t begin) noexcept nogil:
    """The place behind all that begin at `begin` or below."""
    cdef int low = 0, high = count, middle
    while low < high:
        middle = (low + high) >> 1
        if placed[middle].begin <= begin:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline void keep(work_t *w, part_t *p, int64_t size) noexcept nogil:
    """Take the places that were just found, if they need less."""
    if size >= 0 and size < p.size:
        p.size = size
        memcpy(p.best, w.offsets, p.count * sizeof(int64_t))


cdef inline void sort_by(work_t *w, const part_t *p, int key, const int64_t *live) noexcept nogil:
    """Order buffers for first fit: by size, span, area, start, or what is live at the same time."""
    cdef int k, s
    cdef int64_t span, most, peak
    cdef const buffer_t *one
    for k in range(p.count):
        one = &p.buffers[k]
        span = one.last - one.first + 1
        w.keys[k].which = k
        w.keys[k].first = w.keys[k].second = -one.size
        if key == 0:
            w.keys[k].second = one.first
        elif key == 1:
            w.keys[k].first = -span
        elif key == 2:
            # Areas are compared as far as they fit into 63 bits.
            most = ENDLESS // p.sections
            w.keys[k].first = -span * (one.size if one.size < most else most)
        elif key == 3:
            w.keys[k].first = one.first
        else:
            peak = 0
            for s in range(one.first, one.last + 1):
                peak = max(peak, live[s])
            w.keys[k].first = -peak
    qsort(w.keys, p.count, sizeof(key_t), by_keys)
    for k in range(p.count):
        w.order[k] = w.keys[k].which


cdef inline void order_by_place(work_t *w, const part_t *p) noexcept nogil:
    """The order in which first fit finds the best places again, or lower ones."""
    cdef int k
    for k in range(p.count):
        w.keys[k].first = p.best[k]
        w.keys[k].second = -p.buffers[k].size
        w.keys[k].which = k
    qsort(w.keys, p.count, sizeof(key_t), by_keys)
    for k in range(p.count):
        w.order[k] = w.keys[k].which


cdef inline void descend(work_t *w, part_t *p, int64_t goal, int64_t visits) noexcept nogil:
    """Aim below the best size; whatever ends too high goes to some earlier place in the order."""
    cdef int failed = 0, to, one
    cdef int64_t size, stop = w.visits + visits
    cdef uint64_t seed = FIRST_SEED
    order_by_place(w, p)
    while p.size > goal and w.visits < stop and not over(w):
        size = first_fit(w, p, p.size - 1 - (p.size - goal - 1) // 8, False, &failed)
        if size >= 0:
            keep(w, p, size)
            continue
        seed ^= seed << 13
        seed ^= seed >> 7
        seed ^= seed << 17
        to = <int>(seed % <uint64_t>(failed + 1))
        one = w.order[failed]
        memmove(&w.order[to + 1], &w.order[to], (failed - to) * sizeof(int))
        w.order[to] = one
        w.visits += 1
