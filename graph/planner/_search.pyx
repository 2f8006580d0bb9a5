"""Search for places: first fit, dives, beam search and tree search over flat arrays.

Steps are compressed first.  Two lifetimes are needed together exactly where both belong to one
maximal set of lifetimes that are live at once; such sets, in the order of time, are the *sections*,
and every lifetime covers a range of them.  Where no lifetime crosses from one section to the next,
the problem falls into *parts* that are solved one by one.

Work is counted in visits: buffers that are looked at while another one is placed.  A limit on
visits, unlike one on time, gives equal lifetimes equal places on every machine.  Only `prove` looks
at the clock.  All of it runs without the interpreter's lock.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memmove, memset

from graph.planner.boxing cimport (
    BOXED_LARGEST,
    boxing_t,
    list_boxes,
    make_boxes,
    start_boxing,
    unpack,
)
from graph.planner.forced cimport search_forced
from graph.planner.problem cimport (
    ENDLESS,
    buffer_t,
    check_signals,
    clock,
    drawn,
    key_t,
    late,
    list_members,
    meet,
    over,
    part_t,
    placed_t,
    roughly_log2,
    work_t,
)


cdef enum:
    ALIGNMENT = 64         # bytes that every place is a multiple of
    NPU_BLOCK = 512        # that the NPU library's buffers are multiples of, after it
    NPU_EXTRA = 32         # added these
    KEYS = 5               # orders of first fit
    FEW = 12               # buffers whose tree is searched before anything larger is tried
    FEW_NODES = 20000      # of that tree
    LARGEST_TREE = 1024    # buffers whose places are searched as a tree
    LARGEST_BEAM = 4096    # or by a beam
    MOST_MEMBERS = 1 << 22  # of all sections together, for a beam
    WEIGHING = 8           # visits that the weight of a buffer takes
    FRESH = 20             # dives by weights of their own, before others vary the best ones
    WIDEST = 64            # beam of a search by default
    BEAM_BYTES = 1 << 25   # of the states of any
    CLOCK_EVERY = 256      # nodes between looks at the clock
    SIGNALS_EVERY = 65536  # and at signals
    VISITS = 21000000      # of a search by default
    PATIENCE = 7           # runs of a forced search at a capacity, before it is raised
    PATIENT = 1000         # of one that is to prove the bound
    FORCED_SHARE = 3000    # visits of it for each node of a tree
    BOXES_PART = 4         # of the work of a search is spent on boxes, at most
    FIRST_BOXES = 32       # and before all else
    BOXES_SHARE = 400000  # visits of one placing of boxes by what sections force
    MOST_SHARERS = 16      # that are named beside a buffer

cdef double WASTED = 0.03  # of a box, at most, where buffers fit well

cdef enum: FOUND, NONE, STOPPED

cdef uint64_t FIRST_SEED = 88172645463325252

cdef int by_keys(const void *a, const void *b) noexcept nogil:
    cdef const key_t *x = <const key_t *>a
    cdef const key_t *y = <const key_t *>b
    if x.first != y.first:
        return -1 if x.first < y.first else 1
    if x.second != y.second:
        return -1 if x.second < y.second else 1
    return -1 if x.which < y.which else x.which > y.which


cdef int by_sections(const void *a, const void *b) noexcept nogil:
    cdef const buffer_t *x = <const buffer_t *>a
    cdef const buffer_t *y = <const buffer_t *>b
    if x.first != y.first:
        return -1 if x.first < y.first else 1
    if x.last != y.last:
        return -1 if x.last < y.last else 1
    if x.size != y.size:
        return -1 if x.size < y.size else 1
    return -1 if x.which < y.which else x.which > y.which


# --- First fit --------------------------------------------------------------------------------


cdef int64_t first_fit(
    work_t *w, const part_t *p, int64_t capacity, bint tightest, int *failed
) noexcept nogil:
    """Place buffers in `w.order`, each in the lowest gap (or the tightest one) that holds it.

    Returns the height, or -1 and the place in the order of the buffer that ends above `capacity`.
    """
    cdef int k, j, at
    cdef int64_t top, room, slack, place, height = 0
    cdef const buffer_t *one
    cdef placed_t *placed = w.placed
    for k in range(p.count):
        one = &p.buffers[w.order[k]]
        top = slack = 0
        place = -1
        for j in range(k):
            if placed[j].first > one.last or placed[j].last < one.first:
                continue
            room = placed[j].begin - top - one.size
            if room >= 0 and (place < 0 or room < slack):
                place = top
                slack = room
                if not tightest or slack == 0:
                    w.visits -= k - j - 1
                    break
            if placed[j].end > top:
                top = placed[j].end
        w.visits += k
        if place < 0:
            place = top
        failed[0] = k
        if place + one.size > capacity:
            return -1
        if k % CLOCK_EVERY == CLOCK_EVERY - 1 and late(w):
            return -1
        w.offsets[w.order[k]] = place
        if place + one.size > height:
            height = place + one.size
        at = behind(placed, k, place)
        memmove(&placed[at + 1], &placed[at], (k - at) * sizeof(placed_t))
        placed[at].begin = place
        placed[at].end = place + one.size
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


cdef void keep(work_t *w, part_t *p, int64_t size) noexcept nogil:
    """Take the places that were just found, if they need less."""
    if size >= 0 and size < p.size:
        p.size = size
        memcpy(p.best, w.offsets, p.count * sizeof(int64_t))


cdef void sort_by(work_t *w, const part_t *p, int key, const int64_t *live) noexcept nogil:
    """Order buffers for first fit: by size, span, area, start, or what is live beside them."""
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


cdef void order_by_place(work_t *w, const part_t *p) noexcept nogil:
    """The order in which first fit finds the best places again, or lower ones."""
    cdef int k
    for k in range(p.count):
        w.keys[k].first = p.best[k]
        w.keys[k].second = -p.buffers[k].size
        w.keys[k].which = k
    qsort(w.keys, p.count, sizeof(key_t), by_keys)
    for k in range(p.count):
        w.order[k] = w.keys[k].which


cdef void descend(work_t *w, part_t *p, int64_t goal, int64_t visits) noexcept nogil:
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


# --- Beam search ------------------------------------------------------------------------------
#
# A state has some buffers placed.  Every other one has a lowest place, on top of the placed ones
# that it meets.  The *floor* of a section is the lowest of these in it, and its *reach* the floor
# and all that is still to come above it: no completion is lower.


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


cdef int by_score(const void *a, const void *b) noexcept nogil:
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


cdef inline uint64_t mixed(uint64_t which, uint64_t place) noexcept nogil:
    cdef uint64_t x = which * <uint64_t>0x9E3779B97F4A7C15 ^ place * <uint64_t>0xC2B2AE3D27D4EB4F
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


cdef bint judge(
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


cdef int64_t floor_beside(
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


cdef int list_children(
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


cdef int expand(
    work_t *w, const part_t *p, const beam_t *beam, int parent, child_t *children
) noexcept nogil:
    """List the next children of which something better may come."""
    cdef int i, found = 0, count = list_children(w, p, beam, parent, children)
    for i in range(count):
        children[found] = children[i]
        found += judge(w, p, beam, &beam.now[parent], &children[found], NULL)
    return found


cdef void advance(
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


cdef void look_at(
    work_t *w, const beam_t *beam, state_t *z, int c, int64_t least
) noexcept nogil:
    """Find the two lowest places in a section, none of which is below `least`."""
    cdef int m = 0, k, owner = -1, heir = -1
    cdef int64_t floor = ENDLESS, second = ENDLESS, place
    for m in range(beam.starts[c], beam.starts[c + 1]):
        k = beam.members[m]
        place = z.lowest[k]
        if place < floor:
            second = floor
            heir = owner
            floor = place
            owner = k
        elif place < second:
            second = place
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


cdef bint set_up(beam_t *beam, const part_t *p, int width) noexcept nogil:
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


cdef void list_reach(beam_t *beam, const part_t *p) noexcept nogil:
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


cdef void begin(work_t *w, const part_t *p, beam_t *beam) noexcept nogil:
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


cdef void search_beam(
    work_t *w, part_t *p, int turn, int width, int64_t goal, int64_t visits
) noexcept nogil:
    """Place buffers one by one; keep so many of the best states, at most `width`, as work allows.

    What is best is scored in another way at each of six turns.
    """
    cdef beam_t beam
    cdef int level, i, k, count = 1, found, taken, allowed = 1
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


cdef int as_wide_as(int64_t visits, int levels, int64_t each, int width) noexcept nogil:
    """States for which `visits` suffice at so many levels; one that is begun is always ended."""
    return <int>max(1, min(width, visits // (levels * max(1, each))))


cdef bint is_known(const beam_t *beam, int taken, uint64_t hash) noexcept nogil:
    cdef int i
    for i in range(taken):
        if beam.then[i].hash == hash:
            return True
    return False


# --- Dives ------------------------------------------------------------------------------------
#
# A beam of one state.  Of the next children those with the largest weights are looked at first,
# and the first that adds no excess is taken: mostly few are looked at.  Weights make the
# difference: they follow size and span, and vary from dive to dive; once some dive came below the
# best size, its weights vary.

cdef double NOISE = 1.5  # of weights of their own, in powers of two
cdef double SHIFT = 6.0  # of weights that vary
cdef double VARIED = 0.1  # how many of them do


cdef void weigh(const part_t *p, double *weights, int turn, uint64_t *seed) noexcept nogil:
    """Weights by size and something of the span, the first without noise."""
    cdef int k
    cdef const buffer_t *one
    for k in range(p.count):
        one = &p.buffers[k]
        weights[k] = roughly_log2(one.size)
        weights[k] += (turn % 3) / 4.0 * roughly_log2(one.last - one.first + 1)
        if turn > 2:
            weights[k] += NOISE * drawn(seed)


cdef void vary(const part_t *p, const double *best, double *weights, uint64_t *seed) noexcept nogil:
    cdef int k
    for k in range(p.count):
        weights[k] = best[k]
        if drawn(seed) < VARIED:
            weights[k] += SHIFT * (drawn(seed) - 0.5)


cdef bint next_child(
    work_t *w, const part_t *p, const beam_t *beam, child_t *best
) noexcept nogil:
    """The heaviest child that adds no excess, or the one that adds least; False without any."""
    cdef const state_t *s = &beam.now[0]
    cdef child_t *left = beam.children
    cdef int i, top, count = list_children(w, p, beam, 0, left)
    best.which = -1
    while count:
        top = 0
        for i in range(1, count):
            if beam.weights[left[i].which] > beam.weights[left[top].which]:
                top = i
        w.visits += count
        if judge(w, p, beam, s, &left[top], best if best.which >= 0 else NULL):
            if best.which < 0 or left[top].rough < best.rough or (
                left[top].rough == best.rough and left[top].excess < best.excess
            ):
                best[0] = left[top]
            if best.worst == s.worst and best.excess == s.excess:
                break
        count -= 1
        left[top] = left[count]
    return best.which >= 0


cdef bint dive(work_t *w, part_t *p, beam_t *beam) noexcept nogil:
    """Place buffers one by one, as long as less than the best size may come of it."""
    cdef int level
    cdef child_t best
    begin(w, p, beam)
    beam.now.worst = max(beam.now.worst, beam.goal)
    for level in range(p.count):
        if not next_child(w, p, beam, &best):
            return False
        advance(w, p, beam, &best, beam.now)
        if w.visits >= w.limit or level % CLOCK_EVERY == 0 and late(w):
            return False
    p.size = beam.now.worst
    memcpy(p.best, beam.now.offsets, p.count * sizeof(int64_t))
    return True


cdef void search_dives(work_t *w, part_t *p, int64_t goal) noexcept nogil:
    """Dive until the goal is reached or the work used up."""
    cdef beam_t beam
    cdef double *best
    cdef int turn = 0
    cdef bint found = False
    cdef uint64_t seed = FIRST_SEED
    best = <double *>malloc(p.count * sizeof(double))
    if best == NULL or not set_up(&beam, p, 1):
        free(best)
        return
    beam.goal = beam.tolerated = goal
    beam.squared = False
    while p.size > goal and not over(w):
        if turn < FRESH or not found:
            weigh(p, beam.weights, turn, &seed)
        else:
            vary(p, best, beam.weights, &seed)
        if dive(w, p, &beam):
            memcpy(best, beam.weights, p.count * sizeof(double))
            found = True
        turn += 1
        w.visits += WEIGHING * p.count
    free(best)
    free(beam.block)


# --- Tree search ------------------------------------------------------------------------------
#
# Whether anything fits below a capacity.  Some such packing has every buffer on the ground or on
# top of one that it meets; placing buffers by ascending places visits all of these.


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


cdef bint grow(tree_t *t, const part_t *p) noexcept nogil:
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


cdef int search_tree(
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


cdef int fill(
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


cdef int fill_linked(
    tree_t *t, int base, int count, int64_t ground, int rank, int free_from
) noexcept nogil:
    """Try every member that can come next, above `ground` or at it, there only behind `rank`."""
    cdef int at, k, i, j, found, status
    cdef int64_t place, top
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
        place = t.lowest[k]
        top = place + one.size
        if top > t.capacity:
            continue
        t.offsets[t.members[k]] = place
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
        status = fill(t, free_from, count - 1, place, t.rank[t.members[k]], free_from + count)
        if status != NONE:
            return status
    return NONE


cdef bint is_spent(tree_t *t, int count) noexcept nogil:
    t.nodes += 1
    t.w.visits += count
    if t.nodes > t.budget:
        return True
    t.w.nodes += 1
    if t.w.deadline == 0 or t.w.nodes % CLOCK_EVERY:
        return False
    if t.w.nodes % SIGNALS_EVERY == 0:
        with gil:
            t.w.interrupted = check_signals() != 0
    return late(t.w)


cdef bint is_hopeless(tree_t *t, int base, int count, int64_t ground) noexcept nogil:
    """Whether some section needs too much, however its members are stacked."""
    cdef int k, s, low = t.buffers[t.members[base]].first, high = low
    cdef int64_t place, waiting = 0
    cdef const buffer_t *one
    for k in range(base, base + count):
        high = max(high, t.buffers[t.members[k]].last)
    for s in range(low, high + 2):
        t.waiting[s] = 0
        t.floors[s] = ENDLESS
    for k in range(base, base + count):
        one = &t.buffers[t.members[k]]
        place = max(ground, t.lowest[k])
        t.waiting[one.first] += one.size
        t.waiting[one.last + 1] -= one.size
        for s in range(one.first, one.last + 1):
            t.floors[s] = place if place < t.floors[s] else t.floors[s]
    for s in range(low, high + 1):
        waiting += t.waiting[s]
        if t.floors[s] + waiting > t.capacity:
            return True
    return False


cdef inline bint is_alike(const buffer_t *a, const buffer_t *b) noexcept nogil:
    """Whether one can stand for the other."""
    return a.first == b.first and a.last == b.last and a.size == b.size


cdef int list_candidates(
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


# --- All together -----------------------------------------------------------------------------


cdef void live_by_section(const part_t *p, int64_t *live) noexcept nogil:
    cdef int k, s
    memset(live, 0, (p.sections + 1) * sizeof(int64_t))
    for k in range(p.count):
        live[p.buffers[k].first] += p.buffers[k].size
        live[p.buffers[k].last + 1] -= p.buffers[k].size
    for s in range(1, p.sections):
        live[s] += live[s - 1]


cdef void place(work_t *w, part_t *p, int64_t goal, int64_t *live) noexcept nogil:
    """Look for places below `goal`, in several ways, until the work is done or used up."""
    cdef int key, tightest, failed = 0
    if p.size <= goal:
        return
    live_by_section(p, live)
    for tightest in range(2):
        for key in range(KEYS):
            sort_by(w, p, key, live)
            keep(w, p, first_fit(w, p, p.size - 1, tightest, &failed))
            if p.size <= goal or over(w):
                return
    if p.count <= FEW:
        settle(w, p, goal)
        return
    if p.count <= LARGEST_BEAM:
        spread_over(w, p, goal)
    descend(w, p, goal, w.limit)


cdef void spread_over(work_t *w, part_t *p, int64_t goal) noexcept nogil:
    """Boxes, dives, and where these leave a gap, as much work again on what sections force."""
    cdef int64_t share = w.limit - w.visits
    cdef uint64_t seed = FIRST_SEED
    search_boxes(w, p, goal, share // FIRST_BOXES, 0, &seed, True)
    search_dives(w, p, goal)
    if p.count <= LARGEST_TREE:
        w.limit = w.visits + share
        search_boxes(w, p, goal, share // BOXES_PART, 0, &seed, False)
        search_forced(w, p, goal, share, PATIENCE, FIRST_SEED)


cdef void search_boxes(
    work_t *w, part_t *p, int64_t goal, int64_t visits, int turn, uint64_t *seed, bint only_goal
) noexcept nogil:
    """Look for places of boxes, which are few, instead of buffers, with so much work.

    With `only_goal` places above the goal do not count: searches that follow begin as without.
    """
    cdef boxing_t b
    cdef part_t few
    cdef int64_t stop = w.visits + visits, known
    cdef int k
    if p.count > BOXED_LARGEST or not start_boxing(&b, w, p, seed):
        return
    few.buffers = <buffer_t *>malloc(p.count * (sizeof(buffer_t) + sizeof(int64_t)))
    few.best = <int64_t *>(few.buffers + p.count)
    while few.buffers != NULL and p.size > goal and w.visits < stop and not over(w):
        make_boxes(
            &b, goal + (p.size - 1 - goal) * (turn % 4) // 8, WASTED * (1 + turn % 3 * turn % 3))
        turn += 1
        few.count = list_boxes(&b, few.buffers)
        few.sections, few.bound = p.sections, p.bound
        few.size = known = goal + 1 if only_goal else p.size
        qsort(few.buffers, few.count, sizeof(buffer_t), by_sections)
        place_boxes(w, &few, goal)
        if few.size >= known:
            continue
        for k in range(few.count):
            b.boxes[few.buffers[k].which].place = few.best[k]
        keep(w, p, unpack(&b, w.offsets))
    free(few.buffers)
    free(b.block)


cdef void place_boxes(work_t *w, part_t *p, int64_t goal) noexcept nogil:
    """First fit, and what sections force."""
    cdef int key, failed = 0
    cdef uint64_t seed = FIRST_SEED
    for key in range(4):
        sort_by(w, p, key, NULL)
        keep(w, p, first_fit(w, p, p.size - 1, False, &failed))
        if p.size <= goal:
            return
    search_forced(w, p, goal, BOXES_SHARE, 3, seed)


cdef void settle(work_t *w, part_t *p, int64_t goal) noexcept nogil:
    """Lower the size of few buffers until nothing smaller is left."""
    cdef tree_t t
    cdef int status = FOUND
    if not grow(&t, p):
        return
    order_by_place(w, p)
    while p.size > goal and status == FOUND:
        status = search_tree(w, p, &t, p.size - 1, FEW_NODES)
    if status == NONE:
        p.bound = p.size
    free(t.block)


cdef struct bucket_t:
    int64_t height      # of its largest member, padded
    int64_t npu_height  # as the NPU library pads
    int64_t place
    int64_t npu_place


cdef struct life_t:
    int64_t size
    int64_t npu_size
    int first           # sections
    int last
    int bucket


cdef int64_t greatest_divisor(int64_t a, int64_t b) noexcept nogil:
    while b:
        a, b = b, a % b
    return a


cdef void push(int *heap, int count, int one) noexcept nogil:
    """Add to a heap of `count` whose largest is in front."""
    while count and heap[(count - 1) >> 1] < one:
        heap[count] = heap[(count - 1) >> 1]
        count = (count - 1) >> 1
    heap[count] = one


cdef int pop(int *heap, int count) noexcept nogil:
    """Take the largest from a heap of `count`."""
    cdef int top = heap[0], one = heap[count - 1], at = 0, below = 1
    count -= 1
    while below < count:
        if below + 1 < count and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= one:
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = one
    return top


cdef int raise_pending() except -1:
    """Let the exception of a signal's handler go on."""
    return -1


