"""Beam search: all states of a width are expanded by one buffer at a time.

A state has some buffers placed.  Every other one has a lowest place, on top of the placed ones
that it meets.  The *floor* of a section is the lowest of these in it, and its *reach* the floor
and all that is still to come above it: no completion is lower.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memset

from aclnn.graph.planner.problem cimport ENDLESS, buffer_t, late, list_members, meet, part_t, work_t


cdef enum:
    MOST_MEMBERS = 1 << 22  # of all sections together, for a beam


cdef struct state_t:
    int64_t worst        # reach
    double excess        # of reaches above the goal, together
    uint64_t hash
    int64_t *lowest      # by buffer; ENDLESS once placed
    int64_t *offsets
    int64_t *rest        # by section: what is to come
    int64_t *floors
    int64_t *second      # floors without the buffer that makes them
    int64_t *reach
    int *owner           # that buffer
    int *heir            # the one that makes `second`


cdef struct child_t:
    int64_t worst
    int64_t rough        # `worst`, where that is above what is tolerated
    double excess
    int64_t extent
    uint64_t hash
    int parent
    int which
    int64_t place


cdef struct beam_t:
    int64_t goal
    int64_t tolerated    # reach, for the sake of little excess
    double *weights      # of buffers in a dive: the heaviest are tried first
    bint squared         # excess counts by its square
    int extent           # that the larger decides: 0 size, 1 area, 2 span
    int *starts          # of the members of each section
    int *members
    int *low             # first section that a buffer and those that it meets cover
    int *high            # last one
    state_t *now
    state_t *then
    child_t *children
    char *block


cdef inline int by_score(const void *a, const void *b) noexcept nogil:
    cdef const child_t *x = <const child_t *>a
    cdef const child_t *y = <const child_t *>b
    if x.rough != y.rough:
        return -1 if x.rough < y.rough else 1
    if x.excess != y.excess:
        return -1 if x.excess < y.excess else 1
    if x.extent != y.extent:
        return -1 if x.extent > y.extent else 1
    if x.parent != y.parent:
        return -1 if x.parent < y.parent else 1
    return -1 if x.which < y.which else x.which > y.which


cdef inline uint64_t mixed(uint64_t which, uint64_t index) noexcept nogil:
    cdef uint64_t x = which * <uint64_t>0x9E3779B97F4A7C15 ^ index * <uint64_t>0xC2B2AE3D27D4EB4F
    x ^= x >> 29
    x *= <uint64_t>0xBF58476D1CE4E5B9
    return x ^ x >> 32


cdef inline void count_reach(
    const beam_t *beam, child_t *child, int64_t before, int64_t now
) noexcept nogil:
    """Score a section's reach that was `before`; it never falls."""
    cdef double more, less
    if now > child.worst:
        child.worst = now
    if now > beam.goal:
        more = <double>(now - beam.goal)
        less = <double>max(0, before - beam.goal)
        child.excess += more * more - less * less if beam.squared else more - less


cdef inline bint is_beaten(const child_t *child, const child_t *rival) noexcept nogil:
    """Whether a child whose score only grows is no better than a rival already."""
    if child.worst >= rival.rough:
        return child.worst > rival.rough or child.excess >= rival.excess
    return False


