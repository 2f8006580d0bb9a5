"""Both phases for programs in C: calls that are known run without the interpreter's lock.

Phase one reads a call from structs in C into a request, as the functions in Python read theirs, and
looks it up under the key of the plan cache. A call that is not known is planned as it was read, and
remembered here. One that has no key goes to the functions in Python, which read, check and plan it.
Phase two tests that all is well, and runs; whatever is not well goes to the functions in Python,
too, which say what it is. No rule stands here.
"""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.stdio cimport snprintf
from libc.string cimport memcpy, strlen

from aclnn.acl cimport _captures
from aclnn.acl._tensor cimport held_tensor, take_view, tensor_elsewhere
from aclnn.acl.objects cimport (
    ACLNN_BOOLS,
    ACLNN_DESTROYED,
    ACLNN_EXECUTOR,
    ACLNN_INTS,
    ACLNN_SCALAR,
    ACLNN_TENSOR,
    ACLNN_TENSORS,
    aclnn_elements_needed,
    aclnn_hold,
    aclnn_release,
    c_ints,
    c_scalar,
    c_tensor,
    c_tensors,
)
from aclnn.api._arguments cimport MAX_PARAMETERS
from aclnn.api._two_phase cimport (
    ACL_DOUBLE,
    FLOAT,
    IGNORED,
    INOUT,
    LIST,
    OUTPUT,
    OUTPUTS,
    SCALAR,
    SINGLE,
    SWITCH,
    ZERO,
    EntryHandle,
    has_call_hook,
    take_scalar,
)
from aclnn.capi._python_objects cimport python_argument, python_memory
from aclnn.capi.abi cimport (
    ACLNN_CALL_TABLE_VERSION,
    ACLNN_RUNTIME_TABLE_NAME,
    argument_t,
    c_executor,
    call_table_t,
    description_t,
    runtime_t,
    services_t,
)
from aclnn.acl._tensor_spec cimport MAX_DIMS, bytes_before, bytes_of, operand_t, splits_a_byte
from aclnn.compiler._compiled_call cimport (
    NEEDS_LOCK,
    CompiledCall,
    all_apart,
    overlaps_as_planned,
    refuse_failed,
    run_plan,
    run_unlocked,
    runs_are_observed,
)
from aclnn.compiler._plan_cache cimport (
    OperatorHandle,
    call_key,
    most_key_words,
    plans_are_kept,
    plans_forgotten,
    put_real,
)
from aclnn.compiler._request cimport INHERIT, MAX_NUMBERS, NUMBER_FORMS, request_t
from aclnn.compiler._settings cimport apply_limits, limits_now, thread_limits_t
from aclnn.execution._executor cimport aclOpExecutor
from aclnn.graph.runtime.abi cimport program_failure
from aclnn.graph.runtime.kernel_abi cimport kernel_number

import atexit
import os
from threading import RLock

import aclnn
from aclnn import environment
from aclnn.acl import _runtime, _tensor, errors
from aclnn.acl.constants import (
    ACLNN_ERR_INNER,
    ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
    ACLNN_ERR_INNER_NULLPTR,
    ACLNN_ERR_PARAM_INVALID,
    ACLNN_ERR_PARAM_NULLPTR,
)
from aclnn.acl.errors import AclnnError
from aclnn.api.two_phase import HANDLES_BY_ENTRY
from aclnn.execution import _rebinding

cdef extern from *:
    """
    #include <pthread.h>

    /* Threads that Python did not make keep their state between calls: to make it anew takes
       longer than most calls. */
    static pthread_key_t aclnn_thread_key;
    static pthread_once_t aclnn_thread_once = PTHREAD_ONCE_INIT;
    static int aclnn_interpreter_ends;

    static void aclnn_end_thread(void *state) {
      if (__atomic_load_n(&aclnn_interpreter_ends, __ATOMIC_ACQUIRE)) return;
      PyEval_RestoreThread(state);
      PyThreadState_Clear(state);
      PyThreadState_DeleteCurrent();
    }

    static void aclnn_make_thread_key(void) {
      pthread_key_create(&aclnn_thread_key, aclnn_end_thread);
    }

    static void aclnn_keep_thread(void) {
      if (PyGILState_GetThisThreadState()) return;
      pthread_once(&aclnn_thread_once, aclnn_make_thread_key);
      PyGILState_Ensure();
      pthread_setspecific(aclnn_thread_key, PyEval_SaveThread());
    }

    static inline void aclnn_lock(int *lock) {
      while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(lock, __ATOMIC_RELAXED)) continue;
    }

    static inline void aclnn_unlock(int *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
    """
    int aclnn_interpreter_ends
    void keep_thread "aclnn_keep_thread"() noexcept nogil
    void lock_word "aclnn_lock"(int *) noexcept nogil
    void unlock_word "aclnn_unlock"(int *) noexcept nogil
    int __atomic_add_fetch(int *, int, int) noexcept nogil
    int __ATOMIC_ACQ_REL
    int __ATOMIC_RELAXED

cdef int OK = 0
cdef int NULLPTR = int(ACLNN_ERR_PARAM_NULLPTR)
cdef int INVALID = int(ACLNN_ERR_PARAM_INVALID)
cdef int INNER = int(ACLNN_ERR_INNER)
cdef int INNER_NULLPTR = int(ACLNN_ERR_INNER_NULLPTR)
cdef int MISSING = int(ACLNN_ERR_INNER_FIND_KERNEL_ERROR)

cdef extern from "stack.h" nogil:
    bint stack_is_short(size_t)

cdef enum:
    STACK = 64 << 10       # bytes that a call takes at most, but for kernels
    FAST_OPERANDS = 64     # of calls that are looked up here
    FAST_WORDS = 1400      # of their keys
    FAST_VALUES = 128      # numbers and characters in arrays and texts, as words of keys
    POOLED_OPERANDS = 8    # of executors that are kept for others when they are done
    CACHED_CALLS = 2048           # known calls
    NOT_KNOWN = -1         # a call, or a state, that functions in Python have to look at

ctypedef struct known_pair_t:
    PyObject *entry            # an EntryHandle; NULL for a function that is missing here
    PyObject *handle
    const char *name
    const char *tags
    int inout[MAX_PARAMETERS]  # the number of the output that a tensor in place is
    bint is_measured           # whether data decide the shape of some output

