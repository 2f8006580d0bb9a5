"""Plans, the cache that finds them again, and the loop that runs them.

A plan holds all that phase one can know without addresses.  It is immutable and shared: by
threads, by executors, and by the C-shaped and the functional layer alike.  Its key is made of
everything that shapes it; scalars are not part of it, because kernels read them at run time.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdlib cimport calloc, free, malloc

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.graph import _scheduler

cdef schedule_run_fn run_schedule = <schedule_run_fn><size_t>_scheduler.run_address()

cdef enum:
    KEY_WORDS = 4 + MAX_TENSORS * (1 + 2 * MAX_DIMS)
    # Below this many elements a run is shorter than handing the interpreter to another thread.
    KEEP_GIL_BELOW = 16384
    WORKSPACE_ALIGNMENT = 64

cdef struct settings_t:
    int soc
    int threads
    int materialize
    int strategy
    int cache_limit   # plans kept; 0 switches the cache off
    int observed      # how many want to see every run

cdef settings_t settings
settings.threads = 1

cdef dict _plans = {}
cdef list _handles = []  # each remembers its last plan
cdef unsigned long _clock = 0
cdef unsigned long _hits = 0
cdef unsigned long _misses = 0
_observers = ()

# Bytes per element by CANN's number, for code without the interpreter's lock.
cdef int[64] ITEM_SIZES
ITEM_SIZES[:] = [0] * 64
for _dtype in aclDataType:
    if _dtype >= 0:
        ITEM_SIZES[<int>_dtype] = dtypes.item_size(_dtype)


cdef int item_size(int dtype) noexcept nogil:
    return ITEM_SIZES[dtype] if 0 <= dtype < 64 else 0


cdef void extent(const operand_t *operand, int64_t *low, int64_t *high) noexcept nogil:
    """The bytes an operand can touch, counted from its first element's address."""
    cdef int64_t size = item_size(operand.dtype)
    cdef int64_t reach
    cdef int axis
    low[0] = 0
    high[0] = size
    for axis in range(operand.ndim):
        if operand.shape[axis] == 0:
            low[0] = high[0] = 0
            return
        reach = (operand.shape[axis] - 1) * operand.strides[axis] * size
        if reach < 0:
            low[0] += reach
        else:
            high[0] += reach


cdef bint same_layout(const operand_t *a, const operand_t *b) noexcept nogil:
    """Whether elements lie alike; a stride along a single element is none."""
    cdef int axis
    if a.ndim != b.ndim or item_size(a.dtype) != item_size(b.dtype):
        return False
    for axis in range(a.ndim):
        if a.shape[axis] != b.shape[axis]:
            return False
        if a.shape[axis] > 1 and a.strides[axis] != b.strides[axis]:
            return False
    return True


cdef int overlap(const operand_t *a, const operand_t *out) noexcept nogil:
    cdef int64_t a_low, a_high, out_low, out_high
    if a.data == NULL or out.data == NULL or out.ndim == ABSENT:
        return APART
    extent(a, &a_low, &a_high)
    extent(out, &out_low, &out_high)
    if a.data + a_high <= out.data + out_low or out.data + out_high <= a.data + a_low:
        return APART
    return SAME if a.data == out.data and same_layout(a, out) else CROSSING


cdef int overlaps_of(const request_t *request) noexcept nogil:
    """Two bits for each input: how it lies to the output."""
    cdef int index, found = 0
    for index in range(request.n_inputs):
        found |= overlap(&request.operands[index], &request.operands[request.n_inputs]) << 2 * index
    return found


cdef inline settings_t settings_of(const request_t *request) noexcept nogil:
    """What the process is set to now, but for what the request itself says."""
    cdef settings_t now = settings
    if request.materialize != INHERIT:
        now.materialize = request.materialize
    if request.strategy != INHERIT:
        now.strategy = request.strategy
    return now