cdef class Search:
    """Lifetimes, and the best places that were found for them.

    Attributes
    ----------
    peak : int
        Largest sum of padded bytes that are live at one step.
    naive, bucket : int
        Bytes that the NPU library's padding and policy make of them.
    """

    cdef int count
    cdef int taking           # how many take space
    cdef int buckets
    cdef int parts
    cdef int64_t unit         # that every size is a multiple of
    cdef char *block
    cdef life_t *lives
    cdef buffer_t *buffers
    cdef part_t *part
    cdef bucket_t *bucket_of
    cdef int64_t *best
    cdef int64_t *live
    cdef int *heap
    cdef work_t w
    cdef readonly int64_t peak
    cdef readonly int64_t naive
    cdef readonly int64_t bucket

    def __init__(self, lifetimes):
        cdef int i = 0
        cdef int64_t nbytes, total = 0
        cdef life_t *one
        cdef key_t *events
        if self.block != NULL:
            raise RuntimeError("a search has its lifetimes")
        lifetimes = tuple(lifetimes)
        self.count = len(lifetimes)
        if self.count == 0:
            return
        self._reserve(self.count)
        events = self.w.keys
        for life in lifetimes:
            one = &self.lives[i]
            nbytes = life.nbytes
            total += nbytes
            if total > ENDLESS + 1:
                raise ValueError(f"lifetimes: more than {ENDLESS + 1} bytes together")
            one.size = (nbytes + ALIGNMENT - 1) & -<int64_t>ALIGNMENT
            one.npu_size = (nbytes + NPU_EXTRA + NPU_BLOCK - 1) & -<int64_t>NPU_BLOCK
            # What ends at a step ends before what begins there.
            events[2 * i].first = life.lower
            events[2 * i].second = 1
            events[2 * i + 1].first = life.upper
            events[2 * i + 1].second = 0
            events[2 * i].which = events[2 * i + 1].which = i
            if nbytes < 0 or not 0 <= events[2 * i].first < events[2 * i + 1].first:
                raise ValueError(f"lifetime {i} has no bytes or steps that can be planned")
            i += 1
        with nogil:
            self._sweep()
            self._take_places()
            self._divide()

    def __dealloc__(self):
        free(self.block)

    cdef int _reserve(self, size_t n) except -1:
        """One block for all arrays."""
        cdef char *at = <char *>malloc(
            n * (sizeof(part_t) + sizeof(buffer_t) + sizeof(bucket_t) + sizeof(placed_t)
                 + sizeof(life_t) + 2 * sizeof(key_t) + 3 * sizeof(int64_t) + 2 * sizeof(int))
            + 2 * sizeof(int64_t)
        )
        if at == NULL:
            raise MemoryError
        self.block = at
        self.part = <part_t *>at
        self.buffers = <buffer_t *>(self.part + n)
        self.bucket_of = <bucket_t *>(self.buffers + n)
        self.w.placed = <placed_t *>(self.bucket_of + n)
        self.lives = <life_t *>(self.w.placed + n)
        self.w.keys = <key_t *>(self.lives + n)
        self.best = <int64_t *>(self.w.keys + 2 * n)
        self.w.offsets = self.best + n
        self.live = self.w.offsets + n
        self.w.order = <int *>(self.live + n + 2)
        self.heap = self.w.order + n
        return 0

    cdef void _sweep(self) noexcept nogil:
        """Find sections, the peak, and the buckets of the NPU library's policy, step by step."""
        cdef int k, i, section = 0, waiting = 0
        cdef int64_t live = 0
        cdef bint open = False
        cdef life_t *one
        qsort(self.w.keys, 2 * self.count, sizeof(key_t), by_keys)
        for k in range(2 * self.count):
            i = self.w.keys[k].which
            one = &self.lives[i]
            if self.w.keys[k].second:
                one.first = section
                if one.size:
                    live += one.size
                    open = True
                    self.peak = max(self.peak, live)
                self._join_bucket(one, waiting)
                waiting -= waiting > 0
                continue
            if one.size:
                section += open  # behind the first end that follows a start
                open = False
                live -= one.size
            one.last = section - 1
            push(self.heap, waiting, one.bucket)
            waiting += 1

    cdef void _join_bucket(self, life_t *one, int waiting) noexcept nogil:
        """The highest-numbered bucket whose members are over, or a new one."""
        cdef bucket_t *bucket
        one.bucket = pop(self.heap, waiting) if waiting else self.buckets
        bucket = &self.bucket_of[one.bucket]
        if one.bucket == self.buckets:
            self.buckets += 1
            bucket.height = bucket.npu_height = 0
        bucket.height = max(bucket.height, one.size)
        bucket.npu_height = max(bucket.npu_height, one.npu_size)

    cdef void _take_places(self) noexcept nogil:
        """Sizes in the largest unit, and buckets as the first places."""
        cdef int i, k = 0
        cdef int64_t place = 0
        self.unit = 0
        for i in range(self.buckets):
            self.bucket_of[i].place = place
            self.bucket_of[i].npu_place = self.bucket
            place += self.bucket_of[i].height
            self.bucket += self.bucket_of[i].npu_height
        for i in range(self.count):
            self.naive += self.lives[i].npu_size
            if self.lives[i].size == 0:
                continue
            self.unit = greatest_divisor(self.lives[i].size, self.unit)
            self.buffers[k].first = self.lives[i].first
            self.buffers[k].last = self.lives[i].last
            self.buffers[k].which = i
            k += 1
        self.taking = k
        for k in range(self.taking):
            self.buffers[k].size = self.lives[self.buffers[k].which].size // self.unit
        qsort(self.buffers, self.taking, sizeof(buffer_t), by_sections)
        for k in range(self.taking):
            i = self.lives[self.buffers[k].which].bucket
            self.best[k] = self.bucket_of[i].place // self.unit

    cdef void _divide(self) noexcept nogil:
        """Parts that share no section, with sections of their own."""
        cdef int k, last = -1, base = 0
        cdef part_t *p = NULL
        cdef buffer_t *one
        for k in range(self.taking):
            one = &self.buffers[k]
            if one.first > last:
                p = &self.part[self.parts]
                self.parts += 1
                p.count = p.sections = 0
                p.size = p.bound = 0
                p.buffers = one
                p.best = &self.best[k]
                base = one.first
            last = max(last, one.last)
            one.first -= base
            one.last -= base
            p.count += 1
            p.sections = last - base + 1
            p.size = max(p.size, self.best[k] + one.size)
        for k in range(self.parts):
            p = &self.part[k]
            live_by_section(p, self.live)
            for last in range(p.sections):
                p.bound = max(p.bound, self.live[last])

    def place(self, int64_t visits=VISITS):
        """Search for the smallest workspace with as much work as `visits`."""
        if self.size > self.lower:
            with nogil:
                self.w.limit = visits
                self._place_parts(visits)

    cdef void _place_parts(self, int64_t visits) noexcept nogil:
        """Parts by themselves; no part has to be lower than the highest one."""
        cdef int k
        cdef part_t *p
        cdef int64_t goal = self._highest_bound()
        for k in range(self.parts):
            p = &self.part[k]
            self.w.limit = self.w.visits + <int64_t>(
                <double>visits * p.count / self.taking
            )
            place(&self.w, p, goal, self.live)
            goal = max(goal, p.size)

    cdef int64_t _highest_bound(self) noexcept nogil:
        cdef int k
        cdef int64_t found = 0
        for k in range(self.parts):
            found = max(found, self.part[k].bound)
        return found

    cdef int64_t _height(self) noexcept nogil:
        cdef int k
        cdef int64_t found = 0
        for k in range(self.parts):
            found = max(found, self.part[k].size)
        return found

    def prove(self, double timeout):
        """Search until nothing smaller is possible, at most `timeout` seconds."""
        self.w.interrupted = False
        with nogil:
            self.w.deadline = clock() + timeout
            self._place_parts(VISITS)
            self.w.limit = ENDLESS
            self._prove_parts()
            self.w.deadline = 0
        if self.w.interrupted:
            raise_pending()

    cdef void _prove_parts(self) noexcept nogil:
        """Trees and beams in turn, larger from round to round."""
        cdef int k, turn = 0, width = WIDEST
        cdef uint64_t seed = FIRST_SEED + 1
        cdef int64_t budget = FEW_NODES, lower = self._highest_bound()
        while self._height() > lower and not late(&self.w):
            for k in range(self.parts):
                if self.part[k].size > lower:
                    self._prove_part(&self.part[k], turn, budget, lower)
                    lower = self._highest_bound()
                if self.part[k].size > lower:
                    search_boxes(
                        &self.w, &self.part[k], lower, FORCED_SHARE * budget // BOXES_PART, turn,
                        &seed, False)
                if self.part[k].size > lower:
                    search_forced(
                        &self.w, &self.part[k], lower, FORCED_SHARE * budget, PATIENT,
                        FIRST_SEED + turn)
                if self.part[k].size > lower and turn % KEYS == KEYS - 1:
                    self._widen(&self.part[k], turn // KEYS, width, lower)
            turn += 1
            if turn % KEYS == 0:
                budget *= 2
                width = min(2 * width, BEAM_BYTES)

    cdef void _widen(self, part_t *p, int turn, int width, int64_t lower) noexcept nogil:
        """A beam that the clock ends, as wide as some memory allows."""
        cdef int64_t state = 16 * p.count + 40 * p.sections
        if p.count <= LARGEST_BEAM:
            width = <int>max(1, min(width, BEAM_BYTES // state))
            search_beam(&self.w, p, turn, width, lower, ENDLESS - self.w.visits)

    cdef void _prove_part(self, part_t *p, int turn, int64_t budget, int64_t lower) noexcept nogil:
        """Ask at the bound, half way and below the size whether there is anything."""
        cdef tree_t t
        cdef int ask, status = NONE
        cdef int64_t capacity
        if p.count > LARGEST_TREE or not grow(&t, p):
            return
        live_by_section(p, self.live)
        sort_by(&self.w, p, (turn + 1) % KEYS, self.live)
        for ask in range(3):
            status = NONE
            while p.size > max(lower, p.bound) and status != STOPPED and not late(&self.w):
                capacity = max(lower, p.bound)
                capacity += ask * (p.size - 1 - capacity) // 2
                status = search_tree(&self.w, p, &t, capacity, budget)
                if status == NONE:
                    p.bound = capacity + 1
        free(t.block)

    @property
    def size(self):
        """Bytes of the smallest workspace that was found."""
        return self._height() * self.unit

    @property
    def lower(self):
        """Bytes that no workspace is smaller than, as far as that was proved."""
        return self._highest_bound() * self.unit

    def offsets(self):
        """Offset of each lifetime in that workspace."""
        cdef int k
        cdef list found = [0] * self.count
        for k in range(self.taking):
            found[self.buffers[k].which] = self.best[k] * self.unit
        return tuple(found)

    def padded(self):
        """The lifetimes' sizes, padded."""
        cdef int i
        return tuple(self.lives[i].size for i in range(self.count))

    def bucket_offsets(self):
        """Offset of each lifetime by the NPU library's policy."""
        cdef int i
        return tuple(self.bucket_of[self.lives[i].bucket].npu_place for i in range(self.count))

    def npu_padded(self):
        """The lifetimes' sizes as the NPU library pads them."""
        cdef int i
        return tuple(self.lives[i].npu_size for i in range(self.count))


# --- Memory of outputs ------------------------------------------------------------------------


cdef struct held_t:
    int64_t begin
    int64_t end
    int64_t lower
    int64_t upper


cdef int64_t lowest_gap(
    const held_t *held, int count, const held_t *one, int64_t nbytes, int64_t capacity
) noexcept nogil:
    """The lowest place beside what is held at the same time, -1 where none ends in time."""
    cdef int64_t top = 0, size = (nbytes + ALIGNMENT - 1) & -<int64_t>ALIGNMENT
    cdef int j
    for j in range(count):
        if held[j].lower >= one.upper or one.lower >= held[j].upper:
            continue
        if held[j].begin - top >= size:
            break
        top = max(top, held[j].end)
    return top if top + nbytes <= capacity else -1


def fit_below(lives, int64_t capacity):
    """Offsets of lifetimes in `capacity` bytes, those in front first; -1 for those without a place.

    Each is (lower, upper, bytes).
    """
    cdef int n = len(lives), count = 0, at
    cdef int64_t nbytes, visits = 0
    cdef held_t one
    cdef held_t *held = <held_t *>malloc(n * sizeof(held_t) + 1)
    if held == NULL:
        raise MemoryError
    found = []
    try:
        for one.lower, one.upper, nbytes in lives:
            one.begin = -1
            if visits < VISITS and nbytes <= capacity:
                visits += count
                one.begin = lowest_gap(held, count, &one, nbytes, capacity)
            found.append(one.begin)
            if one.begin < 0:
                continue
            one.end = one.begin + ((nbytes + ALIGNMENT - 1) & -<int64_t>ALIGNMENT)
            at = count
            while at > 0 and held[at - 1].begin > one.begin:
                at -= 1
            memmove(&held[at + 1], &held[at], (count - at) * sizeof(held_t))
            held[at] = one
            count += 1
    finally:
        free(held)
    return found


# --- Who shares bytes -------------------------------------------------------------------------


cdef struct span_t:
    int64_t begin
    int64_t end


cdef int by_number(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const int64_t *>a)[0], y = (<const int64_t *>b)[0]
    return -1 if x < y else x > y


cdef int below(const int64_t *numbers, int count, int64_t limit) noexcept nogil:
    """Number of ascending numbers that are below `limit`."""
    cdef int low = 0, high = count, middle
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


cdef int list_sharers(const span_t *spans, int n, int own, int count, int *found) noexcept nogil:
    """The first of those that use bytes of `own`, which are `count`."""
    cdef int i, listed = 0, most = min(count, <int>MOST_SHARERS)
    for i in range(n):
        if listed == most:
            break
        if i != own and spans[i].begin < spans[own].end and spans[own].begin < spans[i].end:
            if spans[i].begin < spans[i].end:
                found[listed] = i
                listed += 1
    return listed


def sharers(offsets, sizes, names):
    """For each buffer the names of some of those that use bytes of it, and how many they are."""
    cdef int n = len(offsets), i, k, count, listed, taking = 0
    cdef int found[MOST_SHARERS]
    cdef int64_t *begins
    cdef int64_t *ends
    cdef span_t *spans = <span_t *>malloc(n * (sizeof(span_t) + 2 * sizeof(int64_t)) + 1)
    if spans == NULL:
        raise MemoryError
    offsets, sizes, names = tuple(offsets), tuple(sizes), tuple(names)
    if not n == len(sizes) == len(names):
        free(spans)
        raise ValueError(f"{n} offsets and {len(sizes)} sizes for {len(names)} buffers")
    begins = <int64_t *>(spans + n)
    ends = begins + n
    result = []
    try:
        for i in range(n):
            spans[i].begin = offsets[i]
            spans[i].end = spans[i].begin + <int64_t>sizes[i]
            if spans[i].begin < spans[i].end:
                begins[taking] = spans[i].begin
                ends[taking] = spans[i].end
                taking += 1
        qsort(begins, taking, sizeof(int64_t), by_number)
        qsort(ends, taking, sizeof(int64_t), by_number)
        for i in range(n):
            count = 0
            if spans[i].begin < spans[i].end:
                count = below(begins, taking, spans[i].end) - 1
                count -= below(ends, taking, spans[i].begin + 1)
            listed = list_sharers(spans, n, i, count, found) if count else 0
            result.append((tuple(names[found[k]] for k in range(listed)), count))
    finally:
        free(spans)
    return result