ctypedef struct cached_t:
    # A call that is known: its key, and what came of it. Executors hold it, and the table.
    int references
    PyObject *plan             # a CompiledCall
    PyObject *model            # an aclOpExecutor, without memory
    int n_inputs
    int n_outputs
    Py_ssize_t workspace_size
    bint needs_data
    unsigned long forgotten
    uint64_t digest
    Py_ssize_t words
    int64_t *key
    int n_order                # tensors in the order of the signature, each one slot or two
    int *order

ctypedef struct bound_t:
    c_tensor *tensor           # NULL: absent
    char *storage              # where `rebound`: other memory than the tensor's
    void *block                # ... and its block, held
    int64_t offset             # bytes
    unsigned version
    bint rebound

ctypedef struct executor_t:
    unsigned magic
    int pair
    int room                   # operands
    bint repeatable
    bint spent
    cached_t *cached
    PyObject *python           # an aclOpExecutor that stands for this one, of rare calls
    executor_t *next           # in the pool
    unsigned short facts[MAX_NUMBERS]
    kernel_number numbers[MAX_NUMBERS * NUMBER_FORMS]
    bound_t bound[POOLED_OPERANDS]  # or as many as there are

ctypedef struct job_t:
    # A run that a stream was given: it needs nothing of the program but memory.
    cached_t *cached
    int pair
    int count                  # operands
    char *workspace
    void *workspace_block
    thread_limits_t limits
    kernel_number numbers[MAX_NUMBERS * NUMBER_FORMS]
    char *addresses[FAST_OPERANDS]
    void *blocks[FAST_OPERANDS]

recording = RLock()  # one line at a time
cdef const runtime_t *runtime = NULL
cdef services_t services
cdef bint reports = False    # whether a page is written at the end
cdef known_pair_t *known_pairs = NULL
cdef cached_t *cached_calls[CACHED_CALLS]
cdef int cache_locks[CACHED_CALLS]
cdef executor_t *pool = NULL
cdef int pool_lock = 0
cdef cached_t *to_drop = NULL  # whose objects wait for the interpreter's lock; linked by `key`
cdef int drop_lock = 0


# --- Messages -------------------------------------------------------------------------------------

cdef int failed(int status, object message):
    """Keep the message of the calling thread's failure; gives the status."""
    return errors.fail(status, str(message))


cdef int refuse_stack(const char *function, const char *phase) noexcept nogil:
    """The status of a thread whose stack is too small for a call of the interpreter."""
    cdef char message[256]
    snprintf(message, sizeof(message), b"%.90s%s: the thread has less than %d KiB left of its "
             b"stack; start it with one of 256 KiB or more", function, phase, STACK >> 10)
    return runtime.fail(INNER, message)


cdef int unexpected(str function, object error):
    """The status of an exception that nobody expected."""
    return failed(getattr(error, "status", INNER), f"{function}: {type(error).__name__}: {error}")


# --- Known calls ----------------------------------------------------------------------------------

cdef void drop(cached_t *cached) noexcept nogil:
    """Let go of a known call; its objects go when somebody has the interpreter's lock."""
    global to_drop
    if cached == NULL or __atomic_add_fetch(&cached.references, -1, __ATOMIC_ACQ_REL):
        return
    free(cached.key)
    free(cached.order)
    lock_word(&drop_lock)
    cached.key = <int64_t *>to_drop
    to_drop = cached
    unlock_word(&drop_lock)


cdef void drop_objects() noexcept:
    global to_drop
    cdef cached_t *cached
    cdef cached_t *following
    lock_word(&drop_lock)
    cached, to_drop = to_drop, NULL
    unlock_word(&drop_lock)
    while cached != NULL:
        following = <cached_t *>cached.key
        Py_XDECREF(cached.plan)
        Py_XDECREF(cached.model)
        free(cached)
        cached = following


cdef uint64_t digest_of(const int64_t *key, Py_ssize_t words) noexcept nogil:
    cdef uint64_t digest = 0x9E3779B97F4A7C15
    cdef Py_ssize_t k
    for k in range(words):
        digest = (digest ^ <uint64_t>key[k]) * <uint64_t>0xD6E8FEB86659FD93
        digest ^= digest >> 32
    return digest


cdef cached_t *find_cached(const int64_t *key, Py_ssize_t words) noexcept nogil:
    """A known call, held for the caller; NULL where there is none."""
    cdef uint64_t digest = digest_of(key, words)
    cdef int index = <int>(digest % CACHED_CALLS)
    cdef Py_ssize_t k
    cdef cached_t *found
    lock_word(&cache_locks[index])
    found = cached_calls[index]
    if found != NULL and (found.digest != digest or found.words != words
                          or found.forgotten != plans_forgotten()):
        found = NULL
    if found != NULL:
        for k in range(words):
            if found.key[k] != key[k]:
                found = NULL
                break
    if found != NULL:
        __atomic_add_fetch(&found.references, 1, __ATOMIC_RELAXED)
    unlock_word(&cache_locks[index])
    return found


cdef void keep_cached(cached_t *cached) noexcept nogil:
    """Put a call among the known ones, in the place of another one."""
    cdef int index = <int>(cached.digest % CACHED_CALLS)
    cdef cached_t *before
    __atomic_add_fetch(&cached.references, 1, __ATOMIC_RELAXED)
    lock_word(&cache_locks[index])
    before, cached_calls[index] = cached_calls[index], cached
    unlock_word(&cache_locks[index])
    drop(before)


cdef cached_t *new_cached(aclOpExecutor executor, const int64_t *key, Py_ssize_t words) except NULL:
    """Memo of a call that was planned."""
    cdef cached_t *cached = <cached_t *>calloc(1, sizeof(cached_t))
    cdef CompiledCall plan = executor.planned
    cdef int k
    if cached == NULL:
        raise MemoryError
    cached.references = 1
    cached.key = <int64_t *>malloc((words + 1) * sizeof(int64_t))
    cached.order = <int *>malloc((2 * len(executor.order) + 1) * sizeof(int))
    if cached.key == NULL or cached.order == NULL:
        free(cached.key)
        free(cached.order)
        free(cached)
        raise MemoryError
    memcpy(cached.key, key, words * sizeof(int64_t))
    cached.words, cached.digest = words, digest_of(key, words)
    cached.forgotten = plans_forgotten()
    for k, slots in enumerate(executor.order):
        cached.order[2 * k] = slots[0]
        cached.order[2 * k + 1] = slots[1] if len(slots) > 1 else -1
    cached.n_order = <int>len(executor.order)
    cached.n_inputs, cached.n_outputs = executor.request.n_inputs, executor.request.n_outputs
    cached.workspace_size, cached.needs_data = plan.workspace_size, plan.elements != 0
    Py_INCREF(plan)
    Py_INCREF(executor)
    cached.plan, cached.model = <PyObject *>plan, <PyObject *>executor
    return cached