cdef inline bint judge(
    work_t *w, const part_t *p, const beam_t *beam, const state_t *s, child_t *child,
    const child_t *rival,
) noexcept nogil:
    """Score the state in which `child.which` is placed too; False when nothing better comes of it.

    Only those sections are looked at whose reach that changes, and as long as no rival is as good.
    """
    cdef int c, j = child.which
    cdef const buffer_t *one = &p.buffers[j]
    cdef int64_t top = child.place + one.size, floor, rest
    child.worst = s.worst
    child.excess = s.excess
    child.hash = s.hash ^ mixed(j, child.place)
    child.extent = one.size if beam.extent == 0 else one.last - one.first + 1
    if beam.extent == 1:
        child.extent *= min(one.size, ENDLESS // p.sections)
    w.visits += (one.last - one.first) >> 1
    for c in range(one.first, one.last + 1):
        rest = s.rest[c] - one.size
        floor = top
        if rest and s.owner[c] == j and s.second[c] > top:
            floor = s.second[c]
        count_reach(beam, child, s.reach[c], floor + rest)
    if child.worst >= p.size:
        return False
    for c in range(beam.low[j], beam.high[j] + 1):
        if rival and is_beaten(child, rival):
            w.visits += (c - beam.low[j]) >> 1
            return False
        if one.first <= c <= one.last or s.floors[c] >= top:
            continue
        if not meet(&p.buffers[s.owner[c]], one):
            continue
        floor = min(top, s.second[c])
        if s.second[c] < top and meet(&p.buffers[s.heir[c]], one):
            floor = floor_beside(w, p, beam, s, c, one, top)
        count_reach(beam, child, s.reach[c], floor + s.rest[c])
    w.visits += (beam.high[j] - beam.low[j]) >> 1
    child.rough = max(child.worst, beam.tolerated)
    return child.worst < p.size


cdef inline int64_t floor_beside(
    work_t *w, const part_t *p, const beam_t *beam, const state_t *s, int c, const buffer_t *one,
    int64_t top,
) noexcept nogil:
    """The floor of a section when all that meet `one` are at `top` or above."""
    cdef int m, k
    cdef int64_t floor = top
    for m in range(beam.starts[c], beam.starts[c + 1]):
        k = beam.members[m]
        if s.lowest[k] < floor and not meet(&p.buffers[k], one):
            floor = s.lowest[k]
    w.visits += beam.starts[c + 1] - beam.starts[c]
    return floor


cdef inline int list_children(
    work_t *w, const part_t *p, const beam_t *beam, int parent, child_t *children
) noexcept nogil:
    """List the buffers that can be lowest in the section with the lowest floor, without scores."""
    cdef const state_t *s = &beam.now[parent]
    cdef int c, k, m, at = 0, found = 0
    cdef int64_t ceiling = ENDLESS
    for c in range(p.sections):
        if s.floors[c] < s.floors[at] or s.floors[c] == s.floors[at] and s.rest[c] > s.rest[at]:
            at = c
    for m in range(beam.starts[at], beam.starts[at + 1]):
        k = beam.members[m]
        ceiling = min(ceiling, s.lowest[k] + p.buffers[k].size)
    for m in range(beam.starts[at], beam.starts[at + 1]):
        k = beam.members[m]
        # What begins above the end of another one could have that one below it.
        if s.lowest[k] < ceiling:
            children[found].parent = parent
            children[found].which = k
            children[found].place = s.lowest[k]
            found += 1
    w.visits += (p.sections >> 1) + beam.starts[at + 1] - beam.starts[at]
    return found


cdef inline int expand(
    work_t *w, const part_t *p, const beam_t *beam, int parent, child_t *children
) noexcept nogil:
    """List the next children of which something better may come."""
    cdef int i, found = 0, count = list_children(w, p, beam, parent, children)
    for i in range(count):
        children[found] = children[i]
        found += judge(w, p, beam, &beam.now[parent], &children[found], NULL)
    return found


cdef inline void advance(
    work_t *w, const part_t *p, const beam_t *beam, const child_t *child, state_t *z
) noexcept nogil:
    """Make the state that `child` describes; it may be the one that it comes from."""
    cdef const state_t *s = &beam.now[child.parent]
    cdef int k, c, j = child.which
    cdef const buffer_t *one = &p.buffers[j]
    cdef int64_t top = child.place + one.size
    if z != s:
        memcpy(z.lowest, s.lowest, <char *>(s.heir + p.sections) - <char *>s.lowest)
    z.worst = child.worst
    z.excess = child.excess
    z.hash = child.hash
    z.lowest[j] = ENDLESS
    z.offsets[j] = child.place
    for k in range(p.count):
        if z.lowest[k] < top and meet(&p.buffers[k], one):
            z.lowest[k] = top
    for c in range(one.first, one.last + 1):
        z.rest[c] -= one.size
        z.reach[c] = top
        look_at(w, beam, z, c, top)
    for c in range(beam.low[j], beam.high[j] + 1):
        # Elsewhere floors only change with the two members that make them.
        if s.floors[c] < top and not one.first <= c <= one.last and (
            meet(&p.buffers[s.owner[c]], one)
            or s.heir[c] >= 0 and meet(&p.buffers[s.heir[c]], one)
        ):
            look_at(w, beam, z, c, 0)
    w.visits += p.count + p.sections


cdef inline void look_at(
    work_t *w, const beam_t *beam, state_t *z, int c, int64_t least
) noexcept nogil:
    """Find the two lowest places in a section, none of which is below `least`."""
    cdef int m = 0, k, owner = -1, heir = -1
    cdef int64_t floor = ENDLESS, second = ENDLESS, index
    for m in range(beam.starts[c], beam.starts[c + 1]):
        k = beam.members[m]
        index = z.lowest[k]
        if index < floor:
            second = floor
            heir = owner
            floor = index
            owner = k
        elif index < second:
            second = index
            heir = k
            if second <= least:
                break
    z.floors[c] = floor
    z.second[c] = second
    z.owner[c] = owner
    z.heir[c] = heir
    if z.rest[c]:
        z.reach[c] = floor + z.rest[c]
    w.visits += m - beam.starts[c]


cdef inline bint set_up(beam_t *beam, const part_t *p, int width) noexcept nogil:
    """Room for a beam; False when there is no memory, or too much is needed."""
    cdef int k, i, n = p.count, m = p.sections
    cdef int64_t total = 0
    cdef size_t state = (2 * n + 4 * m) * sizeof(int64_t) + 2 * m * sizeof(int)
    cdef state_t *one
    cdef char *at
    for k in range(n):
        total += p.buffers[k].last - p.buffers[k].first + 1
    if total > MOST_MEMBERS:
        return False
    beam.block = at = <char *>malloc(
        2 * width * (state + sizeof(state_t)) + (width * n + 1) * sizeof(child_t)
        + (m + 1 + total + 2 * n) * sizeof(int) + n * sizeof(double)
    )
    if at == NULL:
        return False
    beam.now = <state_t *>at
    beam.then = beam.now + width
    at += 2 * width * sizeof(state_t)
    beam.children = <child_t *>at
    at += (width * n + 1) * sizeof(child_t)
    for i in range(2 * width):
        one = beam.now + i
        one.lowest = <int64_t *>at
        one.offsets = one.lowest + n
        one.rest = one.offsets + n
        one.floors = one.rest + m
        one.second = one.floors + m
        one.reach = one.second + m
        one.owner = <int *>(one.reach + m)
        one.heir = one.owner + m
        at += state
    beam.weights = <double *>at
    beam.starts = <int *>(beam.weights + n)
    beam.members = beam.starts + m + 1
    beam.low = beam.members + total
    beam.high = beam.low + n
    list_reach(beam, p)
    return True


cdef inline void list_reach(beam_t *beam, const part_t *p) noexcept nogil:
    """The members of each section, and how far what a buffer meets goes."""
    cdef int k, c, m
    list_members(p, beam.starts, beam.members)
    for k in range(p.count):
        # Members are in order of their first sections; the widest ends are looked for.
        beam.low[k] = p.buffers[beam.members[beam.starts[p.buffers[k].first]]].first
        beam.high[k] = 0
        c = p.buffers[k].last
        for m in range(beam.starts[c], beam.starts[c + 1]):
            beam.high[k] = max(beam.high[k], p.buffers[beam.members[m]].last)


cdef inline void begin(work_t *w, const part_t *p, beam_t *beam) noexcept nogil:
    """The state in which nothing is placed."""
    cdef int k, c
    cdef state_t *s = beam.now
    memset(s.lowest, 0, (2 * p.count + 4 * p.sections) * sizeof(int64_t))
    s.hash = 0
    s.worst = 0
    s.excess = 0
    for k in range(p.count):
        for c in range(p.buffers[k].first, p.buffers[k].last + 1):
            s.rest[c] += p.buffers[k].size
    for c in range(p.sections):
        look_at(w, beam, s, c, 0)
        s.worst = max(s.worst, s.reach[c])
    w.visits += beam.starts[p.sections] + p.count + p.sections


cdef inline void search_beam(
    work_t *w, part_t *p, int turn, int width, int64_t goal, int64_t visits
) noexcept nogil:
    """Place buffers one by one; keep so many of the best states, at most `width`, as work allows.

    What is best is scored in another way at each of six turns.
    """
    cdef beam_t beam
    cdef int level = 0, i, k, count = 1, found, taken, allowed = 1
    cdef int64_t before, stop = w.visits + visits
    cdef state_t *swap
    if not set_up(&beam, p, width):
        return
    beam.goal = goal
    beam.tolerated = goal + (p.size - 1 - goal) // 4 * (turn * 2 % 3)
    beam.squared = turn % 2
    beam.extent = turn % 3
    begin(w, p, &beam)
    for level in range(p.count):
        before = w.visits
        found = 0
        for i in range(count):
            found += expand(w, p, &beam, i, beam.children + found)
        qsort(beam.children, found, sizeof(child_t), by_score)
        taken = 0
        for k in range(found):
            if taken == allowed:
                break
            if not is_known(&beam, taken, beam.children[k].hash):
                advance(w, p, &beam, &beam.children[k], &beam.then[taken])
                taken += 1
        allowed = as_wide_as(stop - w.visits, p.count - level, (w.visits - before) // count, width)
        count = taken
        swap = beam.now
        beam.now = beam.then
        beam.then = swap
        if count == 0 or late(w):
            break
    if count and level == p.count - 1:
        p.size = beam.now.worst
        memcpy(p.best, beam.now.offsets, p.count * sizeof(int64_t))
    free(beam.block)


cdef inline int as_wide_as(int64_t visits, int levels, int64_t each, int width) noexcept nogil:
    """States for which `visits` suffice at so many levels; one that is begun is always ended."""
    return <int>max(1, min(width, visits // (levels * max(1, each))))


cdef inline bint is_known(const beam_t *beam, int taken, uint64_t hash) noexcept nogil:
    cdef int i
    for i in range(taken):
        if beam.then[i].hash == hash:
            return True
    return False
