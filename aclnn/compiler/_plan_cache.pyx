"""The plan cache: compiled calls by all that shapes them.

A key is made of everything that a plan depends on; scalars are not part of it, because kernels
read them at run time.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from aclnn.acl._tensor_spec cimport (
    ABSENT,
    DISJOINT,
    PARTIAL,
    EITHER,
    MAX_DIMS,
    IDENTICAL,
    extent,
    operand_t,
    overlap,
    spec_at,
)
from aclnn.compiler._compiled_call cimport CompiledCall, pair_t, refuse_stack
from aclnn.compiler._request cimport (
    EXACT,
    INHERIT,
    IS_BELOW,
    IS_NAN,
    IS_ONE,
    IS_WHOLE,
    IS_ZERO,
    MAX_NUMBERS,
    NUMBER_FORMS,
    SIGN_FACTS,
    WHOLE,
    facts_of,
    number_facts,
    overlaps_of,
    request_t,
)
from aclnn.compiler._settings cimport (
    as_dict,
    settings,
    settings_t,
    threads_planned,
    threads_set,
)

from aclnn.acl import socs
from aclnn.acl.constants import aclDataType

cdef extern from "stack.h" nogil:
    size_t stack_left() noexcept

cdef enum:
    # Words of a key that its call has room for; the keys of longer ones are made elsewhere.
    KEY_WORDS = 96
    PLANNING_STACK = 64 << 10  # the interpreter takes some 30 KiB for phase one

cdef dict _plans = {}
cdef list _handles = []  # each remembers its last plan
cdef unsigned long _clock = 0
cdef unsigned long _hits = 0
cdef unsigned long _misses = 0
cdef unsigned long _forgotten = 0  # how often all plans were forgotten


cdef inline settings_t settings_of(const request_t *request) noexcept nogil:
    """Settings of the process now, except for what the request itself says."""
    cdef settings_t now = settings
    now.threads, now.planned = threads_set(), threads_planned()
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


cdef Py_ssize_t write_description(OperatorHandle handle, const request_t *request,
                                  const settings_t *now, int64_t *key) noexcept nogil:
    """Write all of a key but how inputs lie to outputs."""
    cdef Py_ssize_t n = 3
    cdef int facts, index, axis, ndim, count = request.n_inputs + request.n_outputs
    cdef int64_t *at
    cdef const operand_t *operand
    key[0] = request.operator_id | (<int64_t>request.switches << 16) | (<int64_t>now.soc << 32)
    key[1] = (now.threads | (<int64_t>now.materialize << 16) | (<int64_t>now.strategy << 24)
              | (<int64_t>request.makes_absent << 32) | (<int64_t>(now.planned > 1) << 40)
              | (<int64_t>request.pair << 48))  # rules may name what only some pairs take
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
    """Whether inputs overlap outputs as the plan was made for.

    Cheaper than the rest of the key, because the plan knows the extents; False where unknown.
    """
    cdef const pair_t *pair = plan.pairs
    cdef const pair_t *end = pair + plan.n_pairs
    cdef const char *input
    cdef const char *output
    cdef int relation, planned
    while pair != end:
        input, output = request.operands[pair.input].data, request.operands[pair.output].data
        relation = DISJOINT
        if (<uint64_t>(input - output - pair.below) < pair.reach
                and input != NULL and output != NULL):
            # Where their layouts are not alike, the plan is for a partial overlap: no match.
            relation = IDENTICAL if input == output else PARTIAL
        planned = plan.overlaps[(pair.output - plan.n_inputs) * plan.n_inputs + pair.input]
        if relation != (DISJOINT if planned == EITHER else planned):
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
        self.ends_lists = operator.ends_lists
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
    """Record a call that was not seen before, and compile that."""
    cdef int index
    if stack_left() < PLANNING_STACK:
        refuse_stack(PLANNING_STACK)
    # A process that plans nothing loads no planner and no kernels.
    from aclnn.compiler import compilation, phase_one, recording

    operands = []
    for index in range(request.n_inputs + request.n_outputs):
        operands.append(spec_at(&request.operands[index], NULL, None))
    asked = phase_one.Request(handle.operator, operands, request.n_inputs, number_facts(request),
                              scalar_texts, switches, names,
                              None if request.makes_absent else frozenset())
    call = recording.single_call(asked, socs.FAMILIES[now.soc])
    return compilation.compile_recording(call, overlaps_of(request), as_dict(now))


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
    >>> from aclnn.compiler._plan_cache import cache_info
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


def set_limit(int plans):
    """Keep at most so many plans from now on, none of those of before; 0 switches the cache off."""
    settings.cache_limit = plans
    clear_cache()