# --- Phase one ------------------------------------------------------------------------------------

cdef bint put_tensor(const c_tensor *value, operand_t *operand, bound_t *bound) noexcept nogil:
    """Read a tensor; False for what functions in Python have to look at."""
    if (value.magic != ACLNN_TENSOR or value.ndim > MAX_DIMS
            or splits_a_byte(value.dtype, value.offset)):
        return False
    bound.tensor = <c_tensor *>value
    bound.version = value.version
    bound.offset = bytes_before(value.dtype, value.offset)
    take_view(value, operand)
    return True


cdef int put_values(char tag, const argument_t *value, int64_t *values, int count) noexcept nogil:
    """Write what shapes a plan besides tensors; how many words there are then, or `NOT_KNOWN`."""
    cdef uint64_t k, length
    if tag == b"s":
        if value.text == NULL:
            return NOT_KNOWN
        length = strlen(value.text)
        if count + length + 1 > FAST_VALUES:
            return NOT_KNOWN
        values[count] = <int64_t>length
        for k in range(length):
            values[count + 1 + k] = value.text[k]
        return count + 1 + <int>length
    if tag != b"I" and tag != b"B":
        values[count] = value.whole
        return count + 1
    if value.pointer == NULL:
        values[count] = -1
        return count + 1
    if value.ints.magic != (ACLNN_INTS if tag == b"I" else ACLNN_BOOLS):
        return NOT_KNOWN
    length = value.ints.size
    if length > FAST_VALUES or count + length + 1 > FAST_VALUES:
        return NOT_KNOWN
    values[count] = <int64_t>length
    for k in range(length):
        values[count + 1 + k] = (value.ints.values[k] if tag == b"I"
                                 else value.bools.values[k] != 0)
    return count + 1 + <int>length


cdef bint put_scalar(OperatorHandle handle, const c_scalar *value, request_t *request,
                     int slot) noexcept nogil:
    if value.magic != ACLNN_SCALAR or not value.is_real:
        return False
    take_scalar(handle, value, request, slot)
    return True


cdef int count_operands(const known_pair_t *pair, const argument_t *value,
                        request_t *request) noexcept nogil:
    """Number of inputs and outputs, those of lists included; `NOT_KNOWN` for too many."""
    cdef int index, kind
    request.n_inputs = (<OperatorHandle>pair.handle).n_inputs
    request.n_outputs = (<OperatorHandle>pair.handle).n_outputs
    if (<OperatorHandle>pair.handle).ends_lists:
        return NOT_KNOWN
    for index in range((<EntryHandle>pair.entry).n_parameters):
        kind = (<EntryHandle>pair.entry).kinds[index]
        if kind != LIST and kind != OUTPUTS:
            continue
        if (value[index].tensors == NULL or value[index].tensors.magic != ACLNN_TENSORS
                or value[index].tensors.size > FAST_OPERANDS or value[index].tensors.size == 0):
            return NOT_KNOWN
        if kind == LIST:
            request.n_inputs += <int>value[index].tensors.size - 1
        else:
            request.n_outputs = <int>value[index].tensors.size
    return OK if request.n_inputs + request.n_outputs <= FAST_OPERANDS else NOT_KNOWN


cdef int read_tensors(const known_pair_t *pair, int index, const argument_t *value,
                      request_t *request, bound_t *bound) noexcept nogil:
    """Read a tensor, or a list of them; `NOT_KNOWN` for what Python has to look at."""
    cdef int kind = (<EntryHandle>pair.entry).kinds[index]
    cdef int slot = (<EntryHandle>pair.entry).slots[index]
    cdef uint64_t k
    if kind == LIST or kind == OUTPUTS:
        slot = slot if kind == LIST else request.n_inputs
        for k in range(value.tensors.size):
            if not put_tensor(value.tensors.items[k], &request.operands[slot + <int>k],
                              &bound[slot + <int>k]):
                return NOT_KNOWN
        return OK
    if value.tensor == NULL:
        return OK if (<EntryHandle>pair.entry).nullable[index] else NOT_KNOWN
    if kind == SINGLE:
        if value.tensors.magic != ACLNN_TENSORS or value.tensors.size != 1:
            return NOT_KNOWN
        return OK if put_tensor(value.tensors.items[0], &request.operands[slot],
                                &bound[slot]) else NOT_KNOWN
    slot += request.n_inputs if kind == OUTPUT else 0
    if not put_tensor(value.tensor, &request.operands[slot], &bound[slot]):
        return NOT_KNOWN
    if kind == INOUT:
        slot = request.n_inputs + pair.inout[index]
        put_tensor(value.tensor, &request.operands[slot], &bound[slot])
    return OK


cdef Py_ssize_t read_call(const known_pair_t *pair, int number, const argument_t *value,
                          request_t *request, bound_t *bound, int64_t *key) noexcept nogil:
    """Read a call and write its key; how many words that takes, or `NOT_KNOWN`.

    Calls whose arguments are wrong on their own, and those of rare kinds, have no key.
    """
    cdef int index, kind, slot, count, n_values = 1
    cdef Py_ssize_t words
    if pair.is_measured or count_operands(pair, value, request) != OK:
        return NOT_KNOWN
    request.operator_id = (<OperatorHandle>pair.handle).id
    request.switches = 0  # what they are stands in the key as it is
    request.materialize = request.strategy = INHERIT
    request.makes_absent = False
    (<EntryHandle>pair.entry).take_defaults(request)
    for index in range(request.n_inputs + request.n_outputs):
        bound[index].tensor = NULL
        bound[index].rebound = False
        bound[index].block = NULL
    key[0] = number
    for index in range((<EntryHandle>pair.entry).n_parameters):
        kind = (<EntryHandle>pair.entry).kinds[index]
        slot = (<EntryHandle>pair.entry).slots[index]
        if kind <= OUTPUTS or kind == SINGLE:
            if read_tensors(pair, index, &value[index], request, bound) != OK:
                return NOT_KNOWN
        elif kind == SWITCH:
            count = put_values(pair.tags[index], &value[index], key, n_values)
            if count == NOT_KNOWN or ((pair.tags[index] == b"I" or pair.tags[index] == b"B")
                                      and value[index].pointer == NULL
                                      and not (<EntryHandle>pair.entry).nullable[index]):
                return NOT_KNOWN
            n_values = count
        elif kind == SCALAR:
            if value[index].scalar == NULL:
                if not (<EntryHandle>pair.entry).nullable[index]:
                    return NOT_KNOWN
            elif not put_scalar(<OperatorHandle>pair.handle, value[index].scalar, request, slot):
                return NOT_KNOWN
        elif kind == FLOAT:
            put_real(<OperatorHandle>pair.handle, request, slot, value[index].real, ACL_DOUBLE)
        elif kind == ZERO:
            if value[index].whole != 0:
                return NOT_KNOWN
        elif kind != IGNORED and (value[index].pointer != NULL
                                  or not (<EntryHandle>pair.entry).nullable[index]):
            return NOT_KNOWN
    if n_values + most_key_words(request) > FAST_WORDS:
        return NOT_KNOWN
    words = call_key(<OperatorHandle>pair.handle, request, key + n_values)
    return n_values + words


