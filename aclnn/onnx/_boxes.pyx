"""Boxes that are kept because no better one overlaps them.

Two boxes overlap if the area that they share, over that of their union, exceeds a limit. All of
it is float32, as the standard has it.
"""

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_ND, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

cdef struct box_t:
    float low[2]
    float high[2]
    float area


cdef inline bint overlaps(const box_t *one, const box_t *other, float limit) noexcept nogil:
    """Whether two boxes share more than a limit; boxes without an area, and NaN, share nothing."""
    cdef float sides[2]
    cdef float shared, united
    cdef int axis
    for axis in range(2):
        sides[axis] = (
            (one.high[axis] if one.high[axis] < other.high[axis] else other.high[axis])
            - (one.low[axis] if one.low[axis] > other.low[axis] else other.low[axis])
        )
        if not sides[axis] > 0:
            return False
    shared = sides[0] * sides[1]
    united = one.area + other.area - shared
    return (
        shared > 0 and united > 0 and one.area > 0 and other.area > 0 and shared / united > limit
    )


cdef Py_ssize_t keep(int64_t *order, Py_ssize_t count, const box_t *boxes, float limit,
                     Py_ssize_t most, box_t *kept) noexcept nogil:
    """Move the boxes that stay to the front of their order; their number."""
    cdef Py_ssize_t found = 0, k, other
    cdef const box_t *box
    for k in range(count):
        if found == most:
            break
        box = &boxes[order[k]]
        for other in range(found):
            if overlaps(&kept[other], box, limit):
                break
        else:
            kept[found] = box[0]
            order[found] = order[k]
            found += 1
    return found


def kept(object order not None, object boxes not None, float limit, Py_ssize_t most):
    """Number of boxes that stay, which are moved to the front of their order.

    Parameters
    ----------
    order : array of int64
        Positions of boxes from the highest score on; the boxes that stay replace the first of them.
    boxes : array of float32
        Rows of five numbers: the least coordinates along both axes, the greatest, and the area.
    limit : float
        The share of the union above which the lower score goes.
    most : int
        Number of boxes that may stay.

    Returns
    -------
    int
    """
    cdef Py_buffer places, corners
    cdef box_t *memory
    cdef Py_ssize_t k, count, found
    PyObject_GetBuffer(order, &places, PyBUF_WRITABLE | PyBUF_ND | PyBUF_FORMAT)
    try:
        PyObject_GetBuffer(boxes, &corners, PyBUF_ND | PyBUF_FORMAT)
        try:
            if (
                places.ndim != 1 or places.itemsize != sizeof(int64_t) or corners.ndim != 2
                or corners.format[0] != c"f" or corners.shape[1] * sizeof(float) != sizeof(box_t)
            ):
                raise ValueError("boxes are rows of five float32, their order is int64")
            count = places.shape[0]
            for k in range(count):
                if not 0 <= (<int64_t *>places.buf)[k] < corners.shape[0]:
                    raise IndexError(f"there is no box {(<int64_t *>places.buf)[k]}")
            most = max(0, min(most, count))
            memory = <box_t *>malloc((most + 1) * sizeof(box_t))
            if memory == NULL:
                raise MemoryError(f"{most} boxes do not fit into memory")
            with nogil:
                found = keep(
                    <int64_t *>places.buf, count, <box_t *>corners.buf, limit, most, memory
                )
            free(memory)
            return found
        finally:
            PyBuffer_Release(&corners)
    finally:
        PyBuffer_Release(&places)