cdef Py_ssize_t write_key(const request_t *request, const settings_t *now, int overlaps,
                          int64_t *key) noexcept nogil:
    cdef Py_ssize_t n = 4
    cdef int index, axis
    cdef const operand_t *operand
    key[0] = request.operator_id | (<int64_t>request.switches << 16) | (
        <int64_t>request.scalar_signs << 32)
    key[1] = overlaps | (<int64_t>now.soc << 16) | (<int64_t>now.threads << 32)
    key[2] = now.materialize | (now.strategy << 8)
    key[3] = request.n_inputs
    for index in range(request.n_inputs + 1):
        operand = &request.operands[index]
        key[n] = (operand.dtype & 0xFF) | ((operand.format & 0xFF) << 8) | (
            <int64_t>(operand.ndim + 1) << 16) | (<int64_t>operand.writable << 32)
        n += 1
        for axis in range(operand.ndim):
            key[n] = operand.shape[axis]
            key[n + 1] = operand.strides[axis]
            n += 2
    return n * <Py_ssize_t>sizeof(int64_t)


cdef inline bint is_key(bytes packed, const int64_t *key, Py_ssize_t nbytes) noexcept:
    """Word by word: keys are so short that calling memcmp would take longer."""
    cdef const int64_t *words = <const int64_t *>PyBytes_AS_STRING(packed)
    cdef Py_ssize_t k
    cdef int64_t apart = 0
    if PyBytes_GET_SIZE(packed) != nbytes:
        return False
    for k in range(nbytes // <Py_ssize_t>sizeof(int64_t)):
        apart |= words[k] ^ key[k]
    return apart == 0


cdef class OperatorHandle:
    """An operator as the fast paths know it: a number, counts, and the plan it used last."""

    def __init__(self, operator, int identifier):
        if len(operator.kernel_operands) > MOST_INPUTS or len(operator.scalars) > MAX_SCALARS:
            raise ValueError(
                f"{operator.name} has {len(operator.kernel_operands)} inputs and "
                f"{len(operator.scalars)} numbers, at most {MOST_INPUTS} and {MAX_SCALARS} "
                "are possible")
        self.operator = operator
        self.id = identifier
        self.n_inputs = len(operator.kernel_operands)
        self.n_scalars = len(operator.scalars)
        self.scalar_roles = tuple(attribute.role for attribute in operator.scalars)
        self.switch_codes = {}
        _handles.append(self)

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


PLAIN = (str, bool, int)


cdef object plain(object value):
    """A switch's value without what a subclass of str or int adds."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    return value


cdef object switch_key(object values):
    """Equal values of other types are other values: 1 is not True."""
    return tuple([(type(value), value) for value in values])


cdef Plan find_plan(OperatorHandle handle, request_t *request, object names, object scalar_texts,
                    object switches):
    """The plan for a call, from the cache or made now; raises `AclnnError` for a bad call."""
    global _clock, _hits, _misses
    cdef int64_t key[KEY_WORDS]
    cdef int overlaps = overlaps_of(request)
    cdef settings_t now = settings_of(request)
    cdef Py_ssize_t nbytes = write_key(request, &now, overlaps, key)
    cdef PyObject *found
    cdef Plan plan
    cdef bytes packed
    _clock += 1
    if handle.last_key is not None and is_key(handle.last_key, key, nbytes):
        plan = handle.last_plan
        plan.last_used = _clock
        _hits += 1
        return plan
    packed = PyBytes_FromStringAndSize(<char *>key, nbytes)
    found = PyDict_GetItem(_plans, packed)
    if found != NULL:
        plan = <Plan>found
        _hits += 1
    else:
        _misses += 1
        plan = make_plan(handle, request, &now, overlaps, names, scalar_texts, switches)
        if now.cache_limit == 0:
            return plan
        if request.switches == UNSEEN:
            request.switches = handle.learn_switches(switches)
            nbytes = write_key(request, &now, overlaps, key)
            packed = PyBytes_FromStringAndSize(<char *>key, nbytes)
        plan.last_used = _clock  # or it would be the oldest itself
        _plans[packed] = plan
        if len(_plans) > now.cache_limit:
            forget_oldest()
    plan.last_used = _clock
    if now.cache_limit:
        handle.last_key = None  # never one plan's key with another plan
        handle.last_plan = plan
        handle.last_key = packed
    return plan


cdef Plan make_plan(OperatorHandle handle, request_t *request, const settings_t *now, int overlaps,
                    object names, object scalar_texts, object switches):
    from aclnn.planning import phase_one

    operands = [describe(&request.operands[index]) for index in range(request.n_inputs + 1)]
    if scalar_texts is None and request.numbers != NULL:
        scalar_texts = {role: repr(request.numbers[index])
                        for index, role in enumerate(handle.scalar_roles)}
    lies = [overlaps >> 2 * index & 3 for index in range(request.n_inputs)]
    asked = phase_one.Request(handle.operator, operands, signs_of(request, handle.n_scalars),
                              scalar_texts, switches, names)
    return Plan(**phase_one.plan_call(asked, lies, as_dict(now)))


cdef list signs_of(const request_t *request, int n_scalars):
    """Whether each scalar converts, and whether it is below zero."""
    return [
        (not (request.scalar_signs >> 2 * index & 2), bool(request.scalar_signs >> 2 * index & 1))
        for index in range(n_scalars)
    ]


cdef object describe(const operand_t *operand):
    """An operand as plain Python data for the slow path, `None` for an output to be made."""
    if operand.ndim == ABSENT:
        return None
    return (
        operand.dtype,
        tuple([operand.shape[axis] for axis in range(operand.ndim)]),
        tuple([operand.strides[axis] for axis in range(operand.ndim)]),
        operand.format,
        bool(operand.writable),
    )


cdef object forget_oldest():
    """Drop the eighth of the plans that has not been used for longest."""
    if len(_plans) <= settings.cache_limit:  # somebody else has
        return
    # No lock, but a copy: collecting garbage may run a destructor that comes here too.
    plans = _plans.copy()
    ages = sorted((<Plan>plan).last_used for plan in plans.values())
    limit = ages[len(ages) // 8] if ages else 0
    for key, plan in plans.items():
        if (<Plan>plan).last_used <= limit:
            _plans.pop(key, None)


def cache_info():
    """Hits, misses, size and limit of the plan cache.

    Returns
    -------
    dict
        ``hits``, ``misses``, ``size`` and ``limit``, all counts.

    Examples
    --------
    >>> from aclnn.planning._plan import cache_info
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
    global _hits, _misses
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
    return as_dict(&settings)


cdef dict as_dict(const settings_t *now):
    return {
        "soc": now.soc,
        "threads": now.threads,
        "materialize": bool(now.materialize),
        "strategy": now.strategy,
        "cache_limit": now.cache_limit,
    }


def add_observer(observer):
    """Have ``observer(plan, begin, end, events)`` called after every run, on its thread."""
    global _observers
    _observers = (*_observers, observer)
    settings.observed = len(_observers)


def remove_observer(observer):
    global _observers
    _observers = tuple(known for known in _observers if known != observer)
    settings.observed = len(_observers)


cdef class Plan:
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

    def __init__(self, operator, call, graph_as_built, passes, workspace, schedule, packed, tensors,
                 overlaps, bint scalars_as_double):
        self.operator = operator
        self.call = call
        self.graph_as_built = graph_as_built
        self.passes = passes
        self.graph = passes.graph
        self.workspace = workspace
        self.schedule = schedule
        self.packed = packed
        self.workspace_size = workspace.size
        self.scalars_as_double = scalars_as_double
        self.steps = <const schedule_t *><size_t>packed.address if packed is not None else NULL
        self.overlaps = sum([lies << 2 * index for index, lies in enumerate(overlaps)])
        self._describe(tensors)

    cdef _describe(self, tensors):
        """Keep what runs compare: extents, layouts, and the output's shape."""
        cdef operand_t operands[MAX_TENSORS]
        cdef int index
        self.n_inputs = len(tensors) - 1
        for index, spec in enumerate(tensors):
            read_spec(spec, &operands[index])
            extent(&operands[index], &self.low[index], &self.high[index])
        for index in range(self.n_inputs):
            self.same_layout[index] = same_layout(&operands[index], &operands[self.n_inputs])
        out = tensors[-1]
        self.out_shape = out.shape
        self.out_ndim = len(out.shape)
        self.out_dtype = out.dtype
        self.elements = out.size if self.steps != NULL else 0
        for index in range(self.out_ndim):
            self.out_dims[index] = out.shape[index]


cdef void read_spec(object spec, operand_t *operand) except *:
    cdef int axis
    operand.data = NULL
    operand.dtype = spec.dtype
    operand.ndim = min(len(spec.shape), MAX_DIMS)
    for axis in range(operand.ndim):
        operand.shape[axis] = spec.shape[axis]
        operand.strides[axis] = spec.strides[axis]


cdef bint overlaps_as_planned(Plan plan, char **addresses) noexcept nogil:
    """Tell whether every input lies to the output as the plan took it to lie."""
    cdef char *out = addresses[plan.n_inputs]
    cdef char *begin = out + plan.low[plan.n_inputs]
    cdef char *end = out + plan.high[plan.n_inputs]
    cdef int index, planned
    for index in range(plan.n_inputs):
        planned = plan.overlaps >> 2 * index & 3
        if planned == CROSSING:
            continue  # a copy is made first: right wherever the input lies
        if (addresses[index] + plan.high[index] <= begin
                or end <= addresses[index] + plan.low[index]):
            continue
        if not (addresses[index] == out and plan.same_layout[index]):
            return False
    return True


cdef int run_plan(Plan plan, char **addresses, char *workspace, const double *scalars) except -1:
    """Run the schedule on these addresses; checks are the caller's."""
    cdef kernel_number numbers[MAX_SCALARS]
    cdef int index, threads
    if plan.steps == NULL:
        return 0
    for index in range(MAX_SCALARS):
        numbers[index].real = (scalars[index] if plan.scalars_as_double
                               else <double><float>scalars[index])
    if settings.observed:
        return run_observed(plan, addresses, workspace, numbers)
    if plan.elements < KEEP_GIL_BELOW:
        run_schedule(plan.steps, addresses, workspace, numbers, 1, NULL)
        return 0
    threads = usable_threads()
    with nogil:
        run_schedule(plan.steps, addresses, workspace, numbers, threads, NULL)
    return 0


cdef int usable_threads():
    """The set number of threads, or fewer where OpenMP's own limit (threadpoolctl) is lower."""
    return min(settings.threads, <int>_scheduler.omp_threads())


cdef int run_observed(Plan plan, char **addresses, char *workspace,
                      const kernel_number *numbers) except -1:
    """As `run_plan`, with a clock around every step and every thread."""
    import time

    cdef int threads = usable_threads()
    cdef Py_ssize_t rows = plan.packed.n_events
    cdef schedule_event *events = <schedule_event *>calloc(rows, sizeof(schedule_event))
    if events == NULL:
        raise MemoryError
    try:
        begin = time.monotonic_ns()
        with nogil:
            run_schedule(plan.steps, addresses, workspace, numbers, threads, events)
        end = time.monotonic_ns()
        seen = [
            (events[row].step, events[row].thread, events[row].begin, events[row].end)
            for row in range(rows) if events[row].end
        ]
    finally:
        free(events)
    for observer in _observers:
        observer(plan, begin, end, seen)
    return 0


cdef int run_with_own_workspace(Plan plan, char **addresses, const double *scalars) except -1:
    """Run with a workspace of the call's own, for callers that never see one."""
    cdef char *memory
    cdef char *workspace
    if plan.workspace_size == 0:
        return run_plan(plan, addresses, NULL, scalars)
    memory = <char *>malloc(plan.workspace_size + WORKSPACE_ALIGNMENT)
    if memory == NULL:
        raise MemoryError(f"no memory for a workspace of {plan.workspace_size} bytes")
    workspace = memory + (-<Py_ssize_t><size_t>memory & (WORKSPACE_ALIGNMENT - 1))
    try:
        run_plan(plan, addresses, workspace, scalars)
    finally:
        free(memory)
    return 0
