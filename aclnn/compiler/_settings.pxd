from libc.stdint cimport int64_t

cdef struct settings_t:
    int soc
    int threads
    int planned       # threads that a workspace has scratch for
    int materialize
    int strategy
    int cache_limit   # plans kept; 0 switches the cache off
    int limited       # how many limits of single threads are in force

cdef struct thread_limits_t:
    int openmp
    int own

cdef settings_t settings

cdef int64_t settings_word() noexcept nogil
cdef int limit_here() noexcept nogil
cdef int limited_threads() noexcept nogil
cdef int threads_planned() noexcept nogil
cdef int openmp_threads() noexcept nogil
cdef thread_limits_t limits_now() noexcept nogil
cdef void apply_limits(thread_limits_t limits) noexcept nogil
cdef dict as_dict(const settings_t *now)

cdef inline int threads_set() noexcept nogil:
    """Number of threads that runs of this thread may use."""
    return limited_threads() if settings.limited else settings.threads