cdef executor_t *new_executor(int pair, int count) noexcept nogil:
    """An executor with room for so many operands; NULL where memory is short."""
    global pool
    cdef executor_t *made = NULL
    if count <= POOLED_OPERANDS:
        lock_word(&pool_lock)
        made = pool
        if made != NULL:
            pool = made.next
        unlock_word(&pool_lock)
    if made == NULL:
        made = <executor_t *>malloc(
            sizeof(executor_t) + max(0, count - POOLED_OPERANDS) * sizeof(bound_t))
    if made == NULL:
        return NULL
    made.magic, made.pair, made.room = ACLNN_EXECUTOR, pair, count
    made.repeatable = made.spent = False
    made.cached, made.python = NULL, NULL
    return made


cdef void end_executor(executor_t *executor) noexcept nogil:
    """Free an executor; those of a few operands stay, so that their use is a status."""
    global pool
    cdef int slot
    executor.magic = ACLNN_DESTROYED
    if executor.cached != NULL:
        for slot in range(executor.room):
            if executor.bound[slot].tensor != NULL:
                aclnn_release(executor.bound[slot].tensor, runtime.drop_memory)
            if executor.bound[slot].block != NULL:
                runtime.drop_memory(executor.bound[slot].block)
        drop(executor.cached)
    if executor.room > POOLED_OPERANDS:
        free(executor)
        return
    lock_word(&pool_lock)
    executor.next = pool
    pool = executor
    unlock_word(&pool_lock)


cdef executor_t *executor_of(int pair, cached_t *cached, const request_t *request,
                             const bound_t *bound) noexcept nogil:
    """An executor of a known call, which holds its tensors."""
    cdef int slot, count = cached.n_inputs + cached.n_outputs
    cdef executor_t *made = new_executor(pair, count)
    if made == NULL:
        return NULL
    made.cached = cached
    memcpy(made.facts, request.facts, request.n_numbers * sizeof(made.facts[0]))
    memcpy(made.numbers, request.numbers,
           request.n_numbers * NUMBER_FORMS * sizeof(kernel_number))
    memcpy(made.bound, bound, count * sizeof(bound_t))
    for slot in range(count):
        if bound[slot].tensor != NULL:
            aclnn_hold(bound[slot].tensor)
    return made


cdef int plan_read(int number, const argument_t *value, uint64_t *size,
                   c_executor **result) noexcept nogil:
    """Phase one of a call that has a key; `NOT_KNOWN` for others, which Python has to look at."""
    cdef int64_t key[FAST_WORDS]
    cdef operand_t operands[FAST_OPERANDS]
    cdef bound_t bound[FAST_OPERANDS]
    cdef request_t request
    cdef Py_ssize_t words
    cdef cached_t *cached
    cdef executor_t *made
    cdef int status = OK
    request.operands = operands
    words = read_call(&known_pairs[number], number, value, &request, bound, key)
    if words == NOT_KNOWN:
        return NOT_KNOWN
    cached = find_cached(key, words) if plans_are_kept() else NULL
    if cached == NULL:
        cached = plan_new(number, value, &request, key, words, &status)
    if cached == NULL:
        return status
    made = executor_of(number, cached, &request, bound)
    if made == NULL:
        drop(cached)
        return runtime.fail(INNER, "memory is short for an executor")
    size[0] = <uint64_t>cached.workspace_size
    result[0] = <c_executor *>made
    return OK


cdef cached_t *plan_new(int number, const argument_t *value, const request_t *request,
                        const int64_t *key, Py_ssize_t words, int *status) noexcept nogil:
    """A call that was not known: it is from now on. NULL, with a status, where it is refused."""
    keep_thread()
    with gil:
        drop_objects()
        try:
            return plan_request(number, value, request, key, words, status)
        except BaseException as error:
            name = (<bytes>known_pairs[number].name).decode()
            status[0] = unexpected(f"{name}GetWorkspaceSize", error)
            return NULL


cdef cached_t *plan_request(int number, const argument_t *value, const request_t *request,
                            const int64_t *key, Py_ssize_t words, int *status) except? NULL:
    """Plan a call as it was read."""
    cdef const known_pair_t *pair = &known_pairs[number]
    cdef EntryHandle entry = <EntryHandle>pair.entry
    cdef PyObject *arguments[MAX_PARAMETERS]
    cdef aclOpExecutor executor
    cdef cached_t *cached
    cdef int index
    cdef list kept = []
    for index in range(entry.n_parameters):
        is_read = entry.kinds[index] != SWITCH and entry.kinds[index] != SCALAR
        kept.append(None if is_read else python_argument(pair.tags[index], &value[index]))
        arguments[index] = <PyObject *>kept[index]
    try:
        executor = entry.read_in_c(request, arguments)
        entry.find_plan_for(executor)
    except (AclnnError, MemoryError) as error:
        status[0] = entry.plan_failed(error, tuple(python_arguments(pair, value)))
        return NULL
    cached = new_cached(executor, key, words)
    if plans_are_kept():
        keep_cached(cached)
    return cached


cdef list python_arguments(const known_pair_t *pair, const argument_t *value):
    """The arguments of a call as functions in Python take them."""
    cdef int index
    cdef list found = []
    for index in range((<EntryHandle>pair.entry).n_parameters):
        found.append(python_argument(pair.tags[index], &value[index]))
    return found


