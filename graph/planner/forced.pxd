"""Search below a capacity by what sections force, with weights that learn from dead ends.

In every section one of the buffers to come is the lowest.  It begins at most where the section
still has room for all of them: buffers that begin above that, or above the end of another one,
are no *candidates* for it.  A section with a single candidate takes that one next; one without
any shows a dead end, long before a buffer ends above the capacity.  Else the section with the
lowest floor chooses among its candidates, the heaviest first.

A run of the search gives up after some nodes.  The buffers of sections where it came to a dead end
gain weight, so that the next run places them earlier: what is hard to place is learned run by run.
Weights are whole numbers, which every machine computes alike.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from aclnn.graph.planner.problem cimport (
    ENDLESS,
    buffer_t,
    drawn,
    late,
    list_members,
    meet,
    over,
    part_t,
    roughly_log2,
    work_t,
)


cdef enum:
    FORCED_FOUND, FORCED_NONE, FORCED_STOPPED

cdef enum:
    FORCED_LARGEST = 1024   # buffers of a part that is searched so
    FORCED_NODES = 60       # of a short run, besides those that place all buffers once
    FORCED_UNIT = 1024      # of weights: one power of two in size
    FORCED_GAIN = 100       # for a dead end
    FORCED_KEPT = 20        # of 21 parts of what was learned, from run to run
    FORCED_CLOCK = 64       # nodes between looks at the clock


cdef enum:
    CHANGED_LOWEST, CHANGED_REST, CHANGED_FLOOR, CHANGED_CHOICE


cdef struct change_t:
    int kind
    int which
    int64_t before


cdef struct forced_t:
    work_t *w
    const part_t *p
    int64_t capacity
    int64_t nodes         # that this run may still visit
    int64_t *lowest       # by buffer: on top of what is placed
    int64_t *offsets
    int64_t *weights
    int64_t *learned
    int64_t *rest         # by section: what is to come
    int64_t *floors       # the lowest place of that
    int *choice           # candidates, of which more than two are two
    char *placed
    char *stale           # sections that are to be looked at anew
    int *starts           # of the members of each section
    int *members
    int *near_starts      # of those that each buffer meets
    int *near
    int *candidates       # a level on top of the other
    change_t *changes     # to be taken back
    int64_t changed
    int64_t room
    bint failed           # no memory
    char *block


cdef inline int64_t count_members(const part_t *p) noexcept nogil:
    """Members of all sections together."""
    cdef int k
    cdef int64_t total = 0
    for k in range(p.count):
        total += p.buffers[k].last - p.buffers[k].first + 1
    return total


cdef inline int64_t count_near(const part_t *p) noexcept nogil:
    """Pairs of buffers that meet, both ways round."""
    cdef int k, j
    cdef int64_t total = 0
    for k in range(p.count):
        for j in range(k):
            total += 2 * meet(&p.buffers[j], &p.buffers[k])
    return total


cdef inline bint start_forced(forced_t *f, work_t *w, const part_t *p) noexcept nogil:
    """Room for a search; False when there is no memory."""
    cdef size_t n = p.count, m = p.sections, total = count_members(p), near = count_near(p)
    cdef char *at = <char *>malloc(
        (4 * n + 2 * m) * sizeof(int64_t) + (m + (m + 1) + total + (n + 1) + near) * sizeof(int)
        + n * (n + 1) // 2 * sizeof(int) + n + m
    )
    memset(f, 0, sizeof(forced_t))
    if at == NULL:
        return False
    f.w, f.p, f.block = w, p, at
    f.lowest = <int64_t *>at
    f.offsets = f.lowest + n
    f.weights = f.offsets + n
    f.learned = f.weights + n
    f.rest = f.learned + n
    f.floors = f.rest + m
    f.choice = <int *>(f.floors + m)
    f.starts = f.choice + m
    f.members = f.starts + m + 1
    f.near_starts = f.members + total
    f.near = f.near_starts + n + 1
    f.candidates = f.near + near
    f.placed = <char *>(f.candidates + n * (n + 1) // 2)
    f.stale = f.placed + n
    memset(f.learned, 0, n * sizeof(int64_t))
    memset(f.stale, 0, m)
    list_pairs(f)
    return True


cdef inline void list_pairs(forced_t *f) noexcept nogil:
    """The members of sections, and those that each buffer meets."""
    cdef int k, j
    cdef int64_t at = 0
    cdef const part_t *p = f.p
    list_members(p, f.starts, f.members)
    for k in range(p.count):
        f.near_starts[k] = <int>at
        for j in range(p.count):
            if j != k and meet(&p.buffers[j], &p.buffers[k]):
                f.near[at] = j
                at += 1
    f.near_starts[p.count] = <int>at
    f.w.visits += <int64_t>p.count * p.count


cdef inline void end_forced(forced_t *f) noexcept nogil:
    free(f.block)
    free(f.changes)


cdef inline bint has_room(forced_t *f, int64_t more) noexcept nogil:
    """Whether so many changes can be noted."""
    cdef int64_t requested = f.changed + more
    cdef change_t *grown
    if requested <= f.room:
        return True
    grown = <change_t *>realloc(f.changes, 2 * requested * sizeof(change_t))
    if grown == NULL:
        f.failed = True
        return False
    f.changes, f.room = grown, 2 * requested
    return True


cdef inline void note(forced_t *f, int kind, int which, int64_t before) noexcept nogil:
    cdef change_t *one = &f.changes[f.changed]
    one.kind, one.which, one.before = kind, which, before
    f.changed += 1


cdef inline void take_back(forced_t *f, int64_t until) noexcept nogil:
    """Undo changes but the first `until`."""
    cdef change_t *one
    while f.changed > until:
        f.changed -= 1
        one = &f.changes[f.changed]
        if one.kind == CHANGED_LOWEST:
            f.lowest[one.which] = one.before
        elif one.kind == CHANGED_REST:
            f.rest[one.which] = one.before
        elif one.kind == CHANGED_FLOOR:
            f.floors[one.which] = one.before
        else:
            f.choice[one.which] = <int>one.before


cdef inline bint look_again(forced_t *f, int c) noexcept nogil:
    """Find floor and candidates of a section; False where it has no room or no candidate."""
    cdef int a, k, found = 0
    cdef int64_t floor = ENDLESS, ceiling = ENDLESS, most
    if f.rest[c]:
        for a in range(f.starts[c], f.starts[c + 1]):
            k = f.members[a]
            if not f.placed[k]:
                floor = min(floor, f.lowest[k])
                ceiling = min(ceiling, f.lowest[k] + f.p.buffers[k].size)
    f.w.visits += f.starts[c + 1] - f.starts[c]
    if floor != f.floors[c]:
        note(f, CHANGED_FLOOR, c, f.floors[c])
        f.floors[c] = floor
    if f.rest[c] == 0:
        return True
    if floor + f.rest[c] > f.capacity:
        return False
    most = min(f.capacity - f.rest[c], ceiling - 1)
    for a in range(f.starts[c], f.starts[c + 1]):
        k = f.members[a]
        if not f.placed[k] and f.lowest[k] <= most:
            found += 1
            if found == 2:
                break
    if found != f.choice[c]:
        note(f, CHANGED_CHOICE, c, f.choice[c])
        f.choice[c] = found
    return found > 0


cdef inline int put(forced_t *f, int j, int64_t index) noexcept nogil:
    """Place a buffer; -1, or the first section that this makes a dead end of."""
    cdef int a, c, k, low, high, dead = -1
    cdef int64_t top
    cdef const buffer_t *one = &f.p.buffers[j]
    low, high, top = one.first, one.last, index + one.size
    f.placed[j] = True
    f.offsets[j] = index
    for c in range(one.first, one.last + 1):
        note(f, CHANGED_REST, c, f.rest[c])
        f.rest[c] -= one.size
        f.stale[c] = True
    for a in range(f.near_starts[j], f.near_starts[j + 1]):
        k = f.near[a]
        if f.placed[k] or f.lowest[k] >= top:
            continue
        note(f, CHANGED_LOWEST, k, f.lowest[k])
        f.lowest[k] = top
        low, high = min(low, f.p.buffers[k].first), max(high, f.p.buffers[k].last)
        memset(f.stale + f.p.buffers[k].first, True, f.p.buffers[k].last - f.p.buffers[k].first + 1)
    f.w.visits += f.near_starts[j + 1] - f.near_starts[j]
    for c in range(low, high + 1):
        if f.stale[c]:
            f.stale[c] = False
            if dead < 0 and not look_again(f, c):
                dead = c
    return dead


cdef inline void blame(forced_t *f, int c, int j) noexcept nogil:
    """Give weight to all that is still to come in a section, but to `j`."""
    cdef int a, k
    for a in range(f.starts[c], f.starts[c + 1]):
        k = f.members[a]
        if not f.placed[k] and k != j:
            f.weights[k] += FORCED_GAIN


cdef inline int next_section(const forced_t *f) noexcept nogil:
    """The lowest and fullest one with a single candidate, else the lowest and fullest one."""
    cdef int c, best = -1
    cdef bint single, before = False
    for c in range(f.p.sections):
        if f.rest[c] == 0:
            continue
        single = f.choice[c] == 1
        if best < 0 or single > before or single == before and (
            f.floors[c] < f.floors[best]
            or f.floors[c] == f.floors[best] and f.rest[c] > f.rest[best]
        ):
            best, before = c, single
    f.w.visits += f.p.sections >> 1
    return best


cdef inline bint is_listed(const forced_t *f, const int *found, int count, int k) noexcept nogil:
    """Whether one that can stand for `k` is there."""
    cdef int i
    cdef const buffer_t *one = &f.p.buffers[k]
    cdef const buffer_t *other
    for i in range(count):
        other = &f.p.buffers[found[i]]
        if other.first == one.first and other.last == one.last and other.size == one.size:
            return True
    return False


cdef inline int list_choices(const forced_t *f, int c, int *found) noexcept nogil:
    """Buffers to try in a section, of equal ones one.

    Those without room are among them: trying them shows where there is none.
    """
    cdef int a, k, count = 0
    cdef int64_t ceiling = ENDLESS
    for a in range(f.starts[c], f.starts[c + 1]):
        k = f.members[a]
        if not f.placed[k]:
            ceiling = min(ceiling, f.lowest[k] + f.p.buffers[k].size)
    for a in range(f.starts[c], f.starts[c + 1]):
        k = f.members[a]
        if not f.placed[k] and f.lowest[k] < ceiling and not is_listed(f, found, count, k):
            found[count] = k
            count += 1
    f.w.visits += 2 * (f.starts[c + 1] - f.starts[c])
    return count


cdef inline int heaviest(const forced_t *f, const int *found, int count) noexcept nogil:
    cdef int i, best = 0
    for i in range(1, count):
        if f.weights[found[i]] > f.weights[found[best]]:
            best = i
    return best


cdef inline int try_choices(forced_t *f, int left, int *stack) noexcept nogil:
    """Place the `left` buffers that are left, as far as the nodes of this run go."""
    cdef int best, j, dead, status, count
    cdef int64_t mark
    if left == 0:
        return FORCED_FOUND
    f.nodes -= 1
    if f.nodes < 0 or f.w.visits >= f.w.limit or f.nodes % FORCED_CLOCK == 0 and late(f.w):
        return FORCED_STOPPED
    count = list_choices(f, next_section(f), stack)
    while count:
        best = heaviest(f, stack, count)
        j = stack[best]
        count -= 1
        stack[best] = stack[count]
        if not has_room(f, 4 * <int64_t>f.p.sections + f.p.count):
            return FORCED_STOPPED
        mark = f.changed
        dead = put(f, j, f.lowest[j])
        if dead < 0:
            status = try_choices(f, left - 1, stack + count)
            if status != FORCED_NONE:
                return status
        else:
            blame(f, dead, j)
        f.placed[j] = False
        take_back(f, mark)
    return FORCED_NONE


cdef inline bint begin_run(forced_t *f, int64_t capacity) noexcept nogil:
    """Take everything back, and look at all sections; False where not even that fits."""
    cdef int k, c
    f.capacity, f.changed = capacity, 0
    memset(f.placed, 0, f.p.count)
    memset(f.lowest, 0, f.p.count * sizeof(int64_t))
    memset(f.rest, 0, f.p.sections * sizeof(int64_t))
    memset(f.choice, 0, f.p.sections * sizeof(int))
    for k in range(f.p.count):
        for c in range(f.p.buffers[k].first, f.p.buffers[k].last + 1):
            f.rest[c] += f.p.buffers[k].size
    if not has_room(f, 2 * <int64_t>f.p.sections):
        return False
    for c in range(f.p.sections):
        f.floors[c] = 0
        if not look_again(f, c):
            return False
    f.changed = 0
    return True


cdef inline int64_t luby(int64_t turn) noexcept nogil:
    """Lengths of restarts: 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., of turns from 1 on."""
    cdef int64_t power = 1
    while power - 1 < turn:
        power *= 2
    return power // 2 if power - 1 == turn else luby(turn - power // 2 + 1)


cdef inline int run_forced(
    forced_t *f, int64_t capacity, int64_t turn, uint64_t *seed
) noexcept nogil:
    """One run, after which the weights have learned."""
    cdef int k, status
    cdef double size
    cdef const buffer_t *one
    if not begin_run(f, capacity):
        return FORCED_STOPPED
    for k in range(f.p.count):
        one = &f.p.buffers[k]
        size = roughly_log2(one.size) + roughly_log2(one.last - one.first + 1) / 2
        f.weights[k] = <int64_t>(FORCED_UNIT * (size + drawn(seed))) + f.learned[k]
        f.learned[k] -= f.weights[k]
    f.nodes = FORCED_NODES * luby(turn) + f.p.count
    status = try_choices(f, f.p.count, f.candidates)
    for k in range(f.p.count):
        f.learned[k] = (f.learned[k] + f.weights[k]) * FORCED_KEPT // (FORCED_KEPT + 1)
    return status


cdef inline void take_places(forced_t *f, part_t *p) noexcept nogil:
    """The places of a run that found some below the best size."""
    cdef int k
    p.size = 0
    for k in range(p.count):
        p.size = max(p.size, f.offsets[k] + p.buffers[k].size)
    memcpy(p.best, f.offsets, p.count * sizeof(int64_t))


cdef inline void search_forced(
    work_t *w, part_t *p, int64_t goal, int64_t visits, int patience, uint64_t seed
) noexcept nogil:
    """Look for places below the best ones, at best for some of height `goal`, with so much work.

    Capacities lie between both: the first is the goal, and where `patience` runs find nothing, the
    next one is half as far from the best size.  What is found lowers that, and the capacity.
    """
    cdef forced_t f
    cdef int runs = 0, halved = 0
    cdef int64_t stop = w.visits + visits, above
    if p.count > FORCED_LARGEST or not start_forced(&f, w, p):
        return
    while p.size > goal and w.visits < stop and not over(w) and not f.failed:
        above = (p.size - 1 - goal) >> halved
        runs += 1
        if run_forced(&f, p.size - 1 - above, runs, &seed) == FORCED_FOUND:
            take_places(&f, p)
            runs, halved = 0, max(0, halved - 1)
        elif runs == patience:
            runs, halved = 0, halved + 1 if above else 0
    end_forced(&f)
