"""Plans, the cache that finds them again, and the loop that runs them.

A plan holds all that phase one can know without addresses.  It is immutable and shared: by
threads, by executors, and by the C-shaped and the functional layer alike.  Its key is made of
everything that shapes it; scalars are not part of it, because kernels read them at run time.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from aclnn.acl._tensor_spec cimport (
    ABSENT,
    APART,
    CROSSING,
    EITHER,
    MAX_DIMS,
    SAME,
    UNDESCRIBED,
    TensorSpec,
    extent,
    overlap,
    same_layout,
    spec_at,
)

from math import prod
from threading import get_ident

from aclnn.acl.constants import ACLNN_ERR_INNER, ACLNN_ERR_PARAM_INVALID, aclDataType
from aclnn.acl.errors import AclnnError
from aclnn.graph.passes.in_place import inputs_in_place
from aclnn.graph.runtime import _scheduler

cdef extern from "stack.h" nogil:
    size_t stack_left() noexcept
    size_t stack_size() noexcept
    bint stack_is_short(size_t needed) noexcept

cdef extern from *:
    """
    /* When the run that this thread is at was given to its stream; 0 for one that was not. */
    static __thread int64_t submitted_at;
    /* How many threads the runs of this one may use; 0: as the process is set to. */
    static __thread int thread_limit;
    """
    int64_t submitted_at
    int thread_limit
    int __atomic_fetch_add(int *, int, int) noexcept nogil
    int __ATOMIC_RELAXED

cdef program_run_fn run_program = <program_run_fn><size_t>_scheduler.run_address()
cdef int (*omp_threads)() noexcept nogil
cdef void (*limit_omp_threads)(int) noexcept nogil
omp_threads = <int (*)() noexcept nogil><size_t>_scheduler.omp_addresses()[0]
limit_omp_threads = <void (*)(int) noexcept nogil><size_t>_scheduler.omp_addresses()[1]

cdef enum:
    # Words of a key that its call has room for; the keys of longer ones are made elsewhere.
    KEY_WORDS = 96
    # Below this many elements a run is shorter than handing the interpreter to another thread.
    KEEP_GIL_BELOW = 16384
    WORKSPACE_ALIGNMENT = 64
    # Bytes of a thread's stack. Kernels take up to 208 KiB, most of it where an input is transposed
    # and the output of another dtype: `gcc -fstack-usage` adds up to that for each instruction set.
    RUN_STACK = 224 << 10
    PLANNING_STACK = 64 << 10  # the interpreter takes some 30 KiB for phase one

cdef struct settings_t:
    int soc
    int threads
    int materialize
    int strategy
    int cache_limit   # plans kept; 0 switches the cache off
    int observed      # how many want to see every run
    int limited       # how many limits of single threads are in force

cdef settings_t settings
settings.threads = 1

cdef dict _plans = {}
cdef list _handles = []  # each remembers its last plan
cdef unsigned long _clock = 0
cdef unsigned long _hits = 0
cdef unsigned long _misses = 0
cdef unsigned long _forgotten = 0  # how often all plans were forgotten
_observers = ()

cdef bint[256] IS_INTEGER
IS_INTEGER[:] = [False] * 256
for _dtype in aclDataType:
    if _dtype >= 0:
        IS_INTEGER[<int>_dtype] = "INT" in _dtype.name


cdef void put_number(request_t *request, int index, double value, int dtype) noexcept nogil:
    """Take a number that a float64 holds, in every form that kernels may ask for."""
    cdef int64_t whole = 0
    cdef bint fits = -9.2e18 < value < 9.2e18
    if fits:
        whole = <int64_t>value
    put_forms(request, index, fp_rounded(value), value, whole, dtype,
              fits and <double>whole == value)


cdef void put_absent(request_t *request, int index) noexcept nogil:
    """Take that there is no number: for kernels it is -1, CANN's way of saying so."""
    put_number(request, index, -1.0, 0)  # of float32, which matters to none
    request.facts[index] |= IS_ABSENT


cdef void put_whole(request_t *request, int index, double rounded, int64_t value,
                    int dtype) noexcept nogil:
    """Take an integer, and what it is when rounded to float32 once."""
    put_forms(request, index, rounded, <double>value, value, dtype, True)