cdef int plan(int number, const argument_t *value, uint64_t *size,
              c_executor **result) noexcept nogil:
    """Phase one of the pair of a number."""
    cdef int status = NOT_KNOWN
    if size != NULL:
        size[0] = 0
    if result != NULL:
        result[0] = NULL
    if stack_is_short(STACK):
        return refuse_stack(known_pairs[number].name, b"GetWorkspaceSize")
    if (result != NULL and size != NULL and known_pairs[number].entry != NULL
            and not has_call_hook()):
        status = plan_read(number, value, size, result)
    return plan_in_python(number, value, size, result) if status == NOT_KNOWN else status


cdef int plan_in_python(int number, const argument_t *value, uint64_t *size,
                        c_executor **result) noexcept nogil:
    keep_thread()
    with gil:
        drop_objects()
        try:
            return plan_anew(number, value, size, result)
        except BaseException as error:
            name = (<bytes>known_pairs[number].name).decode()
            return unexpected(f"{name}GetWorkspaceSize", error)


cdef int plan_anew(int number, const argument_t *value, uint64_t *size,
                   c_executor **result) except? -1:
    """Phase one by the function in Python."""
    cdef const known_pair_t *pair = &known_pairs[number]
    cdef PyObject *arguments[MAX_PARAMETERS]
    cdef executor_t *made
    cdef int index
    name = (<bytes>pair.name).decode()
    if pair.entry == NULL:
        return failed(MISSING, f"{name}GetWorkspaceSize: aclnn-cpu {aclnn.__version__} does not "
                      f"have {name} yet: it is declared so that programs compile")
    kept = python_arguments(pair, value)
    for index in range((<EntryHandle>pair.entry).n_parameters):
        arguments[index] = <PyObject *>kept[index]
    needed, executor, status = (<EntryHandle>pair.entry).plan(arguments)
    if status != OK:
        return status
    if size == NULL or result == NULL:
        missing = "workspaceSize" if size == NULL else "executor"
        return failed(NULLPTR, f"{name}GetWorkspaceSize: {missing} is null")
    made = new_executor(number, 0)
    if made == NULL:
        raise MemoryError
    Py_INCREF(executor)
    made.python = <PyObject *>executor
    size[0], result[0] = needed, <c_executor *>made
    return OK


# --- Phase two ------------------------------------------------------------------------------------

cdef int addresses_of(const executor_t *executor, char **addresses) noexcept nogil:
    """Addresses of the operands; `NOT_KNOWN` where something about them is not as it should be."""
    cdef int slot
    cdef const bound_t *bound
    cdef char *storage
    cdef void *block
    for slot in range(executor.room):
        bound = &executor.bound[slot]
        addresses[slot] = NULL
        if bound.tensor == NULL:
            continue
        storage = bound.storage if bound.rebound else bound.tensor.storage
        block = bound.block if bound.rebound else bound.tensor.block
        if bound.tensor.version != bound.version or (
            storage == NULL and executor.cached.needs_data
        ):
            return NOT_KNOWN
        if block != NULL and not runtime.memory_lives(block):
            return NOT_KNOWN
        if storage != NULL:
            addresses[slot] = storage + bound.offset
    return OK


cdef bint lies_apart(CompiledCall plan, char **addresses, char *workspace) noexcept nogil:
    """Whether a workspace has no byte in common with any operand."""
    cdef char *end = workspace + plan.workspace_size
    cdef int slot
    for slot in range(plan.n_inputs + plan.n_outputs):
        if (addresses[slot] + plan.low[slot] < end
                and workspace < addresses[slot] + plan.high[slot]):
            return False
    return True


cdef int run_known(int pair, void *workspace, uint64_t size, executor_t *executor,
                   void *stream) noexcept nogil:
    """Phase two where all is well; `NOT_KNOWN` where functions in Python say what is not."""
    cdef char *addresses[FAST_OPERANDS]
    cdef program_failure failure
    cdef cached_t *cached
    cdef void *block = NULL
    cdef int outcome
    if (executor == NULL or executor.magic != ACLNN_EXECUTOR or executor.python != NULL
            or executor.pair != pair or executor.spent or has_call_hook()):
        return NOT_KNOWN
    cached = executor.cached
    if size < <uint64_t>cached.workspace_size or (workspace == NULL and size):
        return NOT_KNOWN
    if addresses_of(executor, addresses) != OK:
        return NOT_KNOWN
    if cached.workspace_size and not lies_apart(<CompiledCall>cached.plan, addresses,
                                                <char *>workspace):
        return NOT_KNOWN
    if not all_apart(<CompiledCall>cached.plan, addresses) and not overlaps_as_planned(
            <CompiledCall>cached.plan, addresses):
        return NOT_KNOWN
    if stream != NULL:
        return queue(pair, executor, addresses, <char *>workspace, stream)
    if _captures.active:
        return NOT_KNOWN
    if cached.workspace_size and runtime.hold_memory(
            known_pairs[pair].name, "workspace", workspace, cached.workspace_size, &block):
        return NOT_KNOWN
    outcome = run_unlocked(<CompiledCall>cached.plan, addresses, <char *>workspace,
                           executor.numbers, &failure)
    if block != NULL:
        runtime.drop_memory(block)
    if outcome == NEEDS_LOCK:
        return NOT_KNOWN
    return OK if outcome == 0 else run_failed(cached, pair, outcome, &failure)


cdef int queue(int pair, executor_t *executor, char **addresses, char *workspace,
               void *stream) noexcept nogil:
    """Give a run to a stream; `NOT_KNOWN` where a capture takes it, or somebody observes runs."""
    cdef const char *name = known_pairs[pair].name
    cdef cached_t *cached = executor.cached
    cdef job_t *job
    cdef int slot, status = runtime.is_redirected(stream, name)
    if status != 0:
        return NOT_KNOWN if status == 1 else status
    if runs_are_observed():
        return NOT_KNOWN
    job = <job_t *>calloc(1, sizeof(job_t))
    if job == NULL:
        return runtime.fail(INNER, "memory is short for a run on a stream")
    __atomic_add_fetch(&cached.references, 1, __ATOMIC_RELAXED)
    job.cached, job.pair, job.workspace = cached, pair, workspace
    job.limits = limits_now()
    memcpy(job.numbers, executor.numbers, sizeof(job.numbers))
    memcpy(job.addresses, addresses, executor.room * sizeof(addresses[0]))
    job.count = executor.room
    for slot in range(job.count):
        if hold_operand(job, slot):
            drop_job(job)
            return NOT_KNOWN
    if cached.workspace_size and hold_for(
            name, "workspace", workspace, cached.workspace_size, &job.workspace_block):
        drop_job(job)
        return NOT_KNOWN
    return runtime.enqueue(stream, name, run_job, job, drop_job)


