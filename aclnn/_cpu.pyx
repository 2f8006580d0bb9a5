"""CPU features, queried without importing kernels that are compiled for them."""

cdef extern from *:
    """
    #if (defined(__x86_64__) || defined(_M_X64)) && !defined(ACLNN_NO_X86_LEVELS)
    static int cpu_has(int level) {
        __builtin_cpu_init();
        if (level == 3) return __builtin_cpu_supports("x86-64-v3");
        if (level == 4) return __builtin_cpu_supports("x86-64-v4");
        return level == 0;
    }
    #elif defined(__aarch64__)
    static int cpu_has(int level) { return level == 0 || level == 1; }
    #else
    static int cpu_has(int level) { return level == 0; }
    #endif
    """
    int cpu_has(int) nogil


def cpu_supports(int level):
    """Whether this CPU has x86-64-v3 or v4 (`level` 3, 4), or NEON (1); level 0 is any CPU.

    >>> cpu_supports(0)
    True
    """
    return bool(cpu_has(level))