cdef void put_forms(request_t *request, int index, double rounded, double exact, int64_t whole,
                    int dtype, bint is_whole) noexcept nogil:
    cdef kernel_number *forms = &request.numbers[NUMBER_FORMS * index]
    forms[<int>ROUNDED].real = rounded
    forms[<int>EXACT].real = exact
    forms[<int>WHOLE].whole = whole
    request.facts[index] = <unsigned short>(
        (NEGATIVE if rounded < 0 else 0) | (IS_ZERO if exact == 0 else 0)
        | (IS_ONE if exact == 1 else 0) | (IS_NAN if exact != exact else 0)
        | (IS_WHOLE if is_whole else 0) | dtype << 8)


cdef int64_t settings_word() noexcept nogil:
    """Settings of the process that plans depend on, except for how they are planned."""
    return settings.soc | <int64_t>threads_set() << 8


cdef inline int threads_set() noexcept nogil:
    """Number of threads that runs of this thread may use."""
    if settings.limited and thread_limit:
        return thread_limit
    return settings.threads


cdef inline settings_t settings_of(const request_t *request) noexcept nogil:
    """Settings of the process now, except for what the request itself says."""
    cdef settings_t now = settings
    now.threads = threads_set()
    if request.materialize != INHERIT:
        now.materialize = request.materialize
    if request.strategy != INHERIT:
        now.strategy = request.strategy
    return now


cdef Py_ssize_t key_words(const request_t *request) noexcept nogil:
    """Largest number of words of a key."""
    cdef int pairs = request.n_inputs * request.n_outputs
    return (6 + (request.n_inputs + request.n_outputs) * (1 + 2 * MAX_DIMS) + pairs // 32
            + 2 * request.n_numbers)


cdef Py_ssize_t write_key(OperatorHandle handle, const request_t *request,
                          const settings_t *now, int64_t *key) noexcept nogil:
    """Write everything that shapes a plan; gives how many words it takes."""
    return write_overlaps(request, key, write_description(handle, request, now, key))


cdef Py_ssize_t most_key_words(const request_t *request) noexcept nogil:
    """Largest number of words that `call_key` writes."""
    return key_words(request)


cdef Py_ssize_t call_key(OperatorHandle handle, const request_t *request,
                         int64_t *key) noexcept nogil:
    """Write all that shapes the plan of a call now; gives how many words it takes."""
    cdef settings_t now = settings_of(request)
    return write_key(handle, request, &now, key)


cdef bint plans_are_kept() noexcept nogil:
    """Whether there is a cache of plans."""
    return settings.cache_limit != 0


cdef unsigned long plans_forgotten() noexcept nogil:
    """Number of times that all plans were forgotten, so that those who keep some do so, too."""
    return _forgotten


cdef int facts_of(const request_t *request, int index) noexcept nogil:
    """All facts of a number, that one among them which depends on the number before it."""
    return request.facts[index] | (IS_BELOW if index and is_below(request, index) else 0)


cdef inline bint is_below(const request_t *request, int index) noexcept nogil:
    """Integers are compared as such if the number before is one."""
    cdef const kernel_number *before = &request.numbers[NUMBER_FORMS * (index - 1)]
    cdef const kernel_number *own = &request.numbers[NUMBER_FORMS * index]
    if IS_INTEGER[request.facts[index - 1] >> 8]:
        return own[<int>WHOLE].whole < before[<int>WHOLE].whole
    return own[<int>EXACT].real < before[<int>EXACT].real


cdef Py_ssize_t write_description(OperatorHandle handle, const request_t *request,
                                  const settings_t *now, int64_t *key) noexcept nogil:
    """Write all of a key but how inputs lie to outputs."""
    cdef Py_ssize_t n = 3
    cdef int facts, index, axis, ndim, count = request.n_inputs + request.n_outputs
    cdef int64_t *at
    cdef const operand_t *operand
    key[0] = request.operator_id | (<int64_t>request.switches << 16) | (<int64_t>now.soc << 32)
    key[1] = (now.threads | (<int64_t>now.materialize << 16) | (<int64_t>now.strategy << 24)
              | (<int64_t>request.makes_absent << 32))
    key[2] = request.n_inputs | (<int64_t>request.n_outputs << 16)
    for index in range(request.n_numbers):
        if index & 3 == 0:
            key[n] = 0
            n += 1
        facts = request.facts[index]
        if handle.fact_masks[index] & IS_BELOW:
            facts = facts_of(request, index)
        key[n - 1] |= <int64_t>(facts & handle.fact_masks[index]) << ((index & 3) << 4)
    if handle.keyed_by_numbers:
        for index in range(request.n_numbers):  # the bits of both forms that are not rounded
            key[n] = request.numbers[NUMBER_FORMS * index + <int>EXACT].whole
            key[n + 1] = request.numbers[NUMBER_FORMS * index + <int>WHOLE].whole
            n += 2
    for index in range(count):
        operand = &request.operands[index]
        ndim = operand.ndim
        at = key + n
        at[0] = (operand.dtype & 0xFF) | ((operand.format & 0xFF) << 8) | (
            <int64_t>(ndim + 1) << 16) | (<int64_t>operand.writable << 32)
        for axis in range(ndim):
            at[2 * axis + 1] = operand.shape[axis]
            at[2 * axis + 2] = operand.strides[axis]
        n += 1 + (2 * ndim if ndim > 0 else 0)
    return n