cdef int hold_operand(job_t *job, int slot) noexcept nogil:
    """Hold the memory of an operand until the run is done."""
    if job.addresses[slot] == NULL:
        return OK
    return hold_for(known_pairs[job.pair].name, "operand", job.addresses[slot],
                    plan_high(<CompiledCall>job.cached.plan, slot), &job.blocks[slot])


cdef int hold_for(const char *function, const char *name, char *address, size_t nbytes,
                  void **block) noexcept nogil:
    """Hold memory that queued work uses: whoever frees it waits for that."""
    cdef int status = runtime.hold_memory(function, name, address, nbytes, block)
    if block[0] != NULL:
        runtime.use_memory(block[0])
    return status


cdef void let_go(void *block) noexcept nogil:
    if block != NULL:
        runtime.end_use_of_memory(block)
        runtime.drop_memory(block)


cdef size_t plan_high(CompiledCall plan, int slot) noexcept nogil:
    """Bytes from an operand's address to the end of its last element."""
    return <size_t>plan.high[slot]


cdef void drop_job(void *argument) noexcept nogil:
    """Let go of all that a run held."""
    cdef job_t *job = <job_t *>argument
    cdef int slot
    for slot in range(job.count):
        let_go(job.blocks[slot])
    let_go(job.workspace_block)
    drop(job.cached)
    free(job)


cdef int run_job(void *argument) noexcept nogil:
    """Run on a stream's thread; a status, with a message."""
    cdef job_t *job = <job_t *>argument
    cdef program_failure failure
    cdef int slot, outcome
    for slot in range(job.count):
        if not runtime.memory_serves(job.blocks[slot]):
            return run_lost(job, slot)
    if not runtime.memory_serves(job.workspace_block):
        return run_lost(job, NOT_KNOWN)
    apply_limits(job.limits)
    outcome = run_unlocked(<CompiledCall>job.cached.plan, job.addresses, job.workspace, job.numbers,
                           &failure)
    if outcome == 0:
        return OK
    if outcome == NEEDS_LOCK:
        return run_locked(job)
    return run_failed(job.cached, job.pair, outcome, &failure)


cdef int run_lost(const job_t *job, int slot) noexcept nogil:
    """Say whose addresses, or the workspace's, were taken away before the run's turn came."""
    with gil:
        name = (<bytes>known_pairs[job.pair].name).decode()
        what = "workspace" if slot < 0 else (<aclOpExecutor>job.cached.model).names[slot]
        return failed(INVALID, f"{name}: {what} is in memory that was freed")


cdef int run_locked(job_t *job) noexcept nogil:
    """Run while somebody observes runs."""
    with gil:
        name = (<bytes>known_pairs[job.pair].name).decode()
        try:
            run_plan(<CompiledCall>job.cached.plan, job.addresses, job.workspace, job.numbers)
            return OK
        except AclnnError as error:
            return failed(error.status, f"{name}: {error}")
        except BaseException as error:
            return unexpected(name, error)


cdef int run_failed(cached_t *cached, int pair, int outcome,
                    const program_failure *failure) noexcept nogil:
    """Say why a run stopped."""
    keep_thread()
    with gil:
        name = (<bytes>known_pairs[pair].name).decode()
        try:
            refuse_failed(<CompiledCall>cached.plan, outcome, failure)
            return INNER
        except AclnnError as error:
            return failed(error.status, f"{name}: {error}")
        except BaseException as error:
            return unexpected(name, error)


cdef int run(int pair, void *workspace, uint64_t size, c_executor *value,
             void *stream) noexcept nogil:
    """Phase two of the pair of a number; a one-shot executor is gone afterwards."""
    cdef executor_t *executor = <executor_t *>value
    cdef int status
    if stack_is_short(STACK):
        status = refuse_stack(known_pairs[pair].name, b"")
    else:
        status = run_known(pair, workspace, size, executor, stream)
    if status == NOT_KNOWN:
        status = run_in_python(pair, workspace, size, executor, stream)
    if (executor != NULL and executor.magic == ACLNN_EXECUTOR and executor.pair == pair
            and not executor.repeatable):
        destroy(value)
    return status


cdef int run_in_python(int pair, void *workspace, uint64_t size, executor_t *executor,
                       void *stream) noexcept nogil:
    keep_thread()
    with gil:
        drop_objects()
        try:
            return run_checked(pair, workspace, size, executor, stream)
        except AclnnError as error:
            return failed(error.status, f"{(<bytes>known_pairs[pair].name).decode()}: {error}")
        except BaseException as error:
            return unexpected((<bytes>known_pairs[pair].name).decode(), error)


cdef object run_checked(int pair, void *workspace, uint64_t size, executor_t *executor,
                        void *stream):
    """Phase two by the function in Python."""
    cdef const known_pair_t *known = &known_pairs[pair]
    cdef void *block = NULL
    name = (<bytes>known.name).decode()
    if known.entry == NULL:
        return errors.fail(MISSING, f"{name}: aclnn-cpu {aclnn.__version__} does not have it yet")
    if executor == NULL:
        return (<EntryHandle>known.entry).run(None, 0, None, None)
    if executor.magic != ACLNN_EXECUTOR:
        return errors.fail(INNER, f"{name}: executor is destroyed, or was used already; "
                           "aclSetAclOpExecutorRepeatable makes it last")
    if executor.python == NULL:
        refuse_freed(executor)
    other = python_executor(executor)
    if workspace != NULL and size and runtime.hold_memory(known.name, "workspace", workspace, size,
                                                          &block):
        return INVALID
    try:
        memory = python_memory(workspace, <Py_ssize_t>min(size, <uint64_t>2**62))
        return (<EntryHandle>known.entry).run(memory, size, other, stream_object(stream))
    finally:
        if block != NULL:
            runtime.drop_memory(block)


cdef int refuse_freed(executor_t *executor) except -1:
    """Refuse memory that was freed: objects in Python know it no more."""
    cdef int slot
    cdef const bound_t *bound
    cdef void *block
    for slot in range(executor.room):
        bound = &executor.bound[slot]
        if bound.tensor == NULL:
            continue
        block = bound.block if bound.rebound else bound.tensor.block
        if block != NULL and not runtime.memory_lives(block):
            name = (<aclOpExecutor>executor.cached.model).names[slot]
            raise AclnnError(INVALID, f"{name} is in memory that was freed")
    return 0


