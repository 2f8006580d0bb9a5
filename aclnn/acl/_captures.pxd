cdef int active  # captures under way in the process: launches on the default stream look at it
