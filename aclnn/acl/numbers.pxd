"""Arrays of C as Python's tuples."""

from libc.stdint cimport int64_t


cdef inline tuple numbers_of(const int64_t *values, int n):
    cdef list found = []
    cdef int index
    for index in range(n):
        found.append(values[index])
    return tuple(found)
