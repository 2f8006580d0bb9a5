"""Running sums of lines: eight lines at a time, each in a lane, or one line element by element.

An element is added with what the addition rounds away kept with the sum, and the sum of both is
rounded once: the same bits however lines lie.
"""

from libc.string cimport memcpy, memset

from aclnn.kernels.rows.vecd cimport (
    VECD,
    elem_t,
    load_vecd,
    store_vecd,
    v_add,
    v_load,
    v_set,
    v_store,
    v_sub,
    v_transpose,
    v_two_sum,
    v_where_number,
    vecd,
)

cdef enum:
    FEW_LINES = 3   # fewer are faster one after the other than in lanes of which most are empty
    AT_ONCE = 4     # registers of adjacent lines: lines of memory are read as a whole

# Lines behind each other have dense elements, and `step` bytes from one line to the next; those
# next to each other are dense themselves, with `step` bytes from one element of a line to the next.
ctypedef void (*lines_fn)(const char *x, ptrdiff_t step, char *y, ptrdiff_t to, ptrdiff_t lines,
                          ptrdiff_t length) noexcept nogil


cdef inline vecd running(vecd x, vecd *high, vecd *low) noexcept nogil:
    cdef vecd lost
    high[0] = v_two_sum(high[0], x, &lost)
    low[0] = v_add(low[0], lost)
    # A sum that is no number, or infinite, has no rest.
    return v_where_number(v_sub(high[0], high[0]), v_add(high[0], low[0]), high[0])


cdef inline vecd load_some(const elem_t *x, ptrdiff_t count) noexcept nogil:
    cdef elem_t[VECD] some
    if count == VECD:
        return load_vecd(x)
    memset(some, 0, sizeof(some))
    memcpy(some, x, count * sizeof(elem_t))
    return load_vecd(<const elem_t *>some)


cdef inline void store_some(elem_t *y, vecd value, ptrdiff_t count) noexcept nogil:
    cdef elem_t[VECD] some
    if count == VECD:
        store_vecd(y, value)
    else:
        store_vecd(<elem_t *>some, value)
        memcpy(y, some, count * sizeof(elem_t))


cdef inline void sum_behind(const elem_t *x, ptrdiff_t step, elem_t *y, ptrdiff_t to,
                            ptrdiff_t lines, ptrdiff_t length) noexcept nogil:
    """Running sums of lines behind each other."""
    cdef ptrdiff_t line = 0, n
    while line < lines:
        n = min(<ptrdiff_t>VECD, lines - line)
        if n < FEW_LINES:
            n = 1
            sum_line(<const elem_t *>(<const char *>x + line * step),
                     <elem_t *>(<char *>y + line * to), length)
        else:
            sum_lines(<const elem_t *>(<const char *>x + line * step), step,
                      <elem_t *>(<char *>y + line * to), to, n, length)
        line += n


cdef inline void sum_lines(const elem_t *x, ptrdiff_t step, elem_t *y, ptrdiff_t to,
                           ptrdiff_t lines, ptrdiff_t length) noexcept nogil:
    """Eight elements of up to eight lines at a time."""
    cdef vecd block[VECD]
    cdef vecd high = v_set(0), low = v_set(0)
    cdef ptrdiff_t col = 0, count, k
    while col < length:
        count = min(<ptrdiff_t>VECD, length - col)
        for k in range(VECD):
            block[k] = v_set(0)
            if k < lines:
                block[k] = load_some(<const elem_t *>(<const char *>x + k * step) + col, count)
        v_transpose(block)
        for k in range(VECD):
            block[k] = running(block[k], &high, &low)
        v_transpose(block)
        for k in range(lines):
            store_some(<elem_t *>(<char *>y + k * to) + col, block[k], count)
        col += count


cdef inline void sum_line(const elem_t *x, elem_t *y, ptrdiff_t length) noexcept nogil:
    cdef double[VECD] block
    cdef double high = 0, low = 0, total, taken
    cdef ptrdiff_t col = 0, count, k
    while col < length:
        count = min(<ptrdiff_t>VECD, length - col)
        v_store(block, load_some(x + col, count))
        for k in range(VECD):
            total = high + block[k]
            taken = total - high
            low += (high - (total - taken)) + (block[k] - taken)
            high = total
            block[k] = total + low if total - total == 0 else total
        store_some(y + col, v_load(block), count)
        col += count


cdef inline void sum_beside(const elem_t *x, ptrdiff_t step, elem_t *y, ptrdiff_t to,
                            ptrdiff_t lines, ptrdiff_t length) noexcept nogil:
    """Running sums of adjacent lines."""
    cdef ptrdiff_t line = 0, n
    while line < lines:
        n = min(<ptrdiff_t>AT_ONCE * VECD, lines - line)
        if n == AT_ONCE * VECD:
            sum_registers(x + line, step, y + line, to, AT_ONCE, VECD, length)
        else:
            n = min(<ptrdiff_t>VECD, n)
            sum_registers(x + line, step, y + line, to, 1, n, length)
        line += n


cdef inline void sum_registers(const elem_t *x, ptrdiff_t step, elem_t *y, ptrdiff_t to,
                               ptrdiff_t registers, ptrdiff_t live,
                               ptrdiff_t length) noexcept nogil:
    cdef vecd high[AT_ONCE]
    cdef vecd low[AT_ONCE]
    cdef ptrdiff_t i, k
    for k in range(AT_ONCE):
        high[k] = low[k] = v_set(0)
    for i in range(length):
        for k in range(registers):
            store_some(
                <elem_t *>(<char *>y + i * to) + k * VECD,
                running(load_some(<const elem_t *>(<const char *>x + i * step) + k * VECD, live),
                        &high[k], &low[k]),
                live)
