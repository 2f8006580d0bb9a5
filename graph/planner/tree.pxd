"""Tree search: whether anything fits below a capacity.

Some such packing has every buffer on the ground or on top of one that it meets; placing buffers
by ascending places visits all of these.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport malloc, qsort
from libc.string cimport memcpy

from aclnn.graph.planner.first_fit cimport by_keys
from aclnn.graph.planner.problem cimport (
    CLOCK_EVERY,
    ENDLESS,
    buffer_t,
    key_t,
    late,
    meet,
    part_t,
    work_t,
)


cdef enum: FOUND, NONE, STOPPED


cdef struct tree_t:
    work_t *w
    const buffer_t *buffers
    int *rank
    int64_t capacity
    int64_t nodes
    int64_t budget
    int64_t *offsets
    int *members           # stacks, a level on top of the other
    int64_t *lowest        # places of the members
    key_t *candidates
    int64_t *waiting       # by section
    int64_t *floors
    char *block


cdef inline bint grow(tree_t *t, const part_t *p) noexcept nogil:
    """Room for a tree; False when there is no memory."""
    cdef size_t n = p.count, m = p.sections + 2, stack = n * (n + 3)
    cdef char *at = <char *>malloc(
        stack * (sizeof(int) + sizeof(int64_t) + sizeof(key_t)) + (n + 2 * m) * sizeof(int64_t)
        + n * sizeof(int)
    )
    t.block = at
    if at == NULL:
        return False
    t.candidates = <key_t *>at
    t.lowest = <int64_t *>(t.candidates + stack)
    t.offsets = t.lowest + stack
    t.waiting = t.offsets + n
    t.floors = t.waiting + m
    t.members = <int *>(t.floors + m)
    t.rank = t.members + stack
    t.buffers = p.buffers
    return True


cdef inline int search_tree(
    work_t *w, part_t *p, tree_t *t, int64_t capacity, int64_t budget
) noexcept nogil:
    """Whether all fit below `capacity`, as far as `budget` nodes tell; `w` has the order."""
    cdef int k, status
    cdef int64_t size = 0
    t.w = w
    t.capacity = capacity
    t.nodes = 0
    t.budget = budget
    for k in range(p.count):
        t.rank[w.order[k]] = k
        t.members[k] = k
        t.lowest[k] = 0
    status = fill(t, 0, p.count, 0, -1, p.count)
    if status == FOUND:
        for k in range(p.count):
            size = max(size, t.offsets[k] + p.buffers[k].size)
        p.size = size
        memcpy(p.best, t.offsets, p.count * sizeof(int64_t))
    return status


cdef inline int fill(
    tree_t *t, int base, int count, int64_t ground, int rank, int free_from
) noexcept nogil:
    """Place the members from `base` on; those that nothing links are placed apart."""
    cdef int begin = base, k, last = -1, status
    cdef const buffer_t *one
    for k in range(base, base + count):
        one = &t.buffers[t.members[k]]
        if k > base and one.first > last:
            status = fill_linked(t, begin, k - begin, ground, rank, free_from)
            if status != FOUND:
                return status
            begin = k
        last = max(last, one.last)
    if begin == base + count:
        return FOUND
    return fill_linked(t, begin, base + count - begin, ground, rank, free_from)


cdef inline int fill_linked(
    tree_t *t, int base, int count, int64_t ground, int rank, int free_from
) noexcept nogil:
    """Try every member that can come next, above `ground` or at it, there only behind `rank`."""
    cdef int at, k, i, j, found, status
    cdef int64_t index, top
    cdef const buffer_t *one
    cdef const buffer_t *other
    if is_spent(t, count):
        return STOPPED
    if is_hopeless(t, base, count, ground):
        return NONE
    found = list_candidates(t, base, count, ground, rank, free_from)
    for at in range(found):
        k = t.candidates[free_from + at].which
        one = &t.buffers[t.members[k]]
        index = t.lowest[k]
        top = index + one.size
        if top > t.capacity:
            continue
        t.offsets[t.members[k]] = index
        i = free_from
        for j in range(base, base + count):
            if j == k:
                continue
            other = &t.buffers[t.members[j]]
            t.members[i] = t.members[j]
            t.lowest[i] = t.lowest[j]
            if t.lowest[i] < top and meet(other, one):
                t.lowest[i] = top
            i += 1
        status = fill(t, free_from, count - 1, index, t.rank[t.members[k]], free_from + count)
        if status != NONE:
            return status
    return NONE


cdef inline bint is_spent(tree_t *t, int count) noexcept nogil:
    t.nodes += 1
    t.w.visits += count
    if t.nodes > t.budget:
        return True
    t.w.nodes += 1
    return t.w.nodes % CLOCK_EVERY == 0 and late(t.w)


cdef inline bint is_hopeless(tree_t *t, int base, int count, int64_t ground) noexcept nogil:
    """Whether some section needs too much, however its members are stacked."""
    cdef int k, s, low = t.buffers[t.members[base]].first, high = low
    cdef int64_t index, waiting = 0
    cdef const buffer_t *one
    for k in range(base, base + count):
        high = max(high, t.buffers[t.members[k]].last)
    for s in range(low, high + 2):
        t.waiting[s] = 0
        t.floors[s] = ENDLESS
    for k in range(base, base + count):
        one = &t.buffers[t.members[k]]
        index = max(ground, t.lowest[k])
        t.waiting[one.first] += one.size
        t.waiting[one.last + 1] -= one.size
        for s in range(one.first, one.last + 1):
            t.floors[s] = index if index < t.floors[s] else t.floors[s]
    for s in range(low, high + 1):
        waiting += t.waiting[s]
        if t.floors[s] + waiting > t.capacity:
            return True
    return False


cdef inline bint is_alike(const buffer_t *a, const buffer_t *b) noexcept nogil:
    """Whether one can stand for the other."""
    return a.first == b.first and a.last == b.last and a.size == b.size


cdef inline int list_candidates(
    tree_t *t, int base, int count, int64_t ground, int rank, int into
) noexcept nogil:
    """Members that can come next, lowest first, and how many they are."""
    cdef int k, i, found = 0
    cdef int64_t ceiling = ENDLESS
    cdef const buffer_t *one
    cdef const buffer_t *before
    for k in range(base, base + count):
        if t.lowest[k] >= ground:
            ceiling = min(ceiling, t.lowest[k] + t.buffers[t.members[k]].size)
    for k in range(base, base + count):
        i = t.members[k]
        # Above the end of another one it would leave room for that one below.
        if t.lowest[k] < ground or t.lowest[k] >= ceiling:
            continue
        # At equal places the order makes no difference: one is enough.
        if t.lowest[k] == ground and t.rank[i] < rank:
            continue
        one = &t.buffers[i]
        before = &t.buffers[t.members[k - 1]] if k > base else NULL
        if before and is_alike(one, before):
            continue
        t.candidates[into + found].first = t.lowest[k]
        t.candidates[into + found].second = t.rank[i]
        t.candidates[into + found].which = k
        found += 1
    qsort(t.candidates + into, found, sizeof(key_t), by_keys)
    return found
