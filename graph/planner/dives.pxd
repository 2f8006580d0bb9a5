"""Dives: a beam of one state, which places the heaviest buffers first.

Of the next children those with the largest weights are looked at first, and the first that adds
no excess is taken: mostly few are looked at.  Weights make the difference: they follow size and
span, and vary from dive to dive; once some dive came below the best size, its weights vary.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from aclnn.graph.planner.beam cimport (
    advance,
    beam_t,
    begin,
    child_t,
    judge,
    list_children,
    set_up,
    state_t,
)
from aclnn.graph.planner.problem cimport (
    CLOCK_EVERY,
    FIRST_SEED,
    buffer_t,
    drawn,
    late,
    over,
    part_t,
    roughly_log2,
    work_t,
)


cdef extern from *:
    """
    #define DIVE_NOISE 1.5
    #define DIVE_SHIFT 6.0
    #define DIVE_VARIED 0.1
    """
    const double NOISE "DIVE_NOISE"    # of weights of their own, in powers of two
    const double SHIFT "DIVE_SHIFT"    # of weights that vary
    const double VARIED "DIVE_VARIED"  # how many of them do

cdef enum:
    WEIGHING = 8  # visits that the weight of a buffer takes
    FRESH = 20    # dives by weights of their own, before others vary the best ones


cdef inline void weigh(const part_t *p, double *weights, int turn, uint64_t *seed) noexcept nogil:
    """Weights by size and something of the span, the first without noise."""
    cdef int k
    cdef const buffer_t *one
    for k in range(p.count):
        one = &p.buffers[k]
        weights[k] = roughly_log2(one.size)
        weights[k] += (turn % 3) / 4.0 * roughly_log2(one.last - one.first + 1)
        if turn > 2:
            weights[k] += NOISE * drawn(seed)


cdef inline void vary(
    const part_t *p, const double *best, double *weights, uint64_t *seed
) noexcept nogil:
    cdef int k
    for k in range(p.count):
        weights[k] = best[k]
        if drawn(seed) < VARIED:
            weights[k] += SHIFT * (drawn(seed) - 0.5)


cdef inline bint next_child(
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


cdef inline bint dive(work_t *w, part_t *p, beam_t *beam) noexcept nogil:
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


cdef inline void search_dives(work_t *w, part_t *p, int64_t goal) noexcept nogil:
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
    beam.extent = 0
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
