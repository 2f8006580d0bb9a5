cdef bint is_masked(object array)