cdef Py_ssize_t write_overlaps(const request_t *request, int64_t *key,
                               Py_ssize_t n) noexcept nogil:
    """Write how each input overlaps each output, two bits for a pair."""
    cdef int64_t low = 0, high = 0
    cdef int index, out, pair = 0
    cdef bint is_there
    cdef const operand_t *target
    for out in range(request.n_outputs):
        target = &request.operands[request.n_inputs + out]
        is_there = target.ndim != ABSENT and target.data != NULL
        if is_there:
            extent(target, &low, &high)
        for index in range(request.n_inputs):
            if pair & 31 == 0:
                key[n] = 0
                n += 1
            if is_there:
                key[n - 1] |= <int64_t>overlap(&request.operands[index], target, low, high) << (
                    (pair & 31) << 1)
            pair += 1
    return n


cdef inline bint begins_with(bytes packed, const int64_t *key, Py_ssize_t words) noexcept:
    """Word by word: memcmp, like a loop over vectors, would wait for what was just stored."""
    cdef const int64_t *known = <const int64_t *>PyBytes_AS_STRING(packed)
    cdef Py_ssize_t k
    if PyBytes_GET_SIZE(packed) < words * <Py_ssize_t>sizeof(int64_t):
        return False
    for k in range(words):
        if known[k] != key[k]:
            return False
    return True


cdef bint overlaps_match(CompiledCall plan, const request_t *request) noexcept nogil:
    """Whether inputs of the plan's description lie to its outputs as it was planned for.

    Cheaper than the rest of the key, because the plan knows the extents; False where in doubt.
    """
    cdef const pair_t *pair = plan.pairs
    cdef const pair_t *end = pair + plan.n_pairs
    cdef const char *input
    cdef const char *output
    cdef int lies, planned
    while pair != end:
        input, output = request.operands[pair.input].data, request.operands[pair.output].data
        lies = APART
        if (<uint64_t>(input - output - pair.below) < pair.reach
                and input != NULL and output != NULL):
            # Where their layouts are not alike, the plan is for a crossing, and does not match.
            lies = SAME if input == output else CROSSING
        planned = plan.overlaps[(pair.output - plan.n_inputs) * plan.n_inputs + pair.input]
        if lies != (APART if planned == EITHER else planned):
            return False
        pair += 1
    return True


cdef int mask_of(object attribute) except -1:
    """The bits of a number's facts that its operator's plans depend on."""
    cdef int mask = SIGN_FACTS
    for fact, bit in (("zero", IS_ZERO), ("one", IS_ONE), ("nan", IS_NAN), ("whole", IS_WHOLE),
                      ("below", IS_BELOW),
                      ("dtype", 0xFF00)):
        if fact in attribute.facts:
            mask |= bit
    return mask


@cython.final
cdef class OperatorHandle:
    """An operator as the fast paths know it: a number, counts, and the plan it used last."""

    def __cinit__(self, operator not None, int identifier):
        if len(operator.scalars) > MAX_NUMBERS:
            raise ValueError(f"{operator.name} has {len(operator.scalars)} numbers, at most "
                             f"{MAX_NUMBERS} are possible")
        self.operator = operator
        self.id = identifier
        self.n_inputs = len(operator.kernel_operands)
        self.n_outputs = len(operator.outputs)
        self.is_variadic = bool(operator.lists)
        self.makes_list = operator.makes is not None
        self.n_scalars = len(operator.scalars)
        self.scalar_roles = tuple(attribute.role for attribute in operator.scalars)
        self.switch_codes = {}
        for index, attribute in enumerate(operator.scalars):
            self.fact_masks[<int>index] = mask_of(attribute)
            self.keyed_by_numbers |= "value" in attribute.facts
        _handles.append(self)

    def fact_mask(self, int index):
        """The bits of a number's facts that plans depend on."""
        return self.fact_masks[index]

    cdef int switch_code(self, object values) except -1:
        """A small number for the values of the switches, `UNSEEN` before a plan had them."""
        cdef PyObject *found
        for value in values:
            if type(value) not in PLAIN:  # which cannot even be looked up, or has rules of its own
                return UNSEEN
        found = PyDict_GetItem(self.switch_codes, switch_key(values))
        return UNSEEN if found == NULL else <object>found

    cdef int learn_switches(self, object values) except -1:
        """Give values that the rules have let pass a number, so that plans with them are kept.

        Values that are refused have none: there is no end to them.
        """
        return self.switch_codes.setdefault(switch_key(values), len(self.switch_codes))


