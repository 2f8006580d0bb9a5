"""Division of a kernel's scratch among what it keeps there.

A kernel divides its scratch in one function, which gives the bytes that all of it takes: the kernel
calls it with the memory, and whoever reserves the memory without. Neither counts bytes by itself.
"""

from libc.stddef cimport size_t

cdef enum:
    PART_ALIGNMENT = 8


cdef inline void *part_of(void *scratch, size_t nbytes, size_t *used) noexcept nogil:
    """Begin of the next so many bytes; NULL where only their number is asked for."""
    cdef void *found = NULL if scratch == NULL else <char *>scratch + used[0]
    used[0] += (nbytes + PART_ALIGNMENT - 1) // PART_ALIGNMENT * PART_ALIGNMENT
    return found