cdef aclOpExecutor python_executor(executor_t *executor):
    """An executor as functions in Python know it."""
    cdef aclOpExecutor other
    cdef cached_t *cached = executor.cached
    cdef int slot
    cdef const bound_t *bound
    cdef char *storage
    if executor.python != NULL:
        return <aclOpExecutor>executor.python
    other = (<aclOpExecutor>cached.model).snapshot()
    other.original = None
    other.from_tensors, other.repeatable, other.spent = True, executor.repeatable, executor.spent
    memcpy(other.request.facts, executor.facts, sizeof(executor.facts))
    memcpy(other.request.numbers, executor.numbers, sizeof(executor.numbers))
    other.bound = [None] * executor.room
    for slot in range(executor.room):
        bound = &executor.bound[slot]
        if bound.tensor == NULL:
            continue
        storage = bound.storage if bound.rebound else bound.tensor.storage
        other.bound[slot] = (tensor_elsewhere(bound.tensor, storage) if bound.rebound
                             else held_tensor(bound.tensor))
        other.versions[slot] = bound.version
        other.request.operands[slot].data = (
            storage + bound.offset if storage != NULL else NULL)
    return other


# --- Executors ------------------------------------------------------------------------------------

cdef int set_repeatable(c_executor *value) noexcept nogil:
    cdef executor_t *executor = <executor_t *>value
    if executor != NULL and executor.magic == ACLNN_EXECUTOR and executor.python == NULL:
        executor.repeatable = True
        return OK
    if stack_is_short(STACK):
        return refuse_stack(b"aclSetAclOpExecutorRepeatable", b"")
    keep_thread()
    with gil:
        try:
            if executor == NULL or executor.magic != ACLNN_EXECUTOR:
                return failed(INNER_NULLPTR, "aclSetAclOpExecutorRepeatable: executor is "
                              + ("null" if executor == NULL else "destroyed"))
            status = _rebinding.aclSetAclOpExecutorRepeatable(<object>executor.python)
            executor.repeatable = status == OK
            return status
        except BaseException as error:
            return unexpected("aclSetAclOpExecutorRepeatable", error)


cdef int destroy(c_executor *value) noexcept nogil:
    cdef executor_t *executor = <executor_t *>value
    if executor == NULL:
        return runtime.fail(INNER_NULLPTR, b"aclDestroyAclOpExecutor: executor is null")
    if executor.magic != ACLNN_EXECUTOR:
        return runtime.fail(INNER_NULLPTR, b"aclDestroyAclOpExecutor: executor is destroyed")
    if executor.python != NULL:
        if stack_is_short(STACK):
            return refuse_stack(b"aclDestroyAclOpExecutor", b"")
        keep_thread()
        with gil:
            Py_XDECREF(executor.python)
    end_executor(executor)
    return OK


cdef int set_address(const char *function, c_executor *value, const size_t *index, int n_place,
                     void *target, void *address) noexcept nogil:
    if stack_is_short(STACK):
        return refuse_stack(function, b"")
    keep_thread()
    with gil:
        name = (<bytes>function).decode()
        try:
            return bind_address(name, <executor_t *>value, index, n_place, target, <char *>address)
        except AclnnError as error:
            return failed(error.status, f"{name}: {error}")
        except BaseException as error:
            return unexpected(name, error)


cdef int bind_address(str function, executor_t *executor, const size_t *index, int n_place,
                      void *target, char *address) except? -1:
    """Bind memory to an operand of the executor, and to the tensor that phase one was given."""
    cdef c_tensor *tensor = <c_tensor *>target
    cdef c_tensors *listed = <c_tensors *>target
    cdef void *block = NULL
    cdef aclOpExecutor other
    cdef int k
    cdef list where = []
    if executor == NULL or executor.magic != ACLNN_EXECUTOR:
        return failed(INNER_NULLPTR, f"{function}: executor is "
                      + ("null" if executor == NULL else "destroyed"))
    if target == NULL or tensor.magic != (ACLNN_TENSOR if n_place == 1 else ACLNN_TENSORS):
        kind = "tensor" if n_place == 1 else "tensors"
        return failed(INNER_NULLPTR, f"{function}: {kind} is null, destroyed or of another type")
    other = python_executor(executor)
    for k in range(n_place):
        where.append(index[k])
    slots = _rebinding.slots_bound_by(function, other, tuple(where))
    if n_place == 2:
        tensor = listed.items[index[1]] if index[1] < listed.size else NULL
    data = None
    if tensor != NULL and tensor.magic == ACLNN_TENSOR:
        if hold_view(<bytes>function.encode(), "addr", tensor, address, &block):
            return INVALID
    try:
        if address != NULL:
            found = other.bound[slots[0]]
            data = python_memory(address, 0 if found is None else found.bytes_needed())
        _rebinding.bind_to(other, slots, data)
    except BaseException:
        if block != NULL:
            runtime.drop_memory(block)
        raise
    if executor.python == NULL:
        for slot in slots:
            rebind(&executor.bound[<int>slot], address)
    if tensor != NULL and tensor.magic == ACLNN_TENSOR:
        if tensor.block != NULL:
            runtime.drop_memory(tensor.block)
        tensor.storage, tensor.block = address, block
    return OK


cdef void rebind(bound_t *bound, char *address) noexcept nogil:
    """Take memory that was found to fit."""
    cdef void *block = NULL
    hold_view("", "", bound.tensor, address, &block)
    if bound.block != NULL:
        runtime.drop_memory(bound.block)
    bound.rebound, bound.storage, bound.block = True, address, block


# --- What the library found wrong -----------------------------------------------------------------

cdef int hold_view(const char *function, const char *name, const c_tensor *tensor,
                   const void *address, void **block) noexcept nogil:
    """Hold the block that contains a view, if it is of the runtime's memory."""
    cdef int64_t needed = aclnn_elements_needed(tensor)
    block[0] = NULL
    if address == NULL or needed == 0:
        return OK
    return INVALID if runtime.hold_memory(function, name, address,
                                          bytes_of(tensor.dtype, needed), block) else OK


cdef object sequence(const int64_t *values, uint64_t count):
    cdef uint64_t k
    if values == NULL:
        return None if count else ()
    found = []
    for k in range(min(count, <uint64_t>1000)):
        found.append(values[k])
    return tuple(found)