PLAIN = (str, bool, int, tuple, type(None), aclDataType)  # tuples are of plain numbers


cdef object plain(object value):
    """A switch's value without what a subclass of str or int adds."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    return value


cdef object switch_key(object values):
    """Equal values of other types are other values: 1 is not True."""
    return tuple(zip(map(type, values), values))


cdef CompiledCall find_plan(OperatorHandle handle, request_t *request, object names,
                            object scalar_texts, object switches):
    """The plan for a call, from the cache or made now; raises `AclnnError` for a bad call."""
    global _clock, _hits
    cdef int64_t few[KEY_WORDS]
    cdef int64_t *key = few
    cdef settings_t now = settings_of(request)
    cdef Py_ssize_t words = key_words(request)
    cdef CompiledCall plan
    cdef bytes room = None
    if words > KEY_WORDS:
        room = PyBytes_FromStringAndSize(NULL, words * <Py_ssize_t>sizeof(int64_t))
        key = <int64_t *>PyBytes_AS_STRING(room)
    words = write_description(handle, request, &now, key)
    _clock += 1
    if handle.last_key is not None and begins_with(handle.last_key, key, words):
        plan = handle.last_plan
        if overlaps_match(plan, request):
            plan.last_used = _clock
            _hits += 1
            return plan
    words = write_overlaps(request, key, words)
    return look_up(handle, request, &now, key, words, names, scalar_texts, switches)


cdef bytes packed_key(const int64_t *key, Py_ssize_t words):
    return PyBytes_FromStringAndSize(<const char *>key, words * <Py_ssize_t>sizeof(int64_t))


cdef CompiledCall look_up(OperatorHandle handle, request_t *request, const settings_t *now,
                          int64_t *key, Py_ssize_t words, object names, object scalar_texts,
                          object switches):
    """The plan of a description that is not the one of the operator's latest call."""
    global _hits, _misses
    cdef bytes packed = packed_key(key, words)
    cdef PyObject *found = PyDict_GetItem(_plans, packed)
    cdef CompiledCall plan
    if found != NULL:
        plan = <CompiledCall>found
        _hits += 1
    else:
        _misses += 1
        plan = make_plan(handle, request, now, names, scalar_texts, switches)
        if now.cache_limit == 0:
            return plan
        if request.switches == UNSEEN:
            request.switches = handle.learn_switches(switches)
            packed = packed_key(key, write_key(handle, request, now, key))
        plan.last_used = _clock  # or it would be the oldest itself
        plan = _plans.setdefault(packed, plan)  # another thread may have been first meanwhile
        if len(_plans) > now.cache_limit:
            forget_oldest()
    plan.last_used = _clock
    if now.cache_limit:
        handle.last_key = None  # never one plan's key with another plan
        handle.last_plan = plan
        handle.last_key = packed
    return plan


cdef CompiledCall make_plan(OperatorHandle handle, request_t *request, const settings_t *now,
                            object names, object scalar_texts, object switches):
    cdef int index
    if stack_left() < PLANNING_STACK:
        refuse_stack(PLANNING_STACK)
    from aclnn.compiler import phase_one

    operands = []
    for index in range(request.n_inputs + request.n_outputs):
        operands.append(spec_at(&request.operands[index], NULL, None))
    asked = phase_one.Request(handle.operator, operands, request.n_inputs, number_facts(request),
                              scalar_texts, switches, names,
                              None if request.makes_absent else frozenset())
    return CompiledCall(**phase_one.plan_call(asked, overlaps_of(request), as_dict(now)))


cdef list overlaps_of(const request_t *request):
    """Overlaps of each input with each output, in a row for each output."""
    cdef int64_t low, high
    cdef int index, out
    cdef const operand_t *target
    rows = []
    for out in range(request.n_outputs):
        target = &request.operands[request.n_inputs + out]
        row = []
        known = target.ndim != ABSENT and target.data != NULL
        if known:
            extent(target, &low, &high)
        for index in range(request.n_inputs):
            row.append(<int>overlap(&request.operands[index], target, low, high) if known else 0)
        rows.append(row)
    return rows


