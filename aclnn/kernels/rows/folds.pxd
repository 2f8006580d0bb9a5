"""Products of lines, and sums of their squares: several lines at a time.

Element i belongs to part i mod 8, and the parts are combined one after the other: the same bits
however lines lie. Lines are described by `lines_fn`; results are doubles, one for each line.
"""

from aclnn.kernels.rows.running cimport AT_ONCE, load_some
from aclnn.kernels.rows.vecd cimport (
    VECD,
    elem_t,
    load_vecd,
    v_add,
    v_lanes_from,
    v_mul,
    v_set,
    v_store,
    vecd,
)

cdef enum:
    PARTS = VECD


cdef inline vecd joined(vecd part, vecd x, bint squares) noexcept nogil:
    return v_add(part, v_mul(x, x)) if squares else v_mul(part, x)


cdef inline vecd start_of(bint squares) noexcept nogil:
    return v_set(0 if squares else 1)


cdef inline double total_of(vecd parts, bint squares) noexcept nogil:
    cdef double[VECD] lanes
    cdef double total
    cdef int k
    v_store(lanes, parts)
    total = lanes[0]
    for k in range(1, PARTS):
        total = total + lanes[k] if squares else total * lanes[k]
    return total


cdef inline void fold_behind(const elem_t *x, ptrdiff_t step, double *totals, ptrdiff_t lines,
                             ptrdiff_t length, bint squares) noexcept nogil:
    """Some lines side by side: each waits for one operation after the other."""
    cdef vecd parts[AT_ONCE]
    cdef const elem_t *line = x
    cdef ptrdiff_t first = 0, k
    for k in range(lines):
        parts[k] = start_of(squares)
    while first + VECD <= length:
        for k in range(lines):
            line = <const elem_t *>(<const char *>x + k * step)
            parts[k] = joined(parts[k], load_vecd(line + first), squares)
        first += VECD
    for k in range(lines):
        if first < length:
            line = <const elem_t *>(<const char *>x + k * step)
            parts[k] = joined(
                parts[k],
                v_lanes_from(load_some(line + first, length - first), start_of(squares),
                             length - first),
                squares)
        totals[k] = total_of(parts[k], squares)


cdef inline void fold_all_behind(const elem_t *x, ptrdiff_t step, double *totals, ptrdiff_t lines,
                                 ptrdiff_t length, bint squares) noexcept nogil:
    cdef ptrdiff_t line = 0
    while line + AT_ONCE <= lines:
        fold_behind(<const elem_t *>(<const char *>x + line * step), step, totals + line, AT_ONCE,
                    length, squares)
        line += AT_ONCE
    while line < lines:
        fold_behind(<const elem_t *>(<const char *>x + line * step), step, totals + line, 1,
                    length, squares)
        line += 1


cdef inline void multiply_behind(const elem_t *x, ptrdiff_t step, double *totals, ptrdiff_t to,
                                 ptrdiff_t lines, ptrdiff_t length) noexcept nogil:
    fold_all_behind(x, step, totals, lines, length, False)


cdef inline void square_behind(const elem_t *x, ptrdiff_t step, double *totals, ptrdiff_t to,
                               ptrdiff_t lines, ptrdiff_t length) noexcept nogil:
    fold_all_behind(x, step, totals, lines, length, True)


cdef inline void multiply_registers(const elem_t *x, ptrdiff_t step, double *totals,
                                    ptrdiff_t registers, ptrdiff_t live,
                                    ptrdiff_t length) noexcept nogil:
    cdef vecd parts[AT_ONCE * PARTS]
    cdef vecd total
    cdef vecd *part
    cdef double[VECD] lanes
    cdef const elem_t *place
    cdef ptrdiff_t i, k, p
    for i in range(registers * PARTS):
        parts[i] = v_set(1)
    for i in range(length):
        part = parts + i % PARTS * registers
        place = <const elem_t *>(<const char *>x + i * step)
        for k in range(registers):
            part[k] = v_mul(part[k], load_some(place + k * VECD, live))
    for k in range(registers):
        total = parts[k]
        for p in range(1, PARTS):
            total = v_mul(total, parts[p * registers + k])
        v_store(lanes, total)
        for i in range(live):
            totals[k * VECD + i] = lanes[i]


cdef inline void multiply_beside(const elem_t *x, ptrdiff_t step, double *totals, ptrdiff_t to,
                                 ptrdiff_t lines, ptrdiff_t length) noexcept nogil:
    """Multiply adjacent lines."""
    cdef ptrdiff_t line = 0, n
    while line < lines:
        n = min(<ptrdiff_t>AT_ONCE * VECD, lines - line)
        if n == AT_ONCE * VECD:
            multiply_registers(x + line, step, totals + line, AT_ONCE, VECD, length)
        else:
            n = min(<ptrdiff_t>VECD, n)
            multiply_registers(x + line, step, totals + line, 1, n, length)
        line += n
