"""Search for places: problems, and the order in which algorithms try to solve them.

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
from libc.string cimport memmove, memset

from aclnn.graph.planner.beam cimport search_beam
from aclnn.graph.planner.boxing cimport (
    BOXED_LARGEST,
    boxing_t,
    list_boxes,
    make_boxes,
    start_boxing,
    unpack,
)
from aclnn.graph.planner.dives cimport search_dives
from aclnn.graph.planner.first_fit cimport (
    by_keys,
    descend,
    first_fit,
    keep,
    order_by_place,
    sort_by,
)
from aclnn.graph.planner.forced cimport search_forced
from aclnn.graph.planner.problem cimport (
    ENDLESS,
    FIRST_SEED,
    buffer_t,
    clock,
    key_t,
    late,
    over,
    part_t,
    placed_t,
    work_t,
)
from aclnn.graph.planner.tree cimport FOUND, NONE, STOPPED, grow, search_tree, tree_t


cdef enum:
    ALIGNMENT = 64         # bytes that every place is a multiple of
    NPU_BLOCK = 512        # that the NPU library's buffers are multiples of, after it
    NPU_EXTRA = 32         # added these
    KEYS = 5               # orders of first fit
    FEW = 12               # buffers whose tree is searched before anything larger is tried
    FEW_NODES = 20000      # of that tree
    LARGEST_TREE = 1024    # buffers whose places are searched as a tree
    LARGEST_BEAM = 4096    # or by a beam
    WIDEST = 64            # beam of a search by default
    BEAM_BYTES = 1 << 25   # of the states of any
    VISITS = 21000000      # of a search by default
    PATIENCE = 7           # runs of a forced search at a capacity, before it is raised
    PATIENT = 1000         # of one that is to prove the bound
    FORCED_SHARE = 3000    # visits of it for each node of a tree
    BOXES_PART = 4         # of the work of a search is spent on boxes, at most
    FIRST_BOXES = 32       # and before all else
    BOXES_SHARE = 400000  # visits of one placing of boxes by what sections force
    MOST_SHARERS = 16      # that are named with a buffer

cdef double WASTED = 0.03  # of a box, at most, where buffers fit well


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
        finish_part(w, p, goal)
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


cdef void finish_part(work_t *w, part_t *p, int64_t goal) noexcept nogil:
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
        self.w.interrupted, self.w.next_check = False, 0
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
    """The lowest place next to what is held at the same time, -1 where none ends in time."""
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