cdef list number_facts(const request_t *request):
    """Facts about each number for rules: its dtype, `NumberFact`, and its value, which is an
    integer where it is of such a dtype."""
    cdef int index, dtype
    cdef const kernel_number *forms
    cdef object value
    found = []
    for index in range(request.n_numbers):
        forms, dtype = &request.numbers[NUMBER_FORMS * index], request.facts[index] >> 8
        value = forms[<int>EXACT].real
        if IS_INTEGER[dtype] and request.facts[index] & IS_WHOLE:
            value = forms[<int>WHOLE].whole
        found.append((dtype, facts_of(request, index) & 0xFF, value))
    return found


cdef object forget_oldest():
    """Drop the eighth of the plans that has not been used for longest."""
    if len(_plans) <= settings.cache_limit:  # somebody else has
        return
    # No lock, but a copy: collecting garbage may run a destructor that comes here too.
    plans = _plans.copy()
    ages = []
    for plan in plans.values():
        ages.append((<CompiledCall>plan).last_used)
    ages.sort()
    limit = ages[len(ages) // 8] if ages else 0
    for key, plan in plans.items():
        if (<CompiledCall>plan).last_used <= limit:
            _plans.pop(key, None)


def cache_info():
    """Hits, misses, size and limit of the plan cache.

    Returns
    -------
    dict
        ``hits``, ``misses``, ``size`` and ``limit``, all counts.

    Examples
    --------
    >>> from aclnn.compiler._compiled_call import cache_info
    >>> sorted(cache_info())
    ['hits', 'limit', 'misses', 'size']
    """
    return {"hits": _hits, "misses": _misses, "size": len(_plans), "limit": settings.cache_limit}


def clear_cache():
    """Forget every plan and count from zero.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.clear_cache()
    >>> info = aclnn.cache_info()
    >>> info["hits"], info["misses"], info["size"]
    (0, 0, 0)
    """
    global _hits, _misses, _forgotten
    _forgotten += 1
    _plans.clear()
    for handle in _handles:
        (<OperatorHandle>handle).last_key = None
        (<OperatorHandle>handle).last_plan = None
    _hits = _misses = 0


def configure(**changes):
    """Set what shapes plans beyond a call's own arguments."""
    global settings
    if "soc" in changes:
        settings.soc = changes["soc"]
    if "threads" in changes:
        settings.threads = changes["threads"]
    if "materialize" in changes:
        settings.materialize = changes["materialize"]
    if "strategy" in changes:
        settings.strategy = changes["strategy"]
    if "cache_limit" in changes:
        settings.cache_limit = changes["cache_limit"]
        clear_cache()


def current_settings():
    cdef settings_t now = settings
    now.threads = threads_set()
    return as_dict(&now)


def limit_thread(int threads):
    """Let runs of the calling thread use so many; 0: as the process is set to. What held before."""
    return set_thread_limit(threads)


cdef int set_thread_limit(int threads) noexcept nogil:
    global thread_limit
    cdef int before = thread_limit
    __atomic_fetch_add(&settings.limited, (threads != 0) - (before != 0), __ATOMIC_RELAXED)
    thread_limit = threads
    return before


def limit_of_thread():
    """Limit that `limit_thread` has set for the calling thread."""
    return thread_limit


cdef thread_limits_t limits_now() noexcept nogil:
    """Limits of threads of the calling thread, for a thread that runs on its behalf."""
    cdef thread_limits_t limits
    limits.openmp, limits.own = omp_threads(), thread_limit
    return limits


cdef void apply_limits(thread_limits_t limits) noexcept nogil:
    """Let the calling thread use as many threads as another one might."""
    limit_omp_threads(limits.openmp)
    if limits.own != thread_limit:
        set_thread_limit(limits.own)


cdef bint runs_are_observed() noexcept nogil:
    """Whether somebody wants to see every run."""
    return settings.observed != 0


cdef dict as_dict(const settings_t *now):
    return {
        "soc": now.soc,
        "threads": now.threads,
        "materialize": bool(now.materialize),
        "strategy": now.strategy,
        "cache_limit": now.cache_limit,
    }


def add_observer(observer):
    """Have ``observer(plan, begin, end, events, submitted)`` called after every run, on its thread.

    ``submitted`` is when phase two gave the run to a stream, `None` for one that ran at once.
    """
    global _observers
    _observers = (*_observers, observer)
    settings.observed = len(_observers)


def remove_observer(observer):
    global _observers
    _observers = tuple(known for known in _observers if known != observer)
    settings.observed = len(_observers)


@cython.final
cdef class CompiledCall:
    """All that phase one found out about a call.

    Attributes
    ----------
    operator, call
        The declaration, and the call as the rules saw it.
    graph_as_built, passes, graph
        The op-graph before, between and after the passes.
    workspace, schedule
        Where the intermediates lie, and the steps that phase two runs.
    workspace_size : int
        Bytes that phase two needs.
    """

    def __cinit__(self, operator not None, call not None, graph_as_built, passes not None,
                  workspace not None, schedule, packed, tensors not None, arguments not None,
                  int n_inputs, overlaps not None):
        self.operator = operator
        self.call = call
        self.graph_as_built = graph_as_built
        self.passes = passes
        self.graph = passes.graph
        self.workspace = workspace
        self.schedule = schedule
        self.packed = packed
        self.has_long_calls = schedule is not None and calls_for_threads(schedule)
        self.workspace_size = workspace.size
        self.steps = <const program_t *><size_t>packed.address if packed is not None else NULL
        self.n_inputs = n_inputs
        self.n_outputs = len(tensors) - n_inputs
        self._describe(tensors, overlaps)
        self._mark_in_place(arguments)
        if len(arguments) < len(tensors):
            self._leave_out(arguments)

    @property
    def materialized(self):
        """Whether every intermediate is written as a whole."""
        for step in self.passes:
            if step.name == "fuse":
                return False
        return True

    def __dealloc__(self):
        free(self.operands)
        free(self.slots)
        free(self.low)
        free(self.high)
        free(self.overlaps)
        free(self.pairs)

    cdef int _describe(self, tensors, overlaps) except -1:
        """Keep what runs compare: extents, layouts, and how inputs lie to outputs."""
        cdef int index, out, count = len(tensors)
        self.operands = <operand_t *>zeroed(count, sizeof(operand_t))
        self.low = <int64_t *>zeroed(count, sizeof(int64_t))
        self.high = <int64_t *>zeroed(count, sizeof(int64_t))
        self.overlaps = <unsigned char *>zeroed(self.n_inputs * self.n_outputs, 1)
        for index, spec in enumerate(tensors):
            self.operands[index].ndim = ABSENT
            if spec is not None:
                self._take(index, spec)
        for out in range(self.n_outputs):
            for index in range(self.n_inputs):
                self.overlaps[out * self.n_inputs + index] = overlaps[out][index]
        self.pairs = <pair_t *>zeroed(self.n_inputs * self.n_outputs, sizeof(pair_t))
        for out in range(self.n_outputs):
            for index in range(self.n_inputs):
                self._pair(index, self.n_inputs + out, overlaps[out][index])
        shapes, sizes = [], [0]
        for spec in tensors[self.n_inputs:]:
            shapes.append(None if spec is None else spec.shape)
        self.out_shapes = tuple(shapes)
        for spec in tensors:
            if spec is not None:
                sizes.append(spec.size)
        for step in self.schedule.steps:
            sizes.append(prod(step.shape))
        self.elements = max(sizes) if self.steps != NULL else 0
        return 0

    cdef int _take(self, int index, TensorSpec spec) except -1:
        """Keep the description of an operand, and the extent of its memory."""
        if spec.operand.ndim == UNDESCRIBED:
            raise ValueError(f"{len(spec.shape)} dimensions, at most {MAX_DIMS} are possible")
        self.operands[index] = spec.operand
        self.operands[index].data = NULL
        extent(&self.operands[index], &self.low[index], &self.high[index])
        return 0

    cdef int _pair(self, int index, int at, int planned) except -1:
        """Keep at which distances an input and an output have bytes in common."""
        cdef pair_t *pair = &self.pairs[self.n_pairs]
        if self.low[index] == self.high[index] or self.low[at] == self.high[at]:
            return 0  # one of them is absent or empty
        pair.input, pair.output = index, at
        pair.below = self.low[at] - self.high[index] + 1
        pair.reach = <uint64_t>(self.high[at] - self.low[index] - pair.below)
        self.n_pairs += 1
        return 0

    cdef int _mark_in_place(self, arguments) except -1:
        """Note which inputs the output may take the place of, although it was planned apart."""
        cdef int index
        if self.n_outputs != 1 or self.steps == NULL or has_buffer_in_output(self.workspace):
            return 0
        for place in inputs_in_place(self.graph):
            index = arguments[place]
            if self.overlaps[index] == APART:
                self.overlaps[index] = EITHER
        return 0

    cdef int _leave_out(self, arguments) except -1:
        """Keep which operands the steps take: no absent ones, and no outputs without elements."""
        cdef int index
        self.n_arguments = len(arguments)
        self.slots = <int *>zeroed(len(arguments), sizeof(int))
        for index, slot in enumerate(arguments):
            self.slots[index] = slot
        return 0


cdef bint calls_for_threads(schedule):
    """Whether an opaque kernel takes so long that several threads are worth it."""
    for step in schedule.steps:
        if step.is_call and step.parallel_from <= step.n_tiles:
            return True
    return False


cdef bint has_buffer_in_output(workspace):
    """Whether an intermediate lies in the memory of an output, before anything is written there."""
    for buffer in workspace.buffers:
        if buffer.output:
            return True
    return False


cdef char *aligned(char *memory) noexcept nogil:
    return memory + (-<Py_ssize_t><size_t>memory & (WORKSPACE_ALIGNMENT - 1))


cdef void *zeroed(size_t count, size_t size) except NULL:
    cdef void *memory = calloc(max(1, count), size)
    if memory == NULL:
        raise MemoryError
    return memory


cdef bint all_apart(CompiledCall plan, char **addresses) noexcept nogil:
    """Whether no input has a byte in common with an output: right for every plan."""
    cdef const pair_t *pair = plan.pairs
    cdef const pair_t *end = pair + plan.n_pairs
    while pair != end:
        if <uint64_t>(addresses[pair.input] - addresses[pair.output] - pair.below) < pair.reach:
            return False
        pair += 1
    return True


cdef bint overlaps_as_planned(CompiledCall plan, char **addresses) noexcept nogil:
    """Tell whether every input lies to every output as the plan took it to lie."""
    cdef const pair_t *pair = plan.pairs
    cdef const pair_t *end = pair + plan.n_pairs
    cdef int planned
    while pair != end:
        if <uint64_t>(addresses[pair.input] - addresses[pair.output] - pair.below) < pair.reach:
            planned = plan.overlaps[(pair.output - plan.n_inputs) * plan.n_inputs + pair.input]
            if not overlaps_alike(plan, addresses, pair.input, pair.output, planned):
                return False
        pair += 1
    return True


cdef bint overlaps_alike(CompiledCall plan, char **addresses, int index, int at,
                         int planned) noexcept nogil:
    """Whether the plan is right for an input and an output whose bytes meet."""
    if planned == CROSSING:
        return True  # a copy is made first: right wherever the input lies
    if addresses[index] != addresses[at]:
        return False
    if not same_layout(&plan.operands[index], &plan.operands[at]):
        return False
    return planned == SAME or planned == EITHER


cdef int run_plan(CompiledCall plan, char **addresses, char *workspace,
                  const kernel_number *numbers) except -1:
    """Run the schedule on these addresses; checks are the caller's."""
    if plan.steps == NULL:
        return 0
    if plan.slots != NULL:
        return run_some(plan, addresses, workspace, numbers)
    return run_steps(plan, addresses, workspace, numbers)


cdef int run_some(CompiledCall plan, char **addresses, char *workspace,
                  const kernel_number *numbers) except -1:
    """Run steps that take some of the operands only."""
    cdef char *taken[MANY]
    cdef int index
    for index in range(plan.n_arguments):
        taken[index] = addresses[plan.slots[index]]
    return run_steps(plan, taken, workspace, numbers)


cdef inline int run_steps(CompiledCall plan, char **addresses, char *workspace,
                          const kernel_number *numbers) except -1:
    cdef program_failure failure
    cdef int threads, failed
    if stack_is_short(RUN_STACK):
        refuse_stack(RUN_STACK)
    if settings.observed:
        return run_observed(plan, addresses, workspace, numbers)
    if plan.elements < KEEP_GIL_BELOW:
        threads = usable_threads(plan) if plan.has_long_calls else 1
        failed = run_program(plan.steps, addresses, workspace, numbers, threads, NULL, &failure)
    else:
        threads = usable_threads(plan)
        with nogil:
            failed = run_program(plan.steps, addresses, workspace, numbers, threads, NULL,
                                 &failure)
    return 0 if failed == 0 else refuse_failed(plan, failed, &failure)


cdef int run_unlocked(CompiledCall plan, char **addresses, char *workspace,
                      const kernel_number *numbers, program_failure *failure) noexcept nogil:
    """As `run_plan` without the interpreter's lock: what the program gave, 0 where all is well, or
    `NEEDS_LOCK` where nothing ran, as somebody observes runs or the stack is short."""
    cdef char *taken[MANY]
    cdef int index, threads = 1
    if plan.steps == NULL:
        return 0
    if settings.observed or stack_is_short(RUN_STACK):
        return NEEDS_LOCK
    if plan.slots != NULL:
        for index in range(plan.n_arguments):
            taken[index] = addresses[plan.slots[index]]
        addresses = taken
    if plan.has_long_calls or plan.elements >= KEEP_GIL_BELOW:
        threads = usable_threads(plan)
    return run_program(plan.steps, addresses, workspace, numbers, threads, NULL, failure)


# What functions raised that are kernels, by thread, until the run that they end has stopped.
cdef dict _raised = {}


def note_failure(error):
    """Keep what ends this thread's run, for its caller."""
    _raised[get_ident()] = error


cdef int refuse_failed(CompiledCall plan, int failed, const program_failure *failure) except -1:
    """Raise what made a run stop."""
    error = _raised.pop(get_ident(), None)
    if error is not None:
        raise error
    if failed == PROGRAM_NO_MEMORY:
        raise MemoryError("no memory for the parameters of the kernels")
    for kernel in plan.schedule.kernels:
        reason = None
        if <size_t>kernel.state == <size_t>failure.state and hasattr(kernel, "failure"):
            reason = kernel.failure(failed, failure.detail)
        if reason is not None:
            raise AclnnError(ACLNN_ERR_PARAM_INVALID, f"{plan.operator.name}: {reason}")
    raise RuntimeError(f"{plan.operator.name}: an opaque kernel failed and gave {failed}")


cdef int refuse_stack(size_t needed) except -1:
    """Kernels and the interpreter that go past the end of a stack end the process."""
    import threading

    name = threading.current_thread().name
    raise AclnnError(
        ACLNN_ERR_INNER,
        f"thread {name!r} has {stack_left() >> 10} KiB left of its stack of "
        f"{stack_size() >> 10} KiB, but {needed >> 10} KiB are needed: threading.stack_size sets "
        "how much threads get that start afterwards")


cdef void run_was_submitted(int64_t nanoseconds) noexcept:
    """Note when this thread's next runs were given to its stream; 0 for those that were not."""
    global submitted_at
    submitted_at = nanoseconds


cdef int usable_threads(CompiledCall plan) noexcept nogil:
    """The set number of threads, or fewer where OpenMP's own limit (threadpoolctl) is lower.

    What a function asks for comes before what the process is set to, not before the thread's limit.
    """
    cdef int threads = threads_set()
    if plan.own_threads and (plan.own_threads < threads or not thread_limit):
        threads = plan.own_threads
    return min(threads, omp_threads())


cdef int run_observed(CompiledCall plan, char **addresses, char *workspace,
                      const kernel_number *numbers) except -1:
    """As `run_plan`, with a clock around every step and every thread."""
    import time

    cdef int threads = usable_threads(plan)
    cdef Py_ssize_t rows = plan.packed.n_events
    cdef int failed
    cdef program_failure failure
    cdef program_event *events = <program_event *>calloc(max(1, rows), sizeof(program_event))
    if events == NULL:
        raise MemoryError
    try:
        begin = time.monotonic_ns()
        with nogil:
            failed = run_program(plan.steps, addresses, workspace, numbers, threads, events,
                                 &failure)
        end = time.monotonic_ns()
        seen = []
        for row in range(rows):
            if events[row].end:
                seen.append(
                    (events[row].step, events[row].thread, events[row].begin, events[row].end))
    finally:
        free(events)
    if failed:
        refuse_failed(plan, failed, &failure)
    for observer in _observers:
        observer(plan, begin, end, seen, submitted_at or None)
    return 0


cdef int run_with_own_workspace(CompiledCall plan, char **addresses,
                                const kernel_number *numbers) except -1:
    """Run with a workspace of the call's own, for callers that never see one."""
    cdef char *memory
    cdef char *workspace
    if plan.workspace_size == 0:
        return run_plan(plan, addresses, NULL, numbers)
    memory = <char *>malloc(plan.workspace_size + WORKSPACE_ALIGNMENT)
    if memory == NULL:
        raise MemoryError(f"no memory for a workspace of {plan.workspace_size} bytes")
    workspace = aligned(memory)
    try:
        run_plan(plan, addresses, workspace, numbers)
    finally:
        free(memory)
    return 0