cdef int refuse_tensor(const char *function, const description_t *value) noexcept nogil:
    """The status and the message of a description that cannot be a tensor's."""
    if stack_is_short(STACK):
        return refuse_stack(function, b"")
    keep_thread()
    with gil:
        name = (<bytes>function).decode()
        try:
            shape = sequence(value.shape, value.ndim)
            strides = None if value.strides == NULL else sequence(value.strides, value.ndim)
            storage = sequence(value.storage_shape, value.storage_ndim)
            data = <size_t>value.data if value.data != NULL else None
            _tensor.refuse_description(shape, value.dtype, strides, value.offset, value.format,
                                       storage, data)
            return failed(INNER, f"{name}: memory is short")
        except (AclnnError, MemoryError) as error:
            return failed(getattr(error, "status", INNER), f"{name}: {error}")
        except BaseException as error:
            return unexpected(name, error)


cdef int refuse_scalar(const void *value, int dtype) noexcept nogil:
    if stack_is_short(STACK):
        return refuse_stack(b"aclCreateScalar", b"")
    keep_thread()
    with gil:
        try:
            _tensor.aclCreateScalar(None if value == NULL else 0, dtype)
            return errors.latest_failure()[0]
        except BaseException as error:
            return unexpected("aclCreateScalar", error)


cdef int weight_size(const c_ints *shape, int dtype, uint64_t *size) noexcept nogil:
    if stack_is_short(STACK):
        return refuse_stack(b"aclnnCalculateMatmulWeightSizeV2", b"")
    keep_thread()
    with gil:
        name = "aclnnCalculateMatmulWeightSizeV2"
        try:
            function = getattr(aclnn, name, None)
            if function is None:
                return failed(
                    MISSING, f"{name}: aclnn-cpu {aclnn.__version__} does not have it yet")
            if size == NULL:
                return failed(NULLPTR, f"{name}: weightTensorSize is null")
            found, status = function(python_argument(b"I", <argument_t *>&shape), dtype)
            size[0] = found
            return status
        except BaseException as error:
            return unexpected(name, error)


# --- The runtime ----------------------------------------------------------------------------------

cdef object stream_object(void *stream):
    """The stream of a handle as functions in Python know it, who refuse a number."""
    cdef void *found
    if stream == NULL:
        return None
    found = runtime.object_of(stream)
    if found == NULL:
        return <size_t>stream
    taken = <object>found
    Py_DECREF(taken)
    return taken


# --- Start and end --------------------------------------------------------------------------------

cdef int start(const services_t *value) noexcept nogil:
    with gil:
        try:
            prepare(value)
            return 0
        except BaseException as error:
            value.fail(-1, f"aclnn cannot start: {error}".encode())
            return -1


cdef int prepare(const services_t *value) except -1:
    global services, known_pairs, reports
    cdef int number
    services, _table.services = value[0], value
    known_pairs = <known_pair_t *>calloc(services.n_pairs, sizeof(known_pair_t))
    if known_pairs == NULL:
        raise MemoryError
    for number in range(services.n_pairs):
        known_pairs[number].name = services.pairs[number].name
        known_pairs[number].tags = services.pairs[number].tags
        entry = HANDLES_BY_ENTRY.get((<bytes>services.pairs[number].name).decode())
        if entry is not None:
            know(&known_pairs[number], entry)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=after_fork)
    atexit.register(before_end)
    if environment.RECORD.read():  # who set it to what makes no sense hears of it
        refuse_other_pairs()
    if environment.REPORT.read() is not None:
        from aclnn.capi import reporting

        reports = True
        reporting.start()
    return 0


cdef int refuse_other_pairs() except -1:
    """Records name functions by their numbers in the package's prototypes."""
    from aclnn.capi import function_pairs

    found, planned = [], []
    for number in range(services.n_pairs):
        found.append((<bytes>services.pairs[number].name).decode())
    for one in function_pairs.EVERY:
        planned.append(f"aclnn{one.name}")
    if found != planned:
        raise ValueError("the library was built of other prototypes than the package has")
    return 0


cdef int know(known_pair_t *pair, EntryHandle entry) except -1:
    """Take a pair that there is; both live as long as the process.

    One with other parameters than its prototype is not there: a test finds it.
    """
    cdef int index
    if len(pair.tags) != entry.n_parameters:
        return 0
    for index in range(entry.n_parameters):
        for slots in entry.own_order if entry.kinds[index] == INOUT else ():
            if slots[0] == entry.slots[index] and len(slots) > 1:
                pair.inout[index] = slots[1] - entry.handle.n_inputs
    pair.is_measured = bool(entry.handle.operator.measured)
    Py_INCREF(entry)
    pair.entry, pair.handle = <PyObject *>entry, <PyObject *>entry.handle
    return 0


def after_fork():
    """Go on in a child that Python has forked."""
    services.forked_by_python()


def before_end():
    """Have the library's functions answer statuses: the interpreter ends."""
    global aclnn_interpreter_ends
    aclnn_interpreter_ends = 1
    services.close()


cdef void note(int function, const argument_t *value, int64_t result,
               int is_before) noexcept nogil:
    """Record a call; what cannot be recorded must not disturb the program."""
    cdef int index
    if stack_is_short(STACK):
        return
    keep_thread()
    with gil:
        try:
            from aclnn.capi import recording as recordings

            recorder = recordings.recorder()
            if recorder is None:
                return
            arguments = []
            for index, kind in enumerate(recorder.kinds(function)):
                arguments.append(value[index].real if kind == "f" else value[index].whole)
            with recording:
                recorder.note(function, arguments, result, is_before != 0)
        except BaseException as error:
            errors.set_message(f"ACLNN_RECORD: {type(error).__name__}: {error}")


cdef void end() noexcept nogil:
    """The process ends."""
    global aclnn_interpreter_ends
    if not reports:
        aclnn_interpreter_ends = 1
        return
    keep_thread()
    with gil:
        from aclnn.capi import reporting

        try:
            reporting.write()
        except BaseException as error:
            errors.set_message(f"ACLNN_REPORT: {type(error).__name__}: {error}")
    aclnn_interpreter_ends = 1


cdef call_table_t _table
_table.version = ACLNN_CALL_TABLE_VERSION
_table.start = start
_table.plan = plan
_table.run = run
_table.set_repeatable = set_repeatable
_table.destroy = destroy
_table.set_address = set_address
_table.hold = hold_view
_table.refuse_tensor = refuse_tensor
_table.refuse_scalar = refuse_scalar
_table.weight_size = weight_size
runtime = <const runtime_t *>PyCapsule_GetPointer(_runtime.table, ACLNN_RUNTIME_TABLE_NAME)
_table.runtime = runtime
_table.note = note
_table.end = end
table = PyCapsule_New(&_table, "aclnn.capi._call_table.table", NULL)
