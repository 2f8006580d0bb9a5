"""Settings of the process that plans and runs depend on, and limits of single threads."""

from libc.stdint cimport int64_t

from aclnn.graph.runtime import _scheduler

cdef extern from *:
    """
    /* How many threads the runs of this one may use; 0: as the process is set to. */
    static __thread int thread_limit;
    """
    int thread_limit
    int __atomic_fetch_add(int *, int, int) noexcept nogil
    int __ATOMIC_RELAXED

cdef int (*omp_threads)() noexcept nogil
cdef void (*limit_omp_threads)(int) noexcept nogil
omp_threads = <int (*)() noexcept nogil><size_t>_scheduler.omp_addresses()[0]
limit_omp_threads = <void (*)(int) noexcept nogil><size_t>_scheduler.omp_addresses()[1]

cdef settings_t settings
settings.threads = settings.planned = 1


cdef int64_t settings_word() noexcept nogil:
    """Settings of the process that plans depend on, except for how they are planned."""
    return settings.soc | <int64_t>threads_set() << 8 | <int64_t>(threads_planned() > 1) << 32


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


def current_settings():
    cdef settings_t now = settings
    now.threads, now.planned = threads_set(), threads_planned()
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


cdef int limit_here() noexcept nogil:
    """Limit of the calling thread; 0: none."""
    return thread_limit


cdef int limited_threads() noexcept nogil:
    """Number of threads that runs of this thread may use, where some thread has a limit."""
    return thread_limit if thread_limit else settings.threads


cdef int threads_planned() noexcept nogil:
    """Threads that plans of this thread have scratch for: 1 on every machine, unless asked."""
    return thread_limit if settings.limited and thread_limit else 1


cdef int openmp_threads() noexcept nogil:
    """Number of threads that OpenMP's own limit (threadpoolctl) lets the calling thread use."""
    return omp_threads()


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


cdef dict as_dict(const settings_t *now):
    return {
        "soc": now.soc,
        "threads": now.threads,
        "planned_threads": now.planned,
        "materialize": bool(now.materialize),
        "strategy": now.strategy,
        "cache_limit": now.cache_limit,
    }
