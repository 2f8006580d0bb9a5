"""Elements at any address (`unaligned.h`)."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t

cdef extern from "unaligned.h" nogil:
    ctypedef float unaligned_float
    ctypedef double unaligned_double
    ctypedef int16_t unaligned_int16
    ctypedef int32_t unaligned_int32
    ctypedef int64_t unaligned_int64
    ctypedef uint16_t unaligned_uint16
    ctypedef uint32_t unaligned_uint32
    ctypedef uint64_t unaligned_uint64
    ctypedef struct unaligned_pair:
        pass
